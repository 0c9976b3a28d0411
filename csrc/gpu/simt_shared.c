/* Values that move between threads: through scratch in shared memory, or by shuffles within a warp. */
#include "gpu/simt.h"

/* ---- scratch ----------------------------------------------------------------------------------------------------------------------- */

Access simt_shared_access(LLVMValueRef offset, int64_t constant, int bytes)
{
    Access access = {.space = SHARED_MEMORY, .address = offset, .offset = constant};
    simt_set_words(&access, bytes);
    return access;
}

void simt_shared_load_vector(Simt *s, LLVMValueRef offset, int64_t constant, int count, LLVMTypeRef type,
                             LLVMValueRef *elements)
{
    int bytes = simt_bytes(type);
    LLVMValueRef words[16];
    Access access = simt_shared_access(offset, constant, bytes * count);
    s->ops->load(s, &access, NULL, words);
    simt_unpack(s, words, &access, count, bytes, type, elements);
}

void simt_shared_store_vector(Simt *s, LLVMValueRef offset, int64_t constant, int count,
                              LLVMValueRef const *elements, LLVMValueRef predicate)
{
    int bytes = simt_bytes(LLVMTypeOf(elements[0]));
    LLVMValueRef words[16];
    Access access = simt_shared_access(offset, constant, bytes * count);
    access.predicate = predicate;
    simt_pack(s, elements, count, bytes, &access, words);
    s->ops->store(s, &access, words);
}

LLVMValueRef simt_shared_load(Simt *s, LLVMValueRef offset, int64_t constant, LLVMTypeRef type)
{
    LLVMValueRef element;
    simt_shared_load_vector(s, offset, constant, 1, type, &element);
    return element;
}

void simt_shared_store(Simt *s, LLVMValueRef offset, int64_t constant, LLVMValueRef value,
                       LLVMValueRef predicate)
{
    simt_shared_store_vector(s, offset, constant, 1, &value, predicate);
}

bool simt_has_next_sync(Simt *s) { return ++s->synchronisations != s->options->left_out; }

void simt_sync(Simt *s)
{
    if (!simt_has_next_sync(s))
        return;
    simt_leave_phase(s);
    if (tt_warps(s->options) == 1)
        s->ops->warp_sync(s);
    else
        s->ops->barrier(s);
    simt_enter_phase(s);
}

/* ---- shuffles ---------------------------------------------------------------------------------------------------------------------- */

/* A value of any type as i32 words, moved one by one. A constant is the same in every lane. */
static LLVMValueRef shuffle(Simt *s, LLVMValueRef value, int mask, LLVMValueRef lane)
{
    if (LLVMIsConstant(value))
        return value;
    LLVMTypeRef type = LLVMTypeOf(value);
    LLVMValueRef bits = simt_to_bits(s, value);
    LLVMTypeRef bits_type = LLVMTypeOf(bits);
    int width = (int)LLVMGetIntTypeWidth(bits_type), words = TT_MAX(1, width / 32);
    LLVMValueRef result = NULL;
    for (int i = 0; i < words; i++) {
        LLVMValueRef word = i ? LLVMBuildLShr(s->b, bits, simt_int(bits_type, 32 * i), "") : bits;
        word = LLVMBuildIntCast2(s->b, word, s->i32, 0, "");
        word = lane ? s->ops->shuffle_index(s, word, lane) : s->ops->shuffle_xor(s, word, mask);
        word = LLVMBuildIntCast2(s->b, word, bits_type, 0, "");
        if (i)
            word = LLVMBuildShl(s->b, word, simt_int(bits_type, 32 * i), "");
        result = result ? LLVMBuildOr(s->b, result, word, "") : word;
    }
    return simt_from_bits(s, result, type);
}

LLVMValueRef simt_shuffle_xor(Simt *s, LLVMValueRef value, int mask) { return shuffle(s, value, mask, NULL); }

LLVMValueRef simt_shuffle_index(Simt *s, LLVMValueRef value, LLVMValueRef lane)
{
    return shuffle(s, value, 0, lane);
}

