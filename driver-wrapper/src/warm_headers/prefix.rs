//! The beginning of a source that is read from a precompiled header: its first include directives.
//!
//! Invariant: nothing precedes them but blanks and comments, so that the source reads the same headers in the same state with and
//! without the precompiled one. A directive with quotes whose file lies beside the source ends the prefix: other sources have another
//! file there. One whose file does not is searched like the others.
//!
//! Absent on purpose: whether the headers can be included twice, which clang is asked ([`super::making`]).

use std::fmt;
use std::path::Path;

/// The directives, one a line; none for clang's own header alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) directives: Vec<String>,
}

impl Prefix {
    /// All directives at the beginning of a source, which lies in that directory.
    pub(super) fn leading_directives(source: &[u8], directory: &Path) -> Self {
        let mut directives = Vec::new();
        let mut rest = source;
        while let Some(line) = next_line(&mut rest) {
            match directive_of_line(line) {
                Some(directive) if directive.is_beside(directory) => break,
                Some(directive) => directives.push(directive.to_string()),
                None if line.is_empty() => {}
                None => break,
            }
        }
        Self { directives }
    }

    /// The text of a source that has nothing else.
    pub(super) fn source_text(&self) -> String {
        self.directives.iter().map(|directive| format!("{directive}\n")).collect()
    }

    /// The prefixes with which this one begins, itself first; the one without directives is not among them.
    pub(super) fn beginnings(&self) -> impl Iterator<Item = Self> + '_ {
        (1..=self.directives.len()).rev().map(|count| Self { directives: self.directives[..count].to_vec() })
    }

    /// The same without itself.
    pub(super) fn shorter_beginnings(&self) -> impl Iterator<Item = Self> + '_ {
        self.beginnings().skip(1)
    }
}

/// The next line that is not a comment, without blanks around it. A comment that ends within a line ends the prefix: `None` as well as
/// at the end of the text.
fn next_line<'t>(rest: &mut &'t [u8]) -> Option<&'t [u8]> {
    if rest.is_empty() {
        return None;
    }
    let end = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
    let line = rest[..end].trim_ascii();
    if line.starts_with(b"/*") {
        let close = rest.windows(2).position(|pair| pair == b"*/")? + 2;
        let after = rest[close..].iter().position(|byte| *byte == b'\n').map_or(rest.len(), |at| close + at);
        let is_comment_alone = rest[close..after].trim_ascii().is_empty() && !rest[2..close].windows(2).any(is_splice);
        *rest = rest.get(after + 1..).unwrap_or_default();
        return is_comment_alone.then_some(b"");
    }
    *rest = rest.get(end + 1..).unwrap_or_default();
    if line.starts_with(b"//") {
        // A continued comment goes on in the next line.
        return (!line.ends_with(b"\\")).then_some(b"");
    }
    Some(line)
}

fn is_splice(pair: &[u8]) -> bool {
    pair == b"\\\n"
}

/// `#include <NAME>`, or with quotes.
struct IncludeDirective<'l> {
    name: &'l str,
    has_quotes: bool,
}

impl IncludeDirective<'_> {
    /// Whether the compiler finds the file beside the source, or may.
    fn is_beside(&self, directory: &Path) -> bool {
        self.has_quotes && !directory.join(self.name).try_exists().is_ok_and(|exists| !exists)
    }
}

/// The directive in one spelling.
impl fmt::Display for IncludeDirective<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [open, close] = if self.has_quotes { ['"', '"'] } else { ['<', '>'] };
        write!(f, "#include {open}{}{close}", self.name)
    }
}

/// A directive with nothing else in the line but a comment to its end.
fn directive_of_line(line: &[u8]) -> Option<IncludeDirective<'_>> {
    let line = str::from_utf8(line).ok()?;
    let operand = line.strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start();
    let has_quotes = operand.starts_with('"');
    let (name, after) = match has_quotes {
        true => operand[1..].split_once('"')?,
        false => operand.strip_prefix('<')?.split_once('>')?,
    };
    let after = after.trim_start();
    let is_plain = !name.is_empty() && name.is_ascii() && !name.contains(['"', '\\', '?', '/', ' ']) | is_path(name);
    let ends = (after.is_empty() || after.starts_with("//")) && !line.ends_with('\\');
    (is_plain && ends).then_some(IncludeDirective { name, has_quotes })
}

/// Directories in a header's name.
fn is_path(name: &str) -> bool {
    !name.contains("//") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leading(text: &str) -> Vec<String> {
        Prefix::leading_directives(text.as_bytes(), Path::new("/nonexistent")).directives
    }

    #[test]
    fn quotes_are_searched_like_others_where_nothing_lies_beside_the_source() {
        let directory = tempfile::tempdir().unwrap();
        let text = b"#include \"mine.h\" // ours\n#  include\"also/mine.h\"\n#include <a>\n";
        let found = Prefix::leading_directives(text, directory.path()).directives;
        assert_eq!(found, ["#include \"mine.h\"", "#include \"also/mine.h\"", "#include <a>"]);
        std::fs::create_dir(directory.path().join("also")).unwrap();
        std::fs::write(directory.path().join("also/mine.h"), "").unwrap();
        assert_eq!(Prefix::leading_directives(text, directory.path()).directives, ["#include \"mine.h\""]);
        let link = directory.path().join("mine.h");
        std::os::unix::fs::symlink("mine.h", link).unwrap();
        assert!(Prefix::leading_directives(text, directory.path()).directives.is_empty(), "an error of the look");
    }

    #[test]
    fn the_first_includes_are_the_prefix() {
        let text = "// Copyright\n/* more\n * of it */\n\n#include <hip/hip_runtime.h>  // HIP\n# include <vector>\n\
                    #include MACRO\n#include <map>\n";
        assert_eq!(leading(text), ["#include <hip/hip_runtime.h>", "#include <vector>"]);
        let prefix = Prefix::leading_directives(text.as_bytes(), Path::new("/nonexistent"));
        assert_eq!(prefix.source_text(), "#include <hip/hip_runtime.h>\n#include <vector>\n");
        let beginnings: Vec<_> = prefix.beginnings().map(|one| one.directives.len()).collect();
        assert_eq!(beginnings, [2, 1]);
    }

    #[test]
    fn anything_before_a_directive_ends_the_prefix() {
        for text in [
            "#define X\n#include <a>\n",
            "#pragma once\n#include <a>\n",
            "int x;\n#include <a>\n",
            "/* x */ int y;\n#include <a>\n",
            "/* x */ #include <a>\n",
            "// x \\\n#include <a>\n",
            "#include MACRO\n",
            "#include <a> int x;\n",
            "#include <a> /* x\n*/\n",
            "#include <a> \\\n\n",
            "#include_next <a>\n",
            "/* open\n#include <a>\n",
            "",
        ] {
            assert!(leading(text).is_empty(), "{text:?}");
        }
        assert_eq!(leading("#include <a>\n#ifdef X\n#include <b>\n#endif\n"), ["#include <a>"]);
    }
}
