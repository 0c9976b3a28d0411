/* Loads for operands of products whose addresses repeat, p + k / 8: several weights of few bits lie in one word, and the
 * program loads it for each of them. Here it is loaded once and repeated afterwards, so that a copy brings an eighth of the
 * bytes, and neighbours in the tile are neighbours in memory. That elements repeat is read from the operations themselves,
 * where it holds in every run; what axis_info says of constancy rests on assumptions. (repeated_loads.c does so with
 * what is read beside the operands, whose groups may begin anywhere.) */
#include "gpu/passes.h"
#include "opt/pass.h"

/* Groups of any size: all elements are equal. */
#define ANY_GROUP ((int64_t)1 << 62)

typedef struct Narrowing {
    Module *module;
    Arena *scratch;
    int64_t group; /* elements of a tile's dimension that become one, a power of two */
    Map made;      /* tile -> its every group-th element */
    bool changed;
} Narrowing;

/* ---- which elements are equal ------------------------------------------------------------------------------------------ */

/* By which power of two a tile is divided, elementwise; 1: by none. */
static int64_t divisor_of(const Op *op)
{
    int64_t number;
    if (op->operand_count != 2 || !tt_constant_int(tt_operand(op, 1), &number) || number < 0)
        return 1;
    if (op->opcode == OP_shr_u || op->opcode == OP_shr_s)
        return number < 31 ? (int64_t)1 << number : 1;
    return (op->opcode == OP_div_u || op->opcode == OP_div_s) && tt_is_pow2(number) ? number : 1;
}

/* Where the tile's elements along `*dim` are first, first + 1, ...: the range that they come from. */
static const Op *range_along(const Value *value, int *dim)
{
    while (tt_def(value, OP_expand_dims) || tt_def(value, OP_broadcast)) {
        const Op *op = value->op;
        int axis = op->opcode == OP_expand_dims ? (int)tt_int_attr(op, ATTR_axis, 0) : TT_MAX_RANK;
        if (*dim == axis || tt_operand(op, 0)->type->shape[*dim - (*dim > axis)] == 1)
            return NULL;
        *dim -= *dim > axis;
        value = tt_operand(op, 0);
    }
    return tt_def(value, OP_range);
}

/* Of what a number is computed from, so far is looked. */
enum { DEEPEST = 6 };

/* Numbers that addresses are computed from do not wrap around: a launch in which they might computes them in 64 bits
 * (analysis/offsets.c). */
static bool is_non_negative(const Value *value, int depth)
{
    IntBounds bounds;
    int64_t step;
    const Op *op = value->op, *loop = op ? NULL : value->region->op;
    if (tt_int_bounds(value, &bounds) && bounds.lowest >= 0)
        return true;
    if (loop && loop->opcode == OP_for && !value->index) /* it counts from operand 0 on, by operand 2 */
        return is_non_negative(tt_operand(loop, 0), depth) && tt_constant_int(tt_operand(loop, 2), &step) &&
               step > 0;
    return op && depth < DEEPEST && (op->opcode == OP_add || op->opcode == OP_mul) &&
           is_non_negative(tt_operand(op, 0), depth + 1) && is_non_negative(tt_operand(op, 1), depth + 1);
}

/* A power of two that divides the number. */
static int64_t factor_of(const Value *value, int depth)
{
    int64_t number;
    const Op *op = value->op;
    if (tt_constant_int(value, &number))
        return number ? number & -number : ANY_GROUP;
    if (!op || depth == DEEPEST || (op->opcode != OP_add && op->opcode != OP_mul))
        return 1;
    int64_t a = factor_of(tt_operand(op, 0), depth + 1), b = factor_of(tt_operand(op, 1), depth + 1);
    return op->opcode == OP_add ? TT_MIN(a, b) : a < ANY_GROUP / b ? a * b : ANY_GROUP;
}

/* A number that a tile's elements all have as a summand, and that none of them is less than. */
static const Value *common_summand(const Op *sum, int index)
{
    const Op *splat = tt_def(tt_operand(sum, index), OP_splat);
    return splat && is_non_negative(tt_operand(splat, 0), 0) ? tt_operand(splat, 0) : NULL;
}

/* What is asked of an address, or of a mask, in which numbers may wrap around. */
typedef struct Asked {
    bool of_address;
    Map groups; /* (tile, dimension) -> int64_t */
} Asked;

