/* Calls: what is called, its arguments, and builtins. Functions of @triton.jit are in jit.c, Python's own in host.c. */
#include "frontend/walker.h"

#define BUILTIN(name, function) BuiltinFunction function;
#include "frontend/builtins.def"
#undef BUILTIN
BuiltinFunction tt_builtin_float_function;

static const struct {
    const char *name;
    BuiltinFunction *function;
} builtins[] = {
#define BUILTIN(name, function) {#name, function},
#include "frontend/builtins.def"
#undef BUILTIN
    {NULL, NULL},
};

/* ---- arguments ------------------------------------------------------------------------------------------------------- */

static void add_keyword(Walker *w, Arguments *args, int *capacity, PyObject *name, Term value)
{
    if (args->named_count == *capacity) {
        int same = *capacity;
        args->names = tt_vector_grow(w->arena, args->names, args->named_count, &same, sizeof(PyObject *));
        args->named = tt_vector_grow(w->arena, args->named, args->named_count, capacity, sizeof(Term));
    }
    args->names[args->named_count] = name;
    args->named[args->named_count++] = value;
}

/* **mapping: a compile-time dict with string keys. */
static void add_mapping(Walker *w, Arguments *args, int *capacity, Term mapping)
{
    Py_ssize_t position = 0;
    PyObject *key, *value;
    if (mapping.kind != TERM_PYTHON || !PyDict_Check(mapping.object))
        tt_fail(w, "`**` takes a compile-time dict, not %s", tt_describe(w, mapping));
    PyObject *dict = tt_keep(w, PyDict_Copy(mapping.object));
    while (PyDict_Next(dict, &position, &key, &value)) {
        if (!PyUnicode_Check(key))
            tt_fail(w, "the keys of `**` are strings, not %s", tt_describe(w, tt_python_term(w, key)));
        add_keyword(w, args, capacity, key, tt_python_term(w, value));
    }
}

void tt_collect_arguments(Walker *w, PyObject *call, Arguments *args)
{
    tt_walk_elements(w, tt_field(w, call, FIELD_args), args);
    PyObject *keywords = tt_field(w, call, FIELD_keywords);
    int capacity = 0;
    for (int i = 0; i < tt_list_size(w, keywords); i++) {
        PyObject *keyword = tt_list_item(w, keywords, i), *name = tt_field(w, keyword, FIELD_arg);
        Term value = tt_walk_expr(w, tt_field(w, keyword, FIELD_value));
        if (name != Py_None) {
            add_keyword(w, args, &capacity, name, value);
            continue;
        }
        tt_at(w, keyword);
        add_mapping(w, args, &capacity, value);
    }
}

static int parameter_index(const Signature *signature, PyObject *name)
{
    for (int i = 0; i < signature->count; i++) {
        const Parameter *parameter = &signature->parameters[i];
        if (parameter->kind != PARAMETER_ANY && parameter->kind != PARAMETER_KEYWORD)
            continue;
        if (parameter->name == name || PyUnicode_Compare(parameter->name, name) == 0)
            return i;
    }
    for (int i = 0; signature->is_of_libdevice && i < signature->count; i++) {
        const char number[] = {'a', 'r', 'g', (char)('0' + i), 0};
        if (!PyUnicode_CompareWithASCIIString(name, number))
            return i;
    }
    return -1;
}

void tt_note_module(Walker *w, PyObject *function, Signature *signature)
{
    PyObject *name = tt_attribute_or_null(w, function, FIELD___module__);
    const char *module = name && PyUnicode_Check(name) ? tt_utf8(w, name) : "";
    signature->is_of_libdevice =
        !strncmp(module, "triton.language.extra.", strlen("triton.language.extra.")) ||
        !strcmp(module, "triton.language.math");
}

