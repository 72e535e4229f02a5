//! Finds the real clang without starting anything.
//!
//! Order: `HOTSWAP_CLANG` or the `clang` key of a configuration file (the installation's
//! defaults are the last of them); `$ROCM_PATH/llvm/bin`, `$ROCM_PATH/lib/llvm/bin`;
//! `/opt/rocm/llvm/bin`; PATH, first `clang++` (or `clang`), then versioned names, highest first;
//! `/usr/lib/llvm-NN/bin`, highest first.
//!
//! Invariant: never this program itself, by device and inode, whatever the name. A compiler whose path shows that it is
//! older than [`OLDEST`] is not taken unless it is named.
//!
//! Absent on purpose: the version of a clang whose path does not show it; clang judges the arguments itself.

use crate::options::{OptionId, OptionValues};
use hotswap_files::reads;
use hotswap_report::{Diagnostic, codes};
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The oldest clang whose device link is known.
pub const OLDEST: u32 = 22;
/// The newest version that is searched by name.
const NEWEST: u32 = 40;

/// The compiler that is run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Clang {
    /// As found, without resolving links: clang reads its configuration by this name.
    pub path: PathBuf,
    /// How it was found.
    pub origin: String,
    /// `--driver-mode=` that makes up for a name of the other language.
    pub mode: Option<&'static str>,
}

/// A compiler that the user names.
#[derive(Debug)]
pub struct NamedCompiler {
    pub path: PathBuf,
    /// Where it was named, for messages.
    pub origin: String,
}

impl NamedCompiler {
    /// The compiler that the settings of the user name.
    pub(crate) fn from_settings(settings: &OptionValues) -> Option<Self> {
        let setting = settings.get(OptionId::Clang)?;
        Some(Self { path: PathBuf::from(&setting.value), origin: setting.origin_text() })
    }
}

#[derive(Debug, Default)]
pub struct ToolSearch<'a> {
    /// Whether the C++ driver is requested.
    pub cxx: bool,
    /// The compiler that was set explicitly.
    pub named: Option<NamedCompiler>,
    /// The value of `$ROCM_PATH`.
    pub rocm_path: Option<PathBuf>,
    /// The value of `$PATH`.
    pub path: Option<OsString>,
    pub ourselves: Option<&'a Path>,
}

/// Finds the compiler that a command runs.
///
/// # Errors
/// [`codes::NO_CLANG`]; [`codes::RECURSION`] if the named one is this program; [`codes::CANNOT_READ`] where a place cannot be seen.
pub fn find(search: &ToolSearch<'_>) -> Result<Clang, Diagnostic> {
    if let Some(NamedCompiler { path, origin }) = &search.named {
        return named(search, path, origin);
    }
    for place in [rocm, on_path, distribution] {
        if let Some(found) = place(search)? {
            return Ok(found);
        }
    }
    let name = name(search.cxx);
    Err(Diagnostic::error(codes::NO_CLANG, format!("no {name} in $ROCM_PATH, /opt/rocm, PATH or /usr/lib/llvm-*")))
}

const fn name(cxx: bool) -> &'static str {
    if cxx { "clang++" } else { "clang" }
}

fn named(search: &ToolSearch<'_>, path: &Path, origin: &str) -> Result<Clang, Diagnostic> {
    let found = if path.components().count() > 1 {
        path.to_owned()
    } else {
        named_on_path(search, path)?.ok_or_else(|| named_clang_error("which is not on PATH", path, origin))?
    };
    match reads::find_metadata(&found)? {
        None => return Err(named_clang_error("which is not there", path, origin)),
        Some(meta) if !is_program(&meta) => return Err(named_clang_error("which is no program", path, origin)),
        Some(_) => {}
    }
    let path = match sibling(&found, search.cxx) {
        Some(sibling) if is_runnable(&sibling)? => sibling,
        _ => found,
    };
    if is_ourselves(search, &path)? {
        return Err(Diagnostic::error(codes::RECURSION, format!("{origin} names {}", path.display())));
    }
    let mode = match (search.cxx, is_cxx(&path)) {
        (true, false) => Some("--driver-mode=g++"),
        (false, true) => Some("--driver-mode=gcc"),
        _ => None,
    };
    Ok(Clang { path, origin: origin.to_owned(), mode })
}

