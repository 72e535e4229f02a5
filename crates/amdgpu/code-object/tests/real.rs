//! Files of real compilers: every form they write is read, and no damage to them makes reading panic.

use hotswap_code_object::{CodeMap, CodeObject, ObjectEdit, ObjectKind};
use hotswap_samples::clangs::{Clang, clangs};
use proptest::prelude::*;

const SOURCE: &str = r#"
#define KERNEL extern "C" __attribute__((global)) void
KERNEL plain(int *x) { x[__builtin_amdgcn_workitem_id_x()] += 1; }
KERNEL lds(int *x) {
  __attribute__((shared)) int part[64];
  part[__builtin_amdgcn_workitem_id_x()] = x[0];
  __builtin_amdgcn_s_barrier();
  x[1] = part[3];
}
template <class T> __attribute__((global)) void templated(T *x) { *x *= 2; }
template __attribute__((global)) void templated<double>(double *);
"#;

/// Name, options, kind, kernels.
const FORMS: &[(&str, &str, ObjectKind, usize)] = &[
    ("linked", "", ObjectKind::Linked, 3),
    ("debug", "-g -O0", ObjectKind::Linked, 3),
    ("v5", "-mcode-object-version=5", ObjectKind::Linked, 3),
    ("v4", "-mcode-object-version=4", ObjectKind::Linked, 3),
    ("wave64", "-mwavefrontsize64", ObjectKind::Linked, 3),
    ("stripped", "-Xoffload-linker --strip-all", ObjectKind::Linked, 3),
    ("notes-apart", "-Xoffload-linker --build-id", ObjectKind::Linked, 3),
    ("empty", "-DKERNELS=0", ObjectKind::Linked, 0),
];

fn compile(clang: &Clang) -> Vec<(&'static str, Vec<u8>)> {
    let directory = clang.scratch();
    std::fs::write(directory.path().join("k.hip"), format!("#ifndef KERNELS\n{SOURCE}#endif\n")).unwrap();
    let one = |(name, options, _, _): &(&str, &str, ObjectKind, usize)| {
        format!(
            "\"$CLANG\" -x hip --offload-arch=gfx1030 --offload-device-only --no-gpu-bundle-output -nogpulib -nogpuinc -O2 \
             -fuse-cuid=none {options} k.hip -o {name}.co\n"
        )
    };
    let device = "\"$CLANG\" --target=amdgcn-amd-amdhsa -mcpu=gfx90a:xnack+ -nogpulib -g -c k.c -o object.co";
    std::fs::write(directory.path().join("k.c"), "__attribute__((amdgpu_kernel)) void k(int *x) { *x = 1; }\n")
        .unwrap();
    clang.run(directory.path(), &(FORMS.iter().map(one).collect::<String>() + device));
    let names = FORMS.iter().map(|form| form.0).chain(["object"]);
    names.map(|name| (name, std::fs::read(directory.path().join(format!("{name}.co"))).unwrap())).collect()
}

#[test]
fn every_form_that_compilers_write_is_read() {
    for clang in clangs("every_form_that_compilers_write_is_read") {
        let files = compile(&clang);
        for ((name, bytes), (_, _, kind, kernels)) in files.iter().zip(FORMS) {
            let object = CodeObject::parse(bytes).unwrap_or_else(|error| panic!("{} {name}: {error}", clang.command));
            assert_eq!((object.target_id().to_string().as_str(), object.kind()), ("gfx1030", *kind), "{name}");
            assert_eq!((object.note().kernels.len(), object.descriptors().len()), (*kernels, *kernels), "{name}");
            assert_eq!(hotswap_code_object::kernel_count(bytes), Some(*kernels), "{name}");
            assert_eq!(ObjectEdit::new(&object).finish(), *bytes, "{name}");
            assert_eq!(object.note().respell_target(&object.target_id()), object.note().target, "{name}");
            let has_symtab = object.sections().iter().any(|section| section.name == ".symtab");
            assert_eq!(has_symtab, *name != "stripped", "{name}");
            assert_eq!(
                object.sections().iter().any(|s| s.name == ".note.gnu.build-id"),
                *name == "notes-apart",
                "{name}"
            );
            let abi = match *name {
                "v4" => 2,
                "v5" => 3,
                _ => 4,
            };
            assert_eq!(object.abi_version(), abi, "{name}");
            for (kernel, descriptor) in object.note().kernels.iter().zip(object.descriptors()) {
                assert!(kernel.vgpr_count.is_some() && kernel.sgpr_count.is_some() && kernel.scratch.is_some());
                assert_eq!(kernel.wavefront_size, Some(if *name == "wave64" { 64 } else { 32 }), "{name}");
                let lds = u32::from_le_bytes(bytes[descriptor.range.clone()][..4].try_into().unwrap());
                assert_eq!(kernel.lds, Some(u64::from(lds)), "{name} {}", kernel.name);
            }
        }
        let (_, bytes) = files.last().unwrap();
        let object = CodeObject::parse(bytes).unwrap();
        assert_eq!(
            (object.target_id().to_string().as_str(), object.kind()),
            ("gfx90a:xnack+", ObjectKind::Relocatable)
        );
        assert_eq!(object.descriptors().len(), 1);
        println!("{}: {} forms read", clang.command, files.len());
    }
}

