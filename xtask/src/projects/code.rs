//! The code objects in a file, taken out by LLVM's tools.

use super::build::ProjectBench;
use crate::outcome::{During, Outcome};
use crate::run;
use serde_json::Value;
use std::fs;
use std::path::Path;

const OBJCOPY: &str = "llvm-objcopy-22";
const BUNDLER: &str = "clang-offload-bundler-22";

impl ProjectBench {
    /// The code object of a GPU in an object or library with one bundle; `directory` is a path inside.
    pub(super) fn code_object(&self, directory: &str, file: &str, gpu: &str) -> Outcome<Vec<u8>> {
        let inside = self.session.work.join(directory);
        let mut dump = self.session.inside(&inside, OBJCOPY);
        run::output(dump.args(["--dump-section=.hip_fatbin=fat", file, "/dev/null"]))?;
        let target = format!("-targets=hipv4-amdgcn-amd-amdhsa--{gpu}");
        let mut unbundle = self.session.inside(&inside, BUNDLER);
        run::output(unbundle.args(["-unbundle", "-type=o", "-input=fat", "-output=one", &target]))?;
        let one = self.work.join(directory).join("one");
        let bytes = fs::read(&one).during("read", &one)?;
        fs::remove_file(&one).during("delete", &one)?;
        Ok(bytes)
    }

    /// The GPUs whose code objects in a file were derived from another's, as HotSwap lists them.
    pub(super) fn derived_gpus(&self, directory: &str, file: &str) -> Outcome<Vec<String>> {
        let mut list = self.session.inside(&self.session.work.join(directory), "hotswap");
        let listed: Value = serde_json::from_str(&run::output(list.args(["list", "--format", "json", file]))?)?;
        let containers =
            listed["files"].as_array().into_iter().flatten().filter_map(|file| file["containers"].as_array());
        let entries = containers.flatten().filter_map(|container| container["entries"].as_array()).flatten();
        Ok(entries.filter(|entry| entry["source"].is_string()).filter_map(name_target).collect())
    }

    /// Whether two builds have the same code object for a GPU, and what differs if not.
    pub(super) fn compare_code(&self, builds: [&str; 2], file: &str, gpu: &str) -> Outcome<Option<String>> {
        let [one, other] = builds;
        let (first, second) = (self.code_object(one, file, gpu)?, self.code_object(other, file, gpu)?);
        let differs = first != second || first.is_empty();
        let name =
            |directory: &str| Path::new(directory).file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(differs
            .then(|| format!("{file}: the code objects for {gpu} of `{}` and `{}` differ", name(one), name(other))))
    }
}

fn name_target(entry: &Value) -> Option<String> {
    Some(entry["target"].as_str()?.to_owned())
}
