/* Between verify.c (the shape of the IR) and type_rules.c (what each operation asks of its types and
 * attributes). */
#pragma once
#include "ir/ir.h"

typedef struct Verifier {
    const Module *module;
    Arena *arena;
    Map messages; /* Op* or Function* -> text, a line a failure */
    Map visible;  /* values whose definition the walk has passed */
} Verifier;

/* Records a failure of `subject` (an Op or a Function). */
void tt_verify_fail(Verifier *v, const void *subject, const char *format, ...) TT_PRINTF(3, 4);
/* "tile<4xf32>", for messages. */
const char *tt_type_text(Verifier *v, const Type *type);
/* The op's own rule. Counts of operands, results and regions are right when this is called. */
void tt_check_types(Verifier *v, const Op *op);
