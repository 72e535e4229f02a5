//! The directory that `hotswap serve` has written, by the file in it that libraries of the tree find.
//!
//! | line | meaning |
//! | --- | --- |
//! | `names OWN=SHOWN` | the GPU OWN is shown as SHOWN; several lines, or pairs separated by commas |
//! | `serves PATH` | a file or directory of the tree whose code sees the names, relative to the file |
//! | `code GPU` | a GPU that the tree has code for; several lines, or names separated by commas |
//! | `# …` and empty | nothing |
//!
//! Packages that are installed into one directory have a file each in a directory beside ([`DIRECTORY`]), with the same
//! lines, relative to the directory above.
//!
//! Invariants: without a line `serves`, all code of the tree sees the names. Code outside of the tree never does. With a line
//! `code`, code of the tree that asks for another GPU is told so, in one line, and sees HIP's answer.

use crate::name_map::{NameMap, NamesError};
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// The name of the file.
pub const FILE: &str = "hotswap-names.conf";
/// The directory with a file `*.conf` for each package.
const DIRECTORY: &str = "hotswap-names.d";
/// A longer file is not one of `hotswap serve`.
const MAX_SIZE: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedTree {
    directory: PathBuf,
    names: NameMap,
    /// Paths in the directory; empty for all of it.
    serves: Vec<PathBuf>,
}

impl ServedTree {
    /// The tree of a library or program: that of the nearest directory above the file that has a [`FILE`], or a
    /// [`DIRECTORY`]; of several files the first that serves it.
    ///
    /// # Errors
    /// That file's path, and what is wrong with it.
    pub fn find_tree(file: &Path) -> Result<Option<Self>, (PathBuf, NamesError)> {
        for directory in file.ancestors().skip(1) {
            let mut first = None;
            for path in names_files(directory).map_err(|error| (directory.join(DIRECTORY), error))? {
                match read_if_present(&path).and_then(|text| text.map(|text| Self::parse(directory, &text)).transpose())
                {
                    Ok(Some(tree)) if tree.serves_file(file) => return Ok(Some(tree)),
                    Ok(Some(tree)) => drop(first.get_or_insert(tree)),
                    Ok(None) => {}
                    Err(error) => return Err((path, error)),
                }
            }
            if first.is_some() {
                return Ok(first);
            }
        }
        Ok(None)
    }

    /// Reads the text of the file in that directory.
    ///
    /// # Errors
    /// [`NamesError`]; no line applies then.
    pub fn parse(directory: &Path, text: &str) -> Result<Self, NamesError> {
        let mut tree = Self { directory: directory.to_owned(), names: NameMap::default(), serves: Vec::new() };
        for (number, line) in text.lines().enumerate().map(|(index, line)| (index + 1, line.trim())) {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            match line.split_once([' ', '\t']).map(|(word, rest)| (word, rest.trim())) {
                Some(("names", pairs)) => tree.names.extend(NameMap::parse(pairs)?)?,
                Some(("code", gpus)) => tree.names.add_code(gpus)?,
                Some(("serves", path)) => tree.serves.push(normalize_inside(path).ok_or(NamesError::Outside(number))?),
                _ => return Err(NamesError::Line(number)),
            }
        }
        Ok(tree)
    }

    /// The names that code of the tree sees.
    pub fn names(&self) -> &NameMap {
        &self.names
    }

    /// Whether a file is one whose code sees the names.
    pub fn serves_file(&self, file: &Path) -> bool {
        let Ok(relative) = file.strip_prefix(&self.directory) else { return false };
        self.serves.is_empty() || self.serves.iter().any(|served| relative.starts_with(served))
    }
}

/// The files that a directory may have, in their order.
fn names_files(directory: &Path) -> Result<Vec<PathBuf>, NamesError> {
    let mut files = Vec::new();
    match fs::read_dir(directory.join(DIRECTORY)) {
        Ok(entries) => {
            for entry in entries {
                let path = entry.map_err(unreadable_names_directory)?.path();
                if path.extension().is_some_and(|end| end == "conf") {
                    files.push(path);
                }
            }
        }
        Err(error) if is_absent(&error) => {}
        Err(error) => return Err(unreadable_names_directory(error)),
    }
    files.sort();
    files.insert(0, directory.join(FILE));
    Ok(files)
}

fn unreadable_names_directory(error: std::io::Error) -> NamesError {
    NamesError::Unreadable(error.to_string())
}

/// A directory above that may not be searched is without a tree for this process.
fn is_absent(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::PermissionDenied)
}

/// `None` where such a file does not exist.
fn read_if_present(path: &Path) -> Result<Option<String>, NamesError> {
    match fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => Err(NamesError::Unreadable("it is no file".into())),
        Ok(metadata) if metadata.len() > MAX_SIZE => Err(NamesError::Unreadable("it is too long".into())),
        Ok(_) => fs::read_to_string(path).map(Some).map_err(unreadable_names_file),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(unreadable_names_file(error)),
    }
}

