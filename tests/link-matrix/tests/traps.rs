//! The reasons for the manifest's design: each shortcut, with the linkers that accept a missing registrar because of
//! it. A row that changes with a new linker is worth knowing.

use hotswap_families::archive::{HEADER, PATCHES_DEF, REGISTRY_ARCHIVE};
use hotswap_families::manifest::{ManifestFormat, manifest_object};
use hotswap_link_matrix::{Expect, LinkBench, PLAN_HASH, PLAN_TEXT, Tally, families, records};
use object::elf;

const LINKERS: [(&str, &str); 4] = [("bfd", "ld.bfd"), ("gold", "ld.gold"), ("lld", "ld.lld-22"), ("mold", "mold")];
const TOOLS: &[&str] = &["clang-22", "ar", "llvm-readelf-22", "llvm-objcopy-22"];

/// Offset in the ELF header.
const EI_OSABI: usize = 7;

/// Whether each of [`LINKERS`] stops with an error.
type Stops = [bool; 4];
const ALL: Stops = [true; 4];
const NONE: Stops = [false; 4];

fn first() -> &'static str {
    families()[0]
}

fn manifest() -> Vec<u8> {
    manifest_object(ManifestFormat::ElfX86_64, PLAN_HASH, PLAN_TEXT, &families()).unwrap()
}

fn number(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// The manifest as if its file had no operating system ABI.
fn without_osabi(mut bytes: Vec<u8>) -> Vec<u8> {
    assert_eq!(bytes[EI_OSABI], elf::ELFOSABI_GNU);
    bytes[EI_OSABI] = elf::ELFOSABI_NONE;
    bytes
}

/// Offsets of the section headers of an ELF64 file.
fn section_headers(bytes: &[u8]) -> impl Iterator<Item = usize> + use<> {
    let (start, count) = (number(bytes, 0x28), u16::from_le_bytes([bytes[0x3c], bytes[0x3d]]));
    (0..usize::from(count)).map(move |index| start + 64 * index)
}

/// The manifest without `SHF_GNU_RETAIN`.
fn without_retain(mut bytes: Vec<u8>) -> Vec<u8> {
    for header in section_headers(&bytes) {
        let flags = number(&bytes, header + 8) & !(elf::SHF_GNU_RETAIN as usize);
        bytes[header + 8..header + 16].copy_from_slice(&(flags as u64).to_le_bytes());
    }
    bytes
}

/// The manifest with another binding and visibility of the registrars.
fn references(mut bytes: Vec<u8>, binding: u8, visibility: u8) -> Vec<u8> {
    let symtab = |header: &usize| bytes[header + 4..header + 8] == elf::SHT_SYMTAB.to_le_bytes();
    let header = section_headers(&bytes).find(symtab).unwrap();
    let (start, size) = (number(&bytes, header + 0x18), number(&bytes, header + 0x20));
    for symbol in (start..start + size).step_by(24) {
        let global = bytes[symbol + 4] >> 4 == elf::STB_GLOBAL;
        if global {
            bytes[symbol + 4] = binding << 4;
            bytes[symbol + 5] = visibility;
        }
    }
    bytes
}

/// The installed linkers.
fn linkers(bench: &LinkBench, test: &str) -> Vec<&'static str> {
    bench.present(test, &LINKERS)
}

/// A program, the archive complete and without the object of the first family.
fn prepare(test: &str) -> Option<LinkBench> {
    let bench = LinkBench::new(test, TOOLS)?;
    bench.write("user.c", "int answer(void) { return 42; }\nint main(void) { return answer() - 42; }\n");
    bench.must("clang-22", &["-O2", "-fPIC", "-ffunction-sections", "-c", "user.c", "-o", "user.o"]);
    bench.write("complete.a", REGISTRY_ARCHIVE);
    bench.write("less.a", REGISTRY_ARCHIVE);
    bench.must("ar", &["d", "less.a", &format!("{}.o", first())]);
    bench.write("manifest.o", manifest());
    Some(bench)
}

fn link(bench: &LinkBench, linker: &str, words: &[&str]) -> hotswap_link_matrix::Ran {
    let linker = format!("-fuse-ld={linker}");
    bench.run("clang-22", &[&[linker.as_str()], words].concat())
}

