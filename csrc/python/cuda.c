/* What triton.runtime asks about CUDA devices, and what it times with where no array library is at hand. */
#include "python/extension.h"
#include "runtime/cuda.h"

static PyObject *cuda_unavailable(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    const char *reason = tt_cuda_unavailable();
    return reason ? PyUnicode_FromString(reason) : Py_NewRef(Py_None);
}

/* ---- devices ---- */

static PyObject *cuda_current_device(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(tt_cuda_current_device());
}

static PyObject *cuda_is_lost_in_fork(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyBool_FromLong(tt_cuda_is_lost_in_fork());
}

static PyObject *cuda_device_count(PyObject *module, PyObject *unused)
{
    (void)module, (void)unused;
    return PyLong_FromLong(tt_cuda_device_count());
}

/* -1 with an error set if there is no such device. */
static int read_ordinal(PyObject *number)
{
    long ordinal = PyLong_AsLong(number);
    if (PyErr_Occurred())
        return -1;
    if (tt_cuda_unavailable()) {
        PyErr_SetString(PyExc_RuntimeError, tt_cuda_unavailable());
        return -1;
    }
    if (ordinal < 0 || ordinal >= tt_cuda_device_count()) {
        PyErr_Format(PyExc_ValueError, "there is no CUDA device %ld: this machine has %d", ordinal,
                     tt_cuda_device_count());
        return -1;
    }
    return (int)ordinal;
}

static PyObject *cuda_device(PyObject *module, PyObject *number)
{
    (void)module;
    int ordinal = read_ordinal(number);
    if (ordinal < 0)
        return NULL;
    const CudaDevice *d = tt_cuda_device(ordinal);
    return Py_BuildValue(
        "{ss si si si si si si si si si si si sn si}", "name", d->name, "capability", d->capability,
        "multiprocessor_count", d->multiprocessors, "warpSize", d->warp_size, "max_threads", d->max_threads,
        "max_threads_per_multiprocessor", d->max_threads_per_multiprocessor, "max_num_regs", d->max_registers,
        "max_shared_mem", d->max_shared, "max_shared_mem_per_multiprocessor", d->shared_per_multiprocessor,
        "sm_clock_rate", d->clock_khz, "mem_clock_rate", d->memory_clock_khz, "mem_bus_width",
        d->memory_bus_bits, "total_memory", (Py_ssize_t)d->memory_bytes, "l2_cache_size", d->l2_bytes);
}

/* ---- calls of the driver that may fail: each runs under a trap, without the GIL ---- */

typedef struct DriverCall {
    int device;
    void *stream;
    size_t bytes;
    void *first, *second; /* events, memory */
    void *made;
    double milliseconds;
} DriverCall;

static bool run(void (*work)(DriverCall *call, Arena *arena), DriverCall *call)
{
    Arena arena = {0};
    Trap trap;
    PyThreadState *released = tt_give_gil();
    bool done = tt_try(&trap, &arena);
    if (done) {
        work(call, &arena);
        tt_end_try(&trap);
    }
    tt_get_gil(released);
    if (!done)
        tt_set_error(&trap.diag, NULL);
    tt_arena_release(&arena);
    return done;
}

static PyObject *run_on_device(void (*work)(DriverCall *call, Arena *arena), PyObject *number)
{
    DriverCall call = {.device = read_ordinal(number)};
    return call.device >= 0 && run(work, &call) ? Py_NewRef(Py_None) : NULL;
}

static void set_current_device(DriverCall *call, Arena *arena)
{
    tt_cuda_set_current_device(call->device, arena);
}

static PyObject *cuda_set_current_device(PyObject *module, PyObject *number)
{
    (void)module;
    return run_on_device(set_current_device, number);
}

static void synchronize(DriverCall *call, Arena *arena) { tt_cuda_synchronize(call->device, arena); }

static PyObject *cuda_synchronize(PyObject *module, PyObject *number)
{
    (void)module;
    return run_on_device(synchronize, number);
}

/* ---- events and memory: capsules, so that nothing else can be passed for one ---- */

static const char event_name[] = "triton.cuda.event", memory_name[] = "triton.cuda.memory";

static void release_event(PyObject *capsule)
{
    tt_cuda_release_event(PyCapsule_GetPointer(capsule, event_name));
}

static void release_memory(PyObject *capsule)
{
    tt_cuda_release_memory(PyCapsule_GetPointer(capsule, memory_name));
}

static void new_event(DriverCall *call, Arena *arena) { call->made = tt_cuda_new_event(call->device, arena); }

static PyObject *cuda_new_event(PyObject *module, PyObject *number)
{
    (void)module;
    DriverCall call = {.device = read_ordinal(number)};
    return call.device >= 0 && run(new_event, &call) ? PyCapsule_New(call.made, event_name, release_event)
                                                     : NULL;
}

static void record(DriverCall *call, Arena *arena) { tt_cuda_record(call->first, call->stream, arena); }

