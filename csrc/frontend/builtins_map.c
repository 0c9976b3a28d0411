/* map_elements: a function of scalars for each element of tiles. Like that of a reduction it is walked once, on scalars; its
 * operations are then built on tiles. Where scalars would branch, both sides are computed and elements are chosen; a loop goes
 * on as long as one element's does, and the others keep what they have. So no target knows of it. */
#include "frontend/builtins.h"

typedef struct Lift {
    Builder *b;
    Map lifted; /* Value* of the function to what it is for all elements: a tile, or a scalar that they share */
    Shape shape;
} Lift;

static const Type *tile_type(const Lift *l, const Type *scalar)
{
    return tt_shaped_type(l->b->module, scalar, l->shape.extents, l->shape.rank);
}

/* What is not in the map comes from outside of the function. */
static Value *lifted(const Lift *l, Value *value)
{
    Value *found = tt_map_find_ptr(&l->lifted, value);
    return found ? found : value;
}

static void lift_to(Lift *l, const Value *value, Value *to) { *tt_map_slot_ptr(&l->lifted, value) = to; }

static Value *as_tile(const Lift *l, Value *value)
{
    bool is_tile = tt_is_tile(value->type);
    return is_tile ? value : tt_build_splat(l->b, value, l->shape.extents, l->shape.rank);
}

static Value *choose(const Lift *l, Value *condition, Value *a, Value *b)
{
    if (a == b)
        return a;
    return tt_build3(l->b, OP_select, as_tile(l, condition), as_tile(l, a), as_tile(l, b));
}

/* Both conditions; NULL is one that always holds. */
static Value *both(const Lift *l, Value *a, Value *b)
{
    return a ? tt_build2(l->b, OP_and, as_tile(l, a), as_tile(l, b)) : b;
}

static Value *negated(const Lift *l, Value *condition)
{
    return tt_build2(l->b, OP_xor, condition, tt_build_int(l->b, condition->type, 1));
}

static Value *any(const Lift *l, Value *condition)
{
    int64_t count = tt_shape_count(&l->shape);
    return tt_build_any(l->b, tt_build_reshape(l->b, as_tile(l, condition), &count, 1), 0);
}

/* ---- operations and branches ----------------------------------------------------------------------------------------- */

static void lift_body(Lift *l, const Region *region, Value *active);

static void lift_operation(Lift *l, const Op *op)
{
    if (op->result_count != 1 || (op->operand_count && !tt_has(op, ELEMENTWISE)))
        tt_error_with_remedy(
            op->loc, "compute with the parameters and numbers, element by element",
            "the function of tl.map_elementwise holds an operation on more than an element: %s",
            tt_op_infos[op->opcode].name);
    Value **operands = TT_NEW_ARRAY(l->b->module->arena, Value *, op->operand_count);
    const Type *type = op->results[0]->type;
    bool is_shared = true;
    for (int i = 0; i < op->operand_count; i++) {
        operands[i] = lifted(l, tt_operand(op, i));
        is_shared &= !tt_is_tile(operands[i]->type);
    }
    for (int i = 0; i < op->operand_count && !is_shared; i++)
        operands[i] = as_tile(l, operands[i]);
    lift_to(l, op->results[0],
            tt_build(l->b, op->opcode, operands, op->operand_count, is_shared ? type : tile_type(l, type),
                     tt_copy_attrs(l->b->module, op->attrs)));
}

static void lift_if(Lift *l, const Op *op, Value *active)
{
    if (!op->result_count) /* nothing in it has an effect */
        return;
    Value *condition = lifted(l, tt_operand(op, 0));
    Value **first = TT_NEW_ARRAY(l->b->module->arena, Value *, op->result_count);
    lift_body(l, op->regions[0], both(l, active, condition));
    for (int i = 0; i < op->result_count; i++)
        first[i] = lifted(l, tt_operand(op->regions[0]->last, i));
    lift_body(l, op->regions[1], both(l, active, negated(l, condition)));
    for (int i = 0; i < op->result_count; i++)
        lift_to(l, op->results[i],
                choose(l, condition, first[i], lifted(l, tt_operand(op->regions[1]->last, i))));
}

/* ---- loops ----------------------------------------------------------------------------------------------------------- */

/* A `while`, or a `for` whose elements have bounds of their own. Its values are what the arguments of its body stand for:
 * of a `for` the index is the first. */
typedef struct Loop {
    const Op *op;
    const Region *body;
    Value *upper, *step; /* tiles; NULL of a `while` */
    int count;
} Loop;

static void bind(Lift *l, const Region *region, Value *const *values)
{
    for (int i = 0; i < region->arg_count; i++)
        lift_to(l, region->args[i], values[i]);
}

