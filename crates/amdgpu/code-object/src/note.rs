//! The metadata note: name `AMDGPU`, type 32, MessagePack.
//!
//! It is found through `PT_NOTE` segments and `SHT_NOTE` sections, which in a linked file refer to the same bytes.
//! Clang 22 splits full LTO into partitions (`--lto-partitions=8` by default) and each produces a note of its own with
//! its kernels; comgr merges them. They are read as one note here, and must agree on the version, and on the target
//! where they state one.

use crate::elf::Elf;
use crate::malformed;
use crate::metadata::{self, KernelMetadata};
use crate::msgpack::{self, ValueReader};
use crate::patch::AppendedPiece;
use crate::target_text::TargetText;
use hotswap_report::Diagnostic;
use hotswap_targets::TargetId;
use object::elf::{PT_NOTE, SHT_NOTE};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

const NAME: &[u8] = b"AMDGPU\0";
/// The note type `NT_AMDGPU_METADATA` of code objects since V3.
const METADATA: u32 = 32;
/// Name size, content size and type, each a `u32`.
const HEADER: usize = 12;

/// The contents of all metadata notes together.
#[derive(Debug, Clone)]
pub struct Note<'a> {
    /// The notes' contents in the file, in its order; at least one.
    pub ranges: Vec<Range<usize>>,
    /// `amdhsa.target`: the triple and the target ID; empty where the note lacks it. V3 never has
    /// one, and kernels written in assembly (those of hipBLASLt and rocBLAS) often lack it.
    pub target: &'a str,
    /// The bytes of [`Note::target`] in the file, once for each note that has it.
    pub target_ranges: Vec<Range<usize>>,
    /// Start of each of these strings, MessagePack's marker and length included.
    pub(crate) target_heads: Vec<usize>,
    /// The major and minor version, `amdhsa.version`.
    pub version: (u64, u64),
    /// Kernels in the order of the notes.
    pub kernels: Arc<Vec<KernelMetadata<'a>>>,
}

impl<'a> Note<'a> {
    pub(crate) fn find(elf: &Elf<'a>) -> Result<Self, Diagnostic> {
        let mut ranges = metadata_contents(elf)?.into_iter();
        let first = ranges.next().ok_or_else(|| malformed(0, "there is no AMDGPU metadata note"))?;
        let mut note = Self::read(elf, first)?;
        for range in ranges {
            note.merge_note(Self::read(elf, range)?)?;
        }
        note.refuse_twins()?;
        Ok(note)
    }

    fn read(elf: &Elf<'a>, range: Range<usize>) -> Result<Self, Diagnostic> {
        let metadata = metadata::read_metadata(elf.data, range.clone())?;
        // Without it, e_flags alone name the target, as they do for every loader.
        let (target, target_ranges, target_heads) = match metadata.target {
            Some(target) => (target.text, vec![target.range], vec![target.head]),
            None => ("", vec![], vec![]),
        };
        let (version, kernels) = (metadata.version, Arc::new(metadata.kernels));
        Ok(Self { ranges: vec![range], target, target_ranges, target_heads, version, kernels })
    }

    /// The result of [`Note::find`] for notes that are those of `old`, byte for byte, except for another text as
    /// target; `None` where they are not.
    pub(crate) fn reuse_parsed(elf: &Elf<'a>, model: &Self, old: &[u8]) -> Option<Self> {
        let ranges = metadata_contents(elf).ok()?;
        if ranges.len() != model.ranges.len() {
            return None;
        }
        let mut note = Self {
            ranges,
            target: "",
            target_ranges: Vec::new(),
            target_heads: Vec::new(),
            version: model.version,
            kernels: model.kernels.clone(),
        };
        for (was, range) in model.ranges.iter().zip(note.ranges.clone()) {
            note.take_like(elf, range, model, &old[was.clone()], was.start)?;
        }
        Some(note)
    }

    /// One of them, `old` at `start` of the other file.
    fn take_like(&mut self, elf: &Elf<'a>, range: Range<usize>, model: &Self, old: &[u8], start: usize) -> Option<()> {
        let places = model.target_heads.iter().zip(&model.target_ranges);
        let mut place = places.filter(|(head, _)| (start..start + old.len()).contains(*head));
        let new = &elf.data[range.clone()];
        let Some((head, text)) = place.next() else { return (new == old).then_some(()) };
        let (before, behind) = (&old[..head - start], &old[text.end - start..]);
        let head = range.start + before.len();
        let mut reader = ValueReader::new(elf.data, head.min(range.end)..range.end);
        let text = std::str::from_utf8(reader.read_text().ok()??).ok()?;
        let is_like = new.starts_with(before) && elf.data[reader.at()..range.end] == *behind;
        if !is_like || ![self.target, ""].contains(&text) && !self.target.is_empty() {
            return None;
        }
        self.target = if self.target.is_empty() { text } else { self.target };
        self.target_ranges.push(reader.at() - text.len()..reader.at());
        self.target_heads.push(head);
        Some(())
    }