/* registers[r] becomes registers[r ^ sum of columns[i] over the lane's bits i]. */
static void permute_by_lane(Simt *s, LLVMValueRef *registers, int count, const uint64_t *columns,
                            int lane_bits)
{
    LLVMValueRef *old = TT_NEW_ARRAY(s->arena, LLVMValueRef, count);
    for (int bit = 0; bit < lane_bits; bit++) {
        if (!columns[bit])
            continue;
        LLVMValueRef mask = LLVMBuildAnd(s->b, s->lane, simt_i32(s, 1ll << bit), "");
        LLVMValueRef moves = LLVMBuildICmp(s->b, LLVMIntNE, mask, simt_i32(s, 0), "");
        memcpy(old, registers, sizeof(LLVMValueRef) * (size_t)count);
        for (int r = 0; r < count; r++)
            registers[r] = LLVMBuildSelect(s->b, moves, old[r ^ (int)columns[bit]], old[r], "");
    }
}

/* The lane that a column map moves `lane` by, when that is one and the same exclusive or for all lanes; else -1. */
static int fixed_distance(const uint64_t *columns, int lane_bits, uint64_t constant)
{
    for (int i = 0; i < lane_bits; i++)
        if (columns[i] != 1ull << i)
            return -1;
    return (int)constant;
}

static LLVMValueRef read_lane(Simt *s, LLVMValueRef value, const ShufflePlan *plan, uint64_t source_round)
{
    int distance = fixed_distance(plan->source_lane, plan->lane_bits, source_round);
    if (distance == 0)
        return value;
    if (distance > 0)
        return simt_shuffle_xor(s, value, distance);
    LLVMValueRef lane = simt_thread_offset(s, plan->source_lane, plan->lane_bits, 0, 1);
    if (source_round)
        lane = LLVMBuildXor(s->b, lane, simt_i32(s, (int64_t)source_round), "");
    return simt_shuffle_index(s, value, lane);
}

static Tile *shuffle_registers(Simt *s, const Tile *tile, const ShufflePlan *plan)
{
    Tile *result = simt_new_tile(s, 1 << plan->rounds_bits);
    LLVMValueRef *published = TT_NEW_ARRAY(s->arena, LLVMValueRef, tile->count);
    memcpy(published, tile->at, sizeof(LLVMValueRef) * (size_t)tile->count);
    permute_by_lane(s, published, tile->count, plan->send_lane, plan->lane_bits);
    for (int t = 0; t < result->count; t++) {
        uint64_t source = tt_f2_apply(plan->source_round, (uint64_t)t);
        uint64_t send = tt_f2_apply(plan->send_round, (uint64_t)t);
        result->at[t] = read_lane(s, published[send], plan, source);
    }
    permute_by_lane(s, result->at, result->count, plan->keep_lane, plan->lane_bits);
    return result;
}

/* A bit of the numbers of registers, in which what is sent and what is received differ alike whatever the lane: two elements that
 * differ in it go in one word. */
typedef struct PackedBit {
    int from, to;
} PackedBit;

static bool find_packed_bit(const ShufflePlan *plan, PackedBit *bit)
{
    for (bit->to = 0; bit->to < plan->rounds_bits; bit->to++) {
        uint64_t send = plan->send_round[bit->to], others = 0, kept = 0;
        for (int i = 0; i < plan->rounds_bits; i++)
            others |= i == bit->to ? 0 : plan->send_round[i];
        for (int i = 0; i < plan->lane_bits; i++) {
            others |= plan->send_lane[i];
            kept |= plan->keep_lane[i];
        }
        bit->from = send ? __builtin_ctzll(send) : 0;
        if (send && send == 1ull << bit->from && !(others & send) && !(kept >> bit->to & 1) &&
            !plan->source_round[bit->to])
            return true;
    }
    return false;
}

static uint64_t without_bit(uint64_t number, int bit)
{
    uint64_t low = (1ull << bit) - 1;
    return (number & low) | (number >> 1 & ~low);
}

