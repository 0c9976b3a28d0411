/* fp32 operands of tensor cores, which take 10 bits of the mantissa and cut off the other 13. So their magnitudes are
 * raised before, by half of what is cut (then they are rounded to nearest, ties away from zero) or by nearly all of it (away
 * from zero). What tf32 holds stays what it is: no carry leaves the 13 bits. */
#include "gpu/passes.h"

enum { CUT = 0x1fff /* bits */, DEPTH = 12 /* of what is looked at */ };

static bool is_narrow(const Type *type)
{
    switch (tt_element(type)->kind) {
    case TT_F16:
    case TT_BF16:
    case TT_I1:
    case TT_I8:
        return true;
    default:
        return tt_is_fp8(type);
    }
}

static bool is_round_number(double number)
{
    float narrow = (float)number;
    uint32_t bits;
    memcpy(&bits, &narrow, sizeof bits);
    return !(bits & CUT);
}

/* Bits of which those that are cut are not set. */
static bool is_masked(const Value *value)
{
    int64_t mask;
    return tt_def(value, OP_and) && tt_constant_int(tt_operand(value->op, 1), &mask) && !(mask & CUT);
}

static bool is_tf32(const Value *value, int depth)
{
    const Op *op = value->op;
    double number;
    if (tt_constant_float(value, &number))
        return is_round_number(number);
    if (!op || depth > DEPTH)
        return false;
    switch (op->opcode) {
    case OP_float_cast:
    case OP_int_to_float_s:
    case OP_int_to_float_u:
        return is_narrow(tt_operand(op, 0)->type);
    case OP_bitcast:
        return is_masked(tt_operand(op, 0));
    case OP_select:
        return is_tf32(tt_operand(op, 1), depth + 1) && is_tf32(tt_operand(op, 2), depth + 1);
    case OP_fneg:
    case OP_fabs:
        break;
    default:
        if (!tt_has(op, SHAPE) || !op->operand_count)
            return false;
    }
    for (int i = 0; i < op->operand_count; i++)
        if (!is_tf32(tt_operand(op, i), depth + 1))
            return false;
    return true;
}

bool tt_is_tf32(const Value *value) { return is_tf32(value, 0); }

double tt_raised_by(int64_t units) { return (double)units / (1 << TT_MANTISSA_BITS); }

/* Infinities stay that, being their own power of two, and so does what is no number. */
Value *tt_build_raised(Builder *b, Value *value, int64_t units)
{
    const Type *i32 = tt_scalar_type(b->module, TT_I32), *type = value->type;
    Value *bits = tt_build_cast(b, OP_bitcast, value, i32);
    Value *upper = tt_build2(b, OP_and, bits, tt_build_int(b, bits->type, TT_POWER_MASK));
    Value *power = tt_build_cast(b, OP_bitcast, upper, tt_element(type));
    return tt_build3(b, OP_fma, power, tt_build_float(b, type, tt_raised_by(units)), value);
}

int64_t tt_raised(const Op *product, int operand)
{
    const Attr *raised = tt_find_attr(product, ATTR_raised);
    return raised ? raised->ints[operand] : 0;
}
