/* See ranges.h. */
#include "analysis/ranges.h"
#include <stdlib.h>

static const IntBounds anything = {INT64_MIN, INT64_MAX};

static IntBounds add(IntBounds a, IntBounds b)
{
    IntBounds sum;
    return __builtin_add_overflow(a.lowest, b.lowest, &sum.lowest) ||
                   __builtin_add_overflow(a.highest, b.highest, &sum.highest)
               ? anything
               : sum;
}

static IntBounds subtract(IntBounds a, IntBounds b)
{
    IntBounds difference;
    return __builtin_sub_overflow(a.lowest, b.highest, &difference.lowest) ||
                   __builtin_sub_overflow(a.highest, b.lowest, &difference.highest)
               ? anything
               : difference;
}

static IntBounds hull(const int64_t values[4])
{
    IntBounds bounds = {values[0], values[0]};
    for (int i = 1; i < 4; i++) {
        bounds.lowest = TT_MIN(bounds.lowest, values[i]);
        bounds.highest = TT_MAX(bounds.highest, values[i]);
    }
    return bounds;
}

static IntBounds multiply(IntBounds a, IntBounds b)
{
    int64_t products[4];
    if (__builtin_mul_overflow(a.lowest, b.lowest, &products[0]) ||
        __builtin_mul_overflow(a.lowest, b.highest, &products[1]) ||
        __builtin_mul_overflow(a.highest, b.lowest, &products[2]) ||
        __builtin_mul_overflow(a.highest, b.highest, &products[3]))
        return anything;
    return hull(products);
}

/* What a division by zero gives is not said, but it is a number of the type. */
static IntBounds any_of(const RangeTerm *term)
{
    return term->is_long ? anything : (IntBounds){INT32_MIN, INT32_MAX};
}

static bool has(IntBounds bounds, int64_t value) { return bounds.lowest <= value && value <= bounds.highest; }

static IntBounds divide(const RangeTerm *term, IntBounds a, IntBounds b)
{
    if (has(b, 0) || (a.lowest == INT64_MIN && has(b, -1)))
        return any_of(term);
    int64_t quotients[] = {a.lowest / b.lowest, a.lowest / b.highest, a.highest / b.lowest,
                           a.highest / b.highest};
    return hull(quotients);
}

/* The sign is that of the dividend. */
static IntBounds remainder_of(const RangeTerm *term, IntBounds a, IntBounds b)
{
    if (has(b, 0) || b.lowest == INT64_MIN || a.lowest == INT64_MIN)
        return any_of(term);
    int64_t most = TT_MAX(b.highest, -b.lowest) - 1;
    return (IntBounds){a.lowest < 0 ? -TT_MIN(-a.lowest, most) : 0,
                       a.highest > 0 ? TT_MIN(a.highest, most) : 0};
}

/* Arithmetic shift; by the width or more it leaves the sign. */
static IntBounds shift_right(IntBounds a, IntBounds b)
{
    if (b.lowest < 0)
        return anything;
    int least = (int)TT_MIN(b.lowest, 63), most = (int)TT_MIN(b.highest, 63);
    return (IntBounds){a.lowest >> (a.lowest < 0 ? least : most),
                       a.highest >> (a.highest < 0 ? most : least)};
}

static IntBounds trips(IntBounds lower, IntBounds upper, IntBounds step)
{
    IntBounds distance = subtract(upper, lower);
    int64_t by = TT_MAX(step.lowest, 1);
    return (IntBounds){0, distance.highest <= 0 ? 0 : (distance.highest - 1) / by + 1};
}

static IntBounds carried(IntBounds initial, IntBounds step, IntBounds count)
{
    return add(initial, multiply((IntBounds){0, TT_MAX(count.highest, 0)}, step));
}

static IntBounds below(IntBounds initial, IntBounds limit, IntBounds step)
{
    if (step.lowest < 0 || limit.highest == INT64_MIN)
        return anything;
    return (IntBounds){initial.lowest, TT_MAX(initial.lowest, limit.highest - 1)};
}

