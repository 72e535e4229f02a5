//! Files of assembly text, assembled by LLVM's assembler.

use super::run_line::Run;
use crate::tools::Tools;
use std::io;

/// Encodings that the assembler prints for a file, and the number of those with open fixups.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Assembled {
    pub encodings: Vec<Vec<u8>>,
    /// Encodings with fixups, whose bytes only a linker knows.
    pub open: usize,
}

/// Assembles a file with the options of one run. Lines that the assembler refuses are skipped.
///
/// # Errors
/// If the assembler cannot be started.
pub fn assemble(tools: &Tools, version: u32, run: &Run, text: &[u8]) -> io::Result<Assembled> {
    let program = format!("llvm-mc-{version}");
    let (triple, cpu) = (format!("-triple={}", run.triple), format!("-mcpu={}", run.cpu));
    let attributes = format!("-mattr={}", run.attributes.join(","));
    let mut words = vec![program.as_str(), "-show-encoding", &triple, &cpu, &attributes];
    words.extend(run.symbols.iter().map(String::as_str));
    let output = tools.run(&words, text)?;
    Ok(encodings(&String::from_utf8_lossy(&output.stdout)))
}

fn encodings(listing: &str) -> Assembled {
    let mut all = Assembled::default();
    for line in listing.lines() {
        let Some((_, list)) = line.split_once("encoding: [") else { continue };
        let list = list.split(']').next().unwrap_or(list);
        match list.split(',').map(parse_encoding_byte).collect() {
            Some(bytes) => all.encodings.push(bytes),
            None => all.open += 1,
        }
    }
    all
}

fn parse_encoding_byte(word: &str) -> Option<u8> {
    u8::from_str_radix(word.trim().strip_prefix("0x")?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_encodings_are_told_from_open_ones() {
        let listing = "\ts_nop 0 ; encoding: [0x00,0x00,0x80,0xbf]\n\ts_branch x ; encoding: [A,A,0x82,0xbf]\n\
                       ;   fixup A - offset: 0, value: x, kind: fixup_si_sopp_br\n.text\n";
        let all = encodings(listing);
        assert_eq!((all.encodings.as_slice(), all.open), ([vec![0, 0, 0x80, 0xbf]].as_slice(), 1));
    }
}
