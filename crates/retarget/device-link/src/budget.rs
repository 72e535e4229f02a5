//! The registers that kernels are launched with, and those that the functions they reach need.

use crate::convention::{self, LinkedCode};
use crate::granted::{LaunchNumbers, granted_numbers, special_sgprs_of_target};
use crate::inputs::{LinkInput, compiler_records};
use crate::lds::{FunctionLds, lds_overlaps};
use hotswap_code_object::kernel_descriptor::{DYNAMIC_STACK, KernelDescriptor};
use hotswap_code_object::{CodeObject, DescriptorLocation, KernelMetadata};
use hotswap_device_symbols::{Function, Kernel, Number, Resources, SymbolTable, analyse_with};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::Capability;
use std::collections::{BTreeSet, HashMap};

/// Scratch that HIP gives a kernel with a dynamic stack, at least. HSA gives what the program asks for, and that is
/// what the descriptor states.
pub(crate) const HIP_STACK: u64 = 1024;
/// Each frame may be up to this much larger in the code than in the sum of a compiler that has seen all functions.
const ROUNDING: u64 = 16;
/// Special scalar registers of a wave at most.
const MOST_SPECIAL_SGPRS: u64 = 6;

/// A kernel that is launched with less than it needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelBudget {
    pub kernel: String,
    /// The numbers in descriptor and metadata.
    pub has: LaunchNumbers,
    /// The numbers that the hardware grants for them: registers come in granules.
    pub granted: LaunchNumbers,
    /// The numbers that it needs; none is smaller.
    pub needs: LaunchNumbers,
    /// The function that needs most of what is short.
    pub forced_by: String,
    /// Not all functions that it reaches are known: it may need more.
    pub is_open: bool,
    /// The compiler left its numbers to the link (`-amdgpu-enable-object-linking`): its code sets scratch up.
    pub is_unfinished: bool,
    /// Its scratch lacks a known bound, and it states no dynamic stack, without which limits of the runtime do nothing.
    pub lacks_dynamic_stack: bool,
}

/// A kernel that needs an unknown amount of scratch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnboundedScratch {
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
        let dynamic = self.dynamic_stack_text();
        let what = format!("kernel `{kernel}` got {needs}{dynamic} instead of {has}, because of `{forced_by}`");
        Diagnostic::warning(codes::TOO_FEW_REGISTERS, what)
            .advise("more registers can mean fewer waves; LTO can avoid that")
    }

    fn problem(&self) -> Diagnostic {
        let Self { kernel, has, granted, needs, forced_by, .. } = self;
        let at_least = if self.is_open { "at least " } else { "" };
        let what = format!(
            "kernel `{kernel}` declares {has}, is granted {}, and `{forced_by}` makes it need {at_least}{needs}{}",
            granted.registers(),
            self.dynamic_stack_text()
        );
        Diagnostic::error(codes::TOO_FEW_REGISTERS, what).advise(
            "raise the numbers by --hotswap-device-link=fix, or link the device code by LTO (without -fno-offload-lto)",
        )
    }

    const fn dynamic_stack_text(&self) -> &'static str {
        if self.lacks_dynamic_stack { " and a dynamic stack" } else { "" }
    }
}

/// How scratch is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StackRules {
    /// The scratch that a kernel with a dynamic stack has.
    pub dynamic: DynamicStack,
    /// The scratch of a kernel whose need lacks a known bound: recursion, calls through pointers, hidden frames.
    pub unbounded: Option<u64>,
}

