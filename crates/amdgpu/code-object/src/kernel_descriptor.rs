//! The fields of a kernel descriptor: one table, and reading and writing by it.
//!
//! Invariants: reading and writing touch the bits of the field alone; a value that does not fit is refused.
//!
//! Source: "Kernel Descriptor" of LLVM's AMDGPU usage guide, and its `AMDHSAKernelDescriptor.h` of version 23.

use crate::malformed;
use crate::metadata::KernelMetadata;
use hotswap_report::Diagnostic;
use hotswap_targets::{IsaFamily, Processor};
use std::ops::RangeInclusive;

/// Bytes of a descriptor.
pub const SIZE: usize = 64;

/// A field: its position, and the families that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescriptorField {
    /// Its name, as in assembly if it has one there.
    pub name: &'static str,
    /// Byte offset of its word.
    pub byte: u8,
    /// Its lowest bit in the word.
    pub bit: u8,
    /// Its number of bits.
    pub width: u8,
    /// Families that have it.
    pub families: RangeInclusive<IsaFamily>,
}

use IsaFamily::{Cdna2, Cdna4, Gfx6, Gfx13, Gfx117, Gfx125, Rdna1, Rdna3, Rdna4, Vega};

macro_rules! fields {
    ($($(#[doc = $doc:literal])* $name:ident = $text:literal $byte:literal $bit:literal $width:literal $families:expr;)*) => {
        $($(#[doc = $doc])* pub const $name: &DescriptorField =
            &DescriptorField { name: $text, byte: $byte, bit: $bit, width: $width, families: $families };)*
        /// All fields, in the order of their positions.
        pub const FIELDS: &[&DescriptorField] = &[$($name),*];
    };
}

#[rustfmt::skip]
fields! {
    /// Static LDS of a work-group, bytes.
    LDS = "group_segment_fixed_size" 0 0 32 Gfx6..=Gfx13;
    /// Scratch of a work-item, bytes.
    SCRATCH = "private_segment_fixed_size" 4 0 32 Gfx6..=Gfx13;
    /// The size of the kernel arguments, bytes.
    KERNARG = "kernarg_size" 8 0 32 Gfx6..=Gfx13;
    /// Distance from the descriptor to the first instruction, bytes, signed.
    ENTRY = "kernel_code_entry_byte_offset" 16 0 64 Gfx6..=Gfx13;
    /// First AGPR in the file that VGPRs and AGPRs share, in steps of 4, less 1.
    ACCUM_OFFSET = "accum_offset" 44 0 6 Cdna2..=Cdna4;
    /// The waves of a work-group may run on two compute units.
    TG_SPLIT = "tg_split" 44 16 1 Cdna2..=Cdna4;
    /// VGPRs that the lanes of both halves share, in steps of 8.
    SHARED_VGPRS = "shared_vgpr_count" 44 0 4 Rdna1..=Gfx117;
    /// Instructions to prefetch before the kernel begins, in steps of 128 bytes.
    PREFETCH_11 = "inst_pref_size" 44 4 6 Rdna3..=Gfx117;
    /// A trap when the kernel begins.
    TRAP_ON_START = "trap_on_start" 44 10 1 Rdna3..=Gfx117;
    /// A trap when the kernel ends.
    TRAP_ON_END = "trap_on_end" 44 11 1 Rdna3..=Gfx117;
    /// Instructions to prefetch before the kernel begins, in steps of 128 bytes.
    PREFETCH = "inst_pref_size" 44 4 8 Rdna4..=Gfx13;
    /// Work-groups are launched in groups.
    GROUP_LAUNCH = "glg_en" 44 13 1 Rdna4..=Gfx13;
    /// Named barriers, in steps of 4.
    NAMED_BARRIERS = "named_bar_cnt" 44 14 3 Gfx125..=Gfx125;
    /// Waves may request more VGPRs while they run.
    DYNAMIC_VGPRS_125 = "enable_dynamic_vgpr" 44 17 1 Gfx125..=Gfx125;
    /// How the vector cache is split.
    TCP_SPLIT = "tcp_split" 44 18 3 Gfx125..=Gfx125;
    /// Throttling of sudden load.
    DIDT_THROTTLE = "enable_didt_throttle" 44 21 1 Gfx125..=Gfx125;
    /// Image instructions are used.
    IMAGE_OP = "image_op" 44 31 1 Rdna3..=Gfx13;
    /// VGPRs in steps of the target's granule, less 1.
    VGPRS = "granulated_workitem_vgpr_count" 48 0 6 Gfx6..=Gfx125;
    /// SGPRs in steps of the target's granule, less 1; unused from GFX10 on, where every wave has all.
    SGPRS = "granulated_wavefront_sgpr_count" 48 6 4 Gfx6..=Cdna4;
    /// Priority with which the waves begin.
    PRIORITY = "priority" 48 10 2 Gfx6..=Gfx13;
    /// Rounding of 32-bit numbers.
    ROUND_32 = "float_round_mode_32" 48 12 2 Gfx6..=Gfx13;
    /// Rounding of 16- and 64-bit numbers.
    ROUND_16_64 = "float_round_mode_16_64" 48 14 2 Gfx6..=Gfx13;
    /// Whether denormal 32-bit numbers are kept or flushed.
    DENORM_32 = "float_denorm_mode_32" 48 16 2 Gfx6..=Gfx13;
    /// Denormal 16- and 64-bit numbers.
    DENORM_16_64 = "float_denorm_mode_16_64" 48 18 2 Gfx6..=Gfx13;
    PRIV = "priv" 48 20 1 Gfx6..=Gfx13;
    /// Clamping as of DirectX 10.
    DX10_CLAMP = "dx10_clamp" 48 21 1 Gfx6..=Gfx117;
    /// Round robin between the waves of a work-group.
    ROUND_ROBIN = "round_robin_scheduling" 48 21 1 Rdna4..=Gfx13;
    /// Waves begin in debug mode.
    DEBUG_MODE = "debug_mode" 48 22 1 Gfx6..=Gfx13;
    /// Exceptions as of IEEE 754.
    IEEE_MODE = "ieee_mode" 48 23 1 Gfx6..=Gfx117;
    /// Counters are off while the kernel runs.
    DISABLE_PERF = "disable_perf" 48 23 1 Rdna4..=Gfx13;
    /// One work-group on a compute unit.
    BULKY = "bulky" 48 24 1 Gfx6..=Gfx13;
    /// May control code for debuggers; compilers leave it 0.
    CDBG_USER = "cdbg_user" 48 25 1 Gfx6..=Gfx13;
    /// 16-bit numbers that overflow become the largest.
    FP16_OVERFLOW = "fp16_overflow" 48 26 1 Vega..=Gfx13;
    /// Scratch is not volatile.
    SCRATCH_NV = "flat_scratch_is_nv" 48 27 1 Gfx125..=Gfx125;
    /// A work-group may use both compute units of a work-group processor.
    WGP_MODE = "workgroup_processor_mode" 48 29 1 Rdna1..=Gfx13;
    /// Loads return in order.
    MEM_ORDERED = "memory_ordered" 48 30 1 Rdna1..=Gfx13;
    /// The oldest wave is served first.
    FORWARD_PROGRESS = "forward_progress" 48 31 1 Rdna1..=Gfx13;
    ENABLE_SCRATCH = "enable_private_segment" 52 0 1 Gfx6..=Gfx13;
    /// SGPRs that are set before the kernel begins.
    USER_SGPRS = "user_sgpr_count" 52 1 5 Gfx6..=Rdna4;
    /// SGPRs that are set before the kernel begins.
    USER_SGPRS_125 = "user_sgpr_count" 52 1 6 Gfx125..=Gfx125;
    /// A trap handler is present.
    TRAP_HANDLER = "enable_trap_handler" 52 6 1 Gfx6..=Gfx117;
    /// Waves may request more VGPRs while they run.
    DYNAMIC_VGPRS = "enable_dynamic_vgpr" 52 6 1 Rdna4..=Rdna4;
    /// The work-group's number, first dimension.
    WORKGROUP_ID_X = "system_sgpr_workgroup_id_x" 52 7 1 Gfx6..=Gfx13;
    /// The work-group's number, second dimension.
    WORKGROUP_ID_Y = "system_sgpr_workgroup_id_y" 52 8 1 Gfx6..=Gfx13;
    /// The work-group's number, third dimension.
    WORKGROUP_ID_Z = "system_sgpr_workgroup_id_z" 52 9 1 Gfx6..=Gfx13;
    /// Information about the work-group.
    WORKGROUP_INFO = "system_sgpr_workgroup_info" 52 10 1 Gfx6..=Gfx13;
    /// Dimensions of the work-item's number, less 1.
    WORKITEM_ID = "system_vgpr_workitem_id" 52 11 2 Gfx6..=Gfx13;
    /// An exception for watched addresses.
    ADDRESS_WATCH = "exception_address_watch" 52 13 1 Gfx6..=Gfx13;
    /// An exception for memory faults.
    MEMORY = "exception_memory" 52 14 1 Gfx6..=Gfx13;
    /// LDS in steps of the target's granule; the runtime fills it in.
    GRANULATED_LDS = "granulated_lds_size" 52 15 9 Gfx6..=Gfx13;
    /// An exception for invalid operations.
    FP_INVALID = "exception_fp_ieee_invalid_op" 52 24 1 Gfx6..=Gfx13;
    /// An exception for denormal sources.
    FP_DENORM = "exception_fp_denorm_src" 52 25 1 Gfx6..=Gfx13;
    /// An exception for divisions by zero.
    FP_DIVISION = "exception_fp_ieee_div_zero" 52 26 1 Gfx6..=Gfx13;
    /// An exception for overflow.
    FP_OVERFLOW = "exception_fp_ieee_overflow" 52 27 1 Gfx6..=Gfx13;
    /// An exception for underflow.
    FP_UNDERFLOW = "exception_fp_ieee_underflow" 52 28 1 Gfx6..=Gfx13;
    /// An exception for inexact results.
    FP_INEXACT = "exception_fp_ieee_inexact" 52 29 1 Gfx6..=Gfx13;
    /// An exception for integer divisions by zero.
    INT_DIVISION = "exception_int_div_zero" 52 30 1 Gfx6..=Gfx13;
    /// User SGPRs: descriptor of scratch.
    SCRATCH_BUFFER = "user_sgpr_private_segment_buffer" 56 0 1 Gfx6..=Gfx13;
    /// User SGPRs: the dispatch packet.
    DISPATCH_PTR = "user_sgpr_dispatch_ptr" 56 1 1 Gfx6..=Gfx13;
    /// User SGPRs: the queue.
    QUEUE_PTR = "user_sgpr_queue_ptr" 56 2 1 Gfx6..=Gfx13;
    /// User SGPRs: the arguments.
    KERNARG_PTR = "user_sgpr_kernarg_segment_ptr" 56 3 1 Gfx6..=Gfx13;
    /// User SGPRs: the dispatch's number.
    DISPATCH_ID = "user_sgpr_dispatch_id" 56 4 1 Gfx6..=Gfx13;
    /// User SGPRs: scratch of a wave.
    FLAT_SCRATCH = "user_sgpr_flat_scratch_init" 56 5 1 Gfx6..=Gfx13;
    /// User SGPRs: bytes of scratch.
    SCRATCH_SIZE = "user_sgpr_private_segment_size" 56 6 1 Gfx6..=Gfx13;
    /// Waves of 32 lanes.
    WAVE32 = "wavefront_size32" 56 10 1 Rdna1..=Gfx13;
    /// The scratch size is not known before the kernel runs.
    DYNAMIC_STACK = "uses_dynamic_stack" 56 11 1 Gfx6..=Gfx13;
    /// Dwords of arguments that are put into user SGPRs.
    PRELOAD_LENGTH = "user_sgpr_kernarg_preload_length" 58 0 7 Cdna2..=Gfx13;
    /// The first of these dwords.
    PRELOAD_OFFSET = "user_sgpr_kernarg_preload_offset" 58 7 9 Cdna2..=Gfx13;
}

/// The bytes of a descriptor, and its processor.
#[derive(Debug, Clone, Copy)]
pub struct KernelDescriptor<B> {
    bytes: B,
    processor: &'static Processor,
}

impl DescriptorField {
    fn mask(&self) -> u64 {
        u64::MAX >> (64 - self.width)
    }

    /// Bytes of its word.
    fn word_size(&self) -> usize {
        if self.width == 64 { 8 } else { 2 << usize::from(self.byte < 56) }
    }
}

impl<B: AsRef<[u8]>> KernelDescriptor<B> {
    /// The descriptor in `bytes`; `None` unless there are [`SIZE`] of them.
    pub fn new(bytes: B, processor: &'static Processor) -> Option<Self> {
        (bytes.as_ref().len() == SIZE).then_some(Self { bytes, processor })
    }

    /// The value of a field; `None` where the processor does not have it.
    pub fn get(&self, field: &DescriptorField) -> Option<u64> {
        let has = field.families.contains(&self.processor.family);
        has.then(|| self.read_word(field) >> field.bit & field.mask())
    }

    fn read_word(&self, field: &DescriptorField) -> u64 {
        let start = usize::from(field.byte);
        let word = self.bytes.as_ref().get(start..start + field.word_size()).unwrap_or_default();
        word.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
    }

    /// All fields that the processor has, with their values.
    pub fn fields(&self) -> impl Iterator<Item = (&'static DescriptorField, u64)> + '_ {
        FIELDS.iter().filter_map(|field| Some((*field, self.get(field)?)))
    }

    /// Lanes of a wave.
    pub fn wave_size(&self) -> u64 {
        if self.get(WAVE32) == Some(1) { 32 } else { 64 }
    }

    /// Vector registers of a wave, those of both kinds where they share a file.
    pub fn vector_registers(&self) -> Option<u32> {
        let vgprs = self.processor.limits.vgprs(self.wave_size())?;
        Some(vgprs.described_count(u8::try_from(self.get(VGPRS)?).ok()?))
    }

    /// Compares with the note; `offset` is that of the descriptor in the file.
    ///
    /// # Errors
    /// `MALFORMED`, with the kernel's name, for sizes that differ and for registers that the
    /// descriptor does not provide.
    pub fn check_metadata(&self, kernel: &KernelMetadata<'_>, offset: usize) -> Result<(), Diagnostic> {
        let same = [(LDS, kernel.lds), (SCRATCH, kernel.scratch), (KERNARG, kernel.kernarg_size)];
        for (field, stated) in same {
            // Runtimes of code object V3 on may find 0 in the descriptor: the note counts then.
            let value = self.get(field).filter(|value| *value != 0).or(stated);
            if stated.is_some() && value != stated {
                return metadata_difference_error(
                    format!(
                        "the metadata states {} of {}, the descriptor {}",
                        field.name,
                        stated.unwrap_or_default(),
                        value.unwrap_or_default()
                    ),
                    offset,
                    kernel.name,
                );
            }
        }
        let needed = self.needed_vgprs(kernel);
        match (self.vector_registers(), needed) {
            (Some(given), Some(needed)) if u64::from(given) < needed => metadata_difference_error(
                format!("the metadata states {needed} vector registers, the descriptor gives {given}"),
                offset,
                kernel.name,
            ),
            _ => Ok(()),
        }
    }

    /// Vector registers that follow from the note's counts. Where VGPRs and AGPRs share a file the note's VGPR count
    /// is that of both.
    fn needed_vgprs(&self, kernel: &KernelMetadata<'_>) -> Option<u64> {
        match kernel.agpr_count {
            Some(agprs) if self.get(ACCUM_OFFSET).is_none() => kernel.vgpr_count.map(|vgprs| vgprs.max(agprs)),
            _ => kernel.vgpr_count,
        }
    }
}

fn metadata_difference_error(what: String, offset: usize, kernel_name: &str) -> Result<(), Diagnostic> {
    let mut error = malformed(offset, what);
    error.place.kernel = Some(kernel_name.to_owned());
    Err(error)
}

impl<B: AsRef<[u8]> + AsMut<[u8]>> KernelDescriptor<B> {
    /// Changes a field; `None`, and no change, where the processor does not have it or the value does not fit.
    pub fn set_field(&mut self, field: &DescriptorField, value: u64) -> Option<()> {
        self.get(field).filter(|_| value <= field.mask())?;
        let word = self.read_word(field) & !(field.mask() << field.bit) | value << field.bit;
        let (start, size) = (usize::from(field.byte), field.word_size());
        self.bytes.as_mut().get_mut(start..start + size)?.copy_from_slice(&word.to_le_bytes()[..size]);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_targets::find_processor;

    #[test]
    fn fields_of_one_family_do_not_overlap() {
        for processor in hotswap_targets::PROCESSORS {
            let mut taken = [0_u64; SIZE];
            for field in FIELDS.iter().filter(|field| field.families.contains(&processor.family)) {
                let start = usize::from(field.byte) * 8 + usize::from(field.bit);
                for bit in start..start + usize::from(field.width) {
                    assert_eq!(taken[bit / 8] >> (bit % 8) & 1, 0, "{} of {}", field.name, processor.name);
                    taken[bit / 8] |= 1 << (bit % 8);
                }
            }
        }
    }

    #[test]
    fn a_change_touches_its_bits_alone() {
        for filler in [0x00, 0xff] {
            for field in FIELDS.iter().filter(|field| field.families.contains(&IsaFamily::Gfx125)) {
                let mut bytes = [filler; SIZE];
                let mut descriptor = KernelDescriptor::new(&mut bytes[..], find_processor("gfx1250").unwrap()).unwrap();
                let other = descriptor.get(field).unwrap() ^ 1;
                descriptor.set_field(field, other).unwrap();
                assert_eq!(descriptor.get(field), Some(other), "{}", field.name);
                assert!(field.width == 64 || descriptor.set_field(field, field.mask() + 1).is_none());
                assert_eq!(bytes.iter().map(|byte| (byte ^ filler).count_ones()).sum::<u32>(), 1, "{}", field.name);
            }
        }
    }

    #[test]
    fn a_processor_has_its_own_fields() {
        let descriptor = |name| KernelDescriptor::new([0xff; SIZE], find_processor(name).unwrap()).unwrap();
        assert_eq!(descriptor("gfx900").get(WAVE32), None);
        assert_eq!((descriptor("gfx90a").get(ACCUM_OFFSET), descriptor("gfx1100").get(ACCUM_OFFSET)), (Some(63), None));
        assert_eq!(
            (descriptor("gfx1100").get(PREFETCH_11), descriptor("gfx1200").get(PREFETCH)),
            (Some(63), Some(255))
        );
        assert_eq!((descriptor("gfx900").wave_size(), descriptor("gfx1030").wave_size()), (64, 32));
    }
}
