//! A library of device functions and a code object that imports them: the stubs, the binding, and its refusals.

use hotswap_device_link::{Binding, BoundObject, bind, check_exports, import_stub};
use hotswap_device_symbols::note::{table_of, with_exports};
use hotswap_device_symbols::{FunctionKind, SymbolTable, join_tables};
use hotswap_userland::{Workbench, say, slice, tool};
use std::collections::BTreeSet;

const TARGETS: [&str; 6] = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"];

/// The stub as LLVM's assembler makes it.
fn assembly(target: &str) -> String {
    let word = "__hotswap_import.lib_fn";
    let body = match target {
        "gfx1250" => format!(
            "s_wait_kmcnt 0x0\ns_wait_xcnt 0x0\ns_get_pc_i64 vcc\ns_add_nc_u64 vcc, vcc, {word}@gotpcrel+4\n\
             s_load_b64 vcc, vcc, 0x0\ns_wait_kmcnt 0x0\ns_set_pc_i64 vcc\n"
        ),
        "gfx1201" => format!(
            "s_wait_kmcnt 0x0\ns_getpc_b64 vcc\ns_sext_i32_i16 vcc_hi, vcc_hi\n\
             s_add_co_u32 vcc_lo, vcc_lo, {word}@gotpcrel32@lo+8\ns_add_co_ci_u32 vcc_hi, vcc_hi, {word}@gotpcrel32@hi+16\n\
             s_load_b64 vcc, vcc, 0x0\ns_wait_kmcnt 0x0\ns_setpc_b64 vcc\n"
        ),
        _ => format!(
            "s_waitcnt lgkmcnt(0)\ns_getpc_b64 vcc\ns_add_u32 vcc_lo, vcc_lo, {word}@gotpcrel32@lo+4\n\
             s_addc_u32 vcc_hi, vcc_hi, {word}@gotpcrel32@hi+12\n{} vcc, vcc, 0x0\ns_waitcnt lgkmcnt(0)\ns_setpc_b64 vcc\n",
            if target.starts_with("gfx11") { "s_load_b64" } else { "s_load_dwordx2" }
        ),
    };
    format!(
        ".globl lib_fn\n.hidden lib_fn\n.type lib_fn,@function\nlib_fn:\n{body}.Lend:\n.size lib_fn, .Lend-lib_fn\n"
    )
}

/// Code, relocations and symbols of an object by LLVM's tools.
fn facts(bench: &Workbench, name: &str) -> Vec<String> {
    let code = bench.run(&format!("{} -d -r {name}", tool(24, "llvm-objdump")));
    let symbols = bench.run(&format!("{} -sW -h {name}", tool(24, "llvm-readelf")));
    let is_code = |line: &&str| line.contains("//") || line.contains("R_AMDGPU");
    let is_symbol = |line: &&str| line.contains("lib_fn") || line.contains("Flags:") || line.contains("ABI Version");
    let words =
        |line: &str| line.split_whitespace().skip_while(|word| word.ends_with(':')).collect::<Vec<_>>().join(" ");
    let end = |line: &&str| !line.contains("s_code_end") && !line.contains("s_nop");
    let symbols: BTreeSet<String> = symbols.lines().filter(is_symbol).map(words).collect();
    code.lines().filter(is_code).take_while(end).map(words).chain(symbols).collect()
}

#[test]
fn stubs_are_those_of_the_assembler() {
    let Some(bench) = Workbench::with_llvm(24, "stubs_are_those_of_the_assembler") else { return };
    for target in TARGETS.into_iter().chain(["gfx900", "gfx1010", "gfx1151"]) {
        let wanted = bench.assemble(24, &format!("-mcpu={target}"), "wanted", &assembly(target));
        bench.write("stub.o", &import_stub("lib_fn", &wanted).unwrap());
        bench.write("wanted.o", &wanted);
        let [found, wanted] = ["stub.o", "wanted.o"].map(|name| facts(&bench, name));
        // Numbers of sections differ.
        let plain = |facts: Vec<String>| -> Vec<String> {
            facts.into_iter().map(|line| line.replace("HIDDEN 1 ", "HIDDEN 2 ")).collect()
        };
        assert_eq!(plain(found), plain(wanted), "{target}");
    }
    assert_eq!(import_stub("lib_fn", b"no object"), None);
}

