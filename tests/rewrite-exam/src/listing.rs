//! Parses the text of `llvm-objdump` for a code section: nothing of our own tables is used.
//!
//! Registers are named by their position in the text, with the bank mode as a property of the control flow. The roles
//! of the positions are stated here again, from LLVM's tables of operands (`AMDGPULowerVGPREncoding`).

use std::collections::BTreeMap;

/// A run of consecutive VGPRs in the text: below 256, before the bank is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Vgprs {
    pub first: u16,
    /// Number of registers.
    pub count: u16,
}

/// The part of the bank mode that applies to an operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The first source, or an address.
    Src0,
    /// The second source, or data to store.
    Src1,
    /// The third source.
    Src2,
    /// The result.
    Dst,
    /// Always bank 0.
    Fixed,
}

#[derive(Debug, Clone)]
pub struct Line {
    pub address: u64,
    /// Its text without the comment.
    pub text: String,
    pub words: Vec<u32>,
    /// The target of a branch.
    pub target: Option<u64>,
}

/// A code section's instructions with the functions that begin there.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// In order of addresses.
    pub lines: Vec<Line>,
    /// Number of the first line of each symbol.
    pub functions: BTreeMap<usize, String>,
    /// Lines that are not an instruction.
    pub invalid: Vec<String>,
}

impl Line {
    /// The first word.
    pub fn mnemonic(&self) -> &str {
        self.text.split([' ', '\t']).next().unwrap_or_default()
    }

    /// Operands without modifiers, those of both halves of a dual instruction one after the other.
    pub fn operands(&self) -> Vec<(Role, &str)> {
        self.text.split("::").flat_map(|half| roles(half.trim())).collect()
    }

    /// Whether it is a vector instruction, `v_nop` included.
    pub fn is_vector(&self) -> bool {
        self.mnemonic().starts_with("v_")
    }

    /// Whether it is a matrix instruction.
    pub fn is_matrix(&self) -> bool {
        self.mnemonic().starts_with("v_wmma_") || self.mnemonic().starts_with("v_swmmac_")
    }

    /// Whether execution may continue at the next line.
    pub fn falls_through(&self) -> bool {
        !matches!(
            self.mnemonic(),
            "s_branch" | "s_endpgm" | "s_set_pc_i64" | "s_setpc_b64" | "s_code_end" | "s_add_pc_i64" | "s_endpgm_saved"
        )
    }

    /// Whether execution leaves for unknown code.
    pub fn leaves(&self) -> bool {
        matches!(self.mnemonic(), "s_set_pc_i64" | "s_swap_pc_i64" | "s_call_i64" | "s_add_pc_i64")
    }
}

/// Operands of one half with their roles.
fn roles(half: &str) -> Vec<(Role, &str)> {
    let (mnemonic, rest) = half.split_once(' ').unwrap_or((half, ""));
    let operands = split(rest);
    let order = order(mnemonic, &operands);
    operands.into_iter().zip(order).collect::<Vec<_>>().into_iter().map(|(operand, role)| (role, operand)).collect()
}

