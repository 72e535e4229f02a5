//! What happens to the tools when `patches.def` and `src/family` do not fit together: a copy of
//! this crate and a small tool that uses it are built by cargo, offline, with one thing changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const LINE: &str = "HOTSWAP_PATCH(zoom, CodeObject, 9, \"nothing\")\n";

/// A workspace of two crates: `families`, a copy, and `tool`.
struct Copy {
    folder: tempfile::TempDir,
}

impl Copy {
    fn new() -> Self {
        let copy = Self { folder: tempfile::tempdir().unwrap() };
        for part in ["Cargo.toml", "build.rs", "patches.def", "src"] {
            copy_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join(part), &copy.path("families").join(part));
        }
        copy.write("Cargo.toml", &workspace());
        fs::copy(format!("{WORKSPACE}/Cargo.lock"), copy.path("Cargo.lock")).unwrap();
        copy.write(
            "tool/Cargo.toml",
            "[package]\nname = \"tool\"\nedition = \"2024\"\n[dependencies]\nhotswap-families.workspace = true\n",
        );
        copy.write("tool/src/main.rs", "fn main() { println!(\"{:?}\", hotswap_families::Registry::installed()); }\n");
        copy
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        fs::create_dir_all(self.path(name).parent().unwrap()).unwrap();
        fs::write(self.path(name), text).unwrap();
    }

    /// Rewrites a file and returns its old text.
    fn change(&self, name: &str, change: impl Fn(&str) -> String) -> String {
        let old = fs::read_to_string(self.path(name)).unwrap();
        let new = change(&old);
        assert_ne!(old, new, "{name} is as before");
        self.write(name, &new);
        old
    }

    /// Builds and runs the tool: whether it went well, and what was said.
    fn run(&self) -> (bool, String) {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["run", "--offline", "--quiet", "--package", "tool"]).current_dir(self.folder.path());
        cargo.env("CARGO_TARGET_DIR", concat!(env!("CARGO_TARGET_TMPDIR"), "/listed"));
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
        let output = cargo.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    fn must_fail(&self, parts: &[&str]) {
        let (good, text) = self.run();
        assert!(!good, "it builds: {text}");
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    }
}

fn copy_tree(from: &Path, to: &Path) {
    if from.is_dir() {
        for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
            copy_tree(&entry.path(), &to.join(entry.file_name()));
        }
    } else {
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
}

/// The root manifest with two members; the other crates of HotSwap stay where they are.
fn workspace() -> String {
    let text = fs::read_to_string(format!("{WORKSPACE}/Cargo.toml")).unwrap();
    let (before, rest) = text.split_once("members = [").unwrap();
    let (_, after) = rest.split_once(']').unwrap();
    let text = format!("{before}members = [\"families\", \"tool\"]{after}");
    let text = text.replace("path = \"", &format!("path = \"{WORKSPACE}/"));
    text.replace(&format!("{WORKSPACE}/crates/families\""), "families\"")
}

#[test]
fn the_list_and_the_registrars_must_fit_or_the_tools_do_not_build() {
    let copy = Copy::new();
    let (good, text) = copy.run();
    assert!(good, "{text}");

    let old = copy.change("families/patches.def", |text| format!("{text}{LINE}"));
    copy.must_fail(&["linking with", "hotswap_register_zoom_patch"]);
    copy.write("families/patches.def", &old);

    let registrar = fs::read_to_string(copy.path("families/src/family/target_note.rs")).unwrap();
    fs::remove_file(copy.path("families/src/family/target_note.rs")).unwrap();
    copy.must_fail(&["file not found for module `target_note`"]);
    let modules = copy.change("families/src/family/mod.rs", |text| text.replace("mod target_note;\n", ""));
    copy.must_fail(&["linking with", "hotswap_register_target_note_patch"]);
    copy.write("families/src/family/mod.rs", &modules);

    let renamed = registrar.replace("hotswap_register_target_note_patch", "hotswap_register_machine_flags_patch");
    copy.write("families/src/family/target_note.rs", &renamed);
    copy.must_fail(&["`hotswap_register_machine_flags_patch` is already defined"]);
    let foreign = registrar.replace("slot::TARGET_NOTE", "slot::MACHINE_FLAGS");
    copy.write("families/src/family/target_note.rs", &foreign);
    let (good, text) = copy.run();
    assert!(good && text.contains("the registrar of `target_note` binds the slot of `machine_flags`"), "{text}");
    copy.write("families/src/family/target_note.rs", &registrar);

    let without = |text: &str| text.lines().filter(|line| !line.contains("(target_note,")).fold(String::new(), join);
    copy.change("families/patches.def", without);
    copy.must_fail(&["src/family/target_note.rs has no line in patches.def"]);
    copy.change("families/patches.def", |_| {
        old.lines().rev().filter(|line| !line.starts_with("//")).fold(String::new(), join)
    });
    copy.must_fail(&["patches.def:2: `wmma_split` belongs before `wmma_wait`"]);
    copy.write("families/patches.def", &old);
    let (good, text) = copy.run();
    assert!(good, "{text}");
}

fn join(text: String, line: &str) -> String {
    text + line + "\n"
}
