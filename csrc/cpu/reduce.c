/* Reductions and scans. Accumulators live in registers: along the lanes, several vectors of partial results that are
 * combined at the end; along an outer axis, one accumulator a lane. The combine region is evaluated on whole vectors. */
#include "cpu/lower.h"

/* ---- combine regions ---------------------------------------------------------------------------------------------------------- */

static LLVMValueRef bound_value(Nest *n, Value *value)
{
    ValueInfo *info = info_of(value);
    if (info->lanes)
        return info->lanes;
    LLVMBuilderRef before = n->e->b;
    at_level(n, 0);
    LLVMValueRef scalar = lower_scalar(n->l, value);
    n->e->b = before;
    return scalar;
}

static void emit_combine_ops(Nest *n, const Region *region);

/* Both branches are pure: they are evaluated, then selected from. */
static void emit_combine_if(Nest *n, const Op *op, int width)
{
    for (int i = 0; i < 2; i++)
        emit_combine_ops(n, op->regions[i]);
    LLVMValueRef condition = bound_value(n, tt_operand(op, 0));
    for (int i = 0; i < op->result_count; i++) {
        LLVMValueRef a = bound_value(n, tt_operand(tt_terminator(op->regions[0]), i));
        LLVMValueRef b = bound_value(n, tt_operand(tt_terminator(op->regions[1]), i));
        info_of(op->results[i])->lanes = emit_select(n->e, emit_splat(n->e, condition, width),
                                                     emit_splat(n->e, a, width), emit_splat(n->e, b, width));
    }
}

static void emit_combine_op(Nest *n, const Op *op)
{
    LLVMValueRef operands[8];
    int width = 0;
    TT_ASSERT(op->operand_count <= (int)TT_COUNT(operands));
    for (int i = 0; i < op->operand_count; i++) {
        operands[i] = bound_value(n, tt_operand(op, i));
        width = TT_MAX(width, width_of(operands[i]));
    }
    if (op->opcode == OP_if) {
        emit_combine_if(n, op, n->combine_width);
        return;
    }
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = emit_splat(n->e, operands[i], width);
    if (op->opcode == OP_constant)
        info_of(op->results[0])->lanes =
            const_scalar(n->e, op->results[0]->type, tt_find_attr(op, ATTR_value));
    else if (op->opcode == OP_hint)
        info_of(op->results[0])->lanes = operands[0];
    else if (tt_has(op, ELEMENTWISE))
        info_of(op->results[0])->lanes = emit_elementwise(n->e, op, operands);
    else
        tt_unsupported(op->loc, "the CPU cannot run '%s' in the combine function of a reduction or scan",
                       tt_op_infos[op->opcode].name);
}

static void emit_combine_ops(Nest *n, const Region *region)
{
    for (const Op *op = region->first; op; op = op->next)
        if (!tt_has(op, TERMINATOR))
            emit_combine_op(n, op);
}

/* A combine region on lanes: `args` are accumulators, then elements. */
static void emit_combine(Nest *n, const Op *op, const LLVMValueRef *args, LLVMValueRef *results)
{
    const Region *region = op->regions[0];
    n->combine_width = width_of(args[0]);
    for (int i = 0; i < region->arg_count; i++)
        info_of(region->args[i])->lanes = args[i];
    emit_combine_ops(n, region);
    const Op *yield = tt_terminator(region);
    for (int i = 0; i < yield->operand_count; i++)
        results[i] = emit_splat(n->e, bound_value(n, tt_operand(yield, i)), n->combine_width);
}

static void combine(Nest *n, const Op *op, const LLVMValueRef *a, const LLVMValueRef *b,
                    LLVMValueRef *results)
{
    int count = op->operand_count;
    LLVMValueRef args[2 * TT_MAX_RANK];
    if (2 * count > (int)TT_COUNT(args))
        tt_unsupported(op->loc, "the CPU reduces at most %d tiles at once", TT_MAX_RANK);
    memcpy(args, a, sizeof *a * (size_t)count);
    memcpy(args + count, b, sizeof *b * (size_t)count);
    emit_combine(n, op, args, results);
}

/* ---- neutral elements ---------------------------------------------------------------------------------------------------------- */

