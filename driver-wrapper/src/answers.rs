//! Turns the answers about the sources into targets that are compiled, derived, warned about or refused.
//!
//! Invariants: under the policy `compile` nothing is derived from a program other than the target's own. Targets that
//! are derived from another program, or without a check, are in the record.
//!
//! Absent on purpose: finding the answers ([`crate::source_text`]).

use crate::coalesce::UnitImage;
use crate::emission_witness::EmissionWitness;
use crate::question::{DerivationQuery, Sourceless};
use crate::source_text::{IncludedFiles, SourceEvidence, TextAnswer};
use hotswap_compat::{Strategy, find_pair};
use hotswap_plan::{NamesPolicy, TextFinding, TextFindings};
use hotswap_report::{Diagnostic, SourceText, codes};
use hotswap_targets::Processor;
use std::ffi::OsString;

/// The changes to a command that follow from the answers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consequences {
    /// Arguments that request the targets to compile, and cancel requests that are not needed.
    pub words: Vec<OsString>,
    /// The findings for the tools of the device link.
    pub findings: TextFindings,
    /// Targets for which some units of a link lend the bitcode of another processor.
    pub lent: Vec<String>,
    /// Target IDs that the unit has the bitcode of another one for, where relocatable code is coalesced.
    pub images: Vec<UnitImage>,
    /// Targets that the units of a link have bitcode for and that are derived all the same: their text
    /// is that of another one.
    pub skipped: Vec<String>,
    /// Warnings for the user.
    pub warnings: Vec<Diagnostic>,
    /// One line for each target, for `--hotswap-explain`.
    pub lines: Vec<String>,
    /// The files that the compared texts include.
    pub files: IncludedFiles,
    /// Functions that must not be in the code that is compiled.
    pub witness: Option<EmissionWitness>,
}

impl Consequences {
    /// Adds the consequences of the answers to one question.
    ///
    /// # Errors
    /// [`codes::TEXT_DIFFERS`] if the policy, or a clang that does not know the target, leaves no alternative.
    pub fn add(
        &mut self,
        question: &DerivationQuery,
        answers: &[TextAnswer],
        policy: NamesPolicy,
    ) -> Result<(), Diagnostic> {
        let mut served = Vec::new();
        for (target, answer) in question.targets.iter().copied().zip(answers) {
            let case = AnswerCase { question, target, policy };
            self.lines.push(case.line(answer));
            if let TextAnswer::Same(from) = answer {
                served.extend(question.ids(target));
                self.images.extend(question.images(target, from));
            }
            case.apply(answer, self)?;
        }
        if question.requested && !served.is_empty() {
            self.words.push(format!("--no-offload-arch={}", served.join(",")).into());
        }
        Ok(())
    }
}

impl Consequences {
    /// Lets clang say whether the functions on which an answer rests are in its code.
    pub fn add_witness(&mut self, witness: EmissionWitness) {
        let witness = match self.witness.take() {
            Some(known) => known.joined(witness),
            None => witness,
        };
        self.witness = Some(witness);
    }

    /// All arguments that follow from the answers.
    pub fn all_words(&self) -> Vec<OsString> {
        let witness = self.witness.iter().flat_map(EmissionWitness::words);
        self.words.iter().cloned().chain(witness).collect()
    }

    /// Requests a target for which the command compiles no source.
    pub fn compile_sourceless(&mut self, sourceless: &Sourceless) {
        let Sourceless { target, why } = sourceless;
        self.words.push(format!("--offload-arch={target}").into());
        self.lines.push(format!("{target}: compiled, {why}"));
        self.findings.set(TextFinding {
            target: target.name.to_owned(),
            status: SourceText::Compiled,
            source: None,
            evidence: Some(why.clone()),
        });
    }

    /// Requests the question's targets whose code objects could not be derived. Another stepping of the GPU lacks a
    /// name that clang could compile for.
    pub fn compile_refused(&mut self, question: &DerivationQuery, refused: &TextFindings) {
        for target in question.targets.iter().copied() {
            let case = AnswerCase { question, target, policy: NamesPolicy::Compile };
            if let Some(finding) = refused.find(target.name).filter(|_| !case.is_stepping()) {
                case.compile(self);
                self.findings.set(finding.clone());
            }
        }
    }
}

/// One target of a question.
struct AnswerCase<'c> {
    question: &'c DerivationQuery,
    target: &'static Processor,
    policy: NamesPolicy,
}

