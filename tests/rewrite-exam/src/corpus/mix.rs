//! Kernels that mix everything, from a seeded generator: the same seed makes the same text.

use super::Unit;

/// Kernels of a unit and units.
const KERNELS: usize = 8;
const UNITS: u64 = 3;

/// Statements on `u32 x`, `f32x8 c`, `i32x8 a, b`, `SHARED u32 *tile`, `u32 i`, `u32 n`.
const STATEMENTS: &[&str] = &[
    "c = __builtin_amdgcn_wmma_f32_16x16x64_fp8_fp8(a, b, (short)0, c, 0, 0);",
    "c = __builtin_amdgcn_wmma_f32_16x16x64_bf8_fp8(b, a, (short)1, c, 0, 0);",
    "d = __builtin_amdgcn_wmma_i32_16x16x64_iu8(1, a, 0, b, d, 0, 0);",
    "a = a + d;",
    "b = b ^ (int)x;",
    "d = d * a;",
    "c = c * 0.5f;",
    "x += (u32)c[3];",
    "x ^= tile[x & 255] + tile[(x & 255) + 19];",
    "tile[i] = x; tile[i + 64] = n;",
    "tile[(x + i) & 127] = x * 3;",
    "barrier();",
    "x = x * 2654435761u + n;",
    "a[x & 7] = (int)x;",
    "c[1] = __builtin_amdgcn_cvt_f32_fp8((int)x, 1);",
    "x = (u32)__builtin_amdgcn_cvt_pk_fp8_f32(c[0], c[1], (int)x, 1);",
    "out[i] = c;",
    "w = __builtin_amdgcn_wmma_f32_16x16x128_f8f6f4(0, __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, \
     12, 13, 14, 15), 4, __builtin_shufflevector(d, a, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15), (short)0, w);",
    "c += w;",
    "x = mixed(x, c[2]);",
];

struct Seed(u64);

impl Seed {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }

    fn statements(&mut self, depth: usize, count: usize, out: &mut String) {
        let indent = "    ".repeat(depth);
        for _ in 0..count {
            match self.below(10) {
                0 if depth < 4 => {
                    *out += &format!("{indent}if (x & {}) {{\n", 1 << self.below(8));
                    self.statements(depth + 1, count / 2 + 1, out);
                    *out += &format!("{indent}}} else {{\n");
                    self.statements(depth + 1, count / 3 + 1, out);
                    *out += &format!("{indent}}}\n");
                }
                1 if depth < 3 => {
                    let name = format!("k{depth}");
                    *out += &format!("{indent}ROLLED for (u32 {name} = 0; {name} < n; ++{name}) {{\n");
                    self.statements(depth + 1, count / 2 + 1, out);
                    *out += &format!("{indent}}}\n");
                }
                _ => *out += &format!("{indent}{}\n", STATEMENTS[self.below(STATEMENTS.len())]),
            }
        }
    }
}

const MIXED: &str = "NOINLINE static u32 mixed(u32 x, float y) { return (x ^ 0x5bd1e995) + (u32)y; }\n\n";

fn kernel(number: usize, seed: &mut Seed) -> String {
    let mut body = String::new();
    seed.statements(1, 14, &mut body);
    format!(
        "LOCAL u32 mix_{number}_tile[512];\nKERNEL mix_{number}(GLOBAL f32x8 *out, GLOBAL const i32x8 *left, \
         GLOBAL const i32x8 *right, u32 n) {{\n    u32 i = lane(), x = n ^ i;\n    SHARED u32 *tile = mix_{number}_tile;\n    \
         i32x8 a = left[i], b = right[i], d = left[i + 32];\n    f32x8 c = out[i], w = out[i + 64];\n{body}    \
         out[i] = c + w;\n    out[i + 32] = __builtin_convertvector(d, f32x8) + (float)x;\n}}\n\n"
    )
}

pub(super) fn units() -> Vec<Unit> {
    (0..UNITS).map(mixed_kernel_unit).collect()
}

fn mixed_kernel_unit(number: u64) -> Unit {
    let mut seed = Seed(0x5eed_0000 + number);
    let kernels = (0..KERNELS).map(|kernel_number| kernel(kernel_number, &mut seed)).collect();
    let unit = Unit::new(&format!("mix_{number}"), true, kernels);
    Unit { body: format!("{MIXED}{}", unit.body), ..unit }
}
