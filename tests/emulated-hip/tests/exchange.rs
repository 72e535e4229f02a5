//! Device functions across code objects, executed: a program in C binds a kernel to a library by libhotswap and loads both with
//! unmodified HSA.

use hotswap_device_link::{BoundObject, bind, check_exports, check_imports, import_stub};
use hotswap_device_symbols::note::{table_of, with_exports};
use hotswap_emulated_hip::EmulationBench;
use hotswap_userland::{EMULATED_DIRECTORY, say, slice, tool};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The archive of libhotswap that cargo built beside this test: the newest.
fn archive() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let files = std::fs::read_dir(program.parent().unwrap()).unwrap().flatten();
    let is_it = |name: &str| name.starts_with("libhotswap_c-") && name.ends_with(".a");
    let archives = files.filter(|file| file.file_name().to_str().is_some_and(is_it));
    archives.max_by_key(|file| file.metadata().and_then(|data| data.modified()).ok()).unwrap().path()
}

/// libhotswap in the bench, linked as the installation does, and the program.
fn program(bench: &EmulationBench) {
    // The reference makes cargo build the archive.
    assert_eq!(hotswap_c::CallStatus::Ok as i32, 0);
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/products/libhotswap");
    let mut link = Command::new("cc");
    link.current_dir(&crates)
        .arg("@link.args")
        .arg("-o")
        .arg(bench.work.path(EMULATED_DIRECTORY).join("libhotswap.so.0"));
    link.arg("-Wl,--whole-archive").arg(archive()).args(["-Wl,--no-whole-archive", "-lpthread", "-ldl", "-lm"]);
    assert!(link.status().unwrap().success());
    // glibc 2.41 loads no library that asks for an executable stack.
    let stack = format!("readelf -lW {EMULATED_DIRECTORY}/libhotswap.so.0 | grep GNU_STACK | grep -v RWE");
    bench.work.run(&stack);
    bench.work.write("hotswap.h", &std::fs::read(crates.join("include/hotswap.h")).unwrap());
    bench.work.write("exchange.c", include_bytes!("../cases/exchange.c"));
    let libraries = ["libhotswap.so.0", "libhsa-runtime64.so.1"].map(|name| format!("{EMULATED_DIRECTORY}/{name}"));
    bench.work.run(&format!("gcc -O1 -Wall -Wextra -I. exchange.c -o exchange {}", libraries.join(" ")));
}

/// Options of both compilations, and those of the user alone.
struct CompilerOptions<'a> {
    all: &'a str,
    user: &'a str,
}

/// Library and user for a GPU, linked as the interposer does.
fn code_objects(bench: &EmulationBench, version: u32, gpu: &str, level: &str) {
    code_objects_with(bench, version, gpu, &CompilerOptions { all: level, user: "" });
}

fn code_objects_with(bench: &EmulationBench, version: u32, gpu: &str, options: &CompilerOptions<'_>) {
    let CompilerOptions { all, user } = options;
    bench.work.write("library.hip", include_bytes!("../cases/exchange-library.hip"));
    bench.work.write("user.hip", include_bytes!("../cases/exchange-user.hip"));
    let (clang, lld) = (tool(version, "clang++"), tool(version, "ld.lld"));
    bench.work.run(&format!(
        "library_options=; user_options='{user}'; for name in library user; do options=${{name}}_options; {clang} ${{!options}} -x hip --offload-arch={gpu} -nogpuinc -nogpulib --offload-device-only -fgpu-rdc \
         --no-gpu-bundle-output -fno-offload-lto {all} -w -c $name.hip -o $name.o || exit 1; done; \
         {lld} -shared library.o --undefined=mix --undefined=twist -o library.co"
    ));
    let names = BTreeSet::from(["mix".to_owned(), "twist".to_owned()]);
    for name in &names {
        bench.work.write(&format!("{name}.o"), &import_stub(name, &bench.work.read("user.o")).unwrap());
    }
    bench.work.run(&format!("{lld} -shared user.o --start-lib mix.o twist.o --end-lib -o user.co"));
    let library = bench.work.read("library.co");
    check_exports(&library, &names).unwrap();
    check_imports(&bench.work.read("user.co"), &names, true).unwrap();
    bench.work.write("library.co", &with_exports(&library, &names).unwrap().0);
}

