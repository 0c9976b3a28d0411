/* What the files of type rules share. */
#pragma once
#include "ir/verify.h"

/* Counts of operands, results and regions are right. */
typedef void Rule(Verifier *v, const Op *op);
#define OP(name, ...) Rule tt_rule_##name;
#include "ir/ops.def"
Rule tt_rule_same, tt_rule_compare;

void tt_expect_operand(Verifier *v, const Op *op, int operand, const Type *type);
void tt_expect_result(Verifier *v, const Op *op, int result, const Type *type);
bool tt_expect_tile(Verifier *v, const Op *op, int operand);
/* The attribute, which must be there. */
const Attr *tt_expect_attr(Verifier *v, const Op *op, AttrKey key);
/* Value of `axis`, or -1 when it is missing or none of 0 .. count - 1. */
int tt_expect_axis(Verifier *v, const Op *op, int count);
/* The attribute, where it is there, is one of the words up to NULL. */
void tt_expect_word(Verifier *v, const Op *op, AttrKey key, const char *const *words);
/* `type` has this shape and element. */
bool tt_is_shaped(const Type *type, const Type *element, const int64_t *shape, int rank);
void tt_expect_shape(Verifier *v, const Op *op, int result, const Type *element, const int64_t *shape,
                     int rank);

void tt_expect_mask(Verifier *v, const Op *op, int operand);
/* `order` is a permutation of the first operand's dimensions; the shape in it. */
bool tt_expect_order(Verifier *v, const Op *op, int64_t shape[TT_MAX_RANK]);

static inline const Type *type_of(const Op *op, int operand) { return tt_operand(op, operand)->type; }
static inline const Type *result_type(const Op *op) { return op->results[0]->type; }
static inline int rank_of(const Type *type) { return tt_is_tile(type) ? type->rank : 0; }
static inline const Type *with_kind(const Type *type, TypeKind kind, const Op *op)
{
    Module *module = op->parent->function->module;
    return tt_with_element(module, type, tt_scalar_type(module, kind));
}
