//! Unpacks archives of sources and packs ours with tar, and `.xz` without the machine's xz, which a small system does not have.
//!
//! Absent on purpose: other compressions, whose programs every Debian system has (gzip) or no archive of ours needs.

use crate::outcome::{During, Outcome, fail};
use crate::run;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};

/// Unpacks an archive of sources without its first directory: these directories and files below it, or all of it.
pub(crate) fn unpack_parts(archive: &Path, directory: &Path, parts: &[&str]) -> Outcome {
    let mut tar = Command::new("tar");
    tar.arg("-C").arg(directory).args(["-x", "--strip-components=1", "--no-same-owner"]);
    if !parts.is_empty() {
        tar.args(["--wildcards", "--no-wildcards-match-slash"]).args(parts.iter().map(|part| format!("*/{part}")));
    }
    if archive.extension() != Some(OsStr::new("xz")) {
        return run::output(tar.arg("-f").arg(archive)).map(drop);
    }
    unpack_xz(archive, tar.args(["-f", "-"]))
}

fn unpack_xz(archive: &Path, tar: &mut Command) -> Outcome {
    let file = File::open(archive)?;
    let mut child = tar.stdin(Stdio::piped()).stdout(Stdio::null()).spawn()?;
    let mut pipe = child.stdin.take().ok_or(io::Error::other("tar has no standard input"))?;
    let mut decoder = liblzma::bufread::XzDecoder::new_multi_decoder(BufReader::new(file));
    let copied = io::copy(&mut decoder, &mut pipe).and_then(|_| pipe.flush());
    drop(pipe);
    let status = child.wait()?;
    match copied {
        // tar has ended first, and has said why on standard error.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            fail(format!("cannot decompress {}: {error}", archive.display()))
        }
        _ if !status.success() => fail(format!("`{}` failed for {}: {status}", run::line(tar), archive.display())),
        _ => Ok(()),
    }
}

/// Writes the standard output of tar, compressed, to a new file. The same content gives the same bytes.
pub(crate) fn compress(tar: &mut Command, file: &Path, level: u32) -> Outcome {
    let mut child = tar.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut pipe = child.stdout.take().ok_or(io::Error::other("tar has no standard output"))?;
    let mut encoder = liblzma::write::XzEncoder::new(File::create(file).during("create", file)?, level);
    let copied = io::copy(&mut pipe, &mut encoder).and_then(|_| encoder.finish());
    drop(pipe);
    let status = child.wait()?;
    copied.during("write", file)?;
    if status.success() { Ok(()) } else { fail(format!("`{}` failed: {status}", run::line(tar))) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_unpacked_without_the_machines_xz_and_a_damaged_one_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let tar = scratch.path().join("a.tar");
        std::fs::create_dir_all(scratch.path().join("package/part")).unwrap();
        std::fs::write(scratch.path().join("package/part/member"), "text").unwrap();
        run::output(Command::new("tar").arg("-cf").arg(&tar).arg("-C").arg(scratch.path()).arg("package")).unwrap();
        let mut packed = Vec::new();
        let mut encoder = liblzma::write::XzEncoder::new(&mut packed, 1);
        encoder.write_all(&std::fs::read(&tar).unwrap()).unwrap();
        encoder.finish().unwrap();
        let archive = scratch.path().join("a.tar.xz");
        let target = scratch.path().join("target");
        for (bytes, is_whole) in [(&packed[..], true), (&packed[..packed.len() - 9], false)] {
            std::fs::write(&archive, bytes).unwrap();
            let _ = std::fs::remove_dir_all(&target);
            std::fs::create_dir(&target).unwrap();
            let result = unpack_parts(&archive, &target, &["part"]);
            assert_eq!(result.is_ok(), is_whole, "{result:?}");
            assert!(!is_whole || target.join("part/member").exists());
        }
    }
}
