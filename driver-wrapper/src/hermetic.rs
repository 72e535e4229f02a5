//! Hermetic commands (`HOTSWAP_HERMETIC=1`): everything that can change the output is on the command line or a declared file.
//!
//! Invariants: no configuration file but the installation's own defaults; no search for a plan or a compiler; of HotSwap's
//! variables only those of [`DECLARED`], and none of clang's in [`CLANGS`].
//!
//! Absent on purpose: clang's default configuration files beside the compiler, which belong to it, and the cache directory, whose
//! contents are functions of the tools and the arguments.

use crate::options::{ENV_CLANG, ENV_CONFIG, ENV_HERMETIC};
use hotswap_plan::words;
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;

/// HotSwap's variables that a hermetic command may have: they name declared tools and files, or change no output.
const DECLARED: &[&str] =
    &[ENV_HERMETIC, ENV_CLANG, words::ENV_LLVM_BIN, words::ENV_PLAN_FILE, words::ENV_VERBOSE, words::ENV_TRACE];

struct ClangVariable {
    name: &'static str,
    /// The argument with the same effect.
    argument: &'static str,
}

const fn clang_variable(name: &'static str, argument: &'static str) -> ClangVariable {
    ClangVariable { name, argument }
}

/// Variables by which clang and lld find headers, libraries and tools or change arguments and output, and what to use instead.
/// `SOURCE_DATE_EPOCH` is not one: without it the output depends on the time, and a build that sets it declares it.
const CLANGS: &[ClangVariable] = &[
    clang_variable("CCC_OVERRIDE_OPTIONS", "the arguments themselves"),
    clang_variable("COMPILER_PATH", "HOTSWAP_LLVM_BIN"),
    clang_variable("CPATH", "-I"),
    clang_variable("CPLUS_INCLUDE_PATH", "-isystem"),
    clang_variable("C_INCLUDE_PATH", "-isystem"),
    clang_variable("GCC_EXEC_PREFIX", "--gcc-install-dir="),
    clang_variable("HIP_DEVICE_LIB_PATH", "--rocm-device-lib-path="),
    clang_variable("HIP_PATH", "--hip-path="),
    clang_variable("LD_RUN_PATH", "-Wl,-rpath,"),
    clang_variable("LIBRARY_PATH", "-L"),
    clang_variable("LLD_VERSION", "lld's own version"),
    clang_variable("LLVM_OVERRIDE_PRODUCER", "LLVM's own version"),
    clang_variable("ROCM_PATH", "--rocm-path="),
];

/// Whether the command is hermetic, judged by its environment.
///
/// # Errors
/// [`codes::BAD_CONFIG`] for a variable that would be an undeclared input.
pub fn check(variables: impl Iterator<Item = (OsString, OsString)>) -> Result<bool, Diagnostic> {
    // Sorted, so that of several errors it is always the same one that is reported.
    let mut all: Vec<_> = variables.filter(|(_, value)| !value.is_empty()).collect();
    all.sort();
    let own = all.iter().find(|(name, _)| name == ENV_HERMETIC).map(|(_, value)| value.as_encoded_bytes());
    match own {
        None | Some(b"0") => return Ok(false),
        Some(b"1") => {}
        Some(_) => return Err(Diagnostic::error(codes::BAD_CONFIG, format!("{ENV_HERMETIC} is neither 0 nor 1"))),
    }
    all.iter().try_for_each(|(name, _)| declared(&name.to_string_lossy()))?;
    Ok(true)
}

fn declared(name: &str) -> Result<(), Diagnostic> {
    if let Some(variable) = CLANGS.iter().find(|variable| variable.name == name) {
        return hermetic_config_error(variable.argument, name);
    }
    if name.starts_with("HOTSWAP_") && !DECLARED.contains(&name) {
        let is_file = [ENV_CONFIG, words::ENV_PLAN_DIR].contains(&name);
        return hermetic_config_error(
            if is_file { words::PLAN_FILE } else { "the argument of that name (--hotswap-help)" },
            name,
        );
    }
    Ok(())
}

fn hermetic_config_error(way: &str, name: &str) -> Result<(), Diagnostic> {
    let what = format!("{name} is set, and {ENV_HERMETIC}=1 allows no undeclared input");
    Err(Diagnostic::error(codes::BAD_CONFIG, what).advise(format!("use {way}")))
}

/// The error for a plan that is named by its hash alone.
pub fn unnamed_plan(hash: &str) -> Diagnostic {
    let what = format!("{}{hash} is searched, and {ENV_HERMETIC}=1 allows no search", words::PLAN);
    Diagnostic::error(codes::PLAN_MISSING, what).advise(format!("add {}FILE", words::PLAN_FILE))
}

/// The error for a compiler that nothing names.
pub fn unnamed_clang() -> Diagnostic {
    let what = format!("no clang is named, and {ENV_HERMETIC}=1 allows no search");
    Diagnostic::error(codes::NO_CLANG, what).advise(format!("set {ENV_CLANG} to the declared compiler"))
}

/// The error for a compiler that would be searched on `PATH`.
pub fn searched_clang(name: &str, origin: &str) -> Diagnostic {
    let what =
        format!("{origin} names clang as `{name}`, which is searched on PATH, and {ENV_HERMETIC}=1 allows no search");
    Diagnostic::error(codes::NO_CLANG, what).advise(format!("set {ENV_CLANG} to the path of the declared compiler"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(text: &str) -> Result<bool, String> {
        let pairs = text.split_whitespace().filter_map(|pair| pair.split_once('='));
        check(pairs.map(|(name, value)| (name.into(), value.into()))).map_err(|error| error.to_string())
    }

    #[test]
    fn the_list_of_variables_is_closed() {
        assert_eq!(judged("HOTSWAP_RETARGET=x CPATH=/x"), Ok(false));
        assert_eq!(judged("HOTSWAP_HERMETIC=0 HOTSWAP_RETARGET=x"), Ok(false));
        assert_eq!(judged("HOTSWAP_HERMETIC=1 HOTSWAP_CLANG=/c PATH=/bin HOME=/h HOTSWAP_RETARGET="), Ok(true));
        for (name, way) in [
            ("HOTSWAP_RETARGET", "argument of that name"),
            ("HOTSWAP_CONFIG", "--hotswap-plan-file="),
            ("HOTSWAP_OF_THE_FUTURE", "argument of that name"),
            ("ROCM_PATH", "--rocm-path="),
            ("LLD_VERSION", "lld's own"),
            ("CPLUS_INCLUDE_PATH", "-isystem"),
        ] {
            let error = judged(&format!("HOTSWAP_HERMETIC=1 {name}=x")).unwrap_err();
            assert!(error.contains("HS0104") && error.contains(name) && error.contains(way), "{error}");
        }
        assert!(judged("HOTSWAP_HERMETIC=yes").is_err());
    }
}
