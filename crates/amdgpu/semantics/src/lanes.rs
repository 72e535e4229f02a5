//! Functions over the lanes of (half) a wave.

use crate::mode::FloatMode;
use crate::source::MeaningSource;
use std::sync::atomic::{AtomicU8, Ordering};

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
    F16,
    Bf16,
    F32,
    F64,
}

impl LaneType {
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
    pub const fn sign_bit(self) -> u64 {
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
    pub names: &'static [&'static str],
    /// Types of its sources.
    pub sources: [LaneType; 3],
    /// Type of its result.
    pub result: LaneType,
    pub function: LaneFunction,
    /// The computation with `clamp` if the result is not a float; floats are clamped by the reader of the row.
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

/// Whether the processor has vectors of eight words. This is asked twice for each instruction, so the answer is one byte.
#[inline]
pub fn has_long_vectors() -> bool {
    const UNKNOWN: u8 = 0;
    const ABSENT: u8 = 1;
    const PRESENT: u8 = 2;
    static ANSWER: AtomicU8 = AtomicU8::new(UNKNOWN);
    #[cold]
    fn detect_long_vectors() -> bool {
        #[cfg(target_arch = "x86_64")]
        let is_present = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        #[cfg(not(target_arch = "x86_64"))]
        let is_present = false;
        ANSWER.store(if is_present { PRESENT } else { ABSENT }, Ordering::Relaxed);
        is_present
    }
    match ANSWER.load(Ordering::Relaxed) {
        PRESENT => true,
        UNKNOWN => detect_long_vectors(),
        _ => false,
    }
}

/// Calls a function with the variables of these names. It is compiled twice: for vectors of eight words where the processor has
/// them. The function must be `inline(always)`, so that the copy is compiled for them too.
#[macro_export]
macro_rules! on_long_vectors {
    ($function:ident($($argument:ident: $type:ty),*) $(-> $result:ty)?) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma")]
            fn long($($argument: $type),*) $(-> $result)? {
                $function($($argument),*)
            }
            if $crate::has_long_vectors() {
                #[allow(unsafe_code, reason = "a function for processors with AVX2 and FMA")]
                // SAFETY: the processor has both features.
                unsafe {
                    return long($($argument),*);
                }
            }
        }
        $function($($argument),*)
    }};
}

/// A pointer to a function, or to its copy for vectors of eight words where the processor has them: the choice is made once. The
/// function must be `inline(always)`.
#[macro_export]
macro_rules! for_this_processor {
    ($function:ident($($argument:ident: $type:ty),*) -> $result:ty) => {{
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,fma")]
            fn long($($argument: $type),*) -> $result {
                $function($($argument),*)
            }
            #[target_feature(enable = "avx2,fma")]
            fn pointer() -> fn($($type),*) -> $result {
                long
            }
            if $crate::has_long_vectors() {
                #[allow(unsafe_code, reason = "a function for processors with AVX2 and FMA")]
                // SAFETY: the processor has both features, now and whenever the pointer is called.
                unsafe {
                    return pointer();
                }
            }
        }
        $function
    }};
}

/// Puts the lanes of two registers together: the lower and the upper half of 64 bits.
#[inline(always)]
pub fn join_lanes(low: &Lanes, high: &Lanes, out: &mut WideLanes) {
    for lane in 0..LANES {
        out[lane] = u64::from(low[lane]) | u64::from(high[lane]) << 32;
    }
}

/// The lower halves of 64 bits as the lanes of a register.
#[inline(always)]
pub fn low_lanes(wide: &WideLanes) -> Lanes {
    std::array::from_fn(|lane| wide[lane] as u32)
}

#[inline(always)]
pub fn high_lanes(wide: &WideLanes) -> Lanes {
    std::array::from_fn(|lane| (wide[lane] >> 32) as u32)
}

/// The lanes for which a condition holds, as a mask.
#[inline(always)]
pub(crate) fn lanes_where(condition: impl Fn(usize) -> bool) -> u32 {
    let mut marks = [0; LANES];
    for lane in 0..LANES {
        marks[lane] = if condition(lane) { BITS[lane] } else { 0 };
    }
    marks.iter().fold(0, |mask, mark| mask | mark)
}

/// The numbers of the lanes of a mask.
pub(crate) fn lanes_of_mask(mask: u32) -> impl Iterator<Item = usize> {
    (0..LANES).filter(move |lane| mask & BITS[*lane] != 0)
}

