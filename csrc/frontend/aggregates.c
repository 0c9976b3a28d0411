/* Tuples with named fields: named tuples, and the aggregates of `triton.aggregate`. Their fields, methods and operators,
 * and how an aggregate is made: its __init__ runs in Python, on stand-ins for what only the kernel knows. What it does
 * with these, and calls of the language's functions, come back here and are built where the kernel made the aggregate. */
#include "frontend/semantic.h"
#include "frontend/walker.h"

/* ---- calls in Python, on stand-ins for run-time values --------------------------------------------------------------- */

typedef struct StandIns {
    Walker *w;
    PyObject *type;
    PyObject *compute; /* which Python computes with, and by which its stand-ins know whose they are */
    PyObject *marks;   /* what compile-time values are wrapped in; NULL: nothing */
    TT_VECTOR(Term) terms;
    const Loc *call; /* in the kernel */
    bool has_failed; /* what Python asked for; then the walk ends, whatever Python makes of the exception */
    Diagnostic failure; /* why */
    PyObject *cause;    /* the exception behind it, or NULL */
} StandIns;

static const char capsule_name[] = "triton.walk";

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
    return tt_keep(w, PyObject_CallFunction(all->type, "iO", all->terms.count - 1, all->compute));
}

static Term stood_for(Walker *w, const StandIns *all, PyObject *object)
{
    tt_check_depth(w);
    if ((PyObject *)Py_TYPE(object) == all->type) {
        if (tt_attribute(w, object, FIELD__compute) != all->compute)
            tt_fail(w, "this is a run-time value of another call, which Python kept");
        return all->terms.data[tt_int_attribute(w, object, FIELD__index)];
    }
    if (!PyTuple_Check(object))
        return tt_python_term(w, object);
    Term tuple = tt_tuple_like(w, object);
    for (int i = 0; i < tuple.count; i++)
        tuple.items[i] = stood_for(w, all, PyTuple_GetItem(object, i));
    return tt_with_known_fields(w, tuple);
}

/* The arguments of a call by Python. */
static Arguments read_call(Walker *w, const StandIns *all, PyObject *items, PyObject *keywords)
{
    Term tuple = stood_for(w, all, items);
    int capacity = (int)PyDict_Size(keywords);
    Arguments args = {.items = tuple.items,
                      .count = tuple.count,
                      .names = TT_NEW_ARRAY(w->arena, PyObject *, capacity),
                      .named = TT_NEW_ARRAY(w->arena, Term, capacity)};
    Py_ssize_t position = 0;
    PyObject *name, *value;
    while (PyDict_Next(keywords, &position, &name, &value)) {
        args.names[args.named_count] = tt_keep(w, Py_NewRef(name));
        args.named[args.named_count++] = stood_for(w, all, value);
    }
    return args;
}

/* compute(operation, args, keywords, place): what `tt_operate` knows by its text, or a call. */
static PyObject *compute(StandIns *all, PyObject *request)
{
    Walker *w = all->w;
    PyObject *operation, *items, *keywords, *place;
    if (!PyArg_ParseTuple(request, "OOOO", &operation, &items, &keywords, &place))
        tt_python_error(w);
    Loc *loc = tt_read_place(w, place);
    loc->caller = all->call;
    w->builder.loc = loc;
    Arguments args = read_call(w, all, items, keywords);
    Term result = PyUnicode_Check(operation) ? tt_operate(w, tt_utf8(w, operation), args.items, args.count)
                                             : tt_call_with(w, stood_for(w, all, operation), &args);
    w->builder.loc = all->call;
    return Py_NewRef(stand_in(w, all, result));
}

/* An exception of Python's, which may be asked whether there is an attribute; the walk fails with anything else. */
static PyObject *refuse(StandIns *all, PyObject *request, const Diagnostic *why)
{
    PyObject *type, *traceback, *operation = PyTuple_GetItem(request, 0);
    PyErr_Fetch(&type, &all->cause, &traceback);
    if (type)
        PyErr_NormalizeException(&type, &all->cause, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    bool is_attribute = why->kind == TT_USER_ERROR && PyUnicode_Check(operation) &&
                        !PyUnicode_CompareWithASCIIString(operation, ".");
    if (is_attribute)
        Py_CLEAR(all->cause);
    else
        all->failure = *why;
    all->has_failed = !is_attribute;
    PyErr_SetString(is_attribute ? PyExc_AttributeError : PyExc_RuntimeError,
                    why->message ? why->message : "");
    return NULL;
}

static PyObject *compute_for_python(PyObject *capsule, PyObject *request)
{
    StandIns *all = PyCapsule_GetPointer(capsule, capsule_name);
    Trap trap;
    if (!all)
        return NULL; /* the call has ended */
    if (all->has_failed) {
        PyErr_SetString(PyExc_RuntimeError, all->failure.message ? all->failure.message : "");
        return NULL;
    }
    if (!tt_try(&trap, all->w->arena)) {
        all->w->builder.loc = all->call;
        return refuse(all, request, &trap.diag);
    }
    PyObject *result = compute(all, request);
    tt_end_try(&trap);
    return result;
}

/* Raises what `compute` failed with. */
static _Noreturn void raise_failure(const StandIns *all)
{
    PyErr_Clear();
    if (all->cause)
        PyErr_Restore(Py_NewRef((PyObject *)Py_TYPE(all->cause)), all->cause, NULL);
    tt_raise(&all->failure);
}

Term tt_call_on_stand_ins(Walker *w, PyObject *function, const Arguments *args, bool marked)
{
    static const PyMethodDef method = {"compute", compute_for_python, METH_VARARGS, NULL};
    PyObject *module = tt_keep(w, PyImport_ImportModule("triton.language.aggregates"));
    StandIns all = {.w = w,
                    .type = tt_keep(w, PyObject_GetAttrString(module, "Placeholder")),
                    .marks = marked ? tt_language_object(w, "constexpr") : NULL,
                    .call = tt_here(w)};
    PyObject *capsule = tt_keep(w, PyCapsule_New(&all, capsule_name, NULL));
    all.compute = tt_keep(w, PyCFunction_New((PyMethodDef *)&method, capsule));
    PyObject *run = tt_keep(w, PyObject_GetAttrString(module, "run_for_kernel"));
    PyObject *tuple = tt_keep(w, PyTuple_New(args->count)), *keywords = tt_keep(w, PyDict_New());
    for (int i = 0; i < args->count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(stand_in(w, &all, args->items[i])));
    for (int i = 0; i < args->named_count; i++)
        if (PyDict_SetItem(keywords, args->names[i], stand_in(w, &all, args->named[i])))
            tt_python_error(w);
    PyObject *result = PyObject_CallFunctionObjArgs(run, all.compute, function, tuple, keywords, NULL);
    PyCapsule_SetName(capsule, "triton.walk that has ended");
    w->builder.loc = all.call;
    if (all.has_failed) {
        Py_XDECREF(result);
        raise_failure(&all);
    }
    return stood_for(w, &all, tt_keep(w, result));
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
    if (t.object && !PyUnicode_CompareWithASCIIString(name, "_replace"))
        return bind(w, tt_language_object(w, "aggregate_replace"), t);
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
