//! Base operations of image instructions and their variants.

use super::instruction::ImportedInst;
use super::json::Records;
use super::{ImportError, wrong};
use crate::model::{ImageBase, ImageForm, ImageVariant};
use std::collections::BTreeSet;

#[rustfmt::skip]
const PROPERTIES: &[(&str, &str)] = &[
    ("A16", "a16"), ("Atomic", "atomic"), ("IsAtomicRet", "atomic_ret"), ("AtomicX2", "atomic_x2"), ("BVH", "bvh"),
    ("Coordinates", "coordinates"), ("HasD16", "d16"), ("G16", "g16"), ("Gather4", "gather4"),
    ("Gradients", "gradients"), ("LodOrClampOrMip", "lod_or_clamp_or_mip"), ("MSAA", "msaa"),
    ("NoReturn", "no_return"), ("PointSampleAccel", "point_sample_accel"), ("Sampler", "sampler"), ("Store", "store"),
];

/// The bases of all variants, by name.
pub(super) fn image_bases(records: &Records, instructions: &[ImportedInst]) -> Result<Vec<ImageBase>, ImportError> {
    let images: Vec<&ImageVariant> = instructions.iter().filter_map(|instruction| instruction.image.as_ref()).collect();
    let names: BTreeSet<&String> = images.iter().map(|image| &image.base).collect();
    let encodings: BTreeSet<&String> = images.iter().map(|image| &image.encoding).collect();
    let mut bases = Vec::new();
    for name in names {
        let found = records.image_bases.iter().find(|record| record.def("BaseOpcode") == Some(name));
        let Some(record) = found else { return wrong(name, "there is no such image base") };
        let variants =
            records.variants.iter().filter(|known| known.base == *name && encodings.contains(&known.encoding));
        let properties = PROPERTIES.iter().filter(|(field, _)| record.int(field) == 1);
        bases.push(ImageBase {
            name: name.clone(),
            properties: properties.map(|(_, property)| (*property).to_owned()).collect(),
            extra_arguments: u8::try_from(record.bits("NumExtraArgs")).unwrap_or(u8::MAX),
            variants: variants.map(image_form).collect(),
        });
    }
    Ok(bases)
}

fn image_form(variant: &ImageVariant) -> ImageForm {
    ImageForm { encoding: variant.encoding.clone(), data: variant.data, address: variant.address }
}
