//! A writer for `ZipWriter`, which writes the end of the archive when it is dropped, even after an error.
//!
//! Invariant: after the first error everything is swallowed, and the position is the highest that there was, so that the file seems to
//! grow: the archive is thrown away, and its writer neither prints the error again nor finds that the file became shorter.

use std::io::{self, Seek, SeekFrom, Write};

pub(crate) struct StoppedWriter<W> {
    inner: W,
    is_stopped: bool,
    position: u64,
    highest: u64,
}

impl<W> StoppedWriter<W> {
    pub(crate) fn new(inner: W) -> Self {
        Self { inner, is_stopped: false, position: 0, highest: 0 }
    }

    fn note_result<T>(&mut self, result: io::Result<T>) -> io::Result<T> {
        self.is_stopped |= result.as_ref().is_err_and(|error| error.kind() != io::ErrorKind::Interrupted);
        result
    }

    fn move_to(&mut self, position: u64) {
        self.position = position;
        self.highest = self.highest.max(position);
    }
}

impl<W: Write> Write for StoppedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = if self.is_stopped { Ok(bytes.len()) } else { self.inner.write(bytes) };
        self.move_to(self.position + written.as_ref().map_or(0, |count| *count as u64));
        self.note_result(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.is_stopped {
            return Ok(());
        }
        let flushed = self.inner.flush();
        self.note_result(flushed)
    }
}

impl<W: Seek> Seek for StoppedWriter<W> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        if self.is_stopped {
            self.position = self.highest;
            return Ok(if let SeekFrom::Start(position) = to { position } else { self.position });
        }
        let at = self.inner.seek(to);
        self.move_to(at.as_ref().map_or(self.position, |at| *at));
        self.note_result(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    /// A disk that is full after that number of bytes.
    struct FullDisk {
        inner: Cursor<Vec<u8>>,
        room: usize,
    }

    impl Write for FullDisk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let full = || io::Error::from(io::ErrorKind::StorageFull);
            self.room = self.room.checked_sub(bytes.len()).ok_or_else(full)?;
            self.inner.write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Seek for FullDisk {
        fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
            self.inner.seek(to)
        }
    }

    fn write_archive(room: usize) -> io::Result<usize> {
        let mut writer = ZipWriter::new(StoppedWriter::new(FullDisk { inner: Cursor::default(), room }));
        for name in ["first", "second"] {
            writer.start_file(name, SimpleFileOptions::default())?;
            writer.write_all(&[name.len() as u8; 3000])?;
        }
        Ok(writer.finish()?.position as usize)
    }

    #[test]
    fn a_full_disk_is_an_error_wherever_it_is_met() {
        let size = write_archive(usize::MAX).unwrap();
        let full = (0..size).filter(|room| write_archive(*room).is_err_and(is_full)).count();
        assert_eq!(full, size);
    }

    fn is_full(error: io::Error) -> bool {
        error.to_string().contains("no storage space")
    }
}
