//! The bench of the profile drain: programs with real device code, without a GPU.
//!
//! Real clangs build them; stand-ins of HSA and HIP (`standin/`), compiled at test time, load the code objects and
//! count launches instead of running them. LLVM's own tools of the same version judge the profiles.
//!
//! Invariants: one scratch directory for a test, one directory in it for a run; programs see the stand-ins through
//! `LD_LIBRARY_PATH`, compilers and linkers never do.

pub mod objects;
mod profile;

pub use profile::{Counts, Profile};

use hotswap_userland::Workbench;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Sources of the stand-ins and of the cases, as file name and text.
const FILES: &[(&str, &str)] = &[
    ("standin.h", include_str!("../standin/standin.h")),
    ("hsa.c", include_str!("../standin/hsa.c")),
    ("hsa.map", include_str!("../standin/hsa.map")),
    ("hip.c", include_str!("../standin/hip.c")),
    ("hip.map", include_str!("../standin/hip.map")),
    ("failing.c", include_str!("../standin/failing.c")),
    ("device_runtime.c", include_str!("../standin/device_runtime.c")),
    ("hip.h", include_str!("../cases/hip.h")),
    ("saxpy.hip", include_str!("../cases/saxpy.hip")),
    ("coverage.hip", include_str!("../cases/coverage.hip")),
    ("conditions.hip", include_str!("../cases/conditions.hip")),
    ("script.hip", include_str!("../cases/script.hip")),
    ("plugin.hip", include_str!("../cases/plugin.hip")),
    ("object.hip", include_str!("../cases/object.hip")),
    ("large.hip", include_str!("../cases/large.hip")),
    ("late.c", include_str!("../cases/late.c")),
    ("direct.c", include_str!("../cases/direct.c")),
    ("small.c", include_str!("../cases/small.c")),
    ("quiet.hip", include_str!("../cases/quiet.hip")),
    ("leaving.cpp", include_str!("../cases/leaving.cpp")),
];

/// The instrumented side of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instrument {
    /// Host and device, for coverage.
    Coverage,
    /// Host and device, with LLVM's own instrumentation.
    Ir,
    /// Device only, for coverage.
    DeviceCoverage,
    /// Device only, with LLVM's own instrumentation.
    DeviceIr,
}

/// Arguments that select the drain in a link, as HotSwap's driver adds them: the archive is the last input.
pub const DRAIN: &str = "-Xlinker -u -Xlinker hotswap_profile_drain drain.a";

/// Compilers, stand-ins and a directory.
#[derive(Debug)]
pub struct ProfileBench {
    /// The directory, and the installed compilers.
    pub work: Workbench,
}

/// The counts after `launches` of the stand-in: counter K of a function grows by 100 + K each time.
pub fn counts(functions: &[(&str, usize)], launches: u64) -> Counts {
    functions.iter().map(|(name, number)| ((*name).to_owned(), expected_launch_counters(*number, launches))).collect()
}

fn expected_launch_counters(number: usize, launches: u64) -> Vec<u64> {
    (0..number as u64).map(|index| launches * (100 + index)).collect()
}

/// Functions of `saxpy.hip` and their counters.
pub const SAXPY: &[(&str, usize)] = &[("_Z5scaleff", 2), ("_Z5saxpyifPKfPf", 2), ("_Z6unusedPi", 2)];
/// Functions of `script.hip` and their counters.
pub const SCRIPT: &[(&str, usize)] = &[("_Z5scaleff", 2), ("_Z5saxpyifPKfPf", 2)];
/// Functions of `plugin.hip` and their counters.
pub const PLUGIN: &[(&str, usize)] = &[("_Z4bumpPi", 2)];

/// The result of a program.
#[derive(Debug)]
pub struct Ran {
    /// Its exit code; `None` when a signal ended it.
    pub code: Option<i32>,
    pub error: String,
    /// Names of the files of its directory.
    pub files: Vec<String>,
    /// The directory, in that of the bench.
    pub directory: String,
}

impl Ran {
    /// Files with profiles of devices.
    pub fn devices(&self) -> Vec<String> {
        self.files.iter().filter(|name| name.starts_with("gfx")).cloned().collect()
    }

    /// Warnings of our drain.
    pub fn warnings(&self) -> Vec<&str> {
        self.error.lines().filter(|line| line.starts_with("hotswap-profile-drain: warning: ")).collect()
    }
}

