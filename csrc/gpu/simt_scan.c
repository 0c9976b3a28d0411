/* Scans. A thread holds chains of neighbours along the axis; each is scanned by itself. Then the bits of the coordinate
 * above a chain are taken from the lowest on: a bit joins two blocks of elements, the carry into the second grows by
 * the total of the first, and the totals join. That is two groups of registers, two lanes (one shuffle), or, for
 * warps, an exchange of totals through shared memory. At the end each chain takes in its carry. A reverse scan is the
 * same with every bit of the coordinate turned over. */
#include "gpu/simt_exchange.h"

/* How many bits from this one on live in the same input. */
static int run_length(const ScanPlan *plan, int bit)
{
    int count = 1;
    while (bit + count < plan->axis_bits && plan->bits[bit + count].input == plan->bits[bit].input)
        count++;
    return count;
}

/* ---- state -------------------------------------------------------------------------------------------------------------------------- */

/* A chain of registers: its total so far is that of the block of elements it has been joined into. */
typedef struct Chain {
    int first; /* register; the chain's others differ in the chain's bits */
    Partial total, carry;
    bool has_carry;
} Chain;

typedef struct Scan {
    Simt *s;
    Combine combine;
    const ScanPlan *plan;
    bool reverse;
    Partial *
        prefix; /* by register: over its chain up to here, over blocks in front of a chain of one element, too */
    Chain *chains;
    int chain_count;
    int *chain_of; /* register -> its chain */
    int64_t scratch;
} Scan;

/* i-th register of a chain in the order of the scan. */
static int chain_register(const Scan *x, const Chain *chain, int i)
{
    int reg = chain->first, last = (1 << x->plan->chain_bits) - 1;
    if (x->reverse)
        i = last - i;
    for (int bit = 0; bit < x->plan->chain_bits; bit++)
        if (i >> bit & 1)
            reg |= 1 << x->plan->bits[bit].bit;
    return reg;
}

static void scan_chain(Scan *x, Chain *chain)
{
    int length = 1 << x->plan->chain_bits;
    for (int i = 0; i < length; i++) {
        int reg = chain_register(x, chain, i);
        x->chain_of[reg] = (int)(chain - x->chains);
        if (i)
            x->prefix[reg] = simt_combine(x->s, &x->combine, chain->total, x->prefix[reg]);
        chain->total = x->prefix[reg];
    }
}

static void find_chains(Scan *x, int registers)
{
    uint32_t in_chain = 0;
    for (int bit = 0; bit < x->plan->chain_bits; bit++)
        in_chain |= 1u << x->plan->bits[bit].bit;
    x->chains = TT_NEW_ARRAY(x->s->arena, Chain, registers);
    x->chain_of = TT_NEW_ARRAY(x->s->arena, int, registers);
    for (int r = 0; r < registers; r++)
        if (!((uint32_t)r & in_chain)) {
            x->chains[x->chain_count].first = r;
            scan_chain(x, &x->chains[x->chain_count++]);
        }
}

/* What stands before a chain's block comes in front of its carry. */
static void prepend(Scan *x, Chain *chain, Partial before)
{
    chain->carry = chain->has_carry ? simt_combine(x->s, &x->combine, before, chain->carry) : before;
    chain->has_carry = true;
}

/* The partial where `holds`; elsewhere nothing. */
static Partial only_where(Scan *x, Partial partial, LLVMValueRef holds)
{
    if (x->combine.neutral && !partial.valid)
        partial.at[0] = LLVMBuildSelect(x->s->b, holds, partial.at[0], x->combine.neutral, "");
    else
        partial.valid = simt_and(x->s, partial.valid, holds);
    return partial;
}

/* Only where `holds`. */
static void prepend_where(Scan *x, Chain *chain, Partial before, LLVMValueRef holds)
{
    if (!chain->has_carry || !x->combine.neutral || before.valid || chain->carry.valid) {
        prepend(x, chain, only_where(x, before, holds));
        return;
    }
    LLVMValueRef old = chain->carry.at[0];
    prepend(x, chain, before);
    chain->carry.at[0] =
        LLVMBuildSelect(x->s->b, holds, chain->carry.at[0], old, ""); /* a predicated operation */
}

/* ---- joining blocks ----------------------------------------------------------------------------------------------------------------- */

/* The i-th in the order of the scan of the chains whose registers differ from `first` in bits of the axis. */
static Chain *chain_at(const Scan *x, int first, int bit, int count, int i)
{
    if (x->reverse)
        i = (1 << count) - 1 - i;
    for (int j = 0; j < count; j++)
        first |= i >> j & 1 ? 1 << x->plan->bits[bit + j].bit : 0;
    return &x->chains[x->chain_of[first]];
}

