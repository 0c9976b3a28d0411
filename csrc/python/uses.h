/* uses: what tile IR a kernel's source became, so that the next process need not even read its tree. Found by the
 * kernel's text, its signature and its options; and each with the names that the compilation looked up outside of the
 * kernel, whose values have to be the same (globals, variables of enclosing functions, attributes of modules, and that a
 * name is one of Python's own). */
#pragma once
#include "python/extension.h"

typedef struct UsesRequest {
    Kernel *kernel;
    PyObject *signature, *info; /* as the frontend gets them */
    const CodeOptions *options;
    PyObject *used_names, *own_names; /* lists: see FrontendRequest */
} UsesRequest;

/* What the image was made of, if there was such a compilation; `used_names` is filled in. Never raises. */
bool tt_find_uses(const UsesRequest *request, Digest *made_of);
/* Remembers one, if its names and values can be told from others. Never raises. */
void tt_keep_uses(const UsesRequest *request, const Digest *made_of);
