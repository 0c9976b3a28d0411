/* A CUDA driver without a GPU, for tests of what is called when: it keeps a log, knows contexts, captures and streams,
 * refuses what the real one refuses, and runs no kernel. A launch takes one millisecond of its clock. The first functions
 * are for the tests. Built as libcuda.so.1. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DEVICES = 2, GLOBAL = 0, THREAD_LOCAL = 1, RELAXED = 2 };

typedef struct Context {
    int device;
} Context;
typedef struct Module {
    int device;
    char *image;
} Module;
typedef struct Library { /* and its only kernel */
    char *image;
    int error;
    Module *modules[DEVICES];
} Library;
typedef struct Event {
    int device;
    double time;
} Event;

enum {
    INVALID_VALUE = 1,
    INVALID_CONTEXT = 201,
    INVALID_HANDLE = 400,
    NOT_READY = 600,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_IMPLICIT = 906
};

static Context contexts[DEVICES] = {{0}, {1}};
static _Thread_local Context *current;
static _Thread_local int thread_mode = GLOBAL;
static uintptr_t captured;
static int capture_mode, capture_broken;
static int launch_error, link_error, registers = 32, max_threads = 1024, failed_parameter = -1,
                                     watched_parameter = -1;
static _Atomic int busy; /* kernels are running */
static _Atomic int slow; /* milliseconds that it compiles */
extern char **environ;
static int libraries;    /* that there are */
static double milliseconds;
static char text[1 << 16], reason[256]; /* why code is refused */

/* ---- for tests ---- */

const char *fake_log(void) { return text; }
Context *fake_context(int device) { return &contexts[device]; }
void fake_set_launch_error(int error) { launch_error = error; }
/* Code is refused, for this reason. */
void fake_set_link_error(int error, const char *why)
{
    link_error = error;
    snprintf(reason, sizeof reason, "%s", why);
}
void fake_set_kernel(int new_registers, int new_max_threads)
{
    registers = new_registers;
    max_threads = new_max_threads;
}
/* The next launches report a failed assertion in the record that this parameter points to; none if negative. */
void fake_set_failed_parameter(int number) { failed_parameter = number; }

/* The value of this parameter is logged. */
void fake_set_watched_parameter(int number) { watched_parameter = number; }

/* While it is, events are not reached; what is loaded would wait, which the log says. */
void fake_set_busy(int is_busy) { busy = is_busy; }
void fake_set_slow(int milliseconds_each) { slow = milliseconds_each; }
int fake_library_count(void) { return libraries; }

void fake_reset(void)
{
    busy = slow = 0;
    watched_parameter = -1;
    launch_error = link_error = captured = capture_broken = 0;
    registers = 32;
    max_threads = 1024;
    failed_parameter = -1;
    text[0] = 0;
}

void fake_begin_capture(uintptr_t stream, int mode)
{
    captured = stream;
    capture_mode = mode;
    capture_broken = 0;
}

/* Whether the capture is valid. */
int fake_end_capture(void)
{
    captured = 0;
    return !capture_broken;
}

static void note(const char *format, ...)
{
    size_t length = strlen(text);
    __builtin_va_list args;
    __builtin_va_start(args, format);
    vsnprintf(text + length, sizeof text - length, format, args);
    __builtin_va_end(args);
}

/* Calls that are not allowed while a stream is captured, unless the thread says that it means them. */
static int unsafe(void)
{
    if (!captured || capture_mode == RELAXED || thread_mode == RELAXED)
        return 0;
    capture_broken = 1;
    return CAPTURE_UNSUPPORTED;
}

/* Streams 0 to 2 are any device's; others have the device in their handle: 0x1000 and 0x2000. */
static int check_stream(uintptr_t stream)
{
    if (!current)
        return INVALID_CONTEXT;
    return stream > 2 && (int)(stream >> 12) - 1 != current->device ? INVALID_HANDLE : 0;
}

/* ---- the driver ---- */

/* Does not start again in a process that was forked from one that it has started in. */
int cuInit(unsigned flags)
{
    static pid_t started_by;
    if (started_by && started_by != getpid())
        return 3;
    started_by = getpid();
    return flags != 0;
}

