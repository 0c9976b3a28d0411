/* `if`, conditional expressions, `and`, `or` and comparisons. A condition known at compile time chooses the side that is
 * walked; the other may even be wrong. A run-time one builds an `if` operation. */
#include "frontend/walker.h"

/* ---- statements ------------------------------------------------------------------------------------------------------ */

static void walk_side(Walker *w, Side *side, Region *region, PyObject *statements, Flow tail)
{
    Frame *frame = w->state->frame;
    const Loc *loc = w->builder.loc;
    w->builder.region = side->region = region;
    side->flow = tt_walk_block(w, statements, tail);
    side->bindings = frame->scope.now;
    w->builder.loc = loc;
}

/* The rest of the block becomes part of the only side that goes on. */
static void absorb_rest(Walker *w, Side *side, Sequence *sequence, int next, Flow tail)
{
    Frame *frame = w->state->frame;
    const Loc *loc = w->builder.loc;
    w->builder.region = side->region;
    frame->scope.now = side->bindings;
    side->flow = tt_walk_rest(w, sequence, next, side->flow, tail);
    side->bindings = frame->scope.now;
    w->builder.loc = loc;
}

Flow tt_walk_if(Walker *w, PyObject *node, Sequence *sequence, int index, Flow tail)
{
    PyObject *test = tt_field(w, node, FIELD_test);
    PyObject *body = tt_field(w, node, FIELD_body), *orelse = tt_field(w, node, FIELD_orelse);
    bool is_last = index + 1 == sequence->count;
    Flow own_tail = is_last ? tail : 0;
    Term condition = tt_walk_expr(w, test);
    tt_at(w, test);
    int truth = tt_known_truth(w, condition);
    if (truth >= 0)
        return tt_walk_block(w, truth ? body : orelse, own_tail);

    Frame *frame = w->state->frame;
    Region *region = w->builder.region;
    Value *value = tt_condition(w, condition);
    Join join = {.loc = tt_loc(w, test)};
    tt_at(w, node);
    join.op = tt_build_op(&w->builder, OP_if, &value, 1, NULL, 0, NULL);
    Side *sides = join.sides;
    Bindings before = tt_copy_bindings(w);
    walk_side(w, &sides[0], join.op->regions[0], body, own_tail);
    frame->scope.now = before;
    walk_side(w, &sides[1], join.op->regions[1], orelse, own_tail);

    Flow absorbed = 0;
    bool falls[] = {sides[0].flow & FALLS, sides[1].flow & FALLS};
    if (!is_last && falls[0] != falls[1]) {
        absorb_rest(w, &sides[falls[0] ? 0 : 1], sequence, index + 1, tail);
        absorbed = ABSORBED;
    }
    bool nothing_follows = absorbed || !(falls[0] || falls[1]);
    w->builder.region = region;
    tt_join_bindings(w, &join, nothing_follows ? tail : own_tail);
    return sides[0].flow | sides[1].flow | absorbed;
}

/* ---- expressions ----------------------------------------------------------------------------------------------------- */

/* May every operation of a region run although its side is not taken? */
static bool is_harmless(const Region *region, unsigned unwanted_traits)
{
    TT_FOR_OPS(op, region)
    if (!tt_has(op, PURE) || tt_has(op, unwanted_traits))
        return false;
    return true;
}

static void hoist(Op *op, Region *region)
{
    TT_FOR_OPS_SAFE(inner, region)
    tt_move_before(inner, op);
}

static Term walk_in_region(Walker *w, Side *side, Region *region, PyObject *node)
{
    Frame *frame = w->state->frame;
    w->builder.region = side->region = region;
    Term term = tt_walk_expr(w, node);
    side->flow = FALLS;
    side->bindings = frame->scope.now;
    return term;
}

static _Noreturn void sides_differ(Walker *w, Term a, Term b)
{
    tt_fail_with_remedy(w, "make them one type with .to(...), or choose element by element with tl.where",
                        "Ternary expression with dynamic condition has inconsistent types: %s and %s",
                        tt_describe(w, a), tt_describe(w, b));
}

static bool is_scalar(Term t)
{
    return tt_is_number(t) || (t.kind == TERM_VALUE && !tt_is_tile(t.value->type));
}

