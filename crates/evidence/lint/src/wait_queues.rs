//! The queues in which memory operations complete, and the waits that end their operations.
//!
//! Operations of one queue complete in the order of their issue, or in any order. GFX12 has a counter for each queue. Before
//! it one counter, `lgkmcnt`, counts LDS, scalar memory and messages: operations of LDS are in order among themselves, so that a
//! wait for N ends an LDS operation after which N or more LDS operations were issued, whatever else is outstanding.
//!
//! Invariants: an operation is over only where every order that the hardware may take has ended it. Before GFX10 an access to a
//! flat address may complete as LDS or as memory, and is over when both counters are 0 (`SIInsertWaitcnts`, "pending flat").
//!
//! Absent on purpose: counters of operations that write no register (stores from GFX10 on, exports, asynchronous copies).

use hotswap_isa::effects::{Space, WaitCounter};
use hotswap_isa::reg::Special;
use hotswap_isa::{Feature, Inst, Isa, Name, OperandValue};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum OperationQueue {
    /// Vector memory; before GFX10 its stores, too.
    Load,
    Sample,
    Bvh,
    Lds,
    /// Global data share, before GFX12.
    Gds,
    /// Scalar memory and messages.
    Scalar,
    /// Flat addresses before GFX10, as vector memory.
    FlatMemory,
    /// Flat addresses before GFX10, as LDS.
    FlatLds,
}

impl OperationQueue {
    /// Whether its operations complete in the order of their issue.
    pub(crate) const fn is_in_order(self) -> bool {
        !matches!(self, Self::Scalar | Self::FlatMemory | Self::FlatLds)
    }

    /// After so many later operations one is over without a wait: the hardware issues no more than its counter can count. LLVM leaves
    /// out such waits, for flat addresses, too. None for queues of which the counter has others beside.
    pub(crate) fn largest_count(self, isa: Isa) -> Option<u8> {
        match self {
            Self::Load | Self::FlatMemory => Some(63),
            Self::Lds if isa.has(Feature::Gfx10Insts) => Some(63),
            Self::Lds => Some(15),
            _ => None,
        }
    }
}

/// The queues that count an operation: at most two.
pub(crate) fn operation_queues(inst: &Inst, isa: Isa) -> Vec<OperationQueue> {
    let counters = inst.wait_counters(isa);
    let space = inst.memory_access().map(|memory| memory.space);
    let is_unordered_flat = space == Some(Space::Flat) && !isa.has(Feature::Gfx10Insts);
    let mut queues = Vec::new();
    if counters.has_counter(WaitCounter::Load) && !invalidates_cache(inst, space) {
        queues.push(if is_unordered_flat { OperationQueue::FlatMemory } else { OperationQueue::Load });
    }
    if counters.has_counter(WaitCounter::LgkmAll) {
        queues.push(match space {
            Some(Space::Flat) if is_unordered_flat => OperationQueue::FlatLds,
            Some(Space::Flat | Space::Lds) => OperationQueue::Lds,
            Some(Space::Gds) => OperationQueue::Gds,
            _ => OperationQueue::Scalar,
        });
    }
    for row in SPLIT_COUNTERS {
        queues.extend(counters.has_counter(row.counter).then_some(row.queue));
    }
    queues
}

/// A counter of GFX12 that one queue has alone.
struct SplitCounter {
    counter: WaitCounter,
    queue: OperationQueue,
}

/// The counters of one queue, beside that of loads.
const SPLIT_COUNTERS: &[SplitCounter] = &[
    SplitCounter { counter: WaitCounter::Sample, queue: OperationQueue::Sample },
    SplitCounter { counter: WaitCounter::Bvh, queue: OperationQueue::Bvh },
    SplitCounter { counter: WaitCounter::Lds, queue: OperationQueue::Lds },
    SplitCounter { counter: WaitCounter::Scalar, queue: OperationQueue::Scalar },
];

/// LLVM does not count `buffer_inv` and its older forms, so that no wait may rely on them.
fn invalidates_cache(inst: &Inst, space: Option<Space>) -> bool {
    space == Some(Space::Buffer) && inst.mnemonic().contains("inv")
}

/// The queues of one counter, and how many operations of the counter a wait leaves outstanding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CounterWait {
    queues: &'static [OperationQueue],
    left: u64,
}

impl CounterWait {
    /// Whether the wait ends an operation of a queue after which `since` others of the queue were issued.
    pub(crate) fn ends_operation(&self, queue: OperationQueue, since: u8) -> bool {
        let is_over = if queue.is_in_order() { u64::from(since) >= self.left } else { self.left == 0 };
        self.queues.contains(&queue) && is_over
    }
}

