/* Where accesses through one pointer can meet: what is known of their offsets modulo powers of two, and how far elements of
 * what both share are apart. Index arithmetic may wrap around at 2^32; what holds modulo a smaller power of two still
 * does, and of differences below 2^32 zero is the only one that is none modulo that. */
#include "analysis/analysis.h"

enum { LARGEST_LOG = 31, DEEPEST = 32, DEEPEST_PRODUCT = 8, DEEPEST_TERM = 10 };
static const int64_t LARGEST = 1ll << LARGEST_LOG;
static const Residues anything = {.modulus = 1};

/* As long as the interval does not cover all residues, and its ends stay small. */
static Residues interval(int64_t modulus, int64_t low, int64_t high)
{
    bool tells = modulus > 1 && low > -LARGEST && high < LARGEST && high - low < modulus;
    return tells ? (Residues){modulus, low, high} : anything;
}

static Residues sum(Residues a, Residues b)
{
    return interval(TT_MIN(a.modulus, b.modulus), a.low + b.low, a.high + b.high);
}

static Residues product(Residues a, int64_t factor)
{
    if (factor <= 0 || factor >= LARGEST)
        return anything;
    int64_t power = factor & -factor, modulus = TT_MIN(a.modulus, LARGEST / power) * power;
    Residues result = interval(modulus, a.low * factor, a.high * factor);
    return result.modulus > 1 ? result : interval(power, 0, 0);
}

static Residues residues_of(const Value *value, int depth);

static bool is_zero(Residues a) { return a.modulus > 1 && !a.low && !a.high; }

/* Multiples of a power of two stay such, whatever they are multiplied by. */
static Residues product_of(Residues a, Residues b)
{
    return is_zero(a) && !(is_zero(b) && b.modulus > a.modulus) ? a : is_zero(b) ? b : anything;
}

/* Where all results are elements of one operand. */
static bool passes_elements(const Op *op)
{
    return op->opcode == OP_hint || (op->operand_count == 1 && op->result_count == 1 && tt_has(op, SHAPE));
}

static Residues of_leaf(const Value *value)
{
    IntBounds bounds;
    if (tt_int_bounds(value, &bounds) && bounds.lowest > -LARGEST && bounds.highest < LARGEST)
        return interval(LARGEST, bounds.lowest, bounds.highest);
    return anything;
}

/* Arithmetic with few bits wraps around at a power of two that counts. */
static bool wraps_early(const Value *value) { return tt_bit_width(value->type) < 32; }

static Residues of_integer(const Value *value, int depth)
{
    const Op *op = value->op;
    int64_t constant;
    if (tt_constant_int(value, &constant))
        return interval(LARGEST, constant, constant);
    if (!op || wraps_early(value))
        return of_leaf(value);
    if (passes_elements(op) || op->opcode == OP_ext_s)
        return residues_of(tt_operand(op, 0), depth);
    bool by_constant = op->operand_count == 2 && tt_constant_int(tt_operand(op, 1), &constant);
    if (op->opcode == OP_add)
        return sum(residues_of(tt_operand(op, 0), depth), residues_of(tt_operand(op, 1), depth));
    if (op->opcode == OP_mul && by_constant)
        return product(residues_of(tt_operand(op, 0), depth), constant);
    if (op->opcode == OP_mul && depth < DEEPEST_PRODUCT) {
        Residues result =
            product_of(residues_of(tt_operand(op, 0), depth), residues_of(tt_operand(op, 1), depth));
        return result.modulus > 1 ? result : of_leaf(value);
    }
    if (op->opcode == OP_shl && by_constant && constant >= 0 && constant < LARGEST_LOG)
        return product(residues_of(tt_operand(op, 0), depth), 1ll << constant);
    return of_leaf(value);
}

static Residues residues_of(const Value *value, int depth)
{
    return depth == DEEPEST ? anything : of_integer(value, depth + 1);
}

Residues tt_pointer_residues(const Value *pointer, const Value **base)
{
    Residues total = interval(LARGEST, 0, 0);
    while (pointer->op && (pointer->op->opcode == OP_addptr || passes_elements(pointer->op))) {
        if (pointer->op->opcode == OP_addptr)
            total = sum(total, residues_of(tt_operand(pointer->op, 1), 0));
        pointer = tt_operand(pointer->op, 0);
    }
    *base = !pointer->op && !pointer->region->op ? pointer : NULL;
    return total;
}

static int64_t floor_divided(int64_t a, int64_t b) { return a / b - (a % b < 0); }

