//! The origin of the address of a jump or a call: loaded or passed whole and only copied since, or computed.
//!
//! Invariants: the registers of the address are followed back along every path of the function; results of arithmetic
//! are never called whole, except for sums that are explained ([`PcValue`]).

use crate::address::PcValue;
use crate::bits::DwordSet;
use crate::block::{BlockExit, PackedBlocks, Predecessors};
use crate::ops::{AddressOp, Ops};
use crate::source::CodeSource;
use hotswap_isa::effects::EffectReader;
use hotswap_isa::reg::RegFile;
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst};
use std::cell::OnceCell;
use std::collections::{BTreeSet, HashMap};

/// Instructions that only copy, by the start of their names.
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

/// Suffixes of scalar loads that load less than 32 bits.
const PARTS: &[&str] = &["u8", "i8", "u16", "i16"];

/// The code of a function in which addresses are followed.
pub(crate) struct SliceCode<'c> {
    pub(crate) source: &'c CodeSource<'c>,
    pub(crate) ops: &'c Ops,
    pub(crate) blocks: &'c PackedBlocks,
    pub(crate) starts: &'c DwordSet,
    pub(crate) span: (u32, u32),
    pub(crate) entries: Vec<u32>,
    pub(crate) values: &'c [PcValue],
    /// Predecessors of its blocks, computed on demand.
    pub(crate) before: OnceCell<Predecessors>,
}

/// Possible origins of a whole address.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Origins {
    /// From memory, by loads of scalar registers.
    pub(crate) memory: bool,
    /// Whether it comes from explained sums.
    pub(crate) sums: bool,
    /// From anywhere else: a caller, a callee, a number, the link of a call, a vector register.
    pub(crate) others: bool,
}

impl SliceCode<'_> {
    /// The origins of the target of the instruction at an offset; `None` if arithmetic may have made it.
    pub(crate) fn origins(&self, offset: u32) -> Option<Origins> {
        let isa = self.source.isa_at(offset);
        let number = self.blocks.block_before(offset)?;
        let inst = self.decode(offset)?;
        let wanted: RegSet = inst.reads(isa).map(|effect| effect.reg).filter(|reg| reg.file == RegFile::Sgpr).collect();
        if wanted.is_empty() {
            return None;
        }
        let sums = self.values.iter().flat_map(|value| [value.pc, value.low, value.high]).collect();
        let mut walk = SliceWalk { code: self, sums, reader: EffectReader::new(isa), found: Origins::default() };
        walk.run(number, offset, wanted)?;
        Some(walk.found)
    }

    fn decode(&self, offset: u32) -> Option<Inst> {
        self.source.isa_at(offset).decode(self.source.bytes.get(offset as usize..)?).ok()
    }
}

struct SliceWalk<'w, 'c> {
    code: &'w SliceCode<'c>,
    /// Instructions of sums that are explained.
    sums: BTreeSet<u32>,
    reader: EffectReader,
    found: Origins,
}

impl SliceWalk<'_, '_> {
    fn run(&mut self, number: usize, offset: u32, wanted: RegSet) -> Option<()> {
        let blocks = self.code.blocks;
        let predecessors = self.code.before.get_or_init(|| blocks.predecessors());
        let mut at_end: HashMap<usize, RegSet> = HashMap::new();
        let before = self.back(number, offset, wanted)?;
        let mut work = vec![(number, before)];
        while let Some((block, wanted)) = work.pop() {
            if wanted.is_empty() {
                continue;
            }
            self.found.others |= self.code.entries.binary_search(&blocks.block_start(block)).is_ok();
            for from in predecessors.of_block(block) {
                let from = *from as usize;
                let known = at_end.entry(from).or_insert(RegSet::EMPTY);
                if !known.union_with(&wanted) {
                    continue;
                }
                let all = *known;
                // A callee may have changed them.
                self.found.others |= blocks.exit_of_block(from) == BlockExit::Call;
                let before = self.back(from, u32::MAX, all)?;
                work.push((from, before));
            }
        }
        Some(())
    }

    /// The registers of interest at a block's start, from those before `end`; `None` if one is computed.
    fn back(&mut self, block: usize, end: u32, mut wanted: RegSet) -> Option<RegSet> {
        let block = self.code.blocks.get(block, self.code.starts, self.code.span);
        let mut offsets = Vec::new();
        let mut at = block.start;
        while at < end.min(block.end) {
            let inst = self.code.decode(at)?;
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

    fn step(&mut self, at: u32, inst: &Inst, wanted: &mut RegSet) -> Option<()> {
        let mut written = RegSet::EMPTY;
        let mut is_wanted = false;
        self.reader.visit(inst, |effect| {
            if effect.written() {
                is_wanted |= wanted.touches(effect.reg());
                written.insert(effect.reg());
            }
        });
        // An index may select one of them.
        self.found.others |= self.code.ops.line(inst).indexed;
        if !is_wanted {
            return Some(());
        }
        let is_sum = self.sums.contains(&at);
        if is_load(inst) || is_sum || matches!(self.code.ops.address_op(inst), AddressOp::SetPc | AddressOp::SwapPc) {
            wanted.subtract(&written);
            match is_load(inst) && inst.is(Flag::Smrd) && !PARTS.iter().any(|part| inst.mnemonic().ends_with(part)) {
                true => self.found.memory = true,
                false if is_sum => self.found.sums = true,
                false => self.found.others = true,
            }
            return Some(());
        }
        // A byte of a register, or the value of another lane, is not a copy; mnemonics do not show it.
        let is_part = inst.is(Flag::Dpp) || inst.is(Flag::Sdwa);
        if is_part || !COPIES.iter().any(|name| inst.mnemonic().starts_with(name)) {
            return None;
        }
        // One more lane in a register of many: its previous value stays of interest.
        if inst.mnemonic() != "v_writelane_b32" {
            wanted.subtract(&written);
        }
        self.copy(inst, wanted);
        Some(())
    }

    fn copy(&mut self, inst: &Inst, wanted: &mut RegSet) {
        let mut named = 0;
        for effect in inst.reads(self.code.source.isa) {
            named += usize::from(effect.slot.is_some());
            if matches!(effect.reg.file, RegFile::Sgpr | RegFile::Vgpr | RegFile::Agpr) {
                wanted.insert(effect.reg);
            }
            self.found.others |= effect.slot.is_some() && effect.reg.file != RegFile::Sgpr;
        }
        // Numbers are not registers.
        let sources = if inst.mnemonic().starts_with("s_cselect") { 2 } else { 1 };
        self.found.others |= named != sources;
    }
}

fn is_load(inst: &Inst) -> bool {
    let memory = [Flag::Smrd, Flag::Flat, Flag::FlatGlobal, Flag::FlatScratch, Flag::Mubuf, Flag::Mtbuf, Flag::Ds];
    memory.into_iter().any(|flag| inst.is(flag)) && !inst.mnemonic().contains("atomic")
}
