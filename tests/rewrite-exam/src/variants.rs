//! Each family's instruction in each position that is harder than straight-line code.

use crate::assembly::Kernel;

/// A family's instruction: below v256, above, and with an operand that crosses v255 where it has one that can.
struct Subject {
    name: &'static str,
    /// Under mode 0.
    low: &'static str,
    /// The mode in which `high` names registers of other banks, and the instruction.
    high: Option<(u8, &'static str)>,
    crossing: Option<(u8, &'static str)>,
    /// The wait before the result is used.
    wait: &'static str,
    /// Whether it may be in a clause of LDS or of vector memory, with a neighbour of that kind.
    neighbour: Option<&'static str>,
}

const fn subject(name: &'static str, low: &'static str) -> Subject {
    Subject { name, low, high: None, crossing: None, wait: "s_nop 0", neighbour: None }
}

const LDS: Option<&str> = Some("ds_load_b32 v60, v61");
const GLOBAL: Option<&str> = Some("global_load_b32 v60, v61, s[2:3]");

#[rustfmt::skip]
const SUBJECTS: &[Subject] = &[
    Subject {
        high: Some((0x51, "ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9")),
        crossing: Some((0x00, "ds_load_2addr_b64 v[254:257], v0 offset0:1 offset1:9")),
        wait: "s_wait_dscnt 0x0", neighbour: LDS,
        ..subject("ds_load", "ds_load_2addr_b32 v[2:3], v0 offset0:1 offset1:9")
    },
    Subject {
        high: Some((0x14, "ds_store_2addr_b64 v0, v[2:3], v[4:5] offset0:1 offset1:9")),
        wait: "s_wait_dscnt 0x0", neighbour: LDS,
        ..subject("ds_store", "ds_store_2addr_b64 v0, v[2:3], v[4:5] offset0:1 offset1:9")
    },
    Subject {
        high: Some((0x55, "ds_storexchg_2addr_rtn_b32 v[2:3], v0, v4, v5 offset0:1 offset1:9")),
        wait: "s_wait_dscnt 0x0", neighbour: LDS,
        ..subject("ds_exchange", "ds_storexchg_2addr_rtn_b32 v[2:3], v0, v4, v5 offset0:1 offset1:9")
    },
    Subject {
        high: Some((0x40, "ds_load_addtid_b32 v2 offset:16")), wait: "s_wait_dscnt 0x0", neighbour: LDS,
        ..subject("addtid_load", "ds_load_addtid_b32 v2 offset:16")
    },
    Subject {
        high: Some((0x04, "ds_store_addtid_b32 v2 offset:16")), wait: "s_wait_dscnt 0x0", neighbour: LDS,
        ..subject("addtid_store", "ds_store_addtid_b32 v2 offset:16")
    },
    Subject {
        high: Some((0x41, "cluster_load_b32 v2, v0, s[4:5]")), wait: "s_wait_loadcnt 0x0", neighbour: GLOBAL,
        ..subject("cluster", "cluster_load_b32 v2, v0, s[4:5]")
    },
    Subject { wait: "s_wait_tensorcnt 0x0", ..subject("tensor", "tensor_load_to_lds s[8:11], s[12:19]") },
    Subject {
        high: Some((0x45, "v_cvt_pk_fp8_f32 v2, v1, v3 clamp")),
        ..subject("e5m3_pack", "v_cvt_pk_fp8_f32 v2, v1, v3 clamp")
    },
    Subject {
        high: Some((0x45, "v_cvt_sr_fp8_f32 v2, v1, v3 byte_sel:2 clamp")),
        ..subject("e5m3_stochastic", "v_cvt_sr_fp8_f32 v2, v1, v3 byte_sel:2 clamp")
    },
    Subject {
        high: Some((0x41, "v_cvt_f32_fp8 v2, v1 byte_sel:3 clamp")),
        ..subject("e5m3_unpack", "v_cvt_f32_fp8 v2, v1 byte_sel:3 clamp")
    },
    Subject {
        high: Some((0x51, "v_wmma_f32_16x16x128_f8f6f4 v[2:9], v[10:25], v[26:41], v[2:9]")),
        crossing: Some((0x00, "v_wmma_f32_16x16x128_f8f6f4 v[2:9], v[250:265], v[26:41], v[2:9]")),
        ..subject("f8f6f4", "v_wmma_f32_16x16x128_f8f6f4 v[2:9], v[10:25], v[26:41], v[2:9]")
    },
    Subject {
        high: Some((0x51, "v_wmma_f32_16x16x128_fp8_bf8 v[2:9], v[10:25], v[26:41], v[2:9]")),
        crossing: Some((0x00, "v_wmma_f32_16x16x128_fp8_bf8 v[2:9], v[10:25], v[248:263], v[2:9]")),
        ..subject("k128_f32", "v_wmma_f32_16x16x128_fp8_bf8 v[2:9], v[10:25], v[26:41], v[2:9]")
    },
    Subject {
        high: Some((0x51, "v_wmma_f16_16x16x128_fp8_bf8 v[2:5], v[10:25], v[26:41], v[2:5]")),
        crossing: Some((0x00, "v_wmma_f16_16x16x128_fp8_bf8 v[254:257], v[10:25], v[26:41], v[254:257]")),
        ..subject("k128_f16", "v_wmma_f16_16x16x128_fp8_bf8 v[2:5], v[10:25], v[26:41], v[2:5]")
    },
    Subject {
        high: Some((0x51, "v_wmma_f32_32x16x128_f4 v[2:17], v[18:33], v[34:41], v[2:17]")),
        crossing: Some((0x00, "v_wmma_f32_32x16x128_f4 v[248:263], v[18:33], v[34:41], v[248:263]")),
        ..subject("f4_rows", "v_wmma_f32_32x16x128_f4 v[2:17], v[18:33], v[34:41], v[2:17]")
    },
    Subject {
        high: Some((0x51, "v_wmma_f32_16x16x64_fp8_fp8 v[2:9], v[10:17], v[18:25], v[2:9]")),
        ..subject("k64", "v_wmma_f32_16x16x64_fp8_fp8 v[2:9], v[10:17], v[18:25], v[2:9]")
    },
    subject("scratch_base", "v_add_nc_u64 v[2:3], src_flat_scratch_base_lo, v[4:5]"),
    subject("mode", "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 0, 4), 5"),
];

/// Uses of the result directly after it.
const USE: &str = "v_add_nc_u32 v42, v2, v3";

/// The instruction of each subject, below v256.
pub(crate) fn sites() -> impl Iterator<Item = (&'static str, &'static str)> {
    SUBJECTS.iter().map(|subject| (subject.name, subject.low))
}

/// For each subject its variants, each a kernel.
pub fn variants() -> Vec<(&'static str, Vec<Kernel>)> {
    SUBJECTS.iter().map(|subject| (subject.name, kernels(subject))).collect()
}

fn kernels(subject: &Subject) -> Vec<Kernel> {
    let mut bodies = places(subject);
    bodies.extend(clauses(subject));
    bodies.extend(banks(subject));
    let kernel = |(place, body): (String, String)| {
        // Labels belong to one kernel.
        let name = format!("{}_{place}", subject.name);
        let body = body.replace("LABEL", &name);
        let code = format!("// vgprs: 512\n// workgroup: 32\n{name}:\n\tv_mov_b32 v70, 0\n{body}\ts_endpgm\n");
        Kernel { name, code }
    };
    bodies.into_iter().map(kernel).collect()
}

/// Positions that are possible for every instruction.
fn places(subject: &Subject) -> Vec<(String, String)> {
    let Subject { low, wait, .. } = subject;
    let bodies = [
        ("plain", format!("\t{low}\n\t{wait}\n\t{USE}\n")),
        (
            "first_of_target",
            format!("\ts_cbranch_scc0 .LLABEL_to\n\tv_mov_b32 v43, 1\n.LLABEL_to:\n\t{low}\n\t{wait}\n\t{USE}\n"),
        ),
        (
            "in_loop",
            format!(".LLABEL_to:\n\t{low}\n\t{wait}\n\t{USE}\n\ts_cmp_lg_u32 s40, 0\n\ts_cbranch_scc1 .LLABEL_to\n"),
        ),
        ("alone_in_loop", format!(".LLABEL_to:\n\t{low}\n\ts_cbranch_scc1 .LLABEL_to\n\t{wait}\n")),
        ("end_of_function", format!("\t{low}\n")),
        (
            "end_of_callee",
            format!(
                "\ts_get_pc_i64 s[50:51]\n\ts_add_nc_u64 s[50:51], s[50:51], LABEL_f-.\n\ts_swap_pc_i64 s[30:31], s[50:51]\n\t\
                 {USE}\n\ts_endpgm\n.LLABEL_end:\n\t.p2align 8\n\t.type LABEL_f,@function\nLABEL_f:\n\ts_wait_loadcnt_dscnt 0x0\n\ts_wait_kmcnt 0x0\n\t{low}\n\t{wait}\n\t\
                 s_set_pc_i64 s[30:31]\n.LLABEL_f_end:\n\t.size LABEL_f, .LLABEL_f_end-LABEL_f\n"
            ),
        ),
        (
            "under_delay",
            format!(
                "\tv_exp_f32 v80, v81\n\tv_mov_b32 v82, v83\n\ts_delay_alu instid0(VALU_DEP_1) | instskip(SKIP_1) | \
                 instid1(TRANS32_DEP_1)\n\tv_add_nc_u32 v84, v82, v82\n\t{low}\n\tv_add_f32 v85, v80, v80\n\t{wait}\n\t\
                 {USE}\n"
            ),
        ),
        ("two_for_one_wait", format!("\t{low}\n\t{low}\n\t{wait}\n\t{USE}\n")),
    ];
    bodies.map(|(place, body)| (place.to_owned(), body)).into()
}

fn clauses(subject: &Subject) -> Vec<(String, String)> {
    let (Subject { low, wait, .. }, Some(neighbour)) = (subject, subject.neighbour) else { return Vec::new() };
    let last = format!("\t{neighbour}\n");
    vec![
        clause_variant_body("in_clause", "\ts_clause 0x2\n", &last, neighbour, low, wait),
        clause_variant_body("end_of_clause", "\ts_clause 0x1\n", "", neighbour, low, wait),
    ]
}

fn clause_variant_body(
    place: &str,
    head: &str,
    tail: &str,
    neighbour: &str,
    low: &&'static str,
    wait: &&'static str,
) -> (String, String) {
    (place.to_owned(), format!("{head}\t{neighbour}\n\t{low}\n{tail}\t{wait}\n\t{USE}\n"))
}

/// Registers of other banks, and operands that cross v255.
fn banks(subject: &Subject) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (place, high) in [("banks", subject.high), ("over_v255", subject.crossing)] {
        let Some((mode, inst)) = high else { continue };
        let (set, reset) = (u32::from(mode), u32::from(mode) << 8);
        all.push((place.to_owned(), body_with_bank_mode(format!("\t{inst}\n\t{}\n", subject.wait), mode, set, reset)));
        let again =
            format!(".LLABEL_to:\n\t{inst}\n\t{}\n\ts_cmp_lg_u32 s40, 0\n\ts_cbranch_scc1 .LLABEL_to\n", subject.wait);
        all.push((format!("{place}_in_loop"), body_with_bank_mode(again, mode, set, reset)));
    }
    all
}

fn body_with_bank_mode(body: String, mode: u8, set: u32, reset: u32) -> String {
    match mode {
        0 => body,
        _ => format!("\ts_set_vgpr_msb {set:#x}\n{body}\ts_set_vgpr_msb {reset:#x}\n"),
    }
}
