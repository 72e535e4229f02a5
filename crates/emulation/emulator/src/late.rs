//! Late completion: results of memory operations are not there until the code has waited for them.
//!
//! Each operation that a wait counter tracks is outstanding until a wait covers it, as late as the architecture allows. A
//! read of a register that an outstanding operation fills is a fault, and so is a write by anything but memory.
//!
//! Invariants: an operation that may return out of order (scalar memory, messages) is complete only when its counter is 0.
//!
//! Absent on purpose: stores, whose effects nothing but memory shows, and LDS or memory itself: only registers are late.

use crate::fault::FaultKind;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::{Space, WaitCounter};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Feature, Inst, Isa, Name};
use std::collections::VecDeque;

/// The outstanding operations of a wave.
#[derive(Debug)]
pub(crate) struct LateResults {
    isa: Isa,
    /// The oldest result comes first.
    outstanding: VecDeque<OutstandingResult>,
    /// The registers of all of them: most instructions use none, and there may be hundreds.
    registers: RegSet,
}

/// An operation that is not complete.
#[derive(Debug)]
struct OutstandingResult {
    /// Counters that it is still in.
    counters: Vec<WaitCounter>,
    is_ordered: bool,
    registers: RegSet,
}

const COUNTERS: [WaitCounter; 6] = [
    WaitCounter::Load,
    WaitCounter::Sample,
    WaitCounter::Bvh,
    WaitCounter::LgkmAll,
    WaitCounter::Lds,
    WaitCounter::Scalar,
];

impl LateResults {
    pub(crate) fn new(isa: Isa) -> Self {
        Self { isa, outstanding: VecDeque::new(), registers: RegSet::EMPTY }
    }

    /// Judges an instruction before it is executed, and follows it.
    pub(crate) fn track_instruction(&mut self, inst: &Inst, banks: u8) -> Result<(), FaultKind> {
        for limit in wait_limits(inst, self.isa) {
            self.retire_operations(limit.counter, limit.most);
        }
        let banks = VgprBanks::of_mode(banks);
        let written = inst.written_set(self.isa, banks);
        let memory = inst.memory_access();
        if !self.outstanding.is_empty() {
            let mut used = inst.read_set(self.isa, banks);
            if memory.is_some() {
                // Loads of two halves of a register, one after the other.
                used.subtract(&written);
            } else {
                used.union_with(&written);
            }
            self.check_operands(&used, inst)?;
        }
        let counters = inst.wait_counters(self.isa);
        let counters: Vec<WaitCounter> =
            COUNTERS.into_iter().filter(|counter| counters.has_counter(*counter)).collect();
        if !counters.is_empty() {
            let ordered = memory.is_some_and(|memory| memory.space != Space::Scalar);
            self.registers.union_with(&written);
            self.outstanding.push_back(OutstandingResult { counters, is_ordered: ordered, registers: written });
        }
        Ok(())
    }

    /// The registers that outstanding operations will write.
    pub(crate) fn outstanding_registers(&self) -> RegSet {
        self.registers
    }

    fn check_operands(&self, used: &RegSet, inst: &Inst) -> Result<(), FaultKind> {
        if !self.registers.intersects(used) {
            return Ok(());
        }
        let Some(result) = self.outstanding.iter().find(|result| result.registers.intersects(used)) else {
            return Ok(());
        };
        let mut common = result.registers;
        common.intersect_with(used);
        let name = common.iter().next().map(|reg| reg.to_string()).unwrap_or_default();
        Err(FaultKind::MissingWait { name, mnemonic: inst.mnemonic() })
    }

    /// Completes what a wait covers.
    fn retire_operations(&mut self, counter: WaitCounter, limit: usize) {
        let count = self.outstanding.iter_mut().filter(|one| counts_for_counter(one, &counter)).count();
        let is_ordered =
            self.outstanding.iter_mut().filter(|one| counts_for_counter(one, &counter)).all(|result| result.is_ordered);
        if limit == 0 || is_ordered {
            for result in self
                .outstanding
                .iter_mut()
                .filter(|one| counts_for_counter(one, &counter))
                .take(count.saturating_sub(limit))
            {
                result.counters.retain(|own| *own != counter);
            }
        }
        self.outstanding.retain(|result| !result.counters.is_empty());
        self.registers = RegSet::EMPTY;
        for result in &self.outstanding {
            self.registers.union_with(&result.registers);
        }
    }
}

fn counts_for_counter(result: &&mut OutstandingResult, counter: &WaitCounter) -> bool {
    result.counters.contains(counter)
}

/// A wait of an instruction.
struct WaitLimit {
    counter: WaitCounter,
    /// The number of operations that may be outstanding after it.
    most: usize,
}

impl WaitLimit {
    fn new(counter: WaitCounter, most: usize) -> Self {
        Self { counter, most }
    }
}

fn wait_limits(inst: &Inst, isa: Isa) -> Vec<WaitLimit> {
    let mnemonic = inst.mnemonic();
    if !mnemonic.starts_with("s_wait") {
        return Vec::new();
    }
    let raw = inst.raw(Name::Simm16).unwrap_or(0) as usize;
    match mnemonic {
        "s_waitcnt" if isa.has(Feature::Gfx11Insts) => {
            vec![
                WaitLimit::new(WaitCounter::Load, wait_counter_bits(10, 6, raw)),
                WaitLimit::new(WaitCounter::LgkmAll, wait_counter_bits(4, 6, raw)),
            ]
        }
        "s_waitcnt" => {
            let scalar =
                if isa.has(Feature::Gfx10Insts) { wait_counter_bits(8, 6, raw) } else { wait_counter_bits(8, 4, raw) };
            vec![
                WaitLimit::new(WaitCounter::Load, wait_counter_bits(0, 4, raw) | wait_counter_bits(14, 2, raw) << 4),
                WaitLimit::new(WaitCounter::LgkmAll, scalar),
            ]
        }
        "s_waitcnt_vmcnt" | "s_wait_loadcnt" => vec![WaitLimit::new(WaitCounter::Load, raw)],
        "s_waitcnt_lgkmcnt" => vec![WaitLimit::new(WaitCounter::LgkmAll, raw)],
        "s_wait_dscnt" => vec![WaitLimit::new(WaitCounter::Lds, raw)],
        "s_wait_kmcnt" => vec![WaitLimit::new(WaitCounter::Scalar, raw)],
        "s_wait_samplecnt" => vec![WaitLimit::new(WaitCounter::Sample, raw)],
        "s_wait_bvhcnt" => vec![WaitLimit::new(WaitCounter::Bvh, raw)],
        "s_wait_loadcnt_dscnt" => {
            vec![
                WaitLimit::new(WaitCounter::Load, wait_counter_bits(8, 6, raw)),
                WaitLimit::new(WaitCounter::Lds, wait_counter_bits(0, 6, raw)),
            ]
        }
        "s_wait_storecnt_dscnt" => vec![WaitLimit::new(WaitCounter::Lds, wait_counter_bits(0, 6, raw))],
        "s_wait_idle" => COUNTERS.into_iter().map(|counter| WaitLimit::new(counter, 0)).collect(),
        _ => Vec::new(),
    }
}

fn wait_counter_bits(low: usize, width: usize, raw: usize) -> usize {
    raw >> low & ((1 << width) - 1)
}
