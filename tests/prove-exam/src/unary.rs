//! Instructions of one 32-bit source that are exact by definition, on every input: roundings to integers, conversions,
//! roots and reciprocals to the nearest number, parts of numbers, first bits.
//!
//! A result is judged by the property that defines it (the nearest of two neighbours, the largest integer below), in 64-bit
//! floats that hold every value here exactly. Nothing is shared with the emulator, not even the host's functions of rounding.
//!
//! Absent on purpose: instructions whose result documents leave open in the last place, but for roots and reciprocals, for
//! which the emulator promises the nearest number. These know no denormals, whatever MODE says.

use crate::sizes::FloatRange;
use crate::workers::on_all_processors;
use hotswap_emulator::{EmulatedDevice, SnippetMachine, SnippetShape, SparseMemory};
use hotswap_isa::reg::{Reg, Special};
use hotswap_userland::Workbench;

/// An instruction and the property of its result.
struct UnaryCase {
    gpu: &'static str,
    name: &'static str,
    /// Registers of the result.
    words: u16,
    /// Whether the instruction has its source a second time.
    twice: bool,
    holds: fn(u32, u64) -> bool,
}

const fn case(name: &'static str, holds: fn(u32, u64) -> bool) -> UnaryCase {
    UnaryCase { gpu: "gfx1030", name, words: 1, twice: false, holds }
}

#[rustfmt::skip]
const CASES: &[UnaryCase] = &[
    case("v_floor_f32", |x, r| integral(x, r, floor)),
    case("v_ceil_f32", |x, r| integral(x, r, |x| -floor(-x))),
    case("v_trunc_f32", |x, r| integral(x, r, |x| x as i64)),
    case("v_rndne_f32", |x, r| integral(x, r, nearest_integer)),
    case("v_fract_f32", fraction),
    case("v_sqrt_f32", root),
    case("v_rcp_f32", reciprocal),
    case("v_frexp_mant_f32", mantissa),
    case("v_frexp_exp_i32_f32", exponent),
    case("v_cvt_i32_f32", |x, r| whole(x, r, |x| x as i64, i32::MIN.into(), i32::MAX.into())),
    case("v_cvt_u32_f32", |x, r| whole(x, r, |x| x as i64, 0, u32::MAX.into())),
    case("v_cvt_flr_i32_f32", |x, r| whole(x, r, floor, i32::MIN.into(), i32::MAX.into())),
    case("v_cvt_f32_i32", |x, r| is_nearest(f64::from(x as i32), r as u32)),
    case("v_cvt_f32_u32", |x, r| is_nearest(f64::from(x), r as u32)),
    case("v_cvt_f32_ubyte0", |x, r| float(r) == f64::from(x & 255)),
    case("v_cvt_f32_ubyte1", |x, r| float(r) == f64::from(x >> 8 & 255)),
    case("v_cvt_f32_ubyte2", |x, r| float(r) == f64::from(x >> 16 & 255)),
    case("v_cvt_f32_ubyte3", |x, r| float(r) == f64::from(x >> 24)),
    case("v_cvt_f16_f32", |x, r| is_nearest_small(x, r as u32, half)),
    case("v_cvt_f32_f16", |x, r| same(float(r), half(x & 0xffff))),
    case("v_ffbh_u32", |x, r| r as u32 == if x == 0 { u32::MAX } else { 31 - f64::from(x).log2() as u32 }),
    case("v_ffbl_b32", |x, r| if x == 0 { r as u32 == u32::MAX } else { r < 32 && x & (u32::MAX >> (31 - r)) == 1 << r }),
    UnaryCase { words: 2, ..case("v_cvt_f64_f32", |x, r| same(f64::from_bits(r), float(x.into()))) },
    UnaryCase { gpu: "gfx1250", twice: true, ..case("v_cvt_pk_bf16_f32", |x, r| {
        r as u32 >> 16 == r as u32 & 0xffff && is_nearest_small(x, r as u32 & 0xffff, brain)
    }) },
];

/// The first target; those of other cases follow in steps of two.
const TARGET: u16 = 8;
const LANES: usize = 32;
/// Parts of the inputs, so that all processors end at about the same time.
const PARTS: u64 = 64;

/// The value of a 32-bit float.
fn float(bits: u64) -> f64 {
    f32::from_bits(bits as u32).into()
}

