/* How far ahead of their use a pipelined loop's loads are: iterations, slots and caches, by the shared memory and the registers
 * that leave a multiprocessor its programs. */
#include "gpu/pipeline.h"

/* ---- caches ---------------------------------------------------------------------------------------------------------------------------- */

/* Does the tile read elements more than once? */
static bool repeats(const Pipeline *p, const Op *load)
{
    const AxisInfo *info = tt_axis_info(p->axis_infos, tt_operand(load, 0));
    for (int axis = 0; axis < info->rank; axis++)
        if (info->constancy[axis] > 1)
            return true;
    return false;
}

/* Do rows begin within a sector of 32 bytes, as memory is read? Then part of one is read again for the next iteration, or by other
 * lanes. A launch says of a number whether 16 divides it, and nothing of larger powers. */
static bool straddles_sectors(const Pipeline *p, const Op *load)
{
    enum { SECTOR = 32 /* bytes */, KNOWN = 16 /* elements */ };
    if (!tt_is_tile(load->results[0]->type))
        return false;
    int axis = tt_fastest_axis(p->axis_infos, load), bytes = tt_byte_width(load->results[0]->type);
    for (const Op *op = tt_operand(load, 0)->op; op; op = tt_operand(op, 0)->op) {
        int64_t inserted = op->opcode == OP_expand_dims ? tt_int_attr(op, ATTR_axis, 0) : INT64_MAX;
        bool is_sum = op->opcode == OP_addptr && tt_is_tile(op->results[0]->type);
        if ((!is_sum && op->opcode != OP_broadcast && op->opcode != OP_expand_dims) || inserted == axis)
            return false;
        axis -= inserted < axis;
        int64_t divisor = is_sum ? tt_axis_info(p->axis_infos, tt_operand(op, 1))->divisibility[axis] : KNOWN;
        if (divisor < KNOWN && divisor * bytes % SECTOR)
            return true;
    }
    return false;
}
/* ---- memory and registers ------------------------------------------------------------------------------------------------------------- */

static int64_t slot_bytes(const Staged *staged)
{
    int bytes = tt_byte_width(staged->load->results[0]->type);
    return staged->is_kept ? 0 : (int64_t)bytes << tt_layout_out_total(staged->layout);
}

/* Of the buffers whose place the slots take: each branch may make one of the load. */
static int64_t buffer_bytes(const Staged *staged)
{
    int64_t bytes = 0;
    TT_FOR_USES(use, staged->load->results[0])
    if (use->user->opcode == OP_smem_alloc && use->user->results[0]->layout == staged->layout)
        bytes += slot_bytes(staged);
    return bytes;
}

/* Is what reads a buffer still to come when the operation begins? */
static bool has_uses_from(const Op *op, const Value *buffer)
{
    TT_FOR_USES(use, buffer)
    {
        Op *user = use->user, *part = pipeline_part_of(op->parent, user);
        bool passes = user->opcode == OP_smem_view || user->opcode == OP_smem_permute;
        if (!part || pipeline_comes_before(op, part) || (passes && has_uses_from(op, user->results[0])))
            return true;
    }
    return false;
}

/* Does the buffer that `alloc` makes live while the loop runs? What stands around the loop, in the innermost region that has
 * both, says so: buffers of other loops before and behind it do not. */
static bool lives_in(const Op *loop, Op *alloc)
{
    const Op *around = loop;
    Op *made = NULL;
    for (; around && !(made = pipeline_part_of(around->parent, alloc)); around = around->parent->op)
        ;
    if (!made || made == loop)
        return true;
    if (made == around) /* they are in different regions of it */
        return made->opcode != OP_if;
    return pipeline_comes_before(made, around) && has_uses_from(around, alloc->results[0]);
}

typedef struct Occupied {
    const Op *loop;
    int64_t bytes;
} Occupied;

/* Buffers that live while the loop runs: what lies elsewhere, the allocator puts into the same places. */
static void count_buffer(Op *op, void *context)
{
    Occupied *occupied = context;
    if (op->opcode != OP_smem_alloc)
        return;
    if (lives_in(occupied->loop, op))
        occupied->bytes += tt_buffer_bytes(op->results[0]);
}

