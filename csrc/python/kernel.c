/* The base type of JITFunction, which holds what a launch needs; kernel[grid]; and the launch itself. */
#include "python/extension.h"
#include <stddef.h>
#include <structmember.h>

/* Stable since Python 3.8, in the headers of the limited API since 3.12. */
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
typedef PyObject *(*vectorcallfunc)(PyObject *callable, PyObject *const *args, size_t flags,
                                    PyObject *keywords);
#endif
#define VECTORCALL_COUNT(flags) ((Py_ssize_t)((flags) & ~((size_t)1 << (8 * sizeof(size_t) - 1))))

/* ---- launching ---- */

/* Everything a kernel depends on, in the order of read_signature and read_options. */
static bool specialize(const Kernel *kernel, const Call *call, Specialization *s)
{
    for (int i = 0; i < kernel->param_count; i++)
        if (!tt_specialize_argument(s, &kernel->params[i], call->values[i]))
            return false;
    for (int i = 0; i < TT_OPTION_COUNT; i++) {
        PyObject *value = call->options[i];
        if (!value && i == OPTION_debug)
            value = kernel->debug;
        if (value && tt_option_kinds[i] < OPTION_LAUNCH && !tt_specialize_option(s, (Option)i, value))
            return false;
    }
    tt_specialization_finish(s);
    return true;
}

/* Compiles and remembers the variant; a new reference. Of two threads that do so at once, the second one's stays. */
static Compiled *add_variant(Kernel *kernel, const Key *key)
{
    PyObject *signature, *options;
    if (!tt_describe_key(key, kernel, &signature, &options))
        return NULL;
    Compiled *compiled = tt_compile(kernel, signature, options);
    Py_DECREF(signature);
    Py_DECREF(options);
    if (compiled && !tt_table_add(&kernel->table, key, compiled))
        Py_CLEAR(compiled);
    return compiled;
}

static Compiled *find_variant(Kernel *kernel, const Key *key)
{
    Compiled *compiled = tt_table_find(&kernel->table, key);
    if (compiled)
        Py_INCREF((PyObject *)compiled);
    else if (!PyErr_Occurred())
        compiled = add_variant(kernel, key);
    return compiled;
}

static const Param *param_of_slot(const Kernel *kernel, const Call *call, const Specialization *s, int slot)
{
    Specialization again;
    const Param *found = NULL;
    tt_specialization_init(&again, kernel->state, kernel->name, s->warmup);
    for (int i = 0; !found && i < kernel->param_count; i++)
        if (!tt_specialize_argument(&again, &kernel->params[i], call->values[i]) || again.slot_count > slot)
            found = &kernel->params[i];
    tt_specialization_release(&again);
    return found;
}

