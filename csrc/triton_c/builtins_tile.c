/* Builtins of tiles as wholes: global ranges, products, transposition, reductions. */
#include "triton_c/walker.h"

/* ---- programs -------------------------------------------------------------------------------------------------------- */

static int64_t axis_argument(CWalker *w, const Call *call)
{
    int64_t axis = tt_c_known_argument(w, call, 0, "the axis");
    if (axis < 0 || axis > 2)
        tt_c_fail(w, NULL, "`%s` takes the axis 0, 1 or 2, not %lld", call->name, (long long)axis);
    return axis;
}

static Value *grid_index(CWalker *w, Opcode opcode, int64_t axis)
{
    Attr *attr = tt_attr_int(w->module, ATTR_axis, axis, NULL);
    return tt_build(&w->builder, opcode, NULL, 0, tt_scalar_type(w->module, TT_I32), attr);
}

Operand tt_c_builtin_program_id(CWalker *w, Call *call)
{
    Opcode opcode = strstr(call->name, "num") ? OP_num_programs : OP_program_id;
    return (Operand){grid_index(w, opcode, axis_argument(w, call)), &tt_int32, false};
}

/* The extent stands in brackets, or is that of the variable it is the value of. */
static int64_t range_extent(CWalker *w, const Call *call)
{
    const Shape *wanted = w->wanted;
    if (call->node->has_items) {
        if (call->node->items.count != 1)
            tt_c_fail(w, NULL, "a global range has one extent, and here are %d", call->node->items.count);
        return tt_c_extent(w, call->node->items.data[0]);
    }
    if (!wanted || wanted->rank > 1)
        tt_c_fail(w, "write its extent: get_global_range[TM](0)",
                  wanted ? "a global range has one dimension, and the variable has %d"
                         : "the extent of this global range is not known",
                  wanted ? wanted->rank : 0);
    return wanted->rank ? wanted->extents[0] : 1;
}

/* One extent an axis: it is what the grid is made of. */
static void note_extent(CWalker *w, int64_t axis, int64_t extent)
{
    const Loc *here = w->builder.loc;
    if (w->extents[axis] && w->extents[axis] != extent) {
        Diagnostic diag = {
            .kind = TT_USER_ERROR, .loc = here, .remedy = "take get_program_id for parts of another size"};
        diag.message = tt_arena_format(
            w->arena, "the global range of axis %lld has extent %lld here, and %lld elsewhere",
            (long long)axis, (long long)extent, (long long)w->extents[axis]);
        diag.notes[diag.note_count++] = (DiagNote){w->extent_locs[axis], "elsewhere"};
        tt_raise(&diag);
    }
    w->extents[axis] = extent;
    w->extent_locs[axis] = here;
}

/* get_global_range[TM](axis): this program's part of the indices along an axis; a scalar of an extent of 1 */
Operand tt_c_builtin_global_range(CWalker *w, Call *call)
{
    int64_t axis = axis_argument(w, call);
    bool is_scalar = !call->node->has_items && w->wanted && !w->wanted->rank;
    int64_t extent = range_extent(w, call);
    tt_c_at(w, call->node);
    if (extent > TT_MAX_ELEMENTS)
        tt_c_fail(w, "take smaller tiles, and more programs", "a tile may have %d elements, not %lld",
                  TT_MAX_ELEMENTS, (long long)extent);
    note_extent(w, axis, extent);
    Builder *b = &w->builder;
    Value *program = grid_index(w, OP_program_id, axis);
    if (is_scalar)
        return (Operand){program, &tt_int32, false};
    Value *first = tt_build2(b, OP_mul, program, tt_build_int(b, program->type, extent));
    Value *range = tt_build_range(b, 0, extent);
    return (Operand){tt_build2(b, OP_add, tt_build_splat(b, first, &extent, 1), range), &tt_int32, false};
}

/* ---- products -------------------------------------------------------------------------------------------------------- */

/* The type of the sums: of bytes int, of double double, else float; an accumulator of half asks for half. */
static const Dtype *sum_dtype(const Dtype *operand, const Operand *acc)
{
    if (tt_dtype_is_int(operand))
        return &tt_int32;
    if (operand == &tt_fp64)
        return &tt_fp64;
    if (acc && acc->dtype == &tt_fp16 && tt_dtype_width(operand) <= 16 && operand != &tt_bf16)
        return &tt_fp16;
    return &tt_fp32;
}

