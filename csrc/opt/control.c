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

/* ---- how often at most --------------------------------------------------------------------------------- */

/* A number as a sum of multiples of others, as arithmetic that wraps around has it. */
typedef struct Sum {
    struct {
        const Value *value;
        uint64_t factor;
    } terms[8];
    int count;
    uint64_t constant;
} Sum;

static bool add_term(Sum *sum, const Value *value, uint64_t factor)
{
    for (int i = 0; i < sum->count; i++)
        if (sum->terms[i].value == value) {
            sum->terms[i].factor += factor;
            return true;
        }
    if (sum->count == (int)TT_COUNT(sum->terms))
        return false;
    sum->terms[sum->count].value = value;
    sum->terms[sum->count++].factor = factor;
    return true;
}

static bool add_multiple(Sum *sum, const Value *value, uint64_t factor, int depth)
{
    enum { DEEPEST = 8 };
    const Op *op = value->op;
    int64_t number;
    if (tt_constant_int(value, &number)) {
        sum->constant += factor * (uint64_t)number;
        return true;
    }
    if (op && depth < DEEPEST && (op->opcode == OP_add || op->opcode == OP_sub))
        return add_multiple(sum, tt_operand(op, 0), factor, depth + 1) &&
               add_multiple(sum, tt_operand(op, 1), op->opcode == OP_add ? factor : -factor, depth + 1);
    if (op && depth < DEEPEST && op->opcode == OP_mul && tt_constant_int(tt_operand(op, 1), &number))
        return add_multiple(sum, tt_operand(op, 0), factor * (uint64_t)number, depth + 1);
    return add_term(sum, value, factor);
}

/* Is `upper` - `lower` the same number, and not negative, whatever they are? */
static bool constant_distance(const Value *lower, const Value *upper, int64_t *distance)
{
    int unused = 64 - tt_bit_width(lower->type);
    Sum sum = {0};
    if (!add_multiple(&sum, upper, 1, 0) || !add_multiple(&sum, lower, -1ull, 0))
        return false;
    for (int i = 0; i < sum.count; i++)
        if (sum.terms[i].factor << unused)
            return false;
    *distance = (int64_t)(sum.constant << unused) >> unused;
    return *distance >= 0;
}

/* A bound that wraps around ends below the first index, and no iteration runs then. */
static int64_t most_trips_to(const Op *op, const Value *upper, int64_t step)
{
    int64_t distance;
    if (upper->op && upper->op->opcode == OP_min_s) {
        int64_t first = most_trips_to(op, tt_operand(upper->op, 0), step);
        return TT_MIN(first, most_trips_to(op, tt_operand(upper->op, 1), step));
    }
    if (!constant_distance(tt_operand(op, 0), upper, &distance))
        return INT64_MAX;
    return distance / step + (distance % step != 0);
}

int64_t tt_most_trips(const Op *op)
{
    int64_t count, step;
    if (tt_trip_count(op, &count))
        return count;
    if (op->opcode != OP_for || !tt_constant_int(tt_operand(op, 2), &step) || step <= 0)
        return INT64_MAX;
    return most_trips_to(op, tt_operand(op, 1), step);
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
