/* Blocks of arrays that one instruction copies to shared memory (TMA of compute capability 9.0): what a product of a loop reads
 * of an array that begins at a parameter, or behind it, in rows of whole 16 bytes. The hardware gets to know an array by a
 * tensor map, which launches make of its extents and strides: so these must follow from the launch's numbers alone, and be
 * positive (FACT_MAPS). Along its rows a block begins at whole 16 bytes, or the instruction is an illegal one. Where edges are
 * not checked there is no extent, and the block must begin behind the array's begin. Such a block has
 * `multiples` of which launches are to find extents and strides, then the `terms` of their checks that these are, and is
 * copied as one if the pipeliner takes it (gpu/pipeline_loads.c); in launches of which it is not proved it is made of
 * pointers, as are all others. Rows that lie along the first dimension become those of a block that is turned. */
#include "opt/pass.h"

enum { LONGEST_EDGE = 256 /* of a block */ };

typedef struct Marks {
    Arena *scratch;
    const AxisInfos *axes;
    TT_VECTOR(Op *) blocks; /* in loops */
} Marks;

static const Op *loop_around(const Op *op)
{
    const Op *around = op->parent->op;
    while (around && around->opcode != OP_for)
        around = around->parent->op;
    return around;
}

/* Does a loop's product of whole warpgroups multiply it, of elements that their instruction takes along both dimensions, or
 * along K alone? */
static bool is_for_warpgroups(const Use *use)
{
    const Op *dot = use->user;
    if (!tt_is_factor(use) || !loop_around(dot))
        return false;
    const Type *a = tt_operand(dot, 0)->type, *sum = dot->results[0]->type;
    return sum->rank == 2 && sum->shape[0] >= TT_WGMMA_ROWS && tt_element(sum)->kind != TT_F64 &&
           tt_byte_width(a) <= 2 && tt_element(a)->kind != TT_I16;
}

/* Do only such products use it, as it is or transposed? */
static bool feeds_products(const Value *tile) { return tt_goes_only_to(is_for_warpgroups, tile, false); }

/* That uses the block, and nothing else does; or NULL. */
static Op *only_load(const Op *block)
{
    const Use *use = block->results[0]->uses, *of_mask = block->results[1]->uses;
    bool is_alone = use && !use->next && (!of_mask || (!of_mask->next && of_mask->user == use->user));
    return is_alone && use->user->opcode == OP_load ? use->user : NULL;
}

/* `tile`: what of the load goes to products. */
static bool is_load_of(const Op *block, const Op *load, const Value *tile)
{
    int count = load->operand_count;
    return load->opcode == OP_load && tt_is_plain_load(load) &&
           (count > 1) == (tt_find_attr(block, ATTR_checked) != NULL) &&
           (count < 2 || tt_operand(load, 1) == block->results[1]) &&
           (count < 3 || tt_is_zero(tt_operand(load, 2))) && feeds_products(tile) &&
           loop_around(load) == loop_around(block);
}

enum { BASE, EXTENTS, STRIDES = 3, OFFSETS = 5 }; /* of block_pointers of two dimensions, the first of each */

static bool is_one(const Value *value)
{
    int64_t number;
    return tt_constant_int(value, &number) && number == 1;
}

/* Do neighbours in memory lie along the first dimension? */
static bool is_turned(const Op *block)
{
    return is_one(tt_operand(block, STRIDES)) && !is_one(tt_operand(block, STRIDES + 1));
}

/* Elements by which launches have to find the distance of rows divisible; 1: it is known to be one of whole chunks. */
static int64_t divisor_to_prove(const Marks *marks, const Op *block)
{
    int bytes = tt_byte_width(block->results[0]->type->element->element);
    const Value *row = tt_operand(block, STRIDES);
    return tt_axis_info(marks->axes, row)->divisibility[0] * bytes % TT_CHUNK ? TT_CHUNK / bytes : 1;
}

static bool begins_at_parameter(const Value *base)
{
    while (tt_def(base, OP_addptr))
        base = tt_operand(base->op, 0);
    return !base->op && base->region->op == NULL;
}

