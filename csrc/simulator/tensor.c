/* What a warp does together with tensor cores: ldmatrix, stmatrix and mma.sync. Lanes give their registers at a meeting;
 * the first that goes on works for all. */
#include "simulator/tensor.h"
#include "simulator/machine.h"

#include <math.h>

/* ---- elements and sums ----------------------------------------------------------------------------------------------------- */

int sim_element_bytes(SimElement element)
{
    static const int bytes[] = {
        [SIM_F16] = 2,  [SIM_BF16] = 2, [SIM_TF32] = 4, [SIM_I8] = 1,
        [SIM_E4M3] = 1, [SIM_E5M2] = 1, [SIM_F64] = 8,
    };
    return bytes[element];
}

/* K of an instruction is 32 bytes of elements, or eight of F64. */
static int depth_of(SimElement element) { return element == SIM_F64 ? 8 : 32 / sim_element_bytes(element); }

static double power_of_two(int exponent)
{
    uint64_t bits = (uint64_t)(exponent + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof power);
    return power;
}

/* As tt_float_decode, ten times as fast for numbers. */
static double decode_float(const FloatFormat *format, uint32_t bits)
{
    uint32_t top = (1u << format->exponent_bits) - 1, mantissa = bits & ((1u << format->mantissa_bits) - 1);
    uint32_t exponent = bits >> format->mantissa_bits & top;
    if (exponent == top)
        return tt_float_decode(format, bits);
    uint32_t units = mantissa | (uint32_t)(exponent != 0) << format->mantissa_bits;
    int scale = TT_MAX((int)exponent, 1) - format->bias - format->mantissa_bits;
    double magnitude = units * power_of_two(scale);
    return bits >> (format->bits - 1) ? -magnitude : magnitude;
}

double sim_decode(SimElement element, const void *place)
{
    static const FloatFormat *const formats[] = {
        [SIM_F16] = &tt_format_f16,
        [SIM_BF16] = &tt_format_bf16,
        [SIM_E4M3] = &tt_format_f8e4m3,
        [SIM_E5M2] = &tt_format_f8e5m2,
    };
    uint32_t bits = 0;
    float single;
    double value;
    memcpy(&bits, place, (size_t)TT_MIN(4, sim_element_bytes(element)));
    switch (element) {
    case SIM_F64:
        memcpy(&value, place, sizeof value);
        return value;
    case SIM_TF32: /* the low bits are not read */
        bits &= ~0x1fffu;
        memcpy(&single, &bits, sizeof single);
        return (double)single;
    case SIM_I8:
        return (int8_t)bits;
    default:
        return decode_float(formats[element], bits);
    }
}

static double sum_of_products(SimElement element, const SimRow *a, const SimRow *b)
{
    double products = 0;
    for (int k = 0, depth = depth_of(element); k < depth; k++)
        products += a->at[k] * b->at[k];
    return products;
}

/* Products are exact; their sum, in double, is rounded once. */
uint32_t sim_add_products(SimElement element, bool saturates, uint32_t sum, const SimRow *a, const SimRow *b)
{
    double products = sum_of_products(element, a, b);
    float total;
    if (element == SIM_I8) {
        int64_t exact = (int64_t)(int32_t)sum + (int64_t)products;
        return (uint32_t)(saturates ? TT_MAX(INT32_MIN, TT_MIN(INT32_MAX, exact)) : exact);
    }
    memcpy(&total, &sum, sizeof total);
    total = (float)((double)total + products);
    memcpy(&sum, &total, sizeof sum);
    return sum;
}

/* Once an instruction, too. */
uint32_t sim_add_to_halves(SimElement element, uint32_t sums, const SimRow *a, const SimRow *b)
{
    uint32_t result = 0;
    for (int i = 0; i < 2; i++) {
        double total =
            decode_float(&tt_format_f16, sums >> 16 * i & 0xffff) + sum_of_products(element, a, &b[i]);
        result |= (uint32_t)tt_float_encode(&tt_format_f16, total, false) << 16 * i;
    }
    return result;
}

/* ---- mma.sync -------------------------------------------------------------------------------------------------------------- */

void sim_put_register(SimElement element, int lane, int number, const void *word, SimRow *rows)
{
    int bytes = sim_element_bytes(element), each = TT_MAX(1, 4 / bytes);
    SimRow *row = &rows[lane / 4 + number % 2 * 8];
    for (int i = 0; i < each; i++)
        row->at[(number / 2 * 4 + lane % 4) * each + i] =
            sim_decode(element, (const char *)word + (size_t)(i * bytes));
}