/* What can be passed, for messages. */
static const char *parameters_text(Walker *w, const Signature *signature)
{
    Text all = {.arena = w->arena};
    for (int i = 0; i < signature->count; i++) {
        const Parameter *parameter = &signature->parameters[i];
        tt_text_add(&all, "%s%s%s", i ? ", " : "", tt_utf8(w, parameter->name),
                    parameter->fallback ? "=..." : "");
    }
    return all.length ? tt_arena_format(w->arena, "its parameters are (%s)", all.data)
                      : "it takes no arguments";
}

static _Noreturn void unknown_keyword(Walker *w, const Signature *signature, PyObject *name)
{
    const char **names = TT_NEW_ARRAY(w->arena, const char *, signature->count);
    for (int i = 0; i < signature->count; i++)
        names[i] = tt_utf8(w, signature->parameters[i].name);
    const char *closest = tt_closest_word(tt_utf8(w, name), names, signature->count);
    const char *remedy =
        closest ? tt_arena_format(w->arena, "did you mean `%s`?", closest) : parameters_text(w, signature);
    tt_fail_with_remedy(w, remedy, "`%s` has no parameter `%s`", signature->name, tt_utf8(w, name));
}

static _Noreturn void too_many(Walker *w, const Signature *signature, int given)
{
    int most = 0;
    for (int i = 0; i < signature->count; i++)
        most += signature->parameters[i].kind <= PARAMETER_ANY;
    tt_fail_with_remedy(w, parameters_text(w, signature),
                        "`%s` takes %d positional argument%s, but %d %s given", signature->name, most,
                        most == 1 ? "" : "s", given, given == 1 ? "is" : "are");
}

static void bind_positional(Walker *w, const Signature *signature, const Arguments *args, Term *out)
{
    int from = 0;
    for (int i = 0; i < signature->count; i++) {
        ParameterKind kind = signature->parameters[i].kind;
        if (kind == PARAMETER_VARIADIC) {
            int rest = TT_MAX(args->count - from, 0);
            out[i] = tt_tuple_term(w, args->items + (rest ? from : 0), rest);
            from += rest;
        } else if (kind <= PARAMETER_ANY && from < args->count) {
            out[i] = args->items[from++];
        }
    }
    if (from < args->count)
        too_many(w, signature, args->count);
}

/* What functions of the public API's own compiler pass on: programs that call them as that does mean nothing by it. */
static bool is_internal_of_others(PyObject *name)
{
    return !PyUnicode_CompareWithASCIIString(name, "_semantic") ||
           !PyUnicode_CompareWithASCIIString(name, "_builder") ||
           !PyUnicode_CompareWithASCIIString(name, "_generator");
}

/* Keywords that no parameter takes go into the dict of **kwargs. */
static void bind_keywords(Walker *w, const Signature *signature, const Arguments *args, Term *out,
                          PyObject *rest)
{
    for (int i = 0; i < args->named_count; i++) {
        PyObject *name = args->names[i];
        int index = parameter_index(signature, name);
        if (index < 0 && is_internal_of_others(name))
            continue;
        if (index < 0 && rest) {
            PyObject *value = tt_term_python(w, args->named[i]);
            if (!value)
                tt_fail(
                    w,
                    "`%s` goes into a `**` parameter of `%s`, which takes compile-time values only, not %s",
                    tt_utf8(w, name), signature->name, tt_describe(w, args->named[i]));
            if (PyDict_SetItem(rest, name, value))
                tt_python_error(w);
            continue;
        }
        if (index < 0)
            unknown_keyword(w, signature, name);
        if (out[index].kind != TERM_UNDEFINED)
            tt_fail_with_remedy(w, "remove one of them", "`%s` gets two values for its parameter `%s`",
                                signature->name, tt_utf8(w, name));
        out[index] = args->named[i];
    }
}

