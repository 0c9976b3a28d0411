/* Loads, stores and atomic operations on typed pointers. */
#include "language/language.h"

static const AtomicInfo atomics[] = {
    {"atomic_add", "add", "add", "fadd", ATOMIC_SMALL_FLOATS | ATOMIC_FLOATS | ATOMIC_INTS},
    {"atomic_max", "max", "max_u", "fmax", ATOMIC_SMALL_FLOATS | ATOMIC_FLOATS | ATOMIC_INTS},
    {"atomic_min", "min", "min_u", "fmin", ATOMIC_SMALL_FLOATS | ATOMIC_FLOATS | ATOMIC_INTS},
    {"atomic_and", "and", "and", NULL, ATOMIC_INTS},
    {"atomic_or", "or", "or", NULL, ATOMIC_INTS},
    {"atomic_xor", "xor", "xor", NULL, ATOMIC_INTS},
    {"atomic_xchg", "xchg", "xchg", "xchg", ATOMIC_SMALL_FLOATS | ATOMIC_FLOATS | ATOMIC_INTS},
};

const AtomicInfo *tt_atomic_named(const char *name)
{
    for (size_t i = 0; i < TT_COUNT(atomics); i++)
        if (!strcmp(name, atomics[i].name))
            return &atomics[i];
    return NULL;
}

bool tt_atomic_takes(const AtomicInfo *info, const Dtype *dtype)
{
    int width = tt_dtype_width(dtype);
    if (tt_dtype_is_float(dtype))
        return width >= 32 ? (info->takes & ATOMIC_FLOATS)
                           : width == 16 && (info->takes & ATOMIC_SMALL_FLOATS);
    return tt_dtype_is_int(dtype) && width >= 32 && (info->takes & ATOMIC_INTS);
}

Typed tt_typed_atomic(Builder *b, const AtomicInfo *info, Typed pointer, Value *value, Value *mask,
                      Attr *attrs)
{
    const Dtype *dtype = pointer.dtype->pointee;
    Value *operands[] = {pointer.value, value, mask};
    const char *kind = tt_dtype_is_float(dtype) ? info->on_float
                       : dtype->is_unsigned     ? info->on_unsigned
                                                : info->on_signed;
    attrs = tt_attr_string(b->module, ATTR_kind, kind, attrs);
    return (Typed){tt_build(b, OP_atomic_rmw, operands, mask ? 3 : 2, value->type, attrs), dtype};
}

Typed tt_typed_load(Builder *b, Typed pointer, Value *mask, Value *other, Attr *attrs)
{
    const Dtype *dtype = pointer.dtype->pointee;
    Value *operands[] = {pointer.value, mask, other};
    const Type *type = tt_with_element(b->module, pointer.value->type, tt_dtype_type(b->module, dtype));
    return (Typed){tt_build(b, OP_load, operands, mask ? other ? 3 : 2 : 1, type, attrs), dtype};
}

void tt_typed_store(Builder *b, Typed pointer, Value *value, Value *mask, Attr *attrs)
{
    Value *operands[] = {pointer.value, value, mask};
    tt_build_op(b, OP_store, operands, mask ? 3 : 2, NULL, 0, attrs);
}

Value *tt_build_any(Builder *b, Value *mask, int axis)
{
    Module *module = b->module;
    Shape shape = tt_shape_of_type(mask->type), rest = {0};
    for (int i = 0; i < shape.rank; i++)
        if (i != axis)
            rest.extents[rest.rank++] = shape.extents[i];
    const Type *bit = tt_scalar_type(module, TT_I1),
               *type = tt_shaped_type(module, bit, rest.extents, rest.rank);
    Op *op = tt_build_op(b, OP_reduce, &mask, 1, &type, 1, tt_attr_int(module, ATTR_axis, axis, NULL));
    Builder inner = tt_builder_at_end(op->regions[0]);
    inner.loc = b->loc;
    Value *x = tt_add_region_arg(op->regions[0], bit), *y = tt_add_region_arg(op->regions[0], bit);
    Value *either = tt_build2(&inner, OP_or, x, y);
    tt_build_op(&inner, OP_yield, &either, 1, NULL, 0, NULL);
    return op->results[0];
}
