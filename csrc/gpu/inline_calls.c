/* Calls of functions that the program wants not to be inlined: on a GPU they are, all the same. A call costs the layouts
 * of its tiles, a barrier's knowledge of what is under way, and registers saved around it; what it means is the same. */
#include "gpu/passes.h"

enum { DEEPEST = 64 };

static void inline_region(Module *module, Region *region, int depth, Arena *scratch);

static void inline_call(Module *module, Op *op, int depth, Arena *scratch)
{
    const Function *callee = tt_find_function(module, tt_string_attr(op, ATTR_callee, ""));
    if (!callee)
        tt_bug("a call of an unknown function");
    if (depth > DEEPEST)
        tt_unsupported(op->loc, "recursion on a GPU: @%s calls itself", callee->name);
    Builder builder = tt_builder_before(op);
    Map map = {.arena = scratch};
    for (int i = 0; i < op->operand_count; i++)
        *tt_map_slot_ptr(&map, callee->body->args[i]) = tt_operand(op, i);
    Op *before = op->previous;
    tt_clone_region_body(&builder, callee->body, &map);
    for (int i = 0; i < op->result_count; i++) {
        Value *returned = tt_operand(callee->body->last, i), *copy = tt_map_find_ptr(&map, returned);
        tt_replace_all_uses(op->results[i], copy ? copy : returned);
    }
    Region *region = op->parent;
    Op *first = before ? before->next : region->first;
    for (Op *inner = first, *next; inner != op; inner = next) {
        next = inner->next;
        if (inner->opcode == OP_call)
            inline_call(module, inner, depth + 1, scratch);
        for (int i = 0; i < inner->region_count; i++)
            inline_region(module, inner->regions[i], depth + 1, scratch);
    }
    tt_erase_op(op);
}

static void inline_region(Module *module, Region *region, int depth, Arena *scratch)
{
    TT_FOR_OPS_SAFE(op, region)
    {
        for (int i = 0; i < op->region_count; i++)
            inline_region(module, op->regions[i], depth, scratch);
        if (op->opcode == OP_call)
            inline_call(module, op, depth, scratch);
    }
}

bool tt_gpu_inline_calls(Module *module, const GpuOptions *options, Arena *scratch)
{
    (void)options;
    Function *kernel = module->functions;
    bool others = kernel->next != NULL;
    inline_region(module, kernel->body, 0, scratch);
    kernel->next = NULL;
    return others;
}
