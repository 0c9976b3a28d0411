/* Where accesses through one pointer can meet: what is known of their offsets modulo powers of two. Index arithmetic may
 * wrap around at 2^32; what holds modulo a smaller power of two still does. */
#include "analysis/analysis.h"

enum { LARGEST_LOG = 31, DEEPEST = 32 };
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

static Residues of_integer(const Value *value, int depth)
{
    const Op *op = value->op;
    int64_t constant;
    if (tt_constant_int(value, &constant))
        return interval(LARGEST, constant, constant);
    if (!op)
        return of_leaf(value);
    if (passes_elements(op) || op->opcode == OP_ext_s)
        return residues_of(tt_operand(op, 0), depth);
    bool by_constant = op->operand_count == 2 && tt_constant_int(tt_operand(op, 1), &constant);
    if (op->opcode == OP_add)
        return sum(residues_of(tt_operand(op, 0), depth), residues_of(tt_operand(op, 1), depth));
    if (op->opcode == OP_mul && by_constant)
        return product(residues_of(tt_operand(op, 0), depth), constant);
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
