//! One walk over the code, in which all checks of instructions are evaluated.
//!
//! Everything that depends on the table entry alone is computed at its first occurrence, so that nearly every
//! instruction costs a lookup in a table of bytes, and, where the instructions of the two processors are compared, the
//! second decoding.
//!
//! Invariants: inside of a function, bytes that the source cannot decode are a finding, because then nothing is known
//! about the code. Outside, where there are such bytes, the instruction boundaries are unknown: there every dword is
//! checked as the start of an instruction, and those at which none can begin are counted.

use super::findings::CompatFindings;
use super::same_instructions::{IsaComparison, names_hardware_item};
use super::stretches::{CodeStretch, WaveSizeSet};
use super::{InvalidInstructions, ProcessorPair};
use crate::Check;
use hotswap_isa::{Inst, Isa, Target, Wave};

/// The entry has not been classified yet.
const NEW: u8 = 0;
/// No rule concerns it.
const CLEAN: u8 = 1;
/// A rule concerns it.
const LOOK: u8 = 2;

/// The processors in one wave size.
#[derive(Debug, Clone, Copy)]
struct WaveSizeMode {
    source: Isa,
    compare: Option<IsaComparison>,
}

pub(crate) struct InstructionChecks<'a> {
    rules: Vec<InvalidInstructions>,
    modes: [Option<WaveSizeMode>; 2],
    lines: Vec<u8>,
    pub(crate) instructions: u64,
    pub(crate) opaque: u64,
    pub(crate) findings: CompatFindings<'a>,
}

/// The instructions of `name` are not known.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnknownIsa {
    pub(crate) name: &'static str,
}

fn find_isa(name: &'static str) -> Result<Isa, UnknownIsa> {
    Target::find(name).map(Isa::new).ok_or(UnknownIsa { name })
}

impl<'a> InstructionChecks<'a> {
    /// `compare`: whether the instructions of the two are compared.
    pub(crate) fn new(
        pair: &ProcessorPair,
        rules: Vec<InvalidInstructions>,
        compare: bool,
    ) -> Result<Self, UnknownIsa> {
        let (source, target) = (find_isa(pair.source.processor.name)?, find_isa(pair.target.processor.name)?);
        Ok(Self {
            rules,
            modes: [
                wave_comparison_mode(Wave::W32, &source, &target, compare),
                wave_comparison_mode(Wave::W64, &source, &target, compare),
            ],
            lines: vec![NEW; usize::from(u16::MAX) + 1],
            instructions: 0,
            opaque: 0,
            findings: CompatFindings::default(),
        })
    }

    /// Reads a stretch of `data`, the file, in all its wave sizes.
    pub(crate) fn read_stretch(&mut self, data: &[u8], stretch: &CodeStretch<'a>) {
        let bytes = data.get(stretch.range.clone()).unwrap_or_default();
        for wave in self.waves_of(stretch, bytes).iter() {
            let Some(mode) = self.modes[usize::from(wave == Wave::W64)] else {
                let lanes = if wave == Wave::W64 { 64 } else { 32 };
                self.findings.add(Check::WaveSize, stretch.name, stretch.range.start as u64, None, || {
                    missing_wave_size_reason(lanes)
                });
                continue;
            };
            if stretch.declared {
                self.read_function(&mode, stretch, bytes);
            } else if mode.source.walk(bytes).all(|(_, item)| item.is_ok()) {
                self.instructions_of(&mode, stretch, bytes);
            } else {
                self.scan_dwords(&mode, stretch, bytes);
            }
        }
    }

    /// The wave sizes in which a function is read: where it may run in both and decodes only in one of them, it was
    /// compiled for that one.
    fn waves_of(&self, stretch: &CodeStretch<'a>, bytes: &[u8]) -> WaveSizeSet {
        let [Some(small), Some(large)] = &self.modes else { return stretch.waves };
        if !(stretch.declared && stretch.waves.small && stretch.waves.large) {
            return stretch.waves;
        }
        match (decodes_all_bytes(small, bytes), decodes_all_bytes(large, bytes)) {
            (true, false) => WaveSizeSet::from_lanes(32),
            (false, true) => WaveSizeSet::from_lanes(64),
            _ => stretch.waves,
        }
    }

    fn read_function(&mut self, mode: &WaveSizeMode, stretch: &CodeStretch<'a>, bytes: &[u8]) {
        let mut at = 0;
        while let Some(opaque) = self.instructions_of(mode, stretch, bytes.get(at..).unwrap_or_default()) {
            at += opaque;
            let source = mode.source.target().name;
            self.findings.add(Check::SameInstructions, stretch.name, (stretch.range.start + at) as u64, None, || {
                undecodable_bytes_message(source)
            });
            at += 4;
        }
    }

    /// Checks instructions up to the end or to bytes that do not decode, of which it returns the offset.
    fn instructions_of(&mut self, mode: &WaveSizeMode, stretch: &CodeStretch<'a>, bytes: &[u8]) -> Option<usize> {
        let Some(compare) = &mode.compare else { return self.read_source_only(mode, stretch, bytes) };
        // Both decode in step; where they diverge, the target resumes after the source's instruction.
        let mut other = compare.walk_target(bytes);
        let mut other_start = 0;
        for (offset, item) in mode.source.walk(bytes) {
            let Ok(inst) = item else { return Some(offset) };
            self.instructions += 1;
            let same =
                other.next().is_some_and(|(_, other)| other.is_ok_and(|other| compare.decodings_agree(&inst, &other)));
            if same && self.is_clean(&inst) {
                continue;
            }
            self.check_instruction(mode, stretch, inst, bytes.get(offset..).unwrap_or_default());
            let end = offset + usize::from(inst.len());
            if other_start + other.offset() != end {
                other_start = end;
                other = compare.walk_target(bytes.get(end..).unwrap_or_default());
            }
        }
        None
    }

