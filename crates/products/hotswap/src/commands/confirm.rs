//! `hotswap confirm`: the GPU of this machine runs small programs, and confirms what HotSwap claims or contradicts it.
//!
//! For this GPU, and for each GPU whose code HotSwap derives for it: the same kernels, of one instruction each and larger ones. The
//! results must be those that the emulator gave when the table of the build was written, and the derived code's those of the
//! GPU's own. Everything that touches the GPU is done by child processes with a time limit.
//!
//! Absent on purpose: kernels and judgement (`hotswap-confirm`), and anything that leaves the machine: the report is printed.

mod batches;
pub(crate) mod card;
mod hip;

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::work::temporary::check_temporary_directory;
use crate::work::text;
use batches::{BatchRunner, KernelRun, ask_hip_command, unstarted_error, wait_for};
use clap::Args;
use hotswap_confirm::{
    CASES, CardFacts, ConfirmError, ConfirmReport, EXPECTED_TEXT, ExpectedTable, ProbeLaunch, ProbeObject,
    ProbeOutcome, ProbeVerdict, SiblingOutcome, all_groups, all_probes, compare_expected, compare_runs, derive_object,
    digest_words, judged_cases, make_objects, sibling_processors,
};
use hotswap_emulator::variables;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::{Processor, find_processor};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Files of HIP while it starts.
const RUNTIME_FILES: usize = 1 << 20;
/// The variable by which HIP takes a GPU for another one.
const OVERRIDE: &str = "HSA_OVERRIDE_GFX_VERSION";
const NAMES_LIBRARY: &str = "libhotswap-names";

#[derive(Debug, Args)]
pub(crate) struct ConfirmArguments {
    /// The GPU, by its number in HIP's order
    #[arg(long, value_name = "N", default_value_t = 0)]
    device: usize,
    /// Only this group of programs; several with commas, or by repeating the option
    #[arg(long, value_name = "GROUP", value_delimiter = ',', value_parser = all_groups())]
    group: Vec<String>,
    /// Only code that was made for this GPU itself
    #[arg(long)]
    own: bool,
    /// List the programs, and run none of them
    #[arg(long)]
    list: bool,
    /// Seconds that a process with the programs of a group may take before it is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..))]
    limit: u64,
    /// Seconds that all of it may take
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    total_limit: u64,
    /// Write the code objects that are run to this directory
    #[arg(long, value_name = "DIRECTORY")]
    keep: Option<PathBuf>,
    /// Run the code objects of a directory that --keep wrote, as far as they are there, in place of new ones
    #[arg(long, value_name = "DIRECTORY")]
    objects: Option<PathBuf>,
    /// Expect the results of this table, in place of those of this build
    #[arg(long, value_name = "FILE")]
    expected: Option<PathBuf>,
    #[command(flatten)]
    output: OutputOptions,
}

pub(crate) fn run(arguments: &ConfirmArguments) -> Result<CommandOutcome, Diagnostic> {
    if arguments.list {
        return Ok(list_probes(arguments.output.format).into());
    }
    check_environment()?;
    check_temporary_directory(RUNTIME_FILES)?;
    let expected_text = match &arguments.expected {
        Some(file) => String::from_utf8_lossy(&hotswap_files::read_file(file)?).into_owned(),
        None => EXPECTED_TEXT.to_owned(),
    };
    let expected = ExpectedTable::parse(&expected_text).map_err(|error| table_error(&error, arguments))?;
    let card = examine_card(arguments)?;
    let processor = card_processor(&card)?;
    if !expected.has_gpu(processor.name) {
        return Err(confirm_error(&ConfirmError::NoExpectation(processor.name.to_owned())));
    }
    let mut session = ConfirmSession::new(arguments, processor, expected);
    let report = session.run_all(card, digest_of_text(&expected_text))?;
    let output = match arguments.output.format {
        OutputFormat::Text => report.to_text(),
        OutputFormat::Json => text::json(&report.to_json()),
    };
    let problem = (!report.is_confirmed()).then(|| Diagnostic::error(codes::NOT_CONFIRMED, report.sentence()));
    Ok(CommandOutcome { text: output, problems: problem.into_iter().collect(), ..CommandOutcome::default() })
}

fn digest_of_text(text: &str) -> u32 {
    let words: Vec<u32> = text.bytes().map(u32::from).collect();
    digest_words(&words)
}

fn table_error(error: &ConfirmError, arguments: &ConfirmArguments) -> Diagnostic {
    let error = Diagnostic::error(codes::MALFORMED, error.to_string());
    match &arguments.expected {
        Some(file) => error.in_file(file),
        None => error,
    }
}

fn confirm_error(error: &ConfirmError) -> Diagnostic {
    Diagnostic::error(codes::NO_INSTRUCTIONS, error.to_string())
}

