/* Line tables: which Python line each instruction comes from, for profilers and sanitizers. */
#pragma once
#include "codegen/codegen.h"

typedef struct DebugInfo DebugInfo;
/* For a function that stands at `loc`; NULL when that is unknown. Finished by tt_finish_debug_info, before LLVM's passes. */
DebugInfo *tt_new_debug_info(Codegen *codegen, LLVMValueRef function, const char *name, const Loc *loc);
/* What is built from here on comes from `loc`. */
void tt_debug_at(DebugInfo *info, LLVMBuilderRef builder, const Loc *loc);
void tt_finish_debug_info(DebugInfo *info, LLVMBuilderRef builder);
