/* See offsets.h. */
#include "analysis/offsets.h"

enum { UNKNOWN = -1 };

typedef struct Note {
    int term; /* UNKNOWN while it is looked for, too */
    bool is_known, is_reached;
    enum { NOT_ASKED, WRAPS, FITS } wrapping;
} Note;

struct Offsets {
    Arena *arena;
    const Function *kernel;
    Map notes; /* Value* -> Note* */
    TT_VECTOR(RangeTerm) terms;
    TT_VECTOR(RangeInput) inputs;
    TT_VECTOR(const Value *) reached; /* whose operands and users are to be looked at */
    TT_VECTOR(Op *) blocks;           /* that may be copied as blocks */
    bool counts_programs;             /* see RangeProgram */
};

static Note *note_of(Offsets *offsets, const Value *value)
{
    void **slot = tt_map_slot_ptr(&offsets->notes, value);
    if (!*slot) {
        Note *note = TT_NEW(offsets->arena, Note);
        note->term = UNKNOWN;
        *slot = note;
    }
    return *slot;
}

/* ---- terms ------------------------------------------------------------------------------------------------------------ */

/* Numbers of any launch. */
static IntBounds input_bounds(const Offsets *offsets, RangeInput input)
{
    if (input.is_extent)
        return (IntBounds){1, INT32_MAX};
    int bits = tt_bit_width(offsets->kernel->body->args[input.index]->type);
    return bits == 64 ? (IntBounds){INT64_MIN, INT64_MAX}
                      : (IntBounds){-((int64_t)1 << (bits - 1)), ((int64_t)1 << (bits - 1)) - 1};
}

static int add_term(Offsets *offsets, RangeTerm term)
{
    const int operands[] = {term.a, term.b, term.c};
    for (int i = 0; i < 3; i++)
        if (operands[i] == UNKNOWN)
            return UNKNOWN;
    if (term.kind == RANGE_INPUT)
        term.bounds = input_bounds(offsets, offsets->inputs.data[term.input]);
    else if (term.kind != RANGE_CONSTANT) {
        /* The bounds of terms lie in the terms. */
        IntBounds known[3], none = {0};
        RangeTerm local = term;
        for (int i = 0; i < 3; i++)
            known[i] = offsets->terms.data[operands[i]].bounds;
        local.a = 0, local.b = 1, local.c = 2;
        term.bounds = tt_range_of_term(&local, known, &none);
    }
    tt_push(offsets->arena, offsets->terms, term);
    return offsets->terms.count - 1;
}

static int constant_term(Offsets *offsets, int64_t lowest, int64_t highest)
{
    return add_term(offsets, (RangeTerm){.kind = RANGE_CONSTANT, .bounds = {lowest, highest}});
}

static int input_term(Offsets *offsets, bool is_extent, int index)
{
    int number = 0;
    while (number < offsets->inputs.count && (offsets->inputs.data[number].is_extent != is_extent ||
                                              offsets->inputs.data[number].index != index))
        number++;
    bool is_long = !is_extent && tt_bit_width(offsets->kernel->body->args[index]->type) == 64;
    if (number == offsets->inputs.count)
        tt_push(offsets->arena, offsets->inputs, ((RangeInput){is_extent, is_long, index}));
    return add_term(offsets, (RangeTerm){.kind = RANGE_INPUT, .input = number});
}

static int term_of(Offsets *offsets, const Value *value);

static int binary_term(Offsets *offsets, RangeKind kind, const Op *op)
{
    int a = term_of(offsets, tt_operand(op, 0)), b = term_of(offsets, tt_operand(op, 1));
    return add_term(
        offsets,
        (RangeTerm){.kind = kind, .a = a, .b = b, .is_long = tt_bit_width(op->results[0]->type) == 64});
}

static int union_term(Offsets *offsets, const Value *x, const Value *y)
{
    int a = term_of(offsets, x), b = term_of(offsets, y);
    return a == b ? a : add_term(offsets, (RangeTerm){.kind = RANGE_UNION, .a = a, .b = b});
}

static int unary_term(Offsets *offsets, RangeKind kind, const Op *op)
{
    return add_term(offsets, (RangeTerm){.kind = kind, .a = term_of(offsets, tt_operand(op, 0))});
}