void tt_bind_arguments(Walker *w, const Signature *signature, const Arguments *args, Term *out)
{
    int count = signature->count;
    bool has_meta = count && signature->parameters[count - 1].kind == PARAMETER_META;
    PyObject *rest = has_meta ? tt_keep(w, PyDict_New()) : NULL;
    memset(out, 0, sizeof(Term) * (size_t)count);
    bind_positional(w, signature, args, out);
    bind_keywords(w, signature, args, out, rest);
    if (has_meta)
        out[count - 1] = tt_python_term(w, rest);
    Text missing = {.arena = w->arena};
    int missing_count = 0;
    for (int i = 0; i < count; i++) {
        const Parameter *parameter = &signature->parameters[i];
        if (out[i].kind != TERM_UNDEFINED)
            continue;
        if (parameter->fallback)
            out[i] = tt_python_term(w, parameter->fallback);
        else
            tt_text_add(&missing, "%s`%s`", missing_count++ ? ", " : "", tt_utf8(w, parameter->name));
    }
    if (missing_count)
        tt_fail_with_remedy(w, parameters_text(w, signature), "`%s` lacks its argument%s %s", signature->name,
                            missing_count == 1 ? "" : "s", missing.data);
}

/* ---- what is called -------------------------------------------------------------------------------------------------- */

static void read_stub(Walker *w, PyObject *function, Signature *signature)
{
    enum { HAS_VARIADIC = 4, HAS_META = 8 }; /* bits of co_flags */
    PyObject *inner = tt_attribute_or_null(w, function, FIELD___wrapped__);
    if (inner)
        function = inner;
    PyObject *code = tt_attribute(w, function, FIELD___code__),
             *names = tt_attribute(w, code, FIELD_co_varnames);
    PyObject *defaults = tt_attribute(w, function, FIELD___defaults__);
    PyObject *keyword_defaults = tt_attribute(w, function, FIELD___kwdefaults__);
    int positional = (int)tt_int_attribute(w, code, FIELD_co_argcount);
    int keyword_only = (int)tt_int_attribute(w, code, FIELD_co_kwonlyargcount);
    int64_t flags = tt_int_attribute(w, code, FIELD_co_flags);
    int variadic = (flags & HAS_VARIADIC) != 0, meta = (flags & HAS_META) != 0;
    int first_default = positional - (PyTuple_Check(defaults) ? (int)PyTuple_Size(defaults) : 0);
    signature->count = positional + keyword_only + variadic + meta;
    signature->parameters = TT_NEW_ARRAY(w->arena, Parameter, signature->count);
    /* co_varnames has *args behind the keyword-only names; in the signature it stands before them. */
    for (int i = 0; i < signature->count; i++) {
        Parameter *parameter = &signature->parameters[i];
        int from = i;
        parameter->kind = i < positional ? PARAMETER_ANY : PARAMETER_KEYWORD;
        if (variadic && i >= positional && i <= positional + keyword_only)
            from = i == positional ? positional + keyword_only : i - 1;
        if (variadic && i == positional)
            parameter->kind = PARAMETER_VARIADIC;
        if (meta && i == signature->count - 1)
            parameter->kind = PARAMETER_META;
        parameter->name = PyTuple_GetItem(names, from);
        if (i >= first_default && i < positional)
            parameter->fallback = PyTuple_GetItem(defaults, i - first_default);
        else if (parameter->kind == PARAMETER_KEYWORD && PyDict_Check(keyword_defaults))
            parameter->fallback = PyDict_GetItem(keyword_defaults, parameter->name);
    }
}

static void make_builtin(Walker *w, Callee *callee, const char *name)
{
    callee->signature.name = tt_arena_format(w->arena, "tl.%s", name);
    read_stub(w, callee->object, &callee->signature);
    tt_note_module(w, callee->object, &callee->signature);
    callee->kind = CALLEE_BUILTIN;
    for (int i = 0; builtins[i].name; i++)
        if (!strcmp(builtins[i].name, name))
            callee->function = builtins[i].function;
    if (!callee->function && tt_find_function_opcode(name) < TT_OPCODES)
        callee->function = tt_builtin_float_function;
    if (!callee->function)
        tt_raise(&(Diagnostic){.kind = TT_UNSUPPORTED,
                               .loc = tt_here(w),
                               .message = tt_arena_format(w->arena, "tl.%s is not supported", name)});
    const char **names = TT_NEW_ARRAY(w->arena, const char *, callee->signature.count);
    for (int i = 0; i < callee->signature.count; i++)
        names[i] = tt_utf8(w, callee->signature.parameters[i].name);
    BuiltinCall *call = TT_NEW(w->arena, BuiltinCall);
    *call = (BuiltinCall){name, names, callee->signature.count};
    callee->call = call;
}

