/* The rule of each operation for its types and attributes, as ops.def's `meaning` says it. The table at the
 * end is an expansion of ops.def: an operation whose row leaves something open (GIVEN, CAST, NOTHING) and
 * which has no check_NAME here does not compile. */
#include "ir/verify.h"

static const Type *type_of(const Op *op, int operand) { return tt_operand(op, operand)->type; }
static const Type *result_type(const Op *op) { return op->results[0]->type; }
static int rank_of(const Type *type) { return tt_is_tile(type) ? type->rank : 0; }

static const Type *with_kind(const Type *type, TypeKind kind, const Op *op)
{
    Module *module = op->parent->function->module;
    return tt_with_element(module, type, tt_scalar_type(module, kind));
}

static void expect_operand(Verifier *v, const Op *op, int operand, const Type *type)
{
    if (type_of(op, operand) != type)
        tt_verify_fail(v, op, "operand %d is %s, expected %s", operand, tt_type_text(v, type_of(op, operand)),
                       tt_type_text(v, type));
}

static void expect_result(Verifier *v, const Op *op, int result, const Type *type)
{
    if (op->results[result]->type != type)
        tt_verify_fail(v, op, "result %d is %s, expected %s", result,
                       tt_type_text(v, op->results[result]->type), tt_type_text(v, type));
}

static bool expect_tile(Verifier *v, const Op *op, int operand)
{
    if (!tt_is_tile(type_of(op, operand)))
        tt_verify_fail(v, op, "operand %d is %s, expected a tile", operand,
                       tt_type_text(v, type_of(op, operand)));
    return tt_is_tile(type_of(op, operand));
}

/* The attribute, which must be there. */
static const Attr *expect_attr(Verifier *v, const Op *op, AttrKey key)
{
    const Attr *attr = tt_find_attr(op, key);
    if (!attr)
        tt_verify_fail(v, op, "attribute '%s' is missing", tt_attr_names[key]);
    return attr;
}

/* Value of `axis`, or -1 when it is missing or none of 0 .. count - 1. */
static int expect_axis(Verifier *v, const Op *op, int count)
{
    const Attr *attr = expect_attr(v, op, ATTR_axis);
    if (attr && (attr->i < 0 || attr->i >= count))
        tt_verify_fail(v, op, "axis %lld is not one of %d", (long long)attr->i, count);
    return attr && attr->i >= 0 && attr->i < count ? (int)attr->i : -1;
}

static void expect_word(Verifier *v, const Op *op, AttrKey key, const char *const *words)
{
    const Attr *attr = tt_find_attr(op, key);
    if (!attr)
        return;
    for (int i = 0; words[i]; i++)
        if (!strcmp(attr->s, words[i]))
            return;
    tt_verify_fail(v, op, "unknown %s '%s'", tt_attr_names[key], attr->s);
}

/* `type` has this shape and element. */
static bool is_shaped(const Type *type, const Type *element, const int64_t *shape, int rank)
{
    return tt_element(type) == element && rank_of(type) == rank &&
           (!rank || !memcmp(type->shape, shape, sizeof(int64_t) * (size_t)rank));
}

static void expect_shape(Verifier *v, const Op *op, int result, const Type *element, const int64_t *shape,
                         int rank)
{
    if (!is_shaped(op->results[result]->type, element, shape, rank)) {
        Module *module = op->parent->function->module;
        expect_result(v, op, result, tt_shaped_type(module, element, shape, rank));
    }
}

/* The shape of `type` without dimension `axis`; returns its rank. */
static int without_axis(const Type *type, int axis, int64_t *shape)
{
    int rank = 0;
    for (int i = 0; i < type->rank; i++)
        if (i != axis)
            shape[rank++] = type->shape[i];
    return rank;
}

/* ---- constants and indices ----------------------------------------------------------------------------- */

static void check_constant(Verifier *v, const Op *op)
{
    const Attr *value = expect_attr(v, op, ATTR_value);
    const Type *type = result_type(op);
    int bits = tt_bit_width(type);
    if (!tt_is_int(type) && !tt_is_float(type)) {
        tt_verify_fail(v, op, "a constant is an integer or a float, not %s", tt_type_text(v, type));
    } else if (value && tt_is_float(type)) {
        double rounded = tt_round_to(type, value->f);
        if (value->f == value->f && rounded != value->f)
            tt_verify_fail(v, op, "the value is not one of %s", tt_type_name(tt_element(type)->kind));
    } else if (value && bits < 64) {
        int64_t lowest = bits == 1 ? 0 : -(1ll << (bits - 1)),
                highest = bits == 1 ? 1 : (1ll << (bits - 1)) - 1;
        if (value->i < lowest || value->i > highest)
            tt_verify_fail(v, op, "the value does not fit in %d bits", bits);
    }
}

