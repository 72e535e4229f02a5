//! Everything that a file carries besides its content: owner, permissions, access control list, capabilities, security labels,
//! attributes of users, flags. A file that replaces another one gets all of it, or does not replace it.
//!
//! Invariants: the new file is open to its writer alone until all is set, and never has more rights than the old one. What
//! cannot be kept is an error that names it, and the old file stays.
//!
//! Absent on purpose: times, which are those of the new content; what the system computes itself of the content or the inode
//! (hashes of integrity measurement); attributes that the system shows to root alone (`trusted.*`) where another user replaces the file.

use hotswap_report::{Diagnostic, codes};
use rustix::fs::{Gid, IFlags, Uid, XattrFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::{self, File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;

/// The permissions and the attribute that a write into a file clears.
const SET_ID_BITS: u32 = 0o6000;
const CAPABILITY: &str = "security.capability";
/// The access control list as an attribute.
const ACL: &str = "system.posix_acl_access";
/// Hash or signature of the content, for integrity measurement.
const CONTENT_HASH: &str = "security.ima";
/// The values of that attribute that are signatures begin with this byte.
const SIGNATURE: u8 = 3;
/// Hash of the inode, which the system computes.
const INODE_HASH: &str = "security.evm";
/// The flags that are about the use of a file and not about its storage; those that forbid a replacement do so themselves.
const KEPT_FLAGS: IFlags =
    IFlags::NODUMP.union(IFlags::NOATIME).union(IFlags::SYNC).union(IFlags::COMPRESSED).union(IFlags::NOCOW);

/// Owner, permissions and attributes of a new file.
#[derive(Debug, Clone)]
pub(crate) struct InodeState {
    pub(crate) mode: u32,
    /// Those of the file that is replaced.
    replaced: Option<ReplacedInode>,
}

#[derive(Debug, Clone)]
struct ReplacedInode {
    owner: u32,
    group: u32,
    attributes: Vec<InodeAttribute>,
    flags: IFlags,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct InodeAttribute {
    name: CString,
    value: Vec<u8>,
}

impl InodeState {
    /// That of a new file.
    pub(crate) fn new(mode: u32) -> Self {
        Self { mode, replaced: None }
    }

    /// That of the existing file; `new` are the permissions if it does not exist.
    pub(crate) fn of_path(path: &Path, new: u32) -> Result<Self, Diagnostic> {
        let meta = match fs::metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::new(new)),
            Err(error) => return Err(inode_write_error(&error, path)),
            Ok(meta) => meta,
        };
        if let Some(kind) = other_kind(&meta) {
            return Err(Diagnostic::error(codes::UNSUPPORTED_OUTPUT, format!("it is {kind}")).in_file(path));
        }
        let attributes = attributes_of(path).map_err(|error| inode_write_error(&error, path))?;
        if let Some(signature) = attributes.iter().find(|row| row.is_signature()) {
            let what = format!("it has a signature of its content ({})", signature.name());
            let refused = Diagnostic::error(codes::CANNOT_WRITE, what).in_file(path);
            return Err(refused.advise("write to another file, and sign that"));
        }
        let flags = flags_of(&File::open(path).map_err(|error| inode_write_error(&error, path))?);
        let flags = flags.map_err(|error| inode_write_error(&error, path))?;
        if let Some(flag) = forbidding_flag(flags) {
            return Err(flag_refusal(&format!("it is {flag}")).in_file(path));
        }
        let flags = flags.intersection(KEPT_FLAGS);
        let replaced = ReplacedInode { owner: meta.uid(), group: meta.gid(), attributes, flags };
        Ok(Self { mode: meta.mode() & 0o7777, replaced: Some(replaced) })
    }

    /// Gives the new file, in which the content is already, everything that the old one carries.
    pub(crate) fn give_to(&self, file: &File) -> io::Result<()> {
        let Some(replaced) = &self.replaced else { return file.set_permissions(Permissions::from_mode(self.mode)) };
        replaced.give_flags(file)?;
        // The owner first: a change of it clears capabilities and the bits that a program of another owner must not have.
        replaced.give_owner(file)?;
        replaced.give_attributes(file)?;
        file.set_permissions(Permissions::from_mode(self.mode))?;
        replaced.check_kept(file, self.mode)
    }

    /// Before a write into the file itself: what the write clears can be given again.
    pub(crate) fn check_restorable(&self, file: &File) -> io::Result<()> {
        let Some(replaced) = &self.replaced else { return Ok(()) };
        if self.mode & SET_ID_BITS != 0 {
            file.set_permissions(Permissions::from_mode(self.mode)).map_err(|error| {
                io::Error::other(format!("a write clears its set-ID bits, and they cannot be given again ({error})"))
            })?;
        }
        for row in replaced.attributes.iter().filter(|row| row.name() == CAPABILITY) {
            rustix::fs::fsetxattr(file, row.name.as_c_str(), &row.value, XattrFlags::empty())
                .map_err(|error| lost_error(&row.name(), error))?;
        }
        Ok(())
    }
}

/// The flag with which the system forbids changes to root, too.
fn forbidding_flag(flags: IFlags) -> Option<&'static str> {
    match () {
        () if flags.contains(IFlags::IMMUTABLE) => Some("immutable (chattr +i)"),
        () if flags.contains(IFlags::APPEND) => Some("append-only (chattr +a)"),
        () => None,
    }
}

