/* Large tiles, a strip at a time. All that follows from layouts is worked out as if the program had more warps than there
 * are (strips.c), and each warp plays several of them, one after the other. What threads do between two meetings (barriers,
 * or folding what strips have in common) is a phase, and a phase is a loop over the strips. Loops and branches of the
 * program in which threads meet consist of phases; others are part of one. What one phase computes and another needs lies
 * in local memory, in arrays of an element for each strip; but indices, masks and addresses are computed once more. */
#include "gpu/simt.h"

typedef struct Phase {
    int number; /* from 1 on */
    LLVMBasicBlockRef head, exit, after;
    LLVMValueRef strip, next; /* the number of the strip, and of the one that follows */
} Phase;

/* A value that goes into a phi outside of the phases, from the end of a phase. */
typedef struct Copy {
    Phase *phase;
    LLVMValueRef value, phi;
} Copy;

typedef struct Strips {
    int count, warps;    /* strips; warps of the block */
    LLVMValueRef thread; /* of the block */
    TT_VECTOR(Phase *) phases;
    Phase *now;   /* NULL: between phases */
    int nested;   /* loops and branches within the phase */
    Map shared;   /* phis between phases that are the same for all strips */
    Map sizes;    /* see tt_cheap_size */
    Map phase_of; /* block -> Phase; the rest is for the end */
    Map varying;  /* values that may differ between strips -> themselves */
    Map arrays;   /* value -> its array */
    Map loaded;   /* (block, value) -> the element as loaded at the start of the block */
    TT_VECTOR(LLVMValueRef) pending, crossing;
    TT_VECTOR(Copy) copies;
} Strips;

/* ---- phases -------------------------------------------------------------------------------------------------------------------- */

int simt_phase(const Simt *s) { return s->strips && s->strips->now ? s->strips->now->number : 0; }

LLVMValueRef simt_is_last_strip(Simt *s)
{
    const Strips *strips = s->strips;
    return simt_phase(s)
               ? LLVMBuildICmp(s->b, LLVMIntEQ, strips->now->strip, simt_i32(s, strips->count - 1), "")
               : NULL;
}

void simt_enter_phase(Simt *s)
{
    Strips *strips = s->strips;
    if (!strips)
        return;
    Phase *phase = strips->now = TT_NEW(s->arena, Phase);
    tt_push(s->arena, strips->phases, phase);
    phase->number = strips->phases.count;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(s->b), body;
    phase->head = simt_new_block(s, "strip");
    body = simt_new_block(s, "");
    LLVMBuildBr(s->b, phase->head);
    LLVMPositionBuilderAtEnd(s->b, phase->head);
    phase->strip = LLVMBuildPhi(s->b, s->i32, "");
    LLVMAddIncoming(phase->strip, (LLVMValueRef[]){simt_i32(s, 0)}, &before, 1);
    LLVMValueRef first = LLVMBuildMul(s->b, phase->strip, simt_i32(s, TT_LANES * strips->warps), "");
    s->thread = LLVMBuildAdd(s->b, first, strips->thread, "");
    s->lane = LLVMBuildAnd(s->b, strips->thread, simt_i32(s, TT_LANES - 1), "");
    s->warp = LLVMBuildLShr(s->b, s->thread, simt_i32(s, TT_LANE_BITS), "");
    s->entry_end = LLVMBuildBr(s->b, body);
    s->per_thread = (Map){.arena = s->arena};
    LLVMPositionBuilderAtEnd(s->b, body);
}

void simt_leave_phase(Simt *s)
{
    Phase *phase = s->strips ? s->strips->now : NULL;
    if (!phase)
        return;
    if (s->strips->nested)
        tt_bug("threads meet in '%s', which was taken for part of a phase", tt_op_infos[s->op->opcode].name);
    phase->exit = LLVMGetInsertBlock(s->b);
    phase->after = simt_new_block(s, "");
    phase->next = LLVMBuildAdd(s->b, phase->strip, simt_i32(s, 1), "");
    LLVMValueRef again = LLVMBuildICmp(s->b, LLVMIntULT, phase->next, simt_i32(s, s->strips->count), "");
    LLVMBuildCondBr(s->b, again, phase->head, phase->after);
    LLVMAddIncoming(phase->strip, &phase->next, &phase->exit, 1);
    LLVMPositionBuilderAtEnd(s->b, phase->after);
    s->strips->now = NULL;
}

