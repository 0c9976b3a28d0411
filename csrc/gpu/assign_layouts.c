/* Gives every tile a layout. decide_layouts.c says which one each value should have; here every use gets its operand in
 * the layout it wants: the value itself, or, when the value is a chain of cheap operations, the chain once more in that
 * layout, or a convert_layout. Conversions stand before the outermost operation that needs them, so they leave loops,
 * and in front of widening casts and broadcasts, so that fewer bytes move. What nobody wanted is erased. */
#include "gpu/passes.h"
#include "opt/pass.h"

typedef struct Wish {
    const Value *value;
    const LinearLayout *layout;
} Wish;

typedef struct Assigner {
    Module *module;
    const GpuOptions *options;
    Arena *scratch;
    LayoutGroups *groups;
    Map granted; /* Wish -> Value* */
} Assigner;

static void want(Assigner *a, Op *op, int operand, const LinearLayout *layout);
static Value *wanted(Assigner *a, Value *value, const LinearLayout *layout, Op *user);

static const LinearLayout *default_layout(const Assigner *a, const Value *value)
{
    return tt_default_layout(a->module, value->type, a->options->num_warps);
}

/* ---- granting a wish -------------------------------------------------------------------------------------------------------- */

/* The operands of an operation that is free in any layout, for a result in `layout`. */
static void want_operands(Assigner *a, Op *op, const LinearLayout *layout)
{
    for (int i = 0; i < op->operand_count; i++)
        if (tt_is_tile(tt_operand(op, i)->type))
            tt_set_operand(op, i, wanted(a, tt_operand(op, i), tt_layout_backward(op, i, layout), op));
}

/* The cheap chain behind `value` in one more layout; its first user gets the original. */
static Value *repeated(Assigner *a, Value *value, const LinearLayout *layout)
{
    if (value->layout) {
        Builder builder = tt_builder_after(value->op);
        Map map = {.arena = a->scratch};
        value = tt_clone_op(&builder, value->op, &map)->results[0];
    }
    value->layout = layout;
    want_operands(a, value->op, layout);
    return value;
}

/* The operation in the region of `value`'s definition that holds `user`: where a conversion serves all later users. */
static Op *outermost_user(const Value *value, Op *user)
{
    const Region *home = value->op ? value->op->parent : value->region;
    while (user->parent != home)
        user = user->parent->op;
    return user;
}

/* Is an operation that is worth doing again in another layout? */
static bool is_repeatable(const Op *op)
{
    return op && tt_has(op, ELEMENTWISE) && tt_is_pure(op) && !tt_is_costly(op) && op->result_count == 1;
}

/* The one operand that has a layout of its own; NULL: none or several. The others are made wherever they are wanted. */
static const Value *settled_operand(const Assigner *a, const Op *op)
{
    const Value *found = NULL;
    for (int i = 0; i < op->operand_count; i++) {
        const Value *operand = tt_operand(op, i);
        if (!tt_is_tile(operand->type) || !tt_group_layout(a->groups, operand) || operand == found)
            continue;
        if (found)
            return NULL;
        found = operand;
    }
    return found;
}

/* Is the value, for `layout`, computed from narrower elements, pointers from a table's indices for instance, or from what
 * was spread, as the masks of rows are? Then these are converted. */
static bool is_computed_from_less(const Assigner *a, const Value *value, const LinearLayout *layout)
{
    enum { FARTHEST = 4 };
    int bytes = tt_byte_width(value->type);
    for (int i = 0; i < FARTHEST && is_repeatable(value->op); i++) {
        value = settled_operand(a, value->op);
        if (!value || tt_byte_width(value->type) != bytes)
            return value && tt_byte_width(value->type) < bytes;
        if (tt_def(value, OP_broadcast))
            return tt_layout_backward(value->op, 0, layout) != NULL;
    }
    return false;
}

/* Is the value, in a loop, simply computed from tiles that are made outside of it? Then those are converted, once. */
static bool follows_from_outside(const Assigner *a, const Value *value)
{
    const Op *op = value->op;
    bool any = false;
    if (!is_repeatable(op) || !op->parent->op || !tt_is_loop(op->parent->op))
        return false;
    for (int i = 0; i < op->operand_count; i++) {
        const Value *operand = tt_operand(op, i);
        if (!tt_is_tile(operand->type) || !tt_group_layout(a->groups, operand))
            continue;
        any = true;
        if (!tt_is_defined_outside(operand, op->parent))
            return false;
    }
    return any;
}

