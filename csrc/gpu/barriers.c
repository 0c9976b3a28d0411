/* Barriers where one thread's access must wait for others:
 *  - before an operation whose scratch overlaps what may still be read;
 *  - between accesses of overlapping buffers of which one writes, but for those of one buffer's several slots, which its
 *    pipeline's waits keep apart;
 *  - between accesses through one pointer parameter of which one writes, unless each thread goes to its own elements
 *    again: what a program stores it can load, as if it were one thread;
 *  - around the atomics by which programs speak to each other. Those on scalars are done by one thread for the whole
 *    program: a release comes after what all threads did, and what they do next comes after an acquire. */
#include "gpu/flow.h"
#include <stdlib.h>

/* A load, store or atomic of global memory. */
typedef struct Memory {
    Op *op;
    int param;        /* that its pointers come from, or -1 */
    int first, count; /* the accesses through the same one, in Barriers.memory */
    const Value *base;
    Residues offsets; /* from the base */
    OffsetSum sum;    /* and their terms */
} Memory;

/* An operation's access of a buffer. */
typedef struct Shared {
    const Op *op, *alloc;
    bool writes;
} Shared;

typedef struct Barriers {
    Arena *arena;
    TT_VECTOR(Op *) scratch;  /* by Op.index */
    TT_VECTOR(Memory) memory; /* in the order of parameters */
    TT_VECTOR(Shared) shared;
    Map memory_ids; /* Op* -> index in memory, plus one */
    Map shared_ids; /* Op* -> index of its first in shared, plus one; its others follow */
    ParamPointers *pointers;
    int acquired; /* id: one thread has acquired */
} Barriers;

static bool has_scalar_pointer(const Op *op) { return !tt_is_tile(tt_operand(op, 0)->type); }

static void add_shared(Barriers *b, const Op *op, const Value *buffer, bool writes)
{
    while (buffer->op->opcode != OP_smem_alloc)
        buffer = tt_operand(buffer->op, 0);
    tt_push(b->arena, b->shared, ((Shared){.op = op, .alloc = buffer->op, .writes = writes}));
}

/* The products whose results a value may be, in this or an earlier iteration. */
static void add_products(Barriers *b, const Op *wait, const Value *value)
{
    const Op *op = value->op;
    while (op && (tt_is_loop(op) || op->opcode == OP_if || op->opcode == OP_wgmma_wait)) {
        if (op->opcode == OP_if)
            add_products(b, wait, tt_operand(op->regions[0]->last, value->index));
        value = op->opcode == OP_wgmma_wait
                    ? tt_operand(op, 0)
                    : tt_operand(op->regions[op->region_count - 1]->last, value->index);
        op = value->op;
    }
    for (; op && op->opcode == OP_wgmma; op = tt_operand(op, 2)->op)
        for (int i = 0; i < 2; i++)
            if (tt_is_buffer(tt_operand(op, i)->type))
                add_shared(b, wait, tt_operand(op, i), false);
}

/* A product reads its buffers until it is waited for. */
static void note_buffers(Barriers *b, Op *op)
{
    int before = b->shared.count;
    if (op->opcode == OP_smem_alloc && op->operand_count)
        add_shared(b, op, op->results[0], true);
    else if (op->opcode == OP_wgmma_wait)
        add_products(b, op, tt_operand(op, 0));
    else if (!tt_has(op, PURE) || op->opcode == OP_dot)
        for (int i = 0; i < op->operand_count; i++)
            if (tt_is_buffer(tt_operand(op, i)->type))
                add_shared(b, op, tt_operand(op, i), tt_has(op, SMEM_WRITES));
    if (b->shared.count > before)
        *tt_map_slot_ptr(&b->shared_ids, op) = (void *)(intptr_t)(before + 1);
}

static void number_accesses(Op *op, void *context)
{
    Barriers *b = context;
    op->index = -1;
    note_buffers(b, op);
    if (tt_find_attr(op, ATTR_scratch) && op->opcode != OP_smem_alloc) {
        op->index = b->scratch.count;
        tt_push(b->arena, b->scratch, op);
    }
    if (tt_has(op, ACCESS)) {
        Memory memory = {.op = op, .param = tt_pointer_param(b->pointers, tt_operand(op, 0))};
        memory.offsets = tt_pointer_residues(tt_operand(op, 0), &memory.base);
        memory.sum = tt_offset_sum(tt_operand(op, 0));
        tt_push(b->arena, b->memory, memory);
    }
}

