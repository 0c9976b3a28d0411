/* Arguments to a key and slots. The key says everything that a compiled kernel depends on, and is all that the signature
 * for the frontend is made from; a slot is what the compiled code gets. The words of a key begin with a tag in the top
 * byte, then:
 *   POINTER, SCALAR   kind << 8 | divisibility (of the address in bytes, of the value), and KEY_NEGATIVE
 *   CONST_POINTER     likewise, of an array that the kernel promises not to store to
 *   NONE
 *   BOOL              the value
 *   INT, FLOAT        nothing; the next word is the value, or its bits
 *   OBJECT            nothing; the next word is its hash, and it is the next of the key's objects
 *   TUPLE             number of items, whose words follow
 *   NAMED_TUPLE       likewise, after the type as the next object
 *   MAPPING           number of items; for each a key (an OBJECT) and a value follow
 *   OPTION            number of the option, whose value follows
 *   TARGET            kind << 16 | compute capability; the last word */
#include "python/extension.h"
#include "python/key.h"

void tt_specialization_init(Specialization *s, State *state, PyObject *function, bool warmup)
{
    memset(s, 0, offsetof(Specialization, inline_words)); /* the buffers behind need no zeros */
    s->state = state;
    s->function = function;
    s->warmup = warmup;
    s->key.words = s->inline_words;
    s->key.objects = s->inline_objects;
    s->slots = s->inline_slots;
    s->marks = s->inline_marks;
    s->word_capacity = INLINE_WORDS;
    s->object_capacity = INLINE_OBJECTS;
    s->slot_capacity = INLINE_SLOTS;
}

void tt_specialization_release(Specialization *s)
{
    if (s->key.words != s->inline_words)
        PyMem_Free(s->key.words);
    if (s->key.objects != s->inline_objects)
        PyMem_Free(s->key.objects);
    if (s->slots != s->inline_slots)
        PyMem_Free(s->slots);
    PyMem_Free(s->ranges);
    Py_XDECREF(s->owned);
}

/* A copy of `data` with twice the capacity; the old block is freed unless it is the inline one. */
static void *grow(void *data, const void *inline_data, int count, int *capacity, size_t size)
{
    void *grown = PyMem_Malloc((size_t)*capacity * 2 * size);
    if (!grown)
        return PyErr_NoMemory();
    *capacity *= 2;
    memcpy(grown, data, (size_t)count * size);
    if (data != inline_data)
        PyMem_Free(data);
    return grown;
}

static bool grow_words(Specialization *s)
{
    Key *key = &s->key;
    void *grown = grow(key->words, s->inline_words, key->word_count, &s->word_capacity, sizeof *key->words);
    if (grown)
        key->words = grown;
    return grown != NULL;
}

static inline bool add_word(Specialization *s, uint64_t word)
{
    if (s->key.word_count == s->word_capacity && !grow_words(s))
        return false;
    s->key.words[s->key.word_count++] = word;
    return true;
}

static bool add_object(Specialization *s, PyObject *object)
{
    Key *key = &s->key;
    if (key->object_count == s->object_capacity) {
        void *grown = grow(key->objects, s->inline_objects, key->object_count, &s->object_capacity,
                           sizeof *key->objects);
        if (!grown)
            return false;
        key->objects = grown;
    }
    key->objects[key->object_count++] = object;
    return true;
}

/* Slots and their read-only marks lie in one block once they are many. */
static bool grow_slots(Specialization *s)
{
    int capacity = s->slot_capacity * 2;
    uint64_t *slots = PyMem_Malloc((size_t)capacity * (sizeof *slots + 1));
    if (!slots)
        return PyErr_NoMemory();
    uint8_t *marks = (uint8_t *)(slots + capacity);
    memcpy(slots, s->slots, (size_t)s->slot_count * sizeof *slots);
    memcpy(marks, s->marks, (size_t)s->slot_count);
    if (s->slots != s->inline_slots)
        PyMem_Free(s->slots);
    s->slots = slots;
    s->marks = marks;
    s->slot_capacity = capacity;
    return true;
}

static inline bool add_slot(Specialization *s, uint64_t value, int mark)
{
    if (s->slot_count == s->slot_capacity && !grow_slots(s))
        return false;
    s->slots[s->slot_count] = value;
    s->marks[s->slot_count++] = (uint8_t)mark;
    s->any_read_only |= (mark & MARK_READ_ONLY) != 0;
    s->any_special |= (mark & MARK_SPECIAL) != 0;
    return true;
}

