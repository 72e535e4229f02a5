//! The plan's content and its syntax on the command line.
//!
//! Absent on purpose: the options that set it ([`crate::options`]), its canonical text ([`crate::text`]).

use hotswap_report::{Diagnostic, Severity, codes};
use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

/// The action when a requested target cannot be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// The build fails with the reason.
    #[default]
    Error,
    /// The target is left out with a warning.
    Warn,
    /// The target is left out; only the record mentions it.
    Keep,
    /// The source is compiled for the target; the build fails where that cannot be done.
    Compile,
}

impl Policy {
    /// The severity of the reasons for targets that could not be made; `None` where only the record mentions them.
    pub fn severity(self) -> Option<Severity> {
        match self {
            Self::Error | Self::Compile => Some(Severity::Error),
            Self::Warn => Some(Severity::Warning),
            Self::Keep => None,
        }
    }
}

/// The policy for a source whose text depends on the name of the GPU.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum NamesPolicy {
    /// The source is compiled for the target as well.
    #[default]
    Compile,
    /// The build fails, naming the place in the source.
    Error,
    /// The code object is derived, and a warning names the place in the source.
    Warn,
    /// The code object is derived; the source is not examined.
    Derive,
}

/// A choice of the user, with its name in options and plans.
#[derive(Debug, Clone, Copy)]
pub struct NamedChoice<C> {
    pub word: &'static str,
    pub choice: C,
}

const fn named_choice<C: Copy>(word: &'static str, choice: C) -> NamedChoice<C> {
    NamedChoice { word, choice }
}

impl Policy {
    /// Every policy with its name.
    pub const WORDS: [NamedChoice<Self>; 4] = [
        named_choice("error", Self::Error),
        named_choice("warn", Self::Warn),
        named_choice("keep", Self::Keep),
        named_choice("compile", Self::Compile),
    ];
}

impl NamesPolicy {
    /// Every policy with its name.
    pub const WORDS: [NamedChoice<Self>; 4] = [
        named_choice("compile", Self::Compile),
        named_choice("error", Self::Error),
        named_choice("warn", Self::Warn),
        named_choice("derive", Self::Derive),
    ];
}

/// The action for kernels that have fewer registers than the functions need that they call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum DeviceLinkAction {
    /// As `Check` where a link has several separately compiled objects; otherwise nothing.
    #[default]
    Usual,
    /// The policy about refusals applies to them.
    Check,
    /// Their numbers are raised.
    Fix,
    Off,
}

impl DeviceLinkAction {
    /// Every action with its name; the default lacks one.
    pub const WORDS: [NamedChoice<Self>; 3] =
        [named_choice("check", Self::Check), named_choice("fix", Self::Fix), named_choice("off", Self::Off)];
}

/// A request to make the code object of one target from that of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RetargetPair {
    /// Processor to derive from, for example `gfx1030`.
    pub source: String,
    pub target: String,
}

/// The requests of one build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sorted by source, then target; without repetitions.
    pub pairs: BTreeSet<RetargetPair>,
    /// Patch families requested by name, beyond those that the routes need.
    pub patches: BTreeSet<String>,
    /// The action when a target cannot be made.
    pub policy: Policy,
    /// The policy for a source whose text depends on the name of the GPU.
    pub names: NamesPolicy,
    /// Whether pairs may be applied that only the compatibility matrix supports.
    pub experimental: bool,
    /// The action for kernels that have fewer registers than the functions need that they call.
    pub device_link: DeviceLinkAction,
    /// Scratch of kernels whose need lacks a known bound, bytes of a work-item.
    pub device_link_stack: Option<u32>,
    /// Whether each code object gets a table of its functions.
    pub device_symbols: bool,
    /// Device functions that each code object offers to others, by their mangled names.
    pub device_exports: BTreeSet<String>,
    /// Device functions of other code objects.
    pub device_imports: BTreeSet<String>,
    /// Whether code may be made for a GPU although the host part of the file chooses kernels by another name. For
    /// finished files only; no argument of a build sets it.
    pub unchecked_names: bool,
}

