//! Bad input: each fault has one line that names the object and the remedy, a stable exit code, no output and no
//! temporary file.

use hotswap_tests::artifact::{devices, targets};
use hotswap_tests::mode::{plan_words, write_sources};
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, say, skip};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;

const PLAN: &str = "gfx1030=>gfx1031";
const LEGACY: &str = "--no-offload-new-driver";
const NEW: &str = "--offload-new-driver";

/// A scratch directory with sources and an empty directory for temporary files.
fn sources(bench: &Bench) -> Scratch {
    let scratch = bench.scratch();
    write_sources(&scratch, false);
    fs::create_dir(scratch.outside("tmp")).unwrap();
    scratch
}

fn words(list: &[&str]) -> Vec<String> {
    list.iter().map(|word| (*word).to_owned()).collect()
}

/// `hotswap-clang++` with these arguments of a plan, then a compile of `a.hip`.
fn compile<'a>(bench: &'a Bench, clang: &Clang, scratch: &Scratch, plan: &[String], more: &[&str]) -> Call<'a> {
    let mut line = [vec![bench.installed("bin/hotswap-clang++")], plan.to_vec(), clang.light()].concat();
    line.extend(words(&["--offload-arch=gfx1030", "a.hip"]));
    line.extend(words(more));
    let call = Call::new(bench, &scratch.inside, &line).env("HOTSWAP_CLANG", clang.program.clone());
    call.env("TMPDIR", scratch.inside("tmp"))
}

/// Files that the tools themselves leave in the new driver where the device link fails, with or without HotSwap.
fn is_clangs_own(name: &str) -> bool {
    name.contains("-amd-amdhsa-gfx1030-") && name.ends_with(".o")
}

/// One line of HotSwap with that code, no output, no temporary files. Returns the line.
fn refused(what: &str, ran: &Ran, scratch: &Scratch, code: &str, output: &str) -> String {
    assert!(!ran.ok() && ran.signal.is_none() && !ran.late, "{what}: {}", ran.brief());
    let errors: Vec<_> = ran.ours().into_iter().filter(|line| line.contains("error: ")).collect();
    assert_eq!(errors.len(), 1, "{what}: {}", ran.stderr);
    let marks = ["hotswap-lld: error: [", "hotswap-clang: error: ["];
    assert!(marks.iter().any(|mark| errors[0].starts_with(&format!("{mark}{code}]"))), "{what}: {}", errors[0]);
    assert!(!scratch.has(output), "{what}: {output} was left");
    let temporary: Vec<_> = scratch.names("tmp").into_iter().filter(|name| !is_clangs_own(name)).collect();
    assert_eq!(temporary, [""; 0], "{what}: temporary files");
    let strange: Vec<_> = scratch.names(".").into_iter().filter(|name| name.starts_with('.')).collect();
    assert_eq!(strange, [""; 0], "{what}: hidden files");
    errors[0].to_owned()
}

/// The compiler that most tests use, and each driver that it has.
fn newest_with_both_drivers(bench: &Bench) -> (&Clang, &'static [&'static str]) {
    let both = bench.clangs.iter().rfind(|clang| clang.version < 24);
    both.map_or((&bench.clangs[0], &[NEW][..]), |clang| (clang, &[LEGACY, NEW][..]))
}