static ShufflePlan without_packed_bit(const ShufflePlan *plan, PackedBit bit)
{
    ShufflePlan rest = *plan;
    rest.rounds_bits = 0;
    for (int i = 0; i < plan->rounds_bits; i++) {
        if (i == bit.to)
            continue;
        rest.source_round[rest.rounds_bits] = plan->source_round[i];
        rest.send_round[rest.rounds_bits++] = without_bit(plan->send_round[i], bit.from);
    }
    for (int i = 0; i < plan->lane_bits; i++) {
        rest.send_lane[i] = without_bit(plan->send_lane[i], bit.from);
        rest.keep_lane[i] = without_bit(plan->keep_lane[i], bit.to);
    }
    return rest;
}

/* Narrow elements in pairs, and those in pairs, as far as they go in one word of 4 bytes. */
static Tile *convert_by_shuffles(Simt *s, const Tile *tile, const ShufflePlan *plan)
{
    LLVMTypeRef type = LLVMTypeOf(tile->at[0]);
    int bytes = simt_bytes(type);
    PackedBit bit;
    if (type == s->i1 || bytes > 2 || !find_packed_bit(plan, &bit))
        return shuffle_registers(s, tile, plan);
    ShufflePlan rest = without_packed_bit(plan, bit);
    Access pair = simt_register_access(2 * bytes);
    Tile *packed = simt_new_tile(s, tile->count / 2), *result = simt_new_tile(s, 1 << plan->rounds_bits);
    for (int r = 0; r < tile->count; r++)
        if (!(r >> bit.from & 1)) {
            LLVMValueRef both[] = {tile->at[r], tile->at[r | 1 << bit.from]};
            simt_pack(s, both, 2, bytes, &pair, &packed->at[without_bit((uint64_t)r, bit.from)]);
        }
    packed = convert_by_shuffles(s, packed, &rest);
    for (int t = 0; t < result->count; t++)
        if (!(t >> bit.to & 1)) {
            LLVMValueRef both[2];
            simt_unpack(s, &packed->at[without_bit((uint64_t)t, bit.to)], &pair, 2, bytes, type, both);
            result->at[t] = both[0];
            result->at[t | 1 << bit.to] = both[1];
        }
    return result;
}

/* ---- through shared memory --------------------------------------------------------------------------------------------------------- */

static SharedSide shared_side(Simt *s, const LinearLayout *layout, const SharedPlan *plan, bool stores,
                              int element_bytes)
{
    SharedSide side = {.layout = layout,
                       .offsets = stores ? plan->store_offsets : plan->load_offsets,
                       .registers = stores ? plan->store_registers : plan->load_registers,
                       .vector_bits = stores ? plan->store_bits : plan->load_bits,
                       .element_bytes = element_bytes};
    side.base = simt_thread_offset(s, side.offsets + layout->in_bits[LAYOUT_REGISTER],
                                   layout->in_bits[LAYOUT_LANE], layout->in_bits[LAYOUT_WARP], element_bytes);
    return side;
}

static void add_offset(Simt *s, const SharedSide *side, const uint64_t *columns, int count, LLVMValueRef base,
                       int reg, LLVMValueRef *address, int64_t *constant)
{
    uint64_t offset = tt_f2_apply(side->offsets, (uint64_t)reg);
    if (side->buffer)
        simt_add_offset_in(s, side->buffer, columns, count, base, offset, side->element_bytes, address,
                           constant);
    else
        simt_add_offset(s, columns, count, base, offset, side->element_bytes, address, constant);
}

/* Address of the vector that starts at register `first`, and the registers in it. */
static void vector_place(Simt *s, const SharedSide *side, int first, int64_t scratch, LLVMValueRef *address,
                         int64_t *constant, int *registers)
{
    const LinearLayout *layout = side->layout;
    add_offset(s, side, side->offsets + layout->in_bits[LAYOUT_REGISTER],
               layout->in_bits[LAYOUT_LANE] + layout->in_bits[LAYOUT_WARP], side->base, first, address,
               constant);
    *constant += scratch;
    for (int i = 0; i < 1 << side->vector_bits; i++) {
        registers[i] = first;
        for (int j = 0; j < side->vector_bits; j++)
            if (i >> j & 1)
                registers[i] ^= (int)side->registers[j];
    }
}

