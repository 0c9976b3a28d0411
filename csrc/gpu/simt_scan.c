/* Scans. A thread holds chains of neighbours along the axis; each is scanned by itself. Then the bits of the coordinate
 * above a chain are taken from the lowest on: a bit joins two blocks of elements, the carry into the second grows by
 * the total of the first, and the totals join. That is two groups of registers, two lanes (one shuffle), or, for
 * warps, an exchange of totals through shared memory. At the end each chain takes in its carry. A reverse scan is the
 * same with every bit of the coordinate turned over. */
#include "gpu/simt.h"

/* ---- where the bits of the coordinate live ----------------------------------------------------------------------------------------- */

static ScanBit find_bit(const LinearLayout *layout, int axis, int coordinate_bit)
{
    uint64_t wanted = 1ull << (tt_layout_axis_start(layout, axis) + coordinate_bit);
    for (int input = 0, i = 0; input < LAYOUT_INPUTS; input++)
        for (int bit = 0; bit < layout->in_bits[input]; bit++, i++)
            if (layout->bases[i] == wanted)
                return (ScanBit){(LayoutInput)input, bit};
    tt_bug("a scan in a layout that mixes coordinates");
}

static bool starts_run(const ScanPlan *plan, int bit)
{
    return plan->bits[bit].input == LAYOUT_WARP && (!bit || plan->bits[bit - 1].input != LAYOUT_WARP);
}

ScanPlan tt_plan_scan(const Op *op)
{
    const Value *operand = tt_operand(op, 0);
    ScanPlan plan = {.axis = (int)tt_int_attr(op, ATTR_axis, 0), .layout = operand->layout};
    plan.axis_bits = plan.layout->out_bits[plan.axis];
    int runs = 0, lowest_run = 0;
    for (int bit = 0; bit < plan.axis_bits; bit++) {
        plan.bits[bit] = find_bit(plan.layout, plan.axis, bit);
        if (plan.bits[bit].input == LAYOUT_REGISTER && plan.chain_bits == bit)
            plan.chain_bits++;
        if (starts_run(&plan, bit) && !runs++)
            lowest_run = bit;
    }
    int64_t partials = 1ll << (tt_layout_out_total(plan.layout) - lowest_run);
    for (int i = 0; runs && i < op->operand_count; i++) {
        plan.offsets[i] = plan.area;
        plan.area += (partials * tt_byte_width(tt_operand(op, i)->type) + 15) / 16 * 16;
    }
    plan.valid_offset = plan.area;
    if (runs && !tt_is_pow2(operand->type->shape[plan.axis]))
        plan.area += (partials + 15) / 16 * 16;
    plan.bytes = plan.area * runs;
    return plan;
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
    ScanPlan plan;
    bool reverse;
    Partial *prefix; /* by register: over its chain up to here */
    Chain *chains;
    int chain_count;
    int *chain_of; /* register -> its chain */
    int64_t scratch;
} Scan;

/* i-th register of a chain in the order of the scan. */
static int chain_register(const Scan *x, const Chain *chain, int i)
{
    int reg = chain->first, last = (1 << x->plan.chain_bits) - 1;
    if (x->reverse)
        i = last - i;
    for (int bit = 0; bit < x->plan.chain_bits; bit++)
        if (i >> bit & 1)
            reg |= 1 << x->plan.bits[bit].bit;
    return reg;
}

