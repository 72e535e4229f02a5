//! C++ names in their source form, on request.

use cpp_demangle::Symbol;
use std::borrow::Cow;

/// Whether and how names are demangled.
pub struct NameStyle {
    pub demangle: bool,
}

impl NameStyle {
    /// The source form of a name, where it has one.
    pub fn readable(&self, name: &str) -> Option<String> {
        if !self.demangle || !name.starts_with("_Z") {
            return None;
        }
        Symbol::new(name).ok()?.demangle().ok()
    }

    /// The name for comments.
    pub fn shown<'n>(&self, name: &'n str) -> Cow<'n, str> {
        self.readable(name).map_or(Cow::Borrowed(name), Cow::Owned)
    }

    /// Whether the user's `wanted` matches this name.
    pub fn matches_name(&self, name: &str, wanted: &str) -> bool {
        name == wanted || self.readable(name).is_some_and(|readable| readable == wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::NameStyle;

    #[test]
    fn names_are_readable_on_request_only() {
        let (on, off) = (NameStyle { demangle: true }, NameStyle { demangle: false });
        assert_eq!(on.shown("_Z3addPKfS0_Pf"), "add(float const*, float const*, float*)");
        assert_eq!(off.shown("_Z3addPKfS0_Pf"), "_Z3addPKfS0_Pf");
        assert_eq!(on.shown("_Z3ad"), "_Z3ad");
        assert!(
            on.matches_name("_Z1kv", "k()") && on.matches_name("_Z1kv", "_Z1kv") && !off.matches_name("_Z1kv", "k()")
        );
    }
}
