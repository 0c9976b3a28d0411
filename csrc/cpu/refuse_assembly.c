/* Assembly that a program brings is written for one kind of GPU. */
#include "cpu/lower.h"

static void visit(Op *op, void *context)
{
    (void)context;
    if (op->opcode == OP_inline_asm || op->opcode == OP_inline_asm_effect)
        tt_unsupported(op->loc, "inline assembly on a CPU: it is written for one kind of GPU");
}

bool tt_cpu_refuse_assembly(Module *module, Arena *scratch)
{
    (void)scratch;
    TT_FOR_FUNCTIONS(function, module)
    tt_walk(function->body, visit, NULL);
    return false;
}