static void check_range(Verifier *v, const Op *op)
{
    const Attr *start = expect_attr(v, op, ATTR_start), *end = expect_attr(v, op, ATTR_end);
    if (!start || !end)
        return;
    if (start->i >= end->i || start->i < INT32_MIN || end->i > INT32_MAX)
        tt_verify_fail(v, op, "the bounds are not start < end in 32 bits");
    else
        expect_shape(v, op, 0, with_kind(tt_element(result_type(op)), TT_I32, op),
                     &(int64_t){end->i - start->i}, 1);
}

static void check_program_id(Verifier *v, const Op *op)
{
    expect_axis(v, op, 3);
    expect_result(v, op, 0, with_kind(tt_element(result_type(op)), TT_I32, op));
}

static void check_num_programs(Verifier *v, const Op *op) { check_program_id(v, op); }

/* ---- elementwise --------------------------------------------------------------------------------------- */

static void check_elements(Verifier *v, const Op *op, const Type *type)
{
    bool pointers = op->opcode == OP_eq || op->opcode == OP_ne;
    if (tt_has(op, ON_INTS) && !tt_is_int(type) && !(pointers && tt_is_ptr(type)))
        tt_verify_fail(v, op, "works on integers, not %s", tt_type_text(v, type));
    if (tt_has(op, ON_FLOATS) && (!tt_is_float(type) || tt_is_fp8(type)))
        tt_verify_fail(v, op, "works on floats%s, not %s", tt_is_fp8(type) ? " of at least 16 bits" : "",
                       tt_type_text(v, type));
}

static void check_same(Verifier *v, const Op *op)
{
    const Type *type = type_of(op, 0);
    for (int i = 1; i < op->operand_count; i++)
        expect_operand(v, op, i, type);
    expect_result(v, op, 0, type);
    check_elements(v, op, type);
}

static void check_compare(Verifier *v, const Op *op)
{
    expect_operand(v, op, 1, type_of(op, 0));
    expect_result(v, op, 0, with_kind(type_of(op, 0), TT_I1, op));
    check_elements(v, op, type_of(op, 0));
}

static void check_select_rule(Verifier *v, const Op *op)
{
    expect_operand(v, op, 0, with_kind(type_of(op, 1), TT_I1, op));
    expect_operand(v, op, 2, type_of(op, 1));
    expect_result(v, op, 0, type_of(op, 1));
}

static void check_extern_call(Verifier *v, const Op *op)
{
    expect_attr(v, op, ATTR_symbol);
    for (int i = 0; i < op->operand_count; i++)
        if (!tt_same_shape(type_of(op, i), result_type(op)))
            tt_verify_fail(v, op, "operand %d is %s, and the result %s: the shapes differ", i,
                           tt_type_text(v, type_of(op, i)), tt_type_text(v, result_type(op)));
}

static void check_inline_asm(Verifier *v, const Op *op)
{
    expect_attr(v, op, ATTR_text);
    expect_attr(v, op, ATTR_constraints);
    int64_t pack = tt_int_attr(op, ATTR_pack, 1);
    if (!tt_is_pow2(pack) || !op->result_count)
        tt_verify_fail(v, op, "'pack' is %lld, expected a power of two, and at least one result",
                       (long long)pack);
    for (int i = 0; i < op->operand_count && op->result_count; i++)
        if (!tt_same_shape(type_of(op, i), result_type(op)))
            tt_verify_fail(v, op, "operand %d is %s, and the result %s: the shapes differ", i,
                           tt_type_text(v, type_of(op, i)), tt_type_text(v, result_type(op)));
}

static void check_inline_asm_effect(Verifier *v, const Op *op) { check_inline_asm(v, op); }

static void check_hint_list(Verifier *v, const Op *op, AttrKey key)
{
    const Attr *attr = tt_find_attr(op, key);
    int rank = TT_MAX(rank_of(result_type(op)), 1);
    if (attr && attr->count != rank)
        tt_verify_fail(v, op, "'%s' has %d numbers, expected %d", tt_attr_names[key], attr->count, rank);
    for (int i = 0; attr && i < attr->count; i++)
        if (attr->ints[i] < 1)
            tt_verify_fail(v, op, "'%s' holds %lld, expected positive numbers", tt_attr_names[key],
                           (long long)attr->ints[i]);
}

static void check_hint(Verifier *v, const Op *op)
{
    check_same(v, op);
    check_hint_list(v, op, ATTR_contiguity);
    check_hint_list(v, op, ATTR_divisibility);
    check_hint_list(v, op, ATTR_constancy);
}

static void check_assume(Verifier *v, const Op *op)
{
    expect_operand(v, op, 0, with_kind(tt_element(type_of(op, 0)), TT_I1, op));
}

/* ---- casts --------------------------------------------------------------------------------------------- */

typedef enum Class { INTEGER, FLOAT, FLOAT_OR_FP8, POINTER } Class;
static const char *const class_names[] = {"an integer", "a float of at least 16 bits", "a float",
                                          "a pointer"};

