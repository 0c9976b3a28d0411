/* Matrix products on fused multiply-adds. Both operands lie in buffers (plan_dot.c says where); a loop goes through K, a
 * few k at a time: what a thread needs of its rows of a and columns of b for these k it loads as vectors,
 * and each pair of them is multiplied and added to a sum that stays in a register. */
#include "gpu/simt.h"

enum {
    STRAIGHT_LINE = 1024, /* multiply-adds without a loop; ptxas takes time for each */
    BODY_SIZE = 512,      /* in the body of one */
    MOST_UNROLLED = 16,   /* values of k in it */
    MOST_WORDS = 4,       /* in a vector */
};

/* What a thread loads of an operand. For one k, or as many as lie in a vector, it needs vectors with the numbers
 * `numbers`, from where its base points. */
typedef struct Operand {
    const DotOperand *plan;
    const Type *type, *computed; /* of the elements, and of the products */
    LLVMValueRef base;           /* of the buffer, the thread, and the k that the loop has reached */
    uint64_t base_bits;          /* that `base` may have set, in elements */
    uint64_t *numbers;
    int *number_of; /* by register of the result: index in `numbers` */
    int count;
} Operand;

/* Vectors of an operand for a few k in a row. */
typedef struct Fragment {
    Access access;       /* of each vector */
    LLVMValueRef *words; /* as they are loaded: access.words of each vector */
    LLVMValueRef *elements,
        *wide; /* and what they hold, as it is and in the type of the products; from its first use on */
} Fragment;

typedef struct Product {
    Simt *s;
    Operand a, b;
    const Type *computed; /* of the products */
    LLVMValueRef *sums;
    int *order, count; /* the result's registers in the order in which they are multiplied */
    int step;          /* values of k in a fragment */
} Product;

/* ---- operands ------------------------------------------------------------------------------------------------------------------------ */

static uint64_t any_of(const uint64_t *columns, int count)
{
    uint64_t any = 0;
    for (int i = 0; i < count; i++)
        any |= columns[i];
    return any;
}

/* The part of an address that depends on the thread, by the columns of a place in `layout`. */
static LLVMValueRef thread_base(Simt *s, const LinearLayout *layout, const uint64_t *offsets, int bytes)
{
    return simt_thread_offset(s, offsets + layout->in_bits[LAYOUT_REGISTER], layout->in_bits[LAYOUT_LANE],
                              layout->in_bits[LAYOUT_WARP], bytes);
}

static Operand operand_of(Simt *s, const Op *op, int index, const DotOperand *plan, const Type *computed)
{
    const LinearLayout *result = op->results[0]->layout;
    int first = result->in_bits[LAYOUT_REGISTER], total = tt_layout_in_total(result);
    Operand x = {.plan = plan,
                 .type = tt_element(tt_operand(op, index)->type),
                 .computed = computed,
                 .base_bits = any_of(plan->load_offsets + first, total - first),
                 .numbers = TT_NEW_ARRAY(s->arena, uint64_t, 1 << first),
                 .number_of = TT_NEW_ARRAY(s->arena, int, 1 << first)};
    LLVMValueRef thread = thread_base(s, result, plan->load_offsets, tt_byte_width(x.type));
    x.base = LLVMBuildAdd(s->b, simt_scalar(s, tt_operand(op, index)), thread, "");
    for (int r = 0; r < 1 << first; r++) {
        uint64_t number = tt_f2_apply(plan->load_offsets, (uint64_t)r) >> plan->vector_bits;
        int at = 0;
        while (at < x.count && x.numbers[at] != number)
            at++;
        x.number_of[r] = at;
        x.numbers[at] = number;
        x.count = TT_MAX(x.count, at + 1);
    }
    return x;
}

static LLVMValueRef widened(Simt *s, LLVMValueRef value, const Type *from, const Type *to)
{
    if (tt_is_int(to))
        return LLVMBuildIntCast2(s->b, value, simt_type(s, to), 1, "");
    return simt_cast_scalar(s, value, from, to);
}

/* Vectors for `step` values of k from this one, less the k that the base is at. */
static Fragment load_fragment(Simt *s, const Operand *x, int64_t k, int step)
{
    const DotOperand *plan = x->plan;
    int bytes = tt_byte_width(x->type), vector_k = 1 << plan->vector_k_bits, at = 0;
    int count = step / vector_k * x->count, elements = count << plan->vector_bits;
    Fragment f = {.words = TT_NEW_ARRAY(s->arena, LLVMValueRef, MOST_WORDS * count),
                  .elements = TT_NEW_ARRAY(s->arena, LLVMValueRef, elements),
                  .wide = TT_NEW_ARRAY(s->arena, LLVMValueRef, elements)};
    for (int64_t end = k + step; k < end; k += vector_k)
        for (int i = 0; i < x->count; i++) {
            uint64_t offset = tt_f2_apply(plan->k_offsets, (uint64_t)k) ^ x->numbers[i] << plan->vector_bits;
            LLVMValueRef address;
            int64_t immediate;
            simt_add_offset(s, &x->base_bits, 1, x->base, offset, bytes, &address, &immediate);
            f.access = simt_shared_access(address, immediate, bytes << plan->vector_bits);
            s->ops->load(s, &f.access, NULL, f.words + f.access.words * at++);
        }
    return f;
}

