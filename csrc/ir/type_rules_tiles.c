/* Rules of operations that move elements or combine them: shapes, reductions, products. */
#include "ir/type_rules.h"

/* The shape of `type` without dimension `axis`; returns its rank. */
static int without_axis(const Type *type, int axis, int64_t *shape)
{
    int rank = 0;
    for (int i = 0; i < type->rank; i++)
        if (i != axis)
            shape[rank++] = type->shape[i];
    return rank;
}

/* ---- shape -------------------------------------------------------------------------------------------- */

void tt_rule_splat(Verifier *v, const Op *op)
{
    if (tt_is_tile(type_of(op, 0)) || !tt_is_tile(result_type(op)) ||
        result_type(op)->element != type_of(op, 0))
        tt_verify_fail(v, op, "makes a tile of a scalar, not %s of %s", tt_type_text(v, result_type(op)),
                       tt_type_text(v, type_of(op, 0)));
}

void tt_rule_expand_dims(Verifier *v, const Op *op)
{
    if (!tt_expect_tile(v, op, 0))
        return;
    const Type *from = type_of(op, 0);
    int axis = tt_expect_axis(v, op, from->rank + 1);
    if (axis < 0)
        return;
    if (from->rank == TT_MAX_RANK) {
        tt_verify_fail(v, op, "a tile has at most %d dimensions", TT_MAX_RANK);
        return;
    }
    int64_t shape[TT_MAX_RANK];
    for (int i = 0, j = 0; i <= from->rank; i++)
        shape[i] = i == axis ? 1 : from->shape[j++];
    tt_expect_shape(v, op, 0, from->element, shape, from->rank + 1);
}

void tt_rule_broadcast(Verifier *v, const Op *op)
{
    const Type *from = type_of(op, 0), *to = result_type(op);
    bool right = tt_is_tile(from) && tt_is_tile(to) && from->element == to->element && from->rank == to->rank;
    for (int i = 0; right && i < from->rank; i++)
        right = from->shape[i] == to->shape[i] || from->shape[i] == 1;
    if (!right)
        tt_verify_fail(v, op, "%s does not broadcast to %s", tt_type_text(v, from), tt_type_text(v, to));
}

void tt_rule_reshape(Verifier *v, const Op *op)
{
    const Type *from = type_of(op, 0), *to = result_type(op);
    if (!tt_is_tile(from) || !tt_is_tile(to) || from->element != to->element || from->count != to->count)
        tt_verify_fail(v, op, "%s does not reshape to %s", tt_type_text(v, from), tt_type_text(v, to));
}

void tt_rule_permute(Verifier *v, const Op *op)
{
    int64_t shape[TT_MAX_RANK];
    if (!tt_expect_tile(v, op, 0) || !tt_expect_order(v, op, shape))
        return;
    const Type *from = type_of(op, 0);
    tt_expect_shape(v, op, 0, from->element, shape, from->rank);
}

void tt_rule_join(Verifier *v, const Op *op)
{
    const Type *from = type_of(op, 0);
    int rank = rank_of(from);
    tt_expect_operand(v, op, 1, from);
    if (rank == TT_MAX_RANK) {
        tt_verify_fail(v, op, "a tile has at most %d dimensions", TT_MAX_RANK);
        return;
    }
    int64_t shape[TT_MAX_RANK];
    if (rank)
        memcpy(shape, from->shape, sizeof(int64_t) * (size_t)rank);
    shape[rank] = 2;
    tt_expect_shape(v, op, 0, tt_element(from), shape, rank + 1);
}

void tt_rule_split(Verifier *v, const Op *op)
{
    if (!tt_expect_tile(v, op, 0))
        return;
    const Type *from = type_of(op, 0);
    if (from->shape[from->rank - 1] != 2)
        tt_verify_fail(v, op, "the last extent of %s is not 2", tt_type_text(v, from));
    for (int i = 0; i < 2; i++)
        tt_expect_shape(v, op, i, from->element, from->shape, from->rank - 1);
}

void tt_rule_cat(Verifier *v, const Op *op)
{
    if (!tt_expect_tile(v, op, 0) || !tt_expect_tile(v, op, 1))
        return;
    const Type *first = type_of(op, 0), *second = type_of(op, 1);
    int axis = tt_expect_axis(v, op, first->rank);
    if (axis < 0)
        return;
    int64_t shape[TT_MAX_RANK];
    memcpy(shape, first->shape, sizeof(int64_t) * (size_t)first->rank);
    bool right = first->rank == second->rank;
    if (right)
        shape[axis] = second->shape[axis];
    if (!right || !tt_is_shaped(second, first->element, shape, first->rank)) {
        tt_verify_fail(v, op, "%s does not stand behind %s along axis %d", tt_type_text(v, second),
                       tt_type_text(v, first), axis);
        return;
    }
    shape[axis] = first->shape[axis] + second->shape[axis];
    tt_expect_shape(v, op, 0, first->element, shape, first->rank);
}

