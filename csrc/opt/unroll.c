/* Unrolls the loops that ask for it (attribute `unroll` = n > 1): the body stands n times in a loop of n
 * times the step, and a second loop does what remains. A loop of at most n iterations, by constant bounds,
 * disappears altogether. The step must be a constant, so that n times as much is known not to overflow.
 *
 * Short loops of a few constant iterations disappear unasked, unless `unroll` is 1: what begins with constants (a count of elements, whether
 * it is the first iteration) is constant in each copy, and loads of all iterations are under way at once. */
#include "opt/pass.h"

enum { MOST_COPIES = 256, FEW_ITERATIONS = 4, FEW_OPS = 160 };

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

/* Where the iterations end that come in groups of n: lower + (count - count % n) * step, with count = 0 when
 * lower is not below upper. The difference of the bounds is taken as unsigned, which it fits. */
static Value *end_of_groups(Builder *b, const Op *op, int64_t step, int64_t copies)
{
    Value *lower = tt_operand(op, 0), *upper = tt_operand(op, 1);
    const Type *type = lower->type;
    Value *one = tt_build_int(b, type, 1), *zero = tt_build_int(b, type, 0);
    Value *last = tt_build2(b, OP_sub, tt_build2(b, OP_sub, upper, lower), one);
    Value *count = tt_build2(b, OP_add, tt_build2(b, OP_div_u, last, tt_build_int(b, type, step)), one);
    count = tt_build3(b, OP_select, tt_build2(b, OP_lt_s, lower, upper), count, zero);
    Value *rest = tt_build2(b, OP_rem_u, count, tt_build_int(b, type, copies));
    Value *grouped = tt_build2(b, OP_sub, count, rest);
    return tt_build2(b, OP_add, lower, tt_build2(b, OP_mul, grouped, tt_build_int(b, type, step)));
}

/* The loop stays as it is from now on. */
static void keep(Op *loop)
{
    tt_set_attr(loop, tt_attr_int(loop->parent->function->module, ATTR_unroll, 1, NULL));
}

static void unroll_by(const Loop *loop, int64_t step, int64_t copies, Arena *scratch)
{
    Op *op = loop->op;
    Builder b = tt_builder_before(op);
    Value *middle = end_of_groups(&b, op, step, copies);
    int count = 3 + loop->count;
    Value **operands = TT_NEW_ARRAY(scratch, Value *, count);
    const Type **types = TT_NEW_ARRAY(scratch, const Type *, loop->count);
    operands[0] = tt_operand(op, 0);
    operands[1] = middle;
    operands[2] = tt_build_int(&b, middle->type, step * copies);
    for (int i = 0; i < loop->count; i++) {
        operands[3 + i] = tt_init(loop, i);
        types[i] = op->results[i]->type;
    }
    Op *main_loop =
        tt_build_op(&b, OP_for, operands, count, types, loop->count, tt_copy_attrs(b.module, op->attrs));
    keep(main_loop);
    keep(op);
    Value *index = tt_add_region_arg(main_loop->regions[0], middle->type);
    index->name = loop->body->args[0]->name;
    Value **carried = TT_NEW_ARRAY(scratch, Value *, loop->count);
    for (int i = 0; i < loop->count; i++) {
        carried[i] = tt_add_region_arg(main_loop->regions[0], types[i]);
        carried[i]->name = tt_carried(loop, i)->name;
    }
    Builder inner = tt_builder_at_end(main_loop->regions[0]);
    inner.loc = op->loc;
    for (int64_t i = 0; i < copies; i++)
        copy_body(&inner, loop, advance(&inner, index, i * step), carried, scratch);
    tt_build_op(&inner, OP_yield, carried, loop->count, NULL, 0, NULL);
    tt_set_operand(op, 0, middle);
    for (int i = 0; i < loop->count; i++)
        tt_set_operand(op, 3 + i, main_loop->results[i]);
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

static bool unroll_short(Op *op, Arena *scratch)
{
    int64_t count, step;
    if (op->opcode != OP_for || tt_find_attr(op, ATTR_num_stages) || !tt_trip_count(op, &count) ||
        count < 2 || count > FEW_ITERATIONS || !tt_constant_int(tt_operand(op, 2), &step) ||
        count * count_simple_ops(op->regions[0]) > FEW_OPS)
        return false;
    Loop loop = tt_loop(op);
    unroll_fully(&loop, step, count, scratch);
    return true;
}

static bool unroll(Op *op, Arena *scratch)
{
    int64_t copies = tt_int_attr(op, ATTR_unroll, 1), step, count, whole;
    if (!tt_find_attr(op, ATTR_unroll))
        return unroll_short(op, scratch);
    if (copies <= 1)
        return false;
    if (op->opcode != OP_for) {
        give_up(op, "the loop may end early");
        return true;
    }
    Loop loop = tt_loop(op);
    int bits = tt_bit_width(tt_operand(op, 0)->type);
    bool known = tt_constant_int(tt_operand(op, 2), &step) && step > 0 && copies <= MOST_COPIES;
    if (known && tt_trip_count(op, &count) && count <= copies) {
        unroll_fully(&loop, step, count, scratch);
    } else if (known && !__builtin_mul_overflow(step, copies, &whole) &&
               (bits == 64 || whole < 1ll << (bits - 1))) {
        unroll_by(&loop, step, copies, scratch);
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
