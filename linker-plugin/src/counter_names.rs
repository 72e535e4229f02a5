//! Clang 22: the counter names of each source get a symbol of their own, so that several sources link.
//!
//! That clang calls them `__llvm_prf_nm` everywhere, with external linkage in device code, which the linker of
//! relocatable device code refuses from the second source on. No reference uses the symbol's name. Bitcode has all
//! names in one blob at its end (`STRTAB_BLOCK`, into which the module and the linker's own symbol table point), so the
//! symbol is renamed in a copy, keeping the length.
//!
//! Layout: LLVM's Bitcode File Format, "Bitstream Container"; blocks of the top level have abbreviations of two bits.
//! Absent: device objects that are machine code (no clang makes them of relocatable device code), thin archives.

use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsStr;
use std::ops::Range;
use std::path::Path;

const NAME: &[u8] = b"__llvm_prf_nm";
/// The prefix of the new name, followed by a number of four digits of base 36.
const START: &[u8] = b"__prf_nm_";
const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyz";
const BITCODE: &[u8] = b"BC\xc0\xde";
const ARCHIVE: &[u8] = b"!<arch>\n";
const STRTAB_BLOCK: u32 = 23;

/// Numbers the sources of one link.
#[derive(Debug, Default)]
pub(crate) struct Renamer {
    next: usize,
}

impl Renamer {
    /// The input with its symbols renamed; `None` where it lacks them, or is not such an input.
    ///
    /// # Errors
    /// [`codes::COUNTERS_NOT_LINKED`] where the bytes of the name are ambiguous.
    pub(crate) fn apart(&mut self, word: &OsStr) -> Result<Option<Vec<u8>>, Diagnostic> {
        let path = Path::new(word);
        if !reads::is_regular(path)? {
            return Ok(None);
        }
        let mut bytes = hotswap_files::open_input(path)?.to_vec();
        let members =
            if bytes.starts_with(ARCHIVE) { members(&bytes) } else { std::iter::once(0..bytes.len()).collect() };
        let mut renamed = false;
        for range in members {
            let member = bytes.get_mut(range).unwrap_or_default();
            renamed |= self.rename(member).map_err(|error| error.in_file(path))?;
        }
        Ok(renamed.then_some(bytes))
    }

    fn rename(&mut self, module: &mut [u8]) -> Result<bool, Diagnostic> {
        let mut places = Vec::new();
        for range in string_tables(module) {
            let table = module.get(range.clone()).unwrap_or_default();
            let windows = table.windows(NAME.len()).enumerate();
            places.extend(windows.filter(|(_, window)| *window == NAME).map(|(at, _)| range.start + at));
        }
        match places[..] {
            [] => Ok(false),
            [place] => {
                let name = self.name();
                module[place..place + NAME.len()].copy_from_slice(&name);
                Ok(true)
            }
            _ => {
                let what = "several symbols of this bitcode hold __llvm_prf_nm, the name that clang 22 gives to the names of counters";
                Err(Diagnostic::error(codes::COUNTERS_NOT_LINKED, what)
                    .advise("rename the symbol of the source that does"))
            }
        }
    }

    fn name(&mut self) -> Vec<u8> {
        let number = self.next;
        self.next += 1;
        let digits = [3, 2, 1, 0].map(|place| DIGITS[number / 36usize.pow(place) % 36]);
        [START, &digits].concat()
    }
}

/// The ranges of a module's string tables; none if it is not bitcode.
fn string_tables(module: &[u8]) -> Vec<Range<usize>> {
    let mut tables = Vec::new();
    if !module.starts_with(BITCODE) {
        return tables;
    }
    let mut at = BITCODE.len();
    // ENTER_SUBBLOCK (two bits: 1), the block's number (eight bits), the abbreviation width (four), padding; dwords.
    while let (Some(head), Some(words)) = (module_word_at(at, module), module_word_at(at + 4, module)) {
        if head & 3 != 1 {
            break;
        }
        let start = at + 8;
        let Some(end) = (words as usize).checked_mul(4).and_then(|size| start.checked_add(size)) else { break };
        if (head >> 2) & 0xff == STRTAB_BLOCK {
            tables.push(start..end.min(module.len()));
        }
        at = end;
    }
    tables
}

fn module_word_at(at: usize, module: &[u8]) -> Option<u32> {
    module.get(at..at + 4).and_then(|word| word.try_into().ok()).map(u32::from_le_bytes)
}

/// The ranges of an archive's members.
fn members(bytes: &[u8]) -> Vec<Range<usize>> {
    const HEADER: usize = 60;
    let mut members = Vec::new();
    let mut at = ARCHIVE.len();
    while let Some(header) = bytes.get(at..at + HEADER) {
        let size = std::str::from_utf8(&header[48..58]).ok().and_then(|size| size.trim_end().parse::<usize>().ok());
        let start = at + HEADER;
        let Some(end) = size.and_then(|size| start.checked_add(size)).filter(|end| *end <= bytes.len()) else { break };
        members.push(start..end);
        at = end + end % 2;
    }
    members
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A block of that number.
    fn block(number: u32, content: &[u8]) -> Vec<u8> {
        assert_eq!(content.len() % 4, 0);
        let head = 1 | (number << 2) | (3 << 10);
        [&head.to_le_bytes()[..], &(content.len() as u32 / 4).to_le_bytes(), content].concat()
    }

    fn module(table: &[u8]) -> Vec<u8> {
        [BITCODE, &block(13, b"LLVM"), &block(8, b"..__llvm_prf_nm."), &block(STRTAB_BLOCK, table)].concat()
    }

    fn apart(bytes: &[u8]) -> Result<Option<Vec<u8>>, Diagnostic> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.o");
        std::fs::write(&path, bytes).unwrap();
        Renamer { next: 37 }.apart(path.as_os_str())
    }

    #[test]
    fn only_the_symbol_is_renamed() {
        let input = module(b"main__llvm_prf_nmfoo");
        assert_eq!(apart(&input).unwrap(), Some(module(b"main__prf_nm_0011foo")));
        assert_eq!(apart(&module(b"mainfoo.")).unwrap(), None);
        assert_eq!(apart(b"\x7fELF __llvm_prf_nm").unwrap(), None);
        assert_eq!(apart(&input[..20]).unwrap(), None);
    }

    #[test]
    fn each_member_of_an_archive_gets_a_name() {
        let member = |text: &[u8]| {
            let data = module(text);
            [format!("{:<48}{:<10}`\n", "a.o/", data.len()).as_bytes(), &data].concat()
        };
        let archive = |one: &[u8], two: &[u8]| [ARCHIVE, &member(one), &member(two)].concat();
        let renamed = archive(b"__prf_nm_0011...", b"__prf_nm_0012...");
        assert_eq!(apart(&archive(b"__llvm_prf_nm...", b"__llvm_prf_nm...")).unwrap(), Some(renamed));
    }

    #[test]
    fn what_cannot_be_told_apart_is_refused() {
        let error = apart(&module(b"__llvm_prf_nmmy__llvm_prf_nm.__.")).unwrap_err();
        assert_eq!(error.code, codes::COUNTERS_NOT_LINKED);
    }
}
