//! The behaviour of the tools when `patches.def` and `src/family` do not match: cargo builds a copy of this crate and a
//! small tool that uses it, offline, with one thing changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../..");
/// The target directory of the copies.
const TARGET: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/listed");
const LINE: &str = "HOTSWAP_PATCH(zoom, CodeObject, 9, \"nothing\")\n";

/// A workspace of two crates: `families`, a copy, and `tool`.
struct Copy {
    directory: tempfile::TempDir,
}

impl Copy {
    fn new() -> Self {
        let copy = Self { directory: tempfile::tempdir().unwrap() };
        for part in ["Cargo.toml", "build.rs", "build", "patches.def", "src"] {
            copy_tree(&Path::new(env!("CARGO_MANIFEST_DIR")).join(part), &copy.path("families").join(part));
        }
        copy.write("Cargo.toml", &workspace());
        fs::copy(format!("{WORKSPACE}/Cargo.lock"), copy.path("Cargo.lock")).unwrap();
        copy.write(
            "tool/Cargo.toml",
            "[package]\nname = \"tool\"\nedition = \"2024\"\n[dependencies]\nhotswap-families.workspace = true\n",
        );
        copy.write(
            "tool/src/main.rs",
            "fn main() { println!(\"{:?}\", hotswap_families::FamilyRegistry::installed()); }\n",
        );
        copy
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
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

    /// Builds and runs the tool. Returns whether it succeeded, and its output.
    fn run(&self) -> (bool, String) {
        self.run_with("")
    }

    /// The same, with these libraries of families in the environment.
    fn run_with(&self, families: &str) -> (bool, String) {
        let mut cargo = self.cargo(&["run", "--package", "tool"]);
        if !families.is_empty() {
            cargo.env("HOTSWAP_FAMILIES", families);
        }
        let output = cargo.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8_lossy(&text).into_owned())
    }

    fn cargo(&self, arguments: &[&str]) -> Command {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(arguments).args(["--offline", "--quiet"]).current_dir(self.directory.path());
        cargo.env("CARGO_TARGET_DIR", TARGET).env("CARGO_PROFILE_DEV_DEBUG", "0").env_remove("HOTSWAP_FAMILIES");
        cargo
    }

    /// The example family in C as a static library, without its registrar or with it.
    fn c_library(&self, name: &str, defined: &str) -> String {
        let source = self.path(&format!("{name}.c"));
        let text = fs::read_to_string(format!("{WORKSPACE}/crates/retarget/family-abi/examples/no_sethalt.c")).unwrap();
        fs::write(&source, text.replace("hotswap_register_no_sethalt_patch", defined)).unwrap();
        let (object, library) = (self.path(&format!("{name}.o")), self.path(&format!("lib{name}.a")));
        let include = format!("-I{WORKSPACE}/crates/retarget/family-abi/include");
        let compiled =
            Command::new("cc").args(["-c", "-std=c99", &include]).arg(&source).arg("-o").arg(&object).status();
        assert!(compiled.unwrap().success());
        assert!(Command::new("ar").arg("crs").arg(&library).arg(&object).status().unwrap().success());
        library.display().to_string()
    }

