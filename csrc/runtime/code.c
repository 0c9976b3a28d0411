/* See code.h. Each target has its arm in the few functions that differ. */
#include "runtime/code.h"

#include "cpu/cpu.h"
#include "gpu/gpu.h"
#include "runtime/cuda.h"
#include "runtime/failure.h"
#include "runtime/thread_pool.h"
#include "simulator/simulator.h"

#include <stdio.h>
#include <stdlib.h>

struct Code {
    Target target;
    CpuKernel *cpu;
    CudaKernel *cuda;
    SimEntry *sim;
    int threads, stack_bytes, synchronisations; /* simulator */
    size_t code_size;
    Arena arena;        /* texts of the GPU stages, code of the simulator */
    const char *source; /* tile IR with its places */
    const char *ttgir, *llir, *ptx;
    const Failure *failures; /* of a debug kernel on CUDA */
    SimBuffer
        *arrays; /* of the simulator: name and size of elements, for each pointer among the parameters */
    int64_t shared;
};

static const char *const names[TARGET_KINDS] = {"cpu", "cuda", "sim"};

bool tt_target_parse(const char *name, Target *target)
{
    size_t length = strcspn(name, ":");
    *target = (Target){TARGET_KINDS, 0};
    for (int kind = 0; kind < TARGET_KINDS; kind++)
        if (strlen(names[kind]) == length && !strncmp(name, names[kind], length))
            target->kind = (TargetKind)kind;
    if (target->kind == TARGET_KINDS || (target->kind == TARGET_CPU && name[length]))
        return false;
    char *end = NULL;
    if (name[length])
        target->sm = (int)strtol(name + length + 1, &end, 10);
    else
        return target->kind != TARGET_SIM;
    return end != name + length + 1 && !*end && target->sm > 0 && target->sm < 1000;
}

const char *tt_target_name(Target target, char out[16])
{
    if (target.kind == TARGET_CPU)
        snprintf(out, 16, "%s", names[target.kind]);
    else
        snprintf(out, 16, "%s:%d", names[target.kind], target.sm);
    return out;
}

/* ---- compiling -------------------------------------------------------------------------------------------------------- */

static void release_code(void *code) { tt_code_release(code); }

static void keep_texts(Code *code, const char *ttgir, const char *llir)
{
    code->ttgir = tt_arena_strdup(&code->arena, ttgir);
    code->llir = tt_arena_strdup(&code->arena, llir);
}

static void find_assembly(Op *op, void *context)
{
    const Loc **found = context;
    if (!*found && tt_find_attr(op, ATTR_text))
        *found = op->loc;
}

/* Where the program brings assembly of its own, copied; NULL if nowhere. */
static const Loc *place_of_assembly(Code *code, Module *module)
{
    const Loc *found = NULL;
    TT_FOR_FUNCTIONS(function, module) { tt_walk(function->body, find_assembly, &found); }
    if (!found)
        return NULL;
    Loc *place = tt_arena_copy(&code->arena, found, sizeof *found);
    place->file = found->file ? tt_arena_strdup(&code->arena, found->file) : NULL;
    place->function = found->function ? tt_arena_strdup(&code->arena, found->function) : NULL;
    place->caller = NULL;
    return place;
}

static void compile_for_cuda(Code *code, Module *module, const GpuOptions *options, bool cooperative,
                             Arena *arena)
{
    int parameters = module->functions->body->arg_count;
    const Loc *assembly = place_of_assembly(code, module);
    GpuKernel *kernel = tt_gpu_compile(module, options, arena);
    keep_texts(code, kernel->ttgir, kernel->llir);
    code->ptx = tt_arena_strdup(&code->arena, kernel->ptx);
    code->shared = kernel->shared_bytes;
    Failure *failures = TT_NEW_ARRAY(&code->arena, Failure, kernel->failure_count + 1);
    for (int i = 0; i < kernel->failure_count; i++) {
        const Failure *from = &kernel->failures[i];
        failures[i] = (Failure){from->kind, tt_arena_strdup(&code->arena, from->place),
                                tt_arena_strdup(&code->arena, from->message)};
    }
    code->failures = failures;
    code->cuda = tt_cuda_new_kernel(
        &(CudaImage){.name = kernel->name,
                     .ptx = kernel->ptx,
                     .assembly = assembly,
                     .shared_bytes = kernel->shared_bytes,
                     .threads = kernel->num_warps * 32,
                     .parameter_count = parameters,
                     .cooperative = cooperative,
                     .early = options->early,
                     .failure_words = options->debug ? (int)(sizeof(FailureRecord) / 4) : 0});
}

static void keep_arrays(Code *code, const Region *body)
{
    int count = 0;
    code->arrays = TT_NEW_ARRAY(&code->arena, SimBuffer, body->arg_count);
    for (int i = 0; i < body->arg_count; i++) {
        const Value *param = body->args[i];
        if (!tt_is_ptr(param->type))
            continue;
        code->arrays[count].name = param->name ? tt_arena_format(&code->arena, "the array '%s'", param->name)
                                               : tt_arena_format(&code->arena, "the array in argument %d", i);
        code->arrays[count++].element_bytes = tt_byte_width(param->type->element);
    }
}

