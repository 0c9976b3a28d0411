/* Names: local variables, the closure, globals, Python's builtins; in that order, as Python does. */
#include "frontend/walker.h"
#include <stdlib.h>

/* ---- the scope ------------------------------------------------------------------------------------------------------ */

void tt_init_scope(Walker *w, Scope *scope)
{
    *scope = (Scope){.slots.arena = w->arena, .constexprs.arena = w->arena};
    for (int i = 0; i < FIRST_NAME_SLOT; i++)
        tt_push(w->arena, scope->names, NULL);
    for (int i = 0; i < FIRST_NAME_SLOT; i++)
        tt_push(w->arena, scope->now, (Binding){0});
    for (int i = SLOT_RETURNED; i <= SLOT_CONTINUED; i++)
        scope->now.data[i].term = tt_bool_term(w, false);
}

int tt_find_slot(Walker *w, PyObject *name)
{
    return (int)(intptr_t)tt_map_find_ptr(&w->state->frame->scope.slots, name) - 1;
}

int tt_slot(Walker *w, PyObject *name)
{
    Scope *scope = &w->state->frame->scope;
    void **slot = tt_map_slot_ptr(&scope->slots, name);
    if (!*slot) {
        tt_push(w->arena, scope->names, name);
        *slot = (void *)(intptr_t)scope->names.count;
    }
    return (int)(intptr_t)*slot - 1;
}

Binding *tt_binding(Walker *w, int slot)
{
    Bindings *now = &w->state->frame->scope.now;
    while (now->count <= slot)
        tt_push(w->arena, *now, (Binding){0});
    return &now->data[slot];
}

/* Items inside of items count too. A name is how a tuple gets into another one twice, and that one again. */
static int count_items(Walker *w, Term term, int depth, int most)
{
    enum { DEEPEST = 256 };
    if (term.kind != TERM_TUPLE)
        return 1;
    if (depth > DEEPEST)
        tt_fail(w, "tuples in tuples, more than %d deep, are too deep", DEEPEST);
    int count = 0;
    for (int i = 0; i < term.count && count <= most; i++)
        count += count_items(w, term.items[i], depth + 1, most - count);
    return TT_MAX(count, 1);
}

void tt_bind_slot(Walker *w, int slot, Term term)
{
    if (count_items(w, term, 1, MOST_TUPLE_ITEMS) > MOST_TUPLE_ITEMS)
        tt_fail(w, "a tuple of more than %d items, counting those of tuples in it, is too large",
                MOST_TUPLE_ITEMS);
    *tt_binding(w, slot) = (Binding){.term = term, .loc = tt_here(w)};
}

Bindings tt_copy_bindings(Walker *w)
{
    const Bindings *now = &w->state->frame->scope.now;
    Bindings copy = {.count = now->count, .capacity = now->count};
    copy.data = tt_arena_copy(w->arena, now->data, sizeof(Binding) * (size_t)now->count);
    return copy;
}

void tt_store_name(Walker *w, PyObject *name, Term term)
{
    if (term.kind == TERM_VALUE && !term.value->name)
        term.value->name = tt_intern(w->module, tt_utf8(w, name));
    tt_bind_slot(w, tt_slot(w, name), term);
}

/* ---- suggestions ---------------------------------------------------------------------------------------------------- */

const char *tt_closest(Walker *w, const char *name, PyObject *candidates)
{
    const char *best = NULL;
    int limit = tt_word_limit(name);
    PyObject *list = candidates ? PySequence_List(candidates) : NULL;
    for (Py_ssize_t i = 0; list && i < PyList_Size(list); i++) {
        PyObject *candidate = PyList_GetItem(list, i);
        if (PyUnicode_Check(candidate))
            tt_consider_word(name, tt_utf8(w, candidate), &limit, &best);
    }
    best = best ? tt_arena_strdup(w->arena, best) : NULL;
    Py_XDECREF(list);
    tt_look_away(w);
    return best;
}