static bool stores_to_read_only(const Kernel *kernel, const Call *call, const Specialization *s,
                                const Compiled *compiled)
{
    for (int i = 0; i < s->slot_count; i++) {
        if (!s->read_only[i] || !compiled->stored[i])
            continue;
        const Param *param = param_of_slot(kernel, call, s, i);
        ArgumentPath path = {kernel->name, param ? param->name : kernel->name, NULL, 0};
        tt_argument_error(&path, PyExc_ValueError, "the array is read-only, and the kernel stores to it");
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

/* What the programs printed goes where Python prints. */
static bool write_output(const char *text)
{
    PyObject *out = PySys_GetObject("stdout");
    return !out || out == Py_None || PyFile_WriteString(text, out) == 0;
}

static bool run_programs(Compiled *compiled, const Specialization *s, const int32_t extents[3])
{
    if (!extents[0] || !extents[1] || !extents[2])
        return true;
    Arena arena = {0};
    const char *failure, *printed;
    Py_BEGIN_ALLOW_THREADS;
    failure = tt_cpu_launch(compiled->code, s->slots, extents, &arena, &printed);
    Py_END_ALLOW_THREADS;
    bool done = !printed || write_output(printed);
    if (failure)
        tt_set_launch_error(compiled, failure);
    tt_arena_release(&arena);
    return done && !failure;
}

static bool check_slots(const Compiled *compiled, const Specialization *s)
{
    if (compiled->slot_count == s->slot_count)
        return true;
    PyErr_Format(PyExc_SystemError, "%U was compiled for %d run-time parameters and launched with %d",
                 compiled->kernel->name, compiled->slot_count, s->slot_count);
    return false;
}

/* One launch, from its arguments to its end. */
typedef struct Launch {
    Kernel *kernel;
    PyObject *grid;
    PyObject *const *args;
    Py_ssize_t count;
    PyObject *keywords;
    Call call;
    Specialization specialization;
} Launch;

static bool start(Launch *launch, Compiled *compiled)
{
    Kernel *kernel = launch->kernel;
    const Specialization *s = &launch->specialization;
    int32_t extents[3];
    PyObject *keyword = launch->call.options[OPTION_grid], *grid = launch->grid ? launch->grid : keyword;
    if (!grid || grid == Py_None || (launch->grid && keyword)) {
        const char *format = launch->grid && keyword
                                 ? "%U[grid]() got another grid as the keyword argument 'grid'"
                                 : "%U.run() needs the keyword argument 'grid'";
        PyErr_Format(PyExc_TypeError, format, kernel->name);
        return false;
    }
    return tt_read_grid(kernel, grid, &launch->call, extents) && check_slots(compiled, s) &&
           !(s->any_read_only && stores_to_read_only(kernel, &launch->call, s, compiled)) &&
           run_hooks(kernel, launch->args, launch->count, launch->keywords) &&
           run_programs(compiled, s, extents);
}

static Compiled *launch_bound(Launch *launch, bool warmup)
{
    Kernel *kernel = launch->kernel;
    Call *call = &launch->call;
    Specialization *s = &launch->specialization;
    if (!tt_bind_call(kernel, launch->args, launch->count, launch->keywords, call))
        return NULL;
    if (call->options[OPTION_warmup])
        warmup = PyObject_IsTrue(call->options[OPTION_warmup]) == 1;
    tt_specialization_init(s, kernel->state, kernel->name, warmup);
    Compiled *compiled = specialize(kernel, call, s) ? find_variant(kernel, &s->key) : NULL;
    if (compiled && !warmup && !start(launch, compiled))
        Py_CLEAR(compiled);
    tt_specialization_release(s);
    return compiled;
}

PyObject *tt_launch(Kernel *kernel, PyObject *grid, PyObject *const *args, Py_ssize_t count,
                    PyObject *keywords, bool warmup)
{
    enum { INLINE_VALUES = 32 };
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
    Compiled *compiled = launch_bound(&launch, warmup);
    tt_call_release(&launch.call);
    if (values != inline_values)
        PyMem_Free(values);
    return (PyObject *)compiled;
}

/* ---- kernel[grid] ---- */

typedef struct Launcher {
    PyObject_HEAD vectorcallfunc vectorcall;
    Kernel *kernel;
    PyObject *grid;
} Launcher;

static PyObject *launcher_vectorcall(PyObject *self, PyObject *const *args, size_t flags, PyObject *keywords)
{
    Launcher *launcher = (Launcher *)self;
    return tt_launch(launcher->kernel, launcher->grid, args, VECTORCALL_COUNT(flags), keywords, false);
}

/* For callers that come with a tuple and a dict. */
static PyObject *launcher_call(PyObject *self, PyObject *args, PyObject *named)
{
    Py_ssize_t count = PyTuple_Size(args), named_count = named ? PyDict_Size(named) : 0, at = 0, i = count;
    PyObject **values = PyMem_Malloc(sizeof *values * (size_t)(count + named_count + 1));
    PyObject *keywords = PyTuple_New(named_count), *key, *value, *result = NULL;
    if (!values)
        PyErr_NoMemory();
    if (values && keywords) {
        for (Py_ssize_t k = 0; k < count; k++)
            values[k] = PyTuple_GetItem(args, k);
        for (; named && PyDict_Next(named, &at, &key, &value); i++) {
            PyTuple_SetItem(keywords, i - count, Py_NewRef(key));
            values[i] = value;
        }
        result = launcher_vectorcall(self, values, (size_t)count, keywords);
    }
    Py_XDECREF(keywords);
    PyMem_Free(values);
    return result;
}

static int launcher_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Launcher *)self)->kernel);
    Py_VISIT(((Launcher *)self)->grid);
    return 0;
}

static int launcher_clear(PyObject *self)
{
    Py_CLEAR(((Launcher *)self)->kernel);
    Py_CLEAR(((Launcher *)self)->grid);
    return 0;
}

