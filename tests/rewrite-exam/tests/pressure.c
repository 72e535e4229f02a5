// A kernel whose largest work-group leaves 128 vector registers and that keeps more values than that: the compiler spills,
// and no register is free where its conversions are replaced.
__attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(1024, 1024))) void pressure(volatile float *a, volatile int *b) {
  const unsigned lane = __builtin_amdgcn_workitem_id_x();
  float values[250];
#pragma unroll
  for (int i = 0; i < 250; i++)
    values[i] = a[lane + i * 1024];
#pragma unroll
  for (int i = 0; i < 8; i++)
    b[lane + i * 1024] = __builtin_amdgcn_cvt_pk_fp8_f32_e5m3(values[i * 7], values[i * 11 + 3], 0, 0);
#pragma unroll
  for (int i = 0; i < 250; i++)
    a[lane + i * 1024] = values[i] * values[249 - i];
}
