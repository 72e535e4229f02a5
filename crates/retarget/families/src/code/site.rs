//! One instruction, the queries about its surroundings, and the possible answers.

use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::{WaitCounter, bank_role};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Inst, Isa, Name, OperandValue};
use std::borrow::Cow;
use std::fmt;

/// An instruction that a family may replace.
#[derive(Debug, Clone, Copy)]
pub struct CodeSite<'a> {
    /// The target that it was written for.
    pub source: Isa,
    /// The target that it is to run on.
    pub target: Isa,
    pub inst: &'a Inst,
}

/// How the wave keeps its vector instructions apart (SCHED_MODE).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheduling {
    /// The hardware does it: no instruction of the program sets SCHED_MODE.
    Hardware,
    /// The program may have switched that off. Results are only available after `s_wait_alu`.
    Program,
}

/// The queries that a family may make about a site. Registers are physical: VGPRs 0 to 1023.
pub trait SiteQueries {
    /// The bank mode before the site.
    fn banks(&self) -> VgprBanks;

    /// The last instruction before the site that may write `reg`, if it executes on every path to the site. `None`
    /// if nothing is known.
    fn last_def(&self, reg: Reg) -> Option<&Inst>;

    /// A power of two that divides the value of a VGPR in every active lane; 1 if nothing is known.
    fn alignment(&self, reg: Reg) -> u32;

    /// `count` neighbouring registers of `file`, the first a multiple of `align`, none of them in `excluding`, that are
    /// not read at or after the site before being written, and that no outstanding load, store or other operation still
    /// writes. A register that an outstanding operation may still read is fine.
    fn find_dead(&self, file: RegFile, count: u8, align: u8, excluding: &RegSet) -> Option<Reg>;

    /// The same for vector registers that hold a value: the engine stores it to scratch memory before the replacement and
    /// loads it after it. Asked where [`Surroundings::dead`] finds none; `None` where nothing is ever spilled.
    ///
    /// # Errors
    /// Why no register can be spilled.
    fn spill(&self, _count: u8, _align: u8, _excluding: &RegSet) -> Option<Result<Reg, Cow<'static, str>>> {
        None
    }

    /// Whether no register of `reg` is read after the site before it is written.
    fn is_dead_after(&self, reg: Reg) -> bool;

    /// The counters of operations outstanding before the site that may still write a part of `reg`. Queried for
    /// registers that the site names, if the new code writes one earlier than the site does.
    fn outstanding(&self, reg: Reg) -> Vec<WaitCounter>;

    /// Why MODE may have 16-bit floats rounded other than to the nearest even, or their denormals flushed, at the site.
    /// `None` if it does neither.
    fn other_half_mode(&self) -> Option<&str>;

    /// How the program keeps vector instructions apart.
    fn scheduling(&self) -> Scheduling;
}

/// The answer of a family for a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SiteAnswer {
    /// It does not belong to this family. The next family is tried.
    NotMine,
    /// It belongs to this family, and is already valid, for that reason.
    Leave(&'static str),
    /// It is replaced by these instructions.
    Replace(Replacement),
}

/// Instructions in place of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replacement {
    /// In order; each decodes on the target.
    pub code: Vec<Inst>,
    /// Registers that it uses beyond those of the site, one by one.
    pub scratch: Vec<Reg>,
    /// An assumption about the hardware that no public source states.
    pub assumes: Option<&'static str>,
}

impl Replacement {
    /// Without registers of its own and without assumptions.
    pub fn plain(code: Vec<Inst>) -> Self {
        Self { code, scratch: Vec::new(), assumes: None }
    }

    pub fn single_instruction(inst: Inst) -> Self {
        Self::plain(vec![inst])
    }

    /// Their length in bytes.
    pub fn size(&self) -> usize {
        self.code.iter().map(|inst| usize::from(inst.len())).sum()
    }
}

impl From<Replacement> for SiteAnswer {
    fn from(replacement: Replacement) -> Self {
        Self::Replace(replacement)
    }
}

