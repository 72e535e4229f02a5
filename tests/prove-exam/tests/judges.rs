//! All judges about the same objects: they agree about rewritten assembly and random kernels, and a planted fault is a
//! disagreement.

use hotswap_check::CheckOptions;
use hotswap_code_object::CodeObject;
use hotswap_prove_exam::judged_corpus::{JudgedSource, judge_sources, program_sources, sum_table};
use hotswap_prove_exam::judged_pairs::judged_pairs;
use hotswap_prove_exam::judges::{JudgeTally, ask_judges, judge_object, judge_pair};
use hotswap_prove_exam::mutations::{MUTATIONS, planted};
use hotswap_prove_exam::random_kernels::judge_random;
use hotswap_prove_exam::subjects::assembled;
use hotswap_rewrite_exam::variants::variants;
use hotswap_userland::{Workbench, everything, say};

fn options() -> CheckOptions {
    CheckOptions { states: 20, launches: 2, ..CheckOptions::default() }
}

#[test]
fn judges_agree_about_assembly_as_object_files_and_linked() {
    let Some(bench) = Workbench::with_llvm(24, "judges of assembly") else { return };
    let source = |(name, kernels): (&str, _)| JudgedSource::Assembly { name: name.to_owned(), kernels };
    let taken = |(number, _): &(usize, _)| everything() || number % 4 == 0;
    let sources: Vec<JudgedSource> =
        variants().into_iter().enumerate().filter(taken).map(|(_, one)| source(one)).collect();
    let tally = sum_table(judge_sources(&bench, &sources, &options()));
    say(&format!("judges of assembly: {}", tally.text()));
    assert!(tally.disagreements.is_empty(), "{}", tally.disagreements.join("\n"));
    assert_eq!((tally.objects, tally.changed), (2 * sources.len() as u64, tally.caught));
}

/// Sources of pairs of each kind, whose programs a short run compiles.
const SHORT_RUN: [&str; 5] = ["gfx1030", "gfx1102", "gfx1103", "gfx942", "gfx1250"];

/// Each pair that plans apply has objects, and nothing contradicts a judge.
#[test]
fn judges_agree_about_programs_for_every_pair() {
    let Some(bench) = Workbench::with_llvm(22, "judges of programs") else { return };
    let is_taken = |gpu: &str| everything() || SHORT_RUN.contains(&gpu);
    let is_short = |source: &JudgedSource| everything() || source.name().starts_with("shared-");
    let of_gpu = |source: &JudgedSource| matches!(source, JudgedSource::Program { gpu, .. } if is_taken(gpu));
    let sources = program_sources().into_iter().filter(|source| of_gpu(source) && is_short(source));
    let table = judge_sources(&bench, &sources.collect::<Vec<_>>(), &options());
    let wanted = judged_pairs().filter(|pair| is_taken(pair.source));
    let missing: Vec<String> = wanted.filter(|pair| !table.contains_key(pair)).map(|pair| pair.to_string()).collect();
    assert!(missing.is_empty(), "no object: {}", missing.join(", "));
    let tally = sum_table(table);
    say(&format!("judges of programs: {}", tally.text()));
    assert!(tally.disagreements.is_empty(), "{}", tally.disagreements.join("\n"));
    assert!(tally.equal > 0);
}

/// Padding that became shorter before a function that begins with a neutralised `s_delay_alu` is in 24.
#[test]
fn judges_agree_about_random_kernels() {
    let Some(bench) = Workbench::with_llvm(24, "judges of random kernels") else { return };
    let seeds = if everything() { 0..200 } else { 24..26 };
    let tally = judge_random(&bench, seeds, &options(), None);
    say(&format!("judges of random kernels: {}", tally.judged.text()));
    assert!(tally.judged.unchecked.is_empty(), "{:?}", tally.judged.unchecked);
    assert!(tally.judged.disagreements.is_empty(), "{}", tally.judged.disagreements.join("\n"));
    assert!(tally.judged.changed > 0 && tally.judged.changed == tally.judged.caught);
}

/// Three kernels that read work-group IDs of one, two and three dimensions, and one that reads none.
const GROUPS: &str = "\
    typedef __attribute__((address_space(1))) int G;\n\
    #define KERNEL __attribute__((amdgpu_kernel)) void\n\
    #define ID(of, d) __builtin_amdgcn_##of##_id_##d()\n\
    KERNEL one(G *p) { p[ID(workgroup, x) * 64 + ID(workitem, x)] = ID(workgroup, x) + 1; }\n\
    KERNEL two(G *p, int n) { int s = 0; for (int i = ID(workgroup, y); i < (n & 7); i++) s += p[i * 7] * p[i + 3];\n\
      p[ID(workitem, x) + ID(workgroup, x)] = s; }\n\
    KERNEL three(G *p) { p[ID(workgroup, x) + 7 * ID(workgroup, y) + 49 * ID(workgroup, z)] = 3; }\n\
    KERNEL none(G *p) { p[ID(workitem, x)] = 1; }\n";

fn needs_sixteen(gpu: &str) -> bool {
    ["gfx1100", "gfx1102"].contains(&gpu)
}

/// COMPUTE_PGM_RSRC2 of each kernel.
fn initial_sgprs(object: &[u8]) -> Vec<Vec<u8>> {
    let parsed = CodeObject::parse(object).unwrap();
    let words = parsed.descriptors().iter().map(|descriptor| object[descriptor.range.start + 52..][..4].to_vec());
    words.collect()
}

