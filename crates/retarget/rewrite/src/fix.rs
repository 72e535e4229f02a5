//! Maps old places of the whole file to new ones.

use crate::inputs::SectionContent;
use crate::map::OffsetRemap;
use crate::plan::CodePlan;
use hotswap_code_object::ObjectKind;
use hotswap_code_object::image::{ImageLayout, ObjectImage};

/// A place in a section of the old file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SectionOffset {
    pub(crate) section: usize,
    pub(crate) offset: u64,
}

/// Old offsets of a section that was encoded again: pairs of places, sorted; bytes in between move
/// with the pair before.
#[derive(Debug, Clone, Default)]
pub(crate) struct OffsetRuns(Vec<OffsetPair>);

/// The old and the new offset of the same bytes.
#[derive(Debug, Clone, Copy, Default)]
struct OffsetPair {
    old: u64,
    new: u64,
}

/// No offset in a section changes.
static UNMOVED: OffsetRuns = OffsetRuns(Vec::new());

impl OffsetRuns {
    /// Records the new position of old bytes; without effect where they move like those before.
    pub(crate) fn push(&mut self, old: u64, new: u64) {
        if !self.0.last().is_some_and(|one| one.moves_with(old, new)) {
            self.0.push(OffsetPair { old, new });
        }
    }

    /// The new position of old bytes.
    pub(crate) fn new_offset(&self, old: u64) -> u64 {
        let count = self.0.partition_point(|pair| pair.old <= old);
        let pair = count.checked_sub(1).and_then(|last| self.0.get(last)).copied().unwrap_or_default();
        pair.new + (old - pair.old)
    }
}

impl OffsetPair {
    fn moves_with(&self, old: u64, new: u64) -> bool {
        new.wrapping_sub(self.new) == old.wrapping_sub(self.old)
    }
}

/// A section with new content that is not code.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReplacedContent {
    pub(crate) bytes: Vec<u8>,
    pub(crate) chunks: OffsetRuns,
}

/// Such a section by its number.
pub(crate) struct ReplacedSection {
    pub(crate) section: usize,
    pub(crate) content: ReplacedContent,
}

/// The mapping inside of a section.
pub(crate) enum SectionMapping<'m> {
    Same,
    Code(&'m OffsetRemap),
    OffsetRuns(&'m OffsetRuns),
}

/// The mappings of all sections.
pub(crate) struct SectionMaps<'m> {
    pub(crate) inside: Vec<SectionMapping<'m>>,
}

impl<'m> SectionMaps<'m> {
    pub(crate) fn new(image: &ObjectImage<'_>, plans: &'m [CodePlan<'_>]) -> Self {
        let mut inside: Vec<SectionMapping<'m>> = image.sections.iter().map(|_| SectionMapping::Same).collect();
        for plan in plans.iter().filter(|plan| !plan.map.is_identity()) {
            inside[plan.section] = SectionMapping::Code(&plan.map);
        }
        Self { inside }
    }

    /// Adds sections that were encoded again, and those for which the caller has new bytes.
    pub(crate) fn with_replaced(mut self, replaced: &'m [ReplacedSection], contents: &[SectionContent<'_>]) -> Self {
        let chunks = replaced.iter().map(|one| (&one.section, &one.content.chunks));
        for (section, chunks) in chunks.chain(contents.iter().map(|content| (&content.section, &UNMOVED))) {
            self.inside[*section] = SectionMapping::OffsetRuns(chunks);
        }
        self
    }

    /// The new start of the bytes that follow the place.
    pub(crate) fn new_start(&self, place: SectionOffset) -> Option<u64> {
        match &self.inside[place.section] {
            SectionMapping::Same => Some(place.offset),
            SectionMapping::Code(map) => map.new_start(place.offset),
            SectionMapping::OffsetRuns(chunks) => Some(chunks.new_offset(place.offset)),
        }
    }

    /// The same; if the bytes were removed, the position of their replacement.
    pub(crate) fn start_or_replacement(&self, place: SectionOffset) -> Option<u64> {
        match &self.inside[place.section] {
            SectionMapping::Code(map) => map.start_or_replacement(place.offset),
            _ => self.new_start(place),
        }
    }

    /// The new end of the bytes that precede the place.
    pub(crate) fn new_end(&self, place: SectionOffset) -> Option<u64> {
        match &self.inside[place.section] {
            SectionMapping::Code(map) => map.new_end(place.offset),
            _ => self.new_start(place),
        }
    }

    /// The new position of the bytes of the place, if `size` of them are still together.
    pub(crate) fn new_bytes(&self, place: SectionOffset, size: u64) -> Option<u64> {
        match &self.inside[place.section] {
            SectionMapping::Code(map) => map.new_bytes(place.offset).filter(|_| map.is_whole(place.offset, size)),
            _ => self.new_start(place),
        }
    }

    /// Whether places of the section move relative to each other.
    pub(crate) fn moves_places(&self, section: usize) -> bool {
        !matches!(self.inside[section], SectionMapping::Same)
    }
}

/// A field of the new file: computed on all cores, and written when all are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldPatch {
    pub(crate) at: usize,
    pub(crate) size: u8,
    pub(crate) value: u64,
}

impl FieldPatch {
    pub(crate) fn write(self, out: &mut [u8]) {
        let size = usize::from(self.size);
        out[self.at..self.at + size].copy_from_slice(&self.value.to_le_bytes()[..size]);
    }
}

/// Old and new file.
pub(crate) struct LayoutContext<'w> {
    pub(crate) image: &'w ObjectImage<'w>,
    pub(crate) layout: &'w ImageLayout,
    pub(crate) maps: &'w SectionMaps<'w>,
}

impl LayoutContext<'_> {
    /// Base of old values: addresses in a linked file, offsets in a relocatable one.
    pub(crate) fn base_address(&self, section: usize) -> u64 {
        self.image.sections[section].address
    }

    pub(crate) fn is_linked(&self) -> bool {
        self.image.kind == ObjectKind::Linked
    }

    /// The new value of a place that is a start.
    pub(crate) fn start_address(&self, place: SectionOffset) -> Option<u64> {
        Some(self.layout.addresses[place.section] + self.maps.new_start(place)?)
    }

    /// The new value of a place that is an end.
    pub(crate) fn end_address(&self, place: SectionOffset) -> Option<u64> {
        Some(self.layout.addresses[place.section] + self.maps.new_end(place)?)
    }

    /// The place that an old value in a section denotes; `None` outside of it.
    pub(crate) fn place_in_section(&self, section: usize, value: u64) -> Option<SectionOffset> {
        let offset = value.checked_sub(self.base_address(section))?;
        (offset <= self.image.sections[section].size).then_some(SectionOffset { section, offset })
    }

    /// The place that an address of a linked file denotes.
    pub(crate) fn place_of_address(&self, address: u64) -> Option<SectionOffset> {
        self.place_in_section(self.image.section_at(address)?, address)
    }

    /// The offset in the new file of the bytes of an old place.
    pub(crate) fn file_offset(&self, place: SectionOffset, size: u64) -> Option<usize> {
        let offset = self.maps.new_bytes(place, size)?;
        let inside = self.image.sections[place.section].is_in_file()
            && offset.checked_add(size)? <= self.layout.sizes[place.section];
        inside.then_some((self.layout.offsets[place.section] + offset) as usize)
    }
}
