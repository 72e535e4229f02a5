//! The certificate of a rewrite: the data that a checker needs to compare a rewritten code object with its original.
//!
//! It is a note in the rewritten code object (`hotswap-code-object` defines its position), so that it stays with the
//! code object: after `hotswap extract`, in a bundle, for a checker on another machine.
//!
//! Encoding: a version byte, then numbers as ULEB128, texts preceded by their length. Offsets ascend and are stored as
//! differences, so that a site takes a few bytes.
//!
//! Invariants: decoding never panics and rejects anything that encoding does not write; nothing here is trusted, a
//! checker proves it.

use std::fmt;
use std::ops::Range;

/// Version of the encoding.
const VERSION: u8 = 2;

/// The changes to the code of a code object, by offset.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Certificate {
    /// Names of the families that acted; sites refer to them by their number here.
    pub families: Vec<String>,
    /// Assumptions, each once.
    pub assumes: Vec<String>,
    /// Sections of code, by number.
    pub sections: Vec<SectionCertificate>,
}

/// The changes to one section of code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SectionCertificate {
    /// Number in the section table.
    pub number: u32,
    /// Bytes in the original.
    pub old_size: u32,
    /// Bytes in the rewritten file.
    pub new_size: u32,
    /// Changed instructions, ascending by old offset.
    pub sites: Vec<SiteCertificate>,
    /// Points where code moved by another distance than the code before it, ascending by old offset.
    pub runs: Vec<MapRun>,
}

/// One instruction of the original that was replaced.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SiteCertificate {
    /// Its offset in the original.
    pub old: u32,
    pub old_size: u32,
    /// Its replacement, in the rewritten section.
    pub new: Range<u32>,
    /// Families that acted: bit N is number N of [`Certificate::families`].
    pub families: u64,
    /// Registers that are used beyond those of the instruction.
    pub scratch: Vec<ScratchRegisters>,
    /// Those of them that hold a value: it is stored to scratch memory before the replacement and loaded after it.
    pub spilled: Vec<SpilledRegister>,
}

/// A vector register that is spilled around a replacement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct SpilledRegister {
    /// Its number, counted through all banks.
    pub register: u16,
    /// Offset of its dword in the private segment of a work-item, bytes.
    pub slot: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ScratchRegisters {
    /// Vector registers, not scalar ones.
    pub is_vector: bool,
    /// Number of the first; vector registers count through all banks.
    pub first: u16,
    pub count: u16,
}

/// From an old offset on code is at a new one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MapRun {
    /// Offset in the original.
    pub old: u32,
    /// Offset in the rewritten section.
    pub new: u32,
}

/// Bytes that are not a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateError {
    /// Offset of the first byte that cannot be read.
    pub offset: usize,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {:#x} of the certificate cannot be read", self.offset)
    }
}

impl std::error::Error for CertificateError {}

impl Certificate {
    /// The bytes of the note.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let sites: usize = self.sections.iter().map(|section| section.sites.len()).sum();
        let mut out = CertificateWriter(Vec::with_capacity(64 + 8 * sites));
        out.0.push(VERSION);
        out.write_texts(&self.families);
        out.write_texts(&self.assumes);
        out.write_number(self.sections.len() as u64);
        self.sections.iter().for_each(|section| section.write(&mut out));
        out.0
    }

    /// Reads the output of [`Certificate::to_bytes`].
    ///
    /// # Errors
    /// Bytes that it does not write, and unknown versions.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, CertificateError> {
        let mut reader = CertificateReader { bytes, at: 0 };
        if reader.read_byte()? != VERSION {
            return Err(CertificateError { offset: 0 });
        }
        let (families, assumes) = (reader.read_texts()?, reader.read_texts()?);
        let sections = reader.read_list(SectionCertificate::read)?;
        match reader.at == bytes.len() {
            true => Ok(Self { families, assumes, sections }),
            false => Err(CertificateError { offset: reader.at }),
        }
    }

    /// The names of the families of a site.
    pub fn family_names(&self, site: &SiteCertificate) -> Vec<&str> {
        (0..self.families.len())
            .filter(|one| family_bit_set(one, site))
            .map(|number| self.families[number].as_str())
            .collect()
    }
}

