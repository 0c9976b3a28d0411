/* Which layout each tile should have. Values that elementwise operations, loops and branches tie together form a group,
 * and a group has one layout. Memory operations vote for the one that makes their widest vectors contiguous across
 * lanes, a dot decides alone, and groups without a voice take what shape operations and reductions carry over from
 * their neighbours. Values that are cheap to make in any layout (indices, masks, constants) belong to no group: they
 * are made wherever they are wanted (assign_layouts.c). */
#include "gpu/layout_preferences.h"

enum { LARGEST_CHEAP_CHAIN = 24 };

typedef struct Group {
    struct Group *parent; /* union-find */
    const Type *type;     /* any member's: the shape counts */
    const LinearLayout *layout;
    TT_VECTOR(Preference) votes;
    int64_t combined[TT_MAX_RANK]; /* how often members are combined along each dimension */
    uint32_t scanned_axes;
    uint32_t exchanged_axes; /* along which they look up others at a distance, over and over: networks */
    uint32_t stored_axes;    /* along which the buffers lie that members are stored in */
    uint32_t loaded_axes;    /* and those that members are read from */
    bool is_spread;          /* stored_axes are those of what members are pointers or masks of */
    bool is_under_way;       /* a member is, between wgmma and its wait */
    bool is_accessed;        /* a member is what a memory operation loads or stores, or its pointer or mask */
    bool is_updated;         /* by atomics, an element at a time */
    int access_depth;        /* loops around the innermost of these */
    int64_t accesses;        /* how often members are loaded and stored */
    bool is_voted;           /* the layout is what its accesses prefer */
    bool is_masks;           /* nothing else: they go where what they mask is */
    bool is_broadcast;       /* along another dimension, to a larger tile */
    bool is_summed;          /* by reductions in a loop, and accessed outside of it */
    int cheap_size;          /* > 0: operations in the chain that makes the value; it has no group */
    int64_t index_work; /* instructions that divide integers and compute with quotients, for each element */
    bool is_in_loop;    /* some of that, or of what else makes members, is */
} Group;

/* An operation that carries layouts from one group to another. */
typedef struct Edge {
    Op *op;
    int operand;
    Group *from, *to;
    int depth; /* loops around it */
} Edge;

struct LayoutGroups {
    Module *module;
    const GpuOptions *options;
    Arena *arena;
    AxisInfos *axis_infos;
    Map groups; /* Value* -> Group* */
    TT_VECTOR(Group *) all;
    TT_VECTOR(Edge) edges;
};

static Group *root(Group *group)
{
    while (group->parent) {
        if (group->parent->parent)
            group->parent = group->parent->parent;
        group = group->parent;
    }
    return group;
}

/* NULL for scalars and for what is cheap. */
static Group *group_of(const LayoutGroups *g, const Value *value)
{
    Group *group = tt_is_tile(value->type) ? tt_map_find_ptr(&g->groups, value) : NULL;
    return group && !group->cheap_size ? root(group) : NULL;
}

static void tie(const LayoutGroups *g, const Value *a, const Value *b)
{
    Group *group_a = group_of(g, a), *group_b = group_of(g, b);
    if (group_a && group_b && group_a != group_b) {
        group_a->is_masks &= group_b->is_masks;
        group_b->parent = group_a;
    }
}

/* ---- groups ---------------------------------------------------------------------------------------------------------------- */

/* Size of the chain of operations behind a value that is cheap in any layout, or 0. */
static int cheap_size(const LayoutGroups *g, const Value *value)
{
    if (!value->op || !tt_is_layout_free(value->op))
        return 0;
    int size = 1;
    for (int i = 0; i < value->op->operand_count; i++) {
        const Value *operand = tt_operand(value->op, i);
        if (!tt_is_tile(operand->type))
            continue;
        const Group *group = tt_map_find_ptr(&g->groups, operand);
        if (!group || !group->cheap_size)
            return 0;
        size += group->cheap_size;
    }
    return size <= LARGEST_CHEAP_CHAIN ? size : 0;
}

static void add_value(LayoutGroups *g, const Value *value)
{
    if (!tt_is_tile(value->type))
        return;
    Group *group = TT_NEW(g->arena, Group);
    group->type = value->type;
    group->cheap_size = cheap_size(g, value);
    group->is_masks = tt_is_bool(value->type);
    *tt_map_slot_ptr(&g->groups, value) = group;
    if (!group->cheap_size)
        tt_push(g->arena, g->all, group);
}

static bool keeps_layout(const Op *op) { return tt_has(op, ELEMENTWISE | ONE_LAYOUT); }

static void tie_region(LayoutGroups *g, const Op *op, const Region *region)
{
    const Op *end = region->last;
    if (!end || end->opcode != OP_yield)
        return;
    for (int i = 0; i < op->result_count && i < end->operand_count; i++)
        tie(g, op->results[i], tt_operand(end, i));
}

/* The values that a loop carries: start, argument of each region, what the body yields, result. */
static void tie_loop(LayoutGroups *g, const Op *op)
{
    int first = op->operand_count - op->result_count;
    for (int i = 0; i < op->result_count; i++) {
        tie(g, op->results[i], tt_operand(op, first + i));
        for (int r = 0; r < op->region_count; r++)
            tie(g, op->results[i], op->regions[r]->args[op->regions[r]->arg_count - op->result_count + i]);
    }
    tie_region(g, op, op->regions[op->region_count - 1]);
}

