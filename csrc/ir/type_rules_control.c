/* Rules of effects, and of loops, branches and calls. */
#include "ir/type_rules.h"

/* ---- effects without memory --------------------------------------------------------------------------- */

void tt_rule_print(Verifier *v, const Op *op) { tt_expect_attr(v, op, ATTR_message); }

void tt_rule_assert(Verifier *v, const Op *op)
{
    tt_expect_operand(v, op, 0, with_kind(type_of(op, 0), TT_I1, op));
    for (int i = 1; i < op->operand_count; i++) {
        bool is_mask = i == 1 && op->operand_count % 2 == 0;
        tt_expect_operand(v, op, i, with_kind(type_of(op, 0), is_mask ? TT_I1 : TT_I64, op));
    }
    tt_expect_attr(v, op, ATTR_message);
    tt_expect_word(v, op, ATTR_kind, (const char *const[]){"bounds", "overflow", "division", NULL});
}

void tt_rule_barrier(Verifier *v, const Op *op) { (void)v, (void)op; }

/* ---- control ------------------------------------------------------------------------------------------ */

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
        tt_expect_operand(v, op, first + i, op->results[i]->type);
        if (region->args[first_arg + i]->type != op->results[i]->type)
            tt_verify_fail(v, op, "region argument %d is %s, expected %s", first_arg + i,
                           tt_type_text(v, region->args[first_arg + i]->type),
                           tt_type_text(v, op->results[i]->type));
    }
}

void tt_rule_for(Verifier *v, const Op *op)
{
    const Type *index = type_of(op, 0);
    const Region *body = op->regions[0];
    if (tt_is_tile(index) || !tt_is_int(index) || tt_is_bool(index))
        tt_verify_fail(v, op, "the bounds are %s, expected scalar integers", tt_type_text(v, index));
    tt_expect_operand(v, op, 1, index);
    tt_expect_operand(v, op, 2, index);
    if (!body->arg_count || body->args[0]->type != index)
        tt_verify_fail(v, op, "the first region argument is not the index, %s", tt_type_text(v, index));
    check_carried(v, op, body, 3, 1);
}

void tt_rule_while(Verifier *v, const Op *op)
{
    check_carried(v, op, op->regions[0], 0, 0);
    check_carried(v, op, op->regions[1], 0, 0);
}

void tt_rule_if(Verifier *v, const Op *op)
{
    tt_expect_operand(v, op, 0, with_kind(tt_element(type_of(op, 0)), TT_I1, op));
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
        tt_expect_operand(v, op, i, types ? types[i] : values[i]->type);
}

void tt_rule_yield(Verifier *v, const Op *op)
{
    const Op *holder = op->parent->op;
    if (holder && tt_has(holder, PURE))
        return; /* reduce and scan yield elements of their results: check_combine */
    if (holder)
        expect_values(v, op, NULL, holder->results, holder->result_count);
}

void tt_rule_condition(Verifier *v, const Op *op) { tt_rule_assume(v, op); }

void tt_rule_return(Verifier *v, const Op *op)
{
    const Function *function = op->parent->function;
    expect_values(v, op, function->result_types, NULL, function->result_count);
}

void tt_rule_call(Verifier *v, const Op *op)
{
    const Attr *callee = tt_expect_attr(v, op, ATTR_callee);
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
        tt_expect_result(v, op, i, function->result_types[i]);
}
