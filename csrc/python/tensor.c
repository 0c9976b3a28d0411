/* Reading arrays of other libraries: data pointer, element type, device, whether they may be written. The libraries are
 * never imported here, and no reference to an array outlives the call. */
#include "python/extension.h"
#include "runtime/cuda.h"

#include <numpy/ndarraytypes.h>

/* DLPack 1: the parts read here. */
typedef struct DLTensor {
    void *data;
    int32_t device_type, device_id;
    int32_t rank;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensorVersioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    DLTensor tensor;
} DLManagedTensorVersioned;
enum { DL_READ_ONLY = 1, DL_IS_COPIED = 2 };

typedef struct DLExchange {
    uint32_t major, minor;
    const void *previous;
    void *allocate, *managed_from_object, *managed_to_object;
    int (*tensor_from_object)(void *object, DLTensor *tensor); /* may be NULL */
    int (*current_stream)(int device_type, int32_t device_id, void **stream);
} DLExchange;

enum { MAX_RANK = 64 };

/* begin and end from extents, and strides in bytes (NULL: of a row-major array). */
static void set_range(Tensor *tensor, int rank, const int64_t *shape, const int64_t *strides,
                      int64_t stride_unit)
{
    int64_t bytes = tt_scalars[tensor->element].bytes, low = 0, high = bytes, row_major = bytes;
    for (int i = rank - 1; i >= 0; i--) {
        int64_t stride = strides ? strides[i] * stride_unit : row_major;
        int64_t reach = (shape[i] - 1) * stride;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
        row_major *= shape[i];
        if (!shape[i]) {
            tensor->begin = tensor->end = tensor->address;
            return;
        }
    }
    tensor->begin = tensor->address + (uint64_t)low;
    tensor->end = tensor->address + (uint64_t)high;
}

static bool vformat_error(const ArgumentPath *path, PyObject *exception, PyObject *what)
{
    PyObject *where = PyUnicode_FromFormat("%U() argument '%U", path->function, path->name);
    const ArgumentPath *inner[16];
    int depth = 0;
    for (const ArgumentPath *p = path; p->tuple && depth < 16; p = p->tuple)
        inner[depth++] = p;
    while (where && depth--) {
        PyObject *longer = PyUnicode_FromFormat("%U[%zd]", where, inner[depth]->index);
        Py_DECREF(where);
        where = longer;
    }
    if (where && what)
        PyErr_Format(exception, "%U': %U", where, what);
    Py_XDECREF(where);
    return false;
}

bool tt_argument_error(const ArgumentPath *path, PyObject *exception, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    PyObject *what = PyUnicode_FromFormatV(format, args);
    va_end(args);
    vformat_error(path, exception, what);
    Py_XDECREF(what);
    return false;
}

static bool dtype_error(const ArgumentPath *path, PyObject *dtype)
{
    if (dtype && !PyErr_Occurred())
        tt_argument_error(path, PyExc_TypeError, "arrays of dtype %S are not supported; convert it to %s",
                          dtype, tt_supported_dtypes);
    Py_XDECREF(dtype);
    return false;
}

/* ---- NumPy ---- */

/* Types that other packages add to NumPy (ml_dtypes) are known by the name of their scalar type. */
static ScalarKind added_numpy_type(PyArray_Descr *descr)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)descr->typeobj, "__name__");
    PyObject *bytes = name ? PyUnicode_AsUTF8String(name) : NULL;
    ScalarKind kind = bytes ? tt_scalar_by_name(PyBytes_AsString(bytes)) : SCALAR_KINDS;
    PyErr_Clear(); /* of a type's name, for which none of the program's code runs */
    Py_XDECREF(name);
    Py_XDECREF(bytes);
    return kind;
}

