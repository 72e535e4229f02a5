//! `RECORD` of a wheel: name, hash and size of every file (PEP 376, PEP 427).
//!
//! A hash is SHA-256, or SHA-384 or SHA-512, which the specification allows as well. Some wheels have rows without hashes, and
//! installers accept them: of such a file only the size can be compared.
//!
//! Invariant: rows keep their order, and rows of files that do not change their text. A file that changes gets a SHA-256.

use crate::hash;
use hotswap_report::{Diagnostic, codes};
use sha2::{Digest, Sha256, Sha384, Sha512};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;

/// The rows of a RECORD.
#[derive(Debug)]
pub(crate) struct WheelRecord {
    /// Nothing in the place of a file that was removed.
    rows: Vec<Option<[String; 3]>>,
    by_name: BTreeMap<String, usize>,
}

impl WheelRecord {
    pub(crate) fn parse(text: &[u8]) -> Result<Self, Diagnostic> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(text);
        let (mut rows, mut by_name) = (Vec::new(), BTreeMap::new());
        for row in reader.records() {
            let row = row.map_err(|error| malformed_record(&error.to_string()))?;
            let [name, hash, size] = [0, 1, 2].map(|column| row.get(column).unwrap_or_default().to_owned());
            if row.len() < 3 || name.is_empty() {
                return Err(malformed_record("a row has not the three columns name, hash and size"));
            }
            if by_name.insert(name.clone(), rows.len()).is_some() {
                return Err(malformed_record("a file has two rows").in_entry(name));
            }
            rows.push(Some([name, hash, size]));
        }
        Ok(Self { rows, by_name })
    }

    pub(crate) fn check_file(&self, name: &str, content: &Path) -> Result<(), Diagnostic> {
        let row = self.by_name.get(name).and_then(|row| self.rows.get(*row)?.as_ref());
        let [_, hash, size] = row.ok_or_else(|| malformed_record("a file has no row").in_entry(name))?;
        let (found_hash, found_size) = match hash.split_once('=') {
            Some(("sha256", _)) => hash_column::<Sha256>("sha256", content)?,
            Some(("sha384", _)) => hash_column::<Sha384>("sha384", content)?,
            Some(("sha512", _)) => hash_column::<Sha512>("sha512", content)?,
            None if hash.is_empty() => (String::new(), hash::file_size(content)?),
            _ => {
                let what = format!("the hash `{hash}` of a file is not one of SHA-256, SHA-384 or SHA-512");
                return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).in_entry(name));
            }
        };
        if *hash == found_hash && (size.is_empty() || *size == found_size.to_string()) {
            return Ok(());
        }
        Err(crate::wrong_hash(name, "RECORD"))
    }

    /// Checks that each of its files was seen.
    pub(crate) fn check_names<'n>(&self, seen: impl Iterator<Item = &'n str>) -> Result<(), Diagnostic> {
        let mut missing: BTreeMap<&str, usize> = self.by_name.iter().map(|(name, row)| (name.as_str(), *row)).collect();
        for name in seen {
            missing.remove(name);
        }
        match missing.keys().next() {
            Some(name) => Err(malformed_record("a row has no file").in_entry(*name)),
            None => Ok(()),
        }
    }

    /// Notes the new content of a file.
    pub(crate) fn note_replaced(&mut self, name: &str, content: &Path) -> Result<(), Diagnostic> {
        let [hash, size] = hash_and_size_columns(content)?;
        if let Some(row) = self.by_name.get(name).and_then(|row| self.rows.get_mut(*row)) {
            *row = Some([name.to_owned(), hash, size]);
        }
        Ok(())
    }

    /// Adds a file, before the row of RECORD, which is the last one.
    pub(crate) fn note_added(&mut self, name: &str, content: &Path) -> Result<(), Diagnostic> {
        let [hash, size] = hash_and_size_columns(content)?;
        if self.by_name.contains_key(name) {
            return Err(malformed_record("a file to add is there already").in_entry(name));
        }
        let last = self.rows.len().saturating_sub(1);
        self.rows.insert(last, Some([name.to_owned(), hash, size]));
        self.by_name.values_mut().filter(|row| **row >= last).for_each(|row| *row += 1);
        self.by_name.insert(name.to_owned(), last);
        Ok(())
    }

    /// Removes the row of a file.
    pub(crate) fn note_removed(&mut self, name: &str) {
        if let Some(row) = self.by_name.get(name).and_then(|row| self.rows.get_mut(*row)) {
            *row = None;
        }
    }

    pub(crate) fn to_text(&self) -> Result<Vec<u8>, Diagnostic> {
        let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
        self.rows
            .iter()
            .flatten()
            .try_for_each(|row| writer.write_record(row))
            .map_err(|error| record_write_error(&error))?;
        writer.into_inner().map_err(|error| record_write_error(&error))
    }
}

fn record_write_error(error: &dyn std::fmt::Display) -> Diagnostic {
    Diagnostic::error(codes::INTERNAL, format!("RECORD: {error}"))
}

fn malformed_record(what: &str) -> Diagnostic {
    Diagnostic::error(codes::MALFORMED, format!("RECORD: {what}")).advise("get the package again")
}

/// Hash and size of a file as a new row has them.
fn hash_and_size_columns(content: &Path) -> Result<[String; 2], Diagnostic> {
    let (hash, size) = hash_column::<Sha256>("sha256", content)?;
    Ok([hash, size.to_string()])
}

/// The column of a hash, and the size of the file.
fn hash_column<D: Digest + io::Write>(algorithm: &str, content: &Path) -> Result<(String, u64), Diagnostic> {
    let (hash, size) = hash::hash_file::<D>(content)?;
    Ok((format!("{algorithm}={}", base64_url(&hash)), size))
}

/// The URL-safe alphabet without padding (RFC 4648).
fn base64_url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - group.len()));
        for digit in 0..=group.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * digit) & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_standard() {
        // RFC 4648, section 10, without padding; and the two characters that differ from the usual alphabet.
        for (bytes, text) in
            [(&b""[..], ""), (b"f", "Zg"), (b"fo", "Zm8"), (b"foobar", "Zm9vYmFy"), (b"\xfb\xff", "-_8")]
        {
            assert_eq!(base64_url(bytes), text);
        }
    }

    #[test]
    fn rows_keep_their_order_and_their_text() {
        let text = b"a/b.py,sha256=x,12\n\"c,d.py\",sha256=y,3\npkg.dist-info/RECORD,,\n";
        let record = WheelRecord::parse(text).unwrap();
        assert_eq!(record.to_text().unwrap(), text);
        record.check_names(["a/b.py", "c,d.py", "pkg.dist-info/RECORD"].into_iter()).unwrap();
        assert!(record.check_names(["a/b.py"].into_iter()).is_err());
        for damage in [&b"a,b\n"[..], b",sha256=x,1\n", b"a,sha256=x,1\na,sha256=x,1\n", b"\xff\xfe,x,1\n"] {
            assert!(WheelRecord::parse(damage).is_err(), "{damage:?}");
        }
    }
}
