//! The profiles that a process has drained: sums over all loads of the same code on the same GPU.
//!
//! Invariants: an entry's total is the sum over all loads of its code, those that are unloaded (`retired`) and those
//! that are present (`loads`), each load with its last payload. So draining again changes nothing, a load that
//! disappeared loses no count that was read, and two loads of one code never write to each other's file. Everything is
//! plain data in libc's memory: any copy of the drain may use it, even when the copy that made it was unloaded.

use crate::bytes::{put, until_zero};
use crate::capture::Capture;
use crate::elf::Sections;
use crate::layout;
use crate::libc::{Errno, IS_LINK, NOT_THERE, Open, OpenFile, make_directories, remove_file, rename_file};
use crate::memory::{Bytes, List};
use crate::name::{DeviceName, Path};
use crate::raw::{Fixed, add, fnv, shrinks, subtract};
use crate::record;

/// One load of a code object.
pub struct Load {
    /// HSA's handle of its executable.
    pub executable: u64,
    /// The start of its memory.
    pub base: u64,
    sections: Sections,
    payload: Bytes,
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

impl Volume {
    fn holds(self, number: usize, entry: &StoreEntry) -> bool {
        if self.alone { number == self.first } else { entry.leader == self.first }
    }
}

/// All loads of one code on one GPU.
pub struct StoreEntry {
    /// The hash of its content.
    content: u64,
    /// The same, or a number near to it if another entry of the GPU has it.
    name: u64,
    /// The number of the first entry in its file.
    leader: usize,
    /// The GPU's node.
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
}

impl Store {
    /// Nothing drained yet.
    pub const EMPTY: Self = Self { entries: List::EMPTY };

    /// The entries.
    pub fn entries(&self) -> &[StoreEntry] {
        &self.entries
    }

    /// Adds the capture of a load; `None` where there is no memory.
    pub fn take(&mut self, capture: Capture, load: (u64, u64), processor: [u8; 64], node: u32) -> Option<()> {
        let Capture { fixed, payload, sections, .. } = capture;
        let layout = layout::of_version(fixed.version)?;
        let content = fixed.identity(layout);
        let is_it = |entry: &StoreEntry| (entry.content, entry.node, &entry.processor) == (content, node, &processor);
        let same = |entry: &StoreEntry| entry.fixed.parts == fixed.parts && entry.fixed.deltas == fixed.deltas;
        let place = self.entries.iter().position(|entry| is_it(entry) && same(entry));
        let (executable, base) = load;
        if let Some(entry) = place.and_then(|at| self.entries.get_mut(at)) {
            record::agree(&mut entry.fixed.data, &fixed.data, layout);
            return entry.update(Load { executable, base, sections, payload });
        }
        let mut loads = List::EMPTY;
        loads.push(Load { executable, base, sections, payload })?;
        let (name, leader) = (self.free_name(content, (node, &processor)), self.entries.len());
        let mut entry = StoreEntry {
            content,
            name,
            leader,
            node,
            processor,
            fixed,
            loads,
            retired: None,
            is_new: true,
            path: 0,
            merged: None,
        };
        entry.leader = self.leader_for(&entry).unwrap_or(leader);
        self.entries.push(entry).map(drop)
    }

    /// The content, unless code of the same names and another shape has it on this GPU.
    fn free_name(&self, content: u64, device: (u32, &[u8; 64])) -> u64 {
        let is_taken =
            |name: u64| self.entries.iter().any(|own| own.name == name && (own.node, &own.processor) == device);
        (0..=self.entries.len() as u64)
            .map(|more| content.wrapping_add(more))
            .find(|name| !is_taken(*name))
            .unwrap_or(content)
    }

    /// The file that an entry joins: the last one of its GPU and version, while that is small.
    fn leader_for(&self, new: &StoreEntry) -> Option<usize> {
        let alike = |own: &&StoreEntry| {
            (own.node, &own.processor, own.fixed.version) == (new.node, &new.processor, new.fixed.version)
        };
        let leader = self.entries.iter().rev().find(alike)?.leader;
        let there = self.members(leader).fold(0, |sum: usize, own| sum.saturating_add(own.size()));
        (there.saturating_add(new.size()) <= VOLUME).then_some(leader)
    }

    fn members(&self, leader: usize) -> impl Iterator<Item = &StoreEntry> {
        self.entries.iter().filter(move |entry| entry.leader == leader)
    }

