/* Reductions: over the registers of a thread, then over lanes by exclusive-or shuffles, then over warps: each leaves its
 * partial result in shared memory, and after one barrier every thread combines those that it needs. Taking one element
 * out of an axis at a run-time index is a reduction too, of which only that element is valid. */
#include "gpu/simt.h"
#include "gpu/plans.h"

/* ---- what the layouts ask for ----------------------------------------------------------------------------------------------------- */

/* The bits of an input that move along the axis, copies excepted. */
static uint32_t moving_bits(const LinearLayout *layout, LayoutInput input, int axis)
{
    return tt_layout_axis_bits(layout, axis).along[input] & ~tt_layout_replication(layout, input);
}

ReducePlan tt_plan_reduce(const Op *op)
{
    const Value *operand = tt_operand(op, 0), *result = op->results[0];
    ReducePlan plan = {.axis = (int)tt_int_attr(op, ATTR_axis, 0), .from = operand->layout};
    plan.to = tt_is_tile(result->type) ? result->layout : NULL;
    plan.lanes = moving_bits(plan.from, LAYOUT_LANE, plan.axis);
    plan.warps = moving_bits(plan.from, LAYOUT_WARP, plan.axis);
    plan.results = plan.to ? 1ll << tt_layout_out_total(plan.to) : 1;
    int64_t partials = plan.results << __builtin_popcount(plan.warps);
    for (int i = 0; plan.warps && i < op->operand_count; i++) {
        plan.offsets[i] = plan.bytes;
        /* widest first would pack tighter, but all operands of a reduction mostly have one width */
        int bytes = tt_is_tile(tt_operand(op, i)->type) ? tt_byte_width(tt_operand(op, i)->type) : 0;
        plan.bytes += (partials * bytes + 15) / 16 * 16;
    }
    plan.valid_offset = plan.bytes;
    bool padded = op->opcode == OP_extract || !tt_is_pow2(operand->type->shape[plan.axis]);
    if (plan.warps && padded)
        plan.bytes += (partials + 15) / 16 * 16; /* flags */
    return plan;
}

/* Element of the result that an element of the operand is combined into. */
static uint64_t result_element(const ReducePlan *plan, uint64_t element)
{
    int start = tt_layout_axis_start(plan->from, plan->axis), bits = plan->from->out_bits[plan->axis];
    return element >> (start + bits) << start | (element & ((1ull << start) - 1));
}

/* ---- registers -------------------------------------------------------------------------------------------------------------------- */

/* Pairs first, then pairs of pairs: a short chain of dependent operations. */
static Partial combine_tree(Simt *s, const Combine *combine, Partial *partials, int count)
{
    while (count > 1) {
        for (int i = 0; i + 1 < count; i += 2)
            partials[i / 2] = simt_combine(s, combine, partials[i], partials[i + 1]);
        if (count % 2)
            partials[count / 2] = partials[count - 1];
        count = (count + 1) / 2;
    }
    return partials[0];
}

/* Sets *of, by result register, to the combination of each thread's own elements. */
static void reduce_registers(Simt *s, const Combine *combine, const ReducePlan *plan, Partial const *elements,
                             Partial *of, int count)
{
    int registers = 1 << plan->from->in_bits[LAYOUT_REGISTER];
    Partial *group = TT_NEW_ARRAY(s->arena, Partial, registers);
    for (int r = 0; r < count; r++) {
        uint64_t wanted = plan->to ? tt_f2_apply(plan->to->bases, (uint64_t)r) : 0;
        int members = 0;
        for (int i = 0; i < registers; i++)
            if (!simt_is_register_copy(plan->from, i) &&
                result_element(plan, tt_f2_apply(plan->from->bases, (uint64_t)i)) == wanted)
                group[members++] = elements[i];
        of[r] = combine_tree(s, combine, group, members);
    }
}

/* ---- lanes ------------------------------------------------------------------------------------------------------------------------ */

static Partial reduce_lanes(Simt *s, const Combine *combine, uint32_t lanes, Partial partial)
{
    if (lanes == TT_LANES - 1 && combine->single != TT_OPCODES && !partial.valid &&
        LLVMTypeOf(partial.at[0]) == s->i32) {
        LLVMValueRef all = s->ops->reduce_warp(s, combine->single, partial.at[0]);
        if (all)
            return (Partial){.at = {all}};
    }
    for (int bit = TT_LANE_BITS - 1; bit >= 0; bit--)
        if (lanes >> bit & 1)
            partial = simt_combine(s, combine, partial, simt_shuffled(s, combine, partial, 1 << bit));
    return partial;
}

