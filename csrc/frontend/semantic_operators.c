/* Operators of Python on tensors. */
#include "frontend/semantic.h"

/* The operation for each kind of element; TT_OPCODES where there is none. */
typedef struct OperatorRow {
    Opcode on_signed, on_unsigned, on_float;
} OperatorRow;

static const OperatorRow rows[] = {
    [OPERATOR_ADD] = {OP_add, OP_add, OP_fadd},
    [OPERATOR_SUB] = {OP_sub, OP_sub, OP_fsub},
    [OPERATOR_MUL] = {OP_mul, OP_mul, OP_fmul},
    [OPERATOR_DIV] = {TT_OPCODES, TT_OPCODES, OP_fdiv},
    [OPERATOR_FLOORDIV] = {OP_div_s, OP_div_u, TT_OPCODES},
    [OPERATOR_MOD] = {OP_rem_s, OP_rem_u, OP_frem},
    [OPERATOR_LSHIFT] = {OP_shl, OP_shl, TT_OPCODES},
    [OPERATOR_RSHIFT] = {OP_shr_s, OP_shr_u, TT_OPCODES},
    [OPERATOR_AND] = {OP_and, OP_and, TT_OPCODES},
    [OPERATOR_OR] = {OP_or, OP_or, TT_OPCODES},
    [OPERATOR_XOR] = {OP_xor, OP_xor, TT_OPCODES},
    [OPERATOR_EQ] = {OP_eq, OP_eq, OP_feq},
    [OPERATOR_NE] = {OP_ne, OP_ne, OP_fne},
    [OPERATOR_LT] = {OP_lt_s, OP_lt_u, OP_flt},
    [OPERATOR_LE] = {OP_le_s, OP_le_u, OP_fle},
    [OPERATOR_GT] = {OP_gt_s, OP_gt_u, OP_fgt},
    [OPERATOR_GE] = {OP_ge_s, OP_ge_u, OP_fge},
};

static bool is_comparison(Operator op) { return op >= OPERATOR_EQ && op <= OPERATOR_GE; }

static bool is_bitwise(Operator op) { return op >= OPERATOR_LSHIFT && op <= OPERATOR_XOR; }

static const char *quoted(Walker *w, Operator op)
{
    return tt_arena_format(w->arena, "`%s`", tt_operator_texts[op]);
}

static bool is_pointer(Term t) { return tt_is_value(t) && tt_dtype_is_pointer(t.dtype); }

static bool is_unsigned(Term t) { return t.dtype->is_unsigned || tt_dtype_is_bool(t.dtype); }

static void check_operand(Walker *w, Operator op, Term t)
{
    if (tt_is_value(t) || tt_is_number(t))
        return;
    if (t.kind == TERM_BLOCK_POINTER)
        tt_fail_with_remedy(w, "move a block pointer with tl.advance(pointer, offsets)",
                            "%s does not work on a block pointer", quoted(w, op));
    if (tt_is_none(t))
        tt_fail_with_remedy(w, "compare with None by `is` and `is not`; give the parameter a value otherwise",
                            "%s does not work on None", quoted(w, op));
    const char *remedy = tt_term_string(w, t)
                             ? "strings exist at compile time only: make both sides tl.constexpr, "
                               "or pass a number instead"
                             : NULL;
    tt_fail_with_remedy(w, remedy, "%s takes tensors and numbers, not %s", quoted(w, op), tt_describe(w, t));
}

/* ---- pointers ------------------------------------------------------------------------------------------ */

/* An offset in elements, as the signed integer that addptr takes. */
static Term offset_operand(Walker *w, Operator op, Term pointer, Term offset)
{
    offset = tt_term_value(w, offset);
    if (!tt_dtype_is_int(offset.dtype))
        tt_fail_with_remedy(
            w, "offsets of pointers are integers that count elements: convert with .to(tl.int32)",
            "%s cannot move %s by %s", quoted(w, op), tt_describe(w, pointer), tt_describe(w, offset));
    bool widen = is_unsigned(offset) && tt_dtype_width(offset.dtype) < 64;
    return widen ? tt_cast(w, offset, &tt_int64, ROUND_NEAREST_EVEN) : offset;
}

