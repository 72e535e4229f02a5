//! Replacements that compute, executed on actual numbers.
//!
//! The reference for UE5M3 is its definition: the values of the 255 codes, and a search among them. Operations of the
//! evaluator that take more than one line of integer code are checked against LLVM's constant folding.

mod engine;
#[path = "engine/evaluate.rs"]
mod evaluate;

use engine::{Setting, isa, run};
use evaluate::{Lane, bfe, multiply, round, to_integer};
use hotswap_isa::encode::{InstructionBuilder, OperandArg};
use hotswap_isa::reg::{Reg, RegFile, VgprHalf};
use hotswap_isa::{Class, Inst, Name};
use hotswap_userland::{Workbench, say};

const FREE: &str = "// free: v[100:104], s[40:42]\n";

/// The replacement of one instruction.
fn replacement(inst: Inst) -> Vec<Inst> {
    let bytes = inst.bytes();
    let lines = run(&bytes[..usize::from(inst.len())], &Setting::of(FREE)).unwrap();
    assert!(lines[0].note.is_some());
    lines.into_iter().flat_map(|line| line.code).collect()
}

fn build(mnemonic: &str, class: Class, operands: &[(Name, OperandArg)]) -> Inst {
    let builder = InstructionBuilder::new(isa("gfx1250"), mnemonic, class);
    operands.iter().fold(builder, |builder, (name, arg)| builder.set_operand(*name, *arg)).build().unwrap()
}

fn v(index: u16) -> OperandArg {
    Reg::new(RegFile::Vgpr, index, 1).into()
}

/// The value of a code that is a number: no sign, bias 15, three bits of mantissa.
fn value(code: u32) -> f64 {
    let (exponent, mantissa) = (code >> 3, f64::from(code & 7));
    if exponent == 0 { mantissa * 2f64.powi(-17) } else { (8.0 + mantissa) * 2f64.powi(exponent as i32 - 18) }
}

/// Nearest code of a magnitude, ties to the even one. Values beyond the middle between the largest and the one that
/// would follow are too large.
fn nearest(bits: u32, fp16_ovfl: bool) -> u32 {
    let magnitude = f64::from(f32::from_bits(bits & 0x7fff_ffff));
    if magnitude.is_nan() {
        return 0xff;
    }
    let below = (0..=0xffu32).rev().find(|code| value(*code) <= magnitude).unwrap();
    let code = match below {
        0xff => 0xff,
        _ => {
            let (down, up) = (magnitude - value(below), value(below + 1) - magnitude);
            if down < up || down == up && below % 2 == 0 { below } else { below + 1 }
        }
    };
    match code {
        0xff if fp16_ovfl => 0xfe,
        code => code,
    }
}

/// Every exponent and upper mantissa with the low bits that matter, and numbers between.
fn samples() -> Vec<u32> {
    let mut all = Vec::new();
    for upper in 0..1u32 << 12 {
        for low in [0, 1, 0x7_ffff, 0x8_0000, 0x8_0001, 0xf_ffff] {
            all.push(upper << 20 | low);
        }
    }
    // Ties and their neighbours below 2^-14, where the step does not depend on the exponent.
    for half_steps in 0..=18u32 {
        let middle = (half_steps as f32 * 2f32.powi(-18)).to_bits();
        all.extend([middle.wrapping_sub(1), middle, middle + 1].iter().filter(|bits| **bits < 1 << 31));
    }
    let mut state = 1u64;
    for _ in 0..30_000 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // Near the numbers that are not all 0 or too large.
        all.push(((state >> 33) as u32 & 0x80ff_ffff) + 0x3400_0000 + ((state >> 40) as u32 & 0x0fff_ffff));
    }
    all
}

