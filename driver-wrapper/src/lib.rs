//! The driver wrapper: the real clang, with HotSwap in the device link where a plan requests it.
//!
//! A command is handled once: its arguments are read ([`command`], [`flags`]) and judged together with the settings
//! ([`options`], [`config`], [`judge`]), the real clang is found ([`find`]), and this process is replaced by it
//! ([`exec`]). All changes to code are made below that clang, in the tools of the device link, which find the plan in
//! the arguments and in the environment.
//!
//! Invariants: a command without a plan and without counters in device code ([`profile`]) costs one exec and reaches
//! clang byte for byte. No process is started for a query, with three exceptions: once for each compiler where its
//! directory does not show the facts ([`toolchain`]) or its device profile runtime is built ([`device_runtime`]), and the
//! preprocessor where code is to be derived from a source's code object ([`source_text`]).
//!
//! Absent on purpose: any knowledge of device code (`linker-plugin`), and of clang's own configuration files. Their
//! arguments are not judged here, and HotSwap's are refused there ([`clang_config`]).
#![cfg_attr(not(test), deny(clippy::disallowed_methods))]

mod additions;
pub mod answers;
pub mod clang_config;
pub mod coalesce;
pub mod command;
pub mod command_parts;
pub mod compile_refused;
mod compiler_run;
pub mod config;
pub mod counters_lost;
pub mod dependencies;
pub mod device_runtime;
pub mod emission_witness;
pub mod exec;
pub mod explain;
pub mod find;
pub mod flags;
pub mod hermetic;
pub mod host_options;
pub mod identity;
mod interposer;
pub mod judge;
pub mod lost_kernels;
pub mod manifest;
pub mod objects;
pub mod openmp;
pub mod options;
pub mod preprocess;
pub mod profile;
pub mod profile_names;
pub mod profile_use;
pub mod question;
pub mod relocatable;
mod request;
pub mod source_text;
pub mod store;
pub mod tool_directories;
pub mod tool_links;
pub mod toolchain;
pub mod unit_plans;
pub mod units;
pub mod unseen;
pub mod warm_headers;
pub mod words;

use additions::Added;
use answers::Consequences;
use clang_config::ConfigFiles;
use command::ClangCommand;
use command_parts::CommandParts;
use compiler_run::{CompilerRun, complete_output, end};
use dependencies::DependencyOutput;
use emission_witness::EmissionWitness;
use exec::{LaunchCommand, become_clang};
use explain::CommandExplanation;
use find::{Clang, ToolSearch};
use flags::Phase;
use host_options::SeparatedWords;
use hotswap_plan::{NamesPolicy, TextFindings, unknown_variables, words as names};
use hotswap_report::Diagnostic;
use identity::ToolchainFiles;
use judge::{CommandDecision, CommandJudgement, Explain, HelpFormat, PlanReference, Query, WithPlan};
use options::{OptionId, OptionValues, OwnOption, PlanSource};
use question::DerivationQuery;
use source_text::{NameProof, Preprocessor, TextFingerprints};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process;
use toolchain::Toolchain;
use warm_headers::{WarmHeaders, WarmMode, WarmRequest, WarmUse};
use words::ClangArgument;

/// The remaining work where this process did not become clang.
#[derive(Debug)]
pub struct RemainingWork {
    /// The text for standard output.
    pub text: String,
}

