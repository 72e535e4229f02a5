//! LLVM's disassembler on the same bytes: one object file with one function, in the userland.

use hotswap_userland::Userland;
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Major version of the reference.
const VERSION: &str = "23";

/// The bytes of one target, wrapped for llvm-objdump.
pub(crate) struct Objdump {
    userland: Userland,
    directory: tempfile::TempDir,
    processor: String,
}

impl Objdump {
    /// Writes the object file; `None` without a userland that has LLVM.
    ///
    /// # Errors
    /// If the userland's `/tmp` cannot be written or the assembler fails.
    pub(crate) fn new(processor: &str, code: &[u8]) -> io::Result<Option<Self>> {
        let Some(userland) = Userland::from_env() else { return Ok(None) };
        if !userland.outside(format!("/usr/bin/llvm-objdump-{VERSION}")).exists() {
            return Ok(None);
        }
        let directory = tempfile::Builder::new().prefix("hotswap-isa-bench-").tempdir_in(userland.outside("/tmp"))?;
        let this = Self { userland, directory, processor: processor.to_owned() };
        std::fs::write(this.directory.path().join("code.bin"), code)?;
        let text = ".text\n.globl f\n.type f,@function\nf:\n.incbin \"code.bin\"\n.size f, .-f\n";
        std::fs::write(this.directory.path().join("code.s"), text)?;
        this.script(&format!(
            "llvm-mc-{VERSION} -triple=amdgcn-amd-amdhsa -mcpu={processor} -filetype=obj code.s -o code.o"
        ))?;
        Ok(Some(this))
    }

    fn script(&self, script: &str) -> io::Result<String> {
        let directory = self.directory.path().file_name().unwrap_or_default();
        let mut command = self.userland.command(Path::new("/tmp").join(directory), "bash");
        command.args(["-e", "-c", script]).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = command.output()?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(io::Error::other(format!("`{script}` failed: {}", output.status)))
        }
    }

    /// Disassembles once; returns the processor time that it took.
    ///
    /// # Errors
    /// If it fails.
    pub(crate) fn run(&self) -> io::Result<Duration> {
        let line = format!("llvm-objdump-{VERSION} -d --mcpu={} code.o > /dev/null; times", self.processor);
        let text = self.script(&line)?;
        // The second line of `times` is that of the children: `0m1.234s 0m0.010s`.
        let children = text.lines().nth(1).unwrap_or_default();
        children.split(' ').map(minutes).sum::<Option<Duration>>().ok_or_else(|| io::Error::other(text))
    }
}

fn minutes(text: &str) -> Option<Duration> {
    let (minutes, seconds) = text.strip_suffix('s')?.split_once('m')?;
    let seconds: f64 = seconds.parse().ok()?;
    Duration::try_from_secs_f64(minutes.parse::<f64>().ok()? * 60.0 + seconds).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_a_shell_are_read() {
        assert_eq!(minutes("0m1.250s"), Some(Duration::from_millis(1250)));
        assert_eq!(minutes("2m0.001s"), Some(Duration::from_millis(120_001)));
        assert_eq!(minutes("1.250s"), None);
        assert_eq!(minutes("0mxs"), None);
    }
}
