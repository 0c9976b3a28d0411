/* Tiles that a loop with products reads beside their operands, and that repeat what they read: one scale for each group of
 * columns (`scale_ptr + columns // 128`) is read once for a group, and repeated in registers. In the layout of a product's sums each
 * thread has elements of all columns, and while the tensor core works it is slow to read shared memory.
 *
 * Integers are divided toward zero. So where the columns begin is negative, for all that is known, the first column of a
 * group may have another quotient than the rest of it: two elements of each group are read, which are the same one in
 * memory if nothing is negative. */
#include "gpu/passes.h"

enum { LEAST = 4 /* elements of a group that are worth it */, MOST_OPERANDS = 8 };

typedef struct Repeats {
    const Function *function;
    AxisInfos *axis_infos; /* NULL: not asked for yet */
    Arena *scratch;
    int64_t group; /* a power of two */
    Map known;     /* Value* -> itself: all but the first element of each group are the same */
    Map sampled;   /* Value* -> Value*: the first two elements of each group */
    bool changed;
} Repeats;

static bool is_divisible(const Repeats *r, const Value *value)
{
    return tt_axis_info(r->axis_infos, value)->divisibility[0] % r->group == 0;
}

static bool rests(Repeats *r, const Value *value);

/* Is there a multiple m of the group's size for each group, such that the elements but the first are m + 1, m + 2, ...?
 * Sums do not carry into the bits of m, and a remainder or quotient by another multiple takes m alone to another one, also
 * where it is negative. */
static bool runs(Repeats *r, const Value *value)
{
    const Op *op = value->op;
    switch (op ? op->opcode : OP_yield) {
    case OP_range:
        return tt_int_attr(op, ATTR_start, 0) % r->group == 0;
    case OP_add:
        for (int i = 0; i < 2; i++)
            if (rests(r, tt_operand(op, i)))
                return is_divisible(r, tt_operand(op, i)) && runs(r, tt_operand(op, 1 - i));
        return false;
    case OP_rem_s:
    case OP_rem_u:
        return rests(r, tt_operand(op, 1)) && is_divisible(r, tt_operand(op, 1)) &&
               runs(r, tt_operand(op, 0));
    case OP_hint:
    case OP_ext_s:
    case OP_ext_u:
        return runs(r, tt_operand(op, 0));
    default:
        return false;
    }
}

/* Are all elements of each group but the first one equal? */
static bool rests(Repeats *r, const Value *value)
{
    const Op *op = value->op;
    if (!tt_is_tile(value->type))
        return true;
    if (!op || value->type->rank != 1 || op->operand_count > MOST_OPERANDS)
        return false;
    if (op->opcode == OP_splat || tt_is_constant(value) || tt_map_find_ptr(&r->known, value))
        return true;
    bool is_quotient = op->opcode == OP_div_s || op->opcode == OP_div_u;
    bool are_equal = op->opcode == OP_hint || (tt_has(op, ELEMENTWISE) && tt_is_pure(op));
    for (int i = 0; are_equal && i < op->operand_count; i++)
        are_equal = rests(r, tt_operand(op, i));
    if (is_quotient && !are_equal)
        are_equal =
            rests(r, tt_operand(op, 1)) && is_divisible(r, tt_operand(op, 1)) && runs(r, tt_operand(op, 0));
    if (are_equal)
        *tt_map_slot_ptr(&r->known, value) = (void *)value;
    return are_equal;
}

/* The first two elements of each group. */
static Value *sample(Repeats *r, Builder *b, Value *value)
{
    if (!tt_is_tile(value->type))
        return value;
    void **slot = tt_map_slot_ptr(&r->sampled, value);
    if (*slot)
        return *slot;
    const Op *op = value->op;
    int64_t extent = value->type->shape[0] / r->group * 2;
    const Type *type = tt_tile_type(b->module, tt_element(value->type), &extent, 1);
    Value *result, *operands[MOST_OPERANDS];
    if (op->opcode == OP_range) {
        Value *at = tt_build_range(b, 0, extent);
        Value *group = tt_build2(b, OP_shr_u, at, tt_build_int(b, type, 1));
        Value *first = tt_build2(b, OP_mul, group, tt_build_int(b, type, r->group));
        Value *from = tt_build_int(b, type, tt_int_attr(op, ATTR_start, 0));
        Value *second = tt_build2(b, OP_and, at, tt_build_int(b, type, 1));
        result = tt_build2(b, OP_add, tt_build2(b, OP_add, first, from), second);
    } else if (op->opcode == OP_splat) {
        result = tt_build_splat(b, tt_operand(op, 0), &extent, 1);
    } else if (op->opcode == OP_hint) {
        result = sample(r, b, tt_operand(op, 0));
    } else {
        for (int i = 0; i < op->operand_count; i++)
            operands[i] = sample(r, b, tt_operand(op, i));
        result =
            tt_build(b, op->opcode, operands, op->operand_count, type, tt_copy_attrs(b->module, op->attrs));
    }
    *tt_map_slot_ptr(&r->sampled, value) = result;
    return result;
}

