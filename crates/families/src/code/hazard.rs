//! How far apart matrix and vector instructions must stand: the table and the rule.
//!
//! The numbers are those of LLVM's hazard recognizer for this stepping (category by latency, "requirements for WMMA data
//! hazards"): vector instructions between a matrix instruction and the first vector instruction that reads its result
//! or writes any of its registers, and the first matrix instruction that reads its result as A, B or index. LLVM 24 for
//! `gfx1250-strict` puts the same distances in (see the tests).
//!
//! Invariants: a row says no less than LLVM; what has no row needs no distance.

use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst, Isa, Name, Value};

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
        let mnemonic = inst.mnemonic();
        let row = ROWS
            .iter()
            .find(|row| mnemonic.starts_with(row.prefix) && mnemonic.contains(row.part) && row.formats.fit(inst))?;
        Some(row.spacing).filter(|spacing| spacing.matrix > 0)
    }
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

/// Registers of a matrix instruction that others must keep away from.
#[derive(Debug, Clone, Copy)]
pub struct Hazard {
    /// What it needs.
    pub spacing: Spacing,
    /// Its result.
    pub result: RegSet,
    /// Its result, A, B and, of sparse ones, the index.
    pub registers: RegSet,
}

impl Hazard {
    /// What a matrix instruction leaves behind.
    pub fn of(inst: &Inst, isa: Isa, banks: VgprBanks) -> Option<Self> {
        let spacing = Spacing::after(inst)?;
        let result = named(inst, isa, banks, &[Name::Vdst]);
        let mut registers = result;
        registers.union_with(&inputs(inst, isa, banks));
        Some(Self { spacing, result, registers })
    }

    /// How many instructions must stand between it and one that touches registers so.
    pub fn distance(&self, touch: &Touch) -> u8 {
        let reads = touch.reads.intersects(&self.result);
        match touch.matrix {
            true if reads => self.spacing.matrix,
            false if reads || touch.writes.intersects(&self.registers) => self.spacing.vector,
            _ => 0,
        }
    }
}

/// What an instruction does to registers that matrix instructions before it may still use; nothing if no distance is asked
/// of it.
#[derive(Debug, Clone)]
pub struct Touch {
    /// It is a matrix instruction itself: A, B and index count, C may follow at once.
    matrix: bool,
    reads: RegSet,
    writes: RegSet,
}

impl Touch {
    /// Of an instruction, under a bank mode.
    pub fn of(inst: &Inst, isa: Isa, banks: VgprBanks) -> Self {
        let matrix = is_matrix(inst);
        let (reads, writes) = match matrix {
            true => (inputs(inst, isa, banks), RegSet::EMPTY),
            false if counts(inst) => (inst.read_set(isa, banks), inst.written_set(isa, banks)),
            false => (RegSet::EMPTY, RegSet::EMPTY),
        };
        Self { matrix, reads, writes }
    }
}

/// A, B and, of sparse instructions, the index.
fn inputs(inst: &Inst, isa: Isa, banks: VgprBanks) -> RegSet {
    let names: &[Name] =
        if inst.is(Flag::Swmmac) { &[Name::Src0, Name::Src1, Name::Src2] } else { &[Name::Src0, Name::Src1] };
    named(inst, isa, banks, names)
}

/// The registers of some operands; where a bank is not known, those of every bank.
fn named(inst: &Inst, isa: Isa, banks: VgprBanks, names: &[Name]) -> RegSet {
    let mut set = RegSet::EMPTY;
    for (index, operand) in inst.operands(isa).enumerate() {
        let Value::Reg(reg) = operand.value else { continue };
        if !names.contains(&operand.name) || reg.file != RegFile::Vgpr {
            continue;
        }
        let role = hotswap_isa::effects::role(inst.entry(), index as u8);
        match banks.resolve(reg, role) {
            Some(reg) => set.insert(reg),
            None => (0..4).for_each(|bank| set.insert(Reg { index: reg.index + 256 * bank, ..reg })),
        }
    }
    set
}
