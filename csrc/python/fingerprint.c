/* See fingerprint.h. Values come apart into what they consist of; each kind begins with a tag of its own, and what has
 * many parts with their number, so that no two values are written alike. Whatever is not known here makes the fingerprint
 * unknown: then nothing can be taken from it, and the frontend decides. Calls of Python may raise: that is unknown, too. */
#include "python/fingerprint.h"

enum { DEEPEST = 64, MOST = 20000 };

typedef enum Tag {
    TAG_NONE = 1,
    TAG_ELLIPSIS,
    TAG_BOOL,
    TAG_INT,
    TAG_LARGE_INT,
    TAG_FLOAT,
    TAG_TEXT,
    TAG_BYTES,
    TAG_TUPLE,
    TAG_NAMED_TUPLE,
    TAG_LIST,
    TAG_DICT,
    TAG_CONSTEXPR,
    TAG_TYPE, /* of the language */
    TAG_KERNEL,
    TAG_MODULE,
    TAG_NAMED, /* of this package, of Python or of a library in C: its name says what it is */
    TAG_FUNCTION,
    TAG_CODE,
    TAG_CLASS,
    TAG_OBJECT,
    TAG_METHOD,
    TAG_MEMBER,
    TAG_SEEN,
    TAG_MISSING,
} Tag;

void tt_fingerprint_init(Fingerprint *f, const State *state, Arena *arena)
{
    *f = (Fingerprint){.state = state, .arena = arena};
    tt_hasher_init(&f->hasher);
}

static void add_tag(Fingerprint *f, Tag tag) { tt_hasher_add_number(&f->hasher, tag); }

static void give_up(Fingerprint *f)
{
    tt_forget();
    f->unknown = true;
}

/* ---- asking objects ------------------------------------------------------------------------------------------------------ */

/* A new reference, or NULL. */
static PyObject *attribute(PyObject *object, const char *name)
{
    PyObject *value = PyObject_GetAttrString(object, name);
    tt_forget();
    return value;
}

static void add_text(Fingerprint *f, PyObject *text)
{
    Py_ssize_t size;
    const char *bytes = PyUnicode_Check(text) ? PyUnicode_AsUTF8AndSize(text, &size) : NULL;
    if (!bytes) {
        give_up(f);
        return;
    }
    tt_hasher_add_number(&f->hasher, size);
    tt_hasher_add(&f->hasher, bytes, (size_t)size);
}

static void add_attribute(Fingerprint *f, PyObject *object, const char *name)
{
    PyObject *value = attribute(object, name);
    if (value)
        tt_fingerprint_add(f, value);
    else
        add_tag(f, TAG_MISSING);
    Py_XDECREF(value);
}

/* Is the attribute a text that is this one, or (with `dot`) that one's package or a part of it? */
static bool names(PyObject *name, const char *package)
{
    const char *text = name && PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    size_t length = strlen(package);
    tt_forget();
    return text && !strncmp(text, package, length) && (!text[length] || text[length] == '.');
}

bool tt_is_own_module(PyObject *name) { return names(name, "triton"); }

static bool is_of_python(PyObject *name)
{
    PyObject *all = PySys_GetObject("stdlib_module_names"); /* borrowed */
    PyObject *top = name && PyUnicode_Check(name) ? PyObject_CallMethod(name, "partition", "s", ".") : NULL;
    int is = all && top && PyTuple_Check(top) ? PySequence_Contains(all, PyTuple_GetItem(top, 0)) : 0;
    Py_XDECREF(top);
    tt_forget();
    return is == 1;
}

/* Its name says all: the compiler's identity stands for its own functions and classes, Python's version for Python's. */
static bool add_named(Fingerprint *f, PyObject *value)
{
    PyObject *module = attribute(value, "__module__"), *name = attribute(value, "__qualname__");
    bool is_c = PyCFunction_Check(value) ||
                (PyType_Check(value) && !(PyType_GetFlags((PyTypeObject *)value) & Py_TPFLAGS_HEAPTYPE));
    bool is_named = module && name && PyUnicode_Check(module) && PyUnicode_Check(name) &&
                    (tt_is_own_module(module) || is_of_python(module) || is_c);
    if (is_named) {
        add_tag(f, TAG_NAMED);
        add_text(f, module);
        add_text(f, name);
    }
    Py_XDECREF(module);
    Py_XDECREF(name);
    return is_named;
}

