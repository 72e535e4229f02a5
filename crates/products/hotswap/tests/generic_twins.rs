//! Generic targets for code object V4, judged by what clang makes as V6 of the same source: equal where equal is due.
//!
//! Assembly states its metadata itself, so both files are the same byte for byte. Of a HIP source, V6 adds keys to the
//! metadata; everything else is the same where the kernel has no implicit arguments.
//!
//! Real libraries: rocBLAS's files, of which comgr reads the same kernels afterwards.
//!
//! `HOTSWAP_TEST_ROOT` names the userland, `HOTSWAP_TEST_STACK` the libraries; without them each test reports that it was
//! skipped.

use assert_cmd::Command;
use hotswap_userland::{ENV_STACK, Workbench, everything, skip};
use predicates::str::contains;
use std::fs;
use std::path::PathBuf;

/// A kernel as rocBLAS has them: without implicit arguments, with a metadata note of its own.
const KERNEL: &str = r#"
.amdgcn_target "amdgcn-amd-amdhsa--TARGET"
.amdhsa_code_object_version VERSION
.text
.globl NAME
.p2align 8
.type NAME,@function
NAME:
  s_load_b64_or_dwordx2
  s_waitcnt lgkmcnt(0)
  v_mov_b32 v0, 0
  global_store_dword v0, v0, s[0:1]
  s_endpgm
.size NAME, .-NAME
.rodata
.p2align 6
.amdhsa_kernel NAME
  .amdhsa_kernarg_size 8
  .amdhsa_user_sgpr_kernarg_segment_ptr 1
  .amdhsa_next_free_vgpr 1
  .amdhsa_next_free_sgpr 8
.end_amdhsa_kernel
.amdgpu_metadata
---
amdhsa.version: [1, 1]
amdhsa.target: amdgcn-amd-amdhsa--TARGET
amdhsa.kernels:
  - .name: NAME
    .symbol: NAME.kd
    .kernarg_segment_size: 8
    .kernarg_segment_align: 8
    .group_segment_fixed_size: 0
    .private_segment_fixed_size: 0
    .wavefront_size: 32
    .sgpr_count: 8
    .vgpr_count: 1
    .max_flat_workgroup_size: 64
    .args:
      - .offset: 0
        .size: 8
        .value_kind: global_buffer
        .address_space: global
...
.end_amdgpu_metadata
"#;

/// Links `count` kernels, each from an object of its own, with `.note.gnu.build-id` beside `.note`.
fn link(bench: &Workbench, output: &str, target: &str, version: u8, count: usize) {
    let kernel = KERNEL.replace("s_load_b64_or_dwordx2", "s_load_dwordx2 s[0:1], s[4:5], 0x0");
    let mut objects = String::new();
    for number in 0..count {
        let name = format!("kernel{number:02}");
        let text = kernel.replace("TARGET", target).replace("VERSION", &version.to_string()).replace("NAME", &name);
        bench.write("kernel.s", text.as_bytes());
        let object = format!("{name}.o");
        bench.run(&format!("clang-23 -target amdgcn-amd-amdhsa -mcpu={target} -c kernel.s -o {object}"));
        objects += &format!(" {object}");
    }
    // The hash of the content would differ.
    bench.run(&format!("ld.lld-23 -shared --build-id=0x0123456789abcdef {objects} -o {output}"));
}

fn hotswap(bench: &Workbench, words: &str) -> assert_cmd::assert::Assert {
    let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
    command.current_dir(bench.directory()).args(words.split(' ')).assert()
}

/// The contents of all sections but these, as one file; the segments that hold code and its data.
fn parts(bench: &Workbench, file: &str, without: &str) -> String {
    bench.run(&format!(
        "for section in .text .rodata .dynsym .gnu.hash .hash .dynstr .symtab .strtab .comment .note .note.gnu.build-id; do \
         case $section in {without}) continue;; esac; rm -f part; llvm-objcopy-23 --dump-section=$section=part {file} /dev/null \
         2>/dev/null; echo $section $(md5sum < part); done; llvm-readelf-23 -lW {file} | grep -E 'LOAD|DYNAMIC'"
    ))
}

