/* Where a dot has its elements: the result in registers, the operands in shared memory. Every thread reads all of K for
 * its rows of a and its columns of b, so an operand lies there K by K: neighbouring rows (columns) of one k next to each
 * other, to be read as vectors. Lanes read neighbouring vectors of one k: no bank conflict. Lanes that store different k
 * would all hit one bank; so bits of k are added (exclusive or) to the number of the vector within the 128 bytes of the
 * banks. Readers do not notice: all lanes read the same k. */
#include "gpu/plans.h"

enum { BANK_BYTES = 128, VECTOR_BYTES = 16 };

/* ---- the result ---------------------------------------------------------------------------------------------------------------------- */

/* Lanes 0 and 1 in two rows, then all columns: neighbouring lanes read the same vector of b, and those two further the
 * same vector of a, which is what lets one access of shared memory serve half a warp. */
static void interleave_lanes(LinearLayout *layout, int column_bits, int row_bits)
{
    uint64_t *lanes = layout->bases + layout->in_bits[LAYOUT_REGISTER], row = lanes[column_bits];
    if (!row_bits)
        return;
    memmove(lanes + 1, lanes, sizeof(uint64_t) * (size_t)column_bits);
    lanes[0] = row;
}

/* Square blocks of registers, so that each operand element is used often. */
const LinearLayout *tt_dot_layout(Module *module, const Type *type, int num_warps)
{
    int64_t shape[TT_MAX_RANK], size[TT_MAX_RANK], lanes[TT_MAX_RANK], warps[TT_MAX_RANK];
    int rank = type->rank, m = rank - 2, n = rank - 1, order[TT_MAX_RANK];
    for (int i = 0; i < rank; i++) {
        shape[i] = tt_next_pow2(type->shape[i]);
        size[i] = lanes[i] = warps[i] = 1;
        order[i] = rank - 1 - i;
    }
    int64_t each = TT_MAX(1, shape[m] * shape[n] / (TT_LANES * num_warps));
    size[n] = TT_MIN(TT_MIN(4, each), shape[n]);
    size[m] = TT_MIN(TT_MIN(4, each / size[n]), shape[m]);
    lanes[n] = TT_MIN(8, shape[n] / size[n]);
    lanes[m] = TT_MIN(TT_LANES / lanes[n], shape[m] / size[m]);
    lanes[n] *= TT_LANES / (lanes[n] * lanes[m]);
    int64_t warps_left = num_warps;
    while (warps_left > 1) { /* to the dimension with more blocks left */
        int64_t m_left = shape[m] / (size[m] * lanes[m] * warps[m]),
                n_left = shape[n] / (size[n] * lanes[n] * warps[n]);
        int axis = rank == 3 && m_left <= 1 && n_left <= 1 ? 0 : m_left >= n_left ? m : n;
        warps[axis] *= 2;
        warps_left /= 2;
    }
    LinearLayout layout = tt_layout_blocked(shape, rank, size, lanes, warps, order);
    interleave_lanes(&layout, tt_log2(lanes[n]), tt_log2(lanes[m]));
    return tt_intern_layout(module, &layout);
}

/* ---- an operand ---------------------------------------------------------------------------------------------------------------------- */

typedef struct Staging {
    const LinearLayout *from, *result;
    LinearLayout shape; /* of the operand: its extents alone */
    int kept, k;        /* its dimension that the result has, and the other */
    int element_bytes;
    uint64_t offsets[64]; /* in shared memory, in elements, of each bit of an element */
    uint64_t placed;      /* bits of an element that have one */
    int count;            /* how many */
    DotOperand *plan;
} Staging;

/* The row (column) and batch of a result's element, as an element of the operand. */
static uint64_t image(const Staging *x, uint64_t result_element)
{
    int64_t coordinates[TT_MAX_RANK];
    tt_layout_coordinates(x->result, result_element, coordinates);
    uint64_t element = (uint64_t)coordinates[x->kept] << tt_layout_axis_start(&x->shape, x->kept);
    if (x->shape.rank == 3)
        element |= (uint64_t)coordinates[0] << tt_layout_axis_start(&x->shape, 0);
    return element;
}

static void place(Staging *x, int bit)
{
    if (!(x->placed >> bit & 1))
        x->offsets[bit] = 1ull << x->count++;
    x->placed |= 1ull << bit;
}

/* Is this bit of an element a register's in every thread, and nothing else? Sets its register. */
static bool is_in_register(const uint64_t *bases, int total, int registers, int bit, uint32_t *reg)
{
    *reg = 0;
    for (int i = 0; i < total; i++) {
        bool alone = i < registers && bases[i] == 1ull << bit;
        if (bases[i] >> bit & 1 && (!alone || *reg))
            return false;
        *reg |= alone ? 1u << i : 0;
    }
    return *reg != 0;
}

/* Chooses the bits of the vectors that threads load: neighbours along the kept dimension, then along K; those that also
 * the storing threads have in registers first, for they store them as one. */
