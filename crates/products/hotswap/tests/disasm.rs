//! `hotswap disasm`, and `symbols`, `addr2func`, `size`, `diff`, on files made here: one file in `tests/disasm`, or in
//! `tests/symbols`, is one case.
//!
//! A case is the contents of the input, the arguments of the command, and the expected output:
//!
//! ```text
//! # A sentence that says what the case is about.
//! file relocatable | linked | raw           (ends with: flags N, osabi N)
//! text 000080bf 0000b0bf ...                bytes of .text; `N * BYTES` repeats
//! section NAME code|data BYTES
//! symbol NAME function|data|label SECTION OFFSET SIZE
//! kernel NAME OFFSET SIZE wave32|wave64 [VGPRS]  the code, its descriptor in .rodata and both symbols
//! relocation SECTION OFFSET TYPE SYMBOL ADDEND
//! patch SECTION-HEADER OFFSET BYTES         damage to a section header, or `patch file OFFSET BYTES`
//! bundle ENTRY[=TARGET] ...                 the file is a bundle with one such object for each entry
//! run WORDS
//! exit CODE
//! stderr PART                               several; none: standard error is empty
//! --- stdout
//! ...
//! ```
//!
//! With `HOTSWAP_BLESS=1` the actual output is written into the cases.

use assert_cmd::Command;
use hotswap_bundle::Bundle;
use hotswap_samples::device_elf::{CODE, DeviceElf, Relocation, Section, Symbol};
use hotswap_targets::{EFlags, TargetId};
use std::fs;
use std::path::{Path, PathBuf};

const STDOUT: &str = "--- stdout\n";

struct CaseKernel {
    name: String,
    offset: u64,
    is_wave32: bool,
    vgprs: u64,
}

#[derive(Default)]
struct Case {
    elf: DeviceElf,
    is_raw: bool,
    kernels: Vec<CaseKernel>,
    patches: Vec<(String, usize, Vec<u8>)>,
    bundle: Vec<String>,
    words: Vec<String>,
    exit: i32,
    errors: Vec<String>,
}

fn number(text: &str) -> u64 {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.unwrap_or_else(|_| panic!("`{text}` is no number"))
}

/// Bytes as hexadecimal digits; `N * DIGITS` repeats.
fn bytes(text: &str) -> Vec<u8> {
    let (count, digits) = text.split_once('*').map_or((1, text), |(count, rest)| (number(count.trim()), rest));
    let digits: String = digits.split_whitespace().collect();
    let pair = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).unwrap_or_else(|_| panic!("`{text}`"));
    (0..digits.len()).step_by(2).map(pair).collect::<Vec<_>>().repeat(count as usize)
}

impl Case {
    fn parse(text: &str) -> Self {
        let mut case = Self::default();
        case.elf.sections.push(Section { name: ".text".into(), flags: CODE, bytes: Vec::new() });
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()) {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            case.line(word, rest);
        }
        case
    }

    fn line(&mut self, word: &str, rest: &str) {
        let words: Vec<&str> = rest.split_whitespace().collect();
        match word {
            "file" => {
                (self.is_raw, self.elf.linked) = (words[0] == "raw", words[0] == "linked");
                for pair in words[1..].chunks(2) {
                    match pair {
                        ["flags", value] => self.elf.flags = number(value) as u32,
                        ["osabi", value] => self.elf.os_abi = number(value) as u8,
                        other => panic!("{other:?}"),
                    }
                }
            }
            "text" => self.elf.sections[0].bytes.extend(bytes(rest)),
            "section" => {
                let flags = if words[1] == "code" { CODE } else { 2 };
                let bytes = bytes(&words[2..].join(" "));
                self.elf.sections.push(Section { name: words[0].into(), flags, bytes });
            }
            "symbol" => self.symbol(words[0], words[1], number(words[2]) as u16, number(words[3]), number(words[4])),
            "kernel" => {
                self.symbol(words[0], "function", 1, number(words[1]), number(words[2]));
                self.kernels.push(CaseKernel {
                    name: words[0].into(),
                    offset: number(words[1]),
                    is_wave32: words[3] == "wave32",
                    vgprs: words.get(4).map_or(8, |count| number(count)),
                });
            }
            "relocation" => self.elf.relocations.push(Relocation {
                section: number(words[0]) as usize,
                offset: number(words[1]),
                kind: number(words[2]) as u32,
                symbol: number(words[3]) as u32,
                addend: words[4].parse().unwrap(),
            }),
            "patch" => self.patches.push((words[0].into(), number(words[1]) as usize, bytes(words[2]))),
            "bundle" => self.bundle = words.iter().map(|word| (*word).to_owned()).collect(),
            "run" => self.words = words.iter().map(|word| (*word).to_owned()).collect(),
            "exit" => self.exit = number(rest) as i32,
            "stderr" => self.errors.push(rest.to_owned()),
            other => panic!("`{other}` means nothing in a case"),
        }
    }

    fn symbol(&mut self, name: &str, kind: &str, section: u16, offset: u64, size: u64) {
        let kind = match kind {
            "label" => 0,
            "data" => 1,
            "function" => 2,
            other => panic!("{other}"),
        };
        let name = name.replace("%20", " ").replace("%1b", "\x1b");
        self.elf.symbols.push(Symbol { name, kind, global: true, section, offset, size });
    }

    /// Descriptors after the text, with the distances that a linker would write.
    fn add_kernels(&mut self) {
        if self.kernels.is_empty() {
            return;
        }
        let text = self.elf.sections[0].bytes.len().next_multiple_of(64) as i64;
        let section = self.elf.sections.len() as u16 + 1;
        let mut bytes = Vec::new();
        for (index, kernel) in std::mem::take(&mut self.kernels).into_iter().enumerate() {
            let CaseKernel { name, offset, is_wave32, vgprs } = kernel;
            let mut descriptor = [0; 64];
            let distance = offset as i64 - text - 64 * index as i64;
            descriptor[..12].copy_from_slice(&[64, 0, 0, 0, 16, 0, 0, 0, 24, 0, 0, 0]);
            descriptor[16..24].copy_from_slice(&distance.to_le_bytes());
            // In steps of eight registers from RDNA on.
            descriptor[48] = (vgprs / 8 - 1) as u8;
            descriptor[57] = if is_wave32 { 4 } else { 0 };
            bytes.extend(descriptor);
            self.symbol(&format!("{name}.kd"), "data", section, 64 * index as u64, 64);
        }
        self.elf.sections.push(Section { name: ".rodata".into(), flags: 2, bytes });
    }

    fn input(&mut self) -> Vec<u8> {
        if self.is_raw {
            return self.elf.sections[0].bytes.clone();
        }
        self.add_kernels();
        if self.bundle.is_empty() {
            return self.object();
        }
        let mut bundle = Bundle::default();
        bundle.push("host-x86_64-unknown-linux-gnu-", Vec::new()).unwrap();
        for entry in std::mem::take(&mut self.bundle) {
            let (entry, target) = entry.split_once('=').unwrap_or((&entry, &entry));
            let content = match target.parse::<TargetId>() {
                Ok(target) => {
                    self.elf.flags = EFlags::of(&target).encode();
                    self.object()
                }
                Err(_) => b"\x03\x02\x23\x07".to_vec(),
            };
            bundle.push(format!("hipv4-amdgcn-amd-amdhsa--{entry}"), content).unwrap();
        }
        bundle.to_bytes().unwrap().into_owned()
    }

    fn object(&self) -> Vec<u8> {
        let mut file = self.elf.build();
        for (place, offset, bytes) in &self.patches {
            let at = if place == "file" { 0 } else { DeviceElf::header_of(&file, number(place) as usize) } + offset;
            file[at..at + bytes.len()].copy_from_slice(bytes);
        }
        file
    }
}

