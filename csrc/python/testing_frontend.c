/* What the tests reach of the frontend: a function and a signature go in, the text of the tile IR comes out. */
#include "python/extension.h"

/* The text in the arena; NULL with a Python exception set. */
static const char *print_built(FrontendRequest *request, Arena *arena, int flags)
{
    Trap trap;
    if (tt_try(&trap, arena)) {
        const char *text = tt_print_module(tt_build_kernel(arena, request), arena, flags);
        tt_end_try(&trap);
        return text;
    }
    tt_set_error(&trap.diag, NULL);
    return NULL;
}

static PyObject *py_frontend(PyObject *module, PyObject *args, PyObject *keywords)
{
    (void)module;
    static char *names[] = {"function", "signature", "options", "used_names", "locations", NULL};
    FrontendRequest request = {.options = Py_None, .used_names = Py_None};
    int locations = 0;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "OO!|OOp", names, &request.function, &PyTuple_Type,
                                     &request.signature, &request.options, &request.used_names, &locations))
        return NULL;
    PyObject *options = request.options == Py_None ? PyDict_New() : Py_NewRef(request.options);
    Arena arena = {0};
    request.options = options;
    const char *text = options ? print_built(&request, &arena, locations ? TT_PRINT_LOCATIONS : 0) : NULL;
    PyObject *result = text ? PyUnicode_FromString(text) : NULL;
    tt_arena_release(&arena);
    Py_XDECREF(options);
    return result;
}

PyMethodDef tt_testing_frontend_methods[] = {
    {"_frontend", (PyCFunction)(void (*)(void))py_frontend, METH_VARARGS | METH_KEYWORDS,
     "_frontend(function, signature, options=None, used_names=None, locations=False) -> str\n--\n\n"
     "The tile IR of a kernel as the frontend builds it, before any pass."},
    {NULL, NULL, 0, NULL},
};
