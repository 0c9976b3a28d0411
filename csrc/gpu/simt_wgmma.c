/* Products on wgmma (PTX ISA, "Asynchronous warpgroup-level matrix multiply-accumulate"): a warpgroup multiplies 64 x K by
 * K x n, which lie in buffers whose rows are exchanged as the instruction knows it; a may come from registers. */
#include "gpu/simt.h"

enum {
    SPAN = 8,    /* rows of a pattern */
    AT_ONCE = 8, /* steps: with 16 of them the descriptors took registers that ptxas needed */
};

/* A matrix in a buffer, as its descriptor says it (PTX ISA, "Matrix descriptor"). */
typedef struct Matrix {
    const Value *value;
    const LinearLayout *layout; /* of fragments: what each warp has */
    uint64_t inverse[64];       /* place, in elements, of each bit of an element */
    uint64_t constant;          /* of the descriptor */
    const Tile *tile;           /* from registers */
    LLVMValueRef place;         /* of the warpgroup's part */
    bool is_transposed;
    int kept, bytes;
    int64_t raised; /* units, of tf32 from registers */
} Matrix;

static uint64_t encode(int64_t bytes) { return (uint64_t)(bytes >> 4) & 0x3fff; }

/* Which of the instruction's layouts the buffer has. `k`: its dimension K. */
static void describe(Matrix *m, int k)
{
    static const int modes[] = {128, 64, 32};
    const LinearLayout *memory = m->value->layout;
    for (int inner = 0; inner < 2; inner++)
        for (size_t i = 0; i < TT_COUNT(modes); i++) {
            int64_t shape[] = {1ll << memory->out_bits[1 - inner], 1ll << memory->out_bits[inner]};
            if (shape[1] * m->bytes < modes[i])
                continue;
            LinearLayout known = tt_layout_nvmma(shape, 2, m->bytes, modes[i]);
            if (!inner)
                known = tt_layout_permute(&known, (int[]){1, 0});
            if (!tt_layout_equal(&known, memory))
                continue;
            m->is_transposed = inner != k;
            int64_t panel = shape[0] * modes[i]; /* from one 128 bytes of a row to the next ones */
            m->constant = encode(m->is_transposed ? panel : 16) << 16 | encode(SPAN * modes[i]) << 32 |
                          (uint64_t)(i + 1) << 62;
            return;
        }
    tt_bug("a buffer of wgmma in none of its layouts");
}

LLVMValueRef simt_warpgroup(Simt *s)
{
    if (!s->warpgroup) {
        Place place = simt_go_to_entry(s);
        LLVMValueRef warp =
            s->options->num_warps > 4 ? s->ops->shuffle_index(s, s->warp, simt_i32(s, 0)) : simt_i32(s, 0);
        s->warpgroup = LLVMBuildLShr(s->b, warp, simt_i32(s, 2), "");
        simt_come_back(s, place);
    }
    return s->warpgroup;
}

static Matrix matrix_of(Simt *s, const Op *op, int index)
{
    Matrix m = {.value = tt_operand(op, index), .kept = index, .raised = tt_raised(op, index)};
    m.bytes = tt_byte_width(m.value->type);
    m.layout = tt_fragment_layout(s->module, op, index);
    if (tt_is_tile(m.value->type)) {
        m.tile = simt_without_padding(s, m.value);
        return m;
    }
    describe(&m, 1 - index);
    tt_layout_right_inverse(m.value->layout, m.inverse);
    uint64_t columns[8];
    int warps = m.layout->in_bits[LAYOUT_WARP],
        first = m.layout->in_bits[LAYOUT_REGISTER] + m.layout->in_bits[LAYOUT_LANE];
    for (int i = 2; i < warps; i++)
        columns[i - 2] = tt_f2_apply(m.inverse, m.layout->bases[first + i]) * (uint64_t)m.bytes;
    m.place = simt_scalar(s, m.value);
    LLVMValueRef own = simt_apply_columns(s, simt_warpgroup(s), columns, TT_MAX(0, warps - 2), NULL);
    if (own)
        m.place = LLVMBuildAdd(s->b, m.place, own, "");
    if (s->ops->tensor->shared_base)
        m.place = LLVMBuildAdd(s->b, m.place, s->ops->tensor->shared_base(s), "");
    return m;
}

