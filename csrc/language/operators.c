/* Operators on typed values, and the checks of integer arithmetic in debug compilations. */
#include "language/language.h"

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

bool tt_operator_takes_floats(Operator op) { return rows[op].on_float != TT_OPCODES; }

/* ---- arithmetic and comparisons ------------------------------------------------------------------------------------- */

static Opcode opcode_for(Operator op, const Dtype *dtype)
{
    if (tt_dtype_is_float(dtype))
        return rows[op].on_float;
    return tt_dtype_is_unsigned(dtype) ? rows[op].on_unsigned : rows[op].on_signed;
}

/* fp8 is storage only: its arithmetic is that of fp32, rounded. */
Typed tt_typed_binary(Builder *b, Operator op, Typed x, Typed y)
{
    const Dtype *dtype = x.dtype;
    if (tt_dtype_is_fp8(dtype)) {
        x = tt_typed_widen_float(b, x);
        y = tt_typed_widen_float(b, y);
    }
    Value *value = tt_build2(b, opcode_for(op, x.dtype), x.value, y.value);
    if (tt_is_comparison(op))
        return (Typed){value, &tt_int1};
    return tt_typed_cast(b, (Typed){value, x.dtype}, dtype, ROUND_NEAREST_EVEN);
}

/* Of integers 0 - x, which wraps; of floats the sign bit, so that 0.0 becomes -0.0. */
Typed tt_typed_negate(Builder *b, Typed x)
{
    if (!tt_dtype_is_float(x.dtype)) {
        Value *zero = tt_build_int(b, x.value->type, 0);
        return (Typed){tt_build2(b, OP_sub, zero, x.value), x.dtype};
    }
    Typed wide = tt_dtype_is_fp8(x.dtype) ? tt_typed_widen_float(b, x) : x;
    wide.value = tt_build1(b, OP_fneg, wide.value);
    return tt_typed_cast(b, wide, x.dtype, ROUND_NEAREST_EVEN);
}

Typed tt_typed_invert(Builder *b, Typed x)
{
    Value *ones = tt_build_int(b, x.value->type, tt_dtype_is_bool(x.dtype) ? 1 : -1);
    return (Typed){tt_build2(b, OP_xor, x.value, ones), x.dtype};
}

Typed tt_typed_logical(Builder *b, Operator op, Typed x, Typed y)
{
    Opcode opcode = op == OPERATOR_LOGICAL_AND ? OP_and : OP_or;
    return (Typed){tt_build2(b, opcode, x.value, y.value), &tt_int1};
}

Typed tt_typed_not(Builder *b, Typed x) { return tt_typed_invert(b, tt_typed_truth(b, x)); }

Opcode tt_extremum_opcode(const Dtype *dtype, bool largest, bool nan_wins)
{
    if (tt_dtype_is_float(dtype))
        return nan_wins ? (largest ? OP_fmax_nan : OP_fmin_nan) : (largest ? OP_fmax : OP_fmin);
    if (tt_dtype_is_unsigned(dtype))
        return largest ? OP_max_u : OP_min_u;
    return largest ? OP_max_s : OP_min_s;
}

/* ---- pointers ------------------------------------------------------------------------------------------------------- */

static void broadcast_pair(Builder *b, Typed *x, Typed *y)
{
    Shape a = tt_shape_of_type(x->value->type), c = tt_shape_of_type(y->value->type), met;
    bool fits = tt_broadcast_shapes(&a, &c, &met);
    TT_ASSERT(fits);
    *x = tt_typed_broadcast(b, *x, &met);
    *y = tt_typed_broadcast(b, *y, &met);
}

/* An offset in elements, as the signed integer that addptr takes. */
static Typed signed_offset(Builder *b, Typed offset)
{
    bool widen = tt_dtype_is_unsigned(offset.dtype) && tt_dtype_width(offset.dtype) < 64;
    return widen ? tt_typed_cast(b, offset, &tt_int64, ROUND_NEAREST_EVEN) : offset;
}

