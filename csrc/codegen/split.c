/* Huge functions in pieces. LLVM's code generators take more than linear time and memory for a function: schedulers,
 * register allocators and loop passes look at all of it again and again. So runs of blocks with one way in and one way
 * out become functions of their own, innermost first; a loop or branch whose inside went that way is small itself, and
 * goes with its neighbours. What crosses from one piece to another lies in a frame on the original function's stack. */
#include "codegen/debug_info.h"
#include "codegen/split.h"
#include <limits.h>

typedef struct Item {
    LLVMBasicBlockRef block;
    int size;
} Item;

typedef struct Splitter {
    Codegen *codegen;
    Arena *arena;
    LLVMBuilderRef b;
    LLVMTargetDataRef layout;
    LLVMTypeRef i1, i8, i64, ptr;
    LLVMValueRef function, frame; /* the frame: an alloca that is made anew when its size is known */
    int limit;                    /* instructions of a piece, at most */
    int pieces;
    uint64_t frame_size;
    Map slots;                          /* value -> its place in the frame, plus one */
    Map loaded;                         /* (block, value) -> the value as loaded at the start of the block */
    TT_VECTOR(LLVMBasicBlockRef) parts; /* of the function, in order */
    TT_VECTOR(Item) items;              /* those so far that are in no piece */
    Map places;                         /* block -> its number among the items, plus one */
} Splitter;

typedef struct Piece {
    LLVMValueRef function, frame; /* the frame: its parameter */
    LLVMBasicBlockRef exit;       /* the block that stays and calls it */
    LLVMBasicBlockRef *blocks;    /* the first is entered */
    int count;
    bool may_return; /* from the original function, too; then the piece returns true */
} Piece;

enum { FRAME_ALIGN = 64 };

/* ---- blocks ------------------------------------------------------------------------------------------------------------- */