static void tie_all(LayoutGroups *g, Value *const *values, int count)
{
    for (int i = 1; i < count; i++)
        for (int j = 0; j < i; j++)
            tie(g, values[j], values[i]);
}

static void tie_values(LayoutGroups *g, const Op *op)
{
    Value **operands = TT_NEW_ARRAY(g->arena, Value *, op->operand_count);
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = tt_operand(op, i);
    if (tt_is_loop(op)) {
        tie_loop(g, op);
    } else if (tt_is_control(op)) {
        tie_region(g, op, op->regions[0]);
        tie_region(g, op, op->regions[1]);
    } else if (keeps_layout(op) || op->opcode == OP_reduce || op->opcode == OP_join) {
        tie_all(g, operands, op->operand_count);
        tie_all(g, op->results, op->result_count);
        if (keeps_layout(op))
            for (int i = 0; i < op->operand_count && op->result_count; i++)
                tie(g, op->results[0], operands[i]);
    } else if (op->opcode == OP_dot || op->opcode == OP_wgmma) {
        tie(g, op->results[0], operands[2]);
    } else if (op->opcode == OP_load && op->operand_count > 2) {
        tie(g, op->results[0], operands[2]);
    }
}

static void build_groups(LayoutGroups *g, const Region *region)
{
    for (int i = 0; i < region->arg_count; i++)
        add_value(g, region->args[i]);
    TT_FOR_OPS(op, region)
    {
        for (int i = 0; i < op->region_count; i++)
            if (!tt_has(op, PURE)) /* a combine region computes on scalars */
                build_groups(g, op->regions[i]);
        for (int i = 0; i < op->result_count; i++)
            add_value(g, op->results[i]);
        tie_values(g, op);
    }
}

/* ---- votes of memory operations ---------------------------------------------------------------------------------------- */

static bool is_strong(const LayoutGroups *g, const Op *op, Preference *preference)
{
    const Type *type = tt_operand(op, 0)->type;
    return tt_preference_of(g->axis_infos, op, g->options->num_warps, preference) &&
           type->count >= 2 * TT_LANES * g->options->num_warps;
}

/* How often what stands in `depth` loops runs: a loop eight times, say. */
static int64_t times_run(int depth) { return 1ll << 3 * TT_MIN(depth, 6); }

/* Joins a vote for the same order. Vectors are as wide as suits all, but for
 * - scans, whose blocks lanes go through one by one: wider elements, whole vectors of which are few, have a layout of
 *   their own there;
 * - loads of what does not lie in vectors, an image's neighbours: threads that have a few of these know of several at
 *   once in which row they are, and these loads take hardly longer. */
static void join_vote(const Group *group, Preference *known, const Preference *vote)
{
    enum { WHOLE = 16, STRIDE = 8 /* bytes */ };
    const Preference *few = vote->vector < known->vector ? vote : known, *many = few == vote ? known : vote;
    bool wide = few->vector * few->bytes >= WHOLE && group->scanned_axes >> known->order[0] & 1;
    int64_t vector = wide ? many->vector : few->vector;
    if (few->can_repeat)
        vector = TT_MAX(vector, TT_MIN(many->vector, STRIDE / few->bytes));
    known->vector = vector;
    known->bytes = wide ? many->bytes : known->bytes;
    known->next = TT_MIN(known->next, vote->next);
    known->lanes = TT_MIN(known->lanes, vote->lanes);
    known->weight += vote->weight;
    known->can_repeat &= vote->can_repeat;
    for (int axis = 0; axis < group->type->rank; axis++)
        known->alike[axis] = TT_MIN(known->alike[axis], vote->alike[axis]);
}

static void vote(LayoutGroups *g, const Value *value, Preference preference, int depth)
{
    Group *group = group_of(g, value);
    if (!group)
        return;
    preference.weight *= times_run(depth);
    for (int i = 0; i < group->votes.count; i++) {
        Preference *known = &group->votes.data[i];
        if (!memcmp(known->order, preference.order, sizeof(int) * (size_t)group->type->rank)) {
            join_vote(group, known, &preference);
            return;
        }
    }
    tt_push(g->arena, group->votes, preference);
}

static bool accesses_memory(const Op *op)
{
    return tt_has(op, ACCESS) && tt_is_tile(tt_operand(op, 0)->type);
}

static void vote_everywhere(LayoutGroups *g, const Op *op, Preference preference, int depth)
{
    for (int i = 0; i < op->operand_count; i++)
        vote(g, tt_operand(op, i), preference, depth);
    for (int i = 0; i < op->result_count; i++)
        vote(g, op->results[i], preference, depth);
}

/* Votes, or with `weak` those of the operations that do not mind. */
static void collect_votes(LayoutGroups *g, const Region *region, int depth, bool weak)
{
    TT_FOR_OPS(op, region)
    {
        Preference preference = {0};
        if (accesses_memory(op) && is_strong(g, op, &preference) != weak)
            vote_everywhere(g, op, preference, depth);
        for (int i = 0; i < op->region_count; i++)
            collect_votes(g, op->regions[i], depth + tt_is_loop(op), weak);
    }
}

