// Device functions for other code objects.
#define DEVICE __attribute__((device, noinline))
enum { WORDS = 120 };
extern "C" DEVICE unsigned twist(unsigned x) { return x * 2654435761u ^ x >> 7; }
extern "C" DEVICE unsigned mix(const unsigned *words, unsigned n) {
  unsigned a[WORDS], sum = n;
#pragma unroll
  for (int i = 0; i < WORDS; i++) a[i] = words[i] * n;
#pragma unroll
  for (int i = 0; i < WORDS; i++) sum = sum * 31 + (a[i] ^ a[WORDS - 1 - i]) + a[i * 7 % WORDS];
#pragma unroll
  for (int i = 0; i < WORDS; i++) sum = sum * (a[i] | 1) + a[i * 13 % WORDS];
  return twist(sum);
}
