//! Where precompiled headers are kept: one directory of the cache for each front end and prefix, and a directory of links for each set of
//! front ends, in which clang looks for the one that fits.
//!
//! Layout: `warm-headers/headers/KEY/{prefix.hip, header.pch, record}` and `warm-headers/sets/KEY/NUMBER.pch`, links to headers. The
//! record is written last: `use` with the stamp and the hash of the header, then the fingerprint; or the reason against it. A key is a
//! hash of the compiler (path, time, size), the front end's arguments, the prefix, and of the working directory where a directory of
//! the search is relative.
//!
//! Invariants: of many commands at once one makes a header, the others wait for its lock. Everything may be removed at any time: what
//! is missing is made again, and a command that loses its header while it runs is repeated without.
//!
//! Absent on purpose: how a header is made ([`super::making`]).

use super::fingerprint::{self, Fingerprint};
use super::front_ends::FrontEnd;
use super::making::HeaderMaking;
use super::prefix::Prefix;
use crate::{store, toolchain};
use hotswap_plan::warm_headers::{HEADER_FILE, HEADERS_LIMIT, STORED_HEADERS, WARM_HEADERS};
use rustix::fs::{FlockOperation, flock};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Changes with what a header or its record is.
const FORMAT: &str = "1";
/// The first word of a record of a header that may be used; its stamp and its hash follow.
const IN_USE: &str = "use ";
/// A reason against a header is looked into again after so long: headers may have changed, or a disk was full.
const REFUSAL_AGE: Duration = Duration::from_hours(24);
/// A prefix is not worth headers of its own if it reads less than one byte more for so many that are precompiled already: they take
/// as long to make as all of them, and save what the further ones cost.
const LITTLE: u64 = 4;
/// The time of the last use is kept no more exactly than this.
const USE_GRAIN: Duration = Duration::from_hours(1);

/// The directories of all headers, in the user's cache.
#[derive(Debug)]
pub(super) struct HeaderStore {
    root: PathBuf,
}

/// A header of one front end.
#[derive(Debug)]
struct StoredHeader {
    directory: PathBuf,
}

/// The answer about a header.
enum HeaderRecord {
    Usable { header: HeaderContent, fingerprint: Fingerprint },
    Refused { reason: String },
}

/// The state of a header when it was made.
struct HeaderContent {
    stamp: String,
    hash: String,
}

/// The headers of all front ends of a command.
#[derive(Debug)]
pub(super) struct HeaderSet {
    /// The directory in which clang looks.
    pub(super) directory: PathBuf,
    headers: Vec<StoredHeader>,
}

impl HeaderStore {
    /// # Errors
    /// The reason why there is no place for headers.
    pub(super) fn open() -> Result<Self, String> {
        Ok(Self { root: store::directory(WARM_HEADERS).map_err(|error| error.to_string())? })
    }

    /// The directory below which all names are this store's.
    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The set for these front ends if all its headers are made and as they were; `None` where one has to be made.
    ///
    /// # Errors
    /// The reason why a header is not to be used.
    pub(super) fn find_ready_set(&self, front_ends: &[FrontEnd], prefix: &Prefix) -> Result<Option<HeaderSet>, String> {
        let set = self.set(front_ends, prefix)?;
        let mut known = BTreeSet::new();
        for header in &set.headers {
            match header.record() {
                Some(HeaderRecord::Usable { header: made, fingerprint })
                    if header.has_stamp(&made) && fingerprint.still_holds(&mut known) => {}
                Some(HeaderRecord::Refused { reason }) => return Err(reason),
                _ => return Ok(None),
            }
        }
        set.headers.iter().for_each(StoredHeader::note_use);
        self.put_links(&set).map(|()| Some(set))
    }