#[test]
fn kernels_in_assembly_are_those_that_v6_has() {
    let Some(bench) = Workbench::new("kernels_in_assembly_are_those_that_v6_has") else { return };
    let (mut equal, mut appended) = (0, 0);
    for count in [1, 2, 3, 9] {
        link(&bench, "v4.co", "gfx1030", 4, count);
        link(&bench, "v6.co", "gfx10-3-generic", 6, count);
        hotswap(&bench, "retarget v4.co --to gfx10-3-generic -o made.co").success();
        hotswap(&bench, "verify made.co").success();
        hotswap(&bench, "lint made.co").success();
        let made = bench.read("made.co");
        let (code, _) = hotswap_bundle::split_record(&made).unwrap();
        bench.write("code.co", code);
        if code == &bench.read("v6.co")[..] {
            equal += 1;
            continue;
        }
        // The notes have no room before `.dynsym`, so they are at the end: the rest stays where it was.
        appended += 1;
        let notes = "rm -f part; llvm-objcopy-23 --dump-section=.note=part FILE /dev/null; md5sum < part; \
                     llvm-readelf-23 -nW FILE | grep -v -i 'notes found'; llvm-readelf-23 -hW FILE | grep -E 'ABI|Flags'";
        assert_eq!(
            bench.run(&notes.replace("FILE", "code.co")),
            bench.run(&notes.replace("FILE", "v6.co")),
            "{count} kernels"
        );
        let [old, new] = ["v4.co", "code.co"].map(|file| parts(&bench, file, ".note"));
        assert_eq!(new, old, "{count} kernels");
    }
    assert!(equal > 0 && appended > 0, "{equal} {appended}");
    // The planted fault: a file that says other things of its kernels is no twin.
    link(&bench, "v6.co", "gfx10-3-generic", 6, 2);
    assert!(parts(&bench, "code.co", ".none") != parts(&bench, "v6.co", ".none"));
}

const PLAIN: &str =
    "extern \"C\" __attribute__((global)) void k(float *p, float x) { p[__builtin_amdgcn_workitem_id_x()] = x * 2; }\n";
/// It reads the size of its group: from the packet in V4, from an implicit argument in V6.
const IMPLICIT: &str = "extern \"C\" __attribute__((global)) void k(long *p) { \
                        *p = ((__attribute__((address_space(4))) long *)__builtin_amdgcn_implicitarg_ptr())[1]; }\n";

fn compile(bench: &Workbench, source: &str, output: &str, target: &str, version: u8) {
    bench.write("k.hip", source.as_bytes());
    bench.run(&format!(
        "clang++-23 -x hip --cuda-device-only -nogpulib -nogpuinc -O2 --offload-arch={target} -mcode-object-version={version} \
         -fno-gpu-rdc --no-gpu-bundle-output k.hip -o {output}"
    ));
}

#[test]
fn kernels_in_hip_are_those_that_v6_has_without_its_metadata() {
    let Some(bench) = Workbench::new("kernels_in_hip_are_those_that_v6_has_without_its_metadata") else { return };
    compile(&bench, PLAIN, "v4.co", "gfx1030", 4);
    compile(&bench, PLAIN, "v6.co", "gfx10-3-generic", 6);
    hotswap(&bench, "retarget v4.co --to gfx10-3-generic -o made.co").success();
    hotswap(&bench, "verify made.co").success();
    let made = bench.read("made.co");
    bench.write("code.co", hotswap_bundle::split_record(&made).unwrap().0);
    let code = "llvm-objdump-23 -d FILE | tail -n +4; llvm-objdump-23 -D -j .rodata FILE | grep amdhsa_; \
                llvm-readelf-23 -hW FILE | grep -E 'ABI|Flags'";
    assert_eq!(bench.run(&code.replace("FILE", "code.co")), bench.run(&code.replace("FILE", "v6.co")));
    let keys = "llvm-readelf-23 -nW FILE | grep -vE 'uniform_work|uses_dynamic|workgroup_processor|  - [12]$|0x|actual_access'";
    let [ours, clangs] = ["code.co", "v6.co"].map(|file| bench.run(&keys.replace("FILE", file)));
    assert_eq!(ours, clangs);
}