fn cases(directory: &str) -> Vec<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(directory);
    let mut cases: Vec<_> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

#[test]
fn cases_come_out_as_written() {
    run("disasm", &["disasm", "in"]);
}

/// The commands about functions: `run` of a case has all words, and the file `in`.
#[test]
fn tables_of_functions_come_out_as_written() {
    run("symbols", &[]);
}

/// Pictures are Graphviz's. Where it is missing or fails, that is told, and nothing is printed.
#[test]
fn pictures_are_drawn_by_graphviz() {
    let test = "pictures_are_drawn_by_graphviz";
    let directory = tempfile::TempDir::new().unwrap();
    let case = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/symbols/dot.case")).unwrap();
    let mut case = Case::parse(case.split_once(STDOUT).unwrap().0);
    fs::write(directory.path().join("in"), case.input()).unwrap();
    let picture = |path: &std::ffi::OsStr, words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        command.current_dir(directory.path()).env("PATH", path).args(["symbols", "in", "--format", "svg"]).args(words);
        let output = command.output().unwrap();
        let [out, error] = [output.stdout, output.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        (output.status.code(), out, error)
    };
    let tools = directory.path().join("tools");
    fs::create_dir(&tools).unwrap();
    let (code, out, error) = picture(tools.as_os_str(), &[]);
    assert!(code == Some(10) && out.is_empty() && error.contains("install Graphviz"), "{code:?} {out}{error}");
    fs::write(tools.join("dot"), "#!/bin/sh\nexit 3\n").unwrap();
    fs::set_permissions(tools.join("dot"), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (code, out, error) = picture(tools.as_os_str(), &[]);
    assert!(
        code != Some(0) && out.is_empty() && error.contains("`dot -Tsvg`: exit status: 3"),
        "{code:?} {out}{error}"
    );
    if !Command::new("dot").arg("-V").output().is_ok_and(|output| output.status.success()) {
        return hotswap_userland::skip(test, "the machine has no Graphviz");
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for (words, node) in [(&[][..], "direct"), (&["--flow", "pointer"], "s_swappc_b64")] {
        let (code, out, error) = picture(&path, words);
        assert!(
            code == Some(0) && out.contains("<svg") && out.contains(node) && error.is_empty(),
            "{words:?}: {error}{out}"
        );
    }
}

fn run(directory_of_cases: &str, first: &[&str]) {
    let bless = hotswap_userland::blesses();
    let directory = tempfile::TempDir::new().unwrap();
    let mut wrong = Vec::new();
    let cases = cases(directory_of_cases);
    assert!(cases.len() > 20, "the cases are there");
    for path in &cases {
        let text = fs::read_to_string(path).unwrap();
        let (given, expected) = text.split_once(STDOUT).unwrap_or((&text, ""));
        let mut case = Case::parse(given);
        fs::write(directory.path().join("in"), case.input()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        let output = command.current_dir(directory.path()).args(first).args(&case.words).output().unwrap();
        let (stdout, stderr) = (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
        let missing: Vec<_> = case.errors.iter().filter(|part| !stderr.contains(*part)).collect();
        let is_silent = case.errors.is_empty() && !stderr.is_empty();
        let lines = stderr.lines().count() > case.errors.len().max(1);
        if output.status.code() != Some(case.exit) || !missing.is_empty() || is_silent || lines {
            wrong.push(format!("{}: exit {:?}, {stderr}", path.display(), output.status.code()));
        } else if stdout != expected && bless {
            fs::write(path, format!("{given}{STDOUT}{stdout}")).unwrap();
        } else if stdout != expected {
            wrong.push(format!("{}: expected\n{expected}\nfound\n{stdout}", path.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    println!("{} cases", cases.len());
}