    /// The example family in Rust as a static library, with Rust's standard library in it.
    fn rust_library(&self) -> String {
        self.write(
            "no_trap/Cargo.toml",
            "[package]\nname = \"no_trap\"\nedition = \"2024\"\n[lib]\ncrate-type = [\"staticlib\"]\n\
             [dependencies]\nhotswap-family-abi.workspace = true\n",
        );
        let example =
            fs::read_to_string(format!("{WORKSPACE}/crates/retarget/family-abi/examples/no_trap.rs")).unwrap();
        self.write("no_trap/src/lib.rs", &example);
        assert!(self.cargo(&["build", "--package", "no_trap"]).status().unwrap().success());
        format!("{TARGET}/debug/libno_trap.a")
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

/// The root manifest with two members. The other crates of HotSwap are used in place.
fn workspace() -> String {
    let text = fs::read_to_string(format!("{WORKSPACE}/Cargo.toml")).unwrap();
    let (before, rest) = text.split_once("members = [").unwrap();
    let (_, after) = rest.split_once(']').unwrap();
    let text = format!("{before}members = [\"families\", \"tool\"]{after}");
    let text = text.replace("path = \"", &format!("path = \"{WORKSPACE}/"));
    text.replace(&format!("{WORKSPACE}/crates/retarget/families\""), "families\"")
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

/// The skeleton that `cargo xtask new-family` writes builds in the tools without changes.
#[test]
fn the_skeletons_of_new_families_build_and_fill_their_slots() {
    let copy = Copy::new();
    for (name, scope) in [("aardvark", "instruction"), ("middle", "function"), ("zebra", "code-object")] {
        let mut xtask = Command::new(env!("CARGO"));
        xtask.args(["run", "--offline", "--quiet", "--package", "xtask", "--", "new-family", name, "--scope", scope]);
        let output = xtask.arg("--directory").arg(copy.path("families")).current_dir(WORKSPACE).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(copy.path(&format!("families/src/family/{name}.rs")).exists());
    }
    let (good, text) = copy.run();
    assert!(good && text.contains("fault: None"), "{text}");
    let lines = fs::read_to_string(copy.path("families/patches.def")).unwrap();
    let count = lines.lines().filter(|line| line.starts_with("HOTSWAP_PATCH(")).count();
    assert!(lines.contains("HOTSWAP_PATCH(zebra, CodeObject, 5, \"not written yet\")"), "{lines}");
    let slots = text.split("bound:").next().unwrap();
    let filled = ["Some(Instruction(", "Some(Function(", "Some(CodeObject("].map(|slot| slots.matches(slot).count());
    assert_eq!(filled.iter().sum::<usize>(), count, "{text}");
}

/// Third-party static libraries, in C and in Rust, become part of the tools. One without its registrar does not link.
#[test]
fn libraries_of_families_are_linked_into_the_tools() {
    let copy = Copy::new();
    copy.change("Cargo.toml", |text| text.replace("\"tool\"]", "\"tool\", \"no_trap\"]"));
    let rust = copy.rust_library();
    let c = copy.c_library("halt", "hotswap_register_no_sethalt_patch");
    let (good, text) = copy.run_with(&format!("no_sethalt={c}:no_trap={rust}"));
    assert!(good && text.contains("others: [ThirdParty") && text.contains("fault: None"), "{text}");
    let place = |name: &str| text.find(&format!("name: \"{name}\", scope: Instruction, order: 0")).unwrap();
    assert!(place("no_sethalt") < place("no_trap"), "{text}");

    let other = copy.c_library("other", "hotswap_register_something_else_patch");
    for (families, parts) in [
        (format!("no_sethalt={other}"), &["linking with", "hotswap_register_no_sethalt_patch"][..]),
        (format!("target_note={c}"), &["the name `target_note` is taken"]),
        (format!("no_sethalt={c}:no_sethalt={c}"), &["the name `no_sethalt` is taken"]),
        (format!("No={c}"), &["`No` is no name of a family"]),
        ("no_sethalt=lib.a".to_owned(), &["is not NAME=LIBRARY with an absolute path"]),
        ("no_sethalt=/nowhere/lib.a".to_owned(), &["/nowhere/lib.a"]),
    ] {
        let (good, text) = copy.run_with(&families);
        assert!(!good && parts.iter().all(|part| text.contains(part)), "{families}: {text}");
    }
    // The registrar of another family shares only its symbol with HotSwap's own, and that symbol stays local.
    let own = copy.c_library("own", "hotswap_register_target_note_patch");
    let (good, text) = copy.run_with(&format!("no_sethalt={own}"));
    assert!(!good && text.contains("hotswap_register_no_sethalt_patch"), "{text}");
}

fn join(text: String, line: &str) -> String {
    text + line + "\n"
}
