//! The cost of hostile files, one line of a table each: the command ends in time, with an error of its own, and takes
//! no more memory than the row allows (`RLIMIT_DATA` ends it otherwise, and its peak is read as well).

mod made;

use flate2::Compression as Level;
use flate2::write::ZlibEncoder;
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use made::{HOST, id};
use object::write::{Object, SectionId};
use object::{Architecture, BinaryFormat, Endianness, SectionKind};
use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MIB: u64 = 1 << 20;

/// `ulimit -v` counts pages that were never touched, and those of the allocator's arenas.
const ADDRESSES: u64 = 8 << 10;

/// A payload of `size` bytes: `start`, followed by zeros.
fn payload(method: u16, start: &[u8], size: u64) -> Vec<u8> {
    let mut zeros = std::io::Read::take(std::io::repeat(0), size - start.len() as u64);
    match method {
        0 => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Level::fast());
            encoder.write_all(start).unwrap();
            std::io::copy(&mut zeros, &mut encoder).unwrap();
            encoder.finish().unwrap()
        }
        _ => {
            // A block of the given bytes, and blocks of one repeated byte.
            let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xe0];
            frame.extend(size.to_le_bytes());
            frame.extend(&(((start.len() as u32) << 3).to_le_bytes())[..3]);
            frame.extend(start);
            let mut left = size - start.len() as u64;
            while left > 0 {
                let step = left.min(128 << 10);
                left -= step;
                frame.extend(&((u32::from(left == 0) | 1 << 1 | (step as u32) << 3).to_le_bytes())[..3]);
                frame.push(0);
            }
            frame
        }
    }
}

/// As [`payload`] for zlib, of whole pieces of a MiB: a piece is compressed once, for itself, and repeated.
fn repeated_zlib(start: &[u8], size: u64) -> Vec<u8> {
    let compressed = |piece: &[u8]| {
        let mut encoder = flate2::Compress::new(Level::best(), false);
        let mut out = Vec::with_capacity(piece.len());
        encoder.compress_vec(piece, &mut out, flate2::FlushCompress::Full).unwrap();
        assert_eq!(encoder.total_in(), piece.len() as u64);
        out
    };
    let first = [start, &vec![0; MIB as usize - start.len()]].concat();
    let zeros = compressed(&vec![0; MIB as usize]);
    let mut out = [&[0x78, 0x01][..], &compressed(&first)].concat();
    (1..size / MIB).for_each(|_| out.extend(&zeros));
    // An empty last block, and Adler-32: zeros add the first sum to the second once a byte.
    out.extend([0x03, 0x00]);
    let (mut a, mut b) = (1_u64, 0_u64);
    for byte in &first {
        a = (a + u64::from(*byte)) % 65521;
        b = (b + a) % 65521;
    }
    b = (b + a * ((size - MIB) % 65521)) % 65521;
    out.extend(((b << 16 | a) as u32).to_be_bytes());
    out
}

/// The entry table of a bundle of that size whose one entry holds all the rest.
fn table(size: u64) -> Vec<u8> {
    let mut out = b"__CLANG_OFFLOAD_BUNDLE__".to_vec();
    out.extend(2u64.to_le_bytes());
    for (id, offset, size) in [(HOST.to_owned(), 4096, 0), (id("gfx900"), 4096, size - 4096)] {
        for number in [offset, size, id.len() as u64] {
            out.extend(number.to_le_bytes());
        }
        out.extend(id.as_bytes());
    }
    out
}

/// A compressed bundle of that version and method that truly expands to `size` bytes.
fn bomb(version: u16, method: u16, size: u64) -> Vec<u8> {
    let start = table(size);
    let is_large = size >= 64 * MIB;
    let payload = if method == 0 && is_large { repeated_zlib(&start, size) } else { payload(method, &start, size) };
    let mut out = b"CCOB".to_vec();
    out.extend([version.to_le_bytes(), method.to_le_bytes()].concat());
    match version {
        1 => out.extend((size as u32).to_le_bytes()),
        2 => out.extend([(payload.len() as u32 + 24).to_le_bytes(), (size as u32).to_le_bytes()].concat()),
        _ => out.extend([(payload.len() as u64 + 32).to_le_bytes(), size.to_le_bytes()].concat()),
    }
    out.extend([0; 8]);
    out.extend(payload);
    out
}

