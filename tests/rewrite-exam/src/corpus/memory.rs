//! LDS at two addresses, loads for clusters, tensors, and LDS at M0 + 4 × lane.

use super::Unit;

/// Element type, its alignment, and the distance of the two accesses in elements.
const PAIRS: &[(&str, &str, u32, &str, u32)] = &[
    ("b32_near", "u32", 4, "i", 1),
    ("b32_apart", "u32", 4, "i", 17),
    ("b32_far", "u32", 4, "i", 192),
    ("b32_byte", "u32", 1, "i", 5),
    ("b64_near", "u64", 8, "i", 1),
    ("b64_apart", "u64", 8, "i", 9),
    ("b64_far", "u64", 8, "i", 128),
    ("b64_half", "u64", 4, "i", 3),
    ("b128_half", "u64x2", 8, "i", 1),
    ("b128_quarter", "u64x2", 4, "i", 2),
    ("f32x2_quarter", "f32x2", 4, "i", 4),
    ("f32x4_half", "f32x4", 8, "i", 1),
    ("f32x3_like", "f32x4", 4, "i", 1),
];

fn pair(&(name, kind, align, index, apart): &(&str, &str, u32, &str, u32)) -> String {
    format!(
        "typedef {kind} t_{name} __attribute__((aligned({align})));\n\
         KERNEL lds_{name}(GLOBAL {kind} *out, GLOBAL const {kind} *in, SHARED t_{name} *tile, u32 n) {{\n    \
         u32 i = lane();\n    tile[{index}] = in[i];\n    tile[{index} + {apart}] = in[i + n];\n    barrier();\n    \
         {kind} x = tile[{index} ^ 31], y = tile[({index} ^ 31) + {apart}];\n    out[i] = x;\n    out[i + n] = y;\n    \
         ROLLED for (u32 k = 0; k < n; ++k) {{\n        x = tile[{index} + 2 * k];\n        \
         y = tile[{index} + 2 * k + {apart}];\n        tile[{index} + k + n] = y;\n        \
         tile[{index} + k + n + {apart}] = x;\n    }}\n    out[i + 2 * n] = y;\n}}\n\n"
    )
}

/// A static array, of which the compiler knows the alignment.
fn known(name: &str, kind: &str, apart: u32) -> String {
    format!(
        "LOCAL {kind} known_{name}_tile[2048];\n\
         KERNEL known_{name}(GLOBAL {kind} *out, GLOBAL const {kind} *in, u32 n) {{\n    u32 i = lane();\n    \
         known_{name}_tile[i] = in[i];\n    known_{name}_tile[i + {apart}] = in[i + n];\n    barrier();\n    \
         {kind} x = known_{name}_tile[i ^ 1], y = known_{name}_tile[(i ^ 1) + {apart}];\n    out[i] = x + y;\n}}\n\n"
    )
}

/// Instructions that the compiler only emits on request: exchanges, and addresses from M0.
const BY_HAND: &[(&str, &str)] = &[
    (
        "exchange",
        "asm volatile(\"ds_storexchg_2addr_rtn_b32 %0, %1, %2, %3 offset0:1 offset1:3\\n s_wait_dscnt 0\" : \"=&v\"(pair) : \
         \"v\"(i * 16), \"v\"(n), \"v\"(i) : \"memory\");\n    out[i] = pair.x + pair.y;",
    ),
    (
        "exchange_far",
        "asm volatile(\"ds_storexchg_2addr_stride64_rtn_b32 %0, %1, %2, %3 offset0:1 offset1:2\\n s_wait_dscnt 0\" : \
         \"=&v\"(pair) : \"v\"(i * 4), \"v\"(n), \"v\"(i) : \"memory\");\n    out[i] = pair.x ^ pair.y;",
    ),
    (
        "addtid",
        "u32 x;\n    asm volatile(\"s_mov_b32 m0, %1\\n ds_load_addtid_b32 %0 offset:16\\n s_wait_dscnt 0\" : \"=v\"(x) : \
         \"s\"(n) : \"memory\", \"m0\");\n    out[i] = x + pair.x;",
    ),
    (
        "addtid_store",
        "asm volatile(\"s_mov_b32 m0, %1\\n ds_store_addtid_b32 %0 offset:64\" :: \"v\"(i * n), \"s\"(n) : \"memory\", \"m0\");\n    \
         out[i] = pair.x;",
    ),
    (
        "two_in_flight",
        "u32x2 other;\n    asm volatile(\"ds_load_2addr_b32 %0, %2 offset0:1 offset1:9\\n ds_load_2addr_b32 %1, %2 offset0:3 \
         offset1:20\\n s_wait_dscnt 1\\n s_wait_dscnt 0\" : \"=&v\"(pair), \"=&v\"(other) : \"v\"(i * 4) : \"memory\");\n    \
         out[i] = pair.x + pair.y + other.x + other.y;",
    ),
    (
        "onto_address",
        "asm volatile(\"ds_load_2addr_b32 %0, %1 offset0:1 offset1:9\\n s_wait_dscnt 0\" : \"=v\"(pair) : \"v\"(n + i) : \
         \"memory\");\n    out[i] = pair.x + pair.y;",
    ),
];

