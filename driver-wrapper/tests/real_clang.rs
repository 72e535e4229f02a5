//! The wrapper with the real compilers of the ROCm userland.

mod common;

use common::{Bench, ok};
use hotswap_userland::{in_turn, skip};
use std::fs;

/// A retarget by arguments, as a user writes it.
const WORDS: &str = "-Xoffload-linker '--hotswap-retarget=gfx1030=>gfx1031'";

/// Runs the script with `X` as the wrapper and as the real compiler; both must have the same output.
fn same(bench: &Bench, version: u32, script: &str) {
    for (wrapper, real) in [("$W", "$R"), ("$WC", "$RC")] {
        let wrapped = bench.run(version, &script.replace('X', wrapper));
        let plain = bench.run(version, &script.replace('X', real));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert_eq!(wrapped.status, plain.status, "{script}");
        assert_eq!(text(&wrapped.stdout), text(&plain.stdout), "{script}");
        assert_eq!(text(&wrapped.stderr), text(&plain.stderr), "{script}");
    }
}

#[test]
fn without_a_plan_the_wrapper_is_the_compiler() {
    let Some(bench) = Bench::new("without_a_plan_the_wrapper_is_the_compiler") else { return };
    fs::write(bench.at("inner"), "-DVALUE=\"a b\"").unwrap();
    fs::write(bench.at("outer"), "-c @inner 'c.c' -o out.o").unwrap();
    fs::create_dir(bench.at("a dir")).unwrap();
    fs::copy(bench.at("c.c"), bench.at("a dir/c d.c")).unwrap();
    let versions = bench.versions();
    let scripts = [
        "X --version",
        "X -v",
        "X -v -print-targets",
        "X -print-prog-name=ld.lld; X -print-search-dirs; X -dumpmachine; X -dumpversion",
        "X -print-libgcc-file-name --rtlib=compiler-rt -unwindlib=libgcc",
        "X",
        "X -c absent.c",
        "X --no-such-flag",
        "X -fsyntax-only -DVALUE= -x c - </dev/null && echo 'int x = ;' | X -fsyntax-only -x c -",
        "X -E -dM -x c /dev/null | sort | cksum",
        "X -c c.c -o out.o -MD -MF out.d -MT t && cksum out.o out.d",
        "X @outer && cksum out.o",
        "X -c 'a dir/c d.c' -o 'a dir/o.o' && cksum 'a dir/o.o'",
        "X -flto -c c.c -o out.o && cksum out.o",
        "X -S -o - c.c | cksum",
        "X -Wl,--bad-linker-flag c.c -o out 2>&1 | grep -c bad-linker-flag",
        // Names of temporary files differ from run to run.
        "X -### c.c -o out 2>&1 | sed 's,/tmp/[^\" ]*,TEMP,g'",
    ];
    for (version, script) in in_turn("without_a_plan_the_wrapper_is_the_compiler", &scripts, &versions, |_| false) {
        same(&bench, *version, script);
    }
}

