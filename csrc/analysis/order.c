/* Which parameters may change the order in which a kernel adds up floats. The layout that memory is accessed in follows
 * from what is known of the addresses and masks, and a sum over a tile is made in the order of its layout. */
#include "analysis/analysis.h"

typedef struct Search {
    Arena *arena;
    Map seen; /* Value* */
    TT_VECTOR(const Value *) found;
    bool adds_up;
} Search;

static void find(Search *search, const Value *value)
{
    void **slot = tt_map_slot_ptr(&search->seen, value);
    if (*slot)
        return;
    *slot = (void *)value;
    tt_push(search->arena, search->found, value);
}

/* Anything but choosing one of the elements. */
static bool region_adds_up(const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        bool chooses = op->opcode == OP_fmin || op->opcode == OP_fmax || op->opcode == OP_fmin_nan ||
                       op->opcode == OP_fmax_nan || op->opcode == OP_select;
        bool is_float = op->result_count && tt_is_float(op->results[0]->type);
        if (is_float && !chooses && op->opcode != OP_constant)
            return true;
    }
    return false;
}

static void visit(Op *op, void *context)
{
    Search *search = context;
    if (op->opcode == OP_reduce || op->opcode == OP_scan)
        search->adds_up |= region_adds_up(op->regions[0]);
    for (int i = 0; tt_has(op, ACCESS) && i < op->operand_count; i++)
        if (tt_is_ptr(tt_operand(op, i)->type) || tt_bit_width(tt_operand(op, i)->type) == 1)
            find(search, tt_operand(op, i));
}

static void find_yielded(Search *search, const Op *op, int index)
{
    for (int i = 0; i < op->region_count; i++) {
        const Op *end = tt_terminator(op->regions[i]);
        if (end->opcode == OP_yield && index < end->operand_count)
            find(search, tt_operand(end, index));
    }
}

/* What a loop starts with and steps by says what its index is like; where it ends does not. */
static void find_sources(Search *search, const Value *value)
{
    const Op *op = value->op ? value->op : value->region->op;
    if (!op)
        return;
    bool is_for = op->opcode == OP_for;
    if (value->op && !op->region_count) {
        for (int i = 0; i < op->operand_count; i++)
            find(search, tt_operand(op, i));
    } else if (!value->op && is_for && !value->index) {
        find(search, tt_operand(op, 0));
        find(search, tt_operand(op, 2));
    } else if (tt_is_loop(op)) {
        int number = value->index - (!value->op && is_for);
        find(search, tt_operand(op, number + (is_for ? 3 : 0)));
        find_yielded(search, op, number);
    } else {
        for (int i = 0; i < op->operand_count; i++)
            find(search, tt_operand(op, i));
        if (value->op)
            find_yielded(search, op, value->index);
    }
}

const bool *tt_analyze_order(const Function *kernel, Arena *arena)
{
    Search search = {.arena = arena, .seen = {.arena = arena}};
    tt_walk(kernel->body, visit, &search);
    if (!search.adds_up)
        return NULL;
    bool *order = TT_NEW_ARRAY(arena, bool, kernel->body->arg_count);
    for (int i = 0; i < search.found.count; i++) {
        const Value *value = search.found.data[i];
        if (value->region == kernel->body)
            order[value->index] = true;
        find_sources(&search, value);
    }
    return order;
}