    /// The file that begins with this entry, if there is one. `alone`: each entry has its own.
    pub fn volume(&self, number: usize, alone: bool) -> Option<Volume> {
        let first = self.entries.get(number)?;
        (alone || first.leader == number).then_some(Volume { first: number, alone })
    }

    fn of(&self, volume: Volume) -> impl Iterator<Item = &StoreEntry> {
        let entries = self.entries.iter().enumerate();
        entries.filter(move |(number, entry)| volume.holds(*number, entry)).map(|(_, entry)| entry)
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

    /// Writes a file next to the one of the host. The old content stays until the new one is complete.
    pub fn write(&mut self, volume: Volume, path: &Path, host: &Path, process: u64) -> Result<(), Errno> {
        let first = self.entries.get(volume.first).ok_or(NOT_THERE)?;
        if self.of(volume).nth(1).is_none() {
            let total = first.total().ok_or(NO_MEMORY)?;
            first.write_parts(total.bytes(), |parts| replace(path, process, parts))?;
        } else {
            replace(path, process, [&self.joined(volume)?, &[], &[], &[]])?;
        }
        let hash = fnv(0, host.bytes());
        for (number, entry) in self.entries.iter_mut().enumerate() {
            if volume.holds(number, entry) {
                (entry.is_new, entry.path) = (false, hash);
            }
        }
        Ok(())
    }

    /// All profiles of a file, concatenated.
    fn joined(&self, volume: Volume) -> Result<Bytes, Errno> {
        let size = self.of(volume).map(StoreEntry::size).sum();
        let mut joined = Bytes::zeroed(size).ok_or(NO_MEMORY)?;
        let mut used = 0;
        for entry in self.of(volume) {
            let total = entry.total().ok_or(NO_MEMORY)?;
            entry.write_parts(total.bytes(), |parts| {
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
    pub fn refresh(&mut self, load: (u64, u64), read: impl Fn(&Sections, &Fixed) -> Option<Bytes>) -> bool {
        for entry in self.entries.iter_mut() {
            let mut loads = entry.loads.iter();
            let Some(known) = loads.find(|known| (known.executable, known.base) == load) else { continue };
            let sections = known.sections;
            let Some(payload) = read(&sections, &entry.fixed) else { return false };
            let (executable, base) = load;
            return entry.update(Load { executable, base, sections, payload }).is_some();
        }
        false
    }

    /// Retires loads that no longer exist: `is_there` is called for each.
    pub fn retire(&mut self, is_there: impl Fn(&Load) -> bool) {
        for entry in self.entries.iter_mut() {
            let mut index = 0;
            while let Some(load) = entry.loads.get(index) {
                if is_there(load) {
                    index += 1;
                } else if let Some(load) = entry.loads.swap_remove(index) {
                    entry.retire(load.payload);
                }
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
        let header = layout::of_version(self.fixed.version).map_or(0, |layout| self.fixed.header(layout).bytes().len());
        let parts = [self.fixed.data.len(), self.fixed.parts.size(), self.fixed.names.len()];
        parts.iter().fold(header, |sum, part| sum.saturating_add(*part))
    }

    fn records(&self) -> usize {
        let size = layout::of_version(self.fixed.version).map_or(1, |layout| layout.record);
        self.fixed.data.len().checked_div(size).unwrap_or(0)
    }

    fn update(&mut self, load: Load) -> Option<()> {
        let known = |own: &Load| (own.executable, own.base) == (load.executable, load.base);
        let place = self.loads.iter().position(known);
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

    fn retire(&mut self, payload: Bytes) {
        match &mut self.retired {
            Some(retired) => add(retired, &payload, self.fixed.parts, self.fixed.is_byte_coverage()),
            none => *none = Some(payload),
        }
    }

    /// The sum of all loads. Borrowed where there is only one, because payloads may be large.
    fn total(&self) -> Option<Total<'_>> {
        let all = || self.loads.iter().map(|load| &*load.payload).chain(self.retired.as_deref());
        let mut payloads = all();
        let first = payloads.next()?;
        if payloads.next().is_none() {
            return Some(Total::Of(first));
        }
        let mut sum = Bytes::copy(first)?;
        for payload in all().skip(1) {
            add(&mut sum, payload, self.fixed.parts, self.fixed.is_byte_coverage());
        }
        Some(Total::Sum(sum))
    }

    /// The parts of the file, in order.
    fn write_parts(&self, payload: &[u8], write: impl FnOnce(FileParts<'_>) -> Result<(), Errno>) -> Result<(), Errno> {
        let Some(layout) = layout::of_version(self.fixed.version) else { return Err(NOT_THERE) };
        write([self.fixed.header(layout).bytes(), &self.fixed.data, payload, &self.fixed.names])
    }

    /// Adds the new counts to the file of all processes.
    fn merge(&mut self, path: &Path, process: u64) -> Result<WriteOutcome, Errno> {
        let Some((file, size)) = lock(path)? else { return Ok(WriteOutcome::Taken) };
        let result = self.merge_locked(path, process, &file, size);
        if result.is_err() && size == 0 {
            remove_file(path); // made by `lock` and held by no other process: an empty file is no profile
        }
        result
    }

    fn merge_locked(&mut self, path: &Path, process: u64, file: &OpenFile, size: u64) -> Result<WriteOutcome, Errno> {
        let (parts, byte_coverage) = (self.fixed.parts, self.fixed.is_byte_coverage());
        let total = Bytes::copy(self.total().ok_or(NO_MEMORY)?.bytes()).ok_or(NO_MEMORY)?;
        let mut sum = Bytes::copy(&total).ok_or(NO_MEMORY)?;
        if let Some(merged) = &self.merged {
            subtract(&mut sum, merged, parts, byte_coverage);
        }
        if size > 0 {
            let Some(there) = self.read_payload(file, size)? else { return Ok(WriteOutcome::Taken) };
            add(&mut sum, &there, parts, byte_coverage);
        }
        self.write_parts(&sum, |parts| replace(path, process, parts))?;
        self.merged = Some(total);
        Ok(WriteOutcome::Yes)
    }

    /// The counts in a file of the same code; `None` if it is of other code.
    fn read_payload(&mut self, file: &OpenFile, size: u64) -> Result<Option<Bytes>, Errno> {
        let Some(layout) = layout::of_version(self.fixed.version) else { return Err(NOT_THERE) };
        let header = self.fixed.header(layout);
        let lengths = [header.bytes().len(), self.fixed.data.len(), self.fixed.parts.size(), self.fixed.names.len()];
        if lengths.iter().sum::<usize>() as u64 != size {
            return Ok(None);
        }
        let read = |index: usize| {
            let mut bytes = Bytes::zeroed(lengths.get(index).copied().unwrap_or(0)).ok_or(NO_MEMORY)?;
            let length = file.read(&mut bytes)?;
            bytes.truncate(length);
            Ok(bytes)
        };
        let (head, data, payload, names) = (read(0)?, read(1)?, read(2)?, read(3)?);
        let same = *head == *header.bytes() && *names == *self.fixed.names;
        let same = same && payload.len() == self.fixed.parts.size();
        Ok((same && record::agree(&mut self.fixed.data, &data, layout)).then_some(payload))
    }
}

/// ENOMEM.
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
        Err(NOT_THERE) => {
            make_directories(path);
            OpenFile::open(path, how)
        }
        result => result,
    }
}

/// The file, locked, and its size. A writer replaces the file that it had locked by a new one: a process that waited
/// for the old one starts again. `None` where the file system has no locks, or for a symbolic link: nothing can be
/// added safely.
fn lock(path: &Path) -> Result<Option<(OpenFile, u64)>, Errno> {
    loop {
        let file = match open(path, Open::Shared) {
            // Its target is not ours to make, or to replace.
            Err(IS_LINK) => return Ok(None),
            file => file?,
        };
        let is_locked = file.lock().is_ok();
        let [device, number, size] = file.status()?;
        if !is_locked {
            if size == 0 {
                remove_file(path); // just made
            }
            return Ok(None);
        }
        let [same_device, same_number, _] = open(path, Open::Shared)?.status()?;
        if (device, number) == (same_device, same_number) {
            return Ok(Some((file, size)));
        }
    }
}

/// The parts of a file.
type FileParts<'a> = [&'a [u8]; 4];

/// Writes a file next to its place and renames it. Nothing is left where that fails.
fn replace(path: &Path, process: u64, content: FileParts<'_>) -> Result<(), Errno> {
    const EXISTS: Errno = Errno(17);
    for attempt in 0..100 {
        let mut beside = *path;
        beside.push(b".").number(process).push(b".").number(attempt).push(b".tmp");
        let file = match open(&beside, Open::New) {
            Err(EXISTS) => continue, // of a killed process, or of one with our number on another machine
            file => file?,
        };
        let result = file.write(content).and_then(|()| file.close()).and_then(|()| rename_file(&beside, path));
        if result.is_err() {
            remove_file(&beside);
        }
        return result;
    }
    Err(EXISTS)
}