static Shape check_matrices(CWalker *w, Operand a, Operand b)
{
    Shape x = tt_c_shape(a), y = tt_c_shape(b);
    if (x.rank != y.rank || x.rank < 2 || x.rank > 3)
        tt_c_fail(w, "add dimensions with x[:, newaxis]",
                  "`dot` takes two tiles of two dimensions, or two of three, "
                  "not %s and %s",
                  tt_c_describe(w, a), tt_c_describe(w, b));
    if (x.extents[x.rank - 1] != y.extents[x.rank - 2])
        tt_c_fail(w, "turn one of them with trans(x) if its dimensions are the other way round",
                  "`dot` takes [M, K] and [K, N], with the same K on both sides, not %s and %s",
                  tt_c_describe(w, a), tt_c_describe(w, b));
    if (x.rank == 3 && x.extents[0] != y.extents[0])
        tt_c_fail(w, NULL,
                  "`dot` takes [B, M, K] and [B, K, N], with the same B on both sides, not %s and %s",
                  tt_c_describe(w, a), tt_c_describe(w, b));
    x.extents[x.rank - 1] = y.extents[x.rank - 1];
    return x;
}

static void check_element_types(CWalker *w, Operand *a, Operand *b)
{
    bool both_fp8 = tt_dtype_is_fp8(a->dtype) && tt_dtype_is_fp8(b->dtype);
    bool bytes = tt_dtype_is_int(a->dtype) && tt_dtype_width(a->dtype) == 8;
    bool known = bytes || tt_dtype_is_float(a->dtype);
    if (!known || (a->dtype != b->dtype && !both_fp8))
        tt_c_fail(w, "convert with a cast",
                  known ? "`dot` takes operands of one element type, not %s and %s"
                        : "`dot` takes int8, uint8 or floats on both sides, not %s and %s",
                  tt_c_describe(w, *a), tt_c_describe(w, *b));
    if (bytes && a->dtype->is_unsigned) {
        *a = tt_c_cast(w, *a, &tt_int16);
        *b = tt_c_cast(w, *b, &tt_int16);
    }
}

static const char *precision_argument(CWalker *w, Call *call)
{
    static const char *const known[] = {"tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"};
    const Node *last = call->node->arguments.data[call->count - 1];
    if (call->count < 3 || last->kind != NODE_STRING)
        return "tf32";
    call->count--;
    for (size_t i = 0; i < TT_COUNT(known); i++)
        if (!strcmp(last->name, known[i]))
            return known[i];
    tt_c_fail(w, "there are \"tf32\", \"tf32x3\", \"bf16x3\", \"bf16x6\" and \"ieee\"",
              "`dot` knows no precision \"%s\"", last->name);
}

/* dot(a, b), dot(a, b, c), and behind these how floats are multiplied */
Operand tt_c_builtin_dot(CWalker *w, Call *call)
{
    const char *precision = precision_argument(w, call);
    Operand a = tt_c_settle(w, "`dot`", call->arguments[0]), b = tt_c_settle(w, "`dot`", call->arguments[1]);
    if (call->count > 3)
        tt_c_fail(w, NULL, "`dot` takes two tiles, what is added to their product, and a string");
    Shape shape = check_matrices(w, a, b);
    check_element_types(w, &a, &b);
    Operand acc = {0};
    if (call->count == 3)
        acc = tt_c_settle(w, "`dot`", call->arguments[2]);
    const Dtype *dtype = sum_dtype(a.dtype, acc.value ? &acc : NULL);
    if (acc.value && (tt_dtype_is_pointer(acc.dtype) || (tt_is_tile(acc.value->type) && acc.dtype != dtype)))
        tt_c_fail(w, "declare it so, and convert the result",
                  "what this `dot` adds to must be of type %s, not %s", tt_c_dtype_name(w, dtype),
                  tt_c_describe(w, acc));
    acc = acc.value
              ? tt_c_cast(w, acc, dtype)
              : tt_c_operand((Typed){tt_build_filler(&w->builder, tt_dtype_type(w->module, dtype)), dtype});
    acc = tt_c_broadcast(w, "the product", acc, &shape);
    Value *operands[] = {a.value, b.value, acc.value};
    Attr *attrs = tt_attr_string(w->module, ATTR_precision, precision, NULL);
    return (Operand){tt_build(&w->builder, OP_dot, operands, 3, acc.value->type, attrs), dtype, false};
}

/* ---- shapes ---------------------------------------------------------------------------------------------------------- */

/* trans(x): the last two dimensions change places; trans(x, 2, 0, 1): in this order */
Operand tt_c_builtin_trans(CWalker *w, Call *call)
{
    Operand x = tt_c_settle(w, call->name, call->arguments[0]);
    Shape shape = tt_c_shape(x);
    int64_t order[TT_MAX_RANK];
    bool seen[TT_MAX_RANK] = {0};
    if (shape.rank < 2)
        tt_c_fail(w, "add a dimension first, as in x[:, newaxis]",
                  "`trans` takes a tile of two dimensions or more, not %s", tt_c_describe(w, x));
    if (call->count > 1 && call->count - 1 != shape.rank)
        tt_c_fail(w, NULL, "`trans` takes each dimension of %s once", tt_c_describe(w, x));
    for (int i = 0; i < shape.rank; i++) {
        order[i] = call->count > 1      ? tt_c_known_argument(w, call, i + 1, "a dimension")
                   : i < shape.rank - 2 ? i
                                        : 2 * shape.rank - 3 - i;
        if (order[i] < 0 || order[i] >= shape.rank || seen[order[i]])
            tt_c_fail(w, NULL, "`trans` takes each dimension of %s once", tt_c_describe(w, x));
        seen[order[i]] = true;
    }
    x.value = tt_build_permute(&w->builder, x.value, order);
    return x;
}

