/* The canonicalize pass on loops and branches: those that constants decide, and values that they only pass
 * through. */
#include "opt/canonicalize.h"

/* ---- branches ------------------------------------------------------------------------------------------ */

/* The region takes the place of the operation. */
static void replace_by_region(Op *op, Region *region)
{
    Op *yield = tt_terminator(region);
    Value *values[64];
    for (int i = 0; i < op->result_count; i++)
        values[i] = tt_operand(yield, i);
    tt_move_body_before(region, op);
    tt_replace_op(op, values);
}

static bool is_small(const Op *op) { return op->result_count <= 64; }

static bool is_empty(const Region *region) { return !region->first || tt_has(region->first, TERMINATOR); }

/* Both branches give the same value, or (as scalars, and with nothing else to do) a choice between two. */
static bool simplify_results(Op *op)
{
    bool changed = false, empty = is_empty(op->regions[0]) && is_empty(op->regions[1]);
    Builder b = tt_builder_before(op);
    for (int i = 0; i < op->result_count; i++) {
        Value *result = op->results[i], *first = tt_operand(tt_terminator(op->regions[0]), i),
              *second = tt_operand(tt_terminator(op->regions[1]), i), *value = NULL;
        if (!tt_has_uses(result))
            continue;
        if (first == second)
            value = first;
        else if (empty && !tt_is_tile(result->type))
            value = tt_build3(&b, OP_select, tt_operand(op, 0), first, second);
        if (value) {
            tt_replace_all_uses(result, value);
            changed = true;
        }
    }
    return changed;
}

static bool simplify_if(Op *op)
{
    int64_t condition;
    if (tt_constant_int(tt_operand(op, 0), &condition) && is_small(op)) {
        Region *taken = op->regions[condition ? 0 : 1];
        if (taken->first)
            replace_by_region(op, taken);
        else
            tt_erase_op(op);
        return true;
    }
    return simplify_results(op);
}

/* ---- loops --------------------------------------------------------------------------------------------- */

/* A carried value that every iteration passes on as it came is the initial value. */
static bool drop_unchanged(Loop *loop)
{
    bool changed = false;
    for (int i = 0; i < loop->count; i++) {
        Value *init = tt_init(loop, i), *next = tt_next(loop, i);
        bool kept = next == init;
        for (int r = 0; r < loop->op->region_count; r++)
            kept |= next == loop->op->regions[r]->args[loop->arg + i];
        if (!kept)
            continue;
        for (int r = 0; r < loop->op->region_count; r++) {
            Value *arg = loop->op->regions[r]->args[loop->arg + i];
            if (tt_has_uses(arg)) {
                changed |= arg != next || !tt_has_one_use(arg);
                tt_replace_all_uses(arg, init);
            }
        }
        if (tt_has_uses(loop->op->results[i])) {
            tt_replace_all_uses(loop->op->results[i], init);
            changed = true;
        }
    }
    return changed;
}

bool tt_equal_if(const Value *a, const Value *b, const Value *x, const Value *y, int depth)
{
    const Op *op = a->op, *other = b->op;
    if (a == b || ((a == x || a == y) && (b == x || b == y)))
        return true;
    if (!op || !other || depth == 0 || a->index != b->index || op->opcode != other->opcode ||
        op->region_count || !tt_has(op, PURE) || op->operand_count != other->operand_count ||
        a->type != b->type || !tt_same_attrs(op, other))
        return false;
    for (int i = 0; i < op->operand_count; i++)
        if (!tt_equal_if(tt_operand(op, i), tt_operand(other, i), x, y, depth - 1))
            return false;
    return true;
}

/* Of two carried values that begin alike and change alike, one does: two pointers that advance by the same
 * step. */
