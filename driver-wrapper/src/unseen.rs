//! Inputs of a compilation that its preprocessed text does not show. Where a command has one, the text cannot tell
//! whether the program is the same for two GPUs.
//!
//! Arguments of the front end (`-Xclang`), of LLVM (`-mllvm`) and of one side (`-Xarch_device`) are arguments of their
//! own, or joined by `=`, and those of the preprocessor (`-Wp,`) are joined by commas, so the rows apply to them, too. The
//! arguments in clang's configuration files are judged in the same way ([`crate::clang_config`]).
//!
//! Invariant: in case of doubt an argument is such an input.
//!
//! Absent on purpose: what the text itself refers to ([`crate::source_text`]): files of inline assembly, modules by
//! `import`. Files that are the same input for each GPU and lack means to ask for it: `#embed`, profiles, lists of
//! sanitizers. The device libraries, whose file for each GPU has only the number of its instruction set.

use crate::options::is_own;
use hotswap_files::reads;
use hotswap_plan::words::CHANNEL;
use hotswap_report::Diagnostic;
use std::env;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

const MODULES: &str = "modules are read without the preprocessor";
const PLUGIN: &str = "a plugin may query the GPU";
const BITCODE: &str = "bitcode that is linked in may query the GPU";
const NOT_EXPANDED: &str = "macros in the preprocessor's output are not expanded";

/// Arguments that begin in a way, and the reason why the preprocessor does not see their effect.
struct UnseenInput {
    prefix: &'static str,
    why: &'static str,
}

const fn unseen_input(prefix: &'static str, why: &'static str) -> UnseenInput {
    UnseenInput { prefix, why }
}

/// All such arguments by their prefixes.
const UNSEEN: &[UnseenInput] = &[
    unseen_input("-fmodules", MODULES),
    unseen_input("-fcxx-modules", MODULES),
    unseen_input("-fmodule-", MODULES),
    unseen_input("-fprebuilt-", MODULES),
    unseen_input("-fimplicit-module", MODULES),
    unseen_input("-fbuiltin-module-map", MODULES),
    unseen_input("-ast-merge", "a syntax tree is read without the preprocessor"),
    unseen_input("-include-pch", "a precompiled header is read without the preprocessor"),
    unseen_input("-chain-include", "a precompiled header is read without the preprocessor"),
    unseen_input("-fplugin", PLUGIN),
    unseen_input("-fpass-plugin", PLUGIN),
    unseen_input("-load", PLUGIN),
    unseen_input("--load", PLUGIN),
    unseen_input("-plugin", PLUGIN),
    unseen_input("-add-plugin", PLUGIN),
    unseen_input("-mlink-", BITCODE),
    unseen_input("--hip-device-lib=", BITCODE),
    unseen_input("-frewrite-", NOT_EXPANDED),
    unseen_input("-fdirectives-only", NOT_EXPANDED),
    unseen_input("-fkeep-system-includes", NOT_EXPANDED),
    unseen_input("--hipstdpar", "clang puts the program together itself"),
];

/// Flags whose value may be joined by `=`.
const JOINED: &[&str] = &["-Xclang=", "-mllvm=", "-Xoffload-compiler=", "-Xarch_device=", "-plugin-opt="];

/// Options of the device linker that read no code, without their dashes. Options that are not listed may read some:
/// `-lNAME`, `--script=FILE`, `--load-pass-plugin=FILE`, `--just-symbols=FILE`.
const LINKER_OPTIONS: &[&str] = &["s", "x", "q", "S", "X", "v", "verbose", "discard-all", "discard-locals"];
/// The same, by their prefixes.
const LINKER_PREFIXES: &[&str] = &[
    "L",
    "O",
    "allow-",
    "build-id",
    "compress-debug-sections",
    "emit-relocs",
    "fatal-warnings",
    "gc-sections",
    "hash-style=",
    "icf=",
    "library-path=",
    "lto-CGO",
    "lto-O",
    "lto-partitions=",
    "mllvm=-amdgpu-",
    "no-",
    "plugin-opt=-amdgpu-",
    "plugin-opt=O",
    "print-",
    "strip-",
    "threads=",
    "time-trace",
    "undefined=",
    "unresolved-symbols=",
    "warn-",
];

/// The first such argument, with the reason.
pub fn find(args: &[OsString]) -> Option<String> {
    args.iter().find_map(find_by_name).or_else(|| linked_input(args))
}

fn find_by_name(arg: &OsString) -> Option<String> {
    let text = arg.to_string_lossy();
    let value = JOINED.iter().find_map(|flag| text.strip_prefix(flag)).unwrap_or(&text);
    let mut values = match text.strip_prefix("-Wp,") {
        Some(values) => values.split(',').collect::<Vec<_>>(),
        None => vec![value],
    }
    .into_iter();
    let reason = values.find_map(|value| UNSEEN.iter().find(|input| value.starts_with(input.prefix)));
    reason.map(|input| format!("`{text}`: {}", input.why))
}

/// A file that the device linker gets as an input, or an option by which it may read one.
pub fn linked_input(args: &[OsString]) -> Option<String> {
    let pair = args.windows(2).find(is_channel_input)?;
    Some(format!("`{}` is an input of the device link", pair[1].to_string_lossy()))
}

fn is_channel_input(pair: &&[OsString]) -> bool {
    pair[0].as_bytes().starts_with(CHANNEL.as_bytes()) && !is_codeless(&pair[1])
}