/* Of the active elements: for which is there another iteration? */
static Value *goes_on(Lift *l, const Loop *loop, Value *const *values, Value *active)
{
    if (loop->upper)
        return both(l, active, tt_build2(l->b, OP_lt_s, values[0], loop->upper));
    const Region *test = loop->op->regions[0];
    bind(l, test, values);
    lift_body(l, test, active);
    return as_tile(l, both(l, active, lifted(l, tt_operand(test->last, 0))));
}

/* The body once. `values` become those after it, and the result is which elements go on. */
static Value *iterate(Lift *l, const Loop *loop, Value **values, Value *active)
{
    int first = loop->upper != NULL;
    bind(l, loop->body, values);
    lift_body(l, loop->body, active);
    for (int i = first; i < loop->count; i++)
        values[i] = choose(l, active, lifted(l, tt_operand(loop->body->last, i - first)), values[i]);
    if (loop->upper) { /* an index that wraps around was the last one */
        Value *index = tt_build2(l->b, OP_add, values[0], loop->step);
        active = both(l, active, tt_build2(l->b, OP_lt_s, values[0], index));
        values[0] = choose(l, active, index, values[0]);
    }
    return goes_on(l, loop, values, active);
}

static void add_arguments(Region *region, Value *const *like, int count, Value **values)
{
    for (int i = 0; i < count; i++)
        values[i] = tt_add_region_arg(region, like[i]->type);
}

/* `values` are the first ones, and become the last; the elements that go on are carried behind them. */
static void lift_loop(Lift *l, const Loop *loop, Value **values, Value *active)
{
    Builder *outer = l->b;
    int count = loop->count + 1;
    const Type **types = TT_NEW_ARRAY(outer->module->arena, const Type *, count);
    Value **inside = TT_NEW_ARRAY(outer->module->arena, Value *, count);
    values[loop->count] = goes_on(l, loop, values, active);
    for (int i = 0; i < count; i++)
        types[i] = values[i]->type;
    Op *made = tt_build_op(outer, OP_while, values, count, types, count,
                           tt_copy_attrs(outer->module, loop->op->attrs));
    for (int r = 0; r < 2; r++) {
        Builder inner = tt_builder_at_end(made->regions[r]);
        inner.loc = loop->op->loc;
        l->b = &inner;
        add_arguments(made->regions[r], values, count, inside);
        if (r == 0) {
            tt_build_op(&inner, OP_condition, (Value *[]){any(l, inside[loop->count])}, 1, NULL, 0, NULL);
        } else {
            inside[loop->count] = iterate(l, loop, inside, inside[loop->count]);
            tt_build_op(&inner, OP_yield, inside, count, NULL, 0, NULL);
        }
    }
    l->b = outer;
    for (int i = 0; i < count; i++)
        values[i] = made->results[i];
}

/* A `for` of so many iterations for all elements. */
static void lift_shared_for(Lift *l, const Op *op, Value **values, Value *active)
{
    Builder *outer = l->b;
    const Region *body = op->regions[0];
    int count = op->result_count;
    Value **operands = TT_NEW_ARRAY(outer->module->arena, Value *, count + 3);
    const Type **types = TT_NEW_ARRAY(outer->module->arena, const Type *, count);
    for (int i = 0; i < 3; i++)
        operands[i] = lifted(l, tt_operand(op, i));
    for (int i = 0; i < count; i++) {
        operands[3 + i] = values[1 + i];
        types[i] = values[1 + i]->type;
    }
    Op *made = tt_build_op(outer, OP_for, operands, count + 3, types, count,
                           tt_copy_attrs(outer->module, op->attrs));
    Builder inner = tt_builder_at_end(made->regions[0]);
    inner.loc = op->loc;
    l->b = &inner;
    operands[2] = operands[0]; /* the index has the type of the bounds */
    add_arguments(made->regions[0], operands + 2, count + 1, values);
    bind(l, body, values);
    lift_body(l, body, active);
    for (int i = 0; i < count; i++)
        operands[i] = as_tile(l, lifted(l, tt_operand(body->last, i)));
    tt_build_op(&inner, OP_yield, operands, count, NULL, 0, NULL);
    l->b = outer;
    for (int i = 0; i < count; i++)
        values[1 + i] = made->results[i];
}