int64_t tt_bytes_while_it_runs(const Op *loop)
{
    Occupied occupied = {.loop = loop};
    tt_walk(loop->parent->function->body, count_buffer, &occupied);
    return occupied.bytes;
}

/* Bytes of a multiprocessor. */
static int64_t shared_of(const Pipeline *p) { return tt_shared_limit(p->options->sm) + TT_RESERVED_SHARED; }

static bool has_only_wgmma(const Pipeline *p)
{
    for (int i = 0; i < p->products.count; i++)
        if (p->products.data[i]->opcode != OP_wgmma)
            return false;
    return true;
}

/* Registers for sums of wgmma that are there at once: those of one branch or of the other. */
static int64_t count_sums(const Region *region)
{
    int64_t sums = 0;
    TT_FOR_OPS(op, region)
    if (op->opcode == OP_wgmma)
        sums += op->results[0]->type->count * tt_byte_width(op->results[0]->type) / 4;
    else if (op->opcode == OP_if)
        sums += TT_MAX(count_sums(op->regions[0]), count_sums(op->regions[1]));
    return sums;
}

/* Those of a thread. */
static int64_t sums_of_thread(const Pipeline *p)
{
    return count_sums(p->loop.body) / ((int64_t)TT_LANES * p->options->num_warps);
}

/* How many programs a multiprocessor runs that need so much shared memory, and registers for their sums. */
static int64_t programs_at_once(const Pipeline *p, int64_t shared_bytes)
{
    enum { OTHERS = 40 };
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps;
    int64_t programs = TT_MIN(tt_programs_by_shared(p->options->sm, shared_bytes),
                              TT_REGISTERS / (threads * (sums_of_thread(p) + OTHERS)));
    return TT_MIN(programs, tt_int_attr(p->loop.op, ATTR_programs, INT32_MAX));
}

/* Do programs of so many bytes leave the first cache more than the least that it can have? On an H200 rows of 2000 bytes ran
 * through 60 KB of it at 158 TFLOP/s, through 28 KB at 118, slower than past it. */
static bool leaves_cache(const Pipeline *p, int64_t shared_bytes)
{
    enum { MORE = 32 << 10 };
    int64_t programs = TT_MAX(1, programs_at_once(p, shared_bytes));
    int64_t occupied = programs * (shared_bytes + TT_RESERVED_SHARED);
    return occupied <= shared_of(p) - MORE;
}

static int64_t row_bytes(const Pipeline *p, const Op *load)
{
    const Type *type = load->results[0]->type;
    return type->shape[tt_fastest_axis(p->axis_infos, load)] * tt_byte_width(type);
}

/* Which of the copies whose rows straddle sectors goes through the first cache: the largest, or the one with longer rows.
 * Past the cache it takes more requests than the second one answers, through the cache more of its cycles, for lines that
 * are read in part; so one operand goes either way (on an H200 4104³ with 128x256x64: 333 us with none in the cache, 302
 * and 257 with one, 315 with both). */
static const Staged *find_straddling(const Pipeline *p)
{
    const Staged *best = NULL;
    for (int i = 0; i < p->loads.count; i++) {
        const Staged *staged = &p->loads.data[i];
        if (!staged->is_async || !straddles_sectors(p, staged->load))
            continue;
        int64_t more = best ? slot_bytes(staged) - slot_bytes(best) : 1;
        if (more > 0 || (!more && row_bytes(p, staged->load) > row_bytes(p, best->load)))
            best = staged;
    }
    return best;
}

/* Which copies are to read each sector of the second cache once. Of one that only straddles sectors it is given up rather than
 * memory that buffers have. */
static void choose_caches(Pipeline *p, int64_t shared_bytes)
{
    const Staged *straddling = find_straddling(p);
    for (int i = 0; i < p->loads.count; i++) {
        Staged *staged = &p->loads.data[i];
        if (staged->is_async && !tt_find_attr(staged->load, ATTR_cache))
            staged->is_cached =
                repeats(p, staged->load) || (staged == straddling && leaves_cache(p, shared_bytes));
    }
}

