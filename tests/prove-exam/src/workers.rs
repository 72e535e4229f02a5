//! Work on all processors.

use std::sync::atomic::{AtomicUsize, Ordering};

fn threads() -> usize {
    std::thread::available_parallelism().map_or(2, usize::from)
}

/// The result of `work` for each item, in the order of the items.
///
/// # Panics
/// If `work` does.
pub fn on_all_processors<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut done = Vec::new();
        while let Some((number, item)) = next_item(items, &next) {
            done.push((number, work(item)));
        }
        done
    };
    let mut all: Vec<(usize, R)> = std::thread::scope(|scope| {
        let handles: Vec<_> = (0..threads()).map(|_| scope.spawn(worker)).collect();
        handles
            .into_iter()
            .flat_map(|handle| handle.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    all.sort_by_key(|(number, _)| *number);
    all.into_iter().map(|(_, result)| result).collect()
}

fn next_item<'a, T>(items: &'a [T], next: &AtomicUsize) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    Some((number, items.get(number)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_items() {
        let items: Vec<u64> = (0..1000).collect();
        let found = on_all_processors(&items, |item| {
            if item % 7 == 0 {
                std::thread::yield_now();
            }
            item * item
        });
        assert_eq!(found, items.iter().map(|item| item * item).collect::<Vec<_>>());
        assert!(on_all_processors(&[] as &[u8], |_| ()).is_empty());
    }
}
