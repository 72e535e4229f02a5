//! Reaching definitions within a block: the last instruction that may have written a register, and what follows from it.
//!
//! Invariants: a claim holds on every path to the end of the code, in every lane that is active there. An instruction that is not
//! understood gives the weakest claim. The search stops at a change of the bank mode, and for vector registers at a
//! change of EXEC: a write under a smaller EXEC leaves old values in the other lanes.

use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::{ControlFlow, ImplicitSet, bank_role};
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Flag, Inst, Isa, Name, OperandValue};
use std::cell::RefCell;
use std::collections::HashMap;

/// Through how many operations the bits of a register are followed. Instructions lack such a limit: code that
/// grows between two of them must not change what is known.
const DEPTH: u32 = 6;

/// Cached results for one offset of a block. For the next one, only the instructions in between are examined.
#[derive(Debug, Clone, Default)]
pub struct LastDefs {
    writers: RefCell<Vec<FoundWriter>>,
    zeros: RefCell<HashMap<FollowedWriter, u32>>,
}

/// A writer by its number, the register, and the operations that may still be followed.
type FollowedWriter = (usize, Reg, u32);

/// The writer of a register before instruction number `end`, under a bank mode.
#[derive(Debug, Clone, Copy)]
struct FoundWriter {
    reg: Reg,
    banks: VgprBanks,
    end: usize,
    writer: Option<usize>,
}

/// An instruction that may write a register.
#[derive(Clone, Copy)]
struct WriterInst<'a> {
    /// Its number in the code.
    index: usize,
    inst: &'a Inst,
}

/// Asks for low bits of the operands of one instruction that are zero.
struct OperandZeros<'q, 'a> {
    defs: &'q ReachingDefs<'a>,
    cache: Option<&'q LastDefs>,
    writer: WriterInst<'q>,
    /// The operations that may still be followed.
    depth: u32,
}

impl OperandZeros<'_, '_> {
    fn of(&self, name: Name) -> u32 {
        self.defs.operand_zeros(self.cache, self.writer, name, self.depth)
    }
}

impl LastDefs {
    /// The most registers that are cached: addresses are in few.
    const MOST: usize = 16;

    /// Clears the cache at the start of another block.
    pub fn clear(&mut self) {
        self.writers.get_mut().clear();
        self.zeros.get_mut().clear();
    }
}

/// The most low zero bits that are counted: no access is wider than 16 bytes.
const MOST: u32 = 4;

/// The instructions of a block before an offset, nearest last. Only the first may be a branch target.
#[derive(Debug, Clone, Copy)]
pub struct ReachingDefs<'a> {
    /// The instruction set of the code.
    pub isa: Isa,
    /// The bank mode after the last instruction.
    pub banks: VgprBanks,
    /// The instructions. May be empty.
    pub before: &'a [Inst],
}

