/* Loops. A `for` that counts, with bounds that do not change, is the `for` operation; any other is a `while`. */
#include "triton_c/walker.h"

/* ---- carried variables ----------------------------------------------------------------------------------------------- */

typedef struct Loop {
    Slots carried;
    Value **inits;
    const Type **types;
    int count;
    int broke, continued, outside; /* of the frame, before */
} Loop;

static void carry_slot(CWalker *w, Loop *loop, int slot)
{
    for (int i = 0; i < loop->carried.count; i++)
        if (loop->carried.data[i] == slot)
            return;
    tt_push(w->arena, loop->carried, slot);
}

static const Type *slot_type(CWalker *w, const Variable *v)
{
    return tt_shaped_type(w->module, tt_dtype_type(w->module, v->dtype), v->shape.extents, v->shape.rank);
}

/* What a `return` in the loop gives is carried, so its shape is known before: it is a scalar, or that of an earlier one. */
static void carry_result(CWalker *w, Loop *loop)
{
    Frame *frame = w->frame;
    carry_slot(w, loop, SLOT_RETURNED);
    if (frame->function->result == &tt_void)
        return;
    frame->has_result = true;
    carry_slot(w, loop, SLOT_RESULT);
}

static void begin_loop(CWalker *w, Loop *loop, const Uses *uses)
{
    Frame *frame = w->frame;
    loop->broke = frame->broke;
    loop->continued = frame->continued;
    loop->outside = frame->outside;
    frame->outside = frame->predicates;
    frame->broke = frame->continued = 0;
    if (uses->returns)
        carry_result(w, loop);
    loop->count = loop->carried.count;
    loop->inits = TT_NEW_ARRAY(w->arena, Value *, loop->count);
    loop->types = TT_NEW_ARRAY(w->arena, const Type *, loop->count);
    for (int i = 0; i < loop->count; i++) {
        const Variable *v = &frame->slots.data[loop->carried.data[i]];
        loop->types[i] = slot_type(w, v);
        loop->inits[i] = v->value ? v->value : tt_build_filler(&w->builder, loop->types[i]);
    }
}

static void bind(CWalker *w, const Loop *loop, Value *const *values)
{
    for (int i = 0; i < loop->count; i++) {
        Variable *v = &w->frame->slots.data[loop->carried.data[i]];
        v->value = values[i];
        if (!values[i]->name)
            values[i]->name = v->name;
    }
}

/* Adds the carried arguments to a region, which has others before them, and binds the variables to them. */
static void bind_region(CWalker *w, const Loop *loop, Region *region)
{
    int first = region->arg_count;
    for (int i = 0; i < loop->count; i++)
        tt_add_region_arg(region, loop->types[i]);
    w->builder.region = region;
    bind(w, loop, region->args + first);
}

static void build_yield(CWalker *w, const Loop *loop)
{
    Value **yields = TT_NEW_ARRAY(w->arena, Value *, loop->count);
    for (int i = 0; i < loop->count; i++)
        yields[i] = w->frame->slots.data[loop->carried.data[i]].value;
    tt_build_op(&w->builder, OP_yield, yields, loop->count, NULL, 0, NULL);
}

static void end_loop(CWalker *w, const Loop *loop, Op *op, Builder outer)
{
    w->builder = outer;
    bind(w, loop, op->results);
    w->frame->broke = loop->broke;
    w->frame->continued = loop->continued;
    w->frame->outside = loop->outside;
}

static int add_flag(CWalker *w)
{
    return tt_c_add_slot(w, NULL, &tt_int1, NULL, tt_c_int(w, &tt_int1, 0).value);
}

/* The body in a loop's region; `continue` leads to its end. */
static Flow walk_iteration(CWalker *w, Node *body)
{
    w->frame->continued = add_flag(w);
    return tt_c_walk_body(w, body);
}

/* ---- loops that count ------------------------------------------------------------------------------------------------ */

typedef struct Count {
    const char *name;
    Operator comparison, step_op; /* with the variable on the left; ADD or SUB */
    const Node *bound, *step;     /* step: NULL is 1 */
    bool declares;
    int slot;
} Count;

static bool is_name(const Node *node, const char *name)
{
    return node->kind == NODE_NAME && (!name || !strcmp(node->name, name));
}

static bool is_sum(Operator op) { return op == OPERATOR_ADD || op == OPERATOR_SUB; }

