/* Exits. A `return`, `break` or `continue` in a branch cannot jump: the IR has regions, not labels. So
 *   - when only one branch of an `if` goes on, the rest of the block becomes part of that branch (branches.c);
 *   - otherwise the exit is recorded in a flag that flows like a variable (SLOT_RETURNED, SLOT_BROKE, SLOT_CONTINUED;
 *     the value of a `return` in SLOT_RESULT), and the rest of the block is wrapped in an `if` that asks it.
 * A statement reports by its Flow how it may be left, so blocks without exits pay nothing. */
#include "frontend/walker.h"

Value *tt_exit_taken(Walker *w, Flow exits)
{
    static const Flow flows[] = {
        [SLOT_RETURNED] = RETURNS, [SLOT_BROKE] = BREAKS, [SLOT_CONTINUED] = CONTINUES};
    Value *any = NULL;
    for (int slot = SLOT_RETURNED; slot <= SLOT_CONTINUED; slot++) {
        if (!(exits & flows[slot]))
            continue;
        Value *flag = tt_condition(w, tt_binding(w, slot)->term);
        any = any ? tt_build2(&w->builder, OP_or, any, flag) : flag;
    }
    return any ? any : tt_build_int(&w->builder, tt_scalar_type(w->module, TT_I1), 0);
}

Flow tt_walk_unless(Walker *w, Value *skip, Flow skipped, Sequence *sequence, int next, Flow tail)
{
    Frame *frame = w->state->frame;
    Region *region = w->builder.region;
    Value *yes = tt_build_int(&w->builder, tt_scalar_type(w->module, TT_I1), 1);
    Value *stays = tt_build2(&w->builder, OP_xor, skip, yes);
    Join join = {.loc = tt_here(w)};
    join.op = tt_build_op(&w->builder, OP_if, &stays, 1, NULL, 0, NULL);
    join.sides[1] = (Side){join.op->regions[1], tt_copy_bindings(w), skipped};
    w->builder.region = join.op->regions[0];
    Flow flow = tt_walk_sequence(w, sequence, next, tail);
    join.sides[0] = (Side){join.op->regions[0], frame->scope.now, flow};
    w->builder.region = region;
    tt_join_bindings(w, &join, tail);
    return flow | skipped;
}

Flow tt_walk_rest(Walker *w, Sequence *sequence, int next, Flow so_far, Flow tail)
{
    if (next == sequence->count || !(so_far & FALLS))
        return so_far;
    if (so_far == FALLS)
        return tt_walk_sequence(w, sequence, next, tail);
    Flow exits = so_far & ~(Flow)FALLS;
    return tt_walk_unless(w, tt_exit_taken(w, exits), exits, sequence, next, tail);
}

Flow tt_walk_sequence(Walker *w, Sequence *sequence, int start, Flow tail)
{
    for (int i = start; i < sequence->count; i++) {
        Flow flow = sequence->walk(w, sequence, i, tail);
        if (flow & ABSORBED)
            return flow & ~(Flow)ABSORBED;
        if (flow != FALLS)
            return tt_walk_rest(w, sequence, i + 1, flow, tail);
    }
    return FALLS;
}

Flow tt_walk_block(Walker *w, PyObject *statements, Flow tail)
{
    Sequence sequence = {
        .walk = tt_walk_statement, .count = tt_list_size(w, statements), .statements = statements};
    return tt_walk_sequence(w, &sequence, 0, tail);
}
