/* Which layout each group of tiles has, in the order of tt_decide_layouts. A dot decides alone. The votes of memory operations
 * come next, but for groups that had better be where another is. After each decision what leads to a group takes its layout,
 * if that is exact and suits its own accesses. Groups without a voice take what shape operations and reductions carry
 * over from their neighbours, or lie as is usual. */
#include "gpu/layout_groups.h"
#include <stdlib.h>

/* ---- products -------------------------------------------------------------------------------------------------------------------- */

/* Sums that are still under way cannot be converted: where another product is in the group, wgmma's layout is taken. */
static void decide_by_product(LayoutGroups *g, const Op *op)
{
    Group *group = groups_of(g, op->results[0]);
    if (op->opcode == OP_dot && group->is_under_way)
        return;
    group->is_under_way = op->opcode == OP_wgmma;
    groups_place(g, group,
                 tt_is_on_tensor_cores(op) ? tt_product_layout(g->module, op)
                                           : tt_dot_layout(g->module, group->type, g->options->num_warps));
}

static void decide_by_products(LayoutGroups *g, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        if (tt_is_product(op))
            decide_by_product(g, op);
        for (int i = 0; i < op->region_count; i++)
            decide_by_products(g, op->regions[i]);
    }
}

/* What products take from registers is best computed where they take it. */
static void decide_by_fragments(LayoutGroups *g, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        for (int i = 0; i < 2 && tt_is_on_tensor_cores(op); i++) {
            Group *group = groups_of(g, tt_operand(op, i));
            if (group && !group->layout)
                groups_place(g, group, tt_fragment_layout(g->module, op, i));
        }
        for (int i = 0; i < op->region_count; i++)
            decide_by_fragments(g, op->regions[i]);
    }
}

/* ---- votes ----------------------------------------------------------------------------------------------------------------------- */

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
    for (int i = 0; i < group->edge_count; i++) {
        const Edge *edge = &g->edges.data[group->edges[i]];
        const Preference *vote = edge->op->opcode == OP_permute ? best_vote(edge->to) : NULL;
        if (edge->from == group && vote)
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
    return tt_blocked_by(g->module, group->type, best->order, size, combined, 0, best->lanes,
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
    /* of a row whose elements lie in a line each, few lanes load many in as many turns, and all others the same */
    bool is_apart = group->apart_axes >> best->order[0] & 1;
    int64_t lanes = best->lanes;
    if (turned || is_apart)
        lanes = TT_MIN(lanes, TT_MAX(1, SECTORS / (best->vector * best->bytes)));
    return tt_blocked_by(g->module, group->type, best->order, size, group->combined,
                         is_apart ? group->apart_axes : 0, lanes, g->options->num_warps);
}

/* ---- work of reductions ---------------------------------------------------------------------------------------------------------- */

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
    for (int i = 0; i < group->edge_count; i++) {
        const Edge *edge = &g->edges.data[group->edges[i]];
        TileUse use = {.weight = edge->times, .combines = edge->from == group};
        if (use.combines ? edge->op->opcode != OP_reduce
                         : edge->op->opcode != OP_broadcast || edge->from->layout)
            return false;
        use.axes =
            use.combines ? all & ~(1u << tt_int_attr(edge->op, ATTR_axis, 0)) : axes_of(edge->from->type);
        reduces |= use.combines;
        uses[(*count)++] = use;
    }
    return reduces;
}

