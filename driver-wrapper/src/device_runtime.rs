//! The device profile runtime: built once for each compiler by that compiler, then cached.
//!
//! Instrumented AMDGPU code of clang 23 and later calls functions of a library that distributions do not build; that of
//! clang 22 sometimes does, and needs its bounds table ([`crate::profile`]). Bitcode can only be read by the LLVM that
//! wrote it, so it cannot be shipped: the sources (`profile-runtime/*.c`) are in this program, and the user's clang
//! compiles them at first use.
//!
//! Invariants: The file's name is a hash of the compiler (path, time, size) and of the sources. A file is used only if
//! a stamp beside it names both and the bytes. It is put in place by a rename.
//!
//! Absent on purpose: which commands need it ([`crate::profile`]).

use crate::{store, toolchain};
use hotswap_report::{Diagnostic, codes};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

pub const NAME: &str = "libhotswap-profile-device.a";

/// A source of the runtime, which becomes a member of the archive.
struct RuntimeSource {
    /// The name of the member.
    name: &'static str,
    text: &'static str,
    /// The symbols that its bitcode must define.
    symbols: &'static [&'static str],
}

/// The version comes second: it is taken from the archive only where instrumented code lacks it.
const MEMBERS: &[RuntimeSource] = &[
    RuntimeSource {
        name: "counters.o",
        text: include_str!("../profile-runtime/counters.c"),
        symbols: &["__llvm_profile_sections", "__llvm_profile_sampling_gpu", "__llvm_profile_instrument_gpu"],
    },
    RuntimeSource {
        name: "version.o",
        text: include_str!("../profile-runtime/version.c"),
        symbols: &["__llvm_profile_raw_version"],
    },
    RuntimeSource {
        name: "timestamp.o",
        text: include_str!("../profile-runtime/timestamp.c"),
        symbols: &["__llvm_profile_set_timestamp"],
    },
];

/// Arguments for bitcode of no processor and no code object version, using only clang's own headers.
const WORDS: &[&str] = &[
    "--no-default-config",
    "--driver-mode=gcc",
    "--target=amdgcn-amd-amdhsa",
    "-nogpulib",
    "-nostdlibinc",
    "-ffreestanding",
    "-fPIC",
    "-fvisibility=hidden",
    "-O2",
    "-x",
    "c",
    "-",
    "-o",
    "-",
];

/// Path of the archive for that clang; builds it unless it exists or `dry`.
///
/// # Errors
/// [`codes::CHILD_FAILED`] with clang's message, [`codes::CANNOT_WRITE`], [`codes::NO_CLANG`].
pub fn prepare(clang: &Path, dry: bool) -> Result<PathBuf, Diagnostic> {
    let key = toolchain::key(clang)?;
    let sources: String = MEMBERS.iter().map(|source| source.text).collect();
    let directory = store::directory("profile-runtimes")?.join(store::name_for(&format!("{key}\n{sources}")));
    let path = directory.join(NAME);
    let stamp = directory.join("stamp");
    if dry || is_good(&path, &stamp, &key) {
        return Ok(path);
    }
    let bytes = make(clang)?;
    store::put(&path, &bytes)?;
    store::put(&stamp, stamp_text(&key, &bytes).as_bytes())?;
    Ok(path)
}

fn stamp_text(key: &str, bytes: &[u8]) -> String {
    format!("{key}\n{}\n", store::hash(bytes))
}

fn is_good(path: &Path, stamp: &Path, key: &str) -> bool {
    let (Ok(bytes), Some(stamp)) = (store::read_regular(path), store::read_regular_text(stamp)) else { return false };
    stamp == stamp_text(key, &bytes)
}

fn make(clang: &Path) -> Result<Vec<u8>, Diagnostic> {
    let version = raw_version(clang)?;
    let define = format!("-DRAW_VERSION={version}");
    let mut members = Vec::new();
    for RuntimeSource { name, text, symbols } in MEMBERS {
        let words = ["-flto", "-Xclang", "-mcode-object-version=none", "-c", &define];
        let bitcode = compile(clang, &words, text)?.stdout;
        let absent = symbols.iter().find(|symbol| !contains(&bitcode, symbol.as_bytes()));
        if let Some(symbol) = absent {
            return Err(failed(clang, &format!("{name} does not define {symbol}")));
        }
        members.push(ArchiveMember { name, bitcode });
    }
    Ok(archive(&members))
}

/// The version that this clang gives to raw profiles: code of -fprofile-generate has it, with its own
/// kind in the upper half.
fn raw_version(clang: &Path) -> Result<u32, Diagnostic> {
    let words = ["-fprofile-generate", "-emit-llvm", "-S"];
    let output = compile(clang, &words, "int hotswap_probe(int x) { return x; }\n")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    parse_version(&text).ok_or_else(|| failed(clang, "code of -fprofile-generate names no version"))
}

