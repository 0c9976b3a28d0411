/* Builtins of elements: functions of floats, minima and maxima, selection, arithmetic by name, libm. */
#include "frontend/builtins.h"

/* A tensor of numbers; pointers are none. */
static Term number_argument(Walker *w, Term *args, int index)
{
    if (!tt_is_value(args[index]) && !tt_is_number(args[index]))
        tt_arg_error(w, args, index, "a tensor or a number");
    if (tt_is_value(args[index]) && tt_dtype_is_pointer(args[index].dtype))
        tt_fail_with_remedy(w, "load what it points to first", "%s takes numbers, not the pointer %s",
                            tt_call_name(w), tt_describe(w, args[index]));
    return args[index];
}

/* An int known at compile time is a float here: tl.exp(2). One of the kernel must be converted, for fp32
 * may not hold it. */
static Term float_argument(Walker *w, Term *args, int index)
{
    Term t = number_argument(w, args, index);
    if (tt_is_number(t) && !tt_dtype_is_float(tt_number_dtype(w, t)))
        t = tt_number_value(w, t, &tt_fp32);
    t = tt_term_value(w, t);
    if (!tt_dtype_is_float(t.dtype))
        tt_fail_with_remedy(w, "convert it with .to(tl.float32)", "%s takes floats, not %s", tt_call_name(w),
                            tt_describe(w, t));
    return t;
}

/* ---- functions of one float ---------------------------------------------------------------------------- */

/* Computes narrow floats in fp32 and rounds once. */
static Term narrow_again(Walker *w, Value *value, const Dtype *computed, const Dtype *wanted)
{
    return tt_cast(w, tt_value_term(value, computed), wanted, ROUND_NEAREST_EVEN);
}

Term tt_builtin_float_function(Walker *w, Term *args)
{
    Term x = float_argument(w, args, 0), wide = tt_widen_float(w, x);
    Value *value = tt_build1(&w->builder, tt_find_function_opcode(w->call->name), wide.value);
    return narrow_again(w, value, wide.dtype, x.dtype);
}

Term tt_builtin_abs(Walker *w, Term *args)
{
    Term x = tt_term_value(w, number_argument(w, args, 0));
    if (tt_dtype_is_fp8(x.dtype))
        return narrow_again(w, tt_build1(&w->builder, OP_fabs, tt_widen_float(w, x).value), &tt_fp32,
                            x.dtype);
    if (tt_dtype_is_float(x.dtype))
        return tt_value_term(tt_build1(&w->builder, OP_fabs, x.value), x.dtype);
    if (x.dtype->is_unsigned || tt_dtype_is_bool(x.dtype))
        return x;
    return tt_value_term(tt_build1(&w->builder, OP_abs_s, x.value), x.dtype);
}

/* ---- functions of several numbers ---------------------------------------------------------------------- */

static void number_arguments(Walker *w, Term *args, int count)
{
    for (int i = 0; i < count; i++)
        args[i] = number_argument(w, args, i);
    tt_unify(w, tt_call_name(w), args, count);
}

static void float_arguments(Walker *w, Term *args, int count)
{
    number_arguments(w, args, count);
    if (!tt_dtype_is_float(args[0].dtype))
        tt_fail_with_remedy(w, "convert it with .to(tl.float32)", "%s takes floats, not %s", tt_call_name(w),
                            tt_describe(w, args[0]));
}

/* Promotes by the rules of functions: the result of two halves is a half, unlike that of `/`. */
static Term divide(Walker *w, Term *args, bool exactly)
{
    float_arguments(w, args, 2);
    Term x = tt_widen_float(w, args[0]), y = tt_widen_float(w, args[1]);
    Value *value = tt_build2(&w->builder, exactly ? OP_fdiv_rn : OP_fdiv, x.value, y.value);
    return narrow_again(w, value, x.dtype, args[0].dtype);
}

