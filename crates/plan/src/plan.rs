//! The plan's content, its syntax on the command line and its canonical text.

use crate::{IDENTITY, VERSION};
use hotswap_report::{Diagnostic, codes};
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::{self, Write};
use std::str::FromStr;

/// The action when a requested target cannot be made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Policy {
    /// The build fails.
    #[default]
    Error,
    /// The target is left out with a warning.
    Warn,
    /// The target is left out; only the record mentions it.
    Keep,
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

impl NamesPolicy {
    /// Every policy with its name.
    pub const WORDS: [(&str, Self); 4] =
        [("compile", Self::Compile), ("error", Self::Error), ("warn", Self::Warn), ("derive", Self::Derive)];
}

/// A request to make the code object of one target from that of another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pair {
    /// Processor to derive from, for example `gfx1030`.
    pub source: String,
    /// Processor to make.
    pub target: String,
}

/// The requests of one build.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Plan {
    /// Sorted by source, then target; without repetitions.
    pub pairs: BTreeSet<Pair>,
    /// Patch families requested by name, beyond those that the routes need.
    pub patches: BTreeSet<String>,
    /// The action when a target cannot be made.
    pub policy: Policy,
    /// The policy for a source whose text depends on the name of the GPU.
    pub names: NamesPolicy,
    /// Whether pairs may be applied that only the compatibility matrix supports.
    pub experimental: bool,
    /// Whether code may be made for a GPU although the host part of the file chooses kernels by another name. For
    /// finished files only; no argument of a build sets it.
    pub unchecked_names: bool,
}

const HEADER: &str = "hotswap-plan 1";
/// The permission that a plan can grant.
const EXPERIMENTAL: &str = "experimental";
/// The additional permission of `hotswap retarget`.
const NAMES: &str = "names";

fn syntax(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::PLAN_SYNTAX, what)
}

/// A pair whose `>` was consumed by a shell ends with `=`.
fn no_arrow(group: &str) -> Diagnostic {
    let error = syntax(format!("`{group}` has no `=>`"));
    if group.ends_with('=') {
        return error.advise("quote the pair: a shell takes `>` and what follows as a redirection");
    }
    error
}

impl Plan {
    /// Whether the plan is empty.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.patches.is_empty()
    }

    /// Adds pairs written as `gfx1030=>gfx1031,gfx1032`, several separated by `;` or blanks.
    ///
    /// # Errors
    /// [`codes::PLAN_SYNTAX`]; the plan is unchanged then.
    pub fn add_pairs(&mut self, text: &str) -> Result<(), Diagnostic> {
        let mut pairs = BTreeSet::new();
        for group in text.split([';', ' ', '\t', '\n']).filter(|group| !group.is_empty()) {
            let (source, targets) = group.split_once("=>").ok_or_else(|| no_arrow(group))?;
            for target in targets.split(',') {
                pairs.insert(pair(source, target, group)?);
            }
        }
        if pairs.is_empty() {
            return Err(syntax("it names no pair"));
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
            let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            if !name.bytes().all(fits) {
                return Err(syntax(format!("`{name}` is no name of a patch family (a-z, 0-9, _)")));
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
            return Err(syntax(format!("`{text}` is nothing that can be allowed")).advise("write `experimental`"));
        }
        self.experimental = true;
        Ok(())
    }

    /// Targets that the plan requests, each once.
    pub fn targets(&self) -> BTreeSet<&str> {
        self.pairs.iter().map(|pair| pair.target.as_str()).collect()
    }

    /// The canonical text of this plan.
    pub fn canonical(&self) -> String {
        let mut text = format!("{HEADER}\npolicy {}\n", self.policy);
        if self.experimental {
            let _ = writeln!(text, "allow {EXPERIMENTAL}");
        }
        if self.names != NamesPolicy::default() {
            let _ = writeln!(text, "names {}", self.names);
        }
        if self.unchecked_names {
            let _ = writeln!(text, "allow {NAMES}");
        }
        for Pair { source, target } in &self.pairs {
            let _ = writeln!(text, "retarget {source}=>{target}");
        }
        for name in &self.patches {
            let _ = writeln!(text, "patch {name}");
        }
        text
    }

    /// 16 hexadecimal digits over the canonical text, the version and the identity of HotSwap.
    pub fn hash(&self) -> String {
        let mut hash = Sha256::new();
        for part in [self.canonical().as_str(), VERSION, IDENTITY] {
            hash.update(part);
            hash.update([0]);
        }
        hash.finalize()[..8].iter().fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// Reads a canonical text.
    ///
    /// # Errors
    /// [`codes::PLAN_SYNTAX`] with the number of the line.
    pub fn parse(text: &str) -> Result<Self, Diagnostic> {
        let mut plan = Self::default();
        let mut lines = text.lines().enumerate();
        if lines.next().map(|(_, line)| line) != Some(HEADER) {
            return Err(syntax(format!("the first line is not `{HEADER}`")));
        }
        for (number, line) in lines.filter(|(_, line)| !line.trim().is_empty()) {
            let in_line = |what: &str| syntax(format!("line {}: {what}", number + 1));
            let (key, value) = line.split_once(' ').ok_or_else(|| in_line("it has one word only"))?;
            match key {
                "policy" => plan.policy = value.parse().map_err(|e: Diagnostic| in_line(&e.what))?,
                "names" => plan.names = value.parse().map_err(|e: Diagnostic| in_line(&e.what))?,
                "allow" if value == NAMES => plan.unchecked_names = true,
                "allow" => plan.allow(value).map_err(|e| in_line(&e.what))?,
                "retarget" => plan.add_pairs(value).map_err(|e| in_line(&e.what))?,
                "patch" => plan.add_patches(value).map_err(|e| in_line(&e.what))?,
                _ => return Err(in_line(&format!("`{key}` is not known"))),
            }
        }
        Ok(plan)
    }
}

fn pair(source: &str, target: &str, group: &str) -> Result<Pair, Diagnostic> {
    let fits = |name: &str| {
        name.starts_with("gfx") && name.len() > 3 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    for name in [source, target] {
        if !fits(name) {
            return Err(syntax(format!("`{name}` in `{group}` is no processor name (gfx…, without features)")));
        }
    }
    if source == target {
        return Err(syntax(format!("`{group}` makes {source} from itself")));
    }
    Ok(Pair { source: source.to_owned(), target: target.to_owned() })
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warn => "warn",
            Self::Keep => "keep",
        })
    }
}

