/* Operators of Python on tensors. */
#include "frontend/semantic.h"

static const char *quoted(Walker *w, Operator op)
{
    return tt_arena_format(w->arena, "`%s`", tt_operator_texts[op]);
}

static bool is_pointer(Term t) { return tt_is_value(t) && tt_dtype_is_pointer(t.dtype); }

static void check_operand(Walker *w, Operator op, Term t)
{
    if (tt_is_value(t) || tt_is_number(t))
        return;
    if (t.kind == TERM_BLOCK_POINTER)
        tt_fail_with_remedy(w, "move a block pointer with tl.advance(pointer, offsets)",
                            "%s does not work on a block pointer", quoted(w, op));
    if (tt_is_none(t))
        tt_none_operand(w, quoted(w, op));
    const char *remedy = tt_term_string(w, t)
                             ? "strings exist at compile time only: make both sides tl.constexpr, "
                               "or pass a number instead"
                             : NULL;
    tt_fail_with_remedy(w, remedy, "%s takes tensors and numbers, not %s", quoted(w, op), tt_describe(w, t));
}

/* ---- pointers ------------------------------------------------------------------------------------------ */

static void check_common_shape(Walker *w, Operator op, Term a, Term b)
{
    Shape shape = tt_common_shape(w, quoted(w, op), (Term[]){a, b}, 2);
    tt_check_shape(w, quoted(w, op), &shape);
}

static Term offset_operand(Walker *w, Operator op, Term pointer, Term offset)
{
    offset = tt_term_value(w, offset);
    if (!tt_dtype_is_int(offset.dtype))
        tt_fail_with_remedy(
            w, "offsets of pointers are integers that count elements: convert with .to(tl.int32)",
            "%s cannot move %s by %s", quoted(w, op), tt_describe(w, pointer), tt_describe(w, offset));
    return offset;
}

static Term move_pointer(Walker *w, Operator op, Term a, Term b)
{
    if (is_pointer(a) && is_pointer(b))
        tt_fail_with_remedy(w, "convert both with .to(tl.int64) for the distance in bytes",
                            "invalid operands of type %s and %s for %s, of which one may be a pointer",
                            tt_describe(w, a), tt_describe(w, b), quoted(w, op));
    bool first = is_pointer(a);
    if ((first ? a : b).dtype->pointee == &tt_void)
        tt_fail_with_remedy(w, "convert it to a pointer to something, as in p.to(tl.pointer_type(tl.int8))",
                            "%s cannot move a pointer to void, whose elements have no size", quoted(w, op));
    if (!first && op == OPERATOR_SUB)
        tt_fail(w, "a pointer, %s, cannot be subtracted from %s", tt_describe(w, b), tt_describe(w, a));
    Term pointer = first ? a : b, offset = offset_operand(w, op, pointer, first ? b : a);
    check_common_shape(w, op, pointer, offset);
    return tt_typed_term(tt_typed_move_pointer(&w->builder, op, tt_typed_of(pointer), tt_typed_of(offset)));
}

static Term compare_pointers(Walker *w, Operator op, Term a, Term b)
{
    if (!is_pointer(a) || !is_pointer(b))
        tt_fail_with_remedy(w, "convert the pointer with .to(tl.int64) to compare its address",
                            "%s cannot compare %s with %s", quoted(w, op), tt_describe(w, a),
                            tt_describe(w, b));
    check_common_shape(w, op, a, b);
    return tt_typed_term(tt_typed_compare_pointers(&w->builder, op, tt_typed_of(a), tt_typed_of(b)));
}

/* ---- numbers ------------------------------------------------------------------------------------------- */

/* Both signs would meet in the unsigned type, where -7 // 2 is 2147483644: nobody means that. Numbers have no
 * sign of their own, and a bool is 0 or 1 in any type. */
static void check_signs_agree(Walker *w, Operator op, Term a, Term b)
{
    if (!tt_is_value(a) || !tt_is_value(b) || !tt_dtype_is_int(a.dtype) || !tt_dtype_is_int(b.dtype))
        return;
    if (a.dtype->is_unsigned != b.dtype->is_unsigned && !tt_dtype_is_bool(a.dtype) &&
        !tt_dtype_is_bool(b.dtype))
        tt_fail_with_remedy(w, "convert one side with .to(...), so that both are signed or both unsigned",
                            "Cannot use %s on %s and %s because they have different signedness",
                            quoted(w, op), tt_describe(w, a), tt_describe(w, b));
}