static bool add_range(Specialization *s, const Tensor *tensor)
{
    if (!s->with_ranges)
        return true;
    uint64_t *ranges = PyMem_Realloc(s->ranges, sizeof *ranges * (size_t)(s->range_count + 2));
    if (!ranges)
        return PyErr_NoMemory();
    s->ranges = ranges;
    ranges[s->range_count++] = tensor->begin;
    ranges[s->range_count++] = tensor->end;
    return true;
}

/* Keeps a new reference alive as long as the specialisation. */
static bool own(Specialization *s, PyObject *object)
{
    if (!object)
        return false;
    if (!s->owned)
        s->owned = PyList_New(0);
    int status = s->owned ? PyList_Append(s->owned, object) : -1;
    Py_DECREF(object);
    return !status;
}

/* ---- compile-time values ---- */

static bool add_constant(Specialization *s, PyObject *value, const ArgumentPath *path);

static bool add_constant_object(Specialization *s, PyObject *object, const ArgumentPath *path)
{
    Py_hash_t hash = PyObject_Hash(object);
    if (hash == -1) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError))
            return false;
        PyErr_Clear();
        PyObject *name = PyType_GetName(Py_TYPE(object));
        if (name)
            tt_argument_error(path, PyExc_TypeError,
                              "a compile-time value must be hashable, and a %U is not; remove tl.constexpr "
                              "from the parameter if it is to be known only when the kernel runs",
                              name);
        Py_XDECREF(name);
        return false;
    }
    return add_word(s, KEY_WORD(KEY_OBJECT, 0)) && add_word(s, (uint64_t)hash) && add_object(s, object);
}

static bool add_constant_int(Specialization *s, PyObject *value, const ArgumentPath *path)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow)
        return add_constant_object(s, value, path);
    return add_word(s, KEY_WORD(KEY_INT, 0)) && add_word(s, (uint64_t)number);
}

static bool add_constant_float(Specialization *s, PyObject *value)
{
    double number = PyFloat_AsDouble(value);
    if (number == -1 && PyErr_Occurred())
        return false;
    return add_word(s, KEY_WORD(KEY_FLOAT, 0)) && add_word(s, tt_scalar_from_double(SCALAR_FP64, number));
}

static bool begin_tuple(Specialization *s, PyObject *tuple)
{
    uint64_t count = (uint64_t)PyTuple_Size(tuple);
    if (PyTuple_CheckExact(tuple))
        return add_word(s, KEY_WORD(KEY_TUPLE, count));
    return add_word(s, KEY_WORD(KEY_NAMED_TUPLE, count)) && add_object(s, (PyObject *)Py_TYPE(tuple));
}

static bool add_constant_tuple(Specialization *s, PyObject *tuple, const ArgumentPath *path)
{
    if (Py_EnterRecursiveCall(" in the arguments of a kernel"))
        return false;
    bool done = begin_tuple(s, tuple);
    for (Py_ssize_t i = 0; done && i < PyTuple_Size(tuple); i++) {
        ArgumentPath inner = {path->function, path->name, path, i, path->with_range};
        done = add_constant(s, PyTuple_GetItem(tuple, i), &inner);
    }
    Py_LeaveRecursiveCall();
    return done;
}

/* The value in a tl.constexpr, or one that NumPy made as Python's own, is kept alive by `s->owned`. */
static bool add_constant_inside(Specialization *s, PyObject *inside, const ArgumentPath *path)
{
    if (!own(s, inside) || Py_EnterRecursiveCall(" in the arguments of a kernel"))
        return false;
    bool done = add_constant(s, inside, path);
    Py_LeaveRecursiveCall();
    return done;
}

