//! One lane of a wave that runs single instructions on synthetic states.
//!
//! Instructions with which the families' replacements compute are run according to the instruction set. Everything else
//! is *opaque*: its results are a number that depends on the instruction's row, its modifiers, and all that it reads,
//! so that two sides agree exactly where they run the same instruction on the same values in the same order of memory
//! operations. Matrix instructions are opaque, too, by their formats, inputs and scales and not by their names: the one
//! of depth 128 is assumed to sum like the scaled one with neutral scales (`docs/evidence/verification.md`).
//!
//! Invariants: the same seed gives the same state. All lanes are active, and waits change nothing (they are judged
//! elsewhere). Control flow cannot be run.

use super::numbers;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::bank_role;
use hotswap_isa::reg::{Reg, RegFile, Special, VgprHalf};
use hotswap_isa::{Flag, Inst, Isa, Name, OperandValue};
use std::collections::BTreeMap;

/// The stepping on which an instruction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SteppingSide {
    /// The one for which it was compiled.
    Source,
    /// The one for which code is made.
    Target,
}

/// The state of a lane.
#[derive(Debug, Clone)]
pub(super) struct Machine {
    registers: BTreeMap<(RegFile, u16), u32>,
    lds: BTreeMap<u32, u8>,
    /// Slots of registers that the replacement spills, and the bytes that it stored to them.
    slots: Vec<u32>,
    spilled: BTreeMap<u32, u8>,
    /// Memory operations that are not plain accesses to LDS, in order, as one number.
    events: u64,
    banks: VgprBanks,
    lane: u32,
    seed: u32,
}

