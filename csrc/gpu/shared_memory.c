/* Places of scratch in shared memory. Scratch is in use only while its operation runs, so all of it could lie at offset
 * 0; but then each operation would have to wait for the readers of the one before. Small scratch therefore avoids what
 * may still be read when its operation begins (one barrier in each, none between them); large scratch shares. */
#include "gpu/flow.h"

enum { ALIGNMENT = 16, APART_LIMIT = 16 << 10 /* bytes: larger scratch is not kept apart */ };

typedef struct Buffer {
    Op *op;
    int number;
    int64_t bytes, offset;
    uint64_t *avoids; /* bit set of buffers */
} Buffer;

typedef struct Allocator {
    Arena *arena;
    const GpuOptions *options;
    TT_VECTOR(Buffer) buffers;
    int words;
} Allocator;

static void find_buffers(Op *op, void *context)
{
    Allocator *a = context;
    Buffer buffer = {.op = op, .number = a->buffers.count, .bytes = tt_scratch_bytes(op, a->options)};
    op->index = -1;
    if (!buffer.bytes)
        return;
    op->index = a->buffers.count;
    tt_push(a->arena, a->buffers, buffer);
}

static void note_pending(Flow *flow, Op *op, uint64_t *pending)
{
    Allocator *a = flow->context;
    Buffer *buffer = op->index >= 0 ? &a->buffers.data[op->index] : NULL;
    for (int i = 0; buffer && i < a->buffers.count; i++) {
        Buffer *other = &a->buffers.data[i];
        if (!(pending[i / 64] >> i % 64 & 1) || other == buffer || buffer->bytes + other->bytes > APART_LIMIT)
            continue;
        buffer->avoids[i / 64] |= 1ull << i % 64;
        other->avoids[op->index / 64] |= 1ull << op->index % 64;
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
            buffer->offset = (order[i]->offset + order[i]->bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
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

bool tt_allocate_shared_memory(Module *module, const GpuOptions *options)
{
    Function *function = module->functions;
    Allocator a = {.arena = module->arena, .options = options};
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
    sort_by_size(order, a.buffers.count);
    int64_t needed = 0;
    for (int i = 0; i < a.buffers.count; i++) {
        place(order[i], i, order);
        needed = TT_MAX(needed, order[i]->offset + order[i]->bytes);
        int64_t scratch[] = {order[i]->offset, order[i]->bytes};
        tt_set_attr(order[i]->op, tt_attr_ints(module, ATTR_scratch, scratch, 2, NULL));
    }
    if (needed > tt_shared_limit(options->sm))
        out_of_shared_memory(&a, order, needed);
    return a.buffers.count > 0;
}
