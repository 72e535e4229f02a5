//! The text of instructions, and the operands that it is derived from.

use hotswap_isa::bank::VgprBanks;
use hotswap_isa::reg::{Reg, RegFile, Special, VgprHalf};
use hotswap_isa::text::PrintOptions;
use hotswap_isa::value::{Inline, Literal};
use hotswap_isa::{Inst, Isa, Name, OperandAccess, OperandValue, Target, Wave};
use std::fmt::Write;

const CASES: &str = include_str!("text.txt");

fn isa(setting: &str) -> Isa {
    let mut words = setting.split('/');
    let target = words.next().and_then(Target::find).unwrap_or_else(|| panic!("no target for {setting}"));
    words.fold(Isa::new(target), |isa, word| match word {
        "wave64" => isa.with_wave(Wave::W64),
        "fake16" => isa.with_true16(false),
        other => panic!("no setting {other}"),
    })
}

fn decode(isa: Isa, bytes: &str) -> Inst {
    let code: Vec<u8> =
        (0..bytes.len() / 2).map(|at| u8::from_str_radix(&bytes[2 * at..2 * at + 2], 16).unwrap()).collect();
    let inst = isa.decode(&code).unwrap_or_else(|error| panic!("{isa:?} {bytes}: {error:?}"));
    assert_eq!(usize::from(inst.len()), code.len(), "{isa:?} {bytes}");
    inst
}

fn cases() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| {
        let mut words = line.splitn(3, ' ');
        let mut next = || words.next().unwrap_or_else(|| panic!("short line: {line}"));
        (next(), next(), next())
    })
}

#[test]
fn texts_are_those_of_llvm() {
    let mut count = 0;
    for (setting, bytes, wanted) in cases() {
        let isa = isa(setting);
        let text = decode(isa, bytes).text(isa).to_string();
        assert_eq!(text.trim_end(), wanted, "{setting} {bytes}");
        count += 1;
    }
    assert!(count > 400, "{count} cases");
}

/// A literal replaces a constant only if the text marks it, and a register outside the class has a comment: the
/// operands say both as well.
#[test]
fn remarks_agree_with_the_operands() {
    for (setting, bytes, wanted) in cases() {
        let isa = isa(setting);
        let inst = decode(isa, bytes);
        let invalid = inst.operands(isa).any(|operand| !operand.in_class());
        let remarked = wanted.contains("/*Invalid");
        assert!(invalid || !remarked, "{setting} {bytes}: {wanted}");
        let explicit = inst
            .operands(isa)
            .any(|operand| matches!(operand.value, OperandValue::Literal(literal) if literal.explicit));
        assert_eq!(explicit, wanted.contains("lit(") || wanted.contains("lit64("), "{setting} {bytes}: {wanted}");
    }
}

fn operand(setting: &str, bytes: &str, name: &str) -> OperandValue {
    let isa = isa(setting);
    let name = Name::find(name).unwrap_or_else(|| panic!("no name {name}"));
    decode(isa, bytes).operand(isa, name).unwrap_or_else(|| panic!("{bytes} has no {name:?}"))
}

#[test]
fn operands_have_values() {
    let vector = |index, count| OperandValue::Reg(Reg::new(RegFile::Vgpr, index, count));
    let inline = |code, value| OperandValue::Inline(Inline { code, value });
    let literal = |value, wide, explicit| OperandValue::Literal(Literal { value, wide, explicit });
    let cases = [
        ("gfx900", "0000ccd1f2f0dd03", "vdst", vector(0, 2)),
        ("gfx900", "0000ccd1f2f0dd03", "src0", inline(242, 1.0f64.to_bits() as i64)),
        ("gfx900", "01408ad3c1060218", "src0", inline(193, -1)),
        ("gfx900", "ff02027e0000803f", "src0", literal(0x3f80_0000, false, true)),
        ("gfx900", "ff04023e34120000", "src0", literal(0x1234, false, false)),
        ("gfx900", "410102c0f0ff1f00", "offset", OperandValue::Imm(-16)),
        ("gfx900", "eb0180be", "src0", OperandValue::Reg(Reg::special(Special::SharedBase, 2))),
        ("gfx90a", "008050dc0200ff01", "vdst", OperandValue::Reg(Reg::new(RegFile::Agpr, 1, 1))),
        ("gfx950", "0000add304190244", "src1", vector(12, 6)),
        ("gfx1010", "0a0f80f00100820005000000", "vaddr1", vector(5, 1)),
        ("gfx1010", "b82100f001000200", "vaddr0", vector(1, 4)),
        ("gfx1010", "7d0381be", "src0", OperandValue::Reg(Reg::special(Special::Null, 1))),
        ("gfx1100", "02070365", "src0", OperandValue::Reg(Reg::half(2, VgprHalf::Low))),
        ("gfx1100", "02070365", "vdst", OperandValue::Reg(Reg::half(1, VgprHalf::High))),
        ("gfx1100", "050f70f00100021002030405", "vaddr4", vector(5, 2)),
        ("gfx1250", "fe0804043f00000000000000", "src0", literal(0x3f, true, true)),
        ("gfx1250", "fe3a047ef0debc9a78563412", "src0", literal(0x1234_5678_9abc_def0, true, false)),
    ];
    for (setting, bytes, name, wanted) in cases {
        assert_eq!(operand(setting, bytes, name), wanted, "{setting} {bytes} {name}");
    }
}

/// A multiply-accumulate reads its result; the tied source is the same register.
#[test]
fn tied_operands_are_one_register() {
    let isa = isa("gfx1100");
    let inst = decode(isa, "02070256");
    assert_eq!(inst.text(isa).to_string(), "v_fmac_f32_e32 v1, v2, v3");
    let operands: Vec<_> = inst.operands(isa).collect();
    assert_eq!(operands[0].access, OperandAccess::ReadWrite);
    let tied = operands.iter().find(|operand| operand.name.as_str() == "src2").unwrap();
    assert_eq!((tied.value, tied.access), (operands[0].value, OperandAccess::Read));
}

#[test]
fn branches_have_labels_where_the_caller_knows_them() {
    let isa = isa("gfx900");
    let inst = decode(isa, "ffff82bf");
    let written = |known: u16| {
        let label = move |out: &mut dyn Write, field: u16| {
            if field != known {
                return Ok(false);
            }
            out.write_str("loop").map(|()| true)
        };
        let mut text = String::new();
        inst.write_text(isa, PrintOptions { label: Some(&label), ..PrintOptions::default() }, &mut text).unwrap();
        text
    };
    assert_eq!(written(0xffff), "s_branch loop");
    assert_eq!(written(4), "s_branch 65535");
}

/// Source 0 in the second bank, the destination in the third.
#[test]
fn registers_beyond_the_first_bank_stand_behind_those_of_the_encoding() {
    let isa = isa("gfx1250");
    let written = |bytes: &str, banks: VgprBanks| {
        let mut text = String::new();
        decode(isa, bytes).write_text(isa, PrintOptions { banks, ..PrintOptions::default() }, &mut text).unwrap();
        text
    };
    let banks = VgprBanks::of_mode(0x81);
    assert_eq!(written("0203027e", VgprBanks::ENTRY), "v_mov_b32_e32 v1, v2");
    assert_eq!(written("0203027e", banks), "v_mov_b32_e32 v1 /*v513*/, v2 /*v258*/");
    assert_eq!(written("02050404", banks), "v_add_f64_e32 v[2:3] /*v[514:515]*/, v[2:3] /*v[258:259]*/, v[2:3]");
    assert_eq!(written("0202027e", banks), "v_mov_b32_e32 v1 /*v513*/, s2");
}
