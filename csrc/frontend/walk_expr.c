/* Expressions. What is known at compile time is computed by Python; what is not becomes operations through the
 * language's semantic functions. */
#include "frontend/walker.h"

static Operator operator_of(Walker *w, PyObject *node)
{
    switch (tt_node_kind(w, node)) {
    case NODE_Add:
        return OPERATOR_ADD;
    case NODE_Sub:
        return OPERATOR_SUB;
    case NODE_Mult:
        return OPERATOR_MUL;
    case NODE_MatMult:
        return OPERATOR_MATMUL;
    case NODE_Div:
        return OPERATOR_DIV;
    case NODE_FloorDiv:
        return OPERATOR_FLOORDIV;
    case NODE_Mod:
        return OPERATOR_MOD;
    case NODE_Pow:
        return OPERATOR_POW;
    case NODE_LShift:
        return OPERATOR_LSHIFT;
    case NODE_RShift:
        return OPERATOR_RSHIFT;
    case NODE_BitAnd:
        return OPERATOR_AND;
    case NODE_BitOr:
        return OPERATOR_OR;
    case NODE_BitXor:
        return OPERATOR_XOR;
    case NODE_Invert:
        return OPERATOR_INVERT;
    case NODE_Not:
        return OPERATOR_NOT;
    case NODE_UAdd:
        return OPERATOR_POS;
    case NODE_USub:
        return OPERATOR_NEG;
    default:
        tt_bug("unknown operator node");
    }
}

Term tt_walk_operation(Walker *w, PyObject *node, Term left, PyObject *right)
{
    Operator op = operator_of(w, tt_field(w, node, FIELD_op));
    Term value = tt_walk_expr(w, right);
    tt_at(w, node);
    return tt_binary(w, op, left, value);
}

static Term walk_unary(Walker *w, PyObject *node)
{
    Operator op = operator_of(w, tt_field(w, node, FIELD_op));
    Term operand = tt_walk_expr(w, tt_field(w, node, FIELD_operand));
    tt_at(w, node);
    if (op == OPERATOR_NOT && operand.kind == TERM_TUPLE && !operand.object)
        tt_raise(&(Diagnostic){
            .kind = TT_UNSUPPORTED,
            .loc = tt_here(w),
            .message = tt_arena_format(w->arena, "`not` does not work on %s", tt_describe(w, operand)),
            .remedy = "compare its length: len(x) == 0"});
    return tt_unary(w, op, operand);
}

static Term walk_named(Walker *w, PyObject *node)
{
    Term value = tt_walk_expr(w, tt_field(w, node, FIELD_value));
    tt_at(w, node);
    value = tt_decay_for(w, tt_field(w, node, FIELD_target), value);
    tt_assign(w, tt_field(w, node, FIELD_target), value);
    return value;
}

/* ---- attributes ----------------------------------------------------------------------------------------------------- */

static bool is_named(PyObject *name, const char *text)
{
    return !PyUnicode_CompareWithASCIIString(name, text);
}

/* Names of dtypes elsewhere. */
static const char *usual_name(const char *name)
{
    static const char *const pairs[][2] = {{"float", "float32"}, {"double", "float64"}, {"half", "float16"},
                                           {"int", "int32"},     {"long", "int64"},     {"bool", "int1"},
                                           {"bool_", "int1"},    {"fp32", "float32"},   {"fp16", "float16"},
                                           {"bf16", "bfloat16"}, {"f32", "float32"},    {"f16", "float16"}};
    for (size_t i = 0; i < TT_COUNT(pairs); i++)
        if (!strcmp(pairs[i][0], name))
            return pairs[i][1];
    return NULL;
}

