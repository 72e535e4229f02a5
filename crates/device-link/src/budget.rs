//! The registers that kernels are launched with, and those that the functions they reach need.

use crate::convention;
use crate::inputs::{LinkInput, records};
use crate::lds::{FunctionLds, overlaps};
use hotswap_code_object::kernel_descriptor::{DYNAMIC_STACK, KernelDescriptor};
use hotswap_code_object::{CodeObject, Descriptor, KernelMetadata};
use hotswap_device_symbols::{Function, Kernel, Number, Resources, SymbolTable, analyse_with};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::Capability;
use std::collections::HashMap;
use std::fmt;

/// Scratch that HIP gives a kernel with a dynamic stack, at least. HSA gives what the program asks for, and that is what the
/// descriptor states.
pub(crate) const HIP_STACK: u64 = 1024;
/// Each frame may be up to this much larger in the code than in the compiler's sum.
const ROUNDING: u64 = 16;

/// Registers and scratch of a work-item.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LaunchNumbers {
    /// Vector registers, accumulation registers not counted.
    pub vgprs: u64,
    /// Accumulation registers.
    pub agprs: u64,
    /// Scalar registers.
    pub sgprs: u64,
    /// Bytes of scratch.
    pub scratch: u64,
    /// Bytes of LDS of a work-group.
    pub lds: u64,
}

/// A kernel that is launched with less than it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelBudget {
    /// Its name.
    pub kernel: String,
    /// The numbers in descriptor and metadata.
    pub has: LaunchNumbers,
    /// The numbers that it needs; none is smaller.
    pub needs: LaunchNumbers,
    /// The function that needs most of what is short.
    pub forced_by: String,
    /// Not all functions that it reaches are known: it may need more.
    pub is_open: bool,
    /// The compiler left its numbers to the link (`-amdgpu-enable-object-linking`): its code sets scratch up.
    pub is_unfinished: bool,
}

/// A kernel that needs an unknown amount of scratch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnboundedScratch {
    /// Its name.
    pub kernel: String,
    /// The function that it needs it for.
    pub function: String,
    /// The function is recursive; otherwise its code does not show the size of its frame.
    pub is_recursive: bool,
}

impl UnboundedScratch {
    fn problem(&self) -> Diagnostic {
        let Self { kernel, function, is_recursive } = self;
        let why = if *is_recursive { "which is recursive" } else { "whose code does not show the size of its frame" };
        Diagnostic::warning(codes::UNBOUNDED_SCRATCH, format!("kernel `{kernel}` reaches `{function}`, {why}"))
    }
}

/// The result of a check.
#[derive(Debug, Clone, Default)]
pub struct LinkReport {
    /// Kernels that have too little.
    pub short: Vec<KernelBudget>,
    /// Kernels that reach functions that are not known.
    pub open: Vec<String>,
    /// Kernels that reach functions whose use of scratch is not known, and that were compiled apart from them.
    pub unbounded: Vec<UnboundedScratch>,
    /// Objects that do not fit each other.
    pub mixes: Vec<Diagnostic>,
    /// All kernels.
    pub kernels: usize,
}

impl LinkReport {
    /// The problems as diagnostics: kernels with too little, mixes, and notes about kernels that are not known completely.
    #[must_use]
    pub fn problems(&self) -> Vec<Diagnostic> {
        let short = self.short.iter().map(KernelBudget::problem);
        let open = self.open.iter().map(|kernel| {
            let what = format!("kernel `{kernel}` calls functions that the link does not know; it may need more");
            Diagnostic::warning(codes::UNKNOWN_CALLEES, what)
        });
        let unbounded = self.unbounded.iter().map(UnboundedScratch::problem);
        short.chain(self.mixes.iter().cloned()).chain(open).chain(unbounded).collect()
    }
}

impl KernelBudget {
    /// That it got the numbers.
    #[must_use]
    pub fn raised_note(&self) -> Diagnostic {
        let Self { kernel, has, needs, forced_by, .. } = self;
        let what = format!("kernel `{kernel}` got {needs} instead of {has}, because of `{forced_by}`");
        Diagnostic::warning(codes::TOO_FEW_REGISTERS, what)
            .advise("more registers can mean fewer waves; LTO can avoid that")
    }

