//! `cargo xtask isa bench`: the cost of reading machine code, on real code.
//!
//! The code is that of Debian's rocRAND, and for gfx1250, for which nothing is packaged, rocPRIM's kernels, compiled
//! here once by the userland's clang 22.

use crate::isa_source::Apt;
use crate::library::{ROCRAND, library};
use crate::outcome::{During, Outcome};
use crate::recipe::Part;
use crate::session::Session;
use crate::{paths, remove, run};
use std::fs;
use std::path::PathBuf;

/// Headers only; the version in experimental knows gfx1250.
const HEADERS: &str = "librocprim-dev/experimental";
const CLANG: &str = "/usr/lib/llvm-22/bin/clang++";

/// Measures hotswap-isa against memcpy and llvm-objdump. Other load on the machine spoils the figures.
#[derive(clap::Args)]
pub(crate) struct Words {
    /// Options of `isa-bench`: --rounds N, --target NAME.
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

pub(crate) fn main(words: &Words) -> Outcome {
    let session = Session::open(Part::Tests, &paths::scratch("prefix"), &paths::scratch("work"))?;
    let mut command = session.beside(paths::cargo());
    command.current_dir(paths::workspace());
    command.args(["run", "--quiet", "--profile", "dist", "--package", "hotswap-isa-bench", "--"]);
    let targets = ["--target=gfx1030", "--target=gfx1100", "--target=gfx1250", "--target=gfx90a"];
    if !words.words.iter().any(|word| word.starts_with("--target")) {
        command.args(targets);
    }
    command.args(&words.words).arg(library(&ROCRAND)?);
    match kernels(&session) {
        Ok(kernels) => drop(command.arg(kernels)),
        Err(failure) => println!("skipped: gfx1250: {failure}"),
    }
    run::show(&mut command)
}

/// The kernels for gfx1250, compiled now if they do not exist.
fn kernels(session: &Session) -> Outcome<PathBuf> {
    let kept = paths::cache()?.join("isa-bench");
    let object = kept.join("gfx1250.co");
    if object.exists() {
        return Ok(object);
    }
    let work = paths::scratch("work").join("isa-bench");
    remove::delete(&work)?;
    fs::create_dir_all(&work).during("create", &work)?;
    let apt = Apt::new(&work, "deb")?;
    println!("Downloading {HEADERS} (300 KB)");
    run::output(&mut apt.command("apt-get", &["update", "-q"]))?;
    run::output(apt.command("apt-get", &["download", "-q", HEADERS]).current_dir(&work))?;
    apt.remove()?;
    for entry in fs::read_dir(&work).during("read", &work)? {
        run::output(std::process::Command::new("dpkg-deb").arg("-x").arg(entry?.path()).arg(&work))?;
    }
    let source = session.source.join("tests/isa-bench/prim.hip");
    let inside = session.work.join("isa-bench");
    let words = ["-x", "hip", "--offload-arch=gfx1250", "--offload-device-only", "-O2", "-std=c++17"];
    let mut command = session.inside(&inside, CLANG);
    command.args(words).args(["-isystem", "usr/include", "-c"]).arg(source).args(["-o", "gfx1250.co"]);
    println!("Compiling rocPRIM's kernels for gfx1250 (half a minute)");
    run::output(&mut command)?;
    fs::create_dir_all(&kept).during("create", &kept)?;
    fs::copy(work.join("gfx1250.co"), &object).during("copy", &object)?;
    remove::delete(&work)?;
    Ok(object)
}
