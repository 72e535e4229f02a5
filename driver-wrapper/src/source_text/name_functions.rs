//! The functions of a text in which the name of the GPU stands, found by their braces.
//!
//! Invariant: a function that is found is a whole definition in namespaces alone: no template, without parameters, `constexpr`, with a
//! type that its declaration spells. In doubt there is none. Clang decides afterwards whether it is one: a copy of its text under
//! another name is compiled and called ([`super::name_values`]).
//!
//! Absent on purpose: the value of the function, and everything else of C++'s grammar.

use super::literal::{Token, Tokens};
use memchr::memmem;
use std::ops::Range;

/// Words with which the type of a function or its owner stands elsewhere.
const OTHER_HEADERS: &[&[u8]] = &[
    b"template",
    b"auto",
    b"decltype",
    b"typeof",
    b"__typeof__",
    b"operator",
    b"friend",
    b"struct",
    b"class",
    b"union",
    b"enum",
    b"requires",
    b"consteval",
    b"virtual",
];
/// Words by which a body has an effect beside its value, or knows where it stands.
const OTHER_BODIES: &[&[u8]] = &[
    b"asm",
    b"__asm",
    b"__asm__",
    b"extern",
    b"static",
    b"thread_local",
    b"__func__",
    b"__FUNCTION__",
    b"__PRETTY_FUNCTION__",
    b"__builtin_FUNCTION",
    b"__builtin_FUNCSIG",
    b"__builtin_LINE",
    b"__builtin_COLUMN",
    b"__builtin_source_location",
    b"throw",
];

/// A definition, by its bytes in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NamedFunction {
    /// From its first word to its last brace.
    pub(super) definition: Range<usize>,
    /// Its identifier, in the declaration.
    pub(super) identifier: Range<usize>,
    pub(super) name: String,
    /// How many namespaces are open around it.
    pub(super) depth: usize,
}

/// One kind of text in braces.
enum Scope {
    Namespace,
    Function(NamedFunction),
    Other,
}

/// A token of a declaration, with its bytes.
struct HeaderToken<'t> {
    token: Token<'t>,
    place: Range<usize>,
}

/// The functions in which literals that begin with `mark` stand, in their order; `None` where one stands elsewhere, or is part of
/// another token.
pub(super) fn functions_with_mark(text: &[u8], mark: &[u8]) -> Option<Vec<NamedFunction>> {
    let mut scanner = FunctionScanner::default();
    let mut tokens = Tokens::new(text);
    let mut marks = 0;
    while let Some(token) = tokens.next() {
        let place = tokens.position().saturating_sub(token_length(&token))..tokens.position();
        if let Token::Literal { content } = &token
            && content.starts_with(mark)
        {
            if !is_plain_literal(text, &place, content) {
                return None;
            }
            marks += 1;
            scanner.note_mark().ok()?;
        }
        scanner.read(HeaderToken { token, place }).ok()?;
    }
    let all = memmem::find_iter(text, mark).count();
    (marks == all && scanner.scopes.is_empty()).then_some(scanner.found)
}

/// A literal is taken for a plain one.
fn token_length(token: &Token<'_>) -> usize {
    match token {
        Token::Word(word) => word.len(),
        Token::Punctuation(_) | Token::Line(_) => 1,
        Token::Literal { content } => content.len() + 2,
    }
}

/// A prefix, an escape or a raw literal has other bytes.
fn is_plain_literal(text: &[u8], place: &Range<usize>, content: &[u8]) -> bool {
    let before = place.start.checked_sub(1).map(|before| text[before]);
    let has_prefix = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    !has_prefix && text[place.clone()] == *[b"\"", content, b"\""].concat()
}

/// A name is used elsewhere than in a plain function without effects.
struct NotUnderstood;

#[derive(Default)]
struct FunctionScanner<'t> {
    scopes: Vec<Scope>,
    /// The declaration that is not complete, in a namespace.
    header: Vec<HeaderToken<'t>>,
    /// The function that is open has a mark.
    is_marked: bool,
    /// The body that is open has an effect beside its value.
    has_effect: bool,
    found: Vec<NamedFunction>,
}

impl<'t> FunctionScanner<'t> {
    /// Whether only namespaces are open.
    fn is_in_namespace(&self) -> bool {
        self.scopes.iter().all(|scope| matches!(scope, Scope::Namespace))
    }

    fn open_function(&self) -> Option<&NamedFunction> {
        self.scopes.iter().find_map(|scope| if let Scope::Function(function) = scope { Some(function) } else { None })
    }

    fn note_mark(&mut self) -> Result<(), NotUnderstood> {
        self.open_function().ok_or(NotUnderstood)?;
        self.is_marked = true;
        Ok(())
    }

