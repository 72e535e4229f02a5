//! Registers that a replacement stores to scratch memory and loads again: nothing else lies in their slots, and every
//! lane that the replacement overwrites comes back.
//!
//! [`super::machine`] proves for one lane that the value comes back. Here: store, replacement and load run under one
//! EXEC, and nothing between them writes lanes that it disables; both operations are waited for; and slots lie beyond
//! the private segment that the original gives every kernel that reaches the site, and inside of the one that the
//! rewritten file gives it.
//!
//! Invariants: the private segment of the original counts all frames: every kernel that reaches the site, and every
//! callee of one, is known, no function is entered again before it returns, and no kernel has a dynamic stack.

use crate::callers::{has_known_stack, is_called_by_pointer, kernels_to};
use crate::unit::LintUnit;
use hotswap_code_object::CodeObject;
use hotswap_code_object::kernel_descriptor::{DYNAMIC_STACK, ENABLE_SCRATCH, KernelDescriptor, SCRATCH};
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst, Isa, Name};
use hotswap_report::{SiteCertificate, SpilledRegister};
use std::collections::BTreeMap;

/// Bytes of a slot.
const SLOT: u32 = 4;
/// Private segments end at a multiple of this if registers are spilled to them.
const ALIGNMENT: u32 = 16;
/// The end of what the signed offset of 24 bits reaches.
const LIMIT: u32 = 1 << 23;

/// The private segment of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KernelPrivateSegment {
    /// Its bytes, as descriptor and metadata agree; `None` if they do not.
    size: Option<u32>,
    is_enabled: bool,
    is_dynamic: bool,
}

/// The private segments of a file, by the symbol of the kernel.
pub(super) type KernelPrivateSegments = BTreeMap<String, KernelPrivateSegment>;

/// Reads the private segments of a code object.
pub(super) fn private_segments(object: &CodeObject<'_>) -> KernelPrivateSegments {
    let mut all = KernelPrivateSegments::new();
    for (kernel, place) in object.note().kernels.iter().zip(object.descriptors()) {
        let bytes = object.bytes().get(place.range.clone());
        let descriptor = bytes.and_then(|bytes| KernelDescriptor::new(bytes, object.target_id().processor));
        let Some(descriptor) = descriptor else { continue };
        let stated = descriptor.get(SCRATCH).filter(|size| Some(*size) == kernel.scratch);
        let segment = KernelPrivateSegment {
            size: stated.and_then(|size| u32::try_from(size).ok()),
            is_enabled: descriptor.get(ENABLE_SCRATCH) == Some(1),
            is_dynamic: kernel.uses_dynamic_stack == Some(true) || descriptor.get(DYNAMIC_STACK) != Some(0),
        };
        all.insert(kernel_symbol(kernel).to_owned(), segment);
    }
    all
}

/// The symbol of a kernel's code.
pub(super) fn kernel_symbol<'k>(kernel: &hotswap_code_object::KernelMetadata<'k>) -> &'k str {
    kernel.symbol.strip_suffix(".kd").unwrap_or(kernel.name)
}

/// The spilled registers as a set.
pub(super) fn spilled_registers(spilled: &[SpilledRegister]) -> RegSet {
    spilled.iter().map(|one| Reg::new(RegFile::Vgpr, one.register, 1)).collect()
}

/// A load from, or a store to, an offset of scratch memory that names no register.
#[derive(Clone, Copy)]
pub(super) struct ScratchAccess {
    pub(super) offset: u32,
    pub(super) is_load: bool,
}

/// The access to scratch memory that an instruction makes, if its address names no register.
pub(super) fn absolute_access(inst: &Inst, isa: Isa) -> Option<ScratchAccess> {
    let is_load = match inst.mnemonic() {
        "scratch_load_b32" => true,
        "scratch_store_b32" => false,
        _ => return None,
    };
    let has_address = [Name::Vaddr, Name::Saddr].iter().any(|name| inst.operand(isa, *name).is_some());
    let offset = inst.raw(Name::Offset).and_then(|offset| u32::try_from(offset).ok())?;
    (!has_address && offset < LIMIT).then_some(ScratchAccess { offset, is_load })
}

/// The cache policy of spills: memory of one work-item (`nv`), without a hint, for no other work-item.
const CACHE_POLICY: u64 = 1 << 5;

