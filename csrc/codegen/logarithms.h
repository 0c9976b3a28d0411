/* Logarithms of f32, in line, for targets with fma: log within 1.2 ulp, log2 within 2.1, denormals included. */
#pragma once
#include "support/support.h"
#include <llvm-c/Core.h>

/* Natural, or to base 2, of an f32 or a vector of them. Of zero -infinity, of what is negative NaN. */
LLVMValueRef tt_build_log(LLVMBuilderRef b, LLVMValueRef x, bool binary);
