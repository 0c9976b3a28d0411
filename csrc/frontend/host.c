/* Python's own functions. Most run at compile time on what is known then; a few have a meaning for run-time values too:
 * min and max become tl.minimum and tl.maximum, print becomes tl.device_print, len and zip work on tuples, and so on. */
#include "frontend/semantic.h"
#include "frontend/walker.h"

static _Noreturn void needs_constants(Walker *w, PyObject *function, Term t)
{
    PyObject *name = tt_attribute_or_null(w, function, FIELD___name__);
    const char *what = tt_describe(w, tt_python_term(w, function));
    const char *remedy = "decorate it with @triton.jit if it is to run in the kernel";
    tt_look_away(w);
    if (function == (PyObject *)&PyType_Type) {
        what = "`type`";
        remedy = "ask isinstance(x, tl.tensor), or look at x.dtype or x.type";
    } else if (name && PyUnicode_Check(name)) {
        const char *text = tt_utf8(w, name);
        what = tt_arena_format(w->arena, "`%s`", text);
        if (!w->state->language)
            tt_language_object(w, "tensor");
        if (PyObject_HasAttrString(w->state->language, text))
            remedy = tt_arena_format(w->arena, "use tl.%s", text);
    }
    tt_fail_with_remedy(w, remedy, "%s is a Python function and runs at compile time, but gets %s", what,
                        tt_describe(w, t));
}

static PyObject *constant_argument(Walker *w, PyObject *function, Term t)
{
    PyObject *object = tt_term_python(w, t);
    if (!object)
        needs_constants(w, function, t);
    return object;
}

Term tt_call_host(Walker *w, PyObject *function, const Arguments *args)
{
    PyObject *tuple = tt_keep(w, PyTuple_New(args->count)), *keywords = NULL;
    for (int i = 0; i < args->count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(constant_argument(w, function, args->items[i])));
    if (args->named_count)
        keywords = tt_keep(w, PyDict_New());
    for (int i = 0; i < args->named_count; i++)
        if (PyDict_SetItem(keywords, args->names[i], constant_argument(w, function, args->named[i])))
            tt_python_error(w);
    return tt_new_python_term(w, PyObject_Call(function, tuple, keywords));
}

static bool any_values(const Arguments *args)
{
    for (int i = 0; i < args->count; i++)
        if (tt_has_values(args->items[i]))
            return true;
    for (int i = 0; i < args->named_count; i++)
        if (tt_has_values(args->named[i]))
            return true;
    return false;
}

static Term call_language(Walker *w, const char *name, const Term *args, int count)
{
    return tt_call(w, tt_python_term(w, tt_language_object(w, name)), args, count);
}

/* ---- arithmetic -------------------------------------------------------------------------------------------------------- */

static Term extremum(Walker *w, PyObject *function, const Arguments *args, const char *pairwise,
                     const char *reduction)
{
    const Term *items = args->items;
    int count = args->count;
    if (!any_values(args) || args->named_count)
        return tt_call_host(w, function, args);
    if (count == 1 && items[0].kind == TERM_VALUE)
        tt_fail_with_remedy(w, tt_arena_format(w->arena, "reduce a tile with tl.%s(x)", reduction),
                            "%s() takes two or more values", reduction);
    if (count == 1)
        tt_iterate(w, args->items[0], &items, &count);
    if (!count)
        tt_fail(w, "%s() of nothing", reduction);
    Term result = items[0];
    for (int i = 1; i < count; i++)
        result = call_language(w, pairwise, (Term[]){result, items[i]}, 2);
    return result;
}

static Term special_min(Walker *w, PyObject *function, const Arguments *args)
{
    return extremum(w, function, args, "minimum", "min");
}

static Term special_max(Walker *w, PyObject *function, const Arguments *args)
{
    return extremum(w, function, args, "maximum", "max");
}

static Term special_abs(Walker *w, PyObject *function, const Arguments *args)
{
    if (!any_values(args))
        return tt_call_host(w, function, args);
    return call_language(w, "abs", args->items, args->count);
}

