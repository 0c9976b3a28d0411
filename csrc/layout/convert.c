/* How values move from one layout to another: not at all, between registers, by shuffles, or through shared memory
 * with a layout chosen so that neither the store nor the load has a bank conflict. */
#include "layout/layout.h"

/* ---- where each destination place finds its element -------------------------------------------------------------------- */

/* Solves from(x) = element with the inputs of `pinned` (a mask of source place bits) forced to those of `want`. */
static bool solve_pinned(const LinearLayout *from, uint64_t element, uint64_t pinned, uint64_t want,
                         uint64_t *x)
{
    int total = tt_layout_in_total(from);
    uint64_t free_columns[64], free_inputs[64], solution;
    int count = 0;
    for (int i = 0; i < total; i++)
        if (!(pinned >> i & 1)) {
            free_columns[count] = from->bases[i];
            free_inputs[count++] = 1ull << i;
        }
    element ^= tt_f2_apply(from->bases, want & pinned);
    if (!tt_f2_solve(free_columns, count, element, &solution))
        return false;
    *x = (want & pinned) ^ tt_f2_apply(free_inputs, solution);
    return true;
}

static uint64_t input_mask(const LinearLayout *layout, LayoutInput input)
{
    return ((1ull << layout->in_bits[input]) - 1) << tt_layout_in_start(layout, input);
}

/* columns[i]: the source place for destination place bit i, with lane (when keep_lane) and warp kept where they are.
 * Place bits of both sides must agree in number for what is kept. False when that cannot be. */
static bool match_places(const LinearLayout *from, const LinearLayout *to, bool keep_lane, uint64_t *columns)
{
    uint64_t pinned = input_mask(from, LAYOUT_WARP) | input_mask(from, LAYOUT_BLOCK);
    if (keep_lane)
        pinned |= input_mask(from, LAYOUT_LANE);
    int at = 0;
    for (int input = 0; input < LAYOUT_INPUTS; input++)
        for (int bit = 0; bit < to->in_bits[input]; bit++, at++) {
            uint64_t want = input == LAYOUT_REGISTER ? 0 : 1ull << (tt_layout_in_start(from, input) + bit);
            if (!solve_pinned(from, to->bases[at], pinned, want & pinned, &columns[at]))
                return false;
        }
    return true;
}

/* ---- shuffles ------------------------------------------------------------------------------------------------------------ */

/* In one round every lane may read one register of one lane, and the published register must not depend on who reads.
 * So each destination lane l takes its register t ^ keep(l) in round t, with keep chosen such that lanes that read the
 * same lane read the same register. `places` are match_places' columns. */
