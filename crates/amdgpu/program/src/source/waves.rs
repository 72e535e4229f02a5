//! Wave sizes, function by function, of a section that holds code in both.
//!
//! A link of separately compiled objects may join kernels of 32 and of 64 lanes. Instructions exist in one size only
//! (dual instructions), or have operands of another size (masks of lanes), so each function is decoded in its own.
//! Evidence, the strongest first: a kernel's descriptor; bytes that decode in one size alone; the size as which code
//! writes the mask of lanes, or combines results of comparisons; the callers, which `crate::waves` adds. Without any, the size of a
//! function is unknown, and it is decoded in the section's: that of the file's kernels, else the one that code shows.
//!
//! Invariants: a section of one size lacks a list. On processors with one size nothing is read.

use super::vote_lanes::comparison_lanes;
use super::{CodeSource, MarkKind, SectionSymbol};
use hotswap_isa::reg::Special;
use hotswap_isa::{Inst, Isa, OperandValue, Wave};
use std::collections::BTreeMap;

/// The wave size of the code from an offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionWave {
    /// Offset of a function.
    pub offset: u32,
    /// Its size; `None` if nothing states it.
    pub wave: Option<Wave>,
}

pub(crate) const WAVES: [Wave; 2] = [Wave::W32, Wave::W64];

/// The wave size of so many lanes.
pub(super) fn wave_of_lanes(lanes: u8) -> Wave {
    if lanes == 64 { Wave::W64 } else { Wave::W32 }
}

/// The instructions of code, one after the other, up to the first bytes that are not an instruction.
pub fn instructions(bytes: &[u8], isa: Isa) -> impl Iterator<Item = Inst> + '_ {
    let mut at = 0;
    std::iter::from_fn(move || {
        let inst = isa.decode(bytes.get(at..).filter(|rest| !rest.is_empty())?).ok()?;
        at += usize::from(inst.len());
        Some(inst)
    })
}

/// Lanes of the waves that code was compiled for, as its instructions write the mask of lanes: 32 bits or 64.
#[must_use]
pub fn mask_lanes(bytes: &[u8], isa: Isa) -> Option<u8> {
    instructions(bytes, isa).find_map(|inst| mask_lanes_of(&inst, isa))
}

/// Lanes of the mask that an instruction writes.
fn mask_lanes_of(inst: &Inst, isa: Isa) -> Option<u8> {
    let name = inst.mnemonic();
    if name.contains("saveexec") {
        return Some(if name.ends_with("_b32") { 32 } else { 64 });
    }
    let mut operands = inst.operands(isa);
    match operands.next().map(|operand| operand.value) {
        Some(OperandValue::Reg(reg)) if reg.as_special() == Some(Special::ExecLo) && name.starts_with("s_") => {
            Some(if reg.count == 2 { 64 } else { 32 })
        }
        _ => None,
    }
}

/// Lanes of the waves that code was compiled for, by whatever in it depends on them; `None` for code that is the same in both sizes, and
/// for processors that have one.
#[must_use]
pub fn code_lanes(bytes: &[u8], isa: Isa) -> Option<u8> {
    let [small, large] = WAVES.map(|wave| isa.with_wave(wave));
    let wave = if small.wave() == large.wave() { None } else { wave_of_bytes(bytes, isa) };
    wave.map(|wave| if wave == Wave::W64 { 64 } else { 32 })
}

/// The size that the bytes of a function state.
fn wave_of_bytes(bytes: &[u8], isa: Isa) -> Option<Wave> {
    let decodes = WAVES.map(|wave| isa.with_wave(wave).walk(bytes).all(|(_, inst)| inst.is_ok()));
    match decodes {
        [true, false] => Some(Wave::W32),
        [false, true] => Some(Wave::W64),
        // The pass that stops at bytes of the other size has seen less.
        _ => {
            let masks = WAVES.iter().find_map(|wave| mask_lanes(bytes, isa.with_wave(*wave)));
            masks.or_else(|| comparison_lanes(bytes, isa)).map(wave_of_lanes)
        }
    }
}

