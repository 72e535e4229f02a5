//! Pages as a user follows them: files to write, commands to type, output to expect. Text only.
//!
//! A fence ```` ```LANGUAGE FILE ```` is a file of the reader's project. In a fence ```` ```console ```` a line `$
//! COMMAND` is typed (`> ` continues it), the lines after it are its output, and a last line `? N` is its exit code
//! where that is not 0. A fence ```` ```sh ```` is a script: its commands are run together, must all succeed, and what they print is
//! not compared. A command outside of both kinds of fences is a fault of the page: fences without a language do not exist. In the output, `...` alone on a line matches any lines and `[..]` matches any text within a
//! line; hashes and long numbers are not compared. Outside of fences, the lines between `<!-- printed by: COMMAND -->`
//! and `<!-- end -->` are a command's output, too; `<!-- first: COMMAND -->` is run
//! unseen, for what a reader has of his own.

use std::ops::Range;

/// The actions of a reader, in order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    File {
        name: String,
        content: String,
    },
    Command(Typed),
    /// Types these commands into one shell.
    Script(Vec<ScriptCommand>),
    /// Runs this command, which the page does not show.
    SetUp(ScriptCommand),
    /// Commands, in that line, that nothing runs.
    Unmarked(usize),
}

/// A command of a script, with its continued lines.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ScriptCommand {
    pub(crate) words: String,
    /// The line of the page, from 1.
    pub(crate) line: usize,
}

/// A command and its expectation in the README.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Typed {
    pub(crate) words: String,
    /// The expected output, `? N` included.
    pub(crate) expected: Vec<String>,
    /// Lines of the README that contain the expected output.
    pub(crate) lines: Range<usize>,
}

const PRINTED: &str = "<!-- printed by: ";
const FIRST: &str = "<!-- first: ";

/// All steps of the text.
pub(crate) fn steps(text: &str) -> Vec<Step> {
    let lines: Vec<&str> = text.lines().collect();
    let mut steps = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(info) = lines[at].strip_prefix("```") else {
            at += 1;
            if let Some(words) = lines[at - 1].strip_prefix(PRINTED).and_then(|line| line.strip_suffix(" -->")) {
                let length = lines[at..].iter().take_while(|line| **line != "<!-- end -->").count();
                steps.push(Step::Command(typed(words.to_owned(), &lines, at..at + length)));
                at += length;
            } else if let Some(words) = lines[at - 1].strip_prefix(FIRST).and_then(|line| line.strip_suffix(" -->")) {
                steps.push(Step::SetUp(ScriptCommand { words: words.to_owned(), line: at }));
            }
            continue;
        };
        let end = lines[at + 1..].iter().position(|line| *line == "```").map_or(lines.len(), |length| at + 1 + length);
        match info.split_once(' ') {
            _ if info == "console" => console(&lines, at + 1..end, &mut steps),
            _ if info == "sh" => steps.push(Step::Script(script(&lines, at + 1..end))),
            _ if info.is_empty() => steps.push(Step::Unmarked(at + 1)),
            _ if info == "text" && lines[at + 1..end].iter().any(|line| line.starts_with("$ ")) => {
                steps.push(Step::Unmarked(at + 1));
            }
            Some((_, name)) => {
                let content = lines[at + 1..end].join("\n") + "\n";
                steps.push(Step::File { name: name.to_owned(), content });
            }
            None => {}
        }
        at = end + 1;
    }
    steps
}

/// The commands of a script; comments and empty lines are left out.
fn script(lines: &[&str], block: Range<usize>) -> Vec<ScriptCommand> {
    let mut commands: Vec<ScriptCommand> = Vec::new();
    let mut continues = false;
    for (number, line) in (block.start + 1..).zip(&lines[block]) {
        match commands.last_mut().filter(|_| continues) {
            Some(command) => command.words = format!("{}\n{line}", command.words),
            None if line.trim().is_empty() || line.starts_with('#') => {}
            None => commands.push(ScriptCommand { words: (*line).to_owned(), line: number }),
        }
        continues = line.ends_with('\\');
    }
    commands
}

fn console(lines: &[&str], block: Range<usize>, steps: &mut Vec<Step>) {
    let mut at = block.start;
    while at < block.end {
        let mut words = lines[at].strip_prefix("$ ").unwrap_or_default().to_owned();
        at += 1;
        while let Some(more) = lines[at..block.end].first().and_then(|line| line.strip_prefix("> ")) {
            words = words + "\n" + more;
            at += 1;
        }
        let length = lines[at..block.end].iter().position(|line| line.starts_with("$ "));
        let output = at..length.map_or(block.end, |length| at + length);
        at = output.end;
        if !words.is_empty() {
            steps.push(Step::Command(typed(words, lines, output)));
        }
    }
}

