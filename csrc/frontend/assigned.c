/* The names that a loop assigns, found in its ast before the body is walked: they are what it carries. */
#include "frontend/walker.h"

static void add_name(Walker *w, AssignedNames *into, PyObject *name)
{
    for (int i = 0; i < into->count; i++)
        if (into->data[i] == name)
            return;
    tt_push(w->arena, *into, name);
}

static void add_target(Walker *w, AssignedNames *into, PyObject *target)
{
    switch (tt_node_kind(w, target)) {
    case NODE_Name:
        add_name(w, into, tt_field(w, target, FIELD_id));
        break;
    case NODE_Tuple:
    case NODE_List: {
        PyObject *elements = tt_field(w, target, FIELD_elts);
        for (int i = 0; i < tt_list_size(w, elements); i++)
            add_target(w, into, tt_list_item(w, elements, i));
        break;
    }
    default:
        break; /* refused when it is walked */
    }
}

/* Assignment expressions can hide in any expression; looked for only in functions whose text has `:=`. */
static void add_walruses(Walker *w, AssignedNames *into, PyObject *node)
{
    tt_check_depth(w);
    if (PyList_Check(node)) {
        for (int i = 0; i < tt_list_size(w, node); i++)
            add_walruses(w, into, tt_list_item(w, node, i));
        return;
    }
    PyObject *fields = PyObject_GetAttr((PyObject *)Py_TYPE(node), w->state->fields[FIELD__fields]);
    if (!fields) {
        tt_look_away(w); /* a leaf: a string, a number */
        return;
    }
    tt_keep(w, fields);
    if (tt_node_kind(w, node) == NODE_NamedExpr)
        add_target(w, into, tt_field(w, node, FIELD_target));
    for (Py_ssize_t i = 0; PyTuple_Check(fields) && i < PyTuple_Size(fields); i++) {
        PyObject *child = PyObject_GetAttr(node, PyTuple_GetItem(fields, i));
        if (child)
            add_walruses(w, into, tt_keep(w, child));
        else
            tt_look_away(w);
    }
}

static void add_block(Walker *w, AssignedNames *into, PyObject *statements);

static void add_statement(Walker *w, AssignedNames *into, PyObject *node)
{
    NodeKind kind = tt_node_kind(w, node);
    switch (kind) {
    case NODE_Assign:
    case NODE_Delete: {
        PyObject *targets = tt_field(w, node, FIELD_targets);
        for (int i = 0; i < tt_list_size(w, targets); i++)
            add_target(w, into, tt_list_item(w, targets, i));
        break;
    }
    case NODE_AugAssign:
    case NODE_AnnAssign:
        add_target(w, into, tt_field(w, node, FIELD_target));
        break;
    case NODE_For:
        add_target(w, into, tt_field(w, node, FIELD_target));
        /* fallthrough */
    case NODE_While:
    case NODE_If:
        add_block(w, into, tt_field(w, node, FIELD_body));
        add_block(w, into, tt_field(w, node, FIELD_orelse));
        break;
    default:
        break;
    }
}

static void add_block(Walker *w, AssignedNames *into, PyObject *statements)
{
    tt_check_depth(w);
    for (int i = 0; i < tt_list_size(w, statements); i++)
        add_statement(w, into, tt_list_item(w, statements, i));
}

const AssignedNames *tt_assigned_names(Walker *w, PyObject *loop)
{
    void **slot = tt_map_slot_ptr(&w->state->assigned, loop);
    if (*slot)
        return *slot;
    AssignedNames *names = TT_NEW(w->arena, AssignedNames);
    *slot = names;
    add_statement(w, names, loop);
    if (w->state->frame->info->has_walrus)
        add_walruses(w, names, loop);
    return names;
}

bool tt_has_walrus(Walker *w, PyObject *node)
{
    AssignedNames names = {0};
    if (w->state->frame->info->has_walrus)
        add_walruses(w, &names, node);
    return names.count > 0;
}
