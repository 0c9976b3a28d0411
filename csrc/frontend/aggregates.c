/* Tuples with named fields: named tuples, and the aggregates of `triton.aggregate`. Their fields, methods and operators,
 * and how an aggregate is made: its __init__ runs in Python, on stand-ins for what only the kernel knows. */
#include "frontend/semantic.h"
#include "frontend/walker.h"

/* ---- calls in Python, on stand-ins for run-time values --------------------------------------------------------------- */

typedef struct StandIns {
    PyObject *type;
    PyObject *marks; /* what compile-time values are wrapped in; NULL: nothing */
    TT_VECTOR(Term) terms;
} StandIns;

PyObject *tt_class_tuple(Walker *w, Term t, PyObject *items)
{
    if (!t.object)
        return items;
    const char *make = tt_is_aggregate(w, t) ? "_of_values" : "_make";
    return tt_keep(w, PyObject_CallMethod(t.object, make, "(O)", items));
}

bool tt_is_constexpr_field(Walker *w, Term t, int i)
{
    PyObject *kept =
        t.kind == TERM_TUPLE && t.object ? tt_attribute_or_null(w, t.object, FIELD__constexprs) : NULL;
    return kept && PyTuple_GetItem(kept, i) == Py_True;
}

static const char *field_name(Walker *w, Term t, int i)
{
    return tt_utf8(w, PyTuple_GetItem(tt_attribute(w, t.object, FIELD__fields), i));
}

Term tt_with_known_fields(Walker *w, Term t)
{
    for (int i = 0; i < t.count; i++) {
        if (!tt_is_constexpr_field(w, t, i) || !tt_has_values(t.items[i]))
            continue;
        PyObject *known = tt_term_python(w, t.items[i]);
        if (!known)
            tt_fail_with_remedy(w, "annotate it with tl.tensor, or give it what is known at compile time",
                                "field `%s` of %s is a tl.constexpr, which cannot be a run-time value (%s)",
                                field_name(w, t, i), tt_describe(w, t), tt_describe(w, t.items[i]));
        t.items[i] = tt_python_term(w, known);
    }
    return t;
}

static PyObject *stand_in(Walker *w, StandIns *all, Term t)
{
    if (!tt_has_values(t) && all->marks)
        return tt_keep(w, PyObject_CallFunctionObjArgs(all->marks, tt_term_python(w, t), NULL));
    if (!tt_has_values(t))
        return tt_term_python(w, t);
    if (t.kind == TERM_TUPLE) {
        PyObject *tuple = tt_keep(w, PyTuple_New(t.count));
        for (int i = 0; i < t.count; i++)
            PyTuple_SetItem(tuple, i, Py_NewRef(stand_in(w, all, t.items[i])));
        return tt_class_tuple(w, t, tuple);
    }
    tt_push(w->arena, all->terms, t);
    return tt_keep(w, PyObject_CallFunction(all->type, "i", all->terms.count - 1));
}

static Term stood_for(Walker *w, const StandIns *all, PyObject *object)
{
    tt_check_depth(w);
    if ((PyObject *)Py_TYPE(object) == all->type)
        return all->terms.data[tt_int_attribute(w, object, FIELD_index)];
    if (!PyTuple_Check(object))
        return tt_python_term(w, object);
    int count = (int)PyTuple_Size(object);
    Term tuple = {.kind = TERM_TUPLE, .count = count, .items = TT_NEW_ARRAY(w->arena, Term, count)};
    if (!PyTuple_CheckExact(object) && tt_attribute_or_null(w, object, FIELD__fields))
        tuple.object = tt_keep(w, Py_NewRef((PyObject *)Py_TYPE(object)));
    for (int i = 0; i < count; i++)
        tuple.items[i] = stood_for(w, all, PyTuple_GetItem(object, i));
    return tt_with_known_fields(w, tuple);
}

