//! The command line: one row for each command, with its function in [`crate::commands`].

use crate::allocator;
use crate::args::{Look, OutputOptions};
use crate::commands::{
    addr2func, bind, bundle, change, check, compat, confirm, diff, disasm, doctor, exec, extract, generate, inspect,
    lint, list, manifest, plan, profile, retarget, rewrite, run, serve, size, symbols, tables, toolchain, uses, verify,
};
use crate::outcome::CommandOutcome;
use crate::standard_output::CheckedOutput;
use crate::work::comgr;
use clap::{CommandFactory, Parser, Subcommand};
use hotswap_report::{Diagnostic, exit_codes, limit};
use std::ffi::OsString;
use std::path::PathBuf;

/// Looks into programs with AMD GPU code, makes plans, retargets fat binaries.
#[derive(Debug, Parser)]
#[command(name = "hotswap", version, after_help = exit_codes::exit_help(), max_term_width = 100)]
pub(crate) struct Cli {
    /// Bytes that the compressed parts of a file may expand to, with K, M or G behind them [default: 1G, or 256 times their size]
    #[arg(long, global = true, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Exit with 0, and not with 17, where a file is as requested already and nothing was to be changed
    #[arg(long, global = true)]
    allow_unchanged: bool,
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CliCommand {
    /// List the device code in programs, libraries, objects, archives and fat binaries
    #[command(after_help = exit_codes::exit_help())]
    List(Look),
    /// Show what HIP loads from a file for a GPU: the entry of each fat binary, and why
    #[command(after_help = exit_codes::exit_help())]
    Uses(uses::UsesArguments),
    /// Write device code to files of its own
    #[command(after_help = exit_codes::exit_help())]
    Extract(extract::ExtractArguments),
    /// Say how the device code came to be, and check it against HotSwap's records
    #[command(after_help = exit_codes::exit_help())]
    Inspect(inspect::InspectArguments),
    /// Show the instructions of a code object as assembly or JSON
    #[command(after_help = exit_codes::exit_help())]
    Disasm(disasm::DisasmArguments),
    /// List the functions of code objects: address, registers, callees, what a kernel reaches
    #[command(after_help = exit_codes::exit_help())]
    Symbols(symbols::SymbolsArguments),
    /// Name the functions that hold addresses
    #[command(after_help = exit_codes::exit_help())]
    Addr2func(addr2func::Addr2FuncArguments),
    /// Show which kernels or functions take the bytes of the code
    #[command(after_help = exit_codes::exit_help())]
    Size(size::SizeArguments),
    /// Compare the kernels of two files: added, gone, other registers, other size
    #[command(after_help = exit_codes::exit_help())]
    Diff(diff::DiffArguments),
    /// Check whether code objects export the device functions that another one imports, and its kernels have what these need
    #[command(after_help = exit_codes::exit_help())]
    Bind(bind::BindArguments),
    /// Examine the tool chain: what is there, what it supports, what is missing and which packages have it
    #[command(after_help = exit_codes::exit_help())]
    Doctor(OutputOptions),
    /// Ask a comgr whether it compiles SPIR-V; for HotSwap itself
    #[command(hide = true)]
    AskComgr {
        /// The library; without it the one that HIP loads
        library: Option<PathBuf>,
    },
    /// Have HIP say which GPUs there are, or run kernels on one; for HotSwap itself
    #[command(hide = true)]
    AskHip {
        /// The directory with the kernels
        directory: Option<PathBuf>,
    },
    /// List the files that a compile through HotSwap reads besides its sources
    #[command(after_help = exit_codes::exit_help())]
    Toolchain(toolchain::ToolchainArguments),
    /// Explain an error code, or what a check of code does
    #[command(after_help = exit_codes::exit_help())]
    Explain {
        /// Code, for example HS0203, or check, for example vgpr-fit; all of them without one
        name: Option<String>,
    },
    /// List the GPU targets that HotSwap knows
    #[command(after_help = exit_codes::exit_help())]
    Targets(tables::TargetsArguments),
    /// Say whether code for one processor may be relabelled for another
    #[command(after_help = exit_codes::exit_help())]
    Compat(compat::CompatArguments),
    /// List the patch families
    #[command(after_help = exit_codes::exit_help())]
    Families(OutputOptions),
    /// Check a plan, write its file and print its hash
    #[command(after_help = exit_codes::exit_help())]
    Plan(plan::PlanArguments),
    /// Write the manifest object that a link with a plan gets
    #[command(after_help = exit_codes::exit_help())]
    Manifest(manifest::ManifestArguments),
    /// Run a compiler through HotSwap, and anything else as it is (a compiler launcher)
    #[command(after_help = exit_codes::exit_help())]
    Exec {
        /// The command
        #[arg(required = true, last = true, value_name = "COMMAND")]
        command: Vec<OsString>,
    },
    /// Run a program with the real HIP runtime, or one kernel, on GPUs that the CPU emulates
    #[command(after_help = exit_codes::exit_help())]
    Run(run::RunArguments),
    /// Put code for more targets into a fat binary, or into a file that holds one
    #[command(after_help = exit_codes::exit_help())]
    Add(change::Put),
    /// Put other code in the place of entries that are there
    #[command(after_help = exit_codes::exit_help())]
    Replace(change::Put),
    /// Take entries out
    #[command(after_help = exit_codes::exit_help())]
    Remove(change::Remove),
    /// Keep or drop the code for some targets, in every fat binary of the file
    #[command(after_help = exit_codes::exit_help())]
    Prune(change::Prune),
    /// Make one library of several that were built of one source for different GPUs
    #[command(after_help = exit_codes::exit_help())]
    Merge(change::Merge),
    /// Make a file for each GPU of one that has code for several
    #[command(after_help = exit_codes::exit_help())]
    Split(change::Split),
    /// Compress every fat binary of the file
    #[command(after_help = exit_codes::exit_help())]
    Compress(change::Compress),
    /// Decompress every fat binary of the file
    #[command(after_help = exit_codes::exit_help())]
    Decompress(change::CommonArguments),
    /// Check structure, hashes, alignment, entry tables and records; or prove a rewrite against its original
    #[command(after_help = exit_codes::exit_help())]
    Verify(verify::VerifyArguments),
    /// Compare two code objects by executing both on generated states, such as a rewritten one and its original
    #[command(after_help = exit_codes::exit_help())]
    Check(check::CheckArguments),
    /// Run small programs on this machine's GPU that confirm or contradict what HotSwap claims; the report is to be pasted into an issue
    #[command(after_help = exit_codes::exit_help())]
    Confirm(confirm::ConfirmArguments),
    /// Judge code objects by the rules of their targets: instructions, distances, waits, modes, registers
    #[command(after_help = exit_codes::exit_help())]
    Lint(lint::LintArguments),
    /// Merge and show profiles of host and device code, and report their coverage
    #[command(subcommand, after_help = exit_codes::exit_help())]
    Profile(profile::ProfileCommand),
    /// Add targets to a program, library, object, archive or fat binary
    #[command(after_help = exit_codes::exit_help())]
    Retarget(retarget::RetargetArguments),
    /// Serve more GPUs with the installed ROCm libraries: everything that they need, in a directory of its own
    #[command(after_help = exit_codes::exit_help())]
    Serve(serve::ServeArguments),
    /// Make a fat binary of code objects in files of their own
    #[command(after_help = exit_codes::exit_help())]
    Bundle(bundle::BundleArguments),
    /// Print man pages and shell completions
    #[command(after_help = exit_codes::exit_help())]
    Generate(generate::GenerateArguments),
    /// Change the code for a GPU until it runs on another stepping of it
    #[command(after_help = exit_codes::exit_help())]
    Rewrite(rewrite::RewriteArguments),
}

/// A number of bytes: `4096`, `64K`, `512M`, `4G`.
fn size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 10),
        Some(b'M' | b'm') => (&text[..text.len() - 1], 20),
        Some(b'G' | b'g') => (&text[..text.len() - 1], 30),
        _ => (text, 0),
    };
    let number = digits.parse::<u64>().map_err(|error| error.to_string())?;
    number.checked_mul(1 << shift).ok_or_else(|| "more than 64 bits hold".to_owned())
}

