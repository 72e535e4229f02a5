//! Properties that code for gfx1250-strict must not have although LLVM's disassembler accepts it, from the text alone.
//!
//! Each rule is a row of the list of differences. Rules that LLVM also follows are tested with LLVM's own code; the
//! others (`strict` below) are additional requirements of the hardware's makers.

use crate::listing::{Line, Listing};
use std::collections::BTreeSet;

/// Problems of a listing; `ours` adds the rules that LLVM itself does not follow. `kernels` are the symbols at which
/// waves begin.
pub fn problems(listing: &Listing, ours: bool, kernels: &BTreeSet<String>) -> Vec<String> {
    let mut found = Vec::new();
    for (line, fresh) in fresh(listing, kernels).into_iter().enumerate() {
        let mut say = |what: &str| found.push(format!("{}: {what}", listing.show(line)));
        forms(listing, line, &mut say);
        clause(listing, line, &mut say);
        if ours {
            beyond_llvm(listing, line, fresh, &mut say);
        }
    }
    let masks = multicast(listing).into_iter();
    // LLVM leaves the masks of tensors to the programmer.
    found.extend(masks.filter(|problem| ours || !problem.contains("tensor_load")));
    found
}

/// Instructions that the target lacks or that must have another form.
fn forms(listing: &Listing, line: usize, say: &mut dyn FnMut(&str)) {
    let here = &listing.lines[line];
    match here.mnemonic() {
        "v_wmma_f32_16x16x128_f8f6f4" => say("f8f6f4 without scales"),
        "s_barrier_signal_isfirst" if here.text.contains(" -3") => say("isfirst of the cluster barrier"),
        name if name.starts_with("v_wmma_scale") => {
            let source = here.words.get(1).map_or(0, |word| word >> 18 & 511);
            if !matches!(source, 128..=208 | 240..=248 | 256..) {
                say("the unused source names a scalar register");
            }
        }
        name if name.starts_with("v_cvt_") && name.contains("fp8") && here.text.contains(" clamp") => {
            say("conversion of UE5M3");
        }
        _ => {}
    }
    if let Some(selector) = here.text.split("scale_sel:").nth(1).and_then(|rest| rest.split(' ').next()) {
        let limit = if ["_fp8", "_bf8"].iter().any(|kind| here.mnemonic().ends_with(kind)) { 7 } else { 3 };
        if selector.parse::<u32>().is_ok_and(|selector| selector > limit) {
            say("scales of 16 elements");
        }
    }
}

/// The instructions of a clause access one kind of memory.
fn clause(listing: &Listing, line: usize, say: &mut dyn FnMut(&str)) {
    let here = &listing.lines[line];
    if here.mnemonic() != "s_clause" {
        return;
    }
    let length = here.words.first().map_or(0, |word| (word & 63) as usize) + 1;
    // LLVM counts changes of the bank mode as members and leaves them inside.
    let members = listing.lines[line + 1..].iter().take(length).map(Line::mnemonic);
    let members: BTreeSet<&str> = members.filter(|name| *name != "s_set_vgpr_msb").map(memory_class_of).collect();
    if members.len() != 1 || members.contains("no memory") {
        say(&format!("a clause of {length} holds {members:?}"));
    }
}

fn memory_class_of(text: &str) -> &str {
    match text.split('_').next().unwrap_or_default() {
        "global" | "flat" | "scratch" | "buffer" | "tbuffer" | "cluster" | "image" => "vector memory",
        "ds" => "LDS",
        "s" if text.starts_with("s_load") || text.starts_with("s_buffer") || text.starts_with("s_prefetch") => {
            "scalar memory"
        }
        _ => "no memory",
    }
}

/// Rules that LLVM does not follow.
fn beyond_llvm(listing: &Listing, line: usize, fresh: bool, say: &mut dyn FnMut(&str)) {
    let here = &listing.lines[line];
    let name = here.mnemonic();
    if name.starts_with("ds_") && name.ends_with("_addtid_b32") {
        say("LDS at M0 + 4 * lane");
    }
    if name.starts_with("v_") && name.contains("64") && here.text.contains("src_flat_scratch_base") {
        say("the base of scratch as a 64-bit source of a vector instruction");
    }
    if name == "s_get_barrier_state" {
        say("state of a barrier");
    }
    let mode = here.text.contains("(HW_REG_WAVE_MODE") || here.text.contains("(HW_REG_MODE");
    if name.starts_with("s_setreg") && mode && !fresh {
        let before = listing.lines[..line].iter().rev().take(2).take_while(|line| line.mnemonic() == "v_nop").count();
        if before < 2 {
            say("a write of MODE without two v_nop before it");
        }
    }
}