/// The value of a 16-bit float; infinity is the step after the largest number in [`is_nearest_small`].
fn half(bits: u32) -> f64 {
    let (exponent, fraction) = (bits >> 10 & 31, f64::from(bits & 0x3ff));
    let magnitude = match exponent {
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        0 => fraction / f64::from(1 << 24),
        _ => (1024.0 + fraction) * power(exponent as i32 - 25),
    };
    if bits & 0x8000 != 0 { -magnitude } else { magnitude }
}

fn brain(bits: u32) -> f64 {
    float(u64::from(bits & 0xffff) << 16)
}

/// `2^exponent` for the exponents of 64-bit floats that are normal.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// Equal with the same sign, or both no number.
fn same(one: f64, other: f64) -> bool {
    one.to_bits() == other.to_bits() || one.is_nan() && other.is_nan()
}

fn floor(x: f64) -> i64 {
    let toward_zero = x as i64;
    if toward_zero as f64 > x { toward_zero.saturating_sub(1) } else { toward_zero }
}

fn nearest_integer(x: f64) -> i64 {
    let below = floor(x);
    let rest = x - below as f64;
    below + i64::from(rest > 0.5 || rest == 0.5 && below % 2 != 0)
}

/// A rounding to an integer keeps the format, and the sign of a 0.
fn integral(x: u32, result: u64, rounded: fn(f64) -> i64) -> bool {
    let value = float(x.into());
    // From 2^23 on every number is an integer.
    if value.is_nan() || value.abs() >= power(23) {
        return same(float(result), value);
    }
    same(float(result), (rounded(value) as f64).copysign(value))
}

fn whole(x: u32, result: u64, rounded: fn(f64) -> i64, least: i64, most: i64) -> bool {
    let value = float(x.into());
    // Numbers beyond 64 bits become the largest there; no number is 0.
    i64::from(result as u32) == rounded(value).clamp(least, most) & 0xffff_ffff
}

fn fraction(x: u32, result: u64) -> bool {
    let value = float(x.into());
    if !value.is_finite() {
        return float(result).is_nan();
    }
    // The largest integer below has the sign of the number, a 0 too.
    let below = if value.abs() < power(23) { (floor(value) as f64).copysign(value) } else { value };
    // The largest number below 1 where the difference is rounded to 1.
    same(float(result), f64::from((value - below) as f32).min(1.0 - power(-24)))
}

/// The numbers halfway to the neighbours of a finite, positive 32-bit float.
fn halfways(result: f32) -> [f64; 2] {
    let value = f64::from(result);
    let above = if result == f32::MAX { power(128) } else { f64::from(result.next_up()) };
    [(f64::from(result.next_down()) + value) / 2.0, (value + above) / 2.0]
}

/// Whether a 32-bit float is the nearest one to a finite number that none of them exceeds; of two the even one.
fn is_nearest(exact: f64, result: u32) -> bool {
    let found = f32::from_bits(result);
    if exact == 0.0 {
        return result == 0;
    }
    let [below, above] = halfways(found.abs());
    let (magnitude, is_even) = (exact.abs(), result & 1 == 0);
    found.is_sign_negative() == (exact < 0.0)
        && (below < magnitude || below == magnitude && is_even)
        && (magnitude < above || magnitude == above && is_even)
}

/// Whether a float of 16 bits is the nearest one to a 32-bit float.
fn is_nearest_small(x: u32, result: u32, value_of: fn(u32) -> f64) -> bool {
    let exact = float(x.into());
    let value = value_of(result);
    if exact.is_nan() || exact.is_infinite() {
        return same(value, exact);
    }
    let sign = result & 0x8000;
    let code = result & 0x7fff;
    // The step after the largest number continues, so that infinity is reached halfway.
    let magnitude = |code: u32| {
        let value = value_of(code);
        if value.is_finite() { value } else { 2.0 * value_of(code - 1) - value_of(code - 2) }
    };
    let (number, is_even) = (exact.abs(), code.is_multiple_of(2));
    let above_lower = code == 0 || {
        let middle = (magnitude(code - 1) + magnitude(code)) / 2.0;
        middle < number || middle == number && is_even
    };
    let below_upper = value.is_infinite() || {
        let middle = (magnitude(code) + magnitude(code + 1)) / 2.0;
        number < middle || number == middle && is_even
    };
    !value.is_nan() && (sign != 0) == (x >> 31 != 0) && above_lower && below_upper
}

