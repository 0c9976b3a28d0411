/* Block pointers: a window onto an array. They are a matter of the frontend only: a load or store through
 * one becomes a tile of pointers, base + sum over d of (offset[d] + index[d]) * stride[d], and a mask
 * where the window may reach over the edge. Shapes and strides are int64, offsets int32, as in the public
 * language. */
#include "frontend/builtins.h"

enum { BASE, ARRAY_SHAPE, STRIDES, OFFSETS, PARTS };

/* A tuple of `rank` integers, each converted to `dtype`. */
static Term integer_items(Walker *w, Term *args, int index, int rank, const Dtype *dtype)
{
    const Term *items;
    int count;
    if (!tt_term_items(w, args[index], &items, &count))
        tt_arg_error(w, args, index, "a tuple of integers");
    if (count != rank)
        tt_fail(w, "`%s` of %s has %d items for a block of %d dimensions", tt_parameter_name(w, index),
                tt_call_name(w), count, rank);
    Term *converted = TT_NEW_ARRAY(w->arena, Term, rank);
    for (int i = 0; i < rank; i++) {
        Term item = tt_is_value(items[i]) || tt_is_number(items[i]) ? tt_term_value(w, items[i]) : items[i];
        if (!tt_is_value(item) || tt_is_tile_term(item) || !tt_dtype_is_int(item.dtype))
            tt_fail(w, "item %d of `%s` of %s must be an integer, not %s", i, tt_parameter_name(w, index),
                    tt_call_name(w), tt_describe(w, items[i]));
        converted[i] = tt_cast(w, items[i], dtype, ROUND_NEAREST_EVEN);
    }
    return tt_tuple_term(w, converted, rank);
}

static const BlockShape *block_argument(Walker *w, Term *args, int block_shape, int order)
{
    BlockShape *block = TT_NEW(w->arena, BlockShape);
    int64_t orders[TT_MAX_RANK];
    Shape shape;
    shape.rank = tt_arg_ints(w, args, block_shape, shape.extents);
    tt_check_shape(w, "tl.make_block_ptr", &shape);
    if (!shape.rank)
        tt_arg_error(w, args, block_shape, "a tuple of one extent or more");
    bool seen[TT_MAX_RANK] = {0};
    int given = tt_arg_ints(w, args, order, orders);
    block->rank = shape.rank;
    for (int i = 0; i < shape.rank; i++) {
        if (given != shape.rank || orders[i] < 0 || orders[i] >= shape.rank || seen[orders[i]])
            tt_arg_error(w, args, order, "each dimension of the block once");
        seen[orders[i]] = true;
        block->shape[i] = shape.extents[i];
        block->order[i] = (int)orders[i];
    }
    return block;
}

/* make_block_ptr(base, shape, strides, offsets, block_shape, order) */
Term tt_builtin_make_block_ptr(Walker *w, Term *args)
{
    Term base = args[0];
    if (!tt_is_value(base) || !tt_dtype_is_pointer(base.dtype) || tt_is_tile_term(base))
        tt_arg_error(w, args, 0, "a scalar pointer");
    const BlockShape *block = block_argument(w, args, 4, 5);
    Term *parts = TT_NEW_ARRAY(w->arena, Term, PARTS);
    parts[BASE] = base;
    parts[ARRAY_SHAPE] = integer_items(w, args, 1, block->rank, &tt_int64);
    parts[STRIDES] = integer_items(w, args, 2, block->rank, &tt_int64);
    parts[OFFSETS] = integer_items(w, args, 3, block->rank, &tt_int32);
    return (Term){.kind = TERM_BLOCK_POINTER, .count = PARTS, .block = block, .items = parts};
}

/* advance(base, offsets) */
Term tt_builtin_advance(Walker *w, Term *args)
{
    Term pointer = args[0];
    if (pointer.kind != TERM_BLOCK_POINTER)
        tt_fail_with_remedy(w, "add the offset to an ordinary pointer with +",
                            "tl.advance moves a block pointer of tl.make_block_ptr, not %s",
                            tt_describe(w, pointer));
    Term by = integer_items(w, args, 1, pointer.block->rank, &tt_int32);
    Term *parts = tt_arena_copy(w->arena, pointer.items, sizeof(Term) * PARTS);
    Term *moved = TT_NEW_ARRAY(w->arena, Term, by.count);
    for (int i = 0; i < by.count; i++) {
        Value *sum = tt_build2(&w->builder, OP_add, parts[OFFSETS].items[i].value, by.items[i].value);
        moved[i] = tt_value_term(sum, &tt_int32);
    }
    parts[OFFSETS] = tt_tuple_term(w, moved, by.count);
    return (Term){.kind = TERM_BLOCK_POINTER, .count = PARTS, .block = pointer.block, .items = parts};
}

/* ---- expansion ----------------------------------------------------------------------------------------- */

/* The indices 0 .. extent - 1 along dimension `d`, int64, with extent 1 in the others. */
static Value *indices_along(Walker *w, const BlockShape *block, int d)
{
    Builder *b = &w->builder;
    Value *line = tt_build_range(b, 0, block->shape[d]);
    Value *index = tt_build_cast(b, OP_ext_s, line, tt_scalar_type(w->module, TT_I64));
    for (int i = 0; i < block->rank; i++)
        if (i != d)
            index = tt_build_expand_dims(b, index, i);
    return index;
}

