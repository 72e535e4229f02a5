//! Replacements that are wrong on purpose: one instruction of the code that a family made is changed.
//!
//! Each row is a fault that a family could have: a wrong literal, a register off by one, a step left out, the original
//! instruction kept. The rewriter does not take part in it: the bytes of its output are changed.
//!
//! Absent on purpose: distances (`v_nop`), which nothing that is executed depends on; `hotswap lint` judges them.

use crate::subjects::RewrittenPair;
use crate::workers::on_all_processors;
use hotswap_check::{CheckOptions, compare_code_objects};
use hotswap_code_object::certificate_note;
use hotswap_code_object::image::ObjectImage;
use hotswap_isa::{Inst, Isa, Target};
use hotswap_report::{Certificate, SiteCertificate};

/// A fault.
#[derive(Debug, Clone, Copy)]
pub struct PlantedMutation {
    /// Object of assembly whose first site with the instruction is changed.
    pub object: &'static str,
    /// The instruction, and its number among those of that mnemonic in the site.
    pub mnemonic: &'static str,
    /// See [`PlantedMutation::mnemonic`].
    pub number: usize,
    pub change: WordChange,
    /// The fault in words.
    pub text: &'static str,
}

/// A change of an instruction.
#[derive(Debug, Clone, Copy)]
pub enum WordChange {
    /// It is left out.
    Left,
    /// Bits of a word are inverted.
    Flip(usize, u32),
    /// A word is another one.
    Word(usize, u32),
    /// The original instruction is there instead of the replacement.
    Kept,
    /// The first two words are left out.
    Prefix,
}

use WordChange::{Flip, Kept, Left, Prefix, Word};

const S_NOP: u32 = 0xbf80_0000;

const fn row(
    object: &'static str,
    mnemonic: &'static str,
    number: usize,
    change: WordChange,
    text: &'static str,
) -> PlantedMutation {
    PlantedMutation { object, mnemonic, number, change, text }
}