static int masked_term(Offsets *offsets, const Op *op)
{
    for (int i = 0; i < 2; i++) {
        int64_t mask;
        if (tt_constant_int(tt_operand(op, i), &mask) && mask >= 0)
            return constant_term(offsets, 0, mask);
    }
    return UNKNOWN;
}

/* By a constant that is less than the width: the product with a power of two. */
static int shifted_term(Offsets *offsets, const Op *op)
{
    int64_t bits;
    if (!tt_constant_int(tt_operand(op, 1), &bits) || bits < 0 || bits > 31)
        return UNKNOWN;
    int factor = constant_term(offsets, (int64_t)1 << bits, (int64_t)1 << bits);
    return add_term(offsets,
                    (RangeTerm){.kind = RANGE_MUL, .a = term_of(offsets, tt_operand(op, 0)), .b = factor});
}

/* Operations that keep the elements of their first operand, or some of them. */
static bool moves_elements(const Op *op)
{
    return op->opcode == OP_hint ||
           (tt_has(op, SHAPE) && op->result_count == 1 && op->opcode != OP_join && op->opcode != OP_cat);
}

static int term_of_op(Offsets *offsets, const Op *op)
{
    int64_t number;
    int width = op->operand_count ? tt_bit_width(tt_operand(op, 0)->type) : 32;
    switch (op->opcode) {
    case OP_constant:
        return tt_constant_int(op->results[0], &number) ? constant_term(offsets, number, number) : UNKNOWN;
    case OP_range:
        return constant_term(offsets, tt_int_attr(op, ATTR_start, 0), tt_int_attr(op, ATTR_end, 0) - 1);
    case OP_program_id:
        return add_term(offsets,
                        (RangeTerm){.kind = RANGE_PROGRAM_ID,
                                    .a = input_term(offsets, true, (int)tt_int_attr(op, ATTR_axis, 0))});
    case OP_num_programs:
        return input_term(offsets, true, (int)tt_int_attr(op, ATTR_axis, 0));
    case OP_add:
        return binary_term(offsets, RANGE_ADD, op);
    case OP_sub:
        return binary_term(offsets, RANGE_SUB, op);
    case OP_mul:
        return binary_term(offsets, RANGE_MUL, op);
    case OP_div_s:
        return binary_term(offsets, RANGE_DIV, op);
    case OP_rem_s:
        return binary_term(offsets, RANGE_REM, op);
    case OP_shr_s:
        return binary_term(offsets, RANGE_SHR, op);
    case OP_min_s:
        return binary_term(offsets, RANGE_MIN, op);
    case OP_max_s:
        return binary_term(offsets, RANGE_MAX, op);
    case OP_shl:
        return shifted_term(offsets, op);
    case OP_and:
        return masked_term(offsets, op);
    case OP_select:
        return union_term(offsets, tt_operand(op, 1), tt_operand(op, 2));
    case OP_ext_s:
        return width >= 32 ? term_of(offsets, tt_operand(op, 0)) : UNKNOWN;
    case OP_ext_u:
        return width == 1    ? constant_term(offsets, 0, 1)
               : width == 32 ? unary_term(offsets, RANGE_UNSIGNED, op)
                             : UNKNOWN;
    case OP_trunc:
        return tt_bit_width(op->results[0]->type) == 32 ? unary_term(offsets, RANGE_LOW, op) : UNKNOWN;
    default:
        return moves_elements(op) ? term_of(offsets, tt_operand(op, 0)) : UNKNOWN;
    }
}

/* ---- loops and branches ------------------------------------------------------------------------------------------------ */

/* What the next value of a carried one is, if that grows by a step that does not depend on it. */
static int step_term(Offsets *offsets, const Value *next, const Value *carried, const Value **step)
{
    const Op *op = next->op;
    if (!op || (op->opcode != OP_add && op->opcode != OP_sub))
        return UNKNOWN;
    int of_step = tt_operand(op, 0) == carried                           ? 1
                  : op->opcode == OP_add && tt_operand(op, 1) == carried ? 0
                                                                         : UNKNOWN;
    if (of_step == UNKNOWN)
        return UNKNOWN;
    *step = tt_operand(op, of_step);
    int term = term_of(offsets, *step);
    if (op->opcode == OP_add)
        return term;
    return add_term(
        offsets,
        (RangeTerm){.kind = RANGE_SUB, .a = constant_term(offsets, 0, 0), .b = term, .is_long = true});
}

