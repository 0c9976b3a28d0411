/* How much stack code takes that is not optimised, which keeps each value in a place of its own. */
#include "codegen/codegen.h"

typedef struct Search {
    Map found; /* function -> its bytes, plus one */
    LLVMTargetDataRef layout;
    int bytes_each;
} Search;

static int64_t bytes_of_function(Search *s, LLVMValueRef function);

/* Vectors and structures take more than what there is for each instruction. */
static int64_t bytes_of_value(const Search *s, LLVMValueRef value)
{
    LLVMTypeRef type = LLVMTypeOf(value);
    bool is_sized = LLVMGetTypeKind(type) != LLVMVoidTypeKind && LLVMTypeIsSized(type);
    return is_sized ? (int64_t)LLVMABISizeOfType(s->layout, type) : 0;
}

static int64_t bytes_of_callee(Search *s, LLVMValueRef call)
{
    LLVMValueRef callee = LLVMIsACallInst(call) ? LLVMIsAFunction(LLVMGetCalledValue(call)) : NULL;
    return callee && !LLVMIsDeclaration(callee) ? bytes_of_function(s, callee) : 0;
}

static int64_t bytes_of_function(Search *s, LLVMValueRef function)
{
    int64_t found = (int64_t)(intptr_t)tt_map_find_ptr(&s->found, function), own = 0, deepest = 0;
    if (found)
        return found - 1;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
            own += s->bytes_each + bytes_of_value(s, i);
            if (LLVMGetInstructionOpcode(i) == LLVMAlloca)
                own += (int64_t)LLVMABISizeOfType(s->layout, LLVMGetAllocatedType(i));
            deepest = TT_MAX(deepest, bytes_of_callee(s, i));
        }
    *tt_map_slot_ptr(&s->found, function) = (void *)(intptr_t)(own + deepest + 1);
    return own + deepest;
}

int64_t tt_codegen_stack(Codegen *codegen, int bytes_each)
{
    Search search = {.found = {.arena = codegen->arena},
                     .layout = LLVMGetModuleDataLayout(codegen->module),
                     .bytes_each = bytes_each};
    int64_t most = 0;
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        most = TT_MAX(most, bytes_of_function(&search, f));
    return most;
}
