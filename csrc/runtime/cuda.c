/* The CUDA driver behind cuda.h: opened once, primary contexts retained once a device (they are torch's and CuPy's
 * too), kernels linked from PTX with the driver's linker so that a failure shows its log. */
#include "runtime/cuda.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* Process state, filled once by pthread_once; the compiler proper has none. */
static CudaApi api;
static char missing[256];
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static int device_count;
static CUcontext contexts[TT_MAX_CUDA_DEVICES];
static CudaDevice devices[TT_MAX_CUDA_DEVICES];

static const char *error_text(CUresult error)
{
    const char *text = NULL;
    if (api.cuGetErrorString)
        api.cuGetErrorString(error, &text);
    return text ? text : "unknown error";
}

static const char *error_name(CUresult error)
{
    const char *name = NULL;
    if (api.cuGetErrorName)
        api.cuGetErrorName(error, &name);
    return name ? name : "CUDA_ERROR";
}

static void say_missing(const char *what, const char *detail)
{
    size_t length = TT_MIN(strlen(what), sizeof missing - 1);
    memcpy(missing, what, length);
    size_t more = TT_MIN(strlen(detail), sizeof missing - 1 - length);
    memcpy(missing + length, detail, more);
    missing[length + more] = 0;
}

/* PTX ISA versions by driver: the release notes table of the PTX ISA manual. */
static int newest_ptx(int driver)
{
    static const struct {
        int driver, ptx;
    } table[] = {
        {13000, 90}, {12090, 88}, {12080, 87}, {12070, 86}, {12060, 85}, {12050, 85}, {12040, 84},
        {12030, 83}, {12020, 82}, {12010, 81}, {12000, 80}, {11080, 78}, {11070, 77}, {11060, 76},
        {11050, 75}, {11040, 74}, {11030, 73}, {11020, 72}, {11010, 71}, {11000, 70},
    };
    for (size_t i = 0; i < TT_COUNT(table); i++)
        if (driver >= table[i].driver)
            return table[i].ptx;
    return 64;
}

static void read_device(int ordinal, int driver)
{
    CudaDevice *device = &devices[ordinal];
    CUdevice handle;
    if (api.cuDeviceGet(&handle, ordinal))
        return;
    api.cuDeviceGetName(device->name, sizeof device->name, handle);
    api.cuDeviceTotalMem_v2(&device->memory_bytes, handle);
    int major = 0, minor = 0;
    const struct {
        int attribute, *value;
    } wanted[] = {
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
        {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
        {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &device->multiprocessors},
        {CU_DEVICE_ATTRIBUTE_WARP_SIZE, &device->warp_size},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &device->max_threads},
        {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &device->max_threads_per_multiprocessor},
        {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, &device->max_registers},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &device->max_shared},
        {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &device->shared_per_multiprocessor},
        {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, &device->clock_khz},
        {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, &device->memory_clock_khz},
        {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, &device->memory_bus_bits},
        {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &device->l2_bytes},
    };
    for (size_t i = 0; i < TT_COUNT(wanted); i++)
        api.cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, handle);
    device->capability = major * 10 + minor;
    device->ptx_version = newest_ptx(driver);
}

static void open_driver(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        say_missing("no NVIDIA driver: ", "libcuda.so.1 was not found");
        return;
    }