/// Bundles one after the other: each of them alone is allowed.
fn many(count: usize, size: u64) -> Vec<u8> {
    bomb(3, 1, size).repeat(count)
}

fn code_object() -> Vec<u8> {
    let flags = EFlags::of(&"gfx1030".parse().unwrap()).encode();
    Sample { target: "amdgcn-amd-amdhsa--gfx1030".into(), flags, lanes: 32, ..Sample::default() }.build()
}

/// A code object whose note has a value in arrays in arrays, or a number of kernels that it has no room for.
fn noted(instead: &[u8]) -> Vec<u8> {
    let kernels = 2000;
    let names: Vec<&'static str> = vec!["first"; kernels];
    let flags = EFlags::of(&"gfx1030".parse().unwrap()).encode();
    let mut bytes = Sample { flags, kernels: names, ..Sample::default() }.build();
    // The value after the key is replaced, whatever it was.
    let at = bytes.windows(14).position(|part| part == b"amdhsa.kernels").unwrap() + 14;
    bytes[at..at + instead.len()].copy_from_slice(instead);
    bytes
}

/// Archives in archives.
fn nested(depth: usize) -> Vec<u8> {
    (0..depth).fold(code_object(), |inner, _| {
        let mut out = b"!<arch>\n".to_vec();
        out.extend(format!("{:<16}{:<12}{:<6}{:<6}{:<8}{:<10}`\n", "a.a/", 0, 0, 0, 644, inner.len()).bytes());
        out.extend(&inner);
        out.resize(out.len().next_multiple_of(2), b'\n');
        out
    })
}

/// An object with a fat binary that has a table of 2^32 entries.
fn counted(count: u64) -> Vec<u8> {
    let mut bytes = table(1 << 16);
    bytes[24..32].copy_from_slice(&count.to_le_bytes());
    bytes.resize(1 << 16, 0);
    let mut file = Object::new(BinaryFormat::Elf, Architecture::X86_64, Endianness::Little);
    let section: SectionId = file.add_section(Vec::new(), b".hip_fatbin".to_vec(), SectionKind::ReadOnlyData);
    file.append_section_data(section, &bytes, 4096);
    file.write().unwrap()
}

