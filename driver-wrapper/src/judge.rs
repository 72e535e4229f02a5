//! The decision about a command, made from nothing but the arguments and the settings.
//!
//! Invariant: a pure function. Files are not read here, except through the plan look-up that is
//! passed in, so the whole behaviour is tested by a table without a compiler.
//!
//! In case of doubt the command is passed through unchanged.

use crate::coalesce::Coalescing;
use crate::command::{ClangCommand, InputKind, scan};
use crate::flags::{OffloadSide, Phase};
use crate::openmp;
use crate::options::{OptionId, OptionValues, OwnOption, PlanSource, is_own, parse_word};
use crate::profile::ProfileSettings;
use crate::question::{DerivationQuery, Sourceless, questions, sourceless};
use crate::request::CommandRequest;
pub use crate::request::{FindPlan, PlanReference};
use hotswap_families::manifest::ManifestFormat;
use hotswap_plan::{Plan, Policy, RetargetPair, add_unit_targets};
use hotswap_report::{Diagnostic, Severity, codes};
use std::env::consts;
use std::ffi::OsString;

/// The reason why a command passes through whose GPUs are not a source of the environment's plan.
pub const UNCONCERNED: &str = "the plan of the environment is for other GPUs";

/// The reason why a command that compiles CUDA passes through.
pub const CUDA: &str = "CUDA is compiled: no plan concerns it";

/// A query to HotSwap itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Query {
    Identity,
    /// The identity, then the programs in it.
    IdentityFiles,
    Version,
    Help(HelpFormat),
}

/// The forms of the list of options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpFormat {
    /// Text for a terminal.
    Text,
    /// The table of the documentation.
    Markdown,
    Man,
    /// The options of clang that are for the host's code alone.
    HostOptions,
}

/// A command in which HotSwap takes part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WithPlan {
    pub plan: Plan,
    pub hash: String,
    pub source: PlanSource,
    /// A device link happens below this command.
    pub device_link: bool,
    /// The host linker runs.
    pub host_link: bool,
    /// The format of the manifest that the host link gets, if it gets one from the wrapper.
    pub manifest: Option<ManifestFormat>,
    /// The user requested a bare code object instead of a bundle.
    pub bare_output: bool,
    /// The GPUs that one compilation may serve, where that was requested.
    pub coalescing: Option<Coalescing>,
    /// Questions about the sources that must be answered before code is derived from their code objects.
    pub questions: Vec<DerivationQuery>,
    /// Targets that are compiled, because nothing can be their source.
    pub sourceless: Vec<Sourceless>,
}

/// The decision about a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CommandDecision {
    /// The real clang gets the arguments unchanged, for this reason.
    PassThrough(&'static str),
    /// The real clang gets the arguments without HotSwap's: HotSwap is switched off.
    Disabled,
    /// HotSwap takes part by this plan.
    WithPlan(Box<WithPlan>),
    /// Clang preprocesses sources that this plan's compilation would read; the texts of its GPUs are added.
    Preprocess(Box<WithPlan>),
    /// HotSwap answers a query.
    Query(Query),
    /// Nothing is run; the command fails.
    Error(Diagnostic),
}

/// The decision and related data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandJudgement {
    pub decision: CommandDecision,
    pub command: ClangCommand,
    /// `--driver-mode=g++` is added: the C driver would not link the C++ runtime of HIP code.
    pub cxx_mode: bool,
    /// Print instead of run; as JSON or as text.
    pub explain: Option<Explain>,
    /// The requirements of counters in device code, with and without a plan.
    pub profile: Option<ProfileSettings>,
    /// Warnings for the user; the command runs nevertheless.
    pub warnings: Vec<Diagnostic>,
    /// Notes for the user.
    pub notes: Vec<String>,
}

/// The form of what `--hotswap-explain` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Explain {
    /// Sentences for people to read.
    Text,
    /// JSON, for programs to read.
    Json,
}

/// HotSwap's arguments with their options.
///
/// # Errors
/// [`codes::USAGE`] for an argument that is not in the table.
pub fn own_words(command: &ClangCommand) -> Result<Vec<OwnOption>, Diagnostic> {
    command.own.iter().map(parse_own_word).collect()
}

