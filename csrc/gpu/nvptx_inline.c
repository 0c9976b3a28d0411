/* Reading and making calls of inline PTX. See nvptx_inline.h. */
#include "gpu/nvptx_inline.h"

const char *nvptx_text_of(LLVMValueRef call)
{
    LLVMValueRef callee = LLVMIsACallInst(call) ? LLVMGetCalledValue(call) : NULL;
    size_t size;
    return callee && LLVMIsAInlineAsm(callee) ? LLVMGetInlineAsmAsmString(callee, &size) : NULL;
}

int nvptx_result_count(LLVMValueRef call)
{
    LLVMTypeRef type = LLVMTypeOf(call);
    LLVMTypeKind kind = LLVMGetTypeKind(type);
    return kind == LLVMVoidTypeKind     ? 0
           : kind == LLVMStructTypeKind ? (int)LLVMCountStructElementTypes(type)
                                        : 1;
}

int nvptx_tied_count(LLVMValueRef call)
{
    int results = nvptx_result_count(call), tied = 0;
    size_t size;
    const char *constraints = LLVMGetInlineAsmConstraintString(LLVMGetCalledValue(call), &size);
    for (int i = 0; constraints && i < results; i++)
        constraints = (constraints = strchr(constraints, ',')) ? constraints + 1 : NULL;
    for (; constraints && *constraints >= '0' && *constraints <= '9'; tied++)
        constraints = (constraints = strchr(constraints, ',')) ? constraints + 1 : NULL;
    return tied;
}

LLVMValueRef nvptx_call(LLVMBuilderRef b, const char *text, const char *constraints, LLVMTypeRef result,
                        LLVMValueRef const *operands, unsigned count)
{
    LLVMTypeRef types[2];
    TT_ASSERT(count <= TT_COUNT(types));
    for (unsigned i = 0; i < count; i++)
        types[i] = LLVMTypeOf(operands[i]);
    LLVMTypeRef function = LLVMFunctionType(result, types, count, 0);
    LLVMValueRef code = LLVMGetInlineAsm(function, text, strlen(text), constraints, strlen(constraints), 0, 0,
                                         LLVMInlineAsmDialectATT, 0);
    return LLVMBuildCall2(b, function, code, (LLVMValueRef *)operands, count, "");
}
