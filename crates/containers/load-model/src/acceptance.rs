//! Whether a container is one that HIP, comgr and LLVM read, and whether HotSwap's record of it is true.
//!
//! An entry is judged by its ID. One for an AMD GPU holds code or bitcode of that GPU, and where there is a record, it has a row
//! for the code. Entries for the host, SPIR-V, OpenMP, SYCL and other kinds are those of other tools: they need no row.
//!
//! Code for a processor that HotSwap does not know, under an ID that says so, is not a fault: a warning tells that it is passed over.
//!
//! Invariants: `hotswap verify` and all writers ask these functions, so nothing is written that `verify` rejects. A record is
//! trusted only as far as its hashes match.
//!
//! Absent on purpose: the way from a host program to its containers ([`crate::registration`]).

use crate::container::{LoadableContainer, LoadableEntry, ReadDepth};
use crate::offload_images;
use hotswap_bundle::{
    ALIGNMENT, Bundle, BundleEntry, DeviceContents, EntryId, FoundContainer, HashState, ImageKind, OffloadKind,
    TABLE_LIMIT,
};
use hotswap_code_object::CodeObject;
use hotswap_files::MemoryLender;
use hotswap_report::{Diagnostic, EntryRecord, Record, Severity, codes};
use hotswap_targets::TargetId;
use sha2::{Digest, Sha256};
use std::cell::OnceCell;

/// An entry of a container.
#[derive(Debug)]
pub struct JudgedEntry<'e> {
    /// Entry ID; none for a code object on its own.
    pub id: Option<&'e str>,
    pub data: &'e [u8],
    sha256: OnceCell<String>,
    object: OnceCell<Result<CodeObject<'e>, Diagnostic>>,
}

/// The entries of a container, and HotSwap's record of them.
#[derive(Debug)]
pub struct JudgedContainer<'c> {
    /// The record, if there is one.
    pub record: Option<&'c Record>,
    pub entries: Vec<JudgedEntry<'c>>,
}

/// SHA-256 as hexadecimal digits, as HotSwap's records have it.
#[must_use]
pub fn sha256_of(bytes: &[u8]) -> String {
    hotswap_report::hex_digits(&Sha256::digest(bytes))
}

impl<'e> JudgedEntry<'e> {
    /// An entry that was not looked at yet.
    pub fn new(id: Option<&'e str>, data: &'e [u8]) -> Self {
        Self { id, data, sha256: OnceCell::new(), object: OnceCell::new() }
    }

    /// The SHA-256 of its bytes, as hexadecimal digits.
    pub fn sha256(&self) -> &str {
        self.sha256.get_or_init(|| sha256_of(self.data))
    }