/* fdiv(x, y, ieee_rounding, approx); the fast quotient of every target is as exact as approximate ones are to be */
Term tt_builtin_fdiv(Walker *w, Term *args)
{
    bool exactly = tt_arg_bool(w, args, 2), approximately = tt_arg_bool(w, args, 3);
    if (exactly && approximately)
        tt_fail(w, "tl.fdiv takes ieee_rounding or approx, not both");
    Term quotient = divide(w, args, exactly);
    if (approximately && quotient.dtype != &tt_fp32)
        tt_fail_with_remedy(w, "leave approx out", "tl.fdiv with approx takes float32, not %s",
                            tt_dtype_spelling(w, quotient.dtype));
    return quotient;
}

/* div_rn(x, y) */
Term tt_builtin_div_rn(Walker *w, Term *args) { return divide(w, args, true); }

/* fma(x, y, z); of integers as well */
Term tt_builtin_fma(Walker *w, Term *args)
{
    number_arguments(w, args, 3);
    Builder *b = &w->builder;
    const Dtype *dtype = args[0].dtype;
    if (!tt_dtype_is_float(dtype))
        return tt_value_term(
            tt_build2(b, OP_add, tt_build2(b, OP_mul, args[0].value, args[1].value), args[2].value), dtype);
    for (int i = 0; i < 3 && tt_dtype_is_fp8(dtype); i++)
        args[i] = tt_widen_float(w, args[i]);
    return narrow_again(w, tt_build3(b, OP_fma, args[0].value, args[1].value, args[2].value), args[0].dtype,
                        dtype);
}

/* umulhi(x, y) */
Term tt_builtin_umulhi(Walker *w, Term *args)
{
    number_arguments(w, args, 2);
    if (!tt_dtype_is_int(args[0].dtype) || tt_dtype_width(args[0].dtype) < 32)
        tt_fail(w, "tl.umulhi takes integers of 32 or 64 bits, not %s", tt_describe(w, args[0]));
    return tt_value_term(tt_build2(&w->builder, OP_mulhi_u, args[0].value, args[1].value), args[0].dtype);
}

/* libdevice's mulhi(x, y): of the sign that the type has */
Term tt_builtin_mulhi(Walker *w, Term *args)
{
    number_arguments(w, args, 2);
    if (!tt_dtype_is_int(args[0].dtype) || tt_dtype_width(args[0].dtype) < 32)
        tt_fail(w, "mulhi takes integers of 32 or 64 bits, not %s", tt_describe(w, args[0]));
    Opcode opcode = args[0].dtype->is_unsigned ? OP_mulhi_u : OP_mulhi_s;
    return tt_value_term(tt_build2(&w->builder, opcode, args[0].value, args[1].value), args[0].dtype);
}

/* libdevice's clz(x), popc(x) */
Term tt_builtin_bit_count(Walker *w, Term *args)
{
    Term x = tt_term_value(w, number_argument(w, args, 0));
    if (!tt_dtype_is_int(x.dtype) || tt_dtype_width(x.dtype) < 32)
        tt_fail(w, "%s takes integers of 32 or 64 bits, not %s", w->call->name, tt_describe(w, x));
    Opcode opcode = strcmp(w->call->name, "clz") ? OP_popcount : OP_clz;
    return narrow_again(w, tt_build1(&w->builder, opcode, x.value), x.dtype, &tt_int32);
}

/* add(x, y, sanitize_overflow), sub, mul */
Term tt_builtin_arithmetic(Walker *w, Term *args)
{
    Operator op = w->call->name[0] == 'a'   ? OPERATOR_ADD
                  : w->call->name[0] == 's' ? OPERATOR_SUB
                                            : OPERATOR_MUL;
    Term x = tt_term_value(w, args[0]);
    return tt_arg_bool(w, args, 2) ? tt_semantic_binary(w, op, x, args[1])
                                   : tt_semantic_wrapping(w, op, x, args[1]);
}

