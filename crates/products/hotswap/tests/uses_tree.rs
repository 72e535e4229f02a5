//! `hotswap uses` of directories and packages: the data files that host libraries open for a GPU. Every file of the answer is taken
//! away once, and its lack is reported; what `prune` and `serve` leave answers as before.

mod made;

use assert_cmd::Command;
use hotswap_bundle::{Compression, OffloadBinary, OffloadImage};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use hotswap_userland::Workbench;
use made::Directory;
use object::BinaryFormat;
use predicates::prelude::*;
use predicates::str::contains;
use rmpv::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

const ROCBLAS: &str = "rocm/lib/rocblas/library";
const HIPBLASLT: &str = "rocm/lib/hipblaslt/library";
const GPUS: [&str; 2] = ["gfx1030", "gfx1100"];

fn object(target: &str) -> Vec<u8> {
    let flags = EFlags::of(&target.parse().unwrap()).encode();
    Sample { target: format!("amdgcn-amd-amdhsa--{target}"), flags, ..Sample::default() }.build()
}

fn bundle(targets: &[&str]) -> Vec<u8> {
    made::bundle(targets, Some(Compression::default()), object)
}

fn map(entries: &[(&str, Value)]) -> Value {
    Value::Map(entries.iter().map(|(key, value)| ((*key).into(), value.clone())).collect())
}

fn node(kind: &str, value: Value) -> Value {
    map(&[("type", kind.into()), ("value", value)])
}

fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).unwrap();
    bytes
}

/// A lazy index that names these others, the first for the processor alone.
fn lazy_index(gpu: &str, tuned: &str, fallback: &str) -> Vec<u8> {
    let row =
        |predicate: Value, name: &str| map(&[("predicate", predicate), ("library", node("Placeholder", name.into()))]);
    let own = node("AMDGPU", node("Processor", gpu.into()));
    let rows = vec![row(own, tuned), row(map(&[("type", "TruePred".into())]), fallback)];
    let library = map(&[("type", "Hardware".into()), ("rows", Value::Array(rows))]);
    encoded(&map(&[("solutions", Value::Array(Vec::new())), ("library", library)]))
}

/// An index of one solution.
fn solutions(is_source: bool) -> Vec<u8> {
    let code = map(&[("sourceKernel", is_source.into())]);
    let solution = map(&[("name", "Cijk".into()), ("index", 7.into()), ("sizeMapping", code)]);
    let library = map(&[("type", "Single".into()), ("index", 7.into())]);
    encoded(&map(&[("solutions", Value::Array(vec![solution])), ("library", library)]))
}

fn operations() -> Vec<u8> {
    let of = |gpu: &str| map(&[("Softmax", map(&[("co_path", format!("extop_{gpu}.co").into())]))]);
    encoded(&map(&GPUS.map(|gpu| (gpu, of(gpu)))))
}

/// A kernel archive of one code object that is stored as it is.
fn kernel_archive(binary: &str, target: &str, code: &[u8]) -> Vec<u8> {
    let end = 64 + code.len();
    let kernel = map(&[("type", "hsaco".into()), ("ordinal", 0.into()), ("original_size", code.len().into())]);
    let table = map(&[
        ("format_version", 1.into()),
        ("group_name", "x".into()),
        ("gfx_arch_family", "x".into()),
        ("gfx_arches", Value::Array(vec![target.into()])),
        ("compression_scheme", "none".into()),
        ("toc", map(&[(binary, map(&[(target, kernel)]))])),
        ("blobs", Value::Array(vec![map(&[("offset", 64.into()), ("size", code.len().into())])])),
    ]);
    let header = [b"KPAK\x01\0\0\0".as_slice(), &(end as u64).to_le_bytes(), &[0; 48]].concat();
    [&header, code, &encoded(&table)].concat()
}

