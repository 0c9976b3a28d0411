/* How many registers a kernel's tiles take, by liveness, and what follows for ptxas. Left alone, it saves registers where
 * the tiles need nearly all there are, and spills most of them (seen: 32 registers and 7 KB of spills, three times
 * slower); and it takes more than half of them for a product, though one program on a multiprocessor leaves the
 * multiplying units waiting at each barrier. So it is told how many programs should fit. */
#include "gpu/plans.h"

enum {
    MANY = 160,         /* a thread: no more saving */
    LEAST = 40,         /* a thread: ptxas 13.0 does with no fewer for some instructions */
    FOR_ADDRESSES = 24, /* and counters, in the loop of a product */
    BESIDE_TILES = 48,  /* addresses, counters and descriptors, in a loop of wgmma that copies ahead */
    ENOUGH_WARPS = 16,  /* on a multiprocessor: four for each scheduler */
};

typedef struct Pressure {
    Map costs;                    /* Value* -> registers, plus one */
    Map live;                     /* Value* -> itself, or NULL again */
    int now, most, most_in_loops; /* of wgmma */
    int loops;                    /* of them that it is in */
    bool has_dot, widens;         /* a dot of multiply-adds, and one of narrow elements */
    bool on_tensor_cores;         /* a product */
    bool has_bytes;               /* in a loop of wgmma; they may take a register each */
    bool is_alone;                /* a launch of few programs, one for each multiprocessor at most */
    int room;                     /* for so many programs a loop is to leave registers */
    int64_t least;                /* registers of a thread, without which ptxas refuses an instruction */
} Pressure;

/* ---- what a value costs -------------------------------------------------------------------------------------------------------------- */

static int cost(Pressure *p, const Value *value);

/* Addresses, masks and what is computed from indices are made again where they are needed. */
static bool is_free(Pressure *p, const Value *value)
{
    if (!tt_is_tile(value->type) || tt_is_ptr(tt_element(value->type)) || tt_is_bool(tt_element(value->type)))
        return true;
    if (!value->op || !tt_is_layout_free(value->op))
        return false;
    for (int i = 0; i < value->op->operand_count; i++)
        if (tt_is_tile(tt_operand(value->op, i)->type) && cost(p, tt_operand(value->op, i)))
            return false;
    return true;
}

static int cost(Pressure *p, const Value *value)
{
    void **slot = tt_map_slot_ptr(&p->costs, value);
    if (*slot)
        return (int)(intptr_t)*slot - 1;
    int registers = 0;
    if (!is_free(p, value)) {
        uint32_t copies = tt_layout_replication(value->layout, LAYOUT_REGISTER);
        int bits = value->layout->in_bits[LAYOUT_REGISTER] - __builtin_popcount(copies);
        registers = TT_MAX(1, (tt_bit_width(tt_element(value->type)) << bits) / 32);
    }
    *tt_map_slot_ptr(&p->costs, value) = (void *)(intptr_t)(registers + 1); /* the table may have grown */
    return registers;
}

/* What broadcasts and the like spread: their elements share its registers. */
static const Value *source(const Value *value)
{
    while (value->op && tt_has(value->op, SHAPE) && tt_is_layout_free(value->op) && value->op->operand_count)
        value = tt_operand(value->op, 0);
    return value;
}

/* ---- liveness, from the end of a region to its start ------------------------------------------------------------------------------- */

static void begin(Pressure *p, const Value *value)
{
    value = source(value);
    void **slot = tt_map_slot_ptr(&p->live, value);
    if (*slot)
        return;
    *slot = (void *)value;
    p->now += cost(p, value);
    p->most = TT_MAX(p->most, p->now);
    if (!p->loops)
        return;
    p->most_in_loops = TT_MAX(p->most_in_loops, p->now);
    p->has_bytes |= tt_is_tile(value->type) && !tt_is_bool(value->type) && tt_byte_width(value->type) == 1;
}

static void end(Pressure *p, const Value *value)
{
    void **slot = tt_map_slot_ptr(&p->live, value);
    if (*slot)
        p->now -= cost(p, value);
    *slot = NULL;
}

static bool is_inside(const Region *region, const Region *outer)
{
    while (region && region != outer)
        region = region->op ? region->op->parent : NULL;
    return region == outer;
}

typedef struct OuterUses {
    Pressure *pressure;
    const Region *region;
} OuterUses;

static void begin_outer_operands(Op *op, void *context)
{
    OuterUses *uses = context;
    for (int i = 0; i < op->operand_count; i++) {
        const Value *value = tt_operand(op, i);
        const Region *home = value->op ? value->op->parent : value->region;
        if (!is_inside(home, uses->region))
            begin(uses->pressure, value);
    }
}

/* While it multiplies, a product holds the sums, and the vectors at hand and the next ones. */
static void note_dot(Pressure *p, const Op *op)
{
    const DotPlan *plan = tt_plan_dot(op);
    const DotOperand *operands[] = {&plan->a, &plan->b};
    int working = FOR_ADDRESSES, registers = op->results[0]->layout->in_bits[LAYOUT_REGISTER];
    begin(p, tt_operand(op, 2));
    for (int i = 0; i < 2; i++) {
        int rank = tt_f2_rank(operands[i]->load_offsets, registers),
            bits = tt_bit_width(tt_element(tt_operand(op, i)->type));
        working += 2 * TT_MAX(1, (bits << (rank + operands[i]->vector_k_bits)) / 32);
        if (bits < 32) { /* for one k they are there in the type of the products, too */
            working += 1 << rank;
            p->widens = true;
        }
    }
    p->most = TT_MAX(p->most, p->now + cost(p, op->results[0]) - cost(p, tt_operand(op, 2)) + working);
    p->has_dot = true;
}

