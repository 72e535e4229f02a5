//! HotSwap's own options: one table for the arguments on the command line, the environment, the configuration files,
//! the help text and the documentation. Its first rows are the options of a plan ([`PLAN_OPTIONS`]).
//!
//! Invariant: no option exists outside the table; `--hotswap-help=markdown` prints the same rows that
//! [`OptionValues::gather`] reads.
//!
//! Absent on purpose: clang's flags (`flags`), and the effects of the settings on a command (`judge`).

use hotswap_plan::{PLAN_OPTIONS, PlanOption, words};
use hotswap_report::{Diagnostic, codes};
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::path::PathBuf;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)] // each row's help text describes it
pub enum OptionId {
    Clang,
    Coalesce,
    Config,
    Disable,
    Drain,
    Explain,
    Help,
    Hermetic,
    HostOptions,
    Identity,
    LlvmBin,
    /// An option of a plan, by its key.
    OfPlan(&'static str),
    Plan,
    PlanDir,
    PlanFile,
    Toolchain,
    Trace,
    Verbose,
    Version,
    WarmHeaders,
}

/// One option and its names.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    pub id: OptionId,
    /// The argument, with its `=` if it takes a value. Arguments with a value follow `-Xoffload-linker`; clang, clangd,
    /// clang-tidy and compiler caches accept that form.
    pub word: Option<&'static str>,
    /// The name of the value in help; empty for a switch.
    pub value: &'static str,
    pub env: Option<&'static str>,
    /// The key in the configuration files.
    pub key: Option<&'static str>,
    /// Its effect, without a final stop.
    pub help: &'static str,
}

/// The query argument that prints the decision.
pub const EXPLAIN: &str = "--hotswap-explain";
/// The query argument that prints the options.
pub const HELP: &str = "--hotswap-help";
/// The query argument that prints the toolchain's identity.
pub const IDENTITY: &str = "--hotswap-identity";
/// The query argument that prints HotSwap's version.
pub const VERSION: &str = "--hotswap-version";
pub const ENV_DISABLE: &str = "HOTSWAP_DISABLE";
/// Names the user's configuration file.
pub const ENV_CONFIG: &str = "HOTSWAP_CONFIG";
/// Forbids inputs that the command line does not declare.
pub const ENV_HERMETIC: &str = "HOTSWAP_HERMETIC";
/// Names the real clang.
pub const ENV_CLANG: &str = "HOTSWAP_CLANG";

/// Every option, in the order of help.
pub const OPTIONS: &[OptionRow] = &ALL;

const ALL: [OptionRow; PLAN_OPTIONS.len() + OWN.len()] = {
    let mut all = [OWN[0]; PLAN_OPTIONS.len() + OWN.len()];
    let mut number = 0;
    while number < all.len() {
        all[number] = match number < PLAN_OPTIONS.len() {
            true => OptionRow::of_plan(&PLAN_OPTIONS[number]),
            false => OWN[number - PLAN_OPTIONS.len()],
        };
        number += 1;
    }
    all
};

