//! From a loaded code object to the contents of its profile file.
//!
//! The memory of the GPU is asked first: it has the headers and symbols of the code object ([`crate::image`]). The
//! program's copy of the file is believed only if it begins with the same bytes; it adds the section headers. Where it
//! is freed or replaced, the addresses are those of the bounds table that LLVM's device runtime keeps, or of the symbols.
//! If the table contradicts the rest, the user is warned.

use crate::bytes::{ByteSource, Span, put, word};
use crate::elf::{CodeObjectFile, ElfFault, Sections};
use crate::image::DeviceImage;
use crate::layout::{self, LAYOUTS, RecordLayout};
use crate::memory::Bytes;
use crate::raw::{CodeIdentity, Deltas, Fixed, PayloadParts, RawIds, names_are_sound};
use crate::record::{self, Frame};
use crate::text::Text;

/// The largest size of anything in a code object; larger sizes are damage.
pub const LARGEST: u64 = 256 << 20;
/// Sections within this distance are copied at once: a copy costs the GPU as much as moving this.
const WINDOW: u64 = 1 << 20;
/// The first copy: all of a small code object, the headers and symbols of most large ones.
const HEAD: u64 = 128 << 10;
/// Name of the bounds table.
pub const TABLE: &[u8] = b"__llvm_profile_sections";
/// Its size: starts and ends of names, counters, records and uniform counters, and the address of the version.
pub const TABLE_SIZE: u64 = 72;
const VERSION: &[u8] = b"__llvm_profile_raw_version";

/// Memory of a GPU, which only its runtime can copy.
pub trait DeviceReader {
    /// Copies from an address of the GPU; the error is HSA's status.
    fn copy(&self, address: u64, into: &mut [u8]) -> Result<(), u32>;
}

/// A code object in the memory of a GPU.
#[derive(Debug, Clone, Copy)]
pub struct Loaded {
    /// The load address of its address 0.
    pub base: u64,
    /// Bytes of its memory.
    pub size: u64,
    /// The address of its bounds table according to HSA; queried only where the file cannot be read.
    pub table: Option<u64>,
}

/// A profile that was read.
pub struct Capture {
    /// Everything but the counters.
    pub fixed: Fixed,
    /// The counters, in the order of the file.
    pub payload: Bytes,
    /// Records that were removed.
    pub dropped: usize,
    /// Whether the bounds table contradicts the file.
    pub table_is_damaged: bool,
    /// The addresses of all sections.
    pub sections: Sections,
}

/// The reason why there is nothing to write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureRefusal {
    /// The object is not instrumented.
    NoProfile,
    /// Neither the file nor a table locates the sections.
    Unknown(ElfFault),
    /// A section of this name is outside of the object or is too large.
    Section(&'static [u8], Span),
    Copy(u32),
    /// A version without a layout here.
    Version(u64),
    /// Records do not fill the section in any known version.
    Records(u64),
    /// All records are damaged.
    AllDamaged(usize),
    Names,
    /// There was no memory for it.
    Memory,
}

impl CaptureRefusal {
    /// The reason, for a message.
    pub fn describe<const N: usize>(self, text: &mut Text<N>) {
        match self {
            Self::NoProfile => text.push(b"it has no counters"),
            Self::Unknown(fault) => text.push(fault.text()).push(b", and it has no bounds table"),
            Self::Section(name, span) => {
                text.push(b"its section ").push(name).push(b" (address 0x").hex(span.address, 0).push(b", ");
                text.number(span.size).push(b" bytes) is not inside of it")
            }
            Self::Copy(status) => {
                text.push(b"HSA did not copy its memory (status 0x").hex(u64::from(status), 0).push(b")")
            }
            Self::Version(version) => {
                text.push(b"its profile has version ").number(version & 0xffff_ffff);
                text.push(b", which this drain does not know; use HotSwap of the compiler's time")
            }
            Self::Records(size) => text.push(b"its ").number(size).push(b" bytes of records fit no known version"),
            Self::AllDamaged(count) => text.push(b"all of its ").number(count as u64).push(b" records are damaged"),
            Self::Names => text.push(b"its names are damaged"),
            Self::Memory => text.push(b"there is no memory"),
        };
    }
}

/// The bounds table, with its addresses converted to those of the link.
struct BoundsTable {
    sections: Sections,
    version: u64,
}

