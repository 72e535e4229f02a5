//! `cargo xtask bench project`: a generated project of many HIP files, configured by CMake and built by Ninja, with clang and through
//! HotSwap.
//!
//! The builds take turns after every few files, and seconds of processors are compared, which other work on the machine changes least;
//! those by the clock are shown beside. HotSwap's builds share one cache directory, which must not grow after the first build.
//!
//! Absent on purpose: files that include HIP's headers (`bench files` has those). The files here are as small as HIP files can be, so that
//! the costs of a command are not lost among those of the compiler.

use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::timer::median;
use crate::{bench_page, install, paths, remove, run};
use std::fmt::Write;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

const CLANG: &str = "/usr/lib/llvm-22/bin/clang++";
const FILES: usize = 1500;
/// Configurations and builds with nothing to do that are measured.
const ROUNDS: usize = 7;
/// Files that a build compiles before it is the next one's turn.
const BATCH: usize = 50;
/// Files of the second and the third build, which show whether the cache directory grows.
const REPEATED: usize = 200;
/// Ratio of the times of configuring, and of building with nothing to do.
const RATIO: f64 = 1.10;
/// Milliseconds for each file beyond those of clang for one GPU.
const OVERHEAD: f64 = 15.0;
const SEVEN: &str = "gfx1030;gfx1031;gfx1032;gfx1033;gfx1034;gfx1035;gfx1036";
/// Runs a command, and prints the seconds of all processors and of the clock that it took.
const TIMED: &str = "import resource, subprocess, sys, time
start = time.monotonic()
code = subprocess.run(sys.argv[1:], stdout=sys.stderr).returncode
seconds = time.monotonic() - start
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(used.ru_utime + used.ru_stime, seconds)
sys.exit(code)";
/// The project without its list of files.
const PROJECT: &str = "\
cmake_minimum_required(VERSION 3.27)
project(scale LANGUAGES CXX)
set(CMAKE_HIP_ARCHITECTURES gfx1030 CACHE STRING \"GPUs to compile for\")
find_package(HotSwap)
enable_language(HIP)
find_package(hip REQUIRED)
include(files.cmake)
add_library(scale SHARED ${files})
target_compile_options(scale PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-nogpuinc;-nogpulib>)
target_link_libraries(scale PRIVATE hip::host)
if(HotSwap_FOUND AND SCALE_COALESCE)
  add_hotswap_target(scale COALESCE)
elseif(HotSwap_FOUND)
  add_hotswap_target(scale RETARGET gfx1030=>gfx1031,gfx1032,gfx1033,gfx1034,gfx1035,gfx1036)
endif()
";
/// The part of HIP's headers that a kernel needs.
const HEADER: &str = "\
#define __global__ __attribute__((global))
struct dim3 { unsigned x, y, z; };
typedef int hipError_t;
typedef struct ihipStream_t *hipStream_t;
extern \"C\" hipError_t __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, hipStream_t *);
extern \"C\" hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
";

/// One of the builds of the project.
struct ProjectBuild {
    name: &'static str,
    options: &'static [&'static str],
}

#[rustfmt::skip]
const BUILDS: [ProjectBuild; 3] = [
    ProjectBuild { name: "one", options: &["-DCMAKE_DISABLE_FIND_PACKAGE_HotSwap=ON"] },
    ProjectBuild { name: "retarget", options: &[] },
    ProjectBuild { name: "coalesce", options: &["-DSCALE_COALESCE=ON"] },
];

/// Seconds of one command.
#[derive(Clone, Copy, Default)]
struct CommandTime {
    processors: f64,
    clock: f64,
}

/// The times of the three builds in one round.
type RoundTimes = [CommandTime; 3];

/// Files and bytes of a directory.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct DirectorySize {
    files: u64,
    bytes: u64,
}

/// All figures of the table.
#[derive(Default)]
struct ProjectTimes {
    files: usize,
    configured: Vec<RoundTimes>,
    /// A round for each batch of files.
    compiled: Vec<RoundTimes>,
    /// The number of files of each batch.
    batches: Vec<usize>,
    linked: Vec<RoundTimes>,
    nothing: Vec<RoundTimes>,
    /// HotSwap's cache directory after the configuration, and after each of three builds.
    cache: Vec<DirectorySize>,
}

struct ProjectBench {
    session: Session,
    /// The machine's directory that is visible inside as [`Session::work`].
    work: PathBuf,
}

