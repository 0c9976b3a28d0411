/* Which loads of a loop are loaded ahead, and how: by asynchronous copies, through registers into a buffer, or kept in
 * registers. */
#include "gpu/pipeline.h"

/* ---- which loads ----------------------------------------------------------------------------------------------------------------- */

bool pipeline_reads_what_stays(const Pipeline *p, const Op *op)
{
    if (op->opcode != OP_load || !tt_is_plain_load(op))
        return false;
    int param = tt_pointer_param(p->pointers, tt_operand(op, 0));
    return !tt_writes_memory(p->loop.op) || (param >= 0 && !p->pointers->stored[param]);
}

static bool is_computable(const Pipeline *p, const Value *value, Map *asked);

/* Do both branches only compute, from what is computable? */
static bool is_computable_choice(const Pipeline *p, const Op *choice, Map *asked)
{
    for (int r = 0; r < choice->region_count; r++)
        TT_FOR_OPS(op, choice->regions[r])
        {
            bool can = op->opcode == OP_yield || (tt_is_pure(op) && !op->region_count &&
                                                  !(tt_is_costly(op) && tt_is_tile(op->results[0]->type)));
            for (int i = 0; can && i < op->operand_count; i++) {
                const Value *operand = tt_operand(op, i);
                can = (operand->op && operand->op->parent == choice->regions[r]) ||
                      is_computable(p, operand, asked);
            }
            if (!can)
                return false;
        }
    return true;
}

/* Is the value computed from the loop's index and what it carries, without the loop's products? */
static bool is_computable(const Pipeline *p, const Value *value, Map *asked)
{
    if (!tt_is_in_loop(&p->loop, value))
        return true;
    void **slot = tt_map_slot_ptr(asked, value);
    if (*slot)
        return *slot == value;
    *slot = (void *)value;
    bool can = true;
    if (!value->op) {
        int carried = tt_carried_index(&p->loop, value);
        can = carried < 0 || is_computable(p, tt_next(&p->loop, carried), asked);
    } else {
        can = value->op->parent == p->loop.body &&
              (value->op->opcode == OP_if
                   ? is_computable_choice(p, value->op, asked)
                   : !value->op->region_count &&
                         (tt_is_pure(value->op) || pipeline_reads_what_stays(p, value->op)) &&
                         !(tt_is_costly(value->op) && tt_is_tile(value->type)));
        for (int i = 0; can && i < value->op->operand_count; i++)
            can = is_computable(p, tt_operand(value->op, i), asked);
    }
    if (!can)
        *tt_map_slot_ptr(asked, value) = asked;
    return can;
}

bool pipeline_is_computable(const Pipeline *p, const Value *value)
{
    Map asked = {.arena = p->scratch};
    return is_computable(p, value, &asked);
}

static bool can_move(const Pipeline *p, const Op *load)
{
    Map asked = {.arena = p->scratch};
    bool can = pipeline_reads_what_stays(p, load);
    for (int i = 0; can && i < load->operand_count; i++)
        can = is_computable(p, tt_operand(load, i), &asked);
    return can;
}

/* Bytes that are neighbours in global memory under one mask: 4, 8 or 16 for asynchronous copies. */
static int64_t copied_bytes(const Pipeline *p, const Op *load, int axis)
{
    int64_t elements = tt_copied_elements(p->axis_infos, load, axis);
    if (load->operand_count > 1)
        elements = TT_MIN(elements, tt_axis_info(p->axis_infos, tt_operand(load, 1))->constancy[axis]);
    while (elements > 0 && !tt_is_pow2(elements))
        elements &= elements - 1;
    return elements * tt_byte_width(load->results[0]->type);
}

int64_t pipeline_bytes_at_once(const Pipeline *p, const Op *load)
{
    int64_t bytes = tt_byte_width(load->results[0]->type);
    return tt_is_tile(load->results[0]->type)
               ? TT_MAX(bytes, copied_bytes(p, load, tt_fastest_axis(p->axis_infos, load)))
               : bytes;
}

