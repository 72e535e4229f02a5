//! Relocatable units that were coalesced: the bitcode of the compiled target under the name of each sibling, too.
//!
//! So the unit is as complete as clang's own: archives, partial links and links without HotSwap find code for each
//! requested target. Links by HotSwap see from the unit's mark ([`crate::text_mark`]) that they need to link only one of
//! them.
//!
//! Invariant: each requested image is added, or the command fails.
//!
//! Absent on purpose: deciding which targets have one text (the wrapper).

use crate::context::{CallContext, UnitImage};
use crate::words::{CommandLine, in_memory};
use hotswap_bundle::EntryId;
use hotswap_code_object::bitcode::with_triple;
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::find_processor;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

/// The bundler's arguments with an input for each further image; `None` where there is nothing to add.
///
/// # Errors
/// [`codes::INTERNAL`]: no input is the source of an image.
pub(crate) fn bundler_words(context: &CallContext, line: &CommandLine) -> Result<Option<Vec<OsString>>, Diagnostic> {
    let targets = line.value_of(&["-targets", "--targets"]).unwrap_or_default().to_string_lossy().into_owned();
    let ids: Vec<&str> = targets.split(',').collect();
    let inputs = line.values_of(&["-input", "--input"]);
    if context.unit_images.is_empty() || ids.len() != inputs.len() {
        return Ok(None);
    }
    let (mut more_ids, mut words) = (Vec::new(), Vec::new());
    for image in &context.unit_images {
        let place = ids.iter().position(|id| is_source_entry_id(id, image)).ok_or_else(|| lacks_source(image))?;
        let id = EntryId::parse(ids[place])?.with_target(&image.target).ok_or_else(|| lacks_source(image))?;
        more_ids.push(id.to_string());
        words.push([OsStr::new("-input="), &inputs[place]].iter().copied().collect::<OsString>());
    }
    let kept = line.words().filter(|word| !is_targets_option(word)).map(OsStr::to_owned);
    let targets = OsString::from(format!("-targets={targets},{}", more_ids.join(",")));
    Ok(Some(kept.chain([targets]).chain(words).collect()))
}

fn is_source_entry_id(id: &str, image: &UnitImage) -> bool {
    EntryId::parse(id).is_ok_and(|id| id.target() == Some(&image.source))
}

fn is_targets_option(word: &&OsStr) -> bool {
    let text = word.to_string_lossy();
    text.trim_start_matches('-').starts_with("targets=")
}

/// Arguments of `llvm-offload-binary`, with files in memory that some of them name.
pub(crate) struct PackagerWords {
    pub(crate) words: Vec<OsString>,
    /// The files exist as long as these are open.
    _files: Vec<File>,
}

/// The arguments of `llvm-offload-binary` with one for each further image.
///
/// # Errors
/// [`codes::INTERNAL`]: no image of the command is the source. [`codes::MALFORMED`] where its bitcode cannot be read.
pub(crate) fn packager_words(context: &CallContext, mut words: Vec<OsString>) -> Result<PackagerWords, Diagnostic> {
    let (mut more, mut files) = (Vec::new(), Vec::new());
    for image in &context.unit_images {
        let source = format!("arch={}", image.source);
        let mut images = words.iter().filter_map(|word| word.to_str()).filter(|word| word.starts_with("--image="));
        let word = images.find(|word| word.split(',').any(|part| part == source));
        let word = word.ok_or_else(|| lacks_source(image))?;
        let mut word = word.replace(&source, &format!("arch={}", image.target));
        if let Some(renamed) = renamed_triple(&word, image)? {
            let file = in_memory(&renamed.bitcode).map_err(|error| cannot_write(&error))?;
            word = word.replace(&renamed.old_file, &format!("=/proc/self/fd/{},", file.as_raw_fd()));
            word = word.replace(&renamed.old_triple, &renamed.new_triple);
            files.push(file);
        }
        more.push(OsString::from(word));
    }
    words.append(&mut more);
    Ok(PackagerWords { words, _files: files })
}

/// Parts of an argument that change with the triple, and the module for the new one.
struct RenamedTriple {
    old_file: String,
    old_triple: String,
    new_triple: String,
    bitcode: Vec<u8>,
}

/// From LLVM 24 on the triple names the processor; `None` for an argument of earlier ones.
fn renamed_triple(word: &str, image: &UnitImage) -> Result<Option<RenamedTriple>, Diagnostic> {
    let (Some(triple), Some(file)) = (joined_key_value("triple", word), joined_key_value("file", word)) else {
        return Ok(None);
    };
    let Some(new) = triple_of_target(&triple, &image.source, &image.target) else { return Ok(None) };
    let bytes = hotswap_files::open_input(Path::new(&file))?;
    let bitcode = with_triple(&bytes, &new).ok_or_else(|| unreadable(image).in_file(&file))?;
    let (old_triple, new_triple) = (format!("triple={triple}"), format!("triple={new}"));
    Ok(Some(RenamedTriple { old_file: format!("={file},"), old_triple, new_triple, bitcode }))
}

fn joined_key_value(key: &str, word: &str) -> Option<String> {
    word.split([',', '=']).skip_while(|part| *part != key).nth(1).map(str::to_owned)
}

/// The triple that names the target, in place of one that names the source; `None` where it names neither.
pub(crate) fn triple_of_target(triple: &str, source: &str, target: &str) -> Option<String> {
    let (source, target) = (processor_of_target_id(source)?, processor_of_target_id(target)?);
    let ([_, from], [_, to]) = (source.triples(), target.triples());
    (triple == from).then_some(to)
}

fn processor_of_target_id(id: &str) -> Option<&hotswap_targets::Processor> {
    find_processor(id.split(':').next().unwrap_or_default())
}

fn unreadable(image: &UnitImage) -> Diagnostic {
    let what = format!("the bitcode for {} cannot be made that for {}", image.source, image.target);
    Diagnostic::error(codes::MALFORMED, what).advise("compile without -fhotswap-coalesce")
}

fn cannot_write(error: &std::io::Error) -> Diagnostic {
    Diagnostic::cannot_write("a file in memory", error)
}

fn lacks_source(image: &UnitImage) -> Diagnostic {
    let what = format!("the unit has no bitcode for {}, whose text is that for {}", image.source, image.target);
    Diagnostic::error(codes::INTERNAL, what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triples_of_llvm_24_name_the_processor() {
        for (triple, source, target, expected) in [
            ("amdgcn-amd-amdhsa", "gfx1030", "gfx1031", None),
            ("amdgpu10.30-amd-amdhsa", "gfx1030", "gfx1031", Some("amdgpu10.31-amd-amdhsa")),
            ("amdgpu9.00-amd-amdhsa", "gfx900:xnack+", "gfx902:xnack+", Some("amdgpu9.02-amd-amdhsa")),
        ] {
            assert_eq!(triple_of_target(triple, source, target).as_deref(), expected);
        }
    }
}