/// The form of device symbols that a plan can request.
const TABLE: &str = "table";

/// The permission that a plan can grant.
const EXPERIMENTAL: &str = "experimental";

pub(crate) fn syntax_error(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::PLAN_SYNTAX, what)
}

/// A pair whose `>` was consumed by a shell ends with `=`.
fn no_arrow(group: &str) -> Diagnostic {
    let error = syntax_error(format!("`{group}` has no `=>`"));
    if group.ends_with('=') {
        return error.advise("quote the pair: a shell takes `>` and what follows as a redirection");
    }
    error
}

impl Plan {
    /// Adds pairs written as `gfx1030=>gfx1031,gfx1032`, several separated by `;` or blanks.
    ///
    /// # Errors
    /// [`codes::PLAN_SYNTAX`]; the plan is unchanged then.
    pub fn add_pairs(&mut self, text: &str) -> Result<(), Diagnostic> {
        let mut pairs = BTreeSet::new();
        for group in text.split([';', ' ', '\t', '\n']).filter(|group| !group.is_empty()) {
            let (source, targets) = group.split_once("=>").ok_or_else(|| no_arrow(group))?;
            for target in targets.split(',') {
                pairs.insert(parse_pair(source, target, group)?);
            }
        }
        if pairs.is_empty() {
            return Err(syntax_error("it names no pair"));
        }
        self.pairs.extend(pairs);
        Ok(())
    }

    /// Adds patch families, separated by commas, `;` or blanks.
    ///
    /// # Errors
    /// [`codes::PLAN_SYNTAX`] for a name that cannot be part of a symbol.
    pub fn add_patches(&mut self, text: &str) -> Result<(), Diagnostic> {
        for name in text.split([',', ';', ' ']).filter(|name| !name.is_empty()) {
            if !name.bytes().all(is_patch_name_byte) {
                return Err(syntax_error(format!("`{name}` is no name of a patch family (a-z, 0-9, _)")));
            }
            self.patches.insert(name.to_owned());
        }
        Ok(())
    }

    /// Grants a permission; `experimental` is the only one.
    ///
    /// # Errors
    /// [`codes::PLAN_SYNTAX`] for another name.
    pub fn allow(&mut self, text: &str) -> Result<(), Diagnostic> {
        if text != EXPERIMENTAL {
            return Err(syntax_error(format!("`{text}` is nothing that can be allowed")).advise("write `experimental`"));
        }
        self.experimental = true;
        Ok(())
    }

    /// Sets the scratch of kernels whose need lacks a known bound.
    ///
    /// # Errors
    /// [`codes::PLAN_SYNTAX`] for anything but a number of bytes above 0.
    pub fn set_device_link_stack(&mut self, text: &str) -> Result<(), Diagnostic> {
        let bytes = text.parse().ok().filter(|bytes| *bytes > 0);
        let refused =
            || syntax_error(format!("`{text}` is not a number of bytes")).advise("write a number above 0: 4096");
        self.device_link_stack = Some(bytes.ok_or_else(refused)?);
        Ok(())
    }

    /// Requests the table of functions.
    ///
    /// # Errors
    /// [`codes::PLAN_SYNTAX`] for another word.
    pub fn add_device_symbols(&mut self, text: &str) -> Result<(), Diagnostic> {
        if text != TABLE {
            return Err(syntax_error(format!("`{text}` is no form of device symbols")).advise("write `table`"));
        }
        self.device_symbols = true;
        Ok(())
    }

    /// Targets that the plan requests, each once.
    pub fn targets(&self) -> BTreeSet<&str> {
        self.pairs.iter().map(|pair| pair.target.as_str()).collect()
    }
}

fn is_patch_name_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
}

