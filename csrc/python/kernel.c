/* The base type of JITFunction, which holds what a launch needs, and kernel[grid]. */
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

/* Cheap enough to make anew for each launch, as kernel[grid](...) does. */
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

/* The list itself: programs add hooks to it and take them out. */
static PyObject *kernel_pre_run_hooks(PyObject *self, void *unused)
{
    Kernel *kernel = (Kernel *)self;
    (void)unused;
    if (!kernel->hooks)
        kernel->hooks = PyList_New(0);
    return Py_XNewRef(kernel->hooks);
}

static PyObject *kernel_add_pre_run_hook(PyObject *self, PyObject *hook)
{
    if (!PyCallable_Check(hook)) {
        PyErr_Format(PyExc_TypeError, "a hook must be callable, not %R", hook);
        return NULL;
    }
    PyObject *hooks = kernel_pre_run_hooks(self, NULL);
    bool done = hooks && !PyList_Append(hooks, hook);
    Py_XDECREF(hooks);
    return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject *kernel_share_walks(PyObject *self, PyObject *wanted)
{
    Kernel *kernel = (Kernel *)self;
    int begins = PyObject_IsTrue(wanted);
    if (begins < 0)
        return NULL;
    kernel->is_tuned = begins;
    if (!begins)
        Py_CLEAR(kernel->walks);
    else if (!kernel->walks && !(kernel->walks = PyList_New(0)))
        return NULL;
    return Py_NewRef(Py_None);
}

static PyObject *kernel_variants(PyObject *self, PyObject *unused)
{
    const Table *table = &((Kernel *)self)->table;
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < table->capacity; i++)
        for (Compiled *c = table->entries[i]; list && c; c = c->other)
            if (PyList_Append(list, (PyObject *)c) < 0)
                Py_CLEAR(list);
    (void)unused;
    return list;
}

static PyObject *kernel_forget(PyObject *self, PyObject *unused)
{
    (void)unused;
    tt_table_forget(&((Kernel *)self)->table);
    Py_CLEAR(((Kernel *)self)->walks);
    return Py_NewRef(Py_None);
}

/* A flag among the attributes of a KernelParam; -1 with an error set. */
static int flag(PyObject *param, const char *name)
{
    PyObject *value = PyObject_GetAttrString(param, name);
    int result = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return result;
}

/* An annotation like tl.int64 fixes the type; one like "*fp32" is checked; any other says nothing here. */
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
    Known *known = kernel->known;
    kernel->params = NULL;
    kernel->known = NULL;
    kernel->param_count = 0;
    for (int i = 0; i < count; i++) {
        Py_XDECREF(known[i].value);
        Py_XDECREF(params[i].name);
        Py_XDECREF(params[i].default_value);
    }
    PyMem_Free(params);
    PyMem_Free(known);
}

static bool read_params(Kernel *kernel, PyObject *list)
{
    Py_ssize_t count = PyList_Size(list);
    kernel->params = PyMem_Calloc((size_t)count + 1, sizeof *kernel->params);
    kernel->known = PyMem_Calloc((size_t)count + 1, sizeof *kernel->known);
    if (!kernel->params || !kernel->known)
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
        for (int option = 0; option < TT_OPTION_COUNT; option++)
            kernel->has_option_names |= !PyUnicode_Compare(param->name, kernel->state->options[option]);
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
    Py_VISIT(kernel->walks);
    return tt_table_traverse(&kernel->table, visit, arg);
}

/* Nobody holds it any longer, or only what nobody holds. Who has something compiled from it may ask that for it. */
static void kernel_finalize(PyObject *self)
{
    Kernel *kernel = (Kernel *)self;
    if (!tt_table_is_held(&kernel->table))
        return;
    kernel->was_kept = true; /* it is finalized once only */
    tt_table_clear(&kernel->table, true);
}

static int kernel_clear(PyObject *self)
{
    Kernel *kernel = (Kernel *)self;
    tt_table_clear(&kernel->table, false);
    Py_CLEAR(kernel->hooks);
    Py_CLEAR(kernel->walks);
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
    {"_share_walks", kernel_share_walks, METH_O,
     "_share_walks(wanted)\n\nWhether compilations and surveys that differ in options of the machine alone "
     "are to "
     "read the program once."},
    {"variants", kernel_variants, METH_NOARGS,
     "variants()\n\nThe compiled kernels there are, one a specialisation."},
    {"_forget", kernel_forget, METH_NOARGS,
     "_forget()\n\nLaunches compile anew, or find on disk, what they run."},
    {NULL, NULL, 0, NULL},
};

static PyObject *kernel_debug(PyObject *self, void *closure)
{
    (void)closure;
    PyObject *debug = ((Kernel *)self)->debug;
    return Py_NewRef(debug ? debug : Py_None);
}

static int kernel_set_debug(PyObject *self, PyObject *value, void *closure)
{
    (void)closure;
    Kernel *kernel = (Kernel *)self;
    PyObject *old = kernel->debug;
    kernel->debug = !value || value == Py_None ? NULL : Py_NewRef(value);
    Py_XDECREF(old);
    return 0;
}

static PyGetSetDef kernel_attributes[] = {
    {"debug", kernel_debug, kernel_set_debug,
     "The option `debug` of launches that do not say; None: what holds for all kernels.", NULL},
    {"pre_run_hooks", kernel_pre_run_hooks, NULL,
     "The list of functions that are called before every launch.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

/* A kernel in a class gets no `self`. Having this method, it is a routine to help(); in C, it is none that torch.compile
 * takes for one that changes what an attribute is. */
static PyObject *kernel_get(PyObject *self, PyObject *instance, PyObject *owner)
{
    (void)instance;
    (void)owner;
    return Py_NewRef(self);
}

static PyType_Slot kernel_slots[] = {
    {Py_tp_doc, "What a launch needs to know about a kernel; the base of JITFunction."},
    {Py_tp_init, kernel_init},
    {Py_tp_traverse, kernel_traverse},
    {Py_tp_clear, kernel_clear},
    {Py_tp_dealloc, kernel_dealloc},
    {Py_tp_finalize, kernel_finalize},
    {Py_tp_methods, kernel_methods},
    {Py_tp_getset, kernel_attributes},
    {Py_tp_descr_get, kernel_get},
    {Py_mp_subscript, kernel_subscript},
    {0, NULL},
};

PyType_Spec tt_kernel_spec = {
    .name = "triton._C.Kernel",
    .basicsize = sizeof(Kernel),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE,
    .slots = kernel_slots,
};