Term tt_call_on_stand_ins(Walker *w, PyObject *function, const Arguments *args, bool marked)
{
    PyObject *module = tt_keep(w, PyImport_ImportModule("triton.language.aggregates"));
    StandIns all = {.type = tt_keep(w, PyObject_GetAttrString(module, "Placeholder")),
                    .marks = marked ? tt_language_object(w, "constexpr") : NULL};
    PyObject *tuple = tt_keep(w, PyTuple_New(args->count)), *keywords = tt_keep(w, PyDict_New());
    for (int i = 0; i < args->count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(stand_in(w, &all, args->items[i])));
    for (int i = 0; i < args->named_count; i++)
        if (PyDict_SetItem(keywords, args->names[i], stand_in(w, &all, args->named[i])))
            tt_python_error(w);
    return stood_for(w, &all, tt_keep(w, PyObject_Call(function, tuple, keywords)));
}

/* aggregate_replace(value, field=..): a copy with other fields. */
Term tt_replace_fields(Walker *w, const Arguments *args)
{
    Term t = args->count == 1 ? args->items[0] : tt_none(w);
    if (t.kind != TERM_TUPLE || !t.object)
        tt_fail(w, "tl.aggregate_replace expects an aggregate instance and the fields that change, not %s",
                tt_describe(w, t));
    PyObject *fields = tt_attribute(w, t.object, FIELD__fields);
    t.items = tt_arena_copy(w->arena, t.items, sizeof(Term) * (size_t)t.count);
    for (int i = 0; i < args->named_count; i++) {
        Py_ssize_t at = PySequence_Index(fields, args->names[i]);
        PyErr_Clear();
        if (at < 0 || at >= t.count)
            tt_fail(w, "%s has no field '%s'", tt_describe(w, t), tt_utf8(w, args->names[i]));
        t.items[at] = args->named[i];
    }
    return tt_with_known_fields(w, t);
}

/* ---- fields and methods ---------------------------------------------------------------------------------------------- */

bool tt_is_aggregate(Walker *w, Term t)
{
    return t.kind == TERM_TUPLE && t.object && tt_attribute_or_null(w, t.object, FIELD__static);
}

/* Position of a field, or -1. */
static int field_index(Walker *w, PyObject *type, PyObject *name)
{
    PyObject *fields = tt_attribute(w, type, FIELD__fields);
    for (Py_ssize_t i = 0; PyTuple_Check(fields) && i < PyTuple_Size(fields); i++)
        if (PyObject_RichCompareBool(PyTuple_GetItem(fields, i), name, Py_EQ) == 1)
            return (int)i;
    return -1;
}

/* Does a call of it work on what only the kernel knows? */
static bool is_of_kernels(Walker *w, PyObject *function)
{
    return tt_find_jit(w, function) || tt_object_kind(w, function) == OBJECT_CONSTEXPR_FUNCTION;
}

static Term bind(Walker *w, PyObject *function, Term self)
{
    Term *first = tt_arena_copy(w->arena, &self, sizeof self);
    return (Term){.kind = TERM_METHOD, .count = 1, .object = function, .items = first};
}

bool tt_find_method(Walker *w, Term t, const char *name, Term *method)
{
    PyObject *function = t.kind == TERM_TUPLE && t.object ? PyObject_GetAttrString(t.object, name) : NULL;
    tt_look_away(w);
    if (!function || !is_of_kernels(w, tt_keep(w, function)))
        return false;
    *method = bind(w, function, t);
    return true;
}

/* tl.tuple_type of the items' types, a list. */
static Term type_of_tuple(Walker *w, Term t, PyObject *name)
{
    PyObject *types = tt_keep(w, PyList_New(0));
    for (int i = 0; i < t.count; i++)
        if (PyList_Append(types, tt_term_python(w, tt_walk_attribute_of(w, t.items[i], name))))
            tt_python_error(w);
    PyObject *fields = t.object ? tt_attribute(w, t.object, FIELD__fields) : Py_None;
    PyObject *make = tt_language_object(w, "tuple_type");
    return tt_new_python_term(w, PyObject_CallFunctionObjArgs(make, types, fields, NULL));
}

