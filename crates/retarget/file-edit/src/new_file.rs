//! A new file, before it gets its name: one that `hotswap verify` would reject is never written.
//!
//! Invariants: the judgement is that of `hotswap verify` about containers, entries, records and the way of HIP to them
//! ([`acceptance`]). A fault that the input has already is reported as the input's, any other as ours.
//!
//! Absent on purpose: whether the plans of manifests were carried out: code may be removed on purpose.

use crate::container_groups::GroupReading;
use hotswap_bundle::{FoundContainer, STREAMED_FROM};
use hotswap_files::{InputFile, Placement};
use hotswap_load_model::acceptance::{self, ContainerJudgement};
use hotswap_load_model::{LoadableContainer, Registration};
use hotswap_report::{Diagnostic, codes};
use std::path::Path;

/// Bytes of unpacked containers that one thread has at once: the command has its own data besides.
const UNPACKED_TOGETHER: u64 = 40 << 20;

/// Refuses a new file.
///
/// # Errors
/// The first fault: [`codes::MALFORMED`] where the input has it, too, else [`codes::VERIFY_FAILED`].
pub fn check_new_file(input: &[u8], new: &InputFile, threads: usize) -> Result<(), Diagnostic> {
    let faults = faults(new, Some(new), threads);
    let Some(first) = faults.into_iter().next() else { return Ok(()) };
    let is_input_fault = self::faults(input, None, threads).iter().any(|fault| is_same(fault, &first));
    if is_input_fault {
        return Err(
            first.advise("the fault was there before: remove the entry with `hotswap remove`, or build the file again")
        );
    }
    let what = format!("{}; nothing was written", first.what);
    Err(Diagnostic { code: codes::VERIFY_FAILED, what, advice: None, ..first })
}

/// As [`check_new_file`], for bytes in memory that are made anew.
///
/// # Errors
/// As [`check_new_file`].
pub fn check_new_bytes(input: &[u8], new: &[u8]) -> Result<(), Diagnostic> {
    let Some(first) = faults(new, None, 1).into_iter().next() else { return Ok(()) };
    if faults(input, None, 1).iter().any(|fault| fault.what == first.what) {
        return Err(first);
    }
    Err(Diagnostic { code: codes::VERIFY_FAILED, advice: None, ..first })
}

/// As [`check_new_bytes`], for a change that adds a note and nothing that HIP loads: faults of the input stay as they are.
///
/// # Errors
/// [`codes::VERIFY_FAILED`] for the first new fault.
pub fn check_adds_no_fault(input: &[u8], new: &[u8]) -> Result<(), Diagnostic> {
    let known = faults(input, None, 1);
    match faults(new, None, 1).into_iter().find(|fault: &Diagnostic| known.iter().all(|one| one.what != fault.what)) {
        Some(first) => Err(Diagnostic { code: codes::VERIFY_FAILED, advice: None, ..first }),
        None => Ok(()),
    }
}

/// A warning about a file that is replaced although it has other names. Written in place, they have the new content, too.
///
/// # Errors
/// [`codes::CANNOT_READ`]; [`codes::USAGE`] where another file is to be written in place.
pub fn warn_of_other_names(file: &Path, output: &Path, placement: Placement) -> Result<Option<Diagnostic>, Diagnostic> {
    if placement == Placement::SameInode {
        let is_same = hotswap_files::is_same_place(file, output)?;
        let what = "--in-place writes into the file that is read, and -o names another one";
        return if is_same { Ok(None) } else { Err(Diagnostic::error(codes::USAGE, what)) };
    }
    let count = hotswap_files::other_names(file, output)?;
    let what = format!("{} more name{}", count, if count == 1 { "" } else { "s" });
    Ok((count > 0).then(|| Diagnostic::warning(codes::OTHER_NAMES, what).in_file(file)))
}

/// Containers move in the file when one before them grows.
fn is_same(one: &Diagnostic, other: &Diagnostic) -> bool {
    let entry =
        |fault: &Diagnostic| fault.place.entry.as_ref().and_then(|entry| Some(entry.rsplit_once(": ")?.1.to_owned()));
    one.what == other.what && entry(one) == entry(other)
}

