//! Builds through hotswap-clang++ that make profiles and use them: nothing is mistaken, and nothing is lost silently.

use hotswap_profile_bench::{PLUGIN, ProfileBench, SCRIPT, counts};

/// Shell: `P` is the installation, `X` compiles HIP through it.
fn set_up(version: u32) -> String {
    let prefix = std::env::var("HOTSWAP_TEST_PREFIX").expect("the tests run with an installation");
    format!(
        "P={prefix}; export HOTSWAP_CLANG=/usr/bin/clang++-{version} XDG_CACHE_HOME=$PWD/cache
        [ {version} = 22 ] && ROCM=
        X() {{ {prefix}/bin/hotswap-clang++ -nogpuinc -I. --offload-arch=gfx90a ${{ROCM:+--rocm-path=$ROCM}} \"$@\"; }}\n"
    )
}

/// The standard error of the script, which must succeed.
fn build(bench: &ProfileBench, version: u32, text: &str) -> String {
    bench.work.run(&format!("{{ set -e; {}{text}\n}} 2>&1", set_up(version)))
}

#[test]
fn relocatable_code_of_the_optimiser_is_known_as_such() {
    let Some(bench) = ProfileBench::new("profile builds, relocatable device code") else { return };
    for &version in &bench.work.versions {
        // Clang 22 cannot link relocatable code with counters at -O0, with or without HotSwap.
        for level in ["-O1", "-O2"] {
            let program = format!("rdc-{version}{level}");
            let words = format!("-fgpu-rdc -fprofile-generate {level}");
            build(
                &bench,
                version,
                &format!(
                    "X {words} -c script.hip -o s.o; X {words} -fPIC -c plugin.hip -o p.o
                     X {words} --hip-link s.o p.o -rdynamic -o {program} -lamdhip64"
                ),
            );
            let variables = "LLVM_PROFILE_FILE=x.profraw";
            let ran = bench.start(&format!("run-{program}"), variables, &format!("$B/{program} launch"));
            assert_eq!((ran.code, ran.error.as_str(), ran.devices().len()), (Some(7), "", 1), "{program}");
            let profile = bench.profile(version, &ran, &ran.devices());
            assert!(profile.level.starts_with("IR"), "{program}: {}", profile.level);
            assert!(profile.counts.len() >= 3, "{program}: {:?}", profile.counts);
        }
    }
}

#[test]
fn a_build_that_uses_a_profile_says_how_much_fits() {
    let Some(bench) = ProfileBench::new("profile builds, use") else { return };
    for &version in &bench.work.versions {
        for (name, rdc) in [("plain", ""), ("rdc", "-fgpu-rdc")] {
            let context = format!("clang {version}, {name}");
            let link = format!("X {rdc} --hip-link q.o -lamdhip64");
            build(
                &bench,
                version,
                &format!(
                    "X {rdc} -O2 -fprofile-generate -c quiet.hip -o q.o; {link} -fprofile-generate -o {name}-{version}"
                ),
            );
            let run = format!("run-{name}-{version}");
            let ran = bench.start(&run, "LLVM_PROFILE_FILE=x.profraw", &format!("$B/{name}-{version}"));
            assert_eq!((ran.code, ran.devices().len()), (Some(7), 1), "{context}: {}", ran.error);
            bench.work.run(&format!("llvm-profdata-{version} merge {run}/*.profraw -o {name}.profdata"));
            // Warnings of the optimiser are about the made-up counts.
            let uses = format!("X {rdc} -fprofile-use={name}.profdata -w -c quiet.hip -o q.o");
            let said = build(&bench, version, &format!("{uses} -O2; {link} -o used"));
            assert!(said.contains("the profile fits 2 of 2 functions of device code"), "{context}: {said}");
            assert!(!said.contains("HS0416"), "{context}: {said}");
            for (change, words, fits) in [
                ("s/hidden/unseen/", "-O2", "fits 1 of 2 functions"),
                ("s/hidden/unseen/; s/quiet/silent/", "-O2", "fits 0 of 2 functions"),
                ("", "-O0", "fits 0 of 2 functions"),
            ] {
                let changed =
                    format!("cp quiet.hip kept; sed -i '{change}' quiet.hip; {uses} {words}; mv kept quiet.hip");
                let said = build(&bench, version, &changed);
                assert!(said.contains(fits), "{context}: {said}");
                assert_eq!(said.contains("HS0416"), !fits.contains("1 of 2"), "{context}: {said}");
            }
            let failed = bench.work.shell(&format!("{}{uses} -O2 -Dquiet=1+", set_up(version)));
            assert_eq!(failed.status.code(), Some(1), "{context}");
            assert_eq!(bench.work.run("ls /tmp | grep -c hotswap-profile-use || true").trim(), "0", "{context}");
        }
    }
}

#[test]
fn code_that_notes_when_it_ran_first_links_and_is_drained() {
    let Some(bench) = ProfileBench::new("profile builds, -ftemporal-profile") else { return };
    for &version in &bench.work.versions {
        for (name, rdc) in [("plain", ""), ("rdc", "-fgpu-rdc")] {
            let program = format!("{name}-{version}");
            let words = "-O2 -fprofile-generate -ftemporal-profile";
            build(&bench, version, &format!("X {rdc} {words} script.hip -o {program} -lamdhip64"));
            let ran =
                bench.start(&format!("run-{program}"), "LLVM_PROFILE_FILE=x.profraw", &format!("$B/{program} launch"));
            assert_eq!((ran.code, ran.error.as_str(), ran.devices().len()), (Some(7), "", 1), "{program}");
            let shown = bench.work.run(&format!(
                "cd {}; llvm-profdata-{version} merge gfx* -o m; llvm-profdata-{version} show --temporal-profile-traces m",
                ran.directory
            ));
            assert!(shown.contains("_Z5saxpyifPKfPf"), "{program}: {shown}");
        }
    }
}

#[test]
fn counters_that_no_runtime_writes_are_said() {
    let Some(bench) = ProfileBench::new("profile builds, links without the flag") else { return };
    let version = bench.work.versions[0];
    let device = "-Xarch_device -fprofile-instr-generate";
    build(
        &bench,
        version,
        &format!(
            "X -fprofile-instr-generate -c script.hip -o both.o; X {device} -c script.hip -o device.o; X -c script.hip -o none.o"
        ),
    );
    for (object, words, is_said) in [
        ("both.o", "--hip-link", true),
        ("device.o", "--hip-link", true),
        ("both.o", "", true),
        ("none.o", "--hip-link", false),
        ("both.o", "--hip-link -fprofile-instr-generate", false),
        ("both.o", "--hip-link -r", false),
    ] {
        let library = if words.contains("-r") { "" } else { "-lamdhip64" };
        let said = build(&bench, version, &format!("X {words} {object} -o out {library}"));
        assert_eq!(said.contains("HS0415") && said.contains(object), is_said, "{object} {words}: {said}");
    }
}

/// Links that lack the flag for counters: how they name HIP's library, and whether the wrapper must say that counts are lost.
#[rustfmt::skip]
const FORMS_WITHOUT_FLAG: &[(&str, &str)] = &[
    ("as HIP", "--hip-link O -lamdhip64"),
    ("by its name", "O -lamdhip64"),
    ("by its path", "O $(ls /usr/lib/*/libamdhip64.so)"),
    ("for the linker alone", "O -Wl,-lamdhip64"),
    ("in a linker script", "O $PWD/hip.ld"),
    ("not at all", "-shared O"),
];

/// Follows each advice of the message in each form; a library without HIP's gets that from the program.
#[test]
fn advice_about_counters_that_no_runtime_writes_works_in_each_form() {
    let Some(bench) = ProfileBench::new("profile builds, advice for links without the flag") else { return };
    bench.work.run("echo 'INPUT(-lamdhip64)' >hip.ld");
    for &version in &bench.work.versions {
        let (both, device) = ("-fprofile-instr-generate", "-Xarch_device -fprofile-instr-generate");
        build(
            &bench,
            version,
            &format!(
                "X {both} -fPIC -c plugin.hip -o p-both.o; X {device} -fPIC -c plugin.hip -o p-device.o; X -fPIC -c plugin.hip -o p-none.o"
            ),
        );
        build(
            &bench,
            version,
            &format!(
                "X {both} -c script.hip -o s-both.o; X {device} -c script.hip -o s-device.o; X -c script.hip -o s-none.o; X s-none.o -lamdhip64 -o script"
            ),
        );
        for (number, (form, words)) in FORMS_WITHOUT_FLAG.iter().enumerate() {
            let unit = if words.contains("-shared") { "p" } else { "s" };
            for (kind, advice) in [("both", both), ("device", "-Xoffload-linker --hotswap-drain=1"), ("none", "")] {
                let context = format!("clang {version}, HIP's library {form}, {kind}");
                let link = format!("X {}", words.replace('O', &format!("{unit}-{kind}.o")));
                // Clang 23 and later leave symbols of the runtime undefined, so that the link fails after the message.
                let said = build(&bench, version, &format!("{link} -o out || :"));
                assert_eq!(said.contains("HS0415"), kind != "none", "{context}: {said}");
                if advice.is_empty() {
                    continue;
                }
                assert!(said.contains(advice), "{context}: {said}");
                let program = format!("out-{version}-{number}-{kind}");
                let said = build(&bench, version, &format!("{link} {advice} -o {program}"));
                assert!(said.is_empty(), "{context}: {said}");
                let (command, expected) = match unit {
                    "p" => (format!("$B/script open $B/{program} call"), counts(PLUGIN, 1)),
                    _ => (format!("$B/{program} launch"), counts(SCRIPT, 1)),
                };
                let ran = bench.start(&format!("run-{program}"), "", &command);
                assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "{context}");
                assert_eq!(bench.counts(version, &ran, &ran.devices()), expected, "{context}: {:?}", ran.files);
            }
        }
    }
}
