// Kernels that use up registers, scratch pads and waves.
#define KERNEL extern "C" __attribute__((global)) void
#define ID (__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x())
#define GROUP(size) __attribute__((amdgpu_flat_work_group_size(1, size)))
KERNEL GROUP(1024) small(const float *x, float *y) { y[ID] += x[ID]; }
#ifdef REGISTERS
KERNEL GROUP(REGISTERS) large(const float *x, float *y) {
  asm volatile("" ::: HIGHEST);
  y[ID] += x[ID];
}
#endif
#ifdef LOOPING
KERNEL looping() { asm volatile("0: s_add_u32 s4, s0, s1\n s_add_u32 s4, s4, s2\n s_cbranch_scc1 0b"); }
#endif
#ifdef BYTES
KERNEL GROUP(64) pad(const float *x, float *y) {
  __attribute__((shared)) static float pad[BYTES / 4];
  pad[__builtin_amdgcn_workitem_id_x()] = x[ID];
  __builtin_amdgcn_s_barrier();
  y[ID] = pad[(unsigned)x[ID] % (BYTES / 4)];
}
#endif
