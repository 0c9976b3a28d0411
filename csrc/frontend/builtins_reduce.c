/* Builtins that combine elements: reductions, scans, histograms. */
#include "frontend/builtins.h"

enum { MAX_OPERANDS = 16 }; /* tiles that one reduction or scan takes together */

typedef struct Operands {
    Term items[MAX_OPERANDS];
    int count;
    bool is_tuple; /* the result is one too */
    Shape shape;
} Operands;

/* One tile, or a tuple of tiles of one shape. */
static Operands read_operands(Walker *w, Term *args, int index)
{
    Operands o = {.count = 1};
    const Term *items = &args[index];
    if (!tt_is_value(args[index]))
        o.is_tuple = tt_term_items(w, args[index], &items, &o.count);
    if (o.count < 1 || o.count > MAX_OPERANDS)
        tt_fail(w, "%s takes from 1 to %d tiles together, not %d", tt_call_name(w), MAX_OPERANDS, o.count);
    for (int i = 0; i < o.count; i++) {
        if (!tt_is_tile_term(items[i]))
            tt_fail_with_remedy(
                w, tt_is_value(items[i]) ? "a scalar is its own sum and maximum: leave the call out" : NULL,
                "%s takes a tile or a tuple of tiles, not %s", tt_call_name(w), tt_describe(w, items[i]));
        if (tt_dtype_is_pointer(items[i].dtype))
            tt_fail(w, "%s does not take pointers, %s", tt_call_name(w), tt_describe(w, items[i]));
        o.items[i] = items[i];
        Shape shape = tt_shape_of(items[i]);
        if (i && (shape.rank != o.shape.rank ||
                  memcmp(shape.extents, o.shape.extents, sizeof(int64_t) * (size_t)shape.rank)))
            tt_fail_with_remedy(w, "broadcast them with tl.broadcast first",
                                "%s takes tiles of one shape together, not %s and %s", tt_call_name(w),
                                tt_describe(w, items[0]), tt_describe(w, items[i]));
        o.shape = shape;
    }
    return o;
}

/* A tuple went in, a tuple comes out. */
static Term results_term(Walker *w, const Operands *o, Op *op)
{
    Term results[MAX_OPERANDS];
    for (int i = 0; i < o->count; i++)
        results[i] = tt_value_term(op->results[i], o->items[i].dtype);
    return o->is_tuple ? tt_tuple_term(w, results, o->count) : results[0];
}

/* What the combine function gave: a scalar of the operand's type, or a tile of one (see make_scalars). */
static Value *combined_value(Walker *w, const Operands *o, int index, Term result)
{
    const Dtype *wanted = o->items[index].dtype;
    if (tt_is_number(result))
        return tt_number_value(w, result, wanted).value;
    Shape shape = tt_is_value(result) ? tt_shape_of(result) : (Shape){0};
    if (!tt_is_value(result) || tt_shape_count(&shape) != 1 || result.dtype != wanted)
        tt_fail_with_remedy(
            w, "convert the result in the combine function with .to(...)",
            "the combine function of %s takes scalars of type %s and must return such, not %s",
            tt_call_name(w), wanted->name, tt_describe(w, result));
    return result.value;
}

/* What works on scalars, in messages. */
static const char *function_of_scalars(Walker *w)
{
    return strcmp(w->call->name, "map_elements")
               ? tt_arena_format(w->arena, "the combine function of %s", tt_call_name(w))
               : "the function of tl.map_elementwise";
}

/* Elements are combined in any order and number, so there is nothing but arithmetic. */
static void check_combine(Op *op, void *context)
{
    Walker *w = context;
    if (!tt_has(op, READS | WRITES | HAS_EFFECT))
        return;
    tt_error_with_remedy(op->loc, "compute from the parameters only, and load before the call",
                         "%s cannot access memory, print or assert", function_of_scalars(w));
}

/* ---- one element is a scalar ---------------------------------------------------------------------------------- */

static void make_scalar(Walker *w, const Op *op, Value *value)
{
    const Type *type = value->type;
    int64_t count = 1;
    if (!tt_is_tile(type))
        return;
    for (int i = 0; i < type->rank; i++)
        count *= type->shape[i];
    if (count != 1)
        tt_error_with_remedy(op->loc, "compute with the parameters and numbers, element by element",
                             "%s works on scalars, and here is a tile of %lld elements",
                             function_of_scalars(w), (long long)count);
    value->type = type->element;
}

