//! Kernels of one instruction each, assembled by LLVM.
//!
//! A kernel loads four words of each lane into v1 to v4, and those of lane 0 into s8 to s11; the result is v[5:6], or
//! s[12:13] of scalar instructions. v7 is four times the lane's number; v5, v6, s12 and s13 are 0 before.

use hotswap_emulator::{
    DirectLaunch, EmulatedDevice, LoadedObject, PlantedFault, SparseMemory, launch_kernel, read_back,
};
use hotswap_userland::Workbench;
use std::collections::BTreeSet;
use std::fmt::Write;

/// Words that each lane has.
pub type LaneInputs = [[u32; 4]; 32];

/// A kernel of one instruction.
#[derive(Debug, Clone, Copy)]
pub struct SingleCase {
    /// Lines of assembly, separated by `;`.
    pub text: &'static str,
    /// Generations that have it: `9`, `90a`, `942`, `950`, `10`, `11`, `12`, separated by spaces.
    pub generations: &'static str,
    /// The result of a lane.
    pub expect: fn(&LaneInputs, usize) -> [u32; 2],
}

/// The words of assembly that differ by generation.
struct Spelling {
    load: &'static str,
    gather: &'static str,
    store: &'static str,
    wait: &'static str,
}

fn spelling(generation: &str) -> Spelling {
    match generation {
        "9" | "90a" | "942" | "950" | "10" => Spelling {
            load: "s_load_dwordx4",
            gather: "global_load_dwordx4",
            store: "global_store_dwordx2",
            wait: "s_waitcnt vmcnt(0) lgkmcnt(0)",
        },
        "11" => Spelling {
            load: "s_load_b128",
            gather: "global_load_b128",
            store: "global_store_b64",
            wait: "s_waitcnt vmcnt(0) lgkmcnt(0)",
        },
        _ => Spelling {
            load: "s_load_b128",
            gather: "global_load_b128",
            store: "global_store_b64",
            wait: match generation {
                "125" => "s_wait_loadcnt 0\ns_wait_kmcnt 0\ns_wait_dscnt 0\ns_wait_asynccnt 0\ns_wait_storecnt 0",
                _ => "s_wait_loadcnt 0\ns_wait_kmcnt 0\ns_wait_dscnt 0",
            },
        },
    }
}

/// gfx90a and later of its line; gfx12.5.
fn has_aligned_tuples(generation: &str) -> bool {
    matches!(generation, "90a" | "942" | "950" | "125")
}

fn is_scalar(case: &SingleCase) -> bool {
    case.text.contains("s12") || case.text.contains("s[12:13]")
}

fn kernel(number: usize, case: &SingleCase, generation: &str) -> String {
    let Spelling { load, gather, store, wait } = spelling(generation);
    let body = case.text.replace(';', "\n").replace("WAIT", wait);
    // Waves of 64 lanes have masks of 64 bits.
    let body = if generation.starts_with('9') { body.replace("vcc_lo", "vcc") } else { body };
    // On gfx90a tuples of registers begin at even numbers.
    let (gather, store) = if has_aligned_tuples(generation) {
        let size = if generation == "125" { "b32" } else { "dword" };
        let loads = (0..4).map(|word| format!("global_load_{size} v{}, v10, s[4:5] offset:{}\n", word + 1, 4 * word));
        let stores = (0..2).map(|word| format!("global_store_{size} v11, v{}, s[6:7] offset:{}\n", word + 5, 4 * word));
        (loads.collect::<String>(), stores.collect())
    } else {
        (format!("{gather} v[1:4], v10, s[4:5]"), format!("{store} v11, v[5:6], s[6:7]"))
    };
    let result = if is_scalar(case) { "v_mov_b32 v5, s12\nv_mov_b32 v6, s13" } else { "" };
    format!(
        "k{number}:
{load} s[4:7], s[0:1], 0x0
v_and_b32 v0, 0x3ff, v0
v_lshlrev_b32 v10, 4, v0
v_lshlrev_b32 v11, 3, v0
v_lshlrev_b32 v7, 2, v0
{wait}
{gather}
{wait}
v_readfirstlane_b32 s8, v1
v_readfirstlane_b32 s9, v2
v_readfirstlane_b32 s10, v3
v_readfirstlane_b32 s11, v4
v_mov_b32 v5, 0
v_mov_b32 v6, 0
s_mov_b32 s12, 0
s_mov_b32 s13, 0
{body}
s_mov_b32 exec_lo, -1
{result}
{store}
s_endpgm
"
    )
}

fn descriptor(number: usize, generation: &str) -> String {
    // On gfx90a accumulation registers follow the others.
    let own = match generation {
        "9" => ".amdhsa_next_free_vgpr 16",
        _ if has_aligned_tuples(generation) && generation != "125" => {
            ".amdhsa_next_free_vgpr 24\n.amdhsa_accum_offset 16"
        }
        _ => ".amdhsa_next_free_vgpr 16\n.amdhsa_wavefront_size32 1",
    };
    format!(
        ".amdhsa_kernel k{number}
.amdhsa_user_sgpr_kernarg_segment_ptr 1
{own}
.amdhsa_next_free_sgpr 32
.amdhsa_group_segment_fixed_size 1024
.amdhsa_float_denorm_mode_32 3
.end_amdhsa_kernel
"
    )
}

