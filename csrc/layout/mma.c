/* Which lane and register of a warp holds which element of a tensor core's matrices (PTX ISA, "Matrix Fragments for
 * mma.m16n8k*" and "Register Fragments for wgmma.mma_async"). All shapes of mma.sync follow one pattern: of an operand,
 * four lanes share a row (of A) or a column (of B), each with 32 bits of K, or one element if that is wider; further
 * registers have the other half of M, then the other half of K. wgmma's accumulators, and its A in registers, are those
 * of 4 warps along M. */
#include "layout/layout.h"

/* A place's next bit is this bit of the coordinate along `axis`. Where the tile ends before that, lanes and warps hold
 * copies, and there are no such registers. */
static void add_bit(LinearLayout *layout, LayoutInput input, int axis, int bit)
{
    bool fits = bit < layout->out_bits[axis];
    if (fits || input != LAYOUT_REGISTER)
        tt_layout_add_base(layout, input, fits ? 1ull << (tt_layout_axis_start(layout, axis) + bit) : 0);
}

/* From this bit on; warps along a dimension that the matrix does not have (< 0) hold copies. */
static void add_warps(LinearLayout *layout, int axis, int bit, int64_t warps)
{
    for (int i = 0; i < tt_log2(warps); i++)
        if (bit >= 0)
            add_bit(layout, LAYOUT_WARP, axis, bit + i);
        else
            tt_layout_add_base(layout, LAYOUT_WARP, 0);
}

LinearLayout tt_layout_mma(const int64_t *shape, int rank, MmaPart part, int element_bytes,
                           const int64_t *warps)
{
    LinearLayout layout = tt_layout_empty(shape, rank);
    bool is_sum = part == MMA_ACCUMULATOR;
    int upper = rank - 2, lower = rank - 1; /* the matrices' dimensions */
    int k = part == MMA_B ? upper : lower,
        other = part == MMA_B ? lower : upper; /* where an operand has K, accumulators have N */
    int word = is_sum ? 1 : tt_log2(TT_MAX(1, 4 / element_bytes));
    for (int i = 0; i < word; i++)
        add_bit(&layout, LAYOUT_REGISTER, k, i);
    if (part != MMA_B)
        add_bit(&layout, LAYOUT_REGISTER, other, 3);
    if (!is_sum)
        add_bit(&layout, LAYOUT_REGISTER, k, word + 2);
    for (int i = 0; i < 2; i++)
        add_bit(&layout, LAYOUT_LANE, k, word + i);
    for (int i = 0; i < 3; i++)
        add_bit(&layout, LAYOUT_LANE, other, i);
    int next[TT_MAX_RANK] = {0}, end[TT_MAX_RANK]; /* behind the instruction's tile; of the registers */
    memcpy(end, layout.out_bits, sizeof end);
    next[k] = word + 2 + !is_sum;
    next[other] = part == MMA_B ? 3 : 4;
    for (int axis = 0; axis < upper; axis++) {
        add_warps(&layout, axis, 0, warps[axis]);
        next[axis] = tt_log2(warps[axis]);
    }
    add_warps(&layout, upper, part == MMA_B ? -1 : next[upper], warps[upper]);
    next[upper] += part == MMA_B ? 0 : tt_log2(warps[upper]);
    if (part != MMA_A) /* each has columns in a row: the upper bits */
        end[lower] = TT_MAX(next[lower], end[lower] - tt_log2(warps[lower]));
    add_warps(&layout, lower, part == MMA_A ? -1 : end[lower], warps[lower]);
    const int order[] = {k, other, 0};
    for (int i = 0; i < rank; i++)
        for (int axis = order[i], bit = next[axis]; bit < end[axis]; bit++)
            add_bit(&layout, LAYOUT_REGISTER, axis, bit);
    return layout;
}
