/* Rules of operations on elements: constants, arithmetic, casts. */
#include "ir/type_rules.h"

/* ---- constants and indices ---------------------------------------------------------------------------- */

void tt_rule_constant(Verifier *v, const Op *op)
{
    const Attr *value = tt_expect_attr(v, op, ATTR_value);
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

void tt_rule_range(Verifier *v, const Op *op)
{
    const Attr *start = tt_expect_attr(v, op, ATTR_start), *end = tt_expect_attr(v, op, ATTR_end);
    if (!start || !end)
        return;
    if (start->i >= end->i || start->i < INT32_MIN || end->i > INT32_MAX)
        tt_verify_fail(v, op, "the bounds are not start < end in 32 bits");
    else
        tt_expect_shape(v, op, 0, with_kind(tt_element(result_type(op)), TT_I32, op),
                        &(int64_t){end->i - start->i}, 1);
}

void tt_rule_program_id(Verifier *v, const Op *op)
{
    tt_expect_axis(v, op, 3);
    tt_expect_result(v, op, 0, with_kind(tt_element(result_type(op)), TT_I32, op));
}

void tt_rule_num_programs(Verifier *v, const Op *op) { tt_rule_program_id(v, op); }

void tt_rule_clock(Verifier *v, const Op *op)
{
    tt_expect_result(v, op, 0, tt_scalar_type(op->parent->function->module, TT_I64));
}

/* ---- elementwise -------------------------------------------------------------------------------------- */

static void check_elements(Verifier *v, const Op *op, const Type *type)
{
    bool pointers = op->opcode == OP_eq || op->opcode == OP_ne;
    if (tt_has(op, ON_INTS) && !tt_is_int(type) && !(pointers && tt_is_ptr(type)))
        tt_verify_fail(v, op, "works on integers, not %s", tt_type_text(v, type));
    if (tt_has(op, ON_FLOATS) && (!tt_is_float(type) || tt_is_fp8(type)))
        tt_verify_fail(v, op, "works on floats%s, not %s", tt_is_fp8(type) ? " of at least 16 bits" : "",
                       tt_type_text(v, type));
}

void tt_rule_same(Verifier *v, const Op *op)
{
    const Type *type = type_of(op, 0);
    for (int i = 1; i < op->operand_count; i++)
        tt_expect_operand(v, op, i, type);
    tt_expect_result(v, op, 0, type);
    check_elements(v, op, type);
}

void tt_rule_compare(Verifier *v, const Op *op)
{
    tt_expect_operand(v, op, 1, type_of(op, 0));
    tt_expect_result(v, op, 0, with_kind(type_of(op, 0), TT_I1, op));
    check_elements(v, op, type_of(op, 0));
}

void tt_rule_select(Verifier *v, const Op *op)
{
    tt_expect_operand(v, op, 0, with_kind(type_of(op, 1), TT_I1, op));
    tt_expect_operand(v, op, 2, type_of(op, 1));
    tt_expect_result(v, op, 0, type_of(op, 1));
}

void tt_rule_extern_call(Verifier *v, const Op *op)
{
    tt_expect_attr(v, op, ATTR_symbol);
    for (int i = 0; i < op->operand_count; i++)
        if (!tt_same_shape(type_of(op, i), result_type(op)))
            tt_verify_fail(v, op, "operand %d is %s, and the result %s: the shapes differ", i,
                           tt_type_text(v, type_of(op, i)), tt_type_text(v, result_type(op)));
}

void tt_rule_inline_asm(Verifier *v, const Op *op)
{
    tt_expect_attr(v, op, ATTR_text);
    tt_expect_attr(v, op, ATTR_constraints);
    int64_t pack = tt_int_attr(op, ATTR_pack, 1);
    if (!tt_is_pow2(pack) || !op->result_count)
        tt_verify_fail(v, op, "'pack' is %lld, expected a power of two, and at least one result",
                       (long long)pack);
    for (int i = 0; i < op->operand_count && op->result_count; i++)
        if (!tt_same_shape(type_of(op, i), result_type(op)))
            tt_verify_fail(v, op, "operand %d is %s, and the result %s: the shapes differ", i,
                           tt_type_text(v, type_of(op, i)), tt_type_text(v, result_type(op)));
}

void tt_rule_inline_asm_effect(Verifier *v, const Op *op) { tt_rule_inline_asm(v, op); }

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

void tt_rule_hint(Verifier *v, const Op *op)
{
    tt_rule_same(v, op);
    check_hint_list(v, op, ATTR_contiguity);
    check_hint_list(v, op, ATTR_divisibility);
    check_hint_list(v, op, ATTR_constancy);
}

void tt_rule_assume(Verifier *v, const Op *op)
{
    tt_expect_operand(v, op, 0, with_kind(tt_element(type_of(op, 0)), TT_I1, op));
}

/* ---- casts -------------------------------------------------------------------------------------------- */

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

void tt_rule_trunc(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, INTEGER, -1); }
void tt_rule_ext_s(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, INTEGER, 1); }
void tt_rule_ext_u(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, INTEGER, 1); }
void tt_rule_int_to_float_s(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, FLOAT, 2); }
void tt_rule_int_to_float_u(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, FLOAT, 2); }
void tt_rule_float_to_int_s(Verifier *v, const Op *op) { check_cast(v, op, FLOAT, INTEGER, 2); }
void tt_rule_float_to_int_u(Verifier *v, const Op *op) { check_cast(v, op, FLOAT, INTEGER, 2); }

void tt_rule_float_cast(Verifier *v, const Op *op)
{
    check_cast(v, op, FLOAT_OR_FP8, FLOAT_OR_FP8, 2);
    tt_expect_word(v, op, ATTR_rounding, (const char *const[]){"rtne", "rtz", NULL});
    if (type_of(op, 0) == result_type(op))
        tt_verify_fail(v, op, "casts to the type it already has");
}

void tt_rule_bitcast(Verifier *v, const Op *op)
{
    if (tt_is_ptr(type_of(op, 0)) || tt_is_ptr(result_type(op)))
        check_cast(v, op, POINTER, POINTER, 0);
    else
        check_cast(v, op, tt_is_int(type_of(op, 0)) ? INTEGER : FLOAT_OR_FP8,
                   tt_is_int(result_type(op)) ? INTEGER : FLOAT_OR_FP8, 0);
}

void tt_rule_ptr_to_int(Verifier *v, const Op *op) { check_cast(v, op, POINTER, INTEGER, 0); }
void tt_rule_int_to_ptr(Verifier *v, const Op *op) { check_cast(v, op, INTEGER, POINTER, 0); }
