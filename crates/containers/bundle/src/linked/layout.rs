//! The position of each bundle, decided before a byte is written.

use super::edit::offset_of;
use super::own_segment::{MIN_ZEROS, OwnSegment};
use super::pointers::{self, WrapperPointer};
use super::program::LinkedProgram;
use super::shrink::ShrinkPlan;
use super::{BundleReplacement, no_place};
use crate::bytes::{align_up, malformed_at, u16_at, u64_at};
use crate::draft::DraftContent;
use crate::elf::{MAX_ALIGNMENT, SHF_TLS, SHT_NOBITS, SHT_SYMTAB, SYMBOL, SectionHeader};
use crate::fatbin::{bundle_size, next_start};
use crate::host_object::SECTION;
use hotswap_report::{Diagnostic, codes};
use object::elf::{SHT_DYNSYM, STT_SECTION};

/// The alignment that HIP's loaders expect of a bundle's address.
const ALIGNMENT: u64 = 4096;
/// `.bss` becomes zeros in the file when the section moves after it in the same segment; more is refused.
const MAX_ZEROS: u64 = 16 << 20;

/// The change of the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SectionChange {
    /// Each bundle in its slot.
    Slots,
    /// The bundles consecutively in the old place.
    Within,
    /// The section at the end of the last segment, at its old address where it is there already; or in a segment of its own.
    Moved,
}

/// A bundle with its old and its new position.
#[derive(Debug, Clone)]
pub(super) struct MovedBundle<'a> {
    pub(super) old_address: u64,
    pub(super) address: u64,
    pub(super) content: DraftContent<'a, 'a>,
}

/// A symbol that names a bundle.
#[derive(Debug)]
pub(super) struct BundleSymbol {
    /// Offset of its entry in the file.
    pub(super) at: u64,
    /// Index of the piece.
    pub(super) piece: usize,
}

/// A pointer to a bundle that may move.
#[derive(Debug)]
pub(super) struct PlannedPointer {
    pub(super) pointer: WrapperPointer,
    /// The index of its piece.
    pub(super) piece: usize,
}

#[derive(Debug)]
pub(super) struct LinkedPlan<'a> {
    /// Index of the section.
    pub(super) index: usize,
    pub(super) mode: SectionChange,
    pub(super) pieces: Vec<MovedBundle<'a>>,
    /// Empty in [`SectionChange::Slots`].
    pub(super) pointers: Vec<PlannedPointer>,
    pub(super) symbols: Vec<BundleSymbol>,
    /// The part that is removed from the file; not in [`Mode::Slots`].
    pub(super) cut: Option<ShrinkPlan>,
    /// The new segment, for a section that moves into one.
    pub(super) own: Option<OwnSegment>,
}

