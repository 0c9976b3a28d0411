/* A launch: arguments to a key, the key to a compiled kernel, and its programs on the target. */
#include "python/extension.h"
#include "runtime/cuda.h"

/* What the program asks for all kernels holds for those too that would do without. */
static PyObject *debug_option(const Kernel *kernel, PyObject *asked)
{
    PyObject *of_all = kernel->state->debug;
    if (of_all == Py_True)
        return of_all;
    return asked ? asked : kernel->debug ? kernel->debug : of_all;
}

/* Everything a kernel depends on, in the order of read_signature and read_options. `generally`: nothing is made of what the
 * numbers are that do not change the results. */
static bool specialize(const Kernel *kernel, const Call *call, Specialization *s, bool generally)
{
    s->is_launch_general = generally;
    for (int i = 0; i < kernel->param_count; i++) {
        s->is_general = generally && kernel->known[i].role == NUMBER_FREE;
        if (!tt_specialize_with(s, &kernel->params[i], call->values[i], &kernel->known[i]))
            return false;
    }
    int first = call->has_options ? 0 : OPTION_debug; /* which holds without being asked for, too */
    int end = call->has_options ? TT_OPTION_COUNT : OPTION_debug + 1;
    for (int i = first; i < end; i++) {
        PyObject *value = call->options[i];
        if (i == OPTION_debug)
            value = debug_option(kernel, value);
        if (value && tt_option_kinds[i] < OPTION_LAUNCH && !tt_specialize_option(s, (Option)i, value))
            return false;
    }
    return tt_specialization_finish(s);
}

/* Reads an argument of the launch of `s` once more, as it was read for that. */
static bool read_again(const Kernel *kernel, const Call *call, const Specialization *s, int i,
                       Specialization *again)
{
    again->is_general = s->is_launch_general && kernel->known[i].role == NUMBER_FREE;
    return tt_specialize_argument(again, &kernel->params[i], call->values[i]);
}

/* For a message: slots do not know their parameter, so the arguments are read again until the slot appears. */
static const Param *param_of_slot(const Kernel *kernel, const Call *call, const Specialization *s, int slot)
{
    Specialization again;
    const Param *found = NULL;
    tt_specialization_init(&again, kernel->state, kernel->name, s->warmup);
    for (int i = 0; !found && i < kernel->param_count; i++)
        if (!read_again(kernel, call, s, i, &again) || again.slot_count > slot)
            found = &kernel->params[i];
    tt_specialization_release(&again);
    return found;
}

static bool stores_to_read_only(const Kernel *kernel, const Call *call, const Specialization *s,
                                const Compiled *compiled)
{
    for (int i = 0; i < s->slot_count; i++) {
        if (!(s->marks[i] & MARK_READ_ONLY) || !compiled->stored[i])
            continue;
        const Param *param = param_of_slot(kernel, call, s, i);
        ArgumentPath path = {kernel->name, param ? param->name : kernel->name, NULL, 0, false};
        tt_argument_error(
            &path, PyExc_ValueError,
            "the array is read-only, and the kernel stores to it; pass a copy, or make it writeable");
        return true;
    }
    return false;
}

static bool run_hooks(const Kernel *kernel, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    if (!kernel->hooks)
        return true;
    PyObject *positional = PyTuple_New(count), *named = PyDict_New();
    bool done = positional && named;
    for (Py_ssize_t i = 0; done && i < count; i++)
        PyTuple_SetItem(positional, i, Py_NewRef(args[i]));
    for (Py_ssize_t i = 0; done && keywords && i < PyTuple_Size(keywords); i++)
        done = !PyDict_SetItem(named, PyTuple_GetItem(keywords, i), args[count + i]);
    for (Py_ssize_t i = 0; done && i < PyList_Size(kernel->hooks); i++) {
        PyObject *result = PyObject_Call(PyList_GetItem(kernel->hooks, i), positional, named);
        done = result != NULL;
        Py_XDECREF(result);
    }
    Py_XDECREF(positional);
    Py_XDECREF(named);
    return done;
}

