/* offsets: the integers that addresses are computed from, and what they have to do with each other.
 *
 * An i32 sum or product wraps around as the user wrote it. Where it only says how far an address is from a parameter,
 * that is never meant: the address must be the one that unbounded arithmetic gives. So addresses, and the comparisons
 * that mask them, depend on a set of i32 values, and as long as none of these leaves 32 bits the code is right as it
 * is. Bounds of them follow from the numbers that a launch comes with (scalar parameters, the grid), from ranges and
 * from loops; a RangeProgram computes these, and opt/widen.c makes 64-bit arithmetic of what may not fit. The same bounds
 * say whether what opt/signs.c has marked divides nothing negative.
 *
 * What is computed from memory has no bounds, and stays as it was written; so does all that is unsigned or works on
 * bits, which is written to wrap around. Sums alone are followed through unknown operands. */
#pragma once
#include "analysis/ranges.h"

typedef struct Offsets Offsets;
/* The analysis keeps notes on values, which passes that run later may not rely on. */
Offsets *tt_analyze_offsets(const Function *kernel, Arena *arena);
/* Do addresses depend on it, or comparisons of what they depend on? */
bool tt_offset_is_reached(const Offsets *offsets, const Value *value);
/* May it be another number than unbounded arithmetic gives, in some launch? */
bool tt_offset_may_wrap(Offsets *offsets, const Value *value);
/* Do bounds keep it from that in the launches that narrow code is for, since addresses depend on it? */
bool tt_offset_has_bounds(Offsets *offsets, const Value *value);
/* A comparison that goes by the sign. */
bool tt_is_signed_comparison(const Op *op);
/* What a launch has to check, in the arena; NULL: nothing. */
RangeProgram *tt_offset_checks(Offsets *offsets);
