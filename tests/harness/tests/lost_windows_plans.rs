//! A plan that is lost between the compilation of relocatable units for Windows and their link stops the build: lld-link, lld and
//! GNU ld for MinGW; objects and libraries, the usual ones and those of more than 65,279 sections (`/bigobj`). The same units of plain
//! clang link.
//!
//! Absent on purpose: Microsoft's linker.

use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, parallel, say};

const KERNEL: &str = r#"typedef __SIZE_TYPE__ size_t;
struct dim3 { unsigned x, y, z; };
extern "C" {
int hipLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int __hipPushCallConfiguration(dim3, dim3, size_t, void *);
int __hipPopCallConfiguration(dim3 *, dim3 *, size_t *, void *);
}
__attribute__((global)) void kernel(int *p) { p[0] += 1; }
extern "C" const void *address() { return reinterpret_cast<const void *>(kernel); }
"#;
/// With these sections the object has the form for many of them. LLVM takes that form by itself and ignores `-mbig-obj`, which
/// build systems pass.
const SECTIONS: &str = "#ifndef __HIP_DEVICE_COMPILE__\n__asm__(\".macro more\\n.section .rdata$s\\\\@,\\\"dr\\\"\\n.byte 1\\n\
    .endm\\n.rept 65300\\nmore\\n.endr\\n.text\");\n#endif\n";
/// The begin of such an object.
const BIG: &[u8] = &[0, 0, 0xff, 0xff, 2, 0, 0x64, 0x86];
/// The functions of the runtime that the units call, and the start of the program.
const MAIN: &str = "extern \"C\" {\nconst void *address();\nint hipLaunchKernel() { return 0; }\n\
    int __hipPopCallConfiguration() { return 0; }\nint _fltused;\n\
    int entry() { return address() == nullptr; }\n}\n";
const SYMBOL: &str = "__hotswap_plan_of_this_object_was_not_carried_out__link_it_by_hotswap_clang__";
const ROWS: [Row; 4] = [
    Row { triple: "x86_64-pc-windows-msvc", is_big: false },
    Row { triple: "x86_64-w64-windows-gnu", is_big: false },
    Row { triple: "x86_64-pc-windows-msvc", is_big: true },
    Row { triple: "x86_64-w64-windows-gnu", is_big: true },
];

/// A kind of object.
#[derive(Debug, Clone, Copy)]
struct Row {
    triple: &'static str,
    /// It has more sections than the usual form can count.
    is_big: bool,
}

struct Build<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    row: Row,
    scratch: Scratch,
}

impl Build<'_> {
    fn run(&self, words: &[&str]) -> Ran {
        Call::new(self.bench, &self.scratch.inside, words).env("HOTSWAP_CLANG", self.clang.program.clone()).run()
    }

    fn must(&self, words: &[&str]) -> Result<(), String> {
        let ran = self.run(words);
        if ran.ok() { Ok(()) } else { Err(format!("{}: {}", words.join(" "), ran.brief())) }
    }

    /// Compiles the unit and puts it into a library, too.
    fn compile(&self, compiler: &str, plan: &[&str]) -> Result<(), String> {
        let target = format!("--target={}", self.row.triple);
        let light = self.clang.light();
        let mut words = vec![compiler, &target, "-Wno-unused-command-line-argument", "--offload-new-driver"];
        words.extend(light.iter().map(String::as_str));
        words.extend(["--offload-arch=gfx1030", "-nogpulib", "-fgpu-rdc", "-c", "kernel.hip", "-o", "kernel.o"]);
        words.extend(plan);
        words.extend(self.row.is_big.then_some("-Wa,-mbig-obj"));
        self.must(&words)?;
        if self.scratch.read("kernel.o").starts_with(BIG) != self.row.is_big {
            return Err("the object has another form".to_owned());
        }
        self.must(&[&self.clang.program, &target, "-c", "main.cpp", "-o", "main.o"])?;
        self.must(&[&self.clang.tool("llvm-ar"), "rcs", "units.lib", "kernel.o"])
    }

    /// The links by the three linkers, with the object and with the library.
    fn links(&self) -> Vec<(String, Ran)> {
        let (lld, link) = (self.clang.tool("ld.lld"), self.clang.tool("lld-link"));
        let mut found = Vec::new();
        for unit in ["kernel.o", "units.lib"] {
            let microsoft = [
                &link,
                "main.o",
                unit,
                "/entry:entry",
                "/nodefaultlib",
                "/subsystem:console",
                "/opt:ref",
                "/out:program.exe",
            ];
            let mingw = ["-m", "i386pep", "main.o", unit, "-e", "entry", "--gc-sections", "-o", "program.exe"];
            let [lld, ld] = [lld.as_str(), "ld"].map(|linker| [&[linker][..], &mingw].concat());
            for words in [&microsoft[..], &lld, &ld] {
                let ran = self.run(words);
                let is_there = self.scratch.has("program.exe");
                let _ = std::fs::remove_file(self.scratch.outside("program.exe"));
                found.push((format!("{} {unit}, program: {is_there}", words[0]), ran));
            }
        }
        found
    }
}

fn judge(bench: &Bench, clang: &Clang, row: Row) -> Result<usize, String> {
    let scratch = bench.scratch();
    scratch.write("kernel.hip", if row.is_big { format!("{KERNEL}{SECTIONS}") } else { KERNEL.to_owned() });
    scratch.write("main.cpp", MAIN);
    let build = Build { bench, clang, row, scratch };
    build.compile(&clang.program, &[])?;
    for (name, ran) in build.links() {
        if !ran.ok() || !name.ends_with("true") {
            return Err(format!("without a plan: {name}: {}", ran.brief()));
        }
    }
    build.compile(
        &bench.installed("bin/hotswap-clang++"),
        &["-Xoffload-linker", "--hotswap-retarget=gfx1030=>gfx1031"],
    )?;
    let links = build.links();
    for (name, ran) in &links {
        if ran.ok() || !ran.stderr.contains(SYMBOL) || !name.ends_with("false") {
            return Err(format!("{name}: {}", ran.brief()));
        }
    }
    Ok(links.len())
}

#[test]
fn a_lost_plan_stops_linkers_for_windows() {
    let Some(bench) = Bench::ready("lost plans for Windows") else { return };
    let cases: Vec<_> = bench.clangs.iter().flat_map(|clang| ROWS.map(|row| (clang, row))).collect();
    let results = parallel(&cases, |(clang, row)| judge(&bench, clang, *row));
    let links: usize = results.iter().flatten().sum();
    say(&format!("lost plans for Windows: {links} links of {} rows stop", cases.len()));
    let wrong = cases.iter().zip(&results).filter_map(|((clang, row), result)| {
        Some(format!("clang {} {row:?}: {}", clang.version, result.as_ref().err()?))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
