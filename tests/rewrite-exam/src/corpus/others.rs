//! Conversions, barriers, MODE, the base of scratch as a source, functions, high pressure on registers.

use super::Unit;
use super::memory::several;

/// Scaled conversions: builtin, result, source, and the highest selector that the target has.
const SCALED: &[(&str, &str, &str, u32)] = &[
    ("pk8_f16_fp8", "f16x8", "u32x2", 7),
    ("pk8_f16_bf8", "f16x8", "u32x2", 7),
    ("pk8_bf16_fp8", "bf16x8", "u32x2", 7),
    ("pk8_bf16_bf8", "bf16x8", "u32x2", 7),
    ("pk8_f32_fp8", "f32x8", "u32x2", 7),
    ("pk8_f32_bf8", "f32x8", "u32x2", 7),
    ("pk8_f16_fp4", "f16x8", "u32", 3),
    ("pk8_bf16_fp4", "bf16x8", "u32", 3),
    ("pk8_f32_fp4", "f32x8", "u32", 3),
    ("pk16_f16_fp6", "f16x16", "u32x3", 3),
    ("pk16_bf16_bf6", "bf16x16", "u32x3", 3),
    ("pk16_f32_bf6", "f32x16", "u32x3", 3),
];

fn scaled(&(name, result, source, highest): &(&str, &str, &str, u32)) -> String {
    format!(
        "KERNEL scaled_{name}(GLOBAL {result} *out, GLOBAL const {source} *in, GLOBAL const u32 *scale) {{\n    \
         u32 i = lane();\n    out[i] = __builtin_amdgcn_cvt_scale_{name}(in[i], scale[i], 0);\n    \
         out[i + 32] = __builtin_amdgcn_cvt_scale_{name}(in[i + 32], scale[i], {highest});\n}}\n\n"
    )
}

const E5M3: &str = "\
KERNEL e5m3_pack(GLOBAL int *out, GLOBAL const float *in) {
    u32 i = lane();
    int r = out[i];
    r = __builtin_amdgcn_cvt_pk_fp8_f32_e5m3(in[2 * i], in[2 * i + 1], r, 0);
    r = __builtin_amdgcn_cvt_pk_fp8_f32_e5m3(in[2 * i + 64], in[2 * i + 65], r, 1);
    out[i] = r;
}

KERNEL e5m3_stochastic(GLOBAL int *out, GLOBAL const float *in, GLOBAL const int *seed) {
    u32 i = lane();
    int r = out[i];
    r = __builtin_amdgcn_cvt_sr_fp8_f32_e5m3(in[i], seed[i], r, 0);
    r = __builtin_amdgcn_cvt_sr_fp8_f32_e5m3(in[i + 32], seed[i], r, 1);
    r = __builtin_amdgcn_cvt_sr_fp8_f32_e5m3(in[i + 64], seed[i], r, 2);
    r = __builtin_amdgcn_cvt_sr_fp8_f32_e5m3(in[i + 96], seed[i], r, 3);
    out[i] = r;
}

KERNEL e5m3_unpack(GLOBAL float *out, GLOBAL const int *in) {
    u32 i = lane();
    float a = __builtin_amdgcn_cvt_f32_fp8_e5m3(in[i], 0), b = __builtin_amdgcn_cvt_f32_fp8_e5m3(in[i], 1);
    float c = __builtin_amdgcn_cvt_f32_fp8_e5m3(in[i], 2), d = __builtin_amdgcn_cvt_f32_fp8_e5m3(in[i], 3);
    out[i] = a * b + c * d;
}

KERNEL e5m3_loop(GLOBAL int *out, GLOBAL const float *in, u32 n) {
    int r = 0;
    ROLLED for (u32 k = 0; k < n; ++k)
        if (in[lane() + k] > 0)
            r = __builtin_amdgcn_cvt_pk_fp8_f32_e5m3(in[lane() + k], in[lane() + k + 1], r, 1);
    out[lane()] = r;
}

";