void simt_begin_strips(Simt *s)
{
    if (s->options->strips < 2)
        return;
    Arena *a = s->arena;
    s->strips = TT_NEW(a, Strips);
    *s->strips = (Strips){.count = s->options->strips,
                          .warps = tt_warps(s->options),
                          .thread = s->thread,
                          .shared = {.arena = a},
                          .sizes = {.arena = a},
                          .phase_of = {.arena = a},
                          .varying = {.arena = a},
                          .arrays = {.arena = a},
                          .loaded = {.arena = a}};
    simt_enter_phase(s);
}

/* ---- which operations end phases ------------------------------------------------------------------------------------------------- */

typedef struct Meeting {
    const GpuOptions *options;
    bool found;
} Meeting;

static void find_meeting(Op *op, void *context)
{
    Meeting *meeting = context;
    bool reduces = op->opcode == OP_reduce || op->opcode == OP_extract;
    bool orders = op->opcode == OP_barrier || op->opcode == OP_async_commit || op->opcode == OP_async_wait;
    meeting->found |= orders || tt_scratch_bytes(op, meeting->options) > 0 ||
                      (reduces && tt_plan_reduce(op, meeting->options)->folded);
}

bool simt_meets(const Simt *s, const Op *op)
{
    Meeting meeting = {.options = s->options};
    for (int i = 0; s->strips && i < op->region_count; i++)
        tt_walk(op->regions[i], find_meeting, &meeting);
    return meeting.found;
}

static void compute_operands(Op *op, void *context)
{
    Simt *s = context;
    for (int i = 0; i < op->operand_count; i++)
        if (tt_operand(op, i)->mark)
            simt_tile(s, tt_operand(op, i));
}

/* What is computed once more must be so in front of the branches that use it. */
void simt_begin_nested(Simt *s, const Op *op)
{
    for (int i = 0; i < op->region_count; i++)
        tt_walk(op->regions[i], compute_operands, s);
    s->strips->nested++;
}

void simt_end_nested(Simt *s) { s->strips->nested--; }

void simt_share_between_strips(Simt *s, LLVMValueRef phi)
{
    if (s->strips)
        *tt_map_slot_ptr(&s->strips->shared, phi) = phi;
}

/* ---- values that are computed once more --------------------------------------------------------------------------------------------- */

bool simt_is_made_again(const Simt *s, const Value *value)
{
    const Tile *tile = value->mark;
    return s->strips && s->strips->now && tile->phase != simt_phase(s) && tt_is_tile(value->type) &&
           tt_cheap_size(value, &s->strips->sizes);
}

/* ---- reductions across strips ------------------------------------------------------------------------------------------------------- */

static LLVMValueRef new_array(Simt *s, LLVMTypeRef type) { return simt_new_array(s, type, s->strips->count); }

static LLVMValueRef element(Simt *s, LLVMValueRef array, LLVMValueRef strip)
{
    LLVMTypeRef type = LLVMGetElementType(LLVMGetAllocatedType(array));
    return LLVMBuildGEP2(s->b, type, array, &strip, 1, "");
}

static LLVMValueRef load_element(Simt *s, LLVMValueRef array, LLVMValueRef strip)
{
    LLVMTypeRef type = LLVMGetElementType(LLVMGetAllocatedType(array));
    return LLVMBuildLoad2(s->b, type, element(s, array, strip), "");
}

typedef struct Fold {
    LLVMValueRef at[TT_MAX_COMBINED], valid; /* arrays */
} Fold;

