/* Calls softmax and a matrix product without Python, and checks their results. With -DON_GPU on the first CUDA device,
 * through the driver alone; a driver that runs nothing is told by an argument, and then only its calls are shown. */
#include "matmul.h"
#include "softmax.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef ON_GPU
#include <dlfcn.h>
typedef uint64_t Array;
static void *driver;
#define CALL(type, name, ...) ((int(*) type)dlsym(driver, name))(__VA_ARGS__)

static int begin(void)
{
    void *context;
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    return !driver || CALL((unsigned), "cuInit", 0) ||
           CALL((void **, int), "cuDevicePrimaryCtxRetain", &context, 0) ||
           CALL((void *), "cuCtxSetCurrent", context);
}

static Array array(const float *from, size_t bytes)
{
    Array address = 0;
    if (CALL((uint64_t *, size_t), "cuMemAlloc_v2", &address, bytes) ||
        (from && CALL((uint64_t, const void *, size_t), "cuMemcpyHtoD_v2", address, from, bytes)))
        exit(2);
    return address;
}

static const float *read(Array address, size_t bytes)
{
    float *data = malloc(bytes);
    if (CALL((void *, uint64_t, size_t), "cuMemcpyDtoH_v2", data, address, bytes))
        exit(3);
    return data;
}
#define STREAM NULL,
#else
typedef float *Array;
static int begin(void) { return 0; }
static Array array(const float *from, size_t bytes)
{
    Array data = aligned_alloc(64, (bytes + 127) / 64 * 64);
    return from ? memcpy(data, from, bytes) : memset(data, 0, bytes);
}
static const float *read(Array data, size_t bytes)
{
    (void)bytes;
    return data;
}
#define STREAM
#endif

static float *numbers(int count)
{
    float *data = malloc(sizeof(float) * (size_t)count);
    unsigned state = 1;
    for (int i = 0; i < count; i++)
        data[i] = (float)((state = state * 1664525u + 1013904223u) >> 8) / (float)(1 << 23) - 1.0f;
    return data;
}

static double check_softmax(int rows, int columns, int *error)
{
    size_t bytes = sizeof(float) * (size_t)(rows * columns);
    const float *x = numbers(rows * columns);
    Array out = array(NULL, bytes), in = array(x, bytes);
    *error = softmax(STREAM(uint32_t) rows, 1, 1, out, in, columns);
    const float *got = read(out, bytes);
    double worst = 0;
    for (int i = 0; i < rows; i++) {
        double sum = 0;
        for (int j = 0; j < columns; j++)
            sum += exp(x[i * columns + j]);
        for (int j = 0; j < columns; j++)
            worst = fmax(worst, fabs(got[i * columns + j] - exp(x[i * columns + j]) / sum));
    }
    return worst;
}

static double check_matmul(int m, int n, int k, int *error)
{
    const float *a = numbers(m * k), *b = numbers(k * n);
    size_t bytes = sizeof(float) * (size_t)(m * n);
    Array c = array(NULL, bytes), x = array(a, sizeof(float) * (size_t)(m * k)),
          y = array(b, sizeof(float) * (size_t)(k * n));
    *error = matmul(STREAM(uint32_t)((m + 31) / 32), (uint32_t)((n + 31) / 32), 1, c, x, y, m, n, k, 1);
    const float *got = read(c, bytes);
    double worst = 0;
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int l = 0; l < k; l++)
                sum += (double)a[i * k + l] * b[l * n + j];
            worst = fmax(worst, fabs(got[i * n + j] - sum));
        }
    return worst;
}

int main(int count, char **arguments)
{
    (void)arguments;
    int errors[4];
    if (begin())
        return printf("no CUDA device\n"), 4;
    double worst[4] = {check_softmax(7, 512, &errors[0]), check_softmax(5, 77, &errors[1]),
                       check_matmul(64, 96, 128, &errors[2]), check_matmul(37, 51, 65, &errors[3])};
#ifdef ON_GPU
    if (count > 1)
        return printf("%s", ((const char *(*)(void))dlsym(driver, "fake_log"))()), 0;
#endif
    (void)count;
    int bad = 0;
    for (int i = 0; i < 4; i++) {
        printf("%d %g\n", errors[i], worst[i]);
        bad |= errors[i] || !(worst[i] < 1e-4);
    }
    return bad;
}