impl AnswerCase<'_> {
    fn apply(&self, answer: &TextAnswer, found: &mut Consequences) -> Result<(), Diagnostic> {
        match answer {
            // A sibling other than the source is a valid origin only if it is compiled.
            TextAnswer::Same(from) if *from == self.question.source || self.compiles() => {
                self.find(found, SourceText::Same, Some(from.name), None);
            }
            TextAnswer::Same(_) => self.find(found, SourceText::Differs, Some(self.question.source.name), None),
            TextAnswer::Differs { evidence, known } => self.differs(evidence.as_ref(), *known, found)?,
            TextAnswer::Unknown(why) => self.unknown(why, found)?,
            TextAnswer::Absent(why) => {
                if !self.question.requested && !self.is_stepping() && self.policy == NamesPolicy::Compile {
                    let what = format!("{}=>{}: {why}", self.question.source, self.target);
                    let advice = "preprocess it with the same plan, or compile the original source";
                    return Err(Diagnostic::error(codes::TEXT_UNKNOWN, what).advise(advice));
                }
                self.unknown(why, found)?;
            }
        }
        Ok(())
    }

    /// Whether a target with a text of its own is compiled.
    fn compiles(&self) -> bool {
        self.question.requested || self.policy == NamesPolicy::Compile
    }

    /// Whether the pair makes code for another stepping of the same GPU, which the source cannot distinguish by the
    /// host's name for it.
    fn is_stepping(&self) -> bool {
        find_pair(self.question.source, self.target).is_some_and(|pair| pair.strategy == Strategy::Rewrite)
    }

    fn differs(
        &self,
        evidence: Option<&SourceEvidence>,
        known: bool,
        found: &mut Consequences,
    ) -> Result<(), Diagnostic> {
        let place = evidence.map(SourceEvidence::to_string);
        let short = evidence.map(SourceEvidence::short);
        let what = self.what(place.as_deref());
        if self.compiles() && known {
            self.compile(found);
            self.find(found, SourceText::Compiled, None, short);
            return Ok(());
        }
        if self.policy == NamesPolicy::Error {
            return Err(Diagnostic::error(codes::TEXT_DIFFERS, what));
        }
        if self.compiles() && !self.is_stepping() {
            let advice = format!("use a clang that knows {}, or --hotswap-names=warn", self.target);
            return Err(Diagnostic::error(codes::TEXT_DIFFERS, format!("{what}, which clang cannot compile for"))
                .advise(advice));
        }
        found.warnings.push(Diagnostic::warning(codes::TEXT_DIFFERS, what));
        self.find(found, SourceText::Differs, Some(self.question.source.name), short);
        Ok(())
    }

    fn unknown(&self, why: &str, found: &mut Consequences) -> Result<(), Diagnostic> {
        let what = format!("{}=>{}: {why}", self.question.source, self.target);
        match self.policy {
            _ if self.question.requested => {}
            NamesPolicy::Compile if !self.is_stepping() => {
                self.compile(found);
                self.find(found, SourceText::Compiled, None, Some(why.to_owned()));
            }
            NamesPolicy::Error => return Err(Diagnostic::error(codes::TEXT_UNKNOWN, what)),
            _ => {
                if self.policy == NamesPolicy::Warn {
                    found.warnings.push(Diagnostic::warning(codes::TEXT_UNKNOWN, what));
                }
                self.find(found, SourceText::NotChecked, Some(self.question.source.name), Some(why.to_owned()));
            }
        }
        Ok(())
    }

    fn what(&self, place: Option<&str>) -> String {
        let at = place.map(|place| format!(": {place}")).unwrap_or_default();
        format!("the program for {} is not that for {}{at}", self.target, self.question.source)
    }

    /// Requests the target, unless the command already does.
    fn compile(&self, found: &mut Consequences) {
        if !self.question.requested {
            let ids = self.question.ids(self.target).join(",");
            found.words.push(format!("--offload-arch={ids}").into());
        }
    }

    fn find(&self, found: &mut Consequences, status: SourceText, source: Option<&str>, evidence: Option<String>) {
        found.findings.push(TextFinding {
            target: self.target.name.to_owned(),
            status,
            source: source.map(str::to_owned),
            evidence,
        });
    }

    /// A line about an answer, for `--hotswap-explain`.
    fn line(&self, answer: &TextAnswer) -> String {
        let target = self.target;
        match answer {
            TextAnswer::Same(from) => format!("{target}: same program as for {from}"),
            TextAnswer::Differs { evidence: None, .. } => {
                format!("{target}: another program than for {}", self.question.source)
            }
            TextAnswer::Differs { evidence: Some(evidence), .. } => {
                format!("{target}: another program than for {}, {evidence}", self.question.source)
            }
            TextAnswer::Unknown(why) | TextAnswer::Absent(why) => format!("{target}: not asked, {why}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_targets::find_processor;

    fn question(source: &str, targets: &[&str], requested: bool) -> DerivationQuery {
        DerivationQuery {
            source: find_processor(source).unwrap(),
            source_ids: vec![source.parse().unwrap()],
            targets: targets.iter().map(|name| find_processor(name).unwrap()).collect(),
            requested,
            doubt: None,
        }
    }

    fn differs(known: bool) -> TextAnswer {
        let evidence = SourceEvidence { name: Some("__gfx1030__".into()), file: "d/a.h".into(), line: 7 };
        TextAnswer::Differs { evidence: Some(evidence), known }
    }

    /// Arguments, findings and warnings, or the code of the error.
    fn show(question: &DerivationQuery, answers: &[TextAnswer], policy: NamesPolicy) -> String {
        let mut found = Consequences::default();
        match found.add(question, answers, policy) {
            Err(error) => error.code.id.to_owned(),
            Ok(()) => {
                let words: Vec<_> = found.words.iter().map(|word| word.to_string_lossy()).collect();
                let warned = if found.warnings.is_empty() { "" } else { " warned" };
                format!("{} | {}{warned}", words.join(" "), found.findings.to_text().trim_end().replace('\n', "; "))
            }
        }
    }

    #[test]
    fn each_policy_does_what_it_says() {
        use NamesPolicy::{Compile, Error, Warn};
        let gfx1030 = find_processor("gfx1030").unwrap();
        let gfx1031 = find_processor("gfx1031").unwrap();
        let one = question("gfx1030", &["gfx1031"], false);
        let two = question("gfx1030", &["gfx1031", "gfx1032"], false);
        let coalesced = question("gfx1030", &["gfx1031", "gfx1032"], true);
        let stepping = question("gfx1250", &["gfx1250-strict"], false);
        let same = TextAnswer::Same(gfx1030);
        let unknown = || TextAnswer::Unknown("why".into());
        let absent = || TextAnswer::Absent("why".into());
        let rest = [differs(true), TextAnswer::Same(gfx1031)];
        for (question, answers, policy, expected) in [
            (&one, &[same.clone()][..], Compile, " | gfx1031 same gfx1030"),
            (&one, &[differs(true)], Compile, "--offload-arch=gfx1031 | gfx1031 compiled - `__gfx1030__` at a.h:7"),
            (&one, &[differs(true)], Error, "HS0413"),
            (&one, &[differs(true)], Warn, " | gfx1031 differs gfx1030 `__gfx1030__` at a.h:7 warned"),
            (&one, &[differs(false)], Compile, "HS0413"),
            (&one, &[unknown()], Compile, "--offload-arch=gfx1031 | gfx1031 compiled - why"),
            (&one, &[unknown()], Error, "HS0454"),
            (&one, &[unknown()], Warn, " | gfx1031 not-checked gfx1030 why warned"),
            (&one, &[absent()], Compile, "HS0454"),
            (&one, &[absent()], Error, "HS0454"),
            (&one, &[absent()], Warn, " | gfx1031 not-checked gfx1030 why warned"),
            (
                &two,
                &rest,
                Compile,
                "--offload-arch=gfx1031 | gfx1031 compiled - `__gfx1030__` at a.h:7; gfx1032 same gfx1031",
            ),
            (&two, &rest, Warn, " | gfx1031 differs gfx1030 `__gfx1030__` at a.h:7; gfx1032 differs gfx1030 warned"),
            (
                &coalesced,
                &[same.clone(), same.clone()],
                Compile,
                "--no-offload-arch=gfx1031,gfx1032 | gfx1031 same gfx1030; gfx1032 same gfx1030",
            ),
            (
                &coalesced,
                &rest,
                Error,
                "--no-offload-arch=gfx1032 | gfx1031 compiled - `__gfx1030__` at a.h:7; gfx1032 same gfx1031",
            ),
            (&stepping, &[differs(false)], Compile, " | gfx1250-strict differs gfx1250 `__gfx1030__` at a.h:7 warned"),
            (&stepping, &[unknown()], Compile, " | gfx1250-strict not-checked gfx1250 why"),
        ] {
            assert_eq!(show(question, answers, policy), expected, "{answers:?} {policy}");
        }
    }
}
