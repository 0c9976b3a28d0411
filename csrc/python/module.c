/* The extension module triton._C: what Python sees of the compiler. */
#include "python/extension.h"
#include "runtime/identity.h"

#include <llvm-c/Core.h>

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyUnicode_FromString(TT_VERSION);
}

static PyObject *llvm_version(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    unsigned major, minor, patch;
    LLVMGetVersion(&major, &minor, &patch);
    return PyUnicode_FromFormat("%u.%u.%u", major, minor, patch);
}

static PyObject *launch_options(PyObject *module, PyObject *unused)
{
    static const char *const kinds[] = {
        [OPTION_POWER_OF_TWO] = "power of two",
        [OPTION_COUNT] = "count",
        [OPTION_BOOL] = "bool",
        [OPTION_TEXT] = "text",
        [OPTION_LAUNCH] = "launch",
        [OPTION_IGNORED] = "ignored",
    };
    const State *state = PyModule_GetState(module);
    PyObject *options = PyDict_New();
    for (int i = 0; options && i < TT_OPTION_COUNT; i++) {
        PyObject *kind = PyUnicode_FromString(kinds[tt_option_kinds[i]]);
        if (!kind || PyDict_SetItem(options, state->options[i], kind) < 0)
            Py_CLEAR(options);
        Py_XDECREF(kind);
    }
    (void)unused;
    return options;
}

static PyObject *set(PyObject **place, PyObject *value)
{
    PyObject *old = *place;
    *place = value == Py_None ? NULL : Py_NewRef(value);
    Py_XDECREF(old);
    return Py_NewRef(Py_None);
}

static PyObject *set_debug(PyObject *module, PyObject *value)
{
    return set(&((State *)PyModule_GetState(module))->debug, value);
}

static PyObject *set_interpreter(PyObject *module, PyObject *value)
{
    return set(&((State *)PyModule_GetState(module))->interpreter, value);
}

static PyObject *set_kernel_hooks(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    PyObject *hooks[KERNEL_HOOKS];
    if (!PyArg_ParseTuple(args, "OOOOO", &hooks[0], &hooks[1], &hooks[2], &hooks[3], &hooks[4]))
        return NULL;
    for (int i = 0; i < KERNEL_HOOKS; i++) {
        PyObject *old = state->kernel_hooks[i];
        state->kernel_hooks[i] = hooks[i] == Py_None ? NULL : Py_NewRef(hooks[i]);
        Py_XDECREF(old);
    }
    return Py_NewRef(Py_None);
}

static PyObject *set_launch_hooks(PyObject *module, PyObject *args)
{
    State *state = PyModule_GetState(module);
    PyObject *hooks[2];
    if (!PyArg_ParseTuple(args, "OO", &hooks[0], &hooks[1]))
        return NULL;
    for (int i = 0; i < 2; i++) {
        PyObject *old = state->launch_hooks[i];
        state->launch_hooks[i] = hooks[i] == Py_None ? NULL : Py_NewRef(hooks[i]);
        Py_XDECREF(old);
    }
    return Py_NewRef(Py_None);
}

static PyObject *compile_signature(PyObject *module, PyObject *args)
{
    const State *state = PyModule_GetState(module);
    PyObject *kernel, *signature, *options;
    const char *name;
    int any_launch;
    Target target;
    if (!PyArg_ParseTuple(args, "O!O!O!sp", state->kernel_type, &kernel, &PyTuple_Type, &signature,
                          &PyDict_Type, &options, &name, &any_launch) ||
        !tt_read_target(name, &target))
        return NULL;
    return (PyObject *)tt_compile((Kernel *)kernel, signature, options, target, true,
                                  any_launch ? &tt_any_launch : NULL, false);
}

static PyObject *prepare_launches(PyObject *module, PyObject *has_torch)
{
    Hasher hasher;
    tt_hasher_init(&hasher);
    tt_hash_language(&hasher); /* which reads its files once */
    bool done = has_torch != Py_True || tt_know_torch(PyModule_GetState(module));
    return done ? Py_NewRef(Py_None) : NULL;
}

/* `libtriton`, in which other programs look for the intermediate representation, is made when it is asked for. */
static PyObject *module_attribute(PyObject *module, PyObject *name)
{
    (void)module;
    if (PyUnicode_CompareWithASCIIString(name, "libtriton") == 0)
        return PyImport_ImportModule("triton._C.libtriton");
    return PyErr_Format(PyExc_AttributeError, "module 'triton._C' has no attribute %R", name);
}

