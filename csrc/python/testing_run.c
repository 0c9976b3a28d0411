/* Running IR text on the CPU or the simulator, for tests: arrays come through the buffer protocol, numbers take the
 * parameter's type. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "opt/opt.h"
#include "runtime/code.h"

enum { MOST_ARGUMENTS = 64 };

typedef struct RunJob {
    Arena arena;
    const char *text, *what;
    bool passes;
    CodeOptions options;
    int argument_count, buffer_count;
    Py_buffer buffers[MOST_ARGUMENTS];
    uint64_t ranges[2 * MOST_ARGUMENTS]; /* of the buffers */
    double numbers[MOST_ARGUMENTS];
    uint64_t slots[MOST_ARGUMENTS];
    bool is_float[MOST_ARGUMENTS];
    int32_t grid[3];
    const char *result, *error;
    int synchronisations;
} RunJob;

/* ---- arguments ------------------------------------------------------------------------------------------------------------------ */

static bool read_argument(RunJob *job, PyObject *argument, int index)
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
    uint64_t *range = &job->ranges[2 * job->buffer_count++];
    job->slots[index] = range[0] = (uintptr_t)buffer->buf;
    range[1] = range[0] + (uint64_t)buffer->len;
    return true;
}

static bool read_arguments(RunJob *job, PyObject *list)
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

static void encode_floats(RunJob *job, const Function *kernel)
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

static void release_code(void *code) { tt_code_release(code); }

static Code *compile(RunJob *job)
{
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    const char *mistakes = tt_verify(module, &job->arena);
    if (mistakes)
        tt_error(NULL, "%s", mistakes);
    if (job->passes)
        tt_run_pipeline(module, NULL);
    if (!job->what)
        encode_floats(job, module->functions);
    Digest key = {0};
    tt_complete_options(&job->options, &job->arena);
    const Image *image = tt_make_image(module, &job->options, &job->arena);
    Code *code = tt_new_code(tt_image_bytes(image, &key, &job->arena), &key);
    if (!code)
        tt_bug("the image is not read as it was written");
    tt_arena_on_release(&job->arena, release_code, code);
    return code;
}

static void run(RunJob *job)
{
    Code *code = compile(job);
    size_t size;
    if (job->what) {
        job->result = tt_code_stage(code, job->what, 0, &job->arena, &size);
        return;
    }
    Place place = {.ranges = job->ranges, .range_count = job->buffer_count};
    LaunchResult result = tt_code_launch(code, place, job->slots, job->grid, &job->arena);
    job->error = result.failure.text;
    job->synchronisations = tt_code_image(code)->synchronisations;
}

static PyObject *finish(RunJob *job, const Diagnostic *diag)
{
    PyObject *result = NULL;
    if (diag)
        PyErr_SetString(diag->kind == TT_USER_ERROR ? PyExc_ValueError : PyExc_RuntimeError, diag->message);
    else if (job->error)
        PyErr_SetString(PyExc_RuntimeError, job->error);
    else if (job->options.target.kind == TARGET_SIM)
        result = PyLong_FromLong(job->synchronisations);
    else if (job->result)
        result = PyUnicode_FromString(job->result);
    else
        result = Py_NewRef(Py_None);
    return result;
}

static PyObject *run_job(RunJob *job)
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
    tt_arena_release(&job->arena);
    return result;
}

/* With the arguments of `list`. */
static PyObject *run_with(RunJob *job, PyObject *list)
{
    PyObject *result = read_arguments(job, list) ? run_job(job) : NULL;
    for (int i = 0; i < job->buffer_count; i++)
        PyBuffer_Release(&job->buffers[i]);
    return result;
}

static PyObject *run_cpu(PyObject *module, PyObject *args)
{
    RunJob job = {.grid = {1, 1, 1}};
    PyObject *list;
    int passes = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "sO!|(iii)p", &job.text, &PyList_Type, &list, &job.grid[0], &job.grid[1],
                          &job.grid[2], &passes))
        return NULL;
    job.passes = passes;
    return run_with(&job, list);
}

static PyObject *simulate(PyObject *module, PyObject *args, PyObject *keywords)
{
    static char *names[] = {"text", "arguments", "grid", "sm", "num_warps", "left_out", NULL};
    RunJob job = {.grid = {1, 1, 1}, .passes = true};
    CodeOptions *o = &job.options;
    *o = (CodeOptions){.target = {TARGET_SIM, 90}, .num_warps = 4, .num_stages = 3};
    PyObject *list;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "sO!|(iii)iii", names, &job.text, &PyList_Type, &list,
                                     &job.grid[0], &job.grid[1], &job.grid[2], &o->target.sm, &o->num_warps,
                                     &o->left_out))
        return NULL;
    return run_with(&job, list);
}

static PyObject *cpu_text(PyObject *module, PyObject *args)
{
    RunJob job = {0};
    int passes = 0;
    (void)module;
    if (!PyArg_ParseTuple(args, "ss|p", &job.text, &job.what, &passes))
        return NULL;
    job.passes = passes;
    return run_job(&job);
}

PyMethodDef tt_testing_run_methods[] = {
    {"_run_cpu", run_cpu, METH_VARARGS,
     "_run_cpu(text, arguments, grid=(1, 1, 1), passes=False) -> None\n--\n\nRuns the first function of the "
     "IR text."},
    {"_cpu_text", cpu_text, METH_VARARGS,
     "_cpu_text(text, what, passes=False) -> str\n--\n\nIts LLVM IR ('llir') or assembly ('asm')."},
    {"_simulate", (PyCFunction)(void (*)(void))simulate, METH_VARARGS | METH_KEYWORDS,
     "_simulate(text, arguments, grid=(1, 1, 1), sm=90, num_warps=4, left_out=0) -> int\n--\n\n"
     "Runs it on the simulator, without the synchronisation of that number if it is not 0; how many there "
     "are."},
    {NULL, NULL, 0, NULL},
};
