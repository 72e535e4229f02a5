//! The matrix of use with a real library: Debian's rocRAND, whose numbers on emulated GPUs are those of its host generators before and
//! after each command that changes it. `HOTSWAP_CELLS=TEXT` runs the cells whose names hold the text.
//!
//! Absent on purpose: rocBLAS, of which `tests/dispatch` compares the kernels that start from pruned and served trees.

use hotswap_emulated_hip::EmulationBench;
use hotswap_userland::{say, slice};

const TEST: &str = "use matrix of rocRAND";
const RESULT: &str = "right philox\nright threefry\n";
/// The tree: the library with the code of two of its GPUs, and a program that finds it by its place.
const TREE: &str = "mkdir -p whole/bin whole/lib
cp $(find /usr/lib -name librocrand.so.1.1) whole/lib/librocrand.so.1
g++ -O1 -w -D__HIP_PLATFORM_AMD__ numbers.cpp -o whole/bin/numbers -lamdhip64 whole/lib/librocrand.so.1 \
-Wl,--enable-new-dtags,-rpath,'$ORIGIN/../lib'
$HOTSWAP prune whole --keep gfx1030,gfx1100 -o tree
rm -rf whole";

/// A command; its steps leave the changed tree in `opened`, or a served one beside `tree`.
struct RealCell {
    name: &'static str,
    steps: &'static str,
    kept: &'static [&'static str],
    gone: &'static [&'static str],
}

const BOTH: &[&str] = &["gfx1030", "gfx1100"];

#[rustfmt::skip]
const CELLS: &[RealCell] = &[
    RealCell { name: "nothing", steps: "cp -a tree opened", kept: BOTH, gone: &[] },
    RealCell { name: "prune", steps: "$HOTSWAP prune tree --keep gfx1030 -o opened", kept: &["gfx1030"], gone: &["gfx1100"] },
    RealCell {
        name: "prune of a Debian package", kept: &["gfx1100"], gone: &["gfx1030"],
        steps: "python3 pack.py make pkg_1.0_amd64.deb; $HOTSWAP prune pkg_1.0_amd64.deb --keep gfx1100 -o out.deb; python3 pack.py unpack out.deb opened",
    },
    RealCell { name: "compress", steps: "$HOTSWAP compress tree -o opened", kept: BOTH, gone: &[] },
    RealCell { name: "decompress", steps: "$HOTSWAP compress tree -o packed; $HOTSWAP decompress packed -o opened", kept: BOTH, gone: &[] },
    RealCell {
        name: "split and merge", kept: BOTH, gone: &[],
        steps: "$HOTSWAP split tree -o 'part-{gpu}'; $HOTSWAP merge part-gfx1030 part-gfx1100 -o opened",
    },
    RealCell {
        name: "serve", kept: &["gfx1031"], gone: &[],
        steps: "$HOTSWAP serve gfx1031 --root tree --from gfx1030 --dest out; $HOTSWAP serve --check --dest out",
    },
];

#[test]
fn rocrand_gives_the_same_numbers_after_each_command() {
    let Some(bench) = EmulationBench::new(TEST) else { return };
    let Some(hotswap) = bench.hotswap(TEST) else { return };
    let (work, chosen) = (&bench.work, std::env::var("HOTSWAP_CELLS").unwrap_or_default());
    work.write("check.h", include_bytes!("../cases/check.h"));
    work.write("numbers.cpp", include_bytes!("../cases/numbers.cpp"));
    work.write("pack.py", include_bytes!("../cases/matrix/pack.py"));
    work.run(&format!("set -e; {}", TREE.replace("$HOTSWAP", &hotswap)));
    let (mut cells, mut faults) = (0, Vec::new());
    let all: Vec<&RealCell> = CELLS.iter().filter(|cell| cell.name.contains(&chosen)).collect();
    let part = if chosen.is_empty() { slice(TEST, all, |number, _| number % 3 == 0) } else { all };
    for RealCell { name, steps, kept, gone } in part {
        cells += 1;
        work.run("rm -rf opened packed out out.deb pkg_1.0_amd64.deb part-*");
        let changed = work.shell(&format!("set -e; {}", steps.replace("$HOTSWAP", &hotswap)));
        if !changed.status.success() {
            faults.push(format!("{name}: {}", String::from_utf8_lossy(&changed.stderr)));
            continue;
        }
        let (before, program) = if *name == "serve" { (". ./out/env.sh\n", "tree") } else { ("", "opened") };
        for gpu in kept.iter().chain(*gone) {
            let run = bench.script(before, &format!("{hotswap} run --gpu {gpu} -- ./{program}/bin/numbers"));
            let is_right = run.code == Some(0) && run.output == RESULT;
            if is_right != kept.contains(gpu) {
                faults.push(format!("{name}: {gpu}: code {:?}, {:?}: {}", run.code, run.output, run.error));
            }
        }
    }
    say(&format!("{TEST}: {cells} cells, {} faults", faults.len()));
    assert!(cells > 0 && faults.is_empty(), "{}", faults.join("\n"));
}
