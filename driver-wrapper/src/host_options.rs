//! Options of clang for the host's code, which a compilation for a GPU refuses: a distribution's default flags have several
//! of them. Under a plan they reach the host's compilation alone (`-Xarch_host`).
//!
//! Each row was found by passing options to clang 22, 23 and 24 with a HIP source: the command fails, and it succeeds with the
//! option after `-Xarch_host`. A test repeats that.
//!
//! Invariants: an option that clang accepts for the GPU stays as it is, also one that changes device code: the code equals
//! clang's. The order of the options does not change. Values of other options (`-Xclang`, `-Xarch_device`) are not options.
//!
//! Absent on purpose: options in clang's own configuration files, which clang reads later, and those that the host refuses as
//! well.

use crate::command::scan;
use crate::flags::{self, FlagForm};
use crate::judge::{SettingsOf, own_words};
use crate::options::OptionId;
use crate::words::ClangArgument;
use hotswap_files::expand_response_files;
use hotswap_report::Diagnostic;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;

/// The option of clang that addresses the next one to the host's compilation.
const HOST: &str = "-Xarch_host";

/// An option that device code cannot be compiled with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostOption {
    /// The option, or its beginning where a value is joined to it.
    pub name: &'static str,
    /// The position of its value.
    pub attach: FlagForm,
    /// Its effect on the host's code, and how clang ends with it.
    pub why: &'static str,
}

const fn alone(name: &'static str, why: &'static str) -> HostOption {
    HostOption { name, attach: FlagForm::Alone, why }
}

const fn joined(name: &'static str, why: &'static str) -> HostOption {
    HostOption { name, attach: FlagForm::Joined, why }
}

const CONTROL_FLOW: &str = "control-flow protection (CET): an error of clang's for the GPU";
const GCOV: &str = "counters of gcov: the device link has undefined symbols, or links the host's profile runtime";
const NOTES: &str = "notes of gcov: the compilation for the GPU writes over those of the host";
const GUARD: &str = "place of the stack protector's guard: not supported for the GPU";
const LAYOUT: &str = "layout by basic blocks: not supported for the GPU";

#[rustfmt::skip]
pub const HOST_OPTIONS: &[HostOption] = &[
    alone("--coverage", GCOV),
    alone("-coverage", GCOV),
    alone("-fbasic-block-address-map", LAYOUT),
    joined("-fbasic-block-sections=", LAYOUT),
    alone("-fcf-protection", CONTROL_FLOW),
    joined("-fcf-protection=", CONTROL_FLOW),
    joined("-fpatchable-function-entry=", "room for patches at the entry of functions: not supported for the GPU"),
    alone("-fprofile-arcs", GCOV),
    alone("-fsplit-machine-functions", "cold code in sections of its own: not supported for the GPU"),
    alone("-fsplit-stack", "stacks that grow: the device link lacks `__morestack_non_split`"),
    alone("-ftest-coverage", NOTES),
    alone("-fxray-instrument", "instrumentation by XRay: not supported for the GPU"),
    joined("-fzero-call-used-regs=", "registers cleared at return: not supported for the GPU"),
    joined("-mfpmath=", "unit for floating point: not known for the GPU"),
    joined("-mfunction-return=", "return thunks: not allowed for the GPU"),
    joined("-mstack-protector-guard-offset=", GUARD),
    joined("-mstack-protector-guard-reg=", GUARD),
    joined("-mstack-protector-guard=", GUARD),
    joined("-mtls-dialect=", "access to thread-local storage: not supported for the GPU"),
];

