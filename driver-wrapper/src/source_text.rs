//! Whether the compiler sees the same program for several GPUs, checked in three steps of increasing cost.
//!
//! 1. *Poison*: the preprocessor runs once with every name poisoned that differs between the GPUs (`#pragma GCC
//!    poison`), so that it stops where the text uses one of them, in an `#ifdef` and in a pasted name, too. A text
//!    without an error is the same for all. The names are clang's own: its predefined macros for each GPU are compared,
//!    once for each compiler and set of GPUs. Where the names are used only in conditions that have one value for all GPUs
//!    (`#if defined(__gfx1030__) || defined(__gfx1031__)`), a second run without these answers.
//! 2. *Text*: a text with an error may use the name without effect, or with the same effect for all GPUs. It is
//!    preprocessed for each GPU and compared. Macros in pragmas are not in the text ([`pragmas`]).
//! 3. *Module*: texts that differ in the name alone, or in macros of pragmas (`"gfx1031"` passed to a function that knows only other names) may
//!    still be one program. Where the name stands in functions whose values can be asked, these are compared ([`name_values`]);
//!    else the front end's LLVM IR is made for each GPU, before any optimisation, and compared.
//!
//! Targets whose program is not the source's are compared with each other, so that one of them is compiled for all that
//! are the same.
//!
//! Invariants: Every failure of clang in here means "not the same"; one of the system, which leaves an answer unread, is an
//! error ([`run::UnreadAnswer`]). No files are left. A text with something that the back
//! end or the assembler resolves per GPU (assembly that reads files or builds names, `__oclc_ISA_version`) is never the
//! same.
//!
//! Absent on purpose: the consequences of the answer ([`crate::answers`]), and inputs that are not text
//! ([`crate::unseen`]).

mod assembly;
mod condition;
mod difference;
mod directive_free;
mod fingerprint;
mod included;
mod literal;
mod module;
mod name_functions;
mod name_values;
mod overlay;
mod poison;
mod pragmas;
mod run;

use crate::emission_witness::EmissionWitness;
use crate::question::DerivationQuery;
use difference::{first_difference, named_place};
pub use fingerprint::TextFingerprints;
use hotswap_compat::{PairStatus, Strategy, Verdict, find_pair, pair_verdict};
use hotswap_files::reads;
use hotswap_report::Diagnostic;
use hotswap_targets::Processor;
pub use included::IncludedFiles;
pub use name_values::NameProof;
use poison::Poison;
use pragmas::{DefinedText, definition_words};
use run::CompileCommand;
pub use run::Preprocessor;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::fs;

/// A location in the source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SourceEvidence {
    /// The macro that the text uses there, if it was found.
    pub name: Option<String>,
    /// File, as spelled by the preprocessor.
    pub file: String,
    /// The line, counted from 1.
    pub line: usize,
}

impl SourceEvidence {
    /// With the file's name alone: records must not differ between two directories.
    pub fn short(&self) -> String {
        let file = self.file.rsplit('/').next().unwrap_or_default().to_owned();
        Self { file, ..self.clone() }.to_string()
    }
}

