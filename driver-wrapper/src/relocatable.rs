//! Links of relocatable device code: the units decide which targets are linked and which are derived.
//!
//! Invariant: a target whose text differs in one unit is linked as clang would link it, or the link is refused; it is
//! never derived.
//!
//! Absent on purpose: reading the units ([`crate::units`]), and supplying the bitcode of a unit whose text is the same
//! for two targets (the interposer).

use crate::answers::Consequences;
use crate::command::ClangCommand;
use crate::judge::WithPlan;
use crate::units::{self, DeviceUnit, Linked};
use crate::unseen;
use hotswap_compat::pair_verdict;
use hotswap_plan::{NamesPolicy, Plan, TextFinding, TextFindings, TextMark};
use hotswap_report::{Diagnostic, SourceText, codes};
use hotswap_targets::find_processor;
use std::collections::BTreeSet;
use std::ffi::OsString;

/// Adds the consequences of the command's objects to those of its own sources. A further input of the device link among the
/// arguments may ask for the GPU, so every target is linked then.
///
/// # Errors
/// [`codes::UNIT_LACKS_GPU`] where one unit has separate code for a target and another one has neither
/// that nor a replacement; [`refuse_unrequested`].
pub fn decide(
    command: &ClangCommand,
    plan: &WithPlan,
    refused: &TextFindings,
    args: &[OsString],
    found: &mut Consequences,
) -> Result<(), Diagnostic> {
    if !command.links_relocatable() || plan.plan.names == NamesPolicy::Derive {
        return Ok(());
    }
    let further = unseen::linked_input(args);
    let further = further.as_deref();
    let mut units = units::of_inputs(command)?;
    units.extend(own_sources(command, found));
    for SourceTargets { source, targets } in by_source(plan, &units) {
        for units::LinkedTarget { target, linked } in units::decide(&units, &source, &targets) {
            let link = Link { command, units: &units, source: &source, refused, further };
            let linked = match (linked, further) {
                (Linked::Derived(_), Some(further)) => Linked::Own(further.to_owned()),
                (linked, _) => linked,
            };
            link.apply(&target, &linked, found)?;
        }
    }
    link_sourceless(command, plan, &units, found);
    Ok(())
}

/// Targets that nothing in the link is the source of are linked where every unit has code for them: their units were
/// compiled under the policy `compile`.
fn link_sourceless(command: &ClangCommand, plan: &WithPlan, units: &[DeviceUnit], found: &mut Consequences) {
    let targets: Vec<&str> = plan.plan.targets().into_iter().collect();
    let left = targets.into_iter().filter(|name| {
        !has_decided_finding(name, &found.findings)
            && !is_requested_processor(name, command)
            && all_units_have_target(name, units)
    });
    for target in left.collect::<Vec<_>>() {
        found.words.push(format!("--offload-arch={target}").into());
        found.lines.push(format!("{target}: linked, every unit has code for it"));
        let evidence = units.first().map(|unit| file_name(&unit.name));
        let status = SourceText::Compiled;
        found.findings.set(TextFinding { target: target.to_owned(), status, source: None, evidence });
    }
}

fn has_decided_finding(name: &str, found_findings: &TextFindings) -> bool {
    found_findings.find(name).is_some()
}

fn is_requested_processor(name: &str, command: &ClangCommand) -> bool {
    command.archs.iter().any(|arch| processor(arch) == name)
}

fn all_units_have_target(name: &str, units: &[DeviceUnit]) -> bool {
    !units.is_empty() && units.iter().all(|unit| unit.targets.contains(name))
}

/// The sources that are compiled in the same command, as one unit: clang compiles all of them for the same targets.
fn own_sources(command: &ClangCommand, found: &Consequences) -> Option<DeviceUnit> {
    let source = command.hip_sources().next().filter(|_| command.rdc)?;
    let requested = command.archs.iter().map(|arch| processor(arch));
    let compiled = found.findings.iter().filter(|finding| finding.status.is_compiled());
    let mut targets: BTreeSet<String> =
        requested.chain(compiled.map(|finding| finding.target.as_str())).map(str::to_owned).collect();
    let mark = TextMark::of_findings(&found.findings);
    targets.retain(|target| mark.source_of(target).is_none());
    Some(DeviceUnit { name: source.path.display().to_string(), targets, mark, ..DeviceUnit::default() })
}

/// The name of the processor in a target ID.
fn processor(id: &str) -> &str {
    id.split(':').next().unwrap_or_default()
}