impl BoundsTable {
    fn read(bytes: &[u8], base: u64) -> Option<Self> {
        let sections = Sections {
            names: read_bounds(bytes, 0, base)?,
            counters: read_bounds(bytes, 16, base)?,
            data: read_bounds(bytes, 32, base)?,
            uniform: read_bounds(bytes, 48, base)?,
            ..Sections::default()
        };
        Some(Self { sections, version: word::<8>(bytes, 64) })
    }

    /// Whether it agrees with the file.
    fn agrees(&self, file: &Sections) -> bool {
        let (table, names) = (&self.sections, self.sections.names);
        is_same_or_empty(table.data, file.data)
            && is_same_or_empty(table.counters, file.counters)
            && is_same_or_empty(names, file.names)
            && (table.uniform.size == 0 || is_same_or_empty(table.uniform, file.uniform))
    }
}

/// The section whose bounds are the two addresses at `first`.
fn read_bounds(bytes: &[u8], first: usize, base: u64) -> Option<Span> {
    let (start, stop) = (word::<8>(bytes, first), word::<8>(bytes, first + 8));
    // A version without the section leaves zeros.
    if (start, stop) == (0, 0) {
        return Some(Span::default());
    }
    stop.checked_sub(start).map(|size| Span { address: start.wrapping_sub(base), size })
}

fn is_same_or_empty(table: Span, file: Span) -> bool {
    table == file || (table.size == 0 && file.size == 0)
}

/// Memory of an object, partly copied already.
struct ObjectReader<'a, D: DeviceReader> {
    device: &'a D,
    loaded: Loaded,
    start: u64,
    window: Bytes,
}

impl<D: DeviceReader> ObjectReader<'_, D> {
    /// Copies the range that covers all these spans, if that is not too much.
    fn prefetch(&mut self, spans: &[Span]) -> Result<(), CaptureRefusal> {
        let spans = spans.iter().filter(|span| span.size > 0);
        let Some(first) = spans.clone().map(|span| span.address).min() else { return Ok(()) };
        let end = spans.filter_map(|span| span.end()).max().unwrap_or(first);
        let window = Span { address: self.start, size: self.window.len() as u64 };
        if end.saturating_sub(first) > WINDOW || window.holds(first, end.saturating_sub(first)) {
            return Ok(());
        }
        let mut window = Bytes::zeroed(end.saturating_sub(first) as usize).ok_or(CaptureRefusal::Memory)?;
        self.device.copy(self.loaded.base.wrapping_add(first), &mut window).map_err(CaptureRefusal::Copy)?;
        (self.start, self.window) = (first, window);
        Ok(())
    }

    /// The code object as the GPU has it; `None` if its headers are not there.
    fn image(&mut self) -> Option<DeviceImage> {
        let head = Span { address: 0, size: self.loaded.size.min(HEAD) };
        self.prefetch(&[head]).ok()?;
        DeviceImage::read(&|address, _, into| self.read_part(address, into))
    }

    fn read_part(&self, address: u64, into: &mut [u8]) -> bool {
        Span { address: 0, size: self.loaded.size }.holds(address, into.len() as u64)
            && self.fetch(address, into).is_ok()
    }

    /// Bytes at an address of the link.
    fn fetch(&self, address: u64, into: &mut [u8]) -> Result<(), CaptureRefusal> {
        let at = usize::try_from(address.wrapping_sub(self.start)).ok();
        let here = at.and_then(|at| self.window.get(at..at.checked_add(into.len())?));
        match here {
            Some(bytes) => put(into, 0, bytes).ok_or(CaptureRefusal::Memory),
            None if into.is_empty() => Ok(()),
            None => self.device.copy(self.loaded.base.wrapping_add(address), into).map_err(CaptureRefusal::Copy),
        }
    }

    fn bytes(&self, span: Span) -> Result<Bytes, CaptureRefusal> {
        let mut bytes = Bytes::zeroed(span.size as usize).ok_or(CaptureRefusal::Memory)?;
        self.fetch(span.address, &mut bytes)?;
        Ok(bytes)
    }
}

/// Facts about an object that are known before its counters are copied.
struct ObjectFacts {
    sections: Sections,
    /// Address of the version variable, as the link fixed it.
    version: Option<u64>,
    table: Option<u64>,
}