/* ---- numbers, texts, and what holds others -------------------------------------------------------------------------------- */

static void add_int(Fingerprint *f, PyObject *value)
{
    int overflow;
    long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (!overflow) {
        add_tag(f, TAG_INT);
        tt_hasher_add_number(&f->hasher, number);
        return;
    }
    PyObject *digits = PyNumber_ToBase(value, 16);
    add_tag(f, TAG_LARGE_INT);
    if (digits)
        add_text(f, digits);
    else
        give_up(f);
    Py_XDECREF(digits);
}

static void add_float(Fingerprint *f, PyObject *value)
{
    double number = PyFloat_AsDouble(value);
    add_tag(f, TAG_FLOAT);
    tt_hasher_add(&f->hasher, &number, sizeof number);
}

static void add_bytes(Fingerprint *f, PyObject *value)
{
    add_tag(f, TAG_BYTES);
    tt_hasher_add_number(&f->hasher, PyBytes_Size(value));
    tt_hasher_add(&f->hasher, PyBytes_AsString(value), (size_t)PyBytes_Size(value));
}

static void add_items(Fingerprint *f, PyObject *items)
{
    Py_ssize_t count = PySequence_Size(items);
    tt_hasher_add_number(&f->hasher, count);
    for (Py_ssize_t i = 0; i < count && !f->unknown; i++) {
        PyObject *item = PySequence_GetItem(items, i);
        tt_breathe();
        if (item)
            tt_fingerprint_add(f, item);
        else
            give_up(f);
        Py_XDECREF(item);
    }
}

static void add_named_tuple(Fingerprint *f, PyObject *value)
{
    PyObject *fields = attribute((PyObject *)Py_TYPE(value), "_fields");
    if (!fields || !PyTuple_Check(fields)) {
        give_up(f);
    } else { /* its methods are its class's */
        add_tag(f, TAG_NAMED_TUPLE);
        tt_fingerprint_add(f, (PyObject *)Py_TYPE(value));
        add_items(f, value);
    }
    Py_XDECREF(fields);
}

static void add_dict(Fingerprint *f, PyObject *dict)
{
    PyObject *name, *value;
    Py_ssize_t at = 0;
    add_tag(f, TAG_DICT);
    tt_hasher_add_number(&f->hasher, PyDict_Size(dict));
    while (!f->unknown && PyDict_Next(dict, &at, &name, &value)) {
        Py_INCREF(name); /* whoever has the GIL in between may change the dict */
        Py_INCREF(value);
        tt_fingerprint_add(f, name);
        tt_fingerprint_add(f, value);
        Py_DECREF(name);
        Py_DECREF(value);
    }
}

static bool add_plain(Fingerprint *f, PyObject *value)
{
    if (value == Py_None)
        add_tag(f, TAG_NONE);
    else if (value == Py_Ellipsis)
        add_tag(f, TAG_ELLIPSIS);
    else if (PyBool_Check(value))
        add_tag(f, TAG_BOOL), tt_hasher_add_number(&f->hasher, value == Py_True);
    else if (PyLong_CheckExact(value))
        add_int(f, value);
    else if (PyFloat_CheckExact(value))
        add_float(f, value);
    else if (PyUnicode_CheckExact(value))
        add_tag(f, TAG_TEXT), add_text(f, value);
    else if (PyBytes_CheckExact(value))
        add_bytes(f, value);
    else if (PyTuple_CheckExact(value))
        add_tag(f, TAG_TUPLE), add_items(f, value);
    else if (PyList_CheckExact(value))
        add_tag(f, TAG_LIST), add_items(f, value);
    else if (PyDict_CheckExact(value))
        add_dict(f, value);
    else
        return false;
    return true;
}

/* ---- kernels and modules -------------------------------------------------------------------------------------------------- */

/* True for what is known by its number already. */
static bool add_number_of(Fingerprint *f, PyObject *object, PyObject *const *known, int count)
{
    for (int i = 0; i < count; i++)
        if (known[i] == object) {
            add_tag(f, TAG_SEEN);
            tt_hasher_add_number(&f->hasher, i);
            return true;
        }
    return false;
}

