//! Units whose host code is bitcode (`-flto`): their plan and their reference are assembly of the module, which every LTO carries
//! into the object that it makes. Their device code is in the module's constants.
//!
//! Absent on purpose: bundles of the old offload driver, which clang itself cannot link with `-flto`.

use super::UnitReference;
use hotswap_code_object::bitcode::{constants_with, is_bitcode, module_assembly, with_assembly};

/// Begin of an offload binary.
const OFFLOAD_BINARY: &[u8] = b"\x10\xff\x10\xad";

/// The parts of a unit that the driver reads.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BitcodeUnit {
    /// The offload binaries with its device code.
    pub offload_binaries: Vec<Vec<u8>>,
    /// The explanation of its reference; empty without one.
    pub note: String,
    /// The symbol that it refers to.
    pub symbol: Option<String>,
}

/// Reads host code in bitcode; `None` where the file is another one or cannot be read.
pub fn read_bitcode_unit(bytes: &[u8], note_section: &str, section: &str) -> Option<BitcodeUnit> {
    if !is_bitcode(bytes) {
        return None;
    }
    let offload_binaries = constants_with(bytes, OFFLOAD_BINARY)?;
    let assembly = module_assembly(bytes)?;
    let (mut note, mut symbol, mut current) = (String::new(), None, "");
    for line in assembly.lines() {
        if let Some(rest) = line.strip_prefix(".section ") {
            current = rest.split(',').next().unwrap_or_default();
        } else if let Some(text) = line.strip_prefix(".ascii \"").and_then(|text| text.strip_suffix('"'))
            && current == note_section
        {
            note += &text.replace("\\n", "\n");
        } else if let Some(name) = line.strip_prefix(".quad ")
            && current == section
        {
            symbol = Some(name.to_owned());
        }
    }
    Some(BitcodeUnit { offload_binaries, note, symbol })
}

/// The module with the reference; `None` where it cannot be read.
pub(super) fn add(module: &[u8], reference: &UnitReference<'_>) -> Option<Vec<u8>> {
    let note = std::str::from_utf8(reference.note).ok()?;
    // Canonical plans have neither; the assembler would read them as something else.
    if note.contains(['"', '\\']) {
        return None;
    }
    let lines = format!(
        ".section {},\"e\"\n.ascii \"{}\"\n.section {},\"awR\"\n.balign 8\n.quad {}\n.hidden {}\n.text\n",
        reference.note_section,
        note.replace('\n', "\\n"),
        reference.section,
        reference.symbol,
        reference.symbol
    );
    let made = with_assembly(module, &lines)?;
    let read = read_bitcode_unit(&made, reference.note_section, reference.section)?;
    (read.note == note && read.symbol.as_deref() == Some(reference.symbol)).then_some(made)
}
