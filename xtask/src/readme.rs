//! The task `readme`: follows the instructions of README.md and the pages of `docs`, and compares the output.
//!
//! README.md comes first; the pages follow in the order of docs/SUMMARY.md and continue with its project; the READMEs of the examples are followed in
//! directories of their own.
//!
//! `cargo xtask …` commands are checked against the table of tasks and not run: this is one of them. All others run
//! inside the userland in a project directory, which is empty but for links to the clone's `examples` and `crates`, with `~/hotswap`
//! being the installation, as in the README. The commands of [`not_run`] are left out and counted. Commands in sentences are checked
//! against the help of the programs ([`spans`]).

mod not_run;
mod spans;

use crate::built::Profile;
use crate::console::{ScriptCommand, Step, Typed, matches, steps};
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths};
use clap::Parser;
use hotswap_userland::PATH;
use not_run::{NOT_RUN, row_of};
use spans::HelpTexts;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Does what README.md and docs tell a user, and compares what comes out.
#[derive(Parser)]
struct Options {
    /// Write what came out into the pages where it differs.
    #[arg(long)]
    bless: bool,
    /// Use this installation in place of a new build.
    #[arg(long, value_name = "PREFIX")]
    installed: Option<PathBuf>,
}

pub(crate) fn main(words: Vec<String>) -> Outcome {
    let options = Options::parse_from(words);
    let prefix = options.installed.as_deref().map_or_else(|| Ok(paths::scratch("prefix")), fs::canonicalize)?;
    let session = Session::open(Part::Tests, &prefix, &paths::scratch("work"))?;
    if options.installed.is_none() {
        install::install(&prefix, Profile::Dist, session.clang().as_deref())?;
    }
    check(&session, options.bless)?;
    println!("README.md and docs: every command does what it says");
    Ok(())
}

/// Follows README.md and the pages of `docs`. With `bless` differences are written into them, otherwise they are
/// failures.
pub(crate) fn check(session: &Session, bless: bool) -> Outcome {
    let reader = Reader::new(session)?;
    let mut complaints = Vec::new();
    for page in pages()?.into_iter().chain(example_pages()?) {
        complaints.extend(reader.follow(&page, bless)?);
    }
    complaints.extend(reader.unused_rows());
    println!(
        "pages: {} commands were run, {} of {} rows of commands that are not",
        reader.count.get(),
        reader.skipped.borrow().len(),
        NOT_RUN.len()
    );
    if complaints.is_empty() { Ok(()) } else { fail(complaints.join("\n")) }
}

/// A text that a user reads.
struct Page {
    /// Below the workspace.
    name: String,
    text: String,
}

impl Page {
    fn read(name: String) -> Outcome<Self> {
        let path = paths::workspace().join(&name);
        Ok(Self { text: fs::read_to_string(&path).during("read", &path)?, name })
    }
}

/// README.md, then the pages of `docs` in the book's order.
fn pages() -> Outcome<Vec<Page>> {
    let summary = Page::read("docs/SUMMARY.md".to_owned())?.text;
    let listed = summary.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let names = listed.map(|page| format!("docs/{page}"));
    ["README.md".to_owned()].into_iter().chain(names).map(Page::read).collect()
}

/// The READMEs of the examples.
fn example_pages() -> Outcome<Vec<Page>> {
    let directory = paths::workspace().join("examples");
    let entries = fs::read_dir(&directory).during("read", &directory)?.flatten();
    let names = entries.map(|entry| format!("examples/{}/README.md", entry.file_name().to_string_lossy()));
    let mut names: Vec<String> = names.filter(|name| paths::workspace().join(name).exists()).collect();
    names.sort();
    names.into_iter().map(Page::read).collect()
}

/// The user that follows the pages.
struct Reader<'a> {
    session: &'a Session,
    /// The home directory, as a path on the machine and inside the userland.
    outside: PathBuf,
    home: PathBuf,
    /// Commands that were run.
    count: Cell<usize>,
    /// Rows of [`NOT_RUN`] that were used.
    skipped: RefCell<BTreeSet<usize>>,
}

/// The directory of the project that a page works on, in the reader's home.
fn project_of(page: &str) -> String {
    match page.strip_prefix("examples/").and_then(|rest| rest.split('/').next()) {
        Some(example) => format!("example-{example}"),
        None => "project".to_owned(),
    }
}

impl<'a> Reader<'a> {
    fn new(session: &'a Session) -> Outcome<Self> {
        let outside = paths::scratch("work").join("readme");
        let _ = fs::remove_dir_all(&outside); // of an earlier run
        fs::create_dir_all(&outside).during("create", &outside)?;
        symlink(&session.prefix, outside.join("hotswap")).during("link", &outside)?;
        let home = session.work.join("readme");
        Ok(Self { session, outside, home, count: Cell::default(), skipped: RefCell::default() })
    }

    /// The page's project on the machine, with the clone's directories that commands name.
    fn project(&self, page: &str) -> Outcome<PathBuf> {
        let project = self.outside.join(project_of(page));
        if !project.exists() {
            fs::create_dir_all(&project).during("create", &project)?;
            for name in ["examples", "crates"] {
                symlink(self.session.source.join(name), project.join(name)).during("link", &project)?;
            }
        }
        Ok(project)
    }