static bool add_constant(Specialization *s, PyObject *value, const ArgumentPath *path)
{
    if (PyUnicode_CheckExact(value))
        return add_constant_object(s, value, path);
    const TypeEntry *found = tt_classify(s->state, value);
    if (!found)
        return false;
    TypeEntry entry = *found;
    switch (entry.kind) {
    case ARG_NONE:
        return add_word(s, KEY_WORD(KEY_NONE, 0));
    case ARG_BOOL:
        return add_word(s, KEY_WORD(KEY_BOOL, value == Py_True));
    case ARG_INT: /* a subclass (IntEnum) keeps its type */
        return PyLong_CheckExact(value) ? add_constant_int(s, value, path)
                                        : add_constant_object(s, value, path);
    case ARG_FLOAT:
    case ARG_NUMPY_FLOAT:
        return add_constant_float(s, value);
    case ARG_INDEX:
        return add_constant_inside(s, PyNumber_Index(value), path);
    case ARG_NUMPY_BOOL:
        return add_word(s, KEY_WORD(KEY_BOOL, PyObject_IsTrue(value) == 1));
    case ARG_TUPLE:
        return add_constant_tuple(s, value, path);
    case ARG_CONSTEXPR:
        return add_constant_inside(s, PyObject_GetAttr(value, s->state->names.value), path);
    default:
        /* A list is the tuple that it is now. */
        return PyList_Check(value) ? add_constant_inside(s, PySequence_Tuple(value), path)
                                   : add_constant_object(s, value, path);
    }
}

static bool add_mapping(Specialization *s, PyObject *dict, const ArgumentPath *path)
{
    PyObject *keys = PyDict_Keys(dict); /* in one order, whatever the order of the keywords */
    bool done = keys && !PyList_Sort(keys) && add_word(s, KEY_WORD(KEY_MAPPING, (uint64_t)PyDict_Size(dict)));
    for (Py_ssize_t i = 0; done && i < PyList_Size(keys); i++) {
        PyObject *name = PyList_GetItem(keys, i);
        ArgumentPath inner = {path->function, name, NULL, 0, false};
        done = add_constant_object(s, name, &inner) && add_constant(s, PyDict_GetItem(dict, name), &inner);
    }
    Py_XDECREF(keys);
    return done;
}

/* ---- run-time values ---- */

static unsigned value_divisibility(const Param *param, uint64_t value)
{
    if (param->any_value || param->any_alignment)
        return 1;
    return value % 16 == 0 ? 16 : value % 8 == 0 ? 8 : value % 4 == 0 ? 4 : 1;
}

/* The code for numbers that are not negative rests on that (analysis.h), so other ones have their own; so do unsigned ones
 * whose bits are those of a negative one, which a kernel may take them for. */
static unsigned sign_of(const ScalarInfo *info, int64_t number)
{
    return number >> (info->bytes * 8 - 1) & 1 ? KEY_NEGATIVE : 0;
}

static bool add_scalar(Specialization *s, ScalarKind kind, unsigned divisibility, unsigned sign,
                       uint64_t bits)
{
    bool is_special = s->is_general && divisibility > 1;
    if (s->is_general)
        divisibility = 1;
    return add_word(s, KEY_WORD(KEY_SCALAR, (unsigned)kind << 8 | sign | divisibility)) &&
           add_slot(s, bits, is_special ? MARK_SPECIAL : 0);
}

static bool range_error(PyObject *value, const ArgumentPath *path, const char *type)
{
    PyErr_Clear(); /* OverflowError */
    return tt_argument_error(path, PyExc_OverflowError, "%S does not fit in %s", value, type);
}

static bool add_int(Specialization *s, const Param *param, PyObject *value, const ArgumentPath *path)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) {
        uint64_t large = PyLong_AsUnsignedLongLong(value);
        if (PyErr_Occurred())
            return range_error(value, path, "64 bits");
        return add_scalar(s, SCALAR_U64, value_divisibility(param, large), KEY_NEGATIVE, large);
    }
    if (number == 1 && !param->any_value && !s->is_general)
        return add_word(s, KEY_WORD(KEY_INT, 0)) && add_word(s, 1);
    if (number == 1 && !param->any_value) /* the most special there is; any divisor but 1 says so */
        return add_scalar(s, SCALAR_I32, 16, 0, 1);
    ScalarKind kind = number >= INT32_MIN && number <= INT32_MAX ? SCALAR_I32 : SCALAR_I64;
    return add_scalar(s, kind, value_divisibility(param, (uint64_t)number),
                      sign_of(&tt_scalars[kind], number), (uint64_t)number);
}

static bool fits(const ScalarInfo *info, int64_t number)
{
    int bits = info->bytes * 8;
    if (info->family == SIGNED_INT)
        return bits == 64 || (number >= -((int64_t)1 << (bits - 1)) && number < (int64_t)1 << (bits - 1));
    return number >= 0 && (bits == 64 || number < (int64_t)1 << bits);
}