static void scan_chain(Scan *x, Chain *chain)
{
    int length = 1 << x->plan.chain_bits;
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
    for (int bit = 0; bit < x->plan.chain_bits; bit++)
        in_chain |= 1u << x->plan.bits[bit].bit;
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

/* ---- joining blocks ----------------------------------------------------------------------------------------------------------------- */

static void join_registers(Scan *x, int bit)
{
    for (int c = 0; c < x->chain_count; c++) {
        if (x->chains[c].first >> bit & 1)
            continue;
        Chain *low = &x->chains[c], *high = &x->chains[x->chain_of[low->first | 1 << bit]];
        Chain *first = x->reverse ? high : low, *second = x->reverse ? low : high;
        prepend(x, second, first->total);
        first->total = second->total = simt_combine(x->s, &x->combine, first->total, second->total);
    }
}

static Partial choose(Scan *x, LLVMValueRef condition, const Partial *a, const Partial *b)
{
    Partial result = {0};
    for (int i = 0; i < x->combine.count; i++)
        result.at[i] = LLVMBuildSelect(x->s->b, condition, a->at[i], b->at[i], "");
    if (a->valid)
        result.valid = LLVMBuildSelect(x->s->b, condition, a->valid, b->valid, "");
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

static void join_lanes(Scan *x, int bit)
{
    LLVMValueRef second = is_second(x, x->s->lane, bit);
    for (int c = 0; c < x->chain_count; c++) {
        Chain *chain = &x->chains[c];
        Partial mine = chain->total, other = simt_shuffled(x->s, &x->combine, mine, 1 << bit);
        prepend(x, chain, only_where(x, other, second));
        if (!commutes(x)) {
            Partial front = choose(x, second, &other, &mine);
            other = choose(x, second, &mine, &other);
            mine = front;
        }
        chain->total = simt_combine(x->s, &x->combine, mine, other);
    }
}

/* ---- warps -------------------------------------------------------------------------------------------------------------------------- */

/* Totals lie at (line, block above the run) * W + (number of the warp in the run): the element's index with the bits of
 * the axis below the run left out and those of the run put last. */
typedef struct Run {
    int first_bit, bits;
    uint64_t columns[32];      /* lane bits, then warp bits */
    uint64_t warp_columns[32]; /* the warp's number in the run */
    uint32_t joined_lanes;     /* lanes that hold one total */
    int64_t scratch;
} Run;

static uint64_t place_in_run(const Scan *x, const Run *run, uint64_t element)
{
    const LinearLayout *layout = x->plan.layout;
    int start = tt_layout_axis_start(layout, x->plan.axis), bits = x->plan.axis_bits;
    uint64_t coordinate = element >> start & ((1ull << bits) - 1);
    uint64_t line = element >> (start + bits) << start | (element & ((1ull << start) - 1));
    uint64_t above = coordinate >> (run->first_bit + run->bits);
    uint64_t warp = coordinate >> run->first_bit & ((1ull << run->bits) - 1);
    return (line << (bits - run->first_bit - run->bits) | above) << run->bits | warp;
}

static Run plan_run(const Scan *x, int first_bit, int number)
{
    const LinearLayout *layout = x->plan.layout;
    Run run = {.first_bit = first_bit, .scratch = x->scratch + number * x->plan.area};
    while (first_bit + run.bits < x->plan.axis_bits &&
           x->plan.bits[first_bit + run.bits].input == LAYOUT_WARP)
        run.bits++;
    int registers = layout->in_bits[LAYOUT_REGISTER], lanes = layout->in_bits[LAYOUT_LANE];
    for (int i = 0; i < lanes + layout->in_bits[LAYOUT_WARP]; i++) {
        run.columns[i] = place_in_run(x, &run, layout->bases[registers + i]);
        run.warp_columns[i] = run.columns[i] & ((1ull << run.bits) - 1);
    }
    run.joined_lanes = tt_layout_replication(layout, LAYOUT_LANE);
    for (int bit = 0; bit < first_bit; bit++)
        if (x->plan.bits[bit].input == LAYOUT_LANE)
            run.joined_lanes |= 1u << x->plan.bits[bit].bit;
    return run;
}

static LLVMValueRef stores_total(const Scan *x, const Run *run)
{
    Simt *s = x->s;
    uint32_t others = run->joined_lanes | tt_layout_replication(x->plan.layout, LAYOUT_WARP) << TT_LANE_BITS;
    if (!others)
        return NULL;
    LLVMValueRef bits = LLVMBuildAnd(s->b, s->thread, simt_i32(s, (int64_t)others), "");
    return LLVMBuildICmp(s->b, LLVMIntEQ, bits, simt_i32(s, 0), "");
}

/* Offset of the total of warp `number` of the run (of this thread's own when -1) for a chain. */
static LLVMValueRef total_place(const Scan *x, const Run *run, const Chain *chain, int number, int bytes,
                                int64_t *constant)
{
    Simt *s = x->s;
    const LinearLayout *layout = x->plan.layout;
    int lanes = layout->in_bits[LAYOUT_LANE], warps = layout->in_bits[LAYOUT_WARP];
    uint64_t columns[32], low = (1ull << run->bits) - 1;
    for (int i = 0; i < lanes + warps; i++)
        columns[i] = number < 0 ? run->columns[i] : run->columns[i] & ~low;
    uint64_t place = place_in_run(x, run, tt_f2_apply(layout->bases, (uint64_t)chain->first));
    LLVMValueRef base = simt_thread_offset(s, columns, lanes, warps, bytes);
    simt_add_offset(s, columns, lanes + warps, base, place, bytes, &base, constant);
    *constant += run->scratch + (number > 0 ? (int64_t)number * bytes : 0);
    return base;
}

static void store_total(Scan *x, const Run *run, const Chain *chain, LLVMValueRef predicate)
{
    int64_t constant;
    for (int i = 0; i <= x->combine.count; i++) {
        bool is_flag = i == x->combine.count;
        LLVMValueRef value = is_flag ? chain->total.valid : chain->total.at[i];
        if (!value)
            continue;
        LLVMValueRef place = total_place(x, run, chain, -1, simt_bytes(LLVMTypeOf(value)), &constant);
        constant += is_flag ? x->plan.valid_offset : x->plan.offsets[i];
        simt_shared_store(x->s, place, constant, value, predicate);
    }
}

static Partial load_total(Scan *x, const Run *run, const Chain *chain, int warp)
{
    Partial total = {0};
    int64_t constant;
    for (int i = 0; i <= x->combine.count; i++) {
        bool is_flag = i == x->combine.count;
        LLVMValueRef like = is_flag ? chain->total.valid : chain->total.at[i];
        if (!like)
            continue;
        LLVMValueRef place = total_place(x, run, chain, warp, simt_bytes(LLVMTypeOf(like)), &constant);
        constant += is_flag ? x->plan.valid_offset : x->plan.offsets[i];
        *(is_flag ? &total.valid : &total.at[i]) = simt_shared_load(x->s, place, constant, LLVMTypeOf(like));
    }
    return total;
}

/* Chains that differ in a register bit of the axis below the run have one total by now. */
static bool is_joined_copy(const Scan *x, const Run *run, const Chain *chain)
{
    for (int bit = x->plan.chain_bits; bit < run->first_bit; bit++)
        if (x->plan.bits[bit].input == LAYOUT_REGISTER && chain->first >> x->plan.bits[bit].bit & 1)
            return true;
    return false;
}

static void carry_from_warps(Scan *x, const Run *run, Chain *chain, LLVMValueRef own)
{
    Simt *s = x->s;
    int warps = 1 << run->bits;
    Partial before = {0}, total = {0};
    for (int i = 0; i < warps; i++) {
        int warp = x->reverse ? warps - 1 - i : i;
        Partial one = load_total(x, run, chain, warp);
        LLVMValueRef precedes =
            LLVMBuildICmp(s->b, x->reverse ? LLVMIntULT : LLVMIntUGT, own, simt_i32(s, warp), "");
        Partial part = only_where(x, one, precedes);
        if (i + 1 < warps)
            before = i ? simt_combine(s, &x->combine, before, part) : part;
        total = i ? simt_combine(s, &x->combine, total, one) : one;
    }
    prepend(x, chain, before);
    chain->total = total;
}

static void join_warps(Scan *x, int first_bit, int number)
{
    Simt *s = x->s;
    Run run = plan_run(x, first_bit, number);
    const LinearLayout *layout = x->plan.layout;
    LLVMValueRef predicate = stores_total(x, &run);
    for (int c = 0; c < x->chain_count; c++)
        if (!is_joined_copy(x, &run, &x->chains[c]))
            store_total(x, &run, &x->chains[c], predicate);
    simt_sync(s);
    LLVMValueRef own = simt_thread_offset(s, run.warp_columns, layout->in_bits[LAYOUT_LANE],
                                          layout->in_bits[LAYOUT_WARP], 1);
    for (int c = 0; c < x->chain_count; c++)
        carry_from_warps(x, &run, &x->chains[c], own);
}

/* ---- all of it ---------------------------------------------------------------------------------------------------------------------- */

static void join_blocks(Scan *x)
{
    int runs = 0;
    for (int bit = x->plan.chain_bits; bit < x->plan.axis_bits; bit++)
        if (x->plan.bits[bit].input == LAYOUT_REGISTER)
            join_registers(x, x->plan.bits[bit].bit);
        else if (x->plan.bits[bit].input == LAYOUT_LANE)
            join_lanes(x, x->plan.bits[bit].bit);
        else if (starts_run(&x->plan, bit))
            join_warps(x, bit, runs++);
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
