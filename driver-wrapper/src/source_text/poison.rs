//! The names by which a text can distinguish GPUs, and the run of the preprocessor that stops at any of them.

use super::SourceEvidence;
use super::assembly::resolved_by_assembler;
use super::condition::NameValues;
use super::difference::{name_in_line, place_of};
use super::directive_free;
use super::name_values::mark_of_name;
use super::overlay::{self, SettledHeaders};
use super::pragmas::{DefinedText, definition_words};
use super::run::{CompileCommand, PredefinedMacros, Preprocessor};
use crate::question::DerivationQuery;
use crate::{store, toolchain};
use hotswap_files::ScratchDirectory;
use hotswap_targets::{Processor, TargetId};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Names that are the same for every GPU, with different meanings.
const RESOLVED_LATE: [&str; 3] =
    ["__builtin_amdgcn_processor_is", "__builtin_amdgcn_is_invocable", "__oclc_ISA_version"];
/// The prefix of a line of the header for each name.
const POISON: &str = "#pragma GCC poison ";
/// The prefix of a line for each name that is defined as 1 or not at all; the GPUs that define it follow.
const DEFINERS: &str = "// defined: ";
/// The prefix of a line for each name that every GPU defines as a literal, a GPU, and the literal's content.
const LITERAL: &str = "// literal: ";

/// By name, the content of the literal that it is for each target ID.
pub(super) type NameStrings = BTreeMap<String, BTreeMap<String, String>>;

/// Names that differ between the GPUs of a question.
#[derive(Debug)]
pub(super) struct Poison {
    header: PathBuf,
    names: BTreeSet<String>,
    /// By name, the target IDs that define it as 1; names with other values are absent.
    definers: BTreeMap<String, BTreeSet<String>>,
    strings: NameStrings,
    /// Targets that clang does not know.
    unknown: Vec<&'static Processor>,
    /// Keeps the header where a cache does not exist.
    _scratch: Option<ScratchDirectory>,
}

impl Poison {
    /// The header for a question, cached for each compiler and set of GPUs. Where no cache can be used (a sandbox whose root
    /// directory is open to all), it is made for this command alone, beside clang's own temporary files: the answer must not
    /// depend on the cache.
    pub(super) fn prepare(preprocessor: &Preprocessor<'_>, question: &DerivationQuery) -> Option<Self> {
        let ids: Vec<String> = question.targets.iter().flat_map(|target| question.ids(target)).collect();
        let sources = question.ids(question.source);
        let compiler = match toolchain::key(preprocessor.clang) {
            Ok(compiler) => compiler,
            Err(why) => return preprocessor.unread.note(why),
        };
        let key = format!("3 {compiler} {} {}", sources.join(" "), ids.join(" "));
        let Ok(cache) = store::directory("coalesce") else {
            return Self::ask(preprocessor, question, PathBuf::new())?.in_scratch(preprocessor, &key);
        };
        let header = cache.join(format!("{}.h", store::name_for(&key)));
        let kept = store::read_regular_text(&header).and_then(|text| parse(&text, &key, &header, question));
        if kept.is_some() {
            return kept;
        }
        let made = Self::ask(preprocessor, question, header)?;
        match store::put(&made.header, made.text(&key).as_bytes()) {
            Ok(()) => Some(made),
            Err(_) => made.in_scratch(preprocessor, &key),
        }
    }

    /// With the header in a directory of this command alone.
    fn in_scratch(mut self, preprocessor: &Preprocessor<'_>, key: &str) -> Option<Self> {
        let scratch = match ScratchDirectory::temporary("hotswap-coalesce-") {
            Ok(scratch) => scratch,
            Err(why) => return preprocessor.unread.note(why),
        };
        self.header = scratch.path().join("names.h");
        self._scratch = Some(scratch);
        match hotswap_files::replace_file(&self.header, self.text(key).as_bytes()) {
            Ok(()) => Some(self),
            Err(why) => preprocessor.unread.note(why),
        }
    }