    /// Its code object, which is parsed once.
    fn object(&self) -> &Result<CodeObject<'e>, Diagnostic> {
        self.object.get_or_init(|| CodeObject::parse(self.data))
    }

    /// The kernels of its metadata, where it is a code object.
    fn kernels(&self) -> Option<Vec<String>> {
        let object = self.object.get()?.as_ref().ok()?;
        Some(object.note().kernels.iter().map(|kernel| kernel.name.to_owned()).collect())
    }

    /// The target ID of its ID, or of its code where it lacks an ID.
    fn stated_target(&self) -> Option<String> {
        match self.id {
            Some(id) => EntryId::parse(id).ok()?.target().map(str::to_owned),
            None => self.object().as_ref().ok().map(|object| object.target_id().to_string()),
        }
    }

    /// The target ID of the AMD GPU that it is for, where its ID names one.
    fn named_gpu(&self) -> Option<String> {
        let id = EntryId::parse(self.id?).ok().filter(EntryId::is_amdgpu)?;
        id.target().filter(|target| target.starts_with("gfx")).map(str::to_owned)
    }

    fn is_for(&self, wanted: &str) -> bool {
        let target = self.id.and_then(|id| EntryId::parse(id).ok()?.target().map(str::to_owned));
        let Some(target) = target else { return false };
        match (target.parse::<TargetId>(), wanted.parse::<TargetId>()) {
            (Ok(one), Ok(other)) => one == other,
            _ => target == wanted,
        }
    }

    /// The faults of its content.
    fn content_faults(&self) -> Vec<Diagnostic> {
        let named = self.named_gpu();
        match (ImageKind::of(self.data), &named) {
            (ImageKind::CodeObject, _) => self.code_faults(),
            (ImageKind::SpirV | ImageKind::OtherElf | ImageKind::Unknown, Some(gpu)) => {
                vec![malformed_entry(format!(
                    "its ID names {gpu}, and its bytes are neither code of an AMD GPU nor bitcode"
                ))]
            }
            _ => Vec::new(),
        }
    }

    fn code_faults(&self) -> Vec<Diagnostic> {
        let object = match self.object() {
            Ok(object) => object,
            Err(error) if self.is_unknown_code() => {
                let what = format!("{}; it is passed over", error.what);
                return vec![Diagnostic { severity: Severity::Warning, what, ..error.clone() }];
            }
            Err(error) => return vec![error.clone()],
        };
        let target = self.id.and_then(|id| EntryId::parse(id).ok()?.target()?.parse::<TargetId>().ok());
        let found = object.target_id();
        let other = target.filter(|named| named.processor != found.processor);
        other
            .map(|named| malformed_entry(format!("the entry names {named}, the code object is for {found}")))
            .into_iter()
            .collect()
    }

    /// Whether both its ID and its header name a processor that HotSwap does not know.
    fn is_unknown_code(&self) -> bool {
        let id = self.id.and_then(|id| EntryId::parse(id).ok());
        id.and_then(|id| Some(id.target()?.parse::<TargetId>().is_err())).unwrap_or(false)
            && matches!(self.object(), Err(error) if error.code == codes::UNKNOWN_MACHINE)
    }

    /// Whether its code was read.
    fn is_known_code(&self) -> bool {
        ImageKind::of(self.data) == ImageKind::CodeObject && self.object().is_ok()
    }

    /// Whether a record of its container must have a row for it.
    fn needs_row(&self) -> bool {
        let is_code = matches!(ImageKind::of(self.data), ImageKind::CodeObject | ImageKind::DeviceObject);
        is_code && (self.id.is_none() || self.named_gpu().is_some() && !self.is_unknown_code())
    }
}

impl JudgedContainer<'_> {
    /// The row of an entry. A code object on its own lacks an ID, and its record has one row.
    fn record_row(&self, entry: &JudgedEntry<'_>) -> Option<&EntryRecord> {
        self.record?.entries.iter().find(|row: &&EntryRecord| entry.id.is_none_or(|id| id == row.id))
    }

    /// The faults of an entry, and those of its row.
    pub fn entry_faults(&self, entry: &JudgedEntry<'_>) -> Vec<Diagnostic> {
        let mut faults = entry.content_faults();
        match self.record_row(entry) {
            Some(row) => {
                faults.extend(wrong_hash(row, entry));
                faults.extend(self.wrong_source(row));
            }
            None if self.record.is_some() && entry.needs_row() => {
                faults.push(malformed_entry("the entry is not in HotSwap's record"));
            }
            None => {}
        }
        faults.into_iter().map(|fault| if let Some(id) = entry.id { fault.in_entry(id) } else { fault }).collect()
    }

    /// The source may have been removed since (`strip`-like tools); if it is there, its hash must match.
    fn wrong_source(&self, row: &EntryRecord) -> Option<Diagnostic> {
        let (source, expected) = (row.source.as_ref()?, row.source_sha256.as_ref()?);
        let entry = self.entries.iter().find(|entry| entry.is_for(source))?;
        let what =
            format!("it was made from a {source} with the SHA-256 {expected}; the one in the bundle has another");
        (entry.sha256() != *expected).then(|| malformed_entry(what))
    }

    /// Entries of the record that the container does not have.
    pub fn missing_entries(&self) -> Vec<Diagnostic> {
        let rows = self.record.iter().flat_map(|record| &record.entries);
        let missing = rows.filter(|row| !has_recorded_entry(row, self));
        missing
            .map(|row| malformed_entry("the record names an entry that the bundle does not have").in_entry(&row.id))
            .collect()
    }

    fn faults(&self) -> Vec<Diagnostic> {
        let mut faults: Vec<Diagnostic> = self.entries.iter().flat_map(|entry| self.entry_faults(entry)).collect();
        faults.extend(self.missing_entries());
        faults
    }
}

