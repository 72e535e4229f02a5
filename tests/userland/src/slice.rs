//! The part of many cases that runs by default.
//!
//! Where the number of cases costs the time (cases × compilers, modes × compilers, levels × targets), a test runs a fixed
//! part of them, the same on every machine. With [`ENV_EVERYTHING`], which `cargo xtask test --everything` sets, it runs
//! all. Each test prints how many of how many cases ran.
//!
//! Invariants: of a product of cases and compilers every case and every compiler occurs; an empty part is a failure.

use crate::say;
use std::env;

/// Set to `1`, tests run all of their cases.
pub const ENV_EVERYTHING: &str = "HOTSWAP_TEST_EVERYTHING";
/// The marker of the line that tells the size of a part.
pub const SLICE: &str = "slice: ";

/// Whether all cases are to run.
pub fn everything() -> bool {
    env::var_os(ENV_EVERYTHING).is_some_and(|value| value == "1")
}

/// The cases that `takes` selects by number and value, or all.
///
/// # Panics
/// If that is empty.
pub fn slice<T>(test: &str, all: Vec<T>, takes: impl Fn(usize, &T) -> bool) -> Vec<T> {
    let count = all.len();
    announced(test, part(all, everything(), takes), count)
}

/// Pairs of a compiler and a case: each case with one compiler in turn, and the cases that `with_all` selects with all of
/// them. Compilers are the outer loop.
///
/// # Panics
/// Without a case or without a compiler.
pub fn in_turn<'a, C, V>(
    test: &str,
    cases: &'a [C],
    compilers: &'a [V],
    with_all: impl Fn(&C) -> bool,
) -> Vec<(&'a V, &'a C)> {
    let pairs = product(cases, compilers, |case| everything() || with_all(case));
    announced(test, pairs, cases.len() * compilers.len())
}

/// Of the cases of each kind one, a later one for each further kind, and the cases that `with_all` selects: all kinds occur,
/// and with enough kinds everything in which their members differ.
///
/// # Panics
/// Without any case.
pub fn one_of_each<T, K: PartialEq>(
    test: &str,
    all: Vec<T>,
    kind: impl Fn(&T) -> K,
    with_all: impl Fn(&T) -> bool,
) -> Vec<T> {
    let chosen = chosen(&all, kind);
    slice(test, all, |number, one| chosen.contains(&number) || with_all(one))
}

/// Numbers of the members: the first of the first kind, the second of the second, and so on.
fn chosen<T, K: PartialEq>(all: &[T], kind: impl Fn(&T) -> K) -> Vec<usize> {
    let mut kinds: Vec<(K, Vec<usize>)> = Vec::new();
    for (number, one) in all.iter().enumerate() {
        let key = kind(one);
        match kinds.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(number),
            None => kinds.push((key, vec![number])),
        }
    }
    kinds.iter().enumerate().map(|(turn, (_, members))| members[turn % members.len()]).collect()
}

fn part<T>(all: Vec<T>, everything: bool, takes: impl Fn(usize, &T) -> bool) -> Vec<T> {
    let numbered = all.into_iter().enumerate();
    numbered.filter(|(number, one)| everything || takes(*number, one)).map(|(_, one)| one).collect()
}

fn product<'a, C, V>(cases: &'a [C], compilers: &'a [V], with_all: impl Fn(&C) -> bool) -> Vec<(&'a V, &'a C)> {
    let (rows, columns) = (cases.len(), compilers.len());
    let mut pairs = Vec::new();
    for (column, compiler) in compilers.iter().enumerate() {
        for (row, case) in cases.iter().enumerate() {
            // With fewer cases than compilers, each compiler gets one of them.
            if row % columns == column || rows < columns && column % rows == row || with_all(case) {
                pairs.push((compiler, case));
            }
        }
    }
    pairs
}

fn announced<T>(test: &str, part: Vec<T>, all: usize) -> Vec<T> {
    assert!(!part.is_empty(), "{test}: the slice is empty, of {all} cases");
    say(&line(test, part.len(), all));
    part
}

fn line(test: &str, part: usize, all: usize) -> String {
    match part == all {
        true => format!("{test}: {SLICE}all {all} cases"),
        false => format!("{test}: {SLICE}{part} of {all} cases; `cargo xtask test --everything` runs all"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_case_and_every_compiler_occurs() {
        let versions = [22, 23, 24];
        for rows in 1..20 {
            let cases: Vec<usize> = (0..rows).collect();
            let pairs = product(&cases, &versions, |case| *case == 1);
            assert_eq!(pairs.iter().map(|(_, case)| **case).collect::<BTreeSet<_>>().len(), rows);
            assert_eq!(pairs.iter().map(|(version, _)| **version).collect::<BTreeSet<_>>(), versions.into());
            let of_one = pairs.iter().filter(|(_, case)| **case == 1).count();
            assert_eq!(of_one, if rows > 1 { 3 } else { 0 });
            assert_eq!(pairs.iter().collect::<BTreeSet<_>>().len(), pairs.len());
            assert_eq!(product(&cases, &versions, |_| true).len(), 3 * rows);
        }
    }

    #[test]
    fn each_kind_has_one_member_and_they_differ() {
        let all: Vec<(u32, char)> =
            [22, 23, 24].iter().flat_map(|version| "abcd".chars().map(|c| (*version, c))).collect();
        let chosen: Vec<_> = chosen(&all, |(_, letter)| *letter).into_iter().map(|number| all[number]).collect();
        assert_eq!(chosen, [(22, 'a'), (23, 'b'), (24, 'c'), (22, 'd')]);
    }

    #[test]
    fn everything_is_more_than_a_part() {
        let takes = |number: usize, _: &i32| number.is_multiple_of(2);
        assert_eq!(part(vec![5, 6, 7], false, takes), [5, 7]);
        assert_eq!(part(vec![5, 6, 7], true, takes), [5, 6, 7]);
        assert!(line("x", 2, 3).contains("2 of 3 cases; `cargo xtask test --everything`"));
        assert!(line("x", 3, 3).contains("all 3 cases"));
    }

    #[test]
    #[should_panic(expected = "the slice is empty")]
    fn an_empty_part_is_a_failure() {
        announced("x", Vec::<u8>::new(), 3);
    }

    #[test]
    #[should_panic(expected = "the slice is empty")]
    fn a_product_without_compilers_is_a_failure() {
        announced("x", product::<u8, u8>(&[1], &[], |_| false), 0);
    }
}