/// `72057594037927947` of `@__llvm_profile_raw_version = … constant i64 72057594037927947, comdat`.
fn parse_version(text: &str) -> Option<u32> {
    let line = text.lines().find(|line| line.starts_with("@__llvm_profile_raw_version"))?;
    let number = line.split(" i64 ").nth(1)?;
    let number: u64 = number.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    u32::try_from(number & 0xffff_ffff).ok().filter(|version| *version > 0)
}

fn compile(clang: &Path, words: &[&str], source: &str) -> Result<Output, Diagnostic> {
    let mut command = Command::new(clang);
    command.args(words).args(WORDS);
    // Variables that a build may set for its own compiles.
    for name in ["COMPILER_PATH", "CCC_OVERRIDE_OPTIONS", "CPATH", "C_INCLUDE_PATH"] {
        command.env_remove(name);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|one| clang_start_failure(one, clang))?;
    // Clang reads all of it before it writes; a clang that ends early reports the reason.
    let _ = child.stdin.take().map(|mut pipe| pipe.write_all(source.as_bytes()));
    let output = hotswap_files::child_output(child).map_err(|one| clang_start_failure(one, clang))?;
    if output.status.success() {
        return Ok(output);
    }
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    Err(failed(clang, said.lines().find(|line| line.contains("error")).unwrap_or("it failed without a word")))
}

fn clang_start_failure(error: std::io::Error, clang: &Path) -> Diagnostic {
    failed(clang, &error.to_string())
}

fn failed(clang: &Path, why: &str) -> Diagnostic {
    Diagnostic::error(codes::CHILD_FAILED, format!("the device profile runtime could not be compiled: {why}"))
        .in_file(clang)
        .advise("counters in device code need clang's AMDGPU target and its own headers")
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

struct ArchiveMember {
    name: &'static str,
    bitcode: Vec<u8>,
}

/// A System V archive without an index, which lld does not need.
fn archive(members: &[ArchiveMember]) -> Vec<u8> {
    let mut bytes = b"!<arch>\n".to_vec();
    for ArchiveMember { name, bitcode: member } in members {
        let name = format!("{name}/");
        let header = format!("{name:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", 0, 0, 0, 644, member.len());
        bytes.extend_from_slice(header.as_bytes());
        bytes.extend_from_slice(member);
        bytes.resize(bytes.len().next_multiple_of(2), b'\n');
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_version_is_the_lower_half_of_what_code_carries() {
        let line = "@__llvm_profile_raw_version = hidden addrspace(1) constant i64 72057594037927947, comdat\n";
        assert_eq!(parse_version(&format!("$__llvm_profile_raw_version = comdat any\n{line}")), Some(11));
        assert_eq!(parse_version("@other = constant i64 3"), None);
        assert_eq!(parse_version("@__llvm_profile_raw_version = external constant i64"), None);
        assert_eq!(parse_version("@__llvm_profile_raw_version = constant i64 4294967296, comdat"), None);
    }

    #[test]
    fn an_archive_reads_back() {
        let bytes = archive(&[
            ArchiveMember { name: "a.o", bitcode: b"abc".to_vec() },
            ArchiveMember { name: "b.o", bitcode: b"de".to_vec() },
        ]);
        let read = object::read::archive::ArchiveFile::parse(&*bytes).unwrap();
        let members: Vec<_> = read
            .members()
            .map(|member| member.unwrap())
            .map(|member| (member.name().to_vec(), member.data(&*bytes).unwrap().to_vec()))
            .collect();
        assert_eq!(members, [(b"a.o".to_vec(), b"abc".to_vec()), (b"b.o".to_vec(), b"de".to_vec())]);
    }

    #[test]
    fn a_file_is_good_only_with_its_stamp() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let good = || is_good(&at("a"), &at("s"), "key");
        assert!(!good());
        fs::write(at("a"), "bytes").unwrap();
        assert!(!good());
        fs::write(at("s"), stamp_text("key", b"bytes")).unwrap();
        assert!(good());
        assert!(!is_good(&at("a"), &at("s"), "another"));
        fs::write(at("a"), "byte").unwrap();
        assert!(!good());
    }

    #[test]
    fn a_clang_without_the_gpu_is_told_in_its_own_words() {
        let dir = tempfile::tempdir().unwrap();
        let clang = dir.path().join("clang");
        fs::write(&clang, "#!/bin/sh\ncat >/dev/null\necho 'error: unable to create target' >&2\nexit 1\n").unwrap();
        fs::set_permissions(&clang, fs::Permissions::from_mode(0o755)).unwrap();
        let error = make(&clang).unwrap_err();
        assert_eq!(error.code, codes::CHILD_FAILED);
        assert!(error.what.contains("unable to create target"), "{}", error.what);
    }
}
