/* Matches operations against the rules of algebra.def and builds what they say. */
#include "ir/algebra.h"
#include <math.h>

/* ---- conditions, and constants computed from constants ------------------------------------------------- */

static bool is_bool(const Match *match) { return tt_is_bool(match->values[0]->type); }
static bool is_bool_result(const Match *match) { return tt_is_bool(match->type); }
static bool have_one_type(const Match *match) { return match->values[0]->type == match->values[1]->type; }

static uint64_t unsigned_constant(const Match *match)
{
    int64_t value = 0;
    tt_constant_int(match->constants[0], &value);
    int bits = tt_bit_width(match->constants[0]->type);
    return bits == 64 ? (uint64_t)value : (uint64_t)value & ((1ull << bits) - 1);
}

static bool is_power_of_two(const Match *match)
{
    uint64_t value = unsigned_constant(match);
    return value && !(value & (value - 1));
}

/* C is a power of two, and 1 / C is a normal number: it neither overflows nor is flushed to zero anywhere. */
static bool has_exact_reciprocal(const Match *match)
{
    double value = 0;
    tt_constant_float(match->constants[0], &value);
    const FloatFormat *format = tt_float_format(match->type);
    int bias = format ? format->bias : 1023, exponent;
    return isfinite(value) && fabs(frexp(value, &exponent)) == 0.5 && 1 - exponent >= 1 - bias &&
           1 - exponent <= bias;
}

static Value *log2_of(Builder *b, const Match *match)
{
    return tt_build_int(b, match->type, 63 - __builtin_clzll(unsigned_constant(match)));
}

static Value *less_one(Builder *b, const Match *match)
{
    return tt_build_int(b, match->type, (int64_t)(unsigned_constant(match) - 1));
}

static Value *negative(Builder *b, const Match *match)
{
    return tt_build_int(b, match->type, (int64_t)-unsigned_constant(match));
}

static Value *reciprocal_of(Builder *b, const Match *match)
{
    double value = 1;
    tt_constant_float(match->constants[0], &value);
    return tt_build_float(b, match->type, 1 / value);
}

/* ---- the table ----------------------------------------------------------------------------------------- */

#define VALUE(letter) &(const Pattern){.kind = PATTERN_VALUE, .index = letter}
#define CONSTANT(letter) &(const Pattern){.kind = PATTERN_CONSTANT, .index = letter}
#define X VALUE(0)
#define Y VALUE(1)
#define Z VALUE(2)
#define W VALUE(3)
#define C CONSTANT(0)
#define D CONSTANT(1)
#define INT(n) &(const Pattern){.kind = PATTERN_INT, .integer = n}
#define REAL(f) &(const Pattern){.kind = PATTERN_REAL, .real = f}
#define FROM(f) &(const Pattern){.kind = PATTERN_COMPUTED, .compute = f}
#define N(op, ...) &(const Pattern){.kind = PATTERN_OP, .opcode = OP_##op, .operands = {__VA_ARGS__}}
#define ALWAYS NULL

const Rule tt_rules[] = {
#define RULE(from, to, condition, exactness, reason) {from, to, condition, exactness, reason},
#include "ir/algebra.def"
};
const int tt_rule_count = TT_COUNT(tt_rules);

/* The opcode of each pattern's root, close together for the search. */
#undef N
#define N(op, ...) OP_##op
_Static_assert(TT_OPCODES <= 256, "an opcode fits in a byte");
static const uint8_t roots[] = {
#define RULE(from, to, condition, exactness, reason) from,
#include "ir/algebra.def"
};

/* ---- matching ------------------------------------------------------------------------------------------ */

static bool bind(Value **letter, Value *value)
{
    if (*letter && *letter != value)
        return false;
    *letter = value;
    return true;
}

static bool is_integer(const Value *value, int64_t number)
{
    int64_t constant;
    if (!tt_constant_int(value, &constant))
        return false;
    int unused = 64 - tt_bit_width(value->type);
    return (uint64_t)constant << unused == (uint64_t)number << unused;
}

static bool is_real(const Value *value, double number)
{
    double constant;
    return tt_constant_float(value, &constant) && constant == number && signbit(constant) == signbit(number);
}

/* One way to match: bit n of `flips` says whether the operands of the n-th operation that commutes change
 * places. */
