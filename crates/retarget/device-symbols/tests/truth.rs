//! Tables of compiled code, compared with LLVM's own about the same code: relocations, and the numbers of its assembly.

mod common;

use common::{Made, Setting, functions, make, references, relocations, set_symbols, settings};
use hotswap_device_symbols::{FactEvidence, Function, FunctionKind, Number, SymbolTable, analyse_file, join_tables};
use hotswap_userland::{Workbench, say, slice, tool};
use std::collections::BTreeSet;

const SOURCE: &str = concat!(include_str!("functions.hip"), include_str!("traps.hip"));

/// Edges and numbers that were compared.
#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    functions: usize,
    edges: usize,
    /// Of these and the other references, those with a relocation in the linked file.
    relocated: usize,
    /// Referenced functions that are no callees, and are said to have their address taken.
    taken: usize,
    unresolved: usize,
    missed: usize,
    invented: usize,
    registers: usize,
    /// Sizes of frames that equal LLVM's, and functions whose frame the code does not tell.
    frames: usize,
    unknown_frames: usize,
}

fn table(data: &[u8]) -> SymbolTable {
    let (table, problems) = analyse_file(data).expect("the compiler makes code objects");
    assert!(problems.is_empty(), "{problems:?}");
    table
}

/// A slice has each version with each target, at one of the levels.
fn chosen(test: &str, bench: &Workbench) -> Vec<Setting> {
    slice(test, settings(bench), |number, _| number / 2 % 2 == number % 2)
}

impl Counts {
    /// The row of a setting in the table of `cargo xtask symbols exam`.
    fn row(&self, before: &Self, setting: &Setting) -> String {
        let new = |field: fn(&Self) -> usize| field(self) - field(before);
        format!(
            "exam calls | {} | {} | -O{} | {} | {} | {} | {} | {} | {} | {} | {} |",
            setting.version,
            setting.target,
            setting.level,
            new(|one| one.functions),
            new(|one| one.edges),
            new(|one| one.missed),
            new(|one| one.invented),
            new(|one| one.unresolved),
            new(|one| one.registers),
            new(|one| one.frames),
            new(|one| one.unknown_frames)
        )
    }

    fn edges(&mut self, table: &SymbolTable, made: &Made, setting: &Setting) {
        let truth = references(&made.assembly);
        for (function, named) in relocations(&made.listing) {
            let all = truth.get(&function).is_some_and(|all| named.is_subset(all));
            assert!(all, "{setting:?}: relocations of {function}: {named:?}");
            self.relocated += named.len();
        }
        let symbols = functions(&made.listing);
        let name = |one: &Function| symbols.get(&one.address).map_or(one.name.clone(), |(name, _)| name.clone());
        for function in &table.functions {
            self.functions += 1;
            let wanted = truth.get(&name(function)).cloned().unwrap_or_default();
            let found: BTreeSet<String> =
                function.callees.iter().map(|callee| name(&table.functions[callee.function as usize])).collect();
            self.edges += found.intersection(&wanted).count();
            self.unresolved += function.indirect_calls.unresolved.len();
            for missed in wanted.difference(&found) {
                let callee = table.functions.iter().find(|one| name(one) == *missed);
                let is_told = callee.is_some_and(|callee| callee.address_taken);
                let slot = if is_told { &mut self.taken } else { &mut self.missed };
                *slot += 1;
                assert!(is_told, "{setting:?}: {} does not call {missed}", function.name);
            }
            let invented: Vec<&String> = found.difference(&wanted).collect();
            self.invented += invented.len();
            assert!(invented.is_empty(), "{setting:?}: {} calls {invented:?}", function.name);
        }
    }

