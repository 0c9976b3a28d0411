/* See code.h. Each target has its arm in the few functions that differ. */
#include "runtime/code.h"

#include "cpu/cpu.h"
#include "gpu/gpu.h"
#include "runtime/cuda.h"
#include "runtime/failure.h"
#include "runtime/thread_pool.h"
#include "simulator/simulator.h"

#include <stdlib.h>

struct Code {
    Arena arena; /* owns the image and the simulator's code */
    Bytes bytes;
    const Image *image;
    CpuKernel *cpu; /* one of the three */
    CudaKernel *cuda;
    SimEntry *sim;
};

/* ---- from an image ------------------------------------------------------------------------------------------------------ */

static CudaKernel *new_cuda_kernel(const Image *image)
{
    const CodeOptions *options = &image->options;
    bool records = options->debug && !options->traps;
    return tt_cuda_new_kernel(&(CudaImage){.name = image->name,
                                           .ptx = image->code.data,
                                           .assembly = image->assembly,
                                           .shared_bytes = (int)image->memory,
                                           .threads = options->num_warps * 32,
                                           .max_registers = options->max_registers,
                                           .effort = image->effort,
                                           .parameter_count = image->parameter_count,
                                           .cooperative = options->cooperative,
                                           .early = options->early > EARLY_NEVER,
                                           .failure_words = records ? (int)(sizeof(FailureRecord) / 4) : 0});
}

static CpuKernel *new_cpu_kernel(const Image *image)
{
    return tt_cpu_load(&(CpuImage){.name = image->name,
                                   .source = image->source,
                                   .options = {image->options.debug, image->options.no_fusion},
                                   .object = image->code,
                                   .scratch_size = (size_t)image->memory,
                                   .streams = image->streams,
                                   .stored_bytes = image->stored_bytes});
}

/* False if they are no image, or not for this machine. */
static bool load(Code *code, Bytes bytes, const Digest *key)
{
    code->bytes = (Bytes){tt_arena_copy(&code->arena, bytes.data, bytes.size), bytes.size};
    const Image *image = code->image = tt_read_image(code->bytes, key, &code->arena);
    if (!image || !tt_image_fits(image))
        return false;
    TargetKind kind = image->options.target.kind;
    if (kind == TARGET_CUDA)
        code->cuda = new_cuda_kernel(image);
    else if (kind == TARGET_SIM)
        *(void **)&code->sim = tt_link_object(image->code, image->name, tt_sim_symbol, &code->arena);
    else
        code->cpu = new_cpu_kernel(image);
    return true;
}

/* What raises passes through here: a half-made Code is nobody's to release. */
static bool load_or_release(Code *code, Bytes bytes, const Digest *key)
{
    Trap trap;
    if (!tt_try(&trap, &code->arena)) {
        trap.diag.message = tt_arena_strdup(trap.outer->arena, trap.diag.message);
        tt_code_release(code);
        tt_raise(&trap.diag);
    }
    bool fits = load(code, bytes, key);
    tt_end_try(&trap);
    if (!fits)
        tt_code_release(code);
    return fits;
}

