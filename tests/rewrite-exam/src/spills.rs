//! Kernels at the most vector registers that a work-group of their size may have, all of them live: what replaces an
//! instruction finds no free register, and spills some. They are to be linked.

use crate::assembly::Kernel;

/// An instruction, and the wait for its result.
const SITES: [(&str, &str, &str); 9] = [
    ("e5m3_pack", "v_cvt_pk_fp8_f32 v2, v1, v3 clamp", "s_nop 0"),
    ("e5m3_stochastic", "v_cvt_sr_fp8_f32 v2, v1, v3 byte_sel:2 clamp", "s_nop 0"),
    ("e5m3_unpack", "v_cvt_f32_fp8 v2, v1 byte_sel:3 clamp", "s_nop 0"),
    ("addtid_store", "ds_store_addtid_b32 v2 offset:16", "s_wait_dscnt 0x0"),
    ("far_load", "ds_load_2addr_stride64_b64 v[2:5], v1 offset0:4 offset1:200", "s_wait_dscnt 0x0"),
    ("far_store", "ds_store_2addr_stride64_b64 v1, v[2:3], v[4:5] offset0:129 offset1:200", "s_wait_dscnt 0x0"),
    (
        "far_exchange",
        "ds_storexchg_2addr_stride64_rtn_b64 v[2:5], v1, v[6:7], v[8:9] offset0:4 offset1:200",
        "s_wait_dscnt 0x0",
    ),
    // Sites that follow each other, and a load before them that is outstanding.
    ("two_sites", "v_cvt_f32_fp8 v2, v1 clamp\n\tv_cvt_f32_fp8 v3, v1 byte_sel:1 clamp", "s_nop 0"),
    (
        "outstanding",
        "global_load_b64 v[10:11], v0, s[2:3]\n\tglobal_load_b32 v0, v0, s[2:3]\n\tv_cvt_f32_fp8 v2, v1 clamp",
        "s_wait_loadcnt 0x0",
    ),
];

/// Bytes of private segment of the kernels: none, and a number that no slot may begin at.
const SEGMENTS: [u32; 2] = [0, 36];

/// A kernel for each site, private segment, and place.
pub fn spills() -> Vec<Kernel> {
    let mut kernels = Vec::new();
    for (name, site, wait) in SITES {
        for segment in SEGMENTS {
            let body = format!("\t{site}\n\t{wait}\n");
            kernels.push(kernel(&format!("{name}_{segment}"), &body, segment, 256));
        }
    }
    kernels.push(kernel("in_loop", &loop_of("v_cvt_f32_fp8 v2, v1 clamp"), 36, 256));
    kernels.push(kernel("in_clause", &clause_of("ds_store_addtid_b32 v2"), 36, 256));
    let masked =
        "\ts_mov_b32 s20, exec_lo\n\tv_cmpx_lt_u32 v1, v2\n\tv_cvt_f32_fp8 v2, v1 clamp\n\ts_mov_b32 exec_lo, s20\n";
    kernels.push(kernel("under_exec", masked, 36, 256));
    let banked = "\ts_set_vgpr_msb 0x41\n\tv_cvt_f32_fp8 v2, v1 clamp\n\ts_set_vgpr_msb 0x4100\n";
    kernels.push(kernel("banked", banked, 36, 512));
    kernels
}

fn loop_of(site: &str) -> String {
    format!(".Lagain:\n\t{site}\n\ts_cmp_lg_u32 s40, 0\n\ts_cbranch_scc1 .Lagain\n")
}

fn clause_of(site: &str) -> String {
    format!("\ts_clause 0x1\n\tds_load_b32 v20, v1\n\t{site}\n\ts_wait_dscnt 0x0\n")
}

/// The body between definitions and uses of all vector registers.
fn kernel(name: &str, body: &str, segment: u32, vgprs: u32) -> Kernel {
    let workgroup = 1024 * 256 / vgprs;
    let mut code = format!("// vgprs: {vgprs}\n// workgroup: {workgroup}\n// private: {segment}\n{name}:\n{body}");
    let uses: String = (0..256).map(|register| format!("\tv_add_f32 v0, v0, v{register}\n")).collect();
    code += &uses;
    if vgprs > 256 {
        code += "\ts_set_vgpr_msb 0x04\n";
        code += &uses;
        code += "\ts_set_vgpr_msb 0x0400\n";
    }
    code += "\tglobal_store_b32 v[2:3], v0, off\n\ts_endpgm\n";
    Kernel { name: name.to_owned(), code: code.replace(".Lagain", &format!(".L{name}_again")) }
}
