/* Types: made once per module, so that equal types are equal pointers. */
#include "ir/ir.h"

static const struct {
    const char *name;
    int bits;
    const FloatFormat *format;
} scalars[TT_PTR] = {
    [TT_I1] = {"i1", 1, NULL},
    [TT_I8] = {"i8", 8, NULL},
    [TT_I16] = {"i16", 16, NULL},
    [TT_I32] = {"i32", 32, NULL},
    [TT_I64] = {"i64", 64, NULL},
    [TT_F8E4M3] = {"f8e4m3", 8, &tt_format_f8e4m3},
    [TT_F8E5M2] = {"f8e5m2", 8, &tt_format_f8e5m2},
    [TT_F8E4M3B15] = {"f8e4m3b15", 8, &tt_format_f8e4m3b15},
    [TT_F8E4M3B8] = {"f8e4m3b8", 8, &tt_format_f8e4m3b8},
    [TT_F8E5M2B16] = {"f8e5m2b16", 8, &tt_format_f8e5m2b16},
    [TT_F16] = {"f16", 16, &tt_format_f16},
    [TT_BF16] = {"bf16", 16, &tt_format_bf16},
    [TT_F32] = {"f32", 32, &tt_format_f32},
    [TT_F64] = {"f64", 64, NULL},
};

/* The key of a type in the module's table: all that makes it, element by identity. */
typedef struct TypeKey {
    int64_t kind, space, slots, rank;
    const Type *element;
    int64_t shape[TT_MAX_RANK];
} TypeKey;

static const Type *intern(Module *module, const TypeKey *key)
{
    size_t key_size = offsetof(TypeKey, shape) + sizeof(int64_t) * (size_t)key->rank;
    void **slot = tt_map_slot(&module->types, key, key_size);
    if (*slot)
        return *slot;
    Type *type = tt_arena_alloc(module->arena, sizeof(Type) + sizeof(int64_t) * (size_t)key->rank);
    type->kind = (TypeKind)key->kind;
    type->space = (int)key->space;
    type->slots = (int)key->slots;
    type->rank = (int)key->rank;
    type->element = key->element;
    type->count = 1;
    for (int i = 0; i < type->rank; i++) {
        type->shape[i] = key->shape[i];
        type->count *= key->shape[i];
    }
    return *slot = type;
}

const Type *tt_scalar_type(Module *module, TypeKind kind)
{
    TT_ASSERT(kind < TT_PTR || kind == TT_VOID);
    return intern(module, &(TypeKey){.kind = kind});
}

const Type *tt_ptr_type(Module *module, const Type *pointee, int space)
{
    return intern(module, &(TypeKey){.kind = TT_PTR, .space = space, .element = pointee});
}

const Type *tt_tile_type(Module *module, const Type *element, const int64_t *shape, int rank)
{
    TT_ASSERT(rank >= 1 && rank <= TT_MAX_RANK && element->kind <= TT_PTR);
    TypeKey key = {.kind = TT_TILE, .rank = rank, .element = element};
    for (int i = 0; i < rank; i++) {
        TT_ASSERT(shape[i] >= 1);
        key.shape[i] = shape[i];
    }
    return intern(module, &key);
}

const Type *tt_buffer_type(Module *module, const Type *tile, int slots)
{
    TypeKey key = {.kind = TT_BUFFER, .slots = slots, .rank = tile->rank, .element = tile->element};
    memcpy(key.shape, tile->shape, sizeof(int64_t) * (size_t)tile->rank);
    return intern(module, &key);
}

const Type *tt_slot_type(Module *module, const Type *buffer)
{
    return tt_tile_type(module, buffer->element, buffer->shape, buffer->rank);
}

const Type *tt_with_element(Module *module, const Type *type, const Type *element)
{
    return tt_is_tile(type) ? tt_tile_type(module, element, type->shape, type->rank) : element;
}

const Type *tt_shaped_type(Module *module, const Type *element, const int64_t *shape, int rank)
{
    return rank ? tt_tile_type(module, element, shape, rank) : element;
}

int tt_bit_width(const Type *type)
{
    const Type *element = tt_element(type);
    return element->kind < TT_PTR ? scalars[element->kind].bits : 64;
}

int tt_byte_width(const Type *type) { return (tt_bit_width(type) + 7) / 8; }

bool tt_same_shape(const Type *a, const Type *b)
{
    int rank = tt_is_tile(a) ? a->rank : 0;
    if (rank != (tt_is_tile(b) ? b->rank : 0))
        return false;
    return !rank || !memcmp(a->shape, b->shape, sizeof(int64_t) * (size_t)rank);
}

const FloatFormat *tt_float_format(const Type *type)
{
    const Type *element = tt_element(type);
    return element->kind < TT_PTR ? scalars[element->kind].format : NULL;
}

double tt_round_to(const Type *type, double value)
{
    const FloatFormat *format = tt_float_format(type);
    if (!format || (value - value != 0 && value == value && format->has_infinity))
        return value; /* infinity is a value of the format, even where what is too large saturates */
    if (tt_element(type)->kind == TT_F32 && value == value)
        return (float)value;
    return tt_float_decode(format, tt_float_encode(format, value, false));
}

const char *tt_type_name(TypeKind kind)
{
    static const char *const compound[] = {"ptr", "tile", "buffer", "void"};
    return kind < TT_PTR ? scalars[kind].name : compound[kind - TT_PTR];
}
