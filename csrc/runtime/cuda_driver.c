/* The CUDA driver: opened once, and only when something asks; devices, contexts, and what it says about errors. */
#include "runtime/cuda_driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

/* Process state, filled once by pthread_once; the compiler proper has none. */
CudaApi tt_cuda_api;
static char missing[300];
static pthread_once_t opened = PTHREAD_ONCE_INIT;
static pid_t opened_by;
static bool is_lost_in_fork; /* the driver does not start in a process that one which uses it has forked */
static int device_count;
static CUcontext contexts[TT_MAX_CUDA_DEVICES];
static CudaDevice devices[TT_MAX_CUDA_DEVICES];

static const char lost_in_fork[] = "CUDA was in use before this process was forked, and does not survive "
                                   "that: start processes with the method "
                                   "'spawn' or 'forkserver', or fork before the first use of the GPU";

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
    if (tt_cuda_api.cuDeviceGet(&handle, ordinal))
        return;
    tt_cuda_api.cuDeviceGetName(device->name, sizeof device->name, handle);
    tt_cuda_api.cuDeviceTotalMem_v2(&device->memory_bytes, handle);
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
        tt_cuda_api.cuDeviceGetAttribute(wanted[i].value, wanted[i].attribute, handle);
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
    *(void **)&tt_cuda_api.symbol = dlsym(library, #symbol);                                                 \
    if (!tt_cuda_api.symbol) {                                                                               \
        say_missing("the NVIDIA driver is too old: it has no ", #symbol);                                    \
        return;                                                                                              \
    }
    TT_CUDA_FUNCTIONS
#undef CUDA
#define CUDA(symbol, arguments) *(void **)&tt_cuda_api.symbol = dlsym(library, #symbol);
    TT_CUDA_LATER_FUNCTIONS
#undef CUDA
    int count = 0, driver = 0;
    CUresult error = tt_cuda_api.cuInit(0);
    if (!error)
        error = tt_cuda_api.cuDeviceGetCount(&count);
    if (error) {
        const char *text = "unknown error";
        is_lost_in_fork = error == CUDA_ERROR_NOT_INITIALIZED;
        if (is_lost_in_fork)
            text = lost_in_fork;
        else
            tt_cuda_api.cuGetErrorString(error, &text);
        say_missing("the NVIDIA driver does not start: ", text ? text : "unknown error");
        return;
    }
    if (!count) {
        say_missing("no NVIDIA GPU is visible", "");
        return;
    }
    opened_by = getpid();
    tt_cuda_api.cuDriverGetVersion(&driver);
    device_count = TT_MIN(count, TT_MAX_CUDA_DEVICES);
    for (int i = 0; i < device_count; i++)
        read_device(i, driver);
}

static atomic_bool is_open;

bool tt_cuda_is_open(void) { return atomic_load_explicit(&is_open, memory_order_acquire); }

/* Launches ask several times. */
static void open_once(void)
{
    if (atomic_load_explicit(&is_open, memory_order_acquire))
        return;
    pthread_once(&opened, open_driver);
    atomic_store_explicit(&is_open, true, memory_order_release);
}

const char *tt_cuda_unavailable(void)
{
    open_once();
    return missing[0] ? missing : NULL;
}

bool tt_cuda_is_lost_in_fork(void)
{
    open_once();
    return is_lost_in_fork;
}

bool tt_cuda_has_libraries(void)
{
    static _Atomic int has = -1;
    if (has < 0) {
        const CudaApi *api = &tt_cuda_api;
        int mode = 0;
        bool there = api->cuModuleGetLoadingMode && api->cuLibraryLoadData && api->cuLibraryUnload &&
                     api->cuLibraryGetKernel && api->cuLibraryGetModule && api->cuKernelGetFunction;
        has = there && !api->cuModuleGetLoadingMode(&mode) && mode == CU_MODULE_LAZY_LOADING;
    }
    return has;
}

int tt_cuda_device_count(void)
{
    open_once();
    return device_count;
}

const CudaDevice *tt_cuda_device(int ordinal)
{
    if (tt_cuda_unavailable())
        tt_raise(&(Diagnostic){.kind = TT_DEVICE_ERROR, .message = missing});
    if (ordinal < 0 || ordinal >= device_count)
        tt_error(NULL, "there is no CUDA device %d: this machine has %d", ordinal, device_count);
    return &devices[ordinal];
}

int tt_cuda_current_device(void)
{
    CUdevice device = 0;
    CUcontext context = NULL;
    if (!tt_cuda_unavailable() && !tt_cuda_api.cuCtxGetCurrent(&context) && context)
        tt_cuda_api.cuCtxGetDevice(&device);
    return device;
}

/* ---- contexts ---- */

static CUresult primary_context(int device, CUcontext *context)
{
    *context = __atomic_load_n(&contexts[device], __ATOMIC_ACQUIRE);
    if (*context)
        return CUDA_SUCCESS;
    CUdevice handle;
    CUresult error = tt_cuda_api.cuDeviceGet(&handle, device);
    if (!error)
        error = tt_cuda_api.cuDevicePrimaryCtxRetain(context, handle);
    if (!error) /* two threads may both retain it, which does no harm: it is never given back */
        __atomic_store_n(&contexts[device], *context, __ATOMIC_RELEASE);
    return error;
}

CUresult tt_cuda_enter(int device, CudaScope *scope)
{
    CUcontext context;
    *scope = (CudaScope){0};
    CUresult error = primary_context(device, &context);
    if (!error)
        error = tt_cuda_api.cuCtxGetCurrent(&scope->before);
    if (error || scope->before == context)
        return error;
    error = tt_cuda_api.cuCtxSetCurrent(context);
    scope->switched = !error;
    return error;
}

void tt_cuda_leave(const CudaScope *scope)
{
    if (scope->switched)
        tt_cuda_api.cuCtxSetCurrent(scope->before);
}

void tt_cuda_enter_or_raise(int device, CudaScope *scope, Arena *arena)
{
    const CudaDevice *properties = tt_cuda_device(device);
    CUresult error = tt_cuda_enter(device, scope);
    if (error)
        tt_cuda_raise(arena, error, tt_arena_format(arena, "cuda:%d (%s)", device, properties->name));
}

void tt_cuda_set_current_device(int device, Arena *arena)
{
    CudaScope scope;
    tt_cuda_enter_or_raise(device, &scope, arena); /* and stays there */
}

void tt_cuda_synchronize(int device, Arena *arena)
{
    CudaScope scope;
    tt_cuda_enter_or_raise(device, &scope, arena);
    CUresult error = tt_cuda_api.cuCtxSynchronize();
    tt_cuda_leave(&scope);
    if (error)
        tt_cuda_raise(arena, error, tt_arena_format(arena, "cuda:%d", device));
}

int tt_cuda_device_of(uint64_t address)
{
    int ordinal;
    if (!address || tt_cuda_unavailable() ||
        tt_cuda_api.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address))
        return -1;
    return ordinal;
}

