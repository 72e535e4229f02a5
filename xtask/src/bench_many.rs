//! `cargo xtask bench many`: HIP files of other projects for many GPUs, by clang, and through HotSwap with warm headers and coalescing.
//!
//! Seconds of processors are compared, and builds take turns. A build that is compared must have clang's own code objects, and for one GPU
//! clang's whole object; LLVM's tools take them out.
//!
//! Absent on purpose: time of clocks, and files that were not read from the checkouts or from a package.

use crate::bench_files::{CLANG, GROUPS, SEVEN, copy};
use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::packages::Packages;
use crate::projects::TIMED;
use crate::recipe::Part;
use crate::session::Session;
use crate::{bench_page, install, paths, remove, run, timer};
use std::fs;
use std::path::{Path, PathBuf};

const ROUNDS: usize = 3;
/// The GPUs that clang 22 and the headers of HIP 7.2 compile for.
#[rustfmt::skip]
const THIRTY: [&str; 30] = [
    "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx900", "gfx902", "gfx904", "gfx906", "gfx908",
    "gfx90a", "gfx90c", "gfx942", "gfx950", "gfx1010", "gfx1011", "gfx1012", "gfx1013", "gfx1100", "gfx1101", "gfx1102", "gfx1103",
    "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201",
];
/// The GPUs of RDNA that ggml's releases are built for.
#[rustfmt::skip]
const RDNA: [&str; 13] = [
    "gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036", "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1200",
    "gfx1201",
];
/// Directories of rocm-examples with one file `main.hip` each.
const SMALL_FILES: &str = "HIP-Basic";
const LIBRARY_FILES: [&str; 8] = [
    "Libraries/hipCUB/device_sum",
    "Libraries/rocThrust/saxpy",
    "Libraries/rocPRIM/block_sum",
    "Libraries/rocPRIM/device_sum",
    "Libraries/hipCUB/device_radix_sort",
    "Libraries/rocThrust/norm",
    "Libraries/rocThrust/reduce_sum",
    "Libraries/rocThrust/vectors",
];
/// The section of an object with its device code.
const FATBIN: &[u8] = b".hip_fatbin";
const EXAMPLES: &str = "rocm-examples";

/// The build that a bar compares with.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Yardstick {
    /// Clang's for one GPU.
    One,
    /// Clang's for the same GPUs.
    Same,
}

/// The caches before the build that counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CacheState {
    /// Empty before the first file.
    Empty,
    /// Each file was compiled before.
    Known,
}

/// A row of the table.
struct ManyRow {
    name: &'static str,
    gpus: &'static [&'static str],
    words: &'static [&'static str],
    state: CacheState,
    yardstick: Yardstick,
    bar: f64,
    /// The most files that are compiled.
    files: usize,
    /// The most files that clang compiles for the same GPUs; the others are left out of that figure.
    clang_files: usize,
}

const WARM: &[&str] = &["-fhotswap-warm-headers"];
const WARM_COALESCED: &[&str] = &["-fhotswap-warm-headers", "-fhotswap-coalesce"];

#[rustfmt::skip]
const SMALL_ROWS: &[ManyRow] = &[
    ManyRow { name: "small files, 1 GPU, without the option", gpus: &["gfx1030"], words: &[], state: CacheState::Known, yardstick: Yardstick::One, bar: 1.01, files: 10, clang_files: 0 },
    ManyRow { name: "small files, 1 GPU, second build", gpus: &["gfx1030"], words: WARM, state: CacheState::Known, yardstick: Yardstick::One, bar: 0.40, files: 99, clang_files: 0 },
    ManyRow { name: "small files, 30 GPUs, first build", gpus: &THIRTY, words: WARM_COALESCED, state: CacheState::Empty, yardstick: Yardstick::One, bar: 2.5, files: 99, clang_files: 2 },
];
#[rustfmt::skip]
const LIBRARY_ROWS: &[ManyRow] = &[
    ManyRow { name: "hipCUB, rocPRIM, rocThrust, 7 GPUs, values known", gpus: &SEVEN, words: WARM_COALESCED, state: CacheState::Known, yardstick: Yardstick::One, bar: 1.9, files: 99, clang_files: 8 },
    ManyRow { name: "hipCUB, rocPRIM, rocThrust, 30 GPUs, first build", gpus: &THIRTY, words: WARM_COALESCED, state: CacheState::Empty, yardstick: Yardstick::Same, bar: 0.35, files: 3, clang_files: 8 },
];
#[rustfmt::skip]
const GGML_ROWS: &[ManyRow] = &[
    ManyRow { name: "ggml, gfx103X, gfx110X, gfx120X, first build", gpus: &RDNA, words: WARM_COALESCED, state: CacheState::Empty, yardstick: Yardstick::Same, bar: 0.35, files: 99, clang_files: 8 },
];

