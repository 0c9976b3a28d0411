/* Events on streams, and memory to overwrite: what it takes to time kernels where no array library offers them. */
#include "runtime/cuda_driver.h"

#include <stdlib.h>

struct CudaEvent {
    CUevent event;
    int device;
};

struct CudaMemory {
    uint64_t address;
    size_t bytes;
    int device;
};

static _Noreturn void out_of_memory(void)
{
    tt_raise(&(Diagnostic){.kind = TT_OUT_OF_MEMORY, .message = "out of memory"});
}

CudaEvent *tt_cuda_new_event(int device, Arena *arena)
{
    CudaScope scope;
    tt_cuda_enter_or_raise(device, &scope, arena);
    CudaEvent *event = calloc(1, sizeof *event);
    CUresult error = event ? tt_cuda_api.cuEventCreate(&event->event, CU_EVENT_DEFAULT) : CUDA_SUCCESS;
    tt_cuda_leave(&scope);
    if (!event)
        out_of_memory();
    event->device = device;
    if (error) {
        free(event);
        tt_cuda_raise(arena, error, "making an event");
    }
    return event;
}

void tt_cuda_release_event(CudaEvent *event)
{
    CudaScope scope;
    if (!tt_cuda_enter(event->device, &scope)) {
        tt_cuda_api.cuEventDestroy_v2(event->event);
        tt_cuda_leave(&scope);
    }
    free(event);
}

void tt_cuda_record(CudaEvent *event, void *stream, Arena *arena)
{
    CudaScope scope;
    tt_cuda_enter_or_raise(event->device, &scope, arena);
    CUresult error = tt_cuda_api.cuEventRecord(event->event, stream);
    tt_cuda_leave(&scope);
    if (error)
        tt_cuda_raise(arena, error, "recording an event");
}

double tt_cuda_milliseconds(CudaEvent *start, CudaEvent *end, Arena *arena)
{
    float milliseconds = 0;
    CudaScope scope;
    tt_cuda_enter_or_raise(end->device, &scope, arena);
    CUresult error = tt_cuda_api.cuEventSynchronize(end->event);
    if (!error)
        error = tt_cuda_api.cuEventElapsedTime(&milliseconds, start->event, end->event);
    tt_cuda_leave(&scope);
    if (error)
        tt_cuda_raise(arena, error, "timing with events");
    return milliseconds;
}

CudaMemory *tt_cuda_allocate(int device, size_t bytes, Arena *arena)
{
    CudaScope scope;
    tt_cuda_enter_or_raise(device, &scope, arena);
    CudaMemory *memory = calloc(1, sizeof *memory);
    CUresult error = memory ? tt_cuda_api.cuMemAlloc_v2(&memory->address, bytes) : CUDA_SUCCESS;
    tt_cuda_leave(&scope);
    if (!memory)
        out_of_memory();
    memory->bytes = bytes;
    memory->device = device;
    if (error) {
        free(memory);
        tt_cuda_raise(arena, error, tt_arena_format(arena, "allocating %zu bytes on cuda:%d", bytes, device));
    }
    return memory;
}

void tt_cuda_release_memory(CudaMemory *memory)
{
    CudaScope scope;
    if (!tt_cuda_enter(memory->device, &scope)) {
        tt_cuda_api.cuMemFree_v2(memory->address);
        tt_cuda_leave(&scope);
    }
    free(memory);
}

void tt_cuda_clear(CudaMemory *memory, void *stream, Arena *arena)
{
    CudaScope scope;
    tt_cuda_enter_or_raise(memory->device, &scope, arena);
    CUresult error = tt_cuda_api.cuMemsetD32Async(memory->address, 0, memory->bytes / 4, stream);
    tt_cuda_leave(&scope);
    if (error)
        tt_cuda_raise(arena, error, "clearing memory");
}