typedef struct Attempt {
    Match match;
    unsigned flips;
    int commuting;
} Attempt;

static bool match_operands(const Pattern *pattern, Value *const *operands, int count, Attempt *attempt);

static bool match_value(const Pattern *pattern, Value *value, Attempt *attempt)
{
    switch (pattern->kind) {
    case PATTERN_VALUE:
        return bind(&attempt->match.values[pattern->index], value);
    case PATTERN_CONSTANT:
        return tt_is_constant(value) && bind(&attempt->match.constants[pattern->index], value);
    case PATTERN_INT:
        return is_integer(value, pattern->integer);
    case PATTERN_REAL:
        return is_real(value, pattern->real);
    case PATTERN_OP:
        break;
    case PATTERN_COMPUTED:
        return false;
    }
    const Op *op = tt_def(value, pattern->opcode);
    if (!op || op->operand_count > 3)
        return false;
    Value *operands[3];
    for (int i = 0; i < op->operand_count; i++)
        operands[i] = tt_operand(op, i);
    return match_operands(pattern, operands, op->operand_count, attempt);
}

/* An operation that commutes has two operands. */
static bool match_operands(const Pattern *pattern, Value *const *operands, int count, Attempt *attempt)
{
    bool flip = false;
    if (tt_op_infos[pattern->opcode].traits & COMMUTES)
        flip = attempt->flips >> attempt->commuting++ & 1;
    for (int i = 0; i < count; i++)
        if (!match_value(pattern->operands[i], operands[flip ? 1 - i : i], attempt))
            return false;
    return true;
}

/* Tries every order of what commutes. An attempt that fails has seen the operations on which it depends, so
 * no order of the others is worth trying: the next one flips the last that was seen. */
static bool match_rule(const Rule *rule, Value *const *operands, int count, const Type *type, Match *match)
{
    for (unsigned flips = 0;;) {
        Attempt attempt = {.match.type = type, .flips = flips};
        if (match_operands(rule->pattern, operands, count, &attempt) &&
            (!rule->condition || rule->condition(&attempt.match))) {
            *match = attempt.match;
            return true;
        }
        int last = attempt.commuting - 1;
        while (last >= 0 && flips >> last & 1)
            last--;
        if (last < 0)
            return false;
        flips = (flips & ((1u << last) - 1)) | 1u << last;
    }
}

/* ---- replacing ----------------------------------------------------------------------------------------- */

/* `type` is that of the place; an operation inside a replacement computes it from its operands. */
static Value *build(Builder *b, const Pattern *pattern, const Match *match, const Type *type)
{
    switch (pattern->kind) {
    case PATTERN_VALUE:
        return match->values[pattern->index];
    case PATTERN_CONSTANT:
        return match->constants[pattern->index];
    case PATTERN_INT:
        return tt_build_int(b, type, pattern->integer);
    case PATTERN_REAL:
        return tt_build_float(b, type, pattern->real);
    case PATTERN_COMPUTED:
        return pattern->compute(b, match);
    case PATTERN_OP:
        break;
    }
    Value *operands[3];
    int count = 0;
    for (; count < 3 && pattern->operands[count]; count++)
        operands[count] = build(b, pattern->operands[count], match, type);
    return tt_build(b, pattern->opcode, operands, count,
                    tt_op_infos[pattern->opcode].rule == CAST ? type : NULL, NULL);
}

Value *tt_build_replacement(Builder *b, const Pattern *replacement, const Match *match)
{
    return build(b, replacement, match, match->type);
}

static bool builds_operations(const Pattern *replacement)
{
    return replacement->kind == PATTERN_OP || replacement->kind == PATTERN_COMPUTED;
}

Value *tt_apply_rules(Builder *b, Opcode opcode, Value *const *operands, int operand_count, const Type *type,
                      bool may_build)
{
    for (int i = 0; i < tt_rule_count; i++) {
        const Rule *rule = &tt_rules[i];
        if (roots[i] != opcode || (!may_build && builds_operations(rule->replacement)))
            continue;
        Match match;
        if (match_rule(rule, operands, operand_count, type, &match))
            return tt_build_replacement(b, rule->replacement, &match);
    }
    return NULL;
}
