//! Fuzzing with libFuzzer through cargo-fuzz: the common parts of all campaigns, and `cargo xtask fuzz`.
//!
//! cargo-fuzz needs a nightly compiler; it runs without a sanitizer where the crate has no unsafe code. It is
//! installed into the cache directory if the machine has none.

use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::{paths, remove, run, userland};
use clap::Parser;
use hotswap_userland::ENV_ROOT;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

/// The fuzz targets of a crate.
pub(crate) struct Campaign {
    /// Directory of the crate with the targets, from the workspace's root.
    pub(crate) directory: &'static str,
    /// Directory for its outputs.
    pub(crate) work: PathBuf,
    pub(crate) targets: &'static [&'static str],
    /// The maximum length of an input.
    pub(crate) length: usize,
    /// Whether each target has a directory of seeds of its own.
    pub(crate) own_seeds: bool,
    /// `none`, or the sanitizer that finds errors of unsafe code.
    pub(crate) sanitizer: &'static str,
}

/// Fuzzes what reads foreign bytes: containers, code objects, memory of GPUs, command lines, plans, coverage.
#[derive(Parser)]
struct Words {
    /// How long each target runs.
    #[arg(long, default_value_t = 10)]
    minutes: u32,
    /// List the targets, and how long each has run: as recorded, and on this machine since.
    #[arg(long)]
    list: bool,
    /// Add this machine's runs to docs/evidence/fuzz-runs.txt, which is committed.
    #[arg(long, conflicts_with = "list")]
    record: bool,
    /// Only this target.
    target: Option<String>,
}

const CONTAINERS: &[&str] =
    &["bundle", "compressed", "offload_binary", "host_object", "linked", "archive", "coff", "code_object"];
/// The profile drain's readers of data from GPUs and from files in memory.
const DRAIN: &[&str] = &["drained_file", "drained_table"];
/// The parts of code objects, and the rewriting of instructions; their seeds need the userland.
const CODE: &[&str] = &["image", "rewrite"];
/// Command lines and response files of the wrapper, plans, and exports of llvm-cov.
const WRAPPER: &[&str] = &["arguments", "response_file", "plan", "coverage_export"];
/// The command's readers of raw profiles, its disassembly as JSON, and rewrites by families; some seeds need the userland.
const COMMAND: &[&str] = &["raw_profile", "disasm_json", "families"];
/// Fuzzed by `cargo xtask isa fuzz`, whose seeds are LLVM's vectors.
pub(crate) const INSTRUCTIONS: &[&str] = &["decode", "round_trip"];
/// The C interface, with the checks of AddressSanitizer for what it does with pointers; its seeds need the userland.
const C_INTERFACE: &[&str] = &["c_interface"];
/// More memory is a finding. [`Campaign::length`] bytes of zstd may honestly expand to 512 MB, and a change holds
/// them twice.
const MEMORY: &str = "-rss_limit_mb=2048";

/// The campaigns of `cargo xtask fuzz`.
fn campaigns() -> [Campaign; 6] {
    let campaign = |directory, work, targets, length| Campaign {
        directory,
        work: paths::scratch(work),
        targets,
        length,
        own_seeds: true,
        sanitizer: "none",
    };
    [
        campaign("crates/containers/bundle/fuzz", "fuzz", CONTAINERS, 16 << 10),
        campaign("crates/retarget/rewrite/fuzz", "rewrite-fuzz", CODE, 16 << 10),
        campaign("driver-wrapper/fuzz", "fuzz-wrapper", WRAPPER, 4 << 10),
        campaign("crates/products/hotswap/fuzz", "fuzz-command", COMMAND, 16 << 10),
        Campaign {
            sanitizer: "address",
            ..campaign("crates/profile/profile-drain/fuzz", "fuzz-drain", DRAIN, 8 << 10)
        },
        Campaign {
            sanitizer: "address",
            ..campaign("crates/products/libhotswap/fuzz", "fuzz-c", C_INTERFACE, 32 << 10)
        },
    ]
}

/// The names of all targets, of `cargo xtask isa fuzz` as well.
pub(crate) fn target_names() -> Vec<&'static str> {
    campaigns().iter().flat_map(|campaign| campaign.targets).chain(INSTRUCTIONS).copied().collect()
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let words = Words::parse_from(words);
    let campaigns = campaigns();
    if words.list {
        return list(&campaigns);
    }
    if words.record {
        return RunBook::open()?.record();
    }
    let only = words.target.as_deref();
    if !campaigns.iter().any(|campaign| is_wanted_campaign(&campaign, &only)) {
        let names: Vec<&str> = campaigns.iter().flat_map(|campaign| campaign.targets).copied().collect();
        return fail(format!("there are the targets {}", names.join(", ")));
    }
    for campaign in campaigns.iter().filter(|one| is_wanted_campaign(one, &only)) {
        campaign.seeds(&[])?;
        campaign.run(only, words.minutes)?;
    }
    Ok(())
}

