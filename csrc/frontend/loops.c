/* `for` and `while`. A range becomes a `for` operation, or a `while` when the body may leave it; static_range and
 * compile-time iterables are unrolled here. */
#include "frontend/walker.h"

enum { MOST_UNROLLED = 1 << 17 };

typedef struct Range {
    Term start, stop, step;
    Attr *attrs; /* of the operation: what tl.range was asked for */
    bool is_static;
} Range;

/* How a loop ended: FALLS is its own end or `break`, as `broke` (int1, compile-time or not) says. */
typedef struct LoopEnd {
    Flow flow;
    Term broke;
} LoopEnd;

/* ---- `else` of a loop: runs unless the loop was left ------------------------------------------------------------------ */

static bool has_else(Walker *w, PyObject *node)
{
    return tt_list_size(w, tt_field(w, node, FIELD_orelse)) > 0;
}

static Flow walk_else(Walker *w, PyObject *node, LoopEnd end, Flow tail)
{
    PyObject *statements = tt_field(w, node, FIELD_orelse);
    Sequence block = {
        .walk = tt_walk_statement, .count = tt_list_size(w, statements), .statements = statements};
    if (!block.count || !(end.flow & FALLS))
        return end.flow;
    int truth = tt_known_truth(w, end.broke);
    if (truth >= 0)
        return truth ? end.flow : tt_walk_rest(w, &block, 0, end.flow, tail);
    Value *skip = tt_condition(w, end.broke);
    if (end.flow & RETURNS)
        skip = tt_build2(&w->builder, OP_or, skip, tt_exit_taken(w, RETURNS));
    return tt_walk_unless(w, skip, end.flow, &block, 0, tail);
}

/* ---- unrolled loops -------------------------------------------------------------------------------------------------- */

static Flow walk_iteration(Walker *w, Sequence *sequence, int index, Flow tail)
{
    bool is_last = index + 1 == sequence->count;
    tt_at(w, sequence->target);
    tt_assign(w, sequence->target, sequence->items[index]);
    Flow flow = tt_walk_block(w, sequence->statements, CONTINUES | (is_last ? tail : 0));
    if (flow & CONTINUES)
        flow = (flow & ~(Flow)CONTINUES) | FALLS;
    tt_binding(w, SLOT_CONTINUED)->term = tt_bool_term(w, false);
    return flow;
}

static LoopEnd walk_unrolled(Walker *w, PyObject *node, const Term *items, int count, Flow tail)
{
    Frame *frame = w->state->frame;
    w->state->unrolled += count;
    if (w->state->unrolled > MOST_UNROLLED)
        tt_fail_with_remedy(w, "use range(...) for a loop at run time",
                            "the kernel unrolls into more than %d iterations", MOST_UNROLLED);
    Sequence sequence = {walk_iteration, count, tt_field(w, node, FIELD_body),
                         tt_field(w, node, FIELD_target), items};
    Binding outer[] = {*tt_binding(w, SLOT_BROKE), *tt_binding(w, SLOT_CONTINUED)};
    tt_binding(w, SLOT_BROKE)->term = tt_binding(w, SLOT_CONTINUED)->term = tt_bool_term(w, false);
    frame->loop_depth++;
    Flow flow = tt_walk_sequence(w, &sequence, 0, has_else(w, node) ? 0 : tail | BREAKS);
    frame->loop_depth--;
    Term broke = flow & FALLS ? tt_binding(w, SLOT_BROKE)->term : tt_bool_term(w, true);
    *tt_binding(w, SLOT_BROKE) = outer[0];
    *tt_binding(w, SLOT_CONTINUED) = outer[1];
    if (flow & BREAKS)
        return (LoopEnd){(flow & ~(Flow)BREAKS) | FALLS, broke};
    return (LoopEnd){flow, tt_bool_term(w, false)};
}

static int64_t static_bound(Walker *w, Term t, const char *name)
{
    int64_t value;
    if (!tt_term_int(w, t, &value))
        tt_fail_with_remedy(w, "make it a tl.constexpr parameter, or loop with range(...)",
                            "`%s` of tl.static_range must be a compile-time int, not %s", name,
                            tt_describe(w, t));
    return value;
}

