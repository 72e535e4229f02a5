//! The attributes of shared virtual memory: what a program has stated about ranges of addresses.
//!
//! Invariants: ranges begin and end at pages and do not overlap. Pages that no range has hold the attributes of [`RangeAttributes::new`].
//! They are answers to questions and do not change what kernels do, with one exception: access that is stated registers memory of the
//! host. Where memory is does not matter here, and access that is denied is not taken away.

use super::mapping::PAGE;
use crate::abi::{AgentHandle, SvmAttribute};
use crate::agent_handles::HOST;
use crate::status::HsaStatus;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

const GLOBAL_FLAG: u64 = 0;
const GRANULARITY: u64 = 3;
const PREFERRED_LOCATION: u64 = 4;
const PREFETCH_LOCATION: u64 = 5;
/// The last attribute with a value of its own; the others are about agents.
const LAST_VALUE: u64 = 7;
pub(super) const ACCESSIBLE: u64 = 0x200;
pub(super) const ACCESSIBLE_IN_PLACE: u64 = 0x201;
const NO_ACCESS: u64 = 0x202;
const ACCESS_QUERY: u64 = 0x203;
/// `HSA_AMD_SVM_GLOBAL_FLAG_INDETERMINATE`: the answer where pages differ.
const INDETERMINATE: u64 = 2;
/// The kernel driver migrates 2 MiB at once: the logarithm of pages.
const FIRST_GRANULARITY: u64 = 9;

/// The statements about the pages of a range.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RangeAttributes {
    /// By the attribute's number.
    values: [u64; LAST_VALUE as usize + 1],
    /// `ACCESSIBLE` and its kin, by the agent's handle.
    access: BTreeMap<u64, u64>,
}

struct AttributedRange {
    end: usize,
    attributes: RangeAttributes,
}

type RangeMap = BTreeMap<usize, AttributedRange>;

static RANGES: Mutex<RangeMap> = Mutex::new(BTreeMap::new());

fn lock_ranges() -> MutexGuard<'static, RangeMap> {
    // The map is whole between its steps.
    RANGES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RangeAttributes {
    /// Those of memory about which nothing was stated: fine-grained, the host's.
    fn new() -> Self {
        let mut values = [0; LAST_VALUE as usize + 1];
        values[GRANULARITY as usize] = FIRST_GRANULARITY;
        Self { values, access: BTreeMap::new() }
    }

    fn state(&mut self, SvmAttribute { attribute, value }: SvmAttribute) {
        match attribute {
            ACCESSIBLE..=NO_ACCESS => drop(self.access.insert(value, attribute)),
            _ => self.values[attribute as usize] = value,
        }
    }

    fn access_of(&self, agent: u64) -> u64 {
        let first = if agent == HOST.0 { ACCESSIBLE } else { NO_ACCESS };
        self.access.get(&agent).copied().unwrap_or(first)
    }

    fn value(&self, attribute: u64) -> u64 {
        self.values[attribute as usize]
    }
}

/// Whether a program may state the attribute.
pub(super) fn may_be_stated(attribute: u64) -> bool {
    matches!(attribute, 0..=LAST_VALUE | ACCESSIBLE..=NO_ACCESS) && attribute != PREFETCH_LOCATION
}

/// Whether the attribute's value is the handle of an agent. A preferred location may be none.
pub(super) fn names_agent(stated: SvmAttribute) -> bool {
    match stated.attribute {
        ACCESSIBLE..=NO_ACCESS => true,
        attribute => attribute == PREFERRED_LOCATION && stated.value != 0,
    }
}

/// Stores attributes of the pages that have these bytes.
pub(super) fn store_attributes(start: usize, size: usize, attributes: &[SvmAttribute]) -> Result<(), HsaStatus> {
    let pages = pages_of_bytes(start, size)?;
    let mut map = lock_ranges();
    split_range(&mut map, pages.start);
    split_range(&mut map, pages.end);
    for gap in gaps(&map, &pages) {
        map.insert(gap.start, AttributedRange { end: gap.end, attributes: RangeAttributes::new() });
    }
    for (_, range) in map.range_mut(pages) {
        attributes.iter().for_each(|attribute| range.attributes.state(*attribute));
    }
    Ok(())
}