/// Why a site cannot be made to run on the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SiteRefusal {
    pub reason: Cow<'static, str>,
    /// The advice to the user.
    pub advice: &'static str,
}

/// The advice of most refusals.
pub(crate) const RECOMPILE: &str = "compile the kernel for the target";
/// The advice for a shortage of registers.
pub(crate) const FREE_REGISTERS: &str =
    "compile the kernel for the target, or give it fewer live registers (smaller workgroups, less unrolling)";

impl SiteRefusal {
    /// A refusal with this reason and advice.
    pub fn new(reason: impl Into<Cow<'static, str>>, advice: &'static str) -> Self {
        Self { reason: reason.into(), advice }
    }
}

impl fmt::Display for SiteRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason, self.advice)
    }
}

impl CodeSite<'_> {
    /// The value of an operand.
    pub fn value(&self, name: Name) -> Option<OperandValue> {
        self.inst.operand(self.source, name)
    }

    /// The raw bits of a field or operand; 0 if the instruction lacks it.
    pub fn raw(&self, name: Name) -> u64 {
        self.inst.raw(name).unwrap_or(0)
    }

    /// The physical register of an operand; `None` if it is a constant.
    ///
    /// # Errors
    /// Its bank is not known.
    pub fn physical_register(&self, name: Name, banks: VgprBanks) -> Result<Option<Reg>, SiteRefusal> {
        let Some(OperandValue::Reg(reg)) = self.value(name) else { return Ok(None) };
        let entry = self.inst.entry();
        let slot = entry.slots().iter().position(|slot| slot.name == name);
        let role = slot.and_then(|slot| bank_role(entry, slot as u8));
        banks.resolve_register(reg, role).map(Some).ok_or_else(unknown_bank)
    }

    /// The physical register of an operand that is always a register.
    ///
    /// # Errors
    /// Its bank is not known, or it is not a register.
    pub fn register_operand(&self, name: Name, banks: VgprBanks) -> Result<Reg, SiteRefusal> {
        self.physical_register(name, banks)?
            .ok_or_else(|| SiteRefusal::new(format!("operand {} is no register", name.as_str()), RECOMPILE))
    }

    /// Every register that the instruction names.
    pub fn named_registers(&self, banks: VgprBanks) -> RegSet {
        let mut all = self.inst.read_set(self.source, banks);
        all.union_with(&self.inst.written_set(self.source, banks));
        all
    }
}

/// A sequence needs the bank mode, and paths with different ones meet.
pub(crate) fn unknown_bank() -> SiteRefusal {
    SiteRefusal::new("the bank mode (s_set_vgpr_msb) at this place is not known", RECOMPILE)
}

/// Allocates registers that are free at a site; where none are, vector registers are spilled.
///
/// # Errors
/// The refusal of a site where no such registers are free and none can be spilled.
pub(crate) fn alloc_scratch(
    around: &dyn SiteQueries,
    file: RegFile,
    count: u8,
    align: u8,
    excluding: &RegSet,
) -> Result<Reg, SiteRefusal> {
    if let Some(reg) = around.find_dead(file, count, align, excluding) {
        return Ok(reg);
    }
    let spilled = if file == RegFile::Vgpr { around.spill(count, align, excluding) } else { None };
    let reason = match spilled {
        Some(Ok(reg)) => return Ok(reg),
        Some(Err(reason)) => Some(reason),
        None => None,
    };
    Err(none_free(file, count, reason.as_deref()))
}

fn none_free(file: RegFile, count: u8, reason: Option<&str>) -> SiteRefusal {
    let name = if file == RegFile::Vgpr { "vector" } else { "scalar" };
    let (mut what, subject) = match count {
        1 => (format!("no {name} register is free"), "it"),
        _ => (format!("no {count} neighbouring {name} registers are free"), "they"),
    };
    if let Some(reason) = reason {
        what += &format!(", and {subject} cannot be spilled: {reason}");
    }
    SiteRefusal::new(what, FREE_REGISTERS)
}
