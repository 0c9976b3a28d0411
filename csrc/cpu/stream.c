/* Stores that bypass the caches, for launches that write more than the caches hold: without them every line written is
 * first read from memory. A nest that may do so has its loop twice; which one runs is decided before it, from the launch's
 * `stream` flag, the alignment of the addresses and the masks, which must be true everywhere (prefix.c). */
#include "cpu/lower.h"

enum { LIGHT = 48, MOST_NESTS = 8 }; /* the code is there twice: not for long programs */

/* ---- which nests ---------------------------------------------------------------------------------------------------------- */

static bool store_can_stream(Nest *n, const Op *store)
{
    const Value *pointer = tt_operand(store, 0), *value = tt_operand(store, 1);
    int bytes = n->width * tt_byte_width(value->type);
    const AxisInfo *axes = axis_of(n->l, pointer);
    bool consecutive = axes->contiguity[n->lane_dim] >= n->shape[n->lane_dim];
    bool keep = !strcmp(tt_string_attr(store, ATTR_evict, ""), "evict_last");
    return consecutive && !keep && (bytes == 16 || bytes == 32 || bytes == 64) && bytes <= n->e->widest &&
           (store->operand_count < 3 || has_reach(n, tt_operand(store, 2), n->lane_dim));
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
    Emit *e = n->e;
    Coord first[TT_MAX_RANK];
    memcpy(first, n->coords, sizeof first);
    first[n->lane_dim] = zero_coord();
    LLVMValueRef condition = n->l->stream, reach = emit_reach(n, n->lane_dim);
    at_level(n, n->level);
    if (reach)
        condition = LLVMBuildAnd(e->b, condition,
                                 LLVMBuildICmp(e->b, LLVMIntSGE, reach, const_int(e->i64, end), ""), "");
    for (int i = 0; i < n->group->sinks.count; i++) {
        const Sink *sink = &n->group->sinks.data[i];
        if (sink->kind != SINK_STORE)
            continue;
        int bytes = n->width * tt_byte_width(tt_operand(sink->op, 1)->type);
        LLVMValueRef aligned = is_aligned(n, eval(n, tt_operand(sink->op, 0), first), bytes);
        condition = LLVMBuildAnd(e->b, condition, aligned, "");
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
