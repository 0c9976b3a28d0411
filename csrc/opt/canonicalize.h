/* Between the files of the canonicalize pass, and what another one asks of it. */
#pragma once
#include "opt/pass.h"

/* What a shape operation is in simpler terms, or NULL: canonicalize_shape.c. */
Value *tt_simplify_shape(Builder *b, Op *op);
/* A split whose halves are known: replaces its results and erases it. */
bool tt_simplify_split(Op *op);
/* Loops and branches that constants decide; may erase the operation: canonicalize_control.c. */
bool tt_simplify_control(Op *op);
/* Are two values equal if `x` and `y` are (NULL: in any case), by pure operations of so many levels? */
bool tt_equal_if(const Value *a, const Value *b, const Value *x, const Value *y, int depth);
