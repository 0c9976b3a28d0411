/* Builtins of debugging, and what the programmer promises the compiler. */
#include "frontend/builtins.h"

/* The condition's truth, when it is known while compiling. */
static bool compile_time_truth(Walker *w, Term t, bool *out)
{
    PyObject *object = tt_term_python(w, t);
    int truth = object ? PyObject_IsTrue(object) : 0;
    if (truth < 0)
        tt_python_error(w);
    *out = truth;
    return object != NULL;
}

/* A message: any compile-time object, as str() writes it. */
static const char *message_argument(Walker *w, Term *args, int index)
{
    PyObject *object = tt_term_python(w, args[index]);
    if (!object)
        tt_arg_error(w, args, index, "a compile-time string");
    PyObject *utf8 = tt_keep(w, PyUnicode_AsUTF8String(tt_keep(w, PyObject_Str(object))));
    return tt_arena_strdup(w->arena, PyBytes_AsString(utf8));
}

/* static_assert(cond, msg) */
Term tt_builtin_static_assert(Walker *w, Term *args)
{
    bool holds;
    if (!compile_time_truth(w, args[0], &holds))
        tt_fail_with_remedy(w, "check it at run time with tl.device_assert",
                            "tl.static_assert takes a condition known at compile time, not %s",
                            tt_describe(w, args[0]));
    if (!holds) {
        const char *message = message_argument(w, args, 1);
        tt_raise(&(Diagnostic){.kind = TT_FAILED_ASSERTION,
                               .loc = tt_here(w),
                               .message = tt_arena_format(w->arena, "static assertion failed%s%s",
                                                          *message ? ": " : "", message)});
    }
    return tt_none(w);
}

/* What static_print shows of a term: the object, or the type of a run-time value as the public compiler writes it, with
 * extents that are compile-time values. */
static PyObject *printable(Walker *w, Term t)
{
    PyObject *object = tt_term_python(w, t);
    if (object)
        return object;
    const int64_t *shape;
    int rank = t.kind == TERM_VALUE ? tt_term_shape(t, &shape) : 0;
    if (!rank)
        return tt_keep(w, PyUnicode_FromString(tt_describe(w, t)));
    Text text = {.arena = w->arena};
    tt_text_add(&text, "%s[", t.dtype->name);
    for (int i = 0; i < rank; i++)
        tt_text_add(&text, "%sconstexpr[%lld]", i ? ", " : "", (long long)shape[i]);
    tt_text_add(&text, "]");
    return tt_keep(w, PyUnicode_FromString(text.data));
}

/* static_print(*values, sep, end, file, flush): Python's print, now. */
Term tt_builtin_static_print(Walker *w, Term *args)
{
    static const char *const keywords[] = {"sep", "end", "file", "flush"};
    const Term *items;
    int given;
    if (!tt_term_items(w, args[0], &items, &given))
        tt_arg_error(w, args, 0, "values");
    PyObject *values = tt_keep(w, PyTuple_New(given)), *options = tt_keep(w, PyDict_New());
    for (int i = 0; i < given; i++)
        if (PyTuple_SetItem(values, i, Py_NewRef(printable(w, items[i]))))
            tt_python_error(w);
    for (int i = 0; i < (int)TT_COUNT(keywords); i++)
        if (PyDict_SetItemString(options, keywords[i], printable(w, args[1 + i])))
            tt_python_error(w);
    PyObject *builtins = tt_keep(w, PyImport_ImportModule("builtins"));
    PyObject *print = tt_keep(w, PyObject_GetAttrString(builtins, "print"));
    tt_keep(w, PyObject_Call(print, values, options));
    tt_note_effect(w);
    return tt_none(w);
}

/* " prefix: ", as it stands between the program's index and the value; without values the text is all
 * there is, and without a text ": ". */
