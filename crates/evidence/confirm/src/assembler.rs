//! Writes the instructions of a kernel for one processor, by the rows of `hotswap-isa`.
//!
//! Invariants: an instruction is written only if its row exists on the processor and it decodes to that row again. Every
//! instruction is followed by waits that outlast each hazard between it and the next one, so that no kernel depends on a
//! list of hazards.
//!
//! Absent on purpose: scheduling. These kernels are as slow as they are simple.

use crate::error::ConfirmError;
use hotswap_isa::encode::{EncodeError, OperandArg, build_among};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Class, Inst, Isa, Name, TableEntry, Target, Wave};
use hotswap_targets::{Capability, Processor};
use std::collections::HashMap;

/// Encodings that kernels use: those without DPP, SDWA and pairs, the short one first.
const PLAIN_CLASSES: &[Class] = &[
    Class::Sop1,
    Class::Sop2,
    Class::Sopc,
    Class::Sopk,
    Class::Sopp,
    Class::Smem,
    Class::Ds,
    Class::Flat,
    Class::Vop1,
    Class::Vop2,
    Class::Vop3,
    Class::Vop3p,
];

/// The inline constant -1: the barrier of the whole work-group.
const ALL_WAVES: u8 = 193;

/// An operand of an instruction with its name.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NamedArg {
    pub(crate) name: Name,
    pub(crate) value: OperandArg,
}

pub(crate) const fn arg(name: Name, value: OperandArg) -> NamedArg {
    NamedArg { name, value }
}

/// A vector register, or several from this one on.
pub(crate) fn vgpr(index: u16, count: u8) -> OperandArg {
    Reg::new(RegFile::Vgpr, index, count).into()
}

/// A scalar register, or several from this one on.
pub(crate) fn sgpr(index: u16, count: u8) -> OperandArg {
    Reg::new(RegFile::Sgpr, index, count).into()
}

/// A special register, or two.
pub(crate) fn special(register: hotswap_isa::reg::Special, count: u8) -> OperandArg {
    Reg::special(register, count).into()
}

/// A place in the code that branches lead to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Label(usize);

/// A branch whose distance is not known yet.
#[derive(Debug)]
struct PendingBranch {
    /// Offset of the instruction.
    at: usize,
    to: Label,
}

/// The instructions of a processor by mnemonic.
#[derive(Debug)]
pub(crate) struct InstructionSet {
    pub(crate) processor: &'static Processor,
    pub(crate) isa: Isa,
    entries: HashMap<&'static str, Vec<TableEntry>>,
}

impl InstructionSet {
    /// The instructions of a processor.
    ///
    /// # Errors
    /// For processors without rows.
    pub(crate) fn new(processor: &'static Processor) -> Result<Self, ConfirmError> {
        let target = Target::find(processor.name).ok_or(ConfirmError::NoInstructions(processor.name))?;
        // 16-bit operands are whole registers: their bits are the same, and one name serves all generations.
        let isa = Isa::new(target).with_true16(false);
        let mut entries: HashMap<&'static str, Vec<TableEntry>> = HashMap::new();
        for entry in TableEntry::all_entries().filter(|entry| entry.available(isa)) {
            entries.entry(entry.mnemonic()).or_default().push(entry);
        }
        Ok(Self { processor, isa, entries })
    }

    /// The entries of the first of the names (separated by `|`) that the processor has, in the order of the classes.
    pub(crate) fn find_entries(&self, names: &str, classes: &[Class]) -> Vec<TableEntry> {
        for name in names.split('|') {
            let Some(entries) = self.entries.get(name) else { continue };
            let mut found: Vec<TableEntry> = Vec::new();
            for class in classes {
                found.extend(entries.iter().filter(|entry| entry.class() == Some(*class)));
            }
            if !found.is_empty() {
                return found;
            }
        }
        Vec::new()
    }

    /// Dwords of a mask of lanes.
    pub(crate) fn mask_words(&self) -> u8 {
        if self.isa.wave() == Wave::W32 { 1 } else { 2 }
    }

    pub(crate) fn has(&self, capability: Capability) -> bool {
        self.processor.has(capability)
    }
}

/// Code that is being written.
#[derive(Debug)]
pub(crate) struct Assembler<'s> {
    pub(crate) set: &'s InstructionSet,
    code: Vec<u8>,
    /// The offset of each label, once it is placed.
    labels: Vec<Option<usize>>,
    branches: Vec<PendingBranch>,
}

impl<'s> Assembler<'s> {
    pub(crate) fn new(set: &'s InstructionSet) -> Self {
        Self { set, code: Vec::new(), labels: Vec::new(), branches: Vec::new() }
    }

    /// Writes an instruction by the first of its names that the processor has, and waits.
    pub(crate) fn put(&mut self, names: &str, args: &[NamedArg]) -> Result<(), ConfirmError> {
        self.put_in(names, PLAIN_CLASSES, args)
    }

    /// The same, in one of these encodings.
    pub(crate) fn put_in(&mut self, names: &str, classes: &[Class], args: &[NamedArg]) -> Result<(), ConfirmError> {
        let entries = self.set.find_entries(names, classes);
        self.put_first(entries, args).map_err(|error| named_error(error, names))
    }

    /// Writes the first of these entries that takes the operands, and waits.
    pub(crate) fn put_first(
        &mut self,
        entries: impl IntoIterator<Item = TableEntry>,
        args: &[NamedArg],
    ) -> Result<(), ConfirmError> {
        let inst = self.encode_first(entries, args)?;
        self.push(&inst);
        self.settle()
    }