/* A quotient of integers is fp32, and so is one of narrower floats. */
static const Dtype *division_dtype(const Dtype *dtype)
{
    return !tt_dtype_is_float(dtype) || tt_dtype_width(dtype) < 32 ? &tt_fp32 : dtype;
}

/* The type that operands are converted to, which for arithmetic is the result's. */
static const Dtype *operation_dtype(Walker *w, Operator op, Term a, Term b)
{
    if (op == OPERATOR_DIV || op == OPERATOR_FLOORDIV || op == OPERATOR_MOD)
        check_signs_agree(w, op, a, b);
    const Dtype *dtype = tt_promoted_dtype(w, quoted(w, op), a, b);
    if (op == OPERATOR_DIV || (op == OPERATOR_MOD && tt_dtype_is_float(dtype)))
        return division_dtype(dtype);
    if (!tt_operator_takes_floats(op) && tt_dtype_is_float(dtype))
        tt_fail_with_remedy(w,
                            op == OPERATOR_FLOORDIV ? "take tl.floor(x / y) for floats"
                                                    : "convert to an integer type with .to(...), and with "
                                                      "bitcast=True if the bits are meant",
                            "invalid operands of type %s and %s for %s, which takes integers",
                            tt_describe(w, a), tt_describe(w, b), quoted(w, op));
    return dtype;
}

static Term convert(Walker *w, Operator op, Term t, const Dtype *dtype)
{
    /* In bitwise operations a number may also be given by its bits: int32 with 0xFFFFFFFF. */
    if (tt_is_bitwise(op) && tt_is_number(t) && tt_int_fits(t, tt_dtype_width(dtype), true))
        return tt_number_value(w, t, dtype);
    return tt_convert_operand(w, quoted(w, op), t, dtype);
}

bool tt_in_combine_function(const Walker *w)
{
    for (const Region *region = w->builder.region; region && region->op; region = region->op->parent)
        if (region->op->opcode == OP_reduce || region->op->opcode == OP_scan)
            return true;
    return false;
}

/* With the option `debug`, and unless `sanitize_overflow` is False, arithmetic of integers is checked. */
static void check_arithmetic(Walker *w, Operator op, Term a, Term b)
{
    if (tt_checks_overflow(w) && !tt_in_combine_function(w))
        tt_typed_check_arithmetic(&w->builder, op, tt_typed_of(a), tt_typed_of(b), quoted(w, op));
}

/* The sign of what is shifted to the right decides, where a wider or unsigned count makes the result unsigned. */
static const Dtype *shifted_dtype(Operator op, Term a, const Dtype *dtype)
{
    bool keeps_sign = op == OPERATOR_RSHIFT && tt_is_value(a) && !tt_dtype_is_unsigned(a.dtype);
    return keeps_sign ? tt_dtype_signed(dtype) : dtype;
}

/* A number that is compared with integers which do not hold it is one of its own type: all int32 are below 1 << 32, and
 * uint32 with all bits set is -1. */
static Term compared(Walker *w, Operator op, Term t, Term other)
{
    bool equates = op == OPERATOR_EQ || op == OPERATOR_NE;
    if (!tt_is_comparison(op) || !tt_is_number(t) || !PyLong_Check(t.object) || !tt_is_value(other) ||
        !tt_dtype_is_int(other.dtype) || tt_dtype_is_bool(other.dtype) ||
        tt_int_fits(t, tt_dtype_width(other.dtype), other.dtype->is_unsigned))
        return t;
    bool is_negative = !tt_int_fits(t, 64, true), is_wide = is_negative && !tt_int_fits(t, 64, false);
    return is_wide || (is_negative && other.dtype->is_unsigned && !equates) ? t : tt_term_value(w, t);
}

