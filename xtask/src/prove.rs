//! The task `prove`: evidence by execution; it writes `docs/evidence/execution.md`.
//!
//! It is a program of `tests/prove-exam`; this task provides the userland with its compilers, ggml's sources, and csmith.

use crate::built::{Built, Profile};
use crate::outcome::{Outcome, fail};
use crate::packages::{Origin, Package, Packages};
use crate::recipe::Part;
use crate::session::Session;
use crate::{isa_source, paths, projects, run};
use clap::Parser;
use hotswap_userland::ENV_PREFIX;
use std::ffi::OsString;
use std::process::Command;

/// The directories of ggml's sources and of the headers that it needs, for the exam.
const ENV_GGML: &str = "HOTSWAP_PROVE_GGML";
/// The unpacked packages of csmith.
const ENV_CSMITH: &str = "HOTSWAP_PROVE_CSMITH";
const CSMITH: [Package; 2] =
    [Package { name: "csmith", origin: Origin::Sid }, Package { name: "libcsmith-dev", origin: Origin::Sid }];

/// Executes what HotSwap makes, and what it was made from, and writes the table of evidence.
#[derive(Parser)]
struct Options {
    /// `all` (no part), or one part: `rewrites [NAME]`, `mutations`, `proofs`, `exhaustive`, `pseudo-code`, `twins`, `csmith`, `programs`, `libraries`; `judges [NAME] [--programs] [--page FILE]` (all judges about the same objects); `random` (random kernels); `lint [TARGET] [--checkouts DIRECTORY] [--page FILE]` (`hotswap lint` about what compilers make); `--long` and other options of sizes follow, `PART --help` lists them.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let Options { mut words } = Options::parse_from(words);
    if words.first().is_none_or(|word| word.starts_with('-')) {
        words.insert(0, "all".to_owned());
    }
    let session = Session::open(Part::Tests, &paths::scratch("prefix"), &paths::scratch("work"))?;
    // The exam, and programs that it starts: the command, and the libraries for HSA and for shown names. One build, in the
    // profile of the tests: the emulator is optimised there, and where the tests ran all of it exists.
    let mut build = Command::new(paths::cargo());
    build.args(["build", "--quiet", "--profile", Profile::Checked.name()]);
    build.arg("--package=hotswap-prove-exam");
    // These parts start no program of ours.
    if !["random", "judges", "lint", "mutations", "rewrites"].contains(&words[0].as_str()) {
        build.args(["hotswap", "hotswap-names", "hotswap-hsa-emulated"].map(|package| format!("--package={package}")));
    }
    let built = Built::new(build, &[])?;
    let Some(program) = built.programs.iter().find(|program| program.ends_with("prove")) else {
        return fail("cargo has built no program `prove`");
    };
    let mut command = session.beside(program);
    command.current_dir(paths::workspace()).env_remove(ENV_PREFIX);
    if ["all", "libraries"].contains(&words[0].as_str()) {
        command.env(ENV_GGML, unpacked(&projects::ggml_packages())?);
    }
    if ["all", "csmith"].contains(&words[0].as_str()) {
        command.env(ENV_CSMITH, unpacked(&CSMITH)?);
    }
    if ["judges", "lint"].contains(&words[0].as_str()) {
        words.extend(["--llvm".to_owned(), isa_source::code_generation_tests()?.display().to_string()]);
    }
    run::show(command.args(words))
}

/// The directories of packages, which are downloaded now if they do not exist.
fn unpacked(wanted: &[Package]) -> Outcome<OsString> {
    let packages = Packages::open()?;
    let mut directories = Vec::new();
    for package in wanted {
        directories.push(packages.get(package)?.directory);
    }
    Ok(std::env::join_paths(directories)?)
}
