/* The signature and the options for the frontend, from a key alone: what the kernel is compiled for is what it will be
 * found by, and nothing else of the arguments can leak into it. */
#include "python/extension.h"
#include "python/key.h"

typedef struct Reader {
    const Key *key;
    int word, object;
    PyObject *constexpr_type; /* tl.constexpr, or NULL before it was needed */
} Reader;

static PyObject *read_value(Reader *reader, bool constant);

static PyObject *described_type(uint64_t word, const char *prefix)
{
    int divisibility = (int)(word & (KEY_NEGATIVE - 1));
    return Py_BuildValue("(Ni)", PyUnicode_FromFormat("%s%s", prefix, tt_scalars[(word >> 8) & 0xff].name),
                         word & KEY_NEGATIVE ? -divisibility : divisibility);
}

/* The items as a tuple when they are compile-time values, else as a list of entries. */
static PyObject *read_items(Reader *reader, Py_ssize_t count, PyObject *type, bool constant)
{
    PyObject *list = PyList_New(0);
    for (Py_ssize_t i = 0; list && i < count; i++) {
        PyObject *item = read_value(reader, constant);
        if (!item || PyList_Append(list, item) < 0)
            Py_CLEAR(list);
        Py_XDECREF(item);
    }
    if (!list || (!constant && !type))
        return list;
    PyObject *result;
    if (type && PyObject_HasAttrString(type, "_make"))
        result = PyObject_CallMethod(type, "_make", "O", list); /* a named tuple, of values or of entries */
    else
        result = constant ? PyList_AsTuple(list) : Py_NewRef(list);
    Py_DECREF(list);
    return result;
}

/* **META: names and compile-time values. */
static PyObject *read_mapping(Reader *reader, Py_ssize_t count)
{
    PyObject *dict = PyDict_New();
    for (Py_ssize_t i = 0; dict && i < count; i++) {
        PyObject *name = read_value(reader, true), *value = name ? read_value(reader, true) : NULL;
        if (!value || PyDict_SetItem(dict, name, value) < 0)
            Py_CLEAR(dict);
        Py_XDECREF(name);
        Py_XDECREF(value);
    }
    return dict;
}

static PyObject *read_float(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return PyFloat_FromDouble(value);
}

static PyObject *read_constant(Reader *reader, uint64_t word)
{
    const Key *key = reader->key;
    switch (KEY_TAG(word)) {
    case KEY_NONE:
        return Py_NewRef(Py_None);
    case KEY_BOOL:
        return PyBool_FromLong((long)KEY_PAYLOAD(word));
    case KEY_INT:
        return PyLong_FromLongLong((int64_t)key->words[reader->word++]);
    case KEY_FLOAT:
        return read_float(key->words[reader->word++]);
    case KEY_OBJECT:
        reader->word++; /* its hash */
        return Py_NewRef(key->objects[reader->object++]);
    default:
        return read_mapping(reader, (Py_ssize_t)KEY_PAYLOAD(word));
    }
}

/* As a tl.constexpr; takes over the reference. */
static PyObject *wrap(Reader *reader, PyObject *value)
{
    if (value && !reader->constexpr_type)
        reader->constexpr_type = tt_import("triton.language", "constexpr");
    PyObject *wrapped = value && reader->constexpr_type
                            ? PyObject_CallFunctionObjArgs(reader->constexpr_type, value, NULL)
                            : NULL;
    Py_XDECREF(value);
    return wrapped;
}

/* The next value: itself if `constant`, else as an entry of a signature. */
static PyObject *read_value(Reader *reader, bool constant)
{
    uint64_t word = reader->key->words[reader->word++];
    PyObject *type = NULL;
    switch (KEY_TAG(word)) {
    case KEY_POINTER:
        return described_type(word, "*");
    case KEY_CONST_POINTER:
        return described_type(word, "*k");
    case KEY_SCALAR:
        return described_type(word, "");
    case KEY_NAMED_TUPLE:
        type = reader->key->objects[reader->object++];
        return read_items(reader, (Py_ssize_t)KEY_PAYLOAD(word), type, constant);
    case KEY_TUPLE:
        return read_items(reader, (Py_ssize_t)KEY_PAYLOAD(word), NULL, constant);
    default:
        return constant ? read_constant(reader, word) : wrap(reader, read_constant(reader, word));
    }
}

static PyObject *read_signature(Reader *reader, const Param *params, int count)
{
    PyObject *list = PyList_New(0);
    for (int i = 0; list && i < count; i++) {
        bool constant = params[i].is_constexpr;
        PyObject *entry = constant ? wrap(reader, read_value(reader, true)) : read_value(reader, false);
        if (!entry || PyList_Append(list, entry) < 0)
            Py_CLEAR(list);
        Py_XDECREF(entry);
    }
    PyObject *signature = list ? PyList_AsTuple(list) : NULL;
    Py_XDECREF(list);
    return signature;
}

static PyObject *read_options(Reader *reader, const State *state)
{
    PyObject *options = PyDict_New();
    while (options && reader->word < reader->key->word_count) {
        uint64_t word = reader->key->words[reader->word++];
        if (KEY_TAG(word) == KEY_TARGET)
            break;
        PyObject *value = read_value(reader, true);
        if (!value || PyDict_SetItem(options, state->options[KEY_PAYLOAD(word)], value) < 0)
            Py_CLEAR(options);
        Py_XDECREF(value);
    }
    return options;
}

bool tt_describe_key(const Key *key, const Kernel *kernel, PyObject **signature, PyObject **options)
{
    Reader reader = {.key = key};
    *options = NULL;
    *signature = read_signature(&reader, kernel->params, kernel->param_count);
    if (*signature)
        *options = read_options(&reader, kernel->state);
    if (!*options)
        Py_CLEAR(*signature);
    Py_XDECREF(reader.constexpr_type);
    return *signature != NULL;
}

PyObject *tt_describe_entry(const Key *key)
{
    Reader reader = {.key = key};
    PyObject *entry = read_value(&reader, false);
    Py_XDECREF(reader.constexpr_type);
    return entry;
}
