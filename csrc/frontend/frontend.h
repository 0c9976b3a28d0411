/* frontend: from a Python function's ast to tile IR. The only compiler folder that touches Python objects; every
 * function here needs the GIL. */
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include "ir/ir.h"

typedef struct FrontendRequest {
    PyObject *function; /* triton.runtime.jit.JITFunction */
    /* tuple, one entry a parameter: ("*fp32", divisibility) or constexpr(value), or a list (or a named tuple) of entries
     * for a tuple; **META is constexpr(dict of the launch keywords that no parameter took) */
    PyObject *signature;
    PyObject *
        options; /* dict: num_warps, num_stages, debug, ...; "reads_num_warps" becomes True if the program does */
    /* List or NULL. Receives (namespace, name, value) for each name whose value the kernel was compiled with and that
     * the program could bind anew: globals (the dict), closure cells (the cell, name None), attributes of modules (the
     * module's dict). Names of the language itself need not be reported. */
    PyObject *used_names;
    /* List or NULL. Receives (globals, name) for each name that was looked up there and is one of Python's own. */
    PyObject *own_names;
    void (*breathe)(void); /* called now and then, where other threads may run Python; or NULL */
    bool had_effects; /* set when the program did something while it was read, and wants to do so each time */
} FrontendRequest;

/* The kernel and every function it calls, as verified tile IR. Raises diagnostics. When a compile-time expression
 * raised, the diagnostic is a TT_USER_ERROR at its place and the Python exception is still set: the cause to chain.
 * Holds no Python reference once it returns or raises. */
Module *tt_frontend_build(Arena *arena, FrontendRequest *request);

/* One operation by itself, for an interpreter that computes it before it goes on: what a kernel would do at `place`. */
typedef struct TraceRequest {
    /* something callable, or a text: an operator ("+", "and", ...), "[]" (value, indices..), "." (value, name), "if"
     * (condition), "=" (what an assignment makes of a number), "range" (start, stop, step: these as the index counts) */
    PyObject *operation;
    /* Values among them are objects with __triton_kind__ "tile" (dtype, shape, _constant: the number, or None) and
     * "window" (_items: base, shape, strides, offsets; block_shape, order). */
    PyObject *args;      /* tuple */
    PyObject *keywords;  /* dict */
    PyObject *place;     /* (file, function, line, column, end line, end column) as Python's ast counts */
    FrontendRequest run; /* options and names; no function */
} TraceRequest;

/* A module of one function from the run-time values among the arguments, in their order, to those in the result.
 * *structure (a new reference) is the result: ("value", dtype, shape, constant or None), ("object", object), ("tuple",
 * named tuple's type or None, items), ("window", block shape, order, items), ("method", function, self). */
Module *tt_frontend_trace(Arena *arena, TraceRequest *request, PyObject **structure);

/* Forgets a pending exception of an object that was only looked at. False: it stays, for it is about no object
 * (KeyboardInterrupt and its like, MemoryError), and whoever looked has to fail. */
bool tt_forgive(void);
/* Forgets a pending exception where nothing can be raised, because what was tried is done in another way. An interrupt
 * comes again as soon as Python looks for one. */
void tt_forget(void);