/* Blocks that differ in `count` bits from `bit` on, all of them registers, one after the other. */
static void join_registers(Scan *x, int bit, int count)
{
    uint32_t mask = 0;
    for (int i = 0; i < count; i++)
        mask |= 1u << x->plan->bits[bit + i].bit;
    for (int c = 0; c < x->chain_count; c++) {
        if ((uint32_t)x->chains[c].first & mask)
            continue;
        Partial total = {0};
        for (int i = 0; i < 1 << count; i++) {
            Chain *chain = chain_at(x, x->chains[c].first, bit, count, i);
            if (i)
                prepend(x, chain, total);
            total = i ? simt_combine(x->s, &x->combine, total, chain->total) : chain->total;
        }
        for (int i = 0; i < 1 << count; i++)
            chain_at(x, x->chains[c].first, bit, count, i)->total = total;
    }
}

static Partial choose(Scan *x, LLVMValueRef condition, const Partial *a, const Partial *b)
{
    LLVMValueRef yes = LLVMConstAllOnes(LLVMTypeOf(condition));
    Partial result = {0};
    for (int i = 0; i < x->combine.count; i++)
        result.at[i] = LLVMBuildSelect(x->s->b, condition, a->at[i], b->at[i], "");
    if (a->valid || b->valid)
        result.valid =
            LLVMBuildSelect(x->s->b, condition, a->valid ? a->valid : yes, b->valid ? b->valid : yes, "");
    return result;
}

/* Has this thread the later half, going by a bit of its lane? */
static LLVMValueRef is_second(Scan *x, LLVMValueRef place, int bit)
{
    Simt *s = x->s;
    LLVMValueRef set = LLVMBuildAnd(s->b, place, simt_i32(s, 1ll << bit), "");
    return LLVMBuildICmp(s->b, x->reverse ? LLVMIntEQ : LLVMIntNE, set, simt_i32(s, 0), "");
}

static bool commutes(const Scan *x)
{
    Opcode single = x->combine.single;
    return single != TT_OPCODES && tt_op_infos[single].traits & COMMUTES;
}

static void exchange_totals(Scan *x, int bit)
{
    LLVMValueRef second = is_second(x, x->s->lane, bit);
    for (int c = 0; c < x->chain_count; c++) {
        Chain *chain = &x->chains[c];
        Partial mine = chain->total, other = simt_shuffled(x->s, &x->combine, mine, 1 << bit);
        prepend_where(x, chain, other, second);
        if (!commutes(x)) {
            Partial front = choose(x, second, &other, &mine);
            other = choose(x, second, &mine, &other);
            mine = front;
        }
        chain->total = simt_combine(x->s, &x->combine, mine, other);
    }
}

/* The lane so far in front of this one; beyond the warp any. */
static LLVMValueRef lane_before(Scan *x, int distance)
{
    Simt *s = x->s;
    LLVMValueRef lane = LLVMBuildAdd(s->b, s->lane, simt_i32(s, x->reverse ? distance : -distance), "");
    return LLVMBuildAnd(s->b, lane, simt_i32(s, TT_LANES - 1), "");
}

/* Lanes in `count` bits from `lowest` on: the total of each becomes that of all up to it, over twice as many lanes with each
 * step. Where order counts that is one combination a step, where lanes that exchange their totals have two, of operands
 * that they sort, and carry twice as many values. But it takes two more shuffles, which commuting operations of one
 * instruction had better not. */
static void step_through_lanes(Scan *x, int lowest, int count, bool is_last)
{
    Simt *s = x->s;
    LLVMValueRef mask = simt_i32(s, (int64_t)((1u << count) - 1) << lowest);
    LLVMValueRef place = LLVMBuildAnd(s->b, x->reverse ? LLVMBuildNot(s->b, s->lane, "") : s->lane, mask, "");
    for (int i = 0; i < count; i++) {
        int distance = 1 << (lowest + i);
        LLVMValueRef source = lane_before(x, distance);
        LLVMValueRef exists = LLVMBuildICmp(s->b, LLVMIntUGE, place, simt_i32(s, distance), "");
        for (int c = 0; c < x->chain_count; c++) {
            Partial before = simt_partial_from(s, &x->combine, x->chains[c].total, source);
            before = only_where(x, before, exists);
            x->chains[c].total = simt_combine(s, &x->combine, before, x->chains[c].total);
        }
    }
    LLVMValueRef neighbour = lane_before(x, 1 << lowest);
    LLVMValueRef exists = LLVMBuildICmp(s->b, LLVMIntNE, place, simt_i32(s, 0), "");
    LLVMValueRef last = x->reverse ? LLVMBuildAnd(s->b, s->lane, LLVMBuildNot(s->b, mask, ""), "")
                                   : LLVMBuildOr(s->b, s->lane, mask, "");
    for (int c = 0; c < x->chain_count; c++) {
        Chain *chain = &x->chains[c];
        if (x->plan->chain_bits || chain->has_carry)
            prepend(x, chain,
                    only_where(x, simt_partial_from(s, &x->combine, chain->total, neighbour), exists));
        else
            x->prefix[chain->first] = chain->total;
        if (!is_last)
            chain->total = simt_partial_from(s, &x->combine, chain->total, last);
    }
}

