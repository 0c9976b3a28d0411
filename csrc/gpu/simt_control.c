/* Loops and branches: regions become basic blocks, carried values phis. A carried tile whose elements all move by one
 * step (pointers that advance) keeps a phi for each base that its registers are constant distances from, not one for
 * each register; and bytes keep one for four of them, as tensor cores take them: ptxas has a register for each value. */
#include "gpu/simt.h"

/* ---- carried values ------------------------------------------------------------------------------------------------------------------- */

/* A carried tile as phis: register r is phis[group[r]] + distance[r], or one of `in_word` bytes of phis[r / in_word]. */
typedef struct Carried {
    LLVMTypeRef type;
    int registers, groups, in_word;
    int *group;
    int64_t *distance;
    int *leader; /* of each group: its first register */
    LLVMValueRef *phis;
} Carried;

static bool is_uniform(const Value *value)
{
    return !tt_is_tile(value->type) || tt_def(value, OP_splat) || tt_def(value, OP_constant);
}

/* Is `value` `arg` plus something that is the same for all elements? */
static bool is_uniform_step(const Value *value, const Value *arg)
{
    while (value != arg) {
        const Op *op = value->op;
        if (!op || (op->opcode != OP_addptr && op->opcode != OP_add && op->opcode != OP_sub))
            return false;
        if (is_uniform(tt_operand(op, 1)))
            value = tt_operand(op, 0);
        else if (op->opcode == OP_add && is_uniform(tt_operand(op, 0)))
            value = tt_operand(op, 1);
        else
            return false;
    }
    return tt_is_tile(arg->type);
}

static int64_t split_constant(LLVMValueRef value, LLVMValueRef *base)
{
    if (LLVMGetTypeKind(LLVMTypeOf(value)) == LLVMPointerTypeKind)
        return simt_peel_pointer(value, base);
    int64_t constant = simt_peel(value, base);
    if (!*base) {
        *base = value;
        return 0;
    }
    return constant;
}

static LLVMValueRef add_distance(Simt *s, LLVMValueRef base, int64_t distance)
{
    if (!distance)
        return base;
    if (LLVMGetTypeKind(LLVMTypeOf(base)) == LLVMPointerTypeKind)
        return simt_addptr(s, base, simt_int(s->i64, distance), 1);
    return simt_add_constant(s, base, distance);
}

enum { IN_WORD = 4 };

static Carried carry(Simt *s, const Tile *initial, bool moves_as_one)
{
    Carried c = {.type = LLVMTypeOf(initial->at[0]), .registers = initial->count, .in_word = 1};
    if (c.type == s->i8 && !moves_as_one && c.registers % IN_WORD == 0) {
        c.type = s->i32;
        c.groups = c.registers / IN_WORD;
        c.in_word = IN_WORD;
        c.phis = TT_NEW_ARRAY(s->arena, LLVMValueRef, c.groups);
        return c;
    }
    c.group = TT_NEW_ARRAY(s->arena, int, c.registers);
    c.distance = TT_NEW_ARRAY(s->arena, int64_t, c.registers);
    c.leader = TT_NEW_ARRAY(s->arena, int, c.registers);
    Map groups = {.arena = s->arena};
    for (int r = 0; r < c.registers; r++) {
        LLVMValueRef base;
        void **slot = NULL;
        if (moves_as_one) {
            c.distance[r] = split_constant(initial->at[r], &base);
            slot = tt_map_slot_ptr(&groups, base);
        }
        if (slot && *slot) {
            c.group[r] = (int)(intptr_t)*slot - 1;
            continue;
        }
        c.group[r] = c.groups;
        c.leader[c.groups++] = r;
        if (slot)
            *slot = (void *)(intptr_t)c.groups;
    }
    c.phis = TT_NEW_ARRAY(s->arena, LLVMValueRef, c.groups);
    return c;
}

/* Phis at the start of the current block, which has nothing else yet. */
static void build_phis(Simt *s, Carried *c)
{
    for (int g = 0; g < c->groups; g++)
        c->phis[g] = LLVMBuildPhi(s->b, c->type, "");
}

/* What `value` is as words: sums in pairs are carried so. */
static Tile *words_of(Simt *s, const Value *value) { return simt_to_words(s, value, simt_tile(s, value)); }

