//! A part of a page that a task writes, between two comments.

use crate::outcome::{During, Outcome, fail};
use crate::paths;
use std::fs;

/// Replaces what is between the comments.
pub(super) fn replace(page: &str, begin: &str, end: &str, text: &str) -> Outcome {
    let page = paths::workspace().join(page);
    let old = fs::read_to_string(&page).during("read", &page)?;
    let parts = old.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
    let Some((before, after)) = parts else {
        return fail(format!("{} has no {begin} with {end}", page.display()));
    };
    fs::write(&page, format!("{before}{begin}\n{text}{end}{after}")).during("write", &page)?;
    println!("The table is in {}", page.display());
    Ok(())
}
