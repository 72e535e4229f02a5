//! A container that can be changed: a bundle or an OffloadBinary.

#![deny(clippy::wildcard_enum_match_arm)]

use crate::entry_record;
use crate::same_kernels::check_kernels;
use hotswap_bundle::{
    Bundle, BundleEntry, BundleSummary, Compression, ContainerForm, EntryId, EntrySize, FileRope, FoundContainer,
    ImageKind, KernelArchive, OffloadBinary, parse, split_record,
};
use hotswap_code_object::CodeObject;
use hotswap_load_model::choice::choose_linked_entry;
use hotswap_load_model::{DeviceModes, EntryChoice, LoadableContainer};
use hotswap_report::{Diagnostic, Record, codes};
use hotswap_targets::TargetId;
use std::fmt;
use std::path::Path;

/// A change to an entry, or to a whole container.
#[derive(Debug, Clone)]
pub struct EntryChange {
    pub what: &'static str,
    /// Entry ID; none where the whole container changed.
    pub id: Option<String>,
    /// Bytes before and after.
    pub sizes: [u64; 2],
}

impl fmt::Display for EntryChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [old, new] = self.sizes;
        match &self.id {
            Some(id) => write!(f, "{} {id}", self.what),
            None => write!(f, "{}: {old} to {new} bytes", self.what),
        }
    }
}

/// A new code object, with its provenance if HotSwap made it.
pub struct NewCode {
    code: Vec<u8>,
    record: Option<Record>,
}

impl NewCode {
    /// Code of another fat binary, with the record that this one has.
    pub fn of_entry(code: Vec<u8>, record: Option<Record>) -> Self {
        Self { code, record }
    }

    pub fn read(file: &Path) -> Result<Self, Diagnostic> {
        let bytes = hotswap_files::read_file(file)?;
        let (code, payload) = split_record(&bytes).map_err(|error| error.in_file(file))?;
        let record = payload.map(entry_record::of_file).transpose().map_err(|error| error.in_file(file))?;
        Ok(Self { code: code.to_vec(), record })
    }
}

pub struct OpenedContainer<'a> {
    content: OpenedContent<'a>,
    size: usize,
    /// The original entries, for queries after a change.
    before: Vec<String>,
    /// The original entries as HIP sees them.
    loadable: LoadableContainer,
    old_compression: Option<Compression>,
    /// The result, where it had to be laid out early.
    written: Option<NewContainerContent<'a>>,
}

/// New bytes, and their expected summary in the new file.
type NewContainerContent<'a> = (Option<FileRope<'a>>, Option<BundleSummary>);

