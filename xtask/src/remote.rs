//! The task `remote`: a compile through HotSwap on a Remote Execution engine that has nothing but the declared inputs.
//!
//! The engine is BuildBox, of Debian's package `buildbox`: its daemon serves storage, action cache and execution of the Remote
//! Execution API, and runs each action in a bubblewrap sandbox whose root directory is the action's input tree. The client is
//! BuildBox's `trexe`. Bazel, recc and BuildStream speak the same protocol.
//!
//! Two engines run in root directories of their own, and two clients in directories of different names, in a network namespace
//! that has only its loopback device. The objects must be the same bytes, equal to those of a compile without an engine, and have
//! the plan's GPU. A worker that lacks a part of HotSwap, and one with another plan, must fail.
//!
//! Invariants: everything happens in overlays over the userland and in private namespaces; nothing is left behind.
//!
//! `--caches` compiles through ccache, sccache, distcc and icecc instead ([`caches`]), `--probes` builds by build systems other than
//! CMake ([`probes`]), `--bazel` by Bazel on an engine ([`bazel`]), `--workers` by two workers of sccache and of distcc ([`workers`]).
//!
//! Absent on purpose: links of programs, which are ordinary actions of the host's linker.

mod bazel;
mod caches;
mod page;
mod probes;
mod workers;

use crate::built::Profile;
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::{install, paths, remove, run, setup};
use clap::Parser;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles examples/gemm on a Remote Execution engine, without network, and compares the bytes.
#[derive(Parser)]
struct Options {
    /// Use this installation in place of a new build.
    #[arg(long, value_name = "PREFIX")]
    installed: Option<PathBuf>,
    /// Compile through compiler caches and distributed compilers instead, and write the table of docs/guide/remote-builds.md.
    #[arg(long)]
    caches: bool,
    /// Build by Meson, autoconf and SCons instead, compare what they find out with what they find out about clang, and write the
    /// table of docs/guide/compiler.md.
    #[arg(long, conflicts_with = "caches")]
    probes: bool,
    /// Compile and retarget by actions of Bazel on an engine instead, by two clients.
    #[arg(long, conflicts_with_all = ["caches", "probes"])]
    bazel: bool,
    /// Compile by two workers of sccache's distributed mode and two of distcc instead, and write their table of
    /// docs/guide/remote-builds.md.
    #[arg(long, conflicts_with_all = ["caches", "probes", "bazel"])]
    workers: bool,
}

/// The scripts. `$1` of the first is the directory of this task.
const OUTER: &str = include_str!("remote/outer.sh");
const INNER: &[(&str, &str)] = &[
    ("root.sh", include_str!("remote/root.sh")),
    ("stage.sh", include_str!("remote/stage.sh")),
    ("engine.sh", include_str!("remote/engine.sh")),
    ("client.sh", include_str!("remote/client.sh")),
    ("caches.sh", include_str!("remote/caches.sh")),
    ("workers.sh", include_str!("remote/workers.sh")),
    ("probes.sh", include_str!("remote/probes.sh")),
    ("bazel.sh", include_str!("remote/bazel.sh")),
    ("bazel.py", include_str!("remote/bazel.py")),
    ("hotswap.bzl", include_str!("remote/hotswap.bzl")),
];

/// The script that runs, and the judge of its output.
struct Kind {
    outer: &'static str,
    judge: fn(&str) -> Outcome,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    if !rustix::process::geteuid().is_root() {
        return fail("the engines run in root directories of their own, which needs root");
    }
    let (userland, _lock) = setup::ensure(Part::Tests)?;
    if userland.is_machine() {
        return fail("the engines run in the root directory of `cargo xtask setup --userland`");
    }
    let prefix = match options.installed.clone() {
        Some(prefix) => prefix,
        None => {
            let prefix = paths::scratch("prefix");
            install::install(&prefix, Profile::Checked, None)?;
            prefix
        }
    };
    let directory = paths::scratch("remote");
    remove::delete(&directory)?;
    prepare(&directory, &prefix)?;
    if options.workers {
        workers::add_programs(&directory.join("shared"))?;
    }
    let kind = kind_of(&options);
    let mut command = Command::new("unshare");
    let namespaces = ["--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"];
    command.args(namespaces).args(["/bin/sh", "-ec", kind.outer, "sh"]);
    let text = run::output(command.arg(&directory).arg(userland.root()))?;
    print!("{text}");
    let verdict = (kind.judge)(&text);
    remove::delete(&directory)?;
    verdict
}

fn kind_of(options: &Options) -> Kind {
    if options.caches {
        return Kind { outer: caches::OUTER, judge: caches::judge };
    }
    if options.probes {
        return Kind { outer: probes::OUTER, judge: probes::judge };
    }
    if options.workers {
        return Kind { outer: workers::OUTER, judge: workers::judge };
    }
    if options.bazel { Kind { outer: bazel::OUTER, judge: bazel::judge } } else { Kind { outer: OUTER, judge } }
}

/// The files that the root directories see as `/mnt`: the installation, the example, the scripts.
fn prepare(directory: &Path, prefix: &Path) -> Outcome {
    let shared = directory.join("shared");
    fs::create_dir_all(&shared).during("create", &shared)?;
    for (name, text) in INNER {
        let file = shared.join(name);
        fs::write(&file, text).during("write", &file)?;
    }
    let example = paths::workspace().join("examples/gemm");
    for (from, to) in [(prefix, "hotswap"), (example.as_path(), "gemm")] {
        run::output(Command::new("cp").arg("-a").arg(from.join(".")).arg(shared.join(to)))?;
    }
    Ok(())
}

/// One line of a client: `WHO FILE CODE HASH`.
fn judge(text: &str) -> Outcome {
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    let of = |who: &str| -> Vec<&[&str]> {
        lines.iter().filter(|words| words.len() == 4 && words[0] == who).map(|words| &words[1..]).collect()
    };
    let local = of("local");
    if local.is_empty() || local.iter().any(|words| words[1] != "0") {
        return fail("the compile without an engine failed: see its messages");
    }
    for client in ["client-1", "client-2"] {
        if of(client) != local {
            return fail(format!("{client} has other results than the compile without an engine"));
        }
    }
    for (who, what) in [("without-linker", "the device linker"), ("other-plan", "the plan that the command names")] {
        let results = of(who);
        if results.is_empty() || results.iter().any(|words| words[1] == "0" || words[2] != "none") {
            return fail(format!("a worker without {what} made an object, or was not asked"));
        }
    }
    println!(
        "{} objects are the same on both engines and without one; workers that lack inputs make none",
        local.len()
    );
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "local a 0 x\nlocal b 0 y\nclient-1 a 0 x\nclient-1 b 0 y\nclient-2 a 0 x\nclient-2 b 0 y\n\
                        without-linker a 1 none\nother-plan a 10 none\n";

    #[test]
    fn each_difference_is_a_failure() {
        assert!(judge(GOOD).is_ok());
        let faults = [
            ("client-2 b 0 y", "client-2 b 0 z"),
            ("client-1 a 0 x\n", ""),
            ("a 1 none", "a 0 x"),
            ("b 0 y", "b 1 none"),
        ];
        for (old, new) in faults.into_iter().chain([("other-plan a 10 none\n", ""), (GOOD, "")]) {
            assert!(judge(&GOOD.replace(old, new)).is_err(), "{old}");
        }
    }
}
