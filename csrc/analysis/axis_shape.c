/* Axis analysis of operations that move elements; axis_info.c explains the reasoning. */
#include "analysis/axis.h"

static void copy_dimension(AxisInfo *info, int dim, const AxisInfo *from, int from_dim)
{
    info->contiguity[dim] = from->contiguity[from_dim];
    info->constancy[dim] = from->constancy[from_dim];
    info->divisibility[dim] = from->divisibility[from_dim];
    info->apart[dim] = from->apart[from_dim];
    info->looked_up[dim] = from->looked_up[from_dim];
}

/* Every element comes from x: its sign, and that all are one constant. */
static AxisInfo moved(const Op *op, AxisOperand x)
{
    AxisInfo info = tt_unknown_axes(op->results[0]->type);
    info.sign = x.info->sign;
    info.is_constant = x.info->is_constant;
    info.constant = x.info->constant;
    return info;
}

static bool is_uniform(AxisOperand x)
{
    for (int dim = 0; dim < x.info->rank; dim++)
        if (x.info->constancy[dim] < tt_extent(x.type, dim))
            return false;
    return true;
}

/* A tile of elements that are all equal. */
static AxisInfo uniform(const Op *op, AxisOperand x)
{
    AxisInfo info = moved(op, x);
    for (int dim = 0; dim < info.rank; dim++) {
        info.constancy[dim] = tt_extent(op->results[0]->type, dim);
        info.divisibility[dim] = tt_divisor_of_all(x);
    }
    return info;
}

static AxisInfo expanded(const Op *op, AxisOperand x)
{
    AxisInfo info = moved(op, x);
    int axis = (int)tt_int_attr(op, ATTR_axis, 0);
    for (int dim = 0, from = 0; dim < info.rank; dim++)
        if (dim != axis)
            copy_dimension(&info, dim, x.info, from++);
    info.divisibility[axis] = tt_divisor_of_all(x);
    return info;
}

static AxisInfo broadcast(const Op *op, AxisOperand x)
{
    AxisInfo info = moved(op, x);
    for (int dim = 0; dim < info.rank; dim++) {
        copy_dimension(&info, dim, x.info, dim);
        if (tt_extent(x.type, dim) == 1)
            info.constancy[dim] = tt_extent(op->results[0]->type, dim);
    }
    return info;
}

static AxisInfo permuted(const Op *op, AxisOperand x)
{
    AxisInfo info = moved(op, x);
    const Attr *order = tt_find_attr(op, ATTR_order);
    for (int dim = 0; dim < info.rank; dim++)
        copy_dimension(&info, dim, x.info, (int)order->ints[dim]);
    return info;
}

static int next_wide_dimension(const Type *type, int dim)
{
    while (dim < type->rank && type->shape[dim] == 1)
        dim++;
    return dim;
}

static int last_wide_dimension(const Type *type)
{
    int dim = type->rank - 1;
    while (dim > 0 && type->shape[dim] == 1)
        dim--;
    return dim;
}

/* Do the types differ in dimensions of extent 1 only? */
static bool differ_in_ones(const Type *a, const Type *b)
{
    int i = next_wide_dimension(a, 0), j = next_wide_dimension(b, 0);
    while (i < a->rank && j < b->rank && a->shape[i] == b->shape[j]) {
        i = next_wide_dimension(a, i + 1);
        j = next_wide_dimension(b, j + 1);
    }
    return i == a->rank && j == b->rank;
}

static AxisInfo reshaped(const Op *op, AxisOperand x)
{
    const Type *to = op->results[0]->type;
    AxisInfo info = moved(op, x);
    int64_t divisor = tt_divisor_of_all(x);
    for (int dim = 0; dim < info.rank; dim++)
        info.divisibility[dim] = divisor;
    if (is_uniform(x))
        return uniform(op, x);
    if (differ_in_ones(x.type, to)) {
        for (int dim = next_wide_dimension(to, 0), from = next_wide_dimension(x.type, 0); dim < to->rank;
             dim = next_wide_dimension(to, dim + 1), from = next_wide_dimension(x.type, from + 1))
            copy_dimension(&info, dim, x.info, from);
        return info;
    }
    /* In row-major order the groups of the last dimension are groups of the whole, if no row cuts one off. */
    int dim = last_wide_dimension(to), from = last_wide_dimension(x.type);
    int64_t row = tt_extent(x.type, from), extent = tt_extent(to, dim);
    info.contiguity[dim] = tt_gcd(tt_gcd(x.info->contiguity[from], row), extent);
    info.constancy[dim] = tt_gcd(tt_gcd(x.info->constancy[from], row), extent);
    if (info.contiguity[dim] > 1)
        info.divisibility[dim] = tt_divisor_at(x, from, info.contiguity[dim]);
    return info;
}