fn is_wanted_campaign(campaign: &&Campaign, only: &Option<&str>) -> bool {
    only.is_none_or(|one| campaign.targets.contains(&one))
}

/// Prints each target with the time that it has run.
fn list(campaigns: &[Campaign]) -> Outcome {
    let book = RunBook::open()?;
    let text = book.read() + &fs::read_to_string(recorded()).unwrap_or_default();
    println!("{:16} {:28} {:>8} {:>14}  FINDINGS", "TARGET", "DIRECTORY", "HOURS", "EXECUTIONS");
    let instructions = INSTRUCTIONS.iter().map(|target| ("crates/amdgpu/isa/fuzz", *target));
    let all = campaigns.iter().flat_map(|campaign| campaign.targets.iter().map(|target| (campaign.directory, *target)));
    for (directory, target) in all.chain(instructions) {
        let sum = sum_of(&text, directory, target);
        let hours = sum.seconds as f64 / 3600.0;
        println!("{target:16} {directory:28} {hours:8.2} {:14}  {}", sum.executions, sum.findings);
    }
    println!("\nThe runs are those of {RECORDED} and {}.", book.0.display());
    println!("{INSTRUCTIONS:?} run by `cargo xtask isa fuzz`.");
    Ok(())
}

/// The sum of all runs of one target on this machine.
#[derive(Debug, Default, PartialEq, Eq)]
struct RunSum {
    seconds: u64,
    executions: u64,
    findings: u64,
}

/// The runs of all targets on this machine: a line for each, `DIRECTORY TARGET SECONDS EXECUTIONS FINDINGS`, in the cache
/// directory, which survives clones.
struct RunBook(PathBuf);

impl RunBook {
    fn open() -> Outcome<Self> {
        Ok(Self(paths::cache()?.join("fuzz-runs.txt")))
    }

    fn add(&self, directory: &str, target: &str, run: &RunSum) -> Outcome {
        let RunSum { seconds, executions, findings } = run;
        let mut file = fs::File::options().create(true).append(true).open(&self.0).during("open", &self.0)?;
        writeln!(file, "{directory} {target} {seconds} {executions} {findings}").during("write", &self.0)
    }

    fn read(&self) -> String {
        fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// Moves the lines to the committed file, one for each target.
    fn record(&self) -> Outcome {
        let path = recorded();
        let text = merged(&(fs::read_to_string(&path).unwrap_or_default() + &self.read()));
        fs::write(&path, text).during("write", &path)?;
        fs::write(&self.0, "").during("write", &self.0)
    }
}

/// The committed runs of all machines, in the same form.
const RECORDED: &str = "docs/evidence/fuzz-runs.txt";

fn recorded() -> PathBuf {
    paths::workspace().join(RECORDED)
}

/// A line for each target, sorted, with the sum of its runs.
fn merged(book: &str) -> String {
    let targets: BTreeSet<(String, String)> = book.lines().filter_map(fuzz_record_key).collect();
    targets.iter().map(|one| merged_sum_line(one, book)).collect()
}

fn fuzz_record_key(line: &str) -> Option<(String, String)> {
    let mut words = line.split(' ').map(str::to_owned);
    Some((words.next()?, words.next()?))
}

fn merged_sum_line((directory, target): &(String, String), book: &str) -> String {
    let RunSum { seconds, executions, findings } = sum_of(book, directory, target);
    format!("{directory} {target} {seconds} {executions} {findings}\n")
}

fn sum_of(book: &str, directory: &str, target: &str) -> RunSum {
    let mut sum = RunSum::default();
    for line in book.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        if let [at, name, seconds, executions, findings] = words[..]
            && (at, name) == (directory, target)
        {
            sum.seconds += parse_record_number(seconds);
            sum.executions += parse_record_number(executions);
            sum.findings += parse_record_number(findings);
        }
    }
    sum
}

fn parse_record_number(text: &str) -> u64 {
    text.parse::<u64>().unwrap_or(0)
}

impl Campaign {
    /// Cargo's directory, one for all crates: they share most of their dependencies.
    fn cargo_target() -> PathBuf {
        paths::scratch("fuzz-target")
    }

    fn seeds_directory(&self) -> PathBuf {
        self.work.join("seeds")
    }

    /// Makes the seeds; `words` precede their directory.
    pub(crate) fn seeds(&self, words: &[&Path]) -> Outcome {
        let seeds = self.seeds_directory();
        remove::delete(&seeds)?;
        fs::create_dir_all(&seeds).during("create", &seeds)?;
        let mut command = Command::new(paths::cargo());
        command.current_dir(paths::workspace().join(self.directory));
        if let Some(userland) = userland::finished(Part::Tests)? {
            command.env(ENV_ROOT, userland.root());
        }
        command.args(["run", "--quiet", "--example", "seeds", "--target-dir"]);
        run::show(command.arg(Self::cargo_target()).arg("--").args(words).arg(&seeds))
    }