/// Runs one command; returns only with an answer to a query or an error. `warn` gets the warnings
/// to show before clang runs.
///
/// # Errors
/// Every diagnostic of the wrapper; nothing was run then.
pub fn run(mut args: impl Iterator<Item = OsString>, warn: &dyn Fn(&str)) -> Result<RemainingWork, Diagnostic> {
    let name = args.next().unwrap_or_default();
    let words: Vec<OsString> = args.collect();
    if let Some(link) = tool_links::find(&name) {
        tool_links::become_tool(link, &words)?;
    }
    let mut call = DriverInvocation::new(&name, words)?;
    let is_hermetic = hermetic::check(env::vars_os())?;
    let files = match is_hermetic {
        true => config::load_defaults(call.prefix.as_deref())?,
        false => config::load(&environment_variable_value, call.prefix.as_deref())?,
    };
    if host_options::are_separated(&call.expanded, &|one| gather_own_settings(one, &files))? {
        call.separate_host_options();
    }
    let judgement = judge::judge(call.cxx, &call.expanded, &|one| gather_own_settings(one, &files), &|one| {
        find_referenced_plan(one, is_hermetic, warn)
    });
    match &judgement.decision {
        CommandDecision::Error(error) => return Err(error.clone()),
        CommandDecision::Query(query @ (Query::Identity | Query::IdentityFiles)) => {
            let settings = gather_own_settings(&judge::own_words(&judgement.command)?, &files);
            let toolchain = call.toolchain_files(&call.find_clang(&settings)?, &settings)?;
            let programs = if *query == Query::IdentityFiles { toolchain.program_lines() } else { String::new() };
            return Ok(RemainingWork { text: format!("{}\n{programs}", toolchain.identity()?) });
        }
        CommandDecision::Query(query) => return Ok(RemainingWork { text: answer(*query) }),
        _ => {}
    }
    let own = judge::own_words(&judgement.command).unwrap_or_default();
    call.finish(&judgement, &gather_own_settings(&own, &files), warn)
}

fn environment_variable_value(name: &str) -> Option<OsString> {
    env::var_os(name)
}

fn gather_own_settings(own: &[OwnOption], files: &[options::ConfigFile]) -> OptionValues {
    OptionValues::gather(own, &environment_variable_value, files)
}

fn find_referenced_plan(
    plan: PlanReference<'_>,
    is_hermetic: bool,
    warn: &dyn Fn(&str),
) -> Result<hotswap_plan::Plan, Diagnostic> {
    match plan {
        PlanReference::File(path, hash) => hotswap_plan::load_plan(Path::new(path), hash),
        PlanReference::Hash(hash) if is_hermetic => Err(hermetic::unnamed_plan(hash)),
        PlanReference::Hash(hash) => hotswap_plan::find_plan(hash, &mut |skipped| warn(&skipped.to_string())),
        PlanReference::Objects(command) => unit_plans::plan_of_inputs(command),
    }
}

fn answer(query: Query) -> String {
    match query {
        // Handled where the compiler is found.
        Query::Identity | Query::IdentityFiles => String::new(),
        Query::Version => options::version(),
        Query::Help(HelpFormat::Text) => options::help(),
        Query::Help(HelpFormat::Markdown) => options::markdown(),
        Query::Help(HelpFormat::Man) => options::man(),
        Query::Help(HelpFormat::HostOptions) => host_options::markdown(),
    }
}

/// Warnings, each shown once.
struct NewWarnings<'w> {
    warn: &'w dyn Fn(&str),
    shown: RefCell<BTreeSet<String>>,
}

impl NewWarnings<'_> {
    fn show(&self, text: &str) {
        if self.shown.borrow_mut().insert(text.to_owned()) {
            (self.warn)(text);
        }
    }
}

/// One invocation of this program.
struct DriverInvocation {
    cxx: bool,
    words: Vec<OsString>,
    expanded: Vec<OsString>,
    /// The note about options that are addressed to the host.
    host_options: Option<String>,
    ourselves: PathBuf,
    prefix: Option<PathBuf>,
}

impl DriverInvocation {
    fn new(name: &OsStr, words: Vec<OsString>) -> Result<Self, Diagnostic> {
        let ourselves = hotswap_files::own_program()?;
        let prefix = ourselves.parent().and_then(Path::parent).map(Path::to_owned);
        let expanded = hotswap_files::expand_response_files(&words)?.into_iter().map(|word| word.text).collect();
        let file = Path::new(name).file_name().unwrap_or_default();
        Ok(Self { cxx: file.to_string_lossy().contains("++"), words, expanded, host_options: None, ourselves, prefix })
    }

    /// Addresses options that clang refuses for a GPU to the host.
    fn separate_host_options(&mut self) {
        let separated = SeparatedWords::new(&self.expanded);
        self.host_options = separated.note();
        self.expanded = separated.words;
    }

