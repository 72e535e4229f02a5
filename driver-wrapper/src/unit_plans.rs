//! The plans that relocatable units carry in their objects: written after their compilation, found again in their link.
//!
//! A unit needs its plan where the plan derives a target from the unit's code and the unit lacks its own code for
//! it. Its object then has the plan, and an undefined symbol that only the link defines which carries the plan out
//! ([`hotswap_plan::UNIT_PLAN_SECTION`]). So the link of such units needs no plan on its command line, and a link
//! without HotSwap fails.
//!
//! Invariants: an object that needs its plan is never left without the mark: the output is removed where it cannot be
//! written. Equal compilations give equal bytes.
//!
//! Absent on purpose: bundles of the old driver with bitcode of the host (`-flto`), which clang itself cannot link.

use crate::command::{ClangCommand, InputKind};
use crate::judge::{CommandDecision, CommandJudgement, WithPlan, manifest_format};
use crate::store;
use crate::units::{self, DeviceUnit};
use hotswap_bundle::{UnitReference, add_unit_reference};
use hotswap_families::carried_out;
use hotswap_files::reads;
use hotswap_plan::{Plan, UNIT_PLAN_SECTION, UNIT_REFERENCE_SECTION, add_unit_targets, unit_symbol};
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Whether the command compiles units that may need their plan in a later link.
pub fn concerns(judgement: &CommandJudgement) -> bool {
    let CommandDecision::WithPlan(with) = &judgement.decision else { return false };
    judgement.command.compiles_relocatable() && !judgement.command.dry_run && !with.plan.pairs.is_empty()
}

/// Writes the plan into the objects that the command has made.
///
/// # Errors
/// [`codes::CANNOT_READ`], [`codes::CANNOT_WRITE`], and damage of an object; it is removed then.
pub fn mark_outputs(command: &ClangCommand, with: &WithPlan) -> Result<(), Diagnostic> {
    for output in outputs(command) {
        mark_output(&output, &with.plan, &command.archs).map_err(|error| {
            let _ = fs::remove_file(&output);
            error.in_file(&output)
        })?;
    }
    Ok(())
}

fn mark_output(output: &Path, plan: &Plan, requested: &[String]) -> Result<(), Diagnostic> {
    // Probes of build systems write to /dev/null.
    if reads::find_metadata(output)?.is_some_and(|meta| !meta.is_file()) {
        return Ok(());
    }
    let object = hotswap_files::open_input(output)?;
    let Some(unit) = units::of_object(&object, output.display().to_string(), false) else { return Ok(()) };
    let Some(needed) = needed_plan(&unit, plan, requested) else { return Ok(()) };
    let (note, symbol) = (needed.canonical_text(), unit_symbol(&object));
    let reference = UnitReference {
        note_section: UNIT_PLAN_SECTION,
        note: note.as_bytes(),
        section: UNIT_REFERENCE_SECTION,
        symbol: &symbol,
    };
    let marked = add_unit_reference(&object, &reference)?.ok_or_else(no_place)?;
    drop(object);
    hotswap_files::replace_file(output, &marked)
}

fn no_place() -> Diagnostic {
    Diagnostic::error(codes::UNKNOWN_FORMAT, "the object has no place for the plan that its link must carry out")
        .advise("compile the unit without -flto, or for each GPU (--offload-arch)")
}

/// The plan with the pairs that a unit needs; `None` where it has code for all of their targets. A link of the old driver
/// leaves out code that it does not request, so there the unit also needs what the plan has added to it.
fn needed_plan(unit: &DeviceUnit, plan: &Plan, requested: &[String]) -> Option<Plan> {
    let mut needed = plan.clone();
    needed.pairs.retain(|pair| match unit.targets.contains(&pair.target) {
        true => unit.is_old && !is_requested_target(&pair.target, requested),
        false => unit.targets.contains(&pair.source),
    });
    (!needed.pairs.is_empty()).then_some(needed)
}

fn is_requested_target(name: &str, requested: &[String]) -> bool {
    requested.iter().any(|id| id.split(':').next() == Some(name))
}

/// The objects that a compilation writes.
fn outputs(command: &ClangCommand) -> Vec<PathBuf> {
    let directory = command.working_directory.as_ref().map(PathBuf::from).unwrap_or_default();
    if let Some(output) = &command.output {
        return vec![directory.join(output)];
    }
    let sources = command.inputs.iter().filter(|input| input.kind != InputKind::Link);
    let objects = sources.filter_map(|input| Some(Path::new(Path::new(&input.path).file_name()?).with_extension("o")));
    objects.map(|object| directory.join(object)).collect()
}

/// The plan that the inputs of a link need; empty where they need none.
///
/// # Errors
/// [`codes::PLAN_OF_OBJECTS`] where two units were compiled under plans that differ in more than their targets;
/// [`codes::CANNOT_READ`] where one cannot be read.
pub fn plan_of_inputs(command: &ClangCommand) -> Result<Plan, Diagnostic> {
    let mut joined: Option<JoinedPlan> = None;
    for unit in units::of_inputs(command)? {
        for plan in unit.plans()? {
            match &mut joined {
                None => joined = Some(JoinedPlan { plan, first: unit.name.clone() }),
                Some(known) => {
                    let joined = join_plan(&mut known.plan, &plan);
                    joined.map_err(|what| differing(&known.first, &unit.name, &what))?;
                }
            }
        }
    }
    Ok(joined.map(|joined| joined.plan).unwrap_or_default())
}

/// The plan of the units that were read, and the name of the first of them.
struct JoinedPlan {
    plan: Plan,
    first: String,
}

