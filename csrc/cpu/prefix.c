/* Masks that are true up to some step of a loop, as `offsets < n` is. The innermost loop of a nest is then cut in two: as
 * far as all such masks reach, its accesses are plain ones; the rest is as masked as it was written. Without masked
 * instructions of AVX-512 an access that is masked takes several times as long (`vmaskmov`), or is done lane by lane.
 *
 * How far a mask reaches is worked out from its operations alone, exactly, overflow included: axis analysis takes
 * things for granted that must not decide which elements a program sees. A sum takes its elements in the same order and
 * by the same accumulators with and without the cut. */
#include "cpu/lower.h"

/* Steps that no loop has: the mask says nothing against any. */
static const int64_t everywhere = 1ll << 40;

/* The loop in question. */
typedef struct Reach {
    Nest *n;
    int dim;    /* of the nest, that it goes along */
    bool emits; /* code for it; else only looks whether it can */
} Reach;

/* Along the loop a mask is true for all that a body does below `full`, and false for all from `none` on. */
typedef struct Limits {
    LLVMValueRef full, none; /* i64 */
} Limits;

/* How a tile of integers goes along a dimension of the nest. */
typedef enum Course { LEVEL, RISING, UNKNOWN } Course;

/* Places of a body side by side along a dimension. */
static int64_t span_of(const Nest *n, int dim)
{
    if (dim == n->lane_dim)
        return n->active < n->width ? n->active : (int64_t)(n->rows ? 1 : n->copies) * n->width;
    return dim == n->block_dim && n->rows ? n->rows : 1;
}

static Course join_courses(Course a, Course b)
{
    return a == UNKNOWN || b == UNKNOWN || (a == RISING && b == RISING) ? UNKNOWN : TT_MAX(a, b);
}

/* RISING: by 1 from element to element, in the value's own arithmetic. *widened: ... or in that of narrower integers,
 * sign-extended: it may fall back to the lowest number once. */
static Course course_of(const Value *value, const int *map, int dim, bool *widened)
{
    const Op *op = value->op;
    bool moves = false;
    int inner[TT_MAX_RANK];
    if (!tt_is_tile(value->type) || is_splat(value))
        return LEVEL;
    for (int i = 0; i < value->type->rank; i++)
        moves |= map[i] == dim && value->type->shape[i] > 1;
    if (!moves)
        return LEVEL;
    if (!op || info_of(value)->stored)
        return UNKNOWN;
    switch (op->opcode) {
    case OP_range:
        return RISING;
    case OP_hint:
        return course_of(tt_operand(op, 0), map, dim, widened);
    case OP_expand_dims:
    case OP_broadcast:
    case OP_permute:
        map_operand(op, map, inner);
        return course_of(tt_operand(op, 0), inner, dim, widened);
    case OP_ext_s:
        *widened = true;
        return course_of(tt_operand(op, 0), map, dim, widened);
    case OP_add:
        return join_courses(course_of(tt_operand(op, 0), map, dim, widened),
                            course_of(tt_operand(op, 1), map, dim, widened));
    case OP_sub:
        return course_of(tt_operand(op, 1), map, dim, widened) == LEVEL
                   ? course_of(tt_operand(op, 0), map, dim, widened)
                   : UNKNOWN;
    default:
        for (int i = 0; i < op->operand_count && tt_has(op, ELEMENTWISE); i++)
            if (course_of(tt_operand(op, i), map, dim, widened) != LEVEL)
                return UNKNOWN;
        return tt_has(op, ELEMENTWISE) ? LEVEL : UNKNOWN;
    }
}

static bool moves_along(const Reach *r, int dim) { return dim == r->dim || span_of(r->n, dim) > 1; }

/* Does all of the body, along all of the loop, see one element? */
static bool is_level(const Reach *r, const Value *value, const int *map)
{
    bool widened;
    for (int dim = 0; dim < r->n->rank; dim++)
        if (moves_along(r, dim) && course_of(value, map, dim, &widened) != LEVEL)
            return false;
    return true;
}

/* The first element that the loop's first body sees. */
static LLVMValueRef first_element(const Reach *r, Value *value, const int *map)
{
    Nest *n = r->n;
    Coord coords[TT_MAX_RANK] = {0};
    for (int i = 0; tt_is_tile(value->type) && i < value->type->rank; i++)
        if (map[i] >= 0 && map[i] != r->dim) {
            coords[i] = n->coords[map[i]];
            coords[i].stride = 0;
        }
    Vec first = eval(n, value, coords);
    at_level(n, n->level);
    return first.v;
}

static LLVMValueRef everywhere_if(Nest *n, LLVMValueRef condition)
{
    return emit_select(n->e, condition, const_int(n->e->i64, everywhere), const_int(n->e->i64, 0));
}

