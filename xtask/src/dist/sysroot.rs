//! Headers and libraries of an older glibc, for packages that run on machines with that one.
//!
//! Zig has the symbols of each version of glibc with their versions, and writes libraries to link with that have no code. Its wheel
//! on PyPI is unpacked, a program is linked for the version, and what the link needed is laid out as gcc expects it. The programs are
//! compiled and linked by the machine's own gcc.
//!
//! Invariant: what newer versions added is in no library, so that a reference to it is an error of the link.
//!
//! Absent on purpose: zig as the linker, which knows neither `--require-defined` nor `--exclude-libs`.

use super::glibc::GlibcVersion;
use super::stage::{self, Machine};
use crate::c_compiler::CCompiler;
use crate::outcome::{During, Outcome, fail};
use crate::{paths, remove, run};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The version of the wheel `ziglang`; its cache directory and its headers are read by their names there.
const ZIG: &str = "0.17.1";

/// The libraries that the link needed, besides that of the language.
const LIBRARIES: &[&str] = &["libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1", "libutil.so.1"];

/// Files of gcc and of the machine's glibc that are the same for each version.
const OF_GCC: &[&str] = &["crti.o", "crtn.o", "libgcc_s.so.1"];

/// The one function that gcc's unwinder needs of a glibc from 2.35 on.
const DL_FIND_OBJECT: &str = include_str!("dl_find_object.c");

/// A directory with `usr/include` and `usr/lib` of a version of glibc.
pub(super) struct Sysroot {
    directory: PathBuf,
    version: GlibcVersion,
}

impl Sysroot {
    /// Lays it out anew for that machine, by a C compiler for it.
    pub(super) fn lay_out(version: &GlibcVersion, machine: &Machine, compiler: &CCompiler) -> Outcome<Self> {
        let directory = paths::scratch(&format!("glibc-{version}-{}", machine.linux));
        remove::delete(&directory)?;
        let sysroot = Self { directory, version: version.clone() };
        let zig = unpack_zig()?;
        let cache = sysroot.directory.join("zig");
        sysroot.link_probe(&zig, &cache, machine)?;
        sysroot.copy_headers(&zig, machine)?;
        sysroot.copy_libraries(&cache, compiler)?;
        remove::delete(&cache)?;
        sysroot.add_unwinder_lookup(compiler)?;
        Ok(sysroot)
    }

    pub(super) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Arguments for a link by gcc. The machine's libgcc_s needs its own glibc, and that of the user's machine does not.
    pub(super) fn link_arguments(&self) -> Vec<String> {
        let (root, libraries) = (self.directory.display(), self.libraries());
        vec![
            format!("--sysroot={root}"),
            format!("-B{}", libraries.display()),
            "-Wl,--allow-shlib-undefined".to_owned(),
        ]
    }

    /// Arguments for C: zig's headers are those of all versions, and ask for the number.
    pub(super) fn compile_arguments(&self) -> Vec<String> {
        let minor = self.version.minor();
        let headers = self.headers();
        vec![
            format!("--sysroot={}", self.directory.display()),
            format!("-isystem{}", headers.display()),
            format!("-D__GLIBC_MINOR__={minor}"),
        ]
    }

    fn headers(&self) -> PathBuf {
        self.directory.join("usr/include")
    }

    fn libraries(&self) -> PathBuf {
        self.directory.join("usr/lib")
    }

    /// Links a program with all libraries, which leaves them in the cache directory.
    fn link_probe(&self, zig: &Path, cache: &Path, machine: &Machine) -> Outcome {
        fs::create_dir_all(cache).during("create", cache)?;
        let source = cache.join("probe.c");
        fs::write(&source, "int main(void) { return 0; }\n").during("write", &source)?;
        let mut link = Command::new(zig.join("ziglang/zig"));
        link.env("ZIG_GLOBAL_CACHE_DIR", cache).env("ZIG_LOCAL_CACHE_DIR", cache.join("local"));
        link.args(["cc", "-target"]).arg(format!("{}-linux-gnu.{}", machine.linux, self.version));
        link.args(["-pie", "-o"]).arg(cache.join("probe")).arg(&source).args(["-lm", "-lpthread", "-ldl", "-lrt"]);
        run::show(&mut link)
    }

    /// Headers of a machine come before those of all.
    fn copy_headers(&self, zig: &Path, machine: &Machine) -> Outcome {
        let all = zig.join("ziglang/lib/libc/include");
        let headers = self.headers();
        fs::create_dir_all(&headers).during("create", &headers)?;
        let family = if machine.linux == "x86_64" { "x86" } else { machine.linux };
        for name in ["any-linux-any", &format!("{family}-linux-any"), "generic-glibc", &format!("{family}-linux-gnu")] {
            run::output(Command::new("cp").arg("-R").arg(all.join(name).join(".")).arg(&headers))?;
        }
        Ok(())
    }

