/* Asserts: their operands, and what they say when they fail. The same words on every target: what is known while
 * compiling is put together here, the rest in runtime/failure.c. */
#include "ir/ir.h"

Value *tt_assert_mask(const Op *op) { return op->operand_count % 2 ? NULL : tt_operand(op, 1); }

int tt_assert_values(const Op *op, Value *values[2])
{
    if (op->operand_count < 3)
        return 0;
    for (int i = 0; i < 2; i++)
        values[i] = tt_operand(op, op->operand_count - 2 + i);
    return 2;
}

const char *tt_place_text(const Loc *loc, Arena *arena)
{
    Text text = {.arena = arena};
    for (const Loc *call = loc; call; call = call->caller)
        if (call->file && call->line)
            tt_text_add(&text, "%s%s:%d", call == loc ? "" : ", called at ", call->file, call->line);
    return text.data ? text.data : "";
}

Failure tt_assert_failure(const Op *op, Arena *arena)
{
    const char *message = tt_string_attr(op, ATTR_message, ""), *kind = tt_string_attr(op, ATTR_kind, "");
    Failure failure = {.kind = !strcmp(kind, "bounds")     ? FAILURE_ACCESS
                               : !strcmp(kind, "overflow") ? FAILURE_OVERFLOW
                               : !strcmp(kind, "division") ? FAILURE_DIVISION
                                                           : FAILURE_ASSERTION,
                       .place = tt_place_text(op->loc, arena),
                       .message = tt_arena_strdup(arena, message)};
    if (failure.kind == FAILURE_ASSERTION)
        failure.message = tt_arena_format(arena, "assertion failed%s%s", *message ? ": " : "", message);
    return failure;
}
