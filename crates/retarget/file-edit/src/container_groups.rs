//! Reads containers in groups, each of which is in memory at once: hashes of compressed containers are computed side by side.
//! Several threads share the groups, and the memory.
//!
//! Invariant: the results are in the order of the containers, so the number of threads changes nothing.

use crate::memory_budget;
use hotswap_bundle::{FoundContainer, SIDE_BY_SIDE};

/// Reads a group: a result for each container.
pub type ReadGroup<'s, T> = dyn Fn(&[&FoundContainer<'_>]) -> Vec<T> + Sync + 's;

/// How containers are read.
pub struct GroupReading {
    pub threads: usize,
    /// Bytes of the unpacked containers of a group, unless one container has more.
    pub group_bytes: u64,
}

impl GroupReading {
    /// The result for each container.
    pub fn read_all<T: Send>(&self, containers: &[&FoundContainer<'_>], read: &ReadGroup<'_, T>) -> Vec<T> {
        let groups = self.container_groups(containers);
        let read = hotswap_files::on_threads(self.threads, groups.len(), |number| {
            let group: Vec<&FoundContainer> = groups[number].iter().map(|number| containers[*number]).collect();
            let taken = memory_budget::for_reading().take(unpacked_size(&group));
            let read = read(&group);
            drop(taken);
            read
        });
        let mut results: Vec<_> =
            groups.iter().zip(read).flat_map(|(numbers, results)| numbers.iter().copied().zip(results)).collect();
        results.sort_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }

    /// The numbers of the containers that are read together. Those of similar sizes are: the hash of a large one would go on
    /// alone when the others are done.
    fn container_groups(&self, containers: &[&FoundContainer<'_>]) -> Vec<Vec<usize>> {
        let mut numbers: Vec<usize> = (0..containers.len()).collect();
        numbers.sort_by_key(|number| containers[*number].plain_size());
        let mut groups: Vec<Vec<usize>> = Vec::new();
        let mut bytes = 0;
        for number in numbers {
            let size = containers[number].plain_size();
            match groups.last_mut() {
                Some(group) if group.len() < SIDE_BY_SIDE && bytes + size <= self.group_bytes => group.push(number),
                _ => {
                    groups.push(vec![number]);
                    bytes = 0;
                }
            }
            bytes += size;
        }
        // The largest first, so that no thread is left with them at the end.
        groups.reverse();
        groups
    }
}

/// Bytes of a group without compression.
fn unpacked_size(group: &[&FoundContainer<'_>]) -> u64 {
    group.iter().map(|container| container.plain_size()).sum()
}
