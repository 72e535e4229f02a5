// hipRAND's device functions: each thread draws numbers with its own sequence, and the host looks at their mean.
#include <hip/hip_runtime.h>
#include <hiprand/hiprand_kernel.h>

#include <cstdio>

constexpr int threads = 256;
constexpr int draws = 64;

__global__ void draw(float* sums, unsigned* bits)
{
    hiprandStatePhilox4_32_10_t state;
    hiprand_init(20261126, threadIdx.x, 0, &state);
    float sum = 0;
    unsigned all = 0;
    for(int i = 0; i < draws; i++)
    {
        sum += hiprand_uniform(&state);
        all ^= hiprand(&state);
    }
    sums[threadIdx.x] = sum;
    bits[threadIdx.x] = all;
}

int main()
{
    float* sums;
    unsigned* bits;
    if(hipMallocManaged(&sums, threads * sizeof *sums) != hipSuccess
       || hipMallocManaged(&bits, threads * sizeof *bits) != hipSuccess)
        return 2;
    draw<<<1, threads>>>(sums, bits);
    if(hipDeviceSynchronize() != hipSuccess)
        return 3;
    double mean = 0;
    unsigned all = 0;
    for(int i = 0; i < threads; i++)
    {
        mean += sums[i] / (double)(threads * draws);
        all ^= bits[i] * (2u * i + 1u);
    }
    std::printf("mean %.6f, bits %08x\n", mean, all);
    return mean > 0.49 && mean < 0.51 ? 0 : 1;
}
