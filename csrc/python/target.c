/* What runs a launch: the target from where the arrays lie, the device, the stream. */
#include "python/extension.h"
#include "runtime/cuda.h"

#include <stdlib.h>
#include <string.h>

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
        "%U() argument '%U': it is on %U and cannot be accessed from the target '%s' (TRITON_TARGET); "
        "pass an array that is on %s";
    PyObject *place =
        s->on_cuda ? PyUnicode_FromFormat("cuda:%d", s->place.device) : PyUnicode_FromString("cpu");
    if (place)
        PyErr_Format(PyExc_ValueError, format, s->function, s->array_argument, place, target,
                     s->on_cuda ? "the CPU" : "a CUDA device");
    Py_XDECREF(place);
    return false;
}

/* The device of a launch on CUDA: the arrays', without arrays the current one. False with an error set if there is
 * none such. */
static bool choose_device(Specialization *s)
{
    if (!s->array_argument)
        s->place.device = tt_cuda_current_device();
    if (s->place.device < tt_cuda_device_count())
        return true;
    PyErr_Format(PyExc_ValueError,
                 "%U() argument '%U': it is on cuda:%d, and this machine has %d CUDA devices", s->function,
                 s->array_argument, s->place.device, tt_cuda_device_count());
    return false;
}

static bool choose_asked(Specialization *s, const char *asked)
{
    if (!tt_read_target(asked, &s->target))
        return false;
    bool wants_cuda = s->target.kind == TARGET_CUDA;
    if (s->array_argument && wants_cuda != s->on_cuda)
        return unreachable_error(s, asked);
    if (!wants_cuda || (s->warmup && tt_cuda_unavailable()))
        return true;
    if (tt_cuda_unavailable())
        return target_error("TRITON_TARGET=%s: %s", asked, tt_cuda_unavailable());
    if (!choose_device(s))
        return false;
    if (!strchr(asked, ':'))
        s->target.sm = capability(s->place.device);
    return true;
}

extern char **environ;

/* Does what was noted still hold? Whoever changes a variable puts another string in its place, and whoever adds one puts it
 * behind the last one. */
static bool is_same(const TargetVariable *noted)
{
    return noted->variables && noted->variables == environ && environ[noted->place] == noted->witness &&
           (noted->value || !environ[noted->place + 1]);
}

/* What TRITON_TARGET says now, or NULL. */
static const char *asked_target(TargetVariable *noted)
{
    static const char name[] = "TRITON_TARGET=";
    if (is_same(noted))
        return noted->value;
    *noted = (TargetVariable){0};
    for (size_t i = 0; environ && environ[i]; i++) {
        bool is_it = !strncmp(environ[i], name, sizeof name - 1);
        *noted = (TargetVariable){environ, environ[i], i, is_it ? environ[i] + sizeof name - 1 : NULL};
        if (is_it)
            break;
    }
    return noted->value;
}

bool tt_choose_target(Specialization *s)
{
    s->target = (Target){TARGET_CPU, 0};
    const char *asked = asked_target(&s->state->target);
    if (asked && *asked)
        return choose_asked(s, asked);
    if (s->array_argument ? !s->on_cuda : tt_cuda_unavailable() != NULL)
        return true;
    if (tt_cuda_unavailable())
        return target_error("argument '%U' is on a CUDA device, but %s", s->array_argument,
                            tt_cuda_unavailable());
    if (!choose_device(s))
        return false;
    s->target = (Target){TARGET_CUDA, capability(s->place.device)};
    return true;
}

int tt_multiprocessors(Target target, int device)
{
    const char *pretended = target.kind == TARGET_SIM ? tt_variable("TRITON_SIM_MULTIPROCESSORS") : NULL;
    if (target.kind == TARGET_CUDA && !tt_cuda_unavailable())
        return tt_cuda_device(device)->multiprocessors;
    return pretended ? atoi(pretended) : 0;
}

bool tt_find_stream(State *state, int device, PyTypeObject *array_type, void **stream)
{
    if (!state->current_stream)
        state->current_stream = tt_import("triton.runtime.driver", "current_stream");
    PyObject *type = array_type ? (PyObject *)array_type : Py_None, *ordinal = PyLong_FromLong(device);
    PyObject *number = state->current_stream && ordinal
                           ? PyObject_CallFunctionObjArgs(state->current_stream, ordinal, type, NULL)
                           : NULL;
    Py_XDECREF(ordinal);
    bool done = number && tt_read_stream_handle(number, stream);
    Py_XDECREF(number);
    return done;
}

bool tt_read_stream_handle(PyObject *number, void **stream)
{
    enum { LAST_SPECIAL = 2, FIRST_PAGE_END = 4096, ADDRESS_BITS = 57 };
    *stream = PyLong_AsVoidPtr(number);
    if (PyErr_Occurred())
        return false;
    uint64_t handle = (uint64_t)(uintptr_t)*stream;
    bool is_address = handle >= FIRST_PAGE_END && handle % sizeof(void *) == 0 && !(handle >> ADDRESS_BITS);
    if (handle <= LAST_SPECIAL || is_address)
        return true;
    PyErr_Format(PyExc_ValueError, "stream=%R: it is no handle of a CUDA stream", number);
    return false;
}

/* The handle of a stream object: torch's, CuPy's, and others that follow the CUDA stream protocol. */
static PyObject *stream_handle(PyObject *stream)
{
    PyObject *function = tt_import("triton.runtime.driver", "stream_handle");
    PyObject *number = function ? PyObject_CallFunctionObjArgs(function, stream, NULL) : NULL;
    Py_XDECREF(function);
    return number;
}

bool tt_read_stream(PyObject *asked, void **stream)
{
    PyObject *number = PyLong_Check(asked) ? Py_NewRef(asked) : stream_handle(asked);
    bool done = number && tt_read_stream_handle(number, stream);
    Py_XDECREF(number);
    return done;
}
