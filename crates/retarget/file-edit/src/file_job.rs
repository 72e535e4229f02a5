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

use crate::{memory_budget, new_file};
use hotswap_bundle::linked::BundleReplacement;
use hotswap_bundle::{
    BundleSummary, DraftFacts, FileRope, FoundContainer, KernelArchive, find_containers, is_kernel_archive,
};
use hotswap_compat::names::HostPart;
use hotswap_files::{InputFile, Placement, Scratch, WriteOptions};
use hotswap_report::Diagnostic;
use hotswap_report::limit::Charge;
use std::ops::Range;
use std::path::Path;
use std::thread;

/// A file to change.
pub struct FileJob<'j> {
    pub input: &'j InputFile,
    /// Path of the input, and path of the result.
    pub file: &'j Path,
    pub output: &'j Path,
    pub placement: Placement,
    pub threads: usize,
    /// Memory that an uncompressed container takes while it is processed, in quarters of its size.
    pub quarters: u64,
    /// Whether large compressed bundles are unpacked into files ([`hotswap_bundle::parse_aside`]).
    pub streams: bool,
    pub progress: &'j dyn EditProgress,
}

/// Hears how far a job is; it counts bytes, because containers differ in size.
pub trait EditProgress: Sync {
    /// The size of all containers together, before the first one.
    fn begin(&self, bytes: u64);
    /// The size of a container that is done.
    fn advance(&self, bytes: u64);
    /// All containers of the file are done.
    fn finish(&self);
}

/// For a file that is one of many, so that the progress is shown elsewhere.
pub struct NoProgress;

impl EditProgress for NoProgress {
    fn begin(&self, _: u64) {}
    fn advance(&self, _: u64) {}
    fn finish(&self) {}
}

/// The result of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenFile {
    pub size: u64,
    /// Whether its content is another one than that of the input.
    pub is_changed: bool,
}

/// A further step with the new file, after it was checked and before it gets its name.
pub type BeforeNamed<'b> = dyn Fn(&InputFile) -> Result<(), Diagnostic> + Sync + 'b;

/// The result of the operation on one container.
pub struct ContainerResult<'a, T> {
    /// Its new bytes, where it changes.
    pub new: Option<FileRope<'a>>,
    /// Their expected summary in the new file, unless they have been read already.
    pub expected: Option<BundleSummary>,
    /// The operation's own report.
    pub said: T,
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

pub struct ProcessedContainer<'a, T> {
    pub found: FoundContainer<'a>,
    /// Its new size, where it changes.
    pub size: Option<u64>,
    pub said: T,
    new: Option<PendingContainer<'a>>,
}

/// The processed containers of a file.
pub struct HandledFile<'a, T> {
    pub done: Vec<ProcessedContainer<'a, T>>,
    scratch: Option<InputFile>,
}

/// The operation on a container; its number counts from 0.
type ContainerStep<'s, 'a, T> =
    dyn Fn(usize, &FoundContainer<'a>) -> Result<ContainerResult<'a, T>, Diagnostic> + Sync + 's;

/// Memory in quarters of the size for containers that are read from mapped memory, one entry after the other.
pub const MAPPED: u64 = 2;
/// Like [`MAPPED`], for containers that are read whole and become smaller.
pub const READ: u64 = 5;
/// Like [`MAPPED`], for containers that are unpacked or packed: the old and the new contents, and
/// data derived from them.
pub const PACKED: u64 = 10;
/// Memory of a large compressed bundle that is unpacked into a file: pages in use, libzstd's tables, the packed bytes. Half
/// of the budget, so that nothing is unpacked beside two of them.
const STREAMED: u64 = 72 << 20;
/// From this size on, new bytes are kept in the scratch file.
const LARGE: usize = 64 << 10;

/// The requested number of threads; one for each core by default.
pub fn thread_count(wanted: Option<u16>) -> usize {
    wanted.map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// The file without its device code.
pub fn host_part<'a>(file: &'a [u8], containers: &[FoundContainer<'_>]) -> HostPart<'a> {
    HostPart::without_containers(file, containers.iter().map(range_in_file))
}

fn range_in_file(found: &FoundContainer<'_>) -> Range<usize> {
    let start = usize::try_from(found.place.file_offset).unwrap_or(usize::MAX);
    start..start.saturating_add(found.bytes.len())
}

impl<'j> FileJob<'j> {
    /// Finds the containers of the file.
    ///
    /// # Errors
    /// A file without containers, or with a damaged one.
    pub fn containers(&self) -> Result<Vec<FoundContainer<'j>>, Diagnostic> {
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
    ///
    /// # Errors
    /// The first failure in the order of the file, whichever came first in time.
    pub fn process<T: Send>(
        &self,
        found: Vec<FoundContainer<'j>>,
        step: &ContainerStep<'_, 'j, T>,
    ) -> Result<HandledFile<'j, T>, Diagnostic> {
        let scratch = if self.input.len() < LARGE { None } else { Some(Scratch::beside_output(self.output)?) };
        self.progress.begin(found.iter().map(|container| container.bytes.len() as u64).sum());
        // A large compressed container is read once, from its start to its end.
        let done = if self.streams {
            self.input.while_released(|| self.process_all(&found, step, scratch.as_ref()))
        } else {
            self.process_all(&found, step, scratch.as_ref())
        };
        self.progress.finish();
        let scratch = scratch.map(|scratch| scratch.read()).transpose()?;
        Ok(HandledFile { done: done.into_iter().collect::<Result<_, _>>()?, scratch })
    }

    fn process_all<T: Send>(
        &self,
        found: &[FoundContainer<'j>],
        step: &ContainerStep<'_, 'j, T>,
        scratch: Option<&Scratch>,
    ) -> Vec<Result<ProcessedContainer<'j, T>, Diagnostic>> {
        hotswap_files::on_threads(self.threads, found.len(), |number| {
            let container = &found[number];
            let taken = memory_budget::shared().take(self.weight(container));
            let done = step(number, container).and_then(|done| self.keep(container, done, scratch));
            drop(taken);
            self.input.release(container.bytes);
            self.progress.advance(container.bytes.len() as u64);
            done.map_err(|error| error.in_entry(container.place.to_string()))
        })
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
    ///
    /// # Errors
    /// As [`FileJob::write_with`].
    pub fn write<T>(&self, work: &HandledFile<'j, T>) -> Result<WrittenFile, Diagnostic> {
        self.write_with(work, &|_| Ok(()))
    }

    /// As [`FileJob::write`], with a further step before the file gets its name. A file that would be replaced by its own
    /// content is not touched.
    ///
    /// # Errors
    /// A file that cannot be written, or that a check rejects, which then gets no name.
    pub fn write_with<T>(
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
        new_file::check_new_file(self.input, new, self.threads)
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
            new_file::check_new_file(self.input, new, self.threads)?;
            before_named(new)
        })?;
        Ok(draft.size())
    }
}

impl<'a, T> HandledFile<'a, T> {
    /// The new bytes of the only container.
    pub fn only(&self) -> Option<FileRope<'_>> {
        match &self.done[..] {
            [handled] => handled.new.as_ref().map(|kept| self.whole(kept)),
            _ => None,
        }
    }

    /// Whether a container gets other bytes than it has.
    pub fn is_changed(&self) -> bool {
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
