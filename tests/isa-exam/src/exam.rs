//! Passes words to both decoders and enters the verdicts.

use crate::left_out::Entry;
use crate::oracle::{Answer, Oracle, Word};
use crate::report::Report;
use crate::setting::Setting;
use crate::tools::Tools;
use crate::vectors::disassembler::Check;
use crate::vectors::{Vector, Vectors};
use crate::verdict::{Subject, Verdict, compare};
use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;

/// Words of one piece of work.
const PIECE: usize = 8192;

/// The marker in names of words that LLVM's assembler made.
const ASSEMBLED: &str = ".s#";

/// Both sides, and how many threads compare them.
pub struct Exam<'a> {
    /// Programs of the userland.
    pub tools: &'a Tools,
    /// The decoder under test.
    pub subject: &'a dyn Subject,
    /// The list of exceptions.
    pub list: &'a [Entry],
    /// Threads, each with an LLVM of its own.
    pub threads: usize,
}

/// How LLVM's own checks compare with the judge.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Checks {
    /// Checks of the files that agree with the judge.
    pub confirmed: usize,
    /// Those that disagree.
    pub contradicted: Vec<String>,
}

type Items<'v> = Vec<(Word, &'v str)>;

impl Exam<'_> {
    /// Compares all vectors. `program` is the judge.
    ///
    /// # Errors
    /// If a judge cannot be started or ends early.
    pub fn vectors(&self, program: &str, vectors: &Vectors) -> io::Result<(Report, Checks)> {
        let mut pieces: Vec<(&Setting, Vec<&Vector>)> = Vec::new();
        for (setting, group) in vectors.by_setting() {
            pieces.extend(group.chunks(PIECE).map(|piece| (setting, piece.to_vec())));
        }
        let checks = Mutex::new(Checks::default());
        let report = self.parallel(program, &pieces, |oracle, (setting, vectors), report| {
            let answers = self.lines(oracle, setting, vectors, report)?;
            let mut checks = checks.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            vectors.iter().zip(&answers).for_each(|(vector, answers)| checks.enter(vector, answers));
            Ok(())
        })?;
        Ok((report, checks.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)))
    }

    /// Compares all instructions of each line; returns the judge's answers, line by line.
    fn lines(
        &self,
        oracle: &mut Oracle,
        setting: &Setting,
        vectors: &[&Vector],
        report: &mut Report,
    ) -> io::Result<Vec<Vec<Answer>>> {
        let mut all = vec![Vec::new(); vectors.len()];
        let mut open: Vec<(usize, usize)> = (0..vectors.len()).map(|line| (line, 0)).collect();
        while !open.is_empty() {
            let item = |&(line, at): &(usize, usize)| (Word::new(&vectors[line].bytes[at..]), &*vectors[line].source);
            let answers = self.judge(oracle, setting, open.iter().map(item).collect(), report)?;
            let mut next = Vec::new();
            for ((line, at), answer) in open.into_iter().zip(answers) {
                let at = at + step(&answer);
                all[line].push(answer);
                if at < vectors[line].bytes.len() {
                    next.push((line, at));
                }
            }
            open = next;
        }
        Ok(all)
    }

    /// Compares words; returns the answers of the judge.
    ///
    /// # Errors
    /// If the judge ends early.
    pub fn judge(
        &self,
        oracle: &mut Oracle,
        setting: &Setting,
        items: Items<'_>,
        report: &mut Report,
    ) -> io::Result<Vec<Answer>> {
        let words: Vec<Word> = items.iter().map(|(word, _)| *word).collect();
        let answers = oracle.ask(setting, &words)?;
        for ((word, source), answer) in items.iter().zip(&answers) {
            // Where LLVM crashed, ours must still terminate.
            let ours = self.subject.decode(setting, word);
            let verdict: Verdict = compare(setting, word, answer, ours.as_ref(), source.contains(ASSEMBLED));
            report.enter(self.list, setting, verdict, || (*source).to_owned());
        }
        Ok(answers)
    }

    /// Processes pieces in all threads; the reports are added up.
    ///
    /// # Errors
    /// The first one of any thread.
    pub fn parallel<P: Sync>(
        &self,
        program: &str,
        pieces: &[P],
        work: impl Fn(&mut Oracle, &P, &mut Report) -> io::Result<()> + Sync,
    ) -> io::Result<Report> {
        let next = std::sync::atomic::AtomicUsize::new(0);
        let thread = || -> io::Result<Report> {
            let mut oracle = Oracle::start(self.tools, program)?;
            let mut report = Report::default();
            while let Some(piece) = pieces.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
                work(&mut oracle, piece, &mut report)?;
            }
            Ok(report)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..self.threads.max(1)).map(|_| scope.spawn(thread)).collect();
            let mut sum = Report::default();
            for thread in threads {
                let report = thread.join().map_err(|_| io::Error::other("a thread of the exam panicked"))??;
                sum.merge(report);
            }
            Ok(sum)
        })
    }
}

/// The step to the next instruction: after an invalid word, the size of the shortest one.
fn step(answer: &Answer) -> usize {
    match answer {
        Answer::Valid { length, .. } => usize::from(*length).max(1),
        Answer::Invalid | Answer::Crashed => 4,
    }
}

impl Checks {
    fn enter(&mut self, vector: &Vector, answers: &[Answer]) {
        let Some(check) = &vector.check else { return };
        let normal = crate::normal::normal;
        let same = |answer: &Answer| match (check, answer) {
            (Check::Invalid, Answer::Invalid | Answer::Crashed) => true,
            (Check::Text(text), Answer::Valid { text: theirs, .. }) => normal(text) == normal(theirs),
            _ => false,
        };
        if answers.iter().any(same) {
            self.confirmed += 1;
        } else {
            self.contradicted.push(format!("{} {}: {check:?}, the judge: {answers:?}", vector.source, vector.setting));
        }
    }
}

/// Counts of vectors by processor.
pub fn by_target(vectors: &Vectors) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for vector in &vectors.all {
        *counts.entry(vector.setting.cpu.as_str()).or_default() += 1;
    }
    counts
}