fn by_hand(&(name, body): &(&str, &str)) -> String {
    format!(
        "KERNEL by_hand_{name}(GLOBAL u32 *out, u32 n) {{\n    u32 i = lane();\n    u32x2 pair = {{i, n}};\n    {body}\n}}\n\n"
    )
}

const CLUSTER: &str = "\
KERNEL cluster_scalar(GLOBAL int *out, GLOBAL int *in, int mask) {
    out[lane()] = __builtin_amdgcn_cluster_load_b32(in, 0, mask);
}

KERNEL cluster_vector(GLOBAL i32x4 *out, GLOBAL i32x4 *in, int mask) {
    i32x4 a = __builtin_amdgcn_cluster_load_b128(in + lane(), 0, mask);
    i32x4 b = __builtin_amdgcn_cluster_load_b128(in + lane() + 64, 0, mask + 1);
    out[lane()] = a + b;
}

KERNEL cluster_loop(GLOBAL i32x2 *out, GLOBAL i32x2 *in, int mask, u32 n) {
    i32x2 sum = {0, 0};
    ROLLED for (u32 k = 0; k < n; ++k)
        sum += __builtin_amdgcn_cluster_load_b64(in + lane() + 32 * k, 0, mask);
    out[lane()] = sum;
}

LOCAL i32x4 cluster_tile[256];
KERNEL cluster_to_lds(GLOBAL i32x4 *out, GLOBAL i32x4 *in, int mask) {
    __builtin_amdgcn_cluster_load_async_to_lds_b128(in + lane(), cluster_tile + lane(), 0, 0, mask);
    __builtin_amdgcn_s_wait_asynccnt(0);
    barrier();
    out[lane()] = cluster_tile[lane() ^ 1];
}

";

const TENSOR: &str = "\
LOCAL u32 tensor_tile[1024];
KERNEL tensor_two(tensor4 first, tensor8 second, GLOBAL u32 *out) {
    __builtin_amdgcn_tensor_load_to_lds(first, second, (tensor_rest)0, (tensor_rest)0, (tensor8)0, 0);
    __builtin_amdgcn_s_wait_tensorcnt(0);
    barrier();
    out[lane()] = tensor_tile[lane()];
}

KERNEL tensor_four(tensor4 first, tensor8 second, tensor_rest third, tensor_rest fourth, GLOBAL u32 *out) {
    __builtin_amdgcn_tensor_load_to_lds(first, second, third, fourth, (tensor8)0, 0);
    __builtin_amdgcn_s_wait_tensorcnt(0);
    out[lane()] = second[0] + tensor_tile[lane()];
}

KERNEL tensor_loop(tensor4 first, tensor8 second, GLOBAL u32 *out, u32 n) {
    ROLLED for (u32 k = 0; k < n; ++k) {
        __builtin_amdgcn_tensor_load_to_lds(first, second, (tensor_rest)0, (tensor_rest)0, (tensor8)0, 0);
        first[2] += 128;
    }
    __builtin_amdgcn_s_wait_tensorcnt(0);
    out[lane()] = tensor_tile[lane()];
}

KERNEL tensor_back(tensor4 first, tensor8 second, GLOBAL const u32 *in) {
    tensor_tile[lane()] = in[lane()];
    barrier();
    __builtin_amdgcn_tensor_store_from_lds(first, second, (tensor_rest)0, (tensor_rest)0, (tensor8)0, 0);
    __builtin_amdgcn_s_wait_tensorcnt(0);
}

KERNEL tensor_masked(tensor4 first, tensor8 second, GLOBAL u32 *out) {
    second[0] &= 0xffff0000;
    __builtin_amdgcn_tensor_load_to_lds(first, second, (tensor_rest)0, (tensor_rest)0, (tensor8)0, 0);
    __builtin_amdgcn_s_wait_tensorcnt(0);
    out[lane()] = tensor_tile[lane()];
}

";

pub(super) fn units() -> Vec<Unit> {
    let known = [("b32_17", "u32", 17), ("b32_64", "u32", 64), ("b64_3", "u64", 3), ("b64_64", "u64", 64)];
    let mut lds: Vec<String> = PAIRS.iter().map(pair).collect();
    lds.extend(known.map(|(name, kind, apart)| self::known(name, kind, apart)));
    vec![
        Unit::new("lds", true, lds),
        Unit::new("lds_by_hand", false, BY_HAND.iter().map(by_hand).collect()),
        several("cluster", CLUSTER),
        several("tensor", TENSOR),
    ]
}

/// A unit of hand-written kernels.
pub(super) fn several(name: &str, text: &str) -> Unit {
    let kernels = text.lines().filter(|line| line.contains("KERNEL ")).count();
    Unit { kernels, ..Unit::new(name, true, vec![text.to_owned()]) }
}
