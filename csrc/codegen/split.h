/* What split.c and block_order.c share. */
#pragma once
#include "codegen/codegen.h"

/* The reachable blocks of a function, the entry first; their number. */
int tt_order_blocks(LLVMValueRef function, Arena *arena, LLVMBasicBlockRef **blocks);
