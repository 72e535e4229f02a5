//! Functions over the lanes of (half) a wave.

use crate::mode::FloatMode;
use crate::source::MeaningSource;

/// Lanes that one function computes: a wave of 32, or half of one of 64.
pub const LANES: usize = 32;
/// A dword of each lane.
pub type Lanes = [u32; LANES];
/// Two dwords of each lane.
pub type WideLanes = [u64; LANES];
/// A function of up to three dwords. 16-bit sources are in the low half; so is a 16-bit result.
pub type NarrowFunction = fn(&mut Lanes, &[&Lanes; 3], FloatMode);
/// A function with a source or a result of 64 bits; shorter ones are extended with 0.
pub type WideFunction = fn(&mut WideLanes, &[&WideLanes; 3], FloatMode);
/// A function that also reads and returns a bit of each lane.
pub type CarryFunction = fn(&mut Lanes, &[&Lanes; 3], u32, FloatMode) -> u32;
/// The same with sources or results of 64 bits.
pub type CarryWideFunction = fn(&mut WideLanes, &[&WideLanes; 3], u32, FloatMode) -> u32;

/// The type of a source or of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneType {
    /// 16 bits, no float.
    B16,
    /// 32 bits, no float.
    B32,
    /// 64 bits, no float.
    B64,
    /// A 16-bit float.
    F16,
    /// A brain float.
    Bf16,
    /// A 32-bit float.
    F32,
    /// A 64-bit float.
    F64,
}

impl LaneType {
    /// Its size.
    pub const fn bits(self) -> u32 {
        match self {
            Self::B16 | Self::F16 | Self::Bf16 => 16,
            Self::B32 | Self::F32 => 32,
            Self::B64 | Self::F64 => 64,
        }
    }

    /// Whether it is a float.
    pub const fn is_float(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    /// The sign bit of a float.
    pub const fn sign(self) -> u64 {
        1 << (self.bits() - 1)
    }
}

/// The computation of a [`VectorRow`].
#[derive(Debug, Clone, Copy)]
pub enum LaneFunction {
    /// Everything has at most 32 bits.
    Narrow(NarrowFunction),
    /// Something has 64 bits.
    Wide(WideFunction),
    /// A bit of each lane is read or written as well.
    Carry(CarryFunction),
    /// Both.
    CarryWide(CarryWideFunction),
}

/// A vector instruction that computes in each lane on its own.
#[derive(Debug, Clone, Copy)]
pub struct VectorRow {
    /// Its mnemonics.
    pub names: &'static [&'static str],
    /// Types of its sources.
    pub sources: [LaneType; 3],
    /// Type of its result.
    pub result: LaneType,
    /// The computation.
    pub function: LaneFunction,
    /// The computation with `clamp` if the result is no float; floats are clamped by the reader of the row.
    pub clamped: Option<LaneFunction>,
    /// Where the meaning is from.
    pub evidence: MeaningSource,
}

impl VectorRow {
    pub(crate) const fn new(
        names: &'static [&'static str],
        sources: [LaneType; 3],
        result: LaneType,
        function: LaneFunction,
        evidence: MeaningSource,
    ) -> Self {
        Self { names, sources, result, function, clamped: None, evidence }
    }

    /// Whether all sources and the result have 32 bits.
    #[must_use]
    pub const fn has_words(&self) -> bool {
        let [a, b, c] = self.sources;
        a.bits() == 32 && b.bits() == 32 && c.bits() == 32 && self.result.bits() == 32
    }

    pub(crate) const fn with_clamp(self, clamped: LaneFunction) -> Self {
        Self { clamped: Some(clamped), ..self }
    }
}

/// The bit of each lane.
pub const BITS: Lanes = {
    let mut bits = [0; LANES];
    let mut lane = 0;
    while lane < LANES {
        bits[lane] = 1 << lane;
        lane += 1;
    }
    bits
};

/// Whether the processor has vectors of eight words.
#[cfg(target_arch = "x86_64")]
#[inline]
pub(crate) fn has_long_vectors() -> bool {
    is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma")
}

/// Calls a function on lanes, which was compiled twice: for vectors of eight words where the processor has them. The
/// function must be `inline(always)`, so that the copy is compiled for them too.
macro_rules! on_lanes {
    ($function:ident, $lanes:ty, $out:expr, $sources:expr, $mode:expr) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma")]
            fn long(out: &mut $lanes, sources: &[&$lanes; 3], mode: crate::mode::FloatMode) {
                $function(out, sources, mode)
            }
            if crate::lanes::has_long_vectors() {
                #[allow(unsafe_code, reason = "a function for processors with AVX2 and FMA")]
                // SAFETY: the processor has both features.
                unsafe {
                    return long($out, $sources, $mode);
                }
            }
        }
        $function($out, $sources, $mode)
    }};
}