/// Checks the stores and loads of the registers that a replacement spills.
pub(super) fn check_replacement(
    site: &SiteCertificate,
    code: &[Inst],
    mut banks: VgprBanks,
    isa: Isa,
) -> Result<(), String> {
    if site.spilled.is_empty() {
        return Ok(());
    }
    let scratch: RegSet = site
        .scratch
        .iter()
        .filter(|run| run.is_vector)
        .flat_map(|run| run.first..run.first.saturating_add(run.count))
        .map(|index| Reg::new(RegFile::Vgpr, index, 1))
        .collect();
    let spilled = spilled_registers(&site.spilled);
    if spilled.iter().any(|reg| !scratch.touches(reg)) {
        return Err("a register is spilled that is no scratch register of the certificate".to_owned());
    }
    let (mut loading, mut is_storing) = (RegSet::EMPTY, false);
    for inst in code {
        let written = inst.written_set(isa, banks);
        if [Special::ExecLo, Special::ExecHi].iter().any(|exec| written.touches(Reg::special(*exec, 1))) {
            return Err("EXEC changes between the store and the load of a spilled register".to_owned());
        }
        if written.intersects(&spilled) && !writes_active_lanes(inst, isa) {
            return Err("lanes of a spilled register are overwritten that EXEC disables".to_owned());
        }
        let zero = inst.raw(Name::Simm16) == Some(0);
        let access = absolute_access(inst, isa);
        if access.is_some() && inst.raw(Name::Cpol) != Some(CACHE_POLICY) {
            return Err("a spilled register is stored or loaded with a hint or for other work-items".to_owned());
        }
        match (access, inst.mnemonic()) {
            (Some(ScratchAccess { is_load: true, .. }), _) => loading.extend(written.iter()),
            (Some(ScratchAccess { is_load: false, .. }), _) => is_storing = true,
            (None, "s_wait_loadcnt") if zero => loading = RegSet::EMPTY,
            (None, "s_wait_storecnt") if zero => is_storing = false,
            _ => {}
        }
        banks = banks.mode_after(inst, isa);
    }
    if loading.intersects(&spilled) {
        return Err("a spilled register is not waited for (s_wait_loadcnt 0)".to_owned());
    }
    match is_storing {
        true => Err("a store of a spilled register is not waited for (s_wait_storecnt 0)".to_owned()),
        false => Ok(()),
    }
}

/// Whether an instruction writes vector registers in the lanes of EXEC alone.
fn writes_active_lanes(inst: &Inst, isa: Isa) -> bool {
    let is_matrix = inst.is(Flag::Wmma) || inst.is(Flag::Swmmac);
    let mut writes = inst.writes(isa).filter(|effect| effect.reg.file == RegFile::Vgpr);
    !is_matrix && (inst.memory_access().is_some() || writes.all(|effect| effect.masked))
}

/// The bytes of private segment that kernels need for the slots of all sites, by the symbol of the kernel.
#[derive(Debug, Default)]
pub(super) struct PrivateNeeds(BTreeMap<String, u32>);

impl PrivateNeeds {
    /// The size that a kernel needs; `None` if it is unchanged.
    pub(super) fn needed_size(&self, kernel: &str) -> Option<u32> {
        self.0.get(kernel).map(|end| end.next_multiple_of(ALIGNMENT))
    }

    pub(super) fn append(&mut self, other: Self) {
        for (kernel, end) in other.0 {
            let known = self.0.entry(kernel).or_default();
            *known = end.max(*known);
        }
    }

    /// Checks the slots of a site, and notes what they need.
    pub(super) fn check_slots(
        &mut self,
        old: &LintUnit<'_>,
        site: &SiteCertificate,
        (before, after): (&KernelPrivateSegments, &KernelPrivateSegments),
    ) -> Result<(), String> {
        let ends = site.spilled.iter().map(|one| one.slot.saturating_add(SLOT));
        let Some((lowest, end)) = site.spilled.iter().map(|one| one.slot).min().zip(ends.max()) else { return Ok(()) };
        let program = &old.program;
        if !program.source.linked || !program.source.alone {
            return Err(
                "registers are spilled in a file that is not linked, or has several sections of code".to_owned()
            );
        }
        let Some((number, _)) = program.function_at(site.old) else {
            return Err("registers are spilled outside of a function".to_owned());
        };
        let kernels = kernels_to(old, number);
        if is_called_by_pointer(old, number) || kernels.is_empty() {
            return Err("registers are spilled in a function whose callers are not known".to_owned());
        }
        for kernel in kernels {
            let name = program.name(&program.functions[kernel as usize]);
            has_known_stack(old, kernel as usize)
                .map_err(|why| format!("registers are spilled, and `{name}` {why}"))?;
            let [was, is] = [before, after].map(|segments| segments.get(&name).copied());
            let Some((was, is)) = was.zip(is) else {
                return Err(format!("registers are spilled, and nothing describes `{name}`"));
            };
            let sizes = was.size.zip(is.size).filter(|_| !was.is_dynamic && !is.is_dynamic);
            let Some((had, has)) = sizes else {
                return Err(format!("registers are spilled, and the private segment of `{name}` is not known"));
            };
            if lowest < had {
                return Err(format!("a slot at {lowest:#x} lies in the {had} bytes of private segment of `{name}`"));
            }
            if end > has || !is.is_enabled {
                return Err(format!("a slot ends at {end:#x}, and `{name}` is granted {has} bytes of private segment"));
            }
            let known = self.0.entry(name).or_default();
            *known = end.max(*known);
        }
        Ok(())
    }
}
