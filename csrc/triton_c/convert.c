/* C's conversions on the types of the IR: integer promotions, the usual arithmetic conversions, assignment, casts; and
 * broadcasting. */
#include "triton_c/walker.h"

Operand tt_c_int(CWalker *w, const Dtype *dtype, int64_t value)
{
    return (Operand){tt_build_int(&w->builder, tt_dtype_type(w->module, dtype), value), dtype, false};
}

static void check_value(CWalker *w, const char *what, Operand x)
{
    if (!x.value)
        tt_c_fail(w, NULL, "%s needs a value, and here is %s", what, tt_c_describe(w, x));
}

/* A weak constant in a type: rounded once. */
static Operand take_type(CWalker *w, Operand x, const Dtype *dtype)
{
    double real;
    Operand cast = tt_c_operand(tt_typed_cast(&w->builder, tt_c_typed(x), dtype, ROUND_NEAREST_EVEN));
    if (tt_dtype_is_float(dtype) && tt_constant_float(x.value, &real))
        cast.value = tt_build_float(&w->builder, cast.value->type, real);
    return cast;
}

Operand tt_c_settle(CWalker *w, const char *what, Operand x)
{
    check_value(w, what, x);
    return x.is_weak ? take_type(w, x, &tt_fp32) : x;
}

Operand tt_c_cast(CWalker *w, Operand x, const Dtype *dtype)
{
    check_value(w, "a conversion", x);
    if (!tt_can_cast(x.dtype, dtype))
        tt_c_fail(w, "go through int64 if the bits are meant", "%s cannot be converted to %s",
                  tt_c_describe(w, x), tt_c_dtype_name(w, dtype));
    if (x.is_weak)
        return take_type(w, x, dtype);
    return tt_c_operand(tt_typed_cast(&w->builder, tt_c_typed(x), dtype, ROUND_NEAREST_EVEN));
}

static bool is_null(Operand x)
{
    int64_t number;
    return tt_dtype_is_int(x.dtype) && tt_c_known_int(x, &number) && number == 0;
}

Operand tt_c_convert(CWalker *w, const char *what, Operand x, const Dtype *dtype)
{
    check_value(w, what, x);
    if (x.dtype == dtype && !x.is_weak)
        return x;
    bool from = tt_dtype_is_pointer(x.dtype), to = tt_dtype_is_pointer(dtype);
    if (from && to && x.dtype->pointee == dtype->pointee) {
        if (x.dtype->is_const && !dtype->is_const)
            tt_c_fail(w, "declare it const, too", "%s is a %s, and cannot hold the read-only %s", what,
                      tt_c_dtype_name(w, dtype), tt_c_describe(w, x));
        return tt_c_operand(tt_typed_cast(&w->builder, tt_c_typed(x), dtype, ROUND_NEAREST_EVEN));
    }
    if (from && tt_dtype_is_bool(dtype))
        return tt_c_truth(w, x);
    if ((from || to) && !(to && !from && is_null(x)))
        tt_c_fail(
            w, tt_arena_format(w->arena, "write a cast, (%s), if that is meant", tt_c_dtype_name(w, dtype)),
            "%s is of type %s, and cannot hold %s", what, tt_c_dtype_name(w, dtype), tt_c_describe(w, x));
    return tt_c_cast(w, x, dtype);
}

Operand tt_c_truth(CWalker *w, Operand x)
{
    check_value(w, "a condition", x);
    return tt_c_operand(tt_typed_truth(&w->builder, tt_c_typed(x)));
}

Value *tt_c_condition(CWalker *w, Operand x)
{
    check_value(w, "a condition", x);
    if (tt_is_tile(x.value->type))
        tt_c_fail(
            w, "run statements where it holds with `@condition { ... }`, or choose with `condition ? a : b`",
            "a condition decides for the whole program and must be a scalar, not %s", tt_c_describe(w, x));
    return tt_c_truth(w, x).value;
}

/* ---- the usual arithmetic conversions -------------------------------------------------------------------------------- */

Operand tt_c_promote(CWalker *w, Operand x)
{
    bool is_narrow = tt_dtype_is_int(x.dtype) && tt_dtype_width(x.dtype) < 32;
    if (is_narrow)
        return tt_c_cast(w, x, &tt_int32);
    return tt_dtype_is_fp8(x.dtype) ? tt_c_cast(w, x, &tt_fp32) : x;
}

/* Two floats meet in the wider one, half and bfloat16 in float. */
static const Dtype *common_float(const Dtype *a, const Dtype *b)
{
    if (tt_dtype_width(a) != tt_dtype_width(b))
        return tt_dtype_width(a) > tt_dtype_width(b) ? a : b;
    return a == b ? a : &tt_fp32;
}

/* Of promoted types. As in C a float decides, then the width, then unsigned. */
static const Dtype *common_dtype(const Dtype *a, const Dtype *b)
{
    bool a_floats = tt_dtype_is_float(a), b_floats = tt_dtype_is_float(b);
    if (a_floats && b_floats)
        return common_float(a, b);
    if (a_floats || b_floats)
        return a_floats ? a : b;
    if (tt_dtype_width(a) != tt_dtype_width(b))
        return tt_dtype_width(a) > tt_dtype_width(b) ? a : b;
    return a->is_unsigned ? a : b;
}