    /// Names of macros whose predefinitions differ, and those that the compiler resolves. For a target that clang does
    /// not know, the names are those that identify the source.
    fn ask(preprocessor: &Preprocessor<'_>, question: &DerivationQuery, header: PathBuf) -> Option<Self> {
        let mut names: BTreeSet<String> = RESOLVED_LATE.into_iter().map(str::to_owned).collect();
        let mut unknown: Vec<&'static Processor> = Vec::new();
        let mut definitions = NameDefinitions::default();
        for setting in &question.source_ids {
            let PredefinedMacros::Known(own) = preprocessor.macros(&setting.to_string()) else { return None };
            let own: BTreeSet<String> = own.into_iter().collect();
            definitions.add(&setting.to_string(), &own);
            for target in question.targets.iter().copied() {
                if unknown.contains(&target) {
                    continue;
                }
                let lines = match preprocessor.macros(&question.id(target, setting)) {
                    PredefinedMacros::Known(lines) => lines,
                    PredefinedMacros::UnknownGpu => {
                        let name = question.source.name;
                        names.extend(own.iter().filter(|line| line.contains(name)).filter_map(|line| macro_name(line)));
                        unknown.push(target);
                        continue;
                    }
                    // An answer that was not read must not be kept as that of a clang that does not know the GPU.
                    PredefinedMacros::Unread => return None,
                };
                let lines: BTreeSet<String> = lines.into_iter().collect();
                definitions.add(&question.id(target, setting), &lines);
                let differing = own.symmetric_difference(&lines).map(|line| macro_name(line));
                names.extend(differing.collect::<Option<Vec<_>>>()?);
            }
        }
        let definers = definitions.definers_of(&names);
        let strings = definitions.strings_of(&names);
        Some(Self { header, names, definers, strings, unknown, _scratch: None })
    }

    fn text(&self, key: &str) -> String {
        let unknown: Vec<_> = self.unknown.iter().map(|target| target.name).collect();
        let lines = self.names.iter().map(|name| format!("{POISON}{name}\n"));
        let definers = self.definers.iter().map(|(name, ids)| {
            let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
            format!("{DEFINERS}{name} {}\n", ids.join(" "))
        });
        let definers: String = definers.collect();
        let mut literals = String::new();
        for (name, values) in &self.strings {
            for (id, value) in values {
                literals.push_str(&format!("{LITERAL}{name} {id} {value}\n"));
            }
        }
        format!("// {key}\n// unknown: {}\n{definers}{literals}{}", unknown.join(" "), lines.collect::<String>())
    }

    /// The literals of the names that are one for every GPU; `None` if there are none, or clang does not know a GPU.
    pub(super) fn strings(&self) -> Option<&NameStrings> {
        Some(&self.strings).filter(|strings| !strings.is_empty() && self.unknown.is_empty())
    }

    pub(super) fn names(&self) -> &BTreeSet<String> {
        &self.names
    }

    /// Whether clang knows the target.
    pub(super) fn knows(&self, target: &Processor) -> bool {
        !self.unknown.contains(&target)
    }

    /// Arguments before the user's, as macros: files of `-imacros` and `-include` are read in that order.
    fn words(&self) -> [OsString; 2] {
        ["-imacros".into(), self.header.clone().into_os_string()]
    }

    /// Whether the program's text has no directives and none of the names.
    pub(super) fn is_plain_text(&self, preprocessor: &Preprocessor<'_>, program: &CompileCommand) -> bool {
        directive_free::is_own_text(program, preprocessor.configured, &self.names)
    }

    /// Whether the preprocessor accepts the program's text without any of the names, and no pragma can expand to one.
    pub(super) fn asks_nothing(
        &self,
        preprocessor: &Preprocessor<'_>,
        program: &CompileCommand,
        question: &DerivationQuery,
    ) -> bool {
        if self.is_plain_text(preprocessor, program) {
            return true;
        }
        let texts = self.texts_without_names(preprocessor, program, question, &definition_words());
        texts.is_some_and(|texts| texts.iter().all(|text| self.settled_text(text).is_some()))
    }

    /// The text without definitions, if there is one, nothing in it is resolved later, and no pragma can expand to a name.
    /// Arguments of the front end may leave no text at all.
    fn settled_text(&self, printed: &[u8]) -> Option<Vec<u8>> {
        let split = DefinedText::split(printed)?;
        let is_settled = has_settled_text(&split.text) && split.pragma_operands().are_without(self.names.iter());
        is_settled.then_some(split.text)
    }