/* ---- deciding ---------------------------------------------------------------------------------------------------------------- */

static void note_combined_axes(LayoutGroups *g, const Op *op, int depth)
{
    uint64_t distance;
    bool exchanges = op->opcode == OP_gather && tt_gathers_at_distance(op, &distance),
         combines = op->opcode == OP_reduce || op->opcode == OP_scan;
    Group *group = exchanges || combines ? group_of(g, tt_operand(op, 0)) : NULL;
    if (!group)
        return;
    int64_t axis = tt_int_attr(op, ATTR_axis, 0);
    group->combined[axis] += times_run(depth);
    group->scanned_axes |= (uint32_t)(op->opcode == OP_scan) << axis;
    group->exchanged_axes |= (uint32_t)exchanges << axis;
}

/* What goes permuted into a network, or comes from it, lies as the network wants it. */
static void spread_exchanged_axes(LayoutGroups *g)
{
    for (int i = 0; i < g->edges.count; i++) {
        const Edge *edge = &g->edges.data[i];
        Group *from = root(edge->from), *to = root(edge->to);
        const Attr *order = edge->op->opcode == OP_permute ? tt_find_attr(edge->op, ATTR_order) : NULL;
        for (int axis = 0; order && axis < order->count; axis++) {
            from->exchanged_axes |= (to->exchanged_axes >> axis & 1) << order->ints[axis];
            to->exchanged_axes |= (from->exchanged_axes >> order->ints[axis] & 1) << axis;
        }
    }
}

static void note_stored_axes(LayoutGroups *g, const Op *op)
{
    bool stores = (op->opcode == OP_smem_alloc && op->operand_count) || op->opcode == OP_smem_store;
    Group *group = stores ? group_of(g, tt_operand(op, 0)) : NULL;
    const Value *buffer = op->opcode == OP_smem_store ? tt_operand(op, 1) : stores ? op->results[0] : NULL;
    if (group)
        group->stored_axes |= 1u << tt_buffer_axis(buffer->layout);
    Group *loaded = op->opcode == OP_smem_load ? group_of(g, op->results[0]) : NULL;
    if (loaded)
        loaded->loaded_axes |= 1u << tt_buffer_axis(tt_operand(op, 0)->layout);
}

/* What is loaded for a buffer has its pointers and masks in the same threads. */
static void spread_stored_axes(LayoutGroups *g, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        const Group *loaded = op->opcode == OP_load ? group_of(g, op->results[0]) : NULL;
        for (int i = 0; loaded && i < op->operand_count; i++) {
            Group *group = group_of(g, tt_operand(op, i));
            if (group) {
                group->is_spread |= loaded->stored_axes && !group->stored_axes;
                group->stored_axes |= loaded->stored_axes;
            }
        }
        for (int i = 0; i < op->region_count; i++)
            spread_stored_axes(g, op->regions[i]);
    }
}

/* Sums that are still under way cannot be converted: where another product is in the group, wgmma's layout is taken. */
static void decide_by_product(const LayoutGroups *g, const Op *op)
{
    Group *group = group_of(g, op->results[0]);
    if (op->opcode == OP_dot && group->is_under_way)
        return;
    group->is_under_way = op->opcode == OP_wgmma;
    group->layout = tt_is_on_tensor_cores(op) ? tt_product_layout(g->module, op)
                                              : tt_dot_layout(g->module, group->type, g->options->num_warps);
}

static void note_accessed(LayoutGroups *g, const Value *value, int depth)
{
    Group *group = group_of(g, value);
    if (!group)
        return;
    group->is_accessed = true;
    group->access_depth = TT_MAX(group->access_depth, depth);
}

static const Value *accessed_value(const Op *op)
{
    return op->opcode == OP_load ? op->results[0] : tt_operand(op, op->operand_count > 1);
}

static void note_conversions(LayoutGroups *g, const Op *op, int depth)
{
    Group *group = accesses_memory(op) ? group_of(g, accessed_value(op)) : NULL;
    if (group)
        group->accesses += times_run(depth);
}

/* Atomics of integers go one by one. Those of neighbours had better be neighbouring lanes': the second cache takes a request for
 * each sector that a warp updates at once. So had those of compare and swap, which have no mask: what is not to change
 * anything swaps somewhere aside. */
static void note_updated(LayoutGroups *g, const Op *op)
{
    Preference preference;
    bool swaps = op->opcode == OP_atomic_cas, updates = op->opcode == OP_atomic_rmw;
    if (!(swaps || updates) || !tt_is_tile(op->results[0]->type) || tt_is_float(op->results[0]->type) ||
        !(swaps || is_strong(g, op, &preference)))
        return;
    for (int i = 0; i < op->operand_count; i++) {
        Group *group = group_of(g, tt_operand(op, i));
        if (group)
            group->is_updated = true;
    }
}

