//! `oclc_isa_version` on the output of clang, linkers and strippers: the constant is set if a symbol proves it, other
//! data with the same number is unchanged, and an ambiguous word is refused. The golden programs of `hotswap-tests`
//! prove that whole programs are then clang's own.

use hotswap_code_object::{CodeObject, same_but_for_label};
use hotswap_families::FamilyRegistry;
use hotswap_report::codes;
use hotswap_userland::{Workbench, say};

/// The definition from the device library, and a kernel that reads it as -O0 code does.
const KERNEL: &str = "\
    #define CONSTANT __attribute__((address_space(4)))\n\
    #define GLOBAL __attribute__((address_space(1)))\n\
    #ifdef LIBRARY\n\
    static const volatile int CONSTANT version asm(\"__oclc_ISA_version\" SUFFIX) = LIBRARY;\n\
    #endif\n\
    #ifdef OWN\n\
    static const volatile int CONSTANT own = 10300;\n\
    #endif\n\
    #ifdef TABLE\n\
    static const volatile int CONSTANT table[4] = {7, 10300, 10300, 9};\n\
    #endif\n\
    __attribute__((amdgpu_kernel)) void k(int GLOBAL *out, int i) {\n\
    #ifdef LIBRARY\n\
      out[0] = version < 11000;\n\
    #endif\n\
    #ifdef OWN\n\
      out[1] = own;\n\
    #endif\n\
    #ifdef TABLE\n\
      out[2] = table[i];\n\
    #endif\n\
    }\n";

struct Case {
    name: &'static str,
    /// Arguments of the compilation.
    words: &'static str,
    /// The command that is run on `object` afterwards.
    then: &'static str,
    /// The message, or the number of constants that are set.
    expected: Result<u64, &'static str>,
}

const LIBRARY: &str = "-DLIBRARY=10300 -DSUFFIX=\\\"\\\"";
const MERGED: &str = "llvm-objcopy-$V --add-symbol other=.rodata:$(llvm-nm-$V object | sed -n 's/^0*\\([0-9a-f]*\\) r __oclc_ISA_version$/\\1/p' | \
                      { read a; echo $((0x$a - 0x$(llvm-readelf-$V -SW object | sed -n 's/.* .rodata *PROGBITS *0*\\([0-9a-f]*\\) .*/\\1/p'))); }),object object";

const CASES: &[Case] = &[
    Case { name: "no library", words: "", then: "", expected: Ok(0) },
    Case { name: "the library's constant", words: LIBRARY, then: "", expected: Ok(1) },
    Case { name: "one of several units", words: "-DLIBRARY=10300 -DSUFFIX=\\\".16\\\"", then: "", expected: Ok(1) },
    Case { name: "of no other name", words: "-DLIBRARY=10300 -DSUFFIX=\\\"s\\\"", then: "", expected: Ok(0) },
    Case {
        name: "beside data of the program",
        words: "-DLIBRARY=10300 -DSUFFIX=\\\"\\\" -DOWN -DTABLE",
        then: "",
        expected: Ok(1),
    },
    Case {
        name: "stripped",
        words: LIBRARY,
        then: "llvm-strip-$V object",
        expected: Err("from a place without a symbol"),
    },
    Case {
        name: "without local symbols",
        words: LIBRARY,
        then: "llvm-strip-$V --discard-all object",
        expected: Err("from a place without a symbol"),
    },
    Case { name: "a stripped table", words: "-DTABLE", then: "llvm-strip-$V object", expected: Ok(0) },
    Case { name: "a stripped number", words: "-DOWN", then: "llvm-strip-$V object", expected: Err("without a symbol") },
    Case { name: "a program's number", words: "-DOWN", then: "", expected: Ok(0) },
    Case {
        name: "another GPU's number",
        words: "-DLIBRARY=10299 -DSUFFIX=\\\"\\\"",
        then: "",
        expected: Err("is 10299, which is not gfx1030 (10300)"),
    },
    Case { name: "the target's number", words: "-DLIBRARY=10306 -DSUFFIX=\\\"\\\"", then: "", expected: Ok(0) },
];

fn build(bench: &Workbench, version: u32, case: &Case) -> Vec<u8> {
    bench.run(&format!(
        "set -e; V={version}; clang-$V --target=amdgcn-amd-amdhsa -mcpu=gfx1030 -nogpulib -w -O1 {} kernel.c -o object; {}",
        case.words, case.then
    ));
    bench.read("object")
}

