//! Compares limits and capabilities of every row with the output, the errors and the limits of compilers.
//!
//! The compiler prints, for each kernel, the blocks of its descriptor and the number of its waves that one SIMD holds.
//! Kernels of many sizes determine totals, granules and the limit of waves. The capabilities of a processor show in the
//! instructions that its assembler accepts.

use hotswap_samples::clangs::{Clang, clangs};
use hotswap_targets::{Capability, IsaFamily, Limits, PROCESSORS, Processor, WaveSizes, find_processor};
use hotswap_userland::slice;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Registers that HSA's trap handler takes of each wave; LLVM counts them since version 23.
const TRAP_HANDLER: u32 = 16;

/// One configuration of a compilation for a processor.
struct Job {
    name: String,
    processor: &'static Processor,
    lanes: u64,
    cu_mode: bool,
}

fn jobs(names: &[&str]) -> Vec<Job> {
    let mut jobs = Vec::new();
    for processor in names.iter().map(|name| find_processor(name).unwrap()) {
        let lanes = [32, 64].into_iter().filter(|lanes| processor.waves.contains(*lanes));
        for (lanes, cu_mode) in lanes.flat_map(|lanes| [(lanes, false), (lanes, true)]) {
            if !cu_mode || processor.has(Capability::WgpMode) {
                jobs.push(Job { name: format!("{processor}-{lanes}-{cu_mode}"), processor, lanes, cu_mode });
            }
        }
    }
    jobs
}

/// The names of a processor's ways to compile.
fn jobs_of(processor: &Processor) -> Vec<String> {
    jobs(&[processor.name]).into_iter().map(|job| job.name).collect()
}

/// Numbers on both sides of every granule's multiples.
fn counts() -> impl Iterator<Item = u32> {
    let edges = (1..=32).flat_map(|i| [i * 8 - 4, i * 8 - 3, i * 8, i * 8 + 1]);
    edges.filter(|count| *count <= 256)
}

const LDS: [u32; 9] = [1, 700, 1300, 2049, 4000, 7000, 12_000, 20_000, 32_000];

/// Kernels with a given number of registers of a kind, and with a given size of LDS in workgroups of one wave.
fn source(job: &Job) -> String {
    let mut text = "target triple = \"amdgcn-amd-amdhsa\"\n".to_owned();
    let mut kernel = |name: &str, assembly: &str, group: u64| {
        writeln!(text, "define amdgpu_kernel void @{name}() nounwind \"amdgpu-flat-work-group-size\"=\"1,{group}\" {{")
            .unwrap();
        writeln!(text, "  call void asm sideeffect \"\", {assembly}\n  ret void\n}}").unwrap();
    };
    for count in counts() {
        kernel(&format!("v{count}"), &format!("\"~{{v{}}}\"()", count - 1), 1024);
    }
    for count in (1..=96).step_by(5) {
        kernel(&format!("s{count}"), &format!("\"~{{s{}}}\"()", count - 1), 1024);
    }
    if job.processor.has(Capability::UnifiedRegisterFile) {
        for count in counts() {
            kernel(&format!("a{count}"), &format!("\"~{{v255}},~{{a{}}}\"()", count - 1), 1024);
        }
    }
    for bytes in LDS {
        kernel(&format!("l{bytes}"), &format!("\"v\"(ptr addrspace(3) @lds{bytes})"), job.lanes);
    }
    LDS.iter().for_each(|b| writeln!(text, "@lds{b} = internal addrspace(3) global [{b} x i8] poison").unwrap());
    text
}

/// The compiler's listing for one kernel: `TotalNumVgprs`, `VGPRBlocks`, `Occupancy`, …
type Said = BTreeMap<String, u32>;

fn read(listing: &str) -> BTreeMap<String, Said> {
    let mut kernels: BTreeMap<String, Said> = BTreeMap::new();
    let mut current = String::new();
    for line in listing.lines() {
        if let Some((_, name)) = line.split_once("; @") {
            current = name.trim().to_owned();
        } else if let Some((key, value)) = line.strip_prefix("; ").and_then(|line| line.split_once(": ")) {
            let number = value.split(' ').next().and_then(|word| word.parse().ok());
            let said = kernels.entry(current.clone()).or_default();
            said.extend(number.map(|number| (key.to_owned(), number)));
        }
    }
    kernels
}

