/* Left operands of products in two halves of K: one half is read from a buffer, and perhaps computed, while the other one is
 * multiplied, from registers. */
#include "gpu/pipeline.h"

/* ---- which -------------------------------------------------------------------------------------------------------------------- */

/* Is it computed such that parts of the result follow from parts of its operands? */
static bool is_made_in_parts(const Op *op)
{
    return tt_is_pure(op) && op->result_count == 1 && tt_has(op, ELEMENTWISE | SHAPE | ONE_LAYOUT);
}

/* Bytes in memory of an element of what is copied ahead, that the loop makes a tile of such that each part of it can be read and
 * computed for itself: of several the most. Op * -> bytes, of operations that make such tiles. */
static Map find_made(const Pipeline *p)
{
    Map made = {.arena = p->scratch};
    for (int i = 0; i < p->loads.count; i++) {
        const Staged *staged = &p->loads.data[i];
        const Value *tile = staged->read ? staged->read : staged->load->results[0];
        if (staged->is_async && tt_is_tile(tile->type) && tile->op)
            *tt_map_slot_ptr(&made, tile->op) = (void *)(intptr_t)tt_byte_width(tile->type);
    }
    TT_FOR_OPS(op, p->loop.body)
    {
        intptr_t most = 0;
        for (int i = 0; i < op->operand_count && is_made_in_parts(op); i++)
            most = TT_MAX(most, (intptr_t)tt_map_find_ptr(&made, tt_operand(op, i)->op));
        if (most)
            *tt_map_slot_ptr(&made, op) = (void *)most;
    }
    return made;
}

bool pipeline_computes_left(const Pipeline *p, const Op *product)
{
    const Op *left = tt_before_permutes(tt_operand(product, 0))->op;
    Map made = find_made(p);
    return left && left->opcode != OP_load && tt_is_tile(left->results[0]->type) &&
           tt_map_find_ptr(&made, left);
}

bool pipeline_can_halve(const Pipeline *p, const Op *product)
{
    enum { MANY_WARPS = 16 };
    const Type *a = tt_operand(product, 0)->type, *sum = product->results[0]->type;
    Map made = find_made(p);
    int products = 0,
        bytes = tt_is_tile(a) ? (int)(intptr_t)tt_map_find_ptr(&made, tt_operand(product, 0)->op) : 0;
    bool is_widened = bytes < tt_byte_width(a),
         is_read = tt_def(tt_before_permutes(tt_operand(product, 0)), OP_load);
    if (!bytes || sum->count * tt_byte_width(sum) / 4 < TT_REGISTERS / 2 || p->options->num_warps < 8 ||
        (p->options->num_warps >= MANY_WARPS && !is_widened))
        return false;
    TT_FOR_OPS(op, p->loop.body)
    products += op->opcode == OP_wgmma;
    int64_t steps = a->shape[1] * tt_byte_width(a) / STEP_BYTES;
    return products == 1 && steps >= (is_widened || is_read ? 2 : 4);
}

/* ---- parts of what is read and computed -------------------------------------------------------------------------------------- */

/* A part of a tile: along this axis (-1: all of it), from, to. */
typedef struct Part {
    int64_t at[3];
} Part;

static const Part all = {{-1, 0, 0}};

/* The part of an operand that the result's part consists of. */
static Part part_of(const Op *op, const Value *operand, const Part *whole)
{
    const Type *from = operand->type, *to = op->results[0]->type;
    int64_t axis = whole->at[0], inner = 1, source_inner = 1;
    Part part = *whole;
    if (axis < 0 || !tt_is_tile(from))
        return all;
    switch (op->opcode) {
    case OP_permute:
        part.at[0] = tt_find_attr(op, ATTR_order)->ints[axis];
        return part;
    case OP_expand_dims:
        part.at[0] -= axis > tt_int_attr(op, ATTR_axis, 0);
        return axis == tt_int_attr(op, ATTR_axis, 0) ? all : part;
    case OP_broadcast:
        return from->shape[axis] == to->shape[axis] ? part : all;
    case OP_reshape:
        for (int i = to->rank - 1; i > axis; i--)
            inner *= to->shape[i];
        for (int i = from->rank - 1; i >= 0; source_inner *= from->shape[i--])
            if (source_inner * from->shape[i] == inner * to->shape[axis] && from->shape[i] > 1) {
                part = (Part){{i, whole->at[1] * inner / source_inner, whole->at[2] * inner / source_inner}};
                bool fits = part.at[1] * source_inner == whole->at[1] * inner &&
                            part.at[2] * source_inner == whole->at[2] * inner;
                return fits ? part : all;
            }
        return all;
    default:
        return tt_has(op, ELEMENTWISE) ? part : all;
    }
}

static void need(const Pipeline *p, Map *parts, const Value *value, Part part)
{
    if (!value->op)
        return;
    void **slot = tt_map_slot_ptr(parts, value->op);
    if (*slot) {
        Part *known = *slot;
        *known = memcmp(known, &part, sizeof part) ? all : part;
    } else {
        *slot = TT_NEW(p->scratch, Part);
        *(Part *)*slot = part;
    }
}

/* Op * -> Part *: what the product multiplies, and what it is made of. */
static Map find_parts(const Pipeline *p, const Map *made, const Op *product)
{
    Map parts = {.arena = p->scratch};
    const Attr *k = tt_find_attr(product, ATTR_k);
    need(p, &parts, tt_operand(product, 0), (Part){{1, k->ints[0], k->ints[1]}});
    for (const Op *op = product->previous; op; op = op->previous) {
        const Part *part = tt_map_find_ptr(&parts, op);
        for (int i = 0; part && i < op->operand_count && tt_map_find_ptr(made, op); i++)
            need(p, &parts, tt_operand(op, i), part_of(op, tt_operand(op, i), part));
    }
    return parts;
}

/* Reads and computes for itself, in front of `before`, what the product multiplies. What is to be computed with is read as early
 * as the whole is, so as not to be waited for. Returns the parts of all that is made for the whole. */
static Map make_part(Pipeline *p, const Map *made, Op *product, Op *before)
{
    Map parts = find_parts(p, made, product), copies = {.arena = p->scratch};
    for (Op *op = p->loop.body->first; op != product; op = op->next) {
        const Part *part = tt_map_find_ptr(&parts, op);
        if (!part || !tt_map_find_ptr(made, op))
            continue;
        bool is_read = op->opcode == OP_smem_load;
        bool is_early = is_read && !tt_goes_only_to(pipeline_is_fragment, op->results[0], false);
        Builder b = tt_builder_before(is_early ? op : before);
        b.loc = op->loc;
        Op *copy = tt_clone_op(&b, op, &copies);
        if (is_read && part->at[0] >= 0)
            tt_set_attr(copy, tt_attr_ints(b.module, ATTR_part, part->at, 3, NULL));
    }
    tt_set_operand(product, 0, tt_map_find_ptr(&copies, tt_operand(product, 0)));
    return parts;
}

void pipeline_make_halves(Pipeline *p, Op *first, Op *second)
{
    Op *whole = tt_operand(first, 0)->op;
    Map made = find_made(p);
    make_part(p, &made, second, second);
    Map parts = make_part(p, &made, first, whole);
    for (Op *op = whole, *previous; op; op = previous) {
        previous = op->previous;
        if (tt_map_find_ptr(&parts, op) && tt_map_find_ptr(&made, op) && !tt_has_uses(op->results[0]))
            tt_erase_op(op);
    }
}
