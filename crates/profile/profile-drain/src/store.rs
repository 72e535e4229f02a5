//! The profiles that a process has drained: sums over all loads of the same code on the same GPU.
//!
//! Invariants: an entry's total is the sum over all loads of its code, those that are unloaded (`retired`) and those
//! that are present (`loads`), each load with its last payload. So draining again changes nothing, a load that
//! disappeared loses no count that was read, and two loads of one code never write to each other's file. Everything is
//! plain data in libc's memory: any copy of the drain may use it, even when the copy that made it was unloaded.

use crate::bytes::{put, until_zero};
use crate::capture::Capture;
use crate::elf::Sections;
use crate::index::{PlaceIndex, hash_of};
use crate::layout;
use crate::libc::{
    EXISTS, Errno, IS_LINK, NOT_THERE, Open, OpenFile, make_directories, remove_file, rename_file, rename_new,
};
use crate::memory::{Bytes, List};
use crate::name::{DeviceName, Path};
use crate::raw::{Fixed, MeasuredProfile, ProcessTag, RawIds, add, fnv, header_size, measure, shrinks, subtract};
use crate::record;

/// Executable and base of a load.
pub type LoadKey = (u64, u64);

/// A load of an entry, both by their numbers.
struct LoadPlace {
    entry: usize,
    number: usize,
}

/// One load of a code object.
pub struct Load {
    /// HSA's handle of its executable.
    pub executable: u64,
    /// The start of its memory.
    pub base: u64,
    sections: Sections,
    payload: Bytes,
    /// Whether HSA still lists it.
    is_listed: bool,
}

/// Files of several profiles grow up to this. Making a file costs more than writing a small profile. A profile of this
/// size is worth its own file, which is written again whenever a profile in it has new counts.
const VOLUME: usize = 64 << 10;

/// One file of the entries.
#[derive(Debug, Clone, Copy)]
pub struct Volume {
    first: usize,
    alone: bool,
}

/// All loads of one code on one GPU.
pub struct StoreEntry {
    /// The hash of its content.
    content: u64,
    /// The same, or a number near to it if another entry of the GPU has it.
    name: u64,
    /// The number of the first entry in its file.
    leader: usize,
    /// Bytes of the file that begins with this entry.
    volume: usize,
    /// The number of the name that its file has.
    file_name: usize,
    node: u32,
    processor: [u8; 64],
    fixed: Fixed,
    loads: List<Load>,
    retired: Option<Bytes>,
    /// Whether there are new counts since the last file.
    is_new: bool,
    /// The hash of the host's path next to which the last file was written.
    path: u64,
    /// The counts that this process has already added to a merged file.
    merged: Option<Bytes>,
}

/// All entries of a process.
pub struct Store {
    entries: List<StoreEntry>,
    /// The number of the name of files that the next entry gets.
    pub name: usize,
    /// Entries by name and node.
    by_name: PlaceIndex,
    /// Entries by each of their loads.
    by_load: PlaceIndex,
}

impl Store {
    /// A store in which nothing was put yet.
    pub const EMPTY: Self =
        Self { entries: List::EMPTY, name: 0, by_name: PlaceIndex::EMPTY, by_load: PlaceIndex::EMPTY };

    pub fn entries(&self) -> &[StoreEntry] {
        &self.entries
    }