static Term fold_items(Walker *w, const Arguments *args, Operator op, Term start)
{
    const Term *items;
    int count;
    tt_iterate(w, args->items[0], &items, &count);
    for (int i = 0; i < count; i++)
        start = tt_binary(w, op, start, items[i]);
    return start;
}

static Term special_sum(Walker *w, PyObject *function, const Arguments *args)
{
    if (!any_values(args) || args->named_count || args->count > 2)
        return tt_call_host(w, function, args);
    if (args->items[0].kind == TERM_VALUE)
        tt_fail_with_remedy(w, "reduce a tile with tl.sum(x)", "sum() takes a tuple, not %s",
                            tt_describe(w, args->items[0]));
    return fold_items(w, args, OPERATOR_ADD, args->count == 2 ? args->items[1] : tt_int_term(w, 0));
}

static Term special_pow(Walker *w, PyObject *function, const Arguments *args)
{
    if (!any_values(args) || args->count != 2 || args->named_count)
        return tt_call_host(w, function, args);
    return tt_binary(w, OPERATOR_POW, args->items[0], args->items[1]);
}

static Term special_divmod(Walker *w, PyObject *function, const Arguments *args)
{
    if (!any_values(args) || args->count != 2 || args->named_count)
        return tt_call_host(w, function, args);
    Term a = args->items[0], b = args->items[1];
    Term pair[] = {tt_binary(w, OPERATOR_FLOORDIV, a, b), tt_binary(w, OPERATOR_MOD, a, b)};
    return tt_tuple_term(w, pair, 2);
}

static Term convert(Walker *w, PyObject *function, const Arguments *args, const Dtype *dtype,
                    bool (*is_fine)(const Dtype *))
{
    Term t = args->count == 1 && !args->named_count ? args->items[0] : tt_none(w);
    if (t.kind != TERM_VALUE || tt_term_python(w, t))
        return tt_call_host(w, function, args);
    if (tt_is_tile(t.value->type))
        tt_fail_with_remedy(w, "cast a tile with .to(dtype)", "a single number is needed here, not %s",
                            tt_describe(w, t));
    return is_fine(t.dtype) ? t : tt_semantic_cast(w, t, dtype);
}

static bool is_float_dtype(const Dtype *d) { return tt_dtype_is_float(d); }
static bool is_int_dtype(const Dtype *d) { return tt_dtype_is_int(d) && !tt_dtype_is_bool(d); }
static bool is_bool_dtype(const Dtype *d) { return tt_dtype_is_bool(d); }

static Term special_float(Walker *w, PyObject *function, const Arguments *args)
{
    return convert(w, function, args, &tt_fp32, is_float_dtype);
}

static Term special_int(Walker *w, PyObject *function, const Arguments *args)
{
    return convert(w, function, args, &tt_int32, is_int_dtype);
}

static Term special_bool(Walker *w, PyObject *function, const Arguments *args)
{
    int truth = args->count == 1 && !args->named_count ? tt_known_truth(w, args->items[0]) : -1;
    return truth >= 0 ? tt_bool_term(w, truth) : convert(w, function, args, &tt_int1, is_bool_dtype);
}

/* ---- tuples -------------------------------------------------------------------------------------------------------------- */

static Term special_len(Walker *w, PyObject *function, const Arguments *args)
{
    const Term t = args->count == 1 ? args->items[0] : tt_none(w);
    const int64_t *shape;
    if (t.kind == TERM_TUPLE)
        return tt_int_term(w, t.count);
    if (t.kind == TERM_VALUE && tt_term_shape(t, &shape))
        return tt_int_term(w, shape[0]);
    return tt_call_host(w, function, args);
}

static Term special_tuple(Walker *w, PyObject *function, const Arguments *args)
{
    const Term *items = NULL;
    int count = 0;
    if (args->count > 1 || args->named_count)
        return tt_call_host(w, function, args);
    if (args->count)
        tt_iterate(w, args->items[0], &items, &count);
    return tt_tuple_term(w, items, count);
}