static void add_params(Fingerprint *f, const Kernel *kernel)
{
    tt_hasher_add_number(&f->hasher, kernel->param_count);
    for (int i = 0; i < kernel->param_count; i++) {
        const Param *param = &kernel->params[i];
        tt_breathe();
        add_text(f, param->name);
        tt_hasher_add_number(&f->hasher, param->kind << 2 | param->is_constexpr << 1 | param->is_const);
        if (param->default_value)
            tt_fingerprint_add(f, param->default_value);
        else
            add_tag(f, TAG_MISSING);
    }
}

/* What it is compiled from: its text with its place, which of its names are those of functions around it, and its
 * parameters. What the names stand for comes apart. */
static void add_kernel(Fingerprint *f, PyObject *value)
{
    Kernel *kernel = (Kernel *)value;
    add_tag(f, TAG_KERNEL);
    if (add_number_of(f, value, (PyObject **)f->functions.data, f->functions.count))
        return;
    tt_push(f->arena, f->functions, kernel);
    PyObject *text = attribute(value, "_text"), *fn = attribute(value, "fn");
    PyObject *code = fn ? attribute(fn, "__code__") : NULL, *source = code ? NULL : attribute(value, "src");
    if (source && PyUnicode_Check(source)) { /* of another front end: a program, in which it has a name */
        add_text(f, source);
        add_attribute(f, value, "source_file");
        add_attribute(f, value, "__name__");
        add_params(f, kernel);
    } else if (text && PyTuple_Check(text) && code) {
        tt_fingerprint_add(f, text);
        add_attribute(f, code, "co_freevars");
        add_attribute(f, value, "noinline");
        add_params(f, kernel);
    } else {
        give_up(f);
    }
    Py_XDECREF(text);
    Py_XDECREF(fn);
    Py_XDECREF(code);
    Py_XDECREF(source);
}

static void add_module(Fingerprint *f, PyObject *value)
{
    add_tag(f, TAG_MODULE);
    if (add_number_of(f, value, f->modules.data, f->modules.count))
        return;
    tt_push(f->arena, f->modules, value);
    add_attribute(f, value, "__name__");
}

/* ---- Python functions that run while a kernel is compiled, and what they use ------------------------------------------------ */

static void add_code(Fingerprint *f, PyObject *code)
{
    static const char *const parts[] = {"co_code",
                                        "co_names",
                                        "co_varnames",
                                        "co_freevars",
                                        "co_argcount",
                                        "co_kwonlyargcount",
                                        "co_posonlyargcount",
                                        "co_flags",
                                        "co_consts"}; /* with the code of functions inside */
    add_tag(f, TAG_CODE);
    for (size_t i = 0; i < TT_COUNT(parts); i++)
        add_attribute(f, code, parts[i]);
}

/* A module that the function refers to: those of its attributes that the function may mean. */
static void add_used_attributes(Fingerprint *f, PyObject *module, PyObject *used)
{
    PyObject *name = attribute(module, "__name__"), *dict = PyModule_GetDict(module); /* borrowed */
    bool is_known = tt_is_own_module(name) || is_of_python(name);
    add_module(f, module);
    for (Py_ssize_t i = 0; !is_known && i < PyTuple_Size(used) && !f->unknown; i++) {
        PyObject *value = PyDict_GetItemWithError(dict, PyTuple_GetItem(used, i));
        if (value)
            tt_fingerprint_add(f, value);
        else
            add_tag(f, TAG_MISSING);
        tt_forget();
    }
    Py_XDECREF(name);
}

static void add_globals_of_code(Fingerprint *f, PyObject *code, PyObject *globals)
{
    PyObject *used = attribute(code, "co_names"), *constants = attribute(code, "co_consts");
    if (!used || !constants || !PyTuple_Check(used) || !PyTuple_Check(constants))
        give_up(f);
    for (Py_ssize_t i = 0; !f->unknown && i < PyTuple_Size(used); i++) {
        PyObject *value = PyDict_GetItemWithError(globals, PyTuple_GetItem(used, i)); /* borrowed */
        if (!value)
            add_tag(f, TAG_MISSING);
        else if (PyModule_Check(value))
            add_used_attributes(f, value, used);
        else
            tt_fingerprint_add(f, value);
        tt_forget();
    }
    for (Py_ssize_t i = 0; !f->unknown && i < PyTuple_Size(constants); i++)
        if (Py_TYPE(PyTuple_GetItem(constants, i)) == Py_TYPE(code))
            add_globals_of_code(f, PyTuple_GetItem(constants, i), globals);
    Py_XDECREF(used);
    Py_XDECREF(constants);
}

