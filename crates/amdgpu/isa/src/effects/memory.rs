//! Memory accesses of an instruction, and the counters that track their completion.
//!
//! Invariants: everything is derived from the flags of the row; an instruction without memory flags accesses none.
//!
//! Absent on purpose: addresses and sizes, and the order in which results return.

use crate::{Feature, Flag, Inst, Isa, Name};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Through the scalar cache.
    Scalar,
    /// Through a buffer descriptor.
    Buffer,
    /// Through an image descriptor.
    Image,
    /// Global memory, LDS or scratch, depending on the address.
    Flat,
    Global,
    Scratch,
    /// LDS, parameters and attributes included.
    Lds,
    /// Memory shared by all workgroups, and the synchronisation in it.
    Gds,
    /// Tensors, by their descriptors.
    Tensor,
    Export,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryAccess {
    /// The space that the address points into.
    pub space: Space,
    pub load: bool,
    pub store: bool,
    /// Both in one, as an atomic operation.
    pub atomic: bool,
    /// LDS is accessed as well: flat addresses, copies between LDS and memory.
    pub lds: bool,
}

impl Inst {
    /// The memory access of the instruction.
    #[must_use]
    pub fn memory_access(&self) -> Option<MemoryAccess> {
        let space = self.memory_space()?;
        let (load, store) = (self.is(Flag::Load), self.is(Flag::Store));
        // LLVM flags every instruction of LDS without a result as atomic, including stores.
        let atomic = load && store && (self.is(Flag::AtomicRet) || self.is(Flag::AtomicNoRet));
        // A copy into LDS loads and stores without being atomic. LLVM models a prefetch that way too, to keep its
        // place.
        let copy = load && store && !atomic && matches!(space, Space::Buffer | Space::Global | Space::Scratch);
        let copy = copy && !self.mnemonic().contains("_prefetch_");
        let lds = matches!(space, Space::Flat | Space::Lds | Space::Tensor) || self.is(Flag::AsyncCnt) || copy;
        Some(MemoryAccess { space, load, store, atomic, lds })
    }

    fn memory_space(&self) -> Option<Space> {
        let spaces = [
            (Flag::TensorCnt, Space::Tensor),
            (Flag::Smrd, Space::Scalar),
            (Flag::Mubuf, Space::Buffer),
            (Flag::Mtbuf, Space::Buffer),
            (Flag::Mimg, Space::Image),
            (Flag::Vimage, Space::Image),
            (Flag::Vsample, Space::Image),
            (Flag::FlatGlobal, Space::Global),
            (Flag::FlatScratch, Space::Scratch),
            (Flag::Flat, Space::Flat),
            (Flag::Gws, Space::Gds),
            (Flag::Ds, Space::Lds),
            (Flag::Ldsdir, Space::Lds),
            (Flag::Vintrp, Space::Lds),
            (Flag::Exp, Space::Export),
        ];
        let (_, space) = spaces.into_iter().find(|(flag, _)| self.is(*flag))?;
        let global = space == Space::Lds && (self.raw(Name::Gds) == Some(1) || self.always_uses_gds());
        Some(if global { Space::Gds } else { space })
    }

    /// Whether the instruction addresses global data share whatever its bit is, which is fixed.
    fn always_uses_gds(&self) -> bool {
        matches!(self.mnemonic(), "ds_ordered_count" | "ds_add_gs_reg_rtn" | "ds_sub_gs_reg_rtn")
    }

    /// The counters that it increments and that are decremented when it completes.
    #[must_use]
    pub fn wait_counters(&self, isa: Isa) -> CounterSet {
        let mut counters = CounterSet::default();
        let split = isa.has(Feature::Gfx12Insts);
        let Some(memory) = self.memory_access() else {
            if is_message(self.mnemonic()) {
                counters.add_counter(if split { WaitCounter::Scalar } else { WaitCounter::LgkmAll });
            }
            return counters;
        };
        if self.is(Flag::VmCnt) {
            counters.add_counter(vector_counter(self, memory, isa));
        }
        if self.is(Flag::LgkmCnt) {
            counters.add_counter(match memory.space {
                Space::Scalar if split => WaitCounter::Scalar,
                _ if split => WaitCounter::Lds,
                _ => WaitCounter::LgkmAll,
            });
        }
        // LLVM's flag is on all vector memory; from gfx9 on, stores have read their data when they are issued.
        if matches!(memory.space, Space::Export | Space::Gds) || self.is(Flag::Ldsdir) {
            counters.add_counter(WaitCounter::Export);
        }
        if self.is(Flag::AsyncCnt) {
            counters.add_counter(WaitCounter::Async);
        }
        if self.is(Flag::TensorCnt) {
            counters.add_counter(WaitCounter::Tensor);
        }
        counters
    }
}

/// Scalar instructions that access no memory but complete only when a counter is decremented: messages, and barrier
/// instructions that return into a scalar register or SCC.
fn is_message(mnemonic: &str) -> bool {
    let barriers = ["s_get_barrier_state", "s_barrier_signal_isfirst", "s_barrier_leave"];
    mnemonic.starts_with("s_sendmsg") || barriers.contains(&mnemonic)
}

/// The counter of vector memory: gfx10 splits off stores without a result, gfx12 samples and ray intersections.
fn vector_counter(inst: &Inst, memory: MemoryAccess, isa: Isa) -> WaitCounter {
    let writes_back = inst.mnemonic().starts_with("global_wb");
    let stores = memory.store && !memory.load || inst.is(Flag::AtomicNoRet) || writes_back;
    if stores && isa.has(Feature::Gfx10Insts) {
        return WaitCounter::Store;
    }
    if memory.space != Space::Image || !isa.has(Feature::Gfx12Insts) {
        return WaitCounter::Load;
    }
    let bvh = inst.entry().image().and_then(|image| image.base());
    match bvh.is_some_and(|base| base.properties.contains(&"bvh")) {
        true => WaitCounter::Bvh,
        false if inst.is(Flag::Vsample) => WaitCounter::Sample,
        false => WaitCounter::Load,
    }
}

/// A counter of outstanding work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum WaitCounter {
    /// Vector memory (`vmcnt`); from gfx10 on only accesses that return data, from gfx12 on `loadcnt`.
    Load,
    /// Vector memory without a result (`vscnt`, `storecnt`), from gfx10 on.
    Store,
    /// Samples (`samplecnt`), from gfx12 on.
    Sample,
    /// Ray intersections (`bvhcnt`), from gfx12 on.
    Bvh,
    /// LDS, GDS, scalar memory and messages (`lgkmcnt`), before gfx12.
    LgkmAll,
    /// LDS (`dscnt`), from gfx12 on.
    Lds,
    /// Scalar memory (`kmcnt`), from gfx12 on.
    Scalar,
    /// Exports, GDS and direct reads of LDS (`expcnt`).
    Export,
    /// Copies between memory and LDS (`asynccnt`).
    Async,
    /// Transfers of tensors (`tensorcnt`).
    Tensor,
}

/// A set of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CounterSet(u16);

impl CounterSet {
    fn add_counter(&mut self, counter: WaitCounter) {
        self.0 |= 1 << counter as u8;
    }

    /// Whether `counter` is in it.
    #[must_use]
    pub const fn has_counter(self, counter: WaitCounter) -> bool {
        self.0 >> counter as u8 & 1 != 0
    }

    /// Whether it is empty.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