Code *tt_new_code(Bytes bytes, const Digest *key)
{
    Code *code = calloc(1, sizeof *code);
    if (!code)
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory while compiling"});
    return load_or_release(code, bytes, key) ? code : NULL;
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

const Image *tt_code_image(const Code *code) { return code->image; }

Bytes tt_code_bytes(const Code *code) { return code->bytes; }

/* ---- on a device -------------------------------------------------------------------------------------------------------- */

bool tt_code_prepare(Code *code, int device, Arena *arena)
{
    return code->cuda && tt_cuda_prepare(code->cuda, device, arena);
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

const char *const *tt_code_stages(const Code *code)
{
    static const char *const cpu[] = {"ttir", "llir", "asm", NULL};
    static const char *const cuda[] = {"ttir", "ttgir", "llir", "ptx", "cubin", NULL};
    static const char *const sim[] = {"ttir", "ttgir", "llir", NULL};
    return code->cpu ? cpu : code->sim ? sim : cuda;
}

const char *tt_code_stage(Code *code, const char *stage, int device, Arena *arena, size_t *size)
{
    if (code->cuda && !strcmp(stage, "cubin"))
        return tt_cuda_cubin(code->cuda, device, arena, size);
    const char *text = tt_image_text(code->image, stage, arena);
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
        const ImageArray *array = &code->image->arrays[i];
        buffers[i] =
            (SimBuffer){place.ranges[2 * i], place.ranges[2 * i + 1], array->name, array->element_bytes};
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
    const char *seed = tt_variable("TRITON_SIM_SEED");
    SimLaunch launch = {.entry = code->sim,
                        .code_size = code->image->code_size,
                        .interrupt = place.interrupt,
                        .ask = place.interrupt ? ask_interrupt : NULL,
                        .knock = tt_knock_at_job,
                        .caller = pthread_self(),
                        .args = args,
                        .grid = {grid[0], grid[1], grid[2]},
                        .threads = code->image->options.num_warps * SIM_WARP,
                        .shared_bytes = (int)code->image->memory,
                        .stack_bytes = code->image->stack_bytes,
                        .buffers = collect_buffers(code, place, arena),
                        .buffer_count = place.range_count,
                        .seed = seed ? strtoull(seed, NULL, 0) : 0,
                        .printed = &printed,
                        .lock = PTHREAD_MUTEX_INITIALIZER};
    tt_parallel_for((int64_t)grid[0] * grid[1] * grid[2], 1, tt_thread_count(), run_blocks, while_waiting,
                    &launch);
    tt_sim_end(&launch);
    LaunchResult result = {.output = printed.data};
    if (launch.failed && !(place.interrupt && place.interrupt->asked_to_end))
        result.failure = simulator_failure(&launch.error, arena);
    return result;
}

static uint64_t extent_of(const IntBounds *terms, int term)
{
    return term < 0 ? (uint64_t)MAP_UNCHECKED : (uint64_t)terms[term].lowest;
}

/* What the launch's numbers make of the arrays that the kernel copies boxes of. */
static void find_arrays(const Image *image, LaunchNumbers numbers, CudaArray *arrays)
{
    IntBounds terms[image->checks->term_count + 1];
    tt_range_terms(image->checks, numbers, terms);
    for (int i = 0; i < image->map_count; i++) {
        enum { ROWS, COLUMNS, STRIDE };
        const TensorMap *map = &image->maps[i];
        arrays[i] = (CudaArray){.address = numbers.slots[map->param],
                                .rows = extent_of(terms, map->terms[ROWS]),
                                .columns = extent_of(terms, map->terms[COLUMNS]),
                                .stride = (uint64_t)(terms[map->terms[STRIDE]].lowest * map->element_bytes),
                                .element_bytes = map->element_bytes,
                                .has_places = map->has_places,
                                .box_rows = map->rows,
                                .row_bytes = map->row_bytes};
    }
}

static FailureText launch_cuda(const Code *code, Place place, const uint64_t *args, const int32_t grid[3],
                               Arena *arena)
{
    FailureRecord record;
    const Image *image = code->image;
    CudaArray arrays[image->map_count + 1];
    LaunchNumbers numbers = {.slots = args, .slot_count = image->parameter_count, .extents = grid};
    if (image->map_count)
        find_arrays(image, numbers, arrays);
    CudaLaunch launch = {.device = place.device,
                         .stream = place.stream,
                         .awaited = place.awaited,
                         .awaited_count = place.awaited_count,
                         .args = args,
                         .arrays = arrays,
                         .array_count = image->map_count,
                         .grid = {grid[0], grid[1], grid[2]},
                         .failure = (int32_t *)&record};
    if (tt_cuda_launch(code->cuda, &launch, arena))
        return (FailureText){0};
    const Failure *failure = &code->image->failures[record.message - 1];
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
