//! Where the target of a jump comes from.

use hotswap_isa::effects::EffectReader;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst, Isa};
use hotswap_program::{Function, Program};
use std::collections::BTreeSet;

/// Instructions that only copy, by the begin of their names.
const COPIES: &[&str] = &[
    "s_mov_b",
    "s_cselect_b",
    "v_mov_b",
    "v_cndmask_b32",
    "v_dual_mov_b32",
    "v_readfirstlane_b32",
    "v_readlane_b32",
    "v_writelane_b32",
    "v_accvgpr_",
];

/// Whether the address that the instruction at `offset` goes to comes from memory, from a caller or from an address that
/// was computed in full, and was only copied since: arithmetic would make distances of it.
pub(super) fn comes_whole(program: &Program<'_>, function: &Function, offset: u32) -> bool {
    let isa = program.source.isa;
    let Some(number) = function.block_at(offset) else { return false };
    let Some(inst) = program.decode(offset) else { return false };
    let wanted: RegSet = inst.reads(isa).map(|effect| effect.reg).filter(|reg| reg.file == RegFile::Sgpr).collect();
    if wanted.is_empty() {
        return false;
    }
    let sums: BTreeSet<u32> = function.pc_values.iter().flat_map(|value| [value.pc, value.low, value.high]).collect();
    let walk = Walk { program, function, sums, reader: EffectReader::new(isa) };
    let (first, from) = function.predecessors();
    let mut at_end = vec![RegSet::EMPTY; function.block_count()];
    let Some(before) = walk.back(number, offset, wanted) else { return false };
    let mut work = vec![(number, before)];
    while let Some((block, wanted)) = work.pop() {
        if wanted.is_empty() {
            continue;
        }
        for from in &from[first[block] as usize..first[block + 1] as usize] {
            let from = *from as usize;
            let mut all = at_end[from];
            all.union_with(&wanted);
            if all == at_end[from] {
                continue;
            }
            at_end[from] = all;
            let Some(before) = walk.back(from, function.block(from).end, all) else { return false };
            work.push((from, before));
        }
    }
    true
}

struct Walk<'w, 'a> {
    program: &'w Program<'a>,
    function: &'w Function,
    /// Instructions of sums that are explained.
    sums: BTreeSet<u32>,
    reader: EffectReader,
}

impl Walk<'_, '_> {
    /// The registers that are of interest at a block's begin, from those before `end`; `None` if one is computed.
    fn back(&self, block: usize, end: u32, mut wanted: RegSet) -> Option<RegSet> {
        let block = &self.function.block(block);
        let mut offsets = Vec::new();
        let mut at = block.start;
        while at < end.min(block.end) {
            let inst = self.program.decode(at)?;
            offsets.push((at, inst));
            at += u32::from(inst.len());
        }
        for (at, inst) in offsets.iter().rev() {
            self.step(*at, inst, &mut wanted)?;
            if wanted.is_empty() {
                break;
            }
        }
        Some(wanted)
    }

    fn step(&self, at: u32, inst: &Inst, wanted: &mut RegSet) -> Option<()> {
        let isa = self.program.source.isa;
        let mut written = RegSet::EMPTY;
        let mut is_wanted = false;
        self.reader.visit(inst, |effect| {
            if effect.written() {
                is_wanted |= wanted.touches(effect.reg());
                written.insert(effect.reg());
            }
        });
        if !is_wanted {
            return Some(());
        }
        if is_load(inst) || self.sums.contains(&at) || self.program.is_indirect(inst) {
            wanted.subtract(&written);
            return Some(());
        }
        let copies = COPIES.iter().any(|name| inst.mnemonic().starts_with(name));
        if !copies {
            return None;
        }
        // A lane more in a register of many: what was there stays of interest.
        if inst.mnemonic() != "v_writelane_b32" {
            wanted.subtract(&written);
        }
        for reg in sources(inst, isa) {
            wanted.insert(reg);
        }
        Some(())
    }
}

fn sources(inst: &Inst, isa: Isa) -> Vec<Reg> {
    let is_general = |reg: &Reg| matches!(reg.file, RegFile::Sgpr | RegFile::Vgpr | RegFile::Agpr);
    inst.reads(isa).map(|effect| effect.reg).filter(is_general).collect()
}

fn is_load(inst: &Inst) -> bool {
    let memory = [Flag::Smrd, Flag::Flat, Flag::FlatGlobal, Flag::FlatScratch, Flag::Mubuf, Flag::Mtbuf, Flag::Ds];
    memory.into_iter().any(|flag| inst.is(flag)) && !inst.mnemonic().contains("atomic")
}
