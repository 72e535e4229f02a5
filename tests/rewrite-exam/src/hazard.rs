//! Distances between matrix instructions and instructions that access their registers, from the disassembler's text.
//!
//! Nothing of the families is used: the table is the one that was measured with LLVM's hazard recognizer for
//! gfx1250-strict, written again; the walk is a search from each matrix instruction over all paths. LLVM's code for the
//! target must pass, otherwise the check is wrong.

use crate::banks::Banks;
use crate::listing::{Line, Listing, Role, Vgprs, is_scalar_destination, vgprs};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};

/// Vector instructions that must precede a vector instruction and a matrix instruction.
pub type Needs = (u8, u8);

/// The required distances of gfx1250-strict after a matrix instruction; `None` for an unknown one.
pub fn needs(line: &Line) -> Option<Needs> {
    let mnemonic = line.mnemonic();
    if mnemonic.contains("_16x16x4_f32") {
        return Some((0, 0));
    }
    if mnemonic.starts_with("v_swmmac_") {
        return Some(if mnemonic.contains("iu8") { (4, 5) } else { (2, 3) });
    }
    if mnemonic.ends_with("f8f6f4") {
        return Some(
            if has_narrow_matrix_format("matrix_a_fmt", line) && has_narrow_matrix_format("matrix_b_fmt", line) {
                (4, 5)
            } else {
                (8, 9)
            },
        );
    }
    let known = ["_16x16x32_", "_16x16x64_"].iter().any(|shape| mnemonic.contains(shape));
    known.then(|| if mnemonic.contains("_iu8") { (8, 9) } else { (4, 5) })
}

fn has_narrow_matrix_format(name: &str, line: &Line) -> bool {
    ["FP6", "BF6", "FP4"].iter().any(|kind| line.text.contains(&format!("{name}:MATRIX_FMT_{kind}")))
}

/// Name of the properties that determine the distance, for comparing programs.
pub fn class(line: &Line) -> String {
    match needs(line) {
        Some((vector, _)) => {
            let mnemonic = line.mnemonic().replace("_scale16_", "_").replace("_scale_", "_");
            format!("{mnemonic}/{vector}")
        }
        None => line.mnemonic().to_owned(),
    }
}

/// The instruction that follows too closely.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consumer {
    Vector,
    /// A matrix instruction that reads the result as A, B or index.
    Matrix,
    /// A call, a return or another branch to unknown code.
    Leave,
}

/// The results for a listing.
#[derive(Debug, Default)]
pub struct Distances {
    /// Too close, one line each.
    pub violations: Vec<String>,
    /// Too close to a call or a return: LLVM does not check these, so only our code is judged by it.
    pub leaving: Vec<String>,
    /// Matrix instructions without a known distance.
    pub unknown: Vec<String>,
    /// Fewest instructions between, by class of producer and consumer.
    pub fewest: BTreeMap<(String, Consumer), u8>,
    /// Pairs that were judged.
    pub pairs: usize,
}

impl Distances {
    /// Merges the smaller distances.
    pub fn merge(&mut self, other: Self) {
        self.violations.extend(other.violations);
        self.leaving.extend(other.leaving);
        self.unknown.extend(other.unknown);
        self.pairs += other.pairs;
        for (key, count) in other.fewest {
            let old = self.fewest.entry(key).or_insert(u8::MAX);
            *old = count.min(*old);
        }
    }
}

/// Registers of an instruction under the mode before it.
struct Touch {
    reads: Vec<Vgprs>,
    writes: Vec<Vgprs>,
}

fn overlap(left: &[Vgprs], right: &[Vgprs]) -> bool {
    left.iter().any(|a| right.iter().any(|b| register_ranges_overlap(a, b)))
}

fn register_ranges_overlap(a: &Vgprs, b: &Vgprs) -> bool {
    a.first < b.first + b.count && b.first < a.first + a.count
}

/// The registers that a vector instruction reads and writes.
fn touch(line: &Line, banks: &Banks, number: usize) -> Touch {
    let mut touch = Touch { reads: Vec::new(), writes: Vec::new() };
    let mnemonic = line.mnemonic();
    let swaps = mnemonic.contains("_swap_b32") || mnemonic.starts_with("v_swap");
    for (position, (role, operand)) in line.operands().into_iter().enumerate() {
        let Some(regs) = vgprs(operand) else { continue };
        let physical = banks.before[number].physical(role, regs);
        let writes = role == Role::Dst && !(position == 0 && is_scalar_destination(mnemonic));
        if writes || swaps {
            touch.writes.extend(&physical);
        }
        // A result that is also a source overlaps as a write already.
        if !writes || swaps {
            touch.reads.extend(physical);
        }
    }
    touch
}