static bool is_of_whole_chunks(const Marks *marks, const Op *block)
{
    const Type *type = block->results[0]->type;
    int bytes = tt_byte_width(type->element->element), turned = is_turned(block);
    const Value *base = tt_operand(block, BASE), *row = tt_operand(block, STRIDES + turned);
    const Value *column = tt_operand(block, OFFSETS + 1 - turned);
    int64_t number;
    return begins_at_parameter(base) && tt_axis_info(marks->axes, base)->divisibility[0] % TT_CHUNK == 0 &&
           tt_axis_info(marks->axes, column)->divisibility[0] * bytes % TT_CHUNK == 0 &&
           (!tt_constant_int(row, &number) || number * bytes % TT_CHUNK == 0) &&
           is_one(tt_operand(block, STRIDES + 1 - turned)) && tt_is_pow2(type->shape[0]) &&
           tt_is_pow2(type->shape[1]) && type->shape[0] <= LONGEST_EDGE && type->shape[1] <= LONGEST_EDGE &&
           type->shape[1 - turned] * bytes >= TT_CHUNK;
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
    return 2 * slots.bytes <= TT_SM90_SHARED;
}

/* A block of two dimensions in place of another one, and its load in place of that one's, which it returns. */
static Op *build_block(Op *block, Value *operands[7], const int64_t shape[2], const int64_t *checked,
                       int count, const Op *load)
{
    Module *module = block->parent->function->module;
    Builder b = tt_builder_before(block);
    b.loc = block->loc;
    const Type *types[2];
    for (int i = 0; i < 2; i++)
        types[i] = tt_tile_type(module, block->results[i]->type->element, shape, 2);
    Attr *attrs = count ? tt_attr_ints(module, ATTR_checked, checked, count, NULL) : NULL;
    Op *made = tt_build_op(&b, OP_block_pointers, operands, 7, types, 2, attrs);
    b = tt_builder_before((Op *)load);
    b.loc = load->loc;
    Value *of_load[] = {made->results[0], made->results[1], NULL};
    const Type *loaded = tt_with_element(module, types[0], types[0]->element->element);
    if (load->operand_count > 2)
        of_load[2] = tt_is_int(loaded) ? tt_build_int(&b, loaded, 0) : tt_build_float(&b, loaded, 0);
    Op *other = tt_build_op(&b, OP_load, of_load, load->operand_count, &loaded, 1,
                            tt_copy_attrs(module, load->attrs));
    other->results[0]->name = load->results[0]->name;
    return other;
}

/* The block with its dimensions exchanged, whose load is turned back. */
static Op *turn(Op *block, Op *load)
{
    static const int64_t exchanged[] = {1, 0};
    const int64_t *shape = block->results[0]->type->shape;
    Value *operands[7] = {tt_operand(block, BASE)};
    int64_t checked[2];
    int count = 0;
    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 2; d++)
            operands[1 + 2 * i + d] = tt_operand(block, 1 + 2 * i + 1 - d);
    for (int d = 0; d < 2; d++)
        if (tt_is_checked(block, 1 - d))
            checked[count++] = d;
    Op *turned = build_block(block, operands, (int64_t[]){shape[1], shape[0]}, checked, count, load);
    Builder b = tt_builder_before(load);
    b.loc = load->loc;
    Value *back = tt_build_permute(&b, turned->results[0], exchanged);
    tt_replace_op(load, &back);
    tt_erase_op(block);
    return tt_operand(turned, 0)->op;
}

/* ---- more dimensions -------------------------------------------------------------------------------------------------------------- */

/* The reshape of what is loaded from a block of many dimensions into the last two, of which alone it has more than one element;
 * NULL: that is not all that becomes of it. */
static Op *flat_use(const Op *block)
{
    const Type *type = block->results[0]->type;
    const Op *load = only_load(block);
    int rank = type->rank;
    if (rank < 3 || !load || !tt_has_one_use(load->results[0]))
        return NULL;
    Op *reshape = load->results[0]->uses->user;
    const Type *flat = reshape->opcode == OP_reshape ? reshape->results[0]->type : NULL;
    if (!flat || flat->rank != 2 || flat->shape[0] != type->shape[rank - 2] ||
        flat->shape[1] != type->shape[rank - 1] || flat->count != type->count ||
        !is_load_of(block, load, reshape->results[0]))
        return NULL;
    bool any_checked = false;
    for (int d = 0; d < rank - 2; d++)
        any_checked |= tt_is_checked(block, d);
    return any_checked && !tt_is_checked(block, rank - 2) ? NULL : reshape;
}