#[test]
fn a_kernel_calls_functions_of_another_code_object() {
    let test = "a_kernel_calls_functions_of_another_code_object";
    let Some(bench) = EmulationBench::new(test) else { return };
    program(&bench);
    let gpus = ["gfx1030", "gfx1100", "gfx1201", "gfx1250"];
    let all: Vec<_> =
        [(23, "-O2"), (24, "-O2"), (24, "-O0")].into_iter().flat_map(|one| gpus.map(|gpu| (one, gpu))).collect();
    let mut ran = 0;
    for ((version, level), gpu) in slice(test, all, |number, _| (4..8).contains(&number) || number == 8) {
        code_objects(&bench, version, gpu, level);
        let run = bench.run(gpu, "", "./exchange library.co user.co");
        assert!(
            run.passed().contains("128 of 128 values"),
            "clang {version} {level} {gpu}: {}{}",
            run.output,
            run.error
        );
        say(&format!("exam runs | {version} | {gpu} | {level} | 128 of 128 |"));
        ran += 1;
    }
    say(&format!("{test}: {ran} programs"));
    assert!(ran >= 5);
}

/// HIP modules, by the tools library of `examples/hook`: nothing without it, in either way of loading it.
#[test]
fn hip_modules_call_functions_of_each_other_by_a_tools_library() {
    let test = "hip_modules_call_functions_of_each_other_by_a_tools_library";
    let Some(bench) = EmulationBench::new(test) else { return };
    program(&bench);
    code_objects(&bench, 23, "gfx1030", "-O2");
    let [user, library] = ["user.co", "library.co"].map(|name| bench.work.read(name));
    bench.work.write("ready.co", &ready(&user, &library));
    bench.work.write("modules.cpp", include_bytes!("../cases/modules.cpp"));
    bench.work.write("hook.cpp", include_bytes!("../../../examples/hook/hook.cpp"));
    let libraries = ["libhotswap.so.0", "libhsa-runtime64.so.1"].map(|name| format!("{EMULATED_DIRECTORY}/{name}"));
    bench.work.run(&format!(
        "g++ -O1 -Wall -Wextra -fPIC -shared -I. hook.cpp -o libhook.so {} && \
         g++ -O1 -Wall -Wextra -D__HIP_PLATFORM_AMD__ modules.cpp -o modules -lamdhip64",
        libraries.join(" ")
    ));
    let without = bench.run("gfx1030", "", "./modules library.co ready.co");
    assert!(without.output.contains("the user is refused"), "{}{}", without.output, without.error);
    for named in ["HSA_TOOLS_LIB=$PWD/libhook.so", "LD_PRELOAD=$PWD/libhook.so"] {
        let with = bench.run("gfx1030", named, "./modules library.co ready.co");
        assert!(with.passed().contains("128 of 128 values"), "{named}: {}{}", with.output, with.error);
        let short = bench.run("gfx1030", named, "./modules library.co user.co");
        assert!(short.output.contains("the user is refused"), "{named}: {}{}", short.output, short.error);
        let told = short.error.contains("hook: ") && short.error.contains("`mix` makes it need");
        assert!(told, "{named}: {}", short.error);
    }
    // A library that is preloaded into `hotswap run` takes the place of HSA's functions in the program.
    if let Some(hotswap) = bench.hotswap(test) {
        let libraries = format!("export LD_LIBRARY_PATH=$PWD/{EMULATED_DIRECTORY} LD_PRELOAD=$PWD/libhook.so\n");
        let with = bench.script(&libraries, &format!("{hotswap} run --gpu gfx1030 -- ./modules library.co ready.co"));
        assert!(with.passed().contains("128 of 128 values"), "{}{}", with.output, with.error);
    }
    // A user of another code object version finds hidden arguments elsewhere: refused by the hook and by the call in C.
    code_objects_with(&bench, 23, "gfx1030", &CompilerOptions { user: "-mcode-object-version=4", all: "-O2" });
    let old = bench.run("gfx1030", "HSA_TOOLS_LIB=$PWD/libhook.so", "./modules library.co user.co");
    assert!(
        old.output.contains("the user is refused") && old.error.contains("of code object version 4"),
        "{}",
        old.error
    );
    let old = bench.run("gfx1030", "", "./exchange library.co user.co");
    assert!(old.code != Some(0) && old.output.contains("of code object version 4"), "{}{}", old.output, old.error);
}

/// The user with the registers and the scratch that it needs with the library.
fn ready(user: &[u8], library: &[u8]) -> Vec<u8> {
    let table = |bytes: &[u8]| table_of(bytes).unwrap().0;
    let (own, others) = (table(user), table(library));
    let bound = |name: &str, bytes, table| BoundObject { name: name.to_owned(), bytes, table };
    let binding = bind(&bound("user.co", user, &own), &[bound("library.co", library, &others)]).unwrap();
    binding.prepared_file(user).unwrap()
}