static const char *print_prefix(Walker *w, Term *args, bool has_values)
{
    const char *given = tt_arg_string(w, args, 0);
    for (const char *c = given; !given || *c; c++)
        if (!given || *c < ' ' || *c > '~')
            tt_arg_error(w, args, 0, "a string of printable ASCII characters");
    size_t length = strlen(given);
    while (has_values && length && (given[length - 1] == ' ' || given[length - 1] == ':'))
        length--;
    const char *lead = *given == ' ' || (has_values && !length) ? "" : " ", *end = has_values ? ": " : "";
    return tt_arena_format(w->arena, "%s%.*s%s", lead, (int)length, given, end);
}

/* device_print(prefix, *args, hex) */
Term tt_builtin_device_print(Walker *w, Term *args)
{
    const Term *items;
    int given;
    if (!tt_term_items(w, args[1], &items, &given))
        tt_arg_error(w, args, 1, "tensors and numbers");
    if (given > 62)
        tt_fail(w, "tl.device_print takes up to 62 values, not %d", given);
    Value **values = TT_NEW_ARRAY(w->arena, Value *, given + 1);
    int64_t is_unsigned = 0;
    for (int i = 0; i < given; i++) {
        if (items[i].kind == TERM_PYTHON && PyUnicode_Check(items[i].object))
            tt_fail_with_remedy(
                w,
                "make a print for each text, or one text of all (an f-string, of what is known at compile "
                "time)",
                "a print in a kernel takes one text, the first argument, not %s among its values",
                tt_describe(w, items[i]));
        Term t = tt_term_value(w, items[i]);
        is_unsigned |= (int64_t)(t.dtype->is_unsigned || tt_dtype_is_bool(t.dtype)) << i;
        values[i] = tt_dtype_is_fp8(t.dtype) ? tt_widen_float(w, t).value : t.value;
    }
    Attr *attrs = tt_attr_string(w->module, ATTR_message, print_prefix(w, args, given > 0), NULL);
    if (tt_arg_bool(w, args, 2))
        attrs = tt_attr_int(w->module, ATTR_hex, 1, attrs);
    if (is_unsigned)
        attrs = tt_attr_int(w->module, ATTR_unsigned_mask, is_unsigned, attrs);
    tt_build_op(&w->builder, OP_print, values, given, NULL, 0, attrs);
    return tt_none(w);
}

/* device_assert(cond, msg, mask): only in kernels compiled for debugging, and not in a combine function, which is also
 * applied to what is not an element. */
Term tt_builtin_device_assert(Walker *w, Term *args)
{
    const char *message = message_argument(w, args, 1);
    if (!tt_is_value(args[0]) && !tt_is_number(args[0]))
        tt_arg_error(w, args, 0, "a tile or scalar of bools");
    if (!tt_debug(w) || tt_in_combine_function(w))
        return tt_none(w);
    Term operands[] = {tt_to_bool(w, args[0]), tt_is_none(args[2]) ? args[2] : tt_to_bool(w, args[2])};
    int given = tt_is_none(args[2]) ? 1 : 2;
    tt_broadcast_together(w, "tl.device_assert", operands, given);
    Value *values[] = {operands[0].value, operands[1].value};
    tt_build_op(&w->builder, OP_assert, values, given, NULL, 0,
                tt_attr_string(w->module, ATTR_message, message, NULL));
    return tt_none(w);
}

/* assume(cond) */
Term tt_builtin_assume(Walker *w, Term *args)
{
    bool holds;
    if (compile_time_truth(w, args[0], &holds)) {
        if (!holds)
            tt_fail(w, "tl.assume got a condition that is false while compiling");
        return tt_none(w);
    }
    if (!tt_is_value(args[0]) || tt_is_tile_term(args[0]))
        tt_arg_error(w, args, 0, "a scalar condition");
    Value *truth = tt_to_bool(w, args[0]).value;
    tt_build_op(&w->builder, OP_assume, &truth, 1, NULL, 0, NULL);
    return tt_none(w);
}