impl From<DynamicStack> for StackRules {
    fn from(dynamic: DynamicStack) -> Self {
        Self { dynamic, unbounded: None }
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
/// A file that is not a linked code object, or is damaged.
pub fn check_link(
    linked: &[u8],
    inputs: &[LinkInput<'_>],
    rules: impl Into<StackRules>,
) -> Result<LinkReport, Diagnostic> {
    let rules = rules.into();
    let object = CodeObject::parse(linked)?;
    let records = compiler_records(inputs);
    let (table, _) = analyse_with(linked, &records)?;
    let lds = convention::lds_of_inputs(&table, inputs);
    let defined: Vec<_> = inputs.iter().map(LinkInput::exported_names).collect();
    let code = LinkedCode::of_object(&object);
    let facts = BudgetFacts {
        object: &object,
        table: &table,
        records: &records,
        lds: &lds,
        is_apart: &|row| is_apart(&table, row, &defined),
        special_sgprs: &|number| code.as_ref().map_or(0, |code| code.special_sgprs(&table.functions[number as usize])),
        dynamic_stack: if rules.dynamic == DynamicStack::OfHip { HIP_STACK } else { 0 },
        unbounded_stack: rules.unbounded,
    };
    let mut report = facts.report();
    report.mixes.extend(convention::convention_mixes(&object, &table, inputs));
    Ok(report)
}

/// Whether a kernel reaches functions of other objects. `defined` has the names that each object defines.
fn is_apart(table: &SymbolTable, row: &Kernel, defined: &[BTreeSet<String>]) -> bool {
    let own = &table.functions[row.function as usize].name;
    let Some(home) = defined.iter().find(|names| names.contains(own)) else { return false };
    let mut reached = row.reachable.iter().map(|number| &table.functions[*number as usize].name);
    reached.any(|name| !home.contains(name) && defined.iter().any(|names| names.contains(name)))
}

/// The facts that budgets are computed from.
pub(crate) struct BudgetFacts<'a> {
    /// The file with the kernels.
    pub(crate) object: &'a CodeObject<'a>,
    /// The table whose functions come first.
    pub(crate) table: &'a SymbolTable,
    /// The compiler's own numbers.
    pub(crate) records: &'a HashMap<String, Resources>,
    /// LDS that functions of other objects need, by their numbers.
    pub(crate) lds: &'a [Option<FunctionLds>],
    /// Whether a kernel reaches functions that were compiled apart from it.
    pub(crate) is_apart: &'a dyn Fn(&Kernel) -> bool,
    /// Special scalar registers that a function names.
    pub(crate) special_sgprs: &'a dyn Fn(u32) -> u64,
    /// Scratch that a kernel with a dynamic stack gets at least.
    pub(crate) dynamic_stack: u64,
    /// Scratch of a kernel whose need lacks a known bound.
    pub(crate) unbounded_stack: Option<u64>,
}

impl BudgetFacts<'_> {
    /// The budgets of the kernels.
    pub(crate) fn report(&self) -> LinkReport {
        let table = self.table;
        let mut report = LinkReport { kernels: table.kernels.len(), ..LinkReport::default() };
        let mut declared_lds = HashMap::new();
        for (kernel, place) in self.object.note().kernels.iter().zip(self.object.descriptors()) {
            let name = kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name);
            let row = table.number_of_name(name).and_then(|number| table.kernel_of_function(number));
            let Some(row) = row else { continue };
            declared_lds.insert(row.function, kernel.lds.unwrap_or(0));
            let is_unfinished = self.records.contains_key(name);
            // The compiler states the scratch of recursions and hidden frames itself, unless it left that to the link, or did not
            // see all of it.
            let is_known = !is_unfinished && !(self.is_apart)(row);
            let unbounded = unbounded_function(table, row);
            let scratch = ScratchFacts { is_known, is_unbounded: unbounded.is_some() || !row.complete };
            let reported = unbounded.filter(|_| row.complete && !is_known && self.unbounded_stack.is_none());
            report.open.extend((!row.complete).then(|| name.to_owned()));
            report.unbounded.extend(reported.map(|found| UnboundedScratch { kernel: name.to_owned(), ..found }));
            let budget = self.budget_of_kernel(row, (kernel, place), scratch);
            report.short.extend(budget.map(|budget| KernelBudget { is_unfinished, ..budget }));
        }
        report.mixes = lds_overlaps(table, self.lds, &declared_lds);
        report
    }

    /// The budget of a kernel, if it has too little.
    fn budget_of_kernel(
        &self,
        row: &Kernel,
        (kernel, place): (&KernelMetadata<'_>, &DescriptorLocation),
        facts: ScratchFacts,
    ) -> Option<KernelBudget> {
        let target = self.object.target_id();
        let descriptor = KernelDescriptor::new(self.object.bytes().get(place.range.clone())?, target.processor)?;
        let has = declared_numbers(kernel, target.processor.capabilities.contains(Capability::UnifiedRegisterFile));
        let granted = granted_numbers(&descriptor, target, has);
        let needs = self.needs(row, has, facts);
        let is_dynamic = descriptor.get(DYNAMIC_STACK) == Some(1);
        let scratch = if is_dynamic { has.scratch.max(self.dynamic_stack) } else { has.scratch };
        let is_bounded_by_option = facts.is_unbounded && self.unbounded_stack.is_some();
        let lacks_dynamic_stack = facts.is_unbounded && !facts.is_known && !is_dynamic;
        // Without that sum, frames that are not declared are not there.
        let is_summed = facts.is_known && !is_bounded_by_option;
        let rounding = if is_summed { ROUNDING * row.reachable.len() as u64 } else { 0 };
        let short = Shortage {
            vgprs: needs.vgprs > granted.vgprs,
            agprs: needs.agprs > granted.agprs,
            sgprs: needs.sgprs > granted.sgprs,
            scratch: needs.scratch > scratch + rounding,
            lds: needs.lds > granted.lds,
        };
        (short.is_some() || lacks_dynamic_stack).then(|| KernelBudget {
            kernel: kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name).to_owned(),
            has,
            granted,
            needs,
            forced_by: self.forcing_function(row, short),
            is_open: !row.complete,
            is_unfinished: false,
            lacks_dynamic_stack,
        })
    }

