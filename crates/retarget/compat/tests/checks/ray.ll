declare <4 x i32> @llvm.amdgcn.image.bvh.intersect.ray.i32.v3f32(i32, float, <3 x float>, <3 x float>, <3 x float>, <4 x i32>)
define amdgpu_kernel void @ray(i32 %n, float %e, <3 x float> %o, <3 x float> %d, <3 x float> %i, <4 x i32> inreg %t, ptr addrspace(1) %p) {
  %v = call <4 x i32> @llvm.amdgcn.image.bvh.intersect.ray.i32.v3f32(i32 %n, float %e, <3 x float> %o, <3 x float> %d, <3 x float> %i, <4 x i32> %t)
  store <4 x i32> %v, ptr addrspace(1) %p
  ret void
}
