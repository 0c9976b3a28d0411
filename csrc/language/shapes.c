/* Shapes, and broadcasting as NumPy does it. */
#include "language/language.h"

Shape tt_shape_of_type(const Type *type)
{
    Shape shape = {.rank = tt_is_tile(type) ? type->rank : 0};
    for (int i = 0; i < shape.rank; i++)
        shape.extents[i] = type->shape[i];
    return shape;
}

bool tt_same_extents(const Shape *a, const Shape *b)
{
    return a->rank == b->rank && !memcmp(a->extents, b->extents, sizeof(int64_t) * (size_t)a->rank);
}

int64_t tt_shape_count(const Shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++)
        count *= shape->extents[i];
    return count;
}

/* Counts so that no product overflows: extents come from the user and may be anything. */
bool tt_shape_is_too_large(const Shape *shape)
{
    int64_t count = 1;
    for (int i = 0; i < shape->rank; i++) {
        if (shape->extents[i] > TT_MAX_ELEMENTS / count)
            return true;
        count *= shape->extents[i];
    }
    return false;
}

const char *tt_shape_format(Arena *arena, const Shape *shape)
{
    Text text = {.arena = arena};
    tt_text_add(&text, "[");
    for (int i = 0; i < shape->rank; i++)
        tt_text_add(&text, "%s%lld", i ? ", " : "", (long long)shape->extents[i]);
    tt_text_add(&text, "]");
    return text.data;
}

/* A missing dimension counts as extent 1. */
bool tt_broadcast_shapes(const Shape *a, const Shape *b, Shape *out)
{
    Shape result = {.rank = TT_MAX(a->rank, b->rank)};
    for (int i = 1; i <= result.rank; i++) {
        int64_t x = i <= a->rank ? a->extents[a->rank - i] : 1,
                y = i <= b->rank ? b->extents[b->rank - i] : 1;
        if (x != y && x != 1 && y != 1)
            return false;
        result.extents[result.rank - i] = x == 1 ? y : x;
    }
    *out = result;
    return true;
}

int tt_broadcast_disagreement(const Shape *wide, const Shape *narrow)
{
    for (int i = 1; i <= narrow->rank; i++) {
        int64_t x = wide->extents[wide->rank - i], y = narrow->extents[narrow->rank - i];
        if (x != y && x != 1 && y != 1)
            return wide->rank - i;
    }
    return -1;
}

/* Three steps of the IR: splat a scalar, or add leading dimensions and then repeat. */
Typed tt_typed_broadcast(Builder *b, Typed x, const Shape *shape)
{
    Shape from = tt_shape_of_type(x.value->type);
    if (!from.rank)
        return (Typed){tt_build_splat(b, x.value, shape->extents, shape->rank), x.dtype};
    for (int i = from.rank; i < shape->rank; i++)
        x.value = tt_build_expand_dims(b, x.value, 0);
    return (Typed){tt_build_broadcast(b, x.value, shape->extents), x.dtype};
}
