/* Shapes: broadcasting as NumPy does it, reshaping, and indexing with [...]. */
#include "frontend/semantic.h"

/* ---- shapes as such ------------------------------------------------------------------------------------ */

Shape tt_shape_of(Term t) { return tt_shape_of_type(t.value->type); }

const char *tt_shape_text(Walker *w, const Shape *shape) { return tt_shape_format(w->arena, shape); }

void tt_check_shape(Walker *w, const char *what, const Shape *shape)
{
    for (int i = 0; i < shape->rank; i++)
        if (shape->extents[i] < 1)
            tt_fail(w, "%s would make a tile of shape %s; every extent must be at least 1", what,
                    tt_shape_text(w, shape));
    if (tt_shape_is_too_large(shape))
        tt_fail_with_remedy(
            w, "take smaller blocks, and more programs or a loop",
            "%s would make a tile of shape %s, whose numel exceeds the largest there may be, %d "
            "(tl.TRITON_MAX_TENSOR_NUMEL)",
            what, tt_shape_text(w, shape), TT_MAX_ELEMENTS);
}

/* ---- broadcasting -------------------------------------------------------------------------------------- */

/* Names the dimension as it is in the operand of higher rank, which is where the user can look it up. */
static _Noreturn void broadcast_error(Walker *w, const char *what, Term a, Term b)
{
    Shape x = tt_shape_of(a), y = tt_shape_of(b);
    const Shape *wide = x.rank >= y.rank ? &x : &y, *narrow = x.rank >= y.rank ? &y : &x;
    int at = tt_broadcast_disagreement(wide, narrow);
    long long other = narrow->extents[at - wide->rank + narrow->rank];
    const char *remedy = "extents must be equal or 1, counted from the last dimension";
    if (narrow->rank < wide->rank)
        remedy = "shapes are aligned at the last dimension: add dimensions where they are missing, as in "
                 "x[:, None]";
    tt_fail_with_remedy(w, remedy,
                        "%s does not broadcast %s and %s: incompatible dimensions at index %d: %lld and %lld",
                        what, tt_describe(w, a), tt_describe(w, b), at, (long long)wide->extents[at], other);
}

Term tt_broadcast_to(Walker *w, const char *what, Term t, const Shape *shape)
{
    t = tt_term_value(w, t);
    Shape from = tt_shape_of(t), met;
    if (!tt_broadcast_shapes(&from, shape, &met) || !tt_same_extents(&met, shape))
        tt_fail_with_remedy(w, "each extent must be 1 or that of the target, counted from the last dimension",
                            "%s cannot broadcast %s to the shape %s", what, tt_describe(w, t),
                            tt_shape_text(w, shape));
    tt_check_shape(w, what, shape);
    return tt_typed_term(tt_typed_broadcast(&w->builder, tt_typed_of(t), shape));
}

/* A number has no shape yet; it becomes a scalar. */
static Shape operand_shape(Term t) { return tt_is_value(t) ? tt_shape_of(t) : (Shape){0}; }

Shape tt_common_shape(Walker *w, const char *what, const Term *terms, int count)
{
    Shape met = operand_shape(terms[0]);
    for (int i = 1; i < count; i++) {
        Shape shape = operand_shape(terms[i]);
        if (tt_broadcast_shapes(&met, &shape, &met))
            continue;
        for (int j = 0; j < i; j++) { /* name a pair that disagrees */
            Shape other = operand_shape(terms[j]), unused;
            if (!tt_broadcast_shapes(&other, &shape, &unused))
                broadcast_error(w, what, terms[j], terms[i]);
        }
        tt_fail(w, "%s does not broadcast %s and the shape %s", what, tt_describe(w, terms[i]),
                tt_shape_text(w, &met));
    }
    return met;
}

void tt_broadcast_together(Walker *w, const char *what, Term *terms, int count)
{
    Shape met = tt_common_shape(w, what, terms, count);
    for (int i = 0; i < count; i++)
        terms[i] = tt_broadcast_to(w, what, terms[i], &met);
}

/* ---- reshaping ----------------------------------------------------------------------------------------- */

