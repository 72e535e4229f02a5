//! Directories of tools that the user names with `-B`. Clang searches them before `COMPILER_PATH`, so tools there would
//! replace ours, and some of them (the linker wrapper) silently.
//!
//! Invariant: the real tools are those that clang would run without us: ours are searched before the user's directories,
//! and they look for the real ones there ([`words::ENV_TOOL_PREFIXES`]).
//!
//! Absent on purpose: `ld.lld` alone. There it is only a linker of host code, because the clang that links device code
//! gets no `-B`.

use hotswap_files::reads;
use hotswap_plan::words;
use hotswap_report::{Diagnostic, codes};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Our tools that clang itself starts, apart from `ld.lld`.
const TOOLS: [&str; 5] =
    ["lld", "clang-offload-bundler", "clang-linker-wrapper", "clang-offload-packager", "llvm-offload-binary"];

/// An argument and a variable by which our tools precede those of the user's directories.
#[derive(Debug, PartialEq, Eq)]
pub struct Precedence {
    /// The argument for clang; it precedes the user's.
    pub word: OsString,
    /// The value of [`words::ENV_TOOL_PREFIXES`].
    pub prefixes: OsString,
}

/// The additions that a command needs; `None` where none of its `-B` has one of the tools.
///
/// # Errors
/// [`codes::BAD_CONFIG`] for a directory with a colon, which separates the directories for our tools; [`codes::CANNOT_READ`].
pub fn precede(args: &[OsString], shims: &Path) -> Result<Option<Precedence>, Diagnostic> {
    let prefixes = prefixes(args);
    let Some(tool) = find_tool(&prefixes, shims)? else { return Ok(None) };
    if prefixes.iter().any(|prefix| prefix.as_bytes().contains(&b':')) {
        let what = format!("-B puts {} in the place of HotSwap's own, and its name has a colon", tool.display());
        let advice = "drop that -B for commands with a plan; HOTSWAP_LLVM_BIN names the directory of the real tools";
        return Err(Diagnostic::error(codes::BAD_CONFIG, what).advise(advice));
    }
    let joined: Vec<&[u8]> = prefixes.iter().map(|prefix| prefix.as_bytes()).collect();
    let word = [OsStr::new("-B"), shims.as_os_str()].iter().copied().collect();
    Ok(Some(Precedence { word, prefixes: OsString::from_vec(joined.join(&b':')) }))
}

/// The first of the tools that such a directory has.
fn find_tool(prefixes: &[OsString], shims: &Path) -> Result<Option<PathBuf>, Diagnostic> {
    for tool in prefixes.iter().flat_map(|prefix| TOOLS.iter().map(|tool| words::tool_by_prefix(prefix, tool))) {
        let tool = tool?;
        if !tool.starts_with(shims) && reads::is_there(&tool)? {
            return Ok(Some(tool));
        }
    }
    Ok(None)
}

/// The values of all `-B`, in their order.
fn prefixes(args: &[OsString]) -> Vec<OsString> {
    let mut prefixes = Vec::new();
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        match arg.as_bytes().strip_prefix(b"-B") {
            Some([]) => prefixes.extend(args.next().cloned()),
            Some(value) => prefixes.push(OsStr::from_bytes(value).to_owned()),
            None => {}
        }
    }
    prefixes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn our_tools_precede_those_of_the_user() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for directory in ["host", "llvm", "shims"] {
            fs::create_dir(at(directory)).unwrap();
            fs::write(at(directory).join("ld.lld"), "").unwrap();
        }
        fs::write(at("llvm/clang-linker-wrapper"), "").unwrap();
        fs::write(at("shims/lld"), "").unwrap();
        fs::write(at("cross-lld"), "").unwrap();
        let precede_all = |text: &str| {
            let text = text.replace('@', &format!("{}/", dir.path().display()));
            let args: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
            precede(&args, &at("shims")).unwrap().map(|found| found.prefixes.to_string_lossy().into_owned())
        };
        let shown = |text: &str| Some(text.replace('@', &format!("{}/", dir.path().display())));
        assert_eq!(precede_all("-B @host -B@absent -c a.hip"), None);
        assert_eq!(precede_all("-B@shims"), None);
        assert_eq!(precede_all("-B @host -B@llvm"), shown("@host:@llvm"));
        assert_eq!(precede_all("-B@cross-"), shown("@cross-"));
        let word = precede(&[format!("-B{}", at("llvm").display()).into()], &at("shims")).unwrap().unwrap().word;
        assert_eq!(word, OsString::from(format!("-B{}", at("shims").display())));
    }
}
