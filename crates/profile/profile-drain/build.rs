//! `libhotswap-profile-drain.a`: one object with the drain, without Rust's own libraries.
//!
//! The same sources are a library for the tests. Here rustc compiles them without `std`, with link-time optimisation in
//! one unit, whatever profile cargo builds with. Of the resulting archive only our object is kept (the others do not
//! survive `--whole-archive`), its symbols are made hidden, and its undefined symbols are checked: only functions of
//! libc, and no panic, which could not be handled.

use object::read::archive::ArchiveFile;
use object::read::elf::{ElfFile64, ElfSymbol64};
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, process};

#[allow(dead_code, unreachable_pub)] // public in the library, partly used here
#[path = "src/symbols.rs"]
mod symbols;

use symbols::{FORCED, LEGACY, UNDEFINED, WRAPPED};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src");
    println!("cargo::rustc-check-cfg=cfg(hotswap_archive)");
    let out = PathBuf::from(variable("OUT_DIR"));
    let archive = out.join(symbols::ARCHIVE_NAME);
    if supported() {
        let object = private_object(&compile(&out));
        make_archive(&out, &archive, &object);
    } else {
        fs::write(&archive, b"").unwrap_or_else(|error| fail(&format!("{}: {error}", archive.display())));
    }
    println!("cargo::metadata=archive={}", archive.display());
    println!("cargo::rustc-env=HOTSWAP_PROFILE_DRAIN_ARCHIVE={}", archive.display());
}

/// Whether HIP programs with AMD GPUs run here and the assembly of `entry.rs` supports the machine.
fn supported() -> bool {
    variable("CARGO_CFG_TARGET_OS") == "linux"
        && ["x86_64", "aarch64"].contains(&variable("CARGO_CFG_TARGET_ARCH").as_str())
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo sets no {name}")))
}

fn fail(message: &str) -> ! {
    println!("cargo::error={message}");
    process::exit(1)
}

