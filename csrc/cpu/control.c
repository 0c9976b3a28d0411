/* Loops and branches: LLVM basic blocks, with phis for carried scalars; carried tiles stay in their buffers. */
#include "cpu/lower.h"

/* ---- what regions carry --------------------------------------------------------------------------------------------------------- */

/* Puts the initial tiles where the loop keeps them. */
static void store_inits(Lower *l, Op *op, int first_init)
{
    for (int i = 0; i < op->result_count; i++) {
        Value *init = tt_operand(op, first_init + i);
        Buffer *buffer = info_of(op->results[i])->buffer;
        if (tt_is_tile(init->type) && info_of(init)->buffer != buffer)
            lower_copy(l, init, buffer, 0);
    }
}

static void begin_args(Lower *l, Op *op, int first_init, Region *region, int first_arg,
                       LLVMBasicBlockRef before)
{
    for (int i = 0; i < op->result_count; i++) {
        Value *arg = region->args[first_arg + i];
        ValueInfo *info = info_of(arg);
        if (tt_is_tile(arg->type)) {
            info->stored = true;
            continue;
        }
        LLVMValueRef init = info_of(tt_operand(op, first_init + i))->scalar;
        info->scalar = LLVMBuildPhi(l->e->b, register_type(l->e, arg->type), "");
        LLVMAddIncoming(info->scalar, &init, &before, 1);
    }
}

/* The yielded scalars go around to the phis. */
static void yield_args(Lower *l, const Op *yield, Region *region, int first_arg)
{
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->builders[0]);
    for (int i = 0; i < yield->operand_count; i++) {
        Value *value = tt_operand(yield, i);
        if (tt_is_tile(value->type))
            continue;
        LLVMValueRef next = lower_scalar(l, value);
        LLVMAddIncoming(info_of(region->args[first_arg + i])->scalar, &next, &latch, 1);
    }
}

static void set_results(Op *op, Region *region, int first_arg)
{
    for (int i = 0; i < op->result_count; i++) {
        ValueInfo *info = info_of(op->results[i]);
        info->scalar = info_of(region->args[first_arg + i])->scalar;
        info->stored = tt_is_tile(op->results[i]->type);
    }
}

static void lower_scalar_operands(Lower *l, const Op *op)
{
    for (int i = 0; i < op->operand_count; i++)
        if (!tt_is_tile(tt_operand(op, i)->type))
            lower_scalar(l, tt_operand(op, i));
}

/* ---- for ------------------------------------------------------------------------------------------------------------------------- */

/* The index after this one, in 64 bits. It saturates, so that a bound near the end of the range still ends the loop, as does
 * a step that turns out to be negative. */
static LLVMValueRef next_index(Lower *l, const Op *op, LLVMValueRef index, LLVMValueRef const bounds[3])
{
    Emit *e = l->e;
    int64_t step;
    LLVMValueRef next = emit_intrinsic2(e, "llvm.sadd.sat", index, bounds[2]);
    if (tt_constant_int(tt_operand(op, 2), &step) && step > 0)
        return next;
    LLVMValueRef negative = LLVMBuildICmp(e->b, LLVMIntSLT, bounds[2], LLVMConstNull(e->i64), "");
    return LLVMBuildSelect(e->b, negative, bounds[1], next, "");
}

