//! The direct launcher: a kernel that writes into its own code, one that must be started in clusters, and the barrier of a
//! cluster of one work-group.

use hotswap_emulator::{
    DirectLaunch, EmulatedDevice, FaultKind, LaunchError, LoadedObject, POISON_WORD, PlantedFault, SparseMemory,
    launch_kernel, read_back,
};
use hotswap_userland::Workbench;

/// Stores the literal of an instruction, and replaces it.
const REWRITING: &str = "
s_load_dwordx2 s[4:5], s[0:1], 0x0
s_getpc_b64 s[6:7]
v_mov_b32 v0, 0
v_mov_b32 v2, 0x54321
v_mov_b32 v1, 0x12345
s_waitcnt lgkmcnt(0)
global_store_dword v0, v1, s[4:5]
global_store_dword v0, v2, s[6:7] offset:16
s_endpgm
";

/// Stores a register that nothing has written.
const UNWRITTEN: &str = "
s_load_dwordx2 s[4:5], s[0:1], 0x0
v_mov_b32 v0, 0
v_mov_b32 v1, WORD
s_waitcnt lgkmcnt(0)
global_store_dword v0, v1, s[4:5]
s_endpgm
";

/// The second wave writes to LDS and signals; the first one waits and reads.
const CLUSTER: &str = "
s_load_b64 s[4:5], s[0:1], 0x0
v_and_b32 v0, 0x3ff, v0
v_mov_b32 v2, 0
v_mov_b32 v1, 7
v_cmp_gt_u32 vcc_lo, 32, v0
s_cbranch_vccz second
s_barrier_wait -3
ds_load_b32 v3, v2
s_wait_dscnt 0
s_wait_kmcnt 0
global_store_b32 v2, v3, s[4:5]
s_endpgm
second:
ds_store_b32 v2, v1
s_wait_dscnt 0
s_barrier_signal -3
s_barrier_wait -3
s_endpgm
";

/// A code object of one kernel; `more` are lines of its metadata.
fn source(body: &str, more: &str) -> String {
    format!(
        ".text
.globl k
.p2align 8
.type k,@function
k:{body}
.rodata
.p2align 6
.amdhsa_kernel k
.amdhsa_user_sgpr_kernarg_segment_ptr 1
.amdhsa_next_free_vgpr 8
.amdhsa_next_free_sgpr 16
.amdhsa_group_segment_fixed_size 64
.amdhsa_wavefront_size32 1
.end_amdhsa_kernel
.amdgpu_metadata
amdhsa.version: [1, 2]
amdhsa.kernels:
  - .name: k
    .symbol: k.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 64
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 16
    .vgpr_count: 8
    .max_flat_workgroup_size: 64
{more}    .args:
      - {{ .offset: 0, .size: 8, .value_kind: global_buffer }}
.end_amdgpu_metadata
"
    )
}

/// The words that three launches store, one after the other.
fn launched(bench: &Workbench, device: &EmulatedDevice, items: u16, text: &str) -> Result<[u32; 3], LaunchError> {
    let (version, gpu) = (bench.versions[0], device.processor.name);
    bench.assemble(version, &format!("-mcpu={gpu} -mattr=+wavefrontsize32"), "own", text);
    let object = bench.link(version, "", "own");
    let mut memory = SparseMemory::new();
    let loaded = LoadedObject::load(&object, &mut memory).unwrap();
    let output = memory.allocate(8);
    let arguments = [output.to_le_bytes().to_vec()];
    let grid = [u32::from(items), 1, 1];
    let request = DirectLaunch { grid, workgroup: [items, 1, 1], arguments: &arguments, dynamic_lds: 0 };
    let mut stored = || -> Result<u32, LaunchError> {
        launch_kernel(device, &mut memory, loaded.find_kernel("k").unwrap(), &request)?;
        Ok(u32::from_le_bytes(read_back(&memory, output, 4).try_into().unwrap()))
    };
    Ok([stored()?, stored()?, stored()?])
}

#[test]
fn rewritten_code_is_translated_again() {
    let Some(bench) = Workbench::new("rewritten_code_is_translated_again") else { return };
    let device = EmulatedDevice::new("gfx1030").unwrap();
    assert_eq!(launched(&bench, &device, 1, &source(REWRITING, "")), Ok([0x12345, 0x54321, 0x54321]));
}

/// Vector registers, scalar ones and VCC; with no poison all of them are 0.
#[test]
fn registers_that_nothing_has_written_are_poisoned() {
    let Some(bench) = Workbench::new("registers_that_nothing_has_written_are_poisoned") else { return };
    for register in ["v7", "s14", "vcc_lo", "vcc_hi"] {
        for (poison, word) in [(false, 0), (true, POISON_WORD)] {
            let mut device = EmulatedDevice::new("gfx1030").unwrap();
            device.poison = poison;
            let text = source(&UNWRITTEN.replace("WORD", register), "");
            assert_eq!(launched(&bench, &device, 1, &text), Ok([word; 3]), "{register}");
        }
    }
}

/// One work-group at a time would be no cluster.
#[test]
fn clusters_are_refused() {
    let Some(bench) = Workbench::new("clusters_are_refused") else { return };
    let device = EmulatedDevice::new("gfx1030").unwrap();
    let with = |sizes: &str| source(REWRITING, &format!("    .cluster_dims: [{sizes}]\n"));
    assert_eq!(launched(&bench, &device, 1, &with("2, 2, 1")), Err(LaunchError::Cluster { workgroups: 4 }));
    assert!(launched(&bench, &device, 1, &with("1, 1, 1")).is_ok());
}

#[test]
fn the_barrier_of_a_cluster_waits_for_a_signal() {
    let Some(bench) = Workbench::new("the_barrier_of_a_cluster_waits_for_a_signal") else { return };
    let with = |planted: Option<&str>| {
        let mut device = EmulatedDevice::new("gfx1250").unwrap();
        device.planted = planted.map(|name| PlantedFault::Skipped(name.to_owned()));
        launched(&bench, &device, 64, &source(CLUSTER, ""))
    };
    assert_eq!(with(None), Ok([7; 3]));
    assert_eq!(with(Some("s_barrier_wait")), Ok([0; 3]));
    let without = with(Some("s_barrier_signal"));
    assert!(matches!(&without, Err(LaunchError::Fault(fault)) if fault.kind == FaultKind::Deadlock), "{without:?}");
}
