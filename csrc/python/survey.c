/* What is known of variants of a kernel without compiling them: resources, choices, and how much they do. The program is
 * walked and simplified once; what differs in options alone starts from a copy of that. While the kernel is tuned the walk is
 * that of other surveys of it, and of compilations to come. */
#include "analysis/offsets.h"
#include "gpu/gpu.h"
#include "opt/opt.h"
#include "python/extension.h"
#include "python/walks.h"

#include <stddef.h>
#include <stdlib.h>

/* One set of options. Filled in without the GIL. */
typedef struct Variant {
    GpuOptions options;
    char *choices; /* owned */
    GpuEstimate estimate;
    double crossed;     /* see Work */
    Diagnostic failure; /* if it has one; texts are in the arena */
    bool failed;
    Choice *points;
    int point_count, remark_count;
} Variant;

typedef struct Survey {
    Arena arena;
    LaunchChoice choice;
    FrontendRequest request;
    Target target;
    WorkInputs inputs;
    int multiprocessors; /* of the device; 0: not known */
    Variant *variants;
    int count;
    Walk walk; /* an earlier one; or there is a module */
    Module *module;
    const char *text;
    Work work;
    Diagnostic failure;
} Survey;

/* ---- what is asked for ---- */

static int int_of(PyObject *dict, const char *name, int otherwise)
{
    PyObject *value = PyDict_GetItemString(dict, name);
    return value && PyLong_Check(value) ? (int)PyLong_AsLong(value) : otherwise;
}

static bool read_variant(Survey *s, PyObject *dict, Variant *variant)
{
    if (!dict || !PyDict_Check(dict)) {
        PyErr_SetString(PyExc_TypeError, "survey() takes a list of dicts of options");
        return false;
    }
    variant->options = (GpuOptions){.sm = s->target.sm,
                                    .num_warps = int_of(dict, "num_warps", 4),
                                    .num_stages = int_of(dict, "num_stages", 3),
                                    .max_registers = int_of(dict, "maxnreg", 0),
                                    .enable_fp_fusion = true};
    PyObject *choices = PyDict_GetItemString(dict, "choices");
    PyObject *bytes = choices && PyUnicode_Check(choices) ? PyUnicode_AsUTF8String(choices) : NULL;
    if (bytes)
        variant->choices = strdup(PyBytes_AsString(bytes));
    Py_XDECREF(bytes);
    return !PyErr_Occurred();
}

static bool read_variants(Survey *s, PyObject *list)
{
    s->count = (int)PyList_Size(list);
    s->variants = calloc((size_t)s->count + 1, sizeof *s->variants);
    if (!s->variants)
        return PyErr_NoMemory();
    for (int i = 0; i < s->count; i++)
        if (!read_variant(s, PyList_GetItem(list, i), &s->variants[i]))
            return false;
    return true;
}

/* The values of the parameters of the IR: an int, or None where it is not known. */
static bool read_numbers(Survey *s, PyObject *list, bool *known, int64_t *numbers)
{
    s->inputs = (WorkInputs){known, numbers, (int)PyTuple_Size(list), {0}};
    for (int i = 0; i < s->inputs.count; i++) {
        PyObject *number = PyTuple_GetItem(list, i);
        known[i] = number != Py_None;
        numbers[i] = known[i] ? PyLong_AsLongLong(number) : 0;
        if (PyErr_ExceptionMatches(PyExc_OverflowError)) {
            PyErr_Clear();
            known[i] = false;
        }
    }
    return !PyErr_Occurred();
}

/* ---- the work ---- */

/* The tile IR of the program, or an earlier walk. */
static bool walk(Survey *s)
{
    Trap trap;
    Kernel *kernel = (Kernel *)s->request.function;
    s->walk = tt_find_walk(kernel, &s->request, &s->arena);
    if (s->walk.text)
        return true;
    if (!tt_try(&trap, &s->arena)) {
        s->failure = trap.diag;
        return false;
    }
    s->module = tt_build_kernel(&s->arena, &s->request);
    tt_end_try(&trap);
    tt_keep_walk(kernel, &s->request, s->module);
    return true;
}

static void estimate(Survey *s, Variant *variant)
{
    Trap trap;
    if (!tt_try(&trap, &s->arena)) {
        variant->failed = true;
        variant->failure = trap.diag;
        return;
    }
    Module *module = tt_parse_module(&s->arena, s->text, "survey");
    module->asked_choices = variant->choices;
    variant->options.source = s->text;
    variant->estimate = tt_gpu_estimate(module, &variant->options);
    variant->crossed = tt_count_work(variant->estimate.module->functions, &s->inputs, &s->arena).crossed;
    variant->points = module->choices.data;
    variant->point_count = module->choices.count;
    variant->remark_count = module->remarks.count;
    tt_end_try(&trap);
}

static bool are_known(const Survey *s, const RangeProgram *checks)
{
    for (int i = 0; i < checks->input_count; i++) {
        RangeInput input = checks->inputs[i];
        if (!input.is_extent && (input.index >= s->inputs.count || !s->inputs.known[input.index]))
            return false;
    }
    return true;
}

/* As for the launch that it is about. */
static unsigned find_facts(LaunchChoice *choice, const Function *kernel)
{
    Survey *s = (Survey *)((char *)choice - offsetof(Survey, choice));
    const RangeProgram *checks = tt_offset_checks(tt_analyze_offsets(kernel, &s->arena));
    LaunchNumbers numbers = {.extents = s->inputs.grid, .multiprocessors = s->multiprocessors};
    if (!checks || !are_known(s, checks))
        return tt_facts_with(checks, VOUCHED_FACTS | tt_facts_of_grid(numbers));
    numbers.slots = (const uint64_t *)s->inputs.numbers;
    numbers.slot_count = s->inputs.count;
    return tt_facts_of_numbers(checks, numbers);
}

