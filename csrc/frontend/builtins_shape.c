/* Builtins that move elements and compute nothing: broadcasting, reshaping, permuting, joining, picking. */
#include "frontend/builtins.h"

/* broadcast(input, other) */
Term tt_builtin_broadcast(Walker *w, Term *args)
{
    Term pair[] = {tt_arg_value(w, args, 0), tt_arg_value(w, args, 1)};
    tt_broadcast_together(w, "tl.broadcast", pair, 2);
    return tt_tuple_term(w, pair, 2);
}

/* A `*shape` parameter: f(x, 4, 8), f(x, (4, 8)) or f(x, [4, 8]). */
static int variadic_ints(Walker *w, Term *args, int index, int64_t *out)
{
    const Term *items, *unused;
    int count, inner;
    if (tt_term_items(w, args[index], &items, &count) && count == 1 &&
        tt_term_items(w, items[0], &unused, &inner))
        args[index] = items[0];
    return tt_arg_ints(w, args, index, out);
}

/* broadcast_to(input, *shape) */
Term tt_builtin_broadcast_to(Walker *w, Term *args)
{
    Shape shape;
    shape.rank = variadic_ints(w, args, 1, shape.extents);
    return tt_broadcast_to(w, "tl.broadcast_to", tt_arg_value(w, args, 0), &shape);
}

/* One extent of -1 stands for what is left. */
static void infer_extent(Walker *w, Term t, Shape *shape)
{
    int unknown = -1;
    int64_t known = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->extents[i] == -1 && unknown >= 0)
            tt_fail(w, "%s can infer one extent of -1, not several", tt_call_name(w));
        if (shape->extents[i] == -1)
            unknown = i;
        else if (shape->extents[i] > 0 && shape->extents[i] < INT32_MAX && known < INT32_MAX)
            known *= shape->extents[i];
    }
    Shape from = tt_shape_of(t);
    if (unknown >= 0 && tt_shape_count(&from) % known == 0)
        shape->extents[unknown] = tt_shape_count(&from) / known;
}

/* reshape(input, *shape, can_reorder), view(input, *shape) */
Term tt_builtin_reshape(Walker *w, Term *args)
{
    Term input = tt_arg_value(w, args, 0);
    Shape shape;
    shape.rank = variadic_ints(w, args, 1, shape.extents);
    infer_extent(w, input, &shape);
    return tt_reshape(w, tt_call_name(w), input, &shape);
}

/* expand_dims(input, axis): axes of the result, one or several. */
Term tt_builtin_expand_dims(Walker *w, Term *args)
{
    Term t = tt_arg_value(w, args, 0);
    int64_t axes[TT_MAX_RANK];
    int axis_count = tt_arg_ints(w, args, 1, axes), rank = tt_shape_of(t).rank + axis_count;
    if (rank > TT_MAX_RANK)
        tt_fail(w, "tl.expand_dims would give more than %d dimensions", TT_MAX_RANK);
    bool is_new[TT_MAX_RANK] = {0}, has_twice = false;
    Shape normalized = {.rank = axis_count};
    for (int i = 0; i < axis_count; i++) {
        int axis = tt_check_axis(w, "tl.expand_dims", axes[i], rank);
        has_twice |= is_new[axis];
        is_new[axis] = true;
        normalized.extents[i] = axis;
    }
    if (has_twice)
        tt_fail(w, "tl.expand_dims got duplicate axes, normalized axes = %s", tt_shape_text(w, &normalized));
    for (int i = 0; i < rank; i++)
        if (is_new[i])
            t = tt_expand_dims(w, "tl.expand_dims", t, i);
    return t;
}

static Term permute(Walker *w, Term t, int64_t *order, int count)
{
    int rank = tt_shape_of(t).rank;
    bool seen[TT_MAX_RANK] = {0};
    Shape given = {.rank = count};
    memcpy(given.extents, order, sizeof(int64_t) * (size_t)count);
    for (int i = 0; i < count; i++) {
        order[i] += order[i] < 0 ? rank : 0;
        if (count != rank || order[i] < 0 || order[i] >= rank || seen[order[i]])
            tt_fail(w, "%s takes each dimension of %s once, and got %s", tt_call_name(w), tt_describe(w, t),
                    tt_shape_text(w, &given));
        seen[order[i]] = true;
    }
    return tt_permute(w, t, order);
}

static Term tile_argument(Walker *w, Term *args, int index)
{
    Term t = tt_arg_value(w, args, index);
    if (!tt_is_tile_term(t))
        tt_arg_error(w, args, index, "a tile");
    return t;
}

/* permute(input, *dims) */
Term tt_builtin_permute(Walker *w, Term *args)
{
    int64_t order[TT_MAX_RANK];
    Term t = tile_argument(w, args, 0);
    int given = variadic_ints(w, args, 1, order);
    if (!given)
        tt_fail(w, "%s takes each dimension of %s once, and got none", tt_call_name(w), tt_describe(w, t));
    return permute(w, t, order, given);
}

