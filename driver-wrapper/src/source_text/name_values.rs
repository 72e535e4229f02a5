//! The values that a text computes from the GPU's name, asked once for a header and not once for each GPU and source.
//!
//! Libraries that choose by the name (rocPRIM) spell it in one function without parameters. Two GPUs have the same program if their
//! texts differ in such functions alone ([`super::name_functions`]) and
//!
//! 1. each of the functions has one value for both GPUs, as a constant expression and where clang folds it: a copy for each GPU, under
//!    another name and behind the original, is compiled in the text up to there, and its values are read from the LLVM IR;
//! 2. the function is in no code: whether clang emits it is seen in the compilation itself ([`crate::emission_witness`]).
//!
//! The values are kept by the compiler, the arguments, the GPUs, and the text up to the end of the last function without its line markers:
//! sources that begin with the same headers share them. One of several GPUs is compiled, so that code is clang's own.
//!
//! Invariant: what is not understood, and any failure of clang, is no answer; then the front end runs for each GPU, as without this.
//!
//! Absent on purpose: functions whose body instantiates templates by the name that something else may see (a friend that such an instance
//! declares); several settings of features; commands with several sources.

use super::difference::place_of;
use super::name_functions::{NamedFunction, functions_with_mark};
use super::poison::{NameStrings, Poison};
use super::run::{CompileCommand, Preprocessor};
use super::{SourceAnswers, SourceEvidence, TextAnswer, is_sibling};
use crate::emission_witness::{self, EmissionWitness};
use crate::question::DerivationQuery;
use crate::{command, store, toolchain};
use hotswap_files::ScratchDirectory;
use hotswap_targets::Processor;
use memchr::memmem;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// The literals that stand for the GPU's name begin so; the macro's name and `@` follow.
pub(super) const MARK: &str = "@hotswap:";
/// Changes with what a record is.
const FORMAT: &str = "2";
/// The record of a text that has no answer.
const NO_ANSWER: &str = "none";
/// Names in the program that is compiled.
const ANSWER: &str = "hotswap_answer_";
const ADDRESS: &str = "hotswap_address_";
const UNFOLDED: &str = "hotswap_unfolded";

/// The mark of a macro.
pub(super) fn mark_of_name(name: &str) -> String {
    format!("{MARK}{name}@")
}

/// How it is found out whether texts that differ in the name alone are one program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameProof {
    /// By the values of the functions that use it, where that can be shown.
    Values,
    /// By the front end, for each GPU.
    Modules,
}

/// The values of the functions, by target ID, and the functions' symbols.
#[derive(Debug, Default, PartialEq, Eq)]
struct NameValues {
    symbols: Vec<String>,
    by_id: BTreeMap<String, Vec<String>>,
}

/// A question about one source whose text has marks.
struct MarkedText<'m> {
    preprocessor: &'m Preprocessor<'m>,
    program: &'m CompileCommand,
    question: &'m DerivationQuery,
    strings: &'m NameStrings,
    text: Vec<u8>,
    functions: Vec<NamedFunction>,
}

/// Whether the names have the form, and the command the parts, that the proof is for.
pub(super) fn can_judge(programs: &[CompileCommand], question: &DerivationQuery, poison: &Poison) -> bool {
    programs.len() == 1 && question.source_ids.len() == 1 && poison.strings().is_some()
}

/// The answers for the question's targets, if the program uses no name, or uses names in such functions alone.
pub(super) fn answer_by_values(
    preprocessor: &Preprocessor<'_>,
    program: &CompileCommand,
    question: &DerivationQuery,
    poison: &Poison,
) -> Option<SourceAnswers> {
    let strings = poison.strings()?;
    let text = poison.marked_text(preprocessor, program, question)?;
    if memmem::find(&text, MARK.as_bytes()).is_none() {
        return Some(SourceAnswers::same_program(question));
    }
    let functions = functions_with_mark(&text, MARK.as_bytes())?;
    MarkedText { preprocessor, program, question, strings, text, functions }.answers()
}

