//! Declared inputs: plans in named files, and commands that use nothing else.
//!
//! The "compiler" is a shell script that prints its arguments and the plan that it was handed.

use hotswap_plan::Plan;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Output};
use tempfile::TempDir;

const SCRIPT: &str = "#!/bin/sh\nprintf '%s\\n' \"$@\"\necho \"TEXT=$HOTSWAP_PLAN_TEXT\"\n";
const WORDS: &[&str] = &["--offload-arch=gfx1030", "-c", "a.hip"];

/// A prefix, a compiler, and the plan `plans/p` in the working directory.
struct DeclaredInputs(TempDir);

fn plan(pairs: &str) -> Plan {
    let mut plan = Plan::default();
    plan.add_pairs(pairs).unwrap();
    plan
}

impl DeclaredInputs {
    fn new() -> Self {
        let bench = Self(tempfile::tempdir().unwrap());
        for directory in ["P/bin", "P/libexec/hotswap", "P/lib/hotswap", "real", "home/.config/hotswap", "run/plans"] {
            fs::create_dir_all(bench.at(directory)).unwrap();
        }
        // Not a link: the wrapper finds its prefix by its own resolved path.
        let mut copy = Command::new("cp");
        copy.arg(env!("CARGO_BIN_EXE_hotswap-clang")).arg(bench.at("P/bin/hotswap-clang"));
        assert!(copy.status().unwrap().success());
        symlink("hotswap-clang", bench.at("P/bin/hotswap-clang++")).unwrap();
        for name in ["P/libexec/hotswap/lld", "real/lld", "real/clang++"] {
            let script = "printf %s \"$1\" >\"$2\" && chmod 755 \"$2\"";
            let written = Command::new("sh").args(["-c", script, "sh", SCRIPT]).arg(bench.at(name)).status();
            assert!(written.unwrap().success());
        }
        fs::write(bench.at("run/plans/p"), plan("gfx1030=>gfx1031").canonical_text()).unwrap();
        bench
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn run(&self, words: &[&str], variables: &[(&str, &str)]) -> Output {
        let mut command = Command::new(self.at("P/bin/hotswap-clang++"));
        command.args(words).args(WORDS).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", self.at("home"));
        command.env("HOTSWAP_CLANG", self.at("real/clang++"));
        for (name, value) in variables {
            // An empty value would be one: it switches off that of a file.
            if value.is_empty() {
                command.env_remove(name)
            } else {
                command.env(name, value)
            };
        }
        command.current_dir(self.at("run")).output().unwrap()
    }

    fn error(&self, words: &[&str], variables: &[(&str, &str)]) -> String {
        let output = self.run(words, variables);
        assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn output(&self, words: &[&str], variables: &[(&str, &str)]) -> String {
        let output = self.run(words, variables);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }
}

const FILE: [&str; 2] = ["-Xoffload-linker", "--hotswap-plan-file=plans/p"];
const HERMETIC: (&str, &str) = ("HOTSWAP_HERMETIC", "1");

#[test]
fn a_plan_is_read_from_its_file() {
    let bench = DeclaredInputs::new();
    let hash = plan("gfx1030=>gfx1031").hash();
    for (words, variables) in
        [(&FILE[..], &[HERMETIC][..]), (&FILE[..], &[][..]), (&[], &[("HOTSWAP_PLAN_FILE", "plans/p"), HERMETIC])]
    {
        let said = bench.output(words, variables);
        assert!(
            said.contains("retarget gfx1030=>gfx1031") && said.contains(&format!("--hotswap-plan={hash}")),
            "{said}"
        );
        // The real linker would not know the argument; the token stands for it.
        assert!(!said.contains("plan-file"), "{said}");
    }
    let token = format!("--hotswap-plan={hash}");
    let both = [FILE[0], FILE[1], "-Xoffload-linker", &token];
    assert!(bench.output(&both, &[HERMETIC]).contains("retarget gfx1030=>gfx1031"));
    let other = format!("--hotswap-plan={}", plan("gfx1030=>gfx1032").hash());
    assert!(bench.error(&[FILE[0], FILE[1], "-Xoffload-linker", &other], &[]).contains("HS0205"));
    assert!(bench.error(&["-Xoffload-linker", "--hotswap-plan-file=absent"], &[]).contains("HS0204"));
    let more = [FILE[0], FILE[1], "-Xoffload-linker", "--hotswap-retarget=gfx900=>gfx902"];
    assert!(bench.error(&more, &[]).contains("HS0206"));
}

#[test]
fn a_hermetic_command_uses_nothing_undeclared() {
    let bench = DeclaredInputs::new();
    // A configuration file that would change every command, and one that is damaged.
    fs::write(bench.at("home/.config/hotswap/config.toml"), "retarget = 'gfx1030=>gfx1036'\n").unwrap();
    assert!(bench.output(&[], &[("HOTSWAP_NAMES", "derive")]).contains("gfx1036"), "the file is read otherwise");
    assert!(!bench.output(&[], &[HERMETIC]).contains("gfx1036"));
    fs::write(bench.at("home/.config/hotswap/config.toml"), "damaged").unwrap();
    assert!(bench.output(&FILE, &[HERMETIC]).contains("gfx1031"));
    assert!(bench.error(&FILE, &[]).contains("HS0104"));
    // A plan beside the build would be found without the mode.
    let token = format!("--hotswap-plan={}", plan("gfx1030=>gfx1031").hash());
    fs::create_dir_all(bench.at("run/.hotswap/plans")).unwrap();
    fs::copy(bench.at("run/plans/p"), bench.at(&format!("run/.hotswap/plans/{}.plan", &token[15..]))).unwrap();
    fs::write(bench.at("home/.config/hotswap/config.toml"), "").unwrap();
    assert!(bench.output(&["-Xoffload-linker", &token], &[]).contains("gfx1031"));
    let error = bench.error(&["-Xoffload-linker", &token], &[HERMETIC]);
    assert!(error.contains("HS0204") && error.contains("--hotswap-plan-file=FILE"), "{error}");
    for (name, value) in [("HOTSWAP_RETARGET", "gfx1030=>gfx1031"), ("CPATH", "/x"), ("HOTSWAP_FUTURE", "1")] {
        let error = bench.error(&[], &[HERMETIC, (name, value)]);
        assert!(error.contains("HS0104") && error.contains(name), "{error}");
    }
    let error = bench.error(&FILE, &[HERMETIC, ("HOTSWAP_CLANG", "")]);
    assert!(error.contains("HS0101") && error.contains("HOTSWAP_CLANG"), "{error}");
    let error = bench.error(&FILE, &[HERMETIC, ("HOTSWAP_CLANG", "clang++")]);
    assert!(error.contains("HS0101") && error.contains("searched on PATH"), "{error}");
    fs::write(bench.at("P/lib/hotswap/defaults.toml"), format!("clang = '{}'\n", bench.at("real/clang++").display()))
        .unwrap();
    assert!(bench.output(&FILE, &[HERMETIC, ("HOTSWAP_CLANG", "")]).contains("gfx1031"), "the installation names it");
}
