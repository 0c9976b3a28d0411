/* Operands that a pipelined loop computes for its products (converts, say, or scales): kept in slots, so that a product is under
 * way while the next one's operands are computed.
 *
 * Iteration i puts them into slot i mod 2, and its threads meet before they multiply. The product of iteration i - 2, which
 * read that slot, has ended in a thread when it has begun the one of i - 1, and in all threads when they meet at the beginning
 * of i. */
#include "gpu/pipeline.h"

enum { SLOTS = 2, ROW_BYTES = 32 /* that wgmma reads at least */ };

/* ---- which ---------------------------------------------------------------------------------------------------------------- */

static const LinearLayout *layout_in_slots(const Pipeline *p, const Value *tile)
{
    int bytes = tt_byte_width(tile->type), axis = bytes == 2 ? tt_staged_axis(p->axis_infos, tile, 1) : 1;
    bool has_rows = tt_next_pow2(tile->type->shape[axis]) * bytes >= ROW_BYTES;
    return has_rows ? tt_buffer_layout(p->module, tile->type, axis) : NULL;
}

bool pipeline_note_computed(Pipeline *p, const Op *product, int operand)
{
    Value *value = tt_operand(product, operand);
    bool is_buffer = tt_is_buffer(value->type);
    const Value *source = tt_before_permutes(value);
    if (!source->op || source->op->parent != p->loop.body)
        return false;
    if (is_buffer ? source->op->opcode != OP_smem_alloc || !source->op->operand_count
                  : source->op->opcode == OP_load || tt_find_attr(product, ATTR_raised))
        return false;
    Computed computed = {.source = is_buffer ? source->op->results[0] : value};
    computed.layout = is_buffer ? source->layout : layout_in_slots(p, value);
    for (int i = 0; i < p->computed.count; i++)
        if (p->computed.data[i].source == computed.source)
            return true;
    if (computed.layout)
        tt_push(p->scratch, p->computed, computed);
    return computed.layout;
}

static const Type *slots_type(const Pipeline *p, const Computed *computed)
{
    const Type *type = computed->source->type;
    const Type *tile = tt_is_buffer(type) ? tt_operand(computed->source->op, 0)->type : type;
    return tt_buffer_type(p->module, tile, SLOTS);
}

int64_t pipeline_computed_bytes(const Pipeline *p)
{
    int64_t bytes = 0;
    for (int i = 0; i < p->computed.count; i++) {
        const Computed *computed = &p->computed.data[i];
        int64_t slot = (int64_t)tt_byte_width(computed->source->type)
                       << tt_layout_out_total(computed->layout);
        bytes += slot * (tt_is_buffer(computed->source->type) ? SLOTS - 1 : SLOTS);
    }
    return bytes;
}

/* ---- through slots --------------------------------------------------------------------------------------------------------- */

static void allocate(Pipeline *p, Computed *computed)
{
    const Type *type = slots_type(p, computed);
    Builder b = p->before;
    b.loc = computed->source->op->loc;
    computed->buffer = tt_build_op(&b, OP_smem_alloc, NULL, 0, &type, 1, NULL)->results[0];
    computed->buffer->layout = computed->layout;
    computed->buffer->name = computed->source->name;
}

/* Stores it in `slot` where it was put into a buffer of the iteration, or else as soon as there is something to store. */
static void store(const Computed *computed, Value *slot)
{
    Value *source = computed->source, *tile = source;
    Builder b = tt_builder_after(source->op);
    b.loc = source->op->loc;
    if (tt_is_buffer(source->type))
        tile = tt_operand(source->op, 0);
    const Type *type = tt_buffer_type(b.module, tile->type, 1);
    Value *view =
        tt_build_op(&b, OP_smem_view, (Value *[]){computed->buffer, slot}, 2, &type, 1, NULL)->results[0];
    view->layout = computed->layout;
    tt_build_op(&b, OP_smem_store, (Value *[]){tile, view}, 2, NULL, 0,
                tt_attr_int(b.module, ATTR_proxy, 1, NULL));
    if (tile != source) {
        tt_replace_all_uses(source, view);
        tt_erase_op(source->op);
        return;
    }
    TT_FOR_USES_SAFE(use, source)
    if (use->user->opcode == OP_wgmma && tt_operand(use->user, 0) == source &&
        !tt_find_attr(use->user, ATTR_raised))
        tt_set_operand(use->user, 0, view);
}

static bool is_in_slots(const Pipeline *p, const Value *value)
{
    value = tt_before_permutes(value);
    for (int i = 0; tt_def(value, OP_smem_view) && i < p->computed.count; i++)
        if (tt_operand(value->op, 0) == p->computed.data[i].buffer)
            return true;
    return false;
}

/* Does the operation access a slot, or one in its branches? */
static bool accesses_slots(const Pipeline *p, const Op *op)
{
    for (int i = 0; i < op->operand_count; i++)
        if (is_in_slots(p, tt_operand(op, i)))
            return op->opcode != OP_smem_permute;
    for (int r = 0; r < op->region_count; r++)
        TT_FOR_OPS(inner, op->regions[r])
    if (accesses_slots(p, inner))
        return true;
    return false;
}

/* Threads meet between stores and what reads them: the waits of the loop keep apart the slots alone. */
static void meet_before_reads(Pipeline *p)
{
    bool has_stored = false;
    TT_FOR_OPS(op, p->loop.body)
    {
        if (!accesses_slots(p, op))
            continue;
        if (op->opcode != OP_smem_store && has_stored) {
            Builder b = tt_builder_before(op);
            tt_build_op(&b, OP_barrier, NULL, 0, NULL, 0, NULL);
        }
        has_stored = op->opcode == OP_smem_store;
    }
}

void pipeline_rewrite_computed(Pipeline *p)
{
    if (!p->computed.count)
        return;
    tt_set_attr(p->loop.op, tt_attr_int(p->module, ATTR_computes, 1, NULL));
    const Type *i32 = tt_scalar_type(p->module, TT_I32);
    int carried = tt_add_carried(&p->loop, tt_build_int(&p->before, i32, 0));
    Value *slot = tt_carried(&p->loop, carried);
    tt_set_operand(p->loop.yield, carried,
                   tt_build2(&p->inside, OP_sub, tt_build_int(&p->inside, i32, SLOTS - 1), slot));
    for (int i = 0; i < p->computed.count; i++) {
        allocate(p, &p->computed.data[i]);
        store(&p->computed.data[i], slot);
    }
    meet_before_reads(p);
}