/// MODE as a constant where it is the usual one: roundings and denormals do not matter, and loops without them
/// are compiled to vectors.
macro_rules! in_usual_mode {
    ($all:ident, $out:ident, $sources:ident, $mode:ident) => {
        if $mode.bits == $crate::FloatMode::PLAIN.bits {
            $all($out, $sources, $crate::FloatMode { bits: $crate::FloatMode::PLAIN.bits, ..$mode })
        } else {
            $all($out, $sources, $mode)
        }
    };
}

/// A function that computes an expression of `a`, `b` and `c` in each lane.
macro_rules! each_lane {
    ($lanes:ty, |$a:pat_param, $b:pat_param, $c:pat_param, _| $body:expr) => {
        |out, sources, _| {
            #[inline(always)]
            fn all(out: &mut $lanes, sources: &[&$lanes; 3]) {
                for lane in 0..$crate::LANES {
                    let ($a, $b, $c) = (sources[0][lane], sources[1][lane], sources[2][lane]);
                    out[lane] = $body;
                }
            }
            $crate::on_long_vectors!(all(out: &mut $lanes, sources: &[&$lanes; 3]))
        }
    };
    ($lanes:ty, |$a:pat_param, $b:pat_param, $c:pat_param, $mode:pat_param| $body:expr) => {
        |out, sources, mode| {
            #[inline(always)]
            fn all(out: &mut $lanes, sources: &[&$lanes; 3], $mode: $crate::FloatMode) {
                for lane in 0..$crate::LANES {
                    let ($a, $b, $c) = (sources[0][lane], sources[1][lane], sources[2][lane]);
                    out[lane] = $body;
                }
            }
            #[inline(always)]
            fn any_mode(out: &mut $lanes, sources: &[&$lanes; 3], mode: $crate::FloatMode) {
                crate::lanes::in_usual_mode!(all, out, sources, mode);
            }
            $crate::on_long_vectors!(any_mode(out: &mut $lanes, sources: &[&$lanes; 3], mode: $crate::FloatMode))
        }
    };
}

/// The same with a bit of each lane, which is read as `$bit`; the expression is a pair of result and bit.
macro_rules! each_lane_and_bit {
    ($lanes:ty, |$a:pat_param, $b:pat_param, $c:pat_param, $bit:pat_param, $mode:pat_param| $body:expr) => {
        |out, sources, bits, mode| {
            #[inline(always)]
            fn all(out: &mut $lanes, sources: &[&$lanes; 3], bits: u32, $mode: $crate::FloatMode) -> u32 {
                let mut marks = [0; $crate::LANES];
                for lane in 0..$crate::LANES {
                    let ($a, $b, $c) = (sources[0][lane], sources[1][lane], sources[2][lane]);
                    let $bit = bits & $crate::BITS[lane] != 0;
                    let (value, set) = $body;
                    out[lane] = value;
                    marks[lane] = if set { $crate::BITS[lane] } else { 0 };
                }
                marks.iter().fold(0, |result, mark| result | mark)
            }
            $crate::on_long_vectors!(
                all(out: &mut $lanes, sources: &[&$lanes; 3], bits: u32, mode: $crate::FloatMode) -> u32
            )
        }
    };
}

/// A [`NarrowFunction`] that computes an expression of `a`, `b` and `c` in each lane.
macro_rules! narrow {
    ($($closure:tt)*) => {
        crate::lanes::LaneFunction::Narrow(crate::lanes::each_lane!(crate::lanes::Lanes, $($closure)*))
    };
}

/// The same with 64 bits.
macro_rules! wide {
    ($($closure:tt)*) => {
        crate::lanes::LaneFunction::Wide(crate::lanes::each_lane!(crate::lanes::WideLanes, $($closure)*))
    };
}

/// A [`CarryFunction`] whose expression is a pair of result and bit; the fourth variable is the bit that is read.
macro_rules! carry {
    ($($closure:tt)*) => {
        crate::lanes::LaneFunction::Carry(crate::lanes::each_lane_and_bit!(crate::lanes::Lanes, $($closure)*))
    };
}

/// The same with 64 bits.
macro_rules! carry_wide {
    ($($closure:tt)*) => {
        crate::lanes::LaneFunction::CarryWide(crate::lanes::each_lane_and_bit!(crate::lanes::WideLanes, $($closure)*))
    };
}

pub(crate) use {carry, carry_wide, each_lane, each_lane_and_bit, in_usual_mode, narrow, wide};
