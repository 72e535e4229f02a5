//! Products of matrices as a twin: the GPU's part loads fragments and calls a builtin of clang, the host's has three loops.
//!
//! Elements are small integers, so every order of additions gives the same. Which lane holds what is stated here lane by
//! lane, and nowhere shared with the emulator.

use std::fmt::Write;

/// Which lane holds what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FragmentLayout {
    /// CDNA with results of 32 bits.
    Cdna,
    /// CDNA with results of 64 bits.
    CdnaDouble,
    /// gfx11, with that many lanes.
    Rdna3(u32),
    /// gfx12 and gfx12.5, with that many lanes.
    Rdna4(u32),
}

/// A product of one instruction.
#[derive(Debug, Clone, Copy)]
pub struct ProductCase {
    /// Rows of A and columns of B, elements of a row, products in one instruction.
    pub shape: (u32, u32, u32),
    /// Formats of the sources: `f64`, `f32`, `f16`, `bf16`, `fp8`, `bf8`, `fp6`, `bf6`, `fp4`, `i8`, `i4`.
    pub sources: [&'static str; 2],
    /// Type of the sources' fragments.
    pub fragment: &'static str,
    /// Of a product with a sparse A the type of B's fragment; positions are in `index`.
    pub dense: Option<&'static str>,
    /// Type of an element of the results' fragment, and how many there are.
    pub result: (&'static str, u32),
    /// The call, of `a`, `b`, `c` and `index`.
    pub call: &'static str,
    /// The factor of the products of a row `i` and a column `j`, in C.
    pub factor: &'static str,
}

/// Text that both sides share.
const HEAD: &str = r"
typedef _Float16 half;
template <typename T> struct Same { typedef T type; };
template <int FNUZ> DEVICE u32 small_float(i32 x, u32 mantissa) {
    u32 sign = x < 0 ? 0x80u : 0u, m = (u32)(x < 0 ? -x : x), e = m >= 4 ? 2 : m >= 2 ? 1 : 0;
    u32 bias = (mantissa == 3 ? 7u : 15u) + FNUZ;
    return m == 0 ? 0u : sign | (e + bias) << mantissa | ((m << mantissa) >> e & ((1u << mantissa) - 1));
}
// E2M3, E3M2, E2M1: no number here is less than 1.
DEVICE u32 micro_float(i32 x, u32 exponent, u32 mantissa) {
    u32 sign = x < 0 ? 1u << (exponent + mantissa) : 0u, m = (u32)(x < 0 ? -x : x), e = m >= 4 ? 2 : m >= 2 ? 1 : 0;
    u32 bias = (1u << (exponent - 1)) - 1;
    return m == 0 ? 0u : sign | (e + bias) << mantissa | ((m << mantissa) >> e & ((1u << mantissa) - 1));
}
DEVICE i32 number(u32 seed, u32 which, u32 block, u32 i, u32 k) {
    return (i32)(mix(seed + which * 0x9e3779b9u + block * 0x51ed27u + i * 0x1000193u + k * 0x2545f4u) % 15) - 7;
}
DEVICE void put(u8 *bytes, u32 at, u32 bits, u64 value) {
    for (u32 bit = 0; bits < 8 && bit < bits; ++bit)
        bytes[(at * bits + bit) / 8] |= (u8)((value >> bit & 1) << ((at * bits + bit) % 8));
    for (u32 byte = 0; byte < bits / 8; ++byte) bytes[at * (bits / 8) + byte] = (u8)(value >> (8 * byte));
}
// The place in four elements of the first or second one of a sparse row.
DEVICE u32 place(u32 seed, u32 i, u32 four, u32 which) {
    u32 pair = mix(seed ^ i * 77u ^ four * 1031u) % 6;
    return which == 0 ? (pair < 3 ? 0 : pair < 5 ? 1 : 2) : pair < 3 ? pair + 1 : pair < 5 ? pair - 1 : 3;
}
template <typename T, typename U> DEVICE u64 bits_of(T value) { U bits; __builtin_memcpy(&bits, &value, sizeof(U)); return bits; }
";

fn encoding(format: &str, fnuz: bool) -> (u32, String) {
    let fnuz = u32::from(fnuz);
    match format {
        "f64" => (64, "bits_of<double, u64>((double)x)".to_owned()),
        "f32" => (32, "bits_of<float, u32>((float)x)".to_owned()),
        "f16" => (16, "bits_of<half, u16>((half)x)".to_owned()),
        "bf16" => (16, "bits_of<float, u32>((float)x) >> 16".to_owned()),
        "fp8" => (8, format!("small_float<{fnuz}>(x, 3)")),
        "bf8" => (8, format!("small_float<{fnuz}>(x, 2)")),
        "fp6" => (6, "micro_float(x, 2, 3)".to_owned()),
        "bf6" => (6, "micro_float(x, 3, 2)".to_owned()),
        "fp4" => (4, "micro_float(x, 2, 1)".to_owned()),
        "i8" => (8, "(u64)(i64)x".to_owned()),
        _ => (4, "(u64)(i64)x".to_owned()),
    }
}

/// The part of a number that a format has: 5 and 7 are not numbers of 4 bits.
fn part_of(format: &str) -> &'static str {
    if format == "fp4" { " / 2" } else { "" }
}

/// Parts of a row that are in different lanes.
fn parts_of_row(layout: FragmentLayout, m: u32, blocks: u32) -> u32 {
    match layout {
        FragmentLayout::Cdna | FragmentLayout::CdnaDouble => 64 / (m * blocks),
        FragmentLayout::Rdna3(_) => 1,
        FragmentLayout::Rdna4(lanes) => lanes / 16,
    }
}

/// Index, block and first `k` of a lane's fragment of A or B.
fn input_of_lane(layout: FragmentLayout, m: u32, blocks: u32) -> [String; 3] {
    match layout {
        FragmentLayout::Cdna | FragmentLayout::CdnaDouble => {
            [format!("lane % {m}"), format!("lane / {m} % {blocks}"), format!("lane / {} * each", m * blocks)]
        }
        FragmentLayout::Rdna3(_) => ["lane % 16".to_owned(), "0".to_owned(), "0".to_owned()],
        FragmentLayout::Rdna4(_) => ["lane % 16".to_owned(), "0".to_owned(), "lane / 16 * each".to_owned()],
    }
}

/// Row, column and block of element `v` of a lane's results.
fn output_of_lane(layout: FragmentLayout, m: u32) -> [&'static str; 3] {
    match (layout, m) {
        (FragmentLayout::CdnaDouble, 4) => ["lane / 16", "lane % 4", "lane / 4 % 4"],
        (FragmentLayout::CdnaDouble, _) => ["4 * v + lane / 16", "lane % 16", "0"],
        (FragmentLayout::Cdna, 4) => ["v", "lane % 4", "lane / 4"],
        (FragmentLayout::Cdna, 16) => ["v % 4 + 4 * (lane / 16)", "lane % 16", "v / 4"],
        (FragmentLayout::Cdna, _) => ["v % 4 + 4 * (lane / 32) + 8 * (v / 4 % 4)", "lane % 32", "v / 16"],
        (FragmentLayout::Rdna3(32), _) => ["2 * v + lane / 16", "lane % 16", "0"],
        (FragmentLayout::Rdna3(_), _) => ["4 * v + lane / 16", "lane % 16", "0"],
        (FragmentLayout::Rdna4(32), _) => ["v + 8 * (lane / 16)", "lane % 16", "0"],
        (FragmentLayout::Rdna4(_), _) => ["v + 8 * (lane / 16 % 2) + 4 * (lane / 32)", "lane % 16", "0"],
    }
}

fn on_gpu(case: &ProductCase, layout: FragmentLayout, number: usize, base: u32, fnuz: bool) -> String {
    let (m, k, blocks) = case.shape;
    let [index, block, first] = input_of_lane(layout, m, blocks);
    let [i, j, result_block] = output_of_lane(layout, m);
    let (element, count) = case.result;
    let [(bits, first_code), (_, second_code)] = case.sources.map(|format| encoding(format, fnuz));
    // On gfx11 results of 16 bits are in every second half.
    let step = if matches!(layout, FragmentLayout::Rdna3(_)) && element == "half" { 2 } else { 1 };
    let results = count * step;
    // Of a sparse row two of four elements are there.
    let (dense, parts) = (case.dense.unwrap_or(case.fragment), if case.dense.is_some() { 2 } else { 1 });
    let each = k / parts_of_row(layout, m, blocks);
    let [first_part, second_part] = case.sources.map(part_of);
    let (k_of_a, index_bits) = match case.dense {
        Some(_) => (
            format!("({first} + e) / 2 * 4 + place(seed, {index}, ({first} + e) / 2, e % 2)"),
            format!("index |= place(seed, {index}, ({first} + e) / 2, e % 2) << (2 * e);"),
        ),
        None => (format!("{first} + e"), String::new()),
    };
    format!(
        "    {{
        typedef {fragment} A;
        typedef {dense} B;
        typedef {element} R __attribute__((ext_vector_type({results})));
        u8 bytes_a[sizeof(A)] = {{}}, bytes_b[sizeof(B)] = {{}};
        u32 index = 0;
        {{
            const u32 each = {each} / {parts};
            for (u32 e = 0; e < each; ++e) {{
                i32 x = number(seed, {number}, {block}, {index}, {k_of_a}){first_part};
                put(bytes_a, e, {bits}, {first_code});
                {index_bits}
            }}
        }}
        const u32 each = {each};
        for (u32 e = 0; e < each; ++e) {{
            i32 x = number(seed, {number} + 1000, {block}, {index}, {first} + e){second_part};
            put(bytes_b, e, {bits}, {second_code});
        }}
        A a;
        B b;
        R c = {{}}, d;
        __builtin_memcpy(&a, bytes_a, sizeof(A));
        __builtin_memcpy(&b, bytes_b, sizeof(B));
        for (u32 v = 0; v < {count}; ++v) c[v * {step}] = ({element})number(seed, {number} + 2000, {result_block}, {i}, {j});
        d = {call};
        for (u32 v = 0; v < {count}; ++v)
            out[{base} + (({result_block}) * {m} + ({i})) * {m} + ({j})] = (u32)(i32)d[v * {step}];
    }}
",
        fragment = case.fragment,
        call = case.call,
    )
}

