//! Neither a run for other GPUs nor an undo takes files in silence from GPUs and libraries that have them from a served tree.

use super::{DATA, Directory};
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;

/// The tree would be another GPU's, and this one would find nothing in it.
#[test]
fn a_run_for_other_gpus_takes_nothing_away() {
    let directory = Directory::rocm();
    directory.run("serve gfx1031 --root rocm --dest out --keep gfx1100").success();
    let before = directory.state("out");
    for (words, gpu) in
        [("gfx1032", "gfx1031"), ("gfx1031", "gfx1100"), ("gfx1032 --keep gfx1100 --names own", "gfx1031")]
    {
        let refused = directory.run(&format!("serve {words} --root rocm --dest out")).code(13);
        refused.stderr(contains("HS0450").and(contains(format!("{gpu} would lose lib/"))).and(contains("--undo")));
        assert!(directory.state("out") == before, "{words}");
    }
    directory.run("serve gfx1031,gfx1032 --root rocm --dest out --keep gfx1100").success();
    directory.run("serve --undo --dest out").success();
    directory.run("serve gfx1032 --root rocm --dest out").success();
}

/// A library of the user in the directory opens the files that HotSwap has put there.
#[test]
fn an_undo_leaves_libraries_of_others_their_files() {
    let directory = Directory::rocm();
    for gpu in ["gfx1030", "gfx1100"] {
        // An index that can be read: it names nothing.
        directory.write(&format!("{DATA}/TensileLibrary_lazy_{gpu}.dat"), b"\x82\xa9solutions\x90\xa7library\x80");
    }
    directory.serve().success();
    let own = directory.path("out/lib/librocblas.so.5.2");
    let served = fs::read(&own).unwrap();
    // One build of the user's, and one under another name.
    for name in ["out/lib/librocblas.so.5.2", "out/mine/librocblas-0123abcd.so.5"] {
        directory.write(name, &[&served[..], b"patched"].concat());
        let before = directory.state("out");
        let refused = directory.run("serve --undo --dest out").code(13);
        refused.stderr(
            contains("HS0450").and(contains("would lose lib/rocblas/5/library/")).and(contains("did not write")),
        );
        assert!(directory.state("out") == before, "{name}");
        fs::remove_file(directory.path(name)).unwrap();
        fs::write(&own, &served).unwrap();
    }
    // A library without data files needs nothing of the tree.
    directory.write("out/mine/librocrand.so.1.1", &directory.read("rocm/lib/librocrand.so.1.1"));
    directory.run("serve --undo --dest out").success();
    assert_eq!(directory.names("out"), ["mine/librocrand.so.1.1"]);
}
