//! `cargo xtask bench files`: small HIP files of other projects, compiled for one GPU and for seven, by clang and through HotSwap.
//!
//! The four builds of a file take turns in one run, and seconds of processors are compared, which other work on the machine changes
//! least. Every build for seven GPUs must have the code objects of clang's; LLVM's tools take them out.
//!
//! Absent on purpose: files that include libraries of templates (rocPRIM, rocThrust). `cargo xtask projects` has those, and there
//! both compilers spend their time on the headers, once for each GPU or once for all.

use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::packages::{Origin, Package, Packages};
use crate::projects::{MAGMA_HEADERS, TIMED};
use crate::recipe::Part;
use crate::session::Session;
use crate::{bench_page, install, paths, remove, run, timer};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const CLANG: &str = "/usr/lib/llvm-22/bin/clang++";
pub(crate) const SEVEN: [&str; 7] = ["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"];
/// The bar of the sums: seven GPUs, against clang's build for one.
const LIMIT: f64 = 1.10;
const ROUNDS: usize = 2;

/// Files of one project, and the options of its own build system that matter.
pub(crate) struct FileGroup {
    pub(crate) project: &'static str,
    sources: Package,
    /// The directories of the sources that are needed.
    copied: &'static [&'static str],
    /// Packages of headers, which are searched in this order.
    headers: &'static [Package],
    options: &'static [&'static str],
    /// The directory and the end of each file's name.
    pub(crate) directory: &'static str,
    pub(crate) ending: &'static str,
    pub(crate) files: &'static [&'static str],
}

const fn experimental(name: &'static str) -> Package {
    Package { name, origin: Origin::Experimental }
}

#[rustfmt::skip]
pub(crate) const GROUPS: &[FileGroup] = &[
    FileGroup {
        project: "MAGMA",
        sources: Package { name: "magma-rocm", origin: Origin::DebianSource },
        copied: &["include", "control", "magmablas_hip"],
        headers: MAGMA_HEADERS,
        options: &["-DMAGMA_HAVE_HIP", "-DADD_", "-Iinclude", "-Icontrol", "-Imagmablas_hip"],
        directory: "magmablas_hip",
        ending: ".hip.cpp",
        files: &["caxpycp", "cgeadd", "clascl2", "dgeadd_batched", "dlacpy_conj", "dlaset_band", "dlascl", "dswap", "dswapblk",
                 "sgemv_conj", "slarfbx", "slascl2", "sswapblk", "zgeadd2", "zsymmetrize"],
    },
    FileGroup {
        project: "LAMMPS",
        sources: Package { name: "lammps", origin: Origin::DebianSource },
        copied: &["gpu"],
        headers: &[],
        options: &["-DUSE_HIP", "-D_SINGLE_DOUBLE", "-Igpu"],
        directory: "gpu",
        ending: ".cu",
        files: &["lal_atom", "lal_beck", "lal_born", "lal_coul", "lal_dpd", "lal_eam", "lal_gauss", "lal_lj", "lal_lj96", "lal_morse",
                 "lal_soft", "lal_yukawa"],
    },
    FileGroup {
        project: "ggml",
        sources: Package { name: "llama-cpp-sys-2", origin: Origin::Crate { version: "0.1.161" } },
        copied: &["llama.cpp/ggml/include", "llama.cpp/ggml/src"],
        headers: &[experimental("libhipblas-dev"), experimental("librocblas-dev"), experimental("libhipblas-common-dev")],
        options: &["-std=c++17", "-DGGML_USE_HIP", "-Illama.cpp/ggml/include", "-Illama.cpp/ggml/src", "-Illama.cpp/ggml/src/ggml-cuda"],
        directory: "llama.cpp/ggml/src/ggml-cuda",
        ending: ".cu",
        files: &["acc", "clamp", "scale"],
    },
];

/// One of the four builds of a file.
struct FileBuild {
    name: &'static str,
    compiler: &'static str,
    gpus: usize,
    coalesced: bool,
    plan: bool,
}

const BUILDS: [FileBuild; 4] = [
    FileBuild { name: "one", compiler: CLANG, gpus: 1, coalesced: false, plan: false },
    FileBuild { name: "retarget", compiler: "hotswap-clang++", gpus: 1, coalesced: false, plan: true },
    FileBuild { name: "coalesce", compiler: "hotswap-clang++", gpus: 7, coalesced: true, plan: false },
    FileBuild { name: "seven", compiler: CLANG, gpus: 7, coalesced: false, plan: false },
];

/// Seconds of processors of the four builds, and of which two the code objects equal clang's.
struct FileTimes {
    project: &'static str,
    file: &'static str,
    seconds: [f64; 4],
    equal: [bool; 2],
}

struct FileBench {
    session: Session,
    /// The machine's directory that is visible inside as [`Session::work`].
    work: PathBuf,
    packages: Packages,
    rounds: usize,
}

