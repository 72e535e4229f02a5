//! How far apart matrix and vector instructions must stand: the table and the rule.
//!
//! The numbers are those of LLVM's hazard recognizer for this stepping (category by latency, "requirements for WMMA data
//! hazards"): vector instructions between a matrix instruction and the first vector instruction that reads its result
//! or writes any of its registers, and the first matrix instruction that reads its result as A, B or index. LLVM 24 for
//! `gfx1250-strict` puts the same distances in (see the tests).
//!
//! Invariants: a row says no less than LLVM; what has no row needs no distance.

use hotswap_isa::bank::{Role, VgprBanks};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Entry, Flag, Inst, Isa, Name};
use std::sync::OnceLock;

/// Vector instructions that must stand between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spacing {
    /// Before a vector instruction that touches the registers.
    pub vector: u8,
    /// Before a matrix instruction that reads the result as A, B or index.
    pub matrix: u8,
}

/// Which operands of `v_wmma_*_f8f6f4` a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Formats {
    Any,
    /// A or B has 8 bits an element.
    EightBit,
}

struct Row {
    prefix: &'static str,
    part: &'static str,
    formats: Formats,
    spacing: Spacing,
}

const fn row(prefix: &'static str, part: &'static str, formats: Formats, vector: u8) -> Row {
    Row { prefix, part, formats, spacing: Spacing { vector, matrix: vector + 1 } }
}

/// The first row counts that fits.
const ROWS: &[Row] = &[
    // Not done by the matrix unit that runs beside the vector unit.
    Row {
        prefix: "v_wmma_",
        part: "_f32_16x16x4_f32",
        formats: Formats::Any,
        spacing: Spacing { vector: 0, matrix: 0 },
    },
    row("v_wmma_", "_f8f6f4", Formats::EightBit, 8),
    row("v_wmma_", "_f8f6f4", Formats::Any, 4),
    row("v_wmma_", "_iu8", Formats::Any, 8),
    row("v_wmma_", "", Formats::Any, 4),
    row("v_swmmac_", "_iu8", Formats::Any, 4),
    row("v_swmmac_", "", Formats::Any, 2),
];

impl Spacing {
    /// What a matrix instruction needs behind it; `None` for all others.
    pub fn after(inst: &Inst) -> Option<Self> {
        if !is_matrix(inst) {
            return None;
        }
        let row = rows(inst.entry()).iter().find(|row| row.formats.fit(inst))?;
        Some(row.spacing).filter(|spacing| spacing.matrix > 0)
    }
}

/// The rows that fit a line of the tables by its name. There are few lines and many instructions, so names are looked at
/// once.
fn rows(entry: Entry) -> &'static [&'static Row] {
    static INDEX: OnceLock<Vec<Vec<&'static Row>>> = OnceLock::new();
    let of = |entry: Entry| {
        let name = entry.mnemonic();
        let fits = |row: &&Row| name.starts_with(row.prefix) && name.contains(row.part);
        ROWS.iter().filter(fits).collect::<Vec<_>>()
    };
    let index = INDEX.get_or_init(|| Entry::all().map(of).collect());
    index.get(usize::from(entry.id())).map_or(&[], |rows| rows)
}

impl Formats {
    fn fit(self, inst: &Inst) -> bool {
        /// Numbers of the formats from which on elements have fewer than 8 bits.
        const SIX_BIT: u64 = 2;
        let small = |name| inst.raw(name).unwrap_or(0) >= SIX_BIT;
        self == Self::Any || !(small(Name::MatrixAFmt) && small(Name::MatrixBFmt))
    }
}

/// Whether it is a matrix instruction.
pub(crate) fn is_matrix(inst: &Inst) -> bool {
    inst.is(Flag::Wmma) || inst.is(Flag::Swmmac)
}

/// Whether it counts as one of the instructions between.
pub(crate) fn counts(inst: &Inst) -> bool {
    let entry = inst.entry();
    let memory = [
        Flag::Ds,
        Flag::Flat,
        Flag::FlatGlobal,
        Flag::FlatScratch,
        Flag::Mubuf,
        Flag::Mtbuf,
        Flag::Vimage,
        Flag::Vsample,
        Flag::Exp,
    ];
    entry.is(Flag::Valu) && !memory.into_iter().any(|flag| entry.is(flag)) && !entry.is(Flag::TensorCnt)
}

/// Vector registers by number, as stretches from one to before another.
#[derive(Debug, Clone, Copy, Default)]
struct Stretches {
    list: [(u16, u16); MOST],
    count: usize,
}

/// Four operands, each in every bank; one of them is read as well as written.
const MOST: usize = 20;

impl Stretches {
    fn add(&mut self, stretch: (u16, u16)) {
        if let Some(free) = self.list.get_mut(self.count) {
            *free = stretch;
            self.count += 1;
        }
    }

    fn touches(&self, (first, end): (u16, u16)) -> bool {
        self.list[..self.count].iter().any(|(from, to)| first < *to && *from < end)
    }
}

/// Banks give 1024 registers; what would be behind them does not exist.
fn stretch(reg: Reg) -> (u16, u16) {
    (reg.index.min(1024), (reg.index + u16::from(reg.count)).min(1024))
}

