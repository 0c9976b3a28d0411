/* What may be removed, merged or moved, asked of the traits of an operation and of all in its regions. */
#include "opt/pass.h"

static bool any_inside(const Op *op, bool (*question)(const Op *op))
{
    if (question(op))
        return true;
    for (int i = 0; i < op->region_count; i++)
        TT_FOR_OPS(inner, op->regions[i])
        {
            if (any_inside(inner, question))
                return true;
        }
    return false;
}

static bool is_volatile(const Op *op) { return tt_int_attr(op, ATTR_volatile, 0) != 0; }
static bool reads(const Op *op) { return tt_has(op, READS); }
static bool writes(const Op *op) { return tt_has(op, WRITES); }

bool tt_may_wait(const Op *op) { return tt_control(op) == WHILE && any_inside(op, reads); }

static bool has_effect(const Op *op) { return tt_has(op, HAS_EFFECT) || is_volatile(op) || tt_may_wait(op); }
static bool is_seen(const Op *op) { return writes(op) || has_effect(op); }
static bool is_impure(const Op *op) { return is_seen(op) || reads(op); }

bool tt_writes_memory(const Op *op) { return any_inside(op, writes); }
bool tt_has_effects(const Op *op) { return any_inside(op, has_effect); }
bool tt_is_pure(const Op *op) { return tt_has(op, PURE) && !any_inside(op, is_impure); }

bool tt_is_costly(const Op *op)
{
    int64_t divisor;
    bool by_constant =
        tt_has(op, COSTLY) && op->operand_count == 2 && tt_constant_int(tt_operand(op, 1), &divisor);
    return tt_has(op, COSTLY) && !(by_constant && divisor > 0 && tt_is_pow2(divisor));
}

bool tt_is_plain_load(const Op *op)
{
    return tt_has(op, READS) && !tt_has(op, WRITES | HAS_EFFECT) && !is_volatile(op);
}
