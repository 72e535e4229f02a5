//! The oracle of the alias families: their output for a sibling's code object is, byte for byte, clang's output for the
//! target itself.

use hotswap_code_object::{CodeObject, same_but_for_label};
use hotswap_families::FamilyRegistry;
use hotswap_targets::{PROCESSORS, Processor, Support, TargetId};
use hotswap_userland::{ENV_ROOT, Userland, in_turn, say, skip};
use std::collections::HashMap;
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const KERNEL: &str = "\
    extern \"C\" __attribute__((global)) void scale(float *values, float factor, int count) {\n\
      int index = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();\n\
      __attribute__((shared)) static float tile[64];\n\
      tile[index & 63] = values[index];\n\
      __builtin_amdgcn_s_barrier();\n\
      if (index < count) values[index] = tile[63 - (index & 63)] * factor;\n\
    }\n";

struct Compiler {
    userland: Userland,
    directory: TempDir,
    clang: &'static str,
}

impl Compiler {
    /// `None`, with a line that says so, if the userland or the compiler is missing.
    fn new(clang: &'static str) -> Option<Self> {
        let Some(userland) = Userland::from_env() else {
            skip(clang, &format!("{ENV_ROOT} is not set"));
            return None;
        };
        if !userland.command("/", "which").arg(clang).output().unwrap().status.success() {
            skip(clang, "not in the userland");
            return None;
        }
        let directory = tempfile::tempdir_in(userland.outside("/tmp")).unwrap();
        fs::write(directory.path().join("kernel.hip"), KERNEL).unwrap();
        Some(Self { userland, directory, clang })
    }

    /// The linked code object for that target, or clang's message if it does not support it.
    fn compile(&self, target: &TargetId) -> Result<Vec<u8>, String> {
        let inside = Path::new("/tmp").join(self.directory.path().file_name().unwrap());
        let words = "-x hip -nogpuinc -nogpulib -fuse-cuid=none --offload-device-only --no-gpu-bundle-output -O2";
        let mut command = self.userland.command(inside, self.clang);
        command.args(words.split(' ')).arg(format!("--offload-arch={target}")).args(["kernel.hip", "-o", "object"]);
        let output = command.output().unwrap();
        if output.status.success() {
            Ok(fs::read(self.directory.path().join("object")).unwrap())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        }
    }
}

/// Every ordered pair of one group.
fn pairs() -> Vec<(&'static Processor, &'static Processor)> {
    let same = |a: &Processor, b: &Processor| a.group.is_some() && a.group == b.group && a.name != b.name;
    let targets =
        |source| PROCESSORS.iter().filter(move |target| same(source, target)).map(move |target| (source, target));
    PROCESSORS.iter().flat_map(targets).collect()
}

/// The target with each setting of the features that it has.
fn settings(processor: &'static Processor) -> Vec<TargetId> {
    let states = |support| if support == Support::Yes { vec![None, Some(false), Some(true)] } else { vec![None] };
    let of = |xnack: Option<bool>| {
        states(processor.sramecc).into_iter().map(move |sramecc| TargetId { processor, xnack, sramecc })
    };
    states(processor.xnack).into_iter().flat_map(of).collect()
}

/// Relabels `own` and compares with clang's object for the target. Returns the difference.
fn fault(own: &[u8], theirs: &[u8], target: &TargetId) -> Option<String> {
    let object = CodeObject::parse(own).unwrap();
    let (made, counts) = match FamilyRegistry::installed().apply_families(&object, target) {
        Ok(made) => made,
        Err(error) => return Some(error.to_string()),
    };
    let names: Vec<_> = counts.iter().map(|count| (count.name.as_str(), count.sites)).collect();
    if names != [("machine_flags", 1), ("target_note", 1)] {
        return Some(format!("{names:?}"));
    }
    let differing = made.iter().zip(theirs).filter(|(one, other)| one != other).count();
    (made != theirs).then(|| format!("{differing} bytes differ"))
}

/// The compilers of the userland.
fn compilers() -> Vec<Compiler> {
    ["clang-22", "clang-23", "clang-24"].into_iter().filter_map(Compiler::new).collect()
}

/// Names of the groups.
fn groups() -> Vec<&'static str> {
    let mut groups: Vec<_> = PROCESSORS.iter().filter_map(|processor| processor.group).collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

/// Clang's objects for every setting of every processor of a group.
fn objects(compiler: &Compiler, group: &str) -> HashMap<String, Vec<u8>> {
    let processors = PROCESSORS.iter().filter(|processor| processor.group == Some(group));
    let compile = |target: TargetId| match compiler.compile(&target) {
        Ok(object) => (target.to_string(), object),
        Err(error) => panic!("{} {target}: {error}", compiler.clang),
    };
    processors.flat_map(settings).map(compile).collect()
}