impl fmt::Display for SourceEvidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}` at {}:{}", self.file, self.line),
            None => write!(f, "{}:{}", self.file, self.line),
        }
    }
}

/// The answer about one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextAnswer {
    /// The compiler sees the same program as for this processor: the source, or a target that differs from the source.
    Same(&'static Processor),
    /// It sees another program than for the source and for every earlier target.
    Differs {
        /// The first difference, if the texts could be compared.
        evidence: Option<SourceEvidence>,
        /// Whether clang knows the target, so that it can be compiled.
        known: bool,
    },
    /// The source could not be checked, for this reason.
    Unknown(String),
    /// The input does not have the target's text, for this reason: it can neither be checked nor compiled.
    Absent(String),
}

/// The answers for the question's targets, in their order.
#[derive(Debug)]
pub struct SourceAnswers {
    pub answers: Vec<TextAnswer>,
    /// They hold if these functions are in no code.
    pub witness: Option<EmissionWitness>,
}

impl SourceAnswers {
    fn unconditional(answers: Vec<TextAnswer>) -> Self {
        Self { answers, witness: None }
    }

    fn same_program(question: &DerivationQuery) -> Self {
        Self::unconditional(vec![TextAnswer::Same(question.source); question.targets.len()])
    }
}

/// The answers for the question's targets. The files of texts that were compared are added to `files`: where
/// the texts are one, clang's own dependencies are complete.
///
/// # Errors
/// An answer of clang's could not be read: no conclusion from it stands.
pub fn answer(
    preprocessor: &Preprocessor<'_>,
    question: &DerivationQuery,
    proof: NameProof,
    files: &mut IncludedFiles,
) -> Result<SourceAnswers, Diagnostic> {
    let answers = answer_targets(preprocessor, question, proof, files);
    preprocessor.unread.check().map(|()| answers)
}

fn answer_targets(
    preprocessor: &Preprocessor<'_>,
    question: &DerivationQuery,
    proof: NameProof,
    files: &mut IncludedFiles,
) -> SourceAnswers {
    if let Some(why) = &question.doubt {
        return unknown_answers_for_targets(why, question);
    }
    let programs = preprocessor.programs();
    if programs.is_empty() {
        return unknown_answers_for_targets("the command has no source", question);
    }
    if programs.iter().any(|program| program.preprocessed.is_some()) {
        let targets = question.targets.iter();
        let answers = targets.map(|target| preprocessed_answer(preprocessor, &programs, question, target));
        return SourceAnswers::unconditional(answers.collect());
    }
    let Some(poison) = Poison::prepare(preprocessor, question) else {
        return unknown_answers_for_targets("clang does not print its macros for the GPU", question);
    };
    if programs.iter().all(|program| poison.is_plain_text(preprocessor, program)) {
        return SourceAnswers::same_program(question);
    }
    let is_by_values = proof == NameProof::Values && name_values::can_judge(&programs, question, &poison);
    let found = match is_by_values {
        true => name_values::answer_by_values(preprocessor, &programs[0], question, &poison),
        false => programs
            .iter()
            .all(|program| poison.asks_nothing(preprocessor, program, question))
            .then(|| SourceAnswers::same_program(question)),
    };
    if let Some(answers) = found {
        return answers;
    }
    let compared = TextComparison::new(preprocessor, &programs, question, &poison);
    files.extend(&compared.files);
    SourceAnswers::unconditional(compared.answers())
}

fn unknown_answers_for_targets(why: &str, question: &DerivationQuery) -> SourceAnswers {
    SourceAnswers::unconditional(vec![TextAnswer::Unknown(why.to_owned()); question.targets.len()])
}

/// Preprocessed text was made for some GPUs; only HotSwap's lines at its end tell whether it is that of others.
fn preprocessed_answer(
    preprocessor: &Preprocessor<'_>,
    programs: &[CompileCommand],
    question: &DerivationQuery,
    target: &'static Processor,
) -> TextAnswer {
    let ids = [question.ids(question.source), question.ids(target)].concat();
    if programs.iter().all(|one| has_common_preprocessed_text(preprocessor, one, &ids)) {
        return TextAnswer::Same(question.source);
    }
    TextAnswer::Absent("the source is preprocessed, and does not have the text for this GPU".to_owned())
}

fn has_common_preprocessed_text(preprocessor: &Preprocessor<'_>, program: &CompileCommand, ids: &[String]) -> bool {
    let Some(path) = &program.preprocessed else { return false };
    match fs::read(path) {
        Ok(text) => poison::resolved_late(&text).is_none() && fingerprint::has_common_text(&text, ids),
        Err(error) => preprocessor.unread.note(reads::unread_file(path, &error)).unwrap_or(false),
    }
}

/// The texts of all sources for all targets.
struct TextComparison<'c> {
    preprocessor: &'c Preprocessor<'c>,
    programs: &'c [CompileCommand],
    question: &'c DerivationQuery,
    poison: &'c Poison,
    /// By target ID, a text for each source; `None` where it could not be made or is resolved later.
    texts: BTreeMap<String, Option<Vec<Vec<u8>>>>,
    /// The first place that is resolved later.
    late: Option<SourceEvidence>,
    /// The files that they include.
    files: IncludedFiles,
    /// Whether pragmas have no macros, by target ID and further arguments.
    plain_pragmas: RefCell<BTreeMap<String, bool>>,
}

impl<'c> TextComparison<'c> {
    fn new(
        preprocessor: &'c Preprocessor<'c>,
        programs: &'c [CompileCommand],
        question: &'c DerivationQuery,
        poison: &'c Poison,
    ) -> Self {
        let known = question.targets.iter().copied().filter(|target| poison.knows(target));
        let ids: Vec<String> = known.chain([question.source]).flat_map(|processor| question.ids(processor)).collect();
        let made = map_in_parallel(&ids, |id| preprocessor.texts(programs, id));
        let mut files = IncludedFiles::default();
        made.iter().flatten().flatten().for_each(|text| files.add_text(text, b""));
        let made: Vec<_> = made.into_iter().map(comparable_texts).collect();
        let late = made.iter().find_map(|made| made.as_ref().err().cloned().flatten());
        let texts = ids.into_iter().zip(made.into_iter().map(Result::ok)).collect();
        Self { preprocessor, programs, question, poison, texts, late, files, plain_pragmas: RefCell::default() }
    }

    fn answers(&self) -> Vec<TextAnswer> {
        let source = self.question.source;
        let mut modules: BTreeMap<String, Option<Vec<[u8; 32]>>> = BTreeMap::new();
        let mut compiled: Vec<&'static Processor> = Vec::new();
        let mut answers = Vec::new();
        for target in self.question.targets.iter().copied() {
            if !self.poison.knows(target) {
                answers.push(self.answer_for_unknown());
                continue;
            }
            let mut others =
                [source].into_iter().chain(compiled.iter().copied().filter(|from| is_sibling(from, target)));
            match others.find(|other| self.is_same(other, target, &mut modules)) {
                Some(other) => answers.push(TextAnswer::Same(other)),
                None => {
                    compiled.push(target);
                    answers.push(TextAnswer::Differs { evidence: self.evidence(target), known: true });
                }
            }
        }
        answers
    }

    /// Whether the compiler sees one program for both, with each setting of features.
    fn is_same(
        &self,
        one: &Processor,
        other: &Processor,
        modules: &mut BTreeMap<String, Option<Vec<[u8; 32]>>>,
    ) -> bool {
        self.question.source_ids.iter().all(|setting| {
            let ids = [self.question.id(one, setting), self.question.id(other, setting)];
            let texts = ids.each_ref().map(|id| self.texts.get(id).and_then(Option::as_ref));
            let [Some(one_text), Some(other_text)] = texts else { return false };
            if one_text == other_text && ids.iter().all(|id| self.has_plain_pragmas(id, &[])) {
                return true;
            }
            module::differ_in_names_alone(one, one_text, other, other_text) && self.has_same_modules(&ids, modules)
        })
    }

    /// Whether the pragmas of all sources have no macros, which would be expanded later.
    fn has_plain_pragmas(&self, id: &str, further: &[OsString]) -> bool {
        let texts = self.texts.get(id).and_then(Option::as_ref);
        if texts.is_some_and(|texts| !texts.iter().any(|text| pragmas::may_have_pragma(text))) {
            return true;
        }
        let mut plain = self.plain_pragmas.borrow_mut();
        let key = format!("{id} {further:?}");
        if let Some(known) = plain.get(&key) {
            return *known;
        }
        let words = [&definition_words()[..], further].concat();
        let is_plain = self.programs.iter().all(|program| {
            let printed = self.preprocessor.text(program, id, &words);
            let split = printed.and_then(|printed| DefinedText::split(&printed));
            split.is_some_and(|split| split.pragma_operands().are_plain())
        });
        plain.insert(key, is_plain);
        is_plain
    }

    fn has_same_modules(&self, ids: &[String; 2], modules: &mut BTreeMap<String, Option<Vec<[u8; 32]>>>) -> bool {
        let missing: Vec<String> = ids.iter().filter(|id| !modules.contains_key(*id)).cloned().collect();
        let made = map_in_parallel(&missing, |id| self.preprocessor.modules(self.programs, id));
        modules.extend(missing.into_iter().zip(made));
        let [one, other] = ids.each_ref().map(|id| modules.get(id).and_then(Option::as_ref));
        one.is_some() && one == other
    }

    /// The first difference between the texts for the target and for the source.
    fn evidence(&self, target: &Processor) -> Option<SourceEvidence> {
        if self.late.is_some() {
            return self.late.clone();
        }
        let setting = self.question.source_ids.first()?;
        let [own, other] = [self.question.source, target]
            .map(|processor| self.texts.get(&self.question.id(processor, setting)).and_then(Option::as_ref));
        let pairs = own.zip(other);
        let mut places = pairs.into_iter().flat_map(|(one, other)| one.iter().zip(other));
        let place = places.find_map(|(one, other)| first_difference(one, other));
        let named = match place.map(|place| named_place(place, self.poison.names())) {
            Some(Err(why)) => self.preprocessor.unread.note(why),
            found => found.and_then(Result::ok),
        };
        named.or_else(|| self.poison.first_use(self.preprocessor, self.programs, self.question))
    }

    /// A target that clang does not know: the source's text must not change when the source's names are undefined.
    fn answer_for_unknown(&self) -> TextAnswer {
        let ids = self.question.ids(self.question.source);
        let without = map_in_parallel(&ids, |id| {
            let texts =
                self.programs.iter().map(|program| self.poison.text_without_names(self.preprocessor, program, id));
            texts.collect::<Option<Vec<_>>>()
        });
        let is_same = ids
            .iter()
            .zip(&without)
            .all(|(id, without)| without.is_some() && self.texts.get(id).is_some_and(|text| text == without));
        let undefined = self.poison.undefined_names();
        let is_same =
            is_same && ids.iter().all(|id| self.has_plain_pragmas(id, &[]) && self.has_plain_pragmas(id, &undefined));
        if is_same {
            return TextAnswer::Same(self.question.source);
        }
        TextAnswer::Differs {
            evidence: self.poison.first_use(self.preprocessor, self.programs, self.question),
            known: false,
        }
    }
}

/// Whether the compiler makes the same code for `target` as for `source` of the same program, byte for byte.
fn is_sibling(source: &Processor, target: &Processor) -> bool {
    matches!(pair_verdict(source, target), Verdict::Identical { checks } if checks.is_empty())
        && find_pair(source, target).is_some_and(is_validated_relabel)
}

fn is_validated_relabel(pair: hotswap_compat::ValidatedPair) -> bool {
    pair.status == PairStatus::Validated && pair.strategy == Strategy::Relabel
}

/// The texts of all sources for one target. The error is for one that could not be made, or the place of something that is
/// resolved per GPU later.
fn comparable_texts(texts: Option<Vec<Vec<u8>>>) -> Result<Vec<Vec<u8>>, Option<SourceEvidence>> {
    let texts = texts.filter(|texts| !texts.iter().any(Vec::is_empty)).ok_or(None)?;
    let late = texts.iter().find_map(|text| poison::resolved_late(text));
    late.map_or(Ok(texts), |late| Err(Some(late)))
}

/// Applies `make` to all items on all cores; each clang is a separate process.
fn map_in_parallel<T: Send>(items: &[String], make: impl Fn(&str) -> T + Sync) -> Vec<T> {
    hotswap_files::on_all_cores(items.len(), |index| make(&items[index]))
}