/// Commas inside brackets do not separate; tokens after the first of an operand are modifiers.
fn split(text: &str) -> Vec<&str> {
    let (mut operands, mut start, mut depth) = (Vec::new(), 0, 0i32);
    let mut cut = |from: usize, to: usize| {
        let operand = text[from..to].trim();
        operands.push(operand.split_whitespace().next().unwrap_or_default());
    };
    for (at, letter) in text.char_indices() {
        match letter {
            '[' | '(' => depth += 1,
            ']' | ')' => depth -= 1,
            ',' if depth == 0 => {
                cut(start, at);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !text.trim().is_empty() {
        cut(start, text.len());
    }
    operands
}

/// Roles by position.
fn order(mnemonic: &str, operands: &[&str]) -> Vec<Role> {
    use Role::{Dst, Fixed, Src0, Src1, Src2};
    let sources = |first: &[Role]| [first, &[Src0, Src1, Src2, Fixed, Fixed, Fixed, Fixed]].concat();
    let family = mnemonic.split('_').next().unwrap_or_default();
    match family {
        "v" if mnemonic.starts_with("v_cmpx_") => match operands.first() {
            Some(&"exec_lo" | &"exec") => sources(&[Fixed]),
            _ => sources(&[]),
        },
        "v" if is_scalar_destination(mnemonic) => sources(&[Fixed]),
        "v" if mnemonic.contains("_co_") || mnemonic.starts_with("v_div_scale") => sources(&[Dst, Fixed]),
        // The constant is between the sources.
        "v" if mnemonic.contains("fmamk") => vec![Dst, Src0, Fixed, Src1],
        "v" => sources(&[Dst]),
        "ds" if mnemonic.ends_with("_addtid_b32") && mnemonic.contains("store") => vec![Src1],
        "ds" if reads_only(mnemonic) => vec![Src0, Src1, Src2, Fixed],
        "ds" => vec![Dst, Src0, Src1, Src2],
        "buffer" | "tbuffer" => vec![Dst, Src0, Fixed, Fixed],
        "global" | "flat" | "scratch" | "cluster" => memory(mnemonic),
        _ => vec![Fixed; 8],
    }
}

/// Whether the first operand is a scalar register.
pub(crate) fn is_scalar_destination(mnemonic: &str) -> bool {
    let heads = ["v_cmp_", "v_readlane", "v_readfirstlane", "v_s_"];
    heads.iter().any(|head| mnemonic.starts_with(head))
}

/// Memory instructions of which no operand is a result.
fn reads_only(mnemonic: &str) -> bool {
    let stores = mnemonic.contains("_store_") || mnemonic.contains("prefetch");
    let silent = mnemonic.contains("_atomic_") || mnemonic.starts_with("ds_");
    let returns = ["_rtn", "_load", "_permute", "_bpermute", "swizzle", "consume", "append", "_tr"];
    stores || silent && !returns.iter().any(|part| mnemonic.contains(part))
}

fn memory(mnemonic: &str) -> Vec<Role> {
    use Role::{Dst, Fixed, Src0, Src1};
    if mnemonic.contains("_to_lds_") || mnemonic.contains("_from_lds_") {
        return vec![Dst, Src0, Fixed];
    }
    if mnemonic.contains("_store_") || mnemonic.contains("prefetch") {
        return vec![Src0, Src1, Fixed];
    }
    if mnemonic.contains("_atomic_") {
        // With a result, it comes first; the number of operands in the text does not distinguish the two.
        return vec![Dst, Src0, Src1, Fixed];
    }
    vec![Dst, Src0, Fixed, Fixed]
}

/// The VGPRs of an operand.
pub fn vgprs(operand: &str) -> Option<Vgprs> {
    let name = operand.trim_start_matches(['-', '|', '!']).trim_end_matches('|');
    let name = name.trim_end_matches(".l").trim_end_matches(".h");
    let rest = name.strip_prefix('v')?;
    match rest.strip_prefix('[') {
        None => rest.parse().ok().map(|first| Vgprs { first, count: 1 }),
        Some(range) => {
            let (first, last) = range.trim_end_matches(']').split_once(':')?;
            let [first, last] = [first, last].map(|number| number.parse::<u16>().ok());
            Some(Vgprs { first: first?, count: last? + 1 - first? })
        }
    }
}

impl Listing {
    /// Parses the output of `llvm-objdump -d`.
    pub fn read(text: &str) -> Self {
        let mut listing = Self::default();
        for line in text.lines() {
            if let Some(name) = line.strip_suffix(">:").and_then(|line| line.split_once(" <")) {
                listing.functions.insert(listing.lines.len(), name.1.to_owned());
            } else if let Some((code, comment)) = line.strip_prefix('\t').and_then(|line| line.rsplit_once("// ")) {
                listing.push(code, comment);
            }
        }
        listing
    }

    fn push(&mut self, code: &str, comment: &str) {
        let Some((address, rest)) = comment.trim().split_once(':') else { return };
        let Ok(address) = u64::from_str_radix(address.trim(), 16) else { return };
        let (words, _) = rest.split_once('<').unwrap_or((rest, ""));
        let words: Vec<u32> = words.split_whitespace().filter_map(|word| u32::from_str_radix(word, 16).ok()).collect();
        let text = without_comments(code.trim());
        let invalid = text.is_empty() || text.starts_with('.') || text.contains("<unknown>") || text == "v_illegal";
        if invalid && !words.iter().all(|word| *word == 0) {
            self.invalid.push(format!("{address:#x}: {text} {words:x?}"));
        }
        let target = branch_target(&text, address, words.first().copied());
        self.lines.push(Line { address, text, words, target });
    }

    /// Number of the line at an address.
    pub fn at(&self, address: u64) -> Option<usize> {
        self.lines.binary_search_by_key(&address, |line| line.address).ok()
    }

    /// The function of a line.
    pub fn function(&self, line: usize) -> &str {
        self.functions.range(..=line).next_back().map_or("?", |(_, name)| name)
    }

    /// The line and its location, for messages.
    pub fn show(&self, line: usize) -> String {
        let Line { address, text, .. } = &self.lines[line];
        format!("{}: {address:#x}: {text}", self.function(line))
    }

    /// The lines that may follow a line.
    pub fn successors(&self, line: usize) -> Vec<usize> {
        let here = &self.lines[line];
        let next = (here.falls_through() && line + 1 < self.lines.len()).then_some(line + 1);
        let target = here.target.and_then(|target| self.at(target));
        next.into_iter().chain(target).collect()
    }
}

/// Removes `/*v290*/`, the register in the current bank; LLVM follows the mode in straight-line code only.
fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before.trim_end());
        rest = after.split_once("*/").map_or("", |(_, behind)| behind);
    }
    out.push_str(rest);
    let text = out.split(';').next().unwrap_or_default();
    text.trim().to_owned()
}