static bool gives_zeros(const Op *load) { return load->operand_count < 3 || tt_is_zero(tt_operand(load, 2)); }

/* Do multiply-adds of the threads read the buffer? */
static bool is_factor(const Value *buffer)
{
    TT_FOR_USES(use, buffer)
    {
        const Op *user = use->user;
        if (user->opcode == OP_smem_permute ? is_factor(user->results[0])
                                            : user->opcode == OP_dot && !tt_is_on_tensor_cores(user))
            return true;
    }
    return false;
}

/* Elements that lie along another dimension in the buffer are copied one by one, if at all: of some bytes, for products
 * that need all registers for themselves. */
static bool can_be_async(const Pipeline *p, const Staged *staged)
{
    const Op *load = staged->load;
    int axis = tt_buffer_axis(staged->layout), bytes = tt_byte_width(load->results[0]->type);
    if (p->options->sm < 80 || !gives_zeros(load) || tt_is_bool(load->results[0]->type))
        return false;
    return axis == tt_fastest_axis(p->axis_infos, load) ? copied_bytes(p, load, axis) >= 4
                                                        : staged->is_factor && bytes >= 4;
}

/* The buffer made of just this load, or NULL: then the elements are first computed with. */
static const Op *buffer_of(const Op *load)
{
    TT_FOR_USES(use, load->results[0])
    if (use->user->opcode == OP_smem_alloc)
        return use->user;
    return NULL;
}

bool pipeline_keep(Pipeline *p, const Type *type)
{
    enum { MOST_BYTES = 64 };
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps;
    int64_t bytes = TT_MAX(1, type->count / threads) * tt_byte_width(type);
    if (p->kept_bytes + bytes > MOST_BYTES)
        return false;
    p->kept_bytes += bytes;
    return true;
}

/* What is loaded as a tile: a number is a tile of one element. */
const Type *pipeline_tile_of(Module *module, const Op *load)
{
    const Type *type = load->results[0]->type;
    return tt_is_tile(type) ? type : tt_tile_type(module, type, (int64_t[]){1}, 1);
}

/* A number of 4 or 8 bytes is copied like a tile, so that it can be as many iterations ahead; a register that is carried
 * from one iteration to the next is waited for when it is moved. */
static void add_number(Pipeline *p, Staged *staged)
{
    const Type *type = staged->load->results[0]->type;
    staged->layout = tt_buffer_layout(p->module, pipeline_tile_of(p->module, staged->load), 0);
    staged->is_async = p->options->sm >= 80 && gives_zeros(staged->load) && tt_byte_width(type) >= 4;
    staged->is_kept = !staged->is_async;
    if (staged->is_async || pipeline_keep(p, type))
        tt_push(p->scratch, p->loads, *staged);
}

bool pipeline_is_fragment(const Use *use)
{
    return use->user->opcode == OP_wgmma && tt_operand(use->user, 0) == use->value;
}

/* The dimension of a tile that is the K of all products which multiply it, or -1. */
static int depth_axis(const Value *value)
{
    int axis = -1;
    TT_FOR_USES(use, value)
    {
        const Op *user = use->user;
        int found = -1;
        if (user->opcode == OP_wgmma)
            found = tt_operand(user, 0) == value ? 1 : tt_operand(user, 1) == value ? 0 : -1;
        else if (user->opcode == OP_smem_alloc)
            found = depth_axis(user->results[0]);
        else if (user->opcode == OP_permute || user->opcode == OP_smem_permute) {
            int axis_there = depth_axis(user->results[0]);
            found = axis_there < 0 ? -1 : (int)tt_find_attr(user, ATTR_order)->ints[axis_there];
        }
        if (found < 0 || (axis >= 0 && axis != found))
            return -1;
        axis = found;
    }
    return axis;
}

