/* Into how many strips large tiles are cut. Where the layouts of all tiles would give a thread hundreds of elements, its
 * code would be as long, and most of them would be spilled. Such kernels get the layouts of a program with more warps, and
 * each warp plays several of them (simt_strips.c). */
#include "gpu/passes.h"

enum {
    MANY = 128,            /* registers of a tile in a thread: no more at once */
    STRIP = 32,            /* then this many */
    MOST_SCANNING = 32,    /* warps that exchange the totals of a scan */
    MOST_STRIPS = 1 << 12, /* far beyond the largest tile that there can be */
};

typedef struct Search {
    int64_t threads, registers; /* of the largest tile in a thread */
    bool has_products, has_scans;
} Search;

static void measure(Op *op, void *context)
{
    Search *search = context;
    search->has_products |= op->opcode == OP_dot;
    search->has_scans |= op->opcode == OP_scan;
    for (int i = 0; i < op->result_count; i++) {
        const Type *type = op->results[i]->type;
        if (!tt_is_tile(type))
            continue;
        int64_t elements = 1;
        for (int axis = 0; axis < type->rank; axis++)
            elements *= tt_next_pow2(type->shape[axis]);
        elements /= search->threads;
        int words = tt_is_ptr(type) ? 1 : TT_MAX(1, tt_bit_width(type) / 32); /* addresses share a base */
        search->registers = TT_MAX(search->registers, elements * words);
    }
}

/* The sums of a product are to stay in registers, however many. */
GpuOptions tt_with_strips(Module *module, const GpuOptions *options)
{
    GpuOptions result = *options;
    Search search = {.threads = (int64_t)TT_LANES * options->num_warps};
    TT_FOR_FUNCTIONS(function, module)
    tt_walk(function->body, measure, &search);
    int strips = 1, most = search.has_scans ? MOST_SCANNING / options->num_warps : MOST_STRIPS;
    if (search.registers > MANY && !search.has_products)
        while (search.registers > STRIP * strips && strips < most)
            strips *= 2;
    result.num_warps *= strips;
    result.strips = strips;
    return result;
}

int tt_warps(const GpuOptions *options) { return options->num_warps / TT_MAX(1, options->strips); }