void tt_rule_slice(Verifier *v, const Op *op)
{
    const Attr *offsets = tt_expect_attr(v, op, ATTR_offsets), *strides = tt_expect_attr(v, op, ATTR_strides);
    const Type *from = type_of(op, 0), *to = result_type(op);
    if (!offsets || !strides || !tt_expect_tile(v, op, 0))
        return;
    if (!tt_is_tile(to) || to->rank != from->rank || to->element != from->element ||
        offsets->count != from->rank || strides->count != from->rank) {
        tt_verify_fail(v, op, "offsets, strides, operand and result do not have one rank and element");
        return;
    }
    for (int i = 0; i < from->rank; i++) {
        int64_t first = offsets->ints[i], stride = strides->ints[i], last;
        bool overflows = __builtin_mul_overflow(to->shape[i] - 1, stride, &last) ||
                         __builtin_add_overflow(last, first, &last);
        if (overflows || stride == 0 || TT_MIN(first, last) < 0 || TT_MAX(first, last) >= from->shape[i])
            tt_verify_fail(v, op, "the slice leaves dimension %d, of extent %lld", i,
                           (long long)from->shape[i]);
    }
}

void tt_rule_extract(Verifier *v, const Op *op)
{
    if (!tt_expect_tile(v, op, 0))
        return;
    const Type *from = type_of(op, 0), *index = type_of(op, 1);
    if (index->kind != TT_I32 && index->kind != TT_I64)
        tt_verify_fail(v, op, "the index is %s, expected i32 or i64", tt_type_text(v, index));
    int axis = tt_expect_axis(v, op, from->rank);
    int64_t shape[TT_MAX_RANK];
    if (axis >= 0)
        tt_expect_shape(v, op, 0, from->element, shape, without_axis(from, axis, shape));
}

void tt_rule_gather(Verifier *v, const Op *op)
{
    if (!tt_expect_tile(v, op, 0) || !tt_expect_tile(v, op, 1))
        return;
    const Type *from = type_of(op, 0), *index = type_of(op, 1);
    int axis = tt_expect_axis(v, op, from->rank);
    if (!tt_is_int(index))
        tt_verify_fail(v, op, "the indices are %s, expected integers", tt_type_text(v, index));
    for (int i = 0; i < from->rank; i++)
        if (index->rank != from->rank || (i != axis && index->shape[i] != from->shape[i])) {
            tt_verify_fail(v, op, "%s and its indices %s differ beyond axis %d", tt_type_text(v, from),
                           tt_type_text(v, index), axis);
            return;
        }
    tt_expect_shape(v, op, 0, from->element, index->shape, index->rank);
}

/* ---- tiles as a whole --------------------------------------------------------------------------------- */

static void check_scalar_computation(Verifier *v, const Op *holder, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        if (tt_has(op, READS | WRITES | HAS_EFFECT))
            tt_verify_fail(v, holder, "the combine region does more than compute: '%s'",
                           tt_op_infos[op->opcode].name);
        for (int i = 0; i < op->result_count; i++)
            if (tt_is_tile(op->results[i]->type))
                tt_verify_fail(v, holder, "the combine region computes a tile: '%s'",
                               tt_op_infos[op->opcode].name);
        for (int i = 0; i < op->region_count; i++)
            check_scalar_computation(v, holder, op->regions[i]);
    }
}

