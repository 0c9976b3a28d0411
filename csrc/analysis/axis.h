/* Between the files of the axis analysis. Groups, divisors and the reasoning behind them: axis_info.c. */
#pragma once
#include "analysis/analysis.h"

/* Divisors are powers of two up to this one, which stands for "any" (zero is divisible by all). */
#define TT_MAX_DIVISOR ((int64_t)1 << 30)

static inline int64_t tt_extent(const Type *type, int dim) { return tt_is_tile(type) ? type->shape[dim] : 1; }
static inline int tt_axis_rank(const Type *type) { return tt_is_tile(type) ? type->rank : 1; }
/* By how much one step of contiguity grows the number: 1, or a pointer's element in bytes. */
static inline int64_t tt_axis_unit(const Type *type)
{
    return tt_is_ptr(type) ? tt_byte_width(tt_element(type)->element) : 1;
}

/* An operand: what is known of it, and its type. */
typedef struct AxisOperand {
    const AxisInfo *info;
    const Type *type;
} AxisOperand;

static inline AxisSign tt_sign_of(int64_t constant)
{
    return constant >= 0 ? SIGN_NOT_NEGATIVE : SIGN_UNKNOWN;
}
AxisInfo tt_unknown_axes(const Type *type);
/* The largest power of two that divides x. */
int64_t tt_divisor_of(int64_t x);
int64_t tt_multiply_divisors(int64_t a, int64_t b);
/* Groups that are aligned groups of both operands (in any order of a and b). */
int64_t tt_meet_groups(int64_t a, int64_t b, int64_t extent);
/* What divides the elements at all multiples of `group` along dim; with group 1, all elements. */
int64_t tt_divisor_at(AxisOperand x, int dim, int64_t group);
/* What divides every element. */
int64_t tt_divisor_of_all(AxisOperand x);

/* axis_arithmetic.c: integer and pointer arithmetic, comparisons, selection, casts. */
AxisInfo tt_axes_of_arithmetic(const Op *op, const AxisOperand *operands);
/* axis_shape.c: operations that move elements; `result` says which of a split. */
AxisInfo tt_axes_of_shape(const Op *op, const AxisOperand *operands);
