/* Running IR text on the CPU, for tests: arrays come through the buffer protocol, numbers take the parameter's type. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "cpu/cpu.h"

enum { MOST_ARGUMENTS = 64 };

typedef struct CpuJob {
    Arena arena;
    const char *text, *what;
    bool passes;
    int argument_count, buffer_count, array_count;
    Py_buffer buffers[MOST_ARGUMENTS];
    double numbers[MOST_ARGUMENTS];
    uint64_t slots[MOST_ARGUMENTS];
    bool is_float[MOST_ARGUMENTS];
    int32_t grid[3];
    const char *result, *error, *printed;
} CpuJob;

/* ---- arguments ------------------------------------------------------------------------------------------------------------------ */

static bool read_argument(CpuJob *job, PyObject *argument, int index)
{
    job->is_float[index] = PyFloat_Check(argument);
    if (job->is_float[index]) {
        job->numbers[index] = PyFloat_AsDouble(argument);
        return true;
    }
    if (PyLong_Check(argument)) {
        job->slots[index] = PyLong_AsUnsignedLongLongMask(argument);
        return !PyErr_Occurred();
    }
    Py_buffer *buffer = &job->buffers[job->buffer_count];
    if (PyObject_GetBuffer(argument, buffer, PyBUF_ANY_CONTIGUOUS | PyBUF_WRITABLE) < 0)
        return false;
    job->buffer_count++;
    job->slots[index] = (uintptr_t)buffer->buf;
    return true;
}

static bool read_arguments(CpuJob *job, PyObject *list)
{
    job->argument_count = (int)PyList_Size(list);
    if (job->argument_count > MOST_ARGUMENTS) {
        PyErr_SetString(PyExc_ValueError, "too many arguments");
        return false;
    }
    for (int i = 0; i < job->argument_count; i++)
        if (!read_argument(job, PyList_GetItem(list, i), i))
            return false;
    return true;
}

static void encode_floats(CpuJob *job, const Function *kernel)
{
    if (kernel->body->arg_count != job->argument_count)
        tt_error(NULL, "the kernel has %d parameters, not %d", kernel->body->arg_count, job->argument_count);
    for (int i = 0; i < job->argument_count; i++) {
        const Type *type = kernel->body->args[i]->type;
        if (!job->is_float[i])
            continue;
        if (tt_float_format(type))
            job->slots[i] = tt_float_encode(tt_float_format(type), job->numbers[i], false);
        else
            memcpy(&job->slots[i], &job->numbers[i], sizeof(double));
    }
}

/* ---- work ------------------------------------------------------------------------------------------------------------------------- */

static CpuKernel *compile(CpuJob *job)
{
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    const char *mistakes = tt_verify(module, &job->arena);
    if (mistakes)
        tt_error(NULL, "%s", mistakes);
    if (job->passes)
        tt_run_pipeline(module);
    if (!job->what)
        encode_floats(job, module->functions);
    return tt_cpu_compile(module, &(CpuOptions){0}, &job->arena);
}

static void run(CpuJob *job)
{
    CpuKernel *kernel = compile(job);
    if (job->what)
        job->result = tt_cpu_text(kernel, job->what, &job->arena);
    else
        job->error = tt_cpu_launch(kernel, job->slots, job->grid, &job->arena, &job->printed).text;
    tt_cpu_release(kernel);
}

static PyObject *finish(CpuJob *job, const Diagnostic *diag)
{
    PyObject *result = NULL;
    if (diag)
        PyErr_SetString(diag->kind == TT_USER_ERROR ? PyExc_ValueError : PyExc_RuntimeError, diag->message);
    else if (job->error)
        PyErr_SetString(PyExc_RuntimeError, job->error);
    else if (job->what ? job->result : job->printed)
        result = PyUnicode_FromString(job->what ? job->result : job->printed);
    else
        result = Py_NewRef(Py_None);
    return result;
}

static PyObject *run_job(CpuJob *job)
{
    Trap trap;
    PyObject *result;
    if (tt_try(&trap, &job->arena)) {
        run(job);
        tt_end_try(&trap);
        result = finish(job, NULL);
    } else {
        result = finish(job, &trap.diag);
    }
    for (int i = 0; i < job->buffer_count; i++)
        PyBuffer_Release(&job->buffers[i]);
    tt_arena_release(&job->arena);
    return result;
}

static PyObject *run_cpu(PyObject *module, PyObject *args)
{
    CpuJob job = {.grid = {1, 1, 1}};
    PyObject *list;
    int passes = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!|(iii)p", &job.text, &PyList_Type, &list, &job.grid[0], &job.grid[1],
                          &job.grid[2], &passes))
        return NULL;
    job.passes = passes;
    if (read_arguments(&job, list))
        return run_job(&job);
    for (int i = 0; i < job.buffer_count; i++)
        PyBuffer_Release(&job.buffers[i]);
    return NULL;
}

static PyObject *cpu_text(PyObject *module, PyObject *args)
{
    CpuJob job = {0};
    int passes = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss|p", &job.text, &job.what, &passes))
        return NULL;
    job.passes = passes;
    return run_job(&job);
}

PyMethodDef tt_testing_cpu_methods[] = {
    {"_run_cpu", run_cpu, METH_VARARGS,
     "_run_cpu(text, arguments, grid=(1, 1, 1), passes=False) -> str | None\n--\n\nRuns the first function "
     "of the IR "
     "text; what it printed."},
    {"_cpu_text", cpu_text, METH_VARARGS,
     "_cpu_text(text, what, passes=False) -> str\n--\n\nIts LLVM IR ('llir') or assembly ('asm')."},
    {NULL, NULL, 0, NULL},
};