void tt_cuda_exchange_capture_mode(int *mode) { tt_cuda_api.cuThreadExchangeStreamCaptureMode(mode); }

/* ---- errors ---- */

static const char *advice(CUresult error)
{
    if (error == CUDA_ERROR_NOT_INITIALIZED && getpid() != opened_by)
        return lost_in_fork;
    if (error == CUDA_ERROR_ILLEGAL_ADDRESS)
        return "this kernel or an earlier one touched memory that is not there, and the process cannot use "
               "the GPU "
               "any more; run it again with TRITON_DEBUG=1, which checks each access and names the Python "
               "line";
    if (error == CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE)
        return "with launch_cooperative_grid all programs run at the same time: launch fewer of them, or "
               "ones that need "
               "fewer warps, registers and less shared memory";
    return NULL;
}

Diagnostic tt_cuda_diagnostic(Arena *arena, CUresult error, const char *what)
{
    const char *text = NULL, *name = NULL;
    tt_cuda_api.cuGetErrorString(error, &text);
    tt_cuda_api.cuGetErrorName(error, &name);
    const char *message =
        tt_arena_format(arena, "%s%s%s (%s)", what ? what : "", what ? ": " : "",
                        text ? text : "unknown error", name ? name : tt_arena_format(arena, "%d", error));
    return (Diagnostic){.kind = TT_DEVICE_ERROR, .message = message, .remedy = advice(error)};
}

_Noreturn void tt_cuda_raise(Arena *arena, CUresult error, const char *what)
{
    Diagnostic diag = tt_cuda_diagnostic(arena, error, what);
    tt_raise(&diag);
}
