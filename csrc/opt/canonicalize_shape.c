/* The canonicalize pass on operations that move elements. The forms it aims at: a splat or a broadcast stands
 * outermost, so that as little as possible is computed; dimensions of extent 1 come from expand_dims and not
 * from reshapes, and those that a reshape drops are dropped before anything is loaded or computed: of what a product reads
 * a copy into its buffer has just the product's dimensions. */
#include "opt/canonicalize.h"

static Value *reshape_to(Builder *b, Value *x, const Type *type)
{
    return tt_build_reshape(b, x, type->shape, type->rank);
}

/* Moving equal elements: every operand repeats the same scalar, and so does the result. */
static Value *of_splats(Builder *b, Op *op)
{
    const Type *type = op->results[0]->type;
    Value *scalar = NULL;
    int count = op->opcode == OP_extract ? 1 : op->operand_count;
    for (int i = 0; i < count; i++) {
        const Op *splat = tt_def(tt_operand(op, i), OP_splat);
        if (!splat || (scalar && scalar != tt_operand(splat, 0)))
            return NULL;
        scalar = tt_operand(splat, 0);
    }
    return op->opcode == OP_splat ? NULL
           : tt_is_tile(type)     ? tt_build_splat(b, scalar, type->shape, type->rank)
                                  : scalar;
}

static Value *of_broadcast(Builder *b, Op *op, Value *x)
{
    const Op *inner = tt_def(x, OP_broadcast);
    return inner ? tt_build_broadcast(b, tt_operand(inner, 0), op->results[0]->type->shape) : NULL;
}

/* expand_dims(broadcast x) = broadcast(expand_dims x). */
static Value *of_expand_dims(Builder *b, Op *op, Value *x)
{
    const Op *inner = tt_def(x, OP_broadcast);
    int axis = (int)tt_int_attr(op, ATTR_axis, 0);
    if (inner)
        return tt_build_broadcast(b, tt_build_expand_dims(b, tt_operand(inner, 0), axis),
                                  op->results[0]->type->shape);
    inner = tt_def(x, OP_reshape);
    return inner ? reshape_to(b, tt_operand(inner, 0), op->results[0]->type) : NULL;
}

/* If the reshape only inserts dimensions of extent 1: the first one that it inserts, else -1. */
static int inserted_dimension(const Type *from, const Type *to)
{
    int first = -1, i = 0;
    for (int dim = 0; dim < to->rank; dim++) {
        if (i < from->rank && from->shape[i] == to->shape[dim])
            i++;
        else if (to->shape[dim] != 1)
            return -1;
        else if (first < 0)
            first = dim;
    }
    return i == from->rank ? first : -1;
}

/* If the reshape only drops dimensions of extent 1: which. */
static bool find_dropped(const Type *from, const Type *to, bool dropped[TT_MAX_RANK])
{
    int left = to->rank;
    for (int dim = from->rank - 1; dim >= 0; dim--) {
        dropped[dim] = !left || from->shape[dim] != to->shape[left - 1];
        if (dropped[dim] && from->shape[dim] != 1)
            return false;
        left -= !dropped[dim];
    }
    return !left && to->rank < from->rank;
}

static const Type *type_without(Module *module, const Type *type, const bool dropped[TT_MAX_RANK])
{
    int64_t shape[TT_MAX_RANK];
    int rank = 0;
    for (int dim = 0; dim < type->rank; dim++)
        if (!dropped[dim])
            shape[rank++] = type->shape[dim];
    return tt_tile_type(module, type->element, shape, rank);
}

/* The operation behind the value on what has the dimensions no more, at most so many operations far; where it is now, since it may
 * be a load. NULL: others use the value, or it is no operation to be done so. */
static Value *computed_without(Module *module, const Value *x, const bool dropped[TT_MAX_RANK], int depth)
{
    enum { MOST_OPERANDS = 3 };
    Op *inner = x->op;
    if (!inner || !depth || inner->operand_count > MOST_OPERANDS)
        return NULL;
    bool is_load = inner->opcode == OP_load && tt_is_plain_load(inner) &&
                   !tt_def(tt_operand(inner, 0), OP_block_pointers); /* see block_copies.c */
    if (inner->opcode != OP_broadcast && !(tt_has_one_use(x) && (is_load || tt_has(inner, ELEMENTWISE))))
        return NULL;
    Value *operands[MOST_OPERANDS];
    Builder b = tt_builder_before(inner);
    b.loc = inner->loc;
    for (int i = 0; i < inner->operand_count; i++) {
        Value *operand = tt_operand(inner, i);
        operands[i] =
            tt_is_tile(operand->type) ? computed_without(module, operand, dropped, depth - 1) : operand;
        if (!operands[i])
            operands[i] = reshape_to(&b, operand, type_without(module, operand->type, dropped));
    }
    Value *result = tt_build(&b, inner->opcode, operands, inner->operand_count,
                             type_without(module, x->type, dropped), tt_copy_attrs(module, inner->attrs));
    result->name = x->name;
    return result;
}

static Value *of_dropped_dimensions(Module *module, const Op *op, const Value *x)
{
    enum { MOST_DEPTH = 32 };
    bool dropped[TT_MAX_RANK];
    return find_dropped(x->type, op->results[0]->type, dropped)
               ? computed_without(module, x, dropped, MOST_DEPTH)
               : NULL;
}