/* addptr counts in elements; moving back is moving by the negated offset. */
static Term move_pointer(Walker *w, Operator op, Term a, Term b)
{
    if (is_pointer(a) && is_pointer(b))
        tt_fail_with_remedy(w, "convert both with .to(tl.int64) for the distance in bytes",
                            "%s does not work on two pointers, %s and %s", quoted(w, op), tt_describe(w, a),
                            tt_describe(w, b));
    bool first = is_pointer(a);
    if ((first ? a : b).dtype->pointee == &tt_void)
        tt_fail_with_remedy(w, "convert it to a pointer to something, as in p.to(tl.pointer_type(tl.int8))",
                            "%s cannot move a pointer to void, whose elements have no size", quoted(w, op));
    if (!first && op == OPERATOR_SUB)
        tt_fail(w, "a pointer, %s, cannot be subtracted from %s", tt_describe(w, b), tt_describe(w, a));
    Term pointer = first ? a : b, offset = offset_operand(w, op, pointer, first ? b : a);
    if (op == OPERATOR_SUB) {
        Term wide = tt_cast(w, offset, tt_dtype_width(offset.dtype) < 32 ? &tt_int32 : offset.dtype,
                            ROUND_NEAREST_EVEN);
        Value *zero = tt_build_int(&w->builder, wide.value->type, 0);
        offset = tt_value_term(tt_build2(&w->builder, OP_sub, zero, wide.value), wide.dtype);
    }
    Term pair[] = {pointer, offset};
    tt_broadcast_together(w, quoted(w, op), pair, 2);
    return tt_value_term(tt_build_addptr(&w->builder, pair[0].value, pair[1].value), pointer.dtype);
}

/* Addresses are compared as unsigned numbers. */
static Term compare_pointers(Walker *w, Operator op, Term a, Term b)
{
    if (!is_pointer(a) || !is_pointer(b))
        tt_fail_with_remedy(w, "convert the pointer with .to(tl.int64) to compare its address",
                            "%s cannot compare %s with %s", quoted(w, op), tt_describe(w, a),
                            tt_describe(w, b));
    Term pair[] = {tt_cast(w, a, &tt_int64, ROUND_NEAREST_EVEN),
                   tt_cast(w, b, &tt_int64, ROUND_NEAREST_EVEN)};
    tt_broadcast_together(w, quoted(w, op), pair, 2);
    Value *value = tt_build2(&w->builder, rows[op].on_unsigned, pair[0].value, pair[1].value);
    return tt_value_term(value, &tt_int1);
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
                            "%s does not mix signed and unsigned integers: %s and %s", quoted(w, op),
                            tt_describe(w, a), tt_describe(w, b));
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
    if (rows[op].on_float == TT_OPCODES && tt_dtype_is_float(dtype))
        tt_fail_with_remedy(w,
                            op == OPERATOR_FLOORDIV ? "take tl.floor(x / y) for floats"
                                                    : "convert to an integer type with .to(...), and with "
                                                      "bitcast=True if the bits are meant",
                            "%s takes integers, not %s and %s", quoted(w, op), tt_describe(w, a),
                            tt_describe(w, b));
    return dtype;
}

static Term convert(Walker *w, Operator op, Term t, const Dtype *dtype)
{
    /* In bitwise operations a number may also be given by its bits: int32 with 0xFFFFFFFF. */
    if (is_bitwise(op) && tt_is_number(t) && tt_int_fits(t, tt_dtype_width(dtype), true))
        return tt_number_value(w, t, dtype);
    return tt_convert_operand(w, quoted(w, op), t, dtype);
}

static Opcode opcode_for(Operator op, const Dtype *dtype)
{
    if (tt_dtype_is_float(dtype))
        return rows[op].on_float;
    return dtype->is_unsigned || tt_dtype_is_bool(dtype) ? rows[op].on_unsigned : rows[op].on_signed;
}

bool tt_in_combine_function(const Walker *w)
{
    for (const Region *region = w->builder.region; region && region->op; region = region->op->parent)
        if (region->op->opcode == OP_reduce || region->op->opcode == OP_scan)
            return true;
    return false;
}

