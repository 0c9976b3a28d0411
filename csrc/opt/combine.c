/* Puts operations together that one does better than two:
 * - dot(a, b, 0) + c accumulates onto c. The sum is taken in another order, as dot leaves it open;
 * - a sum over the products of two broadcast tiles, A[m, k, 1] * B[1, k, n], is a dot;
 * - a choice between a masked load and something else, by the same mask, is the load with that as `other`;
 * - what a branch leaves of a load for a product, by a mask, is left by a mask that knows of the branch. */
#include "analysis/analysis.h"
#include "opt/pass.h"

typedef struct Combine {
    Function *function;
    Arena *scratch;
    AxisInfos *axis_infos; /* NULL: not asked for yet */
} Combine;

/* ---- dot ----------------------------------------------------------------------------------------------- */

/* Not into a loop that the product stands outside of: it would be computed each time. */
static Value *accumulate_onto(Builder *b, Op *op)
{
    if (op->opcode != OP_fadd && op->opcode != OP_add)
        return NULL;
    for (int i = 0; i < 2; i++) {
        Value *product = tt_operand(op, i);
        const Op *dot = tt_def(product, OP_dot);
        if (dot && dot->parent == op->parent && tt_has_one_use(product) && tt_is_zero(tt_operand(dot, 2))) {
            Value *operands[] = {tt_operand(dot, 0), tt_operand(dot, 1), tt_operand(op, 1 - i)};
            return tt_build(b, OP_dot, operands, 3, op->results[0]->type,
                            tt_copy_attrs(b->module, dot->attrs));
        }
    }
    return NULL;
}

/* The matrix in an operand of the product that is broadcast along dimension `missing` of three. */
static Value *matrix_of(Builder *b, Value *operand, int missing)
{
    const Op *broadcast = tt_def(operand, OP_broadcast);
    Value *x = broadcast ? tt_operand(broadcast, 0) : operand;
    if (x->type->shape[missing] != 1)
        return NULL;
    int64_t shape[2] = {x->type->shape[missing == 0], x->type->shape[missing == 2 ? 1 : 2]};
    const int64_t *wide = operand->type->shape;
    if (shape[0] != wide[missing == 0] || shape[1] != wide[missing == 2 ? 1 : 2])
        return NULL;
    return b ? tt_build_reshape(b, x, shape, 2) : x;
}

/* Products this small are not worth the packing of a dot. */
static bool is_worth_a_dot(const Type *type)
{
    return type->shape[0] >= 4 && type->shape[1] >= 8 && type->shape[2] >= 4;
}

/* reduce(A * B) along the middle of [m, k, n], in f32 or f64, where a dot multiplies and adds the same
 * numbers. */
static Value *sum_of_products(Builder *b, Op *op)
{
    if (op->opcode != OP_reduce || tt_int_attr(op, ATTR_axis, 0) != 1 || tt_combining_opcode(op) != OP_fadd)
        return NULL;
    const Op *product = tt_def(tt_operand(op, 0), OP_fmul);
    const Type *type = tt_operand(op, 0)->type;
    if (!product || product->parent != op->parent || !tt_has_one_use(tt_operand(op, 0)) || type->rank != 3 ||
        !is_worth_a_dot(type) || tt_bit_width(type) < 32)
        return NULL;
    for (int i = 0; i < 2; i++) {
        Value *a = tt_operand(product, i), *c = tt_operand(product, 1 - i);
        if (!matrix_of(NULL, a, 2) || !matrix_of(NULL, c, 0))
            continue;
        Value *operands[] = {matrix_of(b, a, 2), matrix_of(b, c, 0),
                             tt_build_float(b, op->results[0]->type, 0)};
        Attr *precision = tt_attr_string(b->module, ATTR_precision, "ieee", NULL);
        return tt_build(b, OP_dot, operands, 3, op->results[0]->type, precision);
    }
    return NULL;
}

/* ---- select and load ----------------------------------------------------------------------------------- */

static bool encloses(const Region *region, const Op *op)
{
    const Region *inner = op->parent;
    while (inner != region && inner->op)
        inner = inner->op->parent;
    return inner == region;
}

/* `value`, or a constant like it, where `op` stands; NULL when it is computed only later. */
static Value *available_at(Value *value, Op *op)
{
    int64_t integer;
    double real;
    Builder b = tt_builder_before(op);
    if (tt_constant_int(value, &integer))
        return tt_build_int(&b, value->type, integer);
    if (tt_constant_float(value, &real))
        return tt_build_float(&b, value->type, real);
    bool before = value->op ? tt_comes_before(value->op, op) : encloses(value->region, op);
    return before ? value : NULL;
}

/* select(mask, load(p, mask), y) = load(p, mask, y): the load stays where it is. */
static Value *load_with_other(Op *op)
{
    if (op->opcode != OP_select)
        return NULL;
    Value *loaded = tt_operand(op, 1);
    Op *load = tt_def(loaded, OP_load);
    if (!load || load->operand_count < 2 || tt_operand(load, 1) != tt_operand(op, 0) ||
        !tt_has_one_use(loaded))
        return NULL;
    Value *other = available_at(tt_operand(op, 2), load);
    if (!other)
        return NULL;
    if (load->operand_count == 3)
        tt_set_operand(load, 2, other);
    else
        tt_add_operand(load, other);
    return loaded;
}