#[test]
fn kernels_with_implicit_arguments_are_refused() {
    let Some(bench) = Workbench::new("kernels_with_implicit_arguments_are_refused") else { return };
    compile(&bench, IMPLICIT, "v4.co", "gfx1030", 4);
    let refused = hotswap(&bench, "retarget v4.co --to gfx10-3-generic -o made.co").failure();
    refused.stderr(contains("hidden_global_offset_x, which V6 passes at another place"));
    assert!(!bench.path("made.co").exists());
    compile(&bench, IMPLICIT, "v5.co", "gfx1030", 5);
    hotswap(&bench, "retarget v5.co --to gfx10-3-generic -o made.co").success();
}

/// The files of rocBLAS for gfx1030: by default the helper kernels and the code object with most notes.
fn tensile_files(test: &str) -> Option<Vec<PathBuf>> {
    let Some(stack) = std::env::var_os(ENV_STACK) else {
        skip(test, &format!("{ENV_STACK} is not set"));
        return None;
    };
    let library = std::env::split_paths(&stack).find(|path| path.to_string_lossy().contains("rocblas")).unwrap();
    let directory = library.join("x86_64-linux-gnu/rocblas/5/library");
    let is_its = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        name.contains("gfx1030") && (name.ends_with(".co") || name.ends_with(".hsaco"))
    };
    let mut files: Vec<PathBuf> = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(is_its);
    files.sort();
    assert_eq!(files.len(), 71);
    if !everything() {
        let names = ["Kernels.so-000-gfx1030.hsaco", "Type_SS_Contraction_l_Ailk_Bljk_Cijk_Dijk_gfx1030.co"];
        files.retain(|path| names.iter().any(|name| path.to_string_lossy().ends_with(name)));
        assert_eq!(files.len(), names.len());
    }
    Some(files)
}

#[test]
fn files_of_rocblas_get_a_generic_target() {
    let test = "files_of_rocblas_get_a_generic_target";
    let Some(bench) = Workbench::new(test) else { return };
    let Some(files) = tensile_files(test) else { return };
    bench.write("metadata.c", include_bytes!("../../../../tests/comgr/metadata.c"));
    bench.write("lookup.c", include_bytes!("../../../../tests/comgr/lookup.c"));
    bench.run("for name in metadata lookup; do cc -std=c11 -o $name $name.c -lamd_comgr; done");
    for file in files {
        fs::copy(&file, bench.path("input")).unwrap();
        let is_bare = file.extension().is_some_and(|end| end == "hsaco");
        let keep = if is_bare { " --keep-source" } else { "" };
        hotswap(&bench, &format!("retarget input --to gfx10-3-generic -o made{keep}")).success();
        hotswap(&bench, "verify made").success();
        bench.run("./lookup -o old.co made amdgcn-amd-amdhsa--gfx1030");
        bench.run("./lookup -o new.co made amdgcn-amd-amdhsa--gfx10-3-generic");
        // comgr, which the HIP runtime asks, reads the same kernels, and the target.
        let [old, new] = ["old.co", "new.co"].map(|code| bench.run(&format!("./metadata {code}")));
        let (old_isa, old_kernels) = old.split_once('\n').unwrap();
        let (new_isa, new_kernels) = new.split_once('\n').unwrap();
        assert_eq!((old_isa, new_isa), ("amdgcn-amd-amdhsa--gfx1030", "amdgcn-amd-amdhsa--gfx10-3-generic"));
        assert!(old_kernels == new_kernels && !new_kernels.is_empty(), "{}", file.display());
        // LLVM reads the same sections and segments, except for the notes and for the tables that moved with them. A
        // build ID is a hash of its file.
        let [old, new] = ["old.co", "new.co"].map(|code| parts(&bench, code, ".note*"));
        assert_eq!(old, new, "{}", file.display());
        hotswap(&bench, "lint new.co").success();
    }
}
