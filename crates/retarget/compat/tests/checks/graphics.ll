; Image instructions with and without a sampler, an export; other files add kernels.
declare <4 x float> @llvm.amdgcn.image.sample.2d.v4f32.f32(i32, float, float, <8 x i32>, <4 x i32>, i1, i32, i32)
declare <4 x half> @llvm.amdgcn.image.gather4.2d.v4f16.f32(i32, float, float, <8 x i32>, <4 x i32>, i1, i32, i32)
declare <4 x float> @llvm.amdgcn.image.load.2d.v4f32.i32(i32, i32, i32, <8 x i32>, i32, i32)
declare void @llvm.amdgcn.exp.f32(i32, i32, float, float, float, float, i1, i1)
define amdgpu_kernel void @load(<8 x i32> inreg %r, i32 %x, i32 %y, ptr addrspace(1) %p) {
  %v = call <4 x float> @llvm.amdgcn.image.load.2d.v4f32.i32(i32 15, i32 %x, i32 %y, <8 x i32> %r, i32 0, i32 0)
  store <4 x float> %v, ptr addrspace(1) %p
  ret void
}
