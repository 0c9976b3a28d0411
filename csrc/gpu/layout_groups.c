/* Which tiles have one layout, and what speaks for which: values that elementwise operations, loops and branches tie together
 * form a group. Memory operations vote for the layout that makes their widest vectors contiguous across lanes; shape
 * operations and reductions are edges, along which neighbours carry theirs over; and what else becomes of its members is
 * noted with a group. Values that are cheap to make in any layout (indices, masks, constants) belong to no group: they
 * are made wherever they are wanted (assign_layouts.c). */
#include "gpu/layout_groups.h"

Group *groups_of(const LayoutGroups *g, const Value *value)
{
    Group *group = tt_is_tile(value->type) ? tt_map_find_ptr(&g->groups, value) : NULL;
    return group && !group->is_cheap ? groups_root(group) : NULL;
}

static void tie(const LayoutGroups *g, const Value *a, const Value *b)
{
    Group *group_a = groups_of(g, a), *group_b = groups_of(g, b);
    if (group_a && group_b && group_a != group_b) {
        group_a->is_masks &= group_b->is_masks;
        group_b->parent = group_a;
    }
}

/* ---- groups ---------------------------------------------------------------------------------------------------------------------- */

static void add_value(LayoutGroups *g, const Value *value)
{
    if (!tt_is_tile(value->type))
        return;
    Group *group = TT_NEW(g->arena, Group);
    group->type = value->type;
    group->is_cheap = tt_cheap_size(value, &g->sizes) > 0;
    group->is_masks = tt_is_bool(value->type);
    *tt_map_slot_ptr(&g->groups, value) = group;
    if (!group->is_cheap)
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

/* ---- votes of memory operations -------------------------------------------------------------------------------------------------- */

bool groups_is_access(const Op *op) { return tt_has(op, ACCESS) && tt_is_tile(tt_operand(op, 0)->type); }

/* What is gathered for a buffer minds, too, if all that is known is which dimension lies farther apart. */
bool groups_minds(const LayoutGroups *g, const Op *op, Preference *preference)
{
    const Type *type = tt_operand(op, 0)->type;
    const Group *loaded = op->opcode == OP_load ? groups_of(g, op->results[0]) : NULL;
    bool minds = tt_preference_of(g->axis_infos, op, g->options, preference) ||
                 (preference->by_distance && loaded && loaded->stored_axes);
    return minds && type->count >= 2 * TT_LANES * g->options->num_warps;
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
    Group *group = groups_of(g, value);
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
        if (groups_is_access(op) && groups_minds(g, op, &preference) != weak)
            vote_everywhere(g, op, preference, depth);
        for (int i = 0; i < op->region_count; i++)
            collect_votes(g, op->regions[i], depth + tt_is_loop(op), weak);
    }
}

/* ---- what becomes of members ----------------------------------------------------------------------------------------------------- */

static void note_combined_axes(LayoutGroups *g, const Op *op, int depth)
{
    uint64_t distance;
    bool exchanges = op->opcode == OP_gather && tt_gathers_at_distance(op, &distance),
         combines = op->opcode == OP_reduce || op->opcode == OP_scan;
    Group *group = exchanges || combines ? groups_of(g, tt_operand(op, 0)) : NULL;
    if (!group)
        return;
    int64_t axis = tt_int_attr(op, ATTR_axis, 0);
    group->combined[axis] += times_run(depth);
    group->scanned_axes |= (uint32_t)(op->opcode == OP_scan) << axis;
    group->exchanged_axes |= (uint32_t)exchanges << axis;
}