/// Status, standard output and error of the script with a real tool for `TOOL`, which must be the same for all.
fn all_alike(bench: &Bench, version: u32, script: &str, tools: &[String]) -> String {
    let said = |tool: &String| {
        let output = bench.run(version, &format!("timeout 20 {}", script.replace("TOOL", tool)));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let real = said(&tools[0]);
    for tool in &tools[1..] {
        assert_eq!(said(tool), real, "clang {version}: {tool}: {script}");
    }
    assert_eq!(real.0, Some(1), "clang {version}: {script}: {}", real.2);
    real.2
}

/// Response files that name themselves, directly or indirectly, are an error of clang and lld, not of earlier programs.
#[test]
fn response_files_that_name_themselves_get_the_real_tools_error() {
    let Some(bench) = Bench::new("response_files_that_name_themselves_get_the_real_tools_error") else { return };
    let prefix = std::env::var(hotswap_userland::ENV_PREFIX).expect("the tests run with an installation");
    let mut plan = hotswap_plan::Plan::default();
    plan.add_pairs("gfx1030=>gfx1031").unwrap();
    for (file, text) in [("l", "@l\n"), ("m", "-O2 @n\n"), ("n", "-c @m\n")] {
        fs::write(bench.at(file), text).unwrap();
    }
    for version in bench.versions() {
        for file in ["@l", "@m"] {
            let clang = all_alike(&bench, version, &format!("TOOL {WORDS} {file}"), &["$R".into(), "$W".into()]);
            assert!(clang.contains("recursive expansion"), "{clang}");
            let real = format!("/usr/lib/llvm-{version}/bin");
            let shim = format!("env HOTSWAP_LLVM_BIN={real} {prefix}/libexec/hotswap/lld -flavor gnu");
            let (hash, text) = (plan.hash(), plan.canonical_text());
            let names = [hotswap_plan::words::ENV_PLAN, hotswap_plan::words::ENV_PLAN_TEXT];
            let set = format!("env {}={hash} {}='{text}' {shim} --hotswap-plan={hash}", names[0], names[1]);
            let linked = format!("TOOL {file} -o out");
            let lld = all_alike(&bench, version, &linked, &[format!("{real}/lld -flavor gnu"), shim, set]);
            assert!(lld.contains("recursive expansion"), "{lld}");
            hotswap_userland::say(&format!("clang {version}, {file}: {} / {}", clang.trim(), lld.trim()));
        }
    }
}

#[test]
fn hip_without_a_plan_gives_the_same_objects() {
    let Some(bench) = Bench::new("hip_without_a_plan_gives_the_same_objects") else { return };
    for version in bench.versions() {
        for words in ["-c a.hip", "-fgpu-rdc -c a.hip", "--offload-device-only a.hip"] {
            let compile = |driver: &str, out: &str| {
                format!("{driver} $HIP --offload-arch=gfx1030 {words} -o out.o && mv out.o {out}")
            };
            let script = format!("{} && {} && cmp w r", compile("$W", "w"), compile("$R", "r"));
            ok(&bench.run(version, &script));
        }
        assert_eq!(bench.probed(), [""; 0]);
    }
}

#[test]
fn configuration_files_of_clang_stay_in_effect() {
    let Some(bench) = Bench::new("configuration_files_of_clang_stay_in_effect") else { return };
    fs::create_dir(bench.at("cfg")).unwrap();
    for version in bench.versions() {
        fs::write(bench.at("cfg/clang++.cfg"), "-DFROM_CONFIG=1\n").unwrap();
        let script = "X --config-user-dir=$PWD/cfg -E -dM -x c++ /dev/null | grep FROM_CONFIG";
        let (wrapped, _) = ok(&bench.run(version, &script.replace('X', "$W")));
        let (plain, _) = ok(&bench.run(version, &script.replace('X', "$R")));
        assert_eq!((wrapped.as_str(), plain.as_str()), ("#define FROM_CONFIG 1\n", "#define FROM_CONFIG 1\n"));
    }
}

#[test]
fn the_plan_reaches_every_device_link_and_no_other_tool() {
    let Some(bench) = Bench::new("the_plan_reaches_every_device_link_and_no_other_tool") else { return };
    for version in bench.versions() {
        for (words, links) in [
            ("-c a.hip -o o", 1),
            ("--offload-arch=gfx900 -c a.hip -o o", 2),
            ("--offload-device-only a.hip -o o", 1),
            ("--offload-device-only --no-gpu-bundle-output a.hip -o o", 1),
            ("-fgpu-rdc -c a.hip -o rdc.o", 0),
            ("-fgpu-rdc --hip-link -shared rdc.o -o o", 1),
            ("-fPIC -shared a.hip -o o", 1),
            ("-S --offload-device-only a.hip -o o", 0),
            ("-E a.hip -o o", 0),
            ("-c main.cpp -o o", 0),
        ] {
            let script = format!("$W $HIP --offload-arch=gfx1030 {WORDS} -fPIC {words}");
            // Clang itself reports user arguments that it does not use.
            ok(&bench.run(version, &script));
            let probed = bench.probed();
            assert_eq!(probed.len(), links, "{version}: {words}: {probed:#?}");
            let bare = words.contains("--no-gpu-bundle-output");
            for line in probed {
                assert!(line.contains("words=") && line.contains("--hotswap-plan="), "{line}");
                assert!(!line.contains("plan= "), "{line}");
                assert_eq!(line.contains("bare=1"), bare, "{version}: {words}: {line}");
            }
        }
    }
}

#[test]
fn a_bypassed_interposer_is_an_error() {
    let Some(bench) = Bench::new("a_bypassed_interposer_is_an_error") else { return };
    for version in bench.versions() {
        // The build system's arguments reach a clang without us: its linker fails on the token.
        let token = "-Xoffload-linker --hotswap-plan=0123456789abcdef";
        let plain = format!("$R $HIP --offload-arch=gfx1030 {token} -c a.hip -o bypassed.o");
        let output = bench.run(version, &plain);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = "unknown argument '--hotswap-plan=";
        assert!(!output.status.success() && text.contains(expected), "clang {version}: {text}");
        assert!(!bench.at("bypassed.o").exists());
    }
}

#[test]
fn a_plan_of_the_environment_gives_no_warnings_even_as_errors() {
    let Some(bench) = Bench::new("a_plan_of_the_environment_gives_no_warnings_even_as_errors") else { return };
    for version in bench.versions() {
        for words in [
            "$HIP --offload-arch=gfx1030 -c a.hip -o a.o",
            "$HIP --offload-arch=gfx1030 -fgpu-rdc -c a.hip -o rdc.o",
            "-c main.cpp -o main.o",
            "$HIP --hip-link a.o main.o -o program",
            "main.o -o plain",
            "$HIP --offload-arch=gfx1030 -fgpu-rdc --hip-link rdc.o main.o -o rdc",
        ] {
            let script = format!("HOTSWAP_RETARGET='gfx1030=>gfx1031' $W -Werror {words}");
            let (_, err) = ok(&bench.run(version, &script));
            assert_eq!(err, "", "{version}: {words}");
        }
        let sections = "readelf -SW program | grep -c 'hotswap_regtab\\|hotswap_manifest_record'";
        assert_eq!(ok(&bench.run(version, sections)).0, "2\n");
        assert_eq!(ok(&bench.run(version, "readelf -SW plain | grep -c hotswap || true")).0, "0\n");
    }
}

#[test]
fn clang_22_bundles_under_the_new_driver_although_told_not_to() {
    let Some(bench) = Bench::new("clang_22_bundles_under_the_new_driver_although_told_not_to") else { return };
    let words = "--offload-new-driver --offload-arch=gfx1030 --offload-device-only --no-gpu-bundle-output a.hip -o o";
    for version in bench.versions() {
        ok(&bench.run(version, &format!("$W $HIP {WORDS} {words}")));
        let (kind, _) = ok(&bench.run(version, "head -c 4 o | od -An -c | tr -d ' \\n'"));
        let bare = kind.contains("ELF");
        let probed = bench.probed();
        assert_eq!(probed.iter().all(|line| line.contains("bare=1")), bare, "{version}: {kind}: {probed:#?}");
        assert_eq!(bare, version > 22);
    }
}

#[test]
fn a_script_without_tools_beside_it_is_asked_once() {
    let Some(bench) = Bench::new("a_script_without_tools_beside_it_is_asked_once") else { return };
    let version = bench.versions()[0];
    // As Nix and Spack wrap compilers: a script in a separate directory.
    let script = format!(
        "mkdir -p wrapped && printf '#!/bin/sh\\necho \"$@\" >>%s/asked\\nexec %s \"$@\"\\n' $PWD $R >wrapped/clang++ &&
         chmod +x wrapped/clang++ && export HOTSWAP_CLANG=$PWD/wrapped/clang++ &&
         for n in 1 2; do $W $HIP {WORDS} --offload-arch=gfx1030 -c a.hip -o o || exit; done; cat asked"
    );
    let (asked, _) = ok(&bench.run(version, &script));
    assert_eq!(asked.lines().filter(|line| line.contains("-print-prog-name")).count(), 1, "{asked}");
    assert_eq!(asked.lines().filter(|line| line.contains("a.hip") && !line.contains(" -E ")).count(), 2, "{asked}");
    assert_eq!(bench.probed().len(), 2);
}

#[test]
fn a_missing_registrar_is_a_link_error() {
    let Some(bench) = Bench::new("a_missing_registrar_is_a_link_error") else { return };
    fs::write(bench.at("P/lib/hotswap/libhotswap_registry.a"), "!<arch>\n").unwrap();
    let version = bench.versions()[0];
    let script = "$R $HIP --offload-arch=gfx1030 -c a.hip -o a.o && $W $HIP --hip-link WORDS a.o main.cpp -o program";
    let output = bench.run(version, &script.replace("WORDS", WORDS));
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && text.contains("hotswap_register_machine_flags_patch"), "{text}");
}

