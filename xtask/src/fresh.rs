//! The task `fresh`: the README's commands on machines that have nothing, one row each in docs/evidence/fresh.md.
//!
//! A machine is a Debian root directory made by mmdebstrap: a Rust toolchain, a C compiler, the committed sources,
//! an empty home. Cargo's registry, the cache directory and the target directory are empty. A row that must refuse must do so
//! before anything but the task itself is built.
//!
//! Invariants: nothing is left but the page and the bare root directory; mounts are made in a private namespace. The page keeps the
//! rows of machines that were not tried this time, each with the commit of which it speaks.
//!
//! Absent on purpose: other distributions, whose root directories Debian's tools do not make.

mod table;

use crate::outcome::{During, Outcome, fail};
use crate::{paths, remove, run, userland};
use clap::{Parser, ValueEnum};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use table::{Expected, MACHINES, Machine, PACKAGES, SUITE, User};

/// Runs the README's commands on machines that have nothing, and writes docs/evidence/fresh.md.
#[derive(Parser)]
struct Options {
    /// Only this machine; may be repeated. `--list` prints the names.
    #[arg(long, short, value_name = "NAME")]
    machine: Vec<String>,
    /// The command.
    #[arg(long, value_enum, default_value = "demo")]
    command: Order,
    /// Print the machines.
    #[arg(long)]
    list: bool,
}

/// The commands that are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Order {
    Demo,
    Test,
    /// `test --quick`.
    Quick,
    /// `setup --base`: what the demo needs besides HotSwap.
    Setup,
}

impl Order {
    const ALL: [Self; 4] = [Self::Demo, Self::Test, Self::Quick, Self::Setup];

    fn words(self) -> &'static str {
        match self {
            Self::Demo => "demo",
            Self::Test => "test",
            Self::Quick => "test --quick",
            Self::Setup => "setup --base",
        }
    }

    /// The outcome of this command on a machine: tests of Rust alone need no mounts, mirror or space for a userland.
    fn expected(self, machine: &Machine) -> Expected {
        match machine.expected {
            Expected::Refuses(reason) if self != Self::Quick || reason.starts_with("linker") => machine.expected,
            _ => Expected::Works,
        }
    }
}

const SCRIPT: &str = include_str!("fresh/machine.sh");
const PAGE: &str = "docs/evidence/fresh.md";
/// No command takes longer.
const LIMIT: Duration = Duration::from_secs(3 * 3600);
/// Entries of the target directory that exist before the task builds anything.
const OF_TASK: &[&str] = &["CACHEDIR.TAG", ".rustc_info.json", "debug", "tmp", "xtask"];

/// The answer of one machine.
struct Answer {
    machine: &'static Machine,
    order: Order,
    is_right: bool,
    summary: String,
    seconds: f64,
    megabytes: u64,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    if options.list {
        MACHINES.iter().for_each(|machine| println!("{:24} {}", machine.name, machine.help));
        return Ok(());
    }
    if !rustix::process::geteuid().is_root() {
        return fail("the machines are root directories made by mmdebstrap, which needs root");
    }
    let chosen = choose(&options.machine)?;
    let ground = Ground::prepare()?;
    let mut wrong = 0;
    for machine in chosen {
        let answer = ground.ask(machine, options.command)?;
        println!("{}", row(&answer, &ground.commit));
        wrong += usize::from(!answer.is_right);
        write_page(&answer, &ground.commit)?;
    }
    remove::delete(&ground.directory.join("sources"))?;
    if wrong == 0 { Ok(()) } else { fail(format!("{wrong} machines did not answer as they should")) }
}

fn choose(names: &[String]) -> Outcome<Vec<&'static Machine>> {
    if let Some(unknown) = names.iter().find(|name| MACHINES.iter().all(|machine| machine.name != **name)) {
        return fail(format!("there is no machine `{unknown}`; `--list` prints them"));
    }
    Ok(MACHINES.iter().filter(|machine| names.is_empty() || names.iter().any(|name| name == machine.name)).collect())
}

/// The parts of all machines.
struct Ground {
    directory: PathBuf,
    toolchain: PathBuf,
    commit: String,
}

impl Ground {
    fn prepare() -> Outcome<Self> {
        let directory = paths::scratch("fresh");
        fs::create_dir_all(&directory).during("create", &directory)?;
        let sysroot = run::output(Command::new("rustc").args(["--print", "sysroot"]).current_dir(paths::workspace()))?;
        let commit = run_git_command(&["rev-parse", "--short", "HEAD"])?.trim().to_owned();
        if !run_git_command(&["status", "--porcelain", "--untracked-files=no"])?.is_empty() {
            println!("note: changes that are not committed are not tried");
        }
        let ground = Self { directory, toolchain: sysroot.trim().into(), commit };
        ground.copy_sources()?;
        ground.make_bare_root()?;
        Ok(ground)
    }

