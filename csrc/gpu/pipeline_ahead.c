/* Values of a loop some iterations ahead of the one that runs: computed before the loop for its first iterations, and in it
 * from what it carries. */
#include "gpu/pipeline.h"

/* ---- values some iterations ahead ------------------------------------------------------------------------------------------------- */

/* i1: is there an iteration `distance` after the one with this index? `rest` is upper - index, which is positive: as
 * unsigned it is right even where it does not fit. */
static Value *goes_on(const Pipeline *p, Builder *b, Value *rest, int distance)
{
    Value *steps = tt_build2(b, OP_mul, tt_operand(p->loop.op, 2), tt_build_int(b, rest->type, distance));
    return tt_build2(b, OP_lt_u, steps, rest);
}

/* i1: does the loop come to this iteration? */
Value *pipeline_runs_before(Pipeline *p, int iteration)
{
    Builder *b = &p->before;
    Value *lower = tt_operand(p->loop.op, 0), *upper = tt_operand(p->loop.op, 1);
    Value *begins = tt_build2(b, OP_lt_s, lower, upper);
    if (!iteration)
        return begins;
    return tt_build2(b, OP_and, begins, goes_on(p, b, tt_build2(b, OP_sub, upper, lower), iteration));
}

Value *pipeline_runs_ahead(Pipeline *p, int distance)
{
    Builder *b = &p->inside;
    return goes_on(p, b, tt_build2(b, OP_sub, tt_operand(p->loop.op, 1), p->loop.body->args[0]), distance);
}

/* The mask, and `runs` for all elements. */
Value *pipeline_masked(Builder *b, const Type *type, Value *mask, Value *runs)
{
    Value *all = tt_is_tile(type) ? tt_build_splat(b, runs, type->shape, type->rank) : runs;
    return mask ? tt_build2(b, OP_and, mask, all) : all;
}

/* The value of the same operation on other operands; a load where the iteration `runs`. */
Value *pipeline_repeat(Builder *b, const Value *value, Value **operands, Value *runs)
{
    Value *all[3] = {0};
    const Op *op = value->op;
    int count = op->operand_count;
    if (op->opcode == OP_load) {
        memcpy(all, operands, sizeof(Value *) * (size_t)count);
        all[1] = pipeline_masked(b, all[0]->type, all[1], runs);
        operands = all;
        count = TT_MAX(2, count);
    }
    const Type *type = op->results[0]->type;
    Attr *attrs = tt_copy_attrs(b->module, op->attrs);
    if (op->opcode == OP_load &&
        op->operand_count == 1) /* the mask is false for iterations that there are not */
        attrs = tt_attr_int(b->module, ATTR_unread, 1, attrs);
    if (op->result_count > 1) { /* a split, say */
        const Type **types = TT_NEW_ARRAY(b->module->arena, const Type *, op->result_count);
        for (int i = 0; i < op->result_count; i++)
            types[i] = op->results[i]->type;
        return tt_build_op(b, op->opcode, operands, count, types, op->result_count, attrs)
            ->results[value->index];
    }
    if (op->opcode != OP_load)
        return tt_build(b, op->opcode, operands, count, type, attrs);
    Op *copy = tt_build_op(b, op->opcode, operands, count, &type, 1, attrs);
    copy->results[0]->name = op->results[0]->name;
    return copy->results[0];
}

/* What a slot holds is of this iteration only: for another one the program's load is repeated. */
static Value *as_loaded(const Pipeline *p, Value *value)
{
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].read == value)
            return p->loads.data[i].load->results[0];
    return value;
}

/* In the loop, `distance` iterations on, or before it in that iteration. */
enum { IN_THE_LOOP = -1 };
static Value *value_there(Pipeline *p, Ahead *a, Value *value, int iteration)
{
    return iteration == IN_THE_LOOP ? pipeline_value_ahead(p, a, value)
                                    : pipeline_value_before(p, a, value, iteration);
}

static Value *known_or_there(Pipeline *p, Ahead *a, const Map *made, Value *value, int iteration)
{
    Value *known = tt_map_find_ptr(made, value);
    return known ? known : value_there(p, a, value, iteration);
}

