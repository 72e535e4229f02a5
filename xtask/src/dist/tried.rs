//! Packages as their users meet them: installed in a Debian root directory with HIP and nothing else of ours, where a project is
//! built, checked, and the package removed again.
//!
//! The directory is the userland of the tests below an overlay in memory, so nothing of it changes; `/opt`, where the tests have
//! more than Debian, is hidden.

use crate::outcome::{Outcome, fail};
use crate::recipe::Part;
use crate::{paths, remove, run, setup, userland};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Mounts, then the inner script in the root directory. Arguments: the root, an empty directory, the package, the project, the
/// script, the workspace.
const OUTER: &str = r#"
mount -t tmpfs none "$2"
mkdir "$2/upper" "$2/work" "$2/root"
mount -t overlay none -o "lowerdir=$1,upperdir=$2/upper,workdir=$2/work" "$2/root"
mount --rbind /proc "$2/root/proc"
mount --rbind /dev "$2/root/dev"
mount -t tmpfs none "$2/root/opt"
mount -t tmpfs none "$2/root/tmp"
case $3 in
    *.tar.xz) mkdir "$2/root/tmp/x"; tar -xf "$3" -C "$2/root/tmp/x" ;; # a bare Debian has no xz
    *) cp "$3" "$2/root/tmp/" ;;
esac
cp -r "$4" "$2/root/tmp/project"
mkdir "$2/root/tmp/sources"
cp -r "$6/CMakeLists.txt" "$6/cmake" "$2/root/tmp/sources/"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 chroot "$2/root" /bin/sh -ec "$5" sh "/tmp/${3##*/}"
"#;

/// Builds the project, with HotSwap in the prefix `$P`.
const BUILD: &str = r#"
"$P/bin/hotswap" doctor
cmake -G Ninja -S /tmp/project -B /tmp/build -DCMAKE_PREFIX_PATH="$P" -DCMAKE_HIP_ARCHITECTURES=gfx1030
cmake --build /tmp/build
"$P/bin/hotswap" verify /tmp/build/hello
"$P/bin/hotswap" list /tmp/build/hello
"$P/bin/hotswap" list /tmp/build/hello | grep -q 'gfx1031.*retargeted from gfx1030'
"#;

const DEB: &str = r#"
dpkg -i "$1"
P=/usr
BUILD
dpkg -L hotswap | grep -q /usr/share/man/man1/hotswap-retarget.1.gz # the root may leave pages out
dpkg -r hotswap
left=$(find /usr -name '*hotswap*' -not -path '*/doc/*')
test -z "$left" || { echo "left behind: $left"; exit 1; }
"#;

/// Unpacked in a directory, then moved.
const TARBALL: &str = r#"
mkdir "/tmp/a directory"
mv /tmp/x/* "/tmp/a directory/hotswap"
P="/tmp/a directory/hotswap"
BUILD
"$P/bin/hotswap" run --gpu gfx1031 -- /tmp/build/hello 2>/tmp/run.err
test ! -s /tmp/run.err || { cat /tmp/run.err; exit 1; }
mkdir /tmp/fetched
cp -r /tmp/sources /tmp/fetched/hotswap # as FetchContent has them
sed 's,find_package(HotSwap REQUIRED),include(FetchContent)\
FetchContent_Declare(HotSwap SOURCE_DIR /tmp/fetched/hotswap)\
FetchContent_MakeAvailable(HotSwap),' /tmp/project/CMakeLists.txt >/tmp/fetched/CMakeLists.txt
grep -q FetchContent_MakeAvailable /tmp/fetched/CMakeLists.txt
cp /tmp/project/hello.hip /tmp/fetched/
cmake -G Ninja -S /tmp/fetched -B /tmp/fetched/build -DHOTSWAP_PREFIX="$P" -DCMAKE_HIP_ARCHITECTURES=gfx1030
cmake --build /tmp/fetched/build
"$P/bin/hotswap" list /tmp/fetched/build/hello | grep -q 'gfx1031.*retargeted from gfx1030'
test "$(pkg-config --variable=bindir "$P/share/pkgconfig/hotswap-tools.pc" 2>/dev/null || echo none)" != ""
"#;

/// A project with a program for gfx1030 that is retargeted to others.
pub(super) const PROJECT: &str = "examples/hello-hip";

/// Installs each package in a root directory of its own.
pub(super) fn install_and_build(packages: &[PathBuf]) -> Outcome {
    if !rustix::process::geteuid().is_root() {
        return fail("packages are tried in a Debian root directory, which needs root");
    }
    let (userland, _lock) = setup::ensure(Part::Tests)?;
    if userland.is_machine() {
        return fail("packages are tried in the root directory of `cargo xtask setup --userland`");
    }
    for package in packages {
        let name = package.file_name().unwrap_or_default().to_string_lossy();
        let script = match () {
            () if name.ends_with(".tar.xz") => TARBALL,
            () if name.starts_with("hotswap_") => DEB,
            () => continue,
        };
        println!("Trying {name}");
        try_one(userland.root(), package, &script.replace("BUILD", BUILD.trim()))?;
    }
    Ok(())
}

/// Runs a script in a root directory with the network. Arguments: the root, the script, its argument.
const IN_ROOT: &str = r#"
mount --rbind /proc "$1/proc"
mount --rbind /dev "$1/dev"
cp -L /etc/resolv.conf "$1/etc/resolv.conf"
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive \
    chroot "$1" /bin/sh -ec "$2" sh "$3"
"#;

/// Installs the Debian package with apt in a new root directory that has nothing but Debian's base system, and builds the project.
/// The HIP that the package recommends for clang 22 is in experimental.
const BARE: &str = r#"
apt-get update -q
# What the package recommends, the first of each choice, and nothing that those recommend.
recommended=$(dpkg-deb -f "$1" Recommends | sed 's/|[^,]*//g; s/,//g')
apt-get install -q -y --no-install-recommends -t experimental "$1" $recommended cmake ninja-build g++ >/tmp/apt.log || { tail /tmp/apt.log; exit 1; }
dpkg -l hotswap $recommended | grep ^ii
P=/usr
BUILD
hotswap run --gpu gfx1031 -- /tmp/build/hello
"#;