    /// The committed sources, as a clone and as a tarball has them.
    fn copy_sources(&self) -> Outcome {
        let sources = self.directory.join("sources");
        remove::delete(&sources)?;
        let (clone, tarball) = (sources.join("clone"), sources.join("tarball"));
        run::output(Command::new("git").args(["clone", "-q", "--no-local"]).arg(paths::workspace()).arg(&clone))?;
        run::output(Command::new("cp").arg("-a").arg(&clone).arg(&tarball))?;
        remove::delete(&tarball.join(".git"))
    }

    fn make_bare_root(&self) -> Outcome {
        let root = self.bare_root();
        if root.exists() {
            return Ok(());
        }
        if which::which("mmdebstrap").is_err() {
            userland::install(&["mmdebstrap"])?;
        }
        let partial = root.with_extension("partial");
        remove::delete(&partial)?;
        let mut make = Command::new("unshare");
        make.args(["--mount", "--pid", "--mount-proc", "--fork", "--kill-child", "mmdebstrap", "--mode=root"]);
        make.args(["--variant=apt", "--aptopt=Acquire::Check-Valid-Until \"false\"", "--dpkgopt=force-unsafe-io"]);
        make.arg(format!("--include={}", PACKAGES.join(","))).arg(SUITE).arg(&partial);
        println!("Making a bare root directory of {SUITE}");
        run::output(make.arg(format!("deb {} {SUITE} main", userland::mirror()?)))?;
        fs::rename(&partial, &root).during("rename", &partial)
    }

    fn bare_root(&self) -> PathBuf {
        self.directory.join(format!("bare-{SUITE}"))
    }

    /// Runs the command on the machine.
    fn ask(&self, machine: &'static Machine, order: Order) -> Outcome<Answer> {
        println!("\n{}: cargo xtask {}", machine.name, order.words());
        let here = self.directory.join("machine");
        remove::delete(&here)?;
        fs::create_dir_all(&here).during("create", &here)?;
        let log = self.directory.join(format!("{}-{}.log", machine.name, order.words().replace(' ', "")));
        let start = Instant::now();
        let status = self.command(machine, order, &here, &log)?.status()?;
        let seconds = start.elapsed().as_secs_f64();
        let text = String::from_utf8_lossy(&fs::read(&log).during("read", &log)?).into_owned();
        let home = if machine.user == User::Ordinary { "home/tester" } else { "root" };
        let home = here.join("root").join(home);
        let target = home.join(machine.directory).join("target");
        let (is_right, summary) = judge(order.expected(machine), status.success(), &text, built_entry(&target));
        let megabytes = size_in_megabytes(&home)?;
        remove::delete(&here)?;
        if !is_right {
            println!("{}\n(whole output: {})", last_lines(&text), log.display());
        }
        Ok(Answer { machine, order, is_right, summary, seconds, megabytes })
    }

    fn command(&self, machine: &Machine, order: Order, here: &Path, log: &Path) -> Outcome<Command> {
        let sources = self.directory.join("sources").join(if machine.is_tarball { "tarball" } else { "clone" });
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "unshare", "--mount", "--propagation", "private"]);
        // Nothing of the machine outlives this task.
        command.args(["--pid", "--mount-proc", "--fork", "--kill-child", "timeout"]);
        command.arg(LIMIT.as_secs().to_string()).args(["/bin/sh", "-c", SCRIPT, "sh"]);
        command.arg(self.bare_root()).arg(here).arg(&self.toolchain).arg(sources).arg(machine.directory);
        command.arg(match machine.user {
            User::Root => "root",
            User::Ordinary => "ordinary",
            User::RootWithoutMounts => "root-without-mounts",
        });
        command.arg(if machine.has_user_namespaces { "yes" } else { "no" });
        command.arg(machine.home_megabytes.map(|size| size.to_string()).unwrap_or_default()).arg(machine.change);
        command.args(["-i", "PATH=/opt/rust/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG=C.UTF-8"]);
        // Where the network is reached by a proxy.
        let proxies = ["http_proxy", "https_proxy", "no_proxy"].into_iter();
        let proxies = proxies.filter_map(|name| Some(format!("{name}={}", std::env::var(name).ok()?)));
        command.args(proxies).args(machine.variables.iter().map(|(name, value)| format!("{name}={value}")));
        let home = if machine.user == User::Ordinary { "/home/tester" } else { "/root" };
        command.arg(format!("HOME={home}")).args(["cargo", "xtask"]).args(order.words().split(' '));
        let output = fs::File::create(log).during("create", log)?;
        command.stdin(Stdio::null()).stderr(output.try_clone()?).stdout(output);
        Ok(command)
    }
}

fn run_git_command(words: &[&str]) -> Result<String, crate::outcome::Failure> {
    run::output(Command::new("git").arg("-C").arg(paths::workspace()).args(words))
}

/// An entry of the target directory that shows that more than the task was built.
fn built_entry(target: &Path) -> Option<String> {
    let names = fs::read_dir(target).into_iter().flatten().flatten().map(|entry| entry.file_name());
    names.map(|name| name.to_string_lossy().into_owned()).find(|name| !OF_TASK.contains(&name.as_str()))
}

