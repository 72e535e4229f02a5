//! How the wrapper starts the compiler: arguments, environment, streams, exit codes, signals.
//!
//! The "compiler" is a shell script that reports how it was called, so these tests need none.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use tempfile::TempDir;

/// Prints its arguments, one a line, and the variables that matter.
const REPORT: &str =
    "printf '%s\\n' \"$@\"; echo \"CP=${COMPILER_PATH-unset}\"; echo \"T=${HOTSWAP_PLAN_TOKEN-unset}\"";

struct WrapperPrefix {
    dir: TempDir,
}

impl WrapperPrefix {
    /// A prefix with the wrapper under both names, and a compiler that runs `script`.
    fn new(script: &str) -> Self {
        let bench = Self { dir: tempfile::tempdir().unwrap() };
        for directory in ["P/bin", "P/libexec/hotswap", "P/lib/hotswap", "real dir", "bin", "home", "run", "T"] {
            fs::create_dir_all(bench.at(directory)).unwrap();
        }
        // Not a link: the wrapper finds its prefix by its own resolved path.
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_hotswap-clang")).arg(bench.at("P/bin/hotswap-clang")).status();
        assert!(copied.unwrap().success());
        symlink("hotswap-clang", bench.at("P/bin/hotswap-clang++")).unwrap();
        fs::write(bench.at("P/lib/hotswap/libhotswap_registry.a"), hotswap_families::archive::REGISTRY_ARCHIVE)
            .unwrap();
        bench.program("P/libexec/hotswap/lld", "exit 99");
        bench.program("real dir/lld", "exit 98");
        bench.program("real dir/clang", script);
        bench.program("real dir/clang++", script);
        bench
    }