/* Functions that other libraries have under such names, and what stands for them in kernels; NULL for others. */
static const char *function_elsewhere(Walker *w, const char *name)
{
    static const char *const rows[][2] = {
        {"relu", "take tl.maximum(x, 0)"},
        {"silu", "take x * tl.sigmoid(x)"},
        {"gelu", "take 0.5 * x * (1 + tl.erf(x * 0.7071067811865476))"},
        {"mean", "divide the sum by the number of elements: tl.sum(x, axis) / n"},
        {"var", "compute it from tl.sum(x, axis) and tl.sum(x * x, axis)"},
        {"std", "compute it from tl.sum(x, axis) and tl.sum(x * x, axis)"},
        {"matmul", "take tl.dot(a, b)"},
        {"concatenate", "take tl.cat(a, b, dim=..)"},
        {"concat", "take tl.cat(a, b, dim=..)"},
        {"stack", "take tl.join(a, b)"},
        {"transpose", "take tl.trans(x) or tl.permute(x, dims)"},
        {"size", "the number of elements of a tile is x.numel, its extents are x.shape"},
        {"ones", "take tl.full(shape, 1, dtype)"},
        {"empty", "take tl.zeros(shape, dtype)"},
        {"clip", "take tl.clamp(x, low, high)"},
        {"any", "take tl.max of the condition as integers: tl.max(c.to(tl.int32), axis) > 0"},
        {"all", "take tl.min of the condition as integers: tl.min(c.to(tl.int32), axis) > 0"},
    };
    for (size_t i = 0; i < TT_COUNT(rows); i++)
        if (!strcmp(rows[i][0], name))
            return rows[i][1];
    PyObject *module = tt_keep(w, PyImport_ImportModule("triton.language.extra.libdevice"));
    const char *spelled = !strcmp(name, "round") ? "rint" : name;
    return PyObject_HasAttrString(module, spelled)
               ? tt_arena_format(w->arena, "take tl.extra.libdevice.%s", spelled)
               : NULL;
}

static bool is_language(Walker *w, PyObject *module)
{
    PyObject *name = PyModule_Check(module) ? tt_attribute_or_null(w, module, FIELD___name__) : NULL;
    return name && PyUnicode_Check(name) && !PyUnicode_CompareWithASCIIString(name, "triton.language");
}

static _Noreturn void no_attribute(Walker *w, Term t, PyObject *name)
{
    const char *instead = is_language(w, t.object) ? function_elsewhere(w, tt_utf8(w, name)) : NULL;
    if (instead)
        tt_fail_with_remedy(w, instead, "%s has no attribute `%s`", tt_describe(w, t), tt_utf8(w, name));
    PyObject *names = PyObject_Dir(t.object);
    const char *closest = usual_name(tt_utf8(w, name));
    if (!closest || !PyObject_HasAttrString(t.object, closest))
        closest = names ? tt_closest(w, tt_utf8(w, name), names) : NULL;
    const char *remedy = closest ? tt_arena_format(w->arena, "did you mean `%s`?", closest) : NULL;
    Py_XDECREF(names);
    tt_look_away(w);
    tt_fail_with_remedy(w, remedy, "%s has no attribute `%s`", tt_describe(w, t), tt_utf8(w, name));
}

/* A number may be used like the value it would become (`BLOCK.to(tl.int64)`), any constant like a tl.constexpr. */
static Term missing_attribute(Walker *w, Term t, PyObject *name)
{
    if (is_named(name, "value"))
        return t;
    if (is_named(name, "type")) {
        PyObject *make = tt_language_object(w, "constexpr_type");
        return tt_new_python_term(w, PyObject_CallFunctionObjArgs(make, t.object, NULL));
    }
    if (tt_is_number(t) && (is_named(name, "dtype") || is_named(name, "shape") ||
                            PyObject_HasAttr(tt_language_object(w, "tensor"), name)))
        return tt_semantic_attribute(w, tt_term_value(w, t), name);
    no_attribute(w, t, name);
}

static void report_module_attribute(Walker *w, PyObject *module, PyObject *name, PyObject *value)
{
    if (!tt_is_of_this_package(w, module))
        tt_report_name(w, tt_attribute(w, module, FIELD___dict__), name, value);
}

static Term python_attribute(Walker *w, Term t, PyObject *name)
{
    PyObject *value = PyObject_GetAttr(t.object, name);
    if (!value) {
        if (!PyErr_ExceptionMatches(PyExc_AttributeError))
            tt_python_error(w);
        PyErr_Clear();
        return missing_attribute(w, t, name);
    }
    tt_keep(w, value);
    if (PyModule_Check(t.object))
        report_module_attribute(w, t.object, name, value);
    return tt_python_term(w, value);
}

