//! The expected results: a table of text, made from the emulator.
//!
//! Each row has the results of one probe on the GPUs of one set, in which all results are the same:
//!
//! ```text
//! set a gfx1030 gfx1031
//! v_add_u32 a 0:0000000100000002… d:89abcdef…
//! ```
//!
//! The columns are the words of the results of the first [`STATED`] cases, 8 digits each; those that are 0 in all cases are left
//! out. `d` has a digest of each further block of as many cases. Probes with a tolerance have none, because a digest has none.

use crate::error::ConfirmError;
use crate::inputs::{CASES, RESULT_WORDS, STATED};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// The table that belongs to this build.
pub const EXPECTED_TEXT: &str = include_str!("../expected.txt");

/// Words of the results of a block of cases.
const BLOCK_WORDS: usize = STATED * RESULT_WORDS;
/// Blocks of which the table has a digest.
const DIGESTS: usize = CASES / STATED - 1;

/// The results of a probe on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpectedResults {
    /// The words of the stated cases, case by case.
    pub stated: Vec<u32>,
    /// Digests of the further blocks; empty for probes with a tolerance.
    pub digests: Vec<u32>,
}

impl ExpectedResults {
    /// The row of all results of a probe, case by case.
    pub fn from_words(words: &[u32], has_digests: bool) -> Self {
        let stated = words.iter().take(BLOCK_WORDS).copied().collect();
        let blocks = words.chunks(BLOCK_WORDS).skip(1);
        Self { stated, digests: if has_digests { blocks.map(digest_words).collect() } else { Vec::new() } }
    }
}

/// A digest of words (FNV-1a): it need not resist anyone.
pub fn digest_words(words: &[u32]) -> u32 {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    bytes.fold(0x811c_9dc5, |digest, byte| (digest ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}

/// A probe on a GPU.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExpectedKey {
    pub probe: String,
    pub gpu: String,
}

/// The expected results of all probes.
#[derive(Debug, Default)]
pub struct ExpectedTable {
    rows: BTreeMap<ExpectedKey, ExpectedResults>,
}

impl ExpectedTable {
    /// Adds the results of a probe on a GPU.
    pub fn insert(&mut self, probe: &str, gpu: &str, results: ExpectedResults) {
        self.rows.insert(ExpectedKey { probe: probe.to_owned(), gpu: gpu.to_owned() }, results);
    }

    pub fn find(&self, probe: &str, gpu: &str) -> Option<&ExpectedResults> {
        self.rows.get(&ExpectedKey { probe: probe.to_owned(), gpu: gpu.to_owned() })
    }

    /// Whether it has any results for a GPU.
    pub fn has_gpu(&self, gpu: &str) -> bool {
        self.rows.keys().any(|key| key.gpu == gpu)
    }

    /// Reads a table from its text.
    ///
    /// # Errors
    /// [`ConfirmError::Table`] with the line that cannot be read.
    pub fn parse(text: &str) -> Result<Self, ConfirmError> {
        let mut table = Self::default();
        let mut sets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (number, line) in text.lines().enumerate() {
            let mut words = line.split_whitespace();
            let (Some(first), Some(second)) = (words.next(), words.next()) else { continue };
            match first {
                "#" => {}
                "set" => drop(sets.insert(second, words.collect())),
                probe => {
                    let results =
                        parse_columns(words).map_err(|reason| ConfirmError::Table { line: number + 1, reason })?;
                    for gpu in sets.get(second).into_iter().flatten() {
                        table.insert(probe, gpu, results.clone());
                    }
                }
            }
        }
        Ok(table)
    }

    /// The table as text.
    pub fn to_text(&self) -> String {
        let mut groups: BTreeMap<&str, BTreeMap<&ExpectedResults, BTreeSet<&str>>> = BTreeMap::new();
        for (ExpectedKey { probe, gpu }, results) in &self.rows {
            groups.entry(probe).or_default().entry(results).or_default().insert(gpu);
        }
        let sets: BTreeSet<&BTreeSet<&str>> = groups.values().flat_map(BTreeMap::values).collect();
        let names: BTreeMap<_, String> = sets.into_iter().zip(0..).map(|(set, n)| (set, format!("s{n}"))).collect();
        let mut text = HEAD.to_owned();
        for (set, name) in &names {
            let gpus: Vec<&str> = set.iter().copied().collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "set {name} {}", gpus.join(" "));
        }
        for (probe, variants) in &groups {
            for (results, set) in variants {
                let _ = writeln!(text, "{probe} {}{}", names[set], columns_text(results));
            }
        }
        text
    }
}

