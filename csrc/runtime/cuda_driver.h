/* For the files behind cuda.h: the driver's functions, contexts and errors. */
#pragma once
#include "runtime/cuda.h"

/* Filled by the first tt_cuda_unavailable() that finds a driver. */
extern CudaApi tt_cuda_api;

/* While it is open the device's primary context (torch's and CuPy's too) is current; then what was before it again. */
typedef struct CudaScope {
    CUcontext before;
    bool switched;
} CudaScope;
CUresult tt_cuda_enter(int device,
                       CudaScope *scope); /* the device exists; on an error nothing is to be left */
void tt_cuda_leave(const CudaScope *scope);
void tt_cuda_enter_or_raise(int device, CudaScope *scope, Arena *arena);

/* Lets the thread do what is no stream operation (allocate, load) while a stream is captured, and back: both exchange
 * the thread's mode with `*mode`. */
void tt_cuda_exchange_capture_mode(int *mode);

/* What the driver says about an error; behind `what` and a colon if that is not NULL. */
Diagnostic tt_cuda_diagnostic(Arena *arena, CUresult error, const char *what);
_Noreturn void tt_cuda_raise(Arena *arena, CUresult error, const char *what);
