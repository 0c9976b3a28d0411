/* Loads, stores and atomic operations, under the predicate there is. */
#include "triton_c/walker.h"

static Operand check_pointer(CWalker *w, const char *what, Operand x)
{
    if (!x.value || !tt_dtype_is_pointer(x.dtype))
        tt_c_fail(w, "only pointers point to something: parameters such as `float *p`, and sums of them",
                  "%s takes a pointer, not %s", what, tt_c_describe(w, x));
    if (x.dtype->pointee == &tt_void)
        tt_c_fail(w, "convert it to a pointer to something, as in (float *)p",
                  "what %s points to has no type", tt_c_describe(w, x));
    return x;
}

static void check_writable(CWalker *w, Operand pointer)
{
    if (pointer.dtype->is_const)
        tt_c_fail(w, "take const or __constant__ off its declaration",
                  "%s is read-only and cannot be stored to", tt_c_describe(w, pointer));
}

static _Noreturn void mask_error(CWalker *w, const Shape *mask_shape, Operand pointer)
{
    tt_c_fail(w, "move it out of the predicate, or take a tile of pointers of that shape",
              "the predicate, of shape %s, does not broadcast to the pointer, %s",
              tt_shape_format(w->arena, mask_shape), tt_c_describe(w, pointer));
}

/* Where any element along the axis holds; the axis stays, with extent 1. */
static Value *any_along(CWalker *w, Value *mask, int axis)
{
    return tt_build_expand_dims(&w->builder, tt_build_any(&w->builder, mask, axis), axis);
}

/* What many elements read is read if it counts for any of them. */
static Value *any_of(CWalker *w, Value *mask, const Shape *shape)
{
    Shape from = tt_shape_of_type(mask->type);
    int missing = from.rank - shape->rank;
    for (int i = 0; i < from.rank; i++)
        if (from.extents[i] > 1 && (i < missing || shape->extents[i - missing] == 1))
            mask = any_along(w, mask, i);
    if (shape->rank)
        return tt_build_reshape(&w->builder, mask, shape->extents, shape->rank);
    Value *operands[] = {tt_build_reshape(&w->builder, mask, (int64_t[]){1}, 1),
                         tt_build_int(&w->builder, tt_scalar_type(w->module, TT_I32), 0)};
    Attr *axis = tt_attr_int(w->module, ATTR_axis, 0, NULL);
    return tt_build(&w->builder, OP_extract, operands, 2, tt_scalar_type(w->module, TT_I1), axis);
}

/* The predicate in the pointer's shape; NULL: there is none. */
static Value *mask_for(CWalker *w, Operand pointer, bool reads)
{
    if (!w->mask)
        return NULL;
    Shape shape = tt_c_shape(pointer), mask_shape = tt_shape_of_type(w->mask->type), met;
    if (!tt_broadcast_shapes(&mask_shape, &shape, &met))
        mask_error(w, &mask_shape, pointer);
    Typed mask = {w->mask, &tt_int1};
    if (!tt_same_extents(&met, &shape) && !reads)
        mask_error(w, &mask_shape, pointer);
    if (!tt_same_extents(&met, &shape))
        mask.value = any_of(w, tt_typed_broadcast(&w->builder, mask, &met).value, &shape);
    return tt_typed_broadcast(&w->builder, mask, &shape).value;
}

Operand tt_c_load(CWalker *w, Operand pointer)
{
    pointer = check_pointer(w, "`*`", pointer);
    return tt_c_operand(
        tt_typed_load(&w->builder, tt_c_typed(pointer), mask_for(w, pointer, true), NULL, NULL));
}

/* A value of the elements' type, in the pointer's shape. */
static Value *value_for(CWalker *w, Operand pointer, Operand x)
{
    const char *what = tt_is_tile(pointer.value->type) ? "the tile that is stored to" : "what is stored to";
    x = tt_c_convert(w, what, x, pointer.dtype->pointee);
    Shape shape = tt_c_shape(pointer);
    return tt_c_broadcast(w, what, x, &shape).value;
}

void tt_c_store(CWalker *w, Operand pointer, Operand x)
{
    pointer = check_pointer(w, "`*`", pointer);
    check_writable(w, pointer);
    Value *value = value_for(w, pointer, x);
    tt_typed_store(&w->builder, tt_c_typed(pointer), value, mask_for(w, pointer, false), NULL);
}

static Attr *order(CWalker *w)
{
    Attr *attrs = tt_attr_string(w->module, ATTR_scope, "gpu", NULL);
    return tt_attr_string(w->module, ATTR_sem, "acq_rel", attrs);
}

static Operand compare_and_swap(CWalker *w, Operand *arguments)
{
    Operand pointer = arguments[0];
    const Dtype *dtype = pointer.dtype->pointee;
    if (tt_dtype_is_pointer(dtype) || tt_dtype_width(dtype) < 16)
        tt_c_fail(w, "use elements of 16, 32 or 64 bits", "atomic_cas does not work on %s",
                  tt_c_describe(w, pointer));
    if (w->mask)
        tt_c_fail(w, "take it out of the predicate", "atomic_cas works on all elements");
    Value *values[] = {pointer.value, value_for(w, pointer, arguments[1]),
                       value_for(w, pointer, arguments[2])};
    return (Operand){tt_build(&w->builder, OP_atomic_cas, values, 3, values[1]->type, order(w)), dtype,
                     false};
}

Operand tt_c_atomic(CWalker *w, const char *name, Operand *arguments)
{
    Operand pointer = arguments[0] = check_pointer(w, name, arguments[0]);
    const AtomicInfo *info = tt_atomic_named(name);
    check_writable(w, pointer);
    if (!info)
        return compare_and_swap(w, arguments);
    if (!tt_atomic_takes(info, pointer.dtype->pointee))
        tt_c_fail(w,
                  info->takes & ATOMIC_SMALL_FLOATS
                      ? "use 32-bit or 64-bit integers, or floats of 16 bits and more"
                  : info->takes & ATOMIC_FLOATS ? "use 32-bit or 64-bit integers or floats"
                                                : "use 32-bit or 64-bit integers",
                  "%s does not work on %s", name, tt_c_describe(w, pointer));
    Value *value = value_for(w, pointer, arguments[1]);
    return tt_c_operand(tt_typed_atomic(&w->builder, info, tt_c_typed(pointer), value,
                                        mask_for(w, pointer, false), order(w)));
}
