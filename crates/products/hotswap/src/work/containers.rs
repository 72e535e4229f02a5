//! Changes the containers of a file in the requested number of threads, and writes the new file.
//!
//! Each thread takes the next container, reads it, and keeps the new parts. Parts of the input are references, small
//! changes stay in memory, and large new parts (compressed bundles) are kept in a scratch file. When all sizes are
//! known, the file is laid out, its parts are copied to their offsets, and the whole is read again before it replaces
//! the output.
//!
//! Invariants: results are in the order of the file, and of several failures the first one in the file is reported, so
//! the number of threads changes nothing. Memory holds a few containers, whatever the size of the file: pages of mapped
//! files are released after they were read, and large containers that must be unpacked wait for one another.

use crate::work::{accepted, memory_budget};
use hotswap_bundle::linked::BundleReplacement;
use hotswap_bundle::{
    BundleSummary, DraftFacts, FileRope, FoundContainer, KernelArchive, find_containers, is_kernel_archive,
};
use hotswap_compat::names::HostPart;
use hotswap_files::{InputFile, Placement, Scratch, WriteOptions};
use hotswap_report::limit::Charge;
use hotswap_report::{Diagnostic, codes};
use indicatif::{ProgressBar, ProgressStyle};
use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// A file to change.
pub(crate) struct FileJob<'j> {
    pub(crate) input: &'j InputFile,
    /// Path of the input, and path of the result.
    pub(crate) file: &'j Path,
    pub(crate) output: &'j Path,
    pub(crate) placement: Placement,
    pub(crate) threads: usize,
    /// The verb for the progress bar.
    pub(crate) verb: &'static str,
    /// Memory that an uncompressed container takes while it is processed, in quarters of its size.
    pub(crate) quarters: u64,
    /// Whether large compressed bundles are unpacked into files ([`hotswap_bundle::parse_aside`]).
    pub(crate) streams: bool,
    /// Whether the file is one of many, so that the progress is shown elsewhere.
    pub(crate) is_quiet: bool,
}

/// The result of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WrittenFile {
    pub(crate) size: u64,
    /// Whether its content is another one than that of the input.
    pub(crate) is_changed: bool,
}

/// A further step with the new file, after it was checked and before it gets its name.
pub(crate) type BeforeNamed<'b> = dyn Fn(&InputFile) -> Result<(), Diagnostic> + Sync + 'b;

/// The result of the operation on one container.
pub(crate) struct ContainerResult<'a, T> {
    /// Its new bytes, where it changes.
    pub(crate) new: Option<FileRope<'a>>,
    /// Their expected summary in the new file, unless they have been read already.
    pub(crate) expected: Option<BundleSummary>,
    /// The operation's own report.
    pub(crate) said: T,
}

/// Bytes of a draft that are in the scratch file.
struct ScratchPart {
    /// Their offset in the draft.
    at: u64,
    /// Their place in the scratch file.
    range: Range<usize>,
}

/// New bytes until they are written.
struct PendingContainer<'a> {
    draft: FileRope<'a>,
    /// The parts whose bytes are in the scratch file.
    aside: Vec<ScratchPart>,
    expected: Option<BundleSummary>,
}

pub(crate) struct ProcessedContainer<'a, T> {
    pub(crate) found: FoundContainer<'a>,
    /// Its new size, where it changes.
    pub(crate) size: Option<u64>,
    pub(crate) said: T,
    new: Option<PendingContainer<'a>>,
}

/// The processed containers of a file.
pub(crate) struct HandledFile<'a, T> {
    pub(crate) done: Vec<ProcessedContainer<'a, T>>,
    scratch: Option<InputFile>,
}

/// A thread's result; empty until it is done.
type ResultSlot<'a, T> = Mutex<Option<Result<ProcessedContainer<'a, T>, Diagnostic>>>;

