/* Loops whose products all stand in branches (blocks that a table leaves out, steps of several kinds): what feeds these is
 * loaded in front of the branch, if the program comes to it, where it can be loaded ahead. */
#include "gpu/pipeline.h"

/* An operation in front of the branch it stood in, on these operands. */
typedef struct Copied {
    const Op *op;
    Value **operands, *condition;
    Value *result;
} Copied;

/* A load on its way there; several with the same operands are one. */
typedef struct Leaving {
    Value *operands[3];
    Value *condition; /* i1: does the program come to one of them? */
    TT_VECTOR(Op *) loads;
} Leaving;

typedef struct Exit {
    Pipeline *pipeline;
    Op *choice;  /* the branch, in the loop's body */
    Map can;     /* Value* -> itself if it can be had in front of the branch, else the map */
    Map outside; /* Value* -> what it is there */
    Map seen;    /* values whose loads have been found */
    Builder before;
    TT_VECTOR(Copied) copied;
    TT_VECTOR(Leaving) leaving;
} Exit;

/* ---- what can be had in front of the branch ---------------------------------------------------------------------------------- */

static bool is_inside(const Exit *exit, const Value *value)
{
    return value->op && value->op != exit->choice &&
           pipeline_part_of(exit->choice->parent, value->op) == exit->choice;
}

/* By computing, or by loads that do no harm, from what is known ahead? */
static bool can_have(Exit *exit, const Value *value)
{
    Pipeline *p = exit->pipeline;
    if (!is_inside(exit, value))
        return pipeline_is_computable(p, value);
    void **slot = tt_map_slot_ptr(&exit->can, value);
    if (*slot)
        return *slot == value;
    const Op *op = value->op;
    bool loads = pipeline_reads_what_stays(p, op), is_long = tt_is_costly(op) && tt_is_tile(value->type);
    bool can = !op->region_count && (loads || (tt_is_pure(op) && !is_long));
    for (int i = 0; can && i < op->operand_count; i++)
        can = can_have(exit, tt_operand(op, i));
    for (const Op *inner = op; can && loads && inner != exit->choice;) {
        inner = inner->parent->op;
        can = can_have(exit, tt_operand(inner, 0));
    }
    *tt_map_slot_ptr(&exit->can, value) = can ? (void *)value : &exit->can;
    return can;
}

static Value *have(Exit *exit, Value *value);

/* Does the program come to the operation? */
static Value *condition_of(Exit *exit, const Op *op)
{
    Builder *b = &exit->before;
    Value *all = NULL;
    while (op != exit->choice) {
        const Region *region = op->parent;
        op = region->op;
        Value *condition = have(exit, tt_operand(op, 0));
        if (region == op->regions[1])
            condition = tt_build2(b, OP_xor, condition, tt_build_int(b, condition->type, 1));
        all = all ? tt_build2(b, OP_and, condition, all) : condition;
    }
    return all;
}

static Value **operands_outside(Exit *exit, const Op *op)
{
    Value **operands = TT_NEW_ARRAY(exit->pipeline->scratch, Value *, TT_MAX(3, op->operand_count));
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = have(exit, tt_operand(op, i));
    return operands;
}

static bool is_same(const Copied *copied, const Value *value, Value **operands, const Value *condition)
{
    const Op *op = value->op;
    bool same = op->opcode == copied->op->opcode && value->type == copied->result->type &&
                value->index == 0 && op->result_count == 1 && condition == copied->condition &&
                op->operand_count == copied->op->operand_count && tt_same_attrs(op, copied->op);
    for (int i = 0; same && i < op->operand_count; i++)
        same = operands[i] == copied->operands[i];
    return same;
}

