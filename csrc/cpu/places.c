/* Which line of the program an instruction of a kernel's code belongs to. That is asked for when one has failed, and
 * worked out then: the kernel is compiled again with a line table whose line numbers are numbers of places. */
#include "codegen/debug_info.h"
#include "cpu/lower.h"
#include <llvm-c/DebugInfo.h>

struct Places {
    Arena *arena;
    DebugInfo *debug;
    TT_VECTOR(const char *)
    texts; /* "kernel.py:12, called at kernel.py:30"; line n of the table is the n-th */
};

Places *new_places(Arena *arena)
{
    Places *places = TT_NEW(arena, Places);
    places->arena = arena;
    return places;
}

const char *place_text(const Places *places, int number)
{
    return number > 0 && number <= places->texts.count ? places->texts.data[number - 1] : NULL;
}

static int number_of(Places *places, const char *text)
{
    for (int i = 0; i < places->texts.count; i++)
        if (!strcmp(places->texts.data[i], text))
            return i + 1;
    tt_push(places->arena, places->texts, text);
    return places->texts.count;
}

void *enter_places(Emit *e, LLVMValueRef function, const char *name)
{
    static const Loc nowhere = {.file = "kernel"};
    Places *places = e->places;
    if (!places)
        return NULL;
    if (places->debug)
        return tt_debug_enter(places->debug, function, name, 0);
    places->debug = tt_new_debug_info(e->codegen, function, name, &nowhere);
    return NULL;
}

void leave_places(Emit *e, void *before)
{
    if (e->places && before)
        tt_debug_leave(e->places->debug, before);
}

void begin_access(Emit *e, const Op *op)
{
    if (!e->places)
        return;
    const char *text = tt_place_text(op->loc, e->places->arena);
    tt_debug_line(e->places->debug, e->b, *text ? number_of(e->places, text) : 0);
}

void end_access(Emit *e)
{
    if (e->places)
        tt_debug_line(e->places->debug, e->b, 0);
}

/* ---- loads that become operands of other instructions ------------------------------------------------------------------ */

enum { MOST_SOURCES = 4, DEEPEST = 4 };

typedef struct Sources {
    int numbers[MOST_SOURCES], count;
    LLVMMetadataRef scope;
} Sources;

static void add_source(Sources *sources, LLVMMetadataRef location)
{
    int number = (int)LLVMDILocationGetLine(location);
    for (int i = 0; i < sources->count; i++)
        if (sources->numbers[i] == number)
            return;
    if (sources->count < MOST_SOURCES)
        sources->numbers[sources->count++] = number;
    sources->scope = LLVMDILocationGetScope(location);
}

/* Only moves lanes or converts: machines do that to an operand that they read from memory. */
static bool is_part_of_operand(LLVMValueRef value)
{
    LLVMOpcode opcode = LLVMGetInstructionOpcode(value);
    return opcode == LLVMInsertElement || opcode == LLVMShuffleVector || opcode == LLVMExtractElement ||
           opcode == LLVMSelect || LLVMIsACastInst(value);
}

static void find_sources(LLVMValueRef instruction, Sources *sources, int depth)
{
    for (int i = 0; i < LLVMGetNumOperands(instruction); i++) {
        LLVMValueRef operand = LLVMGetOperand(instruction, (unsigned)i);
        LLVMUseRef use = LLVMIsAInstruction(operand) ? LLVMGetFirstUse(operand) : NULL;
        if (!use || LLVMGetInstructionParent(operand) != LLVMGetInstructionParent(instruction))
            continue;
        LLVMMetadataRef location = LLVMInstructionGetDebugLoc(operand);
        if (location)
            add_source(sources, location);
        else if (depth < DEEPEST && is_part_of_operand(operand))
            find_sources(operand, sources, depth + 1);
    }
}

/* Machines read one operand in the instruction that uses it; which one is not known, so all are named. */
static int merged(Places *places, const Sources *sources)
{
    if (sources->count == 1)
        return sources->numbers[0];
    Text text = {.arena = places->arena};
    for (int i = 0; i < sources->count; i++)
        tt_text_add(&text, "%s%s", i ? " or " : "", place_text(places, sources->numbers[i]));
    return number_of(places, text.data);
}

/* From the last to the first: an instruction's operands have only locations of their own then. */
static void place_users(Places *places, LLVMContextRef context, LLVMBasicBlockRef block)
{
    for (LLVMValueRef i = LLVMGetLastInstruction(block); i; i = LLVMGetPreviousInstruction(i)) {
        Sources sources = {0};
        if (!LLVMInstructionGetDebugLoc(i) && LLVMGetInstructionOpcode(i) != LLVMPHI)
            find_sources(i, &sources, 0);
        if (sources.count)
            LLVMInstructionSetDebugLoc(i, LLVMDIBuilderCreateDebugLocation(context,
                                                                           (unsigned)merged(places, &sources),
                                                                           0, sources.scope, NULL));
    }
}

void finish_places(Emit *e)
{
    if (!e->places)
        return;
    for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f))
        for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(f); block; block = LLVMGetNextBasicBlock(block))
            place_users(e->places, e->context, block);
    tt_finish_debug_info(e->places->debug, e->b);
}
