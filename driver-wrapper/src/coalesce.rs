//! Which GPUs of a command one compilation can serve, judging by the arguments.
//!
//! Invariants: a pure function of the arguments and the plan; in case of doubt clang compiles for every GPU, as it
//! would without us.
//!
//! Absent on purpose: whether the program's text is the same for the GPUs ([`crate::source_text`]), and the arguments
//! in clang's own configuration files, which clang reads later.

use crate::command::{ClangCommand, InputKind};
use crate::flags::{OffloadSide, Phase};
use crate::options::is_own;
use crate::unseen;
use hotswap_compat::{Class, coalesced_classes};
use hotswap_plan::{Plan, RetargetPair};
use hotswap_targets::{Processor, TargetId};
use std::ffi::OsString;

/// Arguments that begin in a way, and the reason why one compilation does not serve several GPUs with them.
struct DoubtfulPrefix {
    prefix: &'static str,
    why: &'static str,
}

const fn doubtful_prefix(prefix: &'static str, why: &'static str) -> DoubtfulPrefix {
    DoubtfulPrefix { prefix, why }
}

/// Prefixes of arguments that put more than the program into code, or that make a run of the preprocessor leave files.
/// Those that let the compiler read more than the text are in [`unseen`].
const DOUBTS: &[DoubtfulPrefix] = &[
    doubtful_prefix("--save-temps", "intermediate files are kept for every GPU"),
    doubtful_prefix("-save-temps", "intermediate files are kept for every GPU"),
    doubtful_prefix("-gsplit-dwarf", "the debug information is in a file for each GPU"),
    doubtful_prefix("-fsave-optimization-record", "a file is written for each GPU"),
    doubtful_prefix("-foptimization-record-", "a file is written for each GPU"),
    doubtful_prefix("-MJ", "each compilation is written down"),
    doubtful_prefix("-gen-cdb-fragment-path", "each compilation is written down"),
    doubtful_prefix("-fprofile-", "counters carry the name of the GPU"),
    doubtful_prefix("-fcs-profile-", "counters carry the name of the GPU"),
    doubtful_prefix("-fcoverage-", "counters carry the name of the GPU"),
    doubtful_prefix("-frecord-", "the code object carries the command line"),
    doubtful_prefix("-grecord-", "the code object carries the command line"),
    doubtful_prefix("-fembed-", "the code object carries the command line"),
    doubtful_prefix("-foffload-lto", "device code is compiled in the link"),
    doubtful_prefix("--config", "a configuration file of clang may have words for one GPU"),
];

/// Bitcode of a relocatable unit under the name of another target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitImage {
    pub target: String,
    /// The one that the bitcode was compiled for.
    pub source: String,
}

/// The options for compiling once for several GPUs, according to the arguments.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coalescing {
    /// The classes that may be compiled once, if the text is the same.
    pub classes: Vec<Class>,
    /// The reason for compiling for every GPU although coalescing was requested.
    pub refused: Option<String>,
}

impl Coalescing {
    /// The coalescing that is possible for a command that requests it.
    pub fn of(command: &ClangCommand, words: &[OsString]) -> Self {
        if let Some(why) = doubt(command, words) {
            return Self::refused_because(why);
        }
        let requested: Result<Vec<TargetId>, _> = command.archs.iter().map(|arch| arch.parse()).collect();
        let Ok(requested) = requested else { return Self::refused_because("a GPU is not known".to_owned()) };
        let classes = coalesced_classes(&requested);
        let members: Vec<_> =
            classes.iter().flat_map(|class| class.others.iter().chain([&class.source])).copied().collect();
        if let Some(word) = words.iter().find(|word| names_one(word, &members)) {
            return Self::refused_because(format!("`{}` is for one GPU", word.to_string_lossy()));
        }
        let refused = classes.is_empty().then(|| "no two of the GPUs are identical siblings".to_owned());
        Self { classes, refused }
    }

    fn refused_because(why: String) -> Self {
        Self { classes: Vec::new(), refused: Some(why) }
    }