static Value *converted(Assigner *a, Value *value, const LinearLayout *layout, Op *user)
{
    Builder builder = tt_builder_before(outermost_user(value, user));
    builder.loc = value->loc;
    /* what was spread is converted before: its elements share registers again, which those that come from elsewhere do not */
    const Op *spread = tt_def(value, OP_broadcast);
    const LinearLayout *source = spread ? tt_layout_backward(spread, 0, layout) : layout;
    if (is_computed_from_less(a, value, layout) || follows_from_outside(a, value) || (spread && source)) {
        Map map = {.arena = a->scratch};
        Op *copy = tt_clone_op(&builder, value->op, &map);
        for (int i = 0; i < copy->operand_count; i++)
            want(a, copy, i, source);
        copy->results[0]->layout = layout;
        return copy->results[0];
    }
    Op *op = tt_build_op(&builder, OP_convert_layout, &value, 1, NULL, 0, NULL);
    op->results[0]->layout = layout;
    op->results[0]->name = value->name;
    return op->results[0];
}

/* `value` in `layout`, for an operand of `user`. */
static Value *wanted(Assigner *a, Value *value, const LinearLayout *layout, Op *user)
{
    if (!tt_is_tile(value->type) || value->layout == layout)
        return value;
    Wish wish = {value, layout};
    void **slot = tt_map_slot(&a->granted, &wish, sizeof wish);
    if (*slot)
        return *slot;
    bool cheap = !tt_group_layout(a->groups, value) && value->op && value->op->opcode != OP_convert_layout;
    Value *granted = cheap ? repeated(a, value, layout) : converted(a, value, layout, user);
    return *tt_map_slot(&a->granted, &wish, sizeof wish) = granted; /* the table may have grown */
}

/* ---- what each operation wants ------------------------------------------------------------------------------------------- */

static void want(Assigner *a, Op *op, int operand, const LinearLayout *layout)
{
    Value *value = tt_operand(op, operand);
    if (tt_is_tile(value->type) && value->layout != layout)
        tt_set_operand(op, operand, wanted(a, value, layout, op));
}

/* The layout that an operand has or, when it is still open, gets by default. */
static const LinearLayout *settled(Assigner *a, Op *op, int operand)
{
    Value *value = tt_operand(op, operand);
    if (tt_is_tile(value->type) && !value->layout)
        want(a, op, operand, default_layout(a, value));
    return tt_operand(op, operand)->layout;
}

/* All operands of one shape in the layout of the first that has one. */
static const LinearLayout *want_alike(Assigner *a, Op *op)
{
    const Type *type = tt_operand(op, 0)->type;
    const LinearLayout *layout = NULL;
    for (int i = 0; i < op->operand_count && !layout; i++)
        layout = tt_same_shape(tt_operand(op, i)->type, type) ? tt_operand(op, i)->layout : NULL;
    if (!layout)
        layout = settled(a, op, 0);
    for (int i = 0; i < op->operand_count; i++)
        if (tt_same_shape(tt_operand(op, i)->type, type))
            want(a, op, i, layout);
        else
            settled(a, op, i);
    return layout;
}

static const LinearLayout *result_group(const Assigner *a, const Op *op)
{
    return op->result_count ? tt_group_layout(a->groups, op->results[0]) : NULL;
}

static void set_results(Op *op, const LinearLayout *layout)
{
    for (int i = 0; i < op->result_count; i++)
        if (tt_is_tile(op->results[i]->type))
            op->results[i]->layout = layout;
}

/* Shape operations. No element moves when the result has the layout that follows from the operand's, or the operands
 * can be had in the one that follows from the result's; else they go through shared memory, from any layout to any. */
static void assign_shape(Assigner *a, Op *op)
{
    const Value *first = tt_operand(op, 0);
    const LinearLayout *result = result_group(a, op);
    if (op->opcode == OP_join && tt_is_tile(first->type) && !(result && tt_layout_backward(op, 0, result)))
        want_alike(a,
                   op); /* the result's halves are in different threads there, so it follows the operands */
    first = tt_operand(op, 0);
    bool follows = tt_is_tile(first->type) && first->layout && op->opcode != OP_broadcast;
    const LinearLayout *forward = follows ? tt_layout_forward(op, 0, first->layout) : NULL;
    result = forward ? forward : result;
    if (op->opcode == OP_split && !result) /* two scalars */
        want(a, op, 0, tt_everywhere_layout(a->module, first->type, a->options->num_warps));
    for (int i = 0; i < op->operand_count; i++) {
        if (!tt_is_tile(tt_operand(op, i)->type))
            continue;
        const LinearLayout *backward = result ? tt_layout_backward(op, i, result) : NULL;
        if (backward && !(forward && i == 0))
            want(a, op, i, backward);
        else
            settled(a, op, i);
    }
    set_results(op, result);
}

static void assign_memory(Assigner *a, Op *op)
{
    if (!op->operand_count || !tt_is_tile(tt_operand(op, 0)->type))
        return;
    const LinearLayout *layout = tt_memory_layout(a->groups, op);
    for (int i = 0; i < op->operand_count; i++)
        want(a, op, i, layout);
    set_results(op, layout);
}

static void assign_product(Assigner *a, Op *op)
{
    const LinearLayout *layout = tt_product_layout(a->module, op);
    for (int i = 0; i < 2; i++)
        if (tt_is_tile(tt_operand(op, i)->type))
            want(a, op, i, tt_fragment_layout(a->module, op, i));
    want(a, op, 2, layout);
    set_results(op, layout);
}