impl<'a> ReachingDefs<'a> {
    /// The nearest instruction that may write `reg` (physical).
    pub fn last_def(&self, cache: Option<&LastDefs>, reg: Reg) -> Option<&'a Inst> {
        self.last_writer(cache, reg).map(|writer| writer.inst)
    }

    /// A power of two that divides the value of a VGPR (physical) in every active lane; 1 if nothing is known.
    pub fn known_alignment(&self, cache: Option<&LastDefs>, reg: Reg) -> u32 {
        1 << self.zeros_of(cache, self.last_writer(cache, reg), reg, DEPTH)
    }

    /// The nearest instruction that may write `reg`, with its number.
    fn last_writer(&self, cache: Option<&LastDefs>, reg: Reg) -> Option<WriterInst<'a>> {
        let end = self.before.len();
        let Some(mut cache) = cache.and_then(|cache| cache.writers.try_borrow_mut().ok()) else {
            return self.find_writer(end, reg);
        };
        let known = cache.iter().position(|found| found.reg == reg && found.banks == self.banks && found.end <= end);
        let writer = match known.map(|known| cache[known]) {
            Some(found) => match self.find_last_write(found.end, end, reg) {
                LookbackResult::Nothing => found.writer,
                LookbackResult::Writer(writer) => Some(writer),
                LookbackResult::End => None,
            },
            None => self.find_writer(end, reg).map(|writer| writer.index),
        };
        let found = FoundWriter { reg, banks: self.banks, end, writer };
        match known {
            Some(known) => cache[known] = found,
            None if cache.len() < LastDefs::MOST => cache.push(found),
            None => {}
        }
        writer.and_then(|index| Some(WriterInst { index, inst: self.before.get(index)? }))
    }

    /// The nearest instruction before number `end` that may write `reg`.
    fn find_writer(&self, end: usize, reg: Reg) -> Option<WriterInst<'a>> {
        match self.find_last_write(0, end, reg) {
            LookbackResult::Writer(index) => Some(WriterInst { index, inst: self.before.get(index)? }),
            LookbackResult::Nothing | LookbackResult::End => None,
        }
    }

    /// The nearest instruction that may write `reg`, from number `start` to before number `end`.
    fn find_last_write(&self, start: usize, end: usize, reg: Reg) -> LookbackResult {
        let vector = reg.file == RegFile::Vgpr;
        for (index, inst) in self.before.get(start..end).unwrap_or_default().iter().enumerate().rev() {
            // Most vector and memory instructions write other registers, and no register set is needed to tell.
            if vector && !inst.is(Flag::Salu) && !inst.is(Flag::Indexed) && self.writes_others(inst, reg) {
                continue;
            }
            let written = inst.written_set(self.isa, self.banks);
            if written.touches(reg) {
                return LookbackResult::Writer(start + index);
            }
            let exec = written.touches(Reg::special(Special::ExecLo, 1));
            if vector && (exec || written.touches(Reg::special(Special::Mode, 1)))
                || inst.control_flow(0, self.isa) != ControlFlow::Next
            {
                return LookbackResult::End;
            }
        }
        LookbackResult::Nothing
    }

    /// Whether an instruction writes nothing but vector registers, and none of `reg`'s.
    fn writes_others(&self, inst: &Inst, reg: Reg) -> bool {
        let mut others = true;
        let own = reg.index..reg.index + u16::from(reg.count);
        let implicit = inst.visit(self.isa, |effect| {
            if !effect.written() || effect.is_none() {
                return;
            }
            others &= self.banks.resolve_register(effect.reg(), effect.role()).is_some_and(|written| {
                let end = written.index + u16::from(written.count);
                written.file == RegFile::Vgpr && (end <= own.start || own.end <= written.index)
            });
        });
        others && implicit.writes == ImplicitSet::default() && inst.control_flow(0, self.isa) == ControlFlow::Next
    }

    /// Low bits of `reg` before number `end` that are zero.
    fn trailing_zeros_before(&self, cache: Option<&LastDefs>, end: usize, reg: Reg, depth: u32) -> u32 {
        self.zeros_of(cache, self.find_writer(end, reg), reg, depth)
    }

    /// Low bits of `reg` that are zero after its writer.
    fn zeros_of(&self, cache: Option<&LastDefs>, writer: Option<WriterInst<'_>>, reg: Reg, depth: u32) -> u32 {
        let Some(writer) = writer.filter(|_| depth > 0) else { return 0 };
        let key = (writer.index, reg, depth);
        if let Some(known) = cache.and_then(|cache| cache.zeros.try_borrow().ok()?.get(&key).copied()) {
            return known;
        }
        let bits = self.computed_zeros(cache, writer, reg, depth);
        if let Some(mut known) = cache.and_then(|cache| cache.zeros.try_borrow_mut().ok()) {
            known.insert(key, bits);
        }
        bits
    }

    /// The same, from the operands of the writer.
    fn computed_zeros(&self, cache: Option<&LastDefs>, writer: WriterInst<'_>, reg: Reg, depth: u32) -> u32 {
        let inst = writer.inst;
        let dst = self.banks.resolve_register(reg_of(inst.operand(self.isa, Name::Vdst)), role_of(inst, Name::Vdst));
        if dst != Some(reg) || !is_plain(inst) {
            return 0;
        }
        let zeros = OperandZeros { defs: self, cache, writer, depth: depth - 1 };
        let bits = match inst.mnemonic() {
            "v_mov_b32" => zeros.of(Name::Src0),
            "v_lshlrev_b32" => add_shifted_zeros(zeros.of(Name::Src1), self.constant_operand(inst, Name::Src0)),
            "v_add_nc_u32" | "v_or_b32" | "v_xor_b32" | "v_sub_nc_u32" => {
                zeros.of(Name::Src0).min(zeros.of(Name::Src1))
            }
            "v_and_b32" => zeros.of(Name::Src0).max(zeros.of(Name::Src1)),
            "v_mul_lo_u32" | "v_mul_u32_u24" => zeros.of(Name::Src0) + zeros.of(Name::Src1),
            "v_lshl_add_u32" | "v_lshl_or_b32" => {
                add_shifted_zeros(zeros.of(Name::Src0), self.constant_operand(inst, Name::Src1))
                    .min(zeros.of(Name::Src2))
            }
            "v_add_lshl_u32" => add_shifted_zeros(
                zeros.of(Name::Src0).min(zeros.of(Name::Src1)),
                self.constant_operand(inst, Name::Src2),
            ),
            "v_mad_u32_u24" => (zeros.of(Name::Src0) + zeros.of(Name::Src1)).min(zeros.of(Name::Src2)),
            "v_and_or_b32" => zeros.of(Name::Src0).max(zeros.of(Name::Src1)).min(zeros.of(Name::Src2)),
            "v_add3_u32" => zeros.of(Name::Src0).min(zeros.of(Name::Src1)).min(zeros.of(Name::Src2)),
            _ => 0,
        };
        bits.min(MOST)
    }

    /// Low bits of an operand of an instruction that are zero.
    fn operand_zeros(&self, cache: Option<&LastDefs>, user: WriterInst<'_>, name: Name, depth: u32) -> u32 {
        let WriterInst { index, inst } = user;
        if let Some(value) = self.constant_operand(inst, name) {
            return value.trailing_zeros().min(MOST);
        }
        match self.banks.resolve_register(reg_of(inst.operand(self.isa, name)), role_of(inst, name)) {
            Some(reg) if reg.file == RegFile::Vgpr && reg.count == 1 && reg.half.is_none() => {
                self.trailing_zeros_before(cache, index, reg, depth)
            }
            _ => 0,
        }
    }

    fn constant_operand(&self, inst: &Inst, name: Name) -> Option<u32> {
        match inst.operand(self.isa, name)? {
            OperandValue::Inline(inline) => Some(inline.value as u32),
            OperandValue::Literal(literal) => Some(literal.value as u32),
            _ => None,
        }
    }
}

