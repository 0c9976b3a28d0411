/* The combine region of a reduce or scan, applied to LLVM values; and what it makes of padding, which it must not see:
 * the neutral element of a known operation, or else a flag that there is no value. */
#include "gpu/simt.h"
#include <math.h>

/* ---- known operations --------------------------------------------------------------------------------------------------------------- */

static int64_t lowest_int(int bits) { return bits == 1 ? 1 : (int64_t)(~0ull << (bits - 1)); }

static LLVMValueRef neutral_of(Simt *s, Opcode opcode, const Type *type)
{
    LLVMTypeRef llvm = simt_type(s, type);
    int bits = tt_bit_width(type);
    switch (opcode) {
    case OP_add:
    case OP_or:
    case OP_xor:
    case OP_max_u:
        return LLVMConstNull(llvm);
    case OP_mul:
        return simt_int(llvm, 1);
    case OP_and:
    case OP_min_u:
        return LLVMConstAllOnes(llvm);
    case OP_max_s:
        return simt_int(llvm, lowest_int(bits));
    case OP_min_s:
        return simt_int(llvm, ~lowest_int(bits));
    case OP_fadd:
        return LLVMConstReal(llvm, -0.0);
    case OP_fmul:
        return LLVMConstReal(llvm, 1);
    case OP_fmin:
    case OP_fmax:
        return LLVMConstReal(llvm, NAN); /* which loses */
    case OP_fmin_nan:
        return LLVMConstReal(llvm, INFINITY);
    case OP_fmax_nan:
        return LLVMConstReal(llvm, -INFINITY);
    default:
        return NULL;
    }
}

Combine simt_combine_of(Simt *s, const Op *op)
{
    if (op->operand_count > TT_MAX_COMBINED)
        tt_unsupported(op->loc, "%s of more than %d tiles at once", tt_op_infos[op->opcode].name,
                       TT_MAX_COMBINED);
    Combine combine = {.op = op, .count = op->operand_count, .single = TT_OPCODES};
    if (op->region_count)
        combine.single = tt_combining_opcode(op);
    else
        combine.count = 1;
    if (combine.single != TT_OPCODES)
        combine.neutral = neutral_of(s, combine.single, tt_operand(op, 0)->type);
    return combine;
}

/* ---- combining: without a region, the first that is valid ---------------------------------------------------------------------------------------------------------------------- */

static void apply_region(Simt *s, const Combine *combine, const Partial *first, const Partial *second,
                         Partial *out)
{
    if (!combine->op->region_count) {
        *out = (Partial){.at = {first->at[0]}};
        return;
    }
    const Region *region = combine->op->regions[0];
    for (int i = 0; i < combine->count; i++) {
        simt_set_scalar(s, region->args[i], first->at[i]);
        simt_set_scalar(s, region->args[combine->count + i], second->at[i]);
    }
    simt_lower_region(s, region);
    for (int i = 0; i < combine->count; i++)
        out->at[i] = simt_scalar(s, tt_operand(region->last, i));
}

Partial simt_combine(Simt *s, const Combine *combine, Partial first, Partial second)
{
    Partial result = {0};
    apply_region(s, combine, &first, &second, &result);
    if (!first.valid && !second.valid)
        return result;
    for (int i = 0; i < combine->count; i++) {
        if (second.valid)
            result.at[i] = LLVMBuildSelect(s->b, second.valid, result.at[i], first.at[i], "");
        if (first.valid)
            result.at[i] = LLVMBuildSelect(s->b, first.valid, result.at[i], second.at[i], "");
    }
    if (first.valid && second.valid)
        result.valid = LLVMBuildOr(s->b, first.valid, second.valid, "");
    return result;
}

Partial simt_partial_of(Simt *s, const Combine *combine, Tile *const *tiles, int reg)
{
    const Value *operand = tt_operand(combine->op, 0);
    Partial partial = {0};
    for (int i = 0; i < combine->count; i++)
        partial.at[i] = tiles[i]->at[reg];
    int axis = (int)tt_int_attr(combine->op, ATTR_axis, 0);
    LLVMValueRef inside = simt_in_bounds_along(s, operand->type, operand->layout, axis, reg);
    if (inside && combine->neutral)
        partial.at[0] = LLVMBuildSelect(s->b, inside, partial.at[0], combine->neutral, "");
    else
        partial.valid = inside;
    return partial;
}

/* That of the lane whose number differs by `mask`, or of a lane that is computed. */
static Partial exchanged(Simt *s, const Combine *combine, Partial partial, int mask, LLVMValueRef lane)
{
    for (int i = 0; i <= combine->count; i++) {
        LLVMValueRef *part = i < combine->count ? &partial.at[i] : &partial.valid;
        if (*part)
            *part = lane ? simt_shuffle_index(s, *part, lane) : simt_shuffle_xor(s, *part, mask);
    }
    return partial;
}

Partial simt_shuffled(Simt *s, const Combine *combine, Partial partial, int mask)
{
    return exchanged(s, combine, partial, mask, NULL);
}

Partial simt_partial_from(Simt *s, const Combine *combine, Partial partial, LLVMValueRef lane)
{
    return exchanged(s, combine, partial, 0, lane);
}
