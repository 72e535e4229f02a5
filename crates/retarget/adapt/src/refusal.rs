//! Refusals, and their messages.

use hotswap_families::code::SiteRefusal;
use hotswap_isa::Inst;
use hotswap_program::{AnalysisProblem, ProblemReason, UnknownTransfer};
use hotswap_report::{Diagnostic, codes};

/// A refusal in a function.
#[derive(Debug, Clone)]
pub(crate) struct FunctionRefusal {
    /// Offset in the section.
    pub(crate) offset: u32,
    mnemonic: Option<&'static str>,
    what: String,
    advice: &'static str,
}

/// The advice if the control flow is unknown.
const PLAIN_FLOW: &str = "compile the kernel for the target, or without jumps through registers that nothing explains";

/// The advice if a jump table would do.
const NAMED_FLOW: &str = "compile the kernel for the target, or load the jump's address as it is from words of a section of \
                          data (.quad LABEL), which relocations name";

/// The advice if the start of a function is unknown.
const KEPT_SYMBOLS: &str = "link and copy the file without stripping its symbols (-s, -x, --strip-unneeded, --discard-all), give \
                            the function in assembly a symbol and a size, or compile the code for the target";

/// The advice for an unknown jump target.
fn advice_for(reason: ProblemReason) -> &'static str {
    match reason {
        ProblemReason::ComputedJump | ProblemReason::UnnamedJump | ProblemReason::UnclearJump => NAMED_FLOW,
        ProblemReason::CrowdedJump => {
            "compile the kernel for the target, or split it: tables of one kernel may name 4096 places"
        }
        _ => PLAIN_FLOW,
    }
}

/// First dwords of encodings that old assemblers wrote and no current one accepts: value, mask, description.
const OLD_SPELLINGS: &[(u32, u32, &str)] = &[
    (0xd031_0000, 0xffff_fffe, "an old spelling of tensor_load_to_lds"),
    (0xd031_4000, 0xffff_fffe, "an old spelling of tensor_store_from_lds"),
];

/// A place that concerns a family.
pub(crate) struct ConcernedSite {
    pub(crate) offset: u32,
    pub(crate) inst: Inst,
}

impl FunctionRefusal {
    pub(crate) fn new(offset: u32, inst: Option<&Inst>, family: &str, refusal: &SiteRefusal) -> Self {
        let what = format!("`{family}`: {}", refusal.reason);
        Self { offset, mnemonic: inst.map(Inst::mnemonic), what, advice: refusal.advice }
    }

    /// Adds the problem that lets unknown code enter the function anywhere, which may be the cause.
    pub(crate) fn with_problem(mut self, problem: Option<&AnalysisProblem>) -> Self {
        if let Some(problem) = problem.filter(|problem| problem.reason.is_unknown_jump()) {
            self.what += &format!(
                "; any place of the function may follow the jump at {:#x}: {}",
                problem.offset, problem.reason
            );
            self.advice = advice_for(problem.reason);
        }
        self
    }

    /// Execution reaches bytes that cannot be decoded. `word` is the dword at the offset, `site` the first place of the
    /// function that concerns a family.
    pub(crate) fn unreadable_code(offset: u32, reason: ProblemReason, word: u32, site: Option<ConcernedSite>) -> Self {
        let site =
            site.map_or(String::new(), |site| format!(", which has `{}` at {:#x}", site.inst.mnemonic(), site.offset));
        let known = OLD_SPELLINGS.iter().find(|(value, mask, _)| word & mask == *value);
        let meaning = known.map_or(String::new(), |(_, _, text)| format!(", {text}"));
        let what =
            format!("{} ({word:#010x}{meaning}), so nothing is known of the rest of the function{site}", reason.text());
        Self {
            offset,
            mnemonic: None,
            what,
            advice: "compile or assemble the kernel for the target with a current LLVM",
        }
    }

    /// A place that concerns a family may be reached by an unknown path.
    pub(crate) fn hidden_site(offset: u32, inst: &Inst, problem: AnalysisProblem) -> Self {
        let what = format!(
            "the target does it differently, and whether it is ever executed is not known: at {:#x} {}",
            problem.offset,
            problem.reason.text()
        );
        Self { offset, mnemonic: Some(inst.mnemonic()), what, advice: advice_for(problem.reason) }
    }

    /// An instruction that concerns a family is in bytes that may be code and cannot be read as a function.
    pub(crate) fn unclaimed_site(offset: u32, inst: &Inst, transfer: UnknownTransfer) -> Self {
        let what = format!("the target does it differently, and {}", unclaimed_reason(transfer));
        Self { offset, mnemonic: Some(inst.mnemonic()), what, advice: KEPT_SYMBOLS }
    }

    /// Converts the refusal to a diagnostic. `line` is the position in the source.
    pub(crate) fn to_diagnostic(&self, function: &str, section: &str, line: Option<String>) -> Diagnostic {
        let what = match line {
            Some(line) => format!("{} ({line})", self.what),
            None => self.what.clone(),
        };
        let mut error = Diagnostic::error(codes::NOT_SAFE, what)
            .in_entry(section)
            .at_offset(u64::from(self.offset))
            .advise(self.advice);
        error.place.kernel = Some(function.to_owned());
        error.place.mnemonic = self.mnemonic.map(str::to_owned);
        error
    }
}

/// Why bytes that no function claims may be code.
fn unclaimed_reason(transfer: UnknownTransfer) -> String {
    let lead = match transfer {
        UnknownTransfer::Instruction(at) => format!("the destination of the jump or call at {at:#x} is unknown"),
        UnknownTransfer::OtherSection => "code of other sections may lead here".to_owned(),
    };
    format!("no symbol covers it, it cannot be read as a function, and {lead}, so it may be executed")
}