/* Is the operation a division that makes aligned groups of a range's elements equal? */
static int64_t divided_group(const Op *op, int dim, const Asked *asked)
{
    int64_t divisor = divisor_of(op);
    if (divisor == 1)
        return 1;
    const Value *divided = tt_operand(op, 0), *summand = NULL;
    const Op *sum = tt_def(divided, OP_add);
    for (int i = 0; sum && asked->of_address && i < 2 && !summand; i++) {
        summand = common_summand(sum, i);
        divided = tt_operand(sum, 1 - i);
    }
    const Op *range = range_along(divided, &dim);
    if (!range || (sum && !summand) || tt_int_attr(range, ATTR_start, 0) < 0)
        return 1;
    int64_t start = tt_int_attr(range, ATTR_start, 0);
    int64_t group = TT_MIN(divisor, start ? start & -start : divisor);
    return TT_MIN(group, summand ? factor_of(summand, 0) : group);
}

static int64_t group_of(const Value *value, int dim, Asked *asked);

static int64_t find_group(const Value *value, int dim, Asked *asked)
{
    const Op *op = value->op;
    if (!tt_is_tile(value->type) || value->type->shape[dim] == 1 || tt_is_constant(value))
        return ANY_GROUP;
    if (!op)
        return 1;
    if (op->opcode == OP_splat)
        return ANY_GROUP;
    if (op->opcode == OP_broadcast)
        return group_of(tt_operand(op, 0), dim, asked);
    if (op->opcode == OP_expand_dims) {
        int axis = (int)tt_int_attr(op, ATTR_axis, 0);
        return group_of(tt_operand(op, 0), dim - (dim > axis), asked);
    }
    if (!tt_has(op, ELEMENTWISE) || !tt_is_pure(op) || op->result_count != 1)
        return 1;
    int64_t group = ANY_GROUP;
    for (int i = 0; i < op->operand_count; i++)
        group = TT_MIN(group, group_of(tt_operand(op, i), dim, asked));
    return TT_MAX(group, divided_group(op, dim, asked));
}

/* The largest power of two such that aligned groups of that many neighbours along `dim` are equal. */
static int64_t group_of(const Value *value, int dim, Asked *asked)
{
    struct Key {
        const Value *value;
        int64_t dim;
    } key = {value, dim};
    void *known = tt_map_find(&asked->groups, &key, sizeof key);
    if (known)
        return (int64_t)(intptr_t)known;
    int64_t group = find_group(value, dim, asked);
    *tt_map_slot(&asked->groups, &key, sizeof key) = (void *)(intptr_t)group;
    return group;
}

/* ---- one of each group ------------------------------------------------------------------------------------------------- */

static Value *narrowed(Narrowing *n, Builder *b, Value *value, int dim);

static Value *make_narrow(Narrowing *n, Builder *b, Value *value, const Type *type, int dim)
{
    Op *op = value->op;
    int64_t integer;
    double real;
    if (tt_constant_int(value, &integer))
        return tt_build_int(b, type, integer);
    if (tt_constant_float(value, &real))
        return tt_build_float(b, type, real);
    if (op->opcode == OP_splat)
        return tt_build_splat(b, tt_operand(op, 0), type->shape, type->rank);
    if (op->opcode == OP_broadcast)
        return tt_build_broadcast(b, narrowed(n, b, tt_operand(op, 0), dim), type->shape);
    if (op->opcode == OP_range) {
        Value *places =
            tt_build2(b, OP_mul, tt_build_range(b, 0, type->shape[0]), tt_build_int(b, type, n->group));
        return tt_build2(b, OP_add, places, tt_build_int(b, type, tt_int_attr(op, ATTR_start, 0)));
    }
    if (op->opcode == OP_expand_dims) {
        int axis = (int)tt_int_attr(op, ATTR_axis, 0);
        return tt_build_expand_dims(b, narrowed(n, b, tt_operand(op, 0), dim - (dim > axis)), axis);
    }
    Value **operands = TT_NEW_ARRAY(n->scratch, Value *, op->operand_count);
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = narrowed(n, b, tt_operand(op, i), dim);
    return tt_build(b, op->opcode, operands, op->operand_count, type, tt_copy_attrs(n->module, op->attrs));
}

/* The quotients of a range that are different, a shorter range; NULL: it is not just a range that is divided. */
static Value *quotients(Narrowing *n, Builder *b, Value *value, int dim)
{
    int along = dim, rank = value->type->rank;
    const Op *range =
        value->op && divisor_of(value->op) >= n->group ? range_along(tt_operand(value->op, 0), &along) : NULL;
    if (!range)
        return NULL;
    int64_t first = tt_int_attr(range, ATTR_start, 0) / n->group, count = value->type->shape[dim] / n->group;
    int64_t shape[TT_MAX_RANK];
    for (int i = 0; i < rank; i++)
        shape[i] = i == dim ? count : 1;
    Value *result = tt_build_reshape(b, tt_build_range(b, first, first + count), shape, rank);
    for (int i = 0; i < rank; i++)
        shape[i] = i == dim ? count : value->type->shape[i];
    result = tt_build_broadcast(b, result, shape);
    int64_t left = divisor_of(value->op) / n->group;
    return left == 1 ? result : tt_build2(b, OP_div_u, result, tt_build_int(b, result->type, left));
}

