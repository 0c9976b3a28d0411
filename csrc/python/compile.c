/* The compile entry: from a kernel and a signature to code, holding the GIL only while the frontend walks the tree. What
 * was compiled before comes from the store: by the source, without a look at its tree, or else by its tile IR. */
#include "analysis/offsets.h"
#include "cache/store.h"
#include "python/extension.h"
#include "python/uses.h"
#include "python/walks.h"
#include "runtime/identity.h"

#include <stddef.h>
#include <stdlib.h>

typedef enum Phase {
    PHASE_AST,
    PHASE_FRONTEND,
    PHASE_PASSES,
    PHASE_LOWERING,
    PHASE_LLVM,
    PHASE_STORE, /* looking for it, or keeping it, on disk */
    PHASES
} Phase;

/* What is done without the GIL, and perhaps given up: nothing of Python's. */
typedef struct Build {
    Apart apart; /* first: its functions get a pointer to it */
    LaunchChoice choice;
    Arena arena;                     /* of `module` */
    Bytes image;                     /* of an earlier compilation, instead of a request; or nothing */
    const char *stage, *text, *file; /* of that image, to be overridden by a text from a file */
    Walk walk;                       /* of another compilation */
    Module *module;
    CodeOptions options;
    bool checks_bounds, is_for_any;
    unsigned facts;
    LaunchNumbers numbers; /* of a launch that it is for: copies, for that may be over */
    int32_t extents[3];
    RangeProgram *checks;
    bool reads, writes; /* the store */
    Digest made_of;     /* the tile IR, and all else that decides the code but for the facts of launches */
    Code *code;
    double lowering; /* milliseconds of PHASE_LLVM */
    Phase phase;
    double milliseconds[PHASES], started;
} Build;

