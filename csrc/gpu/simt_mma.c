/* Products on mma.sync: each warp multiplies tiles of 16 x K by K x 8, whose operands come from registers or, a step of K
 * at a time, from buffers: as 8 x 8 matrices where the memory has them in rows, else word by word. What the next step
 * needs is loaded before the products of the one at hand. What K has less than a step is zeros. */
#include "gpu/simt.h"

typedef enum Way { FROM_REGISTERS, AS_MATRICES, AS_TRANSPOSED_MATRICES, AS_WORDS, AS_ELEMENTS } Way;

typedef struct Operand {
    const Value *value;
    const LinearLayout *layout; /* of its fragments */
    const Tile *tile;           /* FROM_REGISTERS */
    const Value *buffer;        /* else */
    uint64_t columns[64];       /* places in the buffer, in elements, of each bit of a place in `layout` */
    Way way;
    int kept, k;          /* its dimension that the sums have, and the other */
    int bytes, word_bits; /* of an element; log2 of the elements in a word */
    bool has_halves;      /* K has both halves of a step */
    int beyond;           /* bits of a lane's number with which it is beyond K */
    int64_t raised;       /* units, of tf32 */
} Operand;

/* ---- words -------------------------------------------------------------------------------------------------------------------------- */

static bool is_multiple(uint64_t column, int bits) { return !(column & ((1ull << bits) - 1)); }

/* Do all bits of a place but the five of the lanes and those in a word keep rows of 16 bytes whole? */
static bool keeps_rows(const Operand *x, int row_bits)
{
    int registers = x->layout->in_bits[LAYOUT_REGISTER], lanes = x->layout->in_bits[LAYOUT_LANE];
    for (int i = x->word_bits; i < tt_layout_in_total(x->layout); i++)
        if ((i < registers || i >= registers + lanes) && !is_multiple(x->columns[i], row_bits))
            return false;
    return true;
}

static Way choose_way(const Operand *x)
{
    const uint64_t *lanes = x->columns + x->layout->in_bits[LAYOUT_REGISTER];
    int row_bits = tt_log2(16 / x->bytes);
    bool in_words = true, in_rows, in_columns = x->bytes == 2;
    if (x->bytes == 8 || x->bytes << x->word_bits < 4)
        return AS_ELEMENTS;
    for (int i = 0; i < x->word_bits; i++)
        in_words &= x->columns[i] == 1ull << i;
    in_rows = in_words && keeps_rows(x, row_bits);
    for (int i = 0; i < 2; i++) {
        in_rows &= lanes[i] == 1ull << (x->word_bits + i);
        in_columns &= is_multiple(lanes[i], row_bits);
    }
    for (int i = 0; i < 3; i++) {
        in_rows &= is_multiple(lanes[2 + i], row_bits);
        in_columns &= lanes[2 + i] == 1ull << i;
    }
    in_rows = in_rows && !x->beyond;
    in_columns = in_columns && !x->beyond && is_multiple(x->columns[0], row_bits) && keeps_rows(x, row_bits);
    return in_rows ? AS_MATRICES : in_columns ? AS_TRANSPOSED_MATRICES : in_words ? AS_WORDS : AS_ELEMENTS;
}

/* Place of a register's element, with the lanes' part from `columns`: five bits of the lane, then the warp's. */
static void place_of(Simt *s, const Operand *x, const uint64_t *columns, int reg, LLVMValueRef *place,
                     int64_t *constant)
{
    int warps = x->layout->in_bits[LAYOUT_WARP];
    LLVMValueRef base = simt_thread_offset(s, columns, TT_LANE_BITS, warps, x->bytes);
    simt_add_offset_in(s, x->buffer, columns, TT_LANE_BITS + warps, base,
                       tt_f2_apply(x->columns, (uint64_t)reg), x->bytes, place, constant);
}

/* Words that begin at `reg`, and at what differs from it by `steps`: one, two or four. */
static void load_matrices(Simt *s, const Operand *x, int reg, const int steps[2], int count,
                          LLVMValueRef *words)
{
    int registers = x->layout->in_bits[LAYOUT_REGISTER], warps = x->layout->in_bits[LAYOUT_WARP];
    const uint64_t *lanes = x->columns + registers;
    bool transposed = x->way == AS_TRANSPOSED_MATRICES;
    uint64_t columns[TT_LANE_BITS + 8] = {0};
    for (int i = 0; i < 3; i++)
        columns[i] = !transposed ? lanes[2 + i] : i ? lanes[i - 1] : x->columns[0];
    for (int i = 0; i < tt_log2(count); i++)
        columns[3 + i] = tt_f2_apply(x->columns, (uint64_t)steps[i]);
    memcpy(columns + TT_LANE_BITS, lanes + TT_LANE_BITS, sizeof(uint64_t) * (size_t)warps);
    LLVMValueRef place;
    int64_t constant;
    place_of(s, x, columns, reg, &place, &constant);
    s->ops->tensor->load_matrices(s, place, constant, count, transposed, words);
}

