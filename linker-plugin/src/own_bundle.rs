//! The fat binary of the legacy driver, written here in place of `clang-offload-bundler`: starting that tool takes longer than
//! everything else that HotSwap does to a small file.
//!
//! Invariant: only a command as clang itself writes it for HIP, and the same bytes. All others are the real tool's: compression, other
//! kinds of files, target IDs with features, versions whose output is not known, a script or a directory of the user's in its place.

use crate::context::CallContext;
use crate::words::CommandLine;
use hotswap_bundle::Bundle;
use hotswap_report::Diagnostic;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::ops::RangeInclusive;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The versions of LLVM whose bundlers are known to write these bytes: the ones that `tests/harness/tests/own_bundle.rs`
/// compares. Later ones bundle in the wrapper of the linker.
const KNOWN_VERSIONS: RangeInclusive<u32> = 22..=23;
/// The beginning of the variables by which the bundler does something else.
const VARIABLES: &[u8] = b"OFFLOAD_BUNDLER_";
/// The beginning of the entry IDs of code objects.
const CODE_OBJECT: &str = "hipv4-amdgcn-amd-amdhsa--gfx";

/// The entries of a fat binary, and its file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct BundleRequest {
    ids: Vec<String>,
    /// A file for each ID; the first one, the host's, is empty.
    inputs: Vec<PathBuf>,
    output: PathBuf,
}

impl BundleRequest {
    /// The request of a command whose real tool would write the same.
    pub(crate) fn find(context: &CallContext, real: &Path, line: &CommandLine) -> Option<Self> {
        let request = Self::parse(line.words())?;
        let is_ordinary = !context.verbose && !context.has_tool_prefixes() && !is_configured() && is_known_tool(real);
        is_ordinary.then_some(request)
    }

    fn parse<'a>(words: impl Iterator<Item = &'a OsStr>) -> Option<Self> {
        let (mut targets, mut output, mut inputs) = (None, None, Vec::new());
        for word in words {
            let word = word.to_str()?;
            if let Some(file) = word.strip_prefix("-input=") {
                inputs.push(PathBuf::from(file));
            } else if let Some(file) = word.strip_prefix("-output=").filter(|_| output.is_none()) {
                output = Some(PathBuf::from(file));
            } else if let Some(list) = word.strip_prefix("-targets=").filter(|_| targets.is_none()) {
                targets = Some(list);
            } else if !["-type=o", "-bundle-align=4096"].contains(&word) {
                return None;
            }
        }
        let (host, codes) = targets?.split_once(',')?;
        let ids: Vec<String> = [host_id(host)?].into_iter().chain(codes.split(',').map(str::to_owned)).collect();
        let is_plain = ids[1..].iter().all(|id| id.starts_with(CODE_OBJECT) && !id.contains(':'));
        let has_host = inputs.first().is_some_and(|file| file == Path::new("/dev/null"));
        let is_complete = is_plain && has_host && ids.len() == inputs.len();
        is_complete.then_some(Self { ids, inputs, output: output? })
    }

    /// Writes the fat binary. `false`, with nothing written: the real tool says what is wrong with the inputs.
    ///
    /// # Errors
    /// Those of writing the output.
    pub(crate) fn write(&self) -> Result<bool, Diagnostic> {
        let Ok(contents) =
            self.inputs[1..].iter().map(|file| hotswap_files::open_input(file)).collect::<Result<Vec<_>, _>>()
        else {
            return Ok(false);
        };
        let mut bundle = Bundle::default();
        let mut is_pushed = bundle.push(self.ids[0].as_str(), &[][..]).is_ok();
        for (id, content) in self.ids[1..].iter().zip(&contents) {
            is_pushed &= bundle.push(id.as_str(), &content[..]).is_ok();
        }
        let Some(bytes) = is_pushed.then(|| bundle.to_bytes().ok()).flatten() else { return Ok(false) };
        hotswap_files::replace_file(&self.output, &bytes).map(|()| true)
    }
}