/* Descriptor of what begins at these coordinates. */
static LLVMValueRef descriptor(Simt *s, const Matrix *m, int64_t kept, int64_t k)
{
    uint64_t element = (uint64_t)kept << tt_layout_axis_start(m->layout, m->kept) |
                       (uint64_t)k << tt_layout_axis_start(m->layout, 1 - m->kept);
    int64_t offset = (int64_t)tt_f2_apply(m->inverse, element) * m->bytes;
    LLVMValueRef start = LLVMBuildLShr(s->b, m->place, simt_i32(s, 4), "");
    LLVMValueRef wide = LLVMBuildZExt(s->b, start, s->i64, "");
    return LLVMBuildAdd(s->b, wide, simt_int(s->i64, (int64_t)(m->constant + (uint64_t)(offset >> 4))), "");
}

/* The four words of a in registers for these rows and this step of K. */
static void fragment(Simt *s, const Matrix *a, int64_t row, int64_t k, int64_t half, LLVMValueRef *words)
{
    int start = tt_layout_axis_start(a->layout, 0), count = 4 / a->bytes;
    for (int w = 0; w < 4; w++) {
        LLVMValueRef elements[4];
        uint64_t element = (uint64_t)(row + 8 * (w & 1)) << start | (uint64_t)(k + (w & 2 ? half : 0));
        int first = tt_register_of(a->layout, element);
        for (int i = 0; i < count; i++)
            elements[i] = a->tile->at[first | i];
        Access access = simt_register_access(4);
        simt_pack(s, elements, count, a->bytes, &access, &words[w]);
        words[w] = simt_raised(s, words[w], a->raised);
    }
}

typedef struct Product {
    Simt *s;
    Wgmma wgmma;
    Matrix a, b;
    int64_t first, step; /* of K */
    int steps, at_once;
    bool adds;
    const LinearLayout *layout;
    Tile *tile;
    LLVMValueRef *words; /* of all rows and steps, where they are made before; else NULL */
} Product;

/* The words of a, of all rows and steps in order: for a part of a product while the other part is under way, since ptxas puts
 * a fence behind words that are written after the first. */
static LLVMValueRef *make_words(Product *p, int64_t rows, int64_t rows_at_once)
{
    LLVMValueRef *words = TT_NEW_ARRAY(p->s->arena, LLVMValueRef, rows / rows_at_once * p->steps * 4),
                 *next = words;
    for (int64_t row = 0; row < rows; row += rows_at_once)
        for (int i = 0; i < p->steps; i++, next += 4)
            fragment(p->s, &p->a, row, p->first + i * p->step, p->step / 2, next);
    return words;
}

/* The products of 64 rows, whose sums (of fp16: pairs of them) the instruction takes in order: several steps at once, but for words in registers, which
 * are made while the steps before are under way (attention in tf32 lost 5 % where they came first). */
static void multiply_rows(Product *p, int64_t row)
{
    Simt *s = p->s;
    Wgmma *w = &p->wgmma;
    int pair_bits = w->sum == TT_F16, count = tt_wgmma_sums(w), start = tt_layout_axis_start(p->layout, 0);
    int *registers = TT_NEW_ARRAY(s->arena, int, count);
    w->sums = TT_NEW_ARRAY(s->arena, LLVMValueRef, count);
    for (int i = 0; i < count; i++) {
        int at = i << pair_bits;
        uint64_t column = (uint64_t)(at / 4 * 8 + at % 2);
        registers[i] =
            tt_register_of(p->layout, (uint64_t)(row + at / 2 % 2 * 8) << start | column) >> pair_bits;
        LLVMValueRef sum = p->tile->at[registers[i]];
        w->sums[i] = p->adds ? sum : LLVMGetUndef(LLVMTypeOf(sum));
    }
    for (int done = 0; done < p->steps; done += w->steps) {
        w->adds = done || p->adds;
        w->steps = TT_MIN(p->at_once, p->steps - done);
        for (int i = 0; i < w->steps; i++) {
            int64_t k = p->first + (done + i) * p->step;
            w->b_matrices[i] = descriptor(s, &p->b, 0, k);
            if (p->words)
                w->a_words = p->words, p->words += 4;
            else if (w->a_words)
                fragment(s, &p->a, row, k, p->step / 2, w->a_words);
            else
                w->a_matrices[i] = descriptor(s, &p->a, row, k);
        }
        s->ops->tensor->wgmma(s, w);
    }
    for (int i = 0; i < count; i++)
        p->tile->at[registers[i]] = w->sums[i];
}

