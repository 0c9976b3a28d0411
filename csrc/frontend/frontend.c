/* The entry: reads the signature, makes the kernel's parameters, walks the function, and lets go of every Python object
 * it held. */
#include "frontend/walker.h"

/* ---- parameters ------------------------------------------------------------------------------------------------------- */

typedef struct Parameters {
    TT_VECTOR(const Type *) types;
    TT_VECTOR(int64_t) divisibilities;
    TT_VECTOR(const char *) names;
} Parameters;

static Term add_parameter(Walker *w, Parameters *parameters, PyObject *entry, const char *name)
{
    const char *text;
    long long divisibility;
    if (!PyArg_ParseTuple(entry, "sL", &text, &divisibility))
        tt_python_error(w);
    const Dtype *dtype = tt_dtype_of_signature(&w->state->pointers, text);
    if (!dtype)
        tt_fail(w, "the signature has an unknown type %s for the parameter `%s`", text, name);
    tt_push(w->arena, parameters->types, tt_dtype_ir(w, dtype));
    tt_push(w->arena, parameters->divisibilities, divisibility);
    tt_push(w->arena, parameters->names, name);
    return tt_value_term(NULL, dtype); /* the value comes with the function */
}

static Term read_entry(Walker *w, Parameters *parameters, PyObject *entry, const char *name);

/* A list, or a named tuple of entries, which gives its type to the tuple that the kernel sees. */
static Term read_tuple(Walker *w, Parameters *parameters, PyObject *entry, const char *name)
{
    bool named = PyTuple_Check(entry);
    int count = named ? (int)PyTuple_Size(entry) : tt_list_size(w, entry);
    Term tuple = {.kind = TERM_TUPLE, .count = count, .items = TT_NEW_ARRAY(w->arena, Term, count)};
    if (named)
        tuple.object = tt_keep(w, Py_NewRef((PyObject *)Py_TYPE(entry)));
    for (int i = 0; i < count; i++) {
        PyObject *item = named ? PyTuple_GetItem(entry, i) : tt_list_item(w, entry, i);
        tuple.items[i] = read_entry(w, parameters, item, tt_arena_format(w->arena, "%s_%d", name, i));
    }
    return tuple;
}

static Term read_entry(Walker *w, Parameters *parameters, PyObject *entry, const char *name)
{
    tt_check_depth(w);
    if (tt_object_kind(w, entry) == OBJECT_CONSTEXPR)
        return tt_python_term(w, entry);
    if (PyTuple_CheckExact(entry))
        return add_parameter(w, parameters, entry, name);
    if (!PyList_Check(entry) && !PyTuple_Check(entry))
        tt_fail(w, "the signature of the parameter `%s` is %s", name,
                tt_describe(w, tt_python_term(w, entry)));
    return read_tuple(w, parameters, entry, name);
}

static Term *read_signature(Walker *w, const FunctionInfo *info, PyObject *entries, Parameters *parameters)
{
    const Signature *signature = &info->signature;
    Term *args = TT_NEW_ARRAY(w->arena, Term, signature->count);
    if (!PyTuple_Check(entries) || PyTuple_Size(entries) != signature->count)
        tt_fail(w, "the signature does not have one entry for each parameter of `%s`", signature->name);
    for (int i = 0; i < signature->count; i++)
        args[i] =
            read_entry(w, parameters, PyTuple_GetItem(entries, i), tt_utf8(w, signature->parameters[i].name));
    return args;
}

static Function *make_kernel(Walker *w, const FunctionInfo *info, const Parameters *parameters)
{
    const char *name = tt_function_name(w, info->signature.name);
    Function *kernel =
        tt_new_function(w->module, name, parameters->types.data, parameters->types.count, NULL, 0);
    kernel->is_kernel = true;
    kernel->loc = info->loc;
    for (int i = 0; i < parameters->types.count; i++) {
        kernel->body->args[i]->name = tt_intern(w->module, parameters->names.data[i]);
        kernel->param_attrs[i] = tt_parameter_attrs(w->module, parameters->divisibilities.data[i]);
    }
    return kernel;
}

/* ---- the run ------------------------------------------------------------------------------------------------------------ */

