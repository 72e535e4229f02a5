//! Inline assembly in a preprocessed text, and what of it the assembler resolves for each GPU.
//!
//! The assembler of AMD GPUs defines symbols with the GPU's number (`.amdgcn.gfx_generation_number`), has directives that
//! name it, reads files (`.include`, `.incbin`) and has macros that put names together. So every name with a dot in front
//! counts, unless it is in the list of directives that do neither. Adjacent literals are joined and escapes decoded first,
//! as the compiler does.
//!
//! Invariant: assembly that is not understood is reported.
//!
//! Absent on purpose: instructions, which mean the same for all GPUs that a code object may be relabelled for.

use super::SourceEvidence;
use super::difference::marker;
use super::literal::{Token, Tokens};

/// Directives that neither depend on the GPU nor read files nor build names.
const HARMLESS: &[&str] = &[
    "2byte",
    "4byte",
    "8byte",
    "align",
    "ascii",
    "asciz",
    "balign",
    "byte",
    "data",
    "else",
    "elseif",
    "endif",
    "endfunc",
    "fill",
    "float",
    "double",
    "func",
    "global",
    "globl",
    "hidden",
    "hword",
    "if",
    "int",
    "internal",
    "local",
    "long",
    "octa",
    "org",
    "p2align",
    "p2alignl",
    "p2alignw",
    "popsection",
    "previous",
    "protected",
    "pushsection",
    "quad",
    "rodata",
    "bss",
    "section",
    "set",
    "equ",
    "short",
    "size",
    "skip",
    "space",
    "string",
    "symver",
    "text",
    "type",
    "weak",
    "word",
    "zero",
];

/// Names of the assembler and of the device libraries with another value for every GPU, in literals of any kind: an
/// attribute may give a variable such a name.
const NAMES: [&str; 4] = ["gfx_generation", "machine_version", "amdgcn_target", "__oclc_ISA_version"];

/// The first place where a text leaves something to the assembler that may differ between GPUs.
pub(super) fn resolved_by_assembler(text: &[u8]) -> Option<SourceEvidence> {
    let mut place = LinePlace::default();
    let mut tokens = Tokens::new(text).peekable();
    let mut opens_assembly = Opening::No;
    while let Some(token) = tokens.next() {
        let is_computed = opens_assembly == Opening::Parenthesis && !matches!(token, Token::Literal { .. });
        if is_computed && !matches!(token, Token::Line(_)) {
            return Some(place.evidence("assembly that is computed"));
        }
        match token {
            Token::Line(line) => place.step(line),
            Token::Word(word) => opens_assembly = opens_assembly.after_word(word),
            Token::Punctuation(byte) => {
                if opens_assembly == Opening::Keyword && byte == b'{' {
                    return Some(place.evidence("a block of assembly"));
                }
                opens_assembly = opens_assembly.after_punctuation(byte);
            }
            Token::Literal { mut content } => {
                let start = place.clone();
                while let Some(Token::Literal { .. } | Token::Line(_)) = tokens.peek() {
                    match tokens.next() {
                        Some(Token::Literal { content: more }) => content.extend(more),
                        Some(Token::Line(line)) => place.step(line),
                        _ => {}
                    }
                }
                let is_assembly = matches!(opens_assembly, Opening::Parenthesis | Opening::AttributeParenthesis);
                opens_assembly = Opening::No;
                if let Some(name) = name_in_literal(&content, is_assembly) {
                    return Some(start.evidence(&name));
                }
            }
        }
    }
    None
}

/// Progress from the keyword to the template of a statement or label.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Opening {
    No,
    Keyword,
    Parenthesis,
    /// A word by which an attribute gives a symbol any name; it may be an identifier of the program as well. An operand of
    /// assembly (`%c0`) is that name, to which the template may add its end.
    Attribute,
    AttributeParenthesis,
}

impl Opening {
    fn after_word(self, word: &[u8]) -> Self {
        match word {
            b"asm" | b"__asm" | b"__asm__" => Self::Keyword,
            b"weakref" | b"__weakref__" | b"alias" | b"__alias__" => Self::Attribute,
            b"volatile" | b"__volatile__" | b"__volatile" | b"inline" | b"__inline" | b"__inline__" | b"goto"
                if self == Self::Keyword =>
            {
                Self::Keyword
            }
            _ => Self::No,
        }
    }

    fn after_punctuation(self, byte: u8) -> Self {
        match self {
            Self::Keyword if byte == b'(' => Self::Parenthesis,
            Self::Attribute if byte == b'(' => Self::AttributeParenthesis,
            _ => Self::No,
        }
    }
}

/// The current line of the source, by the preprocessor's markers.
#[derive(Clone, Default)]
struct LinePlace {
    file: String,
    line: usize,
}

impl LinePlace {
    fn step(&mut self, line: &[u8]) {
        match marker(line) {
            // The marker's number is that of the next line.
            Some(marker) => *self = Self { file: marker.file, line: marker.line },
            None => self.line += 1,
        }
    }

    fn evidence(&self, name: &str) -> SourceEvidence {
        SourceEvidence { name: Some(name.to_owned()), file: self.file.clone(), line: self.line }
    }
}

