/* Statements. A `return`, `break` or `continue` cannot jump, for the IR has regions and no labels: when only one side of an
 * `if` goes on, the rest of the block is walked in it; otherwise the exit is noted in a slot that is joined like a variable,
 * and the rest stands in an `if` that asks it. */
#include "triton_c/walker.h"

static Operand constant_bool(CWalker *w, bool value) { return tt_c_int(w, &tt_int1, value); }

Value *tt_c_exit_taken(CWalker *w, Flow exits)
{
    const Frame *frame = w->frame;
    const int slots[] = {SLOT_RETURNED, frame->broke, frame->continued};
    const Flow flows[] = {RETURNS, BREAKS, CONTINUES};
    Value *any = NULL;
    for (int i = 0; i < 3; i++) {
        if (!(exits & flows[i]))
            continue;
        Value *flag = frame->slots.data[slots[i]].value;
        any = any ? tt_build2(&w->builder, OP_or, any, flag) : flag;
    }
    return any;
}

/* if (left by one of these exits) {} else { the rest } */
static Flow walk_unless(CWalker *w, Flow exits, const Nodes *statements, int next)
{
    Value *yes = constant_bool(w, true).value;
    Join join = tt_c_begin_if(w, tt_build2(&w->builder, OP_xor, tt_c_exit_taken(w, exits), yes));
    tt_c_begin_side(w, &join, 0);
    Flow flow = tt_c_walk_statements(w, statements, next);
    tt_c_end_side(w, &join, 0, flow);
    tt_c_end_if(w, &join, NULL, 0);
    return flow | exits;
}

/* ---- if -------------------------------------------------------------------------------------------------------------- */

static Flow walk_side(CWalker *w, Join *join, int side, Node *statement)
{
    tt_c_begin_side(w, join, side);
    Flow flow = statement ? tt_c_walk_body(w, statement) : FALLS;
    tt_c_end_side(w, join, side, flow);
    return flow;
}

/* The statements behind it become part of the only side that goes on. */
static void absorb_rest(CWalker *w, Join *join, int side, const Nodes *statements, int next)
{
    Flow so_far = join->sides[side].flow;
    tt_c_begin_side(w, join, side);
    Flow flow = so_far == FALLS ? tt_c_walk_statements(w, statements, next)
                                : walk_unless(w, so_far & ~(Flow)FALLS, statements, next);
    tt_c_end_side(w, join, side, flow);
}

static Flow walk_if(CWalker *w, const Node *node, const Nodes *statements, int index)
{
    Operand condition = tt_c_walk(w, node->first);
    int64_t known;
    tt_c_at(w, node->first);
    Value *value = tt_c_condition(w, condition);
    tt_c_at(w, node);
    if (tt_c_known_int((Operand){value, &tt_int1, false}, &known)) {
        Node *taken = known ? node->second : node->third;
        return taken ? tt_c_walk_body(w, taken) : FALLS;
    }
    Join join = tt_c_begin_if(w, value);
    Flow flows[] = {walk_side(w, &join, 0, node->second), walk_side(w, &join, 1, node->third)};
    bool falls[] = {flows[0] & FALLS, flows[1] & FALLS},
         absorbs = falls[0] != falls[1] && index + 1 < statements->count;
    if (absorbs)
        absorb_rest(w, &join, falls[0] ? 0 : 1, statements, index + 1);
    tt_c_at(w, node);
    tt_c_end_if(w, &join, NULL, 0);
    return join.sides[0].flow | join.sides[1].flow | (absorbs ? ABSORBED : 0);
}

/* ---- predicates ------------------------------------------------------------------------------------------------------ */

static Value *combined_mask(CWalker *w, Value *mask)
{
    Operand pair[] = {{w->mask, &tt_int1, false}, {mask, &tt_int1, false}};
    if (!w->mask)
        return mask;
    tt_c_broadcast_together(w, "a predicate in a predicate", pair, 2);
    return tt_build2(&w->builder, OP_and, pair[0].value, pair[1].value);
}

/* A scalar decides for all elements, like `if`. */
static Flow walk_predicate(CWalker *w, const Node *node, const Nodes *statements, int index)
{
    Frame *frame = w->frame;
    Operand predicate = tt_c_walk(w, node->first);
    tt_c_at(w, node->first);
    Operand truth = tt_c_truth(w, predicate);
    if (!tt_is_tile(truth.value->type)) {
        Node *as_if = tt_arena_copy(w->arena, node, sizeof *node);
        as_if->kind = NODE_IF;
        as_if->second = node->body;
        as_if->body = NULL;
        return walk_if(w, as_if, statements, index);
    }
    Value *outer_mask = w->mask;
    int first_free = frame->first_free;
    w->mask = combined_mask(w, truth.value);
    frame->first_free = frame->slots.count;
    frame->predicates++;
    tt_c_walk_body(w, node->body);
    frame->predicates--;
    frame->first_free = first_free;
    w->mask = outer_mask;
    return FALLS;
}

static void check_may_leave(CWalker *w, const char *what, int predicates)
{
    if (w->frame->predicates > predicates)
        tt_c_fail(w, "compute what it depends on, and decide with `if` on a scalar",
                  "`%s` would leave for some elements only, under a predicate of elements", what);
}

/* ---- declarations ---------------------------------------------------------------------------------------------------- */