static LLVMValueRef if_positive(Nest *n, LLVMValueRef distance)
{
    return everywhere_if(n, LLVMBuildICmp(n->e->b, LLVMIntSGT, distance, const_int(n->e->i64, 0), ""));
}

/* Does no element overflow that rises from the first one? */
static LLVMValueRef stays_below(const Reach *r, LLVMValueRef first)
{
    LLVMTypeRef type = LLVMTypeOf(first);
    int64_t highest = (int64_t)(UINT64_MAX >> (65 - LLVMGetIntTypeWidth(type))), steps = 0;
    for (int dim = 0; dim < r->n->rank; dim++)
        steps += r->n->shape[dim];
    if (steps > highest)
        return const_int(r->n->e->i1, 0);
    return LLVMBuildICmp(r->n->e->b, LLVMIntSLE, first, const_int(type, highest - steps), "");
}

/* a - b, or what is as good a distance. */
static LLVMValueRef subtract_within(Nest *n, LLVMValueRef a, LLVMValueRef b)
{
    LLVMValueRef distance = emit_intrinsic2(n->e, "llvm.ssub.sat", a, b);
    distance = emit_intrinsic2(n->e, "llvm.smax", distance, const_int(n->e->i64, -everywhere));
    return emit_intrinsic2(n->e, "llvm.smin", distance, const_int(n->e->i64, everywhere));
}

/* small < large, where `small` rises by 1 an element along the dimensions that it rises along: with it at the first
 * element, large - small more elements satisfy it, none of which overflows. `more`: also where they are equal. */
static bool reach_below(const Reach *r, Value *small, Value *large, bool more, const int *map, Limits *limits)
{
    Nest *n = r->n;
    Emit *e = n->e;
    bool widened = false, along_loop = false;
    int64_t aside = 0;
    if (!is_level(r, large, map))
        return false;
    for (int dim = 0; dim < n->rank; dim++) {
        if (!moves_along(r, dim))
            continue;
        Course course = course_of(small, map, dim, &widened);
        if (course == UNKNOWN)
            return false;
        if (course == RISING && dim == r->dim)
            along_loop = true;
        else if (course == RISING)
            aside += span_of(n, dim) - 1;
    }
    if (!r->emits)
        return true;
    LLVMValueRef first = first_element(r, small, map), bound = first_element(r, large, map);
    at_level(n, n->level);
    LLVMValueRef rises = widened ? const_int(e->i1, 0) : stays_below(r, first);
    first = LLVMBuildSExt(e->b, first, e->i64, "");
    bound = LLVMBuildSExt(e->b, bound, e->i64, "");
    bool wide = tt_bit_width(small->type) == 64;
    LLVMValueRef distance = wide ? subtract_within(n, bound, first) : LLVMBuildSub(e->b, bound, first, "");
    distance = LLVMBuildAdd(e->b, distance, const_int(e->i64, more), "");
    limits->none = along_loop ? distance : if_positive(n, distance);
    limits->none = emit_select(e, rises, limits->none, const_int(e->i64, everywhere));
    distance = LLVMBuildSub(e->b, distance, const_int(e->i64, aside), "");
    limits->full = along_loop ? distance : if_positive(n, distance);
    return true;
}

/* large > small, where `large` rises: true for all when it is for the first and nothing overflows. */
static bool reach_above(const Reach *r, Value *large, Value *small, LLVMIntPredicate predicate,
                        const int *map, Limits *limits)
{
    Nest *n = r->n;
    Emit *e = n->e;
    bool widened = false;
    if (!is_level(r, small, map))
        return false;
    for (int dim = 0; dim < n->rank; dim++)
        if (moves_along(r, dim) && course_of(large, map, dim, &widened) == UNKNOWN)
            return false;
    if (widened || !r->emits)
        return !widened;
    LLVMValueRef first = first_element(r, large, map), bound = first_element(r, small, map);
    at_level(n, n->level);
    LLVMValueRef holds = LLVMBuildICmp(e->b, predicate, first, bound, "");
    limits->full = everywhere_if(n, LLVMBuildAnd(e->b, holds, stays_below(r, first), ""));
    limits->none = const_int(e->i64, everywhere);
    return true;
}