/* logical_and(self, other), logical_or */
Term tt_builtin_logical(Walker *w, Term *args)
{
    Operator op = strcmp(w->call->name, "logical_and") ? OPERATOR_LOGICAL_OR : OPERATOR_LOGICAL_AND;
    return tt_semantic_binary(w, op, args[0], args[1]);
}

/* ---- minimum and maximum ------------------------------------------------------------------------------- */

/* tl.PropagateNan.NONE or ALL, by name. */
static bool propagates_nan(Walker *w, Term *args, int index)
{
    PyObject *object = tt_term_python(w, args[index]);
    PyObject *name = object ? PyObject_GetAttrString(object, "name") : NULL;
    tt_look_away(w);
    bool known = name && PyUnicode_Check(tt_keep(w, name));
    bool all = known && !PyUnicode_CompareWithASCIIString(name, "ALL");
    if (!known || (!all && PyUnicode_CompareWithASCIIString(name, "NONE")))
        tt_arg_error(w, args, index, "tl.PropagateNan.NONE or tl.PropagateNan.ALL");
    return all;
}

static Value *extremum(Walker *w, bool largest, bool nan_wins, Term a, Term b)
{
    return tt_build2(&w->builder, tt_extremum_opcode(a.dtype, largest, nan_wins), a.value, b.value);
}

/* minimum(x, y, propagate_nan), maximum */
Term tt_builtin_extremum(Walker *w, Term *args)
{
    bool largest = !strcmp(w->call->name, "maximum"), nan_wins = propagates_nan(w, args, 2);
    number_arguments(w, args, 2);
    const Dtype *dtype = args[0].dtype;
    for (int i = 0; i < 2 && tt_dtype_is_fp8(dtype); i++)
        args[i] = tt_widen_float(w, args[i]);
    return narrow_again(w, extremum(w, largest, nan_wins, args[0], args[1]), args[0].dtype, dtype);
}

/* clamp(x, min, max, propagate_nan) */
Term tt_builtin_clamp(Walker *w, Term *args)
{
    bool nan_wins = propagates_nan(w, args, 3);
    number_arguments(w, args, 3);
    const Dtype *dtype = args[0].dtype;
    for (int i = 0; i < 3 && tt_dtype_is_fp8(dtype); i++)
        args[i] = tt_widen_float(w, args[i]);
    Term raised = tt_value_term(extremum(w, true, nan_wins, args[0], args[1]), args[0].dtype);
    return narrow_again(w, extremum(w, false, nan_wins, raised, args[2]), args[0].dtype, dtype);
}

/* where(condition, x, y) */
Term tt_builtin_where(Walker *w, Term *args)
{
    if (!tt_is_value(args[0]) && !tt_is_number(args[0]))
        tt_arg_error(w, args, 0, "a tile or a scalar of bools");
    if (tt_is_value(args[0]) && !tt_dtype_is_bool(args[0].dtype))
        tt_remark(w->module, tt_here(w), "tl.where takes a condition of bools, not %s: write condition != 0",
                  tt_describe(w, args[0]));
    Term picked[] = {tt_to_bool(w, args[0]), args[1], args[2]};
    tt_unify(w, "tl.where", picked + 1, 2);
    const Dtype *dtype = picked[1].dtype;
    tt_broadcast_together(w, "tl.where", picked, 3);
    Value *value = tt_build3(&w->builder, OP_select, picked[0].value, picked[1].value, picked[2].value);
    return tt_value_term(value, dtype);
}

/* ---- powers -------------------------------------------------------------------------------------------- */

/* A call of the target's library, element by element; operands have one shape. */
static Term extern_call(Walker *w, const char *symbol, Term *operands, int count, const Dtype *result)
{
    Value *values[4];
    for (int i = 0; i < count; i++)
        values[i] = operands[i].value;
    const Type *type = tt_with_element(w->module, values[0]->type, tt_dtype_ir(w, result));
    Attr *attr = tt_attr_string(w->module, ATTR_symbol, symbol, NULL);
    return tt_value_term(tt_build(&w->builder, OP_extern_call, values, count, type, attr), result);
}