    fn read(&mut self, token: HeaderToken<'t>) -> Result<(), NotUnderstood> {
        match token.token {
            Token::Line(_) => {}
            Token::Punctuation(b'{') => self.open(),
            Token::Punctuation(b'}') => self.close(token.place.end)?,
            Token::Punctuation(b';') if self.is_in_namespace() => self.header.clear(),
            _ if self.is_in_namespace() => self.header.push(token),
            Token::Word(word) => {
                let is_recursion = self.open_function().is_some_and(|function| function.name.as_bytes() == word);
                self.has_effect |= is_recursion || OTHER_BODIES.contains(&word);
            }
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self) {
        let scope = match () {
            () if !self.is_in_namespace() => Scope::Other,
            () if is_namespace(&self.header) => Scope::Namespace,
            () => function_of_header(&self.header, self.scopes.len()).map_or(Scope::Other, Scope::Function),
        };
        if self.is_in_namespace() {
            self.header.clear();
            self.has_effect = false;
        }
        self.scopes.push(scope);
    }

    fn close(&mut self, end: usize) -> Result<(), NotUnderstood> {
        if let Scope::Function(mut function) = self.scopes.pop().ok_or(NotUnderstood)?
            && std::mem::take(&mut self.is_marked)
        {
            if self.has_effect {
                return Err(NotUnderstood);
            }
            function.definition.end = end;
            self.found.push(function);
        }
        if self.is_in_namespace() {
            self.header.clear();
        }
        Ok(())
    }
}

/// `namespace a::b`, with `inline` and attributes, or `extern "C"`.
fn is_namespace(header: &[HeaderToken<'_>]) -> bool {
    let words: Vec<&[u8]> = words_of(header).collect();
    match &header.iter().map(|one| &one.token).collect::<Vec<_>>()[..] {
        [Token::Word(b"extern"), Token::Literal { .. }] => true,
        _ => words.starts_with(&[b"namespace"]) || words.starts_with(&[b"inline", b"namespace"]),
    }
}

fn words_of<'h, 't>(header: &'h [HeaderToken<'t>]) -> impl Iterator<Item = &'t [u8]> + 'h {
    header.iter().filter_map(|one| if let Token::Word(word) = one.token { Some(word) } else { None })
}

/// The function whose declaration this is.
fn function_of_header(header: &[HeaderToken<'_>], depth: usize) -> Option<NamedFunction> {
    let is_other = words_of(header).any(|word| OTHER_HEADERS.contains(&word));
    let has_value = header.iter().any(|one| matches!(one.token, Token::Punctuation(b'=' | b'~' | b'[')));
    if is_other || has_value || !words_of(header).any(|word| word == b"constexpr") {
        return None;
    }
    let before = match header {
        [before @ .., open, close] if is_pair(open, close) => before,
        [before @ .., open, close, last] if is_pair(open, close) && is_word(last, b"noexcept") => before,
        [before @ .., open, void, close] if is_pair(open, close) && is_word(void, b"void") => before,
        _ => return None,
    };
    // A name behind `::` is defined elsewhere than where it stands.
    let [first, .., kind, name] = before else { return None };
    let (Token::Word(_), Token::Word(identifier)) = (&kind.token, &name.token) else { return None };
    let text = str::from_utf8(identifier).ok()?;
    let definition = first.place.start..name.place.end;
    Some(NamedFunction { definition, identifier: name.place.clone(), name: text.to_owned(), depth })
}

fn is_pair(open: &HeaderToken<'_>, close: &HeaderToken<'_>) -> bool {
    matches!((&open.token, &close.token), (Token::Punctuation(b'('), Token::Punctuation(b')')))
}

fn is_word(token: &HeaderToken<'_>, expected: &[u8]) -> bool {
    matches!(token.token, Token::Word(word) if word == expected)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &[u8] = b"@mark";

    fn found(text: &str) -> Option<Vec<String>> {
        let functions = functions_with_mark(text.as_bytes(), MARK)?;
        Some(functions.iter().map(|one| format!("{} {}", one.depth, &text[one.identifier.clone()])).collect())
    }

    #[test]
    fn plain_constexpr_functions_are_found_with_their_definition() {
        let text = "int a;\n# 3 \"x.h\" 1\nnamespace a { inline namespace b::c {\nenum class kind : int { x };\n#pragma p\n\
                    constexpr kind which()\n{ if (true) { return of(\"@mark@\"); } return kind::x; }\nint y() { return 1; }\n}}\n\
                    extern \"C\" { __attribute__((device)) constexpr int two(void) { return \"@mark@\"[0]; } }\n\
                    constexpr int three() noexcept { return sizeof(\"@mark@\") + 1'000; }\n";
        assert_eq!(found(text).unwrap(), ["2 which", "1 two", "0 three"]);
        let functions = functions_with_mark(text.as_bytes(), MARK).unwrap();
        assert!(text[functions[0].definition.clone()].starts_with("constexpr kind which()\n{"));
        assert!(text[functions[0].definition.clone()].ends_with("return kind::x; }"));
    }

    #[test]
    fn a_mark_elsewhere_is_not_covered() {
        for text in [
            "const char *x = \"@mark@\";",
            "template <int n> constexpr int f() { return \"@mark@\"[n]; }",
            "constexpr auto f() { return \"@mark@\"[0]; }",
            "constexpr decltype(x) f() { return \"@mark@\"[0]; }",
            "constexpr int f(int x) { return \"@mark@\"[x]; }",
            "int f() { return \"@mark@\"[0]; }",
            "struct s { static constexpr int f() { return \"@mark@\"[0]; } };",
            "constexpr int s::f() { return \"@mark@\"[0]; }",
            "constexpr int x = [] { return \"@mark@\"[0]; }();",
            "constexpr int f() { return \"\\x40mark@\"[0]; }",
            "constexpr int f() { return L\"@mark@\"[0]; }",
            "constexpr int f() { return R\"(@mark@)\"[0]; }",
            "constexpr int f() { return \"a @mark@\"[0]; }",
            "#pragma x \"@mark@\"\n",
            "constexpr int f() { static int x = \"@mark@\"[0]; return x; }",
            "constexpr int f() { return \"@mark@\"[0] + sizeof(__func__); }",
            "constexpr int f() { return \"@mark@\"[0] ? 1 : f(); }",
            "constexpr int f() { return \"@mark@\"[0];",
            "} constexpr int f() { return \"@mark@\"[0]; }",
        ] {
            assert_eq!(found(text), None, "{text}");
        }
        assert_eq!(found("int f() { return 1; }").unwrap(), Vec::<String>::new());
    }
}