static void fold_partial(Simt *s, const Combine *combine, Fold *fold, uint32_t bits, Partial *partial)
{
    LLVMValueRef strip = s->strips->now->strip, number = LLVMBuildAnd(s->b, strip, simt_i32(s, bits), "");
    LLVMValueRef place = LLVMBuildAnd(s->b, strip, simt_i32(s, ~(int64_t)bits), "");
    Partial before = {.valid = LLVMBuildICmp(s->b, LLVMIntNE, number, simt_i32(s, 0), "")};
    for (int i = 0; i < combine->count; i++) {
        fold->at[i] = new_array(s, LLVMTypeOf(partial->at[i]));
        before.at[i] = load_element(s, fold->at[i], place);
    }
    if (partial->valid) {
        fold->valid = new_array(s, s->i1);
        before.valid = LLVMBuildAnd(s->b, before.valid, load_element(s, fold->valid, place), "");
    }
    Partial result = simt_combine(s, combine, before, *partial);
    for (int i = 0; i < combine->count; i++)
        LLVMBuildStore(s->b, result.at[i], element(s, fold->at[i], place));
    if (partial->valid)
        LLVMBuildStore(s->b, result.valid, element(s, fold->valid, place));
}

void simt_fold_strips(Simt *s, const Combine *combine, uint32_t folded, Partial *partials, int count)
{
    uint32_t bits = folded >> tt_log2(s->strips->warps);
    Fold *folds = TT_NEW_ARRAY(s->arena, Fold, count);
    for (int r = 0; r < count; r++)
        fold_partial(s, combine, &folds[r], bits, &partials[r]);
    simt_leave_phase(s);
    simt_enter_phase(s);
    LLVMValueRef place = LLVMBuildAnd(s->b, s->strips->now->strip, simt_i32(s, ~(int64_t)bits), "");
    for (int r = 0; r < count; r++) {
        for (int i = 0; i < combine->count; i++)
            partials[r].at[i] = load_element(s, folds[r].at[i], place);
        if (folds[r].valid)
            partials[r].valid = load_element(s, folds[r].valid, place);
    }
}

/* ---- the end: what differs between strips ----------------------------------------------------------------------------------------- */

#define FOR_BLOCKS(block, s)                                                                                 \
    for (LLVMBasicBlockRef block = LLVMGetFirstBasicBlock((s)->function); block;                             \
         block = LLVMGetNextBasicBlock(block))
#define FOR_INSTRUCTIONS(i, block)                                                                           \
    for (LLVMValueRef i = LLVMGetFirstInstruction(block); i; i = LLVMGetNextInstruction(i))

static bool is_phi(LLVMValueRef value) { return LLVMIsAPHINode(value) != NULL; }

static Phase *phase_of(const Strips *strips, LLVMValueRef instruction)
{
    return tt_map_find_ptr(&strips->phase_of, LLVMGetInstructionParent(instruction));
}

static bool varies(const Strips *strips, LLVMValueRef value)
{
    return tt_map_find_ptr(&strips->varying, value);
}

/* A phi between phases that has another value for each strip. */
static bool is_outer_phi(const Strips *strips, LLVMValueRef value)
{
    return is_phi(value) && !phase_of(strips, value) && !tt_map_find_ptr(&strips->shared, value);
}

static void claim_blocks(Simt *s, Phase *phase)
{
    TT_VECTOR(LLVMBasicBlockRef) left = {0};
    tt_push(s->arena, left, phase->head);
    while (left.count) {
        LLVMBasicBlockRef block = left.data[--left.count];
        void **slot = tt_map_slot_ptr(&s->strips->phase_of, block);
        if (*slot)
            continue;
        *slot = phase;
        LLVMValueRef end = LLVMGetBasicBlockTerminator(block);
        for (unsigned i = 0; block != phase->exit && i < LLVMGetNumSuccessors(end); i++)
            tt_push(s->arena, left, LLVMGetSuccessor(end, i));
    }
}

static void note_varying(Simt *s, LLVMValueRef value)
{
    void **slot = tt_map_slot_ptr(&s->strips->varying, value);
    if (!*slot)
        tt_push(s->arena, s->strips->pending, value);
    *slot = value;
}

/* Is it read from where an operation left its results? That does not say what they were computed from. */
static bool is_read_from_array(LLVMValueRef i)
{
    LLVMValueRef place = LLVMIsALoadInst(i) ? LLVMGetOperand(i, 0) : NULL;
    while (place && LLVMIsAGetElementPtrInst(place))
        place = LLVMGetOperand(place, 0);
    return place && LLVMIsAAllocaInst(place);
}

