/* From a module to code in memory: object emission, then ORC's linker. The code's dylib is a bare one, so nothing is
 * looked up in the process: what the code refers to is what tt_add_symbol declared. Pages are writable first and
 * executable after (JITLink's memory manager). */
#include "codegen/object.h"
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <math.h>
#include <stdlib.h>

typedef struct Linker {
    Codegen *codegen;
    LLVMOrcLLJITRef jit;
    LLVMOrcExecutionSessionRef session;
    LLVMOrcJITDylibRef dylib;
} Linker;

typedef struct Lookup {
    LLVMErrorRef error;
    void *address;
} Lookup;

static void check(Codegen *codegen, LLVMErrorRef error)
{
    if (!error)
        return;
    char *text = LLVMGetErrorMessage(error);
    const char *copy = tt_arena_strdup(codegen->arena, text);
    LLVMDisposeErrorMessage(text);
    tt_bug("LLVM: %s%s%s", codegen->error ? codegen->error : "", codegen->error ? "; " : "", copy);
}

LLVMMemoryBufferRef tt_codegen_object(Codegen *codegen)
{
    LLVMMemoryBufferRef object;
    char *error;
    if (LLVMTargetMachineEmitToMemoryBuffer(codegen->machine, codegen->module, LLVMObjectFile, &error,
                                            &object)) {
        const char *copy = tt_arena_strdup(codegen->arena, error);
        LLVMDisposeMessage(error);
        tt_bug("LLVM: %s", copy);
    }
    if (codegen->error) {
        LLVMDisposeMemoryBuffer(object);
        tt_bug("LLVM: %s", codegen->error);
    }
    return object;
}

/* The lookup only says that it failed; here comes why. The session would print it. */
static void keep_error(void *context, LLVMErrorRef error)
{
    Codegen *codegen = context;
    char *text = LLVMGetErrorMessage(error);
    if (!codegen->error)
        codegen->error = tt_arena_strdup(codegen->arena, text);
    LLVMDisposeErrorMessage(text);
}

static void release_jit(void *jit) { LLVMConsumeError(LLVMOrcDisposeLLJIT(jit)); }

/* An LLJIT is made from the description of a target machine. It only links here and never compiles, so a plain one
 * does, which is made faster than one with all features of the host. */
static Linker create_linker(Codegen *codegen, Arena *owner)
{
    Linker linker = {.codegen = codegen};
    LLVMTargetRef target = LLVMGetTargetMachineTarget(codegen->machine);
    LLVMTargetMachineRef plain = LLVMCreateTargetMachine(
        target, codegen->host.triple, "", "", LLVMCodeGenLevelNone, LLVMRelocPIC, LLVMCodeModelSmall);
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
        builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(plain));
    check(codegen, LLVMOrcCreateLLJIT(&linker.jit, builder));
    tt_arena_on_release(owner, release_jit, linker.jit);
    linker.session = LLVMOrcLLJITGetExecutionSession(linker.jit);
    LLVMOrcExecutionSessionSetErrorReporter(linker.session, keep_error, codegen);
    linker.dylib = LLVMOrcExecutionSessionCreateBareJITDylib(linker.session, "kernel");
    return linker;
}

/* What LLVM itself calls: for copies, and for what machines have no instruction for. */
static void add_library_symbols(Codegen *codegen)
{
    static const struct {
        const char *name;
        void *address;
    } symbols[] = {
        {"memcpy", (void *)memcpy}, {"memset", (void *)memset}, {"memmove", (void *)memmove},
        {"floor", (void *)floor},   {"floorf", (void *)floorf}, {"ceil", (void *)ceil},
        {"ceilf", (void *)ceilf},   {"trunc", (void *)trunc},   {"truncf", (void *)truncf},
        {"rint", (void *)rint},     {"rintf", (void *)rintf},   {"round", (void *)round},
        {"roundf", (void *)roundf}, {"fma", (void *)fma},       {"fmaf", (void *)fmaf},
        {"fmin", (void *)fmin},     {"fminf", (void *)fminf},   {"fmax", (void *)fmax},
        {"fmaxf", (void *)fmaxf},
    };
    for (size_t i = 0; i < TT_COUNT(symbols); i++)
        tt_add_symbol(codegen, symbols[i].name, symbols[i].address);
}

static void define_symbols(const Linker *linker)
{
    Codegen *codegen = linker->codegen;
    add_library_symbols(codegen);
    int count = codegen->symbols.count;
    LLVMOrcCSymbolMapPair *pairs = TT_NEW_ARRAY(codegen->arena, LLVMOrcCSymbolMapPair, count);
    for (int i = 0; i < count; i++) {
        pairs[i].Name = LLVMOrcExecutionSessionIntern(linker->session, codegen->symbols.data[i].name);
        pairs[i].Sym.Address = (uintptr_t)codegen->symbols.data[i].address;
        pairs[i].Sym.Flags.GenericFlags =
            LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
    }
    check(codegen, LLVMOrcJITDylibDefine(linker->dylib, LLVMOrcAbsoluteSymbols(pairs, (size_t)count)));
}

static void on_lookup(LLVMErrorRef error, LLVMOrcCSymbolMapPairs pairs, size_t count, void *context)
{
    Lookup *lookup = context;
    lookup->error = error;
    if (!error && count == 1)
        lookup->address = (void *)(uintptr_t)pairs[0].Sym.Address;
}

/* The session links in this thread, so the answer is there when the call returns. */
static void *look_up(const Linker *linker, const char *name)
{
    Lookup lookup = {0};
    LLVMOrcCJITDylibSearchOrderElement where = {linker->dylib, LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
    LLVMOrcCLookupSetElement what = {LLVMOrcExecutionSessionIntern(linker->session, name),
                                     LLVMOrcSymbolLookupFlagsRequiredSymbol};
    LLVMOrcExecutionSessionLookup(linker->session, LLVMOrcLookupKindStatic, &where, 1, &what, 1, on_lookup,
                                  &lookup);
    check(linker->codegen, lookup.error);
    TT_ASSERT(lookup.address);
    return lookup.address;
}

void *tt_jit_load(Codegen *codegen, const char *name, Arena *owner, size_t *size)
{
    LLVMMemoryBufferRef object = tt_codegen_object(codegen);
    if (size)
        *size = tt_object_section(codegen, object, ".text").size;
    Linker linker = create_linker(codegen, owner);
    define_symbols(&linker);
    check(codegen, LLVMOrcLLJITAddObjectFile(linker.jit, linker.dylib, object));
    return look_up(&linker, name);
}