/* Does the register lie at the start of a vector? Each vector has one such register among those without copies. */
static bool starts_vector(const SharedSide *side, int reg)
{
    return !(tt_f2_apply(side->offsets, (uint64_t)reg) & ((1ull << side->vector_bits) - 1));
}

/* ---- 8 x 8 matrices ---------------------------------------------------------------------------------------------------------------- */

/* Rows of 16 bytes in memory, eight of which are a matrix, of which a lane has a word: two neighbours in a row, or the
 * same place in two rows, `transposed`. As ldmatrix and stmatrix move them, up to four at once, and as products have
 * operands and sums. */
typedef struct Matrices {
    bool transposed;
    int word_bits; /* log2 of the registers in a word */
    int bits;      /* log2 of the matrices at once: the registers' next bits */
    /* Offsets of each bit of a lane's number, lanes giving the places of rows, and of a warp's. */
    uint64_t rows[TT_LANE_BITS + 8];
    LLVMValueRef base;
} Matrices;

/* Do those bits of registers and lanes that number elements of a row do so, and all others move by whole rows? Copies,
 * which move by nothing, are read in other warps only. */
static bool are_rows(const SharedSide *side, bool transposed, int word_bits, bool stores)
{
    const LinearLayout *layout = side->layout;
    int registers = layout->in_bits[LAYOUT_REGISTER], row_bits = transposed ? 3 : word_bits + 2;
    uint64_t within = 0;
    for (int bit = 0; bit < row_bits; bit++) {
        int i = transposed ? registers + 2 + bit : bit < word_bits ? bit : registers + bit - word_bits;
        if (side->offsets[i] != 1ull << bit)
            return false;
        within |= 1ull << i;
    }
    for (int i = 0; i < tt_layout_in_total(layout); i++) {
        bool may_copy = !stores && i >= registers + TT_LANE_BITS;
        if (!(within >> i & 1) && (side->offsets[i] ? side->offsets[i] % (1ull << row_bits) : !may_copy))
            return false;
    }
    return true;
}

static bool plan_matrices(Simt *s, const SharedSide *side, bool stores, Matrices *m)
{
    const LinearLayout *layout = side->layout;
    int registers = layout->in_bits[LAYOUT_REGISTER], warps = layout->in_bits[LAYOUT_WARP];
    const uint64_t *lanes = side->offsets + registers;
    *m = (Matrices){.word_bits = tt_log2(4) - tt_log2(side->element_bytes)};
    m->bits = TT_MIN(registers - m->word_bits, 2);
    if (side->element_bytes > 4 || m->bits < 0 || !s->ops->tensor->load_matrices ||
        (stores && !s->ops->tensor->has_store_matrices(s)))
        return false;
    m->transposed = side->element_bytes == 2 && lanes[2] == 1;
    if (!are_rows(side, m->transposed, m->word_bits, stores))
        return false;
    for (int i = 0; i < 3; i++)
        m->rows[i] = !m->transposed ? lanes[2 + i] : i ? lanes[i - 1] : side->offsets[0];
    for (int i = 0; i < m->bits; i++)
        m->rows[3 + i] = side->offsets[m->word_bits + i];
    memcpy(m->rows + TT_LANE_BITS, lanes + TT_LANE_BITS, sizeof(uint64_t) * (size_t)warps);
    m->base = simt_thread_offset(s, m->rows, TT_LANE_BITS, warps, side->element_bytes);
    return true;
}