    /// Follows the page and returns the differences; with `bless` they are written into the page.
    fn follow(&self, page: &Page, bless: bool) -> Outcome<Vec<String>> {
        let project = self.project(&page.name)?;
        let (mut complaints, mut differences, mut changes) = (self.faulty_spans(page), Vec::new(), Vec::new());
        for step in steps(&page.text) {
            match step {
                Step::File { name, content } => write(&project, &name, &content)?,
                Step::Script(commands) => complaints.extend(self.run_script(page, commands)?),
                Step::SetUp(command) => complaints.extend(self.run_script(page, vec![command])?),
                Step::Unmarked(line) => {
                    complaints
                        .push(format!("{}:{line}: commands in a fence that is neither `console` nor `sh`", page.name));
                }
                Step::Command(typed) if typed.words.starts_with("cargo xtask ") => {
                    complaints.extend(unknown_task(&page.name, &typed.words, typed.lines.start));
                }
                Step::Command(typed) if self.is_left_out(page, &typed.words) => {}
                Step::Command(typed) => {
                    let actual = self.type_in(page, &typed.words)?;
                    if !matches(&typed.expected, &actual) {
                        differences.push(difference(&page.name, &typed, &actual));
                        changes.push((typed.lines, actual));
                    }
                }
            }
        }
        if !bless {
            complaints.extend(differences);
        } else if !changes.is_empty() {
            let path = paths::workspace().join(&page.name);
            fs::write(&path, replace_lines(&page.text, changes)).during("write", &path)?;
        }
        Ok(complaints)
    }

    /// Whether the command is one that is not run.
    fn is_left_out(&self, page: &Page, words: &str) -> bool {
        let row = row_of(&page.name, words);
        self.skipped.borrow_mut().extend(row);
        row.is_some()
    }

    fn unused_rows(&self) -> Vec<String> {
        let skipped = self.skipped.borrow();
        let unused = NOT_RUN.iter().enumerate().filter(|(number, _)| !skipped.contains(number));
        unused.map(|(_, row)| format!("{}: has no command `{}` that would not be run", row.page, row.start)).collect()
    }

    /// Runs the commands in one shell, which the first failure ends.
    fn run_script(&self, page: &Page, commands: Vec<ScriptCommand>) -> Outcome<Option<String>> {
        let (tasks, others): (Vec<_>, Vec<_>) =
            commands.into_iter().partition(|command| command.words.starts_with("cargo xtask "));
        if let Some(unknown) = tasks.iter().find_map(|task| unknown_task(&page.name, &task.words, task.line)) {
            return Ok(Some(unknown));
        }
        let kept: Vec<_> = others.into_iter().filter(|command| !self.is_left_out(page, &command.words)).collect();
        let Some(first) = kept.first() else { return Ok(None) };
        let text: Vec<&str> = kept.iter().map(|command| command.words.as_str()).collect();
        let output = self.type_in(page, &format!("set -ex\n{}", text.join("\n")))?;
        let failed = output.last().is_some_and(|line| line.starts_with("? "));
        Ok(failed.then(|| format!("{}:{}: the script fails:\n    {}", page.name, first.line, output.join("\n    "))))
    }

    /// Lines of standard output and error together, and `? N` for an exit code that is not 0.
    fn type_in(&self, page: &Page, words: &str) -> Outcome<Vec<String>> {
        println!("$ {words}");
        self.count.set(self.count.get() + 1);
        let mut command: Command = self.session.inside(&self.home.join(project_of(&page.name)), "/bin/sh");
        command.args(["-c", &format!("{{ {words}\n}} 2>&1")]).env("HOME", &self.home);
        let path = if self.session.userland.is_machine() { std::env::var("PATH")? } else { PATH.to_owned() };
        // The README does not require HotSwap on PATH; the pages do, for brevity.
        let is_first = page.name == "README.md";
        let path = if is_first { path } else { format!("{}:{path}", self.home.join("hotswap/bin").display()) };
        let output = command.env("PATH", path).output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let mut lines: Vec<String> = text.lines().map(|line| line.trim_end().to_owned()).collect();
        if !output.status.success() {
            lines.push(format!("? {}", output.status.code().unwrap_or(-1)));
        }
        Ok(lines)
    }

    /// Commands in sentences whose subcommand or options do not exist.
    fn faulty_spans(&self, page: &Page) -> Vec<String> {
        let print = |command: &str| self.help_of(command);
        let type_in = |command: &str| self.misunderstood(command);
        let helps = HelpTexts::new(&print, &type_in);
        let fault = |span: &spans::CodeSpan| {
            let fault = match span.text.strip_prefix("cargo xtask ") {
                Some(_) => return unknown_task(&page.name, &span.text, span.line),
                None => helps.fault(&span.text)?,
            };
            Some(format!("{}:{}: `{}`: {fault}", page.name, span.line, span.text))
        };
        spans::spans(&page.text).iter().filter_map(fault).collect()
    }