/// A file with the word at the only place of another one changed.
fn with_word(made: &[u8], word: u32, by: u32) -> Vec<u8> {
    let places = made.windows(4).enumerate().filter(|(_, bytes)| *bytes == word.to_le_bytes());
    let places: Vec<usize> = places.map(|(at, _)| at).collect();
    assert_eq!(places.len(), 1, "{word:#x}: {places:?}");
    let mut planted = made.to_vec();
    planted[places[0]..][..4].copy_from_slice(&by.to_le_bytes());
    planted
}

/// All twelve directions of RDNA 3: what copies work-group IDs is right for all judges, and what copies others is wrong for
/// `verify --against` and for `check`.
#[test]
fn judges_agree_about_work_group_ids() {
    const GPUS: [&str; 4] = ["gfx1100", "gfx1101", "gfx1102", "gfx1103"];
    let Some(bench) = Workbench::with_llvm(24, "judges of work-group IDs") else { return };
    bench.write("groups.c", GROUPS.as_bytes());
    let options = CheckOptions { states: 50, launches: 16, ..CheckOptions::default() };
    let (mut tally, mut directions) = (JudgeTally::default(), 0);
    for (turn, source) in GPUS.iter().enumerate() {
        let version = bench.versions[turn % bench.versions.len()];
        let target = format!("--target=amdgcn-amd-amdhsa -mcpu={source} -mcode-object-version=6");
        bench.run(&format!("clang-{version} {target} -nogpulib -O2 -w groups.c -o groups.co"));
        let original = bench.read("groups.co");
        for pair in judged_pairs().filter(|pair| pair.source == *source && GPUS.contains(&pair.target)) {
            tally.merge(judge_object(&pair, &pair.to_string(), &original, &options));
            let made = pair.make(&original).unwrap();
            bench.write("made.co", &made.bytes);
            let shown = bench.run("llvm-objdump-24 -d made.co 2>&1; llvm-readelf-24 -hn made.co 2>&1");
            assert!(!shown.contains("warning") && !shown.contains("<unknown>"), "{pair}: {shown}");
            // Clang's own descriptors have the same registers set up.
            if needs_sixteen(pair.target) && !needs_sixteen(source) {
                let target = format!("--target=amdgcn-amd-amdhsa -mcpu={} -mcode-object-version=6", pair.target);
                bench.run(&format!("clang-{version} {target} -nogpulib -O2 -w groups.c -o own.co"));
                assert_eq!(initial_sgprs(&made.bytes), initial_sgprs(&bench.read("own.co")), "{pair}");
            }
            directions += 1;
        }
    }
    say(&format!("judges of work-group IDs: {directions} directions, {}", tally.text()));
    assert!(tally.disagreements.is_empty(), "{}", tally.disagreements.join("\n"));
    assert_eq!((directions, tally.objects, tally.refused.len()), (12, 12, 0));
    // From two GPUs for the two that need 16 registers.
    assert_eq!((tally.changed, tally.caught), (4, 4));
    assert_eq!(tally.equal, 48, "{}", tally.text());
}

#[test]
fn a_wrong_copy_of_a_work_group_id_is_a_disagreement() {
    let Some(bench) = Workbench::with_llvm(24, "planted copies of work-group IDs") else { return };
    bench.write("groups.c", GROUPS.as_bytes());
    bench.run("clang-24 --target=amdgcn-amd-amdhsa -mcpu=gfx1101 -nogpulib -O2 -w groups.c -o groups.co");
    let original = bench.read("groups.co");
    let pair = judged_pairs().find(|pair| (pair.source, pair.target) == ("gfx1101", "gfx1100")).unwrap();
    let made = pair.make(&original).unwrap().bytes;
    let options = CheckOptions { states: 50, launches: 16, ..CheckOptions::default() };
    // `s_mov_b32 s4, s15` of the kernel with three IDs: from s14, to s5, and none.
    for (planted, what) in [(0xbe84_000e, "another source"), (0xbe85_000f, "another register"), (0xbf80_0000, "none")] {
        let answers = ask_judges(&original, &with_word(&made, 0xbe84_000f, planted), &options);
        assert!(!answers.verify.is_empty() && !answers.check.is_empty(), "{what}: {answers:?}");
    }
    let answers = ask_judges(&original, &made, &options);
    assert!(answers.verify.is_empty() && answers.check.is_empty(), "{answers:?}");
}

#[test]
fn a_planted_fault_is_a_disagreement() {
    let Some(bench) = Workbench::with_llvm(24, "planted disagreements") else { return };
    let (name, kernels) = variants().into_iter().find(|(name, _)| *name == "addtid_load").unwrap();
    let pair = assembled(&bench, name, &kernels).unwrap();
    let options = CheckOptions { states: 400, ..options() };
    let mut seen = 0;
    for mutation in MUTATIONS.iter().filter(|mutation| mutation.object == name) {
        let mut tally = JudgeTally::default();
        judge_pair(name, &pair.original, &planted(&pair, mutation).unwrap(), &options, &mut tally);
        assert!(!tally.disagreements.is_empty(), "{}", mutation.text);
        seen += 1;
    }
    let mut tally = JudgeTally::default();
    judge_pair(name, &pair.original, &pair.made, &options, &mut tally);
    assert!(tally.disagreements.is_empty(), "{:?}", tally.disagreements);
    say(&format!("planted disagreements: {seen} of {seen} are seen"));
    assert!(seen > 4);
}