/* multiple_of(input, values), max_contiguous, max_constancy */
Term tt_builtin_hint(Walker *w, Term *args)
{
    Term input = tt_arg_value(w, args, 0);
    if (tt_dtype_is_float(input.dtype))
        tt_fail(w, "%s is about integers and pointers, not %s", tt_call_name(w), tt_describe(w, input));
    int64_t values[TT_MAX_RANK];
    int given = tt_arg_ints(w, args, 1, values), rank = TT_MAX(tt_shape_of(input).rank, 1);
    if (given != rank)
        tt_fail_with_remedy(w, "give one number for each dimension", "%s got %d number%s for %s",
                            tt_call_name(w), given, given == 1 ? "" : "s", tt_describe(w, input));
    for (int i = 0; i < given; i++)
        if (values[i] < 1)
            tt_fail(w, "%s takes numbers of at least 1, not %lld", tt_call_name(w), (long long)values[i]);
    AttrKey key = !strcmp(w->call->name, "multiple_of")      ? ATTR_divisibility
                  : !strcmp(w->call->name, "max_contiguous") ? ATTR_contiguity
                                                             : ATTR_constancy;
    Attr *attr = tt_attr_ints(w->module, key, values, given, NULL);
    return tt_value_term(tt_build(&w->builder, OP_hint, &input.value, 1, input.value->type, attr),
                         input.dtype);
}

/* Is the number computed from what the kernel loads? */
static bool is_loaded(const Value *value, int depth)
{
    const Op *op = value->op;
    for (int i = 0; op && depth && op->opcode != OP_load && i < op->operand_count; i++)
        if (is_loaded(tt_operand(op, i), depth - 1))
            return true;
    return op && depth && op->opcode == OP_load;
}

static bool is_among(const Term *items, int count, const Value *value)
{
    for (int i = 0; i < count; i++)
        if (tt_is_value(items[i]) && items[i].value == value)
            return true;
    return false;
}

/* promised_multiples(values, promised, divisor): the tuple, with a hint about those items that are among the promised ones, and are
 * loaded. Of the others the launch knows what divides them, and there is no need to rest on a promise. */
Term tt_builtin_promised_multiples(Walker *w, Term *args)
{
    enum { DEEPEST = 16 };
    const Term *items, *promised;
    int64_t divisor;
    int count, promised_count;
    if (!tt_term_items(w, args[0], &items, &count) || !tt_term_items(w, args[1], &promised, &promised_count))
        tt_arg_error(w, args, 0, "a tuple");
    tt_arg_ints(w, args, 2, &divisor);
    Term *hinted = TT_NEW_ARRAY(w->arena, Term, count);
    for (int i = 0; i < count; i++) {
        hinted[i] = items[i];
        if (!tt_is_value(items[i]) || tt_is_tile_term(items[i]) ||
            !is_among(promised, promised_count, items[i].value) || !is_loaded(items[i].value, DEEPEST))
            continue;
        Value *value = items[i].value;
        Attr *attr = tt_attr_ints(w->module, ATTR_divisibility, &divisor, 1, NULL);
        hinted[i] =
            tt_value_term(tt_build(&w->builder, OP_hint, &value, 1, value->type, attr), items[i].dtype);
    }
    return tt_tuple_term(w, hinted, count);
}

/* condition(arg, disable_licm): the hint is for the loop whose condition this is. */
Term tt_builtin_condition(Walker *w, Term *args)
{
    Op *loop = w->builder.region->op;
    if (tt_arg_bool(w, args, 1) && loop && loop->opcode == OP_while)
        tt_set_attr(loop, tt_attr_int(w->module, ATTR_disable_licm, 1, NULL));
    return args[0];
}

Term tt_builtin_debug_barrier(Walker *w, Term *args)
{
    (void)args;
    tt_build_op(&w->builder, OP_barrier, NULL, 0, NULL, 0, NULL);
    return tt_none(w);
}
