/* Diagnostics and failed launches as Python exceptions; triton.errors puts them into words. */
#include "python/extension.h"

/* A file name need not be UTF-8. */
static PyObject *text(const char *bytes)
{
    return bytes ? PyUnicode_DecodeUTF8(bytes, (Py_ssize_t)strlen(bytes), "replace") : Py_NewRef(Py_None);
}

/* A location as a dict, its callers inside; None when it is unknown. */
static PyObject *location(const Loc *loc)
{
    if (!loc)
        return Py_NewRef(Py_None);
    return Py_BuildValue("{sN sN si si si si sN}", "file", text(loc->file), "function", text(loc->function),
                         "line", loc->line, "column", loc->column, "end_line", loc->end_line, "end_column",
                         loc->end_column, "caller", location(loc->caller));
}

static PyObject *notes(const Diagnostic *diag)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < diag->note_count; i++) {
        PyObject *note = Py_BuildValue("(NN)", location(diag->notes[i].loc), text(diag->notes[i].message));
        if (!note || PyList_Append(list, note) < 0)
            Py_CLEAR(list);
        Py_XDECREF(note);
    }
    return list;
}

/* Sets the exception that triton.errors.<function> makes. One that is set already becomes its cause. */
static void set_from(const char *function, PyObject *arguments)
{
    PyObject *type = NULL, *cause = NULL, *traceback = NULL;
    PyErr_Fetch(&type, &cause, &traceback);
    PyErr_NormalizeException(&type, &cause, &traceback);
    if (traceback)
        PyException_SetTraceback(cause, traceback);
    PyObject *make = arguments ? tt_import("triton.errors", function) : NULL;
    PyObject *error = make ? PyObject_CallObject(make, arguments) : NULL;
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    if (error && cause)
        PyException_SetCause(error, cause); /* takes the reference */
    else
        Py_XDECREF(cause);
    if (error)
        PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    Py_XDECREF(make);
    Py_XDECREF(arguments);
}

/* What the module looks like, if printing it does not fail as well. */
static char *print_safely(const Module *module, Arena *arena)
{
    Trap trap;
    if (!module || !tt_try(&trap, arena))
        return NULL;
    char *printed = tt_print_module(module, arena, 0);
    tt_end_try(&trap);
    return printed;
}

static void set_internal(const Diagnostic *diag, const Module *module)
{
    Arena arena = {0};
    set_from("internal_error",
             Py_BuildValue("(NN)", text(diag->message), text(print_safely(module, &arena))));
    tt_arena_release(&arena);
}

static void set_compilation(const char *kind, const Diagnostic *diag)
{
    set_from("compilation_error", Py_BuildValue("(sNNNN)", kind, text(diag->message), location(diag->loc),
                                                text(diag->remedy), notes(diag)));
}

void tt_set_error(const Diagnostic *diag, const Module *module)
{
    switch (diag->kind) {
    case TT_PYTHON_ERROR:
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_SystemError, "a compile-time expression failed and left no exception");
        return;
    case TT_OUT_OF_MEMORY:
        PyErr_SetString(PyExc_MemoryError, diag->message);
        return;
    case TT_BUG:
        set_internal(diag, module);
        return;
    case TT_OUT_OF_RESOURCES:
        set_from("out_of_resources",
                 Py_BuildValue("(LLNNNNN)", (long long)diag->needed, (long long)diag->available,
                               text(diag->resource), text(diag->message), location(diag->loc),
                               text(diag->remedy), notes(diag)));
        return;
    case TT_DEVICE_ERROR:
        set_from("cuda_error", Py_BuildValue("(NN)", text(diag->message), text(diag->remedy)));
        return;
    case TT_UNSUPPORTED:
        set_compilation("unsupported", diag);
        return;
    case TT_FAILED_ASSERTION:
        set_compilation("assertion", diag);
        return;
    case TT_USER_ERROR:
        set_compilation("error", diag);
    }
}

void tt_set_launch_diagnostic(const Compiled *compiled, const int32_t grid[3], const Diagnostic *diag)
{
    if (diag->kind == TT_DEVICE_ERROR)
        set_from("cuda_error", Py_BuildValue("(NNO(iii))", text(diag->message), text(diag->remedy),
                                             compiled->info, grid[0], grid[1], grid[2]));
    else
        tt_set_error(diag, NULL);
}

void tt_set_launch_error(const Compiled *compiled, const FailureText *failure)
{
    static const char *const kinds[FAILURE_KINDS] = {"other",    "assertion", "access",
                                                     "overflow", "division",  "race"};
    set_from("launch_error",
             Py_BuildValue("(OsN)", compiled->kernel->name, kinds[failure->kind], text(failure->text)));
}
