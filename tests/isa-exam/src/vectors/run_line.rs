//! The `RUN:` lines of LLVM's tests: the processors and settings of a file.

use crate::setting::Setting;

/// One run of `llvm-mc`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Run {
    /// `-mcpu`.
    pub cpu: String,
    /// `-triple`.
    pub triple: String,
    /// The attributes of `-mattr`.
    pub attributes: Vec<String>,
    pub disassembles: bool,
    /// Arguments that define symbols.
    pub symbols: Vec<String>,
    /// Prefixes of the checks that belong to it.
    pub prefixes: Vec<String>,
}

impl Run {
    /// The decoder's setting; `None` when an attribute changes the processor itself.
    pub fn setting(&self) -> Option<Setting> {
        let mut setting = Setting::new(&self.cpu);
        if !self.attributes.iter().all(|attribute| setting.take(attribute)) {
            return None;
        }
        // LLVM decodes as wave32 when both are requested.
        if requests_attribute("+wavefrontsize32", self) && requests_attribute("+wavefrontsize64", self) {
            setting.wave = Some(32);
        }
        // Processors before GFX10 know one wave size and ignore the other.
        if self.cpu.starts_with("gfx9") {
            setting.wave = None;
        }
        Some(setting)
    }
}

fn requests_attribute(word: &str, run: &Run) -> bool {
    run.attributes.iter().any(|attribute| attribute.eq_ignore_ascii_case(word))
}

/// All runs of `llvm-mc` with a processor that a test file describes.
pub fn runs(text: &str) -> Vec<Run> {
    let mut lines = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let Some((_, command)) = line.split_once("RUN:") else { continue };
        let command = command.trim();
        let (part, more) = command.strip_suffix('\\').map_or((command, false), |part| (part, true));
        match lines.last_mut().filter(|_| open) {
            Some(last) => {
                *last = format!("{last} {part}");
            }
            None => lines.push(part.to_owned()),
        }
        open = more;
    }
    lines.iter().filter_map(|line| run(line)).filter(|run| !run.cpu.is_empty()).collect()
}

fn run(line: &str) -> Option<Run> {
    let mut parts = line.split('|').map(words);
    let tool = parts.next()?;
    if !tool.iter().any(|word| word == "llvm-mc") {
        return None;
    }
    let mut run = Run { triple: "amdgcn".into(), ..Run::default() };
    let mut rest = tool.iter().peekable();
    while let Some(word) = rest.next() {
        let Some(name) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        let (name, value) = name.split_once('=').map_or((name, None), |(name, value)| (name, Some(value.to_owned())));
        let mut value = || value.clone().or_else(|| rest.next().cloned()).unwrap_or_default();
        match name {
            "mcpu" => run.cpu = value(),
            "triple" => run.triple = value(),
            "mattr" => run.attributes.extend(value().split(',').map(str::to_owned)),
            "disassemble" => run.disassembles = true,
            "defsym" => run.symbols.push(format!("-defsym={}", value())),
            _ => {}
        }
    }
    run.prefixes = parts.filter(|words| words.iter().any(|word| word == "FileCheck")).flat_map(prefixes).collect();
    Some(run)
}

fn words(command: &str) -> Vec<String> {
    // A command that a shell could not split either is without arguments.
    shell_words::split(command.trim()).unwrap_or_default()
}

fn prefixes(words: Vec<String>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let name = word.trim_start_matches('-');
        if let Some(list) = name.strip_prefix("check-prefixes=").or_else(|| name.strip_prefix("check-prefix=")) {
            found.extend(list.split(',').map(str::to_owned));
        } else if (name == "check-prefix" || name == "check-prefixes") && word.starts_with('-') {
            found.extend(words.next().iter().flat_map(|list| list.split(',')).map(str::to_owned));
        }
    }
    if found.is_empty() { vec!["CHECK".to_owned()] } else { found }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_lines_of_all_spellings_are_read() {
        let text = "\
# RUN: llvm-mc -triple=amdgcn -mcpu=gfx1100 -mattr=+wavefrontsize64,-real-true16 -disassemble -show-encoding < %s | \
FileCheck -strict-whitespace -check-prefixes=GFX11,GFX11-FAKE16 %s
// RUN: not llvm-mc -triple amdgcn-amd-amdhsa --mcpu gfx900 -defsym=X=1 %s -filetype=null 2>&1 | \\
// RUN:   FileCheck --implicit-check-not=error: %s
# RUN: llvm-objdump -d %t
";
        let all = runs(text);
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].setting().map(|s| s.to_string()).as_deref(), Some("gfx1100/wave64/fake16"));
        assert!(all[0].disassembles && !all[1].disassembles);
        assert_eq!(all[0].prefixes, ["GFX11", "GFX11-FAKE16"]);
        assert_eq!(all[1].prefixes, ["CHECK"]);
        assert_eq!((all[1].cpu.as_str(), all[1].triple.as_str()), ("gfx900", "amdgcn-amd-amdhsa"));
        assert_eq!(all[1].symbols, ["-defsym=X=1"]);
    }

    #[test]
    fn an_attribute_that_changes_the_processor_gives_no_setting() {
        let run = Run { cpu: "gfx900".into(), attributes: vec!["+dot1-insts".into()], ..Run::default() };
        assert_eq!(run.setting(), None);
    }

    #[test]
    fn wave_sizes_that_a_processor_does_not_have_are_ignored() {
        let setting = |cpu: &str, attributes: &[&str]| {
            let attributes = attributes.iter().map(|&attribute| attribute.to_owned()).collect();
            Run { cpu: cpu.into(), attributes, ..Run::default() }.setting().map(|setting| setting.to_string())
        };
        assert_eq!(setting("gfx900", &["+wavefrontsize32"]).as_deref(), Some("gfx900"));
        assert_eq!(setting("gfx1250", &["+wavefrontsize64"]).as_deref(), Some("gfx1250/wave64"));
        assert_eq!(setting("gfx1010", &["+wavefrontsize32", "+wavefrontsize64"]).as_deref(), Some("gfx1010/wave32"));
    }
}
