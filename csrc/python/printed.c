/* What kernels print goes where Python prints. `triton.interpreter.printing` puts the values of a CPU into words, as it does
 * those of interpreted kernels. */
#include "cpu/kernel.h"
#include "python/extension.h"

/* (element, is_unsigned, shape, bytes) */
static PyObject *describe_value(const CpuPrintOperand *operand, Bytes value)
{
    PyObject *shape = PyTuple_New(operand->rank);
    for (int i = 0; shape && i < operand->rank; i++)
        PyTuple_SetItem(shape, i, PyLong_FromLongLong(operand->shape[i]));
    return shape ? Py_BuildValue("sONy#", tt_type_name(operand->kind),
                                 operand->is_unsigned ? Py_True : Py_False, shape, value.data,
                                 (Py_ssize_t)value.size)
                 : NULL;
}

static bool write_values(PyObject *write, const Printed *printed)
{
    const CpuSite *site = printed->site;
    const int32_t *program = printed->program;
    PyObject *values = PyList_New(0), *written = NULL;
    bool done = values != NULL;
    for (int i = 0; done && i < site->operand_count; i++) {
        PyObject *value = describe_value(&site->operands[i], printed->values[i]);
        done = value && PyList_Append(values, value) == 0;
        Py_XDECREF(value);
    }
    if (done)
        written = PyObject_CallFunction(write, "(iii)sOO", program[0], program[1], program[2], site->message,
                                        site->hex ? Py_True : Py_False, values);
    Py_XDECREF(values);
    Py_XDECREF(written);
    return written != NULL;
}

static bool write_text(const char *text)
{
    PyObject *out = PySys_GetObject("stdout");
    return !out || out == Py_None || PyFile_WriteString(text, out) == 0;
}

/* A launch that was interrupted is to end now, and may have printed any number of lines. */
static bool write_all(const Printed *printed, bool is_interrupted)
{
    enum { PATIENCE = 50 }; /* milliseconds */
    double begin = tt_milliseconds();
    PyObject *write = tt_import("triton.interpreter.printing", "write_bytes");
    bool done = write != NULL;
    while (done && printed && !(is_interrupted && tt_milliseconds() - begin > PATIENCE)) {
        done = write_values(write, printed);
        printed = printed->next;
    }
    Py_XDECREF(write);
    return done && (!printed || write_text("... the launch was interrupted, and printed more than this\n"));
}

bool tt_write_output(const LaunchResult *result)
{
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    bool done = (!result->output || write_text(result->output)) &&
                (!result->printed || write_all(result->printed, type != NULL));
    if (type)
        PyErr_Restore(type, value, traceback);
    return done;
}