    /// Adds the capture of a load; `None` without memory.
    pub fn take(&mut self, capture: Capture, load: LoadKey, processor: [u8; 64], node: u32) -> Option<()> {
        let Capture { mut fixed, payload, sections, .. } = capture;
        fixed.ids = RawIds::new(fixed.code, until_zero(&processor));
        let layout = layout::of_version(fixed.version)?;
        let content = fixed.identity(layout);
        let number = self.entries.len();
        let (name, known) = self.place_of(content, &fixed, (node, &processor));
        let place = known.unwrap_or(number);
        self.retire_reused(load, place);
        let (executable, base) = load;
        self.by_load.add(hash_of(executable, base), place)?;
        let load = Load { executable, base, sections, payload, is_listed: true };
        if let Some(entry) = self.entries.get_mut(place) {
            record::agree(&mut entry.fixed.data, &fixed.data, layout);
            return entry.update(load);
        }
        self.by_name.add(hash_of(name, u64::from(node)), number)?;
        let mut loads = List::EMPTY;
        loads.push(load)?;
        let mut entry = StoreEntry {
            content,
            name,
            leader: number,
            volume: 0,
            file_name: self.name,
            node,
            processor,
            fixed,
            loads,
            retired: None,
            is_new: true,
            path: 0,
            merged: None,
        };
        entry.volume = entry.size();
        self.join_volume(&mut entry);
        self.entries.push(entry).map(drop)
    }

    /// The entry of a content, and its name: the content, or the next free number if code of the same names and another
    /// shape has that on this GPU.
    fn place_of(&self, content: u64, fixed: &Fixed, device: (u32, &[u8; 64])) -> (u64, Option<usize>) {
        for more in 0..=self.entries.len() as u64 {
            let name = content.wrapping_add(more);
            let place = self.by_name.find(hash_of(name, u64::from(device.0)), &|at| {
                let named = self.entries.get(at).filter(|own| own.name == name);
                named.is_some_and(|own| (own.node, &own.processor) == device)
            });
            let Some(entry) = place.and_then(|at| self.entries.get(at)) else { return (name, None) };
            if entry.content == content && entry.fixed.parts == fixed.parts && entry.fixed.deltas == fixed.deltas {
                return (name, place);
            }
        }
        (content, None)
    }

    /// Joins the last file of the GPU, version and name while that is small.
    fn join_volume(&mut self, new: &mut StoreEntry) {
        let alike = self.entries.iter().rev().find(|own| {
            (own.node, &own.processor, own.fixed.version, own.file_name)
                == (new.node, &new.processor, new.fixed.version, new.file_name)
        });
        let Some(leader) = alike.map(|own| own.leader) else { return };
        let Some(first) = self.entries.get_mut(leader) else { return };
        let size = first.volume.saturating_add(new.volume);
        if size <= VOLUME {
            (first.volume, new.leader) = (size, leader);
        }
    }

    fn place_of_load(&self, load: LoadKey) -> Option<LoadPlace> {
        let entry = self.by_load.find(hash_of(load.0, load.1), &|at| self.load_number(at, load).is_some())?;
        Some(LoadPlace { entry, number: self.load_number(entry, load)? })
    }

    fn load_number(&self, entry: usize, load: LoadKey) -> Option<usize> {
        self.entries.get(entry)?.load_number(load)
    }

    /// Retires a load whose handles are now those of a load of other code.
    fn retire_reused(&mut self, load: LoadKey, place: usize) {
        if let Some(old) = self.place_of_load(load).filter(|old| old.entry != place) {
            let _ = self.entries.get_mut(old.entry).map(|entry| entry.retire_load(old.number));
        }
    }

    /// The file of that name that begins with this entry, if there is one. `alone`: each entry has its own.
    pub fn volume(&self, number: usize, name: usize, alone: bool) -> Option<Volume> {
        let first = self.entries.get(number).filter(|entry| entry.file_name == name)?;
        (alone || first.leader == number).then_some(Volume { first: number, alone })
    }

    /// The entries of a file: none is before the first.
    fn of(&self, volume: Volume) -> impl Iterator<Item = &StoreEntry> {
        let end = if volume.alone { volume.first.wrapping_add(1) } else { self.entries.len() };
        let entries = self.entries.get(volume.first..end).unwrap_or_default();
        entries.iter().filter(move |entry| volume.alone || entry.leader == volume.first)
    }

