/* See failure.h. */
#include "runtime/failure.h"

/* The message with its values in the places that are theirs. The message of an assertion is the user's own. */
static void write_message(Text *text, const char *message, const int64_t *values)
{
    while (*message) {
        bool is_value =
            values && message[0] == '{' && (message[1] == '0' || message[1] == '1') && message[2] == '}';
        if (is_value)
            tt_text_add(text, "%lld", (long long)values[message[1] - '0']);
        else
            tt_text_add_n(text, message, 1);
        message += is_value ? 3 : 1;
    }
}

void tt_write_failure(Text *text, const Failure *failure, const int64_t *values, const int32_t program[3])
{
    if (failure->place[0])
        tt_text_add(text, "%s: ", failure->place);
    write_message(text, failure->message, failure->kind == FAILURE_ASSERTION ? NULL : values);
    tt_text_add(text, ", in program (%d, %d, %d)", program[0], program[1], program[2]);
}
