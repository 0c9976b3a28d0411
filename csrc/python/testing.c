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

/* ---- scalar semantics ----------------------------------------------------------------------------------------------------- */

static Opcode find_opcode(const char *name)
{
    for (int opcode = 0; opcode < TT_OPCODES; opcode++)
        if (!strcmp(tt_op_infos[opcode].name, name))
            return (Opcode)opcode;
    tt_error(NULL, "unknown operation '%s'", name);
}

static const Type *find_scalar_type(Module *module, const char *name)
{
    for (TypeKind kind = 0; kind < TT_PTR; kind++)
        if (!strcmp(tt_type_name(kind), name))
            return tt_scalar_type(module, kind);
    tt_error(NULL, "unknown scalar type '%s'", name);
}

typedef struct Evaluation {
    const char *op, *from, *to;
    Scalar operands[3], result;
    bool folds, is_float;
    double numbers[3];
    long long integers[3];
} Evaluation;

static void evaluate(Arena *arena, Evaluation *e)
{
    Module *module = tt_new_module(arena);
    Opcode opcode = find_opcode(e->op);
    const Type *from = find_scalar_type(module, e->from), *to = find_scalar_type(module, e->to);
    for (int i = 0; i < 3; i++)
        if (tt_op_infos[opcode].rule == SELECT ? i > 0 && tt_is_float(from) : tt_is_float(from))
            e->operands[i].f = tt_round_to(from, e->numbers[i]);
        else
            e->operands[i].i = e->integers[i];
    e->is_float = tt_is_float(to);
    e->folds = tt_eval_scalar(opcode, from, to, e->operands, &e->result);
}

static bool read_number(PyObject *number, double *real, long long *integer)
{
    *real = PyFloat_AsDouble(number);
    *integer = PyLong_Check(number) ? PyLong_AsLongLong(number) : 0;
    return !PyErr_Occurred();
}

static PyObject *py_eval_scalar(PyObject *module, PyObject *args)
{
    (void)module;
    Evaluation e = {0};
    PyObject *values[3] = {NULL};
    if (!PyArg_ParseTuple(args, "sssO|OO", &e.op, &e.from, &e.to, &values[0], &values[1], &values[2]))
        return NULL;
    for (int i = 0; i < 3; i++)
        if (values[i] && !read_number(values[i], &e.numbers[i], &e.integers[i]))
            return NULL;
    Arena arena = {0};
    Trap trap;
    if (tt_try(&trap, &arena)) {
        evaluate(&arena, &e);
        tt_end_try(&trap);
    } else {
        set_exception(&trap.diag);
    }
    tt_arena_release(&arena);
    if (PyErr_Occurred())
        return NULL;
    if (!e.folds)
        return Py_NewRef(Py_None);
    return e.is_float ? PyFloat_FromDouble(e.result.f) : PyLong_FromLongLong(e.result.i);
}

PyMethodDef tt_testing_methods[] = {
    {"_parse_print", py_parse_print, METH_VARARGS,
     "_parse_print(text, locations=False) -> str\n--\n\nThe text as it is printed once parsed."},
    {"_verify", py_verify, METH_VARARGS,
     "_verify(text) -> str | None\n--\n\nThe IR with its failures marked, or None."},
    {"_eval_scalar", py_eval_scalar, METH_VARARGS,
     "_eval_scalar(op, operand_type, result_type, *operands) -> int | float | None\n--\n\n"
     "One elementwise operation on scalars, or None where it is not folded."},
    {NULL, NULL, 0, NULL},
};
