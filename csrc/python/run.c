/* CompiledKernel._run: a launch of just this code, for callers that know what it was compiled for. Arguments are read
 * as the types in its signature say; nothing is specialised. */
#include "python/extension.h"

/* What the kernel was compiled for in place of a parameter. */
typedef struct RunParam {
    Param param;
    int divisibility; /* of the address or the value */
    PyObject *types;  /* of a tuple's items, borrowed from `info` like the next; else NULL */
    PyObject *divisibilities;
} RunParam;

enum { GRID, STREAM = 3, LAUNCH_METADATA = 6, ENTER_HOOK, EXIT_HOOK, ARGUMENTS };

/* ---- what it was compiled for ---------------------------------------------------------------------------------------- */

/* From "*fp32", "*kfp32" (not stored to), "i32" or "constexpr", or from a tuple of such. */
static bool read_type(RunParam *into, PyObject *name, PyObject *type, PyObject *divisibility)
{
    *into = (RunParam){.param = {.name = name, .scalar = SCALAR_KINDS, .pointee = SCALAR_KINDS}};
    into->param.any_value = into->param.any_alignment = true;
    into->divisibility = 1;
    if (PyTuple_Check(type)) {
        into->types = type;
        into->divisibilities = divisibility;
        return true;
    }
    PyObject *bytes = PyUnicode_AsUTF8String(type);
    const char *text = bytes ? PyBytes_AsString(bytes) : "";
    into->param.is_constexpr = !strcmp(text, "constexpr");
    into->param.is_const = text[0] == '*' && text[1] == 'k';
    if (*text == '*')
        into->param.pointee = tt_scalar_by_name(text + 1 + into->param.is_const);
    else if (!into->param.is_constexpr)
        into->param.scalar = tt_scalar_by_name(text);
    if (!into->param.is_constexpr)
        into->divisibility = (int)PyLong_AsLong(divisibility);
    if (into->divisibility < 0) /* the number is */
        into->divisibility = -into->divisibility;
    Py_XDECREF(bytes);
    return !PyErr_Occurred();
}

static RunParam *run_params(Compiled *compiled)
{
    if (compiled->run_params)
        return compiled->run_params;
    const Kernel *kernel = compiled->kernel;
    PyObject *types = PyDict_GetItemString(compiled->info, "signature");
    PyObject *divisibilities = PyDict_GetItemString(compiled->info, "divisibility");
    RunParam *params = PyMem_Calloc((size_t)kernel->param_count + 1, sizeof *params);
    if (!params)
        PyErr_NoMemory();
    for (int i = 0; params && i < kernel->param_count; i++) {
        PyObject *name = kernel->params[i].name, *type = PyDict_GetItem(types, name);
        if (!type || !read_type(&params[i], name, type, PyDict_GetItem(divisibilities, name))) {
            if (!PyErr_Occurred())
                PyErr_Format(PyExc_KeyError, "the signature of %U has no %R", kernel->name, name);
            PyMem_Free(params);
            params = NULL;
        }
    }
    return compiled->run_params = params;
}

void tt_release_run_params(Compiled *compiled) { PyMem_Free(compiled->run_params); }

/* ---- arguments --------------------------------------------------------------------------------------------------------- */

static bool add_argument(const Compiled *compiled, Specialization *s, const RunParam *param, PyObject *value);

static bool add_items(const Compiled *compiled, Specialization *s, const RunParam *param, PyObject *value)
{
    Py_ssize_t count = PyTuple_Size(param->types);
    ArgumentPath path = {s->function, param->param.name, NULL, 0, false};
    if (!(value = tt_descriptor_tuple(s, value)))
        return false;
    if (!PyTuple_Check(value) || PyTuple_Size(value) != count)
        return tt_argument_error(&path, PyExc_TypeError, "the kernel was compiled for a tuple of %zd", count);
    for (Py_ssize_t i = 0; i < count; i++) {
        RunParam item;
        if (!read_type(&item, param->param.name, PyTuple_GetItem(param->types, i),
                       PyTuple_GetItem(param->divisibilities, i)) ||
            !add_argument(compiled, s, &item, PyTuple_GetItem(value, i)))
            return false;
    }
    return true;
}

/* What the code takes for granted, and what it does to an array. */
static bool check_slot(const Compiled *compiled, const Specialization *s, const RunParam *param, int slot)
{
    ArgumentPath path = {s->function, param->param.name, NULL, 0, false};
    if (s->slots[slot] % (uint64_t)param->divisibility)
        return tt_argument_error(
            &path, PyExc_ValueError,
            param->param.scalar == SCALAR_KINDS
                ? "its address is no multiple of %d bytes, which the kernel was compiled for; launch the "
                  "kernel "
                  "itself, or pass a copy"
                : "it is no multiple of %d, which the kernel was compiled for; launch the kernel itself",
            param->divisibility);
    if ((s->marks[slot] & MARK_READ_ONLY) && slot < compiled->slot_count && compiled->stored[slot])
        return tt_argument_error(&path, PyExc_ValueError,
                                 "the array is read-only, and the kernel stores to it");
    return true;
}

static bool add_argument(const Compiled *compiled, Specialization *s, const RunParam *param, PyObject *value)
{
    if (param->param.is_constexpr)
        return true;
    if (param->types)
        return add_items(compiled, s, param, value);
    int slot = s->slot_count;
    if (!tt_specialize_argument(s, &param->param, value))
        return false;
    if (s->slot_count != slot + 1) {
        ArgumentPath path = {s->function, param->param.name, NULL, 0, false};
        return tt_argument_error(&path, PyExc_TypeError, "it is %R, which the kernel was not compiled for",
                                 value);
    }
    return check_slot(compiled, s, param, slot);
}

