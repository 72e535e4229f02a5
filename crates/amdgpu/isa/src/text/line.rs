//! One line, by the fast path where there is one.
//!
//! Invariant: the text equals that of [`TextWriter`] for every step.

use super::fixed_writer::FixedWriter;
use super::program::{field_value, line_head, line_of, line_steps, source_number};
use super::registers::RegisterNames;
use super::{PrintOptions, TextWriter};
use crate::inst::Inst;
use crate::isa::Isa;
use crate::number::{NumberBlock, hexadecimal_block};
use crate::operand::OperandReader;
use core::fmt;
use hotswap_isa_tables::{ShortForm, TextStep};

/// The reason why a line is not written.
pub(super) enum LineFailure {
    /// It needs more room.
    Full,
    Label,
}

/// Writes the line of an instruction to the start of `bytes`; returns its length.
#[inline]
pub(super) fn write_line(
    inst: &Inst,
    isa: Isa,
    options: &PrintOptions<'_>,
    bytes: &mut [u8],
) -> Result<usize, LineFailure> {
    let [a, b, c, d, _] = *inst.words();
    let halves = [u64::from(a) | u64::from(b) << 32, u64::from(c) | u64::from(d) << 32];
    let line = line_of(inst.entry());
    let head = line_head(line);
    *bytes.first_chunk_mut().ok_or(LineFailure::Full)? = *head;
    let mut at = usize::from(head[31] & 31);
    let names = RegisterNames::of(isa, options.banks);
    for step in line_steps(line) {
        let half = if step.place & TextStep::SECOND_HALF == 0 { halves[0] } else { halves[1] };
        let guarded = half & step.guard;
        if guarded == 0 {
            match step.form {
                ShortForm::Register => {
                    let number = source_number(step, half);
                    if let Some(name) = names.register_text(number, step) {
                        at = append_step(bytes, at, step, name, usize::from(name[15]))?;
                        continue;
                    }
                    if let Some(block) = literal_text(inst, number, step) {
                        at = append_step(bytes, at, step, &block.letters, block.len)?;
                        continue;
                    }
                }
                ShortForm::Text => {
                    at = append_step(bytes, at, step, &[0; 16], 0)?;
                    continue;
                }
                ShortForm::Hexadecimal => {
                    let block = hexadecimal_block(field_value(step, half));
                    at = append_step(bytes, at, step, &block.letters, block.len)?;
                    continue;
                }
                ShortForm::Nothing => continue,
                ShortForm::NothingIfSet | ShortForm::Long => {}
            }
        } else if step.form == ShortForm::NothingIfSet && guarded == step.guard {
            continue;
        }
        at = write_slowly(inst, isa, options, step, bytes, at)?;
    }
    Ok(at)
}

/// Writes the text of a step and the first `len` of some letters; returns their end.
#[inline(always)]
fn append_step(
    bytes: &mut [u8],
    at: usize,
    step: &TextStep,
    letters: &[u8; 16],
    len: usize,
) -> Result<usize, LineFailure> {
    let place: &mut [u8; 32] = bytes.get_mut(at..).and_then(|rest| rest.first_chunk_mut()).ok_or(LineFailure::Full)?;
    let text = step.text.len();
    *place.first_chunk_mut().ok_or(LineFailure::Full)? = *step.text.letters();
    *place.get_mut(text..).and_then(|rest| rest.first_chunk_mut()).ok_or(LineFailure::Full)? = *letters;
    Ok(at + text + len)
}

/// The number of a source that is a literal.
const LITERAL: u16 = 255;

/// The text of a source that is a literal, if it has a fast path.
#[inline]
fn literal_text(inst: &Inst, number: u16, step: &TextStep) -> Option<NumberBlock<16>> {
    if number & 0x1ff != LITERAL || step.place & TextStep::SIMPLE_LITERAL == 0 {
        return None;
    }
    inst.following_literal().filter(|literal| is_no_constant(*literal)).map(hexadecimal_block)
}

/// Whether no inline constant has the same bits, in any type of 32 or 64 bits. Some literals for which that is true
/// take the slow path: small integers, and everything near the floats from 0.5 to 4.
#[inline]
fn is_no_constant(literal: u32) -> bool {
    let small = literal.wrapping_add(16) <= 80;
    let magnitude = literal & 0x7fff_ffff;
    let round = literal & 0xf_ffff == 0 && (0x3f00_0000..=0x4080_0000).contains(&magnitude);
    !(small || round || literal == 0x3e22_f983)
}