static int by_param(const void *a, const void *b)
{
    return ((const Memory *)a)->param - ((const Memory *)b)->param;
}

/* Puts the accesses through one parameter side by side, so that an operation is compared with those alone. */
static void group_accesses(Barriers *b)
{
    Memory *memory = b->memory.data;
    int count = b->memory.count;
    if (count)
        qsort(memory, (size_t)count, sizeof *memory, by_param);
    for (int first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && memory[end].param == memory[first].param;)
            end++;
        for (int i = first; i < end; i++) {
            memory[i].first = first;
            memory[i].count = end - first;
            *tt_map_slot_ptr(&b->memory_ids, memory[i].op) = (void *)(intptr_t)(i + 1);
        }
    }
}

/* Index in b->memory, or -1. */
static int memory_index(const Barriers *b, const Op *op)
{
    return (int)(intptr_t)tt_map_find_ptr(&b->memory_ids, op) - 1;
}

static int shared_index(const Barriers *b, const Op *op)
{
    return (int)(intptr_t)tt_map_find_ptr(&b->shared_ids, op) - 1;
}

static bool is_atomic(const Op *op) { return tt_has(op, ACCESS) && tt_has(op, READS) && tt_has(op, WRITES); }

static bool has_order(const Op *op, const char *order)
{
    const char *sem = tt_string_attr(op, ATTR_sem, "acq_rel");
    return !strcmp(sem, order) || !strcmp(sem, "acq_rel");
}

static bool is_scalar_atomic(const Op *op) { return is_atomic(op) && has_scalar_pointer(op); }

bool tt_releases(const Op *op) { return is_scalar_atomic(op) && has_order(op, "release"); }

bool tt_acquires(const Op *op) { return is_scalar_atomic(op) && has_order(op, "acquire"); }

/* ---- hazards -------------------------------------------------------------------------------------------------------------------------- */

static bool scratch_overlaps(const Op *a, const Op *b)
{
    const int64_t *x = tt_find_attr(a, ATTR_scratch)->ints, *y = tt_find_attr(b, ATTR_scratch)->ints;
    return x[0] < y[0] + y[1] && y[0] < x[0] + x[1];
}

static bool shared_conflicts(const Shared *a, const Shared *b)
{
    if (a->alloc == b->alloc && a->alloc->results[0]->type->slots > 1)
        return false;
    return (a->writes || b->writes) && scratch_overlaps(a->alloc, b->alloc);
}

/* Must the operation wait because of a buffer that it, or an access under way, works in? */
static bool must_wait_for_buffer(const Flow *flow, const Op *op, const uint64_t *pending)
{
    const Barriers *b = flow->context;
    int first = b->acquired + 1, own = shared_index(b, op);
    for (int i = 0; i < b->shared.count; i++) {
        const Shared *other = &b->shared.data[i];
        if (!tt_flow_has(pending, first + i))
            continue;
        if (op->index >= 0 && scratch_overlaps(op, other->alloc))
            return true;
        for (int j = own; j >= 0 && j < b->shared.count && b->shared.data[j].op == op; j++)
            if (shared_conflicts(&b->shared.data[j], other))
                return true;
    }
    for (int i = 0; own >= 0 && b->shared.data[own].writes && i < b->scratch.count; i++)
        if (tt_flow_has(pending, i) && scratch_overlaps(b->shared.data[own].alloc, b->scratch.data[i]))
            return true;
    return false;
}

/* Does each thread access the same elements in both, and no other thread any of them? A pointer that moves in a loop is
 * taken to move on to other elements. */
static bool stays_in_thread(const Op *a, const Op *b)
{
    const Value *pointer = tt_operand(a, 0);
    return pointer == tt_operand(b, 0) && pointer->layout &&
           !tt_layout_replication(pointer->layout, LAYOUT_LANE) &&
           !tt_layout_replication(pointer->layout, LAYOUT_WARP);
}

