/* Which registers make vectors, and under which masks those are accessed. */
#include "gpu/simt_vectors.h"

/* ---- vectors --------------------------------------------------------------------------------------------------------------------- */

int simt_vector_register(const Vectors *v, int first, int at)
{
    for (int j = 0; j < v->count_bits; j++)
        if (at >> j & 1)
            first |= 1 << v->bits[j];
    return first;
}

static int64_t pow2_below(int64_t x) { return 1ll << tt_log2(TT_MAX(1, x)); }

Vectors simt_plan_vectors(Simt *s, const Op *op, const LinearLayout *layout, int bytes, int most)
{
    Vectors v = {0};
    const Value *pointer = tt_operand(op, 0);
    const AxisInfo *info = tt_axis_info(s->axis_infos, pointer);
    for (int axis = layout->rank - 1; axis >= 0; axis--) {
        int64_t aligned = pow2_below(info->divisibility[axis] / bytes);
        int64_t widest = TT_MIN(TT_MIN(aligned, pow2_below(info->contiguity[axis])), most);
        Vectors candidate = {.axis = axis};
        while (candidate.count_bits < tt_log2(widest) && candidate.count_bits < layout->out_bits[axis]) {
            uint64_t wanted = 1ull << (tt_layout_axis_start(layout, axis) + candidate.count_bits);
            int bit = 0;
            while (bit < layout->in_bits[LAYOUT_REGISTER] && layout->bases[bit] != wanted)
                bit++;
            if (bit == layout->in_bits[LAYOUT_REGISTER])
                break;
            candidate.bits[candidate.count_bits++] = bit;
            candidate.mask |= 1u << bit;
        }
        if (candidate.count_bits > v.count_bits)
            v = candidate;
    }
    return v;
}

/* ---- masks ---------------------------------------------------------------------------------------------------------------------- */

static bool is_true(LLVMValueRef x) { return LLVMIsAConstantInt(x) && !LLVMIsNull(x); }

int simt_alike(const LinearLayout *layout, const AxisInfo *info, int reg)
{
    for (int bit = 0; layout && reg >> bit; bit++) {
        bool stays = reg >> bit & 1;
        for (int axis = 0; axis < layout->rank; axis++) {
            uint64_t step = layout->bases[bit] >> tt_layout_axis_start(layout, axis) &
                            ((1ull << layout->out_bits[axis]) - 1);
            int64_t group = info->constancy[axis] & -info->constancy[axis];
            stays &= step < (uint64_t)group;
        }
        reg &= stays ? ~(1 << bit) : -1;
    }
    return reg;
}

/* NULL: always. */
static LLVMValueRef element_mask(Simt *s, const Masks *m, int reg)
{
    LLVMValueRef mask = m->tile ? m->tile->at[simt_alike(m->layout, m->info, reg)] : NULL;
    mask = mask && !is_true(mask) ? mask : NULL;
    return simt_and(s, mask, m->type ? simt_in_bounds(s, m->type, m->layout, reg) : NULL);
}

/* Is the mask the same for the whole vector? */
bool simt_is_uniform_mask(const Masks *m, const Vectors *v, int first)
{
    int count = 1 << v->count_bits;
    if (m->type && m->type->shape[v->axis] % count)
        return false;
    if (!m->tile || m->info->constancy[v->axis] % count == 0)
        return true;
    for (int i = 1; i < count; i++)
        if (m->tile->at[simt_vector_register(v, first, i)] != m->tile->at[first])
            return false;
    return true;
}

LLVMValueRef simt_vector_masks(Simt *s, const Masks *m, const Vectors *v, int first, LLVMValueRef *single)
{
    int count = 1 << v->count_bits;
    LLVMValueRef whole = element_mask(s, m, first);
    single[0] = NULL;
    if (simt_is_uniform_mask(m, v, first))
        return whole;
    single[0] = whole;
    for (int i = 1; i < count; i++) {
        single[i] = element_mask(s, m, simt_vector_register(v, first, i));
        whole = simt_and(s, whole, single[i]);
    }
    if (!whole) {
        single[0] = NULL;
        return NULL;
    }
    LLVMValueRef cut = LLVMBuildNot(s->b, whole, "");
    for (int i = 0; i < count; i++)
        single[i] = simt_and(s, single[i], cut);
    return whole;
}

Masks simt_masks_of(Simt *s, const Op *op, int operand, const LinearLayout *layout)
{
    Masks m = {.layout = layout, .type = layout ? tt_operand(op, 0)->type : NULL};
    if (op->operand_count > operand) {
        m.tile = simt_tile(s, tt_operand(op, operand));
        m.info = tt_axis_info(s->axis_infos, tt_operand(op, operand));
    }
    return m;
}