fn parse_own_word(own: &crate::command::OwnArgument) -> Result<OwnOption, Diagnostic> {
    let text = own
        .text
        .to_str()
        .ok_or_else(|| Diagnostic::error(codes::USAGE, format!("`{}` is not UTF-8", own.text.to_string_lossy())))?;
    parse_word(text, own.channel)
}

/// Judges a command: `cxx` is whether the C++ driver was called, `words` are the arguments of the command line after
/// the program's name, with response files expanded.
pub fn judge(cxx: bool, words: &[OsString], settings_of: SettingsOf<'_>, find_plan: FindPlan<'_>) -> CommandJudgement {
    let command = scan(words);
    let cxx_mode = !cxx && needs_cxx_mode(&command);
    let decision = CommandDecision::PassThrough("");
    let mut judgement = CommandJudgement {
        decision,
        command,
        cxx_mode,
        explain: None,
        profile: None,
        warnings: Vec::new(),
        notes: Vec::new(),
    };
    let decided = decide(&mut judgement, words, settings_of, find_plan).and_then(|decision| {
        judgement.profile = profile(&judgement.command, &decision, words, settings_of)?;
        Ok(decision)
    });
    judgement.decision = decided.unwrap_or_else(CommandDecision::Error);
    if judgement.decision == CommandDecision::Disabled {
        judgement.cxx_mode = false;
    }
    judgement
}

fn profile(
    command: &ClangCommand,
    decision: &CommandDecision,
    words: &[OsString],
    settings_of: SettingsOf<'_>,
) -> Result<Option<ProfileSettings>, Diagnostic> {
    match decision {
        CommandDecision::PassThrough(_) | CommandDecision::WithPlan(_) => {
            ProfileSettings::profile_of_command(command, words, &settings_of(&own_words(command)?))
        }
        _ => Ok(None),
    }
}

/// Gathers the settings for HotSwap's arguments; reads the environment and the configuration files.
pub type SettingsOf<'a> = &'a dyn Fn(&[OwnOption]) -> OptionValues;

fn decide(
    judgement: &mut CommandJudgement,
    words: &[OsString],
    settings_of: SettingsOf<'_>,
    find_plan: FindPlan<'_>,
) -> Result<CommandDecision, Diagnostic> {
    if settings_of(&[]).switch(OptionId::Disable)? {
        return Ok(CommandDecision::Disabled);
    }
    let own = own_words(&judgement.command)?;
    if let Some(query) = query(&own)? {
        return Ok(CommandDecision::Query(query));
    }
    judgement.explain = explain(&own)?;
    let settings = settings_of(&own);
    let request = CommandRequest::new(&own, &settings);
    if !request.any() {
        return by_objects(judgement, words, find_plan);
    }
    if judgement.command.phase == Phase::Preprocess {
        return preprocess(judgement, words, &request, find_plan);
    }
    take_part(judgement, words, &request, find_plan)
}

/// A run of the preprocessor has a part if the compilation of its sources has one: compiler caches ask
/// it what the compilation reads.
fn preprocess(
    judgement: &CommandJudgement,
    words: &[OsString],
    request: &CommandRequest<'_>,
    find_plan: FindPlan<'_>,
) -> Result<CommandDecision, Diagnostic> {
    let command = &judgement.command;
    let prints_macros = words.iter().any(|word| word == "-dM");
    if prints_macros || !command.has_hip_source() || command.hip_sources().any(|input| input.path == "-") {
        return Ok(CommandDecision::PassThrough("the preprocessor's output is only clang's"));
    }
    let mut compilation = judgement.clone();
    compilation.command.phase = Phase::Compile;
    Ok(match take_part(&mut compilation, words, request, find_plan)? {
        CommandDecision::WithPlan(plan) => CommandDecision::Preprocess(plan),
        other => other,
    })
}