#define FOR_INSTRUCTIONS(i, block)                                                                           \
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))
#define FOR_INSTRUCTIONS_SAFE(i, block)                                                                      \
    for (LLVMValueRef i = LLVMGetFirstInstruction(block), i##_next;                                          \
         i && (i##_next = LLVMGetNextInstruction(i), true); i = i##_next)

static bool is_phi(LLVMValueRef instruction) { return LLVMGetInstructionOpcode(instruction) == LLVMPHI; }

static bool is_return(LLVMBasicBlockRef block)
{
    return LLVMGetInstructionOpcode(LLVMGetBasicBlockTerminator(block)) == LLVMRet;
}

static LLVMValueRef function_of(LLVMValueRef instruction)
{
    return LLVMGetBasicBlockParent(LLVMGetInstructionParent(instruction));
}

static void move_before(Splitter *s, LLVMValueRef instruction, LLVMValueRef anchor)
{
    LLVMPositionBuilderBefore(s->b, anchor);
    LLVMInstructionRemoveFromParent(instruction);
    LLVMInsertIntoBuilder(s->b, instruction);
}

/* Whoever goes to `from` now goes to `to`. */
static void redirect(LLVMBasicBlockRef from, LLVMBasicBlockRef to)
{
    for (LLVMUseRef use; from != to && (use = LLVMGetFirstUse(LLVMBasicBlockAsValue(from)));) {
        LLVMValueRef branch = LLVMGetUser(use);
        for (unsigned i = 0; i < LLVMGetNumSuccessors(branch); i++)
            if (LLVMGetSuccessor(branch, i) == from)
                LLVMSetSuccessor(branch, i, to);
    }
}

/* An empty block before a block, which all that went there go to first; its branch. */
static LLVMValueRef insert_head(Splitter *s, LLVMBasicBlockRef block)
{
    LLVMBasicBlockRef head = LLVMInsertBasicBlockInContext(s->codegen->context, block, "");
    redirect(block, head);
    LLVMPositionBuilderAtEnd(s->b, head);
    return LLVMBuildBr(s->b, block);
}

/* Adds the block before `block` that `branch` ends, with the next `count` instructions of it. */
static void add_part(Splitter *s, LLVMBasicBlockRef block, LLVMValueRef branch, int count)
{
    for (int i = 0; i < count; i++)
        move_before(s, LLVMGetFirstInstruction(block), branch);
    tt_push(s->arena, s->parts, LLVMGetInstructionParent(branch));
}

/* Adds a block in parts: phis and allocas, which stay where they are; some instructions each; and what decides where to
 * go on, so that what is before goes on to one block. The last part is the block itself, which the phis of its successors
 * know. */
static void add_parts(Splitter *s, LLVMBasicBlockRef block)
{
    LLVMValueRef branch = NULL;
    int left = -1, most = s->limit / 4; /* the terminator is not counted */
    FOR_INSTRUCTIONS_SAFE(i, block)
    {
        if (!is_phi(i) && LLVMGetInstructionOpcode(i) != LLVMAlloca) {
            left++;
            continue;
        }
        if (!branch)
            branch = insert_head(s, block);
        move_before(s, i, branch);
    }
    if (branch)
        add_part(s, block, branch, 0);
    bool decides = LLVMGetNumSuccessors(LLVMGetBasicBlockTerminator(block)) > 1;
    for (; left > (decides ? 0 : most); left -= most)
        add_part(s, block, insert_head(s, block), TT_MIN(left, most));
    tt_push(s->arena, s->parts, block);
}

static void push_item(Splitter *s, LLVMBasicBlockRef block)
{
    int size = 0;
    FOR_INSTRUCTIONS(i, block)
    size++;
    tt_push(s->arena, s->items, ((Item){block, size}));
    *tt_map_slot_ptr(&s->places, block) = (void *)(intptr_t)s->items.count;
}

/* ---- what can be a piece ------------------------------------------------------------------------------------------------ */

/* Number of the block among the items; INT_MAX if it comes later. */
static int place_of(const Splitter *s, LLVMBasicBlockRef block)
{
    intptr_t place = (intptr_t)tt_map_find_ptr(&s->places, block);
    return place ? (int)place - 1 : INT_MAX;
}

typedef struct Span {
    int first, last;
} Span;

/* The places from where a block is entered. */
static Span entered_from(const Splitter *s, LLVMBasicBlockRef block)
{
    Span span = {INT_MAX, -1};
    for (LLVMUseRef use = LLVMGetFirstUse(LLVMBasicBlockAsValue(block)); use; use = LLVMGetNextUse(use)) {
        int place = place_of(s, LLVMGetInstructionParent(LLVMGetUser(use)));
        span.first = TT_MIN(span.first, place);
        span.last = TT_MAX(span.last, place);
    }
    return span;
}

/* How many ways lead on from a block to later ones, two for each that the branch chooses; and the earliest place that it
 * goes to. */
static int ways_on(const Splitter *s, LLVMBasicBlockRef block, int *earliest)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
    int ways = 0, count = (int)LLVMGetNumSuccessors(end);
    for (int i = 0; i < count; i++) {
        int place = place_of(s, LLVMGetSuccessor(end, (unsigned)i));
        *earliest = TT_MIN(*earliest, place);
        if (place == INT_MAX)
            ways += count > 1 ? 2 : 1;
    }
    return ways;
}

/* The first item of the shortest piece that ends with the last item and is worth it, or -1. The first block is entered
 * from before the piece only, the others from within it, and one unconditional branch leaves it. */
static int find_start(const Splitter *s)
{
    int last = s->items.count - 1, size = 0, ways = 0, reach = INT_MAX;
    for (int at = last; at > 0; at--) {
        LLVMBasicBlockRef block = s->items.data[at].block;
        size += s->items.data[at].size;
        ways += ways_on(s, block, &reach);
        if (size > s->limit || ways > 1)
            break;
        Span from = entered_from(s, block);
        bool enters = from.last < at && !is_phi(LLVMGetFirstInstruction(block));
        if (enters && ways == 1 && reach >= at && size > s->limit / 2)
            return at;
        if (from.last > last)
            break;
        reach = TT_MIN(reach, from.first);
    }
    return -1;
}

/* ---- values that cross -------------------------------------------------------------------------------------------------- */

/* The place of a value in the frame; `frame` is that of the function where the builder stands. */
static LLVMValueRef slot_pointer(Splitter *s, LLVMValueRef value, LLVMValueRef frame)
{
    intptr_t *slot = (intptr_t *)tt_map_slot_ptr(&s->slots, value);
    if (!*slot) {
        LLVMTypeRef type = LLVMTypeOf(value);
        uint64_t align = LLVMABIAlignmentOfType(s->layout, type);
        s->frame_size = (s->frame_size + align - 1) / align * align;
        *slot = (intptr_t)s->frame_size + 1;
        s->frame_size += LLVMABISizeOfType(s->layout, type);
    }
    LLVMValueRef offset = LLVMConstInt(s->i64, (uint64_t)*slot - 1, false);
    return LLVMBuildGEP2(s->b, s->i8, frame, &offset, 1, "");
}

/* Stores a value where it comes to be; once. */
static void store_value(Splitter *s, LLVMValueRef value, LLVMValueRef frame)
{
    if (tt_map_find_ptr(&s->slots, value))
        return;
    bool is_argument = LLVMIsAArgument(value);
    LLVMPositionBuilderBefore(s->b, is_argument     ? LLVMGetNextInstruction(frame)
                                    : is_phi(value) ? tt_first_after_phis(LLVMGetInstructionParent(value))
                                                    : LLVMGetNextInstruction(value));
    LLVMValueRef pointer = slot_pointer(s, value, frame);
    LLVMSetAlignment(LLVMBuildStore(s->b, value, pointer),
                     LLVMABIAlignmentOfType(s->layout, LLVMTypeOf(value)));
}

static LLVMValueRef load_before(Splitter *s, LLVMValueRef value, LLVMValueRef frame, LLVMValueRef anchor)
{
    LLVMPositionBuilderBefore(s->b, anchor);
    LLVMValueRef load = LLVMBuildLoad2(s->b, LLVMTypeOf(value), slot_pointer(s, value, frame), "");
    LLVMSetAlignment(load, LLVMABIAlignmentOfType(s->layout, LLVMTypeOf(value)));
    return load;
}

/* Makes operand `index` of `user` one that was loaded from the frame: at the start of its block, which the value reaches
 * from another one; for a phi at the end of the block that it comes from. */
static void load_operand(Splitter *s, LLVMValueRef user, unsigned index, LLVMValueRef frame)
{
    LLVMValueRef value = LLVMGetOperand(user, index);
    if (is_phi(user)) {
        LLVMValueRef end = LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(user, index));
        LLVMSetOperand(user, index, load_before(s, value, frame, end));
        return;
    }
    LLVMBasicBlockRef block = LLVMGetInstructionParent(user);
    const void *key[] = {block, value};
    void **slot = tt_map_slot(&s->loaded, key, sizeof key);
    if (!*slot)
        *slot = load_before(s, value, frame, tt_first_after_phis(block));
    LLVMSetOperand(user, index, *slot);
}