enum OpenedContent<'a> {
    Bundle(Bundle<'a>),
    Offload(OffloadBinary<'a>, bool),
}

fn no_place(what: impl Into<String>) -> Diagnostic {
    Diagnostic::error(codes::NO_PLACE, what).advise("change the fat binary before it gets into this form")
}

/// Whether `name` is the entry's ID or its target ID.
fn is_named(id: &str, name: &str) -> bool {
    let target = EntryId::parse(id).ok().and_then(|id| id.target().map(str::to_owned));
    id == name || target.is_some_and(|one| is_same_target(one, name))
}

fn is_same_target(target: String, name: &str) -> bool {
    match (target.parse::<TargetId>(), name.parse::<TargetId>()) {
        (Ok(one), Ok(other)) => one == other,
        _ => target == name,
    }
}

/// A target without features covers all of its features.
fn covers(wanted: &TargetId, id: &str) -> Option<bool> {
    let target: TargetId = EntryId::parse(id).ok()?.target()?.parse().ok()?;
    let any = wanted.xnack.is_none() && wanted.sramecc.is_none();
    Some(if any { target.processor == wanted.processor } else { target == *wanted })
}

/// Entry IDs with the sizes of their entries.
fn sized_ids(content: &OpenedContent<'_>) -> Vec<EntrySize> {
    match content {
        OpenedContent::Bundle(bundle) => bundle.entries().iter().map(BundleEntry::id_and_size).collect(),
        OpenedContent::Offload(binary, _) => {
            let images = binary.images.iter();
            images.map(|image| (image.entry_id().unwrap_or_default(), image.data.len() as u64)).collect()
        }
    }
}

impl<'a> OpenedContainer<'a> {
    pub fn read(found: &FoundContainer<'a>) -> Result<Self, Diagnostic> {
        let content = match found.form {
            ContainerForm::Bundle | ContainerForm::CompressedBundle(_) => OpenedContent::Bundle(parse(found.bytes)?.0),
            ContainerForm::OffloadBinary(_) => OpenedContent::Offload(OffloadBinary::parse(found.bytes)?.0, false),
            ContainerForm::KernelArchive => OpenedContent::Bundle(KernelArchive::bundle_of(found)?),
            ContainerForm::Bare => return Err(no_place("a code object is no container")),
            ContainerForm::ObjectVariant => {
                return Err(no_place("device code in sections of its own (relocatable, old driver)"));
            }
        };
        let entries = sized_ids(&content);
        let before = entries.iter().map(|(id, _)| id.clone()).collect();
        let loadable = LoadableContainer::of_table(found, entries);
        let old_compression = match &content {
            OpenedContent::Bundle(bundle) => bundle.compression(),
            OpenedContent::Offload(..) => None,
        };
        Ok(Self { content, size: found.bytes.len(), before, loadable, old_compression, written: None })
    }

    fn ids(&self) -> Vec<String> {
        sized_ids(&self.content).into_iter().map(|(id, _)| id).collect()
    }

    /// Whether an entry of that name existed when the container was opened.
    pub fn had(&self, name: &str) -> bool {
        self.before.iter().any(|id| is_named(id, name))
    }

    /// Whether an entry is for that target, by its name or because HIP loads it there; features are ignored where
    /// the name has none.
    pub fn serves(&self, name: &str) -> bool {
        let Ok(wanted) = name.parse::<TargetId>() else { return false };
        let named = self.before.iter().any(|id| covers(&wanted, id) == Some(true));
        named || !self.loaded(&wanted).is_empty()
    }

    /// Numbers of the original entries that HIP loads on a GPU, in any of the modes that the target leaves open.
    fn loaded(&self, target: &TargetId) -> Vec<usize> {
        if target.processor.is_generic() {
            return Vec::new();
        }
        let modes = DeviceModes::of_target(*target).modes;
        let choices = modes.iter().map(|mode| choose_linked_entry(&self.loadable, mode));
        choices
            .filter_map(|choice| if let EntryChoice::Loaded { index, .. } = choice { Some(index) } else { None })
            .collect()
    }

    pub fn add(&mut self, name: &str, NewCode { code, record }: &NewCode) -> Result<EntryChange, Diagnostic> {
        let OpenedContent::Bundle(bundle) = &mut self.content else {
            return Err(no_place("an entry of an offload binary needs more than an ID"));
        };
        let id = full_id(bundle, name)?;
        if bundle.entries().iter().any(|entry| is_named(&entry.id, name) || entry.id == id) {
            return Err(Diagnostic::error(codes::TAKEN, "it cannot be added").in_entry(id));
        }
        check_code(&id, code)?;
        check_kernels(&id, code, bundle.entries().iter().map(|entry| &entry.data[..]))?;
        bundle.push(id.clone(), code.to_vec())?;
        entry_record::put(bundle, &id, code, record.as_ref())?;
        Ok(EntryChange { what: "added", id: Some(id), sizes: [0, code.len() as u64] })
    }

    /// As [`OpenedContainer::add`]; an entry with the same bytes may be there already.
    pub fn merge(&mut self, id: &str, new: &NewCode) -> Result<Option<EntryChange>, Diagnostic> {
        let there = match &self.content {
            OpenedContent::Bundle(bundle) => bundle.entry(id).map(|entry| entry.data[..] == new.code[..]),
            OpenedContent::Offload(..) => None,
        };
        match there {
            Some(true) => Ok(None),
            Some(false) => {
                let what = "two of the files have other code for the same target";
                Err(Diagnostic::error(codes::TAKEN, what)
                    .in_entry(id)
                    .advise("remove it from one of them (`hotswap remove`)"))
            }
            None => self.add(id, new).map(Some),
        }
    }

    pub fn replace(&mut self, name: &str, NewCode { code, record }: &NewCode) -> Result<EntryChange, Diagnostic> {
        let ids: Vec<String> = self.ids().into_iter().filter(|id| is_named(id, name)).collect();
        let [id] = &ids[..] else {
            return Err(if ids.is_empty() { missing_entry_error(name) } else { ambiguous(name, &ids) });
        };
        check_code(id, code)?;
        match &self.content {
            OpenedContent::Bundle(bundle) => {
                check_kernels(id, code, bundle.entries().iter().map(|entry| &entry.data[..]))
            }
            OpenedContent::Offload(binary, _) => {
                check_kernels(id, code, binary.images.iter().map(|image| &image.data[..]))
            }
        }?;
        let old = match &mut self.content {
            OpenedContent::Bundle(bundle) => {
                let old = bundle.entry(id).map_or(0, |entry| entry.data.len());
                bundle.set_data(id, code.to_vec());
                entry_record::put(bundle, id, code, record.as_ref())?;
                old
            }
            OpenedContent::Offload(binary, changed) => {
                *changed = true;
                let image = binary
                    .images
                    .iter_mut()
                    .find(|image| image.entry_id().as_ref() == Some(id))
                    .ok_or_else(|| missing_entry_error(name))?;
                std::mem::replace(&mut image.data, code.to_vec().into()).len()
            }
        };
        Ok(EntryChange { what: "replaced", id: Some(id.clone()), sizes: [old as u64, code.len() as u64] })
    }

    pub fn remove(&mut self, name: &str) -> Vec<EntryChange> {
        self.retain(|id| !is_named(id, name))
    }

    /// Entries for the host and for targets other than AMD GPUs stay, and where targets are kept, the entries that
    /// HIP loads on them.
    pub fn prune(&mut self, targets: &[TargetId], keeps: bool) -> Vec<EntryChange> {
        let loaded: Vec<usize> = targets.iter().filter(|_| keeps).flat_map(|target| self.loaded(target)).collect();
        let loaded: Vec<String> = loaded.iter().filter_map(|index| self.before.get(*index)).cloned().collect();
        self.retain(|id| {
            let covered: Vec<Option<bool>> = targets.iter().map(|target| covers(target, id)).collect();
            covered.contains(&None) || covered.contains(&Some(true)) == keeps || loaded.iter().any(|kept| kept == id)
        })
    }

    fn retain(&mut self, keep: impl Fn(&str) -> bool) -> Vec<EntryChange> {
        let mut gone = Vec::new();
        match &mut self.content {
            OpenedContent::Bundle(bundle) => {
                if bundle.retain(|entry| keep_or_record_removal(&entry.id, entry.data.len(), &keep, &mut gone)) > 0 {
                    entry_record::forget(bundle);
                }
            }
            OpenedContent::Offload(binary, changed) => {
                let before = binary.images.len();
                binary.images.retain(|image| {
                    keep_or_record_removal(&image.entry_id().unwrap_or_default(), image.data.len(), &keep, &mut gone)
                });
                *changed |= binary.images.len() != before;
            }
        }
        gone
    }

    pub fn compress(&mut self, how: Option<Compression>) -> Result<Vec<EntryChange>, Diagnostic> {
        let old = self.size as u64;
        let what = if how.is_some() { "compressed" } else { "decompressed" };
        match &mut self.content {
            OpenedContent::Bundle(bundle) => bundle.set_compression(how),
            OpenedContent::Offload(..) if how.is_some() => {
                return Err(no_place("HotSwap does not compress offload binaries"));
            }
            OpenedContent::Offload(binary, changed) => *changed = binary.compressed,
        }
        // Compression takes most of the time, so it is done once.
        let (mut new, mut expected) = self.lay_out()?;
        let is_larger = new.as_ref().is_some_and(|new| new.size() >= old);
        if is_larger && how.is_some() && self.is_in_form(how) {
            (new, expected) = (None, None);
        }
        let size = new.as_ref().map(FileRope::size);
        self.written = Some((new, expected));
        Ok(size.map(|size| EntryChange { what, id: None, sizes: [old, size] }).into_iter().collect())
    }

    /// Whether the container needs no other form than it has: it is not compressed, or in this way.
    fn is_in_form(&self, how: Option<Compression>) -> bool {
        self.old_compression.is_none_or(|old| how.is_some_and(|how| has_same_form(how, old)))
    }

    /// The container's new bytes, if anything changed.
    pub fn into_new(mut self) -> Result<NewContainerContent<'a>, Diagnostic> {
        self.written.take().map_or_else(|| self.lay_out(), Ok)
    }

    fn lay_out(&self) -> Result<NewContainerContent<'a>, Diagnostic> {
        match &self.content {
            OpenedContent::Bundle(bundle) if bundle.is_changed() && bundle.compression().is_some() => {
                let bytes = bundle.to_bytes()?.into_owned();
                bundle.check_packed(&bytes)?;
                Ok((Some(FileRope::from(bytes)), None))
            }
            OpenedContent::Bundle(bundle) if bundle.is_changed() => {
                Ok((Some(bundle.to_draft(&[])?), Some(bundle.summary())))
            }
            OpenedContent::Bundle(_) | OpenedContent::Offload(_, false) => Ok((None, None)),
            // An empty container is removed from its section.
            OpenedContent::Offload(binary, true) if binary.images.is_empty() => Ok((Some(FileRope::default()), None)),
            OpenedContent::Offload(binary, true) => Ok((Some(FileRope::from(binary.to_bytes()?)), None)),
        }
    }
}

