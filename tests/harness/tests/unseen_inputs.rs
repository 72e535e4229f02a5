//! Inputs that clang reads besides the preprocessed text, one a row: each asks for the GPU where the text does not, so code that is
//! derived all the same is not clang's. Coalesced and by a plan, every code object is what clang compiles.
//!
//! The inputs that the text itself names (files of assembly, `#embed`, macros of the arguments) are rows of `coalesce`.

use hotswap_tests::artifact::{Device, devices};
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, in_turn, parallel, say};

const GPUS: &str = "gfx1030,gfx1031";
const PAIR: &str = "--hotswap-retarget=gfx1030=>gfx1031";

const KERNEL: &str = r#"#if defined(NAMED) && defined(__HIP_DEVICE_COMPILE__)
import asks;
#endif
#include "hip.h"
#ifdef MODULE
#include "module.h"
#endif
__attribute__((global)) void kernel(int *p) { p[0] = p[1] * 3; }
extern "C" const void *address() { return reinterpret_cast<const void *>(kernel); }
#ifdef __HIP_DEVICE_COMPILE__
#ifdef CALLS
extern "C" __attribute__((device)) int asks();
__attribute__((device)) int (*by_bitcode)() = asks;
#endif
#ifdef NAMED
__attribute__((device)) int (*by_module)() = from_named_module;
#endif
#ifdef ASKED
__attribute__((device)) int asked = ASKED;
#endif
#endif
"#;

/// A function for `-mlink-builtin-bitcode`, and a kernel for the device linker, which removes functions that nothing calls.
const ASKS: &str = r#"target triple = "amdgcn-amd-amdhsa"
define i32 @asks() {
  call void asm sideeffect ".if .amdgcn.gfx_generation_stepping == 1\0As_nop 3\0A.endif", ""()
  ret i32 1
}
define protected amdgpu_kernel void @asker() {
  call void asm sideeffect ".if .amdgcn.gfx_generation_stepping == 1\0As_nop 3\0A.endif", ""()
  ret void
}
"#;
const HEADER: &str = "#ifdef __gfx1031__\n#define ASKED 31\n#else\n#define ASKED 0\n#endif\n";
/// A value that is in the syntax tree: clang reads the spelling of macros from the text.
const PRECOMPILED: &str = "#ifdef __gfx1031__\nconstexpr int VALUE = 31;\n#else\nconstexpr int VALUE = 0;\n#endif\n";
const INCLUDES: &str = "#include \"hip.h\"\n__attribute__((global)) void kernel(int *p) { p[0] = p[1] * VALUE; }\n\
    extern \"C\" const void *address() { return reinterpret_cast<const void *>(kernel); }\n";
/// As long as the header that was precompiled.
const REPLACED: &str = "constexpr int VALUE = 0;\n//                                                       \n";
const MODULE: &str = "__attribute__((device)) inline int from_module() {\n#ifdef __gfx1031__\n  return 31;\n#else\n  return 0;\n\
    #endif\n}\n#ifdef __HIP_DEVICE_COMPILE__\n__attribute__((device)) int (*keep)() = from_module;\n#endif\n";
const TREE: &str = "__attribute__((device)) int from_tree() {\n  __asm__(\".if .amdgcn.gfx_generation_stepping == 1\\ns_nop 3\\n\
    .endif\");\n  return 1;\n}\n#ifdef __HIP_DEVICE_COMPILE__\n__attribute__((device)) int (*keep)() = from_tree;\n#endif\n";
/// The module's function differs by the assembler alone: one module is read for both GPUs.
const NAMED: &str = "export module asks;\nexport __attribute__((device)) inline int from_named_module() {\n\
    __asm__(\".if .amdgcn.gfx_generation_stepping == 1\\ns_nop 3\\n.endif\");\n  return 1;\n}\n";
/// Changes the code generator's options where the command line has the GPU.
const PLUGIN: &str = r#"#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
void LLVMParseCommandLineOptions(int, const char *const *, const char *);
__attribute__((constructor)) static void ask(void) {
  static char line[1 << 16];
  const char *words[] = {"plugin", "-amdgpu-waitcnt-forcezero"};
  FILE *file = fopen("/proc/self/cmdline", "r");
  size_t size = file ? fread(line, 1, sizeof line, file) : 0;
  if (memmem(line, size, "gfx1031", 7))
    LLVMParseCommandLineOptions(2, words, 0);
}
"#;

/// Makes a file that the compiler reads in place of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Input {
    Bitcode,
    Archive,
    PrecompiledHeader,
    Tree,
    /// A module that the text imports by its name.
    Module,
    Plugin,
    /// Nothing but the files that every row has.
    Written,
}