/// The options that are not part of a plan.
#[rustfmt::skip]
const OWN: &[OptionRow] = &[
    OptionRow { id: OptionId::Coalesce, word: Some(words::COALESCE), value: "0|1", env: Some("HOTSWAP_COALESCE"), key: Some("coalesce"),
        help: "1: compile once for each class of identical siblings among --offload-arch, where the program's text is the same for all of them, and derive the others; also -fhotswap-coalesce and -fno-hotswap-coalesce" },
    OptionRow { id: OptionId::WarmHeaders, word: Some(words::WARM_HEADERS), value: "off|implicit|auto", env: Some("HOTSWAP_WARM_HEADERS"), key: Some("warm-headers"),
        help: "read headers that many sources begin with from precompiled headers in the cache directory, where the output stays clang's byte for byte: implicit, those that clang itself includes into every HIP source; auto, also the first include directives; also -fhotswap-warm-headers (auto), -fhotswap-warm-headers=implicit and -fno-hotswap-warm-headers" },
    OptionRow { id: OptionId::Drain, word: Some(words::DRAIN), value: "0|1", env: Some("HOTSWAP_DRAIN"), key: Some("drain"),
        help: "0: a program whose device code has counters gets no drain of HotSwap's to write them when it ends; also --hotswap-no-drain" },
    OptionRow { id: OptionId::HostOptions, word: Some(words::HOST_OPTIONS), value: "0|1", env: Some("HOTSWAP_HOST_OPTIONS"), key: Some("host-options"),
        help: "options that clang refuses for a GPU (--hotswap-help=host-options) are for the host's code alone; 1: in every HIP command, 0: in none; without it in those with a plan" },
    OptionRow { id: OptionId::Plan, word: Some(words::PLAN), value: "HASH", env: None, key: None,
        help: "use the plan with this hash; build systems write this word, so that a changed plan rebuilds" },
    OptionRow { id: OptionId::PlanDir, word: None, value: "DIRECTORY", env: Some(words::ENV_PLAN_DIR), key: None,
        help: "look for plan files here first; without it in .hotswap/plans of the working directory and those above" },
    OptionRow { id: OptionId::PlanFile, word: Some(words::PLAN_FILE), value: "FILE", env: Some(words::ENV_PLAN_FILE), key: None,
        help: "use the plan in this file, and look for none elsewhere; with a hash on the command line the file must have it" },
    OptionRow { id: OptionId::Toolchain, word: Some(words::TOOLCHAIN), value: "HASH", env: None, key: None,
        help: "the toolchain's identity (--hotswap-identity) when the build was configured; build systems write this word, so that another compiler has other keys in compiler caches" },
    OptionRow { id: OptionId::Hermetic, word: None, value: "0|1", env: Some(ENV_HERMETIC), key: None,
        help: "1: nothing that the command does not declare is used: no configuration file, no search for a plan or a compiler, and variables that would change the output are errors" },
    OptionRow { id: OptionId::Clang, word: None, value: "FILE", env: Some(ENV_CLANG), key: Some("clang"),
        help: "the real clang or clang++, a path or a name on PATH; the other one is taken from the same directory" },
    OptionRow { id: OptionId::LlvmBin, word: None, value: "DIRECTORY", env: Some(words::ENV_LLVM_BIN), key: Some("llvm-bin"),
        help: "directory of the real lld, clang-offload-bundler and clang-linker-wrapper; without it the real clang's" },
    OptionRow { id: OptionId::Config, word: None, value: "FILE", env: Some(ENV_CONFIG), key: None,
        help: "the user's configuration file; empty for none; without it $XDG_CONFIG_HOME/hotswap/config.toml" },
    OptionRow { id: OptionId::Disable, word: None, value: "0|1", env: Some(ENV_DISABLE), key: None,
        help: "1: run the real clang with HotSwap's words removed, and nothing else" },
    OptionRow { id: OptionId::Verbose, word: None, value: "0|1", env: Some(words::ENV_VERBOSE), key: None,
        help: "1: print each command that HotSwap runs on standard error" },
    OptionRow { id: OptionId::Trace, word: None, value: "FILE", env: Some(words::ENV_TRACE), key: None,
        help: "append one JSON line for each device link and each bundle step to this file" },
    OptionRow { id: OptionId::Explain, word: Some(EXPLAIN), value: "", env: None, key: None,
        help: "print what would be done with this command and which setting came from where; =json for a machine" },
    OptionRow { id: OptionId::Identity, word: Some(IDENTITY), value: "", env: None, key: None,
        help: "print a hash of HotSwap, the real clang, its tools and the device libraries, for the key of a compiler cache; =files prints, below it, the paths of clang and its tools, one a line, after whose change a build system asks again" },
    OptionRow { id: OptionId::Version, word: Some(VERSION), value: "", env: None, key: None,
        help: "print the version of HotSwap (--version is clang's)" },
    OptionRow { id: OptionId::Help, word: Some(HELP), value: "", env: None, key: None,
        help: "print this list; =markdown prints it as a table, =man as a man page, =host-options the options that are for the host's code alone (--help is clang's)" },
];

/// The row of an option.
pub fn row(id: OptionId) -> &'static OptionRow {
    OPTIONS.iter().find(|opt| opt.id == id).expect("every option has a row")
}