/* What the branches compute of other values, once more, for all results at once. */
static Value *repeat_choice(Pipeline *p, Ahead *a, const Value *value, int iteration)
{
    Op *op = value->op;
    Map made = {.arena = p->scratch}, *values = iteration == IN_THE_LOOP ? &a->inside : &a->before[iteration];
    for (int r = 0; r < op->region_count; r++)
        TT_FOR_OPS(inner, op->regions[r]) /* in front of the branches */
        {
            for (int i = 0; i < inner->operand_count; i++)
                if (!tt_operand(inner, i)->op || tt_operand(inner, i)->op->parent != op->regions[r])
                    value_there(p, a, tt_operand(inner, i), iteration);
        }
    Value *condition = value_there(p, a, tt_operand(op, 0), iteration);
    const Type **types = TT_NEW_ARRAY(p->scratch, const Type *, op->result_count);
    for (int i = 0; i < op->result_count; i++)
        types[i] = op->results[i]->type;
    Builder *b = iteration == IN_THE_LOOP ? &p->inside : &p->before;
    Op *copy =
        tt_build_op(b, OP_if, &condition, 1, types, op->result_count, tt_copy_attrs(p->module, op->attrs));
    for (int r = 0; r < op->region_count; r++) {
        Builder branch = tt_builder_at_end(copy->regions[r]);
        TT_FOR_OPS(inner, op->regions[r])
        {
            Value **operands = TT_NEW_ARRAY(p->scratch, Value *, inner->operand_count);
            const Type **of_inner = TT_NEW_ARRAY(p->scratch, const Type *, inner->result_count);
            for (int i = 0; i < inner->operand_count; i++)
                operands[i] = known_or_there(p, a, &made, tt_operand(inner, i), iteration);
            for (int i = 0; i < inner->result_count; i++)
                of_inner[i] = inner->results[i]->type;
            branch.loc = inner->loc;
            Op *again = tt_build_op(&branch, inner->opcode, operands, inner->operand_count, of_inner,
                                    inner->result_count, tt_copy_attrs(p->module, inner->attrs));
            for (int i = 0; i < inner->result_count; i++)
                *tt_map_slot_ptr(&made, inner->results[i]) = again->results[i];
        }
    }
    for (int i = 0; i < op->result_count; i++) {
        copy->results[i]->name = op->results[i]->name;
        *tt_map_slot_ptr(values, op->results[i]) = copy->results[i];
    }
    return copy->results[value->index];
}

Value *pipeline_value_before(Pipeline *p, Ahead *a, Value *value, int iteration)
{
    value = as_loaded(p, value);
    if (!tt_is_in_loop(&p->loop, value))
        return value;
    void **slot = tt_map_slot_ptr(&a->before[iteration], value);
    if (*slot)
        return *slot;
    Builder *b = &p->before;
    Value *result;
    int carried = tt_carried_index(&p->loop, value);
    if (carried >= 0) {
        result = iteration ? pipeline_value_before(p, a, tt_next(&p->loop, carried), iteration - 1)
                           : tt_init(&p->loop, carried);
    } else if (!value->op) {
        Value *step = tt_operand(p->loop.op, 2);
        result = tt_operand(p->loop.op, 0);
        for (int i = 0; i < iteration; i++)
            result = tt_build2(b, OP_add, result, step);
    } else if (value->op->opcode == OP_if) {
        result = repeat_choice(p, a, value, iteration);
    } else {
        Value **operands = TT_NEW_ARRAY(p->scratch, Value *, value->op->operand_count);
        for (int i = 0; i < value->op->operand_count; i++)
            operands[i] = pipeline_value_before(p, a, tt_operand(value->op, i), iteration);
        bool reads = value->op->opcode == OP_load;
        result = pipeline_repeat(b, value, operands, reads ? pipeline_runs_before(p, iteration) : NULL);
        /* of a load that sets nothing ptxas makes a branch, and what else there is comes first; this one runs as a rule */
        if (reads && !iteration)
            tt_remove_attr(result->op, ATTR_unread);
    }
    return *tt_map_slot_ptr(&a->before[iteration], value) = result;
}

