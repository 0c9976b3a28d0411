/* Layouts made from shapes, and layouts made from layouts as shape operations go. */
#include "layout/layout.h"

LinearLayout tt_layout_empty(const int64_t *shape, int rank)
{
    LinearLayout layout = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        TT_ASSERT(tt_is_pow2(shape[i]));
        layout.out_bits[i] = tt_log2(shape[i]);
    }
    TT_ASSERT(tt_layout_out_total(&layout) <= 40);
    return layout;
}

void tt_layout_add_base(LinearLayout *layout, LayoutInput input, uint64_t base)
{
    int at = tt_layout_in_start(layout, input) + layout->in_bits[input], total = tt_layout_in_total(layout);
    TT_ASSERT(total < 64);
    memmove(layout->bases + at + 1, layout->bases + at, sizeof(uint64_t) * (size_t)(total - at));
    layout->bases[at] = base;
    layout->in_bits[input]++;
}

LinearLayout tt_layout_blocked(const int64_t *shape, int rank, const int64_t *size_per_thread,
                               const int64_t *threads_per_warp, const int64_t *warps, const int *order)
{
    LinearLayout layout = tt_layout_empty(shape, rank);
    const int64_t *const extents[] = {size_per_thread, threads_per_warp, warps};
    int used[TT_MAX_RANK] = {0};
    for (int input = LAYOUT_REGISTER; input <= LAYOUT_WARP; input++)
        for (int i = 0; i < rank; i++) {
            int axis = order[i];
            for (int bit = 0; bit < tt_log2(extents[input][axis]); bit++) {
                bool fits = used[axis] < layout.out_bits[axis];
                if (fits)
                    tt_layout_add_base(&layout, input,
                                       1ull << (tt_layout_axis_start(&layout, axis) + used[axis]++));
                else if (input != LAYOUT_REGISTER)
                    tt_layout_add_base(&layout, input, 0);
            }
        }
    for (int i = 0; i < rank; i++)
        while (used[order[i]] < layout.out_bits[order[i]])
            tt_layout_add_base(&layout, LAYOUT_REGISTER,
                               1ull << (tt_layout_axis_start(&layout, order[i]) + used[order[i]]++));
    return layout;
}

LinearLayout tt_layout_slice(const LinearLayout *layout, int axis)
{
    LinearLayout result = *layout;
    int start = tt_layout_axis_start(layout, axis), bits = layout->out_bits[axis];
    for (int i = 0; i < tt_layout_in_total(layout); i++) {
        uint64_t low = layout->bases[i] & ((1ull << start) - 1);
        result.bases[i] = layout->bases[i] >> (start + bits) << start | low;
    }
    result.rank--;
    for (int i = axis; i < result.rank; i++)
        result.out_bits[i] = layout->out_bits[i + 1];
    return result;
}

LinearLayout tt_layout_expand(const LinearLayout *layout, int axis)
{
    LinearLayout result = *layout;
    TT_ASSERT(layout->rank < TT_MAX_RANK);
    for (int i = layout->rank; i > axis; i--)
        result.out_bits[i] = layout->out_bits[i - 1];
    result.out_bits[axis] = 0;
    result.rank++;
    return result;
}

/* The base as the element index of the same coordinates in another shape; dimension i of `to` is axes[i] of `from`. */
static uint64_t move_base(uint64_t base, const LinearLayout *from, const LinearLayout *to, const int *axes)
{
    uint64_t moved = 0;
    for (int i = 0; i < to->rank; i++) {
        uint64_t coordinate =
            base >> tt_layout_axis_start(from, axes[i]) & ((1ull << from->out_bits[axes[i]]) - 1);
        moved |= coordinate << tt_layout_axis_start(to, i);
    }
    return moved;
}

static void move_bases(const LinearLayout *from, LinearLayout *to, const int *axes)
{
    memcpy(to->in_bits, from->in_bits, sizeof to->in_bits);
    for (int i = 0; i < tt_layout_in_total(from); i++)
        to->bases[i] = move_base(from->bases[i], from, to, axes);
}