/* x ** n for a compile-time n >= 0, by squaring. */
static Term integer_power(Walker *w, Term base, int64_t exponent)
{
    base = tt_term_value(w, base);
    Term result = tt_is_number(base) ? base : tt_cast(w, tt_int_term(w, 1), base.dtype, ROUND_NEAREST_EVEN);
    bool started = false;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result = started ? tt_semantic_binary(w, OPERATOR_MUL, result, base) : base;
        started |= exponent & 1;
        if (exponent > 1)
            base = tt_semantic_binary(w, OPERATOR_MUL, base, base);
    }
    Shape shape = tt_shape_of(base);
    return tt_broadcast_to(w, "`**`", result, &shape);
}

Term tt_power(Walker *w, Term base, Term exponent)
{
    int64_t constant;
    bool integral = !tt_is_number(exponent) || !PyFloat_Check(exponent.object);
    if (integral && tt_term_int(w, exponent, &constant) && constant >= 0 && constant <= 64)
        return integer_power(w, base, constant);
    Term pair[] = {base, exponent};
    tt_unify(w, "`**`", pair, 2);
    if (!tt_dtype_is_float(pair[0].dtype))
        tt_fail_with_remedy(w, "convert one side with .to(tl.float32), or take an exponent from 0 to 64",
                            "`**` of integers takes a compile-time exponent, not %s",
                            tt_describe(w, exponent));
    const Dtype *dtype = pair[0].dtype;
    Term wide[] = {tt_widen_float(w, pair[0]), tt_widen_float(w, pair[1])};
    return tt_cast(w, extern_call(w, "pow", wide, 2, wide[0].dtype), dtype, ROUND_NEAREST_EVEN);
}

/* ---- libm ---------------------------------------------------------------------------------------------- */

/* Functions of floats by their name in libm: acos(x), atan2(x, y), fma(x, y, z), ... */
Term tt_builtin_extern_floats(Walker *w, Term *args)
{
    int count = w->call->parameter_count;
    float_arguments(w, args, count);
    const Dtype *dtype = args[0].dtype;
    for (int i = 0; i < count; i++)
        args[i] = tt_widen_float(w, args[i]);
    return tt_cast(w, extern_call(w, w->call->name, args, count, args[0].dtype), dtype, ROUND_NEAREST_EVEN);
}

static Term int32_argument(Walker *w, Term *args, int index)
{
    Term t = tt_term_value(w, number_argument(w, args, index));
    if (!tt_dtype_is_int(t.dtype))
        tt_fail(w, "`%s` of %s is an integer, not %s", tt_parameter_name(w, index), tt_call_name(w),
                tt_describe(w, t));
    return tt_cast(w, t, &tt_int32, ROUND_NEAREST_EVEN);
}

/* ldexp(x, n): a float and an int32 */
Term tt_builtin_extern_float_int(Walker *w, Term *args)
{
    Term x = float_argument(w, args, 0);
    Term pair[] = {tt_widen_float(w, x), int32_argument(w, args, 1)};
    tt_broadcast_together(w, tt_call_name(w), pair, 2);
    return tt_cast(w, extern_call(w, w->call->name, pair, 2, pair[0].dtype), x.dtype, ROUND_NEAREST_EVEN);
}

/* jn(n, x), yn(n, x): an int32 and a float */
Term tt_builtin_extern_int_float(Walker *w, Term *args)
{
    Term x = float_argument(w, args, 1);
    Term pair[] = {int32_argument(w, args, 0), tt_widen_float(w, x)};
    tt_broadcast_together(w, tt_call_name(w), pair, 2);
    return tt_cast(w, extern_call(w, w->call->name, pair, 2, pair[1].dtype), x.dtype, ROUND_NEAREST_EVEN);
}