const FP8: &str = "\
KERNEL fp8_pack(GLOBAL int *out, GLOBAL const float *in, GLOBAL const int *seed) {
    u32 i = lane();
    int r = out[i];
    r = __builtin_amdgcn_cvt_pk_fp8_f32(in[i], in[i + 1], r, 0);
    r = __builtin_amdgcn_cvt_pk_bf8_f32(in[i + 2], in[i + 3], r, 1);
    r = __builtin_amdgcn_cvt_sr_fp8_f32(in[i + 4], seed[i], r, 2);
    r = __builtin_amdgcn_cvt_sr_bf8_f32(in[i + 5], seed[i], r, 1);
    out[i] = r;
}

KERNEL fp8_unpack(GLOBAL float *out, GLOBAL const int *in) {
    u32 i = lane();
    f32x2 two = __builtin_amdgcn_cvt_pk_f32_fp8(in[i], 1) + __builtin_amdgcn_cvt_pk_f32_bf8(in[i], 0);
    out[i] = __builtin_amdgcn_cvt_f32_fp8(in[i], 0) + __builtin_amdgcn_cvt_f32_bf8(in[i], 3) + two.x * two.y;
}

";

const CONTROL: &str = "\
KERNEL barrier_cluster(GLOBAL u32 *out) {
    out[lane()] = 1;
    __builtin_amdgcn_s_cluster_barrier();
    out[lane() + 32] = 2;
}

LOCAL u32 split_tile[64];
KERNEL barrier_split(GLOBAL u32 *out) {
    split_tile[lane()] = lane();
    u32 first = __builtin_amdgcn_s_barrier_signal_isfirst(-1);
    __builtin_amdgcn_s_barrier_wait(-1);
    out[lane()] = split_tile[lane() ^ 1] + first;
}

KERNEL mode_rounding(GLOBAL float *out, float x, u32 n) {
    __builtin_amdgcn_s_setreg(1 | 0 << 6 | 3 << 11, 5);
    float y = out[lane()] * x;
    __builtin_amdgcn_s_setreg(1 | 0 << 6 | 3 << 11, n & 15);
    out[lane()] = y + x;
}

KERNEL mode_loop(GLOBAL float *out, float x, u32 n) {
    ROLLED for (u32 k = 0; k < n; ++k) {
        __builtin_amdgcn_s_setreg(1 | 0 << 6 | 1 << 11, k & 3);
        out[lane() + k] = out[lane()] * x;
    }
}

NOINLINE static u32 sum_of(const u32 *values, u32 n) {
    u32 sum = 0;
    ROLLED for (u32 k = 0; k < n; ++k)
        sum += values[k];
    return sum;
}

KERNEL scratch_address(GLOBAL u32 *out, u32 n) {
    u32 values[24];
    ROLLED for (u32 k = 0; k < 24; ++k)
        values[k] = out[lane() + k];
    out[lane()] = sum_of(values, n) + sum_of(values + 4, n - 4);
}

KERNEL scratch_select(GLOBAL u32 *out, u32 n) {
    u32 values[8], others[8];
    ROLLED for (u32 k = 0; k < 8; ++k) {
        values[k] = out[lane() + k];
        others[k] = values[k] * n;
    }
    const u32 *chosen = out[lane()] & 1 ? values : others;
    out[lane()] = sum_of(chosen, n & 7);
}

KERNEL switch_of_eight(GLOBAL u32 *out, u32 n) {
    u32 x = out[lane()];
    switch (n) {
    case 0: x += 3; break;
    case 1: x *= 5; break;
    case 2: x ^= 7; break;
    case 3: x = x << 3 | x >> 29; break;
    case 4: x -= 11; break;
    case 5: x = ~x; break;
    case 6: x |= 13; break;
    case 7: x = x / 17; break;
    default: x = 0;
    }
    out[lane()] = x;
}

";

