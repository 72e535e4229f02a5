//! Buffer resources (V#): their fields, the addresses of an access and its range check.
//!
//! | layout | base, records | range check |
//! | --- | --- | --- |
//! | gfx9 | 48 bits, 32 bits | by the instruction: with an index and a stride the index is checked, else the bytes, the scalar offset included; none with ADD_TID and without an index |
//! | gfx10 | 48 bits, 32 bits | OOB_SELECT: 0 index, and offset below the stride; 1 index; 2 only an empty buffer; 3 bytes, the scalar offset included |
//! | gfx11, gfx12 | 48 bits, 32 bits | the same, but 0 demands that the access ends within the stride, and so does 3 of a swizzled buffer with a stride |
//! | gfx12.5 | 57 bits, 45 bits | bytes from the base, the scalar offset included; with OOB_SELECT also those of the record |
//!
//! Sources: the ISA documents' chapters on buffer addressing; for the scalar offset on gfx9 and for ADD_TID what
//! ROCm/rocm-systems#10928 measured on gfx950, for gfx12.5 ROCm/rocm-systems#10362.
//!
//! Invariants: pure functions of the four dwords and of a lane's offsets; a resource that is not understood is an error with
//! the reason, never an address.
//!
//! Absent on purpose: formats (instructions that convert are not executed), swizzled buffers of gfx12.5, faults that a resource
//! of another type raises.

use hotswap_isa::{Feature, Isa};

/// Bytes of the swizzled elements that all targets have.
const SMALL_ELEMENT: u64 = 4;

/// The fields of a resource, by generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ResourceLayout {
    Gfx9,
    Gfx10,
    Gfx11,
    Gfx125,
}

impl ResourceLayout {
    pub(crate) fn for_isa(isa: Isa) -> Self {
        if isa.has(Feature::Gfx1250Insts) {
            Self::Gfx125
        } else if isa.has(Feature::Gfx11Insts) {
            Self::Gfx11
        } else if isa.has(Feature::Gfx10Insts) {
            Self::Gfx10
        } else {
            Self::Gfx9
        }
    }
}

/// The condition under which an access is in range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeCheck {
    Unchecked,
    /// The index is a record's; `record` also demands that the access lies in the record.
    Index {
        record: RecordCheck,
    },
    /// The buffer is not empty; where the access lies does not matter.
    NotEmpty,
    /// The access ends within the bytes; the scalar offset counts.
    Bytes,
    /// The address of the last byte, as swizzled, is within the bytes.
    SwizzledBytes,
    /// All bytes from the base on, the records before included; `record` also demands that the access lies in the record.
    BytesFromBase {
        record: bool,
    },
}

/// Which part of an access lies in its record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RecordCheck {
    None,
    Start,
    End,
}

/// How elements of records are interleaved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Swizzle {
    /// Bytes of an element, which stay together.
    element: u64,
    /// Records that are interleaved.
    records: u64,
}

/// The parts of an address that the instruction and the lane give.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LaneOffsets {
    /// The index; `None` where the instruction has none.
    pub(crate) index: Option<u32>,
    /// The offset in a vector register; 0 where the instruction has none.
    pub(crate) vector: u32,
    /// The offset in the instruction.
    pub(crate) immediate: i64,
    /// The offset in a scalar register.
    pub(crate) scalar: u32,
    pub(crate) lane: u32,
}

/// A buffer resource with its fields decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BufferResource {
    layout: ResourceLayout,
    base: u64,
    records: u64,
    stride: u64,
    /// The stride without its scale, which scalar loads ignore.
    raw_stride: u64,
    adds_lane: bool,
    swizzle: Option<Swizzle>,
    /// OOB_SELECT; 0 where the layout has none.
    oob_select: u32,
    /// Further bits of the stride, for accesses that add the lane's number (gfx9).
    wide_stride: u64,
}

/// Sign-extends an address of `bits` bits.
fn canonical_address(address: u64, bits: u32) -> u64 {
    ((address << (64 - bits)) as i64 >> (64 - bits)) as u64
}