    fn at(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// A separate process writes the file: a test that starts a program at this moment would inherit our open file, and
    /// the system runs no program that is open for writing.
    fn program(&self, name: &str, script: &str) {
        let write = "printf '#!/bin/sh\\n%s\\n' \"$1\" >\"$2\" && chmod 755 \"$2\"";
        let status = Command::new("sh").args(["-c", write, "sh", script]).arg(self.at(name)).status();
        assert!(status.unwrap().success());
    }

    fn command<S: AsRef<OsStr>>(&self, words: impl IntoIterator<Item = S>) -> Command {
        let mut command = Command::new(self.at("P/bin/hotswap-clang++"));
        command.args(words).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.at("home"));
        command
            .env("HOTSWAP_CLANG", self.at("real dir/clang++"))
            .env("TMPDIR", self.at("T"))
            .current_dir(self.at("run"));
        command
    }
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn words_reach_the_compiler_as_they_are() {
    let bench = WrapperPrefix::new(REPORT);
    fs::write(bench.at("run/rsp"), "-c 'a b.cpp'").unwrap();
    let words = ["-c", "a b.cpp", "", "@rsp", "@absent", "-D'x'", "--", "-", "-Wl,--x", "ü"];
    let output = bench.command(words).env("COMPILER_PATH", "/x").output().unwrap();
    assert_eq!(out(&output), format!("{}\nCP=/x\nT=unset\n", words.join("\n")));
    assert_eq!(err(&output), "");
    let raw = [OsString::from("-c"), std::os::unix::ffi::OsStringExt::from_vec(b"\xff.c".to_vec())];
    let output = bench.command(raw).output().unwrap();
    assert_eq!(output.stdout, b"-c\n\xff.c\nCP=unset\nT=unset\n");
}

#[test]
fn exit_codes_and_signals_are_the_compilers() {
    for code in [0, 1, 42, 254] {
        let bench = WrapperPrefix::new(&format!("exit {code}"));
        assert_eq!(bench.command(["-c", "a.c"]).status().unwrap().code(), Some(code));
    }
    let bench = WrapperPrefix::new("kill -SEGV $$");
    assert_eq!(bench.command(["-c", "a.c"]).status().unwrap().signal(), Some(11));
}

#[test]
fn a_signal_to_the_wrapper_reaches_the_compiler() {
    let bench = WrapperPrefix::new("echo started; exec sleep 60");
    let mut child = bench.command(["-c", "a.c"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = [0; 8];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut line).unwrap();
    rustix::process::kill_process(rustix::process::Pid::from_child(&child), rustix::process::Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
}

#[test]
fn standard_input_and_open_descriptors_stay() {
    let bench = WrapperPrefix::new("cat; cat <&7");
    let mut shell = Command::new("sh");
    shell.arg("-c").arg("exec \"$0\" -x c - 7<jobs").arg(bench.at("P/bin/hotswap-clang++"));
    fs::write(bench.at("run/jobs"), "token").unwrap();
    shell.env("HOTSWAP_CLANG", bench.at("real dir/clang++")).current_dir(bench.at("run"));
    let mut child = shell.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"int x;").unwrap();
    assert_eq!(out(&child.wait_with_output().unwrap()), "int x;token");
}

#[test]
fn long_command_lines_pass() {
    let bench = WrapperPrefix::new("echo $#");
    let words: Vec<String> = (0..20_000).map(|n| format!("-Isome/rather/deep/directory/number/{n}")).collect();
    assert!(words.iter().map(String::len).sum::<usize>() > 4 * 128 * 1024);
    assert_eq!(out(&bench.command(&words).output().unwrap()), "20000\n");
}

#[test]
fn words_that_no_longer_fit_go_through_a_file_in_memory() {
    let bench = WrapperPrefix::new("echo $#; case $1 in @*) tail -n 1 \"${1#@}\";; esac");
    let pairs = "-Xoffload-linker --hotswap-retarget=gfx1030=>gfx1031 --offload-arch=gfx1030 -c a.hip";
    let start: Vec<String> = pairs.split(' ').map(str::to_owned).collect();
    let (mut few, mut many) = (0_usize, 8 << 20);
    let with = |bytes: usize| {
        let fill = std::iter::repeat_n("D".repeat(100_000), bytes / 100_000);
        let rest = ["D".repeat(bytes % 100_000), "last.o".to_owned()];
        bench.command(start.iter().cloned().chain(fill).chain(rest)).output()
    };
    // The longest command line with which the wrapper itself can still be started.
    while many - few > 1 {
        let middle = usize::midpoint(few, many);
        if with(middle).is_ok() { few = middle } else { many = middle }
    }
    let output = with(few).unwrap();
    assert_eq!(out(&output), "1\n\"last.o\"\n", "{}", err(&output));
}

#[test]
fn a_plan_is_handed_on_in_words_and_environment() {
    let bench = WrapperPrefix::new(REPORT);
    let words = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031", "--offload-arch=gfx1030", "a.hip"];
    // This clang cannot preprocess a source.
    let output = bench.command(words).env("COMPILER_PATH", "/x").env("HOTSWAP_NAMES", "derive").output().unwrap();
    let text = out(&output);
    let lines: Vec<_> = text.lines().collect();
    let token = lines[2].strip_prefix("--hotswap-plan=").unwrap();
    let object = lines[5];
    assert_eq!(lines[..2], ["--start-no-unused-arguments", "-Xoffload-linker"]);
    assert_eq!(lines[3..5], ["--end-no-unused-arguments", "-Xlinker"]);
    // By name: clang hashes all arguments into the numbers of units, and a path would make other bytes for each user.
    assert_eq!(object, format!("-l:{token}.manifest.o"));
    assert_eq!(lines[6..8], ["-Xlinker", "-l:libhotswap_registry.a"]);
    // The token has replaced the arguments that named the plan.
    assert_eq!(lines[8..10], words[2..]);
    let shims = bench.at("P/libexec/hotswap");
    assert_eq!(lines[10..], [format!("CP={}:/x", shims.display()), format!("T={token}")]);
    let manifest = bench.at(&format!("home/.cache/hotswap/manifests/elf-x86_64/{token}.manifest.o"));
    assert!(fs::metadata(manifest).unwrap().len() > 0);
}

const LINK_WITH_PLAN: [&str; 4] = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031", "--hip-link", "a.o"];

/// The directories in which the host linker searches are in a variable, after those of the user.
#[test]
fn the_manifest_is_found_by_the_library_path() {
    let bench = WrapperPrefix::new("echo \"$LIBRARY_PATH\"");
    let own = ["home/.cache/hotswap/manifests/elf-x86_64", "P/lib/hotswap"];
    let own = own.map(|name| bench.at(name).display().to_string()).join(":");
    for (old, expected) in [(None, own.clone()), (Some(""), own.clone()), (Some("/x:"), format!("/x::{own}"))] {
        let mut command = bench.command(LINK_WITH_PLAN);
        command.env_remove("LIBRARY_PATH").envs(old.map(|old| ("LIBRARY_PATH", old)));
        assert_eq!(out(&command.output().unwrap()).trim_end(), expected);
    }
    // A cross link takes paths: clang does not pass the variable on.
    let bench = WrapperPrefix::new("printf '%s\\n' \"$@\" \"L=$LIBRARY_PATH\"");
    let cross = ["--target=aarch64-linux-gnu"].into_iter().chain(LINK_WITH_PLAN);
    let text = out(&bench.command(cross).env_remove("LIBRARY_PATH").output().unwrap());
    assert!(text.contains("/elf-aarch64/") && text.ends_with("L=\n"), "{text}");
}

/// No argument has a path of the user's, whatever these paths are: clang hashes the arguments into the program.
#[test]
fn the_words_of_a_link_have_no_path_of_the_user() {
    let bench = WrapperPrefix::new("printf '%s\\n' \"$@\"; echo \"L=$LIBRARY_PATH\" >&2");
    for directory in ["home:1", "T:1", "home:1/.cache"] {
        fs::create_dir(bench.at(directory)).unwrap();
    }
    let text = out(&bench.command(LINK_WITH_PLAN).output().unwrap());
    for (name, value) in [("HOME", "home:1"), ("TMPDIR", "T:1"), ("XDG_CACHE_HOME", "home:1/.cache")] {
        let output = bench.command(LINK_WITH_PLAN).env(name, bench.at(value)).output().unwrap();
        assert_eq!(out(&output), text, "{name}: {}", err(&output));
    }
    // Then the system's directories for temporary files are the only ones without a colon.
    let mut command = bench.command(LINK_WITH_PLAN);
    let output = command.env("HOME", bench.at("home:1")).env("TMPDIR", bench.at("T:1")).output().unwrap();
    assert_eq!(out(&output), text, "{}", err(&output));
    let expected = format!("L=/tmp/hotswap-{}", rustix::process::geteuid().as_raw());
    assert!(err(&output).starts_with(&expected), "{}", err(&output));
    // The processor's own system by its name.
    let native = format!("--target={}-unknown-linux-gnu", std::env::consts::ARCH);
    let words: Vec<&str> = [native.as_str()].into_iter().chain(LINK_WITH_PLAN).collect();
    let named = out(&bench.command(&words).output().unwrap());
    assert!(named.contains("\n-l:") && !named.contains("/manifests/"), "{named}");
}

/// A full disk of the cache costs nothing but the next directory.
#[test]
fn a_manifest_that_cannot_be_written_is_put_elsewhere() {
    let bench = WrapperPrefix::new("echo \"$LIBRARY_PATH\"");
    fs::create_dir(bench.at("tmp")).unwrap();
    let words = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031", "--hip-link", "a.o"];
    let cache = bench.at("home/.cache/hotswap/manifests");
    fs::create_dir_all(&cache).unwrap();
    // A file in the place of the directory below: as with a full disk, it cannot be made.
    fs::write(cache.join("elf-x86_64"), "").unwrap();
    let output = bench.command(words).env("TMPDIR", bench.at("tmp")).output().unwrap();
    assert!(output.status.success(), "{}", err(&output));
    assert!(out(&output).starts_with(bench.at("tmp").to_str().unwrap()), "{}", out(&output));
}

/// A user may empty the cache while a build runs: the link has its manifest then, too. What fails for another reason runs once.
#[test]
fn a_manifest_that_is_deleted_during_the_link_is_made_again() {
    let find = "echo run >> runs; for d in $(echo $LIBRARY_PATH | tr : ' '); do cat $d/*.manifest.o && exit 7; done";
    let script = |removal: &str| format!("{removal}; {find} >/dev/null 2>&1; exit 1");
    for (removal, code, runs) in [
        // `D` is there in the first run alone.
        ("rmdir D 2>/dev/null && rm -r ../home/.cache", 7, 2),
        ("rmdir D 2>/dev/null", 7, 1),
        // Deleted in each run: the second one's code is the end.
        ("rm -r ../home/.cache", 1, 2),
    ] {
        let bench = WrapperPrefix::new(&script(removal));
        fs::create_dir(bench.at("run/D")).unwrap();
        let output = bench.command(LINK_WITH_PLAN).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{removal}: {}", err(&output));
        assert_eq!(fs::read_to_string(bench.at("run/runs")).unwrap().lines().count(), runs, "{removal}");
        let told = err(&output).contains("was deleted while clang ran, whose link reads it; clang runs again");
        assert_eq!(told, runs == 2, "{removal}: {}", err(&output));
    }
}

#[test]
fn switched_off_the_words_are_those_without_ours_also_in_response_files() {
    let bench =
        WrapperPrefix::new("for w; do case $w in @*) echo listed; cat \"${w#@}\";; *) echo \"$w\";; esac; done");
    fs::write(bench.at("run/ours"), "--offload-arch=gfx1030 -Xoffload-linker --hotswap-plan=00 'a b.hip'").unwrap();
    fs::write(bench.at("run/others"), "-O2\n").unwrap();
    let words = ["--start-no-unused-arguments", "-Xoffload-linker", "--hotswap-plan=00", "--end-no-unused-arguments"];
    let words = words.iter().chain(&["-c", "@ours", "@others"]);
    let output = bench.command(words).env("HOTSWAP_DISABLE", "1").output().unwrap();
    assert_eq!(out(&output), "-c\nlisted\n\"--offload-arch=gfx1030\"\n\"a b.hip\"\nlisted\n-O2\n");
}

#[test]
fn a_cache_directory_that_cannot_be_written_is_replaced_by_a_private_one() {
    let bench = WrapperPrefix::new("echo \"$LIBRARY_PATH\"");
    fs::write(bench.at("file"), "").unwrap();
    fs::create_dir(bench.at("tmp")).unwrap();
    let words = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031", "--hip-link", "a.o"];
    let mut command = bench.command(words);
    command.env("XDG_CACHE_HOME", bench.at("file")).env("TMPDIR", bench.at("tmp"));
    let text = out(&command.output().unwrap());
    let object = text.split(':').next().unwrap();
    assert!(Path::new(object).starts_with(bench.at("tmp")), "{object}");
    // A directory under that name that others can write to is not used: the next name is.
    let directory = fs::read_dir(bench.at("tmp")).unwrap().next().unwrap().unwrap().path();
    fs::set_permissions(&directory, fs::Permissions::from_mode(0o777)).unwrap();
    let text = out(&command.output().unwrap());
    let object = text.split(':').next().unwrap();
    assert!(Path::new(object).starts_with(bench.at("tmp")) && !Path::new(object).starts_with(&directory), "{object}");
    // Where others can rename every created directory, none is used.
    fs::set_permissions(bench.at("tmp"), fs::Permissions::from_mode(0o777)).unwrap();
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(14));
    assert!(err(&output).contains("[HS0502]"), "{}", err(&output));
}

#[test]
fn a_misspelt_variable_is_named_where_a_plan_could_have_been_meant() {
    let bench = WrapperPrefix::new("exit 0");
    let said = |words: &[&str], setting: (&str, &str)| {
        err(&bench
            .command(words)
            .env("HOTSWAP_RETRAGET", "gfx1030=>gfx1031")
            .env(setting.0, setting.1)
            .output()
            .unwrap())
    };
    let none = ("X", "");
    let warning = "hotswap-clang: warning: [HS0109] an environment variable is not known to HotSwap and has no effect: \
                   HOTSWAP_RETRAGET; did you mean `HOTSWAP_RETARGET`?\n";
    for words in [&["-c", "a.hip"][..], &["--hip-link", "a.o"], &["--offload-arch=gfx1030", "a.hip"], &LINK] {
        assert_eq!(said(words, none), warning, "{words:?}");
    }
    // Probes of compilers, and commands that no plan would concern.
    for words in [&["-c", "a.c"][..], &["--version"], &["-E", "a.hip"], &["a.o"], &["-print-search-dirs"], &["-v"]] {
        assert_eq!(said(words, none), "", "{words:?}");
    }
    assert_eq!(said(&["-c", "a.hip"], ("HOTSWAP_DISABLE", "1")), "");
    // The wrapper above this one has said it.
    assert_eq!(said(&["-c", "a.hip"], ("HOTSWAP_ACTIVE", "1")), "");
    let hermetic = bench.command(["-c", "a.hip"]).env("HOTSWAP_HERMETIC", "1").env("HOTSWAP_RETRAGET", "x").output();
    assert!(err(&hermetic.unwrap()).contains("error: [HS0104]"));
}

#[test]
fn a_compiler_that_is_no_clang_is_named_as_such() {
    let bench = WrapperPrefix::new(REPORT);
    // GNU's compiler answers the same question, and has no lld beside it.
    bench.program(
        "bin/g++-x",
        "case $1 in -dM) echo '#define __GNUC__ 14';; -dumpversion) echo 14;; *) echo ld.lld;; esac",
    );
    let run = |program: &str| bench.command(LINK).env("HOTSWAP_CLANG", bench.at(program)).output().unwrap();
    let output = run("bin/g++-x");
    assert_eq!(output.status.code(), Some(10));
    let line = err(&output);
    assert!(line.contains("[HS0101]") && line.contains("g++-x") && line.contains("is not clang"), "{line}");
    assert!(line.contains("set HOTSWAP_CLANG to the real clang++"), "{line}");
    // Nor does a linker beside it make it one.
    bench.program("bin/lld", "exit 1");
    assert_eq!(err(&run("bin/g++-x")), line);
}

const LINK: [&str; 4] = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031", "--hip-link", "a.o"];

#[test]
fn a_refused_cache_is_told_once_for_each_reason() {
    let bench = WrapperPrefix::new("exit 0");
    for directory in ["cache", "cache/hotswap", "tmp"] {
        fs::create_dir(bench.at(directory)).unwrap();
    }
    let run = || {
        let mut command = bench.command(LINK);
        command.env("XDG_CACHE_HOME", bench.at("cache")).env("TMPDIR", bench.at("tmp")).stderr(Stdio::piped());
        command
    };
    let told = |outputs: &[Output]| outputs.iter().filter(|output| err(output).contains("[HS0504]")).count();
    assert_eq!(err(&run().output().unwrap()), "");
    for mode in [0o777, 0o775] {
        fs::set_permissions(bench.at("cache/hotswap"), fs::Permissions::from_mode(mode)).unwrap();
        let running: Vec<_> = (0..12).map(|_| run().spawn().unwrap()).collect();
        let outputs: Vec<_> = running.into_iter().map(|child| child.wait_with_output().unwrap()).collect();
        assert!(outputs.iter().all(|output| output.status.success()));
        assert_eq!(told(&outputs), 1, "{mode:o}: {}", err(&outputs[0]));
        let said = outputs.iter().map(err).collect::<String>();
        assert!(said.contains(&format!("cache/hotswap can be written by others (mode {mode:o})")), "{said}");
        assert_eq!(told(&[run().output().unwrap()]), 0);
    }
    // No warning where the cache is not needed.
    fs::set_permissions(bench.at("cache/hotswap"), fs::Permissions::from_mode(0o757)).unwrap();
    let mut plain = bench.command(["-c", "a.c"]);
    let plain = plain.env("XDG_CACHE_HOME", bench.at("cache")).env("TMPDIR", bench.at("tmp")).output().unwrap();
    assert_eq!(err(&plain), "");
}

/// A compiler without a linker beside it, which reports the linker's path.
const ASKED: &str = "case $1 in -print-prog-name=*) echo \"$HERE/good/lld\";; -dM) echo '#define __clang_major__ 23';; *) echo \"L=$HOTSWAP_LLVM_BIN\";; esac";

#[test]
fn what_another_user_put_into_the_cache_starts_nothing() {
    const NOBODY: u32 = 65534;
    let bench = WrapperPrefix::new(ASKED);
    fs::remove_file(bench.at("real dir/lld")).unwrap();
    for directory in ["good", "evil", "cache", "tmp"] {
        fs::create_dir(bench.at(directory)).unwrap();
    }
    bench.program("good/lld", "exit 0");
    bench.program("evil/lld", "exit 0");
    let run = || {
        let mut command = bench.command(LINK);
        command.env("XDG_CACHE_HOME", bench.at("cache")).env("TMPDIR", bench.at("tmp")).env("HERE", bench.dir.path());
        command.output().unwrap()
    };
    let from = |directory: &str| format!("L={}\n", fs::canonicalize(bench.at(directory)).unwrap().display());
    assert_eq!(out(&run()), from("good"));
    // The cached answer, changed: the file's name and form are no secret.
    let kept = fs::read_dir(bench.at("cache/hotswap/toolchains")).unwrap().next().unwrap().unwrap().path();
    let text = fs::read_to_string(&kept).unwrap().replace("/good", "/evil");
    fs::write(&kept, text).unwrap();
    assert_eq!(out(&run()), from("evil"), "the user's own cache is believed");
    if std::os::unix::fs::chown(bench.at("cache"), Some(NOBODY), None).is_err() {
        hotswap_userland::skip("the cache of another user", "only root can be two users");
        return;
    }
    let output = run();
    assert_eq!(out(&output), from("good"));
    assert!(err(&output).contains("[HS0504]") && err(&output).contains("belongs to user 65534"), "{}", err(&output));
    assert_eq!(err(&run()), "", "it is said once");
}

/// Containers whose filter is older than `clone3`, for which the C library does not fall back.
#[allow(unsafe_code, reason = "what runs between fork and exec can only be given by an unsafe function")]
fn without_clone3(command: &mut Command) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter};
    use std::os::unix::process::CommandExt;
    let machine = std::env::consts::ARCH.try_into().unwrap();
    let rules = [(435, Vec::new())].into_iter().collect();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Errno(1), machine).unwrap();
    let filter: BpfProgram = filter.try_into().unwrap();
    // SAFETY: two system calls; the filter was made before, and no memory is allocated where they succeed.
    unsafe { command.pre_exec(move || seccompiler::apply_filter(&filter).map_err(std::io::Error::other)) };
}