static LoopEnd walk_static_range(Walker *w, PyObject *node, const Range *range, Flow tail)
{
    int64_t start = static_bound(w, range->start, "start"), stop = static_bound(w, range->stop, "stop");
    int64_t step = static_bound(w, range->step, "step");
    if (!step)
        tt_fail(w, "the step of tl.static_range is 0");
    __int128 distance = step > 0 ? (__int128)stop - start : (__int128)start - stop,
             stride = step > 0 ? step : -(__int128)step;
    __int128 count = distance > 0 ? (distance + stride - 1) / stride : 0;
    int limited = (int)TT_MIN(count, (__int128)MOST_UNROLLED + 1);
    Term *items = TT_NEW_ARRAY(w->arena, Term, limited);
    for (int i = 0; i < limited; i++)
        items[i] = tt_int_term(w, start + i * step);
    return walk_unrolled(w, node, items, limited, tail);
}

/* ---- ranges ------------------------------------------------------------------------------------------------------------ */

static const Dtype *larger(const Dtype *a, const Dtype *b)
{
    if (a->kind != b->kind)
        return a->kind > b->kind ? a : b;
    return b->is_unsigned ? b : a;
}

static void check_bound(Walker *w, Term t)
{
    bool is_value = t.kind == TERM_VALUE, is_tile = is_value && tt_is_tile(t.value->type);
    bool is_int = is_value ? !is_tile && tt_dtype_is_int(t.dtype) : tt_is_number(t) && PyLong_Check(t.object);
    if (is_int)
        return;
    const char *remedy = "count in integers: n // k or tl.cdiv(n, k) instead of n / k, or .to(tl.int32)";
    if (is_tile)
        remedy = "take a scalar, with tl.max for instance";
    else if (tt_is_none(t))
        remedy = "give it a number";
    tt_fail_with_remedy(w, remedy, "the bounds of a range are ints, not %s", tt_describe(w, t));
}

/* The dtype of the index: that of the run-time bounds, at least 32 bits wide; numbers fit in where they can. */
static const Dtype *index_dtype(Walker *w, const Range *range)
{
    const Term bounds[] = {range->start, range->stop, range->step};
    const Dtype *dtype = NULL;
    for (int i = 0; i < 3; i++) {
        check_bound(w, bounds[i]);
        if (bounds[i].kind == TERM_VALUE)
            dtype = dtype ? larger(dtype, bounds[i].dtype) : bounds[i].dtype;
    }
    if (!dtype || dtype->kind < TT_I32)
        dtype = &tt_int32;
    for (int i = 0; i < 3; i++) {
        const Dtype *own = bounds[i].kind == TERM_VALUE ? dtype : tt_number_dtype(w, bounds[i]);
        if (own->kind == TT_I64 || (own == &tt_uint32 && !dtype->is_unsigned))
            dtype = larger(dtype, &tt_int64);
    }
    return dtype;
}

static Value *bound_value(Walker *w, Term t, const Dtype *dtype)
{
    return tt_is_number(t) ? tt_number_value(w, t, dtype).value : tt_semantic_cast(w, t, dtype).value;
}

Term tt_range_bounds(Walker *w, const Term bounds[3])
{
    Range range = {bounds[0], bounds[1], bounds[2], NULL, false};
    const Dtype *dtype = index_dtype(w, &range);
    Term values[3];
    for (int i = 0; i < 3; i++)
        values[i] = tt_value_term(bound_value(w, bounds[i], dtype), dtype);
    return tt_tuple_term(w, values, 3);
}

/* The loop is counted in signed integers that hold every value of the index. With a negative step it counts the distance
 * from the start, because the operation only counts up; such a distance may take one bit more than the index. */
typedef struct Counting {
    const Dtype *index, *counter;
    bool is_down;
    Value *start; /* when it counts down */
    Value *operands[3];
} Counting;