/* The scalar that an operation on tiles gives where each has one element; NULL: it is itself one on scalars. */
static Value *scalar_result(const Op *op, int index)
{
    Builder b = tt_builder_before((Op *)op);
    bool combines = tt_control(op) == COMBINE;
    if (op->opcode == OP_range)
        return tt_build_int(&b, op->results[0]->type, tt_int_attr(op, ATTR_start, 0));
    return tt_has(op, SHAPE) || combines || op->opcode == OP_gather || op->opcode == OP_hint
               ? tt_operand(op, index)
               : NULL;
}

/* A combine function sees scalars, and what it makes of them are scalars too, tiles of one element included: targets
 * know no tiles there. Inner regions come after their operation. */
static void make_scalars(Op *op, void *context)
{
    Walker *w = context;
    bool is_simpler = op->result_count > 0;
    for (int i = 0; i < op->result_count; i++)
        make_scalar(w, op, op->results[i]);
    for (int i = 0; i < op->region_count; i++)
        for (int j = 0; j < op->regions[i]->arg_count; j++)
            make_scalar(w, op, op->regions[i]->args[j]);
    for (int i = 0; i < op->result_count && is_simpler; i++) {
        Value *scalar = scalar_result(op, i);
        is_simpler = scalar != NULL;
        if (scalar)
            tt_replace_all_uses(op->results[i], scalar);
    }
    if (is_simpler)
        tt_erase_op(op);
}

int tt_call_on_scalars(Walker *w, Region *region, Term function, const Term *scalars, int count,
                       Term *results, int max_results)
{
    int given = tt_call_in_region(w, region, function, scalars, count, results, max_results);
    tt_walk(region, check_combine, w);
    return given;
}

void tt_end_scalar_function(Walker *w, Region *region, Value *const *results, int count)
{
    tt_build_op(&w->builder, OP_yield, results, count, NULL, 0, NULL);
    tt_walk(region, make_scalars, w);
}

/* Fills the region of a reduce or scan: the combine function called on two elements of each operand. */
static void build_combine(Walker *w, Op *op, const Operands *o, Term function)
{
    Region *region = op->regions[0];
    Term scalars[2 * MAX_OPERANDS], results[MAX_OPERANDS];
    Value *values[MAX_OPERANDS];
    for (int i = 0; i < 2 * o->count; i++) {
        const Dtype *dtype = o->items[i % o->count].dtype;
        scalars[i] = tt_value_term(tt_add_region_arg(region, tt_dtype_ir(w, dtype)), dtype);
    }
    int given = tt_call_on_scalars(w, region, function, scalars, 2 * o->count, results, MAX_OPERANDS);
    if (given != o->count)
        tt_fail(w, "the combine function of %s must return %d value%s, one for each tile, not %d",
                tt_call_name(w), o->count, o->count == 1 ? "" : "s", given);
    Builder outside = w->builder;
    w->builder = tt_builder_at_end(region);
    w->builder.loc = outside.loc;
    for (int i = 0; i < given; i++)
        values[i] = combined_value(w, o, i, results[i]);
    tt_end_scalar_function(w, region, values, given);
    w->builder = outside;
}

static Op *build_tile_op(Walker *w, Opcode opcode, const Operands *o, const Type *const *types, Attr *attrs)
{
    Value *values[MAX_OPERANDS];
    for (int i = 0; i < o->count; i++)
        values[i] = o->items[i].value;
    return tt_build_op(&w->builder, opcode, values, o->count, types, o->count, attrs);
}

/* Puts reduced dimensions back, with extent 1: the one at `axis`, or all `rank` of them when axis is
 * negative. */
static Term restore_dims(Walker *w, Term t, int axis, int rank)
{
    if (t.kind == TERM_TUPLE) {
        Term *items = TT_NEW_ARRAY(w->arena, Term, t.count);
        for (int i = 0; i < t.count; i++)
            items[i] = restore_dims(w, t.items[i], axis, rank);
        return tt_tuple_term(w, items, t.count);
    }
    if (axis >= 0)
        return tt_expand_dims(w, tt_call_name(w), t, axis);
    for (int i = 0; i < rank; i++)
        t = tt_expand_dims(w, tt_call_name(w), t, i);
    return t;
}

