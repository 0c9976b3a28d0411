/* Reading the arguments of the builtin being called: what is needed, or an error that names the parameter. */
#include "frontend/walker.h"

const char *tt_parameter_name(const Walker *w, int index)
{
    const BuiltinCall *call = w->call;
    return call && index < call->parameter_count ? call->parameters[index] : "argument";
}

void tt_arg_error(Walker *w, const Term *args, int index, const char *expected)
{
    const char *remedy = tt_none_remedy(args[index]);
    if (tt_is_value(args[index]) && !strncmp(expected, "a compile-time", strlen("a compile-time")))
        remedy = "make it a tl.constexpr parameter of the kernel, or compute it from such";
    tt_fail_with_remedy(w, remedy, "`%s` of %s must be %s, not %s", tt_parameter_name(w, index),
                        w->call ? w->call->name : "this function", expected, tt_describe(w, args[index]));
}

int64_t tt_arg_int(Walker *w, const Term *args, int index)
{
    int64_t value;
    if (!tt_term_int(w, args[index], &value))
        tt_arg_error(w, args, index, "a compile-time int");
    return value;
}

int64_t tt_arg_int_or(Walker *w, const Term *args, int index, int64_t if_none)
{
    return tt_is_none(args[index]) ? if_none : tt_arg_int(w, args, index);
}

bool tt_arg_bool(Walker *w, const Term *args, int index)
{
    bool value;
    if (!tt_term_bool(w, args[index], &value))
        tt_arg_error(w, args, index, "a compile-time bool");
    return value;
}

const char *tt_arg_string(Walker *w, const Term *args, int index)
{
    const char *text = tt_is_none(args[index]) ? NULL : tt_term_string(w, args[index]);
    if (!text && !tt_is_none(args[index]))
        tt_arg_error(w, args, index, "a compile-time string");
    return text;
}

/* Dtypes of torch and NumPy have names of their own here. */
static _Noreturn void not_a_dtype(Walker *w, const Term *args, int index)
{
    PyObject *object = tt_term_python(w, args[index]);
    if (object) {
        PyObject *module = tt_keep(w, PyImport_ImportModule("triton.language.elements"));
        PyObject *pair = tt_keep(w, PyObject_CallMethod(module, "_of_other_libraries", "O", object));
        if (pair != Py_None)
            tt_fail_with_remedy(
                w, tt_arena_format(w->arena, "write %s", tt_utf8(w, PyTuple_GetItem(pair, 1))),
                "`%s` of %s must be a dtype of the language, not %s", tt_parameter_name(w, index),
                w->call ? w->call->name : "this function", tt_utf8(w, PyTuple_GetItem(pair, 0)));
    }
    tt_arg_error(w, args, index, "a dtype such as tl.float32");
}

const Dtype *tt_arg_dtype(Walker *w, const Term *args, int index)
{
    if (tt_is_none(args[index]))
        return NULL;
    Term t = args[index];
    if (t.kind == TERM_PYTHON &&
        tt_object_kind(w, t.object) == OBJECT_BLOCK_TYPE) /* of a tile: its elements' */
        t = tt_python_term(w, tt_attribute(w, t.object, FIELD_element_ty));
    const Dtype *dtype = tt_term_dtype(w, t);
    const char *name = dtype ? NULL : tt_term_string(w, args[index]);
    if (name)
        tt_fail_with_remedy(w, tt_arena_format(w->arena, "write tl.%s, without the quotes", name),
                            "`%s` of %s must be a dtype, not a string", tt_parameter_name(w, index),
                            w->call ? w->call->name : "this function");
    if (!dtype)
        not_a_dtype(w, args, index);
    return dtype;
}

int tt_arg_ints(Walker *w, const Term *args, int index, int64_t *out)
{
    const Term *items = &args[index];
    int count = 1;
    if (args[index].kind != TERM_VALUE && !tt_is_number(args[index]) &&
        !tt_term_items(w, args[index], &items, &count))
        tt_arg_error(w, args, index, "a compile-time int or a tuple of such");
    if (count > TT_MAX_RANK)
        tt_fail(w, "`%s` of %s has %d items; at most %d dimensions are possible", tt_parameter_name(w, index),
                w->call->name, count, TT_MAX_RANK);
    for (int i = 0; i < count; i++)
        if (!tt_term_int(w, items[i], &out[i]))
            tt_fail_with_remedy(w, "make it a tl.constexpr parameter of the kernel, or compute it from such",
                                "item %d of `%s` of %s must be a compile-time int, not %s", i,
                                tt_parameter_name(w, index), w->call->name, tt_describe(w, items[i]));
    return count;
}

Term tt_arg_value(Walker *w, const Term *args, int index)
{
    if (!tt_is_value(args[index]) && !tt_is_number(args[index]))
        tt_arg_error(w, args, index, "a tile or a number");
    return tt_term_value(w, args[index]);
}
