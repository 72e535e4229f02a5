//! Raw profiles are merged into one profile.
//!
//! Invariants: nothing is written unless every file was accepted; profiles of several versions are merged by their own
//! LLVM first, and then by the newest, which reads the output of older ones.

use crate::llvm_tools::{self, Llvm};
use crate::profile_files::{FailureMode, ProfileFile};
use crate::raw_profile::CounterKind;
use hotswap_files::ScratchDirectory;
use hotswap_report::{Diagnostic, codes};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Merges into `output`; returns the warnings of the tools.
///
/// # Errors
/// Profiles that cannot be merged, and as for the tools.
pub fn merge_profiles(
    profiles: &[ProfileFile],
    llvms: &[Llvm],
    output: &Path,
    mode: FailureMode,
) -> Result<Vec<Diagnostic>, Diagnostic> {
    refuse_mixed_kinds(profiles)?;
    let directory = beside(output)?;
    let profiles = &cut_parts(profiles, directory.path())?;
    let mut warnings = Vec::new();
    let mut merged: Vec<PathBuf> = Vec::new();
    let mut newest = None;
    for (number, (llvm, files)) in groups(profiles, llvms)?.into_iter().enumerate() {
        let into = directory.path().join(format!("{number}.profdata"));
        let ran = llvm_tools::run_tool(llvm, "llvm-profdata", &words(&files, directory.path(), &into, mode)?)?;
        warnings.extend(llvm_tools::warnings(&ran));
        merged.push(into);
        newest = Some(llvm);
    }
    let whole = match (&merged[..], newest) {
        ([one], _) => one.clone(),
        (several, Some(llvm)) => {
            let into = directory.path().join("all.profdata");
            let files: Vec<&Path> = several.iter().map(PathBuf::as_path).collect();
            let ran = llvm_tools::run_tool(llvm, "llvm-profdata", &words(&files, directory.path(), &into, mode)?)?;
            warnings.extend(llvm_tools::warnings(&ran));
            into
        }
        (_, None) => return Ok(warnings),
    };
    std::fs::rename(whole, output).map_err(|one| profile_write_error(one, output))?;
    Ok(warnings)
}

fn profile_write_error(error: std::io::Error, output: &Path) -> Diagnostic {
    Diagnostic::cannot_write(output, error)
}

/// The profiles, those with parts of a file as files of their own.
fn cut_parts(profiles: &[ProfileFile], directory: &Path) -> Result<Vec<ProfileFile>, Diagnostic> {
    let mut cut = Vec::new();
    for (number, profile) in profiles.iter().enumerate() {
        let Some(parts) = profile.parts.as_ref().filter(|_| !profile.is_whole) else {
            cut.push(profile.clone());
            continue;
        };
        let bytes = hotswap_files::open_input(&profile.path)?;
        let own = parts.iter().filter_map(|part| bytes.get(part.range.clone()));
        let path = directory.join(format!("part-{number}.profraw"));
        hotswap_files::replace_file(&path, &own.flatten().copied().collect::<Vec<u8>>())?;
        cut.push(ProfileFile { path, parts: Some(parts.clone()), is_whole: true });
    }
    Ok(cut)
}

type ProfileGroup<'a> = (&'a Llvm, Vec<&'a Path>);

/// Files by the LLVM that reads them, oldest first; merged profiles are assigned to the newest.
fn groups<'a>(profiles: &'a [ProfileFile], llvms: &'a [Llvm]) -> Result<Vec<ProfileGroup<'a>>, Diagnostic> {
    let mut groups: BTreeMap<u32, ProfileGroup<'a>> = BTreeMap::new();
    for profile in profiles {
        for part in profile.parts.iter().flatten() {
            let llvm = llvm_tools::reader_of(llvms, part, &profile.path)?;
            let files = &mut groups.entry(llvm.major).or_insert_with(|| (llvm, Vec::new())).1;
            if files.last() != Some(&profile.path.as_path()) {
                files.push(&profile.path);
            }
        }
    }
    let merged: Vec<&Path> = profiles.iter().filter(|p| p.parts.is_none()).map(|p| p.path.as_path()).collect();
    if !merged.is_empty() {
        // The LLVM that merged them is unknown, and a newer LLVM reads the output of an older one.
        let newest = llvms.iter().max_by_key(|llvm| llvm.major);
        if let Some(llvm) = newest {
            groups.entry(llvm.major).or_insert_with(|| (llvm, Vec::new())).1.extend(merged);
        }
    }
    Ok(groups.into_values().collect())
}

/// The arguments of one merge; the files are passed as a list, since there may be thousands.
fn words(files: &[&Path], directory: &Path, into: &Path, mode: FailureMode) -> Result<Vec<OsString>, Diagnostic> {
    use std::os::unix::ffi::OsStrExt;
    let list = directory.join("files");
    let mut text = Vec::new();
    for file in files {
        let full = std::path::absolute(file).unwrap_or_else(|_| (*file).to_owned());
        if full.as_os_str().as_bytes().contains(&b'\n') {
            return Err(Diagnostic::error(codes::USAGE, "a name with a line end").in_file(full));
        }
        text.extend_from_slice(full.as_os_str().as_bytes());
        text.push(b'\n');
    }
    hotswap_files::replace_file(&list, &text)?;
    let mut list_word = OsString::from("--input-files=");
    list_word.push(list);
    Ok(vec!["merge".into(), mode.word().into(), list_word, "-o".into(), into.into()])
}

/// Counters of the front end and of the optimiser are incompatible: one counts the program's text, the other its code.
fn refuse_mixed_kinds(profiles: &[ProfileFile]) -> Result<(), Diagnostic> {
    let mut parts = profiles.iter().flat_map(|p| p.parts.iter().flatten().map(move |part| (p, part.kind)));
    let first = parts.clone().find(|(_, kind)| is_text_counter_kind(*kind));
    let other = parts.find(|(_, kind)| !is_text_counter_kind(*kind));
    let (Some((first, one)), Some((second, two))) = (first, other) else { return Ok(()) };
    let what = format!(
        "it has counters of the {}, but those of {} are of the {}",
        two.name(),
        first.path.display(),
        one.name()
    );
    let advice = "merge them apart; a program is built either with -fprofile-instr-generate or with -fprofile-generate";
    Err(Diagnostic::error(codes::MALFORMED, what).in_file(&second.path).advise(advice))
}

fn is_text_counter_kind(kind: CounterKind) -> bool {
    kind == CounterKind::Frontend
}

/// A directory next to the output, so that files made in it can be renamed.
fn beside(output: &Path) -> Result<ScratchDirectory, Diagnostic> {
    let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = output.file_name().unwrap_or_default().to_string_lossy().into_owned();
    ScratchDirectory::new(parent, &format!(".{name}.hotswap-directory."))
}