static void launcher_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    launcher_clear(self);
    PyObject_GC_Del(self);
    Py_DECREF(type);
}

static PyMemberDef launcher_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Launcher, vectorcall), READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot launcher_slots[] = {
    {Py_tp_doc, "kernel[grid]: call it with the kernel's arguments."},
    {Py_tp_call, launcher_call},
    {Py_tp_traverse, launcher_traverse},
    {Py_tp_clear, launcher_clear},
    {Py_tp_dealloc, launcher_dealloc},
    {Py_tp_members, launcher_members},
    {0, NULL},
};

PyType_Spec tt_launcher_spec = {
    .name = "triton._C.Launcher",
    .basicsize = sizeof(Launcher),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
             Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = launcher_slots,
};

static PyObject *kernel_subscript(PyObject *self, PyObject *grid)
{
    Kernel *kernel = (Kernel *)self;
    if (!kernel->state) {
        PyErr_SetString(PyExc_TypeError, "the kernel was not initialised");
        return NULL;
    }
    Launcher *launcher = PyObject_GC_New(Launcher, kernel->state->launcher_type);
    if (!launcher)
        return NULL;
    launcher->vectorcall = launcher_vectorcall;
    launcher->kernel = (Kernel *)Py_NewRef(self);
    launcher->grid = Py_NewRef(grid);
    PyObject_GC_Track(launcher);
    return (PyObject *)launcher;
}

/* ---- the kernel ---- */

static PyObject *kernel_run(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return tt_launch((Kernel *)self, NULL, args, count, keywords, false);
}

static PyObject *kernel_warmup(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *keywords)
{
    return tt_launch((Kernel *)self, NULL, args, count, keywords, true);
}

static PyObject *kernel_add_pre_run_hook(PyObject *self, PyObject *hook)
{
    Kernel *kernel = (Kernel *)self;
    if (!PyCallable_Check(hook)) {
        PyErr_Format(PyExc_TypeError, "a hook must be callable, not %R", hook);
        return NULL;
    }
    if (!kernel->hooks && !(kernel->hooks = PyList_New(0)))
        return NULL;
    return PyList_Append(kernel->hooks, hook) < 0 ? NULL : Py_NewRef(Py_None);
}

static PyObject *kernel_variants(PyObject *self, PyObject *unused)
{
    const Table *table = &((Kernel *)self)->table;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < table->capacity; i++)
        if (table->entries[i] && PyList_Append(list, (PyObject *)table->entries[i]) < 0)
            Py_CLEAR(list);
    (void)unused;
    return list;
}

/* A flag among the attributes of a KernelParam; -1 with an error set. */
static int flag(PyObject *param, const char *name)
{
    PyObject *value = PyObject_GetAttrString(param, name);
    int result = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return result;
}

static bool read_annotation(PyObject *from, Param *param)
{
    param->scalar = param->pointee = SCALAR_KINDS;
    PyObject *type = PyObject_GetAttrString(from, "annotation_type");
    PyObject *bytes = type && type != Py_None ? PyUnicode_AsUTF8String(type) : NULL;
    if (bytes) {
        const char *name = PyBytes_AsString(bytes);
        if (*name == '*')
            param->pointee = tt_scalar_by_name(name + 1);
        else
            param->scalar = tt_scalar_by_name(name);
    }
    Py_XDECREF(bytes);
    Py_XDECREF(type);
    return !PyErr_Occurred();
}

static bool read_param(PyObject *from, Param *param)
{
    PyObject *kind = PyObject_GetAttrString(from, "kind");
    int has_default = flag(from, "has_default");
    param->kind = kind ? (int)PyLong_AsLong(kind) : 0;
    Py_XDECREF(kind);
    param->name = PyObject_GetAttrString(from, "name");
    if (param->name)
        PyUnicode_InternInPlace(&param->name);
    param->is_constexpr = flag(from, "is_constexpr");
    param->is_const = flag(from, "is_const");
    param->any_value = flag(from, "do_not_specialize");
    param->any_alignment = flag(from, "do_not_specialize_on_alignment");
    if (has_default > 0)
        param->default_value = PyObject_GetAttrString(from, "default");
    return !PyErr_Occurred() && read_annotation(from, param);
}