#[test]
fn plans_that_cannot_be_used() {
    let Some(bench) = Bench::ready("bad plans") else { return };
    let clang = &bench.clangs[0];
    let cases = [
        ("gfx1030=>gfx1999", "HS0202", 11, "gfx1999"),
        ("gfx9999=>gfx1031", "HS0202", 11, "gfx9999"),
        ("gfx900=>gfx906", "HS0203", 11, "gfx906"),
        ("gfx1102=>gfx1150", "HS0203", 11, "gfx1150"),
        ("gfx90a=>gfx942", "HS0203", 11, "gfx942"),
        ("gfx1030=>gfx1031;gfx1102=>gfx1150", "HS0203", 11, "gfx1150"),
        ("gfx1030", "HS0201", 11, "gfx1030"),
        ("gfx1030=>", "HS0201", 11, "gfx1030=>"),
        ("=>gfx1031", "HS0201", 11, "=>gfx1031"),
        ("gfx1030=>gfx1030", "HS0201", 11, "gfx1030"),
        ("gfx90a:xnack+=>gfx942", "HS0201", 11, "gfx90a:xnack+"),
        ("gfx1030=>gfx1031=>gfx1032", "HS0201", 11, "gfx1031=>gfx1032"),
    ];
    for (pairs, code, exit, part) in cases {
        for more in [&["-c", "-o", "out"][..], &["-o", "out"][..]] {
            let scratch = sources(&bench);
            let ran = compile(&bench, clang, &scratch, &plan_words(pairs, None), more).run();
            let line = refused(pairs, &ran, &scratch, code, "out");
            assert!(line.contains(part), "{line}");
            assert_eq!(ran.code, Some(exit), "{line}");
        }
    }
    let scratch = sources(&bench);
    let ran = compile(&bench, clang, &scratch, &plan_words(PLAN, Some("perhaps")), &["-c", "-o", "out"]).run();
    assert!(refused("policy", &ran, &scratch, "HS0201", "out").contains("perhaps"));
    say(&format!("bad input: {} plans refused", cases.len() + 1));
}

fn token(hash: &str) -> Vec<String> {
    words(&["-Xoffload-linker", &format!("--hotswap-plan={hash}")])
}

/// Makes a plan file as the configure step does, and returns its hash.
fn make_plan(bench: &Bench, scratch: &Scratch, pairs: &str) -> String {
    let line = [&bench.installed("bin/hotswap"), "plan", pairs, "--out-dir", ".hotswap/plans"];
    let ran = Call::new(bench, &scratch.inside, &line).run();
    assert!(ran.ok(), "{}", ran.brief());
    ran.stdout.trim().to_owned()
}

#[test]
fn a_plan_file_that_is_missing_changed_or_one_of_two() {
    let Some(bench) = Bench::ready("plan files") else { return };
    let clang = &bench.clangs[0];
    let more = ["-c", "-o", "out"];
    let check = |what: &str, scratch: &Scratch, plan: &[String], code: &str| {
        fs::remove_file(scratch.outside("out")).ok();
        let ran = compile(&bench, clang, scratch, plan, &more).run();
        assert_eq!(ran.code, Some(11), "{what}: {}", ran.brief());
        assert!(ran.stderr.contains(&format!("hotswap-clang: error: [{code}]")), "{what}: {}", ran.stderr);
        assert!(!scratch.has("out") && scratch.names("tmp").is_empty(), "{what}");
    };
    let scratch = sources(&bench);
    let hash = make_plan(&bench, &scratch, PLAN);
    // Another source for the same target; plans with other targets are joined.
    let other = make_plan(&bench, &scratch, "gfx1032=>gfx1031");
    let good = compile(&bench, clang, &scratch, &token(&hash), &more).run();
    assert!(good.ok(), "{}", good.brief());
    check("two plans", &scratch, &[token(&hash), token(&other)].concat(), "HS0206");
    check("absent plan", &scratch, &token("0123456789abcdef"), "HS0204");
    let file = format!(".hotswap/plans/{hash}.plan");
    let text = String::from_utf8(scratch.read(&file)).unwrap();
    scratch.write(&file, text.replace("gfx1031", "gfx1033"));
    check("changed plan", &scratch, &token(&hash), "HS0205");
    scratch.write(&file, "not a plan");
    check("damaged plan", &scratch, &token(&hash), "HS0201");
    fs::remove_file(scratch.outside(&file)).unwrap();
    check("removed plan", &scratch, &token(&hash), "HS0204");
    check("hash that is a path", &scratch, &token("../../etc/passwd"), "HS0201");
}