/* What the operand has for register `reg` of the result and the fragment's k-th k. */
static LLVMValueRef fragment_element(Simt *s, const Operand *x, const Fragment *f, int reg, int64_t k)
{
    const DotOperand *plan = x->plan;
    int count = 1 << plan->vector_bits,
        vector = (int)(k >> plan->vector_k_bits) * x->count + x->number_of[reg];
    uint64_t offset =
        tt_f2_apply(plan->load_offsets, (uint64_t)reg) ^ tt_f2_apply(plan->k_offsets, (uint64_t)k);
    int first = vector * count, at = first + (int)(offset & (uint64_t)(count - 1));
    if (!f->elements[first])
        simt_unpack(s, f->words + vector * f->access.words, &f->access, count, tt_byte_width(x->type),
                    simt_type(s, x->type), f->elements + first);
    if (!f->wide[at]) /* as late as possible: narrow ones take fewer registers */
        f->wide[at] = widened(s, f->elements[at], x->type, x->computed);
    return f->wide[at];
}

/* The sum of the columns that k selects, in bytes: of their low bits, or of the others. */
static LLVMValueRef distance_of(Simt *s, const Operand *x, LLVMValueRef k, int bits, uint64_t mask)
{
    uint64_t columns[32] = {0};
    for (int i = bits; i < x->plan->k_bits; i++)
        columns[i] = x->plan->k_offsets[i] & mask;
    LLVMValueRef offset = simt_apply_columns(s, k, columns, x->plan->k_bits, simt_i32(s, 0));
    return LLVMBuildMul(s->b, offset, simt_i32(s, tt_byte_width(x->type)), "");
}

/* The operand with its base moved on to a k that is known at run time and a multiple of 2^bits. Bits of k meet those of
 * other things only among the lowest, of the banks, where the buffer's place has none. */
static Operand operand_at(Simt *s, const Operand *x, LLVMValueRef k, int bits)
{
    enum { BANK_BYTES = 128 };
    Operand moved = *x;
    const DotOperand *plan = x->plan;
    uint64_t in_banks = (uint64_t)(BANK_BYTES / tt_byte_width(x->type) - 1);
    moved.base = LLVMBuildXor(s->b, x->base, distance_of(s, x, k, bits, in_banks), "");
    moved.base = LLVMBuildAdd(s->b, moved.base, distance_of(s, x, k, bits, ~in_banks), "");
    moved.base_bits |= any_of(plan->k_offsets + bits, plan->k_bits - bits);
    return moved;
}

/* ---- multiplying --------------------------------------------------------------------------------------------------------------------- */

static LLVMValueRef multiply_add(Simt *s, const Type *type, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c)
{
    if (tt_is_int(type))
        return LLVMBuildAdd(s->b, LLVMBuildMul(s->b, a, b, ""), c, "");
    return simt_intrinsic(s, "llvm.fma", (LLVMTypeRef[]){LLVMTypeOf(a)}, 1, (LLVMValueRef[]){a, b, c}, 3);
}

/* Row by row, and every other row from its end: neighbours share an operand, which the hardware then need not read from
 * the registers again. */
static void order_registers(Product *p)
{
    const uint64_t *rows = p->a.plan->load_offsets;
    int at = 0, *number = p->order = TT_NEW_ARRAY(p->s->arena, int, p->count);
    Map seen = {.arena = p->s->arena};
    for (int first = 0, count = 0; first < p->count; first++) {
        uint64_t row = tt_f2_apply(rows, (uint64_t)first);
        void **slot = tt_map_slot(&seen, &row, sizeof row);
        if (*slot)
            continue;
        *slot = number;
        bool backwards = count++ % 2;
        for (int i = 0; i < p->count; i++) {
            int r = backwards ? p->count - 1 - i : i;
            if (tt_f2_apply(rows, (uint64_t)r) == row)
                number[at++] = r;
        }
    }
}

static void multiply_fragments(Product *p, const Fragment *a, const Fragment *b)
{
    for (int64_t k = 0; k < p->step; k++)
        for (int i = 0; i < p->count; i++) {
            int r = p->order[i];
            LLVMValueRef x = fragment_element(p->s, &p->a, a, r, k),
                         y = fragment_element(p->s, &p->b, b, r, k);
            p->sums[r] = multiply_add(p->s, p->computed, x, y, p->sums[r]);
        }
}