/// A number that depends on all of both.
fn mix_bits(seed: u64, value: u64) -> u64 {
    let x = (seed ^ value.wrapping_mul(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    (x ^ x >> 33).wrapping_mul(0xc4ce_b9fe_1a85_ec53) ^ x >> 29
}

/// Numbers at which conversions to small floats differ from their neighbours.
const CORNERS: [u32; 24] = [
    0,
    0x8000_0000,
    1,
    0x3f80_0000,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0x7f80_0001,
    0x3880_0000,
    0x387f_ffff,
    0x3680_0000,
    0x367f_ffff,
    0x3700_0000,
    0x3740_0000,
    0x47e0_0000,
    0x47df_ffff,
    0x47e8_0000,
    0x47e8_0001,
    0x477f_e000,
    0x477f_f000,
    0xc77f_f000,
    0x4800_0000,
    0xff,
    0xf7f8_0800,
];

impl Machine {
    pub(super) fn new(seed: u32, banks: VgprBanks) -> Self {
        // A role whose bank is not known has an arbitrary one.
        let known = hotswap_isa::bank::BankRole::ALL.map(|role| banks.bank(role));
        let any = mix_bits(u64::from(seed), 3) as u8;
        let mode = known
            .iter()
            .enumerate()
            .fold(0, |mode, (role, bank)| mode | (bank.unwrap_or(any >> (2 * role) & 3)) << (2 * role));
        let banks = if banks.mode().is_some() { banks } else { VgprBanks::of_mode(mode) };
        let (registers, lds, slots, spilled) = (BTreeMap::new(), BTreeMap::new(), Vec::new(), BTreeMap::new());
        Self { registers, lds, slots, spilled, events: 0, banks, lane: seed % 32, seed }
    }

    pub(super) fn banks(&self) -> VgprBanks {
        self.banks
    }

    /// The first dword of a register.
    pub(super) fn register_value(&self, reg: Reg) -> u32 {
        self.registers.get(&(reg.file, reg.index)).copied().unwrap_or_else(|| self.initial_value(reg.file, reg.index))
    }

    fn initial_value(&self, file: RegFile, index: u16) -> u32 {
        let value = mix_bits(u64::from(self.seed), u64::from(index) << 8 | file as u64);
        match (file, Special::ALL.get(usize::from(index))) {
            (RegFile::Special, Some(Special::ExecLo)) => u32::MAX,
            (RegFile::Special, Some(Special::ExecHi | Special::Null)) => 0,
            (RegFile::Special, Some(Special::Scc)) => value as u32 & 1,
            // Rounding to the nearest even and denormals kept, as compilers set it; FP16_OVFL is either.
            (RegFile::Special, Some(Special::Mode)) => 0xf0 | (self.seed >> 1 & 1) << 23,
            (RegFile::Vgpr, _) => self.vector_value(value),
            _ => value as u32,
        }
    }

    /// Corner cases, addresses near each other, and arbitrary numbers.
    fn vector_value(&self, value: u64) -> u32 {
        let (number, choice) = (value as u32, value >> 59);
        match choice {
            0..=5 => CORNERS[(value >> 32) as usize % CORNERS.len()].wrapping_add((value >> 40 & 3) as u32),
            6..=9 => number & 0xfff,
            // Floats in the range of small formats, at ties and beyond them by each bit: a tie that loses one is rounded otherwise.
            10..=21 => {
                let tie = match value >> 48 & 7 {
                    0 => 0,
                    1 => 0x7_ffff,
                    2 => 0x8_0000,
                    3..=5 => 0x8_0000 | 1 << ((value >> 40) % 20),
                    6 => 0xf_ffff,
                    _ => number & 0xf_ffff,
                };
                (0x3500_0000 + (number >> 3) % 0x1400_0000) & 0xfff0_0000 | tie | (number & 1) << 31
            }
            _ => number,
        }
    }

    /// Gives a register a value before the first instruction runs.
    pub(super) fn set_initial(&mut self, reg: Reg, value: u32) {
        self.set_dword(reg, 0, value);
    }

    fn set_dword(&mut self, reg: Reg, dword: u16, value: u32) {
        let value = if reg.is(Special::Null) { 0 } else { value };
        self.registers.insert((reg.file, reg.index + dword), value);
    }

    /// Whether both have had the same effects on memory.
    pub(super) fn same_memory(&self, other: &Self) -> Result<(), String> {
        if self.events != other.events {
            return Err("the memory operations of the replacement are others".to_owned());
        }
        match self.lds == other.lds {
            true => Ok(()),
            false => Err(format!("the replacement stores something else to LDS (state {})", self.seed)),
        }
    }

    pub(super) fn run_instruction(&mut self, inst: &Inst, isa: Isa, side: SteppingSide) -> Result<(), String> {
        if inst.is(Flag::Branch) || inst.is(Flag::Call) || inst.is(Flag::Return) || inst.is(Flag::Terminator) {
            return Err(format!("`{}` transfers control elsewhere, and cannot be evaluated here", inst.mnemonic()));
        }
        if !super::site::is_idle(inst) && inst.mnemonic() != "s_set_vgpr_msb" {
            let line = InstructionContext { inst, isa, banks: self.banks };
            let known = super::meaning::run_known(self, &line, side)?;
            if !known {
                self.run_opaque(&line)?;
            }
        }
        self.banks = self.banks.mode_after(inst, isa);
        Ok(())
    }

    /// An instruction of which only the dependence on its inputs is known.
    fn run_opaque(&mut self, line: &InstructionContext<'_>) -> Result<(), String> {
        let (inst, isa) = (line.inst, line.isa);
        if inst.is(Flag::Indexed) {
            return Err(format!("`{}` names registers by M0", inst.mnemonic()));
        }
        let mut key = hash_text(inst.mnemonic());
        for operand in inst.operands(isa) {
            key = mix_bits(key, hash_text(operand.name.as_str()));
            if operand.access == hotswap_isa::OperandAccess::Write {
                continue;
            }
            key = self
                .operand_dwords(line, operand.name)
                .into_iter()
                .fold(key, |key, dword| mix_bits(key, u64::from(dword)));
        }
        for effect in inst.reads(isa).filter(|effect| effect.slot.is_none() && !effect.reg.is(Special::Mode)) {
            let dwords =
                (0..u16::from(effect.reg.count)).map(|dword| Reg { index: effect.reg.index + dword, ..effect.reg });
            key = dwords.fold(key, |key, reg| mix_bits(key, u64::from(self.register_value(reg))));
        }
        // Writes of MODE keep their order, too.
        let sets_mode = inst.writes(isa).any(|effect| effect.reg.is(Special::Mode))
            || inst.written_set(isa, line.banks).touches(Reg::special(Special::Mode, 1));
        if inst.memory_access().is_some() || sets_mode {
            self.events = mix_bits(self.events, key);
            key = self.events;
        }
        self.write_results(line, key)
    }

    /// Numbers that depend on `key` in everything that an instruction writes.
    fn write_results(&mut self, line: &InstructionContext<'_>, key: u64) -> Result<(), String> {
        let writes: Vec<_> = line.inst.writes(line.isa).collect();
        for (number, effect) in writes.iter().enumerate() {
            let Some(reg) = line.banks.resolve_register(effect.reg, effect.role) else {
                return Err(format!("the bank of a register of `{}` is not known", line.inst.mnemonic()));
            };
            if reg.is(Special::Mode) {
                continue;
            }
            for dword in 0..u16::from(reg.count) {
                let old = self.register_value(Reg { index: reg.index + dword, ..reg });
                let key = if effect.partial { mix_bits(key, u64::from(old)) } else { key };
                self.set_dword(reg, dword, mix_bits(key, (number as u64) << 16 | u64::from(dword)) as u32);
            }
        }
        Ok(())
    }

    /// The dwords that an operand denotes.
    pub(super) fn operand_dwords(&self, line: &InstructionContext<'_>, name: Name) -> Vec<u32> {
        match line.inst.operand(line.isa, name) {
            Some(OperandValue::Reg(reg)) => {
                let reg = match line.physical_register(name, reg) {
                    // As 64 bits either half of the scratch base is the whole of it.
                    reg if reg == Reg::special(Special::FlatScratchBaseHi, 2) => {
                        Reg::special(Special::FlatScratchBaseLo, 2)
                    }
                    reg => reg,
                };
                (0..u16::from(reg.count))
                    .map(|dword| self.operand_half(Reg { index: reg.index + dword, count: 1, ..reg }))
                    .collect()
            }
            Some(OperandValue::Inline(inline)) => vec![inline.value as u32, (inline.value >> 32) as u32],
            Some(OperandValue::Literal(literal)) => vec![literal.value as u32, (literal.value >> 32) as u32],
            Some(OperandValue::Imm(number)) => vec![number as u32, (number >> 32) as u32],
            Some(OperandValue::None) | None => Vec::new(),
        }
    }

    fn operand_half(&self, reg: Reg) -> u32 {
        let value = self.register_value(reg);
        match reg.half {
            Some(VgprHalf::Low) => value & 0xffff,
            Some(VgprHalf::High) => value >> 16,
            None => value,
        }
    }

    /// The first dword of an operand.
    pub(super) fn read_operand(&self, line: &InstructionContext<'_>, name: Name) -> u32 {
        self.operand_dwords(line, name).first().copied().unwrap_or(0)
    }

    /// Writes dwords to an operand.
    pub(super) fn write_operand(
        &mut self,
        line: &InstructionContext<'_>,
        name: Name,
        values: &[u32],
    ) -> Result<(), String> {
        let Some(OperandValue::Reg(reg)) = line.inst.operand(line.isa, name) else {
            return Err(format!("`{}` has no result", line.inst.mnemonic()));
        };
        let reg = line.physical_register(name, reg);
        if values.len() != usize::from(reg.count) {
            return Err(format!("`{}` has a result of {} registers", line.inst.mnemonic(), reg.count));
        }
        for (dword, value) in (0..).zip(values) {
            let old = self.register_value(Reg { index: reg.index + dword, ..reg });
            let value = match reg.half {
                Some(VgprHalf::Low) => old & 0xffff_0000 | value & 0xffff,
                Some(VgprHalf::High) => old & 0xffff | value << 16,
                None => *value,
            };
            self.set_dword(reg, dword, value);
        }
        Ok(())
    }

    pub(super) fn mode(&self) -> u32 {
        self.register_value(Reg::special(Special::Mode, 1))
    }

    pub(super) fn m0(&self) -> u32 {
        self.register_value(Reg::special(Special::M0, 1))
    }

    pub(super) fn lane(&self) -> u32 {
        self.lane
    }

    /// A memory operation that is not a plain access to LDS; writes its results.
    pub(super) fn record_event(&mut self, line: &InstructionContext<'_>, key: u64) -> Result<(), String> {
        self.events = mix_bits(self.events, key);
        self.write_results(line, self.events)
    }

    /// States the offsets in the private segment to which registers may be spilled.
    pub(super) fn spills_to(&mut self, slots: &[u32]) {
        self.slots = slots.to_vec();
    }

    /// Whether an offset in the private segment is that of a slot.
    pub(super) fn has_slot(&self, offset: u32) -> bool {
        self.slots.contains(&offset)
    }

    /// Stores a dword to a slot.
    pub(super) fn store_slot(&mut self, offset: u32, value: u32) {
        self.spilled.extend((offset..).zip(value.to_le_bytes()));
    }

    /// The dword of a slot; `None` if not all of it was stored.
    pub(super) fn load_slot(&self, offset: u32) -> Option<u32> {
        let bytes: Option<Vec<u8>> = (offset..offset + 4).map(|at| self.spilled.get(&at).copied()).collect();
        Some(u32::from_le_bytes(bytes?.try_into().ok()?))
    }

    pub(super) fn load_lds(&self, address: u32) -> u32 {
        (0..4).map(|one| load_lds_byte(one, self, address)).sum()
    }

    pub(super) fn store_lds(&mut self, address: u32, value: u32) {
        for (offset, byte) in (0..).zip(value.to_le_bytes()) {
            self.lds.insert(address.wrapping_add(offset), byte);
        }
    }

    /// The sum of a matrix instruction in one of its registers, as a float that is usually in range.
    pub(super) fn matrix_sum(&self, key: u64, register: u32) -> u32 {
        let value = mix_bits(mix_bits(key, 0x77), u64::from(register));
        match value >> 60 {
            0 => CORNERS[(value >> 32) as usize % CORNERS.len()],
            1..=5 => numbers::from_half((value >> 8) as u16),
            _ => (value as u32 & 0x87ff_ffff) | 0x4000_0000 & (value >> 3) as u32 | 0x3800_0000,
        }
    }
}

fn load_lds_byte(offset: u32, machine: &Machine, address: u32) -> u32 {
    let at = address.wrapping_add(offset);
    u32::from(machine.lds.get(&at).copied().unwrap_or_else(|| mix_bits(u64::from(!machine.seed), u64::from(at)) as u8))
        << (8 * offset)
}

/// An instruction in its context.
pub(super) struct InstructionContext<'l> {
    pub(super) inst: &'l Inst,
    pub(super) isa: Isa,
    pub(super) banks: VgprBanks,
}

impl InstructionContext<'_> {
    fn physical_register(&self, name: Name, reg: Reg) -> Reg {
        let slot = self.inst.entry().slots().iter().position(|slot| slot.name == name);
        let role = slot.and_then(|slot| bank_role(self.inst.entry(), slot as u8));
        self.banks.resolve_register(reg, role).unwrap_or(reg)
    }

    pub(super) fn raw(&self, name: Name) -> u64 {
        self.inst.raw(name).unwrap_or(0)
    }
}

/// A number for a text.
pub(super) fn hash_text(text: &str) -> u64 {
    text.bytes().fold(0x1234, |key, byte| mix_bits(key, u64::from(byte)))
}

/// A number for several.
pub(super) fn hash_values(key: u64, values: &[u32]) -> u64 {
    values.iter().fold(key, |key, value| mix_bits(key, u64::from(*value)))
}
