//! The additions of HotSwap to the command of clang: arguments before and after those of the user, variables of the tools of the
//! device link, files that the host linker reads.
//!
//! Absent on purpose: what the sources' text requires ([`crate::answers`]).

use crate::command::ClangCommand;
use crate::exec::Env;
use crate::find::Clang;
use crate::interposer::{interposed, shims};
use crate::judge::{CommandJudgement, WithPlan};
use crate::manifest::{LIBRARY_PATH, ManifestInputs, library_path};
use crate::options::{OptionId, OptionValues, PlanSource};
use crate::toolchain::Toolchain;
use crate::{
    DriverInvocation, counters_lost, manifest, must_strip, objects, profile_names, tool_directories, unit_plans, words,
};
use hotswap_plan::words as names;
use hotswap_report::{Diagnostic, Severity, codes};
use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Additions to the command of the user, none by default.
#[derive(Default)]
pub(crate) struct Added {
    /// Arguments before the user's.
    pub(crate) front: Vec<OsString>,
    /// Arguments behind the user's.
    pub(crate) back: Vec<OsString>,
    pub(crate) env: Env,
    /// Files of the cache directory that the host linker reads.
    pub(crate) cached_files: Vec<PathBuf>,
}

impl DriverInvocation {
    /// The additions that counters in device code require.
    pub(crate) fn profile(
        &self,
        judgement: &CommandJudgement,
        clang: &Clang,
        settings: &OptionValues,
        dry: bool,
        warn: &dyn Fn(&str),
    ) -> Result<Added, Diagnostic> {
        let names = profile_names::stable(&judgement.command, &self.expanded)?;
        let Some(profile) = &judgement.profile else {
            counters_lost::find_lost_counters(&judgement.command).iter().for_each(|lost| warn(&lost.to_string()));
            return Ok(Added { front: names, ..Added::default() });
        };
        let named = settings.get(OptionId::LlvmBin).map(|setting| PathBuf::from(&setting.value));
        let toolchain = Toolchain::new(&clang.path, named);
        let limit = profile.limit(&judgement.command, &self.expanded, &toolchain)?;
        limit.iter().for_each(|limit| warn(&limit.to_string()));
        let mut front = profile.front(&judgement.command, &self.expanded, &toolchain, dry)?;
        front.extend(match names.is_empty() && profile.device_code {
            true => profile_names::without_own_paths(&judgement.command, &self.expanded)?,
            false => names,
        });
        let mut added = Added { front, ..Added::default() };
        if profile.has_one_symbol(&judgement.command, &toolchain)? {
            let shims = shims(self.prefix.as_deref().unwrap_or(Path::new("/")))?;
            let precedence = tool_directories::precede(&self.expanded, &shims)?;
            added.front.extend(precedence.iter().map(|precedence| precedence.word.clone()));
            added.front.extend([names::CHANNEL.into(), names::COUNTER_NAMES.into()]);
            added.env = interposed(&shims, toolchain.directory()?, precedence);
        }
        let drain = profile.back(&judgement.command, self.prefix.as_deref().unwrap_or(Path::new("/")));
        added.front.extend(drain.early);
        added.back = drain.late;
        Ok(added)
    }

    /// The arguments and variables by which HotSwap takes part.
    pub(crate) fn join(
        &self,
        judgement: &CommandJudgement,
        plan: &WithPlan,
        clang: &Clang,
        settings: &OptionValues,
        dry: bool,
        warn: &dyn Fn(&str),
    ) -> Result<Added, Diagnostic> {
        let command = &judgement.command;
        let prefix = self.prefix.as_deref().unwrap_or(Path::new("/"));
        let shims = shims(prefix)?;
        let precedence = tool_directories::precede(&self.expanded, &shims)?;
        let named = settings.get(OptionId::LlvmBin).map(|setting| PathBuf::from(&setting.value));
        let toolchain = Toolchain::new(&clang.path, named);
        let tools = toolchain.directory()?;
        let mut has_device_code = true;
        if plan.host_link && !command.partial {
            let objects = objects::find_relocatable(command)?;
            objects::check(command, &objects, || toolchain.new_driver(command.new_driver))?;
            has_device_code = objects.may_have_device_code(command, &self.expanded);
        }
        let format = plan.manifest.filter(|_| has_device_code);
        let manifest: Option<ManifestInputs> = match format.map(|one| manifest::prepare(plan, one, prefix, dry)) {
            // A plan of the environment is for every command, also for those whose systems the installation lacks.
            Some(Err(error)) if plan.source == PlanSource::Ambient && error.code == codes::NO_INSTALL => {
                warn(&Diagnostic { severity: Severity::Warning, ..error }.to_string());
                None
            }
            prepared => prepared.transpose()?,
        };
        let bare = plan.bare_output && !bundled_after_all(&toolchain, command.new_driver)?;
        let mut front: Vec<OsString> = precedence.iter().map(|precedence| precedence.word.clone()).collect();
        let mut env = interposed(&shims, tools, precedence);
        env.extend([
            (names::ENV_PLAN, Some(plan.hash.clone().into())),
            (names::ENV_PLAN_TEXT, Some(plan.plan.canonical_text().into())),
            (names::ENV_BARE_OUTPUT, bare.then(|| "1".into())),
            (names::ENV_REQUEST, requested_targets(command).map(OsString::from)),
        ]);
        let units = unit_plans::definitions(command, &plan.plan, dry)?;
        if let Some(manifest) = manifest.as_ref().filter(|manifest| manifest.is_searched) {
            let files = words::searched_files(manifest, units.as_ref());
            let directories = library_path(files, env::var_os(LIBRARY_PATH));
            env.push((LIBRARY_PATH, Some(directories)));
        }
        let token = plan.source != PlanSource::Token || must_strip(judgement);
        front.extend(words::added(plan, manifest.as_ref(), units.as_ref(), token));
        let mut added = Added { front, env, ..Added::default() };
        if !dry {
            added.cached_files.extend(manifest.map(|manifest| manifest.object));
            added.cached_files.extend(units.map(|units| units.object));
        }
        Ok(added)
    }
}

/// The target IDs that every fat binary of the command must have. A link of relocatable code makes code for the GPUs that
/// its units have been compiled for.
fn requested_targets(command: &ClangCommand) -> Option<String> {
    let is_whole = command.links_device_code() && !command.rdc && !command.links_relocatable();
    (is_whole && !command.archs.is_empty()).then(|| command.archs.join(" "))
}

/// Clang 22 bundles a device-only output under the new driver in spite of the flag.
fn bundled_after_all(toolchain: &Toolchain<'_>, said: Option<bool>) -> Result<bool, Diagnostic> {
    Ok(toolchain.major()? <= 22 && toolchain.new_driver(said)?)
}
