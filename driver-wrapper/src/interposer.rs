//! The interposer's directory: where it lies, and the variables by which clang starts its tools.
//!
//! Absent on purpose: the tools themselves (`linker-plugin`), and the plan that they carry out.

use crate::exec::Env;
use crate::tool_directories::Precedence;
use hotswap_files::reads;
use hotswap_plan::words as names;
use hotswap_report::{Diagnostic, codes};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where clang searches programs before its own directory.
const COMPILER_PATH: &str = "COMPILER_PATH";

/// The variables by which clang starts our tools, and by which those find the real ones.
pub(crate) fn interposed(shims: &Path, tools: PathBuf, precedence: Option<Precedence>) -> Env {
    vec![
        (COMPILER_PATH, Some(search_path(shims, env::var_os(COMPILER_PATH)))),
        (names::ENV_LLVM_BIN, Some(tools.into_os_string())),
        (names::ENV_TOOL_PREFIXES, precedence.map(|precedence| precedence.prefixes)),
    ]
}

/// The directory of the shims, which `COMPILER_PATH` cannot name if it has a colon.
pub(crate) fn shims(prefix: &Path) -> Result<PathBuf, Diagnostic> {
    let directory = prefix.join("libexec/hotswap");
    if !reads::is_there(&directory.join("lld"))? {
        return missing_shims_error(format!("no file {}", directory.join("lld").display()));
    }
    if directory.as_os_str().as_encoded_bytes().contains(&b':') {
        return missing_shims_error(format!("{} has a colon, so clang cannot search it", directory.display()));
    }
    Ok(directory)
}

fn missing_shims_error(what: String) -> Result<PathBuf, Diagnostic> {
    Err(Diagnostic::error(codes::NO_INSTALL, what))
}

fn search_path(shims: &Path, old: Option<OsString>) -> OsString {
    let mut path = shims.as_os_str().to_owned();
    let Some(old) = old.filter(|old| !old.is_empty()) else { return path };
    if env::split_paths(&old).next().as_deref() == Some(shims) {
        return old;
    }
    path.push(":");
    path.push(old);
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shims_come_first_and_only_once() {
        let shims = Path::new("/p/libexec/hotswap");
        for (old, path) in [
            (None, "/p/libexec/hotswap"),
            (Some(""), "/p/libexec/hotswap"),
            (Some("/x:/y"), "/p/libexec/hotswap:/x:/y"),
            (Some("/p/libexec/hotswap:/x"), "/p/libexec/hotswap:/x"),
            (Some("/x:/p/libexec/hotswap"), "/p/libexec/hotswap:/x:/p/libexec/hotswap"),
        ] {
            assert_eq!(search_path(shims, old.map(OsString::from)), path);
        }
    }
}
