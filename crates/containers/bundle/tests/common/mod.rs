//! Samples that the tests share.

use hotswap_bundle::{Bundle, Compression, CompressionMethod, OffloadBinary, OffloadImage};

pub(crate) const HOST: &str = "host-x86_64-unknown-linux-gnu-";

/// Bytes that look like a linked code object at their start and differ with `seed`.
pub(crate) fn object(seed: u8, size: usize) -> Vec<u8> {
    let mut start = vec![0u8; 64];
    start[..8].copy_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 64]);
    start[16..20].copy_from_slice(&[3, 0, 224, 0]);
    start.extend((0..size).map(|n| (n as u8).wrapping_mul(seed) ^ (n >> 8) as u8));
    start
}

pub(crate) fn id(target: &str) -> String {
    format!("hipv4-amdgcn-amd-amdhsa--{target}")
}

pub(crate) fn sample() -> Bundle<'static> {
    let mut bundle = Bundle::default();
    bundle.push(HOST, Vec::new()).unwrap();
    bundle.push(id("gfx1030"), object(3, 9001)).unwrap();
    bundle.push(id("gfx900"), object(5, 100)).unwrap();
    bundle
}

pub(crate) fn bytes_with(compression: Option<Compression>) -> Vec<u8> {
    let mut bundle = sample();
    bundle.set_compression(compression);
    bundle.to_bytes().unwrap().into_owned()
}

pub(crate) fn forms() -> Vec<Option<Compression>> {
    let packed = |version, method| Some(Compression { version, method, level: None });
    vec![
        None,
        packed(2, CompressionMethod::Zstd),
        packed(3, CompressionMethod::Zstd),
        packed(2, CompressionMethod::Zlib),
        packed(3, CompressionMethod::Zlib),
    ]
}

#[allow(dead_code, reason = "some tests use it")]
pub(crate) fn offload_binary(version: u32) -> Vec<u8> {
    let strings = vec![("arch".into(), "gfx1030".into()), ("triple".into(), "amdgcn-amd-amdhsa".into())];
    let data = vec![b'B', b'C', 0xc0, 0xde, 1].into();
    let image = OffloadImage { image_kind: 2, offload_kind: 4, flags: 0, strings, data };
    OffloadBinary { version, compressed: false, images: vec![image] }.to_bytes().unwrap()
}