void tt_c_unify(CWalker *w, const char *what, Operand *x, Operand *y)
{
    Operand pair[] = {*x, *y};
    for (int i = 0; i < 2; i++) {
        check_value(w, what, pair[i]);
        if (tt_dtype_is_pointer(pair[i].dtype))
            tt_c_fail(w, "load what it points to with `*`", "%s does not take %s and %s", what,
                      tt_c_describe(w, *x), tt_c_describe(w, *y));
        pair[i] = tt_c_promote(w, pair[i]);
    }
    if (!(pair[0].is_weak && pair[1].is_weak)) {
        int weak = pair[0].is_weak ? 0 : pair[1].is_weak ? 1 : -1;
        if (weak >= 0) /* float beside an integer */
            pair[weak] =
                take_type(w, pair[weak], tt_dtype_is_float(pair[!weak].dtype) ? pair[!weak].dtype : &tt_fp32);
        const Dtype *dtype = common_dtype(pair[0].dtype, pair[1].dtype);
        for (int i = 0; i < 2; i++)
            pair[i] = tt_c_cast(w, pair[i], dtype);
    }
    *x = pair[0];
    *y = pair[1];
}

/* ---- shapes ---------------------------------------------------------------------------------------------------------- */

static _Noreturn void broadcast_error(CWalker *w, const char *what, Operand x, Operand y)
{
    Shape a = tt_c_shape(x), b = tt_c_shape(y);
    const Shape *wide = a.rank >= b.rank ? &a : &b, *narrow = a.rank >= b.rank ? &b : &a;
    int at = tt_broadcast_disagreement(wide, narrow);
    tt_c_fail(
        w,
        narrow->rank < wide->rank ? "shapes are aligned at the last dimension: add dimensions where they are "
                                    "missing, as in x[:, newaxis]"
                                  : "extents must be equal or 1, counted from the last dimension",
        "%s does not broadcast %s and %s: dimension %d has extent %lld on one side and %lld on the other",
        what, tt_c_describe(w, x), tt_c_describe(w, y), at, (long long)wide->extents[at],
        (long long)narrow->extents[at - wide->rank + narrow->rank]);
}

static void check_size(CWalker *w, const char *what, const Shape *shape)
{
    if (tt_shape_is_too_large(shape))
        tt_c_fail(w, "take smaller tiles, and more programs or a loop",
                  "%s would make a tile of shape %s; a tile may have %d elements", what,
                  tt_shape_format(w->arena, shape), TT_MAX_ELEMENTS);
}

void tt_c_broadcast_together(CWalker *w, const char *what, Operand *operands, int count)
{
    Shape met = {0};
    for (int i = 0; i < count; i++) {
        check_value(w, what, operands[i]);
        Shape shape = tt_c_shape(operands[i]);
        for (int j = 0; j < i; j++) {
            Shape other = tt_c_shape(operands[j]), unused;
            if (!tt_broadcast_shapes(&other, &shape, &unused))
                broadcast_error(w, what, operands[j], operands[i]);
        }
        tt_broadcast_shapes(&met, &shape, &met);
    }
    check_size(w, what, &met);
    for (int i = 0; i < count; i++)
        operands[i].value = tt_typed_broadcast(&w->builder, tt_c_typed(operands[i]), &met).value;
}

Operand tt_c_broadcast(CWalker *w, const char *what, Operand x, const Shape *shape)
{
    Shape from = tt_c_shape(x), met;
    bool fits = tt_broadcast_shapes(&from, shape, &met) && tt_same_extents(&met, shape);
    if (!fits && !shape->rank)
        tt_c_fail(w, "tiles are declared with their extents: float x[16]",
                  "%s is a scalar, and cannot hold %s", what, tt_c_describe(w, x));
    if (!fits)
        tt_c_fail(w, "each extent must be 1 or that of the target, counted from the last dimension",
                  "%s is of shape %s, to which %s does not broadcast", what, tt_shape_format(w->arena, shape),
                  tt_c_describe(w, x));
    x.value = tt_typed_broadcast(&w->builder, tt_c_typed(x), shape).value;
    return x;
}

bool tt_c_known_int(Operand x, int64_t *out)
{
    return x.value && !tt_is_tile(x.value->type) && tt_dtype_is_int(x.dtype) && tt_constant_int(x.value, out);
}

int64_t tt_c_extent(CWalker *w, const Node *node)
{
    Operand x = tt_c_walk(w, node);
    int64_t extent;
    tt_c_at(w, node);
    if (!tt_c_known_int(x, &extent))
        tt_c_fail(w, "make it from numbers, constants and tunable ones",
                  "the extent of a tile must be known at compile time, and is %s", tt_c_describe(w, x));
    if (extent < 1)
        tt_c_fail(w, NULL, "the extent of a tile must be at least 1, and is %lld", (long long)extent);
    return extent;
}

Shape tt_c_extents(CWalker *w, const Nodes *extents)
{
    Shape shape = {0};
    if (extents->count > TT_MAX_RANK)
        tt_c_fail(w, NULL, "a tile has at most %d dimensions, and here are %d", TT_MAX_RANK, extents->count);
    for (int i = 0; i < extents->count; i++)
        shape.extents[shape.rank++] = tt_c_extent(w, extents->data[i]);
    check_size(w, "the declaration", &shape);
    return shape;
}
