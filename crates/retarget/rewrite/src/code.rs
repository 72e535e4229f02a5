//! The words of an instruction set that depend on distances.
//!
//! Nearly all instructions are skipped by their length. The first sixteen bits identify those that need a closer look;
//! a table of them is made once for each target from the decoder.

use hotswap_isa::reg::RegFile;
use hotswap_isa::{Feature, Inst, Isa, Name, OperandValue, TableEntry};

/// The class of an instruction by its first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordClass {
    /// Nothing that depends on distances.
    Plain,
    /// A branch by a number of dwords in its low half.
    Branch,
    /// Reads the program counter into registers, or adds to it: the low half selects which.
    Counter,
    /// The next instructions form a clause.
    Clause,
    /// States what the next instructions wait for.
    Delay,
    /// A prefetch of data or instructions with a PC-relative distance may be among these.
    Fetch,
}

/// The fixed bits of a first word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FixedWord {
    value: u32,
    mask: u32,
}

/// Marks by the high half of the first word.
pub(crate) struct WordClassTable {
    marks: Vec<WordClass>,
    /// The first words of instructions that use the program counter or prefetch relative to it.
    counters: Vec<FixedWord>,
    pub(crate) isa: Isa,
    /// Whether LLVM aligns loops: on targets with a setting for the instruction prefetch distance, except for the first
    /// ones, where it does not work.
    pub(crate) aligns_loops: bool,
    /// The distance in dwords that a branch must not have: the first targets of GFX10 mistake 0x3f.
    pub(crate) bad_distance: Option<i64>,
}

/// Instructions whose opcode includes the low half of the first word.
const COUNTER: &[&str] = &["s_getpc_b64", "s_get_pc_i64", "s_add_pc_i64"];

impl WordClassTable {
    pub(crate) fn new(isa: Isa) -> Self {
        let mut marks = vec![WordClass::Plain; 0x1_0000];
        for (high, mark) in (0x8000..0xc000).zip(&mut marks[0x8000..0xc000]) {
            *mark = mark_of(isa, high);
        }
        if isa.target().name.starts_with("gfx12") {
            // SMEM: six bits, and the opcode in the low half.
            marks[0xf400..0xf800].fill(WordClass::Fetch);
        }
        let name = isa.target().name;
        let aligns_loops = ["gfx103", "gfx10-3", "gfx11"].iter().any(|family| name.starts_with(family));
        let bad_distance = isa.has(Feature::Offset3fBug).then_some(0x3f);
        let is_counter =
            |entry: &TableEntry| COUNTER.contains(&entry.mnemonic()) || FETCHES.contains(&entry.mnemonic());
        let mut counters: Vec<_> = TableEntry::all_entries().filter(is_counter).map(fixed_word).collect();
        counters.sort_unstable();
        counters.dedup();
        Self { marks, counters, isa, aligns_loops, bad_distance }
    }

    #[inline]
    pub(crate) fn mark_of_word(&self, word: u32) -> WordClass {
        self.marks[(word >> 16) as usize]
    }

    /// Whether an instruction with [`WordClass::Counter`] or [`WordClass::Fetch`] may be of the kind that these denote: nearly
    /// all others of their encodings need not be decoded.
    #[inline]
    pub(crate) fn may_count(&self, word: u32) -> bool {
        self.counters.iter().any(|fixed| word & fixed.mask == fixed.value)
    }
}

fn fixed_word(entry: TableEntry) -> FixedWord {
    let (value, mask) = entry.fixed();
    FixedWord { value: value as u32, mask: mask as u32 }
}

/// Prefetches with a distance from themselves.
const FETCHES: &[&str] = &["s_prefetch_inst_pc_rel", "s_prefetch_data_pc_rel"];

fn mark_of(isa: Isa, high: u32) -> WordClass {
    // SOP1: nine bits, seven of the destination, and the opcode in the low half.
    if high >> 7 == 0x17d {
        return WordClass::Counter;
    }
    let Some(inst) = decode_word(isa, high << 16) else { return WordClass::Plain };
    match inst.mnemonic() {
        "s_clause" => WordClass::Clause,
        "s_delay_alu" => WordClass::Delay,
        _ if inst.branch_target(0, isa).is_some() => WordClass::Branch,
        _ => WordClass::Plain,
    }
}

fn decode_word(isa: Isa, word: u32) -> Option<Inst> {
    let mut bytes = [0; 20];
    bytes[..4].copy_from_slice(&word.to_le_bytes());
    isa.decode(&bytes).ok()
}

/// Whether an instruction with [`WordClass::Counter`] uses the program counter.
pub(crate) fn concerns_counter(inst: &Inst) -> bool {
    COUNTER.contains(&inst.mnemonic())
}

/// Whether an instruction with [`WordClass::Fetch`] has a distance from itself.
pub(crate) fn is_relative_fetch(inst: &Inst) -> bool {
    FETCHES.contains(&inst.mnemonic())
}

/// Whether it has a distance from the address in a pair of registers.
pub(crate) fn is_fetch_from(inst: &Inst, isa: Isa, pair: u16) -> bool {
    matches!(inst.mnemonic(), "s_prefetch_inst" | "s_prefetch_data")
        && matches!(fetch_base_operand(inst, &isa), Some(OperandValue::Reg(reg)) if reg.file == RegFile::Sgpr && reg.index == pair)
}

fn fetch_base_operand(inst: &Inst, isa: &Isa) -> Option<OperandValue> {
    inst.operand(*isa, Name::Sbase)
}

/// The distance of a prefetch, in bytes: from its end, or from the address in registers.
pub(crate) fn fetch_distance(inst: &Inst) -> Option<i64> {
    let raw = inst.raw(Name::Offset)?;
    // 24 bits with sign.
    Some((raw as i64) << 40 >> 40)
}