/* The frontend and specialize.c count run-time parameters each in its own way; never run code with too few. */
static bool check_slots(const Compiled *compiled, const Specialization *s)
{
    if (compiled->slot_count == s->slot_count)
        return true;
    PyErr_Format(PyExc_SystemError, "%U was compiled for %d run-time parameters and launched with %d",
                 compiled->kernel->name, compiled->slot_count, s->slot_count);
    return false;
}

bool tt_run_programs(Compiled *compiled, const Specialization *s, const int32_t extents[3])
{
    PyObject *const *hooks = compiled->state->kernel_hooks;
    if (!check_slots(compiled, s))
        return false;
    if (!compiled->is_loaded && (hooks[BEFORE_LOAD] || hooks[AFTER_LOAD]) && !tt_load_compiled(compiled))
        return false;
    if (!extents[0] || !extents[1] || !extents[2])
        return true;
    compiled->was_launched = true;
    Arena arena = {0};
    Trap trap;
    LaunchResult result = {0};
    SignalCheck check;
    Place place = s->place;
    TargetKind kind = tt_code_image(compiled->code)->options.target.kind;
    if (kind == TARGET_SIM)
        tt_keep_environment(); /* for its seed */
    place.interrupt = tt_release_gil(&check);
    /* On a GPU nothing runs that could be left. */
    bool watched = kind != TARGET_CUDA;
    bool outer = watched && tt_watch_begin();
    bool launched = tt_try(&trap, &arena);
    if (launched) {
        result = tt_code_launch(compiled->code, place, s->slots, extents, &arena);
        tt_end_try(&trap);
    }
    if (watched)
        tt_watch_end(outer);
    bool done = tt_take_gil(&check) && launched;
    done &= tt_write_output(&result);
    if (!launched)
        tt_set_launch_diagnostic(compiled, extents, &trap.diag);
    else if (result.failure.text)
        tt_set_launch_error(compiled, &result.failure);
    tt_arena_release(&arena);
    return done && !result.failure.text;
}

/* The slots of a kernel that checks bounds: the arguments are read again, now with where their arrays end. */
static bool run_checked(const Kernel *kernel, const Call *call, Compiled *compiled,
                        const Specialization *launched, const int32_t extents[3])
{
    Specialization s;
    tt_specialization_init(&s, kernel->state, kernel->name, false);
    s.with_ranges = compiled->checks_bounds ? SPAN_OF_ARRAY : SPAN_OF_STORAGE;
    bool done = true;
    for (int i = 0; done && i < kernel->param_count; i++)
        done = read_again(kernel, call, launched, i, &s);
    s.place = launched->place;
    s.place.ranges = s.ranges;
    s.place.range_count = s.range_count / 2;
    done = done && (!compiled->checks_bounds || tt_specialization_add_ranges(&s)) &&
           tt_run_programs(compiled, &s, extents);
    tt_specialization_release(&s);
    return done;
}

/* One launch, from its arguments to its end. */
typedef struct Launch {
    Kernel *kernel;
    PyObject *grid;
    PyObject *const *args;
    Py_ssize_t count;
    PyObject *keywords;
    Call call;
    Request *requests[2]; /* for variants that are to be compiled in the background, or NULL */
    Specialization specialization;
} Launch;

