//! `layouts.isa`.

use super::line::{Lines, LogicalLine, join};
use super::{KnownNames, RowError, bits};
use crate::model::{BitRun, EncodingField, EncodingLayout, Model};

const HEADER: &str = "\
# Layouts of encodings: fields and their positions.
#
#   NAME CLASS SIZE [op=BITS] [BITS=DIGITS…] [FIELD=BITS…]
#
# SIZE is in bits, without literals. BITS are runs of instruction bits (`3`, `0..7`), separated by commas, lowest
# value bit first; `4:8..11` says that the run begins with value bit 4. DIGITS are the fixed bits, highest first.
# Bits that are not named do not matter.

";

/// Writes the file.
pub(super) fn write(model: &Model) -> String {
    let mut text = HEADER.to_owned();
    for layout in &model.layouts {
        let mut words = vec![layout.name.clone(), layout.class.clone(), layout.bits.to_string()];
        if !layout.opcode.is_empty() {
            words.push(format!("op={}", bits::pieces(&layout.opcode)));
        }
        words.extend(fixed_words(layout));
        words.extend(layout.fields.iter().map(|field| format!("{}={}", field.name, bits::pieces(&field.pieces))));
        text += &join(words);
    }
    text
}

fn fixed_words(layout: &EncodingLayout) -> Vec<String> {
    let mut words = Vec::new();
    let mut at = 0_u32;
    while at < 128 {
        let width = (layout.fixed_mask >> at).trailing_ones().min(128 - at);
        if width == 0 {
            at += 1;
            continue;
        }
        let bit = |index: u32| if layout.fixed_value >> index & 1 == 1 { '1' } else { '0' };
        let digits: String = (at..at + width).rev().map(bit).collect();
        let run = bits::range(u8::try_from(at).unwrap_or(0), u8::try_from(width).unwrap_or(0));
        words.push(format!("{run}={digits}"));
        at += width;
    }
    words
}

/// Reads the file.
pub(super) fn read(lines: &mut Lines<'_>, names: &mut KnownNames, model: &mut Model) -> Result<(), RowError> {
    while let Some(mut line) = lines.next()? {
        let layout = parse_layout_line(&mut line)?;
        let width = layout.opcode.iter().map(|piece| u32::from(piece.width)).sum();
        if names.layouts.insert(layout.name.clone(), width).is_some() {
            return Err(line.error(format!("layout {} exists twice", layout.name)));
        }
        model.layouts.push(layout);
    }
    Ok(())
}

fn parse_layout_line(line: &mut LogicalLine<'_>) -> Result<EncodingLayout, RowError> {
    let name = line.word("the name")?.to_owned();
    let class = line.word("the class")?.to_owned();
    let size: u8 = line.number("the size")?;
    if !matches!(size, 32 | 64 | 96 | 128) {
        return Err(line.error(format!("no encoding has {size} bits")));
    }
    let (opcode, fields) = (Vec::new(), Vec::new());
    let mut layout = EncodingLayout { name, class, bits: size, opcode, fixed_mask: 0, fixed_value: 0, fields };
    while let Some(word) = line.next() {
        part(word, &mut layout).ok_or_else(|| line.error(format!("not a field, fixed bits or opcode: {word}")))?;
    }
    check(&layout).map_err(|what| line.error(what))?;
    Ok(layout)
}

fn part(word: &str, layout: &mut EncodingLayout) -> Option<()> {
    let (name, value) = word.split_once('=')?;
    if name == "op" {
        if !layout.opcode.is_empty() {
            return None;
        }
        layout.opcode = bits::parse(value)?;
    } else if name.starts_with(|c: char| c.is_ascii_digit()) {
        let BitRun { at, width } = bits::parse_range(name)?;
        if value.len() != usize::from(width) || value.contains(|c| c != '0' && c != '1') {
            return None;
        }
        let mask = (u128::MAX >> (128 - u32::from(width))) << at;
        if layout.fixed_mask & mask != 0 {
            return None;
        }
        layout.fixed_mask |= mask;
        layout.fixed_value |= u128::from_str_radix(value, 2).ok()? << at;
    } else {
        layout.fields.push(EncodingField { name: name.to_owned(), pieces: bits::parse(value)? });
    }
    Some(())
}

fn check(layout: &EncodingLayout) -> Result<(), String> {
    let mut used = layout.fixed_mask;
    let opcode = [("op", &layout.opcode)];
    for (name, pieces) in opcode.into_iter().chain(layout.fields.iter().map(|f| (f.name.as_str(), &f.pieces))) {
        let mask = bits::mask(pieces).ok_or_else(|| format!("bits of {name} overlap"))?;
        if mask & used != 0 {
            return Err(format!("bits of {name} are used twice"));
        }
        used |= mask;
    }
    if layout.bits < 128 && used >> layout.bits != 0 {
        return Err(format!("bits beyond {}", layout.bits));
    }
    let mut names: Vec<&str> = layout.fields.iter().map(|field| field.name.as_str()).collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("field {} exists twice", pair[0])),
        None => Ok(()),
    }
}
