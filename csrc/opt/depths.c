/* Loops that multiply what they load, whose loads may run further ahead than was asked for in launches of few programs: each has
 * a multiprocessor for itself then, or half of one, and with it all shared memory that it can use. What was asked for was
 * chosen for grids that fill the device. So these loops are marked, the grid is one more thing that a launch proves, and the
 * mark says how many programs a multiprocessor gets at most in the launches that the code is for (gpu/pipeline.c reads it). */
#include "opt/pass.h"

/* Is it made of a load of the loop's body, as the pipeliner follows operands of products? */
static bool is_loaded(const Loop *loop, const Value *value, Map *seen)
{
    const Op *op = value->op;
    if (!op || op->parent != loop->body || tt_map_find_ptr(seen, op))
        return false;
    if (op->opcode == OP_load)
        return tt_is_tile(op->results[0]->type);
    *tt_map_slot_ptr(seen, op) = (void *)op;
    for (int i = 0; tt_has(op, ELEMENTWISE | SHAPE | ONE_LAYOUT) && i < op->operand_count; i++)
        if (is_loaded(loop, tt_operand(op, i), seen))
            return true;
    return false;
}

/* There is nothing to load ahead in one that is as short as this. */
static bool is_short(const Op *loop)
{
    enum { FEW = 3 };
    int64_t count;
    return tt_trip_count(loop, &count) && count <= FEW;
}

static bool multiplies_loads(const Loop *loop, Arena *scratch)
{
    Map seen = {.arena = scratch};
    TT_FOR_OPS(op, loop->body)
    for (int i = 0; op->opcode == OP_dot && i < 2; i++)
        if (is_loaded(loop, tt_operand(op, i), &seen))
            return true;
    return false;
}

typedef struct Depths {
    Arena *scratch;
    bool found;
} Depths;

static void mark(Op *op, void *context)
{
    Depths *depths = context;
    if (op->opcode != OP_for || tt_int_attr(op, ATTR_num_stages, 2) < 2)
        return;
    Loop loop = tt_loop(op);
    if (is_short(op) || !multiplies_loads(&loop, depths->scratch))
        return;
    tt_set_attr(op, tt_attr_int(op->parent->function->module, ATTR_programs, 1, NULL));
    depths->found = true;
}

bool tt_opt_depths(Function *function, Arena *scratch)
{
    Depths depths = {.scratch = scratch};
    if (function->is_kernel)
        tt_walk(function->body, mark, &depths);
    return depths.found;
}

static void settle(Op *op, void *context)
{
    unsigned facts = *(unsigned *)context;
    if (!tt_find_attr(op, ATTR_programs))
        return;
    if (!(facts & FACTS_OF_GRID))
        tt_remove_attr(op, ATTR_programs);
    else if (!(facts & FACT_ONE_EACH))
        tt_set_attr(op, tt_attr_int(op->parent->function->module, ATTR_programs, 2, NULL));
}

void tt_settle_depths(Function *function, unsigned facts) { tt_walk(function->body, settle, &facts); }