/// A file, and how it is compiled.
struct ManyFile {
    /// The directory, as the userland names it.
    place: PathBuf,
    source: String,
    options: Vec<String>,
}

/// Files with the rows that are measured with them.
struct ManyGroup {
    files: Vec<ManyFile>,
    rows: &'static [ManyRow],
}

/// The figures of a row.
struct RowTimes {
    row: &'static ManyRow,
    files: usize,
    /// Sums of seconds over all files.
    one: f64,
    ours: f64,
    /// Clang's for the same GPUs against its for one, of the files that it compiled for them.
    clang: Option<f64>,
    /// Ours against the yardstick, of each file.
    ratios: Vec<f64>,
    /// Files of which a code object is not clang's.
    other: Vec<String>,
    /// Files that clang does not compile.
    left_out: Vec<String>,
}

struct ManyBench {
    session: Session,
    work: PathBuf,
    rounds: usize,
}

pub(crate) fn main(rounds: Option<usize>, installed: Option<&Path>, checkouts: &Path) -> Outcome {
    let (prefix, work) = (installed.map_or_else(|| paths::scratch("prefix"), Path::to_owned), paths::scratch("many"));
    remove::delete(&work)?;
    let session = Session::open(Part::Tests, &fs::canonicalize(&prefix).unwrap_or(prefix.clone()), &work)?;
    if installed.is_none() {
        install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    }
    copy(&checkouts.join(EXAMPLES), &work.join(EXAMPLES))?;
    let bench = ManyBench { session, work: work.clone(), rounds: rounds.unwrap_or(ROUNDS).max(1) };
    let groups = [
        ManyGroup { files: bench.small_files()?, rows: SMALL_ROWS },
        ManyGroup { files: LIBRARY_FILES.map(|directory| bench.example(directory)).into(), rows: LIBRARY_ROWS },
        ManyGroup { files: bench.ggml_files()?, rows: GGML_ROWS },
    ];
    let mut times = Vec::new();
    for ManyGroup { files, rows } in &groups {
        for row in *rows {
            times.push(bench.measure_row(row, files)?);
            // A run that is ended early leaves the rows that are complete.
            bench_page::write_part("many", &table(&times, bench.rounds))?;
        }
    }
    remove::delete(&work)?;
    let failures = failures(&times);
    if failures.is_empty() { Ok(()) } else { fail(failures.join("; ")) }
}

impl ManyBench {
    fn example(&self, directory: &str) -> ManyFile {
        let options = ["-std=c++17".to_owned(), format!("-I{}/{EXAMPLES}/Common", self.session.work.display())];
        ManyFile {
            place: self.session.work.join(EXAMPLES).join(directory),
            source: "main.hip".to_owned(),
            options: options.into(),
        }
    }

    fn small_files(&self) -> Outcome<Vec<ManyFile>> {
        let directory = self.work.join(EXAMPLES).join(SMALL_FILES);
        let mut names = Vec::new();
        for entry in fs::read_dir(&directory).during("read", &directory)? {
            let entry = entry.during("read", &directory)?;
            if entry.path().join("main.hip").is_file() {
                names.push(entry.file_name().to_string_lossy().into_owned());
            }
        }
        names.sort();
        Ok(names.iter().map(|name| self.example(&format!("{SMALL_FILES}/{name}"))).collect())
    }

    fn ggml_files(&self) -> Outcome<Vec<ManyFile>> {
        let Some(group) = GROUPS.iter().find(|group| group.project == "ggml") else { return fail("ggml has no row") };
        let options = group.copy_sources(&Packages::open()?, &self.work)?;
        let files = group.files.iter().map(|file| ManyFile {
            place: self.session.work.join(group.project),
            source: format!("{}/{file}{}", group.directory, group.ending),
            options: options.clone(),
        });
        Ok(files.collect())
    }