static bool is_class(const Type *type, Class class)
{
    switch (class) {
    case INTEGER:
        return tt_is_int(type);
    case FLOAT:
        return tt_is_float(type) && !tt_is_fp8(type);
    case FLOAT_OR_FP8:
        return tt_is_float(type);
    case POINTER:
        return tt_is_ptr(type);
    }
    return false;
}

/* `wider` is the sign of result width minus operand width that the cast wants, or 2 where widths do not
 * matter. */
static void check_cast(Verifier *v, const Op *op, Class from, Class to, int wider)
{
    const Type *operand = type_of(op, 0), *result = result_type(op);
    int difference = tt_bit_width(result) - tt_bit_width(operand);
    if (!is_class(operand, from) || !is_class(result, to))
        tt_verify_fail(v, op, "casts %s to %s, not %s to %s", class_names[from], class_names[to],
                       tt_type_text(v, operand), tt_type_text(v, result));
    else if (wider != 2 && wider != (difference > 0) - (difference < 0))
        tt_verify_fail(v, op, "from %s to %s is not a cast to %s type", tt_type_text(v, operand),
                       tt_type_text(v, result),
                       wider > 0   ? "a wider"
                       : wider < 0 ? "a narrower"
                                   : "an equally wide");
    if (!tt_same_shape(operand, result))
        tt_verify_fail(v, op, "operand is %s, and the result %s: the shapes differ", tt_type_text(v, operand),
                       tt_type_text(v, result));
}

static void check_trunc(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, INTEGER, -1); }
static void check_ext_s(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, INTEGER, 1); }
static void check_ext_u(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, INTEGER, 1); }
static void check_int_to_float_s(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, FLOAT, 2); }
static void check_int_to_float_u(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, FLOAT, 2); }
static void check_float_to_int_s(Verifier *v, const Op *op) { check_cast(v, op, FLOAT, INTEGER, 2); }
static void check_float_to_int_u(Verifier *v, const Op *op) { check_cast(v, op, FLOAT, INTEGER, 2); }

static void check_float_cast(Verifier *v, const Op *op)
{
    check_cast(v, op, FLOAT_OR_FP8, FLOAT_OR_FP8, 2);
    expect_word(v, op, ATTR_rounding, (const char *const[]){"rtne", "rtz", NULL});
    if (type_of(op, 0) == result_type(op))
        tt_verify_fail(v, op, "casts to the type it already has");
}

static void check_bitcast(Verifier *v, const Op *op)
{
    if (tt_is_ptr(type_of(op, 0)) || tt_is_ptr(result_type(op)))
        check_cast(v, op, POINTER, POINTER, 0);
    else
        check_cast(v, op, tt_is_int(type_of(op, 0)) ? INTEGER : FLOAT_OR_FP8,
                   tt_is_int(result_type(op)) ? INTEGER : FLOAT_OR_FP8, 0);
}

static void check_ptr_to_int(Verifier *v, const Op *op) { check_cast(v, op, POINTER, INTEGER, 0); }
static void check_int_to_ptr(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, POINTER, 0); }

/* ---- shape --------------------------------------------------------------------------------------------- */

static void check_splat(Verifier *v, const Op *op)
{
    if (tt_is_tile(type_of(op, 0)) || !tt_is_tile(result_type(op)) ||
        result_type(op)->element != type_of(op, 0))
        tt_verify_fail(v, op, "makes a tile of a scalar, not %s of %s", tt_type_text(v, result_type(op)),
                       tt_type_text(v, type_of(op, 0)));
}

static void check_expand_dims(Verifier *v, const Op *op)
{
    if (!expect_tile(v, op, 0))
        return;
    const Type *from = type_of(op, 0);
    int axis = expect_axis(v, op, from->rank + 1);
    if (axis < 0)
        return;
    if (from->rank == TT_MAX_RANK) {
        tt_verify_fail(v, op, "a tile has at most %d dimensions", TT_MAX_RANK);
        return;
    }
    int64_t shape[TT_MAX_RANK];
    for (int i = 0, j = 0; i <= from->rank; i++)
        shape[i] = i == axis ? 1 : from->shape[j++];
    expect_shape(v, op, 0, from->element, shape, from->rank + 1);
}

static void check_broadcast(Verifier *v, const Op *op)
{
    const Type *from = type_of(op, 0), *to = result_type(op);
    bool right = tt_is_tile(from) && tt_is_tile(to) && from->element == to->element && from->rank == to->rank;
    for (int i = 0; right && i < from->rank; i++)
        right = from->shape[i] == to->shape[i] || from->shape[i] == 1;
    if (!right)
        tt_verify_fail(v, op, "%s does not broadcast to %s", tt_type_text(v, from), tt_type_text(v, to));
}

static void check_reshape(Verifier *v, const Op *op)
{
    const Type *from = type_of(op, 0), *to = result_type(op);
    if (!tt_is_tile(from) || !tt_is_tile(to) || from->element != to->element || from->count != to->count)
        tt_verify_fail(v, op, "%s does not reshape to %s", tt_type_text(v, from), tt_type_text(v, to));
}

