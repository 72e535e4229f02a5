//! The tokens of a preprocessed text that matter for assembly: words, string literals with their value, punctuation, and
//! the ends of lines.
//!
//! Invariant: a literal's value is its bytes after escapes, as for a narrow string; comments (kept by `-C`), characters and
//! numbers with separators are passed over.
//!
//! Absent on purpose: every other distinction of C++'s lexer.

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// An identifier or keyword.
    Word(&'t [u8]),
    Literal {
        content: Vec<u8>,
    },
    /// One byte of punctuation.
    Punctuation(u8),
    /// The end of a line, with the line's text.
    Line(&'t [u8]),
}

/// The tokens of a text.
pub(super) struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
    line: usize,
    /// Nothing but blanks precede in the line.
    is_fresh: bool,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self { text, at: 0, line: 0, is_fresh: true }
    }

    /// The byte behind the last token.
    pub(super) fn position(&self) -> usize {
        self.at
    }

    fn byte(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or_default()
    }

    fn take_while(&mut self, is_part: impl Fn(u8) -> bool) -> &'t [u8] {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| !is_part(*byte)).unwrap_or(rest.len());
        self.at += length;
        &rest[..length]
    }

    /// To the end of the line, which stays.
    fn skip_line(&mut self) {
        self.take_while(|byte| byte != b'\n');
    }

    fn skip_comment(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.windows(2).position(|pair| pair == b"*/").map_or(rest.len(), |end| end + 2);
    }

    /// A number with its separators and exponents.
    fn skip_number(&mut self) {
        while is_word(self.byte(0)) || matches!(self.byte(0), b'.' | b'\'') {
            let is_exponent = matches!(self.byte(0), b'e' | b'E' | b'p' | b'P') && matches!(self.byte(1), b'+' | b'-');
            self.at += 1 + usize::from(is_exponent);
        }
    }

    fn end_line(&mut self) -> Token<'t> {
        let line = &self.text[self.line..self.at];
        self.at += 1;
        (self.line, self.is_fresh) = (self.at, true);
        Token::Line(line)
    }

    /// A literal whose opening quote is passed; `quote` ends it.
    fn quoted(&mut self, quote: u8) -> Vec<u8> {
        let mut content = Vec::new();
        while self.at < self.text.len() && self.byte(0) != b'\n' {
            let byte = self.byte(0);
            self.at += 1;
            match byte {
                b'\\' => content.push(self.escape()),
                _ if byte == quote => break,
                _ => content.push(byte),
            }
        }
        content
    }

    /// The byte of an escape whose backslash is passed.
    fn escape(&mut self) -> u8 {
        let kind = self.byte(0);
        self.at += 1;
        match kind {
            b'n' => b'\n',
            b't' => b'\t',
            b'r' => b'\r',
            b'a' => 7,
            b'b' => 8,
            b'f' => 12,
            b'v' => 11,
            b'e' => 27,
            b'x' | b'u' | b'U' | b'o' | b'N' => self.numbered(16),
            b'0'..=b'7' => {
                self.at -= 1;
                let length = (0..3).take_while(|ahead| matches!(self.byte(*ahead), b'0'..=b'7')).count();
                let digits = &self.text[self.at..self.at + length];
                self.at += length;
                digits.iter().fold(0, |value: u8, digit| value.wrapping_mul(8).wrapping_add(digit - b'0'))
            }
            other => other,
        }
    }

    /// The value of hexadecimal digits, which may be in braces.
    fn numbered(&mut self, radix: u32) -> u8 {
        let is_braced = self.byte(0) == b'{';
        self.at += usize::from(is_braced);
        let digits = self.take_while(|byte| char::from(byte).is_digit(radix));
        let value = digits
            .iter()
            .fold(0_u32, |value, byte| value.wrapping_mul(radix).wrapping_add(digit_in_radix(byte, radix)));
        self.at += usize::from(is_braced);
        // A backslash is reported where one matters: other characters are not part of a name.
        u8::try_from(value).unwrap_or(b'\\')
    }

    /// A raw literal whose opening quote is passed.
    fn raw(&mut self) -> Vec<u8> {
        let delimiter = self.take_while(|byte| byte != b'(' && byte != b'\n').to_vec();
        self.at += 1;
        let end = [b")", delimiter.as_slice(), b"\""].concat();
        let rest = &self.text[self.at.min(self.text.len())..];
        let length = rest.windows(end.len()).position(|window| window == end).unwrap_or(rest.len());
        self.at += length + end.len();
        rest[..length].to_vec()
    }

    fn word_or_literal(&mut self) -> Option<Token<'t>> {
        let word = self.take_while(is_word);
        match (self.byte(0), word) {
            (b'"', b"R" | b"LR" | b"uR" | b"UR" | b"u8R") => {
                self.at += 1;
                Some(Token::Literal { content: self.raw() })
            }
            (b'"', b"L" | b"u" | b"U" | b"u8") => {
                self.at += 1;
                Some(Token::Literal { content: self.quoted(b'"') })
            }
            (b'\'', b"L" | b"u" | b"U" | b"u8") => {
                self.at += 1;
                self.quoted(b'\'');
                None
            }
            _ => Some(Token::Word(word)),
        }
    }

    /// The token at a byte that is not a blank; `None` for what is passed over.
    fn token(&mut self) -> Option<Token<'t>> {
        let is_fresh = std::mem::replace(&mut self.is_fresh, false);
        match (self.byte(0), self.byte(1)) {
            (b'#', _) if is_fresh => self.skip_line(),
            (b'/', b'/') => self.skip_line(),
            (b'/', b'*') => {
                self.at += 2;
                self.skip_comment();
            }
            (b'0'..=b'9', _) | (b'.', b'0'..=b'9') => self.skip_number(),
            (b'"', _) => {
                self.at += 1;
                return Some(Token::Literal { content: self.quoted(b'"') });
            }
            (b'\'', _) => {
                self.at += 1;
                self.quoted(b'\'');
            }
            (byte, _) if is_word(byte) => return self.word_or_literal(),
            (byte, _) => {
                self.at += 1;
                return Some(Token::Punctuation(byte));
            }
        }
        None
    }
}

fn digit_in_radix(byte: &u8, radix: u32) -> u32 {
    char::from(*byte).to_digit(radix).unwrap_or_default()
}

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        loop {
            self.take_while(|byte| matches!(byte, b' ' | b'\t' | b'\r' | 11 | 12));
            if self.at >= self.text.len() {
                return None;
            }
            if self.byte(0) == b'\n' {
                return Some(self.end_line());
            }
            if let Some(token) = self.token() {
                return Some(token);
            }
        }
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_have_their_value() {
        let text = br#"a "x\n\x41\102\u{43}" u8"y" R"d(\n)")d" 'c' 1'0 1e+5 L'"' "\"" // "z"
/* "w" */ #x"#;
        let literals: Vec<Vec<u8>> = Tokens::new(text)
            .filter_map(|token| if let Token::Literal { content } = token { Some(content) } else { None })
            .collect();
        let expected: [&[u8]; 4] = [b"x\nABC", b"y", b"\\n)\"", b"\""];
        assert_eq!(literals, expected);
    }

    #[test]
    fn lines_end_with_their_text() {
        let lines: Vec<&[u8]> = Tokens::new(b"# 1 \"a\"\nint a;\n")
            .filter_map(|token| if let Token::Line(line) = token { Some(line) } else { None })
            .collect();
        assert_eq!(lines, [&b"# 1 \"a\""[..], b"int a;"]);
    }
}
