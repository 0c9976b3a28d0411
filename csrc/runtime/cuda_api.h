/* The part of the CUDA driver API that is used, declared here so that no CUDA header is needed, and resolved from
 * libcuda.so.1 when it is first wanted. Values from the CUDA Driver API manual; names as there. */
#pragma once
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUlib_st *CUlibrary;
typedef struct CUkern_st *CUkernel;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUlinkState_st *CUlinkState;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_NOT_SUPPORTED = 801,

    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_WARP_SIZE = 10,
    CU_DEVICE_ATTRIBUTE_CLOCK_RATE = 13,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE = 36,
    CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH = 37,
    CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81,
    CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR = 82,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,

    CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 0,
    CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES = 1,
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3,
    CU_FUNC_ATTRIBUTE_NUM_REGS = 4,
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,

    CU_JIT_ERROR_LOG_BUFFER = 5,
    CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    CU_JIT_OPTIMIZATION_LEVEL = 7,
    CU_JIT_INPUT_PTX = 1,

    CU_MODULE_LAZY_LOADING = 2,

    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_EVENT_DEFAULT = 0,
    CU_EVENT_DISABLE_TIMING = 2,
    CU_TENSOR_MAP_SWIZZLE_32B = 1,
    CU_TENSOR_MAP_SWIZZLE_64B = 2,
    CU_TENSOR_MAP_SWIZZLE_128B = 3,
    CU_TENSOR_MAP_L2_PROMOTION_L2_128B = 2,
    CU_TENSOR_MAP_DATA_TYPE_UINT8 = 0,
    CU_TENSOR_MAP_DATA_TYPE_UINT16 = 1,
    CU_TENSOR_MAP_DATA_TYPE_UINT32 = 2,
    CU_TENSOR_MAP_DATA_TYPE_UINT64 = 4,
    CU_STREAM_CAPTURE_MODE_RELAXED = 2,
    CU_STREAM_CAPTURE_STATUS_NONE = 0,
    CU_LAUNCH_ATTRIBUTE_COOPERATIVE = 2,
    CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
};

typedef struct CUlaunchAttribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int cooperative;
        int programmaticStreamSerializationAllowed;
    } value;
} CUlaunchAttribute;

typedef struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

/* One row a function: CUDA(symbol, arguments). */
#define TT_CUDA_FUNCTIONS                                                                                    \
    CUDA(cuInit, (unsigned flags))                                                                           \
    CUDA(cuDriverGetVersion, (int *version))                                                                 \
    CUDA(cuGetErrorName, (CUresult error, const char **name))                                                \
    CUDA(cuGetErrorString, (CUresult error, const char **text))                                              \
    CUDA(cuDeviceGetCount, (int *count))                                                                     \
    CUDA(cuDeviceGet, (CUdevice * device, int ordinal))                                                      \
    CUDA(cuDeviceGetName, (char *name, int length, CUdevice device))                                         \
    CUDA(cuDeviceGetAttribute, (int *value, int attribute, CUdevice device))                                 \
    CUDA(cuDeviceTotalMem_v2, (size_t *bytes, CUdevice device))                                              \
    CUDA(cuDevicePrimaryCtxRetain, (CUcontext * context, CUdevice device))                                   \
    CUDA(cuCtxGetCurrent, (CUcontext * context))                                                             \
    CUDA(cuCtxGetDevice, (CUdevice * device))                                                                \
    CUDA(cuCtxSetCurrent, (CUcontext context))                                                               \
    CUDA(cuCtxSynchronize, (void))                                                                           \
    CUDA(cuPointerGetAttribute, (void *value, int attribute, uint64_t address))                              \
    CUDA(cuStreamSynchronize, (CUstream stream))                                                             \
    CUDA(cuStreamIsCapturing, (CUstream stream, int *status))                                                \
    CUDA(cuStreamWaitEvent, (CUstream stream, CUevent event, unsigned flags))                                \
    CUDA(cuEventCreate, (CUevent * event, unsigned flags))                                                   \
    CUDA(cuEventDestroy_v2, (CUevent event))                                                                 \
    CUDA(cuEventRecord, (CUevent event, CUstream stream))                                                    \
    CUDA(cuEventQuery, (CUevent event))                                                                      \
    CUDA(cuEventSynchronize, (CUevent event))                                                                \
    CUDA(cuEventElapsedTime, (float *milliseconds, CUevent start, CUevent end))                              \
    CUDA(cuThreadExchangeStreamCaptureMode, (int *mode))                                                     \
    CUDA(cuMemAlloc_v2, (uint64_t *address, size_t bytes))                                                   \
    CUDA(cuMemFree_v2, (uint64_t address))                                                                   \
    CUDA(cuMemsetD32Async, (uint64_t address, unsigned value, size_t count, CUstream stream))                \
    CUDA(cuMemcpyDtoHAsync_v2, (void *host, uint64_t address, size_t bytes, CUstream stream))                \
    CUDA(cuLinkCreate_v2, (unsigned count, int *options, void **values, CUlinkState *state))                 \
    CUDA(cuLinkAddData_v2, (CUlinkState state, int type, void *data, size_t size, const char *name,          \
                            unsigned count, int *options, void **values))                                    \
    CUDA(cuLinkComplete, (CUlinkState state, void **cubin, size_t *size))                                    \
    CUDA(cuLinkDestroy, (CUlinkState state))                                                                 \
    CUDA(cuModuleLoadDataEx,                                                                                 \
         (CUmodule * module, const void *image, unsigned count, int *options, void **values))                \
    CUDA(cuModuleUnload, (CUmodule module))                                                                  \
    CUDA(cuModuleGetFunction, (CUfunction * function, CUmodule module, const char *name))                    \
    CUDA(cuFuncGetAttribute, (int *value, int attribute, CUfunction function))                               \
    CUDA(cuFuncSetAttribute, (CUfunction function, int attribute, int value))                                \
    CUDA(cuLaunchKernel, (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,            \
                          unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,       \
                          CUstream stream, void **parameters, void **extra))

/* Those that older drivers do not have; NULL there. */
#define TT_CUDA_LATER_FUNCTIONS                                                                              \
    CUDA(cuLaunchKernelEx,                                                                                   \
         (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))               \
    CUDA(cuTensorMapEncodeTiled,                                                                             \
         (void *map, int type, uint32_t rank, void *address, const uint64_t *extents,                        \
          const uint64_t *strides, const uint32_t *box, const uint32_t *element_strides, int interleave,     \
          int swizzle, int promotion, int fill))                                                             \
    CUDA(cuModuleGetLoadingMode, (int *mode))                                                                \
    CUDA(cuLibraryLoadData, (CUlibrary * library, const void *code, int *jit_options, void **jit_values,     \
                             unsigned jit_count, int *options, void **values, unsigned count))               \
    CUDA(cuLibraryUnload, (CUlibrary library))                                                               \
    CUDA(cuLibraryGetKernel, (CUkernel * kernel, CUlibrary library, const char *name))                       \
    CUDA(cuLibraryGetModule, (CUmodule * module, CUlibrary library))                                         \
    CUDA(cuKernelGetFunction, (CUfunction * function, CUkernel kernel))

typedef struct CudaApi {
#define CUDA(symbol, arguments) CUresult(*symbol) arguments;
    TT_CUDA_FUNCTIONS
    TT_CUDA_LATER_FUNCTIONS
#undef CUDA
} CudaApi;