/// The origin of a value, strongest first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An argument of the command line.
    Word,
    Env(&'static str),
    File(PathBuf),
}

/// The origin of the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanSource {
    /// The hash written by the build system.
    Token,
    /// Arguments on the command line.
    Words,
    /// The environment or a configuration file: for every HIP command.
    Ambient,
    /// The objects of a link: their compilation's plan.
    Objects,
}

/// The value of one option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionValue {
    pub id: OptionId,
    /// Its value; never empty.
    pub value: OsString,
    pub origin: Origin,
}

/// Values from one configuration file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigFile {
    pub path: PathBuf,
    /// Its keys and values.
    pub values: Vec<(&'static OptionRow, OsString)>,
}

impl OptionRow {
    /// The row of an option of a plan.
    const fn of_plan(option: &'static PlanOption) -> Self {
        Self {
            id: OptionId::OfPlan(option.key),
            word: Some(option.argument),
            value: option.value,
            env: Some(option.env),
            key: Some(option.key),
            help: option.help,
        }
    }
}

impl OptionId {
    /// The option of the plan that it identifies.
    pub fn plan_option(self) -> Option<&'static PlanOption> {
        if let Self::OfPlan(key) = self { PlanOption::find(key) } else { None }
    }

    /// Whether it requests something by itself, so that a command with it has a plan.
    pub fn is_request(self) -> bool {
        matches!(self, Self::Coalesce | Self::PlanFile) || self.plan_option().is_some_and(|option| option.is_request)
    }
}

impl PartialEq for OptionRow {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}
impl Eq for OptionRow {}

/// An argument of HotSwap: an option with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnOption {
    pub id: OptionId,
    pub value: String,
}

/// The winning value of each option that has one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OptionValues(Vec<OptionValue>);

impl OptionValues {
    /// Arguments take precedence over the environment, and that over the files in their order. An empty variable counts
    /// as the value "none", so that it can switch off a file's value.
    pub fn gather(own: &[OwnOption], env: &dyn Fn(&str) -> Option<OsString>, files: &[ConfigFile]) -> Self {
        Self(
            OPTIONS
                .iter()
                .filter_map(|one| gather_option_value(one, own, env, files))
                .filter(|setting| !setting.value.is_empty())
                .collect(),
        )
    }

    /// The setting of an option.
    pub fn get(&self, id: OptionId) -> Option<&OptionValue> {
        self.0.iter().find(|setting| setting.id == id)
    }

    /// All settings, in the order of the table.
    pub fn iter(&self) -> impl Iterator<Item = &OptionValue> {
        self.0.iter()
    }

    /// A value that must be text.
    ///
    /// # Errors
    /// [`codes::BAD_CONFIG`] naming the variable or file.
    pub fn text(&self, id: OptionId) -> Result<Option<&str>, Diagnostic> {
        let Some(setting) = self.get(id) else { return Ok(None) };
        setting.value.to_str().map(Some).ok_or_else(|| setting.reject("it is not UTF-8"))
    }

    /// A switch: `1` or `0`.
    ///
    /// # Errors
    /// [`codes::BAD_CONFIG`] for anything else.
    pub fn switch(&self, id: OptionId) -> Result<bool, Diagnostic> {
        let Some(setting) = self.get(id) else { return Ok(false) };
        match setting.value.as_encoded_bytes() {
            b"1" => Ok(true),
            b"0" => Ok(false),
            _ => Err(setting.reject("it is neither 0 nor 1")),
        }
    }
}

fn gather_option_value(
    opt: &'static OptionRow,
    own: &[OwnOption],
    env: &dyn Fn(&str) -> Option<OsString>,
    files: &[ConfigFile],
) -> Option<OptionValue> {
    if let Some(value) = from_words(own, opt.id) {
        return Some(OptionValue { id: opt.id, value, origin: Origin::Word });
    }
    let variable = opt.env.and_then(|name| Some((name, from_environment(name, env)?)));
    match variable {
        Some((name, value)) => Some(OptionValue { id: opt.id, value, origin: Origin::Env(name) }),
        None => from_files(files, opt.id),
    }
}