/* Elements of one operand or the other in a dimension that the operation leaves alone. */
static void meet_dimension(AxisInfo *info, AxisOperand a, AxisOperand b, int dim)
{
    int64_t extent = tt_extent(a.type, dim);
    info->contiguity[dim] = tt_meet_groups(a.info->contiguity[dim], b.info->contiguity[dim], extent);
    info->constancy[dim] = tt_meet_groups(a.info->constancy[dim], b.info->constancy[dim], extent);
    int64_t group = info->contiguity[dim] > 1 ? info->contiguity[dim] : info->constancy[dim];
    info->divisibility[dim] = tt_gcd(tt_divisor_at(a, dim, group), tt_divisor_at(b, dim, group));
    info->apart[dim] = TT_MIN(a.info->apart[dim], b.info->apart[dim]);
    info->looked_up[dim] = a.info->looked_up[dim] || b.info->looked_up[dim];
}

static AxisInfo joined(const Op *op, AxisOperand a, AxisOperand b)
{
    AxisInfo info = tt_unknown_axes(op->results[0]->type);
    info.sign = TT_MAX(a.info->sign, b.info->sign);
    for (int dim = 0; dim + 1 < info.rank; dim++)
        meet_dimension(&info, a, b, dim);
    info.divisibility[info.rank - 1] = tt_gcd(tt_divisor_of_all(a), tt_divisor_of_all(b));
    return info;
}

/* Drops one dimension; a scalar remains of rank 1. */
static AxisInfo dropped(const Op *op, AxisOperand x, int axis)
{
    AxisInfo info = moved(op, x);
    if (x.info->rank == 1) {
        info.divisibility[0] = tt_divisor_of_all(x);
        return info;
    }
    for (int dim = 0, to = 0; dim < x.info->rank; dim++)
        if (dim != axis)
            copy_dimension(&info, to++, x.info, dim);
    return info;
}

/* The groups of both parts, such that the second part begins at one. */
static int64_t groups_of_parts(int64_t a, int64_t a_extent, int64_t b, int64_t b_extent)
{
    int64_t first = a >= a_extent ? a_extent : tt_gcd(a, a_extent);
    return b >= b_extent ? first : tt_gcd(first, b);
}

static AxisInfo concatenated(const Op *op, AxisOperand a, AxisOperand b)
{
    AxisInfo info = tt_unknown_axes(op->results[0]->type);
    info.sign = TT_MAX(a.info->sign, b.info->sign);
    int axis = (int)tt_int_attr(op, ATTR_axis, 0);
    for (int dim = 0; dim < info.rank; dim++) {
        int64_t first = tt_extent(a.type, dim), second = tt_extent(b.type, dim);
        if (dim != axis) {
            meet_dimension(&info, a, b, dim);
            continue;
        }
        info.contiguity[dim] =
            groups_of_parts(a.info->contiguity[dim], first, b.info->contiguity[dim], second);
        info.constancy[dim] = groups_of_parts(a.info->constancy[dim], first, b.info->constancy[dim], second);
        int64_t group = info.contiguity[dim] > 1 ? info.contiguity[dim] : info.constancy[dim];
        info.divisibility[dim] = tt_gcd(tt_divisor_at(a, dim, group), tt_divisor_at(b, dim, group));
    }
    return info;
}

/* Groups that remain when the first `offset` elements are cut away. */
static int64_t groups_behind(int64_t group, int64_t extent, int64_t offset)
{
    return group >= extent ? extent : tt_gcd(group, offset);
}

static AxisInfo sliced(const Op *op, AxisOperand x)
{
    AxisInfo info = moved(op, x);
    const Attr *offsets = tt_find_attr(op, ATTR_offsets), *strides = tt_find_attr(op, ATTR_strides);
    for (int dim = 0; dim < info.rank; dim++) {
        int64_t extent = tt_extent(x.type, dim), offset = offsets->ints[dim];
        bool plain = strides->ints[dim] == 1;
        int64_t contiguity = x.info->contiguity[dim], constancy = x.info->constancy[dim];
        info.divisibility[dim] = tt_divisor_at(x, dim, 1);
        if (plain || constancy >= extent)
            info.constancy[dim] = groups_behind(constancy, extent, offset);
        if (!plain || contiguity == 1)
            continue;
        info.contiguity[dim] = groups_behind(contiguity, extent, offset);
        /* The result's groups begin at multiples of its group's size in x, or, of one run, at `offset`. */
        int64_t unit = tt_axis_unit(x.type);
        info.divisibility[dim] = contiguity >= extent ? tt_gcd(x.info->divisibility[dim], offset * unit)
                                                      : tt_divisor_at(x, dim, info.contiguity[dim]);
    }
    return info;
}

AxisInfo tt_axes_of_shape(const Op *op, const AxisOperand *x)
{
    switch (op->opcode) {
    case OP_splat:
        return uniform(op, x[0]);
    case OP_expand_dims:
        return expanded(op, x[0]);
    case OP_broadcast:
        return broadcast(op, x[0]);
    case OP_reshape:
        return reshaped(op, x[0]);
    case OP_permute:
        return permuted(op, x[0]);
    case OP_join:
        return joined(op, x[0], x[1]);
    case OP_split:
        return dropped(op, x[0], x[0].info->rank - 1);
    case OP_cat:
        return concatenated(op, x[0], x[1]);
    case OP_slice:
        return sliced(op, x[0]);
    case OP_extract:
        return dropped(op, x[0], (int)tt_int_attr(op, ATTR_axis, 0));
    default:
        return tt_unknown_axes(op->results[0]->type);
    }
}