static bool comes_from_outside(const Splitter *s, const Piece *piece, LLVMValueRef value)
{
    if (LLVMIsAArgument(value))
        return value != piece->frame;
    return LLVMIsAInstruction(value) && function_of(value) == s->function;
}

static void take_operands(Splitter *s, const Piece *piece, LLVMValueRef user)
{
    for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(user); i++) {
        LLVMValueRef value = LLVMGetOperand(user, i);
        if (value == s->frame) {
            LLVMSetOperand(user, i, piece->frame);
        } else if (comes_from_outside(s, piece, value)) {
            store_value(s, value, s->frame);
            load_operand(s, user, i, piece->frame);
        }
    }
}

static LLVMValueRef user_outside(const Piece *piece, LLVMValueRef value)
{
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use))
        if (function_of(LLVMGetUser(use)) != piece->function)
            return LLVMGetUser(use);
    return NULL;
}

static void give_result(Splitter *s, const Piece *piece, LLVMValueRef value)
{
    for (LLVMValueRef user; (user = user_outside(piece, value));) {
        store_value(s, value, piece->frame);
        for (unsigned i = 0; i < (unsigned)LLVMGetNumOperands(user); i++)
            if (LLVMGetOperand(user, i) == value)
                load_operand(s, user, i, s->frame);
    }
}

static void pass_values(Splitter *s, const Piece *piece)
{
    for (int block = 0; block < piece->count; block++)
        FOR_INSTRUCTIONS_SAFE(i, piece->blocks[block])
        {
            take_operands(s, piece, i);
            give_result(s, piece, i);
        }
}

/* ---- pieces ------------------------------------------------------------------------------------------------------------- */