static uint64_t number_in_environment(const char *name)
{
    const char *text = getenv(name);
    return text ? strtoull(text, NULL, 0) : 0;
}

static void compile_for_simulator(Code *code, Module *module, GpuOptions *options, Arena *arena)
{
    options->padding = number_in_environment("TRITON_SIM_PADDING");
    keep_arrays(code, module->functions->body);
    SimKernel *kernel = tt_gpu_compile_for_simulator(module, options, arena, &code->arena);
    keep_texts(code, kernel->ttgir, kernel->llir);
    code->shared = kernel->shared_bytes;
    code->threads = kernel->num_warps * SIM_WARP;
    code->stack_bytes = kernel->stack_bytes;
    code->synchronisations = kernel->synchronisations;
    code->sim = kernel->entry;
    code->code_size = kernel->code_size;
}

static void compile_for_gpu(Code *code, Module *module, const CodeOptions *options, Arena *arena)
{
    GpuOptions gpu = {.sm = options->target.sm,
                      .num_warps = options->num_warps,
                      .num_stages = options->num_stages,
                      .max_registers = options->max_registers,
                      .enable_fp_fusion = !options->no_fusion,
                      .debug = options->debug && !options->traps,
                      .left_out = options->left_out,
                      .early = options->early};
    module->asked_choices = options->choices;
    if (options->num_ctas > 1)
        tt_unsupported(module->functions->loc,
                       "num_ctas=%d: a program runs on one block of threads, and clusters of "
                       "them are not supported; leave num_ctas at 1",
                       options->num_ctas);
    code->source = tt_print_module(module, &code->arena, TT_PRINT_LOCATIONS);
    if (options->target.kind == TARGET_SIM) {
        compile_for_simulator(code, module, &gpu, arena);
        return;
    }
    if (!tt_cuda_unavailable())
        gpu.ptx_version = tt_cuda_device(0)->ptx_version;
    compile_for_cuda(code, module, &gpu, options->cooperative, arena);
}

Code *tt_code_compile(Module *module, const CodeOptions *options, Arena *arena)
{
    Code *code = calloc(1, sizeof *code);
    if (!code)
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory while compiling"});
    code->target = options->target;
    Trap trap; /* a half-made Code is nobody's to release */
    if (!tt_try(&trap, arena)) {
        release_code(code);
        tt_raise(&trap.diag);
    }
    if (options->target.kind == TARGET_CPU)
        code->cpu = tt_cpu_compile(module, &(CpuOptions){options->debug, options->no_fusion}, arena);
    else
        compile_for_gpu(code, module, options, arena);
    tt_end_try(&trap);
    return code;
}

void tt_code_release(Code *code)
{
    if (code->cpu)
        tt_cpu_release(code->cpu);
    if (code->cuda)
        tt_cuda_release_kernel(code->cuda);
    tt_arena_release(&code->arena);
    free(code);
}

/* ---- what is known of it -------------------------------------------------------------------------------------------------- */

Target tt_code_target(const Code *code) { return code->target; }

CodeFacts tt_code_facts(const Code *code)
{
    if (!code->cpu)
        return (CodeFacts){0, code->shared, code->synchronisations};
    CpuFacts facts = tt_cpu_facts(code->cpu);
    return (CodeFacts){facts.lowering_milliseconds, (int64_t)TT_MAX(facts.scratch_size, (size_t)64), 0};
}

LoadedFacts tt_code_load(Code *code, int device, Arena *arena)
{
    if (code->cpu) /* all registers of a core are a program's own */
        return (LoadedFacts){.registers = 16, .max_threads = 1, .function = tt_cpu_entry(code->cpu)};
    if (code->sim) /* there is no allocation of registers; host code that divides by their number gets a usual one */
        return (LoadedFacts){
            .registers = 32, .max_threads = SIM_MAX_THREADS, .function = (void *)(uintptr_t)code->sim};
    const CudaKernelInfo *info = tt_cuda_load(code->cuda, device, arena);
    return (LoadedFacts){info->registers, info->spilled_bytes / 4, info->max_threads, info->function,
                         info->module};
}

const char *tt_code_source(const Code *code) { return code->cpu ? tt_cpu_source(code->cpu) : code->source; }

const char *const *tt_code_stages(const Code *code)
{
    static const char *const cpu[] = {"ttir", "llir", "asm", NULL};
    static const char *const cuda[] = {"ttir", "ttgir", "llir", "ptx", "cubin", NULL};
    static const char *const sim[] = {"ttir", "ttgir", "llir", NULL};
    return code->cpu ? cpu : code->sim ? sim : cuda;
}

const char *tt_code_stage(Code *code, const char *stage, int device, Arena *arena, size_t *size)
{
    const char *text = NULL;
    if (code->cpu) {
        text = tt_cpu_text(code->cpu, stage, arena);
    } else if (code->cuda && !strcmp(stage, "cubin")) {
        return tt_cuda_cubin(code->cuda, device, arena, size);
    } else if (!strcmp(stage, "ttir")) {
        text = tt_print_module(tt_parse_module(arena, code->source, "ttir"), arena, 0);
    } else {
        const struct {
            const char *name, *text;
        } texts[] = {{"ttgir", code->ttgir}, {"llir", code->llir}, {"ptx", code->ptx}};
        for (size_t i = 0; i < TT_COUNT(texts); i++)
            if (!strcmp(stage, texts[i].name))
                text = texts[i].text;
    }
    *size = text ? strlen(text) : 0;
    return text;
}