/* How many iterations ahead a loop may be whose multiprocessor runs so few programs that they share all its memory: as long
 * as it takes something off the time that memory needs to answer (on an H200: twelve stages; products of 16 and of 128 rows
 * gained a quarter), with some room left for what the program exchanges besides. Rows that straddle sectors come through the
 * first cache, and want room there: the product of 1000³ made 167 TFLOP/s with 124 KB of it, 155 with 92, 150 with 60.
 * Products that stay in flight over a barrier keep the slot that this takes (2048³ lost 4 % to an iteration more instead). */
static int distance_for_few(const Pipeline *p, int64_t each, int64_t others)
{
    enum { MOST_STAGES = 12, MOST_BESIDE_CACHE = 132 << 10 };
    int64_t programs = tt_int_attr(p->loop.op, ATTR_programs, 0);
    if (!programs)
        return 0;
    int64_t share = shared_of(p) / programs - TT_RESERVED_SHARED;
    int64_t room = share - TT_MAX(share / 8, p->options->spared_bytes);
    int distance = (int)TT_MIN(MOST_STAGES, p->trips) - 1, more = pipeline_holds_slots(p) ? 2 : 1;
    int64_t most = find_straddling(p) ? MOST_BESIDE_CACHE / programs - TT_RESERVED_SHARED
                                      : share - p->options->spared_bytes;
    while (distance > 0 &&
           (each * (distance + 1) + others > room || each * (distance + more) + others > most))
        distance--;
    return distance;
}

/* What the loop says, or the choice "num_stages". */
static int choose_stages(Pipeline *p)
{
    static const int64_t values[] = {1, 2, 3, 4, 5, 6};
    if (tt_find_attr(p->loop.op, ATTR_num_stages))
        return (int)tt_int_attr(p->loop.op, ATTR_num_stages, 1);
    return (int)tt_choose(p->module, "num_stages", values, TT_COUNT(values), p->options->num_stages);
}

/* Warpgroups take turns where copies are two iterations ahead (stagger.c): worth an iteration more than was asked for, if its
 * memory is idle. */
static bool gains_by_turns(const Pipeline *p, int64_t bytes, int64_t bytes_of_more)
{
    Turn turn;
    for (int i = 0; i < p->loads.count; i++)
        if (!p->loads.data[i].is_async && !p->loads.data[i].is_kept)
            return false;
    return tt_has_turns(p->options) &&
           bytes_of_more + p->options->spared_bytes <= tt_shared_limit(p->options->sm) &&
           programs_at_once(p, bytes_of_more) == programs_at_once(p, bytes) &&
           tt_find_turn(p->loop.body, &turn, p->scratch);
}

/* Does the tensor core wait for threads, which read or compute what it multiplies? */
static bool waits_for_threads(const Pipeline *p)
{
    for (int i = 0; i < p->products.count; i++)
        if (p->products.data[i]->opcode != OP_wgmma || pipeline_computes_left(p, p->products.data[i]))
            return true;
    return false;
}

/* Does an iteration more leave a multiprocessor of sm_90 one program, or fewer warps than it has schedulers, where it had more?
 * Another program's products go on while threads work; a launch of few programs has no other. */
static bool costs_programs(const Pipeline *p, int64_t bytes, int64_t bytes_of_more)
{
    enum { SCHEDULERS = 4 };
    if (p->options->sm < 90 || !waits_for_threads(p) || tt_find_attr(p->loop.op, ATTR_programs))
        return false;
    int64_t with_more = programs_at_once(p, bytes_of_more + p->options->spared_bytes);
    return (with_more == 1 || with_more * p->options->num_warps < SCHEDULERS) &&
           programs_at_once(p, bytes + p->options->spared_bytes) > with_more;
}

/* Slots for what is computed let the tensor core work meanwhile. */
static bool gains_by_slots(const Pipeline *p, int64_t bytes)
{
    int64_t more = bytes + pipeline_computed_bytes(p);
    return p->deferrable.count && more + p->options->spared_bytes <= tt_shared_limit(p->options->sm) &&
           programs_at_once(p, more) == programs_at_once(p, bytes);
}

