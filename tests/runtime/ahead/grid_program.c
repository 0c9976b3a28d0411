/* Launches a product that was compiled with its grid, by the names that the tools of the public API give it, and shows
 * what is returned and which calls the driver gets. Loads all of it first if there is an argument. */
#include <cuda.h>

#include "product.h"

#include <stdio.h>

const char *fake_log(void);
void fake_set_watched_parameter(int number);

int main(int count, char **arguments)
{
    CUcontext context;
    CUdeviceptr memory;
    (void)arguments;
    if (cuInit(0) || cuDevicePrimaryCtxRetain(&context, 0) || cuCtxSetCurrent(context) || cuMemAlloc(&memory, 4096))
        return 1;
    if (count > 1)
        load_matmul();
    fake_set_watched_parameter(4);
    printf("%d algorithms\n", matmul_get_num_algos());
    printf("%d\n", matmul_default(NULL, memory, memory, memory, 64, 96, 32, 1));
    printf("%d\n", matmul(NULL, memory, memory, memory, 64, 64, 32, 1, 0));
    printf("%d\n", matmul((CUstream)1, memory, memory, memory, 60, 50, 32, 1, 0));
    printf("%d\n", matmul(NULL, memory, memory, memory, 60, 50, 32, 1, 1));
    printf("%d\n", matmul_64x32x32_warps2xstages3(NULL, memory, memory, memory, 0, 50, 32, 1));
    printf("%d\n", matmul(NULL, memory, memory, memory, 64, 64, 32, 2, 0));
    printf("%d\n", matmul(NULL, memory, memory, memory + 4, 64, 64, 32, 1, 0));
    printf("%d\n", matmul(NULL, memory, memory, memory, 64, 64, 32, 1, 2));
    unload_matmul();
    printf("%s", fake_log());
    return 0;
}