/// Waves of a SIMD when workgroups of one wave take that much LDS each.
fn waves_with_lds(job: &Job, bytes: u32) -> u32 {
    let limits = &job.processor.limits;
    let units = if job.processor.has(Capability::WgpMode) && !job.cu_mode { 2 } else { 1 };
    let simds = u32::from(limits.simds_per_cu) * units;
    let groups = limits.lds.per_cu * units / bytes.next_multiple_of(limits.lds.granule.into());
    groups.div_ceil(simds).min(limits.waves_per_simd.into())
}

/// Compares one kernel; returns the number of facts compared.
fn check_kernel(job: &Job, kernel: &str, said: &Said, version: u32) -> usize {
    let limits: &Limits = &job.processor.limits;
    let vgprs = limits.vgprs(job.lanes).unwrap();
    let (kind, count) = kernel.split_at(1);
    let count: u32 = count.parse().unwrap();
    let place = format!("{} {kernel} {said:?}", job.name);
    // Every kernel has a few scalar registers; gfx802 and gfx805 give each 96.
    let most = limits.waves_with_sgprs(said["TotalNumSgprs"], if version < 23 { 0 } else { TRAP_HANDLER });
    match kind {
        "v" | "a" => {
            let total = if kind == "a" { 256 + count } else { count };
            assert_eq!(said.get("TotalNumVgprs").unwrap_or(&said["NumVgprs"]), &total, "{place}");
            assert_eq!(vgprs.descriptor_blocks(total).map(u32::from), Some(said["VGPRBlocks"]), "{place}");
            assert_eq!(limits.waves_with_vgprs(job.lanes, total).min(most), said["Occupancy"], "{place}");
            2
        }
        "s" => {
            let total = said["TotalNumSgprs"];
            let blocks = match limits.sgprs.shared {
                None => 0,
                Some(file) => {
                    let given = if job.processor.has(Capability::SgprInitBug) { 96 } else { total };
                    given.div_ceil(file.descriptor_granule.into()) - 1
                }
            };
            assert_eq!(blocks, said["SGPRBlocks"], "{place}");
            if version >= 23 {
                assert_eq!(most, said["Occupancy"], "{place}");
            }
            2
        }
        // LLVM 22 knows no granule, and LLVM 23 that of GFX10.1 for all later RDNA.
        _ if version < 24 => 0,
        _ => {
            assert_eq!(waves_with_lds(job, count).min(most), said["Occupancy"], "{place}");
            1
        }
    }
}

fn names(clang: &Clang, directory: &Path) -> Vec<&'static str> {
    let list = clang.run(directory, "\"$CLANG\" --target=amdgcn-amd-amdhsa --print-supported-cpus 2>&1");
    let names = list.lines().map(str::trim).filter(|line| line.starts_with("gfx"));
    names.map(|name| find_processor(name).unwrap_or_else(|| panic!("{name} is not in the table")).name).collect()
}

#[test]
fn limits_are_what_the_compilers_compute_with() {
    for (turn, clang) in clangs("limits_are_what_the_compilers_compute_with").iter().take(2).enumerate() {
        let directory = clang.scratch();
        let mut jobs = jobs(&names(clang, directory.path()));
        // LLVM 23 computes with 1.5 times as many registers, and a third of the LDS.
        jobs.retain(|job| clang.version >= 24 || job.processor.family != IsaFamily::Gfx13);
        // Each processor compiled in one way, another one with the other compiler.
        let way = |job: &Job| jobs_of(job.processor).iter().position(|name| *name == job.name).unwrap_or_default();
        let jobs = slice(&format!("limits by {}", clang.command), jobs, |_, job| {
            let row = PROCESSORS.iter().position(|row| row.name == job.processor.name).unwrap_or_default();
            way(job) == (row + turn) % jobs_of(job.processor).len()
        });
        let mut lines = String::new();
        for job in &jobs {
            std::fs::write(directory.path().join(format!("{}.ll", job.name)), source(job)).unwrap();
            let wave = if job.lanes == 64 && !job.processor.waves.contains(32) { "" } else { "-mwavefrontsize64" };
            let wave = if job.lanes == 64 { wave } else { "" };
            let mode = if job.cu_mode { "-mcumode" } else { "" };
            writeln!(lines, "{} {} {wave} {mode}", job.name, job.processor).unwrap();
        }
        std::fs::write(directory.path().join("jobs"), lines).unwrap();
        clang.run(
            directory.path(),
            "while read name cpu words; do \"$CLANG\" --target=amdgcn-amd-amdhsa -mcpu=$cpu $words -nogpulib -O1 -x ir -S $name.ll -o $name.s; done < jobs",
        );
        let mut facts = 0;
        for job in &jobs {
            let kernels = read(&std::fs::read_to_string(directory.path().join(format!("{}.s", job.name))).unwrap());
            assert!(kernels.len() > 100, "{}: {} kernels", job.name, kernels.len());
            facts += kernels.iter().map(|(name, said)| check_kernel(job, name, said, clang.version)).sum::<usize>();
        }
        println!("{}: {} ways to compile, {facts} facts compared", clang.command, jobs.len());
        assert!(facts > 100 * jobs.len());
    }
}

