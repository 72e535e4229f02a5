//! Reads the output of child processes without a panic: `Command::output` of the standard library unwraps the result of its reads,
//! so that a pipe that cannot be read ends this process as a defect.
//!
//! Both pipes are read by one thread as they fill: a process that may make no other thread runs its tools all the same.
//!
//! Absent on purpose: input for the child.

use rustix::event::{PollFd, PollFlags, poll};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::process::{Child, Command, Output, Stdio};

/// Bytes that are read at a time: the size of a pipe.
const CHUNK: usize = 64 << 10;

/// Runs a command to its end, with its standard output and error captured and nothing to read.
///
/// # Errors
/// The system's, if it cannot be started or its output cannot be read.
pub fn command_output(command: &mut Command) -> io::Result<Output> {
    command.stdin(empty_input()?).stdout(Stdio::piped()).stderr(Stdio::piped());
    child_output(command.spawn()?)
}

/// Nothing to read for a child. The system's error about it is not one of the program: taken for that, the program would be absent.
///
/// # Errors
/// `/dev/null` cannot be opened.
pub fn empty_input() -> io::Result<Stdio> {
    const EMPTY: &str = "/dev/null";
    let opened = File::open(EMPTY).map_err(|error| io::Error::other(format!("{EMPTY}: {error}")))?;
    Ok(opened.into())
}

/// Waits for a child, and reads those of its outputs that are pipes.
///
/// # Errors
/// The system's, if an output cannot be read. The child has ended then, too: no one reads what it writes.
pub fn child_output(mut child: Child) -> io::Result<Output> {
    drop(child.stdin.take());
    let mut stdout = ChildPipe::of_stream(child.stdout.take());
    let mut stderr = ChildPipe::of_stream(child.stderr.take());
    let read = read_pipes(&mut stdout, &mut stderr);
    // The pipes are closed first, so that a child that still writes ends.
    let (stdout, stderr) = (stdout.finish(), stderr.finish());
    let status = child.wait()?;
    read?;
    Ok(Output { status, stdout, stderr })
}

/// One of a child's outputs; no stream where it is not captured, or at its end.
struct ChildPipe<S> {
    stream: Option<S>,
    bytes: Vec<u8>,
}

impl<S: Read + AsFd> ChildPipe<S> {
    fn of_stream(stream: Option<S>) -> Self {
        Self { stream, bytes: Vec::new() }
    }

    fn finish(self) -> Vec<u8> {
        self.bytes
    }

    /// Reads once, which does not block where poll has told of data or of the end.
    fn read_once(&mut self) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let old = self.bytes.len();
        self.bytes.resize(old + CHUNK, 0);
        let read = stream.read(&mut self.bytes[old..]);
        self.bytes.truncate(old + read.as_ref().copied().unwrap_or_default());
        match read {
            Ok(0) => self.stream = None,
            Err(error) if error.kind() != io::ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        Ok(())
    }
}

fn read_pipes<A: Read + AsFd, B: Read + AsFd>(first: &mut ChildPipe<A>, second: &mut ChildPipe<B>) -> io::Result<()> {
    loop {
        match (&first.stream, &second.stream) {
            (None, None) => return Ok(()),
            (Some(_), None) => first.read_once()?,
            (None, Some(_)) => second.read_once()?,
            (Some(one), Some(other)) => {
                let mut waiting = [PollFd::new(one, PollFlags::IN), PollFd::new(other, PollFlags::IN)];
                match poll(&mut waiting, None) {
                    Ok(_) | Err(rustix::io::Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                let [is_first_ready, is_second_ready] = waiting.map(|pipe| !pipe.revents().is_empty());
                if is_first_ready {
                    first.read_once()?;
                }
                if is_second_ready {
                    second.read_once()?;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// More than a pipe holds, on both at once and one after the other.
    #[test]
    fn both_outputs_are_read_to_their_ends() {
        for script in [
            "head -c 300000 /dev/zero & head -c 200000 /dev/zero >&2; wait",
            "head -c 200000 /dev/zero >&2; head -c 300000 /dev/zero",
            "head -c 300000 /dev/zero; exec >&-; head -c 200000 /dev/zero >&2",
        ] {
            let output = command_output(&mut shell(script)).unwrap();
            assert!(output.status.success(), "{script}");
            assert_eq!([output.stdout.len(), output.stderr.len()], [300_000, 200_000], "{script}");
        }
    }

    #[test]
    fn the_exit_code_and_an_output_that_is_not_captured_are_kept() {
        let output = command_output(&mut shell("echo said; echo error >&2; read x; exit 3")).unwrap();
        assert_eq!(
            (output.status.code(), output.stdout, output.stderr),
            (Some(3), b"said\n".into(), b"error\n".into())
        );
        let child = shell("echo error >&2").stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let output = child_output(child).unwrap();
        assert_eq!((output.stdout, output.stderr), (Vec::new(), b"error\n".into()));
    }

    /// A stream that fails, as that of a pipe on a system with faults.
    struct FailingStream(std::fs::File);

    impl Read for FailingStream {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::from_raw_os_error(5))
        }
    }

    impl AsFd for FailingStream {
        fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
            self.0.as_fd()
        }
    }

    #[test]
    fn a_pipe_that_cannot_be_read_is_an_error() {
        let zeros = std::fs::File::open("/dev/zero").unwrap();
        let mut failing = ChildPipe::of_stream(Some(FailingStream(zeros)));
        let error = read_pipes(&mut failing, &mut ChildPipe::<std::fs::File>::of_stream(None)).unwrap_err();
        assert_eq!(error.raw_os_error(), Some(5));
    }
}