/// Writes a step by the slow path; returns the end of its text.
#[inline(never)]
fn write_slowly(
    inst: &Inst,
    isa: Isa,
    options: &PrintOptions<'_>,
    step: &TextStep,
    bytes: &mut [u8],
    at: usize,
) -> Result<usize, LineFailure> {
    let mut output = FixedWriter { bytes, at, full: false };
    let mut writer = TextWriter { reader: OperandReader::new(*inst, isa), isa, options: *options, out: &mut output };
    match writer.write_step(step) {
        Ok(()) => Ok(output.at),
        Err(fmt::Error) if output.full => Err(LineFailure::Full),
        Err(fmt::Error) => Err(LineFailure::Label),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bank::VgprBanks;
    use crate::{TableEntry, Target, Wave};
    use alloc::string::String;

    /// Writes every step by the slow path.
    fn long_line(inst: &Inst, isa: Isa, options: &PrintOptions<'_>) -> String {
        let mut bytes = [0; 2048];
        let line = line_of(inst.entry());
        bytes[..32].copy_from_slice(line_head(line));
        let mut at = usize::from(line_head(line)[31]);
        for step in line_steps(line) {
            let step = TextStep { form: ShortForm::Long, ..*step };
            let end = write_slowly(inst, isa, options, &step, &mut bytes, at);
            at = end.unwrap_or_else(|_| panic!("{inst:?} needs more than {} bytes", bytes.len()));
        }
        String::from_utf8(bytes[..at].to_vec()).unwrap()
    }

    fn short_line(inst: &Inst, isa: Isa, options: &PrintOptions<'_>) -> String {
        let mut text = String::new();
        inst.write_text(isa, *options, &mut text).unwrap();
        text
    }

    fn random(state: &mut u64) -> u64 {
        *state ^= *state << 13;
        *state ^= *state >> 7;
        *state ^= *state << 17;
        *state
    }

    /// Every entry of every target with random field values, biased towards those with special meanings.
    #[test]
    fn the_short_way_writes_what_the_long_one_writes() {
        let mut state = 0x2545_f491_4f6c_dd1d;
        let mut count = 0;
        let targets = ["gfx900", "gfx908", "gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100", "gfx1200", "gfx1250"];
        for isa in targets.map(|name| Isa::new(Target::find(name).unwrap())) {
            for (isa, entry) in [Wave::W32, Wave::W64].into_iter().flat_map(|wave| {
                let isa = isa.with_wave(wave);
                TableEntry::all_entries().filter(move |entry| entry.available(isa)).map(move |entry| (isa, entry))
            }) {
                let (value, mask) = entry.fixed();
                for round in 0..16 {
                    let mut bits = u128::from(random(&mut state)) << 64 | u128::from(random(&mut state));
                    // Most modifiers are off in real code.
                    if round % 3 > 0 {
                        bits &= u128::from(random(&mut state)) << 64 | u128::from(random(&mut state));
                    }
                    if round % 4 == 3 {
                        bits &= u128::from(random(&mut state)) << 64 | 0x1ff;
                    }
                    if round % 8 == 7 {
                        bits |= 0xff;
                    }
                    let mut bytes = [0; 20];
                    bytes[..16].copy_from_slice(&(bits & !mask | value).to_le_bytes());
                    bytes[16..].copy_from_slice(&(random(&mut state) as u32).to_le_bytes());
                    let Ok(inst) = isa.decode(&bytes) else { continue };
                    let banks = if round % 6 == 5 { VgprBanks::of_mode(0x1b) } else { VgprBanks::ENTRY };
                    let options = PrintOptions { banks, ..PrintOptions::default() };
                    assert_eq!(short_line(&inst, isa, &options), long_line(&inst, isa, &options), "{isa:?} {inst:?}");
                    count += 1;
                }
            }
        }
        assert!(count > 300_000, "{count} lines");
    }

    /// Every register, constant and literal as a source and as a result.
    #[test]
    fn sources_are_all_written_like_the_long_way() {
        for target in Target::all_targets() {
            for wave in [Wave::W32, Wave::W64] {
                let isa = Isa::new(target).with_wave(wave);
                // A move of 32 bits and one of 64 bits, vector and scalar, and a fused multiply-add.
                for number in 0..1u32 << 9 {
                    let words = [
                        0x7e00_0200 | number | (number & 255) << 17,
                        0xbe80_0300 | number & 255 | (number & 127) << 16,
                        0xbe80_0400 | number & 255 | (number & 127) << 16,
                        0xbe80_0000 | number & 255 | (number & 127) << 16,
                        0xbe80_0100 | number & 255 | (number & 127) << 16,
                    ];
                    for (word, literal) in words.into_iter().flat_map(|word| LITERALS.map(|literal| (word, literal))) {
                        let mut bytes = [0; 20];
                        bytes[..4].copy_from_slice(&word.to_le_bytes());
                        bytes[4..8].copy_from_slice(&literal.to_le_bytes());
                        let Ok(inst) = isa.decode(&bytes) else { continue };
                        let options = PrintOptions::default();
                        let long = long_line(&inst, isa, &options);
                        assert_eq!(short_line(&inst, isa, &options), long, "{isa:?} {inst:?}");
                        if number & 255 != 255 {
                            break;
                        }
                    }
                }
            }
        }
    }

    const LITERALS: [u32; 16] = [
        0,
        1,
        64,
        65,
        0xffff_ffff,
        0xffff_fff0,
        0xffff_ffef,
        0x3f00_0000,
        0xbf80_0000,
        0x4080_0000,
        0x3e22_f983,
        0x3fe0_0000,
        0x4010_0000,
        0x3fc4_5f30,
        0x3f10_0000,
        0x1234_5678,
    ];
}
