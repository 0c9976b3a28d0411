/* What goes to products, and what they take. */
#include "analysis/analysis.h"

bool tt_is_factor(const Use *use)
{
    return use->user->opcode == OP_dot && tt_operand(use->user, 2) != use->value;
}

bool tt_goes_only_to(bool (*takes)(const Use *use), const Value *tile, bool reshaped)
{
    TT_FOR_USES(use, tile)
    {
        const Op *user = use->user;
        bool passes = user->opcode == OP_permute || (reshaped && user->opcode == OP_reshape);
        if (passes ? !tt_goes_only_to(takes, user->results[0], reshaped) : !takes(use))
            return false;
    }
    return tt_has_uses(tile);
}

const Value *tt_before_permutes(const Value *value)
{
    while (tt_def(value, OP_permute) || tt_def(value, OP_smem_permute))
        value = tt_operand(value->op, 0);
    return value;
}
