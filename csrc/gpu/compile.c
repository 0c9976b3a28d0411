/* The GPU pipeline: passes on tile IR, SIMT lowering, LLVM, PTX. */
#include "gpu/simt.h"

#define GPU_PASS(name, stage)                                                                                \
    static bool run_##name(Module *module, const void *options, Arena *scratch)                              \
    {                                                                                                        \
        return tt_gpu_##name(module, options, scratch);                                                      \
    }
#include "opt/passes.def"

static const Pass passes[] = {
#define GPU_PASS(name, stage) {#name, run_##name, STAGE_##stage},
#include "opt/passes.def"
};

/* Chosen by measuring (docs/design.md §8): the code is straight-line mostly, and was simplified as tile IR. Of what a vector
 * is loaded from only the first address is used: the others are dropped first, those too that a loop carries in a circle. */
static const char llvm_passes[] =
    "globaldce,function(adce,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,early-cse)";
/* libdevice's functions ask for their target (__nvvm_reflect), and are inlined. */
static const char library_passes[] =
    "nvvm-reflect,cgscc(inline),globaldce,function(sroa,early-cse,simplifycfg)";

static const char *verify(const Module *module, Arena *arena)
{
    return module->stage < STAGE_LAYOUTS ? NULL : tt_verify_layouts(module, arena);
}

void tt_gpu_run_passes(Module *module, const char *last, const GpuOptions *options)
{
    PassTable table = {"gpu", passes, TT_COUNT(passes), options, verify};
    tt_run_passes(module, &table, last);
}

static void count_stages(Op *op, void *most)
{
    *(int *)most = TT_MAX(*(int *)most, (int)tt_int_attr(op, ATTR_num_stages, 0));
}

/* What a loop asks for is a request. The pipeliner knows the buffers, but not yet the scratch of what stands around them: where
 * shared memory does not suffice for both, the passes run again: first with as much more left over in loops that load
 * further ahead than they ask for, then without strips, whose elements cross shared memory
 * where those of one thread do not, then with fewer stages. The module that they have run on. */
static Module *run_passes(Module *given, GpuOptions *options)
{
    Module *volatile module = given;
    enum { DEEP_ATTEMPTS = 3 };
    int asked = options->num_stages > TT_DEFAULT_STAGES ? options->num_stages : 0;
    volatile int deep_attempts = 0;
    tt_walk(given->functions->body, count_stages, &asked);
    for (volatile int stages = TT_MAX(asked, options->num_stages);;) {
        Trap trap;
        if (tt_try(&trap, given->arena)) {
            tt_gpu_run_passes(module, NULL, options);
            tt_end_try(&trap);
            given->remarks = module->remarks;
            return module;
        }
        bool has_strips = options->strips > 1, can_save = module->can_save && deep_attempts <= DEEP_ATTEMPTS;
        if (trap.diag.kind != TT_OUT_OF_RESOURCES || !options->source ||
            (stages <= 1 && !has_strips && !can_save))
            tt_raise(&trap.diag);
        module = tt_parse_module(given->arena, options->source, given->functions->name);
        module->asked_choices = given->asked_choices;
        module->choices = given->choices;
        if (can_save) { /* all of it at last */
            int64_t limit = tt_shared_limit(options->sm), lacking = trap.diag.needed - trap.diag.available;
            int64_t spared = TT_MAX(options->spared_bytes, limit / 8) + TT_MAX(lacking, 0);
            options->spared_bytes = (int)(deep_attempts++ < DEEP_ATTEMPTS ? TT_MIN(spared, limit) : limit);
            continue;
        }
        if (has_strips) {
            options->num_warps = tt_warps(options);
            options->strips = 1;
            continue;
        }
        options->most_stages = --stages;
        if (asked)
            tt_remark(module, trap.diag.loc,
                      "num_stages is lowered to %d: with more, this program would need %lld bytes of shared "
                      "memory, and it can "
                      "have %lld",
                      stages, (long long)trap.diag.needed, (long long)trap.diag.available);
    }
}

static _Noreturn void too_many_threads(int num_warps)
{
    enum { MOST = 1024 }; /* of a block, on every GPU */
    Diagnostic diag = {.kind = TT_OUT_OF_RESOURCES,
                       .message = "a program has 32 threads for each of its num_warps",
                       .remedy = "use 1, 2, 4, 8, 16 or 32",
                       .resource = "threads",
                       .needed = 32 * (int64_t)num_warps,
                       .available = MOST};
    tt_raise(&diag);
}