#[test]
fn without_threads_and_children_the_source_is_unread_and_nothing_panics() {
    let bench = WrapperPrefix::new(REPORT);
    fs::write(bench.at("run/a.hip"), "").unwrap();
    let words = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031", "--offload-arch=gfx1030", "-c", "a.hip"];
    for (names, code) in [("derive", 0), ("error", 14), ("compile", 14)] {
        let mut command = bench.command(words);
        command.env("HOTSWAP_NAMES", names);
        without_clone3(&mut command);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{names}: {}", err(&output));
        assert!(!err(&output).contains("HS0002"), "{names}: {}", err(&output));
    }
}

/// A preprocessor with the same text for each GPU. Where the names of GPUs are poisoned it fails, so that texts are
/// compared.
const PREPROCESSOR: &str = "for w; do case $w in --offload-arch=*) id=${w#*=};; esac; done; \
                            case $* in *-dM*) echo \"#define __${id}__ 1\";; *' -P '*) exit 1;; *' -E '*) echo 'int x;';; *) echo compiled;; esac";

/// A thread whose stack finds no memory cannot be created; children can.
#[test]
fn without_threads_the_source_is_asked_all_the_same() {
    let bench = WrapperPrefix::new(PREPROCESSOR);
    fs::write(bench.at("run/a.hip"), "").unwrap();
    let words = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031", "--offload-arch=gfx1030"];
    for stack in ["2000000", "1125899906842624"] {
        let mut command = bench.command(words.iter().chain(&["-c", "a.hip"]));
        let output = command.env("HOTSWAP_NAMES", "error").env("RUST_MIN_STACK", stack).output().unwrap();
        assert_eq!(
            (output.status.code(), out(&output)),
            (Some(0), "compiled\n".to_owned()),
            "{stack}: {}",
            err(&output)
        );
    }
}