IntBounds tt_range_of_term(const RangeTerm *term, const IntBounds *terms, const IntBounds *inputs)
{
    IntBounds a = terms[term->a], b = terms[term->b], c = terms[term->c];
    switch (term->kind) {
    case RANGE_CONSTANT:
        return term->bounds;
    case RANGE_INPUT:
        return inputs[term->input];
    case RANGE_PROGRAM_ID:
        return (IntBounds){0, TT_MAX(a.highest - 1, 0)};
    case RANGE_ADD:
        return add(a, b);
    case RANGE_SUB:
        return subtract(a, b);
    case RANGE_MUL:
        return multiply(a, b);
    case RANGE_DIV:
        return divide(term, a, b);
    case RANGE_REM:
        return remainder_of(term, a, b);
    case RANGE_SHR:
        return shift_right(a, b);
    case RANGE_MIN:
        return (IntBounds){TT_MIN(a.lowest, b.lowest), TT_MIN(a.highest, b.highest)};
    case RANGE_MAX:
        return (IntBounds){TT_MAX(a.lowest, b.lowest), TT_MAX(a.highest, b.highest)};
    case RANGE_UNION:
        return (IntBounds){TT_MIN(a.lowest, b.lowest), TT_MAX(a.highest, b.highest)};
    case RANGE_MASKED:
        return (IntBounds){0, b.highest};
    case RANGE_LOW:
        return tt_fits_32_bits(a) ? a : (IntBounds){INT32_MIN, INT32_MAX};
    case RANGE_UNSIGNED:
        return a.lowest >= 0 && a.highest <= UINT32_MAX ? a : (IntBounds){0, UINT32_MAX};
    case RANGE_INDEX:
        return (IntBounds){a.lowest, TT_MAX(a.lowest, b.highest - (b.highest > INT64_MIN))};
    case RANGE_TRIPS:
        return trips(a, b, c);
    case RANGE_CARRIED:
        return carried(a, b, c);
    case RANGE_BELOW:
        return below(a, b, c);
    }
    return anything;
}

/* The facts among the term's own that its bounds do not prove. */
static unsigned missing_facts(const RangeTerm *term, IntBounds bounds)
{
    unsigned proved = (tt_fits_32_bits(bounds) ? FACT_FITS : 0u) |
                      (bounds.lowest >= 0 ? FACT_DIVISORS | FACT_STARTS : 0u) |
                      (bounds.lowest >= 1 && tt_fits_32_bits(bounds) ? FACT_MAPS : 0u);
    return term->facts & ~proved;
}

/* What holds for any inputs between the given ones. */
static unsigned facts_of_ranges(const RangeProgram *program, const IntBounds *inputs)
{
    enum { FEW = 128 };
    IntBounds few[FEW], *terms = few;
    if (program->term_count > FEW && !(terms = malloc(sizeof *terms * (size_t)program->term_count)))
        return tt_facts_with(program, 0); /* which is always right */
    unsigned facts = ALL_FACTS;
    for (int i = 0; i < program->term_count; i++) {
        const RangeTerm *term = &program->terms[i];
        terms[i] = tt_range_of_term(term, terms, inputs);
        facts &= ~missing_facts(term, terms[i]);
    }
    if (terms != few)
        free(terms);
    return facts;
}

unsigned tt_facts_with(const RangeProgram *program, unsigned facts)
{
    unsigned decided = program && program->counts_programs ? FACTS_OF_GRID : 0;
    for (int i = 0; program && i < program->term_count; i++)
        decided |= program->terms[i].facts;
    return (unsigned)ALL_FACTS & (facts | ~decided);
}

/* ---- launches --------------------------------------------------------------------------------------------- */

static int64_t number_of(RangeInput input, LaunchNumbers numbers)
{
    if (input.is_extent)
        return numbers.extents[input.index];
    uint64_t bits = numbers.slots[input.index];
    return input.is_long ? (int64_t)bits : (int32_t)bits;
}

/* Bounds that hold what is proved and the number, and with room for what may come next. */
static IntBounds grown(IntBounds proved, int64_t number, bool with_room)
{
    int64_t lowest = number, highest = number;
    if (with_room && number > 0 && number <= INT32_MAX) {
        lowest = 1;
        highest = tt_next_pow2(number);
    }
    return (IntBounds){TT_MIN(proved.lowest, lowest), TT_MAX(proved.highest, highest)};
}