/// The targets that a plan makes from one source.
struct SourceTargets<'p> {
    source: String,
    targets: Vec<&'p str>,
}

/// The plan's targets by the source for which some unit has code.
fn by_source<'p>(plan: &'p WithPlan, units: &[DeviceUnit]) -> Vec<SourceTargets<'p>> {
    let mut groups: Vec<SourceTargets<'_>> = Vec::new();
    for pair in &plan.plan.pairs {
        let is_there = units.iter().any(|unit| unit.targets.contains(&pair.source));
        let is_grouped = groups.iter().any(|group| group.targets.contains(&pair.target.as_str()));
        if !is_there || is_grouped {
            continue;
        }
        match groups.iter_mut().find(|group| group.source == pair.source) {
            Some(group) => group.targets.push(&pair.target),
            None => groups.push(SourceTargets { source: pair.source.clone(), targets: vec![&pair.target] }),
        }
    }
    groups
}

/// A link of the new driver without explicit processors makes code for those of its units. A unit of an earlier HotSwap that
/// was coalesced lacks code for some of the processors that were requested for its compilation.
///
/// # Errors
/// [`codes::NO_ROUTE`] naming the unit.
pub fn refuse_unrequested(command: &ClangCommand, units: &[DeviceUnit], plan: &Plan) -> Result<(), Diagnostic> {
    let targets = plan.targets();
    let found = units.iter().find_map(|unit| Some((unit, unrequested_unit_target(unit, &targets)?)));
    let Some((unit, UnrequestedTarget { target, source })) = found.filter(|_| command.archs.is_empty()) else {
        return Ok(());
    };
    let what = format!(
        "{} was compiled once for {source} and {target}, and the link does not say for which processors it is",
        unit.name
    );
    Err(Diagnostic::error(codes::NO_ROUTE, what).advise("give the link the --offload-arch words of the compilations"))
}

fn unrequested_unit_target(unit: &DeviceUnit, targets: &BTreeSet<&str>) -> Option<UnrequestedTarget> {
    let mut marked = unit.mark.iter();
    let (target, source) = marked.find(|(target, _)| !targets.contains(target) && !unit.targets.contains(*target))?;
    Some(UnrequestedTarget { target: target.to_owned(), source: source.to_owned() })
}

/// A target of a unit's compilation that the link does not name, and the processor that its text is that of.
struct UnrequestedTarget {
    target: String,
    source: String,
}

struct Link<'l> {
    command: &'l ClangCommand,
    units: &'l [DeviceUnit],
    source: &'l str,
    refused: &'l TextFindings,
    /// An input of the device link besides the units, in words.
    further: Option<&'l str>,
}

