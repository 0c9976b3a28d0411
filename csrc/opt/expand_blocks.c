/* Blocks of arrays become pointers and masks: base + sum over d of (offset[d] + index[d]) * stride[d], and where the block may
 * reach over an edge, which elements do not. All but those that hardware may copy as a block (block_copies.c). */
#include "opt/pass.h"

typedef struct Block {
    Builder b;
    const Op *op;
    const Type *type; /* of the pointers */
} Block;

static Value *number_of(const Block *block, int which, int d)
{
    return tt_operand(block->op, 1 + which * block->type->rank + d);
}

static Value *extent_of(const Block *block, int d) { return number_of(block, 0, d); }
static Value *stride_of(const Block *block, int d) { return number_of(block, 1, d); }

static Value *offset_of(Block *block, int d)
{
    return tt_build_cast(&block->b, OP_ext_s, number_of(block, 2, d),
                         tt_scalar_type(block->b.module, TT_I64));
}

/* The indices 0 .. extent - 1 along dimension `d`, i64, with extent 1 in the others. */
static Value *indices_along(Block *block, int d)
{
    Builder *b = &block->b;
    Value *line = tt_build_range(b, 0, block->type->shape[d]);
    Value *index = tt_build_cast(b, OP_ext_s, line, tt_scalar_type(b->module, TT_I64));
    for (int i = 0; i < block->type->rank; i++)
        if (i != d)
            index = tt_build_expand_dims(b, index, i);
    return index;
}

static Value *splat_like(Builder *b, Value *scalar, const Value *tile)
{
    return tt_build_splat(b, scalar, tile->type->shape, tile->type->rank);
}

/* The uniform part goes into the scalar base, so that the tile holds small offsets only. */
static Value *pointers_of(Block *block)
{
    Builder *b = &block->b;
    const int64_t *shape = block->type->shape;
    int rank = block->type->rank;
    Value *start = NULL, *offsets = NULL;
    for (int d = 0; d < rank; d++) {
        Value *stride = stride_of(block, d), *index = indices_along(block, d);
        Value *first = tt_build2(b, OP_mul, offset_of(block, d), stride);
        Value *along =
            tt_build_broadcast(b, tt_build2(b, OP_mul, index, splat_like(b, stride, index)), shape);
        start = start ? tt_build2(b, OP_add, start, first) : first;
        offsets = offsets ? tt_build2(b, OP_add, offsets, along) : along;
    }
    Value *base = tt_build_addptr(b, tt_operand(block->op, 0), start);
    return tt_build_addptr(b, tt_build_splat(b, base, shape, rank), offsets);
}

/* Is the element of dimension `d` inside of the array? */
static Value *inside_along(Block *block, int d)
{
    Builder *b = &block->b;
    Value *index = indices_along(block, d);
    index = tt_build2(b, OP_add, index, splat_like(b, offset_of(block, d), index));
    Value *after_start = tt_build2(b, OP_ge_s, index, tt_build_int(b, index->type, 0));
    Value *before_end = tt_build2(b, OP_lt_s, index, splat_like(b, extent_of(block, d), index));
    return tt_build_broadcast(b, tt_build2(b, OP_and, after_start, before_end), block->type->shape);
}

static Value *mask_of(Block *block)
{
    const Attr *checked = tt_find_attr(block->op, ATTR_checked);
    Value *mask = NULL;
    for (int i = 0; checked && i < checked->count; i++) {
        Value *inside = inside_along(block, (int)checked->ints[i]);
        mask = mask ? tt_build2(&block->b, OP_and, mask, inside) : inside;
    }
    return mask ? mask : tt_build_int(&block->b, block->op->results[1]->type, 1);
}

static void expand(Op *op, void *changed)
{
    if (op->opcode != OP_block_pointers || tt_may_be_copied(op))
        return;
    Block block = {tt_builder_before(op), op, op->results[0]->type};
    block.b.loc = op->loc;
    Value *mask = tt_has_uses(op->results[1]) ? mask_of(&block) : NULL, *pointers = pointers_of(&block);
    if (mask)
        tt_replace_all_uses(op->results[1], mask);
    tt_replace_all_uses(op->results[0], pointers);
    tt_erase_op(op);
    *(bool *)changed = true;
}

bool tt_opt_expand_blocks(Function *function, Arena *scratch)
{
    (void)scratch;
    bool changed = false;
    tt_walk(function->body, expand, &changed);
    return changed;
}