static bool is_reduced_in_loop(const LayoutGroups *g, const Group *group)
{
    for (int i = 0; i < group->edge_count; i++) {
        const Edge *edge = &g->edges.data[group->edges[i]];
        if (edge->from == group && edge->op->opcode == OP_reduce && edge->depth > group->access_depth)
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
    TileUse *uses = TT_NEW_ARRAY(g->arena, TileUse, group->edge_count + 1);
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

static void decide_by_vote(LayoutGroups *g, Group *group)
{
    group->layout = voted(g, group);
    group->is_voted = group->layout != NULL;
    if (group->is_voted)
        groups_place(g, group, by_work(g, group));
}

/* Groups that are broadcast come after those that they are broadcast to, sums after what is added up, so that they are
 * converted once, behind the loop, and masks after what they mask. */
static void decide_by_votes(LayoutGroups *g, bool all)
{
    for (int i = 0; i < g->all.count; i++) {
        Group *group = g->all.data[i];
        if (!group->parent && !group->layout &&
            (all || !(group->is_broadcast || group->is_summed || group->is_masks)))
            decide_by_vote(g, group);
    }
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
        const LinearLayout *layout =
            tt_layout_of_least_work(g->module, group->type, uses, count, g->options->num_warps);
        if (layout) {
            groups_place(g, group, layout);
            return true;
        }
    }
    return false;
}

/* ---- neighbours ------------------------------------------------------------------------------------------------------------------ */

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

/* The layout; or, where lanes would all compute the same in a loop, at more cost than to pass it on from lane to lane, one in which
 * each computes a share: scales of rows, of which four lanes have a fragment. */
static const LinearLayout *without_repeated_work(const LayoutGroups *g, const Group *group,
                                                 const LinearLayout *layout)
{
    enum { MUCH = 8, SHUFFLE = 4 /* instructions */ };
    LinearLayout shared = tt_layout_shared_out(layout);
    int64_t all = 1ll << layout->in_bits[LAYOUT_REGISTER], share = 1ll << shared.in_bits[LAYOUT_REGISTER];
    bool gains =
        group->is_accessed && group->loop_work >= MUCH && (all - share) * group->loop_work > SHUFFLE * all;
    return gains ? tt_intern_layout(g->module, &shared) : layout;
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

/* Would several threads have each of the sums that a loop carries, or of those of a small tile, and do what else there is to do
 * with them? */
static bool repeats_sums(const LayoutGroups *g, const Edge *edge, const LinearLayout *layout)
{
    return edge->to->votes.count && (g->is_weak || groups_sums_in_loop(edge)) &&
           1ll << layout->in_bits[LAYOUT_REGISTER] >
               tt_elements_per_thread(edge->to->type, g->options->num_warps);
}

/* Where the pairs of a split lie in different threads, these exchange them; not if the results meet what is broadcast to them, angles
 * by which halves turn: threads should compute few of these. */
static const LinearLayout *after_exchange(const LayoutGroups *g, const Edge *edge)
{
    if (edge->op->opcode != OP_split || !edge->from->layout || edge->to->layout)
        return NULL;
    for (int i = 0; i < edge->to->edge_count; i++) {
        const Edge *other = &g->edges.data[edge->to->edges[i]];
        if (other->op->opcode == OP_broadcast && other->to == edge->to)
            return NULL;
    }
    return tt_split_after_exchange(edge->op, edge->from->layout);
}

static const LinearLayout *follow(const LayoutGroups *g, const Edge *edge, int way)
{
    bool widens = edge->op->opcode == OP_broadcast;
    if (way == EXACT_BACKWARD) {
        const LinearLayout *layout = !edge->from->layout && edge->to->layout
                                         ? tt_layout_backward(edge->op, edge->operand, edge->to->layout)
                                         : NULL;
        if (layout)
            layout = without_repeated_work(g, edge->from, layout);
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

/* What an edge does not say now it does not say before one of its groups has got a layout: votes that come later forbid more. */
static bool decide_by_edges(LayoutGroups *g, int last_way)
{
    for (int way = 0; way <= last_way; way++) {
        Agenda *agenda = &g->to_follow[way];
        for (int i = groups_next_of(agenda, 0); i >= 0; i = groups_next_of(agenda, i + 1)) {
            const Edge *edge = &g->edges.data[i];
            const LinearLayout *layout = follow(g, edge, way);
            if (layout) {
                groups_place(g, way == EXACT_BACKWARD ? edge->from : edge->to, layout);
                return true;
            }
            groups_strike(agenda, i);
        }
    }
    return false;
}

static void follow_back(LayoutGroups *g)
{
    while (decide_by_edges(g, EXACT_BACKWARD))
        ;
}

/* ---- buffers --------------------------------------------------------------------------------------------------------------------- */

/* Registers of a thread for all that is broadcast to the group, if that has this layout. Groups may lead to each other: each is
 * asked once, and is in `asked` then. */
static int64_t broadcast_registers(const LayoutGroups *g, Group *group, const LinearLayout *layout,
                                   Map *asked)
{
    int64_t registers = 0;
    *tt_map_slot_ptr(asked, group) = group;
    for (int i = 0; i < group->edge_count; i++) {
        const Edge *edge = &g->edges.data[group->edges[i]];
        Group *from = edge->from;
        if (edge->to != group || edge->op->opcode == OP_reduce || edge->op->opcode == OP_gather)
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
    return tt_blocked_by(g->module, group->type, order, vectors, group->combined, 0, TT_LANES,
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
        groups_place(g, group, layouts[in_thread]);
        return true;
    }
    return false;
}

/* ---- pointers and masks ---------------------------------------------------------------------------------------------------------- */

static const LinearLayout *layout_of_accessed(const LayoutGroups *g, const Op *op)
{
    return tt_group_layout(g, groups_accessed_value(op));
}

/* Masks of accesses that mind are in the same threads as what these load or store. */
static void decide_masks(LayoutGroups *g, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        Preference preference;
        bool minds = groups_is_access(op) && groups_minds(g, op, &preference);
        for (int i = 0; i < op->operand_count && minds; i++) {
            Group *group = groups_of(g, tt_operand(op, i));
            if (group && group->is_masks && !group->layout)
                groups_place(g, group, tt_memory_layout(g, op));
        }
        for (int i = 0; i < op->region_count; i++)
            decide_masks(g, op->regions[i]);
    }
}

/* Pointers and masks of an access that does not mind are in the same threads as what it loads or stores; unless several
 * threads have each element there, who would all compute what was too much work to repeat. */
static bool decide_by_accessed(LayoutGroups *g)
{
    bool changed = false;
    for (int number = groups_next_of(&g->to_access, 0); number >= 0;
         number = groups_next_of(&g->to_access, number + 1)) {
        Op *op = g->weak.data[number];
        const LinearLayout *layout = layout_of_accessed(g, op);
        groups_strike(&g->to_access, number);
        if (1ll << layout->in_bits[LAYOUT_REGISTER] >
            tt_elements_per_thread(tt_operand(op, 0)->type, g->options->num_warps))
            continue;
        for (int i = 0; i < op->operand_count; i++) {
            Group *group = groups_of(g, tt_operand(op, i));
            if (group && !group->layout) {
                groups_place(g, group, layout);
                changed = true;
            }
        }
    }
    return changed;
}

typedef struct Heavy {
    Group *group;
    int64_t weight;
    int number;
} Heavy;

static int by_weight(const void *a, const void *b)
{
    const Heavy *first = a, *second = b;
    return first->weight != second->weight ? (first->weight < second->weight ? 1 : -1)
                                           : first->number - second->number;
}

/* Of the accesses that do not mind, those that move most: what follows from them, the sums of few rows, need not cross shared
 * memory for its own. */
static void decide_by_weak_votes(LayoutGroups *g)
{
    Heavy *all = TT_NEW_ARRAY(g->arena, Heavy, g->all.count);
    int count = 0;
    for (int i = 0; i < g->all.count; i++) {
        Group *group = g->all.data[i];
        if (!group->parent && !group->layout && group->votes.count)
            all[count++] = (Heavy){group, best_vote(group)->weight, i};
    }
    qsort(all, (size_t)count, sizeof *all, by_weight);
    for (int i = 0; i < count; i++) {
        if (all[i].group->layout)
            continue;
        decide_by_vote(g, all[i].group);
        do
            follow_back(g);
        while (decide_by_accessed(g));
    }
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
        is_member |= groups_of(move->g, tt_operand(op, i)) == move->group;
    for (int i = 0; i < op->result_count; i++)
        is_member |= groups_of(move->g, op->results[i]) == move->group;
    if (is_member && groups_is_access(op) && groups_minds(move->g, op, &preference))
        move->suits &= tt_suits(move->layout, &preference);
}

/* Indices of a table that are loaded in vectors, for elements that another layout wants: the group takes that if its own
 * accesses are about as good there, so that indices do not cross shared memory. */
static void move_to_accessed(LayoutGroups *g, Function *function, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        Preference preference;
        bool minds = !groups_is_access(op) || groups_minds(g, op, &preference);
        Group *group = minds ? NULL : groups_of(g, tt_operand(op, 0));
        Move move = {g, group, group ? layout_of_accessed(g, op) : NULL, true};
        if (move.layout && move.layout != group->layout && group->is_voted && !group->edge_count &&
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

/* ---- all ------------------------------------------------------------------------------------------------------------------------- */

static bool decide_one_by_default(LayoutGroups *g)
{
    for (; g->first_open < g->all.count; g->first_open++) {
        Group *group = g->all.data[g->first_open];
        if (!group->parent && !group->layout) {
            groups_place(g, group, tt_default_layout(g->module, group->type, g->options->num_warps));
            return true;
        }
    }
    return false;
}

LayoutGroups *tt_decide_layouts(Function *function, const GpuOptions *options, Arena *arena)
{
    LayoutGroups *g = groups_collect(function, options, arena);
    decide_by_products(g, function->body);
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
    while (decide_by_accessed(g))
        follow_back(g);
    while (decide_one_by_work(g))
        follow_back(g);
    groups_add_weak_votes(g, function);
    decide_by_weak_votes(g);
    while (decide_by_edges(g, EXCHANGING) || decide_one_by_default(g))
        ;
    move_to_accessed(g, function, function->body);
    return g;
}

const LinearLayout *tt_group_layout(const LayoutGroups *g, const Value *value)
{
    const Group *group = groups_of(g, value);
    return group ? group->layout : NULL;
}

const LinearLayout *tt_memory_layout(const LayoutGroups *g, const Op *op)
{
    const Type *type = tt_operand(op, 0)->type;
    const LinearLayout *layout = op->opcode == OP_load ? tt_group_layout(g, op->results[0]) : NULL;
    for (int i = op->operand_count - 1; i >= 0 && !layout; i--)
        if (i != 2 || op->opcode == OP_atomic_cas)
            layout = tt_group_layout(g, tt_operand(op, i));
    Preference preference;
    bool copies =
        op->opcode == OP_async_copy &&
        tt_preference_of(g->axis_infos, op, g->options, &preference); /* 4 bytes at least, however few */
    bool strong = copies || groups_minds(g, op, &preference);
    bool fits = type->count * tt_byte_width(type->element->element) <= tt_shared_limit(g->options->sm);
    /* a load whose pointers would have to move as well: one of an image's neighbours, of which a few lie in vectors */
    bool has_pointers = op->opcode == OP_load && tt_group_layout(g, tt_operand(op, 0)) == layout;
    if (layout && (!strong || !fits || tt_suits(layout, &preference) ||
                   (has_pointers && tt_suits_by_element(layout, &preference))))
        return layout;
    return tt_blocked(g->module, type, preference.order, preference.vector, preference.lanes,
                      g->options->num_warps);
}