    fn finish(
        &self,
        judgement: &CommandJudgement,
        settings: &OptionValues,
        warn: &dyn Fn(&str),
    ) -> Result<RemainingWork, Diagnostic> {
        let clang = self.find_clang(settings)?;
        self.refuse_hidden_plan(judgement, &clang)?;
        let warnings = NewWarnings { warn, shown: RefCell::default() };
        // Attempts under the policy `compile`, and links of units, ask again by themselves.
        let asks_again = compile_refused::concerns(judgement) || judgement.command.links_relocatable();
        let proof = if asks_again { NameProof::Modules } else { NameProof::Values };
        self.finish_with_proof(judgement, settings, &clang, proof, &|text| warnings.show(text))
    }

    fn finish_with_proof(
        &self,
        judgement: &CommandJudgement,
        settings: &OptionValues,
        clang: &Clang,
        proof: NameProof,
        warn: &dyn Fn(&str),
    ) -> Result<RemainingWork, Diagnostic> {
        let dry = judgement.explain.is_some() || judgement.command.dry_run;
        let asked = self.ask(judgement, clang, proof, &TextFindings::default())?;
        let witness = match asked.witness.as_ref().filter(|_| !dry).map(EmissionWitness::open) {
            Some(None) => return self.finish_with_proof(judgement, settings, clang, NameProof::Modules, warn),
            opened => opened.flatten(),
        };
        let cold_parts = self.parts(judgement, clang, settings, dry, warn)?;
        let warm = self.warm_headers(judgement, settings, &cold_parts.launch(&asked), dry)?;
        let parts = cold_parts.with_front(warm.in_use().map(|used| &used.words[..]).unwrap_or_default());
        let launch = parts.launch(&asked);
        let explanation = CommandExplanation {
            judgement,
            settings,
            clang,
            launch: &launch,
            added: &parts.front,
            asked: &asked,
            back: &parts.back,
            warm: &warm,
        };
        warn_of_unknown_variables(judgement, warn);
        match judgement.explain {
            Some(Explain::Json) => return Ok(RemainingWork { text: explanation.json() }),
            Some(Explain::Text) => return Ok(RemainingWork { text: explanation.text() }),
            None => self.show_warnings(&explanation, parts.has_plan && !dry, warn),
        }
        if let CommandDecision::Preprocess(plan) = &judgement.decision
            && !dry
        {
            process::exit(self.preprocess(judgement, plan, clang, settings, &launch)?);
        }
        let dependencies =
            DependencyOutput::new(&judgement.command, &self.expanded).filter(|_| !dry && !asked.files.is_empty());
        let used = profile_use::ProfileUse::of(&judgement.command, &self.expanded);
        let files = asked.files.clone();
        let run = CompilerRun {
            judgement,
            asked: &asked,
            used: used.as_ref(),
            ask: &|refused| self.ask(judgement, clang, proof, refused),
            warn,
        };
        let is_completed = unit_plans::concerns(judgement)
            || lost_kernels::concerns(judgement)
            || warm.in_use().is_some()
            || witness.is_some();
        if !run.may_repeat(&parts) && dependencies.is_none() && !is_completed {
            return Err(become_clang(&parts.launch(&asked)));
        }
        let code = match warm.in_use() {
            Some(used) => self.run_warm(judgement, used, &launch, &|| run.run(&cold_parts))?,
            None => run.run(&parts)?,
        };
        let code = match run.deleted_file(&parts, code)? {
            Some(deleted) => {
                let deleted = deleted.display();
                warn(&format!("note: {deleted} was deleted while clang ran, whose link reads it; clang runs again"));
                run.run(&self.parts(judgement, clang, settings, dry, &|_| {})?)?
            }
            None => code,
        };
        if let Some(witness) = witness.filter(|witness| code == 0 && !witness.saw_no_function()) {
            witness.note_emission();
            drop(witness);
            return self.finish_with_proof(judgement, settings, clang, NameProof::Modules, warn);
        }
        complete_output(judgement, code)?;
        end(code, dependencies.as_ref(), &files)
    }

    /// Shows the warnings and notes that come before clang runs.
    fn show_warnings(&self, explanation: &CommandExplanation<'_>, uses_cache: bool, warn: &dyn Fn(&str)) {
        let judgement = explanation.judgement;
        if uses_cache || judgement.profile.is_some() {
            store::warn_of_refused_cache(warn);
        }
        if judgement.command.dry_run && !explanation.launch.env.is_empty() {
            // The warnings are in it.
            explanation.text().lines().for_each(warn);
        } else {
            let warnings = judgement.warnings.iter().chain(&explanation.asked.warnings);
            warnings.for_each(|warning| warn(&warning.to_string()));
        }
        // Compiler caches read what the preprocessor says.
        let host_options = self.host_options.iter().filter(|_| judgement.command.phase > Phase::Preprocess);
        judgement.notes.iter().chain(host_options).for_each(|note| warn(note));
    }

