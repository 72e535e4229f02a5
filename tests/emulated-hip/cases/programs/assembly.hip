// Inline assembly and builtins of each family of GPUs.
#include "check.h"
__global__ void asm_lines(int *o, const int *in) {
  int t = threadIdx.x, x = in[t], r = 0, s = 0;
#if defined(__HIP_DEVICE_COMPILE__)
  asm volatile("v_xor_b32 %0, %1, %2" : "=v"(r) : "v"(x), "v"(t));
  asm volatile("v_lshl_add_u32 %0, %1, 3, %2" : "=v"(s) : "v"(r), "v"(x));
  o[t * 8] = s;
  int u;
  asm volatile("s_mov_b32 %0, 0x1234" : "=s"(u));
  o[t * 8 + 1] = u;
  asm volatile("v_mov_b32 %0, %1\n\tv_add_f32 %0, %0, %0" : "=&v"(r) : "v"(__float_as_int(t * 0.5f)));
  o[t * 8 + 2] = (int)__int_as_float(r);
  __shared__ int l[64];
  l[t] = x;
  __builtin_amdgcn_s_barrier();
  o[t * 8 + 3] = l[63 - t];
  o[t * 8 + 4] = __builtin_amdgcn_ubfe((unsigned)x, 4, 9) + __builtin_amdgcn_sbfe(x, 8, 8);
  o[t * 8 + 5] = __builtin_amdgcn_perm(x, t, 0x03020504);
  o[t * 8 + 6] = (int)(__builtin_amdgcn_fmed3f((float)t, 10.f, 20.f) + __builtin_amdgcn_cvt_off_f32_i4(3) * 16);
  o[t * 8 + 7] = __builtin_amdgcn_alignbit(x, t, 5) + __builtin_amdgcn_msad_u8(x, t, 3);
#endif
}
int main() {
  int in[64], r[512], *di, *d;
  for (int t = 0; t < 64; t++) in[t] = t * 0x01234567;
  DONE(hipMalloc(&di, 256));
  DONE(hipMalloc(&d, 2048));
  DONE(hipMemcpy(di, in, 256, hipMemcpyHostToDevice));
  asm_lines<<<1, 64>>>(d, di);
  DONE(hipMemcpy(r, d, 2048, hipMemcpyDeviceToHost));
  bool ok[8];
  for (bool &b : ok) b = true;
  for (int t = 0; t < 64; t++) {
    unsigned x = in[t];
    unsigned long long both = (unsigned long long)x << 32 | (unsigned)t;
    ok[0] &= r[t * 8] == (int)(((x ^ t) << 3) + x), ok[1] &= r[t * 8 + 1] == 0x1234, ok[2] &= r[t * 8 + 2] == t, ok[3] &= r[t * 8 + 3] == in[63 - t];
    ok[4] &= r[t * 8 + 4] == (int)((x >> 4 & 511) + (signed char)(x >> 8));
    unsigned perm = 0;
    for (int i = 0; i < 4; i++) perm |= (unsigned)(both >> (0x03020504 >> 8 * i & 7) * 8 & 255) << 8 * i;
    ok[5] &= r[t * 8 + 5] == (int)perm;
    ok[6] &= r[t * 8 + 6] == (t < 10 ? 10 : t > 20 ? 20 : t) + 3;
    unsigned sad = 3;
    for (int i = 0; i < 32; i += 8) { int a = x >> i & 255, b = t >> i & 255; if (b) sad += a > b ? a - b : b - a; }
    ok[7] &= r[t * 8 + 7] == (int)((unsigned)(both >> 5) + sad);
  }
  const char *names[] = {"xor, shift", "literal", "floats", "barrier", "fields", "perm", "median", "align, sad"};
  for (int i = 0; i < 8; i++) judge(ok[i], names[i], "differs");
  return wrong;
}