static void check_options(const GpuOptions *options)
{
    if (options->sm < 75)
        tt_unsupported(NULL, "GPUs of compute capability %d.%d: 7.5 is the oldest", options->sm / 10,
                       options->sm % 10);
    if (options->early && options->sm < 90)
        tt_unsupported(NULL, "launch_pdl on GPUs of compute capability %d.%d: it takes 9.0", options->sm / 10,
                       options->sm % 10);
    if (!tt_is_pow2(options->num_warps))
        tt_error_with_remedy(NULL, "use 1, 2, 4, 8, 16 or 32",
                             "num_warps is %d; it must be a power of 2 up to 32", options->num_warps);
    if (options->num_warps > 32)
        too_many_threads(options->num_warps);
}

/* The oldest PTX with everything that the code for `sm` may use. With an older one LLVM makes a mistake of it, and of an
 * architecture that is none code that no GPU takes. */
static int oldest_ptx(int sm)
{
    static const struct {
        int sm, ptx;
    } known[] = {{75, 74},  {80, 75},  {86, 75},  {87, 75},  {88, 90},  {89, 81}, {90, 81},
                 {100, 86}, {101, 86}, {103, 88}, {110, 90}, {120, 87}, {121, 88}};
    for (size_t i = 0; i < TT_COUNT(known); i++)
        if (known[i].sm == sm)
            return known[i].ptx;
    tt_unsupported(NULL,
                   "GPUs of compute capability %d.%d: no such architecture is known, the newest is %d.%d",
                   sm / 10, sm % 10, known[TT_COUNT(known) - 1].sm / 10, known[TT_COUNT(known) - 1].sm % 10);
}

/* mma.sync of fp8 came late. */
static void raise_ptx(Op *op, void *version)
{
    enum { WITH_FP8 = 84 };
    if (op->opcode == OP_dot && tt_is_on_tensor_cores(op) && tt_is_fp8(tt_operand(op, 0)->type))
        *(int *)version = TT_MAX(*(int *)version, WITH_FP8);
}

static Codegen *new_codegen(const Module *module, const GpuOptions *options, Arena *arena)
{
    /* From sm_90 on, the features of just this architecture are used too. */
    const char *cpu = tt_arena_format(arena, "sm_%d%s", options->sm, options->sm >= 90 ? "a" : "");
    int ptx = TT_MAX(options->ptx_version, oldest_ptx(options->sm));
    tt_walk(module->functions->body, raise_ptx, &ptx);
    return tt_new_nvptx_codegen(arena, module->functions->name, cpu, tt_arena_format(arena, "+ptx%d", ptx));
}

/* What the lowering sees of a kernel: there is nothing else that its code depends on. */
static Digest digest_of(const Module *module, const GpuOptions *options, int programs)
{
    Hasher hasher;
    tt_hasher_init(&hasher);
    tt_hasher_add_string(&hasher, tt_print_module(module, module->arena, 0));
    tt_hasher_add_number(&hasher, options->num_warps);
    tt_hasher_add_number(&hasher, programs);
    return tt_hasher_end(&hasher);
}

static void look_for_tensor_cores(Op *op, void *found)
{
    *(bool *)found |= op->opcode == OP_wgmma || tt_is_on_tensor_cores(op);
}

GpuEstimate tt_gpu_estimate(Module *given, const GpuOptions *asked)
{
    static const int64_t warps[] = {1, 2, 4, 8, 16};
    GpuOptions options = *asked;
    check_options(asked);
    tt_choose(given, "num_warps", warps, TT_COUNT(warps), options.num_warps);
    Module *module = run_passes(given, &options);
    int programs = tt_wanted_programs(module, &options); /* a choice, too */
    tt_check_choices(module);
    given->choices = module->choices;
    GpuEstimate estimate = {.shared_bytes = tt_shared_bytes(module),
                            .registers = tt_tile_registers(module),
                            .ahead = module->ahead,
                            .code = digest_of(module, &options, programs),
                            .module = module};
    tt_walk(module->functions->body, look_for_tensor_cores, &estimate.on_tensor_cores);
    return estimate;
}

