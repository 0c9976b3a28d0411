/* Copies of a pipelined loop in portions, each behind a step of the product that runs meanwhile: all behind the first step they
 * take longer than that, and the tensor core runs dry before it is given the next one. */
#include "gpu/pipeline.h"

/* Copies that each thread issues for a load. Where they are several they lie one behind the other along the dimension that is not
 * the fastest in memory. */
static int64_t copies_of(const Pipeline *p, const Staged *staged)
{
    if (!staged->is_async || staged->is_block)
        return 0;
    const Type *type = staged->load->results[0]->type;
    int64_t threads = (int64_t)TT_LANES * p->options->num_warps;
    if (!tt_is_tile(type) || type->rank != 2)
        return 1;
    int64_t extent = type->shape[1 - tt_fastest_axis(p->axis_infos, staged->load)];
    int64_t at_once = threads * pipeline_bytes_at_once(p, staged->load);
    int64_t copies = TT_MAX(1, type->count * tt_byte_width(type) / at_once);
    return extent % copies ? 1 : copies;
}

/* Those of the loads before `end`; NULL: of all. */
static int64_t copies_before(const Pipeline *p, const Staged *end)
{
    int64_t copies = 0;
    for (int i = 0; i < p->loads.count && &p->loads.data[i] != end; i++)
        copies += copies_of(p, &p->loads.data[i]);
    return copies;
}

/* May the rest of the product wait for what portions of the copies need? Not for the branches of a gather; nor for addresses
 * that take long, which are computed while products of the iteration before are under way if the copies stand together (where a
 * program is alone, that iteration computes them). Nor is there any copy if all stand before the loop. */
static bool can_be_spread(const Pipeline *p)
{
    if (p->distance >= p->trips)
        return false;
    for (int i = 0; i < p->loads.count; i++) {
        const Staged *staged = &p->loads.data[i];
        if (staged->is_gathered ||
            (staged->is_async && !p->is_alone && pipeline_has_long_way(p, staged->load)))
            return false;
    }
    return true;
}

/* Clocks that the copies of an iteration take to pass shared memory. */
static int64_t clocks_to_pass(const Pipeline *p)
{
    enum { BYTES_PER_CLOCK = 128 };
    int64_t bytes = 0;
    for (int i = 0; i < p->loads.count; i++) {
        const Type *type = p->loads.data[i].load->results[0]->type;
        bool is_tile = copies_of(p, &p->loads.data[i]) && tt_is_tile(type);
        bytes += is_tile ? type->count * tt_byte_width(type) : 0;
    }
    return bytes / BYTES_PER_CLOCK;
}

/* Clocks in which a warp issues its copies, with their addresses and masks. */
static int64_t clocks_to_issue(const Pipeline *p)
{
    enum { FOR_EACH = 20 };
    return copies_before(p, NULL) * FOR_EACH;
}

/* Several where the copies take longer than a step; none behind the last step of more than two, since the next iteration's first
 * one is to come soon. If not even portions fit behind their steps, the rest of the product would only be held up. */
int pipeline_count_portions(const Pipeline *p, const Op *product, int steps)
{
    enum { SUMS_PER_CLOCK = 128 };
    int64_t clocks = product->results[0]->type->count / SUMS_PER_CLOCK, to_pass = clocks_to_pass(p);
    int64_t portions = TT_MIN(TT_MIN(MOST_PORTIONS, TT_MAX(2, steps - 1)), copies_before(p, NULL));
    bool fit_together = TT_MAX(to_pass, clocks_to_issue(p)) <= clocks;
    return fit_together || to_pass > portions * clocks || !can_be_spread(p) ? 1 : (int)portions;
}

/* Of the copies of all loads, how many this portion and those before it have. */
static int64_t end_of_portion(const Pipeline *p, int portion)
{
    return (copies_before(p, NULL) * (portion + 1) + p->portions - 1) / p->portions;
}

bool pipeline_choose_portion(const Pipeline *p, Staged *staged, int portion)
{
    if (p->portions == 1 || staged->is_block)
        return !portion;
    int64_t before = copies_before(p, staged), copies = copies_of(p, staged);
    int64_t from = TT_MAX(0, end_of_portion(p, portion - 1) - before),
            to = TT_MIN(copies, end_of_portion(p, portion) - before);
    staged->part[2] = 0;
    if (from < to && to - from < copies) {
        int axis = 1 - tt_fastest_axis(p->axis_infos, staged->load);
        int64_t rows = staged->load->results[0]->type->shape[axis] / copies;
        staged->part[0] = axis;
        staged->part[1] = from * rows;
        staged->part[2] = to * rows;
    }
    return from < to;
}
