//! Which GPU is shown by which name.
//!
//! Invariants: both names are processors that HotSwap knows, the shown one is a source of the own one in the table of
//! pairs, and no GPU has two names. Anything else is an error: a wrong name makes wrong programs.

use hotswap_targets::{Processor, find_processor};

/// A GPU and the name that is shown in its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NamePair {
    /// The GPU's own processor.
    pub own: &'static Processor,
    /// The processor that is shown.
    pub shown: &'static Processor,
}

/// The names that are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NameMap {
    pairs: Vec<NamePair>,
    /// The GPUs that the code which sees the names is for; empty where that is unknown.
    code: Vec<&'static Processor>,
}

/// Text that states no names.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NamesError {
    /// Not of the form `OWN=SHOWN`.
    #[error("`{0}` is not of the form OWN=SHOWN, for example gfx1031=gfx1030")]
    Form(String),
    /// Not the name of a GPU.
    #[error("`{0}` is no GPU that HotSwap knows")]
    Unknown(String),
    /// The pair is not in the table.
    #[error("code for {shown} cannot serve {own}, so {own} cannot be shown as {shown}")]
    NoPair {
        /// The GPU that would have the name.
        own: &'static str,
        /// The name to be shown.
        shown: &'static str,
    },
    /// One GPU is to have two names.
    #[error("{0} has two names")]
    TwoNames(&'static str),
    /// A line of the file that starts with another word.
    #[error("line {0} begins with none of `names`, `serves` and `code`")]
    Line(usize),
    /// A path that leaves the tree.
    #[error("line {0}: the path is not inside of the tree")]
    Outside(usize),
    /// The file cannot be read.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
}

impl NameMap {
    /// Reads pairs that are separated by commas or blanks. An empty text shows no names.
    ///
    /// # Errors
    /// [`NamesError`]; no part of the text applies then.
    pub fn parse(text: &str) -> Result<Self, NamesError> {
        let mut map = Self::default();
        text.split([',', ' ', '\t', '\n']).filter(|word| !word.is_empty()).try_for_each(|word| map.add(word))?;
        Ok(map)
    }

    fn add(&mut self, word: &str) -> Result<(), NamesError> {
        let (own, shown) = word.split_once('=').ok_or_else(|| NamesError::Form(word.to_owned()))?;
        let pair = NamePair { own: find_device_processor(own)?, shown: find_device_processor(shown)? };
        if hotswap_compat::find_pair(pair.shown, pair.own).is_none() {
            return Err(NamesError::NoPair { own: pair.own.name, shown: pair.shown.name });
        }
        match self.find(pair.own.name) {
            Some(known) if known == pair => Ok(()),
            Some(_) => Err(NamesError::TwoNames(pair.own.name)),
            None => {
                self.pairs.push(pair);
                Ok(())
            }
        }
    }

    /// Adds the pairs of another map.
    pub(crate) fn extend(&mut self, other: Self) -> Result<(), NamesError> {
        self.code.extend(other.code);
        other.pairs.iter().try_for_each(|pair| self.add(&format!("{}={}", pair.own.name, pair.shown.name)))
    }

    /// Adds the names of GPUs that there is code for, separated by commas or blanks.
    pub(crate) fn add_code(&mut self, text: &str) -> Result<(), NamesError> {
        for word in text.split([',', ' ', '\t']).filter(|word| !word.is_empty()) {
            self.code.push(find_device_processor(word)?);
        }
        Ok(())
    }

    /// The reason why code that sees the names has nothing for this GPU, if that is known.
    pub fn missing_reason(&self, own: &str) -> Option<String> {
        let name = own.split(':').next().unwrap_or_default();
        if self.code.is_empty()
            || self.find(name).is_some()
            || self.code.iter().copied().any(|gpu| has_processor_name(&gpu, name))
        {
            return None;
        }
        let code: Vec<&str> = self.code.iter().map(|processor| processor.name).collect();
        Some(format!("{name} is not served: the libraries have files for {}", code.join(", ")))
    }

    /// Whether no GPU is shown by another name.
    pub fn is_empty(&self) -> bool {
        self.pairs.is_empty()
    }