/* Moving back is moving by the negated offset. */
Typed tt_typed_move_pointer(Builder *b, Operator op, Typed pointer, Typed offset)
{
    offset = signed_offset(b, offset);
    if (op == OPERATOR_SUB) {
        bool narrow = tt_dtype_width(offset.dtype) < 32;
        offset = tt_typed_cast(b, offset, narrow ? &tt_int32 : offset.dtype, ROUND_NEAREST_EVEN);
        Value *zero = tt_build_int(b, offset.value->type, 0);
        offset.value = tt_build2(b, OP_sub, zero, offset.value);
    }
    broadcast_pair(b, &pointer, &offset);
    return (Typed){tt_build_addptr(b, pointer.value, offset.value), pointer.dtype};
}

Typed tt_typed_compare_pointers(Builder *b, Operator op, Typed x, Typed y)
{
    x = tt_typed_cast(b, x, &tt_int64, ROUND_NEAREST_EVEN);
    y = tt_typed_cast(b, y, &tt_int64, ROUND_NEAREST_EVEN);
    broadcast_pair(b, &x, &y);
    return (Typed){tt_build2(b, rows[op].on_unsigned, x.value, y.value), &tt_int1};
}

/* ---- checks --------------------------------------------------------------------------------------------------------- */

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
    const char *name;
    const Dtype *dtype;
    Value *x, *y; /* i64 */
} Checked;

static void build_check(Builder *b, const Checked *c, Value *holds, const char *kind, const char *what)
{
    const char *message =
        tt_arena_format(b->module->arena, "%s %s in %s of {0} and {1}", c->dtype->name, what, c->name);
    Attr *attrs = tt_attr_string(b->module, ATTR_message, message, NULL);
    attrs = tt_attr_string(b->module, ATTR_kind, kind, attrs);
    tt_build_op(b, OP_assert, (Value *[]){holds, c->x, c->y}, 3, NULL, 0, attrs);
}

/* The least number by -1 has no quotient; its remainder is 0. */
static Value *has_quotient(Builder *b, const Checked *c)
{
    int64_t least = -1 - (int64_t)(~0ull >> (65 - tt_dtype_width(c->dtype)));
    Value *other = tt_build2(b, OP_ne, c->x, tt_build_int(b, c->x->type, least));
    return tt_build2(b, OP_or, other, tt_build2(b, OP_ne, c->y, tt_build_int(b, c->y->type, -1)));
}

static void check_division(Builder *b, const Checked *c)
{
    Value *zero = tt_build_int(b, c->y->type, 0);
    build_check(b, c, tt_build2(b, OP_ne, c->y, zero), "division", "division by zero");
    if (c->op == OPERATOR_FLOORDIV && !c->dtype->is_unsigned)
        build_check(b, c, has_quotient(b, c), "overflow", "overflow");
}

/* Sums, differences and products of unsigned integers wrap around by their nature. */
void tt_typed_check_arithmetic(Builder *b, Operator op, Typed x, Typed y, const char *name)
{
    bool divides = op == OPERATOR_FLOORDIV || op == OPERATOR_MOD, may_overflow = op <= OPERATOR_MUL;
    if (!tt_dtype_is_int(x.dtype) || tt_dtype_is_bool(x.dtype))
        return;
    Checked c = {.op = op, .name = name, .dtype = x.dtype};
    if (divides || (may_overflow && !x.dtype->is_unsigned)) {
        c.x = tt_typed_cast(b, x, &tt_int64, ROUND_NEAREST_EVEN).value;
        c.y = tt_typed_cast(b, y, &tt_int64, ROUND_NEAREST_EVEN).value;
    }
    if (divides)
        check_division(b, &c);
    else if (c.x)
        build_check(b, &c, fits(b, op, c.x, c.y, tt_dtype_width(c.dtype)), "overflow", "overflow");
}
