/* Moves what does not change out of loops, from the innermost outwards: pure operations (they cannot fail, so
 * one that is never reached costs time only), and plain loads where memory does not change in the loop and
 * the load would have been reached in the first iteration before anything else can be seen. A load is never made
 * to read what the program might not have read: where it is not known whether the loop runs at all, it is masked.
 * Operations inside of a branch stay there. */
#include "opt/pass.h"

static bool is_inside(const Value *value, const Op *holder)
{
    const Region *region = value->op ? value->op->parent : value->region;
    for (; region && region->op; region = region->op->parent)
        if (region->op == holder)
            return true;
    return false;
}

/* Do `op` and all in its regions use only what they define themselves and what stands outside of the loop? */
static bool uses_invariants(const Op *op, const Op *moved, const Op *loop)
{
    for (int i = 0; i < op->operand_count; i++)
        if (is_inside(tt_operand(op, i), loop) && !is_inside(tt_operand(op, i), moved))
            return false;
    for (int i = 0; i < op->region_count; i++)
        TT_FOR_OPS(inner, op->regions[i])
        {
            if (!uses_invariants(inner, moved, loop))
                return false;
        }
    return true;
}

/* Is the body reached? A `while` does not count: where it reads the same place again and again, it waits
 * for another program to write there. */
static bool surely_runs(const Op *loop)
{
    int64_t count;
    return tt_trip_count(loop, &count) && count > 0;
}

/* Does the loop run if its lower bound is below its upper one? */
static bool counts_up(const Op *loop)
{
    int64_t step;
    return loop->opcode == OP_for && tt_constant_int(tt_operand(loop, 2), &step) && step > 0;
}

/* The load before the loop, of what is read if that runs. */
static void hoist_masked(Op *load, Op *loop)
{
    Builder b = tt_builder_before(loop);
    Value *operands[3], *runs = tt_build2(&b, OP_lt_s, tt_operand(loop, 0), tt_operand(loop, 1));
    const Type *type = load->results[0]->type;
    for (int i = 0; i < load->operand_count; i++)
        operands[i] = tt_operand(load, i);
    Value *mask = tt_is_tile(type) ? tt_build_splat(&b, runs, type->shape, type->rank) : runs;
    operands[1] = load->operand_count > 1 ? tt_build2(&b, OP_and, operands[1], mask) : mask;
    b.loc = load->loc;
    Op *masked = tt_build_op(&b, OP_load, operands, TT_MAX(2, load->operand_count), &type, 1,
                             tt_copy_attrs(b.module, load->attrs));
    masked->results[0]->name = load->results[0]->name;
    tt_replace_op(load, masked->results);
}

static bool hoist_region(Op *loop, Region *region, bool loads)
{
    bool changed = false, runs = surely_runs(loop);
    TT_FOR_OPS_SAFE(op, region)
    {
        bool is_load = loads && tt_is_plain_load(op), moves = tt_is_pure(op) || is_load;
        if (moves && !tt_has(op, TERMINATOR) && uses_invariants(op, op, loop)) {
            if (is_load && !runs)
                hoist_masked(op, loop);
            else
                tt_move_before(op, loop);
            changed = true;
        } else if (tt_has_effects(op)) {
            loads =
                false; /* what comes later might not have been reached: an assertion may end the program */
        }
    }
    return changed;
}

static bool visit_region(Region *region)
{
    bool changed = false;
    TT_FOR_OPS_SAFE(op, region)
    {
        for (int i = 0; i < op->region_count; i++)
            changed |= visit_region(op->regions[i]);
        if (!tt_is_loop(op) || tt_int_attr(op, ATTR_disable_licm, 0))
            continue;
        bool loads = (surely_runs(op) || counts_up(op)) && !tt_writes_memory(op);
        for (int i = 0; i < op->region_count; i++)
            changed |= hoist_region(op, op->regions[i], loads);
    }
    return changed;
}

bool tt_opt_licm(Function *function, Arena *scratch)
{
    (void)scratch;
    return visit_region(function->body);
}