fn flag_refusal(what: &str) -> Diagnostic {
    Diagnostic::error(codes::CANNOT_WRITE, what).advise("take the flag away (chattr -i, chattr -a)")
}

/// The refusal of a change that the system did not permit, where a flag of the directory is the reason.
pub(crate) fn directory_refusal(directory: &Path) -> Option<Diagnostic> {
    let flags = File::open(directory).and_then(|file| flags_of(&file)).ok()?;
    Some(flag_refusal(&format!("its directory is {}", forbidding_flag(flags)?)))
}

fn inode_write_error(error: &io::Error, path: &Path) -> Diagnostic {
    Diagnostic::cannot_write(path, error)
}

impl ReplacedInode {
    fn give_owner(&self, file: &File) -> io::Result<()> {
        let meta = file.metadata()?;
        if (meta.uid(), meta.gid()) == (self.owner, self.group) {
            return Ok(());
        }
        // Only root changes the owner of files; other users may set a group of theirs.
        let user = (meta.uid() != self.owner).then(|| Uid::from_raw(self.owner));
        rustix::fs::fchown(file, user, Some(Gid::from_raw(self.group)))
            .map_err(|error| lost_error(&format!("its owner ({}:{})", self.owner, self.group), error))
    }

    fn give_attributes(&self, file: &File) -> io::Result<()> {
        // The directory may give new files an access control list of its own.
        for own in attributes_of_file(file)?.iter().filter(|own| own.is_kept() && !self.has(own)) {
            rustix::fs::fremovexattr(file, own.name.as_c_str()).map_err(|error| lost_error(&own.name(), error))?;
        }
        for wanted in self.attributes.iter().filter(|row| row.is_kept()) {
            if value_of(file, wanted)?.as_ref() != Some(&wanted.value) {
                rustix::fs::fsetxattr(file, wanted.name.as_c_str(), &wanted.value, XattrFlags::empty())
                    .map_err(|error| lost_error(&wanted.name(), error))?;
            }
        }
        Ok(())
    }

    /// Whether the old file has an attribute of that name.
    fn has(&self, own: &InodeAttribute) -> bool {
        self.attributes.iter().any(|row| row.name == own.name)
    }

    fn give_flags(&self, file: &File) -> io::Result<()> {
        let own = flags_of(file)?;
        let wanted = own.difference(KEPT_FLAGS).union(self.flags);
        if wanted == own {
            return Ok(());
        }
        rustix::fs::ioctl_setflags(file, wanted).map_err(|error| lost_error("its flags (lsattr)", error))
    }

