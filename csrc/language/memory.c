/* Loads, stores and atomic operations on typed pointers. */
#include "language/language.h"

static const AtomicInfo atomics[] = {
    {"atomic_add", "add", "add", "fadd", ATOMIC_SMALL_FLOATS | ATOMIC_FLOATS | ATOMIC_INTS},
    {"atomic_max", "max", "max_u", "fmax", ATOMIC_FLOATS | ATOMIC_INTS},
    {"atomic_min", "min", "min_u", "fmin", ATOMIC_FLOATS | ATOMIC_INTS},
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
