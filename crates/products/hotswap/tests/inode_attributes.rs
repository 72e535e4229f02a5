//! Attributes, flags and rights of inodes, on a real file system: after each command that changes a file, in a new file and in place,
//! every attribute, flag and right is there, or the command was refused and the file is as it was.
//!
//! Labels, capabilities and flags need root and a file system that has them; otherwise the tests report that they are skipped.

mod made;

use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use rustix::fs::{IFlags, XattrFlags};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use tempfile::TempDir;

const NOBODY: u32 = 65534;
const LABEL: &str = "security.selinux";
const CAPABILITY: &str = "security.capability";
/// `user::rwx, user:61234:rw-, group::r-x, mask::r-x, other::---`, as the system stores it.
const ACCESS_LIST: [u8; 44] = [
    2, 0, 0, 0, 1, 0, 7, 0, 255, 255, 255, 255, 2, 0, 6, 0, 0x32, 0xef, 0, 0, 4, 0, 5, 0, 255, 255, 255, 255, 16, 0, 5,
    0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255,
];
/// Each attribute with its value; the capability is `cap_net_raw+ep`.
const ATTRIBUTES: &[(&str, &[u8])] = &[
    ("system.posix_acl_access", &ACCESS_LIST),
    ("user.note", b"kept"),
    ("user.empty", b""),
    ("trusted.overlay.opaque", b"y"),
    (LABEL, b"system_u:object_r:bin_t:s0\0"),
    (CAPABILITY, &[1, 0, 0, 2, 0, 0x20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]),
];
/// The commands that change a file.
const COMMANDS: &[&str] =
    &["compress x", "retarget x --to gfx1031", "prune x --keep gfx1030", "remove x gfx1100", "symbols code --write"];

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

/// Everything but the content.
#[derive(Debug, PartialEq)]
struct Carried {
    attributes: BTreeMap<String, Vec<u8>>,
    flags: IFlags,
    owner: (u32, u32),
    mode: u32,
    names: u64,
}

impl Carried {
    fn read(path: &Path) -> Self {
        let mut list = vec![0; 4096];
        let size = rustix::fs::listxattr(path, &mut list[..]).unwrap();
        let names = list[..size].split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let attributes = names.map(|name| {
            let name = String::from_utf8(name.to_vec()).unwrap();
            let mut value = vec![0; 4096];
            let size = rustix::fs::getxattr(path, &name, &mut value[..]).unwrap();
            value.truncate(size);
            (name, value)
        });
        let meta = fs::metadata(path).unwrap();
        Self {
            attributes: attributes.collect(),
            flags: rustix::fs::ioctl_getflags(File::open(path).unwrap()).unwrap(),
            owner: (meta.uid(), meta.gid()),
            mode: meta.mode() & 0o7777,
            names: meta.nlink(),
        }
    }
}

fn set_attribute(path: &Path, name: &str, value: &[u8]) -> bool {
    rustix::fs::setxattr(path, name, value, XattrFlags::empty()).is_ok()
}

fn change_flags(path: &Path, added: IFlags, removed: IFlags) -> bool {
    let file = File::open(path).unwrap();
    let own = rustix::fs::ioctl_getflags(&file);
    own.and_then(|own| rustix::fs::ioctl_setflags(&file, own.union(added).difference(removed))).is_ok()
}

/// A directory where every user may work, with the program, the fat binary `x` and the code object `code`.
struct Place(TempDir);