pub(crate) fn main(rounds: Option<usize>, files: Option<usize>, installed: Option<&Path>) -> Outcome {
    let prefix = installed.map_or_else(|| Ok(paths::scratch("prefix")), fs::canonicalize)?;
    let work = paths::scratch("project");
    remove::delete(&work)?;
    let session = Session::open(Part::Tests, &prefix, &work)?;
    if installed.is_none() {
        install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    }
    let bench = ProjectBench { session, work: work.clone() };
    let times = bench.measure(rounds.unwrap_or(ROUNDS).max(1), files.unwrap_or(FILES).max(1))?;
    bench_page::write_part("project", &table(&times))?;
    remove::delete(&work)?;
    let failures = failures(&times);
    if failures.is_empty() { Ok(()) } else { fail(failures.join("; ")) }
}

impl ProjectBench {
    fn measure(&self, rounds: usize, files: usize) -> Outcome<ProjectTimes> {
        self.generate(files)?;
        let mut times = ProjectTimes { files, ..ProjectTimes::default() };
        for _ in 0..rounds {
            times.configured.push(self.in_turns(times.configured.len(), &|build| self.configure(build))?);
        }
        times.cache.push(self.cache_size()?);
        self.compile(0..files, &mut times)?;
        times.linked.push(self.in_turns(0, &|build| self.ninja(build, &[]))?);
        self.check_library()?;
        times.cache.push(self.cache_size()?);
        for round in 0..rounds {
            times.nothing.push(self.in_turns(round, &|build| self.ninja(build, &[]))?);
        }
        for _ in 0..2 {
            self.in_turns(0, &|build| self.configure(build))?;
            self.in_turns(0, &|build| self.ninja(build, &objects(0..files.min(REPEATED))))?;
            times.cache.push(self.cache_size()?);
        }
        Ok(times)
    }

    fn generate(&self, files: usize) -> Outcome {
        self.write("CMakeLists.txt", PROJECT)?;
        self.write("kernels.h", HEADER)?;
        let names: String = (0..files).map(file_name).map(|name| format!(" {name}")).collect();
        self.write("files.cmake", &format!("set(files{names})\n"))?;
        (0..files).try_for_each(|number| self.write(&file_name(number), &source(number)))
    }

    fn write(&self, name: &str, text: &str) -> Outcome {
        let path = self.work.join("sources").join(name);
        let directory = path.parent().unwrap_or(&self.work);
        fs::create_dir_all(directory).during("create", directory)?;
        fs::write(&path, text).during("write", &path)
    }

    /// Each build once; the first one is another in each round.
    fn in_turns(&self, round: usize, action: &dyn Fn(&ProjectBuild) -> Outcome<CommandTime>) -> Outcome<RoundTimes> {
        let mut times = RoundTimes::default();
        for turn in 0..BUILDS.len() {
            let number = (round + turn) % BUILDS.len();
            times[number] = action(&BUILDS[number])?;
        }
        Ok(times)
    }

    /// Configures the project in a new directory.
    fn configure(&self, build: &ProjectBuild) -> Outcome<CommandTime> {
        remove::delete(&self.work.join(build.name))?;
        let compiler = if build.name == "one" { CLANG } else { "hotswap-clang++" };
        let gpus = if build.name == "coalesce" { SEVEN } else { "gfx1030" };
        let prefix = format!("-DCMAKE_PREFIX_PATH={}", self.session.prefix.display());
        let mut words =
            vec!["cmake".to_owned(), "-GNinja".into(), "-Ssources".into(), format!("-B{}", build.name), prefix];
        words.push(format!("-DCMAKE_HIP_COMPILER={compiler}"));
        words.push(format!("-DCMAKE_HIP_ARCHITECTURES={gpus}"));
        words.extend(build.options.iter().map(|option| (*option).to_owned()));
        self.timed(&words)
    }

    /// The files of the range, a batch by each build in turn.
    fn compile(&self, range: Range<usize>, times: &mut ProjectTimes) -> Outcome {
        for start in range.clone().step_by(BATCH) {
            let batch = start..range.end.min(start + BATCH);
            let words = objects(batch.clone());
            let round = self.in_turns(times.compiled.len(), &|build| self.ninja(build, &words))?;
            let [one, retarget, coalesce] = round.map(|time| 1000.0 * time.processors / batch.len() as f64);
            println!("  files {batch:?}: {one:.0} ms a file, {retarget:.0} and {coalesce:.0} through HotSwap");
            times.compiled.push(round);
            times.batches.push(batch.len());
        }
        Ok(())
    }

    fn ninja(&self, build: &ProjectBuild, targets: &[String]) -> Outcome<CommandTime> {
        let words = ["ninja", "-C", build.name].map(str::to_owned);
        self.timed(&[&words[..], targets].concat())
    }

