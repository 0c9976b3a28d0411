/* Kernels onto GPUs: PTX that the driver makes machine code of, and functions of that on each device.
 *
 * Machine code is made by a library (CUDA 12.0), which belongs to no context: other threads launch meanwhile, and several
 * kernels are compiled at once. A module, the older way, keeps everybody else out of its context for as long as its PTX is
 * compiled. Both wait until the device is idle when the code goes there, and launches wait with them. */
#include "runtime/cuda_driver.h"

#include <stdlib.h>

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

/* ---- code that goes ---------------------------------------------------------------------------------------------------- */

/* The code of a kernel that went. It may still run: its launches were not waited for. */
typedef struct Retired {
    struct Retired *next;
    CUlibrary library;
    CUmodule modules[TT_MAX_CUDA_DEVICES]; /* the library's, or each by itself */
    uint64_t devices;                      /* that it may run on */
} Retired;
static _Atomic(Retired *) retired;

static void unload_module(int device, CUmodule module)
{
    CudaScope scope;
    if (tt_cuda_enter(device, &scope))
        return; /* the driver is gone, and the module with it */
    tt_cuda_api.cuModuleUnload(module);
    tt_cuda_leave(&scope);
}

static void unload(const Retired *code)
{
    if (code->library)
        tt_cuda_api.cuLibraryUnload(code->library);
    else
        for (int i = 0; i < TT_MAX_CUDA_DEVICES; i++)
            if (code->modules[i])
                unload_module(i, code->modules[i]);
}

static void retire(Retired *code)
{
    Retired *next = atomic_load(&retired);
    do
        code->next = next;
    while (!atomic_compare_exchange_weak(&retired, &next, code));
}

/* What was retired before the device stood still does not run there. */
static void unload_idle(Retired *codes, int device, bool stood_still)
{
    while (codes) {
        Retired *code = codes;
        codes = code->next;
        if (stood_still)
            code->devices &= ~((uint64_t)1 << device);
        if (code->devices) {
            retire(code);
        } else {
            unload(code);
            free(code);
        }
    }
}

/* Without memory for it the code stays. */
static void retire_code(const CudaKernel *kernel)
{
    Retired *code = calloc(1, sizeof *code);
    if (!code)
        return;
    code->library = kernel->library;
    for (int i = 0; i < TT_MAX_CUDA_DEVICES; i++) {
        LoadedKernel *loaded = kernel->loaded[i];
        code->modules[i] = loaded ? loaded->module : NULL;
        code->devices |= loaded ? (uint64_t)1 << i : 0;
    }
    retire(code);
}

void tt_cuda_release_kernel(CudaKernel *kernel)
{
    bool is_anywhere = kernel->library, is_captured = false;
    for (int i = 0; i < TT_MAX_CUDA_DEVICES; i++) {
        is_anywhere |= kernel->loaded[i] != NULL;
        is_captured |= kernel->loaded[i] && kernel->loaded[i]->captured;
    }
    if (is_anywhere && !is_captured)
        retire_code(kernel);
    for (int i = 0; i < TT_MAX_CUDA_DEVICES; i++)
        free(kernel->loaded[i]);
    pthread_mutex_destroy(&kernel->lock);
    free(kernel->log);
    free((char *)kernel->image.name);
    free((char *)kernel->image.ptx);
    free(kernel);
}

/* ---- code that comes ---------------------------------------------------------------------------------------------------- */

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

/* What the driver says about PTX that it refuses. */
enum { LOG_SIZE = 8192 };
typedef struct JitOptions {
    int names[3];
    void *values[3];
} JitOptions;

static JitOptions jit_options(const CudaImage *image, char log[LOG_SIZE])
{
    return (JitOptions){
        {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_OPTIMIZATION_LEVEL},
        {log, (void *)(intptr_t)LOG_SIZE, (void *)(intptr_t)image->effort}};
}

