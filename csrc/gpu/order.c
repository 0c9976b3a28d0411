/* The order in which arithmetic stands. Lowering tile by tile computes one operation for all of a thread's elements
 * before the next operation; this puts what has no effect right in front of what first needs it, so that the elements of
 * one store are computed before those of the next. The assembler keeps to the given order more than not: elements that
 * are done leave their registers, and more programs run at a time. Where threads talk to each other their elements are
 * needed together, and what a loop carries is not needed by anything in it; such blocks stay as they are. */
#include "gpu/simt.h"

typedef struct Order {
    LLVMBasicBlockRef block;
    LLVMBuilderRef b;
    Arena *arena;
    Map unplaced; /* what has no effect and is yet to be placed -> itself */
    TT_VECTOR(LLVMValueRef) pending;
    unsigned memory_kind, convergent_kind;
} Order;

/* ---- what may move ---------------------------------------------------------------------------------------------------------------- */

static bool is_convergent(const Order *o, LLVMValueRef call)
{
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMValueRef callee = LLVMGetCalledValue(call);
    return LLVMGetCallSiteEnumAttribute(call, at, o->convergent_kind) ||
           (LLVMIsAFunction(callee) && LLVMGetEnumAttributeAtIndex(callee, at, o->convergent_kind));
}

static bool has_no_memory(LLVMAttributeRef attribute)
{
    return attribute && !LLVMGetEnumAttributeValue(attribute);
}

/* Calls of intrinsics and inline assembly that only compute. */
static bool is_pure_call(const Order *o, LLVMValueRef call)
{
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    LLVMValueRef callee = LLVMGetCalledValue(call);
    return has_no_memory(LLVMGetCallSiteEnumAttribute(call, at, o->memory_kind)) ||
           (LLVMIsAFunction(callee) &&
            has_no_memory(LLVMGetEnumAttributeAtIndex(callee, at, o->memory_kind)));
}

static bool has_effect(const Order *o, LLVMValueRef instruction)
{
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMCall:
        return !is_pure_call(o, instruction);
    case LLVMPHI:
    case LLVMLoad:
    case LLVMStore:
    case LLVMFence:
    case LLVMAtomicCmpXchg:
    case LLVMAtomicRMW:
    case LLVMAlloca:
        return true;
    default:
        return LLVMIsATerminatorInst(instruction) != NULL;
    }
}

static bool goes_into_phi(LLVMValueRef instruction)
{
    for (LLVMUseRef use = LLVMGetFirstUse(instruction); use; use = LLVMGetNextUse(use))
        if (LLVMGetInstructionOpcode(LLVMGetUser(use)) == LLVMPHI)
            return true;
    return false;
}

static bool is_better_ordered(const Order *o)
{
    for (LLVMValueRef i = LLVMGetFirstInstruction(o->block); i; i = LLVMGetNextInstruction(i))
        if ((LLVMIsACallInst(i) && is_convergent(o, i)) || (!has_effect(o, i) && goes_into_phi(i)))
            return false;
    return true;
}

/* ---- moving ----------------------------------------------------------------------------------------------------------------------- */

static bool is_unplaced(const Order *o, LLVMValueRef value) { return tt_map_find_ptr(&o->unplaced, value); }

/* What an instruction needs, then the instruction. */
static void place(Order *o, LLVMValueRef wanted)
{
    tt_push(o->arena, o->pending, wanted);
    while (o->pending.count) {
        LLVMValueRef instruction = o->pending.data[o->pending.count - 1];
        int ready = o->pending.count, operands = LLVMGetNumOperands(instruction);
        if (LLVMGetInstructionOpcode(instruction) == LLVMPHI)
            operands = 0;
        for (int i = operands - 1; i >= 0; i--)
            if (is_unplaced(o, LLVMGetOperand(instruction, (unsigned)i)))
                tt_push(o->arena, o->pending, LLVMGetOperand(instruction, (unsigned)i));
        if (o->pending.count > ready)
            continue;
        o->pending.count--;
        if (instruction != wanted && !is_unplaced(o, instruction))
            continue; /* needed twice */
        *tt_map_slot_ptr(&o->unplaced, instruction) = NULL;
        LLVMInstructionRemoveFromParent(instruction);
        LLVMInsertIntoBuilder(o->b, instruction);
    }
}

static bool is_used_elsewhere(const Order *o, LLVMValueRef instruction)
{
    for (LLVMUseRef use = LLVMGetFirstUse(instruction); use; use = LLVMGetNextUse(use)) {
        LLVMValueRef user = LLVMGetUser(use);
        if (LLVMGetInstructionParent(user) != o->block || LLVMGetInstructionOpcode(user) == LLVMPHI)
            return true;
    }
    return false;
}

static void order_block(Order *o)
{
    TT_VECTOR(LLVMValueRef) all = {0};
    for (LLVMValueRef i = LLVMGetFirstInstruction(o->block); i; i = LLVMGetNextInstruction(i)) {
        tt_push(o->arena, all, i);
        if (!has_effect(o, i))
            *tt_map_slot_ptr(&o->unplaced, i) = i;
    }
    LLVMPositionBuilderAtEnd(o->b, o->block);
    for (int i = 0; i < all.count; i++) {
        bool last = LLVMIsATerminatorInst(all.data[i]) != NULL;
        for (int j = 0; last && j < i; j++)
            if (is_unplaced(o, all.data[j]) && is_used_elsewhere(o, all.data[j]))
                place(o, all.data[j]);
        if (has_effect(o, all.data[i]))
            place(o, all.data[i]);
    }
}

void tt_order_arithmetic(Codegen *codegen, Arena *arena)
{
    Order order = {.arena = arena, .unplaced = {.arena = arena}};
    order.memory_kind = LLVMGetEnumAttributeKindForName("memory", strlen("memory"));
    order.convergent_kind = LLVMGetEnumAttributeKindForName("convergent", strlen("convergent"));
    order.b = LLVMCreateBuilderInContext(LLVMGetModuleContext(codegen->module));
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block)) {
            order.block = block;
            if (is_better_ordered(&order))
                order_block(&order);
        }
    LLVMDisposeBuilder(order.b);
}
