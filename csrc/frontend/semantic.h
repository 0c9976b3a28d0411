/* semantic.h: what the files of the language share: the rules about types and shapes (semantic*.c) that
 * builtins*.c stand on. Terms that these functions return are VALUEs unless they say otherwise; `what`
 * names the operation in messages, as the user wrote it: "`+`", "tl.where". */
#pragma once
#include "frontend/term.h"

/* The builtin being called, as "tl.load". */
const char *tt_call_name(Walker *w);
/* The program has done something that it wants to happen in each compilation, as printing. */
void tt_note_effect(Walker *w);
/* Is this a debug compilation (the option `debug`), with checks at run time? */
bool tt_debug(const Walker *w);
bool tt_checks_overflow(const Walker *w); /* and does it check integer arithmetic? */
/* The combine functions of reductions and scans hold nothing but arithmetic. */
bool tt_in_combine_function(const Walker *w);

/* ---- semantic_types.c: element types ------------------------------------------------------------------- */

/* The type that two operands meet in: of the higher kind (bool < int < float), else the wider; fp16 before bf16, unsigned
 * before signed, fp16 for two different fp8. Pointers only with themselves: NULL otherwise. A
 * number is weak: it takes the other's type unless it is of a higher kind. */
const Dtype *tt_promoted_dtype(Walker *w, const char *what, Term a, Term b);
/* Does a compile-time integer fit into an integer type? */
bool tt_int_fits(Term number, int width, bool is_unsigned);
/* Converts an operand to the promoted type; a number must fit into it. */
Term tt_convert_operand(Walker *w, const char *what, Term operand, const Dtype *dtype);
/* Promotes, converts and broadcasts all of them to one type and shape. */
void tt_unify(Walker *w, const char *what, Term *terms, int count);

Term tt_cast(Walker *w, Term t, const Dtype *dtype, Rounding rounding);
/* The same, but a compile-time number that an integer type would change is an error of the builtin being called. */
Term tt_cast_exactly(Walker *w, Term t, const Dtype *dtype);
Term tt_bitcast(Walker *w, Term t, const Dtype *dtype);
Term tt_to_bool(Walker *w, Term t); /* element by element: is it different from zero? */
/* Narrow floats as fp32, other types as they are. */
Term tt_widen_float(Walker *w, Term t);

/* ---- semantic_shapes.c: shapes ------------------------------------------------------------------------- */

Shape tt_shape_of(Term t);
const char *tt_shape_text(Walker *w, const Shape *shape); /* "[64, 32]" */
/* Raises unless every extent is positive and the tile is within the limit of elements. */
void tt_check_shape(Walker *w, const char *what, const Shape *shape);
Term tt_broadcast_to(Walker *w, const char *what, Term t, const Shape *shape);
/* The shape that operands (numbers too) broadcast to; raises when there is none. */
Shape tt_common_shape(Walker *w, const char *what, const Term *terms, int count);
void tt_broadcast_together(Walker *w, const char *what, Term *terms, int count);
Term tt_reshape(Walker *w, const char *what, Term t, const Shape *shape);
Term tt_expand_dims(Walker *w, const char *what, Term t, int axis); /* 0 .. rank */
Term tt_permute(Walker *w, Term t, const int64_t *order);
/* An axis that may count from the end, as 0 .. rank - 1; raises when it is out of range. */
int tt_check_axis(Walker *w, const char *what, int64_t axis, int rank);

/* ---- builtins: used by operators and by more than one file --------------------------------------------- */

/* A function called on scalars in a region, where it may do nothing but compute; how many results it gave. Then, with the
 * builder in the region, the end of it: what the function made of tiles of one element are scalars, too. */
int tt_call_on_scalars(Walker *w, Region *region, Term function, const Term *scalars, int count,
                       Term *results, int max_results);
void tt_end_scalar_function(Walker *w, Region *region, Value *const *results, int count);
Term tt_dot(Walker *w, const char *what, Term a, Term b);
Term tt_power(Walker *w, Term base, Term exponent);
