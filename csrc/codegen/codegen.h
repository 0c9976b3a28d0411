/* codegen: one door to LLVM's C API. A Codegen is one compilation's context, module and target machine, owned by an
 * arena; the machine code that comes out of it may live longer. Nothing here is shared between compilations,
 * so any number run at once. LLVM's own errors raise bugs (tt_bug); none of them ends the process. */
#pragma once
#include "support/support.h"
#include <llvm-c/Core.h>
#include <llvm-c/TargetMachine.h>

/* What this machine is and offers. */
typedef struct HostCpu {
    const char *triple, *name, *features;
    int vector_bytes; /* of the widest vectors with masks and integer arithmetic: 16, 32 or 64 */
    bool is_x86;
    bool has_f16c; /* conversions between f16 and f32 */
    bool has_fma;
    bool has_avx512;      /* F, BW, DQ and VL: masked and 512-bit operations on all element widths */
    bool has_avx512_bf16; /* dot products of bf16 pairs */
    bool has_avx512_vnni; /* dot products of i8 quadruples and i16 pairs */
} HostCpu;

typedef struct Codegen {
    Arena *arena;
    HostCpu host;
    LLVMContextRef context;
    LLVMModuleRef module;
    LLVMTargetMachineRef machine;
    const char *error;            /* LLVM's first complaint about this module */
    struct DebugInfo *debug_info; /* of the module (debug_info.h); NULL when it has no lines */
} Codegen;

/* ---- target.c ------------------------------------------------------------------------------------------------------- */

/* Before LLVM is first used, here and in other files of codegen/: its constructors run (they take longer than all else
 * that loading this library does), and its targets are registered. Launches of CUDA kernels that are on disk need none. */
void tt_start_llvm(void);
void tt_register_nvptx(void); /* nvptx.c: its part of it */
/* Everything in it is released with the arena. For the host. */
Codegen *tt_new_codegen(Arena *arena, const char *module_name);
/* For any target: `machine` is the codegen's own. */
Codegen *tt_new_codegen_for(Arena *arena, const char *module_name, const char *triple,
                            LLVMTargetMachineRef machine);
/* What decides the code for this machine: its CPU and features, or what TRITON_CPU_ARCH makes of them. */
const char *tt_host_description(Arena *arena);
/* How long a module is: LLVM's instructions, how many of them add or multiply integers or addresses (in all,
 * and in one block at most), and blocks. */
typedef struct CodeSize {
    int instructions, sums, sums_of_block, blocks;
} CodeSize;
CodeSize tt_codegen_size(const Codegen *codegen);
/* From here on machine code is made without optimisation, in half of the time or, of a huge function, a fraction. */
void tt_codegen_hurry(Codegen *codegen);
/* The module as text; then it cannot be trusted to be unchanged: assembly runs the code generator over it. */
const char *tt_codegen_llvm_text(Codegen *codegen);
const char *tt_codegen_assembly(Codegen *codegen);
/* Checks the module's well-formedness; a mistake in it raises a bug. */
void tt_codegen_verify(Codegen *codegen);

/* Of a block: where code may be put. */
LLVMValueRef tt_first_after_phis(LLVMBasicBlockRef block);
/* A copy of a message of LLVM's, which is released. */
char *tt_take_llvm_message(Arena *arena, char *message);

/* ---- split.c -------------------------------------------------------------------------------------------------------- */

/* Makes several functions of each that has more than `longest` instructions, of up to an eighth of that each. */
void tt_codegen_split(Codegen *codegen, int longest);

/* ---- stack.c -------------------------------------------------------------------------------------------------------- */

/* Bytes of stack that the module's functions take at most, with `bytes_each` for an instruction. */
int64_t tt_codegen_stack(Codegen *codegen, int bytes_each);

/* ---- selects.c ------------------------------------------------------------------------------------------------------ */

/* For the host: selects of integers and 16-bit floats become masks, which x86 compiles faster. After all passes. */
void tt_codegen_mask_selects(Codegen *codegen);

/* ---- nvptx.c -------------------------------------------------------------------------------------------------------- */

/* For an NVIDIA GPU: cpu is "sm_90a", features "+ptx83". */
Codegen *tt_new_nvptx_codegen(Arena *arena, const char *module_name, const char *cpu, const char *features);
/* Without it the time that code for a GPU takes is linear; LLVM 22 is the first that can be told. */
bool tt_leaves_out_strength_reduction(void);
/* Links libdevice's functions that the module calls, to be inlined; false if it calls none. `path`: NULL looks for it (see
 * nvptx.c). Not to be found raises a user error. */
bool tt_link_libdevice(Codegen *codegen, const char *path);
/* Runs LLVM's passes, described as for `opt -passes`, with the target machine attached. */
void tt_codegen_run_passes(Codegen *codegen, const char *passes);

/* ---- line_table.c --------------------------------------------------------------------------------------------------- */

/* The line, in the sense of the module's debug information, of the instruction `offset` bytes from the beginning of the
 * module's machine code, which is made for that; 0: unknown. *hash is that code's. */
int tt_codegen_line_at(Codegen *codegen, size_t offset, uint64_t *hash);

/* ---- jit.c ---------------------------------------------------------------------------------------------------------- */

typedef struct HostObject {
    Bytes file;       /* a relocatable object file */
    size_t code_size; /* bytes of code from the module's first function on */
} HostObject;
/* The module's machine code, in the codegen's arena. */
HostObject tt_codegen_object(Codegen *codegen);
/* The address of something outside of the code by the name that the code has for it, or NULL. */
typedef void *SymbolFinder(const char *name);
/* Makes code in memory of an object file and returns the address of function `name`. The code is released with `owner`.
 * What does not link raises a bug. */
void *tt_link_object(Bytes object, const char *name, SymbolFinder *find, Arena *owner);
