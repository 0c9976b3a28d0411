/* Pieces that are still on their way: until they are linked in, compiling raises. This file goes with the last one. */
#include "python/extension.h"

#define PENDING __attribute__((weak))

PENDING void tt_run_pipeline(Module *module) { (void)module; }

PENDING CpuKernel *tt_cpu_compile(Module *module, const CpuOptions *options, Arena *arena)
{
    (void)module, (void)options, (void)arena;
    tt_unsupported(NULL, "the target 'cpu' is not part of this build");
}

PENDING void tt_cpu_release(CpuKernel *kernel) { (void)kernel; }

PENDING const char *tt_cpu_text(CpuKernel *kernel, const char *what)
{
    (void)kernel, (void)what;
    return NULL;
}

PENDING const char *tt_cpu_launch(CpuKernel *kernel, const uint64_t *args, const int32_t grid[3],
                                  Arena *arena)
{
    (void)kernel, (void)args, (void)grid, (void)arena;
    return "the target 'cpu' is not part of this build";
}