/// Reads the profile of an object; `file` is its ELF, where that can be read.
pub fn capture<D: DeviceReader, I: ByteSource>(
    device: &D,
    loaded: Loaded,
    file: &Result<CodeObjectFile<'_, I>, ElfFault>,
) -> Result<Capture, CaptureRefusal> {
    let mut reader = ObjectReader { device, loaded, start: 0, window: Bytes::EMPTY };
    let image = reader.image();
    let file = trusted(file.as_ref(), image.as_ref());
    let mut places = find(&reader, file, image.as_ref())?;
    check(&places.sections, loaded.size)?;
    let sections = places.sections;
    let code = identify(&reader, image.as_ref());
    let table = Span { address: places.table.unwrap_or(0), size: places.table.map_or(0, |_| TABLE_SIZE) };
    reader.prefetch(&[table, sections.data, sections.counters, sections.uniform, sections.bits])?;
    let mut table_is_damaged = false;
    if let Some(address) = places.table {
        let mut bytes = [0u8; TABLE_SIZE as usize];
        reader.fetch(address, &mut bytes)?;
        match BoundsTable::read(&bytes, loaded.base).filter(|table| table.agrees(&sections)) {
            Some(table) => places.version = places.version.or(version_address(table.version, loaded)),
            None => table_is_damaged = true,
        }
    }
    let version = places.version.map(|address| read_version(&reader, address)).transpose()?;
    let (fixed, payload, dropped) = read(&reader, &sections, version, file.ok())?;
    Ok(Capture { fixed: Fixed { code, ..fixed }, payload, dropped, table_is_damaged, sections })
}

/// The file, if it begins with the same bytes as the code object on the GPU.
fn trusted<'f, 'a, I: ByteSource>(
    file: Result<&'f CodeObjectFile<'a, I>, &ElfFault>,
    image: Option<&DeviceImage>,
) -> Result<&'f CodeObjectFile<'a, I>, ElfFault> {
    let file = file.map_err(|fault| *fault)?;
    let Some(image) = image else { return Ok(file) };
    let is_same = image.is_of_file(&|_, offset, into| file.read(offset, into));
    if is_same { Ok(file) } else { Err(ElfFault::Replaced) }
}

/// The identity of the code; zeros where the GPU does not have its headers.
fn identify<D: DeviceReader>(reader: &ObjectReader<'_, D>, image: Option<&DeviceImage>) -> CodeIdentity {
    let Some(image) = image else { return CodeIdentity::default() };
    let id = image.headers.code_id(&|address, _, into| reader.read_part(address, into));
    CodeIdentity { id: id.unwrap_or(0), flags: image.headers.flags }
}

/// The current counters of an object that was captured before, without reading its file. `None` where its records
/// differ from those captured then (or were not all sound): it may be another object at the same address.
pub fn again<D: DeviceReader>(device: &D, loaded: Loaded, sections: &Sections, fixed: &Fixed) -> Option<Bytes> {
    if fixed.data.len() as u64 != sections.data.size {
        return None;
    }
    let mut reader = ObjectReader { device, loaded, start: 0, window: Bytes::EMPTY };
    reader.prefetch(&[sections.data, sections.counters, sections.uniform, sections.bits]).ok()?;
    let layout = layout::of_version(fixed.version)?;
    let mut data = reader.bytes(sections.data).ok()?;
    let frame = Frame { sections, counter: if fixed.is_byte_coverage() { 1 } else { 8 } };
    record::clean(&mut data, layout, frame);
    if !record::agree(&mut data, &fixed.data, layout) {
        return None;
    }
    let uniform = if layout.uniform.is_some() { sections.uniform } else { Span::default() };
    read_payload(&reader, sections, uniform).ok().map(|(payload, _)| payload)
}