/// The groups with their programs.
fn list_probes(format: OutputFormat) -> String {
    let probes = all_probes();
    let named = all_groups().into_iter().map(|group| {
        let names = probes.iter().filter(|probe| probe.group == group).map(|probe| probe.name());
        (group, names.collect::<Vec<String>>())
    });
    match format {
        OutputFormat::Json => text::json(&named.map(|(group, names)| (group.to_owned(), Value::from(names))).collect()),
        OutputFormat::Text => named.map(|(group, names)| format!("{group}: {}\n", names.join(" "))).collect(),
    }
}

/// A GPU that HIP takes for another one would confirm the wrong claims.
fn check_environment() -> Result<(), Diagnostic> {
    if env::var_os(OVERRIDE).is_some_and(|value| !value.is_empty()) {
        return Err(other_name_error(&format!("{OVERRIDE} is set")).advise("unset it"));
    }
    let preloaded = env::var("LD_PRELOAD").unwrap_or_default();
    if preloaded.contains(NAMES_LIBRARY) {
        return Err(other_name_error("LD_PRELOAD has HotSwap's library of shown names").advise("unset it"));
    }
    Ok(())
}

fn other_name_error(what: &str) -> Diagnostic {
    Diagnostic::error(codes::NO_CARD, format!("{what}, so that HIP would state another GPU than there is"))
}

/// The GPU as HIP states it, asked in a process of its own.
fn examine_card(arguments: &ConfirmArguments) -> Result<CardFacts, Diagnostic> {
    let mut command = ask_hip_command()?;
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| unstarted_error(&command, &error))?;
    if wait_for(&mut child, Duration::from_secs(arguments.limit)).is_none() {
        let _ = child.kill();
        let reason = format!("HIP did not say within {} seconds which GPUs there are", arguments.limit);
        return Err(Diagnostic::error(codes::NO_CARD, reason));
    }
    let mut answer = String::new();
    // The answer is short: it is in the pipe. One that cannot be read is no answer.
    let _ = child.stdout.take().map(|mut output| output.read_to_string(&mut answer));
    let answer = card::read_devices(&answer)?;
    let devices = answer["devices"].as_array().map_or(0, Vec::len);
    let device = &answer["devices"][arguments.device];
    let (Some(name), Some(target)) = (device["name"].as_str(), device["target"].as_str()) else {
        return Err(Diagnostic::error(
            codes::USAGE,
            format!("there is no GPU {}; HIP finds {devices}", arguments.device),
        ));
    };
    let [runtime, driver] = ["runtime", "driver"].map(|field| answer[field].as_i64().unwrap_or_default() as i32);
    let is_emulated = env::var_os(variables::GPUS).is_some_and(|gpus| !gpus.is_empty());
    Ok(CardFacts {
        name: text::plain(name).to_string(),
        target: text::plain(target).to_string(),
        runtime,
        driver,
        is_emulated,
    })
}

fn card_processor(card: &CardFacts) -> Result<&'static Processor, Diagnostic> {
    let name = card.target.split(':').next().unwrap_or_default();
    let reason = format!("the GPU is {name}, which HotSwap does not know");
    find_processor(name).ok_or_else(|| Diagnostic::error(codes::UNKNOWN_TARGET, reason))
}

/// A run on one GPU.
struct ConfirmSession<'a> {
    arguments: &'a ConfirmArguments,
    processor: &'static Processor,
    expected: ExpectedTable,
    runner: BatchRunner,
    /// The results of the GPU's own code, by probe.
    own: BTreeMap<String, Vec<u32>>,
    progress: ProgressBar,
}