static Counting prepare_counting(Walker *w, const Range *range)
{
    Counting c = {.index = index_dtype(w, range)};
    int64_t step = 1;
    if (tt_term_int(w, range->step, &step) && (!step || step == INT64_MIN))
        tt_fail_with_remedy(w, "leave the step out to count by 1", "the step of this range is 0");
    c.counter = c.index->kind == TT_I64 || c.index->is_unsigned || step < 0 ? &tt_int64 : c.index;
    c.operands[0] = bound_value(w, range->start, c.counter);
    c.operands[1] = bound_value(w, range->stop, c.counter);
    c.is_down = step < 0;
    if (c.is_down) {
        const Type *type = tt_dtype_ir(w, c.counter);
        c.start = c.operands[0];
        c.operands[1] = tt_build2(&w->builder, OP_sub, c.operands[0], c.operands[1]);
        c.operands[0] = tt_build_int(&w->builder, type, 0);
        c.operands[2] = tt_build_int(&w->builder, type, -step);
    } else {
        c.operands[2] = bound_value(w, range->step, c.counter);
    }
    return c;
}

static Term index_term(Walker *w, const Counting *c, Value *counter)
{
    if (c->is_down)
        counter = tt_build2(&w->builder, OP_sub, c->start, counter);
    if (c->counter->kind != c->index->kind)
        counter = tt_build_cast(&w->builder, OP_trunc, counter, tt_dtype_ir(w, c->index));
    return tt_value_term(counter, c->index);
}

/* i1: is `step` less than what is left up to `stop`? As unsigned it is right even where the next number does not fit. */
static Value *goes_on(Builder *b, const Counting *c, Value *counter)
{
    return tt_build2(b, OP_lt_u, c->operands[2], tt_build2(b, OP_sub, c->operands[1], counter));
}

/* A `for` whose body may leave it becomes: while (!left && more) { body; more = goes on; counter += step }. Carried: the
 * names' values, the exits' values, the counter, more. */
static Op *make_while(Walker *w, Loop *loop, const Counting *c)
{
    Op *loop_op = loop->op, *yield = loop_op->regions[0]->last;
    int names = loop->inits.count, exits = loop->exit_inits.count, count = names + exits + 2;
    int counter = count - 2, more = count - 1;
    Value **inits = TT_NEW_ARRAY(w->arena, Value *, count);
    const Type **types = TT_NEW_ARRAY(w->arena, const Type *, count);
    for (int i = 0; i < counter; i++)
        inits[i] = i < names ? loop->inits.data[i] : loop->exit_inits.data[i - names];
    inits[counter] = c->operands[0];
    inits[more] = tt_build2(&w->builder, OP_lt_s, c->operands[0], c->operands[1]);
    for (int i = 0; i < count; i++)
        types[i] = inits[i]->type;
    Op *op = tt_build_op(&w->builder, OP_while, inits, count, types, count,
                         tt_copy_attrs(w->module, loop_op->attrs));
    Region *body = op->regions[1], *old = loop_op->regions[0]; /* old->args: counter, names */
    for (int i = 0; i < count; i++)
        tt_add_region_arg(op->regions[0], types[i])->name = inits[i]->name;
    for (int i = 0; i < names; i++)
        tt_move_region_arg(old->args[1], body);
    for (int i = names; i < counter; i++)
        tt_add_region_arg(body, types[i])->name = inits[i]->name;
    tt_move_region_arg(old->args[0], body);
    tt_add_region_arg(body, types[more]);

    Builder b = tt_builder_at_end(op->regions[0]);
    b.loc = loop_op->loc;
    Value **args = op->regions[0]->args, *yes = tt_build_int(&b, tt_scalar_type(w->module, TT_I1), 1);
    Value *stays = tt_build2(&b, OP_xor, args[names], yes);
    stays = tt_build2(&b, OP_and, stays, args[more]);
    tt_build_op(&b, OP_condition, &stays, 1, NULL, 0, NULL);

    while (old->first)
        tt_move_to_end(old->first, body);
    b = tt_builder_before(yield);
    tt_add_operand(yield, tt_build2(&b, OP_add, body->args[counter], c->operands[2]));
    tt_add_operand(yield, goes_on(&b, c, body->args[counter]));
    tt_erase_op(loop_op);
    return op;
}

