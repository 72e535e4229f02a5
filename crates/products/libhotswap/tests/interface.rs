//! The interface: names, layout of structures, what programs in C get, compared with LLVM's tools.

mod common;

use common::{CLibrary, code_object, here, succeed};
use hotswap_c::abi;
use hotswap_userland::{Workbench, say, slice, tool};
use std::collections::{BTreeMap, BTreeSet};
use std::mem::offset_of;
use std::path::Path;
use std::process::Command;

/// The text of the header without its comments.
fn header() -> String {
    let text = std::fs::read_to_string(here().join("include/hotswap.h")).unwrap();
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default().to_owned();
    first + &parts.filter_map(|part| part.split_once("*/")).map(|(_, code)| code).collect::<String>()
}

/// Names before a parenthesis.
fn declared() -> BTreeSet<String> {
    let code = header();
    let name = |part: &str| {
        let start = part.rfind(|one: char| !one.is_ascii_alphanumeric() && one != '_').map_or(0, |at| at + 1);
        part[start..].to_owned()
    };
    let names = code.split('(').map(|part| name(part.trim_end()));
    names.filter(|name| name.starts_with("hotswap_") && *name != "hotswap_status").collect()
}

#[test]
fn the_library_has_the_symbols_of_the_header_and_no_others() {
    let library = CLibrary::new();
    let path = library.path("libhotswap.so.0");
    let table = succeed(Command::new("nm").args(["-D", "--defined-only"]).arg(&path));
    let symbols = table.lines().filter_map(|line| line.split_whitespace().nth(2));
    let found: BTreeSet<String> = symbols.filter_map(|one| Some(one.split_once("@@HOTSWAP_0")?.0.to_owned())).collect();
    let map = std::fs::read_to_string(here().join("libhotswap.map")).unwrap();
    let pinned: BTreeSet<String> = map
        .lines()
        .filter_map(|line| line.trim().strip_suffix(';'))
        .filter(|one| one.starts_with("hotswap_"))
        .map(str::to_owned)
        .collect();
    assert_eq!(pinned, declared());
    assert_eq!(found, pinned);
    assert_eq!(table.lines().count(), found.len() + 1, "{table}");
    let needed = succeed(Command::new("readelf").arg("-dW").arg(&path));
    assert!(needed.contains("soname: [libhotswap.so.0]"), "{needed}");
    for line in needed.lines().filter(|line| line.contains("(NEEDED)")) {
        assert!(["libc.so", "libm.so", "ld-linux"].iter().any(|one| line.contains(one)), "{line}");
    }
}

/// The calls that are fuzzed are those of the header.
#[test]
fn the_fuzz_target_makes_every_call() {
    let text = std::fs::read_to_string(here().join("fuzz/fuzz_targets/calls.rs")).unwrap();
    let missing: Vec<String> = declared().into_iter().filter(|name| !text.contains(&format!("{name}("))).collect();
    assert_eq!(missing, Vec::<String>::new());
}

/// The layouts of structures in C: a line for each with its size and the offsets of all members.
fn layouts_in_c(library: &CLibrary) -> BTreeMap<String, Vec<usize>> {
    let mut program = "#include <hotswap.h>\n#include <stdio.h>\nint main(void) {\n".to_owned();
    for part in header().split("typedef struct ").skip(1) {
        let Some((name, body)) = part.split_once(" {").filter(|(name, _)| !name.contains(' ')) else { continue };
        let Some((members, _)) = body.split_once("\n}") else { continue };
        program += &format!("printf(\"{name} %zu\", sizeof({name}));\n");
        for member in members.split(';').filter(|member| !member.trim().is_empty()) {
            let end = member.find("(*").map_or(member, |at| member[at + 2..].split(')').next().unwrap_or_default());
            let member = end.trim().rsplit([' ', '*', '\n']).next().unwrap_or_default();
            program += &format!("printf(\" %zu\", offsetof({name}, {member}));\n");
        }
        program += "printf(\"\\n\");\n";
    }
    let source = library.path("layout.c");
    std::fs::write(&source, program + "}\n").unwrap();
    let out = library.path("layout");
    succeed(Command::new("cc").arg("-I").arg(here().join("include")).arg(&source).arg("-o").arg(&out));
    let row = |line: &str| {
        let (name, numbers) = line.split_once(' ').unwrap();
        (name.to_owned(), numbers.split(' ').map(|number| number.parse().unwrap()).collect())
    };
    succeed(&mut Command::new(out)).lines().map(row).collect()
}