static void visit_region(Pressure *p, Region *region);

static void find_wgmma(Op *op, void *found) { *(bool *)found |= op->opcode == OP_wgmma; }

static bool has_wgmma(Region *region)
{
    bool found = false;
    tt_walk(region, find_wgmma, &found);
    return found;
}

static void visit(Pressure *p, Op *op)
{
    for (int i = 0; i < op->result_count; i++)
        end(p, op->results[i]);
    for (int i = 0; i < op->region_count && tt_is_control(op); i++) {
        bool is_loop = tt_is_loop(op), multiplies = is_loop && has_wgmma(op->regions[i]);
        p->loops += multiplies;
        if (is_loop) /* in every round */
            tt_walk(op->regions[i], begin_outer_operands, &(OuterUses){p, op->regions[i]});
        visit_region(p, op->regions[i]);
        p->loops -= multiplies;
    }
    p->is_alone |= tt_int_attr(op, ATTR_programs, 2) < 2;
    p->room = TT_MAX(p->room, (int)tt_int_attr(op, ATTR_room, 0));
    if (op->opcode == OP_dot && !tt_is_on_tensor_cores(op))
        note_dot(p, op);
    p->on_tensor_cores |= tt_is_on_tensor_cores(op);
    if (op->opcode == OP_wgmma)
        p->least = TT_MAX(p->least, tt_wgmma_registers((1ll << op->results[0]->layout->out_bits[1]) /
                                                           tt_find_attr(op, ATTR_warps)->ints[1],
                                                       op->results[0]->type));
    for (int i = 0; i < op->operand_count; i++)
        begin(p, tt_operand(op, i));
}

static void visit_region(Pressure *p, Region *region)
{
    for (Op *op = region->last; op; op = op->previous)
        visit(p, op);
    for (int i = 0; i < region->arg_count; i++)
        end(p, region->args[i]);
}

static Pressure measure(Module *module)
{
    Pressure p = {.costs = {.arena = module->arena}, .live = {.arena = module->arena}, .least = LEAST};
    visit_region(&p, module->functions->body);
    return p;
}

int tt_tile_registers(Module *module) { return measure(module).most; }

/* A second program, if shared memory and what loops hold leave room for it, of which ptxas may take a few registers too many
 * (of a product with a converted operand 132, where 128 do). What comes behind a loop may spill a little. */
static bool has_room_for_two(const Pressure *p, Module *module, const GpuOptions *options)
{
    int64_t threads = (int64_t)TT_LANES * options->num_warps;
    int64_t most = TT_MAX(p->most_in_loops + BESIDE_TILES, p->most + FOR_ADDRESSES);
    return p->most_in_loops && !p->has_bytes && !p->is_alone && 2 * threads * most <= TT_REGISTERS &&
           2 * tt_shared_bytes(module) <= tt_shared_limit(options->sm) &&
           2 * options->num_warps <= ENOUGH_WARPS;
}

/* What is left for a thread, where so many programs are on a multiprocessor: its schedulers have registers of their own,
 * and with 9 warps one of them has three. */
static int registers_beside(int64_t programs, int num_warps)
{
    enum { SCHEDULERS = 4 };
    int64_t warps = (programs * num_warps + SCHEDULERS - 1) / SCHEDULERS;
    return (int)(TT_REGISTERS / (SCHEDULERS * TT_LANES * warps));
}

/* As many programs as leave room for a product of multiply-adds. */
static int programs_beside_sums(const Pressure *p, Module *module, const GpuOptions *options)
{
    enum { FEW = 8 /* a part of the registers: some spills are cheaper than a program less */ };
    int shared = TT_MAX(1, tt_shared_bytes(module));
    int64_t programs = TT_MIN(tt_shared_limit(options->sm) / shared, ENOUGH_WARPS / options->num_warps);
    for (; programs > 1; programs--) {
        int registers = registers_beside(programs, options->num_warps);
        if (registers + (p->widens ? 0 : registers / FEW) >= p->most)
            return (int)programs;
    }
    return 1;
}

static int best_programs(const Pressure *p, Module *module, const GpuOptions *options)
{
    if (p->room)
        return p->room;
    if (!p->has_dot && has_room_for_two(p, module, options))
        return 2;
    if (!p->has_dot)
        return p->most > MANY || p->on_tensor_cores ? 1 : 0;
    return programs_beside_sums(p, module, options);
}

int tt_wanted_programs(Module *module, const GpuOptions *options)
{
    static const int64_t values[] = {0, 1, 2, 3, 4};
    Pressure p = measure(module);
    int64_t wanted =
        tt_choose(module, "programs", values, TT_COUNT(values), best_programs(&p, module, options));
    int64_t most = TT_REGISTERS / (TT_LANES * options->num_warps * p.least);
    return (int)TT_MIN(wanted, TT_MAX(1, most));
}
