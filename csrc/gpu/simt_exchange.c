/* Where a thread holds partials of several elements, a warp's make vectors, and neighbouring lanes' vectors are
 * neighbours: no two lanes meet in a bank. Else the partials of all warps for an element are one vector. */
#include "gpu/simt_exchange.h"

enum { MOST_READ = 8 }; /* partials of an element; where there are more, lanes share the work */

/* ---- places ----------------------------------------------------------------------------------------------------------------------- */

/* As many as are 16 bytes of every operand. */
static int choose_vector(const WarpExchange *x)
{
    int widest = 1, bits = 0;
    for (int i = 0; i < x->combine->count; i++)
        widest = TT_MAX(widest, tt_byte_width(tt_operand(x->combine->op, i)->type));
    while (bits < x->index_bits && widest << (bits + 1) <= 16)
        bits++;
    return bits;
}

static void add_place(WarpExchange *x, uint64_t element)
{
    uint64_t ignored;
    if (!tt_f2_solve(x->places, x->place_bits, element, &ignored))
        x->places[x->place_bits++] = element;
}

static int thread_bits(const WarpExchange *x)
{
    return x->layout->in_bits[LAYOUT_LANE] + x->layout->in_bits[LAYOUT_WARP];
}

/* A vector's elements lie first, then those of lanes and warps, then other vectors'. */
static void choose_places(WarpExchange *x)
{
    for (int i = 0; i < x->vector_bits; i++)
        add_place(x, x->index_elements[i]);
    for (int i = 0; i < thread_bits(x); i++)
        add_place(x, x->thread_elements[i]);
    for (int i = x->vector_bits; i < x->index_bits; i++)
        add_place(x, x->index_elements[i]);
}

static uint64_t place_of(const WarpExchange *x, uint64_t element)
{
    uint64_t place, low = (1ull << x->warp_bit) - 1;
    bool known = tt_f2_solve(x->places, x->place_bits, element, &place);
    TT_ASSERT(known);
    return (place & ~low) * (uint64_t)x->warps | (place & low);
}

/* Enough of the lanes that hold the same partial to read one of the W each, or none. */
static uint32_t choose_readers(const WarpExchange *x)
{
    uint32_t readers = 0;
    if (!x->shares_reading || x->warps <= MOST_READ || 1 << __builtin_popcount(x->alike) < x->warps)
        return 0;
    for (int bit = 0; 1 << __builtin_popcount(readers) < x->warps; bit++)
        readers |= x->alike & 1u << bit;
    return readers;
}

void simt_plan_exchange(WarpExchange *x)
{
    x->vector_bits = choose_vector(x);
    choose_places(x);
    x->readers = choose_readers(x);
    x->warp_bit = x->readers || !x->vector_bits ? x->vector_bits : x->place_bits;
    for (int i = 0, reader = 0; i < thread_bits(x); i++) {
        x->read_columns[i] = place_of(x, x->thread_elements[i]);
        x->columns[i] = x->read_columns[i] | (uint64_t)x->warp_numbers[i] << x->warp_bit;
        if (i < x->layout->in_bits[LAYOUT_LANE] && x->readers >> i & 1)
            x->read_columns[i] |= 1ull << (x->warp_bit + reader++);
    }
}

bool simt_share_storing(WarpExchange *x, int lane_bit)
{
    if (x->index_bits == x->vector_bits)
        return false;
    x->columns[lane_bit] ^= place_of(x, x->index_elements[--x->index_bits]);
    x->alike &= ~(1u << lane_bit);
    return true;
}

int simt_partials_read(const WarpExchange *x) { return x->readers ? 1 : x->warps; }

/* ---- access ----------------------------------------------------------------------------------------------------------------------- */

/* Where a partial keeps what it has of an operand, or (the last) its flag. */
static LLVMValueRef *part(const WarpExchange *x, Partial *partial, int i)
{
    return i < x->combine->count ? &partial->at[i] : &partial->valid;
}

/* What a vector of partials has of an operand. Flags: those that have none hold. False when all are constants, which every
 * warp has alike (how many elements a partial is of, say): they need not be exchanged. */