/// Whether the outcome is the expected one, and the outcome in words.
fn judge(expected: Expected, succeeded: bool, text: &str, built: Option<String>) -> (bool, String) {
    let error = text.lines().find(|line| line.starts_with("xtask ") && line.contains(": error: "));
    let error = error.or_else(|| text.lines().find(|line| line.starts_with("error: "))).unwrap_or("no message");
    match (expected, built) {
        (Expected::Works, _) if succeeded => (true, "works".to_owned()),
        (Expected::Works, _) => (false, format!("**fails**: {error}")),
        (Expected::Refuses(_), _) if succeeded => (false, "**works, and should refuse**".to_owned()),
        (Expected::Refuses(_), Some(built)) => (false, format!("**refuses after building `{built}`**: {error}")),
        (Expected::Refuses(reason), None) if text.contains(reason) => (true, format!("refuses at once: {reason}")),
        (Expected::Refuses(_), None) => (false, format!("**refuses without the reason**: {error}")),
    }
}

fn size_in_megabytes(directory: &Path) -> Outcome<u64> {
    let text = run::output(Command::new("du").args(["-s", "--block-size=1MB", "--"]).arg(directory))?;
    Ok(text.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default())
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(15)..].join("\n")
}

/// The beginning of a row: the machine and the command.
fn key(machine: &Machine, order: Order) -> String {
    format!("| {} | `{}` |", machine.help, order.words())
}

fn row(answer: &Answer, commit: &str) -> String {
    let Answer { machine, order, summary, seconds, megabytes, .. } = answer;
    let size = if machine.home_megabytes.is_some() { "-".to_owned() } else { format!("{megabytes} MB") };
    let summary = summary.replace('|', "\\|");
    format!("{} {summary} | {seconds:.0} s | {size} | {commit} |", key(machine, *order))
}

/// Writes the page: the new row, and those that it has already.
fn write_page(answer: &Answer, commit: &str) -> Outcome {
    let page = paths::workspace().join(PAGE);
    let before = fs::read_to_string(&page).unwrap_or_default();
    let new = row(answer, commit);
    let text = page_text(|machine, order| {
        let is_new = machine.name == answer.machine.name && order == answer.order;
        let key = key(machine, order);
        let old = before.lines().find(|line| line.starts_with(&key) && !line.contains("| not tried |"));
        if is_new { Some(new.clone()) } else { old.map(str::to_owned) }
    });
    let temporary = page.with_extension("md.new");
    fs::write(&temporary, text).during("write", &temporary)?;
    fs::rename(&temporary, &page).during("rename", &temporary)
}

fn page_text(find_row: impl Fn(&Machine, Order) -> Option<String>) -> String {
    let mut text = "# The first commands on bare machines\n\n\
        For new users: how the first commands of the README end on machines that lack one thing or another.\n\n\
        Written by `cargo xtask fresh`. Each machine is a root directory of Debian 12 made by mmdebstrap, with a Rust toolchain, a C compiler,\n\
        git, the sources and an empty home; the rows name what differs. *Refuses at once* means: with a message that has these words,\n\
        before anything but `xtask` is built. Time is by the clock, of a machine with two processors that may have had other work; size is the home\n\
        directory afterwards, with the sources. The last column is the commit that was tried.\n\n\
        | machine | command | outcome | time | size | of |\n| --- | --- | --- | ---: | ---: | --- |\n"
        .to_owned();
    for machine in MACHINES {
        for order in Order::ALL {
            let row = find_row(machine, order);
            // Of the commands that are not in the README, only those that were tried.
            let is_readme = matches!(order, Order::Demo | Order::Test);
            let untried = is_readme.then(|| format!("{} not tried | - | - | - |", key(machine, order)));
            if let Some(row) = row.or(untried) {
                text += &row;
                text.push('\n');
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_counts_only_with_its_reason_and_before_a_build() {
        let refuses = Expected::Refuses("no mounts");
        let text = "xtask demo: error: no mounts here";
        assert!(judge(refuses, false, text, None).0);
        assert!(!judge(refuses, true, text, None).0 && !judge(refuses, false, "xtask demo: error: other", None).0);
        assert!(!judge(refuses, false, text, Some("dist".to_owned())).0);
        assert!(
            judge(Expected::Works, true, "", Some("dist".to_owned())).0 && !judge(Expected::Works, false, text, None).0
        );
    }

    #[test]
    fn machines_have_names_of_their_own_and_rows_that_tell_them_apart() {
        for (at, machine) in MACHINES.iter().enumerate() {
            assert!(MACHINES[..at].iter().all(|other| other.name != machine.name && other.help != machine.help));
        }
        let text = page_text(|machine, order| {
            (machine.name == "root").then(|| key(machine, order) + " works | 1 s | 1 MB | c |")
        });
        assert!(
            text.contains("| root, from a clone | `demo` | works |")
                && text.contains("| an ordinary user | `test` | not tried |")
        );
    }
}
