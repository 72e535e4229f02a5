//! The task `additions`: whether anything can be forgotten when a GPU, an option of plans, a form of containers or a patch family
//! is added. It adds each in a copy of the sources, where all checks pass, and then leaves out one part after the other: each
//! time a check must fail, with words that tell what is missing. The table goes to `docs/evidence/additions.md`.
//!
//! Invariants: the workspace is not written but for the page; a text that a row replaces is there exactly once, so that a row
//! that the code has left behind fails instead of changing nothing.
//!
//! Absent on purpose: checks that need the userland, which come later than the first `cargo test` of someone who adds something.

mod table;

use crate::outcome::{During, Outcome, fail};
use crate::{new_family, paths, remove, sources};
use clap::Parser;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use table::{ADDITIONS, Addition, Change, Omission};

/// Adds a GPU, an option, a container and a family in a copy of the sources, leaves out each part, and writes docs/evidence/additions.md.
#[derive(Parser)]
struct Options {
    /// Only additions whose name contains this; nothing is written then.
    filter: Option<String>,
}

const PAGE: &str = "docs/evidence/additions.md";

const INTRODUCTION: &str = "\
# What cannot be forgotten when something is added

<!-- Written by `cargo xtask additions`; do not edit. -->

For contributors: the parts of an addition, and the words by which a check tells that one is missing. The task adds a GPU, an option
of plans, a form of containers and a patch family in a copy of the sources, where all checks pass. Then it leaves out one part at a
time: a check must fail, with the words of the last column. The checks need neither the userland nor a GPU; those that need it
come on top ([tests](tests.md)).
";

/// The copy of the sources, and where it is built.
struct Copy {
    tree: PathBuf,
    target: PathBuf,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let mut page = INTRODUCTION.to_owned();
    let mut silent = Vec::new();
    for addition in ADDITIONS.iter().filter(|one| options.filter.as_ref().is_none_or(|part| one.what.contains(part))) {
        let copy = Copy::create()?;
        let rows = examine(&copy, addition, &mut silent)?;
        let _ = write!(page, "\n## {}\n\n{}", capitalized(addition.what), rows);
    }
    if !silent.is_empty() {
        return fail(silent.join("\n"));
    }
    if options.filter.is_none() {
        let file = paths::workspace().join(PAGE);
        fs::write(&file, page).during("write", &file)?;
    }
    println!("additions: every part that is left out is told");
    Ok(())
}

fn capitalized(text: &str) -> String {
    let (first, rest) = text.split_at(1);
    first.to_uppercase() + rest
}

/// The rows of an addition. Omissions that no check tells are added to `silent`.
fn examine(copy: &Copy, addition: &Addition, silent: &mut Vec<String>) -> Outcome<String> {
    println!("{}", addition.what);
    copy.prepare(addition)?;
    if let Some(output) = copy.failing_check(addition)? {
        return fail(format!("{}: the checks fail with all parts there:\n{output}", addition.what));
    }
    let checks: Vec<String> = addition.checks.iter().map(|words| format!("`cargo {}`", words.join(" "))).collect();
    let mut rows = format!("Checks: {}\n\n| left out | what a check says |\n| --- | --- |\n", checks.join(", "));
    for omission in addition.omissions {
        let told = copy.without(addition, omission)?;
        println!("  without {}: {}", omission.part, if told { omission.told } else { "NOT TOLD" });
        if !told {
            silent.push(format!("{} without {}: no check says `{}`", addition.what, omission.part, omission.told));
        }
        let _ = writeln!(rows, "| {} | {} |", omission.part, code_span(omission.told));
    }
    Ok(rows)
}

/// Markdown's code, which may have a backtick in it.
fn code_span(text: &str) -> String {
    if text.contains('`') { format!("`` {text} ``") } else { format!("`{text}`") }
}

impl Copy {
    /// A copy of all files that are or may become part of a commit. What was built of an earlier copy is used again.
    fn create() -> Outcome<Self> {
        let (tree, target) = (paths::scratch("additions/sources"), paths::scratch("additions/target"));
        remove::delete(&tree)?;
        for name in sources::committable_files(paths::workspace())? {
            let (from, to) = (paths::workspace().join(&name), tree.join(&name));
            let parent = to.parent().unwrap_or(&tree);
            fs::create_dir_all(parent).during("create", parent)?;
            if from.is_file() && !from.is_symlink() {
                fs::copy(&from, &to).during("copy", &from)?;
            }
        }
        Ok(Self { tree, target })
    }

