/* NVIDIA GPUs as LLVM's target: target machine, libdevice, passes. */
#include "codegen/codegen.h"
#include <llvm-c/BitReader.h>
#include <llvm-c/Linker.h>
#include <llvm-c/Support.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>
#include <glob.h>
#include <stdlib.h>

static const char triple[] = "nvptx64-nvidia-cuda";

/* Declared here and not by llvm-c/Target.h, which would have them for all targets that LLVM was built with. */
void LLVMInitializeNVPTXTargetInfo(void);
void LLVMInitializeNVPTXTarget(void);
void LLVMInitializeNVPTXTargetMC(void);
void LLVMInitializeNVPTXAsmPrinter(void);

enum { CAN_LEAVE_OUT = LLVM_VERSION_MAJOR >= 22 };

/* Of the passes that LLVM's code generator for this target brings along, straight-line strength reduction: it compares each
 * sum with those before it, which was a quarter of the time of a product and minutes for thousands of statements; loops
 * came out of ptxas the same without it, instruction for instruction. No other target has it. */
static void leave_out_passes(void)
{
    static const char *const words[] = {"", "-opt-disable=slsr"};
    if (CAN_LEAVE_OUT)
        LLVMParseCommandLineOptions(TT_COUNT(words), words, "");
}

void tt_register_nvptx(void)
{
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    leave_out_passes();
}

bool tt_leaves_out_strength_reduction(void) { return CAN_LEAVE_OUT; }

Codegen *tt_new_nvptx_codegen(Arena *arena, const char *module_name, const char *cpu, const char *features)
{
    LLVMTargetRef target;
    char *error;
    tt_start_llvm();
    if (LLVMGetTargetFromTriple(triple, &target, &error))
        tt_bug("LLVM: %s", tt_take_llvm_message(arena, error));
    LLVMTargetMachineRef machine = LLVMCreateTargetMachine(
        target, triple, cpu, features, LLVMCodeGenLevelDefault, LLVMRelocPIC, LLVMCodeModelDefault);
    return tt_new_codegen_for(arena, module_name, triple, machine);
}

/* ---- libdevice -------------------------------------------------------------------------------------------------------------------- */

/* A toolkit, the toolkit's compiler as a Python package, and what else brings the file along. */
static const char *const places[] = {
    "/usr/local/cuda/nvvm/libdevice/libdevice.10.bc",
    "/usr/local/cuda-*/nvvm/libdevice/libdevice.10.bc",
    "/opt/cuda/nvvm/libdevice/libdevice.10.bc",
    "/usr/lib/nvidia-cuda-toolkit/libdevice/libdevice.10.bc",
};

static const char *find_pattern(Arena *arena, const char *pattern)
{
    glob_t found;
    const char *path = NULL;
    if (!glob(pattern, 0, NULL, &found) && found.gl_pathc)
        path = tt_arena_strdup(arena, found.gl_pathv[found.gl_pathc - 1]); /* the newest by name */
    globfree(&found);
    return path;
}

static const char *find_libdevice(Arena *arena)
{
    const char *chosen = tt_variable("TRITON_LIBDEVICE_PATH"), *path = NULL;
    if (chosen && *chosen)
        return chosen;
    static const char *const homes[] = {"CUDA_HOME", "CUDA_PATH"};
    for (size_t i = 0; i < TT_COUNT(homes) && !path; i++)
        if (tt_variable(homes[i]))
            path = find_pattern(
                arena, tt_arena_format(arena, "%s/nvvm/libdevice/libdevice.10.bc", tt_variable(homes[i])));
    for (size_t i = 0; i < TT_COUNT(places) && !path; i++)
        path = find_pattern(arena, places[i]);
    return path;
}

static const char *first_missing(const Codegen *codegen)
{
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f)) {
        size_t length;
        const char *name = LLVMGetValueName2(f, &length);
        if (LLVMIsDeclaration(f) && !strncmp(name, "__nv_", 5))
            return name;
    }
    return NULL;
}

static LLVMModuleRef read_libdevice(Codegen *codegen, const char *path)
{
    LLVMMemoryBufferRef buffer;
    LLVMModuleRef library;
    char *error;
    if (LLVMCreateMemoryBufferWithContentsOfFile(path, &buffer, &error))
        tt_error_with_remedy(NULL, "set TRITON_LIBDEVICE_PATH to libdevice.10.bc of a CUDA toolkit",
                             "cannot read libdevice from %s: %s", path,
                             tt_take_llvm_message(codegen->arena, error));
    if (LLVMGetBitcodeModuleInContext2(codegen->context, buffer,
                                       &library)) /* bodies are read when they are linked */
        tt_error_with_remedy(NULL, "set TRITON_LIBDEVICE_PATH to libdevice.10.bc of a CUDA toolkit",
                             "%s is no LLVM bitcode", path);
    return library;
}

bool tt_link_libdevice(Codegen *codegen, const char *path)
{
    const char *missing = first_missing(codegen);
    if (!missing)
        return false;
    if (!path)
        path = find_libdevice(codegen->arena);
    if (!path)
        tt_error_with_remedy(
            NULL, "install a CUDA toolkit, or set TRITON_LIBDEVICE_PATH to its libdevice.10.bc",
            "the kernel uses %s of libdevice, which is not found", missing + strlen("__nv_"));
    LLVMModuleRef library = read_libdevice(codegen, path);
    LLVMSetTarget(library, LLVMGetTarget(codegen->module));
    LLVMSetDataLayout(library, LLVMGetDataLayoutStr(codegen->module));
    /* What may be dropped when unused is linked only where it is used. */
    for (LLVMValueRef f = LLVMGetFirstFunction(library); f; f = LLVMGetNextFunction(f))
        if (!LLVMIsDeclaration(f))
            LLVMSetLinkage(f, LLVMLinkOnceODRLinkage);
    if (LLVMLinkModules2(codegen->module, library))
        tt_bug("LLVM: libdevice does not link: %s", codegen->error ? codegen->error : "");
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        if (LLVMGetLinkage(f) == LLVMLinkOnceODRLinkage)
            LLVMSetLinkage(f, LLVMInternalLinkage);
    if ((missing = first_missing(codegen)))
        tt_error(NULL, "libdevice (%s) has no function '%s'", path, missing + strlen("__nv_"));
    return true;
}

/* ---- passes ----------------------------------------------------------------------------------------------------------------------- */

void tt_codegen_run_passes(Codegen *codegen, const char *passes)
{
    LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
    LLVMErrorRef error = LLVMRunPasses(codegen->module, passes, codegen->machine, options);
    LLVMDisposePassBuilderOptions(options);
    if (error) {
        char *message = LLVMGetErrorMessage(error);
        const char *copy = tt_arena_strdup(codegen->arena, message);
        LLVMDisposeErrorMessage(message);
        tt_bug("LLVM: %s", copy);
    }
}
