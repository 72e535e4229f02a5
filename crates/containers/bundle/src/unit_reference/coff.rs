//! A reference to an undefined symbol in a COFF object, for Windows.
//!
//! The section headers follow the file's header, so that all content moves by the size of two more of them; symbols and names are
//! at the end of the file and grow there. Offsets within sections, indices of symbols and of sections stay.
//!
//! Objects of more than 65,279 sections (`/bigobj`) have another header, and symbols with wider numbers of sections; all else is
//! the same.
//!
//! Absent on purpose: 32-bit hosts.

use super::UnitReference;
use crate::bytes::{slice, u16_at, u32_at};
use hotswap_report::{Diagnostic, codes};
use object::{Object, ObjectSection, ObjectSymbol};

const SECTION: usize = 40;
const RELOCATION: usize = 10;
const MACHINE_AMD64: u16 = 0x8664;
const MACHINE_ARM64: u16 = 0xaa64;
const REL_AMD64_ADDR64: u16 = 1;
const REL_ARM64_ADDR64: u16 = 14;
/// `LNK_INFO`, `LNK_REMOVE`, aligned to bytes: linkers leave the section out.
const NOTE_FLAGS: u32 = 0x0010_0a00;
/// Initialised data that is read and written, aligned to 8. No `LNK_COMDAT`: linkers keep the section.
const REFERENCE_FLAGS: u32 = 0xc040_0040;
/// The section with the reference. GNU ld removes unused sections by `--gc-sections` and knows no flag against that, but it keeps
/// those of this name; linkers join what stands before the `$`.
const KEPT_SECTION: &str = ".vectors$hotswap";
/// The storage class `IMAGE_SYM_CLASS_EXTERNAL` of symbols.
const EXTERNAL: u8 = 2;
/// Largest offset of a name that a section header holds in decimal; larger ones are in base 64.
const LARGEST_DECIMAL: usize = 9_999_999;
const BASE64: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The sizes and offsets in which the two forms of an object differ.
struct Form {
    header: usize,
    /// Offsets in the header.
    machine: u64,
    sections: usize,
    symbol_table: usize,
    symbols: usize,
    /// Bytes of the number of sections.
    count_size: usize,
    /// Larger numbers of sections mean something else in symbols.
    most_sections: usize,
    symbol: usize,
    /// Offset of the storage class in a symbol.
    class: usize,
}

const USUAL: Form = Form {
    header: 20,
    machine: 0,
    sections: 2,
    symbol_table: 8,
    symbols: 12,
    count_size: 2,
    most_sections: 65_279,
    symbol: 18,
    class: 16,
};
const BIG: Form = Form {
    header: 56,
    machine: 6,
    sections: 44,
    symbol_table: 48,
    symbols: 52,
    count_size: 4,
    most_sections: 0x7fff_ffff,
    symbol: 20,
    class: 18,
};
/// Begin of a big object: an unknown machine, no number of sections, and version 2.
const BIG_SIGNATURE: [u8; 6] = [0, 0, 0xff, 0xff, 2, 0];
/// The class by which big objects are told from other files of that signature.
const BIG_CLASS: [u8; 16] =
    [0xc7, 0xa1, 0xba, 0xd1, 0xee, 0xba, 0xa9, 0x4b, 0xaf, 0x20, 0xfa, 0xf6, 0x6a, 0xa4, 0xdc, 0xb8];

impl Form {
    /// The form of an object of a known host.
    fn of(bytes: &[u8]) -> Option<&'static Self> {
        let is_big = bytes.starts_with(&BIG_SIGNATURE) && bytes.get(12..28) == Some(&BIG_CLASS[..]);
        let form = if is_big { &BIG } else { &USUAL };
        let machine = u16_at(bytes, form.machine)?;
        (bytes.len() > form.header && [MACHINE_AMD64, MACHINE_ARM64].contains(&machine)).then_some(form)
    }
}

/// Whether it is an object of a known host.
pub(super) fn is_coff(bytes: &[u8]) -> bool {
    Form::of(bytes).is_some()
}

/// The parts of an object.
struct Layout<'a> {
    form: &'static Form,
    machine: u16,
    sections: usize,
    symbols: u32,
    /// End of the section headers.
    content: usize,
    symbol_table: usize,
    names: &'a [u8],
}

