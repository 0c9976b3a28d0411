/* Builtins that make tiles and scalars: indices, constants, conversions, concatenation. */
#include "frontend/builtins.h"

/* The grid has three axes at most, and those that the launch left out have extent 1. */
static Term grid_index(Walker *w, Term *args, Opcode opcode)
{
    int64_t axis = tt_arg_int(w, args, 0);
    if (axis < 0 || axis > 2)
        tt_fail_with_remedy(w, "a grid has three axes: divide one of them by // and %",
                            "%s axis must be 0, 1, or 2 but got %lld", tt_call_name(w), (long long)axis);
    Attr *attr = tt_attr_int(w->module, ATTR_axis, axis, NULL);
    const Type *type = tt_scalar_type(w->module, TT_I32);
    return tt_value_term(tt_build(&w->builder, opcode, NULL, 0, type, attr), &tt_int32);
}

Term tt_builtin_program_id(Walker *w, Term *args) { return grid_index(w, args, OP_program_id); }

Term tt_builtin_num_programs(Walker *w, Term *args) { return grid_index(w, args, OP_num_programs); }

/* nanoseconds() */
Term tt_builtin_nanoseconds(Walker *w, Term *args)
{
    (void)args;
    const Type *type = tt_scalar_type(w->module, TT_I64);
    return tt_value_term(tt_build(&w->builder, OP_clock, NULL, 0, type, NULL), &tt_int64);
}

/* The option that the kernel was launched with; what the program made of it is in the IR, and cannot be shared with
 * other numbers of warps. */
Term tt_builtin_num_warps(Walker *w, Term *args)
{
    (void)args;
    if (w->options && PyDict_SetItemString(w->options, "reads_num_warps", Py_True))
        tt_python_error(w);
    PyObject *option = w->options ? PyDict_GetItemString(w->options, "num_warps") : NULL;
    return tt_int_term(w, option ? PyLong_AsLongLong(option) : 1);
}

/* current_target(), is_cuda(), cuda_capability_geq(major, minor): Python answers, given the target's name. */
Term tt_builtin_target(Walker *w, Term *args)
{
    PyObject *module = tt_keep(w, PyImport_ImportModule("triton.language.target_info"));
    PyObject *target = w->options ? PyDict_GetItemString(w->options, "target") : NULL;
    int64_t version[2] = {0};
    for (int i = 0; i < w->call->parameter_count; i++)
        version[i] = tt_arg_int(w, args, i);
    return tt_new_python_term(w, PyObject_CallMethod(module, "_answer", "sOLL", w->call->name,
                                                     target ? target : Py_None, (long long)version[0],
                                                     (long long)version[1]));
}

/* arange(0, n) with a run-time n is the most common mistake; its remedy is a mask. */
static int64_t arange_bound(Walker *w, Term *args, int index)
{
    int64_t bound;
    if (tt_is_value(args[index]) && !tt_term_int(w, args[index], &bound))
        tt_fail_with_remedy(w, "make it a tl.constexpr parameter, and mask what is too much",
                            "`%s` of tl.arange must be known at compile time, not %s",
                            tt_parameter_name(w, index), tt_describe(w, args[index]));
    bound = tt_arg_int(w, args, index);
    if (bound < INT32_MIN || bound > INT32_MAX)
        tt_fail_with_remedy(
            w, "a tile is one program's part of the work: launch more programs, of smaller tiles",
            "`%s` of tl.arange does not fit into int32: %lld", tt_parameter_name(w, index), (long long)bound);
    return bound;
}

Term tt_builtin_arange(Walker *w, Term *args)
{
    int64_t start = arange_bound(w, args, 0), end = arange_bound(w, args, 1);
    if (end <= start)
        tt_fail_with_remedy(
            w, "give the start first, then an end that is greater",
            "tl.arange(%lld, %lld) is empty: its end argument must be greater than the start argument",
            (long long)start, (long long)end);
    Shape shape = {1, {end - start}};
    tt_check_shape(w, "tl.arange", &shape);
    return tt_value_term(tt_build_range(&w->builder, start, end), &tt_int32);
}

