//! How much of something was executed.

use crate::export::Figure;

/// How much of something was executed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ratio {
    /// Number of those that were executed.
    pub covered: u64,
    /// The number of all, covered or not.
    pub count: u64,
}

impl Ratio {
    /// In percent; 100 if there is nothing to execute.
    #[must_use]
    pub fn percent(self) -> f64 {
        if self.count == 0 { 100.0 } else { 100.0 * self.covered as f64 / self.count as f64 }
    }

    pub(crate) fn add(&mut self, other: Self) {
        self.covered += other.covered;
        self.count += other.count;
    }

    pub(crate) fn of(all: impl IntoIterator<Item = bool>) -> Self {
        let mut ratio = Self::default();
        for is_covered in all {
            ratio.add(Self { covered: u64::from(is_covered), count: 1 });
        }
        ratio
    }
}

impl From<Figure> for Ratio {
    fn from(figure: Figure) -> Self {
        Self { covered: figure.covered, count: figure.count }
    }
}