/// The fault in the outcome.
fn fault(case: &Case, bytes: &[u8]) -> Option<String> {
    let object = CodeObject::parse(bytes).unwrap();
    let outcome = FamilyRegistry::installed().apply_families(&object, &"gfx1036".parse().unwrap());
    match (case.expected, outcome) {
        (Err(part), Err(error)) => {
            let at_number = error.place.offset.and_then(|at| bytes.get(at as usize..at as usize + 4));
            let good = error.code == codes::NOT_SAFE && at_number.is_some() && error.what.contains(part);
            (!good).then(|| error.to_string())
        }
        (Ok(count), Ok((made, counts))) => {
            let found = counts.iter().find(|family| family.name == "oclc_isa_version").map_or(0, |family| family.sites);
            let numbers =
                |bytes: &[u8]| bytes.windows(4).filter(|word| **word == 10306_u32.to_le_bytes()).count() as u64;
            let grown = numbers(&made) - numbers(bytes);
            let checked = same_but_for_label(&object, &CodeObject::parse(&made).unwrap());
            ((found, grown) != (count, count) || checked.is_err())
                .then(|| format!("{found} set, {grown} numbers more, {checked:?}"))
        }
        (_, outcome) => Some(format!("{:?}", outcome.map(|(_, counts)| counts))),
    }
}

#[test]
fn the_constant_is_set_where_it_is_proven_and_refused_where_it_may_be() {
    let Some(bench) = Workbench::new("the number of the GPU") else { return };
    bench.write("kernel.c", KERNEL.as_bytes());
    let (mut wrong, mut count) = (Vec::new(), 0);
    for version in &bench.versions {
        for case in CASES {
            let bytes = build(&bench, *version, case);
            wrong.extend(fault(case, &bytes).map(|fault| format!("clang {version} {}: {fault}", case.name)));
            count += 1;
        }
    }
    say(&format!("number of the GPU: {count} objects as expected"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A linker that merges constants gives one address to the library's and to one of the program.
#[test]
fn a_constant_that_is_shared_is_refused() {
    let Some(bench) = Workbench::new("the number of the GPU, shared") else { return };
    bench.write("kernel.c", KERNEL.as_bytes());
    let case = Case { name: "merged", words: LIBRARY, then: MERGED, expected: Err("the linker merged them") };
    let bytes = build(&bench, bench.versions[0], &case);
    // The symbol has no size; the tool cannot give it one.
    let object = CodeObject::parse(&bytes).unwrap();
    let record = |bytes: &[u8]| {
        let table = object.sections().iter().find(|section| section.name == ".symtab").unwrap().range.clone();
        let names = object.sections().iter().find(|section| section.name == ".strtab").unwrap().range.start;
        let is_other = |at: &usize| {
            let name = u32::from_le_bytes(bytes[*at..*at + 4].try_into().unwrap()) as usize;
            bytes[names + name..].starts_with(b"other\0")
        };
        table.step_by(24).find(is_other).unwrap()
    };
    let at = record(&bytes);
    let mut merged = bytes.clone();
    merged[at + 16] = 4;
    assert_eq!(fault(&case, &merged), None);
}

/// The comparison knows the constant independently, and accepts only its right number.
#[test]
fn the_comparison_notices_another_number_and_other_bytes() {
    let Some(bench) = Workbench::new("the number of the GPU, compared") else { return };
    bench.write("kernel.c", KERNEL.as_bytes());
    let bytes = build(&bench, bench.versions[0], &CASES[4]);
    let object = CodeObject::parse(&bytes).unwrap();
    let (made, _) = FamilyRegistry::installed().apply_families(&object, &"gfx1036".parse().unwrap()).unwrap();
    let same = |bytes: &[u8]| same_but_for_label(&object, &CodeObject::parse(bytes).unwrap());
    same(&made).unwrap();
    let changed: Vec<usize> = (64..made.len()).filter(|at| made[*at] != bytes[*at]).collect();
    let number = changed.iter().copied().find(|at| bytes[*at] == 0x3c && made[*at] == 0x42).unwrap();
    for (at, byte) in [(number, 0x3c), (number, 0x43), (number + 1, 0x29), (number + 4, 0x55), (number - 1, 0x55)] {
        let mut damaged = made.clone();
        damaged[at] = byte;
        assert!(same(&damaged).is_err(), "{at:#x} {byte:#x}");
    }
}