impl ProfileBench {
    /// `None` without a userland, after printing the reason.
    pub fn new(test: &str) -> Option<Self> {
        let work = Workbench::new(test)?;
        for (name, text) in FILES {
            work.write(name, text.as_bytes());
        }
        work.write("drain.a", hotswap_profile_drain::ARCHIVE);
        let mut script = String::from(
            "set -e; mkdir lib
            shared() { clang-22 -O1 -shared -fPIC -Wall -Wextra -Werror \"$1.c\" -o \"lib/$2\" -Wl,-soname,\"$2\" \\
                -Wl,--version-script=\"$1.map\" $3; }
            shared hsa libhsa-runtime64.so.1; shared hip libamdhip64.so.7 lib/libhsa-runtime64.so.1
            clang-22 -O1 -shared -fPIC -Wall -Wextra -Werror failing.c -o lib/failing.so\n",
        );
        for version in work.versions.iter().filter(|version| **version > 22) {
            let _ = writeln!(
                script,
                "clang-{version} --target=amdgcn-amd-amdhsa -nogpulib -nostdlibinc -ffreestanding -flto \
                 -Xclang -mcode-object-version=none -fPIC -fvisibility=hidden -O2 -c device_runtime.c -o runtime.o
                 llvm-ar-{version} crs runtime-{version}.a runtime.o"
            );
        }
        work.run(&script);
        Some(Self { work })
    }

    /// The command that compiles HIP with that clang, up to its inputs; a link needs [`ProfileBench::link`] after them.
    pub fn clang(&self, version: u32, instrument: Instrument) -> String {
        let mut words = format!("clang++-{version} -nogpuinc -I. -O1");
        if version > 22 {
            let _ = write!(words, " ${{ROCM:+--rocm-path=$ROCM}} -Xoffload-linker $PWD/runtime-{version}.a");
            words += " -Xarch_device -mllvm=-offload-pgo-sampling=0";
        } else {
            words += " -Xarch_device -fprofile-update=atomic -Xarch_device -mllvm=-disable-vp";
        }
        words += match instrument {
            Instrument::Coverage => " -fprofile-instr-generate -fcoverage-mapping",
            Instrument::Ir => " -fprofile-generate",
            Instrument::DeviceCoverage => " -Xarch_device -fprofile-instr-generate -Xarch_device -fcoverage-mapping",
            Instrument::DeviceIr => " -Xarch_device -fprofile-generate",
        };
        words
    }

    /// Arguments after the inputs of a link: with the drain, or with clang's own runtime.
    pub fn link(drain: bool) -> String {
        format!("-x none {} -lamdhip64", if drain { DRAIN } else { "" })
    }

    /// Builds a program of one source for gfx90a.
    pub fn program(&self, version: u32, instrument: Instrument, source: &str, output: &str, drain: bool) {
        let (clang, link) = (self.clang(version, instrument), Self::link(drain));
        self.work.run(&format!("{clang} --offload-arch=gfx90a -x hip {source} {link} -o {output}"));
    }

    /// `script.hip` as a program, and its device code as files: `NAME.fat` with a bundle, `NAME.elf` bare.
    pub fn script(&self, version: u32, instrument: Instrument, name: &str, drain: bool) {
        self.program(version, instrument, "script.hip", name, drain);
        self.work.run(&format!(
            "llvm-objcopy-{version} --dump-section=.hip_fatbin={name}.fat {name} && \
             target=$(clang-offload-bundler-{version} --list --type=o --input={name}.fat | grep gfx) && \
             clang-offload-bundler-{version} --unbundle --type=o --input={name}.fat --targets=$target --output={name}.elf"
        ));
    }

    /// Runs a command in a new directory, on the stand-ins; `$B` is the directory of the bench.
    ///
    /// # Panics
    /// If the directory was used before.
    pub fn start(&self, directory: &str, variables: &str, command: &str) -> Ran {
        self.work.run(&format!("mkdir {directory}"));
        self.again(directory, variables, command)
    }

    /// The same in an existing directory.
    ///
    /// # Panics
    /// If the directory cannot be read.
    pub fn again(&self, directory: &str, variables: &str, command: &str) -> Ran {
        let script =
            format!("export B=$PWD; cd {directory} && export LD_LIBRARY_PATH=$B/lib {variables}; exec {command}");
        let output = self.work.shell(&script);
        let entries = std::fs::read_dir(self.work.path(directory)).expect("the directory was made");
        let mut files: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        files.sort();
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        Ran { code: output.status.code(), error, files, directory: directory.to_owned() }
    }

    /// The sums of the counts that llvm-profdata of that version reads in the files.
    pub fn counts(&self, version: u32, ran: &Ran, files: &[String]) -> Counts {
        self.profile(version, ran, files).counts
    }

    /// The files merged, and shown.
    pub fn profile(&self, version: u32, ran: &Ran, files: &[String]) -> Profile {
        if files.is_empty() {
            return Profile { level: String::new(), counts: BTreeMap::new() };
        }
        let script = format!(
            "cd {} && llvm-profdata-{version} merge --failure-mode=any -o merged.profdata {} && \
             llvm-profdata-{version} show --all-functions --counts merged.profdata",
            ran.directory,
            files.join(" ")
        );
        profile::parse(&self.work.run(&script))
    }
}
