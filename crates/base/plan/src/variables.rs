//! HotSwap's environment variables: one table, by which a misspelt one is noticed.
//!
//! The names of options are read from [`PLAN_OPTIONS`]. The other readers declare their own names; a test reads the sources of
//! all crates, so that no reader knows a name that is missing here.
//!
//! Invariant: a variable of HotSwap's own tests and builds is never unknown.
//!
//! Absent on purpose: the values, and CMake's variables, which are not in the environment.

use crate::options::PLAN_OPTIONS;
use crate::words;
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;

/// The beginning of every name.
const PREFIX: &str = "HOTSWAP_";

/// Variables that users set, beside those of [`PLAN_OPTIONS`].
const SET_BY_USERS: &[&str] = &[
    // hotswap-clang, and the tools of the device link
    "HOTSWAP_CLANG",
    "HOTSWAP_COALESCE",
    "HOTSWAP_CONFIG",
    "HOTSWAP_DISABLE",
    "HOTSWAP_DRAIN",
    "HOTSWAP_HERMETIC",
    "HOTSWAP_HOST_OPTIONS",
    "HOTSWAP_WARM_HEADERS",
    words::ENV_LLVM_BIN,
    words::ENV_PLAN_DIR,
    words::ENV_PLAN_FILE,
    words::ENV_TRACE,
    words::ENV_VERBOSE,
    // emulated GPUs
    "HOTSWAP_EMULATE",
    "HOTSWAP_EMULATE_BUDGET",
    "HOTSWAP_EMULATE_COUNTERS",
    "HOTSWAP_EMULATE_LATE",
    "HOTSWAP_EMULATE_MATRIX",
    "HOTSWAP_EMULATE_MEMORY",
    "HOTSWAP_EMULATE_POISON",
    "HOTSWAP_EMULATE_THREADS",
    // libhotswap-names.so, which shares HOTSWAP_NAMES with the plan
    "HOTSWAP_NAMES_TREE",
    // the profile drain
    "HOTSWAP_PROFILE_ENDS",
    "HOTSWAP_PROFILE_EVERY",
    "HOTSWAP_PROFILE_VERBOSE",
    // a build of HotSwap with further families
    "HOTSWAP_FAMILIES",
    // CMake's own: where find_package(HotSwap) looks
    "HOTSWAP_ROOT",
];

/// Variables that the tools set for each other, and those of HotSwap's own build and development.
const INTERNAL: &[&str] = &[
    words::ENV_ACTIVE,
    words::ENV_BARE_OUTPUT,
    words::ENV_COMPRESSION_LEVEL,
    words::ENV_HOST_LINKER,
    words::ENV_LENT,
    words::ENV_UNIT_IMAGES,
    words::ENV_SKIPPED,
    words::ENV_PLAN,
    words::ENV_PLAN_TEXT,
    words::ENV_REFUSED,
    "HOTSWAP_REQUEST",
    words::ENV_TEXT,
    words::ENV_TOOL_PREFIXES,
    "HOTSWAP_BLESS",
    "HOTSWAP_DEBIAN_MIRROR",
    "HOTSWAP_IDENTITY",
    "HOTSWAP_KEEP_MACHINE",
    "HOTSWAP_PREFIX",
    "HOTSWAP_PROFILE_DRAIN_ARCHIVE",
    "HOTSWAP_REGISTRY_ARCHIVE",
    "HOTSWAP_SMT",
];

/// Beginnings of the names that HotSwap's own tests use.
const OF_TESTS: &[&str] = &["HOTSWAP_TEST_", "HOTSWAP_PROVE_"];

/// The names that users set.
fn names_set_by_users() -> impl Iterator<Item = &'static str> {
    PLAN_OPTIONS.iter().map(|option| option.env).chain(SET_BY_USERS.iter().copied())
}

/// Whether a variable's name is one of HotSwap's, or not of its kind at all.
pub fn is_known_variable(name: &str) -> bool {
    !name.starts_with(PREFIX)
        || OF_TESTS.iter().any(|prefix| name.starts_with(prefix))
        || names_set_by_users().chain(INTERNAL.iter().copied()).any(|known| known == name)
}

/// One warning for all variables that are named like HotSwap's and are read by no part of it, with the likely names.
///
/// The text avoids the words by which CMake recognises a compiler that rejects an option, so that probes keep their results.
pub fn unknown_variables(names: impl Iterator<Item = OsString>) -> Option<Diagnostic> {
    let names = names.filter(has_variable_prefix).map(|name| name.to_string_lossy().into_owned());
    let mut unknown: Vec<String> = names.filter(|name| !is_known_variable(name)).collect();
    unknown.sort_unstable();
    let likely: Vec<String> =
        unknown.iter().filter_map(|name| likely_name(name)).map(|known| format!("`{known}`")).collect();
    let warning = Diagnostic::warning(codes::UNKNOWN_VARIABLE, unknown.join(", "));
    match (unknown.is_empty(), likely.is_empty()) {
        (true, _) => None,
        (false, true) => Some(warning),
        (false, false) => Some(warning.advise(format!("did you mean {}?", likely.join(", ")))),
    }
}