#ifdef OLD_DRIVER
int cuDriverGetVersion(int *version) { return *version = 12010, 0; }
#else
int cuDriverGetVersion(int *version) { return *version = 12080, 0; }
#endif

int cuGetErrorName(int error, const char **name)
{
    static _Thread_local char buffer[32];
    snprintf(buffer, sizeof buffer, "CUDA_ERROR_%d", error);
    *name = buffer;
    return 0;
}

int cuGetErrorString(int error, const char **string)
{
    *string = error == 700 ? "an illegal memory access was encountered" : "some error";
    return 0;
}

int cuDeviceGetCount(int *count) { return *count = DEVICES, 0; }
int cuDeviceGet(int *device, int ordinal) { return *device = ordinal, 0; }
int cuDeviceGetName(char *name, int length, int device)
{
    (void)device;
    snprintf(name, (size_t)length, "Fake GPU");
    return 0;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { return *bytes = (size_t)device + 80, 0; }

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    static const int values[][2] = {{1, 1024},    {10, 32},    {16, 132},    {39, 2048},   {75, 9},
                                    {81, 233472}, {82, 65536}, {97, 232448}, {38, 1 << 20}};
    *value = device;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i][0] == attribute)
            *value = values[i][1];
    if (attribute == 76)
        *value = 0;
    if (attribute == 16 && device)
        *value = 66; /* the second device has half as many multiprocessors */
    return 0;
}

int cuDevicePrimaryCtxRetain(Context **context, int device) { return *context = &contexts[device], 0; }
int cuCtxGetCurrent(Context **context) { return *context = current, 0; }
int cuCtxGetDevice(int *device) { return current ? (*device = current->device, 0) : INVALID_CONTEXT; }
int cuCtxSetCurrent(Context *context) { return current = context, 0; }
int cuCtxSynchronize(void)
{
    note("synchronize\n");
    return current ? unsafe() : INVALID_CONTEXT;
}

/* Device memory of the tests lies at 0x5_00_0000000000, the device in the digits between. */
int cuPointerGetAttribute(void *value, int attribute, uint64_t address)
{
    if (attribute != 9 || address >> 44 != 5)
        return INVALID_VALUE;
    *(int *)value = (int)(address >> 40 & 15);
    return 0;
}

int cuThreadExchangeStreamCaptureMode(int *mode)
{
    int before = thread_mode;
    thread_mode = *mode;
    *mode = before;
    return 0;
}

int cuStreamIsCapturing(uintptr_t stream, int *status)
{
    *status = captured && stream == captured;
    return captured && !stream ? CAPTURE_IMPLICIT : 0;
}

int cuStreamSynchronize(uintptr_t stream)
{
    note("synchronize stream %#lx\n", stream);
    if (captured && stream == captured) {
        capture_broken = 1;
        return CAPTURE_UNSUPPORTED;
    }
    return unsafe();
}

int cuEventCreate(Event **event, unsigned flags)
{
    (void)flags;
    if (!current)
        return INVALID_CONTEXT;
    *event = calloc(1, sizeof **event);
    (*event)->device = current->device;
    return 0;
}

int cuEventDestroy_v2(Event *event) { return free(event), 0; }

int cuEventRecord(Event *event, uintptr_t stream)
{
    if (current && event->device != current->device)
        return INVALID_HANDLE;
    event->time = milliseconds;
    note("record on %#lx\n", stream);
    return check_stream(stream);
}

int cuStreamWaitEvent(uintptr_t stream, Event *event, unsigned flags)
{
    (void)event, (void)flags;
    note("%#lx waits\n", stream);
    return check_stream(stream);
}

int cuEventQuery(Event *event)
{
    (void)event;
    return unsafe() ? CAPTURE_UNSUPPORTED : busy ? NOT_READY : 0;
}

int cuEventSynchronize(Event *event) { return (void)event, unsafe(); }

int cuEventElapsedTime(float *elapsed, Event *start, Event *end)
{
    *elapsed = (float)(end->time - start->time);
    return 0;
}

