#include <hip/hip_runtime.h>
#include <cstdio>

typedef int Bytes64 __attribute__((ext_vector_type(16)));
typedef float Sums __attribute__((ext_vector_type(8)));

// C += A * B, for 16 rows and columns of 8-bit floats, 128 of them in each dot product: one instruction of gfx1250, which
// its first stepping does not have.
__global__ void product(const Bytes64 *a, const Bytes64 *b, Sums *c) {
  const unsigned lane = threadIdx.x;
  c[lane] = __builtin_amdgcn_wmma_f32_16x16x128_fp8_fp8(a[lane], b[lane], 0, c[lane], false, false);
}

// Nothing that the first stepping has otherwise.
__global__ void neighbours(float *data) {
  __shared__ float part[256];
  part[threadIdx.x] = data[threadIdx.x];
  __syncthreads();
  data[threadIdx.x] = part[threadIdx.x] + part[(threadIdx.x + 1) & 255];
}

int main() {
  char *memory = nullptr;
  if (const hipError_t status = hipMalloc(reinterpret_cast<void **>(&memory), 1 << 16)) {
    std::printf("product: %s\n", hipGetErrorString(status));
    return 1;
  }
  product<<<1, 32>>>(reinterpret_cast<Bytes64 *>(memory), reinterpret_cast<Bytes64 *>(memory + 4096),
                     reinterpret_cast<Sums *>(memory + 8192));
  neighbours<<<1, 256>>>(reinterpret_cast<float *>(memory));
  return hipDeviceSynchronize() == hipSuccess && hipFree(memory) == hipSuccess ? 0 : 1;
}
