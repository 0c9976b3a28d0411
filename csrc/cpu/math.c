/* placeholder */
#include "cpu/emit.h"
LLVMValueRef emit_math(Emit *e, const Op *op, const char *name, LLVMValueRef *args, int arg_count)
{
    (void)e; (void)args; (void)arg_count;
    tt_unsupported(op->loc, "no %s", name);
}
