//! The oracle of the alias families: what they make of a sibling's code object is, byte for byte,
//! what clang makes for the target itself.

use hotswap_code_object::CodeObject;
use hotswap_families::Registry;
use hotswap_targets::{PROCESSORS, Processor, Support, TargetId};
use hotswap_userland::{Userland, say};
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
    folder: TempDir,
    clang: &'static str,
}

impl Compiler {
    /// `None`, with a line that says so, where the userland or the compiler is not there.
    fn new(clang: &'static str) -> Option<Self> {
        let Some(userland) = Userland::from_env() else {
            say(&format!("{clang}: skipped: {} is not set", hotswap_userland::ENV_ROOT));
            return None;
        };
        if !userland.command("/", "which").arg(clang).output().unwrap().status.success() {
            say(&format!("{clang}: skipped: not in the userland"));
            return None;
        }
        let folder = tempfile::tempdir_in(userland.outside("/tmp")).unwrap();
        fs::write(folder.path().join("kernel.hip"), KERNEL).unwrap();
        Some(Self { userland, folder, clang })
    }

    /// The linked code object for that target; the message of clang where it does not know it.
    fn compile(&self, target: &TargetId) -> Result<Vec<u8>, String> {
        let inside = Path::new("/tmp").join(self.folder.path().file_name().unwrap());
        let words = "-x hip -nogpuinc -nogpulib -fuse-cuid=none --offload-device-only --no-gpu-bundle-output -O2";
        let mut command = self.userland.command(inside, self.clang);
        command.args(words.split(' ')).arg(format!("--offload-arch={target}")).args(["kernel.hip", "-o", "object"]);
        let output = command.output().unwrap();
        if output.status.success() {
            Ok(fs::read(self.folder.path().join("object")).unwrap())
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

/// Relabels `own` and compares with clang's object for the target; what differs.
fn fault(own: &[u8], theirs: &[u8], target: &TargetId) -> Option<String> {
    let object = CodeObject::parse(own).unwrap();
    let (made, counts) = match Registry::installed().apply(&object, target) {
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

/// Clang's objects for every setting of every processor that has siblings.
fn objects(compiler: &Compiler) -> HashMap<String, Vec<u8>> {
    let processors = PROCESSORS.iter().filter(|processor| processor.group.is_some());
    let compile = |target: TargetId| match compiler.compile(&target) {
        Ok(object) => (target.to_string(), object),
        Err(error) => panic!("{} {target}: {error}", compiler.clang),
    };
    processors.flat_map(settings).map(compile).collect()
}

#[test]
fn a_relabelled_sibling_is_what_clang_makes_for_the_target() {
    let (mut count, mut wrong) = (0, Vec::new());
    for clang in ["clang-22", "clang-23", "clang-24"] {
        let Some(compiler) = Compiler::new(clang) else { continue };
        let objects = objects(&compiler);
        for (source, target) in pairs() {
            for (source, target) in settings(source).iter().zip(&settings(target)) {
                count += 1;
                let fault = fault(&objects[&source.to_string()], &objects[&target.to_string()], target);
                wrong.extend(fault.map(|fault| format!("{clang} {source} {target}: {fault}")));
            }
        }
    }
    if count == 0 {
        return;
    }
    say(&format!("siblings: {count} pairs: {} equal to clang's own", count - wrong.len()));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn other_features_are_refused_and_the_same_target_changes_nothing() {
    let Some(compiler) = Compiler::new("clang-22") else { return };
    let bytes = compiler.compile(&"gfx900:xnack-".parse().unwrap()).unwrap();
    let object = CodeObject::parse(&bytes).unwrap();
    let error = Registry::installed().apply(&object, &"gfx902:xnack+".parse().unwrap()).unwrap_err();
    assert!(error.what.contains("gfx900:xnack- cannot be labelled gfx902:xnack+"), "{error}");
    let (same, counts) = Registry::installed().apply(&object, &object.target_id()).unwrap();
    assert_eq!((same, counts), (bytes.clone(), Vec::new()));
}
