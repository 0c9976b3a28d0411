/* The GPU compiler as the tests reach it: IR text in, IR or PTX out. No GPU is needed. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "analysis/offsets.h"
#include "gpu/passes.h"

typedef struct GpuJob {
    Arena arena;
    const char *text, *last;
    LaunchChoice choice;
    bool run_pipeline;
    GpuOptions options;
    const char *ir;    /* of _run_gpu_passes */
    GpuKernel *kernel; /* of _compile_gpu */
} GpuJob;

static void run_passes(GpuJob *job)
{
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    tt_gpu_run_passes(module, job->last, &job->options);
    job->ir = tt_print_module(module, &job->arena, 0);
}

static void verify_layouts(GpuJob *job)
{
    job->ir = tt_verify_layouts(tt_parse_module(&job->arena, job->text, "text"), &job->arena);
}

/* As of a launch on arrays that tensor maps can be made of. */
static unsigned find_facts(LaunchChoice *choice, const Function *kernel)
{
    GpuJob *job = (GpuJob *)((char *)choice - offsetof(GpuJob, choice));
    tt_offset_checks(tt_analyze_offsets(kernel, &job->arena)); /* blocks have their terms by that */
    return choice->copies_blocks ? VOUCHED_FACTS | FACT_MAPS : VOUCHED_FACTS;
}

static void compile(GpuJob *job)
{
    job->choice.find_facts = find_facts;
    Module *module = tt_parse_module(&job->arena, job->text, "text");
    const char *failures = tt_verify(module, &job->arena);
    if (failures)
        tt_error(NULL, "the IR is not well-formed:\n%s", failures);
    if (job->options.debug)
        tt_check_bounds(module);
    if (job->run_pipeline)
        tt_run_pipeline(module, &job->choice);
    job->kernel = tt_gpu_compile(module, &job->options, &job->arena);
}

static void set_exception(Arena *arena, const Diagnostic *diag)
{
    Text text = {.arena = arena};
    if (diag->loc)
        tt_text_add(&text, "%d:%d: ", diag->loc->line, diag->loc->column);
    tt_text_add(&text, "%s%s%s", diag->message, diag->remedy ? "\n" : "", diag->remedy ? diag->remedy : "");
    for (int i = 0; i < diag->note_count; i++)
        tt_text_add(&text, "\n%d: %s", diag->notes[i].loc ? diag->notes[i].loc->line : 0,
                    diag->notes[i].message);
    PyErr_SetString(diag->kind == TT_USER_ERROR ? PyExc_ValueError : PyExc_RuntimeError, text.data);
}

/* Without the GIL, as compilations run. */
static bool run_job(GpuJob *job, void (*work)(GpuJob *job))
{
    Trap trap;
    bool done;
    PyThreadState *thread = PyEval_SaveThread();
    if (tt_try(&trap, &job->arena)) {
        work(job);
        tt_end_try(&trap);
        done = true;
    } else {
        done = false;
    }
    PyEval_RestoreThread(thread);
    if (!done)
        set_exception(&job->arena, &trap.diag);
    return done;
}

static bool read_arguments(PyObject *args, PyObject *keywords, GpuJob *job, const char *format, char **names)
{
    GpuOptions *o = &job->options;
    int fusion = 1, pipeline = 0, debug = 0, maps = 0;
    *o = (GpuOptions){.sm = 80, .num_warps = 4, .num_stages = 3, .texts = true};
    if (!PyArg_ParseTupleAndKeywords(args, keywords, format, names, &job->text, &o->sm, &o->num_warps,
                                     &o->ptx_version, &fusion, &pipeline, &o->libdevice, &job->last, &debug,
                                     &o->max_registers, &o->num_stages, &maps))
        return false;
    o->enable_fp_fusion = fusion != 0;
    o->debug = debug != 0;
    job->run_pipeline = pipeline != 0;
    job->choice.copies_blocks = maps != 0;
    return true;
}

static char *names[] = {"text",       "sm",        "num_warps", "ptx_version", "enable_fp_fusion",
                        "pipeline",   "libdevice", "last",      "debug",       "max_registers",
                        "num_stages", "maps",      NULL};

static PyObject *py_run_gpu_passes(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    GpuJob job = {0};
    PyObject *result = NULL;
    if (read_arguments(args, keywords, &job, "s|iiippzzpiip", names) && run_job(&job, run_passes))
        result = PyUnicode_FromString(job.ir);
    tt_arena_release(&job.arena);
    return result;
}

static PyObject *py_verify_layouts(PyObject *module, PyObject *args)
{
    (void)module;
    GpuJob job = {0};
    PyObject *result = NULL;
    if (PyArg_ParseTuple(args, "s", &job.text) && run_job(&job, verify_layouts))
        result = job.ir ? PyUnicode_FromString(job.ir) : Py_NewRef(Py_None);
    tt_arena_release(&job.arena);
    return result;
}

static PyObject *py_compile_gpu(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    GpuJob job = {0};
    PyObject *result = NULL;
    if (read_arguments(args, keywords, &job, "s|iiippzzpiip", names) && run_job(&job, compile)) {
        const GpuKernel *k = job.kernel;
        result = Py_BuildValue("{s:s,s:s,s:s,s:s,s:i,s:i,s:i}", "name", k->name, "ptx", k->ptx, "llir",
                               k->llir, "ttgir", k->ttgir, "shared", k->shared_bytes, "num_warps",
                               k->num_warps, "effort", k->effort);
    }
    tt_arena_release(&job.arena);
    return result;
}

PyMethodDef tt_testing_gpu_methods[] = {
    {"_run_gpu_passes", (PyCFunction)(void (*)(void))py_run_gpu_passes, METH_VARARGS | METH_KEYWORDS,
     "_run_gpu_passes(text, sm=80, num_warps=4, *, last=None) -> str\n--\n\n"
     "The IR after the GPU passes up to the one called `last`."},
    {"_verify_layouts", py_verify_layouts, METH_VARARGS,
     "_verify_layouts(text) -> str | None\n--\n\nThe IR with layouts that do not fit marked, or None."},
    {"_compile_gpu", (PyCFunction)(void (*)(void))py_compile_gpu, METH_VARARGS | METH_KEYWORDS,
     "_compile_gpu(text, sm=80, num_warps=4, ptx_version=0, enable_fp_fusion=True, pipeline=False, "
     "libdevice=None, *, debug=False, max_registers=0, num_stages=3, maps=False) -> "
     "dict\n--\n\nIR text compiled for a GPU: name, ptx, llir, ttgir, shared, num_warps, effort."},
    {NULL, NULL, 0, NULL},
};
