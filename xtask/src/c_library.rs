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

/// Writes the static library: one object, in which only the functions of the header are visible. Programs may have other versions of what
/// is in it, such as zstd.
pub(crate) fn write_archive(archive: &Path, output: &Path, compiler: &CCompiler) -> Outcome {
    let directory = output.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).during("create", directory)?;
    let object = directory.join(".libhotswap.o");
    let mut join = compiler.command();
    join.args(["-r", "-nostdlib", "-o"]).arg(&object);
    run::show(join.arg("-Wl,--whole-archive").arg(archive).arg("-Wl,--no-whole-archive"))?;
    let mut hide = compiler.tool("objcopy");
    // Joined bitcode of several members is damaged, and `ar` with LLVM's plug-in reads it.
    hide.args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd"]);
    hide.args(exported_names()?.iter().map(|name| format!("--keep-global-symbol={name}")));
    run::show(hide.arg(&object))?;
    run::show(compiler.tool("ar").arg("crD").arg(output).arg(&object))?;
    fs::remove_file(&object).during("remove", &object)
}

/// The functions of the interface, of the list that the shared library is linked with.
fn exported_names() -> Outcome<Vec<String>> {
    let path = paths::workspace().join("crates/products/libhotswap/libhotswap.map");
    let text = fs::read_to_string(&path).during("read", &path)?;
    let names = text.lines().filter_map(|line| line.trim().strip_suffix(';'));
    Ok(names.filter(|name| name.starts_with("hotswap_")).map(str::to_owned).collect())
}

/// Links the shared library of the archive by that C compiler. The arguments are those of the tests.
pub(crate) fn link(archive: &Path, output: &Path, compiler: &CCompiler) -> Outcome {
    let directory = output.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(directory).during("create", directory)?;
    let mut command = compiler.command();
    command
        .current_dir(paths::workspace().join("crates/products/libhotswap"))
        .args(["@link.args", "-Wl,-s", "-o"])
        .arg(output);
    command.arg("-Wl,--whole-archive").arg(archive).args(["-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"]);
    run::show(&mut command)
}
