//! Profiles in all circumstances at once: targets, relocatable code, equal names, several programs in a directory, modules, forks,
//! forms of the link, patterns of names. Each pair of values of two of these axes is in some row, and each row is built by each
//! clang, through the wrapper. Programs print what their counters must hold; the report must say it, and name each loss.
//!
//! By default a part of the rows runs; `HOTSWAP_PROFILE_ROW=NUMBER,…` runs these.

mod counters;

use counters::{AXES, MatrixRow, RowBench, pairwise_rows};
use hotswap_userland::{say, slice};

/// A row, and the clang that builds it.
struct MatrixCell {
    version: u32,
    row: MatrixRow,
}

#[test]
fn every_figure_of_every_row_is_that_of_the_program() {
    const TEST: &str = "profile matrix";
    let Some(bench) = RowBench::new(TEST) else { return };
    let rows = pairwise_rows();
    let versions = bench.versions().iter();
    let cells: Vec<MatrixCell> = versions
        .flat_map(|version| rows.iter().map(|row| MatrixCell { version: *version, row: row.clone() }))
        .collect();
    let all = cells.len();
    let cells = match std::env::var("HOTSWAP_PROFILE_ROW") {
        Ok(numbers) => {
            let wanted: Vec<usize> = numbers.split(',').filter_map(|number| number.parse().ok()).collect();
            cells.into_iter().filter(|cell| wanted.contains(&cell.row.number)).collect()
        }
        // A step that has no divisor in common with the number of rows, so that the clangs get different ones.
        Err(_) => slice(TEST, cells, |number, _| number % 11 == 3),
    };
    let (mut figures, mut losses, mut faults) = (0, 0, Vec::new());
    for MatrixCell { version, row } in &cells {
        let result = bench.run_row(*version, row);
        figures += result.figures;
        losses += result.losses;
        faults.extend(result.faults.iter().map(|fault| format!("clang {version}, {row}: {fault}")));
    }
    say(&format!(
        "{TEST}: {} of {all} rows with each clang, {figures} figures, {losses} losses named, {} faults",
        cells.len(),
        faults.len()
    ));
    assert!(figures > 0 && faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn each_pair_of_values_is_in_a_row() {
    let rows = pairwise_rows();
    for (one, first) in AXES.iter().enumerate() {
        for (other, second) in AXES.iter().enumerate().skip(one + 1) {
            for value in first.values {
                for with in second.values {
                    let is_there = rows.iter().any(|row| row.values[one] == *value && row.values[other] == *with);
                    assert!(is_there, "{} {value} with {} {with}", first.name, second.name);
                }
            }
        }
    }
    assert!((30..60).contains(&rows.len()), "{}", rows.len());
}