/// The faults.
#[rustfmt::skip]
pub const MUTATIONS: &[PlantedMutation] = &[
    row("ds_load", "ds_load_b32", 0, Flip(0, 4), "the first element is loaded from the next dword"),
    row("ds_load", "ds_load_b32", 1, Flip(1, 1 << 24), "the second element goes into the first register"),
    row("ds_load", "ds_load_b32", 1, Left, "the second element is not loaded"),
    row("ds_load", "ds_load_b32", 0, Kept, "the access to two addresses is kept"),
    row("ds_store", "ds_store_b64", 1, Left, "the second element is not stored"),
    row("ds_store", "ds_store_b64", 0, Flip(1, 0x600), "the second element's data is stored as the first"),
    row("ds_store", "ds_store_b64", 0, Flip(0, 0x0100_0000), "half of the first element is stored"),
    row("ds_exchange", "ds_storexchg_rtn_b32", 0, Flip(1, 0x100), "the second element's data is exchanged with the first"),
    row("ds_exchange", "ds_storexchg_rtn_b32", 1, Flip(1, 1 << 24), "the second old value goes into the first register"),
    row("ds_exchange", "ds_storexchg_rtn_b32", 1, Left, "the second element is not exchanged"),
    row("addtid_load", "v_lshl_add_u32", 0, Flip(1, 0x200), "lanes are eight bytes apart"),
    row("addtid_load", "v_lshl_add_u32", 0, Flip(1, 0xfd << 18), "M0 is not added"),
    row("addtid_load", "v_bfe_u32", 0, Flip(1, 4 << 18), "16 bits of M0 are used"),
    row("addtid_load", "v_bfe_u32", 0, Left, "all bits of M0 are used"),
    row("addtid_load", "v_mbcnt_lo_u32_b32", 0, Left, "the number of the lane is not computed"),
    row("addtid_load", "ds_load_b32", 0, Flip(0, 16), "the offset is dropped"),
    row("addtid_store", "ds_store_b32", 0, Flip(1, 0x100), "another register is stored"),
    row("cluster", "s_mov_b32", 0, Left, "the mask in M0 is kept"),
    row("cluster", "cluster_load_b32", 0, Flip(1, 1), "the result goes into the next register"),
    row("tensor", "s_pack_hh_b32_b16", 0, Left, "the mask in the descriptor is kept"),
    row("tensor", "s_pack_hh_b32_b16", 0, Flip(0, 1 << 16), "the mask of another dword is cleared"),
    row("e5m3_pack", "v_add3_u32", 0, Word(2, 0x8_0000), "halfway is rounded up"),
    row("e5m3_pack", "v_subrev_nc_u32", 0, Word(1, 0x381), "the exponent is off by one step"),
    row("e5m3_pack", "v_cmp_gt_u32", 0, Word(2, 0x3980_0000), "numbers above 2^-13 are rounded as if they were below"),
    row("e5m3_pack", "s_getreg_b32", 0, Left, "FP16_OVFL is not asked for"),
    row("e5m3_pack", "v_rndne_f32", 0, Left, "small numbers are truncated"),
    row("e5m3_pack", "v_cndmask_b32", 2, Left, "NaN is not 0xff"),
    row("e5m3_pack", "v_cmp_lt_u32", 1, Word(2, 0xff), "the code after the largest one is not an overflow"),
    row("e5m3_pack", "v_bfi_b32", 0, Word(2, 0xff), "the second byte of the pair is lost"),
    row("e5m3_pack", "v_lshl_or_b32", 0, Flip(1, 1 << 10), "the second byte is shifted by 10"),
    row("e5m3_pack", "s_set_vgpr_msb", 0, Left, "the bank mode is not set"),
    row("e5m3_stochastic", "v_lshrrev_b32", 0, Flip(0, 7), "noise has a bit more"),
    row("e5m3_stochastic", "v_cmp_gt_u32", 0, Word(2, 0x3700_0000), "more small numbers become 0"),
    row("e5m3_stochastic", "v_bfi_b32", 0, Word(2, 0xff00_0000), "another byte of the target is set"),
    row("e5m3_unpack", "v_cmp_gt_u32", 0, Flip(1, 0xf), "the largest number below 2^-14 has an exponent"),
    row("e5m3_unpack", "v_cndmask_b32", 1, Word(2, 0x7fc0_0000), "NaN has another payload"),
    row("e5m3_unpack", "v_bfe_u32", 0, Flip(1, 8 << 9), "another byte is converted"),
    row("f8f6f4", "v_wmma_scale_f32_16x16x128_f8f6f4", 0, Prefix, "there is no prefix of scales"),
    row("f8f6f4", "v_wmma_scale_f32_16x16x128_f8f6f4", 0, Flip(1, 1), "the scale of the first matrix is not neutral"),
    row("k128_f32", "v_wmma_scale_f32_16x16x128_f8f6f4", 0, Flip(3, 1 << 27), "the second matrix has another format"),
    row("k128_f32", "v_wmma_scale_f32_16x16x128_f8f6f4", 0, Kept, "the product without formats is kept"),
    row("k128_f16", "v_cvt_pk_f16_f32", 3, Left, "the last two rows are not stored"),
    row("k128_f16", "v_cvt_pk_f16_f32", 0, Flip(1, 1 << 9), "two rows are the same"),
    row("k128_f16", "v_cvt_f32_f16", 1, Flip(0, 0x800), "an addend is the one of the row before"),
    row("f4_rows", "v_wmma_scale_f32_16x16x128_f8f6f4", 1, Flip(3, 8), "the lower rows are those of the upper ones"),
    row("scratch_base", "s_mov_b64", 0, Flip(0, 1), "the upper half is read as if it were the base"),
    row("scratch_base", "v_add_nc_u64", 0, Flip(0, 2), "another register is added"),
    row("mode", "s_setreg_imm32_b32", 0, Flip(1, 1), "another mode is set"),
    row("e5m3_pack_0", "scratch_load_b32", 0, Left, "a spilled register is not loaded again"),
    row("far_load_0", "s_wait_loadcnt", 0, Left, "a spilled register is used before it is there again"),
];