pub(crate) fn main(rounds: Option<usize>, installed: Option<&Path>) -> Outcome {
    let (prefix, work) = (installed.map_or_else(|| paths::scratch("prefix"), Path::to_owned), paths::scratch("files"));
    remove::delete(&work)?;
    let session = Session::open(Part::Tests, &fs::canonicalize(&prefix).unwrap_or(prefix.clone()), &work)?;
    if installed.is_none() {
        install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    }
    let bench =
        FileBench { session, work: work.clone(), packages: Packages::open()?, rounds: rounds.unwrap_or(ROUNDS).max(1) };
    let mut times = Vec::new();
    for group in GROUPS {
        bench.measure_group(group, &mut times)?;
        // A run that is ended early leaves the projects that are complete; the table says how many files it has.
        bench_page::write_part("files", &table(&times, bench.rounds))?;
    }
    let failures = failures(&times);
    remove::delete(&work)?;
    if failures.is_empty() { Ok(()) } else { fail(failures.join("; ")) }
}

impl FileGroup {
    /// Copies what is compiled to a directory with the project's name in `work`; the options to compile it with there.
    pub(crate) fn copy_sources(&self, packages: &Packages, work: &Path) -> Outcome<Vec<String>> {
        let sources = packages.get(&self.sources)?.directory;
        let place = work.join(self.project);
        for directory in self.copied {
            copy(&sources.join(directory), &place.join(directory))?;
        }
        let mut options: Vec<String> = self.options.iter().map(|option| (*option).to_owned()).collect();
        for package in self.headers {
            copy(&packages.get(package)?.directory.join("usr/include"), &place.join(package.name))?;
            options.push(format!("-I{}", package.name));
        }
        Ok(options)
    }
}

impl FileBench {
    fn measure_group(&self, group: &'static FileGroup, times: &mut Vec<FileTimes>) -> Outcome {
        let options = group.copy_sources(&self.packages, &self.work)?;
        for file in group.files {
            let measured = self.measure_file(group, file, &options)?;
            let [one, retarget, coalesce, seven] = measured.seconds;
            println!("  {:24} {one:6.2} {retarget:6.2} {coalesce:6.2} {seven:6.2} {:?}", measured.file, measured.equal);
            times.push(measured);
        }
        Ok(())
    }

    fn measure_file(&self, group: &FileGroup, file: &'static str, options: &[String]) -> Outcome<FileTimes> {
        let place = self.session.work.join(group.project);
        let source = format!("{}/{file}{}", group.directory, group.ending);
        let mut seconds = [f64::INFINITY; 4];
        for round in 0..self.rounds {
            // The long build is shown for comparison only, and one round of it is enough.
            let builds = if round == 0 { &BUILDS[..] } else { &BUILDS[..3] };
            for (number, build) in builds.iter().enumerate() {
                seconds[number] = seconds[number].min(self.compile(&place, build, &source, options)?);
            }
        }
        let expected = self.code_objects(group, "seven")?;
        let mut equal = [false; 2];
        for (number, build) in BUILDS[1..3].iter().enumerate() {
            equal[number] = self.code_objects(group, build.name)? == expected;
        }
        Ok(FileTimes { project: group.project, file, seconds, equal })
    }

    /// Compiles the file, and returns seconds of processors.
    fn compile(&self, place: &Path, build: &FileBuild, source: &str, options: &[String]) -> Outcome<f64> {
        let mut command = self.session.inside(place, "python3");
        command.args(["-c", TIMED, build.compiler, "-x", "hip", "-O2", "-w", "-c", source, "-o"]);
        command.arg(format!("{}.o", build.name)).args(options);
        // Clang makes this identifier, a symbol in code objects, of its arguments otherwise.
        command.arg("-cuid=unit").arg(format!("--offload-arch={}", SEVEN[..build.gpus].join(",")));
        command.args(build.coalesced.then_some("-fhotswap-coalesce"));
        if build.plan {
            command.env("HOTSWAP_RETARGET", format!("{}=>{}", SEVEN[0], SEVEN[1..].join(",")));
        }
        // The temporary directory, which has the home, is new in each command; a user's cache stays.
        command.env("XDG_CACHE_HOME", self.session.work.join("cache"));
        let output = run::output(&mut command)?;
        let line = output.lines().last().unwrap_or_default();
        line.parse().or_else(|_| fail(format!("`{}` was not measured: {line}", build.compiler)))
    }

    /// The code objects of all seven GPUs in an object.
    fn code_objects(&self, group: &FileGroup, name: &str) -> Outcome<Vec<Vec<u8>>> {
        let place = self.session.work.join(group.project);
        let mut dump = self.session.inside(&place, "llvm-objcopy-22");
        run::output(dump.args(["--dump-section=.hip_fatbin=fat", &format!("{name}.o"), "/dev/null"]))?;
        let targets = SEVEN.map(|gpu| format!("hipv4-amdgcn-amd-amdhsa--{gpu}")).join(",");
        let mut unbundle = self.session.inside(&place, "clang-offload-bundler-22");
        unbundle.args(["-unbundle", "-type=o", "-input=fat", &format!("-targets={targets}")]);
        run::output(unbundle.args(SEVEN.map(|gpu| format!("-output={gpu}.co"))))?;
        let files = SEVEN.map(|gpu| self.work.join(group.project).join(format!("{gpu}.co")));
        let mut codes = Vec::new();
        for file in files {
            codes.push(fs::read(&file).during("read", &file)?);
            fs::remove_file(&file).during("delete", &file)?;
        }
        Ok(codes)
    }
}