static void note_stored_axes(LayoutGroups *g, const Op *op)
{
    bool stores = (op->opcode == OP_smem_alloc && op->operand_count) || op->opcode == OP_smem_store;
    Group *group = stores ? groups_of(g, tt_operand(op, 0)) : NULL;
    const Value *buffer = op->opcode == OP_smem_store ? tt_operand(op, 1) : stores ? op->results[0] : NULL;
    if (group)
        group->stored_axes |= 1u << tt_buffer_axis(buffer->layout);
    Group *loaded = op->opcode == OP_smem_load ? groups_of(g, op->results[0]) : NULL;
    if (loaded)
        loaded->loaded_axes |= 1u << tt_buffer_axis(tt_operand(op, 0)->layout);
}

static void note_accessed(LayoutGroups *g, const Value *value, int depth)
{
    Group *group = groups_of(g, value);
    if (!group)
        return;
    group->is_accessed = true;
    group->access_depth = TT_MAX(group->access_depth, depth);
}

const Value *groups_accessed_value(const Op *op)
{
    return op->opcode == OP_load ? op->results[0] : tt_operand(op, op->operand_count > 1);
}

static void note_conversions(LayoutGroups *g, const Op *op, int depth)
{
    Group *group = groups_is_access(op) ? groups_of(g, groups_accessed_value(op)) : NULL;
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
        !(swaps || groups_minds(g, op, &preference)))
        return;
    for (int i = 0; i < op->operand_count; i++) {
        Group *group = groups_of(g, tt_operand(op, i));
        if (group)
            group->is_updated = true;
    }
}

/* Divisions of integers, and what is computed beside them. */
static void note_index_work(LayoutGroups *g, const Region *region, bool is_in_loop)
{
    enum { DIVISION = 20 /* instructions, about */ };
    TT_FOR_OPS(op, region)
    {
        Group *group = op->result_count ? groups_of(g, op->results[0]) : NULL;
        if (group && tt_has(op, ELEMENTWISE))
            group->loop_work += is_in_loop;
        if (group && tt_has(op, ELEMENTWISE) && tt_is_int(op->results[0]->type)) {
            bool divides = tt_is_costly(op) && tt_is_int(op->results[0]->type);
            group->index_work += divides ? DIVISION : 1;
            group->is_in_loop |= is_in_loop;
        }
        for (int i = 0; i < op->region_count && tt_is_control(op); i++)
            note_index_work(g, op->regions[i], is_in_loop || tt_is_loop(op));
    }
}

/* Loads of which each lane's element lies in a line of its own. */
static void note_loaded_apart(LayoutGroups *g, const Op *op)
{
    Group *group = op->opcode == OP_load ? groups_of(g, op->results[0]) : NULL;
    if (!group || !tt_is_tile(tt_operand(op, 0)->type))
        return;
    const AxisInfo *info = tt_axis_info(g->axis_infos, tt_operand(op, 0));
    bool is_apart = true;
    for (int axis = 0; axis < info->rank; axis++)
        is_apart &= info->contiguity[axis] == 1 && info->constancy[axis] == 1;
    group->is_loaded_apart |= is_apart;
}

/* ---- edges ----------------------------------------------------------------------------------------------------------------------- */

static void collect_edges(LayoutGroups *g, const Region *region, int depth)
{
    TT_FOR_OPS(op, region)
    {
        note_updated(g, op);
        for (int i = 0; i < op->operand_count && groups_is_access(op); i++)
            note_accessed(g, tt_operand(op, i), depth);
        for (int i = 0; i < op->result_count && groups_is_access(op); i++)
            note_accessed(g, op->results[i], depth);
        note_conversions(g, op, depth);
        note_combined_axes(g, op, depth);
        note_stored_axes(g, op);
        note_loaded_apart(g, op);
        bool carries =
            (tt_has(op, SHAPE) || op->opcode == OP_reduce || op->opcode == OP_gather) && op->result_count;
        for (int i = 0; carries && i < op->operand_count; i++) {
            Edge edge = {.op = op,
                         .operand = i,
                         .from = groups_of(g, tt_operand(op, i)),
                         .to = groups_of(g, op->results[0]),
                         .depth = depth,
                         .times = times_run(depth)};
            if (edge.from && edge.to && edge.from != edge.to)
                tt_push(g->arena, g->edges, edge);
        }
        for (int i = 0; i < op->region_count; i++)
            collect_edges(g, op->regions[i], depth + tt_is_loop(op));
    }
}

