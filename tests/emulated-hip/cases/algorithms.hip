// Algorithms of rocPRIM and rocThrust against the host's own.
#include "check.h"
#include <algorithm>
#include <cstring>
#include <numeric>
#include <rocprim/rocprim.hpp>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sequence.h>
#include <thrust/set_operations.h>
#include <thrust/sort.h>
#include <thrust/transform_reduce.h>
#include <vector>

static const int n = 3000;
static std::vector<unsigned> values(unsigned seed, unsigned limit) {
  std::vector<unsigned> all(n);
  for (unsigned &value : all) value = ((seed = seed * 1664525 + 1013904223) >> 8) % limit;
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

static void rocprim_algorithms() {
  const std::vector<unsigned> in = values(3, 1u << 20), zeros(n);
  unsigned *device = on_device(in), *out = on_device(zeros), *count = on_device(zeros);
  std::vector<unsigned> order(n), expected(n);
  std::iota(order.begin(), order.end(), 0u);
  unsigned *numbers = on_device(order), *moved = on_device(zeros);

  run([&](void *space, size_t &size) { return rocprim::reduce(space, size, device, out, 5u, n, rocprim::plus<unsigned>()); });
  RIGHT(on_host(out, 1)[0] == std::accumulate(in.begin(), in.end(), 5u));
  run([&](void *space, size_t &size) {
    return rocprim::exclusive_scan(space, size, device, out, 7u, n, rocprim::plus<unsigned>());
  });
  std::exclusive_scan(in.begin(), in.end(), expected.begin(), 7u);
  RIGHT(on_host(out, n) == expected);
  run([&](void *space, size_t &size) { return rocprim::radix_sort_pairs(space, size, device, out, numbers, moved, n); });
  std::stable_sort(order.begin(), order.end(), [&](unsigned a, unsigned b) { return in[a] < in[b]; });
  RIGHT(on_host(moved, n) == order);
  run([&](void *space, size_t &size) { return rocprim::merge_sort(space, size, device, out, n); });
  expected = in;
  std::sort(expected.begin(), expected.end());
  RIGHT(on_host(out, n) == expected);
  run([&](void *space, size_t &size) {
    return rocprim::partition(space, size, device, out, count, n, [] __device__(unsigned x) { return x % 5 == 0; });
  });
  RIGHT(on_host(count, 1)[0] == std::count_if(in.begin(), in.end(), [](unsigned x) { return x % 5 == 0; }));
  std::vector<unsigned> few = values(9, 3);
  unsigned *runs = on_device(few);
  run([&](void *space, size_t &size) { return rocprim::run_length_encode(space, size, runs, n, out, moved, count); });
  const size_t kinds = few.size() - std::inner_product(few.begin() + 1, few.end(), few.begin(), size_t(0), std::plus<>(), std::equal_to<>());
  const std::vector<unsigned> lengths = on_host(moved, kinds);
  RIGHT(on_host(count, 1)[0] == kinds && std::accumulate(lengths.begin(), lengths.end(), 0u) == n);
}

struct Square {
  __host__ __device__ unsigned operator()(unsigned x) const { return x * x; }
};

static void thrust_algorithms() {
  const std::vector<unsigned> in = values(11, 500);
  thrust::device_vector<unsigned> device(in.begin(), in.end());
  RIGHT(thrust::transform_reduce(device.begin(), device.end(), Square(), 0u, thrust::plus<unsigned>()) ==
        std::transform_reduce(in.begin(), in.end(), 0u, std::plus<>(), Square()));
  thrust::sort(device.begin(), device.end());
  std::vector<unsigned> sorted = in;
  std::sort(sorted.begin(), sorted.end());
  RIGHT(std::equal(sorted.begin(), sorted.end(), thrust::host_vector<unsigned>(device).begin()));
  thrust::device_vector<unsigned> keys(n), sums(n), ones(n, 1);
  const size_t found = thrust::reduce_by_key(device.begin(), device.end(), ones.begin(), keys.begin(), sums.begin()).first - keys.begin();
  std::vector<unsigned> different = sorted;
  different.erase(std::unique(different.begin(), different.end()), different.end());
  RIGHT(found == different.size() && std::equal(different.begin(), different.end(), thrust::host_vector<unsigned>(keys).begin()));
  thrust::device_vector<unsigned> odd(n), common(n);
  thrust::sequence(odd.begin(), odd.end(), 1u, 2u);
  const size_t shared = thrust::set_intersection(keys.begin(), keys.begin() + found, odd.begin(), odd.end(), common.begin()) - common.begin();
  RIGHT(shared == std::count_if(different.begin(), different.end(), [](unsigned x) { return x % 2 == 1; }));
}

int main() {
  rocprim_algorithms();
  thrust_algorithms();
  return wrong;
}
