/* Warpgroups that take turns. In a loop in which a product's result is computed with, and maybe multiplied again (attention),
 * all warpgroups meet once in an iteration, so that all would multiply at one time, and then all compute while the tensor
 * cores rest. So every other one meets the rest half an iteration earlier: behind its first product, where the others
 * stand in front of their second one, or of their only one. These then multiply, into the next iteration's first product,
 * while the former compute, and the other way round: what FlashAttention-3 (arXiv 2407.08608, section 3.1) does with named
 * barriers between warpgroups, with the barrier that the loop's copies need anyway.
 *
 * Iteration i then reads behind its barrier what its second product and the next iteration's first one need. So copies of
 * iteration i + 1 have landed there, for which they are two iterations ahead at least, and new ones are issued behind it,
 * into the slot that all threads were done with when they came there. Nothing else in the loop may need a barrier: of two
 * accesses that may meet, the later one of an iteration has one in front of it (barriers.c), by which it is known. */
#include "gpu/passes.h"
#include "opt/pass.h"

typedef struct Turns {
    Arena *arena;
    Op *loop, *meeting; /* the wait for copies at which the threads meet */
    Turn turn;
    TT_VECTOR(Op *) moved; /* copies and what only they need, from the last one on */
    bool is_possible;
} Turns;

/* Do threads meet in it, or does it work in shared memory other than by reading slots? */
static void look_inside(Op *op, void *context)
{
    Turns *t = context;
    bool meets = op->opcode == OP_barrier || op->opcode == OP_async_wait || tt_find_attr(op, ATTR_scratch) ||
                 tt_releases(op) || tt_acquires(op);
    bool copies = op->opcode == OP_async_copy || op->opcode == OP_tensor_copy;
    bool writes = tt_has(op, SMEM_WRITES) && !copies;
    bool is_nested = op->parent != t->loop->regions[0];
    bool multiplies = copies || op->opcode == OP_wgmma || op->opcode == OP_wgmma_wait;
    if ((meets && op != t->meeting) || writes || (is_nested && multiplies) || tt_is_loop(op))
        t->is_possible = false;
    if (op->opcode == OP_wgmma_wait && tt_int_attr(op, ATTR_left, 0))
        t->is_possible = false;
}

static bool depends_on(const Value *value, const Op *op, Map *seen)
{
    const Op *made = value->op;
    if (!made || made->parent != op->parent || tt_map_find_ptr(seen, made))
        return false;
    *tt_map_slot_ptr(seen, made) = (void *)made;
    if (made == op)
        return true;
    for (int i = 0; i < made->operand_count; i++)
        if (depends_on(tt_operand(made, i), op, seen))
            return true;
    return false;
}

/* Is a product's result computed with in the loop, rather than only added to by the next product? */
static bool is_computed_with(const Op *wait)
{
    TT_FOR_USES(use, wait->results[0])
    if (use->user->parent == wait->parent && tt_has(use->user, ELEMENTWISE))
        return true;
    return false;
}

bool tt_find_turn(const Region *body, Turn *turn, Arena *scratch)
{
    bool is_costly = false;
    *turn = (Turn){0};
    TT_FOR_OPS(op, body)
    {
        Map seen = {.arena = scratch};
        if (op->opcode == OP_wgmma_wait && !turn->first && tt_def(tt_operand(op, 0), OP_wgmma))
            turn->first = op;
        is_costly |= turn->first && tt_is_costly(op) && tt_is_tile(op->results[0]->type);
        if (op->opcode != OP_wgmma || !is_costly || !tt_is_tile(tt_operand(op, 0)->type) ||
            !depends_on(tt_operand(op, 0), turn->first, &seen))
            continue;
        turn->second = op;
        return true;
    }
    if (!turn->first || !is_computed_with(turn->first))
        return false;
    turn->second = tt_operand(turn->first, 0)->op;
    return turn->second->parent == body;
}

/* Copies in front of `place`, and the operations that nothing else needs. */
static void find_moved(Turns *t, const Op *place)
{
    Map moved = {.arena = t->arena};
    for (Op *op = place->previous; op; op = op->previous) {
        bool moves = op->opcode == OP_async_copy || op->opcode == OP_async_commit ||
                     op->opcode == OP_tensor_copy || op->opcode == OP_mbarrier_expect;
        bool is_needed = !tt_is_pure(op) || op->region_count;
        for (int i = 0; i < op->result_count && !is_needed; i++)
            TT_FOR_USES(use, op->results[i])
        is_needed |= !tt_map_find_ptr(&moved, use->user);
        if (!moves && is_needed)
            continue;
        *tt_map_slot_ptr(&moved, op) = op;
        tt_push(t->arena, t->moved, op);
    }
}

/* `half`: every other warpgroup, from that one on; -1: all. */
static Op *build_wait(Builder *b, int left, int half)
{
    Attr *attrs = half < 0 ? NULL : tt_attr_int(b->module, ATTR_half, half, NULL);
    return tt_build_op(b, OP_async_wait, NULL, 0, NULL, 0, tt_attr_int(b->module, ATTR_left, left, attrs));
}

static void take_turns(Turns *t)
{
    int left = (int)tt_int_attr(t->meeting, ATTR_left, 0);
    Builder before = tt_builder_before(t->loop), early = tt_builder_after(t->turn.first),
            late = tt_builder_before(t->turn.second);
    before.loc = early.loc = late.loc = t->meeting->loc;
    build_wait(&before, left, -1);
    Op *behind_first = build_wait(&early, left - 1, 1);
    build_wait(&late, left - 1, 0);
    tt_erase_op(t->meeting);
    const Op *last = tt_comes_before(behind_first, t->turn.second) ? t->turn.second : behind_first;
    find_moved(t, last);
    for (int i = 0; i < t->moved.count; i++) /* the last one first */
        tt_move_before(t->moved.data[i], i ? t->moved.data[i - 1] : last->next);
}

static bool visit_loop(Op *loop, void *context)
{
    Turns *t = context;
    int commits = 0;
    t->loop = loop;
    t->meeting = NULL;
    t->moved.count = 0;
    TT_FOR_OPS(op, loop->regions[0])
    {
        commits += op->opcode == OP_async_commit;
        if (op->opcode == OP_async_wait && !t->meeting)
            t->meeting = op;
    }
    t->is_possible = t->meeting && commits == 1 && tt_int_attr(t->meeting, ATTR_left, 0) > 0 &&
                     !tt_int_attr(t->meeting, ATTR_alone, 0);
    if (!t->is_possible)
        return false;
    tt_walk(loop->regions[0], look_inside, t);
    if (!t->is_possible || !tt_find_turn(loop->regions[0], &t->turn, t->arena))
        return false;
    const Op *yield = loop->regions[0]->last;
    for (int i = 0; i < yield->operand_count; i++)
        if (tt_def(tt_operand(yield, i), OP_wgmma))
            return false;
    take_turns(t);
    return true;
}

static void find_assert(Op *op, void *found) { *(bool *)found |= op->opcode == OP_assert; }

/* Threads whose assertion fails end, and a barrier that says how many it is for would wait for them for ever. */
static bool may_end_early(Region *region)
{
    bool found = false;
    tt_walk(region, find_assert, &found);
    return found;
}

bool tt_gpu_stagger(Module *module, const GpuOptions *options, Arena *scratch)
{
    Turns t = {.arena = scratch};
    Region *body = module->functions->body;
    return tt_has_turns(options) && !may_end_early(body) && tt_change_loops(body, visit_loop, &t);
}