static void assign_dot(Assigner *a, Op *op)
{
    const LinearLayout *layout = tt_dot_layout(a->module, op->results[0]->type, a->options->num_warps);
    want(a, op, 2, layout);
    set_results(op, layout);
}

/* A lookup at a distance finds its element by the layout, so all is in the source's. */
static void assign_gather(Assigner *a, Op *op)
{
    uint64_t distance;
    const LinearLayout *source = settled(a, op, 0);
    if (tt_gathers_at_distance(op, &distance))
        want(a, op, 1, source);
    set_results(op, settled(a, op, 1));
}

/* Operations that work on whole tiles in the layout of their operands. */
static void assign_whole(Assigner *a, Op *op)
{
    switch (op->opcode) {
    case OP_reduce:
    case OP_extract: {
        const LinearLayout *layout = op->opcode == OP_reduce ? want_alike(a, op) : settled(a, op, 0);
        set_results(op, tt_layout_forward(op, 0, layout));
        break;
    }
    case OP_gather:
        assign_gather(a, op);
        break;
    case OP_histogram:
        want_alike(a, op);
        set_results(op, default_layout(a, op->results[0]));
        break;
    case OP_dot:
        (tt_is_on_tensor_cores(op) ? assign_product : assign_dot)(a, op);
        break;
    case OP_wgmma:
        assign_product(a, op);
        break;
    case OP_smem_alloc:
    case OP_smem_store:
        if (op->operand_count)
            settled(a, op, 0);
        break;
    case OP_smem_load:
        set_results(op, result_group(a, op));
        break;
    case OP_smem_view:
    case OP_smem_permute: /* a buffer has its layout from the first on */
        break;
    default: /* print, assert, ... */
        if (op->operand_count)
            want_alike(a, op);
    }
}

static void assign_region(Assigner *a, Region *region);

/* Carried and merged values have their group's layout everywhere. */
static void assign_control(Assigner *a, Op *op)
{
    int first = op->operand_count - op->result_count;
    for (int i = 0; i < op->result_count; i++)
        op->results[i]->layout = tt_group_layout(a->groups, op->results[i]);
    for (int i = 0; i < op->result_count && tt_is_loop(op); i++)
        want(a, op, first + i, op->results[i]->layout);
    for (int r = 0; r < op->region_count; r++) {
        Region *region = op->regions[r];
        for (int i = 0; i < region->arg_count; i++)
            region->args[i]->layout = tt_group_layout(a->groups, region->args[i]);
        assign_region(a, region);
        Op *end = region->last;
        for (int i = 0; end && end->opcode == OP_yield && i < end->operand_count; i++)
            want(a, end, i, op->results[i]->layout);
    }
}

static bool is_cheap(const Assigner *a, const Op *op)
{
    return op->result_count && tt_is_layout_free(op) && tt_is_tile(op->results[0]->type) &&
           !result_group(a, op);
}

static void assign_op(Assigner *a, Op *op)
{
    if (is_cheap(a, op) || op->opcode == OP_convert_layout || tt_has(op, TERMINATOR))
        return;
    if (tt_is_control(op)) {
        assign_control(a, op);
    } else if (tt_has(op, ACCESS)) {
        assign_memory(a, op);
    } else if (tt_has(op, ELEMENTWISE | ONE_LAYOUT)) {
        const LinearLayout *layout = result_group(a, op);
        for (int i = 0; layout && i < op->operand_count; i++)
            want(a, op, i, layout);
        set_results(op, layout);
    } else if (tt_has(op, SHAPE) && op->opcode != OP_extract) {
        assign_shape(a, op);
    } else {
        assign_whole(a, op);
    }
}

static void assign_region(Assigner *a, Region *region)
{
    TT_FOR_OPS(op, region)
    assign_op(a, op);
}

/* Cheap operations that nobody wanted, last ones first. */
static void erase_unwanted(Region *region)
{
    for (Op *op = region->last, *before; op; op = before) {
        before = op->previous;
        bool used = !op->result_count || !tt_has(op, PURE);
        for (int i = 0; i < op->result_count; i++)
            used |= tt_has_uses(op->results[i]);
        if (!used) {
            tt_erase_op(op);
            continue;
        }
        for (int i = 0; i < op->region_count; i++)
            erase_unwanted(op->regions[i]);
    }
}

bool tt_gpu_assign_layouts(Module *module, const GpuOptions *options, Arena *scratch)
{
    TT_FOR_FUNCTIONS(function, module)
    {
        Assigner assigner = {
            .module = module, .options = options, .scratch = scratch, .granted = {.arena = scratch}};
        assigner.groups = tt_decide_layouts(function, options, scratch);
        assign_region(&assigner, function->body);
        erase_unwanted(function->body);
    }
    return true;
}