fn has_recorded_entry(row: &&EntryRecord, container: &JudgedContainer<'_>) -> bool {
    container.entries.iter().any(|entry| container.record_row(entry).is_some_and(|own| own.id == row.id))
}

fn wrong_hash(row: &EntryRecord, entry: &JudgedEntry<'_>) -> Option<Diagnostic> {
    if row.sha256 == entry.sha256() {
        return None;
    }
    Some(malformed_entry(format!(
        "its bytes have the SHA-256 {}, HotSwap's record says {}",
        entry.sha256(),
        row.sha256
    )))
}

/// A container, judged and read for the walk of HIP's way to it.
#[derive(Debug, Default)]
pub struct ContainerJudgement {
    /// Faults and warnings, each with the container's position.
    pub faults: Vec<Diagnostic>,
    /// HotSwap's record, if there is one.
    pub record: Option<Record>,
    /// The target IDs of its images.
    pub targets: Vec<String>,
    /// Whether it has a code object that was read.
    pub has_known_code: bool,
    /// The container as HIP sees it; `None` where it cannot be read.
    pub loadable: Option<LoadableContainer>,
}

impl ContainerJudgement {
    /// The faults that are errors.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.faults.iter().filter(|fault| fault.severity == Severity::Error)
    }
}

/// Judges containers, all of which are in memory at once. Each is read and, where it is compressed, unpacked once; the hashes of
/// compressed ones are computed side by side. Their content is in buffers of `lender`'s if there is one.
#[must_use]
pub fn judge_containers(
    found: &[&FoundContainer<'_>],
    lender: Option<&'static MemoryLender>,
) -> Vec<ContainerJudgement> {
    let bundles: Vec<&[u8]> = found.iter().filter(|one| one.form.is_bundle()).map(|one| one.bytes).collect();
    let mut parsed = hotswap_bundle::parse_all_lenient(&bundles, lender).into_iter();
    let judged = found.iter().map(|one| {
        let bundle = if one.form.is_bundle() { parsed.next() } else { None };
        judge_read(one, bundle)
    });
    judged.collect()
}

/// Judges a container; compressed content is unpacked once, a large one into an unnamed file.
#[must_use]
pub fn judge_aside(found: &FoundContainer<'_>) -> ContainerJudgement {
    judge_read(found, found.form.is_bundle().then(|| hotswap_bundle::parse_aside(found.bytes)))
}

/// All errors of a container.
#[must_use]
pub fn container_errors(found: &FoundContainer<'_>) -> Vec<Diagnostic> {
    judge_aside(found).errors().cloned().collect()
}

/// Refuses new bytes that `hotswap verify` would reject, for bundles and code objects, which no host program leads to.
///
/// # Errors
/// The first fault: as it is where the input has it, too, else [`codes::VERIFY_FAILED`].
pub fn check_new_code(input: &[u8], new: &[u8]) -> Result<(), Diagnostic> {
    let Some(first) = code_errors(new).into_iter().next() else { return Ok(()) };
    if code_errors(input).iter().any(|fault| fault.what == first.what) {
        return Err(first);
    }
    Err(Diagnostic { code: codes::VERIFY_FAILED, advice: None, ..first })
}

fn code_errors(bytes: &[u8]) -> Vec<Diagnostic> {
    let contents = hotswap_bundle::find_containers(bytes);
    let mut faults = contents.problems;
    faults.retain(|fault| fault.severity == Severity::Error);
    faults.extend(contents.found.iter().flat_map(container_errors));
    faults
}

/// Judges a container; `bundle` is what was read, where it is one.
fn judge_read(
    found: &FoundContainer<'_>,
    bundle: Option<Result<(Bundle<'_>, usize), Diagnostic>>,
) -> ContainerJudgement {
    let judged = match bundle {
        Some(bundle) => bundle.map(|(bundle, _)| judge_bundle(found, &bundle)),
        None => found.read().map(|contents| judge_images(found, &contents)),
    };
    let mut judged =
        judged.unwrap_or_else(|error| ContainerJudgement { faults: vec![error], ..ContainerJudgement::default() });
    place_faults(&mut judged.faults, found);
    judged
}

/// Adds the container's position to the entry of each fault. Readers of containers name it themselves.
fn place_faults(faults: &mut [Diagnostic], found: &FoundContainer<'_>) {
    let place = found.place.to_string();
    for fault in faults {
        let entry = fault.place.entry.take().filter(|entry| *entry != place);
        fault.place.entry = Some(entry.map_or(place.clone(), |entry| format!("{place}: {entry}")));
    }
}

fn judge_bundle(found: &FoundContainer<'_>, bundle: &Bundle<'_>) -> ContainerJudgement {
    let entries = bundle.entries().iter().map(|entry| EntryPart { id: Some(&entry.id), data: &entry.data });
    let mut judged = judge_parts(found, &entries.collect::<Vec<_>>(), bundle.record());
    judged.faults.extend(bundle_faults(bundle));
    judged
}

fn judge_images(found: &FoundContainer<'_>, contents: &DeviceContents<'_>) -> ContainerJudgement {
    let images = contents.images.iter().map(|image| EntryPart { id: image.id.as_deref(), data: &image.data });
    let mut judged = judge_parts(found, &images.collect::<Vec<_>>(), contents.record.as_deref());
    judged.faults.extend(offload_images::check_images(found, container_errors));
    judged
}

/// An entry of a container that was read.
struct EntryPart<'e> {
    id: Option<&'e str>,
    data: &'e [u8],
}

impl EntryPart<'_> {
    /// The host's entry and empty ones are without code.
    fn is_judged(&self) -> bool {
        !self.data.is_empty() && !self.id.is_some_and(is_host)
    }
}