    fn problem(&self) -> Diagnostic {
        let Self { kernel, has, needs, forced_by, .. } = self;
        let at_least = if self.is_open { "at least " } else { "" };
        let what = format!("kernel `{kernel}` has {has}, and `{forced_by}` makes it need {at_least}{needs}");
        Diagnostic::error(codes::TOO_FEW_REGISTERS, what).advise(
            "raise the numbers by --hotswap-device-link=fix, or link the device code by LTO (without -fno-offload-lto)",
        )
    }
}

impl fmt::Display for LaunchNumbers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { vgprs, agprs, sgprs, scratch, lds } = self;
        match lds {
            0 => write!(f, "{vgprs} VGPRs, {agprs} AGPRs, {sgprs} SGPRs and {scratch} bytes of scratch"),
            _ => write!(f, "{vgprs} VGPRs, {agprs} AGPRs, {sgprs} SGPRs, {scratch} bytes of scratch and {lds} of LDS"),
        }
    }
}

/// The scratch that a kernel with a dynamic stack has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DynamicStack {
    /// HIP's default, which HIP gives it at least: up to that it has enough.
    OfHip,
    /// The descriptor's number: for numbers that are written, which other runtimes and smaller limits of HIP take as they are.
    AsStated,
}

/// Compares what the kernels of a linked file have with the needs of what they reach. The inputs are those of the link; without
/// them, numbers come from the code alone.
///
/// # Errors
/// A file that is no linked code object, or is damaged.
pub fn check(linked: &[u8], inputs: &[LinkInput<'_>], stack: DynamicStack) -> Result<LinkReport, Diagnostic> {
    let object = CodeObject::parse(linked)?;
    let records = records(inputs);
    let (table, _) = analyse_with(linked, &records)?;
    let lds = convention::lds_of_inputs(&table, inputs);
    let defined: Vec<_> = inputs.iter().map(LinkInput::exported).collect();
    let name = |number: u32| &table.functions[number as usize].name;
    let is_apart = |row: &Kernel| {
        let home = defined.iter().find(|names| names.contains(name(row.function)));
        let is_outside = |number: &u32| {
            let name = name(*number);
            home.is_some_and(|home| !home.contains(name)) && defined.iter().any(|names| names.contains(name))
        };
        row.reachable.iter().any(is_outside)
    };
    let dynamic_stack = if stack == DynamicStack::OfHip { HIP_STACK } else { 0 };
    let mut report = kernels_in(&object, &table, &records, &lds, (is_apart, dynamic_stack));
    report.mixes.extend(convention::mixes(&object, &table, inputs));
    Ok(report)
}

/// The budgets of the kernels of a file. The table begins with its functions; `records` are the compiler's own numbers, `lds` is
/// what functions of other objects need, by number; `is_apart` tells kernels that reach functions which were compiled apart,
/// `dynamic_stack` is what a kernel with one gets at least.
pub(crate) fn kernels_in(
    object: &CodeObject<'_>,
    table: &SymbolTable,
    records: &HashMap<String, Resources>,
    lds: &[Option<FunctionLds>],
    (is_apart, dynamic_stack): (impl Fn(&Kernel) -> bool, u64),
) -> LinkReport {
    let mut report = LinkReport { kernels: table.kernels.len(), ..LinkReport::default() };
    for (kernel, place) in object.note().kernels.iter().zip(object.descriptors()) {
        let name = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name);
        let row = table.named(name).and_then(|number| table.kernel(number));
        let Some(row) = row else { continue };
        let is_unfinished = records.contains_key(name);
        // The compiler states the scratch of recursions and hidden frames itself, unless it left that to the link, or did not see
        // all of it.
        let is_known = !is_unfinished && !is_apart(row);
        if !row.complete {
            report.open.push(name.to_owned());
        } else if let Some((function, is_recursive)) = unbounded_function(table, row).filter(|_| !is_known) {
            report.unbounded.push(UnboundedScratch { kernel: name.to_owned(), function, is_recursive });
        }
        let budget = budget(object, table, row, (kernel, place), (lds, dynamic_stack));
        report.short.extend(budget.map(|budget| KernelBudget { is_unfinished, ..budget }));
    }
    report.mixes = overlaps(table, lds);
    report
}