/* The common road: promote, convert, broadcast, one operation. */
static Term compute(Walker *w, Operator op, Term a, Term b, bool may_wrap)
{
    a = compared(w, op, a, b);
    b = compared(w, op, b, a);
    const Dtype *dtype = operation_dtype(w, op, a, b);
    tt_common_shape(w, quoted(w, op), (Term[]){a, b},
                    2); /* so that a mismatch names the operands as they are */
    Term pair[] = {convert(w, op, a, dtype), convert(w, op, b, dtype)};
    tt_broadcast_together(w, quoted(w, op), pair, 2);
    if (!may_wrap)
        check_arithmetic(w, op, pair[0], pair[1]);
    pair[0].dtype = shifted_dtype(op, a, dtype);
    Term result = tt_typed_term(tt_typed_binary(&w->builder, op, tt_typed_of(pair[0]), tt_typed_of(pair[1])));
    if (tt_is_bitwise(op))
        result.dtype = dtype;
    return result;
}

static Term logical(Walker *w, Operator op, Term a, Term b)
{
    Term pair[] = {tt_to_bool(w, a), tt_to_bool(w, b)};
    tt_broadcast_together(w, quoted(w, op), pair, 2);
    return tt_typed_term(tt_typed_logical(&w->builder, op, tt_typed_of(pair[0]), tt_typed_of(pair[1])));
}

static Term binary(Walker *w, Operator op, Term a, Term b, bool may_wrap)
{
    check_operand(w, op, a);
    check_operand(w, op, b);
    if (op == OPERATOR_LOGICAL_AND || op == OPERATOR_LOGICAL_OR)
        return logical(w, op, a, b);
    if (op == OPERATOR_MATMUL)
        return tt_dot(w, quoted(w, op), a, b);
    if (is_pointer(a) || is_pointer(b)) {
        if (op == OPERATOR_ADD || op == OPERATOR_SUB)
            return move_pointer(w, op, a, b);
        if (tt_is_comparison(op))
            return compare_pointers(w, op, a, b);
        tt_fail_with_remedy(
            w, "a pointer can be moved by integers with + and -; load what it points to for more",
            "invalid operands of type %s for %s", tt_describe(w, is_pointer(a) ? a : b), quoted(w, op));
    }
    if (op == OPERATOR_POW)
        return tt_power(w, a, b);
    return compute(w, op, a, b, may_wrap);
}

Term tt_semantic_binary(Walker *w, Operator op, Term a, Term b) { return binary(w, op, a, b, false); }

Term tt_semantic_wrapping(Walker *w, Operator op, Term a, Term b) { return binary(w, op, a, b, true); }

/* ---- unary --------------------------------------------------------------------------------------------- */

Term tt_semantic_unary(Walker *w, Operator op, Term a)
{
    check_operand(w, op, a);
    a = tt_term_value(w, a);
    if (op == OPERATOR_NOT)
        return tt_typed_term(tt_typed_not(&w->builder, tt_typed_of(a)));
    if (is_pointer(a))
        tt_fail(w, "invalid operand of type %s for %s", tt_describe(w, a), quoted(w, op));
    if (op == OPERATOR_POS)
        return a;
    if (op == OPERATOR_NEG)
        return tt_typed_term(tt_typed_negate(&w->builder, tt_typed_of(a)));
    if (!tt_dtype_is_int(a.dtype))
        tt_fail_with_remedy(
            w, "convert to an integer type with .to(...), and with bitcast=True if the bits are meant",
            "invalid operand of type %s for `~`, which takes integers", tt_describe(w, a));
    return tt_typed_term(tt_typed_invert(&w->builder, tt_typed_of(a)));
}

/* A tile of one element passes for a scalar; any other is refused rather than guessed about. */
Value *tt_semantic_truth(Walker *w, Term t)
{
    if (tt_is_tile_term(t) && t.value->type->count != 1)
        tt_fail_with_remedy(
            w, "select with tl.where(condition, x, y), or reduce the condition to a scalar first",
            "a condition decides for the whole program and must be a scalar, not %s", tt_describe(w, t));
    if (!tt_is_value(t) && !tt_is_number(t))
        tt_fail(w, "a condition must be a scalar, not %s", tt_describe(w, t));
    Shape scalar = {0};
    Term truth = tt_to_bool(w, t);
    return (tt_is_tile_term(truth) ? tt_reshape(w, "a condition", truth, &scalar) : truth).value;
}
