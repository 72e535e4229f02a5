//! A rule of `tidy`: an error of a read is an answer of its own. In the crates that compare what is there with what was there,
//! a read whose error becomes "nothing" deletes a good copy; in the wrapper and the interposer it loses a plan, or changes what
//! is derived.
//!
//! A statement is complained about if it reads the file system and turns an error into a value. The table has the exceptions,
//! each with its reason.

use std::path::Path;

/// The directories whose sources decide what is removed or kept, and what is carried out.
const DIRECTORIES: &[&str] = &[
    "crates/stack/stack/src/",
    "crates/containers/packages/src/",
    "crates/products/hotswap/src/commands/serve",
    "crates/products/hotswap/src/commands/change",
    "crates/products/hotswap/src/commands/retarget",
    "crates/products/hotswap/src/work/",
    "driver-wrapper/src/",
    "linker-plugin/src/",
];

/// Calls that read the file system.
#[rustfmt::skip]
const READS: &[&str] = &[
    "fs::read(", "fs::read_dir(", "fs::read_to_string(", "fs::read_link(", "fs::metadata(", "fs::symlink_metadata(",
    "fs::canonicalize(", "File::open(", ".symlink_metadata()", ".metadata()", ".canonicalize()", ".read_dir()", ".read_link()",
    ".is_file()", ".is_dir()", ".is_symlink()", ".exists()",
];

/// Ways to turn an error into a value.
#[rustfmt::skip]
const IGNORED: &[&str] = &[
    "else { continue }", "else { return", ".ok()", ".is_ok()", ".is_err()", "is_ok_and(", "is_err_and(", "unwrap_or_default()",
    ".flatten().flatten()", ".map_or(", ".unwrap_or(", "filter_map(Result::ok)",
];

/// Methods of paths that answer `false` to every error. (`is_file` and `is_dir` are methods of metadata as well.)
const SILENT: &[&str] = &[".is_symlink()", ".exists()"];

/// File, a part of the line, and the reason.
#[rustfmt::skip]
const ALLOWED: &[(&str, &str, &str)] = &[
    ("crates/stack/stack/src/journal.rs", "fs::read(path)?", "the error is returned; the value is a position"),
    ("crates/stack/stack/src/journal.rs", "destination.is_dir()", "the next call reports the error"),
    ("crates/stack/stack/src/made.rs", "fs::metadata(&path).is_ok_and", "an output without a record is made anew"),
    ("crates/stack/stack/src/made.rs", "fs::read(&path).ok()", "an output without a record is made anew"),
    ("crates/stack/stack/src/serve.rs", "meta.is_symlink()", "of metadata that were read"),
    ("crates/stack/stack/src/serve.rs", "fs::read(&path).is_ok_and", "a manifest that cannot be read is written anew"),
    ("crates/stack/stack/src/tree.rs", "meta.is_symlink()", "of metadata that were read"),
    ("crates/stack/stack/src/tree.rs", "is_symlink() {", "of metadata that were read"),
    ("crates/containers/packages/src/unpack.rs", "directory.join(path).is_symlink()", "in a directory of our own"),
    ("crates/containers/packages/src/directory.rs", "meta.is_symlink()", "of metadata that were read"),
    ("crates/containers/packages/src/tarball.rs", "kind.is_symlink()", "of a header"),
    ("crates/products/hotswap/src/commands/serve.rs", "Path::new(word).is_file()", "the next call reports the error"),
    ("crates/products/hotswap/src/commands/serve.rs", "canonicalize().ok()?", "without an installation there is a warning"),
    ("crates/products/hotswap/src/commands/serve.rs", "library.is_file()", "without the library there is a warning"),
    ("crates/products/hotswap/src/commands/serve/actions.rs", "one.canonicalize()", "two paths that cannot be read are not one file"),
    ("crates/products/hotswap/src/commands/serve/actions.rs", "made.is_file()", "an output that is not taken is made anew"),
    ("crates/products/hotswap/src/commands/serve/maker.rs", "fs::metadata(&action.input)", "the length of a progress bar"),
    ("crates/products/hotswap/src/commands/serve/package.rs", "self.dest().symlink_metadata()", "an empty directory stays"),
    ("crates/products/hotswap/src/commands/serve/try_tree.rs", "!path.exists()", "what cannot be seen is reported"),
    ("crates/products/hotswap/src/work/probe.rs", "fs::read(path)", "the output of a probe that failed"),
    ("driver-wrapper/src/config.rs", "path.symlink_metadata().is_err_and", "the error is the question"),
    ("driver-wrapper/src/lost_kernels.rs", "fs::symlink_metadata(output)", "an error follows in any case"),
    ("driver-wrapper/src/store.rs", "part.exists()", "a warning about a cache"),
    ("driver-wrapper/src/store.rs", "fs::symlink_metadata(&base)", "the next call reports the error"),
    ("linker-plugin/src/child.rs", "/proc/self/status", "signals have their handlers then"),
];

/// Adds a complaint for each read whose error is ignored.
pub(crate) fn check_text(name: &str, text: &str, complaints: &mut Vec<String>) {
    let is_rust = Path::new(name).extension().is_some_and(|extension| extension == "rs");
    if !is_rust || !DIRECTORIES.iter().any(|directory| name.starts_with(directory)) {
        return;
    }
    let code: Vec<&str> = text.lines().take_while(|line| *line != "#[cfg(test)]").collect();
    for (number, line) in code.iter().enumerate() {
        let is_comment = line.trim_start().starts_with("//");
        if is_comment || !READS.iter().any(|read| line.contains(read)) {
            continue;
        }
        let is_silent = SILENT.iter().any(|read| line.contains(read));
        let is_ignored = IGNORED.iter().any(|ignored| statement(&code[number..]).contains(ignored));
        if (is_silent || is_ignored) && !is_allowed(name, line) {
            complaints.push(format!(
                "{name}:{}: an error of a read becomes a value: return it, or give the reason in xtask/src/ignored_reads.rs",
                number + 1
            ));
        }
    }
}

/// The line with those that follow it, to the end of its statement.
fn statement(lines: &[&str]) -> String {
    let mut text = String::new();
    for line in lines.iter().take(4) {
        text += line.trim();
        if line.ends_with([';', '{', '}', ',']) {
            break;
        }
    }
    text
}

fn is_allowed(name: &str, line: &str) -> bool {
    ALLOWED.iter().any(|(file, part, _)| *file == name && line.contains(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_planted_read_whose_error_is_ignored_is_found() {
        for planted in [
            "            let Ok(meta) = fs::symlink_metadata(&path) else { continue };",
            "    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {",
            "    let text = fs::read_to_string(path).unwrap_or_default();",
            "    let size = fs::metadata(&path)\n        .map_or(0, |meta| meta.len());",
            "    if path.exists() {",
        ] {
            let mut complaints = Vec::new();
            check_text("crates/stack/stack/src/tree.rs", planted, &mut complaints);
            assert_eq!(complaints.len(), 1, "{planted}: {complaints:?}");
            check_text("driver-wrapper/src/units.rs", planted, &mut complaints);
            assert_eq!(complaints.len(), 2, "{planted}: {complaints:?}");
            check_text("crates/amdgpu/isa/src/lib.rs", planted, &mut complaints);
            assert_eq!(complaints.len(), 2, "{planted}");
        }
        let mut complaints = Vec::new();
        let fine = "    let meta = fs::metadata(&path).map_err(|error| cannot_read(&error))?;";
        check_text("crates/stack/stack/src/tree.rs", fine, &mut complaints);
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}