    /// The precompiled headers that clang's command may use.
    fn warm_headers(
        &self,
        judgement: &CommandJudgement,
        settings: &OptionValues,
        launch: &LaunchCommand,
        is_dry: bool,
    ) -> Result<WarmHeaders, Diagnostic> {
        let mode = match &judgement.decision {
            CommandDecision::PassThrough(_) | CommandDecision::WithPlan(_) => WarmMode::of_settings(settings)?,
            _ => WarmMode::Off,
        };
        let reason = match () {
            () if mode == WarmMode::Off => return Ok(WarmHeaders::Off),
            () if judgement.command.query => return Ok(WarmHeaders::Off),
            () if settings.switch(OptionId::Hermetic)? => "the command is hermetic",
            () if compile_refused::concerns(judgement) => "the policy `compile` may add GPUs to the command",
            () if profile_use::ProfileUse::of(&judgement.command, &self.expanded).is_some() => "a profile is used",
            () => {
                let command = &judgement.command;
                return Ok(WarmHeaders::prepare_headers(&WarmRequest { mode, command, launch, is_dry }));
            }
        };
        Ok(WarmHeaders::LeftAlone(reason.to_owned()))
    }

    /// Runs clang with warm headers, or without them where that run cannot decide; dependencies are those of the command without
    /// them. The exit code.
    fn run_warm(
        &self,
        judgement: &CommandJudgement,
        used: &WarmUse,
        launch: &LaunchCommand,
        run_cold: &dyn Fn() -> Result<i32, Diagnostic>,
    ) -> Result<i32, Diagnostic> {
        let Some(code) = used.run(launch)? else { return run_cold() };
        if let Some(output) = DependencyOutput::new(&judgement.command, &self.expanded) {
            used.complete_dependencies(&output)?;
        }
        Ok(code)
    }

    /// The toolchain behind this command.
    fn toolchain_files(&self, clang: &Clang, settings: &OptionValues) -> Result<ToolchainFiles, Diagnostic> {
        let named = settings.get(OptionId::LlvmBin).map(|setting| PathBuf::from(&setting.value));
        let tools = Toolchain::new(&clang.path, named).directory()?;
        let variables = ["ROCM_PATH", "HIP_DEVICE_LIB_PATH"].into_iter().filter_map(env::var_os);
        let roots: Vec<OsString> = self
            .expanded
            .iter()
            .filter_map(joined_path_option)
            .chain(variables)
            .filter(|root| !root.is_empty())
            .collect();
        ToolchainFiles::find(clang, &tools, &roots)
    }

    /// Runs the preprocessor for those who ask what a compilation with the plan reads.
    fn preprocess(
        &self,
        judgement: &CommandJudgement,
        plan: &WithPlan,
        clang: &Clang,
        settings: &OptionValues,
        launch: &LaunchCommand,
    ) -> Result<i32, Diagnostic> {
        let words = command::without_own(&self.expanded).kept;
        let configured = self.configured(judgement, clang).configured_words()?;
        let preprocessor = Preprocessor::new(&clang.path, mode(judgement, clang), &words, &configured);
        // The old offload driver prints the texts of all GPUs that it compiles for.
        let is_host_only = Toolchain::new(&clang.path, None).new_driver(judgement.command.new_driver)?;
        let unseen = if is_host_only { &judgement.command.archs[..] } else { &[] };
        let texts = TextFingerprints::gather(&preprocessor, &plan.questions, unseen)?;
        let toolchain = self.toolchain_files(clang, settings)?.identity()?;
        let words = &self.expanded;
        preprocess::PreprocessorRun { launch, judgement, words, plan, texts: &texts, toolchain: &toolchain }.run()
    }

