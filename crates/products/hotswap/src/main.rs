//! `hotswap`: inspects programs with GPU code, makes plans, changes finished fat binaries.
//!
//! Each command collects its output and returns it; only this file prints and exits. The exception is `disasm`, which
//! streams because its output can be larger than memory. Errors are one line on standard error, `hotswap: error:
//! [HSxxxx] …`, and the exit code is that of the diagnostic's code.
//!
//! | module | task |
//! | --- | --- |
//! | `allocator` | the allocator, and its settings for large rewrites |
//! | `cli` | the command line, one row for each command |
//! | `args` | arguments that several commands share |
//! | `commands` | one module for each command: its arguments, its report |
//! | `work` | functions that several commands share: the inventory of a file, changing its containers, text |
//! | `outcome` | output and problems of a command |
//! | `standard_output` | `-o -` |
//! | `stream_input` | inputs that are pipes or devices |
//!
//! Absent on purpose: everything about containers, targets and patching (the libraries).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod allocator;
mod args;
mod cli;
mod commands;
mod outcome;
mod standard_output;
mod stream_input;
mod work;

use clap::Parser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use hotswap_report::{Diagnostic, codes};
use outcome::CommandOutcome;
use std::any::Any;
use std::env;
use std::io::{self, Write};
use std::panic::{self, UnwindSafe};
use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;
use work::text;
use work::unknown_variables::take_unknown_variables;

fn main() -> ExitCode {
    hotswap_files::end_on_truncated_input("hotswap");
    finish(catching(|| match cli::Cli::try_parse() {
        Ok(cli) => cli.run().unwrap_or_else(CommandOutcome::failed),
        Err(error) if !error.use_stderr() => CommandOutcome::from(error.render().to_string()),
        Err(error) => CommandOutcome::failed(command_line_error(&error)),
    }))
}

/// The outcome of a run. A panic of any of its threads becomes one line like every other error.
fn catching(run: impl FnOnce() -> CommandOutcome + UnwindSafe) -> CommandOutcome {
    panic::set_hook(Box::new(|info| {
        let place = info.location().map_or(String::new(), |place| format!(" ({}:{})", place.file(), place.line()));
        let _ = PANIC.set(format!("{}{place}", message(info.payload())));
    }));
    panic::catch_unwind(run).unwrap_or_else(|cause| {
        // After a panic in a thread the cause is unspecific, but the hook has recorded it.
        let what = PANIC.get().cloned().unwrap_or_else(|| message(cause.as_ref()).to_owned());
        CommandOutcome::failed(Diagnostic::error(codes::INTERNAL, what))
    })
}

/// Message and location of the first panic.
static PANIC: OnceLock<String> = OnceLock::new();

fn message(cause: &(dyn Any + Send)) -> &str {
    let text = cause.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("no message")
}

/// The error of the command line, or of a stream that it names.
fn command_line_error(error: &clap::Error) -> Diagnostic {
    let other = stream_input::stream_error(error).or_else(|| without_separator(error, env::args()));
    other.unwrap_or_else(|| usage(error))
}

/// clap's message without its paragraphs of help.
fn usage(error: &clap::Error) -> Diagnostic {
    let text = error.render().to_string();
    let message = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
    let words: Vec<&str> = message.split_whitespace().collect();
    let diagnostic = Diagnostic::error(codes::USAGE, words.join(" "));
    match suggestion(error) {
        Some(known) => diagnostic.advise(format!("did you mean `{known}`? See --help")),
        None => diagnostic,
    }
}

/// The arguments by which `hotswap run` starts a kernel instead of a program.
const DIRECT: [&str; 5] = ["--kernel", "--grid", "--group", "--lds", "--arg"];

/// The message for `hotswap run` with a program that does not follow `--`: clap would ask for `--kernel`, or for an
/// option of the program's.
fn without_separator(error: &clap::Error, mut words: impl Iterator<Item = String>) -> Option<Diagnostic> {
    let is_about_words = matches!(error.kind(), ErrorKind::MissingRequiredArgument | ErrorKind::UnknownArgument);
    words.find(|word| word == "run")?;
    if !is_about_words || words.any(|word| is_separator_or_direct(&word)) {
        return None;
    }
    let what = "`run` starts the program that follows `--`, and there is no `--`";
    Some(Diagnostic::error(codes::USAGE, what).advise("write `hotswap run --gpu GPU -- PROGRAM ARGUMENTS`"))
}

fn is_separator_or_direct(word: &str) -> bool {
    word == "--" || DIRECT.contains(&word.split('=').next().unwrap_or_default())
}

