/* Calls: of builtins, and of functions, whose bodies are walked in place. */
#include "triton_c/walker.h"

enum { MOST_CALLS = 64 }; /* in each other */

static _Noreturn void unknown_function(CWalker *w, const char *name)
{
    int count;
    const char *const *builtins = tt_c_builtin_names(w, &count);
    TT_VECTOR(const char *) names = {0};
    for (int i = 0; i < count; i++)
        tt_push(w->arena, names, builtins[i]);
    for (int i = 0; i < w->program->functions.count; i++)
        tt_push(w->arena, names, w->program->functions.data[i]->name);
    const char *closest = tt_c_closest(name, names.data, names.count);
    if (tt_c_find_variable(w, name))
        tt_c_fail(w, NULL, "`%s` is a variable, and cannot be called", name);
    tt_c_fail(w,
              closest ? tt_arena_format(w->arena, "did you mean `%s`?", closest)
                      : "docs/triton-c.md has the builtins",
              "there is no function `%s`", name);
}

static const CFunction *find_function(const CWalker *w, const char *name)
{
    for (int i = 0; i < w->program->functions.count; i++)
        if (!strcmp(w->program->functions.data[i]->name, name))
            return w->program->functions.data[i];
    return NULL;
}

static void check_count(CWalker *w, const char *name, int given, int least, int most)
{
    if (given >= least && given <= most)
        return;
    const char *range = least == most
                            ? tt_arena_format(w->arena, "%d argument%s", least, least == 1 ? "" : "s")
                            : tt_arena_format(w->arena, "%d to %d arguments", least, most);
    tt_c_fail(w, NULL, "`%s` takes %s, and here %s %d", name, range, given == 1 ? "is" : "are", given);
}

/* ---- functions ------------------------------------------------------------------------------------------------------------ */

/* A parameter without extents takes a tile of any shape. */
static void bind_parameter(CWalker *w, const CFunction *function, const Declaration *d, Operand x)
{
    const char *what = tt_arena_format(w->arena, "the parameter `%s` of `%s`", d->name, function->name);
    Shape shape = {0};
    x = tt_c_convert(w, what, x, d->dtype);
    shape = d->extents.count ? tt_c_extents(w, &d->extents) : tt_c_shape(x);
    x = tt_c_broadcast(w, what, x, &shape);
    int slot = tt_c_add_slot(w, tt_intern(w->module, d->name), d->dtype, &shape, x.value);
    w->frame->slots.data[slot].is_const = d->is_const;
}

static void check_recursion(CWalker *w, const CFunction *function)
{
    for (const Frame *frame = w->frame; frame; frame = frame->caller)
        if (frame->function == function)
            tt_c_fail(w, "take a loop", "`%s` calls itself, and functions are inlined", function->name);
    if (w->depth >= MOST_CALLS)
        tt_c_fail(w, NULL, "there are more than %d calls in each other", MOST_CALLS);
}

static Operand result_of(CWalker *w, const Frame *frame, Flow flow)
{
    const CFunction *function = frame->function;
    if (function->result == &tt_void)
        return (Operand){NULL, &tt_void, false};
    if ((flow & FALLS) || !frame->slots.data[SLOT_RESULT].value)
        tt_error_with_remedy(tt_c_loc(w, &function->loc), "end it with `return`",
                             "`%s` may end without returning a value of type %s", function->name,
                             tt_c_dtype_name(w, function->result));
    return (Operand){frame->slots.data[SLOT_RESULT].value, function->result, false};
}

Operand tt_c_inline(CWalker *w, const CFunction *function, const Operand *arguments, const Loc *call_site)
{
    Frame *frame = TT_NEW(w->arena, Frame);
    Builder outer = w->builder;
    check_recursion(w, function);
    *frame = (Frame){.caller = w->frame, .function = function, .call_site = call_site};
    w->frame = frame;
    w->depth++;
    tt_c_add_slot(w, NULL, &tt_int1, NULL, tt_c_int(w, &tt_int1, 0).value); /* SLOT_RETURNED */
    tt_c_add_slot(w, NULL, function->result, NULL, NULL);                   /* SLOT_RESULT */
    for (int i = 0; i < function->parameter_count; i++) {
        bind_parameter(w, function, &function->parameters[i], arguments[i]);
        w->builder.loc = outer.loc;
    }
    /* A scope of its own, but a variable may not be called like a parameter: walk_statements sees to the former. */
    Flow flow = tt_c_walk_statements(w, &function->body->items, 0);
    w->builder.loc = outer.loc;
    Operand result = result_of(w, frame, flow);
    w->depth--;
    w->frame = frame->caller;
    w->builder.region = outer.region;
    return result;
}

static Operand call_function(CWalker *w, const CFunction *function, const Node *node)
{
    int count = node->arguments.count;
    Operand *arguments = TT_NEW_ARRAY(w->arena, Operand, count);
    if (function->is_kernel)
        tt_c_fail(w, "move what they share into a function", "`%s` is a kernel, and cannot be called",
                  function->name);
    if (node->has_items)
        tt_c_fail(w, "only get_global_range has an extent in brackets", "`%s` takes no brackets",
                  function->name);
    check_count(w, function->name, count, function->parameter_count, function->parameter_count);
    for (int i = 0; i < count; i++)
        arguments[i] = tt_c_walk(w, node->arguments.data[i]);
    return tt_c_inline(w, function, arguments, tt_c_loc(w, &node->loc));
}

/* ---- builtins ------------------------------------------------------------------------------------------------------------- */

/* The text of print and assert is no value: they read it from the tree. */
static Operand call_builtin(CWalker *w, const Builtin *builtin, const Node *node)
{
    Call call = {.node = node, .name = node->name, .count = node->arguments.count};
    const Shape *wanted = w->wanted;
    check_count(w, node->name, call.count, builtin->least, builtin->most);
    if (node->has_items && builtin->function != tt_c_builtin_global_range)
        tt_c_fail(w, "only get_global_range has an extent in brackets", "`%s` takes no brackets", node->name);
    call.arguments = TT_NEW_ARRAY(w->arena, Operand, call.count);
    w->wanted = NULL;
    for (int i = 0; i < call.count; i++)
        if (node->arguments.data[i]->kind != NODE_STRING)
            call.arguments[i] = tt_c_walk(w, node->arguments.data[i]);
    w->wanted = wanted;
    tt_c_at(w, node);
    Operand result = builtin->function(w, &call);
    w->wanted = NULL;
    return result;
}

Operand tt_c_walk_call(CWalker *w, const Node *node)
{
    const CFunction *function = find_function(w, node->name);
    const Builtin *builtin = function ? NULL : tt_c_builtin(node->name);
    tt_c_at(w, node);
    if (builtin)
        return call_builtin(w, builtin, node);
    w->wanted = NULL;
    if (!function)
        unknown_function(w, node->name);
    Operand result = call_function(w, function, node);
    tt_c_at(w, node);
    return result;
}
