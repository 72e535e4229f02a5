// The smallest program that needs everything: HIP headers, device libraries, lld, libamdhip64.
#include <hip/hip_runtime.h>

__global__ void probe(float *out, float value) { out[threadIdx.x] = sinf(value) + out[blockIdx.x]; }

int main() {
    float *out = nullptr;
    if (hipMalloc(reinterpret_cast<void **>(&out), 64 * sizeof(float)) != hipSuccess) return 1;
    probe<<<1, 64>>>(out, 1.0f);
    return hipFree(out) != hipSuccess;
}