/* The operand's shape in another order of its dimensions; false when there is none. */
static bool permute_shape(Verifier *v, const Op *op, int64_t shape[TT_MAX_RANK])
{
    const Attr *order = expect_attr(v, op, ATTR_order);
    const Type *from = type_of(op, 0);
    unsigned seen = 0;
    for (int i = 0; order && i < order->count; i++)
        seen |= order->ints[i] >= 0 && order->ints[i] < from->rank ? 1u << order->ints[i] : 0;
    bool fits = order && order->count == from->rank && seen == (1u << from->rank) - 1;
    if (order && !fits)
        tt_verify_fail(v, op, "'order' is no permutation of the %d dimensions", from->rank);
    for (int i = 0; fits && i < from->rank; i++)
        shape[i] = from->shape[order->ints[i]];
    return fits;
}

static void check_permute(Verifier *v, const Op *op)
{
    int64_t shape[TT_MAX_RANK];
    if (!expect_tile(v, op, 0) || !permute_shape(v, op, shape))
        return;
    const Type *from = type_of(op, 0);
    expect_shape(v, op, 0, from->element, shape, from->rank);
}

static void check_join(Verifier *v, const Op *op)
{
    const Type *from = type_of(op, 0);
    int rank = rank_of(from);
    expect_operand(v, op, 1, from);
    if (rank == TT_MAX_RANK) {
        tt_verify_fail(v, op, "a tile has at most %d dimensions", TT_MAX_RANK);
        return;
    }
    int64_t shape[TT_MAX_RANK];
    if (rank)
        memcpy(shape, from->shape, sizeof(int64_t) * (size_t)rank);
    shape[rank] = 2;
    expect_shape(v, op, 0, tt_element(from), shape, rank + 1);
}

static void check_split(Verifier *v, const Op *op)
{
    if (!expect_tile(v, op, 0))
        return;
    const Type *from = type_of(op, 0);
    if (from->shape[from->rank - 1] != 2)
        tt_verify_fail(v, op, "the last extent of %s is not 2", tt_type_text(v, from));
    for (int i = 0; i < 2; i++)
        expect_shape(v, op, i, from->element, from->shape, from->rank - 1);
}

static void check_cat(Verifier *v, const Op *op)
{
    if (!expect_tile(v, op, 0) || !expect_tile(v, op, 1))
        return;
    const Type *first = type_of(op, 0), *second = type_of(op, 1);
    int axis = expect_axis(v, op, first->rank);
    if (axis < 0)
        return;
    int64_t shape[TT_MAX_RANK];
    memcpy(shape, first->shape, sizeof(int64_t) * (size_t)first->rank);
    bool right = first->rank == second->rank;
    if (right)
        shape[axis] = second->shape[axis];
    if (!right || !is_shaped(second, first->element, shape, first->rank)) {
        tt_verify_fail(v, op, "%s does not stand behind %s along axis %d", tt_type_text(v, second),
                       tt_type_text(v, first), axis);
        return;
    }
    shape[axis] = first->shape[axis] + second->shape[axis];
    expect_shape(v, op, 0, first->element, shape, first->rank);
}

static void check_slice(Verifier *v, const Op *op)
{
    const Attr *offsets = expect_attr(v, op, ATTR_offsets), *strides = expect_attr(v, op, ATTR_strides);
    const Type *from = type_of(op, 0), *to = result_type(op);
    if (!offsets || !strides || !expect_tile(v, op, 0))
        return;
    if (!tt_is_tile(to) || to->rank != from->rank || to->element != from->element ||
        offsets->count != from->rank || strides->count != from->rank) {
        tt_verify_fail(v, op, "offsets, strides, operand and result do not have one rank and element");
        return;
    }
    for (int i = 0; i < from->rank; i++) {
        int64_t first = offsets->ints[i], stride = strides->ints[i], last;
        bool overflows = __builtin_mul_overflow(to->shape[i] - 1, stride, &last) ||
                         __builtin_add_overflow(last, first, &last);
        if (overflows || stride == 0 || TT_MIN(first, last) < 0 || TT_MAX(first, last) >= from->shape[i])
            tt_verify_fail(v, op, "the slice leaves dimension %d, of extent %lld", i,
                           (long long)from->shape[i]);
    }
}

static void check_extract(Verifier *v, const Op *op)
{
    if (!expect_tile(v, op, 0))
        return;
    const Type *from = type_of(op, 0), *index = type_of(op, 1);
    if (index->kind != TT_I32 && index->kind != TT_I64)
        tt_verify_fail(v, op, "the index is %s, expected i32 or i64", tt_type_text(v, index));
    int axis = expect_axis(v, op, from->rank);
    int64_t shape[TT_MAX_RANK];
    if (axis >= 0)
        expect_shape(v, op, 0, from->element, shape, without_axis(from, axis, shape));
}

