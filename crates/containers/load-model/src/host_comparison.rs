//! Whether two host programs are the same but for their fat binaries, as builds of one source for different GPUs are.
//!
//! A fat binary of another size moves sections, so addresses are compared as section and offset: those that relocations make,
//! those in instructions, and those of symbols. Everything else is compared byte by byte.
//!
//! Invariant: where a difference cannot be explained by the place of a section, the programs count as different.
//!
//! Absent on purpose: call frame tables, which are differences of addresses; programs for other machines than x86-64 whose sections
//! moved.

use crate::address_space::{AddressSpace, NamedSection, PointerValue};
use hotswap_report::{Diagnostic, codes};
use iced_x86::{Decoder, DecoderOptions, Instruction, OpKind};
use std::ops::Range;

const FATBIN: &str = ".hip_fatbin";
/// Sections whose content follows from that of others and from their places.
const DERIVED: &[&str] = &[
    FATBIN,
    ".note.gnu.build-id",
    ".eh_frame",
    ".eh_frame_hdr",
    ".dynamic",
    ".dynsym",
    ".gnu.hash",
    ".hash",
    ".rela.dyn",
    ".rela.plt",
    ".relr.dyn",
];

/// An address by its section.
#[derive(Debug, PartialEq, Eq)]
enum HostAddress<'s> {
    /// Somewhere in the fat binaries.
    Fatbin,
    Section(&'s str, u64),
    Elsewhere(u64),
}

/// Requires that both files are the same program or library but for their fat binaries.
///
/// # Errors
/// [`codes::UNKNOWN_FORMAT`] for files that are not linked ELF programs; [`codes::HOSTS_DIFFER`] with the first section that differs.
pub fn compare_hosts(one: &[u8], other: &[u8]) -> Result<(), Diagnostic> {
    HostComparison { one: read_address_space(one)?, other: read_address_space(other)? }.run()
}

fn read_address_space(file: &[u8]) -> Result<AddressSpace<'_>, Diagnostic> {
    let what = "it is not a linked ELF program or library";
    AddressSpace::read(file)?.ok_or_else(|| Diagnostic::error(codes::UNKNOWN_FORMAT, what))
}

struct HostComparison<'a> {
    one: AddressSpace<'a>,
    other: AddressSpace<'a>,
}

fn section_names(sections: &[&NamedSection]) -> Vec<String> {
    sections.iter().map(|section| section.name.clone()).collect()
}

fn hosts_differ(section: &str, what: &str) -> Diagnostic {
    Diagnostic::error(codes::HOSTS_DIFFER, what).in_entry(section)
}

