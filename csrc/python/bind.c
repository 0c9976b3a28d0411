/* The arguments of a call to parameters and options, as Python binds them. What goes wrong is put into words by
 * triton.runtime.binding, from the same arguments. */
#include "python/extension.h"

static PyObject *bind_error(const Kernel *kernel, Py_ssize_t count, PyObject *keywords)
{
    PyObject *function = tt_import("triton.runtime.binding", "binding_error");
    PyObject *names = keywords ? Py_NewRef(keywords) : PyTuple_New(0);
    PyObject *error =
        function && names ? PyObject_CallFunction(function, "OnO", (PyObject *)kernel, count, names) : NULL;
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(names);
    Py_XDECREF(function);
    return NULL;
}

/* Names in calls are interned nearly always, and in the order of the parameters: they are compared by pointer, from the
 * parameter behind the last one on. */
static int find_param(const Kernel *kernel, PyObject *name, bool interned, int from)
{
    for (int k = 0, i = from; k < kernel->param_count; k++, i++) {
        if (i >= kernel->param_count)
            i = 0;
        const Param *param = &kernel->params[i];
        if (param->kind != PARAM_ANY && param->kind != PARAM_KEYWORD_ONLY)
            continue;
        if (interned ? param->name == name : !PyUnicode_Compare(param->name, name))
            return i;
    }
    return -1;
}

/* Names that a program puts together ("BLOCK_" + axis) are not interned, but come in that order, too. */
static PyObject *expected_name(const Kernel *kernel, PyObject *name, int at)
{
    PyObject *expected = at < kernel->param_count ? kernel->params[at].name : name;
    return expected == name || PyUnicode_Compare(expected, name) ? name : expected;
}

static int find_option(const State *state, PyObject *name, bool interned)
{
    for (int i = 0; i < TT_OPTION_COUNT; i++)
        if (interned ? state->options[i] == name : !PyUnicode_Compare(state->options[i], name))
            return i;
    return -1;
}

/* By pointers, or for names that are no plain strings by their text. */
static void find_name(const Kernel *kernel, PyObject *name, bool interned, int from, int *param, int *option)
{
    *param = find_param(kernel, name, interned, from);
    *option = *param < 0 || kernel->has_option_names ? find_option(kernel->state, name, interned) : -1;
}

/* To a parameter, an option, or both if one is named like the other; else to the mapping of the rest. `after` is the
 * parameter of the keyword before. */
static bool bind_keyword(const Kernel *kernel, PyObject *name, PyObject *value, int *after, Call *call)
{
    int param, option;
    name = expected_name(kernel, name, *after + 1);
    find_name(kernel, name, true, *after + 1, &param, &option);
    if (param < 0 && option < 0) {
        PyObject *interned = Py_NewRef(name);
        PyUnicode_InternInPlace(&interned);
        find_name(kernel, interned, PyUnicode_CheckExact(interned), *after + 1, &param, &option);
        Py_DECREF(interned);
    }
    if (param >= 0)
        *after = param;
    if (option >= 0) {
        call->options[option] = value;
        call->has_options = true;
    }
    if (param >= 0) {
        bool twice = call->values[param] != NULL;
        call->values[param] = value;
        return !twice;
    }
    if (kernel->meta < 0 || (option >= 0 && tt_option_kinds[option] == OPTION_LAUNCH))
        return option >= 0;
    if (!call->meta)
        call->meta = PyDict_New();
    return call->meta && PyDict_SetItem(call->meta, name, value) == 0;
}

/* Positional parameters come first among the parameters, so that they are copied in one go. */
static bool bind_positional(const Kernel *kernel, PyObject *const *args, Py_ssize_t count, Call *call)
{
    Py_ssize_t direct = TT_MIN(count, kernel->positional_count);
    memcpy(call->values, args, sizeof *args * (size_t)direct);
    if (kernel->variadic < 0)
        return count == direct;
    call->variadic = PyTuple_New(count - direct);
    for (Py_ssize_t i = direct; call->variadic && i < count; i++)
        PyTuple_SetItem(call->variadic, i - direct, Py_NewRef(args[i]));
    call->values[kernel->variadic] = call->variadic;
    return call->variadic != NULL;
}

