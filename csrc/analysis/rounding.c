/* Which numbers are rounded, with all that is computed of them, to so few bits that the last ones of fp32 do not matter. */
#include "analysis/analysis.h"

enum { MOST_VALUES = 256 /* that are looked at */, NARROW = 16 /* bits */ };

typedef struct Rounding {
    Map seen;
    int count;
} Rounding;

/* A product of many has the errors of all of them. */
static bool adds_or_chooses(Opcode combine)
{
    return combine == OP_fadd || combine == OP_fmax || combine == OP_fmin || combine == OP_fmax_nan ||
           combine == OP_fmin_nan;
}

/* Has the result about the relative error of the operand? What is subtracted may leave less, but then that of all operands. */
static bool keeps_error(const Op *op, int operand)
{
    switch (op->opcode) {
    case OP_fadd:
    case OP_fsub:
    case OP_fmul:
    case OP_fdiv:
    case OP_fneg:
    case OP_fabs:
    case OP_fma:
    case OP_fmax:
    case OP_fmin:
    case OP_fmax_nan:
    case OP_fmin_nan:
    case OP_sqrt:
    case OP_rsqrt:
    case OP_float_cast:
    case OP_convert_layout:
    case OP_wgmma_wait:
        return true;
    case OP_select:
        return operand > 0;
    case OP_dot:
    case OP_wgmma:
        return operand == 2; /* the sums that it adds to */
    case OP_reduce:
        return adds_or_chooses(tt_combining_opcode(op));
    default:
        return tt_has(op, SHAPE);
    }
}

static bool is_rounded(const Value *value, Rounding *r);

static bool is_carried_rounded(const Op *control, int index, Rounding *r)
{
    if (control->opcode == OP_for) {
        const Region *body = control->regions[0];
        if (!is_rounded(body->args[body->arg_count - control->result_count + index], r))
            return false;
    }
    return (control->opcode == OP_for || control->opcode == OP_if) && is_rounded(control->results[index], r);
}

static bool is_use_rounded(const Use *use, Rounding *r)
{
    const Op *op = use->user;
    int operand = (int)(use - op->operands);
    if (op->opcode == OP_yield)
        return op->parent->op && is_carried_rounded(op->parent->op, operand, r);
    if (op->opcode == OP_for) {
        int carried = operand - (op->operand_count - op->result_count);
        return carried >= 0 && is_carried_rounded(op, carried, r);
    }
    if (op->opcode == OP_float_cast && tt_bit_width(op->results[0]->type) <= NARROW)
        return true;
    bool all = keeps_error(op, operand);
    for (int i = 0; all && i < op->result_count; i++)
        all = is_rounded(op->results[i], r);
    return all;
}

static bool is_rounded(const Value *value, Rounding *r)
{
    void **slot = tt_map_slot_ptr(&r->seen, value);
    if (*slot)
        return true; /* or it is not, and that is told elsewhere */
    *slot = (void *)value;
    if (++r->count > MOST_VALUES)
        return false;
    TT_FOR_USES(use, value)
    if (!is_use_rounded(use, r))
        return false;
    return true;
}

bool tt_goes_to_few_bits(const Value *value, Arena *scratch)
{
    Rounding r = {.seen = {.arena = scratch}};
    return is_rounded(value, &r);
}
