//! Projects with several programs: each is built for itself, its device code is compared with the request, and it is executed on
//! every GPU by the emulator.
//!
//! Invariant: the step examines all programs and reports each that is wrong.

use crate::case::Program;
use crate::site::{Site, both};
use crate::table::LOST;
use hotswap_tests::say;

/// Examines the programs; where `may_stop`, a build that ends with HotSwap's own message is right, too.
pub(crate) fn execute(site: &Site<'_>, programs: &[Program], gpus: &[&str], may_stop: bool) -> Result<(), String> {
    let (mut wrong, mut stopped) = (Vec::new(), 0);
    for program in programs {
        match examine(site, *program, gpus) {
            Err(Fault::Stopped(text)) if may_stop && is_our_message(&text) => stopped += 1,
            Err(Fault::Stopped(text)) => wrong.push(format!("{}: the build stops: {text}", program.name)),
            Err(Fault::Wrong(text)) => wrong.push(format!("{}: {text}", program.name)),
            Ok(()) => {}
        }
    }
    let right = programs.len() - stopped - wrong.len();
    say(&format!("{}: {right} programs run on {}, {stopped} builds stop", site.unit(), gpus.join(", ")));
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n--\n")) }
}

/// Why a program is not right.
enum Fault {
    /// Its build ended with this output.
    Stopped(String),
    Wrong(String),
}

/// The linker's message about a lost plan, or a diagnostic.
fn is_our_message(text: &str) -> bool {
    text.contains(LOST) || text.contains("error: [HS")
}

fn examine(site: &Site<'_>, program: Program, gpus: &[&str]) -> Result<(), Fault> {
    let built = site.build(Some(program.name));
    if !built.ok() {
        return Err(Fault::Stopped(both(&built)));
    }
    let file = format!("{}/{}", site.inside(site.tree), program.file);
    site.hotswap(&["verify", "--require", &gpus.join(","), &file]).map_err(Fault::Wrong)?;
    gpus.iter().try_for_each(|gpu| run_on(site, program, gpu)).map_err(Fault::Wrong)
}

fn run_on(site: &Site<'_>, program: Program, gpu: &str) -> Result<(), String> {
    let path = format!("{}/{}", site.inside(site.tree), program.name);
    let printed = site.hotswap(&["run", "--gpu", gpu, "--", &path]).map_err(|error| format!("on {gpu}: {error}"))?;
    let expected = "64 of 64 results are right\n";
    if printed == expected { Ok(()) } else { Err(format!("on {gpu}: it prints {printed}")) }
}
