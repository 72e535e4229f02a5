//! Parses the output of `llvm-profdata show --all-functions --counts`.

use std::collections::BTreeMap;

/// Counters of each function: the first one is that of its entry.
pub type Counts = BTreeMap<String, Vec<u64>>;

/// A profile as shown by LLVM.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile {
    /// `Front-end` or `IR`, with the rest of the line.
    pub level: String,
    pub counts: Counts,
}

pub(crate) fn parse(text: &str) -> Profile {
    let mut profile = Profile { level: String::new(), counts: BTreeMap::new() };
    let mut name = String::new();
    for line in text.lines() {
        let (indent, word) = (line.len() - line.trim_start().len(), line.trim());
        if let Some(level) = word.strip_prefix("Instrumentation level: ") {
            level.clone_into(&mut profile.level);
        } else if let Some(count) = word.strip_prefix("Function count: ") {
            profile.counts.entry(name.clone()).or_default().insert(0, count.parse().expect("a count"));
        } else if let Some(list) = word.strip_prefix("Block counts: [") {
            let counts = list.trim_end_matches(']').split(", ").filter(|count| !count.is_empty());
            let counts = counts.map(|count| count.parse::<u64>().expect("a count"));
            profile.counts.entry(name.clone()).or_default().extend(counts);
        } else if indent == 2 && word.ends_with(':') {
            word.trim_end_matches(':').clone_into(&mut name);
        }
    }
    profile
}
