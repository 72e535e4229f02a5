//! The code of a program that has a coverage map: its own, and that of the code objects inside it.

use crate::identity::ObjectIdentity;
use hotswap_bundle::{ImageKind, inventory};
use hotswap_report::{Diagnostic, codes};
use std::path::{Path, PathBuf};

/// The name of the section with the coverage map.
const SECTION: &[u8] = b"__llvm_covmap\0";

/// A file for llvm-cov, and the target of its code.
pub struct Covered {
    pub(crate) path: PathBuf,
    pub target: String,
    /// The file that was named.
    pub from: PathBuf,
    pub(crate) identity: ObjectIdentity,
}

/// The file itself if it has a map, and its code objects that have one, written to `directory`.
pub(crate) fn look_into(file: &Path, directory: &Path, before: usize) -> Result<Vec<Covered>, Diagnostic> {
    let bytes = hotswap_files::open_input(file)?;
    let contents = hotswap_bundle::find_containers(&bytes);
    let mut covered = Vec::new();
    let mut failed = None;
    let problems = inventory::visit(&contents, |container| {
        for row in container.rows {
            let name = row.target.clone().unwrap_or_else(|| "unknown".to_owned());
            if row.image.kind != ImageKind::CodeObject || !has_map(&row.image.data) {
                continue;
            }
            let path = directory.join(format!("{}.co", before + covered.len()));
            failed = hotswap_files::replace_file(&path, &row.image.data).err().or(failed.take());
            let identity = ObjectIdentity::from_code_object(&row.image.data);
            covered.push(Covered { path, target: name, from: file.to_owned(), identity });
        }
    });
    if let Some(error) = failed {
        return Err(error);
    }
    // A program without device code may be covered, too.
    let damage = problems.into_iter().find(|problem| problem.code != codes::NOT_FOUND);
    if let Some(problem) = damage {
        return Err(problem.in_file(file));
    }
    if host_map(&bytes, &contents) {
        let identity = ObjectIdentity::from_host(&bytes);
        let host = Covered { path: file.to_owned(), target: "host".to_owned(), from: file.to_owned(), identity };
        covered.insert(0, host);
    }
    Ok(covered)
}

pub(crate) fn processor(target: &str) -> &str {
    target.split(':').next().unwrap_or_default()
}

fn has_map(bytes: &[u8]) -> bool {
    find(bytes, SECTION)
}

/// Whether the section name occurs outside of the fat binaries, whose code objects have it, too.
fn host_map(bytes: &[u8], contents: &hotswap_bundle::FoundContents<'_>) -> bool {
    let base = bytes.as_ptr() as usize;
    let starts = contents.found.iter().map(|found| (found.bytes.as_ptr() as usize).wrapping_sub(base));
    let sizes = contents.found.iter().map(|found| found.bytes.len());
    let mut inside: Vec<_> = starts.zip(sizes).map(|(start, size)| start..start.saturating_add(size)).collect();
    inside.sort_unstable_by_key(|range| (range.start, range.end));
    let mut at = 0;
    for range in inside {
        if bytes.get(at..range.start).is_some_and(|part| find(part, SECTION)) {
            return true;
        }
        at = range.end;
    }
    bytes.get(at..).is_some_and(|part| find(part, SECTION))
}

/// Finds a section name, which ends with a zero and follows one.
fn find(bytes: &[u8], name: &[u8]) -> bool {
    bytes.windows(name.len()).any(|window| window == name)
}
