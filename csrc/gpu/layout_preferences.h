/* Internal to the choice of layouts (layout_groups.c, decide_layouts.c): blocked layouts, and what accesses of memory prefer. */
#pragma once
#include "gpu/passes.h"

/* A way to lay a tile out: dimensions from the fastest, how many elements of that a thread takes at once, and how many
 * lanes at most go on along it. Of the next dimension a thread takes some neighbours, too. */
typedef struct Preference {
    int order[TT_MAX_RANK];
    int64_t next;
    int64_t vector, lanes, bytes; /* bytes of an element */
    int64_t weight;
    bool by_distance; /* how far elements are apart is known to differ, if no more */
    bool is_once;     /* whole sectors do */
    bool can_repeat;  /* several threads may load an element: the first cache has it */
    /* Loads of one row, over and over: so many neighbours along each other dimension are the same elements under the same mask. 0:
     * it is more than that. */
    int64_t alike[TT_MAX_RANK];
} Preference;

static inline int64_t tt_elements_per_thread(const Type *type, int num_warps)
{
    return TT_MAX(1, type->count / (TT_LANES * num_warps));
}

/* False when nothing is known of how the elements lie: then one layout is as good as another. The mask does not matter:
 * vectors that it cuts are accessed element by element. */
bool tt_preference_of(const AxisInfos *infos, const Op *op, const GpuOptions *options,
                      Preference *preference);
/* Does an access in this layout use memory about as well as in the one it prefers? */
bool tt_suits(const LinearLayout *layout, const Preference *preference);
/* And in vectors as wide? */
bool tt_suits_in_vectors(const LinearLayout *layout, const Preference *preference);
/* Or if threads may access small elements one by one? */
bool tt_suits_by_element(const LinearLayout *layout, const Preference *preference);
/* vectors: neighbours that a thread takes at once along each dimension (0 is 1). Lanes along the fastest dimension first,
 * or no more than `first_lanes` before those along the others. combined: how often elements are combined along each
 * dimension, by reductions and scans; apart_axes: along which what is broadcast to the tile is loaded from places apart.
 * Warps are shared out so that these take the least work, and along the slowest dimension first; what is left of them are
 * copies. */
const LinearLayout *tt_blocked_by(Module *module, const Type *type, const int *order, const int64_t *vectors,
                                  const int64_t *combined, uint32_t apart_axes, int64_t first_lanes,
                                  int num_warps);
const LinearLayout *tt_blocked(Module *module, const Type *type, const int *order, int64_t vector,
                               int64_t lanes, int num_warps);
