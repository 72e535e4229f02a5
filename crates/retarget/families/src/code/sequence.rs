//! Instructions for a site, with physical registers. The bank mode is set automatically.
//!
//! Invariants: the mode after the sequence is the mode before it. No `s_set_vgpr_msb` is placed where the hardware may
//! drop it (after an `s_setreg` of MODE). An unknown mode is never changed. If the program separates vector
//! instructions itself, a wait for everything precedes each instruction that is issued to another unit than the one
//! before.

use super::site::{CodeSite, RECOMPILE, Replacement, Scheduling, SiteQueries, SiteRefusal, unknown_bank};
use hotswap_isa::bank::{BankRole, VgprBanks};
use hotswap_isa::effects::{WaitCounter, bank_role};
use hotswap_isa::encode::{EncodeError, OperandArg, build_among};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Class, Flag, Inst, Isa, Name, TableEntry};
use std::collections::HashMap;
use std::sync::OnceLock;

/// Collects the instructions of a replacement.
#[derive(Debug, Clone)]
pub struct Sequence {
    isa: Isa,
    /// The mode before the site.
    found: VgprBanks,
    /// The mode after the last instruction.
    banks: VgprBanks,
    managed: bool,
    code: Vec<Inst>,
    scratch: RegSet,
    assumes: Option<&'static str>,
}

impl Sequence {
    /// Starts at the site.
    pub fn new(site: &CodeSite<'_>, around: &dyn SiteQueries) -> Self {
        Self {
            isa: site.target,
            found: around.banks(),
            banks: around.banks(),
            managed: around.scheduling() == Scheduling::Program,
            code: Vec::new(),
            scratch: RegSet::EMPTY,
            assumes: None,
        }
    }

    /// Declares a register that is used beyond those of the site, before its first use. Outstanding memory operations
    /// may have to be issued again and then read it, so they are waited for until they cannot.
    ///
    /// # Errors
    /// The wait cannot be encoded.
    pub fn declare_scratch(&mut self, reg: Reg) -> Result<(), SiteRefusal> {
        self.scratch.insert(reg);
        if self.code.is_empty() {
            self.wait("s_wait_xcnt", 0)?;
            if self.managed {
                self.wait("s_wait_alu", 0)?;
            }
        }
        Ok(())
    }

    /// Declares a register that the site names and that the new code writes earlier than the site's own operation
    /// would. Outstanding operations that may write it, or read it again, are waited for.
    ///
    /// # Errors
    /// A wait cannot be encoded.
    pub fn declare_overwrite(&mut self, reg: Reg, around: &dyn SiteQueries) -> Result<(), SiteRefusal> {
        self.wait("s_wait_xcnt", 0)?;
        for counter in around.outstanding(reg) {
            self.wait(wait_of(counter)?, 0)?;
        }
        if self.managed {
            self.wait("s_wait_alu", 0)?;
        }
        Ok(())
    }

    /// The registers declared with [`Sequence::borrows`].
    pub fn scratch_registers(&self) -> &RegSet {
        &self.scratch
    }

    pub fn declare_assumption(&mut self, what: &'static str) {
        self.assumes = Some(what);
    }

    /// Adds an instruction; VGPRs are physical.
    ///
    /// # Errors
    /// The target lacks such an instruction, or its bank mode cannot be set.
    pub fn add(&mut self, mnemonic: &str, class: Class, operands: &[NamedOperand]) -> Result<(), SiteRefusal> {
        // The bank mode selects the bank of vector registers; operands only have an index in it.
        let mut args = operands.to_vec();
        for (_, arg) in &mut args {
            if let OperandArg::Reg(reg) = arg
                && reg.file == RegFile::Vgpr
            {
                reg.index &= 255;
            }
        }
        let inst = build_instruction(self.isa, mnemonic, class, &args)?;
        let needs = needed_banks(inst.entry(), operands)?;
        self.switch_banks(needs)?;
        self.push(inst)
    }

    /// Adds the site's own instruction, or a form of it with the same registers, in the mode of the site.
    ///
    /// # Errors
    /// A wait cannot be encoded.
    pub fn add_original(&mut self, inst: Inst) -> Result<(), SiteRefusal> {
        self.restore_mode()?;
        self.push(inst)
    }

