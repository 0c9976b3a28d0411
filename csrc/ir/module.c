/* Modules, functions and regions, and every change to them: the only place where use lists are touched. */
#include "ir/ir.h"

Module *tt_new_module(Arena *arena)
{
    Module *module = TT_NEW(arena, Module);
    module->arena = arena;
    module->types.arena = module->strings.arena = module->layouts.arena = module->plans.arena = arena;
    return module;
}

const char *tt_intern(Module *module, const char *text)
{
    void **slot = tt_map_slot(&module->strings, text, strlen(text) + 1);
    if (!*slot)
        *slot = tt_arena_strdup(module->arena, text);
    return *slot;
}

static Region *new_region(Module *module, Op *op, Function *function)
{
    Region *region = TT_NEW(module->arena, Region);
    region->op = op;
    region->function = function;
    return region;
}

Function *tt_new_function(Module *module, const char *name, const Type *const *params, int param_count,
                          const Type *const *results, int result_count)
{
    Function *function = TT_NEW(module->arena, Function);
    function->module = module;
    function->name = tt_intern(module, name);
    function->body = new_region(module, NULL, function);
    for (int i = 0; i < param_count; i++)
        tt_add_region_arg(function->body, params[i]);
    function->param_attrs = TT_NEW_ARRAY(module->arena, Attr *, param_count);
    function->result_types = tt_arena_copy(module->arena, results, sizeof(Type *) * (size_t)result_count);
    function->result_count = result_count;
    Function **link = &module->functions;
    while (*link)
        link = &(*link)->next;
    *link = function;
    return function;
}

Function *tt_find_function(const Module *module, const char *name)
{
    TT_FOR_FUNCTIONS(function, module)
    if (!strcmp(function->name, name))
        return function;
    return NULL;
}

/* ---- uses ---------------------------------------------------------------------------------------------------------- */

static void link_use(Use *use, Value *value)
{
    use->value = value;
    use->previous = NULL;
    use->next = value->uses;
    if (value->uses)
        value->uses->previous = use;
    value->uses = use;
}

static void unlink_use(Use *use)
{
    if (use->previous)
        use->previous->next = use->next;
    else
        use->value->uses = use->next;
    if (use->next)
        use->next->previous = use->previous;
}

void tt_set_operand(Op *op, int index, Value *value)
{
    unlink_use(&op->operands[index]);
    link_use(&op->operands[index], value);
}

/* Puts `operands` in place of the ones op has; uses cannot simply be moved because lists point into the array. */
static void reset_operands(Op *op, Value *const *operands, int count)
{
    for (int i = 0; i < op->operand_count; i++)
        unlink_use(&op->operands[i]);
    Module *module = op->parent->function->module;
    if (count > op->operand_count)
        op->operands = TT_NEW_ARRAY(module->arena, Use, count);
    op->operand_count = count;
    for (int i = 0; i < count; i++) {
        op->operands[i].user = op;
        link_use(&op->operands[i], operands[i]);
    }
}

static Value **copy_operands(const Op *op, int extra)
{
    Value **values = TT_NEW_ARRAY(op->parent->function->module->arena, Value *, op->operand_count + extra);
    for (int i = 0; i < op->operand_count; i++)
        values[i] = tt_operand(op, i);
    return values;
}

void tt_add_operand(Op *op, Value *value)
{
    Value **values = copy_operands(op, 1);
    values[op->operand_count] = value;
    reset_operands(op, values, op->operand_count + 1);
}

void tt_remove_operand(Op *op, int index)
{
    Value **values = copy_operands(op, 0);
    for (int i = index; i + 1 < op->operand_count; i++)
        values[i] = values[i + 1];
    reset_operands(op, values, op->operand_count - 1);
}

void tt_replace_all_uses(Value *old, Value *with)
{
    TT_ASSERT(old != with);
    TT_FOR_USES_SAFE(use, old)
    {
        unlink_use(use);
        link_use(use, with);
    }
    if (!with->name)
        with->name = old->name;
}

