// Calls, recursion, loops of all sizes, a switch, tables, globals, LDS and atomics.
typedef float v4 __attribute__((ext_vector_type(4)));
__global int counter;
__constant float tab[16] = {1, 2, 3, 4};
__global float state[8] = {1.5f};

__attribute__((noinline)) v4 mix4(v4 a, v4 b, int k) {
  for (int i = 0; i < k; i++) {
    a = a * b + (v4)(i);
    if (a.x > 100.f) {
      b = -b;
      a.y += b.z;
    } else if (a.y < 3.f) {
      a.z *= 2.f;
    }
  }
  return a;
}

__attribute__((noinline)) float rec(float x, int d) {
  if (d <= 0) return x;
  return rec(x * 0.5f, d - 1) + rec(x + 1.f, d - 2);
}

__attribute__((noinline)) float f1(float x) { return x + 1.f; }
__attribute__((noinline)) float f2(float x) { return x * 2.f; }

kernel void k1(global v4 *p, int n, local float *l) {
  int i = (int)(__builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x());
  l[i & 63] = p[i].x;
  __builtin_amdgcn_s_barrier();
  v4 r = mix4(p[i], p[i + 1], n);
  r.x += l[(i + 3) & 63] + tab[i & 15] + state[i & 7];
  p[i] = r;
  __atomic_fetch_add(&counter, 1, __ATOMIC_RELAXED);
}

kernel void k2(global float *p, int n) {
  float s = 0;
  switch (n & 15) {
  case 0: s = p[0]; break;
  case 1: s = p[3] * 2; break;
  case 2: s = rec(p[1], 3); break;
  case 3: s = p[9] - 4; break;
  case 4: s = __builtin_sqrtf(p[4]); break;
  case 7: s = p[5] / p[6]; break;
  default: s = f1(p[7]);
  }
  for (int i = 0; i < n; i++)
    for (int j = 0; j < i; j++) {
      s += p[i] * p[j];
      if (s > 1e6f) break;
    }
  p[n] = s + f2(s);
}

kernel void k3(global int *a, global int *b, int n) {
  for (int i = n; i > 0; --i) {
    int x = a[i];
    while (x != b[i]) {
      x = x * 3 + 1;
      if (x & 1) x ^= b[i];
      a[i] = x;
    }
  }
}