void lower_for(Lower *l, Op *op)
{
    Emit *e = l->e;
    Region *body = op->regions[0];
    lower_scalar_operands(l, op);
    store_inits(l, op, 3);
    straight(l);
    LLVMValueRef bounds[3];
    for (int i = 0; i < 3; i++)
        bounds[i] = LLVMBuildSExt(e->b, lower_scalar(l, tt_operand(op, i)), e->i64, "");
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), header = new_block(e, "for"),
                      inside = new_block(e, "do"), after = new_block(e, "done");
    LLVMBuildBr(e->b, header);
    LLVMPositionBuilderAtEnd(e->b, header);
    LLVMValueRef index = LLVMBuildPhi(e->b, e->i64, "");
    LLVMAddIncoming(index, &bounds[0], &before, 1);
    begin_args(l, op, 3, body, 1, before);
    LLVMBuildCondBr(e->b, LLVMBuildICmp(e->b, LLVMIntSLT, index, bounds[1], ""), inside, after);
    LLVMPositionBuilderAtEnd(e->b, inside);
    LLVMTypeRef type = register_type(e, body->args[0]->type);
    info_of(body->args[0])->scalar = type == e->i64 ? index : LLVMBuildTrunc(e->b, index, type, "");
    lower_region(l, body);
    yield_args(l, tt_terminator(body), body, 1);
    straight(l);
    LLVMValueRef next = next_index(l, op, index, bounds);
    LLVMBasicBlockRef latch = LLVMGetInsertBlock(e->b);
    LLVMAddIncoming(index, &next, &latch, 1);
    LLVMBuildBr(e->b, header);
    LLVMPositionBuilderAtEnd(e->b, after);
    set_results(op, body, 1);
}

/* ---- while ------------------------------------------------------------------------------------------------------------------------ */

void lower_while(Lower *l, Op *op)
{
    Emit *e = l->e;
    Region *test = op->regions[0], *body = op->regions[1];
    lower_scalar_operands(l, op);
    store_inits(l, op, 0);
    straight(l);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(e->b), header = new_block(e, "while"),
                      inside = new_block(e, "do"), after = new_block(e, "done");
    LLVMBuildBr(e->b, header);
    LLVMPositionBuilderAtEnd(e->b, header);
    begin_args(l, op, 0, test, 0, before);
    if (l->image->options.debug) /* it may wait for a program that has failed: for a lock, say */
        emit_stop_after_failure(l);
    for (int i = 0; i < op->result_count; i++) {
        info_of(body->args[i])->scalar = info_of(test->args[i])->scalar;
        info_of(body->args[i])->stored = info_of(test->args[i])->stored;
    }
    lower_region(l, test);
    LLVMValueRef more = lower_scalar(l, tt_operand(tt_terminator(test), 0));
    straight(l);
    LLVMBuildCondBr(e->b, more, inside, after);
    LLVMPositionBuilderAtEnd(e->b, inside);
    lower_region(l, body);
    yield_args(l, tt_terminator(body), test, 0);
    straight(l);
    LLVMBuildBr(e->b, header);
    LLVMPositionBuilderAtEnd(e->b, after);
    set_results(op, test, 0);
}

/* ---- if --------------------------------------------------------------------------------------------------------------------------- */

void lower_if(Lower *l, Op *op)
{
    Emit *e = l->e;
    LLVMValueRef condition = lower_scalar(l, tt_operand(op, 0)), *values[2];
    LLVMBasicBlockRef blocks[2] = {new_block(e, "then"), new_block(e, "else")}, after = new_block(e, "endif");
    straight(l);
    LLVMBuildCondBr(e->b, condition, blocks[0], blocks[1]);
    for (int i = 0; i < 2; i++) {
        Region *region = op->regions[i];
        values[i] = TT_NEW_ARRAY(l->arena, LLVMValueRef, op->result_count);
        LLVMPositionBuilderAtEnd(l->builders[0], blocks[i]);
        lower_region(l, region);
        for (int j = 0; j < op->result_count; j++)
            if (!tt_is_tile(op->results[j]->type))
                values[i][j] = lower_scalar(l, tt_operand(tt_terminator(region), j));
        straight(l);
        blocks[i] = LLVMGetInsertBlock(e->b);
        LLVMBuildBr(e->b, after);
    }
    LLVMPositionBuilderAtEnd(e->b, after);
    for (int i = 0; i < op->result_count; i++) {
        ValueInfo *info = info_of(op->results[i]);
        info->stored = tt_is_tile(op->results[i]->type);
        if (info->stored)
            continue;
        info->scalar = LLVMBuildPhi(e->b, register_type(e, op->results[i]->type), "");
        for (int j = 0; j < 2; j++)
            LLVMAddIncoming(info->scalar, &values[j][i], &blocks[j], 1);
    }
}