    fn registers(&mut self, table: &SymbolTable, made: &Made, setting: &Setting) {
        type Field = fn(&Function) -> [hotswap_device_symbols::Number; 2];
        let fields: [(&str, Field); 3] = [
            ("num_vgpr", |one| [one.own.vgprs, one.total.vgprs]),
            ("num_agpr", |one| [one.own.agprs, one.total.agprs]),
            ("numbered_sgpr", |one| [one.own.sgprs, one.total.sgprs]),
        ];
        let frames = set_symbols(&made.assembly, "private_seg_size");
        for function in table.functions.iter().filter(|one| one.kind == FunctionKind::Function) {
            let Some((stated, _)) = frames.get(&function.name) else { continue };
            let found = function.own.scratch;
            assert!(is_frame(found, *stated), "{setting:?}: frame of {}: {found:?}, LLVM {stated}", function.name);
            self.frames += usize::from(found.value.is_some() && !found.at_least);
            self.unknown_frames += usize::from(found.value.is_none() || found.at_least);
        }
        for (name, field) in fields {
            let stated = set_symbols(&made.assembly, name);
            for function in &table.functions {
                let Some((own, total)) = stated.get(&function.name) else { continue };
                let [found_own, found_total] = field(function);
                assert!(
                    found_own.value <= Some(*own),
                    "{setting:?}: {} of {}: {found_own:?}, LLVM {own}",
                    name,
                    function.name
                );
                let is_device = function.kind == FunctionKind::Function;
                if is_device && name != "numbered_sgpr" {
                    assert_eq!(found_own.value, Some(*own), "{setting:?}: {name} of {}", function.name);
                    if let Some(total) = total.filter(|_| !found_total.at_least) {
                        assert_eq!(found_total.value, Some(total), "{setting:?}: {name} of {}", function.name);
                    }
                    self.registers += 1;
                }
            }
        }
    }
}

#[test]
fn calls_and_registers_are_those_of_llvm() {
    let test = "calls_and_registers_are_those_of_llvm";
    let Some(bench) = Workbench::new(test) else { return };
    let mut counts = Counts::default();
    for setting in chosen(test, &bench) {
        let made = make(&bench, &setting, SOURCE);
        let linked = table(&made.linked);
        let before = counts;
        counts.edges(&linked, &made, &setting);
        counts.registers(&linked, &made, &setting);
        let relocatable = table(&made.object);
        assert_eq!(calls(&relocatable), calls(&linked), "{setting:?}");
        say(&counts.row(&before, &setting));
    }
    say(&format!("{test}: {counts:?}"));
    assert!(counts.edges > 50 && counts.registers > 50 && counts.unresolved > 0, "{counts:?}");
    // Every function that code names is called: none has its address taken by code alone.
    assert_eq!((counts.missed, counts.invented, counts.taken), (0, 0, 0));
}

/// Whether a frame is that of LLVM: frames are multiples of 16 bytes where a function calls others.
fn is_frame(found: Number, stated: u64) -> bool {
    match found.value {
        None => true,
        Some(value) if found.at_least => value <= stated.next_multiple_of(16),
        Some(value) => (stated..stated + 16).contains(&value),
    }
}

/// The calls of a table by names.
fn calls(table: &SymbolTable) -> BTreeSet<(&str, &str)> {
    let of = |one: &'_ Function| one.callees.iter().map(|callee| callee.function).collect::<Vec<_>>();
    let name = |number: u32| table.functions[number as usize].name.as_str();
    let all = table.functions.iter().flat_map(|one| of(one).into_iter().map(move |callee| (one.name.as_str(), callee)));
    all.map(|(caller, callee)| (caller, name(callee))).collect()
}

/// Without the compiler's record the same calls and registers come from the code; recursion is what the source says.
#[test]
fn the_compilers_records_agree_with_the_code() {
    let test = "the_compilers_records_agree_with_the_code";
    let Some(bench) = Workbench::new(test) else { return };
    bench.write("a.hip", SOURCE.as_bytes());
    let mut compared = 0;
    for version in bench.versions.iter().filter(|version| (23..=24).contains(*version)) {
        let clang = tool(*version, "clang++");
        bench.run(&format!(
            "{clang} -x hip --offload-arch=gfx90a -nogpuinc -nogpulib --offload-device-only -fgpu-rdc -fno-offload-lto \
             --no-gpu-bundle-output -O2 -w -mllvm -amdgpu-enable-object-linking -c a.hip -o with.o && \
             {} --remove-section=.amdgpu.info --remove-section=.rela.amdgpu.info with.o without.o",
            tool(*version, "llvm-objcopy")
        ));
        let (with, without) = (bench.read("with.o"), bench.read("without.o"));
        // Without the records the kernels have fewer registers than they will get from a linker, and that is told.
        let (with, (without, told)) = (table(&with), analyse_file(&without).unwrap());
        assert!(told.iter().all(|one| one.code.id == "HS0424"), "{told:?}");
        assert_eq!(calls(&with), calls(&without));
        for (one, other) in with.functions.iter().zip(&without.functions) {
            let is_device = one.kind == FunctionKind::Function;
            assert_eq!(one.own.vgprs.evidence, FactEvidence::CompilerRecord, "{}", one.name);
            assert_eq!(one.own.vgprs.value, other.own.vgprs.value, "{}", one.name);
            assert!(!is_device || one.own.sgprs.value == other.own.sgprs.value, "{}", one.name);
            let frame = (one.own.scratch.value.expect("it is recorded"), other.own.scratch);
            assert!(!is_device || is_frame(frame.1, frame.0), "{}: {frame:?}", one.name);
            compared += 1;
        }
        let recursive = |name: &str| with.functions[with.number_of_name(name).expect("it is there")].recursive;
        let found = ["_Z3fibi", "_Z4eveni", "_Z4leaff", "_Z3anyP4Basef"].map(recursive);
        assert_eq!(found, [Some(true), Some(true), Some(false), None]);
    }
    say(&format!("{test}: {compared} functions"));
    assert!(compared > 20);
}

