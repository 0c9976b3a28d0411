/* triton._C.CompiledKernel: the code for one specialisation of a kernel, and what can be asked about it. */
#include "python/extension.h"
#include "runtime/cuda.h"
#include <stddef.h>

static void fill(Compiled *compiled, Kernel *kernel, PyObject *info)
{
    compiled->state = kernel->state;
    compiled->kernel = (Kernel *)Py_NewRef((PyObject *)kernel);
    compiled->owns_kernel = true;
    compiled->info = Py_NewRef(info);
    compiled->device = -1;
}

Compiled *tt_new_compiled(Kernel *kernel, PyObject *info)
{
    PyObject *type = tt_import("triton.compiler.compiled", "CompiledKernel");
    PyObject *compiled = type ? PyObject_CallObject(type, NULL) : NULL;
    Py_XDECREF(type);
    if (compiled)
        fill((Compiled *)compiled, kernel, info);
    return (Compiled *)compiled;
}

static int compiled_traverse(PyObject *self, visitproc visit, void *arg)
{
    Compiled *compiled = (Compiled *)self;
    Py_VISIT(Py_TYPE(self));
    if (compiled->owns_kernel)
        Py_VISIT(compiled->kernel);
    Py_VISIT(compiled->info);
    Py_VISIT(compiled->other);
    for (int i = 0; i < compiled->key.object_count; i++)
        Py_VISIT(compiled->key.objects[i]);
    for (int i = 0; i < compiled->used_name_count; i++) {
        Py_VISIT(compiled->used_names[i].space);
        Py_VISIT(compiled->used_names[i].name);
        Py_VISIT(compiled->used_names[i].value);
    }
    return 0;
}

static int compiled_clear(PyObject *self)
{
    Compiled *compiled = (Compiled *)self;
    UsedName *names = compiled->used_names;
    int count = compiled->used_name_count;
    compiled->used_names = NULL;
    compiled->used_name_count = 0;
    for (int i = 0; i < count; i++) {
        Py_XDECREF(names[i].space);
        Py_XDECREF(names[i].name);
        Py_XDECREF(names[i].value);
    }
    PyMem_Free(names);
    tt_key_release(&compiled->key);
    Py_CLEAR(compiled->info);
    Py_CLEAR(compiled->other);
    Kernel *kernel = compiled->kernel;
    bool owned = compiled->owns_kernel;
    compiled->kernel = NULL;
    compiled->owns_kernel = false;
    if (owned)
        Py_DECREF((PyObject *)kernel);
    return 0;
}

/* Its code goes. */
static void compiled_finalize(PyObject *self)
{
    Compiled *compiled = (Compiled *)self;
    if (!compiled->code || !(compiled->is_loaded || compiled->was_launched) ||
        !compiled->state->kernel_hooks[BEFORE_UNLOAD])
        return;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    if (!tt_call_kernel_hook(compiled->state, BEFORE_UNLOAD, PyTuple_Pack(1, self)))
        PyErr_WriteUnraisable(self);
    PyErr_Restore(type, value, traceback);
    compiled->is_loaded = compiled->was_launched = false; /* told once */
}

static void compiled_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Compiled *compiled = (Compiled *)self;
    PyObject_GC_UnTrack(self);
    compiled_clear(self);
    if (compiled->code)
        tt_code_release(compiled->code);
    PyMem_Free(compiled->known);
    tt_release_run_params(compiled);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(type);
}

/* False with an error set for one that was unpickled and has no code yet. */
static bool has_code(const Compiled *compiled)
{
    if (!compiled->code)
        PyErr_SetString(PyExc_RuntimeError,
                        "the compiled kernel has no code yet: call _init_handles() first");
    return compiled->code != NULL;
}

bool tt_has_kernel(const Compiled *compiled)
{
    if (!has_code(compiled))
        return false;
    if (!compiled->kernel) /* kept by a hook of code that goes, or by a weak reference's */
        PyErr_SetString(PyExc_ReferenceError, "the kernel that it was compiled from is gone");
    return compiled->kernel != NULL;
}

/* The device that it is for: the one it was launched or loaded on, else the current one. */
static int device_of(const Compiled *compiled)
{
    bool on_cuda =
        tt_code_image(compiled->code)->options.target.kind == TARGET_CUDA && !tt_cuda_unavailable();
    return compiled->device >= 0 ? compiled->device : on_cuda ? tt_cuda_current_device() : 0;
}

/* A new text (bytes of a cubin), or None for a stage this target does not have. */
static PyObject *stage_text(Compiled *compiled, const char *stage, Arena *arena)
{
    Trap trap;
    if (!tt_try(&trap, arena)) {
        tt_set_error(&trap.diag, NULL);
        return NULL;
    }
    size_t size;
    const char *text = tt_code_stage(compiled->code, stage, device_of(compiled), arena, &size);
    tt_end_try(&trap);
    if (!text)
        return Py_NewRef(Py_None);
    return strcmp(stage, "cubin") ? PyUnicode_FromStringAndSize(text, (Py_ssize_t)size)
                                  : PyBytes_FromStringAndSize(text, (Py_ssize_t)size);
}