    /// The message about a command whose words are not understood (exit code 2), typed where there are no files.
    fn misunderstood(&self, command: &str) -> Option<String> {
        let elsewhere = self.outside.join("elsewhere");
        fs::create_dir_all(&elsewhere).ok()?;
        let command = format!("{}/{command}", self.session.prefix.join("bin").display());
        let output =
            self.session.inside(&self.home.join("elsewhere"), "/bin/sh").args(["-c", &command]).output().ok()?;
        (output.status.code() == Some(2)).then(|| String::from_utf8_lossy(&output.stderr).trim().to_owned())
    }

    fn help_of(&self, command: &str) -> Option<String> {
        let command = format!("{}/{command}", self.session.prefix.join("bin").display());
        let output = self.session.inside(&self.home, "/bin/sh").args(["-c", &command]).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

fn write(project: &Path, name: &str, content: &str) -> Outcome {
    let file = project.join(name);
    let directory = file.parent().unwrap_or(project);
    fs::create_dir_all(directory).during("create", directory)?;
    fs::write(&file, content).during("write", &file)
}

fn unknown_task(page: &str, words: &str, line: usize) -> Option<String> {
    let name =
        words.split_whitespace().nth(2).filter(|name| name.starts_with(|first: char| first.is_ascii_lowercase()))?;
    let known = crate::task_names().any(|task| task == name);
    (!known).then(|| format!("{page}:{line}: there is no task `{name}`"))
}

fn difference(page: &str, typed: &Typed, actual: &[String]) -> String {
    let (expected, actual) = (typed.expected.join("\n    "), actual.join("\n    "));
    format!(
        "{page}:{}: `{}`\n  should print\n    {expected}\n  and printed\n    {actual}",
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

    /// Exit codes of the diagnostics' table that no row of a table explains.
    fn missing_exit_codes(text: &str) -> Vec<u8> {
        let mut codes: Vec<u8> = hotswap_report::codes::CODES.iter().map(|code| code.exit).collect();
        codes.sort_unstable();
        codes.dedup();
        codes.retain(|code| !text.lines().any(|line| line.starts_with(&format!("| {code} | "))));
        codes
    }

    #[test]
    fn every_exit_code_is_explained() {
        let text: String = pages().unwrap().into_iter().map(|page| page.text).collect();
        assert_eq!(missing_exit_codes(&text), [] as [u8; 0]);
        assert!(!missing_exit_codes("").is_empty());
    }

    /// Targets of links in the text, outside of fences.
    fn links(text: &str) -> Vec<&str> {
        let mut fenced = false;
        let mut found = Vec::new();
        for line in text.lines() {
            fenced ^= line.starts_with("```");
            let targets = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
            found.extend(targets.filter(|_| !fenced));
        }
        found
    }

    /// The name of a heading's anchor.
    fn anchor(heading: &str) -> String {
        let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_');
        heading.to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
    }

    fn has_anchor(text: &str, wanted: &str) -> bool {
        let headings = text.lines().filter(|line| line.starts_with('#'));
        headings.map(|line| line.trim_start_matches('#').trim()).any(|heading| anchor(heading) == wanted)
    }

    fn leads_somewhere(page: &Page, link: &str) -> bool {
        let (file, part) = link.split_once('#').unwrap_or((link, ""));
        let own = paths::workspace().join(&page.name);
        let path = if file.is_empty() { own } else { own.parent().unwrap().join(file) };
        let in_file = || fs::read_to_string(&path).is_ok_and(|text| has_anchor(&text, part));
        link.contains("://") || path.exists() && (part.is_empty() || in_file())
    }

    #[test]
    fn every_link_leads_somewhere() {
        let others = [
            "ARCHITECTURE.md",
            "CONTRIBUTING.md",
            "CHANGELOG.md",
            "SECURITY.md",
            "docs/SUMMARY.md",
            "packaging/README.md",
        ];
        let others = others.map(|name| Page::read(name.to_owned()).unwrap());
        for page in others.into_iter().chain(example_pages().unwrap()) {
            let dead: Vec<_> = links(&page.text).into_iter().filter(|link| !leads_somewhere(&page, link)).collect();
            assert_eq!(dead, [""; 0], "{}", page.name);
        }
        let mut seen = 0;
        for page in pages().unwrap() {
            let dead: Vec<_> = links(&page.text).into_iter().filter(|link| !leads_somewhere(&page, link)).collect();
            assert_eq!(dead, [""; 0], "{}", page.name);
            seen += links(&page.text).len();
        }
        assert!(seen > 20, "{seen}");
        let page = Page { name: "README.md".into(), text: String::new() };
        assert!(!leads_somewhere(&page, "docs/no-such-page") && !leads_somewhere(&page, "README.md#no-such-heading"));
    }

    #[test]
    fn only_tasks_of_the_table_are_known() {
        assert_eq!(unknown_task("README.md", "cargo xtask test --quick", 1), None);
        assert!(unknown_task("README.md", "cargo xtask tset", 1).is_some());
    }
}