/* Makes values of one type of two scalars, where a number takes the other's dtype. */
static bool give_one_type(Walker *w, Term *a, Term *b)
{
    if (tt_is_number(*a) && tt_is_number(*b)) {
        const Dtype *da = tt_number_dtype(w, *a), *db = tt_number_dtype(w, *b);
        return (tt_adopt(w, *b, da, b) && tt_adopt(w, *a, da, a)) ||
               (tt_adopt(w, *a, db, a) && tt_adopt(w, *b, db, b));
    }
    if ((tt_is_number(*a) && !tt_adopt(w, *a, b->dtype, a)) ||
        (tt_is_number(*b) && !tt_adopt(w, *b, a->dtype, b)))
        return false;
    return a->value->type == b->value->type && a->dtype == b->dtype;
}

/* Both sides cost next to nothing: compute both and select. False when they are more than that. */
static bool select_scalar(Walker *w, Op *op, Term a, Term b, Term *out)
{
    const Region *regions[] = {op->regions[0], op->regions[1]};
    if (!is_scalar(a) || !is_scalar(b) || !is_harmless(regions[0], COSTLY) ||
        !is_harmless(regions[1], COSTLY) || w->state->frame->info->has_walrus)
        return false;
    Value *condition = tt_operand(op, 0);
    hoist(op, op->regions[0]);
    hoist(op, op->regions[1]);
    tt_erase_op(op);
    if (!give_one_type(w, &a, &b))
        sides_differ(w, a, b);
    *out = tt_value_term(tt_build3(&w->builder, OP_select, condition, a.value, b.value), a.dtype);
    return true;
}

Term tt_walk_if_expr(Walker *w, PyObject *node)
{
    PyObject *test = tt_field(w, node, FIELD_test);
    PyObject *body = tt_field(w, node, FIELD_body), *orelse = tt_field(w, node, FIELD_orelse);
    Term condition = tt_walk_expr(w, test);
    tt_at(w, test);
    int truth = tt_known_truth(w, condition);
    if (truth >= 0)
        return tt_walk_expr(w, truth ? body : orelse);

    Frame *frame = w->state->frame;
    Region *region = w->builder.region;
    Value *value = tt_condition(w, condition);
    Join join = {.loc = tt_here(w)};
    tt_at(w, node);
    const Loc *loc = tt_here(w);
    join.op = tt_build_op(&w->builder, OP_if, &value, 1, NULL, 0, NULL);
    Bindings before = tt_copy_bindings(w);
    Term a = walk_in_region(w, &join.sides[0], join.op->regions[0], body), result;
    frame->scope.now = before;
    Term b = walk_in_region(w, &join.sides[1], join.op->regions[1], orelse);
    w->builder.region = region;
    w->builder.loc = loc;
    if (select_scalar(w, join.op, a, b, &result))
        return result;
    if (!tt_join_terms(w, &join, a, b, &result))
        sides_differ(w, a, b);
    tt_join_bindings(w, &join, 0);
    return result;
}

/* `a and b`, `a or b` of a run-time scalar a. As in Python b is not evaluated when a decides: what b does beyond pure
 * arithmetic (a load behind a bounds check) goes into an `if`. */
static Term walk_short_circuit(Walker *w, Operator op, Term a, PyObject *node)
{
    Region *region = w->builder.region;
    const Type *bool_type = tt_scalar_type(w->module, TT_I1);
    const Loc *loc = tt_here(w);
    Value *decided = tt_condition(w, a);
    Value *condition = decided;
    if (op == OPERATOR_LOGICAL_OR)
        condition = tt_build2(&w->builder, OP_xor, decided, tt_build_int(&w->builder, bool_type, 1));
    Join join = {.loc = loc,
                 .is_lenient = true}; /* if a and (x := b): x is read only where it was assigned */
    join.op = tt_build_op(&w->builder, OP_if, &condition, 1, NULL, 0, NULL);
    join.sides[1] = (Side){join.op->regions[1], tt_copy_bindings(w), FALLS};
    Term b = walk_in_region(w, &join.sides[0], join.op->regions[0], node), result;
    w->builder.loc = loc;
    bool has_walrus =
        w->state->frame->info->has_walrus; /* what it assigns must not be assigned when a decides */
    if (!is_scalar(b) || (is_harmless(join.op->regions[0], COSTLY) && !has_walrus)) {
        w->builder.region = region;
        hoist(join.op, join.op->regions[0]);
        tt_erase_op(join.op);
        return tt_semantic_binary(w, op, a, b);
    }
    b = tt_value_term(tt_condition(w, b), &tt_int1);
    w->builder.region = region;
    tt_join_terms(w, &join, b, tt_bool_term(w, op == OPERATOR_LOGICAL_OR), &result);
    tt_join_bindings(w, &join, 0);
    return result;
}