/// The host's entry ID, as the bundler writes it.
fn host_id(text: &str) -> Option<String> {
    let parts: Vec<&str> = text.split('-').collect();
    matches!(parts[..], ["host", _, _, "linux", "gnu"]).then(|| format!("{text}-"))
}

fn is_configured() -> bool {
    env::vars_os().any(|(name, _)| name.as_bytes().starts_with(VARIABLES))
}

/// Whether the real tool is a program of an LLVM whose output is known. Its version is the name of a directory beside it.
fn is_known_tool(real: &Path) -> bool {
    let Ok(resolved) = fs::canonicalize(real) else { return false };
    let mut magic = [0; 4];
    let is_program =
        File::open(&resolved).and_then(|mut file| file.read_exact(&mut magic)).is_ok() && magic == *b"\x7fELF";
    let versions = resolved.parent().map(|tools| tools.join("../lib/clang"));
    is_program && versions.is_some_and(|directory| has_known_versions(&directory))
}

/// Whether the directories of clang's own headers are those of known versions only.
fn has_known_versions(directory: &Path) -> bool {
    let Ok(entries) = fs::read_dir(directory) else { return false };
    let names: Vec<_> = entries.map_while(Result::ok).map(|entry| entry.file_name()).collect();
    !names.is_empty() && names.iter().all(|name| is_known_version(name))
}

fn is_known_version(name: &OsStr) -> bool {
    let major = name.to_str().and_then(|name| name.split('.').next()?.parse::<u32>().ok());
    major.is_some_and(|major| KNOWN_VERSIONS.contains(&major))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const COMMAND: &str = "-type=o -bundle-align=4096 -targets=host-x86_64-unknown-linux-gnu,hipv4-amdgcn-amd-amdhsa--gfx1030 \
                           -input=/dev/null -input=a.out -output=a.hipfb";

    fn parse(text: &str) -> Option<BundleRequest> {
        BundleRequest::parse(text.split_whitespace().map(OsStr::new))
    }

    #[test]
    fn only_a_command_as_clang_writes_it_is_carried_out_here() {
        let request = parse(COMMAND).unwrap();
        assert_eq!(request.ids, ["host-x86_64-unknown-linux-gnu-", "hipv4-amdgcn-amd-amdhsa--gfx1030"]);
        assert_eq!(request.output, Path::new("a.hipfb"));
        for (from, to) in [
            ("-type=o", "-type=bc"),
            ("4096", "16"),
            ("-type=o", "-type=o -compress"),
            ("-type=o", "-type=o -unbundle"),
            ("/dev/null", "host.o"),
            (",hipv4", ",hip"),
            ("gfx1030", "gfx90a:xnack+"),
            ("-linux-gnu", "-windows-msvc"),
            (" -input=a.out", ""),
            ("-output=a.hipfb", ""),
            ("-output=a.hipfb", "-output=a -output=b"),
        ] {
            assert_eq!(parse(&COMMAND.replacen(from, to, 1)), None, "{to}");
        }
    }

    #[test]
    fn a_script_and_other_versions_are_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let tool = directory.path().join("bin/clang-offload-bundler");
        for part in ["bin", "lib/clang/22"] {
            fs::create_dir_all(directory.path().join(part)).unwrap();
        }
        fs::write(&tool, "\x7fELF and more").unwrap();
        fs::set_permissions(&tool, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(is_known_tool(&tool));
        for unknown in ["lib/clang/19.1.0", "lib/clang/25"] {
            fs::create_dir(directory.path().join(unknown)).unwrap();
            assert!(!is_known_tool(&tool), "{unknown}");
            fs::remove_dir(directory.path().join(unknown)).unwrap();
        }
        fs::write(&tool, "#!/bin/sh\n").unwrap();
        assert!(!is_known_tool(&tool));
        assert!(!is_known_tool(&directory.path().join("absent")));
    }

    #[test]
    fn an_input_that_is_missing_is_the_real_tools_to_report() {
        let directory = tempfile::tempdir().unwrap();
        let output = directory.path().join("out");
        let missing = BundleRequest { output: output.clone(), ..parse(COMMAND).unwrap() };
        assert!(!missing.write().unwrap());
        assert!(!output.exists());
    }
}