/* A carried value of a loop, by its number: its place in the loop's operands, in a region's arguments, and its step. */
typedef struct Carry {
    const Op *loop;
    const Value *initial, *next, *step; /* no step: unchanged, or unknown */
    int step_term;
} Carry;

static Carry find_carry(Offsets *offsets, const Op *loop, int number)
{
    bool is_for = loop->opcode == OP_for;
    const Region *body = loop->regions[loop->region_count - 1];
    Carry carry = {.loop = loop,
                   .initial = tt_operand(loop, number + (is_for ? 3 : 0)),
                   .next = tt_operand(tt_terminator(body), number)};
    carry.step_term = step_term(offsets, carry.next, body->args[number + is_for], &carry.step);
    return carry;
}

static bool is_unchanged(const Op *loop, int number)
{
    const Region *body = loop->regions[loop->region_count - 1];
    return tt_operand(tt_terminator(body), number) == body->args[number + (loop->opcode == OP_for)];
}

static int trips_term(Offsets *offsets, const Op *loop, bool in_body)
{
    int trips = add_term(offsets, (RangeTerm){.kind = RANGE_TRIPS,
                                              .a = term_of(offsets, tt_operand(loop, 0)),
                                              .b = term_of(offsets, tt_operand(loop, 1)),
                                              .c = term_of(offsets, tt_operand(loop, 2))});
    if (!in_body)
        return trips;
    int one = constant_term(offsets, 1, 1);
    return add_term(offsets, (RangeTerm){.kind = RANGE_SUB, .a = trips, .b = one, .is_long = true});
}

/* In the body of a `while` whose condition keeps it below something, as long as it does not wrap around. */
static int below_term(Offsets *offsets, const Carry *carry, int number)
{
    const Region *before = carry->loop->regions[0];
    const Op *test = tt_operand(tt_terminator(before), 0)->op;
    if (!test || test->opcode != OP_lt_s || tt_operand(test, 0) != before->args[number])
        return UNKNOWN;
    return add_term(offsets, (RangeTerm){.kind = RANGE_BELOW,
                                         .a = term_of(offsets, carry->initial),
                                         .b = term_of(offsets, tt_operand(test, 1)),
                                         .c = carry->step_term});
}

/* `region` NULL: after the loop. */
static int carried_term(Offsets *offsets, const Op *loop, int number, const Region *region)
{
    if (is_unchanged(loop, number))
        return term_of(offsets, tt_operand(loop, number + (loop->opcode == OP_for ? 3 : 0)));
    Carry carry = find_carry(offsets, loop, number);
    if (carry.step_term == UNKNOWN)
        return UNKNOWN;
    int initial = term_of(offsets, carry.initial);
    if (loop->opcode == OP_for)
        return add_term(offsets, (RangeTerm){.kind = RANGE_CARRIED,
                                             .a = initial,
                                             .b = carry.step_term,
                                             .c = trips_term(offsets, loop, region != NULL)});
    int below = below_term(offsets, &carry, number);
    int grown = add_term(offsets, (RangeTerm){.kind = RANGE_ADD, .a = below, .b = carry.step_term});
    return add_term(offsets, (RangeTerm){.kind = RANGE_UNION, .a = initial, .b = grown});
}

static int term_of_argument(Offsets *offsets, const Value *value)
{
    const Op *op = value->region->op;
    if (!op)
        return value->region == offsets->kernel->body && !tt_is_tile(value->type) &&
                       tt_bit_width(value->type) >= 32
                   ? input_term(offsets, false, value->index)
                   : UNKNOWN;
    if (!tt_is_loop(op))
        return UNKNOWN;
    if (op->opcode != OP_for || value->index)
        return carried_term(offsets, op, value->index - (op->opcode == OP_for), value->region);
    return add_term(offsets, (RangeTerm){.kind = RANGE_INDEX,
                                         .a = term_of(offsets, tt_operand(op, 0)),
                                         .b = term_of(offsets, tt_operand(op, 1))});
}