/* i++, --i, i += e, i = i - e: the variable and the step. */
static bool read_step(const Node *node, Count *c)
{
    if (!node || (node->kind != NODE_STEP && node->kind != NODE_ASSIGN) || !is_name(node->first, NULL))
        return false;
    c->name = node->first->name;
    c->step_op = node->op;
    if (node->kind == NODE_STEP)
        return true;
    c->step = node->second;
    if (node->has_op)
        return is_sum(node->op);
    const Node *sum = node->second;
    c->step_op = sum->op;
    c->step = sum->second;
    return sum->kind == NODE_BINARY && is_sum(sum->op) && is_name(sum->first, c->name);
}

static bool read_bound(const Node *node, Count *c)
{
    static const Operator mirrored[] = {[OPERATOR_LT] = OPERATOR_GT,
                                        [OPERATOR_LE] = OPERATOR_GE,
                                        [OPERATOR_GT] = OPERATOR_LT,
                                        [OPERATOR_GE] = OPERATOR_LE};
    if (!node || node->kind != NODE_BINARY || node->op < OPERATOR_LT || node->op > OPERATOR_GE)
        return false;
    bool on_left = is_name(node->first, c->name);
    c->comparison = on_left ? node->op : mirrored[node->op];
    c->bound = on_left ? node->second : node->first;
    return on_left || is_name(node->second, c->name);
}

/* Names in an expression that the loop assigns, or the variable itself. */
static bool mentions(const Node *node, const Frame *frame, const Slots *assigned, const char *name)
{
    if (!node)
        return false;
    if (node->kind == NODE_NAME) {
        int slot = tt_c_find_slot(frame, node->name);
        for (int i = 0; i < assigned->count; i++)
            if (assigned->data[i] == slot)
                return true;
        return !strcmp(node->name, name);
    }
    const Node *children[] = {node->first, node->second, node->third};
    for (size_t i = 0; i < TT_COUNT(children); i++)
        if (mentions(children[i], frame, assigned, name))
            return true;
    for (int i = 0; i < node->arguments.count; i++)
        if (mentions(node->arguments.data[i], frame, assigned, name))
            return true;
    return false;
}

static bool stays_the_same(const CWalker *w, const Node *node, const Slots *assigned, const char *name)
{
    if (!node)
        return true;
    Uses uses = tt_c_uses(node);
    return !uses.assigns && !uses.calls && !uses.reads_memory && !mentions(node, w->frame, assigned, name);
}

/* Once the first part of the `for` is walked: is it one that counts? */
static bool read_count(CWalker *w, const Node *node, Count *c, Loop *loop)
{
    Uses uses = tt_c_uses(node->body);
    *c = (Count){0};
    if (uses.breaks || uses.returns || !read_step(node->third, c) || !read_bound(node->second, c))
        return false;
    c->slot = tt_c_find_slot(w->frame, c->name);
    c->declares = node->first && node->first->kind == NODE_DECLARE;
    tt_c_assigned_slots(w, node->body, &loop->carried);
    const Variable *v = c->slot < 0 ? NULL : &w->frame->slots.data[c->slot];
    bool is_down = c->step_op == OPERATOR_SUB,
         less = c->comparison == OPERATOR_LT || c->comparison == OPERATOR_LE;
    bool counts = v && v->value && !v->is_const && !v->shape.rank && !v->dtype->is_unsigned &&
                  (!w->frame->predicates || c->slot >= w->frame->first_free) &&
                  (v->dtype->kind == TT_I32 || v->dtype->kind == TT_I64) && is_down != less &&
                  stays_the_same(w, c->bound, &loop->carried, c->name) &&
                  stays_the_same(w, c->step, &loop->carried, c->name);
    for (int i = 0; counts && i < loop->carried.count; i++)
        counts = loop->carried.data[i] != c->slot;
    return counts;
}

typedef struct Counting {
    const Dtype *dtype; /* of the counter */
    Value *start, *operands[3];
    bool is_down;
} Counting;

