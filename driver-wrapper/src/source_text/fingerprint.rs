//! Fingerprints of the texts that the GPUs of a command see, for the output of the preprocessor.
//!
//! Compiler caches ask the preprocessor what a compilation reads. Clang's own output has the text of the processors it
//! compiles for, under the new offload driver only the host's. With the fingerprints two commands whose objects may
//! differ have different outputs.
//!
//! Invariants: a text that cannot be preprocessed has a fingerprint, too, of what precedes the failure. Where the
//! text uses none of the names that differ between GPUs, it is read once for all of them.
//!
//! Absent on purpose: a comparison of the texts ([`super::answer`]).

use super::included::{IncludedFiles, without_own_header};
use super::poison::Poison;
use super::run::{CompileCommand, Preprocessor};
use crate::question::DerivationQuery;
use hotswap_report::Diagnostic;
use hotswap_targets::Processor;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};

/// The texts of the GPUs, as far as others must see them.
#[derive(Debug, Default)]
pub struct TextFingerprints {
    /// By GPUs, a hash of their texts of all sources.
    pub hashes: BTreeMap<String, String>,
    /// The files that they include.
    pub files: IncludedFiles,
}

/// Each line of fingerprints begins so; target IDs and a hash follow.
const LINE: &str = "// hotswap: text for ";

/// Whether preprocessed text says that these GPUs have one text, which is the output of a run with this
/// plan or a wider one.
pub(super) fn has_common_text(text: &[u8], ids: &[String]) -> bool {
    let lines = text.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(LINE.as_bytes()));
    lines
        .filter_map(|line| str::from_utf8(line).ok()?.split_once(": "))
        .any(|(common, _)| ids.iter().all(|id| common.split(' ').any(|known| known == id)))
}

impl TextFingerprints {
    /// The fingerprints as comments, which every reader of preprocessed text passes over.
    pub fn lines(&self) -> String {
        self.hashes.iter().map(|(ids, hash)| format!("{LINE}{ids}: {hash}\n")).collect()
    }

    /// The fingerprints for the questions of a command and for its `other` target IDs.
    ///
    /// # Errors
    /// An answer of clang's could not be read.
    pub fn gather(
        preprocessor: &Preprocessor<'_>,
        questions: &[DerivationQuery],
        other: &[String],
    ) -> Result<Self, Diagnostic> {
        let programs = preprocessor.programs();
        let mut found = Self::default();
        let mut ids: BTreeSet<String> = other.iter().cloned().collect();
        for question in questions {
            let poison = Poison::prepare(preprocessor, question);
            match poison.as_ref().and_then(|poison| found.add_common(preprocessor, &programs, question, poison)) {
                Some(common) => common.iter().for_each(|id| {
                    ids.remove(id);
                }),
                None => ids.extend(found.add_unknown(preprocessor, &programs, question, poison.as_ref())),
            }
        }
        let ids: Vec<String> = ids.into_iter().filter(|id| !found.has(id)).collect();
        let texts = super::map_in_parallel(&ids, |id| preprocessor.attempts(&programs, id, &[]));
        for (id, texts) in ids.into_iter().zip(texts) {
            found.add(id, &texts, b"");
        }
        preprocessor.unread.check().map(|()| found)
    }

    fn has(&self, id: &str) -> bool {
        self.hashes.keys().any(|ids| ids.split(' ').any(|known| known == id))
    }

    /// The one text of all GPUs of the question, if none of their names is used; these GPUs.
    fn add_common(
        &mut self,
        preprocessor: &Preprocessor<'_>,
        programs: &[CompileCommand],
        question: &DerivationQuery,
        poison: &Poison,
    ) -> Option<Vec<String>> {
        let texts: Option<Vec<_>> =
            programs.iter().map(|program| poison.common_texts(preprocessor, program, question)).collect();
        let texts: Vec<Vec<u8>> = texts?.into_iter().flatten().collect();
        let ids: Vec<String> =
            [question.source].iter().chain(&question.targets).flat_map(|one| question.ids(one)).collect();
        self.add(ids.join(" "), &texts, &poison.header_bytes());
        Some(ids)
    }

    /// For targets that clang does not know, the source's text without its names counts. The rest are returned.
    fn add_unknown(
        &mut self,
        preprocessor: &Preprocessor<'_>,
        programs: &[CompileCommand],
        question: &DerivationQuery,
        poison: Option<&Poison>,
    ) -> Vec<String> {
        let known: Vec<_> = question.targets.iter().copied().filter(|target| is_known(poison, target)).collect();
        if let Some(poison) = poison.filter(|_| known.len() < question.targets.len()) {
            for id in question.ids(question.source) {
                let texts = preprocessor.attempts(programs, &id, &poison.undefined_names());
                self.add(format!("{id} without names"), &texts, b"");
            }
        }
        known.into_iter().chain([question.source]).flat_map(|processor| question.ids(processor)).collect()
    }

    fn add(&mut self, ids: String, texts: &[Vec<u8>], own_header: &[u8]) {
        let mut hash = Sha256::new();
        for text in texts {
            self.files.add_text(text, own_header);
            let text = without_own_header(text, own_header);
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(&text);
        }
        self.hashes.insert(ids, hotswap_report::hex_digits(&hash.finalize()[..16]));
    }
}

/// Whether clang knows the target, as far as is known.
fn is_known(poison: Option<&Poison>, target: &Processor) -> bool {
    poison.is_none_or(|poison| poison.knows(target))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_tell_whose_text_is_one() {
        let mut texts = TextFingerprints::default();
        texts.add("gfx1030 gfx1031".into(), &[b"int x;\n".to_vec()], b"");
        texts.add("gfx1100".into(), &[b"int y;\n".to_vec()], b"");
        let lines = format!("int x;\n{}", texts.lines());
        let common = |ids: &[&str]| {
            has_common_text(lines.as_bytes(), &ids.iter().map(|id| (*id).to_owned()).collect::<Vec<_>>())
        };
        assert!(common(&["gfx1030", "gfx1031"]) && common(&["gfx1031"]));
        assert!(!common(&["gfx1030", "gfx1100"]) && !common(&["gfx1032"]));
        assert!(!has_common_text(b"int x;\n", &["gfx1030".to_owned()]));
    }

    #[test]
    fn another_text_has_another_fingerprint() {
        let hash = |texts: &[&[u8]]| {
            let mut found = TextFingerprints::default();
            found.add("x".into(), &texts.iter().map(|text| text.to_vec()).collect::<Vec<_>>(), b"own.h");
            found.hashes["x"].clone()
        };
        assert_eq!(hash(&[b"a\n# 1 \"/tmp/1/own.h\" 1\nb\n"]).len(), 32);
        assert_ne!(hash(&[b"a\n"]), hash(&[b"b\n"]));
        assert_ne!(hash(&[b"a\n", b"b\n"]), hash(&[b"a\nb\n"]));
        assert_eq!(hash(&[b"a\n# 1 \"own.h\" 1\n"]), hash(&[b"a\n"]));
    }
}