static int term_of_result(Offsets *offsets, const Value *value)
{
    const Op *op = value->op;
    if (tt_is_loop(op))
        return carried_term(offsets, op, value->index, NULL);
    if (op->opcode == OP_if)
        return union_term(offsets, tt_operand(tt_terminator(op->regions[0]), value->index),
                          tt_operand(tt_terminator(op->regions[1]), value->index));
    return op->result_count == 1 ? term_of_op(offsets, op) : UNKNOWN;
}

static int term_of(Offsets *offsets, const Value *value)
{
    Note *note = note_of(offsets, value);
    if (note->is_known || !tt_is_int(value->type))
        return note->term;
    note->is_known = true; /* while it is looked for it is not known itself */
    note->term = value->op ? term_of_result(offsets, value) : term_of_argument(offsets, value);
    return note->term;
}

/* ---- what may wrap around ------------------------------------------------------------------------------------------------ */

/* Operations whose result, in unbounded arithmetic, is said by those of their operands from the first one on. */
static int first_followed(Offsets *offsets, const Op *op)
{
    switch (op->opcode) {
    case OP_add:
    case OP_sub:
    case OP_min_s:
    case OP_max_s:
        return 0;
    case OP_select:
        return 1;
    case OP_mul:
    case OP_div_s:
    case OP_rem_s:
    case OP_shr_s:
    case OP_shl:
        return term_of(offsets, op->results[0]) == UNKNOWN ? UNKNOWN : 0;
    case OP_ext_s:
        return tt_bit_width(tt_operand(op, 0)->type) == 32 ? 0 : UNKNOWN;
    default:
        return moves_elements(op) ? 0 : UNKNOWN;
    }
}

static int last_followed(const Op *op) { return moves_elements(op) ? 1 : op->operand_count; }

static bool has_index(const Value *value)
{
    return !value->op && value->region->op && value->region->op->opcode == OP_for && !value->index;
}

/* The loop that carries it, as an argument or a result, or NULL. */
static const Op *carrying_loop(const Value *value, int *number)
{
    const Op *op = value->op ? value->op : value->region->op;
    if (!op || !tt_is_loop(op) || has_index(value))
        return NULL;
    *number = value->index - (!value->op && op->opcode == OP_for);
    return op;
}

static bool any_may_wrap(Offsets *offsets, Value *const *values, int count)
{
    for (int i = 0; i < count; i++)
        if (values[i] && tt_offset_may_wrap(offsets, values[i]))
            return true;
    return false;
}

/* The values that it is computed from, without its own earlier ones; their number. */
static int sources_of(Offsets *offsets, const Value *value, Value *sources[3])
{
    int number, count = 0;
    const Op *loop = carrying_loop(value, &number), *op = value->op;
    if (loop) {
        if (term_of(offsets, value) == UNKNOWN)
            return 0;
        Carry carry = find_carry(offsets, loop, number);
        sources[count++] = (Value *)carry.initial;
        if (carry.step)
            sources[count++] = (Value *)carry.step;
    } else if (has_index(value)) {
        if (term_of(offsets, value) != UNKNOWN)
            for (; count < 3; count++)
                sources[count] = tt_operand(value->region->op, count);
    } else if (op && op->opcode == OP_if) {
        for (int i = 0; i < 2 && term_of(offsets, value) != UNKNOWN; i++)
            sources[count++] = tt_operand(tt_terminator(op->regions[i]), value->index);
    } else if (op && op->result_count == 1) {
        int first = first_followed(offsets, op);
        for (int i = first; first != UNKNOWN && i < last_followed(op); i++)
            sources[count++] = tt_operand(op, i);
    }
    return count;
}

static bool overflows(Offsets *offsets, const Value *value)
{
    int term = term_of(offsets, value);
    return term != UNKNOWN && tt_bit_width(value->type) == 32 &&
           !tt_fits_32_bits(offsets->terms.data[term].bounds);
}

