//! Sources that are their own text, so that the preprocessor need not be asked: no directive, no macro of a GPU, and nothing is
//! included before them. The self-test of `add_hotswap_target` is one, and code that programs generate.
//!
//! Invariant: in doubt it is not such a source. Arguments and identifiers are listed that are known to be without effect, not those
//! that have one.
//!
//! Absent on purpose: reading include directives, which is clang's.

use super::poison;
use super::run::CompileCommand;
use crate::command;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;

/// With it clang includes no header of its own in front.
const NO_HEADER: &str = "-nogpuinc";
/// Arguments without effect on the text.
const WORDS: &[&str] = &[
    NO_HEADER,
    "-nogpulib",
    "-c",
    "-fno-gpu-rdc",
    "-fPIC",
    "-fPIE",
    "-Wall",
    "-Wextra",
    "-Wno-unused-command-line-argument",
    "--offload-device-only",
    "--gpu-bundle-output",
];
/// The same, by how they begin.
const WORD_STARTS: &[&str] = &["-O", "-std=c++", "-std=gnu++", "--offload-arch=", "-fvisibility="];
/// Longer sources have directives.
const SIZE_LIMIT: usize = 1 << 16;
/// Parts of a text with which the preprocessor would have work: directives, their other spellings, and continued lines.
const DIRECTIVES: &[&str] = &["#", "%:", "??", "\\"];
/// Names with a leading underscore that are no macros; all other such names may be.
const RESERVED_NAMES: &[&str] = &["__attribute__", "__hipPopCallConfiguration"];

/// Whether the program's text is its source, and has none of the names, which differ between GPUs.
pub(super) fn is_own_text(program: &CompileCommand, configured: &[OsString], names: &BTreeSet<String>) -> bool {
    configured.is_empty() && has_plain_words(program) && reads_as_plain_text(program, names)
}

fn has_plain_words(program: &CompileCommand) -> bool {
    let command = command::scan(&program.words);
    let mut words = program.words.iter();
    while let Some(word) = words.next() {
        let Some(word) = word.to_str() else { return false };
        let is_input = command.inputs.iter().any(|input| input.path == *word);
        let is_known = match word {
            "-o" => words.next().is_some(),
            "-x" => words.next().is_some_and(|language| language == "hip"),
            _ => is_input || WORDS.contains(&word) || WORD_STARTS.iter().any(|start| word.starts_with(start)),
        };
        if !is_known {
            return false;
        }
    }
    program.words.iter().any(|word| word == NO_HEADER)
}

fn reads_as_plain_text(program: &CompileCommand, names: &BTreeSet<String>) -> bool {
    let command = command::scan(&program.words);
    let mut sources = command.hip_sources();
    let (Some(source), None) = (sources.next(), sources.next()) else { return false };
    // Where it cannot be read, clang is asked, and says so.
    fs::read(&source.path).is_ok_and(|text| text.len() < SIZE_LIMIT && is_plain_text(&text, names))
}

fn is_plain_text(text: &[u8], names: &BTreeSet<String>) -> bool {
    let Some(plain) = str::from_utf8(text).ok().filter(|text| text.is_ascii()) else { return false };
    let has_directive = DIRECTIVES.iter().any(|part| plain.contains(part));
    let mut identifiers = plain.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_');
    let has_macro = identifiers.any(|name| may_be_macro(name, names));
    !has_directive && !has_macro && !plain.contains("asm") && poison::resolved_late(text).is_none()
}

fn may_be_macro(name: &str, names: &BTreeSet<String>) -> bool {
    names.contains(name) || name.starts_with('_') && !RESERVED_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "__attribute__((global)) void k(int *out) { *out = 1; }\n";

    fn program(words: &str, path: &std::path::Path) -> CompileCommand {
        let words = words.split(' ').map(OsString::from).chain([path.as_os_str().to_owned()]).collect();
        CompileCommand { words, preprocessed: None }
    }

    fn is_own(words: &str, source: &std::path::Path, configured: &[OsString]) -> bool {
        is_own_text(&program(words, source), configured, &BTreeSet::new())
    }

    #[test]
    fn a_kernel_without_directives_is_its_own_text() {
        let names = BTreeSet::from(["GPU".to_owned()]);
        assert!(is_plain_text(KERNEL.as_bytes(), &names));
        for other in [
            "#if 1\n#endif\n",
            "%:define X\n",
            "??=define X\n",
            "int x = GPU;\n",
            "int x = __gfx1030__;\n",
            "_Pragma(\"x\")\n",
            "int \\\n x;\n",
            "void f() { asm(\"s_nop 0\"); }\n",
            "int \u{e9};\n",
        ] {
            assert!(!is_plain_text(format!("{KERNEL}{other}").as_bytes(), &names), "{other}");
        }
    }

    #[test]
    fn arguments_that_may_change_the_text_are_clangs() {
        let directory = tempfile::tempdir().unwrap();
        let source = directory.path().join("a.hip");
        fs::write(&source, KERNEL).unwrap();
        assert!(is_own("-O2 -nogpuinc --offload-arch=gfx1030 -o x.o -x hip -c", &source, &[]));
        assert!(!is_own("-nogpuinc -c", &source, &["-DX=1".into()]));
        for other in ["-c", "-nogpuinc -DX=__gfx1030__", "-nogpuinc -include a.h", "-nogpuinc -x cuda", "-nogpuinc -I."]
        {
            assert!(!is_own(other, &source, &[]), "{other}");
        }
    }
}
