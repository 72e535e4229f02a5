//! Which names a caller sees.
//!
//! | variables | who sees which names |
//! | --- | --- |
//! | [`VARIABLE`] | every caller sees its names |
//! | [`VARIABLE`] and [`TREE_VARIABLE`] | callers in that directory see them |
//! | neither | callers in a served tree see those of the tree |
//!
//! The variable has the name of an option of `hotswap-clang` (`docs/guide/compiler.md`): its words do not count as names.
//!
//! Invariant: a variable or file with an error in it changes no name; one line says so.
//!
//! The caller is the return address of the call. Where a function ends in the call (a tail call), that is the function that
//! called it; where no file is known for the address (code compiled at run time), it is in no tree.
#![allow(unsafe_code)] // one question to the dynamic loader

use crate::cache::Cache;
use crate::message::say_once;
use crate::name_map::{NameMap, NamesError};
use crate::served_tree::ServedTree;
use hotswap_plan::NamesPolicy;
use std::env;
use std::ffi::{CStr, OsStr, c_void};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Names that are shown: `gfx1031=gfx1030,gfx1032=gfx1030`.
pub const VARIABLE: &str = "HOTSWAP_NAMES";
/// The directory whose code sees the names of [`VARIABLE`].
pub const TREE_VARIABLE: &str = "HOTSWAP_NAMES_TREE";

/// The setting of this process.
enum NamesSetting {
    /// The variable's names, for callers in the directory, or for all.
    Variable(Arc<NameMap>, Option<PathBuf>),
    /// Those of the callers' trees.
    Trees,
}

/// The names that the caller sees; `None` where it sees HIP's.
pub(crate) fn names_for(caller: *const c_void) -> Option<Arc<NameMap>> {
    static SETTING: OnceLock<NamesSetting> = OnceLock::new();
    static NAMES: Cache<usize, Option<Arc<NameMap>>> = Cache::new();
    let setting = SETTING.get_or_init(names_setting);
    if let NamesSetting::Variable(names, None) = setting {
        return names_if(names, !names.is_empty());
    }
    NAMES.get(caller as usize, || names_of_file(setting, &file_of(caller)?))
}

/// The names that code of the file sees.
fn names_of_file(setting: &NamesSetting, file: &Path) -> Option<Arc<NameMap>> {
    let names = match setting {
        NamesSetting::Variable(names, None) => names.clone(),
        NamesSetting::Variable(names, Some(directory)) => {
            names_if(names, known_paths(file).iter().any(|path| path.starts_with(directory)))?
        }
        NamesSetting::Trees => names_of_tree(file)?,
    };
    names_if(&names, !names.is_empty())
}

fn names_if(names: &Arc<NameMap>, is_shown: bool) -> Option<Arc<NameMap>> {
    is_shown.then(|| names.clone())
}

fn names_setting() -> NamesSetting {
    let Some(text) = env::var_os(VARIABLE) else { return NamesSetting::Trees };
    if NamesPolicy::WORDS.iter().any(|one| text == one.word) {
        return NamesSetting::Trees;
    }
    let names = text.to_str().ok_or_else(|| NamesError::Form(text.to_string_lossy().into_owned()));
    let names = names.and_then(NameMap::parse).unwrap_or_else(|error| {
        say_once(&format!("{VARIABLE}: {error}; no name is changed"));
        NameMap::default()
    });
    let directory = env::var_os(TREE_VARIABLE).filter(|text| !text.is_empty()).map(PathBuf::from);
    NamesSetting::Variable(Arc::new(names), directory.map(|path| path.canonicalize().unwrap_or(path)))
}

/// The file that the code at that address was loaded from.
pub(crate) fn file_of(caller: *const c_void) -> Option<PathBuf> {
    // SAFETY: a plain structure of integers and pointers.
    let mut info: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: the loader looks the address up and does not read it; the structure is ours.
    let is_found = unsafe { libc::dladdr(caller, &raw mut info) } != 0 && !info.dli_fname.is_null();
    if !is_found {
        return None;
    }
    // SAFETY: the name of a loaded file, which is loaded while its code is being executed.
    let name = unsafe { CStr::from_ptr(info.dli_fname) };
    let path = Path::new(OsStr::from_bytes(name.to_bytes()));
    // The program, and libraries that it has loaded by a relative path, have the name of that moment.
    if path.is_absolute() { Some(path.to_owned()) } else { mapped_file(caller as usize) }
}

/// The mappings of this process (`man 5 proc`).
const MAPPINGS: &str = "/proc/self/maps";