/* The stream to enqueue on: the caller's, else the one that the arrays' library works on. */
static bool choose_stream(Launch *launch)
{
    Specialization *s = &launch->specialization;
    PyObject *asked = launch->call.options[OPTION_stream];
    if (s->target.kind != TARGET_CUDA)
        return true;
    if (asked && asked != Py_None) {
        s->place.awaited_count = 0; /* who names the stream takes care of the order */
        return tt_read_stream(asked, &s->place.stream);
    }
    if (s->too_many_streams) {
        PyErr_Format(PyExc_ValueError,
                     "%U(): its arrays come from more than %d streams; synchronize them, and name the one to "
                     "launch on "
                     "as stream=...",
                     s->function, AWAITED_STREAMS);
        return false;
    }
    if (!s->has_stream && !tt_find_stream(s->state, s->place.device, s->array_type, &s->place.stream))
        return false;
    int count = 0;
    for (int i = 0; i < s->place.awaited_count; i++)
        if (s->awaited[i] != s->place.stream)
            s->awaited[count++] = s->awaited[i];
    s->place.awaited = s->awaited;
    s->place.awaited_count = count;
    return true;
}

/* The arguments by name, for hooks. */
static PyObject *named_arguments(const Launch *launch)
{
    const Kernel *kernel = launch->kernel;
    PyObject *named = PyDict_New();
    for (int i = 0; named && i < kernel->param_count; i++)
        if (PyDict_SetItem(named, kernel->params[i].name, launch->call.values[i]) < 0)
            Py_CLEAR(named);
    return named;
}

/* The hooks of all kernels' launches share what they are told: *metadata, made for the first of them. */
static bool call_launch_hook(const Launch *launch, const Compiled *compiled, const int32_t extents[3],
                             int which, PyObject **metadata)
{
    PyObject *hook = launch->kernel->state->launch_hooks[which];
    if (!hook)
        return true;
    Py_INCREF(hook); /* it may take itself off */
    if (!*metadata) {
        PyObject *type = tt_import("triton.compiler.compiled", "LaunchMetadata");
        PyObject *named = named_arguments(launch);
        PyObject *stream = PyLong_FromVoidPtr(launch->specialization.place.stream);
        if (type && named && stream)
            *metadata = PyObject_CallFunction(type, "O(iii)OO", (PyObject *)compiled, extents[0], extents[1],
                                              extents[2], stream, named);
        Py_XDECREF(type);
        Py_XDECREF(named);
        Py_XDECREF(stream);
    }
    PyObject *result = *metadata ? PyObject_CallFunctionObjArgs(hook, *metadata, NULL) : NULL;
    Py_DECREF(hook);
    Py_XDECREF(result);
    return result != NULL;
}

static bool run_between_hooks(Launch *launch, Compiled *compiled, const int32_t extents[3])
{
    const Specialization *s = &launch->specialization;
    PyObject *metadata = NULL;
    bool done = call_launch_hook(launch, compiled, extents, 0, &metadata) &&
                (compiled->checks_bounds || s->target.kind == TARGET_SIM
                     ? run_checked(launch->kernel, &launch->call, compiled, s, extents)
                     : tt_run_programs(compiled, s, extents)) &&
                call_launch_hook(launch, compiled, extents, 1, &metadata);
    Py_XDECREF(metadata);
    return done;
}

/* The grid that a launch has, from either place where it may be given. */
static bool read_grid(const Launch *launch, int32_t extents[3])
{
    const Kernel *kernel = launch->kernel;
    PyObject *keyword = launch->call.options[OPTION_grid], *grid = launch->grid ? launch->grid : keyword;
    if (!grid || grid == Py_None || (launch->grid && keyword)) {
        const char *format = launch->grid && keyword
                                 ? "%U[grid]() got another grid as the keyword argument 'grid'"
                                 : "%U.run() needs the keyword argument 'grid'";
        PyErr_Format(PyExc_TypeError, format, kernel->name);
        return false;
    }
    return tt_read_grid(kernel, grid, &launch->call, extents);
}

/* Whatever may raise comes before the hooks, and they come before the programs: a launch happens as a whole or not. */
static bool start(Launch *launch, Compiled *compiled, const int32_t extents[3])
{
    const Kernel *kernel = launch->kernel;
    const Specialization *s = &launch->specialization;
    return choose_stream(launch) &&
           !(s->any_read_only && stores_to_read_only(kernel, &launch->call, s, compiled)) &&
           run_hooks(kernel, launch->args, launch->count, launch->keywords) &&
           run_between_hooks(launch, compiled, extents);
}

