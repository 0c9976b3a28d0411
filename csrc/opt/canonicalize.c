/* Brings operations into one simplest form: folds constants, applies algebra.def, computes once what a tile
 * only repeats, and drops masks, branches and loops that constants decide. It walks the function until
 * nothing changes, so a rule need not see what another makes of its result. */
#include "opt/canonicalize.h"
#include "ir/algebra.h"

/* ---- elementwise operations on tiles that repeat ------------------------------------------------------- */

/* The number that a tile holds everywhere, or NULL. Constants are built again, as scalars. */
static Value *repeated_scalar(Builder *b, Value *tile)
{
    const Op *splat = tt_def(tile, OP_splat);
    int64_t integer;
    double real;
    if (splat)
        return tt_operand(splat, 0);
    if (tt_constant_int(tile, &integer))
        return tt_build_int(b, tile->type->element, integer);
    return tt_constant_float(tile, &real) ? tt_build_float(b, tile->type->element, real) : NULL;
}

static bool is_repeated(const Value *tile) { return tt_def(tile, OP_splat) || tt_is_constant(tile); }

/* op(splat a, splat b) = splat op(a, b). */
static Value *compute_scalar(Builder *b, Op *op)
{
    const Type *type = op->results[0]->type;
    Value *scalars[8];
    if (!tt_is_tile(type) || op->operand_count > (int)TT_COUNT(scalars))
        return NULL;
    for (int i = 0; i < op->operand_count; i++)
        if (!is_repeated(tt_operand(op, i)))
            return NULL;
    for (int i = 0; i < op->operand_count; i++)
        scalars[i] = repeated_scalar(b, tt_operand(op, i));
    Value *scalar = tt_build(b, op->opcode, scalars, op->operand_count, type->element, op->attrs);
    return tt_build_splat(b, scalar, type->shape, type->rank);
}

/* The tile that is broadcast to an operand of `op`, if all operands come from tiles of one smaller shape or
 * repeat a scalar. */
static const Type *narrow_shape(const Op *op)
{
    const Type *shape = NULL;
    for (int i = 0; i < op->operand_count; i++) {
        const Op *broadcast = tt_def(tt_operand(op, i), OP_broadcast);
        const Type *source = broadcast ? tt_operand(broadcast, 0)->type : NULL;
        if (!source ? !is_repeated(tt_operand(op, i)) : shape && !tt_same_shape(shape, source))
            return NULL;
        if (source)
            shape = source;
    }
    return shape;
}

/* op(broadcast x, broadcast y) = broadcast op(x, y). */
static Value *compute_narrow(Builder *b, Op *op)
{
    const Type *type = op->results[0]->type, *shape = tt_is_tile(type) ? narrow_shape(op) : NULL;
    Value *operands[8];
    if (!shape || op->operand_count > (int)TT_COUNT(operands))
        return NULL;
    for (int i = 0; i < op->operand_count; i++) {
        Value *operand = tt_operand(op, i);
        const Op *broadcast = tt_def(operand, OP_broadcast);
        operands[i] = broadcast ? tt_operand(broadcast, 0)
                                : tt_build_splat(b, repeated_scalar(b, operand), shape->shape, shape->rank);
    }
    const Type *narrow = tt_with_element(b->module, shape, type->element);
    Value *value = tt_build(b, op->opcode, operands, op->operand_count, narrow, op->attrs);
    return tt_build_broadcast(b, value, type->shape);
}

/* ---- comparisons that bounds decide -------------------------------------------------------------------- */

static Value *decide_comparison(Builder *b, Op *op)
{
    IntBounds x, y;
    if (!tt_int_bounds(tt_operand(op, 0), &x) || !tt_int_bounds(tt_operand(op, 1), &y))
        return NULL;
    bool alike = x.lowest >= 0 && y.lowest >= 0; /* signed and unsigned order agree */
    bool always, never;
    switch (op->opcode) {
    case OP_lt_u:
    case OP_lt_s:
        always = x.highest < y.lowest, never = x.lowest >= y.highest;
        break;
    case OP_le_u:
    case OP_le_s:
        always = x.highest <= y.lowest, never = x.lowest > y.highest;
        break;
    case OP_gt_u:
    case OP_gt_s:
        always = x.lowest > y.highest, never = x.highest <= y.lowest;
        break;
    case OP_ge_u:
    case OP_ge_s:
        always = x.lowest >= y.highest, never = x.highest < y.lowest;
        break;
    default:
        return NULL;
    }
    bool is_unsigned =
        op->opcode == OP_lt_u || op->opcode == OP_le_u || op->opcode == OP_gt_u || op->opcode == OP_ge_u;
    if ((is_unsigned && !alike) || (!always && !never))
        return NULL;
    return tt_build_int(b, op->results[0]->type, always);
}