    /// The set, with its headers made.
    ///
    /// # Errors
    /// The reason why a header is not to be used.
    pub(super) fn make_set(&self, front_ends: &[FrontEnd], prefix: &Prefix) -> Result<HeaderSet, String> {
        let set = self.set(front_ends, prefix)?;
        let leaders: Vec<usize> = front_ends.iter().map(|one| first_of_same_options(front_ends, one)).collect();
        let (first, others): (Vec<usize>, Vec<usize>) =
            (0..front_ends.len()).partition(|number| leaders[*number] == *number);
        for numbers in [first, others] {
            let made = hotswap_files::on_all_cores(numbers.len(), |at| {
                let number = numbers[at];
                let leader = (leaders[number] != number).then(|| &set.headers[leaders[number]]);
                let proven = leader.and_then(StoredHeader::proven_files);
                set.headers[number].make_once(&front_ends[number], prefix, proven.as_ref())
            });
            made.into_iter().collect::<Result<(), String>>()?;
        }
        self.put_links(&set)?;
        self.remove_oldest();
        Ok(set)
    }

    /// Whether a prefix reads few more bytes than another one whose set is ready: then its headers would cost more than they save. The
    /// answer is kept like a reason against the headers.
    pub(super) fn adds_little(&self, front_ends: &[FrontEnd], prefix: &Prefix, ready: &HeaderSet) -> bool {
        let (Some(front_end), Ok(set)) = (front_ends.first(), self.set(front_ends, prefix)) else { return false };
        let (Some(header), Some(known)) = (set.headers.first(), ready.headers.first()) else { return false };
        let little = known.proven_files().and_then(|known| header.adds_little(front_end, prefix, &known));
        if little == Some(true) {
            let _ = store::put(&header.record_file(), format!("{}\n", super::ADDS_LITTLE).as_bytes());
        }
        little == Some(true)
    }

    /// Notes that a source with that prefix was met; how many were met before.
    pub(super) fn note_meeting(&self, front_ends: &[FrontEnd], prefix: &Prefix) -> u64 {
        let Some(Ok(key)) = front_ends.first().map(|one| header_key(one, prefix)) else { return 0 };
        let directory = self.root.join("meetings");
        let file = directory.join(key);
        let before = fs::metadata(&file).map_or(0, |meta| meta.len());
        // A meeting that cannot be noted costs time only.
        let _ = hotswap_files::create_directories(&directory)
            .and_then(|()| File::options().create(true).append(true).open(file))
            .and_then(|mut file| file.write_all(b"."));
        before
    }

    fn set(&self, front_ends: &[FrontEnd], prefix: &Prefix) -> Result<HeaderSet, String> {
        let keys: Vec<String> = front_ends.iter().map(|one| header_key(one, prefix)).collect::<Result<_, _>>()?;
        let headers =
            keys.iter().map(|key| StoredHeader { directory: self.root.join(STORED_HEADERS).join(key) }).collect();
        Ok(HeaderSet { directory: self.root.join("sets").join(store::name_for(&keys.join(" "))), headers })
    }

    /// Puts the links in place that are missing.
    fn put_links(&self, set: &HeaderSet) -> Result<(), String> {
        hotswap_files::create_directories(&set.directory).map_err(|error| error.to_string())?;
        for (number, header) in set.headers.iter().enumerate() {
            let link = set.directory.join(format!("{number}.pch"));
            if fs::read_link(&link).is_ok_and(|target| target == header.output()) {
                continue;
            }
            let fresh = set.directory.join(format!(".{number}.{}", std::process::id()));
            let _ = fs::remove_file(&fresh);
            symlink(header.output(), &fresh).and_then(|()| fs::rename(&fresh, &link)).map_err(|error| {
                let _ = fs::remove_file(&fresh);
                format!("{}: {error}", link.display())
            })?;
        }
        Ok(())
    }

    /// Removes the headers that were not used for longest, down to the limit.
    fn remove_oldest(&self) {
        let Ok(entries) = fs::read_dir(self.root.join(STORED_HEADERS)) else { return };
        let mut headers: Vec<KeptHeader> =
            entries.flatten().filter_map(|entry| KeptHeader::read(&entry.path())).collect();
        headers.sort_by_key(|header| header.used);
        let mut total: u64 = headers.iter().map(|header| header.bytes).sum();
        for header in headers {
            if total <= HEADERS_LIMIT {
                break;
            }
            total -= header.bytes;
            let _ = fs::remove_dir_all(header.directory);
        }
    }
}