static bool plan_shuffles(const LinearLayout *from, const LinearLayout *to, const uint64_t *places,
                          ShufflePlan *plan)
{
    int from_registers = from->in_bits[LAYOUT_REGISTER], lanes = to->in_bits[LAYOUT_LANE];
    int registers = to->in_bits[LAYOUT_REGISTER];
    uint64_t register_mask = (1ull << from_registers) - 1,
             lane_mask = (1ull << from->in_bits[LAYOUT_LANE]) - 1;
    uint64_t lane_reads[8]; /* the (lane, register) that destination lane bit i reads in round 0 */
    *plan = (ShufflePlan){.rounds_bits = registers, .lane_bits = lanes};
    for (int i = 0; i < lanes; i++) {
        bool found = false;
        for (uint64_t keep = 0; keep < 1ull << registers && !found; keep++) {
            lane_reads[i] = places[registers + i] ^ tt_f2_apply(places, keep);
            uint64_t kernel[8], read_lanes[8];
            for (int j = 0; j <= i; j++)
                read_lanes[j] = lane_reads[j] >> from_registers & lane_mask;
            found = true; /* readers of one lane differ by the kernel: they must want one register */
            for (int k = tt_f2_kernel(read_lanes, i + 1, kernel) - 1; k >= 0; k--)
                if (tt_f2_apply(lane_reads, kernel[k]) & register_mask)
                    found = false;
            plan->keep_lane[i] = keep;
        }
        if (!found)
            return false;
        plan->source_lane[i] = lane_reads[i] >> from_registers & lane_mask;
    }
    /* Seen from the publishing lane: its readers (source_lane of them is it) tell the register; lanes that nobody reads
     * may send anything. */
    int from_lanes = from->in_bits[LAYOUT_LANE], known = 0;
    uint64_t published[8], registers_of[8] = {0}, members;
    for (int i = 0; i < lanes; i++) {
        published[known] = plan->source_lane[i];
        registers_of[known] = lane_reads[i] & register_mask;
        known += tt_f2_rank(published, known + 1) == known + 1;
    }
    for (int i = known; i < from_lanes; i++)
        registers_of[i] = 0;
    tt_f2_extend(published, known, NULL, 0, from_lanes, published + known);
    for (int p = 0; p < from_lanes; p++) {
        tt_f2_solve(published, from_lanes, 1ull << p, &members);
        plan->send_lane[p] = tt_f2_apply(registers_of, members);
    }
    for (int t = 0; t < registers; t++) {
        plan->source_round[t] = places[t] >> from_registers & lane_mask;
        plan->send_round[t] =
            (places[t] & register_mask) ^ tt_f2_apply(plan->send_lane, plan->source_round[t]);
    }
    return true;
}

/* ---- shared memory --------------------------------------------------------------------------------------------------------- */

/* The images of lanes, warps and blocks of both layouts: what must not move within a vector. */
static int fixed_span(const LinearLayout *from, const LinearLayout *to, uint64_t *span)
{
    uint64_t all[128];
    int count = 0;
    for (int i = from->in_bits[LAYOUT_REGISTER]; i < tt_layout_in_total(from); i++)
        all[count++] = from->bases[i];
    for (int i = to->in_bits[LAYOUT_REGISTER]; i < tt_layout_in_total(to); i++)
        all[count++] = to->bases[i];
    return tt_f2_basis(all, count, span);
}

/* Elements that a thread holds on both sides and can therefore move as one vector of at most 16 bytes; independent of
 * `fixed`, or a lane's vector would start in the middle of another's. */
static int common_vector(const LinearLayout *from, const LinearLayout *to, const uint64_t *fixed,
                         int fixed_count, int element_bytes, uint64_t *vector)
{
    uint64_t common[64], basis[64];
    int common_count = tt_f2_intersection(from->bases, from->in_bits[LAYOUT_REGISTER], to->bases,
                                          to->in_bits[LAYOUT_REGISTER], common);
    int widest = element_bytes >= 16 ? 0 : tt_log2(16 / element_bytes), count = 0;
    memcpy(basis, fixed, sizeof(uint64_t) * (size_t)fixed_count);
    for (int i = 0; i < common_count && count < widest; i++) {
        basis[fixed_count + count] = common[i];
        if (tt_f2_rank(basis, fixed_count + count + 1) == fixed_count + count + 1)
            vector[count++] = common[i];
    }
    return count;
}

/* Rows of 16 bytes of which four lanes of `words` hold a word each, and threads of `vectors` all, as bits of the row; or
 * none. What else is in `words`, and the threads of `vectors`, are *fixed: they move by whole rows. */