int cuMemAlloc_v2(uint64_t *address, size_t bytes)
{
    note("allocate %zu\n", bytes);
    *address = (uint64_t)(uintptr_t)calloc(1, 64);
    return current ? unsafe() : INVALID_CONTEXT;
}

int cuMemFree_v2(uint64_t address) { return free((void *)(uintptr_t)address), unsafe(); }

int cuMemcpyHtoD_v2(uint64_t address, const void *host, size_t bytes)
{
    (void)address, (void)host, (void)bytes; /* there is no memory behind it */
    return 0;
}

int cuMemcpyDtoH_v2(void *host, uint64_t address, size_t bytes)
{
    (void)address;
    memset(host, 0, bytes);
    return 0;
}

int cuMemsetD32Async(uint64_t address, unsigned value, size_t count, uintptr_t stream)
{
    (void)address, (void)value;
    milliseconds += 0.25;
    note("clear %zu words on %#lx\n", count, stream);
    return check_stream(stream);
}

int cuMemcpyDtoHAsync_v2(void *host, uint64_t address, size_t bytes, uintptr_t stream)
{
    memcpy(host, (void *)(uintptr_t)address, bytes);
    return check_stream(stream);
}

int cuLinkCreate_v2(unsigned count, int *options, void **values, char ***state)
{
    (void)count, (void)options, (void)values;
    *state = calloc(1, sizeof **state);
    return 0;
}

int cuLinkAddData_v2(char **state, int type, void *data, size_t size, const char *name, unsigned count,
                     int *options, void **values)
{
    (void)count, (void)options, (void)values;
    note("link %s\n", name);
    state[0] = memcpy(malloc(size), data, size);
    return type == 1 ? 0 : INVALID_VALUE;
}

int cuLinkComplete(char **state, void **cubin, size_t *size)
{
    *cubin = state[0];
    *size = strlen(state[0]) + 1;
    return 0;
}

int cuLinkDestroy(char **state) { return free(state[0]), free(state), 0; }

/* What the driver's compiler does. */
/* The real one asks for variables meanwhile. */
static int translate(unsigned count, int *options, void **values)
{
    char **variables = environ;
    usleep(1000 * slow);
    if (environ != variables)
        note("the environment moved\n");
    for (unsigned i = 0; i < count && link_error; i++)
        if (options[i] == 5)
            strcpy(values[i], reason);
    for (unsigned i = 0; i < count; i++)
        if (options[i] == 7 && values[i] != (void *)4)
            note("at level %d\n", (int)(size_t)values[i]);
    return link_error;
}

static int load(Module **module, const char *image)
{
    note(busy ? "load on %d waits\n" : "load on %d\n", current->device);
    *module = malloc(sizeof **module);
    **module = (Module){current->device, strdup(image)};
    return unsafe();
}

int cuModuleLoadDataEx(Module **module, const char *image, unsigned count, int *options, void **values)
{
    if (!current)
        return INVALID_CONTEXT;
    int error = translate(count, options, values);
    return error ? error : load(module, image);
}

int cuModuleLoadData(Module **module, const char *image)
{
    return cuModuleLoadDataEx(module, image, 0, NULL, NULL);
}

int cuModuleUnload(Module *module)
{
    int error = !current || current->device != module->device ? INVALID_CONTEXT : unsafe();
    note("unload from %d\n", module->device);
    free(module->image);
    free(module);
    return error;
}

int cuModuleGetFunction(Module **function, Module *module, const char *name)
{
    *function = module;
    return strstr(module->image, name) ? 0 : 500;
}

#ifndef OLD_DRIVER
int cuModuleGetLoadingMode(int *mode)
{
    const char *asked = getenv("CUDA_MODULE_LOADING");
    *mode = asked && !strcmp(asked, "EAGER") ? 1 : 2;
    return 0;
}

