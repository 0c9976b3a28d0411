/* The host as LLVM's target: its CPU and features, target machines, and text output. */
#include "codegen/codegen.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/ErrorHandling.h>
#include <llvm-c/Target.h>
#include <stdlib.h>

/* LLVM exits the process when a fatal error's handler returns, so this one unwinds to the compile entry. What LLVM
 * held at that moment leaks, which is the lesser evil. */
static void on_fatal_error(const char *reason) { tt_bug("LLVM: %s", reason); }

static void register_targets(void)
{
    LLVMInitializeNativeTarget();
    LLVMInitializeNativeAsmPrinter();
    tt_register_nvptx();
    LLVMResetFatalErrorHandler();
    LLVMInstallFatalErrorHandler(on_fatal_error);
}

void tt_start_llvm(void) { tt_construct_late(register_targets); }

static void release_context(void *context) { LLVMContextDispose(context); }
static void release_module(void *module) { LLVMDisposeModule(module); }
static void release_machine(void *machine) { LLVMDisposeTargetMachine(machine); }

/* Errors are reported after the fact: raising from here would leave LLVM in the middle of its work. */
static void on_diagnostic(LLVMDiagnosticInfoRef info, void *context)
{
    Codegen *codegen = context;
    if (LLVMGetDiagInfoSeverity(info) != LLVMDSError || codegen->error)
        return;
    char *text = LLVMGetDiagInfoDescription(info);
    codegen->error = tt_arena_strdup(codegen->arena, text);
    LLVMDisposeMessage(text);
}

char *tt_take_llvm_message(Arena *arena, char *message)
{
    char *copy = tt_arena_strdup(arena, message);
    LLVMDisposeMessage(message);
    return copy;
}

LLVMValueRef tt_first_after_phis(LLVMBasicBlockRef block)
{
    LLVMValueRef i = LLVMGetFirstInstruction(block);
    while (LLVMIsAPHINode(i))
        i = LLVMGetNextInstruction(i);
    return i;
}

/* Features come as "+avx2,-avx512f,...". */
static bool has_feature(const char *features, const char *wanted)
{
    size_t length = strlen(wanted);
    for (const char *at = features; (at = strstr(at, wanted)); at += length)
        if (at > features && at[-1] == '+' && (at[length] == ',' || at[length] == 0))
            return true;
    return false;
}

/* The levels of the x86-64 ABI, with those of their features that matter here. */
static const struct {
    const char *name, *features;
} levels[] = {
    {"x86-64", ""},
    {"x86-64-v2", "+sse4.2"},
    {"x86-64-v3", "+sse4.2,+avx2,+fma,+f16c"},
    {"x86-64-v4", "+sse4.2,+avx2,+fma,+f16c,+avx512f,+avx512bw,+avx512dq,+avx512vl"},
};

/* TRITON_CPU_ARCH restricts the code to a level, so that it runs on older machines, or the same on all. */
static void restrict_host(HostCpu *host)
{
    const char *wanted = tt_variable("TRITON_CPU_ARCH");
    if (!wanted || !*wanted || !host->is_x86)
        return;
    for (size_t i = 0; i < TT_COUNT(levels); i++) {
        if (strcmp(levels[i].name, wanted))
            continue;
        host->name = levels[i].name;
        host->features = levels[i].features;
        return;
    }
    tt_error(NULL, "TRITON_CPU_ARCH is '%s', which is none of x86-64, x86-64-v2, x86-64-v3 and x86-64-v4",
             wanted);
}

static HostCpu describe_host(Arena *arena)
{
    tt_start_llvm();
    HostCpu host = {
        .triple = tt_take_llvm_message(arena, LLVMGetDefaultTargetTriple()),
        .name = tt_take_llvm_message(arena, LLVMGetHostCPUName()),
        .features = tt_take_llvm_message(arena, LLVMGetHostCPUFeatures()),
    };
    host.is_x86 = !strncmp(host.triple, "x86_64", 6);
    restrict_host(&host);
    const char *features = host.features;
    host.has_avx512 = has_feature(features, "avx512f") && has_feature(features, "avx512bw") &&
                      has_feature(features, "avx512dq") && has_feature(features, "avx512vl");
    host.has_f16c = host.has_avx512 || has_feature(features, "f16c");
    host.has_fma = !host.is_x86 || has_feature(features, "fma");
    host.has_avx512_bf16 = host.has_avx512 && has_feature(features, "avx512bf16");
    host.has_avx512_vnni = host.has_avx512 && has_feature(features, "avx512vnni");
    host.vector_bytes = host.has_avx512 ? 64 : has_feature(features, "avx2") ? 32 : 16;
    return host;
}

