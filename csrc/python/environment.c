/* os.putenv and os.unsetenv wait while the driver compiles on a thread without the GIL: it asks for variables, and the C library
 * moves all of them where one is added (glibc before 2.41), which ended such processes in getenv. */
#include "python/extension.h"
#include "runtime/cuda.h"

#include <time.h>

static PyObject *change(PyObject *function, PyObject *args)
{
    enum { NAP = 100000 /* ns */ };
    while (!tt_begin_changing_environment()) {
        PyThreadState *released = tt_give_gil();
        nanosleep(&(struct timespec){.tv_nsec = NAP}, NULL);
        tt_get_gil(released);
    }
    PyObject *result = PyObject_CallObject(function, args);
    tt_end_changing_environment();
    return result;
}

static PyMethodDef changes[] = {
    {"putenv", change, METH_VARARGS,
     "putenv(name, value, /)\n--\n\nChange or add an environment variable, once no GPU code is being "
     "compiled."},
    {"unsetenv", change, METH_VARARGS,
     "unsetenv(name, /)\n--\n\nDelete an environment variable, once no GPU code is being compiled."},
};

static void take_place_of(PyObject *os, PyMethodDef *method)
{
    PyObject *before = PyObject_GetAttrString(os, method->ml_name),
             *name = PyObject_GetAttrString(os, "__name__");
    PyObject *after = before && name ? PyCFunction_NewEx(method, before, name) : NULL;
    if (after)
        PyObject_SetAttrString(os, method->ml_name, after);
    Py_XDECREF(before);
    Py_XDECREF(name);
    Py_XDECREF(after);
}

void tt_guard_environment(void)
{
    static bool is_guarded;
    if (is_guarded || !tt_cuda_is_open() || tt_cuda_unavailable() || PyErr_Occurred())
        return;
    is_guarded = true;
    PyObject *os = PyImport_ImportModule("os");
    for (size_t i = 0; os && i < TT_COUNT(changes); i++)
        take_place_of(os, &changes[i]);
    Py_XDECREF(os);
    PyErr_Clear(); /* what could not be guarded stays as it was */
}