static int find_row(const LinearLayout *words, const LinearLayout *vectors, int element_bytes, uint64_t *row,
                    uint64_t *fixed, int *fixed_count)
{
    int registers = words->in_bits[LAYOUT_REGISTER],
        in_word = element_bytes < 4 ? tt_log2(4 / element_bytes) : 0;
    uint64_t all[128], span[64];
    int count = 0, bits = in_word + 2;
    if (element_bytes > 4 || registers < in_word || words->in_bits[LAYOUT_LANE] < 5)
        return 0;
    for (int i = 0; i < tt_layout_in_total(words); i++) {
        bool is_in_row = i < in_word || (i >= registers && i < registers + 2);
        if (!words->bases[i])
            return 0; /* copies, of which matrices have none */
        if (is_in_row)
            row[i < in_word ? i : in_word + i - registers] = words->bases[i];
        else
            all[count++] = words->bases[i];
    }
    memcpy(span, vectors->bases, sizeof(uint64_t) * (size_t)vectors->in_bits[LAYOUT_REGISTER]);
    memcpy(span + vectors->in_bits[LAYOUT_REGISTER], row, sizeof(uint64_t) * (size_t)bits);
    if (tt_f2_rank(span, vectors->in_bits[LAYOUT_REGISTER] + bits) !=
        tt_f2_rank(span, vectors->in_bits[LAYOUT_REGISTER]))
        return 0;
    for (int i = vectors->in_bits[LAYOUT_REGISTER]; i < tt_layout_in_total(vectors); i++)
        all[count++] = vectors->bases[i];
    *fixed_count = tt_f2_basis(all, count, fixed);
    memcpy(span, fixed, sizeof(uint64_t) * (size_t)*fixed_count);
    memcpy(span + *fixed_count, row, sizeof(uint64_t) * (size_t)bits);
    return tt_f2_rank(span, *fixed_count + bits) == *fixed_count + bits ? bits : 0;
}

/* Members of `candidates` that are independent of `basis` and each other. */
static int independent_of(const uint64_t *basis, int count, const uint64_t *candidates, int candidate_count,
                          uint64_t *out)
{
    uint64_t all[128], kept[128];
    memcpy(all, basis, sizeof(uint64_t) * (size_t)count);
    memcpy(all + count, candidates, sizeof(uint64_t) * (size_t)candidate_count);
    int total = tt_f2_basis(all, count + candidate_count, kept);
    memcpy(out, kept + count, sizeof(uint64_t) * (size_t)(total - count));
    return total - count;
}

/* A common complement, within `space`, of two of its subspaces once each is grown to `dimension`: sums of their private
 * parts, and what lies outside both. It meets neither, so no two elements of one wavefront share a bank in different
 * rows of memory. Both arrays have room to grow. */
static int common_complement(uint64_t *a, int a_count, uint64_t *b, int b_count, int dimension,
                             const uint64_t *space, int space_count, uint64_t *out)
{
    uint64_t common[64], a_private[64], b_private[64], sum[128];
    uint64_t wanted[128]; /* grown with each other's members first: what is common needs no sum */
    memcpy(wanted, b, sizeof(uint64_t) * (size_t)b_count);
    memcpy(wanted + b_count, space, sizeof(uint64_t) * (size_t)space_count);
    a_count += tt_f2_extend(a, a_count, wanted, b_count + space_count, dimension, a + a_count);
    b_count += tt_f2_extend(b, b_count, a, a_count, dimension, b + b_count);
    int common_count = tt_f2_intersection(a, a_count, b, b_count, common);
    int private_count = independent_of(common, common_count, a, a_count, a_private);
    independent_of(common, common_count, b, b_count, b_private);
    int count = 0;
    for (int i = 0; i < private_count; i++)
        out[count++] = a_private[i] ^ b_private[i];
    memcpy(sum, a, sizeof(uint64_t) * (size_t)a_count);
    memcpy(sum + a_count, b_private, sizeof(uint64_t) * (size_t)private_count);
    return count + tt_f2_extend(sum, a_count + private_count, space, space_count, space_count, out + count);
}

/* `served` lane bits from `first` on: lanes whose vectors one wavefront of 128 bytes serves together. */
static int wavefront_span(const LinearLayout *layout, int first, int served, uint64_t *span)
{
    return tt_f2_basis(layout->bases + layout->in_bits[LAYOUT_REGISTER] + first,
                       TT_MIN(served, layout->in_bits[LAYOUT_LANE]), span);
}

