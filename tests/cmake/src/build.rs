//! Configures and builds projects, and reads the output.

use crate::case::Mode;
use crate::site::{Site, both};
use hotswap_tests::Ran;

impl Site<'_> {
    /// Runs CMake's configure step.
    pub(crate) fn configure(&self, definitions: &[&str]) -> Ran {
        let compiler = match self.unit().mode {
            Mode::Found => None,
            Mode::Compiler => Some(format!("{}/bin/hotswap-clang++", self.prefix)),
            Mode::CompilerC => Some(format!("{}/bin/hotswap-clang", self.prefix)),
            Mode::Launcher => Some(self.clang()),
        };
        self.cmake(&self.project(), compiler, &format!("-DCMAKE_PREFIX_PATH={}", self.prefix), definitions)
    }

    /// The same for a project that uses the installed package, else the build tree's exports, and is unaware of
    /// HotSwap.
    pub(crate) fn configure_consumer(&self, directory: &str) -> Ran {
        let prefixes = ["build/installed", "build/exported"].map(|prefix| self.inside(prefix)).join(";");
        let installed = format!("-DCMAKE_PREFIX_PATH={prefixes}");
        let clang = self.unit().setup.clang.program.clone();
        self.cmake(&format!("{}/{directory}", self.project()), Some(clang), &installed, &[])
    }

    fn cmake(&self, source: &str, compiler: Option<String>, prefix: &str, definitions: &[&str]) -> Ran {
        let setup = &self.unit().setup;
        let mut words = vec![setup.cmake.program.clone(), "-S".into(), source.to_owned(), "-B".into()];
        words.extend([self.inside(self.tree), format!("-G{}", setup.generator), prefix.to_owned()]);
        words.extend(["-DCMAKE_HIP_ARCHITECTURES=gfx1030".to_owned(), format!("-DCMAKE_HIP_FLAGS={}", self.flags())]);
        words.extend(compiler.map(|compiler| format!("-DCMAKE_HIP_COMPILER={compiler}")));
        words.extend(definitions.iter().map(|text| fill_step_template(text, self, setup)));
        self.call(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Builds `all` or the given target.
    pub(crate) fn build(&self, target: Option<&str>) -> Ran {
        let tree = self.inside(self.tree);
        let mut words = vec![self.unit().setup.cmake.program.as_str(), "--build", tree.as_str()];
        words.extend(target.iter().flat_map(|target| ["--target", target]));
        self.call(&words)
    }

    pub(crate) fn build_ok(&self) -> Result<String, String> {
        let ran = self.build(None);
        if ran.ok() { Ok(both(&ran)) } else { Err(format!("the build failed:\n{}", both(&ran))) }
    }
}

fn fill_step_template(text: &str, site: &Site<'_>, setup: &crate::setup::Setup) -> String {
    let text = text.replace("{flags}", &site.flags()).replace("{prefix}", &site.prefix);
    let text = text.replace("{source}", &site.source());
    let text = text.replace("{clang}", &setup.clang.program);
    text.replace("{version}", &setup.clang.version.to_string())
}

/// Names of the sources that a build compiled, sorted. Both generators print
/// `Building HIP object …/kernel.hip.o`.
pub(crate) fn compiled(output: &str) -> Vec<&str> {
    let objects = output.lines().filter_map(|line| line.split_once("Building ")?.1.split_once(" object "));
    let mut names: Vec<_> = objects
        .filter_map(|(_, path)| path.rsplit('/').next())
        .map(|name| name.trim_end().trim_end_matches(".o"))
        .collect();
    names.sort_unstable();
    names
}

/// The first line that reports work; a build with nothing to do lacks one.
pub(crate) fn work(output: &str) -> Option<&str> {
    let busy =
        |line: &&str| ["Building ", "Linking ", "Generating ", "Re-running CMake"].iter().any(|w| line.contains(w));
    output.lines().find(busy)
}

/// The text in one line, so that a search succeeds wherever CMake broke it.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_of_both_generators_is_understood() {
        let ninja = "[1/3] Building HIP object CMakeFiles/app.dir/w/kernel.hip.o\n[2/3] Linking HIP executable app\n";
        let make = "[ 33%] Building CXX object CMakeFiles/app.dir/main.cpp.o\n[100%] Built target app\n";
        assert_eq!(compiled(ninja), ["kernel.hip"]);
        assert_eq!(compiled(make), ["main.cpp"]);
        assert!(work(ninja).is_some() && work(make).is_some());
        assert_eq!(work("ninja: no work to do.\n"), None);
        assert_eq!(work("[ 50%] Built target kernels\n[100%] Built target app\n"), None);
    }
}