static bool fill_defaults(const Kernel *kernel, Call *call)
{
    if (kernel->meta >= 0) {
        if (!call->meta)
            call->meta = PyDict_New();
        call->values[kernel->meta] = call->meta;
    }
    for (int i = 0; i < kernel->param_count; i++)
        if (!call->values[i] && !(call->values[i] = kernel->params[i].default_value))
            return false;
    return true;
}

bool tt_bind_call(const Kernel *kernel, PyObject *const *args, Py_ssize_t count, PyObject *keywords,
                  Call *call)
{
    PyObject **values = call->values;
    memset(values, 0, sizeof *values * (size_t)kernel->param_count);
    *call = (Call){.values = values};
    bool done = bind_positional(kernel, args, count, call);
    Py_ssize_t keyword_count = keywords ? PyTuple_Size(keywords) : 0;
    int after = (int)TT_MIN(count, kernel->positional_count) - 1;
    for (Py_ssize_t i = 0; done && i < keyword_count; i++)
        done = bind_keyword(kernel, PyTuple_GetItem(keywords, i), args[count + i], &after, call);
    done = done && fill_defaults(kernel, call);
    return done || PyErr_Occurred() ? done : bind_error(kernel, count, keywords) != NULL;
}

void tt_call_release(Call *call)
{
    Py_CLEAR(call->variadic);
    Py_CLEAR(call->meta);
}

/* ---- for the tuners, which bind no arguments themselves ---- */

PyObject *tt_named_arguments(PyObject *module, PyObject *const *arguments, Py_ssize_t given)
{
    (void)module;
    if (given != 3 || !PyList_Check(arguments[0]) || !PyTuple_Check(arguments[1]) ||
        !PyDict_Check(arguments[2])) {
        PyErr_SetString(PyExc_TypeError, "named_arguments() takes a list, a tuple and a dict");
        return NULL;
    }
    PyObject *names = arguments[0], *values = arguments[1], *named = PyDict_New();
    Py_ssize_t count = TT_MIN(PyList_Size(names), PyTuple_Size(values));
    bool done = named != NULL;
    for (Py_ssize_t i = 0; done && i < count; i++)
        done = !PyDict_SetItem(named, PyList_GetItem(names, i), PyTuple_GetItem(values, i));
    if (!done || PyDict_Update(named, arguments[2]))
        Py_CLEAR(named);
    return named;
}

/* Appends the name of its `dtype`, if it has one: the same text each time, so that keys are compared by pointer. */
static bool append_dtype(const State *state, PyObject *value, PyObject *list)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyBool_Type || value == Py_None)
        return true;
    PyObject *dtype = PyObject_GetAttr(value, state->names.dtype);
    if (!dtype) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            return false;
        PyErr_Clear();
        return true;
    }
    PyObject *text = Py_XNewRef(PyDict_GetItemWithError(state->dtype_texts, dtype));
    if (!text && !PyErr_Occurred() && (text = PyObject_Str(dtype)) &&
        PyDict_SetItem(state->dtype_texts, dtype, text))
        Py_CLEAR(text);
    bool done = text && !PyList_Append(list, text);
    Py_XDECREF(text);
    Py_DECREF(dtype);
    return done;
}

PyObject *tt_tuning_key(PyObject *module, PyObject *const *arguments, Py_ssize_t given)
{
    if (given != 2 || !PyTuple_Check(arguments[0]) || !PyTuple_Check(arguments[1])) {
        PyErr_SetString(PyExc_TypeError, "tuning_key() takes two tuples");
        return NULL;
    }
    const State *state = PyModule_GetState(module);
    PyObject *values = arguments[0], *places = arguments[1], *list = PyList_New(0);
    Py_ssize_t count = PyTuple_Size(values), chosen = PyTuple_Size(places);
    bool done = list != NULL;
    for (Py_ssize_t i = 0; done && i < chosen; i++) {
        Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GetItem(places, i));
        if (place >= 0 && place < count)
            done = !PyList_Append(list, PyTuple_GetItem(values, place));
    }
    for (Py_ssize_t i = 0; done && i < count; i++)
        done = append_dtype(state, PyTuple_GetItem(values, i), list);
    PyObject *key = done && !PyErr_Occurred() ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return key;
}