/* Elements as one i32; an f64 is a word of its own. */
static LLVMValueRef pack(Simt *s, const Operand *x, LLVMValueRef const *elements)
{
    if (x->bytes == 8)
        return elements[0];
    LLVMValueRef all[4], word;
    int count = 4 / x->bytes;
    for (int i = 0; i < count; i++)
        all[i] = i >> x->word_bits ? LLVMConstNull(LLVMTypeOf(elements[0])) : elements[i];
    Access access = simt_register_access(4);
    simt_pack(s, all, count, x->bytes, &access, &word);
    return word;
}

static LLVMValueRef load_inside(Simt *s, const Operand *x, int reg)
{
    const uint64_t *lanes = x->columns + x->layout->in_bits[LAYOUT_REGISTER];
    LLVMValueRef elements[4], place;
    int64_t constant;
    int count = 1 << x->word_bits;
    for (int i = 0; i < count; i++) {
        if (x->way == FROM_REGISTERS) {
            elements[i] = x->tile->at[reg | i];
            continue;
        }
        place_of(s, x, lanes, reg | i, &place, &constant);
        if (x->way == AS_WORDS)
            return simt_shared_load(s, place, constant, s->i32);
        elements[i] = simt_shared_load(s, place, constant, simt_type(s, x->value->type));
    }
    return pack(s, x, elements);
}

/* Zero in lanes beyond K: both operands', for nothing is the product of zero and infinity. */
static LLVMValueRef load_word(Simt *s, const Operand *x, int reg)
{
    LLVMValueRef word = load_inside(s, x, reg);
    if (!x->beyond)
        return word;
    LLVMValueRef bits = LLVMBuildAnd(s->b, s->lane, simt_i32(s, x->beyond), "");
    LLVMValueRef inside = LLVMBuildICmp(s->b, LLVMIntEQ, bits, simt_i32(s, 0), "");
    return LLVMBuildSelect(s->b, inside, word, LLVMConstNull(LLVMTypeOf(word)), "");
}

static void load_words(Simt *s, const Operand *x, int reg, const int steps[2], int count, LLVMValueRef *words)
{
    bool as_matrices = x->way == AS_MATRICES || x->way == AS_TRANSPOSED_MATRICES;
    if (as_matrices)
        load_matrices(s, x, reg, steps, count, words);
    for (int i = 0; i < count; i++) {
        if (!as_matrices)
            words[i] = load_word(s, x, reg ^ (i & 1 ? steps[0] : 0) ^ (i & 2 ? steps[1] : 0));
        words[i] = simt_raised(s, words[i], x->raised);
    }
}

LLVMValueRef simt_raised(Simt *s, LLVMValueRef word, int64_t units)
{
    if (!units)
        return word;
    LLVMTypeRef real = LLVMFloatTypeInContext(s->context);
    LLVMValueRef upper = LLVMBuildAnd(s->b, word, simt_i32(s, TT_POWER_MASK), "");
    LLVMValueRef terms[] = {LLVMBuildBitCast(s->b, upper, real, ""), LLVMConstReal(real, tt_raised_by(units)),
                            LLVMBuildBitCast(s->b, word, real, "")};
    LLVMValueRef sum = simt_intrinsic(s, "llvm.fma", &real, 1, terms, 3);
    return LLVMBuildBitCast(s->b, sum, s->i32, "");
}

/* ---- operands ------------------------------------------------------------------------------------------------------------------------ */

static Operand operand_of(Simt *s, const Op *op, int index)
{
    const Value *value = tt_operand(op, index);
    int upper = value->type->rank - 2;
    Operand x = {.value = value,
                 .kept = upper + index,
                 .k = upper + 1 - index,
                 .bytes = tt_byte_width(value->type),
                 .raised = tt_raised(op, index)};
    x.layout = tt_fragment_layout(s->module, op, index);
    int word_bits = tt_log2(TT_MAX(1, 4 / x.bytes)), k_bits = x.layout->out_bits[x.k];
    x.word_bits = TT_MIN(word_bits, k_bits);
    x.has_halves = k_bits > word_bits + 2;
    for (int i = 0; i < 2; i++)
        x.beyond |= word_bits + i >= k_bits ? 1 << i : 0;
    if (tt_is_tile(value->type)) {
        x.tile = simt_without_padding(s, value);
        return x;
    }
    x.buffer = value;
    simt_memory_columns(x.layout, value->layout, x.columns);
    x.way = choose_way(&x);
    return x;
}

