/* A loop whose products take what the iteration before has loaded: the program loads ahead by itself, by one iteration, into
 * registers. Each iteration loads what it multiplies instead, as if it had been written so, and how far ahead that comes is
 * for the target to say:
 *
 *   x = load(p)                      for ...:
 *   for ...:                             x = load(p)
 *       p += step               =>       sum += dot(x, ...)
 *       y = load(p)                      p += step
 *       sum += dot(x, ...)           x = load(p)
 *       x = y
 *   sum += dot(x, ...)
 *
 * What the load in front of the loop reads has to be what the one in the loop would have read an iteration before the first,
 * and nothing is written meanwhile. */
#include "opt/canonicalize.h"

typedef struct CarriedLoad {
    Arena *scratch;
    Loop loop;
    int carried;
    Value *first; /* what the load in front of the loop reads from, or its mask, or what else there is */
    Map behind;   /* carried value -> the one that is a step behind */
} CarriedLoad;

enum { DEEPEST = 12 /* expressions that are compared */ };

/* Where a value of an iteration is wanted for the iteration before it: in front of the loop for the first one, in the loop, or
 * behind it for what would come next. */
typedef struct Place {
    const CarriedLoad *load;
    enum { BEFORE, INSIDE, BEHIND } where;
    Builder b;
    Map made;
} Place;

/* ---- values of the iteration before ------------------------------------------------------------------------------------------ */

/* i in the iteration before; behind the loop, in its last one, or before the first if there is none. */
static Value *index_before(Place *place)
{
    Builder *b = &place->b;
    const Loop *loop = &place->load->loop;
    Value *lower = tt_operand(loop->op, 0), *upper = tt_operand(loop->op, 1), *step = tt_operand(loop->op, 2);
    if (place->where == INSIDE)
        return tt_build2(b, OP_sub, loop->body->args[0], step);
    Value *before = tt_build2(b, OP_sub, lower, step);
    if (place->where == BEFORE)
        return before;
    Value *one = tt_build_int(b, lower->type, 1), *length = tt_build2(b, OP_sub, upper, lower);
    Value *steps = tt_build2(b, OP_div_s, tt_build2(b, OP_sub, length, one), step);
    Value *last = tt_build2(b, OP_add, lower, tt_build2(b, OP_mul, steps, step));
    return tt_build3(b, OP_select, tt_build2(b, OP_lt_s, lower, upper), last, before);
}

/* Can all places have the index? The number of iterations must fit its type, and none be left out. */
static bool has_index_before(const Loop *loop)
{
    int64_t lower, step;
    return tt_constant_int(tt_operand(loop->op, 0), &lower) && lower >= 0 &&
           tt_constant_int(tt_operand(loop->op, 2), &step) && step > 0;
}

/* Which carried value the iteration hands on as this one, or -1. */
static int handed_on_as(const Loop *loop, const Value *value)
{
    for (int i = 0; i < loop->count; i++)
        if (tt_next(loop, i) == value)
            return i;
    return -1;
}

static Value *carried_at(const Place *place, int index)
{
    const Loop *loop = &place->load->loop;
    return place->where == BEFORE   ? tt_init(loop, index)
           : place->where == INSIDE ? tt_carried(loop, index)
                                    : loop->op->results[index];
}

/* What a tile repeats, or the value if it is none; NULL: it repeats nothing. */
static Value *repeated(Value *value, Builder *b)
{
    int64_t number;
    if (!tt_is_tile(value->type))
        return value;
    if (tt_def(value, OP_splat))
        return tt_operand(value->op, 0);
    return tt_constant_int(value, &number) ? tt_build_int(b, tt_element(value->type), number) : NULL;
}

/* Is `value` what `start` is behind a step? What is added to all pointers of a tile may be in their base, where canonicalize puts
 * it. */
static bool is_step_behind(const CarriedLoad *load, Opcode sum, Value *step, Value *start, const Value *value)
{
    Builder b = tt_builder_before(load->loop.op);
    if (tt_equal_if(tt_build2(&b, sum, start, step), value, NULL, NULL, DEEPEST))
        return true;
    while (tt_is_tile(start->type)) {
        const Op *op = start->op, *other = value->op;
        bool alike = tt_is_ptr(start->type) && op && other && op->opcode == other->opcode && tt_is_pure(op) &&
                     op->operand_count == other->operand_count && op->operand_count &&
                     tt_same_attrs(op, other) && tt_is_ptr(tt_operand(op, 0)->type);
        for (int i = 1; alike && i < op->operand_count; i++)
            alike = tt_equal_if(tt_operand(op, i), tt_operand(other, i), NULL, NULL, DEEPEST);
        if (!alike)
            return false;
        start = tt_operand(op, 0);
        value = tt_operand(other, 0);
    }
    step = repeated(step, &b);
    return step && tt_equal_if(tt_build2(&b, sum, start, step), value, NULL, NULL, DEEPEST);
}

