/* The order in which arithmetic stands. Lowering tile by tile computes one operation for all of a thread's elements
 * before the next operation; this puts what has no effect right in front of what first needs it, so that the elements of
 * one store are computed before those of the next. The assembler keeps to the given order more than not: elements that
 * are done leave their registers, and more programs run at a time. Where threads talk to each other their elements are
 * needed together, and the given order keeps more under way; but not at the price of other programs: where it takes many
 * registers, and this order clearly fewer, a block is put in order all the same (the largest of random numbers, with
 * four numbers for an element at a time: 172 registers, in order 48). A product has its registers for its sums anyway.
 * What a loop carries is not needed by anything in it; such blocks stay as they are.
 *
 * What a loop computes for its products goes from shared memory to shared memory, and there is nothing else to do for a warp: so
 * each of its loads stands behind the stores that need the ones before, but for one that is under way. The assembler keeps to
 * that, for it knows of no load that it is not of what was stored. */
#include "gpu/simt.h"

enum {
    MANY = 96,   /* registers of a thread: with fewer there are enough programs on a multiprocessor */
    CLEARLY = 3, /* quarters: fewer than so many of those before */
};

typedef TT_VECTOR(LLVMValueRef) Sequence;

typedef struct Order {
    LLVMBasicBlockRef block;
    LLVMBuilderRef b;
    Arena *arena;
    Map unplaced; /* what has no effect and is yet to be placed -> itself */
    TT_VECTOR(LLVMValueRef) pending;
    unsigned memory_kind, convergent_kind;
    bool has_products;
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

static bool has_convergent(const Order *o)
{
    for (LLVMValueRef i = LLVMGetFirstInstruction(o->block); i; i = LLVMGetNextInstruction(i))
        if (LLVMIsACallInst(i) && is_convergent(o, i))
            return true;
    return false;
}

static bool feeds_phi(const Order *o)
{
    for (LLVMValueRef i = LLVMGetFirstInstruction(o->block); i; i = LLVMGetNextInstruction(i))
        if (!has_effect(o, i) && goes_into_phi(i))
            return true;
    return false;
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

static Sequence instructions(const Order *o)
{
    Sequence all = {0};
    for (LLVMValueRef i = LLVMGetFirstInstruction(o->block); i; i = LLVMGetNextInstruction(i))
        tt_push(o->arena, all, i);
    return all;
}

/* `all`: the block's instructions, as they stand. */
static void order_block(Order *o, const Sequence *all)
{
    for (int i = 0; i < all->count; i++)
        if (!has_effect(o, all->data[i]))
            *tt_map_slot_ptr(&o->unplaced, all->data[i]) = all->data[i];
    LLVMPositionBuilderAtEnd(o->b, o->block);
    for (int i = 0; i < all->count; i++) {
        bool last = LLVMIsATerminatorInst(all->data[i]) != NULL;
        for (int j = 0; last && j < i; j++)
            if (is_unplaced(o, all->data[j]) && is_used_elsewhere(o, all->data[j]))
                place(o, all->data[j]);
        if (has_effect(o, all->data[i]))
            place(o, all->data[i]);
    }
}

static void put_back(Order *o, const Sequence *all)
{
    LLVMPositionBuilderAtEnd(o->b, o->block);
    for (int i = 0; i < all->count; i++) {
        LLVMInstructionRemoveFromParent(all->data[i]);
        LLVMInsertIntoBuilder(o->b, all->data[i]);
    }
}

/* ---- registers -------------------------------------------------------------------------------------------------------------------- */

/* Bits of registers; predicates have registers of their own. */
static int width(LLVMTypeRef type)
{
    int sum = 0;
    switch (LLVMGetTypeKind(type)) {
    case LLVMVoidTypeKind:
        return 0;
    case LLVMIntegerTypeKind:
        return LLVMGetIntTypeWidth(type) == 1 ? 0 : (int)LLVMGetIntTypeWidth(type);
    case LLVMHalfTypeKind:
    case LLVMBFloatTypeKind:
        return 16;
    case LLVMPointerTypeKind:
    case LLVMDoubleTypeKind:
        return 64;
    case LLVMVectorTypeKind:
        return width(LLVMGetElementType(type)) * (int)LLVMGetVectorSize(type);
    case LLVMStructTypeKind:
        for (unsigned i = 0; i < LLVMCountStructElementTypes(type); i++)
            sum += TT_MAX(32, width(LLVMStructGetTypeAtIndex(type, i)));
        return sum;
    default:
        return 32;
    }
}

static int cost(LLVMValueRef value) { return (width(LLVMTypeOf(value)) + 31) / 32; }

/* The most registers that values which only this block uses take at a time, from its end to its start. */
static int registers(const Order *o)
{
    Map live = {.arena = o->arena}, kept = {.arena = o->arena};
    int now = 0, most = 0;
    for (LLVMValueRef i = LLVMGetLastInstruction(o->block); i; i = LLVMGetPreviousInstruction(i))
        if (is_used_elsewhere(o, i))
            *tt_map_slot_ptr(&kept, i) = i;
    for (LLVMValueRef i = LLVMGetLastInstruction(o->block); i; i = LLVMGetPreviousInstruction(i)) {
        int operands = LLVMGetInstructionOpcode(i) == LLVMPHI ? 0 : LLVMGetNumOperands(i);
        now -= tt_map_find_ptr(&live, i) ? cost(i) : 0;
        for (int k = 0; k < operands; k++) {
            LLVMValueRef operand = LLVMGetOperand(i, (unsigned)k);
            bool is_own = LLVMIsAInstruction(operand) && LLVMGetInstructionParent(operand) == o->block;
            if (!is_own || tt_map_find_ptr(&kept, operand) || tt_map_find_ptr(&live, operand))
                continue;
            *tt_map_slot_ptr(&live, operand) = operand;
            now += cost(operand);
        }
        most = TT_MAX(most, now);
    }
    return most;
}

/* What nothing uses would never be placed, and so stay in front of the block's phis. */
static void drop_unused(const Order *o)
{
    for (LLVMValueRef i = LLVMGetLastInstruction(o->block), before; i; i = before) {
        before = LLVMGetPreviousInstruction(i);
        if (!LLVMGetFirstUse(i) && !has_effect(o, i))
            LLVMInstructionEraseFromParent(i);
    }
}

/* ---- from shared memory to shared memory --------------------------------------------------------------------------------------- */

static bool is_shared_access(LLVMValueRef instruction, LLVMOpcode opcode)
{
    LLVMValueRef address = LLVMGetInstructionOpcode(instruction) != opcode ? NULL
                           : opcode == LLVMLoad                            ? LLVMGetOperand(instruction, 0)
                                                                           : LLVMGetOperand(instruction, 1);
    return address && LLVMGetPointerAddressSpace(LLVMTypeOf(address)) == SHARED_MEMORY &&
           !LLVMGetVolatile(instruction);
}

static bool may_move(const Order *o, LLVMValueRef instruction)
{
    return !has_effect(o, instruction) || is_shared_access(instruction, LLVMLoad) ||
           is_shared_access(instruction, LLVMStore);
}

/* Appends the loads that an instruction needs, of what is unplaced and not seen yet. */
static void find_loads(Order *o, LLVMValueRef wanted, Map *seen, Sequence *loads)
{
    tt_push(o->arena, o->pending, wanted);
    while (o->pending.count) {
        LLVMValueRef instruction = o->pending.data[--o->pending.count];
        void **slot = tt_map_slot_ptr(seen, instruction);
        if (*slot)
            continue;
        *slot = instruction;
        if (is_shared_access(instruction, LLVMLoad))
            tt_push(o->arena, *loads, instruction);
        for (int i = LLVMGetNumOperands(instruction) - 1; i >= 0; i--)
            if (is_unplaced(o, LLVMGetOperand(instruction, (unsigned)i)))
                tt_push(o->arena, o->pending, LLVMGetOperand(instruction, (unsigned)i));
    }
}

/* Instructions from `start` to `end`, between which no threads meet: so no load is of what a store among them stores. */
static void place_stretch(Order *o, const Sequence *all, int start, int end)
{
    enum { AHEAD = 1 };
    Map seen = {.arena = o->arena};
    Sequence loads = {0};
    int *needed = TT_NEW_ARRAY(o->arena, int, end - start), placed = 0;
    for (int i = start; i < end; i++)
        if (!is_shared_access(all->data[i], LLVMStore))
            *tt_map_slot_ptr(&o->unplaced, all->data[i]) = all->data[i];
    for (int i = start; i < end; i++) {
        if (is_shared_access(all->data[i], LLVMStore))
            find_loads(o, all->data[i], &seen, &loads);
        needed[i - start] = loads.count;
    }
    for (int i = start; i < end; i++) {
        if (!is_shared_access(all->data[i], LLVMStore))
            continue;
        for (; placed < TT_MIN(needed[i - start] + AHEAD, loads.count); placed++)
            place(o, loads.data[placed]);
        place(o, all->data[i]);
    }
    for (int i = start; i < end; i++)
        if (is_unplaced(o, all->data[i]))
            place(o, all->data[i]);
}

/* Puts stores in order between the places where threads meet. */
static void order_stretches(Order *o)
{
    Sequence all = instructions(o);
    LLVMPositionBuilderAtEnd(o->b, o->block);
    for (int start = 0, end; start < all.count; start = end) {
        for (end = start; end < all.count && may_move(o, all.data[end]); end++)
            ;
        place_stretch(o, &all, start, end);
        if (end < all.count)
            place(o, all.data[end++]);
    }
}

static void improve(Order *o)
{
    drop_unused(o);
    bool is_together = has_convergent(o);
    if (is_together && o->has_products) {
        order_stretches(o);
        return;
    }
    if (feeds_phi(o))
        return;
    Sequence given = instructions(o);
    int before = is_together ? registers(o) : 0;
    if (is_together && before < MANY)
        return;
    order_block(o, &given);
    if (is_together && registers(o) * 4 > before * CLEARLY)
        put_back(o, &given);
}

void tt_order_arithmetic(Codegen *codegen, bool has_products, Arena *arena)
{
    Order order = {.arena = arena, .unplaced = {.arena = arena}, .has_products = has_products};
    order.memory_kind = LLVMGetEnumAttributeKindForName("memory", strlen("memory"));
    order.convergent_kind = LLVMGetEnumAttributeKindForName("convergent", strlen("convergent"));
    order.b = LLVMCreateBuilderInContext(LLVMGetModuleContext(codegen->module));
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block)) {
            order.block = block;
            improve(&order);
        }
    LLVMDisposeBuilder(order.b);
}