impl BufferResource {
    /// Reads the four dwords.
    ///
    /// # Errors
    /// Where the emulator does not know what the resource asks for.
    pub(crate) fn decode(dwords: [u32; 4], layout: ResourceLayout) -> Result<Self, &'static str> {
        if layout == ResourceLayout::Gfx125 {
            return Self::decode_wide(dwords);
        }
        let [low, high, records, flags] = dwords;
        let stride = u64::from(high >> 16 & 0x3fff);
        let adds_lane = flags >> 23 & 1 != 0;
        Ok(Self {
            layout,
            base: u64::from(high & 0xffff) << 32 | u64::from(low),
            records: records.into(),
            stride,
            raw_stride: stride,
            adds_lane,
            swizzle: swizzle_of(high >> 30, flags, layout)?,
            oob_select: if layout == ResourceLayout::Gfx9 { 0 } else { flags >> 28 & 3 },
            wide_stride: u64::from(flags >> 15 & 15) << 14 | stride,
        })
    }

    /// The resource of gfx12.5.
    fn decode_wide([low, high, records, flags]: [u32; 4]) -> Result<Self, &'static str> {
        const STRIDE_SCALES: [u64; 4] = [1, 4, 8, 32];
        if flags >> 28 & 1 != 0 {
            return Err("a swizzled buffer");
        }
        let raw_stride = u64::from(flags >> 12 & 0x3fff);
        let stride = raw_stride * STRIDE_SCALES[(flags >> 26 & 3) as usize];
        Ok(Self {
            layout: ResourceLayout::Gfx125,
            base: u64::from(high & 0x01ff_ffff) << 32 | u64::from(low),
            records: (u64::from(flags & 0x3f) << 32 | u64::from(records)) << 7 | u64::from(high >> 25),
            stride,
            raw_stride,
            adds_lane: false,
            swizzle: None,
            oob_select: flags >> 29 & 1,
            wide_stride: stride,
        })
    }

    /// Bytes that scalar loads can reach, from the base.
    pub(crate) fn scalar_bytes(&self) -> u64 {
        self.records.saturating_mul(self.raw_stride.max(1))
    }

    /// The base address, with the sign that addresses have.
    pub(crate) fn base(&self) -> u64 {
        canonical_address(self.base, if self.layout == ResourceLayout::Gfx125 { 57 } else { 48 })
    }

    /// Whether bytes that follow each other in an access do so in memory.
    pub(crate) fn is_linear(&self, has_index: bool) -> bool {
        self.active_swizzle(has_index).is_none()
    }

    /// The address of `size` bytes that begin `distance` bytes behind the first byte of a lane's access; `None` where they are
    /// out of range.
    pub(crate) fn address_of(&self, offsets: &LaneOffsets, distance: u64, size: u64) -> Option<u64> {
        let offset = self.record_offset(offsets).wrapping_add(distance);
        let index = self.record_index(offsets);
        let scalar = u64::from(offsets.scalar);
        let relative = match self.active_swizzle(offsets.index.is_some()) {
            Some(swizzle) => swizzled_offset(swizzle, self.used_stride(offsets), index, offset),
            None => (index * self.used_stride(offsets)).wrapping_add(offset),
        };
        self.is_in_range(offsets, RangeOperands { index, offset, scalar, relative, size })
            .then(|| self.base().wrapping_add(relative).wrapping_add(scalar))
    }

    /// The offset from the beginning of the record. Before gfx12.5 the sum has 32 bits.
    fn record_offset(&self, offsets: &LaneOffsets) -> u64 {
        match self.layout {
            ResourceLayout::Gfx125 => u64::from(offsets.vector).wrapping_add_signed(offsets.immediate),
            _ => offsets.vector.wrapping_add(offsets.immediate as u32).into(),
        }
    }

    /// gfx9 adds the lane's number to an index only in swizzled buffers, other targets only where the instruction has no index.
    fn adds_lane_to(&self, has_index: bool) -> bool {
        let is_swizzled = self.swizzle.is_some();
        self.adds_lane && (!has_index || self.layout == ResourceLayout::Gfx9 && is_swizzled)
    }

    fn record_index(&self, offsets: &LaneOffsets) -> u64 {
        let lane = if self.adds_lane_to(offsets.index.is_some()) { offsets.lane } else { 0 };
        offsets.index.unwrap_or(0).wrapping_add(lane).into()
    }

    fn used_stride(&self, offsets: &LaneOffsets) -> u64 {
        let is_wide = self.layout == ResourceLayout::Gfx9 && self.adds_lane_to(offsets.index.is_some());
        if is_wide { self.wide_stride } else { self.stride }
    }

    /// The swizzle that an access uses: gfx9 wants ADD_TID, others any index.
    fn active_swizzle(&self, has_index: bool) -> Option<Swizzle> {
        let is_used = self.adds_lane || has_index && self.layout != ResourceLayout::Gfx9;
        self.swizzle.filter(|_| is_used)
    }

    fn range_check(&self, has_index: bool) -> RangeCheck {
        let is_swizzled = self.active_swizzle(has_index).is_some();
        match (self.layout, self.oob_select) {
            (ResourceLayout::Gfx125, select) => RangeCheck::BytesFromBase { record: select != 0 },
            (ResourceLayout::Gfx9, _) if self.adds_lane && !has_index => RangeCheck::Unchecked,
            (ResourceLayout::Gfx9, _) if has_index && self.stride != 0 => {
                RangeCheck::Index { record: RecordCheck::None }
            }
            (ResourceLayout::Gfx9, _) => RangeCheck::Bytes,
            (ResourceLayout::Gfx10, 0) => RangeCheck::Index { record: RecordCheck::Start },
            (ResourceLayout::Gfx11, 0) => RangeCheck::Index { record: RecordCheck::End },
            (_, 1) => RangeCheck::Index { record: RecordCheck::None },
            (_, 2) => RangeCheck::NotEmpty,
            (ResourceLayout::Gfx10, _) if is_swizzled => RangeCheck::SwizzledBytes,
            (ResourceLayout::Gfx11, _) if is_swizzled && self.stride != 0 => {
                RangeCheck::Index { record: RecordCheck::End }
            }
            _ => RangeCheck::Bytes,
        }
    }

    fn is_in_range(&self, offsets: &LaneOffsets, operands: RangeOperands) -> bool {
        let RangeOperands { index, offset, scalar, relative, size } = operands;
        match self.range_check(offsets.index.is_some()) {
            RangeCheck::Unchecked => true,
            RangeCheck::NotEmpty => self.records != 0,
            RangeCheck::Index { record } => index < self.records && self.is_in_record(record, offset, size),
            RangeCheck::Bytes => ends_within(offset + scalar, size, self.records),
            RangeCheck::SwizzledBytes => ends_within(relative + scalar, size, self.records),
            RangeCheck::BytesFromBase { record } => {
                ends_within(relative.wrapping_add(scalar), size, self.records)
                    && (!record || ends_within(offset.wrapping_add(scalar), size, self.stride))
            }
        }
    }

    fn is_in_record(&self, check: RecordCheck, offset: u64, size: u64) -> bool {
        match check {
            RecordCheck::None => true,
            RecordCheck::Start => offset < self.stride,
            RecordCheck::End => ends_within(offset, size, self.stride),
        }
    }
}