/* Register of the lane 0's element at these coordinates, which are 0 beyond the tile: copies. */
static int register_at(const Operand *x, int64_t batch, int64_t kept, int64_t k)
{
    const LinearLayout *layout = x->layout;
    uint64_t element = ((uint64_t)kept & ((1ull << layout->out_bits[x->kept]) - 1))
                       << tt_layout_axis_start(layout, x->kept);
    if (layout->rank > 2)
        element |= (uint64_t)batch << tt_layout_axis_start(layout, 0);
    return tt_register_of(layout, element | (uint64_t)k << tt_layout_axis_start(layout, x->k));
}

/* The bits of the sums' registers that number the instruction's tiles along `axis`; returns how many. */
static int tile_bits(const LinearLayout *layout, int axis, int within, int *bits)
{
    int count = 0, start = tt_layout_axis_start(layout, axis);
    for (int i = 0; i < layout->in_bits[LAYOUT_REGISTER]; i++)
        if (layout->bases[i] >> start >> within && layout->bases[i] < 1ull
                                                                          << (start + layout->out_bits[axis]))
            bits[count++] = i;
    return count;
}

typedef struct Tiles {
    int count, bits[16], bit_count;
    int axis;
    const LinearLayout *layout;
} Tiles;

static Tiles tiles_along(const LinearLayout *layout, int axis, int within)
{
    Tiles t = {.axis = axis, .layout = layout};
    t.bit_count = tile_bits(layout, axis, within, t.bits);
    t.count = 1 << t.bit_count;
    return t;
}

/* The registers of a tile begin at this one. */
static int tile_register(const Tiles *t, int tile)
{
    int reg = 0;
    for (int i = 0; i < t->bit_count; i++)
        reg |= tile >> i & 1 ? 1 << t->bits[i] : 0;
    return reg;
}

static int64_t tile_coordinate(const Tiles *t, int tile)
{
    int64_t coordinates[TT_MAX_RANK];
    tt_layout_coordinates(t->layout, tt_f2_apply(t->layout->bases, (uint64_t)tile_register(t, tile)),
                          coordinates);
    return coordinates[t->axis];
}

/* ---- the product ------------------------------------------------------------------------------------------------------------------------ */

typedef struct Product {
    Simt *s;
    Mma mma;
    Operand a, b;
    Tiles batches, rows, columns;
    int batch; /* at hand */
    int64_t k_step;
    LLVMValueRef *sums;
} Product;

/* What a step needs: four words for each tile of rows, two for each of columns. */
typedef struct Step {
    LLVMValueRef *a, *b;
} Step;

/* words[half of K][place along the kept dimension]; the second place is left out where it is negative. ldmatrix fills
 * registers in a row, and so are the instruction's: both places of the left operand, then the other half of K, but both
 * halves of one place of the right one. In another order ptxas copies every word. */
static void load_places(Product *p, const Operand *x, int64_t place, int64_t second, int64_t k,
                        LLVMValueRef words[2][2])
{
    int64_t batch = x->layout->rank > 2 ? tile_coordinate(&p->batches, p->batch) : 0;
    int first = register_at(x, batch, place, k), steps[2];
    bool two = second >= 0, places_first = x == &p->a;
    int place_bit = places_first ? 0 : x->has_halves, half_bit = places_first ? two : 0;
    LLVMValueRef loaded[4];
    if (two)
        steps[place_bit] = first ^ register_at(x, batch, second, k);
    if (x->has_halves)
        steps[half_bit] = first ^ register_at(x, batch, place, k + p->k_step / 2);
    load_words(p->s, x, first, steps, 1 << (two + x->has_halves), loaded);
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < 2; i++) {
            bool is_beyond = half && !x->has_halves;
            words[half][i] = is_beyond ? LLVMConstNull(LLVMTypeOf(loaded[0]))
                                       : loaded[half << half_bit | (two && i) << place_bit];
        }
}

