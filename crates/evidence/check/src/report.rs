//! The result of a comparison: what was executed, and the first difference.

use std::fmt::{self, Write};

/// The result for one kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KernelResult {
    pub kernel: String,
    /// Changed instructions that it reaches.
    pub sites: usize,
    /// States on which they were executed, all in all.
    pub states: u64,
    /// Launches of the whole kernel that both code objects brought to an end, the same one.
    pub launches: u64,
    /// Launches that say nothing: the budget was exhausted.
    pub unfinished: u64,
    /// Launches that say nothing: what the kernel before writes depends on the order of its waves.
    pub unordered: u64,
    /// Launches that say nothing: lanes of the kernel before store different values to one place by one instruction.
    pub meeting: u64,
    pub difference: Option<Difference>,
    /// Reasons why parts of it were not compared.
    pub unchecked: Vec<String>,
}

/// The result for two code objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The processors: of the file before and of the one after.
    pub processors: [String; 2],
    /// Every kernel that was asked for.
    pub kernels: Vec<KernelResult>,
    /// Assumptions of the certificate.
    pub assumes: Vec<String>,
    /// Sites by family: their number, and the states on which they were executed.
    pub families: Vec<FamilyStates>,
}

/// The executed sites of one family.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FamilyStates {
    pub name: String,
    /// Different sites: equal instructions with equal replacements count once.
    pub sites: usize,
    pub states: u64,
}

/// A difference between the two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    /// The instruction or the store, in both files.
    pub places: [CodePlace; 2],
    /// Families that changed the instruction.
    pub families: Vec<String>,
    pub what: String,
    /// The state, or the launch.
    pub state: String,
    /// Registers and words: before, and after it in both.
    pub values: Vec<DifferingValue>,
}

/// A place in the code of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodePlace {
    /// Address in the file.
    pub address: u64,
    /// Mnemonic of the instruction there.
    pub mnemonic: String,
    /// `file:line`, where the file has line tables.
    pub line: Option<String>,
}

/// A value of the state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DifferingValue {
    /// Register and lane, or address.
    pub name: String,
    /// Its value at the start, which both sides share.
    pub start: u64,
    /// At the end, by both.
    pub end: [u64; 2],
}

impl KernelResult {
    /// Whether it was executed, and nothing differs.
    #[must_use]
    pub fn is_equal(&self) -> bool {
        self.difference.is_none() && self.unchecked.is_empty() && (self.launches > 0 || self.states > 0)
    }
}

impl fmt::Display for CodePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::default() {
            return f.write_str("no place");
        }
        write!(f, "{:#x} {}", self.address, self.mnemonic)?;
        self.line.as_ref().map_or(Ok(()), |line| write!(f, " ({line})"))
    }
}

impl Difference {
    /// The difference in one line.
    #[must_use]
    pub fn summary(&self) -> String {
        let [before, after] = &self.places;
        let families =
            if self.families.is_empty() { String::new() } else { format!(" [{}]", self.families.join(", ")) };
        format!("{before}, in the other file {after}{families}: {}", self.what)
    }

    /// The states, several lines.
    #[must_use]
    pub fn state_table(&self) -> String {
        let mut text = format!("  {}\n", self.state);
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {:<20} {:>18} {:>18} {:>18}", "", "at the start", "before", "after");
        for DifferingValue { name, start, end: [before, after] } in &self.values {
            let mark = if before == after { "" } else { "  differs" };
            let _ = writeln!(text, "  {name:<20} {start:>#18x} {before:>#18x} {after:>#18x}{mark}");
        }
        text
    }
}
