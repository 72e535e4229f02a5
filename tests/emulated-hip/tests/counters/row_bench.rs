//! A row: its programs are built, run in one directory, and reported one by one.

use super::MatrixRow;
use hotswap_emulated_hip::EmulationBench;
use serde_json::Value;
use std::collections::BTreeMap;

/// The compilers, HotSwap, and the sources.
pub(crate) struct RowBench {
    bench: EmulationBench,
    hotswap: String,
}

/// The result of a row.
#[derive(Default)]
pub(crate) struct RowResult {
    /// Figures that were compared.
    pub(crate) figures: usize,
    /// Losses that had to be named.
    pub(crate) losses: usize,
    pub(crate) faults: Vec<String>,
}

/// A function of a source.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct FunctionName {
    file: String,
    function: String,
}

/// The counts that a program said its functions have.
type ExpectedCounts = BTreeMap<FunctionName, u64>;

/// Launches of a program: of `first` and `init` in its first unit, of `first` in its second.
const LAUNCHES: [&str; 2] = ["3 2 1", "0 4 0"];

const SOURCES: [(&str, &[u8]); 4] = [
    ("unit.hip", include_bytes!("../../cases/profile-matrix/unit.hip")),
    ("module.hip", include_bytes!("../../cases/profile-matrix/module.hip")),
    ("main.cpp", include_bytes!("../../cases/profile-matrix/main.cpp")),
    ("build.sh", include_bytes!("../../cases/profile-matrix/build.sh")),
];

impl RowBench {
    pub(crate) fn new(test: &str) -> Option<Self> {
        let bench = EmulationBench::new(test)?;
        let hotswap = bench.hotswap(test)?;
        SOURCES.iter().for_each(|(name, bytes)| bench.work.write(name, bytes));
        bench.work.write("hip.h", hotswap_userland::HIP_HEADER.as_bytes());
        bench.work.run("for u in 1 2; do { echo \"#define UNIT $u\"; cat unit.hip; } >unit-$u.hip; done");
        Some(Self { bench, hotswap })
    }

    pub(crate) fn versions(&self) -> &[u32] {
        &self.bench.work.versions
    }

    pub(crate) fn run_row(&self, version: u32, row: &MatrixRow) -> RowResult {
        let mut result = RowResult::default();
        if let Err(fault) = self.try_row(version, row, &mut result) {
            result.faults.push(fault);
        }
        result
    }

    fn try_row(&self, version: u32, row: &MatrixRow, result: &mut RowResult) -> Result<(), String> {
        let directory = format!("row-{version}-{}", row.number);
        self.bench.work.run(&format!("rm -rf {directory}; mkdir {directory}"));
        let programs = if row.get("programs") == "two" { 2 } else { 1 };
        let mut expected = Vec::new();
        for program in 1..=programs {
            self.build(version, row, program)?;
            expected.push(self.start(version, row, program, &directory)?);
        }
        for (program, counts) in expected.iter().enumerate() {
            let report = self.report(version, row, program + 1, &directory)?;
            report.compare(row, program + 1, counts, result);
        }
        Ok(())
    }

    fn build(&self, version: u32, row: &MatrixRow, program: usize) -> Result<(), String> {
        let wrapper = self.hotswap.replace("/bin/hotswap", "/bin/hotswap-clang++");
        let words = ["code", "device code", "names"].map(|axis| row.get(axis)).join(" ");
        let script = format!("bash build.sh {wrapper} {version} {words} {program} {}", row.get("link"));
        let built = self.bench.script("", &script);
        let said = format!("{}{}", built.output, built.error);
        // Objects that are relocatable or not, with or without HIP's library: no word is needed.
        let is_quiet = said.trim().is_empty();
        if built.code == Some(0) && is_quiet { Ok(()) } else { Err(format!("build of program {program}: {said}")) }
    }