/* Bounds as the operation takes them: up, exclusive. Downward it counts the distance from the start. */
static bool prepare_counting(CWalker *w, const Count *c, Counting *out)
{
    Builder *b = &w->builder;
    const Variable *v = &w->frame->slots.data[c->slot];
    Operand start = {v->value, v->dtype, false}, bound = tt_c_walk(w, c->bound), met = start;
    Operand step = c->step ? tt_c_walk(w, c->step) : tt_c_int(w, &tt_int32, 1);
    int64_t known;
    if (!bound.value || !step.value || !tt_dtype_is_int(bound.dtype) || !tt_dtype_is_int(step.dtype) ||
        tt_is_tile(bound.value->type) || tt_is_tile(step.value->type) ||
        (tt_c_known_int(step, &known) && known <= 0))
        return false;
    tt_c_unify(w, "the condition of the loop", &met, &bound);
    if (met.dtype->is_unsigned || step.dtype == &tt_uint32 || step.dtype == &tt_uint64 ||
        tt_dtype_width(step.dtype) > tt_dtype_width(met.dtype))
        return false;
    const Type *type = met.value->type;
    bool inclusive = c->comparison == OPERATOR_LE || c->comparison == OPERATOR_GE;
    *out = (Counting){.dtype = met.dtype, .start = met.value, .is_down = c->step_op == OPERATOR_SUB};
    out->operands[0] = out->is_down ? tt_build_int(b, type, 0) : met.value;
    out->operands[1] = out->is_down ? tt_build2(b, OP_sub, met.value, bound.value) : bound.value;
    if (inclusive)
        out->operands[1] = tt_build2(b, OP_add, out->operands[1], tt_build_int(b, type, 1));
    out->operands[2] = tt_c_cast(w, step, met.dtype).value;
    return true;
}

/* The variable in an iteration, or after the last one. */
static Value *counted_value(CWalker *w, const Counting *c, Value *counter, const Dtype *dtype)
{
    if (c->is_down)
        counter = tt_build2(&w->builder, OP_sub, c->start, counter);
    return tt_c_cast(w, (Operand){counter, c->dtype, false}, dtype).value;
}

/* Where the counter stands once the loop is over: the first multiple of the step that is not below the end. */
static Value *last_counter(CWalker *w, const Counting *c)
{
    Builder *b = &w->builder;
    Value *distance = tt_build2(b, OP_sub, c->operands[1], c->operands[0]), *step = c->operands[2];
    Value *zero = tt_build_int(b, step->type, 0), *one = tt_build_int(b, step->type, 1);
    Value *rounded = tt_build2(b, OP_add, distance, tt_build2(b, OP_sub, step, one));
    Value *count = tt_build2(b, OP_max_s, tt_build2(b, OP_div_s, rounded, step), zero);
    return tt_build2(b, OP_add, c->operands[0], tt_build2(b, OP_mul, count, step));
}

static Flow walk_counted(CWalker *w, const Node *node, const Count *c, const Counting *counting, Loop *loop)
{
    Builder outer = w->builder;
    begin_loop(w, loop, &(Uses){0});
    Value **operands = TT_NEW_ARRAY(w->arena, Value *, loop->count + 3);
    memcpy(operands, counting->operands, sizeof counting->operands);
    memcpy(operands + 3, loop->inits, sizeof *operands * (size_t)loop->count);
    Op *op = tt_build_op(&w->builder, OP_for, operands, loop->count + 3, loop->types, loop->count, NULL);
    Region *body = op->regions[0];
    tt_add_region_arg(body, counting->operands[0]->type);
    bind_region(w, loop, body);
    Variable *v = &w->frame->slots.data[c->slot];
    Value *before = v->value;
    v->value = counted_value(w, counting, body->args[0], v->dtype);
    if (!v->value->name)
        v->value->name = v->name;
    int scope = w->frame->slots.count;
    walk_iteration(w, node->body);
    tt_c_end_scope(w, scope);
    w->builder.loc = outer.loc;
    build_yield(w, loop);
    end_loop(w, loop, op, outer);
    v = &w->frame->slots.data[c->slot];
    v->value = c->declares ? before : counted_value(w, counting, last_counter(w, counting), v->dtype);
    return FALLS;
}

/* ---- other loops ----------------------------------------------------------------------------------------------------- */

/* What a loop runs: while (test) { body; step }. The test moves into the body where it does more than compute. */
typedef struct Tested {
    const Node *test, *step; /* may be NULL */
    Node *body;
} Tested;

static Value *walk_test(CWalker *w, const Node *test)
{
    Operand x = tt_c_walk(w, test);
    tt_c_at(w, test);
    return tt_c_condition(w, x);
}