fn has_variable_prefix(name: &OsString) -> bool {
    name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
}

/// The variable that was probably meant: the fewest letters added, left out, changed or swapped, up to a third of the name.
fn likely_name(unknown: &str) -> Option<&'static str> {
    let own = unknown.strip_prefix(PREFIX)?;
    let best = names_set_by_users().min_by_key(|known| name_edit_distance(known, own))?;
    (name_edit_distance(best, own) * 3 <= own.len()).then_some(best)
}

fn name_edit_distance(known: &str, own: &str) -> usize {
    strsim::damerau_levenshtein(own, known.strip_prefix(PREFIX).unwrap_or(known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::{Path, PathBuf};

    fn warning(names: &[&str]) -> Option<String> {
        unknown_variables(names.iter().map(OsString::from)).map(|warning| warning.to_string())
    }

    #[test]
    fn misspelt_names_are_answered_with_the_likely_one() {
        for (name, likely) in [
            ("HOTSWAP_RETRAGET", "HOTSWAP_RETARGET"),
            ("HOTSWAP_RETARGETS", "HOTSWAP_RETARGET"),
            ("HOTSWAP_POLCY", "HOTSWAP_POLICY"),
            ("HOTSWAP_CLANGXX", "HOTSWAP_CLANG"),
            ("HOTSWAP_LLVMBIN", "HOTSWAP_LLVM_BIN"),
            ("HOTSWAP_EMULATE_MEMRY", "HOTSWAP_EMULATE_MEMORY"),
            ("HOTSWAP_retarget", ""),
            ("HOTSWAP_FLAVOUR", ""),
            ("HOTSWAP_", ""),
        ] {
            let line = warning(&["PATH", name]).unwrap();
            assert!(line.contains("HS0109") && line.contains(&format!("{name}; ")), "{line}");
            let meant = format!("did you mean `{likely}`?");
            assert_eq!(line.contains(&meant), !likely.is_empty(), "{line}");
        }
        let both = warning(&["HOTSWAP_TRACER", "HOTSWAP_POLCY"]).unwrap();
        assert!(
            both.contains("HOTSWAP_POLCY, HOTSWAP_TRACER; did you mean `HOTSWAP_POLICY`, `HOTSWAP_TRACE`?"),
            "{both}"
        );
    }

    #[test]
    fn names_of_the_table_and_of_tests_are_known() {
        let known =
            ["PATH", "HotSwap_DIR", "HOTSWAP_RETARGET", "HOTSWAP_PLAN_TOKEN", "HOTSWAP_TEST_ROOT", "HOTSWAP_ROOT"];
        assert_eq!(warning(&known), None);
        assert_eq!(warning(&names_set_by_users().chain(INTERNAL.iter().copied()).collect::<Vec<_>>()), None);
    }

    /// The names of variables in the text of a source, without its tests.
    fn names_in(text: &str) -> Vec<&str> {
        let text = text.split("#[cfg(test)]").next().unwrap_or_default();
        let quoted = text.split("\"HOTSWAP_").skip(1).filter_map(|rest| rest.split('"').next());
        quoted
            .filter(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_'))
            .collect()
    }

    fn add_sources(directory: &Path, sources: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let name = entry.file_name();
            match entry.file_type().unwrap().is_dir() {
                true if name != "tests" && name != "target" => add_sources(&entry.path(), sources),
                false if entry.path().extension().is_some_and(|extension| extension == "rs") => {
                    sources.push(entry.path())
                }
                _ => {}
            }
        }
    }

    #[test]
    fn every_variable_that_a_source_reads_is_in_the_table() {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..");
        let mut sources = Vec::new();
        for directory in ["crates", "driver-wrapper", "linker-plugin"] {
            add_sources(&workspace.join(directory), &mut sources);
        }
        let mut seen = BTreeSet::new();
        for source in sources.iter().filter(|source| !source.ends_with("plan/src/variables.rs")) {
            let text = fs::read_to_string(source).unwrap();
            seen.extend(names_in(&text).into_iter().map(|rest| format!("{PREFIX}{rest}")));
        }
        let unknown: Vec<_> = seen.iter().filter(|name| !is_known_variable(name)).collect();
        assert_eq!(unknown, [""; 0]);
        assert!(seen.len() > 40 && seen.contains("HOTSWAP_PROFILE_ENDS"), "{seen:?}");
        assert_eq!(names_in("read(\"HOTSWAP_FUTURE\") #[cfg(test)] \"HOTSWAP_X\""), ["FUTURE"]);
    }

    /// Texts by which CMake's `CheckCompilerFlag` takes a compiler's output for a refusal.
    #[test]
    fn the_warning_is_not_taken_for_a_refused_option() {
        let line = warning(&["HOTSWAP_RETRAGET"]).unwrap().to_lowercase();
        assert!(
            ["option", "unrecognized", "unrecognised", "not supported", "error", "ignoring"]
                .iter()
                .all(|word| !line.contains(word)),
            "{line}"
        );
    }
}