    /// The pairs that derive the targets that are not compiled.
    pub fn pairs(&self) -> impl Iterator<Item = RetargetPair> {
        self.classes.iter().flat_map(move |class| {
            class.others.iter().map(move |other| new_retarget_pair(class.source.name, other.name))
        })
    }

    /// Compiles for the processors from which the plan derives other code objects.
    pub fn keep_sources(&mut self, plan: &Plan) {
        self.retain(|_, other| !is_source_in_plan(other, plan), "the plan needs the code objects of these GPUs");
    }

    /// Keeps only what the plan of the build system derives: its hash identifies the result.
    pub fn keep_planned(&mut self, plan: &Plan) {
        self.retain(
            |source, target| plan.pairs.iter().any(|pair| pair.source == source && pair.target == target),
            "the plan of the build system has no pair for these GPUs",
        );
    }

    fn retain(&mut self, keep: impl Fn(&str, &str) -> bool, why: &str) {
        for class in &mut self.classes {
            let source = class.source.name;
            class.others.retain(|other| keep(source, other.name));
        }
        self.classes.retain(|class| !class.others.is_empty());
        if self.classes.is_empty() && self.refused.is_none() {
            self.refused = Some(why.to_owned());
        }
    }
}

fn new_retarget_pair(source: &str, target: &str) -> RetargetPair {
    RetargetPair { source: source.to_owned(), target: target.to_owned() }
}

fn is_source_in_plan(name: &str, plan: &Plan) -> bool {
    plan.pairs.iter().any(|pair| pair.source == name)
}

/// The reason why one compilation cannot serve several GPUs, whichever they are.
fn doubt(command: &ClangCommand, words: &[OsString]) -> Option<String> {
    let sources: Vec<_> = command.inputs.iter().filter(|input| input.kind != InputKind::Link).collect();
    let compiled = matches!(command.phase, Phase::Compile | Phase::Link);
    let only_links = command.links_relocatable() && !command.has_hip_source();
    let why = if !command.has_hip_source() && !only_links {
        "no HIP source is compiled"
    } else if !compiled || command.scope != OffloadSide::Both || command.emit_llvm || command.relocatable {
        "the output is not one fat binary in a host object"
    } else if !only_links && sources.len() != 1 {
        "there is more than one source"
    } else if sources.iter().any(|input| input.is_preprocessed) {
        "the source is preprocessed"
    } else if sources.iter().any(|input| input.path == "-") {
        "the source is standard input"
    } else if command.openmp || command.targets_gpu() {
        "HIP is not the only offloading"
    } else if command.rdc && command.device_lto == Some(false) {
        "relocatable code is not bitcode"
    } else if words.iter().any(|word| word == "--") {
        "`--` ends the flags"
    } else {
        return doubt_of_words(words);
    };
    Some(why.to_owned())
}

/// The same, judging by arguments alone, wherever they come from.
pub(crate) fn doubt_of_words(words: &[OsString]) -> Option<String> {
    unseen::find(words).or_else(|| words.iter().find_map(doubt_by_prefix))
}

fn doubt_by_prefix(word: &OsString) -> Option<String> {
    let text = word.to_string_lossy();
    DOUBTS.iter().find(|doubt| text.starts_with(doubt.prefix)).map(|doubt| format!("`{text}`: {}", doubt.why))
}

/// An argument for one of the GPUs (`-Xarch_gfx1031`) or about it (`-D__gfx1031__`), except for those that request it.
pub(crate) fn names_one(word: &OsString, members: &[&Processor]) -> bool {
    let text = word.to_string_lossy();
    let requests = ["--offload-arch=", "--cuda-gpu-arch=", "--no-offload-arch=", "--no-cuda-gpu-arch="];
    if is_own(word) || requests.iter().any(|flag| text.starts_with(flag)) {
        return false;
    }
    members.iter().any(|member| text.contains(member.name) && !is_path(&text))
}

