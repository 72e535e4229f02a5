//! HotSwap as a part of a project, built from its sources by Debian's own Rust: in a new Debian root directory, with vendored
//! crates and without a network, a project has it by FetchContent, is built, and runs on an emulated GPU. Then the same sources are
//! built with the distribution's liblzma in place of the copy that is compiled in, and both read a compressed archive alike.
//!
//! The sources are those of the last commit, or all of a source tarball.

use super::{source_tarball, tried};
use crate::outcome::{During, Outcome, fail};
use crate::{paths, remove, run, sources};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Installs what the project needs with the network, then builds without it. `$1`: the packages that HotSwap recommends.
const INSIDE: &str = r#"
apt-get update -q
apt-get install -q -y --no-install-recommends -t experimental $1 cmake ninja-build g++ >/tmp/apt.log || { tail /tmp/apt.log; exit 1; }
apt-get install -q -y --no-install-recommends -t sid cargo rustc liblzma-dev pkgconf xz-utils >/tmp/apt.log || { tail /tmp/apt.log; exit 1; }
rustc --version
exec unshare --net /bin/sh -ec '
if cargo search hotswap 2>/dev/null; then echo "there is a network"; exit 1; fi
cmake -G Ninja -S /tmp/project -B /tmp/build -DHOTSWAP_OPTIMIZE=OFF -DCMAKE_HIP_ARCHITECTURES=gfx1030 >/tmp/cmake.log 2>&1 || { tail -40 /tmp/cmake.log; exit 1; }
tail -3 /tmp/cmake.log
cmake --build /tmp/build
P=/tmp/build/_deps/hotswap-build/installed
"$P/bin/hotswap" list /tmp/build/hello
"$P/bin/hotswap" list /tmp/build/hello | grep -q "gfx1031.*retargeted from gfx1030"
"$P/bin/hotswap" run --gpu gfx1031 -- /tmp/build/hello

cd /tmp/hotswap
export CARGO_TARGET_DIR=/tmp/build/_deps/hotswap-build/target
cargo xtask install --debug --system-xz --prefix /tmp/unbundled >/tmp/xz.log 2>&1 || { tail -40 /tmp/xz.log; exit 1; }
ldd /tmp/unbundled/bin/hotswap | grep "liblzma[.]so[.]5"
if ldd "$P/bin/hotswap" | grep liblzma; then exit 1; fi
tar -C /tmp/build -cJf /tmp/hello.tar.xz hello
for prefix in "$P" /tmp/unbundled; do "$prefix/bin/hotswap" list --format json /tmp/hello.tar.xz >"$prefix/list"; done
grep gfx1031 /tmp/unbundled/list
cmp "$P/list" /tmp/unbundled/list
'
"#;

/// `packages` tell what HotSwap recommends.
pub(super) fn fetch_and_build(packages: &[PathBuf]) -> Outcome {
    let package = tried::main_package(packages)?;
    let field = run::output(Command::new("dpkg-deb").arg("-f").arg(package).arg("Recommends"))?;
    let root = tried::bare_root()?;
    lay_out(&root.join("tmp/hotswap"))?;
    write_project(&root.join("tmp/project"))?;
    println!("Building a project with HotSwap's sources in a bare root directory");
    tried::run_in(&root, INSIDE, &first_choices(&field))?;
    remove::delete(&root)
}

/// The sources, with all crates that they need.
fn lay_out(directory: &Path) -> Outcome {
    fs::create_dir_all(directory).during("create", directory)?;
    sources::copy(paths::workspace(), &paths::scratch("sources.tar"), directory)?;
    source_tarball::vendor_crates(directory)
}

/// The example, with FetchContent in place of an installation.
fn write_project(directory: &Path) -> Outcome {
    fs::create_dir_all(directory).during("create", directory)?;
    let example = paths::workspace().join(tried::PROJECT);
    let lists = fs::read_to_string(example.join("CMakeLists.txt"))?;
    let fetch = "include(FetchContent)\nFetchContent_Declare(HotSwap SOURCE_DIR /tmp/hotswap)\nFetchContent_MakeAvailable(HotSwap)";
    let fetched = lists.replace("find_package(HotSwap REQUIRED)", fetch);
    if fetched == lists {
        return fail(format!("{} does not look for HotSwap", example.display()));
    }
    fs::write(directory.join("CMakeLists.txt"), fetched).during("write", directory)?;
    fs::copy(example.join("hello.hip"), directory.join("hello.hip"))?;
    Ok(())
}

/// The first package of each choice of a field `Recommends`.
fn first_choices(field: &str) -> String {
    field.trim().split(',').map(first_dependency_choice).collect::<Vec<_>>().join(" ")
}

fn first_dependency_choice(choice: &str) -> String {
    choice.split('|').next().unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_of_each_choice_is_taken() {
        assert_eq!(super::first_choices("clang-22 | clang-23, lld-22 | lld, x\n"), "clang-22 lld-22 x");
    }
}
