//! Copies of system SGPRs at the entries of kernels, for targets on which more user SGPRs must be set up.
//!
//! The result is code for the source's processor: descriptors request the target's count of user SGPRs, and the first
//! instructions of each kernel copy the work-group IDs to the registers from which its code reads them. Its label follows.
//!
//! Invariants: the new instructions run once, before all other (the pair's checks exclude branches to them). All
//! registers that they read hold nothing in the input; see [`crate::verify`].

use super::{LayoutInput, ParsedObject, build_programs, emit_verified, find_isa, single_diagnostic};
use crate::changes::{InstChanges, family_bit};
use crate::config::RewriteConfig;
use crate::order::{AdaptRequest, ObjectRecord};
use crate::prepared::UnlabelledObject;
use crate::registers::budget::{self, KernelBudget, VgprBudget};
use crate::registers::kernel_registers::descriptor_buffer;
use crate::registers::spill::private_segments;
use crate::registers::{AtPlace, RegisterUse};
use crate::select::{FunctionRewrite, SectionRewrite};
use hotswap_code_object::kernel_descriptor::{KernelDescriptor, USER_SGPRS};
use hotswap_code_object::{CodeObject, DescriptorLocation, SystemSgprShift};
use hotswap_families::FamilyRewriter;
use hotswap_families::code::{Scheduling, scalar_copy, scalar_no_operation};
use hotswap_isa::Wave;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_program::{CodeSource, Function, SectionProgram};
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeMap;

/// The family that the record and the certificate name.
const FAMILY: &str = "user_sgpr_count";

/// The alignment that compilers give loops, and the bytes of a copy: where the new code is as long as the alignment, loops
/// stay aligned without other padding.
const LOOP: usize = 64;
const COPY: usize = 4;

/// A code object with these copies, to be labelled for the target.
pub(crate) fn copy_at_entries<'a>(
    object: &CodeObject<'a>,
    shifts: &[SystemSgprShift],
    order: &AdaptRequest,
) -> Result<UnlabelledObject<'a>, Vec<Diagnostic>> {
    let source = object.target_id();
    let mut record =
        ObjectRecord { source: source.to_string(), target: order.target.to_string(), ..ObjectRecord::default() };
    let isa = find_isa(source.processor.name).map_err(single_diagnostic)?.with_wave(Wave::W32);
    let rewriter = FamilyRewriter::without_families();
    let config = RewriteConfig::new(&rewriter, isa, Scheduling::Hardware).with_shifts(shifts);
    let parsed = ParsedObject::from_object(object).map_err(single_diagnostic)?;
    let rewrites = select_copies(&parsed, &config)?;
    let made = emit_verified(&parsed, rewrites, &config, &mut record)?;
    let made = made.ok_or_else(|| single_diagnostic(Diagnostic::error(codes::INTERNAL, "no kernel was changed")))?;
    Ok(UnlabelledObject::rewritten(made, record))
}

/// A kernel of the plan in the file at hand.
struct PlannedKernel<'s> {
    shift: &'s SystemSgprShift,
    section: usize,
    offset: u32,
}

fn planned_kernels<'s>(
    source: &ParsedObject<'_, '_>,
    config: &'s RewriteConfig<'_>,
) -> Result<Vec<PlannedKernel<'s>>, Diagnostic> {
    let mut planned = Vec::new();
    for (shift, location) in planned_descriptors(source.object, config) {
        let section = source.image.section_at(location.entry);
        let place = section.and_then(|section| {
            let offset = location.entry.checked_sub(source.image.sections.get(section)?.address)?;
            Some(PlannedKernel { shift, section, offset: u32::try_from(offset).ok()? })
        });
        planned.push(place.ok_or_else(|| kernel_refusal(shift, "its code is in no section"))?);
    }
    planned.sort_by_key(|kernel| (kernel.section, kernel.offset));
    Ok(planned)
}

/// The plan's kernels with their descriptors in the file at hand.
fn planned_descriptors<'s, 'o>(
    object: &'o CodeObject<'_>,
    config: &'s RewriteConfig<'_>,
) -> impl Iterator<Item = (&'s SystemSgprShift, &'o DescriptorLocation)> {
    object.note().kernels.iter().zip(object.descriptors()).filter_map(|(kernel, location)| {
        let name = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name);
        Some((config.shifts.iter().find(|shift| shift.kernel == name)?, location))
    })
}

fn kernel_refusal(shift: &SystemSgprShift, what: &str) -> Diagnostic {
    let what = format!("work-group IDs cannot be copied at the entry of the kernel: {what}");
    let mut error = Diagnostic::error(codes::NO_LAYOUT, what).at_offset(shift.descriptor.start as u64);
    error.place.kernel = Some(shift.kernel.clone());
    error
}