static bool reach_of(const Reach *r, Value *mask, const int *map, Limits *limits)
{
    Nest *n = r->n;
    const Op *op = mask->op;
    if (is_level(r, mask, map)) {
        if (r->emits)
            limits->full = limits->none = everywhere_if(n, first_element(r, mask, map));
        return true;
    }
    if (!op || info_of(mask)->stored)
        return false;
    Value *a = op->operand_count > 0 ? tt_operand(op, 0) : NULL,
          *b = op->operand_count > 1 ? tt_operand(op, 1) : NULL;
    int inner[TT_MAX_RANK];
    Limits other;
    switch (op->opcode) {
    case OP_hint:
        return reach_of(r, a, map, limits);
    case OP_expand_dims:
    case OP_broadcast:
    case OP_permute:
        map_operand(op, map, inner);
        return reach_of(r, a, inner, limits);
    case OP_and:
        if (!reach_of(r, a, map, limits) || !reach_of(r, b, map, &other))
            return false;
        if (r->emits) {
            limits->full = emit_intrinsic2(n->e, "llvm.smin", limits->full, other.full);
            limits->none = emit_intrinsic2(n->e, "llvm.smin", limits->none, other.none);
        }
        return true;
    case OP_lt_s:
        return reach_below(r, a, b, false, map, limits) || reach_above(r, b, a, LLVMIntSGT, map, limits);
    case OP_le_s:
        return reach_below(r, a, b, true, map, limits) || reach_above(r, b, a, LLVMIntSGE, map, limits);
    case OP_gt_s:
        return reach_below(r, b, a, false, map, limits) || reach_above(r, a, b, LLVMIntSGT, map, limits);
    case OP_ge_s:
        return reach_below(r, b, a, true, map, limits) || reach_above(r, a, b, LLVMIntSGE, map, limits);
    default:
        return false;
    }
}

/* ---- the masks of a nest -------------------------------------------------------------------------------------------- */

void note_mask(Nest *n, Value *mask, const int *map)
{
    for (int i = 0; i < n->mask_count; i++)
        if (n->masks[i].mask == mask)
            return;
    if (!tt_is_tile(mask->type) || is_splat(mask) || n->mask_count == MOST_MASKS)
        return;
    for (int i = 0; i < mask->type->rank; i++)
        if (map[i] < 0 && mask->type->shape[i] > 1) /* at an index that is not known */
            return;
    NestMask *noted = &n->masks[n->mask_count++];
    noted->mask = mask;
    memcpy(noted->map, map, sizeof(int) * (size_t)mask->type->rank);
}

bool has_reach(Nest *n, const Value *mask, int dim)
{
    Reach r = {.n = n, .dim = dim};
    for (int i = 0; i < n->mask_count; i++)
        if (n->masks[i].mask == mask)
            return reach_of(&r, n->masks[i].mask, n->masks[i].map, NULL);
    return false;
}

LLVMValueRef emit_reach(Nest *n, int dim)
{
    LLVMValueRef reach = NULL;
    for (int i = 0; i < n->mask_count; i++) {
        NestMask *mask = &n->masks[i];
        Reach r = {.n = n, .dim = dim};
        Limits limits;
        mask->none = NULL;
        mask->reaches = reach_of(&r, mask->mask, mask->map, NULL);
        if (!mask->reaches)
            continue;
        r.emits = true;
        at_level(n, n->level);
        reach_of(&r, mask->mask, mask->map, &limits);
        at_level(n, n->level);
        mask->none = limits.none;
        reach = reach ? emit_intrinsic2(n->e, "llvm.smin", reach, limits.full) : limits.full;
    }
    return reach;
}

LLVMValueRef emit_last_store(Nest *n)
{
    LLVMValueRef last = NULL;
    for (int i = 0; i < n->group->sinks.count; i++) {
        const Sink *sink = &n->group->sinks.data[i];
        LLVMValueRef none = NULL;
        for (int j = 0; j < n->mask_count && sink->kind == SINK_STORE && sink->op->operand_count > 2; j++)
            if (n->masks[j].mask == tt_operand(sink->op, 2))
                none = n->masks[j].none;
        if (!none)
            return NULL;
        at_level(n, n->level);
        last = last ? emit_intrinsic2(n->e, "llvm.smax", last, none) : none;
    }
    return last;
}

/* Is the coordinate one of those that the current body stands at? */
static bool is_in_body(const Nest *n, const Coord *coord, int dim)
{
    const Coord *body = &n->coords[dim];
    int64_t first = dim == n->lane_dim ? n->body_vector : dim == n->block_dim ? n->block_row : body->offset;
    int64_t places = dim == n->lane_dim ? (int64_t)(n->rows ? 1 : n->copies) * n->width : span_of(n, dim);
    int64_t last = coord->offset + coord->stride * (n->width - 1);
    return coord->base == body->base && coord->offset >= first && last < first + places;
}

bool is_assumed_true(const Nest *n, const Value *mask, const Coord *coords)
{
    for (int i = 0; i < n->mask_count && n->assumed_level; i++) {
        const NestMask *noted = &n->masks[i];
        if (noted->mask != mask || !noted->reaches)
            continue;
        for (int j = 0; j < mask->type->rank; j++)
            if (noted->map[j] >= 0 && mask->type->shape[j] > 1 && !is_in_body(n, &coords[j], noted->map[j]))
                return false;
        return true;
    }
    return false;
}
