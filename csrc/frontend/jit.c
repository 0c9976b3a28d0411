/* Functions of @triton.jit. A call walks the body in place, in a frame of its own; with noinline=True it builds a `call`
 * of a function made for the types and constants of the arguments. */
#include "frontend/walker.h"

/* ---- what is known of a function -------------------------------------------------------------------------------------- */

static void read_parameters(Walker *w, FunctionInfo *info)
{
    PyObject *params = tt_attribute(w, info->object, FIELD_params);
    Signature *signature = &info->signature;
    signature->count = tt_list_size(w, params);
    signature->parameters = TT_NEW_ARRAY(w->arena, Parameter, signature->count);
    for (int i = 0; i < signature->count; i++) {
        tt_breathe_in_walk(w);
        PyObject *param = tt_list_item(w, params, i);
        Parameter *parameter = &signature->parameters[i];
        parameter->name = tt_attribute(w, param, FIELD_name);
        parameter->kind = (ParameterKind)tt_int_attribute(w, param, FIELD_kind);
        parameter->is_constexpr = tt_int_attribute(w, param, FIELD_is_constexpr) != 0;
        if (tt_int_attribute(w, param, FIELD_has_default))
            parameter->fallback = tt_attribute(w, param, FIELD_default);
    }
}

static void read_scopes(Walker *w, FunctionInfo *info)
{
    PyObject *fn = tt_attribute(w, info->object, FIELD_fn), *code = tt_attribute(w, fn, FIELD___code__);
    PyObject *closure = tt_attribute(w, fn, FIELD___closure__),
             *locals = tt_attribute(w, code, FIELD_co_varnames);
    info->globals = tt_attribute(w, fn, FIELD___globals__);
    if (closure != Py_None) {
        info->closure_cells = closure;
        info->closure_names = tt_attribute(w, code, FIELD_co_freevars);
    }
    info->locals.arena = w->arena;
    for (Py_ssize_t i = 0; i < PyTuple_Size(locals); i++)
        *tt_map_slot_ptr(&info->locals, PyTuple_GetItem(locals, i)) = info;
}

static bool text_has_walrus(Walker *w, PyObject *lines)
{
    for (int i = 0; i < tt_list_size(w, lines); i++)
        if (strstr(tt_utf8(w, tt_list_item(w, lines, i)), ":="))
            return true;
    return false;
}

FunctionInfo *tt_function_info(Walker *w, PyObject *object)
{
    FunctionInfo *info = tt_map_find_ptr(&w->state->functions, object);
    if (info)
        return info;
    info = TT_NEW(w->arena, FunctionInfo);
    info->object = tt_keep(w, Py_NewRef(object));
    info->signature.name = tt_arena_strdup(w->arena, tt_utf8(w, tt_attribute(w, object, FIELD___name__)));
    tt_note_module(w, object, &info->signature);
    info->node = tt_keep(w, PyObject_CallMethodObjArgs(object, w->state->fields[FIELD_parse], NULL));
    info->statements = tt_field(w, info->node, FIELD_body);
    info->file = tt_arena_strdup(w->arena, tt_utf8(w, tt_attribute(w, object, FIELD_source_file)));
    info->column_offset = (int)tt_int_attribute(w, object, FIELD_column_offset);
    info->noinline = tt_int_attribute(w, object, FIELD_noinline) != 0;
    info->has_walrus = text_has_walrus(w, tt_attribute(w, object, FIELD_source_lines));
    read_parameters(w, info);
    read_scopes(w, info);
    int line = (int)tt_int_attribute(w, info->node, FIELD_lineno);
    int column = (int)tt_int_attribute(w, info->node, FIELD_col_offset) + info->column_offset;
    Loc *loc = TT_NEW(w->arena, Loc);
    *loc = (Loc){info->file, info->signature.name, line, column, line, column + (int)strlen("def "), NULL};
    info->loc = loc;
    *tt_map_slot_ptr(&w->state->functions, object) = info;
    return info;
}

/* ---- walking a body --------------------------------------------------------------------------------------------------- */

static Term result_of(Walker *w, const FunctionInfo *info, Flow flow)
{
    Binding result = *tt_binding(w, SLOT_RESULT);
    if (!(flow & RETURNS))
        return tt_none(w);
    bool is_none = tt_is_none(result.term);
    if (!w->state->frame->caller && !is_none) { /* the kernel itself */
        w->builder.loc = result.loc;
        tt_fail_with_remedy(w, "write results to memory with tl.store",
                            "the kernel `%s` returns %s, but nobody gets it", info->signature.name,
                            tt_describe(w, result.term));
    }
    if ((flow & FALLS) && !is_none) {
        Diagnostic diag = {.kind = TT_USER_ERROR, .loc = result.loc};
        diag.message = tt_arena_format(
            w->arena, "Inconsistent return types: `%s` returns %s here, but may also end without a `return`",
            info->signature.name, tt_describe(w, result.term));
        diag.remedy = "end the function with a `return` of the same type";
        tt_raise(&diag);
    }
    return result.term;
}

