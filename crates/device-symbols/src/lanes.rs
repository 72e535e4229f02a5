//! Lanes of the waves that code was compiled for.

use hotswap_isa::reg::Special;
use hotswap_isa::{Inst, Isa, Value};

/// The instructions of code, one after the other, up to the first bytes that are none.
pub fn instructions(bytes: &[u8], isa: Isa) -> impl Iterator<Item = Inst> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let inst = isa.decode(bytes.get(at..).filter(|rest| !rest.is_empty())?).ok()?;
        at += usize::from(inst.len());
        Some(inst)
    })
}

/// Lanes of the waves that code was compiled for, as its instructions write the mask of lanes: 32 bits or 64.
#[must_use]
pub fn mask_lanes(bytes: &[u8], isa: Isa) -> Option<u8> {
    instructions(bytes, isa).find_map(|inst| {
        let name = inst.mnemonic();
        if name.contains("saveexec") {
            return Some(if name.ends_with("_b32") { 32 } else { 64 });
        }
        let mut operands = inst.operands(isa);
        let first = operands.next().map(|operand| operand.value);
        match first {
            Some(Value::Reg(reg)) if reg.as_special() == Some(Special::ExecLo) && name.starts_with("s_") => {
                Some(if reg.count == 2 { 64 } else { 32 })
            }
            _ => None,
        }
    })
}