fn add_shifted_zeros(value: u32, by: Option<u32>) -> u32 {
    by.map_or(0, |by| (value + (by & 31)).min(MOST))
}

/// Whether the result is the operation on the plain operands: no lane takes a value of another lane or keeps its old
/// one (DPP), no operand is a byte or word of a register (SDWA), and nothing is clamped. Mnemonics do not tell.
fn is_plain(inst: &Inst) -> bool {
    let changed = inst.is(Flag::Dpp) || inst.is(Flag::Sdwa);
    !changed && inst.raw(Name::Clamp).unwrap_or(0) == 0
}

/// The result of looking back.
enum LookbackResult {
    Nothing,
    Writer(usize),
    /// Nothing is known beyond it.
    End,
}

/// The register, or one that no instruction names.
fn reg_of(value: Option<OperandValue>) -> Reg {
    match value {
        Some(OperandValue::Reg(reg)) => reg,
        _ => Reg::new(RegFile::Special, u16::MAX, 1),
    }
}

fn role_of(inst: &Inst, name: Name) -> Option<hotswap_isa::bank::BankRole> {
    let entry = inst.entry();
    let slot = entry.slots().iter().position(|slot| slot.name == name)?;
    bank_role(entry, slot as u8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa::{TableEntry, Target};

    /// Random code in which most instructions write one of few registers, some the mode or EXEC, and some branch.
    fn code(isa: Isa, mut random: impl FnMut(usize) -> usize) -> Vec<Inst> {
        let named = |names: &[&str]| {
            let all =
                TableEntry::all_entries().filter(|entry| entry.available(isa) && names.contains(&entry.mnemonic()));
            all.collect::<Vec<TableEntry>>()
        };
        let common = named(&["v_mov_b32", "v_add_nc_u32", "v_lshlrev_b32", "ds_load_b64", "s_mov_b32", "s_mov_b64"]);
        let rare = named(&["s_set_vgpr_msb", "s_branch", "v_movreld_b32", "v_cmp_eq_u32"]);
        let mut code = Vec::new();
        while code.len() < 600 {
            let entries = if random(20) == 0 { &rare } else { &common };
            let entry = entries[random(entries.len())];
            let (value, mask) = entry.fixed();
            let wild =
                (0..16).fold(0, |bits, _| bits << 8 | random(256) as u128) & 0x0003_0303_0f7f_0003_0303_0f7f_017f_0f7f;
            let bytes = (wild & !mask | value).to_le_bytes();
            code.extend(isa.decode(&bytes).ok().filter(|inst| inst.entry() == entry));
        }
        code
    }

    /// Every encoding of every operation that alignment is followed through, with DPP or SDWA, on all
    /// targets that have one.
    #[test]
    fn nothing_is_known_behind_operations_between_lanes() {
        const FOLLOWED: [&str; 8] = [
            "v_mov_b32",
            "v_lshlrev_b32",
            "v_and_b32",
            "v_add_nc_u32",
            "v_mul_u32_u24",
            "v_lshl_add_u32",
            "v_and_or_b32",
            "v_add3_u32",
        ];
        let mut seen = std::collections::BTreeSet::new();
        for name in ["gfx900", "gfx1030", "gfx1100", "gfx1201", "gfx1250"] {
            let isa = Isa::new(Target::find(name).unwrap());
            let changed = |entry: &TableEntry| entry.is(Flag::Dpp) || entry.is(Flag::Sdwa);
            let forms = TableEntry::all_entries().filter(|entry| entry.available(isa) && changed(entry));
            for entry in forms.filter(|entry| FOLLOWED.contains(&entry.mnemonic())) {
                let (value, mask) = entry.fixed();
                // Every register is v1 or s1, and every shift one of these.
                let bytes = (0x0101_0101_0101_0101_0001_0101_0101_0101_u128 & !mask | value).to_le_bytes();
                let Some(inst) = isa.decode(&bytes).ok().filter(|inst| inst.entry() == entry) else { continue };
                let Some(OperandValue::Reg(reg)) = inst.operand(isa, Name::Vdst) else { continue };
                let zero = isa.decode(&[0x80, 0x02, 0x02, 0x7e]).unwrap();
                let before = [zero, inst];
                let look = ReachingDefs { isa, banks: VgprBanks::ENTRY, before: &before };
                assert_eq!(look.trailing_zeros_before(None, 2, reg, DEPTH), 0, "{inst:?} on {name}");
                seen.insert((entry.mnemonic(), entry.is(Flag::Sdwa)));
            }
        }
        assert!(seen.len() > 8 && seen.contains(&("v_mov_b32", true)), "{seen:?}");
    }

    #[test]
    fn what_is_remembered_is_what_would_be_found() {
        let isa = Isa::new(Target::find("gfx1250").unwrap());
        let mut state = 1_u64;
        let mut random = move |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let (mut found, mut near) = (0, 0);
        for _ in 0..20 {
            let code = code(isa, &mut random);
            let cache = LastDefs::default();
            let mut banks = VgprBanks::ENTRY;
            for end in 0..=code.len() {
                let look = ReachingDefs { isa, banks, before: &code[..end] };
                let reg = match random(8) {
                    0 => Reg::special(Special::M0, 1),
                    1 => Reg::new(RegFile::Sgpr, random(16) as u16, 1),
                    _ => Reg::new(RegFile::Vgpr, random(16) as u16, 1 + random(2) as u8),
                };
                let place = |found: Option<WriterInst<'_>>| found.map(|writer| writer.index);
                let expected = place(look.find_writer(end, reg));
                assert_eq!(place(look.last_writer(Some(&cache), reg)), expected, "{end} {reg:?}");
                found += usize::from(expected.is_some());
                near += usize::from(expected.is_some_and(|place| place + 8 > end));
                banks = code.get(end).map_or(banks, |inst| banks.mode_after(inst, isa));
            }
        }
        assert!(found > 4_000 && found - near > 1_000, "{found} {near}");
    }
}