static bool merge_carried(Loop *loop)
{
    enum { DEEPEST = 6 };
    bool changed = false;
    Region *body = loop->body;
    for (int i = 0; i < loop->count; i++)
        for (int j = i + 1; j < loop->count; j++) {
            Value **args = body->args + loop->arg;
            bool used = tt_has_uses(loop->op->results[j]);
            for (int r = 0; r < loop->op->region_count; r++)
                used |= tt_has_uses(loop->op->regions[r]->args[loop->arg + j]);
            if (!used || !tt_equal_if(tt_init(loop, i), tt_init(loop, j), NULL, NULL, 1) ||
                !tt_equal_if(tt_next(loop, i), tt_next(loop, j), args[i], args[j], DEEPEST))
                continue;
            for (int r = 0; r < loop->op->region_count; r++) {
                Value **both = loop->op->regions[r]->args + loop->arg;
                tt_replace_all_uses(both[j], both[i]);
            }
            tt_replace_all_uses(loop->op->results[j], loop->op->results[i]);
            changed = true;
        }
    return changed;
}

/* A `for` that runs once, or never. */
static bool simplify_trip_count(Loop *loop)
{
    int64_t count;
    Value *values[64];
    if (!tt_trip_count(loop->op, &count) || count > 1 || loop->count > (int)TT_COUNT(values))
        return false;
    if (count == 1) {
        tt_replace_all_uses(loop->body->args[0], tt_operand(loop->op, 0));
        for (int i = 0; i < loop->count; i++)
            tt_replace_all_uses(tt_carried(loop, i), tt_init(loop, i));
    }
    for (int i = 0; i < loop->count; i++)
        values[i] = count ? tt_next(loop, i) : tt_init(loop, i);
    if (count)
        tt_move_body_before(loop->body, loop->op);
    tt_replace_op(loop->op, values);
    return true;
}

/* A `while` whose condition is false from the start: only what stands before the condition happens, once. */
static bool simplify_while(Loop *loop)
{
    int64_t condition;
    Value *values[64];
    if (tt_control(loop->op) != WHILE || loop->count > (int)TT_COUNT(values) ||
        !tt_constant_int(tt_operand(tt_terminator(loop->first), 0), &condition) || condition)
        return false;
    for (int i = 0; i < loop->count; i++) {
        values[i] = tt_init(loop, i);
        if (tt_has_uses(tt_carried(loop, i)))
            tt_replace_all_uses(tt_carried(loop, i), values[i]);
    }
    tt_move_body_before(loop->first, loop->op);
    tt_replace_op(loop->op, values);
    return true;
}

/* What a `while` that counts is as a `for`. */
typedef struct Count {
    Value *lower, *upper, *step;
} Count;

/* The test of a `while`: is the carried number plus a constant less than a bound, and so on? */
typedef struct Test {
    int carried;
    int64_t plus;
    Opcode opcode;
    Value *bound;
} Test;

/* As it is in front of the loop; NULL: it is not there. */
static Value *in_front(Builder *b, const Op *loop, Value *value)
{
    int64_t number;
    if (tt_constant_int(value, &number))
        return tt_build_int(b, value->type, number);
    const Region *home = value->op ? value->op->parent : value->region;
    while (home && home->op != loop)
        home = home->op ? home->op->parent : NULL;
    return home ? NULL : value;
}

/* Is it a number that the loop carries, or that plus a constant? */
static bool find_counted(const Loop *loop, const Value *value, Test *test)
{
    test->plus = 0;
    if (tt_def(value, OP_add) && tt_constant_int(tt_operand(value->op, 1), &test->plus))
        value = tt_operand(value->op, 0);
    test->carried = value->index;
    return !value->op && value->region == loop->first && !tt_is_tile(value->type);
}

static bool find_test(Builder *b, const Loop *loop, Test *test)
{
    static const Opcode opcodes[] = {OP_lt_s, OP_le_s, OP_gt_s, OP_ge_s, OP_ne},
                        from_right[] = {OP_gt_s, OP_ge_s, OP_lt_s, OP_le_s, OP_ne};
    const Op *op = tt_operand(tt_terminator(loop->first), 0)->op;
    TT_FOR_OPS(inner, loop->first)
    if (!tt_is_pure(inner) && !tt_has(inner, TERMINATOR))
        return false;
    for (int i = 0; op && op->parent == loop->first && i < (int)TT_COUNT(opcodes); i++)
        for (int side = 0; op->opcode == opcodes[i] && side < 2; side++) {
            test->opcode = side ? from_right[i] : opcodes[i];
            if (find_counted(loop, tt_operand(op, side), test))
                return (test->bound = in_front(b, loop->op, tt_operand(op, 1 - side))) != NULL;
        }
    return false;
}