static bool is_class_of_kind(Walker *w, PyObject *type, const char *wanted)
{
    PyObject *kind = tt_attribute_or_null(w, type, FIELD___triton_kind__);
    return kind && PyUnicode_Check(kind) && !PyUnicode_CompareWithASCIIString(kind, wanted);
}

/* tl.range and tl.static_range: classes, whose __init__ has the signature, with `self` in front. */
static void make_range(Walker *w, Callee *callee, CalleeKind kind)
{
    callee->kind = kind;
    callee->signature.name = kind == CALLEE_RANGE ? "tl.range" : "tl.static_range";
    read_stub(w, tt_attribute(w, callee->object, FIELD___init__), &callee->signature);
    callee->signature.parameters++;
    callee->signature.count--;
}

static void make_named_tuple(Walker *w, Callee *callee, PyObject *fields)
{
    PyObject *defaults = tt_attribute_or_null(w, callee->object, FIELD__field_defaults);
    callee->kind = CALLEE_NAMED_TUPLE;
    callee->signature.name = tt_utf8(w, tt_attribute(w, callee->object, FIELD___name__));
    callee->signature.count = (int)PyTuple_Size(fields);
    callee->signature.parameters = TT_NEW_ARRAY(w->arena, Parameter, callee->signature.count);
    for (int i = 0; i < callee->signature.count; i++) {
        Parameter *parameter = &callee->signature.parameters[i];
        parameter->name = PyTuple_GetItem(fields, i);
        parameter->kind = PARAMETER_ANY;
        if (defaults && PyDict_Check(defaults))
            parameter->fallback = PyDict_GetItem(defaults, parameter->name);
    }
}

PyObject *tt_find_jit(Walker *w, PyObject *object)
{
    enum { MOST_WRAPPERS = 8 };
    for (int i = 0; object && i < MOST_WRAPPERS; i++) {
        if (tt_object_kind(w, object) == OBJECT_JIT)
            return object;
        if (PyType_Check(object) || PyModule_Check(object))
            return NULL;
        object = tt_attribute_or_null(w, object, FIELD_fn);
    }
    return NULL;
}

static void classify(Walker *w, Callee *callee)
{
    PyObject *object = callee->object, *jit_function = tt_find_jit(w, object);
    callee->kind = CALLEE_HOST;
    if (jit_function) {
        callee->kind = CALLEE_JIT;
        callee->object = jit_function;
        return;
    }
    PyObject *name = tt_attribute_or_null(w, object, FIELD___triton_builtin__);
    if (name && PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, "aggregate_replace")) {
        callee->kind = CALLEE_REPLACE; /* takes any keywords */
        return;
    }
    if (name && PyUnicode_Check(name)) {
        make_builtin(w, callee, tt_utf8(w, name));
        return;
    }
    if (name == Py_True) {
        callee->kind = CALLEE_MARKED;
        return;
    }
    if (object == (PyObject *)&PyRange_Type) {
        callee->kind = CALLEE_RANGE;
        callee->signature.name = "range";
        return;
    }
    if (PyType_Check(object)) {
        PyObject *fields = tt_attribute_or_null(w, object, FIELD__fields);
        bool is_tuple = PyType_IsSubtype((PyTypeObject *)object, &PyTuple_Type);
        if (is_class_of_kind(w, object, "constexpr"))
            callee->kind = CALLEE_CONSTEXPR;
        else if (is_class_of_kind(w, object, "range"))
            make_range(w, callee, CALLEE_RANGE);
        else if (is_class_of_kind(w, object, "static_range"))
            make_range(w, callee, CALLEE_STATIC_RANGE);
        else if (is_tuple && tt_attribute_or_null(w, object, FIELD___triton_aggregate__))
            callee->kind = CALLEE_AGGREGATE;
        else if (is_tuple && fields && PyTuple_Check(fields))
            make_named_tuple(w, callee, fields);
    }
    callee->special = callee->kind == CALLEE_HOST ? tt_find_host_special(w, object) : NULL;
    if (callee->special)
        callee->kind = CALLEE_HOST_SPECIAL;
}