/* A quotient, remainder, minimum or maximum of which bounds show the result. Signed and unsigned agree on
 * numbers that are not negative; of others nothing is said. */
static Value *decide_arithmetic(Builder *b, Op *op)
{
    IntBounds x, y;
    if (!tt_int_bounds(tt_operand(op, 0), &x) || !tt_int_bounds(tt_operand(op, 1), &y) || x.lowest < 0 ||
        y.lowest < 0)
        return NULL;
    switch (op->opcode) {
    case OP_div_s:
    case OP_div_u:
        return x.highest < y.lowest ? tt_build_int(b, op->results[0]->type, 0) : NULL;
    case OP_rem_s:
    case OP_rem_u:
        return x.highest < y.lowest ? tt_operand(op, 0) : NULL;
    case OP_min_s:
    case OP_min_u:
        return x.highest <= y.lowest ? tt_operand(op, 0) : y.highest <= x.lowest ? tt_operand(op, 1) : NULL;
    case OP_max_s:
    case OP_max_u:
        return x.highest <= y.lowest ? tt_operand(op, 1) : y.highest <= x.lowest ? tt_operand(op, 0) : NULL;
    default:
        return NULL;
    }
}

/* May it be the least 32-bit integer? What a division by zero gives is anybody's choice. */
static bool may_be_least(const Value *value)
{
    IntBounds bounds;
    const Op *op = value->op;
    if (tt_int_bounds(value, &bounds) && bounds.lowest > INT32_MIN)
        return false;
    bool is_smaller = op && (op->opcode == OP_ext_s || op->opcode == OP_div_s || op->opcode == OP_rem_s ||
                             (tt_has(op, SHAPE) && op->operand_count == 1));
    return !is_smaller || may_be_least(tt_operand(op, 0));
}

/* A division in 64 bits, which GPUs do in a hundred instructions, of numbers of 32: in 32 bits, where the quotient fits
 * as well, which that of the least number and -1 does not. */
static Value *narrow_division(Builder *b, Op *op)
{
    bool is_signed = op->opcode == OP_div_s || op->opcode == OP_rem_s;
    int64_t lowest = is_signed ? INT32_MIN : 0, highest = is_signed ? INT32_MAX : UINT32_MAX;
    Value *x = tt_operand(op, 0), *y = tt_operand(op, 1);
    IntBounds bounds[2];
    if ((!is_signed && op->opcode != OP_div_u && op->opcode != OP_rem_u) || tt_bit_width(x->type) != 64)
        return NULL;
    for (int i = 0; i < 2; i++)
        if (!tt_int_bounds(tt_operand(op, i), &bounds[i]) || bounds[i].lowest < lowest ||
            bounds[i].highest > highest)
            return NULL;
    if (is_signed && bounds[1].lowest <= -1 && bounds[1].highest >= -1 && may_be_least(x))
        return NULL;
    const Type *narrow = tt_scalar_type(b->module, TT_I32);
    Value *result = tt_build2(b, op->opcode, tt_build_cast(b, OP_trunc, x, narrow),
                              tt_build_cast(b, OP_trunc, y, narrow));
    return tt_build_cast(b, is_signed ? OP_ext_s : OP_ext_u, result, tt_element(x->type));
}

/* ---- casts --------------------------------------------------------------------------------------------- */