    /// The texts for the settings of the source, if the preprocessor accepts them without any of the names: they are the
    /// same for all of the question's GPUs.
    pub(super) fn common_texts(
        &self,
        preprocessor: &Preprocessor<'_>,
        program: &CompileCommand,
        question: &DerivationQuery,
    ) -> Option<Vec<Vec<u8>>> {
        let texts = self.texts_without_names(preprocessor, program, question, &[])?;
        texts.iter().all(|text| has_settled_text(text)).then_some(texts)
    }

    /// The source's text with marks in the places of the names that are literals, if it uses no other name and nothing that is
    /// resolved later.
    pub(super) fn marked_text(
        &self,
        preprocessor: &Preprocessor<'_>,
        program: &CompileCommand,
        question: &DerivationQuery,
    ) -> Option<Vec<u8>> {
        if !self.hides_all_names(preprocessor) {
            return None;
        }
        let scratch = match ScratchDirectory::temporary("hotswap-coalesce-") {
            Ok(scratch) => scratch,
            Err(why) => return preprocessor.unread.note(why),
        };
        let header = scratch.path().join("marks.h");
        // Names that are resolved late are looked for in the text: a question whether clang has such a builtin is the same for all GPUs.
        let early = self.names.iter().filter(|name| !RESOLVED_LATE.contains(&name.as_str()));
        let lines = early.map(|name| match self.strings.contains_key(name) {
            // The second literal makes an error of a name that stands for a file.
            true => format!("#undef {name}\n#define {name} \"{}\" \"\"\n", mark_of_name(name)),
            false => format!("{POISON}{name}\n"),
        });
        if let Err(why) = hotswap_files::replace_file(&header, lines.collect::<String>().as_bytes()) {
            return preprocessor.unread.note(why);
        }
        let words = [&["-imacros".into(), header.into_os_string()][..], &definition_words()].concat();
        let setting = question.source_ids.first()?;
        self.settled_text(&self.text_without_uses(preprocessor, program, question, setting, &words)?)
    }

    /// A macro that was defined before a name was poisoned may still expand to it, and so may macros of the arguments.
    fn hides_all_names(&self, preprocessor: &Preprocessor<'_>) -> bool {
        !self.names.iter().any(|name| names_in_words(preprocessor, name))
            && !preprocessor.configured.iter().any(is_imacros_word)
    }

    fn texts_without_names(
        &self,
        preprocessor: &Preprocessor<'_>,
        program: &CompileCommand,
        question: &DerivationQuery,
        further: &[OsString],
    ) -> Option<Vec<Vec<u8>>> {
        if !self.hides_all_names(preprocessor) {
            return None;
        }
        let first = [&self.words()[..], further].concat();
        let texts = question
            .source_ids
            .iter()
            .map(|setting| self.text_without_uses(preprocessor, program, question, setting, &first));
        texts.collect()
    }

    /// The text for a setting of the source with the names poisoned; uses of them in conditions that have one value
    /// for all GPUs are none.
    fn text_without_uses(
        &self,
        preprocessor: &Preprocessor<'_>,
        program: &CompileCommand,
        question: &DerivationQuery,
        setting: &TargetId,
        first: &[OsString],
    ) -> Option<Vec<u8>> {
        let id = setting.to_string();
        let messages = match preprocessor.checked_text(program, &id, first)? {
            Ok(text) => return Some(text),
            Err(messages) => messages,
        };
        let uses = overlay::reported_uses(&messages)?;
        if !self.unknown.is_empty() || overlay::may_show_files(preprocessor.words.iter().chain(preprocessor.configured))
        {
            return None;
        }
        let headers = match SettledHeaders::write_copies(&uses, &self.name_values(question, setting)) {
            Ok(headers) => headers?,
            Err(why) => return preprocessor.unread.note(why),
        };
        preprocessor.checked_text(program, &id, &[&headers.overlay_words()[..], first].concat())?.ok()
    }

