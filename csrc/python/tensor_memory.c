/* Arrays whose memory is not what it seems: none is there, or it holds the opposite of the elements. Most launches pay
 * for a comparison and a look at one bit. */
#include "python/extension.h"

/* Below it no program has memory: it begins at 2 MiB at the earliest, the kernel keeps the first pages free, and a view
 * into memory that was freed begins at its offset. */
static const uint64_t lowest_address = 1 << 20;

bool tt_is_plain_address(uint64_t address) { return address >= lowest_address; }

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
    with_range.with_range = SPAN_OF_ARRAY;
    Tensor tensor;
    return tt_read_tensor(state, entry, object, &with_range, &tensor) &&
           (tensor.begin == tensor.end || tt_memory_error(path, object, &tensor.address));
}

/* ---- torch ---- */

/* What runtime/torch_bits.py says, given a tuple, which is stolen; a new reference or NULL. */
static PyObject *ask_torch_bits(const char *name, PyObject *arguments)
{
    PyObject *function = arguments ? tt_import("triton.runtime.torch_bits", name) : NULL;
    PyObject *found = function ? PyObject_Call(function, arguments, NULL) : NULL;
    Py_XDECREF(function);
    Py_XDECREF(arguments);
    if (found == Py_None)
        Py_CLEAR(found);
    return found;
}

/* torch's is_neg() releases the interpreter's lock, which takes a tenth of a launch; so the bit is found in memory once,
 * by comparing many tensors with and without it. */
static void find_negative_bit(TorchTensors *torch)
{
    PyObject *found = ask_torch_bits("find_negative_bit", PyTuple_New(0));
    unsigned long long mask = 0;
    if (found && PyArg_ParseTuple(found, "iiK", &torch->pointer_word, &torch->word, &mask))
        torch->mask = mask;
    Py_XDECREF(found);
}

static bool read_dtypes(TorchTensors *torch, PyObject *list)
{
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        const char *name;
        int number;
        if (!PyArg_ParseTuple(PyList_GetItem(list, i), "si", &name, &number))
            return false;
        ScalarKind kind = tt_scalar_by_name(name);
        if (number >= 0 && number < (int)TT_COUNT(torch->elements) && kind != SCALAR_KINDS)
            torch->elements[number] = (uint8_t)(kind + 1);
    }
    return true;
}

/* DLPack's function takes a new reference to the tensor, and for that the interpreter's lock twice: three times the time
 * of these. */
static void find_functions(TorchTensors *torch)
{
    PyObject *words = torch->mask ? Py_BuildValue("(ii)", torch->pointer_word, torch->word) : NULL, *dtypes;
    PyObject *found = ask_torch_bits("find_functions", words);
    unsigned long long functions[4], plain;
    if (found &&
        PyArg_ParseTuple(found, "KKKKiiKO!", &functions[0], &functions[1], &functions[2], &functions[3],
                         &torch->cpu, &torch->cuda, &plain, &PyList_Type, &dtypes) &&
        read_dtypes(torch, dtypes)) {
        void **places[] = {(void **)&torch->address, (void **)&torch->dtype, (void **)&torch->device,
                           (void **)&torch->ordinal};
        torch->plain = plain;
        for (size_t i = 0; i < TT_COUNT(places); i++)
            *places[i] = (void *)(uintptr_t)functions[i];
    }
    Py_XDECREF(found);
}

bool tt_know_torch(State *state)
{
    if (state->torch.looked_for)
        return true;
    state->torch.looked_for = true;
    find_negative_bit(&state->torch);
    tt_forgive(); /* it is asked for then */
    if (!PyErr_Occurred())
        find_functions(&state->torch);
    tt_forgive(); /* DLPack does the same */
    return !PyErr_Occurred();
}

/* The word of the C++ object that has the negative bit among others. */
static uint64_t bits_of(const TorchTensors *torch, PyObject *object)
{
    return ((const uint64_t *const *)(const void *)object)[torch->pointer_word][torch->word];
}

bool tt_read_torch(const TorchTensors *torch, PyObject *object, Tensor *tensor)
{
    int32_t device, dtype, ordinal;
    void *place = (void **)(void *)object + torch->pointer_word, *address;
    /* Of others, sparse ones say, DLPack tells what they are. */
    if (!torch->address || bits_of(torch, object) & ~torch->plain || torch->device(place, &device) ||
        (device != torch->cpu && device != torch->cuda) || torch->dtype(place, &dtype) ||
        (unsigned)dtype >= TT_COUNT(torch->elements) || !torch->elements[dtype] ||
        torch->ordinal(place, &ordinal) || torch->address(place, &address))
        return false;
    *tensor = (Tensor){.address = (uint64_t)(uintptr_t)address,
                       .end = INT64_MAX,
                       .element = (ScalarKind)(torch->elements[dtype] - 1),
                       .device_type = device == torch->cuda ? DEVICE_CUDA : DEVICE_CPU,
                       .device_id = ordinal};
    return true;
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
    const TorchTensors *torch = &state->torch;
    if (entry->is_torch && !tt_know_torch(state))
        return -1;
    if (!entry->is_torch || !torch->mask)
        return ask_negative(state, object);
    return (bits_of(torch, object) & torch->mask) != 0;
}

bool tt_check_memory(State *state, const TypeEntry *entry, PyObject *object, const ArgumentPath *path,
                     const Tensor *tensor)
{
    if (!tt_is_plain_address(tensor->address) && !check_low_address(state, entry, object, path))
        return false;
    int negative = entry->has_negative_bit ? is_negative(state, entry, object) : 0;
    if (negative > 0)
        tt_argument_error(
            path, PyExc_ValueError,
            "its negative bit is set (it is a view like the imaginary part of a conjugate), so its memory "
            "holds the opposite of its elements; pass its .resolve_neg()");
    return !negative;
}
