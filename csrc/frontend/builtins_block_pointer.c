/* Block pointers: a window onto an array. The IR knows the window only where it is used: a load or store through one is
 * one through `block_pointers`, under their mask. Shapes and strides are int64, offsets int32, as in the public language. */
#include "frontend/builtins.h"

enum { BASE, ARRAY_SHAPE, STRIDES, OFFSETS, PARTS };

/* A tuple of `rank` integers, or the one there is without a tuple, each converted to `dtype`. */
static Term integer_items(Walker *w, Term *args, int index, int rank, const Dtype *dtype)
{
    const Term *items;
    int count;
    if (tt_is_value(args[index]) || tt_is_number(args[index])) {
        items = &args[index];
        count = 1;
    } else if (!tt_term_items(w, args[index], &items, &count)) {
        tt_arg_error(w, args, index, "a tuple of integers");
    }
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

/* ---- uses ---------------------------------------------------------------------------------------------- */

/* The dimensions in `boundary_check`; their count. */
static int checked_dimensions(Walker *w, Term *args, int index, const BlockShape *block,
                              int64_t dims[TT_MAX_RANK])
{
    int count = tt_is_none(args[index]) ? 0 : tt_arg_ints(w, args, index, dims);
    bool checked[TT_MAX_RANK] = {0};
    for (int i = 0; i < count; i++) {
        int d = tt_check_axis(w, "boundary_check", dims[i], block->rank);
        if (checked[d])
            tt_fail(w, "boundary_check names the dimension %d twice", d);
        checked[d] = true;
        dims[i] = d;
    }
    return count;
}

/* Pointers to the elements, and the mask for the dimensions that are checked; None when there are none. */
static Term block_pointers(Walker *w, Term *args, int boundary, Term pointer, Term *mask)
{
    const BlockShape *block = pointer.block;
    int64_t checked[TT_MAX_RANK];
    int count = checked_dimensions(w, args, boundary, block, checked), operands = 0;
    Value *parts[1 + 3 * TT_MAX_RANK];
    const Dtype *dtype = pointer.items[BASE].dtype;
    parts[operands++] = pointer.items[BASE].value;
    for (int part = ARRAY_SHAPE; part <= OFFSETS; part++)
        for (int d = 0; d < block->rank; d++)
            parts[operands++] = pointer.items[part].items[d].value;
    const Type *types[] = {
        tt_tile_type(w->module, tt_dtype_ir(w, dtype), block->shape, block->rank),
        tt_tile_type(w->module, tt_scalar_type(w->module, TT_I1), block->shape, block->rank)};
    Attr *attrs = count ? tt_attr_ints(w->module, ATTR_checked, checked, count, NULL) : NULL;
    Op *op = tt_build_op(&w->builder, OP_block_pointers, parts, operands, types, 2, attrs);
    *mask = count ? tt_value_term(op->results[1], &tt_int1) : tt_none(w);
    return tt_value_term(op->results[0], dtype);
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
    args[POINTER] = block_pointers(w, args, BOUNDARY, pointer, &args[MASK]);
    args[OTHER] = padding(w, args, PADDING, pointer.items[BASE].dtype->pointee);
    if (tt_is_none(args[MASK]))
        args[OTHER] = args[MASK]; /* nothing is beyond an edge that is not checked */
}

void tt_expand_block_store(Walker *w, Term *args)
{
    enum { POINTER, VALUE, MASK, BOUNDARY };
    Term pointer = args[POINTER];
    check_no_mask(w, args, MASK, MASK);
    args[POINTER] = block_pointers(w, args, BOUNDARY, pointer, &args[MASK]);
}