/* Can an element be accessed by both, in whatever iteration? */
static bool may_meet(const Memory *a, const Memory *b)
{
    return !a->base || a->base != b->base ||
           tt_element(tt_operand(a->op, 0)->type) != tt_element(tt_operand(b->op, 0)->type) ||
           (tt_residues_meet(a->offsets, b->offsets) && tt_offset_sums_meet(&a->sum, &b->sum));
}

static bool memory_conflicts(const Memory *a, const Memory *b)
{
    return a->param == b->param && (tt_has(a->op, WRITES) || tt_has(b->op, WRITES)) &&
           !(is_atomic(a->op) && is_atomic(b->op)) && !stays_in_thread(a->op, b->op) && may_meet(a, b);
}

/* The first of `count` accesses from number `id` on that is under way, or -1. */
static int next_pending(const uint64_t *pending, int id, int count)
{
    for (int end = id + count; id < end; id = (id / 64 + 1) * 64) {
        uint64_t word = pending[id / 64] >> id % 64;
        if (word)
            return id + __builtin_ctzll(word) < end ? id + __builtin_ctzll(word) : -1;
    }
    return -1;
}

static bool waits_for_memory(const Barriers *b, const Memory *own, const uint64_t *pending)
{
    int base = b->scratch.count, end = base + own->first + own->count;
    if (tt_releases(own->op))
        return next_pending(pending, base, b->memory.count) >= 0;
    for (int id = base + own->first; (id = next_pending(pending, id, end - id)) >= 0; id++)
        if (memory_conflicts(own, &b->memory.data[id - base]))
            return true;
    return false;
}

static bool must_wait(const Flow *flow, const Op *op, const uint64_t *pending)
{
    const Barriers *b = flow->context;
    for (int i = 0; op->index >= 0 && (i = next_pending(pending, i, b->scratch.count - i)) >= 0; i++)
        if (scratch_overlaps(op, b->scratch.data[i]))
            return true;
    if (op->opcode != OP_wgmma_wait && must_wait_for_buffer(flow, op, pending))
        return true;
    int own = memory_index(b, op);
    if (own < 0)
        return false;
    if (waits_for_memory(b, &b->memory.data[own], pending))
        return true;
    bool one_thread = has_scalar_pointer(op) && tt_has(op, WRITES);
    return !one_thread && tt_flow_has(pending, b->acquired);
}

/* ---- the pass -------------------------------------------------------------------------------------------------------------------------- */

static void add_access(Flow *flow, const Op *op, uint64_t *pending, int id)
{
    tt_flow_add(pending, id);
    if (op->opcode == OP_async_copy || op->opcode == OP_tensor_copy)
        tt_flow_add(flow->in_flight, id);
}

static void visit(Flow *flow, Op *op, uint64_t *pending)
{
    Barriers *b = flow->context;
    int memory = memory_index(b, op);
    for (int i = shared_index(b, op); i >= 0 && i < b->shared.count && b->shared.data[i].op == op; i++)
        add_access(flow, op, pending, b->acquired + 1 + i);
    if (memory < 0)
        return;
    add_access(flow, op, pending, b->scratch.count + memory);
    if (tt_acquires(op))
        tt_flow_add(pending, b->acquired);
}

bool tt_gpu_barriers(Module *module, const GpuOptions *options, Arena *scratch)
{
    (void)options;
    Function *function = module->functions;
    Barriers b = {.arena = scratch, .memory_ids = {.arena = scratch}, .shared_ids = {.arena = scratch}};
    b.pointers = tt_analyze_param_pointers(function, scratch);
    tt_take_marks(function);
    tt_walk(function->body, number_accesses, &b);
    group_accesses(&b);
    b.acquired = b.scratch.count + b.memory.count;
    Flow flow = {.arena = scratch,
                 .context = &b,
                 .ids = b.acquired + 1 + b.shared.count,
                 .must_wait = must_wait,
                 .visit = visit};
    tt_flow_region(&flow, function->body);
    tt_return_marks(function);
    return flow.inserted;
}
