/* placeholder */
#include "cpu/lower.h"
void plan_dot(Lower *l, Op *op, int now) { (void)l;(void)op;(void)now; }
void lower_dot(Lower *l, Op *op) { (void)l; tt_unsupported(op->loc, "no dot"); }
