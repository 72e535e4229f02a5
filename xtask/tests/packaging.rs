//! Recipes for distributions, by the tools that the machine has; the book's list of pages; the promises of SECURITY.md.

use hotswap_userland::skip;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(name: &str) -> String {
    fs::read_to_string(workspace().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// A recipe, and the command that reads it; the file is the last argument. The command is looked for on `PATH`.
const RECIPES: &[(&str, &str, &[&str])] = &[
    ("packaging/oss-fuzz/build.sh", "bash", &["-n"]),
    (".ci/msrv", "bash", &["-n"]),
    (".ci/run", "bash", &["-n"]),
    ("packaging/spack/package.py", "python3", &["-c", "import ast, sys; ast.parse(open(sys.argv[1]).read())"]),
    ("packaging/rpm/hotswap.spec", "rpmspec", &["--parse"]),
    ("packaging/nix/default.nix", "nix-instantiate", &["--parse"]),
];

#[test]
fn recipes_are_read_by_their_tools() {
    for (file, program, words) in RECIPES {
        let output = Command::new(program).args(*words).arg(workspace().join(file)).output();
        let Ok(output) = output else {
            skip("packaging", &format!("{program} is not installed, so {file} was not read"));
            continue;
        };
        assert!(output.status.success(), "{file}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn recipes_name_the_version_and_the_compiler_of_the_workspace() {
    let version = env!("CARGO_PKG_VERSION");
    let manifest = read("Cargo.toml");
    let rust = manifest.lines().find_map(|line| line.strip_prefix("rust-version = \"")?.strip_suffix('"')).unwrap();
    for (file, texts) in [
        ("packaging/rpm/hotswap.spec", vec![format!("{version}\n"), format!("cargo >= {rust}")]),
        ("packaging/nix/default.nix", vec![format!("version = \"{version}\"")]),
        ("packaging/spack/package.py", vec![format!("version(\"{version}\""), format!("rust@{rust}:")]),
        ("packaging/conda/meta.yaml", vec![format!("version: \"{version}\""), format!("rust >={rust}")]),
    ] {
        let recipe = read(file);
        texts.iter().for_each(|text| assert!(recipe.contains(text), "{file} has no `{text}`"));
    }
}

/// YAML without a reader of YAML: no tabs, and every block is indented by its parent's depth and two.
#[test]
fn yaml_is_indented_by_two() {
    for file in ["packaging/conda/meta.yaml", "packaging/github-action/action.yml", "packaging/oss-fuzz/project.yaml"] {
        for line in read(file).lines() {
            let depth = line.len() - line.trim_start_matches(' ').len();
            assert!(depth % 2 == 0 && !line.contains('\t'), "{file}: `{line}`");
        }
    }
}

#[test]
fn the_book_has_every_page_once() {
    let summary = read("docs/SUMMARY.md");
    let listed: Vec<&str> = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    let mut pages = vec!["README.md".to_owned()];
    for part in ["guide", "reference", "evidence"] {
        let entries = fs::read_dir(workspace().join("docs").join(part)).unwrap().flatten();
        pages.extend(entries.map(|entry| format!("{part}/{}", entry.file_name().to_string_lossy())));
    }
    pages.retain(|name| name.ends_with(".md") && name != "evidence/full-run.md");
    for page in &pages {
        assert_eq!(listed.iter().filter(|name| *name == page).count(), 1, "{page}");
    }
    assert_eq!(listed.len(), pages.len());
}

/// Each promise names tests, and they exist.
#[test]
fn the_promises_of_security_are_held_by_tests() {
    let page = read("SECURITY.md");
    let table = page.split("| promise | held by |").nth(1).unwrap().split("\n\n").next().unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---")).collect();
    assert!(rows.len() > 8);
    for row in rows {
        let held = row.trim_end_matches('|').rsplit('|').next().unwrap();
        let files: Vec<&str> = held.split('`').skip(1).step_by(2).collect();
        assert!(!files.is_empty(), "{row}");
        files.iter().for_each(|file| assert!(workspace().join(file).exists(), "{file} is not there: {row}"));
    }
}

/// Each kind of fault names tests of a file, and they are in it.
#[test]
fn the_faults_of_the_page_of_tests_are_held_by_tests() {
    let page = read("docs/evidence/tests.md");
    let table = page.split("| kind of fault | tests | seen to fail |").nth(1).unwrap();
    let rows: Vec<&str> = table.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| ---")).collect();
    assert!(rows.len() > 20);
    for row in rows {
        let missing = missing_tests(row.split(" | ").nth(1).unwrap());
        assert_eq!(missing, Vec::<String>::new(), "{row}");
    }
    let planted = "`xtask/src/main.rs`: `a_test_that_is_not_there`, `xtask/src/absent.rs`: `x`, without a file";
    assert_eq!(missing_tests(planted), ["a_test_that_is_not_there", "xtask/src/absent.rs", "x"]);
    assert_eq!(missing_tests("in words alone"), ["a file"]);
}

/// Of a cell of `FILE`: `TEST`, `TEST`, what is not there.
fn missing_tests(cell: &str) -> Vec<String> {
    let (mut text, mut missing, mut files) = (String::new(), Vec::new(), 0);
    for name in cell.split('`').skip(1).step_by(2) {
        if name.contains('/') {
            files += 1;
            text = fs::read_to_string(workspace().join(name)).unwrap_or_default();
            missing.extend(text.is_empty().then(|| name.to_owned()));
        } else if !text.contains(&format!("#[test]\nfn {name}(")) && !text.contains(&format!("#[test]\n    fn {name}("))
        {
            missing.push(name.to_owned());
        }
    }
    missing.extend((files == 0).then(|| "a file".to_owned()));
    missing
}

/// Packages of the same installation, made with other umasks, time zones and locales.
#[test]
fn packages_do_not_depend_on_the_machine() {
    if which("dpkg-deb").is_none() || which("objdump").is_none() {
        return skip("packaging", "dpkg-deb or objdump is not installed");
    }
    let directory = tempfile::tempdir().expect("there is a directory for temporary files");
    let stage = directory.path().join("stage");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for (from, to) in [
        (Path::new("/bin/true"), "bin/hotswap"),
        (&source.join("LICENSE"), "lib/libhotswap.so.0"),
        (&source.join("crates/products/libhotswap/hotswap.pc"), "lib/pkgconfig/hotswap.pc"),
    ] {
        let to = stage.join(to);
        fs::create_dir_all(to.parent().expect("it has one")).expect("the directory can be written");
        fs::copy(from, to).expect("the file can be copied");
    }
    let made = ["022 UTC C", "077 Pacific/Kiritimati C.UTF-8"].map(|machine| {
        let output = directory.path().join(machine.replace('/', "-"));
        let script = "set -e; umask $1; export TZ=$2 LC_ALL=$3 SOURCE_DATE_EPOCH=1700000000; shift 3; exec \"$@\"";
        let mut command = Command::new("sh");
        command.args(["-c", script, "sh"]).args(machine.split(' ')).arg(env!("CARGO_BIN_EXE_xtask"));
        command.args(["dist", "--debug", "--installed"]).arg(&stage).arg("--output").arg(&output);
        let ran = command.output().expect("there is a shell");
        assert!(ran.status.success(), "{machine}: {}", String::from_utf8_lossy(&ran.stderr));
        let mut files: Vec<_> = fs::read_dir(&output).expect("it was made").flatten().map(|e| e.path()).collect();
        files.sort();
        files.iter().map(|file| fs::read(file).expect("it can be read")).collect::<Vec<_>>()
    });
    assert_eq!(made[0].len(), 4, "a tarball and three Debian packages");
    assert!(made[0] == made[1], "the packages differ");
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|directory| directory.join(program)).find(|file| file.is_file())
}
