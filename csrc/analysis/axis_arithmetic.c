/* Axis analysis of integer and pointer arithmetic; axis_info.c explains the reasoning. */
#include "analysis/axis.h"
#include <stdlib.h>

/* ---- pieces -------------------------------------------------------------------------------------------- */

static int64_t common_constancy(AxisOperand a, AxisOperand b, int dim, int64_t extent)
{
    return tt_meet_groups(a.info->constancy[dim], b.info->constancy[dim], extent);
}

/* Groups in which `run` grows by one while `flat` stays. */
static int64_t run_over_flat(AxisOperand run, AxisOperand flat, int dim, int64_t extent)
{
    return tt_meet_groups(run.info->contiguity[dim], flat.info->constancy[dim], extent);
}

/* Groups in which `run` grows by one from a multiple of the group's size, while `flat` stays at another
 * multiple of it: inside them `run` does not cross a multiple of `flat`. A power of two. */
static int64_t blocks_of(AxisOperand run, AxisOperand flat, int dim, int64_t extent)
{
    int64_t group = run_over_flat(run, flat, dim, extent);
    int64_t divisor = tt_gcd(run.info->divisibility[dim], flat.info->divisibility[dim]);
    return group >= extent ? divisor : tt_gcd(group, divisor);
}

/* The group at whose multiples an element stands for the others: what divisibility has to be known of. */
static int64_t group_of(const AxisInfo *info, int dim)
{
    return info->contiguity[dim] > 1 ? info->contiguity[dim] : info->constancy[dim];
}

static int64_t common_divisor_at(AxisOperand a, AxisOperand b, int dim, int64_t group)
{
    return tt_gcd(tt_divisor_at(a, dim, group), tt_divisor_at(b, dim, group));
}

/* A constant of the shape of `like`, as an operand. */
static AxisOperand constant_operand(AxisInfo *storage, AxisOperand like, int64_t constant)
{
    *storage = tt_unknown_axes(like.type);
    for (int dim = 0; dim < storage->rank; dim++) {
        storage->constancy[dim] = tt_extent(like.type, dim);
        storage->divisibility[dim] = tt_divisor_of(constant);
    }
    storage->is_constant = true;
    storage->constant = constant;
    storage->sign = tt_sign_of(constant);
    return (AxisOperand){storage, like.type};
}

/* ---- one dimension of each family ---------------------------------------------------------------------- */

static void sum(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent)
{
    int64_t unit = tt_axis_unit(a.type);
    info->contiguity[dim] = TT_MAX(run_over_flat(a, b, dim, extent), run_over_flat(b, a, dim, extent));
    info->constancy[dim] = common_constancy(a, b, dim, extent);
    int64_t group = group_of(info, dim);
    int64_t offset = tt_multiply_divisors(tt_divisor_at(b, dim, group), unit);
    info->divisibility[dim] = tt_gcd(tt_divisor_at(a, dim, group), offset);
}

static void difference(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent)
{
    info->contiguity[dim] = run_over_flat(a, b, dim, extent);
    info->constancy[dim] = common_constancy(a, b, dim, extent);
    if (info->contiguity[dim] == 1) /* two runs in step differ by a constant */
        info->constancy[dim] = TT_MAX(
            info->constancy[dim], tt_meet_groups(a.info->contiguity[dim], b.info->contiguity[dim], extent));
    info->divisibility[dim] = common_divisor_at(a, b, dim, group_of(info, dim));
}

static void product(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent)
{
    info->constancy[dim] = common_constancy(a, b, dim, extent);
    int64_t group = info->constancy[dim];
    info->divisibility[dim] =
        tt_multiply_divisors(tt_divisor_at(a, dim, group), tt_divisor_at(b, dim, group));
    for (int swap = 0; swap < 2; swap++) {
        AxisOperand x = swap ? b : a, one = swap ? a : b;
        if (one.info->is_constant && one.info->constant == 1) {
            info->contiguity[dim] = x.info->contiguity[dim];
            info->divisibility[dim] = x.info->divisibility[dim];
        }
    }
}

/* `whole`: the quotient of blocks is constant in them (unsigned, rounding down, or dividends not
 * negative). */
