//! The list of exceptions, by name and with a reason: `left-out.txt`.
//!
//! Invariant: an entry that is not needed any more fails the exam, so the list contains only true statements.

use crate::verdict::Difference;

pub const LIST: &str = include_str!("../left-out.txt");

/// One line: kind, targets, name, reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Kind of difference.
    pub kind: String,
    /// Targets whose name begins with one of these; `*` for all.
    pub targets: Vec<String>,
    /// The mnemonic on either side, or file and line of a vector; a `*` at the end matches any suffix.
    pub name: String,
    pub reason: String,
}

/// Reads the list.
///
/// # Errors
/// The number of the line that does not have four parts.
pub fn read(text: &str) -> Result<Vec<Entry>, usize> {
    let lines = text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    lines.map(|(at, line)| entry(line).ok_or(at + 1)).collect()
}

fn entry(line: &str) -> Option<Entry> {
    let mut words = line.splitn(4, ' ');
    let (kind, targets, name, reason) = (
        next_entry_word(&mut words)?,
        next_entry_word(&mut words)?,
        next_entry_word(&mut words)?,
        next_entry_word(&mut words)?,
    );
    Some(Entry { kind, targets: targets.split(',').map(str::to_owned).collect(), name, reason })
}

fn next_entry_word(words: &mut std::str::SplitN<'_, char>) -> Option<String> {
    words.next().map(str::to_owned).filter(|word| !word.is_empty())
}

impl Entry {
    /// Whether it explains the difference.
    pub fn explains(&self, difference: &Difference) -> bool {
        let target = |name: &String| name == "*" || difference.setting.cpu == *name;
        let text = if difference.theirs.is_empty() { &difference.ours } else { &difference.theirs };
        let mnemonic = text.split(' ').next().unwrap_or_default();
        self.kind == difference.kind.as_str()
            && self.targets.iter().any(target)
            && (matches(&self.name, mnemonic) || matches(&self.name, &difference.source))
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == name, |head| name.starts_with(head))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Word;
    use crate::setting::Setting;
    use crate::verdict::Kind;

    #[test]
    fn the_committed_list_can_be_read() {
        assert!(read(LIST).is_ok());
    }

    #[test]
    fn an_entry_explains_its_own_kind_target_and_name_only() {
        let entry = &read("# list\ntext gfx900,gfx906 v_a_* a reason of words\n").unwrap()[0];
        let difference = |cpu: &str, kind, theirs: &str| Difference {
            setting: Setting::new(cpu),
            word: Word::new(&[0; 4]),
            kind,
            theirs: theirs.into(),
            ours: "v_x".into(),
            source: "x.txt:1".into(),
        };
        assert!(entry.explains(&difference("gfx906", Kind::Text, "v_a_b32 v0")));
        assert!(!entry.explains(&difference("gfx90a", Kind::Text, "v_a_b32 v0")));
        assert!(!entry.explains(&difference("gfx906", Kind::Length, "v_a_b32 v0")));
        assert!(!entry.explains(&difference("gfx906", Kind::Text, "v_b_b32 v0")));
        assert_eq!(read("too few words"), Err(1));
    }
}