impl Directory {
    /// rocBLAS and hipBLASLt for two GPUs.
    fn rocm() -> Self {
        let directory = Self::empty();
        directory.write("rocm/lib/librocblas.so.5", &hotswap_samples::host_files::library(&[&bundle(&GPUS)]));
        directory.write("rocm/lib/libhipblaslt.so.1", &hotswap_samples::host_files::library(&[&bundle(&GPUS)]));
        for gpu in GPUS {
            let tuned = format!("TensileLibrary_a_{gpu}");
            directory.write(
                &format!("{ROCBLAS}/TensileLibrary_lazy_{gpu}.dat"),
                &lazy_index(gpu, &tuned, "TensileLibrary_a_fallback"),
            );
            directory.write(&format!("{ROCBLAS}/{tuned}.dat"), &solutions(false));
            directory.write(&format!("{ROCBLAS}/{tuned}.co"), &bundle(&[gpu]));
            directory.write(&format!("{ROCBLAS}/TensileLibrary_a_fallback_{gpu}.hsaco"), &object(gpu));
            directory.write(&format!("{ROCBLAS}/Kernels.so-000-{gpu}.hsaco"), &object(gpu));
            let lite = format!("TensileLibrary_b_{gpu}");
            directory.write(&format!("{HIPBLASLT}/TensileLibrary_lazy_{gpu}.dat"), &lazy_index(gpu, &lite, &lite));
            directory.write(&format!("{HIPBLASLT}/{lite}.dat"), &solutions(false));
            directory.write(&format!("{HIPBLASLT}/{lite}.co"), &bundle(&[gpu]));
            directory.write(&format!("{HIPBLASLT}/extop_{gpu}.co"), &bundle(&[gpu]));
            directory.write(&format!("{HIPBLASLT}/Kernels.so-000-{gpu}.hsaco"), &object(gpu));
        }
        directory.write(&format!("{ROCBLAS}/TensileLibrary_a_fallback.dat"), &solutions(true));
        directory.write(&format!("{HIPBLASLT}/hipblasltExtOpLibrary.dat"), &operations());
        directory.write(&format!("{HIPBLASLT}/hipblasltTransform.hsaco"), &bundle(&GPUS));
        directory
    }

    fn shell(&self, script: &str) -> String {
        let mut command = Command::new("sh");
        let run = command.args(["-ec", script]).current_dir(self.0.path()).assert().success();
        String::from_utf8(run.get_output().stdout.clone()).unwrap()
    }

    /// The data files that a GPU gets, of those that libraries cannot do without.
    fn data_files(&self, words: &str) -> Vec<String> {
        let run = self.run(&format!("uses {words} --format json")).success();
        let answer: serde_json::Value = serde_json::from_slice(&run.get_output().stdout).unwrap();
        let rows = answer["trees"][0]["gpus"][0]["files"].as_array().unwrap();
        rows.iter().map(|row| row["file"].as_str().unwrap().to_owned()).collect()
    }
}

const OWN_FILES: [&str; 13] = [
    "lib/hipblaslt/library/Kernels.so-000-gfx1030.hsaco",
    "lib/hipblaslt/library/TensileLibrary_b_gfx1030.co",
    "lib/hipblaslt/library/TensileLibrary_b_gfx1030.dat",
    "lib/hipblaslt/library/TensileLibrary_lazy_gfx1030.dat",
    "lib/hipblaslt/library/extop_gfx1030.co",
    "lib/hipblaslt/library/hipblasltExtOpLibrary.dat",
    "lib/hipblaslt/library/hipblasltTransform.hsaco",
    "lib/rocblas/library/Kernels.so-000-gfx1030.hsaco",
    "lib/rocblas/library/TensileLibrary_a_fallback.dat",
    "lib/rocblas/library/TensileLibrary_a_fallback_gfx1030.hsaco",
    "lib/rocblas/library/TensileLibrary_a_gfx1030.co",
    "lib/rocblas/library/TensileLibrary_a_gfx1030.dat",
    "lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat",
];

/// Files without which their library goes on.
const SKIPPED: [&str; 2] = ["hipblasltExtOpLibrary.dat", "hipblasltTransform.hsaco"];

