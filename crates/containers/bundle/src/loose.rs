//! Code objects in a file without any container: Mojo's compiler, for one, writes each kernel's as a constant of the host's.
//!
//! They are counted: "no device code was found" would be wrong of such a file.
//!
//! Absent on purpose: reading them. Nothing says where such a constant ends, or which code of the host's knows its size.

use crate::bytes::{u16_at, u32_at};
use hotswap_report::{Diagnostic, codes};
use memchr::memmem;
use object::elf::{EM_AMDGPU, ET_DYN};

/// The identification of an AMD GPU's code object: 64-bit, little-endian, `ELFOSABI_AMDGPU_HSA`.
const IDENTIFICATION: &[u8] = b"\x7fELF\x02\x01\x01\x40";
/// Offsets of `e_type`, `e_machine` and `e_flags`.
const TYPE_AT: u64 = 16;
const MACHINE_AT: u64 = 18;
const FLAGS_AT: u64 = 48;
const HEADER_SIZE: usize = 64;

/// The problem of a file in which no container was found. It names code objects that are there without one.
pub(crate) fn missing_container(file: &[u8]) -> Diagnostic {
    let offsets: Vec<usize> =
        memmem::find_iter(file, IDENTIFICATION).filter(|at| is_code_object(&file[*at..])).collect();
    let Some(first) = offsets.first() else {
        return Diagnostic::error(codes::NOT_FOUND, "no container of device code is in it");
    };
    let objects = if offsets.len() == 1 { "code object is" } else { "code objects are" };
    let what = format!(
        "no container of device code is in it, but {} {objects} in it without one, the first at {first:#x} for {}",
        offsets.len(),
        processor_name(&file[*first..])
    );
    Diagnostic::error(codes::NOT_FOUND, what).advise(
        "HotSwap neither reads nor changes code without a container: build the file for the GPU with its own compiler",
    )
}

fn is_code_object(bytes: &[u8]) -> bool {
    let Some(header) = bytes.get(..HEADER_SIZE) else { return false };
    u16_at(header, TYPE_AT) == Some(ET_DYN) && u16_at(header, MACHINE_AT) == Some(EM_AMDGPU)
}

fn processor_name(header: &[u8]) -> &'static str {
    let flags = u32_at(header, FLAGS_AT).unwrap_or_default();
    hotswap_targets::by_mach(flags.to_le_bytes()[0]).map_or("an unknown GPU", |processor| processor.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The header of a code object for gfx942.
    fn code_object() -> Vec<u8> {
        let mut bytes = [IDENTIFICATION, &[0; 8], &[3, 0, 224, 0], &[0; 44]].concat();
        bytes[48] = 0x4c;
        bytes
    }

    #[test]
    fn code_objects_without_a_container_are_counted() {
        let file = [vec![1; 17], code_object(), vec![0; 9], code_object()].concat();
        let problem = missing_container(&file);
        assert!(
            problem.what.ends_with("but 2 code objects are in it without one, the first at 0x11 for gfx942"),
            "{problem}"
        );
        assert_eq!(problem.code, codes::NOT_FOUND);
    }

    #[test]
    fn other_files_have_none() {
        let host = [IDENTIFICATION, &[0; 8], &[3, 0, 62, 0], &[0; 44]].concat();
        let relocatable = [IDENTIFICATION, &[0; 8], &[1, 0, 224, 0], &[0; 44]].concat();
        for file in [host, relocatable, code_object()[..63].to_vec(), IDENTIFICATION.to_vec(), Vec::new()] {
            assert_eq!(missing_container(&file).what, "no container of device code is in it");
        }
    }
}