/// The operation on a container; its number counts from 0.
type ContainerStep<'s, 'a, T> =
    dyn Fn(usize, &FoundContainer<'a>) -> Result<ContainerResult<'a, T>, Diagnostic> + Sync + 's;

/// Memory in quarters of the size for containers that are read from mapped memory, one entry after the other.
pub(crate) const MAPPED: u64 = 2;
/// Like [`MAPPED`], for containers that are read whole and become smaller.
pub(crate) const READ: u64 = 5;
/// Like [`MAPPED`], for containers that are unpacked or packed: the old and the new contents, and
/// data derived from them.
pub(crate) const PACKED: u64 = 10;
/// Memory of a large compressed bundle that is unpacked into a file: pages in use, libzstd's tables, the packed bytes. Half
/// of the budget, so that nothing is unpacked beside two of them.
const STREAMED: u64 = 72 << 20;
/// From this size on, new bytes are kept in the scratch file.
const LARGE: usize = 64 << 10;

/// The requested number of threads; one for each core by default.
pub(crate) fn threads(wanted: Option<u16>) -> usize {
    wanted.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// Calls `take` in this many threads at once. Where the system does not have any more threads, fewer are used.
pub(crate) fn run_on_threads(count: usize, take: impl Fn() + Sync) {
    thread::scope(|scope| {
        (1..count).all(|_| thread::Builder::new().spawn_scoped(scope, &take).is_ok());
        take();
    });
}

/// The file without its device code.
pub(crate) fn host_part<'a>(file: &'a [u8], containers: &[FoundContainer<'_>]) -> HostPart<'a> {
    HostPart::without_containers(file, containers.iter().map(range_in_file))
}

fn range_in_file(found: &FoundContainer<'_>) -> Range<usize> {
    let start = usize::try_from(found.place.file_offset).unwrap_or(usize::MAX);
    start..start.saturating_add(found.bytes.len())
}

impl<'j> FileJob<'j> {
    /// Finds the containers of the file.
    pub(crate) fn containers(&self) -> Result<Vec<FoundContainer<'j>>, Diagnostic> {
        let contents = find_containers(self.input);
        if let Some(problem) = contents.problems.first() {
            return Err(problem.clone());
        }
        if contents.found.is_empty() {
            return Err(contents.missing_container());
        }
        let mut charge = Charge::default();
        for found in &contents.found {
            charge
                .add(found.bytes.len(), found.expands_to())
                .map_err(|error| error.in_entry(found.place.to_string()))?;
        }
        Ok(contents.found)
    }

    /// Runs `step` on every container.
    pub(crate) fn work<T: Send>(
        &self,
        found: Vec<FoundContainer<'j>>,
        step: &ContainerStep<'_, 'j, T>,
    ) -> Result<HandledFile<'j, T>, Diagnostic> {
        let scratch = if self.input.len() < LARGE { None } else { Some(Scratch::beside_output(self.output)?) };
        let (progress, budget) = (self.progress(&found), memory_budget::shared());
        let next = AtomicUsize::new(0);
        let slots: Vec<ResultSlot<'j, T>> = found.iter().map(|_| Mutex::new(None)).collect();
        let take = || {
            while let Some((number, container, slot)) = pick(&found, &slots, &next) {
                let taken = budget.take(self.weight(container));
                let done = step(number, container).and_then(|done| self.keep(container, done, scratch.as_ref()));
                drop(taken);
                self.input.release(container.bytes);
                progress.inc(container.bytes.len() as u64);
                // The lock is poisoned only where a thread has panicked, and then the scope panics, too.
                if let Ok(mut slot) = slot.lock() {
                    *slot = Some(done.map_err(|error| error.in_entry(container.place.to_string())));
                }
            }
        };
        let count = self.threads.min(found.len());
        // A large compressed container is read once, from its start to its end.
        if self.streams {
            self.input.while_released(|| run_on_threads(count, take));
        } else {
            run_on_threads(count, take);
        }
        progress.finish_and_clear();
        let scratch = scratch.map(|scratch| scratch.read()).transpose()?;
        Ok(HandledFile { done: collect(slots)?, scratch })
    }

    /// Bytes of memory that a container may take while it is processed.
    fn weight(&self, found: &FoundContainer<'_>) -> u64 {
        let is_packed = found.expands_to() > 0;
        if self.streams && found.expands_to() >= hotswap_bundle::STREAMED_FROM {
            return STREAMED;
        }
        found.plain_size() / 4 * if is_packed { PACKED.max(self.quarters) } else { self.quarters }
    }

    fn keep<T>(
        &self,
        found: &FoundContainer<'j>,
        done: ContainerResult<'j, T>,
        scratch: Option<&Scratch>,
    ) -> Result<ProcessedContainer<'j, T>, Diagnostic> {
        let size = done.new.as_ref().map(FileRope::size);
        let new = done.new.map(|draft| self.put_aside(draft, done.expected, scratch)).transpose()?;
        Ok(ProcessedContainer { found: found.clone(), size, said: done.said, new })
    }

    /// Moves large parts that do not come from the input to the scratch file.
    fn put_aside(
        &self,
        mut draft: FileRope<'j>,
        expected: Option<BundleSummary>,
        scratch: Option<&Scratch>,
    ) -> Result<PendingContainer<'j>, Diagnostic> {
        let mut aside = Vec::new();
        let Some(scratch) = scratch else { return Ok(PendingContainer { draft, aside, expected }) };
        for (at, part) in draft.parts().filter(|(_, part)| part.len() >= LARGE && !self.input.holds(part)) {
            aside.push(ScratchPart { at, range: scratch.keep(part)? });
        }
        aside.iter().for_each(|part| draft.clear(part.at..part.at + part.range.len() as u64));
        Ok(PendingContainer { draft, aside, expected })
    }

    /// Writes the new file, reads it again and moves it to the output path.
    pub(crate) fn write<T>(&self, work: &HandledFile<'j, T>) -> Result<WrittenFile, Diagnostic> {
        self.write_with(work, &|_| Ok(()))
    }

    /// As [`Job::write`], with a further step before the file gets its name. A file that would be replaced by its own
    /// content is not touched.
    pub(crate) fn write_with<T>(
        &self,
        work: &HandledFile<'j, T>,
        before_named: &BeforeNamed<'_>,
    ) -> Result<WrittenFile, Diagnostic> {
        let is_changed = work.is_changed();
        if !is_changed && hotswap_files::is_same_place(self.file, self.output)? {
            return Ok(WrittenFile { size: self.input.len() as u64, is_changed });
        }
        self.write_new(work, before_named).map(|size| WrittenFile { size, is_changed })
    }

    fn write_new<T>(&self, work: &HandledFile<'j, T>, before_named: &BeforeNamed<'_>) -> Result<u64, Diagnostic> {
        if is_kernel_archive(self.input) {
            return self.write_archive(work, before_named).map_err(|error| error.in_file(self.file));
        }
        let exchanges = work.exchanges();
        let draft = hotswap_bundle::draft_with_exchanges(self.input, &exchanges);
        let draft = draft.map_err(|error| error.in_file(self.file))?;
        let sources: Vec<&InputFile> = [self.input].into_iter().chain(&work.scratch).collect();
        let parts = draft.parts();
        let size = draft.size();
        let how = WriteOptions { sources: &sources, threads: self.threads, placement: self.placement };
        hotswap_files::replace_parts(self.output, (size, self.file), how, parts, |new| {
            let checked = self.check_new(work, &exchanges, new).and_then(|()| before_named(new));
            checked.map_err(|error| error.in_file(self.file))
        })?;
        Ok(size)
    }

    fn check_new<T>(
        &self,
        work: &HandledFile<'j, T>,
        exchanges: &[BundleReplacement<'_>],
        new: &InputFile,
    ) -> Result<(), Diagnostic> {
        // The writer has compared every part already.
        hotswap_bundle::verify_with(self.input, exchanges, new, DraftFacts::Contents)?;
        work.check(new)?;
        accepted::check_new_file(self.input, new, self.threads)
    }

    /// As [`Job::write_with`], for a kernel archive, whose fat binaries are its containers.
    fn write_archive<T>(&self, work: &HandledFile<'j, T>, before_named: &BeforeNamed<'_>) -> Result<u64, Diagnostic> {
        let mut archive = KernelArchive::parse(self.input)?;
        for handled in &work.done {
            let Some(kept) = &handled.new else { continue };
            let bytes = work.whole(kept).to_vec();
            kept.expected.as_ref().map_or(Ok(()), |expected| expected.check_written(&bytes))?;
            archive.set_bundle(handled.found.part_name(), &hotswap_bundle::parse(&bytes)?.0)?;
        }
        archive.drop_empty();
        let draft = archive.to_draft()?;
        let how = WriteOptions { sources: &[self.input], threads: self.threads, placement: self.placement };
        hotswap_files::replace_parts(self.output, (draft.size(), self.file), how, draft.parts(), |new: &InputFile| {
            archive.check_written(new)?;
            accepted::check_new_file(self.input, new, self.threads)?;
            before_named(new)
        })?;
        Ok(draft.size())
    }

    /// A progress bar on standard error, if that is a terminal; it counts bytes, because bundles differ in size.
    fn progress(&self, found: &[FoundContainer<'_>]) -> ProgressBar {
        if self.is_quiet {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::new(found.iter().map(|container| container.bytes.len() as u64).sum());
        match ProgressStyle::with_template("{prefix} {bar:40} {bytes}/{total_bytes} {eta}") {
            Ok(style) => bar.with_style(style).with_prefix(self.verb),
            Err(_) => bar,
        }
    }
}

impl<'a, T> HandledFile<'a, T> {
    /// The new bytes of the only container.
    pub(crate) fn only(&self) -> Option<FileRope<'_>> {
        match &self.done[..] {
            [handled] => handled.new.as_ref().map(|kept| self.whole(kept)),
            _ => None,
        }
    }

    /// Whether a container gets other bytes than it has.
    pub(crate) fn is_changed(&self) -> bool {
        self.done.iter().any(|handled| {
            let new = handled.new.as_ref().map(|kept| self.whole(kept));
            new.is_some_and(|new| !is_same_content(&new, handled.found.bytes))
        })
    }

    fn exchanges(&self) -> Vec<BundleReplacement<'_>> {
        let changed = self.done.iter().filter_map(|handled| Some((&handled.found, handled.new.as_ref()?)));
        changed
            .map(|(found, kept)| BundleReplacement { offset: found.place.file_offset, new: self.whole(kept) })
            .collect()
    }

    fn whole<'w>(&'w self, kept: &'w PendingContainer<'a>) -> FileRope<'w> {
        let mut draft: FileRope<'w> = kept.draft.clone();
        for ScratchPart { at, range } in &kept.aside {
            let bytes = self.scratch.as_ref().and_then(|scratch| scratch.get(range.clone()));
            draft.overwrite_at(*at, bytes.unwrap_or_default());
        }
        draft
    }

    /// Whether the changed containers of the new file read as expected. Those that became empty are gone.
    fn check(&self, new: &[u8]) -> Result<(), Diagnostic> {
        let staying = self.done.iter().filter(|handled| handled.size != Some(0));
        for (handled, found) in staying.zip(&find_containers(new).found) {
            if let Some(expected) = handled.new.as_ref().and_then(|kept| kept.expected.as_ref()) {
                expected.check_written(found.bytes).map_err(|error| error.in_entry(handled.found.place.to_string()))?;
            }
        }
        Ok(())
    }
}

/// Gaps between the parts of a draft are zeros.
fn is_same_content(draft: &FileRope<'_>, old: &[u8]) -> bool {
    if draft.size() != old.len() as u64 {
        return false;
    }
    let mut end = 0;
    let is_same = draft.parts().all(|(at, part)| {
        let at = at as usize;
        let gap = &old[end..at];
        end = at + part.len();
        gap.iter().all(|byte| *byte == 0) && &old[at..end] == part
    });
    is_same && old[end..].iter().all(|byte| *byte == 0)
}

fn pick<'f, F, R>(found: &'f [F], results: &'f [R], next: &AtomicUsize) -> Option<(usize, &'f F, &'f R)> {
    let index = next.fetch_add(1, Ordering::Relaxed);
    Some((index, found.get(index)?, results.get(index)?))
}

fn collect<T>(slots: Vec<ResultSlot<'_, T>>) -> Result<Vec<ProcessedContainer<'_, T>>, Diagnostic> {
    slots.into_iter().map(|slot| slot.into_inner().ok().flatten().ok_or_else(undone_container_error)?).collect()
}

fn undone_container_error() -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, "a thread left a container undone")
}