fn take_part(
    judgement: &mut CommandJudgement,
    words: &[OsString],
    request: &CommandRequest<'_>,
    find_plan: FindPlan<'_>,
) -> Result<CommandDecision, Diagnostic> {
    if openmp::offloads(&judgement.command) {
        let plan = request.plan(find_plan)?;
        if request.source() == PlanSource::Ambient && openmp::is_unconcerned(&judgement.command, &plan) {
            return Ok(CommandDecision::PassThrough(UNCONCERNED));
        }
        if openmp::lacks_target(&judgement.command, &plan) {
            judgement.warnings.extend(openmp::refuse(&judgement.command, &plan, request.source())?);
            return Ok(CommandDecision::PassThrough(openmp::REASON));
        }
    }
    if judgement.command.compiles_cuda() {
        return Ok(CommandDecision::PassThrough(CUDA));
    }
    if let Some(reason) = no_part(&judgement.command, request.source())? {
        return Ok(CommandDecision::PassThrough(reason));
    }
    let mut plan = request.plan(find_plan)?;
    if request.source() == PlanSource::Ambient {
        judgement.notes.extend(leave_out_unconcerned(&judgement.command, &mut plan));
    }
    let coalescing = request.coalescing(&judgement.command, words, &mut plan)?;
    let needs_more = add_plan_of_objects(&judgement.command, &mut plan, find_plan)?;
    if plan.is_empty() {
        let is_unconcerned = !judgement.notes.is_empty();
        return Ok(CommandDecision::PassThrough(if is_unconcerned {
            UNCONCERNED
        } else {
            "the plan asks for nothing"
        }));
    }
    if judgement.command.targets_gpu() {
        judgement.warnings.extend(no_place(&plan)?);
        return Ok(CommandDecision::PassThrough("--target names a GPU: one bare code object"));
    }
    if request.source() == PlanSource::Ambient && without_arch(&judgement.command) {
        judgement.warnings.extend(not_applied(&plan));
        return Ok(CommandDecision::PassThrough("the command names no --offload-arch"));
    }
    let is_joined = needs_more || request.tokens.len() > 1;
    let source = if is_joined { PlanSource::Objects } else { request.source() };
    let plan = with_plan_and_manifest(judgement, plan, source, words)?;
    let questions = questions(&judgement.command, words, &plan.plan, coalescing.as_ref());
    let sourceless = sourceless(&judgement.command, &plan.plan);
    judgement.notes.extend(sourceless.iter().map(Sourceless::note));
    Ok(CommandDecision::WithPlan(Box::new(WithPlan { coalescing, questions, sourceless, ..plan })))
}

/// A link of units that were compiled under a plan carries it out without a request of its own.
fn by_objects(
    judgement: &mut CommandJudgement,
    words: &[OsString],
    find_plan: FindPlan<'_>,
) -> Result<CommandDecision, Diagnostic> {
    let mut plan = Plan::default();
    if !add_plan_of_objects(&judgement.command, &mut plan, find_plan)? {
        return Ok(CommandDecision::PassThrough("no plan is asked for"));
    }
    let plan = with_plan_and_manifest(judgement, plan, PlanSource::Objects, words)?;
    let questions = questions(&judgement.command, words, &plan.plan, None);
    Ok(CommandDecision::WithPlan(Box::new(WithPlan { questions, ..plan })))
}

/// Adds what the units of a link need beyond its plan; returns whether there is anything.
fn add_plan_of_objects(command: &ClangCommand, plan: &mut Plan, find_plan: FindPlan<'_>) -> Result<bool, Diagnostic> {
    if !command.links_relocatable() || command.query || command.targets_gpu() {
        return Ok(false);
    }
    let needed = find_plan(PlanReference::Objects(command))?;
    if plan.is_empty() && !needed.is_empty() {
        *plan = needed;
        return Ok(true);
    }
    Ok(add_unit_targets(plan, &needed))
}

fn query(own: &[OwnOption]) -> Result<Option<Query>, Diagnostic> {
    for OwnOption { id, value } in own {
        match (id, value.as_str()) {
            (OptionId::Identity, "") => return Ok(Some(Query::Identity)),
            (OptionId::Identity, "files") => return Ok(Some(Query::IdentityFiles)),
            (OptionId::Version, "") => return Ok(Some(Query::Version)),
            (OptionId::Help, "") => return Ok(Some(Query::Help(HelpFormat::Text))),
            (OptionId::Help, "markdown") => return Ok(Some(Query::Help(HelpFormat::Markdown))),
            (OptionId::Help, "host-options") => return Ok(Some(Query::Help(HelpFormat::HostOptions))),
            (OptionId::Help, "man") => return Ok(Some(Query::Help(HelpFormat::Man))),
            (OptionId::Version | OptionId::Help | OptionId::Identity, other) => {
                return Err(Diagnostic::error(codes::USAGE, format!("`={other}`")));
            }
            _ => {}
        }
    }
    Ok(None)
}