/* ---- launching --------------------------------------------------------------------------------------------------------------- */

static bool run_blocks(void *context, int64_t begin, int64_t end)
{
    SimLaunch *launch = context;
    const int32_t *grid = launch->grid;
    for (int64_t i = begin; i < end && !launch->failed; i++) {
        int32_t program[] = {(int32_t)(i % grid[0]), (int32_t)(i / grid[0] % grid[1]),
                             (int32_t)(i / grid[0] / grid[1])};
        tt_sim_run_block(launch, program);
    }
    return !launch->failed;
}

static void while_waiting(void *context) { tt_sim_ask(context); }

static bool ask_interrupt(SimLaunch *launch) { return tt_ask_interrupt(launch->interrupt); }

/* The range of each argument. One that overlaps another is part of the same array, and may reach to the end of that; an
 * array of unknown extent (up to INT64_MAX) says nothing of the others. */
static const SimBuffer *collect_buffers(const Code *code, Place place, Arena *arena)
{
    int count = place.range_count;
    SimBuffer *buffers = TT_NEW_ARRAY(arena, SimBuffer, count);
    for (int i = 0; i < count; i++) {
        buffers[i] = code->arrays[i];
        buffers[i].start = place.ranges[2 * i];
        buffers[i].end = place.ranges[2 * i + 1];
    }
    for (bool grew = true; grew;) {
        grew = false;
        for (int i = 0; i < count * count; i++) {
            SimBuffer *own = &buffers[i / count], other = buffers[i % count];
            bool overlaps = own->start < other.end && other.start < own->end && other.end != INT64_MAX;
            if (!overlaps || (own->start <= other.start && own->end >= other.end))
                continue;
            own->start = TT_MIN(own->start, other.start);
            own->end = TT_MAX(own->end, other.end);
            grew = true;
        }
    }
    return buffers;
}

static FailureText simulator_failure(const SimError *error, Arena *arena)
{
    if (!error->check.message)
        return (FailureText){error->kind, tt_arena_strdup(arena, error->message)};
    Text text = {.arena = arena};
    tt_write_failure(&text, &error->check, error->values, error->program);
    return (FailureText){error->check.kind, text.data};
}

static LaunchResult launch_simulator(const Code *code, Place place, const uint64_t *args,
                                     const int32_t grid[3], Arena *arena)
{
    Text printed = {.arena = arena};
    SimLaunch launch = {.entry = code->sim,
                        .code_size = code->code_size,
                        .interrupt = place.interrupt,
                        .ask = place.interrupt ? ask_interrupt : NULL,
                        .knock = tt_knock_at_job,
                        .caller = pthread_self(),
                        .args = args,
                        .grid = {grid[0], grid[1], grid[2]},
                        .threads = code->threads,
                        .shared_bytes = (int)code->shared,
                        .stack_bytes = code->stack_bytes,
                        .buffers = collect_buffers(code, place, arena),
                        .buffer_count = place.range_count,
                        .seed = number_in_environment("TRITON_SIM_SEED"),
                        .printed = &printed,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    tt_parallel_for((int64_t)grid[0] * grid[1] * grid[2], 1, tt_thread_count(), run_blocks, while_waiting,
                    &launch);
    tt_sim_end(&launch);
    LaunchResult result = {.printed = printed.data};
    if (launch.failed && !(place.interrupt && place.interrupt->asked_to_end))
        result.failure = simulator_failure(&launch.error, arena);
    return result;
}

static FailureText launch_cuda(const Code *code, Place place, const uint64_t *args, const int32_t grid[3],
                               Arena *arena)
{
    FailureRecord record;
    CudaLaunch launch = {.device = place.device,
                         .stream = place.stream,
                         .awaited = place.awaited,
                         .awaited_count = place.awaited_count,
                         .args = args,
                         .grid = {grid[0], grid[1], grid[2]},
                         .failure = (int32_t *)&record};
    if (tt_cuda_launch(code->cuda, &launch, arena))
        return (FailureText){0};
    const Failure *failure = &code->failures[record.message - 1];
    Text text = {.arena = arena};
    tt_write_failure(&text, failure, record.values, record.program);
    return (FailureText){failure->kind, text.data};
}

LaunchResult tt_code_launch(Code *code, Place place, const uint64_t *args, const int32_t grid[3],
                            Arena *arena)
{
    LaunchResult result = {0};
    if (code->cuda) {
        result.failure = launch_cuda(code, place, args, grid, arena);
        return result;
    }
    if (code->sim)
        result = launch_simulator(code, place, args, grid, arena);
    else
        result.failure = tt_cpu_launch(code->cpu, args, grid, place.interrupt, arena, &result.printed);
    return result;
}