static void build(Walker *w, void *context)
{
    const FrontendRequest *request = context;
    if (tt_object_kind(w, request->function) != OBJECT_JIT)
        tt_fail(w, "only functions of @triton.jit can be compiled");
    FunctionInfo *info = tt_function_info(w, request->function);
    Parameters parameters = {0};
    int next = 0;
    w->builder.loc = info->loc;
    Term *args = read_signature(w, info, request->signature, &parameters);
    Function *kernel = make_kernel(w, info, &parameters);
    for (int i = 0; i < info->signature.count; i++)
        args[i] = tt_rebuild(w, args[i], kernel->body->args, &next);
    w->builder = tt_builder_at_end(kernel->body);
    Term result = tt_walk_function(w, info, args, NULL);
    w->builder.loc = info->loc;
    tt_build_return(w, kernel, result);
}

static void start(Walker *w, const FrontendRequest *request)
{
    static const char *const names[] = {
#define FIELD(name) #name,
#include "frontend/fields.def"
    };
    WalkerState *state = w->state;
    Map *const maps[] = {&state->node_kinds, &state->object_kinds,    &state->callees,
                         &state->functions,  &state->specialisations, &state->assigned,
                         &state->dtypes,     &state->dtype_objects,   &state->pointers,
                         &state->reported};
    for (size_t i = 0; i < TT_COUNT(maps); i++)
        maps[i]->arena = w->arena;
    for (int i = 0; i < FIELD_NAMES; i++)
        state->fields[i] = tt_keep(w, PyUnicode_InternFromString(names[i]));
    state->builtins = PyEval_GetBuiltins();
    tt_keep(w, Py_XNewRef(state->builtins));
    state->used_names = request->used_names == Py_None ? NULL : request->used_names;
    state->own_names = request->own_names;
    state->breathe = request->breathe;
}

static void release(WalkerState *state)
{
    for (int i = state->kept.count - 1; i >= 0; i--)
        Py_DECREF(state->kept.data[i]);
}

/* A mistake found inside of the part of the language that is written in itself is the caller's: shown at the call,
 * with the function's name before the message. */
static void show_at_call(Walker *w, Diagnostic *diag)
{
    const char *function = NULL;
    PyObject *language = PyImport_ImportModule("triton.language");
    PyObject *path = language ? PyObject_GetAttrString(language, "__file__") : NULL;
    const char *file = path && PyUnicode_Check(path) ? tt_utf8(w, path) : NULL;
    const char *end = file ? strrchr(file, '/') : NULL;
    while (end && diag->loc && diag->loc->caller &&
           !strncmp(diag->loc->file, file, (size_t)(end + 1 - file))) {
        function = diag->loc->function;
        diag->loc = diag->loc->caller;
    }
    if (function)
        diag->message = tt_arena_format(w->arena, "tl.%s: %s", function, diag->message);
    Py_XDECREF(path);
    Py_XDECREF(language);
}

/* Lets go of what the run held. A pending exception stays: it is the cause of the diagnostic. */
static _Noreturn void fail(Walker *w, Diagnostic *diag)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    show_at_call(w, diag);
    PyErr_Clear(); /* of the module of the language, where nothing is to be found out */
    release(w->state);
    PyErr_Restore(type, value, traceback);
    tt_raise(diag);
}

Module *tt_run_walk(Arena *arena, FrontendRequest *request, WalkFunction *function, void *context)
{
    WalkerState *state = TT_NEW(arena, WalkerState);
    Walker *w = TT_NEW(arena, Walker);
    Trap trap;
    state->stack.base = __builtin_frame_address(0);
    *w =
        (Walker){.arena = arena, .module = tt_new_module(arena), .options = request->options, .state = state};
    w->builder.module = w->module;
    if (!tt_try(&trap, arena))
        fail(w, &trap.diag);
    start(w, request);
    function(w, context);
    request->had_effects = state->had_effects;
    tt_end_try(&trap);
    tt_breathe_in_walk(w);
    release(state);
    tt_breathe_in_walk(w);
    const char *broken = tt_verify(w->module, arena);
    if (broken)
        tt_bug("the frontend built wrong tile IR for %s\n%s", w->module->functions->name, broken);
    return w->module;
}

Module *tt_frontend_build(Arena *arena, FrontendRequest *request)
{
    return tt_run_walk(arena, request, build, request);
}
