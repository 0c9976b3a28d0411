/* Order between memory operations of one loop nest. A nest does all its loads and stores for one vector before the next
 * vector's, while the program does all of one operation before the next operation. */
#include "cpu/lower.h"

static Value *pointer_root(Value *pointer);

/* The root of a loop-carried pointer is that of its initial value if the loop only adds to it. */
static Value *carried_root(const Value *arg)
{
    Op *loop = arg->region->op;
    if (!loop || loop->opcode != OP_for || arg->index == 0)
        return NULL;
    Value *next = tt_operand(tt_terminator(arg->region), arg->index - 1);
    while (next->op && next->op->opcode == OP_addptr)
        next = tt_operand(next->op, 0);
    return next == arg ? pointer_root(tt_operand(loop, arg->index + 2)) : NULL;
}

/* The kernel's parameter that a pointer comes from by adding offsets, or NULL. */
static Value *pointer_root(Value *pointer)
{
    while (pointer->op) {
        Op *op = pointer->op;
        bool derived = op->opcode == OP_addptr || op->opcode == OP_hint || op->opcode == OP_bitcast ||
                       (tt_has(op, SHAPE) && op->operand_count == 1);
        if (!derived)
            return NULL;
        pointer = tt_operand(op, 0);
    }
    return pointer->region->op ? carried_root(pointer) : pointer;
}

/* Do neighbours along each dimension stand in memory alike? */
static bool same_structure(const Lower *l, const Value *a, const Value *b)
{
    const AxisInfo *x = axis_of(l, a), *y = axis_of(l, b);
    for (int i = 0; i < a->type->rank; i++)
        if (a->type->shape[i] > 1 && ((x->contiguity[i] > 1) != (y->contiguity[i] > 1) ||
                                      (x->constancy[i] > 1) != (y->constancy[i] > 1)))
            return false;
    return true;
}

/* Elements side by side and none twice, as far as one can tell. */
static bool is_regular(const Lower *l, const Value *pointer)
{
    const AxisInfo *info = axis_of(l, pointer);
    bool contiguous = false;
    for (int i = 0; i < pointer->type->rank; i++) {
        if (pointer->type->shape[i] > 1 && info->constancy[i] > 1)
            return false;
        contiguous |= info->contiguity[i] > 1;
    }
    return contiguous;
}

/* Arguments of the kernel that overlap are taken to be in-place arguments: the same elements at the same places, or
 * none of them. */
bool may_interleave(const Lower *l, Op *first, bool same, Op *store)
{
    if (store->opcode != OP_store || (first->opcode != OP_load && first->opcode != OP_store))
        return false;
    Value *a = tt_operand(first, 0), *b = tt_operand(store, 0);
    if (a == b)
        return same && is_regular(l, a);
    Value *root = pointer_root(a), *other = pointer_root(b);
    if (!root || !other || root == other)
        return false;
    if (a->type->count != b->type->count)
        return true;
    return same && tt_same_shape(a->type, b->type) && same_structure(l, a, b);
}
