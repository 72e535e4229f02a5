//! The task `readme`: follows the instructions of README.md and the pages of `docs`, and compares the output.
//!
//! README.md comes first; the pages follow by name and continue with its project.
//!
//! `cargo xtask …` commands are checked against the table of tasks and not run: this is one of them. All others run
//! inside the userland in an empty project directory, with `~/hotswap` being the installation, as in the README.

use crate::built::Profile;
use crate::console::{Step, Typed, matches, steps};
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{install, paths};
use clap::Parser;
use hotswap_userland::PATH;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
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
    for page in pages()? {
        complaints.extend(reader.follow(&page, bless)?);
    }
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

/// README.md, then the pages of `docs` by name.
fn pages() -> Outcome<Vec<Page>> {
    let docs = paths::workspace().join("docs");
    let entries = fs::read_dir(&docs).during("read", &docs)?.flatten();
    let names = entries.map(|entry| format!("docs/{}", entry.file_name().to_string_lossy()));
    let mut names: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    names.sort();
    names.insert(0, "README.md".to_owned());
    names.into_iter().map(Page::read).collect()
}

/// The user that follows the pages.
struct Reader<'a> {
    session: &'a Session,
    /// The project directory, as a path on the machine and inside the userland.
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

    /// Follows the page and returns the differences; with `bless` they are written into the page.
    fn follow(&self, page: &Page, bless: bool) -> Outcome<Vec<String>> {
        let (mut complaints, mut changes) = (Vec::new(), Vec::new());
        for step in steps(&page.text) {
            match step {
                Step::File { name, content } => self.write(&name, &content)?,
                Step::Command(typed) if typed.words.starts_with("cargo xtask ") => {
                    complaints.extend(unknown_task(&page.name, &typed));
                }
                Step::Command(typed) => {
                    let actual = self.type_in(&typed)?;
                    if !matches(&typed.expected, &actual) {
                        complaints.push(difference(&page.name, &typed, &actual));
                        changes.push((typed.lines, actual));
                    }
                }
            }
        }
        if !bless || changes.is_empty() {
            return Ok(complaints);
        }
        let path = paths::workspace().join(&page.name);
        fs::write(&path, replace_lines(&page.text, changes)).during("write", &path)?;
        Ok(Vec::new())
    }

    fn write(&self, name: &str, content: &str) -> Outcome {
        let file = self.outside.join(name);
        let directory = file.parent().unwrap_or(&self.outside);
        fs::create_dir_all(directory).during("create", directory)?;
        fs::write(&file, content).during("write", &file)
    }

    /// Lines of standard output and error together, and `? N` for an exit code that is not 0.
    fn type_in(&self, typed: &Typed) -> Outcome<Vec<String>> {
        println!("$ {}", typed.words);
        let mut command: Command = self.session.inside(&self.inside, "/bin/sh");
        command.args(["-c", &format!("{{ {}\n}} 2>&1", typed.words)]).env("HOME", &self.home);
        // The README does not require HotSwap on PATH.
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

fn unknown_task(page: &str, typed: &Typed) -> Option<String> {
    let name = typed.words.split_whitespace().nth(2)?;
    let known = crate::task_names().any(|task| task == name);
    (!known).then(|| format!("{page}:{}: there is no task `{name}`", typed.lines.start))
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
        for name in ["ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(str::to_owned) {
            let page = Page::read(name).unwrap();
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
        assert!(
            !leads_somewhere(&page, "docs/no-such-page.md") && !leads_somewhere(&page, "README.md#no-such-heading")
        );
    }

    #[test]
    fn only_tasks_of_the_table_are_known() {
        let typed = |words: &str| Typed { words: words.into(), expected: vec![], lines: 1..1 };
        assert_eq!(unknown_task("README.md", &typed("cargo xtask test --quick")), None);
        assert!(unknown_task("README.md", &typed("cargo xtask tset")).is_some());
    }
}
