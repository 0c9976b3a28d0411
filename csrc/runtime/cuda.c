/* Kernels on the GPU: PTX that the driver makes machine code of, once a device, and launches. */
#include "runtime/cuda_driver.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

typedef struct Loaded {
    CUmodule module;
    CUfunction function;
    CudaKernelInfo info;
    atomic_bool captured; /* a CUDA graph refers to it, and may do so as long as the process runs */
} Loaded;

struct CudaKernel {
    CudaImage image;
    pthread_mutex_t lock;
    Loaded *_Atomic loaded[TT_MAX_CUDA_DEVICES];
};

static char *copy_text(const char *text)
{
    char *copy = malloc(strlen(text) + 1);
    return copy ? strcpy(copy, text) : NULL;
}

CudaKernel *tt_cuda_new_kernel(const CudaImage *image)
{
    CudaKernel *kernel = calloc(1, sizeof *kernel);
    if (kernel) {
        kernel->image = *image;
        kernel->image.name = copy_text(image->name);
        kernel->image.ptx = copy_text(image->ptx);
        pthread_mutex_init(&kernel->lock, NULL);
    }
    if (!kernel || !kernel->image.name || !kernel->image.ptx) {
        if (kernel)
            tt_cuda_release_kernel(kernel);
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory while loading a kernel"});
    }
    return kernel;
}

/* Also while some stream is captured: Python decides when a kernel goes. */
static void unload(int device, CUmodule module)
{
    CudaScope scope;
    if (tt_cuda_enter(device, &scope))
        return; /* the driver is gone, and the module with it */
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    tt_cuda_exchange_capture_mode(&mode);
    tt_cuda_api.cuModuleUnload(module);
    tt_cuda_exchange_capture_mode(&mode);
    tt_cuda_leave(&scope);
}

void tt_cuda_release_kernel(CudaKernel *kernel)
{
    for (int i = 0; i < TT_MAX_CUDA_DEVICES; i++) {
        Loaded *loaded = kernel->loaded[i];
        if (!loaded)
            continue;
        if (!loaded->captured)
            unload(i, loaded->module);
        free(loaded);
    }
    pthread_mutex_destroy(&kernel->lock);
    free((char *)kernel->image.name);
    free((char *)kernel->image.ptx);
    free(kernel);
}

/* PTX to machine code that can be looked at; *cubin is the caller's to free. Kernels are not loaded from it: the driver's
 * linker compiles as if for relocatable code, with a quarter more registers than cuModuleLoadDataEx takes. */
static CUresult link_ptx(const CudaImage *image, void **cubin, size_t *size)
{
    CUlinkState state;
    int options[] = {CU_JIT_OPTIMIZATION_LEVEL};
    void *values[] = {(void *)(intptr_t)image->effort};
    CUresult error = tt_cuda_api.cuLinkCreate_v2(TT_COUNT(options), options, values, &state);
    if (error)
        return error;
    void *linked = NULL;
    error = tt_cuda_api.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)image->ptx, strlen(image->ptx) + 1,
                                         image->name, 0, NULL, NULL);
    if (!error)
        error = tt_cuda_api.cuLinkComplete(state, &linked, size);
    *cubin = !error ? malloc(*size) : NULL;
    if (*cubin)
        memcpy(*cubin, linked, *size);
    tt_cuda_api.cuLinkDestroy(state);
    return error;
}

static CUresult load_on_device(const CudaImage *image, Loaded *loaded, char *log, size_t log_size)
{
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL};
    void *values[] = {log, (void *)log_size, (void *)(intptr_t)image->effort};
    CUresult error =
        tt_cuda_api.cuModuleLoadDataEx(&loaded->module, image->ptx, TT_COUNT(options), options, values);
    if (!error)
        error = tt_cuda_api.cuModuleGetFunction(&loaded->function, loaded->module, image->name);
    if (!error && image->shared_bytes > 48 * 1024)
        error = tt_cuda_api.cuFuncSetAttribute(
            loaded->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, image->shared_bytes);
    if (error)
        return error;
    CudaKernelInfo *info = &loaded->info;
    int static_shared = 0;
    tt_cuda_api.cuFuncGetAttribute(&info->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, loaded->function);
    tt_cuda_api.cuFuncGetAttribute(&info->spilled_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
                                   loaded->function);
    tt_cuda_api.cuFuncGetAttribute(&info->max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                                   loaded->function);
    tt_cuda_api.cuFuncGetAttribute(&static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, loaded->function);
    info->shared_bytes = static_shared + image->shared_bytes;
    info->function = loaded->function;
    info->module = loaded->module;
    return CUDA_SUCCESS;
}