/// Registers of a matrix instruction.
#[derive(Default)]
struct MatrixOperands {
    result: Vec<Vgprs>,
    /// A, B and the index of a sparse one: a matrix instruction must wait for a result that it reads here.
    inputs: Vec<Vgprs>,
    /// C: a matrix instruction reads a result here at once.
    addend: Vec<Vgprs>,
}

/// Result and sources of a matrix instruction; scales need no distance.
fn matrix(line: &Line, banks: &Banks, number: usize) -> MatrixOperands {
    let sparse = line.mnemonic().starts_with("v_swmmac_");
    let mut operands = MatrixOperands::default();
    for (role, operand) in line.operands() {
        let Some(regs) = vgprs(operand) else { continue };
        let physical = banks.before[number].physical(role, regs);
        match role {
            Role::Dst => operands.result.extend(physical),
            Role::Src0 | Role::Src1 => operands.inputs.extend(physical),
            Role::Src2 if sparse => operands.inputs.extend(physical),
            Role::Src2 => operands.addend.extend(physical),
            _ => {}
        }
    }
    operands
}

/// Checks every matrix instruction of a listing.
pub fn distances(listing: &Listing, banks: &Banks) -> Distances {
    let mut found = Distances::default();
    let mut touches = HashMap::new();
    for producer in (0..listing.lines.len()).filter(|line| listing.lines[*line].is_matrix()) {
        match needs(&listing.lines[producer]) {
            None => found.unknown.push(listing.show(producer)),
            Some((_, 0)) => {}
            Some(needs) => from(listing, banks, producer, needs, &mut touches, &mut found),
        }
    }
    found
}

/// All instructions that can be reached from a producer within the relevant distance.
fn from(
    listing: &Listing,
    banks: &Banks,
    producer: usize,
    needs: Needs,
    touches: &mut HashMap<usize, Touch>,
    found: &mut Distances,
) {
    let class = class(&listing.lines[producer]);
    let operands = matrix(&listing.lines[producer], banks, producer);
    let mut best: HashMap<usize, u8> = HashMap::new();
    let mut heap: BinaryHeap<Reverse<(u8, usize)>> = BinaryHeap::new();
    for next in listing.successors(producer) {
        heap.push(Reverse((0, next)));
    }
    while let Some(Reverse((count, line))) = heap.pop() {
        // One more than required, to distinguish a distance that is kept by luck from one that is the smallest
        // possible.
        if count > needs.1 || best.get(&line).is_some_and(|known| *known <= count) {
            continue;
        }
        best.insert(line, count);
        let here = &listing.lines[line];
        let consumer = consumer(here, line, banks, touches, &operands);
        if let Some(consumer) = consumer {
            judge(listing, (producer, &class), (line, consumer), count, needs, found);
        }
        let behind = count + u8::from(here.is_vector());
        for next in listing.successors(line) {
            heap.push(Reverse((behind, next)));
        }
    }
}

fn consumer(
    here: &Line,
    line: usize,
    banks: &Banks,
    touches: &mut HashMap<usize, Touch>,
    producer: &MatrixOperands,
) -> Option<Consumer> {
    if here.leaves() {
        return Some(Consumer::Leave);
    }
    if here.is_matrix() {
        let reads = matrix(here, banks, line).inputs;
        return overlap(&reads, &producer.result).then_some(Consumer::Matrix);
    }
    if !here.is_vector() {
        return None;
    }
    let touch = touches.entry(line).or_insert_with(|| touch(here, banks, line));
    let MatrixOperands { result, inputs, addend } = producer;
    let overwrites = [result, inputs, addend].into_iter().any(|registers| overlap(&touch.writes, registers));
    let near = overwrites || overlap(&touch.reads, result);
    near.then_some(Consumer::Vector)
}

fn judge(
    listing: &Listing,
    (producer, class): (usize, &str),
    (line, consumer): (usize, Consumer),
    count: u8,
    needs: Needs,
    found: &mut Distances,
) {
    let need = if consumer == Consumer::Vector { needs.0 } else { needs.1 };
    found.pairs += 1;
    let fewest = found.fewest.entry((class.to_owned(), consumer)).or_insert(u8::MAX);
    *fewest = count.min(*fewest);
    if count < need {
        let text = format!("{} | {} | {count} of {need}", listing.show(producer), listing.show(line));
        match consumer {
            Consumer::Leave => found.leaving.push(text),
            _ => found.violations.push(text),
        }
    }
}
