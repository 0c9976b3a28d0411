/* nvptx_inline: what calls of inline PTX are made of, and such calls. */
#pragma once

#include "gpu/simt.h"

/* The text of an inline PTX call, or NULL. */
const char *nvptx_text_of(LLVMValueRef call);
/* Registers that a call returns, as one value or as the elements of a struct. */
int nvptx_result_count(LLVMValueRef call);
/* How many arguments of a call of inline PTX are what its results hold before. They come first. */
int nvptx_tied_count(LLVMValueRef call);
/* A call of inline PTX that has no effects, in a module after its passes: of up to two operands. (While a kernel is lowered
 * nvptx_asm makes them, with what LLVM's passes have to know.) */
LLVMValueRef nvptx_call(LLVMBuilderRef b, const char *text, const char *constraints, LLVMTypeRef result,
                        LLVMValueRef const *operands, unsigned count);