/* Whether the exact result of op on two i64 fits in `width` bits. */
static Value *fits(Builder *b, Operator op, Value *x, Value *y, int width)
{
    Value *result = tt_build2(b, rows[op].on_signed, x, y), *zero = tt_build_int(b, result->type, 0);
    if (width < 64) { /* computed exactly */
        Value *low = tt_build2(b, OP_ge_s, result, tt_build_int(b, result->type, -(1LL << (width - 1))));
        Value *high = tt_build2(b, OP_lt_s, result, tt_build_int(b, result->type, 1LL << (width - 1)));
        return tt_build2(b, OP_and, low, high);
    }
    if (op == OPERATOR_MUL) { /* the high half is nothing but copies of the sign */
        Value *sign = tt_build2(b, OP_shr_s, result, tt_build_int(b, result->type, 63));
        return tt_build2(b, OP_eq, tt_build2(b, OP_mulhi_s, x, y), sign);
    }
    /* The result has the wrong sign: another than both summands; than x, which has another than y. */
    Value *turned = tt_build2(b, OP_xor, x, result);
    Value *other = tt_build2(b, OP_xor, op == OPERATOR_ADD ? y : x, op == OPERATOR_ADD ? result : y);
    return tt_build2(b, OP_ge_s, tt_build2(b, OP_and, turned, other), zero);
}

/* The operands of an operation on integers, as wide as checks of it want them. */
typedef struct Checked {
    Operator op;
    const Dtype *dtype;
    Value *x, *y; /* i64 */
} Checked;

static void build_check(Walker *w, const Checked *c, Value *holds, const char *kind, const char *what)
{
    const char *message =
        tt_arena_format(w->arena, "%s %s in %s of {0} and {1}", c->dtype->name, what, quoted(w, c->op));
    Attr *attrs = tt_attr_string(w->module, ATTR_message, message, NULL);
    attrs = tt_attr_string(w->module, ATTR_kind, kind, attrs);
    tt_build_op(&w->builder, OP_assert, (Value *[]){holds, c->x, c->y}, 3, NULL, 0, attrs);
}

/* The least number by -1 has no quotient; its remainder is 0. */
static Value *has_quotient(Builder *b, const Checked *c)
{
    int64_t least = -1 - (int64_t)(~0ull >> (65 - tt_dtype_width(c->dtype)));
    Value *other = tt_build2(b, OP_ne, c->x, tt_build_int(b, c->x->type, least));
    return tt_build2(b, OP_or, other, tt_build2(b, OP_ne, c->y, tt_build_int(b, c->y->type, -1)));
}

static void check_division(Walker *w, const Checked *c)
{
    Builder *b = &w->builder;
    Value *zero = tt_build_int(b, c->y->type, 0);
    build_check(w, c, tt_build2(b, OP_ne, c->y, zero), "division", "division by zero");
    if (c->op == OPERATOR_FLOORDIV && !c->dtype->is_unsigned)
        build_check(w, c, has_quotient(b, c), "overflow", "overflow");
}

/* With the option `debug`, and unless `sanitize_overflow` is False, arithmetic of integers is checked. Sums, differences
 * and products of unsigned ones wrap around by their nature. */
static void check_arithmetic(Walker *w, Operator op, Term a, Term b)
{
    bool divides = op == OPERATOR_FLOORDIV || op == OPERATOR_MOD, may_overflow = op <= OPERATOR_MUL;
    if (!tt_dtype_is_int(a.dtype) || tt_dtype_is_bool(a.dtype) || !tt_checks_overflow(w) ||
        tt_in_combine_function(w))
        return;
    Checked c = {.op = op, .dtype = a.dtype};
    if (divides || (may_overflow && !a.dtype->is_unsigned)) {
        c.x = tt_cast(w, a, &tt_int64, ROUND_NEAREST_EVEN).value;
        c.y = tt_cast(w, b, &tt_int64, ROUND_NEAREST_EVEN).value;
    }
    if (divides)
        check_division(w, &c);
    else if (c.x)
        build_check(w, &c, fits(&w->builder, op, c.x, c.y, tt_dtype_width(c.dtype)), "overflow", "overflow");
}

