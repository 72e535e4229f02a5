//! The commands that fail on purpose, their files, and the judgement of a run.
//!
//! A run is right if its result is that of a run without a fault, or if it ends with an exit code other than 0, names the system's
//! reason, and leaves every file as it was or as it is to become.
#![allow(dead_code, reason = "each test uses some of it")]

use crate::made;
use hotswap_bundle::Compression;
use hotswap_faults::{Effect, Fault};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

mod packages;
mod toolchain;

pub(crate) const MANIFEST: &str = "served/hotswap-manifest.json";
/// The complete new content of `x` while it is written in place.
pub(crate) const CONTENT: &str = ".x.hotswap-content";
/// Commands of one fixture, each after the preparation by others.
pub(crate) const COMMANDS: &[ExamCommand<'static>] = &[
    ExamCommand { name: "list", prepare: &[], words: "list x" },
    ExamCommand { name: "list of a package", prepare: &[], words: "list p.tar.gz" },
    ExamCommand { name: "inspect", prepare: &[], words: "inspect x" },
    ExamCommand { name: "verify", prepare: &[], words: "verify x y" },
    ExamCommand { name: "uses", prepare: &[], words: "uses x --gpu gfx1030" },
    ExamCommand { name: "extract", prepare: &[], words: "extract x --output-dir parts" },
    ExamCommand { name: "disasm", prepare: &[], words: "disasm y" },
    ExamCommand { name: "symbols", prepare: &[], words: "symbols y --write -o y" },
    ExamCommand { name: "lint", prepare: &[], words: "lint y" },
    ExamCommand { name: "size", prepare: &[], words: "size y" },
    ExamCommand { name: "bundle", prepare: &[], words: "bundle z --entry gfx1030=y" },
    ExamCommand { name: "compress in place", prepare: &[], words: "compress x -o x --jobs 1" },
    ExamCommand { name: "compress into the inode", prepare: &[], words: "compress x -o x --jobs 1 --in-place" },
    ExamCommand { name: "decompress", prepare: &["compress x -o x"], words: "decompress x -o out --jobs 1" },
    ExamCommand { name: "prune in place", prepare: &[], words: "prune x --keep gfx1030 -o x --jobs 1" },
    ExamCommand {
        name: "prune of a package",
        prepare: &[],
        words: "prune p.tar.gz --keep gfx1030 -o p.tar.gz --jobs 1",
    },
    ExamCommand { name: "prune of a directory", prepare: &[], words: "prune rocm --keep gfx1030 -o out --jobs 1" },
    ExamCommand {
        name: "prune of a wheel",
        prepare: &[],
        words: "prune pkg-1.0-py3-none-any.whl --keep gfx1030 -o pkg-1.0-1-py3-none-any.whl --jobs 1",
    },
    ExamCommand {
        name: "retarget of a Debian package",
        prepare: &[],
        words: "retarget d.deb --to gfx1031 -o d.deb --jobs 1",
    },
    ExamCommand {
        name: "retarget of a conda package",
        prepare: &[],
        words: "retarget pkg-1.0-0.conda --to gfx1031 -o pkg-1.0-1.conda --jobs 1",
    },
    ExamCommand { name: "compress of a directory", prepare: &[], words: "compress work -o out --jobs 1" },
    ExamCommand { name: "uses of a directory", prepare: &[], words: "uses rocm --gpu gfx1030" },
    ExamCommand { name: "list of a pipe", prepare: &[], words: "list -" },
    ExamCommand { name: "list of a stream", prepare: &[], words: "list /dev/stdin" },
    ExamCommand { name: "merge", prepare: &["split x -o s-{gpu}"], words: "merge s-gfx1030 s-gfx1100 -o out" },
    ExamCommand { name: "split", prepare: &[], words: "split x -o s-{gpu}" },
    ExamCommand { name: "remove", prepare: &[], words: "remove x gfx1100 -o out --jobs 1" },
    ExamCommand { name: "retarget", prepare: &[], words: "retarget x --to gfx1031 -o out --jobs 1" },
    ExamCommand { name: "retarget in place", prepare: &[], words: "retarget x --to gfx1031 -o x --jobs 1" },
    ExamCommand {
        name: "retarget of a package",
        prepare: &[],
        words: "retarget p.tar.gz --to gfx1031 -o q.tar.gz --jobs 1",
    },
    ExamCommand { name: "serve", prepare: &[], words: "serve gfx1031 --root rocm --dest served --jobs 1" },
    ExamCommand {
        name: "serve again",
        prepare: &[
            "serve gfx1031 --root rocm --dest served",
            "decompress rocm/lib/librocrand.so.1.1 -o rocm/lib/librocrand.so.1.1",
        ],
        words: "serve gfx1031 --root rocm --dest served --jobs 1",
    },
    ExamCommand {
        name: "serve --check",
        prepare: &["serve gfx1031 --root rocm --dest served"],
        words: "serve --check --dest served",
    },
    ExamCommand {
        name: "serve --undo",
        prepare: &["serve gfx1031 --root rocm --dest served"],
        words: "serve --undo --dest served",
    },
    ExamCommand { name: "plan", prepare: &[], words: "plan gfx1030=>gfx1031 --out-dir plans" },
    ExamCommand { name: "addr2func", prepare: &[], words: "addr2func y 0x300" },
    ExamCommand { name: "diff", prepare: &[], words: "diff y y" },
    ExamCommand { name: "bind", prepare: &[], words: "bind y y" },
    ExamCommand { name: "verify against an original", prepare: &[], words: "verify y --against y" },
    ExamCommand { name: "check", prepare: &[], words: "check --before y --after y --states 2" },
    ExamCommand { name: "run of a kernel", prepare: &[], words: "run y --gpu gfx1030 --kernel first" },
    ExamCommand { name: "add", prepare: &[], words: "add b gfx1031=e -o out --jobs 1" },
    ExamCommand { name: "replace in place", prepare: &[], words: "replace b gfx1030=f -o b --jobs 1" },
    ExamCommand {
        name: "rewrite",
        prepare: &[],
        words: "rewrite w --to gfx1250-strict -o out --jobs 1 --report json --save-repro repro",
    },
    ExamCommand { name: "manifest", prepare: &["plan gfx1030=>gfx1031"], words: "manifest --plan {plan} -o m.o" },
    ExamCommand { name: "profile show", prepare: &[], words: "profile show raw.profraw" },
    ExamCommand { name: "profile merge", prepare: &[], words: "profile merge profiles -o out --llvm-bin bin" },
    ExamCommand { name: "explain", prepare: &[], words: "explain HS0501" },
    ExamCommand { name: "targets", prepare: &[], words: "targets gfx1030" },
    ExamCommand { name: "compat", prepare: &[], words: "compat gfx1030 gfx1031" },
    ExamCommand { name: "families", prepare: &[], words: "families" },
    ExamCommand { name: "generate", prepare: &[], words: "generate man list" },
];

