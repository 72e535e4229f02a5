//! `hotswap rewrite` on clang's output for gfx1250: device ELFs of every kind, fat binaries, refusals, bad input.

use assert_cmd::Command;
use hotswap_bundle::Bundle;
use hotswap_userland::{Workbench, say};
use object::{Object, ObjectSection};
use predicates::prelude::*;
use predicates::str::contains;
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

/// One instruction that the stepping lacks, a function that is called, and a kernel with nothing to change.
const KERNELS: &str = r#"
typedef int V16 __attribute__((ext_vector_type(16)));
typedef float V8 __attribute__((ext_vector_type(8)));
#define GLOBAL __attribute__((address_space(1)))
__attribute__((noinline)) static float sum(GLOBAL const float *p, int n) {
  float s = 0;
  for (int i = 0; i < n; ++i) s += p[i];
  return s;
}
__kernel void product(GLOBAL const V16 *a, GLOBAL const V16 *b, GLOBAL V8 *c) {
  unsigned lane = __builtin_amdgcn_workitem_id_x();
  c[lane] = __builtin_amdgcn_wmma_f32_16x16x128_fp8_fp8(a[lane], b[lane], (short)0, c[lane], false, false);
}
__kernel void plain(GLOBAL float *p, int n) { p[__builtin_amdgcn_workitem_id_x()] = sum(p, n); }
#ifdef REFUSED
__kernel void refused(GLOBAL float *p) { __asm__ volatile("s_barrier_signal_isfirst -3" ::: "memory", "scc"); p[0] = 1; }
#endif
"#;

struct Made {
    directory: TempDir,
}

impl Made {
    /// The output of clang 23; `None` where there is no userland.
    fn new(test: &str) -> Option<Self> {
        let bench = Workbench::new(test)?;
        bench.write("k.cl", KERNELS.as_bytes());
        let clang = "clang-23 --target=amdgcn-amd-amdhsa -mcpu=gfx1250 -nogpulib -O2 -w k.cl";
        bench.run(&format!(
            "{clang} -o linked.co && {clang} -Wl,--emit-relocs -o relocs.co && {clang} -c -o k.o && \
             {clang} -DREFUSED -Wl,--emit-relocs -o refused.co && llvm-strip-23 linked.co -o stripped.co"
        ));
        let directory = TempDir::new().unwrap();
        for name in ["linked.co", "relocs.co", "k.o", "refused.co", "stripped.co"] {
            fs::write(directory.path().join(name), bench.read(name)).unwrap();
        }
        Some(Self { directory })
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path().join(name)).unwrap()
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        fs::write(self.path().join(name), bytes).unwrap();
    }

    fn run(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        command.current_dir(self.path()).args(words.split_whitespace());
        command
    }

    fn rewrite(&self, words: &str) -> Command {
        self.run(&format!("rewrite {words} --to gfx1250-strict"))
    }

    fn bundle(&self, name: &str, code: &str) {
        let mut bundle = Bundle::default();
        bundle.push("host-x86_64-unknown-linux-gnu-", Vec::new()).unwrap();
        bundle.push("hipv4-amdgcn-amd-amdhsa--gfx1250", self.read(code)).unwrap();
        self.write(name, &bundle.to_bytes().unwrap());
    }
}

#[test]
fn every_kind_of_device_elf_becomes_one_for_the_stepping() {
    let Some(made) = Made::new("rewriting device ELFs") else { return };
    for input in ["linked.co", "relocs.co", "k.o", "stripped.co"] {
        made.rewrite(&format!("{input} -o out"))
            .assert()
            .success()
            .stdout(contains("product").and(contains("wmma_split 1")).and(contains("rewritten from gfx1250")));
        let out = made.read("out");
        assert_eq!(out[48], 0xeb, "{input}");
        made.rewrite("out -o again").assert().code(17).stdout(contains("there already"));
        assert_eq!(made.read("again"), out, "{input}");
        made.rewrite(&format!("{input} -o kept --keep-machine")).assert().success().stdout(contains("name the source"));
        let kept = made.read("kept");
        assert_eq!(kept[48], 0x49, "{input}");
        made.rewrite("kept -o again --keep-machine").assert().code(17).stdout(contains("right as it is"));
        assert_eq!(made.read("again"), kept, "{input}");
        for jobs in [1, 3] {
            made.rewrite(&format!("{input} -o again --jobs {jobs}")).assert().success();
            assert_eq!(made.read("again"), out, "{input} by {jobs} threads");
        }
    }
    say("rewriting device ELFs: linked, with relocations, relocatable and stripped; second runs change nothing");
}