/* A cast of a cast, where the widths say what remains. */
static Value *simplify_cast(Builder *b, Op *op)
{
    const Type *element = tt_element(op->results[0]->type);
    Op *inner = tt_operand(op, 0)->op;
    if (!inner || tt_op_infos[inner->opcode].rule != CAST)
        return NULL;
    Value *x = tt_operand(inner, 0);
    int from = tt_bit_width(x->type), through = tt_bit_width(inner->results[0]->type),
        to = tt_bit_width(element);
    bool extends = inner->opcode == OP_ext_s || inner->opcode == OP_ext_u;
    if (op->opcode == OP_trunc && extends && to != from)
        return tt_build_cast(b, to < from ? OP_trunc : inner->opcode, x, element);
    if (op->opcode == OP_float_cast && inner->opcode == OP_float_cast && from < through && through < to)
        return tt_build_cast(b, OP_float_cast, x, element);
    return NULL;
}

/* ---- pointers ------------------------------------------------------------------------------------------ */

static bool fits(int64_t value, int bits)
{
    return bits == 64 || (value >= -(1ll << (bits - 1)) && value < 1ll << (bits - 1));
}

/* Offsets are sign-extended one by one, so their sum may stand for them only where it cannot wrap. */
static Value *add_constant_offsets(Builder *b, Value *pointer, Value *first, Value *second)
{
    int64_t x, y, sum;
    const Type *type = tt_bit_width(first->type) > tt_bit_width(second->type) ? first->type : second->type;
    if (!tt_constant_int(first, &x) || !tt_constant_int(second, &y) || __builtin_add_overflow(x, y, &sum) ||
        !fits(sum, tt_bit_width(type)))
        return NULL;
    return tt_build_addptr(b, pointer, tt_build_int(b, type, sum));
}

/* Do these pointers come from one scalar pointer, which can take up a scalar offset? */
static bool has_scalar_base(const Value *pointer)
{
    for (const Op *op = pointer->op; op && (tt_has(op, SHAPE) || op->opcode == OP_addptr);
         op = tt_operand(op, 0)->op)
        if (op->opcode == OP_splat)
            return true;
    return false;
}

/* addptr(addptr(p, x), y): constants and 64-bit offsets are added, a scalar moves towards the scalar
 * pointer. */
static Value *simplify_addptr(Builder *b, Op *op)
{
    Value *pointer = tt_operand(op, 0), *offset = tt_operand(op, 1);
    const Op *inner = tt_def(pointer, OP_addptr);
    if (!inner)
        return NULL;
    Value *base = tt_operand(inner, 0), *first = tt_operand(inner, 1);
    Value *added = add_constant_offsets(b, base, first, offset);
    if (added)
        return added;
    if (is_repeated(offset) && !is_repeated(first) && has_scalar_base(base))
        return tt_build_addptr(b, tt_build_addptr(b, base, offset), first);
    if (first->type == offset->type && tt_bit_width(first->type) == 64 && tt_has_one_use(pointer))
        return tt_build_addptr(b, base, tt_build2(b, OP_add, first, offset));
    return NULL;
}

/* (x + splat a) + splat b = x + splat(a + b): integers, which wrap around, so that any order is right. */
static Value *gather_scalars(Builder *b, Op *op)
{
    if (!tt_is_tile(op->results[0]->type) || (op->opcode != OP_add && op->opcode != OP_mul))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Value *scalar = tt_operand(op, i);
        const Op *inner = tt_def(tt_operand(op, 1 - i), op->opcode);
        for (int j = 0; inner && is_repeated(scalar) && j < 2; j++)
            if (is_repeated(tt_operand(inner, j)) && !is_repeated(tt_operand(inner, 1 - j))) {
                Value *gathered = tt_build2(b, op->opcode, tt_operand(inner, j), scalar);
                return tt_build2(b, op->opcode, tt_operand(inner, 1 - j), gathered);
            }
    }
    return NULL;
}

/* ---- memory -------------------------------------------------------------------------------------------- */

/* The mask that operand `index` is: 1 all true, 0 all false, -1 neither is known. */
static int known_mask(const Op *op, int index)
{
    int64_t mask;
    return op->operand_count > index && tt_constant_int(tt_operand(op, index), &mask) ? mask != 0 : -1;
}

/* Bits that are loaded as one type and read as another are loaded as that; and pointers to another type are made of the pointer
 * that the others come from. So products copy what a program keeps as integers. */