/// Conditional and unconditional branches: a signed number of words from the next instruction.
fn branch_target(text: &str, address: u64, word: Option<u32>) -> Option<u64> {
    let branches = text.starts_with("s_branch") || text.starts_with("s_cbranch_");
    let offset = i64::from(word? as u16 as i16) * 4;
    branches.then(|| address.wrapping_add(4).wrapping_add_signed(offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "0000000000001900 <k>:\n\
        \tv_lshlrev_b32_e32 v34 /*v290*/, 5, v0                      // 000000001900: 30440085\n\
        \tv_dual_mov_b32 v4, v20 :: v_dual_fmamk_f32 v6, v22, 0x5, v7// 000000001904: CA100114 04040115\n\
        \tv_pk_mul_f32 v[0:1] /*v[512:513]*/, v[4:5], v[0:1] /*v[512:513]*/// 00000000190C: CC280000 18020104\n\
        \ts_cbranch_scc1 65533                                       // 000000001914: BFA2FFFD <k>\n\
        \t.long 0xcc800000                                           // 000000001918: CC800000\n";

    #[test]
    fn lines_have_registers_roles_and_targets() {
        let listing = Listing::read(TEXT);
        assert_eq!(listing.lines.len(), 5);
        assert_eq!(listing.functions[&0], "k");
        assert_eq!(listing.lines[0].operands(), [(Role::Dst, "v34"), (Role::Src0, "5"), (Role::Src1, "v0")]);
        let dual = listing.lines[1].operands();
        assert_eq!(dual[5], (Role::Src1, "v7"));
        assert_eq!(listing.lines[2].operands()[2], (Role::Src1, "v[0:1]"));
        assert_eq!(listing.lines[3].target, Some(0x190c));
        assert_eq!(listing.invalid.len(), 1);
        assert_eq!(vgprs("-|v[8:11]|"), Some(Vgprs { first: 8, count: 4 }));
        assert_eq!(vgprs("v3.h"), Some(Vgprs { first: 3, count: 1 }));
        assert_eq!(vgprs("vcc_lo"), None);
    }
}
