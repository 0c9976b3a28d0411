/* The verifier: is the IR what ir.h and ops.def promise? It collects every failure and prints the IR with
 * each message under its line. This file checks what holds for all operations, from their rows alone;
 * type_rules.c holds the rules of single operations. */
#include "ir/verify.h"

void tt_verify_fail(Verifier *v, const void *subject, const char *format, ...)
{
    void **slot = tt_map_slot_ptr(&v->messages, subject);
    Text text = {.arena = v->arena};
    if (*slot)
        tt_text_add(&text, "%s\n", (const char *)*slot);
    va_list args;
    va_start(args, format);
    tt_text_add_v(&text, format, args);
    va_end(args);
    *slot = text.data;
}

const char *tt_type_text(Verifier *v, const Type *type)
{
    Text text = {.arena = v->arena};
    tt_print_type(&text, type);
    return text.data;
}

/* ---- values and their uses ----------------------------------------------------------------------------- */

static void define(Verifier *v, const Value *value) { *tt_map_slot_ptr(&v->visible, value) = (void *)value; }

/* Visible: the walk has passed the definition, and it stands in a region that encloses the use. */
static bool is_visible(const Verifier *v, const Value *value, const Op *user)
{
    if (!tt_map_find_ptr(&v->visible, value))
        return false;
    const Region *home = value->op ? value->op->parent : value->region;
    for (const Region *region = user->parent; region; region = region->op ? region->op->parent : NULL)
        if (region == home)
            return true;
    return false;
}

/* The list of uses is linked both ways around this operand, and names this operation. */
static bool use_is_linked(const Op *op, const Use *use)
{
    if (use->user != op)
        return false;
    if (use->previous ? use->previous->next != use : use->value->uses != use)
        return false;
    return !use->next || use->next->previous == use;
}

static void check_uses(Verifier *v, const void *subject, const Value *value)
{
    TT_FOR_USES(use, value)
    {
        const Op *user = use->user;
        if (use->value != value || use < user->operands || use >= user->operands + user->operand_count)
            tt_verify_fail(v, subject, "a use in the list of a value is no operand that holds the value");
    }
}

static void check_operands(Verifier *v, const Op *op)
{
    for (int i = 0; i < op->operand_count; i++) {
        const Use *use = &op->operands[i];
        if (!use->value)
            tt_verify_fail(v, op, "operand %d is missing", i);
        else if (!use_is_linked(op, use))
            tt_verify_fail(v, op, "operand %d is not in the use list of its value", i);
        else if (!is_visible(v, use->value, op))
            tt_verify_fail(
                v, op, "operand %d is not defined before this operation in the same or an enclosing region",
                i);
    }
}

static void check_results(Verifier *v, const Op *op)
{
    for (int i = 0; i < op->result_count; i++) {
        const Value *result = op->results[i];
        if (result->op != op || result->index != i || result->region)
            tt_verify_fail(v, op, "result %d does not know that it is one", i);
        check_uses(v, op, result);
    }
}

/* ---- counts and attributes ----------------------------------------------------------------------------- */

static bool check_count(Verifier *v, const Op *op, const char *what, int count, int lowest, int highest)
{
    if (count >= lowest && (highest < 0 || count <= highest))
        return true;
    if (lowest == highest)
        tt_verify_fail(v, op, "takes %d %s, not %d", lowest, what, count);
    else if (highest < 0)
        tt_verify_fail(v, op, "takes at least %d %s, not %d", lowest, what, count);
    else
        tt_verify_fail(v, op, "takes %d to %d %s, not %d", lowest, highest, what, count);
    return false;
}

/* Whether the operation has the parts that its rule will look at. */
static bool check_counts(Verifier *v, const Op *op)
{
    const OpInfo *info = &tt_op_infos[op->opcode];
    bool right = check_count(v, op, "operands", op->operand_count, info->operands_min, info->operands_max);
    right &= check_count(v, op, "results", op->result_count, TT_MAX(info->results, 0), info->results);
    int regions = tt_region_count(info->control);
    right &= check_count(v, op, "regions", op->region_count, regions, regions);
    for (int i = 0; i < op->operand_count; i++)
        right &= tt_operand(op, i) != NULL;
    return right;
}