/// The first name in a literal that may differ between GPUs, as text for messages.
fn name_in_literal(content: &[u8], is_assembly: bool) -> Option<String> {
    let text = String::from_utf8_lossy(content);
    let known = NAMES.iter().find(|name| text.contains(**name)).map(|name| (*name).to_owned());
    if known.is_some() || !is_assembly {
        return known;
    }
    if content.contains(&b'\\') {
        return Some("a backslash in assembly".to_owned());
    }
    let dots = content.iter().enumerate().filter(|(_, byte)| **byte == b'.').map(|(at, _)| at);
    dots.filter_map(|at| directive(content, at)).next()
}

/// The name that begins with the dot at that position, if it may differ.
fn directive(content: &[u8], dot: usize) -> Option<String> {
    if dot.checked_sub(1).is_some_and(|before| is_directive_name_byte(&content[before])) {
        return None;
    }
    let rest = &content[dot + 1..];
    let end = rest.iter().position(|byte| !is_directive_name_byte(byte)).unwrap_or(rest.len());
    let name = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
    let is_glued = matches!(rest.get(end), Some(b'%' | b'{' | b'"' | b'}' | b'|'));
    let is_number = name.starts_with(|first: char| first.is_ascii_digit()) && !HARMLESS.contains(&name.as_str());
    let is_local_label = rest.starts_with(b"L") || is_number;
    let is_location = name.is_empty() && !is_glued;
    let is_harmless = HARMLESS.contains(&name.as_str()) && !is_glued || name.starts_with("cfi_");
    (!(is_local_label || is_location || is_harmless)).then(|| format!(".{name} in assembly"))
}

fn is_directive_name_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_$.".contains(byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn show(text: &str) -> String {
        resolved_by_assembler(text.as_bytes()).map_or_else(String::new, |found| found.to_string())
    }

    #[test]
    fn assembly_is_read_as_the_compiler_reads_it() {
        for (text, expected) in [
            ("asm(\".if .amdgcn.gfx_generation_stepping == 1\\ns_nop 3\\n.endif\");", "gfx_generation"),
            ("asm volatile(\".if .amd\" \"gcn.gfx_gen\"\n\"eration_stepping == 1\");", "gfx_generation"),
            ("asm(\".if .amdgcn\\x2egfx_genera\\164ion_minor\");", "gfx_generation"),
            ("asm(R\"(.if .amdgcn.next_free_vgpr)\");", ".amdgcn.next_free_vgpr in assembly"),
            ("__asm__ __volatile__ (\".include \\\"a.s\\\"\");", ".include in assembly"),
            ("__asm(\".INCBIN \\\"a\\\"\");", ".incbin in assembly"),
            ("asm(\".macro a b\\n.if \\\\b\\n.endm\");", "a backslash in assembly"),
            ("asm(\".macro a b\\n.endm\");", ".macro in assembly"),
            ("asm(\"{.amd|x}gcn\");", ".amd in assembly"),
            ("asm(\".{amd|x}gcn\");", ". in assembly"),
            ("asm(\".set x, .amd%0\" :: \"i\"(1));", ".amd in assembly"),
            ("asm((text()));", "assembly that is computed"),
            ("__asm { s_nop 0 }", "a block of assembly"),
            ("extern int v asm(\".amdgcn\" \".gfx_generation_minor\");", "gfx_generation"),
            ("extern int v __attribute__((weakref(\".amd\" \"gcn.gfx_generation_minor\")));", "gfx_generation"),
            ("static void f() __attribute__((weakref(\".amdgcn.gfx_gen\")));", ".amdgcn.gfx_gen in assembly"),
            ("void f() __attribute__((__alias__(\".amd\" \"gcn.gfx_gen\")));", ".amdgcn.gfx_gen in assembly"),
            ("extern const int v asm(\"__oclc_\" \"ISA_version\");", "__oclc_ISA_version"),
            ("asm(\".amdhsa_code_object_version 5\");", ".amdhsa_code_object_version in assembly"),
        ] {
            assert_eq!(show(text), format!("`{expected}` at :0"), "{text}");
        }
        for text in [
            "int asm_count = 1; f(\"asm\", 'a', 1'000, \".include\");",
            "asm volatile(\"s_waitcnt vmcnt(0)\\n\\tv_add_f32 %0, 1.0, %1\\n.Lx%=:\\n.p2align 2\" : \"=v\"(a) : \"v\"(b));",
            "extern int scanf(const char *) __asm__ (\"\" \"__isoc99_scanf\");",
            "__asm__(\".symver memcpy,memcpy@GLIBC_2.2.5\");",
            "asm(\"v_mov_b32 v0.l, v1.h\\n s_branch . + 4\\n.long 0x1, .5\");",
            "// asm(\".include\")\n/* asm(\".include\") */",
            "asm(\"\" ::: \"memory\");",
            "static int f() __attribute__((weakref(\"malloc\"))); int alias = alias(weakref(1)) + g(\".amd\");",
            "char c = '\"'; asm(\"s_nop 0\"); char d = '\"';",
        ] {
            assert_eq!(show(text), "", "{text}");
        }
    }

    #[test]
    fn the_line_is_that_of_the_source() {
        let text = "# 1 \"a.hip\"\n# 1 \"d/x.h\" 1\nint a;\nint b;\n\nvoid f() {\n  asm(\"s_nop 0\\n\"\n      \".include \\\"x\\\"\");\n}\n";
        assert_eq!(show(text), "`.include in assembly` at d/x.h:5");
    }
}
