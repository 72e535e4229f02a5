//! One word, both answers: equal, or the kind of difference.

use crate::normal::normal;
use crate::oracle::{Answer, Word};
use crate::setting::Setting;

/// An answer of the decoder under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decoded {
    /// Length in bytes.
    pub length: u8,
    pub text: String,
    /// The bytes of the instruction; equal to the word's first bytes or a defect.
    pub bytes: Vec<u8>,
    /// Length that the fast path gives.
    pub size: Option<u8>,
    /// The encoding of its operands when it is rebuilt from them, or the error message.
    pub rebuilt: Result<Vec<u8>, String>,
}

/// A decoder under test.
pub trait Subject: Sync {
    /// Whether it knows the setting.
    fn knows(&self, setting: &Setting) -> bool;
    /// The decoded word; `None` when it is not an instruction.
    fn decode(&self, setting: &Setting, word: &Word) -> Option<Decoded>;
}

/// Kinds of differences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// LLVM decodes it, we do not.
    Missing,
    /// We decode it, LLVM does not.
    Invented,
    Length,
    Text,
    /// The instruction does not have the word's bytes.
    Bytes,
    /// The fast path for sizes differs from the decoder.
    Size,
    /// Rebuilt from its operands, the bytes are not those of LLVM's assembler.
    Rebuilt,
}

impl Kind {
    /// Its name in lists and reports.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::Invented => "invented",
            Self::Length => "length",
            Self::Text => "text",
            Self::Bytes => "bytes",
            Self::Size => "size",
            Self::Rebuilt => "rebuilt",
        }
    }
}

/// A word on which the two disagree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// Setting of both decoders.
    pub setting: Setting,
    pub word: Word,
    pub kind: Kind,
    /// LLVM's answer, in normal form.
    pub theirs: String,
    /// Our answer, in normal form.
    pub ours: String,
    /// The origin of the word.
    pub source: String,
}

/// The relation between the answers to a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// Both accept, and everything is equal.
    Same,
    BothReject,
    /// LLVM crashed, so it did not answer.
    Crashed,
    /// They disagree.
    Different(Difference),
}

/// Compares the answers to one word. `canonical` words come from LLVM's assembler; in others, unused bits may have any
/// value, so the rebuilt word may differ in them.
pub fn compare(setting: &Setting, word: &Word, theirs: &Answer, ours: Option<&Decoded>, canonical: bool) -> Verdict {
    let (length, text) = match (theirs, ours) {
        (Answer::Crashed, _) => return Verdict::Crashed,
        (Answer::Invalid, None) => return Verdict::BothReject,
        (Answer::Invalid, Some(ours)) => {
            return new_difference_verdict(Kind::Invented, String::new(), normal(&ours.text), setting, word);
        }
        (Answer::Valid { text, .. }, None) => {
            return new_difference_verdict(Kind::Missing, normal(text), String::new(), setting, word);
        }
        (Answer::Valid { length, text, .. }, Some(_)) => (*length, normal(text)),
    };
    let Some(ours) = ours else { return Verdict::BothReject };
    let our_text = normal(&ours.text);
    if ours.length != length {
        return new_difference_verdict(
            Kind::Length,
            text_with_length(&text, length),
            text_with_length(&our_text, ours.length),
            setting,
            word,
        );
    }
    if our_text != text {
        return new_difference_verdict(Kind::Text, text, our_text, setting, word);
    }
    if word.bytes().get(..usize::from(length)) != Some(&ours.bytes) {
        return new_difference_verdict(Kind::Bytes, text, format!("{:02x?}", ours.bytes), setting, word);
    }
    if ours.size != Some(length) {
        return new_difference_verdict(Kind::Size, text, format!("{our_text} [size {:?}]", ours.size), setting, word);
    }
    match &ours.rebuilt {
        Ok(bytes) if *bytes == ours.bytes || !canonical => Verdict::Same,
        Err(_) if !canonical => Verdict::Same,
        Ok(bytes) => new_difference_verdict(Kind::Rebuilt, text, format!("{our_text} [{bytes:02x?}]"), setting, word),
        Err(error) => new_difference_verdict(Kind::Rebuilt, text, error.clone(), setting, word),
    }
}

fn new_difference_verdict(kind: Kind, theirs: String, ours: String, setting: &Setting, word: &Word) -> Verdict {
    let (setting, word) = (setting.clone(), *word);
    Verdict::Different(Difference { setting, word, kind, theirs, ours, source: String::new() })
}

fn text_with_length(text: &str, length: u8) -> String {
    format!("{text} [{length} bytes]")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BYTES: [u8; 4] = [0, 0, 0x80, 0xbf];

    fn decoded() -> Decoded {
        Decoded { length: 4, text: "s_nop 0".into(), bytes: BYTES.to_vec(), size: Some(4), rebuilt: Ok(BYTES.to_vec()) }
    }

    fn kind(theirs: &Answer, ours: Option<&Decoded>) -> Option<Kind> {
        let word = Word::new(&[0, 0, 0x80, 0xbf, 1, 2, 3, 4]);
        match compare(&Setting::new("gfx900"), &word, theirs, ours, true) {
            Verdict::Different(difference) => Some(difference.kind),
            _ => None,
        }
    }

    #[test]
    fn every_kind_of_difference_is_seen() {
        let valid = Answer::Valid { length: 4, text: "\ts_nop 0".into(), undefined: false };
        let good = decoded();
        assert_eq!(kind(&valid, Some(&good)), None);
        assert_eq!(kind(&Answer::Invalid, None), None);
        assert_eq!(kind(&Answer::Crashed, Some(&good)), None);
        assert_eq!(kind(&valid, None), Some(Kind::Missing));
        assert_eq!(kind(&Answer::Invalid, Some(&good)), Some(Kind::Invented));
        assert_eq!(kind(&valid, Some(&Decoded { length: 8, ..decoded() })), Some(Kind::Length));
        assert_eq!(kind(&valid, Some(&Decoded { text: "s_nop 1".into(), ..decoded() })), Some(Kind::Text));
        assert_eq!(kind(&valid, Some(&Decoded { bytes: vec![1, 0, 0x80, 0xbf], ..decoded() })), Some(Kind::Bytes));
        assert_eq!(kind(&valid, Some(&Decoded { size: None, ..decoded() })), Some(Kind::Size));
        assert_eq!(kind(&valid, Some(&Decoded { rebuilt: Ok(vec![0; 4]), ..decoded() })), Some(Kind::Rebuilt));
        assert_eq!(kind(&valid, Some(&Decoded { rebuilt: Err("x".into()), ..decoded() })), Some(Kind::Rebuilt));
    }
}