#[test]
fn the_report_is_for_programs_too() {
    let Some(made) = Made::new("reports of rewriting") else { return };
    let output = made.rewrite("relocs.co -o out --report json").output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&value["schema"], &value["written"]), (&1.into(), &true.into()));
    // Clang copies the body of an OpenCL kernel into a function of its own.
    assert_eq!(value["totals"]["families"]["wmma_split"], 2);
    assert_eq!(value["sizes"][1], made.read("out").len());
    let functions = value["objects"][0]["record"]["functions"].as_array().unwrap();
    let product = functions.iter().find(|function| function["name"] == "product").unwrap();
    assert!(product["grown"].as_i64().unwrap() > 0 && product["cycles"].as_u64().unwrap() > 0, "{product}");
    assert!(product["kernel"]["vgprs"]["after"].as_u64() >= product["kernel"]["vgprs"]["before"].as_u64());
    assert!(product["kernel"]["waves"]["before"].is_u64());
}

#[test]
fn fat_binaries_get_the_entry_that_retarget_gives_them() {
    let Some(made) = Made::new("rewriting fat binaries") else { return };
    made.bundle("fat", "linked.co");
    made.rewrite("fat -o out").assert().success().stdout(contains("wmma_split 1"));
    made.run("retarget fat -o other --to gfx1250-strict").assert().success().stdout(contains("rewritten from gfx1250"));
    assert_eq!(made.read("out"), made.read("other"));
    made.rewrite("linked.co -o bare").assert().success();
    made.run("extract out --target gfx1250-strict -o entry").assert().success();
    assert_eq!(made.read("entry"), made.read("bare"));
    made.run("list out").assert().success().stdout(contains("rewritten from gfx1250"));
    let inspected = contains("what was done to its code").and(contains("wmma_split 1")).and(contains("verified"));
    made.run("inspect out").assert().success().stdout(inspected);
    made.rewrite("out -o again --jobs 2").assert().code(17).stdout(contains("there already"));
    assert_eq!(made.read("again"), made.read("out"));
    made.rewrite("fat -o no --keep-machine").assert().code(2).stderr(contains("device ELF"));
}

#[test]
fn what_is_refused_follows_the_policy_and_can_be_saved() {
    let Some(made) = Made::new("refusals of rewriting") else { return };
    made.bundle("fat", "refused.co");
    let names = || contains("refused").and(contains("s_barrier_signal_isfirst")).and(contains("barriers"));
    // The record of a fat binary gets a row of what was refused.
    for input in ["refused.co", "fat"] {
        made.rewrite(&format!("{input} -o out")).assert().code(13).stderr(names());
        assert!(!made.path().join("out").exists(), "{input}");
        made.rewrite(&format!("{input} -o out --policy warn"))
            .assert()
            .code(if input == "fat" { 0 } else { 17 })
            .stderr(names().and(contains("warning")));
        made.rewrite(&format!("{input} -o out --policy keep --allow-unchanged")).assert().success();
        fs::remove_file(made.path().join("out")).unwrap();
        let directory = made.path().join(format!("repro-{input}"));
        made.rewrite(&format!("{input} -o out --save-repro repro-{input}")).assert().code(13);
        assert_eq!(fs::read(directory.join("input")).unwrap(), made.read(input));
        assert!(
            fs::read_to_string(directory.join("1-refused.s")).unwrap().contains("s_barrier_signal_isfirst"),
            "{input}"
        );
        assert!(!fs::read(directory.join("1-refused.bin")).unwrap().is_empty());
        let command = fs::read_to_string(directory.join("command.txt")).unwrap();
        let mut again = Command::new(env!("CARGO_BIN_EXE_hotswap"));
        let line = command.lines().next().unwrap().strip_prefix("hotswap ").unwrap();
        again.current_dir(&directory).args(line.split_whitespace()).assert().code(13).stderr(names());
        made.rewrite(&format!("{input} -o out --save-repro repro-{input}"))
            .assert()
            .code(14)
            .stderr(contains("new directory"));
    }
}

/// Offset of a section's content.
fn section(bytes: &[u8], name: &str) -> usize {
    let file = object::File::parse(bytes).unwrap();
    file.section_by_name(name).unwrap().file_range().unwrap().0 as usize
}

