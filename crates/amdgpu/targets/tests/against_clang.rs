//! Compares every row of the table with the targets that real compilers accept and the flags that they write.

use hotswap_samples::clangs::{Clang, clangs};
use hotswap_targets::{EFlags, PROCESSORS, Processor, Support, TargetId, find_processor};
use hotswap_userland::slice;
use std::collections::{BTreeMap, BTreeSet};

const FEATURES: &[&str] = &["", ":xnack+", ":xnack-", ":sramecc+", ":sramecc-"];

/// First 9 bytes and `e_flags` of an object for each target ID that the compiler accepts, and the
/// architecture part of its note.
struct Written {
    flags: u32,
    abi_version: u8,
    arch: String,
}

fn compile(clang: &Clang, names: &[&str]) -> BTreeMap<String, Written> {
    let directory = clang.scratch();
    let ids: Vec<String> = names.iter().flat_map(|name| FEATURES.iter().map(move |f| format!("{name}{f}"))).collect();
    std::fs::write(directory.path().join("ids"), ids.join("\n") + "\n").unwrap();
    std::fs::write(directory.path().join("k.c"), "__attribute__((amdgpu_kernel)) void k(void) {}\n").unwrap();
    clang.run(
        directory.path(),
        "while read id; do \"$CLANG\" --target=amdgcn-amd-amdhsa -mcpu=$id -nogpulib -c k.c -o $id.o 2>/dev/null || true; done < ids",
    );
    let read = |id: String| Some((read(&std::fs::read(directory.path().join(format!("{id}.o"))).ok()?), id));
    ids.into_iter().filter_map(read).map(|(written, id)| (id, written)).collect()
}

fn read(object: &[u8]) -> Written {
    let flags = u32::from_le_bytes(object[48..52].try_into().unwrap());
    let end = object.windows(11).position(|w| w == b"-amd-amdhsa").expect("the note has a triple");
    let start = object[..end].windows(4).rposition(|w| w == b"amdg").expect("amdgcn or amdgpu");
    let arch = String::from_utf8_lossy(&object[start..end]).into_owned();
    Written { flags, abi_version: object[8], arch }
}

fn check_features(processor: &Processor, written: &BTreeMap<String, Written>) {
    for (feature, support) in [("xnack", processor.xnack), ("sramecc", processor.sramecc)] {
        let accepted = ["+", "-"].map(|sign| written.contains_key(&format!("{processor}:{feature}{sign}")));
        match support {
            Support::Yes => assert_eq!(accepted, [true, true], "{processor} {feature}"),
            Support::No => assert_eq!(accepted, [false, false], "{processor} {feature}"),
            Support::Unsettled => {}
        }
    }
}

fn check_flags(id: &str, written: &Written) {
    let target: TargetId = id.parse().unwrap_or_else(|error| panic!("{error}"));
    let flags = EFlags::decode(written.flags, written.abi_version).unwrap_or_else(|error| panic!("{id}: {error}"));
    assert_eq!(flags.target_id(), target, "{id}: {:#010x}", written.flags);
    assert_eq!(flags.encode_for(written.abi_version), written.flags, "{id}");
    if [target.processor.xnack, target.processor.sramecc].iter().all(|support| *support != Support::Unsettled) {
        assert_eq!(EFlags::of(&target).encode(), written.flags, "{id}");
    }
    if written.arch != "amdgcn" {
        assert_eq!(written.arch, format!("amdgpu{}", target.processor.subarch), "{id}");
    }
}

/// Generic targets exist in LLVM 24 as major sub-architectures, which accept the processors that they cover.
fn check_covers(clang: &Clang, names: &[&str]) {
    let directory = clang.scratch();
    std::fs::write(directory.path().join("k.c"), "int x;\n").unwrap();
    for generic in PROCESSORS.iter().filter(|processor| processor.is_generic()) {
        let major = format!("gfx{}", generic.subarch.split('.').next().unwrap());
        let near: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(&major)).collect();
        let script = format!(
            "for c in {}; do if \"$CLANG\" --target=amdgpu{}-amd-amdhsa -mcpu=$c -nogpulib -c k.c -o k.o 2>/dev/null; then echo $c; fi; done",
            near.join(" "),
            generic.subarch
        );
        let text = clang.run(directory.path(), &script);
        let mut accepted: Vec<&str> = text.lines().filter(|name| *name != generic.name).collect();
        accepted.sort_unstable();
        let mut covers = generic.covers.to_vec();
        covers.sort_unstable();
        assert_eq!(covers, accepted, "{generic}");
    }
}

/// The processors that a command of a compiler lists.
fn listed_processors(clang: &Clang, script: &str) -> BTreeSet<String> {
    let list = clang.run(clang.scratch().path(), script);
    let names = list.lines().filter_map(|line| line.split_whitespace().next());
    names.filter(|name| name.starts_with("gfx")).map(str::to_owned).collect()
}

#[test]
fn each_compiler_knows_the_processors_of_its_version() {
    for clang in clangs("each_compiler_knows_the_processors_of_its_version") {
        let is_known = |processor: &&Processor| !processor.withdrawn && processor.first_llvm() <= clang.version;
        let expected: BTreeSet<String> = PROCESSORS.iter().filter(is_known).map(|one| one.name.to_owned()).collect();
        let own = "\"$CLANG\" --target=amdgcn-amd-amdhsa --print-supported-cpus 2>&1";
        assert_eq!(listed_processors(&clang, own), expected, "{}", clang.command);
        // A directory of compilers need not have the other program.
        let llc = format!(
            "if command -v llc-{0} > /dev/null; then llc-{0} -mtriple=amdgcn-amd-amdhsa -mcpu=help < /dev/null 2>&1; fi | sed '/^Available features/,$d'",
            clang.version
        );
        let others = listed_processors(&clang, &llc);
        assert!(others.is_empty() || others == expected, "llc-{}: {others:?}", clang.version);
        println!("{}: {} processors, {} of them for llc", clang.command, expected.len(), others.len());
    }
}

#[test]
fn every_row_is_what_the_compilers_write() {
    for (index, clang) in clangs("every_row_is_what_the_compilers_write").iter().enumerate() {
        let directory = clang.scratch();
        let list = clang.run(directory.path(), "\"$CLANG\" --target=amdgcn-amd-amdhsa --print-supported-cpus 2>&1");
        let names: Vec<&str> = list.lines().map(str::trim).filter(|line| line.starts_with("gfx")).collect();
        for name in &names {
            assert!(
                find_processor(name).is_some_and(|p| !p.withdrawn),
                "{} knows {name}, the table does not",
                clang.command
            );
        }
        // The newest compiler knows all that the others know.
        let some = slice(&format!("targets of {}", clang.command), names.clone(), |number, _| {
            index == 0 || number % 3 == index % 3
        });
        let written = compile(clang, &some);
        for name in &some {
            assert!(written.contains_key(*name), "{} makes nothing for {name}", clang.command);
            check_features(find_processor(name).unwrap(), &written);
        }
        written.iter().for_each(|(id, written)| check_flags(id, written));
        if index == 0 && clang.version >= 24 {
            let known = PROCESSORS.iter().filter(|p| !p.withdrawn).map(|p| p.name);
            let missing: Vec<&str> = known.filter(|name| !names.contains(name)).collect();
            assert!(missing.is_empty(), "{} does not know {missing:?}", clang.command);
            check_covers(clang, &names);
        }
        println!("{}: {} processors, {} target IDs compared", clang.command, some.len(), written.len());
    }
}