static Term special_enumerate(Walker *w, PyObject *function, const Arguments *args)
{
    int64_t start = 0;
    const Term *items;
    int count;
    Term first = args->count == 2 ? args->items[1] : args->named_count ? args->named[0] : tt_int_term(w, 0);
    if (args->count < 1 || args->count + args->named_count > 2 || !tt_term_int(w, first, &start))
        return tt_call_host(w, function, args);
    tt_iterate(w, args->items[0], &items, &count);
    Term *pairs = TT_NEW_ARRAY(w->arena, Term, count);
    for (int i = 0; i < count; i++)
        pairs[i] = tt_tuple_term(w, (Term[]){tt_int_term(w, start + i), items[i]}, 2);
    return tt_tuple_term(w, pairs, count);
}

static Term special_zip(Walker *w, PyObject *function, const Arguments *args)
{
    if (!args->count || args->named_count)
        return tt_call_host(w, function, args);
    const Term **columns = TT_NEW_ARRAY(w->arena, const Term *, args->count);
    int shortest = INT32_MAX, count;
    for (int i = 0; i < args->count; i++) {
        tt_iterate(w, args->items[i], &columns[i], &count);
        shortest = TT_MIN(shortest, count);
    }
    Term *rows = TT_NEW_ARRAY(w->arena, Term, shortest), *row = TT_NEW_ARRAY(w->arena, Term, args->count);
    for (int i = 0; i < shortest; i++) {
        for (int j = 0; j < args->count; j++)
            row[j] = columns[j][i];
        rows[i] = tt_tuple_term(w, row, args->count);
    }
    return tt_tuple_term(w, rows, shortest);
}

static Term special_reversed(Walker *w, PyObject *function, const Arguments *args)
{
    const Term *items;
    int count;
    if (args->count != 1 || args->named_count)
        return tt_call_host(w, function, args);
    tt_iterate(w, args->items[0], &items, &count);
    Term *backwards = TT_NEW_ARRAY(w->arena, Term, count);
    for (int i = 0; i < count; i++)
        backwards[i] = items[count - 1 - i];
    return tt_tuple_term(w, backwards, count);
}

/* any() and all() of run-time values are `or` and `and` of them. */
static Term combine(Walker *w, PyObject *function, const Arguments *args, Operator op)
{
    const Term *items;
    int count;
    if (!any_values(args) || args->count != 1 || args->named_count)
        return tt_call_host(w, function, args);
    tt_iterate(w, args->items[0], &items, &count);
    Term result = tt_bool_term(w, op == OPERATOR_LOGICAL_AND);
    for (int i = 0; i < count; i++) {
        int truth = tt_known_truth(w, result);
        if (truth >= 0 && truth == (op == OPERATOR_LOGICAL_OR))
            return result;
        result = truth >= 0 ? items[i] : tt_semantic_binary(w, op, result, items[i]);
    }
    return result;
}

static Term special_any(Walker *w, PyObject *function, const Arguments *args)
{
    return combine(w, function, args, OPERATOR_LOGICAL_OR);
}

static Term special_all(Walker *w, PyObject *function, const Arguments *args)
{
    return combine(w, function, args, OPERATOR_LOGICAL_AND);
}

/* ---- questions -------------------------------------------------------------------------------------------------------------- */

static bool is_subclass(Walker *w, PyObject *type, PyObject *of)
{
    int is = PyObject_IsSubclass(type, of);
    if (is < 0)
        tt_python_error(w);
    return is;
}

static bool is_instance(Walker *w, Term t, PyObject *type)
{
    if (tt_callee(w, type)->kind == CALLEE_CONSTEXPR)
        return !tt_has_values(t);
    switch (t.kind) {
    case TERM_VALUE:
    case TERM_BLOCK_POINTER:
        return is_subclass(w, tt_language_object(w, "tensor"), type);
    case TERM_TUPLE:
        return is_subclass(w, t.object ? t.object : (PyObject *)&PyTuple_Type, type);
    case TERM_PYTHON: {
        int is = PyObject_IsInstance(t.object, type);
        if (is < 0)
            tt_python_error(w);
        return is;
    }
    default:
        return false;
    }
}