/// Whether options of the table are addressed to the host: in HIP commands with a plan by default, in others by request.
///
/// # Errors
/// [`codes::BAD_CONFIG`](hotswap_report::codes::BAD_CONFIG) for a setting that is neither `0` nor `1`.
pub fn are_separated(words: &[OsString], settings_of: SettingsOf<'_>) -> Result<bool, Diagnostic> {
    let command = scan(words);
    if !command.is_hip() || command.query || settings_of(&[]).switch(OptionId::Disable)? {
        return Ok(false);
    }
    // Arguments of HotSwap that are not known are refused where the command is judged.
    let Ok(own) = own_words(&command) else { return Ok(false) };
    let settings = settings_of(&own);
    if settings.get(OptionId::HostOptions).is_some() {
        return settings.switch(OptionId::HostOptions);
    }
    Ok(own.iter().any(|one| one.id == OptionId::Plan) || settings.iter().any(|setting| setting.id.is_request()))
}

/// The row of an argument.
fn find(word: &OsStr) -> Option<&'static HostOption> {
    HOST_OPTIONS.iter().find(|one| matches_host_option(one, word))
}

fn matches_host_option(option: &&HostOption, word: &OsStr) -> bool {
    match option.attach {
        FlagForm::Alone => word == option.name,
        _ => word.as_bytes().starts_with(option.name.as_bytes()),
    }
}

/// The arguments with those of the table addressed to the host, and which these are, each once.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SeparatedWords {
    pub words: Vec<OsString>,
    /// Those that were addressed.
    pub options: Vec<String>,
}

impl SeparatedWords {
    /// Reads arguments whose response files are expanded.
    pub fn new(words: &[OsString]) -> Self {
        let mut separated = Self::default();
        let mut values = 0;
        for (at, word) in words.iter().enumerate() {
            if word == "--" && values == 0 {
                separated.words.extend_from_slice(&words[at..]);
                break;
            }
            separated.push(word, values > 0);
            values = match values {
                0 => flags::find(word.as_bytes()).map_or(0, |found| found.values),
                _ => values - 1,
            };
        }
        separated
    }

    fn push(&mut self, word: &OsString, is_value: bool) {
        if !is_value && find(word).is_some() {
            self.words.push(HOST.into());
            let text = word.to_string_lossy().into_owned();
            if !self.options.contains(&text) {
                self.options.push(text);
            }
        }
        self.words.push(word.clone());
    }

    /// The note for the user; `None` where nothing was addressed.
    pub fn note(&self) -> Option<String> {
        let options = self.options.join(" ");
        (!self.options.is_empty())
            .then(|| format!("note: {options}: for the host's code only, clang refuses it for a GPU"))
    }
}

/// Clang's arguments with those of the table addressed to the host. A response file with such arguments
/// is replaced by a list.
///
/// # Errors
/// Those of response files.
pub fn separate(list: Vec<ClangArgument>) -> Result<Vec<ClangArgument>, Diagnostic> {
    let plain: Vec<OsString> = list.iter().map(first_word).collect();
    let mut separated = SeparatedWords::new(&plain).words.into_iter();
    let mut words = Vec::with_capacity(separated.len());
    for original in list {
        let mut next = separated.next();
        if next.as_deref() == Some(OsStr::new(HOST)) && first_word(&original) != HOST {
            words.extend(next.map(ClangArgument::Plain));
            next = separated.next();
        }
        if let Some(word) = next {
            words.push(with_files(original, word)?);
        }
    }
    Ok(words)
}

/// The argument itself; a list counts as one argument without a meaning.
fn first_word(word: &ClangArgument) -> OsString {
    if let ClangArgument::Plain(word) = word { word.clone() } else { OsString::new() }
}

fn with_files(original: ClangArgument, word: OsString) -> Result<ClangArgument, Diagnostic> {
    let list = match original {
        ClangArgument::Listed(list) => list,
        ClangArgument::Plain(_) if word.as_bytes().starts_with(b"@") => {
            expand_response_files(std::slice::from_ref(&word))?.into_iter().map(|word| word.text).collect()
        }
        ClangArgument::Plain(_) => return Ok(ClangArgument::Plain(word)),
    };
    let separated = SeparatedWords::new(&list);
    Ok(match (&word, separated.options.is_empty()) {
        (word, true) if !word.is_empty() => ClangArgument::Plain(word.clone()),
        _ => ClangArgument::Listed(separated.words),
    })
}