static void collect_edges(LayoutGroups *g, const Region *region, int depth)
{
    TT_FOR_OPS(op, region)
    {
        note_updated(g, op);
        for (int i = 0; i < op->operand_count && accesses_memory(op); i++)
            note_accessed(g, tt_operand(op, i), depth);
        for (int i = 0; i < op->result_count && accesses_memory(op); i++)
            note_accessed(g, op->results[i], depth);
        note_conversions(g, op, depth);
        note_combined_axes(g, op, depth);
        note_stored_axes(g, op);
        if (op->opcode == OP_dot || op->opcode == OP_wgmma)
            decide_by_product(g, op);
        bool carries =
            (tt_has(op, SHAPE) || op->opcode == OP_reduce || op->opcode == OP_gather) && op->result_count;
        for (int i = 0; carries && i < op->operand_count; i++) {
            Edge edge = {op, i, group_of(g, tt_operand(op, i)), group_of(g, op->results[0]), depth};
            if (edge.from && edge.to && edge.from != edge.to)
                tt_push(g->arena, g->edges, edge);
        }
        for (int i = 0; i < op->region_count; i++)
            collect_edges(g, op->regions[i], depth + tt_is_loop(op));
    }
}

static const Preference *best_vote(const Group *group)
{
    const Preference *best = NULL;
    for (int i = 0; i < group->votes.count; i++)
        if (!best || group->votes.data[i].weight > best->weight)
            best = &group->votes.data[i];
    return best;
}

/* The dimension that lies fastest where the tile goes permuted, or -1. Threads that hold neighbours along it too
 * exchange whole vectors. */
static int permuted_axis(const LayoutGroups *g, const Group *group)
{
    for (int i = 0; i < g->edges.count; i++) {
        const Edge *edge = &g->edges.data[i];
        const Preference *vote = best_vote(root(edge->to));
        if (edge->op->opcode == OP_permute && root(edge->from) == group && vote)
            return (int)tt_find_attr(edge->op, ATTR_order)->ints[vote->order[0]];
    }
    return -1;
}

/* The dimension that lies fastest for members that the best vote does not suit, or -1: they cross shared memory as what
 * goes permuted does. */
static int other_axis(const Group *group, const Preference *best)
{
    for (int i = 0; i < group->votes.count; i++)
        if (group->votes.data[i].order[0] != best->order[0])
            return group->votes.data[i].order[0];
    return -1;
}

/* A network along a dimension that does not lie fastest in memory has that in registers, as much as is a thread's share; of
 * the fastest a thread has a word then. */
static const LinearLayout *exchanged_in_registers(const LayoutGroups *g, const Group *group,
                                                  const Preference *best)
{
    enum { WORD = 4 /* bytes */ };
    int axis = __builtin_ctz(group->exchanged_axes), fastest = best->order[0];
    int64_t share = tt_next_pow2(tt_elements_per_thread(group->type, g->options->num_warps)),
            extent = tt_next_pow2(group->type->shape[axis]), size[TT_MAX_RANK] = {0},
            combined[TT_MAX_RANK] = {0};
    size[fastest] = TT_MIN(best->vector, TT_MAX(TT_MAX(1, WORD / best->bytes), share / extent));
    size[axis] = TT_MIN(extent, TT_MAX(1, share / size[fastest]));
    combined[axis] = 1;
    return tt_blocked_by(g->module, group->type, best->order, size, combined, best->lanes,
                         g->options->num_warps);
}

static const LinearLayout *voted(const LayoutGroups *g, const Group *group)
{
    const Preference *best = best_vote(group);
    if (!best)
        return NULL;
    if (group->is_updated)
        return tt_blocked(g->module, group->type, best->order, 1, TT_LANES, g->options->num_warps);
    if (group->exchanged_axes && !(group->exchanged_axes >> best->order[0] & 1))
        return exchanged_in_registers(g, group, best);
    int64_t size[TT_MAX_RANK] = {0};
    enum {
        VECTOR = 16 /* bytes */,
        SECTORS = 64 /* bytes that lanes take before others go along the next dimension */
    };
    int axis = permuted_axis(g, group);
    if (axis < 0)
        axis = other_axis(group, best);
    int64_t neighbours = best->vector;
    if (axis < 0 && best->next > 1) {
        axis = best->order[1];
        neighbours = best->next;
    }
    bool turned = group->stored_axes && !(group->stored_axes >> best->order[0] & 1);
    if (turned) /* neighbours in the buffer, too, and lanes whose vectors lie in different banks there */
        axis = __builtin_ctz(group->stored_axes);
    size[best->order[0]] = best->vector;
    if (axis >= 0 && axis != best->order[0]) {
        int64_t left =
            tt_next_pow2(tt_elements_per_thread(group->type, g->options->num_warps)) / best->vector;
        size[axis] = TT_MIN(turned ? TT_MAX(1, VECTOR / best->bytes) : neighbours, left);
    }
    int64_t lanes = turned ? TT_MIN(TT_LANES, SECTORS / (best->vector * best->bytes)) : best->lanes;
    return tt_blocked_by(g->module, group->type, best->order, size, group->combined, lanes,
                         g->options->num_warps);
}

/* Tiles that are broadcast, as they are or in another shape. */
static void note_broadcasts(LayoutGroups *g)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < g->edges.count; i++) {
            const Edge *edge = &g->edges.data[i];
            Group *from = root(edge->from);
            bool reshapes = edge->op->opcode == OP_expand_dims || edge->op->opcode == OP_reshape;
            if (from->is_broadcast ||
                !(edge->op->opcode == OP_broadcast || (reshapes && root(edge->to)->is_broadcast)))
                continue;
            from->is_broadcast = changed = true;
        }
    }
}

