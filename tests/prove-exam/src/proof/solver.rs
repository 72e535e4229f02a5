//! An SMT solver as a child process, and its answers by the hash of the question.
//!
//! Invariants: an answer is used again only for the same text. Without a solver a question that was never answered is open.

use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The answers so far.
#[derive(Debug, Default)]
pub struct SolverAnswers {
    known: BTreeMap<String, String>,
    /// Answers that are new.
    pub fresh: usize,
}

/// The name of the variable that names the solver; without it `z3` and `bitwuzla` are looked for.
pub const VARIABLE: &str = "HOTSWAP_SMT";

/// The arguments with which a solver reads a question from standard input.
fn arguments(program: &str) -> &'static [&'static str] {
    if program.contains("z3") { &["-in", "-smt2", "-T:60"] } else { &[] }
}

fn hash(question: &str) -> String {
    Sha256::digest(question.as_bytes()).iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

impl SolverAnswers {
    /// Reads a file of answers, a hash and an answer a line; without the file, answers do not exist.
    pub fn read(file: &Path) -> Self {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let pairs = text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once(' '));
        Self { known: pairs.map(|(hash, answer)| (hash.to_owned(), answer.to_owned())).collect(), fresh: 0 }
    }

    /// Writes them.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, file: &Path) -> std::io::Result<()> {
        let head = "# Answers of an SMT solver to questions of `cargo xtask prove proofs`, by their SHA-256: `unsat` where an\n\
                    # instruction and its replacement never differ.\n";
        let lines = self.known.iter().map(|(hash, answer)| format!("{hash} {answer}\n"));
        std::fs::write(file, head.to_owned() + &lines.collect::<String>())
    }

    /// The answer to a question: `unsat`, `sat`, or another word of the solver; `None` without any.
    pub fn answer(&mut self, question: &str) -> Option<String> {
        let hash = hash(question);
        if let Some(known) = self.known.get(&hash) {
            return Some(known.clone());
        }
        let answer = asked(question)?;
        if matches!(&*answer, "sat" | "unsat") {
            self.fresh += 1;
            self.known.insert(hash, answer.clone());
        }
        Some(answer)
    }
}

fn asked(question: &str) -> Option<String> {
    let named = std::env::var(VARIABLE).ok();
    let programs = named.as_deref().map_or_else(|| vec!["z3", "bitwuzla"], |named| vec![named]);
    programs.into_iter().find_map(|program| ask(program, question))
}

fn ask(program: &str, question: &str) -> Option<String> {
    let mut command = Command::new(program);
    command.args(arguments(program)).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    child.stdin.take()?.write_all(question.as_bytes()).ok()?;
    let output = child.wait_with_output().ok()?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_owned)
}
