/* A loop that carries a tile and adds the same number to all of its elements each time, `p += BLOCK *
 * stride`, needs not carry the tile: it carries the scalar sum of these numbers, and the tile is the initial
 * one plus that. So a tile of pointers does not pass through memory, and the scalar ends up in the base
 * address.
 *
 * Exact for integers, whose sums wrap around in any order. A pointer's offsets are sign-extended one by one
 * as they are added, so the carried sum is an i64, in which it is the same address. */
#include "opt/pass.h"

/* The numbers that one iteration adds to a carried tile, in order; each is a scalar, or a tile that repeats
 * one. */
typedef struct Steps {
    Value *values[8];
    bool negative[8];
    int count;
} Steps;

static bool is_uniform(const Value *value)
{
    return !tt_is_tile(value->type) || tt_def(value, OP_splat) || tt_is_constant(value);
}

/* Is `value` the carried tile plus uniform numbers? Hints are about what an iteration begins with, and stay there. */
static bool find_steps(const Value *value, const Value *carried, Steps *steps)
{
    while (value != carried) {
        const Op *op = value->op;
        if (!op || steps->count == (int)TT_COUNT(steps->values))
            return false;
        if (op->opcode == OP_hint) {
            value = tt_operand(op, 0);
            continue;
        }
        bool is_sum = op->opcode == OP_add || op->opcode == OP_addptr || op->opcode == OP_sub;
        int step = is_sum && is_uniform(tt_operand(op, 1))                 ? 1
                   : op->opcode == OP_add && is_uniform(tt_operand(op, 0)) ? 0
                                                                           : -1;
        if (step < 0)
            return false;
        steps->negative[steps->count] = op->opcode == OP_sub;
        steps->values[steps->count++] = tt_operand(op, step);
        value = tt_operand(op, 1 - step);
    }
    return steps->count > 0;
}

/* The number that a uniform value holds, as a scalar of type `type`. */
static Value *scalar_of(Builder *b, Value *value, const Type *type)
{
    const Op *splat = tt_def(value, OP_splat);
    int64_t number;
    Value *scalar = splat ? tt_operand(splat, 0) : value;
    if (!splat && tt_constant_int(value, &number))
        scalar = tt_build_int(b, tt_element(value->type), number);
    return scalar->type == type ? scalar : tt_build_cast(b, OP_ext_s, scalar, type);
}

/* initial + sum, where `b` stands. */
static Value *rebuild(Builder *b, Value *initial, Value *sum)
{
    Value *offset = tt_build_splat(b, sum, initial->type->shape, initial->type->rank);
    return tt_is_ptr(initial->type) ? tt_build_addptr(b, initial, offset)
                                    : tt_build2(b, OP_add, initial, offset);
}

static bool carry_sum(Loop *loop, int i)
{
    Value *initial = tt_init(loop, i), *carried = tt_carried(loop, i);
    Steps steps = {0};
    if (!tt_is_tile(initial->type) || (!tt_is_int(initial->type) && !tt_is_ptr(initial->type)) ||
        !find_steps(tt_next(loop, i), loop->body->args[loop->arg + i], &steps))
        return false;
    const Type *element = tt_element(initial->type);
    Module *module = loop->op->parent->function->module;
    const Type *type = tt_is_ptr(element) ? tt_scalar_type(module, TT_I64) : element;

    Builder before = tt_builder_before(loop->op), at_end = tt_builder_before(loop->yield);
    int sum = tt_add_carried(loop, tt_build_int(&before, type, 0));
    Value *next = loop->body->args[loop->arg + sum];
    for (int r = 0; r < loop->op->region_count && carried->name; r++)
        loop->op->regions[r]->args[loop->arg + sum]->name =
            tt_intern(module, tt_arena_format(module->arena, "%s_advance", carried->name));
    for (int s = steps.count - 1; s >= 0; s--)
        next = tt_build2(&at_end, steps.negative[s] ? OP_sub : OP_add, next,
                         scalar_of(&at_end, steps.values[s], type));
    tt_set_operand(loop->yield, sum, next);

    /* From here on the tile is carried unchanged, and made anew wherever it is used. */
    tt_set_operand(loop->yield, i, initial);
    for (int r = 0; r < loop->op->region_count; r++) {
        Region *region = loop->op->regions[r];
        Value *arg = region->args[loop->arg + i];
        if (!tt_has_uses(arg))
            continue;
        Builder at_start = tt_builder_before(region->first);
        tt_replace_all_uses(arg, rebuild(&at_start, initial, region->args[loop->arg + sum]));
    }
    Builder after = tt_builder_after(loop->op);
    after.loc = loop->op->loc;
    if (tt_has_uses(loop->op->results[i])) {
        Value *sum_result = loop->op->results[sum];
        tt_replace_all_uses(loop->op->results[i], rebuild(&after, initial, sum_result));
    }
    return true;
}

static bool visit_region(Region *region)
{
    bool changed = false;
    TT_FOR_OPS_SAFE(op, region)
    {
        for (int i = 0; i < op->region_count; i++)
            changed |= visit_region(op->regions[i]);
        if (!tt_is_loop(op))
            continue;
        Loop loop = tt_loop(op);
        for (int i = 0, count = loop.count; i < count; i++)
            changed |= carry_sum(&loop, i);
    }
    return changed;
}

bool tt_opt_induction(Function *function, Arena *scratch)
{
    (void)scratch;
    return visit_region(function->body);
}