Callee *tt_callee(Walker *w, PyObject *object)
{
    Callee *callee = tt_map_find_ptr(&w->state->callees, object);
    if (callee)
        return callee;
    callee = TT_NEW(w->arena, Callee);
    callee->object = tt_keep(w, Py_NewRef(object));
    classify(w, callee);
    *tt_map_slot_ptr(&w->state->callees, object) = callee;
    return callee;
}

/* ---- calling --------------------------------------------------------------------------------------------------------- */

static Term call_builtin(Walker *w, const Callee *callee, const Arguments *args)
{
    const BuiltinCall *outer = w->call;
    const Loc *loc = tt_here(w);
    Term *bound = TT_NEW_ARRAY(w->arena, Term, callee->signature.count + 1);
    tt_bind_arguments(w, &callee->signature, args, bound);
    w->call = callee->call;
    Term result = callee->function(w, bound);
    w->call = outer;
    w->builder.loc = loc;
    return result;
}

/* A run-time value stays what it is: programs mark what only some of their launches know. */
static Term make_constexpr(Walker *w, const Arguments *args)
{
    PyObject *object = args->count == 1 && !args->named_count ? tt_term_python(w, args->items[0]) : NULL;
    if (args->count != 1 || args->named_count)
        tt_fail(w, "tl.constexpr takes one argument");
    return object ? tt_python_term(w, object) : args->items[0];
}

static Term call_object(Walker *w, PyObject *object, Arguments *args)
{
    Callee *callee = tt_callee(w, object);
    switch (callee->kind) {
    case CALLEE_JIT:
        return tt_call_jit(w, callee->object, args);
    case CALLEE_BUILTIN:
        return call_builtin(w, callee, args);
    case CALLEE_CONSTEXPR:
        return make_constexpr(w, args);
    case CALLEE_NAMED_TUPLE: {
        Term *bound = TT_NEW_ARRAY(w->arena, Term, callee->signature.count);
        tt_bind_arguments(w, &callee->signature, args, bound);
        Term tuple = {.kind = TERM_TUPLE, .count = callee->signature.count, .object = object, .items = bound};
        return tt_with_known_fields(w, tuple);
    }
    case CALLEE_AGGREGATE:
    case CALLEE_MARKED:
        return tt_call_on_stand_ins(w, object, args, callee->kind == CALLEE_MARKED);
    case CALLEE_REPLACE:
        return tt_replace_fields(w, args);
    case CALLEE_HOST_SPECIAL:
        return callee->special(w, object, args);
    case CALLEE_RANGE:
    case CALLEE_STATIC_RANGE:
        if (callee->signature.count && callee->kind == CALLEE_RANGE)
            tt_fail_with_remedy(w, "write `for i in tl.range(...)`", "%s belongs into a `for` statement",
                                callee->signature.name);
        for (int i = 0; i < args->count; i++)
            if (!tt_term_python(w, args->items[i]))
                tt_fail_with_remedy(
                    w, "loop with a `for` statement, or make the bound a tl.constexpr parameter",
                    "a range outside of a `for` statement is one of compile-time ints, not of %s",
                    tt_describe(w, args->items[i]));
        return tt_call_host(w, (PyObject *)&PyRange_Type, args); /* in a comprehension, say */
    case CALLEE_HOST:
        break;
    }
    if (tt_dtype_from_object(w, object))
        tt_fail_with_remedy(w, "cast with x.to(dtype) or tl.cast(x, dtype)", "a dtype cannot be called");
    if (!PyCallable_Check(object))
        tt_fail(w, "%s cannot be called", tt_describe(w, tt_python_term(w, object)));
    if (tt_object_kind(w, object) == OBJECT_CONSTEXPR_FUNCTION && args->count &&
        tt_is_aggregate(w, args->items[0]))
        return tt_call_on_stand_ins(w, object, args, false);
    return tt_call_host(w, object, args);
}