impl Place {
    /// None where the file system or the user cannot have what is tested.
    fn open() -> Option<Self> {
        // TMPDIR may lie where only its user may enter.
        let place = Self(tempfile::tempdir_in("/tmp").unwrap());
        fs::set_permissions(place.0.path(), Permissions::from_mode(0o777)).unwrap();
        // By a process of its own: a program that is open for writing cannot be started.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_hotswap")).arg(place.path("hotswap")).status();
        assert!(copied.unwrap().success());
        fs::write(place.path("probe"), "").unwrap();
        let probe = place.path("probe");
        let has_all = ATTRIBUTES.iter().all(|(name, value)| set_attribute(&probe, name, value))
            && change_flags(&probe, IFlags::IMMUTABLE, IFlags::empty())
            && change_flags(&probe, IFlags::empty(), IFlags::IMMUTABLE);
        fs::remove_file(&probe).unwrap();
        if !has_all || !hotswap_userland::can_be_two_users() {
            hotswap_userland::skip(
                "inode_attributes",
                "only root can set labels and flags, and not on every file system",
            );
            return None;
        }
        place.fill();
        Some(place)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn fill(&self) {
        for (name, content) in [("x", made::bundle(&["gfx1030", "gfx1100"], None, object)), ("code", object("gfx1030"))]
        {
            let _ = fs::remove_file(self.path(name));
            fs::write(self.path(name), content).unwrap();
            fs::set_permissions(self.path(name), Permissions::from_mode(0o750)).unwrap();
        }
    }

    fn run(&self, user: u32, arguments: &str) -> Output {
        let mut command = Command::new(self.path("hotswap"));
        command.args(arguments.split(' ')).current_dir(self.0.path()).env("HOME", self.0.path());
        command.uid(user).gid(user).output().unwrap()
    }

    /// The file has all that it had, and the new content if the command was not refused.
    fn check_kept_or_refused(&self, user: u32, arguments: &str, file: &Path) {
        let (before, content) = (Carried::read(file), fs::read(file).unwrap());
        let done = self.run(user, arguments);
        let said = String::from_utf8_lossy(&done.stderr);
        let is_refused = done.status.code() == Some(14) && said.contains(LABEL);
        assert!(is_refused || done.status.success(), "{arguments}: {:?} {said}", done.status);
        assert_eq!(Carried::read(file), before, "{arguments}");
        assert!(!is_refused || fs::read(file).unwrap() == content, "{arguments}");
    }

    /// The command is refused for that reason, and neither file nor directory changed.
    fn check_refused(&self, user: u32, arguments: &str, reason: &str) {
        let read_all = || {
            let names = fs::read_dir(self.0.path()).unwrap().map(|entry| entry.unwrap().path());
            let files = names.filter(|path| path.is_file() && !path.ends_with("hotswap"));
            files.map(|path| (Carried::read(&path), fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
        };
        let before = read_all();
        let done = self.run(user, arguments);
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.code() == Some(14) && said.contains(reason), "{arguments}: {:?} {said}", done.status);
        assert!(read_all() == before, "{arguments}: {said}");
    }
}

/// The command with its input as the output.
fn onto_itself(command: &str) -> String {
    format!("{command} -o {}", command.split(' ').nth(1).unwrap())
}

#[test]
fn every_attribute_stays_after_each_command() {
    let Some(place) = Place::open() else { return };
    for command in COMMANDS.iter().flat_map(|command| ["", " --in-place"].map(|end| onto_itself(command) + end)) {
        place.fill();
        let file = place.path(command.split(' ').nth(1).unwrap());
        // The owner first: a change of it clears the bits and the capability.
        chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o6750)).unwrap();
        assert!(ATTRIBUTES.iter().all(|(name, value)| set_attribute(&file, name, value)));
        assert!(change_flags(&file, IFlags::NODUMP | IFlags::NOATIME, IFlags::empty()));
        let (before, content) = (Carried::read(&file), fs::read(&file).unwrap());
        assert_eq!(before.attributes.len(), ATTRIBUTES.len());
        let done = place.run(0, &command);
        assert!(done.status.success(), "{command}: {}", String::from_utf8_lossy(&done.stderr));
        assert_eq!(Carried::read(&file), before, "{command}");
        assert!(fs::read(&file).unwrap() != content, "{command}");
    }
}