static LoopEnd walk_range(Walker *w, PyObject *node, const Range *range)
{
    Loop loop = {0};
    Frame *frame = w->state->frame;
    Counting counting = prepare_counting(w, range);
    tt_begin_carried(w, &loop, node);
    Builder outer = w->builder;
    int count = loop.inits.count;
    Value **operands = TT_NEW_ARRAY(w->arena, Value *, count + 3);
    const Type **types = TT_NEW_ARRAY(w->arena, const Type *, count);
    memcpy(operands, counting.operands, sizeof counting.operands);
    for (int i = 0; i < count; i++) {
        operands[i + 3] = loop.inits.data[i];
        types[i] = operands[i + 3]->type;
    }
    loop.op = tt_build_op(&w->builder, OP_for, operands, count + 3, types, count, range->attrs);
    Region *body = w->builder.region = loop.op->regions[0];
    tt_add_region_arg(body, counting.operands[0]->type);
    loop.args = tt_bind_carried(w, &loop, body);
    tt_assign(w, tt_field(w, node, FIELD_target), index_term(w, &counting, body->args[0]));

    frame->loop_depth++;
    Flow flow = tt_walk_block(w, tt_field(w, node, FIELD_body), CONTINUES);
    frame->loop_depth--;
    w->builder.loc = outer.loc;
    tt_end_carried(w, &loop, flow);
    tt_collect_exits(w, &loop, flow);
    Op *yield = tt_build_op(&w->builder, OP_yield, loop.yields, count, NULL, 0, NULL);
    for (int i = 0; i < loop.exit_yields.count; i++)
        tt_add_operand(yield, loop.exit_yields.data[i]);
    w->builder = outer;
    if (loop.exits)
        loop.op = make_while(w, &loop, &counting);
    tt_bind_results(w, &loop, loop.op->results);
    return (LoopEnd){FALLS | (flow & RETURNS), loop.broke};
}

/* ---- reading the iterable ---------------------------------------------------------------------------------------------- */

static Term argument_named(Walker *w, const Signature *signature, const Term *args, const char *name)
{
    for (int i = 0; i < signature->count; i++)
        if (!PyUnicode_CompareWithASCIIString(signature->parameters[i].name, name))
            return args[i];
    return tt_none(w);
}

static Attr *flag_attr(Walker *w, const Signature *signature, const Term *args, const char *name, AttrKey key,
                       Attr *next)
{
    Term t = argument_named(w, signature, args, name);
    int64_t value;
    if (tt_is_none(t))
        return next;
    if (!tt_term_int(w, t, &value))
        tt_fail(w, "`%s` of %s must be a compile-time value, not %s", name, signature->name,
                tt_describe(w, t));
    return value ? tt_attr_int(w->module, key, value, next) : next;
}

/* start, stop, step from the one to three arguments that every kind of range takes first. */
static void read_bounds(Walker *w, Range *range, const Term *args, int count)
{
    bool one = count < 2 || tt_is_none(args[1]);
    range->start = one ? tt_int_term(w, 0) : args[0];
    range->stop = one ? args[0] : args[1];
    range->step = count < 3 || tt_is_none(args[2]) ? tt_int_term(w, 1) : args[2];
}

static const struct {
    const char *name;
    AttrKey key;
} range_options[] = {
    {"num_stages", ATTR_num_stages},     {"loop_unroll_factor", ATTR_unroll},
    {"flatten", ATTR_flatten},           {"warp_specialize", ATTR_warp_specialize},
    {"disable_licm", ATTR_disable_licm}, {"disallow_acc_multi_buffer", ATTR_disallow_acc_multi_buffer}};

/* Options of tl.range say nothing where Python's own gets them, as some programs do it; other keywords are mistakes. */
static void check_keywords(Walker *w, const Arguments *args)
{
    for (int i = 0; i < args->named_count; i++) {
        bool is_known = false;
        for (size_t j = 0; j < TT_COUNT(range_options); j++)
            is_known |= !PyUnicode_CompareWithASCIIString(args->names[i], range_options[j].name);
        if (!is_known)
            tt_fail_with_remedy(w, "use tl.range for options", "range() takes no keyword arguments");
    }
}

