//! `.MTREE` and `.PKGINFO` of Arch's packages (`pkg.tar.zst`): the size and hashes of every file, and the size of all, which
//! `pacman -Qkk` and the installation compare.
//!
//! The two come before the files that they describe, so the archive is written with its changes first, and once more with the
//! two files made true.
//!
//! Invariants: lines of files that do not change keep their text. A keyword that would become wrong and that HotSwap cannot make
//! is refused.

use crate::{AddedMember, MemberChange, PackageMember, cannot_read, cannot_write, damaged_package, hash};
use flate2::read::MultiGzDecoder;
use hotswap_report::{Diagnostic, codes};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The list of files.
pub(crate) const LIST: &str = ".MTREE";
const INFO: &str = ".PKGINFO";
/// Keywords with a value that depends on the content of a file, beyond those that are written anew.
const UNKNOWN: [&str; 7] =
    ["cksum", "sha1", "sha1digest", "sha384digest", "sha512digest", "rmd160digest", "ripemd160digest"];

/// A file as it is in the new package.
#[derive(Debug, Clone, PartialEq, Eq)]
struct FileFacts {
    size: u64,
    md5: String,
    sha256: String,
}

impl FileFacts {
    fn read(content: &Path) -> Result<Self, Diagnostic> {
        let (sha256, size) = hash::hash_file::<Sha256>(content)?;
        let sha256 = hotswap_report::hex_digits(&sha256);
        Ok(Self { size, md5: hash::md5_of_file(content)?, sha256 })
    }
}

/// The changes of a package, as its lists will have them.
#[derive(Debug, Default)]
pub(crate) struct ListChanges {
    /// By path in the package; nothing for a file that is left out.
    files: BTreeMap<String, Option<FileFacts>>,
    /// By how much the sum of the sizes grows.
    growth: i64,
}

impl ListChanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Notes the change of a file.
    pub(crate) fn note_change(&mut self, member: &PackageMember<'_>, change: &MemberChange) -> Result<(), Diagnostic> {
        match change {
            MemberChange::Unchanged => {}
            MemberChange::Replaced(content) => {
                let facts = FileFacts::read(content)?;
                self.growth += i64::try_from(facts.size).unwrap_or(i64::MAX) - old_content_size(member.content)?;
                self.files.insert(member.name.to_owned(), Some(facts));
            }
            MemberChange::Removed => {
                self.growth -= old_content_size(member.content)?;
                self.files.insert(member.name.to_owned(), None);
            }
        }
        Ok(())
    }

    /// Notes the change of a link, which lacks content of its own.
    pub(crate) fn note_link(&mut self, name: &str, change: &MemberChange) -> Result<(), Diagnostic> {
        match change {
            MemberChange::Unchanged => {}
            MemberChange::Removed => drop(self.files.insert(name.to_owned(), None)),
            MemberChange::Replaced(_) => {
                let what = "a link becomes a file, which the package's list cannot say yet";
                let error = Diagnostic::error(codes::NO_PLACE, what).in_entry(name);
                return Err(error.advise("unpack the package, and change its files"));
            }
        }
        Ok(())
    }

    /// Notes the files that are added.
    pub(crate) fn note_added(&mut self, added: &[AddedMember]) -> Result<(), Diagnostic> {
        for member in added {
            let facts = FileFacts::read(member.file()?)?;
            self.growth += i64::try_from(facts.size).unwrap_or(i64::MAX);
            self.files.insert(member.name.clone(), Some(facts));
        }
        Ok(())
    }

    /// The change of one of the two lists; other members do not change.
    pub(crate) fn change_list(&self, member: &PackageMember<'_>, scratch: &Path) -> Result<MemberChange, Diagnostic> {
        let new = match member.name {
            LIST => self.new_list(member.content)?,
            INFO => self.new_info(member.content)?,
            _ => return Ok(MemberChange::Unchanged),
        };
        let path = scratch.join(format!("list{}", member.name));
        fs::write(&path, new).map_err(|error| cannot_write(&error).in_entry(member.name))?;
        Ok(MemberChange::Replaced(path))
    }

    fn new_list(&self, content: &Path) -> Result<Vec<u8>, Diagnostic> {
        let file = File::open(content).map_err(|error| cannot_read(&error))?;
        let mut text = String::new();
        MultiGzDecoder::new(file).read_to_string(&mut text).map_err(|error| damaged_package(&error).in_entry(LIST))?;
        let mut new = String::new();
        let mut listed = Vec::new();
        for line in text.lines() {
            let name = line.split(' ').next().map(unescape_name).unwrap_or_default();
            let name = name.strip_prefix("./").unwrap_or(&name).to_owned();
            match self.files.get(&name) {
                None => new += &format!("{line}\n"),
                Some(None) => {}
                Some(Some(facts)) => new += &format!("{}\n", with_facts(line, facts)?),
            }
            listed.push(name);
        }
        let unlisted = self.files.iter().filter(|(name, _)| !listed.contains(name));
        for (name, facts) in unlisted.filter_map(|(name, facts)| Some((name, facts.as_ref()?))) {
            let FileFacts { size, md5, sha256 } = facts;
            let _ = writeln!(new, "./{} size={size} md5digest={md5} sha256digest={sha256}", escape_name(name));
        }
        let mut packed = flate2::GzBuilder::new().write(Vec::new(), flate2::Compression::best());
        packed.write_all(new.as_bytes()).and_then(|()| packed.finish()).map_err(|error| cannot_write(&error))
    }

    /// The sum of the sizes of all files is the row `size`.
    fn new_info(&self, content: &Path) -> Result<Vec<u8>, Diagnostic> {
        let text = fs::read_to_string(content).map_err(|error| damaged_package(&error).in_entry(INFO))?;
        let rows =
            text.lines().map(|line| match line.strip_prefix("size = ").and_then(|size| size.parse::<u64>().ok()) {
                Some(size) => format!("size = {}\n", size.saturating_add_signed(self.growth)),
                None => format!("{line}\n"),
            });
        Ok(rows.collect::<String>().into_bytes())
    }
}