static ScalarKind numpy_scalar(PyArray_Descr *descr)
{
    /* By number of NumPy's types, each value plus one. */
#define SIGNED(type) (sizeof(type) == 8 ? SCALAR_I64 : SCALAR_I32) + 1
#define UNSIGNED(type) (sizeof(type) == 8 ? SCALAR_U64 : SCALAR_U32) + 1
    static const uint8_t kinds[NPY_NTYPES_LEGACY] = {
        [NPY_BOOL] = SCALAR_I1 + 1,      [NPY_BYTE] = SCALAR_I8 + 1,       [NPY_UBYTE] = SCALAR_U8 + 1,
        [NPY_SHORT] = SCALAR_I16 + 1,    [NPY_USHORT] = SCALAR_U16 + 1,    [NPY_INT] = SCALAR_I32 + 1,
        [NPY_UINT] = SCALAR_U32 + 1,     [NPY_LONG] = SIGNED(long),        [NPY_ULONG] = UNSIGNED(long),
        [NPY_LONGLONG] = SCALAR_I64 + 1, [NPY_ULONGLONG] = SCALAR_U64 + 1, [NPY_HALF] = SCALAR_FP16 + 1,
        [NPY_FLOAT] = SCALAR_FP32 + 1,   [NPY_DOUBLE] = SCALAR_FP64 + 1,
    };
    int number = descr->type_num;
    if (descr->byteorder == '>')
        return SCALAR_KINDS;
    if (number >= 0 && number < (int)TT_COUNT(kinds))
        return kinds[number] ? (ScalarKind)(kinds[number] - 1) : SCALAR_KINDS;
    return added_numpy_type(descr);
}

static bool read_ndarray(PyObject *object, const ArgumentPath *path, Tensor *tensor)
{
    PyArrayObject *array = (PyArrayObject *)object;
    PyArray_Descr *descr = PyArray_DESCR(array);
    *tensor = (Tensor){.address = (uint64_t)(uintptr_t)PyArray_DATA(array),
                       .element = numpy_scalar(descr),
                       .end = INT64_MAX,
                       .device_type = DEVICE_CPU,
                       .read_only = !(PyArray_FLAGS(array) & NPY_ARRAY_WRITEABLE)};
    if (tensor->element == SCALAR_KINDS)
        return dtype_error(path, Py_NewRef((PyObject *)descr));
    if (path->with_range)
        set_range(tensor, PyArray_NDIM(array), PyArray_DIMS(array), PyArray_STRIDES(array), 1);
    return true;
}

/* ---- DLPack ---- */

static ScalarKind dlpack_scalar(const DLTensor *tensor)
{
    /* By DLDataTypeCode; rows of one width, or by log2 of the bytes. */
    enum {
        INT,
        UINT,
        FLOAT,
        BFLOAT = 4,
        BOOL = 6,
        F8E4M3FN = 10,
        F8E4M3FNUZ,
        F8E5M2,
        F8E5M2FNUZ,
        F8E8M0FNU,
        F4E2M1FN = 17
    };
    static const ScalarKind ints[2][4] = {{SCALAR_I8, SCALAR_I16, SCALAR_I32, SCALAR_I64},
                                          {SCALAR_U8, SCALAR_U16, SCALAR_U32, SCALAR_U64}};
    static const ScalarKind floats[4] = {SCALAR_KINDS, SCALAR_FP16, SCALAR_FP32, SCALAR_FP64};
    int bits = tensor->dtype.bits, code = tensor->dtype.code;
    if (code == F4E2M1FN && bits == 4 && tensor->dtype.lanes == 2)
        return SCALAR_U8;
    if (tensor->dtype.lanes != 1 || (bits != 8 && bits != 16 && bits != 32 && bits != 64))
        return SCALAR_KINDS;
    switch (code) {
    case INT:
    case UINT:
        return ints[code][tt_log2(bits) - 3];
    case FLOAT:
        return floats[tt_log2(bits) - 3];
    case BFLOAT:
        return bits == 16 ? SCALAR_BF16 : SCALAR_KINDS;
    case BOOL:
        return bits == 8 ? SCALAR_I1 : SCALAR_KINDS;
    case F8E4M3FN:
        return SCALAR_FP8E4NV;
    case F8E5M2:
        return SCALAR_FP8E5;
    case F8E4M3FNUZ:
        return SCALAR_FP8E4B8;
    case F8E5M2FNUZ:
        return SCALAR_FP8E5B16;
    case F8E8M0FNU:
        return SCALAR_U8;
    default:
        return SCALAR_KINDS;
    }
}

