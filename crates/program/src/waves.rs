//! Wave sizes, function by function, of a section that holds code in both.
//!
//! A link of separately compiled objects may join kernels of 32 and of 64 lanes. Instructions exist in one size only
//! (dual instructions), or have operands of another size (masks of lanes), so each function is decoded in its own.
//! Evidence, the strongest first: a kernel's descriptor; bytes that decode in one size alone; the size as which code
//! writes the mask of lanes; the callers. Without any, a function has the section's size, as [`CodeSource::isa`] says.
//!
//! Invariants: a section of one size has no list, and costs nothing. Functions of both sizes are found by two passes over
//! the same names, and each is taken from the pass of its size; calls lead to the function at the same offset.
//!
//! Absent on purpose: functions that kernels of both sizes call. They hold nothing that depends on the size, or are wrong.

use crate::calls::Callee;
use crate::cfg::builder;
use crate::function::Function;
use crate::ops::Ops;
use crate::source::{CodeSource, MarkKind};
use hotswap_isa::reg::Special;
use hotswap_isa::{Inst, Isa, Value, Wave};
use std::collections::BTreeMap;

/// The wave size of the code from an offset on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FunctionWave {
    /// Offset of a function.
    pub offset: u32,
    /// Its size; `None` if nothing states it.
    pub wave: Option<Wave>,
}

/// The sizes.
const WAVES: [Wave; 2] = [Wave::W32, Wave::W64];

/// The wave size of so many lanes.
fn wave_of_lanes(lanes: u8) -> Wave {
    if lanes == 64 { Wave::W64 } else { Wave::W32 }
}

/// The instructions of code, one after the other, up to the first bytes that are none.
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
    instructions(bytes, isa).find_map(|inst| {
        let name = inst.mnemonic();
        if name.contains("saveexec") {
            return Some(if name.ends_with("_b32") { 32 } else { 64 });
        }
        let mut operands = inst.operands(isa);
        let first = operands.next().map(|operand| operand.value);
        match first {
            Some(Value::Reg(reg)) if reg.as_special() == Some(Special::ExecLo) && name.starts_with("s_") => {
                Some(if reg.count == 2 { 64 } else { 32 })
            }
            _ => None,
        }
    })
}

/// The size that the bytes of a function state.
fn wave_of_bytes(bytes: &[u8], isa: Isa) -> Option<Wave> {
    let decodes = WAVES.map(|wave| isa.with_wave(wave).walk(bytes).all(|(_, inst)| inst.is_ok()));
    match decodes {
        [true, false] => Some(Wave::W32),
        [false, true] => Some(Wave::W64),
        // The pass that stops at bytes of the other size has seen less.
        _ => WAVES.iter().find_map(|wave| mask_lanes(bytes, isa.with_wave(*wave))).map(wave_of_lanes),
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

    /// The sizes of the functions of a section with kernels of both: as descriptors and bytes state them.
    pub(crate) fn stated_waves(&self) -> Vec<FunctionWave> {
        let lanes = |kind: &MarkKind| match kind {
            MarkKind::Kernel(needs) => Some(wave_of_lanes(needs.lanes)),
            _ => None,
        };
        let kernels: Vec<Wave> = self.marks.iter().filter_map(|mark| lanes(&mark.kind)).collect();
        if WAVES.iter().any(|wave| !kernels.contains(wave)) {
            return Vec::new();
        }
        let mut stated: BTreeMap<u32, Option<Wave>> = BTreeMap::new();
        let code = |kind: &MarkKind| matches!(kind, MarkKind::Kernel(_) | MarkKind::Function);
        for mark in self.marks.iter().filter(|mark| code(&mark.kind)) {
            let range = mark.offset as usize..mark.offset.saturating_add(mark.size) as usize;
            let bytes = self.bytes.get(range).filter(|bytes| !bytes.is_empty());
            let own = || bytes.and_then(|bytes| wave_of_bytes(bytes, self.isa));
            let known = stated.entry(mark.offset).or_default();
            *known = lanes(&mark.kind).or(*known).or_else(own);
        }
        stated.into_iter().map(|(offset, wave)| FunctionWave { offset, wave }).collect()
    }
}

/// The functions of a section with code in both sizes, each in its own. Sizes that only callers state are added to the
/// source.
pub(crate) fn functions(source: &mut CodeSource<'_>, ops: &Ops, offsets: Option<&[u32]>) -> Vec<Function> {
    let passes = WAVES.map(|wave| {
        let isa = source.isa.with_wave(wave);
        builder::functions(&CodeSource { isa, waves: Vec::new(), ..source.clone() }, ops, offsets)
    });
    add_callers(source, &passes);
    let mut functions: Vec<Function> = Vec::new();
    let mut numbers: [Vec<Option<u32>>; 2] = [Vec::new(), Vec::new()];
    let own = |source: &CodeSource<'_>, start: u32| usize::from(source.isa_at(start).wave() == Wave::W64);
    let starts = passes.each_ref().map(|pass| pass.iter().map(|function| function.start).collect::<Vec<u32>>());
    for (number, pass) in passes.into_iter().enumerate() {
        functions.extend(pass.into_iter().filter(|function| own(source, function.start) == number));
    }
    functions.sort_by_key(|function| function.start);
    for (number, starts) in starts.iter().enumerate() {
        let found = |start: &u32| functions.binary_search_by_key(start, |function| function.start).ok();
        numbers[number] = starts.iter().map(|start| found(start).map(|number| number as u32)).collect();
    }
    for function in &mut functions {
        let numbers = &numbers[own(source, function.start)];
        for call in &mut function.calls {
            if let Callee::Function { function, entry } = call.callee {
                let moved = numbers.get(function as usize).copied().flatten();
                call.callee = moved.map_or(Callee::Unknown, |function| Callee::Function { function, entry });
            }
        }
    }
    functions
}

/// Gives functions without a size that of a caller, until nothing is added.
fn add_callers(source: &mut CodeSource<'_>, passes: &[Vec<Function>; 2]) {
    loop {
        let mut added = Vec::new();
        for (wave, pass) in WAVES.into_iter().zip(passes) {
            let is_own = |start: u32| {
                let row = source.waves.binary_search_by_key(&start, |row| row.offset);
                row.is_ok_and(|row| source.waves[row].wave == Some(wave))
            };
            for function in pass.iter().filter(|function| is_own(function.start)) {
                for call in &function.calls {
                    if let Callee::Function { entry, .. } = call.callee {
                        added.push(FunctionWave { offset: entry, wave: Some(wave) });
                    }
                }
            }
        }
        let before: usize = source.waves.iter().filter(|row| row.wave.is_some()).count();
        for row in added {
            match source.waves.binary_search_by_key(&row.offset, |known| known.offset) {
                Ok(number) => source.waves[number].wave = source.waves[number].wave.or(row.wave),
                Err(number) => source.waves.insert(number, row),
            }
        }
        if source.waves.iter().filter(|row| row.wave.is_some()).count() == before {
            return;
        }
    }
}
