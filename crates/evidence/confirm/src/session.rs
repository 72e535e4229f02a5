//! The programs of all groups run on one GPU, and each result judged: for code that was made for this GPU, and for code of each
//! GPU that HotSwap derives code from.

use crate::batches::{BatchRunner, KernelRun};
use crate::card::card_processor;
use crate::error::ConfirmError;
use crate::expected::ExpectedTable;
use crate::inputs::CASES;
use crate::judge::{compare_expected, compare_runs, judged_cases};
use crate::probe_objects::{ProbeLaunch, ProbeObject, make_objects};
use crate::report::{CardFacts, ConfirmReport, ProbeOutcome, ProbeVerdict, SiblingOutcome};
use crate::siblings::{derive_object, sibling_processors};
use hotswap_report::Diagnostic;
use hotswap_targets::Processor;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The programs to run, and the limits of their time.
#[derive(Debug)]
pub struct ConfirmRequest {
    /// The GPU, by its number in HIP's order.
    pub device: usize,
    /// The groups of programs; all if it is empty.
    pub groups: Vec<String>,
    /// Whether only code that was made for the GPU itself is run.
    pub is_own_only: bool,
    /// The time of each process.
    pub limit: Duration,
    /// The time of all of them.
    pub total_limit: Duration,
    /// The directory that the code objects are written to.
    pub keep: Option<PathBuf>,
    /// The directory whose code objects are run in place of new ones, as far as they are there.
    pub objects: Option<PathBuf>,
}

/// Observes the groups of programs that are run.
pub trait ConfirmProgress {
    fn begin(&self, groups: usize);
    /// A group of programs starts.
    fn start_group(&self, name: String);
    fn end_group(&self);
    fn finish(&self);
}

/// Runs the programs on the GPU and judges their results by the table, whose digest is in the report.
///
/// # Errors
/// `UNKNOWN_TARGET` and `NO_INSTRUCTIONS` for a GPU that HotSwap or the table does not know, and the system's
/// if a file cannot be read or written, or no process be started.
pub fn confirm_card(
    card: CardFacts,
    request: &ConfirmRequest,
    expected: ExpectedTable,
    digest: u32,
    progress: &dyn ConfirmProgress,
) -> Result<ConfirmReport, Diagnostic> {
    let processor = card_processor(&card)?;
    if !expected.has_gpu(processor.name) {
        return Err(ConfirmError::NoExpectation(processor.name.to_owned()).into());
    }
    ConfirmSession::new(request, processor, expected, progress).run_all(card, digest)
}

/// A run on one GPU.
struct ConfirmSession<'a> {
    request: &'a ConfirmRequest,
    processor: &'static Processor,
    expected: ExpectedTable,
    runner: BatchRunner,
    /// The results of the GPU's own code, by probe.
    own: BTreeMap<String, Vec<u32>>,
    progress: &'a dyn ConfirmProgress,
}

impl<'a> ConfirmSession<'a> {
    fn new(
        request: &'a ConfirmRequest,
        processor: &'static Processor,
        expected: ExpectedTable,
        progress: &'a dyn ConfirmProgress,
    ) -> Self {
        let runner = BatchRunner {
            device: request.device,
            limit: request.limit,
            end: Instant::now() + request.total_limit,
            failures: 0,
        };
        Self { request, processor, expected, runner, own: BTreeMap::new(), progress }
    }

    fn run_all(&mut self, card: CardFacts, expected: u32) -> Result<ConfirmReport, Diagnostic> {
        let sources = if self.request.is_own_only { Vec::new() } else { sibling_processors(self.processor) };
        let objects = self.make_objects(self.processor)?;
        self.progress.begin(objects.len() * (sources.len() + 1));
        let mut report =
            ConfirmReport { version: env!("CARGO_PKG_VERSION"), expected, card, ..ConfirmReport::default() };
        for object in &objects {
            let bytes = self.exchange_object(object.processor, object, object.bytes.clone())?;
            report.native.extend(self.run_group(object.processor, &object.launches, &bytes)?);
        }
        for source in sources {
            report.siblings.push(SiblingOutcome { source: source.name.to_owned(), probes: self.run_sibling(source)? });
        }
        self.progress.finish();
        report.stopped = self.runner.stop_reason();
        Ok(report)
    }

    fn make_objects(&self, processor: &'static Processor) -> Result<Vec<ProbeObject>, Diagnostic> {
        let objects = make_objects(processor)?;
        let chosen = &self.request.groups;
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
        let given = self.request.objects.as_ref().map(|directory| directory.join(&name));
        let bytes = match given {
            Some(path) if hotswap_files::reads::is_there(&path)? => hotswap_files::read_file(&path)?.to_vec(),
            _ => bytes,
        };
        if let Some(directory) = &self.request.keep {
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
        self.progress.start_group(format!("{}: {group}", source.name));
        let mut runs = self.runner.run_object(bytes, launches)?;
        self.progress.end_group();
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