fn on_host(case: &ProductCase, number: usize, base: u32) -> String {
    let (m, k, blocks) = case.shape;
    let present = match case.dense {
        Some(_) => "k % 4 == place(seed, i, k / 4, 0) || k % 4 == place(seed, i, k / 4, 1)",
        None => "true",
    };
    let ([first_part, second_part], factor) = (case.sources.map(part_of), case.factor);
    format!(
        "    for (u32 b = 0; b < {blocks}; ++b) for (u32 i = 0; i < {m}; ++i) for (u32 j = 0; j < {m}; ++j) {{
        i32 sum = number(seed, {number} + 2000, b, i, j);
        for (u32 k = 0; k < {k}; ++k) if ({present})
            sum += {factor} * (number(seed, {number}, b, i, k){first_part}) * (number(seed, {number} + 1000, b, j, k){second_part});
        out[{base} + (b * {m} + i) * {m} + j] = (u32)sum;
    }}
"
    )
}

/// The source of a twin that computes all cases, one after the other.
pub fn product_source(cases: &[ProductCase], layouts: &[FragmentLayout], lanes: u32, fnuz: bool) -> String {
    let (mut gpu, mut host, mut base) = (String::new(), String::new(), 0);
    for (number, (case, layout)) in cases.iter().zip(layouts).enumerate() {
        gpu += &on_gpu(case, *layout, number, base, fnuz);
        host += &on_host(case, number, base);
        base += case.shape.0 * case.shape.0 * case.shape.2;
    }
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "// items={lanes} group={lanes} input=1 output={base}\n#include \"twin.h\"\n{HEAD}#ifdef __HIP__\nKERNEL {{\n    u32 lane = \
         local_id(), seed = in[0];\n{gpu}}}\n#else\nstatic void host(const u32 *in, u32 *out, u32) {{\n    u32 seed = in[0];\n{host}}}\n\
         #endif\nMAIN\n"
    );
    text
}