static void check_gather(Verifier *v, const Op *op)
{
    if (!expect_tile(v, op, 0) || !expect_tile(v, op, 1))
        return;
    const Type *from = type_of(op, 0), *index = type_of(op, 1);
    int axis = expect_axis(v, op, from->rank);
    if (!tt_is_int(index))
        tt_verify_fail(v, op, "the indices are %s, expected integers", tt_type_text(v, index));
    for (int i = 0; i < from->rank; i++)
        if (index->rank != from->rank || (i != axis && index->shape[i] != from->shape[i])) {
            tt_verify_fail(v, op, "%s and its indices %s differ beyond axis %d", tt_type_text(v, from),
                           tt_type_text(v, index), axis);
            return;
        }
    expect_shape(v, op, 0, from->element, index->shape, index->rank);
}

/* ---- memory -------------------------------------------------------------------------------------------- */

static void check_addptr(Verifier *v, const Op *op)
{
    if (!tt_is_ptr(type_of(op, 0)) || !tt_is_int(type_of(op, 1)) ||
        !tt_same_shape(type_of(op, 0), type_of(op, 1)))
        tt_verify_fail(v, op, "adds integers to pointers of the same shape, not %s to %s",
                       tt_type_text(v, type_of(op, 1)), tt_type_text(v, type_of(op, 0)));
    expect_result(v, op, 0, type_of(op, 0));
}

/* What the pointers of operand 0 point to, in their shape; NULL (and a failure) when it holds no pointers. */
static const Type *pointee_type(Verifier *v, const Op *op)
{
    const Type *pointer = type_of(op, 0);
    if (!tt_is_ptr(pointer)) {
        tt_verify_fail(v, op, "operand 0 is %s, expected pointers", tt_type_text(v, pointer));
        return NULL;
    }
    return tt_with_element(op->parent->function->module, pointer, tt_element(pointer)->element);
}

static void expect_mask(Verifier *v, const Op *op, int operand)
{
    if (op->operand_count > operand)
        expect_operand(v, op, operand, with_kind(type_of(op, 0), TT_I1, op));
}

static void check_load(Verifier *v, const Op *op)
{
    const Type *type = pointee_type(v, op);
    if (!type)
        return;
    expect_mask(v, op, 1);
    if (op->operand_count > 2)
        expect_operand(v, op, 2, type);
    expect_result(v, op, 0, type);
}

static void check_store(Verifier *v, const Op *op)
{
    const Type *type = pointee_type(v, op);
    if (!type)
        return;
    expect_operand(v, op, 1, type);
    expect_mask(v, op, 2);
}

static void check_order(Verifier *v, const Op *op)
{
    expect_word(v, op, ATTR_sem, (const char *const[]){"relaxed", "acquire", "release", "acq_rel", NULL});
    expect_word(v, op, ATTR_scope, (const char *const[]){"gpu", "cta", "sys", NULL});
}

static void check_atomic_rmw(Verifier *v, const Op *op)
{
    static const char *const on_ints[] = {"add", "max", "max_u", "min",  "min_u",
                                          "and", "or",  "xor",   "xchg", NULL};
    static const char *const on_floats[] = {"fadd", "fmax", "fmin", "xchg", NULL};
    const Type *type = pointee_type(v, op);
    if (!type)
        return;
    expect_operand(v, op, 1, type);
    expect_mask(v, op, 2);
    expect_result(v, op, 0, type);
    check_order(v, op);
    if (!tt_is_int(type) && (!tt_is_float(type) || tt_is_fp8(type)))
        tt_verify_fail(v, op, "works on integers and floats of at least 16 bits, not %s",
                       tt_type_text(v, type));
    else if (expect_attr(v, op, ATTR_kind))
        expect_word(v, op, ATTR_kind, tt_is_int(type) ? on_ints : on_floats);
}

static void check_atomic_cas(Verifier *v, const Op *op)
{
    const Type *type = pointee_type(v, op);
    if (!type)
        return;
    expect_operand(v, op, 1, type);
    expect_operand(v, op, 2, type);
    expect_result(v, op, 0, type);
    check_order(v, op);
}

/* ---- tiles as a whole ---------------------------------------------------------------------------------- */

static void check_scalar_computation(Verifier *v, const Op *holder, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        if (tt_has(op, READS | WRITES | HAS_EFFECT))
            tt_verify_fail(v, holder, "the combine region does more than compute: '%s'",
                           tt_op_infos[op->opcode].name);
        for (int i = 0; i < op->result_count; i++)
            if (tt_is_tile(op->results[i]->type))
                tt_verify_fail(v, holder, "the combine region computes a tile: '%s'",
                               tt_op_infos[op->opcode].name);
        for (int i = 0; i < op->region_count; i++)
            check_scalar_computation(v, holder, op->regions[i]);
    }
}

