//! A section of code with the analyses that the families need: the program in it, its bank modes, its liveness.
//!
//! Invariants: costly analyses run when they are first needed, and once.

use crate::callers::{self, Callers};
use crate::reach;
use crate::waitcnt::Returns;
use hotswap_code_object::CodeObject;
use hotswap_code_object::image::Image;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::{Inst, Isa};
use hotswap_program::{BankMap, Coverage, Exit, Function, Liveness, Problem, Program, Reason, Source, Summaries};
use hotswap_report::Diagnostic;
use rayon::prelude::*;
use std::sync::OnceLock;

/// A section of code.
#[derive(Debug)]
pub(crate) struct Unit<'a> {
    /// Number of the section in the file's table.
    pub(crate) number: usize,
    pub(crate) name: &'a str,
    pub(crate) program: Program<'a>,
    /// The bytes that no function of the program claims.
    pub(crate) coverage: Coverage,
    /// Bank modes, provided that unknown callers and callees follow LLVM's calling convention.
    pub(crate) banks: BankMap,
    proven: OnceLock<BankMap>,
    summaries: OnceLock<Summaries>,
    returns: OnceLock<Returns>,
    callers: OnceLock<Callers>,
    open: OnceLock<Vec<bool>>,
    callers_by_pointer: OnceLock<Option<Vec<u32>>>,
}

/// Functions have many small allocations, which all cores free.
impl Drop for Unit<'_> {
    fn drop(&mut self) {
        let functions = std::mem::take(&mut self.program.functions);
        functions.into_par_iter().with_max_len(FUNCTIONS).for_each(drop);
    }
}

/// The most functions that one thread frees at once.
const FUNCTIONS: usize = 64;

impl<'a> Unit<'a> {
    /// The code sections that a code object describes.
    pub(crate) fn sources(object: &CodeObject<'a>) -> Result<Vec<Source<'a>>, Diagnostic> {
        Source::of(object)
    }

    /// Analyses the sections with these numbers, as far as needed for the offsets that `places` returns in ascending
    /// order.
    pub(crate) fn read(
        sources: Vec<Source<'a>>,
        image: &Image<'a>,
        numbers: &[usize],
        places: impl Fn(usize, &Source<'a>) -> Vec<u32>,
    ) -> Vec<Self> {
        let mut units = Vec::new();
        for source in sources {
            let at = source.bytes.as_ptr() as usize;
            let own = |number: &&usize| image.sections.get(**number).is_some_and(|s| s.bytes.as_ptr() as usize == at);
            let Some(number) = numbers.iter().find(own).copied() else { continue };
            let (program, coverage) = Program::covering(source, |source| places(number, source));
            let banks = BankMap::by_convention(&program);
            let name = image.sections[number].name;
            let (proven, summaries, returns) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
            let (callers, open, callers_by_pointer) = (OnceLock::new(), OnceLock::new(), OnceLock::new());
            units.push(Self {
                number,
                name,
                program,
                coverage,
                banks,
                proven,
                summaries,
                returns,
                callers,
                open,
                callers_by_pointer,
            });
        }
        units
    }

    pub(crate) fn isa(&self) -> Isa {
        self.program.source.isa
    }

    pub(crate) fn summaries(&self) -> &Summaries {
        self.summaries.get_or_init(|| Summaries::by_convention(&self.program, &self.banks))
    }

    pub(crate) fn returns(&self) -> &Returns {
        self.returns.get_or_init(|| Returns::of(self))
    }

    pub(crate) fn callers(&self) -> &Callers {
        self.callers.get_or_init(|| Callers::of(self))
    }

    /// Whether code outside this program may call a function. A kernel does not return.
    pub(crate) fn is_called_from_outside(&self, function: usize) -> bool {
        let mut entries = self.program.functions[function].entries.iter();
        self.is_shared(function) || entries.any(|entry| entry.open && !entry.is_kernel())
    }

    /// Whether code outside this program may call a function, or one of its callers.
    pub(crate) fn is_open(&self, function: usize) -> bool {
        self.open.get_or_init(|| reach::open(self))[function]
    }

    /// The kernels that may reach a function by a call of an unknown target, ascending; `None` if others may.
    pub(crate) fn callers_by_pointer(&self) -> Option<&[u32]> {
        self.callers_by_pointer.get_or_init(|| reach::callers_by_pointer(self)).as_deref()
    }

    /// Whether functions in other sections of a relocatable file may call a function.
    pub(crate) fn is_shared(&self, function: usize) -> bool {
        self.program.source.shared && !self.program.functions[function].is_kernel()
    }

    /// Visits the instructions of a function, each with the bank mode in force. Returns whether all could be decoded.
    pub(crate) fn each_instruction(&self, function: usize, mut each: impl FnMut(&Inst, VgprBanks)) -> bool {
        let mut all = true;
        for (block, line) in self.program.functions[function].blocks().enumerate() {
            let (mut at, mut banks) = (line.start, self.banks.at_block(function, block));
            while at < line.end {
                let Some(inst) = self.program.decode(at) else {
                    all = false;
                    break;
                };
                each(&inst, banks);
                banks = banks.after(&inst, self.isa());
                at += u32::from(inst.len());
            }
        }
        all
    }

    /// The liveness in a function, and whether it relies on the calling convention.
    pub(crate) fn liveness(&self, function: usize) -> (Liveness, bool) {
        let (returned, convention) = self.callers().returned(self, function);
        let mut exits = self.program.functions[function].blocks().map(|block| block.exit);
        let returns = convention && exits.any(|exit| matches!(exit, Exit::Return | Exit::Tail));
        (callers::liveness(self, function, &returned), returns || self.summaries().trusts_convention(function))
    }

    /// Whether the bank mode of a block relies on the calling convention.
    pub(crate) fn trusts_convention(&self, function: usize, block: usize) -> bool {
        let one = &self.program.functions[function];
        // If a kernel calls no function and none calls it, there is no convention to keep.
        let is_alone = one.entries.iter().all(hotswap_program::Entry::is_kernel)
            && one.calls.is_empty()
            && self.program.callers(function).next().is_none();
        if is_alone {
            return false;
        }
        let proven = self.proven.get_or_init(|| BankMap::of(&self.program));
        proven.at_block(function, block).mode().is_none() && self.banks.at_block(function, block).mode().is_some()
    }
}

/// Why unknown code may enter a function at any point.
pub(crate) fn entered_anywhere(function: &Function) -> Option<&Problem> {
    let anywhere = |problem: &&Problem| {
        problem.reason.is_unknown_jump()
            || matches!(problem.reason, Reason::UnknownReturn | Reason::Exception | Reason::TooDeep)
    };
    function.problems.iter().find(anywhere)
}