/* The neutral element of a single operation, as a SCALAR attribute of the type. A NaN loses in fmax and fmin. */
static bool neutral_element(Opcode opcode, const Type *type, Attr *out)
{
    int bits = tt_bit_width(type);
    int64_t lowest = (int64_t)(UINT64_MAX << (bits - 1));
    *out = (Attr){.key = ATTR_value};
    switch (opcode) {
    case OP_add:
    case OP_or:
    case OP_xor:
    case OP_max_u:
        return true;
    case OP_mul:
        out->i = 1;
        return true;
    case OP_and:
    case OP_min_u:
        out->i = -1;
        return true;
    case OP_max_s:
        out->i = lowest;
        return true;
    case OP_min_s:
        out->i = ~lowest;
        return true;
    case OP_fadd:
        out->f = -0.0;
        return true;
    case OP_fmul:
        out->f = 1;
        return true;
    case OP_fmax:
    case OP_fmin:
        out->f = __builtin_nan("");
        return true;
    case OP_fmax_nan:
    case OP_fmin_nan:
        out->f = opcode == OP_fmax_nan ? -__builtin_inf() : __builtin_inf();
        return tt_float_format(type) ? tt_float_format(type)->has_infinity : true;
    default:
        return false;
    }
}

/* The one operation that combines the accumulator with the element, if that is all the region does. */
static const Op *single_operation(const Op *op)
{
    const Region *region = op->regions[0];
    const Op *only = region->first;
    if (op->opcode != OP_reduce || op->operand_count != 1 || !only || only->next != region->last)
        return NULL;
    bool combines = only->operand_count == 2 && tt_operand(region->last, 0) == only->results[0] &&
                    tt_operand(only, 0) != tt_operand(only, 1) && tt_operand(only, 0)->region == region &&
                    tt_operand(only, 1)->region == region;
    return combines ? only : NULL;
}

bool has_identity(const Op *op)
{
    Attr neutral;
    const Op *only = single_operation(op);
    return only && neutral_element(only->opcode, only->results[0]->type, &neutral);
}

/* ---- steps ------------------------------------------------------------------------------------------------------------------------ */

void begin_reduce(Nest *n, const Op *op, LLVMValueRef *slots)
{
    Attr neutral;
    const Op *only = single_operation(op);
    const Type *type = tt_operand(op, 0)->type;
    if (only && neutral_element(only->opcode, only->results[0]->type, &neutral))
        slots[0] = emit_splat(n->e, const_scalar(n->e, type, &neutral), n->width);
}

void step_reduce(Nest *n, const Op *op, LLVMValueRef *slots)
{
    int count = op->operand_count;
    LLVMValueRef elements[TT_MAX_RANK], results[TT_MAX_RANK];
    if (count > TT_MAX_RANK)
        tt_unsupported(op->loc, "the CPU reduces at most %d tiles at once", TT_MAX_RANK);
    for (int i = 0; i < count; i++)
        elements[i] = eval_lanes(n, tt_operand(op, i), n->coords);
    at_level(n, n->level);
    if (n->first) {
        memcpy(slots, elements, sizeof *slots * (size_t)count);
        return;
    }
    combine(n, op, slots, elements, results);
    LLVMValueRef active = n->axis == n->lane_dim ? active_mask(n) : NULL;
    for (int i = 0; i < count; i++)
        slots[i] = active ? emit_select(n->e, active, results[i], slots[i]) : results[i];
}

/* Combines the first `lanes` lanes into scalars: the lanes beyond a power of two first, then halves. */
static void combine_lanes(Nest *n, const Op *op, LLVMValueRef *values, int lanes)
{
    int count = op->operand_count;
    LLVMValueRef low[TT_MAX_RANK], high[TT_MAX_RANK];
    while (lanes > 1) {
        int half = tt_is_pow2(lanes) ? lanes / 2 : lanes - (int)tt_next_pow2(lanes) / 2;
        int keep = lanes - half, width = half > 1 ? half : 0;
        for (int i = 0; i < count; i++) {
            low[i] = emit_part(n->e, values[i], 0, width);
            high[i] = emit_part(n->e, values[i], keep, width);
        }
        combine(n, op, low, high, low);
        for (int i = 0; i < count; i++) {
            if (keep == half) {
                values[i] = low[i];
                continue;
            }
            int total = width_of(values[i]), indices[64];
            LLVMValueRef padded = low[i];
            if (!width) {
                values[i] = LLVMBuildInsertElement(n->e->b, values[i], low[i], const_int(n->e->i32, 0), "");
                continue;
            }
            for (int j = 0; j < total; j++)
                indices[j] = j < half ? j : -1;
            padded = emit_shuffle(n->e, low[i], NULL, indices, total);
            for (int j = 0; j < total; j++)
                indices[j] = j < half ? j : total + j;
            values[i] = emit_shuffle(n->e, padded, values[i], indices, total);
        }
        lanes = keep;
    }
    for (int i = 0; i < count; i++)
        values[i] = emit_lane(n->e, values[i], 0);
}

