//! A third-party tool with third-party families: it lists them in a file, and a listed family without a registrar stops
//! the link with a message that names it. This holds for every linker, with objects and archives, garbage collection
//! and link-time optimization.

use hotswap_link_matrix::{Expect, LinkBench, sweep};

const LINKERS: &[(&str, &str)] = &[("bfd", "ld.bfd"), ("gold", "ld.gold"), ("lld", "ld.lld-22"), ("mold", "mold")];
const COFF_LINKERS: &[&str] = &["lld-link-22", "lld-link-23"];
const COFF: &str = "--target=x86_64-pc-windows-msvc";
/// The family whose registrar may be missing.
const SECOND: &str = "no_trap_in_c";
const LIST: &str = "\
    HOTSWAP_PATCH(no_sethalt, Instruction, 1, \"s_sethalt becomes s_nop\")\n\
    HOTSWAP_PATCH(no_trap_in_c, Instruction, 2, \"nothing\")\n";
/// Calls every registrar and counts the families that they bind.
const TOOL: &str = "\
    #include \"hotswap_registry.h\"\n\
    #define HOTSWAP_PATCH(name, scope, order, summary) void hotswap_register_##name##_patch(struct hotswap_registry *);\n\
    #include \"families.def\"\n\
    #undef HOTSWAP_PATCH\n\
    #define HOTSWAP_PATCH(name, scope, order, summary) hotswap_register_##name##_patch,\n\
    static const hotswap_registrar registrars[] = {\n\
    #include \"families.def\"\n\
    };\n\
    static void bind(struct hotswap_registry *r, const struct hotswap_family *f) { (void)r; (void)f; }\n\
    static void bind_rewriter(struct hotswap_registry *r, const struct hotswap_rewriter *w) {\n\
      if (w->size == sizeof *w) ++*(int *)r->context;\n\
    }\n\
    int ENTRY(void) {\n\
      int count = 0;\n\
      struct hotswap_registry registry = {HOTSWAP_REGISTRY_VERSION, &count, bind, bind_rewriter};\n\
      for (unsigned i = 0; i < sizeof registrars / sizeof *registrars; ++i) registrars[i](&registry);\n\
      return count - 2;\n\
    }\n";
const EXAMPLE: &str = include_str!("../../../crates/retarget/family-abi/examples/no_sethalt.c");

#[derive(Debug, Clone, Copy)]
struct Combination {
    linker: &'static str,
    collect: bool,
    lto: bool,
    archive: bool,
    missing: bool,
}

fn combinations(linkers: &[&'static str]) -> Vec<Combination> {
    let mut all = Vec::new();
    for bits in 0..16 {
        let bit = |number: u32| bits >> number & 1 == 1;
        let (collect, lto, archive, missing) = (bit(0), bit(1), bit(2), bit(3));
        all.extend(linkers.iter().map(|&linker| Combination { linker, collect, lto, archive, missing }));
    }
    all
}

/// Compiles tool and families, plain and for link-time optimization, and makes archives of the families: `NAME-full.a`
/// and `NAME-less.a`. Names end in `extension`.
fn prepare(bench: &LinkBench, clang: &[&str], extension: &str, (archiver, word, prefix): (&str, &str, &str)) {
    bench.write("hotswap_registry.h", hotswap_family_abi::HEADER);
    bench.write("families.def", LIST);
    bench.write("tool.c", TOOL);
    bench.write("no_sethalt.c", EXAMPLE);
    bench.write(&format!("{SECOND}.c"), EXAMPLE.replace("no_sethalt", SECOND));
    for (kind, more) in [("plain", &[][..]), ("lto", &["-flto"][..])] {
        for source in ["tool", "no_sethalt", SECOND] {
            let output = format!("{source}-{kind}.{extension}");
            let source = format!("{source}.c");
            let words = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-ffunction-sections", "-fdata-sections"];
            bench.must("clang-22", &[clang, &words, more, &["-I.", "-c", &source, "-o", &output]].concat());
        }
        let [first, second] = ["no_sethalt", SECOND].map(|name| format!("{name}-{kind}.{extension}"));
        let [full, less] = ["full", "less"].map(|name| format!("{prefix}{kind}-{name}.a"));
        bench.must(archiver, &[word, &full, &first, &second]);
        bench.must(archiver, &[word, &less, &first]);
    }
}

impl Combination {
    fn inputs(&self, extension: &str) -> Vec<String> {
        let kind = if self.lto { "lto" } else { "plain" };
        let mut inputs = vec![format!("tool-{kind}.{extension}")];
        match (self.archive, self.missing) {
            (true, true) => inputs.push(format!("{kind}-less.a")),
            (true, false) => inputs.push(format!("{kind}-full.a")),
            (false, _) => inputs.push(format!("no_sethalt-{kind}.{extension}")),
        }
        if !self.archive && !self.missing {
            inputs.push(format!("{SECOND}-{kind}.{extension}"));
        }
        inputs
    }

    fn expectation(&self) -> Expect {
        if self.missing { Expect::ErrorNaming(SECOND.to_owned()) } else { Expect::Links }
    }
}

#[test]
fn a_family_of_others_without_a_registrar_does_not_link_on_elf() {
    let Some(bench) = LinkBench::new("families of others, ELF", &["clang-22", "ar"]) else { return };
    prepare(&bench, &["-fPIC", "-DENTRY=main"], "o", ("llvm-ar-22", "crsD", ""));
    let linkers = bench.present("families of others, ELF", LINKERS);
    let tally = sweep(&combinations(&linkers), |index, combination| {
        let output = format!("out-{index}");
        let mut words = vec![format!("-fuse-ld={}", combination.linker), "-o".to_owned(), output.clone()];
        words.extend(combination.collect.then(|| "-Wl,--gc-sections".to_owned()));
        words.extend(combination.lto.then(|| "-flto".to_owned()));
        words.extend(combination.inputs("o"));
        let ran = bench.run("clang-22", &words.iter().map(String::as_str).collect::<Vec<_>>());
        let fault = combination.expectation().fault(&ran);
        let runs = || (!bench.run(&format!("./{output}"), &[]).ok).then(|| "a registrar does not bind".to_owned());
        fault.or_else(|| ran.ok.then(runs).flatten())
    });
    tally.finish("families of others, ELF");
}

#[test]
fn a_family_of_others_without_a_registrar_does_not_link_on_coff() {
    let tools = ["clang-22", "llvm-lib-22", "lld-link-22", "lld-link-23"];
    let Some(bench) = LinkBench::new("families of others, COFF", &tools) else { return };
    prepare(&bench, &[COFF, "-ffreestanding", "-DENTRY=mainCRTStartup"], "obj", ("llvm-lib-22", "/nologo", "/out:"));
    let tally = sweep(&combinations(COFF_LINKERS), |index, combination| {
        let output = format!("/out:out-{index}.exe");
        let collect = if combination.collect { "/opt:ref" } else { "/opt:noref" };
        let inputs = combination.inputs("obj");
        let mut words =
            vec!["/nologo", "/nodefaultlib", "/entry:mainCRTStartup", "/subsystem:console", collect, &output];
        words.extend(inputs.iter().map(String::as_str));
        combination.expectation().fault(&bench.run(combination.linker, &words))
    });
    tally.finish("families of others, COFF");
}
