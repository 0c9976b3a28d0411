/* triton._C.CompiledKernel: the code for one specialisation of a kernel, and what can be asked about it. */
#include "python/extension.h"

/* In cycles with its kernel, whose table holds it: the collector breaks them through the functions below. */
Compiled *tt_new_compiled(Kernel *kernel, PyObject *info)
{
    PyTypeObject *type = kernel->state->compiled_type;
    Compiled *compiled = (Compiled *)((allocfunc)PyType_GetSlot(type, Py_tp_alloc))(type, 0);
    if (!compiled)
        return NULL;
    compiled->state = kernel->state;
    compiled->kernel = (Kernel *)Py_NewRef((PyObject *)kernel);
    compiled->info = Py_NewRef(info);
    return compiled;
}

static int compiled_traverse(PyObject *self, visitproc visit, void *arg)
{
    Compiled *compiled = (Compiled *)self;
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(compiled->kernel);
    Py_VISIT(compiled->info);
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
    Py_CLEAR(compiled->kernel);
    return 0;
}

static void compiled_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Compiled *compiled = (Compiled *)self;
    PyObject_GC_UnTrack(self);
    compiled_clear(self);
    if (compiled->code)
        tt_code_release(compiled->code);
    PyMem_Free(compiled->stored);
    PyObject_GC_Del(self);
    Py_DECREF(type);
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
    const char *text = tt_code_stage(compiled->code, stage, compiled->device, arena, &size);
    tt_end_try(&trap);
    if (!text)
        return Py_NewRef(Py_None);
    return strcmp(stage, "cubin") ? PyUnicode_FromStringAndSize(text, (Py_ssize_t)size)
                                  : PyBytes_FromStringAndSize(text, (Py_ssize_t)size);
}

static PyObject *compiled_text(PyObject *self, PyObject *stage)
{
    PyObject *bytes = PyUnicode_AsUTF8String(stage), *text = NULL;
    Arena arena = {0};
    if (bytes)
        text = stage_text((Compiled *)self, PyBytes_AsString(bytes), &arena);
    tt_arena_release(&arena);
    Py_XDECREF(bytes);
    return text;
}

/* Attributes that are Python's to make: triton.compiler.compiler.<class>(compiled, ...). */
static PyObject *made_by(const char *class, PyObject *self, PyObject *argument)
{
    PyObject *function = tt_import("triton.compiler.compiler", class);
    PyObject *result = function ? PyObject_CallFunctionObjArgs(function, self, argument, NULL) : NULL;
    Py_XDECREF(function);
    return result;
}

static PyObject *get_asm(PyObject *self, void *unused)
{
    (void)unused;
    return made_by("Stages", self, NULL);
}

static PyObject *get_metadata(PyObject *self, void *unused)
{
    (void)unused;
    return made_by("KernelMetadata", ((Compiled *)self)->info, NULL);
}

static PyObject *get_info(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef(((Compiled *)self)->info);
}

static PyObject *get_kernel(PyObject *self, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)((Compiled *)self)->kernel);
}

/* Attributes that stand in the dict `info` under the name given as context. */
static PyObject *get_from_info(PyObject *self, void *name)
{
    PyObject *value = PyDict_GetItemString(((Compiled *)self)->info, name);
    return Py_NewRef(value ? value : Py_None);
}

static PyObject *compiled_subscript(PyObject *self, PyObject *grid)
{
    return made_by("CompiledLauncher", self, grid);
}

static PyObject *compiled_repr(PyObject *self)
{
    Compiled *compiled = (Compiled *)self;
    return PyUnicode_FromFormat("CompiledKernel(%U, %S)", compiled->kernel->name,
                                PyDict_GetItemString(compiled->info, "signature"));
}

/* Loads the code on its device if that has not happened yet; the facts that follow are kept in `info`. */
static bool load(Compiled *compiled)
{
    if (PyDict_GetItemString(compiled->info, "n_regs"))
        return true;
    Arena arena = {0};
    Trap trap;
    LoadedFacts facts = {0};
    PyThreadState *released = PyEval_SaveThread();
    bool done = tt_try(&trap, &arena);
    if (done) {
        facts = tt_code_load(compiled->code, compiled->device, &arena);
        tt_end_try(&trap);
    }
    PyEval_RestoreThread(released);
    if (!done)
        tt_set_error(&trap.diag, NULL);
    tt_arena_release(&arena);
    PyObject *values = done ? Py_BuildValue("{si si si}", "n_regs", facts.registers, "n_spills", facts.spills,
                                            "n_max_threads", facts.max_threads)
                            : NULL;
    done = values && !PyDict_Update(compiled->info, values);
    Py_XDECREF(values);
    return done;
}

static PyObject *get_loaded(PyObject *self, void *name)
{
    return load((Compiled *)self) ? get_from_info(self, name) : NULL;
}

static PyObject *init_handles(PyObject *self, PyObject *unused)
{
    (void)unused;
    return load((Compiled *)self) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *stages(PyObject *self, PyObject *unused)
{
    (void)unused;
    const char *const *names = tt_code_stages(((Compiled *)self)->code);
    Py_ssize_t count = 0;
    while (names[count])
        count++;
    PyObject *tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple && i < count; i++)
        PyTuple_SetItem(tuple, i, PyUnicode_FromString(names[i]));
    return tuple;
}

static PyGetSetDef compiled_getset[] = {
    {"asm", get_asm, NULL, "Text of each stage by name: ttir, llir, asm. Made when asked for.", NULL},
    {"metadata", get_metadata, NULL, "num_warps, num_stages, shared, name, target, signature, ...", NULL},
    {"info", get_info, NULL, "The dict behind `metadata`.", NULL},
    {"fn", get_kernel, NULL, "The JITFunction it was compiled from.", NULL},
    {"src", get_kernel, NULL, NULL, NULL},
    {"name", get_from_info, NULL, "Name of the compiled kernel.", "name"},
    {"timings", get_from_info, NULL, "Milliseconds that each phase of compiling took.", "timings"},
    {"signature", get_from_info, NULL, "Types of the run-time parameters, and the compile-time values.",
     "signature"},
    {"n_regs", get_loaded, NULL, "Registers a thread uses; 0 where the target does not count them.",
     "n_regs"},
    {"n_spills", get_loaded, NULL, "Registers spilled to memory; 0 likewise.", "n_spills"},
    {"n_max_threads", get_loaded, NULL, "Threads a program may have.", "n_max_threads"},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMethodDef compiled_methods[] = {
    {"_text", compiled_text, METH_O, "_text(stage)\n\nText of a stage, or None."},
    {"_stages", stages, METH_NOARGS, "_stages()\n\nNames of the stages."},
    {"_init_handles", init_handles, METH_NOARGS,
     "_init_handles()\n\nLoad the code onto the device; on the CPU it is there."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot compiled_slots[] = {
    {Py_tp_doc, "The code for one specialisation of a kernel; compiled[grid](*args) launches it."},
    {Py_tp_traverse, compiled_traverse},
    {Py_tp_clear, compiled_clear},
    {Py_tp_dealloc, compiled_dealloc},
    {Py_tp_repr, compiled_repr},
    {Py_tp_getset, compiled_getset},
    {Py_tp_methods, compiled_methods},
    {Py_mp_subscript, compiled_subscript},
    {0, NULL},
};

PyType_Spec tt_compiled_spec = {
    .name = "triton._C.CompiledKernel",
    .basicsize = sizeof(Compiled),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION |
             Py_TPFLAGS_IMMUTABLETYPE,
    .slots = compiled_slots,
};
