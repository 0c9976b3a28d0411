/* The compile entry: from a kernel and a signature to code, holding the GIL only while the frontend walks the tree. */
#include "python/extension.h"
#include <time.h>

typedef enum Phase { PHASE_AST, PHASE_FRONTEND, PHASE_PASSES, PHASE_LOWERING, PHASE_LLVM, PHASES } Phase;

typedef struct Compilation {
    Compiled *compiled;
    FrontendRequest request;
    const char *ir, *name; /* tile IR instead of a request, and what it is named in messages; or NULL */
    CodeOptions options;
    Arena arena; /* of `module` */
    Module *module;
    const ParamPointers *pointers;
    PyThreadState *released; /* while the GIL is not held, else NULL */
    Phase phase;
    double milliseconds[PHASES], started;
} Compilation;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec * 1e-6;
}

/* Ends the phase there was and begins this one; time is added up, for a phase may come in parts. */
static void enter_phase(Compilation *c, Phase phase)
{
    double time = now();
    if (c->started)
        c->milliseconds[c->phase] += time - c->started;
    c->started = time;
    c->phase = phase;
}

/* From the program's text, or from `ir`, which has been through the passes. */
static void build_module(Compilation *c)
{
    if (!c->ir)
        c->module = tt_frontend_build(&c->arena, &c->request);
    c->released = PyEval_SaveThread();
    enter_phase(c, PHASE_PASSES);
    if (c->ir) {
        c->module = tt_parse_module(&c->arena, c->ir, c->name);
        return;
    }
    if (c->compiled->checks_bounds)
        tt_check_bounds(c->module);
    tt_run_pipeline(c->module);
}

static void build(Compilation *c)
{
    build_module(c);
    c->pointers = tt_analyze_param_pointers(c->module->functions, &c->arena);
    enter_phase(c, PHASE_LLVM);
    c->compiled->code = tt_code_compile(c->module, &c->options, &c->arena);
    PyEval_RestoreThread(c->released);
    c->released = NULL;
}

/* Builds under a trap: whatever is raised ends as a Python exception, with the GIL held. */
static bool build_safely(Compilation *c)
{
    Trap trap;
    enter_phase(c, PHASE_FRONTEND);
    if (tt_try(&trap, &c->arena)) {
        build(c);
        tt_end_try(&trap);
        enter_phase(c, PHASE_LLVM);
        return true;
    }
    if (c->released)
        PyEval_RestoreThread(c->released);
    tt_set_error(&trap.diag, c->module);
    return false;
}

/* What outlives the IR: how many slots the code takes, which it stores through, times, and memory. */
static bool keep_facts(Compilation *c)
{
    Compiled *compiled = c->compiled;
    compiled->slot_count = c->module->functions->body->arg_count;
    compiled->stored = PyMem_Malloc((size_t)compiled->slot_count + 1);
    if (!compiled->stored)
        return PyErr_NoMemory();
    memcpy(compiled->stored, c->pointers->stored, sizeof(bool) * (size_t)compiled->slot_count);
    CodeFacts facts = tt_code_facts(compiled->code);
    c->milliseconds[PHASE_LOWERING] = facts.lowering_milliseconds;
    c->milliseconds[PHASE_LLVM] -= facts.lowering_milliseconds;
    PyObject *shared = PyLong_FromLongLong(facts.shared);
    bool done = shared && !PyDict_SetItemString(compiled->info, "shared", shared);
    Py_XDECREF(shared);
    return done;
}

/* Reads the source first, so that the time for it is seen apart. */
static bool parse_source(Compilation *c)
{
    enter_phase(c, PHASE_AST);
    PyObject *tree = PyObject_CallMethod(c->request.function, "parse", NULL);
    Py_XDECREF(tree);
    return tree != NULL;
}

/* What the frontend read of the program's names; the table compares them at each launch. */
static bool keep_used_names(Compiled *compiled, PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    compiled->used_names = PyMem_Calloc((size_t)count + 1, sizeof *compiled->used_names);
    if (!compiled->used_names)
        return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) {
        UsedName *used = &compiled->used_names[i];
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "OOO", &used->space, &used->name, &used->value))
            return false;
        Py_INCREF(used->space);
        Py_INCREF(used->name);
        Py_INCREF(used->value);
        compiled->used_name_count = (int)i + 1;
    }
    return true;
}

