/* What a loop carries: each name that its body assigns and that has a value before it is an argument of the loop's
 * regions and a result of the operation. A name whose type an iteration would change is an error if an iteration reads
 * it, and has no value after the loop otherwise. Exits by `break` and `return` are carried as flags. */
#include "frontend/walker.h"
#include <stdlib.h>

void tt_begin_carried(Walker *w, Loop *loop, PyObject *node)
{
    const AssignedNames *names = tt_assigned_names(w, node);
    for (int i = 0; i < names->count; i++) {
        int slot = tt_find_slot(w, names->data[i]);
        if (slot < 0 || tt_binding(w, slot)->term.kind == TERM_UNDEFINED)
            continue;
        Carried carried = {.slot = slot, .before = *tt_binding(w, slot)};
        carried.before.term = tt_decay(w, carried.before.term);
        carried.state = TT_NEW(w->arena, LoopEntry);
        carried.state->outer = carried.before.entry;
        carried.first = loop->inits.count;
        int count = tt_count_values(carried.before.term), flat = 0;
        Value **values = TT_NEW_ARRAY(w->arena, Value *, count);
        tt_flatten(w, carried.before.term, values, &flat);
        for (int j = 0; j < count; j++)
            tt_push(w->arena, loop->inits, values[j]);
        carried.count = count;
        tt_push(w->arena, loop->carried, carried);
    }
    Bindings *now = &w->state->frame->scope.now;
    loop->loc = tt_here(w);
    loop->has_else = tt_list_size(w, tt_field(w, node, FIELD_orelse)) > 0;
    loop->names = names;
    for (int i = SLOT_BROKE; i <= SLOT_CONTINUED; i++) {
        loop->outer_exits[i] = now->data[i];
        now->data[i].term = tt_bool_term(w, false);
    }
    loop->before = tt_copy_bindings(w);
    loop->outer = w->state->frame->loop;
    w->state->frame->loop = loop;
    now->data[SLOT_RETURNED].term = tt_bool_term(w, false);
    now->data[SLOT_RESULT] = (Binding){0};
}

Value **tt_bind_carried(Walker *w, Loop *loop, Region *region)
{
    int before = region->arg_count;
    for (int i = 0; i < loop->inits.count; i++)
        tt_add_region_arg(region, loop->inits.data[i]->type)->name = loop->inits.data[i]->name;
    Value **args = region->args + before;
    for (int i = 0; i < loop->carried.count; i++) {
        Carried *carried = &loop->carried.data[i];
        int next = carried->first;
        Binding *binding = tt_binding(w, carried->slot);
        *binding = carried->before;
        binding->term = tt_rebuild(w, carried->before.term, args, &next);
        binding->entry = carried->state;
        for (int j = carried->first; j < carried->first + carried->count; j++)
            if (carried->count == 1)
                args[j]->name =
                    tt_intern(w->module, tt_utf8(w, w->state->frame->scope.names.data[carried->slot]));
        carried->entry = binding->term;
    }
    return args;
}

/* ---- the end of an iteration ------------------------------------------------------------------------------------------ */

/* The values of `end` in the places of `entry`; false when they are not of its types. */
static bool conform(Walker *w, Term entry, Term end, Value **values, int *count)
{
    if (entry.kind == TERM_VALUE) {
        bool scalar = !tt_is_tile(entry.value->type);
        if (tt_is_number(end) && !(scalar && tt_adopt(w, end, entry.dtype, &end)))
            return false;
        if (end.kind != TERM_VALUE || end.value->type != entry.value->type || end.dtype != entry.dtype)
            return false;
        values[(*count)++] = end.value;
        return true;
    }
    if (entry.kind == TERM_PYTHON || entry.kind != end.kind || entry.count != end.count)
        return tt_same_term(w, entry, end);
    if (entry.kind == TERM_BLOCK_POINTER ? memcmp(entry.block, end.block, sizeof *entry.block) != 0
                                         : entry.object != end.object)
        return false;
    for (int i = 0; i < entry.count; i++)
        if (!conform(w, entry.items[i], end.items[i], values, count))
            return false;
    return true;
}