/* What goes permuted into a network, or comes from it, lies as the network wants it. */
static void spread_exchanged_axes(LayoutGroups *g)
{
    for (int i = 0; i < g->edges.count; i++) {
        const Edge *edge = &g->edges.data[i];
        Group *from = groups_root(edge->from), *to = groups_root(edge->to);
        const Attr *order = edge->op->opcode == OP_permute ? tt_find_attr(edge->op, ATTR_order) : NULL;
        for (int axis = 0; order && axis < order->count; axis++) {
            from->exchanged_axes |= (to->exchanged_axes >> axis & 1) << order->ints[axis];
            to->exchanged_axes |= (from->exchanged_axes >> order->ints[axis] & 1) << axis;
        }
    }
}

/* What is loaded for a buffer has its pointers and masks in the same threads. */
static void spread_stored_axes(LayoutGroups *g, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        const Group *loaded = op->opcode == OP_load ? groups_of(g, op->results[0]) : NULL;
        for (int i = 0; loaded && i < op->operand_count; i++) {
            Group *group = groups_of(g, tt_operand(op, i));
            if (group) {
                group->is_spread |= loaded->stored_axes && !group->stored_axes;
                group->stored_axes |= loaded->stored_axes;
            }
        }
        for (int i = 0; i < op->region_count; i++)
            spread_stored_axes(g, op->regions[i]);
    }
}

/* Tiles that are broadcast, as they are or in another shape. */
static void note_broadcasts(LayoutGroups *g)
{
    for (bool changed = true; changed;) {
        changed = false;
        for (int i = 0; i < g->edges.count; i++) {
            const Edge *edge = &g->edges.data[i];
            Group *from = groups_root(edge->from);
            bool reshapes = edge->op->opcode == OP_expand_dims || edge->op->opcode == OP_reshape;
            if (from->is_broadcast ||
                !(edge->op->opcode == OP_broadcast || (reshapes && groups_root(edge->to)->is_broadcast)))
                continue;
            from->is_broadcast = changed = true;
        }
    }
}

/* Columns or rows that are loaded apart reach larger tiles as they are, or with a dimension of one element more. */
static void spread_apart_axes(LayoutGroups *g)
{
    for (int i = 0; i < g->edges.count; i++) {
        const Edge *edge = &g->edges.data[i];
        if (edge->op->opcode == OP_expand_dims && groups_root(edge->from)->is_loaded_apart)
            groups_root(edge->to)->is_loaded_apart = true;
    }
    for (int i = 0; i < g->edges.count; i++) {
        const Edge *edge = &g->edges.data[i];
        const Group *from = groups_root(edge->from);
        for (int axis = 0; edge->op->opcode == OP_broadcast && axis < from->type->rank; axis++)
            if (from->is_loaded_apart && from->type->shape[axis] > 1)
                groups_root(edge->to)->apart_axes |= 1u << axis;
    }
}

/* Does the edge lead to what a loop adds up, a reduction's result or a tile in another shape, and are accesses of that
 * outside of the loop? */
bool groups_sums_in_loop(const Edge *edge)
{
    const Group *to = groups_root(edge->to);
    bool widens = edge->op->opcode == OP_broadcast || edge->op->opcode == OP_gather;
    return !widens && to->is_accessed && edge->depth > to->access_depth;
}

static void note_sums(LayoutGroups *g)
{
    for (int i = 0; i < g->edges.count; i++)
        groups_root(g->edges.data[i].to)->is_summed |= groups_sums_in_loop(&g->edges.data[i]);
}

/* ---- agendas --------------------------------------------------------------------------------------------------------------------- */

enum { WORD = 64 };

