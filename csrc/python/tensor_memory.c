/* Arrays whose memory is not what it seems: none is there, or it holds the opposite of the elements. Most launches pay
 * for a comparison and a look at one bit. */
#include "python/extension.h"

/* Below it no program has memory: it begins at 2 MiB at the earliest, the kernel keeps the first pages free, and a view
 * into memory that was freed begins at its offset. */
static const uint64_t lowest_address = 1 << 20;

bool tt_memory_error(const ArgumentPath *path, PyObject *object, const uint64_t *address)
{
    PyObject *words = tt_import("triton.runtime.binding", "no_memory");
    PyObject *number = address ? PyLong_FromUnsignedLongLong(*address) : Py_NewRef(Py_None);
    PyObject *reason = words && number ? PyObject_CallFunctionObjArgs(words, object, number, NULL) : NULL;
    if (reason)
        tt_argument_error(path, PyExc_ValueError, "it has no memory that a kernel could read or write: %U",
                          reason);
    Py_XDECREF(words);
    Py_XDECREF(number);
    Py_XDECREF(reason);
    return false;
}

/* An array without elements needs no memory. */
static bool check_low_address(State *state, const TypeEntry *entry, PyObject *object,
                              const ArgumentPath *path)
{
    ArgumentPath with_range = *path;
    with_range.with_range = true;
    Tensor tensor;
    return tt_read_tensor(state, entry, object, &with_range, &tensor) &&
           (tensor.begin == tensor.end || tt_memory_error(path, object, &tensor.address));
}

/* ---- the negative bit ---- */

/* torch's is_neg() releases the interpreter's lock, which takes a tenth of a launch; so the bit is found in memory once,
 * by comparing many tensors with and without it. */
bool tt_know_negative_bit(State *state)
{
    NegativeBit *bit = &state->negative;
    if (bit->looked_for)
        return true;
    bit->looked_for = true;
    PyObject *find = tt_import("triton.runtime.torch_bits", "find_negative_bit");
    PyObject *found = find ? PyObject_CallFunctionObjArgs(find, NULL) : NULL;
    unsigned long long mask = 0;
    if (found && found != Py_None && PyArg_ParseTuple(found, "iiK", &bit->pointer_word, &bit->word, &mask))
        bit->mask = mask;
    tt_forgive(); /* it is asked for then */
    Py_XDECREF(find);
    Py_XDECREF(found);
    return !PyErr_Occurred();
}

/* -1 with an error set. */
static int ask_negative(State *state, PyObject *object)
{
    PyObject *method = PyObject_GetAttr(object, state->names.is_neg);
    PyObject *answer = method ? PyObject_CallFunctionObjArgs(method, NULL) : NULL;
    int negative = answer ? PyObject_IsTrue(answer) : -1;
    Py_XDECREF(method);
    Py_XDECREF(answer);
    return negative;
}

static int is_negative(State *state, const TypeEntry *entry, PyObject *object)
{
    NegativeBit *bit = &state->negative;
    if (entry->is_torch && !tt_know_negative_bit(state))
        return -1;
    if (!entry->is_torch || !bit->mask)
        return ask_negative(state, object);
    const uint64_t *implementation = ((const uint64_t *const *)(const void *)object)[bit->pointer_word];
    return (implementation[bit->word] & bit->mask) != 0;
}

bool tt_check_memory(State *state, const TypeEntry *entry, PyObject *object, const ArgumentPath *path,
                     const Tensor *tensor)
{
    if (tensor->address < lowest_address && !check_low_address(state, entry, object, path))
        return false;
    int negative = entry->has_negative_bit ? is_negative(state, entry, object) : 0;
    if (negative > 0)
        tt_argument_error(
            path, PyExc_ValueError,
            "its negative bit is set (it is a view like the imaginary part of a conjugate), so its memory "
            "holds the opposite of its elements; pass its .resolve_neg()");
    return !negative;
}
