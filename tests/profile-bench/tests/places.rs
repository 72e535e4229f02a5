//! Unusual situations: small stacks, forks without handlers, destructors, the end of the first thread, names of files.

use hotswap_profile_bench::{Counts, DRAIN, Instrument, PLUGIN, ProfileBench, Ran, SCRIPT, counts};

/// Builds `small.c` with the drain, and `script.elf` with the newest clang, whose version it returns.
fn small(bench: &ProfileBench) -> u32 {
    let newest = *bench.work.versions.last().expect("there is a compiler");
    bench.script(newest, Instrument::Coverage, "script", true);
    bench.work.run(&format!("clang-{newest} -O1 -I. small.c {DRAIN} lib/libhsa-runtime64.so.1 -pthread -o small"));
    newest
}

#[test]
fn small_stacks_are_enough() {
    let Some(bench) = ProfileBench::new("profile drain, small stacks") else { return };
    let newest = small(&bench);
    for (kind, kibibytes) in [("thread", 16), ("thread", 40), ("handler", 16), ("handler", 32), ("nested", 64)] {
        let ran =
            bench.start(&format!("{kind}-{kibibytes}"), "", &format!("$B/small $B/script.elf {kind} {kibibytes}"));
        assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "{kind} {kibibytes}");
        assert_eq!(
            bench.counts(newest, &ran, &ran.devices()),
            counts(SCRIPT, 1),
            "{kind} {kibibytes}: {:?}",
            ran.files
        );
    }
}

#[test]
fn a_drain_takes_less_than_four_kibibytes_of_the_callers_stack() {
    let Some(bench) = ProfileBench::new("profile drain, bytes of stack") else { return };
    small(&bench);
    let used = bench.work.run(
        "mkdir run; cd run; export LD_LIBRARY_PATH=../lib; ../small ../script.elf used 512 >used; [ $? = 7 ] && cat used",
    );
    let bytes: usize = used.lines().next().and_then(|line| line.parse().ok()).unwrap_or_else(|| panic!("{used}"));
    hotswap_userland::say(&format!("a drain takes {bytes} bytes of the stack of its caller"));
    assert!((1..4096).contains(&bytes), "{used}");
}

/// A run of `script.hip` in an unusual situation: its expected results, and a part of its warnings.
struct Place {
    name: &'static str,
    variables: &'static str,
    words: &'static str,
    launches: u64,
    files: usize,
    warning: &'static str,
}

const PLACE: Place = Place { name: "", variables: "", words: "", launches: 1, files: 1, warning: "" };

const PLACES: &[Place] = &[
    Place { name: "_Fork after a launch", words: "launch _Fork end", warning: "without fork handlers", ..PLACE },
    Place { name: "SYS_fork after a launch", words: "launch SYS_fork end", warning: "without fork handlers", ..PLACE },
    Place { name: "_Fork before the only launch", words: "_Fork end launch", ..PLACE },
    Place {
        name: "a fork of a child that _Fork made",
        variables: "LLVM_PROFILE_FILE=%p.profraw",
        words: "launch _Fork fork end end",
        warning: "without fork handlers",
        ..PLACE
    },
    Place { name: "the first thread ends before the program", words: "launch main-ends", ..PLACE },
    Place {
        name: "/dev/null",
        variables: "LLVM_PROFILE_FILE=/dev/null",
        words: "launch",
        launches: 0,
        files: 0,
        ..PLACE
    },
    Place { name: "an empty LLVM_PROFILE_FILE", variables: "LLVM_PROFILE_FILE=", words: "launch", ..PLACE },
];

fn check(bench: &ProfileBench, version: u32, place: &Place, ran: &Ran) {
    let context = format!("clang {version}: {}", place.name);
    assert_eq!((ran.code, ran.devices().len()), (Some(7), place.files), "{context}: {} {:?}", ran.error, ran.files);
    let expected = if place.launches == 0 { Counts::new() } else { counts(SCRIPT, place.launches) };
    assert_eq!(bench.counts(version, ran, &ran.devices()), expected, "{context}");
    let warnings = ran.warnings();
    assert_eq!(warnings.is_empty(), place.warning.is_empty(), "{context}: {}", ran.error);
    assert!(warnings.iter().all(|line| line.contains(place.warning)), "{context}: {}", ran.error);
}