/// A header with what decides how long it is kept.
struct KeptHeader {
    directory: PathBuf,
    used: SystemTime,
    bytes: u64,
}

impl KeptHeader {
    fn read(directory: &Path) -> Option<Self> {
        let header = StoredHeader { directory: directory.to_owned() };
        let used = fs::metadata(header.record_file()).ok()?.modified().ok()?;
        let bytes = fs::metadata(header.output()).map_or(0, |meta| meta.len());
        Some(Self { directory: directory.to_owned(), used, bytes })
    }
}

impl HeaderSet {
    /// Whether a header is missing or its files have changed.
    pub(super) fn is_outdated(&self) -> bool {
        let mut known = BTreeSet::new();
        !self.headers.iter().all(|header| header.is_whole(&mut known))
    }
}

impl StoredHeader {
    fn output(&self) -> PathBuf {
        self.directory.join(HEADER_FILE)
    }

    fn record_file(&self) -> PathBuf {
        self.directory.join("record")
    }

    fn has_stamp(&self, made: &HeaderContent) -> bool {
        fingerprint::file_stamp(&self.output()).is_some_and(|stamp| stamp == made.stamp)
    }

    fn record(&self) -> Option<HeaderRecord> {
        let text = store::read_regular(&self.record_file()).ok()?;
        let end = text.iter().position(|byte| *byte == b'\n')?;
        let first = String::from_utf8_lossy(&text[..end]).into_owned();
        let Some(made) = first.strip_prefix(IN_USE) else {
            let is_recent = self.refusal_age().is_some_and(|age| age < REFUSAL_AGE);
            return is_recent.then_some(HeaderRecord::Refused { reason: first });
        };
        let (stamp, hash) = made.split_once(' ')?;
        let header = HeaderContent { stamp: stamp.to_owned(), hash: hash.to_owned() };
        Some(HeaderRecord::Usable { header, fingerprint: Fingerprint::parse(&text[end + 1..])? })
    }

    /// The headers of which it was made, if it may be used.
    fn proven_files(&self) -> Option<Fingerprint> {
        match self.record()? {
            HeaderRecord::Usable { fingerprint, .. } => Some(fingerprint),
            HeaderRecord::Refused { .. } => None,
        }
    }

    fn refusal_age(&self) -> Option<Duration> {
        fs::metadata(self.record_file()).ok()?.modified().ok()?.elapsed().ok()
    }

    /// Whether the header has the bytes that it was made with, and its files are as they were.
    fn is_whole(&self, known: &mut BTreeSet<PathBuf>) -> bool {
        let Some(HeaderRecord::Usable { header, fingerprint }) = self.record() else { return false };
        let has_bytes = fs::read(self.output()).is_ok_and(|bytes| store::hash(&bytes) == header.hash);
        has_bytes && fingerprint.still_holds(known)
    }

    /// Sets the time of use, unless it is nearly so already.
    fn note_use(&self) {
        let Ok(file) = File::options().write(true).open(self.record_file()) else { return };
        let used = file.metadata().and_then(|meta| meta.modified());
        if used.is_ok_and(|used| used.elapsed().is_ok_and(|age| age > USE_GRAIN)) {
            let _ = file.set_modified(SystemTime::now());
        }
    }

    /// Makes the header unless another command has.
    fn make_once(&self, front_end: &FrontEnd, prefix: &Prefix, proven: Option<&Fingerprint>) -> Result<(), String> {
        hotswap_files::create_directories(&self.directory).map_err(|error| write_failure(&self.directory, &error))?;
        let lock_file = self.directory.join("lock");
        let lock = File::create(&lock_file).map_err(|error| write_failure(&lock_file, &error))?;
        flock(&lock, FlockOperation::LockExclusive).map_err(|error| write_failure(&lock_file, &error.into()))?;
        match self.record() {
            Some(HeaderRecord::Usable { .. }) if self.is_whole(&mut BTreeSet::new()) => Ok(()),
            Some(HeaderRecord::Refused { reason }) => Err(reason),
            _ => self.make_anew(front_end, prefix, proven),
        }
    }