/// Name, input, arguments of `hotswap` with `x` as the input, exit code, part of standard error, MiB of memory.
type Row = (&'static str, Vec<u8>, &'static str, i32, &'static str, u64);

#[rustfmt::skip]
fn rows() -> Vec<Row> {
    const LIST: &str = "list --kernels x";
    const INSPECT: &str = "inspect --kernels x";
    const VERIFY: &str = "verify x";
    const EXTRACT: &str = "extract x --target gfx900 -o z";
    const PRUNE: &str = "prune x --keep gfx900 -o z";
    const RETARGET: &str = "retarget x --to gfx902 -o z";
    const LESS: &str = "--max-size 8M list --kernels x";
    let two = bomb(3, 1, 2048 * MIB);
    vec![
        ("V1 zlib, in the search", bomb(1, 0, 16 * MIB), "--max-size 8M list x", 13, "HS0417", 64),
        ("V1 zstd, 4 GB", bomb(1, 1, 4095 * MIB), LIST, 13, "HS0417", 64),
        ("V2 zstd, 4 GB", bomb(2, 1, 4095 * MIB), LIST, 13, "HS0417", 64),
        ("zstd, 2 GB, list", two.clone(), LIST, 13, "HS0417", 64),
        ("zstd, 2 GB, table alone", two.clone(), "list x", 0, "", 64),
        ("zstd, 2 GB, inspect", two.clone(), INSPECT, 13, "HS0417", 64),
        ("zstd, 2 GB, verify", two.clone(), VERIFY, 13, "HS0417", 64),
        ("zstd, 2 GB, extract", two.clone(), EXTRACT, 13, "HS0417", 64),
        ("zstd, 2 GB, prune", two.clone(), PRUNE, 13, "HS0417", 64),
        ("zstd, 2 GB, retarget", two, RETARGET, 13, "HS0417", 64),
        ("V2 zlib, less allowed", bomb(2, 0, 16 * MIB), LESS, 13, "HS0417", 64),
        ("V3 zlib, less allowed", bomb(3, 0, 16 * MIB), LESS, 13, "HS0417", 64),
        ("zstd, as much as is allowed", bomb(3, 1, 8 * MIB), LESS, 0, "", 64),
        ("zlib, as much as is allowed", bomb(3, 0, 8 * MIB), LESS, 0, "", 64),
        ("3 bundles of 4 MB", many(3, 4 * MIB), LESS, 13, "HS0417", 64),
        ("32 bundles of 64 MB, prune", many(32, 64 * MIB), PRUNE, 13, "HS0417", 64),
        ("zstd, 0.5 GB", bomb(3, 1, 512 * MIB), LIST, 0, "", 600),
        ("zlib, 0.5 GB", bomb(3, 0, 512 * MIB), LIST, 0, "", 600),
        ("zstd, 1 GB", bomb(3, 1, 1024 * MIB), LIST, 0, "", 1100),
        ("zlib, 2 GB, list", bomb(3, 0, 2048 * MIB), LIST, 13, "HS0417", 64),
        ("zlib, 2 GB, retarget", bomb(3, 0, 2048 * MIB), RETARGET, 13, "HS0417", 64),
        ("zlib, 2 GB, V2", bomb(2, 0, 2048 * MIB), PRUNE, 13, "HS0417", 64),
        ("60,000 arrays in arrays", noted(&vec![0x91; 60_000]), INSPECT, 12, "HS0302", 64),
        ("60,000 maps in maps", noted(&vec![0x81; 60_000]), VERIFY, 12, "HS0302", 64),
        ("2^32-1 kernels", noted(&[0xdd, 0xff, 0xff, 0xff, 0xff]), INSPECT, 12, "HS0302", 64),
        ("2^32-1 keys of a kernel", noted(&[0x91, 0xdf, 0xff, 0xff, 0xff, 0xff]), VERIFY, 12, "HS0302", 64),
        ("2^32-1 bytes of a name", noted(&[0x91, 0x81, 0xdb, 0xff, 0xff, 0xff, 0xff]), INSPECT, 12, "HS0302", 64),
        ("2^32 entries", counted(1 << 32), LIST, 12, "HS0302", 64),
        ("2^64-1 entries", counted(u64::MAX), PRUNE, 12, "HS0302", 64),
        ("300 archives in archives", nested(300), LIST, 12, "HS0303", 64),
    ]
}

/// Exit code, standard error, KiB at the peak.
fn run(directory: &TempDir, words: &str) -> (Option<i32>, String, u64) {
    // The shell's limit applies to the command that replaces it; `time -f` is not everywhere, so the peak is read here,
    // too.
    let script = format!("ulimit -v {}; exec \"$0\" {words}", ADDRESSES << 10);
    let child = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_hotswap")])
        .current_dir(directory.path())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let status = format!("/proc/{}/status", child.id());
    let (send, done) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let mut peak = 0;
        loop {
            let text = fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            peak = peak.max(line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0));
            if done.recv_timeout(Duration::from_millis(2)) != Err(std::sync::mpsc::RecvTimeoutError::Timeout) {
                return peak;
            }
        }
    });
    let output = child.wait_with_output().unwrap();
    drop(send);
    (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), watch.join().unwrap())
}

#[test]
fn hostile_files_cost_little() {
    let mut wrong = Vec::new();
    for (name, bytes, words, code, says, memory) in rows() {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("x"), &bytes).unwrap();
        let start = Instant::now();
        let (found, line, peak) = run(&directory, words);
        let took = start.elapsed();
        let is_told = line.contains(says) && line.lines().count() <= 40;
        // A refusal takes no time; allowed input is read and hashed, here without optimisation on a shared machine.
        let longest = Duration::from_secs(20 + if memory > 64 { memory / 8 } else { 0 });
        if found != Some(code) || !is_told || peak > memory << 10 || took > longest {
            let line = line.lines().next().unwrap_or_default().to_owned();
            wrong.push(format!("{name}: `{words}` {found:?}, {peak} KiB, {took:?}: {line}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