/* An integer for a parameter whose annotation says its type. */
static bool add_annotated_int(Specialization *s, const Param *param, PyObject *value,
                              const ArgumentPath *path)
{
    const ScalarInfo *info = &tt_scalars[param->scalar];
    int overflow;
    int64_t number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (param->scalar == SCALAR_I1) { /* is it anything but 0? */
        number = overflow || number;
        overflow = 0;
    } else if (overflow && param->scalar == SCALAR_U64) {
        number = (int64_t)PyLong_AsUnsignedLongLong(value);
        overflow = PyErr_Occurred() != NULL;
    } else if (!overflow) {
        overflow = !fits(info, number);
    }
    if (overflow)
        return range_error(value, path, info->array_name);
    return add_scalar(s, param->scalar, value_divisibility(param, (uint64_t)number), sign_of(info, number),
                      (uint64_t)number);
}

static bool add_number(Specialization *s, const Param *param, PyObject *value, ArgumentKind kind,
                       const ArgumentPath *path)
{
    bool is_float = kind == ARG_FLOAT || kind == ARG_NUMPY_FLOAT;
    if (param->scalar != SCALAR_KINDS) {
        const ScalarInfo *info = &tt_scalars[param->scalar];
        if (is_float && info->family != FLOATING)
            return tt_argument_error(path, PyExc_TypeError,
                                     "it is annotated as %s and cannot take the float %S", info->array_name,
                                     value);
        if (info->family != FLOATING)
            return add_annotated_int(s, param, value, path);
    } else if (!is_float) {
        return add_int(s, param, value, path);
    }
    ScalarKind type = param->scalar == SCALAR_KINDS ? SCALAR_FP32 : param->scalar;
    double number = PyFloat_AsDouble(value);
    if (number == -1 && PyErr_Occurred())
        return false;
    return add_scalar(s, type, 1, 0, tt_scalar_from_double(type, number));
}

static bool add_bool(Specialization *s, const Param *param, bool value, const ArgumentPath *path)
{
    if (param->scalar != SCALAR_KINDS && param->scalar != SCALAR_I1)
        return add_number(s, param, value ? Py_True : Py_False, ARG_INT, path);
    return add_scalar(s, SCALAR_I1, 1, 0, value);
}

static bool add_index(Specialization *s, const Param *param, PyObject *value, const ArgumentPath *path)
{
    PyObject *number = PyNumber_Index(value);
    bool done = number && add_number(s, param, number, ARG_INT, path);
    Py_XDECREF(number);
    return done;
}

/* ---- arrays ---- */

static PyObject *device_name(int type, int id)
{
    static const char *const names[] = {[1] = "cpu", [2] = "cuda", [4] = "opencl", [7] = "vulkan",
                                        [8] = "mps", [10] = "hip", [14] = "xpu"};
    const char *name = type >= 0 && type < (int)TT_COUNT(names) ? names[type] : NULL;
    if (!name)
        return PyUnicode_FromFormat("a device of another kind (DLPack type %d)", type);
    return type == DEVICE_CPU ? PyUnicode_FromString(name) : PyUnicode_FromFormat("%s:%d", name, id);
}

/* An array that no target reaches, or that lies elsewhere than the ones before it. */
static bool device_error(const Specialization *s, int type, int id, const ArgumentPath *path)
{
    PyObject *device = device_name(type, id);
    PyObject *other = device_name(s->on_cuda ? DEVICE_CUDA : DEVICE_CPU, s->place.device);
    if (device && other && s->array_argument)
        tt_argument_error(
            path, PyExc_ValueError,
            "it is on %U, but argument '%U' is on %U; all arrays of a launch must be on one device", device,
            s->array_argument, other);
    else if (device)
        tt_argument_error(
            path, PyExc_ValueError,
            "it is on %U, which no target of this build can reach; copy the array to the CPU first", device);
    Py_XDECREF(device);
    Py_XDECREF(other);
    return false;
}

/* Memory that the CPU reads and writes like its own: pinned and managed memory too. */
static bool is_host_device(int device_type)
{
    enum { CPU = 1, CUDA_HOST = 3, ROCM_HOST = 11, CUDA_MANAGED = 13 };
    return device_type == CPU || device_type == CUDA_HOST || device_type == ROCM_HOST ||
           device_type == CUDA_MANAGED;
}

