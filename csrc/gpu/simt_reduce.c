/* Reductions: over the registers of a thread, of large tiles strip by strip, then over lanes by exclusive-or shuffles, then over warps: each leaves its
 * partial result in shared memory, and after one barrier every thread combines those that it needs; warps whose copies
 * of the result nobody needs are done by then. Taking one element out of an axis at a run-time index is a reduction too, of which only that element is valid. */
#include "gpu/plans.h"
#include "gpu/simt_exchange.h"

enum {
    MOST_USES = 32 /* of a result, looked at */,
    STREAMS = 4 /* running results of a thread */
};

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
    for (int i = STREAMS; i < count; i++)
        partials[i % STREAMS] = simt_combine(s, combine, partials[i % STREAMS], partials[i]);
    return combine_tree(s, combine, partials, TT_MIN(count, STREAMS));
}

/* LLVM's function, of vectors too. */
static const char *name_of_extremum(Opcode opcode)
{
    switch (opcode) {
    case OP_fmax:
        return "llvm.maxnum";
    case OP_fmin:
        return "llvm.minnum";
    case OP_fmax_nan:
        return "llvm.maximum";
    case OP_fmin_nan:
        return "llvm.minimum";
    default:
        return NULL;
    }
}

/* The largest of 16-bit floats that were widened is one of these: they are compared as they are, two at a time, and need
 * not be wide before they are computed with. The tile that was widened, or NULL. */
static const Value *narrow_operand(const Simt *s, const Combine *combine)
{
    const Value *operand = tt_operand(combine->op, 0);
    const Op *cast = tt_def(operand, OP_float_cast);
    if (!cast || !name_of_extremum(combine->single) || s->options->sm < 80 || s->options->strips > 1)
        return NULL;
    const Value *narrow = tt_operand(cast, 0);
    TypeKind kind = tt_element(narrow->type)->kind;
    bool is_half = kind == TT_F16 || kind == TT_BF16;
    return is_half && tt_layout_equal(narrow->layout, operand->layout) ? narrow : NULL;
}

/* Do these elements, all of them within bounds, lie in registers two by two? */
static bool are_pairs(Partial const *elements, const Tile *wide, int const *members, int count)
{
    for (int i = 0; i < count; i++)
        if (members[i] % 2 != i % 2 || members[i] / 2 != members[i & ~1] / 2 || elements[members[i]].valid ||
            elements[members[i]].at[0] != wide->at[members[i]])
            return false;
    return count % 2 == 0;
}

/* In running results, too: of a tree ptxas computes one half before it loads the other (a row of 65536 on 32 warps loaded six
 * of a thread's eight vectors, waited, and then loaded the rest). */
static LLVMValueRef largest_pair(Simt *s, const char *extremum, LLVMValueRef *pairs, int count)
{
    for (int i = STREAMS; i < count; i++)
        pairs[i % STREAMS] = simt_intrinsic2(s, extremum, pairs[i % STREAMS], pairs[i]);
    for (count = TT_MIN(count, STREAMS); count > 1; count = (count + 1) / 2)
        for (int i = 0; i < count / 2; i++)
            pairs[i] = simt_intrinsic2(s, extremum, pairs[i], pairs[count - 1 - i]);
    return pairs[0];
}

static Partial combine_pairs(Simt *s, const Combine *combine, const Value *narrow, int const *members,
                             int count)
{
    const Tile *tile = simt_tile(s, narrow);
    const Type *from = tt_element(narrow->type), *to = tt_element(tt_operand(combine->op, 0)->type);
    LLVMValueRef *pairs = TT_NEW_ARRAY(s->arena, LLVMValueRef, count / 2);
    for (int i = 0; i < count; i += 2)
        pairs[i / 2] = simt_pair(s, tile->at[members[i]], tile->at[members[i + 1]]);
    LLVMValueRef pair = largest_pair(s, name_of_extremum(combine->single), pairs, count / 2);
    Partial of[2] = {0};
    for (int i = 0; i < 2; i++)
        of[i].at[0] = simt_cast_scalar(s, LLVMBuildExtractElement(s->b, pair, simt_i32(s, i), ""), from, to);
    return simt_combine(s, combine, of[0], of[1]);
}