/* The dimensions that a tile of `type` has of one that it is broadcast to. */
static uint32_t axes_of(const Type *type)
{
    uint32_t axes = 0;
    for (int i = 0; i < type->rank; i++)
        axes |= (uint32_t)(type->shape[i] > 1) << i;
    return axes;
}

/* What a group is made of and reduced to. False: there is more to it, a neighbour has its layout already, or nothing is
 * reduced. */
static bool collect_uses(const LayoutGroups *g, const Group *group, TileUse *uses, int *count)
{
    uint32_t all = (1u << group->type->rank) - 1;
    bool reduces = false;
    *count = 0;
    for (int i = 0; i < g->edges.count; i++) {
        const Edge *edge = &g->edges.data[i];
        const Group *from = root(edge->from), *to = root(edge->to);
        if (from != group && to != group)
            continue;
        TileUse use = {.weight = times_run(edge->depth), .combines = from == group};
        if (use.combines ? edge->op->opcode != OP_reduce : edge->op->opcode != OP_broadcast || from->layout)
            return false;
        use.axes = use.combines ? all & ~(1u << tt_int_attr(edge->op, ATTR_axis, 0)) : axes_of(from->type);
        reduces |= use.combines;
        uses[(*count)++] = use;
    }
    return reduces;
}

static bool is_reduced_in_loop(const LayoutGroups *g, const Group *group)
{
    for (int i = 0; i < g->edges.count; i++) {
        const Edge *edge = &g->edges.data[i];
        if (root(edge->from) == group && edge->op->opcode == OP_reduce && edge->depth > group->access_depth)
            return true;
    }
    return false;
}

/* What loops reduce, and accesses are outside of these, is shared out so that reductions take the least work, if that
 * saves more than its accesses take then: trips through shared memory, or sectors in several turns. */
static const LinearLayout *by_work(const LayoutGroups *g, const Group *group)
{
    enum { TRIP = 150, TRIP_OF_ELEMENT = 2, TURNS = 50 /* instructions */ };
    int count, warps = g->options->num_warps;
    TileUse *uses = TT_NEW_ARRAY(g->arena, TileUse, g->edges.count);
    if (!group->is_voted || group->is_updated || group->stored_axes || group->loaded_axes ||
        !is_reduced_in_loop(g, group) || !collect_uses(g, group, uses, &count))
        return group->layout;
    const LinearLayout *layout = tt_layout_of_least_work(g->module, group->type, uses, count, warps);
    if (!layout)
        return group->layout;
    int64_t saved = tt_work_in(group->layout, uses, count) - tt_work_in(layout, uses, count), each = TURNS;
    for (int i = 0; i < group->votes.count; i++) {
        const Preference *vote = &group->votes.data[i];
        if (!tt_suits(layout, vote))
            each = TRIP + TRIP_OF_ELEMENT * tt_elements_per_thread(group->type, warps);
        else if (!tt_suits_in_vectors(layout, vote))
            return group->layout;
    }
    return saved > each * group->accesses ? layout : group->layout;
}

/* Does the edge lead to what a loop adds up, a reduction's result or a tile in another shape, and are accesses of that
 * outside of the loop? */
static bool sums_in_loop(const Edge *edge)
{
    const Group *to = root(edge->to);
    bool widens = edge->op->opcode == OP_broadcast || edge->op->opcode == OP_gather;
    return !widens && to->is_accessed && edge->depth > to->access_depth;
}

static void note_sums(LayoutGroups *g)
{
    for (int i = 0; i < g->edges.count; i++)
        root(g->edges.data[i].to)->is_summed |= sums_in_loop(&g->edges.data[i]);
}

/* Groups that are broadcast come after those that they are broadcast to, sums after what is added up, so that they are
 * converted once, behind the loop, and masks after what they mask. */
static void decide_by_votes(LayoutGroups *g, bool all)
{
    for (int i = 0; i < g->all.count; i++) {
        Group *group = g->all.data[i];
        if (!group->parent && !group->layout &&
            (all || !(group->is_broadcast || group->is_summed || group->is_masks))) {
            group->layout = voted(g, group);
            group->is_voted = group->layout != NULL;
            group->layout = by_work(g, group);
        }
    }
}

/* Are the accesses of a group as good in a layout in which several threads may have an element? To load the weights of
 * columns in all warps that have rows costs less than to pass them on through shared memory, behind a barrier. */
static bool can_access(const LayoutGroups *g, const Group *group, const LinearLayout *layout)
{
    enum { MOST_THREADS = 4 /* that load an element */, CACHED = 32 << 10 /* bytes */ };
    int64_t share = tt_elements_per_thread(group->type, g->options->num_warps),
            has = 1ll << layout->in_bits[LAYOUT_REGISTER];
    for (int i = 0; i < group->votes.count; i++) {
        const Preference *vote = &group->votes.data[i];
        bool repeats =
            vote->can_repeat && has <= MOST_THREADS * share && group->type->count * vote->bytes <= CACHED;
        if (!tt_suits(layout, vote) || (has > share && !repeats))
            return false;
    }
    return true;
}

/* ---- indices --------------------------------------------------------------------------------------------------------------------- */

