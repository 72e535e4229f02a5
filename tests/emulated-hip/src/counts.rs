//! The bench of counts: programs with counters in host and device code, by the installed clangs, with the drain.

use crate::{EmulationBench, ProgramRun};
use std::collections::BTreeMap;

/// Counters of the drain's link, as HotSwap's driver adds them.
const DRAIN: &str = "-Xlinker -u -Xlinker hotswap_profile_drain -x none drain.a";

/// A bench with the drain, and the device runtimes of the clangs that need one.
#[derive(Debug)]
pub struct CountBench {
    /// Its directory and programs.
    pub bench: EmulationBench,
}

impl CountBench {
    /// `None` without a userland, after printing the reason.
    #[must_use]
    pub fn new(test: &str) -> Option<Self> {
        let bench = EmulationBench::new(test)?;
        bench.work.write("drain.a", hotswap_profile_drain::ARCHIVE);
        bench.work.write("runtime.c", include_bytes!("../../profile-bench/standin/device_runtime.c"));
        for version in bench.work.versions.iter().filter(|version| **version > 22) {
            bench.work.run(&format!(
                "clang-{version} --target=amdgcn-amd-amdhsa -nogpulib -nostdlibinc -ffreestanding -flto \
                 -Xclang -mcode-object-version=none -fPIC -fvisibility=hidden -O2 -c runtime.c -o runtime.o && \
                 llvm-ar-{version} crs runtime-{version}.a runtime.o"
            ));
        }
        Some(Self { bench })
    }

    /// A clang with counters in host and device code, up to the inputs.
    #[must_use]
    pub fn clang(version: u32) -> String {
        let own = if version > 22 {
            format!(
                "${{ROCM:+--rocm-path=$ROCM}} -Xoffload-linker $PWD/runtime-{version}.a -Xarch_device -mllvm=-offload-pgo-sampling=0"
            )
        } else {
            "-Xarch_device -fprofile-update=atomic".to_owned()
        };
        format!("clang++-{version} -O1 -w {own} -fprofile-instr-generate -fcoverage-mapping")
    }

    /// Compiles sources to a program with the drain.
    pub fn program(&self, version: u32, gpus: &str, sources: &str, output: &str) {
        let clang = Self::clang(version);
        self.bench
            .work
            .run(&format!("{clang} --offload-arch={gpus} -x hip {sources} {DRAIN} -lamdhip64 -lhiprtc -o {output}"));
    }

    /// Compiles a source to a library with the drain.
    pub fn library(&self, version: u32, gpus: &str, source: &str, output: &str) {
        let clang = Self::clang(version);
        self.bench.work.run(&format!(
            "{clang} --offload-arch={gpus} -fPIC -shared -x hip {source} {DRAIN} -lamdhip64 -o {output}"
        ));
    }

    /// Runs a program in a directory of its own, with a pattern for its profiles.
    #[must_use]
    pub fn run(&self, directory: &str, gpus: &str, pattern: &str, command: &str) -> ProgramRun {
        self.bench.work.run(&format!("mkdir -p {directory}"));
        let library = "$PWD/lib/hotswap/emulated";
        let variables = format!("LD_LIBRARY_PATH={library} HOTSWAP_EMULATE={gpus} LLVM_PROFILE_FILE={pattern} B=$PWD");
        self.bench.script(&format!("export {variables}\ncd {directory}\n"), command)
    }

    /// How often each function was entered, by the profiles of devices of a directory.
    ///
    /// # Panics
    /// If llvm-profdata refuses them.
    #[must_use]
    pub fn counts(&self, version: u32, directory: &str) -> BTreeMap<String, u64> {
        self.counts_of(version, directory, "gfx*.profraw*", "Function count: ")
    }

    /// How often the loop with the launches ran, by the profiles of the host.
    ///
    /// # Panics
    /// If llvm-profdata refuses them.
    #[must_use]
    pub fn host_launches(&self, version: u32, directory: &str) -> u64 {
        let counts = self.counts_of(version, directory, "$(ls | grep -v ^gfx | grep profraw)", "Block counts: [");
        counts.iter().find(|(name, _)| name.ends_with("_ZL4worki")).map_or(0, |(_, count)| *count)
    }

    /// The first number after `key` of each function, in the profiles with those names.
    fn counts_of(&self, version: u32, directory: &str, files: &str, key: &str) -> BTreeMap<String, u64> {
        let shown = self.bench.work.run(&format!(
            "cd {directory} && llvm-profdata-{version} merge --failure-mode=any -o merged.profdata {files} && \
             llvm-profdata-{version} show --all-functions --counts merged.profdata"
        ));
        let mut counts = BTreeMap::new();
        let mut name = String::new();
        for line in shown.lines() {
            let word = line.trim();
            if let Some(count) = word.strip_prefix(key) {
                let count = count.split([',', ']']).nth(usize::from(key.ends_with('['))).unwrap_or_default();
                *counts.entry(name.clone()).or_default() += count.trim().parse::<u64>().unwrap_or_default();
            } else if line.starts_with("  ") && word.ends_with(':') {
                word.trim_end_matches(':').clone_into(&mut name);
            }
        }
        counts
    }
}
