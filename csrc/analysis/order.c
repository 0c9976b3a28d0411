/* Which numbers a kernel cannot do without knowing: those that may change the order in which it adds up floats, those
 * that its widest accesses hang on, and those whose being one makes a difference (ones.c). The layout that memory is
 * accessed in follows from what is known of the addresses and masks, and a sum over a tile is made in the order of its
 * layout. Where nothing is added up, what strides are multiples of counts: without it, vectors are taken apart, and a
 * product takes three times as long. */
#include "analysis/analysis.h"

typedef struct Search {
    Arena *arena;
    Map seen; /* Value* */
    TT_VECTOR(const Value *) found;
    bool
        adds_up; /* everything behind addresses and masks is searched, or else what addresses are multiples of */
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

static void look_for_sums(Op *op, void *context)
{
    Search *search = context;
    if (op->opcode == OP_reduce || op->opcode == OP_scan)
        search->adds_up |= region_adds_up(op->regions[0]);
}

static void start(Op *op, void *context)
{
    Search *search = context;
    for (int i = 0; tt_has(op, ACCESS) && i < op->operand_count; i++) {
        const Type *type = tt_operand(op, i)->type;
        if (tt_is_ptr(type) || (search->adds_up && tt_bit_width(type) == 1))
            find(search, tt_operand(op, i));
    }
}

/* Of a quotient or a comparison nothing is known, whatever is known of the numbers; of a remainder as much as of what is
 * divided. */
static int telling_operands(const Search *search, const Op *op)
{
    if (search->adds_up)
        return op->operand_count;
    switch (op->opcode) {
    case OP_div_s:
    case OP_div_u:
        return 0;
    case OP_rem_s:
    case OP_rem_u:
        return 1;
    default:
        return op->result_count && tt_bit_width(op->results[0]->type) == 1 ? 0 : op->operand_count;
    }
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
        for (int i = 0; i < telling_operands(search, op); i++)
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
    tt_walk(kernel->body, look_for_sums, &search);
    tt_walk(kernel->body, start, &search);
    bool *order = TT_NEW_ARRAY(arena, bool, kernel->body->arg_count);
    for (int i = 0; i < search.found.count; i++) {
        const Value *value = search.found.data[i];
        if (value->region == kernel->body)
            order[value->index] = true;
        find_sources(&search, value);
    }
    tt_find_ones(kernel, order, arena);
    return order;
}