/// The contents of the second file when a program is built in parts.
const FUNCTIONS: &str = "\
NOINLINE f32x8 product(i32x8 a, i32x8 b, f32x8 c) {
    return __builtin_amdgcn_wmma_f32_16x16x64_fp8_fp8(a, b, (short)0, c, 0, 0);
}
NOINLINE i32x8 product_of_bytes(i32x8 a, i32x8 b, i32x8 c) {
    return __builtin_amdgcn_wmma_i32_16x16x64_iu8(1, a, 1, b, c, 0, 0);
}
NOINLINE u32 from_lds(SHARED const u32 *tile, u32 i) {
    return tile[i] * tile[i + 33];
}
NOINLINE u32 nested(SHARED u32 *tile, u32 i, u32 n) {
    u32 values[8];
    for (u32 k = 0; k < 8; ++k)
        values[k] = from_lds(tile, i + k);
    tile[i] = values[n & 7];
    return from_lds(tile, i ^ n);
}
NOINLINE u32 depth(SHARED u32 *tile, u32 n) {
    return n == 0 ? tile[lane()] : depth(tile, n - 1) + from_lds(tile, n);
}
";

const CALLS: &str = "\
KERNEL call_product(GLOBAL f32x8 *out, GLOBAL const i32x8 *a, GLOBAL const i32x8 *b) {
    u32 i = lane();
    f32x8 c = product(a[i], b[i], out[i]);
    out[i] = product(a[i] + 1, b[i], c) + c;
}

KERNEL call_bytes(GLOBAL i32x8 *out, GLOBAL const i32x8 *a, GLOBAL const i32x8 *b, u32 n) {
    u32 i = lane();
    i32x8 c = out[i];
    ROLLED for (u32 k = 0; k < n; ++k)
        c = product_of_bytes(a[i], b[i + k], c) + 1;
    out[i] = c;
}

LOCAL u32 call_tile[512];
KERNEL call_lds(GLOBAL u32 *out, u32 n) {
    call_tile[lane()] = out[lane()];
    barrier();
    out[lane()] = nested(call_tile, lane(), n) + from_lds(call_tile, n);
}

KERNEL call_deep(GLOBAL u32 *out, u32 n) {
    call_tile[lane()] = out[lane()];
    out[lane()] = depth(call_tile, n);
}

typedef u32 (*operation)(SHARED const u32 *, u32);
NOINLINE static u32 plus(SHARED const u32 *tile, u32 i) { return tile[i] + tile[i + 64]; }
NOINLINE static u32 minus(SHARED const u32 *tile, u32 i) { return tile[i] - tile[i + 20]; }
static const operation operations[4] = {plus, minus, from_lds, plus};

KERNEL call_table(GLOBAL u32 *out, u32 n) {
    call_tile[lane()] = out[lane()];
    barrier();
    out[lane()] = operations[n & 3](call_tile, lane());
}

";

/// Functions that no symbol names once local ones are stripped; loops hide the targets of their calls.
const LOCAL_CALLS: &str = "\
NOINLINE static f32x8 deep_product(i32x16 a, i32x16 b, f32x8 c) {
    return __builtin_amdgcn_wmma_f32_16x16x128_fp8_bf8(a, b, (short)0, c, 0, 0);
}
NOINLINE static f32x8 twice(i32x16 a, i32x16 b, f32x8 c, u32 n) {
    ROLLED for (u32 k = 0; k < n; ++k)
        c = deep_product(a, b + (int)k, c);
    return c;
}
NOINLINE static u32 local_sum(SHARED const u32 *tile, u32 i) { return tile[i] + tile[i + 33]; }
NOINLINE static u32 local_difference(SHARED const u32 *tile, u32 i) { return tile[i] - tile[i + 12]; }

KERNEL local_loop(GLOBAL f32x8 *out, GLOBAL const i32x16 *a, GLOBAL const i32x16 *b, u32 n) {
    f32x8 c = out[0];
    ROLLED for (u32 k = 0; k < n; ++k)
        c = deep_product(a[k], b[k + 1], c);
    out[0] = c;
}

