/* Line tables: which Python line each instruction comes from, for profilers and sanitizers. */
#pragma once
#include "codegen/codegen.h"

typedef struct DebugInfo DebugInfo;
/* For a function that stands at `loc`; NULL when that is unknown. Finished by tt_finish_debug_info, before LLVM's passes. */
DebugInfo *tt_new_debug_info(Codegen *codegen, LLVMValueRef function, const char *name, const Loc *loc);
/* Another function of the module begins; tt_debug_leave with what it returns goes back to the one before. */
LLVMMetadataRef tt_debug_enter(DebugInfo *info, LLVMValueRef function, const char *name, int line);
void tt_debug_leave(DebugInfo *info, LLVMMetadataRef before);
/* The function has got instructions of another one, whose lines are to be its own. At any time. */
void tt_debug_adopt(DebugInfo *info, LLVMValueRef function);
/* A call that comes from no line; LLVM wants that said where both functions have lines. */
void tt_debug_no_line(LLVMValueRef instruction);
/* What is built from here on comes from this line of the module's file; 0: from no line. */
void tt_debug_line(DebugInfo *info, LLVMBuilderRef builder, int line);
/* What is built from here on comes from `loc`. */
void tt_debug_at(DebugInfo *info, LLVMBuilderRef builder, const Loc *loc);
void tt_finish_debug_info(DebugInfo *info, LLVMBuilderRef builder);