static void quotient(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent, bool whole)
{
    info->constancy[dim] = common_constancy(a, b, dim, extent);
    if (whole)
        info->constancy[dim] = TT_MAX(info->constancy[dim], blocks_of(a, b, dim, extent));
    int64_t divisor = b.info->is_constant ? b.info->constant : 0;
    int64_t dividend = tt_divisor_at(a, dim, TT_MIN(info->constancy[dim], extent));
    if (tt_is_pow2(divisor) && dividend % divisor == 0)
        info->divisibility[dim] = dividend / divisor;
}

static void remaining(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent, bool whole)
{
    info->constancy[dim] = common_constancy(a, b, dim, extent);
    if (whole)
        info->contiguity[dim] = TT_MIN(blocks_of(a, b, dim, extent), extent);
    info->divisibility[dim] = common_divisor_at(a, b, dim, group_of(info, dim));
}

static void minimum_or_maximum(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent)
{
    info->contiguity[dim] = tt_meet_groups(a.info->contiguity[dim], b.info->contiguity[dim], extent);
    info->constancy[dim] = common_constancy(a, b, dim, extent);
    info->divisibility[dim] = common_divisor_at(a, b, dim, group_of(info, dim));
}

/* x & (2^k - 1) is a remainder; x & -(2^k) a multiple of a quotient. */
static void conjunction(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent)
{
    AxisInfo storage;
    int64_t mask = b.info->is_constant && llabs(b.info->constant) < TT_MAX_DIVISOR ? b.info->constant : 0;
    if (mask > 0 && tt_is_pow2(mask + 1)) {
        remaining(info, a, constant_operand(&storage, a, mask + 1), dim, extent, true);
        return;
    }
    info->constancy[dim] = common_constancy(a, b, dim, extent);
    if (mask < 0 && tt_is_pow2(-mask))
        info->constancy[dim] = TT_MAX(info->constancy[dim], blocks_of(a, b, dim, extent));
    int64_t group = TT_MIN(info->constancy[dim], extent);
    info->divisibility[dim] = TT_MAX(tt_divisor_at(a, dim, group), tt_divisor_at(b, dim, group));
}

static void bits_of_both(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent)
{
    info->constancy[dim] = common_constancy(a, b, dim, extent);
    info->divisibility[dim] = common_divisor_at(a, b, dim, info->constancy[dim]);
}

static void shift_left(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent)
{
    AxisInfo storage;
    if (b.info->is_constant && b.info->constant >= 0 && b.info->constant < 30) {
        product(info, a, constant_operand(&storage, a, 1ll << b.info->constant), dim, extent);
        return;
    }
    info->constancy[dim] = common_constancy(a, b, dim, extent);
    info->divisibility[dim] = tt_divisor_at(a, dim, info->constancy[dim]);
}

/* Rounds down, whatever the sign. */
static void shift_right(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent)
{
    AxisInfo storage;
    if (b.info->is_constant && b.info->constant >= 0 && b.info->constant < 30)
        quotient(info, a, constant_operand(&storage, a, 1ll << b.info->constant), dim, extent, true);
    else
        info->constancy[dim] = common_constancy(a, b, dim, extent);
}

typedef struct Comparison {
    bool left_run, right_run; /* constant where a block of this side meets one number on the other */
    bool is_unsigned;
} Comparison;

/* A block that begins at a multiple of its size lies wholly below a larger multiple or not at all: run < flat
 * and flat > run, and their negations, are constant in it. Two runs in step compare the same all along,
 * unless one crosses zero and the numbers are unsigned. */
static void comparison(AxisInfo *info, AxisOperand a, AxisOperand b, int dim, int64_t extent, Comparison kind)
{
    int64_t constancy = common_constancy(a, b, dim, extent);
    if (!tt_is_ptr(a.type)) {
        int64_t in_step = tt_meet_groups(a.info->contiguity[dim], b.info->contiguity[dim], extent);
        if (!kind.is_unsigned || (tt_is_non_negative(a.info) && tt_is_non_negative(b.info)))
            constancy = TT_MAX(constancy, in_step);
        if (kind.left_run)
            constancy = TT_MAX(constancy, blocks_of(a, b, dim, extent));
        if (kind.right_run)
            constancy = TT_MAX(constancy, blocks_of(b, a, dim, extent));
    }
    info->constancy[dim] = constancy;
}