Term tt_builtin_full(Walker *w, Term *args)
{
    enum { SHAPE, VALUE, DTYPE };
    Shape shape;
    shape.rank = tt_arg_ints(w, args, SHAPE, shape.extents);
    tt_check_shape(w, "tl.full", &shape);
    const Dtype *dtype = tt_arg_dtype(w, args, DTYPE);
    if (tt_is_tile_term(args[VALUE]))
        tt_fail_with_remedy(w, "take tl.broadcast_to(x, shape) to repeat a tile",
                            "tl.full repeats a scalar, not %s", tt_describe(w, args[VALUE]));
    if (!dtype && !tt_is_value(args[VALUE]))
        tt_arg_error(w, args, DTYPE, "a dtype, such as tl.float32");
    Term scalar = dtype ? tt_cast_exactly(w, args[VALUE], dtype) : args[VALUE];
    return tt_broadcast_to(w, "tl.full", scalar, &shape);
}

/* Only a narrowing of floats rounds in a way one can choose; where nothing is converted, nothing rounds. */
static Rounding rounding_argument(Walker *w, Term *args, int index, const Dtype *from, const Dtype *to)
{
    const char *name = tt_arg_string(w, args, index);
    if (!name)
        return ROUND_NEAREST_EVEN;
    bool to_zero = !strcmp(name, "rtz");
    if (!to_zero && strcmp(name, "rtne"))
        tt_arg_error(w, args, index, "\"rtne\", \"rtz\" or None");
    if (from == to)
        return ROUND_NEAREST_EVEN;
    if (!tt_dtype_is_float(from) || !tt_dtype_is_float(to) || tt_dtype_width(to) >= tt_dtype_width(from))
        tt_fail(w, "fp_downcast_rounding is for a float that becomes a narrower one, not for %s to %s",
                from->name, to->name);
    return to_zero ? ROUND_TO_ZERO : ROUND_NEAREST_EVEN;
}

/* cast(input, dtype, fp_downcast_rounding, bitcast) */
Term tt_builtin_cast(Walker *w, Term *args)
{
    enum { INPUT, DTYPE, ROUNDING, BITCAST };
    const Dtype *dtype = tt_arg_dtype(w, args, DTYPE);
    if (!dtype)
        tt_arg_error(w, args, DTYPE, "a dtype, such as tl.float32");
    bool bitcast = tt_arg_bool(w, args, BITCAST);
    if (tt_is_number(args[INPUT]) && !bitcast && tt_is_none(args[ROUNDING]))
        return tt_cast(w, args[INPUT], dtype, ROUND_NEAREST_EVEN);
    Term input = tt_arg_value(w, args, INPUT);
    Rounding rounding = rounding_argument(w, args, ROUNDING, input.dtype, dtype);
    return bitcast ? tt_bitcast(w, input, dtype) : tt_cast(w, input, dtype, rounding);
}

Term tt_builtin_to_tensor(Walker *w, Term *args) { return tt_arg_value(w, args, 0); }

/* cat(input, other, can_reorder, dim) */
Term tt_builtin_cat(Walker *w, Term *args)
{
    enum { INPUT, OTHER, CAN_REORDER, DIM };
    Term a = tt_arg_value(w, args, INPUT), b = tt_arg_value(w, args, OTHER);
    Shape x = tt_shape_of(a), y = tt_shape_of(b);
    if (!x.rank || x.rank != y.rank)
        tt_fail(w, "tl.cat takes two tiles of the same number of dimensions, not %s and %s",
                tt_describe(w, a), tt_describe(w, b));
    if (a.dtype != b.dtype)
        tt_fail_with_remedy(w, "convert one of them with .to(...)",
                            "tl.cat takes two tiles of one element type, not %s and %s", tt_describe(w, a),
                            tt_describe(w, b));
    int axis = tt_check_axis(w, "tl.cat", tt_arg_int(w, args, DIM), x.rank);
    for (int i = 0; i < x.rank; i++)
        if (i != axis && x.extents[i] != y.extents[i])
            tt_fail(w, "tl.cat along dimension %d takes tiles whose other extents are equal, not %s and %s",
                    axis, tt_describe(w, a), tt_describe(w, b));
    x.extents[axis] += y.extents[axis];
    tt_check_shape(w, "tl.cat", &x);
    const Type *type = tt_tile_type(w->module, a.value->type->element, x.extents, x.rank);
    Attr *attr = tt_attr_int(w->module, ATTR_axis, axis, NULL);
    return tt_value_term(tt_build(&w->builder, OP_cat, (Value *[]){a.value, b.value}, 2, type, attr),
                         a.dtype);
}