impl OptionValue {
    /// The error for an invalid value, in the terms of its origin.
    pub fn reject(&self, why: &str) -> Diagnostic {
        let value = self.value.to_string_lossy();
        let named = match &self.origin {
            Origin::Word => return Diagnostic::error(codes::USAGE, format!("`{value}`: {why}")),
            Origin::Env(name) => name,
            Origin::File(_) => row(self.id).key.unwrap_or_default(),
        };
        let error = Diagnostic::error(codes::BAD_CONFIG, format!("{named} is `{value}`, {why}"));
        if let Origin::File(path) = &self.origin { error.in_file(path) } else { error }
    }

    /// The origin in the output of `explain`.
    pub fn origin_text(&self) -> String {
        match &self.origin {
            Origin::Word => "command line".to_owned(),
            Origin::Env(name) => format!("environment {name}"),
            Origin::File(path) => path.display().to_string(),
        }
    }
}

/// Repeated lists are combined; of other options the last argument wins, as with clang's own.
fn from_words(own: &[OwnOption], id: OptionId) -> Option<OsString> {
    let mut values = own.iter().filter(|own| own.id == id).map(|own| own.value.as_str());
    if id.plan_option().is_none_or(|option| !option.is_list) {
        return values.next_back().map(OsString::from);
    }
    let values: Vec<_> = values.collect();
    (!values.is_empty()).then(|| values.join(";").into())
}

/// Names of GPUs in `HOTSWAP_NAMES` (`gfx1031=gfx1030`) are for `libhotswap-names.so`, and no value of the option.
fn from_environment(name: &str, env: &dyn Fn(&str) -> Option<OsString>) -> Option<OsString> {
    env(name).filter(|value| !is_names_mapping(value, name))
}

fn is_names_mapping(value: &OsString, name: &str) -> bool {
    name == "HOTSWAP_NAMES" && value.as_encoded_bytes().contains(&b'=')
}

fn from_files(files: &[ConfigFile], id: OptionId) -> Option<OptionValue> {
    files.iter().find_map(|file| {
        let (_, value) = file.values.iter().find(|(opt, _)| opt.id == id)?;
        Some(OptionValue { id, value: value.clone(), origin: Origin::File(file.path.clone()) })
    })
}

/// Splits an argument of HotSwap into option and value.
///
/// # Errors
/// [`codes::USAGE`] for an argument that is not in the table: the interposer removes every argument that begins like
/// ours, so a misspelt one would vanish silently.
pub fn parse_word(word: &str, channel: bool) -> Result<OwnOption, Diagnostic> {
    if is_flag(word.as_ref()) {
        let on = FLAGS.iter().find(|flag| flag.word == word);
        return on
            .map(|flag| OwnOption { id: flag.id, value: flag.value.to_owned() })
            .ok_or_else(|| unknown_word_error(word));
    }
    let (name, value) = word.split_once('=').map_or((word, None), |(name, value)| (name, Some(value)));
    let opt = OPTIONS.iter().find(|opt| opt.word.is_some_and(|w| w.trim_end_matches('=') == name));
    let opt = opt.ok_or_else(|| unknown_option_error(word))?;
    if opt.value.is_empty() {
        return Ok(OwnOption { id: opt.id, value: value.unwrap_or_default().to_owned() });
    }
    if !channel {
        let advice = format!("write {} {word}, a form that clang, clangd and compiler caches accept", words::CHANNEL);
        return Err(Diagnostic::error(codes::USAGE, format!("`{word}` stands alone")).advise(advice));
    }
    let value = value.filter(|value| !value.is_empty());
    value.map(|value| OwnOption { id: opt.id, value: value.to_owned() }).ok_or_else(|| {
        Diagnostic::error(codes::USAGE, format!("`{word}` has no value")).advise(format!("write {name}={}", opt.value))
    })
}

fn unknown_word_error(word: &str) -> Diagnostic {
    Diagnostic::error(codes::USAGE, format!("`{word}` is not known")).advise("see --hotswap-help")
}

