/* What a program asked of a loop and GPU code does not do is said, once for each place. Hints that would change nothing
 * here are passed over: one buffer for an accumulator, for instance, is all there ever is. */
#include "gpu/passes.h"
#include "opt/pass.h"

bool tt_has_loop(const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        if (tt_is_loop(op))
            return true;
        for (int i = 0; i < op->region_count; i++)
            if (tt_has_loop(op->regions[i]))
                return true;
    }
    return false;
}

static void visit(Op *op, void *context)
{
    Module *module = context;
    if (!tt_is_loop(op))
        return;
    if (tt_int_attr(op, ATTR_flatten, 0) && tt_has_loop(op->regions[op->region_count - 1]))
        tt_remark(module, op->loc, "flatten=True is not done: loops are not joined, this one stays as it is");
    if (tt_int_attr(op, ATTR_warp_specialize, 0))
        tt_remark(module, op->loc, "warp_specialize=True is not done: all warps of a program do the same");
    if (op->opcode == OP_while && tt_int_attr(op, ATTR_num_stages, 1) > 1)
        tt_remark(module, op->loc, "num_stages=%d is not done: a loop that may end early does not load ahead",
                  (int)tt_int_attr(op, ATTR_num_stages, 1));
}

bool tt_gpu_hints(Module *module, const GpuOptions *options, Arena *scratch)
{
    (void)options, (void)scratch;
    tt_walk(module->functions->body, visit, module);
    return false;
}
