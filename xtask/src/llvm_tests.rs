//! The task `llvm-tests`: LLVM's own tests of clang's driver that name HIP or offloading, with `hotswap-clang` in clang's place.
//!
//! LLVM's sources and tools (lit, FileCheck, not, count) are Debian's packages, downloaded when the task runs. Each test runs three
//! times: with clang, with `hotswap-clang` without a plan, and with a plan of the environment for other GPUs. It writes
//! `docs/evidence/llvm-tests.md`.
//!
//! Invariants: lit judges, nothing of ours. A test that passes with clang and fails otherwise is an exception that the page names; one
//! without a reason in the table fails the task.
//!
//! Absent on purpose: tests of other directories, and those that Debian's clang itself does not pass.

use crate::built::Profile;
use crate::isa_source::Apt;
use crate::outcome::{During, Outcome, fail};
use crate::packages::{Origin, Package, Packages};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths, remove, run, xz};
use clap::Parser;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs LLVM's tests of clang's driver with hotswap-clang, and writes docs/evidence/llvm-tests.md.
#[derive(Parser)]
struct Options {
    /// Only tests whose name contains this; nothing is written then.
    filter: Option<String>,
    /// Use this installation in place of a new build.
    #[arg(long, value_name = "PREFIX")]
    installed: Option<PathBuf>,
}

const SOURCES: &str = "llvm-toolchain-22";
const TOOLS: Package = Package { name: "llvm-22-tools", origin: Origin::Sid };
/// The parts of the sources that are unpacked.
const PARTS: &[&str] = &["clang/test/Driver", "clang/test/lit.cfg.py"];
const DRIVER_TESTS: &str = "clang/test/Driver";
/// The tools of the compiler under test, as a path inside.
const CLANG_TOOLS: &str = "/usr/lib/llvm-22/bin";
const LLVM_TOOLS: &str = "usr/lib/llvm-22";
const PAGE: &str = "docs/evidence/llvm-tests.md";
/// A plan that no test's GPU is a source of.
const OTHER_GPUS: &str = "gfx90c=>gfx909";

/// The program in clang's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Clang,
    WithoutPlan,
    OtherGpus,
}

const MODES: [Mode; 3] = [Mode::Clang, Mode::WithoutPlan, Mode::OtherGpus];

impl Mode {
    fn title(self) -> &'static str {
        match self {
            Self::Clang => "clang",
            Self::WithoutPlan => "hotswap-clang without a plan",
            Self::OtherGpus => "hotswap-clang with a plan for other GPUs",
        }
    }

    fn directory(self) -> String {
        format!("tools-{self:?}").to_lowercase()
    }
}

/// Tests that fail with a plan for other GPUs, and why they are right to.
const EXCEPTIONS: &[(&str, &str)] = &[(
    "hip-options.hip",
    "one command must print nothing, and HotSwap says in one line that the plan is not for the command's GPU",
)];

/// The results of a mode by test, as lit names them.
type Results = BTreeMap<String, String>;

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let (prefix, work) =
        (options.installed.clone().unwrap_or_else(|| paths::scratch("prefix")), paths::scratch("llvm-tests"));
    remove::delete(&work)?;
    let prefix = fs::canonicalize(&prefix).unwrap_or(prefix);
    let session = Session::open(Part::Tests, &prefix, &work)?;
    if options.installed.is_none() {
        install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    }
    let version = copy_sources(&work)?;
    let tests = choose_tests(&work, options.filter.as_deref())?;
    let mut results = Vec::new();
    for mode in MODES {
        println!("{}: {} tests", mode.title(), tests.len());
        results.push(run_tests(&session, &work, mode, &tests)?);
    }
    let page = page_text(&version, &results);
    if options.filter.is_none() {
        let file = paths::workspace().join(PAGE);
        fs::write(&file, &page).during("write", &file)?;
    }
    println!("{page}");
    remove::delete(&work)?;
    let unexplained = unexplained_failures(&results);
    if unexplained.is_empty() { Ok(()) } else { fail(format!("fail for unknown reasons: {}", unexplained.join(", "))) }
}