#[test]
fn a_compiler_that_is_missing_or_is_hotswap_itself() {
    let Some(bench) = Bench::ready("missing compiler and recursion") else { return };
    let clang = &bench.clangs[0];
    let scratch = sources(&bench);
    scratch.script("again", &format!("exec {} \"$@\"", bench.installed("bin/hotswap-clang++")));
    std::os::unix::fs::symlink(bench.installed("bin/hotswap-clang"), scratch.outside("clang++")).unwrap();
    let cases = [
        ("/nowhere/clang++".to_owned(), "HS0101"),
        ("no-such-clang++".to_owned(), "HS0101"),
        (scratch.inside("a.hip"), "HS0101"),
        (bench.installed("bin/hotswap-clang++"), "HS0103"),
        (scratch.inside("clang++"), "HS0103"),
        (scratch.inside("again"), "HS0103"),
    ];
    for (named, code) in cases {
        for plan in [plan_words(PLAN, None), Vec::new()] {
            let call = compile(&bench, clang, &scratch, &plan, &["-c", "-o", "out"]).env("HOTSWAP_CLANG", &named);
            let ran = call.limit(std::time::Duration::from_secs(20)).run();
            let line = refused(&named, &ran, &scratch, code, "out");
            assert_eq!(ran.code, Some(10), "{line}");
        }
    }
}

/// A directory with the real tools of that clang, with `replaced` being these scripts.
fn tools(bench: &Bench, clang: &Clang, scratch: &Scratch, replaced: &[(&str, &str)]) -> String {
    let real = format!("/usr/lib/llvm-{}/bin", clang.version);
    let known = bench.userland.outside(&real).is_dir();
    assert!(known, "the real tools are not in {real}");
    fs::create_dir_all(scratch.outside("tools")).unwrap();
    let names =
        ["lld", "ld.lld", "clang-offload-bundler", "clang-linker-wrapper", "llvm-offload-binary", "llvm-objcopy"];
    for tool in names {
        match replaced.iter().find(|(name, _)| *name == tool) {
            Some((_, script)) => {
                scratch.script(&format!("tools/{tool}"), &script.replace("REAL", &format!("{real}/{tool}")))
            }
            None => {
                std::os::unix::fs::symlink(format!("{real}/{tool}"), scratch.outside(&format!("tools/{tool}"))).unwrap()
            }
        }
    }
    scratch.inside("tools")
}