/* Each element as often as a group has elements. */
static Value *repeat(const Repeats *r, Builder *b, Value *value)
{
    int64_t extent = value->type->shape[0] * r->group, shape[] = {value->type->shape[0], r->group};
    return tt_build_reshape(b, tt_build_broadcast(b, tt_build_expand_dims(b, value, 1), shape), &extent, 1);
}

/* In front of what may use the load: products stand before it. */
static Builder before_use(const Op *load)
{
    Op *op = load->next;
    for (; op->next && !op->region_count; op = op->next)
        for (int i = 0; i < op->operand_count; i++)
            if (tt_operand(op, i) == load->results[0])
                return tt_builder_before(op);
    return tt_builder_before(op);
}

static void rewrite(Repeats *r, Op *load)
{
    const Type *type = load->results[0]->type;
    Builder b = tt_builder_before(load), use = before_use(load);
    int64_t groups = type->shape[0] / r->group, pairs[] = {groups, 2};
    Value *operands[3];
    for (int i = 0; i < load->operand_count; i++)
        operands[i] = sample(r, &b, tt_operand(load, i));
    const Type *sampled = tt_with_element(b.module, operands[0]->type, tt_element(type));
    const Type *half = tt_tile_type(b.module, tt_element(type), &groups, 1);
    Value *loaded = tt_build_op(&b, OP_load, operands, load->operand_count, &sampled, 1,
                                tt_copy_attrs(b.module, load->attrs))
                        ->results[0];
    loaded->name = load->results[0]->name;
    b = use;
    loaded = tt_build_reshape(&b, loaded, pairs, 2);
    Op *split = tt_build_op(&b, OP_split, &loaded, 1, (const Type *[]){half, half}, 2, NULL);
    Value *at = tt_build_range(&b, 0, type->shape[0]);
    Value *rest = tt_build2(&b, OP_and, at, tt_build_int(&b, at->type, r->group - 1));
    Value *is_first = tt_build2(&b, OP_eq, rest, tt_build_int(&b, at->type, 0));
    Value *result = tt_build3(&b, OP_select, is_first, repeat(r, &b, split->results[0]),
                              repeat(r, &b, split->results[1]));
    tt_replace_op(load, &result);
    r->changed = true;
}

/* Is it looked up where to read? Then the pipeline carries it in registers, an iteration before what it leads to, and each
 * operation on it would stand in front of all those loads. */
static bool leads_to_memory(const Value *value, Map *asked)
{
    TT_FOR_USES(use, value)
    {
        const Op *user = use->user;
        if (user->opcode == OP_addptr)
            return true;
        if (!tt_has(user, ELEMENTWISE | SHAPE) || tt_map_find_ptr(asked, user))
            continue;
        *tt_map_slot_ptr(asked, user) = (void *)user;
        for (int i = 0; i < user->result_count; i++)
            if (leads_to_memory(user->results[i], asked))
                return true;
    }
    return false;
}

static void look_at(Repeats *r, Op *load)
{
    const Type *type = load->results[0]->type;
    Map asked = {.arena = r->scratch};
    if (!tt_is_tile(type) || type->rank != 1 || !tt_is_plain_load(load) ||
        leads_to_memory(load->results[0], &asked))
        return;
    if (!r->axis_infos)
        r->axis_infos = tt_analyze_axis_info(r->function, r->scratch);
    for (r->group = type->shape[0] & -type->shape[0]; r->group >= LEAST; r->group /= 2) {
        r->known = r->sampled = (Map){.arena = r->scratch};
        bool all = true;
        for (int i = 0; all && i < load->operand_count; i++)
            all = rests(r, tt_operand(load, i)) && !tt_is_constant(tt_operand(load, 0));
        if (all) {
            rewrite(r, load);
            return;
        }
    }
}

static void visit(Op *op, void *context)
{
    if (op->opcode != OP_for || !tt_has_dot(op->regions[0]))
        return;
    TT_FOR_OPS_SAFE(load, op->regions[0])
    {
        if (load->opcode == OP_load)
            look_at(context, load);
    }
}

bool tt_gpu_repeated_loads(Module *module, const GpuOptions *options, Arena *scratch)
{
    (void)options;
    Repeats r = {.function = module->functions, .scratch = scratch};
    tt_walk(module->functions->body, visit, &r);
    if (r.changed) {
        tt_simplify(module);
        tt_opt_run_pass(module, PASS_licm);
        tt_opt_run_pass(module, PASS_dce);
    }
    return r.changed;
}