impl<'a> LinkedPlan<'a> {
    pub(super) fn plan_layout(
        program: &LinkedProgram<'a>,
        exchanges: &'a [BundleReplacement<'a>],
    ) -> Result<Self, Diagnostic> {
        let (index, section) = section_of(program, exchanges)?;
        let slots = bundle_slots(program, &section)?;
        for exchange in exchanges {
            let count = exchanges.iter().filter(|other| other.offset == exchange.offset).count();
            if count > 1 || !slots.iter().any(|slot| section.offset + slot.start == exchange.offset) {
                let what =
                    format!("no bundle, or one that is named twice, at offset {:#x} of the file", exchange.offset);
                return Err(Diagnostic::error(codes::NOT_FOUND, what).in_entry(SECTION));
            }
        }
        let pieces: Vec<_> = slots.iter().map(|slot| slot.moved_bundle(program, &section, exchanges)).collect();
        let mut plan = Self::in_slots(index, pieces);
        if !slots.iter().zip(&plan.pieces).all(fits_bundle_slot) {
            plan.displace_bundles(program, &section)?;
        } else if plan.end_address() > 0 {
            plan.compact_slots(program, &section);
        }
        Ok(plan)
    }

    fn in_slots(index: usize, pieces: Vec<MovedBundle<'a>>) -> Self {
        let (pointers, symbols) = (Vec::new(), Vec::new());
        Self { index, mode: SectionChange::Slots, pieces, pointers, symbols, cut: None, own: None }
    }

    /// Removes the free space that the bundles leave in their slots, where that is possible.
    fn compact_slots(&mut self, program: &LinkedProgram<'_>, section: &SectionHeader) {
        let mut smaller = Self::in_slots(self.index, self.pieces.clone());
        // Bundles that cannot move stay in their slots, which is valid.
        if smaller.displace_bundles(program, section).is_ok() && smaller.cut.is_some() {
            *self = smaller;
        }
    }

    /// Places the bundles consecutively, in the section or where there is space.
    fn displace_bundles(&mut self, program: &LinkedProgram<'_>, section: &SectionHeader) -> Result<(), Diagnostic> {
        let alignment = section.alignment.max(ALIGNMENT);
        if !alignment.is_power_of_two() || alignment > MAX_ALIGNMENT {
            return Err(malformed_at(format!("the section's alignment is {alignment}"), section.header));
        }
        self.mode = SectionChange::Within;
        // An address that is not aligned is kept: the linker chose it.
        if place_bundles(&mut self.pieces, section.address, alignment)? > section.address + section.size {
            self.mode = SectionChange::Moved;
            let place = end_of_program(program, section, alignment)?;
            place_bundles(&mut self.pieces, place.address, alignment)?;
            if place.address != section.address {
                // A page is kept for the old section, so that none is empty.
                self.cut = ShrinkPlan::plan_cut(program, self.index, section.address + ALIGNMENT);
            }
            if let Some(mut own) = place.own {
                own.place(program, self).ok_or_else(oversized_program_error)?;
                self.own = Some(own);
            }
        } else {
            self.cut = ShrinkPlan::plan_cut(program, self.index, self.end_address());
        }
        self.find_pointers(program, section)?;
        self.find_symbols(program)
    }

    /// The offset in the new file of a byte of the old one, before the last segment grows.
    pub(super) fn lowered_offset(&self, offset: u64) -> u64 {
        self.cut.as_ref().map_or(offset, |cut| cut.moved_offset(offset))
    }

    /// The offset in the new file of an address of the old program, or of the moved section.
    pub(super) fn offset_in_result(&self, program: &LinkedProgram<'_>, address: u64) -> u64 {
        match &self.own {
            Some(own) if address >= own.address => own.offset + (address - own.address),
            _ => self.lowered_offset(offset_of(program, address)),
        }
    }

    pub(super) fn end_address(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.address + piece.content.size()).max().unwrap_or_default()
    }

    fn piece_at(&self, address: u64) -> Option<usize> {
        self.pieces.iter().position(|piece| piece.old_address == address)
    }

    /// Every bundle needs a wrapper, and every wrapper a bundle.
    fn find_pointers(&mut self, program: &LinkedProgram<'_>, section: &SectionHeader) -> Result<(), Diagnostic> {
        let range = section.address..section.address + section.size;
        for pointer in pointers::pointers_into(program, &range)? {
            let to = pointer.to;
            let piece = self.piece_at(to);
            let piece =
                piece.ok_or_else(|| no_place(format!("a wrapper points to {to:#x}, where no bundle begins")))?;
            self.pointers.push(PlannedPointer { pointer, piece });
        }
        match (0..self.pieces.len()).find(|index| !has_piece_wrapper(*index, &self.pointers)) {
            None => Ok(()),
            Some(index) => {
                let at = self.pieces[index].old_address;
                Err(no_place(format!("no wrapper points to the bundle at address {at:#x}, so it cannot move")))
            }
        }
    }

    fn find_symbols(&mut self, program: &LinkedProgram<'_>) -> Result<(), Diagnostic> {
        let tables = program.sections.all.iter().filter(|section| matches!(section.kind, SHT_SYMTAB | SHT_DYNSYM));
        for table in tables {
            let content = table
                .content(program.bytes)
                .ok_or_else(|| malformed_at("a symbol table leaves the file", table.offset))?;
            for number in 0..content.len() as u64 / SYMBOL {
                let at = table.offset + number * SYMBOL;
                let is_section = program.bytes.get(at as usize + 4).is_some_and(|info| info & 15 == STT_SECTION);
                if u16_at(program.bytes, at + 6).map(usize::from) != Some(self.index) || is_section {
                    continue;
                }
                let value = u64_at(program.bytes, at + 8).unwrap_or_default();
                let piece = self.piece_at(value);
                let piece =
                    piece.ok_or_else(|| no_place(format!("symbol {number} is a part of it (at {value:#x})")))?;
                self.symbols.push(BundleSymbol { at, piece });
            }
        }
        Ok(())
    }
}

fn fits_bundle_slot((slot, piece): (&BundleSlot, &MovedBundle<'_>)) -> bool {
    piece.content.size() <= slot.end - slot.start
}

fn has_piece_wrapper(index: usize, pointers: &[PlannedPointer]) -> bool {
    pointers.iter().any(|planned| planned.piece == index)
}

/// A bundle and the space up to the next one; offsets in the section.
struct BundleSlot {
    start: u64,
    size: u64,
    end: u64,
}

impl BundleSlot {
    fn moved_bundle<'a>(
        &self,
        program: &LinkedProgram<'a>,
        section: &SectionHeader,
        exchanges: &'a [BundleReplacement<'a>],
    ) -> MovedBundle<'a> {
        let old = &program.section_content(section)[self.start as usize..(self.start + self.size) as usize];
        let exchange = exchanges.iter().find(|exchange| exchange.offset == section.offset + self.start);
        let address = section.address + self.start;
        MovedBundle {
            old_address: address,
            address,
            content: exchange.map_or(DraftContent::Old(old), |exchange| DraftContent::New(&exchange.new)),
        }
    }
}

