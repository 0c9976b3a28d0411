/* walks: what the frontend made of a kernel, kept while it is tuned and for variants that are compiled in the background.
 * Compilations that differ in nothing that the frontend looks at (numbers of warps and stages, what is known of arguments)
 * share one walk; each starts from a copy of its tile IR. So the background hardly needs the interpreter. */
#pragma once
#include "python/extension.h"

typedef struct Walk {
    const char *text;              /* tile IR; NULL: there is no walk */
    const int64_t *divisibilities; /* of the kernel's parameters in the compilation that asks */
    int count;
} Walk;

/* In `arena`, an earlier walk with the same types, constants and options, if the names that it used stand for the same
 * still; the lists are filled in with these. Never raises. */
Walk tt_find_walk(const Kernel *kernel, const FrontendRequest *request, Arena *arena);
/* GIL not needed. */
Module *tt_walked_module(const Walk *walk, Arena *arena);
/* Remembers one, while the kernel is tuned, or if it was made in the background. Never raises. */
void tt_keep_walk(Kernel *kernel, const FrontendRequest *request, const Module *module);