#[test]
fn a_full_standard_error_fails_no_build() {
    let bench = WrapperPrefix::new("exit 3");
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = bench.command(["-c", "a.c"]);
    assert_eq!(command.env("HOTSWAP_VERBOSE", "1").stderr(full()).status().unwrap().code(), Some(3));
    let mut command = bench.command(["-c", "a.c"]);
    assert_eq!(command.env("HOTSWAP_CLANG", "/nonexistent").stderr(full()).status().unwrap().code(), Some(10));
}

#[test]
fn commands_of_one_build_share_a_manifest_at_the_same_time() {
    let bench = WrapperPrefix::new(
        "for w; do case $w in *.manifest.o) [ -s \"${LIBRARY_PATH%%:*}/${w#-l:}\" ] || exit 1;; esac; done",
    );
    let words = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031", "--hip-link", "a.o"];
    for _ in 0..5 {
        let children: Vec<_> = (0..12).map(|_| bench.command(words).spawn().unwrap()).collect();
        assert!(children.into_iter().all(|mut child| child.wait().unwrap().success()));
        let directory =
            fs::read_dir(bench.at("home/.cache/hotswap/manifests")).unwrap().next().unwrap().unwrap().path();
        let files: Vec<_> = fs::read_dir(&directory).unwrap().map(|file| file.unwrap().path()).collect();
        assert_eq!(files.len(), 1, "{files:?}");
        fs::remove_file(&files[0]).unwrap();
    }
}