/* Reads (capsule, stream). */
static bool read_stream_call(PyObject *args, const char *name, DriverCall *call)
{
    PyObject *capsule, *stream;
    if (!PyArg_ParseTuple(args, "OO!", &capsule, &PyLong_Type, &stream))
        return false;
    call->first = PyCapsule_GetPointer(capsule, name);
    call->stream = PyLong_AsVoidPtr(stream);
    return !PyErr_Occurred();
}

static PyObject *cuda_record(PyObject *module, PyObject *args)
{
    (void)module;
    DriverCall call = {0};
    return read_stream_call(args, event_name, &call) && run(record, &call) ? Py_NewRef(Py_None) : NULL;
}

static void measure(DriverCall *call, Arena *arena)
{
    call->milliseconds = tt_cuda_milliseconds(call->first, call->second, arena);
}

static PyObject *cuda_milliseconds(PyObject *module, PyObject *args)
{
    (void)module;
    DriverCall call = {0};
    PyObject *start, *end;
    if (!PyArg_ParseTuple(args, "OO", &start, &end))
        return NULL;
    call.first = PyCapsule_GetPointer(start, event_name);
    call.second = call.first ? PyCapsule_GetPointer(end, event_name) : NULL;
    return call.second && run(measure, &call) ? PyFloat_FromDouble(call.milliseconds) : NULL;
}

static void allocate(DriverCall *call, Arena *arena)
{
    call->made = tt_cuda_allocate(call->device, call->bytes, arena);
}

static PyObject *cuda_allocate(PyObject *module, PyObject *args)
{
    (void)module;
    PyObject *number;
    Py_ssize_t bytes;
    if (!PyArg_ParseTuple(args, "On", &number, &bytes))
        return NULL;
    if (bytes < 0)
        return PyErr_Format(PyExc_ValueError, "a number of bytes cannot be negative");
    DriverCall call = {.device = read_ordinal(number), .bytes = (size_t)bytes};
    return call.device >= 0 && run(allocate, &call) ? PyCapsule_New(call.made, memory_name, release_memory)
                                                    : NULL;
}

static void clear(DriverCall *call, Arena *arena) { tt_cuda_clear(call->first, call->stream, arena); }

static PyObject *cuda_clear(PyObject *module, PyObject *args)
{
    (void)module;
    DriverCall call = {0};
    return read_stream_call(args, memory_name, &call) && run(clear, &call) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *cuda_is_captured(PyObject *module, PyObject *handle)
{
    void *stream;
    (void)module;
    if (!tt_read_stream_handle(handle, &stream))
        return NULL;
    return PyBool_FromLong(!tt_cuda_unavailable() && tt_cuda_is_captured(stream));
}

PyMethodDef tt_cuda_methods[] = {
    {"cuda_unavailable", cuda_unavailable, METH_NOARGS,
     "cuda_unavailable() -> str | None\n--\n\nWhy no CUDA device can be used, or None when one can."},
    {"cuda_is_lost_in_fork", cuda_is_lost_in_fork, METH_NOARGS,
     "cuda_is_lost_in_fork() -> bool\n--\n\nWhether no CUDA device can be used because the process that "
     "forked this "
     "one uses CUDA."},
    {"cuda_current_device", cuda_current_device, METH_NOARGS,
     "cuda_current_device() -> int\n--\n\nOrdinal of the current CUDA context's device."},
    {"cuda_set_current_device", cuda_set_current_device, METH_O,
     "cuda_set_current_device(ordinal)\n--\n\nMake a device's context the thread's current one."},
    {"cuda_device_count", cuda_device_count, METH_NOARGS,
     "cuda_device_count() -> int\n--\n\nHow many CUDA devices can be used."},
    {"cuda_device", cuda_device, METH_O, "cuda_device(ordinal) -> dict\n--\n\nProperties of a CUDA device."},
    {"cuda_synchronize", cuda_synchronize, METH_O,
     "cuda_synchronize(ordinal)\n--\n\nWait for all work on a CUDA device."},
    {"cuda_is_captured", cuda_is_captured, METH_O,
     "cuda_is_captured(stream) -> bool\n--\n\nWhether what is enqueued on a stream becomes part of a CUDA "
     "graph."},
    {"cuda_new_event", cuda_new_event, METH_O,
     "cuda_new_event(ordinal)\n--\n\nAn event that takes the time."},
    {"cuda_record", cuda_record, METH_VARARGS,
     "cuda_record(event, stream)\n--\n\nRecord an event on a stream, given by its handle."},
    {"cuda_milliseconds", cuda_milliseconds, METH_VARARGS,
     "cuda_milliseconds(start, end) -> float\n--\n\nTime between two recorded events; waits for the second."},
    {"cuda_allocate", cuda_allocate, METH_VARARGS,
     "cuda_allocate(ordinal, bytes)\n--\n\nMemory on a device, to be cleared."},
    {"cuda_clear", cuda_clear, METH_VARARGS,
     "cuda_clear(memory, stream)\n--\n\nFill such memory with zeros, on a stream."},
    {NULL, NULL, 0, NULL},
};
