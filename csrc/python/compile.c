/* The compile entry: from a kernel and a signature to code, holding the GIL only while the frontend walks the tree. */
#include "analysis/offsets.h"
#include "python/extension.h"
#include <stddef.h>
#include <stdlib.h>

typedef enum Phase { PHASE_AST, PHASE_FRONTEND, PHASE_PASSES, PHASE_LOWERING, PHASE_LLVM, PHASES } Phase;

/* What is done without the GIL, and perhaps given up: nothing of Python's. */
typedef struct Build {
    Apart apart; /* first: its functions get a pointer to it */
    OffsetChoice choice;
    Arena arena;           /* of `module` */
    const char *ir, *name; /* tile IR instead of a request, and what it is named in messages; or NULL */
    Module *module;
    CodeOptions options;
    char *choices; /* owned */
    bool checks_bounds, has_numbers, is_wide;
    LaunchNumbers numbers; /* of a launch that it is for: copies, for that may be over */
    int32_t extents[3];
    RangeProgram *checks;
    const ParamPointers *pointers;
    Code *code;
    Phase phase;
    double milliseconds[PHASES], started;
} Build;

typedef struct Compilation {
    Compiled *compiled;
    FrontendRequest request;
    Build *build; /* NULL once it is given up */
} Compilation;

/* Ends the phase there was and begins this one; time is added up, for a phase may come in parts. */
static void enter_phase(Build *build, Phase phase)
{
    double time = tt_milliseconds();
    if (build->started)
        build->milliseconds[build->phase] += time - build->started;
    build->started = time;
    build->phase = phase;
}

/* Keeps what launches will have to check; true if the one at hand does not do with 32 bits. */
static bool must_widen(OffsetChoice *choice, const Function *kernel)
{
    Build *build = (Build *)((char *)choice - offsetof(Build, choice));
    build->checks = tt_offset_checks(tt_analyze_offsets(kernel, &build->arena));
    if (!build->checks || !build->has_numbers)
        return false;
    IntBounds *proved = TT_NEW_ARRAY(&build->arena, IntBounds, build->checks->input_count);
    for (int i = 0; i < build->checks->input_count; i++)
        proved[i] = (IntBounds){INT64_MAX, INT64_MIN};
    return build->is_wide = !tt_launch_fits(build->checks, proved, build->numbers);
}

static void run_passes(Build *build)
{
    if (build->checks_bounds)
        tt_check_bounds(build->module);
    build->choice.must_widen = must_widen;
    tt_run_pipeline(build->module, &build->choice);
}

static void make_code(Apart *apart)
{
    Build *build = (Build *)apart;
    enter_phase(build, PHASE_PASSES);
    if (build->ir) {
        build->module = tt_parse_module(&build->arena, build->ir, build->name);
        must_widen(&build->choice, build->module->functions);
    } else
        run_passes(build);
    build->pointers = tt_analyze_param_pointers(build->module->functions, &build->arena);
    enter_phase(build, PHASE_LLVM);
    tt_stop_if_given_up();
    build->code = tt_code_compile(build->module, &build->options, &build->arena);
    enter_phase(build, PHASE_LLVM);
}

static void release_build(Apart *apart)
{
    Build *build = (Build *)apart;
    if (build->code)
        tt_code_release(build->code);
    free(build->checks);
    tt_arena_release(&build->arena);
    free(build->choices);
    free(build);
}

static Build *new_build(Target target)
{
    Build *build = calloc(1, sizeof *build);
    if (!build) {
        PyErr_NoMemory();
        return NULL;
    }
    build->apart = (Apart){.work = make_code, .release = release_build, .arena = &build->arena};
    build->options.target = target;
    return build;
}

/* The part that reads the program, with the GIL. Whatever is raised ends as a Python exception. */
static bool build_module(Compilation *c)
{
    Trap trap;
    enter_phase(c->build, PHASE_FRONTEND);
    if (!tt_try(&trap, &c->build->arena)) {
        tt_set_error(&trap.diag, NULL);
        return false;
    }
    c->build->module = tt_frontend_build(&c->build->arena, &c->request);
    tt_end_try(&trap);
    return true;
}