/* Whatever is computed from the number of the strip, or chosen by a branch within a phase. */
static void find_varying(Simt *s)
{
    Strips *strips = s->strips;
    FOR_BLOCKS(block, s)
    FOR_INSTRUCTIONS(i, block)
    if ((is_phi(i) || is_read_from_array(i)) && phase_of(strips, i))
        note_varying(s, i);
    while (strips->pending.count) {
        LLVMValueRef value = strips->pending.data[--strips->pending.count];
        for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use)) {
            LLVMValueRef user = LLVMGetUser(use);
            if (phase_of(strips, user) || is_outer_phi(strips, user))
                note_varying(s, user);
        }
    }
}

static Phase *phase_before(const Strips *strips, LLVMBasicBlockRef block)
{
    for (int i = 0; i < strips->phases.count; i++)
        if (strips->phases.data[i]->after == block)
            return strips->phases.data[i];
    tt_bug("no phase ends where a value is carried on");
}

static void find_copies(Simt *s, LLVMValueRef phi)
{
    for (unsigned i = 0; i < LLVMCountIncoming(phi); i++) {
        Copy copy = {phase_before(s->strips, LLVMGetIncomingBlock(phi, i)), LLVMGetIncomingValue(phi, i),
                     phi};
        tt_push(s->arena, s->strips->copies, copy);
    }
}

/* Does a use of the value, which varies, read it from its array? */
static bool reads_array(const Strips *strips, LLVMValueRef value, LLVMValueRef user)
{
    if (is_outer_phi(strips, user))
        return false;
    return is_outer_phi(strips, value) || phase_of(strips, user) != phase_of(strips, value);
}

static void find_crossing(Simt *s)
{
    Strips *strips = s->strips;
    Map needed = {.arena = s->arena};
    for (int i = 0; i < strips->copies.count; i++) {
        const Copy *copy = &strips->copies.data[i];
        if (varies(strips, copy->value) && phase_of(strips, copy->value) != copy->phase)
            *tt_map_slot_ptr(&needed, copy->value) = copy->phase;
    }
    FOR_BLOCKS(block, s)
    FOR_INSTRUCTIONS(i, block)
    {
        bool crosses = varies(strips, i) && (is_outer_phi(strips, i) || tt_map_find_ptr(&needed, i));
        for (LLVMUseRef use = varies(strips, i) ? LLVMGetFirstUse(i) : NULL; use; use = LLVMGetNextUse(use))
            crosses |= reads_array(strips, i, LLVMGetUser(use));
        if (crosses)
            tt_push(s->arena, strips->crossing, i);
    }
}

/* ---- the end: arrays ------------------------------------------------------------------------------------------------------------------ */

static LLVMValueRef array_of(Simt *s, LLVMValueRef value)
{
    void **slot = tt_map_slot_ptr(&s->strips->arrays, value);
    if (!*slot)
        *slot = new_array(s, LLVMTypeOf(value));
    return *slot;
}

/* Loads what is there for the strip of the place in front of `anchor`; between phases, for any. */
static LLVMValueRef load_before(Simt *s, LLVMValueRef value, LLVMValueRef anchor)
{
    LLVMValueRef array = array_of(s, value);
    const Phase *phase = phase_of(s->strips, anchor);
    LLVMPositionBuilderBefore(s->b, anchor);
    return load_element(s, array, phase ? phase->strip : simt_i32(s, 0));
}

static LLVMValueRef loaded_for(Simt *s, LLVMValueRef value, LLVMValueRef user, unsigned operand)
{
    if (is_phi(user))
        return load_before(s, value, LLVMGetBasicBlockTerminator(LLVMGetIncomingBlock(user, operand)));
    if (!phase_of(s->strips, user))
        return load_before(s, value, user);
    LLVMBasicBlockRef block = LLVMGetInstructionParent(user);
    const void *key[] = {block, value};
    void **slot = tt_map_slot(&s->strips->loaded, key, sizeof key);
    if (!*slot)
        *slot = load_before(s, value, tt_first_after_phis(block));
    return *slot;
}