static Value *simplify_bitcast(Op *op)
{
    Module *module = op->parent->function->module;
    const Type *element = tt_element(op->results[0]->type);
    Op *inner = tt_operand(op, 0)->op;
    if (!inner)
        return NULL;
    Builder b = tt_builder_before(inner);
    b.loc = inner->loc;
    if (tt_is_ptr(element))
        return inner->opcode == OP_addptr && tt_byte_width(element->element) ==
                                                 tt_byte_width(tt_element(inner->results[0]->type)->element)
                   ? tt_build_addptr(&b, tt_build_cast(&b, OP_bitcast, tt_operand(inner, 0), element),
                                     tt_operand(inner, 1))
                   : NULL;
    if (inner->opcode != OP_load || !tt_is_plain_load(inner) || !tt_has_one_use(inner->results[0]) ||
        tt_def(tt_operand(inner, 0), OP_block_pointers))
        return NULL;
    const Type *pointer = tt_element(tt_operand(inner, 0)->type);
    Value *operands[3] = {
        tt_build_cast(&b, OP_bitcast, tt_operand(inner, 0), tt_ptr_type(module, element, pointer->space))};
    if (inner->operand_count > 1)
        operands[1] = tt_operand(inner, 1);
    if (inner->operand_count > 2)
        operands[2] = tt_build_cast(&b, OP_bitcast, tt_operand(inner, 2), element);
    Value *result = tt_build(&b, OP_load, operands, inner->operand_count, op->results[0]->type,
                             tt_copy_attrs(module, inner->attrs));
    result->name = inner->results[0]->name;
    return result;
}

/* A load in which elements repeat. */
static Value *narrow_load(Builder *b, Op *op)
{
    Value *value = tt_is_plain_load(op) ? compute_scalar(b, op) : NULL;
    return value || !tt_is_plain_load(op) ? value : compute_narrow(b, op);
}

/* Drops a mask that is always true, from a load with its `other`; an operation that never takes place is
 * erased. */
static bool simplify_masked(Op *op, int mask)
{
    int known = known_mask(op, mask);
    if (known == 1) {
        while (op->operand_count > mask)
            tt_remove_operand(op, mask);
        return true;
    }
    bool unused = true;
    for (int i = 0; i < op->result_count; i++)
        unused &= !tt_has_uses(op->results[i]);
    if (known != 0 || !unused)
        return false;
    tt_erase_op(op);
    return true;
}

static bool simplify_assert(Op *op)
{
    int masked = tt_assert_mask(op) ? known_mask(op, 1) : -1;
    if (known_mask(op, 0) == 1 || masked == 0) {
        tt_erase_op(op);
        return true;
    }
    if (masked == 1)
        tt_remove_operand(op, 1);
    return masked == 1;
}

/* An atomic update that changes nothing and releases nothing only looks: a load, for which whoever else looks there need
 * not wait. */
static bool make_atomic_load(Op *op)
{
    static const char *const kinds[] = {"add", "or", "xor", "max_u"};
    const char *kind = tt_string_attr(op, ATTR_kind, ""), *sem = tt_string_attr(op, ATTR_sem, "acq_rel");
    int64_t value;
    if (!tt_constant_int(tt_operand(op, 1), &value) || value ||
        (strcmp(sem, "relaxed") && strcmp(sem, "acquire")))
        return false;
    for (size_t i = 0; i < TT_COUNT(kinds); i++)
        if (!strcmp(kind, kinds[i])) {
            tt_set_attr(op, tt_attr_string(op->parent->function->module, ATTR_kind, "load", NULL));
            return true;
        }
    return false;
}

static bool simplify_effect(Op *op)
{
    switch (op->opcode) {
    case OP_load:
        return known_mask(op, 1) == 1 && simplify_masked(op, 1);
    case OP_store:
        return simplify_masked(op, 2);
    case OP_atomic_rmw:
        return simplify_masked(op, 2) || make_atomic_load(op);
    case OP_assert:
        return simplify_assert(op);
    case OP_assume:
        if (known_mask(op, 0) != 1)
            return false;
        tt_erase_op(op);
        return true;
    default:
        return false;
    }
}

/* ---- reductions ---------------------------------------------------------------------------------------- */