    /// Runs a program, and returns what it says of its counts.
    fn start(&self, version: u32, row: &MatrixRow, program: usize, directory: &str) -> Result<ExpectedCounts, String> {
        let (gpu, own) = row_gpu(row);
        let pattern = match row.get("pattern") {
            "default" => "unset LLVM_PROFILE_FILE".to_owned(),
            pattern => format!("export LLVM_PROFILE_FILE={pattern}"),
        };
        let app = program_name(row, program);
        let (module, fork) = (row.get("module"), row.get("fork"));
        let run = self.bench.script(
            &format!(
                "export LD_LIBRARY_PATH=$PWD/lib/hotswap/emulated HOTSWAP_EMULATE={gpu} B=$PWD/clang-{version}; {pattern}\ncd {directory}\n"
            ),
            &format!("$B/{app} {module} $B/module-{own}-{program}.co {fork} {}", LAUNCHES[program - 1]),
        );
        let is_right = run.code == Some(0) && run.output.contains("done") && !run.output.contains("WRONG");
        if !is_right || run.error.contains("hotswap-profile-drain") {
            return Err(format!("run of program {program}: {:?}\n{}{}", run.code, run.output, run.error));
        }
        let mut counts = ExpectedCounts::new();
        for line in run.output.lines() {
            if let ["count", file, function, count] = line.split(' ').collect::<Vec<_>>()[..] {
                let name = FunctionName { file: file.to_owned(), function: function.to_owned() };
                *counts.entry(name).or_default() += count.parse::<u64>().map_err(|error| error.to_string())?;
            }
        }
        Ok(counts)
    }

    fn report(&self, version: u32, row: &MatrixRow, program: usize, directory: &str) -> Result<RowReport, String> {
        let app = program_name(row, program);
        let module = match row.get("module") {
            "none" => String::new(),
            "hiprtc" => format!("--object {directory}/hiprtc-{program}.co"),
            _ => format!("--object clang-{version}/module-{}-{program}.co", row_gpu(row).1),
        };
        let library =
            if row.get("link") == "library" { format!("--object clang-{version}/lib{app}.so") } else { String::new() };
        let words = format!("clang-{version}/{app} {library} {module} --profile {directory}");
        let run = self.bench.script("", &format!("{} profile report {words} --format json", self.hotswap));
        let json = serde_json::from_str(&run.output);
        let json = json.map_err(|error| format!("report of program {program}: {error}\n{}", run.error))?;
        let strict = self.bench.script("", &format!("{} profile report {words} --strict", self.hotswap));
        Ok(RowReport { json, error: run.error, strict: strict.code })
    }
}

/// A program's report.
struct RowReport {
    json: Value,
    error: String,
    /// The exit code with --strict.
    strict: Option<i32>,
}

impl RowReport {
    /// Compares each figure, and whether each loss is named and none else.
    fn compare(&self, row: &MatrixRow, program: usize, expected: &ExpectedCounts, result: &mut RowResult) {
        let mut lacks = false;
        for (name, count) in expected {
            let due = expected_cell(row, program, name, *count);
            lacks |= due == "no data";
            result.figures += 1;
            let found = self.cell(row, name);
            if found != due {
                let FunctionName { file, function } = name;
                result.faults.push(format!("program {program}, {function} of {file}: {found}, not {due}"));
            }
        }
        // The code for the other target of the program ran nowhere.
        lacks |= ["both", "xnack"].contains(&row.get("code"));
        for (code, is_due) in [("HS0456", row.get("programs") == "two"), ("HS0309", lacks)] {
            result.losses += usize::from(is_due);
            if self.error.contains(code) != is_due {
                result.faults.push(format!("program {program}, {code} is due: {is_due}\n{}", self.error));
            }
        }
        let other = self
            .error
            .lines()
            .find(|line| line.contains("[HS") && !line.contains("HS0456") && !line.contains("HS0309"));
        result.faults.extend(other.map(|line| format!("program {program}: {line}")));
        let is_strict = self.strict != Some(0);
        if is_strict != (lacks || row.get("programs") == "two") {
            result.faults.push(format!("program {program}, --strict ends with {:?}", self.strict));
        }
    }

