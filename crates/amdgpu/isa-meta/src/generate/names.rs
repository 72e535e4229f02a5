//! Names of the rows as Rust enums.
//!
//! Invariants: an enum's variants are sorted by their text, so the same rows give the same numbers; two texts that
//! would give one variant are an error.

use super::GenerateError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// A generated enum: its texts in order of their numbers.
#[derive(Debug, Clone)]
pub struct EnumTexts {
    title: &'static str,
    texts: Vec<String>,
    numbers: BTreeMap<String, u8>,
}

impl EnumTexts {
    /// Collects `texts`; at most 256 fit the `u8` of the enum.
    pub fn new(title: &'static str, texts: BTreeSet<String>) -> Result<Self, GenerateError> {
        let texts: Vec<String> = texts.into_iter().collect();
        let mut variants = BTreeMap::new();
        let mut numbers = BTreeMap::new();
        for (number, text) in texts.iter().enumerate() {
            let number = u8::try_from(number).map_err(|_| GenerateError::new(title, "more than 256 names"))?;
            if let Some(other) = variants.insert(variant(text), text.clone()) {
                return Err(GenerateError::new(title, format!("`{text}` and `{other}` give one variant")));
            }
            numbers.insert(text.clone(), number);
        }
        Ok(Self { title, texts, numbers })
    }

    /// The number of `text`.
    pub fn number(&self, text: &str) -> Result<u8, GenerateError> {
        self.numbers.get(text).copied().ok_or_else(|| unknown_name_error(self, text))
    }

    /// The text of `number`; empty if it does not exist.
    pub fn text(&self, number: u8) -> &str {
        self.texts.get(usize::from(number)).map_or("", String::as_str)
    }

    /// The number of texts.
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether it is without texts.
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The enum as Rust text.
    pub fn write(&self, out: &mut String, description: &str) {
        let Self { title, texts, .. } = self;
        let _ = writeln!(out, "/// {description}\n#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]");
        let _ = writeln!(out, "#[repr(u8)]\npub enum {title} {{");
        for text in texts {
            let _ = writeln!(out, "    /// `{text}`\n    {},", variant(text));
        }
        let _ = writeln!(out, "}}\n\nimpl {title} {{");
        let _ =
            writeln!(out, "    /// All, in order of their numbers.\n    pub const ALL: [Self; {}] = [", texts.len());
        for text in texts {
            let _ = writeln!(out, "        Self::{},", variant(text));
        }
        let _ = writeln!(out, "    ];\n    const TEXTS: [&'static str; {}] = {texts:?};", texts.len());
        out.push_str(METHODS);
    }
}

fn unknown_name_error(texts: &EnumTexts, text: &str) -> GenerateError {
    GenerateError::new(texts.title, format!("unknown name `{text}`"))
}

const METHODS: &str = "
    /// As the rows spell it.
    #[inline]
    pub const fn as_str(self) -> &'static str {
        Self::TEXTS[self as usize]
    }

    /// The one that the rows spell `text`.
    pub fn find(text: &str) -> Option<Self> {
        Self::TEXTS.binary_search(&text).ok().map(|index| Self::ALL[index])
    }
}

";

/// `src0_modifiers` → `Src0Modifiers`, `64-bit-literals` → `N64BitLiterals`, `VOP3_DPP16` → `Vop3Dpp16`.
pub fn variant(text: &str) -> String {
    let mut result = String::new();
    for word in text.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty()) {
        let shouting = !word.contains(|letter: char| letter.is_ascii_lowercase());
        let mut letters = word.chars();
        result.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        result.extend(letters.map(|letter| if shouting { letter.to_ascii_lowercase() } else { letter }));
    }
    if result.starts_with(|letter: char| letter.is_ascii_digit()) {
        result.insert(0, 'N');
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{EnumTexts, variant};

    #[test]
    fn variants_are_rust_names() {
        let cases = [
            ("src0_modifiers", "Src0Modifiers"),
            ("64-bit-literals", "N64BitLiterals"),
            ("VOP3_DPP16", "Vop3Dpp16"),
            ("vdstX", "VdstX"),
            ("FLAT_SCR", "FlatScr"),
            ("ASYNCcnt", "ASYNCcnt"),
            ("gfx11-insts", "Gfx11Insts"),
        ];
        for (text, wanted) in cases {
            assert_eq!(variant(text), wanted);
        }
    }

    #[test]
    fn one_variant_for_two_texts_is_an_error() {
        let texts = ["vm_cnt", "vm-cnt"].map(String::from).into();
        assert!(EnumTexts::new("Flag", texts).unwrap_err().to_string().contains("one variant"));
    }
}