/// Adds names of device functions, separated by commas or `;`.
///
/// # Errors
/// [`codes::PLAN_SYNTAX`] for a name that is not a symbol.
pub(crate) fn add_functions(functions: &mut BTreeSet<String>, text: &str) -> Result<(), Diagnostic> {
    for name in text.split([',', ';']).filter(|name| !name.is_empty()) {
        if !name.bytes().all(is_symbol_name_byte) {
            let error = syntax_error(format!("`{name}` is no name of a device function"));
            return Err(error.advise("write the mangled name, as `hotswap symbols` shows it"));
        }
        functions.insert(name.to_owned());
    }
    Ok(())
}

fn is_symbol_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_.$".contains(&byte)
}

fn parse_pair(source: &str, target: &str, group: &str) -> Result<RetargetPair, Diagnostic> {
    for name in [source, target] {
        if !is_processor_name(name) {
            return Err(syntax_error(format!("`{name}` in `{group}` is no processor name (gfx…, without features)")));
        }
    }
    if source == target {
        return Err(syntax_error(format!("`{group}` makes {source} from itself")));
    }
    Ok(RetargetPair { source: source.to_owned(), target: target.to_owned() })
}

fn is_processor_name(name: &str) -> bool {
    name.starts_with("gfx") && name.len() > 3 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

/// The word of a policy.
pub(crate) fn word_of<T: Copy + PartialEq>(words: &[NamedChoice<T>], policy: T) -> &'static str {
    words.iter().find(|one| one.choice == policy).map_or("", |one| one.word)
}

impl fmt::Display for RetargetPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}=>{}", self.source, self.target)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(&Self::WORDS, *self))
    }
}

impl FromStr for Policy {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let found = Self::WORDS.iter().find(|one| one.word == text);
        let unknown =
            || syntax_error(format!("`{text}` is no policy")).advise("the policies are error, warn, keep and compile");
        found.map(|one| one.choice).ok_or_else(unknown)
    }
}

impl fmt::Display for NamesPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(&Self::WORDS, *self))
    }
}

impl FromStr for NamesPolicy {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let found = Self::WORDS.iter().find(|one| one.word == text);
        found.map(|one| one.choice).ok_or_else(|| unknown_names_policy(text))
    }
}

fn unknown_names_policy(text: &str) -> Diagnostic {
    syntax_error(format!("`{text}` is no policy for names"))
        .advise("the policies for names are compile, error, warn and derive")
}

impl fmt::Display for DeviceLinkAction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(word_of(&Self::WORDS, *self))
    }
}

impl FromStr for DeviceLinkAction {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let found = Self::WORDS.iter().find(|one| one.word == text);
        found.map(|one| one.choice).ok_or_else(|| unknown_link_action(text))
    }
}

fn unknown_link_action(text: &str) -> Diagnostic {
    syntax_error(format!("`{text}` is no action of device links")).advise("the actions are check, fix and off")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_pairs_name_the_part() {
        for (text, part) in [
            ("", "names no pair"),
            ("gfx1030", "`gfx1030` has no `=>`"),
            ("gfx1030=>", "`` in `gfx1030=>`"),
            ("=>gfx1031", "`` in `=>gfx1031`"),
            ("gfx1030=>gfx1031,", "`` in"),
            ("gfx1030=>gfx1030", "from itself"),
            ("gfx90a:xnack+=>gfx90c", "`gfx90a:xnack+`"),
            ("gfx1030=>gfx1031=>gfx1032", "`gfx1031=>gfx1032`"),
        ] {
            let error = Plan::default().add_pairs(text).unwrap_err();
            assert_eq!(error.code, codes::PLAN_SYNTAX);
            assert!(error.what.contains(part), "{text}: {}", error.what);
        }
    }

    #[test]
    fn a_pair_cut_by_a_shell_says_so() {
        let advice = |text: &str| Plan::default().add_pairs(text).unwrap_err().advice.unwrap_or_default();
        assert!(advice("gfx1030=").starts_with("quote the pair"));
        assert!(!advice("gfx1030").contains("quote"));
    }
}
