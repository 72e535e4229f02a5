//! The oracle: the programs that the kernel started, seen by `strace`, and the device links among them.
//!
//! A device link is the start of a real `lld` (not HotSwap's) for AMDGPU: by its own arguments (`-m elf64_amdgpu`), or
//! below a `clang` for an AMD GPU, because the command line of clang 24 does not contain the machine any more.

use std::collections::HashMap;
use std::path::Path;

/// Arguments before the command; the log's name follows them.
pub const STRACE: &[&str] = &[
    "strace",
    "-f",
    "-qq",
    "-v",
    "-s",
    "1000000",
    "--seccomp-bpf",
    "-e",
    "trace=execve,clone,clone3,fork,vfork",
    "-e",
    "signal=none",
    "-o",
];

/// One program that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exec {
    /// Process (or thread) that executes the program.
    pub process: u32,
    /// File that was executed.
    pub file: String,
    /// Its arguments, the name first.
    pub words: Vec<String>,
}

/// All started programs, in order, and the parents of processes.
#[derive(Debug, Default)]
pub struct Log {
    /// Programs, in the order of their start.
    pub execs: Vec<Exec>,
    parents: HashMap<u32, u32>,
}

impl Exec {
    /// Name of the file without its directory.
    pub fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }

    fn is_for_amdgpu(&self) -> bool {
        let target = |word: &str| word.starts_with("amd");
        self.words.iter().any(|word| word.strip_prefix("--target=").is_some_and(target))
            || self.words.windows(2).any(|two| two[0] == "-target" && target(&two[1]))
    }

    fn is_linker(&self) -> bool {
        let name = self.name().rsplit("-linux-gnu-").next().unwrap_or_default();
        matches!(name, "ld" | "ld.bfd" | "ld.gold" | "gold" | "ld.mold" | "mold" | "lld" | "ld.lld")
    }
}

impl Log {
    /// Reads the log that strace wrote.
    pub fn parse(text: &str) -> Self {
        let mut log = Self::default();
        let mut pending: HashMap<u32, Exec> = HashMap::new();
        for line in text.lines() {
            let Some((process, call)) = line.split_once(' ') else { continue };
            let Ok(process) = process.parse() else { continue };
            let (call, result) = (call.trim_start(), result(line));
            if let Some(exec) = parse_exec(process, call) {
                if call.ends_with("<unfinished ...>") {
                    pending.insert(process, exec);
                } else if result == Some(0) {
                    log.execs.push(exec);
                }
            } else if call.starts_with("<... execve resumed>") {
                log.execs.extend(pending.remove(&process).filter(|_| result == Some(0)));
            } else if let Some(child) = result.filter(|&child| child > 0) {
                log.parents.insert(child, process);
            }
        }
        log
    }

    /// Device links by the real linker: those that are not below `prefix`, HotSwap's installation.
    pub fn device_links(&self, prefix: &Path) -> Vec<&Exec> {
        self.execs
            .iter()
            .filter(|one| is_outside_prefix(one, prefix))
            .filter(|exec| self.is_device_link(exec))
            .collect()
    }

    /// Host links by a real linker whose arguments contain one of HotSwap's.
    pub fn tainted_host_links(&self, prefix: &Path) -> Vec<&Exec> {
        self.execs
            .iter()
            .filter(|one| is_unwrapped_linker(one, prefix))
            .filter(|exec| !self.is_device_link(exec))
            .filter(has_hotswap_word)
            .collect()
    }

    fn is_device_link(&self, exec: &Exec) -> bool {
        matches!(exec.name(), "lld" | "ld.lld")
            // `--save-temps` of clang 24 runs the linker once more, for assembly text only.
            && !exec.words.iter().any(|word| word == "--lto-emit-asm")
            && (exec.words.iter().any(|word| word == "elf64_amdgpu") || self.is_below_amdgpu_clang(exec.process))
    }

    fn is_below_amdgpu_clang(&self, process: u32) -> bool {
        let mut next = Some(process);
        // A reused process number could close a circle; no build is nested that deep.
        for _ in 0..64 {
            let Some(process) = next else { return false };
            if self.execs.iter().any(|exec| exec.process == process && exec.is_for_amdgpu()) {
                return true;
            }
            next = self.parents.get(&process).copied();
        }
        false
    }
}

fn is_outside_prefix(exec: &&Exec, prefix: &Path) -> bool {
    !Path::new(&exec.file).starts_with(prefix)
}

