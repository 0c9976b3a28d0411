/* Linear layouts: applying, composing, inverting, and the questions that lowering asks of them. */
#include "layout/layout.h"

int tt_layout_in_start(const LinearLayout *layout, LayoutInput input)
{
    int start = 0;
    for (int i = 0; i < (int)input; i++)
        start += layout->in_bits[i];
    return start;
}

int tt_layout_in_total(const LinearLayout *layout) { return tt_layout_in_start(layout, LAYOUT_INPUTS); }

int tt_layout_axis_start(const LinearLayout *layout, int axis)
{
    int start = 0;
    for (int i = axis + 1; i < layout->rank; i++)
        start += layout->out_bits[i];
    return start;
}

int tt_layout_out_total(const LinearLayout *layout) { return tt_layout_axis_start(layout, -1); }

void tt_layout_coordinates(const LinearLayout *layout, uint64_t element, int64_t *coordinates)
{
    for (int axis = layout->rank - 1; axis >= 0; axis--) {
        coordinates[axis] = (int64_t)(element & ((1ull << layout->out_bits[axis]) - 1));
        element >>= layout->out_bits[axis];
    }
}

static bool same_shape(const LinearLayout *a, const LinearLayout *b)
{
    return a->rank == b->rank && !memcmp(a->out_bits, b->out_bits, sizeof(int) * (size_t)a->rank);
}

bool tt_layout_equal(const LinearLayout *a, const LinearLayout *b)
{
    return same_shape(a, b) && !memcmp(a->in_bits, b->in_bits, sizeof a->in_bits) &&
           !memcmp(a->bases, b->bases, sizeof(uint64_t) * (size_t)tt_layout_in_total(a));
}

bool tt_layout_is_surjective(const LinearLayout *layout)
{
    return tt_f2_rank(layout->bases, tt_layout_in_total(layout)) == tt_layout_out_total(layout);
}

bool tt_layout_is_injective(const LinearLayout *layout)
{
    return tt_f2_rank(layout->bases, tt_layout_in_total(layout)) == tt_layout_in_total(layout);
}

LinearLayout tt_layout_compose(const LinearLayout *outer, const LinearLayout *inner)
{
    TT_ASSERT(outer->in_bits[LAYOUT_REGISTER] == tt_layout_out_total(inner));
    LinearLayout result = *outer;
    memcpy(result.in_bits, inner->in_bits, sizeof result.in_bits);
    for (int i = 0; i < tt_layout_in_total(inner); i++)
        result.bases[i] = tt_f2_apply(outer->bases, inner->bases[i]);
    return result;
}

void tt_layout_right_inverse(const LinearLayout *layout, uint64_t *columns)
{
    for (int bit = 0; bit < tt_layout_out_total(layout); bit++) {
        bool found = tt_f2_solve(layout->bases, tt_layout_in_total(layout), 1ull << bit, &columns[bit]);
        TT_ASSERT(found);
    }
}

bool tt_layout_quotient(const LinearLayout *layout, int bits, LinearLayout *out)
{
    uint64_t low = (1ull << bits) - 1;
    if (bits > layout->in_bits[LAYOUT_REGISTER] || bits > layout->out_bits[layout->rank - 1])
        return false;
    for (int i = 0; i < tt_layout_in_total(layout); i++)
        if (i < bits ? layout->bases[i] != 1ull << i : (layout->bases[i] & low) != 0)
            return false;
    *out = *layout;
    out->in_bits[LAYOUT_REGISTER] -= bits;
    out->out_bits[out->rank - 1] -= bits;
    for (int i = 0; i < tt_layout_in_total(out); i++)
        out->bases[i] = layout->bases[i + bits] >> bits;
    return true;
}

int64_t tt_layout_contiguous(const LinearLayout *layout)
{
    int bits = 0;
    while (bits < layout->in_bits[LAYOUT_REGISTER] && bits < layout->out_bits[layout->rank - 1] &&
           layout->bases[bits] == 1ull << bits)
        bits++;
    return 1ll << bits;
}

uint32_t tt_layout_replication(const LinearLayout *layout, LayoutInput input)
{
    int start = tt_layout_in_start(layout, input);
    uint32_t copies = 0;
    for (int i = 0; i < layout->in_bits[input]; i++)
        if (tt_f2_rank(layout->bases, start + i + 1) == tt_f2_rank(layout->bases, start + i))
            copies |= 1u << i;
    return copies;
}

AxisBits tt_layout_axis_bits(const LinearLayout *layout, int axis)
{
    AxisBits bits = {0};
    uint64_t mask = ((1ull << layout->out_bits[axis]) - 1) << tt_layout_axis_start(layout, axis);
    for (int input = 0, i = 0; input < LAYOUT_INPUTS; input++)
        for (int bit = 0; bit < layout->in_bits[input]; bit++, i++)
            if (layout->bases[i] & mask)
                bits.along[input] |= 1u << bit;
    return bits;
}