    /// Names and numbers for a file.
    pub fn device(&self, volume: Volume) -> Option<DeviceName<'_>> {
        self.entries.get(volume.first).map(StoreEntry::device)
    }

    /// Records of a file.
    pub fn records(&self, volume: Volume) -> usize {
        self.of(volume).map(StoreEntry::records).sum()
    }

    /// Whether the file next to this one of the host is up to date.
    pub fn is_written(&self, volume: Volume, host: &Path) -> bool {
        let path = fnv(0, host.bytes());
        self.of(volume).all(|entry| !entry.is_new && entry.path == path)
    }

    /// Writes a file next to the one of the host, as its runtime writes there: profiles that other processes wrote
    /// since this one started stay, and ours are appended.
    pub fn write(&mut self, volume: Volume, path: &Path, host: &Path, writer: Writer) -> Result<WriteOutcome, Errno> {
        let own = self.joined(volume, writer.tag)?;
        let written = append(path, &own, writer)?;
        if written == WriteOutcome::Yes {
            self.mark_written(volume, host);
        }
        Ok(written)
    }

    fn mark_written(&mut self, volume: Volume, host: &Path) {
        let hash = fnv(0, host.bytes());
        for (number, entry) in self.entries.iter_mut().enumerate().skip(volume.first) {
            if number == volume.first || (entry.leader == volume.first && !volume.alone) {
                (entry.is_new, entry.path) = (false, hash);
            }
        }
    }

    /// All profiles of a file, concatenated.
    fn joined(&self, volume: Volume, tag: ProcessTag) -> Result<Bytes, Errno> {
        let tag = tag.bytes();
        let size = self.of(volume).map(|entry| entry.size().saturating_add(tag.len())).sum();
        let mut joined = Bytes::zeroed(size).ok_or(NO_MEMORY)?;
        let mut used = 0;
        for entry in self.of(volume) {
            let total = entry.total().ok_or(NO_MEMORY)?;
            entry.write_parts(total.bytes(), &tag, |parts| {
                for part in parts {
                    put(&mut joined, used, part).ok_or(NO_MEMORY)?;
                    used += part.len();
                }
                Ok(())
            })?;
        }
        joined.truncate(used);
        Ok(joined)
    }

    /// Adds the counts of an entry to the file of all processes, next to the one of the host.
    pub fn merge(&mut self, volume: Volume, path: &Path, host: &Path, process: u64) -> Result<WriteOutcome, Errno> {
        let entry = self.entries.get_mut(volume.first).ok_or(NOT_THERE)?;
        let hash = fnv(0, host.bytes());
        if entry.path != hash {
            entry.merged = None;
        }
        let written = entry.merge(path, process)?;
        if written == WriteOutcome::Yes {
            (entry.is_new, entry.path) = (false, hash);
        }
        Ok(written)
    }

    /// Reads again a load that is known from an earlier drain; `read` returns its payload. False where it must be
    /// captured as a whole.
    pub fn refresh(&mut self, load: LoadKey, read: impl Fn(&Sections, &Fixed) -> Option<Bytes>) -> bool {
        let Some(LoadPlace { entry: place, number }) = self.place_of_load(load) else { return false };
        let Some(entry) = self.entries.get_mut(place) else { return false };
        let Some(sections) = entry.loads.get(number).map(|known| known.sections) else { return false };
        let Some(payload) = read(&sections, &entry.fixed) else { return false };
        let (executable, base) = load;
        entry.update(Load { executable, base, sections, payload, is_listed: true }).is_some()
    }

    /// Retires all loads but those that are listed.
    pub fn retire_all_but(&mut self, listed: impl Iterator<Item = LoadKey>) {
        let loads = self.entries.iter_mut().flat_map(|entry| entry.loads.iter_mut());
        loads.for_each(|load| load.is_listed = false);
        for key in listed {
            let Some(LoadPlace { entry: place, number }) = self.place_of_load(key) else { continue };
            if let Some(load) = self.entries.get_mut(place).and_then(|entry| entry.loads.get_mut(number)) {
                load.is_listed = true;
            }
        }
        let mut is_changed = false;
        for entry in self.entries.iter_mut() {
            let mut number = 0;
            while let Some(load) = entry.loads.get(number) {
                if load.is_listed {
                    number += 1;
                } else {
                    entry.retire_load(number);
                    is_changed = true;
                }
            }
        }
        if is_changed {
            self.index_loads();
        }
    }

    /// Indexes the loads that are left. One that does not get memory is read as a whole the next time.
    fn index_loads(&mut self) {
        self.by_load.clear();
        for (number, entry) in self.entries.iter().enumerate() {
            for load in entry.loads.iter() {
                let _ = self.by_load.add(hash_of(load.executable, load.base), number);
            }
        }
    }

    /// The number of loads at the last drain.
    pub fn loads(&self) -> usize {
        self.entries.iter().map(|entry| entry.loads.len()).sum()
    }
}