/* trans(input, *dims): the last two dimensions change places when none are given. */
Term tt_builtin_trans(Walker *w, Term *args)
{
    int64_t order[TT_MAX_RANK];
    Term t = tile_argument(w, args, 0);
    int given = variadic_ints(w, args, 1, order), rank = tt_shape_of(t).rank;
    if (given)
        return permute(w, t, order, given);
    if (rank < 2)
        tt_fail_with_remedy(w, "add a dimension first, as in x[:, None]",
                            "tl.trans takes a tile of two dimensions or more, not %s", tt_describe(w, t));
    for (int i = 0; i < rank; i++)
        order[i] = i < rank - 2 ? i : 2 * rank - 3 - i;
    return tt_permute(w, t, order);
}

/* join(a, b) */
Term tt_builtin_join(Walker *w, Term *args)
{
    /* A number takes the type of what it joins; two tensors must agree. */
    for (int i = 0; i < 2; i++)
        if (tt_is_number(args[i]) && tt_is_value(args[1 - i]) && !tt_dtype_is_pointer(args[1 - i].dtype))
            args[i] = tt_convert_operand(w, "tl.join", args[i], args[1 - i].dtype);
    Term pair[] = {tt_arg_value(w, args, 0), tt_arg_value(w, args, 1)};
    if (pair[0].dtype != pair[1].dtype)
        tt_fail_with_remedy(w, "convert one of them with .to(...)",
                            "tl.join takes two tensors of one element type, not %s and %s",
                            tt_describe(w, pair[0]), tt_describe(w, pair[1]));
    tt_broadcast_together(w, "tl.join", pair, 2);
    Shape shape = tt_shape_of(pair[0]);
    if (shape.rank == TT_MAX_RANK)
        tt_fail(w, "tl.join would give more than %d dimensions", TT_MAX_RANK);
    shape.extents[shape.rank++] = 2;
    tt_check_shape(w, "tl.join", &shape);
    const Type *type = tt_dtype_shaped(w, pair[0].dtype, shape.extents, shape.rank);
    Value *operands[] = {pair[0].value, pair[1].value};
    return tt_value_term(tt_build(&w->builder, OP_join, operands, 2, type, NULL), pair[0].dtype);
}

/* split(a) */
Term tt_builtin_split(Walker *w, Term *args)
{
    Term t = tile_argument(w, args, 0);
    Shape shape = tt_shape_of(t);
    if (shape.extents[shape.rank - 1] != 2)
        tt_fail_with_remedy(
            w, "reshape it so that the last dimension has extent 2, or slice it with x[..., a:b]",
            "tl.split takes a tile whose last dimension has extent 2, not %s", tt_describe(w, t));
    const Type *half = tt_dtype_shaped(w, t.dtype, shape.extents, shape.rank - 1);
    Op *op = tt_build_op(&w->builder, OP_split, &t.value, 1, (const Type *[]){half, half}, 2, NULL);
    Term halves[] = {tt_value_term(op->results[0], t.dtype), tt_value_term(op->results[1], t.dtype)};
    return tt_tuple_term(w, halves, 2);
}

/* item(src) */
Term tt_builtin_item(Walker *w, Term *args)
{
    Term t = tt_arg_value(w, args, 0);
    Shape shape = tt_shape_of(t), scalar = {0};
    if (tt_shape_count(&shape) != 1)
        tt_fail(w, "tl.item takes a tile of one element, not %s", tt_describe(w, t));
    return shape.rank ? tt_reshape(w, "tl.item", t, &scalar) : t;
}

/* gather(src, index, axis) */
Term tt_builtin_gather(Walker *w, Term *args)
{
    Term src = tile_argument(w, args, 0), index = tile_argument(w, args, 1);
    Shape from = tt_shape_of(src), shape = tt_shape_of(index);
    if (!tt_dtype_is_int(index.dtype) || tt_dtype_is_bool(index.dtype))
        tt_fail(w, "tl.gather takes indices that are integers, not %s", tt_describe(w, index));
    int axis = tt_check_axis(w, "tl.gather", tt_arg_int(w, args, 2), from.rank);
    for (int i = 0; i < TT_MAX(from.rank, shape.rank); i++)
        if (from.rank != shape.rank || (i != axis && from.extents[i] != shape.extents[i]))
            tt_fail_with_remedy(
                w, "broadcast the indices to the extents of the source first",
                "tl.gather along dimension %d takes indices whose other extents are those of the "
                "source, not %s for %s",
                axis, tt_describe(w, index), tt_describe(w, src));
    if (tt_dtype_width(index.dtype) < 32 || index.dtype == &tt_uint32)
        index = tt_cast(w, index, index.dtype == &tt_uint32 ? &tt_int64 : &tt_int32, ROUND_NEAREST_EVEN);
    const Type *type = tt_dtype_shaped(w, src.dtype, shape.extents, shape.rank);
    Attr *attr = tt_attr_int(w->module, ATTR_axis, axis, NULL);
    return tt_value_term(tt_build(&w->builder, OP_gather, (Value *[]){src.value, index.value}, 2, type, attr),
                         src.dtype);
}
