//! The table of `docs/evidence/emulator-coverage.md`: what the emulator knows, by target, of all instructions and of those in a corpus.
//!
//! The second part compiles the twins and hipCUB for each target; it is made with `HOTSWAP_TEST_EVERYTHING=1` alone, and is the
//! committed one otherwise.

use hotswap_adapt::{AdaptRequest, adapt_object};
use hotswap_emulator::known_mnemonics;
use hotswap_emulator_exam::generated_source;
use hotswap_userland::{Workbench, everything, golden};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const GPUS: [&str; 25] = [
    "gfx900", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx950", "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034",
    "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153",
    "gfx1200", "gfx1201", "gfx1250", STRICT,
];
/// The stepping, whose code is that for the other one, rewritten.
const STRICT: &str = "gfx1250-strict";

const HEAD: &str = "# Instructions that the emulator knows

For users of the emulator: how many instructions of each GPU it executes.

Made by `HOTSWAP_TEST_EVERYTHING=1 HOTSWAP_BLESS=1 cargo xtask test -p hotswap-emulator-exam coverage`. An instruction is a mnemonic, or
a pair of mnemonics of a dual instruction. The corpus is the code that clang makes for the twins (`tests/emulator-exam/twins`), for generated
programs at -O0 and -O3, and for hipCUB's algorithms (compiled for one GPU of each instruction set, not for gfx1250); for gfx1250-strict it is what HotSwap makes from the code for gfx1250. Images, formatted buffers and graphics are not known; some forms of
known instructions are refused, by name, when they are executed.

| GPU | known of all | known of the corpus | unknown of the corpus |
| --- | --- | --- | --- |
";

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/evidence/emulator-coverage.md")
}

/// The mnemonics of a disassembly, without the suffixes that select an encoding.
fn mnemonics(listing: &str) -> BTreeSet<String> {
    let name = |line: &str| {
        let text = line.strip_prefix('\t')?;
        let name = text.split_whitespace().next()?;
        let suffixes = ["_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"];
        Some(suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)).unwrap_or(name).to_owned())
    };
    listing.lines().filter_map(name).filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase())).collect()
}

/// Writes the sources of the corpus; the names of the twins.
fn sources(bench: &Workbench) -> Vec<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    bench.write("twin.h", &std::fs::read(directory.join("twins/twin.h")).unwrap());
    bench.write("generated.cpp", generated_source(5, 16).as_bytes());
    bench.write("check.h", &std::fs::read(directory.join("../emulated-hip/cases/check.h")).unwrap());
    bench.write("hipcub.cpp", &std::fs::read(directory.join("../emulated-hip/cases/hipcub.hip")).unwrap());
    let mut names = vec!["generated".to_owned()];
    for entry in std::fs::read_dir(directory.join("twins")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "cpp") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            bench.write(&format!("{name}.cpp"), &std::fs::read(&path).unwrap());
            names.push(name);
        }
    }
    names
}