bool tt_offset_may_wrap(Offsets *offsets, const Value *value)
{
    Note *note = note_of(offsets, value);
    if (note->wrapping == NOT_ASKED) {
        Value *sources[3];
        note->wrapping = FITS;
        int count = sources_of(offsets, value, sources);
        note->wrapping =
            count && (overflows(offsets, value) || any_may_wrap(offsets, sources, count)) ? WRAPS : FITS;
    }
    return note->wrapping == WRAPS;
}

/* ---- what addresses depend on ---------------------------------------------------------------------------------------------- */

static void reach(Offsets *offsets, const Value *value)
{
    Note *note = note_of(offsets, value);
    if (note->is_reached || !tt_is_int(value->type) || tt_bit_width(value->type) < 32)
        return;
    note->is_reached = true;
    tt_push(offsets->arena, offsets->reached, value);
}

bool tt_is_signed_comparison(const Op *op)
{
    switch (op->opcode) {
    case OP_eq:
    case OP_ne:
    case OP_lt_s:
    case OP_le_s:
    case OP_gt_s:
    case OP_ge_s:
        return true;
    default:
        return false;
    }
}

/* Comparisons of what may wrap around, moved or moved on, with something else. */
static void reach_comparisons(Offsets *offsets, const Value *value)
{
    TT_FOR_USES(use, value)
    {
        const Op *user = use->user;
        if (tt_is_signed_comparison(user)) {
            reach(offsets, tt_operand(user, 0));
            reach(offsets, tt_operand(user, 1));
        } else if (user->opcode == OP_add || user->opcode == OP_sub || user->opcode == OP_ext_s ||
                   moves_elements(user)) {
            reach(offsets, user->results[0]);
        }
    }
}

/* A `while` decides with its first region's argument what the second one's may be. */
static void reach_other_region(Offsets *offsets, const Value *value)
{
    int number;
    const Op *loop = carrying_loop(value, &number);
    for (int i = 0; loop && !value->op && i < loop->region_count; i++)
        reach(offsets, loop->regions[i]->args[value->index]);
}

static void visit(Op *op, void *context)
{
    Offsets *offsets = context;
    offsets->counts_programs |= tt_find_attr(op, ATTR_programs) != NULL;
    if (op->opcode == OP_addptr)
        reach(offsets, tt_operand(op, 1));
    for (int i = 1; op->opcode == OP_block_pointers && i < op->operand_count; i++)
        reach(offsets, tt_operand(op, i));
    if (tt_find_attr(op, ATTR_multiples))
        tt_push(offsets->arena, offsets->blocks, op);
}

Offsets *tt_analyze_offsets(const Function *kernel, Arena *arena)
{
    Offsets *offsets = TT_NEW(arena, Offsets);
    offsets->arena = offsets->notes.arena = arena;
    offsets->kernel = kernel;
    constant_term(offsets, 0, 0); /* what operands that are not there refer to */
    tt_walk(kernel->body, visit, offsets);
    for (int i = 0; i < offsets->reached.count; i++) {
        const Value *value = offsets->reached.data[i];
        Value *sources[3];
        int count = sources_of(offsets, value, sources);
        for (int k = 0; k < count; k++)
            reach(offsets, sources[k]);
        reach_other_region(offsets, value);
        if (tt_offset_may_wrap(offsets, value))
            reach_comparisons(offsets, value);
    }
    return offsets;
}

bool tt_offset_is_reached(const Offsets *offsets, const Value *value)
{
    const Note *note = tt_map_find_ptr(&offsets->notes, value);
    return note && note->is_reached;
}

bool tt_offset_has_bounds(Offsets *offsets, const Value *value)
{
    return tt_offset_is_reached(offsets, value) && term_of(offsets, value) != UNKNOWN;
}

/* ---- the checks -------------------------------------------------------------------------------------------------------------- */

/* Numbers the terms that are needed anew; their count. Operands come before what they are operands of. */
static int number_terms(const Offsets *offsets, int *numbers)
{
    const RangeTerm *terms = offsets->terms.data;
    int count = 0;
    for (int i = offsets->terms.count - 1; i >= 0; i--)
        if (numbers[i] || terms[i].facts)
            numbers[i] = numbers[terms[i].a] = numbers[terms[i].b] = numbers[terms[i].c] = 1;
    for (int i = 0; i < offsets->terms.count; i++)
        numbers[i] = numbers[i] ? count++ : UNKNOWN;
    return count;
}

