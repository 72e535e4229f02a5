//! An emulated GPU: its target, the product that it is shown as, and the answers to questions for its properties.
//!
//! Invariant: each attribute has the type of HSA's headers; a caller lacks space for more.

use crate::abi::AgentHandle;
use crate::agent_handles::{HOST, agent_of, isa_of};
use crate::clock::{TICKS_PER_SECOND, current_ticks};
use crate::executor::DeviceExecutor;
use crate::product::{ProductRow, cache_line, driver_family, find_product, reported_wave};
use crate::settings::EmulationSettings;
use hotswap_targets::TargetId;
use std::sync::atomic::{AtomicU64, Ordering};

/// A GPU of the system.
pub(crate) struct EmulatedGpu {
    /// Its place in the list.
    pub(crate) number: usize,
    pub(crate) target: TargetId,
    pub(crate) product: &'static ProductRow,
    /// Size of its memory, in bytes.
    pub(crate) memory: u64,
    /// Bytes that are allocated.
    pub(crate) used: AtomicU64,
    pub(crate) executor: DeviceExecutor,
}

/// The value of an attribute with the type that the attribute has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttributeValue {
    Bool(bool),
    U16(u16),
    U32(u32),
    U64(u64),
    /// A field of that size, filled with zeros.
    Text(usize, String),
    Bytes(Vec<u8>),
}

impl AttributeValue {
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Bool(value) => vec![u8::from(*value)],
            Self::U16(value) => value.to_ne_bytes().to_vec(),
            Self::U32(value) => value.to_ne_bytes().to_vec(),
            Self::U64(value) => value.to_ne_bytes().to_vec(),
            Self::Text(size, text) => {
                let mut bytes = text.as_bytes()[..text.len().min(size - 1)].to_vec();
                bytes.resize(*size, 0);
                bytes
            }
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

fn words_attribute(values: &[u32]) -> AttributeValue {
    AttributeValue::Bytes(values.iter().flat_map(|value| value.to_ne_bytes()).collect())
}

/// Work-items of a work-group.
pub(crate) const MAX_GROUP: u32 = 1024;
/// Places of a queue.
pub(crate) const MAX_QUEUE: u32 = 131_072;
pub(crate) const MIN_QUEUE: u32 = 64;
/// Scratch memory of one queue.
const SCRATCH_LIMIT: u64 = 1 << 30;

/// The number of HSA's extension for images.
const IMAGES: u32 = 1;

impl EmulatedGpu {
    pub(crate) fn new(number: usize, target: TargetId, settings: &EmulationSettings) -> Result<Self, String> {
        let name = target.processor.name;
        let product = find_product(target.processor)
            .ok_or_else(|| format!("{name} cannot be emulated: its product is not known"))?;
        let executor = DeviceExecutor::new(target, product.clocks.0, settings)?;
        let memory = settings.memory.unwrap_or(product.memory << 20);
        Ok(Self { number, target, product, memory, used: AtomicU64::new(0), executor })
    }

    pub(crate) fn agent(&self) -> AgentHandle {
        agent_of(self.number)
    }

    /// The name by which compilers and loaders know its instruction set.
    pub(crate) fn isa_name(&self) -> String {
        format!("amdgcn-amd-amdhsa--{}", self.target)
    }

    /// LDS of a work-group.
    pub(crate) fn lds(&self) -> u32 {
        self.target.processor.limits.lds.addressable
    }