    /// `None` where the headers cannot be found out.
    fn adds_little(&self, front_end: &FrontEnd, prefix: &Prefix, known: &Fingerprint) -> Option<bool> {
        hotswap_files::create_directories(&self.directory).ok()?;
        let (source, output) = (self.put_source(prefix).ok()?, self.output());
        let making = HeaderMaking { front_end, prefix, source: &source, output: &output, proven: None };
        let further = making.headers_of_prefix().ok()?.into_iter().filter(|header| !known.has_file(header));
        let mut bytes = 0;
        for header in further {
            bytes += fingerprint::bytes_of_stamp(&fingerprint::file_stamp(&header)?);
        }
        Some(bytes * LITTLE < known.header_bytes())
    }

    /// The source that has the prefix alone.
    fn put_source(&self, prefix: &Prefix) -> Result<PathBuf, String> {
        let source = self.directory.join("prefix.hip");
        store::put(&source, prefix.source_text().as_bytes()).map_err(|error| error.to_string())?;
        Ok(source)
    }

    fn make_anew(&self, front_end: &FrontEnd, prefix: &Prefix, proven: Option<&Fingerprint>) -> Result<(), String> {
        let source = self.put_source(prefix)?;
        let fresh = self.directory.join("header.new");
        let made = HeaderMaking { front_end, prefix, source: &source, output: &fresh, proven }.make_header();
        let text = match &made {
            Ok(fingerprint) => [self.put_in_place(&fresh)?.as_bytes(), b"\n", &fingerprint.to_text()].concat(),
            Err(reason) => {
                let _ = fs::remove_file(&fresh);
                format!("{}\n", reason.replace('\n', " ")).into_bytes()
            }
        };
        // A state of the moment is another one in the next command.
        if made.as_ref().err().is_none_or(|reason| !is_of_the_moment(reason)) {
            // An equal reason would keep its old time.
            let _ = fs::remove_file(self.record_file());
            store::put(&self.record_file(), &text).map_err(|error| error.to_string())?;
        }
        made.map(drop)
    }

    /// Gives a new header its name; the first line of its record.
    fn put_in_place(&self, fresh: &Path) -> Result<String, String> {
        let bytes = fs::read(fresh).map_err(|error| format!("{}: {error}", fresh.display()))?;
        fs::rename(fresh, self.output()).map_err(|error| format!("{}: {error}", fresh.display()))?;
        let stamp = fingerprint::file_stamp(&self.output()).ok_or("the header is lost")?;
        Ok(format!("{IN_USE}{stamp} {}", store::hash(&bytes)))
    }
}

/// Reasons that pass: files that were just written, a full disk.
fn is_of_the_moment(reason: &str) -> bool {
    !super::making::LASTING.iter().any(|lasting| reason.starts_with(lasting))
}

/// The number of the first front end that differs in the GPU alone; the program is compiled for that one.
fn first_of_same_options(front_ends: &[FrontEnd], one: &FrontEnd) -> usize {
    let words = one.words_of_any_gpu();
    let mut others = front_ends.iter();
    others.position(|other| other.program == one.program && other.words_of_any_gpu() == words).unwrap_or_default()
}

/// The name of a front end's header with this prefix.
fn header_key(front_end: &FrontEnd, prefix: &Prefix) -> Result<String, String> {
    let mut text = format!("{FORMAT} {}\n", env!("CARGO_PKG_VERSION")).into_bytes();
    let compiler = toolchain::key(&front_end.program).map_err(|error| error.to_string())?;
    add_part(&mut text, OsStr::new(&compiler));
    add_part(&mut text, OsStr::new(&prefix.source_text()));
    front_end.words.iter().for_each(|word| add_part(&mut text, word));
    if front_end.has_relative_directory() {
        let directory = std::env::current_dir().map_err(|error| error.to_string())?;
        add_part(&mut text, directory.as_os_str());
    }
    Ok(store::hash(&text))
}

fn add_part(text: &mut Vec<u8>, part: &OsStr) {
    text.extend((part.len() as u64).to_le_bytes());
    text.extend(part.as_bytes());
}

fn write_failure(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}