/// Instructions that an assembler accepts if and only if the processor has the capability.
#[rustfmt::skip]
const PROBES: &[(Capability, &str)] = &[
    (Capability::AccumulationRegisters, "v_accvgpr_write_b32 a0, v0"),
    (Capability::UnifiedRegisterFile, ".amdhsa_accum_offset 4"),
    (Capability::VgprBanks, "s_set_vgpr_msb 1"),
    (Capability::ArchitectedFlatScratch, ".amdhsa_enable_private_segment 0"),
    (Capability::GloballyAddressableScratch, "s_mov_b32 s0, src_flat_scratch_base_lo"),
    (Capability::KernargPreload, ".amdhsa_user_sgpr_kernarg_preload_length 0"),
    (Capability::WgpMode, ".amdhsa_workgroup_processor_mode 1"),
    (Capability::ThreadgroupSplit, ".amdhsa_tg_split 0"),
    (Capability::SharedVgprs, ".amdhsa_shared_vgpr_count 0"),
    (Capability::ClampAndIeeeMode, ".amdhsa_ieee_mode 0"),
    (Capability::InstructionPrefetch, ".amdhsa_inst_pref_size 0"),
    (Capability::RoundRobin, ".amdhsa_round_robin_scheduling 0"),
    (Capability::NamedBarriers, ".amdhsa_named_barrier_count 0"),
    (Capability::Literals64, "s_mov_b64 s[0:1], 0x123456789abcdef0"),
    (Capability::GlobalDataShare, "ds_add_u32 v2, v4 gds"),
    (Capability::GlobalWaveSync, "ds_gws_barrier v2 gds"),
];

/// Instructions that an assembler accepts if and only if the processor does not have the capability.
const REFUSALS: &[(Capability, &str)] = &[(Capability::EvenVgprTuples, "v_cvt_f64_f32 v[1:2], v3")];

/// Text in the code of a small kernel if and only if the processor has the capability.
const TRACES: &[(Capability, &str)] = &[
    (Capability::ArchitectedSgprs, "ttmp9"),
    (Capability::PackedWorkItemIds, "v_bfe_u32 v0, v0, 10, 10"),
    (Capability::UserSgprInit16Bug, ".amdhsa_user_sgpr_count 15"),
    (Capability::SgprInitBug, "; TotalNumSgprs: 96"),
    // The id of a workgroup in its cluster is part of the id of a workgroup.
    (Capability::Clusters, "ttmp6"),
];

const IDS: &str = "target triple = \"amdgcn-amd-amdhsa\"
declare i32 @llvm.amdgcn.workitem.id.y()
declare i32 @llvm.amdgcn.workgroup.id.x()
define amdgpu_kernel void @k(ptr addrspace(1) %p) nounwind {
  %a = call i32 @llvm.amdgcn.workitem.id.y()
  %b = call i32 @llvm.amdgcn.workgroup.id.x()
  %c = add i32 %a, %b
  store i32 %c, ptr addrspace(1) %p
  ret void
}
";

