/* What a loop with products divides its index by, `step // n` and `step % n` of the place in a filter and the channels of an image,
 * `step * BLOCK // n` of a group of columns, it counts instead: the remainder grows by what the dividend grows by, and where it has
 * come to the divisor it loses that, and the quotient grows. A division takes a hundred cycles in a row, in front of the addresses
 * of copies, while tensor cores wait for what is behind these.
 *
 * Exact where the dividend is neither negative nor wraps around; the divisor may be negative, or zero where the loop does not run. */
#include "analysis/offsets.h"
#include "gpu/passes.h"
#include "opt/pass.h"

typedef struct Counter {
    int64_t step; /* that the dividend grows by */
    Value *divisor;
    int quotient, remainder; /* carried values of the loop */
} Counter;

typedef struct Count {
    Offsets *offsets;
    Arena *scratch;
    Loop loop;
    TT_VECTOR(Counter) counters;
} Count;

/* The number, not negative, at which the index begins, if it grows by one; else -1. */
static int64_t first_index(const Op *loop)
{
    int64_t first, step;
    bool counts_up = tt_constant_int(tt_operand(loop, 0), &first) && first >= 0 &&
                     tt_constant_int(tt_operand(loop, 2), &step) && step == 1;
    return counts_up ? first : -1;
}

/* What a value grows by in each iteration, if it is a multiple of the index; else 0. */
static int64_t step_of(const Count *c, const Value *value)
{
    const Value *index = c->loop.body->args[0];
    const Op *op = tt_def(value, OP_mul);
    int64_t factor;
    if (value == index)
        return 1;
    bool is_multiple = op && tt_operand(op, 0) == index && tt_constant_int(tt_operand(op, 1), &factor) &&
                       factor > 0 && first_index(c->loop.op) <= INT32_MAX / factor &&
                       tt_offset_has_bounds(c->offsets, value);
    return is_multiple ? factor : 0;
}

/* Not by what is written in the program: that is multiplied by its inverse. */
static bool divides_by_what_stays(const Loop *loop, const Op *op)
{
    return (op->opcode == OP_div_s || op->opcode == OP_rem_s) && !tt_is_in_loop(loop, tt_operand(op, 1)) &&
           !tt_is_constant(tt_operand(op, 1));
}

static Value *divided(Builder *b, Opcode opcode, int64_t number, Value *divisor)
{
    Value *constant = tt_build_int(b, divisor->type, number);
    return number ? tt_build2(b, opcode, constant, divisor) : constant;
}

/* The remainder is that by the divisor's magnitude, since the dividend is not negative; the quotient has the divisor's sign. Of
 * a step of one neither needs to be known: what is left of it comes to the divisor at the latest then. */
static Counter add_counter(Count *c, const Op *division, int64_t step)
{
    Value *divisor = tt_operand(division, 1);
    Builder before = tt_builder_before(c->loop.op), end = tt_builder_before(c->loop.yield);
    before.loc = end.loc = division->loc;
    int64_t first = first_index(c->loop.op) * step;
    Value *zero = tt_build_int(&before, divisor->type, 0), *one = tt_build_int(&before, divisor->type, 1);
    Value *is_negative = tt_build2(&before, OP_lt_s, divisor, zero);
    Value *magnitude =
        tt_build3(&before, OP_select, is_negative, tt_build2(&before, OP_sub, zero, divisor), divisor);
    Value *unit = tt_build3(&before, OP_select, is_negative, tt_build_int(&before, divisor->type, -1), one);
    Value *of_step = step == 1 ? zero : divided(&before, OP_div_s, step, divisor);
    Value *left = step == 1 ? one : divided(&before, OP_rem_s, step, divisor);
    Counter counter = {.step = step, .divisor = divisor};
    counter.quotient = tt_add_carried(&c->loop, divided(&before, OP_div_s, first, divisor));
    counter.remainder = tt_add_carried(&c->loop, divided(&before, OP_rem_s, first, divisor));
    Value *quotient = tt_build2(&end, OP_add, tt_carried(&c->loop, counter.quotient), of_step);
    Value *remainder = tt_build2(&end, OP_add, tt_carried(&c->loop, counter.remainder), left);
    Value *ends = tt_build2(&end, OP_ge_u, remainder, magnitude);
    Value *more = tt_build2(&end, OP_add, quotient, unit),
          *less = tt_build2(&end, OP_sub, remainder, magnitude);
    tt_set_operand(c->loop.yield, counter.quotient, tt_build3(&end, OP_select, ends, more, quotient));
    tt_set_operand(c->loop.yield, counter.remainder, tt_build3(&end, OP_select, ends, less, remainder));
    return counter;
}

static Counter counter_of(Count *c, const Op *division, int64_t step)
{
    for (int i = 0; i < c->counters.count; i++)
        if (c->counters.data[i].divisor == tt_operand(division, 1) && c->counters.data[i].step == step)
            return c->counters.data[i];
    Counter counter = add_counter(c, division, step);
    tt_push(c->scratch, c->counters, counter);
    return counter;
}

static bool count_in_loop(Op *op, void *context)
{
    Count *c = context;
    c->loop = tt_loop(op);
    c->counters.count = 0;
    bool changed = false;
    if (!tt_has_dot(c->loop.body) || first_index(op) < 0)
        return false;
    TT_FOR_OPS_SAFE(division, c->loop.body)
    {
        int64_t step = divides_by_what_stays(&c->loop, division) ? step_of(c, tt_operand(division, 0)) : 0;
        if (!step)
            continue;
        Counter counter = counter_of(c, division, step);
        int carried = division->opcode == OP_div_s ? counter.quotient : counter.remainder;
        tt_replace_op(division, (Value *[]){tt_carried(&c->loop, carried)});
        changed = true;
    }
    return changed;
}

bool tt_gpu_count_quotients(Module *module, const GpuOptions *options, Arena *scratch)
{
    (void)options;
    Count c = {.scratch = scratch, .offsets = tt_analyze_offsets(module->functions, scratch)};
    bool changed = tt_change_loops(module->functions->body, count_in_loop, &c);
    if (changed)
        tt_simplify(module);
    return changed;
}
