//! Commands that change files × layouts × forms of packages: a program that uses them gives, for each GPU that is kept, the same result
//! before and after, executed on emulated GPUs, and none for a GPU that was taken away. The axes are tables.
//!
//! The library of the program finds its code as rocBLAS does (`cases/matrix/library.hip`); packages are made and opened by Python and
//! dpkg-deb. By default a part of the cells runs; `HOTSWAP_CELLS=TEXT` runs those whose names hold the text.

mod matrix;
#[path = "matrix/page.rs"]
mod page;

use hotswap_userland::{say, slice};
use matrix::{Cell, MatrixBench, all_cells};

#[test]
fn kept_gpus_compute_the_same_before_and_after() {
    const TEST: &str = "use matrix";
    let Some(bench) = MatrixBench::new(TEST) else { return };
    // A step that divides none of the axes' sizes, so that each value of each axis occurs.
    let cells = match std::env::var("HOTSWAP_CELLS") {
        Ok(name) => all_cells().into_iter().filter(|cell| cell.to_string().contains(&name)).collect(),
        Err(_) => slice(TEST, all_cells(), |number, cell| number % 7 == 3 || cell.is_first_undo()),
    };
    if std::env::var_os("HOTSWAP_CELLS").is_none() {
        check_axes(&cells);
    }
    let mut faults = Vec::new();
    for cell in &cells {
        faults.extend(bench.run_cell(cell).err().map(|fault| format!("{cell}: {fault}")));
    }
    say(&format!("{TEST}: {} cells of commands, layouts and forms, {} of them wrong", cells.len(), faults.len()));
    if hotswap_userland::everything() && hotswap_userland::blesses() && faults.is_empty() {
        page::write_table(&cells);
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Every value of every axis is in the part.
fn check_axes(cells: &[Cell]) {
    for command in matrix::COMMANDS {
        assert!(cells.iter().any(|cell| cell.command.name == command.name), "{}", command.name);
    }
    for layout in matrix::LAYOUTS {
        assert!(cells.iter().any(|cell| cell.layout == *layout), "{layout:?}");
    }
    for form in matrix::FORMS {
        assert!(cells.iter().any(|cell| cell.form.end == form.end), "{}", form.end);
    }
}

/// Parts of builds that are not of one source: each difference is refused by the name of its file, and nothing is written.
#[test]
fn trees_that_differ_are_not_merged() {
    const TEST: &str = "use matrix: trees that differ";
    const FILES: &str = "lib/rocblas/library";
    let Some(bench) = MatrixBench::new(TEST) else { return };
    let changes = [
        ("echo other > notes; echo own > ../part-gfx1030/notes".to_owned(), "notes"),
        ("ln -s elsewhere link; ln -s here ../part-gfx1030/link".to_owned(), "link"),
        ("ln -s elsewhere other; echo own > ../part-gfx1030/other".to_owned(), "other"),
        (format!("echo other >> {FILES}/TensileLibrary_b_fallback.dat"), "TensileLibrary_b_fallback.dat"),
        ("cp ../program.cpp bin/program".to_owned(), "bin/program"),
        ("strip -g -R .comment lib/librocblas.so.5; printf X | dd of=lib/librocblas.so.5 bs=1 seek=$(($(readelf -SW lib/librocblas.so.5 | sed -n 's/.* .rodata *PROGBITS *[0-9a-f]* *\\([0-9a-f]*\\).*/0x\\1/p'))) conv=notrunc".to_owned(), "lib/librocblas.so.5"),
    ];
    let mut faults = Vec::new();
    for (change, name) in &changes {
        faults.extend(bench.refuse_merge(change, name).err().map(|fault| format!("{change}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Each file of the model's answer is taken away once: the program stops, and each of the commands that look says which file it is.
#[test]
fn each_file_that_is_taken_away_is_missed_and_named() {
    const TEST: &str = "use matrix: files taken away";
    let Some(bench) = MatrixBench::new(TEST) else { return };
    let (mut planted, mut told) = (0, 0);
    for layout in matrix::LAYOUTS {
        for file in bench.data_files(*layout) {
            planted += 1;
            match bench.take_away(*layout, &file) {
                Ok(()) => told += 1,
                Err(fault) => say(&format!("{layout:?} {file}: {fault}")),
            }
        }
    }
    say(&format!("{TEST}: {told} of {planted} told"));
    assert!(planted >= 18 && told == planted, "{told} of {planted}");
}
