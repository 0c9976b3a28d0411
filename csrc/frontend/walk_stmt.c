/* Statements, and assignment to names. */
#include "frontend/walker.h"

/* ---- assignment ----------------------------------------------------------------------------------------------------- */

static bool has_items(Walker *w, Term term)
{
    if (term.kind != TERM_PYTHON)
        return term.kind == TERM_TUPLE;
    PyObject *iterator = PyObject_GetIter(term.object);
    if (!iterator)
        tt_look_away(w);
    Py_XDECREF(iterator);
    return iterator;
}

/* Values beyond the names are dropped, as compilers of the public API have it: `i, j = a, b, c` is found in programs. */
static void unpack(Walker *w, PyObject *targets, Term term)
{
    int wanted = tt_list_size(w, targets), count;
    const Term *items;
    for (int i = 0; i < wanted; i++) {
        PyObject *target = tt_list_item(w, targets, i);
        if (tt_node_kind(w, target) != NODE_Starred)
            continue;
        tt_at(w, target);
        tt_fail_with_remedy(w, "take a part of the tuple: rest = x[1:]",
                            "starred assignment targets are not supported");
    }
    if (!has_items(w, term))
        tt_fail_with_remedy(
            w, term.kind == TERM_VALUE ? "take a tile apart with tl.split, or index it" : NULL,
            "cannot unpack non-iterable value: %s into %d names", tt_describe(w, term), wanted);
    tt_iterate(w, term, &items, &count);
    if (count < wanted)
        tt_fail_with_remedy(w, "leave out the names that get none",
                            "not enough values to unpack (expected %d, got %d)", wanted, count);
    for (int i = 0; i < wanted; i++)
        tt_assign(w, tt_list_item(w, targets, i), items[i]);
}

static _Noreturn void refuse_attribute(Walker *w, PyObject *target)
{
    Term t = tt_walk_expr(w, tt_field(w, target, FIELD_value));
    const char *name = tt_utf8(w, tt_field(w, target, FIELD_attr));
    tt_at(w, target);
    if (t.kind == TERM_TUPLE && t.object)
        tt_fail_with_remedy(
            w, tt_arena_format(w->arena, "make a changed copy: x = tl.aggregate_replace(x, %s=...)", name),
            "field '%s' of %s cannot be assigned: it is a value", name, tt_describe(w, t));
    tt_fail_with_remedy(w, "assign to a name", "attributes cannot be assigned in a kernel");
}

void tt_assign(Walker *w, PyObject *target, Term term)
{
    switch (tt_node_kind(w, target)) {
    case NODE_Name:
        tt_store_name(w, tt_field(w, target, FIELD_id), term);
        return;
    case NODE_Tuple:
    case NODE_List:
        unpack(w, tt_field(w, target, FIELD_elts), term);
        return;
    case NODE_Subscript:
        tt_at(w, target);
        tt_fail_with_remedy(
            w, "choose elements with tl.where(condition, new, old), or write to memory with tl.store",
            "elements cannot be assigned: tiles and tuples are values");
    case NODE_Attribute:
        refuse_attribute(w, target);
    default:
        tt_refuse_node(w, target);
    }
}

/* A constant as Python's object; what is known at run time only as it is. */
static Term constant_term(Walker *w, Term value)
{
    PyObject *object = value.kind == TERM_VALUE ? tt_term_python(w, value) : NULL;
    return object ? tt_python_term(w, object) : value;
}

Term tt_decay_for(Walker *w, PyObject *target, Term value)
{
    NodeKind kind = tt_node_kind(w, target);
    if (kind == NODE_Name &&
        tt_map_find_ptr(&w->state->frame->scope.constexprs, tt_field(w, target, FIELD_id)))
        return constant_term(w, value);
    PyObject *parts = kind == NODE_Tuple || kind == NODE_List ? tt_field(w, target, FIELD_elts) : NULL;
    if (!parts || value.kind != TERM_TUPLE || tt_list_size(w, parts) != value.count)
        return tt_decay(w, value);
    Term copy = tt_tuple_term(w, value.items, value.count);
    for (int i = 0; i < value.count; i++)
        copy.items[i] = tt_decay_for(w, tt_list_item(w, parts, i), value.items[i]);
    return copy;
}