    fn timed(&self, words: &[String]) -> Outcome<CommandTime> {
        let mut command = self.session.inside(&self.session.work, "python3");
        command.args(["-c", TIMED]).args(words);
        // The temporary directory is new in each command; a user's cache stays.
        command.env("XDG_CACHE_HOME", self.session.work.join("cache")).env("HOTSWAP_CLANG", CLANG);
        let output = run::output(&mut command)?;
        let line = output.lines().last().unwrap_or_default();
        let read = line.split_once(' ').map(|(processors, clock)| (processors.parse(), clock.parse()));
        match read {
            Some((Ok(processors), Ok(clock))) => Ok(CommandTime { processors, clock }),
            _ => fail(format!("`{}` was not measured: {line}", words.join(" "))),
        }
    }

    /// The figures count only if the libraries have code for all GPUs.
    fn check_library(&self) -> Outcome {
        for build in &BUILDS[1..] {
            let place = self.session.work.join(build.name);
            let listed = run::output(self.session.inside(&place, "hotswap").args(["list", "libscale.so"]))?;
            if let Some(gpu) = SEVEN.split(';').find(|gpu| !listed.contains(gpu)) {
                return fail(format!("{}/libscale.so has no code for {gpu}", build.name));
            }
        }
        Ok(())
    }

    fn cache_size(&self) -> Outcome<DirectorySize> {
        size_of(&self.work.join("cache"))
    }
}

fn file_name(number: usize) -> String {
    format!("unit{number}.hip")
}

fn objects(files: Range<usize>) -> Vec<String> {
    files.map(|number| format!("CMakeFiles/scale.dir/{}.o", file_name(number))).collect()
}

fn source(number: usize) -> String {
    format!(
        "#include \"kernels.h\"\n__global__ void scale{number}(float *data, float by) {{\n  \
         data[__builtin_amdgcn_workitem_id_x()] *= by + {number};\n}}\n"
    )
}

/// Files below a directory, and their bytes.
fn size_of(directory: &Path) -> Outcome<DirectorySize> {
    let mut size = DirectorySize::default();
    for entry in fs::read_dir(directory).during("read", directory)? {
        let entry = entry?;
        let meta = entry.metadata().during("read", directory)?;
        let part = if meta.is_dir() { size_of(&entry.path())? } else { DirectorySize { files: 1, bytes: meta.len() } };
        size = DirectorySize { files: size.files + part.files, bytes: size.bytes + part.bytes };
    }
    Ok(size)
}

/// The median of the rounds' ratios to the first build, by processors.
fn ratio(rounds: &[RoundTimes], build: usize) -> f64 {
    median(rounds.iter().map(|round| round[build].processors / round[0].processors).collect())
}

fn seconds(rounds: &[RoundTimes], build: usize, of: fn(CommandTime) -> f64) -> f64 {
    median(rounds.iter().map(|round| of(round[build])).collect())
}

/// Milliseconds for each file beyond those of the first build: the median of the batches.
fn overhead(times: &ProjectTimes, build: usize) -> f64 {
    let rounds = times.compiled.iter().zip(&times.batches);
    median(
        rounds.map(|(round, files)| 1000.0 * (round[build].processors - round[0].processors) / *files as f64).collect(),
    )
}

fn ratio_failure(name: &str, build: &ProjectBuild, ratio: f64) -> Option<String> {
    (ratio > RATIO).then(|| format!("{}, {name}: {ratio:.3} of clang's time, at most {RATIO}", build.name))
}

fn failures(times: &ProjectTimes) -> Vec<String> {
    let mut failures = Vec::new();
    for (number, build) in BUILDS.iter().enumerate().skip(1) {
        failures.extend(ratio_failure("configure", build, ratio(&times.configured, number)));
        failures.extend(ratio_failure("nothing to do", build, ratio(&times.nothing, number)));
        let overhead = overhead(times, number);
        if overhead > OVERHEAD {
            failures.push(format!("{}: {overhead:.1} ms more for each file, at most {OVERHEAD}", build.name));
        }
    }
    if times.cache[1..].windows(2).any(|pair| pair[0] != pair[1]) {
        failures.push("the cache directory grows with each build".to_owned());
    }
    failures
}

