//! The installation of `libhotswap`: the shared library is linked from the archive that cargo builds, because rustc gives
//! the symbols of a shared library no versions.

use crate::c_compiler::CCompiler;
use crate::outcome::{During, Outcome};
use crate::{paths, run};
use std::fs;
use std::path::Path;

/// The archive, as cargo names it.
pub(crate) const ARCHIVE: &str = "libhotswap_c.a";
/// The shared library, as programs name it.
pub(crate) const LIBRARY: &str = "libhotswap.so.0";

/// Links the shared library of the archive by that C compiler. The arguments are those of the tests.
pub(crate) fn link(archive: &Path, output: &Path, compiler: &CCompiler) -> Outcome {
    let directory = output.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).during("create", directory)?;
    let mut command = compiler.command();
    command.current_dir(paths::workspace().join("crates/libhotswap")).args(["@link.args", "-Wl,-s", "-o"]).arg(output);
    command.arg("-Wl,--whole-archive").arg(archive).args(["-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"]);
    run::show(&mut command)
}
