//! Static libraries of families that are linked into this build of the tools: `HOTSWAP_FAMILIES`.
//!
//! Each library becomes one object in which the registrar is the only global symbol. It therefore replaces no registrar
//! of HotSwap's own, and a library written in Rust brings its standard library without a clash of names. A library
//! without the registrar makes such an object, too, and the link of every tool names the undefined symbol.
//!
//! Absent on purpose: families loaded at run time.

use super::{fail_build, patches_def::registrar_symbol};
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// The families, `NAME=LIBRARY`, separated as in `PATH`, in the order in which they run.
const VARIABLE: &str = "HOTSWAP_FAMILIES";

struct FamilyLibrary {
    name: String,
    path: PathBuf,
}

/// Links the libraries of the environment. Returns the text that `src/registry.rs` includes: their registrars.
pub(super) fn link_libraries(out: &Path, listed: &[super::DefLine]) -> String {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let libraries = requested_libraries();
    for (index, library) in libraries.iter().enumerate() {
        check_name(library, &libraries[..index], listed);
        println!("cargo::rerun-if-changed={}", library.path.display());
        write_archive(&link_object(library, out), &library.name, out);
    }
    if !libraries.is_empty() {
        println!("cargo::rustc-link-search=native={}", out.display());
    }
    linked_source(&libraries)
}

fn requested_libraries() -> Vec<FamilyLibrary> {
    let value = env::var_os(VARIABLE).unwrap_or_default();
    env::split_paths(&value).filter(|item| !item.as_os_str().is_empty()).map(|item| parse(&item)).collect()
}

fn parse(item: &Path) -> FamilyLibrary {
    let text = item.to_str().unwrap_or_else(|| fail_build(&format!("{VARIABLE}: {}: no UTF-8", item.display())));
    match text.split_once('=') {
        Some((name, path)) if Path::new(path).is_absolute() => {
            FamilyLibrary { name: name.to_owned(), path: PathBuf::from(path) }
        }
        _ => fail_build(&format!("{VARIABLE}: `{text}` is not NAME=LIBRARY with an absolute path")),
    }
}

fn check_name(library: &FamilyLibrary, before: &[FamilyLibrary], listed: &[super::DefLine]) {
    let name = &library.name;
    if !super::patches_def::is_family_name(name) {
        fail_build(&format!("{VARIABLE}: `{name}` is no name of a family: a-z, 0-9 and _"));
    }
    if listed.iter().any(|line| line.name == *name) || before.iter().any(|other| other.name == *name) {
        fail_build(&format!("{VARIABLE}: the name `{name}` is taken"));
    }
}

/// Links the library into one relocatable object: the registrar and its dependencies, with no other global symbol.
fn link_object(library: &FamilyLibrary, out: &Path) -> PathBuf {
    let (symbol, object) = (registrar_symbol(&library.name), out.join(format!("family_{}.o", library.name)));
    let mut partial_link = cc::Build::new().cargo_metadata(false).get_compiler().to_command();
    // Groups end here: the final link would keep one copy of a group, and local symbols of the others would be lost.
    partial_link.args(["-nostdlib", "-r", "-Wl,--force-group-allocation"]);
    run_command(
        partial_link.arg(reference_object(&symbol, &library.name, out)).arg(&library.path).arg("-o").arg(&object),
    );
    let mut objcopy = Command::new("objcopy");
    // Bitcode next to the code, as in Rust's standard library, would be joined with a section that is not bitcode.
    objcopy.args(["--remove-section=.llvmbc", "--remove-section=.llvmcmd", &format!("--keep-global-symbol={symbol}")]);
    run_command(objcopy.arg(&object));
    object
}

/// An object that refers to the registrar: it pulls the registrar out of the library, and reports it
/// if it is undefined.
fn reference_object(symbol: &str, name: &str, out: &Path) -> PathBuf {
    let source = out.join(format!("reference_{name}.c"));
    super::write_text(
        &source,
        &format!("extern void {symbol}(void *);\nvoid (*const reference)(void *) = {symbol};\n"),
    );
    let compiled = cc::Build::new().cargo_metadata(false).file(&source).out_dir(out).compile_intermediates();
    compiled.into_iter().next().unwrap_or_else(|| fail_build("the compiler made no object"))
}

fn write_archive(object: &Path, name: &str, out: &Path) {
    let archive = out.join(format!("libhotswap_family_{name}.a"));
    let _ = fs::remove_file(&archive);
    run_command(cc::Build::new().cargo_metadata(false).get_archiver().arg("crsD").arg(&archive).arg(object));
    println!("cargo::rustc-link-lib=static=hotswap_family_{name}");
}

fn run_command(command: &mut Command) {
    let status = command.status();
    if !status.as_ref().is_ok_and(std::process::ExitStatus::success) {
        let program = command.get_program().display().to_string();
        let arguments: Vec<_> = command.get_args().map(|argument| argument.to_string_lossy()).collect();
        fail_build(&format!("{program} {}: {status:?}", arguments.join(" ")));
    }
}

fn linked_source(libraries: &[FamilyLibrary]) -> String {
    if libraries.is_empty() {
        return "pub(super) static LINKED: &[hotswap_family_abi::Registrar] = &[];\n".to_owned();
    }
    let mut rows = String::new();
    for FamilyLibrary { name, .. } in libraries {
        let _ = writeln!(rows, "    {name} = {},", registrar_symbol(name));
    }
    format!("hotswap_family_abi::registrars! {{ pub(super) static LINKED:\n{rows}}}\n")
}