    fn measure_row(&self, row: &'static ManyRow, files: &[ManyFile]) -> Outcome<RowTimes> {
        remove::delete(&self.work.join("cache"))?;
        let mut times = RowTimes {
            row,
            files: 0,
            one: 0.0,
            ours: 0.0,
            clang: None,
            ratios: Vec::new(),
            other: Vec::new(),
            left_out: Vec::new(),
        };
        let (mut clang_one, mut clang_all) = (0.0, 0.0);
        for file in files.iter().take(row.files) {
            let Ok(first) = self.compile(file, CLANG, &row.gpus[..1], &[], "one.o") else {
                times.left_out.push(file.name());
                continue;
            };
            let mut same = None;
            if times.files < row.clang_files {
                let all = self.compile(file, CLANG, row.gpus, &[], "same.o")?;
                (clang_one, clang_all) = (clang_one + first, clang_all + all);
                same = Some(all);
            }
            let FilePair { one, ours } = self.measure_file(row, file, first)?;
            times.files += 1;
            times.one += one;
            times.ours += ours;
            match (row.yardstick, same) {
                (Yardstick::One, _) => times.ratios.push(ours / one),
                (Yardstick::Same, Some(same)) => times.ratios.push(ours / same),
                (Yardstick::Same, None) => {}
            }
            let expected = if same.is_some() { "same.o" } else { "one.o" };
            if !self.has_equal_code(file, row, expected)? {
                times.other.push(file.name());
            }
            println!("  {:56} {one:7.2} {ours:7.2} {:7.2}", file.name(), same.unwrap_or_default());
        }
        times.clang = (clang_one > 0.0).then(|| clang_all / clang_one);
        Ok(times)
    }

    /// The median seconds of clang for one GPU, and of ours; a first build has one round.
    fn measure_file(&self, row: &ManyRow, file: &ManyFile, first: f64) -> Outcome<FilePair> {
        let ours = self.compile(file, "hotswap-clang++", row.gpus, row.words, "ours.o")?;
        if row.state == CacheState::Empty {
            return Ok(FilePair { one: first, ours });
        }
        // Headers that several sources begin with are made when they are met again.
        self.compile(file, "hotswap-clang++", row.gpus, row.words, "ours.o")?;
        let (mut one, mut known) = (vec![first], Vec::new());
        for _ in 0..self.rounds {
            known.push(self.compile(file, "hotswap-clang++", row.gpus, row.words, "ours.o")?);
            one.push(self.compile(file, CLANG, &row.gpus[..1], &[], "one.o")?);
        }
        Ok(FilePair { one: timer::median(one), ours: timer::median(known) })
    }

    /// Compiles the file, and returns seconds of processors.
    fn compile(&self, file: &ManyFile, compiler: &str, gpus: &[&str], words: &[&str], output: &str) -> Outcome<f64> {
        let mut command = self.session.inside(&file.place, "python3");
        command.args(["-c", TIMED, compiler, "-x", "hip", "-O2", "-w", "-c", &file.source, "-o", output]);
        // Clang makes this identifier, a symbol in code objects, of its arguments otherwise.
        command.args(&file.options).arg("-cuid=unit").arg(format!("--offload-arch={}", gpus.join(","))).args(words);
        // The temporary directory, which has the home, is new in each command; a user's cache stays.
        command.env("XDG_CACHE_HOME", self.session.work.join("cache"));
        let printed = run::output(&mut command)?;
        let line = printed.lines().last().unwrap_or_default();
        line.parse().or_else(|_| fail(format!("`{compiler}` was not measured: {line}")))
    }

    /// Whether the code objects of all GPUs that clang compiled are in ours, byte for byte; for one GPU, whether the object is clang's.
    fn has_equal_code(&self, file: &ManyFile, row: &ManyRow, expected: &str) -> Outcome<bool> {
        if row.gpus.len() == 1 {
            return Ok(self.read_output(file, expected)? == self.read_output(file, "ours.o")?);
        }
        let objects = [self.read_output(file, expected)?, self.read_output(file, "ours.o")?];
        if objects.iter().all(|object| !object.windows(FATBIN.len()).any(|window| window == FATBIN)) {
            // A source without device code.
            return Ok(true);
        }
        let gpus = if expected == "one.o" { &row.gpus[..1] } else { row.gpus };
        Ok(self.code_objects(file, gpus, expected)? == self.code_objects(file, gpus, "ours.o")?)
    }

    fn code_objects(&self, file: &ManyFile, gpus: &[&str], object: &str) -> Outcome<Vec<Vec<u8>>> {
        let mut dump = self.session.inside(&file.place, "llvm-objcopy-22");
        run::output(dump.args(["--dump-section=.hip_fatbin=fat", object, "/dev/null"]))?;
        let targets: Vec<String> = gpus.iter().map(|gpu| format!("hipv4-amdgcn-amd-amdhsa--{gpu}")).collect();
        let mut unbundle = self.session.inside(&file.place, "clang-offload-bundler-22");
        unbundle.args(["-unbundle", "-type=o", "-input=fat", &format!("-targets={}", targets.join(","))]);
        run::output(unbundle.args(gpus.iter().map(|gpu| format!("-output={gpu}.co"))))?;
        gpus.iter().map(|gpu| self.read_output(file, &format!("{gpu}.co"))).collect()
    }