static Agenda new_agenda(Arena *arena, int count)
{
    return (Agenda){TT_NEW_ARRAY(arena, uint64_t, count / WORD + 1), count};
}

static void put_on(Agenda *agenda, int number) { agenda->words[number / WORD] |= 1ull << number % WORD; }

void groups_strike(Agenda *agenda, int number) { agenda->words[number / WORD] &= ~(1ull << number % WORD); }

int groups_next_of(const Agenda *agenda, int from)
{
    for (int word = from / WORD; from < agenda->count && word <= agenda->count / WORD; word++) {
        uint64_t left = agenda->words[word];
        if (word == from / WORD)
            left &= ~0ull << from % WORD;
        if (left)
            return word * WORD + __builtin_ctzll(left);
    }
    return -1;
}

void groups_place(LayoutGroups *g, Group *group, const LinearLayout *layout)
{
    group->layout = layout;
    for (int i = 0; i < group->edge_count; i++)
        for (int way = 0; way < EDGE_WAYS; way++)
            put_on(&g->to_follow[way], group->edges[i]);
    for (int i = 0; i < group->weak.count; i++)
        put_on(&g->to_access, group->weak.data[i]);
}

static void collect_weak(LayoutGroups *g, const Region *region)
{
    TT_FOR_OPS(op, region)
    {
        Preference preference;
        Group *group = groups_is_access(op) && !groups_minds(g, op, &preference)
                           ? groups_of(g, groups_accessed_value(op))
                           : NULL;
        if (group) {
            tt_push(g->arena, group->weak, g->weak.count);
            tt_push(g->arena, g->weak, op);
        }
        for (int i = 0; i < op->region_count; i++)
            collect_weak(g, op->regions[i]);
    }
}

/* Groups do not change any more: each knows its edges, and accesses that wait for its layout. */
static void make_agendas(LayoutGroups *g, const Function *function)
{
    for (int i = 0; i < g->edges.count; i++) {
        Edge *edge = &g->edges.data[i];
        edge->from = groups_root(edge->from);
        edge->to = groups_root(edge->to);
        edge->from->edge_count++;
        edge->to->edge_count += edge->to != edge->from;
    }
    int *numbers = TT_NEW_ARRAY(g->arena, int, 2 * g->edges.count);
    for (int i = 0; i < g->all.count; i++) {
        Group *group = g->all.data[i];
        group->edges = numbers;
        numbers += group->edge_count;
        group->edge_count = 0;
    }
    for (int i = 0; i < g->edges.count; i++) {
        const Edge *edge = &g->edges.data[i];
        edge->from->edges[edge->from->edge_count++] = i;
        if (edge->to != edge->from)
            edge->to->edges[edge->to->edge_count++] = i;
    }
    collect_weak(g, function->body);
    for (int way = 0; way < EDGE_WAYS; way++)
        g->to_follow[way] = new_agenda(g->arena, g->edges.count);
    g->to_access = new_agenda(g->arena, g->weak.count);
}

LayoutGroups *groups_collect(const Function *function, const GpuOptions *options, Arena *arena)
{
    LayoutGroups *g = TT_NEW(arena, LayoutGroups);
    *g = (LayoutGroups){.module = function->module,
                        .options = options,
                        .arena = arena,
                        .groups = {.arena = arena},
                        .sizes = {.arena = arena}};
    g->axis_infos = tt_analyze_axis_info(function, arena);
    build_groups(g, function->body);
    collect_edges(g, function->body, 0);
    spread_exchanged_axes(g);
    spread_stored_axes(g, function->body);
    note_index_work(g, function->body, false);
    note_broadcasts(g);
    spread_apart_axes(g);
    note_sums(g);
    collect_votes(g, function->body, 0, false);
    make_agendas(g, function);
    return g;
}

void groups_add_weak_votes(LayoutGroups *g, const Function *function)
{
    collect_votes(g, function->body, 0, true);
    g->is_weak = true;
}