static void join_lanes(Scan *x, int bit, int count)
{
    const ScanBit *bits = x->plan->bits + bit;
    bool in_order = true;
    for (int i = 0; i < count; i++)
        in_order &= bits[i].bit == bits[0].bit + i;
    if (in_order && !commutes(x) && count > 1)
        step_through_lanes(x, bits[0].bit, count, bit + count == x->plan->axis_bits);
    else
        for (int i = 0; i < count; i++)
            exchange_totals(x, bits[i].bit);
}

/* ---- warps -------------------------------------------------------------------------------------------------------------------------- */

/* The element whose total is exchanged: a line and the block above the run of warp bits. The number that the run's bits
 * are goes to *warp. */
static uint64_t element_in_run(const Scan *x, int first_bit, int run_bits, uint64_t element, uint64_t *warp)
{
    const LinearLayout *layout = x->plan->layout;
    int start = tt_layout_axis_start(layout, x->plan->axis), bits = x->plan->axis_bits;
    uint64_t coordinate = element >> start & ((1ull << bits) - 1);
    uint64_t line = element >> (start + bits) << start | (element & ((1ull << start) - 1));
    *warp = coordinate >> first_bit & ((1ull << run_bits) - 1);
    return line << (bits - first_bit - run_bits) | coordinate >> (first_bit + run_bits);
}

static uint32_t joined_lanes(const Scan *x, int first_bit)
{
    uint32_t lanes = tt_layout_replication(x->plan->layout, LAYOUT_LANE);
    for (int bit = 0; bit < first_bit; bit++)
        if (x->plan->bits[bit].input == LAYOUT_LANE)
            lanes |= 1u << x->plan->bits[bit].bit;
    return lanes;
}

/* registers[i]: that of bit i of a total's number. Registers along the axis below the run have one total by now. */
static WarpExchange plan_run(Scan *x, int first_bit, int bits, int *registers)
{
    const LinearLayout *layout = x->plan->layout;
    int first = layout->in_bits[LAYOUT_REGISTER];
    WarpExchange run = {.combine = &x->combine,
                        .layout = layout,
                        .scratch = x->scratch,
                        .offsets = x->plan->offsets,
                        .valid_offset = x->plan->valid_offset,
                        .alike = joined_lanes(x, first_bit),
                        .alike_warps = tt_layout_replication(layout, LAYOUT_WARP),
                        .warps = 1 << bits};
    uint64_t warp;
    for (int i = 0; i < first; i++) {
        uint64_t element = element_in_run(x, first_bit, bits, layout->bases[i], &warp);
        if (element && !simt_is_register_copy(layout, 1 << i)) {
            registers[run.index_bits] = 1 << i;
            run.index_elements[run.index_bits++] = element;
        }
    }
    for (int i = 0; i < layout->in_bits[LAYOUT_LANE] + layout->in_bits[LAYOUT_WARP]; i++) {
        run.thread_elements[i] = element_in_run(x, first_bit, bits, layout->bases[first + i], &warp);
        run.warp_numbers[i] = (int)warp;
    }
    simt_plan_exchange(&run);
    x->scratch += x->plan->area;
    return run;
}

/* Takes in the total of the warp that is the i-th in the order of the scan. */
static void add_warp(Scan *x, int i, const Partial *part, LLVMValueRef follows, Partial *before,
                     Partial *total)
{
    if (i)
        *before = i > 1 ? choose(x, follows, total, before) : only_where(x, *total, follows);
    *total = i ? simt_combine(x->s, &x->combine, *total, *part) : *part;
}

/* What stands before this thread's warp, and all warps' totals, for a vector of totals. Warp by warp, so that no more of
 * them than one wait in registers. */