static bool from_dltensor(State *state, const DLTensor *from, PyObject *object, const ArgumentPath *path,
                          Tensor *tensor)
{
    *tensor = (Tensor){.address = (uint64_t)(uintptr_t)from->data + from->byte_offset,
                       .end = INT64_MAX,
                       .element = dlpack_scalar(from),
                       .device_type = from->device_type,
                       .device_id = from->device_id};
    if (tensor->element != SCALAR_KINDS) {
        if (path->with_range)
            set_range(tensor, from->rank, from->shape, from->strides, tt_scalars[tensor->element].bytes);
        return true;
    }
    PyObject *dtype = tt_look(object, state->names.dtype);
    if (!dtype && !PyErr_Occurred())
        dtype = PyUnicode_FromFormat("(DLPack code %d, %d bits)", from->dtype.code, from->dtype.bits);
    return dtype_error(path, dtype);
}

static bool read_dlpack(State *state, PyObject *object, const ArgumentPath *path, Tensor *tensor)
{
    PyObject *capsule = NULL, *arguments = PyTuple_New(0),
             *version = Py_BuildValue("{s(ii)}", "max_version", 1, 0);
    PyObject *method = PyObject_GetAttr(object, state->names.__dlpack__);
    bool done = false;
    if (method && arguments && version) {
        capsule = PyObject_Call(method, arguments, version);
        if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) { /* older than max_version= */
            PyErr_Clear();
            capsule = PyObject_Call(method, arguments, NULL);
        }
    }
    if (capsule && PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        const DLManagedTensorVersioned *managed = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (managed->major != 1 || managed->flags & DL_IS_COPIED)
            tt_argument_error(path, PyExc_TypeError, "%R cannot lend its memory through DLPack 1",
                              (PyObject *)Py_TYPE(object));
        else
            done = from_dltensor(state, &managed->tensor, object, path, tensor);
        tensor->read_only = managed->flags & DL_READ_ONLY;
    } else if (capsule) {
        const DLTensor *unversioned = PyCapsule_GetPointer(capsule, "dltensor");
        done = unversioned && from_dltensor(state, unversioned, object, path, tensor);
    }
    Py_XDECREF(capsule); /* not taken over, so it releases what it holds */
    Py_XDECREF(method);
    Py_XDECREF(arguments);
    Py_XDECREF(version);
    return done;
}

bool tt_exchange_stream(const TypeEntry *entry, int device, void **stream)
{
    const DLExchange *exchange = entry->exchange;
    if (entry->kind != ARG_EXCHANGE || !exchange->current_stream)
        return false;
    if (!exchange->current_stream(DEVICE_CUDA, device, stream))
        return true;
    tt_forgive(); /* there are other ways to ask */
    return false;
}

/* ---- attributes ---- */

ScalarKind tt_scalar_of_dtype(PyObject *dtype)
{
    PyObject *text = PyObject_Str(dtype);
    PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    ScalarKind kind = bytes ? tt_scalar_by_name(PyBytes_AsString(bytes)) : SCALAR_KINDS;
    tt_forgive();
    Py_XDECREF(text);
    Py_XDECREF(bytes);
    return kind;
}

/* The device that an attribute like "cuda:1" names; the CPU if the object has none. */
static bool read_device(State *state, PyObject *object, Tensor *tensor)
{
    static const struct {
        const char *name;
        int type;
    } devices[] = {{"cpu", DEVICE_CPU}, {"cuda", DEVICE_CUDA}, {"mps", 8}, {"hip", 10}, {"xpu", 14}};
    tensor->device_type = DEVICE_CPU;
    PyObject *device = tt_look(object, state->names.device);
    if (!device)
        return !PyErr_Occurred();
    PyObject *text = PyObject_Str(device);
    PyObject *bytes = text ? PyUnicode_AsUTF8String(text) : NULL;
    Py_DECREF(device);
    Py_XDECREF(text);
    if (!bytes)
        return false;
    const char *name = PyBytes_AsString(bytes);
    size_t length = strcspn(name, ":");
    tensor->device_type = 0; /* none that is known */
    for (size_t i = 0; i < TT_COUNT(devices); i++)
        if (strlen(devices[i].name) == length && !strncmp(name, devices[i].name, length))
            tensor->device_type = devices[i].type;
    for (const char *digit = name + length + (name[length] == ':'); *digit >= '0' && *digit <= '9'; digit++)
        tensor->device_id = tensor->device_id % 1000 * 10 + *digit - '0';
    Py_DECREF(bytes);
    return true;
}