/// A way to give the compiler an input.
#[derive(Debug, Clone, Copy)]
struct Row {
    input: Input,
    words: &'static str,
    variable: Option<(&'static str, &'static str)>,
}

const fn row(input: Input, words: &'static str) -> Row {
    Row { input, words, variable: None }
}

const ROWS: &[Row] = &[
    row(Input::Bitcode, "-DCALLS -Xclang -mlink-builtin-bitcode -Xclang asks.bc"),
    row(Input::Bitcode, "-DCALLS -Wp,-mlink-builtin-bitcode,asks.bc"),
    row(Input::Bitcode, "-DCALLS -Xpreprocessor -mlink-builtin-bitcode -Xpreprocessor asks.bc"),
    // All of such a file becomes part of the program, also of the host's.
    row(Input::Bitcode, "-DCALLS --offload-device-only -Xclang -mlink-bitcode-file -Xclang asks.bc"),
    row(Input::Bitcode, "-DCALLS --offload-device-only -Xclang=-mlink-bitcode-file -Xclang=asks.bc"),
    row(Input::Bitcode, "-DCALLS -Xarch_device -Wp,-mlink-bitcode-file,asks.bc"),
    row(Input::Bitcode, "-DCALLS --hip-device-lib=asks.bc --hip-device-lib-path=."),
    row(Input::Bitcode, "-DCALLS @arguments.rsp"),
    row(Input::Bitcode, "-DCALLS --config=./clang.cfg"),
    Row {
        input: Input::Bitcode,
        words: "-DCALLS",
        variable: Some(("CCC_OVERRIDE_OPTIONS", "# +-Xclang +-mlink-builtin-bitcode +-Xclang +asks.bc")),
    },
    row(Input::PrecompiledHeader, "-Xclang -include-pch -Xclang all.h.gch"),
    row(Input::PrecompiledHeader, "-include-pch all.h.gch"),
    row(Input::PrecompiledHeader, "-Wp,-include-pch,all.h.gch"),
    row(Input::PrecompiledHeader, "-include all.h"),
    row(Input::PrecompiledHeader, "-includeall.h"),
    row(Input::PrecompiledHeader, "--include all.h"),
    row(Input::PrecompiledHeader, "--include=all.h"),
    row(Input::Written, "-Xclang -chain-include -Xclang header.h"),
    row(Input::Written, "-Wp,-chain-include,header.h"),
    row(Input::Written, "-DMODULE -fmodules -fmodules-cache-path=modules"),
    row(Input::Tree, "-Xclang -ast-merge -Xclang tree.ast"),
    row(Input::Tree, "-Wp,-ast-merge,tree.ast"),
];

/// The same for a relocatable unit, whose plan asks about it when it is compiled.
const UNITS: &[Row] = &[
    row(Input::Bitcode, "-DCALLS -Xclang -mlink-builtin-bitcode -Xclang asks.bc"),
    row(Input::Bitcode, "-DCALLS -Xarch_device -Wp,-mlink-bitcode-file,asks.bc"),
    row(Input::PrecompiledHeader, "-Xclang -include-pch -Xclang all.h.gch"),
];

/// Clang 24 takes a module for one GPU alone.
const MODULES: &[Row] = &[
    row(Input::Module, "-DNAMED -std=c++20 -Xarch_device -fmodule-file=asks=asks.pcm"),
    row(Input::Module, "-DNAMED -std=c++20 -Xarch_device -fprebuilt-module-path=."),
];

/// With clang 22 the option that the plugin sets has an effect in every form.
const PLUGINS: &[Row] = &[
    row(Input::Plugin, "-Xclang -load -Xclang ./plugin.so"),
    row(Input::Plugin, "-fplugin=./plugin.so"),
    row(Input::Plugin, "-Wp,-load,./plugin.so"),
];

/// Later versions of lld take no bitcode that names no processor.
const DEVICE_LINKS: &[Row] = &[
    row(Input::Archive, "-Xoffload-linker asks.bc"),
    row(Input::Archive, "-Xoffload-linker -L. -Xoffload-linker -lasks"),
    row(Input::Archive, "-Xoffload-linker --library-path=. -Xoffload-linker --library=asks"),
    row(Input::Archive, "-Xoffload-linker -T -Xoffload-linker script.ld"),
    row(Input::Archive, "-Xoffload-linker --script=script.ld"),
    row(Input::Archive, "-Xoffload-linker -Tscript.ld"),
    row(Input::Archive, "-Xoffload-linker @linker.rsp"),
];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Clang,
    Coalesce,
    Plan,
}

/// How the units are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Object,
    /// The arguments are those of a relocatable unit, which is linked.
    RelocatableUnit,
    /// The arguments are those of the link of a relocatable unit.
    RelocatableLink,
}