fn unknown_option_error(word: &str) -> Diagnostic {
    Diagnostic::error(codes::USAGE, format!("`{word}` is not known")).advise("see --hotswap-help")
}

/// Whether an argument is one of HotSwap's, of whatever kind.
pub fn is_own(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(words::PREFIX.as_bytes()) || is_flag(word)
}

/// Whether an argument is one of HotSwap's in the form of clang's own flags, which clang would not know.
pub fn is_flag(word: &OsStr) -> bool {
    word == words::NO_DRAIN_FLAG
        || ["-fhotswap-", "-fno-hotswap-"].iter().any(|prefix| word.as_encoded_bytes().starts_with(prefix.as_bytes()))
}

/// HotSwap's flags with their option and value.
const FLAGS: [OwnFlag; 9] = [
    OwnFlag { word: words::COALESCE_FLAG, id: OptionId::Coalesce, value: "1" },
    OwnFlag { word: words::NO_COALESCE_FLAG, id: OptionId::Coalesce, value: "0" },
    OwnFlag { word: words::WARM_HEADERS_FLAG, id: OptionId::WarmHeaders, value: "auto" },
    OwnFlag { word: "-fhotswap-warm-headers=auto", id: OptionId::WarmHeaders, value: "auto" },
    OwnFlag { word: "-fhotswap-warm-headers=implicit", id: OptionId::WarmHeaders, value: "implicit" },
    OwnFlag { word: words::NO_WARM_HEADERS_FLAG, id: OptionId::WarmHeaders, value: "off" },
    OwnFlag { word: words::NO_DRAIN_FLAG, id: OptionId::Drain, value: "0" },
    OwnFlag { word: words::DEVICE_SYMBOLS_FLAG, id: OptionId::OfPlan("device-symbols"), value: "table" },
    OwnFlag { word: words::NO_DEVICE_SYMBOLS_FLAG, id: OptionId::OfPlan("device-symbols"), value: "" },
];

/// A flag that stands for a value of an option.
struct OwnFlag {
    word: &'static str,
    id: OptionId,
    value: &'static str,
}

/// The documented form of an option's argument.
fn written(opt: &OptionRow) -> Option<String> {
    let word = opt.word?;
    Some(if opt.value.is_empty() { word.to_owned() } else { format!("{} {word}{}", words::CHANNEL, opt.value) })
}

/// The text of `--hotswap-help`.
pub fn help() -> String {
    let mut text = String::from(
        "hotswap-clang, hotswap-clang++: the real clang, with HotSwap in the device link where a plan asks for it.\n\
         All other words are clang's. Words win over the environment, that over the configuration files.\n",
    );
    for opt in OPTIONS {
        let names = [written(opt), opt.env.map(|name| format!("{name}={}", opt.value)), opt.key.map(file_form)];
        let names: Vec<_> = names.into_iter().flatten().collect();
        let _ = write!(text, "\n  {}\n      {}\n", names.join("\n  "), opt.help);
    }
    text
}

fn file_form(key: &str) -> String {
    format!("{key} = \"...\" in config.toml")
}

/// The man page of `hotswap-clang` and `hotswap-clang++`.
pub fn man() -> String {
    let mut text = format!(
        ".TH HOTSWAP\\-CLANG 1 \"\" \"hotswap {}\"\n.SH NAME\nhotswap\\-clang, hotswap\\-clang++ \\- clang, with code for further AMD \
         GPUs made in the device link\n.SH SYNOPSIS\n.B hotswap\\-clang++\n.RI [ ARGUMENTS\\ OF\\ CLANG ]\n.SH DESCRIPTION\n\
         Runs the real clang, with HotSwap in the device link where a plan requests it. All other arguments are clang\\(aqs. The \
         command line takes precedence over the environment, and that over the configuration files.\n.SH OPTIONS\n",
        hotswap_plan::VERSION
    );
    for opt in OPTIONS {
        let names = [written(opt), opt.env.map(|name| format!("{name}={}", opt.value)), opt.key.map(file_form)];
        let names: Vec<_> = names.into_iter().flatten().map(|name| roff(&name)).collect();
        let _ = writeln!(text, ".TP\n.B {}\n{}", names.join("\n.TQ\n.B "), roff(opt.help));
    }
    text.push_str(
        ".SH EXIT STATUS\nThat of clang; 2, 10 to 15 and 70 for errors of HotSwap, which begin with hotswap\\-clang: error:.\n\
         .SH SEE ALSO\n.BR hotswap (1),\n.BR clang (1)\n",
    );
    text
}