/* Between tiles a reshape; a scalar is splat to its one element, and one element is extracted as a scalar. */
Term tt_reshape(Walker *w, const char *what, Term t, const Shape *shape)
{
    t = tt_term_value(w, t);
    Shape from = tt_shape_of(t);
    tt_check_shape(w, what, shape);
    if (tt_shape_count(shape) != tt_shape_count(&from))
        tt_fail_with_remedy(
            w, "the extents must multiply to the number of elements; one of them may be -1",
            "%s cannot change the total number of elements: %s has %lld, and the shape %s %lld", what,
            tt_describe(w, t), (long long)tt_shape_count(&from), tt_shape_text(w, shape),
            (long long)tt_shape_count(shape));
    Builder *b = &w->builder;
    if (!from.rank)
        return tt_value_term(tt_build_splat(b, t.value, shape->extents, shape->rank), t.dtype);
    if (shape->rank)
        return tt_value_term(tt_build_reshape(b, t.value, shape->extents, shape->rank), t.dtype);
    /* One element, as a scalar. */
    Value *operands[] = {tt_build_reshape(b, t.value, (int64_t[]){1}, 1),
                         tt_build_int(b, tt_scalar_type(w->module, TT_I32), 0)};
    Attr *axis = tt_attr_int(w->module, ATTR_axis, 0, NULL);
    return tt_value_term(tt_build(b, OP_extract, operands, 2, t.value->type->element, axis), t.dtype);
}

Term tt_expand_dims(Walker *w, const char *what, Term t, int axis)
{
    if (tt_shape_of(t).rank == TT_MAX_RANK)
        tt_fail(w, "%s would give %s more than %d dimensions", what, tt_describe(w, t), TT_MAX_RANK);
    return tt_value_term(tt_build_expand_dims(&w->builder, t.value, axis), t.dtype);
}

Term tt_permute(Walker *w, Term t, const int64_t *order)
{
    bool moves = false;
    for (int i = 0; i < t.value->type->rank; i++)
        moves |= order[i] != i;
    return moves ? tt_value_term(tt_build_permute(&w->builder, t.value, order), t.dtype) : t;
}

int tt_check_axis(Walker *w, const char *what, int64_t axis, int rank)
{
    if (axis < -rank || axis >= rank)
        tt_fail_with_remedy(w, "dimensions are counted from 0, or backwards from -1",
                            "%s: invalid axis %lld for a tile of %d dimension%s", what, (long long)axis, rank,
                            rank == 1 ? "" : "s");
    return (int)(axis < 0 ? axis + rank : axis);
}

/* ---- indexing ------------------------------------------------------------------------------------------ */

/* What [...] does to each dimension of the operand, and where None asks for new ones. */
typedef struct Subscript {
    Shape from;
    int64_t offsets[TT_MAX_RANK], strides[TT_MAX_RANK], extents[TT_MAX_RANK]; /* of the slice */
    Term picks[TT_MAX_RANK];                                                  /* index, or none */
    bool is_pick[TT_MAX_RANK];
    int dimension;                  /* the next one of the operand */
    bool new_axes[2 * TT_MAX_RANK]; /* in the order of the result: a new dimension, or one that stays */
    int result_rank;
} Subscript;

/* The next `count` dimensions of the operand stay in the result. */
static void keep_dimensions(Subscript *s, int count)
{
    for (; count > 0; count--, s->dimension++)
        s->new_axes[s->result_rank++] = false;
}

static int64_t slice_bound(Walker *w, Term t, int64_t if_none, const char *which)
{
    int64_t bound;
    if (tt_is_none(t))
        return if_none;
    if (!tt_term_int(w, t, &bound))
        tt_fail_with_remedy(
            w, "take an index for one element or row at a run-time place, or tl.gather for many",
            "the %s of a slice of a tile must be known at compile time, not %s", which, tt_describe(w, t));
    return bound;
}

/* A bound as Python's slices take it: from the end when negative, and never past it. */
static int64_t clamp_bound(int64_t bound, int64_t extent, bool backward)
{
    bound = bound < 0 ? bound + extent : bound;
    int64_t low = backward ? -1 : 0, high = backward ? extent - 1 : extent;
    return TT_MIN(TT_MAX(bound, low), high);
}

