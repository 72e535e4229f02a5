//! Everything generated from `patches.def`: the table and the extern declarations of the registry, the C registrars,
//! and `libhotswap_registry.a` with one object per family.
//!
//! The archive is for users' programs. It must never be linked into HotSwap's own tools, where it would replace a
//! missing registrar; hence no link directive is printed for it. Libraries of `HOTSWAP_FAMILIES` are linked into the
//! tools, each reduced to the symbol of its own registrar.

#[allow(dead_code, unreachable_pub)] // public in the library, partly used here
#[path = "src/c_source.rs"]
mod c_source;
#[path = "build/library.rs"]
mod library;
#[allow(dead_code, unreachable_pub)] // public in the library, partly used here
#[path = "src/patches_def.rs"]
mod patches_def;

use patches_def::{DefLine, registrar_symbol};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs, process};

const INPUTS: &[&str] = &["build.rs", "build", "patches.def", "src/family", "src/c_source.rs", "src/patches_def.rs"];

fn main() {
    for input in INPUTS {
        println!("cargo::rerun-if-changed={input}");
    }
    let root = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    let families = read_families(&root);
    write_text(&out.join("table.rs"), &table_source(&families));
    write_text(&out.join("registrars.rs"), &registrar_source(&families));
    write_text(&out.join("linked.rs"), &library::link_libraries(&out, &families));
    let include = out.join("include");
    fs::create_dir_all(&include).unwrap_or_else(|error| fail_build(&format!("{}: {error}", include.display())));
    write_text(&include.join("hotswap_registry.h"), hotswap_family_abi::HEADER);
    let archive = build_archive(&include, &out, &families);
    println!("cargo::metadata=archive={}", archive.display());
    println!("cargo::metadata=include={}", include.display());
    println!("cargo::rustc-env=HOTSWAP_REGISTRY_ARCHIVE={}", archive.display());
}

fn fail_build(message: &str) -> ! {
    println!("cargo::error={message}");
    process::exit(1)
}

fn write_text(path: &Path, text: &str) {
    fs::write(path, text).unwrap_or_else(|error| fail_build(&format!("{}: {error}", path.display())));
}

fn read_families(root: &Path) -> Vec<DefLine> {
    let path = root.join("patches.def");
    let text = fs::read_to_string(&path).unwrap_or_else(|error| fail_build(&format!("{}: {error}", path.display())));
    let families = patches_def::parse(&text).unwrap_or_else(|fault| fail_build(&fault.to_string()));
    refuse_unlisted(&root.join("src/family"), &families);
    families
}

/// A family that is implemented but not listed would silently do nothing.
fn refuse_unlisted(directory: &Path, families: &[DefLine]) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().trim_end_matches(".rs").to_owned();
        if name != "mod" && !families.iter().any(|line| line.name == name) {
            fail_build(&format!("src/family/{name}.rs has no line in patches.def"));
        }
    }
}

/// The text of the file that `src/table.rs` includes.
fn table_source(families: &[DefLine]) -> String {
    let mut rows = String::new();
    let mut slots = String::new();
    for (index, DefLine { name, scope, order, summary }) in families.iter().enumerate() {
        let fields = format!("name: {name:?}, scope: FamilyScope::{scope:?}, order: {order}, summary: {summary:?}");
        let _ = writeln!(rows, "    PatchFamily {{ {fields} }},");
        let _ =
            writeln!(slots, "    pub(crate) const {}: FamilySlot = FamilySlot({index});", name.to_ascii_uppercase());
    }
    format!(
        "/// The families of `patches.def`, in its order.\npub const FAMILIES: &[PatchFamily] = &[\n{rows}];\n\n\
         /// The slot of each family.\npub(crate) mod slot {{\n    use super::FamilySlot;\n{slots}}}\n"
    )
}

/// Included by `src/registry.rs`: one extern declaration for each line, so that a line without a registrar is an
/// undefined symbol of every program that installs the registry.
fn registrar_source(families: &[DefLine]) -> String {
    let symbols: Vec<String> = families.iter().map(|line| registrar_symbol(&line.name)).collect();
    let mut text = String::from("unsafe extern \"Rust\" {\n");
    for symbol in &symbols {
        let _ = writeln!(text, "    safe fn {symbol}(registry: &mut FamilyRegistry);");
    }
    let _ =
        writeln!(text, "}}\n\npub(super) const REGISTRARS: &[fn(&mut FamilyRegistry)] = &[{}];", symbols.join(", "));
    text
}

/// Equal sources and compiler give an equal archive: no debug information, no paths, no dates,
/// member names without cc's hash of the directory.
fn build_archive(include: &Path, out: &Path, families: &[DefLine]) -> PathBuf {
    let directory = out.join("registry");
    let _ = fs::remove_dir_all(&directory);
    fs::create_dir_all(&directory).unwrap_or_else(|error| fail_build(&format!("{}: {error}", directory.display())));
    let mut objects = Vec::new();
    for line in families {
        let source = directory.join(c_source::file_name(&line.name));
        write_text(&source, &c_source::registrar_source(line));
        let compiled = c_compiler(include).file(&source).out_dir(&directory).compile_intermediates();
        let object = directory.join(format!("{}.o", line.name));
        fs::rename(&compiled[0], &object).unwrap_or_else(|error| fail_build(&format!("{}: {error}", object.display())));
        objects.push(object);
    }
    let archive = out.join("libhotswap_registry.a");
    let _ = fs::remove_file(&archive);
    let mut archiver = c_compiler(include).get_archiver();
    // D: no dates, no owners.
    let status = archiver.arg("crsD").arg(&archive).args(&objects).status();
    if !status.as_ref().is_ok_and(process::ExitStatus::success) {
        fail_build(&format!("cannot make {}: {status:?}", archive.display()));
    }
    archive
}

fn c_compiler(include: &Path) -> cc::Build {
    let mut build = cc::Build::new();
    build.cargo_metadata(false).include(include);
    build.debug(false).opt_level(2).pic(true).warnings_into_errors(true).extra_warnings(true);
    // No reference to any other symbol, whatever the distribution's default options.
    build.flag("-ffreestanding").flag("-fno-stack-protector").flag("-fno-asynchronous-unwind-tables");
    build.flag("-ffunction-sections").flag("-fdata-sections");
    // A program keeps its control-flow protection mark only if every object of it has one.
    build.flag_if_supported("-fcf-protection=full").flag_if_supported("-mbranch-protection=standard");
    build
}