static Term special_isinstance(Walker *w, PyObject *function, const Arguments *args)
{
    const Term *types = args->items + 1;
    int count = 1;
    if (args->count != 2 || args->named_count)
        return tt_call_host(w, function, args);
    if (types->kind == TERM_TUPLE)
        tt_term_items(w, args->items[1], &types, &count);
    for (int i = 0; i < count; i++) {
        if (types[i].kind != TERM_PYTHON)
            tt_fail(w, "isinstance() takes classes, not %s", tt_describe(w, types[i]));
        if (is_instance(w, args->items[0], types[i].object))
            return tt_bool_term(w, true);
    }
    return tt_bool_term(w, false);
}

static Term special_getattr(Walker *w, PyObject *function, const Arguments *args)
{
    if (args->count != 2 || args->named_count || args->items[1].kind != TERM_PYTHON ||
        !PyUnicode_Check(args->items[1].object))
        return tt_call_host(w, function, args);
    return tt_walk_attribute_of(w, args->items[0], args->items[1].object);
}

/* Of a value: what tl.tensor has; of a tuple: what its class has. */
static Term special_hasattr(Walker *w, PyObject *function, const Arguments *args)
{
    Term t = args->count ? args->items[0] : tt_none(w);
    bool is_value = tt_is_value(t) || t.kind == TERM_BLOCK_POINTER;
    if (args->count != 2 || args->named_count || !tt_term_string(w, args->items[1]) ||
        (!is_value && t.kind != TERM_TUPLE))
        return tt_call_host(w, function, args);
    PyObject *type = is_value   ? tt_language_object(w, "tensor")
                     : t.object ? t.object
                                : (PyObject *)&PyTuple_Type;
    PyObject *fields = tt_keep(w, PyObject_GetAttrString(tt_language_object(w, "tensor"), "__annotations__"));
    bool is_field = is_value && PyDict_GetItem(fields, args->items[1].object);
    return tt_bool_term(w, is_field || PyObject_HasAttr(type, args->items[1].object));
}

/* A text alone: each program says it. (What is no printable ASCII can only be said while compiling.) */
static bool is_text_alone(Walker *w, const Arguments *args)
{
    const char *text = args->count == 1 && !args->named_count ? tt_term_string(w, args->items[0]) : NULL;
    for (const char *c = text; c && *c; c++)
        if (*c < ' ' || *c > '~')
            return false;
    return text;
}

static Term special_print(Walker *w, PyObject *function, const Arguments *args)
{
    if (!any_values(args) && !is_text_alone(w, args)) {
        tt_note_effect(w);
        return tt_call_host(w, function, args);
    }
    if (args->named_count)
        tt_fail_with_remedy(w, "use tl.device_print for options",
                            "print() of run-time values takes no keyword arguments");
    if (tt_term_string(w, args->items[0]))
        return call_language(w, "device_print", args->items, args->count);
    Term *all = TT_NEW_ARRAY(w->arena, Term, args->count + 1);
    all[0] = tt_string_term(w, "");
    for (int i = 0; i < args->count; i++)
        all[i + 1] = args->items[i];
    return call_language(w, "device_print", all, args->count + 1);
}

HostSpecial *tt_find_host_special(Walker *w, PyObject *object)
{
    static const struct {
        const char *name;
        HostSpecial *function;
    } specials[] = {
        {"abs", special_abs},
        {"all", special_all},
        {"any", special_any},
        {"bool", special_bool},
        {"divmod", special_divmod},
        {"enumerate", special_enumerate},
        {"float", special_float},
        {"getattr", special_getattr},
        {"hasattr", special_hasattr},
        {"int", special_int},
        {"isinstance", special_isinstance},
        {"len", special_len},
        {"list", special_tuple},
        {"max", special_max},
        {"min", special_min},
        {"pow", special_pow},
        {"print", special_print},
        {"reversed", special_reversed},
        {"sum", special_sum},
        {"tuple", special_tuple},
        {"zip", special_zip},
    };
    for (size_t i = 0; i < TT_COUNT(specials); i++)
        if (PyDict_GetItemString(w->state->builtins, specials[i].name) == object)
            return specials[i].function;
    return NULL;
}