#[test]
fn a_relabelled_sibling_is_what_clang_makes_for_the_target() {
    let (mut count, mut wrong) = (0, Vec::new());
    let (compilers, groups) = (compilers(), groups());
    if compilers.is_empty() {
        return;
    }
    for (compiler, group) in in_turn("siblings", &groups, &compilers, |_| false) {
        let objects = objects(compiler, group);
        for (source, target) in pairs().into_iter().filter(|(source, _)| source.group == Some(*group)) {
            for (source, target) in settings(source).iter().zip(&settings(target)) {
                count += 1;
                let fault = fault(&objects[&source.to_string()], &objects[&target.to_string()], target);
                wrong.extend(fault.map(|fault| format!("{} {source} {target}: {fault}", compiler.clang)));
            }
        }
    }
    say(&format!("siblings: {count} pairs: {} equal to clang's own", count - wrong.len()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_features_are_refused_and_the_same_target_changes_nothing() {
    let Some(compiler) = Compiler::new("clang-22") else { return };
    let bytes = compiler.compile(&"gfx900:xnack-".parse().unwrap()).unwrap();
    let object = CodeObject::parse(&bytes).unwrap();
    let error = FamilyRegistry::installed().apply_families(&object, &"gfx902:xnack+".parse().unwrap()).unwrap_err();
    assert!(error.what.contains("gfx900:xnack- cannot be labelled gfx902:xnack+"), "{error}");
    let (same, counts) = FamilyRegistry::installed().apply_families(&object, &object.target_id()).unwrap();
    assert_eq!((same, counts), (bytes.clone(), Vec::new()));
}

/// A processor and the generic target for which clang makes the same code.
const GENERICS: &[(&str, &str)] = &[
    ("gfx900", "gfx9-generic"),
    ("gfx942", "gfx9-4-generic"),
    ("gfx1010", "gfx10-1-generic"),
    ("gfx1030", "gfx10-3-generic"),
    ("gfx1102", "gfx11-generic"),
    ("gfx1200", "gfx12-generic"),
];

/// All parts of an object that a loader uses, file offsets left aside.
fn substance(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let object = CodeObject::parse(bytes).unwrap();
    let moves = [".note", ".dynamic", ".dynsym", ".symtab", ".rodata"];
    let sections = object.sections().iter().filter(|section| !moves.contains(&section.name));
    let mut found: Vec<_> =
        sections.map(|section| (section.name.to_owned(), bytes[section.range.clone()].to_vec())).collect();
    for (kernel, descriptor) in object.note().kernels.iter().zip(object.descriptors()) {
        // Bytes 16 to 23 are the distance to the code.
        let mut settings = bytes[descriptor.range.clone()].to_vec();
        settings[16..24].fill(0);
        found.push((format!("{kernel:?}"), settings));
    }
    let header = [&bytes[..40], &bytes[48..64]].concat();
    found.push((object.note().target.to_owned(), header));
    found
}

#[test]
fn an_object_for_a_generic_target_is_what_clang_makes_for_it() {
    let (mut equal, mut moved, mut wrong) = (0, 0, Vec::new());
    let compilers = compilers();
    if compilers.is_empty() {
        return;
    }
    let names = ["scale", "scale_by", "scale_by_a_factor", "scale_by_a_factor_of_the_caller_s_choice"];
    let cases: Vec<_> = names.iter().flat_map(|name| GENERICS.iter().map(move |pair| (name, pair))).collect();
    for (compiler, (name, (native, generic))) in in_turn("generics", &cases, &compilers, |_| false) {
        fs::write(compiler.directory.path().join("kernel.hip"), KERNEL.replace("scale", name)).unwrap();
        let target: TargetId = generic.parse().unwrap();
        let own = compiler.compile(&native.parse().unwrap()).unwrap();
        let theirs = compiler.compile(&target).unwrap();
        let object = CodeObject::parse(&own).unwrap();
        let (made, counts) = FamilyRegistry::installed().apply_families(&object, &target).unwrap();
        assert_eq!(counts.len(), 2);
        same_but_for_label(&object, &CodeObject::parse(&made).unwrap()).unwrap();
        let again = CodeObject::parse(&made).unwrap();
        assert_eq!(FamilyRegistry::installed().apply_families(&again, &target).unwrap(), (made.clone(), Vec::new()));
        read_by_llvm(compiler, &made, &own);
        match (made == theirs, substance(&made) == substance(&theirs)) {
            (true, _) => equal += 1,
            (false, true) => moved += 1,
            (false, false) => wrong.push(format!("{} {native} {generic} {name}", compiler.clang)),
        }
    }
    say(&format!("generics: {equal} equal to clang's own, {moved} equal but for the place of the note"));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// LLVM's tools read the object without an error and see the same symbols and code as in its source.
fn read_by_llvm(compiler: &Compiler, made: &[u8], source: &[u8]) {
    let version = &compiler.clang[6..];
    let directory = Path::new("/tmp").join(compiler.directory.path().file_name().unwrap());
    let seen = |bytes: &[u8]| {
        fs::write(compiler.directory.path().join("seen"), bytes).unwrap();
        let script = format!(
            "llvm-readelf-{version} -hlS --notes seen 2>&1 | grep -i warning; llvm-readelf-{version} -sW seen
             llvm-objdump-{version} -d seen 2>&1 | grep -v -e 'file format' -e amdgcn_target"
        );
        let output = compiler.userland.command(directory.clone(), "/bin/bash").args(["-c", &script]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let text = seen(made);
    assert!(text.contains("s_endpgm") && !text.to_lowercase().contains("warning"), "{text}");
    // The addresses of the tables before the code may differ, those of symbols and code do not.
    assert_eq!(text, seen(source));
}