    /// The bytes of a file beside the source.
    fn read_output(&self, file: &ManyFile, name: &str) -> Outcome<Vec<u8>> {
        let below = file.place.strip_prefix(&self.session.work).unwrap_or(&file.place);
        let path = self.work.join(below).join(name);
        fs::read(&path).during("read", &path)
    }
}

/// Seconds of processors for one file.
struct FilePair {
    one: f64,
    ours: f64,
}

impl ManyFile {
    /// The last directories and the file.
    fn name(&self) -> String {
        let path = self.place.join(&self.source);
        let mut parts: Vec<_> = path.iter().rev().take(3).map(|part| part.to_string_lossy()).collect();
        parts.reverse();
        parts.join("/")
    }
}

impl RowTimes {
    /// The median against the yardstick.
    fn ratio(&self) -> f64 {
        timer::median(self.ratios.clone())
    }

    /// The sum of ours against clang's for one GPU.
    fn sum_ratio(&self) -> f64 {
        self.ours / self.one
    }

    /// The figure that the bar limits: a whole project for a first build against one GPU, else the median of files.
    fn judged(&self) -> f64 {
        match (self.row.state, self.row.yardstick) {
            (CacheState::Empty, Yardstick::One) => self.sum_ratio(),
            _ => self.ratio(),
        }
    }
}

fn failures(times: &[RowTimes]) -> Vec<String> {
    let mut failures = Vec::new();
    for time in times {
        let name = time.row.name;
        failures.extend(time.other.iter().map(|file| format!("{name}: {file}: code objects differ from clang's")));
        if time.judged() > time.row.bar {
            failures.push(format!("{name}: {:.2}, at most {:.2}", time.judged(), time.row.bar));
        }
    }
    failures
}

fn table(times: &[RowTimes], rounds: usize) -> String {
    let mut text = format!(
        "## Many GPUs with warm headers (`cargo xtask bench many`)\n\n\
         Seconds of processors of `-O2 -c` by clang 22, in units of clang's own for one GPU; where caches are known medians of {rounds} \
         rounds, else one round with an empty cache, headers made included. The bar is for the median of files against clang for one \
         GPU, for *first build, 30 GPUs* of small files for the sum against it, and for those marked *of clang* for the median against \
         clang for the same GPUs.\n\n\
         | work | files | clang, same GPUs | HotSwap, sum | HotSwap, judged | bar | objects equal clang's |\n\
         | --- | --- | --- | --- | --- | --- | --- |\n"
    );
    for time in times {
        let clang = time.clang.map_or("–".to_owned(), |ratio| format!("{ratio:.2}"));
        let of = if time.row.yardstick == Yardstick::Same { " of clang" } else { "" };
        let equal = if time.other.is_empty() { "yes".to_owned() } else { format!("not {}", time.other.join(", ")) };
        text += &format!(
            "| {} | {} | {clang} | {:.2} | {:.2}{of} | {:.2}{of}, {} | {equal} |\n",
            time.row.name,
            time.files,
            time.sum_ratio(),
            time.judged(),
            time.row.bar,
            if time.judged() > time.row.bar { "missed" } else { "holds" },
        );
    }
    let left_out: Vec<String> = times.iter().flat_map(|time| time.left_out.iter().cloned()).collect();
    if !left_out.is_empty() {
        text += &format!("\nNot compiled by clang, and left out: {}.\n", left_out.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(row: &'static ManyRow, ours: f64, ratios: &[f64]) -> RowTimes {
        let ratios = ratios.to_vec();
        RowTimes { row, files: 2, one: 2.0, ours, clang: None, ratios, other: Vec::new(), left_out: Vec::new() }
    }

    #[test]
    fn medians_and_sums_above_the_bar_are_failures() {
        assert!(failures(&[times(&SMALL_ROWS[1], 9.0, &[0.1, 0.4, 0.9])]).is_empty());
        assert_eq!(failures(&[times(&SMALL_ROWS[1], 0.1, &[0.1, 0.41, 0.9])]).len(), 1);
        assert!(failures(&[times(&SMALL_ROWS[2], 5.0, &[9.0])]).is_empty());
        assert_eq!(failures(&[times(&SMALL_ROWS[2], 5.1, &[1.0])]).len(), 1);
        let other = RowTimes { other: vec!["f".to_owned()], ..times(&SMALL_ROWS[1], 0.1, &[0.1]) };
        assert_eq!(failures(&[other]).len(), 1);
    }
}