#[test]
fn errors_are_one_line_with_a_code_and_its_exit_code() {
    let bench = WrapperPrefix::new(REPORT);
    let retarget = |value: &str| vec!["-Xoffload-linker".to_owned(), format!("--hotswap-retarget={value}")];
    let hip = |mut words: Vec<String>| {
        words.extend(["--offload-arch=gfx1030", "-c", "a.hip"].map(str::to_owned));
        words
    };
    let own = bench.at("P/bin/hotswap-clang");
    for (words, name, value, code, exit) in [
        (vec![], "HOTSWAP_CLANG", OsStr::new("/nonexistent/clang++"), "HS0101", 10),
        (vec![], "HOTSWAP_CLANG", own.as_os_str(), "HS0103", 10),
        (vec![], "HOTSWAP_CONFIG", OsStr::new("/nonexistent/config.toml"), "HS0104", 10),
        (vec![], "HOTSWAP_DISABLE", OsStr::new("perhaps"), "HS0104", 10),
        (hip(retarget("gfx1030")), "X", OsStr::new(""), "HS0201", 11),
        (hip(retarget("gfx1030=>gfx1031")), "HOTSWAP_LLVM_BIN", OsStr::new("/nonexistent"), "HS0102", 10),
        (retarget("x")[1..].to_vec(), "X", OsStr::new(""), "HS0001", 2),
    ] {
        let output = bench.command(&words).env(name, value).output().unwrap();
        let text = err(&output);
        assert!(text.starts_with(&format!("hotswap-clang: error: [{code}] ")), "{words:?}: {text}");
        assert_eq!((text.lines().count(), output.status.code()), (1, Some(exit)), "{text}");
        assert_eq!(out(&output), "");
    }
}