static const char *changes_remedy(Walker *w, Term before, Term after)
{
    if (tt_is_none(before))
        return "start from a value of that type instead of None";
    if (before.kind != TERM_VALUE || after.kind != TERM_VALUE)
        return "keep its kind the same in all iterations, or use two names";
    if (!tt_same_shape(before.value->type, after.value->type))
        return tt_is_tile(after.value->type)
                   ? "start from a tile of that shape, tl.zeros(shape, dtype) for instance, or use two names"
                   : "keep its shape the same in all iterations, or use two names";
    bool int_to_float = tt_dtype_is_int(before.dtype) && tt_dtype_is_float(after.dtype);
    const char *start = !int_to_float                   ? "a value of that type"
                        : tt_is_tile(after.value->type) ? "a tile of floats"
                                                        : "a float, 0.0 instead of 0 for instance";
    return tt_arena_format(w->arena, "start from %s, or cast the new value with .to(%s)", start,
                           tt_dtype_spelling(w, before.dtype));
}

static _Noreturn void raise_changed(Walker *w, const Loop *loop, const Carried *carried, Binding end)
{
    const char *name = tt_utf8(w, w->state->frame->scope.names.data[carried->slot]);
    if (end.term.kind == TERM_UNDEFINED && end.term.undefined)
        tt_raise_undefined(w, name, end.term.undefined);
    const char *was = tt_describe(w, carried->before.term), *is = tt_describe(w, end.term);
    Diagnostic diag = {.kind = TT_USER_ERROR, .loc = end.loc ? end.loc : loop->loc};
    diag.message =
        tt_arena_format(w->arena,
                        "loop-carried variable `%s` changes its type: it is %s before the loop and %s after "
                        "an iteration",
                        name, was, is);
    diag.remedy = changes_remedy(w, carried->before.term, end.term);
    if (carried->before.loc)
        diag.notes[diag.note_count++] =
            (DiagNote){carried->before.loc, tt_arena_format(w->arena, "%s here", was)};
    diag.notes[diag.note_count++] = (DiagNote){loop->loc, "the loop"};
    tt_raise(&diag);
}

static bool has_uses(const Loop *loop, const Carried *carried)
{
    for (int j = carried->first; j < carried->first + carried->count; j++)
        if (tt_has_uses(loop->args[j]) || (loop->test_args && tt_has_uses(loop->test_args[j])))
            return true;
    return false;
}

static void drop(Walker *w, const Loop *loop, Carried *carried, Binding end)
{
    if (carried->state->read || has_uses(loop, carried))
        raise_changed(w, loop, carried, end);
    carried->is_dropped = true;
    carried->after = end;
    if (end.term.kind == TERM_UNDEFINED && end.term.undefined)
        return;
    Undefined *why = TT_NEW(w->arena, Undefined);
    *why = (Undefined){.kind = UNDEFINED_LOOP_MISMATCH,
                       .loc = loop->loc,
                       .a = carried->before.term,
                       .b = end.term,
                       .a_loc = carried->before.loc,
                       .b_loc = end.loc};
    carried->after.term = (Term){.kind = TERM_UNDEFINED, .undefined = why};
}

void tt_end_carried(Walker *w, Loop *loop, Flow flow)
{
    const Bindings *now = &w->state->frame->scope.now;
    loop->yields = TT_NEW_ARRAY(w->arena, Value *, loop->inits.count + 1);
    bool goes_on = flow & ~(Flow)RETURNS; /* else no name matters any more: the arguments serve as values */
    for (int i = 0; i < loop->carried.count; i++) {
        Carried *carried = &loop->carried.data[i];
        int count = 0;
        Binding end = goes_on ? now->data[carried->slot] : (Binding){.term = carried->entry};
        if (!conform(w, carried->entry, end.term, loop->yields + carried->first, &count))
            drop(w, loop, carried, end);
        else
            carried->after = end;
        if (carried->is_dropped) /* stays as an argument that nobody reads */
            for (int j = carried->first; j < carried->first + carried->count; j++)
                loop->yields[j] = loop->args[j];
        carried->after.entry = carried->before.entry;
    }
}

