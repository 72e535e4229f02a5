//! The kernels of one code object, run by processes of their own with a time limit.
//!
//! Invariants: a process that does not end is killed and, if the system cannot end it, left; after a few failures nothing more is
//! started, so that a GPU that hangs is not made to hang again.

use crate::expected::parse_words;
use crate::hip_process::{ASK_HIP, ENDED, FAILED, JOB, OBJECT, RESULTS, STARTED};
use crate::inputs::{CASES, RESULT_WORDS};
use crate::probe_objects::ProbeLaunch;
use hotswap_files::ScratchDirectory;
use hotswap_files::asked_program::is_unusable;
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Failures after which nothing more is started.
const MOST_FAILURES: usize = 3;
/// How long a killed process may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result of a kernel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KernelRun {
    Words(Vec<u32>),
    Failed(String),
    NotRun(String),
}

/// Runs batches one after the other within the limits.
#[derive(Debug)]
pub(crate) struct BatchRunner {
    pub(crate) device: usize,
    /// The time of each process.
    pub(crate) limit: Duration,
    /// The end of the time of all of them.
    pub(crate) end: Instant,
    pub(crate) failures: usize,
}

impl BatchRunner {
    /// Why nothing more is started.
    pub(crate) fn stop_reason(&self) -> Option<String> {
        if self.failures >= MOST_FAILURES {
            return Some(format!("{} kernels have failed, and more could disturb the machine", self.failures));
        }
        (Instant::now() >= self.end).then(|| "the time is over (--total-limit)".to_owned())
    }

    /// Runs all kernels of a code object; after one that fails, the others in a new process.
    pub(crate) fn run_object(
        &mut self,
        object: &[u8],
        launches: &[ProbeLaunch],
    ) -> Result<BTreeMap<String, KernelRun>, Diagnostic> {
        let mut runs: BTreeMap<String, KernelRun> = BTreeMap::new();
        loop {
            let open: Vec<&ProbeLaunch> = launches.iter().filter(|launch| !runs.contains_key(&launch.name)).collect();
            if open.is_empty() {
                return Ok(runs);
            }
            if let Some(reason) = self.stop_reason() {
                runs.extend(open.iter().map(|launch| (launch.name.clone(), KernelRun::NotRun(reason.clone()))));
                return Ok(runs);
            }
            let made = self.run_process(object, &open)?;
            self.failures += made.values().filter(|run| matches!(run, KernelRun::Failed(_))).count();
            runs.extend(made);
        }
    }

    /// Runs kernels in one process, up to the first that fails. There is a result for at least one of them.
    fn run_process(&self, object: &[u8], open: &[&ProbeLaunch]) -> Result<BTreeMap<String, KernelRun>, Diagnostic> {
        let scratch = ScratchDirectory::temporary("hotswap-confirm-")?;
        write_file(&scratch.path().join(OBJECT), object)?;
        write_file(&scratch.path().join(JOB), job_json(self.device, open).to_string().as_bytes())?;
        let limit = self.limit.min(self.end.saturating_duration_since(Instant::now()));
        let ending = run_child(scratch.path(), limit)?;
        let text = read_results(&scratch.path().join(RESULTS))?;
        let mut runs = BTreeMap::new();
        let mut started = None;
        for line in text.lines() {
            read_line(line, &mut runs, &mut started);
        }
        if let Some(name) = started.filter(|name| !runs.contains_key(name)) {
            runs.insert(name, KernelRun::Failed(ending.clone()));
        }
        if runs.is_empty() {
            // The module was not loaded, or the process ended before: none of its kernels can be run.
            let reason = text
                .lines()
                .find_map(|line| line.strip_prefix(FAILED))
                .map_or(ending, |reason| reason.trim().to_owned());
            runs.extend(open.iter().skip(1).map(|launch| (launch.name.clone(), KernelRun::NotRun(reason.clone()))));
            runs.extend(open.first().map(|launch| (launch.name.clone(), KernelRun::Failed(reason))));
        }
        Ok(runs)
    }
}

fn job_json(device: usize, open: &[&ProbeLaunch]) -> Value {
    let launches: Vec<Value> = open
        .iter()
        .map(|launch| json!({ "name": launch.name, "groups": launch.groups, "group_size": launch.group_size }))
        .collect();
    json!({ "device": device, "launches": launches })
}