/// The made object with a fault, if it has the place.
pub fn planted(pair: &RewrittenPair, mutation: &PlantedMutation) -> Option<Vec<u8>> {
    let isa = Isa::new(Target::find("gfx1250-strict")?);
    let certificate = Certificate::from_bytes(certificate_note(&pair.made)?).ok()?;
    let [new, old] = [ObjectImage::parse(&pair.made).ok()?, ObjectImage::parse(&pair.original).ok()?];
    for section in &certificate.sections {
        let (code, before) = (new.sections.get(section.number as usize)?, old.sections.get(section.number as usize)?);
        for site in &section.sites {
            let Some((at, inst)) = place(code.bytes, site, isa, mutation) else { continue };
            let words = match mutation.change {
                Kept => kept(before.bytes.get(site.old as usize..(site.old + site.old_size) as usize)?, site),
                change => changed(&inst, change),
            };
            let start =
                code.offset as usize + if matches!(mutation.change, Kept) { site.new.start as usize } else { at };
            let mut bytes = pair.made.clone();
            let into = bytes.get_mut(start..start + 4 * words.len())?;
            into.copy_from_slice(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
            return Some(bytes);
        }
    }
    None
}

/// The instruction in the replacement of a site, and its offset in the section.
fn place(code: &[u8], site: &SiteCertificate, isa: Isa, mutation: &PlantedMutation) -> Option<(usize, Inst)> {
    let (mut at, mut turn) = (site.new.start as usize, 0);
    while at < site.new.end as usize {
        let inst = isa.decode(code.get(at..)?).ok()?;
        if inst.mnemonic() == mutation.mnemonic {
            if turn == mutation.number {
                return Some((at, inst));
            }
            turn += 1;
        }
        at += usize::from(inst.len());
    }
    None
}

fn changed(inst: &Inst, change: WordChange) -> Vec<u32> {
    let mut words = inst.words()[..usize::from(inst.len()) / 4].to_vec();
    match change {
        Left => words.fill(S_NOP),
        Flip(number, bits) => words[number] ^= bits,
        Word(number, word) => words[number] = word,
        Prefix => words[..2].fill(S_NOP),
        Kept => {}
    }
    words
}

/// The original instruction, and nothing for the rest of the replacement.
fn kept(original: &[u8], site: &SiteCertificate) -> Vec<u32> {
    let mut words: Vec<u32> = original.chunks(4).map(little_endian_word).collect();
    words.resize((site.new.end - site.new.start) as usize / 4, S_NOP);
    words
}

fn little_endian_word(bytes: &[u8]) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|number| bytes.get(number).copied().unwrap_or(0)))
}

/// The difference that a comparison finds; `None` where it finds none.
pub fn caught(pair: &RewrittenPair, made: &[u8], options: &CheckOptions) -> Option<String> {
    match compare_code_objects(&pair.original, made, options) {
        Ok(report) => {
            report.kernels.iter().find_map(|kernel| kernel.difference.as_ref()).map(|found| found.what.clone())
        }
        Err(_) => None,
    }
}

/// The faults that execution does not see, or for which a place does not exist.
pub fn missed(pairs: &[RewrittenPair], options: &CheckOptions) -> Vec<String> {
    let missed = on_all_processors(MUTATIONS, |mutation| {
        catches_planted_mutation(mutation, pairs, options)
            .is_none()
            .then(|| format!("{}: {}", mutation.object, mutation.text))
    });
    missed.into_iter().flatten().collect()
}

fn catches_planted_mutation(
    mutation: &PlantedMutation,
    pairs: &[RewrittenPair],
    options: &CheckOptions,
) -> Option<String> {
    let pair = pairs.iter().find(|pair| pair.name.trim_end_matches(".relocs") == mutation.object)?;
    caught(pair, &planted(pair, mutation)?, options)
}
