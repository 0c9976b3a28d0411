/* From a module to an object file, and from an object file to code in memory, by ORC's linker. The code's dylib is a bare
 * one, so nothing is looked up in the process: what the code refers to is what its target knows by name. Pages are
 * writable first and executable after (JITLink's memory manager). */
#include "codegen/object.h"
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

LLVMMemoryBufferRef tt_codegen_object_buffer(Codegen *codegen)
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

static void release_buffer(void *buffer) { LLVMDisposeMemoryBuffer(buffer); }

HostObject tt_codegen_object(Codegen *codegen)
{
    LLVMMemoryBufferRef buffer = tt_codegen_object_buffer(codegen);
    tt_arena_on_release(codegen->arena, release_buffer, buffer);
    return (HostObject){.file = {LLVMGetBufferStart(buffer), LLVMGetBufferSize(buffer)},
                        .code_size = tt_object_section(codegen, buffer, ".text").size};
}

/* ---- linking --------------------------------------------------------------------------------------------------------- */

typedef struct Linker {
    Arena *owner;
    SymbolFinder *find;
    const char *error; /* the first complaint */
    LLVMOrcLLJITRef jit;
    LLVMOrcExecutionSessionRef session;
    LLVMOrcJITDylibRef dylib;
} Linker;

typedef struct Lookup {
    LLVMErrorRef error;
    void *address;
} Lookup;

static void check(Linker *linker, LLVMErrorRef error)
{
    if (!error)
        return;
    char *text = LLVMGetErrorMessage(error);
    const char *copy = tt_arena_strdup(linker->owner, text);
    LLVMDisposeErrorMessage(text);
    tt_bug("LLVM: %s%s%s", linker->error ? linker->error : "", linker->error ? "; " : "", copy);
}

/* The lookup only says that it failed; here comes why. The session would print it. */
static void keep_error(void *context, LLVMErrorRef error)
{
    Linker *linker = context;
    char *text = LLVMGetErrorMessage(error);
    if (!linker->error)
        linker->error = tt_arena_strdup(linker->owner, text);
    LLVMDisposeErrorMessage(text);
}

static void release_jit(void *jit) { LLVMConsumeError(LLVMOrcDisposeLLJIT(jit)); }

/* What LLVM itself calls: for copies, and for what machines have no instruction for. And the clock. */
static void *find_library_symbol(const char *name)
{
    static const struct {
        const char *name;
        void *address;
    } symbols[] = {
        {"memcpy", (void *)memcpy},   {"memset", (void *)memset},
        {"memmove", (void *)memmove}, {"floor", (void *)floor},
        {"floorf", (void *)floorf},   {"ceil", (void *)ceil},
        {"ceilf", (void *)ceilf},     {"trunc", (void *)trunc},
        {"truncf", (void *)truncf},   {"rint", (void *)rint},
        {"rintf", (void *)rintf},     {"round", (void *)round},
        {"roundf", (void *)roundf},   {"fma", (void *)fma},
        {"fmaf", (void *)fmaf},       {"fmin", (void *)fmin},
        {"fminf", (void *)fminf},     {"fmax", (void *)fmax},
        {"fmaxf", (void *)fmaxf},     {"clock_gettime", (void *)clock_gettime},
    };
    for (size_t i = 0; i < TT_COUNT(symbols); i++)
        if (!strcmp(symbols[i].name, name))
            return symbols[i].address;
    return NULL;
}