static Diagnostic out_of(const char *resource, int64_t needed, int64_t available, const char *message,
                         const char *remedy)
{
    return (Diagnostic){.kind = TT_OUT_OF_RESOURCES,
                        .message = message,
                        .remedy = remedy,
                        .resource = resource,
                        .needed = needed,
                        .available = available};
}

static Diagnostic out_of_registers(const CudaKernel *kernel, const Loaded *loaded, int device, Arena *arena)
{
    const CudaImage *image = &kernel->image;
    const CudaDevice *properties = tt_cuda_device(device);
    int64_t needed = (int64_t)loaded->info.registers * image->threads;
    const char *message = tt_arena_format(
        arena,
        "kernel %s: %d threads (num_warps=%d) of %d registers each need %lld, and %s has %d for a program",
        image->name, image->threads, image->threads / 32, loaded->info.registers, (long long)needed,
        properties->name, properties->max_registers);
    return out_of("registers", needed, properties->max_registers, message,
                  "use a smaller num_warps or maxnreg, or smaller tiles");
}

/* What can be said before the driver is asked; false if the kernel does not fit on the device. */
static bool fits(const CudaImage *image, const CudaDevice *device, Arena *arena, Diagnostic *diag)
{
    if (image->shared_bytes > device->max_shared) {
        const char *message =
            tt_arena_format(arena, "a program of kernel %s needs %d bytes, and %s has %d for each",
                            image->name, image->shared_bytes, device->name, device->max_shared);
        *diag = out_of("shared memory", image->shared_bytes, device->max_shared, message,
                       "use smaller tiles, or a smaller num_stages");
    } else if (image->threads > device->max_threads) {
        const char *message = tt_arena_format(
            arena, "kernel %s: num_warps=%d makes %d threads, and %s allows %d in a program", image->name,
            image->threads / 32, image->threads, device->name, device->max_threads);
        *diag = out_of("threads", image->threads, device->max_threads, message, "use a smaller num_warps");
    } else {
        return true;
    }
    return false;
}

/* The driver's refusal of a kernel: of its code, which is the compiler's fault, or because of its own state. */
static Diagnostic refusal(const CudaImage *image, const CudaDevice *device, CUresult error, const char *log,
                          Arena *arena)
{
    const char *what = tt_arena_format(arena, "loading kernel %s on %s", image->name, device->name);
    Diagnostic diag = tt_cuda_diagnostic(arena, error, what);
    if (error == CUDA_ERROR_INVALID_PTX || error == CUDA_ERROR_UNSUPPORTED_PTX_VERSION || log[0]) {
        diag.kind = TT_BUG;
        diag.message = tt_arena_format(arena, "%s\n%s", diag.message, log);
        if (image->assembly) {
            diag.kind = TT_USER_ERROR;
            diag.loc = image->assembly;
            diag.remedy =
                "the log counts the lines of compiled.asm[\"ptx\"]; the inline assembly here may be wrong";
        }
    }
    return diag;
}

/* Loading is no stream operation: it is allowed in a capture once the thread's mode says so. */
static Loaded *load_in_any_mode(const CudaImage *image, char *log, size_t log_size, CUresult *error)
{
    Loaded *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return NULL;
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    tt_cuda_exchange_capture_mode(&mode);
    *error = load_on_device(image, loaded, log, log_size);
    tt_cuda_exchange_capture_mode(&mode);
    if (!*error)
        return loaded;
    if (loaded->module)
        tt_cuda_api.cuModuleUnload(loaded->module);
    free(loaded);
    return NULL;
}

