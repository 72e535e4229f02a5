//! Properties of any bytes, shared by the fuzz targets and by the ordinary tests of hotswap-isa.
//!
//! The first two bytes of an input select the target, the wave size and the spelling of 16-bit registers; the rest is
//! code. A check panics where a property does not hold.
//!
//! Absent on purpose: whether text and registers are right, which LLVM decides (`hotswap-isa-exam`).

// Each user calls some of them.
#![allow(dead_code)]

use hotswap_isa::bank::VgprBanks;
use hotswap_isa::encode::reassemble;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Inst, Isa, OperandAccess, OperandValue, Target, Undecoded, Wave};
use std::fmt::{self, Write};

/// No instruction has more operands.
const MOST_OPERANDS: usize = 40;
/// No line of assembly is longer.
const LONGEST_LINE: usize = 800;

/// The setting and the code of an input; `None` without code.
pub(crate) fn split(input: &[u8]) -> Option<(Isa, &[u8])> {
    let [target, mode, code @ ..] = input else { return None };
    let all = Target::all_targets();
    let target = all.get(usize::from(*target) % all.len())?;
    let wave = if mode & 1 == 0 { Wave::W32 } else { Wave::W64 };
    Some((Isa::new(target).with_wave(wave).with_true16(mode & 2 == 0), code))
}

/// An input for [`split`] that selects this setting.
pub(crate) fn join(target: &str, wave: Wave, true16: bool, code: &[u8]) -> Vec<u8> {
    let number = Target::all_targets().iter().position(|one| one.name == target).unwrap_or(0) as u8;
    let mode = u8::from(wave == Wave::W64) | u8::from(!true16) << 1;
    [&[number, mode], code].concat()
}

/// A line of text with a limited length.
struct Line(String);

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.push_str(text);
        assert!(self.0.len() <= LONGEST_LINE, "text without end: {}", self.0);
        Ok(())
    }
}

/// Walks over the code and calls every query.
pub(crate) fn decode(input: &[u8]) {
    let Some((isa, code)) = split(input) else { return };
    let mut expected = 0;
    for (offset, result) in isa.walk(code) {
        assert_eq!(offset, expected, "{isa:?}: bytes left out or looked at twice");
        let rest = &code[offset..];
        expected += match result {
            Ok(inst) => {
                instruction(isa, rest, &inst);
                usize::from(inst.len())
            }
            Err(Undecoded::Opaque { len }) => opaque(isa, rest, len),
            Err(Undecoded::Truncated { have }) => {
                assert!(have <= rest.len() && have < 20, "{isa:?}: {have} of {} bytes are truncated", rest.len());
                rest.len()
            }
        };
    }
    assert_eq!(expected, code.len(), "{isa:?}: the walk ends early");
}

fn opaque(isa: Isa, rest: &[u8], len: Option<u8>) -> usize {
    let skipped = usize::from(len.unwrap_or(4)).min(rest.len());
    assert!(
        len.is_none_or(|len| (4..=20).contains(&len) && usize::from(len) <= rest.len()),
        "{isa:?}: {len:?} {rest:x?}"
    );
    skipped
}

fn instruction(isa: Isa, rest: &[u8], inst: &Inst) {
    let len = usize::from(inst.len());
    assert!((4..=20).contains(&len) && len % 4 == 0 && len <= rest.len(), "{isa:?}: {inst:?} has {len} bytes");
    assert_eq!(inst.bytes()[..len], rest[..len], "{isa:?}: {inst:?}");
    assert!(inst.bytes()[len..].iter().all(|byte| *byte == 0), "{isa:?}: {inst:?} holds what is behind it");
    assert_eq!(isa.instruction_size(rest), Some(inst.len()), "{isa:?}: size of {inst:?}");
    assert_eq!(isa.decode(&rest[..len]), Ok(*inst), "{isa:?}: what follows {inst:?} decides");
    assert!(inst.entry().available(isa), "{isa:?}: {inst:?} does not exist here");
    for have in 0..len {
        if let Ok(shorter) = isa.decode(&rest[..have]) {
            assert!(usize::from(shorter.len()) <= have, "{isa:?}: {shorter:?} from {have} bytes");
        }
    }
    text(isa, inst);
    operands(isa, inst);
    effects(isa, inst);
}