/* Asked for the names that the code refers to and does not define. Those that nobody knows stay undefined. */
static LLVMErrorRef define_symbols(LLVMOrcDefinitionGeneratorRef generator, void *context,
                                   LLVMOrcLookupStateRef *state, LLVMOrcLookupKind kind,
                                   LLVMOrcJITDylibRef dylib, LLVMOrcJITDylibLookupFlags flags,
                                   LLVMOrcCLookupSet names, size_t count)
{
    Linker *linker = context;
    LLVMOrcCSymbolMapPair *pairs = calloc(count + 1, sizeof *pairs);
    size_t found = 0;
    (void)generator, (void)state, (void)kind, (void)flags;
    for (size_t i = 0; pairs && i < count; i++) {
        const char *name = LLVMOrcSymbolStringPoolEntryStr(names[i].Name);
        void *address = linker->find(name);
        if (!address)
            address = find_library_symbol(name);
        if (!address)
            continue;
        LLVMOrcRetainSymbolStringPoolEntry(names[i].Name);
        pairs[found].Name = names[i].Name;
        pairs[found].Sym.Address = (uintptr_t)address;
        pairs[found++].Sym.Flags.GenericFlags =
            LLVMJITSymbolGenericFlagsExported | LLVMJITSymbolGenericFlagsCallable;
    }
    LLVMErrorRef error =
        found ? LLVMOrcJITDylibDefine(dylib, LLVMOrcAbsoluteSymbols(pairs, found)) : LLVMErrorSuccess;
    free(pairs);
    return error;
}

/* An LLJIT is made from the description of a target machine. It only links here and never compiles, so a plain one
 * does, which is made faster than one with all features of the host. */
static void create_jit(Linker *linker)
{
    LLVMTargetRef target;
    char *triple = LLVMGetDefaultTargetTriple(), *error = NULL;
    LLVMTargetMachineRef plain = NULL;
    if (!LLVMGetTargetFromTriple(triple, &target, &error))
        plain = LLVMCreateTargetMachine(target, triple, "", "", LLVMCodeGenLevelNone, LLVMRelocPIC,
                                        LLVMCodeModelSmall);
    LLVMDisposeMessage(triple);
    if (!plain)
        tt_bug("LLVM: %s", error ? tt_take_llvm_message(linker->owner, error) : "no target machine");
    LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
    LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
        builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(plain));
    check(linker, LLVMOrcCreateLLJIT(&linker->jit, builder));
    tt_arena_on_release(linker->owner, release_jit, linker->jit);
    linker->session = LLVMOrcLLJITGetExecutionSession(linker->jit);
    LLVMOrcExecutionSessionSetErrorReporter(linker->session, keep_error, linker);
    linker->dylib = LLVMOrcExecutionSessionCreateBareJITDylib(linker->session, "kernel");
    LLVMOrcJITDylibAddGenerator(linker->dylib,
                                LLVMOrcCreateCustomCAPIDefinitionGenerator(define_symbols, linker, NULL));
}

static void on_lookup(LLVMErrorRef error, LLVMOrcCSymbolMapPairs pairs, size_t count, void *context)
{
    Lookup *lookup = context;
    lookup->error = error;
    if (!error && count == 1)
        lookup->address = (void *)(uintptr_t)pairs[0].Sym.Address;
}

/* The session links in this thread, so the answer is there when the call returns. */
static void *look_up(Linker *linker, const char *name)
{
    Lookup lookup = {0};
    LLVMOrcCJITDylibSearchOrderElement where = {linker->dylib, LLVMOrcJITDylibLookupFlagsMatchAllSymbols};
    LLVMOrcCLookupSetElement what = {LLVMOrcExecutionSessionIntern(linker->session, name),
                                     LLVMOrcSymbolLookupFlagsRequiredSymbol};
    LLVMOrcExecutionSessionLookup(linker->session, LLVMOrcLookupKindStatic, &where, 1, &what, 1, on_lookup,
                                  &lookup);
    check(linker, lookup.error);
    TT_ASSERT(lookup.address);
    return lookup.address;
}

void *tt_link_object(Bytes object, const char *name, SymbolFinder *find, Arena *owner)
{
    tt_start_llvm();
    Linker *linker = TT_NEW(owner, Linker); /* the session refers to it as long as it lives */
    *linker = (Linker){.owner = owner, .find = find};
    create_jit(linker);
    /* a copy, for the linker wants it aligned and for itself */
    LLVMMemoryBufferRef buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(object.data, object.size, name);
    check(linker, LLVMOrcLLJITAddObjectFile(linker->jit, linker->dylib, buffer));
    return look_up(linker, name);
}
