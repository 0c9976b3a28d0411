/* For the files behind cuda.h: the driver's functions, contexts and errors. */
#pragma once
#include "runtime/cuda.h"

#include <pthread.h>
#include <stdatomic.h>

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

/* Whether PTX is compiled without a context. Not by drivers older than CUDA 12.0, nor where the program wants everything
 * loaded in advance (CUDA_MODULE_LOADING=EAGER), for then a library goes to all contexts that there are. */
bool tt_cuda_has_libraries(void);

/* ---- cuda_load.c ---- */

typedef struct LoadedKernel {
    CUmodule module;
    CUfunction function;
    CudaKernelInfo info;
    atomic_bool captured; /* a CUDA graph refers to it, and may do so as long as the process runs */
} LoadedKernel;

struct CudaKernel {
    CudaImage image;
    pthread_mutex_t lock;
    CUlibrary library; /* its modules are the library's; NULL: each device has one of its own */
    char *log;         /* of the library's compilation; it says what is wrong when the entry is looked up */
    LoadedKernel *_Atomic loaded[TT_MAX_CUDA_DEVICES];
};

/* How many threads bring code onto each device: launches would sleep in the driver until they are done. */
extern atomic_int tt_cuda_loads[TT_MAX_CUDA_DEVICES];

/* In the device's context. NULL with *diag set when it does not load. */
LoadedKernel *tt_cuda_ensure_loaded(CudaKernel *kernel, int device, Arena *arena, Diagnostic *diag);
Diagnostic tt_cuda_out_of_registers(const CudaKernel *kernel, const LoadedKernel *loaded, int device,
                                    Arena *arena);