/// The file of the mapping at that address, as the system knows it. Where it cannot be asked, as without `/proc`, one line says so.
fn mapped_file(address: usize) -> Option<PathBuf> {
    let Ok(maps) = fs::read(MAPPINGS).inspect_err(|error| {
        say_once(&format!(
            "{MAPPINGS}: {error}; code that was started or loaded by a relative path is taken to be in no tree, and sees HIP's names"
        ));
    }) else {
        return None;
    };
    let path = maps.split(|byte| *byte == b'\n').find_map(|line| file_if_holds(line, address))?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// The file of a line `START-END PERMISSIONS OFFSET DEVICE INODE FILE`, if the address is between the first two.
fn file_if_holds(line: &[u8], address: usize) -> Option<&[u8]> {
    let range = line.split(|byte| *byte == b' ').next()?;
    let dash = range.iter().position(|byte| *byte == b'-')?;
    let is_there = (parse_hex_address(&range[..dash])?..parse_hex_address(&range[dash + 1..])?).contains(&address);
    let path = line.iter().position(|byte| *byte == b'/').filter(|_| is_there)?;
    Some(&line[path..])
}

fn parse_hex_address(text: &[u8]) -> Option<usize> {
    usize::from_str_radix(str::from_utf8(text).ok()?, 16).ok()
}

/// The names of the tree that the file is in. A library may be loaded through a link into the tree, and a link in the tree
/// may lead out of it.
fn names_of_tree(file: &Path) -> Option<Arc<NameMap>> {
    for path in known_paths(file) {
        match ServedTree::find_tree(&path) {
            Ok(Some(tree)) if tree.serves_file(&path) => return Some(Arc::new(tree.names().clone())),
            Ok(_) => {}
            Err((file, error)) => {
                say_once(&format!("{}: {error}; no name is changed", file.display()));
                return None;
            }
        }
    }
    None
}

/// The path as the loader knows it, and the one without links.
fn known_paths(file: &Path) -> Vec<PathBuf> {
    let mut paths = vec![file.to_owned()];
    paths.extend(file.canonicalize().ok().filter(|path| path != file));
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::served_tree::FILE;

    #[test]
    fn code_has_a_file() {
        let here = file_of(code_has_a_file as *const c_void).unwrap();
        assert_eq!(here.canonicalize().unwrap(), env::current_exe().unwrap().canonicalize().unwrap());
        assert_eq!(mapped_file(code_has_a_file as *const c_void as usize), env::current_exe().ok());
        assert_eq!(file_of(std::ptr::null()), None);
        let place = Box::new(0u8);
        assert_eq!(file_of((&raw const *place).cast()), None);
    }

    /// The child asks for the file of its own code; the tests' program is started by a relative path.
    #[test]
    fn code_at_a_relative_path_without_proc_is_reported() {
        const TEST: &str = "scope::tests::code_at_a_relative_path_without_proc_is_reported";
        const IS_CHILD: &str = "HOTSWAP_NAMES_TEST_CHILD";
        if env::var_os(IS_CHILD).is_some() {
            assert_eq!(names_for(code_has_a_file as *const c_void), None);
            return;
        }
        let own = env::current_exe().unwrap();
        let name = own.file_name().unwrap().to_str().unwrap();
        for (hide, count) in [("mount -t tmpfs none /proc || exit 99", 1), (":", 0)] {
            let script = format!("{hide}; exec ./{name} --exact {TEST} --nocapture");
            let mut command = std::process::Command::new("unshare");
            command.args(["-m", "sh", "-c", &script]).current_dir(own.parent().unwrap());
            let done = command.env(IS_CHILD, "1").env_remove(VARIABLE).output().unwrap();
            if count == 1 && matches!(done.status.code(), Some(1 | 99)) {
                return hotswap_userland::skip(TEST, "/proc cannot be hidden here");
            }
            let said = String::from_utf8_lossy(&done.stderr);
            assert!(done.status.success(), "{said}");
            assert_eq!(said.matches("hotswap-names: /proc/self/maps: No such file").count(), count, "{said}");
        }
    }

    #[test]
    fn a_line_of_the_system_names_a_file() {
        let line = b"7f10-7f20 r-xp 00000000 fe:00 12 /usr/lib/with blank.so";
        assert_eq!(file_if_holds(line, 0x7f10), Some(&b"/usr/lib/with blank.so"[..]));
        assert_eq!((file_if_holds(line, 0x7f20), file_if_holds(line, 0x7f0f)), (None, None));
        for line in [&b""[..], b"-", b"7f10-7f20", b"7f10-7f20 rw-p 0 0 0 [heap]", b"x-y r-xp 0 0 0 /a"] {
            assert_eq!(file_if_holds(line, 0x7f10), None);
        }
    }

    #[test]
    fn a_link_into_the_tree_and_one_out_of_it_are_both_of_the_tree() {
        let scratch = tempfile::tempdir().unwrap();
        let (tree, other) = (scratch.path().join("tree"), scratch.path().join("other"));
        fs::create_dir_all(&tree).unwrap();
        fs::create_dir_all(&other).unwrap();
        fs::write(tree.join(FILE), "names gfx1031=gfx1030\nserves a.so\nserves out.so\n").unwrap();
        fs::write(tree.join("a.so"), "").unwrap();
        fs::write(other.join("b.so"), "").unwrap();
        std::os::unix::fs::symlink(tree.join("a.so"), other.join("in.so")).unwrap();
        std::os::unix::fs::symlink(other.join("b.so"), tree.join("out.so")).unwrap();
        let sees = |file: PathBuf| names_of_tree(&file).is_some_and(|names| !names.is_empty());
        assert!(sees(tree.join("a.so")) && sees(other.join("in.so")) && sees(tree.join("out.so")));
        assert!(!sees(other.join("b.so")) && !sees(tree.join("c.so")));
    }
}