/// Adds the targets that a plan lacks.
fn join_plan(plan: &mut Plan, other: &Plan) -> Result<(), String> {
    let (options, others) = (options_of(plan), options_of(other));
    if options != others {
        return Err(format!("{} and {}", one_line(&options), one_line(&others)));
    }
    add_unit_targets(plan, other);
    Ok(())
}

/// The plan without its pairs.
fn options_of(plan: &Plan) -> Plan {
    Plan { pairs: BTreeSet::new(), ..plan.clone() }
}

fn differing(first: &str, second: &str, what: &str) -> Diagnostic {
    let what = format!("{first} and {second} were compiled under plans with different options ({what})");
    Diagnostic::error(codes::PLAN_OF_OBJECTS, what).advise("compile both with the same options of the plan")
}

fn one_line(plan: &Plan) -> String {
    plan.canonical_text().lines().skip(1).collect::<Vec<_>>().join(", ")
}

/// The object that defines the symbols of the link's units.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitDefinitions {
    pub object: PathBuf,
    /// The output is an archive, of which it becomes a member.
    pub for_archive: bool,
}

/// The object that defines the symbols of the link's units; `None` where none of them needs it.
///
/// # Errors
/// [`codes::CANNOT_READ`], [`codes::CANNOT_WRITE`]; [`codes::NO_ROUTE`] where the link leaves out the code that a target is derived from.
pub fn definitions(command: &ClangCommand, plan: &Plan, dry: bool) -> Result<Option<UnitDefinitions>, Diagnostic> {
    if !command.links_relocatable() {
        return Ok(None);
    }
    let units = units::of_inputs(command)?;
    units.iter().try_for_each(|unit| refuse_unlinked_source(command, unit, plan))?;
    let mut symbols: Vec<String> = units.into_iter().flat_map(|unit| unit.symbols).collect();
    symbols.sort();
    symbols.dedup();
    if symbols.is_empty() {
        return Ok(None);
    }
    let bytes = carried_out::definitions_object(manifest_format(command)?, &symbols)?;
    let name = PathBuf::from(format!("{}.units.o", store::hash(&bytes)));
    let object = store::put_for_link("units", &name, &bytes, dry)?;
    Ok(Some(UnitDefinitions { object, for_archive: command.static_library }))
}

/// A link of the old driver is for the requested processors only, whatever its units have code for.
fn refuse_unlinked_source(command: &ClangCommand, unit: &DeviceUnit, plan: &Plan) -> Result<(), Diagnostic> {
    if !unit.is_old || unit.symbols.is_empty() {
        return Ok(());
    }
    for needed in unit.plans()?.iter().flat_map(|plan| plan.pairs.clone()) {
        let sources = plan.pairs.iter().filter(|pair| pair.target == needed.target).map(|pair| pair.source.as_str());
        let is_own = unit.text_of(&needed.target) == Some(needed.target.as_str());
        if !is_own
            && !sources.clone().any(|source| command.requests_processor(source))
            && !command.requests_processor(&needed.target)
        {
            let what = format!(
                "{} needs code for {}, which is made from that for {}, and the link does not request it",
                unit.name, needed.target, needed.source
            );
            let advice = format!("add --offload-arch={} to the link", needed.source);
            return Err(Diagnostic::error(codes::NO_ROUTE, what).advise(advice));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scan;
    use std::ffi::OsString;

    fn plan(pairs: &str) -> Plan {
        let mut plan = Plan::default();
        plan.add_pairs(pairs).unwrap();
        plan
    }

    #[test]
    fn outputs_are_named_as_clang_names_them() {
        for (words, expected) in [
            ("-fgpu-rdc -c a.hip -o b.o", "b.o"),
            ("-fgpu-rdc -c a.hip -ob.o", "b.o"),
            ("-fgpu-rdc -c a.hip --output=b.o", "b.o"),
            ("-fgpu-rdc -c d/a.hip b.x.hip", "a.o b.x.o"),
            ("-fgpu-rdc -c a.hip -working-directory d", "d/a.o"),
        ] {
            let words: Vec<OsString> = words.split_whitespace().map(OsString::from).collect();
            let found: Vec<_> = outputs(&scan(&words)).iter().map(|path| path.display().to_string()).collect();
            assert_eq!(found.join(" "), expected);
        }
    }

    #[test]
    fn a_unit_needs_what_it_lacks() {
        let unit = |targets: &str| DeviceUnit {
            targets: targets.split(' ').map(str::to_owned).collect(),
            ..DeviceUnit::default()
        };
        let all = plan("gfx1030=>gfx1031,gfx1032;gfx900=>gfx902");
        let requested = ["gfx1030".to_owned()];
        let needed = |unit: &DeviceUnit| needed_plan(unit, &all, &requested);
        assert_eq!(needed(&unit("gfx1030")), Some(plan("gfx1030=>gfx1031,gfx1032")));
        assert_eq!(needed(&unit("gfx1030 gfx1031")), Some(plan("gfx1030=>gfx1032")));
        assert_eq!(needed(&unit("gfx1100")), None);
        // The link of the old driver would leave out what was compiled for the plan alone.
        let old = DeviceUnit { is_old: true, ..unit("gfx1030 gfx1031 gfx1032") };
        assert_eq!(needed(&old), Some(plan("gfx1030=>gfx1031,gfx1032")));
    }

    #[test]
    fn plans_are_joined_by_their_targets() {
        let mut one = plan("gfx1030=>gfx1031");
        join_plan(&mut one, &plan("gfx1030=>gfx1031,gfx1032")).unwrap();
        assert_eq!(one, plan("gfx1030=>gfx1031,gfx1032"));
        let other = Plan { experimental: true, ..plan("gfx1030=>gfx1033") };
        assert!(join_plan(&mut one, &other).unwrap_err().contains("allow experimental"));
    }
}
