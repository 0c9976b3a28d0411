/* How an operation carries the layout of one of its tiles to another. Distributed layouts made here have place bits
 * whose image is a single element bit or nothing; every function below keeps it so. */
#include "gpu/passes.h"
#include "opt/pass.h"

static const LinearLayout *intern(const Op *op, LinearLayout layout)
{
    return tt_intern_layout(op->parent->function->module, &layout);
}

static int axis_of(const Op *op) { return (int)tt_int_attr(op, ATTR_axis, 0); }
static int64_t padded(const Type *type, int axis) { return tt_next_pow2(type->shape[axis]); }
static int padded_bits(const Type *type, int axis) { return tt_log2(padded(type, axis)); }

static void padded_shape(const Type *type, int64_t *shape)
{
    for (int i = 0; i < type->rank; i++)
        shape[i] = padded(type, i);
}

/* ---- reshape ------------------------------------------------------------------------------------------------------------- */

/* Is the row-major number of an element in dimensions [first, end) the same in the padded extents? */
static bool is_dense(const Type *type, int first, int end)
{
    while (first < end && type->shape[first] == 1)
        first++;
    for (int i = first + 1; i < end; i++)
        if (!tt_is_pow2(type->shape[i]))
            return false;
    return true;
}

/* A reshape that keeps every element's place in the padded row-major order. */
/* The shapes fall into groups of dimensions with equal products: (6, 5) and (2, 3, 5) into 6 = 2 * 3 and 5 = 5. */
static bool reshape_keeps_order(const Type *from, const Type *to)
{
    int f = 0, t = 0;
    while (f < from->rank || t < to->rank) {
        int f_first = f, t_first = t;
        int64_t f_product = f < from->rank ? from->shape[f++] : 1,
                t_product = t < to->rank ? to->shape[t++] : 1;
        while (f_product != t_product)
            if (f_product < t_product)
                f_product *= from->shape[f++];
            else
                t_product *= to->shape[t++];
        bool same = f - f_first == 1 && t - t_first == 1;
        if (!same && !(is_dense(from, f_first, f) && is_dense(to, t_first, t)))
            return false;
    }
    return true;
}

static const LinearLayout *reshaped(const Op *op, const Type *from, const Type *to,
                                    const LinearLayout *layout)
{
    int64_t shape[TT_MAX_RANK];
    if (!reshape_keeps_order(from, to))
        return NULL;
    padded_shape(to, shape);
    return intern(op, tt_layout_reshape(layout, shape, to->rank));
}

/* ---- the other shape operations ------------------------------------------------------------------------------------------- */

/* Clears the coordinates along the dimensions that the operand of a broadcast does not have. */
static const LinearLayout *projected(const Op *op, const LinearLayout *layout)
{
    const Type *from = tt_operand(op, 0)->type;
    LinearLayout result = *layout;
    for (int axis = 0; axis < from->rank; axis++)
        if (padded(from, axis) != 1ll << layout->out_bits[axis]) {
            result = tt_layout_slice(&result, axis);
            result = tt_layout_expand(&result, axis);
        }
    return intern(op, tt_layout_without_register_copies(&result));
}

static const LinearLayout *permuted(const Op *op, const LinearLayout *layout, bool inverse)
{
    const Attr *attr = tt_find_attr(op, ATTR_order);
    int order[TT_MAX_RANK];
    for (int i = 0; i < attr->count; i++)
        if (inverse)
            order[attr->ints[i]] = i;
        else
            order[i] = (int)attr->ints[i];
    return intern(op, tt_layout_permute(layout, order));
}

/* What a reduction along `axis` leaves; the copies of it in registers go. */
static const LinearLayout *sliced(const Op *op, const LinearLayout *layout, int axis)
{
    if (layout->rank == 1)
        return NULL; /* a scalar */
    LinearLayout result = tt_layout_slice(layout, axis);
    return intern(op, tt_layout_without_register_copies(&result));
}

