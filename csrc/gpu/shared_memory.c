/* Places in shared memory. What lives at the same time lies apart: a buffer lives from its allocation to its last use, in
 * all of a loop that it was not made in, and until the products that read it are waited for; scratch lives while its
 * operation runs. So all scratch could lie in one place; but then each operation would have to wait for the readers of the
 * one before. Small scratch therefore avoids what may still be read when its operation begins (one barrier in each, none
 * between them); large scratch shares. Where all of it is too much, tiles that change their layout cross in halves, of
 * halves if need be, for two barriers each: a loop keeps its slots. */
#include "gpu/flow.h"

enum {
    ALIGNMENT = 16,
    APART_LIMIT = 16 << 10, /* bytes: larger scratch is not kept apart */
};

typedef struct Buffer {
    Op *op;
    int number;
    int64_t bytes, offset, alignment;
    int first, last;  /* of the operations that it is in use in, by their numbers */
    uint64_t *avoids; /* bit set of buffers */
} Buffer;

typedef struct Allocator {
    Arena *arena;
    const GpuOptions *options;
    TT_VECTOR(Buffer) buffers;
    Map numbers,
        ends; /* Op* -> its number in the order of the text, and that of its regions' last, plus one */
    int words, operations;
} Allocator;

/* ---- how long a buffer lives ----------------------------------------------------------------------------------------------------------- */

static void number_operations(Allocator *a, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        *tt_map_slot_ptr(&a->numbers, op) = (void *)(intptr_t)++a->operations;
        for (int i = 0; i < op->region_count; i++)
            number_operations(a, op->regions[i]);
        *tt_map_slot_ptr(&a->ends, op) = (void *)(intptr_t)a->operations;
    }
}

static int number_of(const Map *numbers, const Op *op) { return (int)(intptr_t)tt_map_find_ptr(numbers, op); }

/* Until this operation, or the end of the outermost loop around it that `from` is not in. */
static void live_until(const Allocator *a, Buffer *buffer, const Op *op)
{
    int last = number_of(&a->numbers, op);
    for (const Op *around = op; around; around = around->parent->op)
        if (tt_is_loop(around) && number_of(&a->numbers, around) > buffer->first)
            last = number_of(&a->ends, around);
    buffer->last = TT_MAX(buffer->last, last);
}

/* Follows views of a buffer, and what a product that reads it gives, to its waits. */
static void follow_uses(const Allocator *a, Buffer *buffer, const Value *value, Map *seen)
{
    if (tt_map_find_ptr(seen, value))
        return;
    *tt_map_slot_ptr(seen, value) = (void *)value;
    TT_FOR_USES(use, value)
    {
        const Op *op = use->user;
        live_until(a, buffer, op);
        bool waits = op->opcode == OP_wgmma_wait && !tt_int_attr(op, ATTR_left, 0);
        bool passes = op->opcode == OP_smem_view || op->opcode == OP_smem_permute || op->opcode == OP_wgmma ||
                      (op->opcode == OP_wgmma_wait && !waits);
        if (passes)
            follow_uses(a, buffer, op->results[0], seen);
        if (op->opcode == OP_yield && op->parent->op)
            for (int i = 0; i < op->operand_count; i++)
                if (tt_operand(op, i) == value)
                    follow_uses(a, buffer, op->parent->op->results[i], seen);
    }
}

static void find_buffers(Op *op, void *context)
{
    Allocator *a = context;
    Buffer buffer = {.op = op,
                     .number = a->buffers.count,
                     .bytes = tt_scratch_bytes(op, a->options),
                     .alignment = ALIGNMENT};
    op->index = -1;
    if (!buffer.bytes)
        return;
    buffer.first = buffer.last = number_of(&a->numbers, op);
    if (op->opcode == OP_smem_alloc) {
        Map seen = {.arena = a->arena};
        follow_uses(a, &buffer, op->results[0], &seen);
        buffer.alignment = tt_buffer_alignment(op->results[0]);
    } else {
        op->index = a->buffers.count;
    }
    tt_push(a->arena, a->buffers, buffer);
}

static void avoid(Buffer *a, Buffer *b)
{
    a->avoids[b->number / 64] |= 1ull << b->number % 64;
    b->avoids[a->number / 64] |= 1ull << a->number % 64;
}

static void note_pending(Flow *flow, Op *op, uint64_t *pending)
{
    Allocator *a = flow->context;
    Buffer *buffer = op->index >= 0 ? &a->buffers.data[op->index] : NULL;
    for (int i = 0; buffer && i < a->buffers.count; i++) {
        Buffer *other = &a->buffers.data[i];
        if (!(pending[i / 64] >> i % 64 & 1) || other == buffer || buffer->bytes + other->bytes > APART_LIMIT)
            continue;
        avoid(buffer, other);
    }
}

