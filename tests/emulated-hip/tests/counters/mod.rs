//! The rows of the profile matrix, and how one is built, run and reported.

mod row_bench;

pub(crate) use row_bench::RowBench;
use std::fmt;

/// A circumstance and its values.
pub(crate) struct Axis {
    pub(crate) name: &'static str,
    pub(crate) values: &'static [&'static str],
}

#[rustfmt::skip]
pub(crate) const AXES: [Axis; 8] = [
    Axis { name: "code", values: &["native", "generic", "both", "xnack"] },
    Axis { name: "device code", values: &["plain", "rdc"] },
    Axis { name: "names", values: &["same", "apart"] },
    Axis { name: "programs", values: &["one", "two"] },
    Axis { name: "module", values: &["none", "file", "data", "freed", "hiprtc"] },
    Axis { name: "fork", values: &["none", "before", "after"] },
    Axis { name: "link", values: &["sources", "hip-link", "archive", "path", "library", "unnamed"] },
    Axis { name: "pattern", values: &["default", "p.profraw", "%m.profraw", "%4m.profraw", "%p.profraw", "%b.profraw", "gfx1030.profraw"] },
];

/// One value of each axis.
#[derive(Clone)]
pub(crate) struct MatrixRow {
    pub(crate) number: usize,
    pub(crate) values: [&'static str; AXES.len()],
}

impl MatrixRow {
    /// The value of an axis.
    ///
    /// # Panics
    /// If there is no such axis.
    pub(crate) fn get(&self, name: &str) -> &'static str {
        self.values[AXES.iter().position(|axis| axis.name == name).expect("the axis is in the table")]
    }
}

impl fmt::Display for MatrixRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "row {} ({})", self.number, self.values.join(", "))
    }
}

/// A value of an axis, by their positions.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct AxisValue {
    axis: usize,
    value: usize,
}

/// Two values that must meet in a row.
#[derive(Clone, Copy, PartialEq, Eq)]
struct ValuePair(AxisValue, AxisValue);

/// Rows in which each two values of two axes meet: each row begins with a pair that is missing, and gets of each other axis the
/// value that brings most further ones.
pub(crate) fn pairwise_rows() -> Vec<MatrixRow> {
    let mut missing = all_pairs();
    let mut rows = Vec::new();
    while let Some(first) = missing.first().copied() {
        let mut chosen = vec![first.0, first.1];
        for axis in (0..AXES.len()).filter(|axis| *axis != first.0.axis && *axis != first.1.axis) {
            // The start differs from row to row, so that values without anything missing take turns.
            let count = AXES[axis].values.len();
            let candidates = (0..count).map(|step| AxisValue { axis, value: (rows.len() + step) % count });
            let best = candidates.rev().max_by_key(|one| missing_pairs(&missing, &chosen, *one));
            chosen.extend(best);
        }
        chosen.sort_unstable();
        missing.retain(|pair| !(chosen.contains(&pair.0) && chosen.contains(&pair.1)));
        let values = std::array::from_fn(|axis| AXES[axis].values[chosen[axis].value]);
        rows.push(MatrixRow { number: rows.len(), values });
    }
    rows
}

fn missing_pairs(missing: &[ValuePair], chosen: &[AxisValue], one: AxisValue) -> usize {
    let meets =
        |pair: &&ValuePair| (pair.0 == one && chosen.contains(&pair.1)) || (pair.1 == one && chosen.contains(&pair.0));
    missing.iter().filter(meets).count()
}

/// Pairs of values of two axes, those of axes with many values first.
fn all_pairs() -> Vec<ValuePair> {
    let values: Vec<AxisValue> = AXES
        .iter()
        .enumerate()
        .flat_map(|(axis, found)| (0..found.values.len()).map(move |value| AxisValue { axis, value }))
        .collect();
    let mut pairs = Vec::new();
    for one in &values {
        pairs.extend(values.iter().filter(|other| other.axis > one.axis).map(|other| ValuePair(*one, *other)));
    }
    pairs.sort_by_key(|pair| std::cmp::Reverse(AXES[pair.0.axis].values.len() * AXES[pair.1.axis].values.len()));
    pairs
}
