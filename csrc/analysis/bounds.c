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

/* Of all integers with so many bits. */
static IntBounds natural_bounds(int bits)
{
    int64_t half = 1ll << (bits - 1);
    return (IntBounds){-half, half - 1};
}

static bool find(const Value *value, int depth, IntBounds *out);

/* Shifted to the right by a constant; zeros come in from the left if not `is_signed`. */
static bool shifted_bounds(const Op *op, int depth, bool is_signed, IntBounds *out)
{
    int bits = tt_bit_width(op->results[0]->type);
    int64_t distance;
    if (!tt_constant_int(tt_operand(op, 1), &distance) || distance <= 0 || distance >= bits || bits == 64)
        return false;
    bool known = find(tt_operand(op, 0), depth + 1, out);
    if (!known)
        *out = natural_bounds(bits);
    if (!is_signed && out->lowest < 0)
        *out = (IntBounds){0, (1ll << bits) - 1};
    out->lowest >>= distance;
    out->highest >>= distance;
    return true;
}

/* Of elements that are each one of these operands'. */
static bool union_bounds(const Op *op, int first, int depth, IntBounds *out)
{
    IntBounds other;
    if (!find(tt_operand(op, first), depth + 1, out) || !find(tt_operand(op, first + 1), depth + 1, &other))
        return false;
    out->lowest = TT_MIN(out->lowest, other.lowest);
    out->highest = TT_MAX(out->highest, other.highest);
    return true;
}

/* The index of a loop that counts upwards lies between its bounds. */
static bool index_bounds(const Value *index, int depth, IntBounds *out)
{
    const Op *loop = index->region ? index->region->op : NULL;
    IntBounds lower, upper;
    int64_t step;
    if (!loop || loop->opcode != OP_for || index != index->region->args[0] ||
        !tt_constant_int(tt_operand(loop, 2), &step) || step <= 0 ||
        !find(tt_operand(loop, 0), depth + 1, &lower) || !find(tt_operand(loop, 1), depth + 1, &upper) ||
        lower.lowest >= upper.highest)
        return false;
    *out = (IntBounds){lower.lowest, upper.highest - 1};
    if (lower.lowest == lower.highest)
        out->highest -= (int64_t)(((uint64_t)out->highest - (uint64_t)out->lowest) % (uint64_t)step);
    return true;
}

static bool find(const Value *value, int depth, IntBounds *out)
{
    const Op *op = value->op;
    int bits = tt_bit_width(value->type);
    IntBounds a, b;
    if (depth == DEEPEST || !tt_is_int(value->type) || bits == 1)
        return false;
    if (!op)
        return index_bounds(value, depth, out);
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
    case OP_sub:
        if (!find(tt_operand(op, 0), depth + 1, &a) || !find(tt_operand(op, 1), depth + 1, &b) ||
            b.lowest == INT64_MIN || b.highest == INT64_MIN)
            return false;
        return sum_bounds(a, (IntBounds){-b.highest, -b.lowest}, bits, out);
    case OP_hint:
        return find(tt_operand(op, 0), depth + 1, out);
    case OP_ext_s:
        if (!find(tt_operand(op, 0), depth + 1, out))
            *out = natural_bounds(tt_bit_width(tt_operand(op, 0)->type));
        return true;
    case OP_ext_u:
        if (!find(tt_operand(op, 0), depth + 1, out) || out->lowest < 0)
            *out = (IntBounds){0, (1ll << tt_bit_width(tt_operand(op, 0)->type)) - 1};
        return true;
    case OP_and: {
        int64_t mask;
        bool bounded =
            (tt_constant_int(tt_operand(op, 1), &mask) || tt_constant_int(tt_operand(op, 0), &mask)) &&
            mask >= 0;
        *out = (IntBounds){0, mask};
        return bounded;
    }
    case OP_shr_s:
    case OP_shr_u:
        return shifted_bounds(op, depth, op->opcode == OP_shr_s, out);
    case OP_join:
    case OP_cat:
        return union_bounds(op, 0, depth, out);
    case OP_select:
        return union_bounds(op, 1, depth, out);
    default:
        return tt_has(op, SHAPE) && op->operand_count == 1 && find(tt_operand(op, 0), depth + 1, out);
    }
}

bool tt_int_bounds(const Value *value, IntBounds *bounds) { return find(value, 0, bounds); }