/* ---- exits ------------------------------------------------------------------------------------------------------------ */

/* Adds a value that every iteration makes anew and only the code after the loop reads. */
static void add_exit_value(Walker *w, Loop *loop, Value *init, Value *value)
{
    tt_push(w->arena, loop->exit_inits, init);
    tt_push(w->arena, loop->exit_yields, value);
}

/* At the end of the body: the flags that its exits set. exit_yields[0]: was the loop left? */
void tt_collect_exits(Walker *w, Loop *loop, Flow flow)
{
    Frame *frame = w->state->frame;
    loop->exits = flow & (BREAKS | RETURNS);
    if (!loop->exits)
        return;
    Builder body = w->builder;
    const Type *bool_type = tt_scalar_type(w->module, TT_I1);
    Binding result = frame->scope.now.data[SLOT_RESULT];
    Value *left = tt_exit_taken(w, loop->exits);
    Value *returned = loop->exits == (BREAKS | RETURNS) ? tt_exit_taken(w, RETURNS) : NULL;
    int count = loop->exits & RETURNS ? tt_count_values(result.term) : 0, flat = 0;
    Value **values = TT_NEW_ARRAY(w->arena, Value *, count);
    if (count)
        tt_flatten(w, result.term, values, &flat);
    loop->result = result;
    w->builder = tt_builder_before(loop->op);
    w->builder.loc = body.loc;
    add_exit_value(w, loop, tt_build_int(&w->builder, bool_type, 0), left);
    if (returned)
        add_exit_value(w, loop, tt_build_int(&w->builder, bool_type, 0), returned);
    for (int i = 0; i < count; i++)
        add_exit_value(w, loop, tt_build_filler(&w->builder, values[i]->type), values[i]);
    w->builder = body;
}

static Term broke_term(Walker *w, const Loop *loop, Value *const *exit_results)
{
    if (!(loop->exits & BREAKS))
        return tt_bool_term(w, false);
    if (!(loop->exits & RETURNS))
        return tt_value_term(exit_results[0], &tt_int1);
    return tt_value_term(tt_build2(&w->builder, OP_xor, exit_results[0], exit_results[1]), &tt_int1);
}

static void bind_exits(Walker *w, Loop *loop, Value *const *exit_results)
{
    Bindings *now = &w->state->frame->scope.now;
    for (int i = SLOT_BROKE; i <= SLOT_CONTINUED; i++)
        now->data[i] = loop->outer_exits[i];
    now->data[SLOT_RETURNED] = loop->before.data[SLOT_RETURNED];
    now->data[SLOT_RESULT] = loop->before.data[SLOT_RESULT];
    if (!(loop->exits & RETURNS))
        return;
    bool both = loop->exits & BREAKS;
    int next = both ? 2 : 1;
    now->data[SLOT_RETURNED].term = tt_value_term(exit_results[both ? 1 : 0], &tt_int1);
    now->data[SLOT_RESULT] = loop->result;
    now->data[SLOT_RESULT].term = tt_rebuild(w, loop->result.term, exit_results, &next);
}

/* ---- after the loop --------------------------------------------------------------------------------------------------- */

static bool is_loop_only(Term t)
{
    return t.kind == TERM_UNDEFINED && t.undefined && t.undefined->kind == UNDEFINED_LOOP_ONLY;
}