/* Makes the machine code, once for all devices. PTX that is refused comes out in what is done with the library. */
static CUresult make_library(CudaKernel *kernel)
{
    CUlibrary library = NULL;
    if (kernel->library)
        return CUDA_SUCCESS;
    if (!kernel->log && !(kernel->log = calloc(1, LOG_SIZE)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    JitOptions options = jit_options(&kernel->image, kernel->log);
    tt_begin_reading_environment();
    CUresult error = tt_cuda_api.cuLibraryLoadData(&library, kernel->image.ptx, options.names, options.values,
                                                   TT_COUNT(options.names), NULL, NULL, 0);
    tt_end_reading_environment();
    if (!error)
        kernel->library = library;
    return error;
}

/* The machine code into the current context. */
static CUresult find_function(CudaKernel *kernel, LoadedKernel *loaded, char log[LOG_SIZE])
{
    const CudaImage *image = &kernel->image;
    CUkernel entry;
    if (kernel->library) {
        CUresult error = tt_cuda_api.cuLibraryGetKernel(&entry, kernel->library, image->name);
        if (!error)
            error = tt_cuda_api.cuKernelGetFunction(&loaded->function, entry);
        if (!error)
            error = tt_cuda_api.cuLibraryGetModule(&loaded->module, kernel->library);
        if (error)
            memcpy(log, kernel->log, LOG_SIZE);
        return error;
    }
    JitOptions options = jit_options(image, log);
    tt_begin_reading_environment();
    CUresult error = tt_cuda_api.cuModuleLoadDataEx(&loaded->module, image->ptx, TT_COUNT(options.names),
                                                    options.names, options.values);
    tt_end_reading_environment();
    return error ? error : tt_cuda_api.cuModuleGetFunction(&loaded->function, loaded->module, image->name);
}

static CUresult load_on_device(CudaKernel *kernel, LoadedKernel *loaded, char log[LOG_SIZE])
{
    const CudaImage *image = &kernel->image;
    CUresult error = find_function(kernel, loaded, log);
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

Diagnostic tt_cuda_out_of_registers(const CudaKernel *kernel, const LoadedKernel *loaded, int device,
                                    Arena *arena)
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

/* What ptxas 13.0 says where it can neither do with so few registers nor spill: an instruction wants them (then it says how
 * many), or several at a time. */
static bool lacks_registers(const char *log)
{
    return strstr(log, "Insufficient registers") || strstr(log, "Register allocation failed");
}

static Diagnostic too_few_registers(const CudaImage *image, const CudaDevice *device, const char *log,
                                    Arena *arena)
{
    const char *told = strstr(log, "register target of ");
    int64_t available = device->max_registers;
    const char *limit = tt_arena_format(arena, "num_warps=%d leaves", image->threads / 32);
    if (image->max_registers) {
        available = (int64_t)image->max_registers * image->threads;
        limit = tt_arena_format(arena, "maxnreg=%d leaves", image->max_registers);
    }
    int64_t needed = told ? strtoll(told + strlen("register target of "), NULL, 10) * image->threads : 0;
    const char *message = tt_arena_format(arena, "kernel %s: a thread needs more registers than %s\n%s",
                                          image->name, limit, log);
    return out_of("registers", TT_MAX(needed, available + image->threads), available, message,
                  image->max_registers ? "use a larger maxnreg, or smaller tiles"
                                       : "use a smaller num_warps, or smaller tiles");
}

/* The driver's refusal of a kernel: of its code, which is the compiler's fault, or because of its own state. */
static Diagnostic refusal(const CudaImage *image, const CudaDevice *device, CUresult error, const char *log,
                          Arena *arena)
{
    if (lacks_registers(log))
        return too_few_registers(image, device, log, arena);
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

atomic_int tt_cuda_loads[TT_MAX_CUDA_DEVICES];

/* Loading is no stream operation: it is allowed in a capture once the thread's mode says so. It waits until nothing runs on
 * the device, so what was retired before can go; launches wait for that alone, not while machine code is made. */
static LoadedKernel *load_in_any_mode(CudaKernel *kernel, int device, char log[LOG_SIZE], CUresult *error)
{
    LoadedKernel *loaded = calloc(1, sizeof *loaded);
    if (!loaded)
        return NULL;
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    tt_cuda_exchange_capture_mode(&mode);
    *error = tt_cuda_has_libraries() ? make_library(kernel) : CUDA_SUCCESS;
    Retired *codes = atomic_exchange(&retired, NULL);
    atomic_fetch_add(&tt_cuda_loads[device], 1);
    if (!*error)
        *error = load_on_device(kernel, loaded, log);
    else if (kernel->log)
        memcpy(log, kernel->log, LOG_SIZE);
    atomic_fetch_sub(&tt_cuda_loads[device], 1);
    unload_idle(codes, device, !*error);
    tt_cuda_exchange_capture_mode(&mode);
    if (!*error)
        return loaded;
    if (loaded->module && !kernel->library)
        tt_cuda_api.cuModuleUnload(loaded->module);
    free(loaded);
    return NULL;
}

LoadedKernel *tt_cuda_ensure_loaded(CudaKernel *kernel, int device, Arena *arena, Diagnostic *diag)
{
    LoadedKernel *loaded = atomic_load_explicit(&kernel->loaded[device], memory_order_acquire);
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
    if (!loaded && (loaded = load_in_any_mode(kernel, device, log, &error)))
        atomic_store_explicit(&kernel->loaded[device], loaded, memory_order_release);
    pthread_mutex_unlock(&kernel->lock);
    if (error)
        *diag = refusal(image, properties, error, log, arena);
    else if (!loaded)
        *diag = (Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory while loading a kernel"};
    else if (loaded->info.max_threads < image->threads)
        *diag = tt_cuda_out_of_registers(kernel, loaded, device, arena);
    else
        return loaded;
    return NULL;
}

const CudaKernelInfo *tt_cuda_load(CudaKernel *kernel, int device, Arena *arena)
{
    CudaScope scope;
    Diagnostic diag;
    tt_cuda_enter_or_raise(device, &scope, arena);
    const LoadedKernel *loaded = tt_cuda_ensure_loaded(kernel, device, arena, &diag);
    tt_cuda_leave(&scope);
    if (!loaded)
        tt_raise(&diag);
    return &loaded->info;
}

/* What the driver refuses is told where it is loaded. */
bool tt_cuda_prepare(CudaKernel *kernel, int device, Arena *arena)
{
    CudaScope scope;
    if (!tt_cuda_has_libraries())
        return false;
    tt_cuda_enter_or_raise(device, &scope, arena);
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    tt_cuda_exchange_capture_mode(&mode);
    pthread_mutex_lock(&kernel->lock);
    bool is_made = !make_library(kernel);
    pthread_mutex_unlock(&kernel->lock);
    tt_cuda_exchange_capture_mode(&mode);
    tt_cuda_leave(&scope);
    return is_made;
}

const void *tt_cuda_cubin(CudaKernel *kernel, int device, Arena *arena, size_t *size)
{
    CudaScope scope;
    void *cubin = NULL;
    tt_cuda_enter_or_raise(device, &scope, arena);
    tt_begin_reading_environment();
    CUresult error = link_ptx(&kernel->image, &cubin, size);
    tt_end_reading_environment();
    tt_cuda_leave(&scope);
    if (error)
        tt_cuda_raise(arena, error, tt_arena_format(arena, "linking kernel %s", kernel->image.name));
    if (!cubin)
        tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory for a cubin"});
    void *copy = tt_arena_copy(arena, cubin, *size);
    free(cubin);
    return copy;
}
