/* Removes what nothing needs: operations, and the results, arguments and carried values of loops and branches
 * one by one, cycles through a loop included.
 *
 * Needed is what an operation with an effect, or a loop that may never end, uses, and what that uses, and so on. A value that a loop carries
 * is needed as a whole (initial value, argument, what is yielded for it, result) or not at all; a result of
 * an `if` needs what both branches yield. Marks: Value.mark and Op.index are set on what is needed. */
#include "opt/pass.h"

typedef struct Liveness {
    Arena *scratch;
    TT_VECTOR(Value *) work;
} Liveness;

static void need_value(Liveness *l, Value *value)
{
    if (value->mark)
        return;
    value->mark = value;
    tt_push(l->scratch, l->work, value);
}

/* The operation stays. Of loops and branches only what steers them is needed by that, of the region that combines
 * elements what it yields. */
static void need_op(Liveness *l, Op *op)
{
    if (op->index)
        return;
    op->index = 1;
    if (op->parent->op)
        need_op(l, op->parent->op);
    bool control = tt_is_control(op);
    int count = !control ? op->operand_count : tt_is_loop(op) ? tt_loop(op).init : 1;
    for (int i = 0; i < count; i++)
        need_value(l, tt_operand(op, i));
    if (tt_control(op) == WHILE)
        need_op(l, tt_terminator(op->regions[0])); /* the condition of a while */
    for (int i = 0; i < op->region_count && !control; i++)
        need_op(l, tt_terminator(op->regions[i]));
}

static void need_carried(Liveness *l, Op *op, int i)
{
    Loop loop = tt_loop(op);
    need_value(l, tt_init(&loop, i));
    need_value(l, tt_next(&loop, i));
    need_value(l, loop.op->results[i]);
    for (int r = 0; r < op->region_count; r++)
        need_value(l, op->regions[r]->args[loop.arg + i]);
}

static void need_result(Liveness *l, Op *op, int index)
{
    need_op(l, op);
    if (tt_is_loop(op))
        need_carried(l, op, index);
    else if (tt_is_control(op))
        for (int r = 0; r < op->region_count; r++)
            need_value(l, tt_operand(tt_terminator(op->regions[r]), index));
}

static void need_argument(Liveness *l, Region *region, int index)
{
    Op *op = region->op;
    if (!op || !tt_is_loop(op))
        return;
    need_op(l, op);
    if (index >= tt_loop(op).arg)
        need_carried(l, op, index - tt_loop(op).arg);
}

/* What comes behind a loop is not reached if it goes on for ever: a `while` stays, even if nobody needs its results. */
static bool may_not_end(const Op *op) { return tt_control(op) == WHILE; }

/* Terminators of control stay with their operation; what they yield is needed one by one. */
static void find_roots(Liveness *l, Region *region)
{
    TT_FOR_OPS(op, region)
    {
        bool effect = may_not_end(op) || tt_has(op, WRITES | HAS_EFFECT) || tt_int_attr(op, ATTR_volatile, 0);
        if (effect || (tt_has(op, TERMINATOR) && !region->op))
            need_op(l, op);
        for (int i = 0; i < op->region_count; i++)
            find_roots(l, op->regions[i]);
    }
}

static void propagate(Liveness *l)
{
    while (l->work.count) {
        Value *value = l->work.data[--l->work.count];
        if (value->op)
            need_result(l, value->op, value->index);
        else
            need_argument(l, value->region, value->index);
    }
}

/* ---- removing ------------------------------------------------------------------------------------------ */

/* First the operands that feed what is not needed, so that nothing hangs on it any more. */
static bool drop_operands(Op *op)
{
    bool changed = false;
    for (int i = op->result_count - 1; i >= 0; i--) {
        if (op->results[i]->mark)
            continue;
        changed = true;
        if (tt_is_loop(op)) {
            Loop loop = tt_loop(op);
            tt_remove_operand(loop.yield, i);
            tt_remove_operand(op, loop.init + i);
        } else {
            for (int r = 0; r < op->region_count; r++)
                tt_remove_operand(tt_terminator(op->regions[r]), i);
        }
    }
    return changed;
}

static void drop_results(Op *op)
{
    int arg = tt_control(op) == FOR;
    for (int i = op->result_count - 1; i >= 0; i--) {
        if (op->results[i]->mark)
            continue;
        tt_remove_result(op, i);
        for (int r = 0; r < op->region_count && tt_is_loop(op); r++)
            tt_remove_region_arg(op->regions[r], arg + i);
    }
}

static bool sweep_operands(Region *region)
{
    bool changed = false;
    TT_FOR_OPS(op, region)
    {
        if (op->index && tt_is_control(op))
            changed |= drop_operands(op);
        for (int i = 0; i < op->region_count && op->index; i++)
            changed |= sweep_operands(op->regions[i]);
    }
    return changed;
}

static bool sweep_ops(Region *region)
{
    bool changed = false;
    for (Op *op = region->last, *previous; op; op = previous) {
        previous = op->previous;
        if (!op->index && !tt_has(op, TERMINATOR)) {
            tt_erase_op(op);
            changed = true;
            continue;
        }
        for (int i = 0; i < op->region_count; i++)
            changed |= sweep_ops(op->regions[i]);
    }
    return changed;
}

static void sweep_results(Region *region)
{
    TT_FOR_OPS(op, region)
    {
        if (tt_is_control(op))
            drop_results(op);
        for (int i = 0; i < op->region_count; i++)
            sweep_results(op->regions[i]);
    }
}

bool tt_opt_dce(Function *function, Arena *scratch)
{
    Liveness liveness = {.scratch = scratch};
    tt_take_marks(function);
    find_roots(&liveness, function->body);
    propagate(&liveness);
    bool changed = sweep_operands(function->body);
    changed |= sweep_ops(function->body);
    sweep_results(function->body);
    tt_return_marks(function);
    return changed;
}
