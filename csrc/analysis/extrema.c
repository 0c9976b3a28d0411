/* What reductions combine by, and what is known of a float next to the largest of several: what was an element before,
 * less the maximum of its row, is never positive, which spares exponentials the care for large arguments. */
#include "analysis/analysis.h"

enum { NO_AXIS = -1, EVERY_AXIS = -2, DEEPEST = 8 };

Opcode tt_combining_opcode(const Op *op)
{
    const Region *region = op->regions[0];
    const Op *first = region->first;
    if (op->operand_count != 1 || !first || first->next != region->last || first->operand_count != 2 ||
        first->result_count != 1 || tt_operand(region->last, 0) != first->results[0])
        return TT_OPCODES;
    const Value *a = tt_operand(first, 0), *b = tt_operand(first, 1);
    bool in_order = a == region->args[0] && b == region->args[1];
    bool swapped = b == region->args[0] && a == region->args[1] && tt_has(first, COMMUTES);
    return in_order || swapped ? first->opcode : TT_OPCODES;
}

static bool is_maximum(Opcode opcode) { return opcode == OP_fmax || opcode == OP_fmax_nan; }

static bool is_exact(const Op *cast)
{
    TypeKind to = tt_element(cast->results[0]->type)->kind;
    return cast->opcode == OP_float_cast && (to == TT_F32 || to == TT_F64) &&
           tt_bit_width(tt_operand(cast, 0)->type) < tt_bit_width(cast->results[0]->type);
}

/* What has the same numbers at the same places; with `anywhere`, at any. */
static const Value *behind(const Value *value, bool anywhere)
{
    for (;;) {
        const Op *op = value->op;
        bool is_moved = op && (op->opcode == OP_reshape || op->opcode == OP_permute);
        if (!op || !(op->opcode == OP_convert_layout || is_exact(op) || (anywhere && is_moved)))
            return value;
        value = tt_operand(op, 0);
    }
}

static bool is_largest(const Op *reduce, const Value *x, int axis)
{
    const Value *from = tt_operand(reduce, 0);
    bool is_whole = from->type->rank == 1;
    bool is_along = axis == EVERY_AXIS ? is_whole : axis == tt_int_attr(reduce, ATTR_axis, 0);
    return is_along && is_maximum(tt_combining_opcode(reduce)) &&
           behind(from, axis == EVERY_AXIS) == behind(x, axis == EVERY_AXIS);
}

/* Is no element of `x` above that of `bound`, which has all dimensions of x, all but `axis`, or none? */
static bool is_bound(const Value *bound, const Value *x, int axis, int depth)
{
    bound = behind(bound, false);
    const Op *op = bound->op;
    if (axis == NO_AXIS && bound == behind(x, false))
        return true;
    if (!op || depth == DEEPEST)
        return false;
    if (is_maximum(op->opcode))
        return is_bound(tt_operand(op, 0), x, axis, depth + 1) ||
               is_bound(tt_operand(op, 1), x, axis, depth + 1);
    switch (op->opcode) {
    case OP_reduce:
        return is_largest(op, x, axis);
    case OP_broadcast:
        return is_bound(tt_operand(op, 0), x, axis, depth + 1);
    case OP_splat:
        return axis == NO_AXIS && is_bound(tt_operand(op, 0), x, EVERY_AXIS, depth + 1);
    case OP_expand_dims:
        return axis == NO_AXIS &&
               is_bound(tt_operand(op, 0), x, (int)tt_int_attr(op, ATTR_axis, 0), depth + 1);
    default:
        return false;
    }
}

bool tt_is_never_positive(const Value *value)
{
    const Op *op = tt_def(value, OP_fsub);
    return op && is_bound(tt_operand(op, 1), tt_operand(op, 0), NO_AXIS, 0);
}
