/* What a reduction does with the layout of its operands. */
#include "gpu/plans.h"

/* The bits of an input that move along the axis, copies excepted. */
static uint32_t moving_bits(const LinearLayout *layout, LayoutInput input, int axis)
{
    return tt_layout_axis_bits(layout, axis).along[input] & ~tt_layout_replication(layout, input);
}

static ReducePlan plan_reduce(const Op *op, const GpuOptions *options)
{
    const Value *operand = tt_operand(op, 0), *result = op->results[0];
    ReducePlan plan = {.axis = (int)tt_int_attr(op, ATTR_axis, 0), .from = operand->layout};
    plan.to = tt_is_tile(result->type) ? result->layout : NULL;
    plan.lanes = moving_bits(plan.from, LAYOUT_LANE, plan.axis);
    plan.warps = moving_bits(plan.from, LAYOUT_WARP, plan.axis);
    plan.folded = plan.warps & ~(uint32_t)(tt_warps(options) - 1);
    plan.warps ^= plan.folded;
    plan.results = plan.to ? 1ll << tt_layout_out_total(plan.to) : 1;
    int64_t partials = plan.results << __builtin_popcount(plan.warps);
    for (int i = 0; plan.warps && i < op->operand_count; i++) {
        plan.offsets[i] = plan.bytes;
        /* widest first would pack tighter, but all operands of a reduction mostly have one width */
        int bytes = tt_is_tile(tt_operand(op, i)->type) ? tt_byte_width(tt_operand(op, i)->type) : 0;
        plan.bytes += (partials * bytes + 15) / 16 * 16;
    }
    plan.valid_offset = plan.bytes;
    bool padded = op->opcode == OP_extract || !tt_is_pow2(operand->type->shape[plan.axis]);
    if (plan.warps && padded)
        plan.bytes += (partials + 15) / 16 * 16; /* flags */
    return plan;
}

const ReducePlan *tt_plan_reduce(const Op *op, const GpuOptions *options)
{
    void **slot = tt_plan_slot(op);
    if (!*slot) {
        ReducePlan plan = plan_reduce(op, options);
        *slot = tt_arena_copy(tt_plans_arena(op), &plan, sizeof plan);
    }
    return *slot;
}