/* What reduce and scan share; returns the axis or -1. */
static int check_combine(Verifier *v, const Op *op)
{
    int count = op->operand_count;
    const Region *region = op->regions[0];
    const Type *first = type_of(op, 0);
    for (int i = 0; i < count; i++)
        if (!expect_tile(v, op, i))
            return -1;
        else if (!tt_same_shape(type_of(op, i), first))
            tt_verify_fail(v, op, "operands 0 and %d differ in shape", i);
    int axis = expect_axis(v, op, first->rank);
    check_scalar_computation(v, op, region);
    if (op->result_count != count || region->arg_count != 2 * count) {
        tt_verify_fail(v, op, "%d operands want %d results and %d region arguments", count, count, 2 * count);
        return -1;
    }
    for (int i = 0; i < 2 * count; i++)
        if (region->args[i]->type != type_of(op, i % count)->element)
            tt_verify_fail(v, op, "region argument %d is %s, expected %s", i,
                           tt_type_text(v, region->args[i]->type),
                           tt_type_text(v, type_of(op, i % count)->element));
    const Op *yield = region->last;
    if (!yield || yield->opcode != OP_yield)
        return axis;
    if (yield->operand_count != count)
        tt_verify_fail(v, op, "the region yields %d values, expected %d", yield->operand_count, count);
    for (int i = 0; i < count && yield->operand_count == count; i++)
        if (type_of(yield, i) != type_of(op, i)->element)
            tt_verify_fail(v, op, "value %d of the yield is %s, expected %s", i,
                           tt_type_text(v, type_of(yield, i)), tt_type_text(v, type_of(op, i)->element));
    return axis;
}

static void check_reduce(Verifier *v, const Op *op)
{
    int axis = check_combine(v, op);
    int64_t shape[TT_MAX_RANK];
    for (int i = 0; axis >= 0 && i < op->operand_count; i++)
        expect_shape(v, op, i, type_of(op, i)->element, shape, without_axis(type_of(op, i), axis, shape));
}

static void check_scan(Verifier *v, const Op *op)
{
    int axis = check_combine(v, op);
    for (int i = 0; axis >= 0 && i < op->operand_count; i++)
        expect_result(v, op, i, type_of(op, i));
}

/* Of a product's operand, which may lie in a buffer. */
static const Type *matrix_type(const Op *op, int operand)
{
    const Type *type = type_of(op, operand);
    return tt_is_buffer(type) ? tt_slot_type(op->parent->function->module, type) : type;
}

static void check_dot(Verifier *v, const Op *op)
{
    const Type *a = matrix_type(op, 0), *b = matrix_type(op, 1), *c = type_of(op, 2);
    expect_word(v, op, ATTR_precision,
                (const char *const[]){"ieee", "tf32", "tf32x3", "bf16x3", "bf16x6", NULL});
    expect_word(v, op, ATTR_instruction, (const char *const[]){"mma", NULL});
    expect_result(v, op, 0, c);
    int rank = rank_of(a);
    if ((rank != 2 && rank != 3) || rank_of(b) != rank || rank_of(c) != rank) {
        tt_verify_fail(v, op, "takes tiles of rank 2, or of rank 3 with a batch dimension");
        return;
    }
    bool batches = rank == 2 || (a->shape[0] == b->shape[0] && a->shape[0] == c->shape[0]);
    const int64_t *m_k = a->shape + rank - 2, *k_n = b->shape + rank - 2, *m_n = c->shape + rank - 2;
    if (!batches || m_k[1] != k_n[0] || m_k[0] != m_n[0] || k_n[1] != m_n[1])
        tt_verify_fail(v, op, "the extents of %s x %s + %s do not fit", tt_type_text(v, a),
                       tt_type_text(v, b), tt_type_text(v, c));
    bool ints = tt_is_int(a) && tt_is_int(b) && tt_is_int(c),
         floats = tt_is_float(a) && tt_is_float(b) && tt_is_float(c);
    bool alike = a->element == b->element || (tt_is_fp8(a) && tt_is_fp8(b));
    if ((!ints && !floats) || !alike || tt_is_fp8(c) || tt_bit_width(c) < tt_bit_width(a))
        tt_verify_fail(v, op, "does not multiply %s by %s into %s", tt_type_text(v, a->element),
                       tt_type_text(v, b->element), tt_type_text(v, c->element));
}

/* ---- shared memory ------------------------------------------------------------------------------------- */

static bool expect_buffer(Verifier *v, const Op *op, int operand)
{
    const Type *type = type_of(op, operand);
    if (!tt_is_buffer(type))
        tt_verify_fail(v, op, "operand %d is %s, expected a buffer", operand, tt_type_text(v, type));
    return tt_is_buffer(type);
}

/* Buffers keep their layout from the first on. */
static void expect_buffer_result(Verifier *v, const Op *op, const Type *type)
{
    expect_result(v, op, 0, type);
    const Value *result = op->results[0];
    if (!result->layout || !tt_layout_fits(result->layout, result->type))
        tt_verify_fail(v, op, "the buffer has no layout of its shape");
}

