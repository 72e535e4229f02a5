//! LLVM's disassembler as a judge, in a process of its own.

use crate::setting::Setting;
use crate::tools::Tools;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

const SOURCE: &str = include_str!("oracle.c");
/// Words of one frame; the C program has memory for as many.
const FRAME: usize = 16384;
/// Bytes of the longest instruction of any target: a GFX10 image instruction with twelve address registers.
pub const LONGEST: usize = 20;

/// Bytes of which one instruction is to be decoded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Word {
    bytes: [u8; LONGEST],
    size: u8,
}

impl Word {
    /// The first bytes of `bytes`, at most [`LONGEST`].
    pub fn new(bytes: &[u8]) -> Self {
        let size = bytes.len().min(LONGEST);
        let mut word = Self { bytes: [0; LONGEST], size: u8::try_from(size).unwrap_or(0) };
        word.bytes[..size].copy_from_slice(&bytes[..size]);
        word
    }

    /// Only the first `size` bytes of it.
    pub fn cut(&self, size: usize) -> Self {
        Self::new(&self.bytes()[..size.min(usize::from(self.size))])
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }
}

impl std::fmt::Debug for Word {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, out)
    }
}

impl std::fmt::Display for Word {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for byte in self.bytes() {
            write!(out, "{byte:02x}")?;
        }
        Ok(())
    }
}

/// LLVM's answer about a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// No instruction.
    Invalid,
    /// An instruction.
    Valid {
        /// Its length in bytes.
        length: u8,
        text: String,
        /// LLVM warns that the encoding is "potentially undefined".
        undefined: bool,
    },
    /// LLVM crashed or did not terminate.
    Crashed,
}

/// The process.
#[derive(Debug)]
pub struct Oracle {
    child: Child,
    input: Option<BufWriter<ChildStdin>>,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// Compiles the program of the judge against LLVM of that version. `None` when the userland does not have it.
    ///
    /// # Errors
    /// If the compiler fails or the scratch directory cannot be written.
    pub fn build(tools: &Tools, version: u32) -> io::Result<Option<String>> {
        let Some(library) = tools.library(version) else { return Ok(None) };
        let name = format!("oracle-{version}");
        std::fs::write(tools.outside("oracle.c"), SOURCE)?;
        let compiler = format!("clang-{version}");
        let output = tools.run(&[&compiler, "-O1", "-o", &name, "oracle.c", &library], &[])?;
        if output.status.success() {
            return Ok(Some(tools.inside(&name)));
        }
        Err(io::Error::other(format!("{compiler}: {}", String::from_utf8_lossy(&output.stderr))))
    }

    /// Starts the program that [`Oracle::build`] made.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn start(tools: &Tools, program: &str) -> io::Result<Self> {
        let mut command = tools.command(program);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let (Some(input), Some(output)) = (input, output) else { return Err(io::Error::other("no pipes")) };
        let input = Some(BufWriter::with_capacity(1 << 16, input));
        Ok(Self { child, input, output: BufReader::with_capacity(1 << 16, output) })
    }

    /// Answers for all words, in their order.
    ///
    /// # Errors
    /// If the process ends: it does not know the processor, or exceeds its own limits.
    pub fn ask(&mut self, setting: &Setting, words: &[Word]) -> io::Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(words.len());
        for frame in words.chunks(FRAME) {
            self.send(setting, frame)?;
            for _ in frame {
                answers.push(self.receive()?);
            }
        }
        Ok(answers)
    }

    fn send(&mut self, setting: &Setting, frame: &[Word]) -> io::Result<()> {
        let Some(input) = &mut self.input else { return Err(io::Error::other("ended")) };
        let text = format!("amdgcn-amd-amdhsa\n{}\n{}\n", setting.cpu, setting.attributes());
        input.write_all(&size_prefix_bytes(text.len()))?;
        input.write_all(&size_prefix_bytes(frame.len()))?;
        input.write_all(text.as_bytes())?;
        for word in frame {
            input.write_all(&[word.size, 0, 0, 0])?;
            input.write_all(&word.bytes)?;
        }
        input.flush()
    }

    fn receive(&mut self) -> io::Result<Answer> {
        let mut head = [0; 4];
        self.output.read_exact(&mut head)?;
        let mut text = vec![0; usize::from(u16::from_le_bytes([head[2], head[3]]))];
        self.output.read_exact(&mut text)?;
        match head[0] {
            0 => Ok(Answer::Invalid),
            3 => Ok(Answer::Crashed),
            status => {
                let text = String::from_utf8_lossy(&text).trim().to_owned();
                Ok(Answer::Valid { length: head[1], text, undefined: status == 2 })
            }
        }
    }
}

fn size_prefix_bytes(size: usize) -> [u8; 4] {
    u32::try_from(size).unwrap_or(u32::MAX).to_le_bytes()
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // It ends at the end of its input.
        self.input = None;
        let _ = self.child.wait();
    }
}