static void place_vector(Staging *x)
{
    int candidates[8], count = 0, widest = TT_MAX(0, tt_log2(VECTOR_BYTES) - tt_log2(x->element_bytes));
    int kept_start = tt_layout_axis_start(&x->shape, x->kept),
        k_start = tt_layout_axis_start(&x->shape, x->k);
    uint64_t images[64];
    uint32_t reg;
    int total = tt_layout_in_total(x->result), registers = x->result->in_bits[LAYOUT_REGISTER];
    for (int i = 0; i < total; i++)
        images[i] = image(x, x->result->bases[i]);
    for (int bit = 0; bit < x->shape.out_bits[x->kept] && count < widest; bit++) {
        if (!is_in_register(images, total, registers, kept_start + bit, &reg))
            break;
        candidates[count++] = kept_start + bit;
    }
    for (int bit = 0; bit < x->shape.out_bits[x->k] && count < widest; bit++, x->plan->vector_k_bits++)
        candidates[count++] = k_start + bit;
    x->plan->vector_bits = count;
    for (int i = 0; i < count; i++)
        if (is_in_register(x->from->bases, tt_layout_in_total(x->from), x->from->in_bits[LAYOUT_REGISTER],
                           candidates[i], &reg)) {
            place(x, candidates[i]);
            x->plan->store_registers[x->plan->store_bits++] = reg;
        }
    for (int i = 0; i < count; i++)
        place(x, candidates[i]);
}

/* Behind the vectors: the lanes that read together, what is left of one k, K, and the batch. */
static void place_rest(Staging *x)
{
    const LinearLayout *result = x->result;
    for (int i = 0; i < result->in_bits[LAYOUT_LANE]; i++) {
        uint64_t lane = image(x, result->bases[result->in_bits[LAYOUT_REGISTER] + i]);
        if (lane)
            place(x, __builtin_ctzll(lane));
    }
    const int axes[] = {x->kept, x->k, 0};
    for (size_t i = 0; i < TT_COUNT(axes); i++)
        for (int bit = 0; bit < x->shape.out_bits[axes[i]]; bit++)
            place(x, tt_layout_axis_start(&x->shape, axes[i]) + bit);
}

/* Part of an offset that tells which bank it is in. */
static uint64_t bank(const Staging *x, uint64_t element)
{
    uint64_t in_banks = BANK_BYTES / (uint64_t)x->element_bytes - 1;
    return (tt_f2_apply(x->offsets, element) & in_banks) >> x->plan->store_bits;
}

/* Adds to the offset of one of the bits of k in `element` such that its bank is none of those that `banks` span. */
static bool turn(Staging *x, uint64_t element, uint64_t *banks, int count)
{
    int start = tt_layout_axis_start(&x->shape, x->k), end = start + x->shape.out_bits[x->k];
    for (int bit = start + x->plan->vector_k_bits; bit < end; bit++)
        for (int to = x->plan->vector_bits; element >> bit & 1 && 1ull << to < x->offsets[bit]; to++) {
            uint64_t old = x->offsets[bit];
            x->offsets[bit] |= 1ull << to;
            banks[count] = bank(x, element);
            if (tt_f2_rank(banks, count + 1) > count)
                return true;
            x->offsets[bit] = old;
        }
    return false;
}

/* The lanes whose stores one wavefront can serve go to different banks, as far as bits of k tell them apart. */
static void spread_stores(Staging *x)
{
    int store_bytes = x->element_bytes << x->plan->store_bits, count = 0;
    int served = TT_MIN(TT_LANE_BITS, tt_log2(BANK_BYTES) - tt_log2(store_bytes));
    uint64_t banks[TT_LANE_BITS + 1];
    for (int i = 0; i < served; i++) {
        uint64_t element = x->from->bases[x->from->in_bits[LAYOUT_REGISTER] + i];
        banks[count] = bank(x, element);
        count += tt_f2_rank(banks, count + 1) > count || turn(x, element, banks, count);
    }
}

static void plan_operand(const Op *op, int index, DotPlan *dot)
{
    const Value *operand = tt_operand(op, index);
    int rank = operand->type->rank;
    DotOperand *plan = index ? &dot->b : &dot->a;
    Staging x = {.from = operand->layout,
                 .result = op->results[0]->layout,
                 .shape = tt_padded_layout(operand->type),
                 .kept = index ? rank - 1 : rank - 2,
                 .k = index ? rank - 2 : rank - 1,
                 .element_bytes = tt_byte_width(operand->type),
                 .plan = plan};
    place_vector(&x);
    place_rest(&x);
    spread_stores(&x);
    for (int i = 0; i < tt_layout_in_total(x.from); i++)
        plan->store_offsets[i] = tt_f2_apply(x.offsets, x.from->bases[i]);
    for (int i = 0; i < tt_layout_in_total(x.result); i++)
        plan->load_offsets[i] = tt_f2_apply(x.offsets, image(&x, x.result->bases[i]));
    plan->k_bits = x.shape.out_bits[x.k];
    memcpy(plan->k_offsets, x.offsets + tt_layout_axis_start(&x.shape, x.k),
           sizeof(uint64_t) * (size_t)plan->k_bits);
    plan->place = dot->bytes;
    dot->bytes += (((int64_t)x.element_bytes << x.count) + VECTOR_BYTES - 1) / VECTOR_BYTES * VECTOR_BYTES;
}

DotPlan tt_plan_dot(const Op *op)
{
    DotPlan plan = {0};
    plan_operand(op, 0, &plan);
    plan_operand(op, 1, &plan);
    return plan;
}