#[test]
fn a_plan_without_the_installation_is_told() {
    let words = ["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031", "--hip-link", "a.o"];
    for part in ["P/libexec/hotswap/lld", "P/lib/hotswap/libhotswap_registry.a"] {
        let bench = WrapperPrefix::new(REPORT);
        fs::remove_file(bench.at(part)).unwrap();
        let output = bench.command(words).output().unwrap();
        assert!(err(&output).contains("[HS0105]"), "{}", err(&output));
        // Without a plan none of it is needed.
        assert!(bench.command(["--hip-link", "a.o"]).output().unwrap().status.success());
    }
}

#[test]
fn a_loop_through_a_script_ends() {
    let bench = WrapperPrefix::new("exit 0");
    let wrapper = bench.at("P/bin/hotswap-clang++");
    for script in [format!("exec {} \"$@\"", wrapper.display()), format!("{} \"$@\"", wrapper.display())] {
        bench.program("real dir/clang++", &script);
        let output = bench.command(["-c", "a.c"]).output().unwrap();
        assert_eq!(output.status.code(), Some(10));
        assert!(err(&output).contains("[HS0103]"), "{}", err(&output));
    }
}

#[test]
fn the_wrapper_skips_itself_on_the_path() {
    let bench = WrapperPrefix::new("echo real");
    symlink(bench.at("P/bin/hotswap-clang"), bench.at("run/clang++")).unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", bench.at("run").display(), bench.at("real dir").display());
    let mut command = without_rocm(&bench.at("run/clang++"));
    command.env("PATH", path).env("HOTSWAP_CLANG", "").env_remove("ROCM_PATH");
    assert_eq!(out(&command.output().unwrap()), "real\n");
}

