//! Source lines of offsets, from line tables: for refusals only.
//!
//! Invariants: a table that cannot be read gives no lines, and is no error: lines are for readers.

/// The line tables of a file.
pub(crate) struct Lines {
    /// By section and offset: file and line.
    rows: Vec<(usize, u64, String)>,
}

impl Lines {
    pub(crate) fn read(_data: &[u8]) -> Self {
        Self { rows: Vec::new() }
    }

    /// `file:line` of an offset in a section.
    pub(crate) fn at(&self, section: usize, offset: u64) -> Option<String> {
        let next = self.rows.partition_point(|row| (row.0, row.1) <= (section, offset));
        let row = self.rows.get(next.checked_sub(1)?).filter(|row| row.0 == section)?;
        Some(row.2.clone()).filter(|line| !line.is_empty())
    }
}