/// Commands whose work is mostly that of other programs, which are not under test.
pub(crate) const TOOL_COMMANDS: &[ExamCommand<'static>] = &[
    ExamCommand { name: "doctor", prepare: &[], words: "doctor" },
    ExamCommand { name: "toolchain", prepare: &[], words: "toolchain --files clang++" },
    ExamCommand { name: "exec", prepare: &[], words: "exec -- bin/clang++ --version" },
    ExamCommand {
        name: "profile report",
        prepare: &[],
        words: "profile report covered --profile merged.profdata --llvm-bin bin --lines --source-dir sources",
    },
];

#[derive(Clone, Copy)]
pub(crate) struct ExamCommand<'w> {
    pub(crate) name: &'static str,
    /// Commands before it.
    pub(crate) prepare: &'static [&'static str],
    pub(crate) words: &'w str,
}

/// The output has the names of the profiles, so that a lost one is seen.
const PROFDATA: &str = "#!/bin/sh
[ \"$1\" = merge ] || exec echo LLVM version 22.0.0
for word; do
    case \"$last\" in -o) out=$word ;; esac
    case \"$word\" in --input-files=*) list=${word#*=} ;; esac
    last=$word
done
sed 's:.*/d/::' \"$list\" > \"$out\"
";

/// Content and permissions of each file, text of each link.
pub(crate) type State = BTreeMap<PathBuf, (Vec<u8>, u32)>;

pub(crate) fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

/// The files, prepared at the path at which the command runs: manifests have it.
pub(crate) fn fixture(command: &ExamCommand<'_>, directory: &Path) {
    fs::create_dir(directory).unwrap();
    let at = |name: &str| directory.join(name);
    let library = hotswap_samples::host_files::library(&[
        &made::bundle(&["gfx1030", "gfx1100"], None, object),
        &made::bundle(&["gfx1030"], None, object),
    ]);
    fs::write(at("x"), &library).unwrap();
    if command.words.ends_with("--in-place") {
        fs::hard_link(at("x"), at("link")).unwrap();
    }
    fs::write(at("y"), object("gfx1030")).unwrap();
    fs::write(at("e"), object("gfx1031")).unwrap();
    fs::write(at("f"), Sample { apart: true, ..Sample::default() }.build()).unwrap();
    fs::write(at("w"), object("gfx1250")).unwrap();
    fs::write(at("b"), made::bundle(&["gfx1030"], None, object)).unwrap();
    profile_files(directory);
    toolchain::write_tools(&at("bin"));
    toolchain::write_covered_program(directory, &library);
    fs::create_dir_all(at("rocm/lib/rocblas/5/library")).unwrap();
    fs::create_dir_all(at("work/a/lib")).unwrap();
    fs::write(at("work/a/lib/libx.so"), &library).unwrap();
    let packed = made::bundle(&["gfx1030", "gfx1100"], Some(Compression::default()), object);
    for name in ["librocblas.so.5.2", "librocrand.so.1.1"] {
        fs::write(at("rocm/lib").join(name), hotswap_samples::host_files::library(&[&packed])).unwrap();
    }
    symlink("librocblas.so.5.2", at("rocm/lib/librocblas.so.5")).unwrap();
    let data = at("rocm/lib/rocblas/5/library");
    fs::write(data.join("Kernels.so-000-gfx1030.hsaco"), object("gfx1030")).unwrap();
    fs::write(data.join("TensileLibrary_lazy_gfx1030.dat"), b"index").unwrap();
    pack(directory, "p.tar.gz", "work");
    packages::write_wheel(&at("pkg-1.0-py3-none-any.whl"), &library);
    packages::write_debian_package(directory, &at("d.deb"));
    packages::write_conda_package(directory, &at("pkg-1.0-0.conda"), &library);
    for words in command.prepare {
        let done = hotswap(words, directory).output().unwrap();
        assert!(done.status.success(), "{words}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// The hash of the plan in the directory: that of this HotSwap.
fn plan_hash(directory: &Path) -> String {
    let mut plans = fs::read_dir(directory.join(".hotswap/plans")).unwrap();
    plans.next().unwrap().unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned()
}

pub(crate) fn hotswap(words: &str, directory: &Path) -> Command {
    let mut command = Command::new(if toolchain::is_asked(words) { toolchain::installed() } else { made::installed() });
    let words =
        if words.contains("{plan}") { words.replace("{plan}", &plan_hash(directory)) } else { words.to_owned() };
    command
        .args(words.split(' '))
        .current_dir(directory)
        .env("HOME", directory.join("home"))
        .env("HOTSWAP_CLANG", directory.join("bin/clang++"))
        .env_remove("XDG_CACHE_HOME")
        .env_remove("HOTSWAP_FAULTS");
    command.env("RUST_BACKTRACE", "0");
    command
}

pub(crate) fn state(directory: &Path) -> State {
    let mut state = State::new();
    collect(directory, directory, &mut state);
    state
}

fn collect(root: &Path, directory: &Path, state: &mut State) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let meta = path.symlink_metadata().unwrap();
        let name = path.strip_prefix(root).unwrap().to_owned();
        if meta.is_dir() {
            collect(root, &path, state);
        } else if meta.is_symlink() {
            state.insert(name, (fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes(), 0));
        } else {
            state.insert(name, (fs::read(&path).unwrap(), meta.permissions().mode()));
        }
    }
}

/// Packs a directory's content.
fn pack(directory: &Path, package: &str, content: &str) {
    let packed = Command::new("tar").args(["czf", package, "-C", content, "."]).current_dir(directory).status();
    assert!(packed.unwrap().success());
}

/// A raw profile without records, and an `llvm-profdata` that copies what it is to merge.
fn profile_files(directory: &Path) {
    // LLVM's raw magic number with version 10.
    let mut profile = vec![0x81, b'r', b'f', b'o', b'r', b'p', b'l', 0xff];
    profile.extend(10_u64.to_le_bytes());
    profile.resize(128, 0);
    fs::create_dir_all(directory.join("profiles/host")).unwrap();
    for name in ["raw.profraw", "profiles/one.profraw", "profiles/host/other.profraw"] {
        fs::write(directory.join(name), &profile).unwrap();
    }
    fs::create_dir(directory.join("bin")).unwrap();
    let tool = directory.join("bin/llvm-profdata");
    fs::write(&tool, PROFDATA).unwrap();
    fs::set_permissions(tool, fs::Permissions::from_mode(0o755)).unwrap();
}

/// A run: its end, what it printed, and the files afterwards.
pub(crate) struct Run {
    /// The exit code; none for a command that a signal has ended.
    pub(crate) code: Option<i32>,
    pub(crate) printed: String,
    pub(crate) errors: String,
    pub(crate) state: State,
}

/// A copy of the fixture at the path at which all runs take place, because reports and hashes have it; and a new directory of temporary
/// files.
pub(crate) fn prepare_run(command: &ExamCommand<'_>, template: &Path, scratch: &Path) -> Command {
    let directory = scratch.join("d");
    let _ = fs::remove_dir_all(&directory);
    let copied = Command::new("cp").arg("-a").arg(template).arg(&directory).status();
    assert!(copied.unwrap().success());
    let temporary = scratch.join("tmp");
    let _ = fs::remove_dir_all(&temporary);
    fs::create_dir(&temporary).unwrap();
    let mut started = hotswap(command.words, &directory);
    started.env("TMPDIR", &temporary);
    started
}

/// The same command below a script of the shell, which gets it as its arguments.
pub(crate) fn below_shell(command: &Command, script: &str) -> Command {
    let mut shell = Command::new("bash");
    shell.args(["-c", script, "bash"]).arg(command.get_program()).args(command.get_args());
    shell.current_dir(command.get_current_dir().unwrap());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => shell.env(name, value),
            None => shell.env_remove(name),
        };
    }
    shell
}