static void walk_assign(Walker *w, PyObject *node)
{
    Term value = tt_walk_expr(w, tt_field(w, node, FIELD_value));
    tt_at(w, node);
    PyObject *targets = tt_field(w, node, FIELD_targets);
    if (tt_list_size(w, targets) == 1)
        value = tt_decay_for(w, tt_list_item(w, targets, 0), value);
    else
        value = tt_decay(w, value);
    for (int i = 0; i < tt_list_size(w, targets); i++)
        tt_assign(w, tt_list_item(w, targets, i), value);
}

static void walk_aug_assign(Walker *w, PyObject *node)
{
    PyObject *target = tt_field(w, node, FIELD_target);
    if (tt_node_kind(w, target) != NODE_Name) {
        tt_assign(w, target, tt_none(w)); /* raises */
        return;
    }
    Term old = tt_load_name(w, target, tt_field(w, target, FIELD_id));
    Term result = tt_walk_operation(w, node, old, tt_field(w, node, FIELD_value));
    tt_assign(w, target, tt_decay(w, result));
}

/* Python does not evaluate the annotation of a local variable, so only its spelling counts. */
static bool is_constexpr_annotation(Walker *w, PyObject *node)
{
    PyObject *text;
    switch (tt_node_kind(w, node)) {
    case NODE_Name:
        text = tt_field(w, node, FIELD_id);
        break;
    case NODE_Attribute:
        text = tt_field(w, node, FIELD_attr);
        break;
    case NODE_Constant:
        text = tt_field(w, node, FIELD_value);
        return PyUnicode_Check(text) && strstr(tt_utf8(w, text), "constexpr");
    default:
        return false;
    }
    return !PyUnicode_CompareWithASCIIString(text, "constexpr");
}

/* `x: tl.constexpr` alone is about later assignments of x; other types alone do nothing. */
static void declare(Walker *w, PyObject *node)
{
    PyObject *target = tt_field(w, node, FIELD_target);
    if (tt_node_kind(w, target) == NODE_Name &&
        is_constexpr_annotation(w, tt_field(w, node, FIELD_annotation)))
        *tt_map_slot_ptr(&w->state->frame->scope.constexprs, tt_field(w, target, FIELD_id)) = target;
}

static void walk_ann_assign(Walker *w, PyObject *node)
{
    if (!tt_is_field_set(w, node, FIELD_value)) {
        declare(w, node);
        return;
    }
    Term value = tt_walk_expr(w, tt_field(w, node, FIELD_value));
    tt_at(w, node);
    if (is_constexpr_annotation(w, tt_field(w, node, FIELD_annotation))) {
        if (!tt_term_python(w, value) &&
            tt_has_values(value)) /* kernels of libraries have it, so it is no error */
            tt_remark(w->module, tt_here(w),
                      "annotated tl.constexpr, but the value is known at run time only, %s: leave the "
                      "annotation out",
                      tt_describe(w, value));
        value = constant_term(w, value);
    } else {
        value = tt_decay(w, value);
    }
    tt_assign(w, tt_field(w, node, FIELD_target), value);
}

static void walk_delete(Walker *w, PyObject *node)
{
    PyObject *targets = tt_field(w, node, FIELD_targets);
    tt_at(w, node);
    for (int i = 0; i < tt_list_size(w, targets); i++) {
        PyObject *target = tt_list_item(w, targets, i);
        if (tt_node_kind(w, target) != NODE_Name)
            tt_fail(w, "only names can be deleted in a kernel");
        PyObject *name = tt_field(w, target, FIELD_id);
        tt_load_name(w, target, name); /* raises where Python would */
        Undefined *why = TT_NEW(w->arena, Undefined);
        *why = (Undefined){.kind = UNDEFINED_DELETED, .loc = tt_here(w)};
        tt_bind_slot(w, tt_slot(w, name), (Term){.kind = TERM_UNDEFINED, .undefined = why});
    }
}

/* ---- others --------------------------------------------------------------------------------------------------------- */

static Flow walk_return(Walker *w, PyObject *node)
{
    Term value = tt_none(w);
    if (tt_is_field_set(w, node, FIELD_value))
        value = tt_walk_expr(w, tt_field(w, node, FIELD_value));
    tt_at(w, node);
    tt_bind_slot(w, SLOT_RESULT, tt_decay(w, value));
    tt_bind_slot(w, SLOT_RETURNED, tt_bool_term(w, true));
    return RETURNS;
}

static Flow leave_iteration(Walker *w, PyObject *node, int slot, Flow flow)
{
    tt_at(w, node);
    if (!w->state->frame->loop_depth)
        tt_fail(w, "`break` and `continue` belong into a loop");
    tt_bind_slot(w, slot, tt_bool_term(w, true));
    return flow;
}