int cuLibraryLoadData(Library **library, const char *code, int *options, void **values, unsigned count,
                      int *library_options, void **library_values, unsigned library_count)
{
    (void)library_options, (void)library_values, (void)library_count;
    *library = calloc(1, sizeof **library);
    (*library)->error = translate(count, options, values); /* which the real one tells later, too */
    (*library)->image = strdup(code);
    libraries++;
    return unsafe();
}

int cuLibraryUnload(Library *library)
{
    for (int i = 0; i < DEVICES; i++)
        if (library->modules[i]) {
            note("unload from %d\n", i);
            free(library->modules[i]->image);
            free(library->modules[i]);
        }
    free(library->image);
    free(library);
    libraries--;
    return unsafe();
}

int cuLibraryGetKernel(Library **kernel, Library *library, const char *name)
{
    *kernel = library;
    return library->error ? library->error : strstr(library->image, name) ? 0 : 500;
}

int cuKernelGetFunction(Module **function, Library *kernel)
{
    if (!current)
        return INVALID_CONTEXT;
    int error = kernel->modules[current->device] ? 0 : load(&kernel->modules[current->device], kernel->image);
    *function = kernel->modules[current->device];
    return error;
}

int cuLibraryGetModule(Module **module, Library *library)
{
    *module = current ? library->modules[current->device] : NULL;
    return *module ? 0 : INVALID_CONTEXT;
}
#endif

int cuFuncGetAttribute(int *value, int attribute, Module *function)
{
    (void)function;
    *value = attribute == 0 ? max_threads : attribute == 4 ? registers : attribute == 3 ? 12 : 0;
    return 0;
}

int cuFuncSetAttribute(Module *function, int attribute, int value)
{
    (void)function;
    note("attribute %d is %d\n", attribute, value);
    return 0;
}

#ifndef OLD_DRIVER
/* The map begins with the array's address. */
int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address, const uint64_t *extents,
                           const uint64_t *strides, const uint32_t *box, const uint32_t *steps, int interleave,
                           int swizzle, int promotion, int fill)
{
    note("map of %#lx: type %d, %lu x %lu, rows %lu apart, box %u x %u, swizzle %d\n", (unsigned long)address, type,
         extents[1], extents[0], strides[0], box[1], box[0], swizzle);
    memset(map, 0, 128);
    *(void **)map = address;
    return rank == 2 && steps[0] == 1 && steps[1] == 1 && !interleave && !fill && promotion < 4 ? 0 : INVALID_VALUE;
}
#endif

int cuLaunchKernel(Module *function, unsigned x, unsigned y, unsigned z, unsigned threads, unsigned threads_y,
                   unsigned threads_z, unsigned shared, uintptr_t stream, void **parameters, void **extra)
{
    (void)extra;
    if (!current || current->device != function->device)
        return INVALID_CONTEXT;
    note("launch (%u, %u, %u) of %u on %d, stream %#lx\n", x, y, z, threads * threads_y * threads_z,
         function->device, stream);
    milliseconds += 1;
    if (y > 65535 || z > 65535 || shared > 232448)
        return INVALID_VALUE;
    if (watched_parameter >= 0)
        note("parameter %d is %#lx\n", watched_parameter, *(uint64_t *)parameters[watched_parameter]);
    if (failed_parameter >= 0) {
        int *record = *(int **)parameters[failed_parameter];
        memcpy(record, (int[]){1, 4, 5, 6}, 4 * sizeof(int));
    }
    return launch_error ? launch_error : check_stream(stream);
}

typedef struct Attribute {
    int id;
    char pad[4];
    union {
        int number;
        char pad[64];
    } value;
} Attribute;
typedef struct Config {
    unsigned x, y, z, threads, threads_y, threads_z, shared;
    uintptr_t stream;
    Attribute *attributes;
    unsigned count;
} Config;

int cuLaunchKernelEx(const Config *config, Module *function, void **parameters, void **extra)
{
    for (unsigned i = 0; i < config->count; i++)
        note("attribute %d is %d\n", config->attributes[i].id, config->attributes[i].value.number);
    return cuLaunchKernel(function, config->x, config->y, config->z, config->threads, config->threads_y,
                          config->threads_z, config->shared, config->stream, parameters, extra);
}
