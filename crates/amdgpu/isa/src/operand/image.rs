//! Sizes of the data and addresses of image instructions, which depend on the mask, the dimension and flags.
//!
//! Invariants: a size that no variant of the instruction has changes nothing, and neither does one whose registers
//! would exceed the last one or begin at an odd one where that is not allowed: the sizes are then those of the
//! encoding's own variant.
//!
//! Absent on purpose: the resource descriptor; only the instruction is examined.

use super::OperandReader;
use crate::kind;
use crate::reg::Reg;
use crate::tables::{Feature, Image, ImageBase, Name};

/// Coordinates and gradients of a dimension by its number in the encoding.
const DIMENSIONS: [DimensionArguments; 8] = [
    dimension_arguments(1, 2),
    dimension_arguments(2, 4),
    dimension_arguments(3, 6),
    dimension_arguments(3, 4),
    dimension_arguments(2, 2),
    dimension_arguments(3, 4),
    dimension_arguments(3, 4),
    dimension_arguments(4, 4),
];

#[derive(Clone, Copy)]
struct DimensionArguments {
    coordinates: u8,
    gradients: u8,
}

const fn dimension_arguments(coordinates: u8, gradients: u8) -> DimensionArguments {
    DimensionArguments { coordinates, gradients }
}

/// The effective sizes of an image instruction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ImageSizes {
    /// The dwords of its data.
    pub(crate) data: u8,
    /// The dwords of its address.
    pub(crate) address: u8,
    /// The addresses are registers of their own.
    pub(crate) separate: bool,
}

/// The sizes; those of the encoding's own variant if they cannot be determined.
pub(crate) fn image_sizes(reader: &OperandReader, image: &Image) -> ImageSizes {
    let own = ImageSizes { data: image.data, address: image.address, separate: is_separate(image) };
    let Some(base) = image.base() else { return own };
    if has_property(base, "bvh") {
        return own;
    }
    let isa = reader.isa;
    let mut wanted = ImageSizes { data: data_dwords(reader, base), ..own };
    if isa.has(Feature::Gfx10Insts) {
        wanted.address = address_dwords(reader, base);
        let sample = reader.find_slot(Name::Samp).is_some() && reader.find_slot(Name::Rsrc).is_some();
        if !own.separate {
            if !sample && wanted.address > 12 {
                wanted.address = 16;
            }
        } else if wanted.address > own.address && !isa.has(Feature::PartialNsaEncoding) {
            return own;
        }
    }
    let listed = listed_data_dwords(base, wanted.data);
    let exists = base
        .variants
        .iter()
        .any(|(encoding, data, address)| *encoding == image.encoding && *data == listed && *address == wanted.address);
    if exists && sizes_fit(reader, wanted, own) { wanted } else { own }
}

/// The dwords of data of the variant that has an instruction's addresses. LLVM 23 lists no gather of three dwords, of packed 16-bit data
/// with the status; LLVM 24 does, with the addresses of the one of four.
fn listed_data_dwords(base: &ImageBase, data: u8) -> u8 {
    if data == 3 && has_property(base, "gather4") { 4 } else { data }
}

/// Whether an instruction's addresses are registers of their own.
fn is_separate(image: &Image) -> bool {
    matches!(image.encoding, "Gfx10NSA" | "Gfx11NSA" | "Gfx12" | "Gfx13")
}

/// Whether an operation has a property.
fn has_property(base: &ImageBase, property: &str) -> bool {
    base.properties.binary_search(&property).is_ok()
}

/// Dwords of data: one for each set bit of the mask, half of that for packed 16-bit data, one more for the status.
fn data_dwords(reader: &OperandReader, base: &ImageBase) -> u8 {
    let mask = reader.raw_named(Name::Dmask) & 15;
    let mut size = if has_property(base, "gather4") { 4 } else { mask.count_ones().max(1) as u8 };
    if reader.raw_named(Name::D16) != 0 && !reader.isa.has(Feature::UnpackedD16Vmem) {
        size = size.div_ceil(2);
    }
    if reader.raw_named(Name::Tfe) != 0 {
        size += 1;
    }
    size
}

fn address_dwords(reader: &OperandReader, base: &ImageBase) -> u8 {
    let dimension = reader.raw_named(Name::Dim) as usize & 7;
    let DimensionArguments { coordinates, gradients } = DIMENSIONS[dimension];
    let a16 = reader.raw_named(Name::A16) != 0;
    let coordinates = if has_property(base, "coordinates") { coordinates } else { 0 };
    let components = coordinates + u8::from(has_property(base, "lod_or_clamp_or_mip"));
    let mut words = base.extra_arguments + if a16 { components.div_ceil(2) } else { components };
    if has_property(base, "gradients") {
        let packed = a16 && !reader.isa.has(Feature::G16) || has_property(base, "g16");
        words += if packed { (gradients / 2).next_multiple_of(2) } else { gradients };
    }
    words
}

/// Whether the registers of the wanted sizes exist.
fn sizes_fit(reader: &OperandReader, wanted: ImageSizes, own: ImageSizes) -> bool {
    let written = if reader.find_slot(Name::Vdst).is_some() { Name::Vdst } else { Name::Vdata };
    if wanted.data != own.data && !fits_at(reader, reader.raw_named(written) & 255, wanted.data) {
        return false;
    }
    if wanted.address == own.address || !reader.isa.has(Feature::NsaEncoding) {
        return true;
    }
    if !own.separate {
        return fits_at(reader, reader.raw_named(Name::Vaddr0) & 255, wanted.address);
    }
    let last = own.address.saturating_sub(1);
    let slot = reader.find_slot(Name::Vaddr0).unwrap_or(0) + usize::from(last);
    wanted.address < own.address || (reader.raw_operand(slot) & 255) + u64::from(wanted.address - last) <= 256
}

/// Whether there is a tuple of that size that starts with that register.
fn fits_at(reader: &OperandReader, start: u64, size: u8) -> bool {
    start + u64::from(size) <= 256 && (size < 2 || start & 1 == 0 || !kind::aligns_tuples(reader.isa))
}

/// The register with the size that the instruction's other fields determine.
pub(crate) fn adjust_image_register(reader: &OperandReader, mut reg: Reg, name: Name) -> Reg {
    let Some(image) = reader.inst.entry().image() else { return reg };
    let sizes = image_sizes(reader, image);
    let widened = sizes.separate && sizes.address > image.address;
    match name {
        // The encoding's own size of the data may be another than that of its register.
        Name::Vdata | Name::Vdst if sizes.data != image.data => reg.count = sizes.data,
        Name::Vaddr0 | Name::Vaddr if !sizes.separate => {
            let changed = sizes.address != image.address && reader.isa.has(Feature::NsaEncoding);
            reg.count = if changed { sizes.address } else { reg.count };
        }
        _ if widened && is_last_address(reader, image, name) => reg.count = sizes.address + 1 - image.address,
        _ => {}
    }
    reg
}

/// Whether `name` is the last address register of the encoding, which then holds all further addresses.
fn is_last_address(reader: &OperandReader, image: &Image, name: Name) -> bool {
    let last = reader.find_slot(Name::Vaddr0).unwrap_or(0) + usize::from(image.address.saturating_sub(1));
    reader.slots.get(last).is_some_and(|slot| slot.name == name)
}