/// Builds rustc's archive, with all of `core` in it.
fn compile(out: &Path) -> PathBuf {
    let archive = out.join("rustc.a");
    let source = Path::new(&variable("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    let mut command = Command::new(variable("RUSTC"));
    command.args(["--crate-name", "hotswap_profile_drain", "--crate-type", "staticlib", "--edition", "2024"]);
    command.args(["--cfg", "hotswap_archive", "--target", &variable("TARGET")]);
    for option in [
        "panic=abort",
        "lto=fat",
        "codegen-units=1",
        "opt-level=s",
        // Only calls that cost more than the function are inlined: 4 KB less, and no difference in time. (With `z` bounds checks stay that this level
        // removes.)
        "llvm-args=-inline-threshold=0",
        "relocation-model=pic",
        "overflow-checks=no",
        "debug-assertions=no",
        "debuginfo=0",
        "strip=debuginfo",
        "force-unwind-tables=no",
    ] {
        command.args(["-C", option]);
    }
    if variable("CARGO_CFG_TARGET_ARCH") == "aarch64" {
        // Outlined atomics call functions that an older libgcc lacks.
        command.args(["-C", "target-feature=-outline-atomics"]);
    }
    // No path of the machine in the object.
    command.arg(format!("--remap-path-prefix={}=profile-drain", variable("CARGO_MANIFEST_DIR")));
    let output = command.arg("-o").arg(&archive).arg(source).output();
    let output = output.unwrap_or_else(|error| fail(&format!("{command:?}: {error}")));
    if !output.status.success() || !output.stderr.is_empty() {
        String::from_utf8_lossy(&output.stderr).lines().for_each(|line| println!("cargo::warning={line}"));
    }
    if !output.status.success() {
        fail("rustc cannot compile the profile drain");
    }
    archive
}

type Elf<'a> = ElfFile64<'a, LittleEndian>;

/// Extracts our own object from the archive, with only its public symbols.
fn private_object(archive: &Path) -> Vec<u8> {
    let bytes = fs::read(archive).unwrap_or_else(|error| fail(&format!("{}: {error}", archive.display())));
    let read = ArchiveFile::parse(&*bytes).unwrap_or_else(|error| fail(&format!("rustc's archive: {error}")));
    let members = read.members().flatten().filter_map(|member| member.data(&*bytes).ok());
    let mut members =
        members.filter(|data: &&[u8]| Elf::parse(*data).is_ok_and(|elf| defined(&elf).any(|(_, name)| name == FORCED)));
    let Some(object) = members.next().filter(|_| members.next().is_none()) else {
        fail(&format!("not exactly one member of rustc's archive defines {FORCED}"))
    };
    let mut object = object.to_vec();
    restrict(&mut object);
    object
}

fn defined<'a>(elf: &'a Elf<'a>) -> impl Iterator<Item = (ElfSymbol64<'a, 'a, LittleEndian>, String)> {
    let globals = elf.symbols().filter(|symbol| symbol.is_global() && !symbol.is_undefined());
    globals.map(|symbol| (symbol, symbol.name().unwrap_or_default().to_owned()))
}

/// Makes every definition hidden, and every one but the forced symbol weak, in the symbol table itself.
fn restrict(object: &mut [u8]) {
    const STB_WEAK: u8 = 2;
    const STV_HIDDEN: u8 = 2;
    let mut changes = Vec::new();
    {
        let elf = Elf::parse(&*object).unwrap_or_else(|error| fail(&format!("our object: {error}")));
        let table = elf.elf_symbol_table();
        let start = table.symbols().as_ptr() as usize - object.as_ptr() as usize;
        for (symbol, name) in defined(&elf) {
            if name != FORCED && !LEGACY.contains(&name.as_str()) && !WRAPPED.iter().any(|wrapped| wrapped.name == name)
            {
                fail(&format!("the profile drain defines `{name}`, which symbols.rs does not list"));
            }
            changes.push((start + symbol.index().0 * 24, name != FORCED));
        }
        for symbol in elf.symbols().filter(|symbol| symbol.is_undefined()) {
            let name = symbol.name().unwrap_or_default();
            if !name.is_empty() && !UNDEFINED.contains(&name) {
                fail(&format!("the profile drain refers to `{name}`, which symbols.rs does not list"));
            }
        }
    }
    exclude_call_frames(object);
    for (at, weak) in changes {
        // Elf64_Sym: st_name 4 bytes, st_info (binding in the upper half), st_other (visibility).
        if weak {
            object[at + 4] = (object[at + 4] & 0xf) | (STB_WEAK << 4);
        }
        object[at + 5] = (object[at + 5] & !3) | STV_HIDDEN;
    }
}

/// Marks `.eh_frame` so that linkers omit it: 7 KB of each program. Nothing unwinds here: panics are absent, and a
/// drain runs on a stack of its own, where every walk ends. (`force-unwind-tables=no` does not suffice: LLVM writes call
/// frames because of the debug information in the bitcode of `core`, which is removed afterwards.)
fn exclude_call_frames(object: &mut [u8]) {
    const SHF_EXCLUDE: u32 = 0x8000_0000;
    let mut places = Vec::new();
    {
        let elf = Elf::parse(&*object).unwrap_or_else(|error| fail(&format!("our object: {error}")));
        let first = elf.elf_header().e_shoff.get(LittleEndian) as usize;
        for section in elf.sections().filter(|section| section.name() == Ok(".eh_frame")) {
            // Elf64_Shdr of 64 bytes: sh_name and sh_type, 4 bytes each, then sh_flags.
            places.push(first + section.index().0 * 64 + 8);
        }
    }
    for at in places {
        object[at..at + 4].copy_from_slice(&SHF_EXCLUDE.to_le_bytes());
    }
}

fn make_archive(out: &Path, archive: &Path, object: &[u8]) {
    let member = out.join("hotswap-profile-drain.o");
    let _ = fs::remove_file(archive);
    fs::write(&member, object).unwrap_or_else(|error| fail(&format!("{}: {error}", member.display())));
    let mut archiver = cc::Build::new().cargo_metadata(false).get_archiver();
    // D: no dates, no owners.
    let status = archiver.arg("crsD").arg(archive).arg(&member).status();
    if !status.as_ref().is_ok_and(process::ExitStatus::success) {
        fail(&format!("cannot make {}: {status:?}", archive.display()));
    }
}