impl Cli {
    pub(crate) fn run(self) -> Result<CommandOutcome, Diagnostic> {
        limit::set_limit(self.max_size);
        match self.command {
            CliCommand::Rewrite(_) => allocator::keep_memory_in_small_pages(),
            CliCommand::Serve(_) => allocator::return_memory(),
            _ => {}
        }
        if matches!(
            self.command,
            CliCommand::Disasm(_)
                | CliCommand::Check(_)
                | CliCommand::Lint(_)
                | CliCommand::Retarget(_)
                | CliCommand::Rewrite(_)
                | CliCommand::Serve(_)
                | CliCommand::Verify(_)
                | CliCommand::Symbols(_)
                | CliCommand::Addr2func(_)
                | CliCommand::Size(_)
                | CliCommand::Diff(_)
                | CliCommand::Bind(_)
        ) {
            prepare_pool();
        }
        let outcome = self.command.run()?;
        let is_unchanged = outcome.is_unchanged && !self.allow_unchanged;
        Ok(CommandOutcome { is_unchanged, ..outcome })
    }
}

/// Rayon's default pool panics where the system has no more threads; its own can be made once only, so the threads are counted
/// first. Without any, this thread is the pool.
fn prepare_pool() {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let builder = match hotswap_files::available_threads(cores) {
        0 => rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread(),
        count => rayon::ThreadPoolBuilder::new().num_threads(count),
    };
    // A pool that could not be made is made again, and panics then; nothing else can be done.
    let _ = builder.build_global();
}