#[test]
fn each_file_that_a_library_opens_is_in_the_answer_and_missed() {
    let directory = Directory::rocm();
    assert_eq!(directory.data_files("rocm --gpu gfx1030"), OWN_FILES);
    let other = directory.run("uses rocm --gpu gfx1031").failure();
    other.stdout(contains("rocBLAS ends the program")).stderr(contains("TensileLibrary_lazy_gfx1031.dat"));
    for file in OWN_FILES.iter().filter(|file| !SKIPPED.iter().any(|end| file.ends_with(end))) {
        let (path, aside) = (directory.path("rocm").join(file), directory.path("aside"));
        fs::rename(&path, &aside).unwrap();
        directory.run("uses rocm --gpu gfx1030").failure().stderr(contains(*file).and(contains("does not exist")));
        // Code of another GPU in its place.
        if !file.ends_with(".dat") {
            fs::write(&path, object("gfx1100")).unwrap();
            directory.run("uses rocm --gpu gfx1030").failure().stderr(contains(*file).and(contains("no entry")));
        }
        fs::rename(&aside, &path).unwrap();
    }
}

#[test]
fn a_served_tree_gives_the_target_what_the_source_had() {
    let directory = Directory::rocm();
    directory.run("serve gfx1031 --root rocm --from gfx1030 --dest out").success();
    assert_eq!(directory.data_files("out --gpu gfx1031"), OWN_FILES);
    assert_eq!(directory.data_files("out --gpu gfx1031 --shown gfx1030"), OWN_FILES);
    directory.run("uses out --gpu gfx1031 --shown gfx1031").failure();
    directory.run("serve gfx1031 --root rocm --from gfx1030 --dest own --names own").success();
    let renamed: Vec<String> = OWN_FILES.iter().map(|file| file.replace("gfx1030", "gfx1031")).collect();
    assert_eq!(directory.data_files("own --gpu gfx1031"), renamed);
    directory.run("uses out --gpu gfx1031 --shown gfx9999").failure().stderr(contains("not the name of a GPU"));
}

/// The names are shown to hosts, so files of the source's name are the target's.
#[test]
fn pruning_of_a_served_package_keeps_what_the_shown_name_needs() {
    let directory = Directory::rocm();
    directory.shell("tar -C rocm -cf rocm.tar .");
    directory.run("serve gfx1031 rocm.tar --from gfx1030 --dest out").success();
    for (kept, files) in [("gfx1031", &OWN_FILES[..]), ("gfx1030", &OWN_FILES)] {
        directory.run(&format!("prune out/rocm.tar --keep {kept} -o pruned.tar")).success();
        assert_eq!(directory.data_files(&format!("pruned.tar --gpu {kept}")), files);
        let names = directory.shell("tar tf pruned.tar");
        assert!(!names.contains("gfx1100") && names.contains("hotswap-names.d/rocm.conf"), "{names}");
    }
    directory.run("prune out/rocm.tar --drop gfx1030 -o dropped.tar").success();
    assert_eq!(directory.data_files("dropped.tar --gpu gfx1031"), OWN_FILES);
}

#[test]
fn links_lead_where_the_file_system_leads() {
    let directory = Directory::rocm();
    // A directory of one GPU, all of whose files are links to a store.
    directory.shell(&format!(
        "mkdir store; store=$PWD/store; cd {ROCBLAS}; mv *gfx1030* $store/; cp *_fallback.dat $store/; mkdir gfx1030; \
         for file in $store/*; do ln -s $file gfx1030/; done"
    ));
    let files = directory.data_files("rocm --gpu gfx1030");
    assert!(files.iter().any(|file| file == "lib/rocblas/library/gfx1030/TensileLibrary_a_gfx1030.co"), "{files:?}");
    let code = directory.path(ROCBLAS).join("gfx1030/TensileLibrary_a_gfx1030.co");
    fs::remove_file(&code).unwrap();
    symlink("TensileLibrary_a_gfx1030.co", &code).unwrap();
    directory.run("uses rocm --gpu gfx1030").failure().stderr(contains("TensileLibrary_a_gfx1030.co"));
}

