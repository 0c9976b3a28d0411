/* The shape of a nest: which dimension vectors run along, how wide they are, and the order of the loops. Lanes follow
 * memory: the dimension along which most accesses are consecutive. Where some loads are consecutive along another one,
 * the nest works on square blocks, and those loads are transposed in registers. */
#include "cpu/lower.h"

enum { LIGHT_BLOCK = 24, WIDEST_BLOCK = 16 };

typedef struct Survey {
    Nest *n;
    int bytes, ops;        /* of the widest element that is computed with; operations on an element */
    int runs[TT_MAX_RANK]; /* accesses that are consecutive along a dimension of the nest */
    unsigned loads;        /* bit i: some load is consecutive along dimension i, and along no later one */
} Survey;

/* ---- what is computed ------------------------------------------------------------------------------------------------------- */

static void count_value(Survey *survey, const Value *value, bool as_data)
{
    Lower *l = survey->n->l;
    if (!tt_is_tile(value->type))
        return;
    ValueInfo *info = info_of(value);
    int bytes = tt_byte_width(value->type);
    if (tt_is_float(value->type) && value->op && tt_has(value->op, ON_FLOATS))
        bytes = TT_MAX(bytes, 4);
    if (tt_is_float(value->type) || as_data)
        survey->bytes = TT_MAX(survey->bytes, tt_is_bool(value->type) ? 1 : bytes);
    if (info->seen_any == l->stamp)
        return;
    info->seen_any = l->stamp;
    const Op *op = value->op;
    if (!op || !is_virtual_op(op) || info->stored)
        return;
    survey->ops += op->opcode == OP_load ? 2 : tt_has(op, COSTLY) ? 16 : tt_has(op, ELEMENTWISE) ? 1 : 0;
    for (int i = 0; i < op->operand_count; i++)
        count_value(survey, tt_operand(op, i), false);
}

static void count_sink(Survey *survey, const Sink *sink)
{
    survey->ops++;
    if (sink->value)
        count_value(survey, sink->value, true);
    if (sink->to)
        survey->bytes = TT_MAX(survey->bytes, sink->kind == SINK_PAIRS ? 4 : tt_byte_width(sink->to->type));
    for (int i = 0; sink->op && i < sink->op->operand_count; i++) {
        const Value *operand = tt_operand(sink->op, i);
        bool pointer = tt_is_ptr(operand->type) && tt_has(sink->op, ACCESS);
        count_value(survey, operand, !pointer && !tt_is_bool(operand->type));
    }
}

/* ---- how memory lies ---------------------------------------------------------------------------------------------------------- */

/* Dimension i of the value is dimension map[i] of the nest; -1: it stands still. */
static void survey_pointer(Survey *survey, const Value *pointer, const int *map, bool is_load)
{
    const AxisInfo *axes = axis_of(survey->n->l, pointer);
    for (int i = pointer->type->rank - 1; i >= 0; i--) {
        int64_t extent = pointer->type->shape[i];
        if (map[i] < 0 || extent == 1 || axes->contiguity[i] < TT_MIN(extent, 4))
            continue;
        survey->runs[map[i]]++;
        if (is_load)
            survey->loads |= 1u << map[i];
        return;
    }
}

void map_operand(const Op *op, const int *map, int *inner)
{
    const Type *from = tt_operand(op, 0)->type, *to = op->results[0]->type;
    int axis = (int)tt_int_attr(op, ATTR_axis, 0), next = 0;
    const Attr *order = tt_find_attr(op, ATTR_order);
    for (int i = 0; i < from->rank; i++) {
        inner[i] = -1;
        if (op->opcode == OP_expand_dims) {
            inner[i] = map[i < axis ? i : i + 1];
        } else if (op->opcode == OP_extract) {
            inner[i] = i == axis ? -1 : map[i < axis ? i : i - 1];
        } else if (op->opcode == OP_permute) {
            for (int j = 0; j < to->rank; j++)
                if (order->ints[j] == i)
                    inner[i] = map[j];
        } else if (op->opcode == OP_reshape) {
            while (from->shape[i] > 1 && to->shape[next] == 1)
                next++;
            if (from->shape[i] > 1)
                inner[i] = map[next++];
        } else if (op->opcode == OP_broadcast) {
            inner[i] = from->shape[i] > 1 ? map[i] : -1;
        } else if (i < to->rank) { /* slice, split, hint, elementwise */
            inner[i] = map[i];
        }
    }
}

