/* Products for wgmma of what the loop computes from narrow numbers: K of both operands in another order. Of each 16 of K a lane
 * has a pair in either half of the left operand's fragment (PTX ISA, "Register Fragments"), so it would read two bytes of 8-bit
 * elements at a time. A sum over K has no order: with the pairs of a lane next to each other in memory it reads four bytes,
 * as ldmatrix gives them, and what stores the right operand writes its elements in that order. */
#include "gpu/passes.h"
#include "opt/pass.h"

enum { LANES = 4 /* along K */, PAIR = 2, READ_BITS = 32 };

typedef struct Permuting {
    Module *module;
    const GpuOptions *options;
    AxisInfos *axis_infos;
    Map bits; /* Value* -> its source_bits, plus one */
    bool changed;
} Permuting;

/* Bits in memory of one of the elements that are computed of a load in this region; 0: they are not, or in no known way. */
static int64_t source_bits(Permuting *p, const Value *value, const Region *region)
{
    const Op *op = value->op;
    if (!op || op->parent != region)
        return 0;
    if (op->opcode == OP_load)
        return tt_is_tile(value->type) ? 8 * tt_byte_width(value->type) : 0;
    if (!tt_has(op, ELEMENTWISE | SHAPE | ONE_LAYOUT) || op->opcode == OP_expand_dims)
        return 0;
    void **slot = tt_map_slot_ptr(&p->bits, value);
    if (*slot)
        return (intptr_t)*slot - 1;
    int64_t most = 0;
    for (int i = 0; i < op->operand_count; i++)
        most = TT_MAX(most, source_bits(p, tt_operand(op, i), region));
    most /= op->opcode == OP_join ? 2 : 1;
    *tt_map_slot_ptr(&p->bits, value) = (void *)(intptr_t)(most + 1); /* the table may have grown */
    return most;
}

/* With `pairs` pairs of a lane next to each other, along this axis of a tile of two dimensions. */
static Value *permuted(Builder *b, Value *value, int axis, int64_t pairs)
{
    const Type *type = value->type;
    int64_t group = LANES * pairs * PAIR, shape[TT_MAX_RANK], order[TT_MAX_RANK];
    int rank = 0, lanes = 0;
    for (int i = 0; i < 2; i++) {
        if (i != axis) {
            shape[rank++] = type->shape[i];
            continue;
        }
        shape[rank++] = type->shape[i] / group;
        lanes = rank;
        shape[rank++] = LANES;
        shape[rank++] = pairs;
        shape[rank++] = PAIR;
    }
    for (int i = 0; i < rank; i++)
        order[i] = i;
    order[lanes] = lanes + 1;
    order[lanes + 1] = lanes;
    Value *parts = tt_build_permute(b, tt_build_reshape(b, value, shape, rank), order);
    return tt_build_reshape(b, parts, type->shape, type->rank);
}

/* Below a transposition, which a buffer does by itself. */
static Value *permuted_operand(Builder *b, Value *value, int axis, int64_t pairs)
{
    if (!tt_def(value, OP_permute))
        return permuted(b, value, axis, pairs);
    const int64_t *order = tt_find_attr(value->op, ATTR_order)->ints;
    Value *source = permuted_operand(b, tt_operand(value->op, 0), (int)order[axis], pairs);
    return tt_build_permute(b, source, order);
}

static void visit(Op *op, void *context)
{
    Permuting *p = context;
    const Op *around = op->parent->op;
    if (op->opcode != OP_dot || !around || !tt_is_loop(around) || !tt_fits_wgmma(op, p->options, false) ||
        !tt_is_computed_here(op, tt_operand(op, 0)) || !tt_is_computed_here(op, tt_operand(op, 1)))
        return;
    Value *a = tt_operand(op, 0), *b = tt_operand(op, 1);
    int64_t bits = source_bits(p, a, op->parent), pairs = bits ? READ_BITS / bits / PAIR : 0;
    if (tt_byte_width(a->type) != 2 || pairs < 2 || a->type->shape[1] % (LANES * pairs * PAIR) ||
        tt_staged_axis(p->axis_infos, a, 1) != 1)
        return;
    Builder builder = tt_builder_before(op);
    builder.loc = op->loc;
    tt_set_operand(op, 0, permuted_operand(&builder, a, 1, pairs));
    tt_set_operand(op, 1, permuted_operand(&builder, b, 0, pairs));
    p->changed = true;
}

bool tt_gpu_permute_k(Module *module, const GpuOptions *options, Arena *scratch)
{
    Permuting p = {.module = module, .options = options, .bits = {.arena = scratch}};
    if (options->sm != 90 || !tt_has_products(module->functions->body))
        return false;
    p.axis_infos = tt_analyze_axis_info(module->functions, scratch);
    tt_walk(module->functions->body, visit, &p);
    if (p.changed)
        tt_opt_run_pass(module, PASS_dce);
    return p.changed;
}
