/* Products that tensor cores do not make as they are become products that they make. fp32 operands more precise than one
 * tf32 or bf16 are cut into parts, from the most significant bits on, and the products of parts that matter are added up.
 * 8-bit floats of a GPU without instructions for them are widened to fp16, which holds the values of each. */
#include "gpu/passes.h"
#include "opt/pass.h"

enum { MOST_PARTS = 3 };

/* x = sum of the parts; the product is that of parts i and j with i + j < parts, and of (1, 1) among three. */
typedef struct Scheme {
    const char *precision;
    int parts, dropped_bits; /* of f32, that a part but the last does not have */
    TypeKind kind;           /* of a part */
} Scheme;

static const Scheme *scheme_of(const Op *dot)
{
    static const Scheme schemes[] = {
        {"tf32x3", 2, 13, TT_F32}, {"bf16x3", 2, 16, TT_BF16}, {"bf16x6", 3, 16, TT_BF16}};
    const char *precision = tt_string_attr(dot, ATTR_precision, "tf32");
    for (size_t i = 0; i < TT_COUNT(schemes); i++)
        if (!strcmp(schemes[i].precision, precision))
            return &schemes[i];
    return NULL;
}

/* The value with its low mantissa bits cleared, and what that leaves. Clearing never makes an infinity of a number. */
static Value *cut(Builder *b, Value *value, int bits, Value **rest)
{
    const Type *i32 = tt_scalar_type(b->module, TT_I32);
    Value *whole = tt_build_cast(b, OP_bitcast, value, i32);
    Value *mask = tt_build_int(b, whole->type, -(1ll << bits));
    Value *upper = tt_build_cast(b, OP_bitcast, tt_build2(b, OP_and, whole, mask), tt_element(value->type));
    *rest = tt_build2(b, OP_fsub, value, upper);
    return upper;
}

static void cut_operand(Builder *b, const Scheme *scheme, Value *value, Value *parts[MOST_PARTS])
{
    const Type *element = tt_scalar_type(b->module, scheme->kind);
    for (int i = 0; i < scheme->parts; i++) {
        Value *part = value;
        if (i + 1 < scheme->parts)
            part = cut(b, value, scheme->dropped_bits, &value);
        parts[i] = element == tt_element(part->type) ? part : tt_build_cast(b, OP_float_cast, part, element);
    }
}

/* Of an infinity the rest is no number, and zero times infinity is none: the product of the largest parts alone has what
 * there is to say then. */
static Value *zero_for_nan(Builder *b, Value *sums)
{
    return tt_build3(b, OP_select, tt_build2(b, OP_feq, sums, sums), sums, tt_build_float(b, sums->type, 0));
}

/* Small products first, so that their sum is not lost in that of the large ones. */
static void multiply_parts(Op *dot, const Scheme *scheme)
{
    Builder b = tt_builder_before(dot);
    Value *a_parts[MOST_PARTS], *b_parts[MOST_PARTS];
    cut_operand(&b, scheme, tt_operand(dot, 0), a_parts);
    cut_operand(&b, scheme, tt_operand(dot, 1), b_parts);
    const Type *type = dot->results[0]->type;
    Value *sums = tt_build_float(&b, type, 0);
    for (int order = scheme->parts - 1; order >= 0; order--)
        for (int i = 0; i <= order; i++) {
            if (!order)
                sums = tt_build2(&b, OP_fadd, zero_for_nan(&b, sums), tt_operand(dot, 2));
            Value *operands[] = {a_parts[i], b_parts[order - i], sums};
            Attr *attrs = scheme->kind == TT_F32 /* parts may be cut */
                              ? tt_attr_ints(b.module, ATTR_raised, (int64_t[]){0, 0}, 2, NULL)
                              : NULL;
            sums = tt_build(&b, OP_dot, operands, 3, type,
                            tt_attr_string(b.module, ATTR_precision, "tf32", attrs));
        }
    sums->name = dot->results[0]->name;
    tt_replace_op(dot, &sums);
}

static void widen_operands(Op *dot)
{
    Builder b = tt_builder_before(dot);
    for (int i = 0; i < 2; i++) {
        const Type *f16 = tt_scalar_type(b.module, TT_F16);
        tt_set_operand(dot, i, tt_build_cast(&b, OP_float_cast, tt_operand(dot, i), f16));
    }
}

static bool is_native(const Type *fp8, const GpuOptions *options)
{
    TypeKind kind = tt_element(fp8)->kind;
    return options->sm >= 89 && (kind == TT_F8E4M3 || kind == TT_F8E5M2);
}

typedef struct Decomposer {
    const GpuOptions *options;
    bool changed;
} Decomposer;

static void visit(Op *op, void *context)
{
    Decomposer *d = context;
    if (op->opcode != OP_dot)
        return;
    const Type *a = tt_operand(op, 0)->type, *b = tt_operand(op, 1)->type;
    const Scheme *scheme = tt_element(a)->kind == TT_F32 ? scheme_of(op) : NULL;
    if (tt_is_fp8(a) && !(is_native(a, d->options) && is_native(b, d->options)))
        widen_operands(op);
    else if (scheme && d->options->sm >= 80)
        multiply_parts(op, scheme);
    else
        return;
    d->changed = true;
}

bool tt_gpu_decompose_dot(Module *module, const GpuOptions *options, Arena *scratch)
{
    (void)scratch;
    Decomposer d = {.options = options};
    tt_walk(module->functions->body, visit, &d);
    return d.changed;
}