/* In the device's context. NULL with *diag set when it does not load. */
static Loaded *ensure_loaded(CudaKernel *kernel, int device, Arena *arena, Diagnostic *diag)
{
    enum { LOG_SIZE = 8192 };
    Loaded *loaded = atomic_load_explicit(&kernel->loaded[device], memory_order_acquire);
    if (loaded)
        return loaded;
    const CudaImage *image = &kernel->image;
    const CudaDevice *properties = tt_cuda_device(device);
    if (!fits(image, properties, arena, diag))
        return NULL;
    char *log = tt_arena_alloc(arena, LOG_SIZE);
    CUresult error = CUDA_SUCCESS;
    pthread_mutex_lock(&kernel->lock);
    loaded = kernel->loaded[device];
    if (!loaded && (loaded = load_in_any_mode(image, log, LOG_SIZE, &error)))
        atomic_store_explicit(&kernel->loaded[device], loaded, memory_order_release);
    pthread_mutex_unlock(&kernel->lock);
    if (error)
        *diag = refusal(image, properties, error, log, arena);
    else if (!loaded)
        *diag = (Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory while loading a kernel"};
    else if (loaded->info.max_threads < image->threads)
        *diag = out_of_registers(kernel, loaded, device, arena);
    else
        return loaded;
    return NULL;
}

const CudaKernelInfo *tt_cuda_load(CudaKernel *kernel, int device, Arena *arena)
{
    CudaScope scope;
    Diagnostic diag;
    tt_cuda_enter_or_raise(device, &scope, arena);
    const Loaded *loaded = ensure_loaded(kernel, device, arena, &diag);
    tt_cuda_leave(&scope);
    if (!loaded)
        tt_raise(&diag);
    return &loaded->info;
}

const void *tt_cuda_cubin(CudaKernel *kernel, int device, Arena *arena, size_t *size)
{
    CudaScope scope;
    void *cubin = NULL;
    tt_cuda_enter_or_raise(device, &scope, arena);
    CUresult error = link_ptx(&kernel->image, &cubin, size);
    tt_cuda_leave(&scope);
    if (error)
        tt_cuda_raise(arena, error, tt_arena_format(arena, "linking kernel %s", kernel->image.name));
    if (!cubin)
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory for a cubin"});
    void *copy = tt_arena_copy(arena, cubin, *size);
    free(cubin);
    return copy;
}

/* ---- launching ---- */

/* A launch with attributes. */
static CUresult enqueue_specially(const CudaImage *image, const Loaded *loaded, const CudaLaunch *launch,
                                  void **parameters)
{
    CUlaunchAttribute attributes[2];
    unsigned count = 0;
    memset(attributes, 0, sizeof attributes);
    if (image->cooperative) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[count++].value.cooperative = 1;
    }
    if (image->early) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
        attributes[count++].value.programmaticStreamSerializationAllowed = 1;
    }
    CUlaunchConfig config = {.gridDimX = (unsigned)launch->grid[0],
                             .gridDimY = (unsigned)launch->grid[1],
                             .gridDimZ = (unsigned)launch->grid[2],
                             .blockDimX = (unsigned)image->threads,
                             .blockDimY = 1,
                             .blockDimZ = 1,
                             .sharedMemBytes = (unsigned)image->shared_bytes,
                             .hStream = launch->stream,
                             .attrs = attributes,
                             .numAttrs = count};
    if (!tt_cuda_api.cuLaunchKernelEx)
        return CUDA_ERROR_NOT_SUPPORTED;
    return tt_cuda_api.cuLaunchKernelEx(&config, loaded->function, parameters, NULL);
}

static CUresult enqueue(const CudaKernel *kernel, const Loaded *loaded, const CudaLaunch *launch,
                        void **parameters)
{
    const int32_t *grid = launch->grid;
    if (kernel->image.cooperative || kernel->image.early)
        return enqueue_specially(&kernel->image, loaded, launch, parameters);
    return tt_cuda_api.cuLaunchKernel(loaded->function, (unsigned)grid[0], (unsigned)grid[1],
                                      (unsigned)grid[2], (unsigned)kernel->image.threads, 1, 1,
                                      (unsigned)kernel->image.shared_bytes, launch->stream, parameters, NULL);
}