/* The lookup, in registers; or NULL if it is to be repeated. */
static Value *carry_lookup(Pipeline *p, Ahead *a, const Op *load)
{
    bool leads = false;
    for (int i = 0; i < p->leading.count && a->further; i++)
        leads |= p->leading.data[i] == load;
    if (!leads || !pipeline_keep(p, load->results[0]->type))
        return NULL;
    Lookup lookup = {load,
                     tt_add_carried(&p->loop, pipeline_value_before(p, a, load->results[0], a->distance))};
    tt_push(p->scratch, a->lookups, lookup);
    return tt_carried(&p->loop, lookup.carried);
}

void pipeline_look_up(Pipeline *p, Ahead *a)
{
    for (int i = 0; i < a->lookups.count; i++) {
        const Op *load = a->lookups.data[i].load;
        Value *operands[3] = {0};
        for (int j = 0; j < load->operand_count; j++)
            operands[j] = pipeline_value_ahead(p, a->further, tt_operand(load, j));
        Value *runs = pipeline_runs_ahead(p, a->further->distance);
        Value *next = pipeline_repeat(&p->inside, load->results[0], operands, runs);
        tt_set_operand(p->loop.yield, a->lookups.data[i].carried, next);
    }
}

Value *pipeline_value_ahead(Pipeline *p, Ahead *a, Value *value)
{
    value = as_loaded(p, value);
    if (!tt_is_in_loop(&p->loop, value))
        return value;
    void **slot = tt_map_slot_ptr(&a->inside, value);
    if (*slot)
        return *slot;
    Builder *b = &p->inside;
    Value *result;
    int carried = tt_carried_index(&p->loop, value);
    if (carried >= 0) {
        int copy = tt_add_carried(&p->loop, pipeline_value_before(p, a, value, a->distance));
        tt_push(p->scratch, a->carried, carried);
        tt_push(p->scratch, a->copies, copy);
        result = tt_carried(&p->loop, copy);
        result->name = value->name;
    } else if (value->op && value->op->opcode == OP_load && (result = carry_lookup(p, a, value->op))) {
        result->name = value->name;
    } else if (!value->op) {
        Value *steps = tt_build_int(b, value->type, a->distance);
        steps = tt_build2(b, OP_mul, tt_operand(p->loop.op, 2), steps);
        result = tt_build2(b, OP_add, value, steps);
    } else if (value->op->opcode == OP_if) {
        result = repeat_choice(p, a, value, IN_THE_LOOP);
    } else {
        Value **operands = TT_NEW_ARRAY(p->scratch, Value *, value->op->operand_count);
        for (int i = 0; i < value->op->operand_count; i++)
            operands[i] = pipeline_value_ahead(p, a, tt_operand(value->op, i));
        bool reads = value->op->opcode == OP_load;
        result = pipeline_repeat(b, value, operands, reads ? pipeline_runs_ahead(p, a->distance) : NULL);
    }
    return *tt_map_slot_ptr(&a->inside, value) = result;
}

/* ---- pointers ------------------------------------------------------------------------------------------------------------------------ */

/* The scalar at the beginning of a tile of pointers, if all that is added to it stays the same in the loop. */
Value *tt_moving_base(const Loop *loop, Value *pointer)
{
    while (tt_is_tile(pointer->type)) {
        Op *op = pointer->op;
        if (!op || (op->opcode != OP_addptr && op->opcode != OP_splat && !tt_has(op, SHAPE)) ||
            (op->opcode == OP_addptr && tt_is_in_loop(loop, tt_operand(op, 1))))
            return NULL;
        pointer = tt_operand(op, 0);
    }
    return tt_is_in_loop(loop, pointer) && tt_def(pointer, OP_addptr) &&
                   !tt_is_in_loop(loop, tt_operand(pointer->op, 0))
               ? pointer
               : NULL;
}

/* The tile of pointers with another scalar at its beginning, before the loop. */
static Value *based_on(Pipeline *p, const Value *pointer, Value *base)
{
    const Op *op = pointer->op;
    if (!tt_is_tile(pointer->type))
        return base;
    Value *operands[] = {based_on(p, tt_operand(op, 0), base),
                         op->operand_count > 1 ? tt_operand(op, 1) : NULL};
    return tt_build(&p->before, op->opcode, operands, op->operand_count, pointer->type,
                    tt_copy_attrs(p->module, op->attrs));
}

