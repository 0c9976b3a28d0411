/* Stores that bypass the caches, for launches that write more than the caches hold: without them every line written is
 * first read from memory. A nest that may do so has its loop twice; which one runs is decided before it, from the launch's
 * `stream` flag, the alignment of the addresses and the masks, which must be true everywhere.
 *
 * A mask that is true at both ends of a row is true between them when it is made of comparisons of a run of integers
 * with one number, and of conjunctions. */
#include "cpu/lower.h"

enum { LIGHT = 48, MOST_NESTS = 8 }; /* the code is there twice: not for long programs */

/* ---- masks -------------------------------------------------------------------------------------------------------------- */

static bool is_run(const Nest *n, const Value *value)
{
    const AxisInfo *axes = axis_of(n->l, value);
    return tt_is_tile(value->type) && axes->contiguity[n->lane_dim] >= n->shape[n->lane_dim];
}

static bool is_level(const Nest *n, const Value *value)
{
    const AxisInfo *axes = axis_of(n->l, value);
    return !tt_is_tile(value->type) || axes->constancy[n->lane_dim] >= n->shape[n->lane_dim];
}

static bool is_comparison(const Op *op)
{
    return op->opcode == OP_lt_s || op->opcode == OP_le_s || op->opcode == OP_gt_s || op->opcode == OP_ge_s;
}

/* Is the mask true all along the lanes when it is true at their ends? */
static bool is_convex(const Nest *n, const Value *mask)
{
    const Op *op = mask->op;
    if (is_level(n, mask))
        return true;
    if (!op || mask->type->rank != n->rank)
        return false;
    if (op->opcode == OP_and)
        return is_convex(n, tt_operand(op, 0)) && is_convex(n, tt_operand(op, 1));
    if (op->opcode == OP_broadcast) {
        const Value *from = tt_operand(op, 0);
        return from->type->shape[n->lane_dim] == 1 || is_convex(n, from);
    }
    if (op->opcode == OP_expand_dims && n->rank > 1) {
        /* Along the lanes it is the operand: a comparison in one dimension. */
        const Value *from = tt_operand(op, 0);
        const Op *compare = from->op;
        if (from->type->rank != 1 || !compare || !is_comparison(compare))
            return false;
        const AxisInfo *a = axis_of(n->l, tt_operand(compare, 0)), *b = axis_of(n->l, tt_operand(compare, 1));
        int64_t extent = from->type->shape[0];
        return (a->contiguity[0] >= extent && b->constancy[0] >= extent) ||
               (b->contiguity[0] >= extent && a->constancy[0] >= extent);
    }
    if (!is_comparison(op))
        return false;
    const Value *a = tt_operand(op, 0), *b = tt_operand(op, 1);
    return (is_run(n, a) && is_level(n, b)) || (is_level(n, a) && is_run(n, b));
}

bool is_assumed_true(const Nest *n, const Value *mask, const Coord *coords)
{
    for (int i = 0; i < n->assumed_count; i++) {
        if (n->assumed[i] != mask)
            continue;
        for (int j = 0; j < n->rank; j++)
            if (coords[j].base != n->coords[j].base || coords[j].offset != n->coords[j].offset ||
                coords[j].stride != n->coords[j].stride)
                return false;
        return true;
    }
    return false;
}

/* ---- which nests ---------------------------------------------------------------------------------------------------------- */

static bool store_can_stream(Nest *n, const Op *store)
{
    const Value *pointer = tt_operand(store, 0), *value = tt_operand(store, 1);
    int bytes = n->width * tt_byte_width(value->type);
    const AxisInfo *axes = axis_of(n->l, pointer);
    bool consecutive = axes->contiguity[n->lane_dim] >= n->shape[n->lane_dim];
    bool keep = !strcmp(tt_string_attr(store, ATTR_evict, ""), "evict_last");
    return consecutive && !keep && (bytes == 16 || bytes == 32 || bytes == 64) && bytes <= n->e->widest &&
           (store->operand_count < 3 || is_convex(n, tt_operand(store, 2)));
}

bool can_stream(Nest *n)
{
    bool stores = false;
    if (!n->e->codegen->host.is_x86 || n->width < 2 || n->axis >= 0 || n->effort > LIGHT ||
        n->l->streaming_nests >= MOST_NESTS || n->shape[n->lane_dim] < n->width)
        return false;
    for (int i = 0; i < n->group->sinks.count; i++) {
        const Sink *sink = &n->group->sinks.data[i];
        if (sink->kind == SINK_STORE && !store_can_stream(n, sink->op))
            return false;
        stores |= sink->kind == SINK_STORE;
    }
    return stores;
}