impl MarkedText<'_> {
    fn answers(&self) -> Option<SourceAnswers> {
        let seen = self.emission_record()?;
        if fs::exists(&seen).unwrap_or(true) {
            return None;
        }
        let values = self.known_values()?;
        let answers = self.compare_values(&values)?;
        let mut gpus = BTreeSet::new();
        for answer in &answers {
            if let TextAnswer::Same(from) = answer {
                gpus.insert(self.id(from)?);
            }
        }
        let symbols = values.symbols.iter().cloned().collect();
        let witness = match gpus.is_empty() {
            true => None,
            false => Some(EmissionWitness::new(symbols, gpus, seen)?),
        };
        Some(SourceAnswers { answers, witness })
    }

    fn compare_values(&self, values: &NameValues) -> Option<Vec<TextAnswer>> {
        let mut compiled: Vec<&'static Processor> = vec![self.question.source];
        let mut answers = Vec::new();
        for target in self.question.targets.iter().copied() {
            let own = values.by_id.get(&self.id(target)?)?;
            let mut same = None;
            for other in compiled.iter().copied() {
                let is_allowed = other == self.question.source || is_sibling(other, target);
                if is_allowed && values.by_id.get(&self.id(other)?)? == own {
                    same = Some(other);
                    break;
                }
            }
            answers.push(match same {
                Some(other) => TextAnswer::Same(other),
                None => {
                    compiled.push(target);
                    TextAnswer::Differs { evidence: self.evidence(), known: true }
                }
            });
        }
        Some(answers)
    }

    fn id(&self, processor: &Processor) -> Option<String> {
        Some(self.question.id(processor, self.question.source_ids.first()?))
    }

    /// The first place of a name.
    fn evidence(&self) -> Option<SourceEvidence> {
        let place = place_of(&self.text, MARK)?;
        let first = memmem::find(&self.text, MARK.as_bytes())?;
        let name = self.strings.keys().find(|name| self.text[first..].starts_with(mark_of_name(name).as_bytes()));
        Some(SourceEvidence { name: name.cloned(), ..place })
    }

    fn ids(&self) -> Option<Vec<String>> {
        [self.question.source].iter().chain(&self.question.targets).map(|processor| self.id(processor)).collect()
    }

    /// Everything on which the values depend.
    fn key(&self, text: &[u8]) -> Option<String> {
        let compiler = toolchain::key(self.preprocessor.clang).ok()?;
        let mut key = format!("{FORMAT} {compiler}\n{:?}\n{:?}\n", self.ids()?, self.strings);
        let command = command::scan(&self.program.words);
        let mut words = self
            .program
            .words
            .iter()
            .enumerate()
            .filter(|(at, _)| !command.inputs.iter().any(|input| input.word == *at));
        while let Some((_, word)) = words.next() {
            if word == "-o" {
                words.next();
            } else {
                let _ = writeln!(key, "{word:?}");
            }
        }
        let _ = writeln!(key, "{:?} {:?}", self.preprocessor.mode, self.preprocessor.configured);
        let mut content = key.into_bytes();
        let lines = text.split_inclusive(|byte| *byte == b'\n').filter(|line| !line.starts_with(b"# "));
        lines.for_each(|line| content.extend_from_slice(line));
        Some(store::hash(&content))
    }

    /// Where it is noted that a compilation of this text has the functions in its code.
    fn emission_record(&self) -> Option<PathBuf> {
        Some(store::directory("name-values").ok()?.join(format!("{}.emitted", self.key(&self.text)?)))
    }

    /// The values, from the cache or from clang.
    fn known_values(&self) -> Option<NameValues> {
        let end = self.functions.last()?.definition.end;
        let record = store::directory("name-values").ok()?.join(self.key(&self.text[..end])?);
        if let Some(text) = store::read_regular_text(&record) {
            return NameValues::parse(&text);
        }
        let values = self.ask_values();
        let text = values.as_ref().map_or_else(|| format!("{NO_ANSWER}\n"), NameValues::to_text);
        // Without a cache the answer is asked each time.
        let _ = store::put(&record, text.as_bytes());
        values
    }

    fn ask_values(&self) -> Option<NameValues> {
        let ids = self.ids()?;
        let scratch = ScratchDirectory::temporary("hotswap-names-").ok()?;
        let source = scratch.path().join("names.hip");
        fs::write(&source, self.program_with_copies(&ids)?).ok()?;
        let further = emission_witness::words_of_front_end(scratch.path());
        let id = self.id(self.question.source)?;
        let module = self.preprocessor.module_of_preprocessed(self.program, &id, &source, &further)?;
        self.values_in_module(&String::from_utf8(module).ok()?, &ids)
    }

    /// The text up to the end of the last function, with copies for each GPU behind each function.
    fn program_with_copies(&self, ids: &[String]) -> Option<Vec<u8>> {
        let mut program = Vec::new();
        let mut from = 0;
        for (number, function) in self.functions.iter().enumerate() {
            let end = function.definition.end;
            program.extend(self.with_name(&self.text[from..end], ids.first()?)?);
            from = end;
            for (gpu, id) in ids.iter().enumerate() {
                program.extend(self.text_of_copy(function, number, gpu, id)?);
            }
            let name = &function.name;
            let text = format!(
                "\nextern \"C\" __attribute__((device, used)) const void *{ADDRESS}{number}() {{ return reinterpret_cast<const void *>(&{name}); }}\n"
            );
            program.extend(text.into_bytes());
        }
        program.extend(b"\n".iter().chain(&b"}".repeat(self.functions.last()?.depth)).chain(b"\n"));
        Some(program)
    }

    /// The function with that GPU's name, and a function from which its value is read.
    fn text_of_copy(&self, function: &NamedFunction, number: usize, gpu: usize, id: &str) -> Option<Vec<u8>> {
        let NamedFunction { definition, identifier, name, .. } = function;
        let copy = format!("{name}_hotswap_{gpu}");
        let before = self.with_name(&self.text[definition.start..identifier.start], id)?;
        let behind = self.with_name(&self.text[identifier.end..definition.end], id)?;
        let answer = format!(
            "\nextern \"C\" __attribute__((device)) void {UNFOLDED}();\n\
             extern \"C\" __attribute__((device, used)) long long {ANSWER}{number}_{gpu}() {{\n\
             static_assert(__is_enum(decltype({copy}())) || __is_integral(decltype({copy}())), \"\");\n\
             constexpr auto value = {copy}();\n\
             if ({copy}() == value) {{}} else {UNFOLDED}();\n\
             return static_cast<long long>(value); }}\n"
        );
        Some([b"\n", &before[..], copy.as_bytes(), &behind, answer.as_bytes()].concat())
    }

    /// The text with the names of that GPU in the marks' places.
    fn with_name(&self, text: &[u8], id: &str) -> Option<Vec<u8>> {
        let mut text = text.to_vec();
        for (name, values) in self.strings {
            text = replaced(&text, mark_of_name(name).as_bytes(), values.get(id)?.as_bytes());
        }
        Some(text)
    }

    fn values_in_module(&self, module: &str, ids: &[String]) -> Option<NameValues> {
        if module.contains(UNFOLDED) {
            return None;
        }
        let mut values = NameValues::default();
        for number in 0..self.functions.len() {
            let address = returned_value(module, &format!("@{ADDRESS}{number}("))?;
            let symbol = address.strip_prefix("ptr @")?;
            let is_plain = symbol.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.$".contains(&byte));
            values.symbols.push(Some(symbol).filter(|_| is_plain)?.to_owned());
            for (gpu, id) in ids.iter().enumerate() {
                let value = returned_value(module, &format!("@{ANSWER}{number}_{gpu}("))?;
                let value = value.strip_prefix("i64 ").filter(|value| value.parse::<i64>().is_ok())?;
                values.by_id.entry(id.clone()).or_default().push(value.to_owned());
            }
        }
        Some(values)
    }
}

fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(text.len());
    let mut rest = 0;
    for at in memmem::find_iter(text, from) {
        replaced.extend([&text[rest..at], to].concat());
        rest = at + from.len();
    }
    replaced.extend_from_slice(&text[rest..]);
    replaced
}

/// The operand of the only `ret` of a function in LLVM's text.
fn returned_value<'m>(module: &'m str, function: &str) -> Option<&'m str> {
    let mut lines = module.lines().skip_while(|line| !(line.starts_with("define ") && line.contains(function)));
    lines.next()?;
    let body = lines.take_while(|line| *line != "}");
    let mut returns = body.filter_map(|line| line.trim_start().strip_prefix("ret "));
    let value = returns.next()?;
    // Metadata may follow.
    returns.next().is_none().then(|| value.split(',').next().unwrap_or(value).trim())
}

impl NameValues {
    fn to_text(&self) -> String {
        let mut text = format!("symbols {}\n", self.symbols.join(" "));
        for (id, values) in &self.by_id {
            let _ = writeln!(text, "{id} {}", values.join(" "));
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.strip_suffix('\n')?.lines();
        let symbols: Vec<String> = lines.next()?.strip_prefix("symbols ")?.split(' ').map(str::to_owned).collect();
        let mut by_id = BTreeMap::new();
        for line in lines {
            let (id, values) = line.split_once(' ')?;
            let values: Vec<String> = values.split(' ').map(str::to_owned).collect();
            if values.len() != symbols.len() {
                return None;
            }
            by_id.insert(id.to_owned(), values);
        }
        let names: BTreeSet<&String> = symbols.iter().collect();
        (names.len() == symbols.len()).then_some(Self { symbols, by_id })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_from_the_module() {
        let module = "define hidden i64 @hotswap_answer_0_1() #6 {\n  %1 = alloca i64\n  ret i64 -1\n}\n\
                      define hidden ptr @hotswap_address_0() {\n  ret ptr @_Z1fv, !dbg !3\n}\n\
                      define i64 @two() {\n  ret i64 1\n  ret i64 2\n}\n";
        assert_eq!(returned_value(module, "@hotswap_answer_0_1("), Some("i64 -1"));
        assert_eq!(returned_value(module, "@hotswap_address_0("), Some("ptr @_Z1fv"));
        assert_eq!(returned_value(module, "@two("), None);
        assert_eq!(returned_value(module, "@none("), None);
    }

    #[test]
    fn a_record_reads_back_and_a_damaged_one_is_no_answer() {
        let values = NameValues {
            symbols: vec!["_Z1fv".into(), "_Z1gv".into()],
            by_id: [("gfx1030".to_owned(), vec!["1".to_owned(), "-1".to_owned()])].into(),
        };
        let text = values.to_text();
        assert_eq!(NameValues::parse(&text), Some(values));
        for damaged in ["", "none\n", "symbols a\ngfx1030 1 2\n", "symbols a a\n", text.trim_end()] {
            assert_eq!(NameValues::parse(damaged), None, "{damaged}");
        }
    }
}
