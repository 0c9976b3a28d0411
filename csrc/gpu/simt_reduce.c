/* Reductions: over the registers of a thread, of large tiles strip by strip, then over lanes by exclusive-or shuffles, then over warps: each leaves its
 * partial result in shared memory, and after one barrier every thread combines those that it needs. Taking one element
 * out of an axis at a run-time index is a reduction too, of which only that element is valid. */
#include "gpu/plans.h"
#include "gpu/simt_exchange.h"

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

/* Do results accumulate what was computed of the elements, rather than choose one of them? */
static bool accumulates(const Combine *combine)
{
    for (int i = 0; i < combine->count; i++)
        if (!tt_is_float(tt_element(tt_operand(combine->op, i)->type)))
            return false;
    return combine->op->region_count && (combine->single == TT_OPCODES || combine->single == OP_fadd);
}

/* One vector of elements after the other, in the order in which they are loaded, goes into a vector of running results:
 * fewer registers wait for their partners, and products are added in one operation. */
static Partial combine_stream(Simt *s, const Combine *combine, Partial *partials, int count)
{
    enum { STREAMS = 4 };
    for (int i = STREAMS; i < count; i++)
        partials[i % STREAMS] = simt_combine(s, combine, partials[i % STREAMS], partials[i]);
    return combine_tree(s, combine, partials, TT_MIN(count, STREAMS));
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
        of[r] = accumulates(combine) ? combine_stream(s, combine, group, members)
                                     : combine_tree(s, combine, group, members);
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

static WarpExchange plan_exchange(const Combine *combine, const ReducePlan *plan, int *registers)
{
    WarpExchange x = {.combine = combine,
                      .layout = plan->from,
                      .scratch = tt_scratch_offset(combine->op),
                      .offsets = plan->offsets,
                      .valid_offset = plan->valid_offset,
                      .shares_reading = true,
                      .warps = 1 << __builtin_popcount(plan->warps)};
    const LinearLayout *from = plan->from, *to = plan->to;
    int first = from->in_bits[LAYOUT_REGISTER], lanes = from->in_bits[LAYOUT_LANE], number = 0;
    x.alike = plan->lanes | tt_layout_replication(from, LAYOUT_LANE);
    x.alike_warps = plan->folded | tt_layout_replication(from, LAYOUT_WARP);
    for (int i = 0; to && i < to->in_bits[LAYOUT_REGISTER]; i++)
        if (!simt_is_register_copy(to, 1 << i)) {
            registers[x.index_bits] = 1 << i;
            x.index_elements[x.index_bits++] = to->bases[i];
        }
    for (int i = 0; i < lanes + from->in_bits[LAYOUT_WARP]; i++) {
        x.thread_elements[i] = result_element(plan, from->bases[first + i]);
        if (i >= lanes && plan->warps >> (i - lanes) & 1)
            x.warp_numbers[i] = 1 << number++;
    }
    simt_plan_exchange(&x);
    return x;
}

static int register_of(const WarpExchange *x, int const *registers, int index)
{
    int reg = 0;
    for (int i = 0; i < x->index_bits; i++)
        reg |= index >> i & 1 ? registers[i] : 0;
    return reg;
}

/* Replaces each partial by the combination of all warps'. */
static void combine_warps(Simt *s, const Combine *combine, const ReducePlan *plan, Partial *partials,
                          int count)
{
    int registers[32];
    WarpExchange x = plan_exchange(combine, plan, registers);
    int vector = 1 << x.vector_bits, read = simt_partials_read(&x), different = 1 << x.index_bits;
    Partial *own = TT_NEW_ARRAY(s->arena, Partial, different);
    Partial(*rows)[MOST_WARPS] = tt_arena_alloc(s->arena, sizeof(Partial[MOST_WARPS]) * (size_t)vector);
    for (int i = 0; i < different; i++)
        own[i] = partials[register_of(&x, registers, i)];
    simt_store_partials(s, &x, own);
    simt_sync(s);
    for (int first = 0; first < different; first += vector) {
        simt_load_partials(s, &x, first, own, rows);
        for (int j = 0; j < vector; j++)
            partials[register_of(&x, registers, first + j)] =
                reduce_lanes(s, combine, x.readers, combine_tree(s, combine, rows[j], read));
    }
    for (int r = 0; r < count; r++)
        if (plan->to && simt_is_register_copy(plan->to, r))
            partials[r] = partials[tt_register_of(plan->to, tt_f2_apply(plan->to->bases, (uint64_t)r))];
}

/* ---- all of it -------------------------------------------------------------------------------------------------------------------- */

static void reduce_elements(Simt *s, const Combine *combine, const Partial *elements)
{
    const Op *op = combine->op;
    const ReducePlan *plan = tt_plan_reduce(op, s->options);
    int count = simt_registers(op->results[0]);
    Partial *partials = TT_NEW_ARRAY(s->arena, Partial, count);
    reduce_registers(s, combine, plan, elements, partials, count);
    if (plan->folded)
        simt_fold_strips(s, combine, plan->folded, partials, count);
    for (int r = 0; r < count; r++)
        partials[r] = reduce_lanes(s, combine, plan->lanes, partials[r]);
    if (plan->warps)
        combine_warps(s, combine, plan, partials, count);
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