KERNEL local_loops(GLOBAL f32x8 *out, GLOBAL const i32x16 *a, GLOBAL const i32x16 *b, u32 n) {
    u32 i = lane();
    f32x8 c = out[i];
    ROLLED for (u32 k = 0; k < n; ++k)
        c = twice(a[i + k], b[i], c, k);
    out[i] = c;
}

LOCAL u32 local_tile[512];
KERNEL local_choice(GLOBAL u32 *out, u32 n) {
    local_tile[lane()] = out[lane()];
    barrier();
    u32 (*chosen)(SHARED const u32 *, u32) = n & 1 ? local_sum : local_difference;
    u32 sum = 0;
    ROLLED for (u32 k = 0; k < n; ++k)
        sum += chosen(local_tile, lane() + k);
    out[lane()] = sum;
}

";

/// Almost all registers that a kernel may have are in use; the unrolled sums cross v255 and need spilling from -O1 on.
fn pressure(name: &str, attribute: &str, count: u32, call: &str, types: [&str; 3]) -> String {
    let [a, b, c] = types;
    format!(
        "{attribute} KERNEL pressure_{name}(GLOBAL {c} *out, GLOBAL const {a} *left, GLOBAL const {b} *right, u32 n) {{\n    \
         u32 i = lane();\n    {c} sums[{count}];\n    UNROLL for (u32 k = 0; k < {count}; ++k)\n        sums[k] = out[i + 32 * k];\n    \
         ROLLED for (u32 j = 0; j < n; ++j) {{\n        {a} a = left[i + j];\n        {b} b = right[i + j];\n        \
         UNROLL for (u32 k = 0; k < {count}; ++k) {{\n            {c} c = sums[k];\n            \
         sums[k] = __builtin_amdgcn_{call};\n        }}\n    }}\n    \
         UNROLL for (u32 k = 0; k < {count}; ++k)\n        out[i + 32 * k] = sums[k];\n}}\n\n"
    )
}

pub(super) fn units() -> Vec<Unit> {
    const FEW: &str = "__attribute__((amdgpu_flat_work_group_size(1, 256), amdgpu_num_vgpr(128)))";
    const WHOLE: &str = "__attribute__((amdgpu_flat_work_group_size(256, 256)))";
    let wide = ["i32x8", "i32x8", "f32x8"];
    let deep = ["i32x16", "i32x16", "f32x8"];
    let half = ["i32x16", "i32x16", "f16x8"];
    let k64 = "wmma_f32_16x16x64_fp8_fp8(a, b, (short)0, c, 0, 0)";
    let common = vec![
        pressure("small_fp8", FEW, 12, k64, wide),
        pressure("all_fp8", "SMALL", 120, k64, wide),
        pressure("group_fp8", WHOLE, 40, k64, wide),
        pressure("group_f8f6f4", WHOLE, 36, "wmma_f32_16x16x128_f8f6f4(0, a, 4, b, (short)0, c)", deep),
    ];
    let source = vec![
        pressure("small_f16_k128", FEW, 20, "wmma_f16_16x16x128_fp8_fp8(a, b, (short)0, c, 0, 0)", half),
        pressure("group_f32_k128", WHOLE, 36, "wmma_f32_16x16x128_fp8_fp8(a, b, (short)0, c, 0, 0)", deep),
        pressure("group_f16_k128", WHOLE, 60, "wmma_f16_16x16x128_fp8_fp8(a, b, (short)0, c, 0, 0)", half),
    ];
    vec![
        Unit::new("scaled", false, SCALED.iter().map(scaled).collect()),
        Unit { native: false, ..several("e5m3", E5M3) },
        several("fp8", FP8),
        several("control", CONTROL),
        Unit { functions: FUNCTIONS.to_owned(), ..several("calls", CALLS) },
        Unit { native: false, ..several("local_calls", LOCAL_CALLS) },
        Unit::new("pressure_common", true, common),
        Unit::new("pressure_source", false, source),
    ]
}
