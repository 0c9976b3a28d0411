/* Products of matrices. */
#include "frontend/builtins.h"

typedef struct DotOptions {
    Term acc;            /* None, or the accumulator */
    const Dtype *result; /* what the user asked for */
    const char *precision;
    int64_t max_imprecise;
} DotOptions;

static _Noreturn void operand_error(Walker *w, const char *what, Term a, Term b, const char *rule,
                                    const char *remedy)
{
    tt_fail_with_remedy(w, remedy, "%s %s, not %s and %s", what, rule, tt_describe(w, a), tt_describe(w, b));
}

/* Batches and inner extents agree; no extent has a minimum. */
static void check_shapes(Walker *w, const char *what, Term a, Term b, Shape *result)
{
    Shape x = tt_shape_of(a), y = tt_shape_of(b);
    if (x.rank != y.rank || x.rank < 2)
        operand_error(
            w, what, a, b, "takes two tiles of equally many dimensions, at least two",
            "add dimensions with x[:, None], or reduce a product for vectors: tl.sum(a * b, axis=0)");
    if (x.extents[x.rank - 1] != y.extents[x.rank - 2])
        operand_error(w, what, a, b, "takes [M, K] and [K, N], with the same K on both sides",
                      "transpose one of them with tl.trans(x) if its dimensions are the other way round");
    if (memcmp(x.extents, y.extents, sizeof(int64_t) * (size_t)(x.rank - 2)))
        operand_error(w, what, a, b, "takes [B, M, K] and [B, K, N], with the same B on both sides",
                      "broadcast the batch dimension first");
    *result = x;
    result->extents[x.rank - 1] = y.extents[x.rank - 1];
    tt_check_shape(w, what, result);
}

/* Both operands in a type that the operation multiplies: unsigned bytes become int16, where they keep
 * their values. */
static void check_types(Walker *w, const char *what, Term *a, Term *b)
{
    bool both_fp8 = tt_dtype_is_fp8(a->dtype) && tt_dtype_is_fp8(b->dtype);
    bool bytes = tt_dtype_is_int(a->dtype) && tt_dtype_width(a->dtype) == 8;
    bool known = bytes || tt_dtype_is_float(a->dtype);
    if (!known || (a->dtype != b->dtype && !both_fp8))
        operand_error(w, what, *a, *b,
                      known ? "takes operands that must be same dtype"
                            : "takes int8, uint8 or floats on both sides",
                      "convert one of them with .to(...)");
    if (bytes && a->dtype->is_unsigned) {
        *a = tt_cast(w, *a, &tt_int16, ROUND_NEAREST_EVEN);
        *b = tt_cast(w, *b, &tt_int16, ROUND_NEAREST_EVEN);
    }
}

/* The type of the accumulator and the result. */
static const Dtype *result_dtype(Walker *w, const char *what, const DotOptions *options, const Dtype *operand)
{
    const Dtype *fixed = tt_dtype_is_int(operand) ? &tt_int32 : operand == &tt_fp64 ? &tt_fp64 : NULL;
    bool has_acc = !tt_is_none(options->acc);
    const Dtype *dtype = fixed ? fixed : options->result;
    if (has_acc && tt_is_value(options->acc) && dtype == &tt_fp32 && options->acc.dtype == &tt_fp16)
        dtype = &tt_fp16;
    if (dtype == &tt_bf16)
        tt_fail_with_remedy(w, "take out_dtype=tl.float32 and convert the result with .to(tl.bfloat16)",
                            "%s cannot accumulate in bf16", what);
    bool possible = dtype == &tt_fp32 || dtype == fixed;
    if (dtype == &tt_fp16)
        possible = !fixed && tt_dtype_width(operand) <= 16 && operand != &tt_bf16;
    if (!possible)
        tt_fail_with_remedy(w, "take out_dtype=tl.float32 and convert the result with .to(...)",
                            "%s of %s operands cannot accumulate in %s", what, operand->name, dtype->name);
    return dtype;
}

/* Zero, a scalar repeated, or a tile of the very shape and type of the result. */
static Value *accumulator(Walker *w, const char *what, Term acc, const Dtype *dtype, const Shape *shape)
{
    if (tt_is_none(acc)) {
        const Type *type = tt_dtype_shaped(w, dtype, shape->extents, shape->rank);
        return tt_dtype_is_float(dtype) ? tt_build_float(&w->builder, type, 0)
                                        : tt_build_int(&w->builder, type, 0);
    }
    if (tt_is_number(acc) || (tt_is_value(acc) && !tt_is_tile_term(acc)))
        return tt_broadcast_to(w, what, tt_cast(w, acc, dtype, ROUND_NEAREST_EVEN), shape).value;
    Shape given = tt_is_value(acc) ? tt_shape_of(acc) : (Shape){0};
    if (!tt_is_value(acc) || acc.dtype != dtype || given.rank != shape->rank ||
        memcmp(given.extents, shape->extents, sizeof(int64_t) * (size_t)shape->rank))
        tt_fail_with_remedy(w, "begin with tl.zeros of that shape and type, or convert with .to(...)",
                            "the accumulator of this %s must be %s%s, not %s", what, dtype->name,
                            tt_shape_text(w, shape), tt_describe(w, acc));
    return acc.value;
}

