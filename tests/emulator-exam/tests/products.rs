//! Products of matrices: every instruction that a builtin of clang names, against three loops on the host.

use hotswap_emulator::{EmulatedDevice, PlantedFault};
use hotswap_emulator_exam::{FragmentLayout, ProductCase, TwinCase, TwinRun, product_source};
use hotswap_userland::{Workbench, say};

use FragmentLayout::{Cdna, CdnaDouble, Rdna3, Rdna4};

const fn case(
    shape: (u32, u32, u32),
    sources: [&'static str; 2],
    fragment: &'static str,
    result: (&'static str, u32),
    call: &'static str,
) -> ProductCase {
    ProductCase { shape, sources, fragment, dense: None, result, call, factor: "1" }
}

/// A product with a sparse A; the fragment of B is twice as long.
const fn sparse(
    shape: (u32, u32, u32),
    sources: [&'static str; 2],
    (fragment, dense): (&'static str, &'static str),
    result: (&'static str, u32),
    call: &'static str,
) -> ProductCase {
    ProductCase { dense: Some(dense), ..case(shape, sources, fragment, result, call) }
}

/// The product with scales that differ by row and column.
const fn scaled(case: ProductCase) -> ProductCase {
    ProductCase { factor: "(1 << i % 3 + j % 2)", ..case }
}

/// A call of a builtin of CDNA.
macro_rules! mfma {
    ($name:literal) => {
        concat!("__builtin_amdgcn_mfma_", $name, "(a, b, c, 0, 0, 0)")
    };
}

const HALF4: &str = "half __attribute__((ext_vector_type(4)))";
const HALF8: &str = "half __attribute__((ext_vector_type(8)))";
const HALF16: &str = "half __attribute__((ext_vector_type(16)))";
const SHORT2: &str = "short __attribute__((ext_vector_type(2)))";
const SHORT4: &str = "short __attribute__((ext_vector_type(4)))";
const SHORT8: &str = "short __attribute__((ext_vector_type(8)))";
const SHORT16: &str = "short __attribute__((ext_vector_type(16)))";
const BRAIN8: &str = "__bf16 __attribute__((ext_vector_type(8)))";
const BRAIN16: &str = "__bf16 __attribute__((ext_vector_type(16)))";
const INT2: &str = "int __attribute__((ext_vector_type(2)))";
const INT4: &str = "int __attribute__((ext_vector_type(4)))";
const INT8: &str = "int __attribute__((ext_vector_type(8)))";
const INT16: &str = "int __attribute__((ext_vector_type(16)))";

/// gfx908 and later.
#[rustfmt::skip]
const CDNA1: &[ProductCase] = &[
    case((32, 1, 2), ["f32"; 2], "float", ("float", 32), mfma!("f32_32x32x1f32")),
    case((16, 1, 4), ["f32"; 2], "float", ("float", 16), mfma!("f32_16x16x1f32")),
    case((4, 1, 16), ["f32"; 2], "float", ("float", 4), mfma!("f32_4x4x1f32")),
    case((32, 2, 1), ["f32"; 2], "float", ("float", 16), mfma!("f32_32x32x2f32")),
    case((16, 4, 1), ["f32"; 2], "float", ("float", 4), mfma!("f32_16x16x4f32")),
    case((32, 4, 2), ["f16"; 2], HALF4, ("float", 32), mfma!("f32_32x32x4f16")),
    case((16, 4, 4), ["f16"; 2], HALF4, ("float", 16), mfma!("f32_16x16x4f16")),
    case((4, 4, 16), ["f16"; 2], HALF4, ("float", 4), mfma!("f32_4x4x4f16")),
    case((32, 8, 1), ["f16"; 2], HALF4, ("float", 16), mfma!("f32_32x32x8f16")),
    case((16, 16, 1), ["f16"; 2], HALF4, ("float", 4), mfma!("f32_16x16x16f16")),
    case((32, 4, 2), ["i8"; 2], "int", ("int", 32), mfma!("i32_32x32x4i8")),
    case((16, 4, 4), ["i8"; 2], "int", ("int", 16), mfma!("i32_16x16x4i8")),
    case((4, 4, 16), ["i8"; 2], "int", ("int", 4), mfma!("i32_4x4x4i8")),
];
/// Until gfx90a.
#[rustfmt::skip]
const UNTIL_CDNA2: &[ProductCase] = &[
    case((32, 8, 1), ["i8"; 2], "int", ("int", 16), mfma!("i32_32x32x8i8")),
    case((16, 16, 1), ["i8"; 2], "int", ("int", 4), mfma!("i32_16x16x16i8")),
    case((32, 2, 2), ["bf16"; 2], SHORT2, ("float", 32), mfma!("f32_32x32x2bf16")),
    case((16, 2, 4), ["bf16"; 2], SHORT2, ("float", 16), mfma!("f32_16x16x2bf16")),
    case((4, 2, 16), ["bf16"; 2], SHORT2, ("float", 4), mfma!("f32_4x4x2bf16")),
    case((32, 4, 1), ["bf16"; 2], SHORT2, ("float", 16), mfma!("f32_32x32x4bf16")),
    case((16, 8, 1), ["bf16"; 2], SHORT2, ("float", 4), mfma!("f32_16x16x8bf16")),
];
/// From gfx90a on.
#[rustfmt::skip]
const CDNA2: &[ProductCase] = &[
    case((32, 4, 2), ["bf16"; 2], SHORT4, ("float", 32), mfma!("f32_32x32x4bf16_1k")),
    case((16, 4, 4), ["bf16"; 2], SHORT4, ("float", 16), mfma!("f32_16x16x4bf16_1k")),
    case((4, 4, 16), ["bf16"; 2], SHORT4, ("float", 4), mfma!("f32_4x4x4bf16_1k")),
    case((32, 8, 1), ["bf16"; 2], SHORT4, ("float", 16), mfma!("f32_32x32x8bf16_1k")),
    case((16, 16, 1), ["bf16"; 2], SHORT4, ("float", 4), mfma!("f32_16x16x16bf16_1k")),
    case((16, 4, 1), ["f64"; 2], "double", ("double", 4), mfma!("f64_16x16x4f64")),
    case((4, 4, 4), ["f64"; 2], "double", ("double", 1), "R{__builtin_amdgcn_mfma_f64_4x4x4f64(a, b, c[0], 0, 0, 0)}"),
];
/// From gfx942 on.
#[rustfmt::skip]
const CDNA3: &[ProductCase] = &[
    case((32, 16, 1), ["i8"; 2], "long", ("int", 16), mfma!("i32_32x32x16_i8")),
    case((16, 32, 1), ["i8"; 2], "long", ("int", 4), mfma!("i32_16x16x32_i8")),
    case((16, 32, 1), ["fp8"; 2], "long", ("float", 4), mfma!("f32_16x16x32_fp8_fp8")),
    case((16, 32, 1), ["bf8", "fp8"], "long", ("float", 4), mfma!("f32_16x16x32_bf8_fp8")),
    case((32, 16, 1), ["fp8", "bf8"], "long", ("float", 16), mfma!("f32_32x32x16_fp8_bf8")),
    case((32, 16, 1), ["bf8"; 2], "long", ("float", 16), mfma!("f32_32x32x16_bf8_bf8")),
];
/// Sparse ones, from gfx942 on.
#[rustfmt::skip]
const SPARSE3: &[ProductCase] = &[
    sparse((16, 32, 1), ["f16"; 2], (HALF4, HALF8), ("float", 4), "__builtin_amdgcn_smfmac_f32_16x16x32_f16(a, b, c, index, 0, 0)"),
    sparse((32, 16, 1), ["f16"; 2], (HALF4, HALF8), ("float", 16), "__builtin_amdgcn_smfmac_f32_32x32x16_f16(a, b, c, index << 8, 0, 1)"),
    sparse((16, 32, 1), ["bf16"; 2], (SHORT4, SHORT8), ("float", 4), "__builtin_amdgcn_smfmac_f32_16x16x32_bf16(a, b, c, index << 24, 0, 3)"),
    sparse((16, 64, 1), ["i8"; 2], (INT2, INT4), ("int", 4), "__builtin_amdgcn_smfmac_i32_16x16x64_i8(a, b, c, index << 16, 0, 1)"),
    sparse((32, 32, 1), ["i8"; 2], (INT2, INT4), ("int", 16), "__builtin_amdgcn_smfmac_i32_32x32x32_i8(a, b, c, index, 1, 1)"),
    sparse((16, 64, 1), ["fp8", "bf8"], (INT2, INT4), ("float", 4), "__builtin_amdgcn_smfmac_f32_16x16x64_fp8_bf8(a, b, c, index, 0, 0)"),
];
/// gfx942 alone.
#[rustfmt::skip]
const ONLY_CDNA3: &[ProductCase] = &[
    case((16, 8, 1), ["f32"; 2], "float __attribute__((ext_vector_type(2)))", ("float", 4), mfma!("f32_16x16x8_xf32")),
    case((32, 4, 1), ["f32"; 2], "float __attribute__((ext_vector_type(2)))", ("float", 16), mfma!("f32_32x32x4_xf32")),
];
/// gfx950.
#[rustfmt::skip]
const CDNA4: &[ProductCase] = &[
    case((16, 32, 1), ["f16"; 2], HALF8, ("float", 4), mfma!("f32_16x16x32_f16")),
    case((32, 16, 1), ["f16"; 2], HALF8, ("float", 16), mfma!("f32_32x32x16_f16")),
    case((16, 32, 1), ["bf16"; 2], BRAIN8, ("float", 4), mfma!("f32_16x16x32_bf16")),
    case((32, 16, 1), ["bf16"; 2], BRAIN8, ("float", 16), mfma!("f32_32x32x16_bf16")),
    case((16, 64, 1), ["i8"; 2], INT4, ("int", 4), mfma!("i32_16x16x64_i8")),
    case((32, 32, 1), ["i8"; 2], INT4, ("int", 16), mfma!("i32_32x32x32_i8")),
    sparse((16, 64, 1), ["f16"; 2], (HALF8, HALF16), ("float", 4), "__builtin_amdgcn_smfmac_f32_16x16x64_f16(a, b, c, index << 16, 0, 1)"),
    sparse((16, 128, 1), ["i8"; 2], (INT4, INT8), ("int", 4), "__builtin_amdgcn_smfmac_i32_16x16x128_i8(a, b, c, index, 0, 0)"),
];
/// The same with formats and scales as operands: the second byte scales rows, the fourth one columns.
#[rustfmt::skip]
const FORMATS4: &[ProductCase] = &[
    case((16, 128, 1), ["fp8", "bf8"], INT8, ("float", 4), "__builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, b, c, 0, 1, 0, 0, 0, 0)"),
    case((32, 64, 1), ["fp4"; 2], INT8, ("float", 16), "__builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(a, b, c, 4, 4, 0, 0, 0, 0)"),
    scaled(case((16, 128, 1), ["fp6", "bf6"], INT8, ("float", 4),
        "__builtin_amdgcn_mfma_scale_f32_16x16x128_f8f6f4(a, b, c, 2, 3, 1, (0x7f00 + lane % 16 % 3 * 256) | 5, 3, (0x7f + lane % 2) << 24)")),
    scaled(case((32, 64, 1), ["bf8", "fp8"], INT8, ("float", 16),
        "__builtin_amdgcn_mfma_scale_f32_32x32x64_f8f6f4(a, b, c, 1, 0, 2, (0x7f + lane % 32 % 3) << 16, 0, 0x7f + lane % 2)")),
];
#[rustfmt::skip]
const GFX11: &[ProductCase] = &[
    case((16, 16, 1), ["f16"; 2], HALF16, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c)"),
    case((16, 16, 1), ["bf16"; 2], SHORT16, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c)"),
    case((16, 16, 1), ["f16"; 2], HALF16, ("half", 8), "__builtin_amdgcn_wmma_f16_16x16x16_f16_w32(a, b, c, false)"),
    case((16, 16, 1), ["i8"; 2], INT4, ("int", 8), "__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32(true, a, true, b, c, false)"),
    case((16, 16, 1), ["i4"; 2], INT2, ("int", 8), "__builtin_amdgcn_wmma_i32_16x16x16_iu4_w32(true, a, true, b, c, false)"),
];
#[rustfmt::skip]
const GFX11_W64: &[ProductCase] = &[
    case((16, 16, 1), ["f16"; 2], HALF16, ("float", 4), "__builtin_amdgcn_wmma_f32_16x16x16_f16_w64(a, b, c)"),
    case((16, 16, 1), ["i8"; 2], INT4, ("int", 4), "__builtin_amdgcn_wmma_i32_16x16x16_iu8_w64(true, a, true, b, c, true)"),
];
#[rustfmt::skip]
const GFX12: &[ProductCase] = &[
    case((16, 16, 1), ["f16"; 2], HALF8, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c)"),
    case((16, 16, 1), ["bf16"; 2], SHORT8, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c)"),
    case((16, 16, 1), ["f16"; 2], HALF8, ("half", 8), "__builtin_amdgcn_wmma_f16_16x16x16_f16_w32_gfx12(a, b, c)"),
    case((16, 16, 1), ["fp8"; 2], INT2, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w32_gfx12(a, b, c)"),
    case((16, 16, 1), ["bf8", "fp8"], INT2, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x16_bf8_fp8_w32_gfx12(a, b, c)"),
    case((16, 16, 1), ["i8"; 2], INT2, ("int", 8), "__builtin_amdgcn_wmma_i32_16x16x16_iu8_w32_gfx12(true, a, true, b, c, false)"),
    case((16, 16, 1), ["i4"; 2], "int", ("int", 8), "__builtin_amdgcn_wmma_i32_16x16x16_iu4_w32_gfx12(true, a, true, b, c, false)"),
    case((16, 32, 1), ["i4"; 2], INT2, ("int", 8), "__builtin_amdgcn_wmma_i32_16x16x32_iu4_w32_gfx12(true, a, true, b, c, false)"),
    sparse((16, 32, 1), ["f16"; 2], (HALF8, HALF16), ("float", 8), "__builtin_amdgcn_swmmac_f32_16x16x32_f16_w32(a, b, c, index)"),
    sparse((16, 32, 1), ["bf16"; 2], (SHORT8, SHORT16), ("float", 8), "__builtin_amdgcn_swmmac_f32_16x16x32_bf16_w32(a, b, c, index)"),
    sparse((16, 32, 1), ["fp8"; 2], (INT2, INT4), ("float", 8), "__builtin_amdgcn_swmmac_f32_16x16x32_fp8_fp8_w32(a, b, c, index)"),
    sparse((16, 32, 1), ["i8"; 2], (INT2, INT4), ("int", 8), "__builtin_amdgcn_swmmac_i32_16x16x32_iu8_w32(true, a, true, b, c, index, false)"),
];
#[rustfmt::skip]
const GFX12_W64: &[ProductCase] = &[
    case((16, 16, 1), ["f16"; 2], HALF4, ("float", 4), "__builtin_amdgcn_wmma_f32_16x16x16_f16_w64_gfx12(a, b, c)"),
    case((16, 16, 1), ["fp8"; 2], "int", ("float", 4), "__builtin_amdgcn_wmma_f32_16x16x16_fp8_fp8_w64_gfx12(a, b, c)"),
];
#[rustfmt::skip]
const GFX1250: &[ProductCase] = &[
    case((16, 32, 1), ["f16"; 2], HALF16, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x32_f16(0, a, 0, b, 0, c, false, false)"),
    case((16, 32, 1), ["bf16"; 2], BRAIN16, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x32_bf16(0, a, 0, b, 0, c, false, false)"),
    case((16, 32, 1), ["f16"; 2], HALF16, ("half", 8), "__builtin_amdgcn_wmma_f16_16x16x32_f16(0, a, 0, b, 0, c, false, false)"),
    case((16, 4, 1), ["f32"; 2], "float __attribute__((ext_vector_type(2)))", ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x4_f32(0, a, 0, b, 0, c, false, false)"),
    case((16, 64, 1), ["fp8"; 2], INT8, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x64_fp8_fp8(a, b, 0, c, false, false)"),
    case((16, 64, 1), ["bf8", "fp8"], INT8, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x64_bf8_fp8(a, b, 0, c, false, false)"),
    case((16, 128, 1), ["fp8", "bf8"], "int __attribute__((ext_vector_type(16)))", ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x128_fp8_bf8(a, b, 0, c, false, false)"),
    case((16, 64, 1), ["i8"; 2], INT8, ("int", 8), "__builtin_amdgcn_wmma_i32_16x16x64_iu8(1, a, 1, b, c, false, false)"),
];

/// The same with formats as operands; the upper lanes have the scales of columns.
#[rustfmt::skip]
const FORMATS1250: &[ProductCase] = &[
    case((16, 128, 1), ["bf8", "fp8"], INT16, ("float", 8), "__builtin_amdgcn_wmma_f32_16x16x128_f8f6f4(1, a, 0, b, 0, c)"),
    scaled(case((16, 128, 1), ["fp6", "bf6"], INT16, ("float", 8),
        "__builtin_amdgcn_wmma_scale_f32_16x16x128_f8f6f4(2, a, 3, b, 0, c, 0, 0, (0x7f + lane % 16 % 3) * 0x1010101, 1, 0, lane < 16 ? 5 : \
         (0x7f + lane % 2) * 0x1010101, false, false)")),
    scaled(case((16, 128, 1), ["fp4"; 2], INT16, ("float", 8),
        "__builtin_amdgcn_wmma_scale16_f32_16x16x128_f8f6f4(4, a, 4, b, 0, c, 0, 0, (0x7f + lane % 16 % 3) * 0x101010101010101L, 0, 0, \
         (0x7f + lane % 2) * 0x101010101010101L, false, false)")),
];

struct ProductRun {
    gpu: &'static str,
    words: &'static str,
    lanes: u32,
    is_fnuz: bool,
    tables: &'static [&'static [ProductCase]],
}

const fn run(
    gpu: &'static str,
    words: &'static str,
    lanes: u32,
    is_fnuz: bool,
    tables: &'static [&'static [ProductCase]],
) -> ProductRun {
    ProductRun { gpu, words, lanes, is_fnuz, tables }
}

const RUNS: &[ProductRun] = &[
    run("gfx908", "-O1", 64, false, &[CDNA1, UNTIL_CDNA2]),
    run("gfx90a", "-O1", 64, false, &[CDNA1, UNTIL_CDNA2, CDNA2]),
    run("gfx942", "-O1", 64, true, &[CDNA1, CDNA2, CDNA3, SPARSE3, ONLY_CDNA3]),
    run("gfx950", "-O1", 64, false, &[CDNA1, CDNA2, CDNA3, SPARSE3, CDNA4, FORMATS4]),
    run("gfx1100", "-O1", 32, false, &[GFX11]),
    run("gfx1151", "-O1 -mwavefrontsize64", 64, false, &[GFX11_W64]),
    run("gfx1201", "-O1", 32, false, &[GFX12]),
    run("gfx1200", "-O1 -mwavefrontsize64", 64, false, &[GFX12_W64]),
    run("gfx1250", "-O1", 32, false, &[GFX1250, FORMATS1250]),
];

fn layout(run: &ProductRun, case: &ProductCase) -> FragmentLayout {
    match (run.gpu.as_bytes()[3], run.gpu.as_bytes()[4]) {
        (b'9', _) if case.result.0 == "double" => CdnaDouble,
        (b'9', _) => Cdna,
        (_, b'1') => Rdna3(run.lanes),
        _ => Rdna4(run.lanes),
    }
}

/// Compares with the host; then each product is left out once, which must be seen.
fn check(bench: &Workbench, run: &ProductRun) -> Vec<String> {
    let cases: Vec<ProductCase> = run.tables.iter().copied().flatten().copied().collect();
    let layouts: Vec<FragmentLayout> = cases.iter().map(|case| layout(run, case)).collect();
    let source = product_source(&cases, &layouts, run.lanes, run.is_fnuz);
    let case = TwinCase::new(&format!("products_{}", run.gpu), &source);
    let expected = case.host(bench, include_str!("../twins/twin.h"));
    let object = case.compile(bench, &TwinRun { clang: bench.versions[0], gpu: run.gpu, words: run.words });
    let memory = |planted: Option<PlantedFault>| {
        let mut device = EmulatedDevice::new(run.gpu).unwrap();
        (device.planted, device.counters, device.refuses_undetermined) = (planted, true, true);
        case.emulate(&object, &device)
    };
    let (found, counts) = match memory(None) {
        Ok(result) => result,
        Err(failure) => return vec![format!("{}: {failure}", run.gpu)],
    };
    let mut failures = Vec::new();
    let mut base = 0;
    for product in &cases {
        let end = base + 4 * (product.shape.0 * product.shape.0 * product.shape.2) as usize;
        if found[base..end] != expected[base..end] {
            failures.push(format!("{}: {} differs", run.gpu, product.call));
        }
        base = end;
    }
    let products = counts
        .by_mnemonic
        .keys()
        .filter(|name| ["mfma", "wmma", "smfmac", "swmmac"].iter().any(|part| name.contains(part)));
    let count = products.clone().count();
    let unseen = products.filter(|name| {
        memory(Some(PlantedFault::Skipped((**name).to_owned()))).is_ok_and(|(memory, _)| memory == expected)
    });
    failures.extend(unseen.map(|name| format!("{}: nothing changes without {name}", run.gpu)));
    if count != cases.len() {
        failures.push(format!("{}: {count} products are executed, {} expected", run.gpu, cases.len()));
    }
    failures
}

#[test]
fn products_are_the_hosts() {
    let Some(bench) = Workbench::new("products") else { return };
    let wanted = std::env::var("TWIN_GPU");
    let runs = RUNS.iter().filter(|run| wanted.as_ref().map_or(true, |gpus| gpus.split(',').any(|gpu| gpu == run.gpu)));
    let failures: Vec<String> = runs.flat_map(|run| check(&bench, run)).collect();
    let count: usize = RUNS.iter().map(|run| run.tables.iter().map(|table| table.len()).sum::<usize>()).sum();
    say(&format!("products: {count} of {} targets", RUNS.len()));
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
