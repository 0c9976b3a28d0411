/* Writes out loops that look elements up at distances that change from one iteration to the next, in a way that the
 * compiler can follow: sorting networks. As loops they are short, which other targets like; written out, a distance is
 * a constant, and a lookup at a constant distance is a shuffle, or no instruction at all (simt_gather.c). */
#include "gpu/passes.h"

enum {
    MOST_ITERATIONS = 64,
    MOST_LOOKUPS = 6144, /* of one thread, in all that is written out */
};

typedef struct Unroller {
    const GpuOptions *options;
    Arena *arena;
    int64_t lookups_left;
} Unroller;

static int64_t elements_per_thread(const Unroller *u, const Type *type)
{
    return TT_MAX(1, type->count / (TT_LANES * u->options->num_warps));
}

/* Lookups of one iteration, inner loops' counted once. */
static int64_t count_lookups(const Unroller *u, const Region *region)
{
    int64_t count = 0;
    TT_FOR_OPS(op, region)
    {
        if (op->opcode == OP_gather)
            count += elements_per_thread(u, op->results[0]->type);
        for (int i = 0; i < op->region_count && tt_is_control(op); i++)
            count += count_lookups(u, op->regions[i]);
    }
    return count;
}

/* ---- one iteration ------------------------------------------------------------------------------------------------------------ */

static Value *replacement(Map *map, Value *value)
{
    Value *other = tt_map_find_ptr(map, value);
    return other ? other : value;
}

/* Copies the operations in front of `before`, what is constant folded. */
static void copy_folded(const Unroller *u, Op *before, const Region *region, Map *map)
{
    Builder b = tt_builder_before(before);
    TT_FOR_OPS(op, region)
    {
        if (tt_has(op, TERMINATOR))
            return;
        if (op->result_count != 1 || op->region_count || !tt_has(op, PURE)) {
            tt_clone_op(&b, op, map);
            continue;
        }
        Value **operands = TT_NEW_ARRAY(u->arena, Value *, op->operand_count);
        for (int i = 0; i < op->operand_count; i++)
            operands[i] = replacement(map, tt_operand(op, i));
        b.loc = op->loc;
        *tt_map_slot_ptr(map, op->results[0]) =
            tt_build(&b, op->opcode, operands, op->operand_count, op->results[0]->type,
                     tt_copy_attrs(b.module, op->attrs));
    }
}

/* The arguments of a region become what is carried into an iteration. */
static Map map_arguments(const Unroller *u, const Op *loop, const Region *region)
{
    Map map = {.arena = u->arena};
    for (int i = 0; i < region->arg_count; i++)
        *tt_map_slot_ptr(&map, region->args[i]) = tt_operand(loop, i);
    return map;
}

/* Is it known whether there is one more iteration? */
static bool knows_condition(const Unroller *u, Op *loop, bool *holds)
{
    const Region *region = loop->regions[0];
    Map map = map_arguments(u, loop, region);
    TT_FOR_OPS(op, region)
    if (!tt_has(op, PURE) && !tt_has(op, TERMINATOR))
        return false;
    copy_folded(u, loop, region, &map);
    int64_t value;
    bool known = tt_constant_int(replacement(&map, tt_operand(region->last, 0)), &value);
    *holds = known && value;
    return known;
}

/* Puts the first iteration in front of the loop. */
static void peel(const Unroller *u, Op *loop)
{
    const Region *body = loop->regions[1];
    Map map = map_arguments(u, loop, body);
    copy_folded(u, loop, body, &map);
    for (int i = 0; i < loop->operand_count; i++)
        tt_set_operand(loop, i, replacement(&map, tt_operand(body->last, i)));
}

/* ---- whole loops -------------------------------------------------------------------------------------------------------------- */

static bool unroll_region(Unroller *u, Region *region);

/* What has been peeled off stands, also when the rest stays a loop. */
static bool unroll(Unroller *u, Op *loop)
{
    bool holds, changed = false;
    int64_t lookups = count_lookups(u, loop->regions[1]);
    for (int i = 0; lookups && knows_condition(u, loop, &holds); i++) {
        if (!holds) {
            for (int j = 0; j < loop->result_count; j++)
                tt_replace_all_uses(loop->results[j], tt_operand(loop, j));
            tt_erase_op(loop);
            return true;
        }
        if (i == MOST_ITERATIONS || u->lookups_left < lookups)
            break;
        u->lookups_left -= lookups;
        peel(u, loop);
        changed = true;
    }
    return changed;
}

static bool unroll_region(Unroller *u, Region *region)
{
    bool changed = false;
    for (Op *op = region->first, *before, *next; op; op = next) {
        before = op->previous;
        next = op->next;
        if (op->opcode == OP_while && unroll(u, op)) {
            changed = true;
            next = before ? before->next : region->first; /* loops in what was peeled off */
            continue;
        }
        for (int i = 0; i < op->region_count && tt_is_control(op); i++)
            changed |= unroll_region(u, op->regions[i]);
    }
    return changed;
}

bool tt_gpu_unroll_networks(Module *module, const GpuOptions *options, Arena *scratch)
{
    Unroller unroller = {.options = options, .arena = scratch, .lookups_left = MOST_LOOKUPS};
    bool changed = unroll_region(&unroller, module->functions->body);
    if (changed)
        tt_simplify(module);
    return changed;
}