/* Over an axis of one element there is nothing to combine. */
static bool drop_reduction(Op *op)
{
    int axis = (int)tt_int_attr(op, ATTR_axis, 0);
    if (op->opcode != OP_reduce || tt_operand(op, 0)->type->shape[axis] != 1)
        return false;
    Builder b = tt_builder_before(op);
    for (int i = 0; i < op->operand_count; i++) {
        Value *x = tt_operand(op, i), *zero = NULL;
        const Type *type = op->results[i]->type;
        if (!tt_is_tile(type))
            zero = tt_build_int(&b, tt_scalar_type(b.module, TT_I32), 0);
        Value *value = zero ? tt_build(&b, OP_extract, (Value *[]){x, zero}, 2, type,
                                       tt_attr_int(b.module, ATTR_axis, 0, NULL))
                            : tt_build_reshape(&b, x, type->shape, type->rank);
        tt_replace_all_uses(op->results[i], value);
    }
    tt_erase_op(op);
    return true;
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

/* What an operation with one result is in simpler terms, or NULL. */
static Value *simplify(Builder *b, Op *op)
{
    Value *operands[8];
    const Type *type = op->results[0]->type;
    if (op->operand_count > (int)TT_COUNT(operands))
        return NULL;
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = tt_operand(op, i);
    Value *value = tt_fold(b, op->opcode, operands, op->operand_count, type, op->attrs);
    if (!value && !op->attrs)
        value = tt_apply_rules(b, op->opcode, operands, op->operand_count, type, true);
    if (!value && tt_op_infos[op->opcode].rule == COMPARE)
        value = decide_comparison(b, op);
    if (!value && tt_has(op, ON_INTS) && op->operand_count == 2)
        value = decide_arithmetic(b, op);
    if (!value && tt_has(op, ON_INTS) && op->operand_count == 2)
        value = narrow_division(b, op);
    if (!value && tt_op_infos[op->opcode].rule == CAST)
        value = simplify_cast(b, op);
    if (!value && op->opcode == OP_bitcast)
        value = simplify_bitcast(op);
    if (!value && op->opcode == OP_addptr)
        value = simplify_addptr(b, op);
    if (!value && tt_has(op, ON_INTS))
        value = gather_scalars(b, op);
    if (!value && tt_has(op, ELEMENTWISE) && op->operand_count)
        value = compute_scalar(b, op);
    if (!value && tt_has(op, ELEMENTWISE))
        value = compute_narrow(b, op);
    if (!value && tt_has(op, SHAPE))
        value = tt_simplify_shape(b, op);
    if (!value && tt_has(op, READS))
        value = narrow_load(b, op);
    return value;
}

static bool move_constant_right(Op *op)
{
    Value *left = op->operand_count == 2 ? tt_operand(op, 0) : NULL, *right = left ? tt_operand(op, 1) : NULL;
    if (!left || !tt_has(op, COMMUTES) || !tt_is_constant(left) || tt_is_constant(right))
        return false;
    tt_set_operand(op, 0, right);
    tt_set_operand(op, 1, left);
    return true;
}

static bool visit_op(Op *op)
{
    if (tt_is_control(op))
        return tt_simplify_control(op);
    if (simplify_effect(op) || move_constant_right(op) || drop_reduction(op) || tt_simplify_split(op))
        return true;
    if (op->result_count != 1 || op->region_count || !tt_has(op, PURE | READS) || tt_has(op, WRITES))
        return false;
    if (!tt_has_uses(op->results[0]))
        return false; /* left to dce */
    Builder b = tt_builder_before(op);
    Value *value = simplify(&b, op);
    if (!value || value->layout != op->results[0]->layout)
        return false;
    tt_replace_all_uses(op->results[0], value);
    tt_erase_op(op);
    return true;
}

static bool visit_region(Region *region)
{
    bool changed = false;
    TT_FOR_OPS_SAFE(op, region)
    {
        int region_count = op->region_count; /* those of an erased operation are empty by then */
        Region **regions = op->regions;
        changed |= visit_op(op);
        for (int i = 0; i < region_count; i++)
            changed |= visit_region(regions[i]);
    }
    return changed;
}

bool tt_opt_canonicalize(Function *function, Arena *scratch)
{
    (void)scratch;
    enum { MOST_ROUNDS = 100 }; /* a chain of that many rewrites would be a mistake, but not one to hang on */
    bool changed = false;
    for (int round = 0; round < MOST_ROUNDS && visit_region(function->body); round++)
        changed = true;
    return changed;
}
