/* The extension module triton._C: what Python sees of the compiler. */
#include <Python.h>
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

static PyMethodDef methods[] = {
    {"version", version, METH_NOARGS, "version() -> str\n--\n\nThe version of the compiler."},
    {"llvm_version", llvm_version, METH_NOARGS,
     "llvm_version() -> str\n--\n\nThe version of the LLVM inside."},
    {NULL, NULL, 0, NULL},
};

extern PyMethodDef tt_layout_methods[], tt_testing_methods[];

static int add_tables(PyObject *module)
{
    return PyModule_AddFunctions(module, tt_layout_methods)
               ? -1
               : PyModule_AddFunctions(module, tt_testing_methods);
}

/* Multi-phase initialisation: each interpreter gets its own module object. */
static PyModuleDef_Slot slots[] = {
    {Py_mod_exec, add_tables},
    {0, NULL},
};

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "triton._C",
    .m_doc = "The tile compiler.",
    .m_methods = methods,
    .m_slots = slots,
};

PyMODINIT_FUNC PyInit__C(void) { return PyModuleDef_Init(&definition); }