/// A pipe that holds those bytes, which must be few enough for it.
fn filled_pipe(bytes: &[u8]) -> Stdio {
    let (reader, mut writer) = std::io::pipe().unwrap();
    assert!(bytes.len() < 64 << 10);
    writer.write_all(bytes).unwrap();
    reader.into()
}

/// Runs the command, whose output goes to files, by that function. A command that reads `-` or `/dev/stdin` gets `x` by a pipe.
pub(crate) fn run_by(mut command: Command, scratch: &Path, start: &mut dyn FnMut(&mut Command) -> Option<i32>) -> Run {
    let [out, err] = ["out", "err"].map(|name| scratch.join(name));
    command.stdout(File::create(&out).unwrap()).stderr(File::create(&err).unwrap()).stdin(Stdio::null());
    if command.get_args().any(|word| word == "-" || word == "/dev/stdin") {
        command.stdin(filled_pipe(&fs::read(scratch.join("d/x")).unwrap()));
    }
    let code = start(&mut command);
    let text = |path: &Path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned();
    Run { code, printed: text(&out), errors: text(&err), state: state(&scratch.join("d")) }
}

/// The fault of a run, if it has one.
pub(crate) fn judge(before: &State, good: &Run, fault: &Fault, run: &Run) -> Option<String> {
    // The files about a served tree are about what is served.
    let is_own = |path: &Path| {
        let own = [MANIFEST, "served/env.sh", "served/hotswap-names.conf"];
        run.code != Some(0) && own.iter().any(|own| path == Path::new(own))
    };
    // The complete new content, beside a file that is written in place.
    let beside = run.state.get(Path::new(CONTENT)).map(|(content, _)| content);
    let is_beside = beside.is_some() && beside == good.state.get(Path::new("x")).map(|(content, _)| content);
    let is_torn = |path: &Path| is_beside && ["x", "link"].iter().any(|name| path == Path::new(name));
    for (path, old) in before {
        let now = run.state.get(path);
        if is_torn(path) && now.is_some() && run.code != Some(0) {
            continue;
        }
        if now != Some(old) && now != good.state.get(path) && !(is_own(path) && now.is_some()) {
            return Some(format!("{} was lost or is a third thing", path.display()));
        }
    }
    let is_kept = |path: &Path| {
        is_beside && path == Path::new(CONTENT)
            || fault.call.contains("unlink")
            || path.ends_with("hotswap-journal.jsonl")
            || is_own(path)
    };
    for (path, now) in &run.state {
        if !before.contains_key(path) && good.state.get(path) != Some(now) && !is_kept(path) {
            return Some(format!("{} is new and not the result", path.display()));
        }
    }
    let code = match run.code {
        None => return Some("a signal has ended it".to_owned()),
        Some(code) => code,
    };
    let good_code = good.code.unwrap_or(-1);
    if code == good_code {
        let mut paths = good.state.keys().chain(run.state.keys());
        let has_files = paths.all(|path| run.state.get(path) == good.state.get(path));
        let is_same = has_files && run.printed == good.printed;
        return (!is_same).then(|| "exit code of a good run, and another result".to_owned());
    }
    // A tool that HotSwap ran has the same system.
    let is_tool = code == 1 && run.errors.contains("[HS0003]");
    if !(10..=15).contains(&code) && !is_tool {
        return Some(format!("exit code {code}"));
    }
    let Effect::Error(error) = fault.effect else { return None };
    let reason = std::io::Error::from_raw_os_error(error as i32).to_string();
    let reason = reason.split(" (os error").next().unwrap_or_default();
    let is_output = ["write", "dup"].contains(&fault.call) && run.errors.is_empty();
    let is_true = run.errors.contains(reason) || is_output;
    let is_damage = ["HS0302", "HS0303", "HS0304", "HS0601"].iter().any(|code| run.errors.contains(code));
    (!is_true || is_damage).then(|| format!("exit code {code} without the true reason `{reason}`"))
}