/// The section that holds all bundles to replace.
fn section_of(
    program: &LinkedProgram<'_>,
    exchanges: &[BundleReplacement<'_>],
) -> Result<(usize, SectionHeader), Diagnostic> {
    let mut sections = program.sections.all.iter().enumerate();
    let found = sections.find(|(_, section)| {
        program.is_named(section, SECTION)
            && exchanges.iter().all(|exchange| section_holds_offset(section, exchange.offset))
    });
    let (index, section) =
        found.ok_or_else(|| Diagnostic::error(codes::NOT_FOUND, "no .hip_fatbin holds those bundles"))?;
    let is_true = program.offset_of(section.address, section.size) == Some(section.offset);
    if !section.is_loaded() || !is_true {
        return Err(malformed_at("the section is not where its segment says", section.header));
    }
    Ok((index, *section))
}

fn section_holds_offset(section: &SectionHeader, offset: u64) -> bool {
    section.file_range().contains(&offset)
}

fn bundle_slots(program: &LinkedProgram<'_>, section: &SectionHeader) -> Result<Vec<BundleSlot>, Diagnostic> {
    let content = program.section_content(section);
    let mut slots: Vec<BundleSlot> = Vec::new();
    let mut at = 0;
    while let Some(start) = next_start(content, at).map_err(|error| error.in_entry(SECTION))? {
        let size = bundle_size(&content[start..]).map_err(|error| error.in_entry(SECTION))?;
        if let Some(last) = slots.last_mut() {
            last.end = start as u64;
        }
        slots.push(BundleSlot { start: start as u64, size: size as u64, end: section.size });
        at = start + size;
    }
    Ok(slots)
}

/// Places the bundles consecutively; returns the end of the last one.
fn place_bundles(pieces: &mut [MovedBundle<'_>], start: u64, alignment: u64) -> Result<u64, Diagnostic> {
    let mut end = start;
    for (number, piece) in pieces.iter_mut().enumerate() {
        piece.address =
            if number == 0 { start } else { align_up(end, alignment).ok_or_else(oversized_program_error)? };
        end = piece.address.checked_add(piece.content.size()).ok_or_else(oversized_program_error)?;
    }
    Ok(end)
}

fn oversized_program_error() -> Diagnostic {
    no_place("the program would be larger than its address space")
}

/// The place of a section that moves.
struct NewPlace {
    address: u64,
    own: Option<OwnSegment>,
}

/// The place after everything that is loaded: at the end of the last segment, or in a segment of its own where `.bss` would become
/// zeros in the file.
fn end_of_program(
    program: &LinkedProgram<'_>,
    section: &SectionHeader,
    alignment: u64,
) -> Result<NewPlace, Diagnostic> {
    let last = program.loads.last().ok_or_else(|| malformed_at("nothing is loaded", 32))?;
    let end = last.address + last.memory_size;
    if section.address + section.size == end && last.file_size == last.memory_size {
        return Ok(NewPlace { address: section.address, own: None });
    }
    let sections = program.sections.all.iter().filter(|one| ends_after_program(one, end));
    if sections.into_iter().any(|section| !is_thread_local_section(section)) {
        let what = "a loaded section behind the last segment is in no segment, as editors of ELF files leave it: its place is taken";
        return Err(no_place(what).advise("retarget the file as it was before it was edited, or before the host link"));
    }
    let zeros = last.memory_size - last.file_size;
    let own = if zeros > MIN_ZEROS { OwnSegment::plan(program, end, alignment) } else { None };
    if let Some(own) = own {
        return Ok(NewPlace { address: own.address, own: Some(own) });
    }
    let tail = last.offset + last.file_size;
    if program.loads.iter().any(|load| load.offset + load.file_size > tail) {
        return Err(no_place("the segment with the highest address is not the last one in the file"));
    }
    if zeros > MAX_ZEROS {
        let what = format!(
            "{zeros} bytes of zeros (.bss) would have to be in the file before it, and no program header is free for a segment of its own"
        );
        let advice = "compress the fat binaries, so that more fits in their place (`--compress`), or retarget before the host link";
        return Err(no_place(what).advise(advice));
    }
    let address = align_up(end, alignment).ok_or_else(oversized_program_error)?;
    Ok(NewPlace { address, own: None })
}

fn is_thread_local_section(section: &SectionHeader) -> bool {
    section.flags & SHF_TLS != 0 && section.kind == SHT_NOBITS
}

fn ends_after_program(section: &&SectionHeader, end: u64) -> bool {
    section.is_loaded() && section.address >= end && section.size > 0
}