#[test]
fn hostile_trees_are_answered_or_refused_by_name() {
    let directory = Directory::rocm();
    let index = format!("{ROCBLAS}/TensileLibrary_lazy_gfx1030.dat");
    for (name, expected) in [("../../outside", "leads out of the library's directory"), ("missing", "missing.dat")] {
        directory.write(&index, &lazy_index("gfx1030", name, "TensileLibrary_a_fallback"));
        directory.run("uses rocm --gpu gfx1030").failure().stderr(contains(expected));
    }
    directory.write(&index, b"\xdf\xff\xff\xff\xff");
    directory.run("uses rocm --gpu gfx1030").failure().stderr(contains("TensileLibrary_lazy_gfx1030.dat"));
    directory.run("serve gfx1031 --root rocm --from gfx1100 --dest out").failure();
    // As many names as a hostile index can have.
    let names: Vec<Value> = (0..1_000_000).map(|number| node("Placeholder", format!("x{number}").into())).collect();
    directory.write(&index, &encoded(&map(&[("library", Value::Array(names))])));
    directory.run("uses rocm --gpu gfx1030").failure().stderr(contains("999990 more files"));
    symlink("loop", directory.path("rocm/lib/loop")).unwrap();
    symlink("..", directory.path("rocm/lib/up")).unwrap();
    directory.run("uses rocm --gpu gfx1100").success();
    // Names that are not text, and a link whose target is outside.
    fs::write(directory.path("rocm/lib").join(OsStr::from_bytes(b"na\xffme.so")), "x").unwrap();
    symlink("/etc/passwd", directory.path("rocm/lib/outside.so")).unwrap();
    directory.run("uses rocm --gpu gfx1100").stderr(contains("na"));
}

/// rocFFT compiles kernels for the name that it sees, so it is refused for a pair that is not identical: under its own name, as a
/// copy under another name, and with another SONAME.
#[test]
fn libraries_are_recognised_by_their_functions() {
    let Some(bench) = Workbench::new("libraries_are_recognised_by_their_functions") else { return };
    bench.write("code", &bundle(&["gfx1102"]));
    let section = "__asm__(\".section .hip_fatbin,\\\"a\\\"\\n.balign 4096\\n.incbin \\\"code\\\"\\n.text\");\n";
    for (file, soname, function, is_refused) in [
        ("librocfft.so.0.1", "librocfft.so.0", "rocfft_plan_create", true),
        ("librocfft-1f7b8bcc.so.0.1", "librocfft-1f7b8bcc.so.0", "rocfft_plan_create", true),
        ("libcopy.so", "librocfft.so.0", "other", true),
        ("libcopy.so", "libcopy.so", "rocfft_plan_create", true),
        ("libcopy.so", "libcopy.so", "other", false),
    ] {
        bench.write("x.c", format!("{section}int {function}(void) {{ return 0; }}\n").as_bytes());
        bench.run(&format!("rm -rf root out; mkdir root; gcc -shared -fPIC -Wl,-soname,{soname} x.c -o root/{file}"));
        let mut command = Command::new(made::installed());
        command.current_dir(bench.directory());
        let run = command.args("serve gfx1103 --root root --from gfx1102 --dest out".split(' ')).assert();
        match is_refused {
            true => run.failure().stderr(contains("HS0421").and(contains("rocFFT")).and(contains("at run time"))),
            // The pair itself is served; only this library has no wrapper by which its code could move.
            false => run.failure().stderr(contains("HS0402").and(contains("rocFFT").not())),
        };
    }
}

/// Compressed indices, and tables of numbers for one GPU, are files of their libraries.
#[test]
fn layouts_of_2026_are_read_and_served() {
    let directory = Directory::rocm();
    let packed = |bytes: Vec<u8>| {
        let mut packed = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::default());
        packed.write_all(&bytes).unwrap();
        packed.finish().unwrap()
    };
    for file in OWN_FILES.iter().filter(|file| file.contains("rocblas") && file.ends_with(".dat")) {
        let path = format!("rocm/{file}");
        directory.write(&format!("{path}.zlib"), &packed(fs::read(directory.path(&path)).unwrap()));
        fs::remove_file(directory.path(&path)).unwrap();
    }
    let table = Value::Map(vec![(7.into(), "TensileLibrary_b_gfx1030".into())]);
    directory.write(&format!("{HIPBLASLT}/TensileLiteLibrary_lazy_gfx1030_Mapping.dat"), &encoded(&table));
    let files = directory.data_files("rocm --gpu gfx1030");
    for name in ["rocblas/library/TensileLibrary_a_gfx1030.dat.zlib", "TensileLiteLibrary_lazy_gfx1030_Mapping.dat"] {
        assert!(files.iter().any(|file| file.ends_with(name)), "{name}: {files:?}");
    }
    directory.run("serve gfx1031 --root rocm --from gfx1030 --dest out").success();
    assert_eq!(directory.data_files("out --gpu gfx1031"), files);
    // Under names of their own the indices change, which a compressed one cannot yet: the library is refused by name.
    let own = directory.run("serve gfx1031 --root rocm --from gfx1030 --dest own --names own").failure();
    own.stderr(contains(".dat.zlib")).stdout(contains("hipBLASLt").and(contains("served")));
    let missing = directory.path(&format!("{ROCBLAS}/TensileLibrary_a_gfx1030.dat.zlib"));
    fs::write(&missing, b"no stream").unwrap();
    directory.run("uses rocm --gpu gfx1030").failure().stderr(contains("TensileLibrary_a_gfx1030.dat.zlib"));
}

