/* What dot.c hands to dot_kernel.c: a product of matrices that lie in scratch. */
#pragma once
#include "cpu/lower.h"

typedef struct DotPlan {
    int64_t batches, m, n, k;
    const Type *element;         /* of the operands as the kernel reads them */
    const Type *sum;             /* that products are added up in */
    bool pairs;                  /* one instruction multiplies and adds two elements along k */
    Buffer *a, *b;               /* [batch][m][k] and [batch][k][n]; with pairs [batch][k / 2][n][2] */
    Buffer *packed_a, *packed_b; /* the same if the operand is to be written there first, else NULL */
    LLVMValueRef start; /* the accumulator is this in every element; NULL: it is in the result's buffer */
    Buffer *result;     /* [batch][m][n] */
} DotPlan;

void emit_dot(Lower *l, const DotPlan *plan);
