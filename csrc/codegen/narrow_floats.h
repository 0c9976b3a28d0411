/* Conversions between narrow float formats, as bits in integers, and f32, in integer code that works on scalars and
 * vectors alike and is exact: nearest even, denormals, NaN and saturation as support/number.c has them. */
#pragma once
#include "support/support.h"
#include <llvm-c/Core.h>

/* f32 of the integers `bits`, of the format's width. */
LLVMValueRef tt_decode_float(LLVMBuilderRef b, LLVMValueRef bits, const FloatFormat *format);
/* Integers of the format's width, of f32. */
LLVMValueRef tt_encode_float(LLVMBuilderRef b, LLVMValueRef value, const FloatFormat *format,
                             bool toward_zero);
/* f64 to f32 such that a second rounding gives what one rounding of the f64 would ("round to odd", Boldo and Melquiond,
 * 2008); with !sticky, toward zero. */
LLVMValueRef tt_round_to_odd(LLVMBuilderRef b, LLVMValueRef value, bool sticky);