fn missing_entry_error(name: &str) -> Diagnostic {
    Diagnostic::error(codes::NO_ENTRY, format!("nothing is for `{name}`"))
}

fn keep_or_record_removal(id: &str, size: usize, keep: &impl Fn(&str) -> bool, gone: &mut Vec<EntryChange>) -> bool {
    let stays = keep(id);
    if !stays {
        gone.push(EntryChange { what: "removed", id: Some(id.to_owned()), sizes: [size as u64, 0] });
    }
    stays
}

/// Whether both are written in the same form; the level is not part of it.
fn has_same_form(one: Compression, other: Compression) -> bool {
    (one.version, one.method) == (other.version, other.method)
}

fn ambiguous(name: &str, ids: &[String]) -> Diagnostic {
    let what = format!("`{name}` names {} entries: {}", ids.len(), ids.join(", "));
    Diagnostic::error(codes::USAGE, what).advise("name the whole entry ID; remove entries that are there twice")
}

/// Expands a target ID to an entry ID in the form of the existing ones.
fn full_id(bundle: &Bundle<'_>, name: &str) -> Result<String, Diagnostic> {
    if let Some(id) = EntryId::parse(name).ok().filter(|id| id.target().is_some()) {
        return Ok(id.to_string());
    }
    let target: TargetId = name.parse()?;
    let like = bundle.entries().iter().filter_map(|entry| EntryId::parse(&entry.id).ok()).find(EntryId::is_amdgpu);
    let made = like.and_then(|id| id.with_target(&target.to_string()));
    Ok(made.map_or_else(|| format!("hipv4-amdgcn-amd-amdhsa--{target}"), |id| id.to_string()))
}

/// A linked code object must be for the target that its entry names; an empty file is not code.
fn check_code(id: &str, code: &[u8]) -> Result<(), Diagnostic> {
    let entry = EntryId::parse(id)?;
    if code.is_empty() {
        return Err(Diagnostic::error(codes::NOT_CODE_OBJECT, "the file is empty").in_entry(id));
    }
    if ImageKind::of(code) != ImageKind::CodeObject || !entry.is_amdgpu() {
        return Ok(());
    }
    let object = CodeObject::parse(code).map_err(|error| error.in_entry(id))?;
    let named: TargetId = entry.target().unwrap_or_default().parse()?;
    let found = object.target_id();
    if named.processor == found.processor {
        return Ok(());
    }
    let what = format!("the entry names {named}, the code object is for {found}");
    Err(Diagnostic::error(codes::OTHER_TARGET, what).in_entry(id))
}
