/* What the module keeps (types, interned names), and telling types of arguments apart, once for each type. */
#include "python/extension.h"

const OptionKind tt_option_kinds[TT_OPTION_COUNT] = {
#define OPTION(name, kind) [OPTION_##name] = OPTION_##kind,
    TT_OPTIONS(OPTION)
#undef OPTION
};

static PyTypeObject *add_type(PyObject *module, PyType_Spec *spec)
{
    PyTypeObject *type = (PyTypeObject *)PyType_FromModuleAndSpec(module, spec, NULL);
    if (type && PyModule_AddType(module, type) < 0)
        Py_CLEAR(type);
    return type;
}

int tt_state_init(PyObject *module)
{
    State *state = PyModule_GetState(module);
#define NAME(name)                                                                                           \
    if (!(state->names.name = PyUnicode_InternFromString(#name)))                                            \
        return -1;
    TT_NAMES(NAME)
#undef NAME
#define OPTION(name, kind)                                                                                   \
    if (!(state->options[OPTION_##name] = PyUnicode_InternFromString(#name)))                                \
        return -1;
    TT_OPTIONS(OPTION)
#undef OPTION
    state->kernel_type = add_type(module, &tt_kernel_spec);
    state->launcher_type = add_type(module, &tt_launcher_spec);
    PyObject *compiled_type = (PyObject *)add_type(module, &tt_compiled_spec); /* Python derives from it */
    state->dtype_texts = PyDict_New();
    bool done = state->kernel_type && state->launcher_type && compiled_type && state->dtype_texts;
    Py_XDECREF(compiled_type);
    return done ? 0 : -1;
}

int tt_state_traverse(PyObject *module, visitproc visit, void *arg)
{
    State *state = PyModule_GetState(module);
    Py_VISIT(state->kernel_type);
    Py_VISIT(state->launcher_type);
    Py_VISIT(state->debug);
    Py_VISIT(state->interpreter);
    for (int i = 0; i < KERNEL_HOOKS; i++)
        Py_VISIT(state->kernel_hooks[i]);
    Py_VISIT(state->numpy_dtype);
    Py_VISIT(state->current_stream);
    Py_VISIT(state->dtype_texts);
    Py_VISIT(state->launch_hooks[0]);
    Py_VISIT(state->launch_hooks[1]);
    for (int i = 0; i < TYPE_CACHE_SIZE; i++)
        Py_VISIT(state->types[i].type);
    return 0;
}

int tt_state_clear(PyObject *module)
{
    State *state = PyModule_GetState(module);
#define NAME(name) Py_CLEAR(state->names.name);
    TT_NAMES(NAME)
#undef NAME
    for (int i = 0; i < TT_OPTION_COUNT; i++)
        Py_CLEAR(state->options[i]);
    for (int i = 0; i < TYPE_CACHE_SIZE; i++)
        Py_CLEAR(state->types[i].type);
    Py_CLEAR(state->debug);
    Py_CLEAR(state->interpreter);
    for (int i = 0; i < KERNEL_HOOKS; i++)
        Py_CLEAR(state->kernel_hooks[i]);
    Py_CLEAR(state->numpy_dtype);
    Py_CLEAR(state->current_stream);
    Py_CLEAR(state->dtype_texts);
    Py_CLEAR(state->launch_hooks[0]);
    Py_CLEAR(state->launch_hooks[1]);
    Py_CLEAR(state->kernel_type);
    Py_CLEAR(state->launcher_type);
    return 0;
}

State *tt_state_of(PyTypeObject *type)
{
    for (; type; type = PyType_GetSlot(type, Py_tp_base)) {
        PyObject *module = PyType_GetModule(type);
        const char *name = module ? PyModule_GetName(module) : NULL;
        if (name && !strcmp(name, "triton._C"))
            return PyModule_GetState(module);
        PyErr_Clear(); /* TypeError: made by Python or by another module */
    }
    PyErr_SetString(PyExc_SystemError, "a type that does not derive from triton._C");
    return NULL;
}

PyObject *tt_import(const char *module, const char *name)
{
    PyObject *imported = PyImport_ImportModule(module);
    PyObject *object = imported ? PyObject_GetAttrString(imported, name) : NULL;
    Py_XDECREF(imported);
    return object;
}

bool tt_call_kernel_hook(const State *state, KernelHook hook, PyObject *arguments)
{
    PyObject *function = arguments ? Py_XNewRef(state->kernel_hooks[hook]) : NULL;
    PyObject *result = function ? PyObject_Call(function, arguments, NULL) : NULL;
    bool done = arguments && (result || !function);
    Py_XDECREF(arguments);
    Py_XDECREF(function);
    Py_XDECREF(result);
    return done;
}

/* ---- types of arguments ---- */

PyObject *tt_look(PyObject *object, PyObject *attribute)
{
    PyObject *found = PyErr_Occurred() ? NULL : PyObject_GetAttr(object, attribute);
    if (!found)
        tt_forgive();
    return found;
}

/* What raises is taken for absent, and ends as an argument of unknown type. */
static bool has(PyTypeObject *type, PyObject *attribute)
{
    PyObject *found = tt_look((PyObject *)type, attribute);
    Py_XDECREF(found);
    return found != NULL;
}

static PyObject *look_in_module(const char *module, const char *name)
{
    PyObject *found =
        PyDict_GetItemString(PyImport_GetModuleDict(), module); /* borrowed, as are the modules */
    PyObject *text = found && !PyErr_Occurred() ? PyUnicode_FromString(name) : NULL;
    PyObject *value = text ? tt_look(found, text) : NULL;
    Py_XDECREF(text);
    return value;
}

static bool is_subtype(PyTypeObject *type, PyObject *of)
{
    return of && PyType_Check(of) && PyType_IsSubtype(type, (PyTypeObject *)of);
}

/* The kind of a NumPy type, ARG_UNKNOWN for one that is not NumPy's. Does not import NumPy. */
static ArgumentKind classify_numpy(PyTypeObject *type)
{
    static const struct {
        const char *name;
        ArgumentKind kind;
    } rows[] = {
        {"ndarray", ARG_NDARRAY},  {"integer", ARG_INDEX}, {"floating", ARG_NUMPY_FLOAT},
        {"bool_", ARG_NUMPY_BOOL}, {"dtype", ARG_DTYPE},
    };
    for (size_t i = 0; i < TT_COUNT(rows); i++) {
        PyObject *base = look_in_module("numpy", rows[i].name);
        bool found = is_subtype(type, base);
        Py_XDECREF(base);
        if (found)
            return rows[i].kind;
    }
    return ARG_UNKNOWN;
}

/* Marks of this package's own types: see __triton_kind__ in python/triton. */
static ArgumentKind classify_marked(State *state, PyTypeObject *type)
{
    PyObject *mark = tt_look((PyObject *)type, state->names.__triton_kind__);
    if (!mark)
        return ARG_UNKNOWN;
    ArgumentKind kind = ARG_CONSTANT;
    if (PyUnicode_Check(mark) && !PyUnicode_CompareWithASCIIString(mark, "constexpr"))
        kind = ARG_CONSTEXPR;
    else if (PyUnicode_Check(mark) && !PyUnicode_CompareWithASCIIString(mark, "mock"))
        kind = ARG_MOCK;
    else if (PyUnicode_Check(mark) && !PyUnicode_CompareWithASCIIString(mark, "descriptor"))
        kind = ARG_DESCRIPTOR;
    Py_DECREF(mark);
    return kind;
}

static bool is_torch_dtype(State *state, PyTypeObject *type)
{
    PyObject *module = tt_look((PyObject *)type, state->names.__module__);
    PyObject *name = tt_look((PyObject *)type, state->names.__name__);
    bool result = module && name && PyUnicode_Check(module) && PyUnicode_Check(name) &&
                  !PyUnicode_CompareWithASCIIString(module, "torch") &&
                  !PyUnicode_CompareWithASCIIString(name, "dtype");
    Py_XDECREF(module);
    Py_XDECREF(name);
    return result;
}

static ArgumentKind classify_protocol(State *state, PyTypeObject *type)
{
    if (is_torch_dtype(state, type))
        return ARG_DTYPE;
    if (has(type, state->names.data_ptr))
        return ARG_DATA_PTR;
    if (has(type, state->names.__array_interface__))
        return ARG_INTERFACE;
    if (has(type, state->names.__cuda_array_interface__))
        return ARG_CUDA_INTERFACE;
    if (has(type, state->names.__dlpack__))
        return ARG_DLPACK;
    return PyType_GetSlot(type, Py_nb_index) ? ARG_INDEX : ARG_UNKNOWN;
}

static ArgumentKind classify_builtin(PyTypeObject *type)
{
    if (type == &PyBool_Type)
        return ARG_BOOL;
    if (PyType_IsSubtype(type, &PyLong_Type))
        return ARG_INT;
    if (PyType_IsSubtype(type, &PyFloat_Type))
        return ARG_FLOAT;
    if (PyType_IsSubtype(type, &PyTuple_Type))
        return ARG_TUPLE;
    if (type == Py_TYPE(Py_None))
        return ARG_NONE;
    return PyType_IsSubtype(type, &PyUnicode_Type) ? ARG_CONSTANT : ARG_UNKNOWN;
}

/* Whether a package made the type. */
static bool is_from(State *state, PyTypeObject *type, const char *package)
{
    PyObject *module = tt_look((PyObject *)type, state->names.__module__);
    PyObject *bytes = module && PyUnicode_Check(module) ? PyUnicode_AsUTF8String(module) : NULL;
    const char *name = bytes ? PyBytes_AsString(bytes) : "";
    size_t length = strlen(package);
    bool result = !strncmp(name, package, length) && (!name[length] || name[length] == '.');
    tt_forgive(); /* a name that is no text */
    Py_XDECREF(module);
    Py_XDECREF(bytes);
    return result;
}

/* The start of DLPack's table of C functions; version 1 is the one known here. */
typedef struct ExchangeHeader {
    uint32_t major, minor;
    const struct ExchangeHeader *previous;
} ExchangeHeader;

static const void *find_exchange(State *state, PyTypeObject *type)
{
    PyObject *capsule = tt_look((PyObject *)type, state->names.__dlpack_c_exchange_api__);
    const ExchangeHeader *table = capsule ? PyCapsule_GetPointer(capsule, "dlpack_exchange_api") : NULL;
    tt_forgive();        /* no capsule, or of something else */
    Py_XDECREF(capsule); /* the table itself lives as long as the process, says DLPack */
    while (table && table->major != 1)
        table = table->previous;
    return table;
}

static bool is_tensor_of_torch(PyTypeObject *type)
{
    PyObject *base = look_in_module("torch", "Tensor");
    bool result = base && is_subtype(type, base);
    Py_XDECREF(base);
    return result;
}

static bool is_class_of(PyTypeObject *type, const char *module, const char *name)
{
    PyObject *class = look_in_module(module, name);
    Py_XDECREF(class);
    return class == (PyObject *)type;
}

/* From the surest to the most general: marks of this package, NumPy, DLPack's table, then attributes. */
static TypeEntry classify_type(State *state, PyTypeObject *type, PyObject *object)
{
    TypeEntry entry = {.type = type, .kind = classify_builtin(type)};
    if (entry.kind == ARG_UNKNOWN)
        entry.kind = classify_marked(state, type);
    if (entry.kind == ARG_UNKNOWN)
        entry.kind = classify_numpy(type);
    if (entry.kind == ARG_UNKNOWN && (entry.exchange = find_exchange(state, type)))
        entry.kind = ARG_EXCHANGE;
    if (entry.kind == ARG_UNKNOWN)
        entry.kind = classify_protocol(state, type);
    if (entry.kind == ARG_UNKNOWN && PyCallable_Check(object))
        entry.kind = ARG_CONSTANT;
    entry.is_cupy = entry.kind == ARG_CUDA_INTERFACE && is_from(state, type, "cupy");
    entry.has_negative_bit = entry.kind >= ARG_EXCHANGE && has(type, state->names.is_neg);
    entry.is_torch = entry.has_negative_bit && is_tensor_of_torch(type);
    entry.is_plain_torch = entry.is_torch && (is_class_of(type, "torch", "Tensor") ||
                                              is_class_of(type, "torch.nn.parameter", "Parameter"));
    return entry;
}

/* The number of its place in State.types. */
static unsigned place_of(PyTypeObject *type)
{
    return (unsigned)((uint64_t)(uintptr_t)type * 0x9e3779b97f4a7c15u >> 57);
}

const TypeEntry *tt_known_type(const State *state, PyTypeObject *type)
{
    const TypeEntry *entry = &state->types[place_of(type)];
    return entry->type == type ? entry : NULL;
}

const TypeEntry *tt_classify(State *state, PyObject *object)
{
    PyTypeObject *type = Py_TYPE(object);
    TypeEntry *entry = &state->types[place_of(type)];
    if (entry->type == type)
        return entry;
    TypeEntry fresh = classify_type(state, type, object);
    if (PyErr_Occurred())
        return NULL;
    PyTypeObject *old = entry->type;
    Py_INCREF((PyObject *)type);
    *entry = fresh;
    Py_XDECREF((PyObject *)old);
    return entry;
}
