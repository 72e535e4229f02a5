//! One file with device code, treated by every command.

use crate::bench_fat::measure;
use crate::outcome::{During, Outcome};
use crate::run;
use crate::session::Session;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The tool whose output is compared with ours.
const BUNDLER: &str = "clang-offload-bundler-22";

/// Sources and targets; the first target that is missing and whose source exists is made.
const PAIRS: &[(&str, &str)] = &[
    ("gfx1030", "gfx1031"),
    ("gfx900", "gfx90c"),
    ("gfx1200", "gfx1201"),
    ("gfx1030", "gfx10-3-generic"),
    ("gfx1010", "gfx10-1-generic"),
    ("gfx900", "gfx9-generic"),
    ("gfx1102", "gfx11-generic"),
    ("gfx942", "gfx9-4-generic"),
];

/// The results for one file or for several.
#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) files: u64,
    pub(super) bytes: u64,
    pub(super) containers: u64,
    pub(super) images: u64,
    /// Images that were compared with those of another tool.
    pub(super) compared: u64,
    /// Failures, each with its command.
    pub(super) wrong: Vec<String>,
    /// Refusals with their reasons.
    pub(super) refused: BTreeSet<String>,
    /// The targets of the outputs.
    pub(super) made: BTreeSet<String>,
    /// Outputs that were loaded.
    pub(super) loaded: u64,
    /// Milliseconds of `list`, of making all outputs, and of copying as often as there are outputs.
    pub(super) times: [f64; 3],
    /// The most resident memory of a command, KiB.
    pub(super) memory: u64,
}

pub(super) struct PackageBench {
    pub(super) session: Session,
    pub(super) hotswap: PathBuf,
    /// The machine's directory that is visible inside as [`Session::work`].
    pub(super) work: PathBuf,
}

impl Row {
    pub(super) fn failed(why: &str) -> Self {
        Self { refused: BTreeSet::from([why.to_owned()]), ..Self::default() }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.files += other.files;
        self.bytes += other.bytes;
        self.containers += other.containers;
        self.images += other.images;
        self.compared += other.compared;
        self.loaded += other.loaded;
        self.wrong.extend(other.wrong);
        self.refused.extend(other.refused);
        self.made.extend(other.made);
        self.times.iter_mut().zip(other.times).for_each(|(time, more)| *time += more);
        self.memory = self.memory.max(other.memory);
    }

    pub(super) fn text(&self) -> String {
        format!(
            "{} images, {} compared, wrong: {:?}, refused: {:?}",
            self.images, self.compared, self.wrong, self.refused
        )
    }
}

impl PackageBench {
    /// `None` for a file without device code.
    pub(super) fn file(&self, path: &Path) -> Outcome<Option<Row>> {
        let mut command = self.command(&["list", "--format", "json"], path);
        let output = command.output()?;
        let listed: Value = serde_json::from_slice(&output.stdout)?;
        let containers = listed["files"][0]["containers"].as_array().cloned().unwrap_or_default();
        let told = String::from_utf8_lossy(&output.stderr);
        if containers.is_empty() && told.contains("[HS0304]") {
            return Ok(None);
        }
        let mut row = Row {
            files: 1,
            bytes: path.metadata()?.len(),
            containers: containers.len() as u64,
            images: containers.iter().map(count_container_entries).sum(),
            ..Row::default()
        };
        row.refused.extend(reasons(&told));
        self.time(&mut row, 0, &mut self.command(&["list"], path));
        self.verify(&mut row, "the file", path);
        // The other forms are files and sections that are one image each.
        for container in containers.iter().filter(is_fat_bundle) {
            self.compare(&mut row, path, container)?;
        }
        self.change(&mut row, path, &targets(&containers))?;
        Ok(Some(row))
    }

    fn command(&self, words: &[&str], path: &Path) -> Command {
        let mut command = Command::new(&self.hotswap);
        command.args(words).arg(path).current_dir(&self.work).stdin(Stdio::null());
        command
    }

    /// Adds time and memory of a command that may fail; its diagnostics were taken before.
    fn time(&self, row: &mut Row, number: usize, command: &mut Command) {
        if let Ok(run) = measure(command) {
            row.times[number] += run.milliseconds;
            row.memory = row.memory.max(run.resident);
        }
    }

    fn verify(&self, row: &mut Row, what: &str, path: &Path) {
        let output = self.command(&["verify"], path).output();
        let told = output.map(|output| (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()));
        match told {
            Ok((true, _)) => {}
            Ok((false, told)) => {
                row.wrong
                    .extend(reasons(&told).into_iter().take(3).map(|why| format!("{what} is not verified: {why}")));
            }
            Err(error) => row.wrong.push(format!("{what}: {error}")),
        }
    }

