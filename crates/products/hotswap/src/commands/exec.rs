//! `hotswap exec -- COMMAND`: the launcher form, for build systems whose compiler is set already.
//!
//! In a command that begins with clang, possibly after other launchers (`ccache clang++ …`), clang is replaced by the
//! `hotswap-clang` next to this program, with that clang as the real one. Every other command is run unchanged.

use hotswap_report::{Diagnostic, codes};
use std::ffi::{OsStr, OsString};
use std::mem;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variable that passes the real clang to `hotswap-clang`.
const ENV_CLANG: &str = "HOTSWAP_CLANG";

/// Launchers whose last arguments are the compiler and its arguments.
const LAUNCHERS: &[&str] = &["ccache", "distcc", "env", "icecc", "sccache"];

/// Replaces this process by the command; returns only on failure, with the reason.
pub(crate) fn run(command: &[OsString]) -> Diagnostic {
    let mut words = command.to_vec();
    let mut clang = None;
    if let Some((at, wrapper)) = find_compiler(command) {
        match beside_us(wrapper) {
            Ok(path) => clang = Some(mem::replace(&mut words[at], path.into())),
            Err(error) => return error,
        }
    }
    let Some((program, rest)) = words.split_first() else {
        return Diagnostic::error(codes::USAGE, "exec needs a command");
    };
    let mut process = Command::new(program);
    process.args(rest).envs(clang.map(|clang| (ENV_CLANG, clang)));
    let error = process.exec();
    Diagnostic::error(codes::NO_TOOL, error.to_string())
        .in_file(program)
        .advise("check the command after `hotswap exec --`")
}

/// The position of the compiler, and the wrapper that replaces it. Launchers may have settings of the form
/// `name=value`; any other argument before clang means that the command is not a compilation.
fn find_compiler(command: &[OsString]) -> Option<(usize, &'static str)> {
    let at = command.iter().position(|word| !is_compiler_launcher(word))?;
    Some((at, compiler(&command[at])?))
}

fn is_compiler_launcher(word: &OsString) -> bool {
    let name = Path::new(word).file_name().and_then(OsStr::to_str);
    let setting = word.to_str().is_some_and(|word| word.contains('=') && !word.starts_with('-'));
    setting || name.is_some_and(|name| LAUNCHERS.contains(&name))
}

/// Name of our wrapper if the program is a clang: `clang`, `clang++-22`, `amdclang`, optionally with a directory or
/// a triple before it.
fn compiler(program: &OsStr) -> Option<&'static str> {
    let name = Path::new(program).file_name()?.to_str()?;
    let stem = name.rsplit_once('-').filter(|(_, version)| is_version_text(version)).map_or(name, |(stem, _)| stem);
    let (stem, wrapper) = match stem.strip_suffix("++") {
        Some(stem) => (stem, "hotswap-clang++"),
        None => (stem, "hotswap-clang"),
    };
    let before = stem.strip_suffix("clang")?;
    let is_ours = before == "hotswap-";
    (!is_ours && (before.is_empty() || before == "amd" || before.ends_with('-'))).then_some(wrapper)
}

fn is_version_text(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
}

fn beside_us(name: &str) -> Result<PathBuf, Diagnostic> {
    let own = hotswap_files::own_program()?;
    let path = own.with_file_name(name);
    let is_there = hotswap_files::reads::is_there(&path)?;
    if is_there { Ok(path) } else { Err(missing_install_error(format!("no {name} beside it")).in_file(own)) }
}

fn missing_install_error(what: String) -> Diagnostic {
    Diagnostic::error(codes::NO_INSTALL, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compilers_are_known_by_their_names() {
        for (program, wrapper) in [
            ("clang", Some("hotswap-clang")),
            ("/usr/bin/clang++", Some("hotswap-clang++")),
            ("clang++-22", Some("hotswap-clang++")),
            ("clang-22.1", Some("hotswap-clang")),
            ("/opt/rocm/bin/amdclang++", Some("hotswap-clang++")),
            ("x86_64-linux-gnu-clang-23", Some("hotswap-clang")),
            ("hotswap-clang++", None),
            ("clang-offload-bundler", None),
            ("clang-cl", None),
            ("clang-tidy-22", None),
            ("g++", None),
            ("/bin/true", None),
        ] {
            assert_eq!(compiler(OsStr::new(program)), wrapper, "{program}");
        }
    }

    #[test]
    fn launchers_may_stand_before_the_compiler() {
        for (command, found) in [
            ("clang++ -c a.hip", Some((0, "hotswap-clang++"))),
            ("ccache clang++-22 -c a.hip", Some((1, "hotswap-clang++"))),
            ("/usr/bin/env CCACHE_DIR=/c ccache debug=true /opt/rocm/bin/amdclang -c", Some((4, "hotswap-clang"))),
            ("sccache g++ -c clang", None),
            ("ar qc libclang.a clang", None),
            ("ccache", None),
            ("", None),
        ] {
            let words: Vec<OsString> = command.split_whitespace().map(OsString::from).collect();
            assert_eq!(find_compiler(&words), found, "{command}");
        }
    }
}
