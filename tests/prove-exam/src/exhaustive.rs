//! Conversions of 32-bit floats, on all of them: the emulator's 8-bit formats against their definition, and the replacements
//! of unsigned E5M3 conversions against the instructions.
//!
//! Invariants: the step between inputs is odd or 1, so that all low bits occur; with 1 every input does.

use crate::evidence::EvidenceRow;
use crate::sizes::FloatRange;
use crate::subjects::{self, RewrittenPair, SubjectKind};
use crate::unary;
use hotswap_code_object::certificate_note;
use hotswap_code_object::image::ObjectImage;
use hotswap_emulator::{EmulatedDevice, SnippetMachine, SnippetShape, SparseMemory};
use hotswap_emulator_exam::float8_models;
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::{Inst, Isa, Name, OperandValue, Target};
use hotswap_report::Certificate;
use hotswap_userland::Workbench;

/// The conversions whose inputs are 32-bit floats, and those that read bytes.
const CONVERSIONS: [&str; 3] = ["v_cvt_pk_fp8_f32", "v_cvt_sr_fp8_f32", "v_cvt_f32_fp8"];
/// Threads: parts of the inputs.
const PARTS: u64 = 2;
const LANES: u64 = 32;

/// A replaced conversion: both codes, its sources and its target.
struct Conversion {
    name: &'static str,
    code: [Vec<u8>; 2],
    sources: Vec<u16>,
    target: u16,
}

/// Runs `part(start)` for each part of the inputs; the first finding.
fn in_parts(part: impl Fn(u64) -> Option<String> + Sync) -> Option<String> {
    std::thread::scope(|scope| {
        let part = &part;
        let handles: Vec<_> = (0..PARTS).map(|number| scope.spawn(move || part(number))).collect();
        let found = handles.into_iter().map(|handle| handle.join().unwrap_or_else(|_| Some("a panic".to_owned())));
        found.fold(None, |first, one| first.or(one))
    })
}

/// The floats, each rounded to each 8-bit format.
fn formats(floats: &FloatRange) -> Vec<String> {
    let wrong = float8_models().into_iter().filter_map(|model| {
        let found = in_parts(|part| {
            let mut inputs = (floats.first() + part * floats.step..floats.end).step_by((PARTS * floats.step) as usize);
            inputs.find_map(|bits| model.differs(bits as u32))
        });
        println!("exhaustive: {}", model.name);
        found
    });
    wrong.collect()
}

/// The first replacement of each conversion whose operands are vector registers without banks.
fn conversions(pairs: &[RewrittenPair]) -> Vec<Conversion> {
    let mut all: Vec<Conversion> = Vec::new();
    for found in pairs.iter().flat_map(conversions_of) {
        if !all.iter().any(|one| one.name == found.name) {
            all.push(found);
        }
    }
    all
}

fn conversions_of(pair: &RewrittenPair) -> Vec<Conversion> {
    let Some((certificate, old, new)) = conversion_certificate_images(pair) else { return Vec::new() };
    let sites = certificate.sections.iter().flat_map(|section| {
        let [before, after] = [&old, &new].map(|image| image.sections[section.number as usize].bytes);
        section.sites.iter().map(move |site| {
            let end = site.old + site.old_size;
            [
                before[site.old as usize..end as usize].to_vec(),
                after[site.new.start as usize..site.new.end as usize].to_vec(),
            ]
        })
    });
    sites.filter_map(conversion).collect()
}

fn conversion_certificate_images(pair: &RewrittenPair) -> Option<(Certificate, ObjectImage<'_>, ObjectImage<'_>)> {
    let certificate = Certificate::from_bytes(certificate_note(&pair.made)?).ok()?;
    Some((certificate, ObjectImage::parse(&pair.original).ok()?, ObjectImage::parse(&pair.made).ok()?))
}

fn conversion(code: [Vec<u8>; 2]) -> Option<Conversion> {
    let [isa, strict] = ["gfx1250", "gfx1250-strict"].map(|name| Target::find(name).map(Isa::new));
    let (isa, strict) = (isa?, strict?);
    let old = isa.decode(&code[0]).ok()?;
    let name = CONVERSIONS.into_iter().find(|name| *name == old.mnemonic())?;
    let mut at = 0;
    while at < code[1].len() {
        let inst = strict.decode(&code[1][at..]).ok()?;
        at += usize::from(inst.len());
        if inst.mnemonic() == "s_set_vgpr_msb" {
            return None;
        }
    }
    let register = |name| vector(&old, isa, name);
    let sources: Option<Vec<u16>> = match name {
        "v_cvt_f32_fp8" => Some(vec![register(Name::Src0)?]),
        _ => Some(vec![register(Name::Src0)?, register(Name::Src1)?]),
    };
    let (sources, target) = (sources?, register(Name::Vdst)?);
    let is_apart = !sources.contains(&target) && (sources.len() < 2 || sources[0] != sources[1]);
    is_apart.then_some(Conversion { name, code, sources, target })
}

fn vector(inst: &Inst, isa: Isa, name: Name) -> Option<u16> {
    let operand = inst.operands(isa).find(|operand| operand.name == name)?;
    match operand.value {
        OperandValue::Reg(reg) if reg.file == RegFile::Vgpr => Some(reg.index),
        _ => None,
    }
}