Term tt_walk_attribute_of(Walker *w, Term t, PyObject *name)
{
    switch (t.kind) {
    case TERM_VALUE:
    case TERM_BLOCK_POINTER:
        return tt_semantic_attribute(w, t, name);
    case TERM_TUPLE:
        return tt_tuple_attribute(w, t, name);
    case TERM_PYTHON:
        return python_attribute(w, t, name);
    default:
        tt_fail(w, "%s has no attribute `%s`", tt_describe(w, t), tt_utf8(w, name));
    }
}

static Term walk_attribute(Walker *w, PyObject *node)
{
    Term t = tt_walk_expr(w, tt_field(w, node, FIELD_value));
    tt_at(w, node);
    return tt_walk_attribute_of(w, t, tt_field(w, node, FIELD_attr));
}

/* ---- subscripts ----------------------------------------------------------------------------------------------------- */

static Term walk_slice(Walker *w, PyObject *node)
{
    static const FieldName parts[] = {FIELD_lower, FIELD_upper, FIELD_step};
    Term items[3];
    for (int i = 0; i < 3; i++)
        items[i] =
            tt_is_field_set(w, node, parts[i]) ? tt_walk_expr(w, tt_field(w, node, parts[i])) : tt_none(w);
    Term slice = tt_tuple_term(w, items, 3);
    slice.kind = TERM_SLICE;
    return slice;
}

/* The Python object that an index stands for; NULL when a part of it is a run-time value. */
static PyObject *python_index(Walker *w, Term t)
{
    if (t.kind != TERM_SLICE)
        return tt_term_python(w, t);
    PyObject *parts[3];
    for (int i = 0; i < 3; i++)
        if (!(parts[i] = tt_term_python(w, t.items[i])))
            return NULL;
    return tt_keep(w, PySlice_New(parts[0], parts[1], parts[2]));
}

static _Noreturn void run_time_index(Walker *w, Term t, Term index)
{
    tt_fail_with_remedy(w, "use a constant, or loop over the items with tl.static_range",
                        "%s is indexed at compile time, but the index is %s", tt_describe(w, t),
                        tt_describe(w, index));
}

static Term tuple_item(Walker *w, Term t, Term index)
{
    PyObject *key = python_index(w, index);
    if (!key)
        run_time_index(w, t, index);
    Py_ssize_t start, stop, step;
    if (PySlice_Check(key)) {
        if (PySlice_Unpack(key, &start, &stop, &step))
            tt_python_error(w);
        Py_ssize_t count = PySlice_AdjustIndices(t.count, &start, &stop, step);
        Term *items = TT_NEW_ARRAY(w->arena, Term, count);
        for (Py_ssize_t i = 0; i < count; i++)
            items[i] = t.items[start + i * step];
        return tt_tuple_term(w, items, (int)count);
    }
    if (!PyLong_Check(key))
        tt_fail(w, "%s is indexed by ints and slices, not by %s", tt_describe(w, t), tt_describe(w, index));
    int overflow;
    long long position = PyLong_AsLongLongAndOverflow(key, &overflow);
    if (overflow || position < -t.count || position >= t.count)
        tt_fail_with_remedy(w,
                            t.count
                                ? NULL
                                : "a scalar has the shape (), and so has a pointer, which does not know its "
                                  "array's: pass the extents as arguments",
                            "index %s is out of range: the tuple has %d items",
                            tt_utf8(w, tt_keep(w, PyObject_Repr(key))), t.count);
    return t.items[position < 0 ? position + t.count : position];
}

/* A key that a mapping such as META lacks; other failures are Python's to explain. */
static _Noreturn void missing_item(Walker *w, Term t, PyObject *key)
{
    if (!PyDict_Check(t.object) || !PyErr_ExceptionMatches(PyExc_KeyError))
        tt_python_error(w);
    PyErr_Clear();
    PyObject *keys = tt_keep(w, PyDict_Keys(t.object));
    const char *closest = PyUnicode_Check(key) ? tt_closest(w, tt_utf8(w, key), keys) : NULL;
    const char *remedy = closest ? tt_arena_format(w->arena, "did you mean '%s'?", closest)
                                 : tt_arena_format(w->arena, "it has the keys %s",
                                                   tt_utf8(w, tt_keep(w, PyObject_Repr(keys))));
    tt_fail_with_remedy(w, remedy, "this mapping has no key %s", tt_utf8(w, tt_keep(w, PyObject_Repr(key))));
}