/* The common road: promote, convert, broadcast, one operation. */
static Term compute(Walker *w, Operator op, Term a, Term b, bool may_wrap)
{
    const Dtype *dtype = operation_dtype(w, op, a, b);
    tt_common_shape(w, quoted(w, op), (Term[]){a, b},
                    2); /* so that a mismatch names the operands as they are */
    Term pair[] = {convert(w, op, a, dtype), convert(w, op, b, dtype)};
    tt_broadcast_together(w, quoted(w, op), pair, 2);
    if (!may_wrap)
        check_arithmetic(w, op, pair[0], pair[1]);
    /* fp8 is storage only: its arithmetic is that of fp32, rounded. */
    Term x = tt_dtype_is_fp8(dtype) ? tt_widen_float(w, pair[0]) : pair[0];
    Term y = tt_dtype_is_fp8(dtype) ? tt_widen_float(w, pair[1]) : pair[1];
    Value *value = tt_build2(&w->builder, opcode_for(op, x.dtype), x.value, y.value);
    if (is_comparison(op))
        return tt_value_term(value, &tt_int1);
    return tt_cast(w, tt_value_term(value, x.dtype), dtype, ROUND_NEAREST_EVEN);
}

static Term logical(Walker *w, Operator op, Term a, Term b)
{
    Term pair[] = {tt_to_bool(w, a), tt_to_bool(w, b)};
    tt_broadcast_together(w, quoted(w, op), pair, 2);
    Opcode opcode = op == OPERATOR_LOGICAL_AND ? OP_and : OP_or;
    return tt_value_term(tt_build2(&w->builder, opcode, pair[0].value, pair[1].value), &tt_int1);
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
        if (is_comparison(op))
            return compare_pointers(w, op, a, b);
        tt_fail_with_remedy(
            w, "a pointer can be moved by integers with + and -; load what it points to for more",
            "%s does not work on the pointer %s", quoted(w, op), tt_describe(w, is_pointer(a) ? a : b));
    }
    if (op == OPERATOR_POW)
        return tt_power(w, a, b);
    return compute(w, op, a, b, may_wrap);
}

Term tt_semantic_binary(Walker *w, Operator op, Term a, Term b) { return binary(w, op, a, b, false); }

Term tt_semantic_wrapping(Walker *w, Operator op, Term a, Term b) { return binary(w, op, a, b, true); }

/* ---- unary --------------------------------------------------------------------------------------------- */

/* Of integers 0 - x, which wraps; of floats the sign bit, so that 0.0 becomes -0.0. */
static Term negate(Walker *w, Term a)
{
    Builder *b = &w->builder;
    if (!tt_dtype_is_float(a.dtype)) {
        Value *zero = tt_build_int(b, a.value->type, 0);
        return tt_value_term(tt_build2(b, OP_sub, zero, a.value), a.dtype);
    }
    Term x = tt_dtype_is_fp8(a.dtype) ? tt_widen_float(w, a) : a;
    return tt_cast(w, tt_value_term(tt_build1(b, OP_fneg, x.value), x.dtype), a.dtype, ROUND_NEAREST_EVEN);
}

Term tt_semantic_unary(Walker *w, Operator op, Term a)
{
    check_operand(w, op, a);
    a = tt_term_value(w, a);
    Builder *b = &w->builder;
    if (op == OPERATOR_NOT) {
        Value *truth = tt_to_bool(w, a).value;
        return tt_value_term(tt_build2(b, OP_xor, truth, tt_build_int(b, truth->type, 1)), &tt_int1);
    }
    if (is_pointer(a))
        tt_fail(w, "%s does not work on the pointer %s", quoted(w, op), tt_describe(w, a));
    if (op == OPERATOR_POS)
        return a;
    if (op == OPERATOR_NEG)
        return negate(w, a);
    if (!tt_dtype_is_int(a.dtype))
        tt_fail_with_remedy(
            w, "convert to an integer type with .to(...), and with bitcast=True if the bits are meant",
            "`~` takes integers, not %s", tt_describe(w, a));
    Value *ones = tt_build_int(b, a.value->type, tt_dtype_is_bool(a.dtype) ? 1 : -1);
    return tt_value_term(tt_build2(b, OP_xor, a.value, ones), a.dtype);
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