/// A library whose code is in archives: the first path that exists, by the GPU's own name.
#[test]
fn references_to_archives_are_followed() {
    let Some(bench) = Workbench::new("references_to_archives_are_followed") else { return };
    kpacked_library(&bench, "lib/librand.so");
    let uses = |gpu: &str| {
        let mut command = Command::new(made::installed());
        command.current_dir(bench.directory()).args(["uses", "root", "--gpu", gpu]).assert()
    };
    uses("gfx1030").failure().stderr(contains(".kpack/rand_gfx1030.kpack").and(contains("does not exist")));
    bench.write("root/.kpack/rand_gfx1030.kpack", &kernel_archive("lib/librand.so#0", "gfx1030", &object("gfx1030")));
    uses("gfx1030").success().stdout(contains("reference of lib/librand.so"));
    uses("gfx1031").failure().stderr(contains("rand_gfx1031.kpack"));
    bench.write("root/.kpack/rand_gfx1030.kpack", &kernel_archive("lib/libother.so#0", "gfx1030", &object("gfx1030")));
    uses("gfx1030").failure().stderr(contains("the archive has nothing for lib/librand.so"));
}

/// A library and its archives are one unit: the package is listed and pruned by its archives.
#[test]
fn packages_with_kernel_archives_are_listed_and_pruned() {
    let Some(bench) = Workbench::new("packages_with_kernel_archives_are_listed_and_pruned") else { return };
    kpacked_library(&bench, "lib/librand.so");
    for gpu in GPUS {
        let archive = kernel_archive("lib/librand.so#0", gpu, &object(gpu));
        bench.write(&format!("root/.kpack/rand_{gpu}.kpack"), &archive);
    }
    bench.run("tar -C root -cf a.tar .");
    let hotswap = |words: &str| {
        let mut command = Command::new(made::installed());
        command.current_dir(bench.directory()).args(words.split(' ')).assert()
    };
    hotswap("list a.tar").success().stdout(contains("rand_gfx1030.kpack").and(contains("rand_gfx1100.kpack")));
    hotswap("prune a.tar --keep gfx1030 -o b.tar").success();
    assert_eq!(bench.run("tar tf b.tar | grep -v /$ | sort"), "./.kpack/rand_gfx1030.kpack\n./lib/librand.so\n");
    hotswap("uses b.tar --gpu gfx1030").success();
    hotswap("uses b.tar --gpu gfx1100").failure().stderr(contains("rand_gfx1100.kpack"));
}

/// A package with the libraries, and one with the code of each GPU: asked about together, and the latter served alone.
#[test]
fn packages_of_one_gpu_belong_to_the_package_of_the_host() {
    let Some(bench) = Workbench::new("packages_of_one_gpu_belong_to_the_package_of_the_host") else { return };
    kpacked_library(&bench, "lib/librand.so");
    bench.run("tar -C root --exclude .kpack -cf host.tar .");
    for gpu in GPUS {
        let archive = kernel_archive("lib/librand.so#0", gpu, &object(gpu));
        bench.run(&format!("mkdir -p {gpu}/.kpack"));
        bench.write(&format!("{gpu}/.kpack/rand_{gpu}.kpack"), &archive);
        bench.run(&format!("tar -C {gpu} -cf {gpu}.tar ."));
    }
    let hotswap = |words: &str| {
        let mut command = Command::new(made::installed());
        command.current_dir(bench.directory()).args(words.split(' ')).assert()
    };
    hotswap("uses --together host.tar gfx1030.tar gfx1100 --gpu gfx1030,gfx1100").success();
    let missing = hotswap("uses --together host.tar gfx1030.tar --gpu gfx1030,gfx1100").code(13);
    missing.stderr(contains("rand_gfx1100.kpack").and(contains("HS0446")));
    hotswap("serve gfx1031 gfx1030.tar --from gfx1030 --dest out").success();
    hotswap("uses --together host.tar out/gfx1030.tar --gpu gfx1031,gfx1030").success();
    hotswap("uses --together host.tar x.c --gpu gfx1030").code(2).stderr(contains("for packages and directories"));
}