static Value *splat_like(Walker *w, Value *scalar, const Value *tile)
{
    return tt_build_splat(&w->builder, scalar, tile->type->shape, tile->type->rank);
}

static Value *wide_offset(Walker *w, Term pointer, int d)
{
    return tt_cast(w, pointer.items[OFFSETS].items[d], &tt_int64, ROUND_NEAREST_EVEN).value;
}

/* The uniform part goes into the scalar base, so that the tile holds small offsets only. */
static Term window_pointers(Walker *w, Term pointer)
{
    Builder *b = &w->builder;
    const BlockShape *block = pointer.block;
    Value *start = NULL, *offsets = NULL;
    for (int d = 0; d < block->rank; d++) {
        Value *stride = pointer.items[STRIDES].items[d].value, *index = indices_along(w, block, d);
        Value *first = tt_build2(b, OP_mul, wide_offset(w, pointer, d), stride);
        Value *along = tt_build2(b, OP_mul, index, splat_like(w, stride, index));
        along = tt_build_broadcast(b, along, block->shape);
        start = start ? tt_build2(b, OP_add, start, first) : first;
        offsets = offsets ? tt_build2(b, OP_add, offsets, along) : along;
    }
    Value *base = tt_build_addptr(b, pointer.items[BASE].value, start);
    Value *pointers = tt_build_addptr(b, tt_build_splat(b, base, block->shape, block->rank), offsets);
    return tt_value_term(pointers, pointer.items[BASE].dtype);
}

/* Is the element of dimension `d` inside of the array? */
static Value *inside_along(Walker *w, Term pointer, int d)
{
    Builder *b = &w->builder;
    Value *index = indices_along(w, pointer.block, d);
    index = tt_build2(b, OP_add, index, splat_like(w, wide_offset(w, pointer, d), index));
    Value *after_start = tt_build2(b, OP_ge_s, index, tt_build_int(b, index->type, 0));
    Value *end = splat_like(w, pointer.items[ARRAY_SHAPE].items[d].value, index);
    Value *before_end = tt_build2(b, OP_lt_s, index, end);
    return tt_build_broadcast(b, tt_build2(b, OP_and, after_start, before_end), pointer.block->shape);
}

/* The mask for the dimensions in `boundary_check`; None when there are none. */
static Term window_mask(Walker *w, Term *args, int index, Term pointer)
{
    int64_t dims[TT_MAX_RANK];
    int given = tt_is_none(args[index]) ? 0 : tt_arg_ints(w, args, index, dims);
    bool checked[TT_MAX_RANK] = {0};
    Value *mask = NULL;
    for (int i = 0; i < given; i++) {
        int d = tt_check_axis(w, "boundary_check", dims[i], pointer.block->rank);
        if (checked[d])
            tt_fail(w, "boundary_check names the dimension %d twice", d);
        checked[d] = true;
        Value *inside = inside_along(w, pointer, d);
        mask = mask ? tt_build2(&w->builder, OP_and, mask, inside) : inside;
    }
    return mask ? tt_value_term(mask, &tt_int1) : tt_none(w);
}

static void check_no_mask(Walker *w, Term *args, int first, int last)
{
    for (int i = first; i <= last; i++)
        if (!tt_is_none(args[i]))
            tt_fail_with_remedy(w, "use boundary_check, and padding_option for the elements beyond the edge",
                                "%s takes no `%s` for a block pointer", tt_call_name(w),
                                tt_parameter_name(w, i));
}

/* What elements beyond the edge are; None for unspecified. */
static Term padding(Walker *w, Term *args, int index, const Dtype *dtype)
{
    const char *option = tt_arg_string(w, args, index);
    if (!option || !*option)
        return tt_none(w);
    bool is_nan = !strcmp(option, "nan");
    if (!is_nan && strcmp(option, "zero"))
        tt_arg_error(w, args, index, "\"\", \"zero\" or \"nan\"");
    if (!is_nan)
        return tt_cast(w, tt_int_term(w, 0), dtype, ROUND_NEAREST_EVEN);
    if (!tt_dtype_is_float(dtype))
        tt_fail_with_remedy(w, "use padding_option=\"zero\"", "padding with NaN takes floats, not %s",
                            dtype->name);
    return tt_value_term(tt_build_float(&w->builder, tt_dtype_ir(w, dtype), __builtin_nan("")), dtype);
}

void tt_expand_block_load(Walker *w, Term *args)
{
    enum { POINTER, MASK, OTHER, BOUNDARY, PADDING };
    Term pointer = args[POINTER];
    check_no_mask(w, args, MASK, OTHER);
    args[MASK] = window_mask(w, args, BOUNDARY, pointer);
    args[OTHER] = padding(w, args, PADDING, pointer.items[BASE].dtype->pointee);
    if (tt_is_none(args[MASK]))
        args[OTHER] = args[MASK]; /* nothing is beyond an edge that is not checked */
    args[POINTER] = window_pointers(w, pointer);
}

void tt_expand_block_store(Walker *w, Term *args)
{
    enum { POINTER, VALUE, MASK, BOUNDARY };
    Term pointer = args[POINTER];
    check_no_mask(w, args, MASK, MASK);
    args[MASK] = window_mask(w, args, BOUNDARY, pointer);
    args[POINTER] = window_pointers(w, pointer);
}