/// Finds the argument after `-o` (or of `-output=`) in a script's own arguments, as `$out`.
const FIND_OUTPUT: &str = r#"out=; before=; for word; do
  case $word in -output=*) out=${word#*=};; esac
  [ "$before" = -o ] && out=$word; before=$word
done"#;

#[test]
fn a_device_linker_that_is_missing_fails_or_writes_damaged_code() {
    let Some(bench) = Bench::ready("damaged device link") else { return };
    let (clang, drivers) = newest_with_both_drivers(&bench);
    let link = |end: &str| format!("{FIND_OUTPUT}\nREAL \"$@\" || exit\n{end}");
    let cases = [
        ("garbage", format!("{FIND_OUTPUT}\necho garbage >\"$out\""), "HS0301"),
        ("an empty file", format!("{FIND_OUTPUT}\n: >\"$out\""), "HS0301"),
        ("nothing", "exit 0".to_owned(), "HS0301"),
        ("half of it", link("truncate -s 700 \"$out\""), "HS0302"),
        ("the header only", link("truncate -s 64 \"$out\""), "HS0302"),
        ("a host object", format!("{FIND_OUTPUT}\ncp /usr/lib/x86_64-linux-gnu/crt1.o \"$out\""), "HS0301"),
        ("killed", "kill -SEGV $$".to_owned(), "HS0003"),
        ("killed hard", "kill -KILL $$".to_owned(), "HS0003"),
    ];
    let mut count = 0;
    for &driver in drivers {
        for (what, script, code) in &cases {
            let scratch = sources(&bench);
            let directory = tools(&bench, clang, &scratch, &[("lld", script), ("ld.lld", script)]);
            let call = compile(&bench, clang, &scratch, &plan_words(PLAN, None), &[driver, "-c", "-o", "out"]);
            let ran = call.env("HOTSWAP_LLVM_BIN", directory).run();
            refused(&format!("{driver}: {what}"), &ran, &scratch, code, "out");
            assert!(ran.code.is_some_and(|code| code < 126), "{driver}: {what}: {}", ran.brief());
            assert!(!ran.stderr.contains("PLEASE submit a bug report"), "{driver}: {what}: clang crashed");
            count += 1;
        }
    }
    say(&format!("bad input: {count} damaged device links refused"));
}

#[test]
fn a_bundler_that_writes_damaged_fat_binaries() {
    let Some(bench) = Bench::ready("damaged bundle") else { return };
    let (clang, drivers) = newest_with_both_drivers(&bench);
    let ends = |end: &str| format!("{FIND_OUTPUT}\nREAL \"$@\" || exit\n{end}");
    let cases = [
        ("garbage", ends("echo garbage >\"$out\""), &["HS0302"][..]),
        ("an empty file", ends(": >\"$out\""), &["HS0302"]),
        ("half of the table", ends("truncate -s 60 \"$out\""), &["HS0302"]),
        ("half of the code", ends("truncate -s 4500 \"$out\""), &["HS0302"]),
        ("no file", ends("rm \"$out\""), &["HS0501"]),
        ("nothing", "exit 0".to_owned(), &["HS0302", "HS0501"]),
    ];
    for &driver in drivers {
        for (what, script, codes) in &cases {
            let scratch = sources(&bench);
            let directory =
                tools(&bench, clang, &scratch, &[("clang-offload-bundler", script), ("clang-linker-wrapper", script)]);
            let call = compile(&bench, clang, &scratch, &plan_words(PLAN, None), &[driver, "-c", "-o", "out"]);
            let ran = call.env("HOTSWAP_LLVM_BIN", directory).run();
            let code = codes.iter().find(|code| ran.stderr.contains(**code)).unwrap_or(&codes[0]);
            refused(&format!("{driver}: {what}"), &ran, &scratch, code, "out");
        }
    }
}

#[test]
fn exit_codes_of_the_real_linker_are_kept_in_range() {
    let Some(bench) = Bench::ready("exit codes") else { return };
    let (clang, drivers) = newest_with_both_drivers(&bench);
    for &driver in drivers {
        for code in ["1", "3", "126", "127", "200"] {
            let scratch = sources(&bench);
            let script = format!("echo linker says {code} >&2; exit {code}");
            let directory = tools(&bench, clang, &scratch, &[("lld", &script), ("ld.lld", &script)]);
            let call = compile(&bench, clang, &scratch, &plan_words(PLAN, None), &[driver, "-c", "-o", "out"]);
            let ran = call.env("HOTSWAP_LLVM_BIN", directory).run();
            let own: i32 = code.parse().unwrap();
            let expected = if driver == LEGACY && own < 126 { own } else { 1 };
            assert_eq!(ran.code, Some(expected), "{driver} {code}: {}", ran.brief());
            assert!(ran.stderr.contains(&format!("linker says {code}")) && !scratch.has("out"));
            // The linker has reported the problem; a second error of ours would only hide it.
            assert_eq!(ran.ours(), [""; 0]);
        }
    }
}

#[test]
fn tools_that_are_missing() {
    let Some(bench) = Bench::ready("missing tools") else { return };
    let (clang, drivers) = newest_with_both_drivers(&bench);
    for &driver in drivers {
        for directory in ["empty", "absent"] {
            let scratch = sources(&bench);
            fs::create_dir(scratch.outside("empty")).unwrap();
            let call = compile(&bench, clang, &scratch, &plan_words(PLAN, None), &[driver, "-c", "-o", "out"]);
            let ran = call.env("HOTSWAP_LLVM_BIN", scratch.inside(directory)).run();
            let line = refused(&format!("{driver} {directory}"), &ran, &scratch, "HS0102", "out");
            assert!(line.contains(directory), "{line}");
        }
        // The tool's directory is HotSwap's own.
        let scratch = sources(&bench);
        let call = compile(&bench, clang, &scratch, &plan_words(PLAN, None), &[driver, "-c", "-o", "out"]);
        let ran = call.env("HOTSWAP_LLVM_BIN", bench.installed("libexec/hotswap")).run();
        refused(driver, &ran, &scratch, "HS0103", "out");
    }
}

#[test]
fn a_missing_hip_is_clangs_own_error() {
    let Some(bench) = Bench::ready("missing HIP") else { return };
    for clang in &bench.clangs {
        let scratch = sources(&bench);
        let line = |program: &str, plan: &[String]| {
            let end = words(&["--rocm-path=/nowhere", "--offload-arch=gfx1030", "-c", "a.hip", "-o", "out"]);
            let line = [vec![program.to_owned()], plan.to_vec(), end].concat();
            Call::new(&bench, &scratch.inside, &line).env("HOTSWAP_CLANG", clang.program.clone()).run()
        };
        let plain = line(&clang.program, &[]);
        let ours = line(&bench.installed("bin/hotswap-clang++"), &plan_words(PLAN, None));
        assert!(!plain.ok() && ours.code == plain.code, "{}", ours.brief());
        let error = plain.stderr.lines().find(|line| line.contains("error:")).unwrap();
        let error = error.split_once("error:").unwrap().1;
        assert!(ours.stderr.contains(error) && !scratch.has("out"), "{error}: {}", ours.stderr);
    }
}

#[test]
fn outputs_that_are_no_files() {
    let Some(bench) = Bench::ready("special outputs") else { return };
    let (clang, drivers) = newest_with_both_drivers(&bench);
    for &driver in drivers {
        let device = [driver, "--offload-device-only", "-o"];
        let scratch = sources(&bench);
        let plan = plan_words(PLAN, None);
        let null = compile(&bench, clang, &scratch, &plan, &[&device[..], &["/dev/null"]].concat()).run();
        refused("/dev/null", &null, &scratch, "HS0406", "none");
        let kind = fs::metadata(bench.userland.outside("/dev/null")).unwrap().file_type();
        assert!(kind.is_char_device(), "/dev/null was replaced");

        let pipe = compile(&bench, clang, &scratch, &plan, &[&device[..], &["pipe"]].concat());
        assert!(Call::new(&bench, &scratch.inside, &["mkfifo", "pipe"]).run().ok());
        // A reader that would get any output before the refusal.
        let mut reader = Call::new(&bench, &scratch.inside, &["timeout", "20", "cat", "pipe"]).start();
        let ran = pipe.run();
        reader.kill().and_then(|()| reader.wait()).unwrap();
        assert!(!ran.ok() && ran.stderr.contains("[HS0406]"), "pipe: {}", ran.brief());

        // The fat binary is a temporary file here; the path of the host object does not matter.
        let host = compile(&bench, clang, &scratch, &plan, &[driver, "-c", "-o", "/dev/null"]).run();
        assert!(host.ok() && host.ours().is_empty(), "-c to /dev/null: {}", host.brief());
    }
}

#[test]
fn a_token_without_the_interposer_stops_the_build() {
    let Some(bench) = Bench::ready("token without interposer") else { return };
    for clang in &bench.clangs {
        let drivers: &[&str] = if clang.version < 24 { &[LEGACY, NEW] } else { &[NEW] };
        for driver in drivers {
            let scratch = sources(&bench);
            let start = [vec![clang.program.clone()], token("0123456789abcdef"), clang.light()].concat();
            let line = [start, words(&["--offload-arch=gfx1030", driver, "-c", "a.hip", "-o", "out"])].concat();
            let ran = Call::new(&bench, &scratch.inside, &line).run();
            assert!(!ran.ok() && !scratch.has("out"), "{driver}: {}", ran.brief());
            let says = "unknown argument '--hotswap-plan=0123456789abcdef'";
            assert!(ran.stderr.contains(says), "{driver}: {}", ran.stderr);
        }
    }
}

#[test]
fn a_users_own_tool_directory_cannot_lose_the_plan_in_silence() {
    let Some(bench) = Bench::ready("user's -B") else { return };
    let (clang, drivers) = newest_with_both_drivers(&bench);
    for &driver in drivers {
        let scratch = sources(&bench);
        let directory = tools(&bench, clang, &scratch, &[]);
        let more = [driver, &format!("-B{directory}"), "-c", "-o", "out"];
        let ran = compile(&bench, clang, &scratch, &plan_words(PLAN, None), &more).run();
        if ran.ok() {
            let found = targets(&devices(&scratch.read("out")).unwrap());
            assert!(found.contains_key("gfx1031"), "{driver}: the plan was lost without a word: {found:?}");
        } else {
            let says = ran.stderr.contains("unknown argument '--hotswap-") || !ran.ours().is_empty();
            assert!(says && !scratch.has("out"), "{driver}: {}", ran.brief());
        }
    }
}

#[test]
fn hotswap_disable_gives_clangs_own_bytes() {
    let Some(bench) = Bench::ready("HOTSWAP_DISABLE") else { return };
    for clang in &bench.clangs {
        let scratch = sources(&bench);
        let line = |program: &str, plan: &[String], output: &str| {
            let end = words(&["--offload-arch=gfx1030", "-c", "a.hip", "-o", "a.o"]);
            let line = [vec![program.to_owned()], plan.to_vec(), clang.light(), end].concat();
            let call = Call::new(&bench, &scratch.inside, &line).env("HOTSWAP_CLANG", clang.program.clone());
            let ran = call.env("HOTSWAP_DISABLE", "1").run();
            assert!(ran.ok(), "{}", ran.brief());
            fs::rename(scratch.outside("a.o"), scratch.outside(output)).unwrap();
            scratch.read(output)
        };
        let plain = line(&clang.program, &[], "plain.o");
        let ours = line(&bench.installed("bin/hotswap-clang++"), &plan_words(PLAN, None), "ours.o");
        assert!(plain == ours, "clang {}: the objects differ", clang.version);
    }
}

/// A kernel with a megabyte of data, so that sizes matter.
const LARGE: &str = "#include \"hip.h\"\n__device__ int table[262144] = {1};\n\
    __global__ void look(int *p) { p[0] = table[p[1]]; }\n";

#[test]
fn a_full_disk_leaves_no_half_written_file() {
    let Some(bench) = Bench::ready("full disk") else { return };
    let (clang, _) = newest_with_both_drivers(&bench);
    let scratch = sources(&bench);
    scratch.write("a.hip", LARGE);
    let compiler = compile(
        &bench,
        clang,
        &scratch,
        &plan_words("gfx1030=>gfx1031,gfx1032", None),
        &["--offload-device-only", "-o", "full/out"],
    );
    // Room for the bundle that clang writes, not for the two further targets.
    let full = scratch.outside("full").display().to_string();
    fs::create_dir(&full).unwrap();
    let script = "full=$1; shift; mount -t tmpfs -o size=1536k none \"$full\" || exit 77; \
        \"$@\"; code=$?; ls -A \"$full\" >\"$full.left\"; exit $code";
    let outer = ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh", &full];
    let ran = compiler.outside_of(&outer).run();
    if ran.code == Some(77) || ran.stderr.starts_with("unshare:") {
        skip("full disk", &format!("no file system can be mounted here: {}", ran.brief()));
        return;
    }
    let left = String::from_utf8(scratch.read("full.left")).unwrap();
    let line = refused("full disk", &ran, &scratch, "HS0502", "full/out");
    assert!(line.contains("No space left"), "{line}");
    assert_eq!((left.as_str(), ran.code), ("", Some(14)), "{line}");
}

/// A file in this directory that a process of the group is writing and that has content already. It is opened again, so that
/// its size can be read after its writer is gone: an unnamed file has no other way to it.
fn half_written(group: u32, directory: &str) -> Option<File> {
    let processes = fs::read_dir("/proc").ok()?.flatten().map(|entry| entry.path());
    processes.filter(|process| group_of(process) == Some(group)).find_map(|process| {
        let open = fs::read_dir(process.join("fd")).ok()?.flatten();
        open.filter(|entry| is_written(&process, &entry.file_name(), directory))
            .filter_map(|entry| File::open(entry.path()).ok())
            .find(|file| file.metadata().is_ok_and(|meta| meta.is_file() && meta.len() > 0))
    })
}

/// The process group of a directory of /proc.
fn group_of(process: &Path) -> Option<u32> {
    let stat = fs::read_to_string(process.join("stat")).ok()?;
    stat.rsplit(')').next()?.split_whitespace().nth(2)?.parse().ok()
}

/// Whether an open file is in that directory, and open for writing.
fn is_written(process: &Path, number: &OsStr, directory: &str) -> bool {
    let link = fs::read_link(process.join("fd").join(number)).unwrap_or_default();
    let info = fs::read_to_string(process.join("fdinfo").join(number)).unwrap_or_default();
    let flags = info.lines().find_map(|line| u32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    link.to_string_lossy().contains(directory) && flags.is_some_and(|flags| flags & 3 != 0)
}

/// HotSwap's part of a build is killed while it writes, which the test sees: the file that it was writing is shorter than the
/// whole.
#[test]
fn kill_9_in_the_middle_of_a_write_leaves_the_file_from_before() {
    const WANTED: usize = 3;
    let Some(bench) = Bench::ready("kill -9") else { return };
    let (clang, _) = newest_with_both_drivers(&bench);
    let scratch = sources(&bench);
    scratch.write("a.hip", LARGE.replace("262144", "4194304"));
    let plan = plan_words("gfx1030=>gfx1031,gfx1032,gfx1033,gfx1034,gfx1035,gfx1036", None);
    let build = |directory: Option<&str>, output: &str| {
        let more = [LEGACY, "-fuse-cuid=none", "--offload-device-only", "-o", output];
        let call = compile(&bench, clang, &scratch, &plan, &more);
        directory.map(|directory| call.clone().env("HOTSWAP_LLVM_BIN", directory)).unwrap_or(call)
    };
    let whole = build(None, "whole").run();
    assert!(whole.ok(), "{}", whole.brief());
    let size = scratch.read("whole").len() as u64;
    // Clang's bundle appears as a whole at a known moment: from then on every byte is written by HotSwap.
    let bundler = format!("{FIND_OUTPUT}\nREAL \"$@\" || exit\ntouch {}", scratch.inside("bundled"));
    let directory = tools(&bench, clang, &scratch, &[("clang-offload-bundler", &bundler)]);
    let mine = scratch.inside.file_name().unwrap().to_string_lossy().into_owned();
    let (mut cut, mut others) = (Vec::new(), Vec::new());
    while cut.len() < WANTED && others.len() < 20 {
        fs::remove_file(scratch.outside("out")).ok();
        fs::remove_file(scratch.outside("bundled")).ok();
        let mut child = build(Some(&directory), "out").start();
        let is_running = |child: &mut std::process::Child| child.try_wait().unwrap().is_none();
        while !scratch.has("bundled") && is_running(&mut child) {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        assert!(scratch.has("bundled"), "the build never came to the bundle");
        let mut seen = None;
        while seen.is_none() && is_running(&mut child) {
            seen = half_written(child.id(), &mine);
        }
        hotswap_tests::kill_group(child.id());
        child.wait().unwrap();
        let found = devices(&scratch.read("out")).expect("the file is whole").len();
        match seen.map(|file| file.metadata().unwrap().len()).filter(|length| *length < size) {
            Some(length) => {
                assert_eq!(found, 1, "killed after {length} of {size} bytes");
                cut.push(length);
            }
            None => {
                assert!([1, 7].contains(&found), "{found} code objects");
                others.push(found);
            }
        }
    }
    assert!(cut.len() >= WANTED, "only {} of {} kills hit a write", cut.len(), cut.len() + others.len());
    let again = build(None, "out").run();
    assert!(again.ok(), "{}", again.brief());
    let same = devices(&scratch.read("out")).unwrap() == devices(&scratch.read("whole")).unwrap();
    assert!(same, "the build after a kill differs from one that was never killed");
    let ours: Vec<_> =
        scratch.names(".").into_iter().filter(|name| name.contains("hotswap") || name.starts_with('.')).collect();
    assert_eq!(ours, [""; 0], "temporary files stay after the next run");
    say(&format!("kill -9: {cut:?} of {size} bytes were written; {} kills came before or after", others.len()));
}