/// The answer to a question about all pages that have these bytes.
pub(super) fn answer_attribute(start: usize, size: usize, question: SvmAttribute) -> Result<SvmAttribute, HsaStatus> {
    let SvmAttribute { attribute, value } = question;
    let pages = pages_of_bytes(start, size)?;
    let parts = attributes_of_pages(&lock_ranges(), &pages);
    match attribute {
        ACCESS_QUERY => {
            let access = common_value(parts.iter().map(|part| part.access_of(value)));
            Ok(SvmAttribute { attribute: access.unwrap_or(NO_ACCESS), value })
        }
        0..=LAST_VALUE => {
            let values = parts.iter().map(|part| part.value(attribute));
            let lowest = values.clone().min().unwrap_or_default();
            let value = match (attribute, common_value(values)) {
                (_, Some(value)) => value,
                (GLOBAL_FLAG, None) => INDETERMINATE,
                (PREFERRED_LOCATION | PREFETCH_LOCATION, None) => 0,
                // A flag is set if all pages have it.
                (_, None) => lowest,
            };
            Ok(SvmAttribute { attribute, value })
        }
        _ => Err(HsaStatus::INVALID_ARGUMENT),
    }
}

/// Stores the agent to which a program has asked memory to move.
pub(crate) fn store_prefetch_location(start: usize, size: usize, agent: AgentHandle) -> Result<(), HsaStatus> {
    store_attributes(start, size, &[SvmAttribute { attribute: PREFETCH_LOCATION, value: agent.0 }])
}

/// Forgets what was stated about addresses that have become another allocation's.
pub(super) fn forget_attributes(start: usize, size: usize) {
    let Ok(pages) = pages_of_bytes(start, size) else { return };
    let mut map = lock_ranges();
    split_range(&mut map, pages.start);
    split_range(&mut map, pages.end);
    map.retain(|start, _| !pages.contains(start));
}

fn pages_of_bytes(start: usize, size: usize) -> Result<Range<usize>, HsaStatus> {
    let end = start.checked_add(size).and_then(|end| end.checked_next_multiple_of(PAGE));
    match end {
        Some(end) if start != 0 && size != 0 => Ok(start & !(PAGE - 1)..end),
        _ => Err(HsaStatus::INVALID_ARGUMENT),
    }
}

/// Makes the address a border of ranges.
fn split_range(map: &mut RangeMap, at: usize) {
    let Some((_, below)) = map.range_mut(..at).next_back().filter(|(_, range)| range.end > at) else { return };
    let upper = AttributedRange { end: below.end, attributes: below.attributes.clone() };
    below.end = at;
    map.insert(at, upper);
}

/// The parts of the pages that no range has; no range crosses their borders.
fn gaps(map: &RangeMap, pages: &Range<usize>) -> Vec<Range<usize>> {
    let (mut found, mut at) = (Vec::new(), pages.start);
    for (start, range) in map.range(pages.clone()) {
        if at < *start {
            found.push(at..*start);
        }
        at = range.end;
    }
    if at < pages.end {
        found.push(at..pages.end);
    }
    found
}

/// The attributes of all ranges with some of the pages, and those of pages that no range has.
fn attributes_of_pages(map: &RangeMap, pages: &Range<usize>) -> Vec<RangeAttributes> {
    let (mut found, mut at) = (Vec::new(), pages.start);
    let below = map.range(..pages.start).next_back().filter(|(_, range)| range.end > pages.start);
    for (start, range) in below.into_iter().chain(map.range(pages.clone())) {
        if at < *start {
            found.push(RangeAttributes::new());
        }
        found.push(range.attributes.clone());
        at = range.end;
    }
    if at < pages.end {
        found.push(RangeAttributes::new());
    }
    found
}