/* Names that only the loop assigns have no value after it: it may not have run. */
static void forget_inner_names(Walker *w, Loop *loop, const Bindings *end)
{
    for (int i = 0; i < loop->names->count; i++) {
        int slot = tt_find_slot(w, loop->names->data[i]);
        if (slot < 0 || slot >= end->count)
            continue;
        Binding last = end->data[slot], *binding = tt_binding(w, slot);
        if ((last.term.kind == TERM_UNDEFINED && !is_loop_only(last.term)) ||
            binding->term.kind != TERM_UNDEFINED)
            continue;
        Undefined *why = TT_NEW(w->arena, Undefined);
        *why = (Undefined){.kind = UNDEFINED_LOOP_ONLY,
                           .loc = loop->loc,
                           .a = last.term,
                           .a_loc = is_loop_only(last.term) ? last.term.undefined->a_loc : last.loc,
                           .loop = loop->op};
        binding->term = (Term){.kind = TERM_UNDEFINED, .undefined = why};
    }
}

static bool is_inside(const Region *region, const Region *of)
{
    while (region && region != of)
        region = region->op ? region->op->parent : NULL;
    return region != NULL;
}

/* The value that the end of each iteration hands on, as a result of the loop. */
static Value *add_carried_value(Walker *w, Op *loop, Value *value)
{
    Builder outer = w->builder;
    w->builder = tt_builder_before(loop);
    tt_add_operand(loop, tt_build_filler(&w->builder, value->type));
    w->builder = outer;
    Value *result = tt_add_result(loop, value->type);
    result->name = value->name;
    for (int r = 0; r < loop->region_count; r++)
        tt_add_region_arg(loop->regions[r], value->type)->name = value->name;
    tt_add_operand(loop->regions[loop->region_count - 1]->last, value);
    return result;
}

static Term take_out(Walker *w, Undefined *why)
{
    if (why->taken.kind != TERM_UNDEFINED)
        return why->taken;
    Term last = is_loop_only(why->a) ? take_out(w, why->a.undefined) : why->a;
    int count = tt_count_values(last), flat = 0, next = 0;
    Value **values = TT_NEW_ARRAY(w->arena, Value *, count);
    tt_flatten(w, last, values, &flat);
    for (int i = 0; i < count; i++)
        if (!tt_is_defined_outside(values[i], why->loop->regions[why->loop->region_count - 1]))
            values[i] = add_carried_value(w, why->loop, values[i]);
    return why->taken = tt_rebuild(w, last, values, &next);
}

static bool is_assigned_by(const Loop *loop, const PyObject *name)
{
    for (int i = 0; i < loop->names->count; i++)
        if (loop->names->data[i] == name)
            return true;
    return false;
}

/* A later loop that assigns the name as well would have to carry it, and is half built. */
bool tt_take_out_of_loop(Walker *w, PyObject *name, Binding *binding)
{
    if (!is_loop_only(binding->term) || tt_is_strict())
        return false;
    Undefined *why = binding->term.undefined;
    if (!is_inside(w->builder.region, why->loop->parent))
        return false;
    for (const Loop *loop = w->state->frame->loop; loop; loop = loop->outer)
        if (!is_inside(why->loop->parent, loop->op->regions[loop->op->region_count - 1]) &&
            is_assigned_by(loop, name))
            return false;
    *binding = (Binding){.term = take_out(w, why), .loc = why->a_loc};
    return true;
}

void tt_bind_results(Walker *w, Loop *loop, Value *const *results)
{
    Frame *frame = w->state->frame;
    Bindings end = frame->scope.now;
    frame->scope.now = loop->before;
    frame->loop = loop->outer;
    bind_exits(w, loop, results + loop->inits.count);
    loop->broke = loop->has_else ? broke_term(w, loop, results + loop->inits.count) : tt_none(w);
    forget_inner_names(w, loop, &end);
    for (int i = 0; i < loop->carried.count; i++) {
        Carried *carried = &loop->carried.data[i];
        Binding *binding = tt_binding(w, carried->slot);
        int next = carried->first;
        *binding = carried->after;
        if (!carried->is_dropped)
            binding->term = tt_rebuild(w, carried->before.term, results, &next);
    }
}