/* ---- the condition ---------------------------------------------------------------------------------------------------------- */

static LLVMValueRef both(Nest *n, LLVMValueRef condition, Vec other)
{
    at_level(n, n->level);
    return LLVMBuildAnd(n->e->b, condition, other.v, "");
}

static LLVMValueRef is_aligned(Nest *n, Vec address, int bytes)
{
    Emit *e = n->e;
    at_level(n, n->level);
    LLVMValueRef low =
        LLVMBuildAnd(e->b, LLVMBuildPtrToInt(e->b, address.v, e->i64, ""), const_int(e->i64, bytes - 1), "");
    return LLVMBuildICmp(e->b, LLVMIntEQ, low, const_int(e->i64, 0), "");
}

LLVMValueRef stream_condition(Nest *n, int64_t end)
{
    Coord first[TT_MAX_RANK], last[TT_MAX_RANK];
    memcpy(first, n->coords, sizeof first);
    first[n->lane_dim] = zero_coord();
    memcpy(last, first, sizeof last);
    last[n->lane_dim] = const_coord(end - 1);
    LLVMValueRef condition = n->l->stream;
    n->assumed_count = 0;
    for (int i = 0; i < n->group->sinks.count; i++) {
        const Sink *sink = &n->group->sinks.data[i];
        if (sink->kind != SINK_STORE)
            continue;
        int bytes = n->width * tt_byte_width(tt_operand(sink->op, 1)->type);
        Vec aligned = {is_aligned(n, eval(n, tt_operand(sink->op, 0), first), bytes), n->level, true};
        condition = both(n, condition, aligned);
        if (sink->op->operand_count < 3 || n->assumed_count == (int)TT_COUNT(n->assumed))
            continue;
        Value *mask = tt_operand(sink->op, 2);
        condition = both(n, condition, eval(n, mask, first));
        condition = both(n, condition, eval(n, mask, last));
        n->assumed[n->assumed_count++] = mask;
    }
    return condition;
}

/* ---- how much is stored: the next launch of the kernel decides by it ------------------------------------------------------------- */

static LLVMValueRef counter_of(Lower *l)
{
    Emit *e = l->e;
    if (l->stored)
        return l->stored;
    l->stored = stack_slot(e, e->i64);
    LLVMBuilderRef b = LLVMCreateBuilderInContext(e->context);
    LLVMPositionBuilder(b, LLVMGetInstructionParent(l->stored), LLVMGetNextInstruction(l->stored));
    LLVMBuildStore(b, const_int(e->i64, 0), l->stored);
    LLVMDisposeBuilder(b);
    return l->stored;
}

void count_stores(Nest *n)
{
    Emit *e = n->e;
    int64_t bytes = 0;
    for (int i = 0; i < n->group->sinks.count; i++) {
        const Sink *sink = &n->group->sinks.data[i];
        if (sink->kind == SINK_STORE)
            bytes += n->group->space->count * tt_byte_width(tt_operand(sink->op, 1)->type);
    }
    LLVMValueRef counter = counter_of(n->l), before = emit_load(e, e->i64, counter, 8);
    emit_store(e, LLVMBuildAdd(e->b, before, const_int(e->i64, bytes), ""), counter, 8);
}

void report_stores(Lower *l)
{
    Emit *e = l->e;
    if (!l->stored)
        return;
    LLVMValueRef total = emit_offset(e, l->launch, offsetof(CpuLaunch, stored_bytes));
    LLVMBuildAtomicRMW(e->b, LLVMAtomicRMWBinOpAdd, total, emit_load(e, e->i64, l->stored, 8),
                       LLVMAtomicOrderingMonotonic, false);
}

void mark_streaming(Emit *e, LLVMValueRef store, int align)
{
    LLVMMetadataRef one = LLVMValueAsMetadata(const_int(e->i32, 1));
    LLVMMetadataRef node = LLVMMDNodeInContext2(e->context, &one, 1);
    LLVMSetAlignment(store, (unsigned)align);
    LLVMSetMetadata(store, LLVMGetMDKindIDInContext(e->context, "nontemporal", 11),
                    LLVMMetadataAsValue(e->context, node));
}