/* Is it computed from indices and numbers alone? */
static bool is_of_indices(const Value *value, int depth)
{
    const Op *op = value->op;
    if (!tt_is_tile(value->type))
        return true;
    if (!op || !depth ||
        !(op->opcode == OP_range || op->opcode == OP_constant || tt_has(op, SHAPE) ||
          (tt_has(op, ELEMENTWISE) && tt_has(op, PURE))))
        return false;
    for (int i = 0; i < op->operand_count; i++)
        if (!is_of_indices(tt_operand(op, i), depth - 1))
            return false;
    return true;
}

/* Do only products take it, as it is, permuted or in another shape? */
static bool feeds_products(const Value *value) { return tt_goes_only_to(tt_is_factor, value, true); }

/* May the load stand where `op` does, further down? */
static bool can_sink(const Op *load, const Op *op)
{
    const Op *between = load;
    for (; between && between != op; between = between->next)
        if (between != load &&
            (tt_writes_memory(between) || tt_has_effects(between) || between->region_count))
            return false;
    return between == op;
}

/* Is the mask one for all that is copied at once? Else (a triangle) elements would be loaded one by one, where registers
 * that have been copied together are selected in an instruction each. */
static bool masks_whole_copies(Combine *c, const Op *load, const Value *mask)
{
    if (!c->axis_infos)
        c->axis_infos = tt_analyze_axis_info(c->function, c->scratch);
    int axis = tt_fastest_axis(c->axis_infos, load);
    return tt_axis_info(c->axis_infos, mask)->constancy[axis] >=
           tt_copied_elements(c->axis_infos, load, axis);
}

/* select(mask, load(p), y) = load(p, mask, y), if the mask is of indices and a product takes it: what is selected first would
 * not be copied to where the product reads it. */
static Value *load_under_mask(Combine *c, Op *op)
{
    enum { DEEPEST = 8 };
    Op *load = op->opcode == OP_select ? tt_def(tt_operand(op, 1), OP_load) : NULL;
    if (!load || load->operand_count != 1 || !tt_is_plain_load(load) || !tt_has_one_use(load->results[0]) ||
        !tt_is_tile(tt_operand(op, 0)->type) || !feeds_products(op->results[0]) ||
        !is_of_indices(tt_operand(op, 0), DEEPEST) || !can_sink(load, op) ||
        !masks_whole_copies(c, load, tt_operand(op, 0)))
        return NULL;
    tt_move_before(load, op);
    tt_add_operand(load, tt_operand(op, 0));
    tt_add_operand(load, tt_operand(op, 2));
    return load->results[0];
}

/* Does the branch of one mask only compute, and little? */
static bool only_computes(const Region *region)
{
    TT_FOR_OPS(op, region)
    if (!tt_has(op, TERMINATOR) && (!tt_is_pure(op) || op->region_count || tt_is_costly(op)))
        return false;
    return true;
}

/* if (c) select(mask, x, y) else x, of a load x = select(mask or not c, x, y), if products take it (the block of a diagonal): what
 * comes out of a branch is in registers, and not copied ahead. */
static Value *mask_of_branch(Builder *b, Op *op)
{
    if (op->opcode != OP_if || !feeds_products(op->results[0]))
        return NULL;
    for (int i = 0; i < 2; i++) {
        Region *masking = op->regions[i], *other = op->regions[1 - i];
        Value *kept = tt_operand(tt_terminator(other), 0), *condition = tt_operand(op, 0);
        const Op *select = tt_def(tt_operand(tt_terminator(masking), 0), OP_select);
        if (!select || select->parent != masking || !tt_is_tile(tt_operand(select, 0)->type) ||
            !tt_def(kept, OP_load) || other->first != other->last || !only_computes(masking))
            continue;
        Value *mask = tt_operand(select, 0), *x = tt_operand(select, 1), *y = tt_operand(select, 2);
        if (x != kept && y != kept)
            continue;
        tt_move_body_before(masking, op);
        if ((x == kept) == (i == 0)) /* kept where the mask says so, or the branch is not taken */
            condition = tt_build2(b, OP_xor, condition, tt_build_int(b, condition->type, 1));
        condition = tt_build_splat(b, condition, mask->type->shape, mask->type->rank);
        mask = tt_build2(b, x == kept ? OP_or : OP_and, mask, condition);
        return tt_build3(b, OP_select, mask, x, y);
    }
    return NULL;
}

/* ---- the walk ------------------------------------------------------------------------------------------ */

static bool visit_region(Combine *c, Region *region)
{
    bool changed = false;
    TT_FOR_OPS_SAFE(op, region)
    {
        for (int i = 0; i < op->region_count; i++)
            changed |= visit_region(c, op->regions[i]);
        if (op->result_count != 1)
            continue;
        Builder b = tt_builder_before(op);
        Value *value = accumulate_onto(&b, op);
        if (!value)
            value = sum_of_products(&b, op);
        if (!value)
            value = load_with_other(op);
        if (!value)
            value = load_under_mask(c, op);
        if (!value)
            value = mask_of_branch(&b, op);
        if (value) {
            tt_replace_op(op, &value);
            changed = true;
        }
    }
    return changed;
}

bool tt_opt_combine(Function *function, Arena *scratch)
{
    Combine combine = {.function = function, .scratch = scratch};
    return visit_region(&combine, function->body);
}