/* Without the GIL. */
static bool run(Survey *s)
{
    Trap trap;
    if (!tt_try(&trap, &s->arena)) {
        s->failure = trap.diag;
        return false;
    }
    if (s->walk.text)
        s->module = tt_walked_module(&s->walk, &s->arena);
    s->choice = (LaunchChoice){.counts_programs = s->multiprocessors > 0, .find_facts = find_facts};
    tt_run_pipeline(s->module, &s->choice);
    s->work = tt_count_work(s->module->functions, &s->inputs, &s->arena);
    s->text = tt_print_module(s->module, &s->arena, 0);
    tt_end_try(&trap);
    for (int i = 0; i < s->count; i++)
        if (s->target.kind == TARGET_CPU) /* which knows no options */
            s->variants[i].estimate.code = tt_digest(s->text, strlen(s->text));
        else
            estimate(s, &s->variants[i]);
    return true;
}

/* ---- what is said of it ---- */

static PyObject *describe_choice(const Choice *choice)
{
    PyObject *values = PyTuple_New(choice->count);
    for (int i = 0; values && i < choice->count; i++)
        PyTuple_SetItem(values, i, PyLong_FromLongLong(choice->values[i]));
    return Py_BuildValue("(NL)", values, (long long)choice->own);
}

static PyObject *describe_variant(const Variant *variant)
{
    PyObject *choices = PyDict_New();
    for (int i = 0; choices && i < variant->point_count; i++) {
        PyObject *choice = describe_choice(&variant->points[i]);
        if (!choice || PyDict_SetItemString(choices, variant->points[i].name, choice) < 0)
            Py_CLEAR(choices);
        Py_XDECREF(choice);
    }
    const GpuEstimate *estimate = &variant->estimate;
    return Py_BuildValue("{si si si sO sd sN si sN sz}", "shared", estimate->shared_bytes, "registers",
                         estimate->registers, "ahead", estimate->ahead, "tensor_cores",
                         estimate->on_tensor_cores ? Py_True : Py_False, "crossed", variant->crossed, "code",
                         PyBytes_FromStringAndSize((const char *)&estimate->code, sizeof estimate->code),
                         "remarks", variant->remark_count, "choices", choices, "failure",
                         variant->failed ? variant->failure.message : NULL);
}

static PyObject *describe_work(const Work *work)
{
    return Py_BuildValue("{sd sd sd sd sd sd sd sd sd sd}", "multiplications", work->multiplications,
                         "operand_bytes", work->operand_bytes, "sum_bytes", work->sum_bytes, "operand_width",
                         work->operand_width, "operations", work->operations, "loaded_bytes",
                         work->loaded_bytes, "stored_bytes", work->stored_bytes, "atomics", work->atomics,
                         "exchanged", work->exchanged, "rounds", work->rounds);
}

static PyObject *describe(const Survey *s)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < s->count; i++) {
        PyObject *item = describe_variant(&s->variants[i]);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    return Py_BuildValue("(NN)", describe_work(&s->work), list);
}

static PyObject *take_survey(Survey *s)
{
    bool done = walk(s);
    if (done) {
        tt_keep_environment();
        PyThreadState *released = tt_give_gil();
        done = run(s);
        tt_get_gil(released);
    }
    if (!done)
        tt_set_error(&s->failure, s->module);
    return done ? describe(s) : NULL;
}

PyObject *tt_survey(PyObject *module, PyObject *args)
{
    enum { MOST_PARAMETERS = 256 };
    const State *state = PyModule_GetState(module);
    Survey s = {0};
    bool known[MOST_PARAMETERS];
    int64_t numbers[MOST_PARAMETERS];
    int32_t grid[3];
    const char *name;
    PyObject *given, *variants, *info = NULL, *result = NULL;
    if (!PyArg_ParseTuple(args, "O!O!O!sO!(iii)O!|i", state->kernel_type, &s.request.function, &PyTuple_Type,
                          &s.request.signature, &PyDict_Type, &s.request.options, &name, &PyTuple_Type,
                          &given, &grid[0], &grid[1], &grid[2], &PyList_Type, &variants,
                          &s.multiprocessors) ||
        !tt_read_target(name, &s.target))
        return NULL;
    if (PyTuple_Size(given) > MOST_PARAMETERS) {
        PyErr_Format(PyExc_ValueError, "survey() takes %d numbers at most", MOST_PARAMETERS);
        return NULL;
    }
    if (read_numbers(&s, given, known, numbers) && read_variants(&s, variants))
        info = tt_compilation_info((Kernel *)s.request.function, s.request.signature, s.request.options,
                                   s.target, false);
    memcpy(s.inputs.grid, grid, sizeof grid);
    s.request.options = info;
    s.request.used_names = PyList_New(0);
    s.request.own_names = PyList_New(0);
    if (info && s.request.used_names && s.request.own_names)
        result = take_survey(&s);
    tt_arena_release(&s.arena);
    for (int i = 0; s.variants && i < s.count; i++)
        free(s.variants[i].choices);
    free(s.variants);
    Py_XDECREF(info);
    Py_XDECREF(s.request.used_names);
    Py_XDECREF(s.request.own_names);
    return result;
}
