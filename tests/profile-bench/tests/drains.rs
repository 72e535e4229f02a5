//! Ordinary programs: what their device code counted is in files that LLVM reads, whatever clang built them.

use hotswap_profile_bench::{Bench, Counts, Instrument};

/// `launches` of the stand-in: counter K of a function has grown by 100 + K each time.
fn counts(functions: &[(&str, usize)], launches: u64) -> Counts {
    let counters = |number: usize| (0..number as u64).map(|index| launches * (100 + index)).collect();
    functions.iter().map(|(name, number)| ((*name).to_owned(), counters(*number))).collect()
}

const SAXPY: &[(&str, usize)] = &[("_Z5scaleff", 2), ("_Z5saxpyifPKfPf", 2), ("_Z6unusedPi", 2)];

#[test]
fn each_gpu_has_its_own_file_with_all_functions() {
    let Some(bench) = Bench::new("profile drain, two GPUs") else { return };
    for &version in &bench.work.versions {
        let program = format!("saxpy-{version}");
        bench.program(version, Instrument::Coverage, "saxpy.hip", &program, true);
        let ran = bench.start(&format!("run-{version}"), "STANDIN_AGENTS=2", &format!("$B/{program}"));
        assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "clang {version}");
        let files = ran.devices();
        let nodes: Vec<bool> = ["n1", "n2"].map(|node| files.iter().any(|file| file.contains(node))).to_vec();
        assert_eq!((files.len(), nodes), (2, vec![true, true]), "clang {version}: {files:?}");
        // GPU 1 was launched once, GPU 2 twice.
        assert_eq!(bench.counts(version, &ran, &files), counts(SAXPY, 3), "clang {version}");
        assert_eq!(bench.counts(version, &ran, &files[..1]), counts(SAXPY, 1), "clang {version}");
        assert!(ran.files.contains(&"default.profraw".to_owned()), "clang {version}: the host's profile is lost");
    }
}