fn typed(words: String, text: &[&str], lines: Range<usize>) -> Typed {
    let expected = text[lines.clone()].iter().map(|line| (*line).to_owned()).collect();
    Typed { words, expected, lines }
}

/// Whether the output is as expected.
pub(crate) fn matches(expected: &[impl AsRef<str>], actual: &[impl AsRef<str>]) -> bool {
    let Some((first, rest)) = expected.split_first() else { return actual.is_empty() };
    if first.as_ref() == "..." {
        return (0..=actual.len()).any(|skipped| matches(rest, &actual[skipped..]));
    }
    let Some((line, others)) = actual.split_first() else { return false };
    line_matches(first.as_ref(), line.as_ref()) && matches(rest, others)
}

fn line_matches(pattern: &str, line: &str) -> bool {
    let (pattern, line) = (&without_hashes(pattern), &without_hashes(line));
    let parts: Vec<&str> = pattern.split("[..]").collect();
    let [head, middle @ .., last] = parts.as_slice() else { return pattern == line };
    let Some(mut rest) = line.strip_prefix(head) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// The line with every hash and every number of five digits or more replaced by `#`: they differ between versions of
/// HotSwap and of clang.
fn without_hashes(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_alphanumeric()).unwrap_or(rest.len());
        let (word, tail) = rest.split_at(end);
        let hash = word.len() >= 6 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let number = word.len() >= 5 && word.bytes().all(|byte| byte.is_ascii_digit());
        out += if number || (hash && word.contains(|c: char| c.is_ascii_digit())) { "#" } else { word };
        let mark = tail.chars().next().map_or(0, char::len_utf8);
        out += &tail[..mark];
        rest = &tail[mark..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_commands_and_their_output_are_found() {
        let text = "a\n```cmake CMakeLists.txt\nproject(x)\n```\n```console\n$ one \\\n> two\nout\n? 1\n$ three\n```\n```text\nno\n```\n";
        let steps = steps(text);
        assert_eq!(steps.len(), 3);
        assert_eq!(steps[0], Step::File { name: "CMakeLists.txt".into(), content: "project(x)\n".into() });
        let Step::Command(typed) = &steps[1] else { panic!("{steps:?}") };
        assert_eq!((typed.words.as_str(), typed.lines.clone()), ("one \\\ntwo", 7..9));
        assert_eq!(typed.expected, ["out", "? 1"]);
    }

    #[test]
    fn scripts_are_found_and_commands_that_nothing_runs_are_faults() {
        let command = |words: &str, line| ScriptCommand { words: words.into(), line };
        assert_eq!(
            steps(
                "```sh\n# x\na \\\n  b\n\nc   # d\n```\n<!-- first: e f -->\n```\n$ g\n```\n```text\n$ h\n```\n```text\nout\n```\n"
            ),
            [
                Step::Script(vec![command("a \\\n  b", 3), command("c   # d", 6)]),
                Step::SetUp(command("e f", 8)),
                Step::Unmarked(9),
                Step::Unmarked(12),
            ]
        );
    }

    #[test]
    fn printed_lines_between_comments_are_output() {
        let steps = steps("<!-- printed by: tool --help -->\n| a |\n<!-- end -->\n");
        assert_eq!(steps, [Step::Command(typed("tool --help".into(), &["", "| a |"], 1..2))]);
    }

    #[test]
    fn dots_stand_for_lines_and_brackets_for_text() {
        assert!(matches(&["a", "...", "z"], &["a", "b", "c", "z"]));
        assert!(matches(&["..."], &[] as &[&str]));
        assert!(!matches(&["a", "..."], &["b"]));
        assert!(line_matches("took [..] s", "took 1.5 s"));
        assert!(line_matches("[..]x[..]", "axb"));
        assert!(!line_matches("took [..] s", "took 1.5 ms"));
        assert!(!line_matches("ab[..]ba", "aba"));
    }

    #[test]
    fn hashes_and_sizes_may_differ() {
        assert!(line_matches("gfx1030  36920 bytes  sha256 4594b3a38899", "gfx1030  37000 bytes  sha256 0123456789ab"));
        assert!(!line_matches("gfx1030  1 kernel", "gfx1031  1 kernel"));
        assert_eq!(without_hashes("dead beefed 51c018.out «123456»"), "dead beefed #.out «#»");
    }
}