/// A library, a user with a stub, and another library with the same function.
fn make(bench: &Workbench, version: u32, target: &str) {
    make_with(bench, version, &MadePair { targets: [target; 2], options: [""; 2] });
}

/// Targets and further options of library and user.
struct MadePair<'a> {
    targets: [&'a str; 2],
    options: [&'a str; 2],
}

fn make_with(bench: &Workbench, version: u32, pair: &MadePair<'_>) {
    bench.write("library.hip", include_bytes!("library.hip"));
    bench.write("kernels.hip", include_bytes!("kernels.hip"));
    let (clang, lld) = (tool(version, "clang++"), tool(version, "ld.lld"));
    let common =
        format!("{clang} -x hip -nogpuinc -nogpulib --offload-device-only -fgpu-rdc --no-gpu-bundle-output -O2 -w");
    for ((name, target), options) in ["library", "kernels"].iter().zip(pair.targets).zip(pair.options) {
        let common = format!("{common} --offload-arch={target} {options}");
        bench.run(&match version {
            22 => format!(
                "{common} -emit-llvm -c {name}.hip -o {name}.bc && {} -O2 -mcpu={target} -filetype=obj -relocation-model=pic {name}.bc -o {name}.o",
                tool(22, "llc")
            ),
            _ => format!("{common} -fno-offload-lto -c {name}.hip -o {name}.o"),
        });
    }
    bench.write("stub.o", &import_stub("lib_fn", &bench.read("kernels.o")).unwrap());
    bench.run(&format!("{lld} -shared kernels.o stub.o -o user.co && {lld} -shared library.o -o library.co"));
    if pair.targets[0] == pair.targets[1] && pair.options[0] == pair.options[1] {
        bench.run(&format!("{lld} -shared library.o kernels.o -o all.co"));
    }
    let names = BTreeSet::from(["lib_fn".to_owned()]);
    let library = bench.read("library.co");
    check_exports(&library, &names).unwrap();
    bench.write("library.co", &with_exports(&library, &names).unwrap().0);
}

/// A code object with its table.
struct Loaded {
    name: &'static str,
    bytes: Vec<u8>,
    table: SymbolTable,
}

impl Loaded {
    fn of(bench: &Workbench, name: &'static str) -> Self {
        Self::new(name, bench.read(name))
    }

    fn new(name: &'static str, bytes: Vec<u8>) -> Self {
        let (table, _) = table_of(&bytes).unwrap();
        Self { name, bytes, table }
    }

    fn bound(&self) -> BoundObject<'_> {
        BoundObject { name: self.name.to_owned(), bytes: &self.bytes, table: &self.table }
    }
}

fn bound(user: &Loaded, libraries: &[&Loaded]) -> Binding {
    let libraries: Vec<_> = libraries.iter().map(|one| one.bound()).collect();
    bind(&user.bound(), &libraries).unwrap()
}

/// The calls below each kernel by name, and whether these are all; a stub has the name of its function.
fn calls(table: &SymbolTable) -> BTreeSet<String> {
    let name = |number: u32| table.functions[number as usize].name.as_str();
    let mut lines = BTreeSet::new();
    for kernel in &table.kernels {
        lines.insert(format!("{}: complete {}", name(kernel.function), kernel.complete));
        for from in &kernel.reachable {
            let callees = table.functions[*from as usize].callees.iter().map(|callee| callee.function);
            let calls = callees.map(|to| format!("{}: {} -> {}", name(kernel.function), name(*from), name(to)));
            lines.extend(calls.filter(|line| !line.ends_with(&format!("{0} -> {0}", name(*from)))));
        }
    }
    lines
}

