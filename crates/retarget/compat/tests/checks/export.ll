define amdgpu_kernel void @export(float %x) {
  call void @llvm.amdgcn.exp.f32(i32 0, i32 15, float %x, float %x, float %x, float %x, i1 1, i1 0)
  ret void
}