/// Text in which nothing is a request or an escape of roff.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-").replace('\'', "\\(aq").replace('`', "\\(ga");
    if escaped.starts_with('.') { format!("\\&{escaped}") } else { escaped }
}

/// The table of the documentation.
pub fn markdown() -> String {
    let mut text = String::from("| Word | Environment | Key in config.toml | Meaning |\n| --- | --- | --- | --- |\n");
    for opt in OPTIONS {
        let (word, env) = (markdown_code_span(written(opt)), markdown_code_span(opt.env.map(str::to_owned)));
        let _ =
            writeln!(text, "| {word} | {env} | {} | {} |", markdown_code_span(opt.key.map(str::to_owned)), opt.help);
    }
    text
}

fn markdown_code_span(name: Option<String>) -> String {
    name.map_or(String::new(), |name| format!("`{}`", name.replace('|', "\\|")))
}

/// The text of `--hotswap-version`.
pub fn version() -> String {
    format!("HotSwap {} (build {})\n", hotswap_plan::VERSION, hotswap_plan::IDENTITY)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_variable_is_in_the_table_of_variables() {
        let unknown: Vec<_> =
            OPTIONS.iter().filter_map(|opt| opt.env).filter(|name| !hotswap_plan::is_known_variable(name)).collect();
        assert_eq!(unknown, [""; 0]);
    }

    fn file(path: &str, key: &str, value: &str) -> ConfigFile {
        let opt = OPTIONS.iter().find(|opt| opt.key == Some(key)).unwrap();
        ConfigFile { path: path.into(), values: vec![(opt, value.into())] }
    }

    #[test]
    fn the_man_page_has_every_option_and_no_stray_request() {
        let page = man();
        for opt in OPTIONS {
            assert!(opt.env.is_none_or(|name| page.contains(name)) && page.contains(&roff(opt.help)), "{opt:?}");
        }
        let requests = [".TH ", ".SH ", ".B ", ".BR ", ".RI ", ".TP", ".TQ"];
        let lines = page.lines().filter(|line| line.starts_with(['.', '\'']));
        lines.for_each(|line| assert!(requests.iter().any(|request| line.starts_with(request)), "{line}"));
        assert_eq!(roff(".x-'`\\"), "\\&.x\\-\\(aq\\(ga\\e");
    }

    const POLICY: OptionId = OptionId::OfPlan("policy");
    const RETARGET: OptionId = OptionId::OfPlan("retarget");

    #[test]
    fn names_are_unique_and_every_option_can_be_set() {
        let names = |name: fn(&OptionRow) -> Option<&'static str>| OPTIONS.iter().filter_map(name).collect::<Vec<_>>();
        for mut list in [names(|o| o.word), names(|o| o.env), names(|o| o.key)] {
            let count = list.len();
            list.sort_unstable();
            list.dedup();
            assert_eq!(list.len(), count);
        }
        assert!(OPTIONS.iter().all(|opt| opt.word.is_some() || opt.env.is_some()));
    }

    #[test]
    fn words_win_over_the_environment_and_that_over_files_in_order() {
        let user = file("user.toml", "policy", "keep");
        let system = file("system.toml", "policy", "error");
        let env = |name: &str| (name == "HOTSWAP_POLICY").then(|| "warn".into());
        let none = |_: &str| None;
        let own = [OwnOption { id: POLICY, value: "error".to_owned() }];
        let files = [user, system];
        let origin = |settings: OptionValues| settings.get(POLICY).map(OptionValue::origin_text);
        assert_eq!(origin(OptionValues::gather(&own, &env, &files)).unwrap(), "command line");
        assert_eq!(origin(OptionValues::gather(&[], &env, &files)).unwrap(), "environment HOTSWAP_POLICY");
        assert_eq!(origin(OptionValues::gather(&[], &none, &files)).unwrap(), "user.toml");
        assert_eq!(origin(OptionValues::gather(&[], &none, &files[1..])).unwrap(), "system.toml");
        assert_eq!(origin(OptionValues::gather(&[], &|_| Some("".into()), &files)), None);
    }

    #[test]
    fn names_of_gpus_are_no_value_of_the_option() {
        let of = |value: &'static str| {
            let settings = OptionValues::gather(&[], &|name| (name == "HOTSWAP_NAMES").then(|| value.into()), &[]);
            settings.get(OptionId::OfPlan("names")).map(|setting| setting.value.clone())
        };
        assert_eq!(
            (of("derive"), of("gfx1031=gfx1030"), of("nonsense")),
            (Some("derive".into()), None, Some("nonsense".into()))
        );
    }

    #[test]
    fn repeated_lists_add_up_and_the_last_of_others_wins() {
        let own = [(RETARGET, "a=>b"), (POLICY, "warn"), (RETARGET, "c=>d"), (POLICY, "keep")];
        let own: Vec<_> = own.into_iter().map(|(id, value)| OwnOption { id, value: value.to_owned() }).collect();
        let settings = OptionValues::gather(&own, &|_| None, &[]);
        assert_eq!(settings.text(RETARGET).unwrap(), Some("a=>b;c=>d"));
        assert_eq!(settings.text(POLICY).unwrap(), Some("keep"));
    }

    #[test]
    fn words_that_are_misspelt_incomplete_or_alone_are_told() {
        for (word, channel, part) in [
            ("--hotswap-retraget=a", true, "is not known"),
            ("--hotswap-", true, "is not known"),
            ("--hotswap-plan", true, "has no value"),
            ("--hotswap-plan=", true, "has no value"),
            ("--hotswap-retarget=gfx1030=>gfx1031", false, "stands alone"),
        ] {
            let error = parse_word(word, channel).unwrap_err();
            assert_eq!(error.code, codes::USAGE);
            assert!(error.what.contains(part), "{word}: {}", error.what);
        }
        let pairs = "--hotswap-retarget=gfx1030=>gfx1031";
        assert_eq!(parse_word(pairs, true).unwrap(), OwnOption { id: RETARGET, value: "gfx1030=>gfx1031".into() });
        assert_eq!(
            parse_word("--hotswap-explain=json", false).unwrap(),
            OwnOption { id: OptionId::Explain, value: "json".into() }
        );
        assert_eq!(
            parse_word("--hotswap-explain", true).unwrap(),
            OwnOption { id: OptionId::Explain, value: String::new() }
        );
    }

    #[test]
    fn switches_are_0_or_1() {
        let with = |value: &'static str| OptionValues::gather(&[], &|n| (n == ENV_DISABLE).then(|| value.into()), &[]);
        assert!(with("1").switch(OptionId::Disable).unwrap());
        assert!(!with("0").switch(OptionId::Disable).unwrap());
        assert!(!with("").switch(OptionId::Disable).unwrap());
        let error = with("yes").switch(OptionId::Disable).unwrap_err();
        assert_eq!(error.code, codes::BAD_CONFIG);
        assert!(error.what.contains("HOTSWAP_DISABLE"));
    }

    #[test]
    fn help_and_documentation_name_everything() {
        for text in [help(), markdown()] {
            for name in OPTIONS.iter().flat_map(|opt| [opt.word, opt.env, opt.key]).flatten() {
                assert!(text.contains(name), "{name} is missing");
            }
        }
        assert_eq!(markdown().lines().count(), OPTIONS.len() + 2);
        let page = include_str!("../OPTIONS.md");
        let head = page.split_inclusive('\n').take_while(|line| !line.starts_with('|')).collect::<String>();
        if std::env::var("HOTSWAP_BLESS").is_ok_and(|bless| bless == "1") {
            std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/OPTIONS.md"), head + &markdown()).unwrap();
            return;
        }
        assert!(page.ends_with(&markdown()), "OPTIONS.md is not what --hotswap-help=markdown prints");
    }
}
