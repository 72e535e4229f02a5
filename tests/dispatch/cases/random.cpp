// rocRAND's generators: the host chooses the configuration of the kernels by the device's name.
#include <cstdio>
#include <hip/hip_runtime.h>
#include <rocrand/rocrand.h>

static const rocrand_rng_type types[] = {
    ROCRAND_RNG_PSEUDO_XORWOW, ROCRAND_RNG_PSEUDO_MRG32K3A, ROCRAND_RNG_PSEUDO_PHILOX4_32_10, ROCRAND_RNG_PSEUDO_MTGP32,
    ROCRAND_RNG_PSEUDO_MRG31K3P, ROCRAND_RNG_PSEUDO_LFSR113, ROCRAND_RNG_PSEUDO_MT19937, ROCRAND_RNG_PSEUDO_THREEFRY4_32_20,
    ROCRAND_RNG_QUASI_SOBOL32, ROCRAND_RNG_QUASI_SCRAMBLED_SOBOL64};
enum { COUNT = 1 << 16 };

static int use_device(int device) {
  unsigned *data;
  if (hipSetDevice(device) || hipMalloc(&data, COUNT * 8)) return 1;
  for (rocrand_rng_type type : types) {
    rocrand_generator generator;
    if (rocrand_create_generator(&generator, type)) return 2;
    bool is_64 = type == ROCRAND_RNG_QUASI_SCRAMBLED_SOBOL64;
    int numbers = is_64 ? rocrand_generate_long_long(generator, (unsigned long long *)data, COUNT)
                        : rocrand_generate(generator, data, COUNT);
    int uniform = rocrand_generate_uniform(generator, (float *)data, COUNT);
    int normal = rocrand_generate_normal(generator, (float *)data, COUNT, 0, 1);
    std::printf("%d: %d %d %d\n", type, numbers, uniform, normal);
    if (rocrand_destroy_generator(generator)) return 3;
  }
  return hipDeviceSynchronize() ? 4 : 0;
}

int main() {
  int devices;
  if (hipGetDeviceCount(&devices)) return 10;
  for (int device = 0; device < devices; device++)
    if (int failure = use_device(device)) return failure;
  return 0;
}
