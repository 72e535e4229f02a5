//! The corpus through clang and lld, in the forms in which device code reaches a linker.

use crate::corpus::Unit;
use hotswap_userland::Workbench;

/// The source of the pair.
pub const SOURCE: &str = "gfx1250";
/// The stepping that code is made for.
pub const TARGET: &str = "gfx1250-strict";

/// How a unit is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    /// Version of clang.
    pub version: u32,
    /// Level of optimization.
    pub level: char,
    /// With debug information.
    pub debug: bool,
}

/// A form of the device program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// An object file.
    Relocatable,
    /// Linked, its relocations kept.
    Relocations,
    /// Linked as usual.
    Linked,
    /// Bitcode that the link compiles, as `-fgpu-rdc` does; relocations kept.
    Rdc,
    /// Object files of several parts, linked; relocations kept.
    Parts,
}

/// One object of the source, and the same for the target by clang, where that exists.
#[derive(Debug, Clone)]
pub struct Object {
    /// Unit, version, level, form.
    pub name: String,
    pub form: Form,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Forms and the extensions of their files.
pub const FORMS: [(Form, &str); 5] = [
    (Form::Relocatable, "o"),
    (Form::Relocations, "relocs"),
    (Form::Linked, "linked"),
    (Form::Rdc, "rdc"),
    (Form::Parts, "parts"),
];

/// Options of `llvm-objcopy` that remove symbols, and the forms of which copies without them are made. Without `-x` and
/// `--strip-unneeded` an object file cannot be linked any more.
pub const STRIPS: [(&str, &[Form]); 3] = [
    ("--strip-unneeded", &[Form::Relocatable, Form::Parts]),
    ("-x", &[Form::Relocatable, Form::Relocations, Form::Rdc]),
    ("--strip-all", &[Form::Linked, Form::Relocations]),
];

/// Copies of an object without symbols, named after it and the options.
///
/// # Panics
/// If `llvm-objcopy` fails.
pub fn strip(bench: &Workbench, object: &Object) -> Vec<Object> {
    let wanted = STRIPS.iter().filter(|(_, forms)| forms.contains(&object.form));
    wanted
        .map(|(option, _)| {
            let name = format!("{}.{}", object.name, option.trim_start_matches('-'));
            bench.write(&object.name, &object.bytes);
            bench.run(&format!("llvm-objcopy-24 {option} '{}' '{name}'", object.name));
            Object { bytes: bench.read(&name), name, form: object.form }
        })
        .collect()
}

impl Setting {
    /// `clang24-O2-g`.
    pub fn name(&self) -> String {
        format!("clang{}-O{}{}", self.version, self.level, if self.debug { "-g" } else { "" })
    }

    fn compiler(&self, processor: &str) -> String {
        let debug = if self.debug { " -g" } else { "" };
        format!(
            "clang-{} --target=amdgcn-amd-amdhsa -mcpu={processor} -nogpulib -O{}{debug} -w",
            self.version, self.level
        )
    }
}

/// Compiles a unit in some forms; returns the existing ones, in the order of [`FORMS`].
///
/// # Panics
/// If a compiler or linker of the userland fails.
pub fn compile(bench: &Workbench, unit: &Unit, setting: Setting, forms: &[Form]) -> Vec<Object> {
    compile_if_possible(bench, unit, setting, forms).unwrap_or_else(|error| panic!("{error}"))
}

/// As [`compile`].
///
/// # Errors
/// The text of a compiler or linker: clang 23 makes an illegal instruction of `control` at -O0.
pub fn compile_if_possible(
    bench: &Workbench,
    unit: &Unit,
    setting: Setting,
    forms: &[Form],
) -> Result<Vec<Object>, String> {
    let name = format!("{}-{}", unit.name, setting.name());
    bench.write(&format!("{name}.c"), unit.source().as_bytes());
    let parts = unit.parts();
    for (number, part) in parts.iter().flatten().enumerate() {
        bench.write(&format!("{name}.{number}.c"), part.as_bytes());
    }
    let mut script = format!("set -e\n{} -c {name}.c -o {name}.o\n", setting.compiler(SOURCE));
    for form in forms {
        script += &commands(&name, setting, *form, parts.is_some());
    }
    let output = bench.shell(&script);
    if !output.status.success() {
        return Err(format!("{script}\n{}", String::from_utf8_lossy(&output.stderr)));
    }
    let there = FORMS.iter().filter(|(form, _)| forms.contains(form));
    let objects = there.filter_map(|(form, extension)| {
        let file = format!("{name}.{extension}");
        bench.path(&file).exists().then(|| Object { bytes: bench.read(&file), name: file, form: *form })
    });
    Ok(objects.collect())
}

/// LLVM 24's own code for the target, disassembled; `None` for a unit that it does not accept.
///
/// # Panics
/// If the userland lacks clang 24.
pub fn native(bench: &Workbench, unit: &Unit, setting: Setting) -> Option<String> {
    let name = format!("{}-{}.native", unit.name, setting.name());
    unit.native.then(|| {
        bench.write(&format!("{name}.c"), unit.source().as_bytes());
        let compiler = Setting { version: 24, ..setting }.compiler(TARGET);
        bench.run(&format!("{compiler} -c {name}.c -o {name} && llvm-objdump-24 -d {name}"))
    })
}

/// The commands that make one form from `NAME.c`, `NAME.o` and the files of the parts.
fn commands(name: &str, setting: Setting, form: Form, parts: bool) -> String {
    let (compiler, lld) = (setting.compiler(SOURCE), format!("ld.lld-{} -shared", setting.version));
    let bitcode = format!("{lld} --emit-relocs -plugin-opt=mcpu={SOURCE} -plugin-opt=O{}", setting.level);
    match (form, parts) {
        (Form::Relocatable, _) | (Form::Parts, false) => String::new(),
        (Form::Relocations, _) => format!("{lld} --emit-relocs {name}.o -o {name}.relocs\n"),
        (Form::Linked, _) => format!("{lld} {name}.o -o {name}.linked\n"),
        (Form::Rdc, false) => {
            format!("{compiler} -flto -c {name}.c -o {name}.bc\n{bitcode} {name}.bc -o {name}.rdc\n")
        }
        (Form::Rdc, true) => format!(
            "for part in 0 1; do {compiler} -flto -c {name}.$part.c -o {name}.$part.bc; done\n\
             {bitcode} {name}.0.bc {name}.1.bc -o {name}.rdc\n"
        ),
        (Form::Parts, true) => format!(
            "for part in 0 1; do {compiler} -c {name}.$part.c -o {name}.$part.o; done\n\
             {lld} --emit-relocs {name}.0.o {name}.1.o -o {name}.parts\n"
        ),
    }
}