/// Input, the damage to it, exit code, and part of the message.
type Bad = (&'static str, fn(&mut Vec<u8>), i32, &'static str);

#[rustfmt::skip]
const BAD: &[Bad] = &[
    ("cut in the middle", |bytes| bytes.truncate(bytes.len() / 2), 12, "HS0302"),
    ("cut in the header", |bytes| bytes.truncate(40), 12, "HS03"),
    ("of another machine", |bytes| bytes[18] = 62, 12, "HS03"),
    ("of no known GPU", |bytes| bytes[48] = 0xfe, 12, "0xfe"),
    ("for another GPU", |bytes| bytes[48] = 0x4e, 12, "does not fit gfx1201"),
    ("code object V2", |bytes| bytes[8] = 0, 12, "HS0303"),
    ("code object V3", |bytes| bytes[8] = 1, 12, "HS0302"),
    ("with a relocation of unknown type", |bytes| { let at = section(bytes, ".rela.text"); bytes[at + 8] = 0xee; }, 12, "relocation type 238 is not known"),
    ("with a descriptor that leads nowhere", |bytes| { let at = section(bytes, ".rodata"); bytes[at + 16..at + 24].fill(0x7f); }, 12, "HS0302"),
    ("with a descriptor of other registers", |bytes| { let at = section(bytes, ".rodata"); bytes[at + 48] &= 0xc0; }, 12, "HS0302"),
    ("with a symbol outside of its section", |bytes| { let at = section(bytes, ".symtab"); for row in (at + 24..at + 24 * 30).step_by(24) { if bytes.get(row + 4) == Some(&0x12) { bytes[row + 11] = 0x7f; } } }, 13, "HS0409"),
];

#[test]
fn bad_input_is_refused_and_nothing_is_written() {
    let Some(made) = Made::new("bad input of rewriting") else { return };
    let mut wrong = Vec::new();
    for (what, damage, exit, part) in BAD {
        let mut bytes = made.read("relocs.co");
        damage(&mut bytes);
        made.write("bad", &bytes);
        let output = made.rewrite("bad -o out").output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        if output.status.code() != Some(*exit) || !said.contains(part) || made.path().join("out").exists() {
            wrong.push(format!("{what}: {:?} {said}", output.status.code()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    made.rewrite("missing -o out").assert().code(14);
    made.run("rewrite linked.co -o out --to gfx1251").assert().code(11).stderr(contains("hotswap retarget"));
    made.run("rewrite linked.co -o out --to gfx1031")
        .assert()
        .code(11)
        .stderr(contains("encode instructions differently"));
    made.run("rewrite linked.co -o out --to gfx9999").assert().code(11).stderr(contains("HS0202"));
    made.run("rewrite linked.co -o out").assert().code(2);
    assert!(!made.path().join("out").exists());
}

/// Debug sections are expanded before code is laid out anew, and charged like everything else that is compressed.
#[test]
fn compressed_debug_sections_are_charged_before_they_are_expanded() {
    let Some(made) = Made::new("compressed debug sections of rewriting") else { return };
    let bench = Workbench::new("compressed debug sections of rewriting").unwrap();
    bench.write("relocs.co", &made.read("relocs.co"));
    for form in ["zlib", "zstd"] {
        bench.run(&format!(
            "truncate -s 64M zeros; llvm-objcopy-23 --add-section .debug_str=zeros relocs.co plain.co && \
             llvm-objcopy-23 --compress-debug-sections={form} plain.co {form}.co"
        ));
        let bytes = bench.read(&format!("{form}.co"));
        assert!(bytes.len() < 1 << 20, "{form}: {} bytes", bytes.len());
        made.write("x", &bytes);
        // Less address space than the section has, with the limit; without it the object is rewritten.
        let limited = format!(
            "ulimit -v 4194304; exec {} --max-size 8M rewrite x -o out --to gfx1250-strict",
            env!("CARGO_BIN_EXE_hotswap")
        );
        let mut shell = Command::new("sh");
        let output = shell.args(["-c", &limited]).current_dir(made.path()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), said.contains("HS0417")), (Some(13), true), "{form}: {said}");
        assert!(said.contains(".debug_str") && !made.path().join("out").exists(), "{form}: {said}");
        made.rewrite("x -o out").assert().success().stdout(contains("wmma_split 1"));
        fs::remove_file(made.path().join("out")).unwrap();
    }
    say(
        "compressed debug sections of rewriting: 64 MB of zlib and zstd, refused with --max-size 8M, rewritten without",
    );
}