static void read_bounds(const RangeProgram *program, LaunchNumbers numbers, const IntBounds *proved,
                        bool with_room, IntBounds *bounds)
{
    static const IntBounds nothing = {INT64_MAX, INT64_MIN};
    for (int i = 0; i < program->input_count; i++)
        bounds[i] = grown(proved ? proved[i] : nothing, number_of(program->inputs[i], numbers), with_room);
}

/* Where everything holds, it mostly does for more numbers: the widest bounds for which it does. */
static unsigned widen_bounds(const RangeProgram *program, const KnownLaunches *known, LaunchNumbers numbers,
                             IntBounds *bounds)
{
    const IntBounds *proved =
        known->count && known->ranges[0].facts == ALL_FACTS ? known->ranges[0].inputs : NULL;
    for (int attempt = proved ? 0 : 2; attempt < 3; attempt++) {
        read_bounds(program, numbers, attempt < 2 ? proved : NULL, attempt != 1, bounds);
        if (facts_of_ranges(program, bounds) == ALL_FACTS)
            return ALL_FACTS;
    }
    read_bounds(program, numbers, NULL, false, bounds);
    return facts_of_ranges(program, bounds);
}

unsigned tt_facts_of_grid(LaunchNumbers numbers)
{
    int64_t one_each = numbers.multiprocessors, two_each = 2 * one_each, programs = 1;
    if (!numbers.extents || !one_each)
        return 0;
    for (int i = 0; i < 3 && programs <= two_each; i++)
        programs *= numbers.extents[i];
    return (programs <= one_each ? FACT_ONE_EACH : 0u) | (programs <= two_each ? FACT_TWO_EACH : 0u);
}

/* The grid decides about its own facts, where the code asks for them. */
static unsigned with_grid(const RangeProgram *program, unsigned facts, LaunchNumbers numbers)
{
    return program->counts_programs ? (facts & ~(unsigned)FACTS_OF_GRID) | tt_facts_of_grid(numbers) : facts;
}

unsigned tt_facts_of_numbers(const RangeProgram *program, LaunchNumbers numbers)
{
    IntBounds bounds[program->input_count + 1];
    read_bounds(program, numbers, NULL, false, bounds);
    return with_grid(program, facts_of_ranges(program, bounds), numbers);
}

void tt_range_terms(const RangeProgram *program, LaunchNumbers numbers, IntBounds *terms)
{
    IntBounds inputs[program->input_count + 1];
    read_bounds(program, numbers, NULL, false, inputs);
    for (int i = 0; i < program->term_count; i++)
        terms[i] = tt_range_of_term(&program->terms[i], terms, inputs);
}

static bool is_between(const RangeProgram *program, const IntBounds *bounds, LaunchNumbers numbers)
{
    for (int i = 0; i < program->input_count; i++) {
        int64_t number = number_of(program->inputs[i], numbers);
        if (number < bounds[i].lowest || number > bounds[i].highest)
            return false;
    }
    return true;
}

/* The one at `index` becomes the latest. */
static unsigned bring_forward(KnownLaunches *known, int index)
{
    for (int i = index; i > 0; i--) {
        __typeof__(known->ranges[0]) before = known->ranges[i - 1];
        known->ranges[i - 1] = known->ranges[i];
        known->ranges[i] = before;
    }
    return known->ranges[0].facts;
}

unsigned tt_facts_of_launch(const RangeProgram *program, KnownLaunches *known, LaunchNumbers numbers)
{
    for (int i = 0; i < known->count; i++)
        if (is_between(program, known->ranges[i].inputs, numbers))
            return with_grid(program, bring_forward(known, i), numbers);
    IntBounds bounds[program->input_count + 1];
    unsigned facts = widen_bounds(program, known, numbers, bounds);
    int last = known->count < KNOWN_LAUNCHES ? known->count++ : KNOWN_LAUNCHES - 1;
    known->ranges[last].facts = facts;
    memcpy(known->ranges[last].inputs, bounds, sizeof *bounds * (size_t)program->input_count);
    return with_grid(program, bring_forward(known, last), numbers);
}