fn has_hotswap_word(exec: &&Exec) -> bool {
    exec.words.iter().any(|word| word.contains("--hotswap-"))
}

fn is_unwrapped_linker(exec: &&Exec, prefix: &Path) -> bool {
    exec.is_linker() && !Path::new(&exec.file).starts_with(prefix)
}

/// The number after the last `= `.
fn result(line: &str) -> Option<u32> {
    line.rsplit_once(" = ")?.1.split(' ').next()?.parse().ok()
}

/// `execve("FILE", ["WORD", …], …`
fn parse_exec(process: u32, call: &str) -> Option<Exec> {
    let rest = call.strip_prefix("execve(")?;
    let (file, rest) = quoted(rest)?;
    let mut rest = rest.strip_prefix(", [")?;
    let mut words = Vec::new();
    while let Some((word, after)) = quoted(rest) {
        words.push(word);
        rest = after.strip_prefix(", ").unwrap_or(after);
    }
    Some(Exec { process, file, words })
}

/// A C string at the beginning of `text`, and what follows it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let body = text.strip_prefix('"')?;
    let mut bytes = Vec::new();
    let mut rest = body.bytes().enumerate().peekable();
    while let Some((at, byte)) = rest.next() {
        match byte {
            b'"' => return Some((String::from_utf8_lossy(&bytes).into_owned(), &body[at + 1..])),
            b'\\' => match rest.next()?.1 {
                b'n' => bytes.push(b'\n'),
                b't' => bytes.push(b'\t'),
                b'r' => bytes.push(b'\r'),
                b'v' => bytes.push(0x0b),
                b'f' => bytes.push(0x0c),
                digit @ b'0'..=b'7' => {
                    let mut value = u32::from(digit - b'0');
                    for _ in 0..2 {
                        if let Some((_, next)) = rest.next_if(|(_, next)| matches!(next, b'0'..=b'7')) {
                            value = value * 8 + u32::from(next - b'0');
                        }
                    }
                    bytes.push(value.to_le_bytes()[0]);
                }
                other => bytes.push(other),
            },
            other => bytes.push(other),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: &str = r#"10 execve("/usr/bin/clang++-24", ["clang++-24", "a b.hip", "-DX=\"1\"\303\244"], ["A=1"]) = 0
10 clone3({flags=CLONE_VM|CLONE_VFORK, exit_signal=SIGCHLD}, 88 <unfinished ...>
11 execve("/usr/lib/llvm-24/bin/clang", ["clang", "--target=amdgpu10.30-amd-amdhsa"], [] <unfinished ...>
10 <... clone3 resumed>)             = 11
11 <... execve resumed>)             = 0
11 vfork( <unfinished ...>
12 execve("/p/libexec/hotswap/ld.lld", ["ld.lld", "--hotswap-plan=1", "-o", "x.img"], []) = 0
11 <... vfork resumed>)              = 12
12 clone(child_stack=NULL) = 13
13 execve("/nowhere/ld.lld", ["ld.lld"], []) = -1 ENOENT (No such file or directory)
13 execve("/usr/lib/llvm-24/bin/ld.lld", ["ld.lld", "-o", "x.img"], []) = 0
10 clone3({flags=CLONE_VM}, 88) = 14
14 execve("/usr/lib/llvm-24/bin/ld.lld", ["ld.lld", "-m", "elf_x86_64", "--hotswap-plan=1"], []) = 0
15 execve("/usr/lib/llvm-22/bin/lld", ["lld", "-flavor", "gnu", "-m", "elf64_amdgpu"], []) = 0
"#;

    #[test]
    fn programs_words_and_failures_are_read() {
        let log = Log::parse(LOG);
        assert_eq!(log.execs.len(), 6);
        assert_eq!(log.execs[0].words, ["clang++-24", "a b.hip", "-DX=\"1\"ä"]);
    }

    #[test]
    fn device_links_are_told_from_host_links_by_words_or_by_parent() {
        let log = Log::parse(LOG);
        let links: Vec<_> = log.device_links(Path::new("/p")).iter().map(|exec| exec.process).collect();
        assert_eq!(links, [13, 15]);
        let tainted: Vec<_> = log.tainted_host_links(Path::new("/p")).iter().map(|exec| exec.process).collect();
        assert_eq!(tainted, [14]);
    }
}
