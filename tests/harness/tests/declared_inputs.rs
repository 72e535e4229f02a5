//! Declared inputs with the real compilers: what a hermetic compile opens is in the list of `hotswap toolchain`, and its output is
//! the same in another directory and with another home.

use hotswap_tests::{Bench, Call, Scratch, skip};
use std::collections::BTreeSet;

const SOURCE: &str = "#include \"hip.h\"\n__global__ void kernel(int *out) { *out = 1; }\n";

/// A directory with the source and the plan.
fn directory(bench: &Bench) -> Scratch {
    let scratch = bench.scratch();
    scratch.write("deep/a.hip", SOURCE);
    scratch.write("deep/hip.h", hotswap_userland::HIP_HEADER);
    let out = scratch.inside("deep");
    let program = bench.installed("bin/hotswap");
    let ran =
        Call::new(bench, &scratch.inside, &[program.as_str(), "plan", "gfx1030=>gfx1031", "--out-dir", &out]).run();
    assert!(ran.ok(), "{}", ran.brief());
    let plan = scratch.names("deep").into_iter().find(|name| name.ends_with(".plan")).expect("a plan was written");
    scratch.write("deep/p", scratch.read(&format!("deep/{plan}")));
    scratch
}

fn words(bench: &Bench, clang: u32) -> Vec<String> {
    let mut words = vec![bench.installed("bin/hotswap-clang++")];
    words.extend(bench.clang(clang).expect("it is there").light());
    let rest = "-nogpulib -x hip --offload-arch=gfx1030 -fuse-cuid=none -Xoffload-linker --hotswap-plan-file=p -c a.hip -o a.o";
    words.extend(rest.split(' ').map(str::to_owned));
    words
}

#[test]
fn outputs_depend_on_no_directory_and_have_no_path() {
    let Some(bench) = Bench::ready("declared_inputs") else { return };
    let version = bench.clangs[0].version;
    let program = format!("/usr/lib/llvm-{version}/bin/clang++");
    if !bench.userland.outside(&program).exists() {
        return skip("declared_inputs", "clang is not in Debian's directory");
    }
    let mut outputs = BTreeSet::new();
    for (home, open) in [("/proc/none", false), ("/tmp", false), ("/proc/none", true)] {
        let scratch = directory(&bench);
        // As in a sandbox whose root directory is open to all: no directory can be a cache.
        scratch.write("temporary/x", "");
        let temporary = if open { scratch.inside("temporary") } else { "/tmp".into() };
        let mode = std::os::unix::fs::PermissionsExt::from_mode(if open { 0o777 } else { 0o700 });
        std::fs::set_permissions(bench.userland.outside(scratch.inside("temporary")), mode).unwrap();
        let call = Call::new(&bench, scratch.inside("deep"), &words(&bench, version));
        let ran = call
            .env("HOTSWAP_HERMETIC", "1")
            .env("HOTSWAP_CLANG", &program)
            .env("HOME", home)
            .env("TMPDIR", temporary)
            .run();
        assert!(ran.ok(), "{}", ran.brief());
        let object = scratch.read("deep/a.o");
        let name = scratch.inside.display().to_string();
        assert!(!String::from_utf8_lossy(&object).contains(&name), "the object names its directory");
        assert!(String::from_utf8_lossy(&object).contains("amdgcn-amd-amdhsa--gfx1031"), "the plan was carried out");
        outputs.insert(object);
    }
    assert_eq!(outputs.len(), 1, "the directory or the home is in the output");
}

#[test]
fn what_a_compile_opens_is_in_the_list() {
    let Some(bench) = Bench::ready("declared_inputs") else { return };
    let version = bench.clangs[0].version;
    let program = format!("/usr/lib/llvm-{version}/bin/clang++");
    let scratch = directory(&bench);
    let strace = ["strace", "-f", "-qq", "-e", "trace=openat,open,execve", "-o", "trace"];
    let call = Call::new(&bench, scratch.inside("deep"), &words(&bench, version)).under(&strace);
    let ran = call.env("HOTSWAP_HERMETIC", "1").env("HOTSWAP_CLANG", &program).run();
    assert!(ran.ok(), "{}", ran.brief());
    let hotswap = bench.installed("bin/hotswap");
    let listed = Call::new(&bench, "/", &[hotswap.as_str(), "toolchain", "--files", &program]).run();
    assert!(listed.ok(), "{}", listed.brief());
    // Names through links of directories are resolved, since a program may be opened by either.
    let real = |path: &str| bench.userland.outside(path).canonicalize().ok();
    let files: BTreeSet<_> = listed.stdout.lines().filter_map(real).collect();
    let trace = String::from_utf8_lossy(&scratch.read("deep/trace")).into_owned();
    let mut opened = BTreeSet::new();
    for line in trace.lines().filter(|line| !line.contains("= -1 ") && !line.contains("O_DIRECTORY")) {
        opened.extend(line.split('"').nth(1).filter(|path| path.starts_with('/')));
    }
    // The system's own, the directory of the action, and the cache, whose contents are functions of the tools.
    let system = ["/proc/", "/sys/", "/dev/", "/etc/", "/tmp/", "/usr/lib/locale/", "/usr/share/locale/"];
    let undeclared: Vec<_> = opened
        .iter()
        .filter(|path| !system.iter().any(|start| path.starts_with(start)))
        .filter(|path| real(path).is_some_and(|path| path.is_file() && !files.contains(&path)))
        .collect();
    assert!(opened.len() > 10 && undeclared.is_empty(), "{undeclared:#?}");
}