/* The first `extent` k from where the operands are; what is needed for the next step is loaded before the one at hand. */
static void multiply_range(Product *p, const Operand *a, const Operand *b, int64_t extent)
{
    Simt *s = p->s;
    Fragment next_a = load_fragment(s, a, 0, p->step), next_b = load_fragment(s, b, 0, p->step);
    for (int64_t k = p->step; k < extent + p->step; k += p->step) {
        Fragment here_a = next_a, here_b = next_b;
        if (k < extent) {
            next_a = load_fragment(s, a, k, p->step);
            next_b = load_fragment(s, b, k, p->step);
        }
        multiply_fragments(p, &here_a, &here_b);
    }
}

/* for (k = 0; k < extent; k += chunk) multiply_range, with the sums carried */
static void multiply_in_loop(Product *p, int64_t extent, int64_t chunk)
{
    Simt *s = p->s;
    LLVMBasicBlockRef before = LLVMGetInsertBlock(s->b), body = simt_new_block(s, "k"),
                      after = simt_new_block(s, "");
    LLVMBuildBr(s->b, body);
    LLVMPositionBuilderAtEnd(s->b, body);
    LLVMValueRef k = LLVMBuildPhi(s->b, s->i32, ""), *phis = TT_NEW_ARRAY(s->arena, LLVMValueRef, p->count);
    for (int r = 0; r < p->count; r++) {
        phis[r] = LLVMBuildPhi(s->b, LLVMTypeOf(p->sums[r]), "");
        LLVMAddIncoming(phis[r], &p->sums[r], &before, 1);
        p->sums[r] = phis[r];
    }
    Operand a = operand_at(s, &p->a, k, tt_log2(chunk)), b = operand_at(s, &p->b, k, tt_log2(chunk));
    multiply_range(p, &a, &b, chunk);
    LLVMValueRef next = LLVMBuildAdd(s->b, k, simt_i32(s, chunk), "");
    LLVMAddIncoming(k, (LLVMValueRef[]){simt_i32(s, 0), next}, (LLVMBasicBlockRef[]){before, body}, 2);
    for (int r = 0; r < p->count; r++)
        LLVMAddIncoming(phis[r], &p->sums[r], &body, 1);
    LLVMBuildCondBr(s->b, LLVMBuildICmp(s->b, LLVMIntSLT, next, simt_i32(s, extent), ""), body, after);
    LLVMPositionBuilderAtEnd(s->b, after);
}

/* Beyond the extent of K the operands are zero, up to the next power of two. */
static void multiply(Product *p, int64_t extent)
{
    p->step = 1 << TT_MAX(p->a.plan->vector_k_bits, p->b.plan->vector_k_bits);
    int64_t chunk = TT_MIN(TT_MAX(1, BODY_SIZE / p->count), MOST_UNROLLED);
    chunk = TT_MAX(1ll << tt_log2(chunk), p->step);
    if (extent <= chunk || extent * p->count <= STRAIGHT_LINE)
        multiply_range(p, &p->a, &p->b, extent);
    else
        multiply_in_loop(p, extent, chunk);
}

/* Products of narrow floats are exact in f32, and sums of them are kept there whatever c is. */
static const Type *computed_type(Simt *s, const Type *type)
{
    type = tt_element(type);
    return tt_bit_width(type) < 32 ? tt_scalar_type(s->module, tt_is_int(type) ? TT_I32 : TT_F32) : type;
}

void simt_dot(Simt *s, const Op *op)
{
    const Value *result = op->results[0];
    const Type *type = tt_element(result->type), *computed = computed_type(s, type);
    const DotPlan *plan = tt_plan_dot(op);
    Product p = {.s = s,
                 .a = operand_of(s, op, 0, &plan->a, computed),
                 .b = operand_of(s, op, 1, &plan->b, computed),
                 .computed = computed,
                 .count = simt_registers(result)};
    const Tile *initial = simt_tile(s, tt_operand(op, 2));
    p.sums = TT_NEW_ARRAY(s->arena, LLVMValueRef, p.count);
    for (int r = 0; r < p.count; r++)
        p.sums[r] = widened(s, initial->at[r], type, computed);
    order_registers(&p);
    const Type *a = tt_operand(op, 0)->type;
    multiply(&p, a->shape[a->rank - 1]);
    Tile *tile = simt_new_tile(s, p.count);
    for (int r = 0; r < p.count; r++)
        tile->at[r] = tt_is_int(computed) ? LLVMBuildTrunc(s->b, p.sums[r], simt_type(s, type), "")
                                          : simt_cast_scalar(s, p.sums[r], computed, type);
    simt_set(s, result, tile);
}