/* In what the load in front of the loop reads from: the value that `step` leads from to what the loop begins with. */
static Value *find_start(const CarriedLoad *load, Opcode sum, Value *step, const Value *init, Value *tree,
                         int depth)
{
    if (tree->type == init->type && is_step_behind(load, sum, step, tree, init))
        return tree;
    for (int i = 0; depth && tree->op && tt_is_pure(tree->op) && i < tree->op->operand_count; i++) {
        Value *found = find_start(load, sum, step, init, tt_operand(tree->op, i), depth - 1);
        if (found)
            return found;
    }
    return NULL;
}

/* A pointer, or an index, that each iteration and the program before the loop move on by the same step: it is carried a step behind,
 * too. Returns as which carried value, or -1. */
static int carry_behind(CarriedLoad *load, int index)
{
    Loop *loop = &load->loop;
    Value *carried = tt_carried(loop, index), *known = tt_map_find_ptr(&load->behind, carried);
    const Op *next = tt_next(loop, index)->op;
    if (known)
        return tt_carried_index(loop, known);
    bool adds = next && (next->opcode == OP_addptr || next->opcode == OP_add) &&
                tt_operand(next, 0) == carried && !tt_is_in_loop(loop, tt_operand(next, 1));
    Value *step = adds ? tt_operand(next, 1) : NULL;
    Value *start =
        step ? find_start(load, next->opcode, step, tt_init(loop, index), load->first, DEEPEST) : NULL;
    if (!start)
        return -1;
    int behind = tt_add_carried(loop, start);
    Builder b = tt_builder_before(loop->yield);
    b.loc = next->loc;
    tt_set_operand(loop->yield, behind, tt_build2(&b, next->opcode, tt_carried(loop, behind), step));
    *tt_map_slot_ptr(&load->behind, carried) = tt_carried(loop, behind);
    return behind;
}

static Value *before(Place *place, CarriedLoad *load, Value *value);

/* The operation once more, on what its operands were in the iteration before. */
static Value *again_before(Place *place, CarriedLoad *load, Value *value)
{
    const Op *op = value->op;
    Builder *b = &place->b;
    Attr *attrs = tt_copy_attrs(b->module, op->attrs);
    Value **operands = TT_NEW_ARRAY(load->scratch, Value *, op->operand_count);
    const Type **types = TT_NEW_ARRAY(load->scratch, const Type *, op->result_count);
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = before(place, load, tt_operand(op, i));
    for (int i = 0; i < op->result_count; i++)
        types[i] = op->results[i]->type;
    b->loc = op->loc;
    if (op->result_count == 1)
        return *tt_map_slot_ptr(&place->made, value) =
                   tt_build(b, op->opcode, operands, op->operand_count, value->type, attrs);
    Op *again = tt_build_op(b, op->opcode, operands, op->operand_count, types, op->result_count, attrs);
    for (int i = 0; i < op->result_count; i++)
        *tt_map_slot_ptr(&place->made, op->results[i]) = again->results[i];
    return again->results[value->index];
}

/* The value in the iteration before, or NULL. */
static Value *before(Place *place, CarriedLoad *load, Value *value)
{
    Loop *loop = &load->loop;
    if (!tt_is_in_loop(loop, value))
        return value;
    Value *result = tt_map_find_ptr(&place->made, value);
    if (result)
        return result;
    const Op *op = value->op;
    int carried = handed_on_as(loop, value);
    if (carried < 0 && !op && value != loop->body->args[0])
        carried = carry_behind(load, tt_carried_index(loop, value));
    if (carried >= 0) {
        result = carried_at(place, carried);
    } else if (!op) {
        result = value == loop->body->args[0] && has_index_before(loop) ? index_before(place) : NULL;
    } else if (op->parent == loop->body && tt_is_pure(op) && !op->region_count) {
        for (int i = 0; i < op->operand_count; i++)
            if (!before(place, load, tt_operand(op, i)))
                return NULL;
        return again_before(place, load, value);
    }
    return *tt_map_slot_ptr(&place->made, value) = result;
}

