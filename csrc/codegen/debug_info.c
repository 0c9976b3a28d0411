#include "codegen/debug_info.h"
#include <llvm-c/DebugInfo.h>

/* Lines and nothing else (DICompileUnit::DebugDirectivesOnly, which the C API has no name for): with a line table LLVM
 * marks the PTX as made for debugging, and ptxas optimises that less. */
enum { DIRECTIVES_ONLY = 3 };

struct DebugInfo {
    Codegen *codegen;
    LLVMDIBuilderRef builder;
    LLVMMetadataRef scope; /* the function */
    const char *file;
    Map files; /* name -> scope of code that was inlined from it */
    const Loc *last;
};

static void release(void *builder) { LLVMDisposeDIBuilder(builder); }

static LLVMMetadataRef create_file(LLVMDIBuilderRef builder, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    return LLVMDIBuilderCreateFile(builder, name, strlen(name), path, slash ? (size_t)(slash - path) : 0);
}

LLVMMetadataRef tt_debug_enter(DebugInfo *info, LLVMValueRef function, const char *name, int line)
{
    LLVMDIBuilderRef b = info->builder;
    LLVMMetadataRef before = info->scope, file = create_file(b, info->file);
    LLVMMetadataRef type = LLVMDIBuilderCreateSubroutineType(b, file, NULL, 0, LLVMDIFlagZero);
    size_t length = strlen(name);
    info->scope = LLVMDIBuilderCreateFunction(b, file, name, length, name, length, file, (unsigned)line, type,
                                              0, 1, (unsigned)line, LLVMDIFlagZero, 1);
    LLVMSetSubprogram(function, info->scope);
    return before;
}

void tt_debug_leave(DebugInfo *info, LLVMMetadataRef before) { info->scope = before; }

DebugInfo *tt_new_debug_info(Codegen *codegen, LLVMValueRef function, const char *name, const Loc *loc)
{
    if (!loc || !loc->file)
        return NULL;
    DebugInfo *info = codegen->debug_info = TT_NEW(codegen->arena, DebugInfo);
    *info = (DebugInfo){.codegen = codegen, .file = loc->file, .files = {.arena = codegen->arena}};
    LLVMDIBuilderRef b = info->builder = LLVMCreateDIBuilder(codegen->module);
    tt_arena_on_release(codegen->arena, release, b);
    LLVMDIBuilderCreateCompileUnit(b, LLVMDWARFSourceLanguageC, create_file(b, loc->file), "tritonc", 7, 1,
                                   "", 0, 0, "", 0, (LLVMDWARFEmissionKind)DIRECTIVES_ONLY, 0, 0, 0, "", 0,
                                   "", 0);
    tt_debug_enter(info, function, name, loc->line);
    unsigned version = LLVMDebugMetadataVersion();
    LLVMValueRef number = LLVMConstInt(LLVMInt32TypeInContext(codegen->context), version, 0);
    LLVMAddModuleFlag(codegen->module, LLVMModuleFlagBehaviorWarning, "Debug Info Version", 18,
                      LLVMValueAsMetadata(number));
    return info;
}

/* The scope in the function of now for what had `scope` in another: the function, or a file that was inlined. */
static LLVMMetadataRef adopted_scope(DebugInfo *info, Map *scopes, LLVMMetadataRef scope)
{
    if (LLVMGetMetadataKind(scope) != LLVMDILexicalBlockFileMetadataKind)
        return info->scope;
    void **slot = tt_map_slot_ptr(scopes, scope);
    if (!*slot)
        *slot = LLVMDIBuilderCreateLexicalBlockFile(info->builder, info->scope, LLVMDIScopeGetFile(scope), 0);
    return *slot;
}

static void adopt_location(DebugInfo *info, Map *scopes, LLVMValueRef instruction)
{
    LLVMMetadataRef old = LLVMInstructionGetDebugLoc(instruction);
    if (!old)
        return;
    LLVMMetadataRef scope = adopted_scope(info, scopes, LLVMDILocationGetScope(old));
    LLVMInstructionSetDebugLoc(
        instruction, LLVMDIBuilderCreateDebugLocation(info->codegen->context, LLVMDILocationGetLine(old),
                                                      LLVMDILocationGetColumn(old), scope, NULL));
}

void tt_debug_adopt(DebugInfo *info, LLVMValueRef function)
{
    if (!info)
        return;
    Map scopes = {.arena = info->codegen->arena};
    LLVMMetadataRef before = tt_debug_enter(info, function, LLVMGetValueName2(function, &(size_t){0}), 0);
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
            adopt_location(info, &scopes, i);
    LLVMDIBuilderFinalizeSubprogram(info->builder, info->scope);
    tt_debug_leave(info, before);
}

void tt_debug_no_line(LLVMValueRef instruction)
{
    LLVMMetadataRef scope = LLVMGetSubprogram(LLVMGetBasicBlockParent(LLVMGetInstructionParent(instruction)));
    LLVMContextRef context = LLVMGetTypeContext(LLVMTypeOf(instruction));
    if (scope)
        LLVMInstructionSetDebugLoc(instruction, LLVMDIBuilderCreateDebugLocation(context, 0, 0, scope, NULL));
}

void tt_debug_line(DebugInfo *info, LLVMBuilderRef builder, int line)
{
    LLVMMetadataRef location = NULL;
    if (line)
        location =
            LLVMDIBuilderCreateDebugLocation(info->codegen->context, (unsigned)line, 0, info->scope, NULL);
    LLVMSetCurrentDebugLocation2(builder, location);
}

static LLVMMetadataRef scope_of(DebugInfo *info, const char *file)
{
    if (!file || !strcmp(file, info->file))
        return info->scope;
    void **slot = tt_map_slot(&info->files, file, strlen(file));
    if (!*slot)
        *slot = LLVMDIBuilderCreateLexicalBlockFile(info->builder, info->scope,
                                                    create_file(info->builder, file), 0);
    return *slot;
}

void tt_debug_at(DebugInfo *info, LLVMBuilderRef builder, const Loc *loc)
{
    if (!info || info->last == loc)
        return;
    info->last = loc;
    Loc unknown = {.file = info->file}, *at = loc ? (Loc *)loc : &unknown;
    LLVMMetadataRef location = LLVMDIBuilderCreateDebugLocation(
        info->codegen->context, (unsigned)at->line, (unsigned)at->column + 1, scope_of(info, at->file), NULL);
    LLVMSetCurrentDebugLocation2(builder, location);
}

void tt_finish_debug_info(DebugInfo *info, LLVMBuilderRef builder)
{
    if (!info)
        return;
    LLVMDIBuilderFinalize(info->builder);
    LLVMSetCurrentDebugLocation2(builder, NULL);
}