static SharedPlan plan_shared(const LinearLayout *from, const LinearLayout *to, int element_bytes,
                              bool stores_matrices)
{
    SharedPlan plan = {.memory = *from};
    int bits = tt_layout_out_total(from);
    uint64_t fixed[64], space[64], a[64], b[64], columns[64], rows[64], inverse[64];
    int fixed_count = fixed_span(from, to, fixed),
        in_word = element_bytes < 4 ? tt_log2(4 / element_bytes) : 0;
    int vector_bits = common_vector(from, to, fixed, fixed_count, element_bytes, columns);
    int first_stored = 0, first_loaded = 0; /* lanes that a wavefront tells apart */
    plan.store_bits = plan.load_bits = vector_bits;
    for (int stores = 1; stores >= 0 && plan.store_bits == plan.load_bits; stores--) {
        uint64_t row[8], moving[64];
        int moving_count;
        const LinearLayout *words = stores ? from : to, *vectors = stores ? to : from;
        bool by_matrices =
            !stores || stores_matrices; /* four words at once: better than two on both sides, too */
        int row_bits = vector_bits > in_word + by_matrices
                           ? 0
                           : find_row(words, vectors, element_bytes, row, moving, &moving_count);
        if (!row_bits)
            continue;
        memcpy(columns, row, sizeof(uint64_t) * (size_t)row_bits);
        memcpy(fixed, moving, sizeof(uint64_t) * (size_t)moving_count);
        fixed_count = moving_count;
        vector_bits = row_bits;
        plan.store_bits = stores ? in_word : row_bits;
        plan.load_bits = stores ? row_bits : in_word;
        *(stores ? &first_stored : &first_loaded) = 2;
    }
    int served = TT_MIN(5, 7 - TT_MIN(7, tt_log2(element_bytes) + vector_bits));
    int bank_bits = TT_MAX(0, 7 - tt_log2(element_bytes) - vector_bits); /* vectors in 128 bytes */
    /* Everything but the vectors happens in a complement of them that contains `fixed`. */
    int space_count = bits - vector_bits;
    memcpy(space, fixed, sizeof(uint64_t) * (size_t)fixed_count);
    uint64_t grown[64];
    memcpy(grown, columns, sizeof(uint64_t) * (size_t)vector_bits);
    memcpy(grown + vector_bits, fixed, sizeof(uint64_t) * (size_t)fixed_count);
    tt_f2_extend(grown, vector_bits + fixed_count, NULL, 0, bits, space + fixed_count);
    int row_count = 0;
    if (space_count > bank_bits) {
        int a_count = wavefront_span(from, first_stored, served, a),
            b_count = wavefront_span(to, first_loaded, served, b);
        row_count = common_complement(a, a_count, b, b_count, bank_bits, space, space_count, rows);
    }
    /* Offsets: vector lowest, then banks (source lanes first, for plain store addresses), then rows. */
    uint64_t banks[64];
    int bank_count = tt_f2_extend(rows, row_count, space, space_count, space_count, banks);
    memcpy(columns + vector_bits, banks, sizeof(uint64_t) * (size_t)bank_count);
    memcpy(columns + vector_bits + bank_count, rows, sizeof(uint64_t) * (size_t)row_count);
    TT_ASSERT(vector_bits + bank_count + row_count == bits);
    memset(plan.memory.in_bits, 0, sizeof plan.memory.in_bits);
    plan.memory.in_bits[LAYOUT_REGISTER] = bits;
    memcpy(plan.memory.bases, columns, sizeof(uint64_t) * (size_t)bits);
    tt_layout_right_inverse(&plan.memory, inverse);
    for (int i = 0; i < tt_layout_in_total(from); i++)
        plan.store_offsets[i] = tt_f2_apply(inverse, from->bases[i]);
    for (int i = 0; i < tt_layout_in_total(to); i++)
        plan.load_offsets[i] = tt_f2_apply(inverse, to->bases[i]);
    for (int i = 0; i < vector_bits; i++) {
        uint64_t registers;
        if (i < plan.store_bits) {
            tt_f2_solve(from->bases, from->in_bits[LAYOUT_REGISTER], columns[i], &registers);
            plan.store_registers[i] = (uint32_t)registers;
        }
        if (i < plan.load_bits) {
            tt_f2_solve(to->bases, to->in_bits[LAYOUT_REGISTER], columns[i], &registers);
            plan.load_registers[i] = (uint32_t)registers;
        }
    }
    return plan;
}

