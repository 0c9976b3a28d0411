/* The text of a failed check, the same on every target. */
#pragma once
#include "support/support.h"

/* "kernel.py:12: load out of bounds of ..., in program (x, y, z)". `values`: two for the message, or NULL. */
void tt_write_failure(Text *text, const Failure *failure, const int64_t *values, const int32_t program[3]);