    fn encode_first(
        &self,
        entries: impl IntoIterator<Item = TableEntry>,
        args: &[NamedArg],
    ) -> Result<Inst, ConfirmError> {
        let mut reason = EncodeError::UnknownInstruction;
        for entry in entries {
            match encode_entry(self.set.isa, entry, args) {
                Ok(inst) => return Ok(inst),
                Err(error) => reason = error,
            }
        }
        Err(ConfirmError::NotEncoded { processor: self.set.processor.name, names: String::new(), reason })
    }

    pub(crate) fn push(&mut self, inst: &Inst) {
        self.code.extend_from_slice(&inst.bytes()[..usize::from(inst.len())]);
    }

    /// Waits until the instruction before has no effect on the next one but its results.
    pub(crate) fn settle(&mut self) -> Result<(), ConfirmError> {
        for _ in 0..2 {
            self.put_plain("s_nop", 7)?;
        }
        // Each clears one counter of dependencies: results of vector instructions in vector and scalar registers, in VCC,
        // and results of scalar ones.
        for counters in [0x0fff, 0xf1ff, 0xfffd, 0xfffe] {
            if !self.set.find_entries("s_wait_alu|s_waitcnt_depctr", &[Class::Sopp]).is_empty() {
                self.put_plain("s_wait_alu|s_waitcnt_depctr", counters)?;
            }
        }
        Ok(())
    }

    /// Waits for all loads and stores.
    pub(crate) fn wait_memory(&mut self) -> Result<(), ConfirmError> {
        if self.set.find_entries("s_wait_loadcnt", &[Class::Sopp]).is_empty() {
            self.put_plain("s_waitcnt", 0)?;
            if !self.set.find_entries("s_waitcnt_vscnt", &[Class::Sopk]).is_empty() {
                let null = special(hotswap_isa::reg::Special::Null, 1);
                let args = [arg(Name::Sdst, null), arg(Name::Simm16, OperandArg::Number(0))];
                return self.put_in("s_waitcnt_vscnt", &[Class::Sopk], &args);
            }
            return Ok(());
        }
        for name in ["s_wait_loadcnt", "s_wait_storecnt", "s_wait_dscnt", "s_wait_kmcnt"] {
            self.put_plain(name, 0)?;
        }
        Ok(())
    }

    /// A barrier of the work-group, after all its memory operations.
    pub(crate) fn barrier(&mut self) -> Result<(), ConfirmError> {
        self.wait_memory()?;
        if !self.set.find_entries("s_barrier", &[Class::Sopp]).is_empty() {
            return self.put_plain("s_barrier", 0);
        }
        self.put("s_barrier_signal", &[arg(Name::Src0, OperandArg::Inline(ALL_WAVES))])?;
        self.put_plain("s_barrier_wait", -1)
    }

    /// Writes an instruction that has no operand but a number, if it has that, without waiting after it.
    fn put_plain(&mut self, names: &str, number: i64) -> Result<(), ConfirmError> {
        let entries = self.set.find_entries(names, &[Class::Sopp]);
        let numbered = entries.first().is_some_and(|entry| entry.slot(Name::Simm16).is_some());
        let args: &[NamedArg] = if numbered { &[arg(Name::Simm16, OperandArg::Number(number))] } else { &[] };
        let inst = self.encode_first(entries, args).map_err(|error| named_error(error, names))?;
        self.push(&inst);
        Ok(())
    }

    pub(crate) fn new_label(&mut self) -> Label {
        self.labels.push(None);
        Label(self.labels.len() - 1)
    }

    /// Places a label here.
    pub(crate) fn place_label(&mut self, label: Label) {
        self.labels[label.0] = Some(self.code.len());
    }

    /// A branch to a label.
    pub(crate) fn branch(&mut self, name: &str, to: Label) -> Result<(), ConfirmError> {
        self.branches.push(PendingBranch { at: self.code.len(), to });
        self.put_plain(name, 1)?;
        self.settle()
    }

    /// Ends the kernel; returns its code.
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, ConfirmError> {
        self.wait_memory()?;
        self.put_plain("s_endpgm", 0)?;
        for branch in &self.branches {
            let target = self.labels[branch.to.0].ok_or(ConfirmError::BranchTarget)?;
            let words = (target as i64 - branch.at as i64) / 4 - 1;
            // gfx10.1 misreads this distance.
            let distance =
                i16::try_from(words).ok().filter(|words| *words != 0x3f).ok_or(ConfirmError::BranchTarget)?;
            self.code[branch.at..branch.at + 2].copy_from_slice(&distance.to_le_bytes());
        }
        // The processor fetches code beyond the end.
        for _ in 0..64 {
            self.put_plain("s_code_end|s_nop", 0)?;
        }
        Ok(self.code)
    }
}

/// An error with the names of the instruction that was to be written.
fn named_error(error: ConfirmError, own: &str) -> ConfirmError {
    match error {
        ConfirmError::NotEncoded { processor, reason, .. } => {
            ConfirmError::NotEncoded { processor, names: own.to_owned(), reason }
        }
        other => other,
    }
}

/// An instruction of exactly this entry.
pub(crate) fn encode_entry(isa: Isa, entry: TableEntry, args: &[NamedArg]) -> Result<Inst, EncodeError> {
    let class = entry.class().ok_or(EncodeError::UnknownInstruction)?;
    let args: Vec<_> = args.iter().map(|arg| (arg.name, arg.value)).collect();
    build_among(isa, (entry.mnemonic(), class), &args, std::iter::once(entry))
}