impl<'a> ConfirmSession<'a> {
    fn new(arguments: &'a ConfirmArguments, processor: &'static Processor, expected: ExpectedTable) -> Self {
        let runner = BatchRunner {
            device: arguments.device,
            limit: Duration::from_secs(arguments.limit),
            end: Instant::now() + Duration::from_secs(arguments.total_limit),
            failures: 0,
        };
        // On a terminal only.
        let progress = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} {elapsed}");
        let progress = style.map_or(progress.clone(), |style| progress.with_style(style));
        Self { arguments, processor, expected, runner, own: BTreeMap::new(), progress }
    }

    fn run_all(&mut self, card: CardFacts, expected: u32) -> Result<ConfirmReport, Diagnostic> {
        let sources = if self.arguments.own { Vec::new() } else { sibling_processors(self.processor) };
        let objects = self.make_objects(self.processor)?;
        self.progress.set_length((objects.len() * (sources.len() + 1)) as u64);
        let mut report =
            ConfirmReport { version: env!("CARGO_PKG_VERSION"), expected, card, ..ConfirmReport::default() };
        for object in &objects {
            let bytes = self.exchange_object(object.processor, object, object.bytes.clone())?;
            report.native.extend(self.run_group(object.processor, &object.launches, &bytes)?);
        }
        for source in sources {
            report.siblings.push(SiblingOutcome { source: source.name.to_owned(), probes: self.run_sibling(source)? });
        }
        self.progress.finish_and_clear();
        report.stopped = self.runner.stop_reason();
        Ok(report)
    }

    fn make_objects(&self, processor: &'static Processor) -> Result<Vec<ProbeObject>, Diagnostic> {
        let objects = make_objects(processor).map_err(|error| confirm_error(&error))?;
        let chosen = &self.arguments.group;
        Ok(objects
            .into_iter()
            .filter(|object| chosen.is_empty() || chosen.iter().any(|one| one == object.group))
            .collect())
    }

    /// Code that is made for another GPU, and derived for this one as any command derives it.
    fn run_sibling(&mut self, source: &'static Processor) -> Result<Vec<ProbeOutcome>, Diagnostic> {
        let mut outcomes = Vec::new();
        for object in self.make_objects(source)? {
            match derive_object(&object, self.processor) {
                Ok(bytes) => {
                    let bytes = self.exchange_object(source, &object, bytes)?;
                    outcomes.extend(self.run_group(source, &object.launches, &bytes)?);
                }
                Err(refusal) => {
                    let reason = format!("HotSwap refuses to derive it: {}", refusal.what);
                    outcomes.extend(
                        object
                            .launches
                            .iter()
                            .map(|launch| outcome(launch, ProbeVerdict::Failed { reason: reason.clone() })),
                    );
                }
            }
        }
        Ok(outcomes)
    }

    /// Keeps a code object, or takes another one in its place.
    fn exchange_object(&self, source: &Processor, object: &ProbeObject, bytes: Vec<u8>) -> Result<Vec<u8>, Diagnostic> {
        let name = format!("{}-from-{}-{}.hsaco", self.processor.name, source.name, object.group);
        let given = self.arguments.objects.as_ref().map(|directory| directory.join(&name));
        let bytes = match given {
            Some(path) if hotswap_files::reads::is_there(&path)? => hotswap_files::read_file(&path)?.to_vec(),
            _ => bytes,
        };
        if let Some(directory) = &self.arguments.keep {
            let path = directory.join(&name);
            keep_file(directory, &path, &bytes).map_err(|error| Diagnostic::cannot_write(&path, error))?;
        }
        Ok(bytes)
    }

    fn run_group(
        &mut self,
        source: &Processor,
        launches: &[ProbeLaunch],
        bytes: &[u8],
    ) -> Result<Vec<ProbeOutcome>, Diagnostic> {
        let group = launches.first().map_or("", |launch| launch.probe.group);
        self.progress.set_message(format!("{}: {group}", source.name));
        let mut runs = self.runner.run_object(bytes, launches)?;
        self.progress.inc(1);
        let is_own = source == self.processor;
        let mut outcomes = Vec::new();
        for launch in launches {
            let run = runs.remove(&launch.name);
            let run = run.unwrap_or_else(|| KernelRun::NotRun("there is no result".to_owned()));
            outcomes.push(outcome(launch, self.judge_run(launch, is_own, run)));
        }
        Ok(outcomes)
    }

    /// The GPU's own code is judged by the expected results. Derived code is judged by the GPU's own results, so that a fault of
    /// the emulator is not taken for one of the derived code; where there are none, by the expected ones.
    fn judge_run(&mut self, launch: &ProbeLaunch, is_own: bool, run: KernelRun) -> ProbeVerdict {
        let words = match run {
            KernelRun::Words(words) => words,
            KernelRun::Failed(reason) => return ProbeVerdict::Failed { reason },
            KernelRun::NotRun(reason) => return ProbeVerdict::NotRun { reason },
        };
        let own = self.own.get(&launch.name).filter(|_| !is_own);
        let expected = self.expected.find(&launch.name, self.processor.name);
        let (difference, cases) = match (own, expected) {
            (Some(own), _) => (compare_runs(launch.probe.input, own, &words), CASES),
            (None, Some(expected)) => (compare_expected(&launch.probe, expected, &words), judged_cases(expected)),
            (None, None) => return ProbeVerdict::NotRun { reason: "no result is expected".to_owned() },
        };
        if is_own {
            self.own.insert(launch.name.clone(), words);
        }
        match difference.is_empty() {
            true => ProbeVerdict::Confirmed { cases },
            false => ProbeVerdict::Differs(difference),
        }
    }
}

fn outcome(launch: &ProbeLaunch, verdict: ProbeVerdict) -> ProbeOutcome {
    ProbeOutcome { probe: launch.name.clone(), group: launch.probe.group, verdict }
}

fn keep_file(directory: &Path, path: &Path, bytes: &[u8]) -> Result<(), std::io::Error> {
    fs::create_dir_all(directory)?;
    fs::write(path, bytes)
}
