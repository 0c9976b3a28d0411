/* Tuples, lists, dicts, comprehensions and f-strings. A list is a tuple; dicts and strings are compile-time only. */
#include "frontend/walker.h"

static void add_item(Walker *w, Arguments *into, int *capacity, Term item)
{
    if (into->count >= MOST_TUPLE_ITEMS)
        tt_fail(w, "more than %d items are too many", MOST_TUPLE_ITEMS);
    if (into->count == *capacity)
        into->items = tt_vector_grow(w->arena, into->items, into->count, capacity, sizeof(Term));
    into->items[into->count++] = item;
}

void tt_iterate(Walker *w, Term t, const Term **items, int *count)
{
    if (tt_term_items(w, t, items, count))
        return;
    if (t.kind == TERM_VALUE)
        tt_fail_with_remedy(w,
                            "loop over indices with range(...), or reduce it with tl.sum, tl.max, tl.reduce",
                            "%s cannot be iterated over", tt_describe(w, t));
    if (t.kind != TERM_PYTHON)
        tt_fail(w, "%s cannot be iterated over", tt_describe(w, t));
    PyObject *iterator = tt_keep(w, PyObject_GetIter(t.object)), *item;
    Arguments all = {0};
    int capacity = 0;
    while ((item = PyIter_Next(iterator)))
        add_item(w, &all, &capacity, tt_new_python_term(w, item));
    if (PyErr_Occurred())
        tt_python_error(w);
    *items = all.items;
    *count = all.count;
}

void tt_walk_elements(Walker *w, PyObject *list, Arguments *into)
{
    int size = tt_list_size(w, list), capacity = size;
    const Term *first = into->items;
    into->items = TT_NEW_ARRAY(w->arena, Term, size);
    for (int i = 0; i < into->count; i++)
        into->items[i] = first[i];
    for (int i = into->count; i < size; i++) {
        PyObject *node = tt_list_item(w, list, i);
        if (tt_node_kind(w, node) != NODE_Starred) {
            add_item(w, into, &capacity, tt_walk_expr(w, node));
            continue;
        }
        const Term *items;
        int count;
        Term starred = tt_walk_expr(w, tt_field(w, node, FIELD_value));
        tt_at(w, node);
        tt_iterate(w, starred, &items, &count);
        for (int j = 0; j < count; j++)
            add_item(w, into, &capacity, items[j]);
    }
}

Term tt_walk_display(Walker *w, PyObject *node)
{
    Arguments all = {0};
    tt_walk_elements(w, tt_field(w, node, FIELD_elts), &all);
    return (Term){.kind = TERM_TUPLE, .count = all.count, .items = all.items};
}

static PyObject *compile_time_item(Walker *w, PyObject *node, const char *what)
{
    Term t = tt_walk_expr(w, node);
    PyObject *object = tt_term_python(w, t);
    if (!object) {
        tt_at(w, node);
        tt_fail_with_remedy(w, "use a tuple", "%s holds compile-time values only, not %s", what,
                            tt_describe(w, t));
    }
    return object;
}

Term tt_walk_dict(Walker *w, PyObject *node)
{
    PyObject *keys = tt_field(w, node, FIELD_keys), *values = tt_field(w, node, FIELD_values);
    PyObject *dict = tt_keep(w, PyDict_New());
    for (int i = 0; i < tt_list_size(w, keys); i++) {
        PyObject *key = tt_list_item(w, keys, i);
        PyObject *value = compile_time_item(w, tt_list_item(w, values, i), "a dict");
        int failed = key == Py_None ? PyDict_Update(dict, value)
                                    : PyDict_SetItem(dict, compile_time_item(w, key, "a dict"), value);
        tt_at(w, node);
        if (failed)
            tt_python_error(w);
    }
    return tt_python_term(w, dict);
}

/* ---- comprehensions ------------------------------------------------------------------------------------------------- */

typedef struct Comprehension {
    PyObject *element, *generators;
    Arguments result;
    int capacity;
} Comprehension;

static bool passes_filters(Walker *w, PyObject *filters)
{
    for (int i = 0; i < tt_list_size(w, filters); i++) {
        PyObject *node = tt_list_item(w, filters, i);
        Term t = tt_walk_expr(w, node);
        int truth = tt_known_truth(w, t);
        tt_at(w, node);
        if (truth < 0)
            tt_fail(w, "the condition of a comprehension must be known at compile time, but it is %s",
                    tt_describe(w, t));
        if (!truth)
            return false;
    }
    return true;
}

static void run_generator(Walker *w, Comprehension *all, int index)
{
    if (index == tt_list_size(w, all->generators)) {
        add_item(w, &all->result, &all->capacity, tt_walk_expr(w, all->element));
        return;
    }
    PyObject *generator = tt_list_item(w, all->generators, index);
    PyObject *iterable = tt_field(w, generator, FIELD_iter);
    Term t = tt_walk_expr(w, iterable);
    const Term *items;
    int count;
    tt_at(w, iterable);
    tt_iterate(w, t, &items, &count);
    for (int i = 0; i < count; i++) {
        tt_assign(w, tt_field(w, generator, FIELD_target), items[i]);
        if (passes_filters(w, tt_field(w, generator, FIELD_ifs)))
            run_generator(w, all, index + 1);
    }
}

/* The targets are local to the comprehension: what they were is put back. */
Term tt_walk_comprehension(Walker *w, PyObject *node)
{
    Comprehension all = {tt_field(w, node, FIELD_elt), tt_field(w, node, FIELD_generators), {0}, 0};
    Scope *scope = &w->state->frame->scope;
    Bindings before = tt_copy_bindings(w);
    run_generator(w, &all, 0);
    scope->now = before;
    return (Term){.kind = TERM_TUPLE, .count = all.result.count, .items = all.result.items};
}

/* ---- f-strings ------------------------------------------------------------------------------------------------------ */

static PyObject *converted(Walker *w, PyObject *object, int64_t conversion)
{
    switch (conversion) {
    case 's':
        return tt_keep(w, PyObject_Str(object));
    case 'r':
        return tt_keep(w, PyObject_Repr(object));
    case 'a':
        return tt_keep(w, PyObject_ASCII(object));
    default:
        return object;
    }
}

static PyObject *format_field(Walker *w, PyObject *node)
{
    Term t = tt_walk_expr(w, tt_field(w, node, FIELD_value));
    PyObject *object = tt_term_python(w, t);
    PyObject *spec = NULL;
    if (tt_is_field_set(w, node, FIELD_format_spec))
        spec = tt_walk_format(w, tt_field(w, node, FIELD_format_spec)).object;
    tt_at(w, node);
    if (!object)
        tt_fail_with_remedy(w, "print run-time values with tl.device_print(\"text\", value)",
                            "an f-string is made at compile time, but this is %s", tt_describe(w, t));
    object = converted(w, object, tt_int_attribute(w, node, FIELD_conversion));
    return tt_keep(w, PyObject_Format(object, spec));
}

Term tt_walk_format(Walker *w, PyObject *node)
{
    PyObject *parts = tt_field(w, node, FIELD_values);
    PyObject *text = tt_keep(w, PyUnicode_FromString(""));
    for (int i = 0; i < tt_list_size(w, parts); i++) {
        PyObject *part = tt_list_item(w, parts, i);
        PyObject *piece =
            tt_node_kind(w, part) == NODE_Constant ? tt_field(w, part, FIELD_value) : format_field(w, part);
        text = tt_keep(w, PyUnicode_Concat(text, piece));
        if (tt_is_too_large(w, text))
            tt_fail(w, "this string is too large");
    }
    return tt_python_term(w, text);
}