static bool annotation_error(const Param *param, ScalarKind element, const ArgumentPath *path)
{
    if (param->scalar != SCALAR_KINDS)
        return tt_argument_error(path, PyExc_TypeError, "it is annotated as %s and cannot take an array",
                                 tt_scalars[param->scalar].array_name);
    return tt_argument_error(path, PyExc_TypeError,
                             "it is annotated as a pointer to %s, but the array holds %s",
                             tt_scalars[param->pointee].array_name, tt_scalars[element].array_name);
}

static bool takes(const Param *param, ScalarKind element)
{
    return param->scalar == SCALAR_KINDS && (param->pointee == SCALAR_KINDS || param->pointee == element);
}

static bool is_aligned(const Tensor *tensor)
{
    return !(tensor->address & (uint64_t)(tt_scalars[tensor->element].bytes - 1));
}

/* Of a type that the parameter takes, at a multiple of its size. */
static bool add_address(Specialization *s, const Param *param, const Tensor *tensor)
{
    bool aligned = tensor->address % 16 == 0 && !param->any_value && !param->any_alignment;
    uint64_t tag = param->is_const ? KEY_CONST_POINTER : KEY_POINTER;
    return add_word(s, KEY_WORD(tag, (unsigned)tensor->element << 8 | (aligned ? 16 : 1))) &&
           add_slot(s, tensor->address, tensor->read_only ? MARK_READ_ONLY : 0);
}

static bool add_pointer(Specialization *s, const Param *param, const Tensor *tensor, const ArgumentPath *path)
{
    if (!takes(param, tensor->element))
        return annotation_error(param, tensor->element, path);
    if (!is_aligned(tensor))
        return tt_argument_error(
            path, PyExc_ValueError,
            "its data lies at an address that is no multiple of its element size, %d bytes; "
            "pass a copy",
            tt_scalars[tensor->element].bytes);
    return add_address(s, param, tensor) && add_range(s, tensor);
}

/* Another array's stream, which has to come first unless it turns out to be the launch's. */
static void add_awaited(Specialization *s, void *stream)
{
    int count = s->place.awaited_count;
    if (s->has_stream && s->place.stream == stream)
        return;
    for (int i = 0; i < count; i++)
        if (s->awaited[i] == stream)
            return;
    if (count == AWAITED_STREAMS)
        s->too_many_streams = true;
    else
        s->awaited[s->place.awaited_count++] = stream;
}

static bool add_array_of(Specialization *s, const Param *param, PyObject *dtype, const ArgumentPath *path)
{
    Tensor tensor = {.element = tt_scalar_of_dtype(dtype)};
    if (tensor.element == SCALAR_KINDS)
        return !PyErr_Occurred() &&
               tt_argument_error(path, PyExc_TypeError,
                                 "arrays of dtype %S are not supported; convert it to %s", dtype,
                                 tt_supported_dtypes);
    return add_pointer(s, param, &tensor, path);
}

static bool add_by_dtype(Specialization *s, const Param *param, PyObject *array, const ArgumentPath *path)
{
    PyObject *dtype = PyObject_GetAttr(array, s->state->names.dtype);
    bool done = dtype && add_array_of(s, param, dtype, path);
    Py_XDECREF(dtype);
    return done;
}

/* For a warmup the dtype is enough; where the dtype is the matter its error stays. */
static bool add_unread(Specialization *s, const Param *param, PyObject *array, const ArgumentPath *path)
{
    if (!PyErr_ExceptionMatches(PyExc_ValueError))
        return false;
    PyErr_Clear();
    return add_by_dtype(s, param, array, path);
}

/* The first array says where the launch is. */
static bool begin_arrays(Specialization *s, const Param *param, const TypeEntry *entry, Tensor *tensor)
{
    bool on_cuda = tensor->device_type == DEVICE_CUDA;
    int device = on_cuda ? tensor->device_id : 0;
    s->array_argument = param->name;
    s->on_cuda = on_cuda;
    s->array_type = entry->type;
    s->place.device = device;
    s->has_stream = tensor->has_stream || (on_cuda && tt_exchange_stream(entry, device, &tensor->stream));
    s->place.stream = tensor->stream;
    return !on_cuda || !PyErr_Occurred();
}

