/* Constants: finding them, and what operations reduce to. */
#include "ir/ir.h"

static const Attr *constant_attr(const Value *value)
{
    const Op *splat = tt_def(value, OP_splat);
    const Op *op = tt_def(splat ? tt_operand(splat, 0) : value, OP_constant);
    return op ? tt_find_attr(op, ATTR_value) : NULL;
}

bool tt_is_constant(const Value *value) { return constant_attr(value) != NULL; }

bool tt_constant_int(const Value *value, int64_t *out)
{
    const Attr *attr = tt_is_int(value->type) ? constant_attr(value) : NULL;
    if (attr)
        *out = attr->i;
    return attr != NULL;
}

bool tt_constant_float(const Value *value, double *out)
{
    const Attr *attr = tt_is_float(value->type) ? constant_attr(value) : NULL;
    if (attr)
        *out = attr->f;
    return attr != NULL;
}

Value *tt_fold(Builder *b, Opcode opcode, Value *const *operands, int operand_count, const Type *type,
               Attr *attrs)
{
    (void)b, (void)opcode, (void)operands, (void)operand_count, (void)type, (void)attrs;
    return NULL;
}
