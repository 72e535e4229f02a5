//! One line of the record, and the comparison of two records.

use hotswap_targets::find_processor;

/// A kernel that was started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Number of the device.
    pub device: usize,
    pub target: String,
    /// `e_flags` of the code object.
    pub flags: u32,
    /// Hash of the code object.
    pub object: u64,
    /// The kernel ends with its first instruction: it was compiled for no GPU, or the source lacks code for this one.
    pub is_empty: bool,
    /// Work-items.
    pub grid: [u32; 3],
    /// Work-items of a work-group.
    pub group: [u32; 3],
    /// The whole name.
    pub kernel: String,
}

impl Dispatch {
    /// Reads a line of `standin/record.c`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.splitn(8, ' ');
        let mut next = || words.next();
        Some(Self {
            device: next()?.parse().ok()?,
            target: next()?.to_owned(),
            flags: u32::from_str_radix(next()?, 16).ok()?,
            object: u64::from_str_radix(next()?, 16).ok()?,
            is_empty: next()? == "1",
            grid: triple(next()?)?,
            group: triple(next()?)?,
            kernel: next().filter(|name| !name.is_empty())?.to_owned(),
        })
    }

    /// Whether it is one of HIP's own, which copy and fill memory.
    pub(crate) fn is_of_hip(&self) -> bool {
        self.kernel.starts_with("__amd_rocclr_")
    }

    /// Whether the code object is for the device's processor.
    pub fn is_for_device(&self) -> bool {
        let processor = self.target.split(':').next().and_then(find_processor);
        processor.is_some_and(|processor| u32::from(processor.mach) == self.flags & 0xff)
    }
}

fn triple(text: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = text.split(',').map(|word| word.parse().ok()).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// The first difference between two runs in kernels, grids and work-groups; code objects and devices differ as they must.
/// Two runs without any dispatch differ: nothing was compared.
pub fn difference(one: &[Dispatch], other: &[Dispatch]) -> Option<String> {
    if one.is_empty() && other.is_empty() {
        return Some("neither run has a dispatch".to_owned());
    }
    let pairs = one.iter().zip(other).enumerate();
    if let Some((number, (one, other))) = pairs.into_iter().find(|(_, pair)| dispatch_pair_differs(pair)) {
        return Some(format!("dispatch {number}: {one:?} and {other:?}"));
    }
    (one.len() != other.len()).then(|| format!("{} and {} dispatches", one.len(), other.len()))
}

fn dispatch_pair_differs((one, other): &(&Dispatch, &Dispatch)) -> bool {
    (&one.kernel, one.grid, one.group, one.is_empty) != (&other.kernel, other.grid, other.group, other.is_empty)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_dispatch() {
        let name = "k".repeat(3000);
        let line = format!("1 gfx90a:sramecc+:xnack- 53f 00000000deadbeef 1 64,2,3 64,1,1 {name} x");
        let read = Dispatch::parse(&line).unwrap();
        assert_eq!((read.device, read.flags, read.object, read.is_empty), (1, 0x53f, 0xdead_beef, true));
        assert_eq!((read.grid, read.group, read.kernel.len()), ([64, 2, 3], [64, 1, 1], 3002));
        assert!(read.is_for_device() && !Dispatch { target: "gfx908".into(), ..read }.is_for_device());
        for damaged in
            ["", "1 gfx1030 36 0 0 1,1,1 1,1,1", "1 gfx1030 36 0 0 1,1 1,1,1 k", "x gfx1030 36 0 0 1,1,1 1,1,1 k"]
        {
            assert_eq!(Dispatch::parse(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn runs_are_compared_by_kernel_and_grid() {
        let one = Dispatch::parse("0 gfx1030 36 1 0 64,1,1 64,1,1 k").unwrap();
        let same = Dispatch { device: 1, flags: 0x37, object: 2, target: "gfx1031".into(), ..one.clone() };
        let list = |dispatch: &Dispatch| vec![dispatch.clone()];
        assert_eq!(difference(&list(&one), &list(&same)), None);
        for other in [
            Dispatch { kernel: "l".into(), ..one.clone() },
            Dispatch { grid: [128, 1, 1], ..one.clone() },
            Dispatch { group: [32, 1, 1], ..one.clone() },
            Dispatch { is_empty: true, ..one.clone() },
        ] {
            assert!(difference(&list(&one), &list(&other)).unwrap().starts_with("dispatch 0"));
        }
        assert!(difference(&list(&one), &[]).unwrap().contains("1 and 0"));
        assert!(difference(&[], &[]).is_some());
    }
}
