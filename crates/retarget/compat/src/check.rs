//! The checks that read code: their table, and the one function that runs those of a pair.
//!
//! A check is a named question about one code object. A pair of processors whose code is the same *unless* names the
//! checks that settle it ([`crate::Verdict`]). All findings are collected, because the maintainer of a library that has
//! to change needs every kernel, not only the first.
//!
//! Invariants: a check that cannot be answered is a refusal; a refusal names the kernel, the offset and, where there is
//! one, the instruction.
//!
//! Absent on purpose: which pair needs which check (see the verdict), and changing the code.

use crate::checks::findings::CompatFindings;
use crate::checks::reading::{InstructionChecks, UnknownIsa, kernel_wave_sizes};
use crate::checks::stretches::{self, CodeStretch};
use crate::checks::{
    KernelFacts, OF_KERNEL, OF_OBJECT, OF_PROGRAM, ObjectFinding, ProcessorPair, ProgramFinding, rules_of_check,
};
use crate::{Verdict, pair_verdict};
use hotswap_code_object::{CodeMap, CodeObject, CodeSymbol, KernelMetadata, SymbolKind};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::collections::HashSet;
use std::fmt;

/// Declares [`Check`] from lines `Name "name" "question"`.
macro_rules! checks {
    ($($name:ident $text:literal $doc:literal,)*) => {
        /// A question about a code object that decides whether it may serve another processor.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Check {
            $(#[doc = $doc] $name,)*
        }

        impl Check {
            /// All checks, in the order in which they run.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name in listings.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            /// The question that it answers.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $doc,)* }
            }
        }
    };
}

checks! {
    CodeObjectVersion "code-object-version" "Is the code object of a version that can state the target? Generic targets need V6, which V5 can become.",
    Features "features" "Do the stated settings of XNACK and SRAMECC hold on the target?",
    WaveSize "wave-size" "Does the target have waves of the size that each kernel requires?",
    Lds "lds" "Does the static LDS of each kernel fit the target?",
    VgprFit "vgpr-fit" "Do the largest workgroups of each kernel fit the vector registers of the target?",
    UserSgprs16 "user-sgprs-16" "Does each kernel in waves of 32 lanes set up the 16 scalar registers that the target needs, or can those that move when user registers are added be copied back at its entry?",
    SameInstructions "same-instructions" "Is every instruction there on the target, with the same operands and the same meaning?",
    D16Loads "d16-loads" "Is the code free of 16-bit loads into one half of a register, which lose the other half under SRAMECC?",
    ImageSampling "image-sampling" "Is the code free of image sampling, which the target accelerates and needs waits around?",
    Exports "exports" "Is the code free of exports, which the target orders by a priority that the source does not have?",
    MatrixWaits "matrix-waits" "Is the code free of matrix instructions that need longer waits on the target?",
    Hazards "hazards" "Is the code free of instructions around which the target, but not the source, needs a workaround?",
}

/// Checks that read instructions.
const OF_CODE: &[Check] = &[
    Check::SameInstructions,
    Check::D16Loads,
    Check::ImageSampling,
    Check::Exports,
    Check::MatrixWaits,
    Check::Hazards,
];

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The checks that ran, when nothing was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PassedChecks {
    /// The checks of the pair, in the order in which they ran.
    pub ran: Vec<PassedCheck>,
    /// Instructions that were decoded; 0 where no check examines instructions.
    pub instructions: u64,
    /// Words outside of every function that neither processor decodes.
    pub opaque: u64,
}

/// A check that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassedCheck {
    pub check: Check,
    /// Kernels or instructions that it examined.
    pub judged: u64,
}

/// Checks that are cheap and depend on the code object and the target ID, not on the pair: they always run.
const ALWAYS: &[Check] = &[Check::CodeObjectVersion, Check::Features, Check::WaveSize, Check::Lds];

/// Runs the checks of the pair on a code object; `target` is the new label. Besides those that the verdict names, it
/// runs the checks that follow from the settings of this code object and this target.
///
/// # Errors
/// [`codes::PAIR_REFUSED`] where the verdict about the pair is a refusal; otherwise a [`codes::NOT_SAFE`] for each
/// finding, at most a few for each kernel.
pub fn check_object(object: &CodeObject<'_>, target: &TargetId) -> Result<PassedChecks, Vec<Diagnostic>> {
    match pair_verdict(object.target_id().processor, target.processor) {
        Verdict::Refused { why } => Err(vec![Diagnostic::error(codes::PAIR_REFUSED, why)]),
        // The engine that changes the code reads all of it, and rejects anything it does not understand.
        Verdict::Rewrite => check_for(object, target, ALWAYS),
        Verdict::Identical { checks } | Verdict::Conditional { checks } => {
            let pair = ProcessorPair { source: object.target_id(), target: *target };
            let needed = Check::ALL.iter().copied().filter(|check| {
                let by_settings = *check == Check::D16Loads && !rules_of_check(*check, &pair).is_empty();
                checks.contains(check) || ALWAYS.contains(check) || by_settings
            });
            check_for(object, target, &needed.collect::<Vec<_>>())
        }
    }
}

