//! The tools that build systems look for beside a clang, by the names under which they do: `hotswap-llvm-ar` beside
//! `hotswap-clang++`, since CMake takes `hotswap-` for the prefix of a cross tool chain, and `llvm-ar` beside
//! `lib/hotswap/clang/clang++`. Each name is a link to this program, which becomes the real clang's tool.
//!
//! Invariants: the arguments reach the tool unchanged, except for those of clang-scan-deps: it reads the command of a compiler,
//! which is the real clang's there, without HotSwap's arguments, because the compiler's path shows where its own headers are.
//!
//! Absent on purpose: the tools of the device link, which clang starts itself.

use crate::command::without_own;
use crate::config;
use crate::find::{self, Clang, NamedCompiler, ToolSearch};
use crate::options::{OptionId, OptionValues};
use crate::toolchain::Toolchain;
use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A tool of a tool chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolLink {
    pub name: &'static str,
    /// The tool of GNU that does the same, for installations of clang without LLVM's.
    pub gnu: Option<&'static str>,
}

pub const TOOL_LINKS: &[ToolLink] = &[
    ToolLink { name: "clang-scan-deps", gnu: None },
    ToolLink { name: "llvm-addr2line", gnu: Some("addr2line") },
    ToolLink { name: "llvm-ar", gnu: Some("ar") },
    ToolLink { name: "llvm-config", gnu: None },
    ToolLink { name: "llvm-nm", gnu: Some("nm") },
    ToolLink { name: "llvm-objcopy", gnu: Some("objcopy") },
    ToolLink { name: "llvm-objdump", gnu: Some("objdump") },
    ToolLink { name: "llvm-ranlib", gnu: Some("ranlib") },
    ToolLink { name: "llvm-readelf", gnu: Some("readelf") },
    ToolLink { name: "llvm-strip", gnu: Some("strip") },
];

/// The tool that a program's name stands for.
pub fn find(program: &OsStr) -> Option<&'static ToolLink> {
    let name = Path::new(program).file_name()?.to_str()?;
    let name = name.strip_prefix("hotswap-").unwrap_or(name);
    TOOL_LINKS.iter().find(|link| link.name == name)
}

