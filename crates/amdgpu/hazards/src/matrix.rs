//! Matrix instructions: the registers to which others must keep a distance, and that distance.
//!
//! Invariants: the registers are those that the operands name, under the bank mode before the instruction; an unknown
//! bank means all of them.

use crate::class::{InstClass, counts_towards_distance, is_matrix};
use crate::table::{Requirement, rules_for};
use hotswap_isa::bank::{BankRole, VgprBanks};
use hotswap_isa::effects::bank_role;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Flag, Inst, Isa, Name, OperandValue};

/// The required number of vector instructions in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spacing {
    /// Before a vector instruction that touches the registers.
    pub vector: u8,
    /// Before a matrix instruction that reads the result as A, B or index.
    pub matrix: u8,
}

impl Spacing {
    /// The distances that the table requires after a matrix instruction on `isa`; `None` for all others.
    #[must_use]
    pub fn after_instruction(inst: &Inst, isa: Isa) -> Option<Self> {
        if !is_matrix(inst) {
            return None;
        }
        let mut spacing = Self { vector: 0, matrix: 0 };
        for rule in rules_for(isa) {
            let Requirement::VectorInsts(count) = rule.requirement else { continue };
            let distance = match rule.consumer {
                InstClass::VectorBesideMatrix => &mut spacing.vector,
                InstClass::Matrix => &mut spacing.matrix,
                _ => continue,
            };
            // Last, because it looks at operands.
            if rule.producer.contains(inst, isa) {
                *distance = count;
            }
        }
        Some(spacing).filter(|spacing| spacing.matrix > 0)
    }
}

/// Vector registers by number, a half-open range: in one bank, or at the same position of every bank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
struct BankedRange {
    first: u16,
    end: u16,
    everywhere: bool,
}

/// Banks give 1024 registers; none exist beyond.
const REGISTERS: u16 = 1024;
const BANK: u16 = 256;

impl BankedRange {
    /// The denoted register; where its bank is not known, those of every bank.
    fn of_register(banks: VgprBanks, reg: Reg, role: Option<BankRole>) -> Self {
        let known = banks.resolve_register(reg, role);
        let Reg { index, count, .. } = known.unwrap_or(reg);
        Self { first: index, end: index + u16::from(count), everywhere: known.is_none() }
    }

    fn overlaps_range(self, other: Self) -> bool {
        if self.everywhere | other.everywhere {
            return self
                .possible_ranges()
                .any(|(first, end)| other.possible_ranges().any(|(from, to)| first < to && from < end));
        }
        self.first < other.end.min(REGISTERS) && other.first < self.end.min(REGISTERS)
    }

    /// The range in each bank that it may be in.
    fn possible_ranges(self) -> impl Iterator<Item = (u16, u16)> {
        let banks = if self.everywhere { 0..REGISTERS / BANK } else { 0..1 };
        banks.map(move |bank| (banked_register_number(self.first, bank), banked_register_number(self.end, bank)))
    }

    /// A coarser form: a bit for every sixteen registers. Ranges without a common bit do not overlap.
    fn group_mask(self) -> u64 {
        self.possible_ranges().fold(0, |all, one| all | register_group_bits(one))
    }
}

fn banked_register_number(register: u16, bank: u16) -> u16 {
    (register + bank * BANK).min(REGISTERS)
}

fn register_group_bits((first, end): (u16, u16)) -> u64 {
    match first < end {
        true => u64::MAX << (first / 16) & u64::MAX >> (63 - (end - 1) / 16),
        false => 0,
    }
}

/// Registers of matrix instructions, a bit for every sixteen: most instructions touch none of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RegisterFilter {
    result: u64,
    all: u64,
}

impl RegisterFilter {
    /// Adds those of another hazard.
    pub fn add(&mut self, hazard: &MatrixHazard) {
        self.result |= hazard.near.result;
        self.all |= hazard.near.all;
    }

    /// Whether an instruction may touch them.
    pub fn may_meet(self, touch: &RegisterTouch) -> bool {
        touch.everything || touch.read & self.result | touch.written & self.all != 0
    }

    /// Whether a matrix instruction may read a result among them.
    pub fn may_feed(self, next: &MatrixHazard) -> bool {
        self.result & next.read != 0
    }
}

/// Registers of a matrix instruction to which others must keep a distance.
#[derive(Debug, Clone, Copy)]
pub struct MatrixHazard {
    /// The distances that it requires.
    pub spacing: Spacing,
    /// Its result, A, B, and C or, of sparse ones, the index: the first `count`.
    registers: [BankedRange; MOST],
    count: u8,
    /// Bits of those that are its result, of A, B and index, and of C, which a matrix instruction may read at once.
    results: u8,
    inputs: u8,
    addends: u8,
    near: RegisterFilter,
    /// Groups of A, B and index.
    read: u64,
}

/// Four operands, one of which is read as well as written.
const MOST: usize = 5;