macro_rules! layout {
    ($name:literal, $type:ident: $($member:ident)*) => {
        ($name.to_owned(), vec![size_of::<abi::$type>(), $(offset_of!(abi::$type, $member)),*])
    };
}

#[test]
fn structures_have_the_layout_of_the_header() {
    let library = CLibrary::new();
    let expected = BTreeMap::from([
        layout!("hotswap_entry", EntryInfo: struct_size kind container size file_offset id target place),
        layout!("hotswap_choice", ChoiceInfo: struct_size entry route reserved source rule),
        layout!("hotswap_image_info", ImageInfo: struct_size flags reserved target code_hash unclaimed functions kernels imports warnings variables producers),
        layout!("hotswap_variable", VariableInfo: struct_size name address size flags reserved),
        layout!("hotswap_number", NumberInfo: value flags evidence),
        layout!("hotswap_resources", ResourcesInfo: vgprs agprs sgprs scratch lds),
        layout!("hotswap_function", FunctionInfo: struct_size name section address size kind flags wave_size mode own total aliases callees imports resolved_calls unknown_calls own_barriers total_barriers source),
        layout!("hotswap_kernel", KernelInfo: struct_size function descriptor_address kernarg_size reachable complete reserved needs),
        layout!("hotswap_import", ImportInfo: struct_size name slots users),
        layout!("hotswap_register", RegisterInfo: file index count name),
        layout!("hotswap_instruction", InstructionInfo: struct_size address size flags target bytes text mnemonic reads n_reads writes n_writes),
        layout!("hotswap_external", ExternalInfo: name address),
        layout!("hotswap_loaded_info", LoadedInfo: struct_size base size segments relocations undefined),
        layout!("hotswap_segment", SegmentInfo: struct_size address size flags reserved bytes),
        layout!("hotswap_relocation", RelocationInfo: struct_size address kind applied value symbol),
        layout!("hotswap_binding_info", BindingInfo: struct_size imports budgets problems loadable reserved),
        layout!("hotswap_bound_import", BoundImportInfo: struct_size symbol function library address),
        layout!("hotswap_launch_numbers", LaunchInfo: vgprs agprs sgprs scratch lds),
        layout!("hotswap_frame", FrameInfo: struct_size function file line inlined),
        layout!("hotswap_budget", BudgetInfo: struct_size kernel forced_by has needs complete reserved granted),
        layout!("hotswap_hsa_handle", HsaHandle: handle),
        layout!("hotswap_hsa_loader", HsaLoader: struct_size iterate_executables iterate_objects get_info),
        layout!("hotswap_process_object", ProcessObject: struct_size executable object agent load_delta load_base load_size uri image problem),
    ]);
    assert_eq!(layouts_in_c(&library), expected);
}

/// Functions by name: address, size; and the lines of their instructions by address.
#[derive(Debug, Default, PartialEq, Eq)]
struct Listing {
    functions: BTreeMap<String, (u64, u64)>,
    instructions: BTreeMap<u64, String>,
}

fn hex(text: &str) -> u64 {
    u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or_else(|_| panic!("`{text}`"))
}

/// The registers and flags of a line are not LLVM's.
fn ours(dump: &str) -> Listing {
    let mut listing = Listing::default();
    for line in dump.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        match words[0] {
            "function" => drop(listing.functions.insert(words[2].into(), (hex(words[3]), words[4].parse().unwrap()))),
            "inst" => {
                let text = words[4..].join(" ");
                let text = text.split('\t').next().unwrap_or_default().to_owned();
                listing.instructions.insert(hex(words[1]), text);
            }
            _ => {}
        }
    }
    listing
}

fn llvm(bench: &Workbench, version: u32) -> Listing {
    let mut listing = Listing::default();
    let symbols = bench.run(&format!("{} -sW a.co", tool(version, "llvm-readelf")));
    for line in symbols.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words.get(3) == Some(&"FUNC") {
            listing.functions.insert(words[7].to_owned(), (hex(words[1]), words[2].parse().unwrap()));
        }
    }
    for line in bench.disassemble(version, "--no-print-imm-hex", "a.co").lines() {
        let Some((text, place)) = line.trim().split_once("//") else { continue };
        let address = hex(place.trim().split(':').next().unwrap_or_default());
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        if listing.functions.values().any(|(start, size)| (*start..start + size).contains(&address)) {
            listing.instructions.insert(address, text);
        }
    }
    listing
}