/* The second operand of a cat is the upper half of a dimension: a new highest register bit. */
static bool cat_is_a_bit(const Op *op)
{
    const Type *a = tt_operand(op, 0)->type, *b = tt_operand(op, 1)->type;
    return a == b && tt_is_pow2(a->shape[axis_of(op)]);
}

static const LinearLayout *cat_forward(const Op *op, const LinearLayout *layout)
{
    if (!cat_is_a_bit(op))
        return NULL;
    int64_t shape[TT_MAX_RANK];
    padded_shape(op->results[0]->type, shape);
    return intern(op, tt_layout_broadcast(layout, shape)); /* it adds just that bit */
}

static const LinearLayout *cat_backward(const Op *op, const LinearLayout *layout)
{
    if (!cat_is_a_bit(op))
        return NULL;
    int axis = axis_of(op), registers = layout->in_bits[LAYOUT_REGISTER],
        start = tt_layout_axis_start(layout, axis);
    int last = start + layout->out_bits[axis] - 1;
    LinearLayout result = *layout;
    result.out_bits[axis]--;
    int to = 0, found = 0;
    for (int i = 0; i < tt_layout_in_total(layout); i++) {
        uint64_t base = layout->bases[i], low = base & ((1ull << last) - 1);
        if (base >> last & 1) {
            if (i >= registers || base != 1ull << last)
                return NULL;
            found++;
        } else {
            result.bases[to++] = low | base >> (last + 1) << last;
        }
    }
    result.in_bits[LAYOUT_REGISTER] -= found;
    return found == 1 ? intern(op, result) : NULL;
}

bool tt_slice_bits(const Op *op, uint64_t columns[64], uint64_t *fixed)
{
    const Type *from = tt_operand(op, 0)->type, *to = op->results[0]->type;
    LinearLayout from_layout = tt_padded_layout(from);
    const int64_t *offsets = tt_find_attr(op, ATTR_offsets)->ints,
                  *strides = tt_find_attr(op, ATTR_strides)->ints;
    int at = 0;
    *fixed = 0;
    for (int axis = to->rank - 1; axis >= 0; axis--) {
        int start = tt_layout_axis_start(&from_layout, axis), bits = padded_bits(to, axis);
        *fixed |= (uint64_t)offsets[axis] << start;
        if (!bits)
            continue;
        if (strides[axis] < 0 || !tt_is_pow2(strides[axis]))
            return false;
        int first = tt_log2(strides[axis]);
        if (offsets[axis] & ((1ll << bits) - 1) << first)
            return false;
        for (int bit = 0; bit < bits; bit++)
            columns[at++] = 1ull << (start + first + bit);
    }
    return true;
}

/* The selected elements in the threads that hold them, if the choice is one between registers. */
static const LinearLayout *slice_forward(const Op *op, const LinearLayout *layout)
{
    uint64_t columns[64], fixed, varying = 0, image;
    LinearLayout result = tt_padded_layout(op->results[0]->type);
    if (!tt_slice_bits(op, columns, &fixed))
        return NULL;
    int bits = tt_layout_out_total(&result), to = 0, registers = layout->in_bits[LAYOUT_REGISTER];
    for (int i = 0; i < bits; i++)
        varying |= columns[i];
    memcpy(result.in_bits, layout->in_bits, sizeof result.in_bits);
    for (int i = 0; i < tt_layout_in_total(layout); i++)
        if (!(layout->bases[i] & ~varying)) {
            bool found = tt_f2_solve(columns, bits, layout->bases[i], &image);
            TT_ASSERT(found);
            result.bases[to++] = image;
        } else if (i < registers && !(layout->bases[i] & varying)) {
            result.in_bits[LAYOUT_REGISTER]--;
        } else {
            return NULL;
        }
    return intern(op, result);
}

static const LinearLayout *split_forward(const Op *op, const LinearLayout *layout)
{
    LinearLayout result;
    return layout->rank > 1 && tt_layout_split(layout, &result) ? intern(op, result) : NULL;
}

