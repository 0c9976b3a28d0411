/* Expressions whose sides may not run: `? :`, `&&` and `||`. Of a scalar condition one side does; of a tile both do, and what
 * accesses memory in them does so for the elements that count. */
#include "triton_c/walker.h"

static bool is_pointer(Operand x) { return x.value && tt_dtype_is_pointer(x.dtype); }

static Value *with_mask(CWalker *w, Value *condition)
{
    Operand pair[] = {{w->mask, &tt_int1, false}, {condition, &tt_int1, false}};
    if (!w->mask)
        return condition;
    tt_c_broadcast_together(w, "a condition under a predicate", pair, 2);
    return tt_build2(&w->builder, OP_and, pair[0].value, pair[1].value);
}

/* Walks a side for the elements of a tile of conditions: what accesses memory there does so for these only. */
static Operand walk_where(CWalker *w, const Node *node, Value *condition)
{
    Uses uses = tt_c_uses(node);
    if (!uses.reads_memory && !uses.calls && !uses.assigns)
        return tt_c_walk(w, node);
    Value *outer = w->mask;
    int first_free = w->frame->first_free;
    w->mask = with_mask(w, condition);
    w->frame->first_free = w->frame->slots.count;
    w->frame->predicates++;
    Operand x = tt_c_walk(w, node);
    w->frame->predicates--;
    w->frame->first_free = first_free;
    w->mask = outer;
    return x;
}

static Value *negated(CWalker *w, Value *condition)
{
    return tt_typed_not(&w->builder, (Typed){condition, &tt_int1}).value;
}

/* Both sides as one type; of a pointer and 0 the pointer's. */
static void meet(CWalker *w, Operand *x, Operand *y)
{
    const char *what = "`? :`";
    if (is_pointer(*x) || is_pointer(*y)) {
        const Dtype *dtype = is_pointer(*x) ? x->dtype : y->dtype;
        *x = tt_c_convert(w, what, *x, dtype);
        *y = tt_c_convert(w, what, *y, dtype);
        return;
    }
    if (!(x->value && y->value && x->dtype == y->dtype)) {
        tt_c_unify(w, what, x, y);
        return;
    }
}

static Operand select(CWalker *w, Operand condition, Operand x, Operand y)
{
    meet(w, &x, &y);
    bool is_weak = x.is_weak && y.is_weak;
    Operand all[] = {condition, x, y};
    tt_c_broadcast_together(w, "`? :`", all, 3);
    Value *value = tt_build3(&w->builder, OP_select, all[0].value, all[1].value, all[2].value);
    return (Operand){value, x.dtype, is_weak};
}

/* One side runs. Where neither costs anything both do, and one is taken: that is a constant if all of it is. Both are
 * walked even where the condition is known, for the type is that of both. */
static Operand walk_either(CWalker *w, const Node *node, Value *condition)
{
    Join join = tt_c_begin_if(w, condition);
    Operand sides[2];
    const Node *nodes[] = {node->second, node->third};
    for (int i = 0; i < 2; i++) {
        tt_c_begin_side(w, &join, i);
        sides[i] = tt_c_walk(w, nodes[i]);
        tt_c_end_side(w, &join, i, FALLS);
    }
    Uses a = tt_c_uses(node->second), b = tt_c_uses(node->third);
    tt_c_at(w, node);
    if (!a.assigns && !b.assigns && tt_c_is_harmless(join.op->regions[0]) &&
        tt_c_is_harmless(join.op->regions[1])) {
        tt_c_move_out(join.op);
        return select(w, (Operand){condition, &tt_int1, false}, sides[0], sides[1]);
    }
    if (!sides[0].value && !sides[1].value) {
        tt_c_end_if(w, &join, NULL, 0);
        return sides[0];
    }
    const Operand types[] = {sides[0], sides[1]};
    Operand shapes[] = {sides[0], sides[1]};
    Builder outer = w->builder;
    for (int i = 0; i < 2; i++) { /* each side makes of itself what both are */
        Operand pair[] = {types[0], types[1]};
        w->builder.region = join.op->regions[i];
        if (!pair[0].value || !pair[1].value)
            tt_c_fail(w, NULL, "the sides of `? :` are %s and %s", tt_c_describe(w, types[0]),
                      tt_c_describe(w, types[1]));
        Shape x = tt_c_shape(pair[0]), y = tt_c_shape(pair[1]), met;
        if (!tt_broadcast_shapes(&x, &y, &met))
            tt_c_broadcast_together(w, "`? :`", pair, 2);
        /* The other side's value only lends its type: it is not in this region. */
        Operand own = pair[i],
                like = {tt_build_filler(&w->builder, pair[!i].value->type), pair[!i].dtype, pair[!i].is_weak};
        Operand *order[] = {i ? &like : &own, i ? &own : &like};
        meet(w, order[0], order[1]);
        own = tt_c_settle(w, "`? :`", own);
        shapes[i] = tt_c_broadcast(w, "`? :`", own, &met);
    }
    w->builder = outer;
    Value *x = shapes[0].value, *y = shapes[1].value, **results[] = {&x, &y};
    tt_c_end_if(w, &join, results, 1);
    return (Operand){x, shapes[0].dtype, false};
}

Operand tt_c_walk_conditional(CWalker *w, const Node *node)
{
    Operand condition = tt_c_walk(w, node->first);
    tt_c_at(w, node->first);
    condition = tt_c_truth(w, condition);
    if (!tt_is_tile(condition.value->type))
        return walk_either(w, node, condition.value);
    Operand x = walk_where(w, node->second, condition.value);
    tt_c_at(w, node);
    Uses uses = tt_c_uses(node->third);
    bool masks = uses.reads_memory || uses.calls || uses.assigns;
    Operand y = walk_where(w, node->third, masks ? negated(w, condition.value) : NULL);
    tt_c_at(w, node);
    return select(w, condition, x, y);
}

/* a && b: b counts only where a does not decide, and of a scalar a it is walked only then. */
Operand tt_c_walk_logical(CWalker *w, const Node *node)
{
    bool is_and = node->op == OPERATOR_LOGICAL_AND;
    Operand x = tt_c_walk(w, node->first);
    int64_t known;
    tt_c_at(w, node->first);
    x = tt_c_truth(w, x);
    if (tt_c_known_int(x, &known))
        return (known != 0) == is_and ? tt_c_truth(w, tt_c_walk(w, node->second)) : x;
    Value *condition = x.value;
    Uses uses = tt_c_uses(node->second);
    bool is_plain = !uses.reads_memory && !uses.calls && !uses.assigns;
    if (!is_plain && !is_and)
        condition = negated(w, condition);
    if (is_plain || tt_is_tile(x.value->type)) {
        Operand y = walk_where(w, node->second, condition);
        tt_c_at(w, node);
        return tt_c_logical(w, node->op, x, y);
    }
    Join join = tt_c_begin_if(w, condition);
    tt_c_begin_side(w, &join, 0);
    Operand y = tt_c_walk(w, node->second);
    tt_c_at(w, node);
    Operand truth = tt_c_truth(w, y);
    tt_c_end_side(w, &join, 0, FALLS);
    const Shape shape = tt_c_shape(truth);
    tt_c_begin_side(w, &join, 1);
    Value *decided = tt_c_broadcast(w, "a condition", tt_c_int(w, &tt_int1, !is_and), &shape).value;
    tt_c_end_side(w, &join, 1, FALLS);
    Value *a = truth.value, **results[] = {&a, &decided};
    tt_c_end_if(w, &join, results, 1);
    return (Operand){a, &tt_int1, false};
}
