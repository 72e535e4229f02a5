//! Memory that an instruction touches, and the counters that say when it is done.
//!
//! Invariants: everything comes from the flags of the row; an instruction without flags of memory touches none.
//!
//! Absent on purpose: addresses and sizes, and the order in which results come back.

use crate::{Feature, Flag, Inst, Isa, Name};

/// Which memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Space {
    /// Through the scalar cache.
    Scalar,
    /// Through a buffer descriptor.
    Buffer,
    /// Through an image descriptor.
    Image,
    /// Global memory, LDS or scratch, as the address says.
    Flat,
    /// Global memory.
    Global,
    /// Scratch.
    Scratch,
    /// LDS, parameters and attributes included.
    Lds,
    /// Memory shared by all workgroups, and the synchronisation in it.
    Gds,
    /// Tensors, by their descriptors.
    Tensor,
    /// Export targets.
    Export,
}

/// How an instruction touches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Where the address points.
    pub space: Space,
    /// Reads it.
    pub load: bool,
    /// Writes it.
    pub store: bool,
    /// Both in one, as an atomic operation.
    pub atomic: bool,
    /// LDS is touched as well: flat addresses, copies between LDS and memory.
    pub lds: bool,
}

impl Inst {
    /// How it touches memory.
    #[must_use]
    pub fn memory(&self) -> Option<Memory> {
        let has = |flag| self.is(flag);
        let space = self.space()?;
        let (load, store) = (has(Flag::Load), has(Flag::Store));
        // LLVM calls every instruction of LDS without a result an atomic one, stores as well.
        let atomic = load && store && (has(Flag::AtomicRet) || has(Flag::AtomicNoRet));
        // A copy into LDS loads and stores without being atomic. So does a prefetch for LLVM, to stay in its place.
        let copy = load && store && !atomic && matches!(space, Space::Buffer | Space::Global | Space::Scratch);
        let copy = copy && !self.mnemonic().contains("_prefetch_");
        let lds = matches!(space, Space::Flat | Space::Lds | Space::Tensor) || has(Flag::AsyncCnt) || copy;
        Some(Memory { space, load, store, atomic, lds })
    }

    fn space(&self) -> Option<Space> {
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
        // These are of global data share always, and their bit is fixed.
        let fixed = || matches!(self.mnemonic(), "ds_ordered_count" | "ds_add_gs_reg_rtn" | "ds_sub_gs_reg_rtn");
        let global = space == Space::Lds && (self.raw(Name::Gds) == Some(1) || fixed());
        Some(if global { Space::Gds } else { space })
    }

    /// The counters that it raises and that fall when it is done.
    #[must_use]
    pub fn counters(&self, isa: Isa) -> Counters {
        let mut counters = Counters::default();
        let split = isa.has(Feature::Gfx12Insts);
        let Some(memory) = self.memory() else {
            if is_message(self.mnemonic()) {
                counters.add(if split { Counter::Scalar } else { Counter::LgkmAll });
            }
            return counters;
        };
        if self.is(Flag::VmCnt) {
            counters.add(vector_counter(self, memory, isa));
        }
        if self.is(Flag::LgkmCnt) {
            counters.add(match memory.space {
                Space::Scalar if split => Counter::Scalar,
                _ if split => Counter::Lds,
                _ => Counter::LgkmAll,
            });
        }
        // LLVM's flag is on all vector memory; from gfx9 on, stores have their data when they are issued.
        if matches!(memory.space, Space::Export | Space::Gds) || self.is(Flag::Ldsdir) {
            counters.add(Counter::Export);
        }
        let others = [(Flag::AsyncCnt, Counter::Async), (Flag::TensorCnt, Counter::Tensor)];
        for (_, counter) in others.into_iter().filter(|(flag, _)| self.is(*flag)) {
            counters.add(counter);
        }
        counters
    }
}

/// Scalar instructions that touch no memory, but are done only when a counter falls: messages, and what barriers
/// answer into a scalar register or SCC.
fn is_message(mnemonic: &str) -> bool {
    let barriers = ["s_get_barrier_state", "s_barrier_signal_isfirst", "s_barrier_leave"];
    mnemonic.starts_with("s_sendmsg") || barriers.contains(&mnemonic)
}

/// The counter of vector memory: gfx10 split stores without a result off, gfx12 samples and ray intersections.
fn vector_counter(inst: &Inst, memory: Memory, isa: Isa) -> Counter {
    let writes_back = inst.mnemonic().starts_with("global_wb");
    let stores = memory.store && !memory.load || inst.is(Flag::AtomicNoRet) || writes_back;
    if stores && isa.has(Feature::Gfx10Insts) {
        return Counter::Store;
    }
    if memory.space != Space::Image || !isa.has(Feature::Gfx12Insts) {
        return Counter::Load;
    }
    let bvh = inst.entry().image().and_then(|image| image.base());
    match bvh.is_some_and(|base| base.properties.contains(&"bvh")) {
        true => Counter::Bvh,
        false if inst.is(Flag::Vsample) => Counter::Sample,
        false => Counter::Load,
    }
}

/// A counter of outstanding work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Counter {
    /// Vector memory (`vmcnt`); from gfx10 on only what returns data, from gfx12 on `loadcnt`.
    Load,
    /// Vector memory that returns nothing (`vscnt`, `storecnt`), from gfx10 on.
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
    /// Exports (`expcnt`).
    Export,
    /// Copies between memory and LDS (`asynccnt`).
    Async,
    /// Tensors (`tensorcnt`).
    Tensor,
}

/// A set of counters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters(u16);

impl Counters {
    fn add(&mut self, counter: Counter) {
        self.0 |= 1 << counter as u8;
    }

    /// Whether `counter` is in it.
    #[must_use]
    pub const fn has(self, counter: Counter) -> bool {
        self.0 >> counter as u8 & 1 != 0
    }

    /// Whether there is none in it.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