/* Sets *of, by result register, to the combination of each thread's own elements. */
static void reduce_registers(Simt *s, const Combine *combine, const ReducePlan *plan, Partial const *elements,
                             Partial *of, int count)
{
    enum { FEWEST = 4 };
    const Value *narrow = narrow_operand(s, combine);
    const Tile *wide = narrow ? simt_tile(s, tt_operand(combine->op, 0)) : NULL;
    int registers = 1 << plan->from->in_bits[LAYOUT_REGISTER];
    int *members = TT_NEW_ARRAY(s->arena, int, registers);
    Partial *group = TT_NEW_ARRAY(s->arena, Partial, registers);
    for (int r = 0; r < count; r++) {
        uint64_t wanted = plan->to ? tt_f2_apply(plan->to->bases, (uint64_t)r) : 0;
        int found = 0;
        for (int i = 0; i < registers; i++)
            if (!simt_is_register_copy(plan->from, i) &&
                result_element(plan, tt_f2_apply(plan->from->bases, (uint64_t)i)) == wanted) {
                members[found] = i;
                group[found++] = elements[i];
            }
        if (wide && found >= FEWEST && are_pairs(elements, wide, members, found))
            of[r] = combine_pairs(s, combine, narrow, members, found);
        else
            of[r] = accumulates(combine) ? combine_stream(s, combine, group, found)
                                         : combine_tree(s, combine, group, found);
    }
}

/* ---- lanes ------------------------------------------------------------------------------------------------------------------------ */

/* Some GPUs do. */
static bool may_be_one_instruction(const Simt *s, const Combine *combine, uint32_t lanes, Partial partial)
{
    return lanes == TT_LANES - 1 && combine->single != TT_OPCODES && !partial.valid &&
           LLVMTypeOf(partial.at[0]) == s->i32;
}

static Partial reduce_lanes(Simt *s, const Combine *combine, uint32_t lanes, Partial partial)
{
    if (may_be_one_instruction(s, combine, lanes, partial)) {
        LLVMValueRef all = s->ops->reduce_warp(s, combine->single, partial.at[0]);
        if (all)
            return (Partial){.at = {all}};
    }
    for (int bit = TT_LANE_BITS - 1; bit >= 0; bit--)
        if (lanes >> bit & 1)
            partial = simt_combine(s, combine, partial, simt_shuffled(s, combine, partial, 1 << bit));
    return partial;
}

/* Of each pair of lanes one goes on with the first half of the partials, the other with the second. */
static void halve(Simt *s, const Combine *combine, int lane_bit, Partial *partials, int half)
{
    LLVMValueRef bit = LLVMBuildAnd(s->b, s->thread, simt_i32(s, 1 << lane_bit), "");
    LLVMValueRef is_upper = LLVMBuildICmp(s->b, LLVMIntNE, bit, simt_i32(s, 0), "");
    for (int i = 0; i < half; i++) {
        Partial kept = {0}, given = {0};
        for (int j = 0; j < combine->count; j++) {
            LLVMValueRef low = partials[i].at[j], high = partials[half + i].at[j];
            kept.at[j] = LLVMBuildSelect(s->b, is_upper, high, low, "");
            given.at[j] = LLVMBuildSelect(s->b, is_upper, low, high, "");
        }
        partials[i] = simt_combine(s, combine, kept, simt_shuffled(s, combine, given, 1 << lane_bit));
    }
}