#[test]
fn odd_places_lose_nothing_and_count_nothing_twice() {
    let Some(bench) = ProfileBench::new("profile drain, odd places") else { return };
    for &version in &bench.work.versions {
        let program = format!("script-{version}");
        bench.script(version, Instrument::DeviceCoverage, &program, true);
        for (index, place) in PLACES.iter().enumerate() {
            let command = format!("$B/{program} {}", place.words);
            let ran = bench.start(&format!("run-{version}-{index}"), place.variables, &command);
            check(&bench, version, place, &ran);
        }
        assert!(!std::path::Path::new("/dev").join("gfx90a").exists());
    }
}

#[test]
fn launches_of_the_last_destructors_count() {
    let Some(bench) = ProfileBench::new("profile drain, destructors of global objects") else { return };
    for &version in &bench.work.versions {
        for (name, instrument) in [("host", Instrument::Coverage), ("device", Instrument::DeviceCoverage)] {
            let (clang, link) = (bench.clang(version, instrument), ProfileBench::link(true));
            let program = format!("{name}-{version}");
            bench.work.run(&format!(
                "clang++-{version} -c leaving.cpp -o leaving.o && \
                 {clang} --offload-arch=gfx90a -x hip script.hip -x none leaving.o {link} -o {program}"
            ));
            let ran = bench.start(&format!("run-{program}"), "", &format!("$B/{program} launch"));
            assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""), "{program}");
            assert_eq!(bench.counts(version, &ran, &ran.devices()), counts(SCRIPT, 2), "{program}");
        }
    }
}

#[test]
fn a_long_name_is_whole() {
    let Some(bench) = ProfileBench::new("profile drain, long names") else { return };
    let version = bench.work.versions[0];
    bench.script(version, Instrument::DeviceCoverage, "script", true);
    let directory = ["d".repeat(250), "e".repeat(250)].join("/");
    // 1,500 bytes, in nested directories.
    let deep = [directory.as_str(); 3].join("/");
    let ran = bench.start("run", &format!("LLVM_PROFILE_FILE={deep}/x.profraw"), "$B/script launch");
    assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""));
    let files = bench.work.run("cd run; find . -type f");
    assert!(files.starts_with(&format!("./{deep}/gfx90a.")) && files.ends_with("x.profraw\n"), "{files}");
    // The host's runtime also takes this unchanged.
    let ran = bench.start("more", &format!("LLVM_PROFILE_FILE={deep}/{deep}/{deep}/x"), "$B/script launch");
    assert_eq!((ran.code, ran.warnings().len()), (Some(7), 1), "{}", ran.error);
    assert!(ran.error.contains("file name too long"), "{}", ran.error);
}

#[test]
fn without_a_directory_for_temporary_files_the_default_name_holds() {
    let Some(bench) = ProfileBench::new("profile drain, %t") else { return };
    let version = bench.work.versions[0];
    for (name, instrument) in [("host", Instrument::Coverage), ("device", Instrument::DeviceCoverage)] {
        bench.script(version, instrument, name, true);
        let variables = "LLVM_PROFILE_FILE=%t/x.profraw; unset TMPDIR; export NOTHING=";
        let ran = bench.start(&format!("run-{name}"), variables, &format!("$B/{name} launch"));
        assert_eq!((ran.code, ran.devices().len()), (Some(7), 1), "{name}: {} {:?}", ran.error, ran.files);
        assert!(ran.devices()[0].ends_with(".default.profraw"), "{name}: {:?}", ran.files);
        // The host's own file exists where our file is beside it.
        assert_eq!(ran.files.contains(&"default.profraw".to_owned()), name == "host", "{:?}", ran.files);
    }
}

