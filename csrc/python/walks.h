/* walks: what the frontend made of a kernel, kept while it is tuned. Configurations that differ in nothing that the
 * frontend looks at (numbers of warps and stages) share one walk; each starts from a copy of its tile IR. */
#pragma once
#include "python/extension.h"

/* The tile IR, in `arena`, of an earlier walk with the same signature and options; the lists are filled in with the names
 * that it used. NULL: there is none. Never raises. */
const char *tt_find_walk(const Kernel *kernel, const FrontendRequest *request, Arena *arena);
/* Remembers one, while the kernel is tuned. Never raises. */
void tt_keep_walk(Kernel *kernel, const FrontendRequest *request, const Module *module);