    /// The count in the column of the target that ran, after a look at the others.
    fn cell(&self, row: &MatrixRow, name: &FunctionName) -> String {
        let rows: Vec<&Value> = self.rows(name);
        let [found] = rows.as_slice() else { return format!("{} rows", rows.len()) };
        let mut cells = BTreeMap::new();
        for (number, target) in self.json["targets"].as_array().into_iter().flatten().enumerate() {
            let text = match found["lacks_data"][number].as_bool() {
                Some(true) => "no data".to_owned(),
                _ => found["counts"][number].to_string(),
            };
            cells.insert(target.as_str().unwrap_or_default().to_owned(), text);
        }
        let wanted = target_of(row, name);
        let own = cells.remove(&wanted).unwrap_or_else(|| format!("no column of {wanted}: {cells:?}"));
        let other = cells.iter().find(|(_, text)| !["null", "no data"].contains(&text.as_str()));
        other.map_or(own, |(target, text)| format!("{text} in the column of {target}"))
    }

    /// The rows of a function: of `main` the one of that name, of others those whose names contain it.
    fn rows(&self, name: &FunctionName) -> Vec<&Value> {
        let all = self.json["functions"].as_array().into_iter().flatten();
        let in_file = all.filter(|row| row["file"].as_str().is_some_and(|file| is_source(file, &name.file)));
        in_file
            .filter(|row| {
                let text = row["name"].as_str().unwrap_or_default();
                if name.function == "main" { text == "main" } else { text.contains(&name.function) }
            })
            .collect()
    }
}

/// Whether a file is a source of the row. Comgr compiles a preprocessed copy of what hiprtc gets, under a name of its own.
fn is_source(file: &str, source: &str) -> bool {
    let copy = file.rsplit('/').next().is_some_and(|name| name.starts_with("module-") && name.ends_with(".hipi"));
    file.ends_with(source) || (source == "module.hip" && copy)
}

/// The GPU that runs a row, and the target of the code that it gets.
fn row_gpu(row: &MatrixRow) -> (&'static str, &'static str) {
    match row.get("code") {
        "native" => ("gfx1030", "gfx1030"),
        "xnack" => ("gfx90a", "gfx90a:xnack-"),
        _ => ("gfx1031", "gfx10-3-generic"),
    }
}

fn program_name(row: &MatrixRow, program: usize) -> String {
    let [code, kind, names, link] = ["code", "device code", "names", "link"].map(|axis| row.get(axis));
    format!("app-{code}-{kind}-{names}-{program}-{link}")
}

/// The target in whose column a function has its counts.
fn target_of(row: &MatrixRow, name: &FunctionName) -> String {
    let (gpu, own) = row_gpu(row);
    let is_at_run_time = name.file == "module.hip" && row.get("module") == "hiprtc";
    match name.file.as_str() {
        "main.cpp" => "host".to_owned(),
        // Compiled for the GPU that there is.
        _ if is_at_run_time && gpu == "gfx90a" => "gfx90a:sramecc+:xnack-".to_owned(),
        _ if is_at_run_time => gpu.to_owned(),
        _ => own.to_owned(),
    }
}

/// A count, or "no data" where a loss is due.
fn expected_cell(row: &MatrixRow, program: usize, name: &FunctionName, count: u64) -> String {
    // Without a place for the process or the program in its name, LLVM's runtime replaces the host's profile of the run before.
    let is_replaced = program == 1 && row.get("programs") == "two" && !row.get("pattern").contains('%');
    // HIP loads a unit's code with its first launch; the second program launches nothing of its second unit.
    let is_unloaded = program == 2 && name.file == "unit-2.hip" && row.get("device code") == "plain";
    if (name.file == "main.cpp" && is_replaced) || is_unloaded { "no data".to_owned() } else { count.to_string() }
}