static void selection(AxisInfo *info, AxisOperand condition, AxisOperand a, AxisOperand b, int dim,
                      int64_t extent)
{
    int64_t same = condition.info->constancy[dim];
    info->contiguity[dim] = tt_meet_groups(
        same, tt_meet_groups(a.info->contiguity[dim], b.info->contiguity[dim], extent), extent);
    info->constancy[dim] = tt_meet_groups(same, common_constancy(a, b, dim, extent), extent);
    info->divisibility[dim] = common_divisor_at(a, b, dim, group_of(info, dim));
}

/* Another width. Numbers jump at multiples of `wraps` (a power of two; 0: nowhere): a run is cut into aligned
 * blocks, which do not cross one. */
static void resized(AxisInfo *info, AxisOperand a, int dim, int64_t extent, int64_t wraps)
{
    int64_t run = a.info->contiguity[dim];
    if (wraps) {
        int64_t block = TT_MIN(a.info->divisibility[dim], wraps);
        run = run >= extent ? block : tt_gcd(run, block);
    }
    info->contiguity[dim] = TT_MIN(run, extent);
    info->constancy[dim] = a.info->constancy[dim];
    info->divisibility[dim] = tt_divisor_at(a, dim, group_of(info, dim));
}

/* The same bits; a run of pointers remains one if the step is as wide. */
static void reinterpreted(AxisInfo *info, const Op *op, AxisOperand a, int dim)
{
    info->constancy[dim] = a.info->constancy[dim];
    if (tt_axis_unit(a.type) == tt_axis_unit(op->results[0]->type))
        info->contiguity[dim] = a.info->contiguity[dim];
    info->divisibility[dim] = tt_divisor_at(a, dim, group_of(info, dim));
}

/* ---- signs and constants ------------------------------------------------------------------------------- */

/* By the rules of the operation. */
static AxisSign sign_of_operation(const Op *op, const AxisOperand *x)
{
    AxisSign a = x[0].info->sign, b = op->operand_count > 1 ? x[1].info->sign : SIGN_UNKNOWN;
    if (tt_find_attr(op, ATTR_whole))
        a = SIGN_NOT_NEGATIVE;
    switch (op->opcode) {
    case OP_div_s:
        return TT_MAX(a, TT_MIN(b, SIGN_BY_DIVISORS));
    case OP_add:
    case OP_mul:
    case OP_div_u:
    case OP_or:
    case OP_xor:
    case OP_min_s:
    case OP_min_u:
    case OP_max_u:
        return TT_MAX(a, b);
    case OP_rem_s:
    case OP_shl:
    case OP_shr_s:
    case OP_shr_u:
        return a;
    case OP_trunc: /* 64 bits may hold more than 32 */
        return tt_bit_width(op->results[0]->type) >= 32 ? TT_MAX(a, SIGN_BY_STARTS) : SIGN_UNKNOWN;
    case OP_ext_s:
        return tt_is_bool(x[0].type) ? SIGN_UNKNOWN : a; /* whose true becomes -1 */
    case OP_rem_u:
        return b;
    case OP_and:
    case OP_max_s:
        return TT_MIN(a, b);
    case OP_select:
        return TT_MAX(b, x[2].info->sign);
    case OP_abs_s:
    case OP_popcount:
    case OP_clz:
    case OP_ext_u:
        return SIGN_NOT_NEGATIVE;
    default:
        return tt_is_bool(op->results[0]->type) ? SIGN_NOT_NEGATIVE : SIGN_UNKNOWN;
    }
}

static AxisSign sign_of_result(const Op *op, const AxisOperand *x)
{
    AxisSign sign = sign_of_operation(op, x);
    return tt_is_tile(op->results[0]->type) ? sign : TT_MIN(sign, SIGN_BY_STARTS);
}

static void fold_constant(AxisInfo *info, const Op *op, const AxisOperand *x)
{
    Scalar scalars[3], result;
    for (int i = 0; i < op->operand_count; i++) {
        if (!x[i].info->is_constant)
            return;
        scalars[i].i = x[i].info->constant;
    }
    const Type *type = op->results[0]->type;
    if (!tt_is_int(type) ||
        !tt_eval_scalar(op->opcode, x[op->operand_count - 1].type, type, scalars, &result))
        return;
    AxisInfo storage;
    *info = *constant_operand(&storage, (AxisOperand){info, type}, result.i).info;
}