/// A command that sees no compiler in /opt/rocm, which precedes `PATH`: where there is one, an empty directory hides it, for
/// this command alone.
fn without_rocm(program: &Path) -> Command {
    if !Path::new("/opt/rocm/llvm/bin/clang++").exists() {
        return Command::new(program);
    }
    let root = rustix::process::geteuid().is_root();
    let mut command = Command::new("/usr/bin/unshare");
    command.args((!root).then_some("--map-root-user"));
    command.args(["--mount", "/bin/sh", "-c", "/bin/mount -t tmpfs none /opt/rocm && exec \"$0\""]).arg(program);
    command
}

#[test]
fn the_user_file_wins_over_the_prefix_file() {
    let bench = WrapperPrefix::new("echo real");
    for (file, clang) in [("home/.config/hotswap", "user"), ("P/etc/hotswap", "prefix")] {
        bench.program(&format!("run/clang++-{clang}"), &format!("echo {clang}"));
        fs::create_dir_all(bench.at(file)).unwrap();
        let text = format!("clang = '{}'\n", bench.at(&format!("run/clang++-{clang}")).display());
        fs::write(bench.at(file).join("config.toml"), text).unwrap();
    }
    let mut command = bench.command(["-c", "a.c"]);
    command.env_remove("HOTSWAP_CLANG");
    assert_eq!(out(&command.output().unwrap()), "user\n");
    assert_eq!(out(&command.env("HOTSWAP_CONFIG", "").output().unwrap()), "prefix\n");
}