static void write_results(Nest *n, const Op *op, LLVMValueRef *values, bool uniform)
{
    Coord coords[TT_MAX_RANK];
    for (int i = 0, j = 0; i < n->rank; i++)
        if (i != n->axis)
            coords[j++] = n->coords[i];
    for (int i = 0; i < op->result_count; i++) {
        ValueInfo *info = info_of(op->results[i]);
        if (n->rank == 1)
            info->scalar = values[i];
        else
            write_buffer(n, info->buffer, 0, coords, (Vec){values[i], n->level, uniform});
    }
}

void end_reduce(Nest *n, const Op *op, int slot)
{
    at_level(n, n->level);
    if (n->axis != n->lane_dim) {
        int64_t offset = n->lane_dim >= 0 ? n->coords[n->lane_dim].offset : 0;
        for (int copy = 0; copy < n->copies; copy++) {
            if (n->lane_dim >= 0)
                n->coords[n->lane_dim].offset = offset + (int64_t)copy * n->width;
            write_results(n, op, n->accumulators + copy * n->slots + slot, !n->width);
        }
        if (n->lane_dim >= 0)
            n->coords[n->lane_dim].offset = offset;
        return;
    }
    LLVMValueRef *values = n->accumulators + slot;
    for (int copy = 1; copy < n->copies; copy++)
        combine(n, op, values, n->accumulators + copy * n->slots + slot, values);
    if (n->width)
        combine_lanes(n, op, values, n->active);
    write_results(n, op, values, true);
}

/* ---- scans ------------------------------------------------------------------------------------------------------------------------- */

/* Within a vector, by doubling distances (Hillis and Steele, 1986); lanes out of the row stay out. */
static void scan_lanes(Nest *n, const Op *op, LLVMValueRef *values)
{
    int count = op->operand_count, indices[64];
    LLVMValueRef shifted[TT_MAX_RANK], combined[TT_MAX_RANK], mask[64];
    for (int distance = 1; distance < n->active; distance *= 2) {
        for (int i = 0; i < n->width; i++) {
            int from = n->reverse ? i + distance : i - distance;
            bool inside = from >= 0 && from < n->active;
            indices[i] = inside ? from : i;
            mask[i] = const_int(n->e->i1, inside);
        }
        for (int i = 0; i < count; i++)
            shifted[i] = emit_shuffle(n->e, values[i], NULL, indices, n->width);
        combine(n, op, shifted, values, combined);
        LLVMValueRef inside = LLVMConstVector(mask, (unsigned)n->width);
        for (int i = 0; i < count; i++)
            values[i] = emit_select(n->e, inside, combined[i], values[i]);
    }
}

void step_scan(Nest *n, const Op *op, LLVMValueRef *slots)
{
    int count = op->operand_count;
    bool along_lanes = n->width && n->axis == n->lane_dim;
    LLVMValueRef values[TT_MAX_RANK], carried[TT_MAX_RANK];
    if (count > TT_MAX_RANK)
        tt_unsupported(op->loc, "the CPU scans at most %d tiles at once", TT_MAX_RANK);
    for (int i = 0; i < count; i++)
        values[i] = eval_lanes(n, tt_operand(op, i), n->coords);
    at_level(n, n->level);
    if (along_lanes)
        scan_lanes(n, op, values);
    if (!n->first) {
        for (int i = 0; i < count; i++)
            carried[i] = along_lanes ? emit_splat(n->e, slots[i], n->width) : slots[i];
        combine(n, op, carried, values, values);
    }
    for (int i = 0; i < count; i++) {
        slots[i] = along_lanes ? emit_lane(n->e, values[i], n->reverse ? 0 : n->width - 1) : values[i];
        write_buffer(n, info_of(op->results[i])->buffer, 0, n->coords, (Vec){values[i], n->level, !n->width});
    }
}
