//! Text out of files, for terminals and messages.

/// The text with control characters escaped, which could move a terminal's cursor.
#[must_use]
pub fn escape_control(text: &str) -> String {
    text.chars().flat_map(|c| if c.is_control() { c.escape_default().collect() } else { vec![c] }).collect()
}
