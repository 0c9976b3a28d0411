/* How terms are called in messages, and the errors that the walker and the language raise at the current place. */
#include "frontend/walker.h"

/* KeyboardInterrupt and its like are nobody's error, and memory is short whatever the object. */
static bool is_of_an_object(PyObject *type)
{
    return PyErr_GivenExceptionMatches(type, PyExc_Exception) &&
           !PyErr_GivenExceptionMatches(type, PyExc_MemoryError);
}

bool tt_forgive(void)
{
    PyObject *type = PyErr_Occurred();
    if (type && !is_of_an_object(type))
        return false;
    PyErr_Clear();
    return true;
}

void tt_forget(void)
{
    PyObject *type = PyErr_Occurred();
    bool is_interrupt = type && PyErr_GivenExceptionMatches(type, PyExc_KeyboardInterrupt);
    PyErr_Clear();
    if (is_interrupt)
        PyErr_SetInterrupt();
}

void tt_look_away(Walker *w)
{
    if (!tt_forgive())
        tt_python_error(w);
}

/* repr() of an object, cut off when long. */
static const char *short_repr(Walker *w, PyObject *object)
{
    enum { LONGEST = 80 };
    PyObject *repr = PyObject_Repr(object);
    if (!repr) {
        tt_look_away(w);
        return "?";
    }
    const char *text = tt_utf8(w, repr);
    size_t length = strlen(text);
    if (length > LONGEST) {
        length = LONGEST - 3;
        while (length && ((unsigned char)text[length] & 0xc0) == 0x80)
            length--; /* not inside a character */
        text = tt_arena_format(w->arena, "%.*s...", (int)length, text);
    } else {
        text = tt_arena_strdup(w->arena, text);
    }
    Py_DECREF(repr);
    return text;
}

static const char *name_of(Walker *w, PyObject *object)
{
    PyObject *name = tt_attribute_or_null(w, object, FIELD___name__);
    return name && PyUnicode_Check(name) ? tt_utf8(w, name) : short_repr(w, object);
}

static const char *describe_object(Walker *w, PyObject *object)
{
    ObjectKind kind = tt_object_kind(w, object);
    const Dtype *dtype = tt_dtype_from_object(w, object);
    if (object == Py_None)
        return "None";
    if (PyLong_Check(object) || PyFloat_Check(object))
        return tt_arena_format(w->arena, "the constexpr %s", short_repr(w, object));
    if (PyUnicode_Check(object))
        return tt_arena_format(w->arena, "the string %s", short_repr(w, object));
    if (dtype)
        return tt_arena_format(w->arena, "the dtype %s", dtype->name);
    if (kind == OBJECT_JIT || PyCallable_Check(object))
        return tt_arena_format(w->arena, "the %s %s", PyType_Check(object) ? "class" : "function",
                               name_of(w, object));
    if (PyModule_Check(object))
        return tt_arena_format(w->arena, "the module %s", name_of(w, object));
    const char *type = name_of(w, (PyObject *)Py_TYPE(object));
    return tt_arena_format(w->arena, "%s %s", strchr("aeiouAEIOU", type[0]) ? "an" : "a", type);
}

static const char *describe_value(Walker *w, Term t)
{
    const int64_t *shape;
    int rank = tt_term_shape(t, &shape);
    if (!rank)
        return t.dtype->name;
    Text text = {.arena = w->arena};
    tt_text_add(&text, "%s[", t.dtype->name);
    for (int i = 0; i < rank; i++)
        tt_text_add(&text, "%s%lld", i ? ", " : "", (long long)shape[i]);
    tt_text_add(&text, "]");
    return text.data;
}

/* A tuple with its class and, since they are part of its type, its compile-time fields that are known: a Pair (scale=3). */
static const char *describe_tuple(Walker *w, Term t)
{
    if (!t.object)
        return tt_arena_format(w->arena, "a tuple of %d", t.count);
    Text text = {.arena = w->arena};
    tt_text_add(&text, "a %s", name_of(w, t.object));
    bool any = false;
    for (int i = 0; i < t.count; i++) {
        PyObject *known = tt_is_constexpr_field(w, t, i) ? tt_term_python(w, t.items[i]) : NULL;
        if (!known)
            continue;
        PyObject *name = PyTuple_GetItem(tt_attribute(w, t.object, FIELD__fields), i);
        tt_text_add(&text, "%s%s=%s", any ? ", " : " (", tt_utf8(w, name), short_repr(w, known));
        any = true;
    }
    tt_text_add(&text, "%s", any ? ")" : "");
    return text.data;
}

const char *tt_describe(Walker *w, Term t)
{
    switch (t.kind) {
    case TERM_UNDEFINED:
        return "nothing";
    case TERM_VALUE:
        return describe_value(w, t);
    case TERM_PYTHON:
        return describe_object(w, t.object);
    case TERM_TUPLE:
        return describe_tuple(w, t);
    case TERM_SLICE:
        return "a slice";
    case TERM_BLOCK_POINTER:
        return "a block pointer";
    case TERM_METHOD:
        return tt_arena_format(w->arena, "the method %s", name_of(w, t.object));
    }
    return "?";
}

/* ---- errors --------------------------------------------------------------------------------------------------------- */

static _Noreturn void fail_v(Walker *w, const char *remedy, const char *format, va_list args)
{
    Text text = {.arena = w->arena};
    tt_text_add_v(&text, format, args);
    va_end(args);
    tt_raise(&(Diagnostic){.kind = TT_USER_ERROR, .loc = tt_here(w), .message = text.data, .remedy = remedy});
}

void tt_fail(Walker *w, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_v(w, NULL, format, args);
}

void tt_fail_with_remedy(Walker *w, const char *remedy, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fail_v(w, remedy, format, args);
}

static const char about_none[] =
    "None is what a function without `return` gives, and what an argument may be: give it a "
    "value, or compare it by `is` and `is not`";

const char *tt_none_remedy(Term t) { return tt_is_none(t) ? about_none : NULL; }

void tt_none_operand(Walker *w, const char *what)
{
    tt_fail_with_remedy(w, about_none, "%s does not work on None", what);
}

/* The exception stays set: whoever makes the Python error of the diagnostic chains it as the cause. */
void tt_python_error(Walker *w)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    if (!type)
        tt_bug("a Python call failed without an exception");
    /* Before there is a place, an exception speaks for itself. */
    if (!is_of_an_object(type) || !tt_here(w)) {
        PyErr_Restore(type, value, traceback);
        tt_raise(&(Diagnostic){.kind = TT_PYTHON_ERROR, .loc = tt_here(w), .message = "a Python exception"});
    }
    PyObject *text = value ? PyObject_Str(value) : NULL;
    if (!text)
        tt_look_away(w);
    const char *kind = name_of(w, type);
    const char *said = text ? tt_arena_strdup(w->arena, tt_utf8(w, text)) : "";
    Py_XDECREF(text);
    kind = tt_arena_strdup(w->arena, kind);
    tt_look_away(w);
    PyErr_Restore(type, value, traceback);
    tt_fail(w, "evaluating this at compile time raised %s%s%s", kind, said[0] ? ": " : "", said);
}