/* The block as one of two dimensions: its place along the others moves the base. Where that is outside of the array so is the
 * block, all of it in front of the first row, and the base stays. */
static Op *flatten(Op *block, Op *reshape)
{
    Module *module = block->parent->function->module;
    const Type *i64 = tt_scalar_type(module, TT_I64), *i32 = tt_scalar_type(module, TT_I32);
    Op *load = tt_operand(reshape, 0)->op;
    int rank = block->results[0]->type->rank, first = rank - 2;
    const int64_t *shape = block->results[0]->type->shape + first;
    Builder b = tt_builder_before(block);
    b.loc = block->loc;
    Value *start = NULL, *is_inside = NULL;
    for (int d = 0; d < first; d++) {
        Value *offset = tt_build_cast(&b, OP_ext_s, tt_operand(block, 1 + 2 * rank + d), i64);
        Value *along = tt_build2(&b, OP_mul, offset, tt_operand(block, 1 + rank + d));
        start = start ? tt_build2(&b, OP_add, start, along) : along;
        if (!tt_is_checked(block, d))
            continue;
        Value *begins = tt_build2(&b, OP_ge_s, offset, tt_build_int(&b, i64, 0));
        Value *ends = tt_build2(&b, OP_lt_s, offset, tt_operand(block, 1 + d));
        Value *inside = tt_build2(&b, OP_and, begins, ends);
        is_inside = is_inside ? tt_build2(&b, OP_and, is_inside, inside) : inside;
    }
    if (is_inside)
        start = tt_build3(&b, OP_select, is_inside, start, tt_build_int(&b, i64, 0));
    Value *operands[7] = {tt_build_addptr(&b, tt_operand(block, BASE), start)};
    for (int i = 0; i < 3; i++)
        for (int d = 0; d < 2; d++)
            operands[1 + 2 * i + d] = tt_operand(block, 1 + i * rank + first + d);
    if (is_inside)
        operands[OFFSETS] =
            tt_build3(&b, OP_select, is_inside, operands[OFFSETS], tt_build_int(&b, i32, -shape[0]));
    int64_t checked[2];
    int count = 0;
    for (int d = 0; d < 2; d++)
        if (tt_is_checked(block, first + d))
            checked[count++] = d;
    Value *flat = build_block(block, operands, shape, checked, count, load)->results[0];
    tt_replace_op(reshape, &flat);
    tt_erase_op(load);
    tt_erase_op(block);
    return tt_operand(flat->op, 0)->op;
}

static void find_block(Op *op, void *context)
{
    Marks *marks = context;
    if (op->opcode == OP_block_pointers && loop_around(op))
        tt_push(marks->scratch, marks->blocks, op);
}

static bool mark(Marks *marks, Op *block)
{
    Op *load = only_load(block);
    if (block->results[0]->type->rank != 2 || !load || !is_load_of(block, load, load->results[0]) ||
        !is_of_whole_chunks(marks, block) || !has_two_slots(block))
        return false;
    if (is_turned(block))
        block = turn(block, load);
    int64_t to_prove[] = {1, 1, divisor_to_prove(marks, block), 1};
    tt_set_attr(block, tt_attr_ints(block->parent->function->module, ATTR_multiples, to_prove, 4, NULL));
    return true;
}

bool tt_opt_block_copies(Function *function, Arena *scratch)
{
    Marks marks = {.scratch = scratch};
    bool any = false;
    if (function->is_kernel)
        tt_walk(function->body, find_block, &marks);
    for (int i = 0; i < marks.blocks.count; i++) {
        Op *reshape = flat_use(marks.blocks.data[i]);
        if (reshape) {
            marks.blocks.data[i] = flatten(marks.blocks.data[i], reshape);
            any = true;
        }
    }
    if (marks.blocks.count)
        marks.axes = tt_analyze_axis_info(function, scratch);
    for (int i = 0; i < marks.blocks.count; i++)
        any |= mark(&marks, marks.blocks.data[i]);
    return any;
}

typedef struct Settling {
    unsigned facts;
    bool changed;
} Settling;

static void settle(Op *op, void *context)
{
    Settling *settling = context;
    bool is_proved = settling->facts & FACT_MAPS && settling->facts & FACT_FITS;
    if (op->opcode != OP_block_pointers || (is_proved && tt_find_attr(op, ATTR_terms)))
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
