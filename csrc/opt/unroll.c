/* Unrolls the loops that ask for it (attribute `unroll` = n > 1): the body stands n times in a loop of n
 * times the step, and a second loop does what remains. A loop of at most n iterations, by constant bounds,
 * disappears altogether. The step must be a constant, so that n times as much is known not to overflow.
 *
 * Short loops of a few constant iterations disappear unasked, unless `unroll` is 1: what begins with constants (a count of elements, whether
 * it is the first iteration) is constant in each copy, and loads of all iterations are under way at once. Of large tiles an iteration loads
 * enough by itself, and code that the caches of instructions hold is worth more. */
#include "opt/pass.h"

enum {
    MOST_COPIES = 256,
    FEW_ITERATIONS = 4,
    FEW_OPS = 160,
    OF_COSTLY = 8, /* plain operations that one such is worth */
    OF_FUNCTION = 16,
    MOST_WORK = 3 << 18 /* operations on elements: some 6000 for a thread of four warps */
};

/* Copies the body with its arguments replaced; afterwards `carried` holds what it yields. */
static void copy_body(Builder *b, const Loop *loop, Value *index, Value **carried, Arena *scratch)
{
    Map map = {.arena = scratch};
    *tt_map_slot_ptr(&map, loop->body->args[0]) = index;
    for (int i = 0; i < loop->count; i++)
        *tt_map_slot_ptr(&map, tt_carried(loop, i)) = carried[i];
    tt_clone_region_body(b, loop->body, &map);
    for (int i = 0; i < loop->count; i++) {
        Value *next = tt_next(loop, i), *copy = tt_map_find_ptr(&map, next);
        carried[i] = copy ? copy : next;
    }
}

static Value **initial_values(const Loop *loop, Arena *scratch)
{
    Value **values = TT_NEW_ARRAY(scratch, Value *, loop->count);
    for (int i = 0; i < loop->count; i++)
        values[i] = tt_init(loop, i);
    return values;
}

static Value *advance(Builder *b, Value *index, int64_t distance)
{
    return distance ? tt_build2(b, OP_add, index, tt_build_int(b, index->type, distance)) : index;
}

static void unroll_fully(const Loop *loop, int64_t step, int64_t count, Arena *scratch)
{
    Builder b = tt_builder_before(loop->op);
    Value **carried = initial_values(loop, scratch);
    for (int64_t i = 0; i < count; i++)
        copy_body(&b, loop, advance(&b, tt_operand(loop->op, 0), i * step), carried, scratch);
    tt_replace_op(loop->op, carried);
}

/* Where the iterations end that come in groups of n, and between which bounds those are that remain. */
typedef struct Groups {
    Value *end, *rest_begins, *rest_ends;
} Groups;

/* lower + (count - count % n) * step, with count = 0 where lower is not below upper, or the step, which need not be known, not
 * positive. The difference of the bounds is taken as unsigned, which it fits. Where nothing remains the groups end at upper, since
 * the sum may be more than the integers hold, and the rest where it begins. */
static Groups find_groups(Builder *b, const Op *op, int64_t copies)
{
    Value *lower = tt_operand(op, 0), *upper = tt_operand(op, 1), *step = tt_operand(op, 2);
    const Type *type = lower->type;
    int64_t known;
    Value *one = tt_build_int(b, type, 1), *zero = tt_build_int(b, type, 0), *divisor = step;
    Value *runs = tt_build2(b, OP_lt_s, lower, upper), *is_positive = NULL;
    if (!tt_constant_int(step, &known)) {
        is_positive = tt_build2(b, OP_lt_s, zero, step);
        divisor = tt_build3(b, OP_select, is_positive, step, one);
        runs = tt_build2(b, OP_and, runs, is_positive);
    }
    Value *last = tt_build2(b, OP_sub, tt_build2(b, OP_sub, upper, lower), one);
    Value *count = tt_build2(b, OP_add, tt_build2(b, OP_div_u, last, divisor), one);
    count = tt_build3(b, OP_select, runs, count, zero);
    Value *left = tt_build2(b, OP_rem_u, count, tt_build_int(b, type, copies));
    Value *grouped = tt_build2(b, OP_mul, tt_build2(b, OP_sub, count, left), step);
    Value *middle = tt_build2(b, OP_add, lower, grouped), *is_all = tt_build2(b, OP_eq, left, zero);
    is_all = is_positive ? tt_build2(b, OP_and, is_all, is_positive) : is_all;
    return (Groups){.end = tt_build3(b, OP_select, is_all, upper, middle),
                    .rest_begins = middle,
                    .rest_ends = tt_build3(b, OP_select, is_all, middle, upper)};
}

/* The loop stays as it is from now on. */
static void keep(Op *loop)
{
    tt_set_attr(loop, tt_attr_int(loop->parent->function->module, ATTR_unroll, 1, NULL));
}

/* Does the step of so many copies fit the loop's integers? */
static bool fits(const Op *op, int64_t copies)
{
    int bits = tt_bit_width(tt_operand(op, 0)->type);
    int64_t step, whole;
    return tt_constant_int(tt_operand(op, 2), &step) && step > 0 &&
           !__builtin_mul_overflow(step, copies, &whole) && (bits == 64 || whole < 1ll << (bits - 1));
}