    /// The answer to `hsa_agent_get_info`.
    pub(crate) fn agent_info(&self, attribute: u32) -> Option<AttributeValue> {
        use AttributeValue::{Bool, Bytes, Text, U16, U32, U64};
        let node = 1 + self.number as u32;
        Some(match attribute {
            0 => Text(64, self.target.processor.name.to_owned()),
            1 => Text(64, "AMD".to_owned()),
            // Kernels are dispatched; the base profile; rounding to nearest; fast half floats.
            2 => U32(1),
            3 => U32(1),
            4 => U32(0),
            5 | 23 => U32(2),
            24 => Bool(true),
            6 => U32(reported_wave(self.target.processor)),
            7 => Bytes([MAX_GROUP as u16; 3].iter().flat_map(|value| value.to_ne_bytes()).collect()),
            8 => U32(MAX_GROUP),
            9 => words_attribute(&[i32::MAX as u32, u32::from(u16::MAX), u32::from(u16::MAX)]),
            10 => U32(u32::MAX),
            11 => U32(32),
            12 => U32(128),
            13 => U32(MIN_QUEUE),
            14 => U32(MAX_QUEUE),
            15 => U32(0),
            16 | 0xa004 | 0xa112 => U32(node),
            17 => U32(1),
            18 => words_attribute(&[16 << 10, self.product.caches.0 << 10, self.product.caches.1 << 10, 0]),
            19 => U64(isa_of(self.number).0),
            // Where a GPU has the extension for images, HIP knows an alignment of rows, which hipMallocPitch needs.
            20 => Bytes([1 << IMAGES].into_iter().chain([0; 127]).collect()),
            21 | 22 => U16(1),
            0x3000..=0x300c => image_attribute(attribute),
            _ => return self.amd_attribute(attribute),
        })
    }

    /// Attributes of AMD's extension.
    fn amd_attribute(&self, attribute: u32) -> Option<AttributeValue> {
        use AttributeValue::{Bool, Bytes, Text, U32, U64};
        let limits = &self.target.processor.limits;
        Some(match attribute {
            0xa000 => U32(self.product.chip),
            0xa001 => U32(cache_line(self.target.processor)),
            0xa002 | 0xa014 => U32(self.product.compute_units),
            0xa003 => U32(self.product.clocks.0),
            0xa005 => U32(4),
            0xa006 => U32((3 + self.number as u32) << 8),
            0xa007 => U32(self.product.bus),
            0xa008 => U32(self.product.clocks.1),
            0xa009 => Text(64, format!("HotSwap emulated {}", self.target.processor.name)),
            0xa00a => U32(u32::from(limits.waves_per_simd) * u32::from(limits.simds_per_cu)),
            0xa00b => U32(u32::from(limits.simds_per_cu)),
            0xa00c => U32(self.product.engines.0),
            0xa00d => U32(self.product.engines.1),
            0xa00e => Bytes(vec![0; 16]),
            0xa00f | 0xa012 | 0xa10b | 0xa110 | 0xa113.. if attribute != 0xa111 => {
                return self.late_attribute(attribute);
            }
            0xa010 => Bool(true),
            0xa011 => Text(21, format!("GPU-{:016x}", self.number + 1)),
            0xa013 => Bool(false),
            0xa015 => U64(self.memory.saturating_sub(self.used.load(Ordering::Relaxed))),
            0xa016 => U64(TICKS_PER_SECOND),
            0xa107 => U32(driver_family(self.target.processor)),
            0xa108 | 0xa109 => U32(100),
            0xa10a => U32(2),
            0xa111 => U32(self.product.dies),
            _ => return None,
        })
    }