impl MatrixHazard {
    /// The hazard that a matrix instruction causes.
    pub fn of_instruction(inst: &Inst, isa: Isa, banks: VgprBanks) -> Option<Self> {
        let spacing = Spacing::after_instruction(inst, isa)?;
        let registers = [BankedRange::default(); MOST];
        let near = RegisterFilter::default();
        let mut hazard = Self { spacing, registers, count: 0, results: 0, inputs: 0, addends: 0, near, read: 0 };
        visit_operands(inst, isa, banks, |name, stretch| {
            hazard.add_operand(name == Name::Vdst, is_input(inst, name), stretch)
        });
        Some(hazard)
    }

    fn add_operand(&mut self, is_result: bool, is_input: bool, stretch: BankedRange) {
        let Some(free) = self.registers.get_mut(usize::from(self.count)) else { return };
        *free = stretch;
        self.results |= u8::from(is_result) << self.count;
        self.inputs |= u8::from(is_input) << self.count;
        self.addends |= u8::from(!is_input && !is_result) << self.count;
        self.near.result |= if is_result { stretch.group_mask() } else { 0 };
        self.read |= if is_input { stretch.group_mask() } else { 0 };
        self.near.all |= stretch.group_mask();
        self.count += 1;
    }

    /// Those whose bits are set.
    fn selected_registers(&self, bits: u8) -> impl Iterator<Item = BankedRange> + '_ {
        let numbered = self.registers.iter().enumerate();
        numbered.filter(move |(number, _)| bits >> number & 1 != 0).map(|(_, stretch)| *stretch)
    }

    /// The required number of instructions between it and one that touches registers this way.
    #[inline]
    pub fn required_distance(&self, touch: &RegisterTouch) -> u8 {
        let meets = touch.everything || self.near.may_meet(touch) && self.is_touched(touch);
        match meets {
            false => 0,
            true if touch.matrix => self.spacing.matrix,
            true => self.spacing.vector,
        }
    }

    fn is_touched(&self, touch: &RegisterTouch) -> bool {
        touch.registers.iter().any(|(written, reg)| {
            self.selected_registers(watched_register_groups(*written, self)).any(|own| own.overlaps_range(*reg))
        })
    }

    /// The required number between it and another matrix instruction.
    pub fn distance_to(&self, next: &Self) -> u8 {
        if self.near.may_feed(next) && reads_matrix_result(self, next) { self.spacing.matrix } else { 0 }
    }
}

fn watched_register_groups(written: bool, hazard: &MatrixHazard) -> u8 {
    if written { hazard.results | hazard.inputs | hazard.addends } else { hazard.results }
}

fn reads_matrix_result(hazard: &MatrixHazard, next: &MatrixHazard) -> bool {
    next.selected_registers(next.inputs)
        .any(|input| hazard.selected_registers(hazard.results).any(|own| own.overlaps_range(input)))
}

/// The effect of an instruction on registers that earlier matrix instructions may still use; empty if no distance is
/// required of it.
#[derive(Debug, Clone, Default)]
pub struct RegisterTouch {
    /// It is a matrix instruction itself: A, B and index count, C may follow at once.
    matrix: bool,
    /// An unknown index selects its registers.
    everything: bool,
    /// Vector registers, and whether they are written.
    registers: Vec<(bool, BankedRange)>,
    /// Groups of those that are read, and of those that are written.
    read: u64,
    written: u64,
}

impl RegisterTouch {
    /// Sets this for an instruction, under a bank mode; reuses the memory of another one, because there are many.
    pub fn set_instruction(&mut self, inst: &Inst, isa: Isa, banks: VgprBanks) {
        self.registers.clear();
        (self.matrix, self.everything, self.read, self.written) = (is_matrix(inst), false, 0, 0);
        if self.matrix {
            visit_operands(inst, isa, banks, |name, stretch| {
                if is_input(inst, name) {
                    self.add_range(false, stretch);
                }
            });
        } else if counts_towards_distance(inst) {
            self.everything = inst.is(Flag::Indexed);
            // Registers that are touched without being named are not vector registers.
            inst.visit(isa, |effect| {
                let reg = effect.reg();
                if reg.file != RegFile::Vgpr || effect.is_none() {
                    return;
                }
                self.add_range(effect.written(), BankedRange::of_register(banks, reg, effect.role()));
            });
        }
    }

    fn add_range(&mut self, written: bool, stretch: BankedRange) {
        *(if written { &mut self.written } else { &mut self.read }) |= stretch.group_mask();
        self.registers.push((written, stretch));
    }
}

/// A, B and, of sparse instructions, the index.
fn is_input(inst: &Inst, name: Name) -> bool {
    matches!(name, Name::Src0 | Name::Src1) || name == Name::Src2 && inst.is(Flag::Swmmac)
}