static Term python_item(Walker *w, Term t, const Arguments *indices, bool is_tuple)
{
    if (tt_object_kind(w, t.object) == OBJECT_JIT)
        tt_fail_with_remedy(w, "call it like a function: name(arguments)",
                            "a kernel cannot launch %s on a grid", tt_describe(w, t));
    PyObject *key = tt_keep(w, PyTuple_New(indices->count));
    for (int i = 0; i < indices->count; i++) {
        PyObject *index = python_index(w, indices->items[i]);
        if (!index)
            run_time_index(w, t, indices->items[i]);
        PyTuple_SetItem(key, i, Py_NewRef(index));
    }
    key = is_tuple ? key : PyTuple_GetItem(key, 0);
    PyObject *item = PyObject_GetItem(t.object, key);
    if (!item)
        missing_item(w, t, key);
    return tt_new_python_term(w, item);
}

static Term walk_subscript(Walker *w, PyObject *node)
{
    Term t = tt_walk_expr(w, tt_field(w, node, FIELD_value));
    PyObject *slice = tt_field(w, node, FIELD_slice);
    bool is_tuple = tt_node_kind(w, slice) == NODE_Tuple;
    Arguments indices = {0};
    if (is_tuple) {
        tt_walk_elements(w, tt_field(w, slice, FIELD_elts), &indices);
    } else {
        indices.items = TT_NEW(w->arena, Term);
        indices.items[0] = tt_walk_expr(w, slice);
        indices.count = 1;
    }
    tt_at(w, node);
    if (t.kind == TERM_VALUE)
        return tt_semantic_subscript(w, t, indices.items, indices.count);
    Term method;
    if (tt_find_method(w, t, "__getitem__", &method)) {
        Term whole = tt_tuple_term(w, indices.items, indices.count);
        return tt_call(w, method, is_tuple ? &whole : indices.items, 1);
    }
    if (t.kind == TERM_TUPLE && !is_tuple)
        return tuple_item(w, t, indices.items[0]);
    if (t.kind == TERM_PYTHON)
        return python_item(w, t, &indices, is_tuple);
    tt_fail(w, "%s cannot be indexed%s", tt_describe(w, t), t.kind == TERM_TUPLE ? " by a tuple" : "");
}

/* ---- all ------------------------------------------------------------------------------------------------------------ */

Term tt_walk_expr(Walker *w, PyObject *node)
{
    tt_check_depth(w);
    switch (tt_node_kind(w, node)) {
    case NODE_Constant:
        return tt_python_term(w, tt_field(w, node, FIELD_value));
    case NODE_Name:
        return tt_load_name(w, node, tt_field(w, node, FIELD_id));
    case NODE_Attribute:
        return walk_attribute(w, node);
    case NODE_BinOp:
        return tt_walk_operation(w, node, tt_walk_expr(w, tt_field(w, node, FIELD_left)),
                                 tt_field(w, node, FIELD_right));
    case NODE_UnaryOp:
        return walk_unary(w, node);
    case NODE_Call:
        return tt_walk_call(w, node);
    case NODE_Compare:
        return tt_walk_compare(w, node);
    case NODE_Subscript:
        return walk_subscript(w, node);
    case NODE_Slice:
        return walk_slice(w, node);
    case NODE_Tuple:
    case NODE_List:
        return tt_walk_display(w, node);
    case NODE_BoolOp:
        return tt_walk_bool_op(w, node);
    case NODE_IfExp:
        return tt_walk_if_expr(w, node);
    case NODE_NamedExpr:
        return walk_named(w, node);
    case NODE_JoinedStr:
        return tt_walk_format(w, node);
    case NODE_Dict:
        return tt_walk_dict(w, node);
    case NODE_ListComp:
    case NODE_GeneratorExp:
        return tt_walk_comprehension(w, node);
    case NODE_Starred:
        tt_at(w, node);
        tt_fail(w, "a starred expression has no meaning here");
    default:
        tt_refuse_node(w, node);
    }
}