/// The result of writing an entry's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It is new, or newer.
    Yes,
    /// Another file of that name is of other code, or cannot be locked: it stays, ours needs another name.
    Taken,
}

impl StoreEntry {
    fn device(&self) -> DeviceName<'_> {
        let processor = until_zero(&self.processor);
        DeviceName { processor, node: self.node, content: self.name }
    }

    /// Bytes of its profile.
    fn size(&self) -> usize {
        let header = layout::of_version(self.fixed.version).map_or(0, header_size);
        let header = header.saturating_add(self.fixed.ids.bytes().len());
        let parts = [self.fixed.data.len(), self.fixed.parts.size(), self.fixed.names.len()];
        parts.iter().fold(header, |sum, part| sum.saturating_add(*part))
    }

    fn records(&self) -> usize {
        let size = layout::of_version(self.fixed.version).map_or(1, |layout| layout.record);
        self.fixed.data.len().checked_div(size).unwrap_or(0)
    }

    fn load_number(&self, (executable, base): LoadKey) -> Option<usize> {
        self.loads.iter().position(|own| (own.executable, own.base) == (executable, base))
    }

    fn update(&mut self, load: Load) -> Option<()> {
        let place = self.load_number((load.executable, load.base));
        let Some(old) = place.and_then(|at| self.loads.get_mut(at)) else {
            self.is_new = true;
            return self.loads.push(load).map(drop);
        };
        if *old.payload == *load.payload {
            return Some(());
        }
        self.is_new = true;
        let shrinks = !self.fixed.is_byte_coverage() && shrinks(&old.payload, &load.payload, self.fixed.parts);
        let earlier = core::mem::replace(&mut old.payload, load.payload);
        if shrinks {
            self.retire(earlier);
        }
        Some(())
    }

    fn retire_load(&mut self, number: usize) {
        if let Some(load) = self.loads.swap_remove(number) {
            self.retire(load.payload);
        }
    }

    fn retire(&mut self, payload: Bytes) {
        match &mut self.retired {
            Some(retired) => add(retired, &payload, self.fixed.parts, self.fixed.is_byte_coverage()),
            none => *none = Some(payload),
        }
    }

    /// The sum of all loads. Borrowed where there is only one, because payloads may be large.
    fn total(&self) -> Option<Total<'_>> {
        let mut payloads = self.loads.iter().map(|load| &*load.payload).chain(self.retired.as_deref()).peekable();
        let first = payloads.next()?;
        if payloads.peek().is_none() {
            return Some(Total::Of(first));
        }
        let mut sum = Bytes::copy(first)?;
        for payload in payloads {
            add(&mut sum, payload, self.fixed.parts, self.fixed.is_byte_coverage());
        }
        Some(Total::Sum(sum))
    }

    /// The counters and bitmaps of all loads.
    pub fn counts(&self) -> Option<Bytes> {
        Bytes::copy(self.total()?.bytes())
    }

    /// The parts of the file, in order.
    fn write_parts(
        &self,
        payload: &[u8],
        tag: &[u8],
        write: impl FnOnce(FileParts<'_>) -> Result<(), Errno>,
    ) -> Result<(), Errno> {
        let Some(layout) = layout::of_version(self.fixed.version) else { return Err(NOT_THERE) };
        write([self.fixed.header(layout, tag.len()).bytes(), &self.fixed.data, tag, payload, &self.fixed.names])
    }

    /// Adds the new counts to the file of all processes.
    fn merge(&mut self, path: &Path, process: u64) -> Result<WriteOutcome, Errno> {
        let Some(LockedFile { file, size }) = lock(path, Open::Shared)? else { return Ok(WriteOutcome::Taken) };
        let result = self.merge_locked(path, process, &file, size);
        if result.is_err() && size == 0 {
            remove_file(path); // made by `lock` and held by no other process: an empty file is no profile
        }
        result
    }

    fn merge_locked(&mut self, path: &Path, process: u64, file: &OpenFile, size: u64) -> Result<WriteOutcome, Errno> {
        let (parts, byte_coverage) = (self.fixed.parts, self.fixed.is_byte_coverage());
        let total = self.counts().ok_or(NO_MEMORY)?;
        let mut sum = Bytes::copy(&total).ok_or(NO_MEMORY)?;
        if let Some(merged) = &self.merged {
            subtract(&mut sum, merged, parts, byte_coverage);
        }
        if size > 0 {
            let Some(there) = self.read_payload(file, size)? else { return Ok(WriteOutcome::Taken) };
            add(&mut sum, &there, parts, byte_coverage);
        }
        self.write_parts(&sum, &[], |parts| replace(path, process, parts, rename_file))?;
        self.merged = Some(total);
        Ok(WriteOutcome::Yes)
    }

    /// The counts in a file of the same code; `None` if it is of other code.
    fn read_payload(&mut self, file: &OpenFile, size: u64) -> Result<Option<Bytes>, Errno> {
        let Some(layout) = layout::of_version(self.fixed.version) else { return Err(NOT_THERE) };
        let header = self.fixed.header(layout, 0);
        let lengths = [header.bytes().len(), self.fixed.data.len(), self.fixed.parts.size(), self.fixed.names.len()];
        if lengths.iter().sum::<usize>() as u64 != size {
            return Ok(None);
        }
        let [head, data, payload, names] = lengths;
        let (head, data) = (read_bytes(file, head)?, read_bytes(file, data)?);
        let (payload, names) = (read_bytes(file, payload)?, read_bytes(file, names)?);
        let same = *head == *header.bytes() && *names == *self.fixed.names;
        let same = same && payload.len() == self.fixed.parts.size();
        Ok((same && record::agree(&mut self.fixed.data, &data, layout)).then_some(payload))
    }
}

