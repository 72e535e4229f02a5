//! Features of a processor, apart from its instructions.
//!
//! Instructions are in the tables of `hotswap-isa`. The capabilities here decide how a kernel starts, what its
//! descriptor may state, and which registers code may use.

use std::fmt;

/// Declares [`Capability`] from lines `Name "name" ["LLVM's feature"] "what it means"`.
macro_rules! capabilities {
    ($($name:ident $text:literal [$($llvm:literal)?] $doc:literal,)*) => {
        /// One feature that a processor has or does not have.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Capability {
            $(#[doc = $doc] $name,)*
        }

        impl Capability {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name in listings.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }

            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$name => $doc,)* }
            }

            /// The feature of LLVM's `-mattr` with the same meaning, if there is one.
            pub const fn llvm(self) -> Option<&'static str> {
                let names: &[&str] = match self { $(Self::$name => &[$($llvm)?],)* };
                names.first().copied()
            }
        }
    };
}

capabilities! {
    AccumulationRegisters "agprs" ["mai-insts"] "Accumulation registers beside the vector registers.",
    UnifiedRegisterFile "unified-vgprs" ["gfx90a-insts"] "VGPRs and AGPRs are parts of one file; the descriptor's ACCUM_OFFSET says where AGPRs begin.",
    EvenVgprTuples "even-vgpr-tuples" ["vgpr-align2"] "Operands of several vector registers begin at an even one.",
    VgprBanks "vgpr-banks" ["1024-addressable-vgprs"] "More than 256 vector registers, reached by `s_set_vgpr_msb`.",
    SetregClobbersBanks "setreg-clobbers-vgpr-banks" ["setreg-vgpr-msb-fixup"] "`s_setreg` of MODE also changes the bank of vector registers.",
    ArchitectedFlatScratch "architected-flat-scratch" ["architected-flat-scratch"] "FLAT_SCRATCH is set up by the hardware; no user registers for scratch.",
    ArchitectedSgprs "architected-sgprs" ["architected-sgprs"] "Workgroup ids come in trap temporaries, not in scalar registers.",
    GloballyAddressableScratch "global-scratch" ["globally-addressable-scratch"] "Flat addresses reach the scratch memory of other lanes.",
    PackedWorkItemIds "packed-work-item-ids" ["packed-tid"] "v0 holds all three work-item ids, ten bits each.",
    KernargPreload "kernarg-preload" ["kernarg-preload"] "Kernel arguments can be preloaded into user registers.",
    UserSgprInit16Bug "user-sgpr-init16-bug" ["user-sgpr-init16-bug"] "In waves of 32 lanes at least 16 user and system registers must be set up.",
    SgprInitBug "sgpr-init-bug" ["sgpr-init-bug"] "Every kernel must be given 96 scalar registers.",
    WgpMode "wgp-mode" [] "A workgroup may spread over both compute units of a work-group processor.",
    ThreadgroupSplit "tg-split" ["tgsplit-support"] "The waves of a workgroup may run on several compute units.",
    SharedVgprs "shared-vgprs" [] "Waves of 64 lanes can have registers that both halves share.",
    ClampAndIeeeMode "dx10-clamp-ieee-mode" ["dx10-clamp-and-ieee-mode"] "The descriptor states DX10_CLAMP and IEEE_MODE.",
    InstructionPrefetch "inst-pref-size" [] "The descriptor states how much code to prefetch.",
    RoundRobin "round-robin" [] "The descriptor chooses round robin scheduling of a workgroup's waves.",
    NamedBarriers "named-barriers" [] "The descriptor states a number of named barriers.",
    Clusters "clusters" ["clusters"] "Workgroups can be launched in clusters.",
    Literals64 "literals-64" ["64-bit-literals"] "Instructions can hold a literal of 64 bits.",
    GlobalDataShare "gds" ["gds"] "Memory that all workgroups share.",
    GlobalWaveSync "gws" ["gws"] "Barriers across workgroups.",
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u32);

impl Capabilities {
    /// The set of those.
    pub const fn of_list(list: &[Capability]) -> Self {
        Self(0).with(list)
    }

    /// The set with those added.
    pub const fn with(self, list: &[Capability]) -> Self {
        let (mut bits, mut at) = (self.0, 0);
        while at < list.len() {
            bits |= 1 << list[at] as u32;
            at += 1;
        }
        Self(bits)
    }

    /// The set with those taken out.
    pub const fn without(self, list: &[Capability]) -> Self {
        Self(self.0 & !Self::of_list(list).0)
    }

    /// Whether it is in the set.
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & 1 << capability as u32 != 0
    }

    /// The members of the set, in the order of the declaration.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.iter().copied().filter(move |capability| self.contains(*capability))
    }
}
