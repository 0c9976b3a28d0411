/* Products of 32-bit floats whose right operand lies along N, turned: (a b)^T = b^T a^T. wgmma reads operands of other than
 * 16 bits from shared memory along K only (PTX ISA, "Strides"), but the left one from registers in any order. So what lies
 * along K becomes the right operand, and the other one goes through registers, where nothing needs to be written again. Sums that
 * a loop carries are carried turned. */
#include "gpu/passes.h"
#include "opt/pass.h"

typedef struct Turning {
    Module *module;
    const GpuOptions *options;
    AxisInfos *axis_infos;
    bool changed;
} Turning;

static Value *turned(Builder *b, Value *value) { return tt_build_permute(b, value, (int64_t[]){1, 0}); }

/* Which of the loop's values the product adds to, where nobody else looks at it in the loop; else -1. */
static int carried_sum(const Loop *loop, const Op *dot)
{
    const Value *sum = tt_operand(dot, 2), *result = dot->results[0];
    int index = tt_carried_index(loop, sum);
    bool is_alone =
        index >= 0 && tt_has_one_use(sum) && tt_has_one_use(result) && tt_next(loop, index) == result;
    return is_alone ? index : -1;
}

static bool is_loaded_along(const Turning *t, const Value *value, int axis, int along_k)
{
    return tt_def(tt_before_permutes(value), OP_load) &&
           tt_staged_axis(t->axis_infos, value, along_k) == axis;
}

static bool gains(const Turning *t, const Op *dot)
{
    const Value *a = tt_operand(dot, 0), *b = tt_operand(dot, 1);
    return tt_element(a->type)->kind == TT_F32 && tt_fits_wgmma(dot, t->options, false) &&
           tt_fits_wgmma(dot, t->options, true) && is_loaded_along(t, a, 1, 1) && is_loaded_along(t, b, 1, 0);
}

static void visit(Op *op, void *context)
{
    Turning *t = context;
    const Op *around = op->parent->op;
    if (op->opcode != OP_dot || !gains(t, op) || !around || around->opcode != OP_for)
        return;
    Loop loop = tt_loop(op->parent->op);
    int index = carried_sum(&loop, op);
    if (index < 0)
        return;
    Builder before = tt_builder_before(loop.op), here = tt_builder_before(op),
            after = tt_builder_after(loop.op);
    before.loc = here.loc = op->loc;
    after.loc = loop.op->loc;
    int carried = tt_add_carried(&loop, turned(&before, tt_init(&loop, index)));
    Value *operands[] = {turned(&here, tt_operand(op, 1)), turned(&here, tt_operand(op, 0)),
                         tt_carried(&loop, carried)};
    Value *sum = tt_build(&here, OP_dot, operands, 3, operands[2]->type, tt_copy_attrs(t->module, op->attrs));
    sum->name = op->results[0]->name;
    tt_set_operand(loop.yield, carried, sum);
    tt_set_operand(loop.yield, index, tt_operand(op, 2)); /* which nothing needs any more */
    tt_replace_all_uses(loop.op->results[index], turned(&after, loop.op->results[carried]));
    tt_erase_op(op);
    t->changed = true;
}

bool tt_gpu_turn_dot(Module *module, const GpuOptions *options, Arena *scratch)
{
    Turning t = {.module = module, .options = options};
    if (options->sm != 90 || !tt_has_products(module->functions->body))
        return false;
    t.axis_infos = tt_analyze_axis_info(module->functions, scratch);
    tt_walk(module->functions->body, visit, &t);
    if (t.changed)
        tt_opt_run_pass(module, PASS_dce);
    return t.changed;
}
