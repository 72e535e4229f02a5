//! The outputs of a build: the code objects in it, read without the product's own container code where clang's tools
//! can do it instead, and judged by their bytes.

use hotswap_bundle::walk_fatbin;
use object::{Object, ObjectSection, read::archive::ArchiveFile};
use std::collections::BTreeMap;

/// One code object and the entry that names its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Bundle entry ID; `None` for a bare code object.
    pub id: Option<String>,
    pub bytes: Vec<u8>,
}

const EM_AMDGPU: u16 = 224;

/// `e_flags & 0xff` of the processors in the tests, from LLVM's `AMDGPUUsage` (EF_AMDGPU_MACH).
const MACH: &[(&str, u8)] = &[
    ("gfx900", 0x2c),
    ("gfx902", 0x2d),
    ("gfx906", 0x2f),
    ("gfx909", 0x31),
    ("gfx90c", 0x32),
    ("gfx1010", 0x33),
    ("gfx1011", 0x34),
    ("gfx1012", 0x35),
    ("gfx1030", 0x36),
    ("gfx1031", 0x37),
    ("gfx1032", 0x38),
    ("gfx1033", 0x39),
    ("gfx1035", 0x3d),
    ("gfx1034", 0x3e),
    ("gfx90a", 0x3f),
    ("gfx1100", 0x41),
    ("gfx1013", 0x42),
    ("gfx1150", 0x43),
    ("gfx1103", 0x44),
    ("gfx1036", 0x45),
    ("gfx1102", 0x47),
    ("gfx1200", 0x48),
    ("gfx942", 0x4c),
    ("gfx1201", 0x4e),
    ("gfx10-3-generic", 0x53),
    ("gfx11-generic", 0x54),
    ("gfx1152", 0x55),
    ("gfx1153", 0x58),
];

impl Device {
    /// The target ID of the entry; empty for a bare code object.
    pub fn target(&self) -> &str {
        self.id.as_deref().and_then(|id| id.rsplit_once("--")).map_or("", |(_, target)| target)
    }

    /// Bits 0 to 7 of `e_flags`.
    pub fn mach(&self) -> Option<u8> {
        is_code_object(&self.bytes).then(|| self.bytes[48])
    }

    /// The defect of a code object for `target`: machine number, name in the note.
    pub fn fault(&self, target: &str) -> Option<String> {
        let processor = target.split(':').next().unwrap_or(target);
        let Some((_, mach)) = MACH.iter().find(|(name, _)| *name == processor) else {
            return Some(format!("the test does not know {processor}"));
        };
        if self.mach() != Some(*mach) {
            return Some(format!("machine {:x?} in the code object for {target}, not {mach:#x}", self.mach()));
        }
        // Clang 22 links in several partitions and leaves one note of each: all must agree.
        let found = names(&self.bytes);
        let agree = !found.is_empty() && found.iter().all(|name| name == target);
        if agree { None } else { Some(format!("the note of the code object for {target} names {found:?}")) }
    }
}

/// Target IDs after each `-amd-amdhsa-` in a code object: only the note has that text. Clang 22 writes an empty
/// environment after it, later ones `unknown`.
fn names(bytes: &[u8]) -> Vec<String> {
    let mark = b"-amd-amdhsa-";
    let starts =
        bytes.windows(mark.len()).enumerate().filter(|(_, window)| window == mark).map(|(at, _)| at + mark.len());
    starts.filter_map(|start| name(&bytes[start..])).collect()
}

fn name(bytes: &[u8]) -> Option<String> {
    let rest = bytes.strip_prefix(b"unknown-").or_else(|| bytes.strip_prefix(b"-"))?;
    Some(rest.iter().take_while(is_artifact_name_byte).map(|byte| char::from(*byte)).collect())
}

fn is_artifact_name_byte(byte: &&u8) -> bool {
    byte.is_ascii_alphanumeric() || b":+-".contains(*byte)
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

/// Whether the bytes are an ELF file for AMDGPU.
pub fn is_code_object(bytes: &[u8]) -> bool {
    bytes.len() >= 64 && bytes.starts_with(b"\x7fELF") && half(bytes, 18) == Some(EM_AMDGPU)
}

/// All code objects in a file: host object, program, library, archive, bundle or bare code object.
///
/// # Errors
/// The part that cannot be read.
pub fn devices(bytes: &[u8]) -> Result<Vec<Device>, String> {
    if is_code_object(bytes) {
        return Ok(vec![Device { id: None, bytes: bytes.to_vec() }]);
    }
    if bytes.starts_with(b"\x7fELF") {
        let file = object::File::parse(bytes).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        for section in file.sections().filter(|section| section.name() == Ok(".hip_fatbin")) {
            found.extend(from_fatbin(section.data().map_err(|error| error.to_string())?)?);
        }
        return Ok(found);
    }
    if bytes.starts_with(b"!<arch>\n") {
        let archive = ArchiveFile::parse(bytes).map_err(|error| error.to_string())?;
        let mut found = Vec::new();
        for member in archive.members() {
            let member = member.and_then(|member| member.data(bytes)).map_err(|error| error.to_string())?;
            found.extend(devices(member)?);
        }
        return Ok(found);
    }
    from_fatbin(bytes)
}

fn from_fatbin(bytes: &[u8]) -> Result<Vec<Device>, String> {
    let mut found = Vec::new();
    for located in walk_fatbin(bytes) {
        let located = located.map_err(|error| error.to_string())?;
        let entries = located.bundle.entries().iter().filter(|entry| !entry.id.starts_with("host-"));
        found.extend(entries.map(|entry| Device { id: Some(entry.id.clone()), bytes: entry.data.to_vec() }));
    }
    Ok(found)
}

/// The number of occurrences of each target.
pub fn targets(devices: &[Device]) -> BTreeMap<String, usize> {
    let mut count = BTreeMap::new();
    for device in devices {
        *count.entry(device.target().to_owned()).or_insert(0) += 1;
    }
    count
}