/* Divisions of integers, and what is computed beside them. */
static void note_index_work(LayoutGroups *g, const Region *region, bool is_in_loop)
{
    enum { DIVISION = 20 /* instructions, about */ };
    TT_FOR_OPS(op, region)
    {
        Group *group = op->result_count ? group_of(g, op->results[0]) : NULL;
        if (group && tt_has(op, ELEMENTWISE) && tt_is_int(op->results[0]->type)) {
            bool divides = tt_is_costly(op) && tt_is_int(op->results[0]->type);
            group->index_work += divides ? DIVISION : 1;
            group->is_in_loop |= is_in_loop;
        }
        for (int i = 0; i < op->region_count && tt_is_control(op); i++)
            note_index_work(g, op->regions[i], is_in_loop || tt_is_loop(op));
    }
}

/* Would lanes and warps compute the same indices in this layout, at more cost than a trip through shared memory? Then the layout is for the
 * results only, and each thread computes its share: rows of an image, which take divisions, and masks of what lies outside of it. A
 * division alone is not worth a barrier. */
static bool repeats_index_work(const LayoutGroups *g, const Group *group, const LinearLayout *layout)
{
    enum { MUCH = 60, TRIP = 150 /* instructions */ };
    int64_t registers = 1ll << layout->in_bits[LAYOUT_REGISTER],
            share = tt_elements_per_thread(group->type, g->options->num_warps);
    return group->type->rank == 1 && !group->is_in_loop && group->index_work >= MUCH &&
           (registers - share) * group->index_work >= TRIP;
}

/* Ways to follow an edge, the surest first. */
enum { EXACT_FORWARD, EXACT_BACKWARD, WIDENING, EXCHANGING };

/* What products take from registers is best computed where they take it. */
static void decide_by_fragments(LayoutGroups *g, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        for (int i = 0; i < 2 && tt_is_on_tensor_cores(op); i++) {
            Group *group = group_of(g, tt_operand(op, i));
            if (group && !group->layout)
                group->layout = tt_fragment_layout(g->module, op, i);
        }
        for (int i = 0; i < op->region_count; i++)
            decide_by_fragments(g, op->regions[i]);
    }
}

/* Has a thread much more of the tile than its share, if it has all that its elements are broadcast to? So it is where a row of few
 * elements lies across the lanes. */
static bool is_lopsided(const LayoutGroups *g, const LinearLayout *from, const LinearLayout *to)
{
    enum { FEW = 32 /* registers */ };
    int bits = tt_layout_out_total(to);
    int64_t registers = 1ll << (from->in_bits[LAYOUT_REGISTER] + bits - tt_layout_out_total(from)),
            threads = TT_LANES * g->options->num_warps;
    return registers > FEW && registers * threads > 2ll << bits;
}

/* Would several threads have each of the sums that a loop carries, and do what else there is to do with them? */
static bool repeats_sums(const LayoutGroups *g, const Edge *edge, const LinearLayout *layout)
{
    return edge->to->votes.count && sums_in_loop(edge) &&
           1ll << layout->in_bits[LAYOUT_REGISTER] >
               tt_elements_per_thread(edge->to->type, g->options->num_warps);
}

/* Where the pairs of a split lie in different threads, these exchange them; not if the results meet what is broadcast to them, angles
 * by which halves turn: threads should compute few of these. */
static const LinearLayout *after_exchange(const LayoutGroups *g, const Edge *edge)
{
    if (edge->op->opcode != OP_split || !edge->from->layout || edge->to->layout)
        return NULL;
    for (int i = 0; i < g->edges.count; i++)
        if (g->edges.data[i].op->opcode == OP_broadcast && root(g->edges.data[i].to) == edge->to)
            return NULL;
    return tt_split_after_exchange(edge->op, edge->from->layout);
}

static const LinearLayout *follow(const LayoutGroups *g, const Edge *edge, int way)
{
    bool widens = edge->op->opcode == OP_broadcast;
    if (way == EXACT_BACKWARD) {
        const LinearLayout *layout = !edge->from->layout && edge->to->layout
                                         ? tt_layout_backward(edge->op, edge->operand, edge->to->layout)
                                         : NULL;
        bool can_have =
            layout && !repeats_index_work(g, edge->from, layout) && can_access(g, edge->from, layout);
        return can_have ? layout : NULL;
    }
    if (way == EXCHANGING)
        return after_exchange(g, edge);
    const LinearLayout *layout = widens == (way == WIDENING) && edge->from->layout && !edge->to->layout
                                     ? tt_layout_forward(edge->op, edge->operand, edge->from->layout)
                                     : NULL;
    bool suits =
        layout && (widens ? !is_lopsided(g, edge->from->layout, layout) : !repeats_sums(g, edge, layout));
    return suits ? layout : NULL;
}

static bool decide_by_edges(LayoutGroups *g, int last_way)
{
    for (int way = 0; way <= last_way; way++)
        for (int i = 0; i < g->edges.count; i++) {
            Edge *edge = &g->edges.data[i];
            edge->from = root(edge->from);
            edge->to = root(edge->to);
            const LinearLayout *layout = follow(g, edge, way);
            if (layout) {
                (way == EXACT_BACKWARD ? edge->from : edge->to)->layout = layout;
                return true;
            }
        }
    return false;
}

/* Registers of a thread for all that is broadcast to the group, if that has this layout. Groups may lead to each other: each is
 * asked once, and is in `asked` then. */