    /// The pair of a GPU; features after its name do not count.
    pub fn find(&self, own: &str) -> Option<NamePair> {
        let processor = own.split(':').next().unwrap_or_default();
        self.pairs.iter().copied().find(|pair| pair.own.name == processor)
    }

    /// The name to show for a GPU, with its own features; `None` where it is shown by its own name.
    pub fn shown_name(&self, own: &str) -> Option<String> {
        let pair = self.find(own)?;
        Some(format!("{}{}", pair.shown.name, &own[pair.own.name.len()..]))
    }
}

fn has_processor_name(processor: &&Processor, name: &str) -> bool {
    processor.name == name
}

/// A processor that a device can be.
fn find_device_processor(name: &str) -> Result<&'static Processor, NamesError> {
    let known = find_processor(name).filter(|processor| !processor.is_generic() && !processor.withdrawn);
    known.ok_or_else(|| NamesError::Unknown(name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_features() {
        let map = NameMap::parse("gfx1031=gfx1030, gfx1032=gfx1030 gfx902=gfx900").unwrap();
        assert_eq!(map.shown_name("gfx1031").as_deref(), Some("gfx1030"));
        assert_eq!(map.shown_name("gfx902:xnack+").as_deref(), Some("gfx900:xnack+"));
        assert_eq!(map.shown_name("gfx900:xnack+"), None);
        // A longer name is another GPU.
        assert_eq!((map.shown_name("gfx9020"), map.shown_name("gfx103"), map.shown_name("")), (None, None, None));
    }

    /// GPUs that are neither served nor have code are told; without a list nothing is known.
    #[test]
    fn a_gpu_without_code_is_told() {
        let mut map = NameMap::parse("gfx1031=gfx1030").unwrap();
        assert_eq!(map.missing_reason("gfx1100"), None);
        map.add_code("gfx1030, gfx1200").unwrap();
        for own in ["gfx1031", "gfx1030", "gfx1200:xnack-"] {
            assert_eq!(map.missing_reason(own), None, "{own}");
        }
        let lack = map.missing_reason("gfx1100:xnack-").unwrap();
        assert!(lack.starts_with("gfx1100 is not served") && lack.ends_with("gfx1030, gfx1200"), "{lack}");
        assert_eq!(map.add_code("gfx10-3-generic").unwrap_err(), NamesError::Unknown("gfx10-3-generic".into()));
    }

    #[test]
    fn an_empty_text_shows_no_names() {
        assert!(NameMap::parse("").unwrap().is_empty() && NameMap::parse(" , ").unwrap().is_empty());
        assert!(!NameMap::parse("gfx1031=gfx1030").unwrap().is_empty());
    }

    #[test]
    fn a_wrong_text_is_refused_whole() {
        let refused = |text: &str| NameMap::parse(text).unwrap_err();
        assert_eq!(refused("gfx1031"), NamesError::Form("gfx1031".into()));
        assert_eq!(refused("gfx1031=gfx1030,gfx1032:gfx1030"), NamesError::Form("gfx1032:gfx1030".into()));
        assert_eq!(refused("gfx1031="), NamesError::Unknown(String::new()));
        assert_eq!(refused("gfx1031=gfx1030:xnack-"), NamesError::Unknown("gfx1030:xnack-".into()));
        assert_eq!(refused("gfx1031=gfx10-3-generic"), NamesError::Unknown("gfx10-3-generic".into()));
        assert_eq!(refused("GFX1031=gfx1030"), NamesError::Unknown("GFX1031".into()));
        assert_eq!(refused("gfx1031=gfx1030,gfx1031=gfx1032"), NamesError::TwoNames("gfx1031"));
        assert_eq!(refused("gfx90a=gfx1030"), NamesError::NoPair { own: "gfx90a", shown: "gfx1030" });
        assert_eq!(refused("gfx1030=gfx1030"), NamesError::NoPair { own: "gfx1030", shown: "gfx1030" });
        // The same pair twice states nothing else.
        assert_eq!(NameMap::parse("gfx1031=gfx1030,gfx1031=gfx1030").unwrap().pairs.len(), 1);
    }
}