/// Runs those checks on a code object, whatever the verdict about the pair.
///
/// # Errors
/// [`codes::NOT_SAFE`] for each finding.
pub fn check_for(
    object: &CodeObject<'_>,
    target: &TargetId,
    checks: &[Check],
) -> Result<PassedChecks, Vec<Diagnostic>> {
    let pair = ProcessorPair { source: object.target_id(), target: *target };
    let mut findings = CompatFindings::default();
    let mut checked = PassedChecks::default();
    for (check, judge) in OF_OBJECT.iter().filter(|(check, _)| checks.contains(check)) {
        checked.ran.push(PassedCheck { check: *check, judged: 1 });
        if let Some(ObjectFinding { offset, why }) = judge(&pair, object) {
            findings.add(*check, None, offset, None, || why);
        }
    }
    for (check, judge) in OF_KERNEL.iter().filter(|(check, _)| checks.contains(check)) {
        checked.ran.push(PassedCheck { check: *check, judged: object.descriptors().len() as u64 });
        for kernel in KernelFacts::kernels_of_object(object) {
            let offset = kernel.descriptor.range.start as u64;
            if let Some(why) = judge(&pair, &kernel) {
                findings.add(*check, Some(kernel.metadata.name), offset, None, || why);
            }
        }
    }
    for (check, judge) in OF_PROGRAM.iter().filter(|(check, _)| checks.contains(check)) {
        checked.ran.push(PassedCheck { check: *check, judged: object.descriptors().len() as u64 });
        for ProgramFinding { kernel, offset, why } in judge(&pair, object) {
            findings.add(*check, Some(kernel), offset, None, || why);
        }
    }
    let mut found = findings.into_diagnostics(&pair);
    let of_code = OF_CODE.iter().copied().filter(|check| checks.contains(check)).collect::<Vec<_>>();
    if !of_code.is_empty() {
        found.extend(check_code(object, &pair, &of_code, &mut checked));
    }
    if found.is_empty() { Ok(checked) } else { Err(found) }
}

/// Reads the code for those checks.
fn check_code(
    object: &CodeObject<'_>,
    pair: &ProcessorPair,
    checks: &[Check],
    checked: &mut PassedChecks,
) -> Vec<Diagnostic> {
    let rules = checks.iter().flat_map(|check| rules_of_check(*check, pair)).collect();
    let reading = InstructionChecks::new(pair, rules, checks.contains(&Check::SameInstructions));
    let mut reading = match reading {
        Ok(reading) => reading,
        Err(UnknownIsa { name }) => return vec![Diagnostic::error(codes::NO_INSTRUCTIONS, name)],
    };
    let map = CodeMap::from_object(object);
    let waves = kernel_wave_sizes(pair, KernelFacts::kernels_of_object(object).map(|kernel| kernel.lanes));
    let stretches = stretches::code_stretches(object, &map, waves);
    if let Some(error) = unreadable_code(object, &map, &stretches) {
        return vec![error];
    }
    for stretch in &stretches {
        reading.read_stretch(object.bytes(), stretch);
    }
    checked.instructions = reading.instructions;
    checked.opaque = reading.opaque;
    checked.ran.extend(checks.iter().map(|check| PassedCheck { check: *check, judged: reading.instructions }));
    reading.findings.into_diagnostics(pair)
}

/// Reports files in which the position of a kernel's code is unknown.
fn unreadable_code(object: &CodeObject<'_>, map: &CodeMap<'_>, stretches: &[CodeStretch<'_>]) -> Option<Diagnostic> {
    let size: usize = stretches.iter().map(|stretch| stretch.range.len()).sum();
    if size > object.bytes().len() {
        return Some(Diagnostic::error(
            codes::NOT_SAFE,
            "sections with code overlap: it cannot be said what they hold",
        ));
    }
    let symbols = map.sections.iter().flat_map(|section| &section.symbols).filter(is_kernel_symbol);
    let empty = map.empty_kernels.iter().map(|name| &**name);
    let placed: HashSet<&str> = symbols.map(|symbol| &*symbol.name).chain(empty).collect();
    let named =
        |kernel: &&KernelMetadata<'_>| placed.contains(kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.symbol));
    let lost = object.note().kernels.iter().find(|kernel| !named(kernel))?;
    let mut error = Diagnostic::error(codes::NOT_SAFE, "the kernel's code is in no section with code");
    error.place.kernel = Some(lost.name.to_owned());
    Some(error)
}

fn is_kernel_symbol(symbol: &&CodeSymbol<'_>) -> bool {
    matches!(symbol.kind, SymbolKind::Kernel(_))
}