#[test]
fn packed_conversions_round_to_the_nearest_even_code() {
    for (half, shift, fp16_ovfl) in [(VgprHalf::Low, 0, false), (VgprHalf::High, 16, true), (VgprHalf::High, 16, false)]
    {
        let inst = build(
            "v_cvt_pk_fp8_f32",
            Class::Vop3,
            &[
                (Name::Vdst, Reg::half(5, half).into()),
                (Name::Src0, v(1)),
                (Name::Src1, v(2)),
                (Name::Clamp, OperandArg::Number(1)),
            ],
        );
        let code = replacement(inst);
        for pair in samples().chunks(2) {
            let [a, b] = [pair[0], pair[pair.len() - 1]];
            let vector = [(1, a), (2, b), (5, 0xdead_beef)].into_iter().collect();
            let mut lane = Lane { vector, fp16_ovfl, lane: 3, ..Lane::default() };
            lane.run(&code, isa("gfx1250-strict"));
            let codes = nearest(b, fp16_ovfl) << 8 | nearest(a, fp16_ovfl);
            let expected = 0xdead_beef & !(0xffff << shift) | codes << shift;
            assert_eq!(lane.vector[&5], expected, "{a:#x} {b:#x} {half:?} {fp16_ovfl}");
        }
    }
    say(&format!("e5m3 packed: {} numbers, with both settings of FP16_OVFL", samples().len()));
}

/// Floor of the magnitude in steps of its binade plus noise of as many bits as the steps leave out.
fn stochastic(bits: u32, seed: u32) -> u32 {
    let magnitude = bits & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return 0xff;
    }
    let (exponent, mantissa) = (magnitude >> 23, u64::from(magnitude & 0x7f_ffff));
    let code = match exponent {
        0..109 => 0,
        109..113 => {
            // In units of 2^(exponent - 150); a step of 2^-17 has `left_out` bits of them.
            let left_out = 133 - exponent;
            let noise = u64::from(seed) >> (32 - left_out);
            (((1 << 23) + mantissa + noise) >> left_out) as u32
        }
        _ => {
            let noise = u64::from(seed >> 12);
            let steps = (u64::from(exponent) << 23) + mantissa + noise;
            (steps >> 20) as u32 - (112 << 3)
        }
    };
    if code > 0xfe { 0xff } else { code }
}

#[test]
fn stochastic_conversions_add_the_noise_below_the_last_bit() {
    for byte in 0..4u32 {
        let inst = build(
            "v_cvt_sr_fp8_f32",
            Class::Vop3,
            &[
                (Name::Vdst, v(5)),
                (Name::Src0, v(1)),
                (Name::Src1, v(2)),
                (Name::ByteSel, OperandArg::Number(i64::from(byte))),
                (Name::Clamp, OperandArg::Number(1)),
            ],
        );
        let code = replacement(inst);
        for (number, bits) in samples().into_iter().enumerate().skip(byte as usize).step_by(4) {
            for seed in [0, u32::MAX, 1 << 31, (number as u32).wrapping_mul(0x9e37_79b9)] {
                let vector = [(1, bits), (2, seed), (5, 0x1234_5678)].into_iter().collect();
                let mut lane = Lane { vector, ..Lane::default() };
                lane.run(&code, isa("gfx1250-strict"));
                let expected = 0x1234_5678 & !(0xff << (8 * byte)) | stochastic(bits, seed) << (8 * byte);
                assert_eq!(lane.vector[&5], expected, "{bits:#x} {seed:#x} byte {byte}");
            }
        }
    }
}

/// Without noise nothing is rounded up. A code converts back to itself whatever the noise.
#[test]
fn codes_are_kept_by_every_conversion() {
    for code in 0..0xffu32 {
        let bits = (value(code) as f32).to_bits();
        assert_eq!((nearest(bits, false), stochastic(bits, 0), stochastic(bits, u32::MAX)), (code, code, code));
    }
}