static Tile *carried_tile(Simt *s, const Carried *c, const Value *value)
{
    Tile *tile = simt_new_tile(s, c->registers);
    Access access = simt_register_access(IN_WORD);
    for (int r = 0; r < c->registers && c->in_word > 1; r += IN_WORD)
        simt_unpack(s, &c->phis[r / IN_WORD], &access, IN_WORD, 1, s->i8, &tile->at[r]);
    for (int r = 0; r < c->registers && c->in_word == 1; r++)
        tile->at[r] = add_distance(s, c->phis[c->group[r]], c->distance[r]);
    return simt_from_words(s, value, tile);
}

/* The values of the groups, of what the registers are in `tile`. */
static LLVMValueRef *group_values(Simt *s, const Carried *c, const Tile *tile)
{
    LLVMValueRef *values = TT_NEW_ARRAY(s->arena, LLVMValueRef, c->groups);
    Access access = simt_register_access(IN_WORD);
    for (int g = 0; g < c->groups && c->in_word > 1; g++)
        simt_pack(s, &tile->at[g * IN_WORD], IN_WORD, 1, &access, &values[g]);
    for (int g = 0; g < c->groups && c->in_word == 1; g++)
        values[g] = add_distance(s, tile->at[c->leader[g]], -c->distance[c->leader[g]]);
    return values;
}

static void add_incoming(const Carried *c, LLVMValueRef *values, LLVMBasicBlockRef from)
{
    for (int g = 0; g < c->groups; g++)
        LLVMAddIncoming(c->phis[g], &values[g], &from, 1);
}

/* ---- for ----------------------------------------------------------------------------------------------------------------------------- */

/* Whether there is another iteration must not be asked of an index that may have overflowed. One that starts at 0 or above
 * does not in unsigned arithmetic; for others the distance to the end is counted down. */
typedef struct ForLoop {
    LLVMValueRef index, lower, upper, step, distance;
    LLVMValueRef left;       /* phi of upper - index, from `distance`; NULL when the index itself is asked */
    Carried *inside, *after; /* phis of the body, and of the block behind the loop */
    int count;
    bool meets; /* do threads meet in it? */
} ForLoop;

static void lower_body(Simt *s, const Op *op, ForLoop *loop, LLVMBasicBlockRef before, LLVMBasicBlockRef body,
                       LLVMBasicBlockRef after)
{
    const Region *region = op->regions[0];
    if (loop->meets)
        simt_enter_phase(s);
    simt_set_scalar(s, region->args[0], loop->index);
    for (int i = 0; i < loop->count; i++)
        simt_set(s, region->args[1 + i], carried_tile(s, &loop->inside[i], region->args[1 + i]));
    simt_lower_region(s, region);
    LLVMValueRef next = LLVMBuildAdd(s->b, loop->index, loop->step, ""), left = NULL, again;
    if (loop->left) {
        left = LLVMBuildSub(s->b, loop->left, loop->step, "");
        again = LLVMBuildICmp(s->b, LLVMIntUGT, loop->left, loop->step, "");
    } else {
        again = LLVMBuildICmp(s->b, LLVMIntULT, next, loop->upper, "");
    }
    LLVMValueRef **values = TT_NEW_ARRAY(s->arena, LLVMValueRef *, loop->count);
    for (int i = 0; i < loop->count; i++)
        values[i] = group_values(s, &loop->inside[i], words_of(s, tt_operand(region->last, i)));
    if (loop->meets)
        simt_leave_phase(s);
    for (int i = 0; i < loop->count; i++) {
        add_incoming(&loop->inside[i], values[i], LLVMGetInsertBlock(s->b));
        add_incoming(&loop->after[i], values[i], LLVMGetInsertBlock(s->b));
    }
    LLVMBasicBlockRef end = LLVMGetInsertBlock(s->b);
    LLVMBasicBlockRef from[] = {before, end};
    LLVMAddIncoming(loop->index, (LLVMValueRef[]){loop->lower, next}, from, 2);
    if (left)
        LLVMAddIncoming(loop->left, (LLVMValueRef[]){loop->distance, left}, from, 2);
    LLVMBuildCondBr(s->b, again, body, after);
}