    /// The names' values for the source with that setting and for each target.
    fn name_values(&self, question: &DerivationQuery, setting: &TargetId) -> NameValues<'_> {
        let targets = question.targets.iter().map(|target| question.id(target, setting));
        let ids: Vec<String> = [setting.to_string()].into_iter().chain(targets).collect();
        let defined = self.definers.iter().map(|(name, definers)| {
            let values = ids.iter().map(|id| definers.contains(id)).collect();
            (name.as_str(), values)
        });
        NameValues { poisoned: &self.names, defined: defined.collect() }
    }

    /// The header's path, as line markers spell it.
    pub(super) fn header_bytes(&self) -> Vec<u8> {
        self.header.as_os_str().as_bytes().to_vec()
    }

    /// The location of the preprocessor's first error.
    pub(super) fn first_use(
        &self,
        preprocessor: &Preprocessor<'_>,
        programs: &[CompileCommand],
        question: &DerivationQuery,
    ) -> Option<SourceEvidence> {
        let id = question.source_ids.first()?.to_string();
        let said = programs.iter().filter_map(|program| preprocessor.complaints(program, &id, &self.words()));
        said.filter_map(|said| first_complaint(&said, &self.names)).next()
    }

    /// The text for that GPU with the names that are macros undefined.
    pub(super) fn text_without_names(
        &self,
        preprocessor: &Preprocessor<'_>,
        program: &CompileCommand,
        id: &str,
    ) -> Option<Vec<u8>> {
        preprocessor.text(program, id, &self.undefined_names()).filter(|text| resolved_late(text).is_none())
    }

    /// Arguments that undefine the names.
    pub(super) fn undefined_names(&self) -> Vec<OsString> {
        self.names.iter().map(|name| format!("-U{name}").into()).collect()
    }
}

/// Whether it is a text, and nothing in it is resolved later.
fn has_settled_text(text: &[u8]) -> bool {
    !text.trim_ascii().is_empty() && resolved_late(text).is_none()
}

/// Files of `-imacros` in clang's configuration files are read before ours.
fn is_imacros_word(word: &OsString) -> bool {
    word.to_string_lossy().contains("-imacros")
}

/// Parses the cached header.
fn parse(text: &str, key: &str, header: &std::path::Path, question: &DerivationQuery) -> Option<Poison> {
    let mut lines = text.lines();
    if lines.next()? != format!("// {key}") {
        return None;
    }
    let unknown: Vec<&str> = lines.next()?.strip_prefix("// unknown:")?.split_whitespace().collect();
    let mut names = BTreeSet::new();
    let mut definers = BTreeMap::new();
    let mut strings = NameStrings::new();
    for line in lines {
        if let Some(defined) = line.strip_prefix(DEFINERS) {
            let (name, ids) = defined.split_once(' ')?;
            definers.insert(name.to_owned(), ids.split_whitespace().map(str::to_owned).collect());
        } else if let Some(literal) = line.strip_prefix(LITERAL) {
            let mut parts = literal.splitn(3, ' ').map(str::to_owned);
            let (name, id, value) = (parts.next()?, parts.next()?, parts.next()?);
            strings.entry(name).or_default().insert(id, value);
        } else {
            names.insert(line.strip_prefix(POISON)?.to_owned());
        }
    }
    let unknown = question.targets.iter().copied().filter(|one| is_unknown_processor(one, &unknown)).collect();
    Some(Poison { header: header.to_owned(), names, definers, strings, unknown, _scratch: None })
}

/// The definitions of macros by target ID.
#[derive(Default)]
struct NameDefinitions(BTreeMap<String, BTreeSet<String>>);

impl NameDefinitions {
    fn add(&mut self, id: &str, lines: &BTreeSet<String>) {
        self.0.insert(id.to_owned(), lines.clone());
    }

    /// Of the names that no GPU defines as other than 1, the GPUs that define them.
    fn definers_of(&self, names: &BTreeSet<String>) -> BTreeMap<String, BTreeSet<String>> {
        let flags = names.iter().filter(|name| !RESOLVED_LATE.contains(&name.as_str()));
        flags.filter_map(|name| Some((name.clone(), self.definers(name)?))).collect()
    }

    /// The names that each GPU defines as a literal without escapes.
    fn strings_of(&self, names: &BTreeSet<String>) -> NameStrings {
        names.iter().filter_map(|name| Some((name.clone(), self.literals(name)?))).collect()
    }