/// Objects of native code, linked: the kernel keeps the registers that its own compilation gave it.
#[test]
fn a_kernel_without_the_registers_of_its_callee_is_told() {
    let test = "a_kernel_without_the_registers_of_its_callee_is_told";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let head = "#define DEVICE __attribute__((device, noinline))\n";
    let callee = "DEVICE float lib(float x) { __asm__ volatile(\"v_mov_b32 v119, v0\" ::: \"v119\"); return x; }";
    let kernel = "extern DEVICE float lib(float);\nextern \"C\" __attribute__((global)) void use(float *p) { p[0] = lib(p[1]); }";
    bench.write("lib.hip", format!("{head}{callee}").as_bytes());
    bench.write("use.hip", format!("{head}{kernel}").as_bytes());
    let clang = format!(
        "{} -x hip --offload-arch=gfx90a -nogpuinc -nogpulib --offload-device-only -fgpu-rdc -fno-offload-lto \
         --no-gpu-bundle-output -O2 -w -c",
        tool(24, "clang++")
    );
    let link = format!("{} -shared use.o lib.o -o use.co", tool(24, "ld.lld"));
    bench.run(&format!("{clang} lib.hip -o lib.o && {clang} use.hip -o use.o && {link}"));
    let (alone, problems) = analyse_file(&bench.read("use.o")).unwrap();
    assert!(problems.is_empty() && !alone.closed && !alone.kernels[0].complete);
    assert!(alone.functions[0].total.vgprs.at_least && alone.functions[0].imports == ["_Z3libf"]);
    let linked = bench.read("use.co");
    let (linked, problems) = analyse_file(&linked).unwrap();
    let kernel = &linked.functions[linked.number_of_name("use").unwrap()];
    assert!(linked.kernels[0].complete && problems.len() == 1, "{problems:?}");
    assert_eq!((problems[0].code.id, kernel.total.vgprs), ("HS0424", Number::known_by(120, FactEvidence::Disassembly)));
}

/// Registers of other banks count, and those that nothing tells make the number a lower bound.
#[test]
fn banks_and_indexed_registers_count() {
    let Some(bench) = Workbench::with_llvm(24, "banks_and_indexed_registers_count") else { return };
    let code = |body: &str| format!(".type f,@function\nf:\n{body}\n s_setpc_b64 s[30:31]\n.size f, .-f\n");
    let cases = [
        ("gfx1250", " s_set_vgpr_msb 0x40\n v_mov_b32 v44, v0\n s_set_vgpr_msb 0x4000", 301, false),
        ("gfx1250", " v_mov_b32 v44, v0", 45, false),
        ("gfx90a", " s_set_gpr_idx_on s0, 1\n v_mov_b32 v3, v2\n s_set_gpr_idx_off", 4, true),
        ("gfx90a", " global_load_dwordx4 v[8:11], v[0:1], off", 12, false),
    ];
    for (target, body, count, at_least) in cases {
        let text = code(body).replace("s_setpc_b64", if target == "gfx1250" { "s_set_pc_i64" } else { "s_setpc_b64" });
        let object = bench.assemble(24, &format!("-mcpu={target}"), "f", &text);
        let found = table(&object).functions[0].own.vgprs;
        assert_eq!((found.value, found.at_least), (Some(count), at_least), "{target}: {body}");
    }
}