LinearLayout tt_layout_broadcast(const LinearLayout *layout, const int64_t *shape)
{
    LinearLayout result = tt_layout_empty(shape, layout->rank);
    int same[TT_MAX_RANK];
    for (int i = 0; i < layout->rank; i++)
        same[i] = i;
    move_bases(layout, &result, same);
    for (int axis = layout->rank - 1; axis >= 0; axis--)
        for (int bit = layout->out_bits[axis]; bit < result.out_bits[axis]; bit++)
            tt_layout_add_base(&result, LAYOUT_REGISTER, 1ull << (tt_layout_axis_start(&result, axis) + bit));
    return result;
}

LinearLayout tt_layout_permute(const LinearLayout *layout, const int *order)
{
    LinearLayout result = {.rank = layout->rank};
    for (int i = 0; i < layout->rank; i++)
        result.out_bits[i] = layout->out_bits[order[i]];
    move_bases(layout, &result, order);
    return result;
}

LinearLayout tt_layout_reshape(const LinearLayout *layout, const int64_t *shape, int rank)
{
    LinearLayout result = tt_layout_empty(shape, rank);
    TT_ASSERT(tt_layout_out_total(&result) == tt_layout_out_total(layout));
    memcpy(result.in_bits, layout->in_bits, sizeof result.in_bits);
    memcpy(result.bases, layout->bases, sizeof result.bases);
    return result;
}

LinearLayout tt_layout_join(const LinearLayout *layout)
{
    LinearLayout result = tt_layout_expand(layout, layout->rank);
    result.out_bits[layout->rank] = 1;
    result.in_bits[LAYOUT_REGISTER]++;
    result.bases[0] = 1;
    for (int i = 0; i < tt_layout_in_total(layout); i++)
        result.bases[i + 1] = layout->bases[i] << 1;
    return result;
}

bool tt_layout_split(const LinearLayout *layout, LinearLayout *out)
{
    TT_ASSERT(layout->out_bits[layout->rank - 1] == 1);
    int found = -1;
    for (int i = 0; i < tt_layout_in_total(layout); i++)
        if (layout->bases[i] & 1) {
            if (found >= 0 || i >= layout->in_bits[LAYOUT_REGISTER] || layout->bases[i] != 1)
                return false;
            found = i;
        }
    if (found < 0)
        return false;
    *out = *layout;
    out->rank--;
    out->in_bits[LAYOUT_REGISTER]--;
    for (int i = 0, to = 0; i < tt_layout_in_total(layout); i++)
        if (i != found)
            out->bases[to++] = layout->bases[i] >> 1;
    return true;
}

LinearLayout tt_layout_without_register_copies(const LinearLayout *layout)
{
    LinearLayout result = *layout;
    uint32_t copies = tt_layout_replication(layout, LAYOUT_REGISTER);
    int to = 0;
    for (int i = 0; i < tt_layout_in_total(layout); i++)
        if (i >= layout->in_bits[LAYOUT_REGISTER] || !(copies >> i & 1))
            result.bases[to++] = layout->bases[i];
    result.in_bits[LAYOUT_REGISTER] -= __builtin_popcount(copies);
    return result;
}

/* The register bit whose whole image is this element bit, which no other bit's image has in it; -1: there is none. */
static int register_of(const LinearLayout *layout, int element_bit)
{
    int found = -1;
    for (int i = 0; i < tt_layout_in_total(layout); i++) {
        if (!(layout->bases[i] >> element_bit & 1))
            continue;
        if (found >= 0 || i >= layout->in_bits[LAYOUT_REGISTER] || layout->bases[i] != 1ull << element_bit)
            return -1;
        found = i;
    }
    return found;
}

int tt_layout_halving_bit(const LinearLayout *a, const LinearLayout *b, int least)
{
    int bit = tt_layout_out_total(a) - 1;
    while (bit >= least && (register_of(a, bit) < 0 || register_of(b, bit) < 0))
        bit--;
    return bit >= least ? bit : -1;
}

