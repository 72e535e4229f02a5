// Generators of rocRAND on the GPU and on the host give the same numbers.
#include "check.h"
#include <rocrand/rocrand.h>
#include <cstring>
#include <vector>

static const struct { rocrand_rng_type type; const char *name; } kinds[] = {
    {ROCRAND_RNG_PSEUDO_PHILOX4_32_10, "philox"}, {ROCRAND_RNG_PSEUDO_THREEFRY4_32_20, "threefry"}};

int main() {
  const size_t count = 4096;
  unsigned *device;
  DONE(hipMalloc(&device, count * 4));
  for (auto &kind : kinds) {
    std::vector<unsigned> on_device(count), on_host(count);
    rocrand_generator gpu, cpu;
    if (rocrand_create_generator(&gpu, kind.type) || rocrand_create_generator_host(&cpu, kind.type)) return 10;
    if (rocrand_generate(gpu, device, count) || rocrand_generate(cpu, on_host.data(), count)) return 11;
    DONE(hipDeviceSynchronize());
    DONE(hipMemcpy(on_device.data(), device, count * 4, hipMemcpyDeviceToHost));
    judge(on_device == on_host && on_host[0] != on_host[1], kind.name, "numbers differ");
    rocrand_destroy_generator(gpu), rocrand_destroy_generator(cpu);
  }
  return wrong;
}