/// A source of instructions that know no denormals: they are 0.
fn flushed(x: u32) -> f64 {
    let value = float(x.into());
    if value.abs() < LEAST { 0.0_f64.copysign(value) } else { value }
}

/// The smallest normal number.
const LEAST: f64 = f32::MIN_POSITIVE as f64;

fn root(x: u32, result: u64) -> bool {
    let value = flushed(x);
    if value.is_nan() || value < 0.0 {
        return float(result).is_nan();
    }
    if value == 0.0 || value.is_infinite() {
        return same(float(result), value);
    }
    // Squares of numbers of 25 bits are exact, and no root is halfway.
    let [below, above] = halfways(f32::from_bits(result as u32));
    below * below < value && value < above * above
}

fn reciprocal(x: u32, result: u64) -> bool {
    let (value, found) = (flushed(x), float(result));
    if value.is_nan() {
        return found.is_nan();
    }
    if value.is_infinite() || value == 0.0 {
        return same(found, 1.0 / value);
    }
    // Denormal results are 0, and rounding does not make one of them normal: they are powers of two or below.
    if value.abs() * LEAST > 1.0 {
        return same(found, 0.0_f64.copysign(value));
    }
    if found.is_infinite() {
        // Products of 24 and 25 bits are exact.
        return value.is_sign_negative() == found.is_sign_negative() && value.abs() * halfways(f32::MAX)[1] <= 1.0;
    }
    let [below, above] = halfways(found.abs() as f32).map(|number| number * value.abs());
    let is_even = result & 1 == 0;
    value.is_sign_negative() == found.is_sign_negative()
        && (below < 1.0 || below == 1.0 && is_even)
        && (1.0 < above || above == 1.0 && is_even)
}

fn mantissa(x: u32, result: u64) -> bool {
    let (value, found) = (float(x.into()), float(result));
    if !value.is_finite() || value == 0.0 {
        return same(found, value);
    }
    let ratio = value / found;
    (0.5..1.0).contains(&found.abs()) && ratio > 0.0 && ratio.to_bits() << 12 == 0
}

fn exponent(x: u32, result: u64) -> bool {
    let value = float(x.into()).abs();
    if !value.is_finite() || value == 0.0 {
        return result as u32 == 0;
    }
    let found = result as u32 as i32;
    (-200..200).contains(&found) && power(found - 1) <= value && value < power(found)
}

/// A line of assembly.
fn text(case: &UnaryCase, number: usize) -> String {
    let first = TARGET + 2 * number as u16;
    let target = if case.words == 2 { format!("v[{first}:{}]", first + 1) } else { format!("v{first}") };
    format!("\t{} {target}, v0{}\n", case.name, if case.twice { ", v0" } else { "" })
}

