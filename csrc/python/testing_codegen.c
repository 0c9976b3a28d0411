/* The code generator as the tests reach it: LLVM IR text in, LLVM IR text out. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "codegen/codegen.h"
#include <llvm-c/IRReader.h>
#include <llvm-c/Linker.h>

typedef struct SplitJob {
    const char *text;
    int longest;
    const char *result;
} SplitJob;

static void split(SplitJob *job, Arena *arena)
{
    Codegen *codegen = tt_new_codegen(arena, "text");
    size_t length = strlen(job->text);
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(job->text, length, "text");
    LLVMModuleRef module;
    char *error;
    if (LLVMParseIRInContext(codegen->context, buffer, &module, &error))
        tt_error(NULL, "%s", tt_take_llvm_message(arena, error));
    if (LLVMLinkModules2(codegen->module, module))
        tt_bug("LLVM: %s", codegen->error ? codegen->error : "");
    tt_codegen_split(codegen, job->longest);
    tt_codegen_verify(codegen);
    job->result = tt_codegen_llvm_text(codegen);
}

static PyObject *py_split_llvm(PyObject *module, PyObject *args)
{
    (void)module;
    SplitJob job = {0};
    Arena arena = {0};
    Trap trap;
    PyObject *volatile result = NULL;
    if (!PyArg_ParseTuple(args, "si", &job.text, &job.longest))
        return NULL;
    if (tt_try(&trap, &arena)) {
        split(&job, &arena);
        tt_end_try(&trap);
        result = PyUnicode_FromString(job.result);
    } else {
        PyErr_SetString(PyExc_RuntimeError, trap.diag.message);
    }
    tt_arena_release(&arena);
    return result;
}

static PyObject *py_llvm_is_started(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(tt_was_constructed_late());
}

PyMethodDef tt_testing_codegen_methods[] = {
    {"_llvm_is_started", py_llvm_is_started, METH_NOARGS,
     "_llvm_is_started() -> bool\n--\n\nWhether something in this process has used LLVM."},
    {"_split_llvm", py_split_llvm, METH_VARARGS,
     "_split_llvm(text, longest) -> str\n--\n\nLLVM IR whose functions of more than `longest` instructions "
     "are split."},
    {NULL, NULL, 0, NULL},
};