/// Puts the lanes of two registers together: the lower and the upper half of 64 bits.
pub fn join_lanes(low: &Lanes, high: &Lanes, out: &mut WideLanes) {
    #[inline(always)]
    fn all(low: &Lanes, high: &Lanes, out: &mut WideLanes) {
        for lane in 0..LANES {
            out[lane] = u64::from(low[lane]) | u64::from(high[lane]) << 32;
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn long(low: &Lanes, high: &Lanes, out: &mut WideLanes) {
            all(low, high, out);
        }
        if has_long_vectors() {
            #[allow(unsafe_code, reason = "a function for processors with AVX2 and FMA")]
            // SAFETY: the processor has both features.
            unsafe {
                return long(low, high, out);
            }
        }
    }
    all(low, high, out);
}

/// The halves of 64 bits as the lanes of two registers.
pub fn split_lanes(wide: &WideLanes, low: &mut Lanes, high: &mut Lanes) {
    #[inline(always)]
    fn all(wide: &WideLanes, low: &mut Lanes, high: &mut Lanes) {
        for lane in 0..LANES {
            low[lane] = wide[lane] as u32;
        }
        for lane in 0..LANES {
            high[lane] = (wide[lane] >> 32) as u32;
        }
    }
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn long(wide: &WideLanes, low: &mut Lanes, high: &mut Lanes) {
            all(wide, low, high);
        }
        if has_long_vectors() {
            #[allow(unsafe_code, reason = "a function for processors with AVX2 and FMA")]
            // SAFETY: the processor has both features.
            unsafe {
                return long(wide, low, high);
            }
        }
    }
    all(wide, low, high);
}

/// A [`NarrowFunction`] that computes an expression of `a`, `b` and `c` in each lane.
macro_rules! narrow {
    (|$a:pat_param, $b:pat_param, $c:pat_param, $mode:pat_param| $body:expr) => {
        crate::lanes::LaneFunction::Narrow(|out, sources, mode| {
            #[inline(always)]
            fn all(out: &mut crate::lanes::Lanes, sources: &[&crate::lanes::Lanes; 3], $mode: crate::mode::FloatMode) {
                for lane in 0..crate::lanes::LANES {
                    let ($a, $b, $c) = (sources[0][lane], sources[1][lane], sources[2][lane]);
                    out[lane] = $body;
                }
            }
            crate::lanes::on_lanes!(all, crate::lanes::Lanes, out, sources, mode)
        })
    };
}

/// The same with 64 bits.
macro_rules! wide {
    (|$a:pat_param, $b:pat_param, $c:pat_param, $mode:pat_param| $body:expr) => {
        crate::lanes::LaneFunction::Wide(|out, sources, mode| {
            #[inline(always)]
            fn all(
                out: &mut crate::lanes::WideLanes,
                sources: &[&crate::lanes::WideLanes; 3],
                $mode: crate::mode::FloatMode,
            ) {
                for lane in 0..crate::lanes::LANES {
                    let ($a, $b, $c) = (sources[0][lane], sources[1][lane], sources[2][lane]);
                    out[lane] = $body;
                }
            }
            crate::lanes::on_lanes!(all, crate::lanes::WideLanes, out, sources, mode)
        })
    };
}

/// A [`CarryFunction`] whose expression is a pair of result and bit; `$bit` is the bit that is read.
macro_rules! carry {
    (|$a:pat_param, $b:pat_param, $c:pat_param, $bit:pat_param, $mode:pat_param| $body:expr) => {
        crate::lanes::LaneFunction::Carry(|out, sources, bits, $mode| {
            let mut marks = [0; crate::lanes::LANES];
            for lane in 0..crate::lanes::LANES {
                let ($a, $b, $c) = (sources[0][lane], sources[1][lane], sources[2][lane]);
                let $bit = bits & crate::lanes::BITS[lane] != 0;
                let (value, set) = $body;
                out[lane] = value;
                marks[lane] = if set { crate::lanes::BITS[lane] } else { 0 };
            }
            marks.iter().fold(0, |result, mark| result | mark)
        })
    };
}

/// The same with 64 bits.
macro_rules! carry_wide {
    (|$a:pat_param, $b:pat_param, $c:pat_param, $bit:pat_param, $mode:pat_param| $body:expr) => {
        crate::lanes::LaneFunction::CarryWide(|out, sources, bits, $mode| {
            let mut marks = [0; crate::lanes::LANES];
            for lane in 0..crate::lanes::LANES {
                let ($a, $b, $c) = (sources[0][lane], sources[1][lane], sources[2][lane]);
                let $bit = bits & crate::lanes::BITS[lane] != 0;
                let (value, set) = $body;
                out[lane] = value;
                marks[lane] = if set { crate::lanes::BITS[lane] } else { 0 };
            }
            marks.iter().fold(0, |result, mark| result | mark)
        })
    };
}

pub(crate) use {carry, carry_wide, narrow, on_lanes, wide};