/// The cases of a GPU, with their code.
struct CaseGroup {
    gpu: &'static str,
    cases: Vec<(usize, &'static UnaryCase)>,
    code: Vec<u8>,
}

fn group(bench: &Workbench, gpu: &'static str) -> CaseGroup {
    let cases: Vec<(usize, &UnaryCase)> = CASES.iter().filter(|case| case.gpu == gpu).enumerate().collect();
    let lines: String = cases.iter().map(|(number, case)| text(case, *number)).collect();
    let version = *bench.versions.last().expect("a workbench has a compiler");
    bench.assemble(version, &format!("-mcpu={gpu} -mattr=+wavefrontsize32"), "unary", &lines);
    bench.run(&format!("/usr/lib/llvm-{version}/bin/llvm-objcopy -O binary --only-section=.text unary.o unary.bin"));
    CaseGroup { gpu, cases, code: bench.read("unary.bin") }
}

impl CaseGroup {
    /// The first difference in a part of the inputs.
    fn differs(&self, floats: &FloatRange) -> Option<String> {
        let Ok(device) = EmulatedDevice::new(self.gpu) else { return Some("no such device".to_owned()) };
        let mut memory = SparseMemory::new();
        let start = memory.allocate_copy(&[&self.code[..], &[0; 64]].concat());
        let vectors = TARGET + 2 * self.cases.len() as u16;
        let mut machine =
            SnippetMachine::new(&device, &memory, &SnippetShape { lanes: LANES, vectors, lds: 64, scratch: 16 });
        machine.set_mode(0x3f0, 0);
        machine.set_scalar(Reg::special(Special::ExecLo, 1), u32::MAX);
        let end = start + self.code.len() as u64;
        let step = floats.step;
        let mut input = floats.first();
        while input < floats.end {
            let inputs: [u32; LANES] = std::array::from_fn(|lane| (input + lane as u64 * step) as u32);
            *machine.vector_mut(0, 0) = inputs;
            if let Err(fault) = machine.run_until(start, 100, &|pc| pc == end) {
                return Some(format!("{}: {fault}", self.gpu));
            }
            if let Some(what) = self.cases.iter().find_map(|one| wrong(&machine, one, &inputs)) {
                return Some(format!("{}: {what}", self.gpu));
            }
            input += LANES as u64 * step;
        }
        None
    }
}

/// The first lane whose result is not what the definition says.
fn wrong(machine: &SnippetMachine<'_>, (number, case): &(usize, &UnaryCase), inputs: &[u32; LANES]) -> Option<String> {
    let register = TARGET + 2 * *number as u16;
    let low = machine.vector(register, 0);
    let high = if case.words == 2 { machine.vector(register + 1, 0) } else { &[0; LANES] };
    let lane =
        (0..LANES).find(|lane| !(case.holds)(inputs[*lane], u64::from(low[*lane]) | u64::from(high[*lane]) << 32))?;
    Some(format!("{} of {:#010x} is {:#x} {:#x}", case.name, inputs[lane], high[lane], low[lane]))
}

/// The number of instructions.
pub fn count() -> usize {
    CASES.len()
}

/// The differences.
///
/// # Panics
/// If the assembler refuses an instruction.
pub fn differences(bench: &Workbench, floats: &FloatRange) -> Vec<String> {
    let groups = ["gfx1030", "gfx1250"].map(|gpu| group(bench, gpu));
    let parts: Vec<(&CaseGroup, FloatRange)> =
        groups.iter().flat_map(|group| (0..PARTS).map(move |part| (group, floats.part(part, PARTS)))).collect();
    let found = on_all_processors(&parts, |(group, part)| group.differs(part));
    println!("exhaustive: {} instructions of one source", count());
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holds(name: &str, input: f32, result: f32) -> bool {
        let case = CASES.iter().find(|case| case.name == name).unwrap();
        (case.holds)(input.to_bits(), result.to_bits().into())
    }

    #[test]
    fn neighbours_of_the_right_result_are_wrong() {
        for (name, input, right) in [
            ("v_floor_f32", -1.5, -2.0),
            ("v_ceil_f32", -0.25, -0.0),
            ("v_rndne_f32", 2.5, 2.0),
            ("v_trunc_f32", -7.9, -7.0),
            ("v_sqrt_f32", 2.0, std::f32::consts::SQRT_2),
            ("v_rcp_f32", 3.0, 1.0 / 3.0),
            ("v_frexp_mant_f32", 6.0, 0.75),
            ("v_fract_f32", -0.25, 0.75),
        ] {
            assert!(holds(name, input, right), "{name} {input}");
            for wrong in [right.next_up(), right.next_down(), -right] {
                assert!(!holds(name, input, wrong), "{name} {input} {wrong}");
            }
        }
        assert!(holds("v_fract_f32", -0.0, 0.0) && !holds("v_fract_f32", -0.0, -0.0));
        assert!(!holds("v_floor_f32", -0.0, 0.0) && holds("v_sqrt_f32", -0.0, -0.0));
        assert!(holds("v_rcp_f32", f32::MAX, 0.0) && !holds("v_rcp_f32", f32::MAX, f32::from_bits(0x0020_0000)));
    }

    #[test]
    fn small_floats_are_the_nearest() {
        for (input, right) in
            [(65519.0, 0x7bff_u32), (65520.0, 0x7c00), (-65536.0, 0xfc00), (6.0e-8, 1), (2.0e-8, 0), (1.0, 0x3c00)]
        {
            let input: f32 = input;
            for code in [right.wrapping_sub(1), right, right + 1].into_iter().filter(|code| *code < 0x1_0000) {
                assert_eq!(is_nearest_small(input.to_bits(), code, half), code == right, "{input} {code:x}");
            }
        }
        assert!(
            is_nearest(16_777_217.0, 16_777_216_f32.to_bits()) && !is_nearest(16_777_217.0, 16_777_218_f32.to_bits())
        );
    }
}