static _Noreturn void undefined_name(Walker *w, PyObject *name)
{
    const Frame *frame = w->state->frame;
    const char *text = tt_utf8(w, name), *best = NULL;
    int limit = tt_word_limit(text);
    for (int i = FIRST_NAME_SLOT; i < frame->scope.names.count; i++)
        tt_consider_word(text, tt_utf8(w, frame->scope.names.data[i]), &limit, &best);
    const char *global = tt_closest(w, text, frame->info->globals);
    if (global)
        tt_consider_word(text, global, &limit, &best);
    const char *builtin = tt_closest(w, text, w->state->builtins);
    if (builtin)
        tt_consider_word(text, builtin, &limit, &best);
    const char *remedy = best ? tt_arena_format(w->arena, "did you mean `%s`?", best)
                              : "assign it, import it, or make it a parameter of the kernel";
    tt_fail_with_remedy(w, remedy, "name `%s` is not defined", text);
}

/* ---- names without one value ---------------------------------------------------------------------------------------- */

static void add_note(Diagnostic *diag, const Loc *loc, const char *message)
{
    if (loc)
        diag->notes[diag->note_count++] = (DiagNote){loc, message};
}

void tt_raise_undefined(Walker *w, const char *name, const Undefined *why)
{
    Diagnostic diag = {.kind = TT_USER_ERROR, .loc = tt_here(w)};
    const char *a = tt_describe(w, why->a), *b = tt_describe(w, why->b);
    int line = why->loc ? why->loc->line : 0;
    switch (why->kind) {
    case UNDEFINED_ONE_BRANCH:
        diag.message = tt_arena_format(w->arena,
                                       "`%s` may be undefined here: it is assigned on one side only of the "
                                       "`if` in line %d",
                                       name, line);
        diag.remedy = "assign it before the `if`, or on both sides";
        add_note(&diag, why->a_loc, "assigned here");
        break;
    case UNDEFINED_LOOP_ONLY:
        diag.message = tt_arena_format(w->arena,
                                       "`%s` may be undefined here: it is assigned only in the loop in line "
                                       "%d, which may not run at all",
                                       name, line);
        diag.remedy = "assign it before the loop as well";
        add_note(&diag, why->a_loc, "assigned here");
        break;
    case UNDEFINED_MISMATCH:
        diag.message = tt_arena_format(w->arena,
                                       "Mismatched type for %s: it is %s or %s here, depending on the `if` "
                                       "in line %d",
                                       name, a, b, line);
        diag.remedy =
            "make both sides of the `if` give it one type, with .to(...) for instance, or use two names";
        add_note(&diag, why->a_loc, tt_arena_format(w->arena, "%s here", a));
        add_note(&diag, why->b_loc, tt_arena_format(w->arena, "%s here", b));
        break;
    case UNDEFINED_LOOP_MISMATCH:
        diag.message = tt_arena_format(w->arena,
                                       "Mismatched type for %s: it is %s before the loop in line %d, "
                                       "and %s after an iteration",
                                       name, a, line, b);
        diag.remedy = "give it one type, with .to(...) for instance, or use two names";
        add_note(&diag, why->a_loc, tt_arena_format(w->arena, "%s here", a));
        add_note(&diag, why->b_loc, tt_arena_format(w->arena, "%s here", b));
        break;
    case UNDEFINED_DELETED:
        diag.message = tt_arena_format(w->arena, "`%s` was deleted", name);
        diag.remedy = "remove the `del`, or assign the name again";
        add_note(&diag, why->loc, "deleted here");
        break;
    }
    tt_raise(&diag);
}

void tt_note_effect(Walker *w) { w->state->had_effects = true; }

/* ---- closure and globals -------------------------------------------------------------------------------------------- */