fn word_at(object: &[u8], at: usize) -> Option<u32> {
    u32_at(object, at as u64)
}

impl<'a> Layout<'a> {
    /// `None` where the parts are in another order than that of compilers.
    fn read(object: &'a [u8]) -> Option<Self> {
        let form = Form::of(object)?;
        let (symbol_table, symbols) = (word_at(object, form.symbol_table)? as usize, word_at(object, form.symbols)?);
        let is_big = form.count_size == 4;
        let count =
            if is_big { word_at(object, form.sections) } else { u16_at(object, form.sections as u64).map(u32::from) };
        let sections = count? as usize;
        let has_optional_header = !is_big && u16_at(object, 16)? != 0;
        let content = form.header.checked_add(sections.checked_mul(SECTION)?)?;
        let names = symbol_table.checked_add((symbols as usize).checked_mul(form.symbol)?)?;
        let size = word_at(object, names)? as usize;
        let is_usual = !has_optional_header && symbol_table >= content && names.checked_add(size)? == object.len();
        let names = slice(object, names as u64, size as u64)?;
        let machine = u16_at(object, form.machine)?;
        is_usual.then_some(Self { form, machine, sections, symbols, content, symbol_table, names })
    }

    /// A copy of the header with the changed numbers.
    fn changed_header(&self, header: &[u8], symbol_table: usize) -> Option<Vec<u8>> {
        let mut header = header.to_vec();
        let form = self.form;
        let sections = Some(self.sections + 2).filter(|sections| *sections <= form.most_sections)?;
        let sections = u32::try_from(sections).ok()?.to_le_bytes();
        header[form.sections..form.sections + form.count_size].copy_from_slice(&sections[..form.count_size]);
        let symbol_table = u32::try_from(symbol_table).ok()?.to_le_bytes();
        header[form.symbol_table..form.symbol_table + 4].copy_from_slice(&symbol_table);
        header[form.symbols..form.symbols + 4].copy_from_slice(&self.symbols.checked_add(1)?.to_le_bytes());
        Some(header)
    }

    /// A symbol that nothing in the object defines.
    fn undefined_symbol(&self, name: usize) -> Option<Vec<u8>> {
        let mut symbol = vec![0; self.form.symbol];
        symbol[4..8].copy_from_slice(&u32::try_from(name).ok()?.to_le_bytes());
        symbol[self.form.class] = EXTERNAL;
        Some(symbol)
    }
}

/// The object with the reference.
///
/// # Errors
/// [`codes::UNKNOWN_FORMAT`] for an order of its parts that no compiler writes, [`codes::VERIFY_FAILED`].
pub(super) fn add(object: &[u8], reference: &UnitReference<'_>) -> Result<Vec<u8>, Diagnostic> {
    let reference = &UnitReference { section: KEPT_SECTION, ..*reference };
    let made = Layout::read(object).and_then(|layout| extend(object, &layout, reference));
    let made = made.ok_or_else(|| Diagnostic::error(codes::UNKNOWN_FORMAT, "a COFF object with an unusual order"))?;
    if is_right(object, &made, reference) {
        return Ok(made);
    }
    Err(Diagnostic::error(codes::VERIFY_FAILED, "an object with a plan: the reference is not in it"))
}