/// The package `hotswap` among these.
pub(super) fn main_package(packages: &[PathBuf]) -> Outcome<&PathBuf> {
    packages.iter().find(is_main_package).map_or_else(|| fail("there is no Debian package to try"), Ok)
}

fn is_main_package(path: &&PathBuf) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("hotswap_"))
}

/// A new root directory with Debian's base system and apt.
pub(super) fn bare_root() -> Outcome<PathBuf> {
    if which::which("mmdebstrap").is_err() {
        return fail(
            "a new root directory is made by mmdebstrap, which is not installed (Debian's package of that name)",
        );
    }
    let root = paths::scratch("bare-root");
    remove::delete(&root)?;
    let mirror = userland::mirror()?;
    let mut make = Command::new("unshare");
    make.args([
        "--mount",
        "--pid",
        "--mount-proc",
        "--fork",
        "--kill-child",
        "mmdebstrap",
        "--mode=root",
        "--variant=apt",
    ]);
    // A mirror's copy of the archive may be weeks old.
    make.args(["--aptopt=Acquire::Check-Valid-Until \"false\"", "--dpkgopt=force-unsafe-io", "sid"]).arg(&root);
    make.args(["sid", "experimental"].map(|suite| format!("deb {mirror} {suite} main")));
    run::output(&mut make)?;
    Ok(root)
}

/// Runs a script in a root directory, with one argument.
pub(super) fn run_in(root: &Path, script: &str, argument: &str) -> Outcome {
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "/bin/sh", "-ec", IN_ROOT, "sh"]).arg(root).arg(script);
    run::quiet(command.arg(argument))
}

/// Tries the package `hotswap` among these in a root directory without anything else.
pub(super) fn in_bare_root(packages: &[PathBuf]) -> Outcome {
    let package = main_package(packages)?;
    let root = bare_root()?;
    let name = package.file_name().unwrap_or_default();
    fs::copy(package, root.join("tmp").join(name))?;
    let project = paths::workspace().join(PROJECT);
    run::output(Command::new("cp").arg("-r").arg(project).arg(root.join("tmp/project")))?;
    println!("Trying {} in a bare root directory", package.display());
    let inside = format!("/tmp/{}", name.to_string_lossy());
    run_in(&root, &BARE.replace("BUILD", BUILD.trim()), &inside)?;
    remove::delete(&root)
}

fn try_one(root: &Path, package: &Path, script: &str) -> Outcome {
    let directory = tempfile::tempdir()?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "/bin/sh", "-ec", OUTER, "sh"]);
    command
        .arg(root)
        .arg(directory.path())
        .arg(package)
        .arg(paths::workspace().join(PROJECT))
        .arg(script)
        .arg(paths::workspace());
    run::quiet(&mut command)
}