/// The text without what only one side adds: targets of branches, and spaces.
fn plain(text: &str) -> String {
    let text = text.split(" <").next().unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn functions_and_instructions_are_those_of_llvm() {
    let test = "functions_and_instructions_are_those_of_llvm";
    let Some(bench) = Workbench::new(test) else { return };
    let library = CLibrary::new();
    let dump = library.compile("dump.c", &[]);
    let targets = ["gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"];
    let versions = bench.versions.iter().copied().filter(|version| *version <= 24);
    let all: Vec<_> = versions.flat_map(|version| targets.map(|target| (version, target))).collect();
    let mut compared = 0;
    for (version, target) in slice(test, all, |number, _| number % 6 == number / 6 * 2) {
        let path = code_object(&bench, version, target, if version == 23 { "-O0 -g" } else { "-O2 -g" });
        let found = ours(&library.run(&dump, &[path.to_str().unwrap(), target, "instructions"]));
        let wanted = llvm(&bench, version);
        assert_eq!(found.functions, wanted.functions, "{version} {target}");
        for (address, text) in &wanted.instructions {
            let own =
                found.instructions.get(address).unwrap_or_else(|| panic!("{version} {target} {address:#x} {text}"));
            assert_eq!(plain(own), plain(text), "{version} {target} {address:#x}");
        }
        assert_eq!(found.instructions.len(), wanted.instructions.len(), "{version} {target}");
        compared += wanted.instructions.len();
    }
    say(&format!("{test}: {compared} instructions"));
    assert!(compared > 1000);
}

/// The words that a loader fills, as the relocations in the file state them.
#[test]
fn the_loader_model_fills_every_word_and_defers_what_is_not_defined() {
    let test = "the_loader_model_fills_every_word_and_defers_what_is_not_defined";
    let Some(bench) = Workbench::with_llvm(23, test) else { return };
    let library = CLibrary::new();
    let dump = library.compile("dump.c", &[]);
    bench.write(
        "use.hip",
        b"extern \"C\" __attribute__((device)) int lib(int);\n__attribute__((device)) int (*table)(int) = lib;\n\
        extern \"C\" __attribute__((global)) void k(int *p) { p[0] = lib(p[1]) + table(p[2]); }\n",
    );
    let (clang, lld, readelf) = (tool(23, "clang++"), tool(23, "ld.lld"), tool(23, "llvm-readelf"));
    bench.run(&format!(
        "{clang} -x hip --offload-arch=gfx90a -nogpuinc -nogpulib --offload-device-only -fgpu-rdc -fno-offload-lto \
         -fvisibility=default --no-gpu-bundle-output -O2 -w -c use.hip -o use.o && {lld} -shared use.o -o use.co"
    ));
    let stated = bench.run(&format!("{readelf} -rW use.co"));
    let path = bench.path("use.co");
    let path = path.to_str().unwrap();
    let without = library.run(&dump, &[path, "gfx90a", "load"]);
    assert!(without.contains("\nundefined lib\n") && without.contains("undefined=1"), "{without}");
    let with = library.run(&dump, &[path, "gfx90a", "load", "lib", "0x123456789000"]);
    assert!(with.contains("undefined=0"), "{with}");
    let mut rows = 0;
    for line in stated.lines().filter(|line| line.contains("R_AMDGPU_")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let place = 0x7f00_0000_0000 + hex(words[0]);
        let (value, symbol) = match words[2] {
            "R_AMDGPU_ABS64" if words[4] == "lib" => (0x1234_5678_9000, " lib"),
            "R_AMDGPU_ABS64" => (0x7f00_0000_0000 + hex(words[3]), " table"),
            "R_AMDGPU_RELATIVE64" => (0x7f00_0000_0000 + hex(words[3]), " "),
            other => panic!("{other}"),
        };
        assert!(
            with.contains(&format!(
                "relocation {place:#x} type={} applied=1 {value:#x}{symbol}\n",
                if words[2].ends_with("ABS64") { 3 } else { 13 }
            )),
            "{line}\n{with}"
        );
        rows += 1;
    }
    assert!(rows >= 3, "{stated}");
    refused(&bench, &library, &dump);
}

/// Files that ROCr would load wrongly: packed relocations, undefined symbols with a type.
fn refused(bench: &Workbench, library: &CLibrary, dump: &Path) {
    let lld = tool(23, "ld.lld");
    bench.write("lib.hip", b"extern \"C\" __attribute__((device)) int lib(int x) { return x * 3; }\n");
    let clang = tool(23, "clang++");
    bench.run(&format!(
        "{clang} -x hip --offload-arch=gfx90a -nogpuinc -nogpulib --offload-device-only -fgpu-rdc -fno-offload-lto \
         -fvisibility=default --no-gpu-bundle-output -O2 -w -c lib.hip -o lib.o && {lld} -shared lib.o -o lib.co && \
         {lld} -shared use.o lib.co -o typed.co && {lld} -shared -z pack-relative-relocs -Bsymbolic use.o lib.o -o packed.co"
    ));
    for (name, what) in
        [("typed.co", "`lib` is undefined and has a type"), ("packed.co", "packed relative relocations")]
    {
        let path = bench.path(name);
        let output = library.command(dump).args([path.to_str().unwrap(), "gfx90a", "load"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(!output.status.success() && text.contains(what), "{name}: {text}");
    }
}

/// A sibling's code object made in memory is the compiler's own; code that must change is what `hotswap` writes.
#[test]
fn code_for_other_gpus_is_made_in_memory() {
    let test = "code_for_other_gpus_is_made_in_memory";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let library = CLibrary::new();
    let (remake, dump) = (library.compile("remake.c", &[]), library.compile("dump.c", &[]));
    let own = std::fs::read(code_object(&bench, 24, "gfx1031", "-O2")).unwrap();
    let source = code_object(&bench, 24, "gfx1030", "-O2");
    let (source, out) = (source.to_str().unwrap(), library.path("out"));
    let out = out.to_str().unwrap();
    library.run(&remake, &["retarget", "gfx1031", "0", source, out]);
    let made = std::fs::read(out).unwrap();
    assert!(made.starts_with(&own), "the record follows the compiler's own bytes");
    let run = |words: &[&str]| {
        let output = library.command(&remake).args(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (code, text) = run(&["retarget", "gfx90a", "0", source, out]);
    assert!(code == Some(1) && text.starts_with("6 HS0401"), "{text}");
    let (code, text) = run(&["retarget", "gfx1031", "8", source, out]);
    assert!(code == Some(1) && text.starts_with("1 :") && text.contains("flags 0x8"), "{text}");
    let (code, text) = run(&["rewrite", "gfx1031", "0", source, out]);
    assert!(code == Some(1) && text.contains("no code changes between these"), "{text}");
    let source = code_object(&bench, 24, "gfx1250", "-O2");
    library.run(&remake, &["rewrite", "gfx1250-strict", "0", source.to_str().unwrap(), out]);
    let text = library.run(&dump, &[out]);
    assert!(text.contains("functions=18 kernels=7"), "{text}");
}

/// A kernel of rocPRIM: which one the host part would start on the other GPU is not in the bytes.
#[test]
fn code_chosen_by_name_is_refused_with_its_place_and_a_way_out() {
    let test = "code_chosen_by_name_is_refused_with_its_place_and_a_way_out";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let library = CLibrary::new();
    let remake = library.compile("remake.c", &[]);
    let source = "namespace rocprim { inline namespace ROCPRIM_400000_NS { namespace detail {\n\
                  __attribute__((global)) void sort(int *data) { *data = 1; } } } }\n";
    bench.write("sort.hip", source.as_bytes());
    let compile = "-x hip --offload-arch=gfx1030 -nogpuinc -nogpulib --offload-device-only -w sort.hip";
    bench.run(&format!("{0} {compile} --no-gpu-bundle-output -o sort.co", tool(24, "clang++")));
    bench.run(&format!("{0} {compile} --gpu-bundle-output -o sort.hipfb", tool(24, "clang++")));
    let out = library.path("out");
    // The choice of an entry, the bytes to load and the retarget answer the same.
    for (name, action) in
        ["sort.co", "sort.hipfb"].into_iter().flat_map(|name| ["retarget", "load", "best"].map(|action| (name, action)))
    {
        let file = bench.path(name);
        let run = |flags: &str| {
            let isa = "amdgcn-amd-amdhsa--gfx1031";
            let words = [action, isa, flags, file.to_str().unwrap(), out.to_str().unwrap()];
            let output = library.command(&remake).args(words).output().unwrap();
            (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
        };
        let (code, text) = run("0");
        assert!(code == Some(1) && text.starts_with("6 HS0414: "), "{action} {name}: {text}");
        for part in ["gfx1030 for gfx1031, kernel `_ZN7rocprim", "rocPRIM 4.0.0", "HOTSWAP_ALLOW_NAMES"] {
            assert!(text.contains(part), "{action} {name}: {text}");
        }
        assert!(!text.contains("--allow"), "{text}");
        let (code, text) = run("4");
        let done = if action == "best" { "route 3" } else { "made from gfx1030" };
        assert!(code == Some(0) && text.contains(done), "{action} {name}: {text}");
    }
}

/// The bytes that a GPU loads, from the cheapest source that a file has.
#[test]
fn the_bytes_for_a_gpu_come_from_the_cheapest_source() {
    let test = "the_bytes_for_a_gpu_come_from_the_cheapest_source";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let library = CLibrary::new();
    let remake = library.compile("remake.c", &[]);
    let clang = tool(24, "clang++");
    bench.write("k.hip", b"extern \"C\" __attribute__((global)) void k(int *p) { p[0] = p[1] * 3; }\n");
    bench.run(&format!(
        "for how in '' --offload-compress; do {clang} -x hip --offload-arch=gfx90a:xnack+ --offload-arch=gfx90a --offload-arch=gfx1030 \
         --offload-arch=gfx11-generic --offload-arch=gfx1250 -nogpuinc -nogpulib --offload-device-only -fuse-cuid=none -O2 -w $how k.hip \
         -o bundle$how 2>/dev/null || {clang} -x hip --offload-arch=gfx90a:xnack+ --offload-arch=gfx90a:xnack- --offload-arch=gfx1030 \
         --offload-arch=gfx11-generic --offload-arch=gfx1250 -nogpuinc -nogpulib --offload-device-only -fuse-cuid=none -O2 -w $how k.hip \
         -o bundle$how; done"
    ));
    let out = library.path("out");
    let load = |file: &str, isa: &str| {
        let words = ["load", isa, "0", bench.path(file).to_str().unwrap(), out.to_str().unwrap()].map(str::to_owned);
        let output = library.command(&remake).args(words).output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for (isa, route, target) in [
        ("amdgcn-amd-amdhsa--gfx1030", "route 1: compiled for the agent's processor", "gfx1030"),
        ("gfx90a:sramecc+:xnack+", "route 1", "gfx90a:xnack+"),
        ("gfx1101", "route 2", "gfx11-generic"),
        ("gfx1031", "made from gfx1030\nroute 3", "gfx1031"),
        ("gfx1250-strict", "route 4", "gfx1250"),
    ] {
        for file in ["bundle", "bundle--offload-compress"] {
            let (code, text) = load(file, isa);
            assert!(code == Some(0) && text.contains(route), "{file} {isa}: {text}");
            let bytes = std::fs::read(&out).unwrap();
            let object = hotswap_code_object::CodeObject::parse(&bytes).unwrap();
            assert!(object.target_id().to_string().starts_with(target), "{file} {isa}: {}", object.target_id());
        }
    }
    // Statuses as the header has them.
    let (code, text) = load("bundle", "gfx1201");
    assert!(code == Some(1) && text.starts_with("6 HS0401: "), "{text}");
    let (code, text) = load("bundle", "gfx9999");
    assert!(code == Some(1) && text.starts_with("1 HS0202: "), "{text}");
    for action in ["retarget", "rewrite", "best"] {
        let words =
            [action, "gfx9999", "0", bench.path("bundle").to_str().unwrap(), out.to_str().unwrap()].map(str::to_owned);
        let output = library.command(&remake).args(words).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(text.starts_with("1 HS0202: "), "{action}: {text}");
    }
}

#[test]
fn inlined_functions_and_names_of_the_source_are_there() {
    let Some(bench) = Workbench::with_llvm(24, "inlined_functions_and_names_of_the_source_are_there") else { return };
    let library = CLibrary::new();
    let frames = library.compile("frames.c", &[]);
    bench.write(
        "a.hip",
        b"namespace math { __attribute__((device)) inline int twice(int x) { return x * 2; } }\n\
        __attribute__((global)) void kernel(int *p) { p[0] = math::twice(p[1]); }\n",
    );
    let compile =
        "-x hip --offload-arch=gfx1030 -nogpuinc -nogpulib --offload-device-only --no-gpu-bundle-output -O2 -w a.hip";
    bench.run(&format!("{0} {compile} -g -o a.co && {0} {compile} -o plain.co", tool(24, "clang++")));
    let bytes = bench.read("a.co");
    let map = hotswap_code_object::CodeMap::read(&bytes).unwrap();
    let kernel = map.sections[0].symbols.iter().find(|symbol| symbol.size > 0).unwrap();
    let start = map.sections[0].address + kernel.offset as u64;
    let of = |file: &str, address: u64| {
        let words = [bench.path(file).to_str().unwrap().to_owned(), format!("{address:#x}")];
        let output = library.command(&frames).args(words).output().unwrap();
        (output.status.code(), String::from_utf8(output.stdout).unwrap())
    };
    let all: Vec<String> =
        (start..start + kernel.size as u64).step_by(4).map(|address| of("a.co", address).1).collect();
    assert!(all.iter().any(|text| text == "inlined math::twice(int) a.hip:1\nkernel(int*) a.hip:2\n"), "{all:?}");
    assert_eq!(of("plain.co", start), (Some(3), String::new()));
}

/// Analyses run on threads, and a child of `fork` has none of its parent's.
#[test]
fn a_forked_child_can_query() {
    let Some(bench) = Workbench::new("a_forked_child_can_query") else { return };
    let library = CLibrary::new();
    let fork = library.compile("fork.c", &[]);
    let path = code_object(&bench, bench.versions[0], "gfx1030", "-O2");
    assert_eq!(library.run(&fork, &[path.to_str().unwrap()]), "18 18 18\n");
}

#[test]
fn loaded_objects_are_iterated_through_the_callers_functions() {
    let test = "loaded_objects_are_iterated_through_the_callers_functions";
    let Some(bench) = Workbench::new(test) else { return };
    let library = CLibrary::new();
    let process = library.compile("process.c", &[]);
    let path = code_object(&bench, bench.versions[0], "gfx1030", "-O2");
    let text = library.run(&process, &[path.to_str().unwrap()]);
    let uri = "memory://1#offset=0x1000&size=64";
    let head = "agent=a6e27 delta=-4096 base=7f0000000000 size=5000";
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], format!("1/10 {head} {uri} functions=18 "));
    assert_eq!(lines[1], format!("2/20 {head} {uri} functions=0 the bytes that it was loaded from are gone"));
    assert_eq!(lines[2], "kept functions=18");
}

/// Entries of a compressed bundle, which are decompressed one by one, are those of the plain one.
#[test]
fn the_best_entry_is_the_same_compressed_or_not() {
    let test = "the_best_entry_is_the_same_compressed_or_not";
    let Some(bench) = Workbench::with_llvm(24, test) else { return };
    let library = CLibrary::new();
    let dump = library.compile("dump.c", &[]);
    let clang = tool(24, "clang++");
    bench.write("k.hip", b"extern \"C\" __attribute__((global)) void k(int *p) { p[0] = p[1] * 3; }\n");
    bench.run(&format!(
        "for how in '' --offload-compress; do {clang} -x hip --offload-arch=gfx90a:xnack+ --offload-arch=gfx90a:xnack- \
         --offload-arch=gfx1030 -nogpuinc -nogpulib --offload-device-only -fuse-cuid=none -O2 -w $how k.hip -o bundle$how; done"
    ));
    let of = |file: &str, isa: &str| {
        let path = bench.path(file);
        let text = library.run(&dump, &[path.to_str().unwrap(), isa]);
        let lines = text.lines().filter(|line| !line.starts_with("entry "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    for (isa, expected) in [
        (
            "amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-",
            "route=1 source=gfx90a:xnack-: compiled for the agent's processor",
        ),
        ("gfx90a:xnack+", "route=1 source=gfx90a:xnack+: compiled for the agent's processor"),
        ("gfx1030", "route=1 source=gfx1030: compiled for the agent's processor"),
        (
            "gfx1031",
            "route=3 source=gfx1030: code of a sibling, a validated pair; hotswap_retarget labels and checks it",
        ),
    ] {
        let (plain, packed) = (of("bundle", isa), of("bundle--offload-compress", isa));
        assert!(plain[0].contains(expected), "{isa}: {plain:?}");
        assert_eq!(plain, packed, "{isa}");
        assert!(plain[1].starts_with("image gfx") && plain[1].contains("functions=1 kernels=1"), "{plain:?}");
    }
    let path = bench.path("bundle");
    let output = library.command(&dump).args([path.to_str().unwrap(), "gfx1201"]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stdout).contains("error 6 HS0401"));
}