fn old_content_size(member_content: &Path) -> Result<i64, Diagnostic> {
    hash::file_size(member_content).map(|size| i64::try_from(size).unwrap_or(i64::MAX))
}

/// The line with the size and the hashes of the new file.
fn with_facts(line: &str, facts: &FileFacts) -> Result<String, Diagnostic> {
    let mut words = Vec::new();
    for word in line.split(' ') {
        let key = word.split_once('=').map_or("", |(key, _)| key);
        words.push(match key {
            "size" => format!("size={}", facts.size),
            "md5" | "md5digest" => format!("{key}={}", facts.md5),
            "sha256" | "sha256digest" => format!("{key}={}", facts.sha256),
            key if UNKNOWN.contains(&key) => {
                let what = format!("{LIST} has the keyword `{key}`, which would be wrong for a changed file");
                return Err(Diagnostic::error(codes::UNKNOWN_FORMAT, what).in_entry(LIST));
            }
            _ => word.to_owned(),
        });
    }
    Ok(words.join(" "))
}

/// A name of the list: a backslash and three octal digits are a byte.
fn unescape_name(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, more)) = rest.split_first() {
        let digits = more.get(..3).filter(|_| *first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &more[3..];
            }
            None => {
                bytes.push(*first);
                rest = more;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn escape_name(name: &str) -> String {
    name.bytes().map(escape_name_byte).collect()
}

fn escape_name_byte(byte: u8) -> String {
    match byte {
        b'!'..=b'~' if byte != b'\\' && byte != b'#' => char::from(byte).to_string(),
        other => format!("\\{other:03o}"),
    }
}

/// Where the archive with its changes is, before its lists are made true.
pub(crate) fn first_pass(scratch: &Path) -> PathBuf {
    scratch.join("first-pass.tar")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_blanks_are_escaped_as_bsdtar_does() {
        for (name, text) in
            [("a b", "a\\040b"), ("x/ü", "x/\\303\\274"), ("a#\\", "a\\043\\134"), ("plain.so", "plain.so")]
        {
            assert_eq!((escape_name(name).as_str(), unescape_name(text).as_str()), (text, name));
        }
        assert_eq!(unescape_name("a\\9"), "a\\9");
    }

    #[test]
    fn only_facts_of_the_content_change() {
        let facts = FileFacts { size: 5, md5: "m".to_owned(), sha256: "s".to_owned() };
        let line = "./a time=1.0 mode=755 size=7 md5digest=0 sha256digest=1 type=file";
        let new = "./a time=1.0 mode=755 size=5 md5digest=m sha256digest=s type=file";
        assert_eq!(with_facts(line, &facts).unwrap(), new);
        assert_eq!(with_facts("./a sha512digest=0", &facts).unwrap_err().code, codes::UNKNOWN_FORMAT);
    }
}
