//! `hotswap confirm`: the GPU of this machine runs small programs, and confirms what HotSwap claims or contradicts it.
//!
//! For this GPU, and for each GPU whose code HotSwap derives for it: the same kernels, of one instruction each and larger ones. The
//! results must be those that the emulator gave when the table of the build was written, and the derived code's those of the
//! GPU's own. Everything that touches the GPU is done by child processes with a time limit.
//!
//! Absent on purpose: kernels, processes and judgement (`hotswap-confirm`), and anything that leaves the machine: the report is printed.

use crate::args::{OutputFormat, OutputOptions};
use crate::outcome::CommandOutcome;
use crate::work::temporary::check_temporary_directory;
use crate::work::text;
use clap::Args;
use hotswap_confirm::{
    ConfirmError, ConfirmProgress, ConfirmRequest, EXPECTED_TEXT, ExpectedTable, all_groups, all_probes,
    check_environment, confirm_card, digest_words, examine_card,
};
use hotswap_emulator::variables;
use hotswap_report::{Diagnostic, codes};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::Value;
use std::env;
use std::path::PathBuf;
use std::time::Duration;

/// Files of HIP while it starts.
const RUNTIME_FILES: usize = 1 << 20;

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
    let request = arguments.request();
    let is_emulated = env::var_os(variables::GPUS).is_some_and(|gpus| !gpus.is_empty());
    let card = examine_card(request.device, request.limit, is_emulated)?;
    let report = confirm_card(card, &request, expected, digest_of_text(&expected_text), &GroupBar::new())?;
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

impl ConfirmArguments {
    fn request(&self) -> ConfirmRequest {
        ConfirmRequest {
            device: self.device,
            groups: self.group.clone(),
            is_own_only: self.own,
            limit: Duration::from_secs(self.limit),
            total_limit: Duration::from_secs(self.total_limit),
            keep: self.keep.clone(),
            objects: self.objects.clone(),
        }
    }
}

/// A bar that counts groups of programs, on a terminal only.
struct GroupBar(ProgressBar);

impl GroupBar {
    fn new() -> Self {
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{msg} {bar:40} {pos}/{len} {elapsed}");
        Self(style.map_or(bar.clone(), |style| bar.with_style(style)))
    }
}

impl ConfirmProgress for GroupBar {
    fn begin(&self, groups: usize) {
        self.0.set_length(groups as u64);
    }

    fn start_group(&self, name: String) {
        self.0.set_message(name);
    }

    fn end_group(&self) {
        self.0.inc(1);
    }

    fn finish(&self) {
        self.0.finish_and_clear();
    }
}
