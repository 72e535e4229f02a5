//! The task `readme`: does what README.md tells a new user, and compares what comes out.
//!
//! `cargo xtask …` commands are checked against the table of tasks and not run: this is one of
//! them. All others run inside the userland in an empty project folder, with `~/hotswap` being the
//! installation, as the README has it.

use crate::console::{Step, Typed, matches, steps};
use crate::outcome::{During, Outcome, fail};
use crate::session::Session;
use crate::{install, paths};
use clap::Parser;
use hotswap_userland::PATH;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;

/// Does what README.md tells a new user, and compares what comes out.
#[derive(Parser)]
struct Options {
    /// Write what came out into README.md where it differs.
    #[arg(long)]
    bless: bool,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let session = Session::open(&paths::scratch("prefix"), &paths::scratch("work"))?;
    install::install(&paths::scratch("prefix"), true, session.clang().as_deref())?;
    check(&session, options.bless)?;
    println!("README.md: every command does what it says");
    Ok(())
}

/// Goes through README.md. With `bless` differences are written into it, otherwise they are failures.
pub(crate) fn check(session: &Session, bless: bool) -> Outcome {
    let path = paths::workspace().join("README.md");
    let text = fs::read_to_string(&path).during("read", &path)?;
    let reader = Reader::new(session)?;
    let mut complaints = missing_exit_codes(&text);
    let mut changes = Vec::new();
    for step in steps(&text) {
        match step {
            Step::File { name, content } => {
                let file = reader.outside.join(name);
                let folder = file.parent().unwrap_or(&reader.outside);
                fs::create_dir_all(folder).during("create", folder)?;
                fs::write(&file, content).during("write", &file)?;
            }
            Step::Command(typed) if typed.words.starts_with("cargo xtask ") => complaints.extend(unknown_task(&typed)),
            Step::Command(typed) => {
                let actual = reader.type_in(&typed)?;
                if !matches(&typed.expected, &actual) {
                    complaints.push(difference(&typed, &actual));
                    changes.push((typed.lines, actual));
                }
            }
        }
    }
    if bless && !changes.is_empty() {
        let text = replace_lines(&text, changes);
        return fs::write(&path, text).during("write", &path);
    }
    if complaints.is_empty() { Ok(()) } else { fail(complaints.join("\n")) }
}

/// Somebody who follows the README.
struct Reader<'a> {
    session: &'a Session,
    /// The project folder, as the machine and as the userland sees it.
    outside: PathBuf,
    inside: PathBuf,
    home: PathBuf,
}

impl<'a> Reader<'a> {
    fn new(session: &'a Session) -> Outcome<Self> {
        let home = paths::scratch("work").join("readme");
        let _ = fs::remove_dir_all(&home); // of an earlier run
        let outside = home.join("project");
        fs::create_dir_all(&outside).during("create", &outside)?;
        symlink(&session.prefix, home.join("hotswap")).during("link", &home)?;
        let home = session.work.join("readme");
        Ok(Self { session, outside, inside: home.join("project"), home })
    }

    /// Lines of standard output and error together, and `? N` for an exit code that is not 0.
    fn type_in(&self, typed: &Typed) -> Outcome<Vec<String>> {
        println!("$ {}", typed.words);
        let mut command: Command = self.session.inside(&self.inside, "/bin/sh");
        command.args(["-c", &format!("{{ {}\n}} 2>&1", typed.words)]).env("HOME", &self.home);
        // The README does not ask for HotSwap on PATH.
        let path = if self.session.userland.is_machine() { std::env::var("PATH")? } else { PATH.to_owned() };
        let output = command.env("PATH", path).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        if !output.status.success() {
            lines.push(format!("? {}", output.status.code().unwrap_or(-1)));
        }
        Ok(lines)
    }
}

/// Exit codes of the diagnostics' table that no row of the README explains.
fn missing_exit_codes(text: &str) -> Vec<String> {
    let mut codes: Vec<u8> = hotswap_report::codes::CODES.iter().map(|code| code.exit).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.retain(|code| !text.lines().any(|line| line.starts_with(&format!("| {code} | "))));
    codes.iter().map(|code| format!("README.md: exit code {code} is not explained")).collect()
}

fn unknown_task(typed: &Typed) -> Option<String> {
    let name = typed.words.split_whitespace().nth(2)?;
    let known = crate::task_names().any(|task| task == name);
    (!known).then(|| format!("README.md:{}: there is no task `{name}`", typed.lines.start))
}

fn difference(typed: &Typed, actual: &[String]) -> String {
    let (expected, actual) = (typed.expected.join("\n    "), actual.join("\n    "));
    format!(
        "README.md:{}: `{}`\n  should print\n    {expected}\n  and printed\n    {actual}",
        typed.lines.start, typed.words
    )
}

fn replace_lines(text: &str, changes: Vec<(std::ops::Range<usize>, Vec<String>)>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    for (range, new) in changes.into_iter().rev() {
        lines.splice(range, new);
    }
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blessed_lines_take_the_place_of_old_ones() {
        let text = "$ a\nold\n$ b\n";
        assert_eq!(
            replace_lines(text, vec![(1..2, vec!["new".into(), "er".into()]), (3..3, vec!["x".into()])]),
            "$ a\nnew\ner\n$ b\nx\n"
        );
    }

    #[test]
    fn every_exit_code_is_in_the_readme() {
        let text = fs::read_to_string(paths::workspace().join("README.md")).unwrap();
        assert_eq!(missing_exit_codes(&text), [] as [&str; 0]);
        assert!(!missing_exit_codes("").is_empty());
    }

    #[test]
    fn only_tasks_of_the_table_are_known() {
        let typed = |words: &str| Typed { words: words.into(), expected: vec![], lines: 1..1 };
        assert_eq!(unknown_task(&typed("cargo xtask test --quick")), None);
        assert!(unknown_task(&typed("cargo xtask tset")).is_some());
    }
}
