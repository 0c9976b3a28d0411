/* See code.h. Each target has its arm in the few functions that differ. */
#include "runtime/code.h"

#include "cpu/cpu.h"
#include "gpu/gpu.h"
#include "runtime/cuda.h"

#include <stdlib.h>

struct Code {
    Target target;
    CpuKernel *cpu;
    CudaKernel *cuda;
    Arena arena; /* texts of the GPU stages */
    const char *ttir, *ttgir, *llir, *ptx;
    int64_t shared;
};

bool tt_target_parse(const char *name, Target *target)
{
    *target = (Target){TARGET_CPU, 0};
    if (!strcmp(name, "cpu"))
        return true;
    if (strncmp(name, "cuda", 4) || (name[4] && name[4] != ':'))
        return false;
    target->kind = TARGET_CUDA;
    char *end = NULL;
    target->sm = name[4] ? (int)strtol(name + 5, &end, 10) : 0;
    return !name[4] || (end != name + 5 && !*end && target->sm > 0);
}

const char *tt_target_name(Target target, char out[16])
{
    if (target.kind == TARGET_CPU)
        return strcpy(out, "cpu");
    memcpy(out, "cuda:", 5);
    int at = 5;
    for (int power = target.sm >= 100 ? 100 : 10; power; power /= 10)
        out[at++] = (char)('0' + target.sm / power % 10);
    out[at] = 0;
    return out;
}

/* ---- compiling -------------------------------------------------------------------------------------------------------- */

static void release_code(void *code) { tt_code_release(code); }

static void compile_for_cuda(Code *code, Module *module, const CodeOptions *options, Arena *arena)
{
    GpuOptions gpu = {.sm = options->target.sm,
                      .num_warps = options->num_warps,
                      .num_stages = options->num_stages,
                      .enable_fp_fusion = !options->no_fusion,
                      .debug = options->debug};
    if (!tt_cuda_unavailable())
        gpu.ptx_version = tt_cuda_device(0)->ptx_version;
    int parameters = module->functions->body->arg_count;
    code->ttir = tt_print_module(module, &code->arena, 0);
    GpuKernel *kernel = tt_gpu_compile(module, &gpu, arena);
    code->ttgir = tt_arena_strdup(&code->arena, kernel->ttgir);
    code->llir = tt_arena_strdup(&code->arena, kernel->llir);
    code->ptx = tt_arena_strdup(&code->arena, kernel->ptx);
    code->shared = kernel->shared_bytes;
    code->cuda = tt_cuda_new_kernel(&(CudaImage){.name = kernel->name,
                                                 .ptx = kernel->ptx,
                                                 .shared_bytes = kernel->shared_bytes,
                                                 .threads = kernel->num_warps * 32,
                                                 .parameter_count = parameters,
                                                 .max_registers = options->max_registers});
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
        compile_for_cuda(code, module, options, arena);
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
        return (CodeFacts){0, code->shared};
    CpuFacts facts = tt_cpu_facts(code->cpu);
    return (CodeFacts){facts.lowering_milliseconds, (int64_t)TT_MAX(facts.scratch_size, (size_t)64)};
}

LoadedFacts tt_code_load(Code *code, int device, Arena *arena)
{
    if (code->cpu) /* all registers of a core are a program's own */
        return (LoadedFacts){.registers = 16, .max_threads = 1};
    const CudaKernelInfo *info = tt_cuda_load(code->cuda, device, arena);
    return (LoadedFacts){info->registers, info->spilled_bytes / 4, info->max_threads};
}

const char *const *tt_code_stages(const Code *code)
{
    static const char *const cpu[] = {"ttir", "llir", "asm", NULL};
    static const char *const cuda[] = {"ttir", "ttgir", "llir", "ptx", "cubin", NULL};
    return code->cpu ? cpu : cuda;
}

const char *tt_code_stage(Code *code, const char *stage, int device, Arena *arena, size_t *size)
{
    const char *text = NULL;
    if (code->cpu) {
        text = tt_cpu_text(code->cpu, stage, arena);
    } else if (!strcmp(stage, "cubin")) {
        const CudaKernelInfo *info = tt_cuda_load(code->cuda, device, arena);
        *size = info->cubin_size;
        return info->cubin;
    } else {
        const struct {
            const char *name, *text;
        } texts[] = {{"ttir", code->ttir}, {"ttgir", code->ttgir}, {"llir", code->llir}, {"ptx", code->ptx}};
        for (size_t i = 0; i < TT_COUNT(texts); i++)
            if (!strcmp(stage, texts[i].name))
                text = texts[i].text;
    }
    *size = text ? strlen(text) : 0;
    return text;
}

/* ---- launching --------------------------------------------------------------------------------------------------------------- */

LaunchResult tt_code_launch(Code *code, Place place, const uint64_t *args, const int32_t grid[3],
                            Arena *arena)
{
    LaunchResult result = {0};
    if (code->cpu)
        result.failure = tt_cpu_launch(code->cpu, args, grid, arena, &result.printed);
    else
        tt_cuda_launch(code->cuda, place.device, place.stream, args, grid, arena);
    return result;
}
