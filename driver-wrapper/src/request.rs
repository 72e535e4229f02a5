//! The request for a plan and its origin: the build system's hashes, arguments, the environment, configuration files.
//!
//! Invariant: plans from several places are joined or refused; none of them is ignored.
//!
//! Absent on purpose: what the command does with its plan (`judge`).

use crate::coalesce::Coalescing;
use crate::command::ClangCommand;
use crate::options::{OptionId, OptionValues, OwnOption, PlanSource};
use hotswap_plan::{PLAN_OPTIONS, Plan, PlanOption, join_plans, words};
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;

/// Looks up plans by their hash.
pub type FindPlan<'a> = &'a dyn Fn(PlanReference<'_>) -> Result<Plan, Diagnostic>;

/// How a command names its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanReference<'a> {
    /// By its hash; its file is searched.
    Hash(&'a str),
    /// By its file, which must have the hash, if there is one.
    File(&'a str, Option<&'a str>),
    /// By the objects of a link, which were compiled under it; an empty plan where they were not.
    Objects(&'a ClangCommand),
}

/// The request and its origin.
pub(crate) struct CommandRequest<'a> {
    pub(crate) tokens: Vec<&'a str>,
    settings: &'a OptionValues,
    /// The command line has retarget, patches, policies or allowances.
    words: bool,
    /// The command line has pairs, patches or coalescing.
    asks: bool,
}

impl<'a> CommandRequest<'a> {
    pub(crate) fn new(own: &'a [OwnOption], settings: &'a OptionValues) -> Self {
        let mut tokens: Vec<_> =
            own.iter().filter(|one| one.id == OptionId::Plan).map(|one| one.value.as_str()).collect();
        tokens.sort_unstable();
        tokens.dedup();
        let words = own.iter().any(|one| one.id.plan_option().is_some());
        Self { tokens, settings, words, asks: own.iter().any(|one| one.id.is_request()) }
    }

    pub(crate) fn any(&self) -> bool {
        !self.tokens.is_empty() || self.settings.iter().any(|setting| setting.id.is_request())
    }

    /// The GPUs that one compilation may serve. Their pairs are added to the plan, unless that is the build system's.
    pub(crate) fn coalescing(
        &self,
        command: &ClangCommand,
        words: &[OsString],
        plan: &mut Plan,
    ) -> Result<Option<Coalescing>, Diagnostic> {
        if !self.settings.switch(OptionId::Coalesce)? {
            return Ok(None);
        }
        let mut coalescing = Coalescing::of(command, words);
        coalescing.keep_sources(plan);
        if self.tokens.is_empty() {
            plan.pairs.extend(coalescing.pairs());
        } else {
            coalescing.keep_planned(plan);
        }
        Ok(Some(coalescing))
    }

    pub(crate) fn source(&self) -> PlanSource {
        match (self.tokens.is_empty(), self.asks) {
            (false, _) => PlanSource::Token,
            (true, true) => PlanSource::Words,
            (true, false) => PlanSource::Ambient,
        }
    }

    /// The one plan of the command.
    pub(crate) fn plan(&self, find_plan: FindPlan<'_>) -> Result<Plan, Diagnostic> {
        if let [first, others @ ..] = &self.tokens[..]
            && !others.is_empty()
        {
            return self.joined_plan(first, others, find_plan);
        }
        let (reference, name) = match (self.settings.text(OptionId::PlanFile)?, self.tokens.first()) {
            (Some(file), hash) => (PlanReference::File(file, hash.copied()), file),
            (None, Some(hash)) => (PlanReference::Hash(hash), *hash),
            (None, None) => return self.by_settings(),
        };
        let plan = find_plan(reference)?;
        if self.words && self.by_words(&plan)? != plan {
            let what = format!("the plan {name} and words that say something else");
            return Err(Diagnostic::error(codes::PLAN_CONFLICT, what));
        }
        Ok(plan)
    }

    /// The plans of a library and of the program that links it.
    fn joined_plan(&self, first: &str, others: &[&str], find_plan: FindPlan<'_>) -> Result<Plan, Diagnostic> {
        if self.words || self.settings.text(OptionId::PlanFile)?.is_some() {
            let what =
                format!("{}{first}, {}{}, and words or a file that name one, too", words::PLAN, words::PLAN, others[0]);
            return Err(Diagnostic::error(codes::PLAN_CONFLICT, what));
        }
        let mut plan = find_plan(PlanReference::Hash(first))?;
        others.iter().try_for_each(|other| join_plans(&mut plan, &find_plan(PlanReference::Hash(other))?))?;
        Ok(plan)
    }

    fn by_settings(&self) -> Result<Plan, Diagnostic> {
        let mut plan = Plan::default();
        PLAN_OPTIONS.iter().try_for_each(|option| self.set(&mut plan, option))?;
        Ok(plan)
    }

    /// The token's plan, overridden by the arguments.
    fn by_words(&self, token: &Plan) -> Result<Plan, Diagnostic> {
        let mut plan = self.by_settings()?;
        let others = PLAN_OPTIONS.iter().filter(|option| !is_set_by_word(option, self.settings));
        others.for_each(|option| (option.copy)(&mut plan, token));
        Ok(plan)
    }

    /// Sets an option of the plan, if it has a value.
    fn set(&self, plan: &mut Plan, option: &PlanOption) -> Result<(), Diagnostic> {
        let id = OptionId::OfPlan(option.key);
        let Some(setting) = self.settings.get(id) else { return Ok(()) };
        let text = self.settings.text(id)?.unwrap_or_default();
        (option.set)(plan, text).map_err(|mut error| {
            error.what = format!("{}: {}", setting.origin_text(), error.what);
            error
        })
    }
}

fn is_set_by_word(option: &PlanOption, settings: &OptionValues) -> bool {
    let setting = settings.get(OptionId::OfPlan(option.key));
    setting.is_some_and(|setting| setting.origin == crate::options::Origin::Word)
}
