//! Comparison with the tools in general use: clang's bundler, objdump, offload-binary, the host linkers, comgr.
//!
//! `HOTSWAP_TEST_ROOT` names the userland; without it there is nothing to compare with, and each test reports that.

mod common;

use common::{HOST, bytes_with, id, object};
use hotswap_bundle::linked::BundleReplacement;
use hotswap_bundle::{
    Bundle, Compression, CompressionMethod, ContainerForm, HashState, OffloadBinary, embed_containers, find_containers,
    host_object, parse, parse_lenient, walk_fatbin,
};
use hotswap_report::codes;
use hotswap_userland::Workbench;
use std::collections::BTreeSet;
use std::io::Write;

/// Entry IDs that the bundler of that version lists.
fn listed(bench: &Workbench, version: u32, file: &str) -> BTreeSet<String> {
    let script = format!("clang-offload-bundler-{version} -list -type=o -input={file}");
    bench.run(&script).lines().map(str::to_owned).collect()
}

fn ids(bundle: &Bundle<'_>) -> BTreeSet<String> {
    bundle.entries().iter().map(|entry| entry.id.clone()).collect()
}

#[test]
fn clang_bundles_are_laid_out_anew_byte_by_byte() {
    let Some(bench) = Workbench::new("clang_bundles_are_laid_out_anew_byte_by_byte") else { return };
    bench.write("a", &object(3, 9001));
    bench.write("b", &object(5, 100));
    let targets = format!("{HOST},{},{}", id("gfx1030"), id("gfx900"));
    for version in &bench.versions {
        for (align, compress) in [("4096", ""), ("1", ""), ("64", ""), ("4096", "-compress")] {
            bench.run(&format!(
                "clang-offload-bundler-{version} -type=o -bundle-align={align} {compress} -targets={targets} \
                 -input=/dev/null -input=a -input=b -output=x"
            ));
            let bytes = bench.read("x");
            let (bundle, size) = parse(&bytes).unwrap();
            assert_eq!(size, bytes.len());
            assert_eq!(&*bundle.entries()[1].data, object(3, 9001));
            let mut again = bundle.clone();
            again.set_compression(None);
            if compress.is_empty() {
                assert_eq!(again.to_plain_bytes().unwrap(), bytes, "clang {version}, -bundle-align={align}");
            } else {
                assert_eq!(bundle.compression(), Some(Compression::default()));
                assert_eq!(bundle.hash(), HashState::Right);
                bench.write("plain", &again.to_bytes().unwrap());
                assert_eq!(listed(&bench, *version, "plain"), ids(&bundle));
                // Same method, level and parameters; the version of libzstd may differ.
                again.set_compression(bundle.compression());
                let packed = again.to_bytes().unwrap();
                assert!(packed.len().abs_diff(bytes.len()) * 50 < bytes.len(), "{} {}", packed.len(), bytes.len());
            }
        }
    }
}