static Flow walk_step(CWalker *w, const Tested *t, Flow flow)
{
    Flow exits = flow & (BREAKS | RETURNS);
    if (!t->step || !(flow & (FALLS | CONTINUES)))
        return flow;
    if (!exits) {
        tt_c_walk(w, t->step);
        return flow;
    }
    Join join = tt_c_begin_if(w, tt_c_exit_taken(w, exits));
    tt_c_begin_side(w, &join, 1);
    tt_c_walk(w, t->step);
    tt_c_end_side(w, &join, 1, FALLS);
    tt_c_end_if(w, &join, NULL, 0);
    return flow;
}

/* if (test) { body; step } else broke = true */
static Flow walk_tested_body(CWalker *w, const Tested *t)
{
    Join join = tt_c_begin_if(w, walk_test(w, t->test));
    tt_c_begin_side(w, &join, 0);
    Flow flow = walk_step(w, t, walk_iteration(w, t->body));
    tt_c_end_side(w, &join, 0, flow);
    tt_c_begin_side(w, &join, 1);
    w->frame->slots.data[w->frame->broke].value = tt_c_int(w, &tt_int1, 1).value;
    tt_c_end_side(w, &join, 1, BREAKS);
    tt_c_end_if(w, &join, NULL, 0);
    return flow | BREAKS;
}

static Flow walk_tested(CWalker *w, const Tested *t)
{
    Builder outer = w->builder;
    Frame *frame = w->frame;
    Loop loop = {0};
    Uses test = tt_c_uses(t->test), body = tt_c_uses(t->body);
    bool may_exit = body.breaks || body.returns;
    bool inside = test.assigns || (may_exit && (test.reads_memory || test.calls));
    bool breaks = body.breaks || inside;
    int scope = frame->slots.count;
    tt_c_assigned_slots(w, t->test, &loop.carried);
    tt_c_assigned_slots(w, t->step, &loop.carried);
    tt_c_assigned_slots(w, t->body, &loop.carried);
    int broke = breaks ? add_flag(w) : 0;
    if (breaks)
        carry_slot(w, &loop, broke);
    begin_loop(w, &loop, &body);
    frame->broke = broke;
    Flow exits = (breaks ? BREAKS : 0) | (body.returns ? RETURNS : 0);
    Op *op = tt_build_op(&w->builder, OP_while, loop.inits, loop.count, loop.types, loop.count, NULL);

    bind_region(w, &loop, op->regions[0]);
    Value *yes = tt_c_int(w, &tt_int1, 1).value, *stays = t->test && !inside ? walk_test(w, t->test) : yes;
    if (exits) {
        Value *goes_on = tt_build2(&w->builder, OP_xor, tt_c_exit_taken(w, exits), yes);
        stays = tt_build2(&w->builder, OP_and, goes_on, stays);
    }
    tt_build_op(&w->builder, OP_condition, &stays, 1, NULL, 0, NULL);

    bind_region(w, &loop, op->regions[1]);
    int inner = frame->slots.count;
    Flow flow = inside ? walk_tested_body(w, t) : walk_step(w, t, walk_iteration(w, t->body));
    tt_c_end_scope(w, inner);
    w->builder.loc = outer.loc;
    build_yield(w, &loop);
    end_loop(w, &loop, op, outer);
    bool is_endless = !t->test || (t->test->kind == NODE_INT && t->test->integer);
    tt_c_end_scope(w, scope);
    return (is_endless && !(flow & BREAKS) ? 0 : FALLS) | (flow & RETURNS);
}

Flow tt_c_walk_while(CWalker *w, const Node *node)
{
    tt_c_at(w, node);
    return walk_tested(w, &(Tested){node->first, NULL, node->body});
}

Flow tt_c_walk_for(CWalker *w, const Node *node)
{
    int scope = w->frame->slots.count;
    Count count;
    Counting counting;
    Loop loop = {0};
    Flow flow;
    if (node->first) {
        Node *first = node->first;
        Nodes one = {&first, 1, 1};
        tt_c_walk_statements(w, &one, 0);
    }
    tt_c_at(w, node);
    if (read_count(w, node, &count, &loop) && prepare_counting(w, &count, &counting)) {
        tt_c_at(w, node);
        flow = walk_counted(w, node, &count, &counting, &loop);
    } else {
        tt_c_at(w, node);
        flow = walk_tested(w, &(Tested){node->second, node->third, node->body});
    }
    tt_c_end_scope(w, scope);
    return flow;
}
