/* Counting by atomic additions, as for a histogram: programs that all add to a few places wait for each other, and even
 * alone an atomic addition takes ten times as long as a plain one. Where a tile adds one constant at places that lie
 * near each other when the program runs, they are counted in scratch memory first, and what was counted is added. Nobody
 * sees the old values, so it does not matter that additions to one place became one.
 *
 * atomic_add(base + i, c)   ->   if max(i) - min(i) < window: n = histogram(i - min(i)); atomic_add(base + min(i) + [0,
 * window), n * c, n != 0)   else: as it was */
#include "cpu/lower.h"

/* Fewer elements are not worth it; and the window is as long as half of them, but fits into a first-level cache. */
enum { FEWEST = 1024, WIDEST_WINDOW = 8192 };

static bool can_count(const Op *op)
{
    if (op->opcode != OP_atomic_rmw || strcmp(tt_string_attr(op, ATTR_kind, ""), "add") ||
        tt_has_uses(op->results[0]))
        return false;
    const Value *value = tt_operand(op, 1);
    const Op *address = tt_def(tt_operand(op, 0), OP_addptr);
    int64_t constant;
    return tt_is_tile(value->type) && value->type->rank == 1 && value->type->count >= FEWEST &&
           tt_bit_width(value->type) >= 32 && tt_constant_int(value, &constant) && address &&
           tt_def(tt_operand(address, 0), OP_splat) && tt_bit_width(tt_operand(address, 1)->type) >= 32;
}

/* The least or largest of the elements under the mask. */
static Value *extreme(Builder *b, Opcode opcode, Value *x, Value *mask, int64_t neutral)
{
    const Type *type = x->type->element;
    if (mask)
        x = tt_build3(b, OP_select, mask, x, tt_build_int(b, x->type, neutral));
    Op *reduce = tt_build_op(b, OP_reduce, &x, 1, &type, 1, tt_attr_int(b->module, ATTR_axis, 0, NULL));
    Region *region = reduce->regions[0];
    Builder inner = tt_builder_at_end(region);
    inner.loc = b->loc;
    Value *left = tt_add_region_arg(region, type), *right = tt_add_region_arg(region, type);
    Value *best = tt_build2(&inner, opcode, left, right);
    tt_build_op(&inner, OP_yield, &best, 1, NULL, 0, NULL);
    return reduce->results[0];
}

/* Counts what lies in the window from `least` on, and adds the counts. */
static void add_counts(Builder *b, const Op *op, Value *least, int64_t window)
{
    const Op *address = tt_def(tt_operand(op, 0), OP_addptr);
    Value *base = tt_operand(tt_def(tt_operand(address, 0), OP_splat), 0), *index = tt_operand(address, 1);
    const Type *element = tt_operand(op, 1)->type->element;
    const Type *bins = tt_tile_type(b->module, tt_scalar_type(b->module, TT_I32), &window, 1);
    int64_t constant;
    tt_constant_int(tt_operand(op, 1), &constant);
    Value *nearby = tt_build2(b, OP_sub, index, tt_build_splat(b, least, index->type->shape, 1));
    Value *counted[2] = {nearby, op->operand_count > 2 ? tt_operand(op, 2) : NULL};
    Value *counts = tt_build(b, OP_histogram, counted, counted[1] ? 2 : 1, bins, NULL);
    Value *some = tt_build2(b, OP_ne, counts, tt_build_int(b, bins, 0));
    Value *sums = tt_bit_width(element) > 32 ? tt_build_cast(b, OP_ext_u, counts, element) : counts;
    sums = tt_build2(b, OP_mul, sums, tt_build_int(b, sums->type, constant));
    Value *places = tt_build_splat(b, tt_build_addptr(b, base, least), &window, 1);
    Value *operands[3] = {tt_build_addptr(b, places, tt_build_range(b, 0, window)), sums, some};
    tt_build_op(b, OP_atomic_rmw, operands, 3, &sums->type, 1, tt_copy_attrs(b->module, op->attrs));
}

static void visit(Op *op, void *context)
{
    bool *changed = context;
    if (!can_count(op))
        return;
    *changed = true;
    Builder b = tt_builder_before(op);
    Value *index = tt_operand(tt_def(tt_operand(op, 0), OP_addptr), 1),
          *mask = op->operand_count > 2 ? tt_operand(op, 2) : NULL;
    int64_t highest = (int64_t)(UINT64_MAX >> (65 - tt_bit_width(index->type))),
            window = TT_MIN(tt_next_pow2(index->type->count) / 2, WIDEST_WINDOW);
    Value *least = extreme(&b, OP_min_s, index, mask, highest),
          *most = extreme(&b, OP_max_s, index, mask, -highest - 1);
    Value *length = tt_build2(&b, OP_sub, most, least);
    Value *near = tt_build2(&b, OP_lt_u, length, tt_build_int(&b, length->type, window));
    Op *choice = tt_build_op(&b, OP_if, &near, 1, NULL, 0, NULL);
    for (int i = 0; i < 2; i++) {
        Builder inner = tt_builder_at_end(choice->regions[i]);
        inner.loc = b.loc;
        if (i == 0)
            add_counts(&inner, op, least, window);
        else
            tt_move_to_end(op, choice->regions[i]);
        tt_build_op(&inner, OP_yield, NULL, 0, NULL, 0, NULL);
    }
}

bool tt_cpu_count_atomics(Module *module, Arena *scratch)
{
    (void)scratch;
    bool changed = false;
    TT_FOR_FUNCTIONS(function, module)
    tt_walk(function->body, visit, &changed);
    return changed;
}