/// Whether the device linker reads no code by this argument.
fn is_codeless(arg: &OsString) -> bool {
    let text = arg.to_string_lossy();
    let Some(name) = text.strip_prefix("--").or_else(|| text.strip_prefix('-')) else { return false };
    is_own(arg) || LINKER_OPTIONS.contains(&name) || LINKER_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Clang reads `FILE.pch` or `FILE.gch` in place of the header of `-include FILE`, if there is one.
///
/// # Errors
/// [`hotswap_report::codes::CANNOT_READ`] with the file.
pub fn implicit_header(args: &[OsString]) -> Result<Option<String>, Diagnostic> {
    let names = included_names(args);
    for header in names.iter().flat_map(|name| ["pch", "gch"].map(|end| PathBuf::from(format!("{name}.{end}")))) {
        if reads::is_there(&header)? {
            let why = "a precompiled header is read without the preprocessor";
            return Ok(Some(format!("`{}`: {why}", header.display())));
        }
    }
    Ok(None)
}

/// The headers that arguments include, in each form of the option.
fn included_names(args: &[OsString]) -> Vec<String> {
    let separate = args.windows(2).filter(|pair| pair[0] == "-include" || pair[0] == "--include");
    let mut names: Vec<String> = separate.map(|pair| pair[1].to_string_lossy().into_owned()).collect();
    let texts = args.iter().map(|arg| arg.to_string_lossy());
    names.extend(texts.filter_map(|text| {
        let joined = text.strip_prefix("--include=").or_else(|| text.strip_prefix("-include"));
        joined.filter(|name| !name.is_empty()).map(str::to_owned)
    }));
    names
}

/// The variable with which clang changes its arguments.
pub fn overridden_options() -> Option<String> {
    const VARIABLE: &str = "CCC_OVERRIDE_OPTIONS";
    env::var_os(VARIABLE).filter(|value| !value.is_empty()).map(|_| format!("{VARIABLE} changes clang's arguments"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(text: &str) -> Vec<OsString> {
        text.split_whitespace().map(OsString::from).collect()
    }

    #[test]
    fn inputs_are_found_in_every_form() {
        for (text, part) in [
            ("-c a.hip -Xclang -mlink-bitcode-file -Xclang x.bc", "`-mlink-bitcode-file`: bitcode"),
            ("-Xclang=-mlink-builtin-bitcode -Xclang=x.bc", "bitcode"),
            ("-Xarch_device -include-pch -Xarch_device a.pch", "precompiled"),
            ("-mllvm -load=p.so", "plugin"),
            ("-mllvm=-load-pass-plugin=p.so", "plugin"),
            ("-fprebuilt-module-path=.", "modules"),
            ("--hip-device-lib=own.bc", "bitcode"),
            ("-frewrite-includes", "not expanded"),
            ("-Wp,-mlink-builtin-bitcode,x.bc", "bitcode"),
            ("-Wp,-DX,-include-pch,a.pch", "precompiled"),
            ("-Xpreprocessor -ast-merge -Xpreprocessor a.ast", "syntax tree"),
            ("-Xoffload-linker more.bc", "`more.bc` is an input of the device link"),
            ("-Xoffload-linker @more.rsp", "is an input"),
            ("-Xoffload-linker -L. -Xoffload-linker -lmore", "`-lmore` is an input"),
            ("-Xoffload-linker --library=more", "is an input"),
            ("-Xoffload-linker -Tmore.ld", "is an input"),
            ("-Xoffload-linker --script=more.ld", "is an input"),
            ("-Xoffload-linker --just-symbols=more", "is an input"),
            ("-Xoffload-linker --load-pass-plugin=p.so", "a plugin"),
            ("-Xoffload-linker -plugin-opt=-load=p.so", "a plugin"),
            ("-Xoffload-linker --an-option-of-later", "is an input"),
            ("-Xoffload-linker-amdgcn-amd-amdhsa more.o", "`more.o` is an input"),
        ] {
            assert!(find(&args(text)).is_some_and(|found| found.contains(part)), "{text}: {:?}", find(&args(text)));
        }
        for text in [
            "-c a.hip -O3 -g -mllvm -amdgpu-early-inline-all=true -fno-modules -include a.h",
            "-Xoffload-linker --hotswap-plan=1 -Xoffload-linker --emit-relocs",
            "-Xoffload-linker -s -Xoffload-linker --build-id=none -Xoffload-linker -L. -Xoffload-linker --discard-all",
            "-Xoffload-linker -mllvm=-amdgpu-early-inline-all=true -Xoffload-linker --strip-debug",
            "-Wp,-D_FORTIFY_SOURCE=3,-D_GLIBCXX_ASSERTIONS -Wp,-MD,a.d -Wl,-load",
            "-fno-plt -fprofile-use=a.profdata -lload",
        ] {
            assert_eq!(find(&args(text)), None, "{text}");
        }
    }

    #[test]
    fn a_precompiled_header_may_replace_the_named_one() {
        let dir = tempfile::tempdir().unwrap();
        let header = dir.path().join("all.h");
        let args = args(&format!("-c a.hip -include {}", header.display()));
        assert_eq!(implicit_header(&args).unwrap(), None);
        std::fs::write(dir.path().join("all.h.gch"), "").unwrap();
        assert!(implicit_header(&args).unwrap().is_some_and(|found| found.contains("all.h.gch")));
        for form in ["-include", "--include=", "--include "] {
            let args = self::args(&format!("-c a.hip {form}{}", header.display()));
            assert!(implicit_header(&args).unwrap().is_some_and(|found| found.contains("all.h.gch")), "{form}");
        }
    }
}