/* A launch that is waited for, and what it left in its failure words. */
static CUresult run_checked(const CudaKernel *kernel, const Loaded *loaded, const CudaLaunch *launch,
                            void **parameters)
{
    size_t words = (size_t)kernel->image.failure_words;
    uint64_t record = 0;
    CUresult error = tt_cuda_api.cuMemAlloc_v2(&record, words * sizeof(int32_t));
    if (error)
        return error;
    parameters[kernel->image.parameter_count] = &record;
    error = tt_cuda_api.cuMemsetD32Async(record, 0, words, launch->stream);
    if (!error)
        error = enqueue(kernel, loaded, launch, parameters);
    if (!error)
        error = tt_cuda_api.cuMemcpyDtoHAsync_v2(launch->failure, record, words * sizeof(int32_t),
                                                 launch->stream);
    if (!error)
        error = tt_cuda_api.cuStreamSynchronize(launch->stream);
    tt_cuda_api.cuMemFree_v2(record);
    return error;
}

bool tt_cuda_is_captured(void *handle)
{
    CUstream stream = handle;
    int status = CU_STREAM_CAPTURE_STATUS_NONE;
    return stream && !tt_cuda_api.cuStreamIsCapturing(stream, &status) &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The stream waits for what is enqueued on another one now. */
static CUresult wait_for(CUstream stream, CUstream other)
{
    CUevent event;
    CUresult error = tt_cuda_api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (error)
        return error;
    error = tt_cuda_api.cuEventRecord(event, other);
    if (!error)
        error = tt_cuda_api.cuStreamWaitEvent(stream, event, 0);
    tt_cuda_api.cuEventDestroy_v2(event); /* takes effect once nothing waits for it any more */
    return error;
}

static Diagnostic launch_failed(const CudaKernel *kernel, const Loaded *loaded, const CudaLaunch *launch,
                                CUresult error, Arena *arena)
{
    enum { GRID_YZ_LIMIT = 65535 };
    if (error == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        return out_of_registers(kernel, loaded, launch->device, arena);
    Diagnostic diag = tt_cuda_diagnostic(arena, error, NULL);
    if (launch->grid[1] > GRID_YZ_LIMIT || launch->grid[2] > GRID_YZ_LIMIT)
        diag.remedy =
            "a grid has at most 65535 programs along its second and third axis: put the largest extent first";
    return diag;
}

/* In the device's context. False with *diag set when something is refused. */
static bool launch_loaded(const CudaKernel *kernel, Loaded *loaded, const CudaLaunch *launch, Arena *arena,
                          Diagnostic *diag)
{
    bool checked = kernel->image.failure_words > 0;
    void *parameters[kernel->image.parameter_count + 1];
    for (int i = 0; i < kernel->image.parameter_count; i++)
        parameters[i] = (void *)&launch->args[i];
    bool captured = tt_cuda_is_captured(launch->stream);
    if (checked && captured) {
        *diag =
            (Diagnostic){.kind = TT_DEVICE_ERROR,
                         .message = "a kernel that checks assertions and bounds is waited for, and cannot be "
                                    "launched while a CUDA graph is captured",
                         .remedy = "capture it without debug=True and TRITON_DEBUG"};
        return false;
    }
    if (captured)
        loaded->captured = true;
    CUresult error = CUDA_SUCCESS;
    for (int i = 0; i < launch->awaited_count && !error; i++)
        error = wait_for(launch->stream, launch->awaited[i]);
    int mode =
        CU_STREAM_CAPTURE_MODE_RELAXED; /* memory is allocated, maybe while another stream is captured */
    if (!error && checked) {
        tt_cuda_exchange_capture_mode(&mode);
        error = run_checked(kernel, loaded, launch, parameters);
        tt_cuda_exchange_capture_mode(&mode);
    } else if (!error) {
        error = enqueue(kernel, loaded, launch, parameters);
    }
    if (error)
        *diag = launch_failed(kernel, loaded, launch, error, arena);
    return !error;
}

bool tt_cuda_launch(CudaKernel *kernel, const CudaLaunch *launch, Arena *arena)
{
    CudaScope scope;
    Diagnostic diag;
    tt_cuda_enter_or_raise(launch->device, &scope, arena);
    Loaded *loaded = ensure_loaded(kernel, launch->device, arena, &diag);
    bool done = loaded && launch_loaded(kernel, loaded, launch, arena, &diag);
    tt_cuda_leave(&scope);
    if (!done)
        tt_raise(&diag);
    return !kernel->image.failure_words || !launch->failure[0];
}