/* Where the lane's row is, of the matrices that begin with register `reg`. */
static LLVMValueRef matrix_place(Simt *s, const SharedSide *side, const Matrices *m, int reg,
                                 int64_t *constant)
{
    LLVMValueRef place;
    add_offset(s, side, m->rows, TT_LANE_BITS + side->layout->in_bits[LAYOUT_WARP], m->base, reg, &place,
               constant);
    return place;
}

static void store_matrices(Simt *s, const SharedSide *side, const Matrices *m, const Tile *tile,
                           int64_t scratch)
{
    Access word = simt_register_access(4);
    int count = 1 << m->bits, in_word = 1 << m->word_bits;
    for (int r = 0; r < tile->count; r += count * in_word) {
        LLVMValueRef words[4];
        int64_t constant;
        for (int i = 0; i < count; i++)
            simt_pack(s, tile->at + r + i * in_word, in_word, side->element_bytes, &word, &words[i]);
        LLVMValueRef place = matrix_place(s, side, m, r, &constant);
        s->ops->tensor->store_matrices(s, place, constant + scratch, count, m->transposed, words);
    }
}

static Tile *load_matrices(Simt *s, const SharedSide *side, const Matrices *m, LLVMTypeRef type,
                           int64_t scratch)
{
    Access word = simt_register_access(4);
    int count = 1 << m->bits, in_word = 1 << m->word_bits;
    Tile *tile = simt_new_tile(s, 1 << side->layout->in_bits[LAYOUT_REGISTER]);
    for (int r = 0; r < tile->count; r += count * in_word) {
        LLVMValueRef words[4];
        int64_t constant;
        bool wanted = false;
        for (int i = 0; i < count * in_word; i++) {
            wanted |= simt_is_in_part(side->layout, side->part, r + i);
            tile->at[r + i] = LLVMGetUndef(type);
        }
        if (!wanted)
            continue;
        LLVMValueRef place = matrix_place(s, side, m, r, &constant);
        s->ops->tensor->load_matrices(s, place, constant + scratch, count, m->transposed, words);
        for (int i = 0; i < count; i++)
            simt_unpack(s, &words[i], &word, in_word, side->element_bytes, type, tile->at + r + i * in_word);
    }
    return tile;
}

/* ---- either side ------------------------------------------------------------------------------------------------------------------- */

void simt_store_side(Simt *s, const SharedSide *side, const Tile *tile, int64_t scratch)
{
    Matrices matrices;
    if (plan_matrices(s, side, true, &matrices)) {
        store_matrices(s, side, &matrices, tile, scratch);
        return;
    }
    uint32_t warps = tt_layout_replication(side->layout, LAYOUT_WARP);
    LLVMValueRef predicate = NULL;
    if (warps) { /* copies in other lanes store the same in the same instruction */
        LLVMValueRef copy = LLVMBuildAnd(s->b, s->warp, simt_i32(s, (int64_t)warps), "");
        predicate = LLVMBuildICmp(s->b, LLVMIntEQ, copy, simt_i32(s, 0), "");
    }
    for (int r = 0; r < tile->count; r++) {
        LLVMValueRef elements[16], address;
        int registers[16];
        int64_t constant;
        if (simt_is_register_copy(side->layout, r) || !starts_vector(side, r))
            continue;
        vector_place(s, side, r, scratch, &address, &constant, registers);
        for (int i = 0; i < 1 << side->vector_bits; i++)
            elements[i] = tile->at[registers[i]];
        simt_shared_store_vector(s, address, constant, 1 << side->vector_bits, elements, predicate);
    }
}

/* Loads the vector that register `reg` is in, and sets the tile's registers. */
static void load_vector_of(Simt *s, const SharedSide *side, int reg, int64_t scratch, LLVMTypeRef type,
                           Tile *tile)
{
    int first = reg, registers[16], count = 1 << side->vector_bits;
    uint64_t low = tt_f2_apply(side->offsets, (uint64_t)reg) & (uint64_t)(count - 1);
    for (int j = 0; j < side->vector_bits; j++)
        if (low >> j & 1)
            first ^= (int)side->registers[j];
    LLVMValueRef address, elements[16];
    int64_t constant;
    vector_place(s, side, first, scratch, &address, &constant, registers);
    simt_shared_load_vector(s, address, constant, count, type, elements);
    for (int i = 0; i < count; i++)
        tile->at[registers[i]] = elements[i];
}

