//! Conversion between lines of a file and words.
//!
//! Invariants: a word has no white space unless it is in double quotes; a written line is broken before column 160
//! where it has a blank to break at.

use super::RowError;

const WIDTH: usize = 160;

/// The logical lines of a file.
pub(crate) struct Lines<'a> {
    file: &'a str,
    lines: std::iter::Peekable<std::iter::Enumerate<std::str::Lines<'a>>>,
}

/// One logical line: its words and its position.
pub(crate) struct LogicalLine<'a> {
    pub(super) file: &'a str,
    pub(super) number: usize,
    words: std::vec::IntoIter<&'a str>,
}

impl<'a> Lines<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, lines: text.lines().enumerate().peekable() }
    }

    /// The next line with content.
    pub(crate) fn next(&mut self) -> Result<Option<LogicalLine<'a>>, RowError> {
        loop {
            let Some((index, text)) = self.lines.next() else { return Ok(None) };
            if text.trim().is_empty() || text.starts_with('#') {
                continue;
            }
            let mut line = LogicalLine { file: self.file, number: index + 1, words: Vec::new().into_iter() };
            if text.starts_with(char::is_whitespace) {
                return Err(line.error("a continuation without a line before it"));
            }
            let mut words = Vec::new();
            split(text, &mut words).map_err(|what| line.error(what))?;
            while let Some((index, more)) =
                self.lines.next_if(|(_, text)| text.starts_with(' ') && !text.trim().is_empty())
            {
                split(more, &mut words)
                    .map_err(|what| LogicalLine { number: index + 1, ..line_at(self.file) }.error(what))?;
            }
            line.words = words.into_iter();
            return Ok(Some(line));
        }
    }
}

fn line_at(file: &str) -> LogicalLine<'_> {
    LogicalLine { file, number: 0, words: Vec::new().into_iter() }
}

/// Splits at blanks; a word that begins with a double quote ends at the next one and is returned without both.
fn split<'a>(text: &'a str, words: &mut Vec<&'a str>) -> Result<(), &'static str> {
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (word, after) = match rest.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').ok_or("a quote without an end")?,
            None => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
        };
        words.push(word);
        rest = after.trim_start();
    }
    Ok(())
}

impl<'a> LogicalLine<'a> {
    pub(crate) fn error(&self, what: impl Into<String>) -> RowError {
        RowError::Line { file: self.file.to_owned(), line: self.number, what: what.into() }
    }

    /// The next word, which must exist.
    pub(super) fn word(&mut self, what: &str) -> Result<&'a str, RowError> {
        self.words.next().ok_or_else(|| self.error(format!("{what} is missing")))
    }

    /// The next word as a number.
    pub(super) fn number<T: std::str::FromStr>(&mut self, what: &str) -> Result<T, RowError> {
        let word = self.word(what)?;
        word.parse().map_err(|_| self.error(format!("{what} is not a number: {word}")))
    }

    /// The next word, if there is one.
    pub(crate) fn next(&mut self) -> Option<&'a str> {
        self.words.next()
    }

    /// Fails if words are left.
    pub(super) fn end(&mut self) -> Result<(), RowError> {
        match self.words.next() {
            Some(word) => Err(self.error(format!("unexpected word: {word}"))),
            None => Ok(()),
        }
    }
}

/// Joins words to a terminated line, broken where it gets too long.
pub(super) fn join<T: AsRef<str>>(words: impl IntoIterator<Item = T>) -> String {
    let mut text = String::new();
    let mut column = 0;
    for word in words {
        let word = word.as_ref();
        if column > 0 && column + 1 + word.len() > WIDTH {
            text += "\n    ";
            column = 4;
        } else if column > 0 {
            text.push(' ');
            column += 1;
        }
        text += word;
        column += word.len();
    }
    text.push('\n');
    text
}

/// The items of a list, separated by commas; an empty word is an empty list.
pub(super) fn list(word: &str) -> Vec<String> {
    word.split(',').filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