bool tt_residues_meet(Residues a, Residues b)
{
    int64_t modulus = TT_MIN(a.modulus, b.modulus);
    /* a multiple of the modulus among the differences */
    return floor_divided(b.high - a.low, modulus) * modulus >= b.low - a.high;
}

/* ---- differences --------------------------------------------------------------------------------------------------- */

/* How far elements that one run of an operation makes are apart: multiples of step, most at most. */
typedef struct Spread {
    int64_t step, most;
} Spread;

static const Spread any_distance = {1, LARGEST};

static Spread spread(int64_t step, int64_t most)
{
    return most >= LARGEST ? any_distance : most ? (Spread){step, most} : (Spread){0};
}

static Spread spread_of(const Value *value, int depth)
{
    const Op *op = value->op;
    int64_t factor;
    if (!tt_is_tile(value->type) || tt_constant_int(value, &factor))
        return (Spread){0};
    if (!op || depth == DEEPEST_TERM || wraps_early(value))
        return any_distance;
    if (op->opcode == OP_range)
        return spread(1, tt_int_attr(op, ATTR_end, 0) - 1 - tt_int_attr(op, ATTR_start, 0));
    if (passes_elements(op) || op->opcode == OP_ext_s)
        return spread_of(tt_operand(op, 0), depth + 1);
    if (op->opcode == OP_add || op->opcode == OP_sub) {
        Spread a = spread_of(tt_operand(op, 0), depth + 1), b = spread_of(tt_operand(op, 1), depth + 1);
        return spread(tt_gcd(a.step, b.step), a.most + b.most);
    }
    bool scales = op->opcode == OP_mul && tt_constant_int(tt_operand(op, 1), &factor);
    if (!scales || factor <= -LARGEST || factor >= LARGEST)
        return any_distance;
    Spread scaled = spread_of(tt_operand(op, 0), depth + 1);
    factor = factor < 0 ? -factor : factor;
    return spread(scaled.step * factor, scaled.most * factor);
}

static bool is_in_loop(const Value *value)
{
    for (const Region *r = value->op ? value->op->parent : value->region; r->op; r = r->op->parent)
        if (tt_is_loop(r->op))
            return true;
    return false;
}

/* Adds what an integer is the sum of. */
static void add_terms(OffsetSum *into, const Value *value, int depth)
{
    int64_t constant;
    const Op *op = value->op;
    if (!into->is_known)
        return;
    if (tt_constant_int(value, &constant) && constant > -LARGEST && constant < LARGEST) {
        into->constant += constant;
    } else if (op && depth < DEEPEST && !wraps_early(value) &&
               (passes_elements(op) || (op->opcode == OP_ext_s && !wraps_early(tt_operand(op, 0))))) {
        add_terms(into, tt_operand(op, 0), depth + 1);
    } else if (op && depth < DEEPEST && !wraps_early(value) && op->opcode == OP_add) {
        add_terms(into, tt_operand(op, 0), depth + 1);
        add_terms(into, tt_operand(op, 1), depth + 1);
    } else if (into->count < TT_OFFSET_TERMS && !is_in_loop(value)) {
        Spread term = spread_of(value, 0);
        into->terms[into->count++] = value;
        into->step = tt_gcd(into->step, term.step);
        into->most = TT_MIN(LARGEST, into->most + term.most);
    } else {
        into->is_known = false;
    }
}

OffsetSum tt_offset_sum(const Value *pointer)
{
    OffsetSum into = {.is_known = true};
    while (pointer->op && (pointer->op->opcode == OP_addptr || passes_elements(pointer->op))) {
        if (pointer->op->opcode == OP_addptr)
            add_terms(&into, tt_operand(pointer->op, 1), 0);
        pointer = tt_operand(pointer->op, 0);
    }
    return into;
}

static bool share_terms(const OffsetSum *a, const OffsetSum *b)
{
    bool taken[TT_OFFSET_TERMS] = {false};
    for (int i = 0; i < a->count; i++) {
        int found = 0;
        while (found < b->count && (taken[found] || b->terms[found] != a->terms[i]))
            found++;
        if (found == b->count)
            return false;
        taken[found] = true;
    }
    return a->count == b->count;
}

bool tt_offset_sums_meet(const OffsetSum *a, const OffsetSum *b)
{
    int64_t distance = a->constant - b->constant;
    distance = distance < 0 ? -distance : distance;
    if (!a->is_known || !b->is_known || a->most >= LARGEST || distance >= LARGEST || !share_terms(a, b))
        return true;
    return a->step ? distance <= a->most && distance % a->step == 0 : !distance;
}