static void survey_value(Survey *survey, const Value *value, const int *map)
{
    Lower *l = survey->n->l;
    if (!tt_is_tile(value->type) || info_of(value)->seen_same == l->stamp)
        return;
    info_of(value)->seen_same = l->stamp;
    const Op *op = value->op;
    int last = value->type->rank - 1, inner[TT_MAX_RANK];
    bool reshaped = op && op->opcode == OP_reshape && !keeps_coordinates(op);
    if (info_of(value)->stored || !op || !is_virtual_op(op) || reshaped) {
        if (map[last] >= 0) {
            survey->runs[map[last]]++;
            survey->loads |= 1u << map[last];
        }
        return;
    }
    if (op->opcode == OP_load) {
        survey_pointer(survey, tt_operand(op, 0), map, true);
        if (op->operand_count > 1)
            note_mask(survey->n, tt_operand(op, 1), map);
        for (int i = 1; i < op->operand_count; i++)
            survey_value(survey, tt_operand(op, i), map);
    } else if (tt_has(op, ELEMENTWISE)) {
        if (op->opcode == OP_select)
            note_mask(survey->n, tt_operand(op, 0), map);
        for (int i = 0; i < op->operand_count; i++)
            survey_value(survey, tt_operand(op, i), map);
    } else if (op->opcode == OP_gather) {
        survey_value(survey, tt_operand(op, 1), map);
    } else if (op->operand_count && op->opcode != OP_splat) {
        map_operand(op, map, inner);
        survey_value(survey, tt_operand(op, 0), inner);
    }
}

static void survey_sink(Survey *survey, const Sink *sink)
{
    int map[TT_MAX_RANK], last = -1;
    for (int i = 0; i < survey->n->rank; i++) {
        map[i] = i;
        last = survey->n->shape[i] > 1 ? i : last;
    }
    if (last >= 0 && (sink->kind == SINK_COPY || sink->kind == SINK_JOIN))
        survey->runs[last] += sink->kind == SINK_COPY ? 1 : 100;
    if (sink->value)
        survey_value(survey, sink->value, map);
    for (int i = 0; sink->op && i < sink->op->operand_count; i++) {
        const Value *operand = tt_operand(sink->op, i);
        if (sink->kind == SINK_STORE && i == 2)
            note_mask(survey->n, tt_operand(sink->op, i), map);
        if (sink->kind == SINK_STORE && i == 0)
            survey_pointer(survey, operand, map, false);
        else if (tt_is_tile(operand->type) && operand->type->rank == survey->n->rank)
            survey_value(survey, operand, map);
    }
}

/* ---- the choice ------------------------------------------------------------------------------------------------------------------ */

static int choose_lane_dim(const Survey *survey)
{
    const Nest *n = survey->n;
    int best = -1;
    for (int i = 0; i < n->rank; i++)
        if (n->shape[i] > 1 && (best < 0 || survey->runs[i] >= survey->runs[best]))
            best = i;
    return best;
}

/* A dimension along which loads are consecutive that the lanes do not follow; or the one that pairs need. A square block
 * has to fit the registers. */
static void choose_block_dim(Nest *n, const Survey *survey)
{
    int width = TT_MIN(n->width, WIDEST_BLOCK);
    bool blocks = n->axis < 0 && width >= 4 && n->effort <= LIGHT_BLOCK && n->shape[n->lane_dim] >= width;
    n->by_pairs = n->group->sinks.count && n->group->sinks.data[0].kind == SINK_PAIRS;
    if (n->by_pairs)
        n->block_dim = n->rank - 2;
    for (int i = 0; i < n->rank && blocks; i++) {
        bool other = i != n->lane_dim && survey->loads >> i & 1 && n->shape[i] >= width;
        if (!other || (n->by_pairs && i != n->block_dim))
            continue;
        n->block_dim = i;
        n->transposes = true;
        n->width = width;
        return;
    }
}

/* Lanes innermost, except that an accumulated axis is inside of them; rows of blocks right outside of them. */
static void choose_order(Nest *n)
{
    for (int pass = 0; pass < 4; pass++)
        for (int i = 0; i < n->rank; i++) {
            int place = i == n->axis ? 3 : i == n->lane_dim ? 2 : i == n->block_dim ? 1 : 0;
            bool loops = n->shape[i] > 1 || i == n->axis || i == n->lane_dim;
            if (loops && place == pass)
                n->order[n->depth++] = i;
        }
}

void choose_dims(Nest *n)
{
    Survey survey = {.n = n, .bytes = 1};
    SinkKind kind = n->group->sinks.count ? n->group->sinks.data[0].kind : SINK_NONE;
    n->lane_dim = n->block_dim = -1;
    n->l->stamp++;
    for (int i = 0; i < n->group->sinks.count; i++) {
        count_sink(&survey, &n->group->sinks.data[i]);
        survey_sink(&survey, &n->group->sinks.data[i]);
    }
    n->effort = survey.ops;
    if (kind == SINK_PAIRS)
        n->lane_dim = n->rank - 1;
    else if (kind != SINK_ATOMIC && kind != SINK_HISTOGRAM) /* these run one element after the other */
        n->lane_dim = choose_lane_dim(&survey);
    if (n->lane_dim >= 0) {
        n->width = TT_MIN(n->e->widest / survey.bytes, 64);
        n->width = (int)TT_MIN(n->width, tt_next_pow2(n->shape[n->lane_dim]));
    }
    if (n->lane_dim >= 0)
        choose_block_dim(n, &survey);
    choose_order(n);
}