impl FromStr for Policy {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        match text {
            "error" => Ok(Self::Error),
            "warn" => Ok(Self::Warn),
            "keep" => Ok(Self::Keep),
            _ => Err(syntax(format!("`{text}` is no policy")).advise("the policies are error, warn and keep")),
        }
    }
}

impl fmt::Display for NamesPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = Self::WORDS.iter().find(|(_, policy)| policy == self);
        f.write_str(word.map_or("", |(word, _)| word))
    }
}

impl FromStr for NamesPolicy {
    type Err = Diagnostic;

    fn from_str(text: &str) -> Result<Self, Diagnostic> {
        let found = Self::WORDS.iter().find(|(word, _)| *word == text);
        let unknown = || {
            syntax(format!("`{text}` is no policy for names"))
                .advise("the policies for names are compile, error, warn and derive")
        };
        found.map(|(_, policy)| *policy).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(pairs: &str) -> Plan {
        let mut plan = Plan::default();
        plan.add_pairs(pairs).unwrap();
        plan
    }

    #[test]
    fn order_and_repetition_do_not_change_the_plan() {
        let one = plan("gfx1030=>gfx1032,gfx1031;gfx900=>gfx902");
        let two = plan("gfx900=>gfx902 gfx1030=>gfx1031,gfx1032,gfx1031");
        assert_eq!(one.hash(), two.hash());
        assert_eq!(Plan::parse(&one.canonical()).unwrap(), one);
        assert_ne!(one.hash(), plan("gfx900=>gfx902").hash());
    }

    #[test]
    fn what_is_not_allowed_does_not_stand_in_the_text() {
        let one = plan("gfx1102=>gfx1103");
        assert_eq!(one.canonical(), "hotswap-plan 1\npolicy error\nretarget gfx1102=>gfx1103\n");
        let other = Plan { experimental: true, ..one.clone() };
        assert_eq!(other.canonical(), "hotswap-plan 1\npolicy error\nallow experimental\nretarget gfx1102=>gfx1103\n");
        assert_eq!(Plan::parse(&other.canonical()).unwrap(), other);
        assert_ne!(one.hash(), other.hash());
        assert!(Plan::parse("hotswap-plan 1\nallow everything\n").is_err());
        let asks = Plan { names: NamesPolicy::Error, ..one.clone() };
        assert_eq!(asks.canonical(), "hotswap-plan 1\npolicy error\nnames error\nretarget gfx1102=>gfx1103\n");
        assert_eq!(Plan::parse(&asks.canonical()).unwrap(), asks);
        assert!(Plan::parse("hotswap-plan 1\nnames all\n").is_err());
        let names = Plan { unchecked_names: true, ..one.clone() };
        assert_eq!(names.canonical(), "hotswap-plan 1\npolicy error\nallow names\nretarget gfx1102=>gfx1103\n");
        assert_eq!(Plan::parse(&names.canonical()).unwrap(), names);
        assert!(Plan::default().allow("names").is_err(), "it is no word of a build");
    }

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

    #[test]
    fn a_damaged_plan_file_names_the_line() {
        let error = Plan::parse("hotswap-plan 1\npolicy error\nretarget x\n").unwrap_err();
        assert!(error.what.starts_with("line 3: "), "{}", error.what);
        assert!(Plan::parse("hotswap-plan 2\n").is_err());
    }
}