static Range read_range(Walker *w, const Callee *callee, const Arguments *args)
{
    Range range = {.is_static = callee->kind == CALLEE_STATIC_RANGE};
    const Signature *signature = &callee->signature;
    if (!signature->count) { /* Python's own */
        check_keywords(w, args);
        if (args->count < 1 || args->count > 3)
            tt_fail(w, "range() takes 1 to 3 arguments, not %d", args->count);
        read_bounds(w, &range, args->items, args->count);
        return range;
    }
    Term *bound = TT_NEW_ARRAY(w->arena, Term, TT_MAX(signature->count, 3));
    tt_bind_arguments(w, signature, args, bound);
    read_bounds(w, &range, bound, TT_MIN(signature->count, 3));
    for (size_t i = 0; !range.is_static && i < TT_COUNT(range_options); i++)
        range.attrs =
            flag_attr(w, signature, bound, range_options[i].name, range_options[i].key, range.attrs);
    return range;
}

/* What `for` runs over: a range (true), else the term of the iterable. */
static bool walk_iterable(Walker *w, PyObject *iterable, Range *range, Term *term)
{
    if (tt_node_kind(w, iterable) != NODE_Call) {
        *term = tt_walk_expr(w, iterable);
        return false;
    }
    Term function = tt_walk_expr(w, tt_field(w, iterable, FIELD_func));
    Arguments args = {0};
    tt_collect_arguments(w, iterable, &args);
    tt_at(w, iterable);
    Callee *callee = function.kind == TERM_PYTHON ? tt_callee(w, function.object) : NULL;
    if (callee && (callee->kind == CALLEE_RANGE || callee->kind == CALLEE_STATIC_RANGE)) {
        *range = read_range(w, callee, &args);
        return true;
    }
    *term = tt_call_with(w, function, &args);
    return false;
}

static LoopEnd walk_for(Walker *w, PyObject *node, Flow tail)
{
    PyObject *iterable = tt_field(w, node, FIELD_iter);
    Range range;
    Term term;
    bool is_range = walk_iterable(w, iterable, &range, &term);
    tt_at(w, iterable);
    if (is_range)
        return range.is_static ? walk_static_range(w, node, &range, tail) : walk_range(w, node, &range);
    const Term *items;
    int count;
    tt_iterate(w, term, &items, &count);
    return walk_unrolled(w, node, items, count, tail);
}

Flow tt_walk_for(Walker *w, PyObject *node, Flow tail)
{
    return walk_else(w, node, walk_for(w, node, tail), tail);
}

/* ---- while ------------------------------------------------------------------------------------------------------------- */

/* An assignment in the test must reach the body, so the test moves into it: while (True) { if test: body else: break } */
static Flow walk_tested_body(Walker *w, PyObject *node)
{
    PyObject *test = tt_field(w, node, FIELD_test), *body = tt_field(w, node, FIELD_body);
    Frame *frame = w->state->frame;
    Region *region = w->builder.region;
    Term term = tt_walk_expr(w, test);
    tt_at(w, test);
    Value *value = tt_condition(w, term);
    Join join = {.loc = tt_here(w)};
    join.op = tt_build_op(&w->builder, OP_if, &value, 1, NULL, 0, NULL);
    join.sides[1] = (Side){join.op->regions[1], tt_copy_bindings(w), BREAKS};
    join.sides[1].bindings.data[SLOT_BROKE].term = tt_bool_term(w, true);
    w->builder.region = join.op->regions[0];
    Flow flow = tt_walk_block(w, body, CONTINUES);
    join.sides[0] = (Side){join.op->regions[0], frame->scope.now, flow};
    w->builder.region = region;
    tt_join_bindings(w, &join, CONTINUES);
    return flow | BREAKS;
}

static bool is_pure_test(const Region *region)
{
    TT_FOR_OPS(op, region)
    if (!tt_has(op, PURE | TERMINATOR))
        return false;
    return true;
}

