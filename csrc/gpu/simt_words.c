/* Integers of 8 or 16 bits that a thread has loaded in words, or that make words: what masks and shifts them, or adds a
 * constant, does so to four or two at once. Weights of few bits are unpacked so, on their way to floats or to tensor
 * cores. */
#include "gpu/simt.h"

/* A word of such integers, and how many bits each has. */
typedef struct Word {
    Simt *s;
    int bits;
} Word;

static LLVMValueRef each(const Word *w, uint64_t constant)
{
    uint64_t one = constant & ((1ull << w->bits) - 1), all = 0;
    for (int at = 0; at < 32; at += w->bits)
        all |= one << at;
    return simt_i32(w->s, (int32_t)(uint32_t)all);
}

static LLVMValueRef signs(const Word *w) { return each(w, 1ull << (w->bits - 1)); }

/* Sums without carries from one to the next: the highest bits are added apart. */
static LLVMValueRef add(const Word *w, LLVMValueRef word, uint64_t constant)
{
    LLVMBuilderRef b = w->s->b;
    uint64_t low_bits = (1ull << (w->bits - 1)) - 1;
    LLVMValueRef low = LLVMBuildAnd(b, word, each(w, low_bits), "");
    low = LLVMBuildAdd(b, low, each(w, constant & low_bits), "");
    LLVMValueRef high = LLVMBuildXor(b, word, each(w, constant), "");
    return LLVMBuildXor(b, low, LLVMBuildAnd(b, high, signs(w), ""), "");
}

static LLVMValueRef shift_left(const Word *w, LLVMValueRef word, int64_t distance)
{
    word = LLVMBuildShl(w->s->b, word, simt_i32(w->s, distance), "");
    return LLVMBuildAnd(w->s->b, word, each(w, UINT64_MAX << distance), "");
}

static LLVMValueRef shift_right(const Word *w, LLVMValueRef word, int64_t distance)
{
    word = LLVMBuildLShr(w->s->b, word, simt_i32(w->s, distance), "");
    return LLVMBuildAnd(w->s->b, word, each(w, (1ull << (w->bits - distance)) - 1), "");
}

/* The sign, which comes to a lower place, is made one of all bits: less twice itself, where the highest bit keeps
 * neighbours apart. */
static LLVMValueRef shift_right_signed(const Word *w, LLVMValueRef word, int64_t distance)
{
    LLVMBuilderRef b = w->s->b;
    LLVMValueRef sign = each(w, 1ull << (w->bits - 1 - distance));
    word = LLVMBuildXor(b, shift_right(w, word, distance), sign, "");
    word = LLVMBuildSub(b, LLVMBuildOr(b, word, signs(w), ""), sign, "");
    return LLVMBuildXor(b, word, signs(w), "");
}

static LLVMValueRef by_constant(const Word *w, Opcode opcode, LLVMValueRef word, int64_t constant)
{
    LLVMBuilderRef b = w->s->b;
    switch (opcode) {
    case OP_and:
        return LLVMBuildAnd(b, word, each(w, (uint64_t)constant), "");
    case OP_or:
        return LLVMBuildOr(b, word, each(w, (uint64_t)constant), "");
    case OP_xor:
        return LLVMBuildXor(b, word, each(w, (uint64_t)constant), "");
    case OP_add:
        return add(w, word, (uint64_t)constant);
    case OP_sub:
        return add(w, word, -(uint64_t)constant);
    case OP_shl:
        return shift_left(w, word, constant);
    case OP_shr_u:
        return shift_right(w, word, constant);
    default:
        return shift_right_signed(w, word, constant);
    }
}

static LLVMValueRef of_two(const Word *w, Opcode opcode, LLVMValueRef x, LLVMValueRef y)
{
    return opcode == OP_and  ? LLVMBuildAnd(w->s->b, x, y, "")
           : opcode == OP_or ? LLVMBuildOr(w->s->b, x, y, "")
                             : LLVMBuildXor(w->s->b, x, y, "");
}

/* ---- which ----------------------------------------------------------------------------------------------------------- */

/* Is it one on words? By a constant that all elements have in common, or NULL: of two words. */
static bool has_word_op(const Op *op, int64_t *constant, bool *is_of_two)
{
    int bits = op->result_count ? tt_bit_width(op->results[0]->type) : 0;
    if (bits != 8 && bits != 16)
        return false;
    bool is_known = op->operand_count == 2 && tt_constant_int(tt_operand(op, 1), constant);
    *is_of_two = !is_known;
    switch (op->opcode) {
    case OP_and:
    case OP_or:
    case OP_xor:
        return true;
    case OP_add:
    case OP_sub:
        return is_known;
    case OP_shl:
    case OP_shr_s:
    case OP_shr_u:
        return is_known && *constant > 0 && *constant < bits;
    default:
        return false;
    }
}

