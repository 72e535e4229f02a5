//! Two commands that change one file in place at once: the second waits, and nothing is lost.

mod made;

use made::{bitcode, bundle, id};
use std::fs;
use std::process::Command;
use tempfile::TempDir;

#[test]
fn no_update_is_lost() {
    let targets = ["gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030"];
    for _ in 0..5 {
        let directory = TempDir::new().unwrap();
        fs::write(directory.path().join("x"), bundle(&targets, None, bitcode)).unwrap();
        let start = |target: &&str| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
            command.current_dir(directory.path()).args(["remove", "x", &id(target), "-o", "x"]).spawn().unwrap()
        };
        let running: Vec<_> = targets[1..].iter().map(start).collect();
        running.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
        let bytes = fs::read(directory.path().join("x")).unwrap();
        let (bundle, _) = hotswap_bundle::parse(&bytes).unwrap();
        let ids: Vec<_> = bundle.entries().iter().map(|entry| entry.id.clone()).collect();
        assert_eq!(ids, [made::HOST.to_owned(), id(targets[0])]);
    }
}