bool pipeline_copies_in_halves(const Pipeline *p)
{
    enum { LINE = 128 /* bytes */ };
    for (int i = 0; i < p->loads.count; i++) {
        const Staged *staged = &p->loads.data[i];
        const Type *type = staged->load->results[0]->type;
        if (!staged->is_async || staged->is_block || staged->is_gathered || staged->depth_axis < 0 ||
            type->shape[staged->depth_axis] * tt_byte_width(type) < 2 * LINE)
            return false;
    }
    return true;
}

/* The lanes of a fragment of wgmma are at 8 neighbours along M and 4 along K: where M is fastest these groups of 32 bytes lie
 * in different banks; where K is, those of 16 do as in other buffers. */
static const LinearLayout *layout_of_fragments(const Pipeline *p, const Op *load)
{
    enum { GROUP = 32 /* bytes */, GROUPS = 4 };
    const Type *type = load->results[0]->type;
    int axis = tt_fastest_axis(p->axis_infos, load), bytes = tt_byte_width(type);
    int64_t shape[] = {tt_next_pow2(type->shape[1 - axis]), tt_next_pow2(type->shape[axis])};
    if (bytes != 4 || axis == depth_axis(load->results[0]) || shape[1] * bytes < GROUP * GROUPS)
        return tt_buffer_layout(p->module, type, axis);
    LinearLayout layout = tt_layout_swizzled(shape, 2, GROUP / bytes, 1, GROUPS);
    if (!axis)
        layout = tt_layout_permute(&layout, (int[]){1, 0});
    return tt_intern_layout(p->module, &layout);
}

/* Notes the loads of the loop's body that the operands of `op` are computed from. */
static void note_sources(const Pipeline *p, const Op *op, Map *sources)
{
    for (int i = 0; i < op->operand_count; i++) {
        const Value *value = tt_operand(op, i);
        int carried = tt_carried_index(&p->loop, value);
        const Op *source = carried < 0 ? value->op : tt_next(&p->loop, carried)->op;
        if (!source || source->parent != p->loop.body || tt_map_find_ptr(sources, source))
            continue;
        *tt_map_slot_ptr(sources, source) = (void *)source;
        note_sources(p, source, sources);
    }
}

/* Does each thread load, or copy, a few bytes many times, at places that others of the loop's loads say? Each takes
 * instructions for its address and its mask. */
static bool is_gathered(const Pipeline *p, const Op *load)
{
    enum { FEW = 8 /* bytes */, MANY = 8 };
    const Type *type = load->results[0]->type;
    int64_t width = TT_MAX(tt_byte_width(type), copied_bytes(p, load, tt_fastest_axis(p->axis_infos, load)));
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps;
    if (width > FEW || type->count * tt_byte_width(type) < MANY * width * threads)
        return false;
    Map sources = {.arena = p->scratch};
    note_sources(p, load, &sources);
    TT_FOR_OPS(op, p->loop.body)
    if (op->opcode == OP_load && tt_map_find_ptr(&sources, op))
        return true;
    return false;
}

/* Does a single warpgroup copy what its products read in little time, while the first of these is under way? One that multiplies
 * what it computes with a product's result has nothing else to do then: on an H100 attention of heads of 64 with tiles of
 * 128 x 64 took 8 % longer by blocks, since two programs on a multiprocessor computed, and multiplied, at the same time;
 * with twice as much to copy 4 % less. Where sums are few, the registers of addresses would cost a program. */
static bool copies_meanwhile(const Pipeline *p)
{
    enum { FEW_BYTES = 128 /* a thread */, FEW_SUMS = 64 };
    int64_t bytes = 0, sums = 0;
    bool goes_on = false;
    TT_FOR_OPS(op, p->loop.body)
    {
        goes_on |= op->opcode == OP_wgmma && tt_is_tile(tt_operand(op, 0)->type);
        sums += op->opcode == OP_wgmma ? op->results[0]->type->count / (TT_LANES * TT_WARPGROUP) : 0;
        if (op->opcode == OP_load && tt_def(tt_operand(op, 0), OP_block_pointers))
            bytes += op->results[0]->type->count * tt_byte_width(op->results[0]->type);
    }
    return p->options->num_warps == TT_WARPGROUP && goes_on && sums > FEW_SUMS &&
           bytes <= FEW_BYTES * TT_LANES * TT_WARPGROUP;
}