/* Which loads through registers do not stay there from one iteration to the next: all of them, if a thread has too few besides
 * the sums. Each takes a register for what it loads at once, be it narrower: 128 sums and 128 elements spilled 118 times in
 * each iteration. They are waited for while products run that a thread need not attend to. */
void pipeline_choose_direct(Pipeline *p)
{
    enum { MOST = 200 };
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps, registers = sums_of_thread(p);
    if (!has_only_wgmma(p))
        return;
    for (int i = 0; i < p->loads.count; i++) {
        const Staged *staged = &p->loads.data[i];
        int64_t width = TT_MIN(4, pipeline_bytes_at_once(p, staged->load));
        if (!staged->is_async && !staged->is_kept)
            registers += staged->load->results[0]->type->count / threads *
                         tt_byte_width(staged->load->results[0]->type) / width;
    }
    for (int i = 0; i < p->loads.count; i++) {
        Staged *staged = &p->loads.data[i];
        staged->is_direct = registers > MOST && !staged->is_async && !staged->is_kept && !staged->is_gathered;
    }
}

/* Are so many slots one for each iteration, so that all are filled before the loop? What goes through registers is stored in
 * it, for an iteration more than there is. */
static bool has_slot_for_each(const Pipeline *p, int slots)
{
    for (int i = 0; i < p->loads.count; i++)
        if (!p->loads.data[i].is_async && !p->loads.data[i].is_kept)
            return false;
    return slots >= p->trips;
}

static int used_slots(const Pipeline *p, int slots)
{
    return has_slot_for_each(p, slots) ? (int)p->trips : slots;
}

/* Of a thread, in registers: what an iteration gathers, and the entries of tables that say where. Both are 0 if something else
 * goes through registers besides. */
typedef struct Gathered {
    int64_t elements, entries;
} Gathered;

static Gathered count_gathered(const Pipeline *p)
{
    enum { STORED_AT_ONCE = 16 /* bytes, along the table */ };
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps;
    Gathered all = {0};
    for (int i = 0; i < p->loads.count; i++) {
        const Staged *staged = &p->loads.data[i];
        if (staged->is_async || staged->is_kept)
            continue;
        if (!staged->is_gathered)
            return (Gathered){0};
        const Type *type = staged->load->results[0]->type;
        int64_t depth = type->shape[staged->depth_axis < 0 ? type->rank - 1 : staged->depth_axis];
        int64_t entries = TT_MAX(STORED_AT_ONCE / tt_byte_width(type), depth / p->options->num_warps);
        int64_t bytes = TT_MAX(1, type->count / threads) * tt_byte_width(type);
        all.elements +=
            bytes / TT_MIN(4, pipeline_bytes_at_once(p, staged->load)); /* narrow ones take one, too */
        all.entries = TT_MAX(all.entries, p->leading.count * entries);
    }
    return all;
}

/* How far ahead of the iteration that runs what goes through registers is stored; it is loaded one more ahead. An iteration is
 * shorter than a trip to the second cache, so a loop of few iterations had better have most of them under way before it: in as
 * many registers as leave a multiprocessor its programs, of which ptxas takes more if it is not told. */
static void choose_stored(Pipeline *p, int64_t shared_bytes)
{
    enum { MOST = 255, ENOUGH_WARPS = 16, BESIDE_SUMS = 16, BESIDE_LOADS = 24 };
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps;
    Gathered all = count_gathered(p);
    p->stored = 1;
    if (!all.elements || !has_only_wgmma(p))
        return;
    int64_t lookups = 2 * all.entries; /* those of the next iteration come while these are used */
    int64_t programs = TT_REGISTERS / (threads * (sums_of_thread(p) + all.elements + lookups + BESIDE_SUMS));
    programs = TT_MIN(programs, tt_programs_by_shared(p->options->sm, shared_bytes));
    programs = TT_MAX(1, TT_MIN(programs, ENOUGH_WARPS / p->options->num_warps));
    int64_t room = TT_MIN(MOST, TT_REGISTERS / (threads * programs)) - lookups - BESIDE_LOADS;
    p->stored = (int)TT_MAX(1, TT_MIN(p->distance, room / all.elements - 1));
    tt_set_attr(p->loop.op, tt_attr_int(p->module, ATTR_room, programs, NULL));
}

