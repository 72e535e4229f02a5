//! A package for another machine, tried on this one: its `hotswap` under qemu's user-mode emulation says and writes what the one for
//! this machine does, byte by byte.

use super::stage::Machine;
use crate::outcome::{During, Outcome, fail};
use crate::recipe::Part;
use crate::session::Session;
use crate::{paths, remove, run};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Commands that print, and commands that write a file.
const PRINTING: &[&str] =
    &["list --kernels", "inspect --format json", "verify", "disasm --all --format json", "symbols", "size"];
const WRITING: &[&str] = &[
    "retarget FILE --to gfx1031,gfx10-3-generic",
    "compress FILE",
    "prune FILE --keep gfx1100",
    "extract FILE --target gfx1030",
];

/// Compiles the sample: an object of the host with code for two GPUs.
const SAMPLE: &str = "/usr/lib/llvm-22/bin/clang++ --offload-arch=gfx1030,gfx1100 -O2 -c /mnt/source/examples/hello-hip/hello.hip -o sample.o";

/// Compares the program in a tarball for `machine` with `own`, the one for this machine.
pub(super) fn compare(tarball: &Path, machine: &Machine, own: &Path) -> Outcome {
    if !own.exists() {
        return fail(format!("{} is missing: make the packages for this machine first", own.display()));
    }
    let directory = paths::scratch("dist-emulated");
    remove::delete(&directory)?;
    fs::create_dir_all(&directory).during("create", &directory)?;
    run::output(Command::new("tar").arg("-xf").arg(tarball).arg("-C").arg(&directory).arg("--strip-components=1"))?;
    let session = Session::open(Part::Tests, &paths::scratch("prefix"), &directory)?;
    session.show(&session.work, &shell_words::split(SAMPLE)?.iter().map(String::as_str).collect::<Vec<_>>())?;
    let other = Emulated { machine, program: directory.join("bin/hotswap") };
    for line in PRINTING {
        let words = format!("{line} sample.o");
        let [here, there] = [command(own, &directory, &words), other.command(&directory, &words)].map(output);
        if here? != there? {
            return fail(format!("`hotswap {words}` prints something else for {}", machine.linux));
        }
    }
    for line in WRITING {
        let file = |name: &str| format!("{} -o {name}", line.replace("FILE", "sample.o"));
        output(command(own, &directory, &file("here")))?;
        output(other.command(&directory, &file("there")))?;
        let bytes = |name: &str| fs::read(directory.join(name)).during("read", &directory);
        if bytes("here")? != bytes("there")? {
            return fail(format!("`hotswap {line}` writes other bytes for {}", machine.linux));
        }
    }
    let (printing, writing) = (PRINTING.len(), WRITING.len());
    println!("{}: {printing} commands print the same and {writing} write the same bytes under qemu", machine.linux);
    remove::delete(&directory)
}

/// A program for another machine.
struct Emulated<'m> {
    machine: &'m Machine,
    program: PathBuf,
}

impl Emulated<'_> {
    fn command(&self, directory: &Path, words: &str) -> Command {
        let mut command = command(format!("qemu-{}", self.machine.linux).as_ref(), directory, "");
        command.arg("-L").arg(format!("/usr/{}", self.machine.tools.trim_end_matches('-'))).arg(&self.program);
        command.args(words.split(' '));
        command
    }
}

fn command(program: &Path, directory: &Path, words: &str) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).args(words.split(' ').filter(|word| !word.is_empty()));
    command
}

fn output(mut command: Command) -> Outcome<String> {
    run::output(&mut command)
}