fn explain(own: &[OwnOption]) -> Result<Option<Explain>, Diagnostic> {
    let value = own.iter().rev().find(|one| one.id == OptionId::Explain).map(|one| one.value.as_str());
    match value {
        None => Ok(None),
        Some("") => Ok(Some(Explain::Text)),
        Some("json") => Ok(Some(Explain::Json)),
        Some(other) => Err(Diagnostic::error(codes::USAGE, format!("`--hotswap-explain={other}`"))),
    }
}

/// HIP code needs the C++ runtime. The mode would turn a C input into C++, so such a command is
/// treated as by plain clang.
fn needs_cxx_mode(command: &ClangCommand) -> bool {
    command.links_host_or_host_only()
        && command.is_hip()
        && command.driver_mode.is_none()
        && !command.query
        && command.inputs.iter().all(|input| input.kind != InputKind::C)
}

impl ClangCommand {
    fn links_host_or_host_only(&self) -> bool {
        self.phase == Phase::Link && self.scope != OffloadSide::Device && !self.static_library && self.has_inputs()
    }
}

/// Why HotSwap takes no part in a command although it has a plan.
///
/// # Errors
/// [`codes::USAGE`]: an explicit plan for a command that cannot have one.
fn no_part(command: &ClangCommand, source: PlanSource) -> Result<Option<&'static str>, Diagnostic> {
    let explicit = source != PlanSource::Ambient;
    if command.query || !command.has_inputs() {
        return Ok(Some("clang is only asked something"));
    }
    if command.driver_mode.as_deref() == Some("cl") && explicit {
        return Err(Diagnostic::error(codes::USAGE, "--driver-mode=cl with a plan").advise("use the g++ driver mode"));
    }
    // Relocatable code is derived in a later link, which must know the text of its source.
    let links = command.links_device_code() || command.links_host_code() || command.links_relocatable();
    if !links && !command.compiles_relocatable() {
        // Additions of clang's configuration files and CCC_OVERRIDE_OPTIONS are not visible here. Arguments are
        // replaced by a token, so if clang links device code after all, HotSwap is there. (A token of the build system
        // stays in any case, and the real linker would fail on it.)
        let unseen = source == PlanSource::Words && command.phase > Phase::Front && !command.targets_gpu();
        return Ok((!unseen).then_some("no device link and no host link happens"));
    }
    // With these arguments clang links the device code of objects without a flag for HIP.
    let objects = command.offload_link || command.new_driver == Some(true);
    let hip = command.is_hip() || (objects && command.links_host_code());
    Ok((!explicit && !hip).then_some("the command is no HIP compile or link"))
}

/// With a GPU as the main target clang writes one bare code object; the policy decides how severe that is.
///
/// # Errors
/// [`codes::NO_PLACE`] under the policy `error`.
fn no_place(plan: &Plan) -> Result<Option<Diagnostic>, Diagnostic> {
    let what = "--target names a GPU, so the output is one bare code object";
    let refusal = Diagnostic::error(codes::NO_PLACE, what).advise("drop the plan for this command");
    match plan.policy {
        Policy::Error | Policy::Compile => Err(refusal),
        Policy::Warn => Ok(Some(Diagnostic { severity: Severity::Warning, ..refusal })),
        Policy::Keep => Ok(None),
    }
}

fn without_arch(command: &ClangCommand) -> bool {
    command.archs.is_empty() && command.links_device_code()
}

/// CMake and others compile small probes for the default processor; a plan of the environment must not break
/// them, nor be ignored silently.
fn not_applied(plan: &Plan) -> Option<Diagnostic> {
    let what = "the plan of the environment is not applied to a command without --offload-arch";
    (plan.policy != Policy::Keep).then(|| Diagnostic::warning(codes::NO_ROUTE, what).advise("name the processors"))
}