/// Puts the tests and LLVM's tools into the directory; the version of the sources.
fn copy_sources(work: &Path) -> Outcome<String> {
    let cached = paths::cache()?.join("llvm-driver-tests-22");
    if !cached.exists() {
        let partial = cached.with_extension("partial");
        remove::delete(&partial)?;
        fs::create_dir_all(&partial).during("create", &partial)?;
        download(&partial)?;
        fs::rename(&partial, &cached).during("rename", &partial)?;
    }
    let tools = Packages::open()?.get(&TOOLS)?.directory;
    for from in [cached.join("clang"), tools.join("usr")] {
        run::output(Command::new("cp").arg("-r").arg(&from).arg(work))?;
    }
    let file = cached.join("VERSION");
    Ok(fs::read_to_string(&file).during("read", &file)?.trim().to_owned())
}

fn download(directory: &Path) -> Outcome {
    println!("Downloading the sources of {SOURCES} (about 200 MB)");
    let apt = Apt::new(directory, "deb-src")?;
    run::output(&mut apt.command("apt-get", &["update", "-q"]))?;
    let version = apt.download_source(SOURCES, directory)?;
    let archive = run::output(Command::new("sh").args(["-c", "ls *.orig.tar.xz"]).current_dir(directory))?;
    let (file, archive) = (directory.join("VERSION"), directory.join(archive.trim()));
    xz::unpack_parts(&archive, directory, PARTS)?;
    fs::write(&file, format!("{version}\n")).during("write", &file)?;
    fs::remove_file(&archive).during("delete", &archive)?;
    apt.remove()
}

/// The tests whose text has `hip` or `offload`.
fn choose_tests(work: &Path, filter: Option<&str>) -> Outcome<Vec<String>> {
    let directory = work.join(DRIVER_TESTS);
    let mut tests = Vec::new();
    for entry in fs::read_dir(&directory).during("read", &directory)? {
        let path = entry.during("read", &directory)?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() || filter.is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        let text = fs::read(&path).during("read", &path)?;
        let text = String::from_utf8_lossy(&text);
        if text.contains("hip") || text.contains("offload") {
            tests.push(name);
        }
    }
    tests.sort();
    if tests.is_empty() { fail("no test is chosen") } else { Ok(tests) }
}

fn run_tests(session: &Session, work: &Path, mode: Mode, tests: &[String]) -> Outcome<Results> {
    make_tools(session, work, mode)?;
    let configuration = work.join("clang/test/lit.site.cfg.py");
    let text = site_configuration(&session.work, &session.work.join(mode.directory()));
    fs::write(&configuration, text).during("write", &configuration)?;
    remove::delete(&work.join("obj"))?;
    let mut command = session.inside(&session.work, "python3");
    command.args(["-c", "from lit.main import main; main({})", "-q", "-j2", "-o", "results.json"]);
    command.args(tests.iter().map(|test| format!("{DRIVER_TESTS}/{test}")));
    command.env("PYTHONPATH", session.work.join(LLVM_TOOLS).join("utils/lit"));
    command.stdin(Stdio::null()).stdout(Stdio::null());
    // lit's exit code tells whether all tests passed; the file tells which.
    command.status()?;
    let file = work.join("results.json");
    let json: Value = serde_json::from_str(&fs::read_to_string(&file).during("read", &file)?)?;
    remove::delete(&file)?;
    let results: Results = json["tests"].as_array().into_iter().flatten().filter_map(result_of_test).collect();
    if results.is_empty() { fail("lit ran no test") } else { Ok(results) }
}

/// Name and result of a test in lit's file.
fn result_of_test(test: &Value) -> Option<(String, String)> {
    let name = test["name"].as_str()?.rsplit('/').next()?;
    Some((name.to_owned(), test["code"].as_str()?.to_owned()))
}

/// A directory with clang's tools, in which the mode's programs are called clang.
fn make_tools(session: &Session, work: &Path, mode: Mode) -> Outcome {
    let directory = work.join(mode.directory());
    fs::create_dir_all(&directory).during("create", &directory)?;
    let outside = session.userland.outside(CLANG_TOOLS);
    for entry in fs::read_dir(&outside).during("read", &outside)? {
        let name = entry.during("read", &outside)?.file_name();
        let to = directory.join(&name);
        symlink(Path::new(CLANG_TOOLS).join(&name), &to).during("create", &to)?;
    }
    for name in ["FileCheck", "count", "not", "split-file"] {
        let to = directory.join(name);
        symlink(session.work.join(LLVM_TOOLS).join("bin").join(name), &to).during("create", &to)?;
    }
    if mode != Mode::Clang {
        for name in ["clang", "clang++"] {
            replace_clang(session, &directory.join(name), name, mode)?;
        }
    }
    Ok(())
}