    /// Whatever the system reports, what the new file carries is read again.
    fn check_kept(&self, file: &File, mode: u32) -> io::Result<()> {
        let meta = file.metadata()?;
        let is_same_owner = (meta.uid(), meta.gid()) == (self.owner, self.group);
        if !is_same_owner || meta.mode() & 0o7777 != mode {
            return Err(io::Error::other("the new file did not get the owner and permissions of the old one"));
        }
        for wanted in self.attributes.iter().filter(|row| row.is_kept()) {
            if value_of(file, wanted)?.as_ref() != Some(&wanted.value) {
                return Err(lost_error(&wanted.name(), Errno::IO));
            }
        }
        Ok(())
    }
}

impl InodeAttribute {
    fn name(&self) -> String {
        self.name.to_string_lossy().into_owned()
    }

    fn is_signature(&self) -> bool {
        self.name() == CONTENT_HASH && self.value.first() == Some(&SIGNATURE)
    }

    /// Whether it is the file's, and not computed of it. Of a new file only the access control list is removed.
    fn is_kept(&self) -> bool {
        ![CONTENT_HASH, INODE_HASH].contains(&&*self.name())
    }
}

fn lost_error(what: &str, error: Errno) -> io::Error {
    io::Error::other(format!("{what} cannot be kept ({error}); write to another file, or as the file's owner"))
}

fn other_kind(meta: &Metadata) -> Option<&'static str> {
    let kind = meta.file_type();
    match () {
        () if kind.is_file() => None,
        () if kind.is_dir() => Some("a directory"),
        () if kind.is_fifo() => Some("a pipe"),
        () => Some("a device"),
    }
}

/// The attributes of a file. A file system without them gives an empty list.
fn attributes_of(path: &Path) -> io::Result<Vec<InodeAttribute>> {
    let list = read_whole(|room| rustix::fs::listxattr(path, room))?;
    attribute_names(&list.unwrap_or_default()).map(|name| read_attribute(path, name)).collect()
}

fn read_attribute(path: &Path, name: CString) -> io::Result<InodeAttribute> {
    let value = read_whole(|room| rustix::fs::getxattr(path, name.as_c_str(), room))?;
    Ok(InodeAttribute { name, value: value.unwrap_or_default() })
}

fn attributes_of_file(file: &File) -> io::Result<Vec<InodeAttribute>> {
    let list = read_whole(|room| rustix::fs::flistxattr(file, room))?.unwrap_or_default();
    let found = attribute_names(&list).map(|name| InodeAttribute { name, value: Vec::new() });
    Ok(found.filter(|row| row.name() == ACL).collect())
}

fn value_of(file: &File, row: &InodeAttribute) -> io::Result<Option<Vec<u8>>> {
    match read_whole(|room| rustix::fs::fgetxattr(file, row.name.as_c_str(), room)) {
        Err(error) if error.raw_os_error() == Some(Errno::NODATA.raw_os_error()) => Ok(None),
        result => result,
    }
}

fn attribute_names(list: &[u8]) -> impl Iterator<Item = CString> {
    list.split(|byte| *byte == 0).filter(|name| !name.is_empty()).filter_map(|name| CString::new(name).ok())
}