/// The host linker runs while another process empties the cache.
#[test]
fn a_cache_that_is_emptied_during_the_link_costs_a_second_link() {
    let Some(bench) = Bench::new("a_cache_that_is_emptied_during_the_link_costs_a_second_link") else { return };
    let script =
        "printf '#!/bin/sh\nrmdir full 2>/dev/null && rm -r \"$HOME/.cache\"\nexec ld \"$@\"\n' >emptying-ld &&
        chmod 755 emptying-ld && mkdir full && $R $HIP --offload-arch=gfx1030 -c a.hip -o a.o &&
        $W $HIP --hip-link WORDS a.o main.cpp --ld-path=$PWD/emptying-ld -o program && ! [ -e full ] && ./program";
    for version in bench.versions() {
        let output = bench.run(version, &script.replace("WORDS", WORDS));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success() && text.contains("clang runs again"), "{text}");
        fs::remove_file(bench.at("program")).unwrap();
    }
}

#[test]
fn the_c_driver_links_a_hip_program_written_in_cxx() {
    let Some(bench) = Bench::new("the_c_driver_links_a_hip_program_written_in_cxx") else { return };
    for version in bench.versions() {
        let script = "cp main.cpp main.hip && $WC $HIP --offload-arch=gfx1030 -c main.hip -o m.o &&
            $WC $HIP --hip-link m.o -o program && ./program && $WC $HIP --offload-arch=gfx1030 main.hip -o one && ./one";
        ok(&bench.run(version, script));
    }
}

