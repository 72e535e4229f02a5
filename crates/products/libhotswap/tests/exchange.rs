//! Functions of other code objects through the C interface: a loader by ROCr's rules puts the right address into every word.

mod common;

use common::{CLibrary, user_and_library};
use hotswap_userland::{Workbench, say, slice};

const TARGETS: [&str; 6] = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"];
/// The place of the library in the agent's memory.
const LIBRARY: u64 = 0x7e00_0000_0000;
/// The place where the model lays the user out.
const USER: u64 = 0x7f00_0000_0000;

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text, 16).unwrap_or_else(|_| panic!("`{text}`"))
}

#[test]
fn every_word_gets_the_address_of_the_function() {
    let test = "every_word_gets_the_address_of_the_function";
    let Some(bench) = Workbench::new(test) else { return };
    let library = CLibrary::new();
    let dump = library.compile("dump.c", &[]);
    let versions = bench.versions.iter().copied().filter(|version| *version <= 24);
    let targets = versions.flat_map(|version| TARGETS.map(|target| (version, target)));
    let all: Vec<_> =
        targets.flat_map(|(version, target)| ["-O0", "-O2"].map(|level| (version, target, level))).collect();
    let mut words = 0;
    for (version, target, level) in slice(test, all, |number, _| number % 12 == number / 12 * 4 + number / 12 % 2) {
        let [user, functions] = user_and_library(&bench, (version, target, level));
        let row = functions.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        let row = row.into_iter().find(|words| words.get(3) == Some(&"FUNC") && words.last() == Some(&"lib_fn"));
        let address = LIBRARY + hex(row.expect("the library has the function")[1]);
        let path = bench.path("user.co");
        let words_of = [path.to_str().unwrap(), target, "load", "__hotswap_import.lib_fn", &format!("{address:#x}")];
        let loaded = library.run(&dump, &words_of);
        assert!(loaded.contains("undefined=0"), "{version} {target} {level}: {loaded}");
        let is_import = |line: &&str| line.contains("R_AMDGPU_ABS64") && line.contains("__hotswap_import.lib_fn");
        let slots: Vec<u64> =
            user.lines().filter(is_import).map(|line| hex(line.split_whitespace().next().unwrap())).collect();
        assert!(!slots.is_empty(), "{version} {target} {level}: {user}");
        for slot in &slots {
            let wanted =
                format!("relocation {:#x} type=3 applied=1 {address:#x} __hotswap_import.lib_fn\n", USER + slot);
            assert!(loaded.contains(&wanted), "{version} {target} {level}: {wanted}{loaded}");
        }
        let undefined = library.run(&dump, &[path.to_str().unwrap(), target, "load"]);
        assert!(undefined.contains("\nundefined __hotswap_import.lib_fn\n"), "{undefined}");
        say(&format!("exam slots | {version} | {target} | {level} | {} |", slots.len()));
        words += slots.len();
    }
    assert!(words >= 3);
}