    fn prepare(&self, addition: &Addition) -> Outcome {
        if let Some(family) = addition.family {
            let directory = self.tree.join("crates/retarget/families");
            let words = ["new-family", family, "--directory", &directory.to_string_lossy()];
            new_family::main(words.map(str::to_owned).to_vec())?;
        }
        for change in addition.changes {
            self.apply(change)?;
        }
        for words in addition.blessing {
            let output = self.cargo(words, true)?;
            if !output.is_success {
                return fail(format!("{}: `cargo {}` failed:\n{}", addition.what, words.join(" "), output.text));
            }
        }
        Ok(())
    }

    /// Whether a check tells what is missing without that part, which is there again afterwards.
    fn without(&self, addition: &Addition, omission: &Omission) -> Outcome<bool> {
        let mut kept = Vec::new();
        for change in omission.changes {
            let file = self.tree.join(change.file());
            kept.push((file.clone(), fs::read(&file).during("read", &file)?));
            self.apply(change)?;
        }
        let failure = self.failing_check(addition)?;
        for (file, text) in kept.into_iter().rev() {
            fs::write(&file, text).during("write", &file)?;
        }
        Ok(failure.is_some_and(|output| output.contains(omission.told)))
    }

    fn apply(&self, change: &Change) -> Outcome {
        let file = self.tree.join(change.file());
        match change {
            Change::Create { text, .. } => fs::write(&file, text).during("write", &file),
            Change::Remove { .. } => fs::remove_file(&file).during("remove", &file),
            Change::Restore { file: name } => {
                let before = paths::workspace().join(name);
                fs::copy(&before, &file).during("copy", &before).map(drop)
            }
            Change::CopyRow { old, new, .. } => copy_row(&file, old, new),
            Change::Insert { text, place, .. } => replace_once(&file, place, &format!("{text}{place}")),
            Change::Replace { old, new, .. } => replace_once(&file, old, new),
        }
    }

    /// The output of all checks that fail.
    fn failing_check(&self, addition: &Addition) -> Outcome<Option<String>> {
        let mut failures = String::new();
        for words in addition.checks {
            let output = self.cargo(words, false)?;
            if !output.is_success {
                failures += &output.text;
            }
        }
        Ok(Some(failures).filter(|failures| !failures.is_empty()))
    }

    fn cargo(&self, words: &[&str], is_blessing: bool) -> Outcome<CargoOutput> {
        let mut command = Command::new(paths::cargo());
        command.current_dir(&self.tree).args(words).env("CARGO_TARGET_DIR", &self.target);
        command.env("CARGO_INCREMENTAL", "0").env("RUST_BACKTRACE", "0").stdin(Stdio::null());
        if is_blessing {
            command.env(hotswap_userland::ENV_BLESS, "1");
        }
        let output = hotswap_files::command_output(&mut command).during("start", Path::new("cargo"))?;
        let text = [output.stdout, output.stderr].map(|part| String::from_utf8_lossy(&part).into_owned()).concat();
        Ok(CargoOutput { is_success: output.status.success(), text })
    }
}

fn copy_row(file: &Path, old: &str, new: &str) -> Outcome {
    let text = fs::read_to_string(file).during("read", file)?;
    let mut lines = text.split_inclusive('\n').skip_while(|line| !line.starts_with(old));
    let Some(first) = lines.next() else { return fail(format!("{}: no row `{old}`", file.display())) };
    let row: String = std::iter::once(first).chain(lines.take_while(|line| line.starts_with(' '))).collect();
    replace_once(file, &row, &format!("{row}{}", row.replacen(old, new, 1)))
}

fn replace_once(file: &Path, old: &str, new: &str) -> Outcome {
    let text = fs::read_to_string(file).during("read", file)?;
    match text.matches(old).count() {
        1 => fs::write(file, text.replace(old, new)).during("write", file),
        count => fail(format!("{}: `{old}` is there {count} times instead of once", file.display())),
    }
}

struct CargoOutput {
    is_success: bool,
    text: String,
}

impl Change {
    fn file(&self) -> &'static str {
        match self {
            Self::Create { file, .. } | Self::Remove { file } | Self::Restore { file } => file,
            Self::CopyRow { file, .. } | Self::Insert { file, .. } | Self::Replace { file, .. } => file,
        }
    }
}