fn replace_clang(session: &Session, to: &Path, name: &str, mode: Mode) -> Outcome {
    // A link to a file of the userland.
    fs::remove_file(to).during("delete", to)?;
    let plan =
        if mode == Mode::OtherGpus { format!("export HOTSWAP_RETARGET='{OTHER_GPUS}'\n") } else { String::new() };
    let ours = session.prefix.join("bin").join(format!("hotswap-{name}"));
    let text = format!(
        "#!/bin/bash\nexport HOTSWAP_CLANG={CLANG_TOOLS}/{name}\n{plan}exec -a \"$0\" {} \"$@\"\n",
        ours.display()
    );
    fs::write(to, text).during("write", to)?;
    fs::set_permissions(to, fs::Permissions::from_mode(0o755)).during("change", to)
}

/// The configuration that LLVM's build would write; paths are those inside.
fn site_configuration(work: &Path, tools: &Path) -> String {
    let (work, tools) = (work.display(), tools.display());
    let mut text = String::from("import sys\n");
    for (name, value) in [
        ("llvm_src_root", format!("{work}/llvm")),
        ("llvm_obj_root", format!("{work}/obj")),
        ("llvm_tools_dir", tools.to_string()),
        ("llvm_libs_dir", "/usr/lib/llvm-22/lib".to_owned()),
        ("llvm_shlib_dir", "/usr/lib/llvm-22/lib".to_owned()),
        ("llvm_plugin_ext", ".so".to_owned()),
        ("clang_obj_root", format!("{work}/obj")),
        ("clang_src_dir", format!("{work}/clang")),
        ("clang_tools_dir", tools.to_string()),
        ("clang_lib_dir", "/usr/lib/llvm-22/lib".to_owned()),
        ("host_triple", "x86_64-pc-linux-gnu".to_owned()),
        ("target_triple", "x86_64-pc-linux-gnu".to_owned()),
        ("host_arch", "x86_64".to_owned()),
        ("perl_executable", "/usr/bin/perl".to_owned()),
        ("python_executable", "/usr/bin/python3".to_owned()),
    ] {
        text += &format!("config.{name} = \"{value}\"\n");
    }
    text += "config.clang_lit_site_cfg = __file__\n";
    for name in EMPTY_SETTINGS {
        text += &format!("config.{name} = \"\"\n");
    }
    for (value, names) in [(0, SWITCHED_OFF), (1, SWITCHED_ON)] {
        names.iter().for_each(|name| text += &format!("config.{name} = {value}\n"));
    }
    text += "config.substitutions.append((\"%llvm-version-major\", \"22\"))\n";
    text += "import lit.llvm\nlit.llvm.initialize(lit_config, config)\n";
    text + &format!("lit_config.load_config(config, \"{work}/clang/test/lit.cfg.py\")\n")
}

const EMPTY_SETTINGS: &[&str] = &[
    "lit_tools_dir",
    "errc_messages",
    "llvm_use_sanitizer",
    "clang_default_cxx_stdlib",
    "clang_vendor_uti",
    "llvm_external_lit",
];
const SWITCHED_OFF: &[&str] = &[
    "clang_objc_rewriter",
    "clang_staticanalyzer",
    "clang_staticanalyzer_z3",
    "clang_staticanalyzer_z3_mock",
    "clang_enable_cir",
    "clang_examples",
    "llvm_examples",
    "build_shared_libs",
    "reverse_iteration",
    "ppc_linux_default_ieeelongdouble",
    "have_llvm_driver",
    "spirv_tools_tests",
];
const SWITCHED_ON: &[&str] = &[
    "have_zlib",
    "have_zstd",
    "clang_default_pie_on_linux",
    "enable_shared",
    "enable_backtrace",
    "enable_threads",
    "link_llvm_dylib",
    "link_clang_dylib",
    "has_plugins",
    "standalone_build",
];