static void add_cells(Fingerprint *f, PyObject *function)
{
    PyObject *closure = attribute(function, "__closure__");
    Py_ssize_t count = closure && PyTuple_Check(closure) ? PyTuple_Size(closure) : 0;
    tt_hasher_add_number(&f->hasher, count);
    for (Py_ssize_t i = 0; i < count && !f->unknown; i++)
        add_attribute(f, PyTuple_GetItem(closure, i), "cell_contents");
    Py_XDECREF(closure);
}

static bool is_function(PyObject *value)
{
    PyObject *code = attribute(value, "__code__"), *globals = code ? attribute(value, "__globals__") : NULL;
    bool is = globals && PyDict_Check(globals) && PyCallable_Check(value);
    Py_XDECREF(code);
    Py_XDECREF(globals);
    return is;
}

static void add_function(Fingerprint *f, PyObject *function)
{
    PyObject *code = attribute(function, "__code__"), *globals = attribute(function, "__globals__");
    add_tag(f, TAG_FUNCTION);
    add_attribute(f, function, "__defaults__");
    add_attribute(f, function, "__kwdefaults__");
    add_code(f, code);
    add_cells(f, function);
    add_globals_of_code(f, code, globals);
    Py_XDECREF(code);
    Py_XDECREF(globals);
}

/* ---- classes and objects ---------------------------------------------------------------------------------------------------- */

static bool is_left_out(const char *name)
{
    static const char *const parts[] = {"__dict__",
                                        "__weakref__",
                                        "__doc__",
                                        "__module__",
                                        "__firstlineno__",
                                        "__static_attributes__",
                                        "__annotations__",
                                        "__annotate_func__",
                                        "__annotations_cache__",
                                        "__abstractmethods__",
                                        "_abc_impl"};
    for (size_t i = 0; i < TT_COUNT(parts); i++)
        if (!strcmp(parts[i], name))
            return true;
    return false;
}

/* What is in an object's or a class's dict. */
static void add_members(Fingerprint *f, PyObject *object)
{
    PyObject *view = attribute(object, "__dict__"), *items = view ? PyMapping_Items(view) : NULL;
    if (!items)
        give_up(f);
    for (Py_ssize_t i = 0; !f->unknown && i < PyList_Size(items); i++) {
        PyObject *item = PyList_GetItem(items, i), *name = PyTuple_GetItem(item, 0);
        const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
        if (text && is_left_out(text))
            continue;
        add_tag(f, TAG_MEMBER);
        tt_fingerprint_add(f, name);
        tt_fingerprint_add(f, PyTuple_GetItem(item, 1));
    }
    Py_XDECREF(view);
    Py_XDECREF(items);
}

static void add_class(Fingerprint *f, PyObject *class)
{
    add_tag(f, TAG_CLASS);
    add_attribute(f, class, "__module__");
    add_attribute(f, class, "__qualname__");
    add_attribute(f, class, "__bases__");
    add_members(f, class);
}

static bool is_named(PyTypeObject *type, const char *name)
{
    PyObject *own = attribute((PyObject *)type, "__name__");
    bool is = own && PyUnicode_Check(own) && !PyUnicode_CompareWithASCIIString(own, name);
    Py_XDECREF(own);
    return is;
}

/* Descriptors: what they are made of. */
static bool add_descriptor(Fingerprint *f, PyObject *value)
{
    static const struct {
        const char *type;
        const char *parts[3];
    } kinds[] = {{"staticmethod", {"__func__"}},
                 {"classmethod", {"__func__"}},
                 {"method", {"__func__", "__self__"}},
                 {"property", {"fget", "fset", "fdel"}},
                 {"member_descriptor", {"__name__"}},
                 {"method_descriptor", {"__name__", "__objclass__"}},
                 {"wrapper_descriptor", {"__name__", "__objclass__"}},
                 {"getset_descriptor", {"__name__"}},
                 {"DynamicClassAttribute", {"fget"}}};
    for (size_t i = 0; i < TT_COUNT(kinds); i++) {
        if (!is_named(Py_TYPE(value), kinds[i].type))
            continue;
        add_tag(f, TAG_METHOD);
        tt_hasher_add_string(&f->hasher, kinds[i].type);
        for (int j = 0; j < 3 && kinds[i].parts[j]; j++)
            add_attribute(f, value, kinds[i].parts[j]);
        return true;
    }
    return false;
}