const LinearLayout *tt_split_after_exchange(const Op *op, const LinearLayout *layout)
{
    LinearLayout exchanged = *layout;
    int registers = layout->in_bits[LAYOUT_REGISTER], given = -1, pair = registers;
    while (pair < tt_layout_in_total(layout) && layout->bases[pair] != 1)
        pair++;
    for (int i = 0; i < registers; i++)
        if (layout->bases[i] && (given < 0 || layout->bases[i] < layout->bases[given]))
            given = i;
    if (given < 0 || pair == tt_layout_in_total(layout))
        return NULL;
    exchanged.bases[pair] = layout->bases[given];
    exchanged.bases[given] = 1;
    return split_forward(op, &exchanged);
}

/* Lanes and warps that have copies, as a reduction leaves them, have different elements; what they do not suffice for is in
 * registers. */
static const LinearLayout *broadcast_forward(const Op *op, const LinearLayout *layout)
{
    int64_t shape[TT_MAX_RANK];
    padded_shape(op->results[0]->type, shape);
    LinearLayout result = tt_layout_broadcast(layout, shape);
    int total = tt_layout_in_total(&result), first = layout->in_bits[LAYOUT_REGISTER],
        end = result.in_bits[LAYOUT_REGISTER], added = first;
    for (int place = end; place < total && added < end; place++)
        if (!result.bases[place])
            result.bases[place] = result.bases[added++];
    memmove(result.bases + first, result.bases + added, sizeof(uint64_t) * (size_t)(total - added));
    memset(result.bases + total - (added - first), 0, sizeof(uint64_t) * (size_t)(added - first));
    result.in_bits[LAYOUT_REGISTER] -= added - first;
    return intern(op, result);
}

/* ---- all of them ------------------------------------------------------------------------------------------------------------ */

const LinearLayout *tt_layout_forward(const Op *op, int operand, const LinearLayout *layout)
{
    switch (op->opcode) {
    case OP_expand_dims:
        return intern(op, tt_layout_expand(layout, axis_of(op)));
    case OP_broadcast:
        return broadcast_forward(op, layout);
    case OP_reshape:
        return reshaped(op, tt_operand(op, 0)->type, op->results[0]->type, layout);
    case OP_permute:
        return permuted(op, layout, false);
    case OP_join:
        return intern(op, tt_layout_join(layout));
    case OP_split:
        return split_forward(op, layout);
    case OP_cat:
        return cat_forward(op, layout);
    case OP_slice:
        return slice_forward(op, layout);
    case OP_reduce:
    case OP_extract:
        return sliced(op, layout, axis_of(op));
    case OP_gather:
        return operand == 1 ? layout : NULL;
    case OP_convert_layout:
        return NULL;
    default:
        return tt_has(op, ELEMENTWISE | ONE_LAYOUT) ? layout : NULL;
    }
}

const LinearLayout *tt_layout_backward(const Op *op, int operand, const LinearLayout *layout)
{
    LinearLayout result;
    switch (op->opcode) {
    case OP_expand_dims:
        return intern(op, tt_layout_slice(layout, axis_of(op)));
    case OP_broadcast:
        return projected(op, layout);
    case OP_reshape:
        return reshaped(op, op->results[0]->type, tt_operand(op, 0)->type, layout);
    case OP_permute:
        return permuted(op, layout, true);
    case OP_join:
        return layout->rank > 1 && tt_layout_split(layout, &result) ? intern(op, result) : NULL;
    case OP_split:
        return intern(op, tt_layout_join(layout));
    case OP_cat:
        return cat_backward(op, layout);
    case OP_slice:
    case OP_reduce:
    case OP_extract:
    case OP_convert_layout:
        return NULL;
    default:
        return tt_layout_forward(op, operand, layout);
    }
}