/// The part of the page.
fn table(times: &ProjectTimes) -> String {
    let mut text = format!(
        "## A project of {} HIP files, for seven GPUs (`cargo xtask bench project`)\n\n\
         A library that CMake configures and Ninja builds, of files with one small kernel that include nothing of HIP; *one* is clang for \
         gfx1030, the others make code for gfx1030 to gfx1036 through HotSwap. Seconds of processors (by the clock in brackets): medians of \
         {} rounds; of the files, sums of turns of {BATCH} files, and the median of the turns' differences.\n\n\
         | | one | RETARGET | COALESCE |\n| --- | --- | --- | --- |\n",
        times.files,
        times.configured.len(),
    );
    add_row(&mut text, "configure, s", &times.configured);
    add_ratios(&mut text, "configure, × one", &times.configured);
    add_row(&mut text, "compile all files, s", &[sum(&times.compiled)]);
    let overheads = [1, 2].map(|build| format!("{:+.1}", overhead(times, build))).join(" | ");
    let _ = writeln!(text, "| more for each file, ms | | {overheads} |");
    add_row(&mut text, "link, s", &times.linked);
    add_row(&mut text, "build with nothing to do, s", &times.nothing);
    add_ratios(&mut text, "nothing to do, × one", &times.nothing);
    text += "\n| HotSwap's cache directory | files | bytes |\n| --- | --- | --- |\n";
    let repeated = format!("a build of {} files more", times.files.min(REPEATED));
    let moments = ["the configuration", "the build", &repeated, "one more of them"];
    for (moment, size) in moments.iter().zip(&times.cache) {
        let _ = writeln!(text, "| after {moment} | {} | {} |", size.files, size.bytes);
    }
    let holds = if failures(times).is_empty() { "holds" } else { "does not hold" };
    let _ = writeln!(
        text,
        "\nPromised: at most {OVERHEAD:.0} ms more for each file, {RATIO:.1} × for configuring and for nothing to do, and no growth \
         after a build: {holds}."
    );
    text
}

fn add_row(text: &mut String, name: &str, rounds: &[RoundTimes]) {
    let cells = [0, 1, 2].map(|build| {
        let [processors, clock] =
            [|time: CommandTime| time.processors, |time: CommandTime| time.clock].map(|of| seconds(rounds, build, of));
        format!("{processors:.2} ({clock:.2})")
    });
    let _ = writeln!(text, "| {name} | {} |", cells.join(" | "));
}

fn add_ratios(text: &mut String, name: &str, rounds: &[RoundTimes]) {
    let ratios = [1, 2].map(|build| format!("{:.3}", ratio(rounds, build))).join(" | ");
    let _ = writeln!(text, "| {name} | | {ratios} |");
}

fn sum(rounds: &[RoundTimes]) -> RoundTimes {
    let mut sums = RoundTimes::default();
    for round in rounds {
        for (sum, time) in sums.iter_mut().zip(round) {
            *sum = CommandTime { processors: sum.processors + time.processors, clock: sum.clock + time.clock };
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(seconds: [f64; 3]) -> RoundTimes {
        seconds.map(|processors| CommandTime { processors, clock: 2.0 * processors })
    }

    fn measured(configured: [f64; 3], compiled: [f64; 3], cache: [u64; 4]) -> ProjectTimes {
        ProjectTimes {
            files: 100,
            configured: vec![round(configured)],
            compiled: vec![round(compiled)],
            batches: vec![100],
            linked: vec![round([1.0; 3])],
            nothing: vec![round([1.0; 3])],
            cache: cache.map(|files| DirectorySize { files, bytes: 10 * files }).to_vec(),
        }
    }

    #[test]
    fn each_bar_is_judged() {
        assert!(failures(&measured([1.0, 1.1, 1.1], [10.0, 11.5, 11.5], [3, 4, 4, 4])).is_empty());
        assert_eq!(failures(&measured([1.0, 1.2, 1.1], [10.0, 11.5, 11.5], [3, 4, 4, 4])).len(), 1);
        assert_eq!(failures(&measured([1.0, 1.1, 1.1], [10.0, 11.6, 12.0], [3, 4, 4, 4])).len(), 2);
        assert_eq!(failures(&measured([1.0, 1.1, 1.1], [10.0, 10.0, 10.0], [3, 4, 4, 5])).len(), 1);
    }

    #[test]
    fn the_table_has_overheads_by_file_and_the_cache_after_each_build() {
        let text = table(&measured([1.0, 1.05, 1.1], [10.0, 11.0, 11.25], [3, 4, 4, 4]));
        assert!(text.contains("| more for each file, ms | | +10.0 | +12.5 |"), "{text}");
        assert!(text.contains("| compile all files, s | 10.00 (20.00) | 11.00 (22.00) | 11.25 (22.50) |"), "{text}");
        assert!(text.contains("| after a build of 100 files more | 4 | 40 |"), "{text}");
        assert!(text.contains("holds"), "{text}");
    }
}