#[test]
fn every_byte_becomes_the_number_that_it_stands_for() {
    for byte in 0..4u32 {
        let inst = build(
            "v_cvt_f32_fp8",
            Class::Vop3,
            &[
                (Name::Vdst, v(5)),
                (Name::Src0, v(1)),
                (Name::ByteSel, OperandArg::Number(i64::from(byte))),
                (Name::Clamp, OperandArg::Number(1)),
            ],
        );
        let code = replacement(inst);
        for number in 0..256u32 {
            let vector = [(1, 0xa5a5_a5a5 & !(0xff << (8 * byte)) | number << (8 * byte))].into_iter().collect();
            let mut lane = Lane { vector, ..Lane::default() };
            lane.run(&code, isa("gfx1250-strict"));
            let expected = if number == 0xff { 0x7fa3_d000 } else { (value(number) as f32).to_bits() };
            assert_eq!(lane.vector[&5], expected, "{number:#x} byte {byte}");
        }
    }
    say("e5m3 to 32 bits: all 256 bytes in all four places");
}

#[test]
fn addtid_addresses_have_twenty_bits_before_the_offset() {
    let offset = (Name::Offset, OperandArg::Number(40));
    let load = build("ds_load_addtid_b32", Class::Ds, &[(Name::Vdst, v(5)), offset]);
    let store = build("ds_store_addtid_b32", Class::Ds, &[(Name::Data0, v(5)), offset]);
    for inst in [load, store] {
        let code = replacement(inst);
        for lane in 0..32 {
            for m0 in [0, 0x1_0000, 0x4_fffc, 0xf_fffc, 0xffff_fffc, 0x8765_4321] {
                let mut state = Lane { lane, m0, vector: [(5, 0)].into_iter().collect(), ..Lane::default() };
                state.run(&code, isa("gfx1250-strict"));
                let address = ((u64::from(m0) + 4 * u64::from(lane)) & 0xf_ffff) as u32 + 40;
                assert_eq!(state.accesses, [(address, 5)], "{} m0 {m0:#x}", inst.mnemonic());
            }
        }
    }
}

#[test]
fn the_evaluator_computes_what_llvm_folds() {
    let Some(bench) = Workbench::new("evaluator") else { return };
    let floats = [
        0u32,
        0x3f00_0000,
        0x3fc0_0000,
        0x4020_0000,
        0x4060_0000,
        0x40ff_ffff,
        0x3eff_ffff,
        0x3700_0000,
        0x437f_0000,
        0x3880_0001,
        0x4b7f_ffff,
    ];
    let mut functions =
        String::from("declare float @llvm.roundeven.f32(float)\ndeclare i32 @llvm.amdgcn.ubfe.i32(i32, i32, i32)\n");
    let mut expected = Vec::new();
    let mut add = |body: String, value: u32| {
        functions += &format!("define i32 @f{}() {{\n{body}\n  ret i32 %r\n}}\n", expected.len());
        expected.push(value as i32);
    };
    for bits in floats {
        let x = format!("  %x = bitcast i32 {bits} to float\n");
        add(format!("{x}  %y = call float @llvm.roundeven.f32(float %x)\n  %r = bitcast float %y to i32"), round(bits));
        add(format!("{x}  %r = fptoui float %x to i32"), to_integer(bits));
        for power in [0x4800_0000u32, 0x3700_0000] {
            let y = format!("  %p = bitcast i32 {power} to float\n  %y = fmul float %x, %p\n");
            add(format!("{x}{y}  %r = bitcast float %y to i32"), multiply(bits, power));
        }
        for (offset, width) in [(0, 20), (20, 1), (24, 8), (0, 8)] {
            let call = format!("  %r = call i32 @llvm.amdgcn.ubfe.i32(i32 {bits}, i32 {offset}, i32 {width})");
            add(call, bfe(bits, offset, width));
        }
    }
    bench.write("fold.ll", format!("target triple = \"amdgcn-amd-amdhsa\"\n{functions}").as_bytes());
    let folded = bench.run("opt-24 -O1 -S fold.ll -o -");
    let found: Vec<i32> = folded
        .lines()
        .filter_map(|line| line.trim().strip_prefix("ret i32 "))
        .map(|value| value.parse().unwrap_or_else(|_| panic!("not folded: {value}\n{folded}")))
        .collect();
    assert_eq!(found, expected);
    say(&format!("evaluator: {} operations as LLVM folds them", found.len()));
}