bool tt_is_layout_free(const Op *op)
{
    if (!tt_has(op, PURE) || tt_is_costly(op) || op->region_count)
        return false;
    if (tt_has(op, ELEMENTWISE) || !op->operand_count)
        return true;
    switch (op->opcode) {
    case OP_splat:
    case OP_expand_dims:
    case OP_broadcast:
    case OP_permute:
    case OP_hint:
        return true;
    case OP_reshape:
        return reshape_keeps_order(tt_operand(op, 0)->type, op->results[0]->type);
    default:
        return false;
    }
}

int tt_cheap_size(const Value *value, Map *sizes)
{
    enum { LONGEST = 24 };
    void **slot = tt_map_slot_ptr(sizes, value);
    if (*slot)
        return (int)(intptr_t)*slot - 1;
    int size = value->op && tt_is_layout_free(value->op);
    for (int i = 0; size && i < value->op->operand_count; i++) {
        const Value *operand = tt_operand(value->op, i);
        int behind = tt_is_tile(operand->type) ? tt_cheap_size(operand, sizes) : 0;
        size = (tt_is_tile(operand->type) && !behind) || size + behind > LONGEST ? 0 : size + behind;
    }
    *tt_map_slot_ptr(sizes, value) = (void *)(intptr_t)(size + 1); /* the table may have grown */
    return size;
}

int tt_register_of(const LinearLayout *layout, uint64_t element)
{
    uint64_t registers;
    bool found = tt_f2_solve(layout->bases, layout->in_bits[LAYOUT_REGISTER], element, &registers);
    TT_ASSERT(found);
    return (int)registers;
}

/* Does every element hold its coordinate along the axis, but for bits that are the other way round? Says which. */
static bool is_coordinate(const Value *value, int axis, int64_t *flipped)
{
    const Op *op = value->op;
    if (!op)
        return false;
    switch (op->opcode) {
    case OP_range:
        *flipped = 0;
        return axis == 0 && tt_int_attr(op, ATTR_start, 0) == 0;
    case OP_xor: {
        int64_t constant;
        for (int i = 0; i < 2; i++)
            if (tt_constant_int(tt_operand(op, i), &constant) &&
                is_coordinate(tt_operand(op, 1 - i), axis, flipped)) {
                *flipped ^= constant;
                return true;
            }
        return false;
    }
    case OP_sub: { /* counted from the end */
        int64_t last = value->type->shape[axis] - 1, constant;
        if (!tt_is_pow2(last + 1) || !tt_constant_int(tt_operand(op, 0), &constant) || constant != last ||
            !is_coordinate(tt_operand(op, 1), axis, flipped))
            return false;
        *flipped ^= last;
        return true;
    }
    case OP_broadcast:
        return tt_operand(op, 0)->type->shape[axis] == value->type->shape[axis] &&
               is_coordinate(tt_operand(op, 0), axis, flipped);
    case OP_expand_dims: {
        int added = axis_of(op);
        return added != axis && is_coordinate(tt_operand(op, 0), axis - (added < axis), flipped);
    }
    case OP_permute:
        return is_coordinate(tt_operand(op, 0), (int)tt_find_attr(op, ATTR_order)->ints[axis], flipped);
    case OP_reshape: {
        const Type *from = tt_operand(op, 0)->type, *to = value->type;
        return from->rank == 1 && to->shape[axis] == from->shape[0] &&
               is_coordinate(tt_operand(op, 0), 0, flipped);
    }
    default:
        return false;
    }
}

bool tt_gathers_at_distance(const Op *op, uint64_t *distance)
{
    const Type *type = tt_operand(op, 0)->type;
    int axis = axis_of(op);
    int64_t flipped;
    if (!tt_same_shape(type, op->results[0]->type) || !tt_is_pow2(type->shape[axis]) ||
        !is_coordinate(tt_operand(op, 1), axis, &flipped) || flipped < 0 || flipped >= type->shape[axis])
        return false;
    *distance = (uint64_t)flipped;
    return true;
}