    fn needs(&self, row: &Kernel, has: LaunchNumbers, facts: ScratchFacts) -> LaunchNumbers {
        LaunchNumbers {
            vgprs: needed_or_present(row.needs.vgprs, has.vgprs),
            agprs: needed_or_present(row.needs.agprs, has.agprs),
            sgprs: self.needed_sgprs(row, has.sgprs).max(has.sgprs),
            scratch: self.needed_scratch(row, facts).max(has.scratch),
            lds: row.reachable.iter().map(|number| self.lds_of(*number)).fold(has.lds, u64::max),
        }
    }

    /// The frames that are known, and the bytes of the option where there may be more. A compiler that has seen all functions has counted
    /// a recursion as it does.
    fn needed_scratch(&self, row: &Kernel, facts: ScratchFacts) -> u64 {
        let is_counted = facts.is_known && facts.is_unbounded;
        let frames = row.needs.scratch.value.filter(|_| !is_counted).unwrap_or(0);
        let bound = self.unbounded_stack.filter(|_| facts.is_unbounded).unwrap_or(0);
        frames.max(bound)
    }

    fn lds_of(&self, number: u32) -> u64 {
        self.lds.get(number as usize).and_then(Option::as_ref).map_or(0, |one| one.bytes)
    }

    /// The scalar registers of the code with special ones, which descriptor and metadata count and the numbers of the code do not.
    /// From GFX10 on the number is without effect: every wave has all of them.
    fn needed_sgprs(&self, row: &Kernel, has: u64) -> u64 {
        let target = self.object.target_id();
        let named = row.needs.sgprs.value.unwrap_or(0);
        if target.processor.limits.sgprs.shared.is_none() {
            return named;
        }
        // Code is read only where it matters.
        if named + MOST_SPECIAL_SGPRS <= has {
            return has;
        }
        let special = row.reachable.iter().map(|number| (self.special_sgprs)(*number)).max().unwrap_or(0);
        named + special.max(special_sgprs_of_target(target))
    }

    /// The function that needs most of what is short.
    fn forcing_function(&self, row: &Kernel, short: Shortage) -> String {
        let most = row.reachable.iter().max_by_key(|number| {
            let own = &self.table.functions[**number as usize].own;
            match short {
                Shortage { vgprs: true, .. } => own.vgprs.value.unwrap_or(0),
                Shortage { agprs: true, .. } => own.agprs.value.unwrap_or(0),
                Shortage { sgprs: true, .. } => own.sgprs.value.unwrap_or(0),
                Shortage { lds: true, .. } => self.lds_of(**number),
                _ => own.scratch.value.unwrap_or(0),
            }
        });
        most.map(|number| self.table.functions[*number as usize].name.clone()).unwrap_or_default()
    }
}

fn needed_or_present(number: Number, has: u64) -> u64 {
    number.value.unwrap_or(0).max(has)
}

/// The facts about a kernel's scratch.
#[derive(Debug, Clone, Copy)]
struct ScratchFacts {
    /// The compiler has seen all that the kernel reaches, and states the scratch.
    is_known: bool,
    /// It reaches a recursion, a frame that the code does not show, or functions that are not known.
    is_unbounded: bool,
}

/// The numbers that are too small.
#[derive(Debug, Clone, Copy)]
struct Shortage {
    vgprs: bool,
    agprs: bool,
    sgprs: bool,
    scratch: bool,
    lds: bool,
}

impl Shortage {
    const fn is_some(self) -> bool {
        self.vgprs || self.agprs || self.sgprs || self.scratch || self.lds
    }
}

/// The numbers of the metadata.
fn declared_numbers(kernel: &KernelMetadata<'_>, is_unified: bool) -> LaunchNumbers {
    let agprs = kernel.agpr_count.unwrap_or(0);
    // In a unified file the metadata counts both kinds.
    let vgprs = kernel.vgpr_count.map_or(0, |all| if is_unified { all.saturating_sub(agprs) } else { all });
    LaunchNumbers {
        vgprs,
        agprs,
        sgprs: kernel.sgpr_count.unwrap_or(0),
        scratch: kernel.scratch.unwrap_or(0),
        lds: kernel.lds.unwrap_or(0),
    }
}

/// The function that makes the scratch of a kernel unbounded, if there is one.
fn unbounded_function(table: &SymbolTable, row: &Kernel) -> Option<UnboundedScratch> {
    // The compiler states the kernel's own frame.
    let others = row.reachable.iter().filter(|number| **number != row.function);
    let mut functions = others.map(|number| &table.functions[*number as usize]);
    let recursive = functions.clone().find(|one| one.recursive == Some(true));
    let found = recursive.or_else(|| functions.find(has_unbounded_scratch))?;
    Some(UnboundedScratch { kernel: String::new(), function: found.name.clone(), is_recursive: recursive.is_some() })
}

fn has_unbounded_scratch(one: &&Function) -> bool {
    one.own.scratch.value.is_none() || one.own.scratch.at_least
}
