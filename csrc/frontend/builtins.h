/* builtins.h: the functions behind the rows of builtins.def. */
#pragma once
#include "frontend/semantic.h"

#define BUILTIN(name, function) BuiltinFunction function;
#include "frontend/builtins.def"

/* All that ops.def has as FUNCTION, by the name of the call. */
BuiltinFunction tt_builtin_float_function;

/* ---- builtins_block_pointer.c -------------------------------------------------------------------------- */

/* Replace the block pointer in the arguments of load or store by pointers, mask and other. */
void tt_expand_block_load(Walker *w, Term *args);
void tt_expand_block_store(Walker *w, Term *args);
