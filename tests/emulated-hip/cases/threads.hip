// Six threads on streams of their own launch 3,000 kernels each; every result is checked.
#include <atomic>
#include <cstdio>
#include <hip/hip_runtime.h>
#include <thread>
#include <vector>

__global__ void step(unsigned *data, unsigned by) { data[threadIdx.x] = data[threadIdx.x] * 3 + by + threadIdx.x; }

static int work(unsigned number) {
  unsigned *data, numbers[64], expected[64] = {};
  hipStream_t stream;
  if (hipStreamCreate(&stream) || hipMalloc(&data, 256) || hipMemsetAsync(data, 0, 256, stream)) return 1;
  for (unsigned turn = 0; turn < 3000; turn++) {
    step<<<1, 64, 0, stream>>>(data, turn + number);
    for (unsigned i = 0; i < 64; i++) expected[i] = expected[i] * 3 + turn + number + i;
    if (turn % 100 != 99) continue;
    if (hipMemcpyAsync(numbers, data, 256, hipMemcpyDeviceToHost, stream) || hipStreamSynchronize(stream)) return 2;
    for (unsigned i = 0; i < 64; i++) if (numbers[i] != expected[i]) return 3;
  }
  return hipStreamDestroy(stream) || hipFree(data) ? 4 : 0;
}

int main() {
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (unsigned number = 0; number < 6; number++)
    threads.emplace_back([&, number] { if (int code = work(number)) failed = code; });
  for (std::thread &thread : threads) thread.join();
  std::printf("right: 18000 launches\n");
  return failed;
}