static void gather(const SimThread *warp, SimElement a, SimElement b, SimRow *rows, SimRow *columns)
{
    for (int lane = 0; lane < SIM_WARP; lane++) {
        const SimMma *own = (const SimMma *)(uintptr_t)warp[lane].value;
        for (int i = 0; i < 4; i++)
            sim_put_register(a, lane, i, &own->a[i], rows);
        for (int i = 0; i < 2; i++)
            sim_put_register(b, lane, 2 * i, &own->b[i], columns);
    }
}

static void add_doubles(uint64_t *slot, const SimRow *a, const SimRow *b)
{
    double sum;
    memcpy(&sum, slot, sizeof sum);
    for (int k = 0; k < depth_of(SIM_F64); k++)
        sum = fma(a->at[k], b->at[k], sum);
    memcpy(slot, &sum, sizeof sum);
}

void tt_sim_mma(SimThread *self, int32_t a, int32_t b, int32_t in_halves, SimMma *mma, const SimSite *site)
{
    if (!sim_meet(self, SIM_WARP, mma, site))
        return;
    SimThread *warp = self - self->index % SIM_WARP;
    SimRow rows[16], columns[8];
    gather(warp, a, b, rows, columns);
    for (int lane = 0; lane < SIM_WARP; lane++)
        for (int i = 0; i < (in_halves ? 2 : 4); i++) {
            uint64_t *slot = &((SimMma *)(uintptr_t)warp[lane].value)->sums[i];
            int at = in_halves ? 2 * i : i;
            const SimRow *row = &rows[lane / 4 + at / 2 * 8], *column = &columns[lane % 4 * 2 + at % 2];
            if (in_halves)
                *slot = sim_add_to_halves(a, (uint32_t)*slot, row, column);
            else if (a == SIM_F64)
                add_doubles(slot, row, column);
            else
                *slot = sim_add_products(a, true, (uint32_t)*slot, row, column);
        }
}

/* ---- ldmatrix, stmatrix ---------------------------------------------------------------------------------------------------- */

enum { ROW_BYTES = 16 };

/* What a lane gives to either. */
typedef struct Matrices {
    uint32_t offset;
    uint32_t *words;
} Matrices;

static const Matrices *matrices_of(const SimThread *thread)
{
    return (const Matrices *)(uintptr_t)thread->value;
}

/* Notes that the warp reads or writes the row that a lane gave, and returns it. */
static char *row_at(SimThread *self, SimThread *lane, bool is_write, const SimSite *site)
{
    uint32_t offset = matrices_of(lane)->offset;
    if (offset % ROW_BYTES)
        sim_fail(self, FAILURE_ACCESS, site, "a matrix's row at byte %u, which is no multiple of 16", offset);
    OrderAccess access = sim_access_now(lane, is_write, site);
    access.reach = ORDER_WARP;
    sim_note_shared(self, offset, ROW_BYTES, &access);
    return self->shared + offset;
}

/* Where element (row, column) of a matrix is in the words of the lane that has it. */
static char *half_of(const SimThread *warp, int matrix, int row, int column, bool transposed)
{
    int lane = transposed ? column * 4 + row / 2 : row * 4 + column / 2;
    int part = transposed ? row % 2 : column % 2;
    return (char *)&matrices_of(&warp[lane])->words[matrix] + 2 * part;
}

static void move_row(const SimThread *warp, char *row, int number, bool transposed, bool is_write)
{
    for (int column = 0; column < 8; column++) {
        char *half = half_of(warp, number / 8, number % 8, column, transposed);
        if (is_write)
            memcpy(row + 2 * column, half, 2);
        else
            memcpy(half, row + 2 * column, 2);
    }
}

static void move_matrices(SimThread *self, Matrices own, int count, bool transposed, bool is_write,
                          const SimSite *site)
{
    if (!sim_meet(self, SIM_WARP, &own, site))
        return;
    SimThread *warp = self - self->index % SIM_WARP;
    for (int i = 0; i < 8 * count; i++)
        move_row(warp, row_at(self, &warp[i], is_write, site), i, transposed, is_write);
}

void tt_sim_load_matrices(SimThread *self, uint32_t offset, int32_t count, int32_t transposed,
                          uint32_t *words, const SimSite *site)
{
    move_matrices(self, (Matrices){offset, words}, count, transposed, false, site);
}

void tt_sim_store_matrices(SimThread *self, uint32_t offset, int32_t count, int32_t transposed,
                           const uint32_t *words, const SimSite *site)
{
    uint32_t own[4];
    memcpy(own, words, (size_t)count * sizeof *own);
    move_matrices(self, (Matrices){offset, own}, count, transposed, true, site);
}
