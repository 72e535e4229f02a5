//! Commands in the sentences and tables of a page: whether their subcommands and options exist, by the help of the program itself.
//!
//! A whole command line, without placeholders, is typed where none of its files are: then only its words can be wrong.
//!
//! Absent on purpose: the effect of these commands. In a sentence a command is often a part of one.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// A span of code outside of fences.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CodeSpan {
    /// The line of the page where it begins, from 1.
    pub(super) line: usize,
    /// Its text, without the line ends in it.
    pub(super) text: String,
}

/// The spans of a page. A paragraph ends each of them, as in Markdown.
pub(super) fn spans(text: &str) -> Vec<CodeSpan> {
    let (mut is_fenced, mut open) = (false, None::<CodeSpan>);
    let mut found = Vec::new();
    for (line, content) in (1..).zip(text.lines()) {
        is_fenced ^= content.starts_with("```");
        if is_fenced || content.is_empty() || content.starts_with("```") {
            open = None;
            continue;
        }
        for (number, part) in content.split('`').enumerate() {
            if number > 0 {
                match open.take() {
                    Some(span) => found.push(span),
                    None => open = Some(CodeSpan { line, text: String::new() }),
                }
            }
            if let Some(span) = &mut open {
                span.text += &if number == 0 { format!(" {}", part.trim_start()) } else { part.to_owned() };
            }
        }
    }
    found
}

/// The help of commands, each printed once.
pub(super) struct HelpTexts<'p> {
    /// Prints the help of `hotswap` with these words, or that of `hotswap-clang++`.
    print: &'p dyn Fn(&str) -> Option<String>,
    /// Types a command line in a place without files; its message if the words are not understood.
    type_in: &'p dyn Fn(&str) -> Option<String>,
    known: RefCell<BTreeMap<String, Option<String>>>,
}

impl<'p> HelpTexts<'p> {
    pub(super) fn new(print: &'p dyn Fn(&str) -> Option<String>, type_in: &'p dyn Fn(&str) -> Option<String>) -> Self {
        Self { print, type_in, known: RefCell::default() }
    }

    fn of_command(&self, command: &str) -> Option<String> {
        let mut known = self.known.borrow_mut();
        known.entry(command.to_owned()).or_insert_with(|| (self.print)(command)).clone()
    }

    /// The fault of a command in a sentence, if it has one.
    pub(super) fn fault(&self, command: &str) -> Option<String> {
        let words: Vec<&str> = command.split_whitespace().take_while(|word| *word != "--").collect();
        let (name, options) = match words.first().copied()? {
            "hotswap" => (subcommand(&words)?, "--"),
            "hotswap-clang" | "hotswap-clang++" => ("hotswap-clang++ --hotswap-help".to_owned(), "--hotswap-"),
            _ => return None,
        };
        let Some(help) = self.of_command(&name) else { return Some(format!("`{name}` does not exist")) };
        let own = words.iter().filter(|word| word.starts_with(options));
        let names = own.map(|word| word.split(['=', ',', ']']).next().unwrap_or_default());
        if let Some(missing) = names.into_iter().find(|option| !has_option(&help, option)) {
            return Some(format!("`{name}` has no option {missing}"));
        }
        if is_whole(command) { (self.type_in)(command) } else { None }
    }
}

/// `hotswap SUBCOMMAND --help`, with both words of `profile` and its like; nothing for `hotswap` alone and for placeholders.
fn subcommand(words: &[&str]) -> Option<String> {
    let first = words.get(1).filter(is_subcommand_word)?;
    let second = words.get(2).filter(|_| *first == "profile").filter(is_subcommand_word);
    Some(match second {
        Some(second) => format!("hotswap {first} {second} --help"),
        None => format!("hotswap {first} --help"),
    })
}

fn is_subcommand_word(word: &&&str) -> bool {
    word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
}

/// Commands that would work for long, or for the whole system, whatever the directory.
const LONG: [&str; 3] = ["doctor", "serve", "toolchain"];

/// Whether the text is a command line as it would be typed: a command of `hotswap` with a file or a GPU, and no placeholder.
fn is_whole(command: &str) -> bool {
    let words: Vec<&str> = command.split_whitespace().collect();
    let is_command = words.len() > 2 && words[0] == "hotswap" && !LONG.contains(&words[1]);
    is_command
        && words[2..].iter().any(is_operand_word)
        && !words.iter().flat_map(|word| word.split(['=', ','])).any(is_placeholder)
}

fn is_operand_word(word: &&str) -> bool {
    word.contains(['.', '/']) || word.starts_with("gfx")
}

fn is_placeholder(word: &str) -> bool {
    let letters = word.trim_matches(|other: char| !other.is_alphanumeric());
    word.contains(['…', '[', '<']) || letters.len() > 1 && letters.bytes().all(is_placeholder_byte)
}

fn is_placeholder_byte(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte == b'-'
}

fn has_option(help: &str, option: &str) -> bool {
    help.match_indices(option).any(|(at, _)| ends_option_name(&help[at + option.len()..]))
}

fn ends_option_name(rest: &str) -> bool {
    !rest.starts_with(|next: char| next.is_alphanumeric() || next == '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_those_outside_of_fences() {
        let text = "a `b c` d `e`\n```sh\n`x`\n```\n`f\n  g` h `i\n\nj `k`";
        let found = spans(text);
        let found: Vec<_> = found.iter().map(|span| (span.line, span.text.as_str())).collect();
        assert_eq!(found, [(1, "b c"), (1, "e"), (5, "f g"), (8, "k")]);
    }

    #[test]
    fn options_that_do_not_exist_are_found() {
        let print = |command: &str| match command {
            "hotswap list --help" => Some("--format <F> --kernels".to_owned()),
            "hotswap profile merge --help" => Some("--sparse-mode".to_owned()),
            "hotswap-clang++ --hotswap-help" => Some("--hotswap-policy=error|warn".to_owned()),
            _ => None,
        };
        let type_in = |command: &str| command.ends_with("needs-more").then(|| "needs more".to_owned());
        let helps = HelpTexts::new(&print, &type_in);
        for command in [
            "hotswap list OTHER a.so needs-more",
            "hotswap list --kernels needs-more",
            "hotswap list x=OTHER a.so needs-more",
            "hotswap list … a.so needs-more",
            "hotswap list FILE --format json",
            "hotswap list FILE --kernels",
            "hotswap profile merge",
            "hotswap-clang++ -Xoffload-linker --hotswap-policy=warn -O2 --offload-arch=x",
            "hotswap",
            "hotswap SUBCOMMAND",
            "other --x",
            "hotswap list -- --x",
        ] {
            assert_eq!(helps.fault(command), None, "{command}");
        }
        for (command, fault) in [
            ("hotswap list a.so needs-more", "needs more"),
            ("hotswap lst", "`hotswap lst --help` does not exist"),
            ("hotswap list --kernel", "no option --kernel"),
            ("hotswap profile merge --sparse", "no option --sparse"),
            ("hotswap-clang --hotswap-polcy=warn", "no option --hotswap-polcy"),
        ] {
            assert!(helps.fault(command).is_some_and(|found| found.contains(fault)), "{command}");
        }
    }
}
