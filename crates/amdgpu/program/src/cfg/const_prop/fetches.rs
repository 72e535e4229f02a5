//! Program counters that only serve prefetching, or nothing: `s_prefetch_inst` and similar instructions change no
//! result, so code may move under their addresses.
//!
//! The result of a get-PC is followed through scalar sums, copies and lanes of vector registers, along every path. As
//! soon as anything else may read it, or a path leaves the function with it, the use of the program counter is unknown.
//!
//! Invariants: a result holds on every path that is known; an unknown path yields no result.

use super::def_use::{DefUseList, scalars_of};
use super::steps::constant_number;
use crate::block::{BasicBlock, BlockExit};
use crate::cfg::context::CfgContext;
use crate::cfg::draft::FunctionDraft;
use crate::ops::AddressOp;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Inst, Name};
use std::collections::{BTreeMap, BTreeSet};

/// Average visits per instruction for all program counters of a function; beyond that no more results are claimed.
const ROUNDS: usize = 64;

/// The registers that hold a program counter, or a value made from it.
#[derive(Debug, Clone, PartialEq)]
struct Holders {
    registers: RegSet,
    /// Vector registers and lanes of them.
    lanes: BTreeSet<(u16, u8)>,
    banks: VgprBanks,
}

impl Holders {
    fn is_empty(&self) -> bool {
        self.registers.is_empty() && self.lanes.is_empty()
    }

    /// Adds those of another path. Returns whether some are new.
    fn join_path(&mut self, other: &Self) -> bool {
        let before = self.lanes.len();
        let banks = self.banks.join(other.banks);
        self.lanes.extend(&other.lanes);
        let changed = self.registers.union_with(&other.registers);
        let changed = changed | (self.lanes.len() != before) | (banks != self.banks);
        self.banks = banks;
        changed
    }

    fn lanes_of(&self, registers: &RegSet) -> bool {
        self.lanes.iter().any(|(vgpr, _)| registers.touches(Reg::new(RegFile::Vgpr, *vgpr, 1)))
    }
}

/// Offsets, sorted, of get-PCs that only serve prefetching, and of all instructions that use their results.
pub(super) fn prefetch_only_offsets(
    context: &CfgContext<'_, '_>,
    draft: &FunctionDraft,
    touches: &DefUseList,
) -> Vec<u32> {
    let mut found = BTreeSet::new();
    let mut walk = FetchWalk { context, draft, users: BTreeSet::new(), budget: None };
    for counter in &draft.counters {
        let end = draft.blocks.block_before(*counter).map_or(*counter, |block| draft.block(block).end);
        if touches.leads_to_seed(*counter..end) {
            continue;
        }
        walk.users = BTreeSet::from([*counter]);
        if walk.walk_counter(*counter).is_some() {
            found.append(&mut walk.users);
        }
    }
    found.into_iter().collect()
}

struct FetchWalk<'w, 's, 'a> {
    context: &'w CfgContext<'s, 'a>,
    draft: &'w FunctionDraft,
    /// Instructions that read the tracked value.
    users: BTreeSet<u32>,
    /// Instructions that may still be visited.
    budget: Option<usize>,
}