    /// Runs all targets or one of them, as many at a time as there are processors.
    pub(crate) fn run(&self, only: Option<&str>, minutes: u32) -> Outcome {
        let names: Vec<&str> =
            self.targets.iter().copied().filter(|name| only.is_none_or(|one| one == *name)).collect();
        if names.is_empty() {
            return fail(format!("there are the targets {}", self.targets.join(", ")));
        }
        let bin = tools()?;
        // Concurrent builds would only wait for the lock.
        run::show(self.cargo_fuzz(&bin, "build").arg("--target-dir").arg(Self::cargo_target()))?;
        let mut failed = Vec::new();
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        for some in names.chunks(processors) {
            let start = Instant::now();
            let children = some.iter().map(|name| Ok((*name, self.start(&bin, name, minutes)?)));
            for (name, mut child) in children.collect::<Outcome<Vec<(&str, Child)>>>()? {
                let good = child.wait()?.success();
                let count = executions(&self.log(name));
                let run = RunSum {
                    seconds: start.elapsed().as_secs(),
                    executions: count.parse().unwrap_or(0),
                    findings: u64::from(!good),
                };
                RunBook::open()?.add(self.directory, name, &run)?;
                println!("{name}: {count} executions, {}", if good { "no finding" } else { "FOUND" });
                failed.extend((!good).then_some(name));
            }
        }
        if failed.is_empty() {
            return Ok(());
        }
        fail(format!("{} found something: see the logs in {}", failed.join(" and "), self.work.display()))
    }

    fn cargo_fuzz(&self, bin: &Path, action: &str) -> Command {
        let mut command = Command::new("cargo");
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:{}", bin.display())).env("RUSTUP_TOOLCHAIN", "nightly");
        // cargo must also use the nightly compiler.
        command.env_remove("CARGO").env_remove("RUSTC");
        command.current_dir(paths::workspace().join(self.directory)).args([
            "fuzz",
            action,
            "--sanitizer",
            self.sanitizer,
        ]);
        command
    }

    fn start(&self, bin: &Path, name: &str, minutes: u32) -> Outcome<Child> {
        let corpus = self.work.join(name);
        fs::create_dir_all(&corpus).during("create", &corpus)?;
        let path = self.work.join(format!("{name}.log"));
        let log = fs::File::create(&path).during("create", &path)?;
        let seeds = if self.own_seeds { self.seeds_directory().join(name) } else { self.seeds_directory() };
        let mut command = self.cargo_fuzz(bin, "run");
        command.arg("--target-dir").arg(Self::cargo_target()).arg(name).arg(&corpus).arg(seeds);
        command.args(["--", "-print_final_stats=1", MEMORY]).arg(format!("-max_len={}", self.length));
        command.arg(format!("-max_total_time={}", minutes * 60));
        println!("$ {}", run::line(&command));
        Ok(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn()?)
    }

    fn log(&self, name: &str) -> String {
        let bytes = fs::read(self.work.join(format!("{name}.log"))).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The number in libFuzzer's last lines.
fn executions(log: &str) -> String {
    let line = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    line.unwrap_or("an unknown number of").trim().to_owned()
}

/// A directory with cargo-fuzz; it need not be on the search path.
fn tools() -> Outcome<PathBuf> {
    let root = paths::cache()?.join("tools");
    if which::which("cargo-fuzz").is_err() && !root.join("bin/cargo-fuzz").exists() {
        let mut command = Command::new(paths::cargo());
        run::show(command.args(["install", "--quiet", "--locked", "cargo-fuzz", "--root"]).arg(&root))?;
    }
    Ok(root.join("bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_target_are_added_up() {
        let book = "a one 60 5 0\na two 1 1 1\nb one 9 9 9\na one 40 7 1\nbroken\n";
        assert_eq!(sum_of(book, "a", "one"), RunSum { seconds: 100, executions: 12, findings: 1 });
        assert_eq!(sum_of(book, "c", "one"), RunSum::default());
    }

    #[test]
    fn recording_keeps_the_sums() {
        let book = "b one 9 9 9\na two 1 1 1\na two 2 3 4\n";
        assert_eq!(merged(book), "a two 3 4 5\nb one 9 9 9\n");
        assert_eq!(merged(&merged(book)), merged(book));
    }

    #[test]
    fn executions_are_read_from_the_last_lines() {
        let log = "#8 DONE\nDone 8 runs in 1 second(s)\nstat::number_of_executed_units: 200251\nstat::peak_rss_mb: 9\n";
        assert_eq!(executions(log), "200251");
        assert_eq!(executions("panicked"), "an unknown number of");
    }
}