    fn copy_libraries(&self, cache: &Path, compiler: &CCompiler) -> Outcome {
        let libraries = self.libraries();
        fs::create_dir_all(&libraries).during("create", &libraries)?;
        let made = stage::entries(&cache.join("o"))?;
        let loader = made.iter().find(|path| has_name(path, "libld.so.2"));
        let loader = loader.ok_or(std::io::Error::other("zig made no stand-in for the dynamic loader"))?;
        copy(loader, &libraries.join("libld.so.2"))?;
        for name in LIBRARIES.iter().chain(&["libc.so.6", "libc_nonshared.a", "Scrt1.o"]) {
            let Some(file) = made.iter().find(|path| has_name(path, name)) else {
                return fail(format!("zig {ZIG} made no {name} for glibc {}", self.version));
            };
            copy(file, &libraries.join(name))?;
        }
        for name in LIBRARIES {
            // `-lm` looks for libm.so.
            let plain = name.trim_end_matches(|letter: char| letter == '.' || letter.is_ascii_digit());
            copy(&libraries.join(name), &libraries.join(plain))?;
        }
        for name in OF_GCC {
            let path = run::output(compiler.command().arg(format!("-print-file-name={name}")))?;
            copy(Path::new(path.trim()), &libraries.join(name))?;
        }
        let script = "GROUP ( libc.so.6 libc_nonshared.a AS_NEEDED ( libld.so.2 ) )\n";
        let file = libraries.join("libc.so");
        fs::write(&file, script).during("write", &file)
    }

    /// Adds the function to the part of glibc that is linked into each program and library.
    fn add_unwinder_lookup(&self, compiler: &CCompiler) -> Outcome {
        let (source, object) = (self.directory.join("dl_find_object.c"), self.directory.join("dl_find_object.o"));
        fs::write(&source, DL_FIND_OBJECT).during("write", &source)?;
        let mut compile = compiler.command();
        compile.args(self.compile_arguments()).args(["-O2", "-fPIC", "-Wall", "-Werror", "-c", "-o"]);
        run::output(compile.arg(&object).arg(&source))?;
        run::output(compiler.tool("ar").arg("rD").arg(self.libraries().join("libc_nonshared.a")).arg(&object)).map(drop)
    }
}

fn has_name(path: &Path, name: &str) -> bool {
    path.file_name().is_some_and(|file| file == name)
}

fn copy(from: &Path, to: &Path) -> Outcome {
    fs::copy(from, to).map(drop).during("copy", from)
}

/// The files of zig's wheel, which pip downloads once.
fn unpack_zig() -> Outcome<PathBuf> {
    let directory = paths::scratch(&format!("zig-{ZIG}"));
    let unpacked = directory.join("unpacked");
    if unpacked.exists() {
        return Ok(unpacked);
    }
    let words = ["-m", "pip", "download", "--quiet", "--no-deps", "--only-binary=:all:", "--dest"];
    run::show(Command::new("python3").args(words).arg(&directory).arg(format!("ziglang=={ZIG}")))?;
    let entries = fs::read_dir(&directory).during("read", &directory)?.flatten().map(|entry| entry.path());
    let wheel = entries.filter(|path| path.extension().is_some_and(|ext| ext == "whl")).max();
    let wheel = wheel.ok_or(std::io::Error::other("pip left no wheel of ziglang"))?;
    let temporary = directory.join("unpacking");
    remove::delete(&temporary)?; // of a run that was killed
    run::output(Command::new("python3").args(["-m", "zipfile", "-e"]).arg(&wheel).arg(&temporary))?;
    let program = temporary.join("ziglang/zig");
    fs::set_permissions(&program, Permissions::from_mode(0o755)).during("change", &program)?;
    fs::remove_file(&wheel).during("delete", &wheel)?;
    fs::rename(&temporary, &unpacked).during("place", &unpacked)?;
    Ok(unpacked)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares the function with glibc's own, for an address of the program, of glibc, and of no object.
    const COMPARISON: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#define _dl_find_object own_lookup
#include "dl_find_object.c"
#undef _dl_find_object
int main(void) {
  static char data[16];
  char stack[16];
  void *addresses[] = {main, (void *)puts, data, stack};
  for (int index = 0; index < 4; index++) {
    struct dl_find_object own = {0}, theirs = {0};
    int code = own_lookup(addresses[index], &own), expected = _dl_find_object(addresses[index], &theirs);
    char *address = addresses[index];
    if (code != expected || own.dlfo_eh_frame != theirs.dlfo_eh_frame) return 1 + index;
    if (code == 0 && (address < (char *)own.dlfo_map_start || address >= (char *)own.dlfo_map_end)) return 11 + index;
    if (code != (index == 3 ? -1 : 0)) return 21 + index;
  }
  return 0;
}
"#;

    #[test]
    fn the_lookup_for_the_unwinder_answers_as_glibcs_own() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path();
        fs::write(place.join("dl_find_object.c"), DL_FIND_OBJECT).unwrap();
        fs::write(place.join("comparison.c"), COMPARISON).unwrap();
        let compiler = CCompiler::from_env().unwrap();
        let mut compile = compiler.command();
        let compiled = compile.current_dir(place).args(["-O2", "comparison.c", "-o", "comparison"]).output().unwrap();
        let said = String::from_utf8_lossy(&compiled.stderr);
        if said.contains("own_lookup") || said.contains("dl_find_object") {
            return eprintln!("skipped: this machine's glibc is older than 2.35: {said}");
        }
        assert!(compiled.status.success(), "{said}");
        let code = Command::new(place.join("comparison")).status().unwrap().code();
        assert_eq!(code, Some(0));
    }

    #[test]
    fn headers_and_libraries_of_the_sysroot_come_first() {
        let sysroot = Sysroot { directory: "/old".into(), version: "2.28".parse().unwrap() };
        assert_eq!(sysroot.compile_arguments(), ["--sysroot=/old", "-isystem/old/usr/include", "-D__GLIBC_MINOR__=28"]);
        assert_eq!(sysroot.link_arguments(), ["--sysroot=/old", "-B/old/usr/lib", "-Wl,--allow-shlib-undefined"]);
    }
}