fn extend(object: &[u8], layout: &Layout<'_>, reference: &UnitReference<'_>) -> Option<Vec<u8>> {
    let moved = 2 * SECTION;
    let mut names = layout.names.to_vec();
    let [note_name, section_name, symbol_name] =
        [reference.note_section, reference.section, reference.symbol].map(|name| add_name(&mut names, name));
    let note_at = layout.symbol_table + moved;
    let reference_at = note_at + reference.note.len();
    let relocation_at = reference_at + 8;
    let symbol_table = relocation_at + RELOCATION;
    let mut made = layout.changed_header(object.get(..layout.content)?, symbol_table)?;
    for section in 0..layout.sections {
        move_offsets(&mut made, layout.form.header + section * SECTION, u32::try_from(moved).ok()?)?;
    }
    let note =
        NewSection { name: note_name, at: note_at, size: reference.note.len(), relocation: None, flags: NOTE_FLAGS };
    made.extend(note.header()?);
    let relocation = Some(relocation_at);
    let section = NewSection { name: section_name, at: reference_at, size: 8, relocation, flags: REFERENCE_FLAGS };
    made.extend(section.header()?);
    made.extend_from_slice(object.get(layout.content..layout.symbol_table)?);
    made.extend_from_slice(reference.note);
    made.extend_from_slice(&[0; 8]);
    let kind = if layout.machine == MACHINE_ARM64 { REL_ARM64_ADDR64 } else { REL_AMD64_ADDR64 };
    made.extend([&0_u32.to_le_bytes()[..], &layout.symbols.to_le_bytes(), &kind.to_le_bytes()].concat());
    made.extend_from_slice(object.get(layout.symbol_table..object.len() - layout.names.len())?);
    made.extend(layout.undefined_symbol(symbol_name)?);
    let size = u32::try_from(names.len()).ok()?;
    names[..4].copy_from_slice(&size.to_le_bytes());
    made.extend(names);
    Some(made)
}

/// The name of a section as an offset in the table of names.
fn name_field(offset: usize) -> [u8; 8] {
    let mut field = *b"//AAAAAA";
    if offset > LARGEST_DECIMAL {
        let digits = field[2..].iter_mut().rev();
        digits.enumerate().for_each(|(place, digit)| *digit = BASE64[offset >> (6 * place) & 0x3f]);
        return field;
    }
    field = [0; 8];
    let text = format!("/{offset}");
    field[..text.len()].copy_from_slice(text.as_bytes());
    field
}

/// Appends a name to the table; returns its offset.
fn add_name(names: &mut Vec<u8>, name: &str) -> usize {
    let offset = names.len();
    names.extend_from_slice(name.as_bytes());
    names.push(0);
    offset
}

/// Moves the offsets of a section's data, relocations and line numbers.
fn move_offsets(bytes: &mut [u8], header: usize, by: u32) -> Option<()> {
    for field in [20, 24, 28] {
        let at = header + field;
        let offset = u32_at(bytes, at as u64)?;
        if offset != 0 {
            bytes[at..at + 4].copy_from_slice(&offset.checked_add(by)?.to_le_bytes());
        }
    }
    Some(())
}

struct NewSection {
    /// Offset of its name.
    name: usize,
    at: usize,
    size: usize,
    /// The place of its relocation.
    relocation: Option<usize>,
    flags: u32,
}

impl NewSection {
    fn header(&self) -> Option<Vec<u8>> {
        let mut header = name_field(self.name).to_vec();
        let relocation = self.relocation.unwrap_or_default();
        for value in [0, 0, self.size, self.at, relocation, 0] {
            header.extend_from_slice(&u32::try_from(value).ok()?.to_le_bytes());
        }
        header.extend_from_slice(&u16::from(self.relocation.is_some()).to_le_bytes());
        header.extend_from_slice(&[0; 2]);
        header.extend_from_slice(&self.flags.to_le_bytes());
        Some(header)
    }
}

/// Another reader finds the old sections and symbols as they were, and the reference.
pub(super) fn is_right(old: &[u8], new: &[u8], reference: &UnitReference<'_>) -> bool {
    let (Ok(before), Ok(after)) = (object::File::parse(old), object::File::parse(new)) else { return false };
    let is_kept = before.sections().zip(after.sections()).all(|(before, after)| {
        before.name() == after.name()
            && before.data() == after.data()
            && before.relocations().count() == after.relocations().count()
    });
    let symbols = before.symbols().zip(after.symbols());
    let is_named = symbols.into_iter().all(|(before, after)| before.name() == after.name());
    let note = after.section_by_name(reference.note_section).and_then(|section| section.data().ok());
    let target = after.section_by_name(KEPT_SECTION).and_then(|section| section.relocations().next());
    let symbol = target.and_then(|(_, relocation)| match relocation.target() {
        object::RelocationTarget::Symbol(index) => after.symbol_by_index(index).ok(),
        _ => None,
    });
    let is_undefined = symbol.is_some_and(|symbol| symbol.is_undefined() && symbol.name() == Ok(reference.symbol));
    let is_longer = after.sections().count() == before.sections().count() + 2;
    is_kept && is_named && is_longer && note == Some(reference.note) && is_undefined
}