Term tt_walk_function(Walker *w, FunctionInfo *info, const Term *args, const Loc *call_site)
{
    enum { MOST_INLINED = 1 << 16 };
    WalkerState *state = w->state;
    if (++state->inlined > MOST_INLINED)
        tt_fail_with_remedy(w, "call fewer functions, or decorate one with @triton.jit(noinline=True)",
                            "the kernel consists of more than %d calls", MOST_INLINED);
    const Loc *loc = tt_here(w);
    Frame frame = {.caller = state->frame, .info = info, .call_site = call_site, .args = args};
    tt_init_scope(w, &frame.scope);
    state->frame = &frame;
    state->inline_depth++;
    w->builder.loc = info->loc;
    for (int i = 0; i < info->signature.count; i++)
        tt_store_name(w, info->signature.parameters[i].name, args[i]);
    Flow flow = tt_walk_block(w, info->statements, RETURNS | FALLS);
    Term result = result_of(w, info, flow);
    state->inline_depth--;
    state->frame = frame.caller;
    w->builder.loc = loc;
    return result;
}

/* ---- recursion --------------------------------------------------------------------------------------------------------- */

/* Would a call with these arguments be walked just like one with the others? */
static bool same_specialisation(Walker *w, Term a, Term b)
{
    if (a.kind == TERM_VALUE && b.kind == TERM_VALUE)
        return a.value->type == b.value->type && a.dtype == b.dtype;
    if (a.kind != b.kind || a.kind < TERM_TUPLE)
        return tt_same_term(w, a, b);
    if (a.count != b.count)
        return false;
    for (int i = 0; i < a.count; i++)
        if (!same_specialisation(w, a.items[i], b.items[i]))
            return false;
    return true;
}

static const char *call_cycle(Walker *w, const Frame *frame, const FunctionInfo *info)
{
    if (frame->info == info && frame != w->state->frame)
        return info->signature.name;
    const char *before = frame->info == info ? info->signature.name : call_cycle(w, frame->caller, info);
    return frame->info == info ? before
                               : tt_arena_format(w->arena, "%s -> %s", before, frame->info->signature.name);
}

/* Recursion that a compile-time argument ends is fine, up to a depth. */
static void check_recursion(Walker *w, const FunctionInfo *info, const Term *args)
{
    enum { DEEPEST = 200 };
    for (const Frame *frame = w->state->frame; frame; frame = frame->caller) {
        if (frame->info != info)
            continue;
        bool same = true;
        for (int i = 0; same && i < info->signature.count; i++)
            same = same_specialisation(w, frame->args[i], args[i]);
        if (same || w->state->inline_depth >= DEEPEST)
            tt_fail_with_remedy(
                w, "write it as a loop; only recursion that tl.constexpr arguments end can be compiled",
                "endless recursion: %s -> %s", call_cycle(w, w->state->frame, info), info->signature.name);
    }
    if (w->state->inline_depth >= DEEPEST)
        tt_fail(w, "calls are nested more than %d deep", DEEPEST);
}

/* ---- functions that stay functions -------------------------------------------------------------------------------------- */

typedef struct Specialisation {
    Function *function;
    Term result; /* with the values of the function's body */
} Specialisation;

static void add_key(Walker *w, Text *key, Term t)
{
    if (t.kind == TERM_VALUE) {
        tt_text_add(key, "v%p.%p,", (const void *)t.value->type, (const void *)t.dtype);
        return;
    }
    if (t.kind == TERM_PYTHON) {
        bool by_text = tt_is_number(t) || PyUnicode_Check(t.object);
        PyObject *repr = by_text ? tt_keep(w, PyObject_Repr(t.object)) : NULL;
        const char *text = repr ? tt_utf8(w, repr) : "";
        tt_text_add(key, "c%p.%zu.%s,", by_text ? (const void *)Py_TYPE(t.object) : (const void *)t.object,
                    strlen(text), text);
        return;
    }
    tt_text_add(key, "%d.%d.%p(", t.kind, t.count,
                t.kind == TERM_BLOCK_POINTER ? NULL : (const void *)t.object);
    if (t.kind == TERM_BLOCK_POINTER)
        for (int i = 0; i < t.block->rank; i++)
            tt_text_add(key, "%lld.%d,", (long long)t.block->shape[i], t.block->order[i]);
    for (int i = 0; i < t.count; i++)
        add_key(w, key, t.items[i]);
    tt_text_add(key, ")");
}

void tt_build_return(Walker *w, Function *function, Term result)
{
    int count = tt_count_values(result), flat = 0;
    Value **values = TT_NEW_ARRAY(w->arena, Value *, count);
    tt_flatten(w, result, values, &flat);
    function->result_count = count;
    function->result_types = TT_NEW_ARRAY(w->arena, const Type *, count);
    for (int i = 0; i < count; i++)
        function->result_types[i] = values[i]->type;
    tt_build_op(&w->builder, OP_return, values, count, NULL, 0, NULL);
}