static void store_before(Simt *s, LLVMValueRef value, LLVMValueRef array, LLVMValueRef anchor)
{
    LLVMPositionBuilderBefore(s->b, anchor);
    LLVMBuildStore(s->b, value, element(s, array, phase_of(s->strips, anchor)->strip));
}

static void keep_in_array(Simt *s, LLVMValueRef value)
{
    TT_VECTOR(LLVMValueRef) users = {0};
    for (LLVMUseRef use = LLVMGetFirstUse(value); use; use = LLVMGetNextUse(use))
        if (reads_array(s->strips, value, LLVMGetUser(use)))
            tt_push(s->arena, users, LLVMGetUser(use));
    LLVMValueRef array = array_of(s, value);
    if (!is_outer_phi(s->strips, value))
        store_before(s, value, array,
                     is_phi(value) ? tt_first_after_phis(LLVMGetInstructionParent(value))
                                   : LLVMGetNextInstruction(value));
    for (int i = 0; i < users.count; i++)
        for (unsigned j = 0; j < (unsigned)LLVMGetNumOperands(users.data[i]); j++)
            if (LLVMGetOperand(users.data[i], j) == value)
                LLVMSetOperand(users.data[i], j, loaded_for(s, value, users.data[i], j));
}

/* At the end of a phase, all that is carried on is read before any of it is written. */
static void copy_carried(Simt *s)
{
    Strips *strips = s->strips;
    for (int i = 0; i < strips->copies.count; i++) {
        Copy *copy = &strips->copies.data[i];
        if (varies(strips, copy->value) && phase_of(strips, copy->value) != copy->phase)
            copy->value = load_before(s, copy->value, LLVMGetBasicBlockTerminator(copy->phase->exit));
    }
    for (int i = 0; i < strips->copies.count; i++) {
        const Copy *copy = &strips->copies.data[i];
        store_before(s, copy->value, array_of(s, copy->phi), LLVMGetBasicBlockTerminator(copy->phase->exit));
    }
}

static void erase_phis(Simt *s)
{
    for (int i = 0; i < s->strips->crossing.count; i++) {
        LLVMValueRef value = s->strips->crossing.data[i];
        if (!is_outer_phi(s->strips, value))
            continue;
        LLVMReplaceAllUsesWith(value, LLVMGetUndef(LLVMTypeOf(value)));
        LLVMInstructionEraseFromParent(value);
    }
}

/* A phase in which nothing is done, nor carried on at its end, does it once. */
static void cut_empty_phase(Simt *s, const Phase *phase)
{
    LLVMValueRef end = LLVMGetBasicBlockTerminator(phase->exit);
    LLVMBasicBlockRef body = LLVMGetSuccessor(LLVMGetBasicBlockTerminator(phase->head), 0);
    if (body == phase->exit && LLVMGetFirstInstruction(body) == phase->next &&
        LLVMGetNextInstruction(phase->next) == LLVMGetPreviousInstruction(end))
        LLVMSetCondition(end, LLVMConstNull(s->i1));
}

void simt_finish_strips(Simt *s)
{
    Strips *strips = s->strips;
    if (!strips)
        return;
    LLVMBasicBlockRef end = LLVMGetInsertBlock(s->b);
    LLVMSetCurrentDebugLocation2(s->b, NULL);
    for (int i = 0; i < strips->phases.count; i++)
        claim_blocks(s, strips->phases.data[i]);
    find_varying(s);
    FOR_BLOCKS(block, s)
    FOR_INSTRUCTIONS(i, block)
    if (varies(strips, i) && is_outer_phi(strips, i))
        find_copies(s, i);
    find_crossing(s);
    for (int i = 0; i < strips->crossing.count; i++)
        keep_in_array(s, strips->crossing.data[i]);
    copy_carried(s);
    erase_phis(s);
    for (int i = 0; i < strips->phases.count; i++)
        cut_empty_phase(s, strips->phases.data[i]);
    LLVMPositionBuilderAtEnd(s->b, end);
}