/* The rest, without. */
static bool build_code(Compilation *c)
{
    SignalCheck check;
    Interrupt *interrupt = tt_release_gil(&check);
    bool has_ended = tt_run_apart(&c->build->apart, interrupt);
    if (!tt_take_gil(&check)) {
        if (!has_ended)
            c->build = NULL;
        return false;
    }
    if (c->build->apart.raised) {
        tt_set_error(&c->build->apart.diagnostic, c->build->module);
        return false;
    }
    c->compiled->code = c->build->code;
    c->compiled->checks = c->build->checks;
    c->compiled->is_wide = c->build->is_wide;
    c->build->code = NULL;
    c->build->checks = NULL;
    return true;
}

/* Nothing is proved of launches yet. */
static bool keep_checks(Compiled *compiled)
{
    int count = compiled->checks ? compiled->checks->input_count : 0;
    compiled->proved = PyMem_Malloc(sizeof *compiled->proved * (size_t)TT_MAX(count, 1));
    if (!compiled->proved)
        return PyErr_NoMemory();
    for (int i = 0; i < count; i++)
        compiled->proved[i] = (IntBounds){INT64_MAX, INT64_MIN};
    return !PyDict_SetItemString(compiled->info, "wide_offsets", compiled->is_wide ? Py_True : Py_False);
}

/* What outlives the IR: how many slots the code takes, which it stores through, times, and memory. */
static bool keep_facts(Compilation *c)
{
    Compiled *compiled = c->compiled;
    compiled->slot_count = c->build->module->functions->body->arg_count;
    compiled->stored = PyMem_Malloc((size_t)compiled->slot_count + 1);
    if (!compiled->stored)
        return PyErr_NoMemory();
    memcpy(compiled->stored, c->build->pointers->stored, sizeof(bool) * (size_t)compiled->slot_count);
    CodeFacts facts = tt_code_facts(compiled->code);
    c->build->milliseconds[PHASE_LOWERING] = facts.lowering_milliseconds;
    c->build->milliseconds[PHASE_LLVM] -= facts.lowering_milliseconds;
    PyObject *shared = PyLong_FromLongLong(facts.shared);
    bool done = shared && !PyDict_SetItemString(compiled->info, "shared", shared);
    Py_XDECREF(shared);
    return done && keep_checks(compiled);
}

/* Requests that were not met, as warnings; false where the program makes exceptions of these. */
static bool warn(const Module *module)
{
    for (int i = 0; i < module->remarks.count; i++) {
        const Remark *remark = &module->remarks.data[i];
        const char *file = remark->loc && remark->loc->file ? remark->loc->file : "?";
        if (PyErr_WarnFormat(PyExc_RuntimeWarning, 1, "%s:%d: %s", file, remark->loc ? remark->loc->line : 0,
                             remark->message) < 0)
            return false;
    }
    return true;
}