/// A file's name may well contain a GPU; an argument that begins with a dash is not such a name.
fn is_path(text: &str) -> bool {
    !text.starts_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scan;

    fn show(text: &str) -> String {
        let words: Vec<OsString> = text.split_whitespace().map(OsString::from).collect();
        let found = Coalescing::of(&scan(&words), &words);
        let pairs: Vec<_> = found.pairs().map(|pair| format!("{}=>{}", pair.source, pair.target)).collect();
        found.refused.unwrap_or_else(|| pairs.join(" "))
    }

    #[test]
    fn doubts_compile_for_every_gpu() {
        let two = "--offload-arch=gfx1030,gfx1031";
        for (words, expected) in [
            ("-c a.hip", "gfx1030=>gfx1031"),
            ("a.hip b.o -o x", "gfx1030=>gfx1031"),
            ("-x hip -c a.cpp -O3 -g -MD -MF a.d", "gfx1030=>gfx1031"),
            ("-c build-gfx1031/a.hip -o build-gfx1031/a.o", "gfx1030=>gfx1031"),
            ("--offload-arch=gfx900 --offload-arch=gfx902 -c a.hip", "gfx1030=>gfx1031 gfx900=>gfx902"),
            ("--no-offload-arch=gfx1031 -c a.hip", "no two of the GPUs are identical siblings"),
            ("--offload-arch=native -c a.hip", "a GPU is not known"),
            ("-c a.cpp", "no HIP source is compiled"),
            ("a.o --hip-link", "gfx1030=>gfx1031"),
            ("a.o -c", "no HIP source is compiled"),
            ("-E a.hip", "the output is not one fat binary in a host object"),
            ("-S a.hip", "the output is not one fat binary in a host object"),
            ("--offload-device-only -c a.hip", "the output is not one fat binary in a host object"),
            ("-fgpu-rdc -c a.hip", "gfx1030=>gfx1031"),
            ("-c a.hip b.hip", "there is more than one source"),
            ("a.hip main.cpp -o x", "there is more than one source"),
            ("-x hip -c -", "the source is standard input"),
            ("-fopenmp -c a.hip", "HIP is not the only offloading"),
            ("-c -- a.hip", "`--` ends the flags"),
            ("-c a.hip -Xarch_gfx1031 -O0", "`-Xarch_gfx1031` is for one GPU"),
            ("-c a.hip -D__gfx1031__", "`-D__gfx1031__` is for one GPU"),
            ("-c a.hip -save-temps=obj", "`-save-temps=obj`: intermediate files are kept for every GPU"),
            ("-c a.hip -g -gsplit-dwarf", "`-gsplit-dwarf`: the debug information is in a file for each GPU"),
            ("-c a.hip -fprofile-generate", "`-fprofile-generate`: counters carry the name of the GPU"),
            ("-c a.hip -Xclang -load -Xclang p.so", "`-load`: a plugin may query the GPU"),
        ] {
            assert_eq!(show(&format!("{two} {words}")), expected, "{words}");
        }
    }

    #[test]
    fn the_plan_of_a_build_system_says_what_may_be_derived() {
        let words: Vec<OsString> = ["--offload-arch=gfx1030,gfx1031,gfx1032", "-c", "a.hip"].map(Into::into).into();
        for (pairs, expected) in [("gfx1030=>gfx1032", "gfx1032"), ("gfx1031=>gfx1032", ""), ("gfx900=>gfx902", "")] {
            let mut plan = Plan::default();
            plan.add_pairs(pairs).unwrap();
            let mut found = Coalescing::of(&scan(&words), &words);
            found.keep_planned(&plan);
            let others: Vec<_> = found.pairs().map(|pair| pair.target).collect();
            assert_eq!(others.join(","), expected, "{pairs}");
            assert_eq!(found.refused.is_some(), expected.is_empty());
        }
        // The sources of other code objects must still be compiled.
        for (pairs, expected) in [("gfx1031=>gfx1036", "gfx1032"), ("gfx1030=>gfx1036", "gfx1031,gfx1032")] {
            let mut plan = Plan::default();
            plan.add_pairs(pairs).unwrap();
            let mut found = Coalescing::of(&scan(&words), &words);
            found.keep_sources(&plan);
            assert_eq!(found.pairs().map(|pair| pair.target).collect::<Vec<_>>().join(","), expected, "{pairs}");
        }
    }
}
