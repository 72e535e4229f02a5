//! Matrix instructions: every form with its modifiers, in the shapes in which their results and operands are reused.

use super::Unit;

/// One form: types of A, B, C and the result, and the call.
struct Form {
    name: &'static str,
    types: [&'static str; 4],
    /// With `a`, `b`, `c`; scales `s`, `t` (32 bits) and `u`, `w` (64 bits); index `x` (32 bits) and `y` (64 bits).
    calls: &'static [&'static str],
}

const fn form(name: &'static str, types: [&'static str; 4], calls: &'static [&'static str]) -> Form {
    Form { name, types, calls }
}

/// Forms of both targets.
#[rustfmt::skip]
const COMMON: &[Form] = &[
    form("f32_f16", ["f16x16", "f16x16", "f32x8", "f32x8"],
        &["wmma_f32_16x16x32_f16(0, a, 0, b, (short)0, c, 0, 0)", "wmma_f32_16x16x32_f16(0, a, 0, b, (short)1, c, 1, 0)",
          "wmma_f32_16x16x32_f16(0, a, 0, b, (short)2, c, 0, 1)", "wmma_f32_16x16x32_f16(0, a, 0, b, (short)3, c, 0, 0)"]),
    form("f32_bf16", ["bf16x16", "bf16x16", "f32x8", "f32x8"],
        &["wmma_f32_16x16x32_bf16(0, a, 0, b, (short)0, c, 0, 0)", "wmma_f32_16x16x32_bf16(0, a, 0, b, (short)3, c, 0, 1)"]),
    form("f16_f16", ["f16x16", "f16x16", "f16x8", "f16x8"],
        &["wmma_f16_16x16x32_f16(0, a, 0, b, (short)0, c, 0, 0)", "wmma_f16_16x16x32_f16(0, a, 0, b, (short)2, c, 1, 1)"]),
    form("bf16_bf16", ["bf16x16", "bf16x16", "bf16x8", "bf16x8"],
        &["wmma_bf16_16x16x32_bf16(0, a, 0, b, (short)1, c, 0, 0)"]),
    form("bf16f32_bf16", ["bf16x16", "bf16x16", "f32x8", "bf16x8"],
        &["wmma_bf16f32_16x16x32_bf16(0, a, 0, b, (short)1, c, 0, 1)"]),
    form("f32_fp8_k64", ["i32x8", "i32x8", "f32x8", "f32x8"],
        &["wmma_f32_16x16x64_fp8_fp8(a, b, (short)0, c, 0, 0)", "wmma_f32_16x16x64_fp8_bf8(a, b, (short)1, c, 0, 1)",
          "wmma_f32_16x16x64_bf8_fp8(a, b, (short)2, c, 1, 0)", "wmma_f32_16x16x64_bf8_bf8(a, b, (short)3, c, 0, 0)"]),
    form("f16_fp8_k64", ["i32x8", "i32x8", "f16x8", "f16x8"],
        &["wmma_f16_16x16x64_fp8_fp8(a, b, (short)0, c, 0, 0)", "wmma_f16_16x16x64_bf8_fp8(a, b, (short)3, c, 0, 1)"]),
    form("iu8", ["i32x8", "i32x8", "i32x8", "i32x8"],
        &["wmma_i32_16x16x64_iu8(0, a, 0, b, c, 0, 0)", "wmma_i32_16x16x64_iu8(1, a, 0, b, c, 0, 1)",
          "wmma_i32_16x16x64_iu8(1, a, 1, b, c, 1, 0, 1)", "wmma_i32_16x16x64_iu8(0, a, 1, b, c, 0, 0, 1)"]),
    form("f8f6f4", ["i32x16", "i32x16", "f32x8", "f32x8"],
        &["wmma_f32_16x16x128_f8f6f4(0, a, 0, b, (short)0, c)", "wmma_f32_16x16x128_f8f6f4(1, a, 4, b, (short)1, c)",
          "wmma_f32_16x16x128_f8f6f4(2, a, 3, b, (short)2, c)", "wmma_f32_16x16x128_f8f6f4(4, a, 4, b, (short)3, c)",
          "wmma_f32_16x16x128_f8f6f4(3, a, 4, b, (short)0, c)", "wmma_f32_16x16x128_f8f6f4(4, a, 1, b, (short)0, c)"]),
    form("scale", ["i32x16", "i32x16", "f32x8", "f32x8"],
        &["wmma_scale_f32_16x16x128_f8f6f4(0, a, 1, b, (short)0, c, 0, 0, s, 0, 0, t, 0, 0)",
          "wmma_scale_f32_16x16x128_f8f6f4(4, a, 4, b, (short)1, c, 1, 2, s, 0, 2, t, 0, 1)",
          "wmma_scale_f32_16x16x128_f8f6f4(2, a, 3, b, (short)2, c, 0, 0, s, 1, 0, t, 1, 0)",
          "wmma_scale_f32_16x16x128_f8f6f4(4, a, 0, b, (short)3, c, 0, 1, s, 1, 0, t, 0, 0)"]),
    form("scale16", ["i32x16", "i32x16", "f32x8", "f32x8"],
        &["wmma_scale16_f32_16x16x128_f8f6f4(0, a, 0, b, (short)0, c, 0, 0, u, 0, 0, w, 0, 0)",
          "wmma_scale16_f32_16x16x128_f8f6f4(4, a, 4, b, (short)1, c, 1, 1, u, 0, 1, w, 0, 1)"]),
    form("xf32", ["f32x2", "f32x2", "f32x8", "f32x8"], &["wmma_f32_16x16x4_f32(0, a, 0, b, (short)0, c, 0, 1)"]),
    form("sparse_bf16", ["bf16x16", "bf16x32", "f32x8", "f32x8"],
        &["swmmac_f32_16x16x64_bf16(0, a, 0, b, c, x, 0, 0)", "swmmac_f32_16x16x64_bf16(0, a, 0, b, c, x, 1, 0)"]),
    form("sparse_f16", ["f16x16", "f16x32", "f16x8", "f16x8"], &["swmmac_f16_16x16x64_f16(0, a, 0, b, c, x, 0, 1)"]),
    form("sparse_fp8", ["i32x8", "i32x16", "f32x8", "f32x8"],
        &["swmmac_f32_16x16x128_fp8_fp8(a, b, c, y, 0, 0)", "swmmac_f32_16x16x128_bf8_fp8(a, b, c, y, 0, 1)"]),
    form("sparse_f16_fp8", ["i32x8", "i32x16", "f16x8", "f16x8"], &["swmmac_f16_16x16x128_fp8_bf8(a, b, c, y, 1, 0)"]),
    form("sparse_iu8", ["i32x8", "i32x16", "i32x8", "i32x8"],
        &["swmmac_i32_16x16x128_iu8(0, a, 0, b, c, y, 0, 0)", "swmmac_i32_16x16x128_iu8(1, a, 1, b, c, y, 0, 1, 1)"]),
];