Term tt_call_with(Walker *w, Term function, Arguments *args)
{
    tt_check_depth(w);
    if (function.kind == TERM_TUPLE)
        tt_find_method(w, function, "__call__", &function);
    if (function.kind == TERM_PYTHON)
        return call_object(w, function.object, args);
    if (function.kind != TERM_METHOD)
        tt_fail(w, "%s cannot be called", tt_describe(w, function));
    Arguments with_self = *args;
    with_self.count = args->count + 1;
    with_self.items = TT_NEW_ARRAY(w->arena, Term, with_self.count);
    with_self.items[0] = function.items[0];
    for (int i = 0; i < args->count; i++)
        with_self.items[i + 1] = args->items[i];
    return call_object(w, function.object, &with_self);
}

Term tt_call(Walker *w, Term function, const Term *args, int count)
{
    Arguments arguments = {.items = (Term *)args, .count = count};
    return tt_call_with(w, function, &arguments);
}

int tt_call_in_region(Walker *w, Region *region, Term function, const Term *args, int count, Term *results,
                      int max_results)
{
    Builder outer = w->builder;
    w->builder = tt_builder_at_end(region);
    w->builder.loc = outer.loc;
    Term result = tt_decay(w, tt_call(w, function, args, count));
    w->builder = outer;
    const Term *items = result.kind == TERM_TUPLE ? result.items : &result;
    int result_count = result.kind == TERM_TUPLE ? result.count : 1;
    for (int i = 0; i < result_count && i < max_results; i++)
        results[i] = items[i];
    return result_count;
}

PyObject *tt_language_object(Walker *w, const char *name)
{
    if (!w->state->language)
        w->state->language = tt_keep(w, PyImport_ImportModule("triton.language"));
    return tt_keep(w, PyObject_GetAttrString(w->state->language, name));
}

/* A call of tl.static_assert whose condition, the first of `args` then, holds? Its message is not evaluated, as that of an
 * `assert` is not. */
static bool is_kept_assertion(Walker *w, Term function, PyObject *node, Arguments *args)
{
    tt_at(w, node);
    if (function.kind != TERM_PYTHON || tt_callee(w, function.object)->function != tt_builtin_static_assert)
        return false;
    PyObject *nodes = tt_field(w, node, FIELD_args);
    if (!tt_list_size(w, nodes) || tt_node_kind(w, tt_list_item(w, nodes, 0)) == NODE_Starred)
        return false;
    Term condition = tt_walk_expr(w, tt_list_item(w, nodes, 0));
    *args = (Arguments){.count = 1, .items = tt_arena_copy(w->arena, &condition, sizeof condition)};
    return tt_known_truth(w, condition) == 1;
}

Term tt_walk_call(Walker *w, PyObject *node)
{
    Term function = tt_walk_expr(w, tt_field(w, node, FIELD_func));
    Arguments args = {0};
    if (is_kept_assertion(w, function, node, &args))
        return tt_none(w);
    tt_collect_arguments(w, node, &args);
    tt_at(w, node);
    const Loc *loc = tt_here(w);
    Term result = tt_call_with(w, function, &args);
    w->builder.loc = loc;
    w->state->last_callee = function.object;
    return result;
}
