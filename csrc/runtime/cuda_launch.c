/* Launches of kernels on GPUs. */
#include "gpu/tensor_map.h"
#include "runtime/cuda_driver.h"

/* A launch with attributes. */
static CUresult enqueue_specially(const CudaImage *image, const LoadedKernel *loaded,
                                  const CudaLaunch *launch, bool early, void **parameters)
{
    CUlaunchAttribute attributes[2];
    unsigned count = 0;
    memset(attributes, 0, sizeof attributes);
    if (image->cooperative) {
        attributes[count].id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        attributes[count++].value.cooperative = 1;
    }
    if (early) {
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

static CUresult enqueue(const CudaKernel *kernel, const LoadedKernel *loaded, const CudaLaunch *launch,
                        bool early, void **parameters)
{
    const int32_t *grid = launch->grid;
    if (kernel->image.cooperative || early)
        return enqueue_specially(&kernel->image, loaded, launch, early, parameters);
    return tt_cuda_api.cuLaunchKernel(loaded->function, (unsigned)grid[0], (unsigned)grid[1],
                                      (unsigned)grid[2], (unsigned)kernel->image.threads, 1, 1,
                                      (unsigned)kernel->image.shared_bytes, launch->stream, parameters, NULL);
}

/* ---- arrays that are copied in boxes ---------------------------------------------------------------------------------------- */

typedef struct EncodedMap {
    _Alignas(64) unsigned char bytes[MAP_BYTES];
} EncodedMap;

static int type_of_width(int bytes)
{
    return bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
           : bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
           : bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                        : CU_TENSOR_MAP_DATA_TYPE_UINT64;
}

static CUresult encode(const CudaArray *array, EncodedMap *map)
{
    uint64_t extents[3] = {array->columns, array->rows}, strides[2] = {array->stride};
    uint32_t box[3] = {(uint32_t)(array->row_bytes / array->element_bytes), (uint32_t)array->box_rows};
    uint32_t ones[] = {1, 1, 1}, rank = 2;
    if (array->has_places) { /* the dimension in the middle: each stride is a multiple of the one before */
        extents[rank] = extents[1], strides[1] = strides[0], box[rank++] = box[1];
        extents[1] = MAP_UNCHECKED, strides[0] = TT_CHUNK, box[1] = 1;
    }
    int swizzle = array->row_bytes == 128  ? CU_TENSOR_MAP_SWIZZLE_128B
                  : array->row_bytes == 64 ? CU_TENSOR_MAP_SWIZZLE_64B
                                           : CU_TENSOR_MAP_SWIZZLE_32B;
    if (!tt_cuda_api.cuTensorMapEncodeTiled)
        return CUDA_ERROR_NOT_SUPPORTED;
    return tt_cuda_api.cuTensorMapEncodeTiled(map->bytes, type_of_width(array->element_bytes), rank,
                                              (void *)(uintptr_t)array->address, extents, strides, box, ones,
                                              0, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, 0);
}

/* ---- launches ----------------------------------------------------------------------------------------------------------------- */

/* A launch that is waited for, and what it left in its failure words. */
static CUresult run_checked(const CudaKernel *kernel, const LoadedKernel *loaded, const CudaLaunch *launch,
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
        error = enqueue(kernel, loaded, launch, false, parameters);
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

static Diagnostic launch_failed(const CudaKernel *kernel, const LoadedKernel *loaded,
                                const CudaLaunch *launch, CUresult error, Arena *arena)
{
    enum { GRID_YZ_LIMIT = 65535 };
    if (error == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)
        return tt_cuda_out_of_registers(kernel, loaded, launch->device, arena);
    Diagnostic diag = tt_cuda_diagnostic(arena, error, NULL);
    if (launch->grid[1] > GRID_YZ_LIMIT || launch->grid[2] > GRID_YZ_LIMIT)
        diag.remedy =
            "a grid has at most 65535 programs along its second and third axis: put the largest extent first";
    return diag;
}

/* In the device's context. False with *diag set when something is refused. */
static bool launch_loaded(const CudaKernel *kernel, LoadedKernel *loaded, const CudaLaunch *launch,
                          Arena *arena, Diagnostic *diag)
{
    bool checked = kernel->image.failure_words > 0;
    int count = kernel->image.parameter_count;
    void *parameters[count + launch->array_count + 1];
    EncodedMap maps[launch->array_count + 1];
    CUresult error = CUDA_SUCCESS;
    for (int i = 0; i < count; i++)
        parameters[i] = (void *)&launch->args[i];
    for (int i = 0; i < launch->array_count && !error; i++) {
        parameters[count + i] = &maps[i];
        error = encode(&launch->arrays[i], &maps[i]);
    }
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
    /* graphs have edges for it since CUDA 12.3, as whose driver a device takes PTX 8.3 */
    bool early = kernel->image.early && (!captured || tt_cuda_device(launch->device)->ptx_version >= 83);
    for (int i = 0; i < launch->awaited_count && !error; i++)
        error = wait_for(launch->stream, launch->awaited[i]);
    int mode =
        CU_STREAM_CAPTURE_MODE_RELAXED; /* memory is allocated, maybe while another stream is captured */
    if (!error && checked) {
        tt_cuda_exchange_capture_mode(&mode);
        error = run_checked(kernel, loaded, launch, parameters);
        tt_cuda_exchange_capture_mode(&mode);
    } else if (!error) {
        error = enqueue(kernel, loaded, launch, early, parameters);
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
    static const double longest = 0.3; /* milliseconds that the driver takes for it */
    LoadedKernel *loaded = tt_cuda_ensure_loaded(kernel, launch->device, arena, &diag);
    tt_await_zero(&tt_cuda_loads[launch->device], longest);
    bool done = loaded && launch_loaded(kernel, loaded, launch, arena, &diag);
    tt_cuda_leave(&scope);
    if (!done)
        tt_raise(&diag);
    return !kernel->image.failure_words || !launch->failure[0];
}

/* ---- how far a device is ---- */

static CUevent marks[TT_MAX_CUDA_DEVICES]; /* made when first wanted, and kept */

void tt_cuda_mark(int device, void *stream)
{
    CudaScope scope;
    if (tt_cuda_enter(device, &scope))
        return;
    CUevent event = __atomic_load_n(&marks[device], __ATOMIC_ACQUIRE), none = NULL;
    if (!event && !tt_cuda_api.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) &&
        !__atomic_compare_exchange_n(&marks[device], &none, event, false, __ATOMIC_ACQ_REL,
                                     __ATOMIC_ACQUIRE)) {
        tt_cuda_api.cuEventDestroy_v2(event); /* another thread was there first */
        event = none;
    }
    if (event)
        tt_cuda_api.cuEventRecord(event, stream);
    tt_cuda_leave(&scope);
}

bool tt_cuda_is_past_mark(int device)
{
    CUevent event = __atomic_load_n(&marks[device], __ATOMIC_ACQUIRE);
    int mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    if (!event)
        return true;
    tt_cuda_exchange_capture_mode(&mode);
    bool is_past = tt_cuda_api.cuEventQuery(event) != CUDA_ERROR_NOT_READY;
    tt_cuda_exchange_capture_mode(&mode);
    return is_past;
}