static Value *narrowed(Narrowing *n, Builder *b, Value *value, int dim)
{
    if (!tt_is_tile(value->type) || value->type->shape[dim] == 1)
        return value;
    Value **slot = (Value **)tt_map_slot_ptr(&n->made, value);
    if (*slot)
        return *slot;
    int64_t shape[TT_MAX_RANK];
    for (int i = 0; i < value->type->rank; i++)
        shape[i] = value->type->shape[i] / (i == dim ? n->group : 1);
    const Type *type = tt_tile_type(n->module, value->type->element, shape, value->type->rank);
    Value *made = quotients(n, b, value, dim);
    if (!made)
        made = make_narrow(n, b, value, type, dim);
    return *tt_map_slot_ptr(&n->made, value) = made; /* the table may have grown */
}

/* x x y y ... from x y ...: what gives `type` again. */
static Value *widened(Builder *b, Value *value, const Type *type, int dim)
{
    int64_t shape[TT_MAX_RANK + 1];
    if (value->type->shape[dim] == 1)
        return tt_build_broadcast(b, value, type->shape);
    for (int i = 0; i <= type->rank; i++)
        shape[i] = i == dim + 1 ? 1 : value->type->shape[i - (i > dim)];
    Value *result = tt_build_reshape(b, value, shape, type->rank + 1);
    shape[dim + 1] = type->shape[dim] / value->type->shape[dim];
    result = tt_build_broadcast(b, result, shape);
    return tt_build_reshape(b, result, type->shape, type->rank);
}

/* ---- the pass ------------------------------------------------------------------------------------------------------------ */

/* Does a product take what is computed from the value, element by element? */
static bool feeds_product(const Value *value, Map *asked)
{
    TT_FOR_USES(use, value)
    {
        const Op *user = use->user;
        if (user->opcode == OP_dot && tt_operand(user, 2) != value)
            return true;
        if (!tt_has(user, ELEMENTWISE) || !tt_is_pure(user) || tt_map_find_ptr(asked, user))
            continue;
        *tt_map_slot_ptr(asked, user) = (void *)user;
        for (int i = 0; i < user->result_count; i++)
            if (feeds_product(user->results[i], asked))
                return true;
    }
    return false;
}

static void visit(Op *op, void *context)
{
    Narrowing *n = context;
    if (op->opcode != OP_load || !tt_is_plain_load(op) || !tt_is_tile(op->results[0]->type) ||
        op->results[0]->type->rank == TT_MAX_RANK)
        return;
    const Type *type = op->results[0]->type;
    Map users = {.arena = n->scratch};
    Asked address = {true, {.arena = n->scratch}}, mask = {false, {.arena = n->scratch}};
    for (int dim = 0; dim < type->rank; dim++) {
        int64_t group = ANY_GROUP;
        for (int i = 0; i < op->operand_count; i++)
            group = TT_MIN(group, group_of(tt_operand(op, i), dim, i ? &mask : &address));
        group = TT_MIN(group, type->shape[dim]);
        if (group == 1 || !tt_is_pow2(type->shape[dim]) || !feeds_product(op->results[0], &users))
            continue;
        Builder b = tt_builder_before(op);
        n->group = group;
        n->made = (Map){.arena = n->scratch};
        Value *operands[3];
        for (int i = 0; i < op->operand_count; i++)
            operands[i] = narrowed(n, &b, tt_operand(op, i), dim);
        const Type *narrow = tt_with_element(n->module, operands[0]->type, type->element);
        Value *value =
            tt_build(&b, OP_load, operands, op->operand_count, narrow, tt_copy_attrs(n->module, op->attrs));
        value->name = op->results[0]->name;
        tt_replace_all_uses(op->results[0], widened(&b, value, type, dim));
        n->changed = true;
        return;
    }
}

bool tt_gpu_narrow_loads(Module *module, const GpuOptions *options, Arena *scratch)
{
    Narrowing n = {.module = module, .scratch = scratch};
    (void)options;
    tt_walk(module->functions->body, visit, &n);
    if (n.changed)
        tt_simplify(module);
    return n.changed;
}