fn unreadable_names_file(error: std::io::Error) -> NamesError {
    NamesError::Unreadable(error.to_string())
}

/// The path without `.`; `None` where it may leave the directory.
fn normalize_inside(path: &str) -> Option<PathBuf> {
    let mut clean = PathBuf::new();
    for component in Path::new(path).components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::CurDir => {}
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(clean)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<ServedTree, NamesError> {
        ServedTree::parse(Path::new("/tree"), text)
    }

    #[test]
    fn code_of_the_tree_sees_the_names_and_no_other_code() {
        let tree =
            parse("# made by `hotswap serve`\n\nnames gfx1031=gfx1030\nserves lib/librocblas.so.5\nserves ./extra\n");
        let tree = tree.unwrap();
        assert_eq!(tree.names().shown_name("gfx1031").as_deref(), Some("gfx1030"));
        for (file, expected) in [
            ("/tree/lib/librocblas.so.5", true),
            ("/tree/extra/a/b.so", true),
            ("/tree/lib/librocblas.so.52", false),
            ("/tree/lib/other.so", false),
            ("/trees/lib/librocblas.so.5", false),
            ("/usr/lib/librocblas.so.5", false),
        ] {
            assert_eq!(tree.serves_file(Path::new(file)), expected, "{file}");
        }
        let whole = parse("names gfx1031=gfx1030").unwrap();
        assert!(whole.serves_file(Path::new("/tree/x")) && !whole.serves_file(Path::new("/x")));
    }

    #[test]
    fn a_wrong_file_is_refused_whole() {
        for (text, expected) in [
            ("names gfx1031=gfx1030\nnames gfx1031=gfx1032", NamesError::TwoNames("gfx1031")),
            ("names gfx1031", NamesError::Form("gfx1031".into())),
            ("\nname gfx1031=gfx1030", NamesError::Line(2)),
            ("names", NamesError::Line(1)),
            ("serves ../lib", NamesError::Outside(1)),
            ("serves /usr/lib", NamesError::Outside(1)),
            ("\u{1}\u{2}", NamesError::Line(1)),
        ] {
            assert_eq!(parse(text).unwrap_err(), expected, "{text:?}");
        }
        assert!(parse("").unwrap().names().is_empty());
    }

    #[test]
    fn the_nearest_file_above_a_library_is_its_tree() {
        let scratch = tempfile::tempdir().unwrap();
        let library = scratch.path().join("lib/deep/lib.so");
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        assert_eq!(ServedTree::find_tree(&library).unwrap(), None);
        fs::write(scratch.path().join(FILE), "names gfx1031=gfx1030\n").unwrap();
        let found = ServedTree::find_tree(&library).unwrap().unwrap();
        assert_eq!((found.directory.as_path(), found.serves_file(&library)), (scratch.path(), true));
        let nearer = scratch.path().join("lib").join(FILE);
        fs::write(&nearer, "names gfx1032\n").unwrap();
        assert_eq!(ServedTree::find_tree(&library).unwrap_err(), (nearer.clone(), NamesError::Form("gfx1032".into())));
        fs::write(&nearer, [0xff, 0xfe]).unwrap();
        assert!(matches!(ServedTree::find_tree(&library).unwrap_err().1, NamesError::Unreadable(_)));
        fs::remove_file(&nearer).unwrap();
        fs::create_dir(&nearer).unwrap();
        assert!(matches!(ServedTree::find_tree(&library).unwrap_err().1, NamesError::Unreadable(_)));
    }

    #[test]
    fn packages_in_one_directory_have_a_file_each() {
        let scratch = tempfile::tempdir().unwrap();
        let lib = scratch.path().join("lib");
        fs::create_dir_all(lib.join(DIRECTORY)).unwrap();
        let write = |name: &str, text: &str| fs::write(lib.join(DIRECTORY).join(name), text).unwrap();
        write("librocrand1.conf", "names gfx1031=gfx1030\nserves librocrand.so.1\n");
        write("librocblas5.conf", "names gfx1103=gfx1102\nserves librocblas.so.5\n");
        write("notes.txt", "no lines for us");
        let shown = |library: &str, own: &str| {
            let path = lib.join(library);
            let tree = ServedTree::find_tree(&path).unwrap().unwrap();
            tree.serves_file(&path).then(|| tree.names().shown_name(own)).flatten()
        };
        assert_eq!(shown("librocrand.so.1", "gfx1031").as_deref(), Some("gfx1030"));
        assert_eq!(shown("librocblas.so.5", "gfx1103").as_deref(), Some("gfx1102"));
        assert_eq!(shown("librocblas.so.5", "gfx1031"), None);
        assert_eq!(shown("libother.so", "gfx1031"), None);
        write("damaged.conf", "no line");
        let error = ServedTree::find_tree(&lib.join("librocrand.so.1")).unwrap_err();
        assert_eq!(error, (lib.join(DIRECTORY).join("damaged.conf"), NamesError::Line(1)));
    }
}