/* Combines lanes' partials, which are stored then: a lane needs no more of them than it stores, and exchanges fewer so. */
static void reduce_lanes_for(Simt *s, const Combine *combine, uint32_t lanes, WarpExchange *stored,
                             Partial *partials)
{
    int all = 1 << stored->index_bits;
    bool shares = !may_be_one_instruction(s, combine, lanes, partials[0]);
    for (int i = 0; i < all; i++)
        shares &= !partials[i].valid;
    for (int i = 0; i < all && !shares; i++)
        partials[i] = reduce_lanes(s, combine, lanes, partials[i]);
    for (int bit = TT_LANE_BITS - 1; bit >= 0 && shares; bit--) {
        if (!(lanes >> bit & 1))
            continue;
        bool halves = simt_share_storing(stored, bit);
        if (halves)
            halve(s, combine, bit, partials, 1 << stored->index_bits);
        for (int i = 0; i < 1 << stored->index_bits && !halves; i++)
            partials[i] = reduce_lanes(s, combine, 1u << bit, partials[i]);
    }
    for (int i = 1 << stored->index_bits; i < all; i++) /* of the same types, and constant where these are */
        partials[i] = partials[i & ((1 << stored->index_bits) - 1)];
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

/* Is the result needed in no warp but the first of those that hold the same, since it goes, element by element, into stores
 * only, which one copy does (a scalar's are all threads')? `uses` are how many are looked at. */
static bool is_only_stored(const Value *result, uint32_t warps, int *uses)
{
    TT_FOR_USES(use, result)
    {
        const Op *op = use->user;
        if (!(*uses)--)
            return false;
        if (op->opcode == OP_store) {
            const LinearLayout *layout = tt_operand(op, 0)->layout;
            if (layout && warps & ~tt_layout_replication(layout, LAYOUT_WARP))
                return false;
            continue;
        }
        if (op->region_count || !tt_has(op, PURE) || !(tt_has(op, ELEMENTWISE) || tt_is_layout_free(op)))
            return false;
        for (int i = 0; i < op->result_count; i++)
            if (!is_only_stored(op->results[i], warps, uses))
                return false;
    }
    return true;
}

/* What has come from one block, or zeros from the other. */
static void join_zero(Simt *s, const Combine *combine, Partial *partial, LLVMBasicBlockRef from,
                      LLVMBasicBlockRef other)
{
    for (int i = 0; i < combine->count; i++) {
        LLVMTypeRef type = LLVMTypeOf(partial->at[i]);
        LLVMValueRef phi = LLVMBuildPhi(s->b, type, "");
        LLVMAddIncoming(phi, (LLVMValueRef[]){partial->at[i], LLVMConstNull(type)},
                        (LLVMBasicBlockRef[]){from, other}, 2);
        partial->at[i] = phi;
    }
}

/* Worth a branch: where combining is one operation it costs no more than that. */
static bool is_for_first_warp(const Simt *s, const Combine *combine, uint32_t warps)
{
    const Op *op = combine->op;
    int uses = MOST_USES;
    bool all = combine->single == TT_OPCODES && op->region_count && s->options->strips <= 1;
    for (int i = 0; all && i < op->result_count; i++)
        all = is_only_stored(op->results[i], warps, &uses);
    return all;
}

/* Replaces each thread's partial by the combination of all lanes' and warps'; in warps that it is not needed in, by zero. */
static void combine_warps(Simt *s, const Combine *combine, const ReducePlan *plan, Partial *partials,
                          int count)
{
    int registers[32];
    WarpExchange x = plan_exchange(combine, plan, registers), stored = x;
    int vector = 1 << x.vector_bits, read = simt_partials_read(&x), different = 1 << x.index_bits;
    Partial *own = TT_NEW_ARRAY(s->arena, Partial, different);
    Partial(*rows)[MOST_WARPS] = tt_arena_alloc(s->arena, sizeof(Partial[MOST_WARPS]) * (size_t)vector);
    for (int i = 0; i < different; i++)
        own[i] = partials[register_of(&x, registers, i)];
    reduce_lanes_for(s, combine, plan->lanes, &stored, own);
    bool skips = is_for_first_warp(s, combine, plan->warps);
    /* where lanes shuffle in a branch ptxas wants to see that they are told the same: else it has code for lanes apart */
    LLVMValueRef warp = skips && x.readers ? simt_shuffle_index(s, s->warp, simt_i32(s, 0)) : s->warp;
    simt_store_partials(s, &stored, own);
    simt_sync(s);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(s->b), after = NULL;
    if (skips) {
        LLVMBasicBlockRef combining = simt_new_block(s, "first");
        LLVMValueRef bits = LLVMBuildAnd(s->b, warp, simt_i32(s, plan->warps), "");
        after = simt_new_block(s, "");
        LLVMBuildCondBr(s->b, LLVMBuildICmp(s->b, LLVMIntEQ, bits, simt_i32(s, 0), ""), combining, after);
        LLVMPositionBuilderAtEnd(s->b, combining);
    }
    for (int first = 0; first < different; first += vector) {
        simt_load_partials(s, &x, first, 0, simt_partials_read(&x), own, rows);
        for (int j = 0; j < vector; j++)
            partials[register_of(&x, registers, first + j)] =
                reduce_lanes(s, combine, x.readers, combine_tree(s, combine, rows[j], read));
    }
    if (after) {
        LLVMBasicBlockRef end = LLVMGetInsertBlock(s->b);
        LLVMBuildBr(s->b, after);
        LLVMPositionBuilderAtEnd(s->b, after);
        for (int i = 0; i < different; i++)
            join_zero(s, combine, &partials[register_of(&x, registers, i)], end, before);
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
    for (int r = 0; r < count && !plan->warps; r++)
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