/// The tests that pass with clang and fail in the mode of these results.
fn failures<'r>(clang: &'r Results, results: &'r Results) -> Vec<&'r str> {
    let fails = results.iter().filter(|(name, code)| *code != "PASS" && clang_test_passes(name, clang));
    fails.map(|(name, _)| name.as_str()).collect()
}

fn clang_test_passes(name: &str, clang: &BTreeMap<String, String>) -> bool {
    clang.get(name).is_some_and(|code| code == "PASS")
}

/// Failures that the table does not explain, or that are not in the mode that it explains.
fn unexplained_failures(results: &[Results]) -> Vec<String> {
    let [clang, without_plan, other_gpus] = results else { return vec!["modes".to_owned()] };
    let with_plan = failures(clang, other_gpus).into_iter().filter(|name| !is_known_exception(name));
    failures(clang, without_plan).into_iter().chain(with_plan).map(str::to_owned).collect()
}

fn is_known_exception(name: &&str) -> bool {
    EXCEPTIONS.iter().any(|(known, _)| known == name)
}

fn page_text(version: &str, results: &[Results]) -> String {
    let mut text = format!(
        "# LLVM's own tests of the driver\n\n<!-- Written by `cargo xtask llvm-tests`; do not edit. -->\n\n\
         For users of `hotswap-clang` in clang's place: how LLVM's own tests of the driver end with it.\n\n\
         LLVM's tests of clang's driver (`{DRIVER_TESTS}`) that name HIP or offloading, from Debian's source package\n\
         `{SOURCES}` {version}, judged by LLVM's lit and FileCheck. `clang` is the one of the same package, or `hotswap-clang` with\n\
         that one behind it. The plan for other GPUs is `HOTSWAP_RETARGET='{OTHER_GPUS}'`.\n\n\
         | in clang's place | pass | fail | unsupported | as with clang |\n| --- | ---: | ---: | ---: | ---: |\n"
    );
    let passed = results[0].values().filter(|code| *code == "PASS").count();
    for (mode, results_of_mode) in MODES.iter().zip(results) {
        let equal = passed - failures(&results[0], results_of_mode).len();
        let (pass, fail, unsupported) = (
            count_results_with_code("PASS", results_of_mode),
            count_results_with_code("FAIL", results_of_mode),
            count_results_with_code("UNSUPPORTED", results_of_mode),
        );
        text += &format!("| {} | {pass} | {fail} | {unsupported} | {equal} of {passed} |\n", mode.title());
    }
    let own: Vec<&str> = results[0].iter().filter(|(_, code)| *code == "FAIL").map(|(name, _)| name.as_str()).collect();
    text += &format!("\nDebian's clang itself fails {} of them: {}.\n", own.len(), own.join(", "));
    for (mode, results_of_mode) in MODES.iter().zip(results).skip(1) {
        for name in failures(&results[0], results_of_mode) {
            let known = EXCEPTIONS.iter().find(|(known, _)| *known == name);
            let reason = known.map_or("not explained", |(_, reason)| reason);
            text += &format!("\n- {name}, {}: {reason}.\n", mode.title());
        }
    }
    text
}

fn count_results_with_code(wanted: &str, results_of_mode: &BTreeMap<String, String>) -> usize {
    results_of_mode.values().filter(|code| *code == wanted).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(text: &str) -> Results {
        let pairs = text.split(' ').filter_map(|pair| pair.split_once('='));
        pairs.map(|(name, code)| (name.to_owned(), code.to_owned())).collect()
    }

    #[test]
    fn only_explained_failures_with_a_plan_are_exceptions() {
        let clang = results("a=PASS b=FAIL hip-options.hip=PASS c=UNSUPPORTED");
        let same = clang.clone();
        let explained = results("a=PASS b=FAIL hip-options.hip=FAIL c=UNSUPPORTED");
        assert!(unexplained_failures(&[clang.clone(), same.clone(), explained.clone()]).is_empty());
        assert_eq!(unexplained_failures(&[clang.clone(), explained, same]), ["hip-options.hip"]);
        let planted = results("a=FAIL b=FAIL hip-options.hip=PASS");
        assert_eq!(unexplained_failures(&[clang.clone(), clang, planted]), ["a"]);
    }
}