/// A number that has nothing to do with another one.
fn noise(bits: u64) -> u32 {
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 29) as u32
}

impl Conversion {
    /// Both codes on a part of the inputs; the first difference.
    fn differs(&self, part: u64, floats: &FloatRange) -> Option<String> {
        let devices = ["gfx1250", "gfx1250-strict"].map(EmulatedDevice::new);
        let [Ok(before), Ok(after)] = devices else { return Some("no such device".to_owned()) };
        let mut memories = [SparseMemory::new(), SparseMemory::new()];
        let starts = [0, 1].map(|side| memories[side].allocate_copy(&self.code[side]));
        let shape = SnippetShape { lanes: 32, vectors: 256, lds: 64, scratch: 16 };
        let mut machines =
            [SnippetMachine::new(&before, &memories[0], &shape), SnippetMachine::new(&after, &memories[1], &shape)];
        let bytes_only = self.name == "v_cvt_f32_fp8";
        let FloatRange { start, end, step } =
            if bytes_only { FloatRange { start: 0, end: 1 << 16, step: 1 } } else { *floats };
        let start = start.next_multiple_of(step);
        for first in (start + part * LANES * step..end).step_by((PARTS * LANES * step) as usize) {
            for overflow in [0, 1] {
                let results =
                    [0, 1].map(|side| self.result(&mut machines[side], (starts[side], side), first, step, overflow));
                if results[0].is_none() || results[0] != results[1] {
                    return Some(format!(
                        "{}: {first:#x} in steps of {step}, overflow {overflow}: {results:x?}",
                        self.name
                    ));
                }
            }
        }
        None
    }

    fn result(
        &self,
        machine: &mut SnippetMachine<'_>,
        (start, side): (u64, usize),
        first: u64,
        step: u64,
        overflow: u32,
    ) -> Option<[u32; 32]> {
        *machine.vector_mut(self.sources[0], 0) = std::array::from_fn(|lane| match self.name {
            // Every byte in every place.
            "v_cvt_f32_fp8" => (lane_input_bits(lane, first, step) as u32).wrapping_mul(0x1_0001).rotate_left(4),
            _ => lane_input_bits(lane, first, step) as u32,
        });
        if let Some(second) = self.sources.get(1) {
            *machine.vector_mut(*second, 0) = std::array::from_fn(|lane| noise(lane_input_bits(lane, first, step)));
        }
        *machine.vector_mut(self.target, 0) = [0x1234_5678; 32];
        machine.set_mode(0x3f0 | overflow << 23, 0);
        machine.set_scalar(Reg::special(Special::ExecLo, 1), u32::MAX);
        let end = start + self.code[side].len() as u64;
        machine.run_until(start, 4096, &|pc| pc == end).ok()?;
        Some(*machine.vector(self.target, 0))
    }
}

fn lane_input_bits(lane: usize, first: u64, step: u64) -> u64 {
    first + lane as u64 * step
}

/// The lines of the table.
///
/// # Panics
/// If the step is 0.
pub fn rows(bench: &Workbench, floats: &FloatRange) -> [EvidenceRow; 2] {
    [row(bench, floats), unary_row(bench, floats)]
}

fn row(bench: &Workbench, floats: &FloatRange) -> EvidenceRow {
    let mut wrong = formats(floats);
    let conversions = conversions(&subjects::assembly(bench, SubjectKind::Variants));
    for conversion in &conversions {
        wrong.extend(in_parts(|part| conversion.differs(part, floats)));
        println!("exhaustive: replacement of {}", conversion.name);
    }
    wrong.iter().for_each(|what| println!("{what}"));
    EvidenceRow {
        claim: "Conversions to 8-bit floats are right for every input".to_owned(),
        method:
            "formats against sorted lists of their values; replacements of E5M3 conversions against the instructions"
                .to_owned(),
        cases: format!(
            "{}, 4 formats and {} replaced conversions, overflow kept and clamped",
            floats.text(),
            conversions.len()
        ),
        result: if wrong.is_empty() { "equal".to_owned() } else { format!("{} differ", wrong.len()) },
        open: "noise of stochastic rounding: one number for each input".to_owned(),
        holds: wrong.is_empty() && conversions.len() == CONVERSIONS.len(),
    }
}

fn unary_row(bench: &Workbench, floats: &FloatRange) -> EvidenceRow {
    let wrong = unary::differences(bench, floats);
    wrong.iter().for_each(|what| println!("{what}"));
    EvidenceRow {
        claim: "Roundings, conversions, roots and reciprocals are exact for every input".to_owned(),
        method: "executed, and judged by the property that defines each, in 64-bit floats".to_owned(),
        cases: format!("{}, {} instructions of one source", floats.text(), unary::count()),
        result: if wrong.is_empty() { "as defined".to_owned() } else { format!("{} differ", wrong.len()) },
        open: "rounding to nearest, denormals kept; hardware may differ from the nearest root or reciprocal in the last place"
            .to_owned(),
        holds: wrong.is_empty(),
    }
}
