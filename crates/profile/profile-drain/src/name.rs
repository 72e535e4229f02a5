//! Names of profile files: LLVM's patterns, and the parts that make a device's file name unique.
//!
//! A file is `DIR/PROCESSOR.CONTENT.nNODE.BASE` next to the host's `DIR/BASE`: content and GPU are an identity that
//! every process and every copy of the drain computes alike. No colons: some services reject files with them.

use crate::text::Text;

/// A path with a terminating zero.
pub type Path = Text<4096>;

pub const DEFAULT: &[u8] = b"default.profraw";

/// The file name for users that want no host profile.
pub const NOWHERE: &[u8] = b"/dev/null";

/// The values with which patterns are expanded.
#[derive(Debug, Clone, Copy)]
pub struct Process<'a> {
    /// The process ID, for `%p`.
    pub id: u64,
    /// The machine's name, for `%h`.
    pub host: &'a [u8],
    /// The directory for temporary files, for `%t`.
    pub temporary: &'a [u8],
}

/// The parts that distinguish the file of a device.
#[derive(Debug, Clone, Copy)]
pub struct DeviceName<'a> {
    /// The GPU's processor, for example `gfx90a`.
    pub processor: &'a [u8],
    /// The number of its node in the machine.
    pub node: u32,
    /// The hash of names and shapes of its functions.
    pub content: u64,
}

/// Whether files of this pattern are to be merged: `%m`, or with a number, `%4m`, `%12m`, `%0m`.
pub fn merges(pattern: &[u8]) -> bool {
    specifiers(pattern).any(|(_, specifier)| matches!(specifier, Specifier::Merge(_)))
}

/// Whether its expansion depends on the code of the profile.
pub fn names_content(pattern: &[u8]) -> bool {
    specifiers(pattern).any(|(_, specifier)| matches!(specifier, Specifier::Merge(_) | Specifier::Build))
}

/// Whether it names the directory for temporary files.
pub fn needs_temporary(pattern: &[u8]) -> bool {
    specifiers(pattern).any(|(_, specifier)| matches!(specifier, Specifier::Temporary))
}

/// The pattern with the rank in place of `%r`, which LLVM's runtime does not know; all else stays. `None` without `%r`.
pub fn with_rank(pattern: &[u8], rank: fn() -> Path) -> Option<Path> {
    let (mut rest, mut path, mut known) = (pattern, Path::default(), None);
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'%', [b'r', after @ ..]) => {
                rest = after;
                path.push(known.get_or_insert_with(rank).bytes());
            }
            _ => _ = path.push(core::slice::from_ref(first)),
        }
    }
    known.map(|_| path)
}

enum Specifier {
    Process,
    Host,
    Temporary,
    Merge(u64),
    Build,
    Continuous,
    Text,
}

/// The pieces of a pattern: literal bytes and specifiers.
fn specifiers(pattern: &[u8]) -> impl Iterator<Item = (&[u8], Specifier)> {
    let mut rest = pattern;
    core::iter::from_fn(move || {
        let (length, specifier) = match rest {
            [] => return None,
            [b'%', b'p', ..] => (2, Specifier::Process),
            [b'%', b'h', ..] => (2, Specifier::Host),
            [b'%', b't', ..] => (2, Specifier::Temporary),
            [b'%', b'm', ..] => (2, Specifier::Merge(1)),
            [b'%', b'0'..=b'9', ..] => match pool_size(rest) {
                Some(pool) => (pool.length, Specifier::Merge(pool.size)),
                None => (1, Specifier::Text),
            },
            [b'%', b'b', ..] => (2, Specifier::Build),
            [b'%', b'c', ..] => (2, Specifier::Continuous),
            _ => (1, Specifier::Text),
        };
        let (piece, left) = rest.split_at_checked(length)?;
        rest = left;
        Some((piece, specifier))
    })
}

/// `%NUMBERm`, a pool of files.
struct FilePool {
    /// Bytes of the specifier.
    length: usize,
    /// The number, as LLVM's runtime computes it: 32 bits, and 0 is 1.
    size: u64,
}

fn pool_size(pattern: &[u8]) -> Option<FilePool> {
    let mut size = 0u32;
    for (at, byte) in pattern.iter().enumerate().skip(1) {
        match byte {
            b'0'..=b'9' => size = size.wrapping_mul(10).wrapping_add(u32::from(byte - b'0')),
            b'm' => return Some(FilePool { length: at + 1, size: u64::from(size.max(1)) }),
            _ => return None,
        }
    }
    None
}