/// More LDS than any processor has.
const LARGE: &str = "target triple = \"amdgcn-amd-amdhsa\"
@l = internal addrspace(3) global [400000 x i8] poison
define amdgpu_kernel void @k() nounwind {
  call void asm sideeffect \"\", \"v\"(ptr addrspace(3) @l)
  ret void
}
";

/// Each probe on lines of its own, and the number of the line that an error would name.
fn probes() -> (String, Vec<(Capability, usize, bool)>) {
    let (mut text, mut lines) = (String::new(), Vec::new());
    let all = PROBES.iter().map(|probe| (probe, true)).chain(REFUSALS.iter().map(|probe| (probe, false)));
    for ((capability, probe), accepted) in all {
        if probe.starts_with('.') {
            write!(text, ".amdhsa_kernel k{}\n.amdhsa_next_free_sgpr 1\n.amdhsa_next_free_vgpr 1\n", lines.len())
                .unwrap();
        }
        lines.push((*capability, text.lines().count() + 1, accepted));
        writeln!(text, "{probe}").unwrap();
        if probe.starts_with('.') {
            text += ".end_amdhsa_kernel\n";
        }
    }
    (text, lines)
}

fn check_capabilities(
    processor: &Processor,
    directory: &Path,
    lines: &[(Capability, usize, bool)],
    version: u32,
) -> usize {
    let read = |extension: &str| std::fs::read_to_string(directory.join(format!("{processor}.{extension}"))).unwrap();
    let (errors, listing) = (read("errors"), read("listing"));
    for (capability, line, accepted) in lines {
        let refused = errors.contains(&format!("probes.s:{line}:"));
        assert_eq!(
            processor.has(*capability),
            refused != *accepted,
            "{processor} {capability}: line {line} of\n{errors}"
        );
    }
    for (capability, trace) in TRACES {
        assert_eq!(processor.has(*capability), listing.contains(trace), "{processor} {capability}:\n{listing}");
    }
    let lds = format!("exceeds limit ({})", processor.limits.lds.addressable);
    let known = version >= 24 || processor.family != IsaFamily::Gfx13;
    assert!(!known || errors.contains(&lds), "{processor}: no `{lds}` in\n{errors}");
    // Code is padded to lines of the instruction cache since GFX10.
    let padding = format!(".p2alignl {}, ", processor.limits.cache_line.ilog2());
    assert!(processor.waves == WaveSizes::Only64 || listing.contains(&padding), "{processor}: {listing}");
    lines.len() + TRACES.len() + 2
}

#[test]
fn capabilities_are_what_assemblers_take_and_compilers_use() {
    for clang in clangs("capabilities_are_what_assemblers_take_and_compilers_use").iter().take(2) {
        let directory = clang.scratch();
        let names = names(clang, directory.path());
        let (text, lines) = probes();
        for (name, text) in
            [("probes.s", text.as_str()), ("ids.ll", IDS), ("large.ll", LARGE), ("names", &names.join("\n"))]
        {
            std::fs::write(directory.path().join(name), format!("{text}\n")).unwrap();
        }
        clang.run(
            directory.path(),
            "while read cpu; do \
               clang=\"$CLANG --target=amdgcn-amd-amdhsa -mcpu=$cpu -nogpulib\"; \
               $clang -c -x assembler probes.s -o probes.o 2> $cpu.errors || true; \
               $clang -O1 -x ir -S ids.ll -o $cpu.listing; \
               $clang -O1 -x ir -S large.ll -o large.s 2>> $cpu.errors || true; \
             done < names",
        );
        let facts: usize = names
            .iter()
            .map(|name| check_capabilities(find_processor(name).unwrap(), directory.path(), &lines, clang.version))
            .sum();
        println!("{}: {} processors, {facts} capabilities compared", clang.command, names.len());
    }
}

/// A capability without a test would be a guess.
#[test]
fn every_capability_is_compared() {
    let compared: Vec<Capability> =
        [PROBES, REFUSALS, TRACES].concat().iter().map(|(capability, _)| *capability).collect();
    let missing: Vec<&Capability> =
        Capability::ALL.iter().filter(|capability| !compared.contains(capability)).collect();
    // Only code generation uses it, in sequences that change with each version.
    assert_eq!(missing, [&Capability::SetregClobbersBanks]);
}