/* Does one instruction copy it, for wgmma alone, in the layout that has rows of the array as rows? Nothing may have been stored in
 * the array, which it does not see. */
static bool is_block(const Pipeline *p, const Staged *staged)
{
    const Op *load = staged->load, *block = tt_def(tt_operand(load, 0), OP_block_pointers);
    int param = block ? tt_pointer_param(p->pointers, tt_operand(load, 0)) : -1;
    return block && tt_find_attr(block, ATTR_terms) && staged->proxy && param >= 0 &&
           !p->pointers->stored[param] &&
           tt_buffer_axis(staged->layout) == block->results[0]->type->rank - 1 &&
           tt_has_one_use(load->results[0]) && !copies_meanwhile(p);
}

static void add_load(Pipeline *p, Op *load)
{
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].load == load)
            return;
    if (!can_move(p, load))
        return;
    const Op *alloc = buffer_of(load);
    Staged staged = {.load = load, .depth_axis = -1};
    if (!tt_is_tile(load->results[0]->type)) {
        add_number(p, &staged);
        return;
    }
    staged.is_fragment = tt_goes_only_to(pipeline_is_fragment, load->results[0], false);
    staged.depth_axis = depth_axis(load->results[0]);
    staged.layout = alloc                ? alloc->results[0]->layout
                    : staged.is_fragment ? layout_of_fragments(p, load)
                                         : tt_buffer_layout(p->module, load->results[0]->type,
                                                            tt_fastest_axis(p->axis_infos, load));
    staged.proxy = alloc && tt_find_attr(alloc, ATTR_proxy);
    staged.is_factor = alloc && is_factor(alloc->results[0]);
    staged.is_block = is_block(p, &staged);
    staged.is_async = staged.is_block || can_be_async(p, &staged);
    staged.is_kept = !alloc && !staged.is_async;
    staged.is_gathered = !staged.is_kept && !staged.is_block && is_gathered(p, load);
    bool fits =
        staged.is_kept ? pipeline_keep(p, load->results[0]->type) : staged.is_async || !staged.is_factor;
    if (fits)
        tt_push(p->scratch, p->loads, staged);
}

bool pipeline_passes_on(const Op *op)
{
    return op->opcode == OP_smem_alloc || op->opcode == OP_smem_permute ||
           (tt_has(op, ELEMENTWISE | SHAPE | ONE_LAYOUT) && op->opcode != OP_wgmma_wait);
}

/* The loads of this loop's body that `value` is made of. */
static void find_loads(Pipeline *p, const Value *value, Map *seen)
{
    Op *op = value->op;
    if (!op || !tt_is_in_loop(&p->loop, value) || tt_map_find_ptr(seen, op))
        return;
    *tt_map_slot_ptr(seen, op) = op;
    if (op->opcode == OP_load && op->parent == p->loop.body)
        add_load(p, op);
    if (!pipeline_passes_on(op))
        return;
    for (int i = 0; i < op->operand_count; i++)
        if (!tt_is_ptr(tt_operand(op, i)->type))
            find_loads(p, tt_operand(op, i), seen);
}

/* Of an iteration, in branches too. */
static void note_products(Pipeline *p, Region *region)
{
    TT_FOR_OPS(op, region)
    {
        if (tt_is_product(op))
            tt_push(p->scratch, p->products, op);
        for (int r = 0; op->opcode == OP_if && r < op->region_count; r++)
            note_products(p, op->regions[r]);
    }
}

void pipeline_find_loads_of_products(Pipeline *p, Op *loop)
{
    Map seen = {.arena = p->scratch};
    p->loop = tt_loop(loop);
    p->loads.count = 0;
    p->kept_bytes = 0;
    p->products.count = 0;
    note_products(p, p->loop.body);
    for (int i = 0; i < p->products.count; i++)
        for (int j = 0; j < 2; j++)
            find_loads(p, tt_operand(p->products.data[i], j), &seen);
}