fn family_bit_set(number: &usize, site: &SiteCertificate) -> bool {
    site.families.checked_shr(*number as u32).is_some_and(|bits| bits & 1 != 0)
}

impl SectionCertificate {
    fn write(&self, out: &mut CertificateWriter) {
        [self.number, self.old_size, self.new_size].into_iter().for_each(|number| out.write_number(u64::from(number)));
        out.write_number(self.sites.len() as u64);
        let (mut old, mut new) = (0, 0);
        for site in &self.sites {
            out.write_number(u64::from(site.old - old));
            out.write_number(u64::from(site.old_size));
            out.write_difference(new, site.new.start);
            out.write_number(u64::from(site.new.end - site.new.start));
            out.write_number(site.families);
            out.write_number(site.scratch.len() as u64);
            for reg in &site.scratch {
                out.write_number(u64::from(reg.first) << 1 | u64::from(reg.is_vector));
                out.write_number(u64::from(reg.count));
            }
            out.write_number(site.spilled.len() as u64);
            for spilled in &site.spilled {
                out.write_number(u64::from(spilled.register));
                out.write_number(u64::from(spilled.slot));
            }
            (old, new) = (site.old, site.new.end);
        }
        out.write_number(self.runs.len() as u64);
        let (mut old, mut new) = (0, 0);
        for run in &self.runs {
            out.write_number(u64::from(run.old - old));
            out.write_difference(new, run.new);
            (old, new) = (run.old, run.new);
        }
    }

    fn read(reader: &mut CertificateReader<'_>) -> Result<Self, CertificateError> {
        let (number, old_size, new_size) = (reader.read_u32()?, reader.read_u32()?, reader.read_u32()?);
        let (mut old, mut new) = (0_u32, 0_u32);
        let sites = reader.read_list(|reader| {
            let site = SiteCertificate::read(reader, old, new)?;
            (old, new) = (site.old, site.new.end);
            Ok(site)
        })?;
        let (mut old, mut new) = (0_u32, 0_u32);
        let runs = reader.read_list(|reader| {
            old = reader.read_sum(old)?;
            new = reader.read_moved(new)?;
            Ok(MapRun { old, new })
        })?;
        Ok(Self { number, old_size, new_size, sites, runs })
    }
}

impl SiteCertificate {
    fn read(reader: &mut CertificateReader<'_>, old: u32, new: u32) -> Result<Self, CertificateError> {
        let (old, old_size) = (reader.read_sum(old)?, reader.read_u32()?);
        let start = reader.read_moved(new)?;
        let end = reader.read_sum(start)?;
        let families = reader.read_number()?;
        let scratch = reader.read_list(|reader| {
            let first = reader.read_u32()?;
            let is_vector = first & 1 != 0;
            let first = reader.register_number(first >> 1)?;
            let count = reader.read_u32()?;
            Ok(ScratchRegisters { is_vector, first, count: reader.register_number(count)? })
        })?;
        let spilled = reader.read_list(|reader| {
            let register = reader.read_u32()?;
            Ok(SpilledRegister { register: reader.register_number(register)?, slot: reader.read_u32()? })
        })?;
        Ok(Self { old, old_size, new: start..end, families, scratch, spilled })
    }
}

struct CertificateWriter(Vec<u8>);

impl CertificateWriter {
    fn write_number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// A signed difference, the sign in the lowest bit.
    fn write_difference(&mut self, from: u32, to: u32) {
        let difference = i64::from(to) - i64::from(from);
        self.write_number((difference << 1 ^ difference >> 63) as u64);
    }

    fn write_texts(&mut self, texts: &[String]) {
        self.write_number(texts.len() as u64);
        for text in texts {
            self.write_number(text.len() as u64);
            self.0.extend_from_slice(text.as_bytes());
        }
    }
}

struct CertificateReader<'r> {
    bytes: &'r [u8],
    at: usize,
}