/* The reduction without `axis` in the result's shape; of rank 1 a scalar. */
static Term reduce_along(Walker *w, const Operands *o, int axis, Term function)
{
    const Type *types[MAX_OPERANDS];
    Shape rest = {0};
    for (int i = 0; i < o->shape.rank; i++)
        if (i != axis)
            rest.extents[rest.rank++] = o->shape.extents[i];
    for (int i = 0; i < o->count; i++)
        types[i] = tt_dtype_shaped(w, o->items[i].dtype, rest.extents, rest.rank);
    Op *op = build_tile_op(w, OP_reduce, o, types, tt_attr_int(w->module, ATTR_axis, axis, NULL));
    build_combine(w, op, o, function);
    return results_term(w, o, op);
}

/* reduce(input, axis, combine_fn, keep_dims) */
Term tt_builtin_reduce(Walker *w, Term *args)
{
    enum { INPUT, AXIS, COMBINE, KEEP_DIMS };
    Operands o = read_operands(w, args, INPUT);
    int axis = -1, rank = o.shape.rank;
    if (!tt_is_none(args[AXIS])) {
        axis = tt_check_axis(w, tt_call_name(w), tt_arg_int(w, args, AXIS), rank);
    } else {
        Shape flat = {1, {tt_shape_count(&o.shape)}};
        for (int i = 0; i < o.count; i++)
            o.items[i] = tt_reshape(w, tt_call_name(w), o.items[i], &flat);
        o.shape = flat;
    }
    bool keep_dims = tt_arg_bool(w, args, KEEP_DIMS);
    Term result = reduce_along(w, &o, TT_MAX(axis, 0), args[COMBINE]);
    return keep_dims ? restore_dims(w, result, axis, rank) : result;
}

/* associative_scan(input, axis, combine_fn, reverse) */
Term tt_builtin_associative_scan(Walker *w, Term *args)
{
    enum { INPUT, AXIS, COMBINE, REVERSE };
    Operands o = read_operands(w, args, INPUT);
    int axis = tt_check_axis(w, tt_call_name(w), tt_arg_int(w, args, AXIS), o.shape.rank);
    const Type *types[MAX_OPERANDS];
    for (int i = 0; i < o.count; i++)
        types[i] = o.items[i].value->type;
    Attr *attrs = tt_attr_int(w->module, ATTR_axis, axis, NULL);
    if (tt_arg_bool(w, args, REVERSE))
        attrs = tt_attr_int(w->module, ATTR_reverse, 1, attrs);
    Op *op = build_tile_op(w, OP_scan, &o, types, attrs);
    build_combine(w, op, &o, args[COMBINE]);
    return results_term(w, &o, op);
}

/* histogram(input, num_bins, mask) */
Term tt_builtin_histogram(Walker *w, Term *args)
{
    enum { INPUT, BINS, MASK };
    Term input = tt_arg_value(w, args, INPUT);
    if (!tt_is_tile_term(input) || !tt_dtype_is_int(input.dtype) || tt_dtype_is_bool(input.dtype))
        tt_fail(w, "tl.histogram takes a tile of integers, not %s", tt_describe(w, input));
    Shape bins = {1, {tt_arg_int(w, args, BINS)}}, from = tt_shape_of(input),
          flat = {1, {tt_shape_count(&from)}};
    tt_check_shape(w, "tl.histogram", &bins);
    Value *values[2];
    int given = 1;
    if (tt_dtype_width(input.dtype) < 32) /* so that every value keeps its sign */
        input = tt_cast(w, input, &tt_int32, ROUND_NEAREST_EVEN);
    values[0] = tt_reshape(w, "tl.histogram", input, &flat).value;
    if (!tt_is_none(args[MASK])) {
        Term mask = tt_broadcast_to(w, "tl.histogram", tt_to_bool(w, args[MASK]), &from);
        values[given++] = tt_reshape(w, "tl.histogram", mask, &flat).value;
    }
    const Type *type = tt_dtype_shaped(w, &tt_int32, bins.extents, 1);
    return tt_value_term(tt_build(&w->builder, OP_histogram, values, given, type, NULL), &tt_int32);
}