#define CUDA(symbol, arguments)                                                                              \
    *(void **)&api.symbol = dlsym(library, #symbol);                                                         \
    if (!api.symbol) {                                                                                       \
        say_missing("the NVIDIA driver is too old: it has no ", #symbol);                                    \
        return;                                                                                              \
    }
    TT_CUDA_FUNCTIONS
#undef CUDA
    int count = 0, driver = 0;
    CUresult error = api.cuInit(0);
    if (!error)
        error = api.cuDeviceGetCount(&count);
    if (error) {
        say_missing("the NVIDIA driver does not start: ", error_text(error));
        return;
    }
    if (!count) {
        say_missing("no NVIDIA GPU is visible", "");
        return;
    }
    api.cuDriverGetVersion(&driver);
    device_count = TT_MIN(count, TT_MAX_CUDA_DEVICES);
    for (int i = 0; i < device_count; i++)
        read_device(i, driver);
}

const char *tt_cuda_unavailable(void)
{
    pthread_once(&opened, open_driver);
    return missing[0] ? missing : NULL;
}

int tt_cuda_device_count(void)
{
    pthread_once(&opened, open_driver);
    return device_count;
}

const CudaDevice *tt_cuda_device(int ordinal)
{
    if (tt_cuda_unavailable())
        tt_unsupported(NULL, "%s", missing);
    if (ordinal < 0 || ordinal >= device_count)
        tt_error(NULL, "there is no CUDA device %d: this machine has %d", ordinal, device_count);
    return &devices[ordinal];
}

int tt_cuda_current_device(void)
{
    CUdevice device = 0;
    CUcontext context = NULL;
    if (!tt_cuda_unavailable() && !api.cuCtxGetCurrent(&context) && context)
        api.cuCtxGetDevice(&device);
    return device;
}

/* Makes the device's primary context current; a thread that has it already pays one driver call. */
static CUresult enter(int device)
{
    if (!contexts[device]) {
        CUdevice handle;
        CUcontext context;
        CUresult error = api.cuDeviceGet(&handle, device);
        if (!error)
            error = api.cuDevicePrimaryCtxRetain(&context, handle);
        if (error)
            return error;
        __atomic_store_n(&contexts[device], context, __ATOMIC_RELEASE);
    }
    CUcontext current = NULL;
    api.cuCtxGetCurrent(&current);
    return current == contexts[device] ? CUDA_SUCCESS : api.cuCtxSetCurrent(contexts[device]);
}

/* ---- kernels ---------------------------------------------------------------------------------------------------------- */

typedef struct Loaded {
    CUmodule module;
    CUfunction function;
    CudaKernelInfo info;
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

void tt_cuda_release_kernel(CudaKernel *kernel)
{
    for (int i = 0; i < TT_MAX_CUDA_DEVICES; i++) {
        Loaded *loaded = kernel->loaded[i];
        if (!loaded)
            continue;
        if (!enter(i))
            api.cuModuleUnload(loaded->module);
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
    int options[] = {CU_JIT_MAX_REGISTERS};
    void *values[] = {(void *)(intptr_t)image->max_registers};
    CUresult error = api.cuLinkCreate_v2(image->max_registers ? 1 : 0, options, values, &state);
    if (error)
        return error;
    void *linked = NULL;
    error = api.cuLinkAddData_v2(state, CU_JIT_INPUT_PTX, (void *)image->ptx, strlen(image->ptx) + 1,
                                 image->name, 0, NULL, NULL);
    if (!error)
        error = api.cuLinkComplete(state, &linked, size);
    *cubin = !error ? malloc(*size) : NULL;
    if (*cubin)
        memcpy(*cubin, linked, *size);
    api.cuLinkDestroy(state);
    return error;
}

static CUresult load_on_device(const CudaImage *image, Loaded *loaded, char *log, size_t log_size)
{
    int options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_MAX_REGISTERS};
    void *values[] = {log, (void *)log_size, (void *)(intptr_t)image->max_registers};
    unsigned count = image->max_registers ? 3 : 2;
    CUresult error = api.cuModuleLoadDataEx(&loaded->module, image->ptx, count, options, values);
    if (!error)
        error = api.cuModuleGetFunction(&loaded->function, loaded->module, image->name);
    if (!error && image->shared_bytes > 48 * 1024)
        error = api.cuFuncSetAttribute(loaded->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                       image->shared_bytes);
    if (error)
        return error;
    CudaKernelInfo *info = &loaded->info;
    int static_shared = 0;
    api.cuFuncGetAttribute(&info->registers, CU_FUNC_ATTRIBUTE_NUM_REGS, loaded->function);
    api.cuFuncGetAttribute(&info->spilled_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, loaded->function);
    api.cuFuncGetAttribute(&info->max_threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, loaded->function);
    api.cuFuncGetAttribute(&static_shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, loaded->function);
    info->shared_bytes = static_shared + image->shared_bytes;
    return CUDA_SUCCESS;
}

static const Loaded *ensure_loaded(CudaKernel *kernel, int device, Arena *arena)
{
    Loaded *loaded = atomic_load_explicit(&kernel->loaded[device], memory_order_acquire);
    if (loaded)
        return loaded;
    const CudaDevice *properties = tt_cuda_device(device);
    if (kernel->image.shared_bytes > properties->max_shared)
        tt_unsupported(NULL, "kernel %s needs %d bytes of shared memory and %s allows %d a block",
                       kernel->image.name, kernel->image.shared_bytes, properties->name,
                       properties->max_shared);
    char *log = tt_arena_alloc(arena, 8192);
    pthread_mutex_lock(&kernel->lock);
    CUresult error = CUDA_SUCCESS;
    loaded = kernel->loaded[device];
    if (!loaded && (loaded = calloc(1, sizeof *loaded))) {
        /* Loading is no stream operation: allowed in a capture once the thread's mode says so. */
        int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
        api.cuThreadExchangeStreamCaptureMode(&mode);
        error = load_on_device(&kernel->image, loaded, log, 8192);
        api.cuThreadExchangeStreamCaptureMode(&mode);
        if (error) {
            free(loaded);
            loaded = NULL;
        } else {
            atomic_store_explicit(&kernel->loaded[device], loaded, memory_order_release);
        }
    }
    pthread_mutex_unlock(&kernel->lock);
    if (error)
        tt_bug("the CUDA driver refuses the PTX of kernel %s on %s: %s (%s)\n%s", kernel->image.name,
               properties->name, error_text(error), error_name(error), log);
    if (!loaded)
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory while loading a kernel"});
    return loaded;
}

static void enter_or_raise(int device)
{
    const CudaDevice *properties = tt_cuda_device(device);
    CUresult error = enter(device);
    if (error)
        tt_error(NULL, "CUDA device %d (%s) cannot be used: %s (%s)", device, properties->name,
                 error_text(error), error_name(error));
}

const void *tt_cuda_cubin(CudaKernel *kernel, int device, Arena *arena, size_t *size)
{
    enter_or_raise(device);
    void *cubin = NULL;
    CUresult error = link_ptx(&kernel->image, &cubin, size);
    if (error)
        tt_error(NULL, "kernel %s cannot be linked: %s (%s)", kernel->image.name, error_text(error),
                 error_name(error));
    if (!cubin)
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory for a cubin"});
    void *copy = tt_arena_copy(arena, cubin, *size);
    free(cubin);
    return copy;
}

const CudaKernelInfo *tt_cuda_load(CudaKernel *kernel, int device, Arena *arena)
{
    enter_or_raise(device);
    return &ensure_loaded(kernel, device, arena)->info;
}

static _Noreturn void launch_failed(const CudaKernel *kernel, const Loaded *loaded, int device,
                                    const int32_t grid[3], CUresult error)
{
    const CudaImage *image = &kernel->image;
    if (error == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        tt_unsupported(
            NULL,
            "kernel %s needs %d registers a thread for %d threads, more than %s has: lower num_warps or "
            "the block sizes",
            image->name, loaded->info.registers, image->threads, devices[device].name);
    tt_error(NULL,
             "kernel %s, grid (%d, %d, %d), %d threads, %d bytes of shared memory on device %d: %s (%s)",
             image->name, grid[0], grid[1], grid[2], image->threads, image->shared_bytes, device,
             error_text(error), error_name(error));
}

static CUresult enqueue(const CudaKernel *kernel, const Loaded *loaded, CUstream stream, void **parameters,
                        const int32_t grid[3])
{
    const CudaImage *image = &kernel->image;
    return api.cuLaunchKernel(loaded->function, (unsigned)grid[0], (unsigned)grid[1], (unsigned)grid[2],
                              (unsigned)image->threads, 1, 1, (unsigned)image->shared_bytes, stream,
                              parameters, NULL);
}

/* A launch that is waited for, and what it left in its failure words. */
static CUresult run_checked(const CudaKernel *kernel, const Loaded *loaded, CUstream stream,
                            void **parameters, const int32_t grid[3], int32_t *failure)
{
    size_t words = (size_t)kernel->image.failure_words;
    uint64_t record = 0;
    CUresult error = api.cuMemAlloc_v2(&record, words * sizeof(int32_t));
    if (error)
        return error;
    parameters[kernel->image.parameter_count] = &record;
    error = api.cuMemsetD32Async(record, 0, words, stream);
    if (!error)
        error = enqueue(kernel, loaded, stream, parameters, grid);
    if (!error)
        error = api.cuStreamSynchronize(stream);
    if (!error)
        error = api.cuMemcpyDtoH_v2(failure, record, words * sizeof(int32_t));
    api.cuMemFree_v2(record);
    return error;
}

bool tt_cuda_launch(CudaKernel *kernel, int device, void *stream, const uint64_t *args, const int32_t grid[3],
                    Arena *arena, int32_t *failure)
{
    enter_or_raise(device);
    const Loaded *loaded = ensure_loaded(kernel, device, arena);
    void *parameters[kernel->image.parameter_count + 1];
    for (int i = 0; i < kernel->image.parameter_count; i++)
        parameters[i] = (void *)&args[i];
    bool checked = kernel->image.failure_words > 0;
    CUresult error = checked ? run_checked(kernel, loaded, stream, parameters, grid, failure)
                             : enqueue(kernel, loaded, stream, parameters, grid);
    if (error)
        launch_failed(kernel, loaded, device, grid, error);
    return !checked || !failure[0];
}

void tt_cuda_synchronize(int device)
{
    enter_or_raise(device);
    CUresult error = api.cuCtxSynchronize();
    if (error)
        tt_error(NULL, "CUDA device %d: %s (%s)", device, error_text(error), error_name(error));
}