    /// Extracts the images of a container by both tools.
    fn compare(&self, row: &mut Row, path: &Path, container: &Value) -> Outcome {
        let number = |name: &str| container[name].as_u64().unwrap_or_default();
        let mut bytes = vec![0; number("size") as usize];
        File::open(path)?.read_exact_at(&mut bytes, number("file_offset")).during("read", path)?;
        let (one, ours) = (self.work.join("one"), self.work.join("ours"));
        fs::write(&one, &bytes).during("write", &one)?;
        drop(bytes);
        let output = self.command(&["extract", "--output-dir", "ours"], &one).output()?;
        if !output.status.success() {
            let told = String::from_utf8_lossy(&output.stderr);
            row.wrong.extend(reasons(&told).into_iter().map(|why| format!("extract: {why}")));
            return Ok(());
        }
        let ids = container["entries"].as_array().into_iter().flatten().filter_map(|entry| entry["id"].as_str());
        let ids: Vec<&str> = ids.collect();
        let mut bundler = self.session.inside(&self.session.work, BUNDLER);
        let outputs = (0..ids.len()).map(|number| format!("-output=theirs.{number}"));
        bundler.args(["-unbundle", "-type=o", "-input=one"]).arg(format!("-targets={}", ids.join(","))).args(outputs);
        match run::output(&mut bundler) {
            Err(_) => drop(row.refused.insert(format!("{BUNDLER} does not read a container"))),
            Ok(_) => self.same(row, &ours, ids.len())?,
        }
        (0..ids.len()).for_each(|number| drop(fs::remove_file(self.work.join(format!("theirs.{number}")))));
        fs::remove_file(&one)?;
        fs::remove_dir_all(&ours).during("delete", &ours)
    }

    fn same(&self, row: &mut Row, ours: &Path, count: usize) -> Outcome {
        let mut found = vec![None; count];
        for entry in fs::read_dir(ours).during("read", ours)? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let number = name.split('.').nth(1).and_then(|number| number.parse::<usize>().ok()).unwrap_or_default();
            if let Some(place) = number.checked_sub(1).and_then(|number| found.get_mut(number)) {
                *place = Some(path);
            }
        }
        for (number, path) in found.iter().enumerate() {
            let theirs = fs::read(self.work.join(format!("theirs.{number}")))?;
            match path.as_ref().map(fs::read).transpose()? {
                Some(bytes) if bytes == theirs => row.compared += 1,
                _ => row.wrong.push(format!("image {} is not what {BUNDLER} takes out", number + 1)),
            }
        }
        Ok(())
    }

    /// Makes outputs, and compares the time with that of copies. Without a target, code for AMD GPUs is absent.
    fn change(&self, row: &mut Row, path: &Path, targets: &BTreeSet<String>) -> Outcome {
        let pair = PAIRS.iter().find(|(from, to)| targets.contains(*from) && !targets.contains(*to));
        let Some(keep) = targets.first().cloned() else { return Ok(()) };
        let mut steps = vec![vec!["compress".to_owned()], vec!["prune".to_owned(), "--keep".to_owned(), keep]];
        steps.extend(pair.map(|(_, to)| ["retarget", "--to", to].map(str::to_owned).to_vec()));
        let loads = self.load(path, "in.so").is_some();
        for words in steps {
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            let what = words.join(" ");
            words.extend(["-o", "out", "--allow-unchanged"]);
            let output = self.command(&words, path).output()?;
            let out = self.work.join("out");
            if !output.status.success() {
                let told = String::from_utf8_lossy(&output.stderr);
                row.refused.extend(reasons(&told).into_iter().map(|why| format!("{}: {why}", words[0])));
                continue;
            }
            row.made.insert(what.clone());
            self.verify(row, &what, &out);
            if loads {
                match self.load(&out, "out.so") {
                    Some(_) => row.loaded += 1,
                    None => row.wrong.push(format!("{what}: the output does not load, the file does")),
                }
            }
            self.time(row, 1, &mut self.command(&words, path));
            self.time(row, 2, Command::new("cp").arg(path).arg(&out));
            fs::remove_file(&out).during("delete", &out)?;
        }
        Ok(())
    }

    /// The loader's output for a library, `None` where it cannot be loaded.
    fn load(&self, path: &Path, name: &str) -> Option<String> {
        let link = self.work.join(name);
        fs::hard_link(path, &link).or_else(|_| fs::copy(path, &link).map(drop)).ok()?;
        let said = run::output(self.session.inside(&self.session.work, "./load").arg(format!("./{name}")));
        fs::remove_file(&link).ok()?;
        said.ok()
    }
}

fn is_fat_bundle(one: &&Value) -> bool {
    count_container_entries(one) > 0 && one["form"].as_str().is_some_and(|form| form.contains("bundle"))
}

fn count_container_entries(one: &Value) -> u64 {
    one["entries"].as_array().map_or(0, Vec::len) as u64
}

fn targets(containers: &[Value]) -> BTreeSet<String> {
    let entries = containers.iter().flat_map(|one| one["entries"].as_array().into_iter().flatten());
    let names = entries.filter_map(|entry| entry["target"].as_str());
    names.map(|name| name.split(':').next().unwrap_or_default().to_owned()).collect()
}

/// The errors in a command's messages, without the places, each once.
fn reasons(told: &str) -> BTreeSet<String> {
    let errors = told.lines().filter(|line| line.contains("error: ["));
    errors.filter_map(error_reason_text).collect()
}

fn error_reason_text(line: &str) -> Option<String> {
    let (_, rest) = line.split_once("error: ")?;
    let (code, rest) = rest.split_once(' ')?;
    // The place ends with the last part that is followed by a colon and a blank; the error is last except for the
    // advice.
    let what = rest.split("; ").next().unwrap_or_default();
    let parts: Vec<&str> = what.split(": ").collect();
    Some(format!("{code} {}", parts[parts.len().saturating_sub(2)..].join(": ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_lose_their_places_and_are_there_once() {
        let line = |at: &str| {
            format!("hotswap: error: [HS0408] x.so: .hip_fatbin+{at}: id: k: not safe: it is absent; compile for it\n")
        };
        let told = line("0x10") + &line("0x20") + "hotswap: warning: [HS0302] x: y\n";
        assert_eq!(reasons(&told), BTreeSet::from(["[HS0408] not safe: it is absent".to_owned()]));
    }
}