#[test]
fn relocatable_objects_that_would_be_lost_are_told() {
    let Some(bench) = Bench::new("relocatable_objects_that_would_be_lost_are_told") else { return };
    let versions = bench.versions();
    let version = *versions.iter().find(|version| **version < 24).unwrap_or(&versions[0]);
    let make = "for d in '' no-; do
        $R $HIP --${d}offload-new-driver -fgpu-rdc --offload-arch=gfx1030 -c a.hip -o ${d:-new}.o || exit; done
        ar rc libnew.a new.o && ar rcT thin.a new.o";
    ok(&bench.run(version, make));
    for (words, code) in [
        ("new.o main.cpp -o x", "HS0403"),
        ("no-.o main.cpp -o x", "HS0403"),
        ("libnew.a main.cpp -o x", "HS0403"),
        ("-L. -lnew main.cpp -o x", "HS0403"),
        ("thin.a main.cpp -o x", "HS0403"),
        ("--hip-link -fgpu-rdc --offload-arch=gfx1030 new.o no-.o main.cpp -o x", "HS0404"),
        ("--hip-link -fgpu-rdc --offload-arch=gfx1030 --offload-new-driver no-.o main.cpp -o x", "HS0404"),
        ("--hip-link -fgpu-rdc --offload-arch=gfx1030 --no-offload-new-driver new.o main.cpp -o x", "HS0404"),
        ("--hip-link -fgpu-rdc --offload-arch=gfx1030 --offload-new-driver new.o main.cpp -o x", ""),
        ("--hip-link -fgpu-rdc --offload-arch=gfx1030 --no-offload-new-driver no-.o main.cpp -o x", ""),
    ] {
        let output = bench.run(version, &format!("$W $HIP {WORDS} {words}"));
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if code.is_empty() {
            assert!(output.status.success(), "{words}: {text}");
        } else {
            assert!(text.starts_with(&format!("hotswap-clang: error: [{code}]")), "{words}: {text}");
            assert_eq!(output.status.code(), Some(13));
        }
    }
}

#[test]
fn compiler_caches_accept_the_words_and_miss_when_the_plan_changes() {
    let Some(bench) = Bench::new("compiler_caches_accept_the_words_and_miss_when_the_plan_changes") else { return };
    if !bench.has("ccache") {
        skip("compiler caches", "no ccache in the userland");
        return;
    }
    let version = bench.versions()[0];
    let compile = |pairs: &str| {
        format!(
            "export CCACHE_DIR=$PWD/ccache CCACHE_COMPILERCHECK=content; rm -f o.o
             ccache $W -Xoffload-linker '--hotswap-retarget={pairs}' $HIP --offload-arch=gfx1030 -c a.hip -o o.o &&
             test -f o.o && ccache --print-stats | grep -E '^(direct_cache_hit|preprocessed_cache_hit|cache_miss)'"
        )
    };
    let count = |pairs: &str, key: &str| -> u32 {
        let (out, _) = ok(&bench.run(version, &compile(pairs)));
        let line = out.lines().find_map(|line| line.strip_prefix(key)).unwrap();
        line.trim().parse().unwrap()
    };
    assert_eq!(count("gfx1030=>gfx1031", "cache_miss"), 1);
    assert_eq!(count("gfx1030=>gfx1031", "direct_cache_hit"), 1);
    assert_eq!(count("gfx1030=>gfx1032", "cache_miss"), 2);
    assert_eq!(bench.probed().len(), 2);
}