static int64_t broadcast_registers(const LayoutGroups *g, Group *group, const LinearLayout *layout,
                                   Map *asked)
{
    int64_t registers = 0;
    *tt_map_slot_ptr(asked, group) = group;
    for (int i = 0; i < g->edges.count; i++) {
        const Edge *edge = &g->edges.data[i];
        Group *from = root(edge->from);
        if (root(edge->to) != group || edge->op->opcode == OP_reduce || edge->op->opcode == OP_gather)
            continue;
        const LinearLayout *source = tt_layout_backward(edge->op, edge->operand, layout);
        if (source && edge->op->opcode == OP_broadcast)
            registers += 1ll << source->in_bits[LAYOUT_REGISTER];
        else if (source && !tt_map_find_ptr(asked, from))
            registers += broadcast_registers(g, from, source, asked);
    }
    return registers;
}

/* Whole vectors along `axis`: lanes go on along it, or each thread has as much of it as is its share. */
static const LinearLayout *along_buffer(const LayoutGroups *g, const Group *group, int axis, bool in_thread)
{
    int order[TT_MAX_RANK] = {axis}, rank = group->type->rank;
    for (int other = rank - 1, at = 1; other >= 0; other--)
        if (other != axis)
            order[at++] = other;
    int64_t share = tt_next_pow2(tt_elements_per_thread(group->type, g->options->num_warps)),
            vectors[TT_MAX_RANK] = {0};
    vectors[axis] = in_thread ? share : TT_MIN(share, 16 / TT_MIN(16, tt_byte_width(group->type)));
    return tt_blocked_by(g->module, group->type, order, vectors, group->combined, TT_LANES,
                         g->options->num_warps);
}

/* What only goes to buffers, or only comes from them, goes in whole vectors: decides one group. Buffers take vectors of a row
 * as well as those of rows, so that scales of a row, say, are in as few threads as possible. Pointers and masks of what is
 * loaded for one follow that: pointers are wider, and would cross shared memory. */
static bool decide_one_by_buffer(LayoutGroups *g, bool stored)
{
    for (int i = 0; i < g->all.count; i++) {
        Group *group = g->all.data[i];
        uint32_t axes = stored ? group->stored_axes : group->loaded_axes;
        if (group->parent || group->layout || !axes || (stored && group->is_spread))
            continue;
        const LinearLayout *layouts[2];
        int64_t registers[2];
        for (int in_thread = 0; in_thread < 2; in_thread++) {
            Map asked = {.arena = g->arena};
            layouts[in_thread] = along_buffer(g, group, __builtin_ctz(axes), in_thread);
            registers[in_thread] = broadcast_registers(g, group, layouts[in_thread], &asked);
        }
        bool in_thread = registers[1] < registers[0];
        group->layout = layouts[in_thread];
        return true;
    }
    return false;
}

/* What is only broadcast to, and reduced, takes as little work as can be: decides one group. */
static bool decide_one_by_work(LayoutGroups *g)
{
    TileUse *uses = TT_NEW_ARRAY(g->arena, TileUse, g->edges.count);
    for (int i = 0, count; i < g->all.count; i++) {
        Group *group = g->all.data[i];
        if (group->parent || group->layout || group->type->rank < 2 || group->is_accessed ||
            !collect_uses(g, group, uses, &count))
            continue;
        group->layout = tt_layout_of_least_work(g->module, group->type, uses, count, g->options->num_warps);
        if (group->layout)
            return true;
    }
    return false;
}

static const LinearLayout *layout_of_accessed(const LayoutGroups *g, const Op *op)
{
    return tt_group_layout(g, accessed_value(op));
}

/* Masks of accesses that mind are in the same threads as what these load or store. */
static void decide_masks(LayoutGroups *g, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        Preference preference;
        bool minds = accesses_memory(op) && is_strong(g, op, &preference);
        for (int i = 0; i < op->operand_count && minds; i++) {
            Group *group = group_of(g, tt_operand(op, i));
            if (group && group->is_masks && !group->layout)
                group->layout = tt_memory_layout(g, op);
        }
        for (int i = 0; i < op->region_count; i++)
            decide_masks(g, op->regions[i]);
    }
}

/* Pointers and masks of an access that does not mind are in the same threads as what it loads or stores; unless several
 * threads have each element there, who would all compute what was too much work to repeat. */
static bool decide_by_accessed(LayoutGroups *g, const Region *region)
{
    bool changed = false;
    TT_FOR_OPS(op, region)
    {
        Preference preference;
        bool minds = !accesses_memory(op) || is_strong(g, op, &preference);
        const LinearLayout *layout = minds ? NULL : layout_of_accessed(g, op);
        if (layout && 1ll << layout->in_bits[LAYOUT_REGISTER] >
                          tt_elements_per_thread(tt_operand(op, 0)->type, g->options->num_warps))
            layout = NULL;
        for (int i = 0; layout && i < op->operand_count; i++) {
            Group *group = group_of(g, tt_operand(op, i));
            if (group && !group->layout) {
                group->layout = layout;
                changed = true;
            }
        }
        for (int i = 0; i < op->region_count; i++)
            changed |= decide_by_accessed(g, op->regions[i]);
    }
    return changed;
}