fn read_version<D: DeviceReader>(reader: &ObjectReader<'_, D>, address: u64) -> Result<u64, CaptureRefusal> {
    let mut bytes = [0u8; 8];
    reader.fetch(address, &mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

fn version_address(address: u64, loaded: Loaded) -> Option<u64> {
    let own = address.wrapping_sub(loaded.base);
    Span { address: 0, size: loaded.size }.holds(own, 8).then_some(own)
}

fn find<D: DeviceReader, I: ByteSource>(
    reader: &ObjectReader<'_, D>,
    file: Result<&CodeObjectFile<'_, I>, ElfFault>,
    image: Option<&DeviceImage>,
) -> Result<ObjectFacts, CaptureRefusal> {
    match (file, image) {
        (Ok(file), _) => find_by_file(file),
        (Err(_), Some(image)) => find_by_image(reader, image),
        (Err(ElfFault::Foreign), None) => Err(CaptureRefusal::NoProfile),
        (Err(fault), None) => {
            let address = reader.loaded.table.ok_or(CaptureRefusal::Unknown(fault))?;
            find_by_table(reader, address.wrapping_sub(reader.loaded.base))
        }
    }
}

fn find_by_file<I: ByteSource>(file: &CodeObjectFile<'_, I>) -> Result<ObjectFacts, CaptureRefusal> {
    let sections = file.sections().map_err(CaptureRefusal::Unknown)?;
    if sections.data.size == 0 || sections.counters.size == 0 {
        return Err(CaptureRefusal::NoProfile);
    }
    Ok(ObjectFacts { sections, version: variable_address(file, VERSION), table: variable_address(file, TABLE) })
}

/// The address of a variable of the runtime, if the symbol has one of their sizes.
fn variable_address<I: ByteSource>(file: &CodeObjectFile<'_, I>, name: &[u8]) -> Option<u64> {
    let span = file.symbol(name).filter(|span| span.size == 8 || span.size == TABLE_SIZE);
    span.map(|span| span.address)
}

/// The symbols are never written by code; the bounds table may be damaged, but knows sections as a whole.
fn find_by_image<D: DeviceReader>(
    reader: &ObjectReader<'_, D>,
    image: &DeviceImage,
) -> Result<ObjectFacts, CaptureRefusal> {
    let table = image.table.filter(|span| span.size == TABLE_SIZE).map(|span| span.address);
    if !image.has_counters() {
        return table.map_or(Err(CaptureRefusal::NoProfile), |table| find_by_table(reader, table));
    }
    let version = image.version.filter(|span| span.size == 8).map(|span| span.address);
    let of_table = table.and_then(|table| find_by_table(reader, table).ok());
    let sections = match of_table {
        Some(facts) if is_plausible(&facts.sections, &image.sections, reader.loaded.size) => {
            Sections { bits: image.sections.bits, ..facts.sections }
        }
        _ => image.sections,
    };
    Ok(ObjectFacts { sections, version, table })
}

/// Whether the sections of a table are in the object, of whole records, and around all that symbols name.
fn is_plausible(table: &Sections, symbols: &Sections, size: u64) -> bool {
    let pairs = [
        (table.data, symbols.data),
        (table.counters, symbols.counters),
        (table.uniform, symbols.uniform),
        (table.names, symbols.names),
    ];
    let holds_all =
        pairs.iter().all(|(table, symbols)| symbols.size == 0 || table.holds(symbols.address, symbols.size));
    let is_whole = LAYOUTS.iter().any(|layout| table.data.size.checked_rem(layout.record as u64) == Some(0));
    holds_all && is_whole && check(table, size).is_ok()
}

/// The table at an address of the link.
fn find_by_table<D: DeviceReader>(reader: &ObjectReader<'_, D>, own: u64) -> Result<ObjectFacts, CaptureRefusal> {
    let mut bytes = [0u8; TABLE_SIZE as usize];
    reader.fetch(own, &mut bytes)?;
    let table = BoundsTable::read(&bytes, reader.loaded.base);
    let table = table.ok_or(CaptureRefusal::Section(TABLE, Span { address: own, size: TABLE_SIZE }))?;
    let version = version_address(table.version, reader.loaded);
    if table.sections.data.size == 0 || table.sections.counters.size == 0 {
        return Err(CaptureRefusal::NoProfile);
    }
    Ok(ObjectFacts { sections: table.sections, version, table: Some(own) })
}

/// Requires that everything is inside the memory of the object.
fn check(sections: &Sections, size: u64) -> Result<(), CaptureRefusal> {
    let Sections { data, counters, uniform, bits, names, .. } = *sections;
    check_section(b"__llvm_prf_data", data, size)?;
    check_section(b"__llvm_prf_cnts", counters, size)?;
    check_section(b"__llvm_prf_ucnts", uniform, size)?;
    check_section(b"__llvm_prf_bits", bits, size)?;
    check_section(b"__llvm_prf_names", names, size)
}

fn check_section(name: &'static [u8], span: Span, size: u64) -> Result<(), CaptureRefusal> {
    let memory = Span { address: 0, size };
    let bad = span.size > LARGEST || (span.size > 0 && !memory.holds(span.address, span.size));
    if bad { Err(CaptureRefusal::Section(name, span)) } else { Ok(()) }
}

/// The layout of a version, or else the one in which most records are sound.
fn choose(version: Option<u64>, data: &[u8], frame: Frame<'_>) -> Result<(&'static RecordLayout, u64), CaptureRefusal> {
    if let Some(version) = version {
        let layout = layout::of_version(version).ok_or(CaptureRefusal::Version(version))?;
        return Ok((layout, version));
    }
    let rated = LAYOUTS.iter().filter_map(|layout| Some((record::sound(data, layout, frame)?, layout)));
    let best = rated.max_by_key(|(sound, _)| *sound).ok_or(CaptureRefusal::Records(data.len() as u64))?;
    Ok((best.1, u64::from(best.1.version)))
}

type Read = (Fixed, Bytes, usize);

fn read<D: DeviceReader, I: ByteSource>(
    reader: &ObjectReader<'_, D>,
    sections: &Sections,
    version: Option<u64>,
    file: Option<&CodeObjectFile<'_, I>>,
) -> Result<Read, CaptureRefusal> {
    let mut data = reader.bytes(sections.data)?;
    let byte_coverage = version.is_some_and(|version| version & layout::BYTE_COVERAGE != 0);
    let frame = Frame { sections, counter: if byte_coverage { 1 } else { 8 } };
    let (layout, version) = choose(version, &data, frame)?;
    if data.len() % layout.record.max(1) != 0 {
        return Err(CaptureRefusal::Records(data.len() as u64));
    }
    let count = record::clean(&mut data, layout, frame);
    if count.kept == 0 {
        return Err(CaptureRefusal::AllDamaged(count.dropped));
    }
    data.truncate(count.kept.wrapping_mul(layout.record));
    let uniform = if layout.uniform.is_some() { sections.uniform } else { Span::default() };
    let (payload, parts) = read_payload(reader, sections, uniform)?;
    let data_address = sections.data.address;
    let deltas = Deltas {
        counters: distance_from(data_address, sections.counters),
        bits: distance_from(data_address, sections.bits),
        uniform: distance_from(data_address, uniform),
    };
    let (names, names_size) = read_names(reader, sections, file)?;
    let code = CodeIdentity::default();
    Ok((
        Fixed { version, code, ids: RawIds::default(), data, names, names_size, parts, deltas },
        payload,
        count.dropped,
    ))
}

/// The distance of a section; 0 for one that is absent.
fn distance_from(start: u64, span: Span) -> u64 {
    if span.size == 0 { 0 } else { span.address.wrapping_sub(start) }
}

fn read_payload<D: DeviceReader>(
    reader: &ObjectReader<'_, D>,
    sections: &Sections,
    uniform: Span,
) -> Result<(Bytes, PayloadParts), CaptureRefusal> {
    let parts = PayloadParts {
        counters: sections.counters.size as usize,
        bits: sections.bits.size as usize,
        uniform: uniform.size as usize,
    };
    let mut payload = Bytes::zeroed(parts.size()).ok_or(CaptureRefusal::Memory)?;
    fetch_part(reader, &mut payload, 0, sections.counters)?;
    fetch_part(reader, &mut payload, parts.bits_at(), sections.bits)?;
    fetch_part(reader, &mut payload, parts.uniform_at(), uniform)?;
    Ok((payload, parts))
}

fn fetch_part<D: DeviceReader>(
    reader: &ObjectReader<'_, D>,
    payload: &mut Bytes,
    at: usize,
    span: Span,
) -> Result<(), CaptureRefusal> {
    let end = at.wrapping_add(span.size as usize);
    reader.fetch(span.address, payload.get_mut(at..end).unwrap_or_default())
}

/// Names never change: they are read from the file if it has them, which needs no copy from the GPU.
fn read_names<D: DeviceReader, I: ByteSource>(
    reader: &ObjectReader<'_, D>,
    sections: &Sections,
    file: Option<&CodeObjectFile<'_, I>>,
) -> Result<(Bytes, usize), CaptureRefusal> {
    let size = sections.names.size as usize;
    let mut names = Bytes::zeroed(crate::raw::padded(size)).ok_or(CaptureRefusal::Memory)?;
    let own = names.get_mut(..size).unwrap_or_default();
    let offset = Some(sections.names_offset).filter(|offset| *offset != 0);
    let is_read = file.zip(offset).is_some_and(|(file, offset)| file.read(offset, own)) && names_are_sound(own);
    if !is_read {
        reader.fetch(sections.names.address, own)?;
        if !names_are_sound(own) {
            return Err(CaptureRefusal::Names);
        }
    }
    Ok((names, size))
}