/* Extent, start and step of one dimension. An empty slice is an error: there are no empty tiles. */
static void take_slice(Walker *w, Subscript *s, Term slice)
{
    int d = s->dimension;
    int64_t extent = s->from.extents[d], step = slice_bound(w, slice.items[2], 1, "step");
    if (!step)
        tt_fail(w, "the step of a slice cannot be 0");
    bool backward = step < 0;
    int64_t start = slice_bound(w, slice.items[0], INT64_MIN, "start"),
            stop = slice_bound(w, slice.items[1], INT64_MIN, "end");
    start = start == INT64_MIN ? (backward ? extent - 1 : 0) : clamp_bound(start, extent, backward);
    stop = stop == INT64_MIN ? (backward ? -1 : extent) : clamp_bound(stop, extent, backward);
    int64_t distance = backward ? start - stop : stop - start, pace = backward ? -step : step;
    if (distance <= 0)
        tt_fail(w,
                "the slice of dimension %d, which has extent %lld, is empty: a tile has at least one element",
                d, (long long)extent);
    s->offsets[d] = start;
    s->strides[d] = step;
    s->extents[d] = (distance - 1) / pace + 1;
    keep_dimensions(s, 1);
}

/* `:` says nothing about a scalar, which has no dimension for it. */
static bool is_whole(Term index)
{
    return index.kind == TERM_SLICE && tt_is_none(index.items[0]) && tt_is_none(index.items[1]) &&
           tt_is_none(index.items[2]);
}

/* An int or a scalar of the kernel drops its dimension; known indices are checked here. */
static void take_index(Walker *w, Subscript *s, Term index)
{
    int d = s->dimension++;
    int64_t extent = s->from.extents[d], constant;
    if (tt_is_tile_term(index))
        tt_fail_with_remedy(w, "take tl.gather(x, indices, axis)",
                            "unsupported tensor index: %s for a dimension of a tile", tt_describe(w, index));
    if (tt_term_int(w, index, &constant)) {
        if (constant < -extent || constant >= extent)
            tt_fail_with_remedy(w, "elements are counted from 0, or backwards from -1",
                                "the index %lld is out of range for dimension %d, which has extent %lld",
                                (long long)constant, d, (long long)extent);
        index = tt_int_term(w, constant < 0 ? constant + extent : constant);
    } else if (!tt_is_value(index) || !tt_dtype_is_int(index.dtype) || tt_dtype_is_bool(index.dtype)) {
        tt_fail(w, "unsupported tensor index: %s; there are integers, slices, None and ...",
                tt_describe(w, index));
    }
    s->picks[d] = index;
    s->is_pick[d] = true;
}

/* A run-time index as a scalar of 32 or 64 bits; negative ones count from the end. */
static Value *index_value(Walker *w, Term index, int64_t extent)
{
    Builder *b = &w->builder;
    int64_t constant;
    const Dtype *dtype = &tt_int32;
    if (tt_is_value(index) && (tt_dtype_width(index.dtype) == 64 || index.dtype == &tt_uint32))
        dtype = &tt_int64;
    Value *value = tt_cast(w, index, dtype, ROUND_NEAREST_EVEN).value;
    if (tt_term_int(w, index, &constant) || index.dtype->is_unsigned)
        return value;
    Value *from_end = tt_build2(b, OP_add, value, tt_build_int(b, value->type, extent));
    Value *negative = tt_build2(b, OP_lt_s, value, tt_build_int(b, value->type, 0));
    return tt_build3(b, OP_select, negative, from_end, value);
}

static bool is_ellipsis(Term t) { return t.kind == TERM_PYTHON && t.object == Py_Ellipsis; }

