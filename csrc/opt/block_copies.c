/* Blocks of arrays that one instruction copies to shared memory (TMA of compute capability 9.0): what a product of a loop reads
 * of an array that begins at a parameter, in rows of whole 16 bytes. The hardware gets to know an array by a tensor map,
 * which launches make of its extents and strides: so these must follow from the launch's numbers alone, and be positive
 * (FACT_MAPS). Along its rows a block begins at whole 16 bytes, or the instruction is an illegal one. Such a block has
 * `multiples` of which launches are to find extents and strides, then the `terms` of their checks that these are, and is
 * copied as one if the pipeliner takes it (gpu/pipeline_loads.c); in launches of which it is not proved it is made of
 * pointers, as are all others. */
#include "opt/pass.h"

enum { CHUNK = 16 /* bytes */, LEAST_ROWS = 64, LONGEST_EDGE = 256, SHARED_MEMORY = 227 << 10 };

typedef struct Marks {
    const AxisInfos *axes;
    bool found;
} Marks;

static const Op *loop_around(const Op *op)
{
    const Op *around = op->parent->op;
    while (around && around->opcode != OP_for)
        around = around->parent->op;
    return around;
}

/* A product of whole warpgroups, of elements that their instruction takes along both dimensions, or along K alone. */
static bool is_for_warpgroups(const Op *dot)
{
    const Type *a = tt_operand(dot, 0)->type, *sum = dot->results[0]->type;
    return sum->rank == 2 && sum->shape[0] >= LEAST_ROWS && tt_element(sum)->kind != TT_F64 &&
           tt_byte_width(a) <= 2 && tt_element(a)->kind != TT_I16;
}

/* Do only products of a loop use it, as it is or transposed? */
static bool feeds_products(const Value *tile)
{
    TT_FOR_USES(use, tile)
    {
        const Op *user = use->user;
        bool passes = user->opcode == OP_permute && feeds_products(user->results[0]);
        bool multiplies = user->opcode == OP_dot && tt_operand(user, 2) != tile && is_for_warpgroups(user) &&
                          loop_around(user);
        if (!passes && !multiplies)
            return false;
    }
    return tt_has_uses(tile);
}

static bool is_load_of(const Op *block, const Use *use)
{
    const Op *load = use->user;
    return load->opcode == OP_load && load->operand_count == 3 && tt_is_plain_load(load) &&
           tt_operand(load, 1) == block->results[1] && tt_is_zero(tt_operand(load, 2)) &&
           feeds_products(load->results[0]) && loop_around(load) == loop_around(block);
}

/* Elements by which launches have to find the distance of rows divisible; 1: it is known to be one of whole chunks. */
static int64_t divisor_to_prove(const Marks *marks, const Op *block)
{
    int bytes = tt_byte_width(block->results[0]->type->element->element);
    const Value *row = tt_operand(block, 3);
    return tt_axis_info(marks->axes, row)->divisibility[0] * bytes % CHUNK ? CHUNK / bytes : 1;
}

static bool is_of_whole_chunks(const Marks *marks, const Op *block)
{
    const Type *type = block->results[0]->type;
    int bytes = tt_byte_width(type->element->element);
    const Value *base = tt_operand(block, 0), *row = tt_operand(block, 3), *next = tt_operand(block, 4);
    const Value *column = tt_operand(block, 6);
    int64_t one, number;
    return !base->op && base->region == block->parent->function->body &&
           tt_axis_info(marks->axes, base)->divisibility[0] % CHUNK == 0 &&
           tt_axis_info(marks->axes, column)->divisibility[0] * bytes % CHUNK == 0 &&
           (!tt_constant_int(row, &number) || number * bytes % CHUNK == 0) && tt_constant_int(next, &one) &&
           one == 1 && tt_is_pow2(type->shape[0]) && tt_is_pow2(type->shape[1]) &&
           type->shape[0] <= LONGEST_EDGE && type->shape[1] <= LONGEST_EDGE &&
           type->shape[1] * bytes >= CHUNK;
}

typedef struct Slots {
    const Op *loop;
    int64_t bytes; /* an iteration */
} Slots;

static void count_slot(Op *op, void *context)
{
    Slots *slots = context;
    const Type *type = op->opcode == OP_load ? op->results[0]->type : NULL;
    if (type && tt_is_tile(type) && loop_around(op) == slots->loop && feeds_products(op->results[0]))
        slots->bytes += type->count * tt_byte_width(type);
}

/* Is there memory for the next iteration's blocks beside those of this one? */
static bool has_two_slots(const Op *block)
{
    Slots slots = {.loop = loop_around(block)};
    tt_walk(slots.loop->regions[0], count_slot, &slots);
    return 2 * slots.bytes <= SHARED_MEMORY;
}

static void mark(Op *op, void *context)
{
    Marks *marks = context;
    if (op->opcode != OP_block_pointers || op->results[0]->type->rank != 2 || !loop_around(op))
        return;
    const Attr *checked = tt_find_attr(op, ATTR_checked);
    const Use *use = op->results[0]->uses;
    if (!checked || checked->count != 2 || !use || use->next || !is_load_of(op, use) ||
        !is_of_whole_chunks(marks, op) || !has_two_slots(op))
        return;
    int64_t to_prove[] = {1, 1, divisor_to_prove(marks, op), 1};
    tt_set_attr(op, tt_attr_ints(op->parent->function->module, ATTR_multiples, to_prove, 4, NULL));
    marks->found = true;
}

bool tt_opt_block_copies(Function *function, Arena *scratch)
{
    Marks marks = {.axes = tt_analyze_axis_info(function, scratch)};
    if (function->is_kernel)
        tt_walk(function->body, mark, &marks);
    return marks.found;
}

typedef struct Settling {
    unsigned facts;
    bool changed;
} Settling;

static void settle(Op *op, void *context)
{
    Settling *settling = context;
    if (op->opcode != OP_block_pointers || (settling->facts & FACT_MAPS && settling->facts & FACT_FITS))
        return;
    tt_remove_attr(op, ATTR_multiples);
    tt_remove_attr(op, ATTR_terms);
    settling->changed = true;
}

bool tt_settle_blocks(Function *function, unsigned facts)
{
    Settling settling = {.facts = facts};
    tt_walk(function->body, settle, &settling);
    return settling.changed;
}