/* Copies of loops in this one would be counted with its own. */
void pipeline_find_asked_loads(Pipeline *p)
{
    if (p->products.count || tt_int_attr(p->loop.op, ATTR_num_stages, 1) < 2 || tt_has_effects(p->loop.op) ||
        tt_has_loop(p->loop.body))
        return;
    TT_FOR_OPS(op, p->loop.body)
    if (op->opcode == OP_load && tt_is_tile(op->results[0]->type))
        add_load(p, op);
}

/* ---- blocks ------------------------------------------------------------------------------------------------------------------------- */

typedef struct Blocks {
    Pipeline *pipeline;
    Map copied;
    bool any_left; /* that are not */
} Blocks;

static void note_copied(Op *op, void *context)
{
    Blocks *blocks = context;
    Pipeline *p = blocks->pipeline;
    if (op->opcode != OP_for || tt_int_attr(op, ATTR_num_stages, p->options->num_stages) < 2)
        return;
    pipeline_find_loads_of_products(p, op);
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].is_block) {
            const Op *block = tt_operand(p->loads.data[i].load, 0)->op;
            *tt_map_slot_ptr(&blocks->copied, block) = (void *)block;
        }
}

static void give_up_others(Op *op, void *context)
{
    Blocks *blocks = context;
    if (op->opcode != OP_block_pointers || tt_map_find_ptr(&blocks->copied, op))
        return;
    tt_remove_attr(op, ATTR_terms);
    blocks->any_left = true;
}

bool pipeline_give_up_blocks(Pipeline *p)
{
    Blocks blocks = {.pipeline = p, .copied = {.arena = p->scratch}};
    tt_walk(p->module->functions->body, note_copied, &blocks);
    tt_walk(p->module->functions->body, give_up_others, &blocks);
    return blocks.any_left;
}

/* What is computed with besides: it is little, and waiting for it would hold up the products all the same. Not what leads
 * to other loads, which is loaded ahead with them. */
void pipeline_find_other_loads(Pipeline *p)
{
    enum { MOST_BYTES = 2048 };
    Map sources = {.arena = p->scratch};
    TT_FOR_OPS(op, p->loop.body)
    if (op->opcode == OP_load)
        note_sources(p, op, &sources);
    TT_FOR_OPS(op, p->loop.body)
    {
        const Type *type = op->opcode == OP_load ? op->results[0]->type : NULL;
        bool is_little = type && (!tt_is_tile(type) || type->count * tt_byte_width(type) <= MOST_BYTES);
        if (is_little && !tt_map_find_ptr(&sources, op))
            add_load(p, op);
        else if (is_little && can_move(p, op))
            tt_push(p->scratch, p->leading, op);
    }
}

/* ---- ways to copies ------------------------------------------------------------------------------------------------------------------ */

/* What the loop does for a value. */
typedef struct WayTo {
    Map changes; /* Op* -> itself if its results change from one iteration to the next, else the map */
    bool multiplies, loads;
} WayTo;

static bool follow_way(const Pipeline *p, const Value *value, WayTo *way)
{
    const Op *op = value->op;
    if (!op || !tt_is_in_loop(&p->loop, value))
        return !op && value->region == p->loop.body;
    void *known = tt_map_find_ptr(&way->changes, op);
    if (known)
        return known == op;
    bool changes = op->opcode == OP_load;
    for (int i = 0; i < op->operand_count; i++)
        changes |= follow_way(p, tt_operand(op, i), way);
    way->loads |= op->opcode == OP_load;
    way->multiplies |= changes && op->opcode == OP_mul && tt_is_tile(value->type);
    *tt_map_slot_ptr(&way->changes, op) = changes ? (void *)op : &way->changes;
    return changes;
}

bool pipeline_has_long_way(const Pipeline *p, const Op *load)
{
    WayTo way = {.changes = {.arena = p->scratch}};
    for (int i = 0; i < load->operand_count; i++)
        follow_way(p, tt_operand(load, i), &way);
    return way.multiplies && !way.loads;
}