const LOAD: &[OperationQueue] = &[OperationQueue::Load, OperationQueue::FlatMemory];
const LGKM: &[OperationQueue] =
    &[OperationQueue::Lds, OperationQueue::Gds, OperationQueue::Scalar, OperationQueue::FlatLds];
const LDS: &[OperationQueue] = &[OperationQueue::Lds];

/// A counter in the immediate of a wait: up to two fields, the lower bits first.
struct CountField {
    queues: &'static [OperationQueue],
    shift: u32,
    bits: u32,
    /// The position of the upper two bits, which GFX9 and GFX10 have apart.
    upper: Option<u32>,
}

const fn six_bits(queues: &'static [OperationQueue], shift: u32) -> CountField {
    CountField { queues, shift, bits: 6, upper: None }
}

impl CountField {
    fn wait_of(&self, immediate: u64) -> CounterWait {
        let lower = immediate >> self.shift & ((1 << self.bits) - 1);
        let upper = self.upper.map_or(0, |shift| (immediate >> shift & 3) << self.bits);
        CounterWait { queues: self.queues, left: lower | upper }
    }
}

/// A wait instruction whose immediate has these fields.
struct WaitForm {
    mnemonic: &'static str,
    fields: &'static [CountField],
}

const fn wait_form(mnemonic: &'static str, fields: &'static [CountField]) -> WaitForm {
    WaitForm { mnemonic, fields }
}

/// Waits of GFX12, each for one or two counters.
const SPLIT_WAITS: &[WaitForm] = &[
    wait_form("s_wait_loadcnt", &[six_bits(LOAD, 0)]),
    wait_form("s_wait_samplecnt", &[six_bits(&[OperationQueue::Sample], 0)]),
    wait_form("s_wait_bvhcnt", &[six_bits(&[OperationQueue::Bvh], 0)]),
    wait_form("s_wait_dscnt", &[six_bits(LDS, 0)]),
    wait_form("s_wait_kmcnt", &[six_bits(&[OperationQueue::Scalar], 0)]),
    wait_form("s_wait_loadcnt_dscnt", &[six_bits(LOAD, 8), six_bits(LDS, 0)]),
    wait_form("s_wait_storecnt_dscnt", &[six_bits(LDS, 0)]),
];

/// The fields of `s_waitcnt`, which every generation before GFX12 has elsewhere.
const GFX9_FIELDS: &[CountField] = &[
    CountField { queues: LOAD, shift: 0, bits: 4, upper: Some(14) },
    CountField { queues: LGKM, shift: 8, bits: 4, upper: None },
];
const GFX10_FIELDS: &[CountField] =
    &[CountField { queues: LOAD, shift: 0, bits: 4, upper: Some(14) }, six_bits(LGKM, 8)];
const GFX11_FIELDS: &[CountField] = &[six_bits(LOAD, 10), six_bits(LGKM, 4)];

/// Waits of GFX10 and GFX11 for one counter, with a register that is added to the count.
const SINGLE_WAITS: &[WaitForm] =
    &[wait_form("s_waitcnt_vmcnt", &[six_bits(LOAD, 0)]), wait_form("s_waitcnt_lgkmcnt", &[six_bits(LGKM, 0)])];

/// The waits of an instruction.
pub(crate) fn counter_waits(inst: &Inst, isa: Isa) -> Vec<CounterWait> {
    let immediate = inst.raw(Name::Simm16).unwrap_or(u64::MAX);
    let fields = wait_fields(inst, isa);
    fields.iter().map(|field| field.wait_of(immediate)).collect()
}

fn wait_fields(inst: &Inst, isa: Isa) -> &'static [CountField] {
    let name = inst.mnemonic();
    if !name.starts_with("s_wait") {
        return &[];
    }
    if name == "s_waitcnt" {
        return match (isa.has(Feature::Gfx11Insts), isa.has(Feature::Gfx10Insts)) {
            (true, _) => GFX11_FIELDS,
            (false, true) => GFX10_FIELDS,
            (false, false) => GFX9_FIELDS,
        };
    }
    let single = if adds_nothing(inst, isa) { SINGLE_WAITS } else { &[] };
    let known = SPLIT_WAITS.iter().chain(single).find(|form| form.mnemonic == name);
    known.map_or(&[], |form| form.fields)
}

/// Whether the register that a wait adds to its count is `null`. The value of another one is not known, and
/// such a wait ends no operation.
fn adds_nothing(inst: &Inst, isa: Isa) -> bool {
    inst.operands(isa).any(|operand| matches!(operand.value, OperandValue::Reg(reg) if reg.is(Special::Null)))
}