/* ---- placement ------------------------------------------------------------------------------------------------------ */

static void insert_op(Op *op, Region *region, Op *before)
{
    op->parent = region;
    op->next = before;
    op->previous = before ? before->previous : region->last;
    if (op->previous)
        op->previous->next = op;
    else
        region->first = op;
    if (before)
        before->previous = op;
    else
        region->last = op;
}

static void remove_op(Op *op)
{
    if (op->previous)
        op->previous->next = op->next;
    else
        op->parent->first = op->next;
    if (op->next)
        op->next->previous = op->previous;
    else
        op->parent->last = op->previous;
}

void tt_move_before(Op *op, Op *anchor)
{
    if (op == anchor)
        return;
    remove_op(op);
    insert_op(op, anchor->parent, anchor);
}

void tt_move_to_end(Op *op, Region *region)
{
    remove_op(op);
    insert_op(op, region, NULL);
}

void tt_erase_op(Op *op)
{
    for (int i = 0; i < op->region_count; i++)
        while (op->regions[i]->last)
            tt_erase_op(op->regions[i]->last);
    for (int i = 0; i < op->result_count; i++)
        TT_ASSERT(!op->results[i]->uses);
    for (int i = 0; i < op->operand_count; i++)
        unlink_use(&op->operands[i]);
    op->parent->function->module->op_count--;
    remove_op(op);
}

/* ---- operations ---------------------------------------------------------------------------------------------------- */

static Value *new_value(Module *module, const Type *type, const Loc *loc, int index)
{
    Value *value = TT_NEW(module->arena, Value);
    value->type = type;
    value->loc = loc;
    value->index = index;
    value->id = -1;
    return value;
}

/* Far more than kernels have, and so few that they still compile in seconds, in little memory. */
static void count_op(Module *module, const Loc *loc)
{
    enum { MOST_OPERATIONS = 200000 };
    if (++module->op_count > MOST_OPERATIONS)
        tt_error_with_remedy(loc, "unroll less, or use loops that run on the device",
                             "the kernel has more than %d operations, what is inlined and unrolled included",
                             MOST_OPERATIONS);
}

Op *tt_build_op(Builder *b, Opcode opcode, Value *const *operands, int operand_count,
                const Type *const *result_types, int result_count, Attr *attrs)
{
    Module *module = b->module;
    const OpInfo *info = &tt_op_infos[opcode];
    count_op(module, b->loc);
    Op *op = TT_NEW(module->arena, Op);
    op->opcode = opcode;
    op->loc = b->loc;
    op->attrs = attrs;
    op->operand_count = operand_count;
    op->operands = TT_NEW_ARRAY(module->arena, Use, operand_count);
    for (int i = 0; i < operand_count; i++) {
        op->operands[i].user = op;
        link_use(&op->operands[i], operands[i]);
    }
    const Type *inferred =
        result_types || info->results != 1 ? NULL : tt_infer_type(module, opcode, operands);
    if (inferred) {
        result_types = &inferred;
        result_count = 1;
    }
    op->result_count = result_count;
    op->results = TT_NEW_ARRAY(module->arena, Value *, result_count);
    for (int i = 0; i < result_count; i++) {
        op->results[i] = new_value(module, result_types[i], b->loc, i);
        op->results[i]->op = op;
    }
    op->region_count = tt_region_count(info->control);
    op->regions = TT_NEW_ARRAY(module->arena, Region *, op->region_count);
    for (int i = 0; i < op->region_count; i++)
        op->regions[i] = new_region(module, op, b->region->function);
    insert_op(op, b->region, b->before);
    return op;
}

/* ---- results and arguments ------------------------------------------------------------------------------------------ */

static Value **append_value(Arena *arena, Value **values, int count, Value *value)
{
    Value **grown = TT_NEW_ARRAY(arena, Value *, count + 1);
    if (count)
        memcpy(grown, values, sizeof(Value *) * (size_t)count);
    grown[count] = value;
    return grown;
}