/// The vector registers that the operands of a matrix instruction name, as far as others must keep a distance to them.
fn visit_operands(inst: &Inst, isa: Isa, banks: VgprBanks, mut each: impl FnMut(Name, BankedRange)) {
    let entry = inst.entry();
    for (number, slot) in entry.slots().iter().enumerate() {
        if matches!(slot.name, Name::Vdst | Name::Src0 | Name::Src1 | Name::Src2)
            && let Some(OperandValue::Reg(reg)) = inst.operand(isa, slot.name)
            && reg.file == RegFile::Vgpr
        {
            each(slot.name, BankedRange::of_register(banks, reg, bank_role(entry, number as u8)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa::Target;
    use std::collections::BTreeMap;

    /// The registers are those that the operands name, whatever widths the formats imply.
    #[test]
    fn every_matrix_instruction_is_watched_by_its_operands() {
        let isa = Isa::new(Target::find("gfx1250").unwrap());
        let mut seen: BTreeMap<&str, u32> = BTreeMap::new();
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        };
        for op in 0..128_u32 {
            // VOP3P has eight bits; the scaled form is preceded by a pair of words.
            let plain = (0..2_000).map(|_| 0);
            let scaled =
                [0x35_u32, 0x3a].into_iter().flat_map(|scale| (0..2_000).map(move |_| 0xcc00_0000 | scale << 16));
            for prefix in plain.chain(scaled) {
                // Registers, mostly: other sources do not count.
                let sources = 0x0402_0100 | random() & 0xfbfd_feff;
                let pair = [0xcc00_0000 | op << 16 | random() & 0xffff, sources];
                let words = if prefix == 0 { [pair[0], pair[1], 0, 0] } else { [prefix, random(), pair[0], pair[1]] };
                let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let Some(inst) = isa.decode(&bytes).ok().filter(is_matrix) else { continue };
                let mode = VgprBanks::of_mode(random() as u8);
                compare(&inst, isa, if op % 2 == 0 { VgprBanks::UNKNOWN } else { mode });
                *seen.entry(inst.mnemonic()).or_default() += 1;
            }
        }
        assert!(seen.len() > 40 && seen.keys().any(|name| name.contains("_scale")), "{seen:?}");
    }

    fn is_named(name: Name) -> bool {
        matches!(name, Name::Vdst | Name::Src0 | Name::Src1 | Name::Src2)
    }

    fn compare(inst: &Inst, isa: Isa, banks: VgprBanks) {
        let mut expected = Vec::new();
        for (index, operand) in inst.operands(isa).enumerate() {
            let OperandValue::Reg(reg) = operand.value else { continue };
            let watched = is_named(operand.name);
            if watched && reg.file == RegFile::Vgpr {
                let role = bank_role(inst.entry(), index as u8);
                expected.push((operand.name, BankedRange::of_register(banks, reg, role)));
            }
        }
        let mut touched = Vec::new();
        inst.visit(isa, |effect| {
            let slot = effect.slot().and_then(|slot| inst.entry().slots().get(usize::from(slot)));
            let name = slot.map(|slot| slot.name).filter(|name| is_named(*name));
            if let Some(name) = name.filter(|_| effect.reg().file == RegFile::Vgpr && !effect.is_none()) {
                touched.push((name, BankedRange::of_register(banks, effect.reg(), effect.role())));
            }
        });
        let mut found = Vec::new();
        visit_operands(inst, isa, banks, |name, stretch| found.push((name, stretch)));
        assert!(found.len() <= MOST, "{inst:?}");
        for list in [&mut expected, &mut touched, &mut found] {
            list.sort_unstable_by_key(|(name, stretch)| (*name as u16, *stretch));
            list.dedup();
        }
        assert_eq!(found, expected, "{inst:?}");
        assert_eq!(found, touched, "{inst:?}");
    }

    /// Registers of one bank or of all, one by one.
    #[test]
    fn stretches_meet_where_they_have_a_register_in_common() {
        let mut state = 1_u64;
        let mut random = |below: u16| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 40) as u16 % below
        };
        let mut stretch = || {
            let everywhere = random(2) == 0;
            let first = if everywhere { random(256) } else { random(1100) };
            BankedRange { first, end: first + 1 + random(40), everywhere }
        };
        let registers = |stretch: BankedRange| {
            let banks = if stretch.everywhere { 0..4 } else { 0..1 };
            let all =
                banks.flat_map(move |bank| (stretch.first..stretch.end).map(move |register| register + 256 * bank));
            all.filter(|register| *register < 1024).collect::<std::collections::BTreeSet<u16>>()
        };
        let mut met = 0;
        for _ in 0..20_000 {
            let (one, other) = (stretch(), stretch());
            let common = registers(one).intersection(&registers(other)).count();
            assert_eq!(one.overlaps_range(other), common > 0, "{one:?} {other:?}");
            assert!(common == 0 || one.group_mask() & other.group_mask() != 0, "{one:?} {other:?}");
            met += usize::from(common > 0);
        }
        assert!((1_000..19_000).contains(&met), "{met}");
    }
}