#[test]
fn a_binding_has_the_numbers_of_one_link() {
    let test = "a_binding_has_the_numbers_of_one_link";
    let Some(bench) = Workbench::new(test) else { return };
    let versions = bench.versions.iter().copied().filter(|version| *version <= 24);
    let all: Vec<_> = versions.flat_map(|version| TARGETS.map(|target| (version, target))).collect();
    let mut compared = 0;
    for (version, target) in slice(test, all, |number, _| number % 6 == number / 6 * 2) {
        make(&bench, version, target);
        let (user, library, whole) =
            (Loaded::of(&bench, "user.co"), Loaded::of(&bench, "library.co"), Loaded::of(&bench, "all.co"));
        let stub = &user.table.functions[user.table.number_of_name("lib_fn").unwrap()];
        assert_eq!(stub.kind, FunctionKind::ImportStub, "{version} {target}: {stub:?}");
        assert_eq!(stub.imports, ["__hotswap_import.lib_fn"]);
        let found = bound(&user, &[&library]);
        assert!(found.unbound.is_empty(), "{version} {target}: {:?}", found.unbound);
        let import = &found.imports[0];
        let exported = &library.table.functions[library.table.number_of_name("lib_fn").unwrap()];
        assert_eq!((&*import.symbol, import.address), ("__hotswap_import.lib_fn", exported.address));
        let both =
            join_tables(&user.table, &[&library.table], |name| Some((0, library.table.number_of_name(name)? as u32)));
        assert_eq!(calls(&both), calls(&whole.table), "{version} {target}");
        // One link of all objects needs the same.
        let inputs = ["kernels.o", "library.o"].map(|name| (name, bench.read(name)));
        let inputs: Vec<_> =
            inputs.iter().flat_map(|(name, bytes)| hotswap_device_link::link_inputs(name, bytes)).collect();
        let linked =
            hotswap_device_link::check_link(&whole.bytes, &inputs, hotswap_device_link::DynamicStack::OfHip).unwrap();
        let numbers = |report: &hotswap_device_link::LinkReport| {
            report.short.iter().map(|one| (one.kernel.clone(), one.needs, one.forced_by.clone())).collect::<Vec<_>>()
        };
        assert_eq!(numbers(&found.report), numbers(&linked), "{version} {target}");
        assert_eq!((found.report.short.len(), found.report.open.len()), (1, 0), "{version} {target}");
        assert!(found.problems()[0].to_string().contains("`lib_fn` makes it need"), "{:?}", found.problems());
        let prepared = Loaded::new("prepared.co", found.prepared_file(&user.bytes).unwrap());
        assert!(bound(&prepared, &[&library]).problems().is_empty(), "{version} {target}");
        let needs = &found.report.short[0].needs;
        say(&format!("exam bindings | {version} | {target} | {} | {} |", needs.vgprs, needs.scratch));
        compared += 1;
    }
    say(&format!("{test}: {compared} links"));
    assert!(compared >= 3);
}

#[test]
fn what_does_not_fit_is_told_with_names_and_numbers() {
    let Some(bench) = Workbench::with_llvm(23, "what_does_not_fit_is_told_with_names_and_numbers") else { return };
    make(&bench, 23, "gfx1030");
    let (user, library) = (Loaded::of(&bench, "user.co"), Loaded::of(&bench, "library.co"));
    let told =
        |libraries: &[&Loaded]| bound(&user, libraries).unbound.iter().map(|one| one.what.clone()).collect::<Vec<_>>();
    assert_eq!(told(&[]), ["user.co imports `lib_fn`, and no library is there"]);
    assert!(bound(&user, &[]).prepared_file(&user.bytes).is_err());
    assert_eq!(bound(&user, &[]).report.open, ["k_use"], "what is not known is told");
    let row = |fault: &str, code: &str, told: &str| say(&format!("exam refused | {fault} | {code} | {told} |"));
    row("missing import", bound(&user, &[]).unbound[0].code.id, &told(&[])[0]);
    let twice = told(&[&library, &library]);
    row("exported twice", bound(&user, &[&library, &library]).unbound[0].code.id, &twice[0]);
    assert_eq!(twice, ["`lib_fn`, which user.co imports, is exported 2 times: by library.co and library.co"]);
    // Not exported, and hidden.
    bench.run(&format!("{} --remove-section .note.hotswap.devsyms library.co other.co", tool(23, "llvm-objcopy")));
    let hidden = told(&[&Loaded::of(&bench, "other.co")]);
    assert!(hidden.len() == 1 && hidden[0].contains("none of the 0 functions that other.co exports"), "{hidden:?}");
    make(&bench, 23, "gfx1100");
    let other = told(&[&Loaded::of(&bench, "library.co")]);
    assert_eq!(other, ["user.co is for gfx1030, library.co for gfx1100"]);
    row("another GPU", "HS0429", &other[0]);
}