#[test]
fn every_bundler_reads_what_we_write() {
    let Some(bench) = Workbench::new("every_bundler_reads_what_we_write") else { return };
    for form in common::forms() {
        let bytes = bytes_with(form);
        let (mut bundle, _) = parse(&bytes).unwrap();
        bundle.push(id("gfx1031"), object(7, 5000)).unwrap();
        bundle.set_record(Some(br#"{"schema":1}"#.to_vec()));
        bench.write("x", &bundle.to_bytes().unwrap());
        for version in &bench.versions {
            assert_eq!(listed(&bench, *version, "x"), ids(&bundle), "{form:?}, clang {version}");
            for entry in bundle.entries().iter().filter(|entry| !entry.data.is_empty()) {
                let words = format!("-unbundle -type=o -input=x -targets={} -output=out", entry.id);
                bench.run(&format!("clang-offload-bundler-{version} {words}"));
                assert_eq!(bench.read("out"), *entry.data);
            }
        }
    }
}

/// One possible oddity of a compressed bundle.
struct Odd {
    name: &'static str,
    bytes: Vec<u8>,
    /// Whether we read it, with `parse_lenient` as far as the end of the first bundle.
    ours: bool,
    /// Whether the bundlers do: 22, and 23 or later.
    theirs: (bool, bool),
}

fn odd_inputs() -> Vec<Odd> {
    let v3 = bytes_with(Some(Compression::default()));
    let plain = bytes_with(None);
    let changed = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = v3.clone();
        change(&mut bytes);
        bytes
    };
    // Another payload after a V3 header with corrected sizes and hash.
    let with_payload = |payload: Vec<u8>| {
        let mut bytes = v3[..32].to_vec();
        bytes[8..16].copy_from_slice(&(32 + payload.len() as u64).to_le_bytes());
        bytes.extend(payload);
        bytes
    };
    let v1 = |payload: &[u8], method: u16| {
        let size = (plain.len() as u32).to_le_bytes();
        [b"CCOB\x01\0", &method.to_le_bytes()[..], &size, &v3[24..32], payload].concat()
    };
    let zlib = bytes_with(Some(Compression { version: 3, method: CompressionMethod::Zlib, level: None }));
    let streamed = |window: u32| {
        let mut encoder = zstd::stream::Encoder::new(Vec::new(), 3).unwrap();
        encoder.window_log(window).unwrap();
        encoder.write_all(&plain).unwrap();
        encoder.finish().unwrap()
    };
    let skippable = [&[0x53, 0x2a, 0x4d, 0x18, 4, 0, 0, 0][..], b"CCOB", &v3[32..]].concat();
    let odd = |name, bytes, ours, theirs| Odd { name, bytes, ours, theirs };
    vec![
        odd("as it should be", v3.clone(), true, (true, true)),
        odd("V1 with zstd", v1(&v3[32..], 1), true, (true, true)),
        odd("V1 with zlib", v1(&zlib[32..], 0), true, (true, true)),
        odd("wrong hash", changed(&|bytes| bytes[24] ^= 1), true, (true, true)),
        odd("total size 5", changed(&|bytes| bytes[8..16].copy_from_slice(&5u64.to_le_bytes())), false, (true, true)),
        odd("padding behind the bundle", changed(&|bytes| bytes.resize(8192, 0)), true, (false, true)),
        odd("two bundles", [v3.clone(), v3.clone()].concat(), true, (false, true)),
        odd("leading skippable frame with a magic", with_payload(skippable), true, (true, true)),
        odd("version 4", changed(&|bytes| bytes[4] = 4), false, (false, false)),
        odd("long window", with_payload(streamed(31)), true, (true, true)),
        odd("no content size", with_payload(streamed(20)), true, (true, true)),
        odd("unknown method", changed(&|bytes| bytes[6] = 2), false, (false, false)),
    ]
}

#[test]
fn odd_input_is_read_as_by_others_or_refused() {
    let Some(bench) = Workbench::new("odd_input_is_read_as_by_others_or_refused") else { return };
    for odd in odd_inputs() {
        let read = parse_lenient(&odd.bytes);
        assert_eq!(read.is_ok(), odd.ours, "{}: {:?}", odd.name, read.err());
        bench.write("odd", &odd.bytes);
        for version in &bench.versions {
            let output = bench.shell(&format!("clang-offload-bundler-{version} -list -type=o -input=odd"));
            let expected = if *version == 22 { odd.theirs.0 } else { odd.theirs.1 };
            assert_eq!(output.status.success(), expected, "{}: clang {version}", odd.name);
            // Input that both accept, both read alike.
            let listed: BTreeSet<String> = String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect();
            if let (true, Ok((bundle, _))) = (output.status.success(), parse_lenient(&odd.bytes)) {
                assert_eq!(listed, ids(&bundle), "{}: clang {version}", odd.name);
            }
        }
    }
    let two = odd_inputs().into_iter().find(|odd| odd.name == "two bundles").unwrap().bytes;
    assert_eq!(walk_fatbin(&two).collect::<Result<Vec<_>, _>>().unwrap().len(), 2);
}

/// The declarations that clang's kernel stubs need; enough to compile without HIP's headers.
const PRELUDE: &str = "typedef int hipError_t; typedef struct ihipStream_t *hipStream_t;
struct dim3 { unsigned x, y, z; };
extern \"C\" hipError_t hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, hipStream_t);
";

const KERNELS: [(&str, &str); 2] = [
    ("k1.hip", "__attribute__((global)) void k1(int *p) { p[0] += 1; }\n"),
    ("k2.hip", "__attribute__((global)) void k2(int *p) { p[0] *= 3; }\nint main() { return 0; }\n"),
];

/// Arguments for a compiler that needs neither headers nor a runtime to compile such kernels.
fn compiler(version: u32) -> String {
    let rocm = if version > 22 { "${ROCM:+--rocm-path=$ROCM}" } else { "" };
    let words = "-nogpuinc -nogpulib -Wno-unused-command-line-argument --offload-arch=gfx1030,gfx900";
    format!("clang++-{version} {rocm} {words}")
}

#[test]
fn containers_of_real_objects_hold_what_objdump_says() {
    let Some(bench) = Workbench::new("containers_of_real_objects_hold_what_objdump_says") else { return };
    KERNELS.iter().for_each(|(name, text)| bench.write(name, format!("{PRELUDE}{text}").as_bytes()));
    for version in bench.versions.clone() {
        let clang = compiler(version);
        bench.run(&format!(
            "set -e; {clang} -c k1.hip -o plain.o; {clang} --offload-compress -c k1.hip -o packed.o
             {clang} -fgpu-rdc --offload-new-driver -c k1.hip -o rdc.o
             llvm-ar-{version} rc --format=gnu all.a plain.o packed.o rdc.o"
        ));
        for (name, form) in [("plain.o", ContainerForm::Bundle), ("packed.o", ContainerForm::CompressedBundle(3))] {
            let bytes = bench.read(name);
            let contents = find_containers(&bytes);
            assert_eq!(contents.problems, []);
            assert_eq!(contents.found.iter().map(|found| found.form).collect::<Vec<_>>(), [form], "clang {version}");
            let images = contents.found[0].read().unwrap().images;
            let targets: Vec<_> = images.iter().filter_map(|image| image.id.as_deref()?.rsplit('-').next()).collect();
            assert!(targets.contains(&"gfx1030") && targets.contains(&"gfx900"), "{targets:?}");
        }
        let bytes = bench.read("rdc.o");
        let found = find_containers(&bytes).found;
        let ids: Vec<_> =
            found.iter().flat_map(|found| found.read().unwrap().images).map(|image| image.id.unwrap()).collect();
        let said = bench.run(&format!("llvm-objdump-{version} --offloading rdc.o"));
        assert_eq!(said.matches("OFFLOADING IMAGE").count(), ids.len());
        assert!(["gfx1030", "gfx900"].iter().all(|gpu| ids.iter().any(|id| id.ends_with(gpu)) && said.contains(gpu)));
        let archive = bench.read("all.a");
        let members: BTreeSet<_> =
            find_containers(&archive).found.iter().flat_map(|found| found.place.members.clone()).collect();
        assert_eq!(members, ["packed.o", "plain.o", "rdc.o"].map(str::to_owned).into());
    }
}

/// A program of two translation units whose objects both have records: the walks of all readers skip our record blocks.
#[test]
fn bundles_with_records_stand_one_behind_another() {
    let Some(bench) = Workbench::new("bundles_with_records_stand_one_behind_another") else { return };
    KERNELS.iter().for_each(|(name, text)| bench.write(name, format!("{PRELUDE}{text}").as_bytes()));
    let last = *bench.versions.last().unwrap();
    for compress in ["", "--offload-compress"] {
        let clang = compiler(last);
        for name in ["k1", "k2"] {
            bench.run(&format!("{clang} {compress} -c {name}.hip -o {name}.o"));
            let object = bench.read(&format!("{name}.o"));
            let (mut bundle, _) = parse(host_object::fatbin_of(&object).unwrap().unwrap()).unwrap();
            let made = bundle.entries()[1].id.replace("gfx900", "gfx902").replace("gfx1030", "gfx1031");
            bundle.push(made, bundle.entries()[1].data.clone()).unwrap();
            bundle.set_record(Some(br#"{"schema":1}"#.to_vec()));
            let changed = host_object::replace_fatbin(&object, &bundle.to_bytes().unwrap()).unwrap();
            bench.write(&format!("{name}.o"), &changed);
        }
        bench.run(&format!(
            "ld.lld-{last} -r k1.o k2.o -o both.o && objcopy -O binary --only-section=.hip_fatbin both.o all"
        ));
        let section = bench.read("all");
        let walked: Vec<_> = walk_fatbin(&section).collect::<Result<_, _>>().unwrap();
        assert_eq!(walked.len(), 2);
        assert!(walked.iter().all(|found| found.bundle.record().is_some() && found.bundle.entries().len() == 4));
        for version in bench.versions.iter().filter(|version| **version > 22) {
            let said = bench.run(&format!("clang-offload-bundler-{version} -list -type=o -input=all"));
            assert_eq!(said.matches("amdgcn").count(), 6, "clang {version} {compress}");
        }
        let said = bench.run(&format!("cp both.o all.o && llvm-objdump-{last} --offloading all.o"));
        assert!(said.matches("amdgcn").count() >= 6, "{said}");
    }
}

#[test]
fn offload_binaries_are_written_as_llvm_does() {
    let Some(bench) = Workbench::new("offload_binaries_are_written_as_llvm_does") else { return };
    bench.write("a.o", &object(3, 1001));
    bench.write("b.o", &object(5, 98));
    let image = |file: &str, arch: &str| format!("--image=file={file},triple=amdgcn-amd-amdhsa,arch={arch},kind=hip");
    for version in bench.versions.clone() {
        let images = format!("{} {}", image("a.o", "gfx1030"), image("b.o", "gfx90a:xnack+"));
        bench.run(&format!("llvm-offload-binary-{version} -o x {images}"));
        let bytes = bench.read("x");
        let mut at = 0;
        let mut count = 0;
        while at < bytes.len() {
            let (binary, size) = OffloadBinary::parse(&bytes[at..]).unwrap();
            assert_eq!(binary.to_bytes().unwrap(), bytes[at..at + size], "clang {version}");
            count += binary.images.len();
            at += size;
        }
        assert_eq!(count, 2);
        if version < 24 {
            continue;
        }
        for method in ["zstd", "zlib"] {
            bench.run(&format!("llvm-offload-binary-{version} --compress --compression-format={method} -o y {images}"));
            let packed = bench.read("y");
            let (binary, _) = OffloadBinary::parse(&packed).unwrap();
            assert!(binary.compressed);
            assert_eq!(&*binary.images[0].data, object(3, 1001));
        }
    }
}

#[test]
fn a_changed_wrapper_object_links_with_every_host_linker() {
    let Some(bench) = Workbench::new("a_changed_wrapper_object_links_with_every_host_linker") else { return };
    KERNELS.iter().for_each(|(name, text)| bench.write(name, format!("{PRELUDE}{text}").as_bytes()));
    // Replaces the HIP runtime, which these programs never reach.
    bench.write("runtime.c", b"void *__hipRegisterFatBinary(void *p) { return p; } void __hipUnregisterFatBinary(void *p) {}
        int __hipRegisterFunction() { return 0; } int __hipRegisterVar() { return 0; } int __hipRegisterManagedVar() { return 0; }
        int __hipRegisterSurface() { return 0; } int __hipRegisterTexture() { return 0; }
        int hipLaunchKernel() { return 0; } int __hipPopCallConfiguration() { return 0; } int __hipPushCallConfiguration() { return 0; }\n");
    bench.run("cc -c runtime.c");
    for version in bench.versions.clone() {
        for compress in ["", "--offload-compress"] {
            let clang = format!("{} {compress} -fgpu-rdc --offload-new-driver", compiler(version));
            bench.run(&format!(
                "set -e; rm -f *wrapper*; {clang} -c k1.hip -o k1.o; {clang} -c k2.hip -o k2.o
                 {clang} --hip-link -no-hip-rt k1.o k2.o runtime.o -o x -Wl,--save-temps --save-temps; mv x.hip.image.wrapper.o w.o"
            ));
            let wrapper = bench.read("w.o");
            let fatbin = host_object::fatbin_of(&wrapper).unwrap().unwrap();
            let (mut bundle, _) = parse(fatbin).unwrap();
            let made = bundle.entries()[1].id.replace("gfx900", "gfx902");
            bundle.push(made.as_str(), object(9, 40_000)).unwrap();
            let changed = host_object::replace_fatbin(&wrapper, &bundle.to_bytes().unwrap()).unwrap();
            bench.write("w.o", &changed);
            for linker in ["bfd", "gold", "lld", "mold"] {
                bench.run(&format!(
                    "set -e; clang++-{version} -fuse-ld={linker} w.o k1.o k2.o runtime.o -o linked; ./linked
                     objcopy -O binary --only-section=.hip_fatbin linked fatbin
                     clang-offload-bundler-{version} -unbundle -type=o -input=fatbin -targets={made} -output=out"
                ));
                assert_eq!(bench.read("out"), object(9, 40_000), "clang {version}, {linker}");
            }
        }
    }
}

const EMBEDDED: &str = "
    .section SECTION
    .p2align 12
    .globl image
image:
    .incbin \"fatbin\"
    .data
    .quad image
";

#[test]
fn an_aarch64_object_links_after_the_exchange() {
    let Some(bench) = Workbench::new("an_aarch64_object_links_after_the_exchange") else { return };
    bench.write("fatbin", &bytes_with(None));
    bench.write("a.s", EMBEDDED.replace("SECTION", ".hip_fatbin,\"a\",@progbits").as_bytes());
    let version = bench.versions[0];
    bench.run(&format!("clang-{version} --target=aarch64-linux-gnu -c a.s"));
    let new = bytes_with(Some(Compression::default()));
    bench.write("a.o", &host_object::replace_fatbin(&bench.read("a.o"), &new).unwrap());
    bench.run(&format!("ld.lld-{version} -shared a.o -o a.so"));
    let library = bench.read("a.so");
    let contents = find_containers(&library);
    assert_eq!((contents.found.len(), contents.found[0].bytes, &contents.problems[..]), (1, &new[..], &[][..]));
}

#[test]
fn relocations_that_cannot_be_checked_are_refused() {
    let Some(bench) = Workbench::new("relocations_that_cannot_be_checked_are_refused") else { return };
    bench.write("fatbin", &bytes_with(None));
    bench.write("a.s", EMBEDDED.replace("SECTION", ".hip_fatbin,\"a\",@progbits").as_bytes());
    for (words, is_fine) in [("", true), ("-Wa,--crel,--allow-experimental-crel", false)] {
        bench.run(&format!("clang-{} --target=x86_64-linux-gnu {words} -c a.s", bench.versions[0]));
        let made = host_object::replace_fatbin(&bench.read("a.o"), b"new");
        assert_eq!(made.as_ref().err().map(|error| error.code), (!is_fine).then_some(codes::NO_PLACE));
    }
}

#[test]
fn windows_objects_and_images_are_read() {
    let Some(bench) = Workbench::new("windows_objects_and_images_are_read") else { return };
    let fatbin = bytes_with(Some(Compression::default()));
    bench.write("fatbin", &fatbin);
    bench.write("a.s", EMBEDDED.replace("SECTION", ".hip_fatbin,\"dr\"").as_bytes());
    let version = bench.versions[0];
    bench.run(&format!("clang-{version} --target=x86_64-pc-windows-msvc -c a.s -o a.obj"));
    bench.run(&format!("lld-link-{version} /dll /noentry /export:image,DATA /out:a.dll a.obj"));
    for name in ["a.obj", "a.dll"] {
        let bytes = bench.read(name);
        let contents = find_containers(&bytes);
        assert_eq!(
            (contents.found.len(), contents.found[0].bytes, &contents.problems[..]),
            (1, &fatbin[..], &[][..]),
            "{name}"
        );
    }
}

#[test]
fn comgr_finds_what_we_write() {
    let Some(bench) = Workbench::new("comgr_finds_what_we_write") else { return };
    bench.build_lookup();
    for form in common::forms() {
        let bytes = bytes_with(form);
        let (mut bundle, _) = parse(&bytes).unwrap();
        bundle.push(id("gfx1031"), object(7, 5000)).unwrap();
        bundle.set_record(Some(br#"{"schema":1}"#.to_vec()));
        bench.write("x", &bundle.to_bytes().unwrap());
        for (target, data) in [("gfx1030", object(3, 9001)), ("gfx1031", object(7, 5000))] {
            bench.run(&format!("./lookup -o out x amdgcn-amd-amdhsa--{target}"));
            assert_eq!(bench.read("out"), data, "{form:?}");
        }
        assert_eq!(bench.shell("./lookup x amdgcn-amd-amdhsa--gfx1032").status.code(), Some(1));
    }
}

/// An object for Windows whose fat binary has grown: LLVM's tools read it, and its wrapper points to the new bundle in
/// the DLL that is linked from it.
#[test]
fn grown_fat_binaries_of_windows_objects_are_linked() {
    use object::{Object, ObjectSection};
    let Some(bench) = Workbench::new("grown_fat_binaries_of_windows_objects_are_linked") else { return };
    bench.write("k1.hip", format!("{PRELUDE}{}int zeros[70000];\n", KERNELS[0].1).as_bytes());
    for version in bench.versions.clone() {
        let clang = compiler(version);
        for compress in ["", "--offload-compress"] {
            // Without optimisation clang 22 to 24 crash on device code for Windows.
            bench.run(&format!("{clang} -O1 --target=x86_64-pc-windows-msvc {compress} -c k1.hip -o k1.obj"));
            let object = bench.read("k1.obj");
            let found = &find_containers(&object).found[0];
            // The same content again has the checksum that clang wrote.
            let same = BundleReplacement { offset: found.place.file_offset, new: found.bytes.to_vec().into() };
            bench.write("same.obj", &embed_containers(&object, &[same]).unwrap());
            let symbols = |file: &str| bench.run(&format!("llvm-readobj-{version} --symbols {file} | grep -v File:"));
            assert_eq!(symbols("same.obj"), symbols("k1.obj"), "clang {version}");
            let (mut bundle, _) = parse(found.bytes).unwrap();
            bundle.push(id("gfx1031"), object_noise(40_000)).unwrap();
            let new = bundle.to_bytes().unwrap().into_owned();
            let exchange = BundleReplacement { offset: found.place.file_offset, new: new.clone().into() };
            let grown = embed_containers(&object, &[exchange]).unwrap();
            bench.write("k1.obj", &grown);
            let told = bench.run(&format!("llvm-readobj-{version} --sections --symbols k1.obj 2>&1"));
            let length = format!("Length: {}", new.len());
            assert!(told.contains(&length) && !told.contains("warning"), "clang {version}: {told}");
            let link = "/dll /noentry /force:unresolved /out:k1.dll k1.obj";
            bench.run(&format!("lld-link-{version} {link} 2>/dev/null"));
            let library = bench.read("k1.dll");
            let library = object::File::parse(&*library).unwrap();
            let section = |name: &str| library.sections().find(|section| section.name() == Ok(name)).unwrap();
            assert!(section(".hip_fat").data().unwrap().starts_with(&new), "clang {version}");
            let wrapper = section(".hipFatB").data().unwrap();
            assert_eq!(wrapper[8..16], section(".hip_fat").address().to_le_bytes(), "clang {version}");
        }
    }
}

/// Incompressible bytes after the start of a code object.
fn object_noise(size: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut bytes = object(1, 0);
    bytes.extend((0..size).map(|_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    }));
    bytes
}