static bool decide_one_by_default(LayoutGroups *g)
{
    for (int i = 0; i < g->all.count; i++) {
        Group *group = g->all.data[i];
        if (!group->parent && !group->layout) {
            group->layout = tt_default_layout(g->module, group->type, g->options->num_warps);
            return true;
        }
    }
    return false;
}

typedef struct Move {
    LayoutGroups *g;
    const Group *group;
    const LinearLayout *layout;
    bool suits;
} Move;

static void check_access(Op *op, void *context)
{
    Move *move = context;
    Preference preference;
    bool is_member = false;
    for (int i = 0; i < op->operand_count; i++)
        is_member |= group_of(move->g, tt_operand(op, i)) == move->group;
    for (int i = 0; i < op->result_count; i++)
        is_member |= group_of(move->g, op->results[i]) == move->group;
    if (is_member && accesses_memory(op) && is_strong(move->g, op, &preference))
        move->suits &= tt_suits(move->layout, &preference);
}

static bool has_edges(const LayoutGroups *g, const Group *group)
{
    for (int i = 0; i < g->edges.count; i++)
        if (root(g->edges.data[i].from) == group || root(g->edges.data[i].to) == group)
            return true;
    return false;
}

/* Indices of a table that are loaded in vectors, for elements that another layout wants: the group takes that if its own
 * accesses are about as good there, so that indices do not cross shared memory. */
static void move_to_accessed(LayoutGroups *g, Function *function, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        Preference preference;
        bool minds = !accesses_memory(op) || is_strong(g, op, &preference);
        Group *group = minds ? NULL : group_of(g, tt_operand(op, 0));
        Move move = {g, group, group ? layout_of_accessed(g, op) : NULL, true};
        if (move.layout && move.layout != group->layout && group->is_voted && !has_edges(g, group) &&
            1ll << move.layout->in_bits[LAYOUT_REGISTER] <=
                tt_elements_per_thread(tt_operand(op, 0)->type, g->options->num_warps)) {
            tt_walk(function->body, check_access, &move);
            group->layout = move.suits ? move.layout : group->layout;
            group->is_voted = !move.suits;
        }
        for (int i = 0; i < op->region_count; i++)
            move_to_accessed(g, function, op->regions[i]);
    }
}

static void follow_back(LayoutGroups *g)
{
    while (decide_by_edges(g, EXACT_BACKWARD))
        ;
}

LayoutGroups *tt_group_layouts(Function *function, const GpuOptions *options, Arena *arena)
{
    LayoutGroups *g = TT_NEW(arena, LayoutGroups);
    *g = (LayoutGroups){
        .module = function->module, .options = options, .arena = arena, .groups = {.arena = arena}};
    g->axis_infos = tt_analyze_axis_info(function, arena);
    build_groups(g, function->body);
    collect_edges(g, function->body, 0);
    spread_exchanged_axes(g);
    spread_stored_axes(g, function->body);
    note_index_work(g, function->body, false);
    collect_votes(g, function->body, 0, false);
    note_broadcasts(g);
    note_sums(g);
    decide_by_votes(g, false);
    follow_back(g);
    decide_by_fragments(g, function->body);
    follow_back(g);
    for (int stored = 1; stored >= 0; stored--)
        while (decide_one_by_buffer(g, stored))
            follow_back(g);
    decide_masks(g, function->body);
    follow_back(g);
    decide_by_votes(g, true);
    follow_back(g);
    while (decide_by_accessed(g, function->body))
        follow_back(g);
    while (decide_one_by_work(g))
        follow_back(g);
    collect_votes(g, function->body, 0, true);
    decide_by_votes(g, true);
    while (decide_by_edges(g, EXCHANGING) || decide_one_by_default(g))
        ;
    move_to_accessed(g, function, function->body);
    return g;
}

const LinearLayout *tt_group_layout(const LayoutGroups *g, const Value *value)
{
    const Group *group = group_of(g, value);
    return group ? group->layout : NULL;
}

/* ---- memory operations ------------------------------------------------------------------------------------------------------ */

const LinearLayout *tt_memory_layout(const LayoutGroups *g, const Op *op)
{
    const Type *type = tt_operand(op, 0)->type;
    const LinearLayout *layout = op->opcode == OP_load ? tt_group_layout(g, op->results[0]) : NULL;
    for (int i = op->operand_count - 1; i >= 0 && !layout; i--)
        if (i != 2 || op->opcode == OP_atomic_cas)
            layout = tt_group_layout(g, tt_operand(op, i));
    Preference preference;
    bool copies =
        op->opcode == OP_async_copy && tt_preference_of(g->axis_infos, op, g->options->num_warps,
                                                        &preference); /* 4 bytes at least, however few */
    bool strong = copies || is_strong(g, op, &preference);
    bool fits = type->count * tt_byte_width(type->element->element) <= tt_shared_limit(g->options->sm);
    /* a load whose pointers would have to move as well: one of an image's neighbours, of which a few lie in vectors */
    bool has_pointers = op->opcode == OP_load && tt_group_layout(g, tt_operand(op, 0)) == layout;
    if (layout && (!strong || !fits || tt_suits(layout, &preference) ||
                   (has_pointers && tt_suits_by_element(layout, &preference))))
        return layout;
    return tt_blocked(g->module, type, preference.order, preference.vector, preference.lanes,
                      g->options->num_warps);
}