/// A plan of the environment is for every command of a build; its pairs concern those that compile for their source.
/// Returns the note about pairs that are left out.
fn leave_out_unconcerned(command: &ClangCommand, plan: &mut Plan) -> Option<String> {
    let makes_code = command.links_device_code()
        || command.compiles_relocatable()
        || command.links_relocatable()
        || command.links_host_code();
    if !makes_code || command.archs.is_empty() {
        return None;
    }
    let processors: Vec<&str> = command.archs.iter().filter_map(|arch| arch.split(':').next()).collect();
    // Names such as `native` are known to clang alone. Code in SPIR-V is for no GPU.
    if processors.iter().any(|name| hotswap_targets::find_processor(name).is_none() && *name != "amdgcnspirv") {
        return None;
    }
    let left_out: Vec<String> =
        plan.pairs.iter().filter(|pair| !is_concerned_pair(pair, &processors)).map(RetargetPair::to_string).collect();
    plan.pairs.retain(|one| is_concerned_pair(one, &processors));
    let archs = command.archs.join(",");
    (!left_out.is_empty()).then(|| unconcerned_pairs_note(&left_out.join(", "), &archs))
}

fn is_concerned_pair(pair: &RetargetPair, processors: &[&str]) -> bool {
    processors.contains(&pair.source.as_str())
}

fn unconcerned_pairs_note(pairs: &str, archs: &str) -> String {
    format!("note: {pairs} of the environment's plan is not for this command, which compiles for {archs}")
}

fn with_plan_and_manifest(
    judgement: &mut CommandJudgement,
    plan: Plan,
    source: PlanSource,
    words: &[OsString],
) -> Result<WithPlan, Diagnostic> {
    let mut plan = with_plan(&judgement.command, plan, source)?;
    if needs_manifest(&judgement.command, words, &plan.hash) {
        plan.manifest = format_of_manifest(judgement, source)?;
    }
    Ok(plan)
}

fn with_plan(command: &ClangCommand, plan: Plan, source: PlanSource) -> Result<WithPlan, Diagnostic> {
    // The device link would refuse it, too, but under the new driver only after two messages of clang's own.
    hotswap_pipeline::check_plan(&plan)?;
    let hash = plan.hash();
    let bare_output = command.scope == OffloadSide::Device && command.bundle == Some(false);
    Ok(WithPlan {
        hash,
        source,
        device_link: command.links_device_code()
            || (command.links_host_code() && (command.offload_link || (command.is_hip() && command.rdc))),
        host_link: command.links_host_code(),
        manifest: None,
        bare_output,
        coalescing: None,
        questions: Vec::new(),
        sourceless: Vec::new(),
        plan,
    })
}

/// A host link gets the manifest, unless the build system added it as an object of its own.
///
/// A partial link gets none: it leaves references open, so it could not tell that a registrar is
/// missing, and the final link, which can, would get the manifest twice. The final link must
/// therefore have the plan, too.
fn needs_manifest(command: &ClangCommand, words: &[OsString], hash: &str) -> bool {
    let name = manifest_name(hash);
    command.links_host_code() && !command.partial && !names_manifest_file(words, &name)
}

fn names_manifest_file(words: &[OsString], name: &str) -> bool {
    words.iter().any(|word| !is_own(word) && word.as_encoded_bytes().ends_with(name.as_bytes()))
}

/// File name of the manifest object of a plan, in the wrapper's store and in build trees.
pub fn manifest_name(hash: &str) -> String {
    format!("{hash}.manifest.o")
}

/// The format of the host link's manifest. A plan of the environment is for every command and stops none: without a
/// format the link lacks a manifest, which is a warning.
fn format_of_manifest(
    judgement: &mut CommandJudgement,
    source: PlanSource,
) -> Result<Option<ManifestFormat>, Diagnostic> {
    match manifest_format(&judgement.command) {
        Ok(format) => Ok(Some(format)),
        Err(error) if source == PlanSource::Ambient => {
            judgement.warnings.push(Diagnostic { severity: Severity::Warning, ..error });
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

pub(crate) fn manifest_format(command: &ClangCommand) -> Result<ManifestFormat, Diagnostic> {
    let named = command.target.clone().unwrap_or_else(|| format!("{}-unknown-linux-gnu", consts::ARCH));
    // Clang completes a lone architecture with its own host's system.
    let triple = if named.contains('-') { named } else { format!("{named}-unknown-linux-gnu") };
    ManifestFormat::for_triple(&triple).ok_or_else(|| {
        Diagnostic::error(codes::UNKNOWN_FORMAT, format!("no manifest can be made for a host link for {triple}"))
            .advise("drop the plan for this command")
    })
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