/* The loop's bounds and what it carries, before its blocks exist; returns the values that go in. */
static LLVMValueRef **begin_loop(Simt *s, const Op *op, ForLoop *loop)
{
    const Region *region = op->regions[0];
    *loop = (ForLoop){.lower = simt_scalar(s, tt_operand(op, 0)),
                      .upper = simt_scalar(s, tt_operand(op, 1)),
                      .step = simt_scalar(s, tt_operand(op, 2)),
                      .inside = TT_NEW_ARRAY(s->arena, Carried, op->result_count),
                      .after = TT_NEW_ARRAY(s->arena, Carried, op->result_count),
                      .count = op->result_count,
                      .meets = simt_meets(s, op)};
    IntBounds bounds;
    if (!tt_int_bounds(tt_operand(op, 0), &bounds) || bounds.lowest < 0)
        loop->distance = LLVMBuildSub(s->b, loop->upper, loop->lower, "");
    LLVMValueRef **initial = TT_NEW_ARRAY(s->arena, LLVMValueRef *, loop->count);
    for (int i = 0; i < loop->count; i++) {
        const Tile *tile = words_of(s, tt_operand(op, 3 + i));
        bool moves_as_one = is_uniform_step(tt_operand(region->last, i), region->args[1 + i]);
        loop->inside[i] = loop->after[i] = carry(s, tile, moves_as_one);
        loop->after[i].phis = TT_NEW_ARRAY(s->arena, LLVMValueRef, loop->after[i].groups);
        initial[i] = group_values(s, &loop->inside[i], tile);
    }
    return initial;
}

/* Phis of the current block for all that is carried, as it comes from `before`. */
static void build_carried(Simt *s, Carried *carried, int count, LLVMValueRef **initial,
                          LLVMBasicBlockRef before)
{
    for (int i = 0; i < count; i++) {
        build_phis(s, &carried[i]);
        add_incoming(&carried[i], initial[i], before);
    }
}

void simt_for(Simt *s, const Op *op)
{
    ForLoop loop;
    LLVMValueRef **initial = begin_loop(s, op, &loop);
    LLVMValueRef enters = LLVMBuildICmp(s->b, LLVMIntSLT, loop.lower, loop.upper, "");
    if (loop.meets)
        simt_leave_phase(s);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(s->b), body = simt_new_block(s, "for");
    LLVMBasicBlockRef after = simt_new_block(s, "");
    LLVMBuildCondBr(s->b, enters, body, after);
    LLVMPositionBuilderAtEnd(s->b, after);
    build_carried(s, loop.after, loop.count, initial, before);
    LLVMPositionBuilderAtEnd(s->b, body);
    loop.index = LLVMBuildPhi(s->b, LLVMTypeOf(loop.lower), "");
    simt_share_between_strips(s, loop.index);
    if (loop.distance)
        simt_share_between_strips(s, loop.left = LLVMBuildPhi(s->b, LLVMTypeOf(loop.lower), ""));
    int zeros = TT_MIN(simt_known_zeros(s, loop.lower), simt_known_zeros(s, loop.step));
    *tt_map_slot_ptr(&s->known_zeros, loop.index) = (void *)(intptr_t)zeros;
    build_carried(s, loop.inside, loop.count, initial, before);
    lower_body(s, op, &loop, before, body, after);
    LLVMPositionBuilderAtEnd(s->b, after);
    if (loop.meets)
        simt_enter_phase(s);
    for (int i = 0; i < loop.count; i++)
        simt_set(s, op->results[i], carried_tile(s, &loop.after[i], op->results[i]));
}

/* ---- while --------------------------------------------------------------------------------------------------------------------------- */