static PyObject *compiled_text(PyObject *self, PyObject *stage)
{
    PyObject *bytes = has_code((Compiled *)self) ? PyUnicode_AsUTF8String(stage) : NULL, *text = NULL;
    Arena arena = {0};
    if (bytes)
        text = stage_text((Compiled *)self, PyBytes_AsString(bytes), &arena);
    tt_arena_release(&arena);
    Py_XDECREF(bytes);
    return text;
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    return has_code((Compiled *)self) ? Py_NewRef(((Compiled *)self)->info) : NULL;
}

static PyObject *get_kernel(PyObject *self, void *unused)
{
    (void)unused;
    return tt_has_kernel((Compiled *)self) ? Py_NewRef((PyObject *)((Compiled *)self)->kernel) : NULL;
}

static PyObject *is_spare(PyObject *self, void *unused)
{
    (void)unused;
    return PyBool_FromLong(((Compiled *)self)->is_spare);
}

static PyObject *get_ir(PyObject *self, void *unused)
{
    (void)unused;
    return has_code((Compiled *)self) ? PyUnicode_FromString(tt_code_image(((Compiled *)self)->code)->source)
                                      : NULL;
}

static PyObject *get_image(PyObject *self, void *unused)
{
    (void)unused;
    if (!has_code((Compiled *)self))
        return NULL;
    Bytes bytes = tt_code_bytes(((Compiled *)self)->code);
    return PyBytes_FromStringAndSize(bytes.data, (Py_ssize_t)bytes.size);
}

/* Prepares the code for its device, or loads it there. `*is_made`, unless it is NULL: whether there is nothing left to do
 * but to load it. */
static bool bring(Compiled *compiled, bool loads, bool *is_made)
{
    Arena arena = {0};
    Trap trap;
    int device = compiled->device = device_of(compiled);
    PyThreadState *released = tt_give_gil();
    bool done = tt_try(&trap, &arena);
    if (done) {
        if (loads)
            compiled->facts = tt_code_load(compiled->code, device, &arena);
        else
            *is_made = tt_code_prepare(compiled->code, device, &arena);
        tt_end_try(&trap);
    }
    tt_get_gil(released);
    if (!done)
        tt_set_error(&trap.diag, NULL);
    tt_arena_release(&arena);
    return done;
}

bool tt_prepare_compiled(Compiled *compiled, bool *is_made)
{
    *is_made = compiled->is_loaded;
    return compiled->is_loaded || bring(compiled, false, is_made);
}

static bool load_now(Compiled *compiled) { return compiled->is_loaded = bring(compiled, true, NULL); }

bool tt_load_compiled(Compiled *compiled)
{
    const State *state = compiled->state;
    PyObject *self = (PyObject *)compiled;
    if (!has_code(compiled))
        return false;
    return compiled->is_loaded ||
           (tt_call_kernel_hook(state, BEFORE_LOAD, PyTuple_Pack(1, self)) && load_now(compiled) &&
            tt_call_kernel_hook(state, AFTER_LOAD, PyTuple_Pack(1, self)));
}

/* A number among the LoadedFacts, at an offset. */
static PyObject *get_fact(PyObject *self, void *offset)
{
    Compiled *compiled = (Compiled *)self;
    return tt_load_compiled(compiled) ? PyLong_FromLong(*(int *)((char *)&compiled->facts + (size_t)offset))
                                      : NULL;
}

static PyObject *get_handle(PyObject *self, void *offset)
{
    Compiled *compiled = (Compiled *)self;
    return tt_load_compiled(compiled)
               ? PyLong_FromVoidPtr(*(void **)((char *)&compiled->facts + (size_t)offset))
               : NULL;
}

