//! Expectations in files: compared, or written with [`ENV_BLESS`].

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

/// Set to `1`, tests write what they found in place of what they expected.
pub const ENV_BLESS: &str = "HOTSWAP_BLESS";

/// The files of a directory with that extension, sorted: a case each.
///
/// # Panics
/// If the directory cannot be read or does not hold any.
pub fn cases_in(directory: &Path, extension: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("the directory is readable").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|found| found == extension));
    assert!(!paths.is_empty(), "{} has no case", directory.display());
    paths.sort();
    paths
}

/// Whether expectations are written.
pub fn blesses() -> bool {
    env::var_os(ENV_BLESS).is_some_and(|value| value == "1")
}

/// Compares a text with a file, or writes the file.
///
/// # Errors
/// The name of the file, the first line that differs, and the whole text.
///
/// # Panics
/// If the file cannot be written.
pub fn golden(file: &Path, found: &str) -> Result<(), String> {
    let expected = fs::read_to_string(file).unwrap_or_default();
    if expected == found {
        return Ok(());
    }
    if blesses() {
        fs::write(file, found).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        return Ok(());
    }
    Err(difference(file, &expected, found))
}

fn difference(file: &Path, expected: &str, found: &str) -> String {
    let ends = "(the end)";
    let lines = |text: &str| text.lines().map(str::to_owned).chain([ends.to_owned()]).collect::<Vec<_>>();
    let (expected, now) = (lines(expected), lines(found));
    let same = expected.iter().zip(&now).take_while(|(one, other)| one == other).count();
    format!(
        "{}:{}: expected `{}`, found `{}` ({ENV_BLESS}=1 writes it):\n{found}",
        file.display(),
        same + 1,
        line_at_difference(&expected, same, ends),
        line_at_difference(&now, same, ends)
    )
}

fn line_at_difference(lines: &[String], same: usize, ends: &str) -> String {
    lines.get(same).cloned().unwrap_or_else(|| ends.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_line_that_differs_is_named() {
        let text = difference(Path::new("a.txt"), "one\ntwo\n", "one\nthree\n");
        assert!(text.starts_with("a.txt:2: expected `two`, found `three`"), "{text}");
        let text = difference(Path::new("a.txt"), "one\n", "one\nthree\n");
        assert!(text.starts_with("a.txt:2: expected `(the end)`, found `three`"), "{text}");
        let text = difference(Path::new("a.txt"), "one\n", "one");
        assert!(text.starts_with("a.txt:"), "{text}");
    }

    #[test]
    fn another_text_is_an_error_and_the_file_stays() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x.expect");
        fs::write(&file, "old\n").unwrap();
        assert!(golden(&file, "old\n").is_ok());
        if !blesses() {
            assert!(golden(&file, "new\n").is_err() && golden(&directory.path().join("absent"), "x").is_err());
            assert_eq!(fs::read_to_string(&file).unwrap(), "old\n");
        }
    }
}