typedef struct Compilation {
    Compiled *compiled;
    FrontendRequest request;
    Build *build; /* NULL once it is given up */
    bool is_quiet;
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

/* ---- the store ---------------------------------------------------------------------------------------------------------- */

/* Tensor maps are made by launches, and a kernel that checks anything has a parameter behind those of the program. Blocks are
 * copied for products of warpgroups, ahead of them. */
static bool copies_blocks(const Build *build)
{
    enum { PTX_WITH_MAPS = 80, WARPGROUP = 4 };
    const CodeOptions *options = &build->options;
    return options->target.sm == 90 && !build->is_for_any && !options->debug && !build->checks_bounds &&
           options->num_warps >= WARPGROUP && options->num_stages > 1 &&
           (!options->ptx_version || options->ptx_version >= PTX_WITH_MAPS);
}

/* Everything that the passes, the code generators and the texts of the kernel depend on. */
static Digest digest_of_module(Build *build)
{
    Hasher hasher;
    tt_hasher_init(&hasher);
    tt_hash_compiler(&hasher);
    tt_hash_options(&hasher, &build->options);
    tt_hasher_add_number(&hasher, copies_blocks(build) << 2 | build->checks_bounds << 1 | tt_is_strict());
    tt_hasher_add_string(&hasher, tt_print_module(build->module, &build->arena, TT_PRINT_LOCATIONS));
    for (int i = 0; i < build->module->remarks.count; i++)
        tt_hasher_add_string(&hasher, build->module->remarks.data[i].message);
    return tt_hasher_end(&hasher);
}

/* There may be several of the same tile IR. */
static Digest image_key(const Build *build, unsigned facts)
{
    Hasher hasher;
    tt_hasher_init(&hasher);
    tt_hasher_add(&hasher, &build->made_of, sizeof build->made_of);
    tt_hasher_add_number(&hasher, facts);
    return tt_hasher_end(&hasher);
}

/* What holds for the launch that it is for, or is vouched for by who launches it. */
static unsigned facts_of_launch(const Build *build, const RangeProgram *checks)
{
    if (checks && build->numbers.slots)
        return tt_facts_of_numbers(checks, build->numbers);
    unsigned vouched = build->is_for_any ? VOUCHED_FACTS & ~FACT_FITS : VOUCHED_FACTS;
    return tt_facts_with(checks, vouched | tt_facts_of_grid(build->numbers));
}

/* NULL if there is no image for launches of which these hold. */
static Code *read_code(Build *build, unsigned facts)
{
    Digest key = image_key(build, facts);
    Bytes bytes = tt_store_read(SEAL_IMAGE, &key, &build->arena);
    return bytes.data ? tt_new_code(bytes, &key) : NULL;
}

/* Any image of the tile IR; the likeliest at first. */
static Code *find_any(Build *build)
{
    unsigned rest = ALL_FACTS & ~(unsigned)FACTS_OF_GRID, of_grid = tt_facts_of_grid(build->numbers);
    Code *code = read_code(build, ALL_FACTS); /* whatever the launch */
    if (!code && of_grid != FACTS_OF_GRID)
        code = read_code(build, rest | of_grid);
    for (unsigned facts = ALL_FACTS; !code && facts-- > 0;)
        if (facts != (rest | of_grid) && (facts & FACTS_OF_GRID) != FACT_ONE_EACH) /* which implies two */
            code = read_code(build, facts);
    return code;
}

/* Each image of the tile IR has the checks that say which one is wanted. */
static Code *find_image(Build *build)
{
    Code *code = find_any(build);
    const Image *image = code ? tt_code_image(code) : NULL;
    unsigned wanted = image ? facts_of_launch(build, image->checks) : 0;
    if (!image || image->rests_on == wanted)
        return code;
    tt_code_release(code);
    return read_code(build, wanted);
}

/* What does not load was made by something else than it says, and is made again. */
static bool find_code(Build *build)
{
    Trap trap;
    if (!tt_try(&trap, &build->arena))
        return false;
    build->code = find_image(build);
    tt_end_try(&trap);
    return build->code != NULL;
}

/* ---- compiling ---------------------------------------------------------------------------------------------------------- */

static void make_code(Build *build)
{
    enter_phase(build, PHASE_LLVM);
    Image *image = tt_make_image(build->module, &build->options, &build->arena);
    image->checks = build->checks;
    image->rests_on = build->facts;
    Digest key = image_key(build, build->facts);
    Bytes bytes = tt_image_bytes(image, &key, &build->arena);
    enter_phase(build, PHASE_STORE);
    if (build->writes)
        tt_store_write(SEAL_IMAGE, &key, bytes, &build->arena);
    enter_phase(build, PHASE_LLVM);
    build->code = tt_new_code(bytes, &key);
    build->lowering = image->lowering_milliseconds;
    if (!build->code)
        tt_bug("a compiled kernel is refused by its own compiler");
}

/* Keeps what launches will have to check. */
static unsigned find_facts(LaunchChoice *choice, const Function *kernel)
{
    Build *build = (Build *)((char *)choice - offsetof(Build, choice));
    build->checks = tt_offset_checks(tt_analyze_offsets(kernel, &build->arena));
    return build->facts = facts_of_launch(build, build->checks);
}

static void compile_module(Apart *apart)
{
    Build *build = (Build *)apart;
    enter_phase(build, PHASE_STORE);
    if (build->walk.text)
        build->module = tt_walked_module(&build->walk, &build->arena);
    if (build->writes)
        build->made_of = digest_of_module(build);
    if (build->reads && find_code(build)) {
        enter_phase(build, PHASE_STORE);
        return;
    }
    enter_phase(build, PHASE_PASSES);
    if (build->checks_bounds)
        tt_check_bounds(build->module);
    build->choice = (LaunchChoice){build->options.deepens, copies_blocks(build), find_facts};
    tt_run_pipeline(build->module, &build->choice);
    tt_stop_if_given_up();
    make_code(build);
    enter_phase(build, PHASE_LLVM);
}

/* The code of an image, or where it does not fit this machine, what is made of the image's source here. */
static void load_image(Apart *apart)
{
    Build *build = (Build *)apart;
    build->code = tt_new_code(build->image, NULL);
    if (build->code)
        return;
    const Image *image = tt_read_image(build->image, NULL, &build->arena);
    if (!image)
        tt_error(NULL,
                 "this compiled kernel was made by another version of the compiler, or was changed since");
    build->options = image->options;
    build->checks = image->checks;
    build->facts = image->rests_on;
    build->options.machine = build->options.libraries = NULL;
    tt_complete_options(&build->options, &build->arena);
    build->module = tt_parse_module(&build->arena, image->source, image->name);
    make_code(build);
}

/* A stage of a kernel as somebody wrote it, in place of what the compiler made. */
static void override_stage(Apart *apart)
{
    Build *build = (Build *)apart;
    Image *image = tt_read_image(build->image, NULL, &build->arena);
    TT_ASSERT(image);
    if (!strcmp(build->stage, "ttir")) {
        Module *module = build->module = tt_parse_module(&build->arena, build->text, build->file);
        const char *mistakes = tt_verify(module, &build->arena);
        if (mistakes)
            tt_error(NULL, "%s is not well-formed:\n%s", build->file, mistakes);
        if (!module->functions || module->functions->body->arg_count != image->parameter_count)
            tt_error(NULL, "%s has not the kernel's %d parameters", build->file, image->parameter_count);
        Image *made = tt_make_image(module, &image->options, &build->arena);
        made->checks = image->checks;
        made->rests_on = image->rests_on;
        image = made;
    } else if (!strcmp(build->stage, "ptx")) {
        image->code = (Bytes){build->text, strlen(build->text)};
    } else {
        tt_unsupported(NULL, "%s: of the stages of a kernel, ttir and ptx can be overridden", build->file);
    }
    build->code = tt_new_code(tt_image_bytes(image, &build->made_of, &build->arena), NULL);
}

static void release_build(Apart *apart)
{
    Build *build = (Build *)apart;
    if (build->code)
        tt_code_release(build->code);
    tt_arena_release(&build->arena);
    free(build);
}

static Build *new_build(Target target)
{
    Build *build = calloc(1, sizeof *build);
    if (!build) {
        PyErr_NoMemory();
        return NULL;
    }
    build->apart = (Apart){.work = compile_module, .release = release_build, .arena = &build->arena};
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
    c->build->module = tt_build_kernel(&c->build->arena, &c->request);
    tt_end_try(&trap);
    return true;
}

/* The rest, without. */
static bool build_code(Compilation *c)
{
    SignalCheck check;
    Interrupt *interrupt = tt_release_gil(&check);
    Apart *apart = &c->build->apart;
    bool has_ended = c->is_quiet ? tt_run_behind(apart) : tt_run_apart(apart, interrupt);
    bool goes_on = tt_take_gil(&check);
    if (!has_ended)
        c->build = NULL;
    if (goes_on && !has_ended)
        PyErr_SetString(PyExc_SystemExit, "the process ends");
    if (!goes_on || !has_ended)
        return false;
    if (c->build->apart.raised) {
        tt_set_error(&c->build->apart.diagnostic, c->build->module);
        return false;
    }
    c->compiled->code = c->build->code;
    c->build->code = NULL;
    return true;
}

/* Nothing is proved of launches yet. */
static bool keep_checks(Compiled *compiled)
{
    size_t count = compiled->checks ? (size_t)compiled->checks->input_count : 0;
    KnownLaunches *known = PyMem_Calloc(1, sizeof *known + sizeof(IntBounds) * count * KNOWN_LAUNCHES);
    compiled->known = known;
    if (!known)
        return PyErr_NoMemory();
    for (size_t i = 0; i < KNOWN_LAUNCHES; i++)
        known->ranges[i].inputs = (IntBounds *)(known + 1) + count * i;
    PyObject *is_wide = compiled->rests_on & FACT_FITS ? Py_False : Py_True;
    return !PyDict_SetItemString(compiled->info, "wide_offsets", is_wide);
}

/* What launches ask for at once: how many slots the code takes, which it stores through, and memory. */
static bool keep_facts(Compilation *c)
{
    Compiled *compiled = c->compiled;
    const Image *image = tt_code_image(compiled->code);
    compiled->slot_count = image->parameter_count;
    compiled->stored = image->stored;
    compiled->checks = image->checks;
    compiled->rests_on = image->rests_on;
    compiled->order = image->order;
    compiled->had_effects = c->request.had_effects;
    c->build->milliseconds[PHASE_LOWERING] = c->build->lowering;
    c->build->milliseconds[PHASE_LLVM] -= c->build->lowering;
    bool on_cpu = image->options.target.kind == TARGET_CPU;
    PyObject *shared = PyLong_FromLongLong(on_cpu ? TT_MAX(image->memory, 64) : image->memory);
    bool done = shared && !PyDict_SetItemString(compiled->info, "shared", shared);
    Py_XDECREF(shared);
    return done && keep_checks(compiled);
}

/* Requests that were not met, as warnings; false where the program makes exceptions of these. */
static bool warn(const Image *image)
{
    for (int i = 0; i < image->remark_count; i++) {
        const Remark *remark = &image->remarks[i];
        const char *file = remark->loc && remark->loc->file ? remark->loc->file : "?";
        if (PyErr_WarnFormat(PyExc_UserWarning, 1, "%s:%d: %s", file, remark->loc ? remark->loc->line : 0,
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
    static const char *const names[PHASES] = {"ast", "frontend", "passes", "lowering", "llvm", "store"};
    PyObject *timings = PyDict_New();
    for (int i = 0; timings && i < PHASES; i++) {
        PyObject *value = PyFloat_FromDouble(c->build->milliseconds[i]);
        if (!value || PyDict_SetItemString(timings, names[i], value) < 0)
            Py_CLEAR(timings);
        Py_XDECREF(value);
    }
    PyObject *was_kept = c->build->milliseconds[PHASE_LLVM] > 0 ? Py_False : Py_True;
    bool done = timings && !PyDict_SetItemString(c->compiled->info, "timings", timings) &&
                !PyDict_SetItemString(c->compiled->info, "cached", was_kept);
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

/* What the launch said of it, if anything. */
static EarlyLaunch early_option(const Compilation *c)
{
    PyObject *options = PyDict_GetItemString(c->compiled->info, "options");
    PyObject *given = options && PyDict_Check(options) ? PyDict_GetItemString(options, "launch_pdl") : NULL;
    if (!given || given == Py_None)
        return EARLY_IF_POSSIBLE;
    return bool_option(c, "launch_pdl", false) ? EARLY_AS_WRITTEN : EARLY_NEVER;
}

/* Its text as bytes, or NULL. */
static PyObject *text_option(const Compilation *c, const char *name)
{
    PyObject *value = PyDict_GetItemString(c->compiled->info, name);
    return value && PyUnicode_Check(value) ? PyUnicode_AsUTF8String(value) : NULL;
}

/* Who checks or looks at the passes wants them to run. */
static void choose_store(Build *build)
{
    Hasher hasher;
    tt_hasher_init(&hasher);
    build->writes = !tt_is_set("TRITON_VERIFY") && !tt_is_set("TRITON_DUMP") && !tt_is_set("TRITON_TIMING") &&
                    tt_hash_compiler(&hasher);
    build->reads = build->writes && !tt_is_set("TRITON_ALWAYS_COMPILE");
}

static bool checks_bounds(const Compilation *c)
{
    return bool_option(c, "debug", false) && !bool_option(c, "standalone", false);
}

static bool read_options(Compilation *c)
{
    Trap trap;
    CodeOptions *options = &c->build->options;
    options->num_warps = int_option(c, "num_warps");
    options->num_stages = int_option(c, "num_stages");
    options->num_ctas = int_option(c, "num_ctas");
    options->max_registers = int_option(c, "maxnreg");
    options->ptx_version = int_option(c, "ptx_version");
    options->debug = bool_option(c, "debug", false);
    options->traps = bool_option(c, "standalone", false);
    c->build->checks_bounds = c->compiled->checks_bounds = checks_bounds(c);
    options->no_fusion = !bool_option(c, "enable_fp_fusion", true);
    options->cooperative = bool_option(c, "launch_cooperative_grid", false);
    options->early = early_option(c);
    choose_store(c->build);
    PyObject *choices = text_option(c, "choices");
    bool done = tt_try(&trap, &c->build->arena);
    if (done) {
        if (choices)
            options->choices = tt_arena_strdup(&c->build->arena, PyBytes_AsString(choices));
        tt_complete_options(options, &c->build->arena);
        tt_end_try(&trap);
    } else {
        tt_set_error(&trap.diag, NULL);
    }
    Py_XDECREF(choices);
    return done;
}

/* What was compiled with goes without the GIL, for it may be much. */
static void release_compilation(Compilation *c)
{
    PyThreadState *released = c->build ? tt_give_gil() : NULL;
    if (c->build) {
        release_build(&c->build->apart);
        tt_get_gil(released);
    }
    Py_XDECREF(c->request.used_names);
    Py_XDECREF(c->request.own_names);
}

static UsesRequest uses_request(const Compilation *c)
{
    return (UsesRequest){.kernel = c->compiled->kernel,
                         .signature = c->request.signature,
                         .info = c->compiled->info,
                         .options = &c->build->options,
                         .used_names = c->request.used_names,
                         .own_names = c->request.own_names};
}

/* The code from the store, without a look at the source's tree. */
static bool find_by_source(Compilation *c)
{
    UsesRequest request = uses_request(c);
    enter_phase(c->build, PHASE_STORE);
    if (!c->build->reads || !tt_find_uses(&request, &c->build->made_of))
        return false;
    PyThreadState *released = tt_give_gil();
    bool found = find_code(c->build);
    tt_get_gil(released);
    enter_phase(c->build, PHASE_STORE);
    if (found) {
        c->compiled->code = c->build->code;
        c->build->code = NULL;
    } else if (PyList_SetSlice(request.used_names, 0, PyList_Size(request.used_names), NULL) < 0) {
        PyErr_Clear();
    }
    return found;
}

static bool read_program(Compilation *c)
{
    State *state = c->compiled->state;
    bool rests = tt_rest_collector(state);
    bool done = parse_source(c);
    tt_breathe();
    done = done && build_module(c);
    if (rests)
        tt_wake_collector(state);
    return done;
}

/* The tile IR of the source, or the walk that made it once. */
static bool walk(Compilation *c)
{
    c->build->walk = tt_find_walk(c->compiled->kernel, &c->request, &c->build->arena);
    if (c->build->walk.text)
        return true;
    if (!read_program(c))
        return false;
    tt_keep_walk(c->compiled->kernel, &c->request, c->build->module);
    return true;
}

static bool compile_source(Compilation *c)
{
    tt_breathe();
    if (!walk(c) || !build_code(c))
        return false;
    UsesRequest request = uses_request(c);
    if (c->build->writes && !c->request.had_effects)
        tt_keep_uses(&request, &c->build->made_of);
    return true;
}

static bool compile(Compilation *c, PyObject *signature)
{
    c->request.function = (PyObject *)c->compiled->kernel;
    c->request.signature = signature;
    c->request.options = c->compiled->info;
    c->request.used_names = PyList_New(0);
    c->request.own_names = PyList_New(0);
    c->request.breathe = c->is_quiet ? tt_breathe : NULL;
    return c->request.used_names && c->request.own_names && read_options(c) &&
           (find_by_source(c) || compile_source(c)) &&
           (c->is_quiet || warn(tt_code_image(c->compiled->code))) && keep_facts(c) &&
           keep_used_names(c->compiled, c->request.used_names) && keep_timings(c);
}

const LaunchNumbers tt_any_launch;

/* The numbers outlive the launch if its handlers of signals give it up. */
static bool copy_numbers(Build *build, const LaunchNumbers *numbers)
{
    Trap trap;
    if (numbers == &tt_any_launch)
        return build->is_for_any = true;
    if (!numbers)
        return true;
    if (!tt_try(&trap, &build->arena)) {
        tt_set_error(&trap.diag, NULL);
        return false;
    }
    build->numbers = *numbers;
    if (numbers->slot_count)
        build->numbers.slots =
            tt_arena_copy(&build->arena, numbers->slots, sizeof(uint64_t) * (size_t)numbers->slot_count);
    tt_end_try(&trap);
    memcpy(build->extents, numbers->extents, sizeof build->extents);
    build->numbers.extents = build->extents;
    return true;
}

/* TRITON_KERNEL_DUMP, TRITON_KERNEL_OVERRIDE, ir_override: see triton/compiler/dumping.py. */
static bool dump_and_override(Compiled *compiled, PyObject *info)
{
    PyObject *file = PyDict_GetItemString(info, "ir_override");
    if (!file && !tt_is_set("TRITON_KERNEL_DUMP") && !tt_is_set("TRITON_KERNEL_OVERRIDE"))
        return true;
    PyObject *apply = tt_import("triton.compiler.dumping", "apply");
    file = file ? file : Py_None;
    PyObject *done = apply ? PyObject_CallFunctionObjArgs(apply, (PyObject *)compiled, file, NULL) : NULL;
    Py_XDECREF(apply);
    Py_XDECREF(done);
    return done != NULL;
}

Compiled *tt_compile(Kernel *kernel, PyObject *signature, PyObject *options, Target target, bool standalone,
                     const LaunchNumbers *numbers, bool is_quiet)
{
    Compilation c = {.build = new_build(target), .is_quiet = is_quiet};
    tt_keep_environment();
    PyObject *info = c.build ? tt_compilation_info(kernel, signature, options, target, standalone) : NULL;
    tt_breathe();
    c.compiled = info ? tt_new_compiled(kernel, info) : NULL;
    if (c.compiled &&
        !(copy_numbers(c.build, numbers) && compile(&c, signature) && dump_and_override(c.compiled, info)))
        Py_CLEAR(c.compiled);
    release_compilation(&c);
    Py_XDECREF(info);
    return c.compiled;
}

/* Takes copies: the work may go on when its caller is gone. False with an error set. */
static bool copy_inputs(Build *build, Bytes image, const char *const texts[3])
{
    Trap trap;
    if (!tt_try(&trap, &build->arena)) {
        tt_set_error(&trap.diag, NULL);
        return false;
    }
    const char **copies[] = {&build->stage, &build->text, &build->file};
    build->image = (Bytes){tt_arena_copy(&build->arena, image.data, image.size), image.size};
    for (int i = 0; texts && i < 3; i++)
        *copies[i] = tt_arena_strdup(&build->arena, texts[i]);
    tt_end_try(&trap);
    return true;
}

static bool make_of_image(Compiled *compiled, Bytes image, void (*work)(Apart *), const char *const texts[3])
{
    Compilation c = {.compiled = compiled, .build = new_build((Target){0})};
    tt_keep_environment();
    if (!c.build)
        return false;
    c.build->apart.work = work;
    bool done = copy_inputs(c.build, image, texts) && build_code(&c) && keep_facts(&c);
    release_compilation(&c);
    return done;
}

bool tt_restore(Compiled *compiled, Bytes image)
{
    Compilation c = {.compiled = compiled};
    compiled->checks_bounds = checks_bounds(&c);
    return make_of_image(compiled, image, load_image, NULL);
}

PyObject *tt_override(PyObject *self, PyObject *args)
{
    Compiled *compiled = (Compiled *)self;
    Code *before = compiled->code;
    const char *texts[3];
    if (!PyArg_ParseTuple(args, "sss", &texts[0], &texts[1], &texts[2]))
        return NULL;
    if (!before || compiled->is_loaded) {
        PyErr_SetString(PyExc_RuntimeError,
                        "a stage can be overridden after compiling and before loading only");
        return NULL;
    }
    PyMem_Free(compiled->known);
    compiled->known = NULL;
    bool done = make_of_image(compiled, tt_code_bytes(before), override_stage, texts);
    if (compiled->code != before)
        tt_code_release(before);
    return done ? Py_NewRef(Py_None) : NULL;
}