/// The next bytes of a file; fewer at its end.
fn read_bytes(file: &OpenFile, most: usize) -> Result<Bytes, Errno> {
    let mut bytes = Bytes::zeroed(most).ok_or(NO_MEMORY)?;
    let length = file.read(&mut bytes)?;
    bytes.truncate(length);
    Ok(bytes)
}

/// ENOMEM: the allocation has failed.
const NO_MEMORY: Errno = Errno(12);

enum Total<'a> {
    Of(&'a [u8]),
    Sum(Bytes),
}

impl Total<'_> {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Of(bytes) => bytes,
            Self::Sum(bytes) => bytes,
        }
    }
}

/// Opens a file, with its directories where they are missing, as LLVM's runtime does for the host's file.
fn open(path: &Path, how: Open) -> Result<OpenFile, Errno> {
    match OpenFile::open(path, how) {
        Err(NOT_THERE) if !matches!(how, Open::Existing) => {
            make_directories(path);
            OpenFile::open(path, how)
        }
        result => result,
    }
}

/// A file under its lock.
struct LockedFile {
    file: OpenFile,
    /// Its bytes when it was locked.
    size: u64,
}

/// Opens and locks a file. A writer replaces the file that it had locked by a new one: a process that
/// waited for the old one starts again. `None` where the file system lacks locks, or for a symbolic link: nothing
/// can be added safely.
fn lock(path: &Path, how: Open) -> Result<Option<LockedFile>, Errno> {
    loop {
        let file = match open(path, how) {
            // Its target is not ours to make, or to replace.
            Err(IS_LINK) => return Ok(None),
            file => file?,
        };
        let is_locked = file.lock().is_ok();
        let [device, number, size, _] = file.status()?;
        if !is_locked {
            if size == 0 {
                remove_file(path); // just made
            }
            return Ok(None);
        }
        let [same_device, same_number, ..] = open(path, how)?.status()?;
        if (device, number) == (same_device, same_number) {
            return Ok(Some(LockedFile { file, size }));
        }
    }
}