static void drop_value(Value **values, int *count, int index)
{
    for (int i = index; i + 1 < *count; i++) {
        values[i] = values[i + 1];
        values[i]->index = i;
    }
    --*count;
}

Value *tt_add_region_arg(Region *region, const Type *type)
{
    Module *module = region->function->module;
    Value *arg =
        new_value(module, type, region->op ? region->op->loc : region->function->loc, region->arg_count);
    arg->region = region;
    region->args = append_value(module->arena, region->args, region->arg_count++, arg);
    return arg;
}

void tt_move_region_arg(Value *arg, Region *to)
{
    drop_value(arg->region->args, &arg->region->arg_count, arg->index);
    arg->region = to;
    arg->index = to->arg_count;
    to->args = append_value(to->function->module->arena, to->args, to->arg_count++, arg);
}

Value *tt_add_result(Op *op, const Type *type)
{
    Module *module = op->parent->function->module;
    Value *result = new_value(module, type, op->loc, op->result_count);
    result->op = op;
    op->results = append_value(module->arena, op->results, op->result_count++, result);
    return result;
}

void tt_remove_result(Op *op, int index)
{
    TT_ASSERT(!op->results[index]->uses);
    drop_value(op->results, &op->result_count, index);
}

void tt_remove_region_arg(Region *region, int index)
{
    TT_ASSERT(!region->args[index]->uses);
    drop_value(region->args, &region->arg_count, index);
}

/* ---- questions, walks ------------------------------------------------------------------------------------------ */

bool tt_is_defined_outside(const Value *value, const Region *region)
{
    const Region *home = value->op ? value->op->parent : value->region;
    for (; home; home = home->op ? home->op->parent : NULL)
        if (home == region)
            return false;
    return true;
}

bool tt_comes_before(const Op *a, const Op *b)
{
    while (b && b->parent != a->parent)
        b = b->parent->op;
    if (!b || a == b)
        return false;
    for (const Op *op = a->next; op; op = op->next)
        if (op == b)
            return true;
    return false;
}

static bool is_same_line(const Loc *a, const Loc *b)
{
    return a == b || (a && b && a->file && b->file && a->line == b->line && !strcmp(a->file, b->file));
}

void tt_remark(Module *module, const Loc *loc, const char *format, ...)
{
    Text text = {.arena = module->arena};
    va_list args;
    va_start(args, format);
    tt_text_add_v(&text, format, args);
    va_end(args);
    loc = tt_user_loc(loc);
    if (tt_is_strict())
        tt_error(loc, "%s", text.data);
    for (int i = 0; i < module->remarks.count; i++) {
        const Remark *known = &module->remarks.data[i];
        if (is_same_line(known->loc, loc) && !strcmp(known->message, text.data))
            return;
    }
    tt_push(module->arena, module->remarks, ((Remark){loc, text.data}));
}

void tt_walk(Region *region, void (*function)(Op *op, void *context), void *context)
{
    TT_FOR_OPS_SAFE(op, region)
    {
        int region_count =
            op->region_count; /* the op may be erased by the call: its regions stay readable, but empty */
        Region **regions = op->regions;
        function(op, context);
        for (int i = 0; i < region_count; i++)
            tt_walk(regions[i], function, context);
    }
}

static void clear_marks(Region *region)
{
    for (int i = 0; i < region->arg_count; i++)
        region->args[i]->mark = NULL;
    TT_FOR_OPS(op, region)
    {
        op->index = 0;
        for (int i = 0; i < op->result_count; i++)
            op->results[i]->mark = NULL;
        for (int i = 0; i < op->region_count; i++)
            clear_marks(op->regions[i]);
    }
}

void tt_take_marks(Function *function)
{
    TT_ASSERT(!function->marks_taken);
    function->marks_taken = true;
    clear_marks(function->body);
}

void tt_return_marks(Function *function)
{
    TT_ASSERT(function->marks_taken);
    function->marks_taken = false;
}