static void combine_totals(Scan *x, const WarpExchange *run, int first, LLVMValueRef own, Partial *before,
                           Partial *totals)
{
    Simt *s = x->s;
    int vector = 1 << run->vector_bits;
    Partial(*rows)[MOST_WARPS] = tt_arena_alloc(s->arena, sizeof(Partial[MOST_WARPS]) * (size_t)vector);
    Partial *stored = tt_arena_copy(s->arena, totals, sizeof(Partial) * (size_t)(first + vector));
    if (vector == 1)
        simt_load_partials(s, run, first, 0, run->warps, stored, rows);
    for (int i = 0; i < run->warps; i++) {
        int warp = x->reverse ? run->warps - 1 - i : i;
        if (vector > 1)
            simt_load_partials(s, run, first, warp, 1, stored, rows);
        LLVMValueRef follows =
            LLVMBuildICmp(s->b, x->reverse ? LLVMIntULE : LLVMIntUGE, own, simt_i32(s, warp), "");
        for (int j = 0; j < vector; j++)
            add_warp(x, i, &rows[j][warp], follows, &before[first + j], &totals[first + j]);
    }
}

static LLVMValueRef warp_number(Simt *s, const WarpExchange *run)
{
    int lanes = run->layout->in_bits[LAYOUT_LANE], warps = run->layout->in_bits[LAYOUT_WARP];
    uint64_t columns[32];
    for (int i = 0; i < lanes + warps; i++)
        columns[i] = (uint64_t)run->warp_numbers[i];
    return simt_thread_offset(s, columns, lanes, warps, 1);
}

static int number_of(const WarpExchange *run, int const *registers, int reg)
{
    int number = 0;
    for (int i = 0; i < run->index_bits; i++)
        number |= reg & registers[i] ? 1 << i : 0;
    return number;
}

static void join_warps(Scan *x, int first_bit, int bits)
{
    Simt *s = x->s;
    int registers[32];
    WarpExchange run = plan_run(x, first_bit, bits, registers);
    int count = 1 << run.index_bits, vector = 1 << run.vector_bits;
    Partial *totals = TT_NEW_ARRAY(s->arena, Partial, count),
            *before = TT_NEW_ARRAY(s->arena, Partial, count);
    for (int c = 0; c < x->chain_count; c++)
        totals[number_of(&run, registers, x->chains[c].first)] = x->chains[c].total;
    simt_store_partials(s, &run, totals);
    simt_sync(s);
    LLVMValueRef own = warp_number(s, &run);
    for (int first = 0; first < count; first += vector)
        combine_totals(x, &run, first, own, before, totals);
    for (int c = 0; c < x->chain_count; c++) {
        int number = number_of(&run, registers, x->chains[c].first);
        prepend(x, &x->chains[c], before[number]);
        x->chains[c].total = totals[number];
    }
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------------------- */

static void join_blocks(Scan *x)
{
    for (int bit = x->plan->chain_bits, count; bit < x->plan->axis_bits; bit += count) {
        LayoutInput input = x->plan->bits[bit].input;
        count = run_length(x->plan, bit);
        if (input == LAYOUT_REGISTER)
            join_registers(x, bit, count);
        else if (input == LAYOUT_WARP)
            join_warps(x, bit, count);
        else
            join_lanes(x, bit, count);
    }
}

void simt_scan(Simt *s, const Op *op)
{
    Scan scan = {.s = s,
                 .combine = simt_combine_of(s, op),
                 .plan = tt_plan_scan(op),
                 .reverse = tt_int_attr(op, ATTR_reverse, 0) != 0,
                 .scratch = tt_scratch_offset(op)};
    Tile *tiles[TT_MAX_COMBINED];
    for (int i = 0; i < scan.combine.count; i++)
        tiles[i] = simt_tile(s, tt_operand(op, i));
    int registers = tiles[0]->count;
    scan.prefix = TT_NEW_ARRAY(s->arena, Partial, registers);
    for (int r = 0; r < registers; r++)
        if (scan.reverse) /* padding comes first */
            scan.prefix[r] = simt_partial_of(s, &scan.combine, tiles, r);
        else
            for (int i = 0; i < scan.combine.count; i++)
                scan.prefix[r].at[i] = tiles[i]->at[r];
    find_chains(&scan, registers);
    join_blocks(&scan);
    for (int i = 0; i < scan.combine.count; i++)
        simt_set(s, op->results[i], simt_new_tile(s, registers));
    for (int r = 0; r < registers; r++) {
        Chain *chain = &scan.chains[scan.chain_of[r]];
        Partial result = scan.prefix[r];
        if (chain->has_carry)
            result = simt_combine(s, &scan.combine, chain->carry, result);
        for (int i = 0; i < scan.combine.count; i++)
            simt_tile(s, op->results[i])->at[r] = result.at[i];
    }
}