static void expect_slot_of(Verifier *v, const Op *op, int operand, const Type *tile)
{
    if (expect_buffer(v, op, operand))
        expect_operand(v, op, operand, tt_buffer_type(op->parent->function->module, tile, 1));
}

static void check_smem_alloc(Verifier *v, const Op *op)
{
    const Type *type = result_type(op);
    if (!tt_is_buffer(type)) {
        tt_verify_fail(v, op, "the result is %s, expected a buffer", tt_type_text(v, type));
        return;
    }
    expect_buffer_result(v, op, type);
    if (op->operand_count && expect_tile(v, op, 0))
        expect_result(v, op, 0, tt_buffer_type(op->parent->function->module, type_of(op, 0), 1));
}

static void check_smem_view(Verifier *v, const Op *op)
{
    Module *module = op->parent->function->module;
    expect_operand(v, op, 1, tt_scalar_type(module, TT_I32));
    if (!expect_buffer(v, op, 0))
        return;
    expect_buffer_result(v, op, tt_buffer_type(module, tt_slot_type(module, type_of(op, 0)), 1));
    if (op->results[0]->layout != tt_operand(op, 0)->layout)
        tt_verify_fail(v, op, "a slot has the layout of the buffer");
}

static void check_smem_permute(Verifier *v, const Op *op)
{
    const Type *from = type_of(op, 0);
    int64_t shape[TT_MAX_RANK];
    if (!expect_buffer(v, op, 0) || !permute_shape(v, op, shape))
        return;
    Module *module = op->parent->function->module;
    const Type *tile = tt_tile_type(module, from->element, shape, from->rank);
    expect_buffer_result(v, op, tt_buffer_type(module, tile, from->slots));
}

static void check_smem_load(Verifier *v, const Op *op)
{
    if (expect_buffer(v, op, 0))
        expect_result(v, op, 0, tt_slot_type(op->parent->function->module, type_of(op, 0)));
}

static void check_smem_store(Verifier *v, const Op *op)
{
    if (expect_tile(v, op, 0))
        expect_slot_of(v, op, 1, type_of(op, 0));
}

static void check_async_copy(Verifier *v, const Op *op)
{
    const Type *type = pointee_type(v, op);
    if (!type || !expect_tile(v, op, 0))
        return;
    expect_mask(v, op, 2);
    expect_slot_of(v, op, 1, type);
}

static void check_async_commit(Verifier *v, const Op *op) { (void)v, (void)op; }
static void check_async_wait(Verifier *v, const Op *op) { expect_attr(v, op, ATTR_left); }

/* The result is in nobody's registers before it is waited for. */
static bool takes_under_way(const Use *use)
{
    const Op *user = use->user;
    return user->opcode == OP_wgmma_wait || user->opcode == OP_yield ||
           (user->opcode == OP_wgmma && tt_operand(user, 2) == use->value);
}

static void check_wgmma(Verifier *v, const Op *op)
{
    expect_attr(v, op, ATTR_warps);
    TT_FOR_USES(use, op->results[0])
    if (!takes_under_way(use))
        tt_verify_fail(v, op, "'%s' takes the result before it is waited for",
                       tt_op_infos[use->user->opcode].name);
    if (expect_buffer(v, op, 1))
        check_dot(v, op);
}

static void check_wgmma_wait(Verifier *v, const Op *op)
{
    expect_attr(v, op, ATTR_left);
    if (expect_tile(v, op, 0))
        expect_result(v, op, 0, type_of(op, 0));
}

static void check_histogram(Verifier *v, const Op *op)
{
    if (!expect_tile(v, op, 0))
        return;
    if (!tt_is_int(type_of(op, 0)))
        tt_verify_fail(v, op, "counts integers, not %s", tt_type_text(v, type_of(op, 0)));
    expect_mask(v, op, 1);
    if (rank_of(result_type(op)) != 1 || result_type(op)->element->kind != TT_I32)
        tt_verify_fail(v, op, "result 0 is %s, expected a tile of i32 and rank 1",
                       tt_type_text(v, result_type(op)));
}

/* ---- effects without memory ---------------------------------------------------------------------------- */

static void check_print(Verifier *v, const Op *op) { expect_attr(v, op, ATTR_message); }

static void check_assert(Verifier *v, const Op *op)
{
    expect_operand(v, op, 0, with_kind(type_of(op, 0), TT_I1, op));
    for (int i = 1; i < op->operand_count; i++) {
        bool is_mask = i == 1 && op->operand_count % 2 == 0;
        expect_operand(v, op, i, with_kind(type_of(op, 0), is_mask ? TT_I1 : TT_I64, op));
    }
    expect_attr(v, op, ATTR_message);
    expect_word(v, op, ATTR_kind, (const char *const[]){"bounds", "overflow", "division", NULL});
}

static void check_barrier(Verifier *v, const Op *op) { (void)v, (void)op; }

/* ---- control ------------------------------------------------------------------------------------------- */

