//! The environment of one unit: its project, build tree, installation of HotSwap, caches, variables.

use crate::case::{Mode, Needs};
use crate::setup::Unit;
use hotswap_tests::{Bench, Call, Ran, Scratch};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Path of the tests' files on the machine.
const PROJECTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/projects");
const WORKSPACE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

pub(crate) struct Site<'a> {
    bench: &'a Bench,
    unit: &'a Unit,
    scratch: Scratch,
    /// Directory below the scratch directory that contains everything.
    top: &'static str,
    /// Installation of HotSwap, as seen from inside.
    pub(crate) prefix: String,
    /// Name of the build tree below `top`.
    pub(crate) tree: &'static str,
}

impl<'a> Site<'a> {
    pub(crate) fn new(bench: &'a Bench, unit: &'a Unit) -> Result<Self, String> {
        let blanks = unit.case.needs == Needs::Blanks;
        let top = if blanks { "a directory with blanks" } else { "unit" };
        let scratch = bench.scratch();
        let prefix = bench.prefix.display().to_string();
        let mut site = Self { bench, unit, scratch, top, prefix, tree: "build" };
        site.copy_project().map_err(|error| format!("copying the project: {error}"))?;
        if unit.case.own_installation() {
            let own = site.inside("hotswap");
            site.run(&["cp", "-a", &site.prefix, &own])?;
            site.prefix = own;
        }
        if unit.case.needs == Needs::Upgrade {
            site.install_clang(unit.setup.clang.version)?;
        }
        Ok(site)
    }

    /// Puts a clang where the unit has it.
    pub(crate) fn install_clang(&self, version: u32) -> Result<(), String> {
        self.run(&["ln", "-sfn", &format!("/usr/lib/llvm-{version}"), &self.inside("llvm")]).map(drop)
    }

    /// The clang of the unit.
    pub(crate) fn clang(&self) -> String {
        let is_replaced = self.unit.case.needs == Needs::Upgrade;
        if is_replaced { self.inside("llvm/bin/clang++") } else { self.unit.setup.clang.program.clone() }
    }

    fn copy_project(&self) -> std::io::Result<()> {
        let name = self.unit.case.project;
        let from = if name.starts_with("examples/") { WORKSPACE } else { PROJECTS };
        copy(&Path::new(from).join(name), &self.outside("projects").join(name))?;
        copy(&Path::new(PROJECTS).join("common"), &self.outside("projects/common"))
    }

    /// A path below the unit's directory, as seen from inside.
    pub(crate) fn inside(&self, name: &str) -> String {
        self.scratch.inside(&format!("{}/{name}", self.top))
    }

    /// The same as the machine sees it.
    pub(crate) fn outside(&self, name: &str) -> PathBuf {
        self.scratch.outside(&format!("{}/{name}", self.top))
    }

    /// A file of the build tree, as the machine sees it.
    pub(crate) fn built(&self, name: &str) -> PathBuf {
        self.outside(&format!("{}/{name}", self.tree))
    }

    pub(crate) fn read(&self, name: &str) -> Result<Vec<u8>, String> {
        fs::read(self.built(name)).map_err(|error| format!("{name}: {error}"))
    }

    /// Runs a command in the unit's directory, whatever its exit code.
    pub(crate) fn call(&self, words: &[&str]) -> Ran {
        let mut variables: Vec<_> = [("CCACHE_DIR", "ccache"), ("SCCACHE_DIR", "sccache"), ("XDG_CACHE_HOME", "cache")]
            .map(|(variable, directory)| (variable.to_owned(), inside_path_variable(directory, self).1))
            .to_vec();
        // A socket of its own: a server that another unit started has that unit's cache.
        variables.push(("SCCACHE_SERVER_UDS".to_owned(), self.scratch.inside("sccache.socket")));
        // For presets, which cannot take a definition.
        variables.push(("PREFIX_OF_HOTSWAP".to_owned(), self.prefix.clone()));
        if self.unit.mode != Mode::Launcher {
            variables.push(("HOTSWAP_CLANG".to_owned(), self.clang()));
        }
        Call::new(self.bench, self.scratch.inside(self.top), words)
            .envs(&variables)
            .limit(Duration::from_secs(300))
            .run()
    }

    /// HotSwap's sources, as seen from inside.
    pub(crate) fn source(&self) -> String {
        let is_machine = self.bench.userland.is_machine();
        if is_machine { WORKSPACE.to_owned() } else { hotswap_userland::SOURCE.to_owned() }
    }

    /// Runs a command that must succeed; returns its output.
    pub(crate) fn run(&self, words: &[&str]) -> Result<String, String> {
        let ran = self.call(words);
        if ran.ok() { Ok(both(&ran)) } else { Err(format!("`{}` failed:\n{}", words.join(" "), both(&ran))) }
    }

    /// A program of the installation.
    pub(crate) fn hotswap(&self, words: &[&str]) -> Result<String, String> {
        let program = format!("{}/bin/hotswap", self.prefix);
        let ran = self.call(&[&[program.as_str()], words].concat());
        if ran.ok() { Ok(ran.stdout) } else { Err(format!("hotswap {} failed:\n{}", words.join(" "), both(&ran))) }
    }

    pub(crate) fn unit(&self) -> &Unit {
        self.unit
    }

    /// The directory of the project, as seen from inside.
    pub(crate) fn project(&self) -> String {
        self.inside(&format!("projects/{}", self.unit.case.project))
    }

    /// Flags of HIP that the userland needs for this clang. Projects with a few declarations of their own do without HIP's
    /// headers also where CMake examines the compiler: these take two of three seconds of a configure step.
    pub(crate) fn flags(&self) -> String {
        let clang = &self.unit.setup.clang;
        let words = if self.unit.case.project.starts_with("examples/") { clang.hip.clone() } else { clang.light() };
        words.join(" ")
    }
}

fn inside_path_variable(name: &str, site: &Site<'_>) -> (String, String) {
    (name.to_owned(), site.inside(name))
}

impl Drop for Site<'_> {
    fn drop(&mut self) {
        if self.outside("sccache").exists() {
            // The server would outlive the test; where none runs there is nothing to stop.
            self.call(&["sccache", "--stop-server"]);
        }
    }
}

/// Both streams, as a user would see them.
pub(crate) fn both(ran: &Ran) -> String {
    format!("{}{}", ran.stdout, ran.stderr)
}

fn copy(from: &Path, to: &Path) -> std::io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(drop);
    }
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}