static void lift_control(Lift *l, const Op *op, Value *active)
{
    if (tt_control(op) == IF) {
        lift_if(l, op, active);
        return;
    }
    bool is_for = tt_control(op) == FOR, is_shared = is_for;
    Loop loop = {.op = op, .body = op->regions[is_for ? 0 : 1], .count = op->result_count + is_for};
    Value **values = TT_NEW_ARRAY(l->b->module->arena, Value *, loop.count + 1);
    for (int i = 0; i < 3 && is_for; i++)
        is_shared &= !tt_is_tile(lifted(l, tt_operand(op, i))->type);
    for (int i = 0; i < op->result_count; i++)
        values[i + is_for] = as_tile(l, lifted(l, tt_operand(op, i + (is_for ? 3 : 0))));
    if (is_shared) {
        lift_shared_for(l, op, values, active);
    } else {
        if (is_for) {
            values[0] = as_tile(l, lifted(l, tt_operand(op, 0)));
            loop.upper = as_tile(l, lifted(l, tt_operand(op, 1)));
            loop.step = as_tile(l, lifted(l, tt_operand(op, 2)));
        }
        lift_loop(l, &loop, values, active);
    }
    for (int i = 0; i < op->result_count; i++)
        lift_to(l, op->results[i], values[i + is_for]);
}

/* All but the terminator. `active`: for which elements scalars would come here; NULL: for all. */
static void lift_body(Lift *l, const Region *region, Value *active)
{
    for (const Op *op = region->first; op && op != region->last; op = op->next) {
        const Loc *loc = l->b->loc;
        l->b->loc = op->loc;
        if (tt_is_control(op))
            lift_control(l, op, active);
        else
            lift_operation(l, op);
        l->b->loc = loc;
    }
}

/* ---- the builtin ----------------------------------------------------------------------------------------------------- */

enum { MOST_VALUES = 64 }; /* that a function takes, and that it gives */

/* map_elements(function, values): the function of scalars for each element of the values, which are broadcast; a tuple of
 * tiles where it gives several. */
Term tt_builtin_map_elements(Walker *w, Term *args)
{
    const Term *items = &args[1];
    Term values[MOST_VALUES], results[MOST_VALUES];
    int count = 1;
    if (!tt_term_items(w, args[1], &items, &count) || count < 1 || count > MOST_VALUES)
        tt_fail(w, "tl.map_elementwise takes from 1 to %d tiles", MOST_VALUES);
    for (int i = 0; i < count; i++) {
        if (!tt_is_value(items[i]) && !tt_is_number(items[i]))
            tt_fail(w, "tl.map_elementwise takes tiles and numbers, not %s", tt_describe(w, items[i]));
        values[i] = tt_term_value(w, items[i]);
    }
    tt_broadcast_together(w, "tl.map_elementwise", values, count);
    Lift l = {.b = &w->builder, .lifted = {.arena = w->arena}, .shape = tt_shape_of(values[0])};
    if (!l.shape.rank)
        return tt_call(w, args[0], values, count);

    /* The function is walked in the region of an operation that goes again. */
    Value *operand = values[0].value;
    Op *host = tt_build_op(&w->builder, OP_scan, &operand, 1, &operand->type, 1,
                           tt_attr_int(w->module, ATTR_axis, 0, NULL));
    Region *region = host->regions[0];
    Term scalars[MOST_VALUES];
    Value *given[MOST_VALUES];
    for (int i = 0; i < count; i++)
        scalars[i] =
            tt_value_term(tt_add_region_arg(region, tt_dtype_ir(w, values[i].dtype)), values[i].dtype);
    int result_count = tt_call_on_scalars(w, region, args[0], scalars, count, results, MOST_VALUES);
    if (result_count > MOST_VALUES)
        tt_fail(w, "the function of tl.map_elementwise gives %d values; at most %d are possible",
                result_count, MOST_VALUES);
    Builder outside = w->builder;
    w->builder = tt_builder_at_end(region);
    w->builder.loc = outside.loc;
    for (int i = 0; i < result_count; i++) {
        if (!tt_is_value(results[i]) && !tt_is_number(results[i]))
            tt_fail_with_remedy(w, tt_none_remedy(results[i]),
                                "the function of tl.map_elementwise must return scalars, not %s",
                                tt_describe(w, results[i]));
        results[i] = tt_term_value(w, results[i]);
        given[i] = results[i].value;
    }
    tt_end_scalar_function(w, region, given, result_count);
    w->builder = outside;
    for (int i = 0; i < count; i++)
        lift_to(&l, region->args[i], values[i].value);
    lift_body(&l, region, NULL);
    for (int i = 0; i < result_count; i++)
        results[i] = tt_value_term(as_tile(&l, lifted(&l, tt_operand(region->last, i))), results[i].dtype);
    tt_erase_op(host);
    return result_count == 1 ? results[0] : tt_tuple_term(w, results, result_count);
}
