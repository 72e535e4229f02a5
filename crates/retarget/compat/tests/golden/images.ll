; Images: sampled, gathered, loaded, stored and changed atomically.
declare <4 x float> @llvm.amdgcn.image.sample.2d.v4f32.f32(i32, float, float, <8 x i32>, <4 x i32>, i1, i32, i32)
declare <4 x float> @llvm.amdgcn.image.sample.l.2d.v4f32.f32(i32, float, float, float, <8 x i32>, <4 x i32>, i1, i32, i32)
declare <4 x float> @llvm.amdgcn.image.gather4.2d.v4f32.f32(i32, float, float, <8 x i32>, <4 x i32>, i1, i32, i32)
declare <4 x float> @llvm.amdgcn.image.load.2d.v4f32.i32(i32, i32, i32, <8 x i32>, i32, i32)
declare void @llvm.amdgcn.image.store.3d.v4f32.i32(<4 x float>, i32, i32, i32, i32, <8 x i32>, i32, i32)
declare i32 @llvm.amdgcn.image.atomic.add.2d.i32.i32(i32, i32, i32, <8 x i32>, i32, i32)
define amdgpu_kernel void @sample(<8 x i32> inreg %r, <4 x i32> inreg %s, float %x, float %y, ptr addrspace(1) %p) {
  %a = call <4 x float> @llvm.amdgcn.image.sample.2d.v4f32.f32(i32 15, float %x, float %y, <8 x i32> %r, <4 x i32> %s, i1 0, i32 0, i32 0)
  %b = call <4 x float> @llvm.amdgcn.image.sample.l.2d.v4f32.f32(i32 15, float %x, float %y, float 1.0, <8 x i32> %r, <4 x i32> %s, i1 0, i32 0, i32 0)
  %c = fadd <4 x float> %a, %b
  store <4 x float> %c, ptr addrspace(1) %p
  ret void
}
define amdgpu_kernel void @gather(<8 x i32> inreg %r, <4 x i32> inreg %s, float %x, float %y, ptr addrspace(1) %p) {
  %a = call <4 x float> @llvm.amdgcn.image.gather4.2d.v4f32.f32(i32 1, float %x, float %y, <8 x i32> %r, <4 x i32> %s, i1 0, i32 0, i32 0)
  store <4 x float> %a, ptr addrspace(1) %p
  ret void
}
define amdgpu_kernel void @copy(<8 x i32> inreg %r, <8 x i32> inreg %t, i32 %x, i32 %y, ptr addrspace(1) %p) {
  %a = call <4 x float> @llvm.amdgcn.image.load.2d.v4f32.i32(i32 15, i32 %x, i32 %y, <8 x i32> %r, i32 0, i32 0)
  call void @llvm.amdgcn.image.store.3d.v4f32.i32(<4 x float> %a, i32 15, i32 %x, i32 %y, i32 %y, <8 x i32> %t, i32 0, i32 0)
  %b = call i32 @llvm.amdgcn.image.atomic.add.2d.i32.i32(i32 1, i32 %x, i32 %y, <8 x i32> %r, i32 0, i32 0)
  store i32 %b, ptr addrspace(1) %p
  ret void
}