    fn late_attribute(&self, attribute: u32) -> Option<AttributeValue> {
        use AttributeValue::{Bytes, U32, U64};
        Some(match attribute {
            0xa00f | 0xa012 | 0xa10b | 0xa110 => U32(0),
            0xa113 => U64(HOST.0),
            // Bit 0: the memory is the host's.
            0xa114 => Bytes(vec![u8::from(self.product.is_apu), 0, 0, 0, 0, 0, 0, 0]),
            0xa115 => Bytes(vec![0; 8]),
            0xa116 => U64(SCRATCH_LIMIT),
            0xa117 => U64(0),
            0xa118 => {
                let now = current_ticks();
                Bytes([now, now, now, TICKS_PER_SECOND].iter().flat_map(|value| value.to_ne_bytes()).collect())
            }
            _ => return None,
        })
    }
}

/// Limits of images, which do not exist.
fn image_attribute(attribute: u32) -> AttributeValue {
    match attribute {
        0x3003..=0x3006 => words_attribute(&[0; 2]),
        0x3007 => words_attribute(&[0; 3]),
        // The alignment of rows.
        0x300c => AttributeValue::U32(256),
        _ => AttributeValue::U32(0),
    }
}

/// The answer of the host.
pub(crate) fn host_attribute(attribute: u32) -> Option<AttributeValue> {
    use AttributeValue::{Bool, Bytes, Text, U16, U32, U64};
    let processors = std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
    Some(match attribute {
        0 | 1 | 0xa009 => Text(64, if attribute == 1 { "CPU" } else { "host" }.to_owned()),
        3 | 4 => U32(1),
        5 => U32(2),
        7 => Bytes(vec![0; 6]),
        9 => words_attribute(&[0; 3]),
        18 => words_attribute(&[32 << 10, 512 << 10, 0, 0]),
        20 => Bytes(vec![0; 128]),
        19 => U64(0),
        21 | 22 => U16(1),
        2 | 6 | 8 | 10..=17 | 0xa000..=0xa001 | 0xa003..=0xa008 | 0xa00a..=0xa00d | 0xa00f | 0xa012 => U32(0),
        0xa107..=0xa10b | 0xa110..=0xa112 => U32(0),
        0xa002 => U32(processors),
        0xa00e => Bytes(vec![0; 16]),
        0xa010 | 0xa013 => Bool(false),
        0xa011 => Text(21, "CPU-XX".to_owned()),
        0xa016 => U64(TICKS_PER_SECOND),
        0xa113 => U64(HOST.0),
        0xa114 | 0xa115 => Bytes(vec![0; 8]),
        0xa116 | 0xa117 => U64(0),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attributes with the size that HSA's headers give them, of those that are no 32-bit numbers.
    const SIZES: &[(u32, usize)] = &[
        (0, 64),
        (1, 64),
        (7, 6),
        (9, 12),
        (18, 16),
        (19, 8),
        (20, 128),
        (21, 2),
        (22, 2),
        (24, 1),
        (0x3003, 8),
        (0x3004, 8),
        (0x3005, 8),
        (0x3006, 8),
        (0x3007, 12),
        (0xa009, 64),
        (0xa00e, 16),
        (0xa010, 1),
        (0xa011, 21),
        (0xa013, 1),
        (0xa015, 8),
        (0xa016, 8),
        (0xa113, 8),
        (0xa114, 8),
        (0xa115, 8),
        (0xa116, 8),
        (0xa117, 8),
        (0xa118, 32),
    ];

    fn gpu(target: &str) -> EmulatedGpu {
        EmulatedGpu::new(0, target.parse().unwrap(), &EmulationSettings::default()).unwrap()
    }

    #[test]
    fn each_attribute_has_the_size_of_its_type() {
        let gpu = gpu("gfx1031");
        for attribute in
            (0..=24).chain(0x3000..=0x300c).chain(0xa000..=0xa016).chain(0xa107..=0xa10b).chain(0xa110..=0xa118)
        {
            let size = SIZES.iter().find(|(known, _)| *known == attribute).map_or(4, |(_, size)| *size);
            let found = gpu.agent_info(attribute).map(|value| value.to_bytes().len());
            assert_eq!(found, Some(size), "0x{attribute:x}");
            if let Some(host) = host_attribute(attribute) {
                assert_eq!(host.to_bytes().len(), size, "0x{attribute:x} of the host");
            }
        }
        assert_eq!(gpu.agent_info(0x7777), None);
    }

    #[test]
    fn a_gpu_is_what_its_target_and_product_say() {
        let gpu = gpu("gfx90a:sramecc+:xnack-");
        assert_eq!(gpu.isa_name(), "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-");
        assert_eq!(gpu.agent_info(6), Some(AttributeValue::U32(64)));
        assert_eq!(gpu.agent_info(0xa002), Some(AttributeValue::U32(104)));
        assert_eq!((gpu.lds(), gpu.memory), (65536, 64 << 30));
        assert!(EmulatedGpu::new(0, "gfx803".parse().unwrap(), &EmulationSettings::default()).is_err());
    }
}
