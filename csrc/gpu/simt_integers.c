/* Integer arithmetic and addresses. Registers of a tile mostly differ by constants; sums are built as (base + constant)
 * with the base shared between registers, so that the constants become immediates of memory accesses. */
#include "gpu/simt.h"

typedef struct SumKey {
    int64_t opcode;
    LLVMValueRef a, b;
    int64_t constant;
} SumKey;
enum {
    SUM_ADD,
    SUM_ADD_CONSTANT,
    SUM_SUB,
    SUM_MUL,
    SUM_POINTER,
    SUM_POINTER_CONSTANT,
    SUM_COMPARE,
    SUM_DIVIDE /* plus the opcode */
};

/* The place for a value computed from these in the current block, where it may be used again. */
static void **sum_slot(Simt *s, int opcode, LLVMValueRef a, LLVMValueRef b, int64_t constant)
{
    LLVMBasicBlockRef block = LLVMGetInsertBlock(s->b);
    if (s->sums_block != block) {
        s->sums = (Map){.arena = s->arena};
        s->sums_block = block;
    }
    SumKey key = {opcode, a, b, constant};
    return tt_map_slot(&s->sums, &key, sizeof key);
}

int64_t simt_peel(LLVMValueRef value, LLVMValueRef *base)
{
    *base = value;
    if (LLVMIsAConstantInt(value)) {
        *base = NULL;
        return LLVMConstIntGetSExtValue(value);
    }
    if (!LLVMIsAInstruction(value) || LLVMGetInstructionOpcode(value) != LLVMAdd)
        return 0;
    LLVMValueRef constant = LLVMGetOperand(value, 1);
    if (!LLVMIsAConstantInt(constant))
        return 0;
    *base = LLVMGetOperand(value, 0);
    return LLVMConstIntGetSExtValue(constant);
}

LLVMValueRef simt_add_constant(Simt *s, LLVMValueRef a, int64_t constant)
{
    LLVMValueRef base;
    constant = (int64_t)((uint64_t)constant + (uint64_t)simt_peel(a, &base));
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef addend = simt_int(type, constant);
    if (!base)
        return addend;
    if (LLVMIsNull(addend))
        return base;
    void **slot = sum_slot(s, SUM_ADD_CONSTANT, base, addend, 0);
    return *slot ? *slot : (*slot = LLVMBuildAdd(s->b, base, addend, ""));
}

LLVMValueRef simt_add(Simt *s, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef a_base, b_base;
    int64_t constant = (int64_t)((uint64_t)simt_peel(a, &a_base) + (uint64_t)simt_peel(b, &b_base));
    if (!a_base || !b_base)
        return a_base   ? simt_add_constant(s, a_base, constant)
               : b_base ? simt_add_constant(s, b_base, constant)
                        : simt_int(LLVMTypeOf(a), constant);
    void **slot = sum_slot(s, SUM_ADD, a_base, b_base, 0);
    LLVMValueRef sum = *slot ? *slot : (*slot = LLVMBuildAdd(s->b, a_base, b_base, ""));
    return simt_add_constant(s, sum, constant);
}

LLVMValueRef simt_sub(Simt *s, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef a_base, b_base;
    int64_t constant = (int64_t)((uint64_t)simt_peel(a, &a_base) - (uint64_t)simt_peel(b, &b_base));
    if (!b_base)
        return a_base ? simt_add_constant(s, a_base, constant) : simt_int(LLVMTypeOf(a), constant);
    if (!a_base)
        return LLVMIsNull(a) ? s->ops->negate(s, b) : LLVMBuildSub(s->b, a, b, "");
    void **slot = sum_slot(s, SUM_SUB, a_base, b_base, 0);
    LLVMValueRef difference = *slot ? *slot : (*slot = LLVMBuildSub(s->b, a_base, b_base, ""));
    return simt_add_constant(s, difference, constant);
}

static LLVMValueRef multiply(Simt *s, LLVMValueRef a, LLVMValueRef b)
{
    void **slot = sum_slot(s, SUM_MUL, a, b, 0);
    return *slot ? *slot : (*slot = LLVMBuildMul(s->b, a, b, ""));
}

LLVMValueRef simt_mul(Simt *s, LLVMValueRef a, LLVMValueRef b)
{
    if (LLVMIsAConstantInt(a)) {
        LLVMValueRef swap = a;
        a = b;
        b = swap;
    }
    LLVMValueRef base;
    if (!LLVMIsAConstantInt(b))
        return multiply(s, a, b);
    int64_t constant = (int64_t)((uint64_t)simt_peel(a, &base) * (uint64_t)LLVMConstIntGetSExtValue(b));
    return base ? simt_add_constant(s, multiply(s, base, b), constant) : simt_int(LLVMTypeOf(a), constant);
}