/* Types of elements: their names tell them apart. */
static bool is_dtype(PyObject *value)
{
    PyObject *module = attribute((PyObject *)Py_TYPE(value), "__module__");
    bool is = (names(module, "torch") && is_named(Py_TYPE(value), "dtype")) ||
              (names(module, "numpy") && PyObject_HasAttrString(value, "itemsize") &&
               PyObject_HasAttrString(value, "descr"));
    Py_XDECREF(module);
    return is;
}

static void add_repr(Fingerprint *f, PyObject *value)
{
    PyObject *text = PyObject_Repr(value);
    add_tag(f, TAG_TYPE);
    if (text)
        add_text(f, text);
    else
        give_up(f);
    Py_XDECREF(text);
}

/* An object is what its class makes of what it holds: its dict, and the number or text that it is. */
static void add_object(Fingerprint *f, PyObject *value)
{
    PyObject *dict = attribute(value, "__dict__");
    bool is_number = PyLong_Check(value) || PyFloat_Check(value) || PyUnicode_Check(value);
    if (!dict || PyTuple_Check(value) || PyList_Check(value) || PyDict_Check(value)) {
        give_up(f);
    } else {
        add_tag(f, TAG_OBJECT);
        tt_fingerprint_add(f, (PyObject *)Py_TYPE(value));
        add_members(f, value);
        if (is_number && PyLong_Check(value))
            add_int(f, value);
        else if (is_number && PyFloat_Check(value))
            add_float(f, value);
        else if (is_number)
            add_text(f, value);
    }
    Py_XDECREF(dict);
}

/* ---- all ---------------------------------------------------------------------------------------------------------------------- */

static bool is_kind(PyObject *kind, const char *name)
{
    return kind && PyUnicode_Check(kind) && !PyUnicode_CompareWithASCIIString(kind, name);
}

/* What this package marks (`__triton_kind__`), and autotuned kernels, which are called as the kernels that they tune. */
static bool add_marked(Fingerprint *f, PyObject *value)
{
    PyObject *kind = PyObject_GetAttr((PyObject *)Py_TYPE(value), f->state->names.__triton_kind__);
    tt_forget();
    bool is_marked = true;
    if (PyObject_TypeCheck(value, f->state->kernel_type))
        add_kernel(f, value);
    else if (is_kind(kind, "constexpr"))
        add_tag(f, TAG_CONSTEXPR), add_attribute(f, value, "value");
    else if (is_kind(kind, "dtype") || is_kind(kind, "pointer_type") || is_kind(kind, "block_type"))
        add_repr(f, value);
    else if (is_kind(kind, "constexpr_function"))
        add_tag(f, TAG_METHOD), add_attribute(f, value, "fn");
    else
        is_marked = false;
    Py_XDECREF(kind);
    if (is_marked || PyType_Check(value))
        return is_marked;
    PyObject *base = attribute(value, "base_fn");
    if (base && base != value)
        tt_fingerprint_add(f, base);
    Py_XDECREF(base);
    return base != NULL;
}

static void let_go(void *object) { Py_DECREF((PyObject *)object); }

static void add_compound(Fingerprint *f, PyObject *value)
{
    if (add_number_of(f, value, f->seen.data, f->seen.count))
        return;
    tt_push(f->arena, f->seen, Py_NewRef(value)); /* so that nothing else can come to lie at its address */
    tt_arena_on_release(f->arena, let_go, value);
    PyObject *code = PyModule_Check(value) || PyType_Check(value) ? NULL : attribute(value, "co_code");
    if (PyModule_Check(value))
        add_module(f, value);
    else if (code)
        add_code(f, value);
    else if (is_function(value))
        add_function(f, value);
    else if (PyType_Check(value))
        add_class(f, value);
    else if (PyTuple_Check(value))
        add_named_tuple(f, value);
    else if (is_dtype(value))
        add_repr(f, value);
    else if (!add_descriptor(f, value))
        add_object(f, value);
    Py_XDECREF(code);
}

void tt_fingerprint_add(Fingerprint *f, PyObject *value)
{
    if (f->unknown)
        return;
    if (f->depth > DEEPEST || ++f->count > MOST) {
        give_up(f);
        return;
    }
    f->depth++;
    if (!add_plain(f, value) && !add_marked(f, value) && !add_named(f, value))
        add_compound(f, value);
    f->depth--;
}