pub(crate) fn copy(from: &Path, to: &Path) -> Outcome {
    let parent = to.parent().unwrap_or(to);
    fs::create_dir_all(parent).during("create", parent)?;
    run::output(Command::new("cp").arg("-a").arg(from).arg(to)).map(drop)
}

/// The sum of a build's seconds, against clang's for one GPU.
fn sum_ratio(times: &[FileTimes], build: usize) -> f64 {
    build_seconds(times, build) / build_seconds(times, 0)
}

fn build_seconds(times: &[FileTimes], build: usize) -> f64 {
    times.iter().map(|file| file.seconds[build]).sum()
}

fn median_ratio(times: &[FileTimes], build: usize) -> f64 {
    timer::median(times.iter().map(|file| file.seconds[build] / file.seconds[0]).collect())
}

/// Files with other code than clang's, and sums above the bar.
fn failures(times: &[FileTimes]) -> Vec<String> {
    let mut failures = Vec::new();
    for (number, build) in BUILDS.iter().enumerate().take(3).skip(1) {
        let other = times.iter().filter(|file| !file.equal[number - 1]);
        failures.extend(other.map(|file| format!("{}: {}: code objects differ from clang's", file.file, build.name)));
        let ratio = sum_ratio(times, number);
        if ratio > LIMIT {
            failures.push(format!("{}: {ratio:.3} of clang's time for one GPU, at most {LIMIT}", build.name));
        }
    }
    failures
}

/// The part of the page: a row for each file, then sums and medians.
fn table(times: &[FileTimes], rounds: usize) -> String {
    let mut text = format!(
        "## {} of {} small files of other projects, for seven GPUs (`cargo xtask bench files`)\n\n\
         Seconds of processors, the least of {rounds} round{} (clang for seven GPUs: one), of `-O2 -c`; *one* is clang for gfx1030, *seven* clang for \
         gfx1030 to gfx1036, and the others make the same seven through HotSwap.\n\n\
         | project | file | one, s | RETARGET / one | COALESCE / one | seven / one | code objects equal clang's |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n",
        times.len(),
        GROUPS.iter().map(|group| group.files.len()).sum::<usize>(),
        if rounds == 1 { "" } else { "s" },
    );
    for FileTimes { project, file, seconds, equal } in times {
        let [one, retarget, coalesce, seven] = seconds;
        let ratios = [retarget, coalesce, seven].map(|time| format!("{:.3}", time / one)).join(" | ");
        let equal = if equal[0] && equal[1] { "yes" } else { "no" };
        text += &format!("| {project} | {file} | {one:.2} | {ratios} | {equal} |\n");
    }
    let sums = [1, 2, 3].map(|build| format!("{:.3}", sum_ratio(times, build))).join(" | ");
    let medians = [1, 2, 3].map(|build| format!("{:.3}", median_ratio(times, build))).join(" | ");
    text += &format!("| **sum** | | | {sums} | |\n| **median** | | | {medians} | |\n");
    let holds = if failures(times).is_empty() { "holds" } else { "does not hold" };
    text + &format!(
        "\nPromised: sums of RETARGET and COALESCE of at most {LIMIT:.2}, and equal code objects: {holds}.\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(seconds: [f64; 4], equal: [bool; 2]) -> FileTimes {
        FileTimes { project: "p", file: "f", seconds, equal }
    }

    #[test]
    fn sums_over_the_bar_and_other_code_are_failures() {
        assert!(failures(&[measured([1.0, 1.1, 1.1, 4.0], [true, true])]).is_empty());
        assert_eq!(failures(&[measured([1.0, 1.11, 1.0, 4.0], [true, true])]).len(), 1);
        assert_eq!(failures(&[measured([1.0, 1.0, 1.11, 4.0], [true, false])]).len(), 2);
        // The sum counts: a file above the bar beside a long one below it.
        let both = [measured([1.0, 1.2, 1.2, 4.0], [true; 2]), measured([10.0, 10.1, 10.1, 40.0], [true; 2])];
        assert!(failures(&both).is_empty());
        assert!(table(&both, 1).contains("| **sum** | | | 1.027 | 1.027 | 4.000 | |"));
        assert!((median_ratio(&both, 1) - 1.105).abs() < 1e-9);
    }

    #[test]
    fn thirty_files_are_measured() {
        assert_eq!(GROUPS.iter().map(|group| group.files.len()).sum::<usize>(), 30);
    }
}