/// Links with each linker and compares with `stops`.
fn judge(bench: &LinkBench, tally: &mut Tally, name: &str, words: &[&str], stops: Stops) {
    for ((linker, tool), stops) in LINKERS.into_iter().zip(stops) {
        if !bench.run("which", &[tool]).ok {
            continue;
        }
        let expect = if stops { Expect::ErrorNaming(first().to_owned()) } else { Expect::Links };
        let ran = link(bench, linker, &[words, &["-o", "out"]].concat());
        tally.add(&format!("{name}, {linker}"), expect.fault(&ran));
    }
}

const GC: &str = "-Wl,--gc-sections";

#[test]
fn each_shortcut_lets_some_linker_pass() {
    let Some(bench) = prepare("manifest shortcuts") else { return };
    let mut tally = Tally::default();
    let weak = references(manifest(), elf::STB_WEAK, elf::STV_DEFAULT);
    let default = references(manifest(), elf::STB_GLOBAL, elf::STV_DEFAULT);
    let mut row = |name: &str, bytes: Vec<u8>, words: &[&str], stops: Stops| {
        bench.write("variant.o", bytes);
        judge(&bench, &mut tally, name, &[&["user.o", "variant.o", "less.a"], words].concat(), stops);
    };
    row("as it is", manifest(), &[GC], ALL);
    row("no GNU ABI", without_osabi(manifest()), &[GC], [false, false, true, true]);
    row("no GNU ABI, nothing collected", without_osabi(manifest()), &[], ALL);
    row("no retain flag", without_retain(manifest()), &[GC], NONE);
    row("no retain flag, nothing collected", without_retain(manifest()), &[], ALL);
    row("weak references", weak, &[], NONE);
    row("visible references in a shared library", default.clone(), &["-shared"], NONE);
    row("visible references in a shared library, -z defs", default, &["-shared", "-Wl,-z,defs"], ALL);
    row("hidden references in a shared library", manifest(), &["-shared"], ALL);
    tally.finish("manifest shortcuts");
}

#[test]
fn only_the_object_on_the_command_line_counts() {
    let Some(bench) = prepare("manifest placement") else { return };
    let mut tally = Tally::default();
    let undefined = format!("-Wl,-u,hotswap_register_{}_patch", first());
    judge(&bench, &mut tally, "-u and no manifest", &["user.o", &undefined, "less.a"], NONE);
    bench.must("ar", &["crsD", "libmanifest.a", "manifest.o"]);
    judge(&bench, &mut tally, "manifest in an archive", &["user.o", "libmanifest.a", "less.a"], NONE);
    let whole = ["user.o", "-Wl,--whole-archive", "libmanifest.a", "-Wl,--no-whole-archive", "less.a"];
    judge(&bench, &mut tally, "manifest in a whole archive", &whole, ALL);
    // Hidden references withstand even most of the switches for unfinished programs.
    for (switch, stops) in [
        ("--unresolved-symbols=ignore-all", ALL),
        ("--warn-unresolved-symbols", [true, false, true, true]),
        ("--noinhibit-exec", [true, false, false, false]),
    ] {
        let switch_word = format!("-Wl,{switch}");
        judge(&bench, &mut tally, switch, &["user.o", "manifest.o", "less.a", &switch_word], stops);
    }
    tally.finish("manifest placement");
}

#[test]
fn a_partial_link_keeps_the_record_and_leaves_the_check_to_the_final_link() {
    let Some(bench) = prepare("partial links") else { return };
    let mut tally = Tally::default();
    for linker in linkers(&bench, "partial links") {
        let partial = link(&bench, linker, &["-r", "user.o", "manifest.o", "-o", "part.o"]);
        tally.add(&format!("-r with the manifest, {linker}"), Expect::Links.fault(&partial));
        let missing = Expect::ErrorNaming(first().to_owned());
        // gold and mold lose SHF_GNU_RETAIN: the final link needs a manifest of its own.
        let expect = if ["bfd", "lld"].contains(&linker) { &missing } else { &Expect::Links };
        let ran = link(&bench, linker, &["part.o", "less.a", GC, "-o", "out"]);
        tally.add(&format!("final link without a manifest, {linker}"), expect.fault(&ran));
        let ran = link(&bench, linker, &["part.o", "manifest.o", "less.a", GC, "-o", "out"]);
        tally.add(&format!("final link with a manifest, {linker}"), missing.fault(&ran));
        let ran = link(&bench, linker, &["part.o", "manifest.o", "complete.a", "-o", "out"]);
        tally.add(&format!("final link, complete, {linker}"), Expect::Links.fault(&ran));
        assert_eq!(records(&bench.read("out")).unwrap().len(), 2, "{linker}");
        // Hence a partial link gets the manifest and not the archive.
        bench.write("other.c", "int other(void) { return 1; }\n");
        for (source, output) in [("user.c", "one.o"), ("other.c", "two.o")] {
            let ran = link(&bench, linker, &["-r", source, "manifest.o", "complete.a", "-o", output]);
            assert!(ran.ok, "{linker}: {}", ran.text);
        }
        let ran = link(&bench, linker, &["one.o", "two.o", "-o", "out"]);
        tally.add(&format!("two partial links with the archive, {linker}"), missing.fault(&ran));
    }
    tally.finish("partial links");
}