    /// Merges a further note of the same file.
    fn merge_note(&mut self, next: Self) -> Result<(), Diagnostic> {
        // rocBLAS links assembly without amdhsa.target with compiled kernels that have it.
        let other_target = ![self.target, ""].contains(&next.target) && !self.target.is_empty();
        if other_target || next.version != self.version {
            let what = format!("this metadata note does not agree with the first, at {:#x}", self.ranges[0].start);
            return Err(malformed(next.ranges[0].start, what));
        }
        if self.target.is_empty() {
            self.target = next.target;
        }
        self.ranges.extend(next.ranges);
        self.target_ranges.extend(next.target_ranges);
        self.target_heads.extend(next.target_heads);
        Arc::make_mut(&mut self.kernels).extend(Arc::unwrap_or_clone(next.kernels));
        Ok(())
    }

    /// Of two descriptions of one kernel, loaders would take either.
    fn refuse_twins(&self) -> Result<(), Diagnostic> {
        let mut symbols = HashSet::new();
        let twin = self.kernels.iter().find(|kernel| self.ranges.len() > 1 && !symbols.insert(kernel.symbol));
        twin.map_or(Ok(()), |kernel| {
            let what = format!("kernel `{}` is in two metadata notes", kernel.name);
            Err(malformed(self.ranges[1].start, what))
        })
    }

    /// Start of the target's name in the file, for messages.
    pub(crate) fn target_start(&self) -> usize {
        self.target_ranges.first().or(self.ranges.first()).map_or(0, |range| range.start)
    }

    /// The target ID that the note states; `None` where it states none.
    pub(crate) fn target_id(&self) -> Result<Option<TargetId>, Diagnostic> {
        if self.target.is_empty() {
            return Ok(None);
        }
        let text = TargetText::parse(self.target).map_err(|what| malformed(self.target_start(), what))?;
        Ok(Some(text.id))
    }

    /// [`Note::target`] for another target ID, in the spelling of this file: `amdgcn-amd-amdhsa--gfx1031` where it has
    /// `amdgcn-amd-amdhsa--gfx1030`, and `amdgpu10.31-amd-amdhsa-unknown-gfx1031` where it has that of `gfx1030`. Empty
    /// where it lacks one.
    pub fn respell_target(&self, target: &TargetId) -> String {
        TargetText::parse(self.target).map_or_else(|_| String::new(), |text| text.respell_target(target))
    }
}

/// The contents of all metadata notes, in the order of the file, each once.
pub(crate) fn metadata_contents(elf: &Elf<'_>) -> Result<Vec<Range<usize>>, Diagnostic> {
    let segments = elf.segments.iter().filter(|s| s.kind == PT_NOTE).map(|s| (&s.range, s.align));
    let sections = elf.sections.iter().filter(|s| s.kind == SHT_NOTE).map(|s| (&s.range, s.align));
    let mut found = Vec::new();
    for (area, align) in segments.chain(sections) {
        found.extend(metadata_notes(elf.data, area.clone(), align)?);
    }
    found.sort_by_key(|range| (range.start, range.end));
    found.dedup();
    if let Some(pair) = found.windows(2).find(|pair| pair[1].start < pair[0].end) {
        return Err(malformed(pair[1].start, "two metadata notes overlap"));
    }
    Ok(found)
}

/// Contents of the metadata notes in one area; notes of other kinds are skipped.
pub(crate) fn metadata_notes(data: &[u8], area: Range<usize>, align: u64) -> Result<Vec<Range<usize>>, Diagnostic> {
    let (mut at, mut found) = (area.start, Vec::new());
    while at < area.end {
        let (content, is_metadata, next) = note_at(data, &area, at, align)?;
        if is_metadata {
            found.push(content);
        }
        at = next;
    }
    Ok(found)
}