/* Distributes the indices over the dimensions: `...` stands for all that no other index names. */
static void read_indices(Walker *w, Subscript *s, const Term *indices, int count)
{
    int taken = 0, ellipses = 0;
    for (int i = 0; i < count; i++) {
        ellipses += is_ellipsis(indices[i]);
        taken += !is_ellipsis(indices[i]) && !tt_is_none(indices[i]);
    }
    if (ellipses > 1)
        tt_fail(w, "an index may hold one ..., not %d", ellipses);
    if (taken > s->from.rank && s->from.rank)
        tt_fail(w, "a tile of %d dimension%s cannot be indexed with %d", s->from.rank,
                s->from.rank == 1 ? "" : "s", taken);
    if (s->from.rank + count > TT_MAX_RANK + taken + ellipses)
        tt_fail(w, "the index would give more than %d dimensions", TT_MAX_RANK);
    for (int i = 0; i < count; i++) {
        if (tt_is_none(indices[i]))
            s->new_axes[s->result_rank++] = true;
        else if (!s->from.rank)
            continue; /* `:` and `...` stand for nothing */
        else if (is_ellipsis(indices[i]))
            keep_dimensions(s, s->from.rank - taken);
        else if (indices[i].kind == TERM_SLICE)
            take_slice(w, s, indices[i]);
        else
            take_index(w, s, indices[i]);
    }
    keep_dimensions(s, s->from.rank - s->dimension);
}

/* One slice for all dimensions; none when they all stay whole. */
static Value *build_slice(Walker *w, const Subscript *s, Value *x)
{
    bool whole = true;
    for (int i = 0; i < s->from.rank; i++)
        whole &= s->offsets[i] == 0 && s->strides[i] == 1 && s->extents[i] == s->from.extents[i];
    if (whole)
        return x;
    Attr *attrs = tt_attr_ints(w->module, ATTR_offsets, s->offsets, s->from.rank, NULL);
    attrs = tt_attr_ints(w->module, ATTR_strides, s->strides, s->from.rank, attrs);
    const Type *type = tt_tile_type(w->module, x->type->element, s->extents, s->from.rank);
    return tt_build(&w->builder, OP_slice, &x, 1, type, attrs);
}

static Value *build_extract(Walker *w, Value *x, int axis, Value *index)
{
    int64_t shape[TT_MAX_RANK];
    int rank = 0;
    for (int i = 0; i < x->type->rank; i++)
        if (i != axis)
            shape[rank++] = x->type->shape[i];
    const Type *type = rank ? tt_tile_type(w->module, x->type->element, shape, rank) : x->type->element;
    Attr *attr = tt_attr_int(w->module, ATTR_axis, axis, NULL);
    return tt_build(&w->builder, OP_extract, (Value *[]){x, index}, 2, type, attr);
}

/* x_ptr[i] is what people write first; a pointer is no array. */
static void check_indexable(Walker *w, Term t, const Term *indices, int count)
{
    for (int i = 0; i < count; i++) {
        if (tt_shape_of(t).rank || tt_is_none(indices[i]) || is_ellipsis(indices[i]) || is_whole(indices[i]))
            continue;
        const char *remedy = "scalars take no index but None and :";
        if (tt_dtype_is_pointer(t.dtype))
            remedy = "a pointer is not an array: load an element with tl.load(pointer + index)";
        tt_fail_with_remedy(w, remedy, "unsupported tensor index: %s, of the scalar %s",
                            tt_describe(w, indices[i]), tt_describe(w, t));
    }
}

/* Slices first, then indices from the last dimension to the first, so that the numbers of those before
 * stay valid, and new dimensions from the first to the last for the same reason. */
Term tt_semantic_subscript(Walker *w, Term t, const Term *given, int count)
{
    if (count == 1 && given[0].kind == TERM_TUPLE && !given[0].object) {
        count = given[0].count;
        given = given[0].items;
    }
    Term *indices = TT_NEW_ARRAY(w->arena, Term, count);
    for (int i = 0; i < count; i++)
        indices[i] = tt_as_slice(w, given[i]);
    check_indexable(w, t, indices, count);
    Subscript *s = TT_NEW(w->arena, Subscript);
    s->from = tt_shape_of(t);
    for (int i = 0; i < s->from.rank; i++) {
        s->strides[i] = 1;
        s->extents[i] = s->from.extents[i];
    }
    read_indices(w, s, indices, count);
    Value *value = s->from.rank ? build_slice(w, s, t.value) : t.value;
    for (int i = s->from.rank - 1; i >= 0; i--)
        if (s->is_pick[i])
            value = build_extract(w, value, i, index_value(w, s->picks[i], s->from.extents[i]));
    for (int i = 0; i < s->result_rank; i++)
        if (s->new_axes[i])
            value = tt_build_expand_dims(&w->builder, value, i);
    return tt_value_term(value, t.dtype);
}