static bool is_first_report(Walker *w, PyObject *space, PyObject *name)
{
    const PyObject *key[] = {space, name};
    void **slot = tt_map_slot(&w->state->reported, key, sizeof key);
    bool is_first = !*slot;
    *slot = (void *)1;
    return is_first;
}

void tt_report_name(Walker *w, PyObject *space, PyObject *name, PyObject *value)
{
    PyObject *list = w->state->used_names;
    if (!list || !is_first_report(w, space, name))
        return;
    PyObject *entry = tt_keep(w, PyTuple_Pack(3, space, name, value));
    if (PyList_Append(list, entry))
        tt_python_error(w);
}

/* A name of Python's own: the program might give it to something else. */
static void report_own_name(Walker *w, PyObject *globals, PyObject *name)
{
    PyObject *list = w->state->own_names;
    if (!list || !is_first_report(w, globals, name))
        return;
    PyObject *entry = tt_keep(w, PyTuple_Pack(2, globals, name));
    if (PyList_Append(list, entry))
        tt_python_error(w);
}

static bool says_constexpr(Walker *w, PyObject *annotation)
{
    if (PyUnicode_Check(annotation))
        return strstr(tt_utf8(w, annotation), "constexpr") != NULL;
    PyObject *kind = tt_attribute_or_null(w, annotation, FIELD___triton_kind__);
    return kind && PyUnicode_Check(kind) && !PyUnicode_CompareWithASCIIString(kind, "constexpr");
}

/* Is a global declared as `name: tl.constexpr = ...`? */
static bool is_annotated_constexpr(Walker *w, PyObject *globals, PyObject *name)
{
    PyObject *annotations = PyDict_GetItem(globals, w->state->fields[FIELD___annotations__]);
    if (!annotations) { /* Python 3.14 evaluates them when the module is asked */
        PyObject *module_name = PyDict_GetItem(globals, w->state->fields[FIELD___name__]);
        PyObject *module = module_name ? PyImport_GetModule(module_name) : NULL;
        annotations = module ? PyObject_GetAttr(module, w->state->fields[FIELD___annotations__]) : NULL;
        Py_XDECREF(module);
        if (annotations)
            tt_keep(w, annotations);
        tt_look_away(w);
    }
    PyObject *annotation =
        annotations && PyDict_Check(annotations) ? PyDict_GetItem(annotations, name) : NULL;
    return annotation && says_constexpr(w, annotation);
}

/* Objects that do not change, or whose change the cache of compiled kernels sees. */
static bool is_constant_object(Walker *w, PyObject *object)
{
    if (object == Py_None || object == Py_Ellipsis || PyUnicode_Check(object))
        return true;
    if (PyTuple_Check(object)) {
        for (Py_ssize_t i = 0; i < PyTuple_Size(object); i++) {
            PyObject *item = PyTuple_GetItem(object, i);
            if (PyTuple_Check(item) || !is_constant_object(w, item))
                return false;
        }
        return true;
    }
    if (tt_object_kind(w, object) != OBJECT_OTHER || PyModule_Check(object) || PyCallable_Check(object))
        return true;
    if (tt_find_jit(w, object))
        return true;
    const char *metatype =
        tt_utf8(w, tt_attribute(w, (PyObject *)Py_TYPE((PyObject *)Py_TYPE(object)), FIELD___name__));
    return !strcmp(metatype, "EnumType") || !strcmp(metatype, "EnumMeta");
}