static Term logical(Walker *w, Operator op, Term a, PyObject *right)
{
    int truth = tt_known_truth(w, a);
    if (truth >= 0)
        return truth == (op == OPERATOR_LOGICAL_OR) ? a : tt_walk_expr(w, right);
    if (is_scalar(a))
        return walk_short_circuit(w, op, a, right);
    const Loc *loc = tt_here(w);
    Term b = tt_walk_expr(w, right);
    w->builder.loc = loc;
    return tt_semantic_binary(w, op, a, b);
}

Term tt_walk_bool_op(Walker *w, PyObject *node)
{
    bool is_or = tt_node_kind(w, tt_field(w, node, FIELD_op)) == NODE_Or;
    PyObject *values = tt_field(w, node, FIELD_values);
    Term result = tt_walk_expr(w, tt_list_item(w, values, 0));
    for (int i = 1; i < tt_list_size(w, values); i++) {
        tt_at(w, node);
        result = logical(w, is_or ? OPERATOR_LOGICAL_OR : OPERATOR_LOGICAL_AND, result,
                         tt_list_item(w, values, i));
    }
    return result;
}

/* ---- comparisons ----------------------------------------------------------------------------------------------------- */

static bool identical(Walker *w, Term a, Term b)
{
    if (tt_is_none(a) || tt_is_none(b))
        return tt_is_none(a) && tt_is_none(b);
    PyObject *left = tt_term_python(w, a), *right = left ? tt_term_python(w, b) : NULL;
    if (!right)
        tt_fail_with_remedy(w, "compare values with `==`",
                            "`is` compares compile-time objects, not %s and %s", tt_describe(w, a),
                            tt_describe(w, b));
    return tt_same_term(w, tt_python_term(w, left), tt_python_term(w, right));
}

static bool contains(Walker *w, Term container, Term item)
{
    PyObject *object = tt_term_python(w, container), *wanted = tt_term_python(w, item);
    if (!object || !wanted)
        tt_fail_with_remedy(w, "compare with each item by `==` and combine the results with `|`",
                            "`in` is decided at compile time, but here are %s and %s", tt_describe(w, item),
                            tt_describe(w, container));
    int found = PySequence_Contains(object, wanted);
    if (found < 0)
        tt_python_error(w);
    return found;
}

static Term compare(Walker *w, NodeKind kind, Term a, Term b)
{
    switch (kind) {
    case NODE_Is:
    case NODE_IsNot:
        return tt_bool_term(w, identical(w, a, b) == (kind == NODE_Is));
    case NODE_In:
    case NODE_NotIn:
        return tt_bool_term(w, contains(w, b, a) == (kind == NODE_In));
    case NODE_Eq:
        return tt_binary(w, OPERATOR_EQ, a, b);
    case NODE_NotEq:
        return tt_binary(w, OPERATOR_NE, a, b);
    case NODE_Lt:
        return tt_binary(w, OPERATOR_LT, a, b);
    case NODE_LtE:
        return tt_binary(w, OPERATOR_LE, a, b);
    case NODE_Gt:
        return tt_binary(w, OPERATOR_GT, a, b);
    case NODE_GtE:
        return tt_binary(w, OPERATOR_GE, a, b);
    default:
        tt_bug("unknown comparison node");
    }
}

/* a < b < c is a < b and b < c, with b evaluated once. */
Term tt_walk_compare(Walker *w, PyObject *node)
{
    PyObject *ops = tt_field(w, node, FIELD_ops), *comparators = tt_field(w, node, FIELD_comparators);
    Term left = tt_walk_expr(w, tt_field(w, node, FIELD_left)), result = {0};
    for (int i = 0; i < tt_list_size(w, ops); i++) {
        Term right = tt_walk_expr(w, tt_list_item(w, comparators, i));
        tt_at(w, node);
        Term one = compare(w, tt_node_kind(w, tt_list_item(w, ops, i)), left, right);
        left = right;
        if (i == 0) {
            result = one;
            continue;
        }
        int truth = tt_known_truth(w, result);
        if (truth == 0)
            return result;
        result = truth == 1 ? one : tt_semantic_binary(w, OPERATOR_LOGICAL_AND, result, one);
    }
    return result;
}
