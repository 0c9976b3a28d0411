/* Internal to the two files of NVPTX operations. */
#pragma once
#include "gpu/simt.h"

typedef enum AsmKind {
    ASM_PURE,       /* the same operands give the same result; nothing else happens */
    ASM_COLLECTIVE, /* ... that all threads of a warp work out together */
    ASM_MEMORY,     /* accesses memory: stays in order */
    ASM_CONVERGENT, /* and threads meet in it */
} AsmKind;

/* A call of inline PTX; constraints as in LLVM's language reference. */
LLVMValueRef nvptx_asm(Simt *s, AsmKind kind, const char *text, const char *constraints, LLVMTypeRef result,
                       LLVMValueRef const *arguments, int count);

LLVMValueRef nvptx_shared_address(Simt *s, LLVMValueRef place); /* i32 */

/* nvptx_tensor.c */
extern const TensorOps tt_nvptx_tensor_ops;
extern const AsyncOps tt_nvptx_async_ops;
void nvptx_prefetch_maps(Simt *s); /* one thread has the tensor maps fetched, which copies would wait for */

/* nvptx_memory.c */
void nvptx_load(Simt *s, const Access *access, LLVMValueRef const *other, LLVMValueRef *words);
void nvptx_store(Simt *s, const Access *access, LLVMValueRef const *words);
bool nvptx_has_atomic(const Simt *s, AtomicKind kind, TypeKind type);
LLVMValueRef nvptx_atomic(Simt *s, const Atomic *atomic);
int nvptx_widest_addition(const Simt *s, TypeKind type);
void nvptx_add_vector(Simt *s, const Atomic *atomic, LLVMValueRef const *values, int count);