struct Build<'b> {
    bench: &'b Bench,
    clang: &'b Clang,
    form: Form,
    scratch: Scratch,
}

impl<'b> Build<'b> {
    fn prepare(bench: &'b Bench, clang: &'b Clang, form: Form, input: Input) -> Result<Self, String> {
        let scratch = bench.scratch();
        write_sources(&scratch, false);
        for (name, text) in [
            ("kernel.hip", KERNEL),
            ("asks.ll", ASKS),
            ("all.h", PRECOMPILED),
            ("includes.hip", INCLUDES),
            ("header.h", HEADER),
            ("module.h", MODULE),
            ("module.modulemap", "module asks { header \"module.h\" export * }\n"),
            ("tree.hip", TREE),
            ("named.hip", NAMED),
            ("plugin.c", PLUGIN),
            ("arguments.rsp", "-Xclang -mlink-builtin-bitcode -Xclang asks.bc\n"),
            ("clang.cfg", "-Xclang -mlink-builtin-bitcode -Xclang asks.bc\n"),
            ("linker.rsp", "asks.bc\n"),
            ("script.ld", "INPUT(asks.bc)\n"),
        ] {
            scratch.write(name, text);
        }
        let build = Self { bench, clang, form, scratch };
        build.make_input(input)?;
        Ok(build)
    }

    fn make_input(&self, input: Input) -> Result<(), String> {
        let assemble = format!("{} asks.ll -o asks.bc", self.clang.tool("llvm-as"));
        match input {
            Input::Bitcode => self.shell(&assemble),
            Input::Archive => {
                self.shell(&format!("{assemble} && {} rcs libasks.a asks.bc", self.clang.tool("llvm-ar")))
            }
            Input::PrecompiledHeader => {
                self.shell("mkdir all.h.gch")?;
                for (name, side) in [
                    ("host", "--offload-host-only"),
                    ("gfx1030", "--offload-device-only --offload-arch=gfx1030"),
                    ("gfx1031", "--offload-device-only --offload-arch=gfx1031"),
                ] {
                    self.precompile(side, "all.h", &format!("all.h.gch/{name}.pch"))?;
                }
                // The text is no longer what was precompiled, which clang sees by the size and the time alone.
                assert_eq!(PRECOMPILED.len(), REPLACED.len());
                self.scratch.write("new.h", REPLACED);
                self.shell("touch -r all.h new.h && mv new.h all.h")
            }
            Input::Tree => self.precompile("--offload-device-only --offload-arch=gfx1030", "tree.hip", "tree.ast"),
            Input::Module => {
                let side = "--offload-device-only --offload-arch=gfx1030 -std=c++20";
                self.make_by_front_end("-emit-module-interface", side, "named.hip", "asks.pcm")
            }
            Input::Plugin => self.shell("cc -shared -fPIC plugin.c -o plugin.so"),
            Input::Written => Ok(()),
        }
    }

    fn precompile(&self, side: &str, source: &str, output: &str) -> Result<(), String> {
        self.make_by_front_end("-emit-pch", side, source, output)
    }

    /// The driver has no way to precompile for a GPU alone, its front end has.
    fn make_by_front_end(&self, action: &str, side: &str, source: &str, output: &str) -> Result<(), String> {
        let words = format!("{} {} -O2 -fPIC -fuse-cuid=none", self.clang.program, self.clang.light().join(" "));
        let relocatable = if self.form == Form::RelocatableUnit { "-fgpu-rdc" } else { "" };
        let command = format!("{words} {relocatable} {side} -x hip -c {source} -o {output} -###");
        let edit = format!("s/\"-emit-obj\"\\|\"-emit-llvm-bc\"/\"{action}\"/; s/\"-o\" \"[^\"]*\"//");
        self.shell(&format!("eval \"$({command} 2>&1 | grep '\"-cc1\"' | sed '{edit}') -o {output}\""))
    }

    fn shell(&self, command: &str) -> Result<(), String> {
        judged(&Call::new(self.bench, &self.scratch.inside, &["sh", "-ec", command]).run())
    }

    fn run(&self, way: Way, row: &Row, rest: &str) -> Ran {
        let ours = self.bench.installed("bin/hotswap-clang++");
        let (program, request): (&str, &[&str]) = match way {
            Way::Clang => (&self.clang.program, &[]),
            Way::Coalesce => (&ours, &["-fhotswap-coalesce"]),
            Way::Plan => (&ours, &["-Xoffload-linker", PAIR]),
        };
        let gpus = if way == Way::Plan { "gfx1030" } else { GPUS };
        let mut words = vec![program.to_owned(), format!("--offload-arch={gpus}")];
        words.extend(request.iter().map(|word| (*word).to_owned()));
        words.extend(self.clang.light());
        words.extend("-O2 -fPIC -fuse-cuid=none".split(' ').chain(rest.split_whitespace()).map(str::to_owned));
        let call = Call::new(self.bench, &self.scratch.inside, &words).env("HOTSWAP_CLANG", self.clang.program.clone());
        row.variable.iter().fold(call, |call, (name, value)| call.env(name, *value)).run()
    }