/// The lines that waves reach without a vector instruction, on every path from the starts of kernels: no operation is
/// outstanding that a write of MODE could disturb. After calls, and where the predecessors are unknown, there may be
/// one. Code that falls through into a kernel is LLVM's remainder of a place that the source declares unreachable.
fn fresh(listing: &Listing, kernels: &BTreeSet<String>) -> Vec<bool> {
    let count = listing.lines.len();
    let runs_on = move |line: usize, next: &usize| !(*next == line + 1 && is_kernel_start(*next, listing, kernels));
    let successors = |line: usize| listing.successors(line).into_iter().filter(move |next| runs_on(line, next));
    let spread = |work: &mut Vec<usize>, seen: &mut Vec<bool>| {
        while let Some(line) = work.pop() {
            if line < count && !std::mem::replace(&mut seen[line], true) {
                work.extend(successors(line));
            }
        }
    };
    // Padding between functions is never executed.
    let (mut reached, mut entered, mut stale) = (vec![false; count], vec![false; count], vec![false; count]);
    spread(&mut listing.functions.keys().copied().collect(), &mut reached);
    let lines = || (0..count).filter(|line| reached[*line]);
    lines().flat_map(successors).for_each(|line| entered[line] = true);
    // A jump to a register may target any label.
    let jumps = lines().any(|line| listing.lines[line].leaves() && !listing.lines[line].falls_through());
    let labels = listing.functions.iter().filter(|(line, name)| **line < count && !kernels.contains(*name));
    let mut work: Vec<usize> = labels.map(|(line, _)| *line).filter(|line| jumps || !entered[*line]).collect();
    work.extend(lines().filter(|one| disturbs_wait_state(one, listing)).flat_map(successors));
    spread(&mut work, &mut stale);
    stale.into_iter().map(|stale| !stale).collect()
}

fn is_kernel_start(line: usize, listing: &Listing, kernels: &BTreeSet<String>) -> bool {
    listing.functions.get(&line).is_some_and(|name| kernels.contains(name))
}

fn disturbs_wait_state(line: &usize, listing: &Listing) -> bool {
    listing.lines[*line].is_vector() || listing.lines[*line].leaves()
}

/// Facts that hold before each line on every path, updated by `step`; none holds at the start of a function.
fn facts(listing: &Listing, step: impl Fn(usize, &mut BTreeSet<String>)) -> Vec<Option<BTreeSet<String>>> {
    let mut before: Vec<Option<BTreeSet<String>>> = vec![None; listing.lines.len()];
    let mut work = Vec::new();
    for &start in listing.functions.keys().filter(|start| **start < listing.lines.len()) {
        before[start] = Some(BTreeSet::new());
        work.push(start);
    }
    while let Some(line) = work.pop() {
        let mut facts = before[line].clone().unwrap_or_default();
        step(line, &mut facts);
        for next in listing.successors(line) {
            let joined = match &before[next] {
                None => facts.clone(),
                Some(old) => old.intersection(&facts).cloned().collect(),
            };
            if before[next].as_ref() != Some(&joined) {
                before[next] = Some(joined);
                work.push(next);
            }
        }
    }
    before
}

/// Loads for clusters require 0 in the low half of M0, loads of tensors in that of their second descriptor.
fn multicast(listing: &Listing) -> Vec<String> {
    let sites: Vec<(usize, String)> =
        (0..listing.lines.len()).filter_map(|line| Some((line, needed_multicast_register(line, listing)?))).collect();
    if sites.is_empty() {
        return Vec::new();
    }
    let before = facts(listing, |line, facts| low_halves(&listing.lines[line], facts));
    sites
        .iter()
        .filter(|one| lacks_needed_register(one, &before))
        .map(|(line, reg)| format!("{}: the mask in {reg} may not be 0", listing.show(*line)))
        .collect()
}

fn needed_multicast_register(line: usize, listing: &Listing) -> Option<String> {
    let here = &listing.lines[line];
    match here.mnemonic() {
        name if name.starts_with("cluster_load") => Some("m0".to_owned()),
        "tensor_load_to_lds" => here.operands().get(1).and_then(|(_, name)| destination(name).into_iter().next()),
        _ => None,
    }
}

fn lacks_needed_register((line, reg): &&(usize, String), before: &[Option<BTreeSet<String>>]) -> bool {
    before[*line].as_ref().is_some_and(|facts| !facts.contains(reg))
}