LLVMValueRef simt_shl(Simt *s, LLVMValueRef a, LLVMValueRef b)
{
    unsigned bits = LLVMGetIntTypeWidth(LLVMTypeOf(a));
    if (!LLVMIsAConstantInt(b))
        return simt_shift(s, OP_shl, a, b);
    uint64_t count = LLVMConstIntGetZExtValue(b);
    if (count >= bits)
        return LLVMConstNull(LLVMTypeOf(a));
    return simt_mul(s, a, simt_int(LLVMTypeOf(a), (int64_t)(1ull << count)));
}

/* Shifts by the width or more are poison in LLVM; here they empty the value, or fill it with the sign. */
LLVMValueRef simt_shift(Simt *s, Opcode opcode, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    unsigned bits = LLVMGetIntTypeWidth(type);
    LLVMValueRef last = simt_int(type, bits - 1);
    LLVMValueRef fits = LLVMBuildICmp(s->b, LLVMIntULE, b, last, "");
    if (opcode == OP_shr_s)
        return LLVMBuildAShr(s->b, a, LLVMBuildSelect(s->b, fits, b, last, ""), "");
    LLVMValueRef shifted = opcode == OP_shl ? LLVMBuildShl(s->b, a, b, "") : LLVMBuildLShr(s->b, a, b, "");
    return LLVMBuildSelect(s->b, fits, shifted, LLVMConstNull(type), "");
}

/* ---- division ----------------------------------------------------------------------------------------------------------------------------- */

enum { ALL_ZEROS = 64, MOST_ZEROS = 30, DEEPEST_LOOK = 8 };

/* A lower bound of the number of zero bits at the end of a value. */
static int zeros_at(const Simt *s, LLVMValueRef value, int depth)
{
    if (LLVMIsAConstantInt(value)) {
        uint64_t bits = (uint64_t)LLVMConstIntGetSExtValue(value);
        return bits ? __builtin_ctzll(bits) : ALL_ZEROS;
    }
    if (!LLVMIsAInstruction(value) || LLVMIsAPHINode(value))
        return (int)(intptr_t)tt_map_find_ptr(&s->known_zeros, value);
    if (!depth || LLVMGetNumOperands(value) < 2)
        return 0;
    int a = zeros_at(s, LLVMGetOperand(value, 0), depth - 1),
        b = zeros_at(s, LLVMGetOperand(value, 1), depth - 1);
    switch (LLVMGetInstructionOpcode(value)) {
    case LLVMAdd:
    case LLVMSub:
    case LLVMOr:
    case LLVMXor:
        return TT_MIN(a, b);
    case LLVMMul:
        return TT_MIN(a + b, ALL_ZEROS);
    case LLVMAnd:
        return TT_MAX(a, b);
    case LLVMShl:
        if (LLVMIsAConstantInt(LLVMGetOperand(value, 1)))
            return a + (int)LLVMConstIntGetZExtValue(LLVMGetOperand(value, 1));
        return a;
    default:
        return 0;
    }
}

/* Division by zero, and of the smallest number by -1, is undefined in LLVM; here it gives anything and goes on: the
 * divisors 0 and -1 become 1, and for the latter the dividend is negated. */
static LLVMValueRef divide(Simt *s, Opcode opcode, LLVMValueRef a, LLVMValueRef b)
{
    LLVMTypeRef type = LLVMTypeOf(a);
    LLVMValueRef one = simt_int(type, 1), zero = LLVMConstNull(type);
    bool is_signed = opcode == OP_div_s || opcode == OP_rem_s,
         is_quotient = opcode == OP_div_s || opcode == OP_div_u;
    if (!is_signed) {
        LLVMValueRef safe = LLVMBuildSelect(s->b, LLVMBuildICmp(s->b, LLVMIntEQ, b, zero, ""), one, b, "");
        return is_quotient ? LLVMBuildUDiv(s->b, a, safe, "") : LLVMBuildURem(s->b, a, safe, "");
    }
    LLVMValueRef minus_one = LLVMConstAllOnes(type);
    LLVMValueRef unsafe = LLVMBuildICmp(s->b, LLVMIntULE, LLVMBuildAdd(s->b, b, one, ""), one, "");
    LLVMValueRef safe = LLVMBuildSelect(s->b, unsafe, one, b, "");
    if (!is_quotient)
        return LLVMBuildSRem(s->b, a, safe, ""); /* x % 1 is x % -1 */
    LLVMValueRef quotient = LLVMBuildSDiv(s->b, a, safe, "");
    LLVMValueRef negates = LLVMBuildICmp(s->b, LLVMIntEQ, b, minus_one, "");
    if (LLVMIsAConstantInt(negates))
        return LLVMIsNull(negates) ? quotient : LLVMBuildNeg(s->b, a, "");
    return LLVMBuildSelect(s->b, negates, LLVMBuildNeg(s->b, a, ""), quotient, "");
}