static bool add_arguments(Compiled *compiled, Specialization *s, PyObject *const *args, Py_ssize_t count)
{
    const RunParam *params = run_params(compiled);
    int wanted = compiled->kernel->param_count;
    if (params && count != wanted) {
        PyErr_Format(PyExc_TypeError, "%U takes %d arguments, compile-time ones included, and got %zd",
                     compiled->kernel->name, wanted, count);
        return false;
    }
    for (int i = 0; params && i < wanted; i++)
        if (!add_argument(compiled, s, &params[i], args[i]))
            return false;
    return params != NULL;
}

/* ---- where it runs ------------------------------------------------------------------------------------------------------- */

static bool choose_place(const Compiled *compiled, Specialization *s, PyObject *stream)
{
    bool on_cuda = s->target.kind == TARGET_CUDA;
    if (s->array_argument && s->on_cuda != on_cuda) {
        ArgumentPath path = {s->function, s->array_argument, NULL, 0, false};
        return tt_argument_error(&path, PyExc_ValueError, "it is on %s, and the kernel was compiled for %s",
                                 s->on_cuda ? "a GPU" : "the CPU", on_cuda ? "a GPU" : "the CPU");
    }
    if (!s->array_argument)
        s->place.device = TT_MAX(compiled->device, 0);
    s->place.awaited_count = 0; /* who names the stream takes care of the order */
    s->place.ranges = s->ranges;
    s->place.range_count = s->range_count / 2;
    return !on_cuda || tt_read_stream(stream, &s->place.stream);
}

static bool read_grid(const Compiled *compiled, PyObject *const *args, int32_t extents[3])
{
    for (int i = 0; i < 3; i++) {
        long extent = PyLong_AsLong(args[GRID + i]);
        if (extent == -1 && PyErr_Occurred())
            return false;
        if (extent < 0 || extent > INT32_MAX) {
            PyErr_Format(PyExc_ValueError, "%U: %ld is no extent of a grid, from 0 to 2**31 - 1",
                         compiled->kernel->name, extent);
            return false;
        }
        extents[i] = (int32_t)extent;
    }
    return true;
}

/* A chain without functions, which is what there is when nobody asked for anything, costs nothing. */
static bool call_hook(const State *state, PyObject *hook, PyObject *metadata)
{
    if (hook == Py_None)
        return true;
    PyObject *calls = tt_look(hook, state->names.calls), *result = NULL;
    bool empty = calls && PyList_Check(calls) && !PyList_Size(calls);
    Py_XDECREF(calls);
    if (PyErr_Occurred())
        return false;
    if (!empty)
        result = PyObject_CallFunctionObjArgs(hook, metadata, NULL);
    Py_XDECREF(result);
    return empty || result;
}

/* This is the code that the caller wants, and no other. */
static bool check_facts(const Compiled *compiled, const Specialization *s, const int32_t extents[3])
{
    unsigned facts = tt_facts_of_variant(compiled, (LaunchNumbers){s->slots, s->slot_count, extents, 0});
    unsigned missing = compiled->rests_on & ~(facts | FACTS_OF_GRID);
    if (missing)
        PyErr_Format(PyExc_ValueError,
                     "%U was compiled %s for these arguments and this grid; launch the kernel itself",
                     compiled->kernel->name,
                     missing & FACT_FITS ? "with offsets of 32 bits, which do not do"
                                         : "to divide no negative index, which is not certain");
    return !missing;
}

static bool run(Compiled *compiled, Specialization *s, PyObject *const *args, Py_ssize_t count)
{
    int32_t extents[3];
    s->target = tt_code_image(compiled->code)->options.target;
    s->with_ranges = compiled->checks_bounds        ? SPAN_OF_ARRAY
                     : s->target.kind == TARGET_SIM ? SPAN_OF_STORAGE
                                                    : NO_SPAN;
    return read_grid(compiled, args, extents) &&
           add_arguments(compiled, s, args + ARGUMENTS, count - ARGUMENTS) &&
           (!compiled->checks_bounds || tt_specialization_add_ranges(s)) &&
           check_facts(compiled, s, extents) && choose_place(compiled, s, args[STREAM]) &&
           call_hook(compiled->state, args[ENTER_HOOK], args[LAUNCH_METADATA]) &&
           tt_run_programs(compiled, s, extents) &&
           call_hook(compiled->state, args[EXIT_HOOK], args[LAUNCH_METADATA]);
}

PyObject *tt_run_compiled(PyObject *self, PyObject *const *args, Py_ssize_t count)
{
    Compiled *compiled = (Compiled *)self;
    if (!tt_has_kernel(compiled))
        return NULL;
    if (count < ARGUMENTS) {
        PyErr_SetString(PyExc_TypeError, "run() takes a grid of three, stream, function, packed_metadata, "
                                         "launch_metadata and two hooks before the kernel's arguments");
        return NULL;
    }
    Specialization s;
    tt_specialization_init(&s, compiled->state, compiled->kernel->name, false);
    bool done = run(compiled, &s, args, count);
    tt_specialization_release(&s);
    return done ? Py_NewRef(Py_None) : NULL;
}