/* What a carried scalar grows by in each iteration, if that stays the same; else NULL. */
Value *tt_step_of(const Loop *loop, const Value *distance)
{
    int carried = tt_carried_index(loop, distance);
    Op *next = carried < 0 ? NULL : tt_def(tt_next(loop, carried), OP_add);
    for (int i = 0; next && i < 2; i++)
        if (tt_operand(next, i) == distance && !tt_is_in_loop(loop, tt_operand(next, 1 - i)))
            return tt_operand(next, 1 - i);
    return NULL;
}

static Value *moved(Builder *b, Value *pointer, Value *distance)
{
    distance = tt_build_splat(b, distance, pointer->type->shape, pointer->type->rank);
    return tt_build_addptr(b, pointer, distance);
}

/* Pointers of a copy as a tile that moves on by one step, or else as one that stays where it is and one distance for all:
 * an addition for each, and nothing that multiplies, which would hold up tensor cores at work. Right behind the copies an
 * addition waits until they have read its register: where threads have much else to do, it stands at the beginning of an
 * iteration. (LLVM makes of that a pointer that stays and one that moves, registers that plain products miss: 4096³ of fp16 took
 * 210 µs so, 189 as it is.) */
static void move_as_one(Pipeline *p, Op *copy)
{
    Value *pointer = tt_operand(copy, 0), *base = tt_moving_base(&p->loop, pointer);
    if (!base)
        return;
    void **known = tt_map_slot_ptr(&p->moved, pointer);
    bool is_portion = copy->parent == p->loop.body;
    if (*known && is_portion) { /* another portion of the tile's copies */
        tt_set_operand(copy, 0, *known);
        return;
    }
    Value *distance = tt_operand(base->op, 1), *step = tt_step_of(&p->loop, distance);
    bool at_once = tt_find_attr(p->loop.op, ATTR_computes);
    p->before = tt_builder_before(p->loop.op);
    Value *fixed = based_on(p, pointer, tt_operand(base->op, 0));
    Value *first = step ? tt_init(&p->loop, tt_carried_index(&p->loop, distance)) : NULL;
    if (step && at_once)
        first = tt_build2(&p->before, OP_sub, first, step);
    Builder here = tt_builder_before(copy);
    Builder move = tt_builder_before(at_once ? p->loop.body->first : p->loop.yield);
    p->before.raw = here.raw = move.raw = true; /* building would move distances back to the scalar */
    if (!step) {
        tt_set_operand(copy, 0, moved(&here, fixed, distance));
        *known = is_portion ? tt_operand(copy, 0) : NULL;
        return;
    }
    int carried = tt_add_carried(&p->loop, moved(&p->before, fixed, first));
    Value *now = tt_carried(&p->loop, carried), *next = moved(&move, now, step);
    tt_set_operand(p->loop.yield, carried, next);
    tt_set_operand(copy, 0, at_once ? next : now);
    *known = is_portion ? tt_operand(copy, 0) : NULL;
}

void pipeline_simplify_pointers(Op *op, void *context)
{
    Pipeline *p = context;
    Op *loop = op->opcode == OP_async_copy ? op->parent->op : NULL;
    if (loop && loop->opcode == OP_if)
        loop = loop->parent->op;
    if (!loop || loop->opcode != OP_for)
        return;
    p->loop = tt_loop(loop);
    move_as_one(p, op);
}

/* What is carried ahead moves on by an iteration, too. */
void pipeline_advance_carried(Pipeline *p, Ahead *a)
{
    for (int i = 0; i < a->carried.count; i++) { /* may find more */
        Value *next = pipeline_value_ahead(p, a, tt_next(&p->loop, a->carried.data[i]));
        tt_set_operand(p->loop.yield, a->copies.data[i], next);
    }
}

Ahead pipeline_new_ahead(Pipeline *p, int distance)
{
    Arena *arena = p->scratch;
    Ahead a = {.distance = distance, .inside = {.arena = arena}};
    a.before = TT_NEW_ARRAY(arena, Map, distance + 1);
    for (int i = 0; i <= distance; i++)
        a.before[i].arena = arena;
    return a;
}