/* ---- which loads -------------------------------------------------------------------------------------------------------------- */

static bool goes_to_product(const Loop *loop, const Value *value, Map *seen)
{
    if (tt_map_find_ptr(seen, value))
        return false;
    *tt_map_slot_ptr(seen, value) = (void *)value;
    TT_FOR_USES(use, value)
    {
        const Op *user = use->user;
        if (user->parent != loop->body)
            continue;
        if (user->opcode == OP_dot && use->value != tt_operand(user, 2))
            return true;
        if (tt_has(user, ELEMENTWISE | SHAPE) && user->result_count == 1 &&
            goes_to_product(loop, user->results[0], seen))
            return true;
    }
    return false;
}

/* Does nothing write, or end the program, between the load and the loop? */
static bool stays_until(const Op *load, const Op *loop)
{
    if (load->parent != loop->parent)
        return false;
    const Op *op = load;
    while (op && op != loop && !tt_writes_memory(op) && !tt_has_effects(op))
        op = op->next;
    return op == loop;
}

static bool is_candidate(const CarriedLoad *load)
{
    const Loop *loop = &load->loop;
    const Op *next = tt_def(tt_next(loop, load->carried), OP_load);
    const Op *first = tt_def(tt_init(loop, load->carried), OP_load);
    Map seen = {.arena = load->scratch};
    return next && first && tt_is_tile(next->results[0]->type) && next->parent == loop->body &&
           tt_is_plain_load(next) && tt_is_plain_load(first) && next->operand_count == first->operand_count &&
           tt_same_attrs_but(next, first, ATTR_evict) && tt_has_one_use(next->results[0]) &&
           stays_until(first, loop->op) && goes_to_product(loop, tt_carried(loop, load->carried), &seen);
}

/* Does the load in front of the loop read what that in the loop would have an iteration before? */
static bool begins_alike(CarriedLoad *load, const Op *next)
{
    Place place = {load, BEFORE, tt_builder_before(load->loop.op), {.arena = load->scratch}};
    const Op *first = tt_init(&load->loop, load->carried)->op;
    for (int i = 0; i < next->operand_count; i++) {
        load->first = tt_operand(first, i);
        const Value *value = before(&place, load, tt_operand(next, i));
        if (!value || !tt_equal_if(value, load->first, NULL, NULL, DEEPEST))
            return false;
    }
    return true;
}

static Value *load_there(CarriedLoad *load, Place place, const Op *next)
{
    Value *operands[3] = {0};
    for (int i = 0; i < next->operand_count; i++)
        operands[i] = before(&place, load, tt_operand(next, i));
    place.b.loc = next->loc;
    Value *loaded = tt_build(&place.b, OP_load, operands, next->operand_count, next->results[0]->type,
                             tt_copy_attrs(place.b.module, next->attrs));
    loaded->name = next->results[0]->name;
    return loaded;
}

static bool load_in_time(CarriedLoad *load)
{
    Loop *loop = &load->loop;
    if (!is_candidate(load))
        return false;
    const Op *next = tt_next(loop, load->carried)->op;
    if (!begins_alike(load, next))
        return false;
    Map made = {.arena = load->scratch};
    Value *result = loop->op->results[load->carried];
    if (tt_has_uses(result)) {
        Place behind = {load, BEHIND, tt_builder_after(loop->op), made};
        tt_replace_all_uses(result, load_there(load, behind, next));
    }
    Place inside = {load, INSIDE, tt_builder_before(loop->body->first), made};
    tt_replace_all_uses(tt_carried(loop, load->carried), load_there(load, inside, next));
    return true;
}

static bool change_loop(Op *op, void *scratch)
{
    CarriedLoad load = {scratch, tt_loop(op), 0, NULL, {.arena = scratch}};
    bool changed = false;
    if (tt_writes_memory(op) || tt_has_effects(op))
        return false;
    for (int count = load.loop.count; load.carried < count; load.carried++)
        changed |= load_in_time(&load);
    return changed;
}

bool tt_opt_carried_loads(Function *function, Arena *scratch)
{
    return tt_change_loops(function->body, change_loop, scratch);
}