impl CodeSource<'_> {
    /// The instruction set of the code at an offset, with the wave size of its function.
    #[must_use]
    pub fn isa_at(&self, offset: u32) -> Isa {
        if self.waves.is_empty() {
            return self.isa;
        }
        self.stated_wave(offset).map_or(self.isa, |wave| self.isa.with_wave(wave))
    }

    fn stated_wave(&self, offset: u32) -> Option<Wave> {
        let before = self.waves.partition_point(|row| row.offset <= offset).checked_sub(1)?;
        self.waves.get(before)?.wave
    }

    /// Lanes of the waves of the code at an offset, in a section with code of both sizes; `None` if nothing states them.
    #[must_use]
    pub fn stated_lanes(&self, offset: u32) -> Option<u8> {
        self.stated_wave(offset).map(|wave| if wave == Wave::W64 { 64 } else { 32 })
    }

    /// Sets the wave size of the section, and those of its functions where one of them differs. `kernels` are the sizes of the file's
    /// kernels: a file has one size unless it was joined from two.
    pub(crate) fn state_waves(&mut self, kernels: Vec<Wave>) {
        if WAVES.iter().any(|wave| self.isa.with_wave(*wave).wave() != *wave) {
            return;
        }
        if let Some(usual) = kernels.last() {
            self.isa = self.isa.with_wave(*usual);
        }
        let is_usual_known = kernels.len() == 1;
        // Descriptors have said all that there is.
        if is_usual_known && self.marks.iter().all(|mark| !matches!(mark.kind, MarkKind::Function)) {
            return;
        }
        let functions = self.function_waves(is_usual_known);
        let stated: Vec<Wave> = functions.iter().filter_map(|row| row.wave).collect();
        // Without kernels the code alone shows its size.
        if let Some(first) = stated.first().filter(|_| kernels.is_empty()) {
            self.isa = self.isa.with_wave(*first);
        }
        if stated.iter().any(|wave| *wave != self.isa.wave()) {
            self.waves = functions;
        }
    }

    /// The sizes of functions, as descriptors and bytes state them. Where the usual size is known, bytes of that size need not be told
    /// from those that are the same in both.
    fn function_waves(&self, is_usual_known: bool) -> Vec<FunctionWave> {
        let mut stated: BTreeMap<u32, Option<Wave>> = BTreeMap::new();
        for mark in self.marks.iter().filter(|mark| is_executable_mark(&mark.kind)) {
            let known = stated.entry(mark.offset).or_default();
            *known = kernel_stated_wave(&mark.kind).or(*known).or_else(|| self.wave_of_mark(mark, is_usual_known));
        }
        stated.into_iter().map(|(offset, wave)| FunctionWave { offset, wave }).collect()
    }

    fn wave_of_mark(&self, mark: &SectionSymbol<'_>, is_usual_known: bool) -> Option<Wave> {
        let range = mark.offset as usize..mark.offset.saturating_add(mark.size) as usize;
        let bytes = self.bytes.get(range).filter(|bytes| !bytes.is_empty())?;
        if is_usual_known { other_wave(bytes, self.isa) } else { wave_of_bytes(bytes, self.isa) }
    }
}

/// The other size, where code shows it. Most code shows the usual one early, and the rest of it is not read.
fn other_wave(bytes: &[u8], usual: Isa) -> Option<Wave> {
    for (_, inst) in usual.walk(bytes) {
        let Ok(inst) = inst else { return wave_of_bytes(bytes, usual) };
        match mask_lanes_of(&inst, usual).map(wave_of_lanes) {
            Some(wave) if wave == usual.wave() => return None,
            Some(_) => return wave_of_bytes(bytes, usual),
            None => {}
        }
    }
    comparison_lanes(bytes, usual).map(wave_of_lanes)
}

fn kernel_stated_wave(kind: &MarkKind) -> Option<Wave> {
    match kind {
        MarkKind::Kernel(needs) => Some(wave_of_lanes(needs.lanes)),
        _ => None,
    }
}

fn is_executable_mark(kind: &MarkKind) -> bool {
    matches!(kind, MarkKind::Kernel(_) | MarkKind::Function)
}