/* The code is the original function's, so its attributes hold; those that are of a kernel only do not. */
static void copy_attributes(Splitter *s, LLVMValueRef to)
{
    LLVMAttributeIndex at = (LLVMAttributeIndex)LLVMAttributeFunctionIndex;
    unsigned count = LLVMGetAttributeCountAtIndex(s->function, at), length;
    LLVMAttributeRef *attributes = TT_NEW_ARRAY(s->arena, LLVMAttributeRef, count);
    LLVMGetAttributesAtIndex(s->function, at, attributes);
    for (unsigned i = 0; i < count; i++)
        if (!LLVMIsStringAttribute(attributes[i]) ||
            strncmp(LLVMGetStringAttributeKind(attributes[i], &length), "nvvm.", 5))
            LLVMAddAttributeAtIndex(to, at, attributes[i]);
    static const char *const own[] = {"noinline", "convergent"};
    for (size_t i = 0; i < TT_COUNT(own); i++) {
        unsigned kind = LLVMGetEnumAttributeKindForName(own[i], strlen(own[i]));
        LLVMAddAttributeAtIndex(to, at, LLVMCreateEnumAttribute(s->codegen->context, kind, 0));
    }
}

/* i1 piece(ptr frame): true when the original function returns. */
static LLVMTypeRef piece_type(Splitter *s) { return LLVMFunctionType(s->i1, &s->ptr, 1, false); }

static void add_function(Splitter *s, Piece *piece)
{
    const char *name = LLVMGetValueName2(s->function, &(size_t){0});
    name = tt_arena_format(s->arena, "%s.%d", name, ++s->pieces);
    piece->function = LLVMAddFunction(s->codegen->module, name, piece_type(s));
    piece->frame = LLVMGetParam(piece->function, 0);
    LLVMSetLinkage(piece->function, LLVMInternalLinkage);
    copy_attributes(s, piece->function);
}

/* What stands for the returned value in the frame; NULL: nothing is returned. */
static LLVMValueRef returned_value(const Splitter *s)
{
    LLVMTypeRef type = LLVMGetReturnType(LLVMGlobalGetValueType(s->function));
    return LLVMGetTypeKind(type) == LLVMVoidTypeKind ? NULL : LLVMGetUndef(type);
}

static void return_by_way_of_frame(Splitter *s, LLVMBasicBlockRef block)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(block), value = returned_value(s);
    LLVMPositionBuilderBefore(s->b, end);
    if (value)
        LLVMBuildStore(s->b, LLVMGetOperand(end, 0), slot_pointer(s, value, s->frame));
    LLVMBuildRet(s->b, LLVMConstInt(s->i1, 1, false));
    LLVMInstructionEraseFromParent(end);
}

/* The contents of the block that leaves the piece, in a block of their own: who goes on from it, and their phis, know
 * the old one, which is to make the call. */
static LLVMBasicBlockRef take_contents(Splitter *s, LLVMBasicBlockRef exit)
{
    LLVMBasicBlockRef body = LLVMCreateBasicBlockInContext(s->codegen->context, "");
    LLVMPositionBuilderAtEnd(s->b, body);
    LLVMValueRef end = LLVMBuildRet(s->b, LLVMConstInt(s->i1, 0, false));
    FOR_INSTRUCTIONS_SAFE(i, exit)
    if (!LLVMIsATerminatorInst(i))
        move_before(s, i, end);
    return body;
}

/* Moves the items from `start` on into the piece's function. */
static void take_blocks(Splitter *s, Piece *piece, int start)
{
    piece->count = s->items.count - start;
    piece->blocks = TT_NEW_ARRAY(s->arena, LLVMBasicBlockRef, piece->count);
    for (int i = 0, reach = 0; i < piece->count; i++) {
        LLVMBasicBlockRef block = piece->blocks[i] = s->items.data[start + i].block;
        if (is_return(block)) {
            return_by_way_of_frame(s, block);
            piece->may_return = true;
        } else if (ways_on(s, block, &reach)) {
            piece->exit = block;
            piece->blocks[i] = take_contents(s, block);
            if (i)
                redirect(block, piece->blocks[i]);
        }
    }
    if (s->items.data[start].block != piece->exit)
        redirect(s->items.data[start].block, piece->exit);
    s->items.count = start;
    for (int i = 0; i < piece->count; i++) {
        if (LLVMGetBasicBlockParent(piece->blocks[i]))
            LLVMRemoveBasicBlockFromParent(piece->blocks[i]);
        LLVMAppendExistingBasicBlock(piece->function, piece->blocks[i]);
    }
}

