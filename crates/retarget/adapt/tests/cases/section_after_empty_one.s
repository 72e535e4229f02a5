// An empty section of code has the same offset in the file as the next one, which holds the kernel.
	.amdgcn_target "amdgcn-amd-amdhsa--gfx1250"
	.amdhsa_code_object_version 6
	.section .text.first,"ax",@progbits
	.p2align 8
	.section .text.kernel,"ax",@progbits
	.globl k
	.p2align 8
	.type k,@function
k:
	v_wmma_f32_16x16x128_fp8_fp8 v[32:39], v[0:15], v[16:31], v[32:39]
	s_endpgm
	.size k, .-k
	.section .rodata,"a",@progbits
	.p2align 6
	.amdhsa_kernel k
		.amdhsa_next_free_vgpr 64
		.amdhsa_next_free_sgpr 16
	.end_amdhsa_kernel
	.amdgpu_metadata
---
amdhsa.kernels:
  - .group_segment_fixed_size: 0
    .kernarg_segment_align: 8
    .kernarg_segment_size: 0
    .max_flat_workgroup_size: 256
    .name: k
    .private_segment_fixed_size: 0
    .sgpr_count: 16
    .symbol: k.kd
    .vgpr_count: 64
    .wavefront_size: 32
amdhsa.target: amdgcn-amd-amdhsa--gfx1250
amdhsa.version:
  - 1
  - 2
...
	.end_amdgpu_metadata
