/* The rules of algebra.def as data: for fold.c and the canonicalize pass, which apply them, and the tests,
 * which walk them. */
#pragma once
#include "ir/ir.h"

typedef enum PatternKind {
    PATTERN_VALUE,    /* any value; `index` says which letter */
    PATTERN_CONSTANT, /* a constant */
    PATTERN_INT,      /* the literal `number`, wrapped to the width that its place asks for */
    PATTERN_REAL,
    PATTERN_OP,
    PATTERN_COMPUTED, /* in replacements: the constant that `compute` makes */
} PatternKind;

enum { TT_PATTERN_LETTERS = 4, TT_PATTERN_CONSTANTS = 2 };

/* What the letters of a pattern stand for. */
typedef struct Match {
    Value *values[TT_PATTERN_LETTERS];
    Value *constants[TT_PATTERN_CONSTANTS];
    const Type *type; /* of the root */
} Match;

typedef struct Pattern {
    PatternKind kind;
    int index;
    Opcode opcode;
    int64_t integer;
    double real;
    Value *(*compute)(Builder *b, const Match *match);
    const struct Pattern *operands[3];
} Pattern;

typedef enum Exactness { BITS, VALUES } Exactness; /* see algebra.def */

typedef struct Rule {
    const Pattern *pattern, *replacement;
    bool (*condition)(const Match *match);
    Exactness exactness;
    const char *reason;
} Rule;
extern const Rule tt_rules[];
extern const int tt_rule_count;

/* The value that a replacement stands for. Operations are built (and folded) by `b`; a root that is a cast or
 * a literal takes the type in `match`. */
Value *tt_build_replacement(Builder *b, const Pattern *replacement, const Match *match);
/* What the first rule that fits makes of an operation; NULL when none does. Without `may_build` only rules
 * whose replacement is an existing value or a literal are tried. */
Value *tt_apply_rules(Builder *b, Opcode opcode, Value *const *operands, int operand_count, const Type *type,
                      bool may_build);