/* Reads the source first, so that the time for it is seen apart. */
static bool parse_source(Compilation *c)
{
    enter_phase(c->build, PHASE_AST);
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
        PyObject *value = PyFloat_FromDouble(c->build->milliseconds[i]);
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

/* A copy, for what compiles may outlive the dict. */
static char *text_option(const Compilation *c, const char *name)
{
    PyObject *value = PyDict_GetItemString(c->compiled->info, name);
    PyObject *bytes = value && PyUnicode_Check(value) ? PyUnicode_AsUTF8String(value) : NULL;
    char *text = bytes ? strdup(PyBytes_AsString(bytes)) : NULL;
    Py_XDECREF(bytes);
    return text;
}

static void read_options(Compilation *c)
{
    CodeOptions *options = &c->build->options;
    bool standalone = bool_option(c, "standalone", false);
    options->num_warps = int_option(c, "num_warps");
    options->num_stages = int_option(c, "num_stages");
    options->num_ctas = int_option(c, "num_ctas");
    options->max_registers = int_option(c, "maxnreg");
    options->debug = bool_option(c, "debug", false);
    options->traps = standalone;
    c->build->checks_bounds = c->compiled->checks_bounds = options->debug && !standalone;
    options->no_fusion = !bool_option(c, "enable_fp_fusion", true);
    options->cooperative = bool_option(c, "launch_cooperative_grid", false);
    options->choices = c->build->choices = text_option(c, "choices");
    options->early = bool_option(c, "launch_pdl", false);
}

static void release_compilation(Compilation *c)
{
    if (c->build)
        release_build(&c->build->apart);
}

static bool compile(Compilation *c, PyObject *signature)
{
    read_options(c);
    c->request.function = (PyObject *)c->compiled->kernel;
    c->request.signature = signature;
    c->request.options = c->compiled->info;
    return parse_source(c) && build_module(c) && build_code(c) && warn(c->build->module) && keep_facts(c) &&
           keep_used_names(c->compiled, c->request.used_names) && keep_timings(c);
}

/* The numbers outlive the launch if its handlers of signals give it up. */
static bool copy_numbers(Build *build, const LaunchNumbers *numbers)
{
    Trap trap;
    if (!numbers)
        return true;
    if (!tt_try(&trap, &build->arena)) {
        tt_set_error(&trap.diag, NULL);
        return false;
    }
    build->numbers.slots =
        tt_arena_copy(&build->arena, numbers->slots, sizeof(uint64_t) * (size_t)numbers->slot_count);
    tt_end_try(&trap);
    memcpy(build->extents, numbers->extents, sizeof build->extents);
    build->numbers.extents = build->extents;
    return build->has_numbers = true;
}

Compiled *tt_compile(Kernel *kernel, PyObject *signature, PyObject *options, Target target, bool standalone,
                     const LaunchNumbers *numbers)
{
    Compilation c = {.build = new_build(target)};
    PyObject *info = c.build ? tt_compilation_info(kernel, signature, options, target, standalone) : NULL;
    c.compiled = info ? tt_new_compiled(kernel, info) : NULL;
    c.request.used_names = PyList_New(0);
    bool done =
        c.compiled && c.request.used_names && copy_numbers(c.build, numbers) && compile(&c, signature);
    if (!done)
        Py_CLEAR(c.compiled);
    release_compilation(&c);
    Py_XDECREF(c.request.used_names);
    Py_XDECREF(info);
    return c.compiled;
}

static bool compile_ir(Compilation *c, const char *kernel, const char *text)
{
    Trap trap;
    Build *build = c->build;
    if (!tt_try(&trap, &build->arena)) {
        tt_set_error(&trap.diag, NULL);
        return false;
    }
    build->name = tt_arena_strdup(&build->arena, kernel);
    build->ir = tt_arena_strdup(&build->arena, text);
    tt_end_try(&trap);
    read_options(c);
    return build_code(c) && keep_facts(c);
}

bool tt_compile_ir(Compiled *compiled, const char *text)
{
    Target on = {0};
    PyObject *target = PyDict_GetItemString(compiled->info, "target");
    PyObject *name = target ? PyUnicode_AsUTF8String(target) : NULL;
    PyObject *kernel = PyUnicode_AsUTF8String(compiled->kernel->name);
    bool done = name && kernel && tt_read_target(PyBytes_AsString(name), &on);
    Compilation c = {.compiled = compiled, .build = done ? new_build(on) : NULL};
    if (!target)
        PyErr_SetString(PyExc_ValueError, "the description of a compiled kernel has no 'target'");
    done = c.build && compile_ir(&c, PyBytes_AsString(kernel), text);
    release_compilation(&c);
    Py_XDECREF(kernel);
    Py_XDECREF(name);
    return done;
}