/// Offset of the record of a symbol in `.dynsym`.
fn record(object: &CodeObject<'_>, name: &str) -> usize {
    let [symbols, strings] =
        [".dynsym", ".dynstr"].map(|name| object.sections().iter().find(|section| section.name == name).unwrap());
    let names = &object.bytes()[strings.range.clone()];
    let is_it = |at: &usize| {
        let offset = u32::from_le_bytes(object.bytes()[*at..at + 4].try_into().unwrap()) as usize;
        names[offset..].starts_with(&[name.as_bytes(), b"\0"].concat())
    };
    symbols.range.clone().step_by(24).find(is_it).unwrap()
}

/// Kernels whose bodies cannot be reached have no instructions. GFX9 has no padding after the code, and where there are
/// no other kernels, no segment is executable.
#[test]
fn kernels_without_instructions_are_read() {
    const KERNELS: &str = r#"
#define KERNEL extern "C" __attribute__((global)) void
#ifndef ALONE
KERNEL whole(int *x) { *x = 1; }
#endif
KERNEL none(int *) { __builtin_unreachable(); }
KERNEL none_either(int *) { __builtin_unreachable(); }
"#;
    for clang in clangs("kernels_without_instructions_are_read") {
        let directory = clang.scratch();
        std::fs::write(directory.path().join("k.hip"), KERNELS).unwrap();
        let forms = ["", "-DALONE", "-Xoffload-linker --strip-all", "-DALONE -Xoffload-linker --strip-all"];
        for form in forms {
            clang.run(
                directory.path(),
                &format!(
                    "\"$CLANG\" -x hip --offload-arch=gfx900 --offload-device-only --no-gpu-bundle-output -nogpulib \
                     -nogpuinc -O2 {form} k.hip -o k.co"
                ),
            );
            let bytes = std::fs::read(directory.path().join("k.co")).unwrap();
            let object = CodeObject::parse(&bytes).unwrap_or_else(|error| panic!("{} {form}: {error}", clang.command));
            let text = object.sections().iter().find(|section| section.is_code()).unwrap();
            let end = text.address + text.range.len() as u64;
            let none: Vec<_> = object.descriptors().iter().filter(|descriptor| descriptor.entry == end).collect();
            assert_eq!((none.len(), text.range.is_empty()), (2, form.contains("ALONE")), "{} {form}", clang.command);
            let map = CodeMap::read(&bytes).unwrap();
            let symbols: Vec<_> =
                map.sections.iter().flat_map(|section| &section.symbols).map(|one| &*one.name).collect();
            assert_eq!(symbols, if form.contains("ALONE") { vec![] } else { vec!["whole"] });
            assert!(map.problems.is_empty(), "{:?}", map.problems);

            let entry = none[0].range.start + 16;
            let mut beyond = bytes.clone();
            beyond[entry] = beyond[entry].wrapping_add(4);
            let mut cut = bytes.clone();
            cut[record(&object, "none") + 16] = 4;
            for (damaged, kernel) in [(beyond, None), (cut, Some("none"))] {
                let error = CodeObject::parse(&damaged).expect_err("it is damaged");
                assert!(error.what.contains("leaves its section"), "{}", error.what);
                assert!(kernel.is_none() || error.place.kernel.as_deref() == kernel, "{error}");
            }
        }
        println!("{}: {} forms without instructions read", clang.command, forms.len());
    }
}

#[test]
fn damage_to_real_files_does_not_make_reading_panic() {
    let Some(clang) = clangs("damage_to_real_files_does_not_make_reading_panic").into_iter().next() else { return };
    let files: Vec<Vec<u8>> = compile(&clang).into_iter().map(|(_, bytes)| bytes).collect();
    let config = ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() };
    let change = (any::<prop::sample::Index>(), any::<u8>());
    let input =
        (any::<prop::sample::Index>(), prop::collection::vec(change, 0..8), any::<Option<prop::sample::Index>>());
    proptest!(config, |((file, changes, cut) in input)| {
        let mut bytes = file.get(&files).clone();
        for (index, value) in changes {
            let at = index.index(bytes.len());
            bytes[at] = value;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        match CodeObject::parse(&bytes) {
            Ok(object) => prop_assert_eq!(ObjectEdit::new(&object).finish(), bytes.clone()),
            Err(error) => prop_assert!(error.place.offset.is_some_and(|offset| offset <= bytes.len() as u64)),
        }
    });
}