static Step load_step(Product *p, int64_t k)
{
    Arena *arena = p->s->arena;
    Step step = {TT_NEW_ARRAY(arena, LLVMValueRef, 4 * p->rows.count),
                 TT_NEW_ARRAY(arena, LLVMValueRef, 2 * p->columns.count + 2)};
    LLVMValueRef words[2][2];
    bool tall = p->a.layout->out_bits[p->a.kept] > 3; /* less than 16 rows: the others are copies */
    for (int i = 0; i < p->rows.count; i++) {
        int64_t row = tile_coordinate(&p->rows, i);
        load_places(p, &p->a, row, tall ? row + 8 : -1, k, words);
        for (int w = 0; w < 4; w++)
            step.a[4 * i + w] = words[w >> 1][w & 1];
    }
    for (int j = 0; j < p->columns.count; j += 2) {
        bool two = j + 1 < p->columns.count;
        int64_t second = two ? tile_coordinate(&p->columns, j + 1) : -1;
        load_places(p, &p->b, tile_coordinate(&p->columns, j), second, k, words);
        for (int w = 0; w < 4; w++)
            step.b[2 * j + w] = words[w & 1][w >> 1];
    }
    return step;
}

/* Registers of the four sums of a tile: two columns of two rows, eight apart. In fp16 those of a row are one word. */
static void sum_registers(const Product *p, int row, int column, int registers[4])
{
    const LinearLayout *layout = p->rows.layout;
    int upper = layout->rank - 2;
    int first = tile_register(&p->batches, p->batch) | tile_register(&p->rows, row) |
                tile_register(&p->columns, column);
    int column_bit = layout->out_bits[upper + 1] > 0 ? tt_register_of(layout, 1) : 0;
    int row_bit =
        layout->out_bits[upper] > 3 ? tt_register_of(layout, 8ull << tt_layout_axis_start(layout, upper)) : 0;
    for (int i = 0; i < 4; i++)
        registers[i] = first | (i & 1 ? column_bit : 0) | (i & 2 ? row_bit : 0);
}

static void multiply_tile(Product *p, LLVMValueRef const *a, LLVMValueRef const *b, LLVMValueRef sums[4])
{
    Simt *s = p->s;
    bool in_pairs = p->mma.sum == TT_F16;
    LLVMValueRef words[2];
    Access word = simt_register_access(4);
    if (in_pairs)
        simt_pack(s, sums, 4, 2, &word, words);
    s->ops->tensor->mma(s, &p->mma, a, b, in_pairs ? words : sums);
    if (in_pairs)
        simt_unpack(s, words, &word, 4, 2, s->f16, sums);
}

static void multiply_step(Product *p, const Step *step)
{
    for (int j = 0; j < p->columns.count; j++)
        for (int i = 0; i < p->rows.count; i++) {
            int registers[4];
            LLVMValueRef sums[4];
            sum_registers(p, i, j, registers);
            for (int r = 0; r < 4; r++)
                sums[r] = p->sums[registers[r]];
            multiply_tile(p, step->a + 4 * i, step->b + 2 * j, sums);
            for (int r = 3; r >= 0; r--) /* of copies the first counts */
                p->sums[registers[r]] = sums[r];
        }
}

static void multiply_batch(Product *p, int64_t extent)
{
    Step next = load_step(p, 0);
    for (int64_t k = 0; k < extent; k += p->k_step) {
        Step here = next;
        if (k + p->k_step < extent)
            next = load_step(p, k + p->k_step);
        multiply_step(p, &here);
    }
}

void simt_mma(Simt *s, const Op *op)
{
    const Value *result = op->results[0], *a = tt_operand(op, 0);
    int upper = result->type->rank - 2;
    Product p = {.s = s, .a = operand_of(s, op, 0), .b = operand_of(s, op, 1)};
    p.mma = (Mma){tt_element(a->type)->kind, tt_element(tt_operand(op, 1)->type)->kind,
                  tt_element(result->type)->kind};
    p.batches = (Tiles){.count = 1, .layout = result->layout};
    if (upper)
        p.batches = tiles_along(result->layout, 0, 0);
    p.rows = tiles_along(result->layout, upper, 4);
    p.columns = tiles_along(result->layout, upper + 1, 3);
    p.k_step = p.a.bytes == 8 ? 8 : 32 / p.a.bytes;
    const Tile *initial = simt_tile(s, tt_operand(op, 2));
    Tile *tile = simt_new_tile(s, initial->count);
    memcpy(tile->at, initial->at, sizeof(LLVMValueRef) * (size_t)tile->count);
    p.sums = tile->at;
    for (p.batch = 0; p.batch < p.batches.count; p.batch++)
        multiply_batch(&p, a->type->shape[upper + 1]);
    simt_set(s, result, tile);
}