#[test]
fn links_are_not_followed_where_files_are_merged() {
    let Some(bench) = ProfileBench::new("profile drain, links in the way") else { return };
    let version = bench.work.versions[0];
    bench.script(version, Instrument::DeviceCoverage, "script", true);
    let variables = "LLVM_PROFILE_FILE=%m.profraw";
    let first = bench.start("run", variables, "$B/script launch");
    let name = first.devices()[0].clone();
    bench.work.run(&format!("cd run; mv {name} kept; ln -s $PWD/../elsewhere {name}"));
    let ran = bench.again("run", variables, "$B/script launch");
    assert_eq!((ran.code, ran.error.as_str()), (Some(7), ""));
    assert!(!bench.work.path("elsewhere").exists(), "the link was followed");
    bench.work.run(&format!("cd run; test -L {name}; rm {name}"));
    let ran = bench.again("run", variables, "true");
    assert_eq!(ran.devices().len(), 1, "{:?}", ran.files);
    assert_eq!(bench.counts(version, &ran, &ran.devices()), counts(SCRIPT, 1), "{:?}", ran.files);
}

#[test]
fn programs_with_rights_of_their_own_do_not_believe_the_environment() {
    if !hotswap_userland::can_be_two_users() {
        return hotswap_userland::skip("profile drain, setuid", "only root can be two users");
    }
    let Some(bench) = ProfileBench::new("profile drain, setuid") else { return };
    let version = bench.work.versions[0];
    for (name, instrument) in [("host", Instrument::Coverage), ("device", Instrument::DeviceCoverage)] {
        let (clang, link) = (bench.clang(version, instrument), ProfileBench::link(true));
        let found = "-Xlinker -rpath -Xlinker $PWD/lib -Xlinker --disable-new-dtags -Xlinker --allow-shlib-undefined";
        bench.work.run(&format!(
            "{clang} --offload-arch=gfx90a -x hip script.hip {link} {found} -o {name} && chmod 755 . && chmod 4755 {name} && \
             mkdir -m 777 run-{name}"
        ));
        let ran = bench.again(
            &format!("run-{name}"),
            "LLVM_PROFILE_FILE=$B/owned-{name}.profraw",
            &format!("setpriv --reuid=65534 --clear-groups $B/{name} launch"),
        );
        assert_eq!(ran.code, Some(7), "{name}: {}", ran.error);
        let owned = bench.work.run("ls");
        assert!(!owned.contains("gfx90a."), "{name}: {owned}");
        assert!(ran.devices().iter().any(|file| file.ends_with(".default.profraw")), "{name}: {:?}", ran.files);
    }
}

#[test]
fn libraries_do_not_each_read_the_code_of_all() {
    let Some(bench) = ProfileBench::new("profile drain, ten libraries") else { return };
    for &version in &bench.work.versions {
        let (clang, link) = (bench.clang(version, Instrument::Coverage), ProfileBench::link(true));
        bench.script(version, Instrument::Coverage, "with", true);
        bench.script(version, Instrument::DeviceCoverage, "plain", false);
        bench.work.run(&format!("{clang} --offload-arch=gfx90a -fPIC -x hip -c plugin.hip -o plugin.o"));
        let mut words = String::new();
        for library in 0..10 {
            bench.work.run(&format!("{clang} -shared plugin.o {link} -o lib{library}.so"));
            words += &format!(" open $B/lib{library}.so call");
        }
        for (program, most) in [("with", 20), ("plain", 20)] {
            let ran = bench.start(&format!("{program}-{version}"), "STANDIN_LOG=1", &format!("$B/{program}{words}"));
            assert_eq!((ran.code, ran.warnings().len()), (Some(7), 0), "clang {version}, {program}: {}", ran.error);
            let copies = ran.error.lines().filter(|line| *line == "[hsa] hsa_memory_copy").count();
            hotswap_userland::say(&format!(
                "clang {version}, {program}: {copies} copies of 10 objects of 10 libraries"
            ));
            let found = bench.counts(version, &ran, &ran.devices());
            assert_eq!(found, counts(PLUGIN, 10), "clang {version}, {program}: {:?}", ran.files);
            assert!(copies <= most, "clang {version}, {program}: {copies} copies");
        }
    }
}
