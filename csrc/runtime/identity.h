/* What tells this build of the compiler from others, for keys of what it made. */
#pragma once
#include "support/support.h"

/* The identity that the linker gave to this library (from its contents); false if it gave none. */
bool tt_hash_compiler(Hasher *hasher);
/* The part of the language that is written in Python, as it lies beside this library; false if it is not found there. */
bool tt_hash_language(Hasher *hasher);