/// Makes `root/lib/librand.so`, whose code is in archives.
fn kpacked_library(bench: &Workbench, name: &str) {
    bench.write("reference", &archive_reference(name));
    bench.write(
        "x.c",
        b"__asm__(\".section .rocm_kpack_ref,\\\"a\\\"\\n.incbin \\\"reference\\\"\\n.text\");\nint f(void) { return 0; }\n",
    );
    bench.run("mkdir -p root/lib root/.kpack && gcc -shared -fPIC x.c -o root/lib/librand.so");
}

/// A program for Windows with these sections, as long as linkers make it: no code, no directories.
fn windows_library(sections: &[(&str, &[u8])]) -> Vec<u8> {
    const ALIGNMENT: usize = 512;
    let mut file = vec![0; 64];
    file[..2].copy_from_slice(b"MZ");
    file[60] = 64;
    file.extend(b"PE\0\0\x64\x86");
    file.extend((sections.len() as u16).to_le_bytes());
    file.extend([0; 12]);
    file.extend([240, 0, 0x22, 0x20]);
    let mut header = [0u8; 240];
    header[..2].copy_from_slice(&[0x0b, 2]);
    for (at, value) in [(32, 4096u32), (36, 512), (56, 0x10000), (60, 1024), (108, 16)] {
        header[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    file.extend(header);
    let (mut at, mut address) = (1024, 4096);
    for (name, content) in sections {
        let size = content.len().next_multiple_of(ALIGNMENT);
        file.extend(name.bytes().chain([0; 8]).take(8));
        let numbers = [content.len(), address, size, at, 0, 0, 0, 0x4000_0040];
        file.extend(numbers.iter().flat_map(|number| (*number as u32).to_le_bytes()));
        (at, address) = (at + size, address + 4096);
    }
    file.resize(1024, 0);
    for (_, content) in sections {
        file.extend_from_slice(content);
        file.resize(file.len().next_multiple_of(ALIGNMENT), 0);
    }
    file
}

/// The reference of a library in `bin` or `lib` to the archives of `.kpack`.
fn archive_reference(name: &str) -> Vec<u8> {
    let paths = Value::Array(vec!["../.kpack/rand_@GFXARCH@.kpack".into()]);
    encoded(&map(&[("kernel_name", name.into()), ("kpack_search_paths", paths)]))
}

/// Names of sections in PE files have 8 characters.
#[test]
fn windows_libraries_name_their_kernel_archives() {
    let wrapper = [b"KPIH\x01\0\0\0".as_slice(), &[0; 16]].concat();
    let reference = archive_reference("bin/rocrand.dll");
    for (section, is_known) in [(".kpackrf", true), (".kpackrx", false)] {
        let directory = Directory(TempDir::new().unwrap());
        let library = windows_library(&[(".text", &[0xc3; 16]), (".hipFatB", &wrapper), (section, &reference)]);
        directory.write("root/bin/rocrand.dll", &library);
        directory.shell("tar cf host.tar -C root bin");
        for gpu in GPUS {
            let archive = kernel_archive("bin/rocrand.dll", gpu, &object(gpu));
            directory.write(&format!("root/.kpack/rand_{gpu}.kpack"), &archive);
        }
        directory.shell("tar cf all.tar -C root bin .kpack");
        let listed = directory.run("list root/bin/rocrand.dll").code(12);
        let listed_alone = directory.run("list host.tar").code(12);
        if !is_known {
            // The rule of the model taken away: nothing else finds the archives.
            directory.run("uses root --gpu gfx1030").stdout(contains("rand_gfx1030.kpack").not());
            continue;
        }
        let archives = || contains("bin/rocrand.dll of ../.kpack/rand_@GFXARCH@.kpack");
        listed.stderr(archives().and(contains("\n").count(1)));
        listed_alone.stderr(archives().and(contains("--together")));
        directory.run("uses root --gpu gfx1030").success().stdout(contains("rand_gfx1030.kpack"));
        directory.run("list all.tar").success().stdout(contains("rand_gfx1100.kpack"));
        directory.run("prune all.tar --keep gfx1030 -o small.tar").success();
        assert_eq!(
            directory.shell("tar tf small.tar | grep -v /$ | sort"),
            ".kpack/rand_gfx1030.kpack\nbin/rocrand.dll\n"
        );
        directory.run("uses small.tar --gpu gfx1030").success();
        directory.run("uses small.tar --gpu gfx1100").failure().stderr(contains("rand_gfx1100.kpack"));
        let reason = || contains("HS0421").and(contains("rocrand.dll")).and(contains("for Windows"));
        for tree in ["root", "root/bin"] {
            directory.run(&format!("serve gfx1031 --root {tree} --dest served")).failure().stderr(reason());
        }
        let library = windows_library(&[(".hip_fat", &bundle(&["gfx1030"]))]);
        directory.write("code/rocrand.dll", &library);
        directory.run("serve gfx1031 --root code --dest served").failure().stderr(reason());
    }
}

/// A reference that is damaged, and one in a library of Linux, in packages without the archives.
#[test]
fn hosts_of_kernel_archives_are_listed_with_them() {
    let directory = Directory(TempDir::new().unwrap());
    let reference = archive_reference("lib/librand.so");
    directory.write("lib/librand.so", &made::section(".rocm_kpack_ref", &reference, 1, BinaryFormat::Elf));
    directory.write("lib/text", b"text");
    directory.shell("tar czf host.tar.gz lib");
    let archives = || contains("lib/librand.so of ../.kpack/rand_@GFXARCH@.kpack");
    directory.run("list lib/librand.so").code(12).stderr(archives());
    directory.run("list lib/librand.so --format json").code(12).stdout(archives());
    directory.run("list host.tar.gz").code(12).stderr(archives().and(contains("lib/librand.so loads")));
    directory.write("lib/librand.so", &made::section(".rocm_kpack_ref", &reference[..20], 1, BinaryFormat::Elf));
    directory.run("list lib/librand.so").code(12).stderr(contains("the reference to kernel archives"));
}

/// Images of offload binaries are what their entries state, also in a container inside of an image.
#[test]
fn images_of_offload_binaries_are_verified() {
    let directory = Directory(TempDir::new().unwrap());
    let image = |image_kind: u16, data: Vec<u8>| {
        let strings = vec![("arch".into(), "gfx1030".into()), ("triple".into(), "amdgcn-amd-amdhsa".into())];
        OffloadImage { image_kind, offload_kind: 4, flags: 0, strings, data: data.into() }
    };
    let binary = |images: Vec<OffloadImage<'static>>| {
        OffloadBinary { version: 2, compressed: false, images }.to_bytes().unwrap()
    };
    let nested = |data: Vec<u8>| binary(vec![image(1, binary(vec![image(1, data)]))]);
    let mut cut = nested(object("gfx1030"));
    // The size of the inner binary.
    let inner = cut[8..].windows(4).position(|at| at == b"\x10\xff\x10\xad").unwrap() + 8;
    cut[inner + 8..inner + 16].copy_from_slice(&u64::MAX.to_le_bytes());
    for (bytes, expected) in [
        (binary(vec![image(1, object("gfx1030"))]), None),
        (binary(vec![image(2, made::bitcode("x"))]), None),
        (nested(object("gfx1030")), None),
        (binary(vec![image(1, b"abcd".to_vec())]), Some("its 4 bytes are not the object")),
        (nested(b"abcd".to_vec()), Some("its 4 bytes are not the object")),
        (cut, Some("claims")),
        (binary(vec![image(6, object("gfx1030"))]), Some("not the SPIR-V module")),
    ] {
        directory.write("x.bin", &bytes);
        let verified = directory.run("verify x.bin");
        match expected {
            None => verified.success().stderr(contains("damaged").not()),
            Some(expected) => verified.failure().stderr(contains(expected)),
        };
    }
}