fn metadata(count: usize, lanes: u32) -> String {
    let mut text = "amdhsa.version: [1, 2]\namdhsa.kernels:\n".to_owned();
    for number in 0..count {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  - .name: k{number}\n    .symbol: k{number}.kd\n    .kernarg_segment_size: 16\n    .kernarg_segment_align: 8\n    \
             .group_segment_fixed_size: 1024\n    .private_segment_fixed_size: 0\n    .wavefront_size: {lanes}\n    .sgpr_count: 32\n    \
             .vgpr_count: 16\n    .max_flat_workgroup_size: 1024\n    .args:\n      - {{ .offset: 0, .size: 8, .value_kind: \
             global_buffer }}\n      - {{ .offset: 8, .size: 8, .value_kind: global_buffer }}"
        );
    }
    text
}

/// Assembles the cases for a GPU and runs each with all inputs. Returns those that differ, and those that do not differ
/// where one of their instructions is left out: they would pass with any result of it.
///
/// # Panics
/// Where LLVM refuses a case.
pub fn differing(
    bench: &Workbench,
    gpu: &str,
    generation: &str,
    cases: &[SingleCase],
    inputs: &[LaneInputs],
) -> Vec<String> {
    let chosen: Vec<&SingleCase> =
        cases.iter().filter(|case| case.generations.split(' ').any(|one| one == generation)).collect();
    let mut text = ".text\n".to_owned();
    for (number, case) in chosen.iter().enumerate() {
        let _ = write!(
            text,
            ".globl k{number}\n.p2align 8\n.type k{number},@function\n{}",
            kernel(number, case, generation)
        );
    }
    text += ".rodata\n.p2align 6\n";
    text.extend((0..chosen.len()).map(|number| descriptor(number, generation)));
    let _ = write!(
        text,
        ".amdgpu_metadata\n{}.end_amdgpu_metadata\n",
        metadata(chosen.len(), if generation.starts_with('9') { 64 } else { 32 })
    );
    let version = bench.versions[0];
    bench.assemble(
        version,
        &format!("-mcpu={gpu}{}", if generation.starts_with('9') { "" } else { " -mattr=+wavefrontsize32" }),
        "single",
        &text,
    );
    let object = bench.link(version, "", "single");
    let device = |planted| {
        let mut device = EmulatedDevice::new(gpu).unwrap_or_else(|error| panic!("{error}"));
        device.planted = planted;
        device
    };
    let mut wrong = Vec::new();
    for (number, case) in chosen.iter().enumerate() {
        let check = |planted| {
            let device = device(planted);
            inputs.iter().find_map(|inputs| check(&object, &device, number, case, inputs))
        };
        wrong.extend(check(None));
        let is_unseen = |name: &&str| check(Some(PlantedFault::Skipped((*name).to_owned()))).is_none();
        wrong.extend(
            mnemonics(case)
                .into_iter()
                .filter(is_unseen)
                .map(|name| format!("{}: it passes without {name}", case.text)),
        );
    }
    wrong.into_iter().map(|what| format!("{gpu}: {what}")).collect()
}

/// The mnemonics of a case, without the suffix that only selects an encoding.
fn mnemonics(case: &SingleCase) -> BTreeSet<&'static str> {
    let lines = case.text.split(';').map(str::trim).filter(|line| *line != "WAIT");
    lines
        .filter_map(|line| line.split(' ').next())
        .map(|name| name.trim_end_matches("_dpp").trim_end_matches("_sdwa"))
        .collect()
}

fn check(
    object: &[u8],
    device: &EmulatedDevice,
    number: usize,
    case: &SingleCase,
    inputs: &LaneInputs,
) -> Option<String> {
    let mut memory = SparseMemory::new();
    let loaded = LoadedObject::load(object, &mut memory).unwrap_or_else(|error| panic!("{error}"));
    let bytes: Vec<u8> = inputs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    let (input, output) = (memory.allocate_copy(&bytes), memory.allocate(8 * 32));
    let arguments = [input.to_le_bytes().to_vec(), output.to_le_bytes().to_vec()];
    let request = DirectLaunch { grid: [32, 1, 1], workgroup: [32, 1, 1], arguments: &arguments, dynamic_lds: 0 };
    let kernel = loaded.find_kernel(&format!("k{number}")).unwrap_or_else(|| panic!("no kernel k{number}"));
    if let Err(error) = launch_kernel(device, &mut memory, kernel, &request) {
        return Some(format!("{}: {error}", case.text));
    }
    let found = read_back(&memory, output, 8 * 32);
    let differs = |lane: &usize| {
        (case.expect)(inputs, *lane) != [found_result_word(8 * lane, &found), found_result_word(8 * lane + 4, &found)]
    };
    let lane = (0..32).find(differs)?;
    let (expected, input) = ((case.expect)(inputs, lane), inputs[lane]);
    let result = [found_result_word(8 * lane, &found), found_result_word(8 * lane + 4, &found)];
    Some(format!("{}: lane {lane} of {input:08x?} is {result:08x?}, not {expected:08x?}", case.text))
}

fn found_result_word(at: usize, found: &[u8]) -> u32 {
    u32::from_le_bytes([found[at], found[at + 1], found[at + 2], found[at + 3]])
}