static bool keep_timings(Compilation *c)
{
    static const char *const names[PHASES] = {"ast", "frontend", "passes", "lowering", "llvm"};
    PyObject *timings = PyDict_New();
    for (int i = 0; timings && i < PHASES; i++) {
        PyObject *value = PyFloat_FromDouble(c->milliseconds[i]);
        if (!value || PyDict_SetItemString(timings, names[i], value) < 0)
            Py_CLEAR(timings);
        Py_XDECREF(value);
    }
    bool done = timings && !PyDict_SetItemString(c->compiled->info, "timings", timings);
    Py_XDECREF(timings);
    return done;
}

PyObject *tt_compilation_info(Kernel *kernel, PyObject *signature, PyObject *options, Target target,
                              bool standalone)
{
    PyObject *function = tt_import("triton.compiler.compiler", "describe");
    char name[16];
    PyObject *info =
        function ? PyObject_CallFunction(function, "OOOsO", (PyObject *)kernel, signature, options,
                                         tt_target_name(target, name), standalone ? Py_True : Py_False)
                 : NULL;
    Py_XDECREF(function);
    if (info && !PyDict_Check(info)) {
        PyErr_SetString(PyExc_TypeError, "describe() did not return a dict");
        Py_CLEAR(info);
    }
    return info;
}

/* 0 where it is None; describe() has checked it. */
static int int_option(const Compilation *c, const char *name)
{
    PyObject *value = PyDict_GetItemString(c->compiled->info, name);
    return value && PyLong_Check(value) ? (int)PyLong_AsLong(value) : 0;
}

static bool bool_option(const Compilation *c, const char *name, bool otherwise)
{
    PyObject *value = PyDict_GetItemString(c->compiled->info, name);
    return value && value != Py_None ? PyObject_IsTrue(value) == 1 : otherwise;
}

static void read_options(Compilation *c)
{
    bool standalone = bool_option(c, "standalone", false);
    c->options.num_warps = int_option(c, "num_warps");
    c->options.num_stages = int_option(c, "num_stages");
    c->options.num_ctas = int_option(c, "num_ctas");
    c->options.max_registers = int_option(c, "maxnreg");
    c->options.debug = bool_option(c, "debug", false);
    c->options.traps = standalone;
    c->compiled->checks_bounds = c->options.debug && !standalone;
    c->options.no_fusion = !bool_option(c, "enable_fp_fusion", true);
    c->options.cooperative = bool_option(c, "launch_cooperative_grid", false);
    c->options.early = bool_option(c, "launch_pdl", false);
}

static bool compile(Compilation *c, PyObject *signature)
{
    read_options(c);
    c->request.function = (PyObject *)c->compiled->kernel;
    c->request.signature = signature;
    c->request.options = c->compiled->info;
    return parse_source(c) && build_safely(c) && keep_facts(c) &&
           keep_used_names(c->compiled, c->request.used_names) && keep_timings(c);
}

Compiled *tt_compile(Kernel *kernel, PyObject *signature, PyObject *options, Target target, bool standalone)
{
    Compilation c = {.options.target = target};
    PyObject *info = tt_compilation_info(kernel, signature, options, target, standalone);
    c.compiled = info ? tt_new_compiled(kernel, info) : NULL;
    c.request.used_names = PyList_New(0);
    bool done = c.compiled && c.request.used_names && compile(&c, signature);
    if (!done)
        Py_CLEAR(c.compiled);
    tt_arena_release(&c.arena);
    Py_XDECREF(c.request.used_names);
    Py_XDECREF(info);
    return c.compiled;
}

bool tt_compile_ir(Compiled *compiled, const char *text)
{
    Compilation c = {.compiled = compiled, .ir = text};
    PyObject *target = PyDict_GetItemString(compiled->info, "target");
    PyObject *name = target ? PyUnicode_AsUTF8String(target) : NULL;
    PyObject *kernel = PyUnicode_AsUTF8String(compiled->kernel->name);
    bool done = name && kernel && tt_read_target(PyBytes_AsString(name), &c.options.target);
    if (!target)
        PyErr_SetString(PyExc_ValueError, "the description of a compiled kernel has no 'target'");
    if (done) {
        c.name = PyBytes_AsString(kernel);
        read_options(&c);
        done = build_safely(&c) && keep_facts(&c);
    }
    tt_arena_release(&c.arena);
    Py_XDECREF(kernel);
    Py_XDECREF(name);
    return done;
}
