/* A lookup at a distance: where the element is that it finds. */
#include "gpu/plans.h"

bool tt_plan_distance(const Op *op, DistancePlan *plan)
{
    uint64_t distance, place;
    const LinearLayout *layout = tt_operand(op, 0)->layout;
    int axis = (int)tt_int_attr(op, ATTR_axis, 0), registers = layout->in_bits[LAYOUT_REGISTER];
    int lanes = layout->in_bits[LAYOUT_LANE], warps = layout->in_bits[LAYOUT_WARP];
    if (op->results[0]->layout != layout || !tt_gathers_at_distance(op, &distance) ||
        !tt_f2_solve(layout->bases, registers + lanes + warps, distance << tt_layout_axis_start(layout, axis),
                     &place))
        return false;
    plan->registers = (uint32_t)(place & ((1ull << registers) - 1));
    plan->lanes = (uint32_t)(place >> registers & ((1ull << lanes) - 1));
    plan->warps = (uint32_t)(place >> (registers + lanes));
    return true;
}