/// The faults of a file, in the order of its containers.
fn faults(bytes: &[u8], mapped: Option<&InputFile>, threads: usize) -> Vec<Diagnostic> {
    let contents = hotswap_bundle::find_containers(bytes);
    let containers: Vec<&FoundContainer> = contents.found.iter().collect();
    let reading = GroupReading { threads, group_bytes: UNPACKED_TOGETHER };
    let judged = reading.read_all(&containers, &|group| judge_group(group, mapped));
    let mut faults = contents.problems.clone();
    faults.extend(judged.iter().flat_map(|container| container.errors().cloned()));
    if faults.is_empty() {
        let loadable: Vec<LoadableContainer> = judged.into_iter().filter_map(|container| container.loadable).collect();
        match Registration::read(bytes, &loadable) {
            Ok(registration) => faults.extend(registration.into_iter().flat_map(|registration| registration.faults)),
            Err(error) => faults.push(error),
        }
    }
    faults.retain(|fault| fault.severity == hotswap_report::Severity::Error);
    faults
}

/// Judges containers together; pages of the new file that were read are given back.
fn judge_group(group: &[&FoundContainer<'_>], mapped: Option<&InputFile>) -> Vec<ContainerJudgement> {
    let judged = match group {
        // Its content goes into a file.
        [large] if large.plain_size() >= STREAMED_FROM => vec![acceptance::judge_aside(large)],
        group => acceptance::judge_containers(group, None),
    };
    if let Some(file) = mapped {
        group.iter().for_each(|container| file.release(container.bytes));
    }
    judged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ContainerResult, FileJob, NoProgress, READ};
    use hotswap_bundle::{Bundle, FileRope};
    use std::fs;

    const GPU: &str = "hipv4-amdgcn-amd-amdhsa--gfx1030";

    fn bundle(content: &[u8]) -> Vec<u8> {
        let mut bundle = Bundle::default();
        bundle.push("host-x86_64-unknown-linux-gnu-", Vec::new()).unwrap();
        bundle.push(GPU, content.to_vec()).unwrap();
        bundle.to_bytes().unwrap().into_owned()
    }

    /// All commands that change containers write by [`FileJob::write_with`], merge and split, too.
    #[test]
    fn a_writer_that_makes_a_bad_file_is_noticed_before_the_file_has_a_name() {
        let directory = tempfile::tempdir().unwrap();
        let (file, output) = (directory.path().join("x"), directory.path().join("y"));
        let good = bundle(b"BC\xc0\xdebitcode");
        fs::write(&file, &good).unwrap();
        let input = hotswap_files::open_input(&file).unwrap();
        for (content, is_good) in [(&b"BC\xc0\xdeother"[..], true), (b"zeros and text", false)] {
            let job = FileJob {
                input: &input,
                file: &file,
                output: &output,
                placement: Placement::NewFile,
                threads: 1,
                quarters: READ,
                streams: false,
                progress: &NoProgress,
            };
            let step = |_: usize, _: &FoundContainer<'_>| {
                Ok(ContainerResult { new: Some(FileRope::from(bundle(content))), expected: None, said: () })
            };
            let written = job.write(&job.process(job.containers().unwrap(), &step).unwrap());
            assert_eq!(output.exists(), is_good);
            match written {
                Ok(_) => assert!(is_good),
                Err(error) => assert!(!is_good && error.code == codes::VERIFY_FAILED, "{error}"),
            }
            let _ = fs::remove_file(&output);
        }
        assert_eq!(check_new_bytes(&good, &bundle(b"text")).unwrap_err().code, codes::VERIFY_FAILED);
        assert_eq!(check_adds_no_fault(&good, &bundle(b"text")).unwrap_err().code, codes::VERIFY_FAILED);
        assert!(check_adds_no_fault(&bundle(b"text"), &bundle(b"text")).is_ok());
    }
}