/* ptxas takes more than linear time for a function, and nobody tunes one of thousands of statements. Of 64-bit arithmetic it
 * did 2000 instructions in a second with all its optimisation, 5000 at level 1, 8000 with none; code at level 1 is hardly
 * longer (a sort of 8192), without any it is twice as long, and takes three times the memory. LLVM is linear from version
 * 22 on, and what its code generator leaves unoptimised ptxas pays for (3000 loads: 18 s instead of 2). Older ones are
 * told to hurry where their passes, which compare each sum with those before it, would take minutes. */
static void bound_effort(GpuKernel *kernel, Codegen *codegen)
{
    enum { LONG = 12000, MANY_SUMS = 2000, LITTLE = 1, NONE = 0, FOR_NONE = 60000, OF_BLOCK = 10 };
    CodeSize size = tt_codegen_size(codegen);
    int work = size.instructions + OF_BLOCK * size.blocks;
    if (!tt_leaves_out_strength_reduction() && (size.instructions > LONG || size.sums > MANY_SUMS))
        tt_codegen_hurry(codegen);
    kernel->effort = work > FOR_NONE ? NONE : work > LONG ? LITTLE : FULL_EFFORT;
}

GpuKernel *tt_gpu_compile(Module *given, const GpuOptions *asked, Arena *arena)
{
    check_options(asked);
    GpuOptions with_strips = tt_with_strips(given, asked, arena), *options = &with_strips;
    Module *module = run_passes(given, options);
    GpuKernel *kernel = TT_NEW(arena, GpuKernel);
    kernel->name = module->functions->name;
    kernel->num_warps = asked->num_warps;
    if (options->texts)
        kernel->ttgir = tt_print_module(module, arena, options->locations ? TT_PRINT_LOCATIONS : 0);
    kernel->shared_bytes = tt_shared_bytes(module);
    Codegen *codegen = new_codegen(module, options, arena);
    tt_lower_kernel(codegen, module, options, &tt_nvptx_ops, kernel);
    tt_check_choices(module);
    tt_codegen_verify(codegen);
    if (tt_link_libdevice(codegen, options->libdevice))
        tt_codegen_run_passes(codegen, library_passes);
    do
        tt_codegen_run_passes(codegen, llvm_passes);
    while (tt_nvptx_use_known(codegen));
    tt_nvptx_drop_unused(codegen, arena);
    tt_order_arithmetic(codegen, tt_has_products(module->functions->body), arena);
    tt_nvptx_hide_constants(codegen, arena);
    tt_nvptx_guard_shorts(codegen);
    tt_nvptx_join_halves(codegen, arena);
    if (options->texts)
        kernel->llir = tt_codegen_llvm_text(codegen);
    bound_effort(kernel, codegen);
    kernel->ptx = tt_codegen_assembly(codegen);
    return kernel;
}

/* Compiling is most of the time of what runs once or twice, so it is done without optimisation. All threads of a block
 * have stacks: they are kept small. */
SimKernel *tt_gpu_compile_for_simulator(Module *given, const GpuOptions *asked, Arena *arena)
{
    enum { LONGEST_FUNCTION = 8000, STACK_FOR_INSTRUCTION = 64, STACK_FOR_LIBRARIES = 64 << 10 };
    check_options(asked);
    GpuOptions with_strips = tt_with_strips(given, asked, arena), *options = &with_strips;
    Module *module = run_passes(given, options);
    SimKernel *kernel = TT_NEW(arena, SimKernel);
    kernel->num_warps = asked->num_warps;
    if (options->texts)
        kernel->ttgir = tt_print_module(module, arena, options->locations ? TT_PRINT_LOCATIONS : 0);
    kernel->shared_bytes = tt_shared_bytes(module);
    Codegen *codegen = tt_new_codegen(arena, module->functions->name);
    tt_codegen_hurry(codegen);
    kernel->synchronisations = tt_lower_kernel(codegen, module, options, &tt_sim_ops, NULL);
    tt_codegen_verify(codegen);
    tt_codegen_run_passes(codegen, llvm_passes);
    tt_codegen_split(codegen, LONGEST_FUNCTION);
    tt_codegen_mask_selects(codegen);
    if (options->texts)
        kernel->llir = tt_codegen_llvm_text(codegen);
    kernel->stack_bytes = STACK_FOR_LIBRARIES + (int)tt_codegen_stack(codegen, STACK_FOR_INSTRUCTION);
    kernel->object = tt_codegen_object(codegen);
    return kernel;
}