impl CliCommand {
    fn run(self) -> Result<CommandOutcome, Diagnostic> {
        match self {
            Self::List(files) => list::run(&files),
            Self::Uses(arguments) => uses::run(&arguments),
            Self::Extract(arguments) => extract::run(&arguments),
            Self::Inspect(files) => inspect::run(&files),
            Self::Disasm(arguments) => disasm::run(&arguments, CheckedOutput::new()),
            Self::Symbols(arguments) => symbols::run(&arguments),
            Self::Addr2func(arguments) => addr2func::run(&arguments),
            Self::Size(arguments) => size::run(&arguments),
            Self::Diff(arguments) => diff::run(&arguments),
            Self::Bind(arguments) => bind::run(&arguments),
            Self::Doctor(output) => doctor::run(&output),
            Self::AskComgr { library } => {
                Ok(CommandOutcome { text: comgr::ask_loaded_comgr(library.as_deref()), ..CommandOutcome::default() })
            }
            Self::AskHip { directory } => hotswap_confirm::ask_hip(directory.as_deref()).map(CommandOutcome::from),
            Self::Toolchain(arguments) => toolchain::run(&arguments),
            Self::Explain { name } => tables::explain(name.as_deref()),
            Self::Targets(arguments) => tables::targets(&arguments),
            Self::Compat(arguments) => compat::run(&arguments),
            Self::Families(output) => Ok(tables::families(output.format)),
            Self::Plan(arguments) => plan::run(&arguments),
            Self::Manifest(arguments) => manifest::run(&arguments),
            Self::Exec { command } => Err(exec::run(&command)),
            Self::Run(arguments) => run::run(&arguments),
            Self::Add(arguments) => change::add(&arguments),
            Self::Replace(arguments) => change::replace(&arguments),
            Self::Remove(arguments) => change::remove(&arguments),
            Self::Prune(arguments) => change::prune(&arguments),
            Self::Merge(arguments) => change::merge(&arguments),
            Self::Split(arguments) => change::split(&arguments),
            Self::Compress(arguments) => change::compress(&arguments),
            Self::Decompress(arguments) => change::decompress(&arguments),
            Self::Verify(arguments) => verify::run(&arguments),
            Self::Check(arguments) => check::run(&arguments),
            Self::Confirm(arguments) => confirm::run(&arguments),
            Self::Lint(arguments) => lint::run(&arguments),
            Self::Profile(command) => command.run(),
            Self::Retarget(arguments) => retarget::run(&arguments),
            Self::Serve(arguments) => serve::run(&arguments),
            Self::Bundle(arguments) => bundle::run(&arguments),
            Self::Generate(arguments) => generate::run(&arguments, Cli::command()),
            Self::Rewrite(arguments) => rewrite::run(&arguments),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::generate::{completions, names, page};
    use clap_complete::Shell;
    use hotswap_report::codes;

    #[test]
    fn every_command_has_a_page_with_its_options() {
        let names = names(&Cli::command());
        assert!(names.contains(&"hotswap-retarget".to_owned()) && names.len() > 25);
        for name in &names[1..] {
            let page = String::from_utf8(page(Cli::command(), name.strip_prefix("hotswap-")).unwrap()).unwrap();
            assert!(page.contains(".SH NAME\n") && page.contains(&name.replace('-', "\\-")), "{name}: {page}");
        }
        assert_eq!(page(Cli::command(), Some("absent")).unwrap_err().code, codes::USAGE);
        let retarget = String::from_utf8(page(Cli::command(), Some("retarget")).unwrap()).unwrap();
        assert!(retarget.contains("keep\\-source"), "{retarget}");
    }

    /// Options and commands in the examples of `hotswap explain` exist.
    #[test]
    fn examples_of_errors_are_commands() {
        let mut count = 0;
        for explanation in hotswap_report::explanations::EXPLANATIONS {
            let id = explanation.code.id;
            let command = explanation.example.split("     (").next().unwrap().split(" > ").next().unwrap();
            if !command.starts_with("hotswap ") || id == codes::USAGE.id {
                continue;
            }
            let words = command.split_whitespace().map(|word| word.trim_matches('\''));
            let parsed = Cli::command().try_get_matches_from(words);
            assert!(parsed.is_ok(), "{id}: `{command}`: {}", parsed.unwrap_err());
            count += 1;
        }
        assert!(count > 40, "{count}");
    }

    #[test]
    fn completions_know_the_commands() {
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            let text = String::from_utf8(completions(&mut Cli::command(), shell)).unwrap();
            assert!(text.contains("retarget") && text.contains("doctor"), "{shell}");
        }
    }
}