    fn devices(&self, way: Way, row: &Row) -> Result<Vec<Device>, String> {
        let source = if row.input == Input::PrecompiledHeader { "includes.hip" } else { "kernel.hip" };
        let mut commands = vec![format!("{} -c {source} -o out", row.words)];
        let (unit, link) = match self.form {
            Form::Object => ("", ""),
            Form::RelocatableUnit => (row.words, ""),
            Form::RelocatableLink => ("", row.words),
        };
        if self.form != Form::Object {
            commands = vec![
                format!("-fgpu-rdc {unit} -c {source} -o unit.o"),
                format!("-fgpu-rdc --hip-link -shared -nostdlib {link} unit.o -o out"),
            ];
        }
        for command in commands {
            judged(&self.run(way, row, &command)).map_err(|error| format!("{way:?} {command}: {error}"))?;
        }
        let mut found = devices(&self.scratch.read("out"))?;
        found.sort_by(|one, other| one.target().cmp(other.target()));
        Ok(found)
    }
}

fn judged(ran: &Ran) -> Result<(), String> {
    if ran.ok() { Ok(()) } else { Err(ran.brief()) }
}

/// The code without its processor: the ELF header's flags, and the names in the note and in symbols of the same length.
fn without_name(device: &Device) -> Vec<u8> {
    let mut bytes = device.bytes.clone();
    bytes[0x30..0x34].fill(0);
    while let Some(at) = bytes.windows(7).position(|part| part == b"gfx1031") {
        bytes[at + 6] = b'0';
    }
    bytes
}

fn judge(bench: &Bench, clang: &Clang, case: &Case) -> Result<(), String> {
    let Case { form, row } = case;
    let build = Build::prepare(bench, clang, *form, row.input)?;
    let clangs = build.devices(Way::Clang, row)?;
    let [one, other] = &clangs[..] else { return Err(format!("clang has {} code objects", clangs.len())) };
    if without_name(one) == without_name(other) {
        return Err("the input does not ask: clang's code objects are the same".to_owned());
    }
    for way in [Way::Coalesce, Way::Plan] {
        let ours = build.devices(way, row)?;
        let differs = ours.iter().zip(&clangs).find(|(ours, clangs)| ours.bytes != clangs.bytes);
        if let Some((device, _)) = differs.filter(|_| ours.len() == 2) {
            return Err(format!("{way:?}: the code object for {} is not clang's", device.target()));
        }
        if ours.len() != 2 {
            return Err(format!("{way:?}: {} code objects", ours.len()));
        }
    }
    Ok(())
}

#[derive(Debug, Clone, Copy)]
struct Case {
    form: Form,
    row: Row,
}

#[test]
fn an_input_besides_the_text_is_compiled_for_each_gpu() {
    let Some(bench) = Bench::ready("unseen inputs") else { return };
    let mut rows: Vec<Case> = ROWS.iter().map(|row| Case { form: Form::Object, row: *row }).collect();
    rows.extend(UNITS.iter().map(|row| Case { form: Form::RelocatableUnit, row: *row }));
    let forms = [Form::Object, Form::RelocatableLink];
    let mut links: Vec<Case> = DEVICE_LINKS.iter().flat_map(|row| forms.map(|form| Case { form, row: *row })).collect();
    let modules = [Form::Object, Form::RelocatableUnit];
    links.extend(MODULES.iter().flat_map(|row| modules.map(|form| Case { form, row: *row })));
    links.extend(PLUGINS.iter().map(|row| Case { form: Form::Object, row: *row }));
    let mut cases = in_turn("unseen inputs", &rows, &bench.clangs, |_| false);
    cases.extend(bench.clang(22).into_iter().flat_map(|clang| links.iter().map(move |case| (clang, case))));
    let results = parallel(&cases, |(clang, case)| judge(&bench, clang, case));
    say(&format!("unseen inputs: {} of {} rows are clang's", results.iter().flatten().count(), cases.len()));
    let wrong = cases.iter().zip(&results).filter_map(|((clang, case), result)| {
        let Case { form, row } = case;
        Some(format!("clang {} {form:?} `{}` {:?}: {}", clang.version, row.words, row.variable, result.as_ref().err()?))
    });
    let wrong: Vec<_> = wrong.collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
