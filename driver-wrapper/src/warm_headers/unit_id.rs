//! The ID that clang's driver gives to a source: a hash of the source's name and of all arguments, among them those that are added
//! here. It is in the object, so that it must stay what it is without them.
//!
//! The hash is that of `CUIDOptions::getCUID` in clang's `Driver.cpp`. It is computed only where the same computation gives the ID
//! that clang itself prints for the command with `-###`.
//!
//! Absent on purpose: commands with several sources, whose IDs differ and cannot be named one by one.

use crate::command;
use crate::flags::{self, FlagForm, FlagMeaning};
use md5::{Digest, Md5};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;

/// The argument that clang adds in front where it is called as `clang++`.
const MODES: [&str; 2] = ["--driver-mode=g++", ""];
/// The beginnings of the arguments that clang adds for the requested GPUs, behind all others. Clang 24 has the second form.
const ARCHITECTURES: [&str; 2] = ["-Xarch_amdgcn --offload-arch=", "-Xarch_amdgpu --offload-arch="];

/// The argument that keeps the ID of a command; empty where the command has none. `printed` is the ID that clang gives to the
/// command with `-###` as its first argument, `dry`.
///
/// # Errors
/// The reason why the ID is not known.
pub(super) fn words_that_keep_id(
    words: &[OsString],
    dry: &str,
    printed: Option<&str>,
) -> Result<Vec<OsString>, String> {
    let Some(printed) = printed else { return Ok(Vec::new()) };
    let command = command::scan(words);
    if words.iter().any(|word| word.as_bytes().starts_with(b"-cuid=")) {
        return Ok(Vec::new());
    }
    let (Some(source), None) = (command.inputs.first(), command.hip_sources().nth(1)) else {
        return Err("several sources have IDs of their own".to_owned());
    };
    let dry_words: Vec<OsString> = std::iter::once(dry.into()).chain(words.iter().cloned()).collect();
    let name = source.path.as_bytes();
    let mut forms = MODES.iter().flat_map(|mode| ARCHITECTURES.map(|architecture| IdForm { mode, architecture }));
    let form = forms.find(|form| form.unit_id(name, &dry_words) == printed);
    let form = form.ok_or("the ID that clang gives to the source is made of something unknown")?;
    Ok(vec![format!("-cuid={}", form.unit_id(name, words)).into()])
}

/// How a version of clang writes arguments that are not the user's.
struct IdForm {
    mode: &'static str,
    architecture: &'static str,
}

impl IdForm {
    fn unit_id(&self, source: &[u8], words: &[OsString]) -> String {
        let command = command::scan(words);
        let mut hash = Md5::new();
        hash.update(source);
        hash.update(self.mode);
        let inputs: Vec<usize> = command.inputs.iter().map(|input| input.word).collect();
        let mut at = 0;
        while let Some(word) = words.get(at) {
            let found = flags::find(word.as_bytes());
            let values = found.as_ref().map_or(0, |found| found.values);
            let is_arch =
                found.is_some_and(|found| matches!(found.flag.meaning, FlagMeaning::Arch | FlagMeaning::NoArch));
            if !inputs.contains(&at) && !is_arch {
                hash.update(rendered(word, &words[at + 1..(at + 1 + values).min(words.len())]));
            }
            at += 1 + values;
        }
        for arch in command.archs.iter().collect::<BTreeSet<_>>() {
            hash.update(self.architecture);
            hash.update(arch);
        }
        let digest = hash.finalize();
        let mut low = [0; 8];
        low.copy_from_slice(&digest[..8]);
        format!("{:x}", u64::from_le_bytes(low))
    }
}

/// An argument as clang prints it: a value that may be joined stands apart.
fn rendered(word: &OsString, values: &[OsString]) -> Vec<u8> {
    let bytes = word.as_bytes();
    let mut text = match flags::find(bytes) {
        Some(found)
            if found.flag.attach == FlagForm::Either
                && !found.joined.is_empty()
                && is_printed_apart(found.flag.name) =>
        {
            [found.flag.name.as_bytes(), b" ", found.joined].concat()
        }
        _ => bytes.to_vec(),
    };
    for value in values {
        text.push(b' ');
        text.extend_from_slice(value.as_bytes());
    }
    text
}

/// Options of the linker are printed joined.
fn is_printed_apart(name: &str) -> bool {
    !["-l", "-L", "-F", "-Z"].contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    fn unit_id(mode: usize, architecture: usize, text: &str) -> String {
        let form = IdForm { mode: MODES[mode], architecture: ARCHITECTURES[architecture] };
        form.unit_id(b"a.hip", &words(text))
    }

    /// IDs that clang 22 printed, and clang 24 for the last one.
    #[test]
    fn the_ids_are_clangs() {
        assert_eq!(unit_id(1, 0, "-c -### a.hip"), "3c3410d10e476d30");
        assert_eq!(unit_id(0, 0, "-c -### a.hip"), "1cc0e87aa9355250");
        let two = "-### --offload-arch=gfx1100 --offload-arch=gfx1030 a.hip -c";
        assert_eq!(unit_id(1, 0, two), "2c0e9e344a470807");
        assert_eq!(unit_id(1, 0, "-### --offload-arch=gfx1030,gfx1100 a.hip -c"), "2c0e9e344a470807");
        assert_eq!(unit_id(1, 1, two), "d1f5aa7e3bf7f014");
    }

    #[test]
    fn another_way_to_write_an_argument_has_the_same_id() {
        assert_eq!(unit_id(1, 0, "-c -Ifoo a.hip"), unit_id(1, 0, "-c -I foo a.hip"));
        assert_ne!(unit_id(1, 0, "-c -Ifoo a.hip"), unit_id(1, 0, "-c -Ibar a.hip"));
    }

    #[test]
    fn an_id_that_is_not_understood_is_not_replaced() {
        let command = words("-c -O2 a.hip");
        let known = unit_id(1, 0, "-### -c -O2 a.hip");
        let kept = words_that_keep_id(&command, "-###", Some(&known)).unwrap();
        assert_eq!(kept, [OsString::from(format!("-cuid={}", unit_id(1, 0, "-c -O2 a.hip")))]);
        assert!(words_that_keep_id(&command, "-###", Some("1234")).is_err());
        assert!(words_that_keep_id(&command, "-###", None).unwrap().is_empty());
        assert!(words_that_keep_id(&words("-c a.hip b.hip"), "-###", Some("1")).is_err());
        assert!(words_that_keep_id(&words("-cuid=7 -c a.hip"), "-###", Some("7")).unwrap().is_empty());
    }
}