/// The command, option or value that is most like the unknown one.
fn suggestion(error: &clap::Error) -> Option<String> {
    let kinds = [ContextKind::SuggestedSubcommand, ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    kinds.iter().find_map(|kind| match error.get(*kind)? {
        ContextValue::String(name) => Some(name.clone()),
        // clap's list ends with the best.
        ContextValue::Strings(names) => names.last().cloned(),
        _ => None,
    })
}

fn finish(mut outcome: CommandOutcome) -> ExitCode {
    outcome.problems.extend(take_unknown_variables());
    let placeholder = standard_output::current();
    let (printed, report) = match standard_output::take() {
        None => (stream_input::named(std::mem::take(&mut outcome.text)).into_bytes(), String::new()),
        // The report is for people, and the file is what the reader of the pipe wants.
        Some(Ok(bytes)) if !outcome.has_error() => (bytes, std::mem::take(&mut outcome.text)),
        Some(file) => {
            outcome.problems.extend(file.err());
            (Vec::new(), std::mem::take(&mut outcome.text))
        }
    };
    let mut out = io::stdout().lock();
    let mut is_cut = false;
    match standard_output::check_open(&printed).and_then(|()| out.write_all(&printed)).and_then(|()| out.flush()) {
        // The reader has closed the pipe (`hotswap list … | head`): it knows, and the exit code tells other readers.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => is_cut = true,
        Err(error) => {
            let error = Diagnostic::error(codes::CANNOT_PRINT, error.to_string());
            outcome.problems.push(error);
        }
        Ok(()) => {}
    }
    let mut errors = io::stderr().lock();
    let _ = errors.write_all(with_stream_names(report, placeholder.as_deref()).as_bytes());
    for line in hotswap_file_reports::grouped::grouped_lines(&outcome.problems) {
        // Names out of files may contain line ends. If standard error cannot be written, the exit code remains.
        let _ = writeln!(errors, "hotswap: {}", text::plain(&with_stream_names(line, placeholder.as_deref())));
    }
    stream_input::remove_copies();
    let code = exit_code(&outcome);
    ExitCode::from(if is_cut && code == 0 { codes::CANNOT_PRINT.exit } else { code })
}

/// The text with streams in the place of the temporary files that stand for them.
fn with_stream_names(text: String, placeholder: Option<&Path>) -> String {
    stream_input::named(standard_output::named(text, placeholder))
}

/// The exit code of the first error, or of a command that had nothing to change.
fn exit_code(outcome: &CommandOutcome) -> u8 {
    let error = outcome.problems.iter().find(|problem| problem.severity == hotswap_report::Severity::Error);
    let unchanged = if outcome.is_unchanged { codes::UNCHANGED.exit } else { 0 };
    error.map_or(unchanged, |error| error.code.exit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_words_are_answered_with_the_known_ones() {
        for (words, known) in
            [("lst", "`list`"), ("list --fromat json", "`--format`"), ("list --format jsn x", "`json`")]
        {
            let error = cli::Cli::try_parse_from(["hotswap"].into_iter().chain(words.split(' '))).unwrap_err();
            let line = usage(&error).to_string();
            assert!(line.contains(&format!("did you mean {known}?")), "{words}: {line}");
        }
        let error = cli::Cli::try_parse_from(["hotswap", "qqqqqq"]).unwrap_err();
        assert!(!usage(&error).to_string().contains("did you mean"));
    }

    #[test]
    fn a_program_that_follows_no_separator_is_answered_with_the_separator() {
        let line = |text: &str| {
            let words = || text.split(' ').map(str::to_owned);
            let error = cli::Cli::try_parse_from(words()).unwrap_err();
            without_separator(&error, words()).unwrap_or_else(|| usage(&error)).to_string()
        };
        for text in
            ["./a", "--gpu gfx1031 ./a", "--gpu gfx1031 ./a x --size 5", "--gpu gfx1031 ./a --size", "--gpu gfx1031"]
        {
            let line = line(&format!("hotswap run {text}"));
            assert!(
                line.contains("there is no `--`; write `hotswap run --gpu GPU -- PROGRAM ARGUMENTS`"),
                "{text}: {line}"
            );
        }
        for (text, part) in [
            ("hotswap run --gpu gfx9999 ./a", "gfx9999"),
            ("hotswap run --gpu gfx1031 --cuonters -- ./a", "--counters"),
            ("hotswap run --gpu gfx1031 --grid 64 a.co", "--kernel"),
            ("hotswap lst run", "`list`"),
        ] {
            assert!(line(text).contains(part) && !line(text).contains("no `--`"), "{}", line(text));
        }
    }

    /// One test for both, since the hook and its record are global to the process.
    #[test]
    fn a_panic_ends_with_70_and_says_where() {
        let failed = catching(|| {
            let thread = std::thread::scope(|scope| scope.spawn(|| -> CommandOutcome { panic!("of a thread") }).join());
            thread.expect("the thread failed")
        });
        assert_eq!(exit_code(&failed), 70);
        let line = failed.problems[0].to_string();
        assert!(line.contains("[HS0002]") && line.contains("of a thread (") && line.contains("main.rs:"), "{line}");
        assert_eq!(exit_code(&catching(CommandOutcome::default)), 0);
        let _ = panic::take_hook();
    }
}
