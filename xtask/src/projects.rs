//! The task `projects`: parts of real HIP projects, built by clang and through HotSwap, compared, and run on emulated GPUs.
//!
//! | module | task |
//! | --- | --- |
//! | `table` | the projects as data |
//! | `build` | four builds of a project, and their comparison |
//! | `code` | the code objects in a file, by LLVM's tools |
//! | `page` | `docs/evidence/projects.md` |
//!
//! Invariants: sources are downloaded when the task runs and never committed. The judges are LLVM's tools and the bytes of
//! files, nothing of HotSwap's. A project that fails gets a row with the reason, the next one follows, and the task fails.
//!
//! Absent on purpose: the projects' own build systems. They download further projects, and build for an hour.

mod build;
mod code;
mod page;
mod table;

use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::packages::{Package, Packages};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths, remove};
pub(crate) use build::TIMED;
use build::{Comparison, ProjectBench};
use clap::Parser;
use std::fs;
use std::path::PathBuf;
pub(crate) use table::MAGMA_HEADERS;
use table::PROJECTS;

/// Builds parts of real HIP projects by clang and through HotSwap, and writes docs/evidence/projects.md.
#[derive(Parser)]
struct Options {
    /// Only projects whose name contains this; the page keeps the rows of the others.
    only: Option<String>,
    /// Use this installation in place of a new build.
    #[arg(long, value_name = "PREFIX")]
    installed: Option<PathBuf>,
}

/// The sources of ggml, and the packages whose headers they need.
pub(crate) fn ggml_packages() -> Vec<Package> {
    let ggml = PROJECTS.iter().filter(|project| project.name.starts_with("ggml"));
    ggml.flat_map(|project| std::iter::once(project.sources).chain(project.packages.iter().copied())).collect()
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let (prefix, work) =
        (options.installed.clone().unwrap_or_else(|| paths::scratch("prefix")), paths::scratch("projects"));
    remove::delete(&work)?;
    let prefix = fs::canonicalize(&prefix).unwrap_or(prefix);
    let session = Session::open(Part::Tests, &prefix, &work)?;
    if options.installed.is_none() {
        install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    }
    let bench = ProjectBench { session, work: work.clone(), packages: Packages::open()? };
    let page = paths::workspace().join("docs/evidence/projects.md");
    let mut failed = Vec::new();
    let is_wanted = |name: &str| options.only.as_ref().is_none_or(|part| name.contains(part.as_str()));
    for project in PROJECTS.iter().filter(|project| is_wanted(project.name)) {
        println!("{}", project.name);
        let comparison = bench.compare(project).unwrap_or_else(|failure| Comparison::failed(&failure));
        failed.extend((!comparison.failures.is_empty()).then_some(project.name));
        page::update(&page, project, &comparison)?;
    }
    fs::remove_dir_all(&work).during("delete", &work)?;
    println!("The table is in {}", page.display());
    if failed.is_empty() { Ok(()) } else { fail(format!("{}: see the table", failed.join(", "))) }
}
