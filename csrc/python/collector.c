/* What Python's garbage collector is spared. A program's tree is thousands of objects, which it would take as an occasion to
 * look at all objects of the process: with torch loaded that takes longer than compiling, and no signal is answered
 * meanwhile. What is made while a program is read stays or goes by itself; its tree, in which nothing leads back, goes with
 * its last user, and stays out of what the collector looks at. */
#include "python/extension.h"

bool tt_rest_collector(State *state)
{
    bool was_enabled = PyGC_Disable();
    state->collector_rests |= was_enabled;
    return was_enabled;
}

void tt_wake_collector(State *state)
{
    PyGC_Enable();
    state->collector_rests = false;
}

PyObject *tt_wake_collector_in_child(PyObject *module, PyObject *unused)
{
    State *state = PyModule_GetState(module);
    (void)unused;
    if (state->collector_rests)
        tt_wake_collector(state);
    return Py_NewRef(Py_None);
}

/* Trees consist of lists, of objects with fields in a dict, and of leaves. */
static bool untrack(PyObject *tree)
{
    if (PyList_CheckExact(tree)) {
        PyObject_GC_UnTrack(tree);
        for (Py_ssize_t i = 0; i < PyList_Size(tree); i++)
            if (!untrack(PyList_GetItem(tree, i)))
                return false;
        return true;
    }
    if (!PyType_HasFeature(Py_TYPE(tree), Py_TPFLAGS_HEAPTYPE) ||
        !PyType_HasFeature(Py_TYPE(tree), Py_TPFLAGS_HAVE_GC))
        return true;
    PyObject *fields = PyObject_GenericGetDict(tree, NULL), *name, *value;
    if (!fields)
        return false;
    PyObject_GC_UnTrack(tree);
    PyObject_GC_UnTrack(fields);
    bool done = true;
    for (Py_ssize_t i = 0; done && PyDict_Next(fields, &i, &name, &value);)
        done = untrack(value);
    Py_DECREF(fields);
    return done;
}

PyObject *tt_untrack_tree(PyObject *module, PyObject *tree)
{
    (void)module;
    return untrack(tree) ? Py_NewRef(Py_None) : NULL;
}
