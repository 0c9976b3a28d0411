/* From a module of tile IR to a compiled kernel, and its texts. */
#include "cpu/lower.h"
#include <stdlib.h>

static int64_t bytes_stored_in(const Region *region)
{
    int64_t bytes = 0;
    for (const Op *op = region->first; op; op = op->next) {
        if (op->opcode == OP_store && tt_is_tile(tt_operand(op, 1)->type))
            bytes += tt_operand(op, 1)->type->count * tt_byte_width(tt_operand(op, 1)->type);
        for (int i = 0; i < op->region_count; i++)
            bytes += bytes_stored_in(op->regions[i]);
    }
    return bytes;
}

/* What LLVM does to a function takes more than linear time, and optimising a module of this size takes seconds. Few
 * kernels come near to either. */
static void bound_effort(Codegen *codegen)
{
    enum { LONGEST_FUNCTION = 8000, OF_SUMS = 2000, MANY_SUMS = 1500, WORTH_OPTIMISING = 100000 };
    CodeSize size = tt_codegen_size(codegen);
    /* LLVM moves constants of integers along a chain of sums and products, each step to the end of its block. */
    tt_codegen_split(codegen, size.sums_of_block > MANY_SUMS ? OF_SUMS : LONGEST_FUNCTION);
    if (size.instructions > WORTH_OPTIMISING)
        tt_codegen_hurry(codegen);
}

/* With `places` the code comes with a line table of them. */
static void lower_module(Codegen *codegen, Module *module, CpuImage *image, Places *places, Arena *arena)
{
    if (!module->functions)
        tt_bug("cpu: the module has no kernel");
    Map functions = {.arena = arena};
    Emit *emit = new_emit(codegen, arena);
    emit->no_fusion = image->options.no_fusion;
    emit->places = places;
    Lower *l = new_lower(emit, arena, image, module->functions, &functions);
    image->stored_bytes = (float)bytes_stored_in(l->function->body);
    lower_kernel(l);
    finish_places(emit);
    tt_return_marks(l->function);
    bound_effort(codegen);
}

static void release_arena(void *arena) { tt_arena_release(arena); }

#define CPU_PASS(name)                                                                                       \
    static bool run_##name(Module *module, const void *options, Arena *scratch)                              \
    {                                                                                                        \
        (void)options;                                                                                       \
        return tt_cpu_##name(module, scratch);                                                               \
    }
#include "opt/passes.def"

static const Pass passes[] = {
#define CPU_PASS(name) {#name, run_##name, STAGE_TILES},
#include "opt/passes.def"
};

CpuImage *tt_cpu_compile(Module *module, const CpuOptions *options, Arena *arena)
{
    tt_run_passes(module, &(PassTable){"cpu", passes, TT_COUNT(passes), NULL, NULL}, NULL);
    CpuImage *image = TT_NEW(arena, CpuImage);
    image->options = *options;
    image->source = tt_print_module(module, arena, TT_PRINT_LOCATIONS);
    image->name = tt_arena_strdup(arena, module->functions->name);
    Arena *work = TT_NEW(arena, Arena); /* released at the end, or when the compilation fails */
    tt_arena_on_release(arena, release_arena, work);
    Codegen *codegen = tt_new_codegen(work, image->name);
    double start = tt_milliseconds();
    lower_module(codegen, module, image, NULL, work);
    image->lowering_milliseconds = tt_milliseconds() - start;
    if (tt_verifies_passes())
        tt_codegen_verify(codegen);
    Bytes object = tt_codegen_object(codegen).file;
    image->object = (Bytes){tt_arena_copy(arena, object.data, object.size), object.size};
    tt_arena_release(work);
    return image;
}

CpuKernel *tt_cpu_load(const CpuImage *image)
{
    CpuKernel *kernel = calloc(1, sizeof *kernel);
    if (!kernel)
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory while compiling"});
    Trap trap;
    if (!tt_try(&trap, &kernel->arena)) {
        Trap *outer = trap.outer;
        trap.diag.message = tt_arena_strdup(outer->arena, trap.diag.message);
        tt_cpu_release(kernel);
        tt_raise(&trap.diag);
    }
    kernel->image = *image;
    kernel->stored_bytes = image->stored_bytes;
    kernel->entry =
        (CpuEntry)(uintptr_t)tt_link_object(image->object, image->name, tt_cpu_symbol, &kernel->arena);
    tt_end_try(&trap);
    return kernel;
}

void tt_cpu_release(CpuKernel *kernel)
{
    Arena arena = kernel->arena;
    tt_arena_release(&arena);
    free(kernel);
}

void *tt_cpu_entry(const CpuKernel *kernel) { return (void *)(uintptr_t)kernel->entry; }

/* The kernel lowered once more. */
static Codegen *lower_again(const CpuImage *image, Module *module, Places *places, Arena *arena)
{
    CpuImage *copy = TT_NEW(arena, CpuImage);
    *copy = (CpuImage){.name = image->name, .options = image->options};
    Codegen *codegen = tt_new_codegen(arena, image->name);
    lower_module(codegen, module, copy, places, arena);
    return codegen;
}

const char *tt_cpu_text(const CpuImage *image, const char *what, Arena *arena)
{
    bool located = !strcmp(what, "asm+loc"), assembly = located || !strcmp(what, "asm");
    bool tiles = !strcmp(what, "ttir");
    if (!assembly && !tiles && strcmp(what, "llir"))
        return NULL;
    Module *module = tt_parse_module(arena, image->source, image->name);
    if (tiles)
        return tt_print_module(module, arena, 0);
    Places *places = located ? new_places(arena) : NULL;
    Codegen *codegen = lower_again(image, module, places, arena);
    if (!assembly)
        return tt_codegen_llvm_text(codegen);
    Text text = {.arena = arena};
    tt_text_add(&text, "%s", tt_codegen_assembly(codegen));
    for (int i = 1; places && place_text(places, i); i++)
        tt_text_add(&text, "# place %d: %s\n", i, place_text(places, i));
    return text.data;
}

/* Line tables do not change the code, as a rule: where they do, they say nothing of the code that runs. */
const char *tt_cpu_place(const CpuKernel *kernel, uintptr_t instruction, Arena *arena)
{
    const CpuImage *image = &kernel->image;
    size_t offset = instruction - (uintptr_t)kernel->entry;
    uint64_t hash, hash_with_lines;
    Places *places = new_places(arena);
    Module *module = tt_parse_module(arena, image->source, image->name);
    tt_codegen_line_at(lower_again(image, module, NULL, arena), offset, &hash);
    module = tt_parse_module(arena, image->source, image->name);
    int number = tt_codegen_line_at(lower_again(image, module, places, arena), offset, &hash_with_lines);
    return hash == hash_with_lines ? place_text(places, number) : NULL;
}