/// Tracks the scalar registers whose low half is 0.
fn low_halves(here: &Line, facts: &mut BTreeSet<String>) {
    /// Scalar instructions whose first operand is not a result.
    const READERS: [&str; 6] = ["s_cmp", "s_bitcmp", "s_set_pc", "s_prefetch", "s_wait", "s_cbranch"];
    if here.leaves() {
        facts.clear();
        return;
    }
    let name = here.mnemonic();
    let writes = ["s_", "v_read", "v_cmp"].iter().any(|head| name.starts_with(head));
    if !writes || READERS.iter().any(|head| name.starts_with(head)) {
        return;
    }
    let words: Vec<&str> = here.operands().iter().map(|(_, operand)| *operand).collect();
    let Some((result, sources)) = words.split_first() else { return };
    let zero = match (name, sources) {
        ("s_mov_b32", [value]) => has_zero_low_half(value, facts),
        ("s_and_b32", [left, right]) => has_zero_low_half(left, facts) || has_zero_low_half(right, facts),
        ("s_or_b32" | "s_xor_b32", [left, right]) => has_zero_low_half(left, facts) && has_zero_low_half(right, facts),
        ("s_pack_hh_b32_b16", [low, _]) => *low == "0",
        ("s_pack_ll_b32_b16" | "s_pack_lh_b32_b16", [low, _]) => has_zero_low_half(low, facts),
        _ => false,
    };
    let written = destination(result);
    written.iter().for_each(|reg| {
        facts.remove(reg);
    });
    if zero {
        facts.extend(written.into_iter().take(1));
    }
}

fn has_zero_low_half(operand: &str, facts: &BTreeSet<String>) -> bool {
    match operand.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16)) {
        Some(Ok(value)) => value & 0xffff == 0,
        _ => operand == "0" || facts.contains(operand),
    }
}

/// The scalar registers of an operand, one by one.
fn destination(name: &str) -> Vec<String> {
    if name == "m0" {
        return vec![name.to_owned()];
    }
    scalars(name)
        .map_or(Vec::new(), |(first, count)| (first..first + count).map(|number| format!("s{number}")).collect())
}

/// `s4` or `s[4:7]`.
fn scalars(name: &str) -> Option<(u32, u32)> {
    let rest = name.strip_prefix('s')?;
    match rest.strip_prefix('[') {
        None => rest.parse().ok().map(|first| (first, 1)),
        Some(range) => {
            let (first, last) = range.trim_end_matches(']').split_once(':')?;
            let [first, last] = [first, last].map(|number| number.parse::<u32>().ok());
            Some((first?, last? + 1 - first?))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Problems of writes of MODE in code whose lines have 4 bytes; a line that ends in `:` is a symbol.
    fn writes(code: &[&str]) -> usize {
        let (mut text, mut at) = (String::new(), 0);
        for line in code {
            match line.strip_suffix(':') {
                Some(name) => text += &format!("{at:016x} <{name}>:\n"),
                None => {
                    let distance = line.rsplit(' ').next().and_then(|word| word.parse::<u16>().ok()).unwrap_or(0);
                    text += &format!("\t{line} // {at:012X}: {:08X}\n", 0xbfa0_0000 | u32::from(distance));
                    at += 4;
                }
            }
        }
        let kernels = BTreeSet::from(["k".to_owned()]);
        let found = problems(&Listing::read(&text), true, &kernels);
        found.iter().filter(|problem| problem.contains("MODE")).count()
    }

    const WRITE: &str = "s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 24, 1), 1";

    #[test]
    fn a_write_of_mode_needs_nops_where_a_vector_instruction_may_have_come() {
        assert_eq!(writes(&["k:", "s_mov_b32 s0, 1", WRITE, "s_endpgm"]), 0);
        assert_eq!(writes(&["k:", "v_mov_b32_e32 v0, 1", WRITE, "s_endpgm"]), 1);
        assert_eq!(writes(&["k:", "v_mov_b32_e32 v0, 1", "v_nop", "v_nop", WRITE, "s_endpgm"]), 0);
        // A wave does not begin at a label; loads are no vector instructions.
        assert_eq!(writes(&["k:", "v_mov_b32_e32 v0, 1", "label:", WRITE, "s_endpgm"]), 1);
        assert_eq!(writes(&["k:", "global_load_b32 v0, v[2:3], off", "label:", WRITE, "s_endpgm"]), 0);
        // At the start of a called function anything may be outstanding; padding has no predecessors.
        assert_eq!(writes(&["f:", WRITE, "s_set_pc_i64 s[30:31]", "v_nop", "k:", WRITE, "s_endpgm"]), 1);
        assert_eq!(writes(&["f:", "v_nop", "k:", WRITE, "s_endpgm"]), 0);
        assert_eq!(writes(&["f:", "v_nop", "s_branch 0", "s_endpgm", "k:", WRITE, "s_endpgm"]), 0);
        assert_eq!(writes(&["f:", "v_nop", "s_branch 1", "s_endpgm", "k:", WRITE, "s_endpgm"]), 1);
    }

    #[test]
    fn all_ways_to_a_write_of_mode_count() {
        let loops = |body: &str| writes(&["k:", WRITE, body, "s_cbranch_scc1 65533", "s_endpgm"]);
        assert_eq!((loops("s_nop 0"), loops("v_nop")), (0, 1));
    }
}