static void avoid_what_lives(Allocator *a)
{
    for (int i = 0; i < a->buffers.count; i++)
        for (int j = 0; j < i; j++) {
            Buffer *x = &a->buffers.data[i], *y = &a->buffers.data[j];
            if (x->first <= y->last && y->first <= x->last)
                avoid(x, y);
        }
}

static bool overlap(const Buffer *a, const Buffer *b)
{
    return a->offset < b->offset + b->bytes && b->offset < a->offset + a->bytes;
}

/* The lowest place past everything already placed that the buffer avoids and would overlap. */
static void place(Buffer *buffer, int placed, Buffer **order)
{
    buffer->offset = 0;
    for (bool moved = true; moved;) {
        moved = false;
        for (int i = 0; i < placed; i++) {
            int index = order[i]->number;
            if (!(buffer->avoids[index / 64] >> index % 64 & 1) || !overlap(buffer, order[i]))
                continue;
            int64_t end = order[i]->offset + order[i]->bytes;
            buffer->offset = (end + buffer->alignment - 1) / buffer->alignment * buffer->alignment;
            moved = true;
        }
    }
}

static void sort_by_size(Buffer **order, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = i; j > 0 && order[j - 1]->bytes < order[j]->bytes; j--) {
            Buffer *swap = order[j];
            order[j] = order[j - 1];
            order[j - 1] = swap;
        }
}

static _Noreturn void out_of_shared_memory(Allocator *a, Buffer **order, int64_t needed)
{
    Diagnostic diag = {.kind = TT_OUT_OF_RESOURCES,
                       .loc = order[0]->op->loc,
                       .resource = "shared memory",
                       .needed = needed,
                       .available = tt_shared_limit(a->options->sm)};
    diag.message = tt_arena_format(a->arena, "a program needs %lld bytes, and sm_%d has %lld for each",
                                   (long long)needed, a->options->sm, (long long)diag.available);
    diag.remedy = "use smaller tiles here, or a smaller num_stages";
    for (int i = 0; a->buffers.count > 1 && i < TT_MIN(a->buffers.count, (int)TT_COUNT(diag.notes)); i++) {
        const char *name = tt_op_infos[order[i]->op->opcode].name;
        diag.notes[i].loc = order[i]->op->loc;
        diag.notes[i].message =
            tt_arena_format(a->arena, "'%s' takes %lld bytes", name, (long long)order[i]->bytes);
        diag.note_count++;
    }
    tt_raise(&diag);
}

/* Of everything. */
static int64_t place_all(const Allocator *a, Buffer **order)
{
    int64_t needed = 0;
    sort_by_size(order, a->buffers.count);
    for (int i = 0; i < a->buffers.count; i++) {
        place(order[i], i, order);
        needed = TT_MAX(needed, order[i]->offset + order[i]->bytes);
    }
    return needed;
}

static bool halve_largest(const Allocator *a, Buffer **order)
{
    for (int i = 0; i < a->buffers.count; i++) {
        int64_t half = tt_half_scratch(order[i]->op, order[i]->bytes);
        if (half) {
            order[i]->bytes = half;
            return true;
        }
    }
    return false;
}

bool tt_gpu_shared_memory(Module *module, const GpuOptions *options, Arena *scratch)
{
    Function *function = module->functions;
    Allocator a = {.arena = scratch, .options = options};
    a.numbers.arena = a.ends.arena = a.arena;
    number_operations(&a, function->body);
    tt_take_marks(function);
    tt_walk(function->body, find_buffers, &a);
    a.words = (a.buffers.count + 63) / 64 + 1;
    Buffer **order = TT_NEW_ARRAY(a.arena, Buffer *, a.buffers.count);
    for (int i = 0; i < a.buffers.count; i++) {
        a.buffers.data[i].avoids = TT_NEW_ARRAY(a.arena, uint64_t, a.words);
        order[i] = &a.buffers.data[i];
    }
    Flow flow = {.arena = a.arena, .context = &a, .ids = a.buffers.count, .visit = note_pending};
    tt_flow_region(&flow, function->body);
    tt_return_marks(function);
    avoid_what_lives(&a);
    int64_t needed = place_all(&a, order), limit = tt_shared_limit(options->sm);
    bool has_strips = options->strips > 1; /* whose elements do not cross at once */
    while (needed > limit && !has_strips && halve_largest(&a, order))
        needed = place_all(&a, order);
    if (needed > limit)
        out_of_shared_memory(&a, order, needed);
    for (int i = 0; i < a.buffers.count; i++) {
        int64_t scratch[] = {order[i]->offset, order[i]->bytes};
        tt_set_attr(order[i]->op, tt_attr_ints(module, ATTR_scratch, scratch, 2, NULL));
    }
    return a.buffers.count > 0;
}
