define amdgpu_kernel void @sample(<8 x i32> inreg %r, <4 x i32> inreg %s, float %x, float %y, ptr addrspace(1) %p) {
  %v = call <4 x float> @llvm.amdgcn.image.sample.2d.v4f32.f32(i32 15, float %x, float %y, <8 x i32> %r, <4 x i32> %s, i1 0, i32 0, i32 0)
  store <4 x float> %v, ptr addrspace(1) %p
  ret void
}