    /// Adds a scalar instruction that waits.
    ///
    /// # Errors
    /// The target lacks such an instruction.
    pub fn wait(&mut self, mnemonic: &str, value: i64) -> Result<(), SiteRefusal> {
        self.append_encoded(build_instruction(
            self.isa,
            mnemonic,
            Class::Sopp,
            &[named_operand(Name::Simm16, OperandArg::Number(value))],
        )?);
        Ok(())
    }

    /// The replacement, in the mode that the site had.
    ///
    /// # Errors
    /// The mode cannot be restored.
    pub fn finish(mut self) -> Result<Replacement, SiteRefusal> {
        self.restore_mode()?;
        Ok(Replacement { code: self.code, scratch: self.scratch.iter().collect(), assumes: self.assumes })
    }

    fn push(&mut self, inst: Inst) -> Result<(), SiteRefusal> {
        let other_unit = self
            .code
            .iter()
            .rev()
            .find(|last| !is_marker(last))
            .is_some_and(|last| issue_unit(last) != issue_unit(&inst));
        if self.managed && other_unit {
            self.wait("s_wait_alu", 0)?;
        }
        self.append_encoded(inst);
        Ok(())
    }

    fn append_encoded(&mut self, inst: Inst) {
        self.banks = self.banks.mode_after(&inst, self.isa);
        self.code.push(inst);
    }

    fn restore_mode(&mut self) -> Result<(), SiteRefusal> {
        match self.found.mode() {
            Some(mode) => self.set_mode(mode),
            // The mode was unknown, so it was not changed.
            None => Ok(()),
        }
    }

    /// Switches the roles in `needs` to their banks.
    fn switch_banks(&mut self, needs: [Option<u8>; 4]) -> Result<(), SiteRefusal> {
        let mut roles = BankRole::ALL.into_iter();
        if roles.all(|role| needs[role as usize].is_none_or(|bank| self.banks.bank(role) == Some(bank))) {
            return Ok(());
        }
        let mut mode = self.banks.mode().ok_or_else(unknown_bank)?;
        for (index, bank) in needs.into_iter().enumerate().filter_map(|(index, bank)| Some((index, bank?))) {
            mode = mode & !(3 << (2 * index)) | bank << (2 * index);
        }
        self.set_mode(mode)
    }

    fn set_mode(&mut self, mode: u8) -> Result<(), SiteRefusal> {
        let Some(before) = self.banks.mode() else { return Err(unknown_bank()) };
        if before == mode {
            return Ok(());
        }
        let value = i64::from(before) << 8 | i64::from(mode);
        let inst = build_instruction(
            self.isa,
            "s_set_vgpr_msb",
            Class::Sopp,
            &[named_operand(Name::Simm16, OperandArg::Number(value))],
        )?;
        if self.banks.mode_after(&inst, self.isa).mode() != Some(mode) {
            self.wait("s_nop", 0)?;
        }
        self.append_encoded(inst);
        match self.banks.mode() == Some(mode) {
            true => Ok(()),
            false => Err(unknown_bank()),
        }
    }
}

/// The bank that each role needs.
fn needed_banks(entry: TableEntry, operands: &[NamedOperand]) -> Result<[Option<u8>; 4], SiteRefusal> {
    let mut needs = [None; 4];
    for (name, bank) in operands.iter().filter_map(|(name, arg)| Some((name, argument_register_bank(arg)?))) {
        let slot = entry.slots().iter().position(|slot| slot.name == *name);
        let role = slot.and_then(|slot| bank_role(entry, slot as u8));
        let Some(role) = role else {
            if bank == 0 {
                continue;
            }
            let what = format!("operand {} of {} is read from bank 0 in every mode", name.as_str(), entry.mnemonic());
            return Err(SiteRefusal::new(what, RECOMPILE));
        };
        match needs[role as usize] {
            Some(other) if other != bank => {
                let what = format!("{} would need registers of two banks in one role", entry.mnemonic());
                return Err(SiteRefusal::new(what, RECOMPILE));
            }
            _ => needs[role as usize] = Some(bank),
        }
    }
    Ok(needs)
}

fn argument_register_bank(arg: &OperandArg) -> Option<u8> {
    match arg {
        OperandArg::Reg(reg) if reg.file == RegFile::Vgpr => Some((reg.index >> 8) as u8),
        _ => None,
    }
}

/// The unit to which an instruction is issued: those of one unit complete in order.
#[derive(PartialEq, Eq)]
enum IssueUnit {
    Scalar,
    Vector,
    Matrix,
    Memory,
}