void simt_while(Simt *s, const Op *op)
{
    int count = op->result_count;
    bool meets = simt_meets(s, op);
    const Region *test = op->regions[0], *region = op->regions[1];
    Carried *carried = TT_NEW_ARRAY(s->arena, Carried, count);
    LLVMBasicBlockRef head = simt_new_block(s, "while"), body = simt_new_block(s, "do"),
                      after = simt_new_block(s, "");
    LLVMValueRef **initial = TT_NEW_ARRAY(s->arena, LLVMValueRef *, count);
    for (int i = 0; i < count; i++) {
        const Tile *tile = words_of(s, tt_operand(op, i));
        carried[i] = carry(s, tile, false);
        initial[i] = group_values(s, &carried[i], tile);
    }
    if (meets)
        simt_leave_phase(s);
    LLVMBasicBlockRef before = LLVMGetInsertBlock(s->b);
    LLVMBuildBr(s->b, head);
    LLVMPositionBuilderAtEnd(s->b, head);
    build_carried(s, carried, count, initial, before);
    if (meets)
        simt_enter_phase(s);
    if (s->options->debug) /* it may wait for a program that has failed: for a lock, say */
        s->ops->stop_after_failure(s);
    for (int i = 0; i < count; i++) {
        Tile *tile = carried_tile(s, &carried[i], op->results[i]);
        simt_set(s, test->args[i], tile);
        simt_set(s, region->args[i], tile);
        simt_set(s, op->results[i], tile);
    }
    simt_lower_region(s, test);
    LLVMValueRef holds = simt_scalar(s, tt_operand(test->last, 0)), **next = initial;
    if (meets)
        simt_leave_phase(s);
    LLVMBuildCondBr(s->b, holds, body, after);
    LLVMPositionBuilderAtEnd(s->b, body);
    if (meets)
        simt_enter_phase(s);
    simt_lower_region(s, region);
    for (int i = 0; i < count; i++)
        next[i] = group_values(s, &carried[i], words_of(s, tt_operand(region->last, i)));
    if (meets)
        simt_leave_phase(s);
    for (int i = 0; i < count; i++)
        add_incoming(&carried[i], next[i], LLVMGetInsertBlock(s->b));
    LLVMBuildBr(s->b, head);
    LLVMPositionBuilderAtEnd(s->b, after);
    if (meets)
        simt_enter_phase(s);
}

/* ---- if ------------------------------------------------------------------------------------------------------------------------------ */

static Tile *merge(Simt *s, const Tile *a, LLVMBasicBlockRef a_end, const Tile *b, LLVMBasicBlockRef b_end)
{
    Tile *tile = simt_new_tile(s, a->count);
    Map known = {.arena = s->arena}; /* equal pairs share a phi */
    for (int r = 0; r < a->count; r++) {
        LLVMValueRef values[] = {a->at[r], b->at[r]};
        void **slot = tt_map_slot(&known, values, sizeof values);
        if (!*slot && values[0] == values[1])
            *slot = values[0];
        if (!*slot) {
            LLVMValueRef phi = *slot = LLVMBuildPhi(s->b, LLVMTypeOf(a->at[r]), "");
            LLVMAddIncoming(phi, values, (LLVMBasicBlockRef[]){a_end, b_end}, 2);
        }
        tile->at[r] = *slot;
    }
    return tile;
}

void simt_if(Simt *s, const Op *op)
{
    const Region *yes = op->regions[0], *no = op->regions[1];
    LLVMBasicBlockRef then = simt_new_block(s, "then"), otherwise = simt_new_block(s, "else"), ends[2];
    LLVMBasicBlockRef after = simt_new_block(s, "");
    LLVMValueRef holds = simt_scalar(s, tt_operand(op, 0));
    Tile **tiles[2];
    bool meets = simt_meets(s, op);
    for (int i = 0; i < 2; i++)
        tiles[i] = TT_NEW_ARRAY(s->arena, Tile *, op->result_count);
    if (meets)
        simt_leave_phase(s);
    LLVMBuildCondBr(s->b, holds, then, otherwise);
    for (int i = 0; i < 2; i++) {
        LLVMPositionBuilderAtEnd(s->b, i ? otherwise : then);
        if (meets)
            simt_enter_phase(s);
        simt_lower_region(s, i ? no : yes);
        for (int j = 0; j < op->result_count; j++)
            tiles[i][j] = words_of(s, tt_operand((i ? no : yes)->last, j));
        if (meets)
            simt_leave_phase(s);
        ends[i] = LLVMGetInsertBlock(s->b);
        LLVMBuildBr(s->b, after);
    }
    LLVMPositionBuilderAtEnd(s->b, after);
    for (int i = 0; i < op->result_count; i++)
        tiles[0][i] = merge(s, tiles[0][i], ends[0], tiles[1][i], ends[1]);
    if (meets)
        simt_enter_phase(s);
    for (int i = 0; i < op->result_count; i++) /* behind all phis, and for each strip */
        simt_set(s, op->results[i], simt_from_words(s, op->results[i], tiles[0][i]));
}