static LaunchNumbers numbers_of(const Launch *launch, const int32_t extents[3])
{
    const Specialization *s = &launch->specialization;
    return (LaunchNumbers){s->slots, s->slot_count, extents, tt_multiprocessors(s->target, s->place.device)};
}

/* ---- launches for which there is no variant yet ---- */

/* Reads the arguments once more. */
static bool specialize_again(Launch *launch, bool generally)
{
    Specialization *s = &launch->specialization;
    tt_specialization_release(s);
    tt_specialization_init(s, launch->kernel->state, launch->kernel->name, false);
    return specialize(launch->kernel, &launch->call, s, generally);
}

/* A graph keeps the code that it was captured with, which is to be the best there is. Hooks are told by the launch that asks
 * for a variant, in its thread. */
static bool may_do_without(Launch *launch)
{
    const Specialization *s = &launch->specialization;
    PyObject *const *hooks = launch->kernel->state->kernel_hooks;
    return !launch->kernel->never_behind && !hooks[BEFORE_COMPILE] && !hooks[AFTER_COMPILE] &&
           tt_background_enabled() && choose_stream(launch) &&
           !(s->target.kind == TARGET_CUDA && tt_cuda_is_captured(s->place.stream));
}

/* The variant for grids of other sizes, while this one's is compiled behind, unless somebody would notice. NULL: there is none,
 * or an error. */
static Compiled *find_for_other_grid(Launch *launch, const int32_t extents[3])
{
    Kernel *kernel = launch->kernel;
    const Specialization *s = &launch->specialization;
    Compiled *other = tt_find_for_other_grid(kernel, &s->key, numbers_of(launch, extents));
    if (other && !other->had_effects) {
        launch->requests[0] = tt_new_request(kernel, s, extents);
        tt_count_stand_in();
    }
    return other;
}

/* A number is free once a variant was compiled whose results do not depend on what is known of it; for good unless
 * another variant's do. */
static void learn_roles(Launch *launch, const Compiled *compiled)
{
    const Kernel *kernel = launch->kernel;
    Specialization again;
    tt_specialization_init(&again, kernel->state, kernel->name, false);
    for (int i = 0; i < kernel->param_count; i++) {
        int slot = again.slot_count;
        Known *known = &kernel->known[i];
        if (!tt_specialize_argument(&again, &kernel->params[i], launch->call.values[i]))
            break;
        if (again.slot_count != slot + 1 || slot >= compiled->slot_count || known->role == NUMBER_FIXED)
            continue;
        known->role = compiled->order && compiled->order[slot] ? NUMBER_FIXED : NUMBER_FREE;
    }
    tt_forget(); /* what cannot be read now was read before, and matters to the launch alone */
    tt_specialization_release(&again);
}

/* A variant that does for these arguments, too, because it makes nothing of the free numbers, while the one that does is
 * compiled behind. NULL: there is none yet, or an error. */
static Compiled *find_general(Launch *launch, const int32_t extents[3])
{
    Kernel *kernel = launch->kernel;
    const Specialization *s = &launch->specialization;
    Request *special = tt_new_request(kernel, s, extents);
    Compiled *general = NULL;
    if (special && specialize_again(launch, true) && s->any_special)
        general = tt_find_ready(kernel, &s->key, numbers_of(launch, extents));
    if (general) {
        launch->requests[0] = special;
        tt_count_stand_in();
    } else if (special) {
        tt_release_request(special);
    }
    return general;
}