static bool add_array(Specialization *s, const Param *param, const TypeEntry *entry, PyObject *value,
                      const ArgumentPath *path)
{
    Tensor tensor;
    if (!tt_read_tensor(s->state, entry, value, path, &tensor))
        return s->warmup && entry->is_torch && add_unread(s, param, value, path);
    if (!s->warmup && !tt_check_memory(s->state, entry, value, path, &tensor))
        return false;
    bool on_cuda = tensor.device_type == DEVICE_CUDA;
    int device = on_cuda ? tensor.device_id : 0;
    if (!on_cuda && !is_host_device(tensor.device_type))
        return device_error(s, tensor.device_type, tensor.device_id, path);
    if (!s->array_argument) {
        if (!begin_arrays(s, param, entry, &tensor))
            return false;
    } else if (on_cuda != s->on_cuda || device != s->place.device) {
        return device_error(s, on_cuda ? DEVICE_CUDA : DEVICE_CPU, device, path);
    } else if (tensor.has_stream) {
        add_awaited(s, tensor.stream);
    } else if (entry->is_cupy && entry->type != s->array_type) { /* else it is the launch's */
        if (!tt_find_stream(s->state, device, entry->type, &tensor.stream))
            return false;
        add_awaited(s, tensor.stream);
    }
    return add_pointer(s, param, &tensor, path);
}

static bool add_mock(Specialization *s, const Param *param, PyObject *value, const ArgumentPath *path)
{
    if (!s->warmup)
        return tt_argument_error(
            path, PyExc_TypeError,
            "a MockTensor has no memory; pass it to %U.warmup(), and an array to a launch", s->function);
    return add_by_dtype(s, param, value, path);
}

/* ---- any argument ---- */

static bool add_argument(Specialization *s, const Param *param, PyObject *value, const ArgumentPath *path);

static bool add_tuple(Specialization *s, const Param *param, PyObject *tuple, const ArgumentPath *path)
{
    if (Py_EnterRecursiveCall(" in the arguments of a kernel"))
        return false;
    bool done = begin_tuple(s, tuple);
    for (Py_ssize_t i = 0; done && i < PyTuple_Size(tuple); i++) {
        ArgumentPath inner = {path->function, path->name, path, i, path->with_range};
        done = add_argument(s, param, PyTuple_GetItem(tuple, i), &inner);
    }
    Py_LeaveRecursiveCall();
    return done;
}

PyObject *tt_descriptor_tuple(Specialization *s, PyObject *value)
{
    const TypeEntry *found = tt_classify(s->state, value);
    if (!found || found->kind != ARG_DESCRIPTOR)
        return found ? value : NULL;
    PyObject *tuple = PyObject_CallMethod(value, "_as_argument", NULL);
    return own(s, tuple) ? tuple : NULL;
}

static bool add_descriptor(Specialization *s, const Param *param, PyObject *value, const ArgumentPath *path)
{
    PyObject *tuple = tt_descriptor_tuple(s, value);
    return tuple && add_tuple(s, param, tuple, path);
}

static bool unknown_error(PyObject *value, const ArgumentPath *path)
{
    PyObject *name = PyType_GetName(Py_TYPE(value));
    if (name)
        tt_argument_error(
            path, PyExc_TypeError,
            "a kernel cannot take a %U%s; it takes arrays, numbers, bools, None, strings, functions, types "
            "and tuples of these, and anything hashable where the parameter is a tl.constexpr",
            name, PyList_Check(value) ? " (pass an array or a tuple)" : "");
    Py_XDECREF(name);
    return false;
}

static bool add_argument(Specialization *s, const Param *param, PyObject *value, const ArgumentPath *path)
{
    if (Py_TYPE(value) == &PyLong_Type)
        return add_number(s, param, value, ARG_INT, path);
    const TypeEntry *found = tt_classify(s->state, value);
    if (!found)
        return false;
    TypeEntry entry = *found;
    switch (entry.kind) {
    case ARG_INT:
    case ARG_FLOAT:
    case ARG_NUMPY_FLOAT:
        return add_number(s, param, value, entry.kind, path);
    case ARG_BOOL:
        return add_bool(s, param, value == Py_True, path);
    case ARG_NUMPY_BOOL:
        return add_bool(s, param, PyObject_IsTrue(value) == 1, path);
    case ARG_INDEX:
        return add_index(s, param, value, path);
    case ARG_TUPLE:
        return add_tuple(s, param, value, path);
    case ARG_DTYPE:
        return s->warmup ? add_array_of(s, param, value, path) : add_constant(s, value, path);
    case ARG_DESCRIPTOR:
        return add_descriptor(s, param, value, path);
    case ARG_MOCK:
        return add_mock(s, param, value, path);
    case ARG_NONE:
    case ARG_CONSTEXPR:
    case ARG_CONSTANT:
        return add_constant(s, value, path);
    case ARG_UNKNOWN:
        return unknown_error(value, path);
    default:
        return add_array(s, param, &entry, value, path);
    }
}