static PyMethodDef methods[] = {
    {"__getattr__", module_attribute, METH_O, NULL},
    {"version", version, METH_NOARGS, "version() -> str\n--\n\nThe version of the compiler."},
    {"llvm_version", llvm_version, METH_NOARGS,
     "llvm_version() -> str\n--\n\nThe version of the LLVM inside."},
    {"launch_options", launch_options, METH_NOARGS,
     "launch_options() -> dict[str, str]\n--\n\nThe keywords of a launch that are no parameters, and their "
     "kinds."},
    {"set_debug", set_debug, METH_O,
     "set_debug(value)\n--\n\nThe option `debug` of launches that do not say; None: what TRITON_DEBUG says."},
    {"set_kernel_hooks", set_kernel_hooks, METH_VARARGS,
     "set_kernel_hooks(before_compile, after_compile, before_load, after_load, "
     "before_unload)\n--\n\nFunctions, "
     "or None, to call around what happens to each compiled kernel once."},
    {"set_launch_hooks", set_launch_hooks, METH_VARARGS,
     "set_launch_hooks(enter, exit)\n--\n\nFunctions of a LaunchMetadata, or None, to call around every "
     "launch."},
    {"named_arguments", (PyCFunction)(void (*)(void))tt_named_arguments, METH_FASTCALL,
     "named_arguments(names, arguments, keywords)\n--\n\nThe arguments of a call by name."},
    {"tuning_key", (PyCFunction)(void (*)(void))tt_tuning_key, METH_FASTCALL,
     "tuning_key(arguments, places)\n--\n\nThe arguments at these places, then the names of all dtypes."},
    {"untrack_tree", tt_untrack_tree, METH_O,
     "untrack_tree(tree)\n--\n\nKeep a syntax tree, or a list of such, out of what Python's collector looks "
     "at."},
    {"wake_collector", tt_wake_collector_in_child, METH_NOARGS,
     "wake_collector()\n--\n\nIn a process that was forked while a program was read, which Python's "
     "collector of "
     "garbage rests for."},
    {"prepare_launches", prepare_launches, METH_O,
     "prepare_launches(has_torch)\n--\n\nDo now what the first launch would do once, also for tensors of "
     "torch if that is there."},
    {"compile", compile_signature, METH_VARARGS,
     "compile(kernel, signature, options, target, any_launch) -> CompiledKernel\n--\n\nCompile for a tuple "
     "of "
     "signature entries, and for callers that launch it with its arguments alone."},
    {"survey", tt_survey, METH_VARARGS,
     "survey(kernel, signature, options, target, numbers, grid, variants, multiprocessors=0) -> tuple\n--\n\n"
     "Work, and what variants take, without compiling them."},
    {"view_ir", tt_view_ir, METH_VARARGS,
     "view_ir(kernel, signature, options, target) -> tuple\n--\n\nWhat the frontend makes of it."},
    {"trace_operation", tt_trace_operation, METH_VARARGS,
     "trace_operation(operation, args, keywords, place, options, used_names) -> tuple\n--\n\nThe tile IR of "
     "one "
     "operation, and its result (see frontend.h)."},
    {"evaluate_elements", tt_evaluate_elements, METH_VARARGS,
     "evaluate_elements(op, operands, result, symbol, rounding)\n--\n\nAn elementwise operation of tile IR "
     "on arrays, "
     "each given as (element type, array)."},
    {"set_interpreter", set_interpreter, METH_O,
     "set_interpreter(value)\n--\n\nThe function that runs launches in place of compiled code, or None."},
    {"argument_entry", tt_argument_entry, METH_VARARGS,
     "argument_entry(value, is_const, any_value, any_alignment)\n--\n\nWhat a signature has for an "
     "argument."},
    {NULL, NULL, 0, NULL},
};

extern PyMethodDef tt_cuda_methods[], tt_background_methods[], tt_store_methods[], tt_layout_methods[],
    tt_testing_methods[], tt_testing_frontend_methods[], tt_testing_run_methods[], tt_testing_gpu_methods[],
    tt_testing_simulator_methods[], tt_testing_codegen_methods[], tt_triton_c_methods[];

static int add_tables(PyObject *module)
{
    PyMethodDef *const tables[] = {tt_cuda_methods,
                                   tt_background_methods,
                                   tt_store_methods,
                                   tt_layout_methods,
                                   tt_testing_methods,
                                   tt_testing_frontend_methods,
                                   tt_testing_run_methods,
                                   tt_testing_gpu_methods,
                                   tt_testing_simulator_methods,
                                   tt_testing_codegen_methods,
                                   tt_triton_c_methods};
    for (size_t i = 0; i < TT_COUNT(tables); i++)
        if (PyModule_AddFunctions(module, tables[i]) < 0)
            return -1;
    return 0;
}

/* Multi-phase initialisation: each interpreter gets its own module object. */
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, tt_state_init},
    {Py_mod_exec, add_tables},
    {0, NULL},
};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "triton._C",
    .m_doc = "The tile compiler.",
    .m_size = sizeof(State),
    .m_traverse = tt_state_traverse,
    .m_clear = tt_state_clear,
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__C(void) { return PyModuleDef_Init(&definition); }