/// The numbers that range checks compare.
struct RangeOperands {
    index: u64,
    /// From the beginning of the record.
    offset: u64,
    scalar: u64,
    /// From the base, without the scalar offset.
    relative: u64,
    /// Bytes of the access.
    size: u64,
}

/// Offsets below 0 are large numbers here, and end beyond everything.
fn ends_within(offset: u64, size: u64, limit: u64) -> bool {
    offset.checked_add(size).is_some_and(|end| end <= limit)
}

/// `bits` are the two highest of the second dword.
fn swizzle_of(bits: u32, flags: u32, layout: ResourceLayout) -> Result<Option<Swizzle>, &'static str> {
    let element = match (layout, bits) {
        // The lower of the two is the cache's swizzle.
        (ResourceLayout::Gfx9 | ResourceLayout::Gfx10, _) if bits & 2 == 0 => return Ok(None),
        (ResourceLayout::Gfx9 | ResourceLayout::Gfx10, _) => SMALL_ELEMENT,
        (_, 0) => return Ok(None),
        (_, 1) => SMALL_ELEMENT,
        (_, 3) => 16,
        _ => return Err("a swizzled buffer with elements of unknown size"),
    };
    Ok(Some(Swizzle { element, records: 8 << (flags >> 21 & 3) }))
}

fn swizzled_offset(swizzle: Swizzle, stride: u64, index: u64, offset: u64) -> u64 {
    let Swizzle { element, records } = swizzle;
    let row = index / records * stride + offset / element * element;
    row * records + index % records * element + offset % element
}
