/* Into how many strips large tiles are cut. Where the layouts of all tiles would give a thread hundreds of elements, its
 * code would be as long, and most of them would be spilled. Such kernels get the layouts of a program with more warps, and
 * each warp plays several of them (simt_strips.c). */
#include "gpu/passes.h"

enum {
    MANY = 128,            /* registers of a tile in a thread: no more at once */
    STRIP = 32,            /* then this many */
    ALL = 256,             /* of what a loop of products carries */
    OF_PRODUCTS = 128,     /* of it in each of their strips */
    MOST_SCANNING = 32,    /* warps that exchange the totals of a scan */
    MOST_STRIPS = 1 << 12, /* far beyond the largest tile that there can be */
};

typedef struct Search {
    int64_t threads;
    Map indices;                /* Value* -> itself: tiles that are computed from numbers */
    int64_t registers, carried; /* in a thread: of the largest tile, and of all that a loop carries */
    bool has_products, has_scans;
} Search;

static int64_t registers_of(const Search *search, const Type *type)
{
    int64_t elements = tt_is_tile(type);
    for (int axis = 0; elements && axis < type->rank; axis++)
        elements *= tt_next_pow2(type->shape[axis]);
    int words = tt_is_ptr(type) ? 1 : TT_MAX(1, tt_bit_width(type) / 32); /* addresses share a base */
    return elements / search->threads * words;
}

static void look(Op *op, void *context)
{
    Search *search = context;
    search->has_products |= op->opcode == OP_dot;
    search->has_scans |= op->opcode == OP_scan;
}

/* Indices, and masks and addresses that they make. Beside products these are computed where they are needed, of 64 bits or not. */
static bool are_indices(Search *search, const Op *op)
{
    bool are = search->has_products && op->result_count == 1 && tt_is_layout_free(op);
    for (int i = 0; are && i < op->operand_count; i++)
        are = !tt_is_tile(tt_operand(op, i)->type) || tt_map_find_ptr(&search->indices, tt_operand(op, i));
    if (are)
        *tt_map_slot_ptr(&search->indices, op->results[0]) = op->results[0];
    return are;
}

static void measure(Op *op, void *context)
{
    Search *search = context;
    int64_t all = 0;
    if (are_indices(search, op))
        return;
    for (int i = 0; i < op->result_count; i++) {
        int64_t registers = registers_of(search, op->results[i]->type);
        search->registers = TT_MAX(search->registers, registers);
        all += tt_is_ptr(op->results[i]->type)
                   ? 0
                   : registers * TT_MIN(32, tt_bit_width(op->results[i]->type)) / 32;
    }
    if (tt_is_loop(op))
        search->carried = TT_MAX(search->carried, all);
}

/* What a loop of products carries is to stay in registers, unless there are not as many. */
GpuOptions tt_with_strips(Module *module, const GpuOptions *options, Arena *scratch)
{
    GpuOptions result = *options;
    Search search = {.threads = (int64_t)TT_LANES * options->num_warps, .indices = {.arena = scratch}};
    TT_FOR_FUNCTIONS(function, module)
    tt_walk(function->body, look, &search);
    TT_FOR_FUNCTIONS(function, module)
    tt_walk(function->body, measure, &search);
    int strips = 1, most = search.has_scans ? MOST_SCANNING / options->num_warps : MOST_STRIPS;
    int64_t registers = search.has_products ? TT_MAX(search.registers, search.carried) : search.registers;
    int64_t at_once = search.has_products ? ALL : MANY, strip = search.has_products ? OF_PRODUCTS : STRIP;
    if (registers > at_once)
        while (registers > strip * strips && strips < most)
            strips *= 2;
    result.num_warps *= strips;
    result.strips = strips;
    return result;
}

int tt_warps(const GpuOptions *options) { return options->num_warps / TT_MAX(1, options->strips); }