/* Multiples of a power of two have the same quotient by one of them, and remainders one apart, for all numbers between two
 * neighbours: m + 1, m + 2, ..., and for m itself where it is not negative, since integers are divided toward zero. So a
 * thread that holds neighbours divides for one or two of them. */
LLVMValueRef simt_divide(Simt *s, const Op *op, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef base;
    Opcode opcode = op->opcode;
    IntBounds bounds;
    int64_t constant = simt_peel(a, &base), within = 0;
    bool is_quotient = opcode == OP_div_s || opcode == OP_div_u;
    bool is_whole = opcode == OP_div_u || opcode == OP_rem_u || tt_find_attr(op, ATTR_whole) ||
                    (tt_int_bounds(tt_operand(op, 0), &bounds) && bounds.lowest >= 0);
    if (base) {
        int zeros = TT_MIN(TT_MIN(zeros_at(s, base, DEEPEST_LOOK), zeros_at(s, b, DEEPEST_LOOK)), MOST_ZEROS);
        within = constant & ((1ll << zeros) - 1);
    }
    int64_t shared = is_whole ? 0 : TT_MIN(within, 1); /* what is divided, of those neighbours */
    if (within > shared)
        a = simt_add_constant(s, base, constant - within + shared);
    void **slot = sum_slot(s, SUM_DIVIDE + (int)opcode, a, b, 0);
    LLVMValueRef result = *slot ? *slot : divide(s, opcode, a, b);
    *sum_slot(s, SUM_DIVIDE + (int)opcode, a, b, 0) = result;
    return is_quotient || within == shared ? result : simt_add_constant(s, result, within - shared);
}

/* ---- comparisons ------------------------------------------------------------------------------------------------------------------------ */

int simt_known_zeros(const Simt *s, LLVMValueRef value) { return zeros_at(s, value, DEEPEST_LOOK); }

/* x < n is the same for all x between two multiples of what n is a multiple of: so x is taken down to the lower one, and
 * neighbouring registers share a comparison. Also of >=. */
static LLVMValueRef rounded_down(Simt *s, LLVMValueRef x, LLVMValueRef n)
{
    LLVMValueRef base;
    int64_t constant = simt_peel(x, &base);
    if (!base || !constant)
        return x;
    int zeros = TT_MIN(simt_known_zeros(s, n), simt_known_zeros(s, base));
    int64_t step = 1ll << TT_MIN(zeros, 62);
    return zeros ? simt_add_constant(s, base, constant & -step) : x;
}

LLVMValueRef simt_compare(Simt *s, Opcode opcode, LLVMValueRef a, LLVMValueRef b)
{
    static const LLVMIntPredicate predicates[] = {
        [OP_eq] = LLVMIntEQ,    [OP_ne] = LLVMIntNE,    [OP_lt_s] = LLVMIntSLT, [OP_le_s] = LLVMIntSLE,
        [OP_gt_s] = LLVMIntSGT, [OP_ge_s] = LLVMIntSGE, [OP_lt_u] = LLVMIntULT, [OP_le_u] = LLVMIntULE,
        [OP_gt_u] = LLVMIntUGT, [OP_ge_u] = LLVMIntUGE};
    bool is_int = LLVMGetTypeKind(LLVMTypeOf(a)) == LLVMIntegerTypeKind;
    if (is_int && (opcode == OP_lt_s || opcode == OP_ge_s || opcode == OP_lt_u || opcode == OP_ge_u))
        a = rounded_down(s, a, b);
    if (is_int && (opcode == OP_gt_s || opcode == OP_le_s || opcode == OP_gt_u || opcode == OP_le_u))
        b = rounded_down(s, b, a);
    void **slot = sum_slot(s, SUM_COMPARE, a, b, opcode);
    return *slot ? *slot : (*slot = LLVMBuildICmp(s->b, predicates[opcode], a, b, ""));
}

/* ---- addresses ----------------------------------------------------------------------------------------------------------------- */

static LLVMValueRef byte_offset(Simt *s, LLVMValueRef pointer, LLVMValueRef offset)
{
    return LLVMBuildGEP2(s->b, s->i8, pointer, &offset, 1, "");
}