    fn literals(&self, name: &str) -> Option<BTreeMap<String, String>> {
        let start = format!("#define {name} \"");
        let mut literals = BTreeMap::new();
        for (id, lines) in &self.0 {
            let content = lines.iter().find_map(|line| line.strip_prefix(&start)?.strip_suffix('"'))?;
            let is_plain = content.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-+:.".contains(&byte));
            literals.insert(id.clone(), Some(content).filter(|_| is_plain)?.to_owned());
        }
        Some(literals)
    }

    fn definers(&self, name: &str) -> Option<BTreeSet<String>> {
        let mut ids = BTreeSet::new();
        for (id, lines) in &self.0 {
            let own = lines.iter().filter(|line| macro_name(line).as_deref() == Some(name));
            for line in own {
                if *line != format!("#define {name} 1") {
                    return None;
                }
                ids.insert(id.clone());
            }
        }
        Some(ids)
    }
}

fn is_unknown_processor(target: &&'static Processor, unknown: &[&str]) -> bool {
    unknown.contains(&target.name)
}

/// The name in `#define NAME VALUE` or `#define NAME(PARAMETERS) VALUE`.
fn macro_name(line: &str) -> Option<String> {
    Some(line.strip_prefix("#define ")?.split([' ', '(']).next()?.to_owned())
}

/// The first place in the text with something that is resolved per GPU after preprocessing.
pub(super) fn resolved_late(text: &[u8]) -> Option<SourceEvidence> {
    let whole = String::from_utf8_lossy(text);
    let Some(name) = RESOLVED_LATE.iter().find(|name| whole.contains(**name)) else {
        return resolved_by_assembler(text);
    };
    let place = place_of(text, name).unwrap_or_default();
    Some(SourceEvidence { name: Some((*name).to_owned()), ..place })
}

/// `FILE:LINE:COLUMN: error: attempt to use a poisoned identifier`, followed by the line.
fn first_complaint(said: &str, names: &BTreeSet<String>) -> Option<SourceEvidence> {
    let mut lines = said.lines();
    let head = lines.by_ref().find(|line| line.contains(": error: ") && line.contains("poisoned"))?;
    let place = head.split(": error: ").next()?;
    let mut parts = place.rsplitn(3, ':');
    let (_column, line, file) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?);
    let name = lines.next().and_then(|line| name_in_line(line, names));
    Some(SourceEvidence { name, file: file.to_owned(), line })
}

fn names_in_words(preprocessor: &Preprocessor<'_>, name: &str) -> bool {
    let mut words = preprocessor.words.iter().chain(preprocessor.configured);
    words.any(|word| word.to_string_lossy().contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_complaint_names_macro_file_and_line() {
        let names: BTreeSet<String> = ["__gfx1030__", "__gfx1031__"].map(str::to_owned).into();
        let said = "In file included from a.hip:1:\n./b:c.h:12:5: error: attempt to use a poisoned identifier\n   12 | #if defined(__gfx1031__)\n      |             ^\n";
        let found = first_complaint(said, &names).unwrap();
        assert_eq!(found.to_string(), "`__gfx1031__` at ./b:c.h:12");
        assert_eq!(found.short(), "`__gfx1031__` at b:c.h:12");
        assert_eq!(first_complaint("a.hip:1:2: error: other\n", &names), None);
    }

    #[test]
    fn macro_names_end_where_parameters_or_values_begin() {
        assert_eq!(macro_name("#define A 1").unwrap(), "A");
        assert_eq!(macro_name("#define B(x) x").unwrap(), "B");
        assert_eq!(macro_name("#undef C"), None);
    }

    #[test]
    fn parts_that_the_back_end_resolves_are_found() {
        let asks = "# 1 \"d/a.hip\"\nint a;\nint b = __builtin_amdgcn_processor_is(\"gfx1030\");\n";
        let found = resolved_late(asks.as_bytes()).unwrap();
        assert_eq!(found.short(), "`__builtin_amdgcn_processor_is` at a.hip:2");
        assert!(resolved_late(b"asm(\".if .amdgcn.gfx_generation_stepping\")").is_some());
        assert_eq!(resolved_late(b"int main() {}"), None);
    }
}
