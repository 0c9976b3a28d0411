/* Layouts of tiles in blocks: what a thread takes at once, then lanes, then warps; and which of them accesses of memory
 * prefer, whose widest vectors are contiguous across lanes. */
#include "gpu/layout_preferences.h"

enum { SECTOR = 32, SECTOR_RUN = 64 /* bytes in a row that a warp should touch */ };

/* Fastest dimension first: by contiguity, then by distance, then the last one. */
static void order_by_contiguity(const AxisInfo *info, int rank, int *order)
{
    for (int i = 0; i < rank; i++) {
        int axis = rank - 1 - i, at = i;
        while (at && tt_is_nearer_axis(info, axis, order[at - 1])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = axis;
    }
}

/* Neighbours along `axis` that are neighbours in the buffer. */
static int64_t run_in_buffer(const LinearLayout *layout, int axis)
{
    int bits = 0, start = tt_layout_axis_start(layout, axis);
    while (bits < layout->out_bits[axis] && layout->bases[bits] == 1ull << (start + bits))
        bits++;
    return 1ll << bits;
}

/* How many neighbours along the next dimension a thread copies where a table in the loop says their places: as many as it
 * reads entries at once, if lanes cover all banks by what they copy along the fastest. */
static int64_t neighbours_in_table(const Op *op, const AxisInfo *info, const Preference *preference)
{
    enum { ENTRIES = 4 /* of 4 bytes */, BANKS = 128 /* bytes */ };
    const Type *type = tt_operand(op, 0)->type;
    if (!tt_find_attr(op, ATTR_gathered) || type->rank == 1 || !info->looked_up[preference->order[1]])
        return 1;
    int64_t row = TT_MIN(preference->lanes * preference->vector, type->shape[preference->order[0]]);
    return row * preference->bytes >= BANKS ? ENTRIES : 1;
}

/* Do all rows along `fastest` load the same, as a tile of pointers that was broadcast does? Then says how many do so under one mask. */
static void note_alike(const AxisInfos *infos, const Op *op, int fastest, Preference *preference)
{
    enum { CACHED = 4 << 10 /* bytes of a row */ };
    const Type *type = tt_operand(op, 0)->type;
    const AxisInfo *pointer = tt_axis_info(infos, tt_operand(op, 0)),
                   *mask = op->operand_count > 1 ? tt_axis_info(infos, tt_operand(op, 1)) : NULL;
    bool repeats =
        preference->can_repeat && type->rank > 1 && type->shape[fastest] * preference->bytes <= CACHED;
    for (int axis = 0; axis < type->rank; axis++)
        repeats &= axis == fastest || pointer->constancy[axis] >= type->shape[axis];
    for (int axis = 0; axis < type->rank; axis++)
        preference->alike[axis] = !repeats          ? 0
                                  : axis == fastest ? 1
                                  : mask            ? mask->constancy[axis]
                                                    : type->shape[axis];
}

/* Does a product add to what the loop carries, as it is or scaled before (attention)? */
static bool carries_sums(const Loop *loop, int i)
{
    const Value *next = tt_next(loop, i);
    for (; next->op && next->op->opcode == OP_wgmma_wait; next = tt_operand(next->op, 0))
        ;
    if (next->op && tt_is_product(next->op))
        return true;
    TT_FOR_USES(sum, tt_carried(loop, i))
    if (tt_is_product(sum->user) && tt_operand(sum->user, 2) == sum->value)
        return true;
    return false;
}

/* Would a tile that crosses shared memory beside the loop's buffers leave a multiprocessor fewer programs? */
static bool costs_programs(const Op *loop, const Type *type, const GpuOptions *options)
{
    int64_t bytes = tt_bytes_while_it_runs(loop), more = bytes + type->count * tt_byte_width(type);
    return tt_programs_by_shared(options->sm, more) < tt_programs_by_shared(options->sm, bytes);
}

/* Is it, of what is loaded, all that a loop of products begins its sums with? That happens once. Through shared memory it would
 * cross beside the slots that the loop copies to. */
static bool begins_sums(const Op *op, const GpuOptions *options)
{
    if (op->opcode != OP_load || !tt_has_one_use(op->results[0]))
        return false;
    const Use *use = op->results[0]->uses;
    if (use->user->opcode != OP_for)
        return false;
    const Loop loop = tt_loop(use->user);
    for (int i = 0; i < use->user->result_count; i++)
        if (tt_init(&loop, i) == op->results[0])
            return carries_sums(&loop, i) && costs_programs(use->user, op->results[0]->type, options);
    return false;
}

bool tt_preference_of(const AxisInfos *infos, const Op *op, const GpuOptions *options, Preference *preference)
{
    const Value *pointer = tt_operand(op, 0);
    const Type *type = pointer->type;
    const AxisInfo *info = tt_axis_info(infos, pointer);
    int bytes = tt_byte_width(type->element->element);
    order_by_contiguity(info, type->rank, preference->order);
    int fastest = preference->order[0];
    int64_t run = info->contiguity[fastest], aligned = TT_MAX(1, info->divisibility[fastest] / bytes);
    int64_t widest = TT_MIN(16 / TT_MIN(bytes, 16), TT_MIN(run, aligned));
    while (!tt_is_pow2(widest))
        widest &= widest - 1;
    bool whole = op->opcode == OP_async_copy; /* threads without a vector of their own repeat another's */
    preference->lanes = TT_LANES;
    if (whole) { /* what is copied in parts, lanes copy a sector at a time, so that rows in the buffer share banks less */
        int64_t in_buffer = run_in_buffer(tt_operand(op, 1)->layout, fastest);
        preference->lanes = widest > in_buffer ? TT_MAX(1, SECTOR / (in_buffer * bytes)) : TT_LANES;
        widest = TT_MIN(widest, in_buffer);
        const Attr *part = tt_find_attr(op, ATTR_part);
        if (part && part->ints[0] == fastest)
            preference->lanes =
                TT_MIN(preference->lanes, TT_MAX(1, (part->ints[2] - part->ints[1]) / widest));
    }
    preference->vector =
        whole ? widest : TT_MIN(widest, tt_next_pow2(tt_elements_per_thread(type, options->num_warps)));
    preference->bytes = bytes;
    preference->next = neighbours_in_table(op, info, preference);
    preference->weight = type->count * bytes;
    preference->is_once = begins_sums(op, options);
    preference->can_repeat = op->opcode == OP_load && tt_is_plain_load(op) && !tt_find_attr(op, ATTR_cache);
    note_alike(infos, op, fastest, preference);
    int slowest = preference->order[type->rank - 1];
    preference->by_distance = tt_is_nearer_axis(info, fastest, slowest);
    return run > 1 || tt_is_faster_axis(info, fastest, slowest);
}

/* ---- blocked layouts ------------------------------------------------------------------------------------------------------ */

typedef struct Sharing {
    int rank;
    const int *order;
    const int64_t *combined;
    uint32_t apart_axes;
    int64_t elements[TT_MAX_RANK], places[TT_MAX_RANK]; /* of warps, along each dimension */
    int64_t lanes[TT_MAX_RANK], warps[TT_MAX_RANK], best[TT_MAX_RANK];
    int64_t least;
} Sharing;

/* Of combining, and of loading what is broadcast from places apart: each lane takes a turn. */
static int64_t work_of(const Sharing *s)
{
    int64_t work = 0;
    for (int axis = 0; axis < s->rank; axis++) {
        if (s->apart_axes >> axis & 1)
            work += s->elements[axis] / s->warps[axis] * s->lanes[axis];
        int64_t results = 1; /* of a thread */
        for (int other = 0; other < s->rank; other++)
            results *= other == axis ? 1 : s->elements[other] / s->warps[other];
        if (s->combined[axis])
            work += s->combined[axis] *
                    tt_work_of_combining(tt_log2(results), tt_log2(s->lanes[axis]), tt_log2(s->warps[axis]));
    }
    return work;
}

/* Shares `warps`, for which there are places, out among the `count` fastest dimensions. */
static void share_warps(Sharing *s, int count, int64_t warps)
{
    if (!count) {
        int64_t work = work_of(s);
        if (warps == 1 && work < s->least) {
            s->least = work;
            memcpy(s->best, s->warps, sizeof s->best);
        }
        return;
    }
    int axis = s->order[count - 1];
    for (int64_t most = TT_MIN(warps, s->places[axis]); most; most /= 2) {
        s->warps[axis] = most;
        share_warps(s, count - 1, warps / most);
    }
}

const LinearLayout *tt_blocked_by(Module *module, const Type *type, const int *order, const int64_t *vectors,
                                  const int64_t *combined, uint32_t apart_axes, int64_t first_lanes,
                                  int num_warps)
{
    int64_t shape[TT_MAX_RANK] = {0}, size[TT_MAX_RANK], places = 1;
    int64_t lanes_left = TT_LANES;
    Sharing s = {.rank = type->rank,
                 .order = order,
                 .combined = combined,
                 .apart_axes = apart_axes,
                 .least = INT64_MAX};
    for (int i = 0; i < type->rank; i++) {
        shape[i] = tt_next_pow2(type->shape[i]);
        size[i] = TT_MIN(TT_MAX(1, vectors[i]), shape[i]);
    }
    for (int i = 0; i < type->rank; i++) {
        int axis = order[i];
        s.lanes[axis] = TT_MIN(i ? lanes_left : TT_MIN(lanes_left, first_lanes), shape[axis] / size[axis]);
        s.elements[axis] = shape[axis] / s.lanes[axis];
        s.places[axis] = s.elements[axis] / size[axis];
        lanes_left /= s.lanes[axis];
        places *= s.places[axis];
    }
    share_warps(&s, type->rank, TT_MIN(num_warps, places));
    s.lanes[order[0]] *= lanes_left; /* more places than elements: copies */
    s.best[order[0]] *= num_warps / TT_MIN(num_warps, places);
    LinearLayout layout = tt_layout_blocked(shape, type->rank, size, s.lanes, s.best, order);
    return tt_intern_layout(module, &layout);
}

const LinearLayout *tt_blocked(Module *module, const Type *type, const int *order, int64_t vector,
                               int64_t lanes, int num_warps)
{
    int64_t vectors[TT_MAX_RANK] = {0}, combined[TT_MAX_RANK] = {0};
    vectors[order[0]] = vector;
    return tt_blocked_by(module, type, order, vectors, combined, 0, lanes, num_warps);
}

const LinearLayout *tt_default_layout(Module *module, const Type *type, int num_warps)
{
    int order[TT_MAX_RANK];
    for (int i = 0; i < type->rank; i++)
        order[i] = type->rank - 1 - i;
    int64_t vector = TT_MIN(4, tt_next_pow2(TT_MAX(1, type->count / (TT_LANES * num_warps))));
    return tt_blocked(module, type, order, vector, TT_LANES, num_warps);
}

const LinearLayout *tt_everywhere_layout(Module *module, const Type *type, int num_warps)
{
    LinearLayout layout = tt_padded_layout(type);
    layout.in_bits[LAYOUT_REGISTER] = tt_layout_out_total(&layout);
    for (int i = 0; i < layout.in_bits[LAYOUT_REGISTER]; i++)
        layout.bases[i] = 1ull << i;
    layout.in_bits[LAYOUT_LANE] = TT_LANE_BITS; /* the rest is copies */
    layout.in_bits[LAYOUT_WARP] = tt_log2(num_warps);
    return tt_intern_layout(module, &layout);
}

/* Bytes in a row that a warp touches in one access: vectors along `axis`, then lanes that continue them. */
static int64_t bytes_in_a_row(const LinearLayout *layout, int axis, int64_t bytes, int64_t *vector)
{
    int start = tt_layout_axis_start(layout, axis), bit = 0;
    int registers = layout->in_bits[LAYOUT_REGISTER], lanes = layout->in_bits[LAYOUT_LANE];
    for (bool in_lanes = false; bit < layout->out_bits[axis]; bit++) {
        bool found = false;
        int first = in_lanes ? registers : 0, end = in_lanes ? registers + lanes : registers;
        for (int i = first; i < end; i++)
            found |= layout->bases[i] == 1ull << (start + bit);
        if (!in_lanes && (!found || bytes << bit >= 16)) {
            *vector = 1ll << bit;
            in_lanes = true;
            bit--;
        } else if (!found) {
            break;
        }
    }
    return bytes << bit;
}

/* Are half of a thread's elements, or more, what it loads anyway? */
static bool is_alike_in_threads(const LinearLayout *layout, const Preference *preference)
{
    for (int i = 0; i < layout->in_bits[LAYOUT_REGISTER]; i++) {
        bool is_alike = layout->bases[i];
        for (int axis = 0; axis < layout->rank; axis++) {
            uint64_t step = layout->bases[i] >> tt_layout_axis_start(layout, axis) &
                            ((1ull << layout->out_bits[axis]) - 1);
            is_alike &= step < (uint64_t)(preference->alike[axis] & -preference->alike[axis]);
        }
        if (is_alike)
            return true;
    }
    return false;
}

/* Bytes in a row, and in a thread's vector, against those of the layout that the access prefers. */
static bool suits(const LinearLayout *layout, const Preference *preference, int64_t least)
{
    int64_t bytes = preference->bytes;
    int axis = preference->order[0];
    int64_t vector = 1ll << layout->out_bits[axis];
    int64_t run = bytes_in_a_row(layout, axis, bytes, &vector);
    int64_t whole = bytes << layout->out_bits[axis], wanted = preference->lanes * preference->vector * bytes;
    int64_t least_run = preference->is_once ? SECTOR : SECTOR_RUN;
    return (run >= TT_MIN(TT_MIN(least_run, wanted), whole) || is_alike_in_threads(layout, preference)) &&
           vector * bytes >= TT_MIN(least, preference->vector * bytes);
}

bool tt_suits(const LinearLayout *layout, const Preference *preference)
{
    return suits(layout, preference, 4);
}

bool tt_suits_in_vectors(const LinearLayout *layout, const Preference *preference)
{
    return suits(layout, preference, preference->vector * preference->bytes);
}

bool tt_suits_by_element(const LinearLayout *layout, const Preference *preference)
{
    return suits(layout, preference, preference->bytes);
}