/* For the next launch, with other numbers. */
static bool compile_general(Launch *launch, const Compiled *compiled, const int32_t extents[3])
{
    Kernel *kernel = launch->kernel;
    const Specialization *s = &launch->specialization;
    learn_roles(launch, compiled);
    if (!specialize_again(launch, true))
        return false;
    if (s->any_special && !tt_table_find(&kernel->table, &s->key))
        launch->requests[0] = tt_new_request_in_advance(kernel, s, extents);
    return !PyErr_Occurred() && specialize_again(launch, false);
}

/* Grids grow from launch to launch, of batches as of benchmarks, and where there are many programs, code for few of them is
 * slower than what they would have had without it. */
static void compile_for_many(Launch *launch, const Compiled *compiled)
{
    const Specialization *s = &launch->specialization;
    int32_t many[3] = {2 * tt_multiprocessors(s->target, s->place.device) + 1, 1, 1};
    if (compiled->checks && compiled->checks->counts_programs && compiled->rests_on & FACTS_OF_GRID)
        launch->requests[1] = tt_new_request_in_advance(launch->kernel, s, many);
}

static Compiled *find_missing(Launch *launch, const int32_t extents[3])
{
    Kernel *kernel = launch->kernel;
    const Specialization *s = &launch->specialization;
    bool may = may_do_without(launch), is_first = !tt_table_find(&kernel->table, &s->key);
    Compiled *compiled = may && !is_first && !PyErr_Occurred() ? find_for_other_grid(launch, extents) : NULL;
    may &=
        is_first; /* offsets of another width, say, are compiled where they are needed: that happens once */
    if (may && !PyErr_Occurred())
        compiled = find_general(launch, extents);
    if (compiled || PyErr_Occurred() || (may && !specialize_again(launch, false)))
        return compiled;
    LaunchNumbers numbers = numbers_of(launch, extents);
    compiled = tt_find_variant(kernel, s, &numbers);
    if (compiled && may && !compiled->had_effects && !compile_general(launch, compiled, extents))
        Py_CLEAR(compiled);
    if (compiled && may && !compiled->had_effects)
        compile_for_many(launch, compiled);
    return compiled;
}

/* Which variant it is depends on the grid, too. */
static Compiled *launch_specialized(Launch *launch)
{
    int32_t extents[3];
    const Specialization *s = &launch->specialization;
    if (!read_grid(launch, extents))
        return NULL;
    Compiled *compiled = tt_find_ready(launch->kernel, &s->key, numbers_of(launch, extents));
    if (compiled)
        compiled->is_spare = false;
    else if (!PyErr_Occurred())
        compiled = find_missing(launch, extents);
    if (compiled && !start(launch, compiled, extents))
        Py_CLEAR(compiled);
    for (size_t i = 0; i < TT_COUNT(launch->requests); i++) {
        Request *request = launch->requests[i];
        if (request && !compiled) {
            tt_release_request(request);
        } else if (request) {
            if (s->target.kind == TARGET_CUDA)
                tt_cuda_mark(s->place.device, s->place.stream); /* which the background waits for */
            tt_compile_behind(request);
        }
    }
    return compiled;
}

/* Of a grid that is given, the variant that launches on it will run. One of a single program stands for any, as programs
 * write that have no grid yet (to count how many programs fit on the device, say); a tuner's is what it says. */
static Compiled *warm_up(Launch *launch)
{
    Kernel *kernel = launch->kernel;
    const Specialization *s = &launch->specialization;
    PyObject *keyword = launch->call.options[OPTION_grid];
    int32_t extents[3];
    LaunchNumbers numbers = {.extents = extents,
                             .multiprocessors = tt_multiprocessors(s->target, s->place.device)};
    if (!keyword || keyword == Py_None)
        return tt_find_variant(kernel, s, NULL);
    if (!tt_read_grid(kernel, keyword, &launch->call, extents))
        return NULL;
    bool is_any = extents[0] == 1 && extents[1] == 1 && extents[2] == 1 && !kernel->is_tuned;
    return tt_find_variant(kernel, s, is_any ? NULL : &numbers);
}