/// Replaces this process by the tool.
///
/// # Errors
/// Returns only on failure: those of the search for clang; [`codes::NO_TOOL`].
pub fn become_tool(link: &ToolLink, words: &[OsString]) -> Result<(), Diagnostic> {
    let ourselves = hotswap_files::own_program()?;
    let files = config::load(&tool_environment_variable, ourselves.parent().and_then(Path::parent))?;
    let settings = OptionValues::gather(&[], &tool_environment_variable, &files);
    let named = NamedCompiler::from_settings(&settings);
    let rocm_path = env::var_os("ROCM_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
    let search = ToolSearch { cxx: true, named, rocm_path, path: env::var_os("PATH"), ourselves: Some(&ourselves) };
    let clang = find::find(&search)?;
    let tools = settings.get(OptionId::LlvmBin).map(|setting| PathBuf::from(&setting.value));
    let tool = real_tool(link, &clang, tools)?.ok_or_else(|| missing(link, &clang))?;
    let words = if link.name == "clang-scan-deps" { scanned(words, &clang)? } else { words.to_vec() };
    let error = Command::new(&tool).args(words).exec();
    Err(Diagnostic::error(codes::NO_TOOL, error.to_string()).in_file(tool))
}

fn tool_environment_variable(name: &str) -> Option<OsString> {
    env::var_os(name)
}

/// The tool beside the real clang, else GNU's on the search path.
fn real_tool(link: &ToolLink, clang: &Clang, named: Option<PathBuf>) -> Result<Option<PathBuf>, Diagnostic> {
    let resolved = reads::resolve_path(&clang.path)?;
    let beside = resolved.as_deref().and_then(Path::parent).map(Path::to_owned);
    for directory in named.into_iter().chain(beside) {
        if let Some(tool) = file_in(&directory, link.name)? {
            return Ok(Some(tool));
        }
    }
    // A clang without lld may have the other tools all the same, or none of them.
    let queried = match Toolchain::new(&clang.path, None).directory() {
        Err(error) if error.code == codes::CANNOT_READ => return Err(error),
        queried => queried.ok(),
    };
    match queried.map_or(Ok(None), |directory| file_in(&directory, link.name))? {
        Some(tool) => Ok(Some(tool)),
        None => link.gnu.map_or(Ok(None), file_on_path),
    }
}

fn file_in(directory: &Path, name: &str) -> Result<Option<PathBuf>, Diagnostic> {
    let file = directory.join(name);
    Ok(reads::is_regular(&file)?.then_some(file))
}

fn file_on_path(name: &str) -> Result<Option<PathBuf>, Diagnostic> {
    for directory in env::split_paths(&env::var_os("PATH").unwrap_or_default()) {
        // As for a shell, a directory that may not be searched has no programs.
        let file = directory.join(name);
        if find::is_runnable(&file)? {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn missing(link: &ToolLink, clang: &Clang) -> Diagnostic {
    let what = format!("no {} beside {}", link.name, clang.path.display());
    Diagnostic::error(codes::NO_TOOL, what).advise("install LLVM's tools of the same version as clang")
}

/// The arguments of clang-scan-deps with the real clang's command in the place of ours.
fn scanned(words: &[OsString], clang: &Clang) -> Result<Vec<OsString>, Diagnostic> {
    let Some(end) = words.iter().position(|word| word == "--") else { return Ok(words.to_vec()) };
    let (own, command) = words.split_at(end + 1);
    let Some((compiler, arguments)) = command.split_first() else { return Ok(words.to_vec()) };
    if !is_ours(Path::new(compiler))? {
        return Ok(words.to_vec());
    }
    let cxx = compiler.to_string_lossy().contains("++");
    let mode = if cxx { None } else { Some("--driver-mode=gcc") };
    let first = [clang.path.clone().into_os_string()];
    let modes = clang.mode.filter(|_| cxx).or(mode).map(OsString::from);
    Ok(own.iter().cloned().chain(first).chain(modes).chain(without_own(arguments).kept).collect())
}

fn is_ours(compiler: &Path) -> Result<bool, Diagnostic> {
    let own = hotswap_files::own_program()?;
    let resolved = reads::resolve_path(compiler)?;
    Ok(resolved.is_some() && resolved == reads::resolve_path(&own)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_and_without_the_prefix_are_tools() {
        for (program, expected) in [
            ("/p/bin/hotswap-llvm-ar", Some("llvm-ar")),
            ("/p/lib/hotswap/clang/clang-scan-deps", Some("clang-scan-deps")),
            ("llvm-nm", Some("llvm-nm")),
            ("hotswap-clang++", None),
            ("clang", None),
            ("hotswap-ar", None),
            ("", None),
        ] {
            assert_eq!(find(OsStr::new(program)).map(|link| link.name), expected, "{program}");
        }
        assert!(TOOL_LINKS.windows(2).all(|pair| pair[0].name < pair[1].name));
    }

    #[test]
    fn the_real_clang_is_scanned() {
        let own = env::current_exe().unwrap().into_os_string();
        let clang = Clang { path: "/l/clang++".into(), origin: String::new(), mode: None };
        let command = |compiler: &OsStr| -> Vec<OsString> {
            let last = ["-Xoffload-linker", "--hotswap-plan=1", "-c", "a.cpp"];
            let first = ["-format=p1689", "--"].map(OsString::from);
            first.into_iter().chain([compiler.to_owned()]).chain(last.map(OsString::from)).collect()
        };
        let other = command(OsStr::new("/l/other"));
        assert_eq!(scanned(&other, &clang).unwrap(), other);
        let expected = ["-format=p1689", "--", "/l/clang++", "--driver-mode=gcc", "-c", "a.cpp"];
        assert_eq!(scanned(&command(&own), &clang).unwrap(), expected.map(OsString::from));
    }
}