/* The fact hangs on the value's bounds. */
static bool decide(Offsets *offsets, const Value *value, unsigned fact)
{
    offsets->terms.data[term_of(offsets, value)].facts |= fact;
    return true;
}

/* Is the term one number in each launch, and all that leads to it? Then each of these is to be one of 32 bits, and positive. */
static bool is_number(const Offsets *offsets, int number)
{
    const RangeTerm *term = number == UNKNOWN ? NULL : &offsets->terms.data[number];
    if (!term)
        return false;
    switch (term->kind) {
    case RANGE_CONSTANT:
        return term->bounds.lowest == term->bounds.highest;
    case RANGE_INPUT:
        return true;
    case RANGE_ADD:
    case RANGE_SUB:
    case RANGE_MUL:
    case RANGE_DIV:
    case RANGE_MIN:
    case RANGE_MAX:
        return is_number(offsets, term->a) && is_number(offsets, term->b);
    default:
        return false;
    }
}

static void decide_maps(Offsets *offsets, int number)
{
    RangeTerm *term = &offsets->terms.data[number];
    if (term->kind == RANGE_CONSTANT)
        return;
    term->facts |= FACT_MAPS;
    if (term->kind != RANGE_INPUT) {
        decide_maps(offsets, term->a);
        decide_maps(offsets, term->b);
    }
}

/* The fact hangs on whether the constant divides a term that is a number. */
static void decide_divisor(Offsets *offsets, int term, int64_t divisor)
{
    int by = constant_term(offsets, divisor, divisor), one = constant_term(offsets, 1, 1);
    int whole = add_term(offsets, (RangeTerm){.kind = RANGE_DIV, .a = term, .b = by, .is_long = true});
    whole = add_term(offsets, (RangeTerm){.kind = RANGE_MUL, .a = whole, .b = by, .is_long = true});
    int rest = add_term(offsets, (RangeTerm){.kind = RANGE_SUB, .a = whole, .b = term, .is_long = true});
    int is_none = add_term(offsets, (RangeTerm){.kind = RANGE_ADD, .a = rest, .b = one, .is_long = true});
    offsets->terms.data[is_none].facts |= FACT_MAPS;
}

/* The fact hangs on that the term, plus the constant, is positive, and of 32 bits. */
static void decide_positive(Offsets *offsets, int term, int64_t plus)
{
    int constant = constant_term(offsets, plus, plus);
    int sum = add_term(offsets, (RangeTerm){.kind = RANGE_ADD, .a = term, .b = constant, .is_long = true});
    offsets->terms.data[sum].facts |= FACT_MAPS;
}

/* Chunks from the parameter to where the array begins. */
static int place_term(Offsets *offsets, const Op *block)
{
    const Value *base = tt_operand(block, 0);
    int64_t elements = TT_CHUNK / tt_byte_width(base->type->element);
    int place = constant_term(offsets, 0, 0), by = constant_term(offsets, elements, elements);
    for (; tt_def(base, OP_addptr); base = tt_operand(base->op, 0))
        place = add_term(offsets, (RangeTerm){.kind = RANGE_ADD,
                                              .a = place,
                                              .b = term_of(offsets, tt_operand(base->op, 1)),
                                              .is_long = true});
    return add_term(offsets, (RangeTerm){.kind = RANGE_DIV, .a = place, .b = by, .is_long = true});
}

/* Extents and strides of a block that may be copied as one: notes them, as terms, if they are numbers of each launch, on which the
 * fact hangs then; and on that they are the multiples that they have to be, and that the array begins behind the parameter,
 * and the block behind its begin where nobody checks. */