static bool is_widening(const Op *op)
{
    return op->opcode == OP_ext_u && tt_bit_width(tt_operand(op, 0)->type) == 8 &&
           tt_bit_width(op->results[0]->type) == 16;
}

/* Do all that take it take words? Others would have to take elements out of them once more. Bytes become floats in words. */
static bool stays_in_words(const Value *value)
{
    int64_t constant;
    bool is_of_two, is_byte = tt_bit_width(value->type) == 8;
    TT_FOR_USES(use, value)
    {
        const Op *user = use->user;
        bool passes = tt_has(user, SHAPE) || user->opcode == OP_convert_layout || is_widening(user) ||
                      has_word_op(user, &constant, &is_of_two);
        bool converts = user->opcode == OP_int_to_float_s || user->opcode == OP_int_to_float_u,
             ends = tt_has(user, WRITES | SMEM_WRITES) || user->opcode == OP_yield || tt_is_product(user) ||
                    (converts && is_byte && tt_bit_width(user->results[0]->type) <= 32) ||
                    (!is_byte && user->opcode == OP_bitcast);
        if (passes ? !stays_in_words(user->results[0]) : !ends)
            return false;
    }
    return true;
}

/* ---- computing -------------------------------------------------------------------------------------------------------- */

/* The vector of these integers that x is an element of, or NULL. */
static LLVMValueRef vector_of(const Word *w, LLVMValueRef x)
{
    LLVMTypeRef type = LLVMVectorType(simt_int_type(w->s, w->bits), (unsigned)(32 / w->bits));
    LLVMValueRef vector = LLVMIsAExtractElementInst(x) ? LLVMGetOperand(x, 0) : NULL;
    return vector && LLVMTypeOf(vector) == type ? vector : NULL;
}

static void compute(const Word *w, Batch *batch, const int64_t *constant)
{
    Simt *s = w->s;
    Map known = {.arena = s->arena};
    for (int i = 0; i < batch->count; i++) {
        LLVMValueRef x = batch->operands[0][i], y = constant ? NULL : batch->operands[1][i];
        LLVMValueRef vectors[] = {vector_of(w, x), y ? vector_of(w, y) : NULL}, words[2];
        if (!vectors[0] || (y && (!vectors[1] || LLVMGetOperand(x, 1) != LLVMGetOperand(y, 1))))
            continue;
        void **slot = tt_map_slot(&known, vectors, sizeof vectors);
        if (!*slot) {
            for (int j = 0; j < 2 && vectors[j]; j++)
                words[j] = LLVMBuildBitCast(s->b, vectors[j], s->i32, "");
            Opcode opcode = batch->op->opcode;
            LLVMValueRef word = constant ? by_constant(w, opcode, words[0], *constant)
                                         : of_two(w, opcode, words[0], words[1]);
            *slot = LLVMBuildBitCast(s->b, word, LLVMTypeOf(vectors[0]), "");
        }
        batch->results[i] = LLVMBuildExtractElement(s->b, *slot, LLVMGetOperand(x, 1), "");
    }
}

/* Two bytes of a word with zeros between them. */
static void widen(const Word *w, Batch *batch)
{
    Simt *s = w->s;
    for (int i = 0; i + 1 < batch->count; i += 2) {
        LLVMValueRef vector = vector_of(w, batch->operands[0][i]), places[4];
        if (!vector || vector != vector_of(w, batch->operands[0][i + 1]))
            continue;
        for (int j = 0; j < 4; j++)
            places[j] = j % 2 ? simt_i32(s, 4) : LLVMGetOperand(batch->operands[0][i + j / 2], 1);
        LLVMValueRef pair = LLVMBuildShuffleVector(s->b, vector, LLVMConstNull(LLVMTypeOf(vector)),
                                                   LLVMConstVector(places, 4), "");
        pair = LLVMBuildBitCast(s->b, pair, LLVMVectorType(s->i16, 2), "");
        for (int j = 0; j < 2; j++)
            batch->results[i + j] = LLVMBuildExtractElement(s->b, pair, simt_i32(s, j), "");
    }
}

void simt_compute_words(Simt *s, Batch *batch)
{
    const Op *op = batch->op;
    int64_t constant;
    bool is_of_two, widens = is_widening(op);
    if (!(widens || has_word_op(op, &constant, &is_of_two)) || !stays_in_words(op->results[0]))
        return;
    Word w = {s, tt_bit_width(tt_operand(op, 0)->type)};
    if (widens)
        widen(&w, batch);
    else
        compute(&w, batch, is_of_two ? NULL : &constant);
}