impl FetchWalk<'_, '_, '_> {
    /// `None` if something else than prefetching may depend on the program counter.
    fn walk_counter(&mut self, counter: u32) -> Option<()> {
        let draft = self.draft;
        let number = draft.blocks.block_before(counter)?;
        let inst = self.context.decode_at(counter)?;
        let isa = self.context.isa();
        let registers = inst.written_set(isa, VgprBanks::UNKNOWN);
        let mut first = Holders { registers, lanes: BTreeSet::new(), banks: VgprBanks::UNKNOWN };
        self.walk_block(&draft.block(number), counter + u32::from(inst.len()), &mut first)?;
        let mut states: BTreeMap<usize, Holders> = BTreeMap::new();
        let mut work = BTreeSet::new();
        self.lead_on(number, &first, &mut states, &mut work);
        while let Some(number) = work.pop_first() {
            let mut holders = states.get(&number)?.clone();
            let block = draft.block(number);
            self.walk_block(&block, block.start, &mut holders)?;
            self.lead_on(number, &holders, &mut states, &mut work);
        }
        Some(())
    }

    fn lead_on(
        &self,
        block: usize,
        holders: &Holders,
        states: &mut BTreeMap<usize, Holders>,
        work: &mut BTreeSet<usize>,
    ) {
        if holders.is_empty() {
            return;
        }
        for to in self.draft.blocks.block_successors(block) {
            let to = to as usize;
            let is_new = match states.get_mut(&to) {
                Some(known) => known.join_path(holders),
                None => states.insert(to, holders.clone()).is_none(),
            };
            if is_new {
                work.insert(to);
            }
        }
    }

    /// Walks a block from an offset on.
    fn walk_block(&mut self, block: &BasicBlock, mut at: u32, holders: &mut Holders) -> Option<()> {
        let mut is_simple = is_simple(holders);
        while at < block.end && !holders.is_empty() {
            self.budget =
                Some(self.budget.unwrap_or_else(|| self.draft.starts.count().saturating_mul(ROUNDS)).checked_sub(1)?);
            if is_simple && let Some(len) = self.undecoded_length(at) {
                holders.banks = holders.banks.after_other();
                at += len;
                continue;
            }
            let inst = self.context.decode_at(at)?;
            self.step_instruction(at, &inst, holders)?;
            holders.banks = holders.banks.mode_after(&inst, self.context.isa());
            at += u32::from(inst.len());
            is_simple = self::is_simple(holders);
        }
        let leaves = matches!(
            block.exit,
            BlockExit::Call | BlockExit::Return | BlockExit::Tail | BlockExit::Table | BlockExit::Unknown
        );
        (!leaves || holders.is_empty()).then_some(())
    }

    /// The length of an instruction that is unrelated to scalar registers, if it needs no decoding.
    fn undecoded_length(&self, at: u32) -> Option<u32> {
        let bytes = self.context.source.bytes.get(at as usize..)?;
        let seen = self.context.sift.quiet(self.context.ops)?.classify_bytes(bytes.first_chunk()?)?;
        let word = bytes.first_chunk().map_or(u32::MAX, |bytes| u32::from_le_bytes(*bytes));
        (!VgprBanks::may_change(word)).then_some(u32::from(seen.len))
    }

    fn step_instruction(&mut self, at: u32, inst: &Inst, holders: &mut Holders) -> Option<()> {
        let (isa, op) = (self.context.isa(), self.context.ops.address_op(inst));
        let reads = inst.read_set(isa, holders.banks);
        let mut used = reads.intersects(&holders.registers);
        match op {
            AddressOp::WriteLane => return self.write_lane(at, inst, used, &reads, holders),
            AddressOp::ReadLane => {
                let lane = constant_number(inst.operand(isa, Name::Src1));
                // The choice of the lane must not depend on the address.
                if used {
                    return None;
                }
                used = holders.lanes.iter().any(|one| reads_fetched_lane(one, &reads, &lane));
            }
            _ if holders.lanes_of(&reads) => return None,
            _ => {}
        }
        let writes = inst.written_set(isa, holders.banks);
        if used {
            self.users.insert(at);
        }
        if used && op != AddressOp::Fetch {
            // Anything but numbers in scalar registers: memory, modes, lanes, control flow.
            if !(op.computes_scalars() || op == AddressOp::ReadLane) || !writes.iter().all(is_scalar) {
                return None;
            }
        }
        holders.registers.subtract(&inst.overwritten_set(isa, holders.banks));
        if used {
            holders.registers.union_with(&writes);
        }
        Some(())
    }

    fn write_lane(&mut self, at: u32, inst: &Inst, used: bool, reads: &RegSet, holders: &mut Holders) -> Option<()> {
        let isa = self.context.isa();
        let lane = constant_number(inst.operand(isa, Name::Src1)).map(|lane| (lane & 63) as u8);
        let writes = inst.written_set(isa, holders.banks);
        let registers: Vec<u16> = writes
            .iter()
            .filter(|reg| reg.file == RegFile::Vgpr)
            .flat_map(|reg| reg.index..reg.index + u16::from(reg.count))
            .collect();
        match (used, lane) {
            // A lane that the address may select, or a selection between two sources.
            (true, None) => return None,
            (true, Some(lane)) => {
                self.users.insert(at);
                holders.lanes.extend(registers.into_iter().map(|vgpr| (vgpr, lane)));
            }
            (false, Some(lane)) => {
                if let [vgpr] = registers[..] {
                    holders.lanes.remove(&(vgpr, lane));
                }
            }
            (false, None) => {}
        }
        // The other lanes stay, which is not a use of them; other vector registers are not sources of it.
        let mut others = *reads;
        others.subtract(&writes);
        (!holders.lanes_of(&others)).then_some(())
    }
}

fn reads_fetched_lane((vgpr, held): &(u16, u8), reads: &RegSet, lane: &Option<u64>) -> bool {
    reads.touches(Reg::new(RegFile::Vgpr, *vgpr, 1)) && lane.is_none_or(|lane| lane & 63 == u64::from(*held))
}

/// Whether only scalar registers hold the value, and instructions name them wherever they use them; VCC may be
/// used without being named.
fn is_simple(holders: &Holders) -> bool {
    /// Scalar registers without VCC.
    const NAMED: u128 = (1 << 106) - 1;
    let scalars = scalars_of(&holders.registers);
    holders.lanes.is_empty() && scalars & !NAMED == 0 && scalars.count_ones() as usize == holders.registers.len()
}

fn is_scalar(reg: Reg) -> bool {
    let is_special =
        [Special::VccLo, Special::VccHi, Special::Scc, Special::M0].into_iter().any(|special| reg.is(special));
    reg.file == RegFile::Sgpr || is_special
}