/// The table of the documentation.
pub fn markdown() -> String {
    let mut text = String::from("| Option | Why not for a GPU |\n| --- | --- |\n");
    for option in HOST_OPTIONS {
        let value = if option.attach == FlagForm::Joined { "…" } else { "" };
        let _ = writeln!(text, "| `{}{value}` | {} |", option.name, option.why);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn words(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn options_of_the_table_are_addressed_and_values_of_others_are_not() {
        for (text, expected) in [
            ("-O2 -fcf-protection -c a.hip", "-O2 -Xarch_host -fcf-protection -c a.hip"),
            ("-mtls-dialect=gnu2 -c a.hip", "-Xarch_host -mtls-dialect=gnu2 -c a.hip"),
            (
                "-fcf-protection=full -fcf-protection=none",
                "-Xarch_host -fcf-protection=full -Xarch_host -fcf-protection=none",
            ),
            ("-Xarch_host -fcf-protection", "-Xarch_host -fcf-protection"),
            ("-Xarch_device --coverage -Xclang -fsplit-stack", "-Xarch_device --coverage -Xclang -fsplit-stack"),
            ("-MF --coverage -c a.hip", "-MF --coverage -c a.hip"),
            ("-c -- --coverage", "-c -- --coverage"),
            ("-fcf-protections -fsplit-stacks -coverages", "-fcf-protections -fsplit-stacks -coverages"),
            ("-fcoverage-mapping -march=native -fno-plt", "-fcoverage-mapping -march=native -fno-plt"),
        ] {
            assert_eq!(SeparatedWords::new(&words(text)).words, words(expected), "{text}");
            let list = separate(words(text).into_iter().map(ClangArgument::Plain).collect()).unwrap();
            assert_eq!(list, words(expected).into_iter().map(ClangArgument::Plain).collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn each_option_is_named_once() {
        let note = |text| SeparatedWords::new(&words(text)).note();
        let named = note("--coverage -O2 --coverage -mfpmath=sse").unwrap();
        assert!(named.starts_with("note: --coverage -mfpmath=sse: "), "{named}");
        assert_eq!(note("-O2"), None);
    }

    #[test]
    fn response_files_with_such_options_are_replaced() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("ours"), "-O2 --coverage 'a b.hip'").unwrap();
        fs::write(dir.path().join("others"), "-O2 -DX=--coverage").unwrap();
        let file = |name: &str| OsString::from(format!("@{}", dir.path().join(name).display()));
        let listed = |text: &[&str]| ClangArgument::Listed(text.iter().map(OsString::from).collect());
        let made = separate(vec![
            ClangArgument::Plain(file("ours")),
            ClangArgument::Plain(file("others")),
            listed(&["-fsplit-stack"]),
            listed(&["-c"]),
            ClangArgument::Plain("-fsplit-stack".into()),
        ])
        .unwrap();
        let expected = [
            listed(&["-O2", "-Xarch_host", "--coverage", "a b.hip"]),
            ClangArgument::Plain(file("others")),
            listed(&["-Xarch_host", "-fsplit-stack"]),
            listed(&["-c"]),
            ClangArgument::Plain("-Xarch_host".into()),
            ClangArgument::Plain("-fsplit-stack".into()),
        ];
        assert_eq!(made, expected);
    }

    #[test]
    fn rows_are_sorted_and_have_a_reason() {
        assert!(HOST_OPTIONS.windows(2).all(|pair| pair[0].name < pair[1].name));
        assert!(HOST_OPTIONS.iter().all(|option| !option.why.is_empty()));
        // A value in an argument of its own would need more than one word for the host.
        assert!(HOST_OPTIONS.iter().all(|option| matches!(option.attach, FlagForm::Alone | FlagForm::Joined)));
        assert_eq!(markdown().lines().count(), HOST_OPTIONS.len() + 2);
    }
}