/* Methods, properties and constants of a class; false where it has none that a kernel can use. */
static bool find_in_class(Walker *w, Term t, PyObject *name, Term *found)
{
    PyObject *object = t.object ? PyObject_GetAttr(t.object, name) : NULL;
    tt_look_away(w);
    if (!object)
        return false;
    tt_keep(w, object);
    PyObject *is_static = tt_attribute_or_null(w, t.object, FIELD__static);
    bool is_property = PyObject_TypeCheck(object, &PyProperty_Type);
    if (is_property)
        object = tt_keep(w, PyObject_GetAttrString(object, "fget"));
    bool is_constant = tt_object_kind(w, object) == OBJECT_CONSTEXPR ||
                       (!PyCallable_Check(object) && !PyObject_HasAttrString(object, "__get__"));
    if (is_static && (is_constant || PySequence_Contains(is_static, name) == 1))
        *found = tt_python_term(w, object);
    else if (!is_of_kernels(w, object))
        return false;
    else if (is_property)
        *found = tt_call(w, tt_python_term(w, object), &t, 1);
    else
        *found = bind(w, object, t);
    return true;
}

Term tt_tuple_attribute(Walker *w, Term t, PyObject *name)
{
    Term found;
    int index = t.object ? field_index(w, t.object, name) : -1;
    if (index >= 0 && index < t.count)
        return t.items[index];
    if (!PyUnicode_CompareWithASCIIString(name, "type"))
        return type_of_tuple(w, t, name);
    if (find_in_class(w, t, name, &found))
        return found;
    PyObject *tuple = tt_term_python(w, t);
    PyObject *value = tuple ? PyObject_GetAttr(tuple, name) : NULL;
    if (!value) {
        tt_look_away(w);
        const char *remedy =
            !PyUnicode_CompareWithASCIIString(name, "append")
                ? "nothing grows in a kernel: make a new tuple, t = t + (x,), in a tl.static_range "
                  "loop, or write each part to memory with tl.store"
                : "take its items by index, or unpack it";
        tt_fail_with_remedy(w, remedy, "%s has no attribute `%s`", tt_describe(w, t), tt_utf8(w, name));
    }
    return tt_new_python_term(w, value);
}

/* ---- operators ------------------------------------------------------------------------------------------------------- */

/* What Python calls the methods, without underscores. */
static const char *const methods[] = {
    [OPERATOR_ADD] = "add",
    [OPERATOR_SUB] = "sub",
    [OPERATOR_MUL] = "mul",
    [OPERATOR_DIV] = "truediv",
    [OPERATOR_FLOORDIV] = "floordiv",
    [OPERATOR_MOD] = "mod",
    [OPERATOR_POW] = "pow",
    [OPERATOR_MATMUL] = "matmul",
    [OPERATOR_LSHIFT] = "lshift",
    [OPERATOR_RSHIFT] = "rshift",
    [OPERATOR_AND] = "and",
    [OPERATOR_OR] = "or",
    [OPERATOR_XOR] = "xor",
    [OPERATOR_EQ] = "eq",
    [OPERATOR_NE] = "ne",
    [OPERATOR_LT] = "lt",
    [OPERATOR_LE] = "le",
    [OPERATOR_GT] = "gt",
    [OPERATOR_GE] = "ge",
    [OPERATOR_NEG] = "neg",
    [OPERATOR_POS] = "pos",
    [OPERATOR_INVERT] = "invert",
};

static bool find_operator(Walker *w, Operator op, const char *prefix, Term t, Term *method)
{
    if (t.kind != TERM_TUPLE || !t.object || op >= TT_COUNT(methods) || !methods[op])
        return false;
    return tt_find_method(w, t, tt_arena_format(w->arena, "__%s%s__", prefix, methods[op]), method);
}

bool tt_own_binary(Walker *w, Operator op, Term a, Term b, Term *result)
{
    Term method;
    if (find_operator(w, op, "", a, &method))
        *result = tt_call(w, method, &b, 1);
    else if (!tt_is_comparison(op) && find_operator(w, op, "r", b, &method))
        *result = tt_call(w, method, &a, 1);
    else
        return false;
    return true;
}

bool tt_own_unary(Walker *w, Operator op, Term a, Term *result)
{
    Term method;
    if (!find_operator(w, op, "", a, &method))
        return false;
    *result = tt_call(w, method, NULL, 0);
    return true;
}