fn judge_parts(found: &FoundContainer<'_>, parts: &[EntryPart<'_>], record: Option<&[u8]>) -> ContainerJudgement {
    let (record, damage) = match record_of(record) {
        Ok(record) => (record, None),
        Err(error) => (None, Some(error)),
    };
    let entries = parts.iter().filter(|part| part.is_judged()).map(|part| JudgedEntry::new(part.id, part.data));
    let judged = JudgedContainer { record: record.as_ref(), entries: entries.collect() };
    let faults = damage.into_iter().chain(judged.faults()).collect();
    let targets = judged.entries.iter().filter_map(JudgedEntry::stated_target).collect();
    let has_known_code = judged.entries.iter().any(JudgedEntry::is_known_code);
    let mut kernels = judged.entries.iter().map(JudgedEntry::kernels);
    let entries = parts.iter().map(|part| {
        let kernels = if part.is_judged() { kernels.next().flatten() } else { None };
        LoadableEntry { kernels, ..LoadableEntry::of_image(part.id, part.data, ReadDepth::Headers) }
    });
    let loadable = Some(LoadableContainer::of_entries(found, entries.collect()));
    ContainerJudgement { faults, record, targets, has_known_code, loadable }
}

fn record_of(payload: Option<&[u8]>) -> Result<Option<Record>, Diagnostic> {
    let read = payload.map(Record::from_json).transpose();
    read.map_err(|error| malformed_entry(format!("HotSwap's record: {error}")))
}

fn is_host(id: &str) -> bool {
    EntryId::parse(id).is_ok_and(|id| *id.kind() == OffloadKind::Host)
}

fn malformed_entry(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, what)
}