    /// The parts of clang's command.
    fn parts(
        &self,
        judgement: &CommandJudgement,
        clang: &Clang,
        settings: &OptionValues,
        dry: bool,
        warn: &dyn Fn(&str),
    ) -> Result<CommandParts, Diagnostic> {
        let Added { mut front, env, cached_files, .. } = match &judgement.decision {
            CommandDecision::WithPlan(plan) => self.join(judgement, plan, clang, settings, dry, warn)?,
            _ => Added::default(),
        };
        front.splice(0..0, mode(judgement, clang).map(OsString::from));
        if settings.switch(OptionId::Coalesce)? && judgement.command.links_relocatable() {
            let units = units::of_inputs(&judgement.command)?;
            let nothing = hotswap_plan::Plan::default();
            let plan = if let CommandDecision::WithPlan(with) = &judgement.decision { &with.plan } else { &nothing };
            relocatable::refuse_unrequested(&judgement.command, &units, plan)?;
        }
        let added = self.profile(judgement, clang, settings, dry, warn)?;
        front.extend(added.front);
        let has_plan = !env.is_empty();
        Ok(CommandParts {
            program: clang.path.clone(),
            front,
            user: self.user_words(judgement)?,
            back: added.back,
            only_inputs_follow: judgement.command.only_inputs_follow,
            // With a plan they are already set.
            env: if has_plan { env } else { added.env },
            cached_files,
            has_plan,
            verbose: settings.switch(OptionId::Verbose)?,
        })
    }

    /// With a plan the interposer checks the arguments that only clang's configuration files have.
    fn refuse_hidden_plan(&self, judgement: &CommandJudgement, clang: &Clang) -> Result<(), Diagnostic> {
        let command = &judgement.command;
        if !matches!(judgement.decision, CommandDecision::PassThrough(_))
            || command.query
            || !may_link_device_code(command)
        {
            return Ok(());
        }
        self.configured(judgement, clang).refuse_plan()
    }

    /// Clang's own configuration files for the command.
    fn configured<'c>(&'c self, judgement: &'c CommandJudgement, clang: &'c Clang) -> ConfigFiles<'c> {
        ConfigFiles {
            words: &self.expanded,
            clang: &clang.path,
            cxx: self.cxx || judgement.cxx_mode,
            target: judgement.command.target.as_deref(),
            no_default: env::var_os("CLANG_NO_DEFAULT_CONFIG").is_some_and(|value| !value.is_empty()),
        }
    }

    fn find_clang(&self, settings: &OptionValues) -> Result<Clang, Diagnostic> {
        let named = find::NamedCompiler::from_settings(settings);
        if settings.switch(OptionId::Hermetic)? {
            match &named {
                None => return Err(hermetic::unnamed_clang()),
                Some(find::NamedCompiler { path, origin }) if path.components().count() == 1 && !path.is_absolute() => {
                    return Err(hermetic::searched_clang(&path.to_string_lossy(), origin));
                }
                Some(_) => {}
            }
        }
        let rocm_path = env::var_os("ROCM_PATH").filter(|path| !path.is_empty()).map(PathBuf::from);
        let path = env::var_os("PATH");
        find::find(&ToolSearch { cxx: self.cxx, named, rocm_path, path, ourselves: Some(&self.ourselves) })
    }

    /// Checks the sources for the targets that would be derived; those that were refused are compiled.
    fn ask(
        &self,
        judgement: &CommandJudgement,
        clang: &Clang,
        proof: NameProof,
        refused: &TextFindings,
    ) -> Result<Consequences, Diagnostic> {
        let mut found = Consequences::default();
        let CommandDecision::WithPlan(plan) = &judgement.decision else { return Ok(found) };
        let words = command::without_own(&self.expanded).kept;
        let configured = self.configured(judgement, clang).configured_words()?;
        let preprocessor = Preprocessor::new(&clang.path, mode(judgement, clang), &words, &configured);
        let header = unseen::implicit_header(&[&configured[..], &words].concat())?;
        let hidden = header.or_else(unseen::overridden_options);
        for question in &plan.questions {
            let doubt = question.doubt.clone().or_else(|| hidden.clone());
            let doubt = doubt.or_else(|| question.doubt_of_configured(&configured));
            let question = &DerivationQuery { doubt, ..question.clone() };
            if question.requested || plan.plan.names != NamesPolicy::Derive {
                let asked = source_text::answer(&preprocessor, question, proof, &mut found.files)?;
                found.add(question, &asked.answers, plan.plan.names)?;
                asked.witness.into_iter().for_each(|witness| found.add_witness(witness));
            }
            found.compile_refused(question, refused);
        }
        plan.sourceless.iter().for_each(|sourceless| found.compile_sourceless(sourceless));
        if !judgement.command.compiles_relocatable() {
            found.images.clear();
        }
        relocatable::decide(&judgement.command, plan, refused, &[&configured[..], &words].concat(), &mut found)?;
        Ok(found)
    }

    fn user_words(&self, judgement: &CommandJudgement) -> Result<Vec<ClangArgument>, Diagnostic> {
        let words = self.words_of_clang(judgement)?;
        if self.host_options.is_some() { host_options::separate(words) } else { Ok(words) }
    }

    fn words_of_clang(&self, judgement: &CommandJudgement) -> Result<Vec<ClangArgument>, Diagnostic> {
        if judgement.decision == CommandDecision::Disabled || must_strip(judgement) {
            return words::stripped(&self.words);
        }
        if judgement.explain.is_some() {
            return Ok(without_explain(&self.words));
        }
        Ok(self.words.iter().cloned().map(ClangArgument::Plain).collect())
    }
}

