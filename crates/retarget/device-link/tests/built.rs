//! Builds with an installation: budgets are checked and raised in the device link of the compiler, and code objects have tables of
//! their functions, which survive the tools that handle code objects.

use hotswap_device_symbols::note::table_of;
use hotswap_userland::{ENV_PREFIX, HIP_HEADER, Workbench, say, skip, tool};

/// The userland with the sources, and the installation's directory as a path inside.
fn bench(test: &str) -> Option<(Workbench, String)> {
    let bench = Workbench::with_llvm(23, test)?;
    let Some(prefix) = std::env::var(ENV_PREFIX).ok().filter(|prefix| !prefix.is_empty()) else {
        skip(test, &format!("{ENV_PREFIX} names no installation"));
        return None;
    };
    bench.write("library.hip", include_bytes!("library.hip"));
    bench.write("kernels.hip", include_bytes!("kernels.hip"));
    bench.write("hip.h", HIP_HEADER.as_bytes());
    Some((bench, prefix))
}

/// Compiles both sources to machine code and links them to a library; returns the exit code and the messages.
fn build(bench: &Workbench, prefix: &str, gpu: &str, words: &str) -> (Option<i32>, String) {
    let compiler =
        format!("{prefix}/bin/hotswap-clang++ --offload-arch={gpu} -nogpulib -fgpu-rdc -fno-offload-lto {words}");
    let script = format!(
        "export HOTSWAP_CLANG={}; for name in kernels library; do {compiler} -x hip -include hip.h -nogpuinc -O2 -w -c \
         $name.hip -o $name.o || exit 9; done; {compiler} --hip-link -shared -nostdlib kernels.o library.o -o app.so",
        tool(23, "clang++")
    );
    let output = bench.shell(&script);
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// The words for the device linker.
fn option(value: &str) -> String {
    format!("-Xoffload-linker --hotswap-{value}")
}

#[test]
fn a_kernel_with_too_little_stops_the_build_or_gets_more() {
    let Some((bench, prefix)) = bench("a_kernel_with_too_little_stops_the_build_or_gets_more") else { return };
    let told = "kernel `k_use` declares 41 VGPRs, 0 AGPRs, 38 SGPRs and 0 bytes of scratch, is granted 48 VGPRs, 0 AGPRs and 106 SGPRs, and `lib_fn` makes it need 128 VGPRs";
    let check = option("device-link=check");
    let usual = option("retarget='gfx1030=>gfx1031'");
    for (words, fails, tells) in [
        (check.clone(), true, true),
        (format!("{check} {}", option("policy=warn")), false, true),
        (format!("{check} {}", option("policy=keep")), false, false),
        // In a build with a plan, links of several objects are checked.
        (usual.clone(), true, true),
        (format!("{usual} {}", option("device-link=off")), false, false),
        (String::new(), false, false),
    ] {
        let (code, text) = build(&bench, &prefix, "gfx1030", &words);
        assert_eq!((code != Some(0), text.contains(told)), (fails, tells), "{words}: {code:?} {text}");
        assert_eq!(text.contains("HS0424"), tells, "{words}: {text}");
    }
    let words = format!("{usual} {} -fhotswap-device-symbols", option("device-link=fix"));
    let (code, text) = build(&bench, &prefix, "gfx1030", &words);
    assert!(code == Some(0) && text.contains("note: [HS0424]") && text.contains("got 128 VGPRs"), "{text}");
    for gpu in ["gfx1030", "gfx1031"] {
        let notes = bench.run(&format!(
            "{prefix}/bin/hotswap extract app.so --target {gpu} -o {gpu}.co > /dev/null && {} --notes {gpu}.co",
            tool(23, "llvm-readelf")
        ));
        assert!(notes.contains(".vgpr_count:     128"), "{gpu}: {notes}");
        let (table, problems) = table_of(&bench.read(&format!("{gpu}.co"))).unwrap();
        assert!(problems.is_empty() && table.target == gpu && table.functions.len() == 3, "{gpu}: {problems:?}");
    }
}

/// A recursion gets the bytes of the option; without it, the bytes of its known frames.
#[test]
fn a_recursion_gets_the_bytes_of_the_option() {
    let Some((bench, prefix)) = bench("a_recursion_gets_the_bytes_of_the_option") else { return };
    bench.write(
        "library.hip",
        b"extern \"C\" __device__ __attribute__((noinline)) int again(int n) {\n  volatile int a[100];\n\
        for (int i = 0; i < 100; i++) a[i] = n * i;\n  return n < 1 ? a[7] : again(n - 1) + a[n & 63];\n}\n",
    );
    bench.write(
        "kernels.hip",
        b"extern \"C\" __device__ int again(int);\nextern \"C\" __global__ void k_again(int *p) { p[0] = again(p[1]); }\n",
    );
    let fix = option("device-link=fix");
    let stack = option("device-link-stack=8192");
    for (words, bytes, warns) in [(fix.clone(), "432", true), (format!("{fix} {stack}"), "8192", false)] {
        let (code, text) = build(&bench, &prefix, "gfx1030", &words);
        assert!(code == Some(0) && text.contains("HS0440") == warns, "{words}: {code:?} {text}");
        let notes = bench.run(&format!(
            "{prefix}/bin/hotswap extract app.so --target gfx1030 -o a.co > /dev/null && {} --notes a.co",
            tool(23, "llvm-readelf")
        ));
        assert!(notes.contains(&format!(".private_segment_fixed_size: {bytes}\n")), "{words}: {notes}");
    }
    let (code, text) = build(&bench, &prefix, "gfx1030", &format!("{fix} {}", option("device-link-stack=many")));
    assert!(code != Some(0) && text.contains("`many` is not a number of bytes"), "{text}");
}

/// A call through a pointer is counted by a compiler that has seen the whole: nothing is to be told of it.
#[test]
fn calls_through_pointers_are_told_where_the_compiler_did_not_see_all() {
    let Some((bench, prefix)) = bench("calls_through_pointers_are_told_where_the_compiler_did_not_see_all") else {
        return;
    };
    bench.write(
        "kernels.hip",
        b"typedef float (*Function)(const float *, int);\n__device__ Function chosen;\n\
        extern \"C\" __global__ void k_any(float *p, int n) { p[0] = chosen(p, n); }\n",
    );
    let check = option("device-link=check");
    let (code, text) = build(&bench, &prefix, "gfx1030", &check);
    assert!(code == Some(0) && text.contains("[HS0427]") && text.contains("`k_any`"), "{code:?} {text}");
    let (code, text) = build(&bench, &prefix, "gfx1030", &format!("{check} -foffload-lto"));
    assert!(code == Some(0) && !text.contains("HS0427"), "{code:?} {text}");
}

/// The functions of a code object by its own table; `None` where the table does not count.
fn functions(bytes: &[u8]) -> Option<usize> {
    hotswap_code_object::device_symbols_note(bytes)?;
    let (table, problems) = table_of(bytes).ok()?;
    problems.is_empty().then_some(table.functions.len())
}

#[test]
fn the_table_survives_the_tools_that_handle_code_objects() {
    let Some((bench, prefix)) = bench("the_table_survives_the_tools_that_handle_code_objects") else { return };
    let words = format!("-fhotswap-device-symbols --offload-compress {}", option("device-link=fix"));
    let (code, text) = build(&bench, &prefix, "gfx1250", &words);
    assert_eq!(code, Some(0), "{text}");
    bench.run(&format!(
        "{prefix}/bin/hotswap extract app.so --target gfx1250 -o a.co > /dev/null && {0}/llvm-objcopy a.co copied.co && \
         {0}/llvm-strip -g a.co -o stripped.co && {prefix}/bin/hotswap rewrite a.co --to gfx1250-strict -o rewritten.co && \
         touch host && {0}/clang-offload-bundler -type=o -compress -input=host -input=a.co -output=a.hipfb \
         -targets=host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--gfx1250 && \
         {0}/clang-offload-bundler -type=o -unbundle -input=a.hipfb -output=again.co \
         -targets=hipv4-amdgcn-amd-amdhsa--gfx1250 && {prefix}/bin/hotswap retarget a.hipfb --to gfx1250-strict -o more.hipfb && \
         {prefix}/bin/hotswap extract more.hipfb --target gfx1250-strict -o retargeted.co",
        tool(23, "").trim_end_matches('/')
    ));
    for (name, by) in [
        ("a.co", "a compressed bundle in a program, `hotswap extract`"),
        ("copied.co", "`llvm-objcopy`"),
        ("stripped.co", "`llvm-strip -g`"),
        ("again.co", "`clang-offload-bundler`, compressed and back"),
        ("rewritten.co", "`hotswap rewrite` to gfx1250-strict (a table of the new code)"),
        ("retargeted.co", "`hotswap retarget` to gfx1250-strict (a table of the new code)"),
    ] {
        let count = functions(&bench.read(name));
        assert_eq!(count, Some(3), "{name}");
        say(&format!("exam kept | {by} | 3 of {} |", count.unwrap_or_default()));
    }
    // A change of the code that nothing tells the table of.
    let mut changed = bench.read("a.co");
    let map = hotswap_code_object::CodeMap::read(&changed).unwrap();
    let code = map.sections[0].range.start;
    changed[code] ^= 1;
    assert_eq!(functions(&changed), None);
    bench.write("changed.co", &changed);
    let shown = |name: &str| bench.run(&format!("{prefix}/bin/hotswap symbols {name} 2>&1"));
    let own = shown("a.co");
    assert!(
        own.contains("; by the table in the file, whose hash is that of the code\n") && !own.contains("HS0310"),
        "{own}"
    );
    let other = shown("changed.co");
    assert!(
        other.contains("[HS0310]") && other.contains("; by analysis, because the table in the file is not that"),
        "{other}"
    );
}

/// Compiles one source to machine code and links it alone, to a code object `NAME.co`.
fn build_one(
    bench: &Workbench,
    prefix: &str,
    (gpu, version): (&str, u32),
    name: &str,
    words: &str,
) -> (Option<i32>, String) {
    let compiler = format!("{prefix}/bin/hotswap-clang++ --offload-arch={gpu} -nogpulib -fgpu-rdc {words}");
    let script = format!(
        "export HOTSWAP_CLANG={}; {compiler} -x hip -include hip.h -nogpuinc -O2 -fPIC -w -c {name}.hip -o {name}.o || exit 9; \
         {compiler} --hip-link -shared -nostdlib {name}.o -o {name}.so || exit 8; \
         {prefix}/bin/hotswap extract {name}.so --target {gpu} -o {name}.co",
        tool(version, "clang++")
    );
    let output = bench.shell(&script);
    (output.status.code(), String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned())
}

/// The lines of an output, sorted: standard output and error come in any order.
fn text_lines(bytes: &[u8]) -> Vec<String> {
    let mut lines: Vec<String> = String::from_utf8_lossy(bytes).lines().map(str::to_owned).collect();
    lines.sort();
    lines
}

#[test]
fn functions_are_exported_and_imported_by_builds() {
    let Some((bench, prefix)) = bench("functions_are_exported_and_imported_by_builds") else { return };
    let native = "-fno-offload-lto";
    let (exports, imports) = (option("device-exports=lib_fn"), option("device-imports=lib_fn"));
    for (gpu, version, library) in [("gfx1030", 23, native), ("gfx1250", 24, ""), ("gfx90a", 24, native)] {
        let (code, text) = build_one(&bench, &prefix, (gpu, version), "library", &format!("{library} {exports}"));
        assert_eq!(code, Some(0), "{gpu}: {text}");
        let (code, text) = build_one(&bench, &prefix, (gpu, version), "kernels", &format!("{native} {imports}"));
        assert_eq!(code, Some(0), "{gpu}: {text}");
        let (table, problems) = table_of(&bench.read("library.co")).unwrap();
        let names: Vec<&str> = table.exports.iter().map(|export| export.name.as_str()).collect();
        assert!(problems.is_empty() && names == ["lib_fn"], "{gpu}: {problems:?} {names:?}");
        let hotswap = format!("{prefix}/bin/hotswap");
        let output = bench.shell(&format!("{hotswap} bind kernels.co library.co"));
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert_eq!(output.status.code(), Some(13), "{text}");
        assert!(
            text.contains("kernels.co: 1 import, 1 bound") && text.contains("`lib_fn` makes it need"),
            "{gpu}: {text}"
        );
        // Files that hold one code object are bound as it; of several it is not known which.
        let bundled = bench.shell(&format!("{hotswap} bind kernels.so library.so 2>&1"));
        let same = text.replace("kernels.co", "kernels.so").replace("library.co", "library.so");
        assert_eq!(
            (bundled.status.code(), text_lines(&bundled.stdout)),
            (Some(13), text_lines(same.as_bytes())),
            "{gpu}"
        );
        bench.run(&format!(
            "touch host && {} -type=o -input=host -input=library.co -input=kernels.co -output=two.hipfb \
             -targets=host-x86_64-unknown-linux-gnu-,hipv4-amdgcn-amd-amdhsa--{gpu},hipv4-amdgcn-amd-amdhsa--gfx900",
            tool(version, "clang-offload-bundler")
        ));
        let refused = bench.shell(&format!("{hotswap} bind kernels.co two.hipfb 2>&1"));
        let told = String::from_utf8_lossy(&refused.stdout).into_owned();
        assert!(
            refused.status.code() == Some(12) && told.contains("2 code objects are in the file"),
            "{gpu}: {:?} {told}",
            refused.status
        );
        let text = bench.run(&format!(
            "{hotswap} bind kernels.co library.co -o ready.co 2>&1 && {hotswap} bind ready.co library.co --format json"
        ));
        assert!(
            text.contains("got ") && text.contains("\"kernels\": []") && text.contains("\"problems\": []"),
            "{gpu}: {text}"
        );
    }
}

#[test]
fn builds_that_cannot_exchange_functions_are_refused() {
    let Some((bench, prefix)) = bench("builds_that_cannot_exchange_functions_are_refused") else { return };
    let refused = |name: &str, words: &str, told: &str| {
        let (code, text) = build_one(&bench, &prefix, ("gfx1030", 23), name, words);
        assert!(code != Some(0) && text.contains(told), "{words}: {text}");
    };
    let native = "-fno-offload-lto";
    let exports = |name: &str| option(&format!("device-exports={name}"));
    refused("library", &format!("{native} {}", exports("gone")), "[HS0432]");
    refused("kernels", &format!("{native} {}", option("device-imports=other")), "undefined");
    refused("kernels", &option("device-imports=lib_fn"), "the link has no object with machine code");
    refused("library", &format!("{native} {}", option("device-imports=lib_fn")), "and the link defines it");
    refused("library", &format!("{native} {}", exports("'a b'")), "[HS0201]");
}

#[test]
fn the_example_fails_with_check_and_builds_with_fix() {
    let test = "the_example_fails_with_check_and_builds_with_fix";
    let Some((bench, prefix)) = bench(test) else { return };
    let example = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/device-library");
    for entry in std::fs::read_dir(example).unwrap().flatten() {
        bench.write(&entry.file_name().to_string_lossy(), &std::fs::read(entry.path()).unwrap());
    }
    let configure = format!(
        "export HOTSWAP_CLANG={}; cmake -B build -DCMAKE_PREFIX_PATH={prefix} -DCMAKE_HIP_ARCHITECTURES=gfx1030 -DCMAKE_HIP_FLAGS=\"--rocm-path=$ROCM\"",
        tool(23, "clang++")
    );
    let output = bench.shell(&format!("({configure} && cmake --build build) 2>&1"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        !output.status.success() && text.contains("[HS0424]") && text.contains("Z7stencilPKfif` makes it need"),
        "{text}"
    );
    // Without a check the kernels keep too little, and no build tells.
    let text = bench.run(&format!("({configure} -DBUDGETS=off && cmake --build build) 2>&1"));
    assert!(!text.contains("HS0424") && !kernel_has(&bench, &prefix, 128), "{text}");
    bench.run(&format!("({configure} -DBUDGETS=fix && cmake --build build) 2>&1"));
    assert!(kernel_has(&bench, &prefix, 128));
    for program in ["smooth", "sharpen"] {
        let text = bench.run(&format!("{prefix}/bin/hotswap symbols build/{program} 2>&1"));
        assert!(text.contains("_Z7stencilPKfif") && !text.contains("HS04"), "{text}");
    }
}

/// Whether the kernel of the example is launched with that many vector registers.
fn kernel_has(bench: &Workbench, prefix: &str, count: u32) -> bool {
    let notes = bench.run(&format!(
        "{prefix}/bin/hotswap extract build/smooth --target gfx1030 -o smooth.co > /dev/null && {} --notes smooth.co",
        tool(23, "llvm-readelf")
    ));
    assert_eq!(notes.matches(".vgpr_count:").count(), 1, "{notes}");
    notes.contains(&format!(".vgpr_count:     {count}\n"))
}

/// The lists of functions as keywords of `add_hotswap_target`.
#[test]
fn cmake_passes_the_functions_that_code_objects_exchange() {
    let Some((bench, prefix)) = bench("cmake_passes_the_functions_that_code_objects_exchange") else { return };
    let project = "cmake_minimum_required(VERSION 3.28)
project(exchange LANGUAGES CXX)
find_package(HotSwap REQUIRED)
enable_language(HIP)
foreach(name library kernels)
  add_library(${name} MODULE ${name}.hip)
  target_compile_options(${name} PRIVATE -fgpu-rdc -fno-offload-lto -nogpulib -nogpuinc -O2 -fPIC -w -include ${CMAKE_SOURCE_DIR}/hip.h)
  target_link_options(${name} PRIVATE -fgpu-rdc -fno-offload-lto -nogpulib -nostdlib)
endforeach()
add_hotswap_target(library DEVICE_EXPORTS lib_fn)
add_hotswap_target(kernels DEVICE_IMPORTS lib_fn)
";
    bench.write("CMakeLists.txt", project.as_bytes());
    bench.run(&format!(
        "(export HOTSWAP_CLANG={}; cmake -B build -DCMAKE_PREFIX_PATH={prefix} -DCMAKE_HIP_ARCHITECTURES=gfx1030 \
         -DCMAKE_HIP_FLAGS=\"--rocm-path=$ROCM\" && cmake --build build) 2>&1",
        tool(23, "clang++")
    ));
    let output = bench.shell(&format!("{prefix}/bin/hotswap bind build/libkernels.so build/liblibrary.so 2>&1"));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), Some(13), "{text}");
    assert!(text.contains("1 import, 1 bound") && text.contains("`lib_fn` makes it need 128 VGPRs"), "{text}");
}