/* Up to a bound that stays the same. One that is not met, as a counter would pass over it, counts as one that is not there. */
static bool count_up(Builder *b, const Loop *loop, const Test *test, Value *step, bool by_one, Count *count)
{
    bool is_less = test->opcode == OP_lt_s || test->opcode == OP_le_s;
    if (!is_less && !(test->opcode == OP_ne && by_one))
        return false;
    int64_t more = (test->opcode == OP_le_s) - test->plus;
    count->lower = tt_init(loop, test->carried);
    count->upper = tt_build2(b, OP_add, test->bound, tt_build_int(b, test->bound->type, more));
    count->step = step;
    return true;
}

/* Down to a constant that is not negative: as many steps up, from zero. */
static bool count_down(Builder *b, const Loop *loop, const Test *test, int64_t step, Count *count)
{
    int64_t bound;
    bool is_greater = test->opcode == OP_gt_s || test->opcode == OP_ge_s;
    if ((!is_greater && !(test->opcode == OP_ne && step == -1)) || !tt_constant_int(test->bound, &bound))
        return false;
    bound -= test->plus + (test->opcode == OP_ge_s);
    if (bound < 0)
        return false;
    Value *first = tt_init(loop, test->carried), *last = tt_build_int(b, first->type, bound);
    count->lower = tt_build_int(b, first->type, 0);
    count->upper = tt_build2(b, OP_sub, tt_build2(b, OP_max_s, first, last), last);
    count->step = tt_build_int(b, first->type, -step);
    return true;
}

static bool find_count(Builder *b, const Loop *loop, Count *count)
{
    Test test;
    int64_t step;
    if (!find_test(b, loop, &test))
        return false;
    const Op *next = tt_def(tt_next(loop, test.carried), OP_add);
    if (!next || tt_operand(next, 0) != loop->body->args[test.carried])
        return false;
    Value *by = tt_operand(next, 1);
    if (!tt_constant_int(by, &step)) { /* there is one program at least */
        by = tt_def(by, OP_num_programs) ? in_front(b, loop->op, by) : NULL;
        return by && count_up(b, loop, &test, by, false, count);
    }
    return step > 0 ? count_up(b, loop, &test, tt_build_int(b, by->type, step), step == 1, count)
                    : step < 0 && count_down(b, loop, &test, step, count);
}

/* A `while` that counts is a `for`, which loads ahead what its products read. */
static bool simplify_counting(Loop *loop)
{
    enum { MOST = 64 };
    Op *op = loop->op;
    Builder b = tt_builder_before(op);
    b.loc = op->loc;
    Count count;
    if (tt_control(op) != WHILE || loop->count > MOST || !find_count(&b, loop, &count))
        return false;
    Value *operands[3 + MOST], *values[MOST];
    const Type *types[MOST];
    operands[0] = count.lower;
    operands[1] = count.upper;
    operands[2] = count.step;
    for (int i = 0; i < loop->count; i++) {
        operands[3 + i] = tt_init(loop, i);
        types[i] = op->results[i]->type;
        values[i] = tt_next(loop, i);
    }
    Op *counting = tt_build_op(&b, OP_for, operands, 3 + loop->count, types, loop->count,
                               tt_copy_attrs(b.module, op->attrs));
    Region *body = counting->regions[0];
    tt_add_region_arg(body, count.upper->type);
    while (loop->body->arg_count)
        tt_move_region_arg(loop->body->args[0], body);
    b = tt_builder_at_end(body);
    b.loc = op->loc;
    Op *yield = tt_build_op(&b, OP_yield, values, loop->count, NULL, 0, NULL);
    while (loop->body->first != loop->body->last)
        tt_move_before(loop->body->first, yield);
    for (int i = 0; i < loop->count; i++)
        counting->results[i]->name = op->results[i]->name;
    tt_replace_op(op, counting->results);
    return true;
}

bool tt_simplify_control(Op *op)
{
    if (!tt_is_loop(op))
        return simplify_if(op);
    Loop loop = tt_loop(op);
    bool changed = drop_unchanged(&loop);
    changed |= merge_carried(&loop);
    return simplify_while(&loop) || simplify_counting(&loop) || simplify_trip_count(&loop) || changed;
}
