/* cuda: compiled PTX on NVIDIA GPUs, through the driver. Nothing of CUDA is touched before the first call here, and
 * none of these functions needs the GIL. Errors are diagnostics (support.h) that carry the driver's own words. */
#pragma once
#include "runtime/cuda_api.h"
#include "support/support.h"

enum { TT_MAX_CUDA_DEVICES = 64 };

/* ---- cuda_driver.c: the driver, devices, contexts ---- */

/* NULL when there is a driver and a device, else one sentence that says what is missing. */
const char *tt_cuda_unavailable(void);
bool tt_cuda_is_open(void); /* asked for before, whether it is there or not */
/* It is for this: there are devices, in use by the process that forked this one, and kernels can be compiled for them. */
bool tt_cuda_is_lost_in_fork(void);
int tt_cuda_device_count(void); /* 0 without a driver */

typedef struct CudaDevice {
    char name[128];
    int capability; /* 90 for 9.0 */
    int multiprocessors, warp_size, max_threads, max_threads_per_multiprocessor, max_registers;
    int max_shared; /* bytes a block may have, opted in */
    int shared_per_multiprocessor;
    int clock_khz, memory_clock_khz, memory_bus_bits, l2_bytes;
    size_t memory_bytes;
    int ptx_version; /* the newest the driver accepts: 87 for 8.7 */
} CudaDevice;
/* Properties of a device; read once a process. */
const CudaDevice *tt_cuda_device(int ordinal);
int tt_cuda_current_device(void);        /* of the current context, 0 when there is none */
int tt_cuda_device_of(uint64_t address); /* ordinal of the device whose memory that is; -1 if it is none's */
/* Makes the primary context of a device the thread's current one. Like all that takes one, messages go to `arena`. */
void tt_cuda_set_current_device(int device, Arena *arena);
/* Waits for all work of the device's primary context. */
void tt_cuda_synchronize(int device, Arena *arena);

/* ---- cuda_load.c: kernels onto devices ---- */

/* What the compiler made. Strings are copied. */
typedef struct CudaImage {
    const char *name; /* of the entry */
    const char *ptx;
    const Loc *
        assembly; /* the first place where the program brings its own; NULL if nowhere. Outlives the kernel */
    int shared_bytes;    /* dynamic shared memory */
    int threads;         /* a block */
    int max_registers;   /* a thread, by the launch's options; 0: no limit asked for */
    int effort;          /* of the driver's compiler: CU_JIT_OPTIMIZATION_LEVEL */
    int parameter_count; /* each one a 64-bit slot, read to its own width */
    bool cooperative;    /* all blocks run at the same time, or the launch is refused */
    bool early; /* may be set up before the kernel in front of it has ended, and waits for that itself */
    int failure_words; /* not 0: the kernel has one more parameter, the address of so many zeroed 32-bit words, the first
                        * of which it sets when an assertion fails; launches wait for their end */
} CudaImage;

/* A kernel, loaded on each device when it is first launched there. Safe to share between threads. */
typedef struct CudaKernel CudaKernel;
CudaKernel *tt_cuda_new_kernel(const CudaImage *image);
void tt_cuda_release_kernel(CudaKernel *kernel);

typedef struct CudaKernelInfo {
    int registers, spilled_bytes, shared_bytes, max_threads;
    void *function, *module; /* the driver's handles */
} CudaKernelInfo;
/* Machine code for looking at, *size bytes in `arena`. */
const void *tt_cuda_cubin(CudaKernel *kernel, int device, Arena *arena, size_t *size);
/* Makes machine code of the PTX as far as that keeps nobody from launching, so that loading is short; whether it is made. */
bool tt_cuda_prepare(CudaKernel *kernel, int device, Arena *arena);
/* Loads the kernel on the device if it is not there yet. Waits until the device is idle, and launches wait meanwhile. */
const CudaKernelInfo *tt_cuda_load(CudaKernel *kernel, int device, Arena *arena);

/* ---- cuda_launch.c ---- */

/* An array of rows and columns that the kernel copies boxes of: elements of 1, 2, 4 or 8 bytes, `stride` bytes from row to row, a
 * multiple of 16; a box has `box_rows` rows of `row_bytes` bytes (32, 64, 128), whose chunks of 16 are exchanged. With places
 * it begins so many chunks behind the address as the copy of a box says. */
typedef struct CudaArray {
    uint64_t address, rows, columns, stride;
    int element_bytes, box_rows, row_bytes;
    bool has_places;
} CudaArray;

typedef struct CudaLaunch {
    int device;
    void *stream;
    void *const *awaited; /* streams whose work so far has to be done before the kernel starts */
    int awaited_count;
    const uint64_t *args;
    const CudaArray *arrays; /* tensor maps of these follow the args as parameters */
    int array_count;
    int32_t grid[3];
    int32_t *failure; /* for the failure words, if the kernel has any */
} CudaLaunch;
/* Enqueues grid[0] x grid[1] x grid[2] blocks on the stream and returns at once; the thread's current context is what
 * it was. Inside a stream capture too, a first load included. Raises when the driver refuses; an error of an earlier
 * kernel may surface here, as CUDA has it. With failure words waits for the end, and is false when an assertion
 * failed. */
bool tt_cuda_launch(CudaKernel *kernel, const CudaLaunch *launch, Arena *arena);

/* Whether what is enqueued on the stream becomes part of a CUDA graph instead of running. */
bool tt_cuda_is_captured(void *stream);

/* Marks a place behind what is on the stream: one a device, the latest counts. */
void tt_cuda_mark(int device, void *stream);
/* Without waiting: has the device done what stands before its mark? */
bool tt_cuda_is_past_mark(int device);

/* ---- cuda_timing.c: events, and memory to clear between measurements ---- */

typedef struct CudaEvent CudaEvent;
CudaEvent *tt_cuda_new_event(int device, Arena *arena);
void tt_cuda_release_event(CudaEvent *event);
void tt_cuda_record(CudaEvent *event, void *stream, Arena *arena);
/* Between two recorded events; waits for the second one. */
double tt_cuda_milliseconds(CudaEvent *start, CudaEvent *end, Arena *arena);

typedef struct CudaMemory CudaMemory;
CudaMemory *tt_cuda_allocate(int device, size_t bytes, Arena *arena);
void tt_cuda_release_memory(CudaMemory *memory);
void tt_cuda_clear(CudaMemory *memory, void *stream, Arena *arena);