pub fn expand(pattern: &[u8], process: Process<'_>, content: u64) -> Path {
    let mut path = Path::default();
    for (piece, specifier) in specifiers(pattern) {
        match specifier {
            Specifier::Process => path.number(process.id),
            Specifier::Host => path.push(process.host),
            Specifier::Temporary => path.push(process.temporary),
            // A pool of files: processes spread over it.
            Specifier::Merge(pool) => {
                path.hex(content, 16).push(b"_").number(process.id.checked_rem(pool).unwrap_or(0))
            }
            Specifier::Build => path.hex(content, 16),
            // Continuous mode maps the host's counters; a device's are copied.
            Specifier::Continuous => &mut path,
            Specifier::Text => path.push(piece),
        };
    }
    path
}

/// The device's file next to the host's file; `apart` is inserted before the end of the name where files must differ.
pub fn beside(host: &[u8], device: DeviceName<'_>, apart: Option<u64>) -> Path {
    let cut = host.iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (directory, base) = host.split_at_checked(cut).unwrap_or((&[], host));
    let mut path = Path::new(directory);
    for byte in device.processor {
        let plain = byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'+');
        path.push(if plain { core::slice::from_ref(byte) } else { b"_" });
    }
    path.push(b".").hex(device.content, 16).push(b".n").number(u64::from(device.node));
    if let Some(process) = apart {
        path.push(b".p").number(process);
    }
    path.push(b".").push(if base.is_empty() { DEFAULT } else { base });
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::String;

    const PROCESS: Process<'_> = Process { id: 1234, host: b"box", temporary: b"/scratch" };

    fn expanded(pattern: &str) -> String {
        String::from_utf8(expand(pattern.as_bytes(), PROCESS, 0xabc).bytes().to_vec()).unwrap()
    }

    #[test]
    fn patterns_are_llvms() {
        for (pattern, path, merged) in [
            ("p.%p.profraw", "p.1234.profraw", false),
            ("%t/%h/x", "/scratch/box/x", false),
            ("%m.profraw", "0000000000000abc_0.profraw", true),
            ("%4m", "0000000000000abc_2", true),
            ("%c%p%b", "12340000000000000abc", false),
            ("100%", "100%", false),
            ("%0m", "0000000000000abc_0", true),
            ("%00m", "0000000000000abc_0", true),
            ("%12m", "0000000000000abc_10", true),
            ("%4294967297m", "0000000000000abc_0", true),
            ("%x%%m", "%x%0000000000000abc_0", true),
            ("%12x%3", "%12x%3", false),
            ("", "", false),
        ] {
            assert_eq!((expanded(pattern).as_str(), merges(pattern.as_bytes())), (path, merged), "{pattern}");
        }
    }

    #[test]
    fn the_rank_is_put_into_the_pattern() {
        let rank = || Path::new(b"12");
        let ranked = |pattern: &str| with_rank(pattern.as_bytes(), rank).map(|path| path.bytes().to_vec());
        assert_eq!(ranked("%r/%p-%m.%r"), Some(b"12/%p-%m.12".to_vec()));
        assert_eq!(["%x%", "a", "%p.r"].map(ranked), [None, None, None]);
    }

    #[test]
    fn a_devices_file_lies_beside_the_hosts() {
        let device = DeviceName { processor: b"gfx90a:xnack+", node: 3, content: 0x1f };
        let path =
            |host: &str, apart| String::from_utf8(beside(host.as_bytes(), device, apart).bytes().to_vec()).unwrap();
        assert_eq!(path("default.profraw", None), "gfx90a_xnack+.000000000000001f.n3.default.profraw");
        assert_eq!(path("a.b/c", Some(7)), "a.b/gfx90a_xnack+.000000000000001f.n3.p7.c");
        assert_eq!(path("/x/", None), "/x/gfx90a_xnack+.000000000000001f.n3.default.profraw");
    }

    #[test]
    fn a_path_that_is_too_long_is_cut_and_known_to_be() {
        assert!(expand(&[b'%', b'h'].repeat(4000), PROCESS, 0).is_cut());
    }
}