static LLVMTargetMachineRef create_machine(const HostCpu *host, LLVMCodeGenOptLevel level, Arena *arena)
{
    LLVMTargetRef target;
    char *error;
    if (LLVMGetTargetFromTriple(host->triple, &target, &error))
        tt_bug("LLVM: %s", tt_take_llvm_message(arena, error));
    return LLVMCreateTargetMachine(target, host->triple, host->name, host->features, level, LLVMRelocPIC,
                                   LLVMCodeModelSmall);
}

void tt_codegen_hurry(Codegen *codegen)
{
    LLVMTargetMachineRef old = codegen->machine;
    char *triple = LLVMGetTargetMachineTriple(old), *cpu = LLVMGetTargetMachineCPU(old),
         *features = LLVMGetTargetMachineFeatureString(old);
    codegen->machine = LLVMCreateTargetMachine(LLVMGetTargetMachineTarget(old), triple, cpu, features,
                                               LLVMCodeGenLevelNone, LLVMRelocPIC, LLVMCodeModelDefault);
    tt_arena_on_release(codegen->arena, release_machine, codegen->machine);
    LLVMDisposeMessage(triple);
    LLVMDisposeMessage(cpu);
    LLVMDisposeMessage(features);
}

static bool is_sum(LLVMValueRef instruction)
{
    switch (LLVMGetInstructionOpcode(instruction)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMMul:
    case LLVMShl:
    case LLVMGetElementPtr:
        return true;
    default:
        return false;
    }
}

CodeSize tt_codegen_size(const Codegen *codegen)
{
    CodeSize size = {0};
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block;
             block = LLVMGetNextBasicBlock(block)) {
            size.blocks++;
            int before = size.sums;
            for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i)) {
                size.instructions++;
                size.sums += is_sum(i);
            }
            size.sums_of_block = TT_MAX(size.sums_of_block, size.sums - before);
        }
    return size;
}

Codegen *tt_new_codegen_for(Arena *arena, const char *module_name, const char *triple,
                            LLVMTargetMachineRef machine)
{
    Codegen *codegen = TT_NEW(arena, Codegen);
    codegen->arena = arena;
    codegen->machine = machine;
    tt_arena_on_release(arena, release_machine, codegen->machine);
    codegen->context = LLVMContextCreate();
    tt_arena_on_release(arena, release_context, codegen->context);
    LLVMContextSetDiagnosticHandler(codegen->context, on_diagnostic, codegen);
    codegen->module = LLVMModuleCreateWithNameInContext(module_name, codegen->context);
    tt_arena_on_release(arena, release_module, codegen->module);
    LLVMSetTarget(codegen->module, triple);
    LLVMTargetDataRef layout = LLVMCreateTargetDataLayout(codegen->machine);
    LLVMSetModuleDataLayout(codegen->module, layout);
    LLVMDisposeTargetData(layout);
    return codegen;
}

Codegen *tt_new_codegen(Arena *arena, const char *module_name)
{
    HostCpu host = describe_host(arena);
    LLVMTargetMachineRef machine = create_machine(&host, LLVMCodeGenLevelDefault, arena);
    Codegen *codegen = tt_new_codegen_for(arena, module_name, host.triple, machine);
    codegen->host = host;
    return codegen;
}

const char *tt_host_description(Arena *arena)
{
    HostCpu host = describe_host(arena);
    return tt_arena_format(arena, "%s %s %s", host.triple, host.name, host.features);
}

const char *tt_codegen_llvm_text(Codegen *codegen)
{
    return tt_take_llvm_message(codegen->arena, LLVMPrintModuleToString(codegen->module));
}

static void release_buffer(void *buffer) { LLVMDisposeMemoryBuffer(buffer); }

const char *tt_codegen_assembly(Codegen *codegen)
{
    LLVMMemoryBufferRef buffer;
    char *error;
    if (LLVMTargetMachineEmitToMemoryBuffer(codegen->machine, codegen->module, LLVMAssemblyFile, &error,
                                            &buffer))
        tt_bug("LLVM: %s", tt_take_llvm_message(codegen->arena, error));
    tt_arena_on_release(codegen->arena, release_buffer, buffer);
    if (codegen->error)
        tt_bug("LLVM: %s", codegen->error);
    return tt_arena_strndup(codegen->arena, LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer));
}

void tt_codegen_verify(Codegen *codegen)
{
    char *error = NULL;
    if (LLVMVerifyModule(codegen->module, LLVMReturnStatusAction, &error))
        tt_bug("the LLVM module is not well-formed: %s", tt_take_llvm_message(codegen->arena, error));
    LLVMDisposeMessage(error);
}