/// Forms of the source only.
#[rustfmt::skip]
const SOURCE_ONLY: &[Form] = &[
    form("f32_fp8_k128", ["i32x16", "i32x16", "f32x8", "f32x8"],
        &["wmma_f32_16x16x128_fp8_fp8(a, b, (short)0, c, 0, 0)", "wmma_f32_16x16x128_fp8_bf8(a, b, (short)1, c, 1, 0)",
          "wmma_f32_16x16x128_bf8_fp8(a, b, (short)2, c, 0, 1)", "wmma_f32_16x16x128_bf8_bf8(a, b, (short)3, c, 0, 0)"]),
    form("f16_fp8_k128", ["i32x16", "i32x16", "f16x8", "f16x8"],
        &["wmma_f16_16x16x128_fp8_fp8(a, b, (short)0, c, 0, 0)", "wmma_f16_16x16x128_fp8_bf8(a, b, (short)1, c, 1, 0)",
          "wmma_f16_16x16x128_bf8_fp8(a, b, (short)2, c, 0, 1)", "wmma_f16_16x16x128_bf8_bf8(a, b, (short)3, c, 0, 0)"]),
    form("f4_m32", ["i32x16", "i32x8", "f32x16", "f32x16"],
        &["wmma_f32_32x16x128_f4(a, b, (short)0, c)", "wmma_f32_32x16x128_f4(a, b, (short)3, c)"]),
    form("f4_m32_scale", ["i32x16", "i32x8", "f32x16", "f32x16"],
        &["wmma_scale_f32_32x16x128_f4(a, b, (short)0, c, 0, 1, s, 0, 1, t, 0, 0)",
          "wmma_scale_f32_32x16x128_f4(a, b, (short)1, c, 0, 0, s, 1, 0, t, 0, 1)"]),
    form("f4_m32_scale16", ["i32x16", "i32x8", "f32x16", "f32x16"],
        &["wmma_scale16_f32_32x16x128_f4(a, b, (short)0, c, 0, 0, u, 1, 0, w, 0, 0)",
          "wmma_scale16_f32_32x16x128_f4(a, b, (short)1, c, 0, 2, u, 0, 2, w, 1, 0)"]),
];

/// How operands and results are reused.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Once; the result is stored.
    One,
    /// Vector instructions read the result and write A and B at once.
    Used,
    /// In a loop, with loads of the next operands.
    Loop,
    /// In a function that is not inlined, called twice.
    Call,
    /// After a branch, the result joined with another.
    Branch,
    /// So many results at once that registers above v255 are used.
    Many,
}