/* Registers that the program wrote need one; sums of a product under way are the tensor core's still. */
static bool needs_fence(const Op *op)
{
    const Value *sums = tt_operand(op, 2);
    if (tt_def(sums, OP_wgmma_wait) && tt_int_attr(sums->op, ATTR_left, 0))
        sums = tt_operand(sums->op, 0);
    return tt_is_tile(tt_operand(op, 0)->type) || !tt_def(sums, OP_wgmma);
}

/* Does the program compute with the sums that the product adds to? */
static bool are_read(const Op *op)
{
    const Value *sums = tt_operand(op, 2);
    bool found = false;
    TT_FOR_USES(use, sums)
    {
        Opcode user = use->user->opcode;
        found |= user != OP_wgmma && user != OP_wgmma_wait && user != OP_yield;
    }
    return found && !tt_def(sums, OP_constant) && !tt_def(sums, OP_wgmma);
}

void simt_wgmma(Simt *s, const Op *op)
{
    const Value *a = tt_operand(op, 0), *b = tt_operand(op, 1), *result = op->results[0];
    const int64_t *warps = tt_find_attr(op, ATTR_warps)->ints;
    const Tile *initial = simt_to_words(s, result, simt_tile(s, tt_operand(op, 2)));
    Product p = {.s = s, .a = matrix_of(s, op, 0), .b = matrix_of(s, op, 1), .layout = result->layout};
    const Attr *part = tt_find_attr(op, ATTR_k);
    p.first = part ? part->ints[0] : 0;
    p.step = 32 / tt_byte_width(a->type);
    p.at_once = tt_is_tile(a->type) ? 1 : AT_ONCE;
    p.adds = !tt_is_zero(tt_operand(op, 2));
    p.steps = (int)(((part ? part->ints[1] : a->type->shape[1]) - p.first + p.step - 1) / p.step);
    p.wgmma = (Wgmma){.a = tt_element(a->type)->kind,
                      .b = tt_element(b->type)->kind,
                      .sum = tt_element(result->type)->kind,
                      .n = (int)((1ll << result->layout->out_bits[1]) / warps[1]),
                      .b_matrices = TT_NEW_ARRAY(s->arena, LLVMValueRef, AT_ONCE),
                      .a_is_transposed = p.a.is_transposed,
                      .b_is_transposed = p.b.is_transposed};
    if (tt_is_tile(a->type))
        p.wgmma.a_words = TT_NEW_ARRAY(s->arena, LLVMValueRef, 4);
    else
        p.wgmma.a_matrices = TT_NEW_ARRAY(s->arena, LLVMValueRef, AT_ONCE);
    p.tile = simt_new_tile(s, initial->count);
    memcpy(p.tile->at, initial->at, sizeof(LLVMValueRef) * (size_t)initial->count);
    int64_t rows = 1ll << result->layout->out_bits[0], rows_at_once = warps[0] * 16;
    if (part && p.a.raised)
        p.words = make_words(&p, rows, rows_at_once);
    if (are_read(op) && s->ops->tensor->wgmma_move)
        s->ops->tensor->wgmma_move(s, p.tile->at, p.tile->count);
    if (needs_fence(op) && simt_has_next_sync(s))
        s->ops->tensor->wgmma_begin(s);
    for (int64_t row = 0; row < rows; row += rows_at_once)
        multiply_rows(&p, row);
    if (!tt_find_attr(op, ATTR_open))
        s->ops->tensor->wgmma_commit(s);
    simt_set(s, result, simt_from_words(s, result, p.tile));
}

void simt_wgmma_wait(Simt *s, const Op *op)
{
    const Value *result = op->results[0];
    const Tile *before = simt_to_words(s, result, simt_tile(s, tt_operand(op, 0)));
    Tile *tile = simt_new_tile(s, before->count);
    memcpy(tile->at, before->at, sizeof(LLVMValueRef) * (size_t)tile->count);
    if (simt_has_next_sync(s))
        s->ops->tensor->wgmma_wait(s, (int)tt_int_attr(op, ATTR_left, 0), tile->at, tile->count);
    simt_set(s, result, simt_from_words(s, result, tile));
}