/* region 0 of a while: the test counts, and what it does is done, only if the loop was not left. */
static void guard_test(Walker *w, Op *loop_op, Value *left)
{
    Region *region = loop_op->regions[0];
    Op *condition = region->last;
    const Type *bool_type = tt_scalar_type(w->module, TT_I1);
    Value *test = tt_operand(condition, 0);
    bool is_pure = is_pure_test(region);
    Builder b = tt_builder_before(is_pure ? condition : region->first);
    b.loc = loop_op->loc;
    Value *stays = tt_build2(&b, OP_xor, left, tt_build_int(&b, bool_type, 1));
    if (is_pure) {
        tt_set_operand(condition, 0, tt_build2(&b, OP_and, stays, test));
        return;
    }
    Op *guard = tt_build_op(&b, OP_if, &stays, 1, &bool_type, 1, NULL);
    while (guard->next != condition)
        tt_move_to_end(guard->next, guard->regions[0]);
    Builder side = tt_builder_at_end(guard->regions[0]);
    side.loc = loop_op->loc;
    tt_build_op(&side, OP_yield, &test, 1, NULL, 0, NULL);
    side.region = guard->regions[1];
    Value *no = tt_build_int(&side, bool_type, 0);
    tt_build_op(&side, OP_yield, &no, 1, NULL, 0, NULL);
    tt_set_operand(condition, 0, guard->results[0]);
}

static void add_exits(Walker *w, Loop *loop, Op *yield)
{
    Value *left = NULL;
    for (int i = 0; i < loop->exit_inits.count; i++) {
        const Type *type = loop->exit_inits.data[i]->type;
        tt_add_operand(loop->op, loop->exit_inits.data[i]);
        tt_add_result(loop->op, type);
        Value *arg = tt_add_region_arg(loop->op->regions[0], type);
        tt_add_region_arg(loop->op->regions[1], type);
        tt_add_operand(yield, loop->exit_yields.data[i]);
        left = i ? left : arg;
    }
    if (left)
        guard_test(w, loop->op, left);
}

static void begin_while(Walker *w, Loop *loop, PyObject *node)
{
    tt_begin_carried(w, loop, node);
    int count = loop->inits.count;
    const Type **types = TT_NEW_ARRAY(w->arena, const Type *, count);
    for (int i = 0; i < count; i++)
        types[i] = loop->inits.data[i]->type;
    loop->op = tt_build_op(&w->builder, OP_while, loop->inits.data, count, types, count, NULL);
    w->builder.region = loop->op->regions[0];
    loop->test_args = tt_bind_carried(w, loop, loop->op->regions[0]);
}

static LoopEnd walk_while(Walker *w, PyObject *node)
{
    PyObject *test = tt_field(w, node, FIELD_test);
    Frame *frame = w->state->frame;
    bool test_assigns = tt_has_walrus(w, test);
    tt_at(w, node);
    if (test_assigns && has_else(w, node))
        tt_fail_with_remedy(w, "assign the name in the body of the loop",
                            "a `while` with both `:=` in its test and an `else` cannot be compiled");
    Loop loop = {0};
    Builder outer = w->builder;
    Bindings before = tt_copy_bindings(w);
    begin_while(w, &loop, node);
    Term term = test_assigns ? tt_bool_term(w, true) : tt_walk_expr(w, test);
    tt_at(w, test);
    int truth = tt_known_truth(w, term);
    Value *condition = tt_condition(w, term);
    tt_build_op(&w->builder, OP_condition, &condition, 1, NULL, 0, NULL);
    if (truth == 0) { /* never runs */
        w->builder = outer;
        tt_erase_op(loop.op);
        frame->scope.now = before;
        frame->loop = loop.outer;
        return (LoopEnd){FALLS, tt_bool_term(w, false)};
    }
    w->builder.region = loop.op->regions[1];
    loop.args = tt_bind_carried(w, &loop, loop.op->regions[1]);
    frame->loop_depth++;
    Flow flow =
        test_assigns ? walk_tested_body(w, node) : tt_walk_block(w, tt_field(w, node, FIELD_body), CONTINUES);
    frame->loop_depth--;
    w->builder.loc = outer.loc;
    tt_end_carried(w, &loop, flow);
    tt_collect_exits(w, &loop, flow);
    Op *yield = tt_build_op(&w->builder, OP_yield, loop.yields, loop.inits.count, NULL, 0, NULL);
    add_exits(w, &loop, yield);
    w->builder = outer;
    tt_bind_results(w, &loop, loop.op->results);
    bool may_end = truth < 0 || flow & BREAKS;
    return (LoopEnd){(may_end ? FALLS : 0) | (flow & RETURNS), loop.broke};
}

Flow tt_walk_while(Walker *w, PyObject *node, Flow tail)
{
    return walk_else(w, node, walk_while(w, node), tail);
}
