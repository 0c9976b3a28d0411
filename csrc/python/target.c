/* What runs a launch: the target from where the arrays lie, the device, the stream; and what Python asks about CUDA. */
#include "python/extension.h"
#include "runtime/cuda.h"

#include <stdlib.h>

static bool target_error(const char *format, ...)
{
    PyObject *type = tt_import("triton.errors", "TargetError");
    va_list args;
    va_start(args, format);
    PyObject *message = PyUnicode_FromFormatV(format, args);
    va_end(args);
    if (type && message)
        PyErr_SetObject(type, message);
    Py_XDECREF(type);
    Py_XDECREF(message);
    return false;
}

/* Capability of a device that is known to exist. */
static int capability(int device) { return tt_cuda_device(device)->capability; }

bool tt_read_target(const char *name, Target *target)
{
    if (!tt_target_parse(name, target))
        return target_error(
            "there is no target '%s'; targets are cpu, cuda, cuda:NN and sim:NN, NN a compute capability",
            name);
    if (target->kind != TARGET_CPU && !target->sm) {
        if (tt_cuda_unavailable())
            return target_error("the target '%s' needs a device, or a compute capability as in %s:90: %s",
                                name, name, tt_cuda_unavailable());
        target->sm = capability(tt_cuda_current_device());
    }
    return true;
}

static bool unreachable_error(const Specialization *s, const char *target)
{
    static const char format[] =
        "%U() argument '%U': it is on %U, which the target '%s' (TRITON_TARGET) cannot reach; "
        "pass an array that is on %s";
    PyObject *place =
        s->on_cuda ? PyUnicode_FromFormat("cuda:%d", s->place.device) : PyUnicode_FromString("cpu");
    if (place)
        PyErr_Format(PyExc_ValueError, format, s->function, s->array_argument, place, target,
                     s->on_cuda ? "the CPU" : "a CUDA device");
    Py_XDECREF(place);
    return false;
}

/* Of a launch without arrays: the current device when there is a GPU. */
static void choose_without_arrays(Specialization *s)
{
    if (tt_cuda_unavailable())
        return;
    s->place.device = tt_cuda_current_device();
    s->target = (Target){TARGET_CUDA, capability(s->place.device)};
}

bool tt_choose_target(Specialization *s)
{
    s->target = (Target){TARGET_CPU, 0};
    const char *asked = getenv("TRITON_TARGET");
    if (asked && *asked) {
        if (!tt_read_target(asked, &s->target))
            return false;
        bool wants_cuda = s->target.kind == TARGET_CUDA;
        if (s->array_argument && wants_cuda != s->on_cuda)
            return unreachable_error(s, asked);
        if (!s->warmup && wants_cuda && tt_cuda_unavailable())
            return target_error("TRITON_TARGET=%s: %s", asked, tt_cuda_unavailable());
        return true;
    }
    if (!s->array_argument) {
        choose_without_arrays(s);
    } else if (s->on_cuda) {
        if (tt_cuda_unavailable())
            return target_error("argument '%U' is on a CUDA device, but %s", s->array_argument,
                                tt_cuda_unavailable());
        s->target = (Target){TARGET_CUDA, capability(s->place.device)};
    }
    return true;
}

bool tt_find_stream(Specialization *s)
{
    PyObject *function = tt_import("triton.runtime.driver", "current_stream");
    PyObject *number = function ? PyObject_CallFunction(function, "i", s->place.device) : NULL;
    Py_XDECREF(function);
    if (number)
        s->place.stream = PyLong_AsVoidPtr(number);
    Py_XDECREF(number);
    return !PyErr_Occurred();
}

/* ---- for triton.runtime.driver ---------------------------------------------------------------------------------------- */

static PyObject *cuda_unavailable(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const char *reason = tt_cuda_unavailable();
    return reason ? PyUnicode_FromString(reason) : Py_NewRef(Py_None);
}

static PyObject *cuda_current_device(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(tt_cuda_current_device());
}

static PyObject *cuda_device(PyObject *module, PyObject *number)
{
    (void)module;
    long ordinal = PyLong_AsLong(number);
    if (PyErr_Occurred())
        return NULL;
    if (ordinal < 0 || ordinal >= tt_cuda_device_count())
        return PyErr_Format(PyExc_ValueError, "there is no CUDA device %ld: this machine has %d", ordinal,
                            tt_cuda_device_count());
    const CudaDevice *d = tt_cuda_device((int)ordinal);
    return Py_BuildValue(
        "{ss si si si si si si si si si si si sn si}", "name", d->name, "capability", d->capability,
        "multiprocessor_count", d->multiprocessors, "warpSize", d->warp_size, "max_threads", d->max_threads,
        "max_threads_per_multiprocessor", d->max_threads_per_multiprocessor, "max_num_regs", d->max_registers,
        "max_shared_mem", d->max_shared, "max_shared_mem_per_multiprocessor", d->shared_per_multiprocessor,
        "sm_clock_rate", d->clock_khz, "mem_clock_rate", d->memory_clock_khz, "mem_bus_width",
        d->memory_bus_bits, "total_memory", (Py_ssize_t)d->memory_bytes, "l2_cache_size", d->l2_bytes);
}

static PyObject *cuda_synchronize(PyObject *module, PyObject *number)
{
    (void)module;
    long ordinal = PyLong_AsLong(number);
    if (PyErr_Occurred())
        return NULL;
    Arena arena = {0};
    Trap trap;
    if (tt_try(&trap, &arena)) {
        tt_cuda_synchronize((int)ordinal);
        tt_end_try(&trap);
    } else {
        tt_set_error(&trap.diag, NULL);
    }
    tt_arena_release(&arena);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

PyMethodDef tt_target_methods[] = {
    {"cuda_unavailable", cuda_unavailable, METH_NOARGS,
     "cuda_unavailable() -> str | None\n--\n\nWhy no CUDA device can be used, or None when one can."},
    {"cuda_current_device", cuda_current_device, METH_NOARGS,
     "cuda_current_device() -> int\n--\n\nOrdinal of the current CUDA context's device."},
    {"cuda_device", cuda_device, METH_O, "cuda_device(ordinal) -> dict\n--\n\nProperties of a CUDA device."},
    {"cuda_synchronize", cuda_synchronize, METH_O,
     "cuda_synchronize(ordinal)\n--\n\nWait for all work on a CUDA device."},
    {NULL, NULL, 0, NULL},
};
