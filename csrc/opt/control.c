/* Loops and branches by one view, and changes to them. */
#include "opt/pass.h"

Loop tt_loop(Op *op)
{
    bool is_for = op->opcode == OP_for;
    Region *body = op->regions[op->region_count - 1];
    int init = is_for ? 3 : 0;
    return (Loop){.op = op,
                  .first = op->regions[0],
                  .body = body,
                  .yield = tt_terminator(body),
                  .count = op->operand_count - init,
                  .init = init,
                  .arg = is_for ? 1 : 0};
}

bool tt_is_in_loop(const Loop *loop, const Value *value) { return !tt_is_defined_outside(value, loop->body); }

int tt_carried_index(const Loop *loop, const Value *value)
{
    bool is_carried = !value->op && value->region == loop->first && value->index >= loop->arg;
    return is_carried ? value->index - loop->arg : -1;
}

Value *tt_in_first_iteration(const Loop *loop, Value *value, Builder *before, Map *known, Arena *scratch)
{
    if (!tt_is_in_loop(loop, value))
        return value;
    if (!value->op) {
        int carried = tt_carried_index(loop, value);
        return carried < 0 ? tt_operand(loop->op, 0) : tt_init(loop, carried);
    }
    Value *result = tt_map_find_ptr(known, value);
    if (result)
        return result;
    const Op *op = value->op;
    Value **operands = TT_NEW_ARRAY(scratch, Value *, op->operand_count);
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = tt_in_first_iteration(loop, tt_operand(op, i), before, known, scratch);
    result = tt_build(before, op->opcode, operands, op->operand_count, value->type,
                      tt_copy_attrs(before->module, op->attrs));
    return *tt_map_slot_ptr(known, value) = result;
}

int tt_add_carried(Loop *loop, Value *init)
{
    tt_add_operand(loop->op, init);
    tt_add_result(loop->op, init->type);
    for (int i = 0; i < loop->op->region_count; i++)
        tt_add_region_arg(loop->op->regions[i], init->type);
    tt_add_operand(loop->yield, init);
    return loop->count++;
}

bool tt_change_loops(Region *region, bool (*change)(Op *loop, void *context), void *context)
{
    bool changed = false;
    TT_FOR_OPS_SAFE(op, region)
    {
        for (int i = 0; i < op->region_count && tt_is_control(op); i++)
            changed |= tt_change_loops(op->regions[i], change, context);
        if (op->opcode == OP_for)
            changed |= change(op, context);
    }
    return changed;
}

bool tt_trip_count(const Op *op, int64_t *count)
{
    int64_t lower, upper, step, distance;
    if (op->opcode != OP_for || !tt_constant_int(tt_operand(op, 0), &lower) ||
        !tt_constant_int(tt_operand(op, 1), &upper) || !tt_constant_int(tt_operand(op, 2), &step) ||
        step <= 0)
        return false;
    *count = 0;
    if (lower >= upper)
        return true;
    if (__builtin_sub_overflow(upper, lower, &distance))
        return false;
    *count = (distance - 1) / step + 1;
    return true;
}

void tt_move_body_before(Region *region, Op *anchor)
{
    TT_FOR_OPS_SAFE(op, region)
    {
        if (!tt_has(op, TERMINATOR))
            tt_move_before(op, anchor);
    }
}

void tt_replace_op(Op *op, Value *const *values)
{
    for (int i = 0; i < op->result_count; i++)
        tt_replace_all_uses(op->results[i], values[i]);
    tt_erase_op(op);
}