static bool copies_blocks(const Pipeline *p)
{
    for (int i = 0; i < p->loads.count; i++)
        if (p->loads.data[i].is_block)
            return true;
    return false;
}

/* Iterations ahead of which one less is as good for blocks, and its slot better than a second barrier (4096³ by tiles of
 * 128x256x64 and four slots on an H100: 188 and 200 us). */
enum { FAR_ENOUGH_FOR_BLOCKS = 3 };

/* As many iterations ahead as was asked for and there are, and as there is memory for. */
void pipeline_choose_distance(Pipeline *p)
{
    int64_t others = tt_bytes_while_it_runs(p->loop.op), each = 0, limit = tt_shared_limit(p->options->sm);
    for (int i = 0; i < p->loads.count; i++) {
        each += slot_bytes(&p->loads.data[i]);
        others -= buffer_bytes(&p->loads.data[i]);
    }
    bool any_async = false;
    for (int i = 0; i < p->loads.count; i++)
        any_async |= p->loads.data[i].is_async;
    int stages = choose_stages(p);
    if (p->options->most_stages)
        stages = TT_MIN(stages, p->options->most_stages);
    int wanted = (int)TT_MIN(any_async ? stages - 1 : TT_MIN(stages - 1, 1), p->trips);
    if (wanted > 0 && gains_by_slots(p, each * used_slots(p, wanted + 1) + others)) {
        others += pipeline_computed_bytes(p);
        pipeline_defer_computed(p);
        p->module->can_save = true;
    } else {
        p->computed.count = 0;
    }
    p->distance = wanted;
    while (p->distance > 0 && each * used_slots(p, p->distance + 1) + others > limit)
        p->distance--;
    int given = 0;
    for (; p->distance > 1 && costs_programs(p, each * used_slots(p, p->distance) + others,
                                             each * used_slots(p, p->distance + 1) + others);
         given++)
        p->distance--;
    if (any_async && wanted > 0)
        p->distance = TT_MAX(p->distance, distance_for_few(p, each, others));
    int64_t bytes = each * used_slots(p, p->distance + 1) + others;
    if (p->distance == 1 && p->trips > 1 && gains_by_turns(p, bytes, bytes + each)) {
        p->distance++;
        bytes += each;
    }
    p->module->can_save |= p->distance > wanted;
    bool is_tight = bytes + each + p->options->spared_bytes > limit ||
                    programs_at_once(p, bytes + each) < programs_at_once(p, bytes);
    bool fills_all = p->distance > 0 && has_slot_for_each(p, p->distance + 1);
    if (fills_all)
        p->distance = (int)p->trips;
    bool holds_slots = pipeline_holds_slots(p) && !fills_all;
    p->is_compact = holds_slots && is_tight;
    bool spares_barrier = p->is_compact && p->distance >= FAR_ENOUGH_FOR_BLOCKS && copies_blocks(p);
    if (spares_barrier) {
        p->distance--;
        p->is_compact = false;
    }
    p->module->can_save |= holds_slots && !p->is_compact;
    p->groups = p->is_compact && p->in_halves && pipeline_copies_in_halves(p) ? 2 : 1;
    p->slots = fills_all ? p->distance : p->distance + (holds_slots && !p->is_compact ? 2 : 1);
    p->is_alone = programs_at_once(p, each * p->slots + others) <= 1;
    choose_caches(p, each * p->slots + others);
    choose_stored(p, each * p->slots + others);
    bool is_asked = tt_find_attr(p->loop.op, ATTR_num_stages) || stages > TT_DEFAULT_STAGES;
    if (p->distance + spares_barrier + given < wanted && is_asked)
        tt_remark(p->module, p->loop.op->loc,
                  "num_stages=%d is lowered to %d: one more would take %lld bytes of shared memory, and a "
                  "program can have %lld",
                  stages, p->distance + spares_barrier + 1, (long long)(bytes + each), (long long)limit);
}