#[test]
fn sccache_accepts_the_words() {
    let Some(bench) = Bench::new("sccache_accepts_the_words") else { return };
    if !bench.has("sccache") {
        skip("compiler caches", "no sccache in the userland");
        return;
    }
    let script = format!(
        "export SCCACHE_DIR=$PWD/sccache SCCACHE_SERVER_UDS=$PWD/socket SCCACHE_IDLE_TIMEOUT=60
         sccache $W $HIP {WORDS} --offload-arch=gfx1030 -c a.hip -o o.o; rc=$?
         sccache $W $HIP {WORDS} --offload-arch=gfx1030 -c a.hip -o o.o || rc=$?
         sccache --show-stats; sccache --stop-server >/dev/null; exit $rc"
    );
    let (out, _) = ok(&bench.run(bench.versions()[0], &script));
    let hits = out.lines().find_map(|line| line.strip_prefix("Cache hits  ")).map(str::trim);
    assert_eq!(hits, Some("1"), "{out}");
}

#[test]
fn plain_clang_tools_accept_the_words() {
    let Some(bench) = Bench::new("plain_clang_tools_accept_the_words") else { return };
    for version in bench.versions() {
        // clangd and clang-tidy parse with the driver but never link: the arguments must not be errors.
        let script = format!("$R $HIP {WORDS} --offload-arch=gfx1030 -fsyntax-only a.hip");
        ok(&bench.run(version, &script));
        let bracket = "--start-no-unused-arguments -Xoffload-linker --hotswap-plan=00 --end-no-unused-arguments";
        ok(&bench.run(version, &format!("$R -Werror {bracket} -fsyntax-only main.cpp")));
    }
}

/// The real clangd and clang-tidy, on a compilation database as CMake writes it.
#[test]
fn clangd_and_clang_tidy_read_a_database_with_our_words() {
    let Some(bench) = Bench::new("clangd_and_clang_tidy_read_a_database_with_our_words") else { return };
    let version = bench.versions()[0];
    let words = "--start-no-unused-arguments -Xoffload-linker --hotswap-plan=00 --end-no-unused-arguments";
    let command = format!("hotswap-clang++ -nogpuinc {words} --offload-arch=gfx1030 -x hip -c a.hip");
    let row = format!(r#"[{{"directory":"%s","file":"a.hip","command":"{command}"}}]"#);
    ok(&bench.run(version, &format!("printf '{row}' \"$PWD\" > compile_commands.json")));
    for (tool, call, expected) in [
        ("clang-tidy", "-p . --checks=-*,bugprone-use-after-move --warnings-as-errors=* a.hip", ""),
        ("clangd", "--check=a.hip", "0 errors"),
    ] {
        let script = format!("command -v {tool}-{version} > /dev/null || exit 77; {tool}-{version} {call}");
        let output = bench.run(version, &script);
        if output.status.code() == Some(77) {
            skip("tools with a database of commands", &format!("no {tool}-{version}"));
            continue;
        }
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && text.contains(expected), "{tool}: {text}");
    }
}

#[test]
fn switched_off_the_object_is_that_of_plain_clang() {
    let Some(bench) = Bench::new("switched_off_the_object_is_that_of_plain_clang") else { return };
    let version = bench.versions()[0];
    let script = format!(
        "echo {WORDS} > rsp; $R $HIP --offload-arch=gfx1030 -c a.hip -o o.o && mv o.o r.o
         HOTSWAP_DISABLE=1 $W $HIP {WORDS} @rsp --offload-arch=gfx1030 -c a.hip -o o.o && cmp o.o r.o"
    );
    ok(&bench.run(version, &script));
    assert_eq!(bench.probed(), [""; 0]);
}

#[test]
fn flags_with_separate_values_are_those_of_the_compilers() {
    use hotswap_driver_wrapper::flags::{FLAGS, FlagForm};
    let Some(bench) = Bench::new("flags_with_separate_values_are_those_of_the_compilers") else { return };
    let versions = bench.versions();
    let newest = *versions.iter().rfind(|version| **version < 24).unwrap_or(&versions[0]);
    let takes =
        |flag: &&hotswap_driver_wrapper::flags::Flag| matches!(flag.attach, FlagForm::Separate(_) | FlagForm::Either);
    let names: Vec<_> = FLAGS.iter().filter(takes).map(|flag| format!("'{}'", flag.name)).collect();
    // The driver reports the missing value when the flag is the last argument.
    let script = format!(
        "for f in {}; do $RC -### \"$f\" 2>&1 | grep -q 'is missing (expected' || echo \"$f\"; done",
        names.join(" ")
    );
    let (out, _) = ok(&bench.run(newest, &script));
    assert_eq!(out, "", "flags that take no separate value in clang {newest}");
}