/// The lines that a process has written; none if it ended before.
fn read_results(path: &Path) -> Result<String, Diagnostic> {
    if !hotswap_files::reads::is_there(path)? {
        return Ok(String::new());
    }
    Ok(String::from_utf8_lossy(&hotswap_files::read_file(path)?).into_owned())
}

fn write_file(path: &Path, bytes: &[u8]) -> Result<(), Diagnostic> {
    fs::write(path, bytes).map_err(|error| Diagnostic::cannot_write(path, error))
}

/// A line of the results: a mark, the kernel's name, and its words or the reason of a failure.
fn read_line(line: &str, runs: &mut BTreeMap<String, KernelRun>, started: &mut Option<String>) {
    let mut parts = line.splitn(3, ' ');
    let (Some(mark), Some(name), Some(rest)) = (parts.next(), parts.next(), parts.next()) else { return };
    match mark {
        STARTED => *started = Some(name.to_owned()),
        ENDED => {
            let words = parse_words(rest).ok().filter(|words| words.len() == CASES * RESULT_WORDS);
            runs.extend(words.map(|words| (name.to_owned(), KernelRun::Words(words))));
        }
        FAILED if !name.is_empty() => drop(runs.insert(name.to_owned(), KernelRun::Failed(rest.to_owned()))),
        _ => {}
    }
}

/// This program as `hotswap ask-hip`.
pub(crate) fn ask_hip_command() -> Result<Command, Diagnostic> {
    let mut command = Command::new(hotswap_files::own_program()?);
    command.arg(ASK_HIP).stdin(Stdio::null());
    Ok(command)
}

/// Runs the job of a directory; how the process ended, in words.
fn run_child(directory: &Path, limit: Duration) -> Result<String, Diagnostic> {
    let mut command = ask_hip_command()?;
    command.arg(directory).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().map_err(|error| unstarted_error(&command, &error))?;
    Ok(match wait_for(&mut child, limit) {
        Some(status) if status.success() => "the process ended without a result".to_owned(),
        Some(status) => format!("the process ended with {status}"),
        None => {
            // A process that the driver holds does not end by this; it is not waited for.
            let _ = child.kill();
            let _ = wait_for(&mut child, PATIENCE);
            format!("it did not end within {} seconds", limit.as_secs().max(1))
        }
    })
}

pub(crate) fn unstarted_error(command: &Command, error: &std::io::Error) -> Diagnostic {
    let reason = if is_unusable(error) { "it cannot be started again".to_owned() } else { error.to_string() };
    Diagnostic::error(codes::NOT_STARTED, reason).in_file(Path::new(command.get_program()))
}

/// How the process ended; `None` if it did not within the limit.
pub(crate) fn wait_for(child: &mut Child, limit: Duration) -> Option<std::process::ExitStatus> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(None) if start.elapsed() < limit => thread::sleep(Duration::from_millis(5)),
            Ok(ended) => return ended,
            Err(_) => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_read_up_to_the_kernel_that_fails() {
        let (mut runs, mut started) = (BTreeMap::new(), None);
        let words = "00000007".repeat(CASES * RESULT_WORDS);
        for line in [
            "started v_one ".to_owned(),
            format!("ended v_one {words}"),
            "started v_two ".to_owned(),
            "failed v_two hipDeviceSynchronize: hipErrorLaunchFailure (719)".to_owned(),
            "started v_three ".to_owned(),
            format!("ended v_three {}", &words[..80]),
        ] {
            read_line(&line, &mut runs, &mut started);
        }
        assert!(matches!(&runs["v_one"], KernelRun::Words(words) if words[0] == 7));
        assert!(matches!(&runs["v_two"], KernelRun::Failed(reason) if reason.ends_with("(719)")));
        // A line that was cut off is no result.
        assert_eq!((runs.len(), started.as_deref()), (2, Some("v_three")));
    }

    #[test]
    fn a_process_that_does_not_end_is_left_in_time() {
        let mut child = Command::new("sleep").arg("100").spawn().unwrap();
        let start = Instant::now();
        assert!(wait_for(&mut child, Duration::from_millis(50)).is_none());
        child.kill().unwrap();
        assert!(wait_for(&mut child, PATIENCE).is_some() && start.elapsed() < PATIENCE);
    }
}