/// The compiler's records name the LDS that a function uses; where padding or the launch decides, the number is a lower bound.
#[test]
fn records_tell_the_lds_of_a_function() {
    let Some(bench) = Workbench::with_llvm(23, "records_tell_the_lds_of_a_function") else { return };
    let source = "#define D __attribute__((device, noinline))
#define S __attribute__((shared))
S int words[100]; S char bytes[3]; S double pair[2]; extern S int dynamic[];
extern \"C\" {
D int two(int i) { words[i] = i; return words[99 - i] + (int)pair[i & 1]; }
D int odd(int i) { bytes[i & 1] = i; return bytes[1]; }
D int padded(int i) { return bytes[i & 1] + words[i]; }
D int open(int i) { dynamic[i] = i; return dynamic[i + 1]; }
D int none(int i) { return i * 3; }
__attribute__((global)) void k(int *p) { p[0] = two(p[1]) + odd(p[2]) + padded(p[3]) + open(p[4]) + none(p[5]); }
}
";
    bench.write("a.hip", source.as_bytes());
    bench.run(&format!(
        "{} -x hip --offload-arch=gfx90a -nogpuinc -nogpulib --offload-device-only -fgpu-rdc -fno-offload-lto \
         --no-gpu-bundle-output -O2 -w -mllvm -amdgpu-enable-object-linking -c a.hip -o a.o",
        tool(23, "clang++")
    ));
    let table = analyse_file(&bench.read("a.o")).unwrap().0;
    let lds = |name: &str| {
        let own = table.functions[table.number_of_name(name).expect("it is there")].own.lds;
        assert_eq!(own.evidence, FactEvidence::CompilerRecord, "{name}");
        (own.value, own.at_least)
    };
    assert_eq!(
        ["two", "odd", "none", "k"].map(lds),
        [(Some(416), false), (Some(3), false), (Some(0), false), (Some(0), false)]
    );
    let (padded, open) = (lds("padded"), lds("open"));
    assert!(padded.0 >= Some(403) && open == (Some(0), true), "{padded:?} {open:?}");
}

/// Named barriers, the mode of waves, and the programs that made the code.
#[test]
fn barriers_modes_and_producers_are_told() {
    let Some(bench) = Workbench::with_llvm(24, "barriers_modes_and_producers_are_told") else { return };
    let code = |body: &str| format!(".type f,@function\nf:\n{body}\n s_set_pc_i64 s[30:31]\n.size f, .-f\n");
    for (body, count, at_least) in [
        (" s_barrier_signal -1\n s_barrier_wait -1", 0, false),
        (" s_barrier_join 3\n s_barrier_signal 7\n s_barrier_wait 1", 7, false),
        (" s_barrier_join 2\n s_barrier_signal m0", 2, true),
    ] {
        let found = table(&bench.assemble(24, "-mcpu=gfx1250", "f", &code(body))).functions[0].own.barriers;
        assert_eq!((found.value, found.at_least), (Some(count), at_least), "{body}");
    }
    for (target, words, mode) in [
        ("gfx90a", "", None),
        ("gfx1030", "", Some(false)),
        ("gfx1030", "-mcumode", Some(true)),
        ("gfx1100", "-mcumode", Some(true)),
    ] {
        bench.write("a.hip", SOURCE.as_bytes());
        bench.run(&format!(
            "{} -x hip --offload-arch={target} {words} -nogpuinc -nogpulib --offload-device-only --no-gpu-bundle-output -O2 -w a.hip -o a.co",
            tool(24, "clang++")
        ));
        let table = table(&bench.read("a.co"));
        assert!(table.functions.iter().all(|one| one.cu_mode == mode), "{target} {words}");
        let made = |word: &str| table.producers.iter().any(|one| one.contains(word));
        assert!(made("clang version 24") && made("LLD"), "{:?}", table.producers);
    }
}

/// Functions of libraries keep their calls behind those of the user, whose own numbers stay.
#[test]
fn joined_tables_keep_their_calls() {
    let Some(bench) = Workbench::with_llvm(24, "joined_tables_keep_their_calls") else { return };
    let setting = Setting { version: 24, target: "gfx1030", level: '2' };
    let table = table(&make(&bench, &setting, SOURCE).linked);
    let both = join_tables(&table, &[&table, &table], |_| None);
    let count = table.functions.len();
    assert_eq!((both.functions.len(), both.kernels.len()), (3 * count, table.kernels.len()));
    let mut calls = 0;
    for (number, function) in both.functions.iter().enumerate() {
        let (part, own) = (number / count * count, &table.functions[number % count]);
        let found: Vec<usize> = function.callees.iter().map(|callee| callee.function as usize).collect();
        let wanted: Vec<usize> = own.callees.iter().map(|callee| callee.function as usize + part).collect();
        assert_eq!((&function.name, found), (&own.name, wanted));
        calls += function.callees.len();
    }
    assert!(calls >= 30, "{calls}");
}