static void check_attrs(Verifier *v, const Op *op)
{
    for (const Attr *attr = op->attrs; attr; attr = attr->next) {
        if (!(tt_op_infos[op->opcode].attrs >> attr->key & 1))
            tt_verify_fail(v, op, "takes no attribute '%s'", tt_attr_names[attr->key]);
        for (const Attr *other = op->attrs; other != attr; other = other->next)
            if (other->key == attr->key)
                tt_verify_fail(v, op, "attribute '%s' stands here twice", tt_attr_names[attr->key]);
    }
}

/* ---- regions ------------------------------------------------------------------------------------------- */

/* What ends this region. */
static Opcode terminator_of(const Region *region)
{
    if (!region->op)
        return OP_return;
    return region->op->opcode == OP_while && region == region->op->regions[0] ? OP_condition : OP_yield;
}

static void check_op(Verifier *v, const Op *op);

static void check_region(Verifier *v, const Region *region, const void *subject)
{
    for (int i = 0; i < region->arg_count; i++) {
        const Value *arg = region->args[i];
        if (arg->region != region || arg->index != i || arg->op)
            tt_verify_fail(v, subject, "region argument %d does not know that it is one", i);
        check_uses(v, subject, arg);
        define(v, arg);
    }
    Opcode last = terminator_of(region);
    TT_FOR_OPS(op, region)
    {
        if (op->parent != region || (op->next ? op->next->previous != op : region->last != op))
            tt_verify_fail(v, subject, "the list of operations is broken at '%s'",
                           tt_op_infos[op->opcode].name);
        if (tt_has(op, TERMINATOR) && (op->next || op->opcode != last))
            tt_verify_fail(v, op,
                           op->next ? "ends a region, but other operations follow"
                                    : "does not end this kind of region");
        check_op(v, op);
    }
    /* The region without a terminator is that of an `if` that has nothing to do when the condition is
     * false. */
    bool may_be_empty = region->op && region->op->opcode == OP_if && region == region->op->regions[1] &&
                        !region->op->result_count;
    if (region->last ? !tt_has(region->last, TERMINATOR) : !may_be_empty)
        tt_verify_fail(v, subject, "a region does not end with '%s'", tt_op_infos[last].name);
}

static void check_stage(Verifier *v, const Op *op)
{
    static const char *const names[] = {"tiles", "buffers", "layouts"};
    if (!(tt_op_infos[op->opcode].stages >> v->module->stage & 1))
        tt_verify_fail(v, op, "is not for modules in the stage of %s", names[v->module->stage]);
}

static void check_op(Verifier *v, const Op *op)
{
    check_stage(v, op);
    check_operands(v, op);
    check_results(v, op);
    check_attrs(v, op);
    bool counts = check_counts(v, op);
    for (int i = 0; i < op->region_count; i++)
        check_region(v, op->regions[i], op);
    if (counts)
        tt_check_types(v, op);
    for (int i = 0; i < op->result_count; i++)
        define(v, op->results[i]);
}

static void check_function(Verifier *v, const Function *function)
{
    if (function->marks_taken)
        tt_verify_fail(v, function, "a pass has not returned the marks");
    for (int i = 0; i < function->body->arg_count; i++)
        if (tt_is_tile(function->body->args[i]->type) && function->is_kernel)
            tt_verify_fail(v, function, "parameter %d of a kernel is a tile", i);
    if (function->is_kernel && function->result_count)
        tt_verify_fail(v, function, "a kernel returns nothing");
    check_region(v, function->body, function);
}

const char *tt_verify(const Module *module, Arena *arena)
{
    Verifier verifier = {
        .module = module, .arena = arena, .messages = {.arena = arena}, .visible = {.arena = arena}};
    TT_FOR_FUNCTIONS(function, module)
    check_function(&verifier, function);
    if (!verifier.messages.count)
        return NULL;
    return tt_print_annotated(module, arena, 0, &verifier.messages);
}