/// Prints the families of its own table.
const WALKER: &str = "\
    #include <stdio.h>\n\
    #include \"hotswap_registry.h\"\n\
    extern const hotswap_registrar __start_hotswap_regtab[] __attribute__((weak, visibility(\"hidden\")));\n\
    extern const hotswap_registrar __stop_hotswap_regtab[] __attribute__((weak, visibility(\"hidden\")));\n\
    static void bind(struct hotswap_registry *registry, const struct hotswap_family *family) {\n\
      printf(\"%s:%s:%u:%s\\n\", (const char *)registry->context, family->name, family->order, family->scope);\n\
    }\n\
    void SHOW(void) {\n\
      struct hotswap_registry registry = {HOTSWAP_REGISTRY_VERSION, TITLE, bind, 0};\n\
      struct hotswap_registry older = {0, \"older\", bind, 0};\n\
      for (const hotswap_registrar *it = __start_hotswap_regtab; it != __stop_hotswap_regtab; ++it) {\n\
        if (!*it) puts(\"null\"); else { (*it)(&registry); (*it)(&older); }\n\
      }\n\
    }\n";

fn prepare_walker(bench: &LinkBench) {
    bench.write("hotswap_registry.h", HEADER);
    bench.write("walker.c", WALKER);
    bench.write("main.c", "void show_program(void);\nint main(void) { show_program(); return 0; }\n");
    bench.write("both.c", "void show_program(void); void show_library(void);\nint main(void) { show_program(); show_library(); return 0; }\n");
    for (title, name) in [("program", "show_program"), ("library", "show_library")] {
        let defines = [format!("-DTITLE=\"{title}\""), format!("-DSHOW={name}")];
        let object = format!("{title}.o");
        let words = ["-O2", "-fPIC", "-Wall", "-Werror", &defines[0], &defines[1], "-c", "walker.c", "-o", &object];
        bench.must("clang-22", &words);
    }
}

fn walked(title: &str, times: usize) -> Vec<String> {
    let rows = hotswap_families::FAMILIES.iter();
    let rows: Vec<_> = rows.map(|row| format!("{title}:{}:{}:{}", row.name, row.order, row.scope.name())).collect();
    (0..times).flat_map(|_| rows.clone()).collect()
}

fn lines_of(bench: &LinkBench, program: &str) -> Vec<String> {
    bench.must("env", &["LD_LIBRARY_PATH=.", &format!("./{program}")]).lines().map(str::to_owned).collect()
}

fn compare(expected: &[String], found: &[String]) -> Option<String> {
    (expected != found).then(|| format!("expected {expected:?}, found {found:?}"))
}

#[test]
fn a_program_can_call_the_registrars_of_its_table() {
    let Some(bench) = prepare("table at run time") else { return };
    prepare_walker(&bench);
    bench.write("weak.o", references(manifest(), elf::STB_WEAK, elf::STV_DEFAULT));
    let mut tally = Tally::default();
    for linker in linkers(&bench, "table at run time") {
        for kind in ["-no-pie", "-pie", "-static"] {
            let ran = link(&bench, linker, &[kind, GC, "main.c", "program.o", "manifest.o", "complete.a", "-o", "out"]);
            assert!(ran.ok, "{linker} {kind}: {}", ran.text);
            tally.add(&format!("{linker} {kind}"), compare(&walked("program", 1), &lines_of(&bench, "out")));
        }
        let ran = link(&bench, linker, &["main.c", "program.o", "manifest.o", "manifest.o", "complete.a", "-o", "out"]);
        assert!(ran.ok, "{linker}: {}", ran.text);
        assert_eq!(records(&bench.read("out")).unwrap().len(), 2);
        tally.add(&format!("{linker}, two manifests"), compare(&walked("program", 2), &lines_of(&bench, "out")));
        let ran = link(&bench, linker, &["-no-pie", "main.c", "program.o", "weak.o", "complete.a", "-o", "out"]);
        assert!(ran.ok, "{linker}: {}", ran.text);
        let null = vec!["null".to_owned(); families().len()];
        tally.add(&format!("{linker}, weak references pull nothing"), compare(&null, &lines_of(&bench, "out")));
    }
    tally.finish("table at run time");
}