/// Checks of the entry IDs as a set.
fn identity_faults(entries: &[BundleEntry<'_>]) -> Vec<Diagnostic> {
    let ids: Vec<EntryId> = entries.iter().filter_map(|entry| EntryId::parse(&entry.id).ok()).collect();
    let mut problems = Vec::new();
    if !ids.iter().any(|id| *id.kind() == OffloadKind::Host) {
        let warning = Diagnostic::warning(codes::MALFORMED, "it has no entry for the host");
        problems
            .push(warning.advise("clang-offload-bundler 22 crashes on such a bundle; bundle with an empty host file"));
    }
    for id in &ids {
        match id.kind() {
            OffloadKind::Other(word) => {
                let what = format!("`{word}` is no kind of entry that HIP looks at");
                problems.push(Diagnostic::warning(codes::MALFORMED, what).in_entry(id.as_str()));
            }
            OffloadKind::Hip | OffloadKind::HipV4 if id.target().is_none() => {
                problems.push(malformed_entry("the ID names no target").in_entry(id.as_str()));
            }
            _ => {}
        }
    }
    let targets: Vec<TargetId> = ids.iter().filter_map(|id| id.target()?.parse().ok()).collect();
    let xnack = find_mixed_processor(|target| target.xnack.is_some(), &targets).map(|processor| (processor, "xnack"));
    let sramecc =
        find_mixed_processor(|target| target.sramecc.is_some(), &targets).map(|processor| (processor, "sramecc"));
    problems.extend(xnack.into_iter().chain(sramecc).map(|(processor, feature)| {
        let what = format!("{} is listed with and without {feature}", processor.name);
        malformed_entry(what).advise("name the feature in all entries of that processor or in none, as clang demands")
    }));
    problems
}

fn find_mixed_processor(states: fn(&TargetId) -> bool, targets: &[TargetId]) -> Option<&hotswap_targets::Processor> {
    let some = targets.iter().filter(|target| states(target));
    some.map(|target| target.processor).find(|one| targets.iter().any(|id| id.processor == *one && !states(id)))
}

/// The faults of a bundle's layout: entry IDs, duplicate, empty and overlapping entries, alignment, the length of its table.
#[must_use]
pub fn bundle_faults(bundle: &Bundle<'_>) -> Vec<Diagnostic> {
    let mut problems = Vec::new();
    if bundle.hash() == HashState::Wrong {
        problems.push(malformed_entry("the hash in its header is not that of its content"));
    }
    let table: u64 = 32 + bundle.entries().iter().map(|entry| 24 + entry.id.len() as u64).sum::<u64>();
    if bundle.compression().is_none() && table > TABLE_LIMIT {
        problems.push(Diagnostic::error(codes::BUNDLE_FULL, format!("its table has {table} bytes")));
    }
    let entries = bundle.entries();
    problems.extend(identity_faults(entries));
    for (number, entry) in entries.iter().enumerate() {
        let kind = match EntryId::parse(&entry.id) {
            Ok(id) => Some(id.kind().clone()),
            Err(error) => {
                push_entry_problem(error, &mut problems, entry);
                None
            }
        };
        if entries[..number].iter().any(|other| other.id == entry.id) {
            push_entry_problem(malformed_entry("the ID is there twice"), &mut problems, entry);
        }
        if entry.data.is_empty() && kind.is_some_and(|kind| kind != OffloadKind::Host) {
            push_entry_problem(malformed_entry("the entry is empty"), &mut problems, entry);
        }
        let (start, end) = data_address_range(&entry.data);
        let overlapping = entries[..number].iter().find(|other| {
            let (from, to) = data_address_range(&other.data);
            start < to && from < end && (start, end) != (from, to)
        });
        if let Some(other) = overlapping {
            push_entry_problem(malformed_entry(format!("the entry overlaps with {}", other.id)), &mut problems, entry);
        }
    }
    // HIP maps code objects from the file; what it decompresses, and what is linked first, is somewhere else then.
    let is_mapped = bundle.compression().is_none()
        && entries.iter().any(|entry| ImageKind::of(&entry.data) == ImageKind::CodeObject);
    if bundle.alignment() < ALIGNMENT && is_mapped {
        let what = format!("its entries are aligned to {} bytes; HIP expects {ALIGNMENT}", bundle.alignment());
        let warning = Diagnostic::warning(codes::MALFORMED, what);
        problems.push(warning.advise("bundle with -bundle-align=4096, or change it with `hotswap`"));
    }
    problems
}

fn push_entry_problem(problem: Diagnostic, problems: &mut Vec<Diagnostic>, entry: &BundleEntry<'_>) {
    problems.push(problem.in_entry(&entry.id))
}

fn data_address_range(data: &[u8]) -> (usize, usize) {
    (data.as_ptr() as usize, data.as_ptr() as usize + data.len())
}
