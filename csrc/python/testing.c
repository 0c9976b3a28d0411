/* What the tests reach of the compiler's inside: IR text goes in, text comes out. Mistakes in the text are ValueErrors
 * ("line:column: message"), failures of the compiler RuntimeErrors. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "opt/opt.h"

/* A request: the arguments, and the text that the work makes of them (NULL: None). */
typedef struct Job {
    Arena arena;
    const char *text, *name;
    const char *result;
} Job;

static PyObject *set_exception(const Diagnostic *diag)
{
    if (diag->kind == TT_USER_ERROR && diag->loc)
        PyErr_Format(PyExc_ValueError, "%d:%d: %s", diag->loc->line, diag->loc->column, diag->message);
    else if (diag->kind == TT_OUT_OF_MEMORY)
        PyErr_NoMemory();
    else
        PyErr_SetString(diag->kind == TT_USER_ERROR ? PyExc_ValueError : PyExc_RuntimeError, diag->message);
    return NULL;
}

static PyObject *run_job(Job *job, void (*work)(Job *job))
{
    Trap trap;
    PyObject *result;
    if (tt_try(&trap, &job->arena)) {
        work(job);
        tt_end_try(&trap);
        result = job->result ? PyUnicode_FromString(job->result) : Py_NewRef(Py_None);
    } else {
        result = set_exception(&trap.diag);
    }
    tt_arena_release(&job->arena);
    return result;
}

static void parse_print(Job *job)
{
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    job->result = tt_print_module(module, &job->arena, job->name ? TT_PRINT_LOCATIONS : 0);
}

static void verify(Job *job)
{
    job->result = tt_verify(tt_parse_module(&job->arena, job->text, "text"), &job->arena);
}

static PyObject *py_parse_print(PyObject *module, PyObject *args)
{
    (void)module;
    Job job = {0};
    int locations = 0;
    if (!PyArg_ParseTuple(args, "s|p", &job.text, &locations))
        return NULL;
    job.name = locations ? "" : NULL;
    return run_job(&job, parse_print);
}

static PyObject *py_verify(PyObject *module, PyObject *args)
{
    (void)module;
    Job job = {0};
    return PyArg_ParseTuple(args, "s", &job.text) ? run_job(&job, verify) : NULL;
}

PyMethodDef tt_testing_methods[] = {
    {"_parse_print", py_parse_print, METH_VARARGS,
     "_parse_print(text, locations=False) -> str\n--\n\nThe text as it is printed once parsed."},
    {"_verify", py_verify, METH_VARARGS,
     "_verify(text) -> str | None\n--\n\nThe IR with its failures marked, or None."},
    {NULL, NULL, 0, NULL},
};