fn named_on_path(search: &ToolSearch<'_>, name: &Path) -> Result<Option<PathBuf>, Diagnostic> {
    for file in path_directories(search).map(|directory| directory.join(name)) {
        if is_runnable(&file)? && !is_ourselves(search, &file)? {
            return Ok(Some(file));
        }
    }
    Ok(None)
}

fn named_clang_error(what: &str, path: &Path, origin: &str) -> Diagnostic {
    let what = format!("{origin} names {}, {what}", path.display());
    Diagnostic::error(codes::NO_CLANG, what)
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn is_cxx(path: &Path) -> bool {
    file_name(path).contains("++")
}

/// The driver of the other language beside the named one; `None` if that is already right.
fn sibling(path: &Path, cxx: bool) -> Option<PathBuf> {
    let name = file_name(path);
    if is_cxx(path) == cxx {
        return None;
    }
    let at = name.rfind("clang")? + "clang".len();
    let (head, tail) = name.split_at(at);
    Some(path.with_file_name(if cxx {
        format!("{head}++{tail}")
    } else {
        format!("{head}{}", tail.strip_prefix("++")?)
    }))
}

/// Whether a program has that path. As for a shell, a directory that may not be searched has none.
pub(crate) fn is_runnable(path: &Path) -> Result<bool, Diagnostic> {
    match fs::metadata(path) {
        Ok(meta) => Ok(is_program(&meta)),
        Err(error) if reads::is_absent(&error) => Ok(false),
        Err(error) if error.kind() == ErrorKind::PermissionDenied && !is_searchable(path) => Ok(false),
        Err(error) => Err(reads::unread_file(path, &error)),
    }
}

/// Whether this user may search the directory of a file. Nothing else than such a directory makes a look at a file fail for
/// want of permission, but for a security module, which is no reason to take another compiler.
fn is_searchable(path: &Path) -> bool {
    let directory = path.parent().unwrap_or(Path::new("/"));
    rustix::fs::access(directory, rustix::fs::Access::EXEC_OK).is_ok()
}

fn is_program(meta: &Metadata) -> bool {
    meta.is_file() && meta.permissions().mode() & 0o111 != 0
}

fn is_ourselves(search: &ToolSearch<'_>, path: &Path) -> Result<bool, Diagnostic> {
    let Some(own) = search.ourselves else { return Ok(false) };
    let [own, other] = [reads::find_metadata(own)?, reads::find_metadata(path)?];
    Ok(own.zip(other).is_some_and(|(own, other)| own.dev() == other.dev() && own.ino() == other.ino()))
}

fn path_directories<'a>(search: &'a ToolSearch<'_>) -> impl Iterator<Item = PathBuf> + use<'a> {
    let path = search.path.as_deref().unwrap_or_default();
    std::env::split_paths(path).filter(|directory| directory.is_absolute())
}

fn usable(search: &ToolSearch<'_>, path: PathBuf, origin: &str) -> Result<Option<Clang>, Diagnostic> {
    let fits =
        is_runnable(&path)? && !is_ourselves(search, &path)? && version_in_path(&path)?.is_none_or(|v| v >= OLDEST);
    Ok(fits.then(|| Clang { path, origin: origin.to_owned(), mode: None }))
}

fn rocm(search: &ToolSearch<'_>) -> Result<Option<Clang>, Diagnostic> {
    let set = search.rocm_path.iter().flat_map(|rocm| ["llvm/bin", "lib/llvm/bin"].map(|below| rocm.join(below)));
    for directory in set {
        if let Some(clang) = usable(search, directory.join(name(search.cxx)), "ROCM_PATH")? {
            return Ok(Some(clang));
        }
    }
    usable(search, Path::new("/opt/rocm/llvm/bin").join(name(search.cxx)), "/opt/rocm")
}

fn on_path(search: &ToolSearch<'_>) -> Result<Option<Clang>, Diagnostic> {
    match clang_on_path(search, name(search.cxx))? {
        Some(clang) => Ok(Some(clang)),
        None => newest(|version| clang_on_path(search, &versioned_clang_name(version, search))),
    }
}

fn clang_on_path(search: &ToolSearch<'_>, name: &str) -> Result<Option<Clang>, Diagnostic> {
    for directory in path_directories(search) {
        if let Some(clang) = usable(search, directory.join(name), "PATH")? {
            return Ok(Some(clang));
        }
    }
    Ok(None)
}

fn versioned_clang_name(version: u32, search: &ToolSearch<'_>) -> String {
    format!("{}-{version}", name(search.cxx))
}

fn distribution(search: &ToolSearch<'_>) -> Result<Option<Clang>, Diagnostic> {
    newest(|version| {
        let directory = PathBuf::from(format!("/usr/lib/llvm-{version}/bin"));
        usable(search, directory.join(name(search.cxx)), "/usr/lib/llvm-*")
    })
}

/// The newest one that has HIP's device libraries beside it, else the newest: distributions build
/// those libraries for one of their versions only.
fn newest(look: impl Fn(u32) -> Result<Option<Clang>, Diagnostic>) -> Result<Option<Clang>, Diagnostic> {
    let mut without_libraries = None;
    for version in (OLDEST..=NEWEST).rev() {
        match look(version)? {
            Some(clang) if has_device_libraries(&clang.path, version)? => return Ok(Some(clang)),
            found => without_libraries = without_libraries.or(found),
        }
    }
    Ok(without_libraries)
}

fn has_device_libraries(clang: &Path, version: u32) -> Result<bool, Diagnostic> {
    let real = reads::resolve_path(clang)?;
    let Some(prefix) = real.as_deref().and_then(Path::parent).and_then(Path::parent) else { return Ok(false) };
    let libraries = prefix.join(format!("lib/clang/{version}/amdgcn/bitcode"));
    Ok(reads::find_metadata(&libraries)?.is_some_and(|meta| meta.is_dir()))
}

/// The major version in the resolved path: `/usr/lib/llvm-22/…`, `…/llvm/22/…`, `clang-22`.
///
/// # Errors
/// [`codes::CANNOT_READ`] where a link cannot be followed.
pub fn version_in_path(path: &Path) -> Result<Option<u32>, Diagnostic> {
    Ok(reads::resolve_path(path)?.as_deref().and_then(version_of_resolved))
}

fn version_of_resolved(resolved: &Path) -> Option<u32> {
    let parts: Vec<_> = resolved.components().map(|part| part.as_os_str().to_string_lossy()).collect();
    parts.iter().rev().find_map(|part| dashed_path_version(part)).or_else(|| nested_llvm_version(&parts))
}

fn parse_major_version(text: &str) -> Option<u32> {
    text.split('.').next().unwrap_or_default().parse::<u32>().ok()
}

fn dashed_path_version(part: &str) -> Option<u32> {
    ["llvm-", "clang-"].iter().find_map(|head| parse_major_version(part.strip_prefix(head)?))
}

fn nested_llvm_version(parts: &[std::borrow::Cow<'_, str>]) -> Option<u32> {
    parts.windows(2).find_map(|pair| (pair[0] == "llvm").then(|| parse_major_version(&pair[1])).flatten())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn program(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "#!/bin/sh\n").unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn search(dir: &Path, cxx: bool) -> ToolSearch<'static> {
        let path = [dir.join("a"), dir.join("b")].map(PathBuf::into_os_string).join(":".as_ref());
        ToolSearch { cxx, path: Some(path), ..ToolSearch::default() }
    }

    fn found(search: &ToolSearch<'_>, dir: &Path) -> String {
        match find(search) {
            Ok(clang) => {
                let path = clang.path.strip_prefix(dir).unwrap_or(&clang.path).display().to_string();
                format!("{path}{}", clang.mode.map(|mode| format!(" {mode}")).unwrap_or_default())
            }
            Err(error) => error.code.id.to_owned(),
        }
    }

    #[test]
    fn an_unversioned_name_comes_before_versioned_ones_and_old_ones_are_left_out() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        program(&at("a/clang++-23"));
        program(&at("b/clang++-22"));
        assert_eq!(found(&search(dir.path(), true), dir.path()), "a/clang++-23");
        program(&at("llvm-19/bin/clang"));
        symlink(at("llvm-19/bin/clang"), at("a/clang++")).unwrap();
        assert_eq!(found(&search(dir.path(), true), dir.path()), "a/clang++-23");
        program(&at("b/clang++"));
        assert_eq!(found(&search(dir.path(), true), dir.path()), "b/clang++");
        program(&at("rocm/lib/llvm/bin/clang++"));
        let rocm = ToolSearch { rocm_path: Some(at("rocm")), ..search(dir.path(), true) };
        assert_eq!(found(&rocm, dir.path()), "rocm/lib/llvm/bin/clang++");
    }

    #[test]
    fn the_version_with_device_libraries_comes_before_newer_ones() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for version in [22, 23] {
            program(&at(&format!("llvm-{version}/bin/clang")));
            fs::create_dir_all(at("a")).unwrap();
            symlink(at(&format!("llvm-{version}/bin/clang")), at(&format!("a/clang++-{version}"))).unwrap();
        }
        assert_eq!(found(&search(dir.path(), true), dir.path()), "a/clang++-23");
        fs::create_dir_all(at("llvm-22/lib/clang/22/amdgcn/bitcode")).unwrap();
        assert_eq!(found(&search(dir.path(), true), dir.path()), "a/clang++-22");
    }

    #[test]
    fn we_are_skipped_on_the_path_and_refused_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        program(&at("us"));
        fs::create_dir_all(at("a")).unwrap();
        symlink(at("us"), at("a/clang++")).unwrap();
        program(&at("b/clang++"));
        let own = at("us");
        let mut search = ToolSearch { ourselves: Some(&own), ..search(dir.path(), true) };
        assert_eq!(found(&search, dir.path()), "b/clang++");
        search.named = Some(NamedCompiler { path: at("a/clang++"), origin: "HOTSWAP_CLANG".into() });
        assert_eq!(found(&search, dir.path()), "HS0103");
        search.named = Some(NamedCompiler { path: "clang++".into(), origin: "HOTSWAP_CLANG".into() });
        assert_eq!(found(&search, dir.path()), "b/clang++");
    }

    #[test]
    fn a_named_compiler_serves_both_languages() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["p/clang++-22", "p/clang-22", "q/amdclang++", "r/my-cc", "s/clang"] {
            program(&dir.path().join(name));
        }
        for (name, cxx, expected) in [
            ("p/clang++-22", true, "p/clang++-22"),
            ("p/clang++-22", false, "p/clang-22"),
            ("p/clang-22", true, "p/clang++-22"),
            ("q/amdclang++", false, "q/amdclang++ --driver-mode=gcc"),
            ("r/my-cc", true, "r/my-cc --driver-mode=g++"),
            ("s/clang", true, "s/clang --driver-mode=g++"),
            ("absent", true, "HS0101"),
            ("p", true, "HS0101"),
        ] {
            let named = NamedCompiler { path: dir.path().join(name), origin: "x".into() };
            let search = ToolSearch { named: Some(named), ..search(dir.path(), cxx) };
            assert_eq!(found(&search, dir.path()), expected, "{name} {cxx}");
        }
    }

    #[test]
    fn paths_tell_versions() {
        let dir = tempfile::tempdir().unwrap();
        for (name, version) in [
            ("lib/llvm-22/bin/clang", Some(22)),
            ("lib/llvm/19/bin/clang", Some(19)),
            ("bin/clang-23.1", Some(23)),
            ("rocm-7.2/llvm/bin/clang", None),
        ] {
            program(&dir.path().join(name));
            assert_eq!(version_in_path(&dir.path().join(name)).unwrap(), version, "{name}");
        }
    }
}