/* The value in front of the branch: computed there, or loaded if the program comes to its load. */
static Value *have(Exit *exit, Value *value)
{
    if (!is_inside(exit, value))
        return value;
    Value *known = tt_map_find_ptr(&exit->outside, value);
    if (known)
        return known;
    const Op *op = value->op;
    Value **operands = operands_outside(exit, op);
    Copied copied = {op, operands, op->opcode == OP_load ? condition_of(exit, op) : NULL, NULL};
    for (int i = 0; i < exit->copied.count && !copied.result; i++)
        if (is_same(&exit->copied.data[i], value, operands, copied.condition))
            copied.result = exit->copied.data[i].result;
    if (!copied.result) {
        exit->before.loc = op->loc;
        copied.result = pipeline_repeat(&exit->before, value, operands, copied.condition);
        tt_push(exit->pipeline->scratch, exit->copied, copied);
    }
    return *tt_map_slot_ptr(&exit->outside, value) = copied.result;
}

/* ---- loads that leave -------------------------------------------------------------------------------------------------------- */

/* Both branches may have the same load: then the program always comes to it. */
static void take_along(Exit *exit, Op *load)
{
    Arena *arena = exit->pipeline->scratch;
    Value **operands = operands_outside(exit, load), *condition = condition_of(exit, load);
    for (int i = 0; i < exit->leaving.count; i++) {
        Leaving *other = &exit->leaving.data[i];
        if (memcmp(other->operands, operands, sizeof other->operands) != 0 ||
            !tt_same_attrs(other->loads.data[0], load))
            continue;
        if (other->condition != condition)
            other->condition = tt_build2(&exit->before, OP_or, other->condition, condition);
        tt_push(arena, other->loads, load);
        return;
    }
    Leaving leaving = {.operands = {operands[0], operands[1], operands[2]}, .condition = condition};
    tt_push(arena, leaving.loads, load);
    tt_push(arena, exit->leaving, leaving);
}

/* The loads of the branches that a product's operand is made of. */
static void find_loads(Exit *exit, const Value *value)
{
    Op *op = value->op;
    if (!is_inside(exit, value) || tt_map_find_ptr(&exit->seen, value))
        return;
    *tt_map_slot_ptr(&exit->seen, value) = op;
    if (op->opcode == OP_load && can_have(exit, value))
        take_along(exit, op);
    if (!pipeline_passes_on(op))
        return;
    for (int i = 0; i < op->operand_count; i++)
        find_loads(exit, tt_operand(op, i));
}

static void find_products(Exit *exit, const Op *choice)
{
    for (int r = 0; r < choice->region_count; r++)
        TT_FOR_OPS(op, choice->regions[r])
        {
            for (int i = 0; i < 2 && tt_is_product(op); i++)
                find_loads(exit, tt_operand(op, i));
            if (op->opcode == OP_if)
                find_products(exit, op);
        }
}

static bool leave(Pipeline *p, Op *choice)
{
    Exit exit = {.pipeline = p,
                 .choice = choice,
                 .can = {.arena = p->scratch},
                 .outside = {.arena = p->scratch},
                 .seen = {.arena = p->scratch},
                 .before = tt_builder_before(choice)};
    find_products(&exit, choice);
    for (int i = 0; i < exit.leaving.count; i++) {
        Leaving *leaving = &exit.leaving.data[i];
        Op *first = leaving->loads.data[0];
        exit.before.loc = first->loc;
        Value *loaded =
            pipeline_repeat(&exit.before, first->results[0], leaving->operands, leaving->condition);
        for (int j = 0; j < leaving->loads.count; j++) {
            tt_replace_all_uses(leaving->loads.data[j]->results[0], loaded);
            tt_erase_op(leaving->loads.data[j]);
        }
    }
    return exit.leaving.count;
}

bool pipeline_leave_branches(Op *loop, void *context)
{
    Pipeline *p = context;
    bool changed = false;
    if (tt_int_attr(loop, ATTR_num_stages, p->options->num_stages) < 2)
        return false;
    p->loop = tt_loop(loop);
    TT_FOR_OPS(op, p->loop.body)
    if (tt_is_product(op))
        return false;
    TT_FOR_OPS(op, p->loop.body)
    if (op->opcode == OP_if)
        changed |= leave(p, op);
    return changed;
}