/* tl.device_assert of what is not known to hold: a false constant, too, counts where the program comes by. */
static void walk_assert(Walker *w, PyObject *node)
{
    Term condition = tt_walk_expr(w, tt_field(w, node, FIELD_test));
    int truth = tt_known_truth(w, condition);
    if (truth == 1)
        return;
    Term message = tt_string_term(w, "");
    if (tt_is_field_set(w, node, FIELD_msg))
        message = tt_walk_expr(w, tt_field(w, node, FIELD_msg));
    tt_at(w, node);
    Term function = tt_python_term(w, tt_language_object(w, "device_assert"));
    tt_call(w, function, (Term[]){truth == 0 ? tt_bool_term(w, false) : condition, message}, 2);
}

/* A hint that is a statement is about the name it is given: `tl.multiple_of(stride, 16)`, or one around another. Where the
 * name got its value outside of this loop or branch, it would change in there; the hint has no effect then. */
static void keep_hint(Walker *w, PyObject *node, Term result)
{
    const Value *hinted = tt_is_value(result) ? result.value : NULL;
    while (hinted && tt_def(hinted, OP_hint) && tt_node_kind(w, node) == NODE_Call) {
        PyObject *arguments = tt_field(w, node, FIELD_args);
        if (!PyList_Size(arguments))
            return;
        node = tt_list_item(w, arguments, 0);
        hinted = tt_operand(hinted->op, 0);
    }
    if (!hinted || tt_node_kind(w, node) != NODE_Name)
        return;
    int slot = tt_find_slot(w, tt_field(w, node, FIELD_id));
    const Region *home = hinted->op ? hinted->op->parent : hinted->region;
    const Term *bound = slot < 0 ? NULL : &tt_binding(w, slot)->term;
    if (bound && tt_is_value(*bound) && bound->value == hinted && home == w->builder.region)
        tt_bind_slot(w, slot, result);
}

static void walk_expression_statement(Walker *w, PyObject *node)
{
    PyObject *value = tt_field(w, node, FIELD_value);
    NodeKind kind = tt_node_kind(w, value);
    if (kind == NODE_Constant) /* a docstring */
        return;
    Term result = tt_walk_expr(w, value);
    if (kind != NODE_Call)
        return;
    keep_hint(w, value, result);
    PyObject *callee = w->state->last_callee;
    PyObject *advice = callee ? tt_attribute_or_null(w, callee, FIELD__must_use_result) : NULL;
    if (!advice || advice == Py_False || advice == Py_None)
        return;
    tt_at(w, value);
    PyObject *ast = tt_keep(w, PyImport_ImportModule("ast"));
    PyObject *written = tt_keep(w, PyObject_CallMethod(ast, "unparse", "O", tt_field(w, value, FIELD_func)));
    tt_fail_with_remedy(w, PyUnicode_Check(advice) ? tt_utf8(w, advice) : "assign it to a name",
                        "The result of %s is not being used.", tt_utf8(w, written));
}

Flow tt_walk_statement(Walker *w, Sequence *sequence, int index, Flow tail)
{
    PyObject *node = tt_list_item(w, sequence->statements, index);
    Flow own_tail = index + 1 == sequence->count ? tail : 0;
    tt_check_depth(w);
    switch (tt_node_kind(w, node)) {
    case NODE_Assign:
        walk_assign(w, node);
        return FALLS;
    case NODE_AugAssign:
        walk_aug_assign(w, node);
        return FALLS;
    case NODE_AnnAssign:
        walk_ann_assign(w, node);
        return FALLS;
    case NODE_Expr:
        walk_expression_statement(w, node);
        return FALLS;
    case NODE_If:
        return tt_walk_if(w, node, sequence, index, tail);
    case NODE_For:
        return tt_walk_for(w, node, own_tail);
    case NODE_While:
        return tt_walk_while(w, node, own_tail);
    case NODE_Return:
        return walk_return(w, node);
    case NODE_Break:
        return leave_iteration(w, node, SLOT_BROKE, BREAKS);
    case NODE_Continue:
        return leave_iteration(w, node, SLOT_CONTINUED, CONTINUES);
    case NODE_Assert:
        walk_assert(w, node);
        return FALLS;
    case NODE_Delete:
        walk_delete(w, node);
        return FALLS;
    case NODE_Pass:
        return FALLS;
    default:
        tt_refuse_node(w, node);
    }
}