const SHAPES: [(Shape, &str); 6] = [
    (Shape::One, "one"),
    (Shape::Used, "used"),
    (Shape::Loop, "loop"),
    (Shape::Call, "call"),
    (Shape::Branch, "branch"),
    (Shape::Many, "many"),
];

pub(super) fn units() -> Vec<Unit> {
    let mut units = Vec::new();
    for (half, forms, native) in [("common", COMMON, true), ("source", SOURCE_ONLY, false)] {
        for (shape, name) in SHAPES {
            let kernels = forms.iter().flat_map(|form| kernels(form, shape, name)).collect();
            units.push(Unit::new(&format!("matrix_{half}_{name}"), native, kernels));
        }
    }
    units
}

/// One kernel for each call; the long shapes use one call of each form.
fn kernels(form: &Form, shape: Shape, shape_name: &str) -> Vec<String> {
    let accumulates = form.types[2] == form.types[3];
    if !accumulates && shape != Shape::One {
        return Vec::new();
    }
    let calls = match shape {
        Shape::One => form.calls,
        Shape::Used => &form.calls[form.calls.len() - 1..],
        _ => &form.calls[..1],
    };
    let kernel = |(number, call): (usize, &&str)| {
        let [a, b, c, d] = form.types;
        let name = format!("{}_{shape_name}_{number}", form.name);
        let call = format!("__builtin_amdgcn_{call}");
        let head = format!(
            "(GLOBAL {d} *out, GLOBAL const {a} *left, GLOBAL const {b} *right, GLOBAL const {c} *sum, u32 n, u32 s, \
             u32 t, u64 u, u64 w, GLOBAL const u32 *index)"
        );
        let load = "    u32 i = lane();\n    int x = index[i];\n    i32x2 y = {x, x + 1};\n";
        let body = body(shape, form, &name, &call);
        let (before, attribute) = match shape {
            Shape::Call => (function(form, &name, &call), ""),
            Shape::Many => (String::new(), "SMALL "),
            _ => (String::new(), ""),
        };
        format!("{before}{attribute}KERNEL {name}{head} {{\n{load}{body}}}\n\n")
    };
    calls.iter().enumerate().map(kernel).collect()
}

fn function(form: &Form, name: &str, call: &str) -> String {
    let [a, b, c, d] = form.types;
    format!(
        "NOINLINE static {d} {name}_f({a} a, {b} b, {c} c, u32 s, u32 t, u64 u, u64 w, int x, i32x2 y) {{\n    \
         return {call};\n}}\n\n"
    )
}

fn body(shape: Shape, form: &Form, name: &str, call: &str) -> String {
    let [a, b, c, _] = form.types;
    let operands = format!("    {a} a = left[i];\n    {b} b = right[i];\n    {c} c = sum[i];\n");
    match shape {
        Shape::One => format!("{operands}    out[i] = {call};\n"),
        Shape::Used => format!(
            "{operands}    c = {call};\n    a = a + a;\n    b = b + b;\n    c = c + c;\n    out[i] = c;\n    c = {call};\n    \
             out[i + n] = c;\n    a = a + a;\n    c = {call};\n    out[i + 2 * n] = c + c;\n"
        ),
        Shape::Loop => format!(
            "    {c} c = sum[i];\n    ROLLED for (u32 k = 0; k < n; ++k) {{\n        {a} a = left[i + k * 32];\n        \
             {b} b = right[i + k * 32];\n        c = {call};\n    }}\n    out[i] = c;\n"
        ),
        Shape::Call => format!(
            "{operands}    c = {name}_f(a, b, c, s, t, u, w, x, y);\n    a = a + a;\n    \
             c = {name}_f(a, b, c, s, t, u, w, x, y);\n    out[i] = c + c;\n"
        ),
        Shape::Branch => format!(
            "{operands}    if (n > 3)\n        c = {call};\n    else\n        a = left[i + 1];\n    if (x & 1)\n        \
             c = c + c;\n    b = b + b;\n    c = {call};\n    out[i] = c;\n"
        ),
        Shape::Many => format!(
            "    enum {{ COUNT = 36 * 8 / (sizeof({c}) / 4) }};\n    {c} sums[COUNT];\n    \
             UNROLL for (u32 k = 0; k < COUNT; ++k)\n        sums[k] = sum[i + 32 * k];\n    \
             ROLLED for (u32 j = 0; j < n; ++j) {{\n        \
             UNROLL for (u32 k = 0; k < COUNT; ++k) {{\n            \
             {a} a = left[i + j + 32 * (k & 3)];\n            {b} b = right[i + j + 32 * (k & 1)];\n            \
             {c} c = sums[k];\n            sums[k] = {call};\n        }}\n    }}\n    \
             UNROLL for (u32 k = 0; k < COUNT; ++k)\n        out[i + 32 * k] = sums[k];\n"
        ),
    }
}