static bool collect_parts(Simt *s, const WarpExchange *x, Partial *partials, int i, LLVMValueRef *elements)
{
    bool any = false;
    for (int j = 0; j < 1 << x->vector_bits; j++) {
        elements[j] = *part(x, &partials[j], i);
        if (!elements[j])
            elements[j] = simt_int(s->i1, 1);
        any |= !LLVMIsConstant(elements[j]);
    }
    return any;
}

static LLVMValueRef place(Simt *s, const WarpExchange *x, const uint64_t *columns, int index, int operand,
                          int bytes, int64_t *constant)
{
    int lanes = x->layout->in_bits[LAYOUT_LANE];
    LLVMValueRef place = simt_thread_offset(s, columns, lanes, thread_bits(x) - lanes, bytes);
    uint64_t element = tt_f2_apply(x->index_elements, (uint64_t)index);
    simt_add_offset(s, columns, thread_bits(x), place, place_of(x, element), bytes, &place, constant);
    *constant += x->scratch + (operand < x->combine->count ? x->offsets[operand] : x->valid_offset);
    return place;
}

/* One thread of those that hold the same partial stores it. */
static LLVMValueRef stores(Simt *s, const WarpExchange *x)
{
    uint32_t others = x->alike | x->alike_warps << TT_LANE_BITS;
    if (!others)
        return NULL;
    LLVMValueRef bits = LLVMBuildAnd(s->b, s->thread, simt_i32(s, (int64_t)others), "");
    return LLVMBuildICmp(s->b, LLVMIntEQ, bits, simt_i32(s, 0), "");
}

void simt_store_partials(Simt *s, const WarpExchange *x, Partial *partials)
{
    LLVMValueRef predicate = stores(s, x), elements[MOST_IN_VECTOR];
    int vector = 1 << x->vector_bits;
    for (int first = 0; first < 1 << x->index_bits; first += vector)
        for (int i = 0; i <= x->combine->count; i++) {
            if (!collect_parts(s, x, &partials[first], i, elements))
                continue;
            int64_t constant;
            int bytes = simt_bytes(LLVMTypeOf(elements[0]));
            LLVMValueRef at = place(s, x, x->columns, first, i, bytes, &constant);
            simt_shared_store_vector(s, at, constant, vector, elements, predicate);
        }
}

/* Neighbours, in vectors of up to 16 bytes. */
static void load_row(Simt *s, LLVMValueRef at, int64_t constant, int count, LLVMTypeRef type,
                     LLVMValueRef *out)
{
    int bytes = simt_bytes(type), vector = TT_MIN(TT_MAX(1, 16 / bytes), count);
    for (int i = 0; i < count; i += vector)
        simt_shared_load_vector(s, at, constant + (int64_t)i * bytes, vector, type, out + i);
}

void simt_load_partials(Simt *s, const WarpExchange *x, int first, int warp, int warps, Partial *own,
                        Partial rows[][MOST_WARPS])
{
    int vector = 1 << x->vector_bits;
    for (int j = 0; j < vector; j++)
        for (int w = 0; w < warps; w++)
            rows[j][warp + w] = own[first + j];
    for (int i = 0; i <= x->combine->count; i++) {
        LLVMValueRef loaded[MOST_IN_VECTOR * MOST_WARPS], elements[MOST_IN_VECTOR];
        if (!collect_parts(s, x, &own[first], i, elements))
            continue;
        LLVMTypeRef type = LLVMTypeOf(elements[0]);
        int64_t constant, bytes = simt_bytes(type);
        LLVMValueRef at = place(s, x, x->read_columns, first, i, (int)bytes, &constant);
        if (!x->vector_bits)
            load_row(s, at, constant + warp * bytes, warps, type, loaded);
        for (int w = 0; x->vector_bits && w < warps; w++)
            load_row(s, at, constant + ((int64_t)(warp + w) << x->warp_bit) * bytes, vector, type,
                     loaded + w * vector);
        for (int w = 0; w < warps; w++)
            for (int j = 0; j < vector; j++)
                if (*part(x, &own[first + j], i))
                    *part(x, &rows[j][warp + w], i) = loaded[w * vector + j];
    }
}