static LLVMValueRef build_call(Splitter *s, const Piece *piece)
{
    LLVMValueRef call = LLVMBuildCall2(s->b, piece_type(s), piece->function, &s->frame, 1, "");
    tt_debug_no_line(call);
    return call;
}

/* In front of the block that left the piece: returns when the piece says so. */
static void call_and_return(Splitter *s, const Piece *piece)
{
    LLVMValueRef branch = insert_head(s, piece->exit), value = returned_value(s);
    LLVMBasicBlockRef head = LLVMGetInstructionParent(branch);
    LLVMBasicBlockRef end = LLVMInsertBasicBlockInContext(s->codegen->context, piece->exit, "");
    LLVMPositionBuilderBefore(s->b, branch);
    LLVMBuildCondBr(s->b, build_call(s, piece), end, piece->exit);
    LLVMInstructionEraseFromParent(branch);
    LLVMPositionBuilderAtEnd(s->b, end);
    if (value)
        LLVMBuildRet(s->b, LLVMBuildLoad2(s->b, LLVMTypeOf(value), slot_pointer(s, value, s->frame), ""));
    else
        LLVMBuildRetVoid(s->b);
    push_item(s, head);
    push_item(s, end);
}

static void make_piece(Splitter *s, int start)
{
    Piece piece = {0};
    add_function(s, &piece);
    take_blocks(s, &piece, start);
    if (piece.may_return) {
        call_and_return(s, &piece);
    } else {
        LLVMPositionBuilderBefore(s->b, LLVMGetFirstInstruction(piece.exit));
        build_call(s, &piece);
    }
    push_item(s, piece.exit);
    pass_values(s, &piece);
    tt_debug_adopt(s->codegen->debug_info, piece.function);
}

/* ---- functions ---------------------------------------------------------------------------------------------------------- */

static void start_frame(Splitter *s)
{
    LLVMBasicBlockRef entry = LLVMGetEntryBasicBlock(s->function);
    LLVMPositionBuilderBefore(s->b, LLVMGetFirstInstruction(entry));
    s->frame = LLVMBuildAlloca(s->b, s->i8, "");
}

static void finish_frame(Splitter *s)
{
    LLVMPositionBuilderBefore(s->b, s->frame);
    LLVMValueRef frame = LLVMBuildAlloca(s->b, LLVMArrayType2(s->i8, s->frame_size), "frame");
    LLVMSetAlignment(frame, FRAME_ALIGN);
    LLVMReplaceAllUsesWith(s->frame, frame);
    LLVMInstructionEraseFromParent(s->frame);
}

static void split_function(Splitter *s)
{
    LLVMBasicBlockRef *blocks;
    start_frame(s);
    int count = tt_order_blocks(s->function, s->arena, &blocks);
    for (int i = 0; i < count; i++)
        add_parts(s, blocks[i]);
    for (int i = 0; i < s->parts.count; i++) {
        push_item(s, s->parts.data[i]);
        int start = find_start(s);
        if (start >= 0)
            make_piece(s, start);
    }
    finish_frame(s);
}

static int function_size(LLVMValueRef function)
{
    int size = 0;
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock(function); block;
         block = LLVMGetNextBasicBlock(block))
        FOR_INSTRUCTIONS(i, block)
    size++;
    return size;
}

void tt_codegen_split(Codegen *codegen, int longest)
{
    LLVMContextRef c = codegen->context;
    LLVMTargetDataRef layout = LLVMGetModuleDataLayout(codegen->module);
    for (LLVMValueRef f = LLVMGetFirstFunction(codegen->module), next; f; f = next) {
        next = LLVMGetNextFunction(f); /* pieces come behind, and are short */
        if (function_size(f) <= longest)
            continue;
        Splitter s = {.codegen = codegen,
                      .arena = codegen->arena,
                      .layout = layout,
                      .i1 = LLVMInt1TypeInContext(c),
                      .i8 = LLVMInt8TypeInContext(c),
                      .i64 = LLVMInt64TypeInContext(c),
                      .ptr = LLVMPointerTypeInContext(c, 0),
                      .function = f,
                      .limit = longest / 8};
        s.slots.arena = s.loaded.arena = s.places.arena = s.arena;
        s.b = LLVMCreateBuilderInContext(c);
        split_function(&s);
        LLVMDisposeBuilder(s.b);
    }
}
