//! The parts of MODE that control rounding and denormals of 16-bit floats: which instructions set them to unusual
//! values.
//!
//! The usual values are those that matrix instructions use whatever MODE says, and that LLVM puts into descriptors:
//! round to the nearest even, flush nothing.
//!
//! Not here: the value of MODE at a given point. One instruction anywhere that sets these parts to other values is
//! enough.

use hotswap_code_object::CodeObject;
use hotswap_code_object::kernel_descriptor::{DENORM_16_64, DescriptorField, KernelDescriptor, ROUND_16_64};
use hotswap_isa::{Flag, Inst, Name};

/// MODE: rounding in bits 3:2, denormals in bits 7:6.
const PARTS: u32 = 3 << 2 | 3 << 6;
const USUAL: u32 = 3 << 6;
/// Number of MODE in the operand of `s_setreg`.
const MODE: u32 = 1;

/// Why MODE may have 16-bit floats rounded other than to the nearest even, or their denormals flushed,
/// somewhere in an object.
pub(super) fn half_mode_reason(object: &CodeObject<'_>, is_set: bool) -> Option<String> {
    /// Values of the descriptor fields: round to the nearest even, flush nothing.
    const USUAL: [(&DescriptorField, u64); 2] = [(ROUND_16_64, 0), (DENORM_16_64, 3)];
    if is_set {
        return Some("an instruction of this code object sets them otherwise".to_owned());
    }
    let kernels = object.note().kernels.iter().zip(object.descriptors());
    for (kernel, place) in kernels {
        let bytes = object.bytes().get(place.range.clone());
        let descriptor = bytes.and_then(|bytes| KernelDescriptor::new(bytes, object.target_id().processor));
        let Some(descriptor) = descriptor else { continue };
        for (field, usual) in USUAL {
            if let Some(value) = descriptor.get(field).filter(|value| *value != usual) {
                return Some(format!("the descriptor of `{}` has {} {value}", kernel.name, field.name));
            }
        }
    }
    None
}

/// Whether an instruction that writes MODE may set one of these parts to an unusual value.
pub(super) fn sets_other(inst: &Inst) -> bool {
    let Some(operand) = inst.raw(Name::Simm16).map(|operand| operand as u32) else { return true };
    let (register, offset, size) = (operand & 63, operand >> 6 & 31, (operand >> 11 & 31) + 1);
    let (set, value) = match inst {
        _ if inst.is(Flag::Sopk) && register != MODE => return false,
        _ if inst.is(Flag::Sopk) => {
            let field = (((1_u64 << size) - 1) << offset) as u32;
            (field, inst.raw(Name::Imm).map(|value| (value << offset) as u32))
        }
        // `s_round_mode` and `s_denorm_mode` set four bits each.
        _ if inst.mnemonic() == "s_round_mode" => (0xf, Some(operand)),
        _ if inst.mnemonic() == "s_denorm_mode" => (0xf0, Some(operand << 4)),
        _ => return true,
    };
    let parts = set & PARTS;
    parts != 0 && value.is_none_or(|value| value & parts != USUAL & parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa::{Isa, Target};

    /// LLVM's bytes of some instructions, and whether they set these parts to unusual values.
    #[test]
    fn instructions_that_set_mode_otherwise_are_found() {
        let isa = Isa::new(Target::find("gfx1250").unwrap());
        let cases: [(&[u8], bool); 9] = [
            // s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 25, 1), 1
            (&[0x41, 0x06, 0x80, 0xb9, 1, 0, 0, 0], false),
            // s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 2, 2), 3
            (&[0x81, 0x08, 0x80, 0xb9, 3, 0, 0, 0], true),
            // s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 2, 2), 0
            (&[0x81, 0x08, 0x80, 0xb9, 0, 0, 0, 0], false),
            // s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 4, 4), 0xf
            (&[0x01, 0x19, 0x80, 0xb9, 15, 0, 0, 0], false),
            // s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 4, 4), 0
            (&[0x01, 0x19, 0x80, 0xb9, 0, 0, 0, 0], true),
            // s_setreg_b32 hwreg(HW_REG_WAVE_MODE), s0
            (&[0x01, 0xf8, 0x00, 0xb9], true),
            // s_round_mode 0xc, s_round_mode 0x3
            (&[0x0c, 0x00, 0x91, 0xbf], true),
            (&[0x03, 0x00, 0x91, 0xbf], false),
            // s_denorm_mode 0x3
            (&[0x03, 0x00, 0x92, 0xbf], true),
        ];
        for (bytes, expected) in cases {
            let inst = isa.decode(bytes).unwrap();
            assert_eq!(sets_other(&inst), expected, "{inst:?}");
        }
    }
}