Op *tt_unroll_by(Op *op, int64_t copies, Arena *scratch)
{
    Loop of_op = tt_loop(op), *loop = &of_op;
    Builder b = tt_builder_before(op);
    Groups groups = find_groups(&b, op, copies);
    Value *step = tt_operand(op, 2);
    int count = 3 + loop->count;
    Value **operands = TT_NEW_ARRAY(scratch, Value *, count);
    const Type **types = TT_NEW_ARRAY(scratch, const Type *, loop->count);
    operands[0] = tt_operand(op, 0);
    operands[1] = groups.end;
    operands[2] = tt_build2(&b, OP_mul, step, tt_build_int(&b, step->type, copies));
    for (int i = 0; i < loop->count; i++) {
        operands[3 + i] = tt_init(loop, i);
        types[i] = op->results[i]->type;
    }
    Op *main_loop =
        tt_build_op(&b, OP_for, operands, count, types, loop->count, tt_copy_attrs(b.module, op->attrs));
    keep(main_loop);
    keep(op);
    Value *index = tt_add_region_arg(main_loop->regions[0], step->type);
    index->name = loop->body->args[0]->name;
    Value **carried = TT_NEW_ARRAY(scratch, Value *, loop->count);
    for (int i = 0; i < loop->count; i++) {
        carried[i] = tt_add_region_arg(main_loop->regions[0], types[i]);
        carried[i]->name = tt_carried(loop, i)->name;
        carried[i]->layout = main_loop->results[i]->layout = op->results[i]->layout;
    }
    Builder inner = tt_builder_at_end(main_loop->regions[0]);
    inner.loc = op->loc;
    for (int64_t i = 0; i < copies; i++) {
        copy_body(&inner, loop, index, carried, scratch);
        index = i + 1 < copies ? tt_build2(&inner, OP_add, index, step) : NULL;
    }
    tt_build_op(&inner, OP_yield, carried, loop->count, NULL, 0, NULL);
    tt_set_operand(op, 0, groups.rest_begins);
    tt_set_operand(op, 1, groups.rest_ends);
    for (int i = 0; i < loop->count; i++)
        tt_set_operand(op, 3 + i, main_loop->results[i]);
    return main_loop;
}

/* The request is dropped, and that is said. */
static void give_up(Op *op, const char *why)
{
    tt_remark(op->parent->function->module, op->loc, "loop_unroll_factor=%d is not done: %s",
              (int)tt_int_attr(op, ATTR_unroll, 1), why);
    keep(op);
}

/* Operations of a body without loops, products and effects; more than FEW_OPS when it has some. */
static int count_simple_ops(const Region *body)
{
    int count = 0;
    TT_FOR_OPS(op, body)
    {
        if (tt_is_loop(op) || tt_has(op, HAS_EFFECT) || op->opcode == OP_dot)
            return FEW_OPS + 1;
        count++;
        for (int i = 0; i < op->region_count; i++)
            count += count_simple_ops(op->regions[i]);
    }
    return count;
}

/* Operations on elements. Vectors share masks and addresses. */
static int64_t work_of(const Op *op)
{
    if (!op->result_count || !tt_is_tile(op->results[0]->type) || tt_has(op, SHAPE))
        return 0;
    const Type *type = op->results[0]->type, *element = tt_element(type);
    if (op->region_count && op->operand_count) /* a reduction */
        type = tt_operand(op, 0)->type;
    bool is_addressing = tt_is_ptr(element) || tt_is_bool(element) || op->opcode == OP_constant;
    int cost = !tt_has(op, COSTLY) ? 1 : tt_has(op, FUNCTION) ? OF_FUNCTION : OF_COSTLY;
    return is_addressing ? 0 : cost * type->count;
}

static int64_t count_work(const Region *body)
{
    int64_t work = 0;
    TT_FOR_OPS(op, body)
    {
        work += work_of(op);
        for (int i = 0; i < op->region_count && tt_is_control(op); i++)
            work += count_work(op->regions[i]);
    }
    return work;
}

static bool unroll_short(Op *op, Arena *scratch)
{
    int64_t count, step;
    if (op->opcode != OP_for || tt_find_attr(op, ATTR_num_stages) || !tt_trip_count(op, &count) ||
        count < 2 || count > FEW_ITERATIONS || !tt_constant_int(tt_operand(op, 2), &step) ||
        count * count_simple_ops(op->regions[0]) > FEW_OPS || count * count_work(op->regions[0]) > MOST_WORK)
        return false;
    Loop loop = tt_loop(op);
    unroll_fully(&loop, step, count, scratch);
    return true;
}

static bool unroll(Op *op, Arena *scratch)
{
    int64_t copies = tt_int_attr(op, ATTR_unroll, 1), step, count;
    if (!tt_find_attr(op, ATTR_unroll))
        return unroll_short(op, scratch);
    if (copies <= 1)
        return false;
    if (op->opcode != OP_for) {
        give_up(op, "the loop may end early");
        return true;
    }
    Loop loop = tt_loop(op);
    bool known = tt_constant_int(tt_operand(op, 2), &step) && step > 0 && copies <= MOST_COPIES;
    if (known && tt_trip_count(op, &count) && count <= copies) {
        unroll_fully(&loop, step, count, scratch);
    } else if (known && fits(op, copies)) {
        tt_unroll_by(op, copies, scratch);
    } else {
        give_up(op, copies > MOST_COPIES ? "it is more than 256"
                    : !tt_constant_int(tt_operand(op, 2), &step)
                        ? "the step is not known at compile time"
                        : "so many steps do not fit the loop's integers");
    }
    return true;
}

static bool visit_region(Region *region, Arena *scratch)
{
    bool changed = false;
    TT_FOR_OPS_SAFE(op, region)
    {
        for (int i = 0; i < op->region_count; i++)
            changed |= visit_region(op->regions[i], scratch);
        changed |= unroll(op, scratch);
    }
    return changed;
}

/* Copies of a loop show bounds of loops inside it. */
bool tt_opt_unroll(Function *function, Arena *scratch)
{
    bool changed = false;
    while (visit_region(function->body, scratch))
        changed = true;
    return changed;
}