static PyObject *slot_numbers(const uint64_t *slots, int count)
{
    PyObject *tuple = PyTuple_New(count);
    for (int i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, PyLong_FromUnsignedLongLong(slots[i]));
    return tuple;
}

/* Hands the launch to the interpreter: what the arguments are and hold as a compiled kernel would get them. */
static bool interpret(Launch *launch)
{
    const Kernel *kernel = launch->kernel;
    Specialization s;
    int32_t extents[3];
    PyObject *signature = NULL, *options = NULL, *result = NULL;
    tt_specialization_init(&s, kernel->state, kernel->name, false);
    s.with_ranges = SPAN_OF_ARRAY;
    if (specialize(kernel, &launch->call, &s, false) && read_grid(launch, extents) &&
        run_hooks(kernel, launch->args, launch->count, launch->keywords) &&
        tt_describe_key(&s.key, kernel, &signature, &options)) {
        PyObject *slots = slot_numbers(s.slots, s.slot_count),
                 *ranges = slot_numbers(s.ranges, s.range_count);
        PyObject *read_only = PyBytes_FromStringAndSize((const char *)s.marks, s.slot_count);
        if (slots && ranges && read_only)
            result = PyObject_CallFunction(
                kernel->state->interpreter, "OOOOOOO(iii)", (PyObject *)kernel, signature, options, slots,
                ranges, read_only, s.on_cuda ? Py_True : Py_False, extents[0], extents[1], extents[2]);
        Py_XDECREF(slots);
        Py_XDECREF(ranges);
        Py_XDECREF(read_only);
    }
    tt_specialization_release(&s);
    Py_XDECREF(signature);
    Py_XDECREF(options);
    Py_XDECREF(result);
    return result != NULL;
}

/* What a launch gives its caller: the compiled kernel, or None where nothing is compiled. A new reference. */
static PyObject *launch_bound(Launch *launch, int warmup)
{
    Kernel *kernel = launch->kernel;
    Call *call = &launch->call;
    Specialization *s = &launch->specialization;
    if (!tt_bind_call(kernel, launch->args, launch->count, launch->keywords, call))
        return NULL;
    if (call->options[OPTION_warmup])
        warmup = PyObject_IsTrue(call->options[OPTION_warmup]); /* -1, and an exception, if it cannot tell */
    if (warmup < 0)
        return NULL;
    if (kernel->state->interpreter && !warmup)
        return interpret(launch) ? Py_NewRef(Py_None) : NULL;
    tt_specialization_init(s, kernel->state, kernel->name, warmup);
    Compiled *compiled = NULL;
    if (specialize(kernel, call, s, false))
        compiled = warmup ? warm_up(launch) : launch_specialized(launch);
    tt_specialization_release(s);
    return (PyObject *)compiled;
}

PyObject *tt_launch(Kernel *kernel, PyObject *grid, PyObject *const *args, Py_ssize_t count,
                    PyObject *keywords, bool warmup)
{
    enum { INLINE_VALUES = 64 };
    PyObject *inline_values[INLINE_VALUES], **values = inline_values;
    if (!kernel->params) {
        PyErr_SetString(PyExc_TypeError, "the kernel was not initialised");
        return NULL;
    }
    if (kernel->param_count > INLINE_VALUES) {
        values = PyMem_Malloc(sizeof *values * (size_t)kernel->param_count);
        if (!values)
            return PyErr_NoMemory();
    }
    Launch launch;
    launch.kernel = kernel;
    launch.grid = grid;
    launch.args = args;
    launch.count = count;
    launch.keywords = keywords;
    launch.call.values = values;
    memset(launch.requests, 0, sizeof launch.requests);
    PyObject *result = launch_bound(&launch, warmup);
    tt_call_release(&launch.call);
    if (values != inline_values)
        PyMem_Free(values);
    return result;
}
