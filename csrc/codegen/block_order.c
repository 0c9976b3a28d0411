/* Blocks in an order in which loops and branches lie in one piece each: depth first, reversed, where what leaves a loop is
 * gone to before what stays in it, and so comes behind it. */
#include "codegen/split.h"

typedef struct Visit {
    LLVMBasicBlockRef block;
    unsigned next;  /* successor to go to */
    bool backwards; /* the second of two successors first */
} Visit;

typedef struct Order {
    Arena *arena;
    Map depth; /* block -> loops around it, plus one once it is known to be reachable */
    Map state; /* block -> where the walk is with it */
    TT_VECTOR(Visit) path;
    TT_VECTOR(LLVMBasicBlockRef) left; /* in the order in which the walk leaves them */
} Order;

typedef enum State { UNSEEN, ON_PATH, LEFT } State;

static State state_of(const Order *o, LLVMBasicBlockRef block)
{
    return (State)(intptr_t)tt_map_find_ptr(&o->state, block);
}

static void set_state(Order *o, LLVMBasicBlockRef block, State state)
{
    *tt_map_slot_ptr(&o->state, block) = (void *)(intptr_t)state;
}

static intptr_t depth_of(const Order *o, LLVMBasicBlockRef block)
{
    return (intptr_t)tt_map_find_ptr(&o->depth, block);
}

static LLVMBasicBlockRef successor(LLVMBasicBlockRef block, unsigned i)
{
    return LLVMGetSuccessor(LLVMGetBasicBlockTerminator(block), i);
}

static unsigned successor_count(LLVMBasicBlockRef block)
{
    return LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(block));
}

/* ---- loops -------------------------------------------------------------------------------------------------------------- */

/* One loop more around what leads to `latch` without passing by its header. */
static void deepen(Order *o, LLVMBasicBlockRef latch, LLVMBasicBlockRef header)
{
    Map seen = {.arena = o->arena};
    TT_VECTOR(LLVMBasicBlockRef) todo = {0};
    *tt_map_slot_ptr(&seen, header) = header;
    ++*(intptr_t *)tt_map_slot_ptr(&o->depth, header);
    tt_push(o->arena, todo, latch);
    while (todo.count) {
        LLVMBasicBlockRef block = todo.data[--todo.count];
        void **slot = tt_map_slot_ptr(&seen, block);
        if (*slot)
            continue;
        *slot = block;
        ++*(intptr_t *)tt_map_slot_ptr(&o->depth, block);
        for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); use; use = LLVMGetNextUse(use))
            tt_push(o->arena, todo, LLVMGetInstructionParent(LLVMGetUser(use)));
    }
}

/* ---- the walk ------------------------------------------------------------------------------------------------------------ */

/* What ends the program is gone to last, and stands right behind where it is decided. */
static bool prefers_second(const Order *o, LLVMBasicBlockRef block)
{
    if (successor_count(block) != 2)
        return false;
    LLVMBasicBlockRef first = successor(block, 0), second = successor(block, 1);
    bool first_ends = !successor_count(first), second_ends = !successor_count(second);
    if (first_ends != second_ends)
        return first_ends;
    return depth_of(o, second) < depth_of(o, first);
}

static void enter(Order *o, LLVMBasicBlockRef block)
{
    set_state(o, block, ON_PATH);
    tt_push(o->arena, o->path, ((Visit){block, 0, prefers_second(o, block)}));
}

/* With `finds_loops`, an edge to a block that the walk has not left yet closes a loop. */
static void walk(Order *o, LLVMBasicBlockRef entry, bool finds_loops)
{
    o->state = (Map){.arena = o->arena};
    o->left.count = 0;
    enter(o, entry);
    while (o->path.count) {
        Visit *visit = &o->path.data[o->path.count - 1];
        LLVMBasicBlockRef block = visit->block;
        if (visit->next == successor_count(block)) {
            set_state(o, block, LEFT);
            tt_push(o->arena, o->left, block);
            o->path.count--;
            continue;
        }
        unsigned i = visit->next++;
        LLVMBasicBlockRef next = successor(block, visit->backwards ? 1 - i : i);
        if (state_of(o, next) == UNSEEN)
            enter(o, next);
        else if (finds_loops && state_of(o, next) == ON_PATH)
            deepen(o, block, next);
    }
}

int tt_order_blocks(LLVMValueRef function, Arena *arena, LLVMBasicBlockRef **blocks)
{
    Order order = {.arena = arena, .depth = {.arena = arena}};
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(function);
    walk(&order, entry, true);
    walk(&order, entry, false);
    for (int i = 0, j = order.left.count - 1; i < j; i++, j--) {
        LLVMBasicBlockRef block = order.left.data[i];
        order.left.data[i] = order.left.data[j];
        order.left.data[j] = block;
    }
    *blocks = order.left.data;
    return order.left.count;
}