    /// As [`InstructionChecks::instructions_of`] for the source only.
    fn read_source_only(&mut self, mode: &WaveSizeMode, stretch: &CodeStretch<'a>, bytes: &[u8]) -> Option<usize> {
        for (offset, item) in mode.source.walk(bytes) {
            let Ok(inst) = item else { return Some(offset) };
            self.instructions += 1;
            if !self.is_clean(&inst) {
                self.check_instruction(mode, stretch, inst, bytes.get(offset..).unwrap_or_default());
            }
        }
        None
    }

    #[inline(always)]
    fn is_clean(&self, inst: &Inst) -> bool {
        self.lines.get(usize::from(inst.entry().id())) == Some(&CLEAN)
    }

    /// Checks every dword as the start of an instruction.
    fn scan_dwords(&mut self, mode: &WaveSizeMode, stretch: &CodeStretch<'a>, bytes: &[u8]) {
        for at in (0..bytes.len()).step_by(4) {
            let rest = bytes.get(at..).unwrap_or_default();
            match mode.source.decode(rest) {
                Ok(inst) => self.check_instruction(mode, stretch, inst, rest),
                Err(_) => self.opaque += 1,
            }
        }
    }

    /// Checks an instruction, which is at the start of `rest`, the remainder of the stretch.
    #[inline(never)]
    fn check_instruction(&mut self, mode: &WaveSizeMode, stretch: &CodeStretch<'a>, inst: Inst, rest: &[u8]) {
        let entry = inst.entry();
        let Some(line) = self.lines.get_mut(usize::from(entry.id())) else { return };
        if *line == NEW {
            let concerned = names_hardware_item(entry) || self.rules.iter().any(|rule| (rule.concerns)(entry));
            *line = if concerned { LOOK } else { CLEAN };
        }
        let concerned = *line == LOOK;
        let offset = (stretch.range.end - rest.len()) as u64;
        let mnemonic = Some(inst.mnemonic());
        let fault = mode.compare.and_then(|compare| Some((compare, compare.find_fault(&inst, rest)?)));
        if let Some((compare, fault)) = fault {
            self.findings.add(Check::SameInstructions, stretch.name, offset, mnemonic, || {
                instruction_fault_message(&compare, &inst, &fault)
            });
        }
        if concerned {
            for rule in self.rules.iter().filter(|rule| (rule.concerns)(entry) && (rule.is_invalid)(&inst)) {
                self.findings.add(rule.check, stretch.name, offset, mnemonic, || rule.why.clone());
            }
        }
    }
}

fn wave_comparison_mode(wave: Wave, source: &Isa, target: &Isa, compare: bool) -> Option<WaveSizeMode> {
    let (source, target) = (source.with_wave(wave), target.with_wave(wave));
    // Code in waves of a size that one of them lacks cannot be compared, and is a finding.
    let both = source.wave() == wave && target.wave() == wave;
    both.then(|| WaveSizeMode { source, compare: IsaComparison::new(source, target).filter(|_| compare) })
}

fn missing_wave_size_reason(lanes: i32) -> String {
    format!("waves of {lanes} lanes, which one of the two does not have")
}

fn decodes_all_bytes(mode: &WaveSizeMode, bytes: &[u8]) -> bool {
    mode.source.walk(bytes).all(|(_, item)| item.is_ok())
}

fn undecodable_bytes_message(source: &str) -> String {
    format!("there are bytes in this function that are no instruction of {source}")
}

fn instruction_fault_message(
    compare: &IsaComparison,
    inst: &Inst,
    fault: &super::same_instructions::InstructionFault,
) -> String {
    compare.fault_message(inst, fault)
}

/// The wave sizes of the kernels; all that the source has where it lacks kernels.
pub(crate) fn kernel_wave_sizes(pair: &ProcessorPair, lanes: impl Iterator<Item = u64>) -> WaveSizeSet {
    let of_kernels = lanes.map(WaveSizeSet::from_lanes).reduce(WaveSizeSet::union_with);
    let sizes = of_kernels.or_else(|| {
        let sizes = [32, 64].into_iter().filter(|lanes| pair.source.processor.waves.contains(*lanes));
        sizes.map(WaveSizeSet::from_lanes).reduce(WaveSizeSet::union_with)
    });
    sizes.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dual move, which exists in waves of 32 lanes alone, a move, and a return, of gfx1100.
    const DUAL: [u8; 16] =
        [0x01, 0x01, 0x10, 0xca, 0x02, 0x01, 0x02, 0x00, 0x00, 0x03, 0x08, 0x7e, 0x1e, 0x48, 0x80, 0xbe];

    fn problems(data: &[u8]) -> usize {
        let pair = ProcessorPair { source: "gfx1100".parse().unwrap(), target: "gfx1102".parse().unwrap() };
        let mut reading = InstructionChecks::new(&pair, Vec::new(), true).unwrap();
        let waves = kernel_wave_sizes(&pair, std::iter::empty());
        assert!(waves.small && waves.large, "without kernels both sizes are possible");
        reading.read_stretch(data, &CodeStretch { range: 0..data.len(), name: Some("f"), declared: true, waves });
        reading.findings.into_diagnostics(&pair).len()
    }

    #[test]
    fn functions_of_one_wave_size_are_read_in_that_one() {
        assert_eq!(problems(&DUAL), 0);
        let mut damaged = DUAL;
        // No instruction of either size.
        damaged[8..12].copy_from_slice(&[0xff; 4]);
        assert!(problems(&damaged) > 0);
    }
}