/// The GPU whose code of hipCUB stands for that of all GPUs with its instructions: it takes the longest to compile.
fn hipcub_gpu(gpu: &'static str) -> Option<&'static str> {
    match gpu {
        "gfx1250" | STRICT => None,
        _ if gpu.starts_with("gfx103") => Some("gfx1030"),
        _ if gpu.starts_with("gfx110") => Some("gfx1100"),
        _ if gpu.starts_with("gfx115") => Some("gfx1151"),
        _ if gpu.starts_with("gfx120") => Some("gfx1201"),
        _ => Some(gpu),
    }
}

const FLAGS: &str = "-x hip --offload-device-only --no-gpu-bundle-output -ffp-contract=off -w";

fn listing(bench: &Workbench, clang: u32, object: &str) -> BTreeSet<String> {
    mnemonics(&bench.run(&format!("llvm-objdump-{clang} -d --no-show-raw-insn {object}")))
}

/// The instructions of hipCUB. Optimised, it has every instruction that it has otherwise.
fn hipcub(bench: &Workbench, gpu: &str) -> BTreeSet<String> {
    let (clang, object) = (bench.versions[0], format!("hipcub.{gpu}.co"));
    bench.run(&format!("clang++-{clang} {FLAGS} --offload-arch={gpu} -O3 hipcub.cpp -o {object}"));
    listing(bench, clang, &object)
}

/// The instructions of the twins.
fn twins(bench: &Workbench, names: &[String], gpu: &str) -> BTreeSet<String> {
    let clang = *bench.versions.last().unwrap();
    let processor = gpu.trim_end_matches("-strict");
    let mut found = BTreeSet::new();
    for name in names {
        for level in ["-O0", "-O3"] {
            let object = format!("{name}.{gpu}.co");
            let own = format!("-nogpuinc -nogpulib -Wl,--emit-relocs --offload-arch={processor} {level}");
            bench.run(&format!("clang++-{clang} {FLAGS} {own} {name}.cpp -o {object}"));
            if gpu == STRICT {
                let request = AdaptRequest { target: gpu.parse().unwrap(), keep_machine: true };
                bench.write(&object, &adapt_object(&bench.read(&object), &request).unwrap().bytes);
            }
            found.extend(listing(bench, clang, &object));
        }
    }
    found
}

/// The columns about the corpus.
fn corpus_columns(all: &BTreeSet<String>, known: &BTreeMap<&str, bool>) -> String {
    let mut all = all.clone();
    // Padding after the code.
    all.remove("s_code_end");
    // Halves of pairs are named like the instructions that they are.
    let is_known = |name: &str| {
        let single = name.strip_prefix("v_dual_").map(|half| format!("v_{half}"));
        known.get(single.as_deref().unwrap_or(name)).copied().unwrap_or(false)
    };
    let unknown: Vec<&str> = all.iter().map(String::as_str).filter(|name| !is_known(name)).collect();
    let listed = if unknown.is_empty() { "–".to_owned() } else { unknown.join(", ") };
    format!("{} of {} | {listed}", all.len() - unknown.len(), all.len())
}

/// The committed columns about the corpus of a GPU.
fn committed(gpu: &str) -> Option<String> {
    let text = std::fs::read_to_string(file()).ok()?;
    let row = text.lines().find(|line| line.starts_with(&format!("| {gpu} |")))?;
    let columns: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
    Some(columns.get(2..4)?.join(" | "))
}

/// Which GPUs' corpora are compiled: all, or those of `TWIN_GPU`.
fn is_chosen(gpu: &str) -> bool {
    std::env::var("TWIN_GPU").map_or(true, |wanted| wanted.split(',').any(|one| one == gpu))
}

/// The result for each GPU, on two processors.
fn on_both(
    gpus: &[&'static str],
    of: impl Fn(&'static str) -> BTreeSet<String> + Sync,
) -> BTreeMap<&'static str, BTreeSet<String>> {
    let part = |turn: usize| -> Vec<_> { gpus.iter().skip(turn).step_by(2).map(|gpu| (*gpu, of(gpu))).collect() };
    std::thread::scope(|scope| {
        let part = &part;
        let handles = [0, 1].map(|turn| scope.spawn(move || part(turn)));
        handles.into_iter().flat_map(|handle| handle.join().unwrap()).collect()
    })
}

/// The corpora of the chosen GPUs.
fn corpora() -> BTreeMap<&'static str, BTreeSet<String>> {
    let Some(bench) = everything().then(|| Workbench::new("coverage")).flatten() else { return BTreeMap::new() };
    let names = sources(&bench);
    let chosen: Vec<&str> = GPUS.into_iter().filter(|gpu| is_chosen(gpu)).collect();
    let compiled: BTreeSet<&str> = chosen.iter().copied().filter_map(hipcub_gpu).collect();
    let libraries = on_both(&compiled.into_iter().collect::<Vec<_>>(), |gpu| hipcub(&bench, gpu));
    let mut all = on_both(&chosen, |gpu| twins(&bench, &names, gpu));
    for (&gpu, found) in &mut all {
        found.extend(hipcub_gpu(gpu).and_then(|other| libraries.get(other)).into_iter().flatten().cloned());
    }
    all
}

#[test]
fn the_table_of_known_instructions_is_current() {
    let corpora = corpora();
    let mut table = HEAD.to_owned();
    for gpu in GPUS {
        let known = known_mnemonics(gpu).unwrap();
        let count = known.values().filter(|known| **known).count();
        let columns = match corpora.get(gpu) {
            Some(all) => corpus_columns(all, &known),
            None => committed(gpu).unwrap_or_else(|| "– | –".to_owned()),
        };
        table += &format!("| {gpu} | {count} of {} | {columns} |\n", known.len());
    }
    golden(&file(), &table).unwrap_or_else(|error| panic!("{error}"));
}