/// The process that writes.
#[derive(Debug, Clone, Copy)]
pub struct Writer {
    /// Marks its profiles in a file.
    pub tag: ProcessTag,
    /// When its image was loaded, by the clock of file times: the host's runtime empties its file then.
    pub since: u64,
}

/// Writes profiles to a file after those that others wrote since this process started.
fn append(path: &Path, own: &[u8], writer: Writer) -> Result<WriteOutcome, Errno> {
    let process = writer.tag.id;
    loop {
        let locked = match lock(path, Open::Existing) {
            Err(NOT_THERE) => match replace(path, process, [own, &[], &[], &[], &[]], rename_new) {
                Err(EXISTS) => continue, // another process was faster
                result => return result.map(|()| WriteOutcome::Yes),
            },
            // A link, or a file that cannot be read, is replaced.
            Err(_) | Ok(None) => None,
            Ok(locked) => locked,
        };
        let others = match &locked {
            Some(LockedFile { file, size }) if file.status()?[3] > writer.since => {
                read_others(file, *size, writer.tag)?
            }
            _ => Some(Bytes::EMPTY),
        };
        let Some(others) = others else { return Ok(WriteOutcome::Taken) };
        return replace(path, process, [&others, own, &[], &[], &[]], rename_file).map(|()| WriteOutcome::Yes);
    }
}

/// The profiles of other processes in a file; `None` if it has anything else.
fn read_others(file: &OpenFile, size: u64, tag: ProcessTag) -> Result<Option<Bytes>, Errno> {
    let bytes = read_bytes(file, usize::try_from(size).unwrap_or(usize::MAX))?;
    let mut kept = Bytes::zeroed(bytes.len()).ok_or(NO_MEMORY)?;
    let (mut at, mut used) = (0, 0);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let Some(MeasuredProfile { size, tag: writer }) = measure(rest) else { return Ok(None) };
        if writer != Some(&tag.bytes()) {
            put(&mut kept, used, rest.get(..size).unwrap_or_default()).ok_or(NO_MEMORY)?;
            used = used.wrapping_add(size);
        }
        at = at.wrapping_add(size);
    }
    kept.truncate(used);
    Ok(Some(kept))
}

/// The parts of a file.
type FileParts<'a> = [&'a [u8]; 5];
/// How a file gets its name.
type Rename = fn(&Path, &Path) -> Result<(), Errno>;

/// Writes a file next to its place and renames it. Nothing is left where that fails.
fn replace(path: &Path, process: u64, content: FileParts<'_>, rename: Rename) -> Result<(), Errno> {
    for attempt in 0..100 {
        let mut beside = *path;
        beside.push(b".").number(process).push(b".").number(attempt).push(b".tmp");
        let file = match open(&beside, Open::New) {
            Err(EXISTS) => continue, // of a killed process, or of one with our number on another machine
            file => file?,
        };
        let result = file.write(content).and_then(|()| file.close()).and_then(|()| rename(&beside, path));
        if result.is_err() {
            remove_file(&beside);
        }
        return result;
    }
    Err(EXISTS)
}