fn issue_unit(inst: &Inst) -> IssueUnit {
    match inst.entry() {
        entry if entry.is(Flag::Wmma) || entry.is(Flag::Swmmac) => IssueUnit::Matrix,
        _ if inst.memory_access().is_some() => IssueUnit::Memory,
        entry if entry.is(Flag::Salu) => IssueUnit::Scalar,
        _ => IssueUnit::Vector,
    }
}

/// The instruction that waits for a counter of memory that writes registers.
fn wait_of(counter: WaitCounter) -> Result<&'static str, SiteRefusal> {
    match counter {
        WaitCounter::Load => Ok("s_wait_loadcnt"),
        WaitCounter::Sample => Ok("s_wait_samplecnt"),
        WaitCounter::Bvh => Ok("s_wait_bvhcnt"),
        WaitCounter::Lds => Ok("s_wait_dscnt"),
        WaitCounter::Scalar => Ok("s_wait_kmcnt"),
        _ => Err(SiteRefusal::new("work in flight that no wait of the target ends may write a register", RECOMPILE)),
    }
}

/// Instructions that are issued to no unit.
fn is_marker(inst: &Inst) -> bool {
    matches!(inst.class(), Some(Class::Sopp))
}

/// The encodings with that mnemonic.
fn entries_of_mnemonic(mnemonic: &str) -> impl Iterator<Item = TableEntry> + use<> {
    static INDEX: OnceLock<HashMap<&'static str, Vec<TableEntry>>> = OnceLock::new();
    let index = INDEX.get_or_init(|| {
        let mut index: HashMap<_, Vec<TableEntry>> = HashMap::new();
        TableEntry::all_entries().for_each(|entry| index.entry(entry.mnemonic()).or_default().push(entry));
        index
    });
    index.get(mnemonic).into_iter().flatten().copied()
}

/// An operand by its name, and its value.
pub type NamedOperand = (Name, OperandArg);

/// The operand of that name.
pub(crate) fn named_operand(name: Name, value: impl Into<OperandArg>) -> NamedOperand {
    (name, value.into())
}

/// Builds the instruction with these operands. VGPRs have their encoded numbers.
pub(crate) fn build_instruction(
    isa: Isa,
    mnemonic: &str,
    class: Class,
    operands: &[NamedOperand],
) -> Result<Inst, SiteRefusal> {
    build_among(isa, (mnemonic, class), operands, entries_of_mnemonic(mnemonic))
        .map_err(|error| cannot_encode(mnemonic, error))
}

/// The target lacks an instruction that it should have, or rejects an operand that it should take.
pub(crate) fn cannot_encode(mnemonic: &str, error: EncodeError) -> SiteRefusal {
    SiteRefusal::new(format!("{mnemonic} cannot be encoded: {error}"), RECOMPILE)
}

/// The instruction `v_nop` of the target.
///
/// # Errors
/// The target lacks one.
pub fn no_operation(isa: Isa) -> Result<Inst, SiteRefusal> {
    build_instruction(isa, "v_nop", Class::Vop1, &[])
}

/// The instruction `s_nop 0` of the target.
///
/// # Errors
/// The target lacks one.
pub fn scalar_no_operation(isa: Isa) -> Result<Inst, SiteRefusal> {
    let cycles = named_operand(Name::Simm16, OperandArg::Number(0));
    build_instruction(isa, "s_nop", Class::Sopp, &[cycles])
}

/// `s_mov_b32` from one SGPR to another.
///
/// # Errors
/// The target lacks such a register.
pub fn scalar_copy(isa: Isa, from: u16, to: u16) -> Result<Inst, SiteRefusal> {
    let [to, from] = [to, from].map(|index| OperandArg::Reg(Reg::new(RegFile::Sgpr, index, 1)));
    let (to, from) = (named_operand(Name::Sdst, to), named_operand(Name::Src0, from));
    build_instruction(isa, "s_mov_b32", Class::Sop1, &[to, from])
}

/// `s_wait_alu` for all vector results and nothing else.
pub(crate) fn wait_for_vector_results(isa: Isa) -> Result<Inst, SiteRefusal> {
    const NOTHING_MISSING: i64 = 0x0f9f;
    build_instruction(
        isa,
        "s_wait_alu",
        Class::Sopp,
        &[named_operand(Name::Simm16, OperandArg::Number(NOTHING_MISSING))],
    )
}
