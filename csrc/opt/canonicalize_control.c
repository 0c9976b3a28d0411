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

/* Are two values equal if `x` and `y` are? */
static bool equal_if(const Value *a, const Value *b, const Value *x, const Value *y, int depth)
{
    const Op *op = a->op, *other = b->op;
    if (a == b || ((a == x || a == y) && (b == x || b == y)))
        return true;
    if (!op || !other || depth == 0 || a->index != b->index || op->opcode != other->opcode ||
        op->region_count || !tt_has(op, PURE) || op->operand_count != other->operand_count ||
        a->type != b->type || !tt_same_attrs(op, other))
        return false;
    for (int i = 0; i < op->operand_count; i++)
        if (!equal_if(tt_operand(op, i), tt_operand(other, i), x, y, depth - 1))
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
            if (!used || !equal_if(tt_init(loop, i), tt_init(loop, j), NULL, NULL, 1) ||
                !equal_if(tt_next(loop, i), tt_next(loop, j), args[i], args[j], DEEPEST))
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

bool tt_simplify_control(Op *op)
{
    if (!tt_is_loop(op))
        return simplify_if(op);
    Loop loop = tt_loop(op);
    bool changed = drop_unchanged(&loop);
    changed |= merge_carried(&loop);
    return simplify_while(&loop) || simplify_trip_count(&loop) || changed;
}
