/* Loops that only load and compute, two iterations at a time, the loads of both in front: twice as much of memory is under way
 * while a thread waits. Left to itself ptxas does so for few loops, and for none whose addresses it cannot follow. What remains
 * of an odd number of iterations is done in a branch behind.
 *
 * Nothing passes a store, an atomic, a barrier of the program's or anything else that is seen: loops with such stay as they are.
 * So do those that compute for longer than memory takes, and those where the registers of a second iteration would cost a
 * multiprocessor a quarter of its programs, which wait for memory side by side as well. */
#include "gpu/passes.h"
#include "opt/pass.h"

enum {
    BESIDE_TILES = 16, /* registers for addresses and counters */
    OF_COSTLY = 8,     /* plain operations that one such is worth */
    MOST_WORK = 700,   /* operations on a thread's elements in an iteration */
    MOST_REGISTERS = 224,
    MOST_THREADS = 2048 /* of a multiprocessor */
};

typedef struct Pairs {
    Module *module;
    Arena *scratch;
    int threads;        /* of a program */
    int tile_registers; /* 0: not known yet */
    Loop loop;
    Map early; /* Op* -> itself if what it gives is known as an iteration begins, the map if not */
} Pairs;

/* ---- which loops ----------------------------------------------------------------------------------------------------------------- */

/* Of a thread, those that are repeated left out. */
static int elements_of(const Value *value)
{
    if (!value->layout)
        return 1;
    uint32_t copies = tt_layout_replication(value->layout, LAYOUT_REGISTER);
    return 1 << (value->layout->in_bits[LAYOUT_REGISTER] - __builtin_popcount(copies));
}

static int registers_of(const Value *value)
{
    return TT_MAX(1, elements_of(value) * tt_bit_width(tt_element(value->type)) / 32);
}

static int64_t work_of(const Op *op)
{
    int64_t work = op->result_count ? elements_of(op->results[0]) * (tt_is_costly(op) ? OF_COSTLY : 1) : 0;
    for (int i = 0; i < op->region_count; i++)
        TT_FOR_OPS(inner, op->regions[i])
    work += elements_of(tt_operand(op, 0));
    return work;
}

/* Registers that the loads of an iteration fill; 0: it is none to pair, for what it does. */
static int registers_of_loads(const Op *loop)
{
    int registers = 0;
    int64_t work = 0, count;
    if (tt_has_effects(loop) || tt_writes_memory(loop) || tt_has_products(loop->regions[0]) ||
        (tt_trip_count(loop, &count) && count < 2))
        return 0;
    TT_FOR_OPS(op, loop->regions[0])
    {
        if (tt_is_control(op))
            return 0;
        if (op->opcode == OP_load)
            registers += registers_of(op->results[0]);
        else
            work += work_of(op);
    }
    return work > MOST_WORK ? 0 : registers;
}

/* That a multiprocessor has, if each thread takes so many registers beside some for addresses. */
static int programs(const Pairs *p, int registers)
{
    enum { UNIT = 8 /* in which they are given out */ };
    int taken = (registers + BESIDE_TILES + UNIT - 1) / UNIT * UNIT;
    return TT_MAX(1, TT_MIN(MOST_THREADS, TT_REGISTERS / taken) / p->threads);
}

static bool is_candidate(Pairs *p, const Op *op)
{
    if (op->opcode != OP_for || tt_find_attr(op, ATTR_unroll) || tt_find_attr(op, ATTR_num_stages))
        return false;
    int more = registers_of_loads(op);
    if (!more)
        return false;
    if (!p->tile_registers)
        p->tile_registers = TT_MAX(1, tt_tile_registers(p->module));
    return p->tile_registers + more <= MOST_REGISTERS &&
           4 * programs(p, p->tile_registers + more) > 3 * programs(p, p->tile_registers);
}

/* ---- loads to the front ------------------------------------------------------------------------------------------------------------ */

static bool is_early(Pairs *p, const Value *value)
{
    Op *op = value->op;
    if (!op || !tt_is_in_loop(&p->loop, value))
        return true;
    const void *known = tt_map_find_ptr(&p->early, op);
    if (known)
        return known == op;
    bool can =
        tt_is_plain_load(op) || (tt_is_pure(op) && !op->region_count && op->opcode != OP_convert_layout);
    for (int i = 0; can && i < op->operand_count; i++)
        can = is_early(p, tt_operand(op, i));
    *tt_map_slot_ptr(&p->early, op) = can ? (void *)op : &p->early;
    return can;
}

static void load_first(Pairs *p, Op *loop)
{
    p->loop = tt_loop(loop);
    p->early = (Map){.arena = p->scratch};
    TT_FOR_OPS(op, p->loop.body)
    {
        if (op->opcode == OP_load)
            is_early(p, op->results[0]);
    }
    Op *rest = NULL; /* the first that stays */
    TT_FOR_OPS_SAFE(op, p->loop.body)
    {
        if (tt_map_find_ptr(&p->early, op) != op)
            rest = rest ? rest : op;
        else if (rest)
            tt_move_before(op, rest);
    }
}

/* What remains is one iteration at most: a branch, in front of which, and behind which, threads meet less than in a loop. */
static void make_branch(Pairs *p, Op *rest)
{
    Loop loop = tt_loop(rest);
    Builder b = tt_builder_before(rest);
    Value *runs = tt_build2(&b, OP_lt_s, tt_operand(rest, 0), tt_operand(rest, 1));
    Map map = {.arena = p->scratch};
    Value **results = TT_NEW_ARRAY(p->scratch, Value *, loop.count);
    const Type **types = TT_NEW_ARRAY(p->scratch, const Type *, loop.count);
    *tt_map_slot_ptr(&map, loop.body->args[0]) = tt_operand(rest, 0);
    for (int i = 0; i < loop.count; i++) {
        *tt_map_slot_ptr(&map, tt_carried(&loop, i)) = results[i] = tt_init(&loop, i);
        types[i] = results[i]->type;
    }
    Op *branch = tt_build_op(&b, OP_if, &runs, 1, types, loop.count, NULL);
    Builder without = tt_builder_at_end(branch->regions[1]), with = tt_builder_at_end(branch->regions[0]);
    tt_build_op(&without, OP_yield, results, loop.count, NULL, 0, NULL);
    tt_clone_region_body(&with, loop.body, &map);
    for (int i = 0; i < loop.count; i++) {
        Value *next = tt_next(&loop, i), *copy = tt_map_find_ptr(&map, next);
        results[i] = copy ? copy : next;
        branch->results[i]->layout = rest->results[i]->layout;
        branch->results[i]->name = rest->results[i]->name;
    }
    with.loc = rest->loc;
    tt_build_op(&with, OP_yield, results, loop.count, NULL, 0, NULL);
    tt_replace_op(rest, branch->results);
}

static bool visit_loop(Op *op, void *context)
{
    Pairs *p = context;
    if (!is_candidate(p, op))
        return false;
    load_first(p, tt_unroll_by(op, 2, p->scratch));
    make_branch(p, op);
    return true;
}

bool tt_gpu_pair_iterations(Module *module, const GpuOptions *options, Arena *scratch)
{
    Pairs p = {.module = module, .scratch = scratch, .threads = TT_LANES * options->num_warps};
    return options->strips <= 1 && tt_change_loops(module->functions->body, visit_loop, &p);
}