/// The whole answer of a call that fills a buffer; `None` where the file system does not have what it asks for.
fn read_whole(read: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> io::Result<Option<Vec<u8>>> {
    // The system's own limit for a value, and for the list of names.
    let mut room = vec![0; 1 << 16];
    match read(&mut room) {
        Ok(size) => {
            room.truncate(size);
            Ok(Some(room))
        }
        Err(Errno::NOTSUP | Errno::NOSYS) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// The flags of a file; none where the file system lacks them.
fn flags_of(file: &File) -> io::Result<IFlags> {
    match rustix::fs::ioctl_getflags(file) {
        Err(Errno::NOTTY | Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => Ok(IFlags::empty()),
        flags => Ok(flags?),
    }
}

#[cfg(test)]
mod tests {
    use crate::replace_file;
    use std::fs::{self, File, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::path::Path;

    const ACL: &str = super::ACL;
    /// `user::rwx, user:61234:rw-, group::r-x, mask::rwx, other::r--`, as the system stores it.
    const LIST: &[(u16, u16, u32)] =
        &[(1, 7, u32::MAX), (2, 6, 61234), (4, 5, u32::MAX), (0x10, 7, u32::MAX), (0x20, 4, u32::MAX)];

    fn list() -> Vec<u8> {
        let mut bytes = 2u32.to_le_bytes().to_vec();
        for (tag, rights, id) in LIST {
            bytes.extend(tag.to_le_bytes().into_iter().chain(rights.to_le_bytes()).chain(id.to_le_bytes()));
        }
        bytes
    }

    fn attribute(path: &Path, name: &str) -> Option<Vec<u8>> {
        let mut room = vec![0; 1 << 16];
        let size = rustix::fs::getxattr(path, name, &mut room[..]).ok()?;
        room.truncate(size);
        Some(room)
    }

    fn set(path: &Path, name: &str, value: &[u8]) -> bool {
        rustix::fs::setxattr(path, name, value, rustix::fs::XattrFlags::empty()).is_ok()
    }

    /// On the file system of the build, which is a real one; `/tmp` may be in memory.
    fn directory() -> tempfile::TempDir {
        tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap()
    }

    fn skip(why: &str) {
        let line = format!("what_the_old_file_carries_stays: skipped: {why}");
        let _ = std::io::Write::write_all(&mut std::io::stdout().lock(), format!("{line}\n").as_bytes());
    }

    #[test]
    fn what_the_old_file_carries_stays() {
        let dir = directory();
        let file = dir.path().join("program");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o574)).unwrap();
        if !set(&file, ACL, &list()) {
            return skip("the file system has no access control lists");
        }
        assert!(set(&file, "user.note", b"kept"));
        // cap_net_raw+ep; an attribute in the place of a label; only root may set them.
        let capability = [1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let has_capability = set(&file, "security.capability", &capability);
        let has_label = set(&file, "security.hotswap-test", b"system_u:object_r:bin_t:s0");
        let flagged = File::open(&file).unwrap();
        let has_flag = rustix::fs::ioctl_getflags(&flagged)
            .and_then(|flags| rustix::fs::ioctl_setflags(&flagged, flags | super::IFlags::NODUMP))
            .is_ok();
        let before = fs::metadata(&file).unwrap();
        replace_file(&file, b"new").unwrap();
        let after = fs::metadata(&file).unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert_eq!((after.mode(), after.uid(), after.gid()), (before.mode(), before.uid(), before.gid()));
        assert_eq!(attribute(&file, ACL), Some(list()));
        assert_eq!(attribute(&file, "user.note").as_deref(), Some(&b"kept"[..]));
        assert_eq!(attribute(&file, "security.capability").is_some(), has_capability);
        assert_eq!(attribute(&file, "security.hotswap-test").is_some(), has_label);
        let flags = rustix::fs::ioctl_getflags(File::open(&file).unwrap());
        assert!(!has_flag || flags.unwrap().contains(super::IFlags::NODUMP));
    }

    #[test]
    fn a_list_of_the_directory_gives_no_rights_to_a_file_without_one() {
        let dir = directory();
        let file = dir.path().join("program");
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o444)).unwrap();
        if !set(dir.path(), "system.posix_acl_default", &list()) {
            return skip("the file system has no access control lists");
        }
        replace_file(&file, b"new").unwrap();
        assert_eq!(attribute(&file, ACL), None);
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o444);
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[test]
    fn a_signature_of_the_content_is_refused() {
        let dir = directory();
        let file = dir.path().join("program");
        fs::write(&file, "old").unwrap();
        if !set(&file, super::CONTENT_HASH, &[super::SIGNATURE, 2, 4, 1, 2, 3, 4, 0, 1, 7]) {
            return skip("only root can set a signature, and not everywhere");
        }
        let error = replace_file(&file, b"new").unwrap_err();
        assert!(error.to_string().contains("a signature of its content"), "{error}");
        assert_eq!(fs::read(&file).unwrap(), b"old");
    }
}
