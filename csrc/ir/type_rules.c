/* The rule of each operation for its types and attributes, as ops.def's `meaning` says it: the table, an expansion of
 * ops.def, and what the rules have in common. The rules of a family of operations are in its file, type_rules_*.c: an
 * operation whose row leaves something open (GIVEN, CAST, NOTHING) and which has none does not link. */
#include "ir/type_rules.h"

void tt_expect_operand(Verifier *v, const Op *op, int operand, const Type *type)
{
    if (type_of(op, operand) != type)
        tt_verify_fail(v, op, "operand %d is %s, expected %s", operand, tt_type_text(v, type_of(op, operand)),
                       tt_type_text(v, type));
}

void tt_expect_result(Verifier *v, const Op *op, int result, const Type *type)
{
    if (op->results[result]->type != type)
        tt_verify_fail(v, op, "result %d is %s, expected %s", result,
                       tt_type_text(v, op->results[result]->type), tt_type_text(v, type));
}

bool tt_expect_tile(Verifier *v, const Op *op, int operand)
{
    if (!tt_is_tile(type_of(op, operand)))
        tt_verify_fail(v, op, "operand %d is %s, expected a tile", operand,
                       tt_type_text(v, type_of(op, operand)));
    return tt_is_tile(type_of(op, operand));
}

const Attr *tt_expect_attr(Verifier *v, const Op *op, AttrKey key)
{
    const Attr *attr = tt_find_attr(op, key);
    if (!attr)
        tt_verify_fail(v, op, "attribute '%s' is missing", tt_attr_names[key]);
    return attr;
}

int tt_expect_axis(Verifier *v, const Op *op, int count)
{
    const Attr *attr = tt_expect_attr(v, op, ATTR_axis);
    if (attr && (attr->i < 0 || attr->i >= count))
        tt_verify_fail(v, op, "axis %lld is not one of %d", (long long)attr->i, count);
    return attr && attr->i >= 0 && attr->i < count ? (int)attr->i : -1;
}

void tt_expect_word(Verifier *v, const Op *op, AttrKey key, const char *const *words)
{
    const Attr *attr = tt_find_attr(op, key);
    if (!attr)
        return;
    for (int i = 0; words[i]; i++)
        if (!strcmp(attr->s, words[i]))
            return;
    tt_verify_fail(v, op, "unknown %s '%s'", tt_attr_names[key], attr->s);
}

bool tt_is_shaped(const Type *type, const Type *element, const int64_t *shape, int rank)
{
    return tt_element(type) == element && rank_of(type) == rank &&
           (!rank || !memcmp(type->shape, shape, sizeof(int64_t) * (size_t)rank));
}

void tt_expect_shape(Verifier *v, const Op *op, int result, const Type *element, const int64_t *shape,
                     int rank)
{
    if (!tt_is_shaped(op->results[result]->type, element, shape, rank)) {
        Module *module = op->parent->function->module;
        tt_expect_result(v, op, result, tt_shaped_type(module, element, shape, rank));
    }
}

void tt_expect_mask(Verifier *v, const Op *op, int operand)
{
    if (op->operand_count > operand)
        tt_expect_operand(v, op, operand, with_kind(type_of(op, 0), TT_I1, op));
}

/* The operand's shape in another order of its dimensions; false when there is none. */
bool tt_expect_order(Verifier *v, const Op *op, int64_t shape[TT_MAX_RANK])
{
    const Attr *order = tt_expect_attr(v, op, ATTR_order);
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

/* ---- the table ---------------------------------------------------------------------------------------------------- */

#define RULE_SAME(name) tt_rule_same
#define RULE_COMPARE(name) tt_rule_compare
#define RULE_SELECT(name) tt_rule_select
#define RULE_CAST(name) tt_rule_##name
#define RULE_GIVEN(name) tt_rule_##name
#define RULE_NOTHING(name) tt_rule_##name
static Rule *const rules[TT_OPCODES] = {
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
    (op->opcode == OP_hint ? tt_rule_hint : rules[op->opcode])(v, op);
}