/* Carried values: operands from `first`, arguments of `region` from `first_arg` and results have the same
 * types. */
static void check_carried(Verifier *v, const Op *op, const Region *region, int first, int first_arg)
{
    int count = op->operand_count - first;
    if (op->result_count != count || region->arg_count != count + first_arg) {
        tt_verify_fail(v, op, "%d carried values, but %d results and %d region arguments", count,
                       op->result_count, region->arg_count);
        return;
    }
    for (int i = 0; i < count; i++) {
        expect_operand(v, op, first + i, op->results[i]->type);
        if (region->args[first_arg + i]->type != op->results[i]->type)
            tt_verify_fail(v, op, "region argument %d is %s, expected %s", first_arg + i,
                           tt_type_text(v, region->args[first_arg + i]->type),
                           tt_type_text(v, op->results[i]->type));
    }
}

static void check_for(Verifier *v, const Op *op)
{
    const Type *index = type_of(op, 0);
    const Region *body = op->regions[0];
    if (tt_is_tile(index) || !tt_is_int(index) || tt_is_bool(index))
        tt_verify_fail(v, op, "the bounds are %s, expected scalar integers", tt_type_text(v, index));
    expect_operand(v, op, 1, index);
    expect_operand(v, op, 2, index);
    int64_t step;
    if (tt_constant_int(tt_operand(op, 2), &step) && step <= 0)
        tt_verify_fail(v, op, "the step is not positive");
    if (!body->arg_count || body->args[0]->type != index)
        tt_verify_fail(v, op, "the first region argument is not the index, %s", tt_type_text(v, index));
    check_carried(v, op, body, 3, 1);
}

static void check_while(Verifier *v, const Op *op)
{
    check_carried(v, op, op->regions[0], 0, 0);
    check_carried(v, op, op->regions[1], 0, 0);
}

static void check_if(Verifier *v, const Op *op)
{
    expect_operand(v, op, 0, with_kind(tt_element(type_of(op, 0)), TT_I1, op));
    if (op->regions[0]->arg_count || op->regions[1]->arg_count)
        tt_verify_fail(v, op, "the regions take no arguments");
}

static void expect_values(Verifier *v, const Op *op, const Type *const *types, Value *const *values,
                          int count)
{
    if (op->operand_count != count) {
        tt_verify_fail(v, op, "gives %d values, expected %d", op->operand_count, count);
        return;
    }
    for (int i = 0; i < count; i++)
        expect_operand(v, op, i, types ? types[i] : values[i]->type);
}

static void check_yield(Verifier *v, const Op *op)
{
    const Op *holder = op->parent->op;
    if (holder && tt_has(holder, PURE))
        return; /* reduce and scan yield elements of their results: check_combine */
    if (holder)
        expect_values(v, op, NULL, holder->results, holder->result_count);
}

static void check_condition(Verifier *v, const Op *op) { check_assume(v, op); }

static void check_return(Verifier *v, const Op *op)
{
    const Function *function = op->parent->function;
    expect_values(v, op, function->result_types, NULL, function->result_count);
}

static void check_call(Verifier *v, const Op *op)
{
    const Attr *callee = expect_attr(v, op, ATTR_callee);
    const Function *function = callee ? tt_find_function(v->module, callee->s) : NULL;
    if (!callee)
        return;
    if (!function) {
        tt_verify_fail(v, op, "there is no function @%s", callee->s);
        return;
    }
    if (function->is_kernel)
        tt_verify_fail(v, op, "@%s is a kernel", callee->s);
    expect_values(v, op, NULL, function->body->args, function->body->arg_count);
    if (op->result_count != function->result_count)
        tt_verify_fail(v, op, "@%s returns %d values, not %d", callee->s, function->result_count,
                       op->result_count);
    for (int i = 0; i < op->result_count && op->result_count == function->result_count; i++)
        expect_result(v, op, i, function->result_types[i]);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

#define RULE_SAME(name) check_same
#define RULE_COMPARE(name) check_compare
#define RULE_SELECT(name) check_select_rule
#define RULE_CAST(name) check_##name
#define RULE_GIVEN(name) check_##name
#define RULE_NOTHING(name) check_##name
static void (*const checks[TT_OPCODES])(Verifier *v, const Op *op) = {
#define OP(name, lowest, highest, results, control, rule, traits, stages, attributes, meaning)               \
    [OP_##name] = RULE_##rule(name),
#include "ir/ops.def"
};

static void expect_no_buffers(Verifier *v, const Op *op)
{
    for (int i = 0; i < op->operand_count; i++)
        if (tt_is_buffer(type_of(op, i)))
            tt_verify_fail(v, op, "operand %d is a buffer, whose elements are loaded first", i);
}

void tt_check_types(Verifier *v, const Op *op)
{
    if (tt_has(op, ELEMENTWISE))
        expect_no_buffers(v, op);
    (op->opcode == OP_hint ? check_hint : checks[op->opcode])(v, op);
}
