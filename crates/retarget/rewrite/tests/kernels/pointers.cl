// Function pointers in tables, arguments and data; LDS, constants, globals that others see.
#pragma OPENCL EXTENSION __cl_clang_function_pointers : enable
typedef float (*op)(float, float);
__attribute__((noinline)) static float add(float a, float b) { return a + b; }
__attribute__((noinline)) static float mul(float a, float b) { return a * b; }
__attribute__((noinline)) float out(float a, float b) { return a - b * 3.f; }
static __constant op table[4] = {add, mul, out, add};
__global op chosen = mul;
static __global int hidden[40];
__global int seen[3] = {1, 2, 3};
__constant int numbers[5] = {5, 4, 3, 2, 1};
__constant int *__constant inside = &numbers[2];

__attribute__((noinline)) float apply(op f, float a, float b) { return f(a, b) + f(b, a); }
__attribute__((noinline)) static int bump(int i) { hidden[i & 31] += numbers[i & 3]; return hidden[(i & 31) + 1]; }

kernel void direct(global float *p, int n) {
  local float l[256];
  local int k[64];
  int i = __builtin_amdgcn_workitem_id_x();
  l[i & 255] = p[i];
  k[i & 63] = n;
  __builtin_amdgcn_s_barrier();
  p[i] = apply(table[n & 3], l[(i + 1) & 255], (float)k[i & 31]) + (float)bump(n);
  p[i + 1] = chosen(p[i], 2.f) + (float)seen[n & 1] + (float)*inside;
}

kernel void calls(global int *p, int n) {
  for (int i = 0; i < n; i++) {
    p[i] += bump(i);
    if (p[i] > 100 && n > 5)
      p[i] -= seen[i & 1];
  }
}

kernel void data(global int *p, global float *q, int n) {
  op f = n > 3 ? add : out;
  hidden[n] = p[n];
  seen[1] = hidden[3] + hidden[n - 1];
  q[0] = f(q[1], q[2]);
  chosen = f;
}