/* `globals`: of a global variable; NULL for one of an enclosing function. */
static void check_outer_name(Walker *w, PyObject *name, PyObject *value, PyObject *globals)
{
    if (is_constant_object(w, value) || (globals && is_annotated_constexpr(w, globals, name)) ||
        tt_is_set("TRITON_ALLOW_NON_CONSTEXPR_GLOBALS"))
        return;
    const char *text = tt_utf8(w, name);
    bool is_data = PyLong_Check(value) || PyFloat_Check(value) || PyTuple_Check(value) ||
                   PyList_Check(value) || PyDict_Check(value);
    const char *remedy =
        !is_data  ? "pass it to the kernel as an argument"
        : globals ? tt_arena_format(w->arena,
                                    "declare it as `%s: tl.constexpr = ...`, or make it a tl.constexpr "
                                    "parameter of the kernel",
                                    text)
                  : tt_arena_format(w->arena,
                                    "write `%s = tl.constexpr(...)`, or make it a tl.constexpr parameter of "
                                    "the kernel",
                                    text);
    const char *type = tt_utf8(w, tt_attribute(w, (PyObject *)Py_TYPE(value), FIELD___name__));
    if (!globals)
        tt_fail_with_remedy(
            w, remedy, "%s is not defined in a kernel: outside of it, it is a plain %s, and no constexpr",
            text, type);
    tt_fail_with_remedy(
        w, remedy, "cannot access global variable `%s` from a kernel: it is a plain %s, and no constexpr",
        text, type);
}

static PyObject *closure_value(Walker *w, PyObject *name)
{
    const FunctionInfo *info = w->state->frame->info;
    Py_ssize_t count = info->closure_names ? PyTuple_Size(info->closure_names) : 0;
    for (Py_ssize_t i = 0; i < count; i++) {
        if (PyTuple_GetItem(info->closure_names, i) != name)
            continue;
        PyObject *cell = PyTuple_GetItem(info->closure_cells, i);
        PyObject *value = PyObject_GetAttr(cell, w->state->fields[FIELD_cell_contents]);
        if (!value) {
            tt_look_away(w);
            tt_fail_with_remedy(w, "assign it before the kernel is launched",
                                "the variable `%s` of the enclosing function has no value", tt_utf8(w, name));
        }
        tt_keep(w, value);
        check_outer_name(w, name, value, NULL);
        tt_report_name(w, cell, Py_None, value);
        return value;
    }
    return NULL;
}

bool tt_is_of_this_package(Walker *w, PyObject *object)
{
    enum { LENGTH = sizeof "triton" - 1 };
    PyObject *name = PyModule_Check(object) ? tt_attribute_or_null(w, object, FIELD___name__) : NULL;
    const char *text = name && PyUnicode_Check(name) ? tt_utf8(w, name) : "";
    return !strncmp(text, "triton", LENGTH) && (!text[LENGTH] || text[LENGTH] == '.');
}

static PyObject *global_value(Walker *w, PyObject *name)
{
    PyObject *globals = w->state->frame->info->globals;
    PyObject *value = PyDict_GetItemWithError(globals, name);
    if (!value) {
        if (PyErr_Occurred())
            tt_python_error(w);
        report_own_name(w, globals, name);
        return PyDict_GetItem(w->state->builtins, name);
    }
    check_outer_name(w, name, value, globals);
    if (!tt_is_of_this_package(w, value))
        tt_report_name(w, globals, name, value);
    return value;
}

Term tt_load_name(Walker *w, PyObject *node, PyObject *name)
{
    int slot = tt_find_slot(w, name);
    Binding *binding = slot >= 0 ? tt_binding(w, slot) : NULL;
    if (binding && (binding->term.kind != TERM_UNDEFINED || tt_take_out_of_loop(w, name, binding))) {
        for (LoopEntry *entry = binding->entry; entry; entry = entry->outer)
            entry->read = true;
        return binding->term;
    }
    tt_at(w, node);
    if (binding && binding->term.undefined)
        tt_raise_undefined(w, tt_utf8(w, name), binding->term.undefined);
    if (tt_map_find_ptr(&w->state->frame->info->locals, name))
        tt_fail_with_remedy(w, "assign it first, or use another name if the global of this name is meant",
                            "`%s` is not defined here: it is used before it is assigned", tt_utf8(w, name));
    PyObject *value = closure_value(w, name);
    if (!value)
        value = global_value(w, name);
    if (!value)
        undefined_name(w, name);
    return tt_python_term(w, value);
}