/// Registers of a matrix instruction that others must keep away from.
#[derive(Debug, Clone, Copy)]
pub struct Hazard {
    /// What it needs.
    pub spacing: Spacing,
    result: Stretches,
    /// Its result, A, B and, of sparse ones, the index.
    registers: Stretches,
}

impl Hazard {
    /// What a matrix instruction leaves behind.
    pub fn of(inst: &Inst, isa: Isa, banks: VgprBanks) -> Option<Self> {
        let spacing = Spacing::after(inst)?;
        let mut hazard = Self { spacing, result: Stretches::default(), registers: Stretches::default() };
        named(inst, isa, banks, |name, reg| {
            let is_result = name == Name::Vdst;
            if is_result {
                hazard.result.add(stretch(reg));
            }
            if is_result || is_input(inst, name) {
                hazard.registers.add(stretch(reg));
            }
        });
        Some(hazard)
    }

    /// How many instructions must stand between it and one that touches registers so.
    pub fn distance(&self, touch: &Touch) -> u8 {
        let mut registers = touch.registers.iter();
        let spacing = if touch.matrix { self.spacing.matrix } else { self.spacing.vector };
        let touches = |&(written, reg): &(bool, (u16, u16))| match written {
            true => self.registers.touches(reg),
            false => self.result.touches(reg),
        };
        if touch.everything || registers.any(touches) { spacing } else { 0 }
    }
}

/// What an instruction does to registers that matrix instructions before it may still use; nothing if no distance is asked
/// of it.
#[derive(Debug, Clone, Default)]
pub struct Touch {
    /// It is a matrix instruction itself: A, B and index count, C may follow at once.
    matrix: bool,
    /// An index that is not known chooses its registers.
    everything: bool,
    /// Vector registers, and whether they are written.
    registers: Vec<(bool, (u16, u16))>,
}

impl Touch {
    /// Of an instruction, under a bank mode; in the memory of another one, because there are many.
    pub fn set(&mut self, inst: &Inst, isa: Isa, banks: VgprBanks) {
        let registers = &mut self.registers;
        registers.clear();
        (self.matrix, self.everything) = (is_matrix(inst), false);
        if self.matrix {
            named(inst, isa, banks, |name, reg| {
                if is_input(inst, name) {
                    registers.push((false, stretch(reg)));
                }
            });
        } else if counts(inst) {
            self.everything = inst.is(Flag::Indexed);
            // What is touched without being named are no vector registers.
            inst.visit(isa, |effect| {
                let reg = effect.reg();
                if reg.file != RegFile::Vgpr || effect.is_none() {
                    return;
                }
                every(banks, reg, effect.role(), |reg| registers.push((effect.written(), stretch(reg))));
            });
        }
    }
}

/// A, B and, of sparse instructions, the index.
fn is_input(inst: &Inst, name: Name) -> bool {
    matches!(name, Name::Src0 | Name::Src1) || name == Name::Src2 && inst.is(Flag::Swmmac)
}

/// The vector registers that operands name.
fn named(inst: &Inst, isa: Isa, banks: VgprBanks, mut each: impl FnMut(Name, Reg)) {
    let slots = inst.entry().slots();
    inst.visit(isa, |effect| {
        let reg = effect.reg();
        if reg.file == RegFile::Vgpr
            && !effect.is_none()
            && let Some(slot) = effect.slot().and_then(|slot| slots.get(usize::from(slot)))
        {
            every(banks, reg, effect.role(), |reg| each(slot.name, reg));
        }
    });
}

/// The register that is meant; where its bank is not known, those of every bank.
fn every(banks: VgprBanks, reg: Reg, role: Option<Role>, mut each: impl FnMut(Reg)) {
    match banks.resolve(reg, role) {
        Some(reg) => each(reg),
        None => (0..4).for_each(|bank| each(Reg { index: reg.index + 256 * bank, ..reg })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa::{Target, Value};
    use std::collections::BTreeMap;

    /// The registers are those that the operands name, whatever the formats say about their widths.
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
            // VOP3P has eight bits; the scaled form has a pair of words before that.
            let plain = (0..2_000).map(|_| 0);
            let scaled =
                [0x35_u32, 0x3a].into_iter().flat_map(|scale| (0..2_000).map(move |_| 0xcc00_0000 | scale << 16));
            for prefix in plain.chain(scaled) {
                // Registers, mostly: other sources are none.
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

    fn compare(inst: &Inst, isa: Isa, banks: VgprBanks) {
        let mut expected = Vec::new();
        for (index, operand) in inst.operands(isa).enumerate() {
            let Value::Reg(reg) = operand.value else { continue };
            let watched = operand.name == Name::Vdst || is_input(inst, operand.name);
            if watched && reg.file == RegFile::Vgpr {
                let role = hotswap_isa::effects::role(inst.entry(), index as u8);
                every(banks, reg, role, |reg| expected.push((operand.name, stretch(reg))));
            }
        }
        let mut found = Vec::new();
        named(inst, isa, banks, |name, reg| {
            if name == Name::Vdst || is_input(inst, name) {
                found.push((name, stretch(reg)));
            }
        });
        for list in [&mut expected, &mut found] {
            list.sort_unstable_by_key(|(name, reg)| (*name as u16, *reg));
            list.dedup();
        }
        assert_eq!(found, expected, "{inst:?}");
    }
}
