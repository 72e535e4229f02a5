//! Trees whose data is in one directory for each GPU, and trees of symbolic links.

use super::{Directory, bundle, library, object, placeholder, rand_object};
use hotswap_bundle::{Compression, split_record};
use predicates::prelude::*;
use predicates::str::contains;
use std::fs;
use std::os::unix::fs::symlink;

const PER_GPU: &str = "rocm/lib/rocblas/library/gfx1030";

/// The data of rocBLAS in a directory of the GPU, as TheRock installs it.
fn per_gpu() -> Directory {
    let directory = Directory::empty();
    directory.write("rocm/lib/librocblas.so.5", &library(&[bundle(&["gfx1030"])]));
    directory.write(&format!("{PER_GPU}/Kernels.so-000-gfx1030.hsaco"), &object("gfx1030"));
    directory.write(&format!("{PER_GPU}/TensileLibrary_a_gfx1030.co"), &bundle(&["gfx1030"]));
    directory.write(&format!("{PER_GPU}/TensileLibrary_lazy_gfx1030.dat"), &placeholder("x_gfx1030"));
    directory.write(&format!("{PER_GPU}/TensileLibrary_a_fallback.dat"), b"fallback");
    directory
}

/// rocBLAS opens `library/GPU/TensileLibrary_lazy_GPU.dat`: both places have the target's name.
#[test]
fn own_names_are_those_of_directories_and_files() {
    let directory = per_gpu();
    directory.run("serve gfx1031 --root rocm --dest out --names own").success();
    let data = "lib/rocblas/library/gfx1031";
    let names = directory.names("out");
    for name in [
        "Kernels.so-000-gfx1031.hsaco",
        "TensileLibrary_a_gfx1031.co",
        "TensileLibrary_lazy_gfx1031.dat",
        "TensileLibrary_a_fallback.dat",
    ] {
        assert!(names.contains(&format!("{data}/{name}")), "{name}: {names:?}");
    }
    assert!(!names.iter().any(|name| name.contains("gfx1030")), "{names:?}");
    assert!(directory.read(&format!("out/{data}/TensileLibrary_lazy_gfx1031.dat")) == placeholder("x_gfx1031"));
    let bare = directory.read(&format!("out/{data}/Kernels.so-000-gfx1031.hsaco"));
    assert!(split_record(&bare).unwrap().0 == object("gfx1031"));
}

/// Files that are links to elsewhere are read as the host library reads them: Nix joins packages by links, and packages with
/// many equal files have one of them.
#[test]
fn data_files_that_are_links_are_served() {
    for is_inside in [true, false] {
        let directory = per_gpu();
        let store = if is_inside { "rocm/store" } else { "store" };
        for name in ["TensileLibrary_a_fallback.dat", "TensileLibrary_a_gfx1030.co", "TensileLibrary_lazy_gfx1030.dat"]
        {
            let path = format!("{PER_GPU}/{name}");
            directory.write(&format!("{store}/{name}"), &directory.read(&path));
            fs::remove_file(directory.path(&path)).unwrap();
            symlink(directory.path(&format!("{store}/{name}")), directory.path(&path)).unwrap();
        }
        directory.run("serve gfx1031 --root rocm --dest out").success();
        let data = "out/lib/rocblas/library/gfx1030";
        assert_eq!(directory.read(&format!("{data}/TensileLibrary_a_fallback.dat")), b"fallback");
        assert_eq!(directory.read(&format!("{data}/TensileLibrary_lazy_gfx1030.dat")), placeholder("x_gfx1030"));
        let code = format!("{data}/TensileLibrary_a_gfx1030.co");
        assert_eq!(directory.targets(&code, object), ["gfx1030 gfx1031"]);
        directory.run("serve --check --dest out").success();
    }
    let directory = per_gpu();
    symlink("nowhere", directory.path(&format!("{PER_GPU}/TensileLibrary_b_fallback.dat"))).unwrap();
    directory
        .run("serve gfx1031 --root rocm --dest out")
        .stderr(contains("TensileLibrary_b_fallback.dat").and(contains("leads nowhere")));
}

/// A tree that has nothing but links: to files of another tree, and to whole directories of it.
#[test]
fn trees_of_links_are_served() {
    let directory = per_gpu();
    let rand = super::made::bundle(&["gfx1030"], Some(Compression::default()), rand_object);
    directory.write("rocm/lib/librocrand.so.1.1", &library(&[rand]));
    symlink("librocrand.so.1.1", directory.path("rocm/lib/librocrand.so.1")).unwrap();
    fs::create_dir_all(directory.path("joined/lib")).unwrap();
    for name in ["librocblas.so.5", "librocrand.so.1.1", "librocrand.so.1", "rocblas"] {
        symlink(directory.path(&format!("rocm/lib/{name}")), directory.path(&format!("joined/lib/{name}"))).unwrap();
    }
    // Cycles end.
    symlink(directory.path("joined"), directory.path("rocm/lib/rocblas/joined")).unwrap();
    symlink(directory.path("rocm/lib/rocblas"), directory.path("rocm/lib/rocblas/again")).unwrap();
    directory.run("serve gfx1031 --root joined --dest out").success();
    let names = directory.names("out");
    for name in ["librocblas.so.5", "librocrand.so.1", "rocblas/library/gfx1030/TensileLibrary_a_gfx1030.co"] {
        assert!(names.contains(&format!("lib/{name}")), "{name}: {names:?}");
    }
    assert_eq!(directory.targets("out/lib/librocrand.so.1", rand_object), ["gfx1030 gfx1031"]);
    directory.run("serve gfx1031 --root joined --dest out").code(17);
}