const HEAD: &str = "# The expected results of `hotswap confirm`, made from the emulator by a test: HOTSWAP_BLESS=1 cargo test -p hotswap-confirm
# expected. The form is described in src/expected.rs. A line that changes says that the emulator computes something else.
";

fn columns_text(results: &ExpectedResults) -> String {
    let mut text = String::new();
    for column in 0..RESULT_WORDS {
        let words = results.stated.iter().skip(column).step_by(RESULT_WORDS);
        if words.clone().any(|word| *word != 0) {
            let _ = write!(text, " {column}:");
            text.extend(words.map(|word| format!("{word:08x}")));
        }
    }
    if !results.digests.is_empty() {
        text += " d:";
        text.extend(results.digests.iter().map(|digest| format!("{digest:08x}")));
    }
    text
}

fn parse_columns<'w>(columns: impl Iterator<Item = &'w str>) -> Result<ExpectedResults, String> {
    let mut results = ExpectedResults { stated: vec![0; BLOCK_WORDS], digests: Vec::new() };
    for column in columns {
        let (name, digits) = column.split_once(':').ok_or_else(|| format!("`{column}` is not a column"))?;
        let words = parse_words(digits)?;
        match name {
            "d" if words.len() == DIGESTS => results.digests = words,
            "0" | "1" | "2" | "3" if words.len() == STATED => {
                let first = usize::from(name.as_bytes()[0] - b'0');
                let places = results.stated.iter_mut().skip(first).step_by(RESULT_WORDS);
                places.zip(words).for_each(|(place, word)| *place = word);
            }
            _ => return Err(format!("column `{name}` has {} words", words.len())),
        }
    }
    Ok(results)
}

/// Words of 8 digits each.
pub fn parse_words(digits: &str) -> Result<Vec<u32>, String> {
    let chunks = digits.as_bytes().chunks(8);
    chunks.map(parse_word).collect::<Option<_>>().ok_or_else(|| "not a hexadecimal number".to_owned())
}

fn parse_word(digits: &[u8]) -> Option<u32> {
    std::str::from_utf8(digits).ok().and_then(|text| u32::from_str_radix(text, 16).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_read_as_it_was_written() {
        let mut table = ExpectedTable::default();
        let mut words = vec![0; CASES * RESULT_WORDS];
        (words[1], words[BLOCK_WORDS + 3]) = (7, 9);
        let results = ExpectedResults::from_words(&words, true);
        table.insert("v_one", "gfx1030", results.clone());
        table.insert("v_one", "gfx1031", results.clone());
        table.insert("v_one", "gfx90a", ExpectedResults::from_words(&words, false));
        let text = table.to_text();
        let read = ExpectedTable::parse(&text).unwrap();
        assert_eq!(read.rows, table.rows);
        assert_eq!(read.to_text(), text);
        assert_eq!(text.lines().filter(|line| line.starts_with("v_one")).count(), 2);
        assert!(read.has_gpu("gfx90a") && !read.has_gpu("gfx1100"));
    }

    #[test]
    fn a_damaged_table_is_refused() {
        for (text, line) in [("set a gfx1030\nv_one a 0:zz\n", 2), ("v_one a 7:00000000\n", 1), ("\nv_one a x\n", 2)] {
            assert!(
                matches!(ExpectedTable::parse(text), Err(ConfirmError::Table { line: at, .. }) if at == line),
                "{text}"
            );
        }
    }
}