/// The note at `at`: its content, whether that is metadata, and the start of the next one.
fn note_at(data: &[u8], area: &Range<usize>, at: usize, align: u64) -> Result<(Range<usize>, bool, usize), Diagnostic> {
    let align = note_alignment(align);
    let words =
        data.get(at..area.end).and_then(|rest| rest.first_chunk::<HEADER>()).ok_or_else(|| truncated_note_error(at))?;
    let (name_size, content_size, kind) =
        (note_header_word(0, words) as usize, note_header_word(1, words) as usize, note_header_word(2, words));
    let name = at + HEADER..at.saturating_add(HEADER).saturating_add(name_size);
    let start = align_up(name.end, align, area.start);
    let content = start..start.saturating_add(content_size);
    if content.end > area.end {
        return Err(truncated_note_error(at));
    }
    let is_metadata = kind == METADATA && data.get(name) == Some(NAME);
    let next = align_up(content.end, align, area.start);
    Ok((content, is_metadata, next))
}

fn truncated_note_error(at: usize) -> Diagnostic {
    malformed(at, "a note leaves its section or segment")
}

fn note_header_word(index: usize, words: &[u8; 12]) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|byte| words[index * 4 + byte]))
}

pub(crate) fn note_alignment(align: u64) -> usize {
    if align == 8 { 8 } else { 4 }
}

/// The offset of a note in its area.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NoteStart {
    old: usize,
    new: usize,
}

/// The notes of an area, written anew.
pub(crate) struct RespelledNotes {
    pub(crate) pieces: Vec<AppendedPiece>,
    /// The notes in the area, and finally its end.
    pub(crate) starts: Vec<NoteStart>,
}

impl RespelledNotes {
    /// Bytes of all notes.
    pub(crate) fn size(&self) -> usize {
        self.starts.last().map_or(0, |end| end.new)
    }

    /// The bytes of all notes; `old` is the file whose parts they may be.
    pub(crate) fn join_pieces(&self, old: &[u8]) -> Vec<u8> {
        self.pieces.iter().map(|piece| piece.piece_bytes(old)).collect::<Vec<_>>().concat()
    }

    /// The new place of a part of the area that holds whole notes; both are offsets in the area.
    pub(crate) fn new_range(&self, old: &Range<usize>) -> Option<Range<usize>> {
        Some(relocated_note_start(old.start, self)?..relocated_note_start(old.end, self)?)
    }
}

fn relocated_note_start(at: usize, notes: &RespelledNotes) -> Option<usize> {
    notes.starts.iter().find(|start| start.old == at).map(|start| start.new)
}

/// The notes of one area with another text as `amdhsa.target` in each that has one, piece by piece: strings, sizes and
/// padding are written anew, all other bytes are unchanged.
pub(crate) fn respell_notes(
    data: &[u8],
    area: &Range<usize>,
    align: u64,
    note: &Note<'_>,
    text: &str,
) -> Result<RespelledNotes, Diagnostic> {
    let mut string = Vec::with_capacity(text.len() + 5);
    msgpack::write_text(&mut string, text);
    let (mut at, mut pieces, mut written) = (area.start, Vec::new(), 0);
    let mut starts = vec![NoteStart { old: 0, new: 0 }];
    while at < area.end {
        let (content, _, next) = note_at(data, area, at, align)?;
        let mut header = data[at..content.start].to_vec();
        let (mut inside, mut copied) = (Vec::new(), content.start);
        let strings = note.target_heads.iter().zip(&note.target_ranges);
        for (head, range) in strings.filter(|(head, range)| content.start <= **head && range.end <= content.end) {
            inside.extend([AppendedPiece::Moved(copied..*head), AppendedPiece::New(string.clone())]);
            copied = range.end;
        }
        inside.push(AppendedPiece::Moved(copied..content.end));
        let size: usize = inside.iter().map(AppendedPiece::size).sum();
        header[4..8].copy_from_slice(&u32::try_from(size).map_err(|one| oversized_note_error(one, at))?.to_le_bytes());
        let end = written + header.len() + size;
        written = end.next_multiple_of(note_alignment(align));
        pieces.push(AppendedPiece::New(header));
        pieces.append(&mut inside);
        pieces.push(AppendedPiece::New(vec![0; written - end]));
        at = next;
        // The last note of an area may lack padding.
        starts.push(NoteStart { old: at.min(area.end) - area.start, new: written });
    }
    Ok(RespelledNotes { pieces, starts })
}

fn oversized_note_error(_: std::num::TryFromIntError, at: usize) -> Diagnostic {
    malformed(at, "the note is longer than its size field can say")
}

/// Rounds up relative to the start of the area, as note readers do.
fn align_up(offset: usize, align: usize, start: usize) -> usize {
    offset.saturating_add((align - offset.saturating_sub(start) % align) % align)
}