LinearLayout tt_layout_half(const LinearLayout *layout, int element_bit, int *register_bit)
{
    LinearLayout half = *layout;
    uint64_t below = (1ull << element_bit) - 1;
    *register_bit = register_of(layout, element_bit);
    for (int i = 0, to = 0; i < tt_layout_in_total(layout); i++)
        if (i != *register_bit)
            half.bases[to++] = (layout->bases[i] & below) | (layout->bases[i] >> 1 & ~below);
    half.in_bits[LAYOUT_REGISTER]--;
    int axis = layout->rank - 1;
    while (element_bit >= tt_layout_axis_start(layout, axis) + layout->out_bits[axis])
        axis--;
    half.out_bits[axis]--;
    return half;
}

LinearLayout tt_layout_shared_out(const LinearLayout *layout)
{
    LinearLayout shared = *layout;
    int total = tt_layout_in_total(layout), lanes = tt_layout_in_start(layout, LAYOUT_LANE);
    for (int i = 0; i < layout->in_bits[LAYOUT_LANE] && shared.in_bits[LAYOUT_REGISTER]; i++) {
        int registers = shared.in_bits[LAYOUT_REGISTER],
            lane = lanes + i - (layout->in_bits[LAYOUT_REGISTER] - registers);
        if (shared.bases[lane] || !shared.bases[registers - 1])
            continue;
        shared.bases[lane] = shared.bases[registers - 1];
        total--;
        for (int j = registers - 1; j < total; j++)
            shared.bases[j] = shared.bases[j + 1];
        shared.in_bits[LAYOUT_REGISTER]--;
    }
    return shared;
}

LinearLayout tt_layout_swizzled(const int64_t *shape, int rank, int64_t vec, int64_t per_phase,
                                int64_t max_phase)
{
    LinearLayout layout = tt_layout_empty(shape, rank);
    int columns = layout.out_bits[rank - 1], rows = rank > 1 ? layout.out_bits[rank - 2] : 0;
    for (int bit = 0; bit < tt_layout_out_total(&layout); bit++) {
        uint64_t base = 1ull << bit;
        int phase = bit - columns - tt_log2(per_phase); /* which bit of the row's phase this is */
        int chunk = tt_log2(vec) + phase;
        if (bit >= columns && bit < columns + rows && phase >= 0 && phase < tt_log2(max_phase) &&
            chunk < columns)
            base |= 1ull << chunk;
        tt_layout_add_base(&layout, LAYOUT_REGISTER, base);
    }
    return layout;
}

LinearLayout tt_layout_nvmma(const int64_t *shape, int rank, int element_bytes, int swizzle_bytes)
{
    LinearLayout layout = tt_layout_empty(shape, rank);
    int columns = layout.out_bits[rank - 1];
    int panel = TT_MIN(tt_log2(swizzle_bytes / element_bytes), columns); /* column bits within a panel */
    int chunk = tt_log2(TT_CHUNK / element_bytes);                       /* ... within a chunk */
    int rows = rank > 1 ? layout.out_bits[rank - 2] : 0, total = tt_layout_out_total(&layout);
    TT_ASSERT(swizzle_bytes == 32 || swizzle_bytes == 64 || swizzle_bytes == 128);
    for (int bit = 0; bit < panel; bit++)
        tt_layout_add_base(&layout, LAYOUT_REGISTER, 1ull << bit);
    for (int row = 0; row < rows; row++) {
        uint64_t base = 1ull << (columns + row);
        int address_bit =
            panel + row + tt_log2(element_bytes); /* of the byte address; bit 7 + i turns chunk bit i */
        int turned = chunk + address_bit - 7;
        if (address_bit >= 7 && turned < tt_log2(swizzle_bytes / element_bytes) && turned < panel)
            base |= 1ull << turned;
        tt_layout_add_base(&layout, LAYOUT_REGISTER, base);
    }
    for (int bit = panel; bit < columns; bit++)
        tt_layout_add_base(&layout, LAYOUT_REGISTER, 1ull << bit);
    for (int bit = columns + rows; bit < total; bit++)
        tt_layout_add_base(&layout, LAYOUT_REGISTER, 1ull << bit);
    return layout;
}
