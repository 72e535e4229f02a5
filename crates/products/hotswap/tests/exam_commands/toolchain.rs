//! A tool chain of scripts, and an installation beside which HotSwap finds it: the exam needs no clang.

use crate::made;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Answers as clang, lld and the tools of LLVM do, as far as HotSwap asks them.
const TOOL: &str = r#"#!/bin/sh
here=${0%/*}
case "$*" in
    *--print-supported-cpus*) echo gfx1030 gfx1031 >&2 ;;
    --version) echo "clang version 22.1.0"; echo "LLD 22.1.0" ;;
    -print-prog-name=*) tool=${1#*=}; if [ -e "$here/$tool" ]; then echo "$here/$tool"; else echo "$tool"; fi ;;
    -print-resource-dir) echo "$here/resources" ;;
    -print-file-name=*) echo "${1#*=}" ;;
    --rtlib=compiler-rt*) echo "$here/resources/libclang_rt.builtins.a" ;;
    *-v*) echo "Found HIP installation: $here/hip, version 7.2.0" >&2 ;;
esac
"#;
const TOOLS: &[&str] = &["clang", "clang++", "ld.lld", "clang-offload-bundler", "clang-linker-wrapper", "llvm-objcopy"];

/// Exports the coverage of one source.
const COVERAGE: &str = r#"#!/bin/sh
echo '{"data":[{"files":[{"filename":"source.c","segments":[[1,1,1,true,true,false],[2,2,0,false,false,false]],"branches":[],
"summary":{"lines":{"count":2,"covered":2}}}],
"functions":[]}],"type":"llvm.coverage.json.export","version":"3.1.0"}'
"#;

/// Tells which clang it would start, and starts it.
const WRAPPER: &str = r#"#!/bin/sh
case "$1" in
    --hotswap-explain=json) echo "{\"clang\":{\"path\":\"$HOTSWAP_CLANG\",\"from\":\"environment HOTSWAP_CLANG\"}}" ;;
    *) exec "$HOTSWAP_CLANG" "$@" ;;
esac
"#;

/// Whether a command looks for the tool chain beside itself.
pub(super) fn is_asked(words: &str) -> bool {
    ["doctor", "toolchain", "exec"].iter().any(|command| words.starts_with(command))
}

pub(super) fn write_tools(directory: &Path) {
    for tool in TOOLS {
        write_script(&directory.join(tool), TOOL);
    }
    write_script(&directory.join("llvm-cov"), COVERAGE);
    for (name, content) in [
        ("resources/amdgcn/bitcode/ocml.bc", "bitcode"),
        ("resources/amdgcn/bitcode/oclc_isa_version_1030.bc", "bitcode"),
        ("resources/libclang_rt.builtins.a", "!<arch>\n"),
        ("hip/include/hip/hip_runtime.h", "// HIP\n"),
        ("hip/bin/.hipVersion", "7.2.0\n"),
        ("clang++.cfg", "-O2 @more.cfg\n"),
        ("more.cfg", "-g\n"),
    ] {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

/// A program whose host part has a coverage map, a merged profile and the source.
pub(super) fn write_covered_program(directory: &Path, library: &[u8]) {
    fs::write(directory.join("covered"), [library, b"\0__llvm_covmap\0"].concat()).unwrap();
    let mut profile = vec![0xff, b'l', b'p', b'r', b'o', b'f', b'i', 0x81];
    profile.resize(128, 0);
    fs::write(directory.join("merged.profdata"), profile).unwrap();
    fs::create_dir(directory.join("sources")).unwrap();
    fs::write(directory.join("sources/source.c"), "int main() {\n}\n").unwrap();
}

/// The command in an installation with a wrapper. Other tests may start it at this moment, so that files are renamed to their places.
pub(super) fn installed() -> &'static Path {
    static INSTALLED: OnceLock<PathBuf> = OnceLock::new();
    INSTALLED.get_or_init(|| {
        let prefix = Path::new(env!("CARGO_TARGET_TMPDIR")).join("installed-with-tools");
        for directory in ["bin", "libexec/hotswap", "lib/hotswap"] {
            fs::create_dir_all(prefix.join(directory)).unwrap();
        }
        let program = prefix.join("bin/hotswap");
        let own = prefix.join(format!("new.{}", std::process::id()));
        let _ = fs::remove_file(&own);
        fs::hard_link(made::installed(), &own).unwrap();
        fs::rename(&own, &program).unwrap();
        let _ = fs::remove_file(&own);
        for script in ["bin/hotswap-clang", "bin/hotswap-clang++", "libexec/hotswap/lld", "libexec/hotswap/ld.lld"] {
            write_script(&own, WRAPPER);
            fs::rename(&own, prefix.join(script)).unwrap();
        }
        for library in ["libhotswap_registry.a", "libhotswap-names.so"] {
            fs::write(prefix.join("lib/hotswap").join(library), "").unwrap();
        }
        program
    })
}

fn write_script(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}