/// A user who owns the file and may not set its label or capability.
#[test]
fn a_file_whose_attributes_its_user_cannot_give_is_not_replaced() {
    let Some(place) = Place::open() else { return };
    for (name, value) in ATTRIBUTES.iter().filter(|(name, _)| [LABEL, CAPABILITY].contains(name)) {
        for command in COMMANDS {
            for arguments in [onto_itself(command), onto_itself(command) + " --in-place"] {
                place.fill();
                let file = place.path(command.split(' ').nth(1).unwrap());
                chown(&file, Some(NOBODY), Some(NOBODY)).unwrap();
                assert!(set_attribute(&file, name, value));
                // A write clears a capability, which only root can give back. Who may set a label depends on the system.
                match *name {
                    CAPABILITY => place.check_refused(NOBODY, &arguments, name),
                    _ => place.check_kept_or_refused(NOBODY, &arguments, &file),
                }
            }
        }
    }
}

/// A write clears the set-ID bits of a file, which its owner alone can give back.
#[test]
fn set_id_bits_that_a_write_in_place_would_clear_are_a_refusal() {
    let Some(place) = Place::open() else { return };
    fs::set_permissions(place.path("x"), Permissions::from_mode(0o6777)).unwrap();
    place.check_refused(NOBODY, "compress x -o x --in-place", "set-ID");
}

#[test]
fn files_and_directories_with_flags_against_changes_stay_as_they_are() {
    let Some(place) = Place::open() else { return };
    for (at, flag, reason) in [
        ("x", IFlags::IMMUTABLE, "it is immutable"),
        ("x", IFlags::APPEND, "it is append-only"),
        (".", IFlags::IMMUTABLE, "its directory is immutable"),
    ] {
        let flagged = place.path(at);
        assert!(change_flags(&flagged, flag, IFlags::empty()));
        place.check_refused(0, "compress x -o x", reason);
        place.check_refused(0, "compress x -o x --in-place", reason);
        assert!(change_flags(&flagged, IFlags::empty(), flag));
    }
}

/// Names can be made in an append-only directory, and not removed: what is true of the file is said.
#[test]
fn an_append_only_directory_gets_no_replacement() {
    let Some(place) = Place::open() else { return };
    let content = fs::read(place.path("x")).unwrap();
    assert!(change_flags(&place.path("."), IFlags::APPEND, IFlags::empty()));
    let replaced = place.run(0, "compress x -o x");
    let is_untouched = fs::read(place.path("x")).unwrap() == content;
    let in_place = place.run(0, "compress x -o x --in-place");
    assert!(change_flags(&place.path("."), IFlags::empty(), IFlags::APPEND));
    let said = String::from_utf8_lossy(&replaced.stderr);
    assert!(
        is_untouched && replaced.status.code() == Some(14) && said.contains("its directory is append-only"),
        "{said}"
    );
    let said = String::from_utf8_lossy(&in_place.stderr);
    assert!(in_place.status.code() == Some(14) && said.contains("[HS0507]"), "{said}");
    assert!(said.contains("has all of its new content") && !said.contains("untouched"), "{said}");
    let written = fs::read(place.path("x")).unwrap();
    assert!(written != content && fs::read(place.path(".x.hotswap-content")).unwrap() == written);
}

/// The other names of a file are named, and each keeps what it has: content and attributes.
#[test]
fn hard_links_keep_their_inode() {
    let Some(place) = Place::open() else { return };
    let [file, link] = ["x", "link"].map(|name| place.path(name));
    assert!(ATTRIBUTES.iter().all(|(name, value)| set_attribute(&file, name, value)));
    fs::hard_link(&file, &link).unwrap();
    let (before, content) = (Carried::read(&file), fs::read(&file).unwrap());
    let done = place.run(0, "compress x -o x");
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success() && said.contains("[HS0506]"), "{said}");
    assert_eq!(
        (Carried::read(&link), Carried::read(&file)),
        (Carried { names: 1, ..Carried::read(&file) }, Carried { names: 1, ..before })
    );
    assert!(fs::read(&link).unwrap() == content && fs::read(&file).unwrap() != content);
}