#[cfg(test)]
mod tests {
    use super::*;
    use object::write;
    use object::{Architecture, BinaryFormat, Endianness, SectionKind};

    const REFERENCE: UnitReference<'_> =
        UnitReference { note_section: ".note.plan", note: b"a plan", section: "unit_reference", symbol: "__needed" };

    /// An object with that many sections, and a symbol in the last one.
    fn sample(sections: usize) -> Vec<u8> {
        let mut object = write::Object::new(BinaryFormat::Coff, Architecture::X86_64, Endianness::Little);
        for number in 0..sections {
            let id = object.add_section(Vec::new(), format!(".text${number}").into_bytes(), SectionKind::Text);
            object.append_section_data(id, &[0x90; 3], 1);
            if number + 1 == sections {
                object.add_symbol(write::Symbol {
                    name: b"function".to_vec(),
                    value: 0,
                    size: 3,
                    kind: object::SymbolKind::Text,
                    scope: object::SymbolScope::Linkage,
                    weak: false,
                    section: write::SymbolSection::Section(id),
                    flags: object::SymbolFlags::None,
                });
            }
        }
        object.write().unwrap()
    }

    /// The same object in the form for many sections.
    fn widened(object: &[u8]) -> Vec<u8> {
        let moved = BIG.header - USUAL.header;
        let layout = Layout::read(object).unwrap();
        let mut headers = object[USUAL.header..layout.content].to_vec();
        (0..layout.sections).for_each(|section| move_offsets(&mut headers, section * SECTION, moved as u32).unwrap());
        let mut made = [&BIG_SIGNATURE[..], &object[..2], &object[4..8], &BIG_CLASS, &[0; 16]].concat();
        for word in [layout.sections as u32, (layout.symbol_table + moved) as u32, layout.symbols] {
            made.extend_from_slice(&word.to_le_bytes());
        }
        made.extend([&headers, &object[layout.content..layout.symbol_table]].concat());
        let end = object.len() - layout.names.len();
        for symbol in object[layout.symbol_table..end].chunks(USUAL.symbol) {
            assert_eq!(symbol[17], 0, "a symbol with further records");
            let sign = if symbol[13] & 0x80 == 0 { 0 } else { 0xff };
            made.extend([&symbol[..14], &[sign; 2], &symbol[14..]].concat());
        }
        made.extend_from_slice(layout.names);
        made
    }

    #[test]
    fn objects_for_many_sections_get_the_reference() {
        let object = widened(&sample(2));
        assert!(matches!(object::File::parse(&object[..]).unwrap(), object::File::CoffBig(_)));
        let made = add(&object, &REFERENCE).unwrap();
        let file = object::File::parse(&made[..]).unwrap();
        let undefined = file.symbols().filter(|symbol| symbol.is_undefined()).map(|symbol| symbol.name().unwrap());
        assert_eq!(undefined.collect::<Vec<_>>(), ["__needed"]);
        assert_eq!(file.section_by_name(".note.plan").unwrap().data().unwrap(), b"a plan");
        for at in 0..object.len() {
            let mut damaged = object.clone();
            damaged[at] ^= 0xff;
            let _ = add(&damaged, &REFERENCE);
            let _ = add(&object[..at], &REFERENCE);
        }
    }

    #[test]
    fn an_object_that_would_have_too_many_sections_is_refused() {
        assert!(add(&sample(65_277), &REFERENCE).is_ok());
        assert!(add(&sample(65_278), &REFERENCE).is_err());
        assert!(add(&widened(&sample(65_278)), &REFERENCE).is_ok());
    }

    #[test]
    fn names_far_in_the_table_are_written_in_base_64() {
        assert_eq!(name_field(4), *b"/4\0\0\0\0\0\0");
        assert_eq!(name_field(9_999_999), *b"/9999999");
        // As LLVM's `encodeSectionName` writes it.
        assert_eq!(name_field(10_000_000), *b"//AAmJaA");
    }
}