/* The numbers of a tuple; -1 if it is none or too long, or holds something else. */
static int read_numbers(PyObject *tuple, int64_t numbers[MAX_RANK])
{
    if (!tuple || !PyTuple_Check(tuple) || PyTuple_Size(tuple) > MAX_RANK)
        return -1;
    int count = (int)PyTuple_Size(tuple);
    for (int i = 0; i < count; i++)
        numbers[i] = PyLong_AsLongLong(PyTuple_GetItem(tuple, i));
    if (!PyErr_Occurred())
        return count;
    tt_forgive();
    return -1;
}

/* What `shape` and `stride()`, in elements, say; nothing is an answer too. */
static bool set_attribute_range(State *state, PyObject *object, Tensor *tensor)
{
    int64_t shape[MAX_RANK], strides[MAX_RANK];
    PyObject *extents = tt_look(object, state->names.shape);
    PyObject *method = tt_look(object, state->names.stride);
    PyObject *steps = method ? PyObject_CallFunctionObjArgs(method, NULL) : NULL;
    bool fine = tt_forgive();
    int rank = extents && fine ? read_numbers(extents, shape) : -1;
    if (rank >= 0 && steps && read_numbers(steps, strides) == rank)
        set_range(tensor, rank, shape, strides, tt_scalars[tensor->element].bytes);
    Py_XDECREF(extents);
    Py_XDECREF(method);
    Py_XDECREF(steps);
    return !PyErr_Occurred();
}

static bool read_attributes(State *state, PyObject *object, const ArgumentPath *path, Tensor *tensor)
{
    PyObject *dtype = PyObject_GetAttr(object, state->names.dtype);
    if (!dtype)
        return false;
    *tensor = (Tensor){.element = tt_scalar_of_dtype(dtype), .end = INT64_MAX};
    if (tensor->element == SCALAR_KINDS)
        return dtype_error(path, dtype);
    Py_DECREF(dtype);
    if (!read_device(state, object, tensor))
        return false;
    PyObject *method = PyObject_GetAttr(object, state->names.data_ptr);
    PyObject *address = method ? PyObject_CallFunctionObjArgs(method, NULL) : NULL;
    Py_XDECREF(method);
    tensor->address = address ? PyLong_AsUnsignedLongLong(address) : 0;
    Py_XDECREF(address);
    if (PyErr_Occurred())
        return false;
    return !path->with_range || set_attribute_range(state, object, tensor);
}

/* "<f4": byte order, family, bytes. */
static ScalarKind typestr_scalar(const char *text)
{
    static const struct {
        const char *text;
        ScalarKind kind;
    } rows[] = {
        {"b1", SCALAR_I1},  {"i1", SCALAR_I8},   {"i2", SCALAR_I16},  {"i4", SCALAR_I32},
        {"i8", SCALAR_I64}, {"u1", SCALAR_U8},   {"u2", SCALAR_U16},  {"u4", SCALAR_U32},
        {"u8", SCALAR_U64}, {"f2", SCALAR_FP16}, {"f4", SCALAR_FP32}, {"f8", SCALAR_FP64},
    };
    for (size_t i = 0; i < TT_COUNT(rows); i++)
        if (text[0] && text[0] != '>' && !strcmp(text + 1, rows[i].text))
            return rows[i].kind;
    return SCALAR_KINDS;
}

static void set_interface_range(PyObject *interface, Tensor *tensor)
{
    int64_t shape[MAX_RANK], strides[MAX_RANK];
    int rank = read_numbers(PyDict_GetItemString(interface, "shape"), shape);
    bool strided = read_numbers(PyDict_GetItemString(interface, "strides"), strides) == rank;
    if (rank >= 0)
        set_range(tensor, rank, shape, strided ? strides : NULL, 1);
}

/* CUDA Array Interface, version 3: the stream to wait for, or to work on. 1 is the default one, whose handle is NULL. */
static bool read_interface_stream(PyObject *interface, Tensor *tensor)
{
    PyObject *stream = PyDict_GetItemString(interface, "stream");
    if (!stream || stream == Py_None)
        return true;
    tensor->has_stream = true;
    if (!tt_read_stream_handle(stream, &tensor->stream))
        return false;
    if (tensor->stream == (void *)1)
        tensor->stream = NULL;
    return true;
}

