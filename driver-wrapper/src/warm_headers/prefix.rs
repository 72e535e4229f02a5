//! The beginning of a source that is read from a precompiled header: its first include directives.
//!
//! Invariant: nothing precedes them but blanks and comments, so that the source reads the same headers in the same state with and
//! without the precompiled one. Directives with quotes end the prefix: they are searched beside the source first.
//!
//! Absent on purpose: whether the headers can be included twice, which clang is asked ([`super::making`]).

/// The directives, one a line; none for clang's own header alone.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Prefix {
    pub(super) directives: Vec<String>,
}

impl Prefix {
    /// All directives at the beginning of a source.
    pub(super) fn leading_directives(source: &[u8]) -> Self {
        let mut directives = Vec::new();
        let mut rest = source;
        while let Some(line) = next_line(&mut rest) {
            match directive_of_line(line) {
                Some(directive) => directives.push(directive),
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

/// `#include <NAME>` in one spelling, with nothing else in the line but a comment to its end.
fn directive_of_line(line: &[u8]) -> Option<String> {
    let line = str::from_utf8(line).ok()?;
    let name = line.strip_prefix('#')?.trim_start().strip_prefix("include")?.trim_start().strip_prefix('<')?;
    let (name, after) = name.split_once('>')?;
    let after = after.trim_start();
    let is_plain = !name.is_empty() && name.is_ascii() && !name.contains(['"', '\\', '?', '/', ' ']) | is_path(name);
    let ends = (after.is_empty() || after.starts_with("//")) && !line.ends_with('\\');
    (is_plain && ends).then(|| format!("#include <{name}>"))
}

/// Directories in a header's name.
fn is_path(name: &str) -> bool {
    !name.contains("//") && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-+".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leading(text: &str) -> Vec<String> {
        Prefix::leading_directives(text.as_bytes()).directives
    }

    #[test]
    fn the_first_includes_are_the_prefix() {
        let text = "// Copyright\n/* more\n * of it */\n\n#include <hip/hip_runtime.h>  // HIP\n# include <vector>\n\
                    #include \"mine.h\"\n#include <map>\n";
        assert_eq!(leading(text), ["#include <hip/hip_runtime.h>", "#include <vector>"]);
        let prefix = Prefix::leading_directives(text.as_bytes());
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