static PyObject *init_handles(PyObject *self, PyObject *unused)
{
    (void)unused;
    return tt_load_compiled((Compiled *)self) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *prepare(PyObject *self, PyObject *unused)
{
    (void)unused;
    bool is_made, done = has_code((Compiled *)self) && tt_prepare_compiled((Compiled *)self, &is_made);
    return done ? PyBool_FromLong(is_made) : NULL;
}

static PyObject *is_made(PyObject *self, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(((Compiled *)self)->code != NULL);
}

static PyObject *rejoin(PyObject *self, PyObject *unused)
{
    Compiled *compiled = (Compiled *)self;
    (void)unused;
    if (!tt_has_kernel(compiled))
        return NULL;
    Kernel *kernel = (Kernel *)Py_NewRef((PyObject *)compiled->kernel); /* which it may own no longer */
    bool done = tt_table_rejoin(&kernel->table, compiled);
    Py_DECREF((PyObject *)kernel);
    return done ? Py_NewRef(Py_None) : NULL;
}

static PyObject *restore(PyObject *self, PyObject *args)
{
    State *state = tt_state_of(Py_TYPE(self));
    PyObject *kernel, *info, *image;
    if (!state || !PyArg_ParseTuple(args, "O!O!O!", state->kernel_type, &kernel, &PyDict_Type, &info,
                                    &PyBytes_Type, &image))
        return NULL;
    if (((Compiled *)self)->kernel) {
        PyErr_SetString(PyExc_RuntimeError, "the compiled kernel has its code already");
        return NULL;
    }
    fill((Compiled *)self, (Kernel *)kernel, info);
    Bytes bytes = {PyBytes_AsString(image), (size_t)PyBytes_Size(image)};
    return tt_restore((Compiled *)self, bytes) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *stages(PyObject *self, PyObject *unused)
{
    (void)unused;
    if (!has_code((Compiled *)self))
        return NULL;
    const char *const *names = tt_code_stages(((Compiled *)self)->code);
    Py_ssize_t count = 0;
    while (names[count])
        count++;
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, PyUnicode_FromString(names[i]));
    return tuple;
}

#define FACT(field) ((void *)offsetof(LoadedFacts, field))
static PyGetSetDef compiled_getset[] = {
    {"info", get_info, NULL, "The dict behind `metadata`.", NULL},
    {"fn", get_kernel, NULL, "The JITFunction it was compiled from.", NULL},
    {"_is_spare", is_spare, NULL, "Compiled for launches to come; none has asked for it yet.", NULL},
    {"_ir", get_ir, NULL, "The tile IR with its places, from which the same code can be made again.", NULL},
    {"image", get_image, NULL,
     "All of it as bytes; another process, with the same compiler, makes the code of them.", NULL},
    {"n_regs", get_fact, NULL, "Registers a thread uses; 0 where the target does not count them.",
     FACT(registers)},
    {"n_spills", get_fact, NULL, "Registers spilled to memory; 0 likewise.", FACT(spills)},
    {"n_max_threads", get_fact, NULL, "Threads a program may have.", FACT(max_threads)},
    {"function", get_handle, NULL, "The driver's handle of the code; its address on a CPU.", FACT(function)},
    {"module", get_handle, NULL, "The driver's handle of the module that the code is in; 0 on a CPU.",
     FACT(module)},
    {NULL, NULL, NULL, NULL, NULL},
};
#undef FACT

static PyMethodDef compiled_methods[] = {
    {"_text", compiled_text, METH_O, "_text(stage)\n\nText of a stage, or None."},
    {"_stages", stages, METH_NOARGS, "_stages()\n\nNames of the stages."},
    {"_init_handles", init_handles, METH_NOARGS,
     "_init_handles()\n\nLoad the code onto the device; on the CPU it is there."},
    {"_prepare", prepare, METH_NOARGS,
     "_prepare() -> bool\n\nMake the machine code, as far as that can be done beside launches; whether it is "
     "made "
     "now. What fails is told when it is loaded."},
    {"_has_code", is_made, METH_NOARGS, "_has_code()\n\nFalse only for what was unpickled and not restored."},
    {"_restore", restore, METH_VARARGS,
     "_restore(kernel, info, image)\n\nMake the code, from what `image` and `info` of another one are."},
    {"_override", tt_override, METH_VARARGS,
     "_override(stage, text, file)\n\nPut a text from a file in the place of a stage; before the first "
     "launch."},
    {"_rejoin", rejoin, METH_NOARGS,
     "_rejoin()\n\nLaunches of its kernel find it, even if that was let go meanwhile."},
    {"_run", (PyCFunction)(void (*)(void))tt_run_compiled, METH_FASTCALL,
     "_run(grid_0, grid_1, grid_2, stream, function, packed_metadata, launch_metadata, enter_hook, "
     "exit_hook, *args)\n\nLaunch just this code."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot compiled_slots[] = {
    {Py_tp_doc, "What triton.compiler.CompiledKernel is made of."},
    {Py_tp_traverse, compiled_traverse},
    {Py_tp_clear, compiled_clear},
    {Py_tp_dealloc, compiled_dealloc},
    {Py_tp_finalize, compiled_finalize},
    {Py_tp_getset, compiled_getset},
    {Py_tp_methods, compiled_methods},
    {0, NULL},
};

PyType_Spec tt_compiled_spec = {
    .name = "triton._C.CompiledKernel",
    .basicsize = sizeof(Compiled),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_IMMUTABLETYPE,
    .slots = compiled_slots,
};