/// Selects the copies of each kernel of the plan.
pub(super) fn select_copies<'a>(
    source: &ParsedObject<'_, 'a>,
    config: &RewriteConfig<'_>,
) -> Result<Vec<SectionRewrite<'a>>, Vec<Diagnostic>> {
    let planned = planned_kernels(source, config).map_err(single_diagnostic)?;
    let mut by_section: BTreeMap<usize, Vec<&PlannedKernel<'_>>> = BTreeMap::new();
    planned.iter().for_each(|kernel| by_section.entry(kernel.section).or_default().push(kernel));
    let units = build_programs(
        CodeSource::sources_of_object(source.object).map_err(single_diagnostic)?,
        &source.image,
        |number| by_section.contains_key(number),
        |number, _| by_section.get(&number).into_iter().flatten().map(|kernel| kernel.offset).collect(),
    );
    let segments = private_segments(source.object);
    let mut rewrites = Vec::new();
    for unit in units {
        let kernels = budget::kernel_budgets(&unit, source.object.target_id().processor, &segments);
        let planned = by_section.remove(&unit.number).unwrap_or_default();
        let outcomes = planned.into_iter().map(|kernel| copy_registers(&unit, &kernels, kernel, config));
        let outcomes = outcomes.collect::<Result<_, _>>().map_err(single_diagnostic)?;
        rewrites.push(SectionRewrite { unit, kernels, outcomes, unclaimed: Vec::new() });
    }
    match by_section.into_values().flatten().next() {
        Some(kernel) => Err(single_diagnostic(kernel_refusal(kernel.shift, "its section holds no program"))),
        None => Ok(rewrites),
    }
}

/// The copies at the entry of one kernel.
fn copy_registers(
    unit: &SectionProgram<'_>,
    kernels: &[KernelBudget],
    planned: &PlannedKernel<'_>,
    config: &RewriteConfig<'_>,
) -> Result<FunctionRewrite, Diagnostic> {
    let PlannedKernel { shift, offset, .. } = *planned;
    let found = unit.program.function_at(offset).zip(unit.program.decode(offset));
    let ((number, _), first) = found.ok_or_else(|| kernel_refusal(shift, "its first instruction is unknown"))?;
    let mut code = Vec::new();
    for pair in shift.register_pairs() {
        let copy = scalar_copy(config.target, pair.from, pair.to);
        code.push(copy.map_err(|refusal| kernel_refusal(shift, &refusal.reason))?);
    }
    if has_loop(&unit.program.functions[number]) {
        let empty = scalar_no_operation(config.target).map_err(|refusal| kernel_refusal(shift, &refusal.reason))?;
        code.resize(LOOP / COPY, empty);
    }
    code.push(first);
    let mut changes = InstChanges::default();
    changes.replace(offset, first, &code, family_bit(FAMILY));
    let sources = shift.register_pairs().map(|pair| Reg::new(RegFile::Sgpr, pair.from, 1)).collect();
    let mut registers = RegisterUse {
        sgprs: shift.raised + shift.system,
        budget: VgprBudget::for_function(unit, kernels, number),
        ..RegisterUse::default()
    };
    registers.scratch.push(AtPlace { offset, list: sources });
    let mut counts = BTreeMap::new();
    counts.insert((FAMILY, None), 1);
    Ok(FunctionRewrite {
        number,
        changes,
        counts,
        cycles: u64::from(shift.system),
        registers,
        ..FunctionRewrite::default()
    })
}

fn has_loop(function: &Function) -> bool {
    (0..function.block_count()).any(|block| {
        let start = function.block(block).start;
        function.successors(block).into_iter().any(|next| function.block(next as usize).start <= start)
    })
}

/// Writes the target's counts of user SGPRs to the descriptors of the plan's kernels.
pub(super) fn raise_user_sgprs(
    source: &ParsedObject<'_, '_>,
    config: &RewriteConfig<'_>,
    layout: &mut LayoutInput<'_>,
) -> Result<(), Diagnostic> {
    let processor = source.object.target_id().processor;
    for (shift, location) in planned_descriptors(source.object, config) {
        let target = (&mut layout.data, &mut layout.contents);
        let descriptor = descriptor_buffer(&source.image, &location.range, target)
            .and_then(|bytes| KernelDescriptor::new(bytes, processor));
        let written = descriptor.and_then(|mut descriptor| descriptor.set_field(USER_SGPRS, u64::from(shift.raised)));
        written.ok_or_else(|| kernel_refusal(shift, "its descriptor has no room for the count of user registers"))?;
    }
    Ok(())
}
