/* Reading Python's ast: kinds of nodes, children, locations; and attributes of other Python objects. Type objects are
 * looked up once a run and found by their address from then on. */
#include "frontend/walker.h"
#include <stdlib.h>

static const struct {
    const char *name, *construct, *remedy;
} nodes[] = {
#define NODE(name) {#name, NULL, NULL},
#define NO_NODE(name, construct, remedy) {#name, construct, remedy},
#include "frontend/nodes.def"
};

static int compare_name(const void *name, const void *row) { return strcmp(name, *(const char *const *)row); }

/* __name__ of a type, in the arena. */
static const char *type_name(Walker *w, PyObject *type)
{
    PyObject *name = PyObject_GetAttr(type, w->state->fields[FIELD___name__]);
    const char *text = name && PyUnicode_Check(name) ? tt_arena_strdup(w->arena, tt_utf8(w, name)) : "?";
    Py_XDECREF(name);
    tt_look_away(w);
    return text;
}

NodeKind tt_node_kind(Walker *w, PyObject *node)
{
    PyObject *type = (PyObject *)Py_TYPE(node);
    void **slot = tt_map_slot_ptr(&w->state->node_kinds, type);
    if (!*slot) {
        const char *name = type_name(w, type);
        const void *row = bsearch(name, nodes, TT_COUNT(nodes), sizeof nodes[0], compare_name);
        intptr_t kind =
            row ? ((const char *)row - (const char *)nodes) / (intptr_t)sizeof nodes[0] : NODE_KINDS;
        *slot = (void *)(kind + 1);
    }
    return (NodeKind)((intptr_t)*slot - 1);
}

ObjectKind tt_object_kind(Walker *w, PyObject *object)
{
    static const char *const names[] = {
        [OBJECT_JIT] = "jit",
        [OBJECT_DTYPE] = "dtype",
        [OBJECT_POINTER_TYPE] = "pointer_type",
        [OBJECT_BLOCK_TYPE] = "block_type",
        [OBJECT_CONSTEXPR] = "constexpr",
        [OBJECT_CONSTEXPR_FUNCTION] = "constexpr_function",
        [OBJECT_TILE] = "tile",
        [OBJECT_WINDOW] = "window",
    };
    PyObject *type = (PyObject *)Py_TYPE(object);
    void **slot = tt_map_slot_ptr(&w->state->object_kinds, type);
    if (!*slot) {
        intptr_t kind = OBJECT_OTHER;
        PyObject *text = PyObject_GetAttr(type, w->state->fields[FIELD___triton_kind__]);
        for (size_t i = 1; text && i < TT_COUNT(names); i++)
            if (PyUnicode_Check(text) && !PyUnicode_CompareWithASCIIString(text, names[i]))
                kind = (intptr_t)i;
        Py_XDECREF(text);
        tt_look_away(w);
        tt_keep(w, Py_NewRef(type)); /* its address must stay its own for the run */
        *slot = (void *)(kind + 1);
    }
    return (ObjectKind)((intptr_t)*slot - 1);
}

PyObject *tt_attribute_or_null(Walker *w, PyObject *object, FieldName name)
{
    PyObject *value = PyObject_GetAttr(object, w->state->fields[name]);
    if (value)
        return tt_keep(w, value);
    if (!PyErr_ExceptionMatches(PyExc_AttributeError))
        tt_python_error(w);
    PyErr_Clear();
    return NULL;
}

PyObject *tt_attribute(Walker *w, PyObject *object, FieldName name)
{
    return tt_keep(w, PyObject_GetAttr(object, w->state->fields[name]));
}

int64_t tt_int_attribute(Walker *w, PyObject *object, FieldName name)
{
    PyObject *value = PyObject_GetAttr(object, w->state->fields[name]);
    int64_t number = value ? PyLong_AsLongLong(value) : -1;
    Py_XDECREF(value);
    if (number == -1 && PyErr_Occurred())
        tt_python_error(w);
    return number;
}

PyObject *tt_field(Walker *w, PyObject *node, FieldName name)
{
    PyObject *value = PyObject_GetAttr(node, w->state->fields[name]);
    if (!value)
        tt_python_error(w);
    Py_DECREF(value);
    return value;
}

bool tt_is_field_set(Walker *w, PyObject *node, FieldName name) { return tt_field(w, node, name) != Py_None; }

int tt_list_size(Walker *w, PyObject *list)
{
    Py_ssize_t size = PyList_Size(list);
    if (size < 0)
        tt_python_error(w);
    return (int)size;
}

PyObject *tt_list_item(Walker *w, PyObject *list, int index)
{
    PyObject *item = PyList_GetItem(list, index);
    if (!item)
        tt_python_error(w);
    return item;
}

const Loc *tt_loc(Walker *w, PyObject *node)
{
    Loc *loc = TT_NEW(w->arena, Loc);
    const Frame *frame = w->state->frame;
    loc->file = frame->info->file;
    loc->function = frame->info->signature.name;
    loc->caller = frame->call_site;
    loc->line = (int)tt_int_attribute(w, node, FIELD_lineno);
    loc->column = (int)tt_int_attribute(w, node, FIELD_col_offset) + frame->info->column_offset;
    loc->end_line = (int)tt_int_attribute(w, node, FIELD_end_lineno);
    loc->end_column = (int)tt_int_attribute(w, node, FIELD_end_col_offset) + frame->info->column_offset;
    return loc;
}

void tt_at(Walker *w, PyObject *node) { w->builder.loc = tt_loc(w, node); }

void tt_refuse_node(Walker *w, PyObject *node)
{
    NodeKind kind = tt_node_kind(w, node);
    tt_at(w, node);
    if (kind == NODE_KINDS || !nodes[kind].construct)
        tt_fail(w, "this Python construct (%s) cannot be compiled", type_name(w, (PyObject *)Py_TYPE(node)));
    tt_fail_with_remedy(w, nodes[kind].remedy, "%s cannot be compiled", nodes[kind].construct);
}

const char *tt_utf8(Walker *w, PyObject *text)
{
    Py_ssize_t size;
    const char *utf8 = PyUnicode_AsUTF8AndSize(text, &size);
    if (!utf8)
        tt_look_away(w); /* a lone surrogate: only messages are the poorer for it */
    return utf8 ? utf8 : "?";
}

void tt_breathe_in_walk(const Walker *w)
{
    if (w->state->breathe)
        w->state->breathe();
}

void tt_check_depth(Walker *w)
{
    enum { MOST = 2 << 20 };
    WalkerState *state = w->state;
    if (!(++state->steps & 63) && PyErr_CheckSignals() < 0)
        tt_raise(&(Diagnostic){.kind = TT_PYTHON_ERROR, .loc = tt_here(w), .message = "interrupted"});
    if (!(state->steps & 1))
        tt_breathe_in_walk(w);
    if (tt_stack_is_short(&state->stack, MOST))
        tt_fail_with_remedy(w, "split it into simpler statements or into functions",
                            "the program is nested too deeply to be compiled");
}