impl CertificateReader<'_> {
    fn error_here(&self) -> CertificateError {
        CertificateError { offset: self.at }
    }

    fn read_byte(&mut self) -> Result<u8, CertificateError> {
        let byte = *self.bytes.get(self.at).ok_or_else(|| self.error_here())?;
        self.at += 1;
        Ok(byte)
    }

    fn read_number(&mut self) -> Result<u64, CertificateError> {
        let (mut value, mut shift) = (0_u64, 0);
        loop {
            let byte = self.read_byte()?;
            if shift > 56 && byte > 1 {
                return Err(self.error_here());
            }
            value |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return Ok(value);
            }
        }
    }

    fn read_u32(&mut self) -> Result<u32, CertificateError> {
        let value = self.read_number()?;
        u32::try_from(value).map_err(|_| self.error_here())
    }

    /// A number of a register, or of registers.
    fn register_number(&self, value: u32) -> Result<u16, CertificateError> {
        u16::try_from(value).map_err(|_| self.error_here())
    }

    fn read_sum(&mut self, from: u32) -> Result<u32, CertificateError> {
        let value = self.read_u32()?;
        from.checked_add(value).ok_or_else(|| self.error_here())
    }

    fn read_moved(&mut self, from: u32) -> Result<u32, CertificateError> {
        let value = self.read_number()?;
        let difference = (value >> 1) as i64 ^ -((value & 1) as i64);
        i64::from(from).checked_add(difference).and_then(|to| u32::try_from(to).ok()).ok_or_else(|| self.error_here())
    }

    fn read_list<T>(
        &mut self,
        mut one: impl FnMut(&mut Self) -> Result<T, CertificateError>,
    ) -> Result<Vec<T>, CertificateError> {
        let count = self.read_number()?;
        // Each takes a byte at least.
        if count > (self.bytes.len() - self.at) as u64 {
            return Err(self.error_here());
        }
        (0..count).map(|_| one(self)).collect()
    }

    fn read_texts(&mut self) -> Result<Vec<String>, CertificateError> {
        self.read_list(|reader| {
            let size = reader.read_u32()? as usize;
            let end = reader.at.checked_add(size).ok_or_else(|| reader.error_here())?;
            let text = reader.bytes.get(reader.at..end).ok_or_else(|| reader.error_here())?;
            let text = String::from_utf8(text.to_vec()).map_err(|_| reader.error_here())?;
            reader.at = end;
            Ok(text)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Certificate {
        let scratch = vec![ScratchRegisters { is_vector: true, first: 900, count: 8 }];
        let spilled = vec![SpilledRegister { register: 901, slot: 0x1_0040 }];
        let site = |old, new: Range<u32>| SiteCertificate {
            old,
            old_size: 8,
            new,
            families: 5,
            scratch: scratch.clone(),
            spilled: spilled.clone(),
        };
        let section = SectionCertificate {
            number: 7,
            old_size: 0x1000,
            new_size: 0x2000,
            sites: vec![site(16, 16..40), site(0x800, 0x300..0x308)],
            runs: vec![MapRun { old: 0x100, new: 0x1100 }, MapRun { old: 0x900, new: 0x400 }],
        };
        let families = ["a", "b", "c"].map(str::to_owned).to_vec();
        Certificate { families, assumes: vec!["rounding".to_owned()], sections: vec![section] }
    }

    #[test]
    fn what_was_written_is_read() {
        let bytes = example().to_bytes();
        assert_eq!(Certificate::from_bytes(&bytes), Ok(example()));
        assert_eq!(example().family_names(&example().sections[0].sites[0]), ["a", "c"]);
    }

    #[test]
    fn damaged_bytes_are_an_error_and_never_a_panic() {
        let bytes = example().to_bytes();
        for end in 0..bytes.len() {
            assert!(Certificate::from_bytes(&bytes[..end]).is_err(), "{end}");
        }
        for (at, value) in (0..bytes.len()).flat_map(|at| [0, 0x7f, 0x80, 0xff].map(|value| (at, value))) {
            let mut damaged = bytes.clone();
            damaged[at] = value;
            let _ = Certificate::from_bytes(&damaged);
        }
    }
}