/* ---- the operations ------------------------------------------------------------------------------------ */

static void visit_comparison(AxisInfo *info, Opcode opcode, const AxisOperand *x, int dim, int64_t extent)
{
    Comparison kind = {.is_unsigned =
                           opcode == OP_lt_u || opcode == OP_le_u || opcode == OP_gt_u || opcode == OP_ge_u};
    kind.left_run = opcode == OP_lt_s || opcode == OP_lt_u || opcode == OP_ge_s || opcode == OP_ge_u;
    kind.right_run = opcode == OP_gt_s || opcode == OP_gt_u || opcode == OP_le_s || opcode == OP_le_u;
    comparison(info, x[0], x[1], dim, extent, kind);
}

static void visit_cast(AxisInfo *info, const Op *op, AxisOperand x, int dim, int64_t extent)
{
    switch (op->opcode) {
    case OP_ext_s:
        resized(info, x, dim, extent, 0);
        break;
    case OP_ext_u:
        resized(info, x, dim, extent, tt_is_non_negative(x.info) ? 0 : TT_MAX_DIVISOR); /* jumps at zero */
        break;
    case OP_trunc:
        resized(info, x, dim, extent, 1ll << (tt_bit_width(op->results[0]->type) - 1));
        break;
    default:
        reinterpreted(info, op, x, dim);
    }
}

static void visit_dimension(AxisInfo *info, const Op *op, const AxisOperand *x, int dim)
{
    int64_t extent = tt_extent(op->results[0]->type, dim);
    bool whole = tt_is_non_negative(x[0].info) || tt_find_attr(op, ATTR_whole);
    if (tt_op_infos[op->opcode].rule == COMPARE) {
        visit_comparison(info, op->opcode, x, dim, extent);
        return;
    }
    if (tt_op_infos[op->opcode].rule == CAST) {
        visit_cast(info, op, x[0], dim, extent);
        return;
    }
    switch (op->opcode) {
    case OP_add:
    case OP_addptr:
        sum(info, x[0], x[1], dim, extent);
        break;
    case OP_sub:
        difference(info, x[0], x[1], dim, extent);
        break;
    case OP_mul:
        product(info, x[0], x[1], dim, extent);
        break;
    case OP_div_s:
    case OP_div_u:
        quotient(info, x[0], x[1], dim, extent, whole || op->opcode == OP_div_u);
        break;
    case OP_rem_s:
    case OP_rem_u:
        remaining(info, x[0], x[1], dim, extent, whole || op->opcode == OP_rem_u);
        break;
    case OP_min_s:
    case OP_max_s:
        minimum_or_maximum(info, x[0], x[1], dim, extent);
        break;
    case OP_and:
        if (x[0].info->is_constant)
            conjunction(info, x[1], x[0], dim, extent);
        else
            conjunction(info, x[0], x[1], dim, extent);
        break;
    case OP_or:
    case OP_xor:
    case OP_min_u:
    case OP_max_u:
        bits_of_both(info, x[0], x[1], dim, extent);
        break;
    case OP_shl:
        shift_left(info, x[0], x[1], dim, extent);
        break;
    case OP_shr_s:
    case OP_shr_u:
        shift_right(info, x[0], x[1], dim, extent);
        break;
    case OP_select:
        selection(info, x[0], x[1], x[2], dim, extent);
        break;
    default: /* equal operands give equal results */
        info->constancy[dim] = x[0].info->constancy[dim];
        for (int i = 1; i < op->operand_count; i++)
            info->constancy[dim] = tt_meet_groups(info->constancy[dim], x[i].info->constancy[dim], extent);
    }
}

AxisInfo tt_axes_of_arithmetic(const Op *op, const AxisOperand *operands)
{
    AxisInfo info = tt_unknown_axes(op->results[0]->type);
    for (int dim = 0; dim < info.rank; dim++)
        visit_dimension(&info, op, operands, dim);
    info.sign = sign_of_result(op, operands);
    fold_constant(&info, op, operands);
    return info;
}