/* Of an __array_interface__ or a __cuda_array_interface__, which differ in `stream`. */
static bool from_interface(PyObject *interface, PyObject *attribute, const ArgumentPath *path, Tensor *tensor)
{
    unsigned long long address = 0;
    int read_only = 0;
    bool is_dict = PyDict_Check(interface);
    PyObject *typestr = is_dict ? PyDict_GetItemString(interface, "typestr") : NULL;
    PyObject *data = is_dict ? PyDict_GetItemString(interface, "data") : NULL;
    PyObject *mask = is_dict ? PyDict_GetItemString(interface, "mask") : NULL;
    if (mask && mask != Py_None)
        return tt_argument_error(path, PyExc_TypeError,
                                 "it has a mask, and a kernel takes arrays without one");
    PyObject *bytes = typestr && PyUnicode_Check(typestr) ? PyUnicode_AsUTF8String(typestr) : NULL;
    bool done = bytes && data && PyTuple_Check(data) && PyArg_ParseTuple(data, "Kp", &address, &read_only);
    if (done) {
        tensor->address = address;
        tensor->read_only = read_only;
        tensor->element = typestr_scalar(PyBytes_AsString(bytes));
        if (tensor->element == SCALAR_KINDS)
            done = dtype_error(path, Py_NewRef(typestr));
        else if (path->with_range)
            set_interface_range(interface, tensor);
    } else if (!PyErr_Occurred()) {
        tt_argument_error(path, PyExc_TypeError, "its %U has no typestr and data pointer", attribute);
    }
    Py_XDECREF(bytes);
    return done && read_interface_stream(interface, tensor);
}

static bool read_interface(PyObject *object, PyObject *attribute, const ArgumentPath *path, Tensor *tensor)
{
    *tensor = (Tensor){.element = SCALAR_KINDS, .end = INT64_MAX, .device_type = DEVICE_CPU};
    PyObject *interface = PyObject_GetAttr(object, attribute);
    bool done = interface && from_interface(interface, attribute, path, tensor);
    Py_XDECREF(interface);
    return done;
}

/* What `object.device.id` says; the first device if it says nothing. An exception may be left, see tt_look. */
static int device_attribute(State *state, PyObject *object)
{
    PyObject *device = tt_look(object, state->names.device);
    PyObject *id = device ? tt_look(device, state->names.id) : NULL;
    long number = id && PyLong_Check(id) ? PyLong_AsLong(id) : 0;
    tt_forgive();
    Py_XDECREF(device);
    Py_XDECREF(id);
    return number >= 0 && number < TT_MAX_CUDA_DEVICES ? (int)number : 0;
}

/* numpy.dtype, borrowed; NULL in a program without NumPy. */
static PyTypeObject *numpy_dtype(State *state)
{
    PyObject *numpy = state->numpy_dtype ? NULL : PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
    PyObject *type = numpy ? PyObject_GetAttrString(numpy, "dtype") : NULL;
    PyErr_Clear(); /* of NumPy itself */
    if (type && PyType_Check(type))
        state->numpy_dtype = (PyTypeObject *)type;
    else
        Py_XDECREF(type);
    return state->numpy_dtype;
}

static ScalarKind scalar_of_numpy_dtype(State *state, PyObject *dtype)
{
    PyTypeObject *base = numpy_dtype(state);
    return base && PyType_IsSubtype(Py_TYPE(dtype), base) ? numpy_scalar((PyArray_Descr *)dtype)
                                                          : SCALAR_KINDS;
}

/* By CuPy's own attributes, for its interface is a dict made anew each time. False when they are not what they are known
 * to be, and for empty arrays; an exception may be left, see tt_look. */
static bool read_cupy(State *state, PyObject *object, Tensor *tensor)
{
    PyObject *data = tt_look(object, state->names.data);
    PyObject *address = data ? tt_look(data, state->names.ptr) : NULL;
    PyObject *device = address ? tt_look(data, state->names.device_id) : NULL;
    PyObject *dtype = device ? tt_look(object, state->names.dtype) : NULL;
    *tensor = (Tensor){.element = SCALAR_KINDS, .end = INT64_MAX, .device_type = DEVICE_CUDA};
    if (dtype && PyLong_Check(address) && PyLong_Check(device)) {
        tensor->address = PyLong_AsUnsignedLongLong(address);
        tensor->device_id = (int)PyLong_AsLong(device);
        tensor->element = scalar_of_numpy_dtype(state, dtype);
    }
    bool done =
        !PyErr_Occurred() && tensor->address && tensor->device_id >= 0 && tensor->element != SCALAR_KINDS;
    tt_forgive();
    Py_XDECREF(data);
    Py_XDECREF(address);
    Py_XDECREF(device);
    Py_XDECREF(dtype);
    return done;
}