/* ---- the plan --------------------------------------------------------------------------------------------------------------- */

ConvertPlan tt_layout_plan_conversion(const LinearLayout *from, const LinearLayout *to, int element_bytes,
                                      bool stores_matrices)
{
    ConvertPlan plan = {0};
    uint64_t places[64];
    TT_ASSERT(tt_layout_is_surjective(from) && tt_layout_is_surjective(to));
    TT_ASSERT(tt_layout_out_total(from) == tt_layout_out_total(to));
    for (int input = LAYOUT_LANE; input < LAYOUT_INPUTS; input++)
        TT_ASSERT(from->in_bits[input] == to->in_bits[input]);
    int registers = to->in_bits[LAYOUT_REGISTER];
    if (match_places(from, to, true, places)) {
        bool identity = registers == from->in_bits[LAYOUT_REGISTER];
        for (int i = 0; i < tt_layout_in_total(to); i++) {
            bool is_register = i < registers;
            uint64_t moved = places[i] & ((1ull << from->in_bits[LAYOUT_REGISTER]) - 1);
            if (is_register)
                plan.register_source[i] = moved;
            else if (moved) /* the register depends on the lane: not a fixed permutation */
                goto across_lanes;
            identity = identity && (!is_register || moved == 1ull << i);
        }
        plan.kind = identity ? CONVERT_NONE : CONVERT_REGISTERS;
        return plan;
    }
across_lanes:
    if (match_places(from, to, false, places)) {
        int lanes_end = registers + to->in_bits[LAYOUT_LANE];
        bool warps_stay = true; /* a register that depends on the warp cannot be named at compile time */
        for (int i = lanes_end; i < tt_layout_in_total(to); i++)
            warps_stay = warps_stay && places[i] == 1ull << (i - registers + from->in_bits[LAYOUT_REGISTER]);
        if (warps_stay && plan_shuffles(from, to, places, &plan.shuffle)) {
            plan.kind = CONVERT_SHUFFLE;
            return plan;
        }
    }
    plan.kind = CONVERT_SHARED;
    plan.shared = plan_shared(from, to, element_bytes, stores_matrices);
    return plan;
}

void tt_layout_bank_conflicts(const uint64_t *lane_offsets, int lane_bits, int vector_bytes,
                              int element_bytes, int *wavefronts, int *fewest)
{
    int served = TT_MIN(lane_bits, TT_MIN(5, 7 - tt_log2(vector_bytes)));
    *wavefronts = *fewest = 0;
    for (uint64_t group = 0; group < 1ull << (lane_bits - served); group++) {
        uint64_t words[32][32]; /* distinct words each bank must serve */
        int counts[32] = {0}, worst = 0;
        for (uint64_t lane = group << served; lane < (group + 1) << served; lane++) {
            uint64_t first = tt_f2_apply(lane_offsets, lane) * (uint64_t)element_bytes;
            for (uint64_t word = first / 4; word <= (first + (uint64_t)vector_bytes - 1) / 4; word++) {
                int bank = (int)(word % 32), known = 0;
                for (int i = 0; i < counts[bank]; i++)
                    known |= words[bank][i] == word;
                if (!known)
                    words[bank][counts[bank]++] = word;
                worst = TT_MAX(worst, counts[bank]);
            }
        }
        *wavefronts += worst;
        *fewest += 1;
    }
}