static Value *of_reshape(Builder *b, Op *op, Value *x)
{
    const Type *type = op->results[0]->type;
    Op *inner = x->op;
    if (inner && (inner->opcode == OP_reshape || inner->opcode == OP_expand_dims))
        return tt_operand(inner, 0)->type == type ? tt_operand(inner, 0)
                                                  : reshape_to(b, tt_operand(inner, 0), type);
    int axis = inserted_dimension(x->type, type);
    while (axis >= 0 && x->type != type) {
        x = tt_build_expand_dims(b, x, axis);
        axis = inserted_dimension(x->type, type);
    }
    return x->type == type ? x : of_dropped_dimensions(b->module, op, x);
}

/* The only one along an axis is all there is. */
static Value *of_extract(Builder *b, Op *op, Value *x)
{
    int64_t index;
    bool is_only = tt_is_tile(op->results[0]->type) && x->type->shape[tt_int_attr(op, ATTR_axis, 0)] == 1 &&
                   tt_constant_int(tt_operand(op, 1), &index) && !index;
    return is_only ? reshape_to(b, x, op->results[0]->type) : NULL;
}

/* Does the order move only dimensions of extent 1? Then nothing moves in memory. */
static bool keeps_order(const Type *type, const Attr *order)
{
    int64_t last = -1;
    for (int i = 0; i < type->rank; i++)
        if (type->shape[order->ints[i]] != 1) {
            if (order->ints[i] < last)
                return false;
            last = order->ints[i];
        }
    return true;
}

static Value *of_permute(Builder *b, Op *op, Value *x)
{
    const Attr *order = tt_find_attr(op, ATTR_order);
    if (keeps_order(x->type, order))
        return reshape_to(b, x, op->results[0]->type);
    const Op *inner = tt_def(x, OP_broadcast);
    if (inner)
        return tt_build_broadcast(b, tt_build_permute(b, tt_operand(inner, 0), order->ints),
                                  op->results[0]->type->shape);
    inner = tt_def(x, OP_permute);
    if (!inner)
        return NULL;
    int64_t composed[TT_MAX_RANK];
    for (int i = 0; i < order->count; i++)
        composed[i] = tt_find_attr(inner, ATTR_order)->ints[order->ints[i]];
    return tt_build_permute(b, tt_operand(inner, 0), composed);
}

/* join(split x) = x, and join(x, x) repeats x. */
static Value *of_join(Builder *b, Op *op)
{
    Value *first = tt_operand(op, 0), *second = tt_operand(op, 1);
    const Type *type = op->results[0]->type;
    if (first == second)
        return tt_build_broadcast(b, tt_build_expand_dims(b, first, type->rank - 1), type->shape);
    const Op *split = tt_def(first, OP_split);
    bool whole = split && second->op == split && first->index == 0 && second->index == 1;
    return whole ? tt_operand(split, 0) : NULL;
}

static Value *build_slice(Builder *b, Value *x, const Type *type, const int64_t *offsets,
                          const int64_t *strides)
{
    Attr *attrs = tt_attr_ints(b->module, ATTR_strides, strides, type->rank, NULL);
    return tt_build(b, OP_slice, &x, 1, type,
                    tt_attr_ints(b->module, ATTR_offsets, offsets, type->rank, attrs));
}

static Value *of_slice(Builder *b, Op *op, Value *x)
{
    const Attr *offsets = tt_find_attr(op, ATTR_offsets), *strides = tt_find_attr(op, ATTR_strides);
    const Type *type = op->results[0]->type;
    const Op *range = tt_def(x, OP_range), *inner = tt_def(x, OP_slice);
    if (range && strides->ints[0] == 1) {
        int64_t start = tt_int_attr(range, ATTR_start, 0) + offsets->ints[0];
        return tt_build_range(b, start, start + type->shape[0]);
    }
    if (!inner)
        return NULL;
    int64_t first[TT_MAX_RANK], step[TT_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        int64_t inner_stride = tt_find_attr(inner, ATTR_strides)->ints[i];
        first[i] = tt_find_attr(inner, ATTR_offsets)->ints[i] + offsets->ints[i] * inner_stride;
        step[i] = strides->ints[i] * inner_stride;
    }
    return build_slice(b, tt_operand(inner, 0), type, first, step);
}

Value *tt_simplify_shape(Builder *b, Op *op)
{
    Value *x = tt_operand(op, 0), *value = of_splats(b, op);
    if (value)
        return value;
    switch (op->opcode) {
    case OP_broadcast:
        return of_broadcast(b, op, x);
    case OP_expand_dims:
        return of_expand_dims(b, op, x);
    case OP_reshape:
        return of_reshape(b, op, x);
    case OP_extract:
        return of_extract(b, op, x);
    case OP_permute:
        return of_permute(b, op, x);
    case OP_join:
        return of_join(b, op);
    case OP_slice:
        return of_slice(b, op, x);
    default:
        return NULL;
    }
}

bool tt_simplify_split(Op *op)
{
    const Op *join = op->opcode == OP_split ? tt_def(tt_operand(op, 0), OP_join) : NULL;
    if (!join)
        return false;
    tt_replace_op(op, (Value *[]){tt_operand(join, 0), tt_operand(join, 1)});
    return true;
}