/* What reduce and scan share; returns the axis or -1. */
static int check_combine(Verifier *v, const Op *op)
{
    int count = op->operand_count;
    const Region *region = op->regions[0];
    const Type *first = type_of(op, 0);
    for (int i = 0; i < count; i++)
        if (!tt_expect_tile(v, op, i))
            return -1;
        else if (!tt_same_shape(type_of(op, i), first))
            tt_verify_fail(v, op, "operands 0 and %d differ in shape", i);
    int axis = tt_expect_axis(v, op, first->rank);
    check_scalar_computation(v, op, region);
    if (op->result_count != count || region->arg_count != 2 * count) {
        tt_verify_fail(v, op, "%d operands want %d results and %d region arguments", count, count, 2 * count);
        return -1;
    }
    for (int i = 0; i < 2 * count; i++)
        if (region->args[i]->type != type_of(op, i % count)->element)
            tt_verify_fail(v, op, "region argument %d is %s, expected %s", i,
                           tt_type_text(v, region->args[i]->type),
                           tt_type_text(v, type_of(op, i % count)->element));
    const Op *yield = region->last;
    if (!yield || yield->opcode != OP_yield)
        return axis;
    if (yield->operand_count != count)
        tt_verify_fail(v, op, "the region yields %d values, expected %d", yield->operand_count, count);
    for (int i = 0; i < count && yield->operand_count == count; i++)
        if (type_of(yield, i) != type_of(op, i)->element)
            tt_verify_fail(v, op, "value %d of the yield is %s, expected %s", i,
                           tt_type_text(v, type_of(yield, i)), tt_type_text(v, type_of(op, i)->element));
    return axis;
}

void tt_rule_reduce(Verifier *v, const Op *op)
{
    int axis = check_combine(v, op);
    int64_t shape[TT_MAX_RANK];
    for (int i = 0; axis >= 0 && i < op->operand_count; i++)
        tt_expect_shape(v, op, i, type_of(op, i)->element, shape, without_axis(type_of(op, i), axis, shape));
}

void tt_rule_scan(Verifier *v, const Op *op)
{
    int axis = check_combine(v, op);
    for (int i = 0; axis >= 0 && i < op->operand_count; i++)
        tt_expect_result(v, op, i, type_of(op, i));
}

/* Of a product's operand, which may lie in a buffer. */
static const Type *matrix_type(const Op *op, int operand)
{
    const Type *type = type_of(op, operand);
    return tt_is_buffer(type) ? tt_slot_type(op->parent->function->module, type) : type;
}

void tt_rule_dot(Verifier *v, const Op *op)
{
    const Type *a = matrix_type(op, 0), *b = matrix_type(op, 1), *c = type_of(op, 2);
    tt_expect_word(v, op, ATTR_precision,
                   (const char *const[]){"ieee", "tf32", "tf32x3", "bf16x3", "bf16x6", NULL});
    tt_expect_word(v, op, ATTR_instruction, (const char *const[]){"mma", "fma", NULL});
    tt_expect_result(v, op, 0, c);
    const Attr *raised = tt_find_attr(op, ATTR_raised);
    if (raised && (raised->count != 2 || a->element->kind != TT_F32))
        tt_verify_fail(v, op, "has operands of fp32 raised, each by a number of units");
    int rank = rank_of(a);
    if ((rank != 2 && rank != 3) || rank_of(b) != rank || rank_of(c) != rank) {
        tt_verify_fail(v, op, "takes tiles of rank 2, or of rank 3 with a batch dimension");
        return;
    }
    bool batches = rank == 2 || (a->shape[0] == b->shape[0] && a->shape[0] == c->shape[0]);
    const int64_t *m_k = a->shape + rank - 2, *k_n = b->shape + rank - 2, *m_n = c->shape + rank - 2;
    if (!batches || m_k[1] != k_n[0] || m_k[0] != m_n[0] || k_n[1] != m_n[1])
        tt_verify_fail(v, op, "the extents of %s x %s + %s do not fit", tt_type_text(v, a),
                       tt_type_text(v, b), tt_type_text(v, c));
    bool ints = tt_is_int(a) && tt_is_int(b) && tt_is_int(c),
         floats = tt_is_float(a) && tt_is_float(b) && tt_is_float(c);
    bool alike = a->element == b->element || (tt_is_fp8(a) && tt_is_fp8(b));
    if ((!ints && !floats) || !alike || tt_is_fp8(c) || tt_bit_width(c) < tt_bit_width(a))
        tt_verify_fail(v, op, "does not multiply %s by %s into %s", tt_type_text(v, a->element),
                       tt_type_text(v, b->element), tt_type_text(v, c->element));
}

void tt_rule_histogram(Verifier *v, const Op *op)
{
    if (!tt_expect_tile(v, op, 0))
        return;
    if (!tt_is_int(type_of(op, 0)))
        tt_verify_fail(v, op, "counts integers, not %s", tt_type_text(v, type_of(op, 0)));
    tt_expect_mask(v, op, 1);
    if (rank_of(result_type(op)) != 1 || result_type(op)->element->kind != TT_I32)
        tt_verify_fail(v, op, "result 0 is %s, expected a tile of i32 and rank 1",
                       tt_type_text(v, result_type(op)));
}
