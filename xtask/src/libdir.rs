//! The directory of libraries for programs (`--libdir`), where a distribution does not have them in `lib`: `/usr/lib64`, or the
//! machine's directory.
//!
//! Invariant: the file for pkg-config names its own place relative to itself, so that an installation can be moved.
//!
//! Absent on purpose: `lib/hotswap`, by which the tools find each other.

use crate::documents::read;
use crate::outcome::{During, Outcome, fail};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// The directory relative to the prefix.
pub(crate) fn relative(prefix: &Path, libdir: &Path) -> Outcome<PathBuf> {
    let relative = if libdir.is_absolute() { libdir.strip_prefix(prefix).ok() } else { Some(libdir) };
    match relative {
        Some(path) if path.components().all(|part| matches!(part, Component::Normal(_))) => Ok(path.to_owned()),
        _ => fail(format!("--libdir {} is not below --prefix {}", libdir.display(), prefix.display())),
    }
}

/// Moves the libraries of an installation from `lib` to that directory.
pub(crate) fn move_libraries(place: &Path, libdir: &Path) -> Outcome {
    let (from, to) = (place.join("lib"), place.join(libdir));
    if from == to {
        return Ok(());
    }
    fs::create_dir_all(to.join("pkgconfig")).during("create", &to)?;
    for entry in fs::read_dir(&from).during("read", &from)?.flatten() {
        let name = entry.file_name();
        if name.to_string_lossy().starts_with("libhotswap") {
            fs::rename(entry.path(), to.join(&name)).during("move", &entry.path())?;
        }
    }
    let old = from.join("pkgconfig/hotswap.pc");
    let text = adapted(&read(&old)?, libdir)?;
    let new = to.join("pkgconfig/hotswap.pc");
    fs::write(&new, text).during("write", &new)?;
    fs::remove_file(&old).during("delete", &old)?;
    // Of other packages it may have files.
    let _ = fs::remove_dir(from.join("pkgconfig"));
    Ok(())
}

/// The file for pkg-config in that directory.
fn adapted(text: &str, libdir: &Path) -> Outcome<String> {
    let up = "/..".repeat(libdir.components().count() + 1);
    let mut text = text.to_owned();
    for (old, new) in [
        ("PREFIX/lib/pkgconfig", format!("PREFIX/{}/pkgconfig", libdir.display())),
        ("prefix=${pcfiledir}/../..\n", format!("prefix=${{pcfiledir}}{up}\n")),
        ("libdir=${prefix}/lib\n", format!("libdir=${{prefix}}/{}\n", libdir.display())),
    ] {
        if !text.contains(old) {
            return fail(format!("hotswap.pc has no line {old:?}"));
        }
        text = text.replacen(old, &new, 1);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paths;

    #[test]
    fn libraries_and_the_file_for_pkg_config_are_moved() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        let pc = read(&paths::workspace().join("crates/products/libhotswap/hotswap.pc")).unwrap();
        for (libdir, up) in [("lib64", "/../.."), ("lib/x86_64-linux-gnu", "/../../..")] {
            let _ = fs::remove_dir_all(place.join("lib"));
            fs::create_dir_all(place.join("lib/pkgconfig")).unwrap();
            fs::create_dir_all(place.join("lib/hotswap")).unwrap();
            fs::write(place.join("lib/libhotswap.so.0"), "").unwrap();
            fs::write(place.join("lib/pkgconfig/hotswap.pc"), &pc).unwrap();
            move_libraries(place, Path::new(libdir)).unwrap();
            assert!(place.join(libdir).join("libhotswap.so.0").exists() && !place.join("lib/libhotswap.so.0").exists());
            assert!(place.join("lib/hotswap").exists());
            let moved = read(&place.join(libdir).join("pkgconfig/hotswap.pc")).unwrap();
            assert!(moved.contains(&format!("prefix=${{pcfiledir}}{up}\n")), "{moved}");
            assert!(moved.contains(&format!("libdir=${{prefix}}/{libdir}\n")), "{moved}");
        }
    }

    #[test]
    fn the_directory_is_below_the_prefix() {
        let of =
            |libdir: &str| relative(Path::new("/usr"), Path::new(libdir)).ok().map(|path| path.display().to_string());
        assert_eq!(of("/usr/lib64").as_deref(), Some("lib64"));
        assert_eq!(of("lib/x86_64-linux-gnu").as_deref(), Some("lib/x86_64-linux-gnu"));
        assert_eq!((of("/opt/lib"), of("../lib")), (None, None));
    }
}