#[test]
fn explain_names_each_settings_origin_and_runs_nothing() {
    let bench = WrapperPrefix::new("echo ran");
    let words = ["--hotswap-explain=json", "--offload-arch=gfx1030", "a.hip"];
    let mut command = bench.command(words);
    command.env("HOTSWAP_RETARGET", "gfx1030=>gfx1031");
    let value: serde_json::Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
    assert_eq!(value["settings"][0]["from"], "environment HOTSWAP_RETARGET");
    assert_eq!(value["plan"]["from"], "environment or configuration");
    assert_eq!(value["words"].as_array().unwrap().len(), 10);
    // Explaining does not write the file.
    let mut added = value["added_words"].as_array().unwrap().iter().filter_map(|word| word.as_str());
    assert!(added.any(|word| word.ends_with(".manifest.o")));
    assert!(!bench.at("home/.cache/hotswap/manifests/elf-x86_64").exists());
}

#[test]
fn verbose_prints_the_line_that_a_shell_can_run() {
    let bench = WrapperPrefix::new("printf '%s|' \"$@\"");
    let output = bench.command(["-c", "a b.c", "$x"]).env("HOTSWAP_VERBOSE", "1").output().unwrap();
    let line = err(&output);
    let line = line.strip_prefix("hotswap-clang: run: ").unwrap();
    let again = Command::new("sh").arg("-c").arg(line).output().unwrap();
    assert_eq!(out(&again), out(&output));
    assert_eq!(out(&again), "-c|a b.c|$x|");
}