static void declare(CWalker *w, const Node *node)
{
    const Declaration *d = node->declaration;
    Frame *frame = w->frame;
    tt_c_at(w, node);
    const Shape shape = tt_c_extents(w, &d->extents);
    const char *name = tt_intern(w->module, d->name);
    Operand value = {0};
    if (node->first) {
        w->wanted = &shape;
        value = tt_c_walk(w, node->first);
        w->wanted = NULL;
    }
    tt_c_at(w, node->first ? node->first : node);
    int slot = tt_c_add_slot(w, name, d->dtype, &shape, NULL);
    if (node->first)
        tt_c_assign(w, &frame->slots.data[slot], value);
    frame->slots.data[slot].is_const = d->is_const;
    tt_c_at(w, node);
    frame->slots.data[slot].loc = w->builder.loc;
}

/* Two variables of one name in one scope are a mistake, not a shadow. */
static void check_is_new(CWalker *w, const Nodes *statements, int index, const Node *node, int item)
{
    for (int i = 0; i <= index; i++) {
        const Node *other = statements->data[i];
        for (int j = 0; other->kind == NODE_DECLARE && j < (i == index ? item : other->items.count); j++)
            if (!strcmp(other->items.data[j]->declaration->name, node->declaration->name)) {
                tt_c_at(w, node);
                tt_c_fail(w, "leave the type out to assign to it",
                          "there is a `%s` in this block already, in line %d", node->declaration->name,
                          other->items.data[j]->loc.line);
            }
    }
}

static void walk_declarations(CWalker *w, const Nodes *statements, int index)
{
    const Node *node = statements->data[index];
    for (int i = 0; i < node->items.count; i++) {
        check_is_new(w, statements, index, node->items.data[i], i);
        declare(w, node->items.data[i]);
    }
}

/* ---- exits ----------------------------------------------------------------------------------------------------------- */

static void set_flag(CWalker *w, int slot)
{
    w->frame->slots.data[slot].value = constant_bool(w, true).value;
}

/* The first value that is returned decides the shape of the result. */
static void keep_result(CWalker *w, const Node *node, Operand x)
{
    Frame *frame = w->frame;
    Variable *result = &frame->slots.data[SLOT_RESULT];
    const char *what = tt_arena_format(w->arena, "the result of `%s`", frame->function->name);
    tt_c_at(w, node);
    x = tt_c_convert(w, what, x, frame->function->result);
    Shape shape = tt_c_shape(x);
    if (frame->has_result && !tt_same_extents(&shape, &result->shape))
        tt_c_fail(w, "give all that is returned one shape; in a loop a scalar",
                  "%s is %s here, but %s elsewhere", what, tt_c_describe(w, x),
                  tt_c_describe_type(w, result->dtype, &result->shape));
    result->shape = shape;
    result->value = x.value;
    frame->has_result = true;
}

static Flow walk_return(CWalker *w, const Node *node)
{
    const CFunction *function = w->frame->function;
    bool is_void = function->result == &tt_void;
    tt_c_at(w, node);
    check_may_leave(w, "return", 0);
    if (is_void && node->first)
        tt_c_fail(w, "leave the value out, or give the function another type", "`%s` returns void",
                  function->name);
    if (!is_void && !node->first)
        tt_c_fail(w, NULL, "`%s` must return a value of type %s", function->name,
                  tt_c_dtype_name(w, function->result));
    if (node->first)
        keep_result(w, node, tt_c_walk(w, node->first));
    set_flag(w, SLOT_RETURNED);
    return RETURNS;
}

static Flow walk_jump(CWalker *w, const Node *node)
{
    bool breaks = node->kind == NODE_BREAK;
    const char *name = breaks ? "break" : "continue";
    int slot = breaks ? w->frame->broke : w->frame->continued;
    tt_c_at(w, node);
    check_may_leave(w, name, w->frame->outside);
    if (!slot)
        tt_c_fail(w, NULL, "`%s` stands outside of a loop", name);
    set_flag(w, slot);
    return breaks ? BREAKS : CONTINUES;
}

/* ---- blocks ---------------------------------------------------------------------------------------------------------- */

static Flow walk_statement(CWalker *w, const Nodes *statements, int index)
{
    const Node *node = statements->data[index];
    switch (node->kind) {
    case NODE_DECLARE:
        walk_declarations(w, statements, index);
        return FALLS;
    case NODE_EVALUATE:
        tt_c_walk(w, node->first);
        return FALLS;
    case NODE_IF:
        return walk_if(w, node, statements, index);
    case NODE_PREDICATE:
        return walk_predicate(w, node, statements, index);
    case NODE_FOR:
        return tt_c_walk_for(w, node);
    case NODE_WHILE:
        return tt_c_walk_while(w, node);
    case NODE_RETURN:
        return walk_return(w, node);
    case NODE_BREAK:
    case NODE_CONTINUE:
        return walk_jump(w, node);
    case NODE_BLOCK:
        return tt_c_walk_body(w, (Node *)node);
    default:
        tt_bug("a statement of kind %d", node->kind);
    }
}

Flow tt_c_walk_statements(CWalker *w, const Nodes *statements, int first)
{
    for (int i = first; i < statements->count; i++) {
        Flow flow = walk_statement(w, statements, i);
        if (flow & ABSORBED)
            return flow & ~(Flow)ABSORBED;
        if (!(flow & FALLS) || i + 1 == statements->count)
            return flow;
        if (flow != FALLS)
            return walk_unless(w, flow & ~(Flow)FALLS, statements, i + 1);
    }
    return FALLS;
}

Flow tt_c_walk_body(CWalker *w, Node *statement)
{
    int scope = w->frame->slots.count;
    Nodes one = {&statement, 1, 1};
    Flow flow = tt_c_walk_statements(w, statement->kind == NODE_BLOCK ? &statement->items : &one, 0);
    tt_c_end_scope(w, scope);
    return flow;
}