/// A library and a user that differ in one property, and the finding.
struct OtherConvention {
    targets: [&'static str; 2],
    options: [&'static str; 2],
    code: &'static str,
    told: &'static str,
}

/// Code objects that the linker would refuse to link, or whose functions rely on another kind of launch.
const OTHER_CONVENTIONS: [OtherConvention; 9] = [
    OtherConvention {
        targets: ["gfx1030"; 2],
        options: ["-mcode-object-version=6", "-mcode-object-version=4"],
        code: "HS0429",
        told: "user.co is of code object version 4, library.co of 6",
    },
    OtherConvention {
        targets: ["gfx1100"; 2],
        options: ["-mcode-object-version=5", "-mcode-object-version=6"],
        code: "HS0429",
        told: "user.co is of code object version 6, library.co of 5",
    },
    OtherConvention {
        targets: ["gfx90a"; 2],
        options: ["-mcode-object-version=4", "-mcode-object-version=5"],
        code: "HS0429",
        told: "user.co is of code object version 5, library.co of 4",
    },
    OtherConvention {
        targets: ["gfx90a:xnack+", "gfx90a:xnack-"],
        options: [""; 2],
        code: "HS0429",
        told: "user.co is for gfx90a:xnack-, library.co for gfx90a:xnack+",
    },
    OtherConvention {
        targets: ["gfx942:sramecc+", "gfx942:sramecc-"],
        options: [""; 2],
        code: "HS0429",
        told: "user.co is for gfx942:sramecc-, library.co for gfx942:sramecc+",
    },
    OtherConvention {
        targets: ["gfx1030"; 2],
        options: ["-mwavefrontsize64 -DKERNEL", ""],
        code: "HS0426",
        told: "kernel `k_use` runs in waves of 32 lanes, `lib_fn`, which it reaches, was compiled for 64",
    },
    OtherConvention {
        targets: ["gfx1030"; 2],
        options: ["-DKERNEL", "-mwavefrontsize64"],
        code: "HS0426",
        told: "kernel `k_use` runs in waves of 64 lanes, `lib_fn`, which it reaches, was compiled for 32",
    },
    OtherConvention {
        targets: ["gfx1030"; 2],
        options: ["-mcumode -DKERNEL", ""],
        code: "HS0426",
        told: "kernel `k_use` runs in WGP mode, `lib_fn`, which it reaches, was compiled for CU mode",
    },
    OtherConvention {
        targets: ["gfx1201"; 2],
        options: ["-mcumode -DKERNEL", ""],
        code: "HS0426",
        told: "kernel `k_use` runs in WGP mode, `lib_fn`, which it reaches, was compiled for CU mode",
    },
];

#[test]
fn code_objects_of_other_conventions_are_not_bound() {
    let Some(bench) = Workbench::with_llvm(24, "code_objects_of_other_conventions_are_not_bound") else { return };
    for OtherConvention { targets, options, code, told } in OTHER_CONVENTIONS {
        make_with(&bench, 24, &MadePair { targets, options });
        let (user, library) = (Loaded::of(&bench, "user.co"), Loaded::of(&bench, "library.co"));
        let binding = bound(&user, &[&library]);
        let problems = binding.problems();
        let found = problems.iter().find(|one| one.what.starts_with(told));
        assert!(found.is_some_and(|one| one.code.id == code), "{targets:?} {options:?}: {problems:?}");
        assert!(binding.prepared_file(&user.bytes).is_err(), "{targets:?} {options:?}");
        say(&format!("exam refused | {} | {code} | {} |", [targets, options].concat().join(" "), found.unwrap().what));
    }
}

/// The same kinds of code objects, each with its own kind: only the numbers of the kernel are a finding.
#[test]
fn code_objects_of_one_convention_are_bound() {
    let test = "code_objects_of_one_convention_are_bound";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let kinds = OTHER_CONVENTIONS.iter().flat_map(|pair| [0, 1].map(|side| [pair.targets[side], pair.options[side]]));
    let kinds: Vec<[&str; 2]> = kinds.collect::<BTreeSet<_>>().into_iter().collect();
    assert!(kinds.len() >= 12, "{kinds:?}");
    for [target, options] in slice(test, kinds, |number, _| number % 3 == 2) {
        make_with(&bench, 24, &MadePair { targets: [target; 2], options: [options; 2] });
        let (user, library) = (Loaded::of(&bench, "user.co"), Loaded::of(&bench, "library.co"));
        let binding = bound(&user, &[&library]);
        let (unbound, mixes) = (&binding.unbound, &binding.report.mixes);
        assert!(unbound.is_empty() && mixes.is_empty(), "{target} {options}: {unbound:?} {mixes:?}");
        assert_eq!((binding.imports.len(), binding.report.short.len()), (1, 1), "{target} {options}");
        let prepared = binding.prepared_file(&user.bytes);
        assert!(prepared.is_ok(), "{target} {options}: {prepared:.200?}");
    }
}

/// A pair that differs in one byte of the header, which lld compares too: "incompatible ABI version".
#[test]
fn the_abi_version_alone_stops_a_binding() {
    /// Its place in the header.
    const ABI_VERSION: usize = 8;
    let Some(bench) = Workbench::with_llvm(24, "the_abi_version_alone_stops_a_binding") else { return };
    make_with(&bench, 24, &MadePair { targets: ["gfx1030"; 2], options: ["-mcode-object-version=6"; 2] });
    for name in ["user.co", "library.co"] {
        let mut objects = ["user.co", "library.co"].map(|name| Loaded::of(&bench, name));
        let planted = objects.iter_mut().find(|one| one.name == name).expect("it is one of them");
        let version = planted.bytes[ABI_VERSION];
        planted.bytes[ABI_VERSION] = version - 1;
        let [user, library] = &objects;
        let binding = bound(user, &[library]);
        let told: Vec<_> =
            binding.unbound.iter().map(|one| (one.code.id, one.what.contains("code object version"))).collect();
        assert_eq!(told, [("HS0429", true)], "{name}: {:?}", binding.unbound);
        assert!(binding.prepared_file(&user.bytes).is_err(), "{name}");
    }
}

/// Functions of clang 20 and before preserve other scalar registers: neither side may be older than that.
#[test]
fn code_of_an_older_calling_convention_is_not_bound() {
    let Some(bench) = Workbench::with_llvm(23, "code_of_an_older_calling_convention_is_not_bound") else { return };
    for (old, new) in [("library.co", "user.co"), ("user.co", "library.co")] {
        make(&bench, 23, "gfx1030");
        let [user, library] = ["user.co", "library.co"].map(|name| Loaded::of(&bench, name));
        assert!(bound(&user, &[&library]).report.mixes.is_empty());
        bench.write("comment", b"clang version 20.1.8\0");
        bench.run(&format!("{} --update-section .comment=comment {old}", tool(23, "llvm-objcopy")));
        let [user, library] = ["user.co", "library.co"].map(|name| Loaded::of(&bench, name));
        let binding = bound(&user, &[&library]);
        let told = format!("{old} was compiled by clang 20, {new} by clang 23");
        let problems = binding.problems();
        let found = problems.iter().find(|one| one.what.starts_with(&told));
        assert!(found.is_some_and(|one| one.code.id == "HS0426"), "{old}: {problems:?}");
        assert!(binding.prepared_file(&user.bytes).is_err(), "{old}");
        say(&format!("exam refused | clang 20 for {old} | HS0426 | {} |", found.unwrap().what));
    }
}

#[test]
fn functions_that_cannot_be_exported_are_refused() {
    let Some(bench) = Workbench::with_llvm(23, "functions_that_cannot_be_exported_are_refused") else { return };
    make(&bench, 23, "gfx1030");
    let refused = |file: &str, name: &str| {
        let names = BTreeSet::from([name.to_owned()]);
        check_exports(&bench.read(file), &names).map_err(|error| error.to_string()).unwrap_err()
    };
    assert!(refused("all.co", "gone").contains("does not define it"));
    assert!(refused("all.co", "k_alone").contains("is no device function"));
    // The compiler may give a function of its own fewer preserved registers.
    bench.write(
        "own.hip",
        b"static __attribute__((device, noinline)) float own(float x) { return x * x; }\n\
        extern \"C\" __attribute__((global)) void k(float *p) { p[0] = own(p[1]); }\n",
    );
    bench.run(&format!(
        "{} -x hip --offload-arch=gfx1030 -nogpuinc -nogpulib --offload-device-only --no-gpu-bundle-output -O2 -w -c own.hip -o own.co",
        tool(23, "clang++")
    ));
    assert!(refused("own.co", "_ZL3ownf").contains("the compiler took it for a function of its file alone"));
}
