/* Bounds of integers from the operations that make them: enough to see that a constant mask is all true. */
#include "analysis/analysis.h"

enum { DEEPEST = 6 };

static bool fits(int64_t value, int bits)
{
    return bits == 64 || (value >= -(1ll << (bits - 1)) && value < 1ll << (bits - 1));
}

/* Bounds of a sum or difference, if it cannot wrap around. */
static bool sum_bounds(IntBounds a, IntBounds b, int bits, IntBounds *out)
{
    return !__builtin_add_overflow(a.lowest, b.lowest, &out->lowest) &&
           !__builtin_add_overflow(a.highest, b.highest, &out->highest) && fits(out->lowest, bits) &&
           fits(out->highest, bits);
}

static bool find(const Value *value, int depth, IntBounds *out)
{
    const Op *op = value->op;
    int bits = tt_bit_width(value->type);
    IntBounds a, b;
    if (!op || depth == DEEPEST || !tt_is_int(value->type) || bits == 1)
        return false;
    switch (op->opcode) {
    case OP_constant:
        out->lowest = out->highest = tt_int_attr(op, ATTR_value, 0);
        return true;
    case OP_range:
        *out = (IntBounds){tt_int_attr(op, ATTR_start, 0), tt_int_attr(op, ATTR_end, 0) - 1};
        return true;
    case OP_program_id:
        *out = (IntBounds){0, INT32_MAX - 1};
        return true;
    case OP_num_programs:
        *out = (IntBounds){1, INT32_MAX};
        return true;
    case OP_add:
        return find(tt_operand(op, 0), depth + 1, &a) && find(tt_operand(op, 1), depth + 1, &b) &&
               sum_bounds(a, b, bits, out);
    case OP_ext_s:
    case OP_hint:
        return find(tt_operand(op, 0), depth + 1, out);
    case OP_ext_u:
        return find(tt_operand(op, 0), depth + 1, out) && out->lowest >= 0;
    default:
        return tt_has(op, SHAPE) && op->operand_count == 1 && find(tt_operand(op, 0), depth + 1, out);
    }
}

bool tt_int_bounds(const Value *value, IntBounds *bounds) { return find(value, 0, bounds); }
