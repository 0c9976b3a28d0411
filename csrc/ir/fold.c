/* What operations reduce to without building anything but constants: operations on constants, rules of
 * algebra.def whose replacement already exists, and operations on shapes that change nothing. */
#include "ir/algebra.h"

/* ---- constants behind values --------------------------------------------------------------------------- */

static const Attr *constant_attr(const Value *value)
{
    const Op *splat = tt_def(value, OP_splat);
    const Op *op = tt_def(splat ? tt_operand(splat, 0) : value, OP_constant);
    return op ? tt_find_attr(op, ATTR_value) : NULL;
}

bool tt_is_constant(const Value *value) { return constant_attr(value) != NULL; }

bool tt_constant_int(const Value *value, int64_t *out)
{
    const Attr *attr = tt_is_int(value->type) ? constant_attr(value) : NULL;
    if (attr)
        *out = attr->i;
    return attr != NULL;
}

bool tt_constant_float(const Value *value, double *out)
{
    const Attr *attr = tt_is_float(value->type) ? constant_attr(value) : NULL;
    if (attr)
        *out = attr->f;
    return attr != NULL;
}

bool tt_is_zero(const Value *value)
{
    int64_t integer;
    double real;
    return (tt_constant_int(value, &integer) && !integer) || (tt_constant_float(value, &real) && !real);
}

static bool constant_scalar(const Value *value, Scalar *out)
{
    return tt_is_float(value->type) ? tt_constant_float(value, &out->f) : tt_constant_int(value, &out->i);
}

static Value *build_constant(Builder *b, const Type *type, Scalar scalar)
{
    return tt_is_float(type) ? tt_build_float(b, type, scalar.f) : tt_build_int(b, type, scalar.i);
}

static const Attr *find_attr(const Attr *attrs, AttrKey key)
{
    while (attrs && attrs->key != key)
        attrs = attrs->next;
    return attrs;
}

/* ---- operations on constants --------------------------------------------------------------------------- */

static Value *fold_elementwise(Builder *b, Opcode opcode, Value *const *operands, int count, const Type *type,
                               const Attr *attrs)
{
    Scalar scalars[3], result;
    if (count > 3)
        return NULL;
    for (int i = 0; i < count; i++)
        if (!constant_scalar(operands[i], &scalars[i]))
            return NULL;
    const Attr *rounding = find_attr(attrs, ATTR_rounding);
    const FloatFormat *format = tt_float_format(type);
    if (rounding && format && !strcmp(rounding->s, "rtz"))
        result.f = tt_float_decode(format, tt_float_encode(format, scalars[0].f, true));
    else if (!tt_eval_scalar(opcode, operands[count - 1]->type, type, scalars, &result))
        return NULL;
    return build_constant(b, type, result);
}

/* Moving equal elements about gives equal elements. */
static Value *fold_moved_constant(Builder *b, Value *const *operands, int count, const Type *type)
{
    Scalar first, other;
    if (!constant_scalar(operands[0], &first))
        return NULL;
    if (count > 1 && (!constant_scalar(operands[1], &other) || other.i != first.i))
        return NULL;
    return build_constant(b, type, first);
}

/* ---- operations that change nothing -------------------------------------------------------------------- */

static bool is_identity(const Attr *order)
{
    for (int i = 0; i < order->count; i++)
        if (order->ints[i] != i)
            return false;
    return true;
}

/* Is permuting by `inner` and then by `outer` no change? */
static bool are_inverse(const Attr *outer, const Attr *inner)
{
    for (int i = 0; i < outer->count; i++)
        if (inner->ints[outer->ints[i]] != i)
            return false;
    return true;
}

static Value *fold_permute(Value *x, const Attr *order)
{
    if (is_identity(order))
        return x;
    const Op *inner = tt_def(x, OP_permute);
    return inner && are_inverse(order, tt_find_attr(inner, ATTR_order)) ? tt_operand(inner, 0) : NULL;
}

