//! The names that the libraries of a served package see, as a file in the package.
//!
//! Several packages are installed into one directory, so each has a file of its own in [`DIRECTORY`], which is in the
//! nearest directory above all of its libraries.
//!
//! Invariant: names that the package has already stay, because its code for these GPUs does, too.

use crate::environment::{Environment, NAMES, names_file};
use hotswap_load_model::tree::LibraryTree;
use hotswap_report::{Diagnostic, codes};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The directory of such files. `libhotswap-names.so` reads those whose names end in `.conf`.
pub const DIRECTORY: &str = "hotswap-names.d";

/// A file for a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageNames {
    /// Its path in the package.
    pub path: PathBuf,
    names: BTreeMap<String, String>,
    serves: BTreeSet<PathBuf>,
}

impl PackageNames {
    /// The file for the libraries of that environment; `None` where the libraries see no other name.
    pub fn new(package: &str, environment: &Environment) -> Option<Self> {
        let names = parse_pairs(environment.names.split(',')).ok()?;
        let directory = common_directory(&environment.serves)?;
        let serves =
            environment.serves.iter().filter_map(|path| path.strip_prefix(&directory).map(Path::to_owned).ok());
        let serves = serves.collect();
        Some(Self { path: directory.join(DIRECTORY).join(format!("{package}.conf")), names, serves })
    }

    /// Adds the lines of a file that the package has already.
    ///
    /// # Errors
    /// [`codes::NOT_SERVED`] where a GPU would have two names, [`codes::MALFORMED`] for another line.
    pub fn extend(&mut self, text: &str) -> Result<(), Diagnostic> {
        for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.split_once(' ') {
                Some(("names", names)) => {
                    let old = parse_pairs(names.split(',')).map_err(|()| malformed_names_line(line))?;
                    for (own, shown) in old {
                        if self.names.values().any(|name| *name == own) {
                            return Err(shown_itself(&own, &shown));
                        }
                        let now = self.names.entry(own.clone()).or_insert_with(|| shown.clone());
                        if *now != shown {
                            return Err(two_names(&own, &shown, now));
                        }
                    }
                }
                Some(("serves", path)) => drop(self.serves.insert(path.into())),
                _ => return Err(malformed_names_line(line)),
            }
        }
        Ok(())
    }

    pub fn variable_text(&self) -> String {
        let names: Vec<String> = self.names.iter().map(|(own, shown)| format!("{own}={shown}")).collect();
        names_file(&names.join(","), self.serves.iter().map(PathBuf::as_path))
    }
}

fn malformed_names_line(line: &str) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("the line `{line}`"))
}

/// A GPU and the name that the host is shown for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownName {
    /// The name of the GPU itself.
    pub own: String,
    /// The shown name, by which libraries look for files.
    pub shown: String,
}

/// Whether a file of a package or of a served tree has the names that hosts are shown.
pub fn is_names_file(path: &Path) -> bool {
    let in_directory = path.parent().is_some_and(|parent| parent.ends_with(DIRECTORY));
    path.file_name().is_some_and(|name| name == NAMES)
        || in_directory && path.extension().is_some_and(|end| end == "conf")
}

/// The names in the text of such a file.
///
/// # Errors
/// [`codes::MALFORMED`] for a line that is not a name.
pub fn shown_names(text: &str) -> Result<Vec<ShownName>, Diagnostic> {
    let mut all = Vec::new();
    for names in text.lines().filter_map(|line| line.strip_prefix("names ")) {
        let found = parse_pairs(names.split(',')).map_err(|()| malformed_shown_names(names))?;
        all.extend(found.into_iter().map(|(own, shown)| ShownName { own, shown }));
    }
    Ok(all)
}

fn malformed_shown_names(names: &str) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("the line `names {names}`"))
}

