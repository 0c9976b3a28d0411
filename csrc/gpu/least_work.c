/* The layout with which a tile takes the least work that no access and no product speaks for: the state of a recurrence,
 * which meets rows and columns and is added up along either. Of all ways to share it out among registers, lanes and
 * warps the one that needs the fewest instructions. */
#include "gpu/passes.h"

typedef struct Shares {
    int registers[TT_MAX_RANK], lanes[TT_MAX_RANK], warps[TT_MAX_RANK]; /* bits along each dimension */
} Shares;

typedef struct Search {
    const Type *type;
    const TileUse *uses;
    int use_count;
    Shares shares, best;
    int64_t least;
} Search;

enum {
    STEP = 2, /* instructions by which lanes combine an element */
    STEP_TIME =
        8, /* how long, in instructions, one waits for the other lane besides, however many elements there are */
    MEETING = 40, /* a barrier, and the trip through shared memory behind it */
};

int64_t tt_work_of_combining(int elements, int lanes, int warps)
{
    int64_t work = 1ll << elements;
    return (work * STEP + STEP_TIME) * lanes + (warps ? MEETING + (work << warps) : 0);
}

static int64_t work_of(const Shares *shares, int rank, const TileUse *use)
{
    int elements = 0, lanes = 0, warps = 0; /* bits: of a thread's elements, and of what has parts of one */
    for (int axis = 0; axis < rank; axis++)
        if (use->axes >> axis & 1) {
            elements += shares->registers[axis];
        } else {
            lanes += shares->lanes[axis];
            warps += shares->warps[axis];
        }
    return (use->combines ? tt_work_of_combining(elements, lanes, warps) : 1ll << elements) * use->weight;
}

/* Gives dimensions from `axis` on their shares: first what lanes, then what warps are left. */
static void share_out(Search *s, int axis, int lanes, int warps)
{
    if (axis < s->type->rank) {
        int bits = tt_log2(tt_next_pow2(s->type->shape[axis]));
        for (int l = 0; l <= TT_MIN(lanes, bits); l++)
            for (int w = 0; w <= TT_MIN(warps, bits - l); w++) {
                s->shares.lanes[axis] = l;
                s->shares.warps[axis] = w;
                s->shares.registers[axis] = bits - l - w;
                share_out(s, axis + 1, lanes - l, warps - w);
            }
        return;
    }
    if (lanes || warps)
        return;
    int64_t work = 0;
    for (int i = 0; i < s->use_count; i++)
        work += work_of(&s->shares, s->type->rank, &s->uses[i]);
    if (work < s->least) {
        s->least = work;
        s->best = s->shares;
    }
}

static Shares shares_in(const LinearLayout *layout)
{
    Shares shares = {0};
    for (int axis = 0; axis < layout->rank; axis++) {
        const uint32_t *along = tt_layout_axis_bits(layout, axis).along;
        shares.registers[axis] = __builtin_popcount(along[LAYOUT_REGISTER]);
        shares.lanes[axis] = __builtin_popcount(along[LAYOUT_LANE]);
        shares.warps[axis] = __builtin_popcount(along[LAYOUT_WARP]);
    }
    return shares;
}

int64_t tt_work_in(const LinearLayout *layout, const TileUse *uses, int use_count)
{
    Shares shares = shares_in(layout);
    int64_t work = 0;
    for (int i = 0; i < use_count; i++)
        work += work_of(&shares, layout->rank, &uses[i]);
    return work;
}

const LinearLayout *tt_layout_of_least_work(Module *module, const Type *type, const TileUse *uses,
                                            int use_count, int num_warps)
{
    enum { VECTOR = 8 /* elements of a row or a column that a thread loads at once */ };
    Search search = {.type = type, .uses = uses, .use_count = use_count, .least = INT64_MAX};
    share_out(&search, 0, TT_LANE_BITS, tt_log2(num_warps));
    if (search.least == INT64_MAX) /* fewer elements than threads */
        return NULL;
    /* what is cheap and goes into the tile has the default, so that it is made once */
    const LinearLayout *usual = tt_default_layout(module, type, num_warps);
    Shares shares = shares_in(usual);
    if (!memcmp(&shares, &search.best, sizeof shares))
        return usual;
    int order[TT_MAX_RANK];
    int64_t shape[TT_MAX_RANK], size[TT_MAX_RANK], lanes[TT_MAX_RANK], warps[TT_MAX_RANK];
    for (int i = 0; i < type->rank; i++) {
        order[i] = type->rank - 1 - i;
        shape[i] = tt_next_pow2(type->shape[i]);
        size[i] = TT_MIN(VECTOR, 1ll << search.best.registers[i]);
        lanes[i] = 1ll << search.best.lanes[i];
        warps[i] = 1ll << search.best.warps[i];
    }
    LinearLayout layout = tt_layout_blocked(shape, type->rank, size, lanes, warps, order);
    return tt_intern_layout(module, &layout);
}