/* ---- warps ------------------------------------------------------------------------------------------------------------------------ */

/* Partials lie at (element of the result) * W + (number of the warp along the axis), W of them. A thread that needs many
 * shares the work with lanes that need the same: each reads one, and shuffles combine them. */
enum { MOST_READ = 8 };
typedef struct WarpExchange {
    const Combine *combine;
    const ReducePlan *plan;
    int64_t scratch;
    int warps;                 /* W */
    uint32_t readers;          /* bits of the lane that tell which partial it reads; 0: it reads all */
    uint64_t columns[32];      /* place of a thread's partial: lane bits, then warp bits */
    uint64_t read_columns[32]; /* of the first partial that it reads */
} WarpExchange;

static WarpExchange plan_exchange(const Combine *combine, const ReducePlan *plan, int64_t scratch)
{
    WarpExchange x = {combine, plan, scratch, 1 << __builtin_popcount(plan->warps), 0, {0}, {0}};
    const LinearLayout *from = plan->from;
    int first = from->in_bits[LAYOUT_REGISTER], lanes = from->in_bits[LAYOUT_LANE], along = 0;
    for (int i = 0; i < lanes + from->in_bits[LAYOUT_WARP]; i++) {
        x.read_columns[i] = result_element(plan, from->bases[first + i]) * (uint64_t)x.warps;
        x.columns[i] = x.read_columns[i];
        if (i >= lanes && plan->warps >> (i - lanes) & 1)
            x.columns[i] |= 1ull << along++;
    }
    uint32_t alike = plan->lanes | tt_layout_replication(from, LAYOUT_LANE);
    if (x.warps > MOST_READ && __builtin_popcount(alike) >= along)
        for (int bit = 0, number = 0; number < along; bit++)
            if (alike >> bit & 1) {
                x.read_columns[bit] |= 1ull << number++;
                x.readers |= 1u << bit;
            }
    return x;
}

static LLVMValueRef partial_place(Simt *s, const WarpExchange *x, const uint64_t *columns, int reg, int bytes,
                                  int64_t *constant)
{
    const LinearLayout *from = x->plan->from;
    int lanes = from->in_bits[LAYOUT_LANE], warps = from->in_bits[LAYOUT_WARP];
    LLVMValueRef place = simt_thread_offset(s, columns, lanes, warps, bytes);
    uint64_t element = x->plan->to ? tt_f2_apply(x->plan->to->bases, (uint64_t)reg) : 0;
    simt_add_offset(s, columns, lanes + warps, place, element * (uint64_t)x->warps, bytes, &place, constant);
    *constant += x->scratch;
    return place;
}

/* One lane of those that hold the same partial stores it. */
static LLVMValueRef stores_partial(Simt *s, const WarpExchange *x)
{
    const LinearLayout *from = x->plan->from;
    uint32_t lanes = x->plan->lanes | tt_layout_replication(from, LAYOUT_LANE);
    uint32_t others = lanes | tt_layout_replication(from, LAYOUT_WARP) << TT_LANE_BITS;
    if (!others)
        return NULL;
    LLVMValueRef bits = LLVMBuildAnd(s->b, s->thread, simt_i32(s, (int64_t)others), "");
    return LLVMBuildICmp(s->b, LLVMIntEQ, bits, simt_i32(s, 0), "");
}

static void store_partials(Simt *s, const WarpExchange *x, const Partial *partials, int count)
{
    LLVMValueRef predicate = stores_partial(s, x);
    int64_t constant;
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < x->combine->count; i++) {
            LLVMValueRef value = partials[r].at[i];
            LLVMValueRef place = partial_place(s, x, x->columns, r, simt_bytes(LLVMTypeOf(value)), &constant);
            simt_shared_store(s, place, constant + x->plan->offsets[i], value, predicate);
        }
        if (partials[r].valid) {
            LLVMValueRef place = partial_place(s, x, x->columns, r, 1, &constant);
            simt_shared_store(s, place, constant + x->plan->valid_offset, partials[r].valid, predicate);
        }
    }
}

