//! Assembly of a compiler with `s_nop` lines inserted, and the same as edits.
#![allow(dead_code, reason = "each test uses its part")]

use hotswap_rewrite::CodeEdits;
use hotswap_userland::Workbench;
pub(crate) use hotswap_userland::tool;
use std::collections::{BTreeMap, HashMap};

/// `s_nop 0`.
pub(crate) const NOP: [u8; 4] = 0xbf80_0000_u32.to_le_bytes();

/// Deterministic pseudo-random numbers.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (value ^ value >> 31) % end
    }
}

/// Assembly of the kernels.
pub(crate) fn compile(bench: &Workbench, version: u32, target: &str, options: &str) -> String {
    compile_kernels(bench, version, target, options, include_str!("../kernels/calls.cl"))
}

/// Assembly of other kernels.
pub(crate) fn compile_kernels(bench: &Workbench, version: u32, target: &str, options: &str, kernels: &str) -> String {
    bench.write("k.cl", kernels.as_bytes());
    bench.run(&format!(
        "{} -x cl -cl-std=CL2.0 --target=amdgcn-amd-amdhsa -nogpulib -fPIC -w -mcpu={target} {options} -S k.cl -o k.s",
        tool(version, "clang")
    ));
    String::from_utf8(bench.read("k.s")).unwrap()
}

/// An object of that assembly.
pub(crate) fn assemble(bench: &Workbench, version: u32, target: &str, name: &str, text: &str) -> Vec<u8> {
    bench.assemble(version, &format!("-mcpu={target}"), name, text)
}

/// The object, linked with its relocations.
pub(crate) fn link(bench: &Workbench, version: u32, name: &str) -> Vec<u8> {
    bench.link(version, "--emit-relocs", name)
}

/// An instruction of an assembly file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line {
    pub(crate) number: usize,
    /// Whether a new instruction before it is outside of clauses, delays and sums of addresses, whose words the
    /// assembler takes literally.
    pub(crate) is_free: bool,
    /// The same for one after it.
    pub(crate) is_free_behind: bool,
}

/// The instructions of an assembly file.
pub(crate) fn instructions(text: &str) -> Vec<Line> {
    let (mut found, mut in_text, mut bound) = (Vec::new(), true, 0_i64);
    for (number, line) in text.lines().enumerate() {
        let mut words = line.split_whitespace();
        match words.next() {
            Some(".text") => in_text = true,
            Some(".section") => in_text = words.next().is_some_and(|name| name.starts_with(".text")),
            Some(mnemonic)
                if in_text
                    && line.starts_with('\t')
                    && mnemonic.starts_with(|first: char| first.is_ascii_lowercase()) =>
            {
                let is_free = bound <= 0;
                bound -= 1;
                let more = match mnemonic {
                    "s_clause" => {
                        words
                            .next()
                            .and_then(|count| i64::from_str_radix(count.trim_start_matches("0x"), 16).ok())
                            .unwrap_or(63)
                            + 1
                    }
                    "s_delay_alu" => 7,
                    "s_getpc_b64" | "s_get_pc_i64" => 6,
                    _ => 0,
                };
                bound = bound.max(more);
                found.push(Line { number, is_free, is_free_behind: bound <= 0 });
            }
            _ => {}
        }
    }
    found
}

/// Position of an `s_nop`: before an instruction or after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Site {
    pub(crate) instruction: usize,
    pub(crate) behind: bool,
}

/// About one of `every` positions, chosen freely or outside of ranges that count instructions.
pub(crate) fn sites(lines: &[Line], random: &mut Random, every: u64, only_free: bool) -> Vec<Site> {
    let mut found = Vec::new();
    for (instruction, line) in lines.iter().enumerate() {
        for (behind, is_free) in [(false, line.is_free), (true, line.is_free_behind)] {
            if random.below(every) == 0 && (is_free || !only_free) {
                found.push(Site { instruction, behind });
            }
        }
    }
    found
}

/// The text with the new lines; optionally a label before each of them.
pub(crate) fn with_nops(text: &str, lines: &[Line], sites: &[Site], labels: bool) -> String {
    let mut at: HashMap<usize, [bool; 2]> = HashMap::new();
    for site in sites {
        at.entry(lines[site.instruction].number).or_default()[usize::from(site.behind)] = true;
    }
    let (mut out, mut count) = (String::new(), 0);
    let mut nop = |out: &mut String| {
        if labels {
            out.push_str(&format!("hs_nop_{count}:\n"));
        }
        out.push_str("\ts_nop 0\n");
        count += 1;
    };
    for (number, line) in text.lines().enumerate() {
        let [before, behind] = at.get(&number).copied().unwrap_or_default();
        if before {
            nop(&mut out);
        }
        out.push_str(line);
        out.push('\n');
        if behind {
            nop(&mut out);
        }
    }
    out
}

/// The text with a label before each instruction.
pub(crate) fn with_labels(text: &str, lines: &[Line]) -> String {
    let at: HashMap<usize, usize> = lines.iter().enumerate().map(|(index, line)| (line.number, index)).collect();
    let mut out = String::new();
    for (number, line) in text.lines().enumerate() {
        if let Some(index) = at.get(&number) {
            out.push_str(&format!("hs_at_{index}:\n"));
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Section and value of the labels with that prefix, by their numbers.
pub(crate) fn labels(bench: &Workbench, version: u32, file: &str, prefix: &str) -> Vec<(usize, u64)> {
    let text = bench.run(&format!("/usr/lib/llvm-{version}/bin/llvm-readelf -sW {file}"));
    let mut found: Vec<(usize, usize, u64)> = Vec::new();
    for row in text.lines() {
        let words: Vec<&str> = row.split_whitespace().collect();
        let Some(number) = words.get(7).and_then(|name| name.strip_prefix(prefix)).and_then(|rest| rest.parse().ok())
        else {
            continue;
        };
        found.push((number, words[6].parse().unwrap(), u64::from_str_radix(words[1], 16).unwrap()));
    }
    found.sort_unstable();
    found.into_iter().map(|(_, section, value)| (section, value)).collect()
}

/// `s_nop` at the sites, whose instructions are at those offsets.
pub(crate) fn edits(sites: &[Site], places: &[(usize, u64)]) -> BTreeMap<usize, CodeEdits> {
    let mut edits: BTreeMap<usize, CodeEdits> = BTreeMap::new();
    for site in sites {
        let (section, offset) = places[site.instruction];
        let list = edits.entry(section).or_default();
        if site.behind { list.insert_after(offset, &NOP, &[]) } else { list.insert_before(offset, &NOP, &[]) }
    }
    edits
}

/// The same edits for another number of the section: there is one with code.
pub(crate) fn renumbered(edits: &BTreeMap<usize, CodeEdits>, data: &[u8]) -> BTreeMap<usize, CodeEdits> {
    let image = hotswap_code_object::image::ObjectImage::parse(data).unwrap();
    let section = image.sections.iter().position(|section| section.is_code() && section.size > 0).unwrap();
    assert_eq!(edits.len(), 1, "one section with code");
    edits.values().map(|list| (section, list.clone())).collect()
}