#[test]
fn registrars_may_be_optimized_at_link_time_or_folded() {
    let Some(bench) = prepare("LTO and folded registrars") else { return };
    prepare_walker(&bench);
    let objects = bench.registrars("lto", PATCHES_DEF, &["-flto", "-fPIC"]);
    let mut tally = Tally::default();
    for linker in linkers(&bench, "LTO and folded registrars") {
        let common = ["-flto", "-O2", GC, "main.c", "program.o", "manifest.o"];
        let objects: Vec<&str> = objects.iter().map(String::as_str).collect();
        let ran = link(&bench, linker, &[&common[..], &objects, &["-o", "out"]].concat());
        assert!(ran.ok, "{linker}: {}", ran.text);
        tally.add(&format!("{linker}, LTO"), compare(&walked("program", 1), &lines_of(&bench, "out")));
        let ran = link(&bench, linker, &[&common[..], &objects[1..], &["-o", "out"]].concat());
        tally.add(&format!("{linker}, LTO, one missing"), Expect::ErrorNaming(first().to_owned()).fault(&ran));
        if linker != "bfd" {
            let ran = link(&bench, linker, &[&common[2..], &["complete.a", "-Wl,--icf=all", "-o", "out"]].concat());
            assert!(ran.ok, "{linker}: {}", ran.text);
            tally.add(&format!("{linker}, --icf=all"), compare(&walked("program", 1), &lines_of(&bench, "out")));
        }
    }
    tally.finish("LTO and folded registrars");
}

#[test]
fn a_program_and_its_library_have_tables_of_their_own() {
    let Some(bench) = prepare("two tables") else { return };
    prepare_walker(&bench);
    let mut tally = Tally::default();
    let own = ["manifest.o", "complete.a"];
    for linker in linkers(&bench, "two tables") {
        let ran = link(&bench, linker, &[&["-shared", "library.o"][..], &own, &["-o", "libwalk.so"]].concat());
        assert!(ran.ok, "{linker}: {}", ran.text);
        let exported = bench.must("llvm-readelf-22", &["--dyn-syms", "libwalk.so"]);
        assert!(!exported.contains("hotswap_register_"), "{linker} exports registrars: {exported}");
        let words = [&["both.c", "program.o"][..], &own, &["-L.", "-lwalk", "-o", "out"]].concat();
        let ran = link(&bench, linker, &words);
        assert!(ran.ok, "{linker}: {}", ran.text);
        let expected = [walked("program", 1), walked("library", 1)].concat();
        tally.add(linker, compare(&expected, &lines_of(&bench, "out")));
    }
    tally.finish("two tables");
}

#[test]
fn a_program_keeps_its_mark_for_control_flow_protection() {
    let Some(bench) = prepare("control-flow mark") else { return };
    bench.must("clang-22", &["-O2", "-fPIC", "-fcf-protection=full", "-c", "user.c", "-o", "marked.o"]);
    bench.must("llvm-objcopy-22", &["--remove-section=.note.gnu.property", "manifest.o", "unmarked.o"]);
    let mut tally = Tally::default();
    for linker in linkers(&bench, "control-flow mark") {
        for (manifest, expected) in [("manifest.o", true), ("unmarked.o", false)] {
            let words = ["-shared", "-nostdlib", "marked.o", manifest, "complete.a", "-o", "out"];
            let ran = link(&bench, linker, &words);
            assert!(ran.ok, "{linker}: {}", ran.text);
            let found = bench.must("llvm-readelf-22", &["--notes", "out"]).contains("IBT, SHSTK");
            let fault = (found != expected).then(|| format!("the mark is there: {found}"));
            tally.add(&format!("{linker}, {manifest}"), fault);
        }
    }
    tally.finish("control-flow mark");
}
