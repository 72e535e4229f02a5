//! The library as users find it: `examples/tool` built by CMake and by pkg-config against an installation.

mod common;

use common::{has, here, succeed};
use hotswap_userland::{ENV_PREFIX, ENV_ROOT, Workbench, skip};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

/// The lines of a tool for the functions that a kernel of the common source reaches.
fn expected(lines: &str, kernel: &str) {
    let names: Vec<&str> = lines.lines().filter_map(|line| line.split("VGPRs  ").nth(1)).collect();
    match kernel {
        "chain" => {
            assert_eq!((names, lines.lines().last()), (vec!["_Z4leaff", "_Z4widePKfi", "chain"], Some("these are all")))
        }
        _ => assert_eq!((names, lines.lines().last()), (vec![kernel], Some("and functions that are not known"))),
    }
}

#[test]
fn a_tool_builds_with_cmake_and_pkg_config() {
    let test = "a_tool_builds_with_cmake_and_pkg_config";
    let Some(bench) = Workbench::new(test) else { return };
    let Some(prefix) = std::env::var(ENV_PREFIX).ok().filter(|prefix| !prefix.is_empty()) else {
        return skip(test, &format!("{ENV_PREFIX} names no installation"));
    };
    let source = here().join("../../../examples/tool");
    for name in ["callees.c", "stacks.c", "CMakeLists.txt"] {
        bench.write(name, &std::fs::read(source.join(name)).unwrap());
    }
    assert!(bench.read("callees.c").iter().filter(|byte| **byte == b'\n').count() <= 60);
    common::code_object(&bench, bench.versions[0], "gfx1030", "-O2");
    bench.run(&format!("cmake -B build -DCMAKE_PREFIX_PATH={prefix} && cmake --build build"));
    let mut outputs = Vec::new();
    for kernel in ["chain", "pointers"] {
        for tool in ["./build/callees", "./build/callees_static"] {
            outputs.push((kernel, bench.run(&format!("{tool} a.co gfx1030 {kernel}"))));
        }
    }
    if has(test, "pkg-config") {
        let tool = by_pkg_config(&bench, &prefix);
        for kernel in ["chain", "pointers"] {
            let mut command = Command::new(&tool);
            outputs.push((kernel, succeed(command.arg(bench.path("a.co")).args(["gfx1030", kernel]))));
        }
    }
    outputs.iter().for_each(|(kernel, output)| expected(output, kernel));
    let output = bench.shell("build/callees a.co gfx90a chain");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && text.starts_with("error: [HS0401]"), "{text}");
    let output = bench.shell("build/callees callees.c gfx90a chain");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(1) && text == "callees.c has no device code\n", "{text}");
}

/// The static library has the functions of the header for its users and no others: their programs may have another zstd.
#[test]
fn the_static_library_has_no_names_of_others() {
    let test = "the_static_library_has_no_names_of_others";
    let (Ok(root), Ok(prefix)) = (std::env::var(ENV_ROOT), std::env::var(ENV_PREFIX)) else {
        return skip(test, &format!("{ENV_PREFIX} names no installation"));
    };
    if !has(test, "nm") {
        return;
    }
    let archive = PathBuf::from(root).join(prefix.trim_start_matches('/')).join("lib/libhotswap.a");
    let output = succeed(Command::new("nm").args(["--extern-only", "--defined-only"]).arg(archive));
    let names = output.lines().filter_map(|line| line.split_whitespace().nth(2));
    let found: BTreeSet<&str> = names.collect();
    let map = std::fs::read_to_string(here().join("libhotswap.map")).unwrap();
    let wanted = map.lines().filter_map(|line| line.trim().strip_suffix(';'));
    assert_eq!(found, wanted.filter(|name| name.starts_with("hotswap_")).collect());
}

/// The tool built on the machine, which has pkg-config; the installation is in the userland.
fn by_pkg_config(bench: &Workbench, prefix: &str) -> PathBuf {
    let prefix = PathBuf::from(std::env::var_os(ENV_ROOT).unwrap()).join(prefix.trim_start_matches('/'));
    let ask = |words: &[&str]| {
        let mut command = Command::new("pkg-config");
        command.env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig")).args(words).arg("hotswap");
        succeed(&mut command).trim().to_owned()
    };
    assert_eq!(ask(&["--modversion"]), env!("CARGO_PKG_VERSION"));
    let tool = bench.path("callees");
    let mut cc = Command::new("cc");
    cc.args(["-Wall", "-Wextra", "-Werror"]).arg(bench.path("callees.c")).arg("-o").arg(&tool);
    cc.args(ask(&["--cflags", "--libs"]).split(' ')).arg(format!("-Wl,-rpath,{}/lib", prefix.display()));
    succeed(&mut cc);
    tool
}