impl Link<'_> {
    fn apply(&self, target: &str, linked: &Linked, found: &mut Consequences) -> Result<(), Diagnostic> {
        found.lines.push(format!("{target}: {}", self.line(linked)));
        let requested = self.command.archs.iter().any(|arch| processor(arch) == target);
        if let (Linked::Own(_), Some(finding)) = (linked, self.refused.find(target)) {
            self.link_own(target, requested, found)?;
            found.findings.set(finding.clone());
            return Ok(());
        }
        let (status, source, evidence) = match linked {
            Linked::Derived(from) => {
                if requested {
                    self.cancel(target, found);
                }
                // The new driver links whatever its units have code for.
                found
                    .skipped
                    .extend(self.units.iter().any(|unit| unit.targets.contains(target)).then(|| target.to_owned()));
                (SourceText::Same, Some(from.clone()), None)
            }
            Linked::NotChecked(unit) if requested => {
                // No unit has code for it, so clang would link an empty code object.
                self.cancel(target, found);
                (SourceText::NotChecked, Some(self.source.to_owned()), Some(file_name(unit)))
            }
            Linked::NotChecked(unit) => (SourceText::NotChecked, Some(self.source.to_owned()), Some(file_name(unit))),
            Linked::Own(unit) => {
                self.link_own(target, requested, found)?;
                (SourceText::Compiled, None, Some(file_name(unit)))
            }
            Linked::Mixed(own, silent) => return Err(self.mixed(target, own, silent)),
        };
        found.findings.set(TextFinding { target: target.to_owned(), status, source, evidence });
        Ok(())
    }

    /// Cancels the request for a target, with each setting of its features.
    fn cancel(&self, target: &str, found: &mut Consequences) {
        let ids: Vec<&str> =
            self.command.archs.iter().map(String::as_str).filter(|id| processor(id) == target).collect();
        found.words.push(format!("{CANCEL}{}", ids.join(",")).into());
    }

    /// Links the target as clang would, instead of deriving it.
    fn link_own(&self, target: &str, requested: bool, found: &mut Consequences) -> Result<(), Diagnostic> {
        if requested {
            // A source of the same command may have the same text for another target.
            keep_request(target, &mut found.words);
        }
        let word = format!("--offload-arch={target}");
        if !requested && !found.words.iter().any(|known| *known == *word) {
            found.words.push(word.into());
        }
        self.lend(target, found)
    }

    /// Units without bitcode of the target lend that of the processor whose text is the same.
    fn lend(&self, target: &str, found: &mut Consequences) -> Result<(), Diagnostic> {
        let lenders: Vec<&DeviceUnit> = self.units.iter().filter(|unit| !unit.targets.contains(target)).collect();
        if let Some(unit) = lenders.iter().find(|unit| unit.in_archive) {
            let what = format!("{} has code for {} alone, and {}", unit.name, self.source, self.reason(target));
            let advice = format!(
                "compile the archive's sources with --offload-arch={target}, too, or link the objects themselves"
            );
            return Err(Diagnostic::error(codes::UNIT_LACKS_GPU, what).advise(advice));
        }
        if let Some(unit) = lenders.iter().find(|unit| unit.is_bitcode) {
            let what = format!(
                "{} was compiled with -flto and has device code for {} alone, and {}",
                unit.name,
                self.source,
                self.reason(target)
            );
            let advice = format!("compile it with --offload-arch={target}, too");
            return Err(Diagnostic::error(codes::UNIT_LACKS_GPU, what).advise(advice));
        }
        match lenders.first() {
            Some(unit) if !self.is_identical(target) => return Err(self.budgets(target, unit)),
            Some(_) => found.lent.push(target.to_owned()),
            None => {}
        }
        Ok(())
    }

    /// Bitcode names its processor, by which the code generator chooses registers and workarounds.
    fn is_identical(&self, target: &str) -> bool {
        find_processor(self.source)
            .zip(find_processor(target))
            .is_some_and(|(source, target)| pair_verdict(source, target).is_identical())
    }

    fn budgets(&self, target: &str, unit: &DeviceUnit) -> Diagnostic {
        let what = format!(
            "{} has bitcode for {} alone, whose code is not right for {target} in every case, and {}",
            unit.name,
            self.source,
            self.reason(target)
        );
        let advice = format!("compile it with --offload-arch={target}, too");
        Diagnostic::error(codes::UNIT_LACKS_GPU, what).advise(advice)
    }

    /// Why the target is linked.
    fn reason(&self, target: &str) -> String {
        match self.further {
            Some(further) => further.to_owned(),
            None => format!("other units have some of their own for {target}"),
        }
    }

    fn mixed(&self, target: &str, own: &str, silent: &str) -> Diagnostic {
        let what = format!(
            "{own} has code of its own for {target}; {silent} has none, and nothing tells that its text is the same"
        );
        let advice =
            format!("compile {silent} with this plan through hotswap-clang, or with --offload-arch={target}, too");
        Diagnostic::error(codes::UNIT_LACKS_GPU, what).advise(advice)
    }

    fn line(&self, linked: &Linked) -> String {
        match linked {
            Linked::Derived(from) => format!("same program as for {from} in all units"),
            Linked::NotChecked(unit) => format!("not asked, {unit} does not tell"),
            Linked::Own(unit) => format!("another program than for {}, {unit}", self.source),
            Linked::Mixed(own, silent) => format!("cannot be linked, {own} has code for it and {silent} has none"),
        }
    }
}

/// Cancels requests for GPUs.
const CANCEL: &str = "--no-offload-arch=";

/// Removes a target from the arguments that cancel requests.
fn keep_request(target: &str, words: &mut Vec<OsString>) {
    for word in words.iter_mut() {
        let Some(ids) = word.to_str().and_then(|word| word.strip_prefix(CANCEL)) else { continue };
        let kept: Vec<&str> = ids.split(',').filter(|id| processor(id) != target).collect();
        *word = if kept.is_empty() { OsString::new() } else { format!("{CANCEL}{}", kept.join(",")).into() };
    }
    words.retain(|word| !word.is_empty());
}

/// Records must not differ between two directories.
fn file_name(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
