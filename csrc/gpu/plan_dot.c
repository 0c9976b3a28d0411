/* Where a product by multiply-adds has its elements: the result in registers, the operands in buffers. Every thread reads
 * all of K for its rows of a and its columns of b, so an operand lies there K by K: neighbouring rows (columns) of one k
 * next to each other, to be read as vectors. Lanes read neighbouring vectors of one k: no bank conflict. Lanes that store
 * different k would all hit one bank; so, for what comes along K, bits of k are added (exclusive or) to the number of the
 * vector within the 128 bytes of the banks. Readers do not notice: all lanes read the same k. */
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

typedef struct Factor {
    const LinearLayout *result;
    LinearLayout shape; /* of the operand: its extents alone */
    int kept, k;        /* its dimension that the result has, and the other */
    int element_bytes;
} Factor;

static Factor factor_of(const Type *type, int operand, const LinearLayout *result)
{
    int last = type->rank - 1;
    return (Factor){.result = result,
                    .shape = tt_padded_layout(type),
                    .kept = operand ? last : last - 1,
                    .k = operand ? last - 1 : last,
                    .element_bytes = tt_byte_width(type)};
}

/* The row (column) and batch of a result's element, as an element of the operand. */
static uint64_t image(const Factor *x, uint64_t result_element)
{
    int64_t coordinates[TT_MAX_RANK];
    tt_layout_coordinates(x->result, result_element, coordinates);
    uint64_t element = (uint64_t)coordinates[x->kept] << tt_layout_axis_start(&x->shape, x->kept);
    if (x->shape.rank == 3)
        element |= (uint64_t)coordinates[0] << tt_layout_axis_start(&x->shape, 0);
    return element;
}

/* Do threads hold both values of this bit of the operand's elements in registers, and are they told apart by nothing else? */
static bool is_in_registers(const Factor *x, uint64_t bit)
{
    bool found = false;
    for (int i = 0; i < tt_layout_in_total(x->result); i++) {
        uint64_t element = image(x, x->result->bases[i]);
        bool alone = i < x->result->in_bits[LAYOUT_REGISTER] && element == bit && !found;
        if (element & bit && !alone)
            return false;
        found |= alone;
    }
    return found;
}

/* ---- its buffer ---------------------------------------------------------------------------------------------------------------------- */

typedef struct Placement {
    LinearLayout layout; /* of the buffer, in the making */
    uint64_t placed;     /* bits of an element that have a place in it */
} Placement;

static void place(Placement *p, int bit)
{
    if (!(p->placed >> bit & 1))
        p->layout.bases[p->layout.in_bits[LAYOUT_REGISTER]++] = 1ull << bit;
    p->placed |= 1ull << bit;
}

/* The vectors that threads load: neighbours along the kept dimension, then along K. */
static void place_vector(Placement *p, const Factor *x)
{
    int widest = TT_MAX(0, tt_log2(VECTOR_BYTES) - tt_log2(x->element_bytes));
    int kept = tt_layout_axis_start(&x->shape, x->kept), k = tt_layout_axis_start(&x->shape, x->k);
    const int *placed = &p->layout.in_bits[LAYOUT_REGISTER];
    for (int i = 0; i < x->shape.out_bits[x->kept] && *placed < widest; i++) {
        if (!is_in_registers(x, 1ull << (kept + i)))
            break;
        place(p, kept + i);
    }
    for (int i = 0; i < x->shape.out_bits[x->k] && *placed < widest; i++)
        place(p, k + i);
}

/* Behind the vectors: the lanes that read together, what is left of one k, K, and the batch. */
static void place_rest(Placement *p, const Factor *x)
{
    const LinearLayout *result = x->result;
    for (int i = 0; i < result->in_bits[LAYOUT_LANE]; i++) {
        uint64_t lane = image(x, result->bases[result->in_bits[LAYOUT_REGISTER] + i]);
        if (lane)
            place(p, __builtin_ctzll(lane));
    }
    const int axes[] = {x->kept, x->k, 0};
    for (size_t i = 0; i < TT_COUNT(axes); i++)
        for (int bit = 0; bit < x->shape.out_bits[axes[i]]; bit++)
            place(p, tt_layout_axis_start(&x->shape, axes[i]) + bit);
}

/* Threads that store the same rows differ in the bits of k from `first` on; others have the rows next to them, which the
 * lowest bits of the number tell apart: so those of k take the highest. */
static void spread_stores(Placement *p, const Factor *x, int first, int vector_bits)
{
    LinearLayout *layout = &p->layout;
    int to = tt_log2(BANK_BYTES) - tt_log2(x->element_bytes), k = tt_layout_axis_start(&x->shape, x->k);
    for (int bit = first; bit < x->shape.out_bits[x->k] && --to >= vector_bits; bit++)
        for (int at = to + 1; at < layout->in_bits[LAYOUT_REGISTER]; at++)
            if (layout->bases[at] == 1ull << (k + bit))
                layout->bases[at] ^= layout->bases[to];
}

const LinearLayout *tt_factor_layout(Module *module, const Op *dot, int operand, int spread, int num_warps)
{
    const Type *type = tt_operand(dot, operand)->type;
    const LinearLayout *result = tt_dot_layout(module, dot->results[0]->type, num_warps);
    Factor x = factor_of(type, operand, result);
    Placement p = {.layout = x.shape};
    place_vector(&p, &x);
    int vector_bits = p.layout.in_bits[LAYOUT_REGISTER];
    place_rest(&p, &x);
    if (spread >= 0)
        spread_stores(&p, &x, spread, vector_bits);
    return tt_intern_layout(module, &p.layout);
}

/* ---- how it is read -------------------------------------------------------------------------------------------------------------------- */

static DotOperand plan_operand(const Op *op, int index)
{
    const Value *buffer = tt_operand(op, index);
    Factor x = factor_of(buffer->type, index, op->results[0]->layout);
    DotOperand plan = {.k_bits = x.shape.out_bits[x.k]};
    uint64_t offsets[64];
    int k = tt_layout_axis_start(&x.shape, x.k), total = buffer->layout->in_bits[LAYOUT_REGISTER];
    tt_layout_right_inverse(buffer->layout, offsets);
    while (plan.vector_bits < total && x.element_bytes << plan.vector_bits < VECTOR_BYTES) {
        uint64_t bit = buffer->layout->bases[plan.vector_bits];
        bool of_k = plan.vector_k_bits < plan.k_bits && bit == 1ull << (k + plan.vector_k_bits);
        if (!of_k && (plan.vector_k_bits || !is_in_registers(&x, bit)))
            break;
        plan.vector_k_bits += of_k;
        plan.vector_bits++;
    }
    for (int i = 0; i < tt_layout_in_total(x.result); i++)
        plan.load_offsets[i] = tt_f2_apply(offsets, image(&x, x.result->bases[i]));
    memcpy(plan.k_offsets, offsets + k, sizeof(uint64_t) * (size_t)plan.k_bits);
    return plan;
}

const DotPlan *tt_plan_dot(const Op *op)
{
    void **slot = tt_plan_slot(op);
    if (!*slot) {
        DotPlan plan = {plan_operand(op, 0), plan_operand(op, 1)};
        *slot = tt_arena_copy(tt_plans_arena(op), &plan, sizeof plan);
    }
    return *slot;
}