static void release_params(Kernel *kernel)
{
    Param *params = kernel->params;
    int count = kernel->param_count;
    kernel->params = NULL;
    kernel->param_count = 0;
    for (int i = 0; i < count; i++) {
        Py_XDECREF(params[i].name);
        Py_XDECREF(params[i].default_value);
    }
    PyMem_Free(params);
}

static bool read_params(Kernel *kernel, PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    kernel->params = PyMem_Calloc((size_t)count + 1, sizeof *kernel->params);
    if (!kernel->params)
        return PyErr_NoMemory();
    kernel->variadic = kernel->meta = -1;
    kernel->positional_count = 0;
    for (int i = 0; i < count; i++) {
        Param *param = &kernel->params[i];
        kernel->param_count = i + 1;
        PyObject *from = PyList_GetItem(list, i);
        if (!from || !read_param(from, param))
            return false;
        kernel->positional_count += param->kind == PARAM_POSITIONAL_ONLY || param->kind == PARAM_ANY;
        if (param->kind == PARAM_VARIADIC)
            kernel->variadic = i;
        if (param->kind == PARAM_META)
            kernel->meta = i;
    }
    return true;
}

static int kernel_init(PyObject *self, PyObject *args, PyObject *named)
{
    Kernel *kernel = (Kernel *)self;
    PyObject *name, *params, *debug;
    if (named && PyDict_Size(named)) {
        PyErr_SetString(PyExc_TypeError, "Kernel() takes no keyword arguments");
        return -1;
    }
    if (!PyArg_ParseTuple(args, "UO!O:Kernel", &name, &PyList_Type, &params, &debug))
        return -1;
    if (kernel->state) {
        PyErr_SetString(PyExc_TypeError, "the kernel is initialised already");
        return -1;
    }
    if (!(kernel->state = tt_state_of(Py_TYPE(self))))
        return -1;
    kernel->name = Py_NewRef(name);
    kernel->debug = debug == Py_None ? NULL : Py_NewRef(debug);
    if (read_params(kernel, params))
        return 0;
    release_params(kernel);
    return -1;
}

static int kernel_traverse(PyObject *self, visitproc visit, void *arg)
{
    Kernel *kernel = (Kernel *)self;
    Py_VISIT(Py_TYPE(self));
    for (int i = 0; i < kernel->param_count; i++)
        Py_VISIT(kernel->params[i].default_value);
    Py_VISIT(kernel->hooks);
    return tt_table_traverse(&kernel->table, visit, arg);
}

static int kernel_clear(PyObject *self)
{
    Kernel *kernel = (Kernel *)self;
    tt_table_clear(&kernel->table);
    Py_CLEAR(kernel->hooks);
    release_params(kernel);
    return 0;
}

static void kernel_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    PyObject_GC_UnTrack(self);
    kernel_clear(self);
    Py_CLEAR(((Kernel *)self)->name);
    Py_CLEAR(((Kernel *)self)->debug);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

static PyMethodDef kernel_methods[] = {
    {"run", (PyCFunction)(void (*)(void))kernel_run, METH_FASTCALL | METH_KEYWORDS,
     "run(*args, grid, warmup=False, **kwargs)\n\nLaunch on `grid`; with warmup=True only compile."},
    {"warmup", (PyCFunction)(void (*)(void))kernel_warmup, METH_FASTCALL | METH_KEYWORDS,
     "warmup(*args, grid=None, **kwargs)\n\nCompile for these arguments without launching, and return the "
     "compiled "
     "kernel. A dtype of torch or NumPy stands for an array of it."},
    {"add_pre_run_hook", kernel_add_pre_run_hook, METH_O,
     "add_pre_run_hook(hook)\n\nCall hook(*args, **kwargs) with the arguments of every launch, before it."},
    {"variants", kernel_variants, METH_NOARGS,
     "variants()\n\nThe compiled kernels there are, one a specialisation."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, "What a launch needs to know about a kernel; the base of JITFunction."},
    {Py_tp_init, kernel_init},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_clear, kernel_clear},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_methods, kernel_methods},
    {Py_mp_subscript, kernel_subscript},
    {0, NULL},
};

PyType_Spec tt_kernel_spec = {
    .name = "triton._C.Kernel",
    .basicsize = sizeof(Kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = kernel_slots,
};