int64_t simt_peel_pointer(LLVMValueRef pointer, LLVMValueRef *base)
{
    *base = pointer;
    if (!LLVMIsAInstruction(pointer) || LLVMGetInstructionOpcode(pointer) != LLVMGetElementPtr ||
        LLVMGetNumOperands(pointer) != 2)
        return 0;
    LLVMTypeRef element = LLVMGetGEPSourceElementType(pointer);
    LLVMValueRef constant = LLVMGetOperand(pointer, 1);
    if (!LLVMIsAConstantInt(constant) || LLVMGetTypeKind(element) != LLVMIntegerTypeKind ||
        LLVMGetIntTypeWidth(element) != 8)
        return 0;
    *base = LLVMGetOperand(pointer, 0);
    return LLVMConstIntGetSExtValue(constant);
}

static LLVMValueRef add_pointer_constant(Simt *s, LLVMValueRef pointer, int64_t bytes)
{
    if (!bytes)
        return pointer;
    void **slot = sum_slot(s, SUM_POINTER_CONSTANT, pointer, NULL, bytes);
    return *slot ? *slot : (*slot = byte_offset(s, pointer, simt_int(s->i64, bytes)));
}

/* Offsets narrower than 64 bits are taken not to overflow: a program that wraps one around has left its array. */
/* A tile of pointers moved as one: what a loop carries, for its next iteration, or for asynchronous copies. */
static bool is_advance(const Simt *s)
{
    const Op *op = s->op;
    if (!op || op->opcode != OP_addptr || !tt_def(tt_operand(op, 1), OP_splat))
        return false;
    bool is_carried = tt_has_one_use(op->results[0]) && tt_operand(op, 0)->region == op->parent,
         is_copied = tt_has_uses(op->results[0]);
    TT_FOR_USES(use, op->results[0])
    {
        is_carried &= use->user->opcode == OP_yield;
        is_copied &= use->user->opcode == OP_async_copy;
    }
    return is_carried || is_copied;
}

static LLVMValueRef moved(Simt *s, LLVMValueRef base, LLVMValueRef offset, int64_t element_bytes)
{
    void **slot = sum_slot(s, SUM_POINTER, base, offset, element_bytes);
    if (!*slot && LLVMGetIntTypeWidth(LLVMTypeOf(offset)) < 64)
        *slot = s->ops->move_pointer(s, base, offset, element_bytes);
    else if (!*slot)
        *slot = byte_offset(s, base, LLVMBuildMul(s->b, offset, simt_int(s->i64, element_bytes), ""));
    return *slot;
}

/* Of a sum in 64 bits, one summand that was widened from 32, and the rest; NULL if there is none. A pointer is moved by it in one
 * instruction, where it takes three to widen and add it: indices as torch.compile computes them, of rows and columns in turn.
 * Loops with products have distances that all their pointers share. */
static LLVMValueRef widened_summand(const Simt *s, LLVMValueRef sum, LLVMValueRef *rest)
{
    if (s->has_products || !LLVMIsAInstruction(sum) || LLVMGetInstructionOpcode(sum) != LLVMAdd)
        return NULL;
    for (unsigned i = 2; i-- > 0;) {
        LLVMValueRef summand = LLVMGetOperand(sum, i);
        if (!LLVMIsAInstruction(summand) || LLVMGetInstructionOpcode(summand) != LLVMSExt ||
            LLVMTypeOf(LLVMGetOperand(summand, 0)) != s->i32)
            continue;
        *rest = LLVMGetOperand(sum, 1 - i);
        return LLVMGetOperand(summand, 0);
    }
    return NULL;
}

LLVMValueRef simt_addptr(Simt *s, LLVMValueRef pointer, LLVMValueRef offset, int64_t element_bytes)
{
    LLVMValueRef base, offset_base, summand;
    int64_t bytes = simt_peel_pointer(pointer, &base);
    if (is_advance(s)) {
        offset = LLVMBuildSExt(s->b, offset, s->i64, "");
        void **known = sum_slot(s, SUM_POINTER, base, offset, element_bytes);
        if (!*known)
            *known =
                s->ops->advance(s, base, LLVMBuildMul(s->b, offset, simt_int(s->i64, element_bytes), ""));
        return add_pointer_constant(s, *known, bytes);
    }
    uint64_t more = (uint64_t)simt_peel(offset, &offset_base) * (uint64_t)element_bytes;
    bytes = (int64_t)((uint64_t)bytes + more); /* wraps around as the pointer does */
    while (offset_base && (summand = widened_summand(s, offset_base, &offset_base)))
        base = moved(s, base, summand, element_bytes);
    if (offset_base)
        base = moved(s, base, offset_base, element_bytes);
    return add_pointer_constant(s, base, bytes);
}
