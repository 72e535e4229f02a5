// Algorithms of hipCUB against the host's own.
#include "check.h"
#include <algorithm>
#include <hipcub/hipcub.hpp>
#include <numeric>
#include <vector>

static const int n = 5000;
static std::vector<unsigned> values(unsigned seed) {
  std::vector<unsigned> all(n);
  for (unsigned &value : all) value = (seed = seed * 1664525 + 1013904223) >> 8;
  return all;
}
template <class T> static T *on_device(const std::vector<T> &host) {
  T *device;
  DONE(hipMalloc(&device, host.size() * sizeof(T)));
  DONE(hipMemcpy(device, host.data(), host.size() * sizeof(T), hipMemcpyHostToDevice));
  return device;
}
template <class T> static std::vector<T> on_host(const T *device, size_t count) {
  std::vector<T> host(count);
  DONE(hipMemcpy(host.data(), device, count * sizeof(T), hipMemcpyDeviceToHost));
  return host;
}
// Asks an algorithm for the size of its scratch memory, then runs it.
template <class F> static void run(F algorithm) {
  size_t size = 0;
  void *space;
  DONE(algorithm((void *)nullptr, size));
  DONE(hipMalloc(&space, size + 1));
  DONE(algorithm(space, size));
  DONE(hipDeviceSynchronize());
  DONE(hipFree(space));
}

int main() {
  const std::vector<unsigned> in = values(7);
  const std::vector<unsigned> zeros(n);
  unsigned *device = on_device(in), *out = on_device(zeros), *keys = on_device(zeros), *count = on_device(zeros);

  run([&](void *space, size_t &size) { return hipcub::DeviceReduce::Sum(space, size, device, out, n); });
  RIGHT(on_host(out, 1)[0] == std::accumulate(in.begin(), in.end(), 0u));
  run([&](void *space, size_t &size) { return hipcub::DeviceReduce::Max(space, size, device, out, n); });
  RIGHT(on_host(out, 1)[0] == *std::max_element(in.begin(), in.end()));

  std::vector<unsigned> expected(n);
  std::partial_sum(in.begin(), in.end(), expected.begin());
  run([&](void *space, size_t &size) { return hipcub::DeviceScan::InclusiveSum(space, size, device, out, n); });
  RIGHT(on_host(out, n) == expected);

  expected = in;
  std::sort(expected.begin(), expected.end());
  run([&](void *space, size_t &size) { return hipcub::DeviceRadixSort::SortKeys(space, size, device, keys, n); });
  RIGHT(on_host(keys, n) == expected);

  expected.clear();
  std::copy_if(in.begin(), in.end(), std::back_inserter(expected), [](unsigned value) { return value % 3 == 0; });
  auto third = [] __host__ __device__(unsigned value) { return value % 3 == 0; };
  run([&](void *space, size_t &size) { return hipcub::DeviceSelect::If(space, size, device, out, count, n, third); });
  RIGHT(on_host(count, 1)[0] == expected.size() && on_host(out, expected.size()) == expected);

  std::vector<int> bins(16);
  for (unsigned value : in) bins[(value & 0xffffff) * 16ull >> 24]++;
  int *histogram = on_device(std::vector<int>(16));
  run([&](void *space, size_t &size) {
    return hipcub::DeviceHistogram::HistogramEven(space, size, device, histogram, 17, 0u, 1u << 24, n);
  });
  RIGHT(on_host(histogram, 16) == bins);
  return wrong;
}