/* [.., B, M, K] as the operation has it, with one dimension of batches at most. */
static Value *with_one_batch(Walker *w, const char *what, Term t)
{
    Shape shape = tt_shape_of(t), joined = {.rank = 3, .extents = {1}};
    if (shape.rank <= 3)
        return t.value;
    for (int i = 0; i < shape.rank - 2; i++)
        joined.extents[0] *= shape.extents[i];
    memcpy(joined.extents + 1, shape.extents + shape.rank - 2, 2 * sizeof(int64_t));
    return tt_reshape(w, what, t, &joined).value;
}

static void check_imprecise(Walker *w, const DotOptions *options, Term a, Term b)
{
    Shape shape = tt_shape_of(a);
    int64_t inner = shape.extents[shape.rank - 1];
    if (!tt_dtype_is_fp8(a.dtype) || !tt_dtype_is_fp8(b.dtype) || options->max_imprecise <= inner)
        return;
    const char *message = tt_arena_format(w->arena, "max_num_imprecise_acc (%lld) must be <= K (%lld)",
                                          (long long)options->max_imprecise, (long long)inner);
    PyErr_SetString(PyExc_ValueError, message); /* the cause, as programs compare it with these words alone */
    tt_fail_with_remedy(w, "leave it out, or take 0 for an accumulator of full precision", "%s", message);
}

static Term build_dot(Walker *w, const char *what, Term a, Term b, const DotOptions *options)
{
    Shape shape;
    check_shapes(w, what, a, b, &shape);
    check_types(w, what, &a, &b);
    check_imprecise(w, options, a, b);
    const Dtype *dtype = result_dtype(w, what, options, a.dtype);
    Term acc = tt_value_term(accumulator(w, what, options->acc, dtype, &shape), dtype);
    Value *operands[] = {with_one_batch(w, what, a), with_one_batch(w, what, b),
                         with_one_batch(w, what, acc)};
    Attr *attrs = tt_attr_string(w->module, ATTR_precision, options->precision, NULL);
    if (options->max_imprecise)
        attrs = tt_attr_int(w->module, ATTR_max_imprecise, options->max_imprecise, attrs);
    Value *product = tt_build(&w->builder, OP_dot, operands, 3, operands[2]->type, attrs);
    Term result = tt_value_term(product, dtype);
    return shape.rank <= 3 ? result : tt_reshape(w, what, result, &shape);
}

Term tt_dot(Walker *w, const char *what, Term a, Term b)
{
    DotOptions options = {.acc = tt_none(w), .result = &tt_fp32, .precision = "tf32"};
    return build_dot(w, what, tt_term_value(w, a), tt_term_value(w, b), &options);
}

/* allow_tf32 is the older way to say the same. */
static const char *precision_argument(Walker *w, Term *args, int input_precision, int allow_tf32)
{
    const char *precision = tt_arg_string(w, args, input_precision);
    bool older = !tt_is_none(args[allow_tf32]);
    if (precision && older)
        tt_fail(w, "tl.dot takes input_precision or allow_tf32, not both");
    if (older)
        return tt_arg_bool(w, args, allow_tf32) ? "tf32" : "ieee";
    if (!precision)
        return "tf32";
    static const char *const known[] = {"tf32", "tf32x3", "bf16x3", "bf16x6", "ieee"};
    for (size_t i = 0; i < TT_COUNT(known); i++)
        if (!strcmp(precision, known[i]))
            return precision;
    tt_arg_error(w, args, input_precision, "\"tf32\", \"tf32x3\", \"bf16x3\", \"bf16x6\", \"ieee\" or None");
}

/* dot(input, other, acc, input_precision, allow_tf32, max_num_imprecise_acc, out_dtype) */
Term tt_builtin_dot(Walker *w, Term *args)
{
    enum { INPUT, OTHER, ACC, PRECISION, ALLOW_TF32, IMPRECISE, OUT_DTYPE };
    DotOptions options = {.acc = args[ACC], .result = tt_arg_dtype(w, args, OUT_DTYPE)};
    options.result = options.result ? options.result : &tt_fp32;
    options.precision = precision_argument(w, args, PRECISION, ALLOW_TF32);
    options.max_imprecise = tt_arg_int_or(w, args, IMPRECISE, 0);
    Term a = tt_arg_value(w, args, INPUT), b = tt_arg_value(w, args, OTHER);
    /* Libraries ask for fp64 to add up several products in it (torch.sparse); each is one of fp32. */
    bool widened = options.result == &tt_fp64 && a.dtype == &tt_fp32 && tt_is_none(options.acc);
    if (widened)
        options.result = &tt_fp32;
    Term product = build_dot(w, "tl.dot", a, b, &options);
    return widened ? tt_cast(w, product, &tt_fp64, ROUND_NEAREST_EVEN) : product;
}