/// The names that hosts are shown in a tree: in that of a served one, or of an unpacked package.
///
/// # Errors
/// [`codes::CANNOT_READ`] for an unreadable file, [`codes::MALFORMED`] for a line of another form.
pub fn names_of_tree(tree: &LibraryTree) -> Result<Vec<ShownName>, Diagnostic> {
    let mut names = Vec::new();
    for (_, path) in tree.files.iter().filter(|(relative, _)| is_names_file(relative)) {
        let text = fs::read_to_string(path).map_err(|error| Diagnostic::error(codes::CANNOT_READ, error.to_string()));
        names.extend(text.and_then(|text| shown_names(&text)).map_err(|error| error.in_file(path))?);
    }
    Ok(names)
}

/// The name that hosts are shown for a GPU: its own, unless another is stated.
pub fn shown_name<'n>(names: &'n [ShownName], own: &'n str) -> &'n str {
    names.iter().find(|name| name.own == own).map_or(own, |name| &name.shown)
}

fn two_names(own: &str, one: &str, other: &str) -> Diagnostic {
    let what = format!("the package shows {own} as {one} already, and would show it as {other}");
    Diagnostic::error(codes::NOT_SERVED, what)
        .advise("serve the package that its publisher has made, for all GPUs at once")
}

/// Its code for that GPU was compiled for another one, whose name the host must see.
fn shown_itself(own: &str, shown: &str) -> Diagnostic {
    let what = format!("the package shows {own} as {shown}: its code for {own} was made from that for {shown}");
    Diagnostic::error(codes::NOT_SERVED, what).advise(format!("serve it with --from {shown}"))
}

/// Reads pairs in the form `OWN=SHOWN`.
fn parse_pairs<'t>(texts: impl Iterator<Item = &'t str>) -> Result<BTreeMap<String, String>, ()> {
    texts.map(|pair| pair.split_once('=').map(|(own, shown)| (own.to_owned(), shown.to_owned())).ok_or(())).collect()
}

/// The nearest directory above all of the files; none without files.
fn common_directory(files: &[PathBuf]) -> Option<PathBuf> {
    let mut directory = files.first()?.parent()?.to_owned();
    while !files.iter().all(|file| file.starts_with(&directory)) {
        directory.pop();
    }
    Some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(names: &str, serves: &[&str]) -> Environment {
        let serves = serves.iter().map(PathBuf::from).collect();
        Environment { names: names.to_owned(), serves, ..Environment::default() }
    }

    #[test]
    fn the_file_is_above_all_libraries() {
        let names = "gfx1031=gfx1030";
        for (serves, path) in [
            (&["usr/lib/a.so", "usr/lib/a.so.1"][..], "usr/lib/hotswap-names.d/pkg.conf"),
            (&["cupy/x/a.so", "cupyx/b.so"], "hotswap-names.d/pkg.conf"),
            (&["cupy/x/a.so", "cupy/b.so"], "cupy/hotswap-names.d/pkg.conf"),
            (&["a.so"], "hotswap-names.d/pkg.conf"),
        ] {
            let file = PackageNames::new("pkg", &environment(names, serves)).unwrap();
            assert_eq!(file.path, Path::new(path));
        }
        assert_eq!(PackageNames::new("pkg", &environment(names, &[])), None);
        assert_eq!(PackageNames::new("pkg", &environment("", &["a.so"])), None);
    }

    #[test]
    fn what_the_package_has_stays() {
        let mut file = PackageNames::new("pkg", &environment("gfx1032=gfx1030", &["p/a.so"])).unwrap();
        let first = file.variable_text();
        file.extend(&first).unwrap();
        assert_eq!(file.variable_text(), first);
        file.extend("# text\n\nnames gfx1031=gfx1030\nserves b.so\n").unwrap();
        let lines: Vec<String> = file.variable_text().lines().skip(1).map(str::to_owned).collect();
        assert_eq!(lines, ["names gfx1031=gfx1030", "names gfx1032=gfx1030", "serves a.so", "serves b.so"]);
        assert_eq!(file.extend("names gfx1032=gfx1035").unwrap_err().code, codes::NOT_SERVED);
        assert_eq!(file.extend("names gfx1030=gfx1035").unwrap_err().code, codes::NOT_SERVED);
        assert_eq!(file.extend("other").unwrap_err().code, codes::MALFORMED);
    }
}
