//! A rule of `tidy`: an error of a read is an answer of its own. In the crates that compare what is there with what was there,
//! a read whose error becomes "nothing" deletes a good copy; in the wrapper and the interposer it loses a plan, or changes what
//! is derived; in a report it is a fact that is not one.
//!
//! A statement is complained about if it reads the file system and turns an error into a value. The table has the exceptions,
//! each with its reason.

use std::path::Path;

/// The directories whose sources decide what is removed or kept, what is carried out, and what is reported.
const DIRECTORIES: &[&str] = &[
    "crates/base/",
    "crates/containers/",
    "crates/retarget/file-edit/src/",
    "crates/stack/stack/src/",
    "crates/stack/toolchain/src/",
    "crates/products/hotswap/src/",
    "driver-wrapper/src/",
    "linker-plugin/src/",
];

/// Calls that read the file system.
#[rustfmt::skip]
const READS: &[&str] = &[
    "fs::read(", "fs::read_dir(", "fs::read_to_string(", "fs::read_link(", "fs::metadata(", "fs::symlink_metadata(",
    "fs::canonicalize(", "File::open(", ".symlink_metadata()", ".metadata()", ".canonicalize()", ".read_dir()", ".read_link()",
    ".is_file()", ".is_dir()", ".is_symlink()", ".exists()", "current_exe()", "open_or_stdin(", "open_input(", "read_file(",
    "command_output(", "child_output(",
];

/// Ways to turn an error into a value.
#[rustfmt::skip]
const IGNORED: &[&str] = &[
    "else { continue }", "else { return", ".ok()", ".is_ok()", ".is_err()", "is_ok_and(", "is_err_and(", "unwrap_or_default()",
    ".flatten().flatten()", ".map_or(", ".unwrap_or(", "filter_map(Result::ok)", "let Ok(", "let (Ok(",
];

/// Methods of paths that answer `false` to every error. (`is_file` and `is_dir` are methods of metadata as well.)
#[rustfmt::skip]
const SILENT: &[&str] = &[
    ".is_symlink()", ".exists()", "path.is_file()", "path.is_dir()", "file.is_file()", "directory.is_dir()",
];