/* The values in the arguments become the parameters. */
static void make_function(Walker *w, Specialisation *made, FunctionInfo *info, const Term *args)
{
    int count = 0, next = 0;
    for (int i = 0; i < info->signature.count; i++)
        count += tt_count_values(args[i]);
    Value **values = TT_NEW_ARRAY(w->arena, Value *, count);
    const Type **types = TT_NEW_ARRAY(w->arena, const Type *, count);
    count = 0;
    for (int i = 0; i < info->signature.count; i++)
        tt_flatten(w, args[i], values, &count);
    for (int i = 0; i < count; i++)
        types[i] = values[i]->type;
    const char *name = tt_function_name(
        w, tt_arena_format(w->arena, "%s__%d", info->signature.name, w->state->specialisations.count));
    made->function = tt_new_function(w->module, name, types, count, NULL, 0);
    made->function->loc = info->loc;
    Term *inner = TT_NEW_ARRAY(w->arena, Term, info->signature.count);
    for (int i = 0; i < info->signature.count; i++)
        inner[i] = tt_rebuild(w, args[i], made->function->body->args, &next);
    Builder outer = w->builder;
    w->builder = tt_builder_at_end(made->function->body);
    w->builder.loc = info->loc;
    made->result = tt_walk_function(w, info, inner, NULL);
    tt_build_return(w, made->function, made->result);
    w->builder = outer;
}

/* Its operations have no caller, for they are shared; a mistake in it still names the call that led there. */
static void make_function_with_note(Walker *w, Specialisation *made, FunctionInfo *info, const Term *args)
{
    Trap trap;
    const Loc *here = tt_here(w);
    if (tt_try(&trap, w->arena)) {
        make_function(w, made, info, args);
        tt_end_try(&trap);
        return;
    }
    Diagnostic diag = trap.diag;
    if (diag.note_count < (int)TT_COUNT(diag.notes))
        diag.notes[diag.note_count++] =
            (DiagNote){here, tt_arena_format(w->arena, "in call to '%s' here", info->signature.name)};
    tt_raise(&diag);
}

/* What the function always gives is known behind a call of it, too: the shape of a block, for instance. */
static Term with_constants(Walker *w, Term given, Term made)
{
    if (given.kind == TERM_TUPLE) {
        Term copy = tt_tuple_term(w, given.items, given.count);
        copy.object = given.object;
        for (int i = 0; i < given.count; i++)
            copy.items[i] = with_constants(w, given.items[i], made.items[i]);
        return copy;
    }
    PyObject *number = tt_is_value(made) ? tt_term_python(w, made) : NULL;
    return number ? tt_number_value(w, tt_python_term(w, number), made.dtype) : given;
}

static Term call_function(Walker *w, FunctionInfo *info, const Term *args)
{
    Text key = {.arena = w->arena};
    tt_text_add(&key, "%p:", (const void *)info);
    int count = 0, next = 0;
    for (int i = 0; i < info->signature.count; i++) {
        add_key(w, &key, args[i]);
        count += tt_count_values(args[i]);
    }
    Specialisation *made = tt_map_find(&w->state->specialisations, key.data, key.length);
    if (!made) {
        made = TT_NEW(w->arena, Specialisation);
        make_function_with_note(w, made, info, args);
        *tt_map_slot(&w->state->specialisations, key.data, key.length) = made;
    }
    Value **values = TT_NEW_ARRAY(w->arena, Value *, count);
    count = 0;
    for (int i = 0; i < info->signature.count; i++)
        tt_flatten(w, args[i], values, &count);
    const Function *function = made->function;
    Attr *callee = tt_attr_string(w->module, ATTR_callee, function->name, NULL);
    Op *call = tt_build_op(&w->builder, OP_call, values, count, function->result_types,
                           function->result_count, callee);
    return with_constants(w, tt_rebuild(w, made->result, call->results, &next), made->result);
}

/* ---- calls ------------------------------------------------------------------------------------------------------------- */

const char *tt_function_name(Walker *w, const char *name)
{
    char *plain = tt_arena_strdup(w->arena, name);
    for (char *c = plain; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9')))
            *c = '_';
    return plain;
}

Term tt_call_jit(Walker *w, PyObject *function, Arguments *args)
{
    FunctionInfo *info = tt_function_info(w, function);
    Term *bound = TT_NEW_ARRAY(w->arena, Term, info->signature.count + 1);
    tt_bind_arguments(w, &info->signature, args, bound);
    for (int i = 0; i < info->signature.count; i++) {
        bool is_constexpr = info->signature.parameters[i].is_constexpr && tt_has_values(bound[i]);
        PyObject *constant = is_constexpr ? tt_term_python(w, bound[i]) : NULL;
        if (constant) /* what is known only when it runs stays what it is: kernels annotate tiles so, too */
            bound[i] = tt_python_term(w, constant);
    }
    check_recursion(w, info, bound);
    return info->noinline ? call_function(w, info, bound) : tt_walk_function(w, info, bound, tt_here(w));
}