static bool read_cuda_interface(State *state, const TypeEntry *entry, PyObject *object,
                                const ArgumentPath *path, Tensor *tensor)
{
    if (entry->is_cupy && !path->with_range) {
        if (read_cupy(state, object, tensor))
            return true;
        if (PyErr_Occurred())
            return false;
    }
    if (!read_interface(object, state->names.__cuda_array_interface__, path, tensor))
        return false;
    tensor->device_type = DEVICE_CUDA;
    tensor->device_id = tt_cuda_device_of(tensor->address);
    if (tensor->device_id < 0) /* an empty array has no address */
        tensor->device_id = device_attribute(state, object);
    /* CuPy names the current stream of the current device, wherever the array lies. */
    if (entry->is_cupy && tensor->device_id != tt_cuda_current_device())
        tensor->has_stream = false;
    return !PyErr_Occurred();
}

static bool read_by_kind(State *state, const TypeEntry *entry, PyObject *object, const ArgumentPath *path,
                         Tensor *tensor)
{
    DLTensor dltensor;
    const DLExchange *exchange = entry->exchange;
    switch (entry->kind) {
    case ARG_NDARRAY:
        return read_ndarray(object, path, tensor);
    case ARG_EXCHANGE:
        if (entry->is_plain_torch && !path->with_range && tt_read_torch(&state->torch, object, tensor))
            return true;
        if (!exchange->tensor_from_object)
            return read_dlpack(state, object, path, tensor);
        return !exchange->tensor_from_object(object, &dltensor) &&
               from_dltensor(state, &dltensor, object, path, tensor);
    case ARG_DATA_PTR:
        return read_attributes(state, object, path, tensor);
    case ARG_INTERFACE:
        return read_interface(object, state->names.__array_interface__, path, tensor);
    case ARG_CUDA_INTERFACE:
        return read_cuda_interface(state, entry, object, path, tensor);
    default:
        return read_dlpack(state, object, path, tensor);
    }
}

/* Tensors of torch that lend no memory say so with the stack of its C++ functions; the error here has our words. */
static bool torch_error(State *state, PyObject *object, const ArgumentPath *path)
{
    if (!PyErr_ExceptionMatches(PyExc_RuntimeError) && !PyErr_ExceptionMatches(PyExc_BufferError))
        return false;
    PyErr_Clear();
    PyObject *dtype = tt_look(object, state->names.dtype);
    if (dtype && tt_scalar_of_dtype(dtype) == SCALAR_KINDS)
        return dtype_error(path, dtype);
    Py_XDECREF(dtype);
    return !PyErr_Occurred() && tt_memory_error(path, object, NULL);
}

/* What an array of NumPy or torch is a view of, in which programs lay several arrays; the view where nothing else is known. */
static void widen_range(const TypeEntry *entry, PyObject *object, Tensor *tensor)
{
    if (entry->kind != ARG_NDARRAY && !entry->is_torch)
        return;
    unsigned long long begin, end;
    PyObject *function = tt_import("triton.runtime.storage", "storage");
    PyObject *found = function ? PyObject_CallFunctionObjArgs(function, object, NULL) : NULL;
    if (found && found != Py_None && PyArg_ParseTuple(found, "KK", &begin, &end)) {
        tensor->begin = TT_MIN(tensor->begin, begin);
        tensor->end = TT_MAX(tensor->end, end);
    }
    Py_XDECREF(function);
    Py_XDECREF(found);
    tt_forget();
}

bool tt_read_tensor(State *state, const TypeEntry *entry, PyObject *object, const ArgumentPath *path,
                    Tensor *tensor)
{
    if (!read_by_kind(state, entry, object, path, tensor))
        return entry->is_torch && torch_error(state, object, path);
    if (path->with_range == SPAN_OF_STORAGE)
        widen_range(entry, object, tensor);
    return true;
}