impl HostComparison<'_> {
    fn run(&self) -> Result<(), Diagnostic> {
        if self.one.machine != self.other.machine {
            return Err(hosts_differ("ELF header", "they are for different machines"));
        }
        let (names, others) = (self.one.loaded_sections(), self.other.loaded_sections());
        if section_names(&names) != section_names(&others) {
            let missing = names.iter().find(|section| !others.iter().any(|other| other.name == section.name));
            return Err(hosts_differ(
                missing.map_or("sections", |section| &section.name),
                "one of them has other sections",
            ));
        }
        for (section, other) in names.iter().zip(&others) {
            self.compare_section(&section.name, &section.addresses, &other.addresses)?;
        }
        self.compare_symbols()
    }

    fn compare_section(&self, name: &str, one: &Range<u64>, other: &Range<u64>) -> Result<(), Diagnostic> {
        if DERIVED.contains(&name) {
            return Ok(());
        }
        if one.end - one.start != other.end - other.start {
            return Err(hosts_differ(name, "the section has another size"));
        }
        match self.one.is_code(one.start) && self.one.machine == object::elf::EM_X86_64 {
            true => self.compare_code(name, one, other),
            false => self.compare_data(name, one, other),
        }
    }

    fn compare_code(&self, name: &str, one: &Range<u64>, other: &Range<u64>) -> Result<(), Diagnostic> {
        let (first, second) = (decode_x86_instructions(&self.one, one), decode_x86_instructions(&self.other, other));
        if first.len() != second.len() {
            return Err(hosts_differ(name, "the code differs"));
        }
        for (first, second) in first.into_iter().zip(second) {
            if !self.is_same_instruction(first, second) {
                return Err(hosts_differ(name, &format!("the code differs at {:#x}", first.ip() - one.start)));
            }
        }
        Ok(())
    }

    fn is_same_instruction(&self, mut one: Instruction, mut other: Instruction) -> bool {
        if one.is_ip_rel_memory_operand() && other.is_ip_rel_memory_operand() {
            let (first, second) = (one.ip_rel_memory_address(), other.ip_rel_memory_address());
            if self.one.location_of(first) != self.other.location_of(second) {
                return false;
            }
            one.set_memory_displacement64(0);
            other.set_memory_displacement64(0);
        }
        if one.op0_kind() == OpKind::NearBranch64 && other.op0_kind() == OpKind::NearBranch64 {
            let (first, second) = (one.near_branch64(), other.near_branch64());
            if self.one.location_of(first) != self.other.location_of(second) {
                return false;
            }
            one.set_near_branch64(0);
            other.set_near_branch64(0);
        }
        one == other
    }

    fn compare_data(&self, name: &str, one: &Range<u64>, other: &Range<u64>) -> Result<(), Diagnostic> {
        let relocated = relative_slots(&self.one, one);
        if relocated != relative_slots(&self.other, other) {
            return Err(hosts_differ(name, "other words of the section are addresses"));
        }
        let (mut first, mut second) =
            (self.one.mapped_content(one.clone()).to_vec(), self.other.mapped_content(other.clone()).to_vec());
        for slot in relocated {
            let pointers = (self.one.pointer_at(one.start + slot), self.other.pointer_at(other.start + slot));
            let is_same = match &pointers {
                (PointerValue::Address(to), PointerValue::Address(also)) => {
                    self.one.location_of(*to) == self.other.location_of(*also)
                }
                (one, other) => one == other,
            };
            if !is_same {
                return Err(hosts_differ(name, &format!("the address at {slot:#x} is another one")));
            }
            for bytes in [&mut first, &mut second] {
                let end = bytes.len().min(slot as usize + 8);
                bytes.get_mut(slot as usize..end).into_iter().flatten().for_each(|byte| *byte = 0);
            }
        }
        // The first words of the table of offsets are the address of the dynamic table, and the loader's own.
        let start = if matches!(name, ".got.plt" | ".got") { 8.min(first.len()) } else { 0 };
        match first[start..] == second[start..] {
            true => Ok(()),
            false => Err(hosts_differ(name, "the content differs")),
        }
    }

    fn compare_symbols(&self) -> Result<(), Diagnostic> {
        let (one, other) = (self.one.dynamic_symbols()?, self.other.dynamic_symbols()?);
        for (first, second) in one.iter().zip(&other) {
            let is_there = self.one.location_of(first.address) == self.other.location_of(second.address);
            if first.name != second.name || !is_there {
                return Err(hosts_differ(".dynsym", &format!("the symbol {} is another one", first.name)));
            }
        }
        if one.len() == other.len() { Ok(()) } else { Err(hosts_differ(".dynsym", "they export other symbols")) }
    }
}

fn relative_slots(space: &AddressSpace<'_>, range: &Range<u64>) -> Vec<u64> {
    space.relocated_words(range).map(|address| address - range.start).collect::<Vec<_>>()
}

fn decode_x86_instructions(space: &AddressSpace<'_>, range: &Range<u64>) -> Vec<Instruction> {
    let bytes = space.mapped_content(range.clone());
    Decoder::with_ip(64, bytes, range.start, DecoderOptions::NONE).into_iter().collect::<Vec<Instruction>>()
}

impl AddressSpace<'_> {
    fn location_of(&self, address: u64) -> HostAddress<'_> {
        match self.section_around(address) {
            Some(section) if section.name == FATBIN => HostAddress::Fatbin,
            Some(section) => HostAddress::Section(&section.name, address - section.addresses.start),
            None => HostAddress::Elsewhere(address),
        }
    }
}