/// The value that all have; `None` where they differ.
fn common_value(mut values: impl Iterator<Item = u64>) -> Option<u64> {
    let first = values.next()?;
    values.all(|value| value == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    const READ_MOSTLY: u64 = 6;
    const GPU: u64 = 0x1000;

    /// Addresses of this test alone: nothing is mapped there, and attributes do not need it.
    fn ask(start: usize, pages: usize, attribute: u64, value: u64) -> SvmAttribute {
        answer_attribute(start, pages * PAGE, SvmAttribute { attribute, value }).unwrap()
    }

    fn store(start: usize, pages: usize, attribute: u64, value: u64) {
        store_attributes(start, pages * PAGE, &[SvmAttribute { attribute, value }]).unwrap();
    }

    #[test]
    fn attributes_are_those_that_were_stated_last() {
        let base = 0x7000_0000_0000;
        assert_eq!(ask(base, 8, GRANULARITY, 0).value, FIRST_GRANULARITY);
        store(base, 8, READ_MOSTLY, 1);
        store(base + 2 * PAGE, 2, PREFERRED_LOCATION, GPU);
        store(base + 3 * PAGE, 5, READ_MOSTLY, 0);
        assert_eq!(ask(base, 3, READ_MOSTLY, 0).value, 1);
        assert_eq!(ask(base, 8, READ_MOSTLY, 0).value, 0);
        assert_eq!(ask(base + 2 * PAGE, 2, PREFERRED_LOCATION, 0).value, GPU);
        // Pages that differ have no location in common.
        assert_eq!(ask(base, 8, PREFERRED_LOCATION, 0).value, 0);
        store(base + 6 * PAGE, 1, GLOBAL_FLAG, 1);
        assert_eq!(ask(base + 5 * PAGE, 3, GLOBAL_FLAG, 0).value, INDETERMINATE);
        // A byte in the middle is a page.
        store_attributes(base + PAGE + 7, 1, &[SvmAttribute { attribute: READ_MOSTLY, value: 0 }]).unwrap();
        assert_eq!(ask(base, 1, READ_MOSTLY, 0).value, 1);
        assert_eq!(ask(base + PAGE, 1, READ_MOSTLY, 0).value, 0);
        assert_eq!(ask(base + 2 * PAGE, 1, READ_MOSTLY, 0).value, 1);
    }

    #[test]
    fn access_is_asked_for_each_agent() {
        let base = 0x7100_0000_0000;
        assert_eq!(ask(base, 2, ACCESS_QUERY, HOST.0).attribute, ACCESSIBLE);
        assert_eq!(ask(base, 2, ACCESS_QUERY, GPU).attribute, NO_ACCESS);
        store(base, 1, ACCESSIBLE_IN_PLACE, GPU);
        assert_eq!(ask(base, 1, ACCESS_QUERY, GPU).attribute, ACCESSIBLE_IN_PLACE);
        assert_eq!(ask(base, 1, ACCESS_QUERY, GPU + 1).attribute, NO_ACCESS);
        // The second page is without access.
        assert_eq!(ask(base, 2, ACCESS_QUERY, GPU).attribute, NO_ACCESS);
        assert!(answer_attribute(base, PAGE, SvmAttribute { attribute: ACCESSIBLE, value: GPU }).is_err());
        assert!(!may_be_stated(ACCESS_QUERY) && !may_be_stated(PREFETCH_LOCATION) && may_be_stated(READ_MOSTLY));
    }

    #[test]
    fn a_new_allocation_has_no_attributes_of_an_old_one() {
        let base = 0x7200_0000_0000;
        store(base, 4, READ_MOSTLY, 1);
        forget_attributes(base + PAGE, PAGE);
        assert_eq!(ask(base, 1, READ_MOSTLY, 0).value, 1);
        assert_eq!(ask(base + PAGE, 1, READ_MOSTLY, 0).value, 0);
        assert_eq!(ask(base + 2 * PAGE, 2, READ_MOSTLY, 0).value, 1);
        assert!(store_attributes(0, 8, &[]).is_err() && store_attributes(base, 0, &[]).is_err());
        assert!(store_attributes(usize::MAX - 8, 64, &[]).is_err());
    }
}
