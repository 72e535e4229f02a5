//! Files of real compilers and linkers are identical after their parts are put together again, and no damage to them
//! causes a panic.

use hotswap_code_object::image::{ImageLayout, ObjectImage};
use hotswap_code_object::{CodeObject, ObjectKind};
use hotswap_userland::{SLICE, Workbench, everything, say};

const SOURCE: &str = "
__global int counter = 3, zeros[100];
__attribute__((noinline)) int helper(int a) { return a * counter + zeros[a & 63]; }
kernel void k(global int *x) { local int part[64]; part[x[1] & 63] = x[0]; *x = helper(part[3]); }
kernel void other(global float *x) { for (int i = 0; i < 100; i++) x[i] = x[i + 1] * 2; }
";

/// Arguments for the compiler, and for the linker; none for a relocatable file.
const FORMS: &[(&str, Option<&str>)] = &[
    ("-g", None),
    ("-ffunction-sections -gdwarf-4", None),
    ("-g", Some("--emit-relocs")),
    ("", Some("")),
    ("-g -ffunction-sections", Some("--gc-sections --build-id")),
    ("", Some("--strip-all")),
    ("-g", Some("--hash-style=sysv --emit-relocs -z norelro")),
    ("-O0", Some("-z separate-code")),
];

/// The plain form.
const PLAIN: usize = 3;

/// Those whose number `takes` selects.
fn files(bench: &Workbench, versions: &[u32], takes: impl Fn(usize) -> bool) -> Vec<(String, Vec<u8>)> {
    bench.write("k.cl", SOURCE.as_bytes());
    let (mut found, mut number) = (Vec::new(), 0);
    for version in versions {
        for target in ["gfx900", "gfx90a", "gfx1030", "gfx1100", "gfx1201", "gfx1250"] {
            for (compile, link) in FORMS {
                number += 1;
                if !takes(number - 1) {
                    continue;
                }
                let bin = format!("/usr/lib/llvm-{version}/bin");
                let mut script = format!(
                    "{bin}/clang --target=amdgcn-amd-amdhsa -mcpu={target} -nogpulib -x cl -cl-std=CL2.0 -fPIC -O2 {compile} -w -c k.cl -o out"
                );
                if let Some(link) = link {
                    script += &format!(" && {bin}/ld.lld -shared {link} out -o linked && mv linked out");
                }
                bench.run(&script);
                found.push((format!("clang {version} {target} {compile} {link:?}"), bench.read("out")));
            }
        }
    }
    found
}

fn again(data: &[u8]) -> Option<Vec<u8>> {
    let image = ObjectImage::parse(data).ok()?;
    let sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
    ImageLayout::new(&image, &sizes).and_then(|layout| layout.write_file(&image)).ok()
}

#[test]
fn files_come_back_byte_for_byte() {
    let Some(bench) = Workbench::new("identity of code objects") else { return };
    // Each form with each target by one compiler.
    let files = files(&bench, &bench.versions, |number| {
        let (form, target, version) = (number % FORMS.len(), number / FORMS.len() % 6, number / FORMS.len() / 6);
        everything() || (form + target) % bench.versions.len() == version
    });
    say(&format!(
        "identity of code objects: {SLICE}{} of {} cases; `cargo xtask test --everything` runs all",
        files.len(),
        bench.versions.len() * 6 * FORMS.len()
    ));
    for (name, data) in &files {
        assert!(again(data).as_ref() == Some(data), "{name}: {:?}", ObjectImage::parse(data).err());
        let object = CodeObject::parse(data).unwrap_or_else(|error| panic!("{name}: {error}"));
        object.check_descriptors().unwrap_or_else(|error| panic!("{name}: {error}"));
        let image = ObjectImage::parse(data).unwrap();
        let relocations: usize =
            image.relocations().unwrap().iter().map(|records| records.iter().map(Result::unwrap).count()).sum();
        assert!(relocations > 0 || object.kind() == ObjectKind::Linked, "{name}");
        assert!(!image.symbol_tables().unwrap().is_empty(), "{name}");
    }
    say(&format!("{} code objects come back byte for byte; descriptors and notes agree", files.len()));
}

#[test]
fn damage_is_refused_without_panic() {
    let Some(bench) = Workbench::new("damage of code objects") else { return };
    let mut state = 1_u64;
    let mut random = |end: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % end
    };
    let mut refused = 0;
    for (_, data) in &files(&bench, &bench.versions[..1], |number| number.is_multiple_of(5)) {
        for _ in 0..200 {
            let mut bad = data.clone();
            // Headers, the section table, or anything.
            let (start, end) = [(0, 512), (data.len() - data.len() / 4, data.len()), (0, data.len())][random(3)];
            for _ in 0..1 + random(3) {
                bad[start + random(end.min(data.len()) - start)] = [0, 1, 0x7f, 0x80, 0xff][random(5)];
            }
            bad.truncate(if random(8) == 0 { random(bad.len()) } else { bad.len() });
            if let Ok(image) = ObjectImage::parse(&bad) {
                let _ = image.symbol_tables();
                let rows = image.relocations().into_iter().flatten();
                rows.for_each(|records| records.iter().for_each(|_| ()));
            }
            match again(&bad) {
                Some(same) => assert!(same == bad, "what is accepted comes back"),
                None => refused += 1,
            }
        }
    }
    assert!(refused > 100, "damage is noticed");
}

/// Parts that are not loaded may claim any alignment; where nothing gave its old position, the new one could be
/// anywhere.
#[test]
fn alignments_that_only_headers_claim_are_refused_when_something_grows() {
    let Some(bench) = Workbench::new("alignments that nothing has") else { return };
    let newest = &bench.versions[bench.versions.len() - 1..];
    let linked = files(&bench, newest, |number| number == 5 * FORMS.len() + PLAIN).into_iter().next();
    let (name, linked) = linked.expect("a linked file");
    assert!(name.contains("gfx1250") && name.ends_with("Some(\"\")"), "{name}");
    let error = |name: &str, align: u64, grows: &str| {
        let mut data = linked.clone();
        let image = ObjectImage::parse(&linked).unwrap();
        let table = u64::from_le_bytes(data[40..48].try_into().unwrap()) as usize;
        let row = table + image.find(name).unwrap() * 64;
        data[row + 8..row + 16].fill(0);
        data[row + 48..row + 56].copy_from_slice(&align.to_le_bytes());
        let image = ObjectImage::parse(&data).unwrap();
        let mut sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
        assert_eq!(
            ImageLayout::new(&image, &sizes).and_then(|layout| layout.write_file(&image)).ok().as_ref(),
            Some(&data)
        );
        sizes[image.find(grows).unwrap()] += 5000;
        ImageLayout::new(&image, &sizes).unwrap_err().what
    };
    assert_eq!(error(".hash", 64 << 20, ".dynsym"), "the section `.dynstr` would lie over what is before it");
    let large = error(".comment", 1 << 32, ".text");
    assert!(large.starts_with("alignments would make a file of 42949"), "{large}");
}
