//! Work on all processors.
//!
//! It is done in rayon's threads, because the parts of a comparison are, too: a thread of another kind would hand each part of
//! a small object over and wait for it, which takes longer than the part.

use rayon::prelude::*;

/// The result of `work` for each item, in the order of the items.
///
/// # Panics
/// If `work` does.
pub fn on_all_processors<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync + Send) -> Vec<R> {
    items.par_iter().with_max_len(1).map(work).collect()
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