/* W neighbours at once, in vectors of up to 16 bytes. */
static void load_row(Simt *s, LLVMValueRef place, int64_t constant, int count, LLVMTypeRef type,
                     LLVMValueRef *out)
{
    int bytes = simt_bytes(type), widest = TT_MAX(1, 16 / bytes);
    for (int i = 0; i < count; i += TT_MIN(widest, count)) {
        LLVMValueRef words[16];
        int vector = TT_MIN(widest, count);
        Access access = simt_shared_access(place, constant + (int64_t)i * bytes, vector * bytes);
        s->ops->load(s, &access, NULL, words);
        simt_unpack(s, words, &access, vector, bytes, type, out + i);
    }
}

static Partial combine_row(Simt *s, const WarpExchange *x, int reg, const Partial *like)
{
    enum { MOST_WARPS = 32 };
    Partial row[MOST_WARPS] = {0};
    LLVMValueRef loaded[MOST_WARPS];
    int64_t constant;
    int count = x->readers ? 1 : x->warps;
    for (int i = 0; i <= x->combine->count; i++) {
        bool is_flag = i == x->combine->count;
        if (is_flag && !like->valid)
            break;
        LLVMTypeRef type = is_flag ? s->i1 : LLVMTypeOf(like->at[i]);
        LLVMValueRef place = partial_place(s, x, x->read_columns, reg, simt_bytes(type), &constant);
        constant += is_flag ? x->plan->valid_offset : x->plan->offsets[i];
        load_row(s, place, constant, count, type, loaded);
        for (int w = 0; w < count; w++)
            *(is_flag ? &row[w].valid : &row[w].at[i]) = loaded[w];
    }
    return reduce_lanes(s, x->combine, x->readers, combine_tree(s, x->combine, row, count));
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------------- */

static void reduce_elements(Simt *s, const Combine *combine, const Partial *elements)
{
    const Op *op = combine->op;
    ReducePlan plan = tt_plan_reduce(op);
    int count = simt_registers(op->results[0]);
    Partial *partials = TT_NEW_ARRAY(s->arena, Partial, count);
    reduce_registers(s, combine, &plan, elements, partials, count);
    for (int r = 0; r < count; r++)
        partials[r] = reduce_lanes(s, combine, plan.lanes, partials[r]);
    if (plan.warps) {
        WarpExchange exchange = plan_exchange(combine, &plan, tt_scratch_offset(op));
        store_partials(s, &exchange, partials, count);
        simt_sync(s);
        for (int r = 0; r < count; r++)
            partials[r] = combine_row(s, &exchange, r, &partials[r]);
    }
    for (int i = 0; i < combine->count; i++) {
        Tile *tile = simt_new_tile(s, count);
        for (int r = 0; r < count; r++)
            tile->at[r] = partials[r].at[i];
        simt_set(s, op->results[i], tile);
    }
}

void simt_reduce(Simt *s, const Op *op)
{
    Combine combine = simt_combine_of(s, op);
    Tile *tiles[TT_MAX_COMBINED];
    for (int i = 0; i < combine.count; i++)
        tiles[i] = simt_tile(s, tt_operand(op, i));
    Partial *elements = TT_NEW_ARRAY(s->arena, Partial, tiles[0]->count);
    for (int r = 0; r < tiles[0]->count; r++)
        elements[r] = simt_partial_of(s, &combine, tiles, r);
    reduce_elements(s, &combine, elements);
}

void simt_extract(Simt *s, const Op *op)
{
    Combine combine = simt_combine_of(s, op);
    const Value *operand = tt_operand(op, 0);
    const Tile *tile = simt_tile(s, operand);
    int axis = (int)tt_int_attr(op, ATTR_axis, 0);
    LLVMValueRef index = LLVMBuildIntCast2(s->b, simt_scalar(s, tt_operand(op, 1)), s->i32, 1, "");
    Partial *elements = TT_NEW_ARRAY(s->arena, Partial, tile->count);
    for (int r = 0; r < tile->count; r++) {
        LLVMValueRef coordinate = simt_coordinate(s, operand->layout, axis, r);
        elements[r] = (Partial){.at = {tile->at[r]}};
        elements[r].valid = LLVMBuildICmp(s->b, LLVMIntEQ, coordinate, index, "");
    }
    reduce_elements(s, &combine, elements);
}
