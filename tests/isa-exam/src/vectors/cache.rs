//! The assembler's output for LLVM's files, kept between runs: 1,000 processes take a minute, a file does not.

use super::assembler::Assembled;
use super::run_line::Run;
use crate::oracle::Word;
use crate::tools::Tools;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Version of LLVM whose assembler is used.
pub const VERSION: u32 = 23;

/// The kept answers.
#[derive(Debug)]
pub struct Cache {
    file: PathBuf,
    head: String,
    answers: BTreeMap<String, Assembled>,
    changed: bool,
}

impl Cache {
    /// Opens the cache in that directory. Answers of another assembler or for other test files are discarded.
    ///
    /// # Errors
    /// If the assembler cannot be started.
    pub fn open(directory: &Path, tools: &Tools, tests: &Path) -> io::Result<Self> {
        let program = format!("llvm-mc-{VERSION}");
        let version = String::from_utf8_lossy(&tools.run(&[&program, "--version"], &[])?.stdout).into_owned();
        let version = version.lines().find(|line| line.contains("version")).unwrap_or_default().trim().to_owned();
        let sizes: u64 = super::files(&tests.join("AMDGPU"), "s")?
            .iter()
            .filter_map(|file| file.metadata().ok())
            .map(|metadata| metadata.len())
            .sum();
        let head = format!("{version}; {sizes} bytes of tests");
        let file = directory.join(format!("assembled-{VERSION}.txt"));
        let answers = fs::read_to_string(&file).ok().and_then(|text| read(&head, &text)).unwrap_or_default();
        Ok(Self { file, head, answers, changed: false })
    }

    /// The kept answer, or the result of `make`.
    ///
    /// # Errors
    /// Those of `make`.
    pub fn get(
        &mut self,
        name: &str,
        run: &Run,
        make: impl FnOnce() -> io::Result<Assembled>,
    ) -> io::Result<Assembled> {
        let words = [&run.attributes[..], &run.symbols[..]].concat().join(",");
        let key = format!("{name} {} {} {words}", run.triple, run.cpu);
        if let Some(kept) = self.answers.get(&key) {
            return Ok(kept.clone());
        }
        let made = make()?;
        self.answers.insert(key, made.clone());
        self.changed = true;
        Ok(made)
    }

    /// Writes it if there are new answers.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn save(&self) -> io::Result<()> {
        if !self.changed {
            return Ok(());
        }
        let mut text = format!("{}\n", self.head);
        for (key, answer) in &self.answers {
            // Writing to a string does not fail.
            let _ = writeln!(text, "={key}\n+{}", answer.open);
            for bytes in &answer.encodings {
                text += &Word::new(bytes).to_string();
                text.push('\n');
            }
        }
        if let Some(directory) = self.file.parent() {
            fs::create_dir_all(directory)?;
        }
        let new = self.file.with_extension(format!("{}.new", std::process::id()));
        fs::write(&new, text)?;
        fs::rename(&new, &self.file)
    }
}

/// `None` when it is not a whole cache with that head.
fn read(head: &str, text: &str) -> Option<BTreeMap<String, Assembled>> {
    let mut lines = text.lines();
    if lines.next() != Some(head) {
        return None;
    }
    let mut answers = BTreeMap::new();
    let mut key = None;
    for line in lines {
        if let Some(name) = line.strip_prefix('=') {
            answers.insert(name.to_owned(), Assembled::default());
            key = Some(name.to_owned());
            continue;
        }
        let answer = answers.get_mut(key.as_ref()?)?;
        match line.strip_prefix('+') {
            Some(open) => answer.open = open.parse().ok()?,
            None => answer.encodings.push(hexadecimal(line)?),
        }
    }
    Some(answers)
}

/// Bytes of a text of hexadecimal digits.
pub fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).and_then(|digit| u8::try_from(digit).ok())).collect();
    let digits = digits.filter(|digits| digits.len() % 2 == 0)?;
    Some(digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_of_other_tests_or_a_broken_one_is_forgotten() {
        let text = "head\n=a.s amdgcn gfx900 \n+2\n0000\n01ff\n=b.s x y z\n+0\n";
        let answers = read("head", text).expect("whole");
        assert_eq!(answers["a.s amdgcn gfx900 "], Assembled { encodings: vec![vec![0, 0], vec![1, 255]], open: 2 });
        assert_eq!(read("other", text), None);
        assert_eq!(read("head", "head\n0000\n"), None);
        assert_eq!(read("head", "head\n=a\n+0\n000\n"), None);
    }
}
