// MIOpen: layers whose kernels it compiles when they are not in its database.
#include <cstdio>
#include <hip/hip_runtime_api.h>
#include <miopen/miopen.h>

enum { BYTES = 16 << 20 };
static unsigned calls, refused;
static void count(miopenStatus_t status) { calls++, refused += status != miopenStatusSuccess; }

static int use_device(int device) {
  float one = 1, zero = 0;
  void *x, *y;
  miopenHandle_t handle;
  miopenTensorDescriptor_t tensor;
  miopenActivationDescriptor_t activation;
  miopenPoolingDescriptor_t pooling;
  if (hipSetDevice(device) || hipMalloc(&x, BYTES) || hipMalloc(&y, BYTES) || hipMemset(x, 0, BYTES)) return 1;
  if (miopenCreate(&handle) || miopenCreateTensorDescriptor(&tensor) || miopenCreateActivationDescriptor(&activation)) return 2;
  if (miopenCreatePoolingDescriptor(&pooling)) return 2;
  for (int size : {8, 32}) {
    count(miopenSet4dTensorDescriptor(tensor, miopenFloat, 2, 8, size, size));
    for (auto mode : {miopenActivationRELU, miopenActivationTANH}) {
      count(miopenSetActivationDescriptor(activation, mode, 1, 1, 1));
      count(miopenActivationForward(handle, activation, &one, tensor, x, &zero, tensor, y));
    }
    count(miopenSoftmaxForward(handle, &one, tensor, x, &zero, tensor, y));
    count(miopenSet2dPoolingDescriptor(pooling, miopenPoolingMax, 1, 1, 0, 0, 1, 1));
    count(miopenPoolingForward(handle, pooling, &one, tensor, x, &zero, tensor, y, false, nullptr, 0));
    count(miopenScaleTensor(handle, tensor, y, &one));
  }
  std::printf("%u calls, %u refused\n", calls, refused);
  return miopenDestroy(handle) || hipDeviceSynchronize() ? 4 : 0;
}

int main() {
  int devices;
  if (hipGetDeviceCount(&devices)) return 10;
  for (int device = 0; device < devices; device++)
    if (int failure = use_device(device)) return failure;
  return 0;
}