Tile *simt_load_side(Simt *s, const SharedSide *side, LLVMTypeRef type, int64_t scratch)
{
    Matrices matrices;
    if (plan_matrices(s, side, false, &matrices))
        return load_matrices(s, side, &matrices, type, scratch);
    Tile *tile = simt_new_tile(s, 1 << side->layout->in_bits[LAYOUT_REGISTER]);
    for (int r = 0; r < tile->count; r++)
        if (!tile->at[r] && simt_is_in_part(side->layout, side->part, r))
            load_vector_of(s, side, r, scratch, type, tile);
    for (int r = 0; r < tile->count; r++)
        if (!tile->at[r])
            tile->at[r] = LLVMGetUndef(type);
    return tile;
}

static Tile *convert_in_registers(Simt *s, const Tile *tile, const ConvertPlan *plan, int count)
{
    Tile *result = simt_new_tile(s, count);
    for (int r = 0; r < count; r++)
        result->at[r] = tile->at[tt_f2_apply(plan->register_source, (uint64_t)r)];
    return result;
}

static int with_bit(int number, int bit, int value)
{
    int below = (1 << bit) - 1;
    return (number & below) | value << bit | (number & ~below) << 1;
}

/* One half after the other crosses in the same place. */
static Tile *convert_in_halves(Simt *s, const Tile *tile, const Type *type, const LinearLayout *from,
                               const LinearLayout *to, int64_t scratch, int64_t room)
{
    int bit = tt_layout_halving_bit(from, to, tt_least_halving_bit(type)), from_bit, to_bit;
    LinearLayout from_half = tt_layout_half(from, bit, &from_bit), to_half = tt_layout_half(to, bit, &to_bit);
    Tile *half = simt_new_tile(s, 1 << from_half.in_bits[LAYOUT_REGISTER]);
    Tile *result = simt_new_tile(s, 1 << to->in_bits[LAYOUT_REGISTER]);
    for (int upper = 0; upper < 2; upper++) {
        for (int r = 0; r < 1 << from_half.in_bits[LAYOUT_REGISTER]; r++)
            half->at[r] = tile->at[with_bit(r, from_bit, upper)];
        if (upper)
            simt_sync(s);
        Tile *converted = simt_convert(s, half, type, &from_half, &to_half, scratch, room);
        for (int r = 0; r < 1 << to_half.in_bits[LAYOUT_REGISTER]; r++)
            result->at[with_bit(r, to_bit, upper)] = converted->at[r];
    }
    return result;
}

Tile *simt_convert(Simt *s, const Tile *tile, const Type *type, const LinearLayout *from,
                   const LinearLayout *to, int64_t scratch, int64_t room)
{
    int bytes = tt_byte_width(type);
    ConvertPlan plan = tt_layout_plan_conversion(from, to, bytes, s->ops->tensor->has_store_matrices(s));
    switch (plan.kind) {
    case CONVERT_NONE:
        return (Tile *)tile;
    case CONVERT_REGISTERS:
        return convert_in_registers(s, tile, &plan, 1 << to->in_bits[LAYOUT_REGISTER]);
    case CONVERT_SHUFFLE:
        return convert_by_shuffles(s, tile, &plan.shuffle);
    case CONVERT_SHARED:
        break;
    }
    if ((int64_t)bytes << tt_layout_out_total(from) > room)
        return convert_in_halves(s, tile, type, from, to, scratch, room);
    SharedSide stored = shared_side(s, from, &plan.shared, true, bytes);
    SharedSide loaded = shared_side(s, to, &plan.shared, false, bytes);
    simt_store_side(s, &stored, tile, scratch);
    simt_sync(s);
    return simt_load_side(s, &loaded, simt_type(s, type), scratch);
}
