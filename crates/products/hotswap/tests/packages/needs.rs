//! Files of packages that a kept GPU needs although their names are those of another one.

use super::{SERVED_WHEEL, content, debian_package, hotswap, made, object, rocblas_wheel};
use hotswap_userland::Workbench;
use predicates::prelude::*;
use predicates::str::contains;
use rmpv::Value;

/// On gfx1031 the host asks for files of gfx1030, which the package shows it.
#[test]
fn a_served_wheel_is_pruned_for_the_served_gpu() {
    let Some(bench) = rocblas_wheel("a_served_wheel_is_pruned_for_the_served_gpu") else { return };
    hotswap(&bench, "serve gfx1031 pkg-1.0-py3-none-any.whl --dest out").success();
    let pruned = "out/pkg-1.0-0pruned-py3-none-any.whl";
    hotswap(&bench, &format!("prune {SERVED_WHEEL} --keep gfx1031 -o {pruned}")).success();
    let rows = bench.run(&format!("python3 wheel.py check {pruned}"));
    for name in ["TensileLibrary_a_gfx1030.co", "TensileLibrary_lazy_gfx1030.dat", "Kernels.so-000-gfx1030.hsaco"] {
        assert!(rows.contains(name), "{name}: {rows}");
    }
    assert!(!rows.contains("gfx1100"), "{rows}");
    // Their code is that for the GPU alone.
    let listed = hotswap(&bench, &format!("list {pruned}")).success();
    listed.stdout(contains("amdhsa--gfx1031").and(contains("amdhsa--gfx1030").not()));
    // The shown name goes only with the GPU that needs it.
    let dropped = "out/pkg-1.0-0dropped-py3-none-any.whl";
    hotswap(&bench, &format!("prune {SERVED_WHEEL} --drop gfx1030 -o {dropped}")).success();
    let rows = bench.run(&format!("python3 wheel.py check {dropped}"));
    assert!(rows.contains("TensileLibrary_lazy_gfx1030.dat") && rows.contains("gfx1100"), "{rows}");
    hotswap(&bench, &format!("prune {SERVED_WHEEL} --drop gfx1030,gfx1031 -o {dropped}")).success();
    let rows = bench.run(&format!("python3 wheel.py check {dropped}"));
    assert!(!rows.contains("_gfx1030"), "{rows}");
}

/// Data of gfx1031 that is a name of gfx1100's, and the other way round.
const LINKS: &str = "set -e; cd in/pkg/lib/rocblas/library
ln -s TensileLibrary_lazy_gfx1100.dat TensileLibrary_b_gfx1031.dat
ln TensileLibrary_a_gfx1100.co TensileLibrary_z_gfx1031.co
ln -s TensileLibrary_lazy_gfx1031.dat TensileLibrary_c_gfx1100.dat
ln TensileLibrary_lazy_gfx1031.dat TensileLibrary_z_gfx1100.dat";

#[test]
fn links_lead_to_their_files_after_pruning() {
    let Some(bench) = Workbench::new("links_lead_to_their_files_after_pruning") else { return };
    content(&bench);
    bench.run(LINKS);
    bench.run("tar --sort=name -C in -cf a.tar pkg");
    debian_package(&bench);
    for (form, unpack) in [
        ("tar", "rm -rf out; mkdir out; tar -C out -xf new.tar; cd out"),
        ("deb", "rm -rf out; dpkg-deb -R new.deb out; cd out; md5sum -c --quiet DEBIAN/md5sums"),
    ] {
        hotswap(&bench, &format!("prune a.{form} --keep gfx1031 -o new.{form}")).success();
        let names = bench.run(&format!("set -e; {unpack}; find . | sort"));
        for (name, is_there) in [
            ("TensileLibrary_b_gfx1031.dat", true),
            ("TensileLibrary_lazy_gfx1100.dat", true),
            ("TensileLibrary_z_gfx1031.co", true),
            ("TensileLibrary_c_gfx1100.dat", false),
            ("TensileLibrary_z_gfx1100.dat", false),
            ("Kernels.so-000-gfx1100.hsaco", false),
        ] {
            assert_eq!(names.contains(name), is_there, "{form} {name}: {names}");
        }
        bench.run("cd out/pkg/lib/rocblas/library; grep -q gfx1100 TensileLibrary_b_gfx1031.dat");
    }
}

#[test]
fn sparse_members_are_refused_by_name() {
    let Some(bench) = Workbench::new("sparse_members_are_refused_by_name") else { return };
    content(&bench);
    bench.run("truncate -s 10M in/pkg/holes.so; echo x >> in/pkg/holes.so");
    for format in ["gnu", "posix"] {
        bench.run(&format!("tar --format={format} --sparse -C in -cf a.tar pkg"));
        let refused = hotswap(&bench, "prune a.tar --keep gfx1031 -o new.tar").failure();
        refused.stderr(contains("sparse").and(contains("HS0303")));
        assert!(!bench.path("new.tar").exists());
    }
}

fn map(entries: &[(&str, Value)]) -> Vec<u8> {
    let map = Value::Map(entries.iter().map(|(key, value)| ((*key).into(), value.clone())).collect());
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, &map).unwrap();
    bytes
}

fn entry(key: &str, value: impl Into<Value>) -> (Value, Value) {
    (key.into(), value.into())
}

/// The code of a data file is in a file that retarget changes: a GPU that has nothing but the dropped entry would lose it, while the
/// rest of its library stays.
#[test]
fn a_retargeted_package_takes_no_data_file_from_a_gpu() {
    let Some(bench) = Workbench::new("a_retargeted_package_takes_no_data_file_from_a_gpu") else { return };
    let data = "in/pkg/lib/rocblas/library";
    let name = "TensileLibrary_a_gfx1031";
    bench.run(&format!("mkdir -p {data} in/pkg/store"));
    let placeholder = Value::Map(vec![entry("type", "Placeholder"), entry("value", name)]);
    let index = map(&[("solutions", Value::Array(Vec::new())), ("library", placeholder)]);
    bench.write(&format!("{data}/TensileLibrary_lazy_gfx1031.dat"), &index);
    let mapping = Value::Map(vec![entry("sourceKernel", false)]);
    let solution = Value::Map(vec![entry("name", "x"), entry("index", 7), entry("sizeMapping", mapping)]);
    let single = Value::Map(vec![entry("type", "Single"), entry("index", 7)]);
    let solutions = map(&[("solutions", Value::Array(vec![solution])), ("library", single)]);
    bench.write(&format!("{data}/{name}.dat"), &solutions);
    bench.write(&format!("{data}/Kernels.so-000-gfx1031.hsaco"), &object("gfx1031"));
    bench.write("in/pkg/store/a.co", &made::bundle(&["gfx10-3-generic", "gfx1010"], None, object));
    bench.run(&format!("ln -s ../../../store/a.co {data}/{name}.co; tar --sort=name -C in -cf a.tar pkg"));
    hotswap(&bench, "uses a.tar --gpu gfx1031").success();
    let words = "retarget a.tar --to gfx1013 --policy keep -o new.tar";
    let refused = hotswap(&bench, &format!("{words} --drop gfx10-3-generic")).code(13);
    let says = format!("gfx1031 would lose pkg/lib/rocblas/library/{name}.co");
    refused.stderr(contains("HS0450").and(contains(says)));
    assert!(!bench.path("new.tar").exists());
    // With the entry it has what it had, and so has the other GPU.
    hotswap(&bench, &format!("{words} --allow-unchanged")).success();
    hotswap(&bench, "uses new.tar --gpu gfx1031").success();
}
