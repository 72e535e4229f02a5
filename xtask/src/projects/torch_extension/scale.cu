// A small extension for PyTorch, as in its tutorial: a kernel for each type of floating-point numbers.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <cuda_runtime.h>

template <typename T>
__global__ void scale_kernel(T* values, T factor, int64_t count) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < count)
    values[at] *= factor;
}

void scale(at::Tensor values, double factor, cudaStream_t stream) {
  const int64_t count = values.numel();
  AT_DISPATCH_FLOATING_TYPES(values.scalar_type(), "scale", [&] {
    scale_kernel<scalar_t><<<(count + 255) / 256, 256, 0, stream>>>(
        values.data_ptr<scalar_t>(), static_cast<scalar_t>(factor), count);
  });
}