fn text(isa: Isa, inst: &Inst) {
    let mut line = Line(String::new());
    write!(line, "{}", inst.text(isa)).expect("a string takes everything");
    assert!(!line.0.is_empty() && !line.0.contains(|c: char| c.is_ascii_control()), "{isa:?}: {:?}", line.0);
}

fn operands(isa: Isa, inst: &Inst) {
    let mut count = 0;
    for operand in inst.operands(isa) {
        count += 1;
        assert!(count <= MOST_OPERANDS, "{isa:?}: operands of {inst:?} do not end");
        if let OperandValue::Reg(reg) = operand.value {
            register(isa, inst, reg);
        }
        assert!(matches!(operand.access, OperandAccess::Read | OperandAccess::Write | OperandAccess::ReadWrite));
    }
}

fn effects(isa: Isa, inst: &Inst) {
    for effect in inst.reads(isa).chain(inst.writes(isa)) {
        register(isa, inst, effect.reg);
    }
    let banks = VgprBanks::ENTRY;
    let (written, overwritten) = (inst.written_set(isa, banks), inst.overwritten_set(isa, banks));
    assert!(overwritten.iter().all(|reg| written.touches(reg)), "{isa:?}: {inst:?} overwrites what it does not write");
    let _ = (inst.read_set(isa, banks), inst.memory_access(), inst.wait_counters(isa), banks.mode_after(inst, isa));
    let pc = 1 << 20;
    // s_add_pc_i64 adds a constant of 64 bits.
    if let Some(target) = inst.branch_target(pc, isa).filter(|_| inst.mnemonic() != "s_add_pc_i64") {
        // 16 bits of dwords from the end of the instruction.
        assert!(target.abs_diff(pc + 4) <= 4 << 16, "{isa:?}: {inst:?} goes to {target:#x}");
    }
    let _ = inst.control_flow(pc, isa);
}

fn register(isa: Isa, inst: &Inst, reg: Reg) {
    let last = u32::from(reg.index) + u32::from(reg.count);
    // LLVM names tuples that begin at v255 too.
    let end = match reg.file {
        RegFile::Vgpr | RegFile::Agpr => 256 + 32,
        RegFile::Sgpr => 128 + 16,
        RegFile::Ttmp => 16 + 16,
        RegFile::Special => 256,
    };
    assert!(reg.count > 0 && last <= end, "{isa:?}: {reg:?} of {inst:?}");
}

/// Changes fields of the instructions that decode, and rebuilds them. The last eight bytes are the value for fields.
pub(crate) fn round_trip(input: &[u8]) {
    let Some((isa, code)) = split(input) else { return };
    let value = code.last_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes));
    for inst in isa.walk(code).filter_map(|(_, result)| result.ok()) {
        for slot in inst.entry().slots() {
            field(isa, &inst, slot.name, value);
        }
        again(isa, &inst);
    }
}

fn field(isa: Isa, inst: &Inst, name: hotswap_isa::Name, value: u64) {
    let Some(old) = inst.raw(name) else {
        assert!(inst.with_field(isa, name, 0).is_err(), "{isa:?}: {inst:?} has no {name:?}");
        return;
    };
    assert_eq!(inst.with_field(isa, name, old), Ok(*inst), "{isa:?}: {name:?} of {inst:?} as it was");
    for value in [value, value & 0xff, value & 0x1ff, 255, 0] {
        let Ok(changed) = inst.with_field(isa, name, value) else { continue };
        assert_eq!(changed.raw(name), Some(value), "{isa:?}: {name:?} of {inst:?}");
        assert_eq!(
            changed.with_field(isa, name, old),
            Ok(*inst),
            "{isa:?}: {name:?} of {inst:?} to {value:#x} and back"
        );
    }
}

/// A rebuilt instruction is the same entry with the same text, and rebuilding it again changes nothing.
fn again(isa: Isa, inst: &Inst) {
    let Ok(built) = reassemble(inst, isa) else { return };
    assert_eq!(built.entry(), inst.entry(), "{isa:?}: {inst:?} became {built:?}");
    assert_eq!(built.text(isa).to_string(), inst.text(isa).to_string(), "{isa:?}: {inst:?} became {built:?}");
    assert_eq!(reassemble(&built, isa), Ok(built), "{isa:?}: {built:?} built again");
}