/// The function that makes the scratch of a kernel unbounded, if there is one.
fn unbounded_function(table: &SymbolTable, row: &Kernel) -> Option<(String, bool)> {
    // The compiler states the kernel's own frame.
    let others = || row.reachable.iter().filter(|number| **number != row.function);
    let functions = || others().map(|number| &table.functions[*number as usize]);
    let recursive = functions().find(|one| one.recursive == Some(true)).map(|one| (one.name.clone(), true));
    let is_hidden = |one: &&Function| one.own.scratch.value.is_none() || one.own.scratch.at_least;
    recursive.or_else(|| functions().find(is_hidden).map(|one| (one.name.clone(), false)))
}

/// The budget of a kernel, if it has too little.
fn budget(
    object: &CodeObject<'_>,
    table: &SymbolTable,
    row: &Kernel,
    (kernel, place): (&KernelMetadata<'_>, &Descriptor),
    (lds, dynamic_stack): (&[Option<FunctionLds>], u64),
) -> Option<KernelBudget> {
    let processor = object.target_id().processor;
    let descriptor = KernelDescriptor::new(object.bytes().get(place.range.clone())?, processor)?;
    let is_unified = processor.capabilities.contains(Capability::UnifiedRegisterFile);
    let agprs = kernel.agpr_count.unwrap_or(0);
    // In a unified file the metadata counts both kinds.
    let vgprs = kernel.vgpr_count.map_or(0, |all| if is_unified { all.saturating_sub(agprs) } else { all });
    let scratch = kernel.scratch.unwrap_or(0);
    let has =
        LaunchNumbers { vgprs, agprs, sgprs: kernel.sgpr_count.unwrap_or(0), scratch, lds: kernel.lds.unwrap_or(0) };
    let lds_of = |number: u32| lds.get(number as usize).and_then(Option::as_ref).map_or(0, |one| one.bytes);
    let needed = |number: Number, has: u64| number.value.unwrap_or(0).max(has);
    let needs = LaunchNumbers {
        vgprs: needed(row.needs.vgprs, has.vgprs),
        agprs: needed(row.needs.agprs, has.agprs),
        sgprs: needed(row.needs.sgprs, has.sgprs),
        scratch: needed(row.needs.scratch, has.scratch),
        lds: row.reachable.iter().map(|number| lds_of(*number)).fold(has.lds, u64::max),
    };
    let given = if descriptor.get(DYNAMIC_STACK) == Some(1) { scratch.max(dynamic_stack) } else { scratch };
    let is_short_of_scratch = needs.scratch > given + ROUNDING * row.reachable.len() as u64;
    let is_short_of_registers = (needs.vgprs, needs.agprs, needs.sgprs) != (has.vgprs, has.agprs, has.sgprs);
    if !is_short_of_registers && !is_short_of_scratch && needs.lds == has.lds {
        return None;
    }
    let most = |of: fn(&hotswap_device_symbols::Resources) -> Number| {
        let functions = row.reachable.iter().map(|number| &table.functions[*number as usize]);
        functions.max_by_key(|one| of(&one.own).value).map(|one| one.name.clone())
    };
    let forced_by = match (needs.vgprs > has.vgprs, needs.agprs > has.agprs, needs.sgprs > has.sgprs) {
        (true, _, _) => most(|own| own.vgprs),
        (_, true, _) => most(|own| own.agprs),
        (_, _, true) => most(|own| own.sgprs),
        _ if needs.lds > has.lds => {
            let most = row.reachable.iter().max_by_key(|number| lds_of(**number));
            most.map(|number| table.functions[*number as usize].name.clone())
        }
        _ => most(|own| own.scratch),
    };
    let kernel = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name).to_owned();
    Some(KernelBudget {
        kernel,
        has,
        needs,
        forced_by: forced_by.unwrap_or_default(),
        is_open: !row.complete,
        is_unfinished: false,
    })
}
