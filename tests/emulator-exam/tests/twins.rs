//! The same source compiled for the host and for each target gives the same memory.

use hotswap_emulator_exam::{TwinCase, TwinRun};
use hotswap_userland::{Workbench, everything, say};
use std::path::Path;

/// GPUs of gfx9, of which each case runs on one in turn.
const GFX9: &[&str] = &["gfx900", "gfx90a", "gfx942", "gfx906", "gfx908", "gfx950", "gfx90c"];
const GPUS: &[&str] = &["gfx1030", "gfx1100", "gfx1201", "gfx1250"];

fn cases() -> Vec<TwinCase> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("twins");
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let sources = files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "cpp"));
    let case = |file: &std::path::PathBuf| {
        TwinCase::new(file.file_stem().unwrap().to_str().unwrap(), &std::fs::read_to_string(file).unwrap())
    };
    sources.map(case).collect()
}

fn wanted(name: &str, value: &str) -> bool {
    std::env::var(name).map_or(true, |wanted| wanted.split(',').any(|one| one == value))
}

#[test]
fn host_and_gpus_agree() {
    let Some(bench) = Workbench::new("twins") else { return };
    let header = include_str!("../twins/twin.h");
    let mut failures = Vec::new();
    let mut instructions = 0;
    for (number, case) in cases().iter().enumerate().filter(|(_, case)| wanted("TWIN_CASE", &case.name)) {
        let expected = case.host(&bench, header);
        let in_turn = (0..GFX9.len()).filter(|gpu| everything() || number % GFX9.len() == *gpu).map(|gpu| &GFX9[gpu]);
        for gpu in in_turn.chain(GPUS).filter(|gpu| wanted("TWIN_GPU", gpu)) {
            for words in ["-O0", "-O3", "-O3 -mwavefrontsize64"] {
                let both_sizes = gpu.starts_with("gfx1") && *gpu != "gfx1250";
                if !wanted("TWIN_WORDS", words) || words.contains("64") && !both_sizes {
                    continue;
                }
                let run = TwinRun { clang: bench.versions[0], gpu, words };
                match case.check(&bench, &run, &expected) {
                    Ok(counts) => instructions += counts.instructions,
                    Err(failure) => {
                        say(&failure.to_string());
                        failures.push(failure.to_string());
                    }
                }
            }
        }
    }
    say(&format!("twins: {instructions} wave-instructions"));
    assert!(failures.is_empty(), "{} runs differ\n{}", failures.len(), failures.join("\n"));
}