static bool take_block(Offsets *offsets, Op *block)
{
    int64_t terms[2 * TT_MAX_RANK];
    int rank = block->results[0]->type->rank, count = 2 * rank, place = place_term(offsets, block);
    const Attr *multiples = tt_find_attr(block, ATTR_multiples);
    if (place == UNKNOWN)
        return false;
    for (int i = 0; i < count; i++) {
        bool is_needed = i >= rank || tt_is_checked(block, i);
        int term = term_of(offsets, tt_operand(block, is_needed ? 1 + i : 1 + 2 * rank + i));
        if (term == UNKNOWN ||
            (is_needed && (!is_number(offsets, term) || offsets->terms.data[term].bounds.highest < 1)))
            return false;
        terms[i] = is_needed ? term : UNKNOWN;
    }
    for (int i = 0; i < count; i++) {
        if (terms[i] == UNKNOWN) {
            int offset = term_of(offsets, tt_operand(block, 1 + 2 * rank + i));
            decide_positive(offsets, offset, 1);
            decide_positive(offsets, offset, block->results[0]->type->shape[i]); /* its end is of 32 bits */
            continue;
        }
        decide_maps(offsets, (int)terms[i]);
        if (multiples->ints[i] > 1)
            decide_divisor(offsets, (int)terms[i], multiples->ints[i]);
    }
    decide_positive(offsets, place, 1);
    tt_set_attr(block, tt_attr_ints(block->parent->function->module, ATTR_terms, terms, count, NULL));
    return true;
}

/* The terms have these numbers now. */
static void number_block(Op *block, const int *numbers)
{
    int64_t terms[2 * TT_MAX_RANK];
    const Attr *known = tt_find_attr(block, ATTR_terms);
    for (int i = 0; i < known->count; i++)
        terms[i] = known->ints[i] < 0 ? UNKNOWN : numbers[known->ints[i]];
    tt_set_attr(block, tt_attr_ints(block->parent->function->module, ATTR_terms, terms, known->count, NULL));
}

RangeProgram *tt_offset_checks(Offsets *offsets)
{
    bool any = offsets->counts_programs;
    for (int i = 0; i < offsets->blocks.count; i++) {
        Op *block = offsets->blocks.data[i];
        if (take_block(offsets, block))
            any = true;
        else
            offsets->blocks.data[i--] = offsets->blocks.data[--offsets->blocks.count];
        tt_remove_attr(block, ATTR_multiples);
    }
    for (int i = 0; i < offsets->reached.count; i++) {
        const Value *value = offsets->reached.data[i];
        Value *sources[3];
        unsigned fact = value->op ? (unsigned)tt_int_attr(value->op, ATTR_whole, 0) : 0;
        if (overflows(offsets, value) && sources_of(offsets, value, sources))
            any = decide(offsets, value, FACT_FITS);
        if (fact)
            any = decide(offsets, tt_operand(value->op, 0), fact);
    }
    if (!any)
        return NULL;
    int *numbers = TT_NEW_ARRAY(offsets->arena, int, offsets->terms.count);
    for (int i = 0; i < offsets->blocks.count; i++) {
        const Attr *terms = tt_find_attr(offsets->blocks.data[i], ATTR_terms);
        for (int k = 0; k < terms->count; k++)
            if (terms->ints[k] >= 0)
                numbers[terms->ints[k]] = 1; /* constants, too */
    }
    int *inputs = TT_NEW_ARRAY(offsets->arena, int, offsets->inputs.count);
    RangeProgram *program = TT_NEW(offsets->arena, RangeProgram);
    program->counts_programs = offsets->counts_programs;
    program->inputs = TT_NEW_ARRAY(offsets->arena, RangeInput, offsets->inputs.count);
    program->terms = TT_NEW_ARRAY(offsets->arena, RangeTerm, number_terms(offsets, numbers));
    for (int i = 0; i < offsets->terms.count; i++) {
        RangeTerm term = offsets->terms.data[i];
        if (numbers[i] == UNKNOWN)
            continue;
        if (term.kind == RANGE_INPUT) {
            if (!inputs[term.input]) {
                program->inputs[program->input_count++] = offsets->inputs.data[term.input];
                inputs[term.input] = program->input_count;
            }
            term.input = inputs[term.input] - 1;
        }
        term.a = numbers[term.a], term.b = numbers[term.b], term.c = numbers[term.c];
        program->terms[program->term_count++] = term;
    }
    for (int i = 0; i < offsets->blocks.count; i++)
        number_block(offsets->blocks.data[i], numbers);
    return program;
}
