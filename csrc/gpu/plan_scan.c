/* Where the bits of the coordinate live along which a scan goes. */
#include "gpu/plans.h"

static ScanBit find_bit(const LinearLayout *layout, int axis, int coordinate_bit)
{
    uint64_t wanted = 1ull << (tt_layout_axis_start(layout, axis) + coordinate_bit);
    for (int input = 0, i = 0; input < LAYOUT_INPUTS; input++)
        for (int bit = 0; bit < layout->in_bits[input]; bit++, i++)
            if (layout->bases[i] == wanted)
                return (ScanBit){(LayoutInput)input, bit};
    tt_bug("a scan in a layout that mixes coordinates");
}

static bool starts_run(const ScanPlan *plan, int bit)
{
    return plan->bits[bit].input == LAYOUT_WARP && (!bit || plan->bits[bit - 1].input != LAYOUT_WARP);
}

static ScanPlan plan_scan(const Op *op)
{
    const Value *operand = tt_operand(op, 0);
    ScanPlan plan = {.axis = (int)tt_int_attr(op, ATTR_axis, 0), .layout = operand->layout};
    plan.axis_bits = plan.layout->out_bits[plan.axis];
    int runs = 0, lowest_run = 0;
    for (int bit = 0; bit < plan.axis_bits; bit++) {
        plan.bits[bit] = find_bit(plan.layout, plan.axis, bit);
        if (plan.bits[bit].input == LAYOUT_REGISTER && plan.chain_bits == bit)
            plan.chain_bits++;
        if (starts_run(&plan, bit) && !runs++)
            lowest_run = bit;
    }
    int64_t partials = 1ll << (tt_layout_out_total(plan.layout) - lowest_run);
    for (int i = 0; runs && i < op->operand_count; i++) {
        plan.offsets[i] = plan.area;
        plan.area += (partials * tt_byte_width(tt_operand(op, i)->type) + 15) / 16 * 16;
    }
    plan.valid_offset = plan.area;
    if (runs && !tt_is_pow2(operand->type->shape[plan.axis]))
        plan.area += (partials + 15) / 16 * 16;
    plan.bytes = plan.area * runs;
    return plan;
}

const ScanPlan *tt_plan_scan(const Op *op)
{
    void **slot = tt_plan_slot(op);
    if (!*slot) {
        ScanPlan plan = plan_scan(op);
        *slot = tt_arena_copy(tt_plans_arena(op), &plan, sizeof plan);
    }
    return *slot;
}
