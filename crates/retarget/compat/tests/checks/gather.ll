define amdgpu_kernel void @gather(<8 x i32> inreg %r, <4 x i32> inreg %s, float %x, float %y, ptr addrspace(1) %p) {
  %v = call <4 x half> @llvm.amdgcn.image.gather4.2d.v4f16.f32(i32 1, float %x, float %y, <8 x i32> %r, <4 x i32> %s, i1 0, i32 0, i32 0)
  store <4 x half> %v, ptr addrspace(1) %p
  ret void
}
