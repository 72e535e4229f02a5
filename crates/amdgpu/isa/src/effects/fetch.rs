//! Vector memory instructions whose fields make them access more or fewer dwords of a register.
//!
//! Invariants: the set of registers that may be accessed is never too small; where the encoding does not say, it is the
//! largest possible one.

use crate::reg::Reg;
use crate::{Inst, Name};

/// The register with every dword that an image instruction may touch, where its operand names fewer. gfx9 does not
/// encode the dimension, so the addresses are as many as the operation can have; with `lwe` there is a status dword as
/// with `tfe`, which LLVM's operand lacks.
pub(super) fn touched_register(inst: &Inst, mut reg: Reg, name: Name, written: bool) -> Reg {
    let entry = inst.entry();
    let Some((image, base)) = entry.image().and_then(|image| Some((image, image.base()?))) else { return reg };
    match name {
        Name::Vaddr if entry.slot(Name::Dim).is_none() => {
            let variants = base.variants.iter().filter(|(encoding, ..)| *encoding == image.encoding);
            reg.count = variants.map(|(_, _, address)| *address).max().unwrap_or(0).max(reg.count);
        }
        Name::Vdata if written && inst.raw(Name::Lwe) == Some(1) && inst.raw(Name::Tfe) == Some(0) => reg.count += 1,
        _ => {}
    }
    reg
}

/// Whether part of the old destination may survive: a failed fetch leaves the data unchanged, 16-bit data
/// may leave a half.
#[cold]
pub(super) fn in_part(inst: &Inst) -> bool {
    [Name::Tfe, Name::Lwe, Name::D16].iter().any(|name| inst.raw(*name).is_some_and(|value| value != 0))
}