/// Once for each command that may link device code, not once more by a wrapper in between.
fn warn_of_unknown_variables(judgement: &CommandJudgement, warn: &dyn Fn(&str)) {
    let is_concerned = judgement.decision != CommandDecision::Disabled && may_link_device_code(&judgement.command);
    if exec::depth() == 0 && is_concerned {
        let unknown = unknown_variables(env::vars_os().map(|(name, _)| name));
        unknown.iter().for_each(|unknown| warn(&unknown.to_string()));
    }
}

fn joined_path_option(word: &OsString) -> Option<OsString> {
    let text = word.to_str()?;
    let flag = ["--rocm-path=", "--rocm-device-lib-path=", "--hip-device-lib-path=", "-resource-dir="];
    flag.iter().find_map(|flag| text.strip_prefix(flag)).map(OsString::from)
}

/// The driver mode that is added to clang's arguments.
fn mode(judgement: &CommandJudgement, clang: &Clang) -> Option<&'static str> {
    if judgement.cxx_mode { Some("--driver-mode=g++") } else { clang.mode }
}

/// Whether a device link can happen below the command, according to its own arguments.
fn may_link_device_code(command: &ClangCommand) -> bool {
    let named = !command.archs.is_empty() || command.openmp || command.offload_link;
    command.phase > Phase::Front && command.has_inputs() && (command.is_hip() || named)
}

/// Whether HotSwap's arguments must be removed before clang sees them.
///
/// The token replaces arguments that name a plan. Left in place, they would be unused in commands without a device
/// link: a warning, and with -Werror an error. A token that the build system wrote stays: it has its own bracket.
fn must_strip(judgement: &CommandJudgement) -> bool {
    let own = judge::own_words(&judgement.command).unwrap_or_default();
    let has_token = own.iter().any(|one| one.id == OptionId::Plan);
    let has_flag = judgement.command.own.iter().any(|own| options::is_flag(&own.text));
    // The linkers of OpenMP's and CUDA's device code would fail on a token.
    let left_out =
        [openmp::REASON, judge::CUDA].iter().any(|reason| judgement.decision == CommandDecision::PassThrough(reason));
    // The units need more than the plan of the build system.
    let is_other = matches!(&judgement.decision, CommandDecision::WithPlan(plan) if plan.source == PlanSource::Objects);
    has_flag || !(own.is_empty() || has_token) || left_out || (has_token && is_other)
}

/// The arguments without the query, which may follow a channel flag.
fn without_explain(words: &[OsString]) -> Vec<ClangArgument> {
    let mut kept: Vec<ClangArgument> = Vec::new();
    for word in words {
        if !is_explain_word(word) {
            kept.push(ClangArgument::Plain(word.clone()));
        } else if kept.last() == Some(&ClangArgument::Plain(names::CHANNEL.into())) {
            kept.pop();
        }
    }
    kept
}

fn is_explain_word(word: &OsStr) -> bool {
    word.as_encoded_bytes().starts_with(options::EXPLAIN.as_bytes())
}