/// File, a part of the line, and the reason.
#[rustfmt::skip]
const ALLOWED: &[(&str, &str, &str)] = &[
    ("crates/base/files/src/asked_program.rs", "fs::metadata(directory.join(\".\")).is_err_and", "the error is the question"),
    ("crates/base/files/src/beside.rs", "fs::read_dir(directory)", "what killed processes left stays until it can be seen"),
    ("crates/base/files/src/cache.rs", "meta.is_symlink()", "of metadata that were read"),
    ("crates/base/files/src/cache.rs", "fs::metadata(\"/\").is_ok_and", "what cannot be seen is not trusted"),
    ("crates/base/files/src/cache.rs", "fs::metadata(parent).is_ok_and", "what cannot be seen is not trusted"),
    ("crates/base/files/src/in_place.rs", "fs::metadata(path).is_ok_and", "the next round opens it again, and returns the error"),
    ("crates/base/files/src/inode.rs", "File::open(directory).and_then", "the error of the write itself is returned then"),
    ("crates/base/files/src/scratch_directory.rs", "fs::read_dir(parent)", "what killed processes left stays until it can be seen"),
    ("crates/base/files/src/scratch_directory.rs", "directory.metadata().is_ok_and", "a directory that cannot be seen stays"),
    ("crates/base/files/src/write.rs", "meta.is_symlink()", "of metadata that were read"),
    ("crates/base/files/src/write.rs", "fs::read_to_string(status).ok()?", "the system is asked by a call then"),
    ("crates/base/plan/build.rs", "path.is_dir()", "the next call ends the build"),
    ("crates/base/plan/src/store.rs", "fs::read(&path).is_ok_and", "a plan that cannot be read is written anew"),
    ("crates/containers/load-model/src/tree.rs", "meta.is_symlink()", "of metadata that were read"),
    ("crates/containers/load-model/src/tree.rs", "fs::symlink_metadata(path)?.is_symlink()", "of metadata that were read"),
    ("crates/containers/load-model/src/tree_use.rs", "open_input(tree.find_file(path).unwrap_or(path))?", "the error is returned"),
    ("driver-wrapper/src/emission_witness.rs", "fs::metadata(directory_path()).is_ok", "clang runs for each GPU then"),
    ("driver-wrapper/src/emission_witness.rs", "fs::read_dir(self.scratch", "a witness that says nothing proves nothing"),
    ("driver-wrapper/src/emission_witness.rs", "fs::read(entry", "a witness that says nothing proves nothing"),
    ("driver-wrapper/src/source_text/directive_free.rs", "fs::read(&source.path).is_ok_and", "clang is asked then"),
    ("driver-wrapper/src/warm_headers.rs", "std::fs::read(path).ok()", "the source has no prefix then"),
    ("driver-wrapper/src/warm_headers/fingerprint.rs", "exists()", "clang passes over it as well"),
    ("driver-wrapper/src/warm_headers/fingerprint.rs", "fs::metadata(path).ok()?", "the header is made anew then"),
    ("driver-wrapper/src/warm_headers/store.rs", "fs::metadata(&file).map_or(0,", "a count of a cache"),
    ("driver-wrapper/src/warm_headers/store.rs", "fs::read_link(&link).is_ok_and", "a link that cannot be read is made anew"),
    ("driver-wrapper/src/warm_headers/store.rs", "fs::read_dir(self.root.join", "nothing is removed from a cache"),
    ("driver-wrapper/src/warm_headers/store.rs", "fs::metadata(header.record_file()).ok()?", "nothing is removed from a cache"),
    ("driver-wrapper/src/warm_headers/store.rs", "fs::metadata(self.record_file()).ok()?", "the header is made anew then"),
    ("driver-wrapper/src/warm_headers/store.rs", "fs::metadata(header.output()).map_or(0,", "the size of a cache"),
    ("driver-wrapper/src/warm_headers/store.rs", "fs::read(self.output()).is_ok_and", "the header is made anew then"),
    ("driver-wrapper/src/source_text/overlay.rs", "fs::read(spelling).ok()?", "the texts are compared by clang then"),
    ("driver-wrapper/src/source_text/overlay.rs", "spelling.canonicalize().ok()?", "the texts are compared by clang then"),
    ("driver-wrapper/src/source_text/overlay.rs", "plain.canonicalize().is_ok_and", "the texts are compared by clang then"),
    ("crates/products/hotswap/src/commands/verify.rs", "fs::metadata(file).ok()", "the file is read then, and its error told"),
    ("crates/stack/toolchain/src/file_closure.rs", "!meta.is_symlink()", "of metadata that were read"),
    ("driver-wrapper/src/source_text.rs", "preprocessor.unread.note(", "it is noted, and ends the command"),
    ("crates/products/hotswap/src/commands/run.rs", "fs::read_link(&link).is_ok_and", "a link that cannot be read is made anew"),
    ("crates/stack/stack/src/journal.rs", "fs::read(path)?", "the error is returned; the value is a position"),
    ("crates/stack/stack/src/made.rs", "fs::metadata(&path).is_ok_and", "an output without a record is made anew"),
    ("crates/stack/stack/src/made.rs", "fs::read(&path).ok()", "an output without a record is made anew"),
    ("crates/stack/stack/src/serve.rs", "meta.is_symlink()", "of metadata that were read"),
    ("crates/stack/stack/src/serve.rs", "fs::read(&path).is_ok_and", "a manifest that cannot be read is written anew"),
    ("crates/containers/packages/src/unpack.rs", "directory.join(path).is_symlink()", "in a directory of our own"),
    ("crates/containers/packages/src/directory.rs", "meta.is_symlink()", "of metadata that were read"),
    ("crates/containers/packages/src/tarball.rs", "kind.is_symlink()", "of a header"),
    ("crates/products/hotswap/src/commands/serve/actions.rs", "one.canonicalize()", "two paths that cannot be read are not one file"),
    ("crates/stack/stack/src/made_outputs.rs", "made.is_file()", "an output that is not taken is made anew"),
    ("crates/stack/stack/src/maker.rs", "fs::metadata(&action.input)", "the length of a progress bar"),
    ("crates/products/hotswap/src/commands/serve/package.rs", "self.dest().symlink_metadata()", "an empty directory stays"),
    ("driver-wrapper/src/config.rs", "path.symlink_metadata().is_err_and", "the error is the question"),
    ("driver-wrapper/src/lost_kernels.rs", "fs::symlink_metadata(output)", "an error follows in any case"),
    ("driver-wrapper/src/store.rs", "part.exists()", "a warning about a cache"),
    ("driver-wrapper/src/store.rs", "fs::symlink_metadata(&base)", "the next call reports the error"),
    ("linker-plugin/src/own_bundle.rs", "fs::canonicalize(real)", "the real tool runs then"),
    ("linker-plugin/src/own_bundle.rs", "File::open(&resolved)", "the real tool runs then"),
    ("linker-plugin/src/own_bundle.rs", "fs::read_dir(directory)", "the real tool runs then"),
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
            "    let Ok(meta) = fs::symlink_metadata(&path) else {\n        continue;",
            "    let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) else {",
            "    if let Ok(real) = path.canonicalize() {",
            "    let Ok(bytes) = hotswap_files::open_or_stdin(file) else { return targets };",
        ] {
            let mut complaints = Vec::new();
            check_text("crates/stack/stack/src/tree.rs", planted, &mut complaints);
            assert_eq!(complaints.len(), 1, "{planted}: {complaints:?}");
            let others = [
                "driver-wrapper/src/units.rs",
                "crates/base/files/src/input.rs",
                "crates/containers/bundle/src/lib.rs",
            ];
            for (number, file) in others.into_iter().chain(["crates/products/hotswap/src/commands/exec.rs"]).enumerate()
            {
                check_text(file, planted, &mut complaints);
                assert_eq!(complaints.len(), 2 + number, "{planted}: {complaints:?}");
            }
            let before = complaints.len();
            check_text("crates/amdgpu/isa/src/lib.rs", planted, &mut complaints);
            assert_eq!(complaints.len(), before, "{planted}");
        }
        let mut complaints = Vec::new();
        let fine = "    let meta = fs::metadata(&path).map_err(|error| cannot_read(&error))?;";
        check_text("crates/stack/stack/src/tree.rs", fine, &mut complaints);
        assert!(complaints.is_empty(), "{complaints:?}");
    }
}