bool tt_specialize_argument(Specialization *s, const Param *param, PyObject *value)
{
    ArgumentPath path = {s->function, param->name, NULL, 0, s->with_ranges};
    if (param->kind == PARAM_META)
        return add_mapping(s, value, &path);
    return param->is_constexpr ? add_constant(s, value, &path) : add_argument(s, param, value, &path);
}

static bool never_changes(PyObject *value)
{
    PyTypeObject *type = Py_TYPE(value);
    return type == &PyLong_Type || type == &PyBool_Type || type == &PyFloat_Type || type == &PyUnicode_Type ||
           value == Py_None;
}

static bool add_known(Specialization *s, const Known *known)
{
    for (int i = 0; i < known->word_count; i++)
        if (!add_word(s, known->words[i]))
            return false;
    return (!known->has_object || add_object(s, known->value)) &&
           (!known->has_slot || add_slot(s, known->slot, 0));
}

/* A plain tensor of torch with nothing to it that needs a second look, which is what most arguments of launches are. False
 * if there is more to do, or something to say. */
static bool read_plain_tensor(const Specialization *s, const Param *param, PyObject *value, Tensor *tensor)
{
    const TypeEntry *entry = tt_known_type(s->state, Py_TYPE(value));
    if (!entry || !entry->is_plain_torch || param->is_constexpr || s->with_ranges ||
        !tt_read_torch(&s->state->torch, value, tensor) || !tt_is_plain_address(tensor->address) ||
        !takes(param, tensor->element) || !is_aligned(tensor))
        return false;
    bool on_cuda = tensor->device_type == DEVICE_CUDA;
    return !s->array_argument ||
           (on_cuda == s->on_cuda && (!on_cuda || tensor->device_id == s->place.device));
}

static bool add_plain_tensor(Specialization *s, const Param *param, PyObject *value, Tensor *tensor)
{
    return (s->array_argument || begin_arrays(s, param, tt_known_type(s->state, Py_TYPE(value)), tensor)) &&
           add_address(s, param, tensor);
}

bool tt_specialize_with(Specialization *s, const Param *param, PyObject *value, Known *known)
{
    Tensor tensor;
    if (s->is_general)
        return tt_specialize_argument(s, param, value);
    if (known->value == value)
        return add_known(s, known);
    if (read_plain_tensor(s, param, value, &tensor))
        return add_plain_tensor(s, param, value, &tensor);
    int words = s->key.word_count, objects = s->key.object_count, slots = s->slot_count;
    if (!tt_specialize_argument(s, param, value))
        return false;
    if (!never_changes(value))
        return true;
    PyObject *before = known->value;
    *known = (Known){.value = Py_NewRef(value),
                     .word_count = s->key.word_count - words,
                     .has_slot = s->slot_count > slots,
                     .has_object = s->key.object_count > objects,
                     .role = known->role};
    memcpy(known->words, s->key.words + words, sizeof *known->words * (size_t)known->word_count);
    if (known->has_slot)
        known->slot = s->slots[slots];
    Py_XDECREF(before);
    return true;
}

bool tt_specialize_option(Specialization *s, Option option, PyObject *value)
{
    ArgumentPath path = {s->function, s->state->options[option], NULL, 0, false};
    return add_word(s, KEY_WORD(KEY_OPTION, option)) && add_constant(s, value, &path);
}

bool tt_specialization_add_ranges(Specialization *s)
{
    for (int i = 0; i < s->range_count; i++)
        if (!add_slot(s, s->ranges[i], 0))
            return false;
    return true;
}

bool tt_specialization_finish(Specialization *s)
{
    if (!tt_choose_target(s) ||
        !add_word(s, KEY_WORD(KEY_TARGET, (unsigned)s->target.kind << 16 | (unsigned)s->target.sm)))
        return false;
    uint64_t hash = (uint64_t)s->key.word_count;
    for (int i = 0; i < s->key.word_count; i++) {
        hash = (hash ^ s->key.words[i]) * 0x9e3779b97f4a7c15u;
        hash ^= hash >> 32;
    }
    s->key.hash = hash;
    return true;
}