/* Two shape operations of one kind that lead back to the type where they began, nothing having been lost. */
static Value *fold_there_and_back(Value *x, Opcode there, const Type *type)
{
    const Op *inner = tt_def(x, there);
    return inner && tt_operand(inner, 0)->type == type ? tt_operand(inner, 0) : NULL;
}

static Value *fold_shape(Opcode opcode, Value *const *operands, const Type *type, const Attr *attrs)
{
    Value *x = operands[0];
    switch (opcode) {
    case OP_broadcast:
        return x->type == type ? x : NULL;
    case OP_slice:
        /* Of the operand's extents, and inside it: backwards or not at all. */
        for (int i = 0; x->type == type && i < type->rank; i++)
            if (type->shape[i] > 1 && find_attr(attrs, ATTR_strides)->ints[i] < 0)
                return NULL;
        return x->type == type ? x : NULL;
    case OP_reshape:
        return x->type == type ? x : fold_there_and_back(x, OP_reshape, type);
    case OP_permute:
        return fold_permute(x, find_attr(attrs, ATTR_order));
    case OP_extract: {
        const Op *splat = tt_def(x, OP_splat);
        return splat && !tt_is_tile(type) ? tt_operand(splat, 0) : NULL;
    }
    default:
        return NULL;
    }
}

/* Widening a float is exact, so narrowing it again, however that rounds, gives it back; but infinity does not
 * come back to a format that saturates. */
static bool survives_widening(const Type *narrow, const Type *wide)
{
    const FloatFormat *format = tt_float_format(narrow);
    return tt_bit_width(narrow) < tt_bit_width(wide) && !(format->saturates && format->has_infinity);
}

static Value *fold_cast(Opcode opcode, Value *x, const Type *type)
{
    static const Opcode inverse[][2] = {
        {OP_trunc, OP_ext_s},           {OP_trunc, OP_ext_u},           {OP_bitcast, OP_bitcast},
        {OP_int_to_ptr, OP_ptr_to_int}, {OP_ptr_to_int, OP_int_to_ptr},
    };
    if (x->type == type)
        return x;
    for (unsigned i = 0; i < TT_COUNT(inverse); i++) {
        Value *before = inverse[i][0] == opcode ? fold_there_and_back(x, inverse[i][1], type) : NULL;
        if (before)
            return before;
    }
    Value *before = opcode == OP_float_cast ? fold_there_and_back(x, OP_float_cast, type) : NULL;
    return before && survives_widening(type, x->type) ? before : NULL;
}

/* A load that no element takes part in. Without `other` its value is unspecified, and targets give 0. */
static Value *fold_load(Builder *b, Value *const *operands, int count, const Type *type)
{
    int64_t mask;
    if (count < 2 || !tt_constant_int(operands[1], &mask) || mask)
        return NULL;
    if (count > 2)
        return operands[2];
    return tt_is_ptr(type) ? NULL : build_constant(b, type, (Scalar){0});
}

Value *tt_fold(Builder *b, Opcode opcode, Value *const *operands, int operand_count, const Type *type,
               Attr *attrs)
{
    const OpInfo *info = &tt_op_infos[opcode];
    Value *folded = NULL;
    int64_t number;
    if (!operand_count)
        return NULL;
    if (opcode == OP_load)
        return fold_load(b, operands, operand_count, type);
    if (info->traits & ELEMENTWISE)
        folded = fold_elementwise(b, opcode, operands, operand_count, type, attrs);
    else if (info->traits & SHAPE)
        folded = fold_moved_constant(b, operands, opcode == OP_extract ? 1 : operand_count, type);
    if (!folded)
        folded = tt_apply_rules(b, opcode, operands, operand_count, type, false);
    if (!folded && info->rule == CAST)
        folded = fold_cast(opcode, operands[0], type);
    if (!folded && info->traits & SHAPE)
        folded = fold_shape(opcode, operands, type, attrs);
    if (!folded && opcode == OP_addptr && tt_constant_int(operands[1], &number) && !number)
        folded = operands[0];
    if (!folded && opcode == OP_hint && (!attrs || tt_is_constant(operands[0])))
        folded = operands[0];
    return folded;
}