/* reshape(x, extents...): the same elements in the same order */
Operand tt_c_builtin_reshape(CWalker *w, Call *call)
{
    Operand x = tt_c_settle(w, call->name, call->arguments[0]);
    Shape from = tt_c_shape(x), shape = {.rank = call->count - 1};
    for (int i = 0; i < shape.rank; i++) {
        shape.extents[i] = tt_c_known_argument(w, call, i + 1, "an extent");
        if (shape.extents[i] < 1)
            tt_c_fail(w, NULL, "an extent must be at least 1, not %lld", (long long)shape.extents[i]);
    }
    if (tt_shape_is_too_large(&shape) || tt_shape_count(&shape) != tt_shape_count(&from))
        tt_c_fail(w, "the extents must multiply to the number of elements",
                  "`reshape` cannot give %s the shape %s", tt_c_describe(w, x),
                  tt_shape_format(w->arena, &shape));
    Builder *b = &w->builder;
    x.value = from.rank ? tt_build_reshape(b, x.value, shape.extents, shape.rank)
                        : tt_build_splat(b, x.value, shape.extents, shape.rank);
    return x;
}

/* ---- reductions ------------------------------------------------------------------------------------------------------ */

/* Sums: of narrow integers in 32 bits, of bfloat16 in float, of half in float and rounded once. Extrema: of what is narrow
 * in int or float. */
static const Dtype *reduced_dtype(const Dtype *dtype, bool is_sum)
{
    if (tt_dtype_is_int(dtype) && tt_dtype_width(dtype) < 32)
        return is_sum && dtype->is_unsigned ? &tt_uint32 : &tt_int32;
    if (tt_dtype_is_float(dtype) && tt_dtype_width(dtype) < 32)
        return is_sum && dtype == &tt_fp16 ? dtype : &tt_fp32;
    return dtype;
}

static void build_combination(CWalker *w, Region *region, const Dtype *dtype, const char *name)
{
    Builder b = tt_builder_at_end(region);
    b.loc = w->builder.loc;
    const Type *type = tt_dtype_type(w->module, dtype);
    Value *x = tt_add_region_arg(region, type), *y = tt_add_region_arg(region, type);
    Opcode opcode = !strcmp(name, "sum") ? (tt_dtype_is_float(dtype) ? OP_fadd : OP_add)
                                         : tt_extremum_opcode(dtype, !strcmp(name, "max"), false);
    Value *both = tt_build2(&b, opcode, x, y);
    tt_build_op(&b, OP_yield, &both, 1, NULL, 0, NULL);
}

/* sum(x, axis), max(x, axis), min(x, axis): the axis goes */
Operand tt_c_builtin_reduce(CWalker *w, Call *call)
{
    Operand x = tt_c_settle(w, call->name, call->arguments[0]);
    bool is_sum = !strcmp(call->name, "sum");
    Shape shape = tt_c_shape(x), rest = {0};
    if (!shape.rank || tt_dtype_is_pointer(x.dtype))
        tt_c_fail(w, NULL, "`%s` takes a tile of numbers and an axis, not %s", call->name,
                  tt_c_describe(w, x));
    int64_t axis = tt_c_known_argument(w, call, 1, "the axis");
    if (axis < 0 || axis >= shape.rank)
        tt_c_fail(w, "dimensions are counted from 0", "`%s` got the axis %lld, and %s has %d dimension%s",
                  call->name, (long long)axis, tt_c_describe(w, x), shape.rank, shape.rank == 1 ? "" : "s");
    for (int i = 0; i < shape.rank; i++)
        if (i != axis)
            rest.extents[rest.rank++] = shape.extents[i];
    const Dtype *dtype = reduced_dtype(x.dtype, is_sum),
                *computed = is_sum && dtype == &tt_fp16 ? &tt_fp32 : dtype;
    x = tt_c_cast(w, tt_c_cast(w, x, dtype), computed);
    const Type *type = tt_shaped_type(w->module, tt_dtype_type(w->module, computed), rest.extents, rest.rank);
    Attr *attr = tt_attr_int(w->module, ATTR_axis, axis, NULL);
    Op *op = tt_build_op(&w->builder, OP_reduce, &x.value, 1, &type, 1, attr);
    build_combination(w, op->regions[0], computed, call->name);
    return tt_c_cast(w, (Operand){op->results[0], computed, false}, dtype);
}
